"""Costs: what a change costs, and costs of a row brought to about 1 without rounding anything."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats

# Costs of a row that are further apart than 2 to this power cannot be computed with.
MOST_SPREAD = 600


@kernel
def cheapest_unit(
    start: Any, coef: Any, scale: Any, cost: Any, lower: Any, upper: Any, radius: Any
) -> Any:
    """Return a cost below which no number buys a unit of worst-case score; 0 if none can move."""
    least, slope = 0.0, 0.0  # ... is least / slope; compared without a division
    for j in range(start.size):
        reach = radius * scale[j]
        up = reach + coef[j] if upper[j] > start[j] else 0.0
        down = reach - coef[j] if lower[j] < start[j] else 0.0
        best = max(up, down)
        if best > 0.0 and (slope == 0.0 or cost[j] * slope < least * best):
            least, slope = cost[j], best
    return least / slope if slope > 0.0 else 0.0


@kernel
def cost_of(point: Any, start: Any, cost: Any) -> Any:
    """Cost of moving from start to point."""
    total = 0.0
    for j in range(point.size):
        total += cost[j] * abs(point[j] - start[j])
    return total


def costs_of_moves(start: Floats, points: Floats, costs: Floats) -> Floats:
    """Return ``sum(costs * |points - start|)`` of each row: numbers alone."""
    return np.asarray(np.sum(costs * np.abs(points - start), axis=1))


def scaled(values: Floats, exponent: NDArray[np.int64]) -> Floats:
    """Return ``values * 2**exponent``; exact, unless the result is out of the range of numbers."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, exponent), dtype=np.float64)


class Evening(NamedTuple):
    """How costs of rows are brought to about 1: what all of them have in common is taken out."""

    exponent: NDArray[np.int64]  # the power of two in the middle of the costs of each row
    is_uneven: NDArray[np.bool_]  # which rows have costs too far apart to be computed with

    @classmethod
    def of(cls, *parts: Floats) -> Evening:
        """Look at the positive, finite costs of each row; what all rows share has one row."""
        ends = [_ends(part) for part in parts]
        low = np.asarray(functools.reduce(np.minimum, [low for low, _ in ends]))
        high = np.asarray(functools.reduce(np.maximum, [high for _, high in ends]))
        none = low > high
        low, high = np.where(none, 0, low), np.where(none, 0, high)
        return cls((low + high) // 2, high - low > MOST_SPREAD)

    def applied(self, costs: Floats) -> Floats:
        """Return the costs of rows without the power of two; NaN where they are uneven."""
        even = scaled(costs, -self.exponent[:, None])
        even[self.is_uneven] = np.nan
        even.flags.writeable = False
        return even


def _ends(costs: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest power of two among the positive, finite costs of rows."""
    used = np.isfinite(costs) & (costs > 0.0)
    powers = np.frexp(np.where(used, costs, 1.0))[1].astype(np.int64)
    low = np.where(used, powers, _FAR).min(axis=1, initial=_FAR)
    high = np.where(used, powers, -_FAR).max(axis=1, initial=-_FAR)
    return low, high


_FAR = 2000  # beyond the powers of two of all floats
