"""The kernels over a range of rows: check a row, load it, search it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.batch import BAD_BOUNDS, BAD_COST, NOT_FINITE, OUT_OF_BOUNDS, own_goal
from holdfast.core.row import EXHAUSTED, FOUND
from holdfast.discrete.buffers import costs_of, data_of, state_of
from holdfast.discrete.layout import Ints, load_data, shape_of
from holdfast.discrete.relax import REACH
from holdfast.discrete.search import Task, search
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import pick

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
def check_numbers(layout, point, coef, intercept, cost, lower, upper, step, anchor, touch):
    """Say whether the numbers of a row can be used."""
    outcome = FOUND if math.isfinite(intercept) else NOT_FINITE
    for j in range(point.size):
        if not (math.isfinite(point[j]) and math.isfinite(coef[j])):
            return NOT_FINITE
    for f in range(layout.columns.size):
        j = layout.columns[f]
        if not 0.0 < cost[j] < math.inf or not step[j] >= 0.0 or step[j] == math.inf:
            return BAD_COST
        if not 0.0 <= touch[j] < math.inf:
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
    touch = pick(layout.fixed_costs, i)
    fees, current = pick(layout.option_costs, i), layout.current[i]
    outcome = check_numbers(
        layout, point, coef, pick(rows.intercept, i), cost, lower, upper, step, anchor, touch
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
        touch,
        fees,
        current,
        ball,
        data_of(buffers),
    )
    costs = costs_of(buffers)
    for j in range(point.size):
        costs[j] = 1.0  # columns of groups have no cost of their own
    for f in range(layout.columns.size):
        costs[layout.columns[f]] = cost[layout.columns[f]]
    return FOUND


@kernel
def search_rows(private, rows, layout, ball, goal, levels, kind, limits, which, out, begin, end):
    """Search the rows `which`; row k of `out` is row which[k]."""
    work, buffers = private
    for k in range(begin, end):
        if limits[2][0] != 0:
            return
        i = which[k]
        own = own_goal(goal, levels, i)
        outcome = open_discrete_row(rows, layout, ball, i, buffers)
        if outcome == FOUND and math.isnan(own.level):
            outcome = BAD_COST
        out.outcome[k] = outcome
        if outcome != FOUND:
            continue
        if goal.mode == REACH:
            data_of(buffers).touch[:] = 0.0  # whatever it costs: there is nothing to decide
        task = Task(rows.points[i], pick(rows.coef, i), pick(rows.intercept, i), ball, own)
        found = search(shape_of(layout), buffers, task, kind, work, limits, out.recourse[k])
        out.value[k], out.bound[k], out.nodes[k] = found.value, found.bound, found.nodes
        if not found.is_complete:
            out.outcome[k] = LIMIT
        elif found.value == math.inf:
            out.outcome[k] = EXHAUSTED
        if found.value < math.inf:
            for g in range(out.chosen.shape[1]):
                out.chosen[k, g] = int(state_of(buffers).best[layout.columns.size + g])
