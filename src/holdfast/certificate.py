"""Proof of optimality, from weak duality alone: this room knows nothing of how answers are found.

Let C(t) be the least cost at which a row reaches a worst-case score of at least t. For a start x0
within its bounds, any multiplier ``mu >= 0`` and any model ``(v, b')`` in the set,

    C(t) >= mu * t - offset,
    offset = mu * (b' + v.x0) + sum_i (mu |v_i| - c_i)_+ * room_i

with ``room_i`` the distance from the start to the bound in the direction of ``v_i``. One such line
bounds everything that is asked:

- guarantee of score T: cost >= mu T - offset;
- price with a convex loss: price >= inf_t phi(t) + cost_weight * (mu t - offset);
- price with any loss: the same infimum under several lines at once.

The line is valid whatever model is put in, provided it lies in the set and ``mu |v_i| <= c_i``
where the room is infinite; both are enforced here. Below the end of reach (the largest worst-case
score within the bounds) it is tight for the right multiplier and model, which `saddle_model` reads
off the recourse, the multiplier and, where these do not tell, the dual that the solver found. At
the end itself there may be no finite multiplier, and the
line need not be tight.
"""

from __future__ import annotations

import math

from holdfast.machinery.compile import choice, kernel
from holdfast.machinery.numbers import EPS
from holdfast.problem.ball import BallNumbers, dual_norm, power
from holdfast.problem.ellipsoid import EllipsoidNumbers
from holdfast.problem.goal import GUARANTEE
from holdfast.problem.losses import loss_value, score_at_slope, steepest, tilted_minimum
from holdfast.problem.model_list import HullNumbers
from holdfast.problem.model_set import model_of, pick

# Points of the box whose size is this near to the largest count as tied with it (p = 1).
_TIE = 1e-12


@choice(8)
def saddle_model(x, mu, start, coef, intercept, cost, lower, upper, robust, dual, v):
    """Write the coefficients of a worst model that suits (x, mu) into v; return its intercept.

    It lies in the set, to rounding, whatever x, mu and dual are.
    """


@saddle_model.of(EllipsoidNumbers)
@saddle_model.of(HullNumbers)
@kernel
def saddle_of_dual(x, mu, start, coef, intercept, cost, lower, upper, robust, dual, v):
    """Take the model that the solver found: at a kink the point does not tell."""
    b = model_of(robust, coef, intercept, dual, v)
    for i in range(v.size):
        size = abs(coef[i]) + robust.radius * robust.scale[i]
        v[i] = without_trace(v[i], cost[i] / mu, size, lower[i], upper[i])
    return b


@kernel
def without_trace(v, even, size, lower, upper):
    """Let a coefficient break even if only rounding keeps it from that, and the room is endless.

    It does at ``gain * cost``: there a feature brings as much score as it must for its cost.
    In endless room a trace of rounding would cost all of the bound.
    """
    is_endless = upper == math.inf or lower == -math.inf
    if is_endless and abs(abs(v) - even) <= 1e-13 * size:
        return math.copysign(even, v)
    return v


@saddle_model.of(BallNumbers)
@kernel
def saddle_ball(x, mu, start, coef, intercept, cost, lower, upper, ball, dual, v):
    gain = 1.0 / mu
    if ball.radius == 0.0:
        for i in range(v.size):
            v[i] = coef[i]
        return intercept
    if ball.q == 1.0:
        return saddle_linf(gain, start, coef, intercept, cost, lower, upper, ball, v)
    if ball.q == math.inf:
        return saddle_l1(x, gain, start, coef, intercept, cost, lower, upper, ball, v)
    return saddle_lp(x, gain, start, coef, intercept, cost, lower, upper, ball, v)


@kernel
def inner_reach(reach, coef):
    """Return how far a coefficient may move such that, rounded, it has not moved further."""
    return max(0.0, reach - 2.0 * EPS * (reach + abs(coef)))


@kernel
def saddle_linf(gain, start, coef, intercept, cost, lower, upper, ball, v):
    """For p = inf: each coefficient on its own, anywhere in w +- radius * scale.

    The dual is concave in v_i with slope -lower, -start, -upper for v_i below, within and above
    ``+- gain * cost``: it is largest where the sign of that position changes.
    """
    for i in range(v.size):
        a, even = inner_reach(ball.radius * ball.scale[i], coef[i]), gain * cost[i]
        if lower[i] > 0.0:
            best = -math.inf
        elif start[i] > 0.0:
            best = -even
        elif start[i] == 0.0:
            best = min(max(coef[i], -even), even)
        elif upper[i] >= 0.0:
            best = even
        else:
            best = math.inf
        v[i] = min(max(best, coef[i] - a), coef[i] + a)
    return intercept - inner_reach(ball.radius * ball.intercept_scale, intercept)


@kernel
def saddle_l1(x, gain, start, coef, intercept, cost, lower, upper, ball, v):
    """For p = 1: the radius is a budget, spent where a unit of it hurts most.

    First what an infinite room demands (v_i back within +- gain * cost), then every change that
    hurts more than M, the size of x, then changes that hurt as much as M until nothing is left.
    """
    size = dual_norm(x, ball.scale, ball.intercept_scale, ball.q)
    budget = ball.radius * (1.0 - 4.0 * EPS)
    for i in range(v.size):
        v[i] = coef[i]
        even, rho = gain * cost[i], ball.scale[i]
        if rho > 0.0:
            endless = upper[i] if coef[i] > 0.0 else -lower[i]
            if endless == math.inf and abs(coef[i]) > even:
                budget = less_rounding(budget, coef[i], rho)
                spend = min(budget, (abs(coef[i]) - even) / rho)
                v[i] -= math.copysign(spend * rho, coef[i])
                if spend < budget:
                    v[i] = math.copysign(even, coef[i])
                budget -= spend
    for least in (size * (1.0 + _TIE), size * (1.0 - _TIE)):
        if ball.intercept_scale > 0.0 and ball.intercept_scale >= least:
            budget = less_rounding(budget, intercept, ball.intercept_scale)
            return intercept - budget * ball.intercept_scale
        for i in range(v.size):
            while budget > 0.0:
                position, end = next_cut(v[i], gain * cost[i], start[i], lower[i], upper[i])
                if ball.scale[i] * abs(position) < least or ball.scale[i] == 0.0:
                    break
                budget = less_rounding(budget, coef[i], ball.scale[i])
                spend = min(budget, abs(v[i] - end) / ball.scale[i])
                if spend == 0.0:
                    break
                v[i] = (
                    end if spend < budget else v[i] - math.copysign(spend * ball.scale[i], position)
                )
                budget -= spend
    return intercept


@kernel
def less_rounding(budget, coef, scale):
    """Return what is left of the budget when a changed coefficient has been rounded."""
    return max(0.0, budget - 2.0 * EPS * abs(coef) / scale)


@kernel
def next_cut(v, even, start, lower, upper):
    """Where the point stands for a coefficient v, and how far v can move against it until it turns.

    Return (position, end).
    """
    if v > even:
        if upper > 0.0:
            return upper, even
    elif v < -even:
        if lower < 0.0:
            return lower, -even
    elif start > 0.0 and v > -even:
        return start, -even
    elif start < 0.0 and v < even:
        return start, even
    # the position beyond the threshold still has the old sign: no turning point is left
    if v >= even and upper < 0.0:
        return upper, math.inf
    if v <= -even and lower > 0.0:
        return lower, -math.inf
    return 0.0, v


@kernel
def saddle_lp(x, gain, start, coef, intercept, cost, lower, upper, ball, v):
    """1 < p < inf: the worst model is unique, ``|delta| ~ (scale |x|)^(q-1)``.

    For a feature that moved inside its room it is known from the cost side as well,
    ``v = +- gain * cost``, and there it is free of rounding: such coefficients are pinned.
    """
    norm = dual_norm(x, ball.scale, ball.intercept_scale, ball.q)
    for i in range(v.size):
        even = gain * cost[i]
        if ball.scale[i] == 0.0:
            v[i] = coef[i]
            continue
        if norm == 0.0:
            v[i] = resting_coef(x[i], start[i], coef[i], even, lower[i], upper[i])
            continue
        near = ball.scale[i] * abs(x[i]) / norm
        felt = power(near, ball.q - 1.0)
        v[i] = coef[i] - math.copysign(ball.radius * ball.scale[i] * felt, x[i])
        # for large p, `felt` of a point next to 0 is mostly rounding, and hardly matters
        rough = near <= 1e-4 or abs(abs(v[i]) - even) <= 1e-6 * (abs(coef[i]) + even)
        if rough and (x[i] != start[i] or x[i] == 0.0):
            v[i] = resting_coef(x[i], start[i], v[i], even, lower[i], upper[i])
    shift = 0.0
    if norm > 0.0:
        felt = power(ball.intercept_scale / norm, ball.q - 1.0)
        shift = ball.radius * ball.intercept_scale * felt
    return pull_into_ball(gain, coef, intercept, shift, cost, ball, v)


@kernel
def resting_coef(x, start, coef, even, lower, upper):
    """Return the coefficient nearest to `coef` for which resting at x is right.

    For a point at the kink of the norm, where every change in the ball is a worst one.
    """
    least = even if x > start else -even
    most = -even if x < start else even
    if x == upper:
        most = math.inf
    if x == lower:
        least = -math.inf
    return min(max(coef, least), most)


@kernel
def pull_into_ball(gain, coef, intercept, shift, cost, ball, v):
    """Shrink the change of the model until it lies in the ball; pinned coefficients last.

    Lengths are in units of the radius.
    """
    pinned, free, rounding = 0.0, 0.0, 4.0 * EPS
    if shift > 0.0:
        free = power(shift / (ball.radius * ball.intercept_scale), ball.p)
        rounding += 2.0 * EPS * abs(intercept) / (ball.radius * ball.intercept_scale)
    for i in range(v.size):
        reach = ball.radius * ball.scale[i]
        if reach > 0.0:
            part = power(abs(v[i] - coef[i]) / reach, ball.p)
            if v[i] != coef[i]:
                rounding += 2.0 * EPS * abs(coef[i]) / reach
            if abs(v[i]) == gain * cost[i]:
                pinned += part
            else:
                free += part
    allowed = power(max(0.0, 1.0 - rounding), ball.p)
    if pinned + free <= allowed:
        return intercept - shift
    free_factor, pinned_factor = 0.0, 1.0
    if pinned <= allowed:
        free_factor = power((allowed - pinned) / free, 1.0 / ball.p)
    else:
        pinned_factor = power(allowed / pinned, 1.0 / ball.p)
    for i in range(v.size):
        factor = pinned_factor if abs(v[i]) == gain * cost[i] else free_factor
        if factor != 1.0:
            v[i] = coef[i] + (v[i] - coef[i]) * factor
    return intercept - shift * free_factor


@kernel
def support_line(x, mu, start, coef, intercept, cost, lower, upper, robust, dual, v):
    """Return (mu, offset) of a line below the frontier, and the intercept of its model (v, .).

    mu comes back smaller where an infinite room demands it. For mu = inf the line is upright:
    no score above `offset` can be reached at any cost.
    """
    if not mu > 0.0:
        for i in range(v.size):
            v[i] = coef[i]
        return 0.0, 0.0, intercept
    b = saddle_model(x, mu, start, coef, intercept, cost, lower, upper, robust, dual, v)
    rounding = (v.size + 4.0) * EPS  # sums are rounded so that no line lies above the true one
    if mu == math.inf:
        reach, terms = b, abs(b)
        for i in range(v.size):
            if v[i] != 0.0:
                reach += v[i] * (upper[i] if v[i] > 0.0 else lower[i])
                terms += abs(v[i] * (upper[i] if v[i] > 0.0 else lower[i]))
        if reach < math.inf:
            return mu, reach + rounding * terms, b
        # rounding left a trace of a coefficient before an infinite room: the line below is steep
    for i in range(v.size):
        room = upper[i] - start[i] if v[i] > 0.0 else start[i] - lower[i]
        over = v[i] != 0.0 and mu * abs(v[i]) > cost[i]
        barely = mu * abs(v[i]) <= (1.0 + _TIE) * cost[i]  # by rounding: do not pay for the room
        if over and (room == math.inf or barely):
            mu = cost[i] / abs(v[i]) * (1.0 - 2.0 * EPS)
    base, terms, penalty = b, abs(b), 0.0
    for i in range(v.size):
        base += v[i] * start[i]
        terms += abs(v[i] * start[i])
        over = mu * abs(v[i]) - cost[i]
        if over > 0.0:
            room = upper[i] - start[i] if v[i] > 0.0 else start[i] - lower[i]
            penalty += (over + 2.0 * EPS * (mu * abs(v[i]) + cost[i])) * room
    return mu, mu * (base + rounding * terms) + penalty * (1.0 + rounding), b


@kernel
def proven_bound(goal, mu, rows, i, x, robust, dual, v):
    """Return (mu, intercept, bound) for row i: the line that is used, and what it proves.

    The model of the line is (v, intercept). A bound of inf says that the goal is out of reach.
    """
    if goal.mode == GUARANTEE:
        mu, offset, b = row_line(rows, i, x, mu, robust, dual, v)
        if mu == math.inf:  # an upright line: nothing beyond `offset` can be reached
            return mu, b, math.inf if goal.amount > offset else 0.0
        return mu, b, max(mu * goal.amount - offset, 0.0)
    mu = flat_enough(goal.loss, goal.amount, mu)
    mu, offset, b = row_line(rows, i, x, mu, robust, dual, v)
    return mu, b, price_bound(goal.loss, goal.amount, mu, offset)


@kernel
def flat_enough(loss, cost_weight, mu):
    """Lower mu until no loss is flatter everywhere than ``cost_weight * mu``, as it is rounded."""
    top = steepest(loss)
    if cost_weight * mu > top:
        mu = top / cost_weight
        while cost_weight * mu > top:
            mu *= 1.0 - EPS
    return mu


@kernel
def row_line(rows, i, x, mu, robust, dual, v):
    """Return `support_line` for row i of a batch."""
    return support_line(
        x,
        mu,
        rows.start[i],
        pick(rows.coef, i),
        pick(rows.intercept, i),
        pick(rows.cost, i),
        pick(rows.lower, i),
        pick(rows.upper, i),
        robust,
        dual,
        v,
    )


@kernel
def price_bound(loss, cost_weight, mu, offset):
    """Return a lower bound on the price, for a convex loss and a line that is `flat_enough`."""
    return tilted_minimum(loss, cost_weight * mu) - cost_weight * offset


@kernel
def least_on(loss, slope, foot, low, high):
    """Return min over [low, high] of phi(t) + slope * (t - foot)."""
    best = loss_value(loss, low) + slope * (low - foot)
    bottom = score_at_slope(loss, slope)
    for t in (high, bottom):
        if low < t <= high and t < math.inf:
            best = min(best, loss_value(loss, t) + slope * (t - foot))
    return min(best, 0.0) if high == math.inf and slope == 0.0 else best


@kernel
def crossing(mu, foot, steeper, steeper_foot):
    """Return the score at which a steeper line rises above a flatter one."""
    if steeper == math.inf:
        return steeper_foot
    return steeper_foot + mu * (steeper_foot - foot) / (steeper - mu)


@kernel
def price_bound_under_lines(loss, cost_weight, start_score, mus, offsets, count):
    """Return a lower bound on the price for any loss: the least under several lines at once.

    For losses that are nowhere steeper than 1: on a line that costs more than that for a unit of
    score, the least price is where it rises above a flatter one, so that it only says where the
    others end. Scores below the start need not be looked at: they cost nothing and lose more.
    """
    best = math.inf
    for k in range(-1, count):  # -1 is the line C(t) >= 0
        mu = 0.0 if k < 0 else mus[k]
        if (k >= 0 and mu == 0.0) or cost_weight * mu >= 1.0:
            continue
        foot = start_score if k < 0 else offsets[k] / mu  # where the line crosses cost 0
        low, high = start_score, math.inf
        for j in range(-1, count):
            other = 0.0 if j < 0 else mus[j]
            if j == k or (j >= 0 and other == 0.0):
                continue
            other_foot = start_score if j < 0 else offsets[j]
            if 0.0 < other < math.inf:
                other_foot /= other
            if other > mu:
                high = min(high, crossing(mu, foot, other, other_foot))
            elif other < mu:
                low = max(low, crossing(other, other_foot, mu, foot))
            elif other_foot < foot or (other_foot == foot and j < k):
                high = -math.inf  # the same slope, and lower
        if k < 0:
            high = max(high, start_score)  # the start is reached, whatever rounding says
        if low <= high:
            best = min(best, least_on(loss, cost_weight * mu, foot, low, high))
    return best
