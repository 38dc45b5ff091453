"""What every kernel works on: one oriented row, and when to stop.

A kernel walks the frontier of its row: for a falling `gain` (score bought per unit of cost, the
inverse of the multiplier mu of the mathematics) it knows the cheapest point, and it stops where
the goal says so. Both questions that people ask are such a rule for stopping:

- price: stop where the loss has fallen so flat that more score no longer pays,
  ``s(t) = cost_weight / gain``;
- guarantee: stop where the score is ``target``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import GUARANTEE
from holdfast.problem.losses import loss_slope, score_at_slope
from holdfast.problem.outcome import EXHAUSTED, FOUND

# Where the radius equals the length of the model, the gain of going on for ever is a difference of
# rounding errors. Relative to the radius, less than this counts as nothing.
ROUNDING = 1e-13


class Row(Struct):
    """One row; for balls each feature is turned so that its coefficient is at least 0."""

    coef: Floats
    start: Floats
    lower: Floats
    upper: Floats
    cost: Floats


class Plan(Struct):
    """The order in which features are bought, and the score at which each stops paying.

    It depends on the model, the costs and the goal alone: rows that share these share a plan.
    """

    order: Ints
    gain: Floats
    stop: Floats


class Vertices(NamedTuple):
    """A piecewise linear frontier: piece k leads from vertex k to vertex k + 1.

    Where score can be bought without end, there is one more multiplier than pieces, and the
    frontier goes on from the last vertex along `ray`, a step that costs 1.
    """

    points: Floats
    scores: Floats
    costs: Floats
    multipliers: Floats
    ray: Floats | None


def empty_row(d: int) -> Row:
    return Row.zeros(*5 * [d])


def new_plan(size: int) -> Plan:
    return Plan.zeros(size, size, size)


@kernel
def orient(row, point, coef, lower, upper, cost):
    for i in range(point.size):
        row.cost[i] = cost[i]
        if coef[i] >= 0.0:
            row.coef[i] = coef[i]
            row.start[i] = point[i]
            row.lower[i] = lower[i]
            row.upper[i] = upper[i]
        else:
            row.coef[i] = -coef[i]
            row.start[i] = -point[i]
            row.lower[i] = -upper[i]
            row.upper[i] = -lower[i]


@kernel
def stop_score(goal, gain):
    """Score beyond which buying more of it at this gain does not serve the goal."""
    if goal.mode == GUARANTEE:
        return goal.amount
    if gain <= 0.0:
        return -math.inf
    return score_at_slope(goal.loss, goal.amount / gain)


@kernel
def gain_at(goal, score, last):
    """Return the gain at which the walk rests between two purchases.

    `last` is the gain of the last purchase, inf before the first. For a target it is what put the
    score there (0 if it is not there yet); for the price it is known from the loss.
    """
    if goal.mode == GUARANTEE:
        return last if score >= goal.amount else 0.0
    return min(last, goal.amount / loss_slope(goal.loss, score))


@kernel
def outcome_of(goal, score):
    return EXHAUSTED if goal.mode == GUARANTEE and score < goal.amount else FOUND


@kernel
def comes_after(gain, a, b):
    """Falling gain; ties by index, so that a row never depends on its neighbours."""
    return gain[a] < gain[b] or (gain[a] == gain[b] and a > b)


@kernel
def sift_down(order, gain, root, end):
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and comes_after(gain, order[child + 1], order[child]):
            child += 1
        if not comes_after(gain, order[child], order[root]):
            return
        order[root], order[child] = order[child], order[root]
        root = child


@kernel
def sort_plan(plan, goal):
    """Heapsort: numpy's argsort takes seconds to compile."""
    order, size = plan.order, plan.order.size
    for k in range(size):
        order[k] = k
    for root in range(size // 2 - 1, -1, -1):
        sift_down(order, plan.gain, root, size)
    for end in range(size - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        sift_down(order, plan.gain, 0, end)
    for k in range(size):
        plan.stop[k] = stop_score(goal, plan.gain[order[k]])
