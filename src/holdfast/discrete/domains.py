"""What a node allows: an interval of each number, some options of each group.

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

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.layout import LINF, Ints
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Floats

MOST_CANDIDATES = 5  # of a number
MOST_STEPS_OUT = 2.0**50


class Table(NamedTuple):
    """The candidates of every feature of a node, flat; feature b has start[b] : start[b + 1]."""

    start: Ints
    gain: Floats
    size: Floats
    cost: Floats
    value: Floats  # of a number its value, of a group the position of the option
    changed: NDArray[np.int8]


@kernel
def lattice_index(v, step, anchor):
    """Return the largest whole k with ``anchor + step * k <= v``, as the sum is rounded."""
    k = math.floor((v - anchor) / step)
    for _ in range(2):
        if anchor + step * (k + 1.0) <= v:
            k += 1.0
        elif anchor + step * k > v:
            k -= 1.0
    return k


@kernel
def lattice_floor(v, step, anchor):
    """Return the largest ``anchor + step * k`` that is not above v."""
    return anchor + step * lattice_index(v, step, anchor)


@kernel
def lattice_ceil(v, step, anchor):
    """Return the smallest ``anchor + step * k`` that is not below v."""
    k = lattice_index(v, step, anchor)
    value = anchor + step * k
    return value if value >= v else anchor + step * (k + 1.0)


@kernel
def next_above(v, step, anchor, x0, hi):
    """Return the smallest allowed value above v, for v < hi."""
    value = anchor + step * (lattice_index(v, step, anchor) + 1.0)
    if v < x0 < value:
        value = x0
    return min(value, hi)


@kernel
def next_below(v, step, anchor, x0, lo):
    """Return the largest allowed value below v, for v > lo."""
    k = lattice_index(v, step, anchor)
    value = anchor + step * k
    if value >= v:
        value = anchor + step * (k - 1.0)
    if value < x0 < v:
        value = x0
    return max(value, lo)


@kernel
def allowed_below(v, step, anchor, x0, lo):
    """Return the largest allowed value not above v, for v >= lo."""
    if step == 0.0:
        return v
    value = lattice_floor(v, step, anchor)
    if value < x0 <= v:
        value = x0
    return max(value, lo)


@kernel
def allowed_above(v, step, anchor, x0, hi):
    """Return the smallest allowed value not below v, for v <= hi."""
    if step == 0.0:
        return v
    value = lattice_ceil(v, step, anchor)
    if v <= x0 < value:
        value = x0
    return min(value, hi)


@kernel
def reach_of(data, f, cap, anywhere):
    """Return how far number f may go for a cost of `cap`; or, at any cost, for a score of `cap`."""
    reach = cap / data.cost[f]
    if anywhere:
        reach = cap * (abs(data.start[f]) + 1.0 / abs(data.coef[f])) if data.coef[f] != 0.0 else 0.0
        reach = max(reach, 4.0 * abs(data.start[f]))  # 0 may be the best place
    if data.step[f] > 0.0:  # a lattice further out than this cannot be told from its neighbours
        reach = min(reach, MOST_STEPS_OUT * data.step[f])
    return reach


@kernel
def useful_range(data, f, blunt):
    """Return the bounds of number f within which every move can be of use.

    Beyond 0 and its start, a move against its coefficient only costs: both the score and the norm
    get worse. So does one along a coefficient that is not above `blunt`, what the adversary takes
    off it (p = inf). The next allowed value is the last that can be of use.
    """
    x0, low, high = data.start[f], data.lower[f], data.upper[f]
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
def open_domains(data, option_start, cap, anywhere, blunt, lo, hi, cut_lo, cut_hi, allowed):
    """Write what the whole row allows where no number costs more than `cap`.

    Return the cost within which nothing was cut off: inf where nothing was at all. `cut_lo` and
    `cut_hi` are the ends where numbers were cut off, NaN where they were not.
    """
    searched = math.inf
    for f in range(lo.size):
        x0, reach = data.start[f], reach_of(data, f, cap, anywhere)
        low, high = useful_range(data, f, blunt)
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
        lo[f], hi[f] = low, high
        cut_lo[f], cut_hi[f] = low if below else math.nan, high if above else math.nan
    for g in range(option_start.size - 1):
        for k in range(option_start[g], option_start[g + 1]):
            home = k == option_start[g] + data.current[g]
            allowed[k] = 1 if home or data.fee[k] < math.inf else 0
    return searched


@kernel
def is_touched(data, active, lo, hi, f):
    """Whether number f pays for being touched wherever it goes: its choice has been made."""
    return active[f] == 1 and data.step[f] == 0.0 and lo[f] < hi[f]


@kernel
def may_be_touched(data, active, lo, hi, f):
    """Whether it is still open whether a continuous number with a fixed cost is touched."""
    return data.touch[f] > 0.0 and data.step[f] == 0.0 and active[f] == 0 and lo[f] < hi[f]


@kernel
def put(table, k, gain, size, cost, value, changed):
    table.gain[k], table.size[k], table.cost[k] = gain, size, cost
    table.value[k], table.changed[k] = value, changed


@kernel
def build_table(data, option_start, lo, hi, allowed, active, kind, radius, with_cost, table):
    """List the candidates. For p = inf the norm is part of the gain, and nothing else is left."""
    at = 0
    for f in range(lo.size):
        table.start[f] = at
        x0, w, rho, c = data.start[f], data.coef[f], data.rho[f], data.cost[f]
        stay = data.touch[f] if is_touched(data, active, lo, hi, f) else 0.0
        below = above = math.nan
        if lo[f] < 0.0 < hi[f]:
            below = allowed_below(0.0, data.step[f], data.anchor[f], x0, lo[f])
            above = allowed_above(0.0, data.step[f], data.anchor[f], x0, hi[f])
        inside = x0 if lo[f] <= x0 <= hi[f] else math.nan
        for v in (inside, lo[f], hi[f], below, above):
            if math.isnan(v):
                continue
            seen = False
            for k in range(table.start[f], at):
                seen = seen or table.value[k] == v
            if not seen:
                fee = stay if v == x0 else data.touch[f]
                put(table, at, w * v, rho * abs(v), c * abs(v - x0) + fee, v, 0 if v == x0 else 1)
                at += 1
    for g in range(option_start.size - 1):
        table.start[lo.size + g] = at
        for k in range(option_start[g], option_start[g + 1]):
            if allowed[k] == 1:
                j = k - option_start[g]
                home = j == data.current[g]
                put(table, at, data.gain[k], data.size[k], data.fee[k], j, 0 if home else 1)
                at += 1
    table.start[table.start.size - 1] = at
    for k in range(at):
        if not with_cost:
            table.cost[k] = 0.0
        if kind == LINF:
            table.gain[k] -= radius * table.size[k]
            table.size[k] = 0.0


@kernel
def settle_changes(table, max_changes, active):
    """Count features that must change as active; return how many others may still change.

    -1: more must change than may; the number of all features: there is no limit any more.
    """
    left, undecided = max_changes, 0
    for b in range(active.size):
        home, others = 0, 0
        for k in range(table.start[b], table.start[b + 1]):
            if table.changed[k] == 0:
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
def fix_unchanged(data, option_start, active, lo, hi, allowed):
    """No more changes are left: what is not active stays as it is."""
    for f in range(lo.size):
        if active[f] == 0:
            lo[f] = hi[f] = data.start[f]
    for g in range(option_start.size - 1):
        if active[lo.size + g] == 0:
            for k in range(option_start[g], option_start[g + 1]):
                allowed[k] = 1 if k == option_start[g] + data.current[g] else 0


@kernel
def furthest(x0, w, rho, c, mu, gamma, penalty, least, slack, end, other):
    """Return the value nearest to `end` at which the Lagrangian is within `slack` of its least.

    Between `other` and `end` it is convex with bends at x0 and at 0; walk from the end inwards.
    """
    v = end
    fv = c * abs(v - x0) - mu * w * v + gamma * rho * abs(v) + (penalty if v != x0 else 0.0)
    if fv - least <= slack:
        return end
    near, far = (x0, 0.0) if abs(end - x0) < abs(end) else (0.0, x0)
    for bend in (near, far, other):
        if not min(v, other) <= bend <= max(v, other) or bend == v:
            continue
        # the penalty of changing is a constant away from x0
        fb = c * abs(bend - x0) - mu * w * bend + gamma * rho * abs(bend) + penalty
        if bend == x0 and fb - penalty - least <= slack < fb - least:
            return x0
        if fb - least <= slack:
            return v + (bend - v) * ((fv - least - slack) / (fv - fb))
        v, fv = bend, fb
    return v


@kernel
def drop_dear(
    data, option_start, table, mu, gammas, folded, level, active, slack, with_cost, lo, hi, allowed
):
    """Drop values whose Lagrangian exceeds the least by more than slack: none of them is better.

    Return whether anything went. `level` is what the change of a feature that is not active is
    charged for; `folded` is the budget that is part of the gains already (p = inf).
    """
    dropped = False
    for b in range(gammas.size):
        gamma, penalty = gammas[b], 0.0 if active[b] == 1 else level
        least, size = math.inf, 0.0
        for k in range(table.start[b], table.start[b + 1]):
            value = table.cost[k] - mu * table.gain[k] + gamma * table.size[k]
            least = min(least, value + (penalty if table.changed[k] == 1 else 0.0))
            terms = table.cost[k] + mu * abs(table.gain[k]) + gamma * table.size[k]
            size = max(size, terms + penalty)
        room = slack + 16.0 * EPS * size
        if b >= lo.size:
            g = b - lo.size
            for k in range(table.start[b], table.start[b + 1]):
                value = table.cost[k] - mu * table.gain[k] + gamma * table.size[k]
                value += penalty if table.changed[k] == 1 else 0.0
                if value - least > room:
                    allowed[option_start[g] + int(table.value[k])] = 0
                    dropped = True
            continue
        if lo[b] == hi[b]:
            continue
        x0, c = data.start[b], data.cost[b] if with_cost else 0.0
        fee = data.touch[b] if with_cost else 0.0
        if is_touched(data, active, lo, hi, b):
            least -= fee  # paid everywhere: it makes no difference
        else:
            penalty += fee
        low = furthest(
            x0, data.coef[b], data.rho[b], c, mu, gamma + folded, penalty, least, room, lo[b], hi[b]
        )
        high = furthest(
            x0, data.coef[b], data.rho[b], c, mu, gamma + folded, penalty, least, room, hi[b], lo[b]
        )
        step, anchor = data.step[b], data.anchor[b]
        if lo[b] < low <= hi[b]:
            low -= 8.0 * EPS * abs(low)
            low = min(max(low, lo[b]), hi[b])
            low = allowed_above(low, step, anchor, x0, hi[b])
        if lo[b] <= high < hi[b]:
            high += 8.0 * EPS * abs(high)
            high = min(max(high, lo[b]), hi[b])
            high = allowed_below(high, step, anchor, x0, lo[b])
        if step == 0.0:  # a continuous number keeps its start, from which it is solved
            low, high = min(low, x0), max(high, x0)
        low, high = max(low, lo[b]), min(high, hi[b])
        if low <= high and (low > lo[b] or high < hi[b]):
            lo[b], hi[b] = low, high
            dropped = True
    return dropped
