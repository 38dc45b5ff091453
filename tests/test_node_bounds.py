"""A search node: its bound, against what is behind it; and the options that are dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from discrete_problems import random_discrete

from holdfast import NormBall
from holdfast.core.kinds import L1, LINF, kind_of, new_work
from holdfast.discrete import DiscreteProblem, Group
from holdfast.discrete.aim import question_of
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.domains import drop_dominated, open_domains
from holdfast.discrete.layout import Case, make_layout
from holdfast.discrete.relax import Dual, bound_node
from holdfast.discrete.rows import open_discrete_row
from holdfast.discrete.visit import list_candidates
from holdfast.problem import RecourseProblem
from holdfast.problem.goal import GUARANTEE, GoalNumbers
from holdfast.problem.outcome import FOUND


def bound_by_hand(relaxed, active, dual, changes: int, target: float, base: float) -> float:
    """Return the bound that the kept budgets, multiplier and charge give."""
    candidates, total, limited = (
        relaxed.candidates,
        dual.mu * (target - base),
        changes < active.size,
    )
    for b in range(active.size):
        values = []
        for k in range(candidates.start[b], candidates.start[b + 1]):
            value = candidates.cost[k] - dual.mu * candidates.score[k]
            value += relaxed.best_gammas[b] * candidates.size[k]
            charged = limited and active[b] == 0 and candidates.changed[k] == 1
            values.append(value + (dual.charge if charged else 0.0))
        total += min(values)
    return total - (dual.charge * changes if limited else 0.0)


def opened(problem, kind_and_ball, goal):
    """Load the only row of a problem and open its domains; return what the kernels work on."""
    kind, ball = kind_and_ball
    base, layout = problem.base, make_layout(problem)
    buffers = new_buffers(layout, base.n_features)
    assert open_discrete_row(base.rows(), layout, ball, 0, buffers) == FOUND
    case = Case(base.X[0], base.coef[0], base.intercept[0], ball, goal)
    asked = question_of(ball, layout, buffers, case, kind, 1.0, new_work(base))
    open_domains(buffers.data, layout.level_start, asked, 1e3, buffers.state)
    return layout, buffers, asked


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_budgets_and_charge_belong_to_the_bound(p):
    rng = np.random.default_rng([191, int(min(p, 9))])
    limited = 0
    for _ in range(600):
        problem = random_discrete(
            rng, n=1, p=p, whole=3, continuous=2, groups=2, max_changes=int(rng.integers(1, 4))
        )
        base = problem.base
        ball = base.robust_to.numbers(base.n_features)._replace(intercept_scale=0.0)
        goal = GoalNumbers(GUARANTEE, base.loss.code, float(rng.normal()) + 1.0)
        layout, buffers, asked = opened(problem, (kind_of(ball), ball), goal)
        state, relaxed = buffers.state, buffers.relaxed
        state.active[:] = rng.random(state.active.size) < 0.2
        changes = list_candidates(layout, buffers, asked)
        if changes < 0:
            continue
        guess = Dual(-math.inf, 1.0, 1.0, float(rng.exponential()), 1.0)
        dual = bound_node(relaxed, asked, guess, state.active, changes, 1e3)
        limited += changes < state.active.size
        by_hand = bound_by_hand(relaxed, state.active, dual, changes, goal.amount, asked.intercept)
        assert by_hand == pytest.approx(dual.bound, rel=1e-9, abs=1e-9)
    assert limited > 100


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_only_options_that_another_one_beats_are_dropped(p):
    rng, dropped = np.random.default_rng([193, int(min(p, 9))]), 0
    for _ in range(200):
        problem = random_discrete(rng, n=1, p=p, whole=1, groups=3, levels=5)
        base = problem.base
        ball = base.robust_to.numbers(base.n_features)
        layout, buffers, asked = opened(
            problem, (kind_of(ball), ball), GoalNumbers(GUARANTEE, base.loss.code, 0.5)
        )
        data, state = buffers.data, buffers.state
        before = state.allowed.copy()
        drop_dominated(layout, data, asked, state)
        for g, first in enumerate(layout.level_start[:-1]):
            own = np.arange(first, layout.level_start[g + 1])
            assert state.allowed[first + data.current[g]] == 1
            for k in own[(before[own] == 1) & (state.allowed[own] == 0)]:
                left = own[state.allowed[own] == 1]
                cheaper = data.level_cost[left] <= data.level_cost[k]
                score = data.score[left] - asked.blunt * data.size[left]
                better = score > data.score[k] - asked.blunt * data.size[k]
                smaller = (data.size[left] <= data.size[k]) | (asked.kind == LINF)
                assert np.any(cheaper & better & smaller)
                dropped += 1
    assert dropped > 50


@pytest.mark.parametrize(("more", "allowed"), [(1e-16, [1, 1, 1]), (1e-9, [0, 1, 1])])
def test_options_that_differ_by_rounding_are_kept(more, allowed):
    coef = [1.0, 0.3, 0.3 + more, 0.0]
    base = RecourseProblem.build(
        [[0.0, 0.0, 0.0, 1.0]],
        coef,
        -1.0,
        robust_to=NormBall(1, 0.1),
        bounds=([-9.0] * 4, [9.0] * 4),
    )
    problem = DiscreteProblem(
        base,
        np.ones((1, 4)),
        np.zeros((1, 4)),
        [Group(np.array([1, 2, 3]), np.eye(3))],
        np.array([[2]]),
        [np.array([[1.0, 1.0, 0.0]])],
    )
    goal = GoalNumbers(GUARANTEE, base.loss.code, 0.5)
    layout, buffers, asked = opened(problem, (L1, base.robust_to.numbers(4)), goal)
    data, state = buffers.data, buffers.state
    assert data.score[1] > data.score[0]
    drop_dominated(layout, data, asked, state)
    assert state.allowed.tolist() == allowed
