"""Answers to whole batches, and the trade-off of one person: from cost to worst-case score.

They are in one file because each leads to the other: points of a curve are answers, and an answer
knows the curve that it lies on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.continuous.proof import solve_and_prove
from holdfast.core import largest_radii, largest_score
from holdfast.core.batch import check_row
from holdfast.core.row import Vertices
from holdfast.core.vertices import frontier_vertices
from holdfast.machinery.numbers import check_count, read_floats, refuse_number, to_number
from holdfast.problem.costs import scaled
from holdfast.problem.goal import Goal
from holdfast.problem.losses import get_loss
from holdfast.problem.model_set import ModelSet
from holdfast.problem.outcome import EXHAUSTED, FOUND
from holdfast.problem.problem import RecourseProblem
from holdfast.result.appraisal import appraise
from holdfast.result.prover import Proofs
from holdfast.result.result import RecourseResult
from holdfast.result.words import unusable

if TYPE_CHECKING:
    import pandas as pd


def answer(problem: RecourseProblem, goal: Goal, threads: int) -> RecourseResult:
    """Solve, certify and appraise every row."""
    found, _ = solve_and_prove(problem, goal, threads, keep=False)
    found = found._replace(prover=ContinuousProver())
    known = appraise(problem, goal, found, threads)
    lost = np.flatnonzero(found.outcome == EXHAUSTED)
    if lost.size:
        reachable, radius = (np.full(problem.n_rows, np.nan) for _ in range(2))
        hopeless = lost[found.lower_bound[lost] == np.inf]  # of others nothing is known
        reachable[hopeless] = problem.loss.probability(known.worst_score[hopeless])
        if problem.robust_to.has_size:
            radius[hopeless] = largest_radii(problem, goal.numbers(), hopeless, threads)
        found.recourse[lost] = np.nan  # it was the point that proves how much can be had
        for values in known:
            values[lost] = np.nan
        found = found._replace(reachable_validity=reachable, reachable_radius=radius)
    return RecourseResult.assemble(problem, goal, found, known)


@dataclass(frozen=True)
class ContinuousProver:
    """Proves rows again by solving them again: what `answer` hands in with every result."""

    def prove(self, problem: RecourseProblem, goal: Goal, threads: int) -> Proofs:
        """Return the multiplier and the model that prove the lower bound of each row."""
        return solve_and_prove(problem, goal, threads, keep=True)[1]

    def frontier(self, problem: RecourseProblem, cutoff: float) -> Frontier:
        """Return the curve from cost to worst-case score of a problem of one row."""
        return Frontier(problem, cutoff)


class Frontier:
    """The least cost of every worst-case score that one person can reach.

    For p = 1 and p = inf (and radius 0) it is piecewise linear, and `to_frame` has its breakpoints,
    exactly. For other p it is curved. Whichever point is asked for comes as a `RecourseResult` of
    one row, with its proof.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> frontier = holdfast.frontier([0.0, 2.0], [1.0, -0.5], -1.0, robust_to=ball)
    >>> frontier.at_guarantee(0.5).recourse.round(3)
    array([[2.222, 2.   ]])
    >>> frontier.to_frame()[["worst_case_score", "cost"]].round(3)
       worst_case_score  cost
    0              -2.2   0.0
    1              -0.2   2.0
    """

    def __init__(self, problem: RecourseProblem, cutoff: float = 0.0) -> None:
        if problem.n_rows != 1:
            raise ValueError(f"a frontier is for one person, but x has {problem.n_rows} rows")
        self.problem, self._cutoff = problem, cutoff  # from which today's model says yes
        self._even, self._exponent = problem.in_even_costs()
        rows = self._even.rows()
        outcome = check_row(
            rows.start[0],
            rows.coef[0],
            rows.intercept[0],
            rows.cost[0],
            rows.lower[0],
            rows.upper[0],
        )
        if outcome != FOUND:
            raise ValueError(f"this point has no frontier. {unusable(problem)}")

    def __repr__(self) -> str:
        kind = "curved" if self._vertices is None else _counted(len(self._vertices.scores))
        return (
            f"<Frontier, {kind}, worst-case score from {self.start_score:g} to {self.max_score:g}>"
        )

    @cached_property
    def _vertices(self) -> Vertices | None:
        return frontier_vertices(self._even)  # its costs and multipliers are in even costs

    @property
    def is_piecewise_linear(self) -> bool:
        """Whether it has breakpoints."""
        return self._vertices is not None

    @cached_property
    def start_score(self) -> float:
        """Worst-case score of the point as it is: the beginning of the curve."""
        problem = self.problem
        return float(problem.robust_to.worst_score(problem.X, problem.coef, problem.intercept)[0])

    @cached_property
    def max_score(self) -> float:
        """The largest worst-case score within the bounds; inf where there is no end."""
        if self._vertices is not None:
            return np.inf if self._vertices.ray is not None else float(self._vertices.scores[-1])
        return largest_score(self.problem)

    def to_frame(self) -> pd.DataFrame:
        """Return the breakpoints: score, validity, cost, multiplier beyond it, and recourse."""
        import pandas as pd

        if self._vertices is None:
            raise ValueError(
                f"for {self.problem.robust_to.label} the frontier is curved and has no "
                "breakpoints; use sample()"
            )
        scores, multipliers = self._vertices.scores, np.full(len(self._vertices.scores), np.inf)
        multipliers[: len(self._vertices.multipliers)] = self._vertices.multipliers
        columns = {
            "worst_case_score": scores,
            "worst_case_validity": self.problem.loss.probability(scores),
            "cost": scaled(self._vertices.costs, self._exponent),
            "multiplier": scaled(multipliers, self._exponent),
        }
        for name, values in zip(self.problem.names, self._vertices.points.T, strict=True):
            columns[f"recourse.{name}"] = values
        return pd.DataFrame(columns)

    def at_score(self, score: float) -> RecourseResult:
        """Return the cheapest recourse with at least this worst-case score: a result of one row."""
        if not np.isfinite(to_number(score)):
            refuse_number("score", score, "a finite number")
        goal = Goal.of_score(self.problem.loss, score, self._cutoff)
        return answer(self.problem, goal, 1)

    def at_guarantee(self, guarantee: float) -> RecourseResult:
        """Return the cheapest recourse that every model approves with this probability."""
        goal = Goal.of(self.problem.loss, guarantee=guarantee, cutoff=self._cutoff)
        return answer(self.problem, goal, 1)

    def at_cost_weight(self, cost_weight: float, loss: str | None = None) -> RecourseResult:
        """Return the recourse of least price, for any loss."""
        problem = self.problem
        if loss is not None:
            problem = replace(problem, loss=get_loss(loss))
        goal = Goal.of(problem.loss, cost_weight=cost_weight, cutoff=self._cutoff)
        return answer(problem, goal, 1)

    def sample(self, n: int = 200, max_score: float | None = None) -> pd.DataFrame:
        """Return n points of the curve, evenly spaced in score, as a table for drawing.

        It ends at `max_score`; by default where the curve ends, or well inside the approvals
        where it has no end.
        """
        import pandas as pd

        check_count("n", n)
        if max_score is not None and np.isnan(to_number(max_score)):
            refuse_number("max_score", max_score, "a number, or None for the end of the curve")
        end = self.max_score if max_score is None else max_score
        if np.isinf(end):
            end = max(self.start_score, 0.0) + 5.0
        results = [self.at_score(t) for t in np.linspace(self.start_score, end, n)]
        columns = ("worst_case_score", "worst_case_validity", "cost", "multiplier")
        return pd.DataFrame(
            {name: [float(getattr(each, name)[0]) for each in results] for name in columns}
        )


def frontier(
    x: Any,
    coef: ArrayLike,
    intercept: float = 0.0,
    *,
    robust_to: ModelSet,
    feature_costs: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str = "logistic",
) -> Frontier:
    """Return the frontier of one point; the other arguments are those of `holdfast.solve`.

    Parameters
    ----------
    x : (d,) array, series, or data frame of one row
        Names are kept, and what is given by name is aligned with them.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=2, radius=0.1)
    >>> curve = holdfast.frontier([0.0, 2.0], [1.0, -0.5], -1.0, robust_to=ball)
    >>> curve
    <Frontier, curved, worst-case score from -2.22361 to inf>
    >>> curve.at_cost_weight(0.1).recourse.round(3)
    array([[4.604, 2.   ]])
    """
    if hasattr(x, "to_frame") and not hasattr(x, "columns"):  # a pandas series
        x = x.to_frame().T.infer_objects()
    elif not hasattr(x, "columns"):
        x = np.atleast_2d(read_floats("x", x if x is not None else []))
    problem = RecourseProblem.build(
        x,
        coef,
        intercept,
        robust_to=robust_to,
        feature_costs=feature_costs,
        bounds=bounds,
        loss=loss,
    )
    return Frontier(problem)


def _counted(n: int) -> str:
    return f"{n} breakpoint{'s' if n != 1 else ''}"
