"""Branch and bound over one row: depth first, the most promising child first.

Every node is closed in one of three ways: its bound (`bound.node_bound`) reaches the best value
found, its discrete choices are all made and the core kernels finish it, or it is split. The least
bound of all that was closed is the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast._compile import kernel
from holdfast._numbers import Floats
from holdfast.ball import worst_score_of
from holdfast.discrete.branch import (
    BY_CHANGE,
    NOWHERE,
    choose_branch,
    is_open,
    mass_of,
    round_node,
    split_at,
)
from holdfast.discrete.branch import home_of as home_candidate
from holdfast.discrete.domains import (
    build_table,
    drop_dear,
    fix_unchanged,
    open_domains,
    settle_changes,
)
from holdfast.discrete.layout import LINF, Layout, RowData, new_row_data
from holdfast.discrete.leaf import Leaf, new_leaf, solve_leaf, value_of
from holdfast.discrete.relax import REACH, Dual, Question, Relaxed, bound_node, new_relaxed
from holdfast.losses import loss_slope
from holdfast.problem import GUARANTEE, PRICE

OPEN, CLOSED = 0, 1


class State(NamedTuple):
    """The node at hand, and the best choices so far."""

    lo: Floats
    hi: Floats
    allowed: NDArray[np.int8]
    active: NDArray[np.int8]
    chosen: Floats  # of each feature: its value, or the position of its option
    free: NDArray[np.int8]
    best: Floats
    order: Floats


class Buffers(NamedTuple):
    """Everything that one thread works on, but for the core kernels' own."""

    data: RowData
    relaxed: Relaxed
    leaf: Leaf
    state: State
    costs: Floats


def new_buffers(layout: Layout, d: int) -> Buffers:
    f, o = layout.columns.size, int(layout.option_start[-1])
    b = f + layout.option_start.size - 1

    def flags(size: int) -> NDArray[np.int8]:
        return np.zeros(size, dtype=np.int8)

    state = State(
        np.empty(f),
        np.empty(f),
        flags(o),
        flags(b),
        np.empty(b),
        flags(f),
        np.empty(b),
        np.empty(o),
    )
    return Buffers(new_row_data(layout), new_relaxed(layout), new_leaf(d), state, np.empty(d))


class Found(NamedTuple):
    """What the search of a row came to; the point itself is written apart."""

    value: float
    bound: float
    nodes: int
    is_complete: bool


@kernel
def save(state, bound, mu, norm, charge, numbers, flags):
    """Put the node at hand into a row of the stack."""
    f, o = state.lo.size, state.allowed.size
    numbers[0], numbers[1], numbers[2], numbers[3] = bound, mu, norm, charge
    for i in range(f):
        numbers[4 + i], numbers[4 + f + i] = state.lo[i], state.hi[i]
    for k in range(o):
        flags[k] = state.allowed[k]
    for b in range(state.active.size):
        flags[o + b] = state.active[b]


@kernel
def load(state, numbers, flags):
    f, o = state.lo.size, state.allowed.size
    for i in range(f):
        state.lo[i], state.hi[i] = numbers[4 + i], numbers[4 + f + i]
    for k in range(o):
        state.allowed[k] = flags[k]
    for b in range(state.active.size):
        state.active[b] = flags[o + b]


@kernel
def grown(stack):
    larger = np.empty((2 * stack.shape[0], stack.shape[1]), stack.dtype)
    larger[: stack.shape[0]] = stack
    return larger


@kernel
def question_of(goal, kind, intercept, ball):
    """For p = inf the norm is folded into the gains, and the intercept's part into the intercept."""
    radius, rho_0, base = ball.radius, ball.intercept_scale, intercept
    if kind == LINF:
        radius, rho_0, base = 0.0, 0.0, intercept - ball.radius * ball.intercept_scale
    return Question(goal.mode, goal.loss, goal.level, kind, base, radius, ball.p, ball.q, rho_0)


@kernel
def dearest(table, features):
    """Return the largest cost that a node can have."""
    total = 0.0
    for b in range(features):
        most = 0.0
        for k in range(table.start[b], table.start[b + 1]):
            most = max(most, table.cost[k])
        total += most
    return total


@kernel
def prepare(layout, buffers, asked, ball_radius, with_cost):
    """List the candidates of the node at hand; return how many changes are left (-1: too many)."""
    state, data, table = buffers.state, buffers.data, buffers.relaxed.table
    starts = layout.option_start
    build_table(
        data, starts, state.lo, state.hi, state.allowed, asked.kind, ball_radius, with_cost, table
    )
    for b in range(state.active.size):
        if table.start[b] == table.start[b + 1]:
            return -1
    changes = settle_changes(table, layout.most_changes, state.active)
    if changes == 0:
        fix_unchanged(data, starts, state.active, state.lo, state.hi, state.allowed)
        build_table(
            data,
            starts,
            state.lo,
            state.hi,
            state.allowed,
            asked.kind,
            ball_radius,
            with_cost,
            table,
        )
        return state.active.size
    return changes


@kernel
def cutoff_of(value, tolerance):
    return value - 0.5 * tolerance * (1.0 + abs(value))


@kernel
def is_decided(data, table, state, changes):
    if changes < state.active.size:
        return False
    for b in range(state.active.size):
        if is_open(table, data, state.lo, state.hi, b):
            return False
    return True


@kernel
def first_cap(data, goal, value, start_score):
    """Return a cost that no better answer exceeds; for a guarantee, one beyond all measure."""
    if goal.mode == PRICE:
        return value / goal.level * (1.0 + 1e-9)  # no loss is below 0
    steepest = 0.0
    for f in range(data.coef.size):
        steepest = max(steepest, abs(data.coef[f]) / data.cost[f])
    missing = 1.0 + abs(start_score)
    if goal.mode == GUARANTEE:
        missing += abs(goal.level)
    return 1e8 * missing / steepest if steepest > 0.0 else math.inf


@kernel
def search(layout, buffers, point, coef, intercept, ball, goal, kind, work, limits, answer):
    """Minimise over one row; write the best point into `answer` (untouched where there is none).

    `limits` are (tolerance, most nodes).
    """
    data, relaxed, state, leaf = buffers.data, buffers.relaxed, buffers.state, buffers.leaf
    tolerance, most_nodes = limits
    with_cost, unit = goal.mode != REACH, goal.level if goal.mode == PRICE else 1.0
    asked = question_of(goal, kind, intercept, ball)
    folded = ball.radius if kind == LINF else 0.0
    starts, numbers = layout.option_start, layout.columns.size
    features = state.active.size
    start_score = worst_score_of(point, coef, intercept, ball)
    value = value_of(goal, 0.0, 0.0, start_score)
    if value < math.inf:
        answer[:] = point
        for b in range(features):
            state.best[b] = data.start[b] if b < numbers else data.current[b - numbers]
        if goal.mode == GUARANTEE:
            return Found(0.0, 0.0, 0, True)
    cap = first_cap(data, goal, value, start_score)
    cut = open_domains(data, starts, cap, state.lo, state.hi, state.allowed)
    state.active[:] = 0
    proved, nodes, none_yet = math.inf, 0, value == math.inf
    if goal.mode == GUARANTEE and cut:
        proved = cap
    stack = np.empty((64, 4 + 2 * numbers))
    flags = np.empty((64, state.allowed.size + features), np.int8)
    norm = (start_score - intercept) / -ball.radius if kind != LINF else 0.0
    mu = 1.0
    if goal.mode == PRICE:
        mu = loss_slope(goal.loss, start_score) / goal.level
    save(state, -math.inf, mu, max(norm, 1e-9), 0.0, stack[0], flags[0])
    top = 1
    cutoff = cutoff_of(value, tolerance) if not none_yet else math.inf
    while top > 0 and nodes < most_nodes:
        top -= 1
        here = stack[top, 0]
        if here >= cutoff:
            proved = min(proved, here)
            continue
        nodes += 1
        guess, norm, charge = stack[top, 1], stack[top, 2], stack[top, 3]
        load(state, stack[top], flags[top])
        status, changes = OPEN, 0
        dropped, dual = False, Dual(here, guess, norm, charge, 1.0, True)
        for attempt in range(4):
            changes = prepare(layout, buffers, asked, ball.radius, with_cost)
            if changes < 0:
                status = CLOSED
                break
            if none_yet and nodes == 1:
                cutoff = dearest(relaxed.table, features) * (1.0 + 1e-9) + 1e-300
            dual = bound_node(relaxed, asked, guess, norm, charge, state.active, changes, cutoff)
            here, guess, norm, charge = max(here, dual[0]), dual[1], dual[2], dual[3]
            if here >= cutoff:
                proved = min(proved, here if not none_yet else math.inf)
                status = CLOSED
                break
            if attempt == 0 or nodes == 1:
                for upwards in (False, True):
                    round_node(
                        data,
                        relaxed,
                        dual[4],
                        guess,
                        upwards,
                        state.active,
                        changes,
                        state.lo,
                        state.hi,
                        state.chosen,
                        state.free,
                    )
                    trial, _ = solve_leaf(
                        layout,
                        data,
                        coef,
                        intercept,
                        buffers.costs,
                        ball,
                        goal,
                        work,
                        state.chosen,
                        state.free,
                        leaf,
                    )
                    if trial < value:
                        value, none_yet = trial, False
                        cutoff = cutoff_of(value, tolerance)
                        answer[:] = leaf.point
                        state.best[:] = state.chosen
                        if value == -math.inf:
                            return Found(value, value, nodes, True)
                        break
            if here >= cutoff:
                proved = min(proved, here)
                status = CLOSED
                break
            limit = cutoff if none_yet else value
            dropped = drop_dear(
                data,
                starts,
                relaxed.table,
                guess,
                relaxed.best_gammas,
                guess * folded,
                charge if changes < features else 0.0,
                state.active,
                (limit - dual[0]) / unit,
                with_cost,
                state.lo,
                state.hi,
                state.allowed,
            )
            if not dropped or attempt == 3:
                break
        if status == CLOSED:
            continue
        changes = prepare(layout, buffers, asked, ball.radius, with_cost)
        if changes < 0:
            continue
        if is_decided(data, relaxed.table, state, changes):
            for b in range(features):
                state.chosen[b] = relaxed.table.value[relaxed.table.start[b]]
                if b < numbers:
                    state.free[b] = 1 if state.lo[b] < state.hi[b] else 0
            trial, floor = solve_leaf(
                layout,
                data,
                coef,
                intercept,
                buffers.costs,
                ball,
                goal,
                work,
                state.chosen,
                state.free,
                leaf,
            )
            proved = min(proved, max(floor, here))
            if trial < value:
                value, none_yet = trial, False
                cutoff = cutoff_of(value, tolerance)
                answer[:] = leaf.point
                state.best[:] = state.chosen
                if value == -math.inf:
                    return Found(value, value, nodes, True)
            continue
        # the relaxed point refers to the candidates before anything was dropped: bound once more
        if dropped:
            dual = bound_node(relaxed, asked, guess, norm, charge, state.active, changes, cutoff)
            here, guess, norm, charge = max(here, dual[0]), dual[1], dual[2], dual[3]
            if here >= cutoff:
                proved = min(proved, here if not none_yet else math.inf)
                continue
        while top + 3 + state.allowed.size >= stack.shape[0]:
            stack, flags = grown(stack), grown(flags)
        top = push_children(layout, buffers, dual, here, changes, unit, stack, flags, top)
    complete = top == 0
    for k in range(top):
        proved = min(proved, stack[k, 0])
    if complete and none_yet:  # only costs beyond the cap are left
        proved = cap if cut else math.inf
    return Found(value, min(proved, value), nodes, complete)


@kernel
def push_children(layout, buffers, dual, bound, changes, unit, stack, flags, top):
    """Split the node at hand; the most promising child comes to lie on top."""
    mu, norm, charge, share = dual.mu, dual.norm, dual.charge, dual.share
    data, relaxed, state = buffers.data, buffers.relaxed, buffers.state
    table, starts, numbers = relaxed.table, layout.option_start, layout.columns.size
    b, how = choose_branch(data, relaxed, share, mu, state.active, changes, state.lo, state.hi)
    if how == NOWHERE:
        return top
    if how == BY_CHANGE:
        home = home_candidate(table, b)
        changing = mass_of(relaxed, share, b, home) < 0.5
        for turn in range(2):
            save(state, bound, mu, norm, charge, stack[top], flags[top])
            if changing == (turn == 1):  # the promising one last
                flags[top, state.allowed.size + b] = 1
            elif b < numbers:
                stack[top, 4 + b] = stack[top, 4 + numbers + b] = data.start[b]
            else:
                g = b - numbers
                for k in range(starts[g], starts[g + 1]):
                    flags[top, k] = 1 if k == starts[g] + data.current[g] else 0
            top += 1
        return top
    if b < numbers:
        below, above, nearer_above = split_at(data, relaxed, share, state.lo, state.hi, b)
        for turn in range(2):
            save(state, bound, mu, norm, charge, stack[top], flags[top])
            if nearer_above == (turn == 1):
                stack[top, 4 + b] = above
            else:
                stack[top, 4 + numbers + b] = below
            top += 1
        return top
    g = b - numbers
    first, count = table.start[b], table.start[b + 1] - table.start[b]
    for k in range(count):
        i = first + k
        state.order[k] = table.cost[i] - mu * table.gain[i] + relaxed.best_gammas[b] * table.size[i]
    least = state.order[:count].min()
    for _ in range(count):
        worst = 0
        for k in range(count):
            if state.order[k] > state.order[worst]:
                worst = k
        child = bound
        if changes == state.active.size:
            dearer = unit * (state.order[worst] - least)
            child = max(bound, dual.bound + dearer * (1.0 - 1e-12))
        save(state, child, mu, norm, charge, stack[top], flags[top])
        for k in range(starts[g], starts[g + 1]):
            flags[top, k] = 1 if k - starts[g] == int(table.value[first + worst]) else 0
        top += 1
        state.order[worst] = -math.inf
    return top
