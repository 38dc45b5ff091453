"""Encoded columns as functions of one raw column: what the steps of a pipeline pass on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats


@dataclass(frozen=True)
class Affine:
    """The column ``shift + scale * raw``; `where` is the step that it came out of last."""

    raw: int
    where: str
    shift: float = 0.0
    scale: float = 1.0

    @property
    def untouched(self) -> bool:
        """Whether the column still is the raw one, which an encoder of categories may read."""
        return self.shift == 0.0 and self.scale == 1.0


@dataclass(frozen=True, eq=False)
class Coded:
    """A column that has one of its `values` for each of the `levels` of a raw column."""

    raw: int
    where: str
    levels: tuple[Any, ...]
    values: Floats


Column = Affine | Coded


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
    # the step that coded it stays its origin: the columns of one category must have one origin
    return replace(column, values=shift + scale * column.values)
