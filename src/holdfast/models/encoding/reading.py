"""Raw values of people, read one column at a time; a wrong one is a reason, not an exception."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, is_series, shown

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.models.encoding.features import Number

_MOST_SHOWN = 12  # values in an error


class Refusal(NamedTuple):
    """Why a row cannot be used: the value of a column, and what is wrong with such values.

    Where the reason is about more than one value it is a whole sentence, and there is no value.
    """

    name: str
    value: Any
    reason: str
    is_sentence: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether all that is wrong is that there is no value."""
        return not self.is_sentence and is_missing(self.value)

    @property
    def words(self) -> str:
        """The refusal as a sentence."""
        if self.is_sentence:
            return self.reason
        if self.is_missing:
            return f"{self.name} is missing"
        return f"{self.name} = {plain(self.value)!r}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read: values of numbers, positions of levels, and reasons against rows.

    Attributes
    ----------
    numbers : dict of (n,) arrays
        By the name of the column; NaN where there is none.
    levels : dict of (n,) arrays of int
        Position of the level among those of the column; the number of levels where it is missing,
        and one more where it is unknown, if such rows can be encoded; -1 where there is none.
    reasons : dict
        For each row (by position) that cannot be used, why.
    """

    numbers: dict[str, Floats] = field(default_factory=dict)
    levels: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    reasons: dict[int, list[Refusal]] = field(default_factory=dict)

    def read_number(self, name: str, column: pd.Series[Any], *, takes_missing: bool) -> None:
        """Read a column of numbers, which may be missing if it takes that."""
        values = read_numbers(column)
        wrong = ~np.isfinite(values)
        if takes_missing and wrong.any():
            wrong &= ~_are_missing(column)
        for i in np.flatnonzero(wrong):
            self.refuse(int(i), name, column.iloc[int(i)], "a finite number was expected")
        self.numbers[name] = values

    def read_levels(
        self,
        name: str,
        column: pd.Series[Any],
        levels: tuple[Any, ...],
        who: str,
        *,
        takes_missing: bool = False,
        takes_unknown: bool = False,
    ) -> None:
        """Read a column of levels; `who` knows these, and takes others only if that is said."""
        places = positions(column, levels)
        if (takes_missing or takes_unknown) and (places < 0).any():
            missing = _are_missing(column)
            if takes_missing:
                places[missing] = len(levels)
            if takes_unknown:
                # a text that stands for a number: who knows what the encoder makes of it
                odd = _are_texts(column) if _has_only_numbers(levels) else missing
                places[(places < 0) & ~missing & ~odd] = len(levels) + 1
        for i in np.flatnonzero(places < 0):
            known = shorten(levels)
            self.refuse(int(i), name, column.iloc[int(i)], f"{who} has never seen it, only {known}")
        self.levels[name] = places

    def filled(self, number: Number) -> Floats:
        """Return the values of a number, with what missing ones are read as in their place."""
        values = self.numbers[number.name]
        return values if number.fill is None else np.where(np.isnan(values), number.fill, values)

    def take(self, rows: NDArray[Any]) -> Reading:
        """Return what was read in some rows, all of which can be used."""
        return Reading(
            {name: values[rows] for name, values in self.numbers.items()},
            {name: values[rows] for name, values in self.levels.items()},
        )

    @classmethod
    def joined(cls, parts: list[Reading]) -> Reading:
        """Put what was read in several tables, all of which can be used, one below another."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            {name: joined([part.numbers[name] for part in parts]) for name in parts[0].numbers},
            {name: joined([part.levels[name] for part in parts]) for name in parts[0].levels},
        )

    def refuse(self, row: int, name: str, value: Any, reason: str) -> None:
        """Note why the value of a row cannot be used."""
        self._add(row, Refusal(name, value, reason))

    def note(self, row: int, name: str, sentence: str) -> None:
        """Note in a sentence why a row cannot be used; a column stands for those it is about."""
        self._add(row, Refusal(name, None, sentence, is_sentence=True))

    def _add(self, row: int, refusal: Refusal) -> None:
        self.reasons.setdefault(row, []).append(refusal)

    def refused(self) -> list[tuple[int, str]]:
        """List the rows that cannot be used, with a sentence for each."""
        found = sorted(self.reasons.items())
        return [(row, "; ".join(each.words for each in refusals)) for row, refusals in found]


def joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Put columns one below another; a single one is as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def plain(value: Any) -> Any:
    """Return the plain Python value of a numpy scalar."""
    return value.item() if isinstance(value, np.generic) else value


def is_missing(value: Any) -> bool:
    """Whether a single value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def shorten(values: Any) -> str:
    """Spell out values, but not hundreds of them."""
    shown = [repr(value) for value in values]
    rest = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    return ", ".join(shown[:_MOST_SHOWN] + rest)


def as_table(table: Any, name: str = "table") -> pd.DataFrame:
    """Return a data frame; the columns of an array are called x0, x1, ..."""
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()]
            raise ValueError(f"{name} has several columns named {twice[0]!r}")
        if not len(table.columns):
            raise ValueError(f"{name} has no columns")
        return table
    _refuse_no_table(table, name)
    try:
        array = np.asarray(table)
    except ValueError as error:
        raise ValueError(f"{name} cannot be read as a table: {error}") from None
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}; expected a data frame or (n, d)")
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _refuse_no_table(table: Any, name: str) -> None:
    """Refuse what is often given in place of a table, and say how to make one of it."""
    if hasattr(table, "toarray"):
        raise ValueError(f"{name} is a sparse matrix; pass a dense one: {name}.toarray()")
    how = ""
    if isinstance(table, (str, os.PathLike)):
        how = "text, not a table; if it is a path, read the file first, as in pandas.read_csv"
    elif isinstance(table, Mapping):
        how = "a dict, not a table; make one person a data frame with pd.DataFrame([row])"
    elif is_series(table):
        how = (
            "a Series, not a table; select a row with two brackets, as in table.iloc[[0]], and a "
            "column as in table[['income']]"
        )
    if how:
        raise ValueError(f"{name} = {shown(table)} is {how}")


def positions(column: pd.Series[Any], levels: tuple[Any, ...]) -> NDArray[np.int64]:
    """Position of each value among the levels; -1 for what is not among them."""
    import pandas as pd

    known = {level: k for k, level in enumerate(levels)}
    codes, found = pd.factorize(column.array)  # a missing value has the code -1
    levels_found = [known.get(plain(value), -1) for value in found.tolist()]
    place = np.array([*levels_found, -1], dtype=np.int64)
    return np.asarray(place.take(codes), dtype=np.int64)


def _has_only_numbers(levels: tuple[Any, ...]) -> bool:
    return all(isinstance(level, numbers.Real) for level in levels)


def _are_texts(column: pd.Series[Any]) -> NDArray[np.bool_]:
    return np.array([isinstance(value, str) for value in column.tolist()], dtype=bool)


def _are_missing(column: pd.Series[Any]) -> NDArray[np.bool_]:
    return np.asarray(column.isna().to_numpy(), dtype=bool)


def read_numbers(column: pd.Series[Any]) -> Floats:
    """Return a column as floats; NaN for what is missing or no number."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.array(column.to_numpy(), dtype=np.float64)
    if getattr(column.dtype, "kind", "O") in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.array([_float(value) for value in column], dtype=np.float64)


def floats_for_decimals(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with floats in place of exact decimals, which databases give.

    Examples
    --------
    >>> import pandas as pd
    >>> floats_for_decimals(pd.Series([Decimal("0.1"), None])).tolist()
    [0.1, nan]
    """
    if column.dtype != object or not any(isinstance(value, Decimal) for value in column):
        return column
    values = [_of_decimal(value) if isinstance(value, Decimal) else value for value in column]
    return column.__class__(values, column.index, object, column.name).infer_objects()


def _of_decimal(value: Decimal) -> float:
    return math.nan if value.is_nan() else float(value)


def _float(value: Any) -> float:
    if isinstance(value, (numbers.Real, np.bool_)):
        return float(value)
    if isinstance(value, Decimal):
        return _of_decimal(value)
    return math.nan
