"""What is put in place of missing values, and columns that tell where there were any."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.models.encoding.bends import Reader
from holdfast.models.encoding.columns import (
    Affine,
    Bent,
    Coded,
    EncodedColumn,
    Flag,
    refuse_missing,
)
from holdfast.models.encoding.reading import is_missing, plain


def fill(column: EncodedColumn, value: Any, where: str) -> EncodedColumn:
    """Return a column in which `value` stands for what was missing."""
    if isinstance(column, Coded):
        return replace(
            column, missing=_filled(column.missing, value), unknown=_filled(column.unknown, value)
        )
    if isinstance(column, Flag):
        return replace(column, missing=_filled(column.missing, value))
    if column.takes_missing or column.refuses_missing:
        return column
    if isinstance(column, Bent):
        return replace(column, takes_missing=True)
    raw = value if column.untouched else (float(value) - column.shift) / column.scale
    return replace(column, where=where, fill=plain(raw))


def _filled(seen: float | None, value: Any) -> float | None:
    return float(value) if seen is not None and math.isnan(seen) else seen


def _imputer(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Take a SimpleImputer; a column that it saw no value of it may drop."""
    result: list[EncodedColumn] = []
    for column, statistic in zip(columns, step.statistics_, strict=True):
        if is_missing(statistic) and not step.keep_empty_features:
            continue
        result.append(_impute(step, column, plain(statistic), where))
    if step.indicator_ is not None:
        places = step.indicator_.features_
        result += [_told(columns[k], step.missing_values, where) for k in places]
    return result


def _impute(step: Any, column: EncodedColumn, statistic: Any, where: str) -> EncodedColumn:
    if not is_missing(step.missing_values):
        return _recode(column, plain(step.missing_values), statistic, where)
    if step.missing_values is None and not isinstance(statistic, str):
        raise ValueError(
            f"{where}: SimpleImputer with missing_values=None only takes numbers as objects; use "
            "missing_values=np.nan"
        )
    column = fill(column, statistic, where)
    if step.missing_values is None and isinstance(column, Affine):
        column = replace(column, missing_as=None)
    return column


def _recode(column: EncodedColumn, code: Any, statistic: Any, where: str) -> EncodedColumn:
    """Return a column in which a raw value stands for a missing one."""
    column = refuse_missing(column)
    if not (isinstance(column, Affine) and column.untouched):
        raise ValueError(
            f"{where}: SimpleImputer with missing_values={code!r} reads a column that another "
            "step changed before it, which is not supported"
        )
    read_as = [(seen, statistic if value == code else value) for seen, value in column.codes]
    return replace(
        column,
        where=where,
        fill=statistic if column.fill == code else column.fill,
        codes=(*read_as, (code, statistic)),
    )


def _indicator(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Take a MissingIndicator by itself."""
    everything = step.features == "all"
    places = range(len(columns)) if everything else step.features_
    return [_told(columns[k], step.missing_values, where) for k in places]


def _told(column: EncodedColumn, code: Any, where: str) -> EncodedColumn:
    """Return the column that tells whether another one is missing."""
    if not is_missing(code):
        is_raw = isinstance(column, Affine) and column.untouched
        if not is_raw or isinstance(code, str):
            raise ValueError(
                f"{where}: an indicator of missing_values={code!r} is only supported for a raw "
                "column of numbers"
            )
        return Bent(column.raw, where, is_flat=True, specials=(float(code),), refuses_missing=True)
    if isinstance(column, Coded):
        values = np.isnan(column.values).astype(np.float64)
        missing, unknown = _is_nan(column.missing), _is_nan(column.unknown)
        return replace(column, values=values, missing=missing, unknown=unknown)
    if isinstance(column, Flag):
        there = float(math.isnan(column.present))
        return replace(column, present=there, missing=_is_nan(column.missing))
    if isinstance(column, Bent) and not column.is_constant:
        # a function may have no value even where there is a number, up to one of its edges
        takes = not column.refuses_missing
        return replace(column, where=where, is_flat=True, takes_missing=takes, back=None)
    if column.refuses_missing:
        return Flag(column.raw, where, 0.0, None)
    return Flag(column.raw, where, 0.0, 0.0 if column.takes_missing else 1.0)


def _is_nan(value: float | None) -> float | None:
    return None if value is None else float(math.isnan(value))


READERS: dict[str, Reader] = {"SimpleImputer": _imputer, "MissingIndicator": _indicator}
