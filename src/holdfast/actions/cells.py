"""Bent and binned numbers, cut into cells: raw values that the pipeline encodes as one.

Where a number is binned, a cell is a bin; where it is bent, each value that it may take is a cell.
What a cell is encoded as, the pipeline is asked. So the nearest value of each cell is a level of
a person, and the search over levels is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import counts_within, multiples, range_of
from holdfast.machinery.numbers import Floats, floats_at, ranks_of, whole_rows
from holdfast.machinery.numerals import power_of_ten
from holdfast.models.encoding import Curve, Encoded, Encoding

# Values of a bent number that are tried; what each costs each person is kept.
MOST_VALUES = 50_000
# Edges that a scaler has moved are known up to rounding: so near to them they are looked for.
_NEAR = 1e-9
_NEIGHBOURS = 4
_FINE = 1000.0  # at least so many values are tried of a number without a step


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
    has_untried : bool
        Whether there are other values between the cells, which are not tried.
    """

    low: Floats
    high: Floats
    codes: Floats
    is_advice: NDArray[np.bool_]
    has_untried: bool = False

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
            found = _points(curve, values, codes, has_untried=features[name].grid == 0.0)
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
        jumps = np.flatnonzero(_differ(codes))
        left, right = ranks_of(values[jumps]), ranks_of(values[jumps + 1])
        wide = right - left > 1
        if not wide.any():
            return values, codes
        far = values[jumps + 1] - values[jumps] > 4.0 * _NEAR * (1.0 + np.abs(values[jumps]))
        if far.any():
            at = int(jumps[far][0])
            raise ValueError(
                f"column {curve.name!r} is misread: {curve.where} was taken to be constant "
                f"between its edges, but it changes between {values[at]:.12g} and "
                f"{values[at + 1]:.12g}"
            )
        between = floats_at(left[wide] + (right[wide] - left[wide]) // 2)
        more = encoding.ask({curve.name: between}, encoded)[curve.name]
        values, codes = np.append(values, between), np.vstack([codes, more])
        order = np.argsort(values, kind="stable")
        values, codes = values[order], codes[order]


def _bins(curve: Curve, values: Floats, codes: Floats) -> Cells:
    """Gather values that are encoded alike; codes are cells of their own."""
    is_code = np.isin(values, curve.specials)
    starts = _differ(codes) | is_code[1:] | is_code[:-1]
    first = np.flatnonzero(np.append(True, starts))
    last = np.append(first[1:] - 1, len(values) - 1)
    low, high = values[first], values[last]
    low[0], high[-1] = -np.inf, np.inf
    return _without_holes(Cells(low, high, codes[first], ~is_code[first]))


def _differ(codes: Floats) -> NDArray[np.bool_]:
    """Say which codes differ from those before them; the pipeline may make nothing of several."""
    same = (codes[1:] == codes[:-1]) | (np.isnan(codes[1:]) & np.isnan(codes[:-1]))
    return np.asarray(~same.all(axis=1))


def _without_holes(cells: Cells) -> Cells:
    """Leave out values that the pipeline does not encode as finite numbers: nobody may take one."""
    kept = whole_rows(cells.codes)
    if kept.all():
        return cells
    return replace(
        cells,
        low=cells.low[kept],
        high=cells.high[kept],
        codes=cells.codes[kept],
        is_advice=cells.is_advice[kept],
    )


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
    low, high = people_ends(feature, curve, own)
    here = own[~np.isnan(own)]
    ends = _tails(curve)
    if len(ends):
        here = here[(here > ends[0]) & (here < ends[1])]
    some = low <= high
    if feature.grid > 0.0:
        grid = _multiples(feature.grid, low[some], high[some])
    else:
        pairs = zip(low[some].tolist(), high[some].tolist(), strict=True)
        grid = np.concatenate([np.empty(0), *(_fine_grid(curve, *pair) for pair in pairs)])
    return np.unique(np.concatenate([grid, here, ends]))


def people_ends(feature: NumberFeature, curve: Curve, own: Floats) -> tuple[Floats, Floats]:
    """Return between which values each person may go; what is flat beyond them is left out."""
    missing = np.isnan(own)
    ranges = range_of(feature, np.where(missing, 0.0, own))
    can_give = feature.provide_cost is not None
    low = np.where(missing, feature.lowest if can_give else np.inf, ranges.lower)
    high = np.where(missing, feature.highest if can_give else -np.inf, ranges.upper)
    ends = _tails(curve)
    if len(ends):
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    return low, high


def _tails(curve: Curve) -> Floats:
    """Return the first and the last edge, where all beyond them is flat."""
    return np.array(curve.edges)[[0, -1]] if curve.has_flat_tails else np.empty(0)


def too_wide(feature: NumberFeature, curve: Curve, own: Floats) -> dict[int, str]:
    """Say who has too many values to try, and why; refuse a feature of which everybody has."""
    low, high = people_ends(feature, curve, own)
    width, some, missing = high - low, low <= high, np.isnan(own)
    step = feature.grid or np.inf
    if feature.grid == 0.0 and not curve.is_monotone:
        step = 0.0  # what lies between the values that are tried cannot be bounded
    with np.errstate(divide="ignore", invalid="ignore"):
        many = some & ((width / step > MOST_VALUES) | np.isinf(width))
    if not many.any():
        return {}
    most = float(width[many].max())
    said = (
        f"{feature.name}: the model transforms it non-linearly, so its values are tried one by one"
    )
    if np.isinf(most):
        said += ": give it a lower and an upper bound"
    elif step == 0.0:
        said += f": give it a {_step_for(feature.name, most)}"
    else:
        advice = _step_for(feature.name, most)
        said += f", and {most / step:,.0f} are too many: give it a coarser {advice}"
    is_setting = np.isinf(most) or step == 0.0 or feature.highest - feature.lowest >= most
    if is_setting and many[~missing].any() and many[some & ~missing].all():
        raise ValueError(said)
    lost = f"{feature.name} is missing, and too many values would have to be tried to fill it in"
    given = feature.highest - feature.lowest
    if np.isfinite(given):
        lost += f": give it a coarser {_step_for(feature.name, given)}"
    said = f"{feature.name}: there are too many values that it may change to"
    return {int(k): lost if missing[k] else said for k in np.flatnonzero(many)}


def _step_for(name: str, width: float) -> str:
    return f"step, such as actions.set({name!r}, step={_power_within(width / 100.0):g})"


def _multiples(step: float, low: Floats, high: Floats) -> Floats:
    """Return all multiples of a step between any of some pairs of ends."""
    if not len(low):
        return np.empty(0)
    first, last = counts_within(low, high, step)
    total = last.max() - first.min() + 1.0
    if total <= (last - first + 1.0).clip(0.0).sum() or total <= MOST_VALUES:
        counts = np.arange(first.min(), last.max() + 1.0)
    else:  # people far from each other
        pairs = zip(first, last, strict=True)
        counts = np.unique(np.concatenate([np.arange(a, b + 1.0) for a, b in pairs]))
    return multiples(counts, step)


def _fine_grid(curve: Curve, lowest: float, highest: float) -> Floats:
    """Return values to try of a number without a step: its ends, where it may jump or turn, ..."""
    if lowest == highest:
        return np.array([lowest])
    turns = _probes(curve)
    turns = turns[(lowest <= turns) & (turns <= highest)]
    grid = _multiples(
        _power_within((highest - lowest) / _FINE), np.array([lowest]), np.array([highest])
    )
    return np.concatenate([[lowest, highest], turns, np.clip(grid, lowest, highest)])


def _power_within(most: float) -> float:
    """Return the largest power of ten that is not above a number."""
    return power_of_ten(int(np.floor(np.log10(most))))


def _points(curve: Curve, values: Floats, codes: Floats, *, has_untried: bool) -> Cells:
    """Make each value a cell, and each flat tail."""
    low, high = values.copy(), values.copy()
    if curve.has_flat_tails:
        low[0], high[-1] = -np.inf, np.inf
    cells = Cells(low, high, codes, ~np.isin(values, curve.specials), has_untried)
    is_there = whole_rows(codes)  # the logarithm of a negative number is not
    if has_untried and not is_there.all():
        raise ValueError(
            f"{curve.name}: the model transforms it non-linearly, and {values[~is_there][0]:g} "
            "has no finite result: give it lower and upper bounds between which every value has "
            "one, or a step"
        )
    return _without_holes(cells)
