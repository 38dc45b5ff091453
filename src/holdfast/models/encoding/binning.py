"""The BinningProcess of optbinning: bins of numbers and groups of levels, with their codes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from holdfast.models.encoding.asking import ANY_NUMBER, ask, cut
from holdfast.models.encoding.coders import Levels, none_of
from holdfast.models.encoding.columns import Affine, EncodedColumn, Outline, bend
from holdfast.models.encoding.reading import is_missing


def read_binning_process(
    step: Any, columns: list[EncodedColumn], where: str
) -> list[EncodedColumn]:
    """Take a BinningProcess: one column for each variable that it has selected.

    Missing values, and levels that it has never seen, it always encodes.
    """
    if len(step.variable_names) != len(columns):
        raise ValueError(
            f"{where}: fitted on {len(step.variable_names)} columns, but it receives {len(columns)}"
        )
    variables = {name: step.get_binned_variable(name) for name in step.variable_names}
    others = [_anything(variable) for variable in variables.values()]
    result: list[EncodedColumn] = []
    for k in step.get_support(indices=True).tolist():
        name = step.variable_names[k]
        params = (step.binning_transform_params or {}).get(name, {})
        here = f"{where} / variable {name!r}"
        if params.get("metric") == "bins":
            raise ValueError(f"{here}: the metric 'bins' gives strings, which are not supported")
        if _is_number(variables[name]):
            result.append(_bent(variables[name], columns[k], here))
            continue
        levels = _coded(variables[name], columns[k], here)
        place = slice(len(result), len(result) + 1)
        answers = cut(ask(step, levels.questions, k, others), place)
        result += levels.coded(answers, step, here)
    return result


def _bent(variable: Any, column: EncodedColumn, where: str) -> EncodedColumn:
    edges = np.asarray(variable.splits, dtype=np.float64)
    is_flat = "PW" not in type(variable).__name__  # or else a polynomial in each bin
    return bend(
        column,
        where,
        Outline(edges, is_flat),
        takes_missing=True,
        specials=[k for k in _special_codes(variable.special_codes) if not isinstance(k, str)],
    )


def _coded(variable: Any, column: EncodedColumn, where: str) -> Levels:
    if not (isinstance(column, Affine) and column.untouched):
        raise ValueError(f"{where}: BinningProcess reads levels that a step before it changed")
    levels = _levels(variable)
    kinds = {type(level) for level in levels}  # the codes of all variables are given to each
    codes = [code for code in _special_codes(variable.special_codes) if type(code) in kinds]
    levels = [level for level in levels if level not in codes]
    return Levels(column, levels, math.nan, none_of(levels), codes)


def _is_number(variable: Any) -> bool:
    return getattr(variable, "dtype", "numerical") == "numerical"


def _levels(variable: Any) -> list[Any]:
    levels = [level for group in variable.splits for level in np.asarray(group, object).tolist()]
    return [level for level in levels if not is_missing(level)]


def _special_codes(codes: Any) -> Iterable[Any]:
    if codes is None:
        return
    for code in codes.values() if isinstance(codes, dict) else codes:
        values = np.asarray(code).ravel().tolist()
        yield from (value for value in values if not is_missing(value))


def _anything(variable: Any) -> Any:
    return ANY_NUMBER if _is_number(variable) else next(iter(_levels(variable)), "")
