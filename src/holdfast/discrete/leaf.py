"""The continuous rest: with all discrete choices made, the core kernels finish exactly."""

from __future__ import annotations

import math

from holdfast.certificate import flat_enough, price_bound, support_line
from holdfast.core.batch import reach_target
from holdfast.core.kinds import (
    EllipsoidWork,
    HullWork,
    Work,
    make_plan,
    read_answer,
    solve_row,
    write_row,
)
from holdfast.discrete.layout import feature_of
from holdfast.machinery.compile import choice
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Flags, Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.costs import cost_of
from holdfast.problem.goal import ENDLESS, GUARANTEE, PRICE, REACH
from holdfast.problem.losses import loss_value
from holdfast.problem.model_set import worst_score_of
from holdfast.problem.outcome import FOUND, UNBOUNDED


class Leaf(Struct):
    """Buffers of one thread: a problem of all columns, most of them fixed."""

    start: Floats
    lower: Floats
    upper: Floats
    costs: Floats  # columns of groups have none of their own
    point: Floats
    model: Floats
    best: Floats  # the best point of all leaves so far
    is_node: Flags  # of one: whether it is a node that is solved, its numbers as if continuous


@choice(0)
def solve_node(work, case, leaf):
    """Solve the node that is written in the leaf; its worst model is left in the workspace."""


@solve_node.of(Work)
@kernel
def leave_node(work, case, leaf):
    return math.nan, math.nan  # against balls a node is bounded without it


@solve_node.of(EllipsoidWork)
@solve_node.of(HullWork)
@kernel
def solve_whole_node(work, case, leaf):
    goal, robust, intercept = case.goal, case.robust, case.intercept
    if goal.mode == REACH:
        goal = ENDLESS
    write_row(work, robust, leaf.start, case.coef, intercept, leaf.lower, leaf.upper, leaf.costs)
    make_plan(work, robust, goal)
    solve_row(work, intercept, robust, goal)
    return math.nan, math.nan


@kernel
def fix_columns(layout, data, state, leaf):
    """Write the problem of the free numbers.

    Return (cost of the choices, fixed costs of the free numbers, is anything free).
    """
    fixed, touched, any_free, chosen = 0.0, 0.0, False, state.chosen
    for f in range(layout.columns.size):
        j = layout.columns[f]
        if state.free[f] == 1:
            leaf.start[j], any_free = data.start[f], True
            leaf.lower[j], leaf.upper[j] = data.lower[f], data.upper[f]
            touched += data.fixed_cost[f]
        else:
            leaf.start[j] = leaf.lower[j] = leaf.upper[j] = chosen[f]
            if chosen[f] != data.start[f]:
                fixed += data.cost[f] * abs(chosen[f] - data.start[f]) + data.fixed_cost[f]
    for g in range(layout.level_start.size - 1):
        k = layout.level_start[g] + int(chosen[feature_of(layout.columns.size, g)])
        fixed += data.level_cost[k]
        fix_level(layout, data, leaf, g, k)
    for j in range(leaf.start.size):
        leaf.point[j] = leaf.start[j]
    return fixed, touched, any_free


@kernel
def fix_level(layout, data, leaf, g, k):
    """Let the columns of a group take one of its levels, and no other."""
    first = layout.group_start[g]
    for i in range(first, layout.group_start[g + 1]):
        j = layout.group_columns[i]
        value = data.values[layout.value_start[k] + i - first]
        leaf.start[j] = leaf.lower[j] = leaf.upper[j] = value


@kernel
def unmoved(layout, data, state, leaf):
    """Return the fixed costs of free numbers that were not moved after all."""
    total = 0.0
    for f in range(layout.columns.size):
        if state.free[f] == 1 and leaf.point[layout.columns[f]] == data.start[f]:
            total += data.fixed_cost[f]
    return total


@kernel
def value_of(goal, fixed, cost, score):
    """Return what is minimised: the price, the cost of a target, or minus the score."""
    if goal.mode == GUARANTEE:
        return fixed + cost if score >= goal.amount else math.inf
    if goal.mode == PRICE:
        return loss_value(goal.loss, score) + goal.amount * (fixed + cost)
    return -score


@kernel
def solve_leaf(layout, data, case, work, state, leaf):
    """Solve the continuous rest of `state.chosen`; the point is left in `leaf.point`.

    Return (value, a bound that proves it).
    """
    coef, intercept, robust, goal = case.coef, case.intercept, case.robust, case.goal
    fixed, touched, any_free = fix_columns(layout, data, state, leaf)
    score = worst_score_of(leaf.start, coef, intercept, robust)
    if not any_free or (goal.mode == GUARANTEE and score >= goal.amount):  # nobody needs to move
        value = value_of(goal, fixed, 0.0, score)
        return value, value
    if goal.mode == REACH:
        return reach_leaf(case, work, leaf)
    write_row(work, robust, leaf.start, coef, intercept, leaf.lower, leaf.upper, leaf.costs)
    make_plan(work, robust, goal)
    if goal.mode == GUARANTEE:
        outcome, gain = reach_target(leaf.start, coef, intercept, robust, goal, work, leaf.point)
        if outcome != FOUND:
            return math.inf, empty_leaf(fixed + touched, case, work, leaf)
    else:
        _, gain = solve_row(work, intercept, robust, goal)
        read_answer(work, coef, leaf.point)
    score = worst_score_of(leaf.point, coef, intercept, robust)
    paid = fixed + max(touched - unmoved(layout, data, state, leaf), 0.0)
    fixed += touched
    value = value_of(goal, paid, cost_of(leaf.point, leaf.start, leaf.costs), score)
    mu = 1.0 / gain
    if goal.mode == PRICE:
        mu = flat_enough(goal.loss, goal.amount, mu)
    mu, offset = line_of_leaf(mu, case, work, leaf)
    if goal.mode == GUARANTEE:
        return value, fixed + max(mu * goal.amount - offset, 0.0) if mu < math.inf else fixed
    return value, price_bound(goal.loss, goal.amount, mu, offset) + goal.amount * fixed


@kernel
def line_of_leaf(mu, case, work, leaf):
    """Return the multiplier and the offset of the support line at the point of a leaf."""
    mu, offset, _ = support_line(
        leaf.point,
        mu,
        leaf.start,
        case.coef,
        case.intercept,
        leaf.costs,
        leaf.lower,
        leaf.upper,
        case.robust,
        work.dual,
        leaf.model,
    )
    return mu, offset


@kernel
def reach_leaf(case, work, leaf):
    """Return minus the largest worst-case score, -inf where it has no end; and its proof."""
    coef, intercept, robust = case.coef, case.intercept, case.robust
    write_row(work, robust, leaf.start, coef, intercept, leaf.lower, leaf.upper, leaf.costs)
    make_plan(work, robust, ENDLESS)
    outcome, _ = solve_row(work, intercept, robust, ENDLESS)
    if outcome == UNBOUNDED:
        return -math.inf, -math.inf
    read_answer(work, coef, leaf.point)
    mu, offset = line_of_leaf(math.inf, case, work, leaf)  # upright, but for rounding
    floor = -offset if mu == math.inf else -math.inf
    return -worst_score_of(leaf.point, coef, intercept, robust), floor


@kernel
def empty_leaf(fixed, case, work, leaf):
    """Return what is proven of a leaf where no answer was found: inf, if there is none in it."""
    mu, offset = line_of_leaf(math.inf, case, work, leaf)
    if mu < math.inf:
        return fixed + max(mu * case.goal.amount - offset, 0.0)
    return math.inf if case.goal.amount > offset else -math.inf
