"""From question to proven answer: solve every row, appraise it, and certify it apart from that."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast._compile import kernel
from holdfast._threads import over_rows
from holdfast.ball import pick, score_of, worst_score_of
from holdfast.certificate import STEEP, price_bound, price_bound_under_lines, support_line
from holdfast.losses import loss_value
from holdfast.problem import GUARANTEE, Goal, RecourseProblem
from holdfast.solvers import Answers, new_answers, solve_problem
from holdfast.solvers.batch import open_row
from holdfast.solvers.bent import new_lines, solve_bent_row
from holdfast.solvers.kinds import new_work

Floats = NDArray[np.float64]


class Appraisal(NamedTuple):
    """What is known about each answer, none of it taken from the solver."""

    cost: Floats
    score: Floats
    worst_score: Floats
    loss: Floats
    lower_bound: Floats


def answer(problem: RecourseProblem, goal: Goal, threads: int) -> tuple[Answers, Appraisal]:
    """Solve, certify and appraise every row."""
    n, d = problem.points.shape
    rows, ball = problem.rows(), problem.ball.numbers(d)
    appraisal = Appraisal(*(np.full(n, np.nan) for _ in Appraisal._fields))
    if goal.mode == GUARANTEE or problem.loss.convex:
        answers = solve_problem(problem, goal, threads)
        over_rows(
            certify_rows,
            n,
            threads,
            rows,
            ball,
            goal,
            answers,
            appraisal.lower_bound,
            private=lambda: np.empty(d),
        )
    else:
        answers = new_answers(n, d)
        over_rows(
            bent_rows,
            n,
            threads,
            rows,
            ball,
            goal,
            answers,
            appraisal.lower_bound,
            private=lambda: (new_work(problem), new_lines(d), np.empty(d)),
        )
    over_rows(appraise_rows, n, threads, rows, ball, goal, answers, appraisal, private=lambda: 0)
    return answers, appraisal


def worst_model(
    problem: RecourseProblem, recourse: Floats, multiplier: float
) -> tuple[Floats, float]:
    """Return the model that proves the recourse of a one-row problem: a worst one in the ball."""
    rows, model = problem.rows(), np.full(problem.n_features, np.nan)
    if math.isnan(multiplier) or np.isnan(recourse).any():
        return model, math.nan
    _, _, intercept = support_line(
        recourse,
        multiplier,
        rows.points[0],
        rows.coef[0],
        rows.intercept[0],
        rows.cost[0],
        rows.lower[0],
        rows.upper[0],
        problem.ball.numbers(problem.n_features),
        model,
    )
    return model, float(intercept)


@kernel
def cost_of(point, start, cost):
    total = 0.0
    for j in range(point.size):
        total += cost[j] * abs(point[j] - start[j])
    return total


@kernel
def appraise_rows(_, rows, ball, goal, answers, appraisal, begin, end):
    for i in range(begin, end):
        if answers.outcome[i] > 1:
            continue
        x = answers.recourse[i]
        coef, intercept = pick(rows.coef, i), pick(rows.intercept, i)
        worst = worst_score_of(x, coef, intercept, ball)
        appraisal.cost[i] = cost_of(x, rows.points[i], pick(rows.cost, i))
        appraisal.score[i] = score_of(x, coef, intercept)
        appraisal.worst_score[i] = worst
        appraisal.loss[i] = loss_value(goal.loss, worst)


@kernel
def certify_rows(model, rows, ball, goal, answers, lower_bound, begin, end):
    for i in range(begin, end):
        if math.isnan(answers.multiplier[i]):
            continue
        mu, offset, _ = support_line(
            answers.recourse[i],
            answers.multiplier[i],
            rows.points[i],
            pick(rows.coef, i),
            pick(rows.intercept, i),
            pick(rows.cost, i),
            pick(rows.lower, i),
            pick(rows.upper, i),
            ball,
            model,
        )
        if goal.mode == GUARANTEE:
            bound = mu * goal.level - offset
            if mu == math.inf:  # an upright line: nothing beyond `offset` can be reached
                bound = math.inf if goal.level > offset else 0.0
            lower_bound[i] = max(bound, 0.0)
        else:
            lower_bound[i] = price_bound(goal.loss, goal.level, mu, offset)


@kernel
def bent_rows(private, rows, ball, goal, answers, lower_bound, begin, end):
    """Solve and certify together: the many lines of such a proof are not kept."""
    work, lines, model = private
    for i in range(begin, end):
        if not open_row(rows, ball, goal, answers, True, i, work):
            continue
        start, coef, intercept = rows.points[i], pick(rows.coef, i), pick(rows.intercept, i)
        lower, upper, cost = pick(rows.lower, i), pick(rows.upper, i), pick(rows.cost, i)
        count, answers.multiplier[i] = solve_bent_row(
            start,
            coef,
            intercept,
            cost,
            ball,
            goal.loss,
            goal.level,
            work,
            lines,
            answers.recourse[i],
        )
        for k in range(count):
            mu = lines.mus[k]
            for _ in range(2):
                lines.mus[k], lines.offsets[k], _ = support_line(
                    lines.points[k], mu, start, coef, intercept, cost, lower, upper, ball, model
                )
                mu = STEEP / goal.level
                if lines.mus[k] == math.inf or lines.mus[k] <= mu:
                    break
        start_score = worst_score_of(start, coef, intercept, ball)
        lower_bound[i] = price_bound_under_lines(
            goal.loss, goal.level, start_score, lines.mus, lines.offsets, count
        )
