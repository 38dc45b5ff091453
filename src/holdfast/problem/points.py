"""The points of a scorecard: the log-odds of the favourable class in another unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from holdfast.machinery.numbers import Floats, check_positive, refuse_number, to_number
from holdfast.problem.losses import Loss


@dataclass(frozen=True)
class Points:
    """The scale of a scorecard: the points at given odds, and how many more double the odds.

    Odds are those of the favourable class against the other one: good to bad, where the good ones
    are approved. So points rise with the chance of approval. Where a lender's points rise with the
    risk, write them with a minus sign: -600 points at odds of 50:1, and 20 more double the odds.

    Parameters
    ----------
    points : float
        The points of somebody with those odds.
    odds : float
        Probability of the favourable class over that of the other one, such as 50 for 50:1.
    double : float
        How many more points double the odds.

    Examples
    --------
    600 points at odds of 50:1, and 20 points double the odds:

    >>> import math
    >>> import holdfast
    >>> scale = holdfast.Points(600, odds=50, double=20)
    >>> [float(scale.of(math.log(odds)).round(9)) for odds in (50, 100, 25)]
    [600.0, 620.0, 580.0]
    """

    points: float
    odds: float
    double: float

    def __post_init__(self) -> None:
        if not math.isfinite(to_number(self.points)):
            refuse_number("points", self.points, "a finite number")
        check_positive("odds", self.odds)
        check_positive("double", self.double)

    @property
    def factor(self) -> float:
        """Points of a unit of log-odds."""
        return self.double / math.log(2.0)

    @property
    def offset(self) -> float:
        """Points at even odds."""
        return self.points - self.factor * math.log(self.odds)

    def of(self, log_odds: ArrayLike) -> Floats:
        """Points at each of the log-odds."""
        return np.asarray(self.offset + self.factor * np.asarray(log_odds, dtype=np.float64))

    def at(self, loss: Loss, score: ArrayLike) -> Floats:
        """Points at each score of a model; refused where scores are not log-odds."""
        slope, shift = _log_odds(loss)
        return self.of(slope * np.asarray(score, dtype=np.float64) + shift)

    def score(self, loss: Loss, points: float) -> float:
        """Return the lowest score of a model that has at least that many points."""
        slope, shift = _log_odds(loss)
        if not math.isfinite(to_number(points)):
            refuse_number("guarantee_points", points, "a finite number of points")
        score = ((float(points) - self.offset) / self.factor - shift) / slope
        step = float(np.spacing(abs(score)))
        while float(self.at(loss, score)) < points:  # short by rounding
            score, step = score + step, 2.0 * step
        return score


def _log_odds(loss: Loss) -> tuple[float, float]:
    if loss.log_odds is None:
        if loss.calibration is not None:
            why = "those of these calibrated probabilities are not linear in the score"
        elif loss.link is None:
            why = f"the {loss.name} loss has none: its score is a margin"
        else:
            why = f"those of the {loss.link} link are not linear in the score"
        raise ValueError(
            f"points are log-odds in another unit, but {why}; ask for a guarantee instead"
        )
    return loss.log_odds
