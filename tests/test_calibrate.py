"""How large a set must be: rehearsed on retrained models, true on fresh ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import holdfast
from holdfast import ActionSet, Ellipsoid, NormBall, calibrate
from holdfast.calibration.advice import ActionAdviser, Adviser
from holdfast.calibration.families import Family
from holdfast.calibration.search import Rehearsal, smallest_radius
from holdfast.calibration.sizing import ALONE
from holdfast.calibration.worlds import Worlds, low_survival, most_short
from holdfast.models import Model
from holdfast.models.encoding import Encoding
from holdfast.problem.goal import Goal
from holdfast.sets.retrain import draw_bootstrap, draw_half, retrain
from holdfast.sets.space import Space

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
Y = (X - [0.0, 5.0, 1.0]) / [1.0, 10.0, 0.1] @ [1.0, -1.0, 0.5] + RNG.logistic(size=N) > 0.5
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


def even_chance(model: Model) -> Goal:
    return model.goal(model.choose_loss(None), guarantee=0.5)


QUICK = {"n_models": 40, "families": ["l2"], "survival": 0.9}


def test_so_many_worlds_say_so_much():
    """By counting: a draw among m + 1 equal ones is one of the k worst with k / (m + 1)."""
    for m in range(1, 200):
        for confidence in (0.5, 0.8, 0.9, 0.95, 0.99):
            k = most_short(m, confidence)
            assert k < 0 or (k + 1) / (m + 1) <= 1.0 - confidence + 1e-9
            assert (k + 2) / (m + 1) > 1.0 - confidence
    assert low_survival(np.arange(50) / 50, 0.95) == 1 / 50
    assert np.isnan(low_survival(np.ones(5), 0.95))


def test_the_next_world_is_as_good_as_it_is_said():
    rng = np.random.default_rng(1)
    draws = rng.beta(8, 1, size=(4000, 51))
    low = np.array([low_survival(row[:50], 0.95) for row in draws])
    assert 0.95 <= np.mean(draws[:, 50] >= low) <= 0.975


def test_survival_is_what_the_retrained_pipelines_themselves_decide():
    """Worked out again with scikit-learn alone: resamples, fits, decisions in raw units."""
    space = Space.of(MODEL, X, None)
    models = retrain(space, Y, [draw_bootstrap(N)] * 6, 7)
    denied = np.flatnonzero(~MODEL.predict(X))[:15]
    adviser = Adviser(space.today, space.points[denied], even_chance(space.today), 1)
    rehearsal = Rehearsal(Worlds.of_resamples(models), adviser, np.arange(15), 0.9, 0.5)
    trial = rehearsal.run(Family("l2", lambda radius: NormBall(2, radius)), 0.15)
    fitted = []
    for k in range(6):
        rows = np.random.default_rng([7, k]).integers(N, size=N)
        fitted.append(clone(MODEL).fit(X[rows], Y[rows]))
    for b, today in enumerate(fitted):
        mine = denied[~today.predict(X[denied])]
        # in today's columns, which are not those of the one that plays today's
        vector = space.translate("it", today)
        result = holdfast.solve(
            MODEL[0].transform(X[mine]),
            vector[:-1],
            vector[-1],
            robust_to=NormBall(2, 0.15),
            guarantee=0.5,
        )
        raw = MODEL[0].inverse_transform(result.recourse_array)
        after = [each.predict(raw).mean() for c, each in enumerate(fitted) if c != b]
        assert trial.survival[b] == pytest.approx(np.mean(after), abs=1e-12)


def test_the_radius_is_the_smallest_that_was_tried_and_one_just_below_fails():
    space = Space.of(MODEL, X, None)
    models = retrain(space, Y, [draw_bootstrap(N)] * 30, 0)
    denied = np.flatnonzero(~MODEL.predict(X))
    adviser = Adviser(space.today, space.points[denied], even_chance(space.today), 1)
    rehearsal = Rehearsal(Worlds.of_resamples(models), adviser, np.arange(40), 0.9, 0.9)
    for family in (
        Family("l1", lambda radius: NormBall(1, radius)),
        Family("ellipsoid", holdfast.sets.fisher(MODEL, X).with_radius),
        Family("odd", lambda radius: NormBall(2, 0.3 * radius**2)),  # no multiple of its radius
    ):
        found, tried = smallest_radius(rehearsal, family, rehearsal.run(family, 0.0))
        assert found is not None
        assert rehearsal.passes(found)
        below = [t.radius for t in tried if not rehearsal.passes(t) and t.radius < found.radius]
        assert max(below) >= found.radius / 1.05
        again = rehearsal.run(family, found.radius)
        np.testing.assert_array_equal(again.survival, found.survival)


@pytest.fixture(scope="module")
def sizing():
    families = ["margin", "l2 scaled", "fisher", "bootstrap"]
    return calibrate(MODEL, X, Y, survival=0.9, families=families, n_models=40)


def test_the_table_says_what_each_family_does(sizing):
    table = sizing.to_frame()
    assert list(table.index) == [ALONE, "margin", "l2 scaled", "fisher", "bootstrap"]
    robust = table.iloc[1:]
    assert (robust["reaches"] & (robust["survival_low"] >= 0.9)).all()
    assert (robust["survival"] >= robust["survival_low"]).all()
    assert not table.loc[ALONE, "reaches"]
    assert table.loc[ALONE, "survival"] < 0.7
    assert (robust["cost"] > table.loc[ALONE, "cost"]).all()
    assert (table["helped"] == 1.0).all()
    assert not table["few_helped"].any()


def test_the_best_is_the_cheapest_that_reaches(sizing):
    reaching = sizing.to_frame().iloc[1:]
    assert sizing.chosen.name == reaching["cost"].idxmin()
    assert sizing.best.radius == reaching["radius"][sizing.chosen.name]
    assert f"Use {sizing.chosen.name} with a radius of" in str(sizing)
    assert "90% was asked for" in str(sizing)
    assert f"best {sizing.chosen.name}" in repr(sizing)


def test_cost_and_share_helped_are_those_of_recourses_for_today(sizing):
    encoded = MODEL[0].transform(X)
    denied = encoded[~MODEL.predict(X)]
    today = MODEL[-1]
    for each in sizing.families[1:]:
        result = holdfast.solve(
            denied, today.coef_[0], today.intercept_[0], robust_to=each.robust_to, guarantee=0.5
        )
        assert each.cost == pytest.approx(result.cost.mean(), rel=1e-9)
    assert sizing.n_people == len(denied)


def test_the_plot_marks_the_choice(sizing, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    axes = sizing.plot()
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [each.name for each in sizing.families[1:]]
    assert axes.texts[0].get_text().startswith(sizing.chosen.name)
    axes.figure.savefig(tmp_path / "sizing.png")


def test_a_margin_is_a_higher_probability_of_today_s_model(sizing):
    margin = next(each for each in sizing.families if each.name == "margin")
    encoded = MODEL[0].transform(X)[:20]
    today = MODEL[-1]
    score = today.decision_function(encoded)
    worst = margin.robust_to.worst_score(encoded, today.coef_[0], today.intercept_[0])
    np.testing.assert_allclose(score - worst, margin.radius)


def test_the_answer_depends_on_the_seed_alone():
    a, b, c = (
        calibrate(MODEL, X, Y, **QUICK, random_state=seed, n_jobs=jobs).to_frame()
        for seed, jobs in ((3, 1), (3, 2), (4, 1))
    )
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(c)


def test_halves_scatter_as_resamples_do():
    space = Space.of(MODEL, X, None)
    spread = [
        retrain(space, Y, [draw(N)] * 60, 0).std(axis=0) for draw in (draw_bootstrap, draw_half)
    ]
    np.testing.assert_allclose(spread[1], spread[0], rtol=0.35)
    halves = calibrate(MODEL, X, Y, **QUICK, how="halves")
    whole = calibrate(MODEL, X, Y, **QUICK)
    assert halves.best.radius == pytest.approx(whole.best.radius, rel=0.5)


def test_more_survival_or_confidence_takes_a_larger_radius():
    radius = [
        calibrate(MODEL, X, Y, **{**QUICK, "survival": s}, confidence=c).best.radius
        for s, c in ((0.6, 0.6), (0.9, 0.6), (0.9, 0.95))
    ]
    assert radius[0] < radius[1] < radius[2]


# --- what people can do ---

TABLE = pd.DataFrame(
    {
        "income": RNG.normal(40.0, 12.0, N).round(),
        "debt": RNG.normal(10.0, 5.0, N).round(),
        "home": RNG.choice(["own", "rent"], N),
    }
)
PAID = (
    (TABLE["income"] - 40) / 12 - (TABLE["debt"] - 10) / 5 + (TABLE["home"] == "own")
    > 0.5 + RNG.logistic(size=N)
).to_numpy()
LENDER = make_pipeline(
    make_column_transformer((StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["home"])),
    LogisticRegression(),
).fit(TABLE, PAID)
ACTIONS = ActionSet.from_data(TABLE)


def test_actions_are_respected():
    held = ActionSet.from_data(TABLE, immutable=["home", "income"])
    few = calibrate(LENDER, TABLE, PAID, actions=held, **QUICK)
    free = calibrate(LENDER, TABLE, PAID, actions=ACTIONS, **QUICK)
    assert few.to_frame()["helped"].iloc[0] < free.to_frame()["helped"].iloc[0]
    denied = TABLE[~LENDER.predict(TABLE)]
    best = free.best
    recourse = holdfast.RobustRecourse(LENDER, robust_to=best, actions=ACTIONS, guarantee=0.5)
    frame = recourse.recommend(denied).to_frame()
    helped = frame["option"] == 1
    assert helped.mean() == free.chosen.helped
    assert frame["cost"][helped].mean() == pytest.approx(free.chosen.cost, rel=1e-6)


def test_links_are_respected():
    linked = ActionSet.from_data(TABLE)
    linked.links = [holdfast.actions.AtMost("debt", "income")]
    encoding = Encoding.of(LENDER)
    denied = TABLE[~LENDER.predict(TABLE)][:5]
    adviser = ActionAdviser(encoding, denied, linked, even_chance(encoding.model), 1)
    advice = adviser(NormBall(2, 0.1), np.arange(5))
    after = encoding.decode(advice.recourse[advice.found])
    assert (after["debt"] <= after["income"] + 1e-9).all()


def test_few_who_can_be_helped_are_flagged():
    held = ActionSet.from_data(TABLE, immutable=["home", "debt"])
    held.set("income", max_increase=12)
    strict = {**QUICK, "survival": 0.95}
    sizing = calibrate(LENDER, TABLE, PAID, actions=held, **strict)
    alone, l2 = sizing.to_frame().iloc[0], sizing.to_frame().loc["l2"]
    assert l2["helped"] < 0.5 * alone["helped"]
    assert l2["few_helped"]
    if l2["reaches"]:
        assert "Careful: fewer than half" in str(sizing)


def test_what_nobody_can_reach_is_said():
    held = ActionSet.from_data(TABLE, immutable=["home", "debt"])
    held.set("income", max_increase=4)
    hopeless = calibrate(
        LENDER, TABLE, PAID, actions=held, survival=0.99, families=["l1"], n_models=40
    )
    assert not hopeless.to_frame().loc["l1", "reaches"]
    with pytest.raises(ValueError, match=r"no family reaches a survival of 99%. The best is l1"):
        _ = hopeless.best
    assert "No family reaches" in str(hopeless)
    assert "none of them is enough" in repr(hopeless)


# --- other models, other thresholds ---


def test_the_model_s_own_threshold_is_the_goal():
    selection = pytest.importorskip("sklearn.model_selection")
    if not hasattr(selection, "FixedThresholdClassifier"):
        pytest.skip("before scikit-learn 1.5")
    base = make_pipeline(StandardScaler(), LogisticRegression())
    strict = selection.FixedThresholdClassifier(base, threshold=0.7).fit(X, Y)
    sizing = calibrate(strict, X, Y, **QUICK)
    assert sizing.n_people == (~strict.predict(X)).sum() > (~MODEL.predict(X)).sum()
    with pytest.raises(ValueError, match="below the model's own threshold"):
        calibrate(strict, X, Y, **QUICK, guarantee=0.5)
    tuned = selection.TunedThresholdClassifierCV(base, cv=2, thresholds=9).fit(X, Y)
    quick = {"families": ["l2"], "n_models": 20, "survival": 0.7, "confidence": 0.6}
    assert calibrate(tuned, X, Y, **quick).best.radius > 0.0


def test_a_guarantee_above_the_cutoff_leaves_less_to_the_set():
    plain = calibrate(MODEL, X, Y, **QUICK)
    sure = calibrate(MODEL, X, Y, **QUICK, guarantee=0.7)
    assert sure.best.radius < plain.best.radius
    assert sure.to_frame()["survival"].iloc[0] > plain.to_frame()["survival"].iloc[0]


def test_families_that_a_model_does_not_allow_are_left_out_and_said():
    model = make_pipeline(StandardScaler(), LinearSVC()).fit(X, Y)
    sizing = calibrate(model, X, Y, survival=0.8, confidence=0.8, n_models=20)
    assert list(sizing.left_out) == ["fisher"]
    assert "Not compared: fisher (LinearSVC has no likelihood" in str(sizing)
    with pytest.raises(ValueError, match="has no likelihood"):
        calibrate(model, X, Y, families=["fisher"], n_models=20, confidence=0.8)


def test_families_of_one_s_own():
    mine = ("mine", lambda radius: Ellipsoid(np.diag([1.0, 1.0, 1.0, 0.1]), radius))
    sizing = calibrate(MODEL, X, Y, **{**QUICK, "families": ["l1", mine]})
    assert list(sizing.to_frame().index) == [ALONE, "l1", "mine"]
    with pytest.raises(TypeError, match="the function of 'mine' returned 3"):
        calibrate(MODEL, X, Y, **{**QUICK, "families": [("mine", lambda radius: 3)]})


# --- time and past models ---


def test_past_models_play_today_in_turn():
    past = [
        make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X[k : k + 120], Y[k : k + 120])
        for k in range(0, 180, 30)
    ]
    with pytest.warns(UserWarning, match="the confidence can be at most 75%, not 95%"):
        sizing = calibrate(MODEL, X, Y, families=["l2"], survival=0.8, past_models=past)
    assert sizing.n_worlds == (3, 3)
    assert sizing.confidence == 0.75
    assert sizing.best.radius > 0.0
    with pytest.raises(ValueError, match="needs models trained on resamples"):
        calibrate(MODEL, X, Y, families=["bootstrap"], confidence=0.5, past_models=past)


def test_a_world_that_changes_needs_more():
    """The same rows in the order of a drift, and in any other order."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(2000, 2))
    order = np.arange(2000)
    labels = points @ [1.0, 1.0] + rng.logistic(size=2000) > order / 1000
    model = LogisticRegression().fit(points, labels)
    asked = {"families": ["l2"], "survival": 0.8, "confidence": 0.6, "n_periods": 9}
    changing = calibrate(model, points, labels, time=order, **asked)
    still = calibrate(model, points, labels, time=rng.permutation(2000), **asked)
    assert changing.n_worlds == (4, 4)
    assert changing.to_frame()["survival"].iloc[0] < still.to_frame()["survival"].iloc[0]
    assert changing.chosen.radius > still.chosen.radius


# --- what is refused ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"survival": 1.0}, "survival = 1.0"),
        ({"confidence": 0.0}, r"confidence = 0\.0"),
        ({"n_models": 3}, "n_models = 3 is not allowed"),
        ({"families": ["l7"]}, "families: 'l7' is not known; available: margin, l1,"),
        ({"families": "l1"}, "families = 'l1' is not allowed"),
        ({"families": ["l1", "l1"]}, "'l1' appears twice"),
        ({"how": "thirds"}, "how = 'thirds'"),
        ({"time": [1, 2]}, r"time has shape \(2,\), expected \(300,\)"),
        ({"time": np.arange(N), "n_periods": 2}, "n_periods = 2"),
        ({"time": np.arange(N), "past_models": [MODEL]}, "give only one of them"),
        ({"past_models": []}, "past_models: 0 is too few"),
        ({"past_models": [MODEL, 3]}, r"past_models\[1\]"),
        ({"y": Y[:7]}, r"y has shape \(7,\), expected \(300,\)"),
        ({"y": np.ones(N, dtype=bool)}, "y holds only one class, True"),
        ({"y": np.where(Y, "a", "b")}, "does not hold the classes"),
        ({"X": np.where(np.arange(3 * N).reshape(N, 3) == 12, np.nan, X)}, "X"),
        ({"model": DecisionTreeClassifier().fit(X, Y)}, "not linear in its score"),
        ({"time": np.sort(Y)[::-1].argsort(), "n_periods": 150}, "has only one class"),
    ],
)
def test_wrong_arguments_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        calibrate(**{"model": MODEL, "X": X, "y": Y, **arguments})


def test_nobody_denied_is_said():
    approved = X[MODEL.predict(X)]
    with pytest.raises(ValueError, match=f"approves all {len(approved)} rows of X, so nobody"):
        calibrate(MODEL, approved, Y[MODEL.predict(X)])


# --- the promise ---


def fallen_short(truth, n, repetitions, n_fresh, **arguments):
    """Count how often the promise was broken: in truth, on models of fresh samples."""
    short = 0
    for k in range(repetitions):
        rng = np.random.default_rng(1000 + k)

        def draw(rng=rng):
            points = 3.0 * rng.normal(size=(n, len(truth))) + 1.0
            return points, (points - 1.0) / 3.0 @ truth + rng.logistic(size=n) > 0.3

        points, labels = draw()
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(points, labels)
        best = calibrate(model, points, labels, survival=0.9, random_state=k, **arguments).best
        encoded, today = model[0].transform(points), model[-1]
        result = holdfast.solve(
            encoded[~model.predict(points)],
            today.coef_[0],
            today.intercept_[0],
            robust_to=best,
            guarantee=0.5,
        )
        after = model[0].inverse_transform(result.recourse_array[np.isfinite(result.cost)])
        fresh = [clone(model).fit(*draw()).predict(after).mean() for _ in range(n_fresh)]
        short += np.mean(fresh) < 0.9
    return short


def test_the_promise_holds_on_fresh_samples():
    """95 % confidence: of six, more than two fall short twice in a thousand times."""
    few = {"families": ["l2"], "n_models": 40}
    short = fallen_short(np.array([1.0, -0.8, 0.5, 0.0]), 250, 6, 30, **few)
    assert short <= binom.ppf(0.99, 6, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "n"),
    [
        ([1.0, -0.8, 0.5, 0.0], 250),
        # all alike: whichever a model takes for the best, it takes it for better than it is
        ([0.5] * 8, 300),
    ],
)
def test_the_promise_holds_on_fresh_samples_for_all_families(truth, n):
    short = fallen_short(np.array(truth), n, 50, 100)
    assert short <= binom.ppf(0.99, 50, 0.05)


def test_resamples_that_read_other_columns_are_not_drawn_again():
    """Of medians that vary, only today's own would be left: then nothing varies any more."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.normal(size=(300, 2)).round(1), columns=["a", "b"])
    good = table["a"] + table["b"] + rng.logistic(size=300) > 0.0
    table.loc[rng.choice(300, size=20, replace=False), "a"] = np.nan
    imputed = make_pipeline(
        SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression()
    )
    asked = {"families": ["fisher"], "n_models": 30, "confidence": 0.8, "random_state": 0}
    with pytest.raises(ValueError, match="FrozenEstimator to keep it; an imputer can also tell"):
        calibrate(imputed.fit(table, good), table, good, **asked)
    marked = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), StandardScaler(), LogisticRegression()
    )
    assert calibrate(marked.fit(table, good), table, good, **asked).families
