"""Additive models of other packages: what is read is what they say, and the rest is refused."""

from __future__ import annotations

import functools
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdfast import ActionSet, NormBall, RobustRecourse, sets
from holdfast.actions import check, raw_cost
from holdfast.models import AdditiveModel, as_model
from holdfast.models.additive import points_of, split_additive
from holdfast.models.encoding import Encoding, Number
from holdfast.models.encoding.columns import Affine, Bent, Coded
from holdfast.models.encoding.rules import ColumnRule
from holdfast.models.encoding.steps import walk
from holdfast.models.encoding.unwrap import unwrap

SEEDS = [0, 1, 2]


def boosting(**settings):
    glassbox = pytest.importorskip("interpret.glassbox", reason="needs interpret-core")
    given = {"interactions": 0, "outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "max_bins": 12}
    return glassbox.ExplainableBoostingClassifier(**{**given, **settings})


def pygam():
    return pytest.importorskip("pygam", reason="needs pygam")


def optbinning():
    return pytest.importorskip("optbinning", reason="needs optbinning")


def quietly(fit, *data):
    """Fit what warns of small tables and of its own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*data)


def people(seed, n=300, *, missing=False):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": np.round(rng.normal(30.0, 10.0, n), 1),
            "home": rng.choice(["own", "rent", "free"], n),
            "cards": rng.integers(0, 5, n),
            "region": rng.integers(1, 4, n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "top"], n), ["low", "mid", "top"]),
        }
    )
    score = 0.1 * (table["income"] - 30) + (table["home"] == "own") - 0.4 * table["cards"]
    wants = (score + 0.5 * (table["region"] == 2) + rng.normal(size=n) > -0.5).to_numpy()
    if missing:
        table.loc[rng.random(n) < 0.1, "income"] = np.nan
        table.loc[rng.random(n) < 0.1, "home"] = None
    return table, wants


def strange(seed, n=2000):
    """Rows that nobody has seen: missing values, unknown levels, numbers far outside."""
    rng = np.random.default_rng(seed + 100)
    return pd.DataFrame(
        {
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(30.0, 60.0, n)),
            "home": rng.choice(np.array(["own", "rent", "free", "boat", None], dtype=object), n),
            "cards": rng.integers(-3, 9, n),
            "region": rng.integers(0, 6, n),
            "grade": rng.choice(np.array(["low", "mid", "top", "none"], dtype=object), n),
        }
    )


def read(model):
    """Return the encoder, the classifier, and what each encoded column is read as."""
    found = unwrap(model)
    step = found.steps[-1][1]
    columns = [Affine(j, "the table itself") for j in range(step.n_features_in_)]
    return step, found.last, walk(step, columns, "here")


def check_scores(model, rows, log_odds):
    """The two parts together say what the model says, up to rounding."""
    step, last, columns = read(model)
    made = step.transform(rows)
    values = np.asarray(made.toarray() if hasattr(made, "toarray") else made)
    assert values.shape == (len(rows), len(columns))
    if hasattr(step, "get_feature_names_out"):
        assert len(step.get_feature_names_out()) == len(columns)
    scores = np.ravel(last.decision_function(made))
    assert scores == pytest.approx(log_odds, rel=1e-10, abs=1e-10)
    again = np.concatenate(
        [np.asarray(step.transform(rows[k : k + 1])) for k in range(0, len(rows), 97)]
    )
    assert np.array_equal(again, values[::97])  # each row for itself, to the last bit


def check_columns(model, rows):
    """What is said of the columns holds: flat pieces are flat, levels have their codes."""
    step, _, columns = read(model)
    values = np.asarray(step.transform(rows), dtype=np.float64)
    names = list(rows.columns) if hasattr(rows, "columns") else None
    for j, column in enumerate(columns):
        given = rows[names[column.raw]] if names else pd.Series(rows[:, column.raw])
        if isinstance(column, Coded):
            known = dict(zip(column.levels, column.values, strict=True))
            expected = [
                column.missing if pd.isna(value) else known.get(value, column.unknown)
                for value in given
            ]
            assert np.array_equal(values[:, j], expected)
        elif isinstance(column, Bent) and column.is_flat:
            numbers = given.to_numpy(dtype=np.float64)
            pieces = np.searchsorted(np.array(column.edges), numbers)
            away = ~np.isin(numbers, [*column.edges, *column.specials])
            for piece in np.unique(pieces[away & ~np.isnan(numbers)]):
                inside = (pieces == piece) & away & ~np.isnan(numbers)
                assert len(np.unique(values[inside, j])) == 1
        elif isinstance(column, Affine):
            kept = column.shift + column.scale * given.to_numpy(dtype=np.float64)
            assert np.array_equal(values[:, j], kept)
        else:
            assert isinstance(column, Bent)


# interpret


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kinds", ["auto", "said"])
def test_boosting_is_read(seed, missing, kinds):
    table, y = people(seed, missing=missing)
    said = ["continuous", "nominal", "continuous", "nominal", "ordinal"]
    model = boosting(feature_types=said if kinds == "said" else None)
    quietly(model.fit, table, y)
    rows = strange(seed)
    check_scores(model, rows, model.decision_function(rows))
    check_columns(model, rows)
    kind = Coded if kinds == "said" else Bent
    assert {type(column) for column in read(model)[2] if column.raw == 3} == {kind}


def test_boosting_of_an_array_knows_no_names():
    table, y = people(3)
    numbers = table[["income", "cards"]].to_numpy(dtype=float)
    model = quietly(boosting().fit, numbers, y)
    step, _, _ = read(model)
    assert not hasattr(step, "feature_names_in_")
    rows = strange(3)[["income", "cards"]].to_numpy(dtype=float)
    check_scores(model, rows, model.decision_function(rows))
    check_columns(model, rows)


def test_boosting_without_a_term_for_some_columns():
    table, y = people(4)
    model = quietly(boosting(exclude=[("cards",), ("home",)]).fit, table, y)
    encoding = Encoding.of(model)
    assert set(encoding.unused) == {"cards", "home"}
    check_scores(model, table, model.decision_function(table))
    model = quietly(boosting().fit, table, y)
    model.remove_terms(["income"])
    assert set(Encoding.of(model).unused) == {"income"}
    check_scores(model, table, model.decision_function(table))


def test_boosting_edited_by_hand_is_read_as_it_is_now():
    table, y = people(5)
    model = quietly(boosting().fit, table, y)
    before = model.decision_function(table)
    model.scale("income", 0.5)
    model.reorder_classes([True, False])
    after = model.decision_function(table)
    assert np.abs(after + before).max() > 0.1
    check_scores(model, table, after)


def test_boosting_with_interactions_or_more_classes_is_refused():
    table, y = people(6)
    with pytest.raises(
        ValueError, match=r"has interactions \('.* & .*and \d+ more\).*interactions=0"
    ):
        as_model(quietly(boosting(interactions=5).fit, table, y))
    with pytest.raises(ValueError, match="has 5 classes; recourse needs exactly 2 labels"):
        as_model(quietly(boosting().fit, table, table["cards"]))
    with pytest.raises(ValueError, match="ExplainableBoostingClassifier is not fitted"):
        as_model(boosting())


def test_boosting_inside_of_wrappings():
    table, y = people(7)
    numbers = table[["income", "cards"]]
    pipeline = make_pipeline(StandardScaler(), boosting())
    search = GridSearchCV(pipeline, {"explainableboostingclassifier__max_bins": [8]}, cv=2)
    whole = FixedThresholdClassifier(search, threshold=0.7)
    quietly(whole.fit, numbers, y)
    found = unwrap(whole)
    assert [type(step).__name__ for _, step in found.steps] == ["StandardScaler", "BinColumns"]
    assert found.threshold.value == 0.7
    made = numbers
    for _, step in found.steps:
        made = step.transform(made)
    theirs = whole.estimator_.decision_function(numbers)
    assert found.last.decision_function(made) == pytest.approx(theirs, rel=1e-10)


# pygam


def numbers_of(seed, n=400):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), rng.uniform(-2, 2, n), rng.integers(0, 4, n), rng.integers(3, 6, n)]
    )
    y = np.sin(2 * X[:, 1]) + X[:, 0] + 0.5 * (X[:, 2] == 1) + 0.5 * rng.normal(size=n) > 0.2
    return X, y


def far_numbers(seed, n=2000):
    rng = np.random.default_rng(seed + 50)
    X = np.column_stack([rng.normal(0, 4, n), rng.uniform(-5, 5, n)])
    return np.column_stack([X, rng.integers(0, 4, n), rng.integers(3, 6, n)])


def gams():
    """Terms in several settings, by name."""
    s, l, f = (getattr(pytest.importorskip("pygam", reason="needs pygam"), k) for k in "slf")  # noqa: E741
    return {
        "splines": s(0) + s(1),
        "out of order": f(2) + s(1, n_splines=8) + l(0),
        "several of one column": l(1) + s(1, n_splines=6) + s(1, n_splines=9, spline_order=1),
        "steps": s(0, n_splines=5, spline_order=0) + s(1, n_splines=4, spline_order=0),
        "periodic": s(1, basis="cp", n_splines=8, lam=5.0) + f(3),
        "dummies": f(2, coding="dummy") + f(3, coding="dummy") + s(0, n_splines=5),
        "held": s(0, constraints="monotonic_inc", lam=10.0) + l(3),
    }


GAMS = [
    "splines", "out of order", "several of one column", "steps", "periodic", "dummies", "held"
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", GAMS)
def test_gam_is_read(seed, name):
    terms = gams()[name]
    X, y = numbers_of(seed)
    model = quietly(pygam().LogisticGAM(terms).fit, X, y)
    rows = far_numbers(seed)
    log_odds = model._linear_predictor(rows)
    check_scores(model, rows, log_odds)
    check_columns(model, rows)
    mine = as_model(model, favorable_class=1).origin.ask_whole(rows)
    assert mine.probability == pytest.approx(model.predict_proba(rows))
    theirs = as_model(model, favorable_class=0).origin.ask_whole(rows)
    assert theirs.probability == pytest.approx(1.0 - model.predict_proba(rows))
    assert np.array_equal(mine.accepted, model.predict(rows))


def test_gam_without_an_intercept():
    terms = gams()["splines"]
    X, y = numbers_of(9)
    model = quietly(pygam().LogisticGAM(terms, fit_intercept=False).fit, X, y)
    rows = far_numbers(9)
    assert split_additive(model)[1].intercept_ == 0.0
    check_scores(model, rows, model._linear_predictor(rows))


def test_a_linear_term_of_a_gam_is_a_number():
    """So it needs no step, and what is advised is the end of the way to the last bit."""
    s, l = pygam().s, pygam().l  # noqa: E741
    X, y = numbers_of(11)
    model = quietly(pygam().LogisticGAM(l(0) + s(1)).fit, X[:, :2], y)
    encoding = Encoding.of(model, favorable_class=1)
    assert isinstance(encoding["x0"], Number)
    assert not isinstance(encoding["x1"], Number)
    actions = ActionSet.from_data(X[:, :2], immutable=["x1"], fixed_cost=0.0)
    actions.set("x0", step=None, lower=-9.0, upper=9.0)
    recourse = RobustRecourse(
        model, robust_to=NormBall(2, 0.0), actions=actions, guarantee=0.7, favorable_class=1
    )
    people = X[:20, :2][model.predict_proba(X[:20, :2]) < 0.7]
    after = recourse.recommend(people).after().to_numpy()
    assert model.predict_proba(after) == pytest.approx(0.7, abs=1e-9)


def test_gam_that_is_no_sum_of_single_columns_is_refused():
    library = pygam()
    s, l, f, te = library.s, library.l, library.f, library.te  # noqa: E741
    X, y = numbers_of(10)
    gaps = X.copy()
    gaps[:, 2] = 2 * gaps[:, 2]
    for terms, data, reason in [
        (te(0, 1) + s(2), X, "a tensor term of columns 0 and 1"),
        (s(0, by=1) + s(1), X, "a term of column 0 by column 1"),
        (s(2, dtype="categorical", n_splines=5), X, "with dtype='categorical'.*factor"),
        (s(0, basis="cp", spline_order=0), X, "a periodic spline of column 0"),
        (f(2) + l(2) + s(0), X, r"terms of different kinds \(factor, linear\) of column 2"),
        (f(2) + s(0), gaps, "a factor of column 2 with 4 codes from 0 to 6"),
    ]:
        model = quietly(library.LogisticGAM(terms).fit, data, y)
        with pytest.raises(ValueError, match=reason):
            as_model(model, favorable_class=1)
    with pytest.raises(ValueError, match="LogisticGAM is not fitted"):
        as_model(library.LogisticGAM(), favorable_class=1)
    with pytest.raises(ValueError, match="LogisticGAM has the classes 0 and 1: say which"):
        as_model(quietly(library.LogisticGAM(s(0)).fit, X, y))


# optbinning


def scorecard(table, y, *, special=None, missing=0, **settings):
    library = optbinning()
    process = library.BinningProcess(
        list(table.columns),
        categorical_variables=["home", "grade"],
        special_codes=[-9.0] if special is not None else None,
    )
    card = library.Scorecard(process, LogisticRegression(), **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        card.fit(table, y, metric_special=special or 0, metric_missing=missing)
    return card


def filed(seed, n=400):
    """People as a lender has them: missing values, and -9 for who has no income."""
    table, y = people(seed, n, missing=True)
    table["grade"] = table["grade"].astype(object)
    table.loc[np.random.default_rng(seed).random(n) < 0.1, "income"] = -9.0
    return table, y


SCALES = {
    "none": {},
    "odds": {
        "scaling_method": "pdo_odds",
        "scaling_method_params": {"pdo": 20, "odds": 50, "scorecard_points": 600},
    },
    "range": {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("special", "missing"), [(None, 0), ("empirical", "empirical"), (0.3, -0.2)]
)
def test_scorecard_is_read(seed, special, missing):
    table, y = filed(seed)
    card = scorecard(table, y, special=special, missing=missing)
    rows = strange(seed)
    rows.loc[::7, "income"] = -9.0
    check_scores(card, rows, card.decision_function(rows))
    check_columns(card, rows)
    mine = as_model(card).origin.ask_whole(rows)
    assert mine.probability == pytest.approx(card.predict_proba(rows)[:, 1])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("intercept_based", [False, True])
def test_points_are_a_line_of_the_log_odds(scale, reverse, intercept_based):
    table, y = filed(1)
    settings = {**SCALES[scale], "reverse_scorecard": reverse, "intercept_based": intercept_based}
    card = scorecard(table, y, special=0.3, missing="empirical", **settings)
    score, log_odds = card.score(table), card.decision_function(table)
    points = points_of(card)
    up = 1.0 if scale == "none" or reverse else -1.0
    assert points.of(up * log_odds) == pytest.approx(score, rel=1e-10)
    assert points_of(card, up > 0.0) == points
    with pytest.raises(ValueError, match="count against the class"):
        points_of(card, up < 0.0)
    if scale == "odds":  # as it is written down
        assert points.factor == pytest.approx(20.0 / np.log(2.0), rel=1e-12)
        # reversed, the weights of evidence count the other way, and the intercept does not
        shift = -2.0 * points.factor * card.estimator_.intercept_[0] if reverse else 0.0
        assert points.offset == pytest.approx(600.0 - 20.0 / np.log(2.0) * np.log(50.0) + shift)


def test_points_that_are_no_line_are_refused():
    table, y = filed(2)
    card = scorecard(table, y, rounding=True, **SCALES["odds"])
    with pytest.raises(ValueError, match="rounds its points"):
        points_of(card)
    card = scorecard(table, y, **SCALES["odds"])
    with pytest.raises(ValueError, match="favorable_class = 'good'"):
        points_of(card, "good")
    card._df_scorecard.iloc[0, card._df_scorecard.columns.get_loc("Points")] += 1.0
    with pytest.raises(ValueError, match="not a linear function"):
        points_of(card)
    library = optbinning()
    unfitted = library.Scorecard(library.BinningProcess(["income"]), LogisticRegression())
    for ask in (points_of, as_model):
        with pytest.raises(ValueError, match="Scorecard is not fitted"):
            ask(unfitted)


# anybody's own


class Card:
    """Steps of one column, and a curve of another."""

    n_features_in_ = 2

    def transform(self, X):
        age, years = np.asarray(X, dtype=np.float64).T
        return np.column_stack([age >= 30, age >= 50, np.sqrt(np.maximum(years, 0.0))])

    def holdfast_rules(self):
        return [ColumnRule(edges=(30.0, 50.0), width=2), ColumnRule()]

    def get_feature_names_out(self, input_features=None):
        return np.array(["30 or more", "50 or more", "root of years"])


def test_a_model_of_ones_own():
    model = AdditiveModel(Card(), [1.0, 0.5, 0.8], -2.0, classes=("no", "yes"))
    rows = np.column_stack([np.linspace(20, 70, 500), np.linspace(-1, 20, 500)])
    check_scores(model, rows, model.decision_function(rows))
    check_columns(model, rows)
    assert np.array_equal(model.predict(rows) == "yes", model.decision_function(rows) > 0.0)
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(1.0)
    assert as_model(model, favorable_class="yes").loss == "logistic"
    with pytest.raises(ValueError, match="AdditiveModel has the classes 'no' and 'yes'"):
        as_model(model)


class Doubled:
    """It says that it keeps its column, but does not."""

    n_features_in_ = 1

    def transform(self, X):
        return 2.0 * np.asarray(X, dtype=np.float64)

    def holdfast_rules(self):
        return [ColumnRule(is_kept=True)]


def test_a_column_that_is_kept():
    with pytest.raises(ValueError, match="that keeps its column must not say anything else"):
        ColumnRule(is_kept=True, specials=iter([-1]))
    encoding = Encoding.of(AdditiveModel(Doubled(), [1.0]))
    assert encoding["x0"] == Number("x0", 0, 0.0, 1.0)
    with pytest.raises(ValueError, match="'x0' is misread: the pipeline encodes it as 6"):
        encoding.encode([[3.0]])


def test_a_model_of_ones_own_is_checked():
    with pytest.raises(TypeError, match="without a method transform"):
        AdditiveModel(object(), [1.0])
    with pytest.raises(ValueError, match=r"coef has shape \(1, 2\)"):
        AdditiveModel(Card(), [[1.0, 2.0]])
    with pytest.raises(ValueError, match="intercept = nan is not a finite number"):
        AdditiveModel(Card(), [1.0, 2.0, 3.0], np.nan)
    with pytest.raises(ValueError, match="reads 2 columns, of 3 encoded"):
        Encoding.of(AdditiveModel(Card(), [1.0, 2.0]))


def test_sets_of_models():
    table, y = small(0)
    model = quietly(boosting().fit, table, y)
    again = quietly(boosting(max_rounds=60).fit, table, y)
    models = sets.from_models([model, again], model, table)
    scores = [split_additive(each)[1].coef_ for each in (model, again)]
    assert models.models[0][0] == pytest.approx(scores[0], abs=1e-9)
    assert models.worst_score(
        split_additive(model)[0].transform(table), scores[0], model.intercept_[0]
    ) == (pytest.approx(np.minimum(model.decision_function(table), again.decision_function(table))))
    numbers = table[["income", "cards"]].to_numpy(dtype=float)
    own = AdditiveModel(Card(), [1.0, 0.5, 0.8], -2.0)
    with pytest.raises(
        ValueError, match="AdditiveModel is given by its coefficients, so it cannot be re"
    ):
        sets.bootstrap(own, numbers, y)


# recourse, against all that people could do


def small(seed, n=240):
    """People with few values each, some of them missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.integers(0, 9, n).astype(float),
            "cards": rng.integers(0, 4, n),
            "home": rng.choice(["own", "rent", "free"], n),
        }
    )
    score = 0.5 * (table["income"] - 5) - 0.6 * (table["cards"] - 1) + (table["home"] == "own")
    return table, (score + rng.normal(size=n) > 0.3).to_numpy()


def with_gaps(table, seed):
    rng = np.random.default_rng(seed)
    table = table.copy()
    table.loc[rng.random(len(table)) < 0.15, "income"] = np.nan
    table.loc[rng.random(len(table)) < 0.15, "home"] = None
    return table


@functools.cache
def fitted(kind, seed):
    """Return a small model of a kind, and people that it refuses."""
    table, y = small(seed)
    if kind in ("boosting", "scorecard"):
        table = with_gaps(table, seed)
        if kind == "boosting":
            model = quietly(boosting(max_rounds=100).fit, table, y)
        else:
            library = optbinning()
            process = library.BinningProcess(
                list(table.columns), categorical_variables=["home"], max_n_prebins=8
            )
            model = library.Scorecard(process, LogisticRegression())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(table, y, metric_missing="empirical")
        return model, table[~model.predict(table)]
    codes = table["home"].map({"own": 0, "rent": 1, "free": 2})
    numbers = pd.DataFrame({"x0": table["income"], "x1": table["cards"], "x2": codes})
    if kind == "gam":
        s, l, f = pygam().s, pygam().l, pygam().f  # noqa: E741
        model = quietly(
            pygam().LogisticGAM(s(0, n_splines=6) + f(2) + l(1)).fit, numbers.to_numpy(), y
        )
    else:
        model = AdditiveModel(Mine(), [1.2, 0.7, -0.9, 0.8, 0.1], -0.6)
    return model, numbers[~model.predict(numbers.to_numpy(dtype=float)).astype(bool)]


class Mine:
    """Steps, a curve that falls and rises, and levels."""

    n_features_in_ = 3

    def transform(self, X):
        steps, bent, level = np.asarray(X, dtype=np.float64).T
        return np.column_stack(
            [steps >= 3, steps > 6, np.sin(bent) + 0.3 * bent, level == 0, level == 1]
        ).astype(float)

    def holdfast_rules(self):
        levels = ColumnRule(levels=(0, 1, 2), width=2)
        return [ColumnRule(edges=(3.0, 6.0), width=2), ColumnRule(), levels]


def actions_of(table, encoding):
    actions = ActionSet.from_data(table, encoding=encoding)
    first, second, third = table.columns
    actions.set(first, integer=False, step=None, cost=0.31, fixed_cost=0.17)
    if not getattr(encoding[first], "is_flat", False):
        actions.set(first, step=0.5)
    actions.set(second, cost=0.4, fixed_cost=0.05)
    actions.set(third, cost=0.7)
    for name in (first, third):
        if encoding[name].takes_missing:
            actions.set(name, provide_cost=0.9)
    return actions


def candidates(person, table, encoding):
    """All that a person could become, at the nearest ends of every bin."""
    columns = []
    for name in table.columns:
        part = encoding.features.get(name)
        if part is None:
            values = [person[name]]
        elif hasattr(part, "levels"):
            values = list(part.levels)
        elif name == table.columns[0]:
            ends = [part.edges, np.nextafter(part.edges, -np.inf), np.nextafter(part.edges, np.inf)]
            grid = np.concatenate([np.arange(0.0, 8.5, 0.5), *ends])
            values = [value for value in np.unique(grid) if 0.0 <= value <= 8.0]
        else:
            values = [0, 1, 2, 3]
        columns.append(list(dict.fromkeys([person[name], *values])))
    found = pd.DataFrame(list(itertools.product(*columns)), columns=table.columns)
    return found.astype(table.dtypes.to_dict())


@pytest.mark.parametrize("kind", ["boosting", "gam", "scorecard", "own"])
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("mode", [{"guarantee": 0.6}, {"cost_weight": 0.5}])
def test_nothing_that_people_could_do_is_better(kind, p, mode):
    ball = NormBall(p, 0.05)
    found = moved = 0
    for seed in (0, 1):
        model, denied = fitted(kind, seed)
        label = {"gam": 1}.get(kind, True)
        encoding = Encoding.of(model, favorable_class=label)
        actions = actions_of(denied, encoding)
        people = denied.iloc[:5]
        recourse = RobustRecourse(
            model, robust_to=ball, actions=actions, favorable_class=label, n_jobs=1, **mode
        )
        result = recourse.recommend(people)
        step, last = split_additive(model)
        coef, intercept = np.ravel(last.coef_), float(np.ravel(last.intercept_)[0])
        named = hasattr(step, "feature_names_in_")

        def worst(rows, step=step, coef=coef, intercept=intercept, named=named):
            made = step.transform(rows if named else rows.to_numpy(dtype=float))
            return ball.worst_score(np.asarray(made, dtype=float), coef, intercept)

        for k, i in enumerate(people.index):
            person = people.loc[i]
            table = candidates(person, people, encoding)
            allowed = [not check(actions, person, row) for _, row in table.iterrows()]
            table = table[allowed]
            costs = np.array([raw_cost(actions, person, row) for _, row in table.iterrows()])
            scores = worst(table)
            if "guarantee" in mode:
                safe = scores >= np.log(0.6 / 0.4)
                best = costs[safe].min(initial=np.inf)
            else:
                best = (np.logaddexp(0.0, -scores) + 0.5 * costs).min()
            ways = result.ways(i)
            if not ways:
                assert best == np.inf
                assert result.status[k].is_proven
                continue
            found += 1
            after = result.after().loc[[i]]
            assert check(actions, person, after.loc[i]) == []
            cost = raw_cost(actions, person, after.loc[i])
            moved += cost > 0.0
            assert ways[0].cost == pytest.approx(cost, rel=1e-9)
            if "guarantee" in mode:
                assert worst(after)[0] >= np.log(0.6 / 0.4) - 1e-12
                assert cost == pytest.approx(best, rel=1e-9)
            else:
                price = float(np.logaddexp(0.0, -worst(after)[0])) + 0.5 * cost
                assert price == pytest.approx(best, rel=1e-9)
    assert found >= 6
    assert moved >= 4
