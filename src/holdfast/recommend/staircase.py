"""The cost of every guarantee: with whole numbers and categories, a staircase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast._numbers import Floats, check_count
from holdfast.actions import Compiled
from holdfast.discrete import DiscreteAnswer, DiscreteProblem, largest_reachable_score
from holdfast.recommend.features import take_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Solve = Callable[[DiscreteProblem, float], DiscreteAnswer]

# Where there is no end, the curve is drawn up to this probability.
_HIGHEST = 0.99
# Shares of the whole rise: a step below the first cannot be seen, and is none below the second.
_VISIBLE, _RISE = 1e-3, 1e-9
# For each point that is asked for, so many steps are found exactly; so many that cannot be seen.
_STEPS, _SMALL_STEPS = 8, 2


@dataclass(frozen=True, eq=False)
class Staircase:
    """Least cost at which a person has each worst-case probability: the corners of the curve.

    Attributes
    ----------
    guarantee : array
        Probabilities that every model of the ball must give; from the least that costs as much.
    cost : array
        Least cost of each.
    worst_case_validity : array
        What the recourse of that cost really has: with steps, often more than was asked for.
    is_step : array of bool
        Whether the curve jumps up to this corner from the one before, with nothing in between.
        Elsewhere it is continuous, or its steps are too small to be seen, and corners are samples.
    asked : float
        The guarantee that was asked for; with a cost weight, what it takes to be approved.
    """

    guarantee: Floats
    cost: Floats
    worst_case_validity: Floats
    is_step: NDArray[np.bool_]
    asked: float

    @classmethod
    def of(
        cls, compiled: Compiled, i: int, points: int, solve: Solve, asked: float | None = None
    ) -> Staircase:
        """Walk from what person i has now to the most that can be had.

        From each corner the next one is found exactly: ask for the least guarantee above what is
        reached. Where the curve is continuous, or has too many steps, the walk goes on by a
        ``points``-th of the whole rise.
        """
        check_count("points", points, least=2)
        alone = take_row(compiled.problem, i)
        base = alone.problem
        if base.loss.link is None:
            raise ValueError(f"the {base.loss.name} loss has no probabilities to draw")
        probability = base.loss.probability
        start = base.ball.worst_score(base.points, base.coef, base.intercept)[0]
        top = min(float(largest_reachable_score(alone)[0]), base.loss.score(_HIGHEST))
        first, last = (float(probability(score)) for score in (start, max(top, start)))
        rise = last - first
        left, left_small = _STEPS * points, _SMALL_STEPS * points
        corners = [(first, 0.0, first, False)]
        reached = first
        while reached < last - _RISE * rise:
            wanted = float(np.nextafter(reached, 1.0))
            answer = solve(alone, wanted)
            had = float(probability(answer.worst_case_score[0]))
            small = had - reached < _VISIBLE * rise
            is_step = had - reached >= _RISE * rise and left > 0 and not (small and left_small == 0)
            left, left_small = left - is_step, left_small - (is_step and small)
            if np.isfinite(answer.cost[0]) and not is_step:
                wanted = min(max(reached + rise / (points - 1), wanted), last)
                answer = solve(alone, wanted)
                had = float(probability(answer.worst_case_score[0]))
            if not np.isfinite(answer.cost[0]):  # links, or rounding, put the end out of reach
                break
            reached = max(had, wanted)
            corners.append((wanted, float(answer.cost[0]), had, is_step))
        wanted_all, cost, had_all, steps = (np.array(part) for part in zip(*corners, strict=True))
        cutoff = float(probability(0.0)) if asked is None else asked
        return cls(wanted_all, cost, had_all, steps, cutoff)

    def curve(self) -> tuple[Floats, Floats]:
        """Return the curve to be drawn, from cost to probability: straight lines and right angles.

        Examples
        --------
        >>> import numpy as np
        >>> cost, had = np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.4, 0.5])
        >>> Staircase(had, cost, had, np.array([False, True, False]), asked=0.5).curve()
        (array([0., 1., 1., 2.]), array([0.2, 0.2, 0.4, 0.5]))
        """
        cost, had = [self.cost[0]], [self.worst_case_validity[0]]
        for k in range(1, len(self.cost)):
            if self.is_step[k]:
                cost.append(self.cost[k])
                had.append(had[-1])
            cost.append(self.cost[k])
            had.append(self.worst_case_validity[k])
        return np.array(cost), np.array(had)

    def plot(self, axes: Axes | None = None) -> Any:
        """Draw cost against the probability that every model of the ball gives."""
        from matplotlib import pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        axes.plot(*self.curve(), color="#0072B2", linewidth=1.8)
        axes.axhline(self.asked, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("cost of the change")
        axes.set_ylabel("probability under the worst model")
        return axes
