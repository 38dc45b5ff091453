"""The cost of every guarantee: with whole numbers and categories, a staircase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast._numbers import Floats, check_count
from holdfast.actions import Compiled
from holdfast.discrete import DiscreteAnswer, DiscreteProblem, largest_reachable_score
from holdfast.recommend.features import take_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Solve = Callable[[DiscreteProblem, float], DiscreteAnswer]

# Where there is no end, the curve is drawn up to this probability.
_HIGHEST = 0.99


@dataclass(frozen=True, eq=False)
class Staircase:
    """Least cost at which a person has each worst-case probability.

    Attributes
    ----------
    guarantee : array
        Probabilities that every model of the ball must give.
    cost : array
        Least cost of each.
    worst_case_validity : array
        What the recourse of that cost really has: with steps, often more than was asked for.
    """

    guarantee: Floats
    cost: Floats
    worst_case_validity: Floats

    @classmethod
    def of(cls, compiled: Compiled, i: int, points: int, solve: Solve) -> Staircase:
        """Solve for guarantees from what person i has now to the most that can be had."""
        check_count("points", points, least=2)
        alone = take_row(compiled.problem, i)
        base = alone.problem
        if base.loss.link is None:
            raise ValueError(f"the {base.loss.name} loss has no probabilities to draw")
        start = base.ball.worst_score(base.points, base.coef, base.intercept)[0]
        top = min(float(largest_reachable_score(alone)[0]), base.loss.score(_HIGHEST))
        probability = base.loss.probability
        first, last = (float(probability(score)) for score in (start, max(top, start)))
        wanted = np.linspace(max(first, 1e-6), max(last * (1.0 - 1e-9), 2e-6), points)
        answers = [solve(alone, float(guarantee)) for guarantee in wanted]
        cost = np.array([answer.cost[0] for answer in answers])
        had = np.asarray(probability([answer.worst_case_score[0] for answer in answers]))
        there = np.isfinite(cost)  # links may put some of them out of reach
        return cls(wanted[there], cost[there], had[there])

    def plot(self, axes: Axes | None = None) -> Any:
        """Draw cost against the probability that every model of the ball gives."""
        from matplotlib import pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        axes.step(self.cost, self.worst_case_validity, where="post", color="#0072B2", linewidth=1.8)
        axes.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("cost of the change")
        axes.set_ylabel("probability under the worst model")
        return axes
