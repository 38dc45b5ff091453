"""Scalers, encoders and imputers: what each does to its columns, from its fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.columns import Affine, Coded, Column, rescale

Reader = Callable[[Any, list[Column], str], list[Column]]


def _imputer(step: Any, columns: list[Column], where: str) -> list[Column]:
    """Take a SimpleImputer that leaves complete rows as they are; others are refused later."""
    if step.add_indicator:
        raise ValueError(f"{where}: SimpleImputer with add_indicator=True is not understood")
    missing = step.missing_values
    if missing is not None and missing == missing and type(missing).__name__ != "NAType":
        raise ValueError(
            f"{where}: SimpleImputer with missing_values={missing!r} changes rows that are "
            "complete; only missing values (NaN, None) are understood"
        )
    if any(value is None or value != value for value in step.statistics_):
        raise ValueError(f"{where}: SimpleImputer saw a column without any value, and drops it")
    return columns


def _scaler(numbers: Callable[[Any, int], tuple[Floats, Floats]]) -> Reader:
    """Make the reader of a scaler from the (shifts, scales) that it applies."""

    def read(step: Any, columns: list[Column], where: str) -> list[Column]:
        if getattr(step, "clip", False):
            raise ValueError(f"{where}: {type(step).__name__} with clip=True is not understood")
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


def _coder(code: Callable[[Any, int, int], Floats]) -> Reader:
    """Make the reader of an encoder from the (levels, columns) codes of its k-th input."""

    def read(step: Any, columns: list[Column], where: str) -> list[Column]:
        name = type(step).__name__
        if step.min_frequency is not None or step.max_categories is not None:
            raise ValueError(
                f"{where}: {name} with min_frequency or max_categories (infrequent categories) "
                "is not understood"
            )
        result: list[Column] = []
        for k, column in enumerate(columns):
            levels = np.asarray(step.categories_[k], dtype=object).tolist()
            if not (isinstance(column, Affine) and column.untouched):
                raise ValueError(f"{where}: {name} reads a column that a step before it changed")
            # a missing value is no level that anybody could choose; who has one is refused
            known = [i for i, level in enumerate(levels) if level is not None and level == level]
            codes = code(step, k, len(levels))[known]
            kept = tuple(levels[i] for i in known)
            result += [Coded(column.raw, where, kept, codes[:, j]) for j in range(codes.shape[1])]
        return result

    return read


def _one_hot(step: Any, k: int, n_levels: int) -> Floats:
    codes = np.eye(n_levels)
    dropped = None if step.drop_idx_ is None else step.drop_idx_[k]
    return codes if dropped is None else np.delete(codes, int(dropped), axis=1)


def _ordinal(step: Any, k: int, n_levels: int) -> Floats:
    return np.arange(float(n_levels))[:, None]


READERS: dict[str, Reader] = {
    "SimpleImputer": _imputer,
    "StandardScaler": _scaler(_standard),
    "MinMaxScaler": _scaler(_min_max),
    "MaxAbsScaler": _scaler(_max_abs),
    "RobustScaler": _scaler(_robust),
    "OneHotEncoder": _coder(_one_hot),
    "OrdinalEncoder": _coder(_ordinal),
}
