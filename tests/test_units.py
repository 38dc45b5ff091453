"""The unit of cost does not matter: the same recourse in cents, in dollars and in millions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from discrete_problems import random_discrete
from problems import EXPONENTS, random_problem
from test_linked import random_links

from holdfast import NormBall, Status, frontier, solve
from holdfast.continuous.solve import solve_problem
from holdfast.discrete import DiscreteProblem, Links, solve_discrete, solve_linked
from holdfast.problem import RecourseProblem

FACTORS = (1e-12, 1e-10, 1e-9, 1e-4, 1e5, 1e12)


def dearer(problem: RecourseProblem, factor: float) -> RecourseProblem:
    return replace(problem, feature_costs=problem.feature_costs * factor)


def dearer_discrete(problem: DiscreteProblem, factor: float) -> DiscreteProblem:
    return replace(
        problem,
        base=dearer(problem.base, factor),
        level_costs=[costs * factor for costs in problem.level_costs],
        fixed_costs=None if problem.fixed_costs is None else problem.fixed_costs * factor,
    )


def goals(factor: float) -> list[tuple[dict[str, float], dict[str, float], float]]:
    """Return (the goal, the same in the other unit, what its prices are multiplied by)."""
    return [
        ({"guarantee": 0.7}, {"guarantee": 0.7}, factor),
        ({"cost_weight": 0.1}, {"cost_weight": 0.1 / factor}, 1.0),
    ]


@pytest.mark.parametrize("p", EXPONENTS)
def test_continuous(p):
    rng = np.random.default_rng([137, int(min(p, 99) * 10)])
    for factor in FACTORS:
        problem = random_problem(rng, p=p)
        for goal, same, prices in goals(factor):
            ours, theirs = (
                solve_problem(problem, **goal),
                solve_problem(dearer(problem, factor), **same),
            )
            np.testing.assert_array_equal(ours.status, theirs.status)
            np.testing.assert_allclose(theirs.price / prices, ours.price, rtol=1e-9)


@pytest.mark.parametrize("p", EXPONENTS)
def test_a_power_of_two_changes_no_bit(p):
    rng = np.random.default_rng([139, int(min(p, 99) * 10)])
    for power in (-900, -40, 1, 40, 900):
        problem = random_problem(rng, p=p)
        for goal, same, prices in goals(2.0**power):
            ours = solve_problem(problem, **goal)
            theirs = solve_problem(dearer(problem, 2.0**power), **same)
            np.testing.assert_array_equal(ours.recourse, theirs.recourse)
            np.testing.assert_array_equal(ours.lower_bound, theirs.lower_bound / prices)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_discrete(p):
    rng = np.random.default_rng([149, int(min(p, 99) * 10)])
    for _ in range(5):
        for factor in FACTORS:
            problem = random_discrete(rng, n=2, p=p, fees=bool(rng.random() < 0.3))
            for goal, same, prices in goals(factor):
                ours = solve_discrete(problem, **goal)
                theirs = solve_discrete(dearer_discrete(problem, factor), **same)
                np.testing.assert_array_equal(ours.status, theirs.status)
                np.testing.assert_allclose(theirs.price / prices, ours.price, rtol=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_linked(p):
    rng = np.random.default_rng([151, int(min(p, 99) * 10)])
    for factor in FACTORS:
        problem = random_discrete(rng, n=1, p=p, whole=1, continuous=2, groups=1)
        links = random_links(rng, problem)
        for goal, same, prices in goals(factor):
            ours = solve_linked(problem, links, **goal)
            theirs = solve_linked(dearer_discrete(problem, factor), links, **same)
            np.testing.assert_array_equal(ours.status, theirs.status)
            np.testing.assert_allclose(theirs.price / prices, ours.price, rtol=1e-8)


def whole(base: RecourseProblem, step: float = 0.0) -> DiscreteProblem:
    n, d = base.X.shape
    none = np.empty((n, 0), dtype=np.int64)
    return DiscreteProblem(base, np.full((1, d), step), np.zeros((1, d)), [], none, [])


def no_links(d: int) -> Links:
    return Links(np.ones((1, d)), np.full((1, 1), -np.inf), np.full((1, 1), np.inf))


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_costs_that_are_hardly_numbers(p):
    ball = NormBall(p, 0.2)
    arguments = {"robust_to": ball, "bounds": ([0.0, 0.0], [math.inf, 3.0])}
    usual = solve(
        [[0.5, 1.0]], [1.0, 0.5], -4.0, feature_costs=[1.0, 0.7], guarantee=0.6, **arguments
    )
    tiny = solve(
        [[0.5, 1.0]], [1.0, 0.5], -4.0, feature_costs=[1e-310, 0.7e-310], guarantee=0.6, **arguments
    )
    assert tiny.status[0] is Status.OPTIMAL
    np.testing.assert_allclose(tiny.recourse, usual.recourse, rtol=1e-9)
    priced = solve(
        [[0.5, 1.0]],
        [1.0, 0.5],
        -4.0,
        feature_costs=[1e-310, 0.7e-310],
        cost_weight=1.0,
        **arguments,
    )
    # a weight times such a cost is hardly a number any more, and that is said
    assert priced.status[0] is Status.INVALID_INPUT
    assert "cost" in priced.explain(0)
    curve = frontier([0.5, 1.0], [1.0, 0.5], -4.0, feature_costs=[1e-310, 0.7e-310], **arguments)
    np.testing.assert_allclose(curve.at_guarantee(0.6).recourse[0], usual.recourse[0], rtol=1e-9)
    discrete = solve_discrete(whole(tiny.problem), guarantee=0.6)
    assert discrete.status[0] is Status.OPTIMAL
    np.testing.assert_allclose(discrete.recourse, usual.recourse, rtol=1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_costs_too_far_apart_are_said_to_be(p):
    arguments = {"robust_to": NormBall(p, 0.2), "feature_costs": [1e-310, 1.0]}
    for goal in ({"guarantee": 0.6}, {"cost_weight": 0.1}):
        result = solve([[0.5, 1.0]], [1.0, 0.5], -4.0, **arguments, **goal)
        assert result.status[0] is Status.INVALID_INPUT
        assert "costs of x0 and x1 differ too much" in result.explain(0)
        problem = whole(result.problem)
        assert solve_discrete(problem, **goal).status[0] is Status.INVALID_INPUT
        assert solve_linked(problem, no_links(2), **goal).status[0] is Status.INVALID_INPUT
    result = solve(
        [[0.5]], [1.0], -4.0, robust_to=NormBall(p, 0.2), feature_costs=[1e-300], cost_weight=1e-300
    )
    assert result.status[0] is Status.INVALID_INPUT
    assert "the cost weight times the cost is too large or too small" in result.explain(0)


def test_one_nearly_free_feature_cuts_nobody_off():
    base = RecourseProblem.build(
        [[0.0, 0.0]],
        [1.0, 0.5],
        -3.0,
        robust_to=NormBall(2, 0.0),
        feature_costs=[1.0, 1e-9],
        bounds=([0.0, 0.0], [10.0, 1.0]),
    )
    ours = solve_discrete(whole(base), guarantee=0.5)
    assert ours.status[0] is Status.OPTIMAL
    assert ours.cost[0] == pytest.approx(2.5)
    ours = solve_discrete(whole(base, 0.5), guarantee=0.5)
    assert ours.recourse.tolist() == [[2.5, 1.0]]


def raw_units(rng: np.random.Generator, **fixed) -> DiscreteProblem:
    """Return a random problem whose numbers are in units of very different size."""
    problem = random_discrete(rng, n=1, **fixed)
    base, numbers = problem.base, problem.number_columns
    units = np.ones(base.n_features)
    units[numbers] = 10.0 ** rng.uniform(-5, 5, size=numbers.size)
    costs = 10.0 ** rng.uniform(-3, 3, size=base.n_features)
    scale = base.robust_to.feature_scale(base.n_features) / units
    other = RecourseProblem.build(
        base.X * units,
        base.coef / units,
        base.intercept,
        robust_to=replace(base.robust_to, scale=scale),
        feature_costs=base.feature_costs * costs / units,
        bounds=(base.lower * units, base.upper * units),
    )
    return replace(problem, base=other, step=problem.step * units, anchor=problem.anchor * units)


@pytest.mark.parametrize("goal", [{"guarantee": 0.6}, {"cost_weight": 0.1}])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_links_that_link_nothing_are_the_search(p, goal):
    rng = np.random.default_rng([157, int(min(p, 9)), len(goal)])
    proven = rows = 0
    for k in range(60):
        fixed = {"fees": k % 3 == 1, "max_changes": 2 if k % 3 == 2 else None}
        problem = raw_units(rng, p=p, whole=k % 2, continuous=2, groups=k % 2, **fixed)
        d = problem.base.n_features
        ours, theirs = solve_linked(problem, no_links(d), **goal), solve_discrete(problem, **goal)
        if k % 6 == 0:  # nothing discrete at all
            exact = solve_problem(problem.base, **goal)
            np.testing.assert_allclose(theirs.price, exact.price, rtol=1e-9)
        rows += 1
        proven += ours.status[0].is_proven or ours.status[0] is Status.INFEASIBLE
        # a proof is never false, whatever else
        assert ours.lower_bound[0] <= theirs.price[0] * (1 + 1e-9) + 1e-12
        if ours.status[0].is_proven:
            assert ours.price[0] == pytest.approx(theirs.price[0], rel=2e-9)
        if ours.status[0] is Status.INFEASIBLE:
            assert np.isinf(theirs.price[0])
    assert proven >= 0.8 * rows


def test_an_answer_far_away_is_found():
    base = RecourseProblem.build(
        [[0.0, 0.0]], [1e-4, 1.0], -3.0, robust_to=NormBall(1, 0.0), feature_costs=[1e-6, 1.0]
    )
    for problem in (whole(base), replace(whole(base), fixed_costs=np.full((1, 2), 1e-3))):
        ours = solve_linked(problem, no_links(2), guarantee=0.5)
        assert ours.status[0] is Status.OPTIMAL
        fee = 0.0 if problem.fixed_costs is None else 1e-3
        assert ours.cost[0] == pytest.approx(0.03 + fee)
        assert solve_discrete(problem, guarantee=0.5).cost[0] == pytest.approx(0.03 + fee)
