"""What is asked: the least price at a cost weight, or the least cost of a guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, refuse, shown, to_number
from holdfast.problem.costs import scaled
from holdfast.problem.losses import Loss

# Cost weights, in the unit of a row's costs, that can be computed with.
_LEAST_LEVEL = 1e-300


class Mode(IntEnum):
    """What is minimised."""

    PRICE = 0  # worst-case loss + cost weight * cost
    GUARANTEE = 1  # the cost of a worst-case score
    REACH = 2  # nothing: the largest worst-case score is asked for


# for kernels, which are compiled once for plain numbers
PRICE, GUARANTEE, REACH = (int(mode) for mode in Mode)


class GoalNumbers(NamedTuple):
    """`Goal` as the kernels read it: `level` is the cost weight, or the target score."""

    mode: int
    loss: int
    level: float


@dataclass(frozen=True)
class Goal:
    """What is asked of a recourse; made once, from `cost_weight` or `guarantee`.

    Attributes
    ----------
    mode : Mode
    loss : Loss
    level : float
        The cost weight, or the worst-case score to be reached.
    guarantee : float or None
        The probability that was asked for; None for a price, or where a score was asked for.

    Examples
    --------
    >>> from holdfast.problem.losses import get_loss
    >>> goal = Goal.of(get_loss("logistic"), guarantee=0.5)
    >>> goal.level, str(goal)
    (0.0, 'guarantee=0.5')
    >>> str(Goal.of(get_loss("hinge"), cost_weight=0.1))
    'cost_weight=0.1'
    """

    mode: Mode
    loss: Loss
    level: float
    guarantee: float | None = None

    @classmethod
    def of(
        cls, loss: Loss, *, cost_weight: float | None = None, guarantee: float | None = None
    ) -> Goal:
        """Check the one of the two that is given."""
        if (cost_weight is None) == (guarantee is None):
            raise ValueError(
                f"cost_weight = {shown(cost_weight)} and guarantee = {shown(guarantee)}: "
                "give exactly one of them"
            )
        if guarantee is None:
            weight = check_cost_weight(cost_weight)
            if loss.calibration is not None:
                raise ValueError(
                    f"cost_weight = {cost_weight!r}: the probabilities are those of a calibrator, "
                    "and a price is that of the classifier's own loss; ask for a guarantee instead"
                )
            return cls(Mode.PRICE, loss, weight)
        guarantee = check_guarantee(guarantee)
        return cls(Mode.GUARANTEE, loss, loss.score(guarantee), guarantee)

    @classmethod
    def of_score(cls, loss: Loss, score: float) -> Goal:
        """Ask for the least cost of a worst-case score."""
        return cls(Mode.GUARANTEE, loss, float(score))

    @classmethod
    def highest(cls, loss: Loss) -> Goal:
        """Ask for the largest worst-case score, whatever it costs."""
        return cls(Mode.REACH, loss, 0.0)

    @property
    def is_guarantee(self) -> bool:
        """Whether a worst-case score must be reached."""
        return self.mode is Mode.GUARANTEE

    @property
    def cost_weight(self) -> float | None:
        """The cost weight; None where there is none."""
        return self.level if self.mode is Mode.PRICE else None

    def price(self, cost: Floats, worst_case_loss: Floats) -> Floats:
        """Return what is minimised: with a guarantee, the cost alone."""
        return cost.copy() if self.is_guarantee else worst_case_loss + self.level * cost

    def numbers(self) -> GoalNumbers:
        """Return the goal as the kernels read it."""
        return GoalNumbers(int(self.mode), self.loss.code, self.level)

    def levels(self, exponent: NDArray[np.int64]) -> Floats:
        """Return the level for rows whose costs were divided by ``2**exponent``.

        NaN where a cost weight leaves the range of numbers: such a row cannot be solved.
        """
        if self.mode is not Mode.PRICE:
            return np.array([self.level])
        levels = scaled(np.full(exponent.shape, self.level), exponent)
        levels[(levels < _LEAST_LEVEL) | (levels > 1.0 / _LEAST_LEVEL)] = np.nan
        return levels

    def __str__(self) -> str:
        if self.mode is Mode.PRICE:
            return f"cost_weight={self.level:g}"
        if self.guarantee is None:
            return f"score={self.level:g}"
        return f"guarantee={self.guarantee:g}"


def check_cost_weight(value: Any) -> float:
    """Read a cost weight: positive and finite."""
    if not 0.0 < to_number(value) < math.inf:
        refuse("cost_weight", value, "a positive, finite number")
    return float(value)


def check_guarantee(value: Any) -> float:
    """Read a probability to be guaranteed: strictly between 0 and 1."""
    if not 0.0 < to_number(value) < 1.0:
        refuse("guarantee", value, "a probability strictly between 0 and 1")
    return float(value)
