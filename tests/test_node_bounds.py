"""The bound of a search node, against the budgets, the multiplier and the charge behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from discrete_problems import random_discrete

from holdfast.core.row import FOUND
from holdfast.discrete.buffers import data_of, new_buffers, relaxed_of, state_of
from holdfast.discrete.domains import open_domains
from holdfast.discrete.layout import LINF, kind_of, make_layout, shape_of
from holdfast.discrete.relax import bound_node
from holdfast.discrete.rows import open_discrete_row
from holdfast.discrete.search import Task, prepare, question_of
from holdfast.problem.goal import GUARANTEE, GoalNumbers


def bound_by_hand(relaxed, active, dual, changes: int, target: float, base: float) -> float:
    """Return the bound that the kept budgets, multiplier and charge give."""
    table, total, limited = relaxed.table, dual.mu * (target - base), changes < active.size
    for b in range(active.size):
        values = []
        for k in range(table.start[b], table.start[b + 1]):
            value = table.cost[k] - dual.mu * table.gain[k]
            value += relaxed.best_gammas[b] * table.size[k]
            charged = limited and active[b] == 0 and table.changed[k] == 1
            values.append(value + (dual.charge if charged else 0.0))
        total += min(values)
    return total - (dual.charge * changes if limited else 0.0)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_budgets_and_charge_belong_to_the_bound(p):
    rng = np.random.default_rng([191, int(min(p, 9))])
    limited = 0
    for _ in range(600):
        problem = random_discrete(
            rng, n=1, p=p, whole=3, continuous=2, groups=2, max_changes=int(rng.integers(1, 4))
        )
        base, layout = problem.problem, make_layout(problem)
        ball = base.robust_to.numbers(base.n_features)._replace(intercept_scale=0.0)
        buffers, kind = new_buffers(layout, base.n_features), kind_of(ball)
        assert open_discrete_row(base.rows(), layout, ball, 0, buffers) == FOUND
        goal = GoalNumbers(GUARANTEE, base.loss.code, float(rng.normal()) + 1.0)
        task = Task(base.X[0], base.coef[0], base.intercept[0], ball, goal)
        asked = question_of(goal, kind, task.intercept, ball, 1.0)
        state, relaxed = state_of(buffers), relaxed_of(buffers)
        blunt = ball.radius if kind == LINF else 0.0
        open_domains(
            data_of(buffers),
            layout.option_start,
            1e3,
            False,
            blunt,
            state.lo,
            state.hi,
            state.cut_lo,
            state.cut_hi,
            state.allowed,
        )
        state.active[:] = rng.random(state.active.size) < 0.2
        changes = prepare(shape_of(layout), buffers, task, asked)
        if changes < 0:
            continue
        charge = float(rng.exponential())
        dual = bound_node(relaxed, asked, 1.0, 1.0, charge, state.active, changes, 1e3)
        limited += changes < state.active.size
        by_hand = bound_by_hand(relaxed, state.active, dual, changes, goal.level, asked.base)
        assert by_hand == pytest.approx(dual.bound, rel=1e-9, abs=1e-9)
    assert limited > 100
