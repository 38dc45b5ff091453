"""Nodes that wait for their turn, and how the node at hand is split into such."""

from __future__ import annotations

import math

from holdfast.discrete.branch import (
    BY_CHANGE,
    NOWHERE,
    choose_branch,
    heaviest,
    home_of,
    mass_of,
    mixed,
    split_at,
)
from holdfast.discrete.layout import Layout, group_of
from holdfast.discrete.relax import Dual
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Flags, Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import PRICE

MOST_CHILDREN = 128  # a group of more levels is split in two


class Stack(Struct):
    """Nodes that wait, one in each row: what it allows, and what is known of it."""

    bound: Floats
    mu: Floats  # the multipliers of its parent, to begin with
    norm: Floats
    charge: Floats
    lo: Floats
    hi: Floats
    allowed: Flags
    active: Flags


def new_stack(layout: Layout, depth: int) -> Stack:
    """Make room for `depth` nodes, and for the children of the last of them."""
    f, o, g = layout.columns.size, int(layout.level_start[-1]), layout.level_start.size - 1
    n = depth + 2 + MOST_CHILDREN
    return Stack.zeros(n, n, n, n, (n, f), (n, f), (n, o), (n, f + g))


@kernel
def save_node(stack, top, state, bound, dual):
    """Put the node at hand on the stack."""
    stack.bound[top], stack.mu[top] = bound, dual.mu
    stack.norm[top], stack.charge[top] = dual.norm, dual.charge
    for f in range(state.lo.size):
        stack.lo[top, f], stack.hi[top, f] = state.lo[f], state.hi[f]
    for k in range(state.allowed.size):
        stack.allowed[top, k] = state.allowed[k]
    for b in range(state.active.size):
        stack.active[top, b] = state.active[b]


@kernel
def load_node(stack, top, state):
    """Take a node in hand; return what is known of it."""
    for f in range(state.lo.size):
        state.lo[f], state.hi[f] = stack.lo[top, f], stack.hi[top, f]
    for k in range(state.allowed.size):
        state.allowed[k] = stack.allowed[top, k]
    for b in range(state.active.size):
        state.active[b] = stack.active[top, b]
    return Dual(stack.bound[top], stack.mu[top], stack.norm[top], stack.charge[top], 1.0)


@kernel
def allow_only(stack, top, level_start, g, level):
    """Leave one level of group g to a node on the stack."""
    for k in range(level_start[g], level_start[g + 1]):
        stack.allowed[top, k] = 1 if k == level_start[g] + level else 0


@kernel
def push_children(layout, buffers, stack, top, asked, dual, bound, changes):
    """Split the node at hand; return the new top, with the most promising child below it."""
    data, relaxed, state = buffers.data, buffers.relaxed, buffers.state
    starts, numbers, share = layout.level_start, layout.columns.size, dual.share
    b, how = choose_branch(data, relaxed, dual, changes, state)
    if how == NOWHERE:
        return top
    if how == BY_CHANGE:
        changing = mass_of(relaxed, share, b, home_of(relaxed.candidates, b)) < 0.5
        for turn in range(2):
            save_node(stack, top, state, bound, dual)
            if changing == (turn == 1):  # the promising one last
                stack.active[top, b] = 1
            elif b < numbers:
                stack.lo[top, b] = stack.hi[top, b] = data.start[b]
            else:
                g = group_of(numbers, b)
                allow_only(stack, top, starts, g, data.current[g])
            top += 1
        return top
    if b < numbers:
        below, above, nearer_above = split_at(data, relaxed, share, state, b)
        for turn in range(2):
            save_node(stack, top, state, bound, dual)
            if nearer_above == (turn == 1):
                stack.lo[top, b] = above
            else:
                stack.hi[top, b] = below
            top += 1
        return top
    unit = asked.amount if asked.mode == PRICE else 1.0
    if changes < state.active.size:  # the charge of changing is not among what levels cost
        unit = 0.0
    return push_levels(layout, buffers, stack, top, dual, bound, unit, b)


@kernel
def push_halves(layout, buffers, stack, top, dual, bound, b):
    """Split the levels of a group in two, between those that the relaxed point mixes."""
    relaxed, state = buffers.relaxed, buffers.state
    candidates, starts, g = relaxed.candidates, layout.level_start, group_of(state.lo.size, b)
    first, last = candidates.start[b], candidates.start[b + 1] - 1
    mean = mixed(candidates.value, relaxed, dual.share, b)
    split = first
    while split + 1 < last and candidates.value[split + 1] <= mean:
        split += 1
    level = starts[g] + int(candidates.value[split])  # the last one of the lower half
    k, _ = heaviest(relaxed, dual.share, b)
    lower_last = k <= split  # the promising one last
    for turn in range(2):
        save_node(stack, top, state, bound, dual)
        is_lower = lower_last == (turn == 1)
        for j in range(starts[g], starts[g + 1]):
            if (j <= level) != is_lower:
                stack.allowed[top, j] = 0
        top += 1
    return top


@kernel
def push_levels(layout, buffers, stack, top, dual, bound, unit, b):
    """Push a child for each level of a group; its Lagrangian bounds it, in units of the goal."""
    relaxed, state = buffers.relaxed, buffers.state
    candidates, order, g = relaxed.candidates, state.order, group_of(state.lo.size, b)
    first, count = candidates.start[b], candidates.start[b + 1] - candidates.start[b]
    if count > MOST_CHILDREN:
        return push_halves(layout, buffers, stack, top, dual, bound, b)
    least = math.inf
    for k in range(count):
        i = first + k
        cost = candidates.cost[i] - dual.mu * candidates.score[i]
        order[k] = cost + relaxed.best_gammas[b] * candidates.size[i]
        least = min(least, order[k])
    for _ in range(count):
        worst = 0
        for k in range(count):
            if order[k] > order[worst]:
                worst = k
        dearer = unit * (order[worst] - least) * (1.0 - 1e-12)
        save_node(stack, top, state, max(bound, dual.bound + dearer), dual)
        allow_only(stack, top, layout.level_start, g, int(candidates.value[first + worst]))
        top += 1
        order[worst] = -math.inf
    return top
