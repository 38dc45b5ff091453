"""What is asked: the least price at a cost weight, or the least cost of a guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, refuse_number, shown, to_number
from holdfast.problem.costs import scaled
from holdfast.problem.losses import LOGISTIC, Loss

# Cost weights, in the unit of a row's costs, that can be computed with.
_LEAST_AMOUNT = 1e-300
_HAIR = 1e-12  # of a score


class Mode(IntEnum):
    """What is minimised."""

    PRICE = 0  # worst-case loss + cost weight * cost
    GUARANTEE = 1  # the cost of a worst-case score
    REACH = 2  # nothing: the largest worst-case score is asked for


# for kernels, which are compiled once for plain numbers
PRICE = int(Mode.PRICE)
GUARANTEE = int(Mode.GUARANTEE)
REACH = int(Mode.REACH)


class GoalNumbers(NamedTuple):
    """`Goal` as the kernels read it: `amount` is the cost weight, or the target score."""

    mode: int
    loss: int
    amount: float


# A target beyond every score: the core, which knows no REACH, goes to the end. No loss takes part.
ENDLESS = GoalNumbers(GUARANTEE, LOGISTIC, math.inf)


@dataclass(frozen=True)
class Goal:
    """What is asked of a recourse; made once, from `cost_weight` or `guarantee`.

    Attributes
    ----------
    mode : Mode
    loss : Loss
    amount : float
        The cost weight, or the worst-case score to be reached.
    guarantee : float or None
        The probability that was asked for; None for a price, or where a score was asked for.
    cutoff : float
        The score from which on today's model says yes. A guarantee below a threshold that somebody
        set is an error (`Model.check_guarantee`); one below the even chance of a plain classifier
        may end as STILL_REFUSED (`result.status.tell_proven_apart`).

    Examples
    --------
    >>> from holdfast.problem.losses import get_loss
    >>> goal = Goal.of(get_loss("logistic"), guarantee=0.5)
    >>> goal.amount, str(goal)
    (0.0, 'guarantee=0.5')
    >>> str(Goal.of(get_loss("hinge"), cost_weight=0.1))
    'cost_weight=0.1'
    """

    mode: Mode
    loss: Loss
    amount: float
    guarantee: float | None = None
    cutoff: float = 0.0

    @classmethod
    def of(
        cls,
        loss: Loss,
        *,
        cost_weight: float | None = None,
        guarantee: float | None = None,
        cutoff: float = 0.0,
    ) -> Goal:
        """Check the one of the two that is given."""
        if (cost_weight is None) == (guarantee is None):
            raise ValueError(
                f"cost_weight = {shown(cost_weight)} and guarantee = {shown(guarantee)}: "
                "give exactly one of them"
            )
        if guarantee is None:
            goal = cls.of_cost_weight(loss, cost_weight, cutoff)
            if loss.calibration is not None:
                raise ValueError(
                    f"cost_weight = {cost_weight!r}: the probabilities come from a calibrator, "
                    "but a price uses the classifier's own loss; ask for a guarantee instead"
                )
            return goal
        guarantee = check_guarantee(guarantee)
        amount = loss.score(guarantee)
        if amount < cutoff <= amount + _HAIR * (1.0 + abs(amount)):
            amount = cutoff  # a yes is asked for, and a tie may be a no
        return cls(Mode.GUARANTEE, loss, amount, guarantee, cutoff)

    @classmethod
    def of_cost_weight(cls, loss: Loss, cost_weight: Any, cutoff: float = 0.0) -> Goal:
        """Ask for the least price, with the classifier's own loss even where it is calibrated."""
        return cls(Mode.PRICE, loss, check_cost_weight(cost_weight), cutoff=cutoff)

    @classmethod
    def of_score(cls, loss: Loss, score: float, cutoff: float = 0.0) -> Goal:
        """Ask for the least cost of a worst-case score."""
        return cls(Mode.GUARANTEE, loss, float(score), cutoff=cutoff)

    @classmethod
    def highest(cls, loss: Loss, cutoff: float = 0.0) -> Goal:
        """Ask for the largest worst-case score, whatever it costs."""
        return cls(Mode.REACH, loss, 0.0, cutoff=cutoff)

    def asking(self, guarantee: float) -> Goal:
        """Ask the same model for another guarantee.

        Examples
        --------
        >>> from holdfast.problem.losses import get_loss
        >>> goal = Goal.of(get_loss("logistic"), guarantee=0.5, cutoff=-1.0)
        >>> str(goal.asking(0.9)), goal.asking(0.9).cutoff
        ('guarantee=0.9', -1.0)
        """
        return Goal.of(self.loss, guarantee=guarantee, cutoff=self.cutoff)

    def asking_highest(self) -> Goal:
        """Ask the same model for the largest worst-case score, whatever it costs."""
        return Goal.highest(self.loss, self.cutoff)

    @property
    def is_guarantee(self) -> bool:
        """Whether a worst-case score must be reached."""
        return self.mode is Mode.GUARANTEE

    @property
    def target(self) -> float | None:
        """The worst-case score that must be reached; None where none must."""
        return self.amount if self.is_guarantee else None

    @property
    def enough(self) -> float:
        """The worst-case score with which nobody needs to change anything."""
        return self.amount if self.is_guarantee else self.cutoff

    @property
    def cost_weight(self) -> float | None:
        """The cost weight; None where there is none."""
        return self.amount if self.mode is Mode.PRICE else None

    def price(self, cost: Floats, worst_case_loss: Floats) -> Floats:
        """Return what is minimised: without a cost weight, the cost alone."""
        return worst_case_loss + self.amount * cost if self.mode is Mode.PRICE else cost.copy()

    def numbers(self) -> GoalNumbers:
        """Return the goal as the kernels read it."""
        return GoalNumbers(int(self.mode), self.loss.code, self.amount)

    def amounts(self, exponent: NDArray[np.int64]) -> Floats:
        """Return the amount for rows whose costs were divided by ``2**exponent``.

        NaN where a cost weight leaves the range of numbers: such a row cannot be solved.
        """
        if self.mode is not Mode.PRICE:
            return np.array([self.amount])
        amounts = scaled(np.full(exponent.shape, self.amount), exponent)
        amounts[(amounts < _LEAST_AMOUNT) | (amounts > 1.0 / _LEAST_AMOUNT)] = np.nan
        return amounts

    def __str__(self) -> str:
        if self.mode is Mode.PRICE:
            return f"cost_weight={self.amount:g}"
        if self.guarantee is None:
            return f"score={self.amount:g}"
        return f"guarantee={self.guarantee:g}"


def check_cost_weight(value: Any) -> float:
    """Read a cost weight: positive and finite."""
    if not 0.0 < to_number(value) < math.inf:
        refuse_number("cost_weight", value, "a positive, finite number")
    return float(value)


def check_guarantee(value: Any) -> float:
    """Read a probability to be guaranteed: strictly between 0 and 1."""
    number = to_number(value)
    if not 0.0 < number < 1.0:
        hint = f"; did you mean {number / 100.0:.12g}?" if 1.0 < number < 100.0 else ""
        refuse_number("guarantee", value, f"a probability strictly between 0 and 1{hint}")
    return float(value)
