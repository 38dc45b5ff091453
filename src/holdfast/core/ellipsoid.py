"""The ellipsoid: a walk along the frontier, every event of which is the root of a quadratic.

Write a_j for the row of feature j of ``radius * factor``, a_0 for the intercept's, and
``y = a_0 + sum_j a_j x_j``. The worst score is ``w.x + b - |y|``, and the worst model
``v_j = w_j - a_j.u`` with ``u = y / |y|``. At the gain kappa a feature at rest has
``|v_j| <= kappa c_j``, one on its way ("free") ``v_j = s_j kappa c_j``, one at its bound more.

While the set of free features stays, with ``(a_j) = Q R`` for these, r the rest of y, rho the
length of what Q leaves of it, and ``eta(kappa) = R^-T (w - kappa s c)``, the condition is
``Q^T u = eta``: a straight line, which comes nearest to 0 at ``eta_0 = eta(kappa_0)`` and goes on
in the direction beta (of length 1 after division by ``speed``). With ``D^2 = 1 - |eta_0|^2`` and

    N(tau) = sqrt(rho^2 + tau^2) / D                              the norm |y|
    kappa = kappa_0 - tau / (N speed)                             falls as tau rises
    x_free = R^-1 (eta_0 N + beta tau - Q^T r)
    N v_j = N w_j - a_j.(Q eta_0 N + Q beta tau + rho r^)

everything that can happen (a feature starts, returns, reaches its bound, leaves it; the score
reaches a target; nothing is left to gain) is a root of ``A N(tau) + B tau + C``.

For rho = 0, where all that the adversary feels is free, N has a kink: at y = 0 the point stands
still, and the worst model alone moves as kappa falls. There y no longer tells u. So a rho that may
be rounding counts as 0, and stands as a number that is too small to be felt; r^ is what Q leaves of
the u that the piece before ended with, and the gain, not |y|, says where on the new piece the walk
stands. Whichever features come to their start or a bound at y = 0 itself, u then never leaps, so
that no feature is overlooked that must start before kappa is 0.

A feature whose row depends on those of the free ones costs the adversary nothing new: it is bought
at one gain, along the direction in which y stays, until a feature gets in the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.core.row import ROUNDING, gain_at, outcome_of, stop_score
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Flags, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.ellipsoid import dot, worst_score_in_ellipsoid
from holdfast.problem.goal import GUARANTEE
from holdfast.problem.model_set import copy_into, score_rounding
from holdfast.problem.outcome import FOUND, UNBOUNDED, UNSETTLED

REST, FREE, BOUND = 0, 1, 2  # where a feature is
_DEPENDENT = 1e-10  # relative to its length, what is left of a row that depends on others
_NO_LENGTH = 1e-12  # of y, relative to the terms that it is the sum of: no more than rounding
_KINK = 1e6  # |tau| is so many rho where a kink ends: beyond it u stays as it is, to rounding
_BESIDE = 1e-9  # relative: from a gain that is so near to that beside a kink, it has ended
_NO_PART = 1e-11  # of u: what is shorter has no direction
_NOTHING = 1e-30  # relative: what stands for a length of 0
_LEAST_D = 1e-15  # of D^2: below it, the model is as long as the radius, to rounding

_TIE = 1e-14  # relative: what is no more than that above 0 falls now, together with others
_TWIN = 1e-12  # relative: rows and costs that differ by no more are the same

# what an event is about
RETURNS, ARRIVES, STARTS, GOAL, END, NEVER = 0, 1, 2, 3, 4, 5


class EllipsoidScratch(Struct):
    """Buffers of one thread."""

    where: Flags  # of each feature: REST, FREE or BOUND, ...
    sign: Floats  # ... and in which direction it moved
    free: Ints  # the free features, in the order in which they were taken in
    axes: Floats  # Q, an axis in each row
    corner: Floats  # R
    rest: Floats  # r, then what Q leaves of it, of length 1
    rest_in: Floats  # Q^T r
    nearest: Floats  # eta_0
    ahead: Floats  # beta
    nearest_out: Floats  # Q eta_0
    ahead_out: Floats  # Q beta
    by_norm: Floats  # x_free = by_norm * N + by_tau * tau + fixed
    by_tau: Floats
    fixed: Floats


def new_scratch(d: int, k: int) -> EllipsoidScratch:
    return EllipsoidScratch.zeros(
        where=d,
        sign=d,
        free=d,
        axes=(d + 1, k),
        corner=(d + 1, d + 1),
        rest=k,
        rest_in=d,
        nearest=d,
        ahead=d,
        nearest_out=k,
        ahead_out=k,
        by_norm=d,
        by_tau=d,
        fixed=d,
    )


class Arc(NamedTuple):
    """One piece of the walk: the numbers of the module's formulas."""

    n_free: int
    rho: float
    at_kink: bool  # rho stands for 0
    noise: float  # the length that y may have by rounding alone
    depth: float  # D
    gain: float  # kappa_0
    speed: float
    score_by_norm: float  # the score is score_by_norm * N + score_by_tau * tau + score_fixed
    score_by_tau: float
    score_fixed: float


class Spot(NamedTuple):
    """Where the walk stands."""

    gain: float
    norm: float
    score: float


@kernel
def distance(rho, tau):
    return math.sqrt(rho * rho + tau * tau)


@kernel
def norm_at(piece, tau):
    return distance(piece.rho, tau) / piece.depth


@kernel
def gain_at_tau(piece, tau):
    return piece.gain - tau / (norm_at(piece, tau) * piece.speed)


@kernel
def score_at(piece, tau):
    norm = norm_at(piece, tau)
    return piece.score_by_norm * norm + piece.score_by_tau * tau + piece.score_fixed


@kernel
def exit_of(piece, by_norm, by_tau, fixed, tau, last):
    """Return the first tau' >= tau at which ``by_norm N + by_tau tau' + fixed`` falls below 0.

    The sum is convex or concave, so that it falls through 0 once at most; inf where it does not,
    or does so beyond `last`. One that rounding has put below 0 counts as 0 at tau: if it rises and
    falls again, it falls through where it comes back to what it is at tau.
    """
    a, b, c, rho = by_norm / piece.depth, by_tau, fixed, piece.rho
    now = distance(rho, tau)
    slope, value = a * tau + b * now, a * now + b * tau + c  # the slope is that of now * value
    if slope < 0.0:
        if value <= _TIE * (abs(a) * now + abs(b * tau) + abs(c)):
            return tau
    elif a >= 0.0:  # convex, and it rises already
        return math.inf
    if a <= 0.0 and value >= 0.0:  # concave: above 0 at both ends, and so between them
        if last < math.inf:
            if a * distance(rho, last) + b * last + c > 0.0:
                return math.inf
        elif a + b >= 0.0:
            return math.inf
    p = (a - b) * (a + b)
    inside = c * c - p * rho * rho
    if value < 0.0 and a < -abs(b) and (inside < 0.0 or c < 0.0):  # it does not even come to 0
        return max(-2.0 * b * (a * now + b * tau) / p - tau, tau)
    if inside < 0.0:
        return math.inf
    q = b * c + math.copysign(abs(a) * math.sqrt(inside), b * c)
    best = math.inf
    for k in range(2):
        if k == 0:
            root = q / p if p != 0.0 else math.inf
        else:
            root = (a * rho - c) * (a * rho + c) / q if q != 0.0 else math.inf
        if not tau < root < best:
            continue
        nu = distance(rho, root)
        slope = a * root / nu + b
        missed = a * nu + b * root + c
        if slope < 0.0 and abs(missed) <= 1e-6 * (abs(a) * nu + abs(b * root) + abs(c)):
            better = root - missed / slope  # Newton: squares have lost digits
            best = better if better > tau else root
    return best


@kernel
def take_axis(scratch, ellipsoid, j, count):
    """Add the row of feature j to Q and R; return whether it depends on those that are there."""
    row, axis, size = ellipsoid.factor[j], scratch.axes[count], 0.0
    for m in range(row.size):
        axis[m] = ellipsoid.radius * row[m]
        size += axis[m] * axis[m]
    size = math.sqrt(size)
    for i in range(count):
        scratch.corner[i, count] = 0.0
    for _ in range(2):  # the second time against rounding
        for i in range(count):
            part = dot(scratch.axes[i], axis)
            scratch.corner[i, count] += part
            for m in range(axis.size):
                axis[m] -= part * scratch.axes[i, m]
    left = math.sqrt(dot(axis, axis))
    if left <= _DEPENDENT * size:
        return True
    scratch.corner[count, count] = left
    for m in range(axis.size):
        axis[m] /= left
    return False


@kernel
def drop_free(scratch, ellipsoid, at, count):
    """Take the free feature at a position out of Q and R; return how many are left."""
    for i in range(at, count - 1):
        scratch.free[i] = scratch.free[i + 1]
        take_axis(scratch, ellipsoid, scratch.free[i], i)
    return count - 1


@kernel
def solve_corner(scratch, count, values):
    """Solve ``R z = values`` in place."""
    for i in range(count - 1, -1, -1):
        total = values[i]
        for k in range(i + 1, count):
            total -= scratch.corner[i, k] * values[k]
        values[i] = total / scratch.corner[i, i]


@kernel
def write_rest(scratch, ellipsoid, y):
    """Write what features that are not free, and the intercept, contribute to y.

    Return the length that it may have by rounding alone.
    """
    rest, factor, radius, d = scratch.rest, ellipsoid.factor, ellipsoid.radius, y.size
    terms = ellipsoid.intercept_scale
    for m in range(rest.size):
        rest[m] = radius * factor[d, m]
    for j in range(d):
        if scratch.where[j] != FREE and y[j] != 0.0:
            terms += ellipsoid.scale[j] * abs(y[j])
            for m in range(rest.size):
                rest[m] += radius * factor[j, m] * y[j]
    return _NO_LENGTH * radius * terms


@kernel
def make_arc(row, intercept, ellipsoid, scratch, count, y):
    """Work out the piece of the walk on which the first `count` of `scratch.free` are free."""
    rounding = write_rest(scratch, ellipsoid, y)
    rest, whole = scratch.rest, math.sqrt(dot(scratch.rest, scratch.rest))
    for i in range(count):
        scratch.rest_in[i] = 0.0
    for _ in range(2):
        for i in range(count):
            part = dot(scratch.axes[i], rest)
            scratch.rest_in[i] += part
            for m in range(rest.size):
                rest[m] -= part * scratch.axes[i, m]
    rho = math.sqrt(dot(rest, rest))
    floor = _NOTHING * (whole + scratch.corner[0, 0])
    noise = max(rounding, floor)
    at_kink = rho <= noise
    if at_kink:
        rho = floor
        for m in range(rest.size):
            rest[m] = 0.0
    else:
        for m in range(rest.size):
            rest[m] /= rho
    near, ahead = scratch.nearest, scratch.ahead
    for i in range(count):  # R^-T of w, and of s c
        j = scratch.free[i]
        near[i], ahead[i] = row.coef[j], scratch.sign[j] * row.cost[j]
        for k in range(i):
            near[i] -= scratch.corner[k, i] * near[k]
            ahead[i] -= scratch.corner[k, i] * ahead[k]
        near[i] /= scratch.corner[i, i]
        ahead[i] /= scratch.corner[i, i]
    speed, across = 0.0, 0.0
    for i in range(count):
        speed += ahead[i] * ahead[i]
    speed = math.sqrt(speed)
    for i in range(count):
        ahead[i] /= speed
        across += near[i] * ahead[i]
    size = 0.0
    for i in range(count):
        near[i] -= across * ahead[i]
        size += near[i] * near[i]
    for m in range(rest.size):
        scratch.nearest_out[m] = scratch.ahead_out[m] = 0.0
    for i in range(count):
        scratch.by_norm[i], scratch.by_tau[i] = near[i], ahead[i]
        scratch.fixed[i] = -scratch.rest_in[i]
        for m in range(rest.size):
            scratch.nearest_out[m] += near[i] * scratch.axes[i, m]
            scratch.ahead_out[m] += ahead[i] * scratch.axes[i, m]
    solve_corner(scratch, count, scratch.by_norm)
    solve_corner(scratch, count, scratch.by_tau)
    solve_corner(scratch, count, scratch.fixed)
    by_norm, by_tau, fixed = -1.0, 0.0, intercept
    for i in range(count):
        w = row.coef[scratch.free[i]]
        by_norm += w * scratch.by_norm[i]
        by_tau += w * scratch.by_tau[i]
        fixed += w * scratch.fixed[i]
    for j in range(y.size):
        if scratch.where[j] != FREE:
            fixed += row.coef[j] * y[j]
    depth = math.sqrt(max(1.0 - size, _LEAST_D))
    return Arc(count, rho, at_kink, noise, depth, across / speed, speed, by_norm, by_tau, fixed)


@kernel
def tau_of(piece, place):
    """Return where on a piece the walk stands."""
    ahead = (piece.gain - place.gain) * piece.speed
    beside = place.norm > _KINK * piece.rho
    if piece.at_kink:  # within the kink, a norm that rounding may have made is none
        is_long = place.norm > piece.noise or abs(ahead) > (1.0 - _BESIDE) * piece.depth
        beside = beside and is_long
    else:
        beside = beside or abs(ahead) >= piece.depth
    if beside and place.norm > 0.0:
        return ahead * place.norm
    left = max((piece.depth - ahead) * (piece.depth + ahead), 1e-20)
    return piece.rho * ahead / math.sqrt(left)


@kernel
def keep_direction(scratch, piece, tau, dual):
    """Let r^ be what Q leaves of u, where r says nothing of it; what u has beyond stays out."""
    rest = scratch.rest
    copy_into(rest, dual)
    for _ in range(2):  # the second time against rounding
        for i in range(piece.n_free):
            part = dot(scratch.axes[i], rest)
            for m in range(rest.size):
                rest[m] -= part * scratch.axes[i, m]
    part = math.sqrt(dot(rest, rest))  # rho |r^| / N
    size = max(part, piece.rho / norm_at(piece, tau))  # |r^| is 1 at most
    for m in range(rest.size):
        rest[m] = rest[m] / size if part > _NO_PART else 0.0


@kernel
def is_twin(row, piece, j, s, near, ahead, left):
    """Whether feature j does and costs what a mixture of the free ones does: nothing is gained.

    ``s v_j - kappa c_j`` then stays 0 along the piece, but for rounding.
    """
    w, even, pace = row.coef[j], row.cost[j] * piece.gain, row.cost[j] / piece.speed
    size = abs(w) + abs(near) + abs(even) + pace
    return (
        abs(s * (w - near) - even) <= _TWIN * size
        and abs(pace - s * ahead) <= _TWIN * (pace + abs(ahead))
        and abs(left) <= _TWIN * size * piece.rho
    )


@kernel
def next_event(row, ellipsoid, scratch, piece, tau):
    """Return (tau, what happens, to which position or feature, direction) of the next event."""
    first, what, who, side = math.inf, NEVER, -1, 0.0
    for i in range(piece.n_free):
        j = scratch.free[i]
        s = scratch.sign[j]
        by_norm, by_tau, fixed = s * scratch.by_norm[i], s * scratch.by_tau[i], scratch.fixed[i]
        found = exit_of(piece, by_norm, by_tau, s * (fixed - row.start[j]), tau, first)
        if found < first:
            first, what, who, side = found, RETURNS, i, s
        bound = row.upper[j] if s > 0.0 else row.lower[j]
        if abs(bound) < math.inf:
            found = exit_of(piece, -by_norm, -by_tau, s * (bound - fixed), tau, first)
            if found < first:
                first, what, who, side = found, ARRIVES, i, s
    resting = row.coef.size
    if piece.at_kink:  # beside a kink no v_j changes, and kappa does not fall
        resting = resting if tau < _KINK * piece.rho else 0
        tau = max(tau, -_KINK * piece.rho)
    for j in range(resting):
        if scratch.where[j] == FREE or row.lower[j] == row.upper[j]:
            continue
        own = ellipsoid.factor[j]
        near = ellipsoid.radius * dot(own, scratch.nearest_out)
        ahead = ellipsoid.radius * dot(own, scratch.ahead_out)
        left = ellipsoid.radius * dot(own, scratch.rest) * piece.rho
        by_norm, even, pace = (
            row.coef[j] - near,
            row.cost[j] * piece.gain,
            row.cost[j] / piece.speed,
        )
        for s in (1.0, -1.0):
            if scratch.where[j] == BOUND:
                if s != scratch.sign[j]:
                    continue
                found = exit_of(piece, s * by_norm - even, pace - s * ahead, -s * left, tau, first)
            elif (row.upper[j] if s > 0.0 else -row.lower[j]) > s * row.start[j]:
                found = exit_of(piece, even - s * by_norm, s * ahead - pace, s * left, tau, first)
            else:
                continue
            if not found < first:
                continue
            if found > tau or not is_twin(row, piece, j, s, near, ahead, left):
                first, what, who, side = found, STARTS, j, s
    found = exit_of(piece, piece.gain, -1.0 / piece.speed, 0.0, tau, first)
    if found <= first:
        first, what, who, side = found, END, -1, 0.0
    return first, what, who, side


@kernel
def write_free(row, scratch, piece, tau, y):
    """Write where the free features are."""
    norm = norm_at(piece, tau)
    for i in range(piece.n_free):
        j = scratch.free[i]
        value = scratch.by_norm[i] * norm + scratch.by_tau[i] * tau + scratch.fixed[i]
        y[j] = min(max(value, row.lower[j]), row.upper[j])


@kernel
def land(row, intercept, ellipsoid, goal, scratch, piece, tau, y):
    """Correct tau until the score, as anybody computes it, is the target, to rounding.

    Where rows of free features are nearly dependent, the formulas lose digits.
    """
    for _ in range(3):
        missing = goal.amount - worst_score_in_ellipsoid(y, row.coef, intercept, ellipsoid)
        slope = piece.score_by_norm * tau / (distance(piece.rho, tau) * piece.depth)
        slope += piece.score_by_tau
        if not slope > 0.0 or abs(missing) <= score_rounding(y, row.coef, intercept, ellipsoid):
            break
        tau += missing / slope
        write_free(row, scratch, piece, tau, y)
    return tau


@kernel
def write_direction(scratch, piece, tau, dual):
    """Write u, the direction of the worst model."""
    norm = norm_at(piece, tau)
    for m in range(dual.size):
        dual[m] = (
            scratch.nearest_out[m]
            + (tau * scratch.ahead_out[m] + piece.rho * scratch.rest[m]) / norm
        )


@kernel
def goal_on(goal, piece, tau, last):
    """Return the tau at which the goal is met on a piece, up to `last`; inf: beyond it."""
    if goal.mode == GUARANTEE:
        if goal.amount == math.inf:
            return math.inf
        fixed = goal.amount - piece.score_fixed
        found = exit_of(piece, -piece.score_by_norm, -piece.score_by_tau, fixed, tau, last)
        return found if found <= last else math.inf
    low = tau
    if missing_at(goal, piece, low) <= 0.0:
        return low
    high = last
    if high == math.inf:
        step = max(abs(tau), piece.rho, _NOTHING)
        high = tau + step
        while missing_at(goal, piece, high) > 0.0:
            if not high < 1e300:
                return math.inf
            step *= 4.0
            high = tau + step
    elif missing_at(goal, piece, high) > 0.0:
        return math.inf
    for k in range(-1, 2):  # a kink is so short that halving would not find it
        middle = k * _KINK * piece.rho
        if piece.at_kink and low < middle < high:
            if missing_at(goal, piece, middle) > 0.0:
                low = middle
            else:
                high = middle
    return root_between(goal, piece, low, high)


@kernel
def missing_at(goal, piece, tau):
    """Return the score that is missing until the goal is met; it falls along the walk."""
    gain = gain_at_tau(piece, tau)
    return stop_score(goal, gain) - score_at(piece, tau)


@kernel
def root_between(goal, piece, low, high):
    """Return where the goal is met: by the Illinois rule, with a bisection where that is slow."""
    f_low, f_high = missing_at(goal, piece, low), missing_at(goal, piece, high)
    side = 0
    for k in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if f_low < math.inf and f_high > -math.inf and k % 4 != 3:
            trial = (low * f_high - high * f_low) / (f_high - f_low)
            if low < trial < high:
                middle = trial
        f = missing_at(goal, piece, middle)
        if f == 0.0:
            return middle
        if f > 0.0:
            if side == 1:
                f_high *= 0.5
            low, f_low, side = middle, f, 1
        else:
            if side == -1:
                f_low *= 0.5
            high, f_high, side = middle, f, -1
        if high - low <= 2.0 * EPS * max(abs(low), abs(high)):
            break
    return high


@kernel
def jump(row, ellipsoid, scratch, goal, place, j, side, count, y):
    """Move along the direction in which y stays, and feature j from its start, or from its bound.

    `side` leads from its start to its bound. Column `count` of R says how its row depends on those
    of the free features. Returned are (outcome, UNSETTLED if the walk goes on; free features
    now; score).
    """
    step, back = scratch.fixed, scratch.where[j] == BOUND
    own = -side if back else side
    for i in range(count):
        step[i] = -own * scratch.corner[i, count]
    solve_corner(scratch, count, step)
    rate = -row.cost[j] if back else row.cost[j]
    for i in range(count):
        f = scratch.free[i]
        rate += scratch.sign[f] * row.cost[f] * step[i]
    rate *= place.gain  # of the score
    end = row.upper[j] if side > 0.0 else row.lower[j]
    if back:
        end = row.start[j]
    room, at = abs(end - y[j]), -1
    least = _DEPENDENT * ellipsoid.radius * ellipsoid.scale[j]
    for i in range(count):
        f = scratch.free[i]
        forward, far = step[i] * scratch.sign[f], math.inf
        if abs(step[i]) * scratch.corner[i, i] <= least:
            continue  # it only seems to move: without it the row depends on the others all the same
        if forward > 0.0:
            far = abs((row.upper[f] if step[i] > 0.0 else row.lower[f]) - y[f]) / abs(step[i])
        elif forward < 0.0:
            far = abs(y[f] - row.start[f]) / abs(step[i])
        if far < room:
            room, at = far, i
    need = (stop_score(goal, place.gain) - place.score) / rate if rate > 0.0 else math.inf
    far = min(max(need, 0.0), room)
    if far == math.inf:
        return UNBOUNDED, count, place.score
    for i in range(count):
        f = scratch.free[i]
        y[f] = min(max(y[f] + far * step[i], row.lower[f]), row.upper[f])
    y[j] = min(max(y[j] + own * far, row.lower[j]), row.upper[j])
    score = place.score + far * rate
    scratch.sign[j] = side
    if need <= room:
        return FOUND, count, score
    if at < 0:
        y[j], scratch.where[j] = end, REST if back else BOUND
        return UNSETTLED, count, score
    f = scratch.free[at]
    if step[at] * scratch.sign[f] > 0.0:
        y[f] = row.upper[f] if step[at] > 0.0 else row.lower[f]
        scratch.where[f] = BOUND
    else:
        y[f], scratch.where[f] = row.start[f], REST
    count = drop_free(scratch, ellipsoid, at, count)
    return UNSETTLED, take_free(scratch, ellipsoid, j, count), score


@kernel
def take_free(scratch, ellipsoid, j, count):
    """Make feature j one of the free ones, if its row is not a mixture of theirs."""
    if take_axis(scratch, ellipsoid, j, count):
        scratch.where[j] = BOUND  # to rounding it is none: it stays where it is
        return count
    scratch.free[count], scratch.where[j] = j, FREE
    return count + 1


@kernel
def first_start(row, ellipsoid, scratch, gain, dual):
    """Return (gain, feature, side) of the next feature to start while none is free."""
    most, who, side = 0.0, -1, 0.0
    for j in range(row.coef.size):
        if row.lower[j] == row.upper[j]:
            continue
        v = row.coef[j] - ellipsoid.radius * dot(ellipsoid.factor[j], dual)
        s = 1.0 if v > 0.0 else -1.0
        if scratch.where[j] == BOUND:
            continue
        room = row.upper[j] - row.start[j] if s > 0.0 else row.start[j] - row.lower[j]
        if room > 0.0 and abs(v) > most * row.cost[j]:
            most, who, side = abs(v) / row.cost[j], j, s
    return min(most, gain), who, side


@kernel
def solve_ellipsoid(row, intercept, ellipsoid, goal, scratch, y, dual):
    """Write the answer into y, and the direction of the worst model into dual.

    Return (outcome, gain).
    """
    d, count, tau, most = row.coef.size, 0, 0.0, 0.0
    copy_into(y, row.start)
    for j in range(d):
        scratch.where[j], scratch.sign[j] = REST, 0.0
    rounding = write_rest(scratch, ellipsoid, y)
    norm = math.sqrt(dot(scratch.rest, scratch.rest))
    if norm <= rounding:
        norm = 0.0
    score = intercept - norm
    for j in range(d):
        score += row.coef[j] * y[j]
    for m in range(dual.size):
        dual[m] = scratch.rest[m] / norm if norm > 0.0 else 0.0
    place = Spot(math.inf, norm, score)
    for _ in range(100 + 20 * d):
        if count == 0:
            gain, who, side = first_start(row, ellipsoid, scratch, place.gain, dual)
            if place.score >= stop_score(goal, gain) or who < 0:
                return outcome_of(goal, place.score), gain_at(goal, place.score, place.gain)
            place = Spot(gain, place.norm, place.score)
            most, what = max(most, gain), STARTS
        else:
            piece = make_arc(row, intercept, ellipsoid, scratch, count, y)
            tau = tau_of(piece, place)
            if piece.at_kink:
                keep_direction(scratch, piece, tau, dual)
            event, what, who, side = next_event(row, ellipsoid, scratch, piece, tau)
            found = goal_on(goal, piece, tau, event)
            if found <= event and found < math.inf:
                event, what = found, GOAL
            if event == math.inf:
                return UNBOUNDED, 0.0
            write_free(row, scratch, piece, event, y)
            if what == GOAL and goal.mode == GUARANTEE:
                event = land(row, intercept, ellipsoid, goal, scratch, piece, event, y)
            write_direction(scratch, piece, event, dual)
            gain = max(gain_at_tau(piece, event), 0.0)
            place = Spot(min(gain, place.gain), norm_at(piece, event), score_at(piece, event))
            if what == GOAL:
                return FOUND, place.gain
            if what == END or place.gain <= ROUNDING * most:  # nothing but rounding is left to gain
                return outcome_of(goal, place.score), 0.0
        if what == STARTS:
            if take_axis(scratch, ellipsoid, who, count):
                outcome, count, score = jump(
                    row, ellipsoid, scratch, goal, place, who, side, count, y
                )
                place = Spot(place.gain, place.norm, score)
                if outcome != UNSETTLED:
                    return outcome, place.gain if outcome == FOUND else 0.0
            else:
                scratch.sign[who], scratch.where[who] = side, FREE
                scratch.free[count] = who
                count += 1
        else:
            f = scratch.free[who]
            if what == RETURNS:
                y[f], scratch.where[f] = row.start[f], REST
            else:
                y[f] = row.upper[f] if side > 0.0 else row.lower[f]
                scratch.where[f] = BOUND
            count = drop_free(scratch, ellipsoid, who, count)
    return outcome_of(goal, place.score), place.gain
