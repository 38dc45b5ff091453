"""Rehearsals: a model that plays today's, and the models that come after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats


@dataclass(frozen=True, eq=False)
class Worlds:
    """In each world one model plays today's, and others come after it.

    Attributes
    ----------
    todays : (m, d + 1) array
        The model that plays today's in each world: coefficients, the intercept last.
    futures : (k, d + 1) array
        All models that come after one.
    follows : (m, k) array of bool
        Which of these come after which of those.
    """

    todays: Floats
    futures: Floats
    follows: NDArray[np.bool_]

    @classmethod
    def of_resamples(cls, models: Floats) -> Worlds:
        """Let each model play today's in turn, followed by all others.

        Two of them differ as two models of fresh samples do: both are off, each in its own way.
        """
        return cls(models, models, ~np.eye(len(models), dtype=bool))

    @classmethod
    def of_versions(cls, models: Floats) -> Worlds:
        """Let each version be followed by the next one."""
        return cls(models[:-1], models[1:], np.eye(len(models) - 1, dtype=bool))

    def __len__(self) -> int:
        return len(self.todays)

    def take(self, which: slice) -> Worlds:
        """Return some of the worlds."""
        follows = self.follows[which]
        known = follows.any(axis=0)
        return Worlds(self.todays[which], self.futures[known], follows[:, known])

    @property
    def changes(self) -> Floats:
        """How far models are from the mean of those that come after them, world by world."""
        share = self.follows / self.follows.sum(axis=1, keepdims=True)
        return np.asarray(self.todays - share @ self.futures)

    def survival(self, world: NDArray[np.int64], recourse: Floats, cutoff: float) -> Floats:
        """Share of the recourses of each world that the models after it approve; NaN for none.

        Parameters
        ----------
        world : (n,) array of int
            The world that each recourse was made in.
        recourse : (n, d) array
        cutoff : float
            From this score on people are approved.
        """
        approved = (recourse @ self.futures[:, :-1].T + self.futures[:, -1]) >= cutoff
        counts = (approved & self.follows[world]).sum(axis=1) / self.follows.sum(axis=1)[world]
        people = np.bincount(world, minlength=len(self))
        total = np.bincount(world, weights=counts, minlength=len(self))
        unknown = np.full(len(self), np.nan)
        return np.asarray(np.divide(total, people, out=unknown, where=people > 0))


@dataclass(frozen=True, eq=False)
class Truths:
    """What the truth may be, given today's model; and the models that would come from each.

    Today's model is off by as much as a refit is: so the truth is today's model and the error of
    one refit, and a model that comes is the truth and the error of another.

    Attributes
    ----------
    today : (d + 1,) array
    errors : (m, d + 1) array
    """

    today: Floats
    errors: Floats

    @classmethod
    def of_resamples(cls, today: Floats, models: Floats) -> Truths:
        """Take what refits differ by from their mean for their errors."""
        return cls(today, models - models.mean(axis=0))

    def survival(self, recourse: Floats, cutoff: float) -> Floats:
        """Share of the recourses that the models of each truth approve."""
        own = recourse @ self.today[:-1] + self.today[-1]
        moved = recourse @ self.errors[:, :-1].T + self.errors[:, -1]
        approved = [
            np.mean(own[:, None] + moved[:, [k]] + np.delete(moved, k, axis=1) >= cutoff)
            for k in range(len(self.errors))
        ]
        return np.array(approved)


def most_short(m: int, confidence: float) -> int:
    """Return how many of m worlds may fall short, so that the next one does not, so surely.

    If the next world is a draw like these m, it is the worst of all m + 1 with probability
    1 / (m + 1), and so on: no distribution has to be assumed. -1: m worlds cannot say so.

    Examples
    --------
    >>> most_short(50, 0.95), most_short(19, 0.95), most_short(18, 0.95)
    (1, 0, -1)
    """
    return m - math.ceil((m + 1) * confidence - 1e-9)


def low_survival(survival: Floats, confidence: float) -> float:
    """Return what the survival in the next world is at least, so surely.

    A world in which nobody has advice (NaN) lets nobody down.
    """
    short = most_short(len(survival), confidence)
    if short < 0 or np.isnan(survival).all():
        return math.nan
    return float(np.sort(np.where(np.isnan(survival), 1.0, survival))[short])
