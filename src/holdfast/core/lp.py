"""1 < p < inf: two numbers decide the answer, the gain and the norm ``r = ||scale * (x, 1)||_q``.

At the optimum each (oriented) feature with a scale rho > 0 solves its own little problem,

    rho x = clip(clip(rho x0, r push, r pull), bounds),    psi(a) = sgn(a) |a|^(p-1),
    push = psi((w - gain c) / (radius rho)),               pull = psi((w + gain c) / (radius rho))

- for a given gain, ``||scale * (x(r), 1)||_q / r`` does not rise in r, and falls where the
  intercept is attacked: at most one root of ``= 1`` (`point_at_gain`);
- as the gain falls, the score of that point does not: one gain where the goal is met (`solve_lp`).

The score can jump at a gain: where a feature has scale 0 (such gains are known beforehand), and,
when the intercept is not attacked, where a whole ray of points is equally good. There the bracket
closes on the jump, and the answer lies on the straight line between its two sides.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.core.row import ROUNDING, gain_at, stop_score
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.ball import dual_norm, power
from holdfast.problem.goal import GUARANTEE
from holdfast.problem.model_set import copy_into, score_of, worst_score_of
from holdfast.problem.outcome import EXHAUSTED, FOUND, UNBOUNDED


class Scratch(Struct):
    """Buffers of one thread."""

    push: Floats  # of each feature
    push_share: Floats  # |push|^q: its part of (norm / r)^q while it is active
    pull: Floats  # of each feature with a positive start
    pull_share: Floats
    low: Floats  # the point on the side of too little score
    high: Floats  # the point on the side of enough


class Side(NamedTuple):
    """One side of a bracket on the frontier."""

    gain: float
    excess: float  # score minus the score at which the goal stops


@kernel
def solve_lp(row, intercept, ball, goal, scratch, y):
    """Write the answer into y; return (outcome, gain)."""
    norm = dual_norm(row.start, ball.scale, ball.intercept_scale, ball.q)
    start_score = intercept - ball.radius * norm
    terms = abs(intercept) + ball.radius * norm
    for i in range(y.size):
        start_score += row.coef[i] * row.start[i]
        terms += abs(row.coef[i] * row.start[i])
    most = most_gain(row, ball)
    low = Side(most, start_score - stop_score(goal, most))
    copy_into(scratch.low, row.start)
    if low.excess >= 0.0:
        copy_into(y, row.start)
        return FOUND, gain_at(goal, start_score, math.inf)

    if goal.mode == GUARANTEE:
        least = least_gain(row, ball, most)
        best, norm = point_at_gain(row, intercept, ball, scratch, least, norm, y)
        if best < goal.amount and best < math.inf:
            return EXHAUSTED, least
        if goal.amount == math.inf:
            return UNBOUNDED, 0.0
        gain = max(0.25 * most, least)
    else:
        gain = gain_at(goal, start_score, math.inf)  # the least that can be worth it
    while True:
        score, norm = point_at_gain(row, intercept, ball, scratch, gain, norm, scratch.high)
        high = Side(gain, score - stop_score(goal, gain))
        if high.excess >= 0.0:
            break
        if goal.mode != GUARANTEE or gain < 1e-300:
            copy_into(y, scratch.high)
            return FOUND, gain
        low = high
        copy_into(scratch.low, scratch.high)
        gain = max(0.25 * gain, least)

    settled, low, high = settle_jumps(row, intercept, ball, goal, scratch, low, high, norm, y)
    if settled:
        return FOUND, low.gain
    noise = 4.0 * EPS * terms  # of a score: no root is sharper than that
    return FOUND, close_bracket(row, intercept, ball, goal, scratch, low, high, norm, noise, y)


@kernel
def most_gain(row, ball):
    """Return a gain at which nothing moves: no feature ever gives more score for its cost."""
    most = 0.0
    for i in range(row.coef.size):
        most = max(most, (row.coef[i] + ball.radius * ball.scale[i]) / row.cost[i])
    return most


@kernel
def least_gain(row, ball, most):
    """Return the gain at which a walk to the end of the frontier stops: 0, but for rounding."""
    endless = 0.0
    for i in range(row.coef.size):
        if ball.scale[i] > 0.0 and row.upper[i] == math.inf:
            endless += power(row.coef[i] / (ball.radius * ball.scale[i]), ball.p)
    return ROUNDING * most if abs(endless - 1.0) <= ROUNDING * ball.p else 0.0


@kernel
def settle_jumps(row, intercept, ball, goal, scratch, low, high, norm, y):
    """Narrow the bracket until no feature of scale 0 jumps inside it.

    Such a feature costs the adversary nothing to watch: it is bought as a whole at the gain w / c.
    If the goal is met on the way, y holds the answer, and the first value returned is True.
    """
    for i in range(y.size):
        gain = row.coef[i] / row.cost[i]
        if ball.scale[i] > 0.0 or not high.gain <= gain <= low.gain:
            continue
        score, norm = point_at_gain(row, intercept, ball, scratch, gain, norm, y)
        stop = stop_score(goal, gain)
        if score >= stop:
            high = Side(gain, score - stop)
            copy_into(scratch.high, y)
            continue
        for j in range(y.size):
            if ball.scale[j] == 0.0 and row.coef[j] / row.cost[j] == gain:
                room = row.upper[j] - y[j]
                need = (stop - score) / row.coef[j]
                if room >= need:
                    y[j] += need
                    return True, Side(gain, 0.0), high
                y[j] = row.upper[j]
                score += row.coef[j] * room
        low = Side(gain, score - stop)
        copy_into(scratch.low, y)
    return False, low, high


@kernel
def close_bracket(row, intercept, ball, goal, scratch, low, high, norm, noise, y):
    """Find the gain at which the goal is met (Chandrupatla's method on its logarithm).

    It interpolates where three points say that this is safe, and halves the bracket otherwise,
    as it must where a side is endless or where the score jumps.
    """
    # a is the newest end of the bracket, b the other one, c the end that was given up last
    a, fa, b, fb = high.gain, high.excess, low.gain, low.excess
    c, fc = a, fa
    for step in range(300):
        least, most = min(a, b), max(a, b)
        gain = math.sqrt(a) * math.sqrt(b)
        if step > 0:
            share = interpolate(math.log(a / b), math.log(c / b), fa, fb, fc)
            gain = a * math.exp(share * math.log(b / a))
        if not least < gain < most:
            gain = math.sqrt(a) * math.sqrt(b)
            if not least < gain < most:
                break
        score, norm = point_at_gain(row, intercept, ball, scratch, gain, norm, y)
        excess = score - stop_score(goal, gain)
        if score < math.inf and abs(excess) <= noise:
            return gain
        copy_into(scratch.low if excess < 0.0 else scratch.high, y)
        c, fc = a, fa
        if (excess < 0.0) != (fa < 0.0):
            c, fc, b, fb = b, fb, a, fa
        a, fa = gain, excess
    gain = min(a, b)
    blend(row, intercept, ball, scratch, stop_score(goal, gain), max(a, b), gain, norm, y)
    return gain


@kernel
def interpolate(ab, cb, fa, fb, fc):
    """Return how far from a towards b to go, given log(a/b), log(c/b) and the three values."""
    share = 0.5
    if cb != 0.0 and fc < math.inf and fa < math.inf and fb < math.inf:
        xi, phi = ab / cb, (fa - fb) / (fc - fb)
        if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:  # else: too bent to trust
            share = fa / (fb - fa) * fc / (fb - fc)
            share += (cb - ab) / -ab * fa / (fc - fa) * fb / (fc - fb)
    return min(max(share, 0.0), 1.0)


@kernel
def blend(row, intercept, ball, scratch, stop, low_gain, high_gain, norm, y):
    """Write the point with score `stop` on the line between the two sides of a closed bracket.

    Both sides are minimisers at (to rounding) the same gain; so is the line between them, and the
    score is linear on it. Where the far side is a ray, go along it until there is score enough.
    """
    low_score = worst_score_of(scratch.low, row.coef, intercept, ball)
    high_score = worst_score_of(scratch.high, row.coef, intercept, ball)
    if not high_score < math.inf:
        is_unbounded(row, ball, scratch, high_gain)  # prepares the direction of the ray
        while not stop <= high_score and norm < 1e300:
            norm = 2.0 * max(norm, 1e-300)
            write_point(row, ball, scratch, low_gain, norm, scratch.high)
            high_score = worst_score_of(scratch.high, row.coef, intercept, ball)
    share = (stop - low_score) / (high_score - low_score) if high_score > low_score else 1.0
    share = min(max(share, 0.0), 1.0)
    for i in range(y.size):
        y[i] = scratch.low[i] + share * (scratch.high[i] - scratch.low[i])


@kernel
def point_at_gain(row, intercept, ball, scratch, gain, guess, y):
    """Write the cheapest point at this gain into y; return its score and its norm.

    The score is inf where no point is cheapest: score can be bought at this gain without end.
    `guess` is where to begin looking for the norm.
    """
    if is_unbounded(row, ball, scratch, gain):
        fill_with_nan(y)
        return math.inf, guess
    norm = 0.0
    if ball.intercept_scale > 0.0 or not rests_at_origin(row, ball, scratch):
        norm = find_norm(row, ball, scratch, guess)
    write_point(row, ball, scratch, gain, norm, y)
    return score_of(y, row.coef, intercept) - ball.radius * norm, norm


@kernel
def fill_with_nan(y):
    for i in range(y.size):
        y[i] = math.nan


@kernel
def is_unbounded(row, ball, scratch, gain):
    """Prepare push and pull for this gain; say whether the norm has no end."""
    endless = 0.0
    for i in range(row.coef.size):
        w, even = row.coef[i], gain * row.cost[i]
        if ball.scale[i] == 0.0:
            if row.upper[i] == math.inf and w / row.cost[i] > gain:
                return True
            continue
        reach = ball.radius * ball.scale[i]
        a = (w - even) / reach
        size = power(abs(a), ball.p - 1.0)
        scratch.push[i] = math.copysign(size, a)
        scratch.push_share[i] = size * abs(a)
        if a > 0.0 and row.upper[i] == math.inf:
            endless += scratch.push_share[i]
        if row.start[i] > 0.0:
            b = (w + even) / reach
            scratch.pull[i] = power(b, ball.p - 1.0)
            scratch.pull_share[i] = scratch.pull[i] * b
    return endless >= 1.0


@kernel
def rests_at_origin(row, ball, scratch):
    """Whether all features that the adversary feels are best at 0 (intercept not attacked)."""
    share = 0.0
    for i in range(row.coef.size):
        if ball.scale[i] == 0.0:
            continue
        if row.lower[i] > 0.0 or row.upper[i] < 0.0:
            return False
        if row.start[i] > 0.0:
            share += scratch.pull_share[i]
        elif scratch.push[i] > 0.0:
            share += scratch.push_share[i] if row.upper[i] > 0.0 else 0.0
        elif row.start[i] < 0.0:
            share += scratch.push_share[i]
    return share <= 1.0


@kernel
def place(felt, lower, upper, push, push_share, pull, pull_share, r):
    """Return where a feature goes at norm r, and its share while active (else -1).

    All in units of scale * x, `felt` being its start. Numbers alone, so that it is inlined.
    """
    share = -1.0
    pushed = r * push if r > 0.0 else 0.0  # push may be inf
    pulled = r * pull if r > 0.0 else 0.0
    if felt < pushed:
        felt, share = pushed, push_share
    elif felt > 0.0 and felt > pulled:
        felt, share = pulled, pull_share
    if felt > upper:
        return upper, -1.0
    if felt < lower:
        return lower, -1.0
    return felt, share


@kernel
def find_norm(row, ball, scratch, guess):
    """Solve ``||scale * (x(r), 1)||_q = r``.

    While the set of active features stays, ``r^q (1 - active) = passive`` gives r at once; steps
    that leave the bracket are replaced by doubling or by the geometric mean.
    """
    r = guess if guess > 0.0 else 1.0
    low, high = 0.0, math.inf
    for _ in range(2000):
        per_r = 1.0 / r
        active, passive = 0.0, power(ball.intercept_scale * per_r, ball.q)
        for i in range(row.coef.size):
            rho = ball.scale[i]
            if rho > 0.0:
                felt, share = place(
                    rho * row.start[i],
                    rho * row.lower[i],
                    rho * row.upper[i],
                    scratch.push[i],
                    scratch.push_share[i],
                    scratch.pull[i],
                    scratch.pull_share[i],
                    r,
                )
                if share >= 0.0:
                    active += share
                else:
                    passive += power(abs(felt) * per_r, ball.q)
        if active + passive > 1.0:
            low = r
        else:
            high = r
        following = -1.0
        if active < 1.0 and 0.0 < passive < math.inf:
            following = r * power(passive / (1.0 - active), 1.0 / ball.q)
            if abs(following - r) <= 4.0 * EPS * r:
                return following
        if not low < following < high:
            if high == math.inf:
                following = 4.0 * r
            elif low == 0.0:
                following = 0.25 * r
            else:
                following = math.sqrt(low) * math.sqrt(high)
                if high - low <= 4.0 * EPS * high:
                    return following
        r = following
        if r == 0.0 or r == math.inf:
            break
    return r


@kernel
def write_point(row, ball, scratch, gain, norm, y):
    for i in range(y.size):
        rho = ball.scale[i]
        if rho == 0.0:
            y[i] = row.upper[i] if row.coef[i] / row.cost[i] > gain else row.start[i]
            continue
        felt, share = place(
            rho * row.start[i],
            rho * row.lower[i],
            rho * row.upper[i],
            scratch.push[i],
            scratch.push_share[i],
            scratch.pull[i],
            scratch.pull_share[i],
            norm,
        )
        if share >= 0.0:
            y[i] = felt / rho
        elif felt == rho * row.start[i]:
            y[i] = row.start[i]
        else:
            y[i] = row.upper[i] if felt == rho * row.upper[i] else row.lower[i]
