"""A fixed cost of touching a number at all: against every choice tried, HiGHS, and by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from discrete_problems import EXPONENTS, by_force, permuted, random_discrete
from test_discrete import check_against_highs, check_by_force, goal_of
from test_linked import by_force as linked_by_force
from test_linked import random_links

from holdfast import NormBall, Status
from holdfast.discrete import DiscreteProblem, check_answer, solve_discrete, solve_linked
from holdfast.problem import RecourseProblem

FOUND = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)


@pytest.mark.parametrize("p", EXPONENTS)
def test_agrees_with_every_choice_tried(p):
    rng = np.random.default_rng([101, int(min(p, 99) * 10)])
    shapes = [{}, {"continuous": 4, "whole": 0}, {"continuous": 3, "max_changes": 2}]
    assert sum(check_by_force(rng, p=p, fees=True, **shapes[k % 3]) for k in range(60)) == 120


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, np.inf])
def test_agrees_with_highs(p, mode):
    rng = np.random.default_rng([103, int(min(p, 9)), len(mode)])
    for _ in range(12):
        check_against_highs(rng, p, mode, fees=True, whole=3, continuous=4, groups=2)


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_links_know_it(p, mode):
    rng = np.random.default_rng([107, int(min(p, 9)), len(mode)])
    goal = {"guarantee": 0.35} if mode == "guarantee" else {"cost_weight": 0.2}
    solved = proven = 0
    for _ in range(10):
        problem = random_discrete(
            rng, n=1, p=p, whole=1, continuous=2, groups=1, reach=1, fees=True
        )
        links = random_links(rng, problem)
        ours, theirs = solve_linked(problem, links, **goal), linked_by_force(problem, links, goal)
        if math.isfinite(theirs):
            solved += 1
            proven += ours.status[0] in FOUND
            assert ours.price[0] == pytest.approx(theirs, rel=1e-6, abs=1e-6)
    assert solved >= 3
    assert proven >= 0.7 * solved


def two_ways(fees, **more) -> DiscreteProblem:
    """Two numbers that each could do it alone, the first at half the cost."""
    base = RecourseProblem.build(
        [[0.0, 0.0]], [1.0, 1.0], -2.0, robust_to=NormBall(2, 0.0), feature_costs=[1.0, 2.0], **more
    )
    none = np.empty((1, 0), dtype=np.int64)
    return DiscreteProblem(base, np.zeros((1, 2)), np.zeros((1, 2)), [], none, [], None, fees)


def test_by_hand():
    def solved(fees, **more):
        answer = solve_discrete(two_ways(fees, **more), guarantee=0.5)
        assert answer.status[0] is Status.OPTIMAL
        return answer.recourse[0].tolist(), float(answer.cost[0])

    assert solved(None) == ([pytest.approx(2.0), 0.0], pytest.approx(2.0))
    assert solved(np.array([[1.5, 0.0]])) == ([pytest.approx(2.0), 0.0], pytest.approx(3.5))
    assert solved(np.array([[2.5, 0.0]])) == ([0.0, pytest.approx(2.0)], pytest.approx(4.0))
    both = solved(np.array([[0.5, 0.25]]), bounds=([0.0, 0.0], [1.5, 5.0]))
    assert both == ([pytest.approx(1.5), pytest.approx(0.5)], pytest.approx(3.25))
    other = solved(np.array([[2.0, 0.25]]), bounds=([0.0, 0.0], [1.5, 5.0]))
    assert other == ([0.0, pytest.approx(2.0)], pytest.approx(4.25))


def test_a_fee_of_nothing_is_none():
    rng = np.random.default_rng(109)
    for _ in range(20):
        problem = random_discrete(rng, n=3)
        goal = goal_of(rng, problem)
        ours = solve_discrete(problem, **goal)
        zero = replace(problem, fixed_costs=np.zeros((1, problem.base.n_features)))
        np.testing.assert_array_equal(solve_discrete(zero, **goal).recourse, ours.recourse)


def test_identities():
    """The order of columns does not matter, and no fee makes anything cheaper."""
    rng = np.random.default_rng(113)
    for _ in range(20):
        problem = random_discrete(rng, n=3, fees=True)
        goal = goal_of(rng, problem)
        ours = solve_discrete(problem, **goal)
        other = solve_discrete(permuted(rng, problem), **goal)
        np.testing.assert_allclose(other.price, ours.price, rtol=1e-8, atol=1e-9)
        free = solve_discrete(replace(problem, fixed_costs=None), **goal)
        assert np.all(free.price <= ours.price * (1 + 1e-9) + 1e-9)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="fixed_costs has shape"):
        solve_discrete(two_ways(np.zeros((1, 3))), guarantee=0.5)
    for wrong in (-1.0, np.nan, np.inf):
        answer = solve_discrete(two_ways(np.array([[wrong, 0.0]])), guarantee=0.5)
        assert answer.status[0] is Status.INVALID_INPUT


def test_the_check_knows_it():
    problem = two_ways(np.array([[1.5, 0.0]]))
    answer = solve_discrete(problem, guarantee=0.5)
    with pytest.raises(AssertionError, match="cost differs"):
        check_answer(problem, replace(answer, cost=answer.cost - 1.5))
    assert by_force(problem, 0, guarantee=0.5) == pytest.approx(3.5)
