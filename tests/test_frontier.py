"""The whole curve: convex, exact at its breakpoints, and in agreement with every single answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from problems import EXPONENTS, random_problem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

import holdfast
from holdfast import NormBall, Status
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.solve import solve_problem
from holdfast.problem.losses import LOSSES

SHARP = (1.0, np.inf)


def read_off(table, score):
    """Cost of a worst-case score, interpolated between the breakpoints."""
    scores, costs = table["worst_case_score"].to_numpy(), table["cost"].to_numpy()
    if score <= scores[-1]:
        return np.interp(score, scores, costs)
    return costs[-1] + table["multiplier"].iloc[-1] * (score - scores[-1])


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_price_and_the_guarantee_are_points_of_one_curve(p):
    rng = np.random.default_rng(0)
    for _ in range(12):
        problem = random_problem(rng, n=3, p=p)
        tau, weight = rng.uniform(0.1, 0.9), 10.0 ** rng.uniform(-2.5, 0)
        sure = solve_problem(problem, guarantee=tau)
        priced = solve_problem(problem, cost_weight=weight)
        for i in range(3):
            curve = priced.frontier(i)
            assert (curve.at_guarantee(tau).status[0] is Status.INFEASIBLE) == (
                sure.status[i] is Status.INFEASIBLE
            )
            here = curve.at_score(priced.worst_case_score[i])
            assert here.cost[0] == pytest.approx(priced.cost[i], rel=1e-6, abs=1e-7)
            if p in SHARP and sure.cost[i] < 1e6:
                cost = read_off(curve.to_frame(), max(problem.loss.score(tau), curve.start_score))
                assert sure.cost[i] == pytest.approx(cost, rel=1e-8, abs=1e-9)
            again = curve.at_cost_weight(weight).price[0]
            assert again == pytest.approx(priced.price[i], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("p", SHARP)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_has_its_answer_on_the_same_breakpoints(p, loss):
    rng = np.random.default_rng(1)
    for _ in range(10):
        problem = random_problem(rng, n=2, p=p, loss=loss)
        weight = 10.0 ** rng.uniform(-2.5, 0)
        priced = solve_problem(problem, cost_weight=weight)
        for i in range(2):
            curve = Frontier(problem.row(i))
            table, phi = curve.to_frame(), LOSSES[loss].value
            score = priced.worst_case_score[i]
            assert priced.cost[i] == pytest.approx(read_off(table, score), rel=1e-8, abs=1e-8)
            for t in np.linspace(curve.start_score, min(curve.max_score, score + 10), 300):
                price = float(phi(t)) + weight * read_off(table, t)
                assert price >= priced.price[i] - 1e-9 * (1 + priced.price[i])
            plain = Frontier(replace(problem.row(i), loss=LOSSES["logistic"]))
            again = plain.at_cost_weight(weight, loss=loss)
            assert again.price[0] == pytest.approx(priced.price[i])


@pytest.mark.parametrize("p", SHARP)
def test_breakpoints_are_exact_and_convex(p):
    rng = np.random.default_rng(2)
    for _ in range(40):
        problem = random_problem(rng, n=1, p=p)
        curve = Frontier(problem)
        table = curve.to_frame()
        recourse = table.filter(like="recourse.").to_numpy()
        score = problem.robust_to.worst_score(recourse, problem.coef, problem.intercept)
        np.testing.assert_allclose(score, table["worst_case_score"], atol=1e-12)
        cost = np.abs(recourse - problem.X) @ problem.feature_costs[0]
        np.testing.assert_allclose(cost, table["cost"], atol=1e-12)
        # strictly rising, but that the way to an endless ray may have the slope of the ray
        rises = np.diff(table["multiplier"])
        assert np.all(rises[:-1] > 0)
        assert np.all(rises >= 0)
        assert np.all((problem.lower <= recourse) & (recourse <= problem.upper))
        slopes = np.diff(table["cost"]) / np.diff(table["worst_case_score"])
        np.testing.assert_allclose(slopes, table["multiplier"][: len(slopes)], rtol=1e-6)
        for k in range(len(table) - 1):  # the middle of a piece costs what the solver says
            middle = table["worst_case_score"][k : k + 2].mean()
            cost = read_off(table, middle)
            assert curve.at_score(middle).cost[0] == pytest.approx(cost, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("p", EXPONENTS)
def test_points_of_the_curve_have_the_score_and_cost_they_claim(p):
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = random_problem(rng, n=1, p=p)
        curve = Frontier(problem)
        end = min(curve.max_score, curve.start_score + 5)
        for t in np.linspace(curve.start_score, end, 7)[:-1]:
            read = curve.at_score(t)
            x = read.recourse
            score = problem.robust_to.worst_score(x, problem.coef, problem.intercept)[0]
            cost = np.abs(x[0] - problem.X[0]) @ problem.feature_costs[0]
            tolerance = 1e-9 * (1 + np.abs(x[0] * problem.coef[0]).sum())
            assert score >= t
            assert score == pytest.approx(read.worst_case_score[0], abs=tolerance)
            assert cost == pytest.approx(read.cost[0], rel=1e-9, abs=1e-9)


def test_the_curve_is_convex_and_rising():
    curve = holdfast.frontier(
        [0.0, 2.0, -1.0], [1.0, -0.5, 0.3], -1.0, robust_to=NormBall(1.5, 0.3)
    )
    table = curve.sample(60)
    assert np.all(np.diff(table["cost"]) > 0)
    assert np.all(np.diff(table["multiplier"]) >= -1e-12)


def test_curved_frontier_has_no_breakpoints_and_says_so():
    curve = holdfast.frontier([0.0], [1.0], robust_to=NormBall(2, 0.1))
    with pytest.raises(ValueError, match="curved"):
        curve.to_frame()


def test_frontier_of_an_unusable_row_is_refused():
    with pytest.raises(ValueError, match="no frontier"):
        holdfast.frontier([np.nan], [1.0], robust_to=NormBall(2, 0.1))


def test_names_are_aligned_as_in_solve():
    people = pd.DataFrame({"income": [False], "debt": [2.0]}, index=["ann"])  # mixed: an object row
    coef = pd.Series({"debt": -0.5, "income": 1.0})
    expected = holdfast.solve(people, coef, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5).cost[0]
    for point in (people, people.loc["ann"]):
        curve = holdfast.frontier(point, coef, -1.0, robust_to=NormBall(1, 0.1))
        assert curve.at_guarantee(0.5).cost[0] == pytest.approx(expected)
        assert "recourse.income" in curve.to_frame().columns


@pytest.mark.parametrize("p", EXPONENTS)
def test_a_sample_has_both_ends(p):
    bounds = ([-1.0, -1.0], [1.0, 2.0])
    curve = holdfast.frontier(
        [0.0, 1.0], [1.0, -0.5], -1.0, robust_to=NormBall(p, 0.1), bounds=bounds
    )
    table = curve.sample(9)
    assert len(table) == 9
    assert table["cost"].iloc[0] == 0.0
    assert table["worst_case_score"].iloc[-1] == pytest.approx(curve.max_score)
    assert np.isfinite(table["cost"]).all()
    assert curve.is_piecewise_linear == (p in SHARP)


def test_points_of_a_result_s_curve_know_the_model_s_threshold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.logistic(size=300) > 0.0
    fitted = LogisticRegression().fit(X, y)
    for threshold in (0.3, 0.7):
        model = FixedThresholdClassifier(fitted, threshold=threshold).fit(X, y)
        denied = X[~model.predict(X)][:3]
        found = holdfast.find_recourse(denied, model, robust_to=NormBall(1, 0.05), guarantee=0.8)
        for guarantee in (0.35, 0.55, 0.75):
            point = found.frontier(0).at_guarantee(guarantee)
            is_approved = bool(model.predict(point.recourse_array)[0])
            assert (point.status[0] is Status.STILL_REFUSED) == (not is_approved)
