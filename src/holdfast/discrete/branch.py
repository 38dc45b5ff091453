"""Where to round a relaxed node, and where to split it."""

from __future__ import annotations

from holdfast.discrete.domains import (
    allowed_above,
    allowed_below,
    may_be_touched,
    next_above,
    next_below,
)
from holdfast.machinery.compile import kernel

BY_VALUE, BY_CHANGE, NOWHERE = 0, 1, 2


@kernel
def mixed(numbers, relaxed, share, b):
    """Mean of some column of the table over the relaxed point of feature b."""
    total = 0.0
    for mixture, weight in ((relaxed.low, 1.0 - share), (relaxed.high, share)):
        part = mixture.share[b]
        total += weight * part * numbers[mixture.first[b]]
        total += weight * (1.0 - part) * numbers[mixture.second[b]]
    return total


@kernel
def mass_of(relaxed, share, b, k):
    """Return the weight of candidate k in the relaxed point of feature b."""
    total = 0.0
    for mixture, weight in ((relaxed.low, 1.0 - share), (relaxed.high, share)):
        if mixture.first[b] == k:
            total += weight * mixture.share[b]
        if mixture.second[b] == k:
            total += weight * (1.0 - mixture.share[b])
    return total


@kernel
def heaviest(relaxed, share, b):
    """Return the candidate with the largest weight, and that weight."""
    best, most = relaxed.low.first[b], -1.0
    for k in range(relaxed.table.start[b], relaxed.table.start[b + 1]):
        mass = mass_of(relaxed, share, b, k)
        if mass > most:
            best, most = k, mass
    return best, most


@kernel
def rounded(data, relaxed, share, upwards, lo, hi, f):
    """Return the allowed value of a number next to the relaxed one; upwards: of better score."""
    v = min(max(mixed(relaxed.table.value, relaxed, share, f), lo[f]), hi[f])
    step, anchor, x0 = data.step[f], data.anchor[f], data.start[f]
    below = allowed_below(v, step, anchor, x0, lo[f])
    above = allowed_above(v, step, anchor, x0, hi[f])
    if upwards:
        return above if data.coef[f] > 0.0 else below
    return below if v - below <= above - v else above


@kernel
def round_node(data, relaxed, share, mu, upwards, active, changes, lo, hi, chosen, free):
    """Choose a value for each discrete feature, and which numbers are left to the core kernels."""
    table = relaxed.table
    for b in range(active.size):
        if b >= lo.size:
            k, _ = heaviest(relaxed, share, b)
            if upwards:
                for j in range(table.start[b], table.start[b + 1]):
                    held = mass_of(relaxed, share, b, j) > 0.0
                    if held and table.gain[j] > table.gain[k]:
                        k = j
            chosen[b] = table.value[k]
            continue
        free[b] = 0
        if lo[b] == hi[b]:
            chosen[b] = lo[b]
        elif data.step[b] > 0.0:
            chosen[b] = rounded(data, relaxed, share, upwards, lo, hi, b)
        else:
            chosen[b], free[b] = data.start[b], 1
            if may_be_touched(data, active, lo, hi, b):
                moving = 1.0 - mass_of(relaxed, share, b, home_of(table, b))
                free[b] = 1 if moving >= (1e-9 if upwards else 0.5) else 0
    if changes < active.size:
        keep_few_changes(data, relaxed, share, mu, active, changes, lo, chosen, free)


@kernel
def is_changed(data, b, numbers, chosen, free):
    if b < numbers:
        return free[b] == 1 or chosen[b] != data.start[b]
    return int(chosen[b]) != data.current[b - numbers]


@kernel
def home_of(table, b):
    """Return the candidate at which feature b stays as it is; -1 where it may not."""
    for k in range(table.start[b], table.start[b + 1]):
        if table.changed[k] == 0:
            return k
    return -1


@kernel
def keep_few_changes(data, relaxed, share, mu, active, changes, lo, chosen, free):
    """Undo the changes that bring least, until there are not too many."""
    table = relaxed.table
    while True:
        count, worst, least = 0, -1, 0.0
        for b in range(active.size):
            home = home_of(table, b)
            if active[b] == 1 or home < 0 or not is_changed(data, b, lo.size, chosen, free):
                continue
            count += 1
            worth = mu * (mixed(table.gain, relaxed, share, b) - table.gain[home])
            worth -= mixed(table.cost, relaxed, share, b)
            if worst < 0 or worth < least:
                worst, least = b, worth
        if count <= changes:
            return
        chosen[worst] = table.value[home_of(table, worst)]
        if worst < lo.size:
            free[worst] = 0


@kernel
def is_open(table, data, lo, hi, b):
    """Whether a discrete choice is left in feature b."""
    if b < lo.size:
        return data.step[b] > 0.0 and lo[b] < hi[b]
    return table.start[b + 1] - table.start[b] > 1


@kernel
def choose_branch(data, relaxed, share, mu, active, changes, lo, hi):
    """Return (feature, how to split it): where the relaxed point is furthest from being allowed."""
    table = relaxed.table
    best, how, most = -1, NOWHERE, -1.0
    for b in range(active.size):
        width = 0.0  # of the gains that are mixed
        if is_open(table, data, lo, hi, b):
            if b < lo.size:
                v = min(max(mixed(table.value, relaxed, share, b), lo[b]), hi[b])
                step, anchor, x0 = data.step[b], data.anchor[b], data.start[b]
                below = allowed_below(v, step, anchor, x0, lo[b])
                above = allowed_above(v, step, anchor, x0, hi[b])
                width = min(v - below, above - v) * abs(data.coef[b])
            else:
                k, mass = heaviest(relaxed, share, b)
                mean = mixed(table.gain, relaxed, share, b)
                width = abs(table.gain[k] - mean) + (1.0 - mass) * abs(mean)
            if width > most:
                best, how, most = b, BY_VALUE, width
    if changes == active.size:
        return choose_touch(data, relaxed, share, active, lo, hi, best, how, mu * most)
    most = -1.0
    for b in range(active.size):  # first say who may change at all
        home = home_of(table, b)
        if active[b] == 1 or home < 0 or table.start[b + 1] - table.start[b] == 1:
            continue
        mass = 1.0 - mass_of(relaxed, share, b, home)
        worth = mu * abs(mixed(table.gain, relaxed, share, b) - table.gain[home])
        worth += mixed(table.cost, relaxed, share, b) + mass
        if worth > most:
            best, how, most = b, BY_CHANGE, worth
    return best, how


@kernel
def choose_touch(data, relaxed, share, active, lo, hi, best, how, most):
    """Return (feature, how to split it), now that fixed costs count too.

    `most` is what the best split so far is about, in units of cost: for a fixed cost that is the
    part of it that the relaxed point does not pay.
    """
    for f in range(lo.size):
        if may_be_touched(data, active, lo, hi, f):
            staying = mass_of(relaxed, share, f, home_of(relaxed.table, f))
            missing = data.touch[f] * staying if staying < 1.0 else 0.0
            if how == NOWHERE or missing > most:
                best, how, most = f, BY_CHANGE, missing
    return best, how


@kernel
def split_at(data, relaxed, share, lo, hi, f):
    """Return (below, above, whether the relaxed value is nearer to above): two neighbours."""
    v = min(max(mixed(relaxed.table.value, relaxed, share, f), lo[f]), hi[f])
    step, anchor, x0 = data.step[f], data.anchor[f], data.start[f]
    below = allowed_below(v, step, anchor, x0, lo[f])
    above = allowed_above(v, step, anchor, x0, hi[f])
    if below == above:
        if below < hi[f]:
            above = next_above(below, step, anchor, x0, hi[f])
        else:
            below = next_below(above, step, anchor, x0, lo[f])
    return below, above, v - below > above - v
