"""What a recourse is worth, computed from the problem alone: nothing is taken from a solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import over_rows
from holdfast.problem.costs import cheapest_unit, cost_of
from holdfast.problem.goal import GUARANTEE, Goal
from holdfast.problem.losses import loss_value
from holdfast.problem.model_set import pick, score_of, score_rounding, worst_score_of
from holdfast.problem.outcome import EXHAUSTED, FOUND
from holdfast.problem.problem import RecourseProblem
from holdfast.result.found import Found


class Appraisal(NamedTuple):
    """What is known about each recourse; NaN where there is none.

    `rounding` is what rounding can take off the worst-case score, and `loss_above` the loss that is
    not exceeded even then; `unit` is, for a guarantee, the least cost of a unit of score.
    """

    cost: Floats
    score: Floats
    worst_score: Floats
    loss: Floats
    rounding: Floats
    loss_above: Floats
    unit: Floats


def appraise(problem: RecourseProblem, goal: Goal, found: Found, threads: int) -> Appraisal:
    """Appraise recourses, whoever found them."""
    n, d = problem.X.shape
    appraisal = Appraisal(*(np.full(n, np.nan) for _ in Appraisal._fields))
    rows, numbers = problem.rows(), problem.robust_to.numbers(d)
    asked, answers = goal.numbers(), (found.recourse, found.outcome)
    over_rows(appraise_rows, n, threads, rows, numbers, asked, answers, appraisal)
    return appraisal


def appraise_points(
    problem: RecourseProblem, points: Floats, cost: Floats, unit: Floats
) -> Appraisal:
    """Appraise points by the problem's own measures, where cost and unit follow other rules."""
    worst = problem.robust_to.worst_score(points, problem.coef, problem.intercept)
    rounding = score_roundings(problem, points)
    return Appraisal(
        cost=cost,
        score=problem.score(points),
        worst_score=worst,
        loss=problem.loss.value(worst),
        rounding=rounding,
        loss_above=problem.loss.value(worst - rounding),
        unit=unit,
    )


def score_roundings(problem: RecourseProblem, points: Floats) -> Floats:
    """Return what rounding can take off the worst-case score of each point."""
    rounding, robust = np.empty(len(points)), problem.robust_to.numbers(problem.n_features)
    write_roundings(problem.rows(), robust, points, rounding)
    return rounding


@kernel
def write_roundings(rows, robust, points, rounding):
    for i in range(rounding.size):
        rounding[i] = score_rounding(points[i], pick(rows.coef, i), pick(rows.intercept, i), robust)


@kernel
def appraise_rows(_, rows, robust, goal, answers, appraisal, begin, end):
    recourse, outcome = answers
    for i in range(begin, end):
        if outcome[i] != FOUND and outcome[i] != EXHAUSTED:
            continue
        x = recourse[i]
        coef, intercept, cost = pick(rows.coef, i), pick(rows.intercept, i), pick(rows.cost, i)
        worst = worst_score_of(x, coef, intercept, robust)
        appraisal.cost[i] = cost_of(x, rows.start[i], cost)
        appraisal.score[i] = score_of(x, coef, intercept)
        appraisal.worst_score[i] = worst
        appraisal.loss[i] = loss_value(goal.loss, worst)
        appraisal.rounding[i] = score_rounding(x, coef, intercept, robust)
        appraisal.loss_above[i] = loss_value(goal.loss, worst - appraisal.rounding[i])
        if goal.mode == GUARANTEE:
            lower, upper = pick(rows.lower, i), pick(rows.upper, i)
            appraisal.unit[i] = cheapest_unit(
                rows.start[i], coef, robust.scale, cost, lower, upper, robust.radius
            )
