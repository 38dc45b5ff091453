"""Bent and binned numbers, cut into cells: raw values that the pipeline encodes as one.

Where a number is binned, a cell is a bin; where it is bent, each value that it may take is a cell.
What a cell is encoded as, the pipeline is asked. So the nearest value of each cell is an option of
a person, and the search over options is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import multiples, range_of, steps_between
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Curve, Encoded, Encoding

# Values of a bent number that are tried; what each costs each person is kept.
MOST_VALUES = 50_000
# Edges that a scaler has moved are known up to rounding: so near to them they are looked for.
_NEAR = 1e-9
_NEIGHBOURS = 4
_FINE = 1000.0  # at least so many values are tried of a number without a step


class NotTriedError(ValueError):
    """The values of a bent number cannot be tried one by one within its ends."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a number, in rising order, and at last the missing value, if it is taken.

    Attributes
    ----------
    low, high : (m,) arrays
        The first and the last number of each; NaN for the missing value.
    codes : (m, c) array
        What it is encoded as.
    is_advice : (m,) array of bool
        Whether people may be advised to go there: a missing value, or a code, is no advice.
    has_gaps : bool
        Whether there are other values between the cells, which are not tried.
    """

    low: Floats
    high: Floats
    codes: Floats
    is_advice: NDArray[np.bool_]
    has_gaps: bool = False

    @property
    def n_numbers(self) -> int:
        """How many cells hold numbers; they come first."""
        return int((~np.isnan(self.low)).sum())

    def place(self, values: Floats) -> NDArray[np.int64]:
        """Return the cell of each value."""
        numbers = self.low[: self.n_numbers]
        places = np.searchsorted(numbers, values, side="right") - 1
        return np.where(np.isnan(values), len(self.low) - 1, places).astype(np.int64)


def find_cells(
    encoding: Encoding, features: dict[str, NumberFeature], encoded: Encoded
) -> dict[str, Cells]:
    """Cut curves of a pipeline into cells, for some people and what they may do."""
    curves = {name: _curve(encoding, name) for name in features}
    marks = {}
    for name, curve in curves.items():
        own = encoded.reading.numbers[name]
        values = _probes(curve) if curve.is_flat else _values(features[name], curve, own)
        marks[name] = np.append(values, [np.nan] * curve.takes_missing)
    asked = encoding.ask(marks, encoded)
    cells = {}
    for name, curve in curves.items():
        count = len(marks[name]) - curve.takes_missing
        values, codes = marks[name][:count], asked[name][:count]
        if curve.is_flat:
            values, codes = _sharpened(encoding, encoded, curve, values, codes)
            found = _bins(curve, values, codes)
        else:
            found = _points(curve, values, codes, has_gaps=features[name].grid == 0.0)
        if curve.takes_missing:
            found = _with_missing(found, asked[name][count:])
        cells[name] = found
    return cells


def _curve(encoding: Encoding, name: str) -> Curve:
    curve = encoding[name]
    assert isinstance(curve, Curve)
    return curve


# ------------------------------------------------------------------ bins


def _probes(curve: Curve) -> Floats:
    """Return values around every edge and code, and between them."""
    marks = np.unique([*curve.edges, *curve.specials])
    if not len(marks):
        return np.zeros(1)
    around = [marks]
    for side in (-np.inf, np.inf):
        values = marks
        for _ in range(_NEIGHBOURS):
            values = np.nextafter(values, side)
            around.append(values)
    room = _NEAR * (1.0 + np.abs(marks))
    middle = marks[:-1] + 0.5 * np.diff(marks)
    ends = [marks[0] - 1.0 - abs(marks[0]), marks[-1] + 1.0 + abs(marks[-1])]
    return np.unique(np.concatenate([*around, marks - room, marks + room, middle, ends]))


def _sharpened(
    encoding: Encoding, encoded: Encoded, curve: Curve, values: Floats, codes: Floats
) -> tuple[Floats, Floats]:
    """Add values until those on both sides of every jump are neighbours among floats."""
    while True:
        jumps = np.flatnonzero(_jumps(codes))
        left, right = _ranks(values[jumps]), _ranks(values[jumps + 1])
        wide = right - left > 1
        if not wide.any():
            return values, codes
        far = values[jumps + 1] - values[jumps] > 4.0 * _NEAR * (1.0 + np.abs(values[jumps]))
        if far.any():
            at = int(jumps[far][0])
            raise ValueError(
                f"column {curve.name!r} is not understood: {curve.where} is read as constant "
                f"between its edges, but it changes between {values[at]:.12g} and "
                f"{values[at + 1]:.12g}"
            )
        between = _floats(left[wide] + (right[wide] - left[wide]) // 2)
        more = encoding.ask({curve.name: between}, encoded)[curve.name]
        values, codes = np.append(values, between), np.vstack([codes, more])
        order = np.argsort(values, kind="stable")
        values, codes = values[order], codes[order]


def _jumps(codes: Floats) -> NDArray[np.bool_]:
    """Say which neighbours are encoded differently; NaN, which nothing is encoded as, is one."""
    same = (codes[1:] == codes[:-1]) | (np.isnan(codes[1:]) & np.isnan(codes[:-1]))
    return np.asarray(~same.all(axis=1))


def _ranks(values: Floats) -> NDArray[np.int64]:
    """Number the floats in their order, so that neighbours differ by 1."""
    bits = (values + 0.0).view(np.int64)  # + 0.0: there is one zero
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def _floats(ranks: NDArray[np.int64]) -> Floats:
    bits = np.where(ranks >= 0, ranks, np.iinfo(np.int64).min - ranks)
    return np.asarray(bits, dtype=np.int64).view(np.float64)


def _bins(curve: Curve, values: Floats, codes: Floats) -> Cells:
    """Gather values that are encoded alike; codes are cells of their own.

    What the pipeline refuses, such as the logarithm of a negative number, is in no cell.
    """
    is_code = np.isin(values, curve.specials)
    starts = _jumps(codes) | is_code[1:] | is_code[:-1]
    first = np.flatnonzero(np.append(True, starts))
    last = np.append(first[1:] - 1, len(values) - 1)
    low, high = values[first], values[last]
    low[0], high[-1] = -np.inf, np.inf
    is_there = np.isfinite(codes[first]).all(axis=1)
    first, low, high = first[is_there], low[is_there], high[is_there]
    return Cells(low, high, codes[first], ~is_code[first])


def _with_missing(cells: Cells, codes: Floats) -> Cells:
    return replace(
        cells,
        low=np.append(cells.low, np.nan),
        high=np.append(cells.high, np.nan),
        codes=np.vstack([cells.codes, codes]),
        is_advice=np.append(cells.is_advice, False),
    )


# ------------------------------------------------------------------ single values


def _values(feature: NumberFeature, curve: Curve, own: Floats) -> Floats:
    """Return every value that somebody has or may take; of what is flat one will do."""
    here = own[~np.isnan(own)]
    ranges = range_of(feature, here)
    lowest, highest = ranges.lower.min(initial=np.inf), ranges.upper.max(initial=-np.inf)
    if feature.provide_cost is not None and len(here) < len(own):
        lowest, highest = min(lowest, feature.lowest), max(highest, feature.highest)
    ends = np.array(curve.edges)[[0, -1]] if curve.has_flat_tails else np.empty(0)
    if len(ends):
        lowest, highest = max(lowest, ends[0]), min(highest, ends[1])
        here = here[(here > ends[0]) & (here < ends[1])]
    grid = _grid(feature, curve, lowest, highest) if lowest < highest else np.empty(0)
    if feature.grid == 0.0 and len(grid):  # where it may jump or turn, values are tried
        turns = _probes(curve)
        turns = turns[(lowest <= turns) & (turns <= highest)]
        grid = np.concatenate([grid, turns, [lowest, highest]])
    return np.unique(np.concatenate([grid, here, ends]))


def _grid(feature: NumberFeature, curve: Curve, lowest: float, highest: float) -> Floats:
    """Return the multiples of a step; refuse what are too many to be tried."""
    name, step, width = feature.name, feature.grid, highest - lowest
    said = f"{name}: the model bends it, so that its values are tried one by one"
    if not np.isfinite(width):
        raise NotTriedError(f"{said}: give it a lower and an upper end")
    advice = f"step, such as actions.set({name!r}, step={_power_of_ten(width / 100.0):g})"
    if step == 0.0 and not curve.is_monotone:
        raise NotTriedError(f"{said}: give it a {advice}")
    step = step or _power_of_ten(width / _FINE)
    if width / step > MOST_VALUES:
        raise NotTriedError(
            f"{said}, and {width / step:,.0f} are too many: give it a coarser {advice}"
        )
    first, last = steps_between(np.array(lowest), np.array(highest), step)
    return multiples(np.arange(float(first), float(last) + 1.0), step)


def _power_of_ten(most: float) -> float:
    return float(f"1e{int(np.floor(np.log10(most)))}")


def _points(curve: Curve, values: Floats, codes: Floats, *, has_gaps: bool) -> Cells:
    """Make each value a cell, and each flat tail."""
    low, high = values.copy(), values.copy()
    if curve.has_flat_tails:
        low[0], high[-1] = -np.inf, np.inf
    is_there = np.isfinite(codes).all(axis=1)  # the logarithm of a negative number is not
    cells = Cells(low, high, codes, ~np.isin(values, curve.specials), has_gaps)
    if is_there.all():
        return cells
    if has_gaps:
        raise NotTriedError(
            f"{curve.name}: the model bends it, and makes nothing finite of "
            f"{values[~is_there][0]:g}: give it a lower and an upper end between which it does, "
            "or a step"
        )
    return Cells(low[is_there], high[is_there], codes[is_there], cells.is_advice[is_there])
