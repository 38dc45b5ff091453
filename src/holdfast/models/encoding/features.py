"""What each raw column becomes: a number, a curve or a category; gathered from encoded columns."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.columns import Affine, Bent, Coded, EncodedColumn, Flag, RawShape


@dataclass(frozen=True)
class Number:
    """A raw column that the classifier reads as ``shift + scale * raw``, in one encoded column.

    A missing value is read as the raw value `fill`; None: it cannot be encoded. The columns of
    `indicators` tell whether it is missing, and nothing else.

    Examples
    --------
    >>> age = Number("age", column=0, shift=-3.5, scale=0.1)
    >>> age.encode(40.0), age.decode(0.5)
    (0.5, 40.0)
    """

    name: str
    column: int
    shift: float
    scale: float
    fill: float | None = None
    indicators: tuple[int, ...] = ()

    @property
    def takes_missing(self) -> bool:
        """Whether a missing value can be encoded."""
        return self.fill is not None

    @property
    def columns(self) -> NDArray[np.int64]:
        """The encoded columns: its own, and those that tell whether it is missing."""
        return np.array([self.column, *self.indicators], dtype=np.int64)

    def as_curve(self) -> Curve:
        """Return the number as a curve whose columns move together with what is missing."""
        where = "an indicator of what is missing"
        return Curve(
            self.name, self.columns, where, is_monotone=True, takes_missing=True, fill=self.fill
        )

    def encode(self, raw: Any) -> Any:
        """Return the encoded value of a raw one (or of an array of them)."""
        return self.shift + self.scale * raw

    def decode(self, encoded: Any) -> Any:
        """Return the raw value of an encoded one (or of an array of them)."""
        return (encoded - self.shift) / self.scale


@dataclass(frozen=True, eq=False)
class Curve(RawShape):
    """A raw number that the classifier reads as some function of it, in one or more columns.

    What each value is encoded as the pipeline itself is asked, see `Encoding.ask`.

    Attributes
    ----------
    columns : (c,) array of int
        The encoded columns.
    where : str
        The step that bends it, for messages.
    """

    name: str
    columns: NDArray[np.int64]
    where: str


@dataclass(frozen=True, eq=False)
class Category:
    """A raw column with levels, each of which has its values in some encoded columns.

    Attributes
    ----------
    columns : (c,) array of int
        The encoded columns.
    levels : tuple
        The levels that the encoder knows, but for a missing value.
    codes : (m, c) array
        The encoded values of each level.
    missing, unknown : (c,) arrays or None
        Those of a missing level, and of one that is none of the levels; None: such a row cannot
        be encoded.
    specials : tuple
        Levels that stand for a missing one: nobody can be advised to take one.
    missing_as : object
        What the pipeline takes for a missing level: NaN or None.
    are_objects : bool
        Whether the pipeline knows the levels as those of a column of objects.

    Examples
    --------
    >>> import numpy as np
    >>> home = Category("home", np.array([3]), ("own", "rent"), np.array([[0.0], [1.0]]))
    >>> home.decode(np.array([[1.0], [0.0]]))
    ['rent', 'own']
    """

    name: str
    columns: NDArray[np.int64]
    levels: tuple[Any, ...]
    codes: Floats
    missing: Floats | None = None
    unknown: Floats | None = None
    specials: tuple[Any, ...] = ()
    missing_as: Any = math.nan
    are_objects: bool = False

    @property
    def takes_missing(self) -> bool:
        """Whether a missing level can be encoded."""
        return self.missing is not None

    @cached_property
    def all_codes(self) -> Floats:
        """The encoded values of each level, then those of a missing one, then of an unknown one.

        NaN where there are none. Positions of `Reading.levels` are rows of it.
        """
        none = np.full(len(self.columns), np.nan)
        rest = [none if values is None else values for values in (self.missing, self.unknown)]
        return np.vstack([self.codes, *rest])

    @cached_property
    def level_array(self) -> NDArray[Any]:
        """The levels as an array: of numbers or booleans where the pipeline knows them as such."""
        if not self.are_objects and len({isinstance(level, bool) for level in self.levels}) == 1:
            array = np.array(self.levels)
            if array.dtype.kind in "biuf":
                return array
        return np.array(self.levels, dtype=object)

    def given(self, table: Any, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return raw values as the pipeline takes them, by their places among `all_codes`.

        What is unknown stays as it was given in the `table`.
        """
        if places.max(initial=0) < len(self.levels):
            return self.level_array.take(places)
        values = np.array(table[self.name], dtype=object)
        known = places < len(self.levels)
        values[known] = self.level_array[places[known]]
        values[places == len(self.levels)] = self.missing_as
        are_numbers = all(isinstance(value, numbers.Real) for value in values)
        return values.astype(np.float64) if are_numbers and self._has_numbers else values

    @cached_property
    def has_plain_levels(self) -> bool:
        """Whether all levels are numbers, or booleans, or texts."""
        kinds = [type(level) is str for level in self.levels]
        return self.level_array.dtype.kind != "O" or all(kinds)

    @property
    def _has_numbers(self) -> bool:
        return self.level_array.dtype.kind in "iuf"

    def decode(self, encoded: Floats) -> list[Any]:
        """Return the level of each row of encoded values."""
        distance = np.abs(encoded[:, None, :] - self.codes).max(axis=2)
        nearest = distance.argmin(axis=1)
        far = np.flatnonzero(distance[np.arange(len(encoded)), nearest] > 1e-6)
        if far.size:
            raise ValueError(
                f"column {self.name!r}: {encoded[far[0]]} in row {far[0]} is not an encoded level; "
                f"the levels {list(self.levels)} are encoded as {self.codes.tolist()}"
            )
        return [self.levels[k] for k in nearest]


RawFeature = Number | Curve | Category


def gather(columns: list[EncodedColumn], names: list[str]) -> list[RawFeature]:
    """Sort the encoded columns by the raw column that they come from."""
    owners: dict[int, list[int]] = {}
    for j, column in enumerate(columns):
        owners.setdefault(column.raw, []).append(j)
    return [_feature(names[raw], owners[raw], columns) for raw in sorted(owners)]


def _feature(name: str, places: list[int], columns: list[EncodedColumn]) -> RawFeature:
    parts = [columns[j] for j in places]
    coded = [part for part in parts if isinstance(part, Coded)]
    if coded:
        return _category(name, places, parts, coded)
    affine = [j for j in places if isinstance(columns[j], Affine)]
    told = [j for j in places if _is_constant(columns[j])]
    if len(affine) == 1 and len(affine) + len(told) == len(places):
        number: Any = columns[affine[0]]
        if not number.codes:
            fill = float(number.fill) if _all_take_missing(parts) else None
            return Number(name, affine[0], number.shift, number.scale, fill, tuple(told))
    return _curve(name, places, parts)


def _is_constant(column: EncodedColumn) -> bool:
    return isinstance(column, Flag) or (isinstance(column, Bent) and column.is_constant)


def _all_take_missing(parts: list[EncodedColumn]) -> bool:
    return all(part.takes_missing for part in parts if not isinstance(part, Coded))


def _curve(name: str, places: list[int], parts: list[EncodedColumn]) -> Curve:
    bent = [part for part in dict.fromkeys(parts) if isinstance(part, Bent)]  # many are the same
    affine = [part for part in parts if isinstance(part, Affine)]
    fills = [float(part.fill) for part in bent if part.fill is not None]
    fills += [float(part.fill) for part in affine if part.fill is not None]
    codes = {code for part in bent for code in part.specials}
    codes |= {float(code) for part in affine for code, _ in part.codes}
    is_flat = not affine and all(part.is_flat for part in bent)
    return Curve(
        name,
        np.array(places, dtype=np.int64),
        " and ".join(dict.fromkeys(part.where for part in parts)),
        edges=tuple(sorted({edge for part in bent for edge in part.edges})),
        is_flat=is_flat,
        is_monotone=all(part.is_flat or part.is_monotone for part in bent)
        and (is_flat or not codes),
        has_flat_tails=not affine and all(part.is_flat or part.has_flat_tails for part in bent),
        takes_missing=_all_take_missing(parts),
        fill=fills[0] if fills else None,
        specials=tuple(sorted(codes)),
    )


def _category(
    name: str, places: list[int], parts: list[EncodedColumn], coded: list[Coded]
) -> Category:
    levels = tuple(dict.fromkeys(level for part in coded for level in part.levels))
    codes = np.stack([_at_levels(name, part, levels) for part in parts], axis=1)
    ends = {}
    for what in ("missing", "unknown"):
        values = np.array([_at_end(part, what) for part in parts])
        ends[what] = values if np.isfinite(values).all() else None
    known = [bool(np.isfinite(values).all()) for values in codes]
    if not all(known):  # who has another one cannot be encoded
        ends["unknown"] = None
    if len({part.missing_as is None for part in coded}) > 1:  # no value is missing for all
        ends["missing"] = None
    return Category(
        name,
        np.array(places, dtype=np.int64),
        tuple(level for level, kept in zip(levels, known, strict=True) if kept),
        codes[known],
        specials=tuple(dict.fromkeys(code for part in coded for code in part.specials)),
        missing_as=coded[0].missing_as,
        are_objects=any(part.are_objects for part in coded),
        **ends,
    )


def _at_levels(name: str, column: EncodedColumn, levels: tuple[Any, ...]) -> Floats:
    """Return the values of a column at the levels of a category; NaN: it has none."""
    if isinstance(column, Coded):
        values = dict(zip(column.levels, column.values.tolist(), strict=True))
        unknown = _at_end(column, "unknown")
        return np.array([values.get(level, unknown) for level in levels])
    if isinstance(column, Flag):
        return np.full(len(levels), column.present)
    are_numbers = all(isinstance(k, (int, float)) and not isinstance(k, bool) for k in levels)
    if isinstance(column, Affine) and are_numbers and not column.codes:
        return np.asarray(column.shift + column.scale * np.array(levels, dtype=np.float64))
    raise ValueError(
        f"column {name!r} is read as a category and by {column.where}, which is not supported"
    )


def _at_end(column: EncodedColumn, what: str) -> float:
    """Return the value of a column where the level is missing, or unknown; NaN: it has none."""
    if isinstance(column, Flag) and what == "unknown":
        return column.present
    if isinstance(column, (Coded, Flag)):
        value = getattr(column, what)
        return math.nan if value is None else float(value)
    if isinstance(column, Affine) and what == "missing" and column.fill is not None:
        return column.shift + column.scale * float(column.fill)
    return math.nan
