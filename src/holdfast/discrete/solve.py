"""The exact answer to a problem with discrete parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.answer import best_found, make_result
from holdfast.discrete.checks import check_goal, check_problem
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Batch, FoundRows, Limits
from holdfast.discrete.run import few_nodes, make_batch, run_search
from holdfast.discrete.sizes import reachable_radii
from holdfast.machinery.numbers import Floats, check_count, check_positive
from holdfast.machinery.threads import thread_count
from holdfast.problem.costs import scaled
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, FOUND, LIMIT
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import GAP_TOLERANCE

_USUAL = Limits()
_NOBODY = np.empty(0, dtype=np.int64)


def solve_discrete(
    problem: DiscreteProblem,
    *,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    tolerance: float = GAP_TOLERANCE,
    max_nodes: int = _USUAL.nodes,
    reachable: bool = True,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Find the optimal robust recourse of every row, categories and whole numbers included.

    Parameters
    ----------
    problem : DiscreteProblem
    cost_weight, guarantee : float
        Exactly one of them, as in `holdfast.solve`. A cost weight needs a convex loss.
    tolerance : float
        A row is optimal when its gap is at most ``tolerance * (1 + price)``; for a guarantee,
        ``tolerance * (cost + the least cost of a unit of score)``.
    max_nodes : int
        Where a row's search is stopped; its status is then GAP_OPEN, with a recourse or without.
    reachable : bool
        Whether to work out what people who cannot be helped could have instead. That takes many
        more searches, which also check once more that they cannot be.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, uses all processors. The answer does not depend on it.

    Returns
    -------
    RecourseResult

    Examples
    --------
    Income in whole thousands, and a job that can be one of two:

    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, Group, solve_discrete
    >>> base = RecourseProblem.build(
    ...     [[20.0, 1.0, 0.0]], [0.1, -1.0, 0.5], -3.0, robust_to=NormBall(p=1, radius=0.01)
    ... )
    >>> job = Group(np.array([1, 2]), np.eye(2))
    >>> problem = DiscreteProblem(
    ...     base,
    ...     step=np.array([[1.0, 0.0, 0.0]]),
    ...     anchor=np.zeros((1, 3)),
    ...     groups=[job],
    ...     current=np.array([[0]]),
    ...     level_costs=[np.array([[0.0, 4.0]])],
    ... )
    >>> answer = solve_discrete(problem, guarantee=0.5)
    >>> answer.recourse, answer.levels, answer.cost
    (array([[28.,  0.,  1.]]), array([[1]]), array([12.]))
    >>> str(answer.status[0]), bool(answer.gap[0] <= 1e-9)
    ('optimal', True)
    """
    check_positive("tolerance", tolerance, or_zero=True)
    check_count("max_nodes", max_nodes)
    check_problem(problem)
    goal = Goal.of(problem.base.loss, cost_weight=cost_weight, guarantee=guarantee)
    limits = Limits(float(tolerance), max_nodes)
    return answer_discrete(problem, goal, limits, reachable=reachable, n_jobs=n_jobs)


def answer_discrete(
    problem: DiscreteProblem,
    goal: Goal,
    limits: Limits = _USUAL,
    *,
    reachable: bool = True,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Answer a problem that has been checked; as `solve_discrete` for a goal that has been made."""
    workers, tolerance = thread_count(n_jobs), limits.tolerance
    check_goal(problem, goal)
    found = best_found(
        problem, goal, lambda part: _find(part, goal, limits, workers, reachable), tolerance
    )
    return make_result(problem, goal, found, tolerance)


def _find(
    problem: DiscreteProblem, goal: Goal, limits: Limits, workers: int, reachable: bool
) -> Found:
    """Search every row; where that is asked for, say what those without an answer can reach."""
    base = problem.base
    if not reachable:
        return found_of(search_once(problem, goal, limits, workers))
    out, lost, reach, batch = search_everybody(problem, goal, limits, workers)
    validity, radius = np.full(base.n_rows, np.nan), np.full(base.n_rows, np.nan)
    if reach is not None:
        # what is proven, should the search have been stopped: nothing above it can be had
        most = np.minimum(-reach.lower_bound, np.nextafter(goal.amount, -np.inf))
        validity[lost] = base.loss.probability(most)
        if base.robust_to.radius > 0.0 and base.robust_to.has_size:
            radius[lost] = reachable_radii(
                problem, batch, goal.amount, lost, few_nodes(limits), workers
            )
    return found_of(out)._replace(reachable_validity=validity, reachable_radius=radius)


class Searched(NamedTuple):
    """What a search of all rows found, and what those without an answer can reach."""

    out: FoundRows
    lost: NDArray[np.int64]  # the rows for which a guarantee is out of reach
    reach: FoundRows | None  # of these: minus the largest worst-case score; None: there are none
    batch: Batch  # what was searched last


def search_everybody(
    problem: DiscreteProblem, goal: Goal, limits: Limits, threads: int
) -> Searched:
    """Search every row; and those without an answer again, for how much they can reach."""
    batch, exponent = make_batch(problem, goal)

    def search(batch: Batch, which: NDArray[np.int64], limits: Limits) -> FoundRows:
        return run_search(problem, batch, which, limits, threads)

    return search_with_reach(search, batch, problem.base.n_rows, goal, exponent, limits)


def search_once(problem: DiscreteProblem, goal: Goal, limits: Limits, threads: int) -> FoundRows:
    """Search every row."""
    batch, exponent = make_batch(problem, goal)
    rows = np.arange(problem.base.n_rows)
    return in_own_costs(run_search(problem, batch, rows, limits, threads), goal, exponent)


def search_with_reach(
    search: Callable[[Batch, NDArray[np.int64], Limits], FoundRows],
    batch: Batch,
    n: int,
    goal: Goal,
    exponent: NDArray[np.int64],
    limits: Limits,
) -> Searched:
    """Search n rows; where a guarantee is out of reach, search again for how much is within."""
    out = in_own_costs(search(batch, np.arange(n), limits), goal, exponent)
    if not goal.is_guarantee:
        return Searched(out, _NOBODY, None, batch)
    lost = np.flatnonzero((out.outcome == EXHAUSTED) & (out.lower_bound == np.inf))
    if not lost.size:
        return Searched(out, lost, None, batch)
    highest = Goal.highest(goal.loss)
    batch = batch.replaced(goal=highest.numbers(), amounts=highest.amounts(exponent))
    reach = search(batch, lost, few_nodes(limits))
    # should a point reach what was proven to be out of reach, then nothing is proven
    out.lower_bound[lost[-reach.value >= goal.amount]] = 0.0
    return Searched(out, lost, reach, batch)


def in_own_costs(out: FoundRows, goal: Goal, exponent: NDArray[np.int64]) -> FoundRows:
    """Put back the power of 2 that was taken out of costs; prices had it in their weight."""
    if not goal.is_guarantee:
        return out
    value, lower_bound = scaled(out.value, exponent), scaled(out.lower_bound, exponent)
    return out._replace(value=value, lower_bound=lower_bound)


def found_of(out: FoundRows) -> Found:
    """Return what a search found; one that was stopped has what it has."""
    missing = np.isnan(out.recourse[:, 0])
    stopped = np.where(missing, EXHAUSTED, FOUND)
    outcome = np.where(out.outcome == LIMIT, stopped, out.outcome).astype(np.int8)
    return Found(out.recourse, outcome, out.lower_bound, levels=out.levels, nodes=out.nodes)


def largest_reachable_score(problem: DiscreteProblem, *, n_jobs: int | None = -1) -> Floats:
    """Return the largest worst-case score that each row can reach; inf where it has no end.

    NaN for rows that cannot be used, and for those whose search was given up: what it has found by
    then need not be the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, largest_reachable_score
    >>> base = RecourseProblem.build(
    ...     [[0.0]], [1.0], -3.0, robust_to=NormBall(p=2, radius=0.0), bounds=([0.0], [2.6])
    ... )
    >>> whole = DiscreteProblem(
    ...     base, np.ones((1, 1)), np.zeros((1, 1)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> largest_reachable_score(whole)
    array([-1.])
    """
    check_problem(problem)
    which, goal = np.arange(problem.base.n_rows), Goal.highest(problem.base.loss)
    limits, threads = few_nodes(_USUAL), thread_count(n_jobs)
    scores = []
    for part in problem.covers():
        batch, _ = make_batch(part, goal)
        out = run_search(part, batch, which, limits, threads)
        scores.append(np.where(out.outcome == LIMIT, np.nan, -out.value))
    return np.asarray(np.max(scores, axis=0))
