"""Which cells of a bent or binned number each person may go to, at what value, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.cells import Cells
from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import Range, lattice_ends, multiples, range_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.machinery.numerals import power_of_ten

# A number without a step is rounded to a value that people can type, if that changes it by no more:
# whoever stands next to a cell pays for every bit of it.
_ROUNDING = 4.0 * EPS


_ROOM = 1e-9  # for rounding, relative to the numbers compared
# Who is as near as this to a cell is charged for so much: costs must not differ by all there is.
_NOTHING = 1e-100


@dataclass(frozen=True, eq=False)
class Reach:
    """The cells as levels of people.

    Attributes
    ----------
    place : (n,) array of int
        The cell that each person is in.
    costs : (n, m) array
        What it costs them to go to each cell; inf where they may not.
    from_below, from_above, from_nowhere : (m,) arrays
        The value at which a cell is entered by those below it, above it, and by those whose value
        is missing.
    lower, upper : (n,) arrays
        Between which values each person may go.
    """

    place: NDArray[np.int64]
    costs: Floats
    from_below: Floats
    from_above: Floats
    from_nowhere: Floats
    is_missing: NDArray[np.bool_]
    lower: Floats
    upper: Floats

    def values(self, who: NDArray[np.int64], cells: NDArray[np.int64]) -> Floats:
        """Return the raw value at which some people enter cells other than their own."""
        entered = np.where(cells > self.place[who], self.from_below[cells], self.from_above[cells])
        # what was rounded for people may be rounded beyond where they may go
        entered = np.clip(entered, self.lower[who], self.upper[who])
        return np.where(self.is_missing[who], self.from_nowhere[cells], entered)


def find_reach(feature: NumberFeature, cells: Cells, value: Floats, fill: float | None) -> Reach:
    """Say where each person may go; what is missing is presumed to be `fill`, if it is known."""
    is_missing, place = np.isnan(value), cells.place(value)
    here = np.where(is_missing, 0.0, value)
    from_below, from_above = _entries(feature, cells)
    presumed = _presumed(feature, fill)
    from_nowhere = _nearest(feature, cells, presumed)
    ranges = range_of(feature, here)
    is_above = np.arange(len(cells.low)) > place[:, None]
    entered = np.where(is_above, from_below, from_above)
    inside = _are_inside(entered, here[:, None], ranges, feature.integer)
    if feature.grid == 0.0:  # nearer than what was rounded for people is the end itself
        entered = np.clip(entered, ranges.lower[:, None], ranges.upper[:, None])
        inside = np.where(is_above, cells.low <= entered, entered <= cells.high)
    away = np.maximum(np.abs(entered - here[:, None]), _NOTHING)
    costs = feature.cost * away + feature.fixed_cost
    costs[~inside] = np.inf
    costs[~cells.is_advice[place]] = np.inf  # a code, or nothing, is no number to start from
    if is_missing.any():
        away = np.abs(from_nowhere - presumed) if fill is not None else 0.0 * from_nowhere
        given = feature.provide_cost
        if given is None or feature.stays:
            given = np.inf
        costs[is_missing] = given + feature.cost * away
    costs[:, ~cells.is_advice] = np.inf
    costs[np.isnan(costs)] = np.inf
    costs[np.arange(len(value)), place] = 0.0
    ends = (np.full(len(value), end) for end in (-np.inf, np.inf))
    lower, upper = (ranges.lower, ranges.upper) if feature.grid == 0.0 else ends
    return Reach(place, costs, from_below, from_above, from_nowhere, is_missing, lower, upper)


def _are_inside(values: Floats, here: Floats, ranges: Range, is_whole: bool) -> NDArray[np.bool_]:
    """Say which multiples of a step, a row for each person, are within the person's range.

    Rounding excludes none that was meant, nor lets one pass that is out of it by more than that.
    """
    if ranges.step == 0.0:
        return np.ones(values.shape, dtype=bool)
    least, most = lattice_ends(ranges)
    counts = np.round(values / ranges.step)
    inside = (counts >= least[:, None]) & (counts <= most[:, None])
    room = 0.0 if is_whole else _ROOM * np.maximum(np.abs(here), np.abs(values))
    inside &= values >= ranges.lower[:, None] - room
    return np.asarray(inside & (values <= ranges.upper[:, None] + room))


def _entries(feature: NumberFeature, cells: Cells) -> tuple[Floats, Floats]:
    """Return the first and the last value of each cell that people may take; NaN: none."""
    if feature.grid > 0.0:
        first, last = _counts(feature.grid, cells)
        return (
            _valued(feature.grid, np.where(first <= last, first, np.nan)),
            _valued(feature.grid, np.where(first <= last, last, np.nan)),
        )
    pairs = zip(cells.low.tolist(), cells.high.tolist(), strict=True)
    ends = [(_short(low, high), -_short(-high, -low)) for low, high in pairs]
    return np.array([a for a, _ in ends]), np.array([b for _, b in ends])


def _counts(step: float, cells: Cells) -> tuple[Floats, Floats]:
    """Return the first and the last multiple of a step within each cell, as they are written."""
    first, last = np.ceil(cells.low / step), np.floor(cells.high / step)
    # a quotient is rounded; the multiples themselves are compared
    for _ in range(2):
        first = first + (_valued(step, first) < cells.low) - (_valued(step, first - 1) >= cells.low)
        last = last - (_valued(step, last) > cells.high) + (_valued(step, last + 1) <= cells.high)
    return first, last


def _valued(step: float, counts: Floats) -> Floats:
    """Return multiples of a step; what is infinite or NaN stays so."""
    result, finite = counts.copy(), np.isfinite(counts)
    result[finite] = multiples(counts[finite], step)
    return result


def _short(low: float, high: float) -> float:
    """Return the number of the fewest digits that is hardly above the lower end of a cell."""
    if not np.isfinite(low):
        return np.nan
    most = min(high, low + _ROUNDING * abs(low))
    for exponent in range(12, -324, -1):
        unit = power_of_ten(exponent)
        if abs(low) / unit > 2.0**50:
            break
        count = np.ceil(low / unit)
        value = float(multiples(np.array([count]), unit)[0])
        if low <= value <= most:
            return value
    return low


def _presumed(feature: NumberFeature, fill: float | None) -> float:
    """Return the number that a missing one is taken for; failing that the middle of its range."""
    if fill is not None:
        return fill
    ends = [end for end in (feature.lowest, feature.highest) if np.isfinite(end)]
    return sum(ends) / len(ends) if ends else 0.0


def _nearest(feature: NumberFeature, cells: Cells, wanted: float) -> Floats:
    """Return the value of each cell next to the one wanted, among those that are allowed."""
    low, high = np.maximum(cells.low, feature.lowest), np.minimum(cells.high, feature.highest)
    if feature.grid == 0.0:
        return np.where(low <= high, np.clip(wanted, low, high), np.nan)
    first, last = _counts(feature.grid, Cells(low, high, cells.codes, cells.is_advice))
    near = np.clip(np.round(wanted / feature.grid), first, last)
    return _valued(feature.grid, np.where(first <= last, near, np.nan))
