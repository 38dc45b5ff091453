"""The slider for the size of the set of models: where it can stand, and what is said there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.numerals import below
from holdfast.report.sketch import round_step

if TYPE_CHECKING:
    from holdfast.recommend.sizes import SizeCurve

_MOST = 80  # places
_PARTS = (100, 50, 40, 25, 20, 10, 8, 5, 4, 2, 1)  # of the usual size, so that it is a place, too


@dataclass(frozen=True)
class Stop:
    """A place where the slider can stand.

    Attributes
    ----------
    radius, cost : float
        The cost is inf where there is no way, and NaN where it is not known.
    is_usual : bool
        Whether it is the size that the server was started with.
    is_exact : bool
        Whether the cost is known there, and not only before and after it.
    """

    radius: float
    cost: float
    is_usual: bool
    is_exact: bool

    @property
    def size(self) -> str:
        """The radius, as it is written."""
        return f"{self.radius:.4g}"


def stops_of(curve: SizeCurve, usual: float, chosen: float) -> list[Stop]:
    """List the places: round steps, where the curve ends, the usual size and the chosen one.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.recommend.sizes import SizeCurve
    >>> ends = np.array([0.0, 0.2]), np.array([1.0, 3.0]), np.array([0.2, 0.5])
    >>> curve = SizeCurve(*ends, np.array([False, True]), asked=0.25)
    >>> stops = stops_of(curve, usual=0.25, chosen=0.25)
    >>> [(stop.size, stop.cost) for stop in stops if stop.is_usual], len(stops)
    ([('0.25', 3.0)], 81)
    """
    end = curve.end
    if not math.isfinite(end):
        return []
    parts = max((n for n in _PARTS if n * end <= _MOST * usual), default=0) if usual else 0
    step = usual / parts if parts else round_step(max(end, usual, 1e-300) / (_MOST / 2))
    count = math.floor(end / step * (1.0 + 1e-12))
    radii = {float(f"{k * step:.12g}") for k in range(count + 1) if k != parts}
    radii |= {usual, chosen, float(below(end, 4))}
    return [
        Stop(radius, curve.cost_at(radius), radius == usual, _is_exact(curve, radius))
        for radius in sorted(radii)
    ]


def _is_exact(curve: SizeCurve, radius: float) -> bool:
    """Whether a radius does not lie between two samples of a curve that has no steps there."""
    k = int(np.searchsorted(curve.holds_to, radius))
    if k in (0, len(curve.holds_to)) or curve.is_step[k]:
        return True
    return bool(radius >= curve.radius[k])
