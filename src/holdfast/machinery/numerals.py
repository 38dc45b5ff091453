"""Numbers in sentences: those of the table to the last digit, probabilities on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROUPED = 10_000  # from here on thousands are set apart; years are not


def numeral(value: Any) -> str:
    """Write a value of the table so that it reads back as exactly the same.

    ``float(text.replace(",", ""))`` is the number.

    Examples
    --------
    >>> numeral(48), numeral(36.0), numeral(0.1), numeral(1234567.25), numeral("own")
    ('48', '36', '0.1', '1,234,567.25', 'own')
    """
    if type(value) is str:  # most are
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.floating):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)):
        return str(value)
    if isinstance(value, np.floating):  # the shortest text that is read back as this type
        value = float(str(value))
    if isinstance(value, float) and abs(value) < 1e21 and value == math.floor(value):
        value = int(value)
    return f"{value:,}" if abs(value) >= _GROUPED else f"{value}"


def numerals(values: NDArray[Any]) -> list[str]:
    """Write an array of plain numbers as `numeral` does; most of them take none of its turns.

    Examples
    --------
    >>> numerals(np.array([48.0, 0.1, 1234567.25])), numerals(np.array([12, 12345]))
    (['48', '0.1', '1,234,567.25'], ['12', '12,345'])
    """
    short = (values > -_GROUPED) & (values < _GROUPED)
    whole = np.flatnonzero(short & (np.floor(values) == values))
    texts = list(map(repr, values.tolist()))
    if values.dtype.kind == "f":
        for k, number in zip(whole.tolist(), values[whole].astype(np.int64).tolist(), strict=True):
            texts[k] = repr(number)
    for k in np.flatnonzero(~short).tolist():
        texts[k] = numeral(values[k])
    return texts


def at_least(probability: float) -> str:
    """Write a probability in per cent, rounded down.

    Examples
    --------
    >>> at_least(0.5999), at_least(0.6), at_least(0.9999), at_least(0.0049)
    ('59%', '60%', '99.9%', '0.4%')
    """
    return _per_cent(probability, math.floor)


def _per_cent(probability: float, rounded: Any) -> str:
    """Whole per cents, and tenths at either end; 1e-9 of them is rounding."""
    tenths = probability < 0.01 or probability > 0.99
    parts = 1000.0 if tenths else 100.0
    number = probability * parts
    near = round(number)
    number = near if abs(number - near) <= 1e-9 else rounded(number)
    return f"{number / (10.0 if tenths else 1.0):g}%"


def points_down(points: float) -> str:
    """Write points of a scorecard, rounded down to whole ones; 1e-9 of them is rounding.

    Examples
    --------
    >>> points_down(619.99), points_down(620.0), points_down(-0.5)
    ('619 points', '620 points', '-1 points')
    """
    near = round(points)
    whole = near if abs(points - near) <= 1e-9 * (1.0 + abs(points)) else math.floor(points)
    return f"{whole} point{'' if whole == 1 else 's'}"


def a_chance(given: str, least: str = "") -> str:
    """Name what a model gives within a sentence: a percentage is a chance, points are points.

    Examples
    --------
    >>> a_chance("55%", "at least "), a_chance("620 points"), a_chance("")
    ('a chance of at least 55%', '620 points', '')
    """
    return f"a chance of {least}{given}" if given.endswith("%") else f"{least}{given}"


def above(value: float) -> str:
    """Write a number rounded up to two digits.

    Examples
    --------
    >>> above(0.0121), above(3.0), above(0.0)
    ('0.013', '3', '0')
    """
    if not 0.0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit * (1.0 - 1e-12)) * unit:.2g}"


def below(value: float, digits: int = 3) -> str:
    """Write a number rounded down to some digits, so that what holds at it holds as written.

    Examples
    --------
    >>> below(0.31499), below(12345.0), below(0.0)
    ('0.314', '12300', '0')
    """
    if value <= 0.0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{math.floor(value / unit * (1.0 + 1e-12)) * unit:.12g}"


def least_typed(least: float, is_enough: Callable[[float], Any]) -> str:
    """Write the least number that is enough in few digits, so that it is enough as written.

    Examples
    --------
    >>> least_typed(0.61234549, lambda number: number >= 0.61234549)
    '0.612346'
    >>> least_typed(0.99999999, lambda number: 0.99999999 <= number < 1.0)
    '0.99999999'
    """
    for digits in range(6, 17):
        near = f"{least:.{digits}g}"
        up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(least)
        for text in (near, f"{float(up):.{digits}g}"):
            if is_enough(float(text)):
                return text
    return repr(least)


def power_of_ten(exponent: int) -> float:
    """Return a power of ten as it reads when written: a power that is computed may be a hair off.

    Examples
    --------
    >>> power_of_ten(-5), power_of_ten(2)
    (1e-05, 100.0)
    """
    return float(f"1e{exponent}")
