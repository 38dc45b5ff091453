"""The door for people who have coefficients in hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.core import Answers, largest_radii
from holdfast.core.batch import OUT_OF_BOUNDS
from holdfast.core.row import EXHAUSTED, FOUND
from holdfast.machinery.numbers import Floats, check_kind
from holdfast.machinery.threads import thread_count
from holdfast.problem.ball import NormBall
from holdfast.problem.problem import GUARANTEE, Goal, RecourseProblem
from holdfast.problem.problem import make_goal as make_goal
from holdfast.result.appraisal import Appraisal, answer, appraise
from holdfast.result.result import GAP_TOLERANCE, RecourseResult, Status


def solve(
    X: ArrayLike,
    coef: ArrayLike,
    intercept: ArrayLike = 0.0,
    *,
    robust_to: NormBall,
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
    robust_to : NormBall
        The models that the recourse must withstand.
    cost_weight : float, optional
        Minimise ``worst-case loss + cost_weight * cost``.
    guarantee : float, optional
        Minimise the cost such that every model in the ball gives at least this probability.
    feature_costs : (d,) or (n, d), optional
        Cost of one unit of each feature; ones by default.
    bounds : (lower, upper), optional
        Where each feature may go; each is broadcast to (n, d). Equal bounds mean immutable.
    loss : {"logistic", "probit", "hinge", "squared_hinge", "squared_error"}
        Loss of the score. `squared_error` is ``(1 - probability)**2``: not convex in the score,
        and still solved to the global optimum.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, takes all processors. The answer does not depend on it.

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
    return solve_problem(problem, cost_weight=cost_weight, guarantee=guarantee, n_jobs=n_jobs)


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
    workers = thread_count(n_jobs)
    goal = make_goal(problem, cost_weight, guarantee)
    answers, appraisal = answer(problem, goal, workers)
    return _result(problem, goal, cost_weight, guarantee, answers, appraisal, workers)


def judge(best: RecourseResult, recourse: Floats, n_jobs: int | None = -1) -> RecourseResult:
    """Evaluate recourses that another method found for the problem of `best`, the optimum.

    Cost, price, worst case and gap are computed here; nothing is taken from the method. Rows
    that have no recourse in `best` keep their status; any other that is not finite was not found.
    """
    if recourse.shape != best.recourse_array.shape:
        raise ValueError(
            f"recourses of shape {recourse.shape} for points of {best.recourse_array.shape}"
        )
    recourse = np.where(np.isfinite(recourse).all(axis=1, keepdims=True), recourse, np.nan)
    goal = make_goal(best.problem, best.cost_weight, best.guarantee)
    workers = thread_count(n_jobs)
    answers, known = appraise(best.problem, goal, recourse.copy(), best.lower_bound, workers)
    judged = _result(best.problem, goal, best.cost_weight, best.guarantee, answers, known, workers)
    missing = ~np.isfinite(recourse).all(axis=1)
    judged.status[missing] = best.status[missing]
    lost = missing & np.isfinite(best.recourse_array).all(axis=1)
    judged.status[lost] = Status.NOT_FOUND
    for values in (judged.cost, judged.price, judged.gap):
        values[lost] = np.inf
    return replace(judged, exact=best)


def _result(
    problem: RecourseProblem,
    goal: Goal,
    cost_weight: float | None,
    guarantee: float | None,
    answers: Answers,
    known: Appraisal,
    threads: int,
) -> RecourseResult:
    outcome, recourse = answers.outcome, answers.recourse
    price = known.cost.copy() if goal.mode == GUARANTEE else known.loss + goal.level * known.cost
    proven = is_proven(goal, GAP_TOLERANCE, price, known.lower_bound, known)
    validity = problem.loss.probability(known.worst_score)
    current = problem.loss.probability(known.score)
    reachable = np.full(len(outcome), np.nan)
    radius = np.full(len(outcome), np.nan)
    lost = np.flatnonzero(outcome == EXHAUSTED)
    if lost.size:
        reachable[lost] = validity[lost]
        radius[lost] = largest_radii(problem, goal, lost, threads)
        recourse[lost] = np.nan
        for values in (known.loss, known.worst_score, known.score, validity, current):
            values[lost] = np.nan
        known.cost[lost] = price[lost] = np.inf
    with np.errstate(invalid="ignore"):
        gap = price - known.lower_bound
    gap[lost] = np.where(np.isinf(known.lower_bound[lost]), 0.0, np.inf)
    return RecourseResult(
        problem=problem,
        cost_weight=cost_weight,
        guarantee=guarantee,
        status=statuses_of(goal, outcome, known.lower_bound, proven, known, recourse, problem.X),
        cost=known.cost,
        price=price,
        lower_bound=known.lower_bound,
        gap=gap,
        worst_case_loss=known.loss,
        worst_case_score=known.worst_score,
        worst_case_validity=validity,
        current_validity=current,
        reachable_validity=reachable,
        reachable_radius=radius,
        multiplier=answers.multiplier,
        recourse_array=recourse,
    )


def is_proven(
    goal: Goal,
    tolerance: float,
    price: Floats,
    lower_bound: Floats,
    known: Appraisal,
) -> NDArray[np.bool_]:
    """Say which recourses are proven to be the best: the one promise that every solver keeps.

    The gap is at most ``tolerance * (price + unit)``. The unit is 1 for a price, which a loss is
    measured in; for a guarantee it is the least cost of a unit of score, so that the promise is the
    same in whatever unit costs are given. What rounding can take off the score counts as part
    of the gap, and a guarantee is not proven where it could undo it.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if goal.mode == GUARANTEE:
            above, unit = price, known.unit
            hair = GAP_TOLERANCE * (1.0 + abs(goal.level))
            sure = (known.rounding <= hair) | (known.worst_score - known.rounding >= goal.level)
            sure &= known.worst_score >= goal.level
        else:
            above, unit = known.loss_above + goal.level * known.cost, np.ones(1)
            sure = np.ones(1, dtype=bool)
        most = tolerance * (np.abs(price) + unit)
        closed = (above - lower_bound <= most) & (price - lower_bound >= -most)
        return np.asarray(np.isfinite(price) & sure & closed)


def statuses_of(
    goal: Goal,
    outcome: NDArray[np.int8],
    lower_bound: Floats,
    proven: NDArray[np.bool_],
    known: Appraisal,
    recourse: Floats,
    points: Floats,
) -> NDArray[np.object_]:
    """Say what became of each row; what is not FOUND or EXHAUSTED cannot be used."""
    status = np.empty(len(outcome), dtype=object)
    status[:] = Status.INVALID_INPUT  # np.full would turn it into a plain string
    status[(outcome == FOUND) | (outcome == EXHAUSTED)] = Status.GAP_OPEN
    found = (outcome == FOUND) & proven
    status[found] = Status.OPTIMAL
    if goal.mode != GUARANTEE:
        status[found & (known.score < 0.0)] = Status.STILL_REFUSED
    approved = known.worst_score >= (goal.level if goal.mode == GUARANTEE else 0.0)
    status[found & approved & (recourse == points).all(axis=1)] = Status.ALREADY_VALID
    status[(outcome == EXHAUSTED) & (lower_bound == np.inf)] = Status.INFEASIBLE
    status[outcome == OUT_OF_BOUNDS] = Status.OUT_OF_BOUNDS
    return status
