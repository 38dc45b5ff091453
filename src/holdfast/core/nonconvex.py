"""A loss that is not convex in the score: search its whole frontier, by lines below it.

The price is ``phi(t) + cost_weight * C(t)`` over the score t, with C the frontier: convex. Each
point of the frontier that is worked out brings a line below C; under all lines so far the least
price is known exactly (piece by piece, `certificate.least_on` does the same sums from the outside).
Work out the frontier where that least price is attained, and go on until it meets the best price
found, to rounding, or until there are `MOST_LINES`: a global search in one dimension, for every p.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.core.kinds import make_plan, read_answer, solve_row
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.costs import cost_of
from holdfast.problem.goal import GUARANTEE, GoalNumbers
from holdfast.problem.losses import loss_value, score_at_slope
from holdfast.problem.model_set import copy_into, pick, worst_score_of
from holdfast.problem.outcome import EXHAUSTED

MOST_LINES = 200
_CLOSE = 1e-11


class Lines(Struct):
    """The frontier as far as it had to be worked out, by rising score.

    A multiplier of inf marks the end of what can be reached. `offsets` is for the certificate.
    """

    scores: Floats
    costs: Floats
    mus: Floats
    points: Floats
    duals: Floats
    offsets: Floats


def new_lines(d: int, n_duals: int) -> Lines:
    n = MOST_LINES
    return Lines.zeros(n, n, n, (n, d), (n, n_duals), n)


@kernel
def least_price(loss, cost_weight, mu, cost, score, low, high):
    """Least of phi(t) + cost_weight * (cost + mu * (t - score)) on [low, high]; (price, t)."""
    slope = cost_weight * mu
    best, where = math.inf, low
    bottom = score_at_slope(loss, slope)
    for t in (low, high, min(max(bottom, low), high)):
        if t == math.inf:
            continue
        price = loss_value(loss, t) + cost_weight * (cost + mu * (t - score))
        if price < best:
            best, where = price, t
    return best, where


@kernel
def least_price_between(loss, cost_weight, lines, k, count, cap):
    """Least price between known points k and k + 1, under the lines through both."""
    scores, costs, mus = lines.scores, lines.costs, lines.mus
    low = scores[k]
    high = scores[k + 1] if k + 1 < count else cap
    cross = high
    if k + 1 < count and mus[k + 1] < math.inf and mus[k + 1] > mus[k]:
        ahead = costs[k + 1] - mus[k + 1] * (scores[k + 1] - low) - costs[k]
        cross = min(max(low - ahead / (mus[k + 1] - mus[k]), low), high)
    best, where = least_price(loss, cost_weight, mus[k], costs[k], scores[k], low, cross)
    if cross < high:
        price, t = least_price(
            loss, cost_weight, mus[k + 1], costs[k + 1], scores[k + 1], cross, high
        )
        if price < best:
            best, where = price, t
    return best, where


@kernel
def insert(lines, count, score, cost, mu, point, dual):
    scores, costs, mus = lines.scores, lines.costs, lines.mus
    points, duals = lines.points, lines.duals
    k = count
    while k > 0 and scores[k - 1] > score:
        scores[k], costs[k], mus[k] = scores[k - 1], costs[k - 1], mus[k - 1]
        copy_into(points[k], points[k - 1])
        copy_into(duals[k], duals[k - 1])
        k -= 1
    scores[k], costs[k], mus[k] = score, cost, mu
    copy_into(points[k], point)
    copy_into(duals[k], dual)


@kernel
def search_frontier(rows, i, robust, loss, cost_weight, work, lines, best):
    """Write the answer into `best`; return (number of lines, multiplier of the answer).

    The dual of the answer is left in the workspace.
    """
    start, coef, intercept = rows.start[i], pick(rows.coef, i), pick(rows.intercept, i)
    cost = pick(rows.cost, i)
    start_score = worst_score_of(start, coef, intercept, robust)
    insert(lines, 0, start_score, 0.0, 0.0, start, work.dual)  # of a line that says nothing
    copy_into(best, start)
    found, best_mu, count, cap = loss_value(loss, start_score), 0.0, 1, math.inf
    point, own = np.empty(start.size), work.dual.copy()
    target = max(start_score, 0.0) + 1.0
    while count < MOST_LINES:
        goal = GoalNumbers(GUARANTEE, loss, target)
        make_plan(work, robust, goal)
        outcome, gain = solve_row(work, intercept, robust, goal)
        read_answer(work, coef, point)
        spent, mu = cost_of(point, start, cost), 1.0 / gain
        if outcome == EXHAUSTED:
            target = worst_score_of(point, coef, intercept, robust)
            cap = min(cap, target)
        insert(lines, count, target, spent, mu, point, work.dual)
        count += 1
        price = loss_value(loss, target) + cost_weight * spent
        if price < found:
            found, best_mu = price, mu
            copy_into(best, point)
            copy_into(own, work.dual)
        bound, target = math.inf, math.nan
        for k in range(count):
            if lines.scores[k] >= cap:
                continue
            value, where = least_price_between(loss, cost_weight, lines, k, count, cap)
            if value < bound:
                bound, target = value, where
                high = lines.scores[k + 1] if k + 1 < count else math.inf
                near = 1e-9 * (1.0 + abs(where))
                if min(where - lines.scores[k], high - where) <= near:
                    target = 0.5 * (lines.scores[k] + high)
        if bound >= found - _CLOSE * (1.0 + found) or not math.isfinite(target):
            break
    copy_into(work.dual, own)
    return count, best_mu
