"""Sets made from a fitted model and its data, or from other models, in today's columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import holdfast
from holdfast import sets
from holdfast.models.encoding import Encoding
from holdfast.sets.from_data import covariance_of
from holdfast.sets.space import Space

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "income": RNG.normal(40.0, 12.0, N).round(1),
        "debt": RNG.normal(10.0, 5.0, N).round(1),
        "home": RNG.choice(["own", "rent", "free"], N, p=[0.5, 0.3, 0.2]),
    }
)
_SCORE = (
    (TABLE["income"] - 40) / 12 - (TABLE["debt"] - 10) / 5 + 0.8 * (TABLE["home"] == "own") - 0.3
)
PAID = (_SCORE + RNG.logistic(size=N) > 0).to_numpy()
X = TABLE[["income", "debt"]].to_numpy()


def pipeline(scaler=None, last=None, **options):
    columns = make_column_transformer(
        (scaler or StandardScaler(), ["income", "debt"]), (OneHotEncoder(**options), ["home"])
    )
    return make_pipeline(columns, last or LogisticRegression(max_iter=1000))


MODEL = pipeline().fit(TABLE, PAID)


def sparse_logistic():
    """With an L1 penalty, as this version of scikit-learn wants it said."""
    if LogisticRegression().penalty == "l2":
        return LogisticRegression(penalty="l1", solver="liblinear")
    return LogisticRegression(l1_ratio=1.0, solver="liblinear")


def loss_of(theta, rows, labels, ridge):
    """Mean training loss with its penalty, written out for itself."""
    score = rows @ theta
    return np.mean(np.logaddexp(0.0, -np.where(labels, 1.0, -1.0) * score)) + 0.5 * np.sum(
        ridge * theta**2
    ) / len(rows)


def numeric_hessian(theta, rows, labels, ridge, step=1e-4):
    d = len(theta)
    result = np.empty((d, d))
    unit = step * np.eye(d)
    for i in range(d):
        for j in range(d):
            values = [
                loss_of(theta + a * unit[i] + b * unit[j], rows, labels, ridge)
                for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
            ]
            result[i, j] = (values[0] - values[1] - values[2] + values[3]) / (4 * step**2)
    return result


@pytest.mark.parametrize(
    ("last", "ridge"),
    [
        (LogisticRegression(C=0.5, tol=1e-8), [2.0, 2.0, 0.0]),
        (LogisticRegression(C=np.inf, tol=1e-8), [0.0, 0.0, 0.0]),
        (
            LogisticRegression(C=0.5, solver="liblinear", intercept_scaling=2.0, tol=1e-10),
            [2.0, 2.0, 0.5],
        ),
    ],
)
def test_fisher_and_rashomon_are_the_curvature_of_the_training_loss(last, ridge):
    points = StandardScaler().fit_transform(X)
    model = last.fit(points, PAID)
    rows = np.column_stack([points, np.ones(N)])
    theta = np.append(model.coef_[0], model.intercept_)
    hessian = numeric_hessian(theta, rows, PAID, np.array(ridge))
    found = sets.fisher(model, points, radius=1.5)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(N * hessian), rtol=1e-4)
    assert (found.radius, found.intercept) == (1.5, True)
    almost = sets.rashomon(model, points, PAID, loss_increase=0.02)
    np.testing.assert_allclose(almost.covariance, np.linalg.inv(hessian), rtol=1e-4)
    assert almost.radius == pytest.approx(np.sqrt(0.04))


def test_models_at_the_edge_of_the_rashomon_set_lose_what_was_said():
    points = StandardScaler().fit_transform(X)
    model = LogisticRegression(tol=1e-10).fit(points, PAID)
    found = sets.rashomon(model, points, PAID, loss_increase=0.002)
    rows, ridge = np.column_stack([points, np.ones(N)]), np.array([1.0, 1.0, 0.0])
    theta = np.append(model.coef_[0], model.intercept_)
    coef, intercept = found.worst_model(points[:50], model.coef_[0], model.intercept_[0])
    edge = np.column_stack([coef, intercept])
    increase = [
        loss_of(each, rows, PAID, ridge) - loss_of(theta, rows, PAID, ridge) for each in edge
    ]
    np.testing.assert_allclose(increase, 0.002, rtol=0.1)


def test_the_sandwich_is_its_formula():
    points = StandardScaler().fit_transform(X)
    weight = {False: 2.0, True: 0.5}
    model = LogisticRegression(C=0.5, class_weight=weight, tol=1e-8).fit(points, PAID)
    rows = np.column_stack([points, np.ones(N)])
    p = expit(model.decision_function(points))
    w = np.where(PAID, 0.5, 2.0)
    hessian = (rows * (w * p * (1 - p))[:, None]).T @ rows + np.diag([2.0, 2.0, 0.0])
    gradients = rows * (w * (p - PAID))[:, None]
    bread = np.linalg.inv(hessian)
    expected = bread @ gradients.T @ gradients @ bread
    np.testing.assert_allclose(sets.sandwich(model, points, PAID).covariance, expected, rtol=1e-7)
    balanced = LogisticRegression(class_weight="balanced").fit(points, PAID)
    assert np.isfinite(sets.sandwich(balanced, points, PAID).covariance).all()


@pytest.mark.parametrize("model", [MODEL, pipeline(last=LinearSVC()).fit(TABLE, PAID)])
def test_sandwich_and_bootstrap_agree(model):
    """Two roads to the same covariance, felt by people: by a formula, and by retraining."""
    encoded = model[0].transform(TABLE)
    rows = np.column_stack([encoded, np.ones(N)])
    formula = sets.sandwich(model, TABLE, PAID).covariance
    refits = sets.bootstrap(model, TABLE, PAID, n_models=150).covariance
    felt = [np.sqrt(np.einsum("ij,jk,ik->i", rows, each, rows)) for each in (formula, refits)]
    assert 0.8 < np.median(felt[1] / felt[0]) < 1.25


def test_nobody_feels_what_cannot_be_told_apart():
    """One-hot columns and an intercept are one too many; no model moves along them."""
    direction = np.array([0.0, 0.0, 1.0, 1.0, 1.0, -1.0])
    for made in (
        sets.fisher(MODEL, TABLE),
        sets.sandwich(MODEL, TABLE, PAID),
        sets.bootstrap(MODEL, TABLE, PAID, n_models=30),
        sets.fisher(pipeline(last=LogisticRegression(C=np.inf)).fit(TABLE, PAID), TABLE),
    ):
        rows = np.column_stack([MODEL[0].transform(TABLE), np.ones(N)])
        assert np.abs(rows @ direction).max() < 1e-12
        block = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])  # the sum of a block never changes
        assert block @ made.covariance @ block < 1e-10


def test_a_model_without_an_intercept_and_one_that_is_held():
    points = StandardScaler().fit_transform(X)
    without = LogisticRegression(fit_intercept=False).fit(points, PAID)
    assert not sets.fisher(without, points).intercept
    model = LogisticRegression().fit(points, PAID)
    held = sets.fisher(model, points, intercept=False)
    assert held.covariance.shape == (2, 2)
    free = sets.fisher(model, points).covariance[:2, :2]
    assert (np.diag(held.covariance) <= np.diag(free) + 1e-12).all()


def test_the_favourable_class_turns_nothing_but_signs():
    points = StandardScaler().fit_transform(X)
    model = LogisticRegression().fit(points, PAID.astype(int))
    a, b = (sets.fisher(model, points, favorable_class=k).covariance for k in (0, 1))
    np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (sparse_logistic(), r"fitted with (l1_ratio=1|penalty='l1'): this penalty has a kink at 0"),
        (LogisticRegression(class_weight="balanced"), "use sandwich, which takes y"),
        (RidgeClassifier(), "a loss that Holdfast does not know; fit a LogisticRegression$"),
        (LinearSVC(), "has no likelihood"),
        (LinearSVC(loss="hinge"), "hinge loss, which cannot be differentiated twice"),
        (LinearDiscriminantAnalysis(), "is not fitted by minimising a loss"),
        (SGDClassifier(loss="log_loss", penalty="l1"), "with penalty='l1': .* a kink at 0"),
        (DecisionTreeClassifier(), "is not linear in its score"),
    ],
)
def test_what_has_no_fisher_information_is_refused(last, said):
    model = make_pipeline(StandardScaler(), last).fit(X, PAID)
    with pytest.raises(ValueError, match=said):
        sets.fisher(model, X)


def test_other_logistic_regressions_are_taken():
    many = LogisticRegressionCV(Cs=[0.5], cv=3, scoring="accuracy")
    points = StandardScaler().fit_transform(X)
    found = sets.fisher(many.fit(points, PAID), points).covariance
    one = sets.fisher(LogisticRegression(C=0.5).fit(points, PAID), points).covariance
    np.testing.assert_allclose(found, one, rtol=1e-2)
    sgd = SGDClassifier(loss="log_loss", alpha=2.0 / N, random_state=0).fit(points, PAID)
    np.testing.assert_allclose(sets.fisher(sgd, points).covariance, one, rtol=0.3, atol=1e-3)


def test_data_that_do_not_determine_the_model_are_refused():
    twice = np.column_stack([X[:, 0], X[:, 0]])
    model = LogisticRegression(C=np.inf).fit(twice, PAID)
    with pytest.raises(ValueError, match="do not determine all coefficients"):
        sets.fisher(model, twice)


def test_a_model_that_is_not_at_its_minimum_is_no_centre():
    points = StandardScaler().fit_transform(X)
    model = LogisticRegression().fit(points, PAID)
    with pytest.raises(ValueError, match="not at the minimum of its training loss"):
        sets.rashomon(model, points, ~PAID, loss_increase=0.01)


# --- translation ---


@pytest.mark.parametrize(
    "other",
    [
        pipeline(MinMaxScaler()),
        pipeline(RobustScaler(), drop="first"),
        pipeline(handle_unknown="ignore"),
        make_pipeline(pipeline(MinMaxScaler())[0], StandardScaler(), LogisticRegression()),
    ],
)
def test_other_scalers_and_encoders_are_translated_exactly(other):
    other.fit(TABLE[:250], PAID[:250])
    vector = Space.of(MODEL, TABLE, None).translate("it", other)
    ours = MODEL[0].transform(TABLE) @ vector[:-1] + vector[-1]
    np.testing.assert_allclose(ours, other.decision_function(TABLE), rtol=1e-9, atol=1e-9)


def test_todays_model_is_its_own_translation():
    space = Space.of(MODEL, TABLE, None)
    np.testing.assert_allclose(space.translate("it", MODEL), space.vector, rtol=1e-12, atol=1e-12)


def test_columns_that_go_together_in_the_data_are_told_apart():
    """Only a change of one alone shows which of the two a model reads."""
    table = pd.DataFrame({"a": X[:, 0], "b": 2.0 * X[:, 0]})
    space = Space.of(LogisticRegression().fit(table, PAID), table, None)
    only = make_pipeline(
        make_column_transformer((StandardScaler(), ["b"]), ("drop", ["a"])), LogisticRegression()
    ).fit(table, PAID)
    vector = space.translate("it", only)
    assert abs(vector[0]) < 1e-9 < vector[1]


def test_a_missing_level_with_unknowns_ignored_is_a_zero():
    few = TABLE[TABLE["home"] != "free"]
    other = pipeline(handle_unknown="ignore").fit(few, PAID[few.index])
    vector = Space.of(MODEL, TABLE, None).translate("it", other)
    ours = MODEL[0].transform(TABLE) @ vector[:-1] + vector[-1]
    np.testing.assert_allclose(ours, other.decision_function(TABLE), atol=1e-9)


def other_models():
    few = TABLE[TABLE["home"] != "free"]
    columns = make_column_transformer(
        (FunctionTransformer(np.square), ["income", "debt"]), (OneHotEncoder(), ["home"])
    )
    wider = TABLE.assign(age=RNG.normal(size=N))
    return {
        "squared": (
            make_pipeline(columns, LogisticRegression(max_iter=5000)).fit(TABLE, PAID),
            r"models\[1\] is not a linear function",
        ),
        "levels": (pipeline().fit(few, PAID[few.index]), r"models\[1\]: .*unknown categories"),
        "columns": (
            make_pipeline(
                make_column_transformer((StandardScaler(), ["income", "age"])), LogisticRegression()
            ).fit(wider, PAID),
            r"models\[1\]: .*age",
        ),
        "classes": (pipeline().fit(TABLE, PAID.astype(int)), r"models\[1\]: .*classes"),
        "loss": (pipeline(last=LinearSVC()).fit(TABLE, PAID), r"models\[1\] .*squared_hinge"),
    }


@pytest.mark.parametrize("name", ["squared", "levels", "columns", "classes", "loss"])
def test_what_cannot_be_compared_is_refused_by_its_position(name):
    other, said = other_models()[name]
    with pytest.raises(ValueError, match=said):
        sets.from_models([MODEL, other], MODEL, TABLE)


def test_another_meaning_of_a_category_is_no_linear_function_of_its_code():
    """Today a number for each level, before a column for each: one cannot say the other."""
    from sklearn.preprocessing import OrdinalEncoder

    today = make_pipeline(
        make_column_transformer((StandardScaler(), ["income"]), (OrdinalEncoder(), ["home"])),
        LogisticRegression(),
    ).fit(TABLE, PAID)
    before = make_pipeline(
        make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["home"])),
        LogisticRegression(),
    ).fit(TABLE, PAID)
    with pytest.raises(ValueError, match=r"models\[0\] is not a linear function .* up to 0\.\d+"):
        sets.from_models([before], today, TABLE)
    assert sets.from_models([today], before, TABLE).coefs.shape == (1, 4)


def test_cutoffs_become_todays():
    thresholds = pytest.importorskip("sklearn.model_selection")
    if not hasattr(thresholds, "FixedThresholdClassifier"):
        pytest.skip("before scikit-learn 1.5")
    strict = thresholds.FixedThresholdClassifier(pipeline(), threshold=0.8).fit(TABLE, PAID)
    space = Space.of(MODEL, TABLE, None)
    vector = space.translate("it", strict)
    ours = MODEL[0].transform(TABLE) @ vector[:-1] + vector[-1] >= space.today.cutoff
    np.testing.assert_array_equal(ours, strict.predict(TABLE))
    margin = thresholds.FixedThresholdClassifier(
        pipeline(last=LinearSVC()), threshold=0.4, response_method="decision_function"
    ).fit(TABLE, PAID)
    plain = pipeline(last=LinearSVC()).fit(TABLE, PAID)
    vector = Space.of(plain, TABLE, None).translate("it", margin)
    ours = plain[0].transform(TABLE) @ vector[:-1] + vector[-1] >= 0.0
    np.testing.assert_array_equal(ours, margin.predict(TABLE))


# --- sets of models ---


def test_a_list_of_models_is_withstood():
    past = [pipeline(MinMaxScaler()).fit(TABLE[k:][:150], PAID[k:][:150]) for k in (0, 100, 200)]
    known = sets.from_models(past, MODEL, TABLE)
    today = MODEL[-1]
    encoded = MODEL[0].transform(TABLE)
    worst = known.worst_score(encoded, today.coef_[0], today.intercept_[0])
    expected = np.min([m.decision_function(TABLE) for m in [MODEL, *past]], axis=0)
    np.testing.assert_allclose(worst, expected, atol=1e-9)


def test_an_ellipsoid_around_todays_model_has_the_size_of_the_changes():
    past = [
        pipeline(MinMaxScaler()).fit(TABLE[k:][:150], PAID[k:][:150]) for k in range(0, 250, 25)
    ]
    space = Space.of(MODEL, TABLE, None)
    vectors = np.array([space.translate("it", each) for each in past])
    made = sets.ellipsoid_from_models(past, MODEL, TABLE, radius=1.0)
    size = np.sqrt(np.mean((vectors - space.vector) ** 2, axis=0))
    np.testing.assert_allclose(np.sqrt(np.diag(made.covariance))[:2], size[:2], rtol=1e-6)
    with pytest.raises(ValueError, match="a single model has no spread"):
        sets.ellipsoid_from_models(past[:1], MODEL, TABLE)


def test_the_shrunk_covariance_finds_the_true_one():
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(5, 5)) * [1.0, 10.0, 0.1, 1.0, 0.0]
    truth = mix.T @ mix
    found = covariance_of(rng.normal(size=(4000, 5)) @ mix)
    size = np.sqrt(np.diag(truth)) + 1e-300
    np.testing.assert_allclose(found / size / size[:, None], truth / size / size[:, None], atol=0.1)
    assert not found[4].any()
    few = covariance_of(rng.normal(size=(4, 5)) @ mix)
    assert np.linalg.matrix_rank(few) == 4  # four models have three directions: the rest is said


def test_the_bootstrap_refits_the_whole_pipeline():
    """With the encoders refitted the scale of a column moves too; behind one model it does not."""
    table = TABLE.assign(income=np.where(np.arange(N) == 0, 4000.0, TABLE["income"]))
    model = pipeline().fit(table, PAID)
    whole = sets.bootstrap(model, table, PAID, n_models=40).covariance[0, 0]
    encoded = model[0].transform(table)
    last = sets.bootstrap(LogisticRegression().fit(encoded, PAID), encoded, PAID, n_models=40)
    assert whole != pytest.approx(last.covariance[0, 0], rel=0.2)


def test_the_same_seed_gives_the_same_set():
    a, b, c = (
        sets.bootstrap(MODEL, TABLE, PAID, n_models=12, random_state=seed).covariance
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_rare_level_is_drawn_again_and_one_that_never_comes_is_said():
    table = TABLE.copy()
    table.loc[:1, "home"] = "tent"  # two rows: one resample in seven has none of them
    model = pipeline().fit(table, PAID)
    assert sets.bootstrap(model, table, PAID, n_models=10).covariance.shape == (7, 7)
    many = table.assign(home=[f"h{k}" if k < 30 else "own" for k in range(N)])
    with pytest.raises(ValueError, match="Resamples often lack a rare category"):
        sets.bootstrap(pipeline().fit(many, PAID), many, PAID, n_models=10)


def test_what_cannot_be_retrained_is_refused():
    with pytest.raises(ValueError, match="cannot be retrained"):
        sets.bootstrap(([1.0, -1.0], 0.0), X, PAID, n_models=10)
    with pytest.raises(ValueError, match="does not say how it was fitted"):
        sets.fisher(([1.0, -1.0], 0.0), X)


def test_sets_are_taken_by_solve():
    encoded = MODEL[0].transform(TABLE)
    denied = encoded[~MODEL.predict(TABLE)][:20]
    today = MODEL[-1]
    made = sets.fisher(MODEL, TABLE, radius=1.0)
    result = holdfast.solve(
        denied, today.coef_[0], today.intercept_[0], robust_to=made, guarantee=0.5
    )
    assert (result.worst_case_validity > 0.5 - 1e-9).all()
    assert (result.current_validity > 0.5).all()


BASE = pd.DataFrame(
    {
        "a": np.random.default_rng(3).normal(size=200).round(2),
        "o": np.random.default_rng(4).random(200) < 0.4,
        "k": np.random.default_rng(5).integers(0, 5, 200),
        "c": np.random.default_rng(6).choice(list("xyz"), 200),
    }
)
FILLED = make_pipeline(SimpleImputer(strategy="most_frequent"), StandardScaler())
TYPED = {
    "booleans": ({}, []),
    "nullable booleans": ({"o": "boolean"}, []),
    "nullable booleans with gaps": ({"o": "boolean"}, ["o"]),
    "nullable whole numbers with gaps": ({"k": "Int16"}, ["k"]),
    "narrow whole numbers": ({"k": "int8"}, []),
    "categories": ({"c": "category"}, []),
    "arrow": ({"k": "int64[pyarrow]", "o": "bool[pyarrow]", "c": "string[pyarrow]"}, ["k"]),
}


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("name", TYPED)
def test_what_the_model_takes_a_set_takes_too(name, coded):
    """Tables of any types: fisher and RobustRecourse take those that the model itself takes."""
    types, gaps = TYPED[name]
    table = BASE.astype(types)
    for column in gaps:
        table[column] = table[column].mask(table.index < 6)
    parts = [(FILLED, ["a", "k"]), (OneHotEncoder(), ["c"])]
    plain = FILLED if "o" in gaps else "passthrough"  # an imputer takes no plain booleans
    parts.append((OneHotEncoder() if coded else plain, ["o"]))
    model = make_pipeline(make_column_transformer(*parts), LogisticRegression())
    good = BASE["a"] + BASE["o"] + np.random.default_rng(7).normal(size=200) > 0.3
    model.fit(table, good)
    same = holdfast.sets.fisher(model, table.astype({"a": "float64"}))
    assert np.isfinite(same.covariance).all()
    recourse = holdfast.RobustRecourse(
        model,
        robust_to=same,
        actions=holdfast.ActionSet.from_data(table, encoding=Encoding.of(model)),
        guarantee=0.5,
    )
    frame = recourse.recommend(table).to_frame()
    np.testing.assert_allclose(
        frame["initial_validity"], model.predict_proba(table)[:, 1], atol=1e-9
    )
    assert set(frame["status"]) <= {"optimal", "already valid", "infeasible"}
