"""What is read out of a model is compared with the model itself; nothing is guessed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from holdfast import ActionSet, NormBall, RobustRecourse, Status, calibrate, find_recourse
from holdfast.models import as_model

RNG = np.random.default_rng(11)
N = 300
PEOPLE = pd.DataFrame(
    {
        "income": RNG.normal(40.0, 12.0, N).round(1),
        "debt": RNG.normal(10.0, 5.0, N).round(1),
        "months": RNG.integers(1, 60, N),
    },
    index=[f"p{i}" for i in range(N)],
)
_RISK = (PEOPLE["debt"] - 10) / 5 + (PEOPLE["months"] - 30) / 30 - (PEOPLE["income"] - 40) / 12
DEFAULT = (_RISK + RNG.logistic(size=N) > 0).astype(int)  # 1 means default, as in credit
BALL = NormBall(1, 0.02)
ACTIONS = ActionSet.from_data(PEOPLE)


def plain() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression())


class Derived(Pipeline):
    """A pipeline of somebody else's class, as imbalanced-learn's is."""


class Louder(Pipeline):
    """A pipeline that does more than its steps do."""

    def decision_function(self, X):
        return super().decision_function(X) + 1.0

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-self.decision_function(X)))
        return np.column_stack([1.0 - p, p])

    def predict(self, X):
        return (self.decision_function(X) > 0).astype(int)


class Shifted(LogisticRegression):
    """A linear classifier whose coefficients are not the whole of its score (as of gblinear)."""

    def decision_function(self, X):
        return super().decision_function(X) + 0.5


def refused(model) -> pd.DataFrame:
    return PEOPLE[model.predict(PEOPLE) == 1]


def wrapped() -> dict[str, object]:
    def fit(model):
        return model.fit(PEOPLE, DEFAULT)

    result = {
        "pipeline": fit(plain()),
        "derived": fit(Derived([("scale", StandardScaler()), ("logit", LogisticRegression())])),
        "nested": fit(make_pipeline(Derived([("scale", StandardScaler())]), LogisticRegression())),
        "grid": fit(GridSearchCV(plain(), {"logisticregression__C": [0.1, 1.0]}, cv=3)),
        "random": fit(RandomizedSearchCV(plain(), {"logisticregression__C": [0.5]}, n_iter=1)),
    }
    try:
        from sklearn.frozen import FrozenEstimator

        result["frozen"] = FrozenEstimator(fit(plain()))
        result["frozen step"] = make_pipeline(
            FrozenEstimator(StandardScaler().fit(PEOPLE)), LogisticRegression()
        ).fit(PEOPLE, DEFAULT)
    except ImportError:  # before scikit-learn 1.6
        pass
    return result


WRAPPED = wrapped()


@pytest.mark.parametrize("name", list(WRAPPED))
def test_wrappings_are_opened_the_same_way_in_every_door(name):
    model = WRAPPED[name]
    people = refused(model)
    found = find_recourse(people, model, favorable_class=0, robust_to=BALL, guarantee=0.6)
    assert (found.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(found.initial_validity, model.predict_proba(people)[:, 0])
    advice = RobustRecourse(
        model, favorable_class=0, robust_to=BALL, actions=ACTIONS, guarantee=0.6
    ).recommend(people)
    after = advice.after()
    assert len(after) > 0.9 * len(people)
    assert (model.predict_proba(after)[:, 0] >= 0.6).all()
    asked = {"survival": 0.7, "confidence": 0.5, "n_models": 20, "families": ["l2"]}
    sizing = calibrate(model, PEOPLE, DEFAULT, favorable_class=0, **asked)
    assert 0.0 < sizing.best.radius < 2.0


def test_imbalanced_pipelines_keep_their_encoder():
    samplers = pytest.importorskip("imblearn.over_sampling")
    pipelines = pytest.importorskip("imblearn.pipeline")
    steps = [
        ("scale", StandardScaler()),
        ("sample", samplers.RandomOverSampler(random_state=0)),
        ("logit", LogisticRegression()),
    ]
    model = pipelines.Pipeline(steps).fit(PEOPLE, DEFAULT)
    people = refused(model)
    found = find_recourse(people, model, favorable_class=0, robust_to=BALL, guarantee=0.6)
    assert (found.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(found.initial_validity, model.predict_proba(people)[:, 0])


def doors(model, **arguments):
    """Call every door; each must raise."""
    goal = {"favorable_class": 0, "robust_to": BALL, "guarantee": 0.6, **arguments}
    yield lambda: find_recourse(PEOPLE, model, **goal)
    yield lambda: RobustRecourse(model, actions=ACTIONS, **goal).recommend(PEOPLE)
    if not arguments:
        yield lambda: calibrate(model, PEOPLE, DEFAULT, n_models=20, favorable_class=0)


@pytest.mark.parametrize(
    ("model", "culprit"),
    [
        (
            Louder([("scale", StandardScaler()), ("logit", LogisticRegression())]),
            "Louder, which does more than its steps do",
        ),
        (make_pipeline(StandardScaler(), Shifted()), "step 'shifted': Shifted"),
        (Shifted(), "Shifted"),
    ],
)
def test_a_misread_model_is_an_error_that_names_row_figures_and_step(model, culprit):
    model.fit(PEOPLE, DEFAULT)
    for door in doors(model):
        with pytest.raises(ValueError, match=r"row 'p\d+': the model itself gives a") as caught:
            door()
        assert f"Not accounted for: {culprit}" in str(caught.value)


def test_a_booster_of_linear_terms_is_compared():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(booster="gblinear", base_score=0.2).fit(PEOPLE, DEFAULT)
    for door in doors(model, loss="logistic"):
        with pytest.raises(ValueError, match="Not accounted for: XGBClassifier"):
            door()


def test_two_classes_fitted_as_multinomial_have_twice_the_log_odds():
    """As scikit-learn before 1.7 does for multi_class="multinomial"."""

    class Multinomial(LogisticRegression):
        def predict_proba(self, X):
            p = 1.0 / (1.0 + np.exp(-2.0 * self.decision_function(X)))
            return np.column_stack([1.0 - p, p])

    model = make_pipeline(StandardScaler(), Multinomial()).fit(PEOPLE, DEFAULT)
    model[-1].multi_class = "multinomial"  # which later releases have no setting for
    people = refused(model)
    found = find_recourse(people, model, favorable_class=0, robust_to=BALL, guarantee=0.7)
    points = found.recourse.to_numpy()
    assert (model[-1].predict_proba(points)[:, 0] >= 0.7).all()
    np.testing.assert_allclose(found.current_validity, model[-1].predict_proba(points)[:, 0])


@pytest.mark.parametrize("kind", [Perceptron, Ridge])
def test_models_without_a_loss_of_ours_are_refused_by_name(kind):
    model = make_pipeline(StandardScaler(), kind()).fit(PEOPLE, DEFAULT)
    for door in doors(model):
        with pytest.raises((TypeError, ValueError), match=kind.__name__):
            door()


def test_a_search_that_was_not_refitted_says_so():
    search = GridSearchCV(plain(), {"logisticregression__C": [1.0]}, refit=False)
    with pytest.raises(ValueError, match="GridSearchCV has no best_estimator_: fit it"):
        as_model(search.fit(PEOPLE, DEFAULT), favorable_class=0)


# --- thresholds ---


def with_threshold(**settings):
    selection = pytest.importorskip("sklearn.model_selection")
    if not hasattr(selection, "FixedThresholdClassifier"):
        pytest.skip("scikit-learn before 1.5 has no thresholds")
    inner = settings.pop("inner", plain())
    return selection.FixedThresholdClassifier(inner, **settings).fit(PEOPLE, DEFAULT)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("positive", [None, 0, 1])
@pytest.mark.parametrize(
    ("method", "threshold"),
    [("predict_proba", 0.3), ("predict_proba", 0.62), ("decision_function", -0.4)],
)
def test_a_threshold_becomes_the_cutoff(favorable, positive, method, threshold):
    model = with_threshold(threshold=threshold, pos_label=positive, response_method=method)
    adapted = as_model(model, favorable_class=favorable)
    score = adapted.score(adapted.encode(PEOPLE))
    accepted = model.predict(PEOPLE) == favorable
    np.testing.assert_array_equal(score >= adapted.cutoff, accepted)
    least = 1.0 / (1.0 + np.exp(-adapted.cutoff))
    people = PEOPLE[~accepted]
    if least > 0.2:
        with pytest.raises(ValueError, match="below the model's own threshold") as refused:
            find_recourse(
                people, model, favorable_class=favorable, robust_to=BALL, guarantee=0.9 * least
            )
        said = float(re.search(r"a probability of ([\d.]+),", str(refused.value))[1])
        assert said == pytest.approx(least, abs=1e-6)
        find_recourse(people, model, favorable_class=favorable, robust_to=BALL, guarantee=said)
    advice = RobustRecourse(
        model, favorable_class=favorable, robust_to=BALL, actions=ACTIONS, guarantee=least + 0.01
    ).recommend(people)
    assert (model.predict(advice.after()) == favorable).all()


def test_who_is_still_refused_is_said_by_the_threshold():
    model = with_threshold(threshold=0.2)
    people = refused(model)
    shares = []
    for weight in (0.4, 0.02):
        found = find_recourse(people, model, favorable_class=0, robust_to=BALL, cost_weight=weight)
        after = model.estimator_[-1].predict_proba(found.recourse.to_numpy())[:, 0]
        still = found.status == Status.STILL_REFUSED
        np.testing.assert_array_equal(still, after <= 0.8)
        shares.append(still.mean())
    assert shares[0] > 0.5 > shares[1]


def test_a_threshold_on_a_margin_moves_the_margin():
    model = with_threshold(inner=make_pipeline(StandardScaler(), LinearSVC()), threshold=0.3)
    people = refused(model)
    advice = RobustRecourse(
        model, favorable_class=0, robust_to=BALL, actions=ACTIONS, guarantee=0.5
    ).recommend(people)
    assert (model.predict(advice.after()) == 0).all()


# --- the favourable class ---


def test_the_favourable_class_must_be_said():
    model = plain().fit(PEOPLE, DEFAULT)
    denied = int((model.predict(PEOPLE) == 1).sum())
    for door in (
        lambda: find_recourse(PEOPLE, model, robust_to=BALL, guarantee=0.6),
        lambda: RobustRecourse(model, robust_to=BALL, actions=ACTIONS, guarantee=0.6).recommend(
            PEOPLE
        ),
        lambda: calibrate(model, PEOPLE, DEFAULT),
    ):
        with pytest.raises(ValueError, match="say which of them people want") as caught:
            door()
        assert f"0 (which it gives to {N - denied} of the {N} people)" in str(caught.value)
        assert f"1 (to {denied} of them)" in str(caught.value)
        assert "favorable_class=0 or favorable_class=1" in str(caught.value)


def test_true_is_the_favourable_one_of_true_and_false():
    approved = plain().fit(PEOPLE, DEFAULT == 0)
    a = find_recourse(PEOPLE, approved, robust_to=BALL, guarantee=0.6)
    b = find_recourse(
        PEOPLE, plain().fit(PEOPLE, DEFAULT), favorable_class=0, robust_to=BALL, guarantee=0.6
    )
    np.testing.assert_allclose(a.cost, b.cost, rtol=1e-6)
    with pytest.raises(
        ValueError, match="favorable_class = True is not one of the classes 0 and 1"
    ):
        as_model(plain().fit(PEOPLE, DEFAULT), favorable_class=True)
    with pytest.raises(ValueError, match="favorable_class = '0' is not one of the classes"):
        as_model(plain().fit(PEOPLE, DEFAULT), favorable_class="0")


class WithoutClasses(ClassifierMixin):
    """Probabilities without classes."""

    def predict_proba(self, X):
        p = 1.0 / (1.0 + np.exp(-np.asarray(X)[:, 0]))
        return np.column_stack([1.0 - p, p])


def test_probabilities_without_classes_must_be_named_too():
    with pytest.raises(ValueError, match="favorable_class=0 or favorable_class=1"):
        as_model(WithoutClasses())


# --- models that are not linear ---

CURVED = {
    "polynomials": make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()),
    "bins": make_pipeline(KBinsDiscretizer(5), LogisticRegression()),
    "ordinal bins": make_pipeline(KBinsDiscretizer(5, encode="ordinal"), LogisticRegression()),
    "splines": make_pipeline(SplineTransformer(), LogisticRegression()),
    "logarithms": make_pipeline(
        FunctionTransformer(np.cbrt), StandardScaler(), LogisticRegression()
    ),
    "twice": make_pipeline(
        ColumnTransformer(
            [
                ("scaled", StandardScaler(), ["income", "debt", "months"]),
                ("squared", PolynomialFeatures(2, include_bias=False), ["income"]),
            ]
        ),
        StandardScaler(),
        LogisticRegression(),
    ),
    "margin": make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearSVC()),
    "kernel": make_pipeline(StandardScaler(), SVC()),
    "trees": GradientBoostingClassifier(random_state=0),
    "forest": make_pipeline(StandardScaler(), RandomForestClassifier(random_state=0)),
}


@pytest.mark.parametrize("name", list(CURVED))
@pytest.mark.parametrize("goal", [{"guarantee": 0.5}, {"cost_weight": 0.02}])
def test_points_live_in_columns_that_people_can_set_and_the_model_judges(name, goal):
    model = CURVED[name].fit(PEOPLE, DEFAULT)
    people = PEOPLE[model.predict(PEOPLE) == 1][:40]
    found = find_recourse(
        people, model, favorable_class=0, robust_to=BALL, X_train=PEOPLE, linearise="lime", **goal
    )
    assert list(found.recourse.columns) == list(PEOPLE.columns)
    adapted = as_model(model, favorable_class=0)
    raw = found.recourse
    if adapted.origin.steps:  # the scaler before the curve
        scaler = adapted.origin.steps[0][1]
        raw = pd.DataFrame(scaler.inverse_transform(raw), columns=raw.columns, index=raw.index)
    said = model.predict(raw) == 0
    there = np.isfinite(found.recourse.to_numpy()).all(axis=1)
    assert there.any()
    clear = np.abs(found.model_score) > 1e-9
    accepted = found.status == Status.ACCEPTED
    np.testing.assert_array_equal(accepted[there & clear], said[there & clear])
    assert set(found.status[there]) <= {Status.ACCEPTED, Status.NOT_VALID}
    assert not any(status.is_proven for status in found.status)
    for label in people.index:
        words = found.explain(label)
        assert "optimal" not in words
        assert "already valid" not in words


def test_a_row_that_falls_short_of_the_guarantee_is_not_valid():
    model = CURVED["trees"].fit(PEOPLE, DEFAULT)
    people = PEOPLE[model.predict(PEOPLE) == 1][:60]
    found = find_recourse(
        people, model, favorable_class=0, robust_to=BALL, X_train=PEOPLE, guarantee=0.7
    )
    given = model.predict_proba(found.recourse)[:, 0]
    np.testing.assert_array_equal(found.status == Status.ACCEPTED, given >= 0.7)
    assert (found.method_status[given < 0.5] == "not valid").all()


def test_text_before_a_step_that_cannot_be_taken_apart_is_named():
    table = PEOPLE.assign(home=np.where(np.arange(N) % 2, "own", "rent"))
    columns = ColumnTransformer(
        [("bins", KBinsDiscretizer(4), ["income"]), ("home", OneHotEncoder(), ["home"])]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, DEFAULT)
    with pytest.raises(ValueError, match=r"step 'columntransformer': .* 'home', does not hold"):
        find_recourse(table, model, favorable_class=0, robust_to=BALL, guarantee=0.5, X_train=table)


def test_fractions_of_a_category_are_for_study():
    table = PEOPLE.assign(home=np.array(["own", "rent", "free"])[np.arange(N) % 3])
    columns = ColumnTransformer(
        [("number", StandardScaler(), list(PEOPLE)), ("home", OneHotEncoder(), ["home"])]
    )
    risk = _RISK + 2.0 * (table["home"] == "rent") + RNG.logistic(size=N)
    model = make_pipeline(columns, LogisticRegression()).fit(table, (risk > 0.5).astype(int))
    people = table[model.predict(table) == 1]
    costs = np.array([9.0, 9.0, 9.0, 1.0, 1.0, 1.0])  # categories are cheap
    found = find_recourse(
        people, model, favorable_class=0, robust_to=BALL, guarantee=0.6, feature_costs=costs
    )
    blocks = found.recourse.to_numpy()[:, 3:]
    whole = ((blocks == 0.0) | (blocks == 1.0)).all(axis=1) & (blocks.sum(axis=1) == 1.0)
    assert (~whole).sum() > 0
    np.testing.assert_array_equal(found.status == Status.FRACTIONAL, ~whole)
    words = found.explain(people.index[~whole][0])
    assert "RobustRecourse" in words
    assert "for study" in words


def test_a_tie_is_what_the_model_makes_of_it():
    """Votes are often even; an even chance goes to the first class."""
    approved = DEFAULT == 0
    for model in (KNeighborsClassifier(4), RandomForestClassifier(4, random_state=0)):
        model.fit(PEOPLE, approved)
        people = PEOPLE[~model.predict(PEOPLE)]
        found = find_recourse(people, model, robust_to=BALL, X_train=PEOPLE, guarantee=0.5)
        said = model.predict(found.recourse)
        np.testing.assert_array_equal(found.status == Status.ACCEPTED, said)
        np.testing.assert_array_equal(found.method_status != "not valid", said)


def test_a_scorecard_that_ends_in_a_tie_is_no_yes():
    points = pd.DataFrame({"points": np.arange(8)})
    model = LogisticRegression().fit(points, points["points"] > 3)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-3.0])
    actions = ActionSet.from_data(points)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5)
    advice = recourse.recommend(points)
    assert advice.changes(0) == ["points from 0 to 4"]
    assert advice.changes(3) == ["points from 3 to 4"]
    assert model.predict(advice.after()).all()


@pytest.mark.parametrize("threshold", [0.3, 0.7])
def test_words_and_other_options_know_the_threshold(threshold):
    model = with_threshold(threshold=threshold, pos_label=0)
    people = refused(model)
    goals = [{"guarantee": threshold + 0.05}, {"cost_weight": 0.3}, {"cost_weight": 3.0}]
    for goal in goals:
        advice = RobustRecourse(
            model, favorable_class=0, robust_to=BALL, actions=ACTIONS, n_options=2, **goal
        ).recommend(people)
        for option in (1, 2):
            after = advice.after(option)
            said = model.predict(after) == 0 if len(after) else []
            for label, yes in zip(after.index, said, strict=True):
                way = advice.ways(label)[option - 1]
                assert (way.status is Status.STILL_REFUSED) == (not yes)
                if option == 1:
                    assert ("would still refuse" in advice.explain(label)) == any(
                        w.status is Status.STILL_REFUSED for w in advice.ways(label)
                    )
    assert advice.frontier(people.index[0]).asked == pytest.approx(threshold)


def test_a_guarantee_below_an_even_chance_promises_no_yes():
    model = plain().fit(PEOPLE, DEFAULT)
    people = refused(model)
    chance = model.predict_proba(people)[:, 0]
    advice = RobustRecourse(
        model, favorable_class=0, robust_to=NormBall(1, 0.0), actions=ACTIONS, guarantee=0.3
    ).recommend(people)
    found = find_recourse(
        people, model, favorable_class=0, robust_to=NormBall(1, 0.0), guarantee=0.3
    )
    for status in (advice.status, found.status):
        assert (status[chance >= 0.3] == Status.STILL_REFUSED).all()
    label = people.index[chance >= 0.3][0]
    assert re.fullmatch(
        r"Today's model gives you a chance of \d+%\. You do not need to change anything for a "
        r"chance of 30%\. Today's model would still refuse you\.",
        advice.explain(label),
    )
    robust = RobustRecourse(
        model, favorable_class=0, robust_to=NormBall(1, 0.001), actions=ACTIONS, guarantee=0.2
    ).recommend(people)
    said = robust.explain(label)
    assert said.count("chance of at least") == said.count("Today's model gives you") == 1
    assert said.endswith("Today's model would still refuse you.")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_threshold_on_probabilities_made_of_margins_is_refused():
    svc = with_threshold(inner=SVC(kernel="linear", probability=True), threshold=0.6)
    with pytest.raises(ValueError, match="SVC, which decides by a margin"):
        as_model(svc, favorable_class=0)


def test_rows_that_cannot_be_encoded_do_not_affect_the_others():
    table = PEOPLE.assign(home=np.array(["own", "rent", "free"])[np.arange(N) % 3])
    columns = ColumnTransformer(
        [("number", StandardScaler(), list(PEOPLE)), ("home", OneHotEncoder(), ["home"])]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, DEFAULT)
    people = table[:20].copy()
    clean = find_recourse(people, model, favorable_class=0, robust_to=BALL, guarantee=0.6)
    people.loc["p3", "home"] = "castle"
    people.loc["p7", "debt"] = np.nan
    found = find_recourse(people, model, favorable_class=0, robust_to=BALL, guarantee=0.6)
    wrong = np.isin(people.index, ["p3", "p7"])
    assert (found.status[wrong] == Status.INVALID_INPUT).all()
    np.testing.assert_array_equal(found.status[~wrong], clean.status[~wrong])
    np.testing.assert_array_equal(found.cost[~wrong], clean.cost[~wrong])
    for points in (None, 3.0, "x", [1.0], np.zeros((2, 9))):
        with pytest.raises(ValueError, match=r"^X "):
            find_recourse(points, model, favorable_class=0, robust_to=BALL, guarantee=0.6)


def test_a_past_model_is_compared_too():
    past = make_pipeline(StandardScaler(), Shifted()).fit(PEOPLE, DEFAULT)
    today = make_pipeline(past[0], LogisticRegression()).fit(PEOPLE, DEFAULT)
    with pytest.raises(ValueError, match="Not accounted for"):
        calibrate(today, PEOPLE, DEFAULT, favorable_class=0, past_models=[today, past])


class Capped(LogisticRegression):
    """A classifier that says no to whoever goes too far, and to nobody else."""

    def predict(self, X):
        return np.where(np.asarray(X)[:, 0] < 1.5, super().predict(X), 1)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), Capped()),
        Derived([("scale", StandardScaler()), ("capped", Capped())]),
    ],
)
def test_who_lies_only_about_recommended_points_is_found_out(model):
    model.fit(PEOPLE, DEFAULT)
    scaled = StandardScaler().fit_transform(PEOPLE)
    people = PEOPLE[(model.predict(PEOPLE) == 1) & (scaled[:, 0] < 1.0)]
    costs = [1e-3, 1.0, 1.0]  # all by income, beyond what is capped
    with pytest.raises(ValueError, match="Not accounted for: step 'capped': Capped"):
        find_recourse(
            people,
            model,
            favorable_class=0,
            robust_to=NormBall(1, 0.0),
            guarantee=0.9,
            feature_costs=costs,
        )


@pytest.mark.parametrize("kind", [Pipeline, Derived])
def test_whose_advice_only_is_lied_about_is_found_out(kind):
    model = kind([("scale", StandardScaler()), ("capped", Capped())]).fit(PEOPLE, DEFAULT)
    scaled = StandardScaler().fit_transform(PEOPLE)
    people = PEOPLE[(model.predict(PEOPLE) == 1) & (scaled[:, 0] < 1.0)]
    first, *others = PEOPLE.columns
    actions = ActionSet.from_data(PEOPLE, immutable=others)
    actions[first].set(lower=None, upper=None)
    recourse = RobustRecourse(
        model, favorable_class=0, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.9
    )
    with pytest.raises(ValueError, match="Not accounted for: step 'capped': Capped"):
        recourse.recommend(people)


def test_a_margin_needs_a_decision_function():
    class Card(ClassifierMixin):
        """A scorecard whose base odds stand apart from its coefficients."""

        classes_ = np.array([0, 1])
        coef_, intercept_ = np.array([[-0.1, 0.2, 0.02]]), np.array([0.5])
        feature_names_in_ = np.array(list(PEOPLE))

        def predict_proba(self, X):
            p = 1.0 / (1.0 + np.exp(-(np.asarray(X) @ self.coef_[0] + self.intercept_[0] + 1.4)))
            return np.column_stack([1.0 - p, p])

        def predict(self, X):
            return (self.predict_proba(X)[:, 1] > 0.5).astype(int)

    with pytest.raises(ValueError, match="Card has no decision_function"):
        find_recourse(
            PEOPLE, Card(), favorable_class=0, robust_to=BALL, guarantee=0.5, loss="hinge"
        )
    with pytest.raises(ValueError, match="Not accounted for: Card"):
        find_recourse(
            PEOPLE, Card(), favorable_class=0, robust_to=BALL, guarantee=0.5, loss="logistic"
        )
