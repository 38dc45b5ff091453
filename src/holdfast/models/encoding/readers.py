"""Scalers and selectors; and the readers of all steps that do something to single columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import bends, coders, imputers
from holdfast.models.encoding.asking import at_missing
from holdfast.models.encoding.bends import Reader, clipped
from holdfast.models.encoding.binning import read_binning_process
from holdfast.models.encoding.columns import EncodedColumn, refuse_missing, rescale
from holdfast.models.encoding.functions import read_function


def _scaler(numbers: Callable[[Any, int], tuple[Floats, Floats]]) -> Reader:
    """Make the reader of a scaler from the (shifts, scales) that it applies."""

    def read(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
        if getattr(step, "clip", False):
            return clipped(step, columns, where)
        shifts, scales = numbers(step, len(columns))
        return [
            rescale(column, float(shift), float(scale), where)
            for column, shift, scale in zip(columns, shifts, scales, strict=True)
        ]

    return read


def _centred(centre: Any, scale: Any, n: int) -> tuple[Floats, Floats]:
    scales = 1.0 / (np.ones(n) if scale is None else np.asarray(scale, dtype=np.float64))
    centres = np.zeros(n) if centre is None else np.asarray(centre, dtype=np.float64)
    return -centres * scales, scales


def _standard(step: Any, n: int) -> tuple[Floats, Floats]:
    return _centred(step.mean_ if step.with_mean else None, step.scale_, n)


def _min_max(step: Any, n: int) -> tuple[Floats, Floats]:
    return np.asarray(step.min_, dtype=np.float64), np.asarray(step.scale_, dtype=np.float64)


def _robust(step: Any, n: int) -> tuple[Floats, Floats]:
    return _centred(step.center_, step.scale_, n)


def _max_abs(step: Any, n: int) -> tuple[Floats, Floats]:
    return _centred(None, step.scale_, n)


def _selector(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Take a step that only drops columns."""
    if at_missing(step, len(columns)) is None:
        columns = [refuse_missing(column) for column in columns]
    return [column for column, kept in zip(columns, step.get_support(), strict=True) if kept]


SELECTORS = [
    "GenericUnivariateSelect",
    "RFE",
    "RFECV",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "VarianceThreshold",
]

READERS: dict[str, Reader] = {
    "StandardScaler": _scaler(_standard),
    "MinMaxScaler": _scaler(_min_max),
    "MaxAbsScaler": _scaler(_max_abs),
    "RobustScaler": _scaler(_robust),
    "FunctionTransformer": read_function,
    "BinningProcess": read_binning_process,
    **imputers.READERS,
    **coders.READERS,
    **bends.READERS,
    **dict.fromkeys(SELECTORS, _selector),
}
