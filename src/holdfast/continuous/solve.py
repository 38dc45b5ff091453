"""The door for people who have coefficients in hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from holdfast.continuous.frontier import answer
from holdfast.machinery.numbers import Floats, check_kind, whole_rows
from holdfast.machinery.threads import thread_count
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import ModelSet
from holdfast.problem.outcome import FOUND, NOT_FINITE
from holdfast.problem.problem import RecourseProblem
from holdfast.result.appraisal import appraise
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import Status


def solve(
    X: ArrayLike,
    coef: ArrayLike,
    intercept: ArrayLike = 0.0,
    *,
    robust_to: ModelSet,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    feature_costs: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str = "logistic",
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Find the optimal robust recourse of every point, with a certificate for each.

    The score of a point is ``coef @ x + intercept``; the wanted class has the positive scores.
    Give either `cost_weight` or `guarantee`.

    Parameters
    ----------
    X : (n, d) array or data frame
        The people turned down. Column names are kept.
    coef : (d,) or (n, d)
        One model for all, or one for each row (say, a local linearisation).
    intercept : float or (n,)
    robust_to : NormBall, Ellipsoid or ModelList
        The models that the recourse must withstand.
    cost_weight : float, optional
        Minimise ``worst-case loss + cost_weight * cost``.
    guarantee : float, optional
        Minimise the cost such that every model in the set gives at least this probability.
    feature_costs : (d,) or (n, d), optional
        Cost of one unit of each feature; ones by default.
    bounds : (lower, upper), optional
        Where each feature may go; each is broadcast to (n, d). Equal bounds mean immutable.
    loss : {"logistic", "probit", "hinge", "squared_hinge", "squared_error"}
        Loss of the score. `squared_error` is ``(1 - probability)**2``: not convex in the score,
        and still solved to the global optimum.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, uses all processors. The answer does not depend on it.

    Returns
    -------
    RecourseResult

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> result = holdfast.solve([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball, guarantee=0.5)
    >>> result.recourse.round(3)
    array([[2.222, 2.   ]])
    >>> str(result.status[0]), float(result.cost[0].round(3)), bool(result.gap[0] < 1e-9)
    ('optimal', 2.222, True)
    >>> result = holdfast.solve([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball, cost_weight=0.1)
    >>> float(result.worst_case_validity[0].round(3))
    0.889
    """
    problem = RecourseProblem.build(
        X,
        coef,
        intercept,
        robust_to=robust_to,
        feature_costs=feature_costs,
        bounds=bounds,
        loss=loss,
    )
    goal = Goal.of(problem.loss, cost_weight=cost_weight, guarantee=guarantee)
    return answer(problem, goal, thread_count(n_jobs))


def solve_problem(
    problem: RecourseProblem,
    *,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Solve a problem that has been built already; the arguments are those of `solve`.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=2, radius=0.1)
    >>> X = [[0.0, 2.0]]
    >>> problem = holdfast.problem.RecourseProblem.build(X, [1.0, -0.5], -1.0, robust_to=ball)
    >>> solve_problem(problem, cost_weight=0.1).price.round(3)
    array([0.577])
    """
    check_kind("problem", problem, RecourseProblem, "make it with RecourseProblem.build")
    goal = Goal.of(problem.loss, cost_weight=cost_weight, guarantee=guarantee)
    return answer(problem, goal, thread_count(n_jobs))


def judge(best: RecourseResult, recourse: Floats, n_jobs: int | None = -1) -> RecourseResult:
    """Evaluate recourses that another method found for the problem of `best`, the optimum.

    Cost, price, worst case and gap are computed here; nothing is taken from the method. Rows
    that have no recourse in `best` keep their status; any other that is not finite was not found.
    """
    if recourse.shape != best.recourse_array.shape:
        raise ValueError(
            f"recourses of shape {recourse.shape} for points of {best.recourse_array.shape}"
        )
    there = whole_rows(recourse)
    recourse = np.where(there[:, None], recourse, np.nan)
    outcome = np.where(there, FOUND, NOT_FINITE).astype(np.int8)
    found = Found(recourse, outcome, best.lower_bound.copy(), prover=best.prover)
    known = appraise(best.problem, best.goal, found, thread_count(n_jobs))
    judged = RecourseResult.assemble(best.problem, best.goal, found, known)
    judged.status[~there] = best.status[~there]
    lost = ~there & best.has_recourse
    judged.status[lost] = Status.NOT_FOUND
    for values in (judged.cost, judged.price, judged.gap):
        values[lost] = np.inf
    return replace(judged, exact=best)
