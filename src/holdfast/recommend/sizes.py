"""The cost of every size of the set of models: how much it costs to be surer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled
from holdfast.discrete.solve import largest_kept_radius
from holdfast.machinery.numbers import Floats
from holdfast.recommend.question import Question
from holdfast.recommend.staircase import Corner, walk
from holdfast.result.result import RecourseResult

if TYPE_CHECKING:
    import pandas as pd

# Where every size can be reached, the curve ends at so many times the size that is asked for.
_FAR = 4.0
_DOUBLINGS = 12  # of the size, until it is out of reach
_SAME = 1e-12  # costs that differ by less, relative to them, are one


class NoSizes(ValueError):
    """The cost of every size cannot be told, for what is asked."""


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """Least cost of what was asked for, at each radius of the set: the corners of the curve.

    It begins at radius 0, plain recourse, and ends at the largest radius at which the guarantee can
    be had; without a corner where not even today's model alone can be satisfied.

    Attributes
    ----------
    radius : array
        The least radius at which each cost must be paid, to a hair.
    cost : array
        Least cost of the guarantee from there on.
    holds_to : array
        Up to which radius the recourse of that cost holds; never below `radius`.
    is_step : array of bool
        Whether the curve jumps up to this corner from the one before, with nothing in between.
        Elsewhere it is continuous, or its steps are too small to be seen, and corners are samples.
    asked : float
        The radius that was asked for.
    """

    radius: Floats
    cost: Floats
    holds_to: Floats
    is_step: NDArray[np.bool_]
    asked: float

    @classmethod
    def of(cls, question: Question, compiled: Compiled, points: int) -> SizeCurve:
        """Walk from today's model alone to the largest set that one person can withstand.

        The recourse that is best at one radius holds up to a radius of its own, since its worst
        score falls in proportion to the radius: so each corner tells where the next one is.
        """
        alone, base = compiled.problem, compiled.problem.problem
        target, asked = question.target, base.robust_to.radius
        assert target is not None
        one = np.zeros(1, dtype=np.int64)

        def answer_at(radius: float) -> RecourseResult:
            models = base.robust_to.with_radius(radius)
            stated = replace(alone, problem=replace(base, robust_to=models))
            return question.solve(stated, compiled.links)

        def ask(radius: float) -> Corner:
            answer = answer_at(radius)
            cost, held = float(answer.cost[0]), radius
            if np.isfinite(cost):
                kept = largest_kept_radius(base, answer.recourse_array, one, target)
                held = max(float(kept[0]), radius)
            return Corner(radius, cost, held, True)

        first = ask(0.0)._replace(is_step=False)
        if not np.isfinite(first.cost):
            none = np.empty(0)
            return cls(none, none, none, none.astype(bool), asked)
        last = _end(answer_at, first.had, asked)
        corners = _merged(walk(first, last, points, ask), last)
        radius, cost, held, steps = (np.array(part) for part in zip(*corners, strict=True))
        return cls(radius, cost, held, steps, asked)

    @property
    def end(self) -> float:
        """The radius at which the curve ends; NaN where it has no corner."""
        return float(self.holds_to[-1]) if len(self.holds_to) else float("nan")

    def cost_at(self, radius: float) -> float:
        """Return the least cost at a radius: between samples on a straight line, inf past the end.

        Examples
        --------
        >>> import numpy as np
        >>> steps = np.array([False, True])
        >>> ends = np.array([0.0, 0.2]), np.array([1.0, 3.0]), np.array([0.2, 0.5])
        >>> curve = SizeCurve(*ends, steps, asked=0.1)
        >>> [curve.cost_at(radius) for radius in (0.0, 0.2, 0.3, 0.6)]
        [1.0, 1.0, 3.0, inf]
        """
        k = int(np.searchsorted(self.holds_to, radius))
        if k == len(self.holds_to):
            return float("inf")
        if k == 0 or self.is_step[k] or radius >= self.radius[k]:
            return float(self.cost[k])
        ends = self.holds_to[k - 1], self.radius[k]
        return float(np.interp(radius, ends, self.cost[k - 1 : k + 1]))

    def curve(self) -> tuple[Floats, Floats]:
        """Return the curve to be drawn, from radius to cost: straight lines and right angles.

        Examples
        --------
        >>> import numpy as np
        >>> steps = np.array([False, True])
        >>> ends = np.array([0.0, 0.2]), np.array([1.0, 3.0]), np.array([0.2, 0.5])
        >>> curve = SizeCurve(*ends, steps, asked=0.1)
        >>> curve.curve()
        (array([0. , 0.2, 0.2, 0.5]), array([1., 1., 3., 3.]))
        """
        radius: list[float] = []
        cost: list[float] = []
        for k in range(len(self.cost)):
            begin = radius[-1] if k and self.is_step[k] else self.radius[k]
            radius += [float(begin), float(self.holds_to[k])]
            cost += [float(self.cost[k])] * 2
        return np.array(radius), np.array(cost)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each corner."""
        import pandas as pd

        names = ("radius", "cost", "holds_to", "is_step")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def _end(answer_at: Callable[[float], RecourseResult], held: float, asked: float) -> float:
    """Return the largest radius that can be reached, or where there is no end a sensible one."""
    far = _FAR * (asked or (held if 0.0 < held < np.inf else 1.0))
    radius = max(far, 2.0 * held) if np.isfinite(held) else far
    for _ in range(_DOUBLINGS):
        answer = answer_at(radius)
        if not np.isfinite(answer.cost[0]):
            most = float(answer.reachable_radius[0])
            return radius if np.isnan(most) else most  # with links it is not known
        radius *= 2.0
    return far


def _merged(corners: list[Corner], last: float) -> list[Corner]:
    """Make one of corners of the same cost: the last of them holds as far as it does."""
    kept: list[Corner] = []
    for corner in corners:
        had = min(corner.had, last)
        if kept and corner.cost <= kept[-1].cost * (1.0 + _SAME):
            kept[-1] = kept[-1]._replace(had=max(had, kept[-1].had))
        else:
            kept.append(corner._replace(had=had))
    return kept
