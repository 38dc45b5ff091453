"""Where to round a relaxed node, and where to split it."""

from __future__ import annotations

from holdfast.discrete.domains import may_be_touched
from holdfast.discrete.lattice import allowed_above, allowed_below, next_above, next_below
from holdfast.discrete.layout import group_of
from holdfast.machinery.compile import viewing_kernel as kernel

BY_VALUE, BY_CHANGE, NOWHERE = 0, 1, 2


@kernel
def mean_of(values, mixture, b):
    """Mean of some values of the candidates of feature b over a mixture of them."""
    part = mixture.share[b]
    return part * values[mixture.first[b]] + (1.0 - part) * values[mixture.second[b]]


@kernel
def mixed(values, relaxed, share, b):
    """Mean of some values of the candidates of feature b over its relaxed point."""
    low, high = mean_of(values, relaxed.low, b), mean_of(values, relaxed.high, b)
    return (1.0 - share) * low + share * high


@kernel
def part_of(mixture, b, k):
    """Return the weight of candidate k in a mixture of candidates of feature b."""
    part = mixture.share[b] if mixture.first[b] == k else 0.0
    return part + (1.0 - mixture.share[b] if mixture.second[b] == k else 0.0)


@kernel
def mass_of(relaxed, share, b, k):
    """Return the weight of candidate k in the relaxed point of feature b."""
    return (1.0 - share) * part_of(relaxed.low, b, k) + share * part_of(relaxed.high, b, k)


@kernel
def heaviest(relaxed, share, b):
    """Return the candidate with the largest weight, the first of several, and that weight."""
    low, high = relaxed.low, relaxed.high
    best, most = low.first[b], -1.0
    for k in (low.first[b], low.second[b], high.first[b], high.second[b]):
        mass = mass_of(relaxed, share, b, k)
        if mass > most or (mass == most and k < best):
            best, most = k, mass
    return best, most


@kernel
def best_held(relaxed, share, b, k):
    """Return the candidate of the best score among k and those in the relaxed point."""
    low, high, score = relaxed.low, relaxed.high, relaxed.candidates.score
    for j in (low.first[b], low.second[b], high.first[b], high.second[b]):
        if score[j] > score[k] and mass_of(relaxed, share, b, j) > 0.0:
            k = j
    return k


@kernel
def neighbours(data, relaxed, share, state, f):
    """Return (relaxed value of number f, the allowed values next to it: below, above)."""
    lo, hi = state.lo[f], state.hi[f]
    v = min(max(mixed(relaxed.candidates.value, relaxed, share, f), lo), hi)
    step, anchor, x0 = data.step[f], data.anchor[f], data.start[f]
    below = allowed_below(v, step, anchor, x0, lo)
    return v, below, allowed_above(v, step, anchor, x0, hi)


@kernel
def rounded(data, relaxed, share, upwards, state, f):
    """Return the allowed value of a number next to the relaxed one; upwards: of better score."""
    v, below, above = neighbours(data, relaxed, share, state, f)
    if upwards:
        return above if data.coef[f] > 0.0 else below
    return below if v - below <= above - v else above


@kernel
def round_node(data, relaxed, dual, upwards, changes, state):
    """Choose a value for each discrete feature, and which numbers are left to the core kernels."""
    candidates, numbers, share = relaxed.candidates, state.lo.size, dual.share
    for b in range(numbers):
        state.free[b] = 0
        if state.lo[b] == state.hi[b]:
            state.chosen[b] = state.lo[b]
        elif data.step[b] > 0.0:
            state.chosen[b] = rounded(data, relaxed, share, upwards, state, b)
        else:
            state.chosen[b], state.free[b] = data.start[b], 1
            if may_be_touched(data, state, b):
                moving = 1.0 - mass_of(relaxed, share, b, home_of(candidates, b))
                state.free[b] = 1 if moving >= (1e-9 if upwards else 0.5) else 0
    for b in range(numbers, state.active.size):
        k, _ = heaviest(relaxed, share, b)
        if upwards:
            k = best_held(relaxed, share, b, k)
        state.chosen[b] = candidates.value[k]
    if changes < state.active.size:
        keep_few_changes(data, relaxed, dual, changes, state)


@kernel
def is_changed(data, state, b):
    """Whether feature b is chosen to change."""
    numbers = state.lo.size
    if b < numbers:
        return state.free[b] == 1 or state.chosen[b] != data.start[b]
    return int(state.chosen[b]) != data.current[group_of(numbers, b)]


@kernel
def home_of(candidates, b):
    """Return the candidate at which feature b stays as it is; -1 where it may not."""
    for k in range(candidates.start[b], candidates.start[b + 1]):
        if candidates.changed[k] == 0:
            return k
    return -1


@kernel
def keep_few_changes(data, relaxed, dual, changes, state):
    """Undo the changes that bring least, until there are not too many."""
    candidates, share = relaxed.candidates, dual.share
    while True:
        count, worst, least = 0, -1, 0.0
        for b in range(state.active.size):
            home = home_of(candidates, b)
            if state.active[b] == 1 or home < 0 or not is_changed(data, state, b):
                continue
            count += 1
            worth = dual.mu * (mixed(candidates.score, relaxed, share, b) - candidates.score[home])
            worth -= mixed(candidates.cost, relaxed, share, b)
            if worst < 0 or worth < least:
                worst, least = b, worth
        if count <= changes:
            return
        state.chosen[worst] = candidates.value[home_of(candidates, worst)]
        if worst < state.lo.size:
            state.free[worst] = 0


@kernel
def is_open(candidates, data, state, b):
    """Whether a discrete choice is left in feature b."""
    if b < state.lo.size:
        return data.step[b] > 0.0 and state.lo[b] < state.hi[b]
    return candidates.start[b + 1] - candidates.start[b] > 1


@kernel
def choose_branch(data, relaxed, dual, changes, state):
    """Return (feature, how to split it): where the relaxed point is furthest from being allowed."""
    candidates, share = relaxed.candidates, dual.share
    best, how, most = -1, NOWHERE, -1.0
    for b in range(state.active.size):
        if not is_open(candidates, data, state, b):
            continue
        if b < state.lo.size:
            v, below, above = neighbours(data, relaxed, share, state, b)
            width = min(v - below, above - v) * abs(data.coef[b])
        else:  # of the scores that are mixed
            k, mass = heaviest(relaxed, share, b)
            mean = mixed(candidates.score, relaxed, share, b)
            width = abs(candidates.score[k] - mean) + (1.0 - mass) * abs(mean)
        if width > most:
            best, how, most = b, BY_VALUE, width
    if changes == state.active.size:
        return choose_touch(data, relaxed, share, state, best, how, dual.mu * most)
    most = -1.0
    for b in range(state.active.size):  # first say who may change at all
        home = home_of(candidates, b)
        if state.active[b] == 1 or home < 0 or candidates.start[b + 1] - candidates.start[b] == 1:
            continue
        mass = 1.0 - mass_of(relaxed, share, b, home)
        worth = dual.mu * abs(mixed(candidates.score, relaxed, share, b) - candidates.score[home])
        worth += mixed(candidates.cost, relaxed, share, b) + mass
        if worth > most:
            best, how, most = b, BY_CHANGE, worth
    return best, how


@kernel
def choose_touch(data, relaxed, share, state, best, how, most):
    """Return (feature, how to split it), now that fixed costs count too.

    `most` is what the best split so far is about, in units of cost: for a fixed cost that is the
    part of it that the relaxed point does not pay.
    """
    for f in range(state.lo.size):
        if may_be_touched(data, state, f):
            staying = mass_of(relaxed, share, f, home_of(relaxed.candidates, f))
            missing = data.fixed_cost[f] * staying if staying < 1.0 else 0.0
            if how == NOWHERE or missing > most:
                best, how, most = f, BY_CHANGE, missing
    return best, how


@kernel
def split_at(data, relaxed, share, state, f):
    """Return (below, above, whether the relaxed value is nearer to above): two neighbours."""
    v, below, above = neighbours(data, relaxed, share, state, f)
    step, anchor, x0 = data.step[f], data.anchor[f], data.start[f]
    if below == above:
        if below < state.hi[f]:
            above = next_above(below, step, anchor, x0, state.hi[f])
        else:
            below = next_below(above, step, anchor, x0, state.lo[f])
    return below, above, v - below > above - v
