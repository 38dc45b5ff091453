"""One row of a batch: check it, load it, solve it, write its answer."""

from __future__ import annotations

import math

from holdfast.core.kinds import make_plan, read_answer, solve_row, write_row
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Flags, Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import ENDLESS, GUARANTEE, GoalNumbers
from holdfast.problem.model_set import (
    copy_into,
    norm_of,
    pick,
    score_of,
    score_rounding,
    with_radius,
    worst_score_of,
)
from holdfast.problem.outcome import (
    BAD_BOUNDS,
    BAD_COST,
    EXHAUSTED,
    FOUND,
    NOT_FINITE,
    OUT_OF_BOUNDS,
    UNBOUNDED,
)


class Answers(Struct):
    """What the kernels write, a row each.

    Where the goal is out of reach (outcome EXHAUSTED), `recourse` is the point of the largest
    worst-case score; it proves that, and is not meant for people.
    """

    recourse: Floats
    multiplier: Floats
    outcome: Flags


@kernel
def check_row(point, coef, intercept, cost, lower, upper):
    outcome = FOUND
    if not math.isfinite(intercept):
        return NOT_FINITE
    for j in range(point.size):
        if not (math.isfinite(point[j]) and math.isfinite(coef[j])):
            return NOT_FINITE
        if not 0.0 < cost[j] < math.inf:
            return BAD_COST
        if not lower[j] <= upper[j] or lower[j] == math.inf or upper[j] == -math.inf:
            outcome = BAD_BOUNDS
        elif outcome == FOUND and not lower[j] <= point[j] <= upper[j]:
            outcome = OUT_OF_BOUNDS
    return outcome


@kernel
def load_row(rows, i, robust, work):
    """Turn row i into the workspace."""
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    coef, intercept, cost = pick(rows.coef, i), pick(rows.intercept, i), pick(rows.cost, i)
    write_row(work, robust, rows.start[i], coef, intercept, lower, upper, cost)


@kernel
def open_row(rows, amount, robust, answers, i, work):
    """Load row i into the workspace; False, and its answer is written, if it cannot be used."""
    lower, upper = pick(rows.lower, i), pick(rows.upper, i)
    coef, intercept = pick(rows.coef, i), pick(rows.intercept, i)
    cost = pick(rows.cost, i)
    answers.outcome[i] = check_row(rows.start[i], coef, intercept, cost, lower, upper)
    answers.multiplier[i] = math.nan
    if math.isnan(amount):
        answers.outcome[i] = BAD_COST
    if answers.outcome[i] != FOUND:
        answers.recourse[i] = math.nan
        return False
    load_row(rows, i, robust, work)
    return True


@kernel
def own_goal(goal, amounts, i):
    """Return the goal of row i; its amount is that of the row's costs."""
    return GoalNumbers(goal.mode, goal.loss, pick(amounts, i))


@kernel
def plan_shared(rows, robust, goal, work):
    """Make the plan that all rows share, if they do; return whether they do."""
    shared = rows.coef.shape[0] == 1 and rows.cost.shape[0] == 1
    if shared and rows.start.shape[0] > 0:
        load_row(rows, 0, robust, work)
        make_plan(work, robust, goal)
    return shared


@kernel
def answer_row(rows, i, robust, goal, shared, work, answers):
    """Answer row i, whatever the goal; False, and its answer is written, if it cannot be used."""
    if not open_row(rows, goal.amount, robust, answers, i, work):
        return False
    if not shared:
        make_plan(work, robust, goal)
    if goal.mode == GUARANTEE:
        guarantee_row(rows, i, robust, goal, work, answers)
    else:
        price_row(rows, i, robust, goal, work, answers)
    return True


@kernel
def price_row(rows, i, robust, goal, work, answers):
    """Minimise worst-case loss + cost weight * cost, for a convex loss."""
    outcome, gain = solve_row(work, pick(rows.intercept, i), robust, goal)
    read_answer(work, pick(rows.coef, i), answers.recourse[i])
    answers.outcome[i] = outcome
    answers.multiplier[i] = 1.0 / gain


@kernel
def guarantee_row(rows, i, robust, goal, work, answers):
    """Minimise the cost of reaching the target score."""
    point, coef, intercept = rows.start[i], pick(rows.coef, i), pick(rows.intercept, i)
    if worst_score_of(point, coef, intercept, robust) >= goal.amount:
        copy_into(answers.recourse[i], point)
        answers.multiplier[i] = 0.0
        return
    outcome, gain = reach_target(point, coef, intercept, robust, goal, work, answers.recourse[i])
    answers.outcome[i] = outcome
    answers.multiplier[i] = 1.0 / gain


@kernel
def reach_target(start, coef, intercept, robust, goal, work, point):
    """Solve for a target score so that the score, as anybody computes it, is not below it.

    The kernels land on the target to rounding; aiming a hair above it (by pretending that the
    intercept is a hair lower) makes the guarantee hold to the last bit. Where there is no room
    for a hair, the end of what can be reached will do if it meets the target.
    """
    margin = 2.0 * score_rounding(start, coef, intercept, robust) + EPS * abs(goal.amount)
    outcome, gain = EXHAUSTED, 0.0
    for _ in range(8):
        outcome, gain = solve_row(work, intercept - margin, robust, goal)
        read_answer(work, coef, point)
        hair = score_rounding(point, coef, intercept, robust)
        missing = goal.amount - worst_score_of(point, coef, intercept, robust)
        if outcome != FOUND or missing + hair <= 0.0:
            break
        margin = 4.0 * margin + 2.0 * (missing + hair)
    if missing > 0.0:
        return EXHAUSTED, gain
    if outcome != FOUND:
        gain = cheapest_end(coef, intercept, robust, goal, work, margin, point)
    return FOUND, gain


@kernel
def cheapest_end(coef, intercept, robust, goal, work, margin, point):
    """Replace the end of what can be reached by a cheaper point that just meets the target too.

    Return the gain there, or just before the end.
    """
    outcome, gain = solve_row(work, intercept, robust, goal)
    end = point.copy()
    read_answer(work, coef, point)
    if outcome == FOUND and worst_score_of(point, coef, intercept, robust) >= goal.amount:
        return gain
    copy_into(point, end)
    _, gain = solve_row(work, intercept + 4.0 * margin, robust, goal)
    return gain


@kernel
def radius_rows(work, rows, robust, goal, which, radii, begin, end):
    """Find, for rows whose goal is out of reach, the largest radius at which it is not."""
    for k in range(begin, end):
        load_row(rows, which[k], robust, work)
        radii[k] = largest_radius(pick(rows.intercept, which[k]), robust, goal, work)


@kernel
def largest_radius(intercept, robust, goal, work):
    """Return the largest radius at which the target can still be reached; NaN if not even at 0.

    The end of reach is convex in the radius and does not rise with it: Newton's method, kept
    inside a bracket whose lower end is always within reach.
    """
    best, norm = best_linear_score(intercept, robust, work)
    if best < goal.amount:
        return math.nan
    low, high, radius = 0.0, robust.radius, 0.0
    for _ in range(200):
        following = 0.5 * (low + high)
        if best < math.inf and norm > 0.0:
            newton = radius + (best - goal.amount) / norm
            if best >= goal.amount and newton <= low * (1.0 + 1e-15):
                break
            if low < newton < high:
                following = newton
        radius = following
        best, norm = best_score(intercept, with_radius(robust, radius), work)
        if best >= goal.amount:
            low = radius
        else:
            high = radius
        if high - low <= 1e-15 * high:
            break
    return low


@kernel
def best_score(intercept, robust, work):
    """Return the largest worst-case score that the bounds allow, and the dual norm there."""
    make_plan(work, robust, ENDLESS)
    outcome, _ = solve_row(work, intercept, robust, ENDLESS)
    if outcome == UNBOUNDED:
        return math.inf, 0.0
    score = worst_score_of(work.y, work.row.coef, intercept, robust)
    return score, norm_of(work.y, robust)


@kernel
def best_linear_score(intercept, robust, work):
    """Return the same at radius 0."""
    for j in range(work.y.size):
        work.y[j] = work.row.upper[j] if work.row.coef[j] > 0.0 else work.row.start[j]
        if work.row.coef[j] < 0.0:  # in a row that was not turned
            work.y[j] = work.row.lower[j]
    score = score_of(work.y, work.row.coef, intercept)
    return score, norm_of(work.y, robust) if score < math.inf else 0.0
