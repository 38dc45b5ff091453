"""What follows a classifier's score: calibrators, thresholds on them, the points of a scorecard."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import model_selection
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from holdfast import (
    ActionSet,
    NormBall,
    Points,
    RobustRecourse,
    Status,
    calibrate,
    find_recourse,
    sets,
)
from holdfast.actions import raw_cost
from holdfast.evaluate import evaluate_recourse
from holdfast.models import BlackBox, LinearModel, as_model
from holdfast.models.calibrator import Calibrator
from holdfast.problem.losses import get_loss

RNG = np.random.default_rng(5)
N = 500
MONTHS, CARDS, HOMES = range(12), range(6), ("own", "rent")
PEOPLE = pd.DataFrame(
    {
        "months": RNG.integers(0, 12, N),
        "cards": RNG.integers(0, 6, N),
        "home": RNG.choice(HOMES, N),
    },
    index=[f"p{k}" for k in range(N)],
)
_WORTH = 0.4 * PEOPLE["months"] - 0.7 * PEOPLE["cards"] + (PEOPLE["home"] == "own") - 1.0
PAID = (_WORTH + 1.5 * RNG.logistic(size=N) > 0).to_numpy().astype(int)
EVERYTHING = pd.DataFrame(
    list(itertools.product(MONTHS, CARDS, HOMES)), columns=list(PEOPLE.columns)
)
ACTIONS = ActionSet.from_data(PEOPLE)
RADIUS = 0.05
BALL = NormBall(1, RADIUS)
METHODS = ["sigmoid", "isotonic"]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:  # scikit-learn 1.8 and later
        CalibratedClassifierCV(LogisticRegression(), method="temperature", ensemble=False).fit(
            [[0.0], [1.0]] * 10, [0, 1, 1, 1] * 5
        )
        METHODS.append("temperature")
    except ValueError:
        pass


def encoders():
    return make_column_transformer(
        (StandardScaler(), ["months", "cards"]), (OneHotEncoder(), ["home"])
    )


def calibrated(method, classifier=None, around="pipeline", **settings):
    """A calibrated model whose classifier stands behind the encoders, inside or outside."""
    if classifier is None and not settings:
        return copy.deepcopy(_calibrated(method, LogisticRegression, around))
    return _fitted(
        method, LogisticRegression() if classifier is None else classifier, around, **settings
    )


@functools.cache
def _calibrated(method, classifier, around):
    return _fitted(method, classifier(), around)


def _fitted(method, classifier, around, **settings):
    settings = {"cv": 3, "ensemble": False, **settings}
    if around == "pipeline":
        model = CalibratedClassifierCV(
            make_pipeline(encoders(), classifier), method=method, **settings
        )
    else:
        model = make_pipeline(
            encoders(), CalibratedClassifierCV(classifier, method=method, **settings)
        )
    return model.fit(PEOPLE, PAID)


def parts(model):
    """The calibrated pipeline's encoders, its classifier and its calibrator, taken out by hand."""
    if hasattr(model, "steps"):
        only = model[-1].calibrated_classifiers_[0]
        return model[:-1], only.estimator, only.calibrators[0]
    only = model.calibrated_classifiers_[0]
    return only.estimator[:-1], only.estimator[-1], only.calibrators[0]


def attacked(model, rows):
    """The probability of class 1 at each row under each extreme model of the ball, by hand.

    The extreme models of an L1 ball move one coefficient, or the intercept, by the radius.
    """
    encode, classifier, calibrator = parts(model)
    X = np.asarray(encode.transform(rows), dtype=np.float64)
    X = np.column_stack([X, np.ones(len(X))])
    today = np.append(classifier.coef_, classifier.intercept_)
    moves = RADIUS * np.eye(len(today))
    scores = X @ np.vstack([today, today + moves, today - moves]).T
    flat = calibrator.predict(scores.ravel())
    if flat.ndim == 2:  # temperature scaling gives both classes
        flat = flat[:, 1]
    return flat.reshape(scores.shape)


def by_force(model, favorable):
    """The worst probability of the favourable class at every raw row there is."""
    second = attacked(model, EVERYTHING)
    return second.min(axis=1) if favorable == 1 else 1.0 - second.max(axis=1)


@functools.cache
def costs_of_everything(label):
    """What it costs a person to become each raw row there is."""
    person = PEOPLE.loc[label]
    return np.array([raw_cost(ACTIONS, person, row) for _, row in EVERYTHING.iterrows()])


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "classifier", [LogisticRegression(), LinearSVC(), RidgeClassifier()], ids=lambda c: str(c)[:6]
)
def test_nothing_that_is_calibrated_high_enough_is_cheaper(classifier, method, favorable):
    model = calibrated(method, classifier)
    worst = by_force(model, favorable)
    people = PEOPLE[model.predict(PEOPLE) != favorable][:12]
    assert len(people) == 12
    # between the probabilities that occur, so that rounding decides nothing
    levels = np.unique(worst[worst > 0.5].round(9))
    assert len(levels) > 4
    for guarantee in (levels[0] + levels[1]) / 2, (levels[-2] + levels[-1]) / 2:
        good = worst >= guarantee
        advice = RobustRecourse(
            model, robust_to=BALL, actions=ACTIONS, guarantee=guarantee, favorable_class=favorable
        ).recommend(people)
        table = advice.to_frame()
        assert (table["status"] == "optimal").all()
        for label, cost in zip(people.index, table["cost"], strict=True):
            assert cost == pytest.approx(costs_of_everything(label)[good].min(), rel=1e-9)
        after = advice.after()
        own = model.predict_proba(after)[:, favorable]
        second = attacked(model, after)
        least = second.min(axis=1) if favorable == 1 else 1.0 - second.max(axis=1)
        assert (least >= guarantee).all()
        np.testing.assert_allclose(table["worst_case_validity"], least, rtol=1e-9)
        np.testing.assert_allclose(table["current_validity"], own, rtol=1e-9)
        before = model.predict_proba(people)[:, favorable]
        np.testing.assert_allclose(table["initial_validity"], before, rtol=1e-9, atol=1e-12)
        assert advice.initial_validity(people.index[0]) == pytest.approx(before[0], abs=1e-12)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("method", METHODS)
def test_both_ways_round_and_every_door_agree(method, favorable):
    inside, outside = calibrated(method), calibrated(method, around="classifier")
    for model in (inside, outside):
        adapted = as_model(model, favorable_class=favorable)
        assert isinstance(adapted, LinearModel)
        score = adapted.score(adapted.encode(PEOPLE))
        loss = adapted.choose_loss(None)
        np.testing.assert_allclose(
            loss.probability(score), model.predict_proba(PEOPLE)[:, favorable], atol=1e-12
        )
        accepted = model.predict(PEOPLE) == favorable
        np.testing.assert_array_equal(score >= adapted.cutoff, accepted)
        people = PEOPLE[~accepted][:20]
        found = find_recourse(
            people, model, robust_to=BALL, guarantee=0.7, favorable_class=favorable
        )
        assert (found.status == Status.OPTIMAL).sum() > 0
        assert (found.worst_case_validity >= 0.7).all()
        np.testing.assert_allclose(
            found.initial_validity, model.predict_proba(people)[:, favorable], atol=1e-12
        )
        _, classifier, calibrator = parts(model)
        points = np.asarray(found.recourse)
        sign = 1.0 if favorable == 1 else -1.0
        largest = np.maximum(np.abs(points).max(axis=1), 1.0)
        lowest = classifier.decision_function(points) - sign * RADIUS * largest
        second = calibrator.predict(lowest)
        second = second[:, 1] if second.ndim == 2 else second
        own = second if favorable == 1 else 1.0 - second
        np.testing.assert_allclose(found.worst_case_validity, own, atol=1e-9)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_within_reach_is_calibrated_too(method, favorable):
    model = calibrated(method)
    worst = by_force(model, favorable)
    held = ActionSet.from_data(PEOPLE, immutable=["months"])
    person = PEOPLE[model.predict(PEOPLE) != favorable][:1]
    mine = EVERYTHING["months"].to_numpy() == person["months"].iloc[0]
    best, top = worst[mine].max(), worst.max()
    assert best < top - 0.01
    guarantee = (best + top) / 2
    advice = RobustRecourse(
        model, robust_to=BALL, actions=held, guarantee=guarantee, favorable_class=favorable
    ).recommend(person)
    label = person.index[0]
    assert advice.status_of(label) is Status.INFEASIBLE
    assert advice.reachable(label)[0] == pytest.approx(best, rel=1e-9)
    words = advice.explain(label)
    assert f"The best you can reach with all of them is {math.floor(100 * best)}%" in words
    assert "What stands in the way: months may not change" in words


@pytest.mark.parametrize("favorable", [0, 1])
def test_a_plateau_costs_no_more_than_where_it_begins(favorable):
    """Between two steps nothing is asked for that the step does not already give."""
    model = calibrated("isotonic")
    adapted = as_model(model, favorable_class=favorable)
    loss = adapted.choose_loss(None)
    grid = np.linspace(-6.0, 6.0, 20001)
    chance = loss.probability(grid)
    assert (np.diff(chance) >= 0.0).all()
    values, counts = np.unique(chance, return_counts=True)
    long = values[(counts > 50) & (values > 0.5) & (values < chance[-1])]
    assert len(long) > 1
    for value in long:
        begin = loss.score(float(value))
        assert loss.probability(begin) >= value
        assert loss.probability(np.nextafter(begin, -np.inf)) < value
        assert abs(begin - grid[np.argmax(chance >= value)]) <= 2.0 * (grid[1] - grid[0])
        above = loss.score(float(np.nextafter(value, 1.0)))
        assert above > begin + 0.01  # the next step is behind the plateau


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(METHODS), st.sampled_from([0, 1]))
def test_levels_and_cutoffs_are_the_least_scores_there_are(seed, method, favorable):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2)).round(1)
    y = (X[:, 0] + rng.logistic(size=60) > 0).astype(int)
    model = CalibratedClassifierCV(LogisticRegression(), method=method, ensemble=False, cv=2)
    model.fit(X, y)
    chance = model.predict_proba(X)
    if not (chance[:, 0].max() > 0.5 < chance[:, 1].max()):
        return  # it decides alike for everybody
    calibrator = model.calibrated_classifiers_[0].calibrators[0]
    if method == "sigmoid" and calibrator.a_ > 0.0:
        with pytest.raises(ValueError, match="falls where the score rises"):
            as_model(model, favorable_class=favorable)
        return
    adapted = as_model(model, favorable_class=favorable)
    score, loss = adapted.score(X), adapted.choose_loss(None)
    chance = chance[:, favorable]
    accepted = model.predict(X) == favorable
    np.testing.assert_array_equal(score >= adapted.cutoff, accepted)
    for wanted in rng.choice(chance, 5):
        if loss.probability(-np.inf) < wanted:
            level = loss.score(float(wanted))
            assert loss.probability(level) >= wanted > loss.probability(np.nextafter(level, -9e9))
            near = np.abs(score - level) < 1e-12
            np.testing.assert_array_equal((score >= level) | near, (chance >= wanted) | near)


@pytest.mark.parametrize("favorable", [0, 1])
def test_an_even_chance_goes_to_the_first_class(favorable):
    """An isotonic calibrator with a plateau at exactly a half, which `argmax` gives to class 0."""
    fitted = IsotonicRegression(out_of_bounds="clip").fit(
        [-2.0, -1.0, 1.0, 2.0], [0.1, 0.5, 0.5, 0.9]
    )
    turn = 1.0 if favorable == 1 else -1.0
    calibrator = Calibrator(fitted, "isotonic", favorable, turn, of_probability=False)
    loss = get_loss("logistic").calibrated(calibrator)
    assert loss.score(0.5) == -1.0
    cutoff = calibrator.cutoff(None, 1)
    goal = LinearModel([1.0], 0.0, cutoff=cutoff).goal(loss, guarantee=0.5)
    assert goal.amount == cutoff
    if favorable == 1:  # a half is no yes: the plateau is the other class's
        assert 1.0 < cutoff < 1.0 + 1e-12
    else:
        assert cutoff == -1.0


def test_a_guarantee_that_no_score_reaches_is_refused():
    model = calibrated("isotonic", LogisticRegression(C=1e-3))
    largest = model.predict_proba(EVERYTHING)[:, 1].max()
    assert 0.6 < largest < 0.999
    recourse = RobustRecourse(
        model, robust_to=BALL, actions=ACTIONS, guarantee=0.999, favorable_class=1
    )
    with pytest.raises(ValueError, match=r"more than any score can reach: .* end at 0") as caught:
        recourse.recommend(PEOPLE[:3])
    said = float(str(caught.value).split("end at ")[1].split(";")[0])
    assert largest - 1e-6 <= said <= largest
    with pytest.raises(ValueError, match="more than any score can reach"):
        find_recourse(PEOPLE[:3], model, robust_to=BALL, guarantee=0.999, favorable_class=1)
    advice = recourse.set_params(guarantee=said).recommend(PEOPLE[:30])
    assert (model.predict_proba(advice.after())[:, 1] >= said).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_cost_weight_is_refused(method):
    model = calibrated(method)
    asked = {"robust_to": BALL, "cost_weight": 0.1, "favorable_class": 1}
    with pytest.raises(ValueError, match=r"come from a calibrator.*ask for a guarantee"):
        RobustRecourse(model, actions=ACTIONS, **asked).recommend(PEOPLE[:3])
    with pytest.raises(ValueError, match=r"come from a calibrator.*ask for a guarantee"):
        find_recourse(PEOPLE[:3], model, **asked)
    with pytest.raises(ValueError, match="leave out loss"):
        find_recourse(
            PEOPLE[:3], model, robust_to=BALL, guarantee=0.6, loss="logistic", favorable_class=1
        )


def test_averaged_calibrators_are_refused_with_the_remedy():
    model = calibrated("sigmoid", ensemble=True)
    assert len(model.calibrated_classifiers_) == 3
    remedy = "averages the probabilities of 3 classifiers.*ensemble=False"
    with pytest.raises(ValueError, match=remedy):
        RobustRecourse(
            model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
        ).recommend(PEOPLE[:3])
    with pytest.raises(ValueError, match=remedy):
        sets.bootstrap(model, PEOPLE, PAID, favorable_class=1)
    with pytest.raises(ValueError, match=remedy):
        calibrate(model, PEOPLE, PAID, favorable_class=1)


def test_one_fold_is_one_calibrator():
    fold = [(np.arange(0, 400), np.arange(400, N))]
    model = calibrated("sigmoid", ensemble=True, cv=fold)
    assert len(model.calibrated_classifiers_) == 1
    adapted = as_model(model, favorable_class=1)
    assert isinstance(adapted, LinearModel)
    advice = RobustRecourse(
        model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
    ).recommend(PEOPLE[:10])
    assert (model.predict_proba(advice.after())[:, 1] >= 0.6).all()


def test_a_model_that_was_fitted_before_is_read():
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6")
    fitted = make_pipeline(encoders(), LogisticRegression()).fit(PEOPLE[:300], PAID[:300])
    model = CalibratedClassifierCV(frozen.FrozenEstimator(fitted), method="isotonic")
    model.fit(PEOPLE[300:], PAID[300:])
    adapted = as_model(model, favorable_class=1)
    assert isinstance(adapted, LinearModel)
    np.testing.assert_allclose(adapted.coef, fitted[-1].coef_[0])
    advice = RobustRecourse(
        model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
    ).recommend(PEOPLE[:40])
    assert (model.predict_proba(advice.after())[:, 1] >= 0.6).all()
    with pytest.raises(ValueError, match="already fitted on other rows"):
        calibrate(model, PEOPLE, PAID, favorable_class=1, n_models=20)


def test_a_falling_calibrator_is_refused():
    model = calibrated("sigmoid")
    model.calibrated_classifiers_[0].calibrators[0].a_ *= -1.0
    for door in (
        lambda: as_model(model, favorable_class=1),
        lambda: find_recourse(PEOPLE, model, robust_to=BALL, guarantee=0.6, favorable_class=1),
        lambda: RobustRecourse(
            model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
        ).recommend(PEOPLE),
    ):
        with pytest.raises(ValueError, match=r"sigmoid calibrator .* falls where the score rises"):
            door()
    model.calibrated_classifiers_[0].calibrators[0].a_ = 0.0
    with pytest.raises(ValueError, match="gives everybody the same probability"):
        as_model(model, favorable_class=1)


def test_a_model_that_accepts_nobody_or_everybody():
    def with_heights(low, high):
        model = calibrated("isotonic")
        calibrator = model.calibrated_classifiers_[0].calibrators[0]
        rows = np.linspace(-2.0, 2.0, 50)
        calibrator.fit(rows, np.linspace(low, high, 50))
        return model

    with pytest.raises(ValueError, match=r"accepts nobody.*is 0\.4\. Wrap it in a threshold"):
        as_model(with_heights(0.1, 0.4), favorable_class=1)
    everybody = with_heights(0.6, 0.9)
    assert as_model(everybody, favorable_class=1).cutoff == -np.inf
    advice = RobustRecourse(
        everybody, robust_to=BALL, actions=ACTIONS, guarantee=0.8, favorable_class=1
    ).recommend(PEOPLE[:30])
    assert set(advice.status) == {Status.OPTIMAL, Status.ALREADY_VALID}
    assert (everybody.predict_proba(advice.after())[:, 1] >= 0.8).all()
    with pytest.raises(ValueError, match=r"own threshold, a probability of 0\.6"):
        find_recourse(PEOPLE, everybody, robust_to=BALL, guarantee=0.5, favorable_class=1)


def test_what_is_not_linear_stays_a_black_box_with_its_own_probabilities():
    columns = PEOPLE[["months", "cards"]].astype(float)
    forest = CalibratedClassifierCV(RandomForestClassifier(3, random_state=0), ensemble=False, cv=2)
    curved = CalibratedClassifierCV(
        make_pipeline(PolynomialFeatures(), LogisticRegression(max_iter=2000)),
        ensemble=False,
        cv=2,
    )
    twice = CalibratedClassifierCV(
        CalibratedClassifierCV(LogisticRegression(), ensemble=False, cv=2),
        ensemble=False,
        cv=2,
    )
    averaged = CalibratedClassifierCV(LogisticRegression(), ensemble=True, cv=3)
    for model in (forest, curved, twice, averaged):
        model.fit(columns, PAID)
        adapted = as_model(model, favorable_class=1)
        assert isinstance(adapted, BlackBox)
        chance = 1.0 / (1.0 + np.exp(-adapted.score(columns)))
        np.testing.assert_allclose(chance, model.predict_proba(columns)[:, 1], atol=1e-9)
    recourse = RobustRecourse(
        forest,
        robust_to=BALL,
        actions=ActionSet.from_data(columns),
        guarantee=0.6,
        favorable_class=1,
    )
    with pytest.raises(ValueError, match="black box, but RobustRecourse needs a linear model"):
        recourse.recommend(columns[:3])
    with pytest.raises(ValueError, match="PolynomialFeatures multiplies"):
        recourse.set_params(model=curved).recommend(columns[:3])
    with pytest.raises(ValueError, match="is nested in another; calibrate once"):
        recourse.set_params(model=twice).recommend(columns[:3])


def test_a_calibrator_that_is_misread_is_noticed():
    class Louder(CalibratedClassifierCV):
        def predict_proba(self, X):
            second = super().predict_proba(X)[:, 1] ** 1.01
            return np.column_stack([1.0 - second, second])

    model = Louder(make_pipeline(encoders(), LogisticRegression()), ensemble=False, cv=3)
    model.fit(PEOPLE, PAID)
    with pytest.raises(ValueError, match=r"gives a probability of .* Not accounted for: Louder"):
        RobustRecourse(
            model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
        ).recommend(PEOPLE[:3])


def test_steep_calibrators_do_not_turn_rounding_into_a_misreading():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 3)) * 1e3
    y = (X[:, 0] + X[:, 1] > 0).astype(int)  # separated: the calibrator is one steep step
    table = pd.DataFrame(X, columns=list("abc"))
    model = CalibratedClassifierCV(
        make_pipeline(StandardScaler(), LogisticRegression(C=1e4)),
        method="isotonic",
        ensemble=False,
        cv=2,
    ).fit(table, y)
    advice = RobustRecourse(
        model,
        robust_to=NormBall(2, 0.1),
        actions=ActionSet.from_data(table),
        guarantee=0.9,
        favorable_class=1,
    ).recommend(table[model.predict(table) == 0][:50])
    assert (model.predict_proba(advice.after())[:, 1] >= 0.9).all()


def test_single_precision_is_read_as_it_is():
    X = RNG.normal(size=(300, 2)).astype(np.float32)
    y = (X[:, 0] + RNG.logistic(size=300) > 0).astype(int)
    for method in METHODS:
        model = CalibratedClassifierCV(LogisticRegression(), method=method, ensemble=False)
        model.fit(X, y)
        for people in (X, X.astype(np.float64)):
            advice = RobustRecourse(
                model,
                robust_to=BALL,
                actions=ActionSet.from_data(people),
                guarantee=0.6,
                favorable_class=1,
            ).recommend(people[:40])
            assert (model.predict_proba(advice.after().to_numpy())[:, 1] >= 0.6 - 1e-6).all()


class Silent(ClassifierMixin, BaseEstimator):
    """A linear classifier without a decision function: calibrators are given its probabilities."""

    def fit(self, X, y):
        inner = LogisticRegression().fit(X, y)
        self.coef_, self.intercept_, self.classes_ = inner.coef_, inner.intercept_, inner.classes_
        return self

    def predict_proba(self, X):
        second = 1.0 / (1.0 + np.exp(-(np.asarray(X) @ self.coef_[0] + self.intercept_[0])))
        return np.column_stack([1.0 - second, second])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("method", METHODS)
def test_a_calibrator_of_probabilities_is_one_of_their_scores(method, favorable):
    model = calibrated(method, Silent())
    adapted = as_model(model, favorable_class=favorable)
    assert isinstance(adapted, LinearModel)
    assert adapted.origin.calibrator.of_probability
    score, loss = adapted.score(adapted.encode(PEOPLE)), adapted.choose_loss(None)
    np.testing.assert_allclose(
        loss.probability(score), model.predict_proba(PEOPLE)[:, favorable], atol=1e-9
    )
    accepted = model.predict(PEOPLE) == favorable
    np.testing.assert_array_equal(score >= adapted.cutoff, accepted)
    asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": favorable}
    guarantee = 0.6  # within what a sigmoid of probabilities reaches
    advice = RobustRecourse(model, guarantee=guarantee, **asked).recommend(PEOPLE[~accepted][:20])
    assert (model.predict_proba(advice.after())[:, favorable] >= guarantee).all()
    with pytest.raises(ValueError, match="are not linear in the score"):
        RobustRecourse(model, points=SCALE, guarantee_points=620, **asked).recommend(PEOPLE[:3])


# --- thresholds around calibrators, and inside of them ---


def thresholded(inner, **settings):
    if not hasattr(model_selection, "FixedThresholdClassifier"):
        pytest.skip("scikit-learn before 1.5 has no thresholds")
    return model_selection.FixedThresholdClassifier(inner, **settings)


def as_it_is(model):
    """A model that is not fitted again by what stands around it, where there is such a thing."""
    try:
        from sklearn.frozen import FrozenEstimator
    except ImportError:  # before scikit-learn 1.6
        return model
    return FrozenEstimator(model)


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("positive", [None, 0, 1])
@pytest.mark.parametrize("threshold", [0.35, 0.62])
@pytest.mark.parametrize("method", METHODS)
def test_a_threshold_around_a_calibrated_model_decides(method, threshold, positive, favorable):
    for inner in (calibrated(method), calibrated(method, around="classifier")):
        model = thresholded(as_it_is(inner), threshold=threshold, pos_label=positive)
        model.fit(PEOPLE, PAID)
        adapted = as_model(model, favorable_class=favorable)
        assert isinstance(adapted, LinearModel)
        accepted = model.predict(PEOPLE) == favorable
        score = adapted.score(adapted.encode(PEOPLE))
        np.testing.assert_array_equal(score >= adapted.cutoff, accepted)
        loss = adapted.choose_loss(None)
        least = float(loss.probability(adapted.cutoff))
        asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": favorable}
        if loss.probability(np.nextafter(adapted.cutoff, -np.inf)) < 0.9 * least:
            continue  # right behind a plateau
        with pytest.raises(ValueError, match="below the model's own threshold"):
            RobustRecourse(model, guarantee=0.9 * least, **asked).recommend(PEOPLE[:3])
        advice = RobustRecourse(model, guarantee=least, **asked).recommend(PEOPLE[~accepted][:30])
        assert (model.predict(advice.after()) == favorable).all()


def test_a_threshold_inside_of_a_calibrator_decides_nothing():
    inner = thresholded(make_pipeline(encoders(), LogisticRegression()), threshold=0.9)
    model = CalibratedClassifierCV(inner, ensemble=False, cv=3).fit(PEOPLE, PAID)
    plain = calibrated("sigmoid")
    a, b = (as_model(each, favorable_class=1) for each in (model, plain))
    np.testing.assert_allclose(a.coef, b.coef)
    assert a.cutoff == pytest.approx(b.cutoff, abs=1e-6)
    accepted = model.predict(PEOPLE) == 1
    np.testing.assert_array_equal(a.score(a.encode(PEOPLE)) >= a.cutoff, accepted)
    advice = RobustRecourse(
        model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
    ).recommend(PEOPLE[~accepted][:30])
    assert (model.predict(advice.after()) == 1).all()


def test_a_tuned_threshold_around_a_calibrated_model():
    if not hasattr(model_selection, "TunedThresholdClassifierCV"):
        pytest.skip("scikit-learn before 1.5 has no thresholds")
    for around in ("pipeline", "classifier"):
        tuned = model_selection.TunedThresholdClassifierCV(
            calibrated("isotonic", around=around), cv=2, scoring="balanced_accuracy"
        ).fit(PEOPLE, PAID)
        adapted = as_model(tuned, favorable_class=1)
        accepted = tuned.predict(PEOPLE) == 1
        np.testing.assert_array_equal(
            adapted.score(adapted.encode(PEOPLE)) >= adapted.cutoff, accepted
        )


# --- sets, calibration of their size, evaluation ---


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_sets_and_sizes_are_those_of_the_classifier_and_its_decisions(method):
    model = calibrated(method)
    alone = make_pipeline(encoders(), LogisticRegression()).fit(PEOPLE, PAID)
    of_calibrated = sets.fisher(model, PEOPLE, radius=1.0, favorable_class=1)
    of_classifier = sets.fisher(alone, PEOPLE, radius=1.0, favorable_class=1)
    np.testing.assert_allclose(of_calibrated.covariance, of_classifier.covariance, rtol=1e-6)
    sizing = calibrate(
        model,
        PEOPLE,
        PAID,
        favorable_class=1,
        survival=0.7,
        confidence=0.5,
        n_models=20,
        families=["l2"],
    )
    assert 0.0 < sizing.best.radius < 2.0


def test_later_models_are_judged_by_their_own_calibrators():
    model = calibrated("isotonic")
    later = calibrated("sigmoid", LogisticRegression(C=0.1))
    people = PEOPLE[model.predict(PEOPLE) == 0][:20]
    advice = RobustRecourse(
        model, robust_to=BALL, actions=ACTIONS, guarantee=0.7, favorable_class=1
    ).recommend(people)
    after = advice.after()
    table = evaluate_recourse(
        after,
        model,
        people.loc[after.index],
        robust_to=BALL,
        later_models=later,
        favorable_class=1,
    )
    chance = later.predict_proba(after)[:, 1]
    np.testing.assert_allclose(table["future_validity"], chance, atol=1e-9)
    np.testing.assert_allclose(
        table["worst_case_validity"], advice.to_frame()["worst_case_validity"], atol=1e-9
    )


def test_the_frontier_is_one_of_calibrated_probabilities():
    for method in METHODS:
        model = calibrated(method)
        worst = by_force(model, 1)
        person = PEOPLE[model.predict(PEOPLE) == 0][:1]
        advice = RobustRecourse(
            model, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
        ).recommend(person)
        curve = advice.frontier(person.index[0])
        assert curve.asked == 0.6
        costs = costs_of_everything(person.index[0])
        for corner in curve.to_frame().itertuples():
            if corner.is_step:
                enough = costs[worst >= corner.guarantee]
                assert corner.cost == pytest.approx(enough.min(), rel=1e-9)
                own = worst[np.isclose(costs, corner.cost)]
                assert np.abs(own - corner.worst_case_validity).min() < 1e-9


# --- points ---

SCALE = Points(600, odds=50, double=20)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(-2000, 2000),
    st.floats(0.01, 1000),
    st.floats(0.1, 500),
    st.floats(-30, 30),
)
def test_points_are_log_odds_in_another_unit(points, odds, double, score):
    scale, loss = Points(points, odds=odds, double=double), get_loss("logistic")
    assert float(scale.of(math.log(odds))) == pytest.approx(points, abs=1e-6)
    more = float(scale.of(score + math.log(2.0)) - scale.of(score))
    assert more == pytest.approx(double, rel=1e-6, abs=1e-6)
    wanted = float(scale.at(loss, score))
    least = scale.score(loss, wanted)
    assert float(scale.at(loss, least)) >= wanted
    assert least == pytest.approx(score, abs=1e-9 * (1.0 + abs(points) / double + abs(score)))


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("kind", ["plain", *(m for m in METHODS if m != "isotonic")])
def test_points_are_guaranteed_under_every_model(kind, favorable):
    alone = kind == "plain"
    model = (
        make_pipeline(encoders(), LogisticRegression()).fit(PEOPLE, PAID)
        if alone
        else calibrated(kind)
    )
    people = PEOPLE[model.predict(PEOPLE) != favorable][:15]
    asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": favorable}
    scale = Points(500, odds=1, double=40)
    advice = RobustRecourse(model, points=scale, guarantee_points=540, **asked).recommend(people)
    same = RobustRecourse(model, guarantee=2.0 / 3.0, **asked).recommend(people)
    table, other = advice.to_frame(), same.to_frame()
    np.testing.assert_allclose(table["cost"], other["cost"], rtol=1e-9)
    assert (table["worst_case_points"].dropna() >= 540 - 1e-9).all()
    for when in ("worst_case", "current", "initial"):
        chance = table[f"{when}_validity"]
        points = 500 + 40 * np.log2(chance / (1.0 - chance))
        np.testing.assert_allclose(table[f"{when}_points"], points, rtol=1e-6)
    own = model.predict_proba(advice.after())[:, favorable]
    np.testing.assert_allclose(
        advice.to_frame().dropna()["current_points"], 500 + 40 * np.log2(own / (1 - own)), rtol=1e-9
    )
    assert "worst_case_points" not in other
    assert advice.guarantee_points == 540
    assert advice.guarantee is None
    assert advice.frontier(people.index[0]).asked == pytest.approx(2.0 / 3.0)


def test_words_speak_of_points():
    model = make_pipeline(encoders(), LogisticRegression()).fit(PEOPLE, PAID)
    people = PEOPLE[model.predict(PEOPLE) == 0][:15]
    asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": 1, "points": SCALE}
    advice = RobustRecourse(model, guarantee_points=500, **asked).recommend(people)
    table = advice.to_frame()
    told = 0
    for row, label in zip(table.itertuples(), people.index, strict=True):
        words = advice.explain(label)
        assert f"Today's model gives you {math.floor(row.initial_points)} points." in words
        assert f"gives you at least {math.floor(row.worst_case_points)} points." in words
        assert "%" not in words
        told += 1
    assert told == 15
    hopeless = RobustRecourse(model, guarantee_points=900, **asked).recommend(people[:1])
    assert hopeless.status_of(people.index[0]) is Status.INFEASIBLE
    words = hopeless.explain(people.index[0])
    assert "No change you can make gets you 900 points from every model" in words
    best = math.floor(
        float(SCALE.of(np.log(1.0 / (1.0 / hopeless.reachable(people.index[0])[0] - 1))))
    )
    assert f"The best you can reach with all of them is {best} points" in words
    # a far higher guarantee than any probability can say
    cheap = RobustRecourse(model, guarantee_points=2000, **asked).recommend(people[:1])
    assert cheap.status_of(people.index[0]) is Status.INFEASIBLE
    # in points, but asked for otherwise
    mixed = RobustRecourse(model, guarantee=0.6, **asked).recommend(people[:1])
    assert "points" in mixed.explain(people.index[0])
    price = RobustRecourse(model, cost_weight=0.01, **asked).recommend(people[:1])
    assert "points" in price.explain(people.index[0])


def test_points_are_refused_where_they_have_no_meaning():
    asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": 1}

    def recommend(model, **more):
        return RobustRecourse(model, **asked, **more).recommend(PEOPLE[:3])

    logit = make_pipeline(encoders(), LogisticRegression()).fit(PEOPLE, PAID)
    margin = make_pipeline(encoders(), LinearSVC()).fit(PEOPLE, PAID)
    with pytest.raises(ValueError, match="squared_hinge loss has none: its score is a margin"):
        recommend(margin, points=SCALE, guarantee_points=620)
    with pytest.raises(ValueError, match="calibrated probabilities are not linear in the score"):
        recommend(calibrated("isotonic"), points=SCALE, guarantee_points=620)
    with pytest.raises(ValueError, match="of the probit link are not linear in the score"):
        recommend(logit, points=SCALE, guarantee_points=620, loss="probit")
    with pytest.raises(ValueError, match="define the scale"):
        recommend(logit, guarantee_points=620)
    with pytest.raises(ValueError, match="give exactly one of them"):
        recommend(logit, points=SCALE, guarantee_points=620, guarantee=0.6)
    with pytest.raises(ValueError, match="give exactly one of them"):
        recommend(logit, points=SCALE)
    with pytest.raises(TypeError, match="points = 600 is not a Points"):
        recommend(logit, points=600, guarantee=0.6)
    for wrong in (math.nan, math.inf, "many", True):
        with pytest.raises(ValueError, match=r"guarantee_points = .* finite number of points"):
            recommend(logit, points=SCALE, guarantee_points=wrong)
    for settings_, said in (
        ({"points": math.nan, "odds": 50, "double": 20}, "points = nan"),
        ({"points": 600, "odds": 0, "double": 20}, "odds = 0"),
        ({"points": 600, "odds": 50, "double": -20}, "double = -20"),
    ):
        with pytest.raises(ValueError, match=said):
            Points(**settings_)


def test_points_below_the_threshold_are_refused():
    strict = thresholded(make_pipeline(encoders(), LogisticRegression()), threshold=0.8)
    strict.fit(PEOPLE, PAID)
    scale = Points(500, odds=1, double=40)
    asked = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": 1, "points": scale}
    with pytest.raises(
        ValueError, match=r"guarantee_points = 579 is below .* threshold of 580 points"
    ):
        RobustRecourse(strict, guarantee_points=579, **asked).recommend(PEOPLE[:3])
    people = PEOPLE[strict.predict(PEOPLE) == 0][:20]
    advice = RobustRecourse(strict, guarantee_points=580, **asked).recommend(people)
    assert (strict.predict(advice.after()) == 1).all()
    with pytest.raises(ValueError, match="below the model's own threshold"):
        RobustRecourse(calibrated("sigmoid"), guarantee_points=470, **asked).recommend(PEOPLE[:3])


@pytest.mark.parametrize(("threshold", "steps"), [(0.45, 0), (0.4, -1)])
def test_at_a_threshold_the_model_itself_decides(threshold, steps):
    """There the logit of the threshold, and the model's own arithmetic, differ by a bit."""
    inner = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    inner.coef_, inner.intercept_ = np.array([[1.0]]), np.array([0.0])
    frozen = pytest.importorskip("sklearn.frozen", reason="scikit-learn before 1.6")
    how = {"threshold": threshold, "response_method": "predict_proba"}
    model = thresholded(frozen.FrozenEstimator(inner), **how)
    model.fit([[-1.0], [1.0]], [0, 1])
    point = np.log(threshold / (1.0 - threshold))
    for _ in range(abs(steps)):
        point = np.nextafter(point, -9.0)
    asked = {"robust_to": NormBall(2, 0.0), "favorable_class": 1, "cost_weight": 100.0}
    found = find_recourse([[point]], model, **asked)
    refused = found.status[0] is Status.STILL_REFUSED
    assert refused == (model.predict(found.recourse_array)[0] == 0)


def test_a_frontier_asks_for_a_yes_where_the_advice_does():
    """An even chance is a tie, which scikit-learn refuses."""
    table = pd.DataFrame({"a": [-1.0, 1.0, 2.0, -2.0], "b": [0.0, 1.0, 0.0, -1.0]})
    model = LogisticRegression().fit(table, [0, 1, 1, 0])
    model.coef_, model.intercept_ = np.array([[1.0, 0.5]]), np.array([0.0])
    person = pd.DataFrame({"a": [0.0], "b": [0.0]})
    asked = {"robust_to": NormBall(2, 0.0), "favorable_class": 1, "guarantee": 0.5}
    found = find_recourse(person, model, **asked)
    again = found.frontier(0).at_guarantee(0.5)
    assert found.status[0] is again.status[0] is Status.OPTIMAL
    assert found.cost[0] == again.cost[0] > 0.0


def test_a_tie_at_what_was_asked_for_is_no_yes():
    """Where a calibrator is flat at the even chance, the model says no there."""
    table = pd.DataFrame({"a": np.repeat([1, 2, 3], 40)})
    paid = np.repeat([0, 1, 0, 1, 0, 1], [36, 4, 20, 20, 4, 36])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = CalibratedClassifierCV(pipeline, method="isotonic", ensemble=False, cv=2)
    people = pd.DataFrame({"a": [1, 2]})
    model.fit(table, paid)
    assert model.predict_proba(people)[:, 1].tolist() == [0.5, 0.5]
    actions = ActionSet.from_data(table, immutable=["a"])
    settings = {"robust_to": NormBall(2, 0.0), "actions": actions, "guarantee": 0.5}
    advice = RobustRecourse(model, favorable_class=1, **settings).recommend(people)
    assert not advice.to_frame()["approved"].any()
    for label in people.index:
        assert advice.status_of(label) is Status.INFEASIBLE
        assert (
            "gets you approved by today's model. The best you can reach is 50%, at which the "
            in (advice.explain(label))
        )
    other = RobustRecourse(model, favorable_class=0, **settings).recommend(people)
    assert (other.status == Status.ALREADY_VALID).all()
