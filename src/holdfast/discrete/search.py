"""Branch and bound over one row: depth first, the most promising child first.

Every node is closed in one of three ways: its bound (`bound.node_bound`) reaches the best value
found, its discrete choices are all made and the core kernels finish it, or it is split. The least
bound of all that was closed is the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.core.row import ROUNDING
from holdfast.discrete.bound import separable_minimum
from holdfast.discrete.branch import (
    BY_CHANGE,
    NOWHERE,
    choose_branch,
    home_of,
    is_open,
    mass_of,
    round_node,
    split_at,
)
from holdfast.discrete.buffers import costs_of, data_of, leaf_of, relaxed_of, state_of, table_of
from holdfast.discrete.domains import (
    build_table,
    drop_dear,
    fix_unchanged,
    may_be_touched,
    open_domains,
    settle_changes,
)
from holdfast.discrete.layout import LINF
from holdfast.discrete.leaf import solve_leaf, value_of
from holdfast.discrete.relax import REACH, Dual, Question, bound_node
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Floats
from holdfast.problem.ball import BallNumbers, dual_norm, power, worst_score_of
from holdfast.problem.costs import cheapest_unit
from holdfast.problem.goal import GUARANTEE, PRICE, GoalNumbers
from holdfast.problem.losses import loss_slope

# what a search keeps count of; CUT: numbers were cut off; UNSURE: some part of it is empty only as
# far as they go
VALUE, DEAREST, PROVED, UNIT, CUT, UNSURE, NODES = 0, 1, 2, 3, 4, 5, 6
MOST_CAPS = 8  # how often numbers without bounds are let go further
MOST_ATTEMPTS = 4  # to bound a node, drop what cannot be better, and bound it again


class Task(NamedTuple):
    """One row: where it starts, its model, and what is asked."""

    point: Floats
    coef: Floats
    intercept: float
    ball: BallNumbers
    goal: GoalNumbers


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
def question_of(goal, kind, intercept, ball, unit):
    """For p = inf the norm is folded into the gains, the intercept's part into the intercept."""
    radius, rho_0, base = ball.radius, ball.intercept_scale, intercept
    if kind == LINF:
        radius, rho_0, base = 0.0, 0.0, intercept - ball.radius * ball.intercept_scale
    return Question(
        goal.mode, goal.loss, goal.level, kind, base, radius, ball.p, ball.q, rho_0, unit
    )


@kernel
def dearest(table, features):
    """Return a cost that nothing in a node exceeds."""
    total = 0.0
    for b in range(features):
        most = 0.0
        for k in range(table.start[b], table.start[b + 1]):
            most = max(most, table.cost[k])
        total += most
    return total * (1.0 + 1e-9) + 1e-300


@kernel
def cutoff_of(tally, tolerance):
    """Return the bound at which a node is closed: nothing in it is better, or feasible at all."""
    if tally[VALUE] == math.inf:
        return tally[DEAREST]
    return tally[VALUE] - 0.5 * tolerance * (tally[UNIT] + abs(tally[VALUE]))


@kernel
def close(tally, bound):
    """Note the bound of a node that is done with; without an answer yet, it has none in it."""
    if tally[VALUE] < math.inf:
        tally[PROVED] = min(tally[PROVED], bound)


@kernel
def has_cut_end(state, f):
    return state.lo[f] == state.cut_lo[f] or state.hi[f] == state.cut_hi[f]


@kernel
def budgets_for_ever(buffers, task, mu):
    """Write budgets under which no number of the node gains by going on for ever.

    Return (is there one, the intercept's budget). Numbers that were cut off get what that takes,
    the others of `best_gammas` what is left.
    """
    relaxed, state, data, ball = (
        relaxed_of(buffers),
        state_of(buffers),
        data_of(buffers),
        task.ball,
    )
    gammas, most = relaxed.gammas, mu * ball.radius
    needed, wanted = 0.0, 0.0
    for b in range(gammas.size):
        gammas[b] = relaxed.best_gammas[b]
        if b < state.lo.size and has_cut_end(state, b):
            gammas[b] = max(gammas[b], mu * abs(data.coef[b]) / data.rho[b] * (1.0 + 8.0 * EPS))
            needed += power(gammas[b] / most, ball.p)
        else:
            wanted += power(gammas[b] / most, ball.p)
    left = power(1.0 - 4.0 * (gammas.size + 4.0) * EPS, ball.p) - needed
    if not left >= 0.0:  # 0 / 0 too: nothing is attacked
        return False, 0.0
    if wanted <= left:
        return True, most * power(left - wanted, 1.0 / ball.p)
    for b in range(gammas.size):
        if not (b < state.lo.size and has_cut_end(state, b)):
            gammas[b] *= power(left / wanted, 1.0 / ball.p)
    return True, 0.0


@kernel
def is_empty(layout, buffers, task, asked, dual, changes):
    """Prove that the node at hand holds no answer, however far its numbers that were cut off go.

    The bound is that of `bound.node_bound` without costs: if it is above 0 for some multiplier, it
    exceeds every cost for a larger one.
    """
    relaxed, state, data = relaxed_of(buffers), state_of(buffers), data_of(buffers)
    cut = False
    for f in range(state.lo.size):
        cut = cut or has_cut_end(state, f)
        # cut off before it reached 0: beyond the cut the norm falls, which no budget below bounds
        if state.lo[f] == state.cut_lo[f] and state.lo[f] > 0.0:
            return False
        if state.hi[f] == state.cut_hi[f] and state.hi[f] < 0.0:
            return False
    if not cut:
        return True
    if asked.kind == LINF:
        return False
    mu = dual.mu
    is_there, gamma_0 = budgets_for_ever(buffers, task, mu)
    if not is_there:
        return False
    build_table(
        data,
        layout.option_start,
        state.lo,
        state.hi,
        state.allowed,
        state.active,
        asked.kind,
        asked.radius,
        False,
        relaxed.table,
    )
    least, rounding, _ = separable_minimum(
        relaxed.table, mu, relaxed.gammas, state.active, changes, relaxed.picks, relaxed.saved
    )
    rounding += 4.0 * EPS * (mu * (abs(asked.level) + abs(asked.base)) + gamma_0 * asked.rho_0)
    return least + mu * (asked.level - asked.base) + gamma_0 * asked.rho_0 > rounding


@kernel
def close_node(layout, buffers, task, asked, dual, bound, changes, tally):
    """Close the node at hand for its bound; note whether it is empty only as far as it was cut."""
    close(tally, bound)
    is_unsure = tally[VALUE] == math.inf and tally[UNSURE] == 0.0
    if is_unsure and not is_empty(layout, buffers, task, asked, dual, changes):
        tally[UNSURE] = 1.0


@kernel
def prepare(layout, buffers, task, asked):
    """List the candidates of the node at hand; return how many changes are left (-1: too many)."""
    state, data, table = state_of(buffers), data_of(buffers), table_of(buffers)
    starts, changes = layout.option_start, 0
    for _ in range(2):
        build_table(
            data,
            starts,
            state.lo,
            state.hi,
            state.allowed,
            state.active,
            asked.kind,
            task.ball.radius,
            asked.mode != REACH,
            table,
        )
        for b in range(state.active.size):
            if table.start[b] == table.start[b + 1]:
                return -1
        changes = settle_changes(table, layout.max_changes, state.active)
        if changes != 0:
            break
        fix_unchanged(data, starts, state.active, state.lo, state.hi, state.allowed)
    return changes


@kernel
def is_decided(data, table, state, changes):
    """Whether all discrete choices are made."""
    for b in range(state.active.size):
        if is_open(table, data, state.lo, state.hi, b):
            return False
        if b < state.lo.size and may_be_touched(data, state.active, state.lo, state.hi, b):
            return False
    return changes == state.active.size


@kernel
def try_choice(layout, buffers, task, work, tally, answer):
    """Solve the continuous rest of `state.chosen`, and keep it if it is better; return a bound."""
    state, leaf = state_of(buffers), leaf_of(buffers)
    value, floor = solve_leaf(
        layout,
        data_of(buffers),
        task.coef,
        task.intercept,
        costs_of(buffers),
        task.ball,
        task.goal,
        work,
        state.chosen,
        state.free,
        leaf,
    )
    if value < tally[VALUE]:
        tally[VALUE] = value
        answer[:] = leaf.point
        state.best[:] = state.chosen
    return floor


@kernel
def try_rounding(layout, buffers, task, work, dual, changes, tally, answer):
    """Round the relaxed point, to what is nearest and towards the better score."""
    state = state_of(buffers)
    for upwards in (False, True):
        before = tally[VALUE]
        round_node(
            data_of(buffers),
            relaxed_of(buffers),
            dual.share,
            dual.mu,
            upwards,
            state.active,
            changes,
            state.lo,
            state.hi,
            state.chosen,
            state.free,
        )
        try_choice(layout, buffers, task, work, tally, answer)
        if tally[VALUE] < before:
            return


@kernel
def finish(layout, buffers, task, work, bound, tally, answer):
    """Close a node whose discrete choices are all made."""
    state, table = state_of(buffers), table_of(buffers)
    for b in range(state.active.size):
        state.chosen[b] = table.value[table.start[b]]
        if b < state.lo.size:
            state.free[b] = 1 if state.lo[b] < state.hi[b] else 0
    floor = try_choice(layout, buffers, task, work, tally, answer)
    close(tally, max(floor, bound))
    if tally[VALUE] == math.inf and floor < math.inf:  # nothing was found, and that is no proof
        tally[PROVED] = min(tally[PROVED], max(floor, bound))
    if tally[VALUE] == math.inf:
        for f in range(state.lo.size):
            if has_cut_end(state, f):
                tally[UNSURE] = 1.0


@kernel
def tighten(layout, buffers, task, asked, dual, changes, tally):
    """Drop what cannot be in a better answer; return whether anything went."""
    relaxed, state = relaxed_of(buffers), state_of(buffers)
    unit = task.goal.level if task.goal.mode == PRICE else 1.0
    limit = cutoff_of(tally, 0.0)
    return drop_dear(
        data_of(buffers),
        layout.option_start,
        relaxed.table,
        dual.mu,
        relaxed.best_gammas,
        dual.mu * task.ball.radius if asked.kind == LINF else 0.0,
        dual.charge if changes < state.active.size else 0.0,
        state.active,
        (limit - dual.bound) / unit,
        asked.mode != REACH,
        state.lo,
        state.hi,
        state.allowed,
    )


@kernel
def visit(layout, buffers, task, asked, work, node, tolerance, tally, answer):
    """Bound the node at hand; return (must it be split, its dual, its bound, changes left)."""
    relaxed, state = relaxed_of(buffers), state_of(buffers)
    dual, bound, changes = node, node.bound, 0
    for attempt in range(MOST_ATTEMPTS):
        changes = prepare(layout, buffers, task, asked)
        if changes < 0:
            return False, dual, bound, changes
        if node.bound == -math.inf and attempt == 0:
            tally[DEAREST] = dearest(relaxed.table, state.active.size)
        dual = bound_node(
            relaxed,
            asked,
            dual.mu,
            dual.norm,
            dual.charge,
            state.active,
            changes,
            cutoff_of(tally, tolerance),
        )
        bound = max(bound, dual.bound)
        if task.goal.mode == GUARANTEE:
            bound = max(bound, 0.0)  # no cost is below 0
        if bound >= cutoff_of(tally, tolerance):
            close_node(layout, buffers, task, asked, dual, bound, changes, tally)
            return False, dual, bound, changes
        if is_decided(data_of(buffers), relaxed.table, state, changes):
            finish(layout, buffers, task, work, bound, tally, answer)
            return False, dual, bound, changes
        if attempt == 0 or node.bound == -math.inf:
            try_rounding(layout, buffers, task, work, dual, changes, tally, answer)
            if bound >= cutoff_of(tally, tolerance):
                close(tally, bound)
                return False, dual, bound, changes
        last = attempt == MOST_ATTEMPTS - 1
        if tally[CUT] == 1.0 and tally[VALUE] == math.inf:
            break  # what is too dear as far as numbers go may not be where they go further
        if last or not tighten(layout, buffers, task, asked, dual, changes, tally):
            break
    return True, dual, bound, changes


@kernel
def cheapest_option(data, option_start, radius, unit):
    """Return the least cost of a unit of score, options counted beside `unit`, that of numbers."""
    least = unit if unit > 0.0 else math.inf
    for g in range(option_start.size - 1):
        home = option_start[g] + data.current[g]
        for k in range(option_start[g], option_start[g + 1]):
            gain = abs(data.gain[k] - data.gain[home]) + radius * (data.size[k] + data.size[home])
            if data.fee[k] > 0.0 and gain > 0.0:
                least = min(least, data.fee[k] / gain)
    return least if least < math.inf else 0.0


@kernel
def first_cap(data, goal, value, start_score, unit):
    """Return a cost that no better answer exceeds; for a guarantee, one that few exceed."""
    if goal.mode == PRICE:
        return value / goal.level * (1.0 + 1e-9)  # no loss is below 0
    if goal.mode == REACH:
        total = 1.0 + abs(start_score)
        for f in range(data.coef.size):
            total += (abs(data.coef[f]) + data.rho[f]) * abs(data.start[f])
        return 1e6 * total
    if unit == 0.0:  # no number is of use: all that can be paid for is options
        total = 1.0
        for k in range(data.fee.size):
            total += data.fee[k] if data.fee[k] < math.inf else 0.0
        return total
    return 1e4 * (1.0 + abs(goal.level) + abs(start_score)) * unit


@kernel
def is_endless(data, ball, changes):
    """Whether score can be had without end by moving at most so many numbers.

    Along a ray of numbers without a bound the score grows when their coefficients are out of the
    adversary's reach: when ``||w / rho||_p > radius``. The largest ratios decide.
    """
    total, last, taken = 0.0, math.inf, 0
    while taken < changes:
        largest, ties = 0.0, 0
        for f in range(data.coef.size):
            w = data.coef[f]
            room = data.upper[f] if w > 0.0 else -data.lower[f]
            if w == 0.0 or room < math.inf:
                continue
            if abs(w) > ball.radius * data.rho[f] * (1.0 + ROUNDING):
                return True  # alone
            ratio = abs(w) / (ball.radius * data.rho[f])
            if ratio < last and ratio > largest:
                largest, ties = ratio, 1
            elif ratio == largest:
                ties += 1
        if ball.p == math.inf:
            return False
        if ties == 0:
            break
        total += power(largest, ball.p) * min(ties, changes - taken)
        taken, last = taken + ties, largest
    return total > 1.0 + ROUNDING * ball.p


@kernel
def stay_put(data, task, score, state, answer):
    """Staying as one is, is the first answer, where it is one; return its value."""
    value = value_of(task.goal, 0.0, 0.0, score)
    if value < math.inf:
        answer[:] = task.point
        for b in range(state.best.size):
            home = b - state.lo.size
            state.best[b] = data.start[b] if home < 0 else data.current[home]
    return value


@kernel
def search(layout, buffers, task, kind, work, limits, answer):
    """Minimise over one row; write the best point into `answer` (untouched where there is none).

    `limits` are (tolerance, most nodes, stop): whoever no longer wants the answer sets stop[0].
    Numbers without bounds are searched as far as some cost goes. An answer within that cost is the
    best of all: a better one would be cheaper still. Until there is one, the cost is raised.
    """
    data, state, goal, ball = data_of(buffers), state_of(buffers), task.goal, task.ball
    score = worst_score_of(task.point, task.coef, task.intercept, ball)
    unit = 1.0
    if goal.mode == GUARANTEE:
        unit = cheapest_unit(
            data.start, data.coef, data.rho, data.cost, data.lower, data.upper, ball.radius
        )
        unit = cheapest_option(data, layout.option_start, ball.radius, unit)
    asked = question_of(goal, kind, task.intercept, ball, unit)
    tally = np.zeros(7)
    tally[VALUE] = stay_put(data, task, score, state, answer)
    tally[DEAREST], tally[PROVED], tally[UNIT] = math.inf, math.inf, unit
    if goal.mode == GUARANTEE and tally[VALUE] == 0.0:
        return Found(0.0, 0.0, 0, True)
    if goal.mode == REACH and is_endless(data, ball, min(layout.max_changes, data.coef.size)):
        return Found(-math.inf, -math.inf, 0, True)
    cap = first_cap(data, goal, tally[VALUE], score, unit)
    is_complete, searched, is_settled, last = False, math.inf, False, math.inf
    for _ in range(MOST_CAPS):
        tally[PROVED], tally[UNSURE] = math.inf, 0.0
        searched = open_domains(
            data,
            layout.option_start,
            cap,
            goal.mode == REACH,
            ball.radius if kind == LINF else 0.0,
            state.lo,
            state.hi,
            state.cut_lo,
            state.cut_hi,
            state.allowed,
        )
        tally[CUT] = 1.0 if searched < math.inf else 0.0
        is_complete = explore(layout, buffers, task, asked, work, limits, score, tally, answer)
        if searched == math.inf or not is_complete:
            break
        if goal.mode == REACH:
            # going on towards an end that is reached nowhere brings less and less
            near = abs(last - tally[VALUE]) <= 1e-9 * (1.0 + abs(tally[VALUE]))
            is_settled = near or not is_at_cut_end(layout, state, answer)
            if is_settled:
                break
            last = tally[VALUE]
            cap *= 1e4
            continue
        if goal.mode == PRICE or tally[VALUE] <= searched or searched < cap:
            break
        if tally[VALUE] < math.inf:
            cap = tally[VALUE] * (1.0 + 1e-9)
        elif tally[UNSURE] == 0.0:
            break
        else:
            cap *= 1e4
    if searched < math.inf:  # nothing is known of what was not searched
        if goal.mode == REACH and not is_settled:
            tally[PROVED] = -math.inf
        elif goal.mode == PRICE and searched < cap:  # no better answer costs more than the cap
            tally[PROVED] = min(tally[PROVED], goal.level * searched)
        elif goal.mode == GUARANTEE and (
            tally[VALUE] < math.inf or tally[UNSURE] == 1.0 or not is_complete
        ):
            tally[PROVED] = min(tally[PROVED], searched)
    bound = min(tally[PROVED], tally[VALUE])
    return Found(tally[VALUE], bound, int(tally[NODES]), is_complete)


@kernel
def is_at_cut_end(layout, state, answer):
    """Whether the best point lies where a number was cut off."""
    for f in range(state.lo.size):
        value = answer[layout.columns[f]]
        if value == state.cut_lo[f] or value == state.cut_hi[f]:
            return True
    return False


@kernel
def explore(layout, buffers, task, asked, work, limits, score, tally, answer):
    """Search the domains at hand; return whether it was all of them."""
    state, goal, ball = state_of(buffers), task.goal, task.ball
    tolerance, most_nodes, stop = limits
    state.active[:] = 0
    stack = np.empty((64, 4 + 2 * state.lo.size))
    flags = np.empty((64, state.allowed.size + state.active.size), np.int8)
    norm = dual_norm(task.point, ball.scale, ball.intercept_scale, ball.q)
    mu = tally[UNIT] if tally[UNIT] > 0.0 else 1.0
    if goal.mode == PRICE:
        mu = loss_slope(goal.loss, score) / goal.level
    save(state, -math.inf, mu, max(norm, 1e-9), 0.0, stack[0], flags[0])
    top = 1
    while top > 0 and tally[NODES] < most_nodes and tally[VALUE] > -math.inf and stop[0] == 0:
        top -= 1
        if tally[VALUE] < math.inf and stack[top, 0] >= cutoff_of(tally, tolerance):
            close(tally, stack[top, 0])
            continue
        tally[NODES] += 1.0
        load(state, stack[top], flags[top])
        node = Dual(stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3], 1.0)
        is_left, dual, bound, changes = visit(
            layout, buffers, task, asked, work, node, tolerance, tally, answer
        )
        if is_left:
            while top + 3 + state.allowed.size >= stack.shape[0]:
                stack, flags = grown(stack), grown(flags)
            unit = goal.level if goal.mode == PRICE else 1.0
            before = top
            top = push_children(layout, buffers, dual, bound, changes, unit, stack, flags, top)
            if top == before:  # nothing to split: its bound is all that is known
                tally[PROVED] = min(tally[PROVED], bound)
    for k in range(top):
        least = 0.0 if goal.mode == GUARANTEE else -math.inf
        tally[PROVED] = min(tally[PROVED], max(stack[k, 0], least))
    return top == 0


@kernel
def push_children(layout, buffers, dual, bound, changes, unit, stack, flags, top):
    """Split the node at hand; the most promising child comes to lie on top."""
    mu, norm, charge, share = dual.mu, dual.norm, dual.charge, dual.share
    data, relaxed, state = data_of(buffers), relaxed_of(buffers), state_of(buffers)
    table, starts, numbers = relaxed.table, layout.option_start, layout.columns.size
    b, how = choose_branch(data, relaxed, share, mu, state.active, changes, state.lo, state.hi)
    if how == NOWHERE:
        return top
    if how == BY_CHANGE:
        home = home_of(table, b)
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
