"""One node of the search: bound it, round it, drop what cannot be better; then close or split it.

A node is closed in one of two ways: its bound (`bound.node_bound`) reaches the best value found, or
its discrete choices are all made and the core kernels finish it. All others are split.
"""

from __future__ import annotations

import math

from holdfast.core.kinds import ANY, LINF
from holdfast.discrete.aim import bound_against
from holdfast.discrete.bound import separable_minimum
from holdfast.discrete.branch import is_open, round_node
from holdfast.discrete.domains import (
    drop_dear,
    fix_unchanged,
    may_be_touched,
    settle_changes,
    write_candidates,
)
from holdfast.discrete.leaves import call_leaf
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import EPS
from holdfast.problem.ball import power
from holdfast.problem.goal import GUARANTEE, PRICE, REACH
from holdfast.problem.model_set import copy_into

# What a search keeps count of. CUT: numbers were cut off; UNSURE: some part of it is empty only as
# far as they go; CRAMPED: the stack is too small
VALUE, DEAREST, PROVED, UNIT, CUT, UNSURE, NODES, CRAMPED = 0, 1, 2, 3, 4, 5, 6, 7
MOST_ATTEMPTS = 4  # to bound a node, drop what cannot be better, and bound it again


@kernel
def dearest(candidates, features):
    """Return a cost that nothing in a node exceeds."""
    total = 0.0
    for b in range(features):
        most = 0.0
        for k in range(candidates.start[b], candidates.start[b + 1]):
            most = max(most, candidates.cost[k])
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
def budgets_for_ever(relaxed, data, asked, mu, state):
    """Write budgets under which no number of the node gains by going on for ever.

    Return (is there one, the intercept's budget). Numbers that were cut off get what that takes,
    the others of `best_gammas` what is left.
    """
    gammas, most = relaxed.gammas, mu * asked.radius
    needed, wanted = 0.0, 0.0
    for b in range(gammas.size):
        gammas[b] = relaxed.best_gammas[b]
        if b < state.lo.size and has_cut_end(state, b):
            gammas[b] = max(gammas[b], mu * abs(data.coef[b]) / data.rho[b] * (1.0 + 8.0 * EPS))
            needed += power(gammas[b] / most, asked.p)
        else:
            wanted += power(gammas[b] / most, asked.p)
    left = power(1.0 - 4.0 * (gammas.size + 4.0) * EPS, asked.p) - needed
    if not left >= 0.0:  # 0 / 0 too: nothing is attacked
        return False, 0.0
    if wanted <= left:
        return True, most * power(left - wanted, 1.0 / asked.p)
    for b in range(gammas.size):
        if not (b < state.lo.size and has_cut_end(state, b)):
            gammas[b] *= power(left / wanted, 1.0 / asked.p)
    return True, 0.0


@kernel
def is_empty(layout, buffers, asked, dual, changes):
    """Prove that the node at hand holds no answer, however far its numbers that were cut off go.

    The bound is that of `bound.node_bound` without costs: if it is above 0 for some multiplier, it
    exceeds every cost for a larger one.
    """
    relaxed, state, data = buffers.relaxed, buffers.state, buffers.data
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
    if asked.kind == LINF or asked.kind == ANY:
        return False
    mu = dual.mu
    is_there, gamma_0 = budgets_for_ever(relaxed, data, asked, mu, state)
    if not is_there:
        return False
    write_candidates(data, layout.level_start, asked, False, state, relaxed.candidates)
    least, rounding, _ = separable_minimum(
        relaxed.candidates, mu, relaxed.gammas, state.active, changes, relaxed.saved
    )
    rounding += (
        4.0 * EPS * (mu * (abs(asked.amount) + abs(asked.intercept)) + gamma_0 * asked.rho_0)
    )
    return least + mu * (asked.amount - asked.intercept) + gamma_0 * asked.rho_0 > rounding


@kernel
def close_node(layout, buffers, asked, dual, bound, changes):
    """Close the node at hand for its bound; note whether it is empty only as far as it was cut."""
    tally = buffers.tally
    close(tally, bound)
    is_unsure = tally[VALUE] == math.inf and tally[UNSURE] == 0.0
    if is_unsure and not is_empty(layout, buffers, asked, dual, changes):
        tally[UNSURE] = 1.0


@kernel
def list_candidates(layout, buffers, asked):
    """List the candidates of the node at hand; return how many changes are left (-1: too many)."""
    state, data, candidates = buffers.state, buffers.data, buffers.relaxed.candidates
    changes = 0
    for _ in range(2):
        write_candidates(data, layout.level_start, asked, asked.mode != REACH, state, candidates)
        for b in range(state.active.size):
            if candidates.start[b] == candidates.start[b + 1]:
                return -1
        changes = settle_changes(candidates, layout.max_changes, state.active)
        if changes != 0:
            break
        fix_unchanged(data, layout.level_start, state)
    return changes


@kernel
def is_decided(data, candidates, state, changes):
    """Whether all discrete choices are made."""
    for b in range(state.active.size):
        if is_open(candidates, data, state, b):
            return False
        if b < state.lo.size and may_be_touched(data, state, b):
            return False
    return changes == state.active.size


@kernel
def try_choice(buffers, solver):
    """Solve the continuous rest of `state.chosen`, and keep it if it is better; return a bound."""
    state, leaf, tally = buffers.state, buffers.leaf, buffers.tally
    value, floor = call_leaf(solver.address, solver.packed)
    if value < tally[VALUE]:
        tally[VALUE] = value
        copy_into(leaf.best, leaf.point)
        copy_into(state.best, state.chosen)
    return floor


@kernel
def try_rounding(buffers, solver, dual, changes):
    """Round the relaxed point, to what is nearest and towards the better score."""
    before = buffers.tally[VALUE]
    for upwards in (False, True):
        round_node(buffers.data, buffers.relaxed, dual, upwards, changes, buffers.state)
        try_choice(buffers, solver)
        if buffers.tally[VALUE] < before:
            return


@kernel
def finish(buffers, solver, bound):
    """Close a node whose discrete choices are all made."""
    state, candidates, tally = buffers.state, buffers.relaxed.candidates, buffers.tally
    for b in range(state.active.size):
        state.chosen[b] = candidates.value[candidates.start[b]]
        if b < state.lo.size:
            state.free[b] = 1 if state.lo[b] < state.hi[b] else 0
    floor = try_choice(buffers, solver)
    close(tally, max(floor, bound))
    if tally[VALUE] == math.inf and floor < math.inf:  # nothing was found, and that is no proof
        tally[PROVED] = min(tally[PROVED], max(floor, bound))
    if tally[VALUE] == math.inf:
        for f in range(state.lo.size):
            if has_cut_end(state, f):
                tally[UNSURE] = 1.0


@kernel
def tighten(layout, buffers, asked, dual, changes):
    """Drop what cannot be in a better answer; return whether anything went."""
    state = buffers.state
    unit = asked.amount if asked.mode == PRICE else 1.0
    slack = (cutoff_of(buffers.tally, 0.0) - dual.bound) / unit
    charge = dual.charge if changes < state.active.size else 0.0
    return drop_dear(
        buffers.data,
        layout.level_start,
        buffers.relaxed,
        asked,
        dual,
        charge,
        slack,
        state,
    )


@kernel
def visit(layout, buffers, case, asked, solver, node, tolerance):
    """Bound the node at hand; return (must it be split, its dual, its bound, changes left)."""
    relaxed, state, tally = buffers.relaxed, buffers.state, buffers.tally
    dual, bound, changes, is_root = node, node.bound, 0, node.bound == -math.inf
    for attempt in range(MOST_ATTEMPTS):
        changes = list_candidates(layout, buffers, asked)
        if changes < 0:
            return False, dual, bound, changes
        if is_root and attempt == 0:
            tally[DEAREST] = dearest(relaxed.candidates, state.active.size)
        cutoff = cutoff_of(tally, tolerance)
        dual = bound_against(
            case.robust, layout, buffers, case, asked, solver, dual, changes, cutoff
        )
        bound = max(bound, dual.bound)
        if asked.mode == GUARANTEE:
            bound = max(bound, 0.0)  # no cost is below 0
        if bound >= cutoff:
            close_node(layout, buffers, asked, dual, bound, changes)
            return False, dual, bound, changes
        if is_decided(buffers.data, relaxed.candidates, state, changes):
            finish(buffers, solver, bound)
            return False, dual, bound, changes
        if attempt == 0 or is_root:
            try_rounding(buffers, solver, dual, changes)
            if bound >= cutoff_of(tally, tolerance):
                close(tally, bound)
                return False, dual, bound, changes
        if tally[CUT] == 1.0 and tally[VALUE] == math.inf:
            break  # what is too dear as far as numbers go may not be where they go further
        last = attempt == MOST_ATTEMPTS - 1
        if last or not tighten(layout, buffers, asked, dual, changes):
            break
    return True, dual, bound, changes
