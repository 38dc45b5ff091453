"""The discrete problem as flat arrays that the kernels read, and one row of it.

Features are numbered with the numbers first (in the order of their columns), then the groups. The
options of all groups stand one after another in flat arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import BallNumbers, power

LINF, L1, LP = 0, 1, 2  # how the norm is treated: see `duals`
Ints = NDArray[np.int64]


class Layout(NamedTuple):
    """What all rows share, but for `step`, `anchor`, the costs and `current`."""

    columns: Ints  # of the numbers
    option_start: Ints  # group g has the options option_start[g] : option_start[g + 1]
    group_start: Ints  # ... and the columns group_columns[group_start[g] : group_start[g + 1]]
    group_columns: Ints
    value_start: Ints  # the values of option k begin here
    values: Floats
    step: Floats
    anchor: Floats
    option_costs: Floats
    fixed_costs: Floats
    current: Ints
    max_changes: int


class Shape(NamedTuple):
    """The part of a `Layout` that does not differ between rows."""

    columns: Ints
    option_start: Ints
    group_start: Ints
    group_columns: Ints
    value_start: Ints
    values: Floats
    max_changes: int


class RowData(NamedTuple):
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
    gain: Floats  # of each option: its part of the score, ...
    size: Floats  # ... of the dual norm, ...
    fee: Floats  # ... and its cost
    current: Ints  # of each group: its current option, counted from 0


def make_layout(problem: DiscreteProblem) -> Layout:
    """Flatten; shapes have been checked."""
    d, groups = problem.problem.n_features, problem.groups
    taken = problem.grouped_columns
    counts = [len(group.options) for group in groups]
    widths = [len(group.columns) for group in groups]
    per_option = [width for width, m in zip(widths, counts, strict=True) for _ in range(m)]
    n_costs = max([costs.shape[0] for costs in problem.option_costs], default=1)
    fees = [
        np.broadcast_to(c, (n_costs, m)) for c, m in zip(problem.option_costs, counts, strict=True)
    ]
    values = [np.asarray(group.options, dtype=np.float64).reshape(-1) for group in groups]
    most = problem.max_changes
    return Layout(
        problem.number_columns,
        _starts(counts),
        _starts(widths),
        taken,
        _starts(per_option),
        np.concatenate(values) if values else np.empty(0),
        np.ascontiguousarray(problem.step, dtype=np.float64),
        np.ascontiguousarray(problem.anchor, dtype=np.float64),
        np.ascontiguousarray(np.concatenate(fees, axis=1)) if fees else np.empty((1, 0)),
        np.ascontiguousarray(problem.fees, dtype=np.float64),
        np.ascontiguousarray(problem.current, dtype=np.int64),
        d + 1 if most is None else int(most),
    )


def kind_of(ball: BallNumbers) -> int:
    """Without a ball all p are the same: nothing is left of the norm."""
    if ball.q == 1.0 or ball.radius == 0.0 or ball.intercept_scale + ball.scale.sum() == 0.0:
        return LINF
    return L1 if ball.q == math.inf else LP


def _starts(counts: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@kernel
def shape_of(layout):
    return Shape(
        layout.columns,
        layout.option_start,
        layout.group_start,
        layout.group_columns,
        layout.value_start,
        layout.values,
        layout.max_changes,
    )


@kernel
def option_size(columns, values, scale, q):
    """||scale * values||_q over the columns of a group: its part of the dual norm."""
    largest = 0.0
    for j in range(columns.size):
        largest = max(largest, scale[columns[j]] * abs(values[j]))
    if q == math.inf or largest == 0.0:
        return largest
    total = 0.0
    for j in range(columns.size):
        total += power(scale[columns[j]] * abs(values[j]) / largest, q)
    return largest * power(total, 1.0 / q)


@kernel
def load_data(
    layout, point, coef, cost, lower, upper, step, anchor, touch, fees, current, ball, data
):
    """Write one row, feature by feature."""
    for f in range(layout.columns.size):
        j = layout.columns[f]
        data.start[f], data.coef[f], data.rho[f] = point[j], coef[j], ball.scale[j]
        data.cost[f], data.lower[f], data.upper[f] = cost[j], lower[j], upper[j]
        data.step[f], data.anchor[f], data.touch[f] = step[j], anchor[j], touch[j]
    for g in range(layout.option_start.size - 1):
        data.current[g] = current[g]
        columns = layout.group_columns[layout.group_start[g] : layout.group_start[g + 1]]
        for k in range(layout.option_start[g], layout.option_start[g + 1]):
            values = layout.values[layout.value_start[k] : layout.value_start[k + 1]]
            data.gain[k] = 0.0
            for j in range(columns.size):
                data.gain[k] += coef[columns[j]] * values[j]
            data.size[k] = option_size(columns, values, ball.scale, ball.q)
            data.fee[k] = fees[k]
