"""Regressions that were fitted with statsmodels: read, compared, and refused by name."""

from __future__ import annotations

import copy
import io
import itertools

import numpy as np
import pandas as pd
import pytest

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
from holdfast.models import LinearModel, as_model
from holdfast.models.encoding import Encoding

sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
smf = pytest.importorskip("statsmodels.formula.api", reason="statsmodels is not installed")

RNG = np.random.default_rng(8)
N = 400
PEOPLE = pd.DataFrame(
    {"months": RNG.integers(0, 12, N), "cards": RNG.integers(0, 6, N)},
    index=[f"p{k}" for k in range(N)],
)
PAID = (0.4 * PEOPLE["months"] - 0.7 * PEOPLE["cards"] + RNG.logistic(size=N) > 0.5).astype(int)
DESIGN = sm.add_constant(PEOPLE)
BINOMIAL = sm.families.Binomial
ACTIONS = ActionSet.from_data(PEOPLE)
EVERYTHING = pd.DataFrame(list(itertools.product(range(12), range(6))), columns=PEOPLE.columns)
RADIUS = 0.02
BALL = NormBall(1, RADIUS)


def table_of_all():
    return PEOPLE.assign(paid=PAID)


FITTED = {
    "logit": lambda: sm.Logit(PAID, DESIGN).fit(disp=0),
    "no constant": lambda: sm.Logit(PAID, PEOPLE).fit(disp=0),
    "constant last": lambda: sm.Logit(PAID, sm.add_constant(PEOPLE, prepend=False)).fit(disp=0),
    "penalised": lambda: sm.Logit(PAID, DESIGN).fit_regularized(alpha=1.0, disp=0),
    "penalised glm": lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL()).fit_regularized(
        alpha=0.01, L1_wt=0.0
    ),
    "probit": lambda: sm.Probit(PAID, DESIGN).fit(disp=0),
    "glm": lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL()).fit(),
    "glm probit": lambda: sm.GLM(
        PAID, DESIGN, family=BINOMIAL(link=sm.families.links.Probit())
    ).fit(),
    "formula": lambda: smf.logit("paid ~ cards + months", data=table_of_all()).fit(disp=0),
    "formula of a glm": lambda: smf.glm(
        "paid ~ months + cards", data=table_of_all(), family=BINOMIAL()
    ).fit(),
}


def asked(results, rows):
    """What the results themselves say of rows without a constant, by hand."""
    if getattr(results.model, "formula", None):
        return np.asarray(results.predict(rows))
    rows = rows.assign(const=1.0)[results.model.exog_names]
    return np.asarray(results.predict(rows))


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize("name", list(FITTED))
def test_results_are_read_and_advised_as_any_linear_model(name, favorable):
    results = FITTED[name]()
    adapted = as_model(results, favorable_class=favorable)
    assert isinstance(adapted, LinearModel)
    assert adapted.loss == ("probit" if "probit" in name else "logistic")
    assert set(adapted.feature_names) == {"months", "cards"}
    assert (adapted.intercept == 0.0) == (name == "no constant")
    second = asked(results, PEOPLE)
    own = second if favorable == 1 else 1.0 - second
    loss = adapted.choose_loss(None)
    np.testing.assert_allclose(loss.probability(adapted.score(adapted.encode(PEOPLE))), own)

    people = PEOPLE[own <= 0.5][:15]
    guarantee = 0.651
    given = {"robust_to": BALL, "guarantee": guarantee, "favorable_class": favorable}
    advice = RobustRecourse(results, actions=ACTIONS, **given).recommend(people)
    table = advice.to_frame()
    # by force: an L1 ball moves one coefficient, or the intercept, by its radius
    encoded = EVERYTHING[adapted.feature_names].to_numpy(dtype=float)
    worst = adapted.score(encoded) - RADIUS * np.maximum(np.abs(encoded).max(axis=1), 1.0)
    good = EVERYTHING[loss.probability(worst) >= guarantee]
    for label, cost in zip(people.index, table["cost"], strict=True):
        costs = [raw_cost(ACTIONS, people.loc[label], row) for _, row in good.iterrows()]
        assert cost == pytest.approx(min(costs), rel=1e-9)
    after = asked(results, advice.after())
    after = after if favorable == 1 else 1.0 - after
    assert (after >= guarantee).all()
    np.testing.assert_allclose(table["current_validity"], after)
    found = find_recourse(people, results, **given)
    assert (found.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(found.initial_validity, own[own <= 0.5][:15])


def test_people_may_come_with_the_constant_or_without():
    results = FITTED["logit"]()
    given = {"robust_to": BALL, "guarantee": 0.6, "favorable_class": 1}
    people = PEOPLE[:10]
    alone = find_recourse(people, results, **given)
    beside = find_recourse(DESIGN[:10], results, **given)
    np.testing.assert_array_equal(alone.recourse_array, beside.recourse_array)
    recourse = RobustRecourse(results, actions=ACTIONS, **given)
    a, b = recourse.recommend(people), recourse.recommend(DESIGN[:10])
    pd.testing.assert_frame_equal(a.to_frame()[["cost"]], b.to_frame()[["cost"]])
    encoding = Encoding.of(results, favorable_class=1)
    assert encoding.names == ["months", "cards"]
    with pytest.raises(ValueError, match=r"unknown \['height'\]"):
        find_recourse(people.assign(height=1.0), results, **given)


def test_arrays_go_by_the_names_that_statsmodels_gives():
    results = sm.Logit(PAID.to_numpy(), DESIGN.to_numpy()).fit(disp=0)
    given = {"robust_to": BALL, "guarantee": 0.6, "favorable_class": 1}
    named = find_recourse(PEOPLE[:10], FITTED["logit"](), **given)
    found = find_recourse(PEOPLE[:10].to_numpy(), results, **given)
    np.testing.assert_allclose(found.recourse_array, named.recourse_array, atol=1e-9)
    with pytest.raises(ValueError, match="shape"):
        find_recourse(DESIGN[:10].to_numpy(), results, **given)
    table = PEOPLE.set_axis(["x1", "x2"], axis=1)
    recourse = RobustRecourse(results, actions=ActionSet.from_data(table), **given)
    assert (recourse.recommend(table[:10]).status != Status.INVALID_INPUT).all()
    with pytest.raises(ValueError, match=r"knows its columns by name: .* x1, x2"):
        recourse.recommend(table[:10].to_numpy())


def test_a_column_that_never_varied_is_no_intercept():
    """Only ones that are called a constant are one: people have whatever else was a column."""
    ones = PEOPLE.assign(branch=1.0)
    results = sm.Logit(PAID, ones).fit(disp=0)
    adapted = as_model(results, favorable_class=1)
    assert adapted.feature_names == ["months", "cards", "branch"]
    assert adapted.intercept == 0.0


def test_results_without_their_data_are_read():
    results, slim, nameless = (FITTED["logit"]() for _ in range(3))
    assert slim.model.exog_names == ["const", "months", "cards"]
    slim.remove_data()
    nameless.remove_data()
    with pytest.raises(ValueError, match="lost its column names along with its data"):
        as_model(nameless, favorable_class=1)
    stored = io.BytesIO()
    slim.save(stored)
    stored.seek(0)
    again = sm.load(stored)
    for other in (slim, again, copy.deepcopy(slim)):
        a, b = (as_model(each, favorable_class=1) for each in (results, other))
        np.testing.assert_array_equal(a.coef, b.coef)
        assert a.intercept == b.intercept
        find_recourse(PEOPLE[:5], other, robust_to=BALL, guarantee=0.6, favorable_class=1)


def test_the_favourable_class_must_be_said():
    with pytest.raises(ValueError, match="favorable_class=0 or favorable_class=1"):
        as_model(FITTED["logit"]())


def test_points_of_a_scorecard_and_those_of_a_probit():
    scale = Points(500, odds=1, double=40)
    given = {"robust_to": BALL, "actions": ACTIONS, "favorable_class": 1, "points": scale}
    advice = RobustRecourse(FITTED["glm"](), guarantee_points=540, **given).recommend(PEOPLE[:30])
    assert (advice.to_frame()["worst_case_points"] >= 540).all()
    with pytest.raises(ValueError, match="of the probit link are not linear in the score"):
        RobustRecourse(FITTED["probit"](), guarantee_points=540, **given).recommend(PEOPLE[:3])


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (lambda: sm.Logit(PAID, DESIGN, offset=np.ones(N)).fit(disp=0), "fitted with offset"),
        (
            lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL(), offset=np.ones(N)).fit(),
            "GLM was fitted with offset",
        ),
        (
            lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL(), freq_weights=np.full(N, 2.0)).fit(),
            "GLM was fitted with freq_weights",
        ),
        (
            lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL(), var_weights=np.full(N, 2.0)).fit(),
            "GLM was fitted with var_weights",
        ),
        (
            lambda: sm.GLM(PAID, DESIGN, family=sm.families.Poisson(), exposure=np.ones(N)).fit(),
            "family Poisson, which does not have two classes",
        ),
        (
            lambda: sm.GLM(PAID, DESIGN, family=BINOMIAL(link=sm.families.links.CLogLog())).fit(),
            "the link CLogLog; supported: Logit and Probit",
        ),
        (lambda: sm.OLS(PAID, DESIGN).fit(), "OLS is not supported; supported: Logit, Probit"),
        (lambda: sm.MNLogit(PAID, DESIGN).fit(disp=0), "MNLogit is not supported"),
        (
            lambda: smf.logit("paid ~ months + np.sqrt(cards)", data=table_of_all()).fit(disp=0),
            r"makes the column 'np.sqrt\(cards\)' from others",
        ),
        (
            lambda: smf.logit("paid ~ months * cards", data=table_of_all()).fit(disp=0),
            "makes the column 'months:cards' from others",
        ),
        (lambda: sm.Logit(PAID, DESIGN), "Logit is not fitted"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(fit, said):
    results = fit()
    for door in (
        lambda: as_model(results, favorable_class=1),
        lambda: find_recourse(PEOPLE, results, robust_to=BALL, guarantee=0.6, favorable_class=1),
        lambda: RobustRecourse(
            results, robust_to=BALL, actions=ACTIONS, guarantee=0.6, favorable_class=1
        ).recommend(PEOPLE),
    ):
        with pytest.raises(ValueError, match=said):
            door()


def test_they_cannot_be_fitted_again():
    results = FITTED["logit"]()
    with pytest.raises(ValueError, match="cannot be refitted to other rows"):
        calibrate(results, PEOPLE, PAID, favorable_class=1)
    with pytest.raises(ValueError, match="cannot be refitted to other rows"):
        sets.bootstrap(results, PEOPLE, PAID, favorable_class=1)
    with pytest.raises(ValueError, match="not fitted by minimising a loss that Holdfast knows"):
        sets.fisher(results, PEOPLE, favorable_class=1)


def test_results_that_are_misread_are_noticed():
    results = FITTED["logit"]()
    right = results.model.predict
    results.model.predict = lambda *rows, **settings: 0.99 * right(*rows, **settings)
    with pytest.raises(ValueError, match=r"gives a probability of .* StatsmodelsResults"):
        find_recourse(PEOPLE, results, robust_to=BALL, guarantee=0.6, favorable_class=1)
