"""Costs: what a change costs, and costs of a row brought to about 1 without rounding anything."""

from __future__ import annotations

from typing import Any

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


def _exponents(costs: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest power of two among the positive, finite costs of rows."""
    used = np.isfinite(costs) & (costs > 0.0)
    _, powers = np.frexp(np.where(used, costs, 1.0))
    wide = powers.astype(np.int64)
    none = ~used.any(axis=1)
    low = np.where(used, wide, 2000).min(axis=1, initial=2000)
    high = np.where(used, wide, -2000).max(axis=1, initial=-2000)
    return np.where(none, 0, low), np.where(none, 0, high)


def even_exponents(costs: Floats) -> NDArray[np.int64]:
    """Return the power of two in the middle of the costs of each row."""
    low, high = _exponents(costs)
    return np.asarray((low + high) // 2)


def is_uneven(costs: Floats) -> NDArray[np.bool_]:
    """Say which rows have costs that are too far apart to be computed with."""
    low, high = _exponents(costs)
    return np.asarray(high - low > MOST_SPREAD)
