"""The kernels over a range of rows: check a row, load it, search it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast._compile import kernel
from holdfast._numbers import Floats
from holdfast.ball import BallNumbers, dual_norm, pick, score_of
from holdfast.discrete.layout import Ints, load_data
from holdfast.discrete.relax import REACH
from holdfast.discrete.search import Task, search
from holdfast.problem import Goal
from holdfast.solvers.batch import BAD_BOUNDS, BAD_COST, NOT_FINITE, OUT_OF_BOUNDS
from holdfast.solvers.row import EXHAUSTED, FOUND

LIMIT = 7  # the search was stopped: what it has may not be the best


class Outcomes(NamedTuple):
    """What the kernels write, a row each."""

    recourse: Floats
    chosen: Ints
    value: Floats
    bound: Floats
    nodes: Ints
    outcome: NDArray[np.int8]


def new_outcomes(n: int, d: int, groups: int) -> Outcomes:
    return Outcomes(
        np.full((n, d), np.nan),
        np.full((n, groups), -1, dtype=np.int64),
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int8),
    )


@kernel
def check_numbers(layout, point, coef, intercept, cost, lower, upper, step, anchor):
    """Say whether the numbers of a row can be used."""
    outcome = FOUND if math.isfinite(intercept) else NOT_FINITE
    for j in range(point.size):
        if not (math.isfinite(point[j]) and math.isfinite(coef[j])):
            return NOT_FINITE
    for f in range(layout.columns.size):
        j = layout.columns[f]
        if not 0.0 < cost[j] < math.inf or not step[j] >= 0.0 or step[j] == math.inf:
            return BAD_COST
        if step[j] > 0.0 and not math.isfinite(anchor[j]):
            return NOT_FINITE
        if not lower[j] <= upper[j] or lower[j] == math.inf or upper[j] == -math.inf:
            outcome = max(outcome, BAD_BOUNDS)
        elif outcome == FOUND and not lower[j] <= point[j] <= upper[j]:
            outcome = OUT_OF_BOUNDS
    return outcome


@kernel
def check_groups(layout, point, fees, current):
    """Say whether each person has one of the options, for nothing, and others cost no less."""
    for g in range(layout.option_start.size - 1):
        first, last = layout.option_start[g], layout.option_start[g + 1]
        if not 0 <= current[g] < last - first or fees[first + current[g]] != 0.0:
            return BAD_COST
        for k in range(first, last):
            if not fees[k] >= 0.0:
                return BAD_COST
            for i in range(layout.value_start[k], layout.value_start[k + 1]):
                if not math.isfinite(layout.values[i]):
                    return NOT_FINITE
        column = layout.group_start[g]
        home = layout.value_start[first + current[g]]
        for i in range(layout.group_start[g + 1] - column):
            if layout.values[home + i] != point[layout.group_columns[column + i]]:
                return NOT_FINITE
    return FOUND


@kernel
def open_discrete_row(rows, layout, ball, i, buffers):
    """Load row i; return an outcome other than FOUND where it cannot be used."""
    point, coef, cost = rows.points[i], pick(rows.coef, i), pick(rows.cost, i)
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    step, anchor = pick(layout.step, i), pick(layout.anchor, i)
    fees, current = pick(layout.option_costs, i), layout.current[i]
    outcome = check_numbers(
        layout, point, coef, pick(rows.intercept, i), cost, lower, upper, step, anchor
    )
    if outcome in (FOUND, OUT_OF_BOUNDS):
        outcome = max(outcome, check_groups(layout, point, fees, current))
    if outcome != FOUND:
        return outcome
    load_data(
        layout,
        point,
        coef,
        cost,
        lower,
        upper,
        step,
        anchor,
        fees,
        current,
        ball,
        buffers.data,
    )
    for j in range(point.size):
        buffers.costs[j] = 1.0  # columns of groups have no cost of their own
    for f in range(layout.columns.size):
        buffers.costs[layout.columns[f]] = cost[layout.columns[f]]
    return FOUND


@kernel
def search_rows(private, rows, layout, ball, goal, kind, limits, which, out, begin, end):
    """Search the rows `which`; row k of `out` is row which[k]."""
    work, buffers = private
    for k in range(begin, end):
        i = which[k]
        outcome = open_discrete_row(rows, layout, ball, i, buffers)
        out.outcome[k] = outcome
        if outcome != FOUND:
            continue
        task = Task(rows.points[i], pick(rows.coef, i), pick(rows.intercept, i), ball, goal)
        found = search(layout, buffers, task, kind, work, limits, out.recourse[k])
        out.value[k], out.bound[k], out.nodes[k] = found.value, found.bound, found.nodes
        if not found.is_complete:
            out.outcome[k] = LIMIT
        elif found.value == math.inf:
            out.outcome[k] = EXHAUSTED
        if found.value < math.inf:
            for g in range(out.chosen.shape[1]):
                out.chosen[k, g] = int(buffers.state.best[layout.columns.size + g])


@kernel
def radius_rows(private, rows, layout, ball, target, kind, limits, which, point, radii, begin, end):
    """Find the largest radius at which the target is within reach; NaN where not even at 0.

    The point that is best at one radius would still reach the target at the radius
    ``(w.x + b - target) / ||(rho x, rho_0)||_q``: from a radius that is small enough, these rise
    to the largest one in a few steps.
    """
    work, buffers = private
    goal = Goal(REACH, 0, target)
    for k in range(begin, end):
        i = which[k]
        radii[k] = math.nan
        if open_discrete_row(rows, layout, ball, i, buffers) != FOUND:
            continue
        coef, intercept, x = pick(rows.coef, i), pick(rows.intercept, i), point[k]
        low, high = 0.0, ball.radius
        radius = 1e-9 * ball.radius  # the kernels for 1 <= p < inf need one
        for _ in range(60):
            trial = BallNumbers(ball.p, ball.q, radius, ball.scale, ball.intercept_scale)
            task = Task(rows.points[i], coef, intercept, trial, goal)
            found = search(layout, buffers, task, kind, work, limits, x)
            if -found.value < target:
                if low == 0.0:
                    break
                high = radius
            else:
                low, radii[k] = radius, radius
                if found.value > -math.inf:
                    size = dual_norm(x, ball.scale, ball.intercept_scale, ball.q)
                    following = (score_of(x, coef, intercept) - target) / size
                    radii[k] = min(max(following, low), high)
                    if following <= low * (1.0 + 1e-12) or size == 0.0:
                        break
                    radius = radii[k]
                    if radius >= high:
                        break
                    continue
            radius = 0.5 * (low + high)
            if high - low <= 1e-9 * high:
                break
