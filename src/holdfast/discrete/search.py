"""Branch and bound over one row: depth first, the most promising child first.

The least bound of all nodes that were closed (`visit`) is the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.discrete.aim import is_endless, question_of
from holdfast.discrete.domains import drop_dominated, open_domains
from holdfast.discrete.layout import group_of
from holdfast.discrete.leaf import value_of
from holdfast.discrete.relax import Dual
from holdfast.discrete.stack import MOST_CHILDREN, load_node, push_children, save_node
from holdfast.discrete.ties import settle_ties
from holdfast.discrete.visit import (
    CRAMPED,
    CUT,
    DEAREST,
    NODES,
    PROVED,
    UNIT,
    UNSURE,
    VALUE,
    close,
    cutoff_of,
    visit,
)
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.costs import cheapest_unit
from holdfast.problem.goal import GUARANTEE, PRICE, REACH
from holdfast.problem.losses import loss_slope
from holdfast.problem.model_set import copy_into, norm_of, worst_score_of

MOST_CAPS = 8  # how often numbers without bounds are let go further


class Verdict(NamedTuple):
    """What the search of a row came to; the point itself is in the leaf."""

    value: float
    bound: float
    nodes: int
    is_complete: bool


@kernel
def unit_of(layout, case, data):
    """Return what a gap is measured in, beside the value: the least cost of a unit of score."""
    if case.goal.mode != GUARANTEE:
        return 1.0
    radius = case.robust.radius
    unit = cheapest_unit(data.start, data.coef, data.rho, data.cost, data.lower, data.upper, radius)
    return cheapest_level(data, layout.level_start, radius, unit)


@kernel
def cheapest_level(data, level_start, radius, unit):
    """Return the least cost of a unit of score, levels counted beside `unit`, that of numbers."""
    least = unit if unit > 0.0 else math.inf
    for g in range(level_start.size - 1):
        home = level_start[g] + data.current[g]
        for k in range(level_start[g], level_start[g + 1]):
            most = abs(data.score[k] - data.score[home])
            most += radius * (data.size[k] + data.size[home])
            if data.level_cost[k] > 0.0 and most > 0.0:
                least = min(least, data.level_cost[k] / most)
    return least if least < math.inf else 0.0


@kernel
def first_cap(data, goal, value, start_score, unit):
    """Return a cost that no better answer exceeds; for a guarantee, one that few exceed."""
    if goal.mode == PRICE:
        return value / goal.amount * (1.0 + 1e-9)  # no loss is below 0
    if goal.mode == REACH:
        total = 1.0 + abs(start_score)
        for f in range(data.coef.size):
            total += (abs(data.coef[f]) + data.rho[f]) * abs(data.start[f])
        return 1e6 * total
    if unit == 0.0:  # no number is of use: all that can be paid for is levels
        total = 1.0
        for k in range(data.level_cost.size):
            total += data.level_cost[k] if data.level_cost[k] < math.inf else 0.0
        return total
    return 1e4 * (1.0 + abs(goal.amount) + abs(start_score)) * unit


@kernel
def stay_put(data, case, score, state, leaf):
    """Staying as one is, is the first answer, where it is one; return its value."""
    value = value_of(case.goal, 0.0, 0.0, score)
    if value < math.inf:
        copy_into(leaf.best, case.point)
        for b in range(state.best.size):
            g = group_of(state.lo.size, b)
            state.best[b] = data.start[b] if g < 0 else data.current[g]
    return value


@kernel
def search(layout, buffers, stack, case, kind, solver, limits):
    """Minimise over one row; the best point is left in the leaf (untouched where there is none).

    `solver` solves the leaves. `limits` are `Limits`: whoever no longer wants the answer sets
    stop[0].

    Numbers without bounds are searched as far as some cost goes. An answer within that cost is the
    best of all: a better one would be cheaper still. Until there is one, the cost is raised.
    """
    data, state, leaf, tally = buffers.data, buffers.state, buffers.leaf, buffers.tally
    goal, unit = case.goal, unit_of(layout, case, data)
    score = worst_score_of(case.point, case.coef, case.intercept, case.robust)
    for k in range(tally.size):
        tally[k] = 0.0
    tally[VALUE] = stay_put(data, case, score, state, leaf)
    tally[DEAREST], tally[PROVED], tally[UNIT] = math.inf, math.inf, unit
    if goal.mode == GUARANTEE and tally[VALUE] == 0.0:
        return Verdict(0.0, 0.0, 0, True)
    if goal.mode == REACH and is_endless(
        case.robust, data, min(layout.max_changes, data.coef.size)
    ):
        return Verdict(-math.inf, -math.inf, 0, True)
    asked = question_of(case.robust, layout, buffers, case, kind, unit, solver.work)
    cap = first_cap(data, goal, tally[VALUE], score, unit)
    searched, last, is_complete, is_settled = math.inf, math.inf, False, False
    for _ in range(MOST_CAPS):
        tally[PROVED], tally[UNSURE] = math.inf, 0.0
        searched = open_domains(data, layout.level_start, asked, cap, state)
        drop_dominated(layout, data, asked, state)
        tally[CUT] = 1.0 if searched < math.inf else 0.0
        is_complete = explore(layout, buffers, stack, case, asked, solver, limits, score)
        if searched == math.inf or not is_complete:
            break
        # going on towards an end that is reached nowhere brings less and less
        near = abs(last - tally[VALUE]) <= 1e-9 * (1.0 + abs(tally[VALUE]))
        is_settled = goal.mode == REACH and (near or not is_at_cut_end(layout, state, leaf))
        further = next_cap(goal, tally, cap, searched)
        if is_settled or further == cap:
            break
        last, cap = tally[VALUE], further
    if searched < math.inf and not is_settled:
        note_unsearched(goal, tally, cap, searched, is_complete)
    if goal.mode == GUARANTEE and tally[VALUE] < math.inf:
        settle_ties(layout, data, case, state, leaf)
    bound = min(tally[PROVED], tally[VALUE])
    return Verdict(tally[VALUE], bound, int(tally[NODES]), is_complete)


@kernel
def next_cap(goal, tally, cap, searched):
    """Return the cost up to which to search next; the same again: what was searched is enough."""
    if goal.mode == REACH:
        return cap * 1e4
    # what was searched is the cap but for rounding, or less: numbers cannot go further
    if goal.mode == PRICE or tally[VALUE] <= searched or searched < cap * (1.0 - 1e-12):
        return cap
    if tally[VALUE] < math.inf:
        return tally[VALUE] * (1.0 + 1e-9)
    return cap if tally[UNSURE] == 0.0 else cap * 1e4


@kernel
def note_unsearched(goal, tally, cap, searched, is_complete):
    """Lower what is proven: nothing is known of points that cost more than was searched."""
    if goal.mode == REACH:
        tally[PROVED] = -math.inf
    elif goal.mode == PRICE:
        if searched < cap:  # no better answer costs more than the cap
            tally[PROVED] = min(tally[PROVED], goal.amount * searched)
    elif tally[VALUE] < math.inf or tally[UNSURE] == 1.0 or not is_complete:
        tally[PROVED] = min(tally[PROVED], searched)


@kernel
def is_at_cut_end(layout, state, leaf):
    """Whether the best point lies where a number was cut off."""
    for f in range(state.lo.size):
        value = leaf.best[layout.columns[f]]
        if value == state.cut_lo[f] or value == state.cut_hi[f]:
            return True
    return False


@kernel
def first_guess(case, score, unit):
    """Return multipliers to begin with, and no bound."""
    goal, mu = case.goal, unit if unit > 0.0 else 1.0
    if goal.mode == PRICE:
        mu = loss_slope(goal.loss, score) / goal.amount
    return Dual(-math.inf, mu, max(norm_of(case.point, case.robust), 1e-9), 0.0, 1.0)


@kernel
def explore(layout, buffers, stack, case, asked, solver, limits, score):
    """Search the domains at hand; return whether it was all of them."""
    state, tally = buffers.state, buffers.tally
    tolerance, max_nodes, stop = limits.tolerance, limits.nodes, limits.stop
    for b in range(state.active.size):
        state.active[b] = 0
    room = stack.bound.size - 2 - MOST_CHILDREN  # what a split takes at most
    save_node(stack, 0, state, -math.inf, first_guess(case, score, tally[UNIT]))
    top = 1
    while top > 0 and tally[NODES] < max_nodes and tally[VALUE] > -math.inf and stop[0] == 0:
        top -= 1
        if tally[VALUE] < math.inf and stack.bound[top] >= cutoff_of(tally, tolerance):
            close(tally, stack.bound[top])
            continue
        tally[NODES] += 1.0
        node = load_node(stack, top, state)
        is_left, dual, bound, changes = visit(layout, buffers, case, asked, solver, node, tolerance)
        if is_left:
            before = top
            top = push_children(layout, buffers, stack, top, asked, dual, bound, changes)
            if top == before:  # nothing to split: its bound is all that is known
                tally[PROVED] = min(tally[PROVED], bound)
            if top > room:
                tally[CRAMPED] = 1.0
                return False
    for k in range(top):
        least = 0.0 if asked.mode == GUARANTEE else -math.inf
        tally[PROVED] = min(tally[PROVED], max(stack.bound[k], least))
    return top == 0
