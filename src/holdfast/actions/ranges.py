"""Where a number may go, for each person: raw bounds and lattice, and the same in encoded units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding import Number

# Bounds of lattices are moved out by this share of a step, so that rounding excludes no point.
PAD = 1e-6


@dataclass(frozen=True, eq=False)
class Range:
    """Where a number may go, in raw units; arrays have one entry for each person.

    With ``step > 0`` it may become ``step * k`` for whole k, within the bounds, or stay. The
    person's own value is ``step * count`` where it is `on_grid`, and above that elsewhere.
    """

    value: Floats
    lower: Floats
    upper: Floats
    step: float
    count: Floats
    on_grid: NDArray[np.bool_]

    def take(self, rows: NDArray[np.int64]) -> Range:
        """Return the range of some people."""
        parts = {name: getattr(self, name)[rows] for name in vars(self) if name != "step"}
        return Range(step=self.step, **parts)


@dataclass(frozen=True, eq=False)
class EncodedRange:
    """The same for the encoded column; arrays have one entry for each person."""

    lower: Floats
    upper: Floats
    step: float
    anchor: Floats


def range_of(feature: NumberFeature, value: Floats) -> Range:
    """Where each person's number may go; the person's own value is always within."""
    lowest = [end for end in (feature.lower, feature.possible_lower) if end is not None]
    highest = [end for end in (feature.upper, feature.possible_upper) if end is not None]
    lower = np.full_like(value, max(lowest, default=-np.inf))
    upper = np.full_like(value, min(highest, default=np.inf))
    if feature.max_decrease is not None:
        lower = np.maximum(lower, value - feature.max_decrease)
    if feature.max_increase is not None:
        upper = np.minimum(upper, value + feature.max_increase)
    lower, upper = np.minimum(lower, value), np.maximum(upper, value)
    if feature.stays or feature.direction == "up":
        lower = value
    if feature.stays or feature.direction == "down":
        upper = value
    if feature.grid == 0.0:
        return Range(value, lower, upper, 0.0, value, np.zeros(value.shape, dtype=bool))
    steps = value / feature.grid
    on_grid = np.abs(steps - np.round(steps)) <= _blur(steps)
    count = np.where(on_grid, np.round(steps), np.floor(steps))
    return Range(value, lower, upper, feature.grid, count, on_grid)


def _blur(steps: Floats) -> Floats:
    """How far a number of steps may be off by rounding."""
    with np.errstate(invalid="ignore"):
        return np.asarray(1e-9 + 4.0 * EPS * np.abs(steps))


def encode_range(raw: Range, number: Number, point: Floats) -> EncodedRange:
    """Bring a range to encoded units; `point` is what the pipeline makes of each person."""
    if raw.step > 0.0:
        return _encode_lattice(raw, number, point)
    lower, upper = number.encode(raw.lower), number.encode(raw.upper)
    # whoever may not move has bounds that are exactly the point
    lower = np.where(raw.lower == raw.value, point, lower)
    upper = np.where(raw.upper == raw.value, point, upper)
    if number.scale < 0.0:
        lower, upper = upper, lower
    return EncodedRange(np.minimum(lower, point), np.maximum(upper, point), 0.0, point)


def _encode_lattice(raw: Range, number: Number, point: Floats) -> EncodedRange:
    """Count the lattice's steps in raw units, where they are exact, and then encode."""
    step = raw.step * abs(number.scale)
    anchor = lattice_anchor(raw, number, point)
    lower, upper = raw.lower / raw.step, raw.upper / raw.step
    least = np.ceil(lower - _blur(lower)) - raw.count
    most = np.floor(upper + _blur(upper)) - raw.count
    falls = np.where(raw.on_grid, least <= -1, least <= 0)
    rises = most >= 1
    if number.scale < 0.0:
        least, most, falls, rises = -most, -least, rises, falls
    lower = np.where(falls, anchor + (least - PAD) * step, point)
    upper = np.where(rises, anchor + (most + PAD) * step, point)
    return EncodedRange(lower, upper, step, anchor)


def lattice_anchor(raw: Range, number: Number, point: Floats) -> Floats:
    """Return the encoded ``step * count``; the person's own point, to the last bit, on the grid."""
    return np.where(raw.on_grid, point, number.encode(raw.step * raw.count))
