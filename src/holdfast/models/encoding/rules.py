"""What a transformer of anybody's own may say of itself, so that it is understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.columns import Affine, Coded, Column, bend


@dataclass(frozen=True)
class ColumnRule:
    """What becomes of one input column."""

    edges: tuple[float, ...] | None = None
    levels: tuple[Any, ...] | None = None
    width: int = 1
    takes_missing: bool = False
    specials: tuple[float, ...] = ()
    is_kept: bool = False


def read_rules(step: Any, columns: list[Column], where: str) -> list[Column]:
    rules = list(step.holdfast_rules())
    result: list[Column] = []
    begin = 0
    for k, (column, rule) in enumerate(zip(columns, rules, strict=True)):
        if rule.is_kept:
            result.append(column)
        elif rule.levels is None:
            bent = bend(
                column,
                where,
                edges=rule.edges or (),
                is_flat=rule.edges is not None,
                takes_missing=rule.takes_missing,
                specials=rule.specials,
            )
            result += [bent] * rule.width
        else:
            assert isinstance(column, Affine)
            codes = _ask(step, rules, k, list(rule.levels))[:, begin : begin + rule.width]
            rest = []
            unknown = 99.0 if isinstance(rule.levels[0], int) else "?unknown?"
            for takes, value in ((rule.takes_missing, None), (True, unknown)):
                try:
                    row = _ask(step, rules, k, [value])[0] if takes else None
                except ValueError:
                    row = None
                none = np.full(rule.width, np.nan)
                rest.append(none if row is None else row[begin : begin + rule.width])
            for j in range(rule.width):
                result.append(
                    Coded(column.raw, where, rule.levels, codes[:, j], rest[0][j], rest[1][j])
                )
        begin += rule.width
    return result


def _ask(step: Any, rules: list[ColumnRule], k: int, values: list[Any]) -> Floats:
    import pandas as pd

    names = getattr(step, "feature_names_in_", None)
    rows: dict[Any, Any] = {}
    for j, rule in enumerate(rules):
        default = rule.levels[0] if rule.levels else 0.0
        rows[j] = pd.Series(
            values if j == k else [default] * len(values),
            dtype=object if j == k or rule.levels else float,
        )
    frame = pd.DataFrame(rows)
    if names is not None:
        frame.columns = pd.Index(list(names), dtype=object)
    made = step.transform(frame if names is not None else frame.to_numpy())
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)


def read_binning(step: Any, columns: list[Column], where: str) -> list[Column]:
    chosen = step.get_support(names=True)
    rules = []
    for name in step.variable_names:
        binning = step.get_binned_variable(name)
        if name not in chosen:
            rules.append(ColumnRule(edges=(), width=0))
        elif binning.dtype == "numerical":
            codes = tuple(map(float, binning.special_codes or ()))
            rules.append(
                ColumnRule(tuple(map(float, binning.splits)), takes_missing=True, specials=codes)
            )
        else:
            levels = [level for group in binning.splits for level in np.asarray(group).tolist()]
            rules.append(ColumnRule(levels=tuple(levels), takes_missing=True))
    step.holdfast_rules = lambda: rules
    return read_rules(step, columns, where)
