"""The whole trade-off of one person: from cost to worst-case score, every answer read off it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.continuous.solve import make_goal
from holdfast.core import largest_score
from holdfast.core.batch import check_row, score_rounding
from holdfast.core.row import FOUND
from holdfast.core.vertices import Vertices, frontier_vertices
from holdfast.machinery.numbers import Floats, check_count, read_floats, refuse, to_number
from holdfast.problem.ball import NormBall, worst_score_of
from holdfast.problem.losses import get_loss
from holdfast.problem.problem import (
    GUARANTEE,
    Goal,
    RecourseProblem,
    check_cost_weight,
    cost_of,
    scaled,
)
from holdfast.result.appraisal import answer
from holdfast.result.result import unusable_message

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FrontierPoint:
    """A point of the frontier: the cheapest recourse with its worst-case score.

    Attributes
    ----------
    worst_case_score, cost : float
    multiplier : float
        Slope of the frontier: what the last bit of worst-case score cost, for a whole unit of it;
        0 at the start. At a breakpoint the next bit costs more.
    recourse : (d,) array

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> point = holdfast.frontier([0.0, 2.0], [1.0, -0.5], -1.0, robust_to=ball).at_score(-1.2)
    >>> round(point.cost, 9), round(point.multiplier, 9)
    (1.0, 1.0)
    """

    worst_case_score: float
    cost: float
    multiplier: float
    recourse: Floats


class Frontier:
    """The least cost of every worst-case score that one person can reach.

    For p = 1 and p = inf (and radius 0) it is piecewise linear, its breakpoints are known exactly,
    and every answer is interpolated between two of them. Between, it is curved, and each answer is
    worked out when it is asked for.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> frontier = holdfast.frontier([0.0, 2.0], [1.0, -0.5], -1.0, robust_to=ball)
    >>> frontier.at_guarantee(0.5).recourse.round(3)
    array([2.222, 2.   ])
    >>> frontier.to_frame()[["worst_case_score", "cost"]].round(3)
       worst_case_score  cost
    0              -2.2   0.0
    1              -0.2   2.0
    """

    def __init__(self, problem: RecourseProblem) -> None:
        if problem.n_rows != 1:
            raise ValueError(f"a frontier is that of one point, not of {problem.n_rows}")
        self.problem = problem
        self._even, self._exponent = problem.in_even_costs()
        rows = self._even.rows()
        outcome = check_row(
            rows.points[0],
            rows.coef[0],
            rows.intercept[0],
            rows.cost[0],
            rows.lower[0],
            rows.upper[0],
        )
        if outcome != FOUND:
            raise ValueError(f"the point has no frontier. {unusable_message(problem)}")

    def __repr__(self) -> str:
        kind = "curved" if self._vertices is None else f"{len(self._vertices.scores)} breakpoints"
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
                f"for p = {self.problem.robust_to.p:g} the frontier is curved and has no "
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

    def at_score(self, score: float) -> FrontierPoint:
        """Return the cheapest recourse with at least this worst-case score."""
        if np.isnan(to_number(score)):
            refuse("score", score, "a number")
        if not score <= self.max_score or score == np.inf:
            raise ValueError(
                f"a worst-case score of {score:.6g} is out of reach: the largest is "
                f"{self.max_score:.6g}, a probability of "
                f"{float(self.problem.loss.probability(self.max_score)):.6g}"
            )
        if score <= self.start_score:
            return FrontierPoint(self.start_score, 0.0, 0.0, self.problem.X[0].copy())
        if self._vertices is None:
            return self._solve(Goal(GUARANTEE, self.problem.loss.code, float(score)))
        return self._read_off(self._vertices, float(score))

    def at_guarantee(self, probability: float) -> FrontierPoint:
        """Return the cheapest recourse that every model of the ball approves with `probability`."""
        return self.at_score(make_goal(self.problem, None, probability).level)

    def at_cost_weight(self, cost_weight: float, loss: str | None = None) -> FrontierPoint:
        """Return the recourse of least price, for any loss."""
        weight = check_cost_weight(cost_weight)
        chosen = self.problem.loss if loss is None else get_loss(loss)
        if self._vertices is None:
            other = Frontier(replace(self.problem, loss=chosen))
            return other._solve(make_goal(other.problem, weight, None))
        vertices, weight = self._vertices, float(scaled(np.array(weight), self._exponent)[0])
        starts = np.append(vertices.scores, np.inf)
        best = (float(chosen.value(self.start_score)), self.start_score)
        for k, multiplier in enumerate(vertices.multipliers):
            low, high = starts[k], starts[k + 1]
            stop = float(chosen.score_at_slope(weight * multiplier))
            for t in {min(max(stop, low), high), high} - {np.inf}:
                cost = vertices.costs[k] + multiplier * (t - low)
                best = min(best, (float(chosen.value(t)) + weight * cost, float(t)))
        return self.at_score(best[1])

    def sample(self, n: int = 200, max_score: float | None = None) -> pd.DataFrame:
        """Return n points of the curve, evenly spaced in score, as a table for drawing.

        It ends at `max_score`; by default where the curve ends, or well inside the approvals
        where it has no end.
        """
        import pandas as pd

        check_count("n", n)
        if max_score is not None and np.isnan(to_number(max_score)):
            refuse("max_score", max_score, "a number, or None for the end of the curve")
        end = self.max_score if max_score is None else max_score
        if np.isinf(end):
            end = max(self.start_score, 0.0) + 5.0
        points = [self.at_score(t) for t in np.linspace(self.start_score, end, n)]
        scores = np.array([point.worst_case_score for point in points])
        return pd.DataFrame(
            {
                "worst_case_score": scores,
                "worst_case_validity": self.problem.loss.probability(scores),
                "cost": [point.cost for point in points],
                "multiplier": [point.multiplier for point in points],
            }
        )

    def _read_off(self, vertices: Vertices, score: float) -> FrontierPoint:
        """Interpolate, a hair above the score, so that rounding does not put it below."""
        last = len(vertices.multipliers) - 1
        k = min(int(np.searchsorted(vertices.scores, score)) - 1, last)
        rows, ball = self.problem.rows(), self.problem.robust_to.numbers(self.problem.n_features)
        point = _between(vertices, k, score)
        point = _between(
            vertices, k, score + score_rounding(point, rows.coef[0], rows.intercept[0], ball)
        )
        reached = worst_score_of(point, rows.coef[0], rows.intercept[0], ball)
        cost = cost_of(point, rows.points[0], rows.cost[0])
        multiplier = scaled(vertices.multipliers[k : k + 1], self._exponent)
        return FrontierPoint(float(reached), float(cost), float(multiplier[0]), point)

    def _solve(self, goal: Goal) -> FrontierPoint:
        answers, known = answer(self.problem, goal, 1)
        return FrontierPoint(
            float(known.worst_score[0]),
            float(known.cost[0]),
            float(answers.multiplier[0]),
            answers.recourse[0],
        )


def frontier(
    point: Any,
    coef: ArrayLike,
    intercept: float = 0.0,
    *,
    robust_to: NormBall,
    feature_costs: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str = "logistic",
) -> Frontier:
    """Return the frontier of one point; the other arguments are those of `holdfast.solve`.

    Parameters
    ----------
    point : (d,) array, series, or data frame of one row
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
    array([4.604, 2.   ])
    """
    if hasattr(point, "to_frame") and not hasattr(point, "columns"):  # a pandas series
        point = point.to_frame().T.infer_objects()
    elif not hasattr(point, "columns"):
        point = np.atleast_2d(read_floats("point", point if point is not None else []))
    problem = RecourseProblem.build(
        point,
        coef,
        intercept,
        robust_to=robust_to,
        feature_costs=feature_costs,
        bounds=bounds,
        loss=loss,
    )
    return Frontier(problem)


def _between(vertices: Vertices, k: int, score: float) -> Floats:
    """Return the point of piece k with this score: pieces are straight in score, cost and point."""
    low = vertices.scores[k]
    if k + 1 < len(vertices.scores):
        share = (score - low) / (vertices.scores[k + 1] - low)
        return np.asarray(
            vertices.points[k] + min(share, 1.0) * (vertices.points[k + 1] - vertices.points[k])
        )
    assert vertices.ray is not None
    return np.asarray(vertices.points[k] + vertices.ray * vertices.multipliers[k] * (score - low))
