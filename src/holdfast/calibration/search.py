"""The smallest radius at which enough recourses survive in enough worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.calibration.advice import Adviser
from holdfast.calibration.families import Family
from holdfast.calibration.worlds import Worlds, low_survival, most_short
from holdfast.machinery.numbers import Floats

_CLOSE = 1.05  # radii that differ by less are alike
_MOST_TRIES = 14
_FIRST = 0.1  # where nothing suggests a radius to begin with
_STEP = 1.15  # a radius that fails is followed by one larger by this, or by more
# Where so few of those helped at radius 0 still are, a larger radius says nothing any more.
_FEW = 0.1


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of everybody in all worlds at one radius.

    Attributes
    ----------
    radius : float
    survival : (m,) array
        Share of recourses that survive in each world; NaN where nobody has one.
    helped : float
        Share of the people denied in their world who have a recourse.
    needed : (m,) array
        A guess of the radius that each world needs, from here.
    """

    radius: float
    survival: Floats
    helped: float
    needed: Floats

    def low(self, confidence: float) -> float:
        """Return what the survival in the next world is at least, so surely."""
        return low_survival(self.survival, confidence)

    @property
    def mean(self) -> float:
        """Mean survival over all worlds."""
        known = self.survival[~np.isnan(self.survival)]
        return float(known.mean()) if known.size else math.nan


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The people who take part in all worlds, and what is wanted of their recourses.

    In each world only those take part whom its own model denies.
    """

    worlds: Worlds
    adviser: Adviser
    people: NDArray[np.int64]
    wanted: float
    confidence: float

    def run(self, family: Family, radius: float) -> Trial:
        """Advise everybody in all worlds with a set of that radius, and let the future come."""
        worlds, cutoff = self.worlds, self.adviser.today.cutoff
        points = self.adviser.points[self.people]
        scores = worlds.todays[:, :-1] @ points.T + worlds.todays[:, -1:]
        world, place = np.nonzero(scores < cutoff)
        models = worlds.todays[world]
        advice = self.adviser(family.make(radius), self.people[place], models)
        found, recourse = advice.found, advice.recourse[advice.found]
        survival = worlds.survival(world[found], recourse, cutoff)
        helped = float(found.mean()) if len(found) else math.nan
        needed = self._needed(family, radius, world[found], recourse, models[found])
        return Trial(radius, survival, helped, needed)

    def _needed(
        self,
        family: Family,
        radius: float,
        world: NDArray[np.int64],
        recourse: Floats,
        models: Floats,
    ) -> Floats:
        """Guess which radius each world needs, as if recourses felt a larger set as this one.

        A recourse is right at the edge of the set: its score is as much above the cutoff as a
        set of this radius can take away. What another model takes away is then a radius.
        """
        worlds, cutoff = self.worlds, self.adviser.today.cutoff
        needed = np.full(len(worlds), np.nan)
        if not len(recourse):
            return needed
        score = np.einsum("ij,ij->i", recourse, models[:, :-1]) + models[:, -1]
        unit = family.make(1.0).worst_score(recourse, models[:, :-1], models[:, -1])
        felt = np.maximum(score - unit, 1e-12)
        after = recourse @ worlds.futures[:, :-1].T + worlds.futures[:, -1]
        radii = radius + (cutoff - after) / felt[:, None]
        follows = worlds.follows[world]
        for k in np.unique(world):
            here = world == k
            needed[k] = np.quantile(radii[here][follows[here]], self.wanted)
        return needed

    def passes(self, trial: Trial) -> bool:
        """Say whether enough worlds reach the wanted survival."""
        # where nobody has advice nobody is let down; `helped` says how many those are
        short = int((trial.survival < self.wanted).sum())
        known = not np.isnan(trial.survival).all()
        return known and short <= most_short(len(trial.survival), self.confidence)

    def guess(self, trial: Trial) -> float:
        """Return the radius that enough worlds seem to need."""
        known = np.sort(trial.needed[~np.isnan(trial.needed)])
        if not known.size:
            return math.nan
        return float(known[len(known) - 1 - max(0, most_short(len(known), self.confidence))])


def smallest_radius(
    rehearsal: Rehearsal, family: Family, at_zero: Trial, above: Trial | None = None
) -> tuple[Trial | None, list[Trial]]:
    """Find a radius that passes, such that one a little smaller does not.

    Survival rises with the radius, but not strictly: people who cannot be helped any more drop
    out, and others change their way. So no radius is believed that was not tried.

    Parameters
    ----------
    rehearsal : Rehearsal
    family : Family
    at_zero : Trial
        What becomes of everybody at radius 0.
    above : Trial, optional
        The radius must be larger than this one, which does not pass.

    Returns
    -------
    passing : Trial or None
        None where no radius passes.
    tried : list of Trial
    """
    failing, passing, wall = (at_zero if above is None else above), None, math.inf
    tried: list[Trial] = []
    if rehearsal.passes(failing):
        return failing, tried
    latest = failing
    for _ in range(_MOST_TRIES):
        radius = _next_radius(failing.radius, passing, wall, rehearsal.guess(latest))
        if radius is None:
            break
        latest = rehearsal.run(family, radius)
        tried.append(latest)
        if not latest.helped > _FEW * at_zero.helped:
            wall, latest = radius, failing
        elif rehearsal.passes(latest):
            passing = latest
        else:
            failing = latest
    return passing, tried


def _next_radius(low: float, passing: Trial | None, wall: float, guess: float) -> float | None:
    """Return the radius to try next, rounded up to three digits; None where that is enough."""
    high = min(wall, math.inf if passing is None else passing.radius)
    if low > 0.0 and high <= _CLOSE * low:
        return None
    if high < math.inf:
        radius = three_digits(math.sqrt(low * high) if low > 0.0 else 0.5 * high)
        return radius if low < radius < high else None
    if not math.isfinite(guess) or guess <= 0.0:
        guess = _FIRST if low == 0.0 else _STEP * low
    return three_digits(max(guess, _STEP * low))


def three_digits(radius: float) -> float:
    """Round up to three significant digits.

    Examples
    --------
    >>> three_digits(0.12341), three_digits(7.0)
    (0.124, 7.0)
    """
    digits = 2 - math.floor(math.log10(radius))
    return float(f"{math.ceil(round(radius * 10.0**digits, 6)) / 10.0**digits:.3g}")
