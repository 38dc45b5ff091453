"""Discrete problems whose columns are linked.

Links couple features, so that the separable bounds of the search do not hold. They hold without the
links: that answer is the best of all where it keeps them, as it mostly does. Otherwise linked
features are made one where that is possible (`parts`), or split, with a toll on breaking the link
(`boxes`); what is left goes to HiGHS (`cuts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.answer import best_found, chosen_levels, make_result
from holdfast.discrete.boxes import Best, solve_parts
from holdfast.discrete.checks import check_goal, check_problem
from holdfast.discrete.cuts import solve_cuts
from holdfast.discrete.parts import Link
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.row_search import MOST_NODES
from holdfast.discrete.rows import Limits
from holdfast.discrete.solve import answer_discrete, found_of, search_everybody
from holdfast.machinery.numbers import Floats, check_kind, check_positive, read_floats
from holdfast.machinery.threads import thread_count
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, FOUND
from holdfast.result.appraisal import score_roundings
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import GAP_TOLERANCE, Status


@dataclass(frozen=True, eq=False)
class Links:
    """Rows ``lower <= matrix @ x <= upper`` between encoded columns.

    Attributes
    ----------
    matrix : (L, d) array
        Shared by all rows.
    lower, upper : (1, L) or (n, L) arrays

    Examples
    --------
    >>> import numpy as np
    >>> Links(np.array([[1.0, -1.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf)).matrix.shape
    (1, 2)
    """

    matrix: Floats
    lower: Floats
    upper: Floats

    def take(self, rows: NDArray[np.int64]) -> Links:
        """Return the links of some rows; a row may be taken several times."""
        lower, upper = (ends[rows] if len(ends) > 1 else ends for ends in (self.lower, self.upper))
        return Links(self.matrix, lower, upper)


def solve_linked(
    problem: DiscreteProblem,
    links: Links,
    *,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    tolerance: float = GAP_TOLERANCE,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Find the optimal robust recourse of every row under linear links between its columns.

    Parameters
    ----------
    problem : DiscreteProblem
    links : Links
        They hold to 1e-9, relative to their terms. Staying as one is, is allowed only if they
        hold there.
    cost_weight, guarantee : float
        As in `solve_discrete`.
    tolerance : float
        As in `solve_discrete`. HiGHS cannot always prove so much; such rows are GAP_OPEN.
    n_jobs : int, optional
        As in scikit-learn, for what is solved without links; rows whose links matter are solved
        one by one. The answer does not depend on it.

    Returns
    -------
    RecourseResult
        Points keep the links to 1e-9 of their terms, which is much where these are huge;
        `lower_bound` is about points that keep them exactly: an optimal row is no dearer than any
        of these. `nodes` counts the nodes of all searches, and the rounds of HiGHS. What an
        infeasible row could reach is not worked out (NaN), unless there are no links.

    Examples
    --------
    Two whole numbers of which the first is never to exceed the second:

    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, Links, solve_linked
    >>> base = RecourseProblem.build([[0.0, 1.0]], [1.0, 0.1], -3.0, robust_to=NormBall(2, 0.0))
    >>> problem = DiscreteProblem(
    ...     base, np.ones((1, 2)), np.zeros((1, 2)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> links = Links(np.array([[-1.0, 1.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf))
    >>> answer = solve_linked(problem, links, guarantee=0.5)
    >>> answer.recourse, answer.cost
    (array([[3., 3.]]), array([5.]))
    """
    check_positive("tolerance", tolerance, or_zero=True)
    check_problem(problem)
    check_kind("links", links, Links, "make them with holdfast.discrete.Links")
    _check_links(problem, links)
    goal = Goal.of(problem.base.loss, cost_weight=cost_weight, guarantee=guarantee)
    return answer_linked(problem, links, goal, float(tolerance), n_jobs=n_jobs)


def answer_linked(
    problem: DiscreteProblem,
    links: Links,
    goal: Goal,
    tolerance: float = GAP_TOLERANCE,
    *,
    reachable: bool = True,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Answer a problem that has been checked; as `solve_linked` for a goal that has been made.

    Where there are no links, it is answered as `solve_discrete` does.
    """
    if not len(links.matrix):
        limits = Limits(tolerance)
        return answer_discrete(problem, goal, limits, reachable=reachable, n_jobs=n_jobs)
    check_goal(problem, goal)
    threads, answers = thread_count(n_jobs), list[RecourseResult]()

    def find(part: DiscreteProblem) -> Found:
        found, answer = _find(part, links, goal, tolerance, threads)
        answers.append(answer)
        return found

    found = best_found(problem, goal, find, tolerance)
    is_whole = problem.level_changes is None  # the only part is the problem itself
    answer = answers[0] if is_whole else make_result(problem, goal, found, tolerance)
    _check_kept(answer, links)
    return answer


def _find(
    problem: DiscreteProblem, links: Links, goal: Goal, tolerance: float, threads: int
) -> tuple[Found, RecourseResult]:
    """Search every row, in one way after another until its answer keeps its links."""
    found = _unlinked(problem, goal, tolerance, threads)
    is_left = (found.outcome == FOUND) & ~_are_kept(found.recourse, links)
    for i in np.flatnonzero(is_left).tolist():
        row, own, floor = take_row(problem, i), row_links(links, i), float(found.lower_bound[i])
        _write(found, i, solve_parts(row, own, goal, tolerance, floor))
        _distrust(problem, goal, found, i)
    answer = make_result(problem, goal, found, tolerance)
    is_open = np.flatnonzero(answer.status == Status.GAP_OPEN)
    for i in is_open.tolist():
        row, own = take_row(problem, i), row_links(links, i)
        _write(found, i, solve_cuts(row, own, goal, tolerance, _read(found, answer, i)))
        _distrust(problem, goal, found, i)
    return found, make_result(problem, goal, found, tolerance) if is_open.size else answer


def take_row(problem: DiscreteProblem, i: int) -> DiscreteProblem:
    """Return the problem of row i alone, its fixed costs said."""
    return replace(problem, fixed_costs=problem.all_fixed_costs).take(np.array([i]))


def row_links(links: Links, i: int) -> list[Link]:
    """Return the links of row i, but for those that link nothing."""
    lower, upper = (v[i] if len(v) > 1 else v[0] for v in (links.lower, links.upper))
    rows = zip(links.matrix, lower.tolist(), upper.tolist(), strict=True)
    return [Link(*row) for row in rows if row[1] > -np.inf or row[2] < np.inf]


def _unlinked(problem: DiscreteProblem, goal: Goal, tolerance: float, threads: int) -> Found:
    """Solve every row as if there were no links: no answer that keeps them is better."""
    searched = search_everybody(problem, goal, Limits(tolerance, MOST_NODES), threads)
    return found_of(searched.out)


def _write(found: Found, i: int, best: Best) -> None:
    """Note what has been found for row i."""
    assert found.nodes is not None
    levels = chosen_levels(found)
    found.recourse[i], levels[i] = np.nan, -1
    found.outcome[i] = EXHAUSTED
    found.lower_bound[i] = best.bound
    found.nodes[i] += best.nodes
    if best.point is not None:
        found.recourse[i], levels[i] = best.point, best.levels
        found.outcome[i] = FOUND


def _read(found: Found, answer: RecourseResult, i: int) -> Best:
    """Return what is known of row i."""
    point = None if np.isnan(found.recourse[i]).any() else found.recourse[i].copy()
    value = float(answer.price[i])
    return Best(value, float(found.lower_bound[i]), point, chosen_levels(found)[i].copy(), 0)


def _distrust(problem: DiscreteProblem, goal: Goal, found: Found, i: int) -> None:
    """Take a bound back where the score itself is not known well.

    Links, and the rows of HiGHS, are known to a tolerance.
    """
    base = problem.base.row(i)
    point = found.recourse[i : i + 1]
    rough = score_roundings(base, base.X if np.isnan(point).any() else point)
    if rough[0] > GAP_TOLERANCE * (1.0 + abs(goal.target or 0.0)):
        found.lower_bound[i] = 0.0  # neither costs nor losses are below it


def _are_kept(x: Floats, links: Links) -> NDArray[np.bool_]:
    """Say which points keep their links, to the tolerance that is promised."""
    kept, x = np.ones(len(x), dtype=bool), np.nan_to_num(x)
    for coef, lower, upper in zip(links.matrix, links.lower.T, links.upper.T, strict=True):
        kept &= Link(coef, lower, upper).keeps(x)
    return kept


def _check_kept(answer: RecourseResult, links: Links) -> None:
    """Check the links of every recourse."""
    found = ~np.isnan(answer.recourse_array).any(axis=1)  # an infinite one is checked too
    broken = np.flatnonzero(found & ~_are_kept(answer.recourse_array, links))
    if broken.size:
        raise AssertionError(f"row {broken[0]}: a link is broken. This is a bug; please report it")


def _check_links(problem: DiscreteProblem, links: Links) -> None:
    n, d = problem.base.n_rows, problem.base.n_features
    matrix = read_floats("matrix of links", links.matrix)
    shape = matrix.shape
    if len(shape) != 2 or shape[1] != d or not np.isfinite(matrix).all():
        raise ValueError(f"the matrix of links has shape {shape}, expected (L, {d}), all finite")
    nothing = np.flatnonzero(~matrix.any(axis=1))
    if nothing.size:
        raise ValueError(f"row {nothing[0]} of the matrix of links is 0: it links nothing")
    for name in ("lower", "upper"):
        values = read_floats(f"{name} of links", getattr(links, name))
        if np.shape(values) not in ((1, shape[0]), (n, shape[0])) or np.isnan(values).any():
            raise ValueError(
                f"{name} of links has shape {np.shape(values)}, expected (1, {shape[0]}) or "
                f"({n}, {shape[0]}), without NaN"
            )
