"""Where a number may go, for each person: raw bounds and lattice, and the same in encoded units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast._numbers import Floats
from holdfast.actions.number import NumberFeature
from holdfast.encoding import Number

# Bounds of lattices are moved out by this share of a step, so that rounding excludes no point.
PAD = 1e-6


@dataclass(frozen=True, eq=False)
class Range:
    """Where a number may go, in raw units; arrays have one entry for each person.

    With ``step > 0`` it may become ``base + step * k`` for whole k, within the bounds, or stay.
    """

    value: Floats
    lower: Floats
    upper: Floats
    step: float
    base: Floats


@dataclass(frozen=True, eq=False)
class EncodedRange:
    """The same for the encoded column; arrays have one entry for each person."""

    lower: Floats
    upper: Floats
    step: float
    anchor: Floats


def range_of(feature: NumberFeature, value: Floats) -> Range:
    """Where each person's number may go; the person's own value is always within."""
    lower = np.full_like(value, -np.inf if feature.lower is None else feature.lower)
    upper = np.full_like(value, np.inf if feature.upper is None else feature.upper)
    if feature.most_down is not None:
        lower = np.maximum(lower, value - feature.most_down)
    if feature.most_up is not None:
        upper = np.minimum(upper, value + feature.most_up)
    lower, upper = np.minimum(lower, value), np.maximum(upper, value)
    stays = np.full(value.shape, feature.immutable)
    step, base = 0.0, value
    if feature.step is not None:
        step = float(feature.step)
        if feature.whole:  # steps from a fraction never meet a whole number
            stays = stays | (value != np.floor(value))
    elif feature.whole:
        step, base = 1.0, np.floor(value)
    lower = np.where(stays | (feature.direction == "up"), value, lower)
    upper = np.where(stays | (feature.direction == "down"), value, upper)
    return Range(value, lower, upper, step, base)


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
    # the person's own encoded value is on the lattice to the last bit
    anchor = np.where(raw.base == raw.value, point, number.encode(raw.base))
    least = np.ceil((raw.lower - raw.base) / raw.step - 1e-9)
    most = np.floor((raw.upper - raw.base) / raw.step + 1e-9)
    falls = np.where(raw.base < raw.value, least <= 0, least <= -1)
    rises = most >= 1
    if number.scale < 0.0:
        least, most, falls, rises = -most, -least, rises, falls
    lower = np.where(falls, anchor + (least - PAD) * step, point)
    upper = np.where(rises, anchor + (most + PAD) * step, point)
    return EncodedRange(lower, upper, step, anchor)
