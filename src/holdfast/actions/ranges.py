"""Where a number may go, for each person: raw bounds and lattice, and the same in encoded units."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding import Number

# Bounds of lattices are moved out by this share of a step, so that rounding excludes no point.
PAD = 1e-6
_EXACT = 2.0**53  # whole numbers below it are exact, as are powers of ten up to this one
_POWERS = 22


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


def range_of(
    feature: NumberFeature, value: Floats, is_missing: NDArray[np.bool_] | None = None
) -> Range:
    """Where each person's number may go; the person's own value is always within.

    Where it is missing, and can be provided, it may go anywhere within the bounds: what it was
    read as meanwhile is no value to count from.
    """
    lower, upper = np.full_like(value, feature.lowest), np.full_like(value, feature.highest)
    if feature.max_decrease is not None:
        lower = np.maximum(lower, value - feature.max_decrease)
    if feature.max_increase is not None:
        upper = np.minimum(upper, value + feature.max_increase)
    lower, upper = np.minimum(lower, value), np.maximum(upper, value)
    if feature.stays or feature.direction == "up":
        lower = value
    if feature.stays or feature.direction == "down":
        upper = value
    if is_missing is not None and is_missing.any():
        can_move = feature.provide_cost is not None and not feature.stays
        ends = (feature.lowest, feature.highest) if can_move else (value, value)
        lower = np.where(is_missing, np.minimum(ends[0], value), lower)
        upper = np.where(is_missing, np.maximum(ends[1], value), upper)
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
    least, most = (end - raw.count for end in lattice_ends(raw))
    falls = np.where(raw.on_grid, least <= -1, least <= 0)
    rises = most >= 1
    if number.scale < 0.0:
        least, most, falls, rises = -most, -least, rises, falls
    lower = np.where(falls, anchor + (least - PAD) * step, point)
    upper = np.where(rises, anchor + (most + PAD) * step, point)
    return EncodedRange(lower, upper, step, anchor)


def lattice_ends(raw: Range) -> tuple[Floats, Floats]:
    """Return how many steps the first and the last value of a lattice are away from 0."""
    return counts_within(raw.lower, raw.upper, raw.step)


def counts_within(lower: Floats, upper: Floats, step: float) -> tuple[Floats, Floats]:
    """Return the first and the last multiple of a step within bounds, counted from 0.

    Rounding excludes no multiple that was meant: 0.3 is three steps of 0.1.

    Examples
    --------
    >>> counts_within(np.array([0.1]), np.array([0.3]), 0.1), 0.3 / 0.1
    ((array([1.]), array([3.])), 2.9999999999999996)
    """
    low, high = lower / step, upper / step
    return np.ceil(low - _blur(low)), np.floor(high + _blur(high))


def lattice_anchor(raw: Range, number: Number, point: Floats) -> Floats:
    """Return the encoded ``step * count``; the person's own point, to the last bit, on the grid."""
    return np.where(raw.on_grid, point, number.encode(raw.step * raw.count))


def multiples(counts: Floats, step: float) -> Floats:
    """Return whole multiples of a step in decimal numbers: three steps of 0.1 are 0.3.

    Examples
    --------
    >>> multiples(np.array([3.0, 7.0]), 0.1), 3 * 0.1
    (array([0.3, 0.7]), 0.30000000000000004)
    """
    if step == np.floor(step):
        return np.asarray(counts * step)
    exact = Decimal(repr(step))
    digits = -int(exact.as_tuple().exponent)
    steps = counts * float(exact.scaleb(digits))
    if digits <= _POWERS and (np.abs(steps) < _EXACT).all():
        return np.asarray(steps / 10.0**digits)  # of exact numbers: the nearest there is
    return np.array([float(int(k) * exact) for k in counts.tolist()])
