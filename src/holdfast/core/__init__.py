"""The exact solvers: balls with p = 1, p = inf and everything between, ellipsoids, lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.batch import Answers, best_score, load_row, radius_rows
from holdfast.core.kinds import new_work
from holdfast.machinery.threads import over_rows
from holdfast.problem.goal import GoalNumbers
from holdfast.problem.problem import RecourseProblem

__all__ = ["Answers", "largest_radii", "largest_score", "new_answers"]


def new_answers(n: int, d: int) -> Answers:
    """Return room for the answers to n rows."""
    return Answers.zeros((n, d), n, n)


def largest_radii(
    problem: RecourseProblem, goal: GoalNumbers, which: NDArray[np.int64], threads: int
) -> NDArray[np.float64]:
    """Return, for rows whose target is out of reach, the largest radius at which it is not.

    NaN where even radius 0 does not help.
    """
    radii = np.empty(which.size)
    problem, _ = problem.in_even_costs()
    arguments = (problem.rows(), problem.robust_to.numbers(problem.n_features), goal, which, radii)
    over_rows(radius_rows, which.size, threads, *arguments, private=lambda: new_work(problem))
    return radii


def largest_score(problem: RecourseProblem) -> float:
    """Return the largest worst-case score that the first row can reach; inf if there is no end."""
    work, rows = new_work(problem), problem.in_even_costs()[0].rows()
    robust = problem.robust_to.numbers(problem.n_features)
    load_row(rows, 0, robust, work)
    return float(best_score(rows.intercept[0], robust, work)[0])
