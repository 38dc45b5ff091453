"""p = 1: the adversary strikes the largest coordinate, so everything hangs on its size M.

With ``M = max(scale * |(x, 1)|)`` fixed, features live in the box ``scale_i |x_i| <= M``: clip the
start into it, then buy features in the order of ``w / cost`` until the goal is met. The least cost
H(M) of that (for the price: the least price over the cost weight) is convex in M, and by the
envelope theorem its derivative, divided by the multiplier, is (`slope_in_size`)

    radius - sum over features that M holds back of (what a wider box would save)

For a fixed gain it changes only at the starts and the bounds beyond the least M: search these kinks
for the change of sign. Between two of them it is concave and piecewise linear in the gain, and at
the gain where it is 0 the score is linear in M.
"""

from __future__ import annotations

import math

from holdfast.core.row import ROUNDING, gain_at, outcome_of, sort_plan, stop_score
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS
from holdfast.problem.outcome import FOUND, UNBOUNDED


@kernel
def plan_l1(plan, row, goal):
    for i in range(row.coef.size):
        plan.gain[i] = row.coef[i] / row.cost[i]
    sort_plan(plan, goal)


@kernel
def solve_l1(row, intercept, ball, goal, plan, y, kinks):
    """Write the answer into y; return (outcome, gain). `kinks` is scratch for 2d + 1 numbers."""
    least = smallest_size(row, ball)
    score, gain = fill_box(row, intercept, ball, goal, plan, least, y)
    if slope_in_size(row, ball, least, True, gain) >= 0.0:
        return outcome_of(goal, score), gain

    low, low_gain, high, high_gain = least, gain, math.inf, math.inf
    count = collect_kinks(row, ball, least, kinks)
    while count > 0:
        size = middle_of_three(kinks, count)
        score, gain = fill_box(row, intercept, ball, goal, plan, size, y)
        if slope_in_size(row, ball, size, True, gain) >= 0.0:
            high, high_gain = size, gain
        else:
            low, low_gain = size, gain
        count = keep_between(kinks, count, low, high)

    if high < math.inf and slope_in_size(row, ball, high, False, high_gain) <= 0.0:
        score, gain = fill_box(row, intercept, ball, goal, plan, high, y)
        return outcome_of(goal, score), gain

    gain = flat_gain(row, ball, low, low_gain, high_gain)
    stop = stop_score(goal, gain)
    if stop == math.inf:
        return UNBOUNDED, 0.0
    size = size_at_score(row, intercept, ball, low, gain, stop)
    size = min(max(size, low), high)
    fill_box(row, intercept, ball, goal, plan, size, y)
    return FOUND, gain


@kernel
def smallest_size(row, ball):
    """Return the least M at which the box meets all bounds."""
    least = ball.intercept_scale
    for i in range(row.coef.size):
        if ball.scale[i] > 0.0:
            least = max(least, ball.scale[i] * max(row.lower[i], -row.upper[i]))
    return least


@kernel
def collect_kinks(row, ball, least, kinks):
    count = 0
    for i in range(row.coef.size):
        rho = ball.scale[i]
        if rho * abs(row.start[i]) > least:
            kinks[count] = rho * abs(row.start[i])
            count += 1
        if row.upper[i] < math.inf and rho * row.upper[i] > least:
            kinks[count] = rho * row.upper[i]
            count += 1
    return count


@kernel
def middle_of_three(values, count):
    a, b, c = values[0], values[count // 2], values[count - 1]
    return max(min(a, b), min(max(a, b), c))


@kernel
def keep_between(values, count, low, high):
    kept = 0
    for k in range(count):
        if low < values[k] < high:
            values[kept] = values[k]
            kept += 1
    return kept


@kernel
def fill_box(row, intercept, ball, goal, plan, size, y):
    """Solve for fixed M: clip the start, then buy in order. Return (score, gain)."""
    score = intercept - ball.radius * size
    terms = abs(intercept) + ball.radius * size
    for i in range(y.size):
        felt = ball.scale[i] * row.start[i]
        if felt > size:
            y[i] = size / ball.scale[i]
        elif felt < -size:
            y[i] = -size / ball.scale[i]
        else:
            y[i] = row.start[i]
        score += row.coef[i] * y[i]
        terms += abs(row.coef[i] * y[i])
    dust = 4.0 * EPS * terms  # what is missing by rounding is not bought
    last = math.inf
    for k in range(plan.order.size):
        i = plan.order[k]
        w = row.coef[i]
        if w <= 0.0:
            break
        if score >= plan.stop[k] - dust:
            return max(score, plan.stop[k]), gain_at(goal, max(score, plan.stop[k]), last)
        end = row.upper[i]
        if ball.scale[i] > 0.0 and ball.scale[i] * end > size:
            end = size / ball.scale[i]
        room = end - y[i]
        if room <= 0.0:
            continue
        need = (plan.stop[k] - score) / w
        if room >= need:
            y[i] += need
            return plan.stop[k], plan.gain[i]
        y[i] = end
        score += w * room
        last = plan.gain[i]
    return score, gain_at(goal, score, last)


@kernel
def slope_in_size(row, ball, size, right, gain):
    """Derivative of H at M, over the multiplier; from the right or the left at a kink."""
    total, terms = ball.radius, 0.0
    for i in range(row.coef.size):
        rho = ball.scale[i]
        if rho == 0.0:
            continue
        w, felt = row.coef[i], rho * row.start[i]
        if felt > size or (felt == size and not right):  # clipped inward from above
            if gain == math.inf:
                return -math.inf
            total -= (w + gain * row.cost[i]) / rho
            terms += (w + gain * row.cost[i]) / rho
            continue
        even = gain * row.cost[i]
        if w > even:
            limit = rho * row.upper[i]
            if limit > size or (limit == size and not right):  # pushed out against the box
                total -= (w - even) / rho
                terms += (w + even) / rho
        elif -felt > size or (-felt == size and not right):  # clipped inward from below
            if gain == math.inf:
                return -math.inf
            total -= (even - w) / rho
            terms += (w + even) / rho
    noise = max(ROUNDING * ball.radius, 4.0 * EPS * terms)
    return 0.0 if abs(total) <= noise < math.inf else total


@kernel
def edge_sums(row, intercept, ball, low, gain):
    """Sums for M just above `low`, features with ``w > gain * cost`` all bought.

    Return (a0, a1, a2): the score is ``a0 + a1 M``, the slope in size ``a2 * gain - a1``.
    """
    a0, a1, a2 = intercept, -ball.radius, 0.0
    for i in range(row.coef.size):
        w, c, rho = row.coef[i], row.cost[i], ball.scale[i]
        felt = rho * row.start[i]
        if felt > low:
            a1 += w / rho
            a2 -= c / rho
        elif w > 0.0 and w > gain * c * (1.0 - 4.0 * EPS):  # bought in part counts as bought
            if rho * row.upper[i] > low:
                a1 += w / rho
                a2 += c / rho
            else:
                a0 += w * row.upper[i]
        elif -felt > low:
            a1 -= w / rho
            a2 -= c / rho
        else:
            a0 += w * row.start[i]
    return a0, a1, a2


@kernel
def flat_gain(row, ball, low, gain, other):
    """Return the gain between `gain` and `other` at which H is flat just above M = low.

    The slope is concave and piecewise linear in the gain and negative at `gain`, so Newton's
    method from there meets the root from its negative side, in finitely many steps.
    """
    for _ in range(4 * row.coef.size + 8):
        _, a1, a2 = edge_sums(row, 0.0, ball, low, gain)
        if a2 == 0.0:
            break
        following = a1 / a2
        following = min(max(following, min(gain, other)), max(gain, other))
        done = abs(following - gain) <= 1e-16 * following
        gain = following
        if done:
            break
    return gain


@kernel
def size_at_score(row, intercept, ball, low, gain, score):
    a0, a1, _ = edge_sums(row, intercept, ball, low, gain)
    return (score - a0) / a1 if a1 != 0.0 else low
