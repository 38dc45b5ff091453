"""Numbers as people type them: each rounded to its own few digits, away from the boundary.

A number with a step lies on it; all others are rounded to the fewest digits that cost nothing to
speak of. Whether the row that comes of it still holds is judged in `recommend/printed.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import NumberFeature, Posed
from holdfast.actions.decode import decode_people
from holdfast.actions.ranges import multiples
from holdfast.machinery.numbers import EPS, Floats
from holdfast.machinery.numerals import power_of_ten
from holdfast.models.encoding import Number
from holdfast.problem.goal import Goal
from holdfast.recommend.ways import Printed, Ways
from holdfast.result.status import allowed_gap, are_proven

if TYPE_CHECKING:
    import pandas as pd

# Decimals that are tried, counted from about a standard deviation down to the last bit.
_DIGITS = 18
_AT_ONCE = 512  # rows, as many numbers of digits as that makes; one where there are more people
_MANY = 2.0**50  # of so many units there is nothing to round


class _Moves(NamedTuple):
    """Numbers without a step that change, an entry for each of them and each person."""

    row: NDArray[np.int64]
    feature: NDArray[np.int64]  # its place among those of the draft
    start: Floats
    value: Floats
    lower: Floats
    upper: Floats

    def take(self, which: NDArray[Any]) -> _Moves:
        return _Moves(*(values[which] for values in self))


@dataclass(frozen=True, eq=False)
class RoundedWays:
    """Ways that are being rounded, each to its own number of digits.

    Attributes
    ----------
    ways : Ways
    after : DataFrame
        The row of the table that each of them becomes where nothing is rounded.
    digits : (m,) array of int
        How many are to be tried next; `_DIGITS`: none, it stays as it is.
    is_told : (m,) array of bool
        Whether the cost of the row is that of the way, up to rounding; a change too small to be
        seen is not made, and costs nothing.
    features : list of NumberFeature
        Those without a step that anybody changes.
    moves : _Moves
    goal : Goal
    blur : float
        How far rounding can take a cost that is worked out in raw units.
    """

    ways: Ways
    after: pd.DataFrame
    digits: NDArray[np.int64]
    is_told: NDArray[np.bool_]
    features: list[NumberFeature]
    moves: _Moves
    goal: Goal
    blur: float

    @classmethod
    def of(cls, posed: Posed, goal: Goal, ways: Ways) -> RoundedWays:
        """Begin with the fewest digits for each of the ways."""
        who = ways.who
        after = decode_people(posed, who, ways.recourse, ways.levels)
        is_told, blur = np.ones(len(ways), dtype=bool), 0.0
        features: list[NumberFeature] = []
        moves = [_NO_MOVES]
        can_round = any(raw.step == 0.0 for raw in posed.ranges.values())
        for k, (name, raw) in enumerate(posed.ranges.items() if can_round else ()):
            values, start = _floats(after[name]), raw.value[who]
            moved = ~np.isnan(values) & (values != start)  # NaN where it stays missing
            is_told &= moved == ways.changed[:, k]
            feature, number = posed.actions[name], posed.encoding[name]
            assert isinstance(number, Number)
            sizes = [np.abs(some).max(initial=0.0) for some in (values[moved], start)]
            blur += feature.cost * (sum(sizes) + abs(number.shift / number.scale))
            row = np.flatnonzero(moved)
            if raw.step == 0.0 and row.size:
                place, own = np.full(row.size, len(features)), raw.take(who[row])
                moves.append(_Moves(row, place, own.value, values[row], own.lower, own.upper))
                features.append(feature)
        digits = np.full(len(ways), 0 if features else _DIGITS)
        blur *= 64.0 * EPS
        draft = cls(ways, after, digits, is_told, features, _joined_moves(moves), goal, blur)
        draft._skip_digits()
        return draft

    @property
    def _count(self) -> int:
        """How many numbers of digits are tried at once."""
        return max(_AT_ONCE // max(len(self.ways), 1), 1)

    @property
    def is_rounding(self) -> bool:
        """Whether rounded rows are tried next; if not, no digits are left to try."""
        return bool((self.digits < _DIGITS).any())

    def trial(self) -> Printed:
        """Return what is tried next: rounded rows, or the rows as they are."""
        if not self.is_rounding:
            return Printed(self.ways, self.after)
        some = self._tried(min(self._count, _DIGITS))
        return Printed(some.ways, some._with_rounded())

    def _tried(self, count: int) -> RoundedWays:
        """Return what is tried at once: a row for each of some numbers of digits, fewest first.

        Who stays as they are is left out.
        """
        chosen = [np.flatnonzero(self.digits < _DIGITS - more) for more in range(count)]
        digits = [self.digits[some] + more for more, some in enumerate(chosen)]
        return self._of(chosen, np.concatenate(digits))

    def still_to_try(self, left: NDArray[np.int64]) -> RoundedWays:
        """Return what is left to be tried where what was tried did not do."""
        draft = self._of([left], np.minimum(self.digits[left] + self._count, _DIGITS))
        draft._skip_digits()
        return draft

    def _of(self, chosen: list[NDArray[np.int64]], digits: NDArray[np.int64]) -> RoundedWays:
        """Return the draft of some of the ways, and once more of some, with other digits."""
        which = np.concatenate(chosen)
        if len(which) == len(self.ways) and len(chosen) == 1:
            return replace(self, digits=digits)
        moves, begin = [_NO_MOVES], 0
        for some in chosen:
            place = np.full(len(self.ways), -1)
            place[some] = begin + np.arange(len(some))
            row = place[self.moves.row]
            moves.append(self.moves._replace(row=row).take(row >= 0))
            begin += len(some)
        return replace(
            self,
            ways=self.ways.take(which),
            after=self.after.iloc[which],
            digits=digits,
            is_told=self.is_told[which],
            moves=_joined_moves(moves),
        )

    def _skip_digits(self) -> None:
        """Leave out digits that cannot do: they cost too much, or have been tried as they are."""
        ways, goal, n = self.ways, self.goal, len(self.ways)
        fixed = np.bincount(self.moves.row, minlength=n) == 0
        self.digits[fixed & (self.digits > 0)] = _DIGITS
        if goal.cost_weight is not None:
            return  # the price is not that of the change alone
        proven = are_proven(ways.status)
        for digits in range(_DIGITS):
            here = self.digits == digits
            if not here.any():
                continue
            moves = self.moves.take(here[self.moves.row])
            unit = np.array([feature.cost for feature in self.features])[moves.feature]
            further = np.abs(self._rounded(moves) - moves.start) - np.abs(moves.value - moves.start)
            price = ways.cost + np.bincount(moves.row, unit * further, minlength=n)
            allowed = gap_once_rounded(ways, price, proven, goal) + self.blur + 64.0 * EPS * price
            self.digits[here & self.is_told & (price - ways.lower_bound > allowed)] += 1

    def _with_rounded(self) -> pd.DataFrame:
        """Return the rows of the table, each rounded to its own digits."""
        after, moves, values = self.after.copy(), self.moves, self._rounded(self.moves)
        for k, feature in enumerate(self.features):
            column, own = _floats(after[feature.name]).copy(), moves.feature == k
            column[moves.row[own]] = values[own]
            after[feature.name] = column
        return after

    def _rounded(self, moves: _Moves) -> Floats:
        """Round what moved, away from where the person is where a guarantee must hold."""
        first = np.array([exponent_of(feature) for feature in self.features], dtype=np.int64)
        exponents = first[moves.feature] - self.digits[moves.row]
        outwards = np.sign(moves.value - moves.start) * self.goal.is_guarantee
        new = np.empty(len(moves.row))
        least = exponents.min(initial=0)
        for exponent in (np.flatnonzero(np.bincount(exponents - least)) + least).tolist():
            own = exponents == exponent
            new[own] = round_to(moves.value[own], exponent, outwards[own])
        return np.clip(new, moves.lower, moves.upper)


_NONE, _NO_FLOATS = np.empty(0, dtype=np.int64), np.empty(0)
_NO_MOVES = _Moves(_NONE, _NONE, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS)


def _joined_moves(batches: list[_Moves]) -> _Moves:
    return _Moves(*map(np.concatenate, zip(*batches, strict=True)))


def exponent_of(feature: NumberFeature) -> int:
    """Return the power of ten, about what costs 1, from which digits are counted."""
    return math.floor(math.log10(1.0 / feature.cost))


def round_to(values: Floats, exponent: int, direction: Any = 0.0) -> Floats:
    """Round to multiples of a power of ten, in decimal numbers: to the nearest, up or down.

    Parameters
    ----------
    values : array
    exponent : int
    direction : number or array
        Where it is positive, the least multiple from the value on is taken; where it is
        negative, the largest up to it; where it is 0, the nearest.

    Examples
    --------
    >>> round_to(np.array([0.123456, 0.3]), -2), round_to(np.array([1234.5]), 2, 1.0)
    (array([0.12, 0.3 ]), array([1300.]))
    """
    unit = power_of_ten(exponent)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steps = np.round(values / unit)
    fits = np.isfinite(steps) & (np.abs(steps) < _MANY)
    steps = np.where(fits, steps, 0.0)
    nearest = multiples(steps, unit)
    steps += (np.asarray(direction) > 0.0) & (nearest < values)
    steps -= (np.asarray(direction) < 0.0) & (nearest > values)
    return np.where(fits, multiples(steps, unit), values)


def gap_once_rounded(ways: Ways, price: Floats, proven: NDArray[np.bool_], goal: Goal) -> Floats:
    """Return the largest gap that rounding may leave: what was proven must still be.

    A proof may leave `GAP_TOLERANCE`, relative to the price and something on top. Where it does
    not use it up, rounding may, without what is on top.
    """
    gaps = ways.gap + 8.0 * EPS * (1.0 + price)
    more = allowed_gap(goal, price)
    return np.where(proven, np.maximum(gaps, more), gaps + more)


def _floats(column: pd.Series[Any]) -> Floats:
    return np.asarray(column.to_numpy(dtype=np.float64))
