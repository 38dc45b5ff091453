"""The discrete problem as flat arrays that the kernels read, and one row of it.

Features are numbered with the numbers first (in the order of their columns), then the groups. The
options of all groups stand one after another in flat arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.discrete.problem import DiscreteProblem, Group, in_rows
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Floats, Ints, as_read
from holdfast.machinery.structs import Struct
from holdfast.problem.ball import BallNumbers
from holdfast.problem.goal import GoalNumbers
from holdfast.problem.sets import pick


class Layout(Struct):
    """What all rows share, but for options, `step`, `anchor`, the costs and `current`.

    What differs has a row for each of them, or one where it does not.
    """

    columns: Ints  # of the numbers
    option_start: Ints  # group g has the options option_start[g] : option_start[g + 1]
    group_start: Ints  # ... and the columns group_columns[group_start[g] : group_start[g + 1]]
    group_columns: Ints
    value_start: Ints  # the values of option k begin here
    values: Floats
    sizes: Floats  # of each option: its part of the dual norm
    step: Floats
    anchor: Floats
    option_costs: Floats
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
    touch: Floats  # ... and what it costs to move it at all
    score: Floats  # of each option: its part of the score, ...
    terms: Floats  # ... the sum of its parts without their signs, for rounding, ...
    size: Floats  # ... its part of the dual norm, ...
    option_cost: Floats
    values: Floats  # ... and those of its columns, option by option as in a `Layout`
    current: Ints  # of each group: its current option, counted from 0


class Case(NamedTuple):
    """One row: where it starts, its model, and what is asked."""

    point: Floats
    coef: Floats
    intercept: float
    ball: Any  # the numbers of a set of models
    goal: GoalNumbers


def make_layout(problem: DiscreteProblem) -> Layout:
    """Flatten; shapes have been checked."""
    d, groups = problem.problem.n_features, problem.groups
    counts = [group.count for group in groups]
    widths = [len(group.columns) for group in groups]
    values = [group.by_row.reshape(len(group.by_row), -1) for group in groups]
    ball, most = problem.problem.robust_to.numbers(d), problem.max_changes
    return Layout(
        problem.number_columns,
        _starts(counts),
        _starts(widths),
        problem.grouped_columns,
        _starts([width for width, m in zip(widths, counts, strict=True) for _ in range(m)]),
        _joined(values),
        _joined([option_sizes(group, ball) for group in groups]),
        as_read(problem.step),
        as_read(problem.anchor),
        _joined(problem.option_costs),
        as_read(problem.fees),
        as_read(problem.current, np.int64),
        d + 1 if most is None else int(most),
    )


def option_sizes(group: Group, ball: Any) -> Floats:
    """Return ``||scale * values||_q`` of each option: its part of the dual norm, (1 or n, m).

    Only balls have a norm with such parts; of other sets it is how much they can take off at most.
    """
    parts = np.abs(ball.scale[group.columns] * group.by_row)
    if not isinstance(ball, BallNumbers):
        return np.asarray(parts.sum(axis=2))
    largest = parts.max(axis=2)
    if ball.q == np.inf:
        return np.asarray(largest)
    with np.errstate(invalid="ignore"):
        norms = largest * ((parts / largest[..., None]) ** ball.q).sum(axis=2) ** (1.0 / ball.q)
    return np.asarray(np.where((largest > 0.0) & (largest < np.inf), norms, largest))


def _starts(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _joined(parts: list[Floats]) -> Floats:
    """Put arrays side by side; where they all have one row, so has the result."""
    n = max([len(part) for part in parts], default=1)
    rows = [in_rows(part, n) for part in parts]
    return np.ascontiguousarray(np.concatenate([np.empty((n, 0)), *rows], axis=1))


@kernel
def load_data(rows, layout, ball, i, data):
    """Write row i, feature by feature."""
    coef, cost, touch = pick(rows.coef, i), pick(rows.cost, i), pick(layout.fixed_costs, i)
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    step, anchor = pick(layout.step, i), pick(layout.anchor, i)
    for f in range(layout.columns.size):
        j = layout.columns[f]
        data.start[f], data.coef[f], data.rho[f] = rows.points[i, j], coef[j], ball.scale[j]
        data.cost[f], data.lower[f], data.upper[f] = cost[j], lower[j], upper[j]
        data.step[f], data.anchor[f], data.touch[f] = step[j], anchor[j], touch[j]
    option_costs, sizes = pick(layout.option_costs, i), pick(layout.sizes, i)
    for g in range(layout.option_start.size - 1):
        data.current[g] = layout.current[i, g]
        for k in range(layout.option_start[g], layout.option_start[g + 1]):
            data.size[k], data.option_cost[k] = sizes[k], option_costs[k]
    values = pick(layout.values, i)
    for v in range(values.size):
        data.values[v] = values[v]
    load_options(layout, coef, data)


@kernel
def load_options(layout, coef, data):
    """Write what each option contributes to the score of a model."""
    for g in range(layout.option_start.size - 1):
        column = layout.group_start[g]
        for k in range(layout.option_start[g], layout.option_start[g + 1]):
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
    load_options(layout, model, data)
