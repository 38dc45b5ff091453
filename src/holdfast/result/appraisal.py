"""From question to proven answer: solve every row, appraise it, and certify it apart from that."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.certificate import price_bound_under_lines, proven_bound, row_line
from holdfast.core import Answers, find_answers, new_answers
from holdfast.core.batch import NOT_FINITE, open_row, own_goal, score_rounding
from holdfast.core.bent import new_lines, solve_bent_row
from holdfast.core.kinds import new_work
from holdfast.core.row import FOUND
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import over_rows
from holdfast.problem.ball import pick, score_of, worst_score_of
from holdfast.problem.losses import loss_value
from holdfast.problem.problem import (
    GUARANTEE,
    Goal,
    RecourseProblem,
    cheapest_unit,
    cost_of,
    levels_of,
    scaled,
)


class Appraisal(NamedTuple):
    """What is known about each answer, none of it taken from the solver.

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
    lower_bound: Floats


class Proofs(NamedTuple):
    """The line below the frontier that bounds each row: its multiplier and its model."""

    multiplier: Floats
    coef: Floats
    intercept: Floats


def new_appraisal(n: int) -> Appraisal:
    return Appraisal(*(np.full(n, np.nan) for _ in Appraisal._fields))


def answer(problem: RecourseProblem, goal: Goal, threads: int) -> tuple[Answers, Appraisal]:
    """Solve, certify and appraise every row."""
    n, d = problem.X.shape
    answers, bound, _ = solve_and_prove(problem, goal, threads, keep=False)
    appraisal = new_appraisal(n)._replace(lower_bound=bound)
    numbers = problem.robust_to.numbers(d)
    over_rows(appraise_rows, n, threads, problem.rows(), numbers, goal, answers, appraisal)
    return answers, appraisal


def solve_and_prove(
    problem: RecourseProblem, goal: Goal, threads: int, *, keep: bool
) -> tuple[Answers, Floats, Proofs]:
    """Solve and certify every row, in even costs; the models of the proofs only to `keep` them."""
    n, d = problem.X.shape
    even, exponent = problem.in_even_costs()
    levels = levels_of(goal, exponent)
    rows, ball = even.rows(), even.robust_to.numbers(d)
    n_kept = n if keep else 1
    kept = Proofs(np.full(n, np.nan), np.full((n_kept, d), np.nan), np.full(n_kept, np.nan))
    bound = np.full(n, np.nan)

    def models() -> tuple[Floats, Floats]:
        return (kept.coef, kept.intercept) if keep else (np.empty((1, d)), np.empty(1))

    if goal.mode == GUARANTEE or problem.loss.convex:
        answers = find_answers(even, goal, levels, threads)
        arguments = (rows, ball, goal, levels, answers, kept.multiplier, bound)
        over_rows(certify_rows, n, threads, *arguments, private=models)
    else:
        answers = new_answers(n, d)
        arguments = (rows, ball, goal, levels, answers, kept.multiplier, bound)
        over_rows(
            bent_rows,
            n,
            threads,
            *arguments,
            private=lambda: (new_work(even), new_lines(d), *models()),
        )
    multiplier = scaled(kept.multiplier, exponent)
    if goal.mode == GUARANTEE:
        bound = scaled(bound, exponent)
    return answers._replace(multiplier=multiplier), bound, kept._replace(multiplier=multiplier)


def appraise(
    problem: RecourseProblem, goal: Goal, recourse: Floats, lower_bound: Floats, threads: int
) -> tuple[Answers, Appraisal]:
    """Appraise recourses that somebody else found; rows of NaN have none."""
    n, d = problem.X.shape
    outcome = np.where(np.isnan(recourse).any(axis=1), NOT_FINITE, FOUND).astype(np.int8)
    answers = Answers(recourse, np.full(n, np.nan), outcome)
    appraisal = new_appraisal(n)._replace(lower_bound=lower_bound.copy())
    numbers = problem.robust_to.numbers(d)
    over_rows(appraise_rows, n, threads, problem.rows(), numbers, goal, answers, appraisal)
    return answers, appraisal


def prove(problem: RecourseProblem, goal: Goal) -> Proofs:
    """Return the multiplier and the model that prove the lower bound of each row.

    A row gives the same bits whenever it is solved, so that proofs need not be kept: they are
    worked out again when somebody asks for them.
    """
    return solve_and_prove(problem, goal, 1, keep=True)[2]


def score_roundings(problem: RecourseProblem, points: Floats) -> Floats:
    """Return what rounding can take off the worst-case score of each point."""
    rounding, ball = np.empty(len(points)), problem.robust_to.numbers(problem.n_features)
    write_roundings(problem.rows(), ball, points, rounding)
    return rounding


@kernel
def write_roundings(rows, ball, points, rounding):
    for i in range(rounding.size):
        rounding[i] = score_rounding(points[i], pick(rows.coef, i), pick(rows.intercept, i), ball)


@kernel
def appraise_rows(_, rows, ball, goal, answers, appraisal, begin, end):
    for i in range(begin, end):
        if answers.outcome[i] > 1:
            continue
        x = answers.recourse[i]
        coef, intercept, cost = pick(rows.coef, i), pick(rows.intercept, i), pick(rows.cost, i)
        worst = worst_score_of(x, coef, intercept, ball)
        appraisal.cost[i] = cost_of(x, rows.points[i], cost)
        appraisal.score[i] = score_of(x, coef, intercept)
        appraisal.worst_score[i] = worst
        appraisal.loss[i] = loss_value(goal.loss, worst)
        appraisal.rounding[i] = score_rounding(x, coef, intercept, ball)
        appraisal.loss_above[i] = loss_value(goal.loss, worst - appraisal.rounding[i])
        if goal.mode == GUARANTEE:
            lower, upper = pick(rows.lower, i), pick(rows.upper, i)
            appraisal.unit[i] = cheapest_unit(
                rows.points[i], coef, ball.scale, cost, lower, upper, ball.radius
            )


@kernel
def certify_rows(models, rows, ball, goal, levels, answers, multiplier, bound, begin, end):
    coefs, intercepts = models
    for i in range(begin, end):
        if not math.isnan(answers.multiplier[i]):
            x, own = answers.recourse[i], own_goal(goal, levels, i)
            multiplier[i], intercept, bound[i] = proven_bound(
                own, answers.multiplier[i], rows, i, x, ball, pick(coefs, i)
            )
            intercepts[min(i, intercepts.size - 1)] = intercept


@kernel
def bent_rows(private, rows, ball, goal, levels, answers, multiplier, lower_bound, begin, end):
    """Solve and certify together: of the many lines of such a proof the answer's own is kept."""
    work, lines, coefs, intercepts = private
    for i in range(begin, end):
        own = own_goal(goal, levels, i)
        if not open_row(rows, own.level, answers, i, work):
            continue
        model = pick(coefs, i)
        count, mu = solve_bent_row(
            rows, i, ball, goal.loss, own.level, work, lines, answers.recourse[i]
        )
        for k in range(count):
            lines.mus[k], lines.offsets[k], _ = row_line(
                rows, i, lines.points[k], lines.mus[k], ball, model
            )
        start_score = worst_score_of(
            rows.points[i], pick(rows.coef, i), pick(rows.intercept, i), ball
        )
        lower_bound[i] = price_bound_under_lines(
            goal.loss, own.level, start_score, lines.mus, lines.offsets, count
        )
        multiplier[i], _, intercept = row_line(rows, i, answers.recourse[i], mu, ball, model)
        intercepts[min(i, intercepts.size - 1)] = intercept
