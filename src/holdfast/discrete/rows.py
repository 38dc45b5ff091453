"""The kernels over a range of rows: check a row, load it, search it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.batch import own_goal
from holdfast.discrete.buffers import Buffers
from holdfast.discrete.layout import Case, Layout, feature_of, load_data
from holdfast.discrete.leaves import Solver, pack_leaf
from holdfast.discrete.search import search
from holdfast.discrete.stack import Stack
from holdfast.discrete.visit import CRAMPED
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Flags, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import REACH, GoalNumbers
from holdfast.problem.model_set import pick, with_radius
from holdfast.problem.outcome import (
    BAD_BOUNDS,
    BAD_COST,
    EXHAUSTED,
    FOUND,
    LIMIT,
    NO_ROOM,
    NOT_FINITE,
    OUT_OF_BOUNDS,
)
from holdfast.problem.problem import Rows
from holdfast.result.status import GAP_TOLERANCE

_GO_ON = np.zeros(1, dtype=np.int8)


class SearchWork(Struct):
    """What one thread searches with."""

    leaves: int  # the address of their solver, ...
    work: Any  # ... and its workspace
    buffers: Buffers
    stack: Stack


class Batch(Struct):
    """What is asked of all rows; the arrays have one row where all rows share it."""

    rows: Rows
    layout: Layout
    robust: Any  # the numbers of a set of models
    radii: Floats  # of the rows that are searched
    goal: GoalNumbers
    amounts: Floats
    kind: int


class Limits(NamedTuple):
    """Where the search of a row ends, and what gap is none."""

    tolerance: float = GAP_TOLERANCE
    nodes: int = 1_000_000
    stop: Flags = _GO_ON  # whoever makes its number another one is obeyed soon


class FoundRows(NamedTuple):
    """What the kernels write, a row each: the names are those of `Found`."""

    recourse: Floats
    levels: Ints
    value: Floats  # what is minimised: the price, the cost of a target, or minus the score
    lower_bound: Floats
    nodes: Ints
    outcome: Flags

    def is_missing(self, k: int) -> bool:
        """Whether row k has no answer."""
        return math.isnan(self.recourse[k, 0])


def new_found_rows(n: int, d: int, groups: int) -> FoundRows:
    """Return n rows of which nothing is known yet."""
    recourse, levels = np.empty((n, d)), np.empty((n, groups), dtype=np.int64)
    value, lower_bound = np.empty((2, n))
    for each in (recourse, value, lower_bound):
        each.fill(np.nan)
    levels.fill(-1)
    nodes, outcome = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int8)
    return FoundRows(recourse, levels, value, lower_bound, nodes, outcome)


@kernel
def check_numbers(rows, layout, i):
    """Say whether the numbers of a row can be used."""
    point, coef, cost = rows.start[i], pick(rows.coef, i), pick(rows.cost, i)
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    step, anchor = pick(layout.step, i), pick(layout.anchor, i)
    fixed_cost = pick(layout.fixed_costs, i)
    outcome = FOUND if math.isfinite(pick(rows.intercept, i)) else NOT_FINITE
    for j in range(point.size):
        if not (math.isfinite(point[j]) and math.isfinite(coef[j])):
            return NOT_FINITE
    for f in range(layout.columns.size):
        j = layout.columns[f]
        if not 0.0 < cost[j] < math.inf or not step[j] >= 0.0 or step[j] == math.inf:
            return BAD_COST
        if not 0.0 <= fixed_cost[j] < math.inf:
            return BAD_COST
        if step[j] > 0.0 and not math.isfinite(anchor[j]):
            return NOT_FINITE
        if not lower[j] <= upper[j] or lower[j] == math.inf or upper[j] == -math.inf:
            outcome = outcome if outcome == NOT_FINITE else BAD_BOUNDS
        elif outcome == FOUND and not lower[j] <= point[j] <= upper[j]:
            outcome = OUT_OF_BOUNDS
    return outcome


@kernel
def check_groups(rows, layout, i):
    """Say whether each person has one of the levels, for nothing, and others cost no less."""
    point, current, costs = rows.start[i], layout.current[i], pick(layout.level_costs, i)
    values = pick(layout.values, i)
    for g in range(layout.level_start.size - 1):
        first, last = layout.level_start[g], layout.level_start[g + 1]
        if not 0 <= current[g] < last - first or costs[first + current[g]] != 0.0:
            return BAD_COST
        for k in range(first, last):
            if not costs[k] >= 0.0:
                return BAD_COST
            for v in range(layout.value_start[k], layout.value_start[k + 1]):
                if not math.isfinite(values[v]):
                    return NOT_FINITE
        column = layout.group_start[g]
        home = layout.value_start[first + current[g]]
        for v in range(layout.group_start[g + 1] - column):
            if values[home + v] != point[layout.group_columns[column + v]]:
                return NOT_FINITE
    return FOUND


@kernel
def check_discrete_row(rows, layout, i):
    """Return FOUND, or what is wrong with row i."""
    outcome = check_numbers(rows, layout, i)
    if outcome in (FOUND, OUT_OF_BOUNDS):
        wrong = check_groups(rows, layout, i)
        outcome = outcome if wrong == FOUND else wrong
    return outcome


@kernel
def open_discrete_row(rows, layout, robust, i, buffers):
    """Load row i; return an outcome other than FOUND where it cannot be used."""
    outcome = check_discrete_row(rows, layout, i)
    if outcome != FOUND:
        return outcome
    load_data(rows, layout, robust, i, buffers.data)
    costs, own = buffers.leaf.costs, pick(rows.cost, i)
    for j in range(costs.size):
        costs[j] = 1.0  # columns of groups have no cost of their own
    for f in range(layout.columns.size):
        costs[layout.columns[f]] = own[layout.columns[f]]
    return FOUND


@kernel
def write_found(layout, buffers, found, out, k):
    """Write what the search of a row came to into row k."""
    out.value[k], out.lower_bound[k], out.nodes[k] = found.value, found.bound, found.nodes
    if buffers.tally[CRAMPED] == 1.0:
        out.outcome[k] = NO_ROOM
    elif not found.is_complete:
        out.outcome[k] = LIMIT
    elif found.value == math.inf:
        out.outcome[k] = EXHAUSTED
    if found.value < math.inf:
        best, point = buffers.state.best, buffers.leaf.best
        for j in range(point.size):
            out.recourse[k, j] = point[j]
        for g in range(out.levels.shape[1]):
            out.levels[k, g] = int(best[feature_of(layout.columns.size, g)])


@kernel
def search_rows(private, batch, limits, which, out, begin, end):
    """Search the rows `which`; row k of `out` is row which[k]."""
    rows, layout, shared = batch.rows, batch.layout, batch.robust
    work, buffers = private.work, private.buffers
    for k in range(begin, end):
        if limits.stop[0] != 0:
            return
        i, robust = which[k], with_radius(shared, pick(batch.radii, k))
        goal = own_goal(batch.goal, batch.amounts, i)
        outcome = open_discrete_row(rows, layout, robust, i, buffers)
        if outcome == FOUND and math.isnan(goal.amount):
            outcome = BAD_COST
        out.outcome[k] = outcome
        if outcome != FOUND:
            continue
        if goal.mode == REACH:  # whatever it costs: there is nothing to decide
            fixed_cost = buffers.data.fixed_cost
            for f in range(fixed_cost.size):
                fixed_cost[f] = 0.0
        case = Case(rows.start[i], pick(rows.coef, i), pick(rows.intercept, i), robust, goal)
        solver = Solver(private.leaves, pack_leaf(layout, buffers, case, work), work)
        found = search(layout, buffers, private.stack, case, batch.kind, solver, limits)
        write_found(layout, buffers, found, out, k)
