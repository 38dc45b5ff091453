"""From question to proven answer: solve every row, and certify it apart from that."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.certificate import price_bound_under_lines, proven_bound, row_line
from holdfast.core import new_answers
from holdfast.core.batch import answer_row, open_row, own_goal, plan_shared
from holdfast.core.kinds import dual_size, new_work
from holdfast.core.nonconvex import Lines, new_lines, search_frontier
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.machinery.structs import Struct
from holdfast.machinery.threads import over_rows
from holdfast.problem.costs import scaled
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import copy_into, pick, worst_score_of
from holdfast.problem.problem import RecourseProblem
from holdfast.result.found import Found
from holdfast.result.prover import Proofs


class Certifier(Struct):
    """What one thread solves and certifies with."""

    work: Any
    coefs: Floats
    intercepts: Floats
    duals: Floats


class SearchCertifier(Struct):
    """The same, for a loss that is not convex."""

    work: Any
    lines: Lines
    coefs: Floats
    intercepts: Floats
    duals: Floats


def solve_and_prove(
    problem: RecourseProblem, goal: Goal, threads: int, *, keep: bool
) -> tuple[Found, Proofs]:
    """Solve and certify every row, in even costs; the models of the proofs only to `keep` them.

    Where the goal is out of reach, the recourse is the point of the largest worst-case score: it
    proves that, and is not meant for people.
    """
    n, d = problem.X.shape
    even, exponent = problem.in_even_costs()
    amounts, asked = goal.amounts(exponent), goal.numbers()
    rows, robust = even.rows(), even.robust_to.numbers(d)
    n_kept = n if keep else 1
    kept = _new_proofs(n, n_kept, d, dual_size(even))
    bound = np.full(n, np.nan)

    def models() -> tuple[Floats, Floats, Floats]:
        own = kept if keep else _new_proofs(0, 1, d, kept.dual.shape[1])  # each thread its own
        return own.coef, own.intercept, own.dual

    answers = new_answers(n, d)
    arguments = (rows, robust, asked, amounts, answers, kept.multiplier, bound)
    if goal.is_guarantee or problem.loss.convex:
        over_rows(
            prove_rows, n, threads, *arguments, private=lambda: Certifier(new_work(even), *models())
        )
    else:

        def buffers() -> SearchCertifier:
            work = new_work(even)
            return SearchCertifier(work, new_lines(d, work.dual.size), *models())

        over_rows(prove_searched, n, threads, *arguments, private=buffers)
    multiplier = scaled(kept.multiplier, exponent)
    if goal.is_guarantee:
        bound = scaled(bound, exponent)
    found = Found(answers.recourse, answers.outcome, bound, multiplier)
    return found, kept._replace(multiplier=multiplier)


def _new_proofs(n: int, n_kept: int, d: int, n_duals: int) -> Proofs:
    unknown = np.full((n_kept, d), np.nan), np.full(n_kept, np.nan)
    return Proofs(np.full(n, np.nan), *unknown, np.full((n_kept, n_duals), np.nan))


@kernel
def prove_rows(private, rows, robust, goal, amounts, answers, multiplier, bound, begin, end):
    """Solve and certify a range of rows, for a guarantee or a price with a convex loss."""
    work, coefs = private.work, private.coefs
    intercepts, duals = private.intercepts, private.duals
    shared = plan_shared(rows, robust, own_goal(goal, amounts, 0), work)
    for i in range(begin, end):
        own = own_goal(goal, amounts, i)
        if answer_row(rows, i, robust, own, shared, work, answers):
            multiplier[i], intercept, bound[i] = proven_bound(
                own,
                answers.multiplier[i],
                rows,
                i,
                answers.recourse[i],
                robust,
                work.dual,
                pick(coefs, i),
            )
            intercepts[min(i, intercepts.size - 1)] = intercept
            copy_into(pick(duals, i), work.dual)


@kernel
def prove_searched(private, rows, robust, goal, amounts, answers, multiplier, bound, begin, end):
    """Solve and certify together: of the many lines of such a proof the answer's own is kept."""
    work, lines, coefs = private.work, private.lines, private.coefs
    intercepts, duals = private.intercepts, private.duals
    for i in range(begin, end):
        own = own_goal(goal, amounts, i)
        if not open_row(rows, own.amount, robust, answers, i, work):
            continue
        model = pick(coefs, i)
        count, mu = search_frontier(
            rows, i, robust, goal.loss, own.amount, work, lines, answers.recourse[i]
        )
        for k in range(count):
            lines.mus[k], lines.offsets[k], _ = row_line(
                rows, i, lines.points[k], lines.mus[k], robust, lines.duals[k], model
            )
        start_score = worst_score_of(
            rows.start[i], pick(rows.coef, i), pick(rows.intercept, i), robust
        )
        bound[i] = price_bound_under_lines(
            goal.loss, own.amount, start_score, lines.mus, lines.offsets, count
        )
        multiplier[i], _, intercept = row_line(
            rows, i, answers.recourse[i], mu, robust, work.dual, model
        )
        intercepts[min(i, intercepts.size - 1)] = intercept
        copy_into(pick(duals, i), work.dual)
