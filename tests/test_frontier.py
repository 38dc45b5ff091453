"""The whole curve: convex, exact at its breakpoints, and in agreement with every single answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from problems import EXPONENTS, random_problem

import holdfast
from holdfast import NormBall, Status
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.solve import solve_problem
from holdfast.problem.losses import LOSSES

SHARP = (1.0, np.inf)


@pytest.mark.parametrize("p", EXPONENTS)
def test_every_tau_and_cost_weight_is_read_off(p):
    rng = np.random.default_rng(0)
    for _ in range(12):
        problem = random_problem(rng, n=3, p=p)
        tau, weight = rng.uniform(0.1, 0.9), 10.0 ** rng.uniform(-2.5, 0)
        sure = solve_problem(problem, guarantee=tau)
        priced = solve_problem(problem, cost_weight=weight)
        for i in range(3):
            curve = priced.frontier(i)
            if sure.status[i] is Status.INFEASIBLE:
                with pytest.raises(ValueError, match="out of reach"):
                    curve.at_guarantee(tau)
            elif sure.cost[i] < 1e6:
                read = curve.at_guarantee(tau)
                assert read.cost == pytest.approx(sure.cost[i], rel=1e-8, abs=1e-9)
            read = curve.at_cost_weight(weight)
            price = np.logaddexp(0, -read.worst_case_score) + weight * read.cost
            assert price == pytest.approx(priced.price[i], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("p", SHARP)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_is_read_off_the_same_breakpoints(p, loss):
    rng = np.random.default_rng(1)
    for _ in range(10):
        problem = random_problem(rng, n=2, p=p, loss=loss)
        weight = 10.0 ** rng.uniform(-2.5, 0)
        priced = solve_problem(problem, cost_weight=weight)
        for i in range(2):
            read = Frontier(problem.row(i)).at_cost_weight(weight, loss=loss)
            price = float(LOSSES[loss].value(read.worst_case_score)) + weight * read.cost
            assert price == pytest.approx(priced.price[i], rel=1e-9, abs=1e-10)


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
            read = curve.at_score(middle)
            tau = 1 / (1 + np.exp(-middle))
            if 1e-6 < tau < 1 - 1e-6:
                sure = solve_problem(problem, guarantee=tau)
                assert read.cost == pytest.approx(sure.cost[0], rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("p", EXPONENTS)
def test_points_of_the_curve_have_the_score_and_cost_they_claim(p):
    rng = np.random.default_rng(3)
    for _ in range(10):
        problem = random_problem(rng, n=1, p=p)
        curve = Frontier(problem)
        end = min(curve.max_score, curve.start_score + 5)
        for t in np.linspace(curve.start_score, end, 7)[:-1]:
            read = curve.at_score(t)
            score = problem.robust_to.worst_score(
                read.recourse[None], problem.coef, problem.intercept
            )[0]
            cost = np.abs(read.recourse - problem.X[0]) @ problem.feature_costs[0]
            tolerance = 1e-9 * (1 + np.abs(read.recourse * problem.coef[0]).sum())
            assert score == pytest.approx(read.worst_case_score, abs=tolerance)
            assert cost == pytest.approx(read.cost, rel=1e-9, abs=1e-9)


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
        assert curve.at_guarantee(0.5).cost == pytest.approx(expected)
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
