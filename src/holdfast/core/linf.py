"""p = inf: the worst-case score is separable, and a recourse is a fractional knapsack.

Along one (oriented) feature the worst-case score is ``w x - a |x|`` with ``a = radius * scale``:
slope ``w + a`` up to 0 and ``w - a`` after it. So a feature offers at most two segments to buy:

- segment 2i: from a negative start up to 0, at ``w + a``;
- segment 2i + 1: beyond 0, at ``w - a``, where that is positive; or, where it is negative,
  from a positive start back down to 0, at ``a - w``.

Segments are bought in the order of slope / cost until the goal is met. No iteration, no tolerance.
"""

from __future__ import annotations

import math

from holdfast.core.row import ROUNDING, gain_at, outcome_of, sort_plan
from holdfast.machinery.compile import kernel
from holdfast.problem.outcome import FOUND, UNBOUNDED


@kernel
def plan_linf(plan, row, ball, goal):
    for i in range(row.coef.size):
        a = ball.radius * ball.scale[i]
        plan.gain[2 * i] = (row.coef[i] + a) / row.cost[i]
        beyond = abs(row.coef[i] - a)
        if beyond <= ROUNDING * a:  # a difference of rounding errors buys nothing
            beyond = 0.0
        plan.gain[2 * i + 1] = beyond / row.cost[i]
    sort_plan(plan, goal)


@kernel
def solve_linf(row, intercept, ball, goal, plan, y):
    """Write the answer into y; return (outcome, gain)."""
    score = intercept - ball.radius * ball.intercept_scale
    for i in range(y.size):
        y[i] = row.start[i]
        score += row.coef[i] * y[i] - ball.radius * ball.scale[i] * abs(y[i])
    last = math.inf
    for k in range(plan.order.size):
        gain = plan.gain[plan.order[k]]
        if gain <= 0.0:
            break
        if score >= plan.stop[k]:
            return FOUND, gain_at(goal, score, last)
        i, second = divmod(plan.order[k], 2)
        end = segment_end(row, ball, i, second, y[i])
        length = abs(end - y[i])
        if length == 0.0:
            continue
        slope = gain * row.cost[i]
        need = (plan.stop[k] - score) / slope
        if length >= need:
            if need == math.inf:
                return UNBOUNDED, 0.0
            y[i] += math.copysign(need, end - y[i])
            return FOUND, gain
        y[i] = end
        score += slope * length
        last = gain
    return outcome_of(goal, score), gain_at(goal, score, last)


@kernel
def segment_end(row, ball, i, second, y):
    """Return where the segment of feature i that begins at y ends; y itself where there is none."""
    if second == 0:
        return min(0.0, row.upper[i]) if y < 0.0 else y
    if row.coef[i] > ball.radius * ball.scale[i]:
        return row.upper[i] if y >= 0.0 else y
    return max(0.0, row.lower[i]) if y > 0.0 else y
