"""The answers against an independent convex solver, and against brute force on a grid."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import oracle, price_of
from problems import EXPONENTS, random_problem

from holdfast import Status
from holdfast.continuous.solve import solve_problem

seeds = st.integers(min_value=0, max_value=2**32 - 1)


def clarabel(problem, **goal):
    """Skip the rare problem that the oracle itself gives up on."""
    try:
        return oracle(problem, **goal)
    except cp.error.SolverError:
        assume(False)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
@given(seed=seeds, p=st.sampled_from(EXPONENTS), log_weight=st.floats(-2.5, 0.3))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_price_agrees_with_clarabel(loss, seed, p, log_weight):
    problem = random_problem(np.random.default_rng(seed), n=1, p=p, loss=loss)
    weight = 10.0**log_weight
    ours = solve_problem(problem, cost_weight=weight)
    theirs, _ = clarabel(problem, cost_weight=weight)
    assert ours.status[0].is_proven
    assert ours.price[0] == pytest.approx(theirs, rel=2e-6, abs=2e-6)
    assert ours.price[0] <= theirs + 2e-6 * (1 + abs(theirs))


@given(seed=seeds, p=st.sampled_from(EXPONENTS), tau=st.floats(0.05, 0.95))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_guarantee_agrees_with_clarabel(seed, p, tau):
    problem = random_problem(np.random.default_rng(seed), n=1, p=p)
    ours = solve_problem(problem, guarantee=tau)
    assume(not 1e6 < ours.cost[0] < np.inf)  # beyond the reach of an interior-point solver
    theirs, _ = clarabel(problem, target=np.log(tau / (1 - tau)))
    if ours.status[0] is Status.INFEASIBLE:
        # a radius that equals the length of the model is infeasible by a hair: the oracle may
        # wander off to enormous costs instead
        assert theirs > 1e5
    else:
        assert ours.cost[0] == pytest.approx(theirs, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("d", [1, 2])
def test_price_is_the_least_on_a_grid(d, p):
    rng = np.random.default_rng(7 * d + int(min(p, 99)))
    for _ in range(6):
        problem = random_problem(rng, n=1, d=d, p=p)
        weight = 10.0 ** rng.uniform(-1.5, 0.0)
        ours = solve_problem(problem, cost_weight=weight)
        best = ours.recourse[0]
        width = 1.5 * np.maximum(np.abs(best - problem.X[0]), 1.0 / problem.feature_costs[0])
        steps = 4001 if d == 1 else 301
        axes = [np.linspace(best[j] - width[j], best[j] + width[j], steps) for j in range(d)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, d)
        grid = np.clip(grid, problem.lower[0], problem.upper[0])
        prices = price_of(problem, 0, grid, weight)
        assert ours.price[0] <= prices.min() + 1e-12
        # the grid comes near: a step changes the price by at most its slope times the step
        slope = np.abs(
            problem.coef[0]
        ) + problem.robust_to.radius * problem.robust_to.feature_scale(d)
        step = (2 * width / (steps - 1)) @ (slope + weight * problem.feature_costs[0])
        assert prices.min() <= ours.price[0] + step


@pytest.mark.parametrize("p", EXPONENTS)
def test_squared_error_is_globally_optimal_on_a_grid(p):
    """Not convex in the score: a local method would stop too early on some of these."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        problem = random_problem(rng, n=1, d=1, p=p, loss="squared_error")
        weight = 10.0 ** rng.uniform(-2.0, -0.5)
        ours = solve_problem(problem, cost_weight=weight)
        start = problem.X[0, 0]
        span = 1.5 / (weight * problem.feature_costs[0, 0])  # beyond it, the cost alone exceeds 1
        x = np.clip(
            np.linspace(start - span, start + span, 400_001),
            problem.lower[0, 0],
            problem.upper[0, 0],
        )
        score = problem.robust_to.worst_score(x[:, None], problem.coef, problem.intercept)
        price = (1 / (1 + np.exp(score))) ** 2
        price += weight * problem.feature_costs[0, 0] * np.abs(x - start)
        assert ours.price[0] <= price.min() + 1e-12
        assert ours.price[0] == pytest.approx(price.min(), abs=1e-4)
