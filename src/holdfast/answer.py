"""From question to proven answer: solve every row, appraise it, and certify it apart from that."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast._compile import kernel
from holdfast._numbers import Floats
from holdfast._threads import over_rows
from holdfast.ball import pick, score_of, worst_score_of
from holdfast.certificate import price_bound, price_bound_under_lines, row_line
from holdfast.losses import loss_value
from holdfast.problem import GUARANTEE, Goal, RecourseProblem, cost_of
from holdfast.solvers import Answers, find_answers, new_answers
from holdfast.solvers.batch import NOT_FINITE, open_row
from holdfast.solvers.bent import new_lines, solve_bent_row
from holdfast.solvers.kinds import new_work
from holdfast.solvers.row import FOUND


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
        answers = find_answers(problem, goal, threads)
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
    over_rows(appraise_rows, n, threads, rows, ball, goal, answers, appraisal)
    return answers, appraisal


def appraise(
    problem: RecourseProblem, goal: Goal, recourse: Floats, lower_bound: Floats, threads: int
) -> tuple[Answers, Appraisal]:
    """Appraise recourses that somebody else found; rows of NaN have none."""
    n, d = problem.points.shape
    outcome = np.where(np.isnan(recourse).any(axis=1), NOT_FINITE, FOUND).astype(np.int8)
    answers = Answers(recourse, np.full(n, np.nan), outcome)
    unknown = Appraisal(*(np.full(n, np.nan) for _ in Appraisal._fields))
    appraisal = unknown._replace(lower_bound=lower_bound.copy())
    numbers = problem.ball.numbers(d)
    over_rows(appraise_rows, n, threads, problem.rows(), numbers, goal, answers, appraisal)
    return answers, appraisal


def worst_models(
    problem: RecourseProblem, recourse: Floats, multiplier: Floats
) -> tuple[Floats, Floats]:
    """Return the worst model of the ball for each recourse; NaN for rows without one.

    Where several models are equally bad, it is the one that proves the recourse optimal.
    """
    coef, intercept = problem.ball.worst_model(recourse, problem.coef, problem.intercept)
    ball = problem.ball.numbers(problem.n_features)
    prove_rows(problem.rows(), ball, recourse, multiplier, coef, intercept)
    intercept[np.isnan(recourse).any(axis=1)] = np.nan
    return coef, intercept


@kernel
def prove_rows(rows, ball, recourse, multiplier, coef, intercept):
    """Overwrite worst models by those that the certificate uses."""
    for i in range(multiplier.size):
        if multiplier[i] > 0.0 and not math.isnan(recourse[i, 0]):
            _, _, intercept[i] = row_line(rows, i, recourse[i], multiplier[i], ball, coef[i])


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
        mu, offset, _ = row_line(rows, i, answers.recourse[i], answers.multiplier[i], ball, model)
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
        if not open_row(rows, answers, i, work):
            continue
        count, answers.multiplier[i] = solve_bent_row(
            rows, i, ball, goal.loss, goal.level, work, lines, answers.recourse[i]
        )
        for k in range(count):
            lines.mus[k], lines.offsets[k], _ = row_line(
                rows, i, lines.points[k], lines.mus[k], ball, model
            )
        start_score = worst_score_of(
            rows.points[i], pick(rows.coef, i), pick(rows.intercept, i), ball
        )
        lower_bound[i] = price_bound_under_lines(
            goal.loss, goal.level, start_score, lines.mus, lines.offsets, count
        )
