"""The discrete problem as flat arrays that the kernels read, and one row of it.

Features are numbered with the numbers first (in the order of their columns), then the groups. The
levels of all groups stand one after another in flat arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.core.kinds import SetNumbers
from holdfast.discrete.problem import DiscreteProblem, Group, in_rows
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Floats, Ints, as_read
from holdfast.machinery.structs import Struct
from holdfast.problem.ball import BallNumbers
from holdfast.problem.goal import GoalNumbers
from holdfast.problem.model_set import pick


class Layout(Struct):
    """What all rows share, but for levels, `step`, `anchor`, the costs and `current`.

    What differs has a row for each of them, or one where it does not.
    """

    columns: Ints  # of the numbers
    level_start: Ints  # group g has the levels level_start[g] : level_start[g + 1]
    group_start: Ints  # ... and the columns group_columns[group_start[g] : group_start[g + 1]]
    group_columns: Ints
    value_start: Ints  # the values of level k begin here
    values: Floats
    sizes: Floats  # of each level: its part of the dual norm
    step: Floats
    anchor: Floats
    level_costs: Floats
    fixed_costs: Floats
    current: Ints
    max_changes: int


class RowData(Struct):
    """One row, feature by feature; buffers of one thread."""

    start: Floats  # of each number: where it stands, ...
    coef: Floats
    rho: Floats
    cost: Floats
    lower: Floats
    upper: Floats
    step: Floats
    anchor: Floats
    fixed_cost: Floats  # ... and what it costs to move it at all
    score: Floats  # of each level: its part of the score, ...
    terms: Floats  # ... the sum of its parts without their signs, for rounding, ...
    size: Floats  # ... its part of the dual norm, ...
    level_cost: Floats
    values: Floats  # ... and those of its columns, level by level as in a `Layout`
    current: Ints  # of each group: its current level, counted from 0


class Case(NamedTuple):
    """One row: where it starts, its model, and what is asked."""

    point: Floats
    coef: Floats
    intercept: float
    robust: Any  # the numbers of a set of models
    goal: GoalNumbers


@kernel
def feature_of(numbers, g):
    """Return which feature group g is: the numbers come first, so many of them."""
    return numbers + g


@kernel
def group_of(numbers, b):
    """Return which group feature b is; below 0: it is a number."""
    return b - numbers


def make_layout(problem: DiscreteProblem) -> Layout:
    """Flatten; shapes have been checked."""
    d, groups = problem.base.n_features, problem.groups
    counts = [group.count for group in groups]
    widths = [len(group.columns) for group in groups]
    values = [group.by_row.reshape(len(group.by_row), -1) for group in groups]
    robust, most = problem.base.robust_to.numbers(d), problem.max_changes
    return Layout(
        problem.number_columns,
        _starts(counts),
        _starts(widths),
        problem.grouped_columns,
        _starts(np.repeat(np.array(widths, dtype=np.int64), counts)),
        _joined(values),
        _joined([level_sizes(group, robust) for group in groups]),
        as_read(problem.step),
        as_read(problem.anchor),
        _joined(problem.level_costs),
        as_read(problem.all_fixed_costs),
        as_read(problem.current, np.int64),
        d + 1 if most is None else int(most),
    )


def level_sizes(group: Group, robust: SetNumbers) -> Floats:
    """Return ``||scale * values||_q`` of each level: its part of the dual norm, (1 or n, m).

    Only balls have a norm with such parts; of other sets it is how much they can take off at most.
    """
    parts = np.abs(robust.scale[group.columns] * group.by_row)
    if not isinstance(robust, BallNumbers):
        return np.asarray(parts.sum(axis=2))
    largest = parts.max(axis=2)
    if robust.q == np.inf:
        return np.asarray(largest)
    with np.errstate(invalid="ignore"):
        norms = largest * ((parts / largest[..., None]) ** robust.q).sum(axis=2) ** (1.0 / robust.q)
    return np.asarray(np.where((largest > 0.0) & (largest < np.inf), norms, largest))


def _starts(counts: list[int] | Ints) -> Ints:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _joined(parts: list[Floats]) -> Floats:
    """Put arrays side by side; where they all have one row, so has the result."""
    n = max([len(part) for part in parts], default=1)
    rows = [in_rows(part, n) for part in parts]
    return np.ascontiguousarray(np.concatenate([np.empty((n, 0)), *rows], axis=1))


@kernel
def load_data(rows, layout, robust, i, data):
    """Write row i, feature by feature."""
    coef, cost, fixed_cost = pick(rows.coef, i), pick(rows.cost, i), pick(layout.fixed_costs, i)
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    step, anchor = pick(layout.step, i), pick(layout.anchor, i)
    for f in range(layout.columns.size):
        j = layout.columns[f]
        data.start[f], data.coef[f], data.rho[f] = rows.start[i, j], coef[j], robust.scale[j]
        data.cost[f], data.lower[f], data.upper[f] = cost[j], lower[j], upper[j]
        data.step[f], data.anchor[f], data.fixed_cost[f] = step[j], anchor[j], fixed_cost[j]
    level_costs, sizes = pick(layout.level_costs, i), pick(layout.sizes, i)
    for g in range(layout.level_start.size - 1):
        data.current[g] = layout.current[i, g]
        for k in range(layout.level_start[g], layout.level_start[g + 1]):
            data.size[k], data.level_cost[k] = sizes[k], level_costs[k]
    values = pick(layout.values, i)
    for v in range(values.size):
        data.values[v] = values[v]
    load_levels(layout, coef, data)


@kernel
def load_levels(layout, coef, data):
    """Write what each level contributes to the score of a model."""
    for g in range(layout.level_start.size - 1):
        column = layout.group_start[g]
        for k in range(layout.level_start[g], layout.level_start[g + 1]):
            first, score, terms = layout.value_start[k], 0.0, 0.0
            for v in range(layout.value_start[k + 1] - first):
                part = coef[layout.group_columns[column + v]] * data.values[first + v]
                score += part
                terms += abs(part)
            data.score[k], data.terms[k] = score, terms


@kernel
def load_coefficients(layout, model, data):
    """Write a model other than today's: coefficients, the intercept last."""
    for f in range(layout.columns.size):
        data.coef[f] = model[layout.columns[f]]
    load_levels(layout, model, data)
