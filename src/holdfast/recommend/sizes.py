"""The cost of every size of the set of models: how much it costs to be surer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Posed
from holdfast.discrete.sizes import answer_sizes, largest_kept_radius, largest_size
from holdfast.machinery.numbers import Floats
from holdfast.recommend.question import Question
from holdfast.recommend.staircase import Corner, refine_corners, walk_corners

if TYPE_CHECKING:
    import pandas as pd

# The curve goes no further than so many times the size that is asked for.
_FAR = 4.0
_LOOKS = 8  # along the way, to see how far it can be had
_DOUBLINGS = 12  # with links: of the size, until it is out of reach
_SAME = 1e-12  # costs that differ by less, relative to them, are one
_LINKED_POINTS, _END = 10, 1e-3  # with links: of the curve at most, and of the end's radius
_NEAR = 1e-6  # of the end, relative to it
_GIVEN_UP = "the search for the lowest cost was stopped: there are too many combinations to try"


class NoSizes(ValueError):
    """No curve of sizes can be drawn for this question."""


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """Least cost of what was asked for, at each radius of the set: the corners of the curve.

    It begins at radius 0, plain recourse, and ends at the largest radius at which the guarantee can
    be had, or at four times the radius that was asked for; without a corner where not even today's
    model alone can be satisfied.

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
    has_end : bool
        Whether nothing can be had beyond its end; else nobody has looked there.
    """

    radius: Floats
    cost: Floats
    holds_to: Floats
    is_step: NDArray[np.bool_]
    asked: float
    has_end: bool = True

    @classmethod
    def of(
        cls, question: Question, posed: Posed, n_points: int, at_least: float = 0.0
    ) -> SizeCurve:
        """Go from today's model alone to the largest set that one person can withstand.

        The recourse that is best at one radius holds up to a radius of its own, since its worst
        score falls in proportion to the radius: so each corner tells where the next one is. Where
        it has no end, it goes at least as far as is said.
        """
        asked = posed.problem.base.robust_to.radius
        corners = _linked_corners if len(posed.links.matrix) else _corners
        found, has_end = corners(question, posed, n_points, max(asked, at_least))
        if not found:
            none = np.empty(0)
            return cls(none, none, none, none.astype(bool), asked)
        radius, cost, held, steps = (np.array(values) for values in zip(*found, strict=True))
        return cls(radius, cost, held, steps, asked, has_end)

    @property
    def end(self) -> float:
        """The radius at which the curve ends; NaN where it has no corner."""
        return float(self.holds_to[-1]) if len(self.holds_to) else float("nan")

    def cost_at(self, radius: float) -> float:
        """Return the least cost at a radius: between samples on a straight line, inf past the end.

        Past a curve that has no end, it is NaN: nobody has looked there.

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
            return float("inf" if self.has_end else "nan")
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


def _corners(
    question: Question, posed: Posed, n_points: int, size: float
) -> tuple[list[Corner], bool]:
    """Find the corners of the curve of one person, many at once; none where there is no way.

    And whether the last of them is the end.
    """
    alone, goal, n_jobs = posed.problem, question.goal, question.n_jobs

    def ask(radii: Floats) -> tuple[Floats, Floats]:
        return answer_sizes(alone, goal, radii, n_jobs=n_jobs)

    cost, held = (float(values[0]) for values in ask(np.zeros(1)))
    if np.isnan(cost):
        raise NoSizes(_GIVEN_UP)
    if not np.isfinite(cost):
        return [], True
    radii = _far(size, held) * np.arange(1, _LOOKS + 1) / _LOOKS
    costs = ask(radii)[0]
    known = int(np.argmin(np.append(np.isfinite(costs), False)))  # how many, from the first on
    has_end = bool(known < _LOOKS and costs[known] == np.inf)
    if has_end:
        last = largest_size(alone, goal, float(radii[known]), n_jobs=n_jobs)
    else:
        last = float(radii[known - 1] if known else min(held, radii[0]))
    found = refine_corners(Corner(0.0, cost, held, False), last, n_points, ask)
    if found[-1].had < last * (1.0 - _NEAR):
        raise NoSizes(_GIVEN_UP)
    return [corner._replace(had=min(corner.had, last)) for corner in found], has_end


def _linked_corners(
    question: Question, posed: Posed, n_points: int, size: float
) -> tuple[list[Corner], bool]:
    """Walk from corner to corner: linked features take a solver that answers one at a time."""
    alone, base = posed.problem, posed.problem.base
    one, target = np.zeros(1, dtype=np.int64), question.goal.amount

    def ask(radius: float) -> Corner:
        models = base.robust_to.with_radius(radius)
        stated = replace(alone, base=replace(base, robust_to=models))
        answer = question.solve(stated, posed.links)
        cost, held = float(answer.cost[0]), radius
        if np.isfinite(cost):
            kept = largest_kept_radius(base, answer.recourse_array, one, target)
            held = max(float(kept[0]), radius)
        return Corner(radius, cost, held, True)

    first = ask(0.0)._replace(is_step=False)
    if not np.isfinite(first.cost):
        return [], True
    last, beyond = _linked_end(ask, first, _far(size, first.had))
    corners = walk_corners(first, last, min(n_points, _LINKED_POINTS), ask)
    return _merged(corners, beyond), beyond > last


def _far(size: float, held: float) -> float:
    """Return where a curve without an end is left."""
    return _FAR * (size or (held if 0.0 < held < np.inf else 1.0))


def _linked_end(ask: Callable[[float], Corner], first: Corner, far: float) -> tuple[float, float]:
    """Return a radius that can be reached and one that cannot, near to each other.

    Where there is no end, both are the one at which the curve is left.
    """
    low, high = first.had, max(far, 2.0 * first.had) if np.isfinite(first.had) else far
    for _ in range(_DOUBLINGS):
        found = ask(high)
        if not np.isfinite(found.cost):
            break
        low, high = found.had, 2.0 * max(high, found.had)
    else:
        return far, far
    while high - low > _END * high:
        middle = 0.5 * (low + high)
        found = ask(middle)
        low, high = (found.had, high) if np.isfinite(found.cost) else (low, middle)
    return low * (1.0 - _END * 1e-6), high


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
