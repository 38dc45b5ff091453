"""What a node allows: an interval of each number, some levels of each group, so many changes.

The allowed values of a number are those of its lattice, and its start, within ``[lo, hi]``; both
ends are allowed values themselves. Along a number, ``c |u - x0| - mu w u + gamma rho |u|`` is
convex and bends at x0 and at 0 only. So a handful of candidates stands for all of its values: the
two ends, the start, and the allowed neighbours of 0. What it costs to touch a number at all is the
same away from x0, and changes none of this.

A continuous number with such a fixed cost is a discrete choice: either it stays, or it is touched
(active), pays, and may then be anywhere, at x0 itself too, so that the core kernels can place it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.core.kinds import ANY, LINF
from holdfast.discrete.lattice import (
    MOST_STEPS_OUT,
    allowed_above,
    allowed_below,
    lattice_ceil,
    lattice_floor,
)
from holdfast.discrete.layout import feature_of, group_of
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import EPS, Flags, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import REACH

MOST_CANDIDATES = 5  # of a number
MOST_COMPARED = 128  # levels of a group that are compared with each other


class State(Struct):
    """The node at hand, and the best choices so far."""

    lo: Floats
    hi: Floats
    cut_lo: Floats  # where numbers were cut off that could go further; NaN where they were not
    cut_hi: Floats
    allowed: Flags
    active: Flags
    chosen: Floats  # of each feature: its value, or the position of its level
    free: Flags
    best: Floats
    order: Floats


class Candidates(Struct):
    """The candidates of every feature of a node, flat; feature b has start[b] : start[b + 1]."""

    start: Ints
    score: Floats  # their parts of the score, ...
    size: Floats  # ... and of the dual norm
    cost: Floats
    value: Floats  # of a number its value, of a group the position of the level
    changed: Flags


@kernel
def reach_of(data, f, cap, asked):
    """Return how far number f may go for a cost of `cap`; or, at any cost, for a score of `cap`."""
    reach = cap / data.cost[f]
    if asked.mode == REACH and asked.kind == ANY:
        reach = cap * (abs(data.start[f]) + 1.0)
    elif asked.mode == REACH:
        reach = cap * (abs(data.start[f]) + 1.0 / abs(data.coef[f])) if data.coef[f] != 0.0 else 0.0
        reach = max(reach, 4.0 * abs(data.start[f]))  # 0 may be the best place
    if data.step[f] > 0.0:
        reach = min(reach, MOST_STEPS_OUT * data.step[f])
    return reach


@kernel
def useful_range(data, f, asked):
    """Return the bounds of number f within which every move can be of use.

    Beyond 0 and its start, a move against its coefficient only costs: both the score and the norm
    get worse. So does one along a coefficient that is not above `blunt`, what the adversary takes
    off it (p = inf). The next allowed value is the last that can be of use.
    """
    x0, low, high, blunt = data.start[f], data.lower[f], data.upper[f], asked.blunt
    if asked.kind == ANY:  # a move against its coefficient may still make the set milder
        return low, high
    least, most = min(x0, 0.0), max(x0, 0.0)
    if data.step[f] > 0.0:
        least = lattice_floor(least, data.step[f], data.anchor[f])
        most = lattice_ceil(most, data.step[f], data.anchor[f])
    if data.coef[f] >= 0.0 or -data.coef[f] <= blunt * data.rho[f]:
        low = max(low, min(least, x0))
    if data.coef[f] <= 0.0 or data.coef[f] <= blunt * data.rho[f]:
        high = min(high, max(most, x0))
    return low, high


@kernel
def open_domains(data, level_start, asked, cap, state):
    """Write what the whole row allows where no number costs more than `cap`.

    Return the cost within which nothing was cut off: inf where nothing was at all. `state.cut_lo`
    and `state.cut_hi` are the ends where numbers were cut off, NaN where they were not.
    """
    searched = math.inf
    for f in range(state.lo.size):
        x0, reach = data.start[f], reach_of(data, f, cap, asked)
        low, high = useful_range(data, f, asked)
        below, above = x0 - low > reach, high - x0 > reach
        if below:
            low = x0 - reach
        if above:
            high = x0 + reach
        if below or above:
            searched = min(searched, min(cap, data.cost[f] * reach))
        if data.step[f] > 0.0:
            low = min(x0, lattice_ceil(low, data.step[f], data.anchor[f]))
            high = max(x0, lattice_floor(high, data.step[f], data.anchor[f]))
        state.lo[f], state.hi[f] = low, high
        state.cut_lo[f] = low if below else math.nan
        state.cut_hi[f] = high if above else math.nan
    for g in range(level_start.size - 1):
        for k in range(level_start[g], level_start[g + 1]):
            home = k == level_start[g] + data.current[g]
            state.allowed[k] = 1 if home or data.level_cost[k] < math.inf else 0
    return searched


@kernel
def score_hair(layout, data, asked, state):
    """Return more than rounding can do to the worst-case score of any point of the domains."""
    level_start, radius = layout.level_start, asked.radius + asked.blunt  # one of them is 0
    total = abs(asked.amount) + abs(asked.intercept) + radius * asked.rho_0
    for f in range(state.lo.size):
        furthest_out = max(abs(state.lo[f]), abs(state.hi[f]))
        total += (abs(data.coef[f]) + radius * data.rho[f]) * furthest_out
    for g in range(level_start.size - 1):
        most = 0.0
        for k in range(level_start[g], level_start[g + 1]):
            most = max(most, data.terms[k] + radius * data.size[k])
        total += most
    columns = layout.columns.size + layout.group_columns.size
    return 16.0 * (columns + 8.0) * EPS * total


@kernel
def drop_dominated(layout, data, asked, state):
    """Drop levels that another one beats: its score is better, its cost and size are no larger.

    The score is better by more than a hair, so that it is with whatever else is chosen, as anybody
    computes it. For p = inf the size is part of the score. The current level stays: it alone is
    no change.
    """
    if asked.kind == ANY:  # which is better depends on the model
        return
    hair, with_cost = score_hair(layout, data, asked, state), asked.mode != REACH
    level_start = layout.level_start
    for g in range(level_start.size - 1):
        first, last = level_start[g], level_start[g + 1]
        if last - first > MOST_COMPARED:
            continue
        for k in range(first, last):
            if k == first + data.current[g]:
                continue
            cost = data.level_cost[k] if with_cost else 0.0
            for j in range(first, last):
                better = data.score[j] - data.score[k]
                is_smaller = data.size[j] <= data.size[k]
                if asked.kind == LINF:
                    better, is_smaller = better - asked.blunt * (data.size[j] - data.size[k]), True
                is_cheaper = (data.level_cost[j] if with_cost else 0.0) <= cost
                if state.allowed[j] == 1 and is_cheaper and is_smaller and better > hair:
                    state.allowed[k] = 0
                    break


@kernel
def is_touched(data, state, f):
    """Whether number f pays for being touched wherever it goes: its choice has been made."""
    return state.active[f] == 1 and data.step[f] == 0.0 and state.lo[f] < state.hi[f]


@kernel
def may_be_touched(data, state, f):
    """Whether it is still open whether a continuous number with a fixed cost is touched."""
    is_open = state.active[f] == 0 and state.lo[f] < state.hi[f]
    return is_open and data.fixed_cost[f] > 0.0 and data.step[f] == 0.0


@kernel
def put(candidates, k, score, size, cost, value, changed):
    candidates.score[k], candidates.size[k], candidates.cost[k] = score, size, cost
    candidates.value[k], candidates.changed[k] = value, changed


@kernel
def write_candidates(data, level_start, asked, with_cost, state, candidates):
    """List the candidates. For p = inf the norm is part of the score, and nothing else is left."""
    at, numbers = 0, state.lo.size
    for f in range(numbers):
        candidates.start[f] = at
        lo, hi = state.lo[f], state.hi[f]
        x0, w, rho, c = data.start[f], data.coef[f], data.rho[f], data.cost[f]
        stay = data.fixed_cost[f] if is_touched(data, state, f) else 0.0
        below = above = math.nan
        if lo < 0.0 < hi:
            below = allowed_below(0.0, data.step[f], data.anchor[f], x0, lo)
            above = allowed_above(0.0, data.step[f], data.anchor[f], x0, hi)
        inside = x0 if lo <= x0 <= hi else math.nan
        for v in (inside, lo, hi, below, above):
            if math.isnan(v):
                continue
            seen = False
            for k in range(candidates.start[f], at):
                seen = seen or candidates.value[k] == v
            if not seen:
                fixed = stay if v == x0 else data.fixed_cost[f]
                cost, changed = c * abs(v - x0) + fixed, 0 if v == x0 else 1
                put(candidates, at, w * v, rho * abs(v), cost, v, changed)
                at += 1
    for g in range(level_start.size - 1):
        candidates.start[feature_of(numbers, g)] = at
        for k in range(level_start[g], level_start[g + 1]):
            if state.allowed[k] == 1:
                j = k - level_start[g]
                changed = 0 if j == data.current[g] else 1
                put(candidates, at, data.score[k], data.size[k], data.level_cost[k], j, changed)
                at += 1
    candidates.start[candidates.start.size - 1] = at
    for k in range(at):
        if not with_cost:
            candidates.cost[k] = 0.0
        if asked.kind == LINF:
            candidates.score[k] -= asked.blunt * candidates.size[k]
        if asked.kind == LINF or asked.kind == ANY:
            candidates.size[k] = 0.0


@kernel
def settle_changes(candidates, max_changes, active):
    """Count features that must change as active; return how many others may still change.

    -1: more must change than may; the number of all features: there is no limit any more.
    """
    left, undecided = max_changes, 0
    for b in range(active.size):
        home, others = 0, 0
        for k in range(candidates.start[b], candidates.start[b + 1]):
            if candidates.changed[k] == 0:
                home += 1
            else:
                others += 1
        if home == 0:
            active[b] = 1
        elif others == 0:
            active[b] = 0  # it cannot change: it does not count
        if active[b] == 1:
            left -= 1
        elif others > 0:
            undecided += 1
    if left < 0:
        return -1
    return active.size if undecided <= left else left


@kernel
def fix_unchanged(data, level_start, state):
    """No more changes are left: what is not active stays as it is."""
    numbers = state.lo.size
    for f in range(numbers):
        if state.active[f] == 0:
            state.lo[f] = state.hi[f] = data.start[f]
    for g in range(level_start.size - 1):
        if state.active[feature_of(numbers, g)] == 0:
            for k in range(level_start[g], level_start[g + 1]):
                state.allowed[k] = 1 if k == level_start[g] + data.current[g] else 0


class Lagrangian(NamedTuple):
    """The Lagrangian of a number away from its bends: the sum of these slopes' terms."""

    start: float
    cost: float  # for each unit that it moves
    worth: float  # mu * coef: for each unit of its value
    pull: float  # gamma * rho: for each unit of its size
    penalty: float  # for changing at all


@kernel
def lagrangian(line, v):
    """Return the Lagrangian at v, as for a value other than the start."""
    moved = line.cost * abs(v - line.start)
    return moved - line.worth * v + line.pull * abs(v) + line.penalty


@kernel
def furthest(line, most, end, other):
    """Return the value nearest to `end` at which the Lagrangian is at most `most`.

    Between `other` and `end` it is convex with bends at the start and at 0; walk from the end
    inwards.
    """
    x0, v = line.start, end
    fv = lagrangian(line, v) - (line.penalty if v == x0 else 0.0)
    if fv <= most:
        return end
    near, far = (x0, 0.0) if abs(end - x0) < abs(end) else (0.0, x0)
    for bend in (near, far, other):
        if not min(v, other) <= bend <= max(v, other) or bend == v:
            continue
        # the penalty of changing is a constant away from the start
        fb = lagrangian(line, bend)
        if bend == x0 and fb - line.penalty <= most < fb:
            return x0
        if fb <= most:
            return v + (bend - v) * ((fv - most) / (fv - fb))
        v, fv = bend, fb
    return v


@kernel
def drop_dear(data, level_start, relaxed, asked, dual, charge, slack, state):
    """Drop values whose Lagrangian exceeds the least by more than slack: none of them is better.

    Return whether anything went. `charge` is for the change of a feature that is not active.
    """
    candidates, mu, dropped = relaxed.candidates, dual.mu, False
    for b in range(state.active.size):
        gamma, penalty = relaxed.best_gammas[b], 0.0 if state.active[b] == 1 else charge
        least, size = math.inf, 0.0
        for k in range(candidates.start[b], candidates.start[b + 1]):
            value = candidates.cost[k] - mu * candidates.score[k] + gamma * candidates.size[k]
            least = min(least, value + (penalty if candidates.changed[k] == 1 else 0.0))
            terms = candidates.cost[k] + mu * abs(candidates.score[k]) + gamma * candidates.size[k]
            size = max(size, terms + penalty)
        most = least + (slack + 16.0 * EPS * size)
        if b < state.lo.size:
            if state.lo[b] < state.hi[b]:
                pull = (gamma + mu * asked.blunt) * data.rho[b]
                dropped = narrow(data, asked, mu, pull, penalty, most, state, b) or dropped
            continue
        first = level_start[group_of(state.lo.size, b)]
        for k in range(candidates.start[b], candidates.start[b + 1]):
            value = candidates.cost[k] - mu * candidates.score[k] + gamma * candidates.size[k]
            if value + (penalty if candidates.changed[k] == 1 else 0.0) > most:
                state.allowed[first + int(candidates.value[k])] = 0
                dropped = True
    return dropped


@kernel
def narrow(data, asked, mu, pull, penalty, most, state, f):
    """Take off the ends of number f where its Lagrangian exceeds `most`; return whether any went.

    `pull` is what a unit of its size costs, `penalty` what a change does, beside its fixed cost.
    """
    x0, lo, hi = data.start[f], state.lo[f], state.hi[f]
    with_cost = asked.mode != REACH
    fixed_cost = data.fixed_cost[f] if with_cost else 0.0
    if is_touched(data, state, f):
        most -= fixed_cost  # paid everywhere: it makes no difference
    else:
        penalty += fixed_cost
    line = Lagrangian(x0, data.cost[f] if with_cost else 0.0, mu * data.coef[f], pull, penalty)
    low, high = furthest(line, most, lo, hi), furthest(line, most, hi, lo)
    if lo < low <= hi:
        low = min(max(low - 8.0 * EPS * abs(low), lo), hi)
        low = allowed_above(low, data.step[f], data.anchor[f], x0, hi)
    if lo <= high < hi:
        high = min(max(high + 8.0 * EPS * abs(high), lo), hi)
        high = allowed_below(high, data.step[f], data.anchor[f], x0, lo)
    if data.step[f] == 0.0:  # a continuous number keeps its start, from which it is solved
        low, high = min(low, x0), max(high, x0)
    low, high = max(low, lo), min(high, hi)
    if low <= high and (low > lo or high < hi):
        state.lo[f], state.hi[f] = low, high
        return True
    return False
