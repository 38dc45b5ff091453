"""Encoded columns as functions of one raw column: what the steps of a pipeline pass on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from holdfast.machinery.numbers import Floats

Back = Callable[[float], Iterable[float]]  # from a value to those that a function takes there


@dataclass(frozen=True)
class Affine:
    """The column ``shift + scale * raw``; `where` is the step that it came out of last.

    A missing value is read as if it were the raw value `fill`; None: it stays missing, or is
    refused on the way (`refuses_missing`). Each of the `codes` is a raw value that stands for a
    missing one, with the raw value that it is read as. What fills it takes `missing_as` for a
    missing value: NaN or None.
    """

    raw: int
    where: str
    shift: float = 0.0
    scale: float = 1.0
    fill: Any = None
    codes: tuple[tuple[Any, Any], ...] = ()
    refuses_missing: bool = False
    missing_as: Any = math.nan

    @property
    def untouched(self) -> bool:
        """Whether the column still is the raw one, which an encoder of categories may read."""
        return self.shift == 0.0 and self.scale == 1.0

    @property
    def takes_missing(self) -> bool:
        """Whether a missing value becomes a number."""
        return self.fill is not None


class Outline(NamedTuple):
    """What is known of a function of a column; as in `RawShape`, but in values of that column.

    `back` leads from its values to those of the column, up to rounding; None: nobody knows them.
    """

    edges: Iterable[float] = ()
    is_flat: bool = False
    is_monotone: bool = False
    has_flat_tails: bool = False
    back: Back | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class RawShape:
    """What is known of a function of a raw number.

    Attributes
    ----------
    edges : tuple of float
        Raw values at which what is flat may jump, up to rounding; what an edge itself belongs to
        is found out.
    is_flat : bool
        Whether it is constant between the edges.
    is_monotone : bool
        Whether between two edges it only rises, or only falls.
    has_flat_tails : bool
        Whether it is constant below the first edge, and above the last one.
    takes_missing : bool
        Whether a missing value becomes a number.
    fill : float or None
        The raw value that a missing one is read as, where it is read as one.
    specials : tuple of float
        Raw values that are codes, and no quantities: nobody can be advised to take one.
    """

    edges: tuple[float, ...] = ()
    is_flat: bool = False
    is_monotone: bool = False
    has_flat_tails: bool = False
    takes_missing: bool = False
    fill: float | None = None
    specials: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Bent(RawShape):
    """A column that is some function of a raw number; which one, the pipeline itself is asked.

    Attributes
    ----------
    refuses_missing : bool
        Whether a step on the way refuses missing values, whatever may come after it.
    back : callable or None
        From a value of the column to the raw ones that have it, up to rounding; None: nobody
        knows them.
    """

    raw: int
    where: str
    refuses_missing: bool = False
    back: Back | None = None

    @property
    def is_constant(self) -> bool:
        """Whether all numbers are encoded as the same."""
        return self.is_flat and not self.edges and not self.specials


@dataclass(frozen=True, eq=False)
class Coded:
    """A column that has one of its `values` for each of the `levels` of a raw column.

    `missing` and `unknown` are the values of a missing level, and of one that is not among them:
    NaN where it goes on as a missing value, None where it is refused. The `specials` are levels
    that stand for a missing one: nobody can be advised to take one. The pipeline takes
    `missing_as` for a missing level: NaN or None. It knows levels that `are_objects` as those of a
    column of objects, even if they are numbers.
    """

    raw: int
    where: str
    levels: tuple[Any, ...]
    values: Floats
    missing: float | None = None
    unknown: float | None = None
    specials: tuple[Any, ...] = ()
    missing_as: Any = math.nan
    are_objects: bool = False


@dataclass(frozen=True)
class Flag:
    """A column that is `present` for all who have a raw value, and `missing` for all others.

    NaN: their value is missing still; None: it is refused.
    """

    raw: int
    where: str
    present: float
    missing: float | None

    @property
    def takes_missing(self) -> bool:
        """Whether a missing value becomes a number."""
        return self.missing is not None and math.isfinite(self.missing)


EncodedColumn = Affine | Bent | Coded | Flag


def rescale(column: EncodedColumn, shift: float, scale: float, where: str) -> EncodedColumn:
    """Return the column ``shift + scale * column``."""
    if not (np.isfinite(shift) and np.isfinite(scale) and scale != 0.0):
        raise ValueError(
            f"{where}: a column becomes {shift} + {scale} * itself, which cannot be undone"
        )

    def moved(value: float | None) -> float | None:
        return None if value is None else shift + scale * value

    if isinstance(column, Affine):
        return replace(
            column, where=where, shift=shift + scale * column.shift, scale=scale * column.scale
        )
    if isinstance(column, Bent):  # the pipeline is asked for its values
        return replace(column, back=_after(column.back, lambda value: [(value - shift) / scale]))
    if isinstance(column, Flag):
        return replace(
            column, present=shift + scale * column.present, missing=moved(column.missing)
        )
    # the step that coded it stays its origin: the columns of one category must have one origin
    return replace(
        column,
        values=shift + scale * column.values,
        missing=moved(column.missing),
        unknown=moved(column.unknown),
    )


def bend(
    column: EncodedColumn,
    where: str,
    outline: Outline,
    *,
    takes_missing: bool = False,
    specials: Iterable[float] = (),
) -> Bent:
    """Return a function of a column; its specials are values of that column, as its edges are.

    Whoever misses the raw value gets a number if the column had one for them already, or if this
    function has (`takes_missing`).
    """
    if not isinstance(column, (Affine, Bent)):
        raise ValueError(f"{where} reads a column that is a category already")
    edges, specials = tuple(outline.edges), tuple(specials)
    takes = column.takes_missing or (takes_missing and not column.refuses_missing)
    if isinstance(column, Bent):
        if column.is_flat:  # so is whatever is made of it, and between the same edges
            return replace(column, where=where, takes_missing=takes)
        if specials or (outline.is_flat and column.back is None):
            raise ValueError(f"{where} bins a column that {column.where} transforms before it")
        cut = [raw for edge in edges for raw in (column.back or _nowhere)(edge)]
        stays_monotone = column.is_monotone and not (edges and column.back is None)
        return replace(
            column,
            where=where,
            edges=tuple(sorted({*column.edges, *cut})),
            is_flat=outline.is_flat,
            is_monotone=outline.is_flat or (outline.is_monotone and stays_monotone),
            takes_missing=takes,
            back=_after(column.back, outline.back),
        )
    if specials and not column.untouched:
        raise ValueError(
            f"{where} has codes {specials} that are not quantities, but reads a column that "
            f"{column.where} changes before it"
        )
    codes = {*map(float, specials), *(float(code) for code, _ in column.codes)}
    return Bent(
        column.raw,
        where,
        edges=tuple(sorted({raw for edge in edges for raw in _unscale(column)(float(edge))})),
        is_flat=outline.is_flat,
        is_monotone=outline.is_flat or outline.is_monotone,
        has_flat_tails=outline.has_flat_tails and not column.codes,
        takes_missing=takes,
        fill=None if column.fill is None else float(column.fill),
        specials=tuple(sorted(codes)),
        refuses_missing=column.refuses_missing,
        back=_after(_unscale(column), outline.back),
    )


def refuse_missing(column: EncodedColumn) -> EncodedColumn:
    """Return the column behind a step that takes no missing values: there are none from there."""
    if isinstance(column, Coded):
        missing, unknown = _unless_nan(column.missing), _unless_nan(column.unknown)
        return replace(column, missing=missing, unknown=unknown)
    if isinstance(column, Flag):
        return replace(column, missing=_unless_nan(column.missing))
    return column if column.takes_missing else replace(column, refuses_missing=True)


def _unless_nan(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _unscale(column: Affine) -> Back:
    return lambda value: [(value - column.shift) / column.scale]


def _after(first: Back | None, second: Back | None) -> Back | None:
    """Return the way back through two functions, of which the second was applied last."""
    if first is None or second is None:
        return None
    return lambda value: [raw for between in second(value) for raw in first(between)]


def _nowhere(value: float) -> Iterable[float]:
    return ()
