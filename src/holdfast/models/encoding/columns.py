"""Encoded columns as functions of one raw column: what the steps of a pipeline pass on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats


@dataclass(frozen=True)
class Affine:
    """The column ``shift + scale * raw``; `where` is the step that it came out of last.

    A missing value is read as if it were the raw value `fill`; None: it stays missing.
    """

    raw: int
    where: str
    shift: float = 0.0
    scale: float = 1.0
    fill: Any = None

    @property
    def untouched(self) -> bool:
        """Whether the column still is the raw one, which an encoder of categories may read."""
        return self.shift == 0.0 and self.scale == 1.0


@dataclass(frozen=True, eq=False)
class Bent:
    """A column that is some function of a raw number; which one, the pipeline itself is asked.

    Attributes
    ----------
    edges : tuple of float
        Raw values at which it may jump, up to rounding; what an edge itself belongs to is found
        out.
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

    raw: int
    where: str
    edges: tuple[float, ...] = ()
    is_flat: bool = False
    is_monotone: bool = False
    has_flat_tails: bool = False
    takes_missing: bool = False
    fill: float | None = None
    specials: tuple[float, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether all numbers are encoded as the same: it only tells who has none."""
        return self.is_flat and not self.edges and not self.specials


@dataclass(frozen=True, eq=False)
class Coded:
    """A column that has one of its `values` for each of the `levels` of a raw column.

    `missing` and `unknown` are the values of a missing level, and of one that is not among them;
    NaN where there is none: such a row cannot be encoded.
    """

    raw: int
    where: str
    levels: tuple[Any, ...]
    values: Floats
    missing: float = math.nan
    unknown: float = math.nan


Column = Affine | Bent | Coded


def rescale(column: Column, shift: float, scale: float, where: str) -> Column:
    """Return the column ``shift + scale * column``."""
    if not (np.isfinite(shift) and np.isfinite(scale) and scale != 0.0):
        raise ValueError(
            f"{where}: a column becomes {shift} + {scale} * itself, which cannot be undone"
        )
    if isinstance(column, Affine):
        return replace(
            column, where=where, shift=shift + scale * column.shift, scale=scale * column.scale
        )
    if isinstance(column, Bent):  # the pipeline is asked for its values
        return column
    # the step that coded it stays its origin: the columns of one category must have one origin
    return replace(
        column,
        values=shift + scale * column.values,
        missing=shift + scale * column.missing,
        unknown=shift + scale * column.unknown,
    )


def bend(
    column: Column,
    where: str,
    *,
    edges: Iterable[float] = (),
    is_flat: bool = False,
    is_monotone: bool = False,
    has_flat_tails: bool = False,
    takes_missing: bool = False,
    specials: Iterable[float] = (),
) -> Bent:
    """Return a function of a column; its edges and specials are values of that column.

    Whoever misses the raw value gets a number if the column had one for them already, or if this
    function has (`takes_missing`).
    """
    if isinstance(column, Coded):
        raise ValueError(f"{where} reads a column that is a category already")
    if isinstance(column, Bent):
        if not column.is_flat and (is_flat or tuple(edges) or tuple(specials)):
            raise ValueError(f"{where} cuts a column into bins that {column.where} bends before it")
        return replace(
            column,
            where=where,
            is_monotone=column.is_flat or (column.is_monotone and is_monotone),
            takes_missing=column.takes_missing or takes_missing,
        )
    back = [(float(edge) - column.shift) / column.scale for edge in edges]
    codes = [(float(code) - column.shift) / column.scale for code in specials]
    fill = None if column.fill is None else float(column.fill)
    return Bent(
        column.raw,
        where,
        tuple(sorted(set(back))),
        is_flat,
        is_flat or is_monotone,
        has_flat_tails,
        takes_missing or fill is not None,
        fill,
        tuple(sorted(set(codes))),
    )
