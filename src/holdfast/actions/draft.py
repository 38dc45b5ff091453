"""A first proposal for an action set, from nothing but a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast._numbers import Floats, check_kind, check_positive, shown
from holdfast.actions.category import CategoryFeature
from holdfast.actions.feature import suggest
from holdfast.actions.number import NumberFeature
from holdfast.encoding.reading import as_table, plain

if TYPE_CHECKING:
    import pandas as pd

COSTS = ("std", "mad", "percentile", "unit")


def draft(
    table: Any, costs: str, switch_cost: float, categories: set[str], units: dict[str, str]
) -> list[NumberFeature | CategoryFeature]:
    """Propose a feature for each column; see `ActionSet.from_data`."""
    if not isinstance(costs, str) or costs not in COSTS:
        raise ValueError(f"costs = {shown(costs)} is not known; there are: {', '.join(COSTS)}")
    check_positive("switch_cost", switch_cost)
    check_kind("units", units, dict, "write units={'age': 'years'}")
    frame = as_table(table)
    names = [str(name) for name in frame.columns]
    for what, given in (("categories", categories), ("units", units)):
        for name in given:
            if name not in names:
                raise ValueError(f"{what}: column {name!r} is not known; {suggest(name, names)}")
    result: list[NumberFeature | CategoryFeature] = []
    for name in frame.columns:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: the name of a column must be a text")
        seen = frame[name].dropna().infer_objects()
        if seen.empty:
            raise ValueError(f"column {name!r} has no value at all; leave it out")
        if name in categories or not _is_number(name, seen):
            result.append(_category(name, seen, switch_cost))
        else:
            result.append(_number(name, seen, costs, units.get(name, "")))
    return result


def unit_cost(values: Floats, costs: str) -> float:
    """Cost of one unit of a number, from the values of all people."""
    spread = 1.0
    if costs == "mad":
        spread = float(np.median(np.abs(values - np.median(values))))
    elif costs == "percentile":
        spread = float(np.percentile(values, 90) - np.percentile(values, 10))
    if costs == "std" or spread == 0.0:
        spread = float(values.std())
    return 1.0 / spread if spread > 0.0 else 1.0


def _is_number(name: str, seen: pd.Series[Any]) -> bool:
    kind = getattr(seen.dtype, "kind", "O")
    if kind in "iuf":
        return True
    if kind in "mMc":
        raise ValueError(
            f"column {name!r} holds {seen.dtype}, which is not understood: make it "
            "a number or a text, or leave it out"
        )
    return False


def _number(name: str, seen: pd.Series[Any], costs: str, unit: str) -> NumberFeature:
    values = seen.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"column {name!r} holds infinite values")
    return NumberFeature(
        name,
        unit=unit,
        lower=plain(seen.min()),
        upper=plain(seen.max()),
        whole=getattr(seen.dtype, "kind", "O") in "iu",
        cost=unit_cost(values, costs),
    )


def _category(name: str, seen: pd.Series[Any], switch_cost: float) -> CategoryFeature:
    levels = [plain(level) for level in seen.unique().tolist()]
    kinds = {type(level).__name__ for level in levels}
    if len(kinds) > 1:
        raise ValueError(f"column {name!r} mixes {' and '.join(sorted(kinds))}; make it one type")
    declared = getattr(seen.dtype, "categories", None)
    if kinds == {"bool"}:
        levels = [False, True]
    elif declared is not None:  # a pandas category has an order of its own
        levels = [plain(level) for level in declared.tolist() if plain(level) in set(levels)]
    else:
        levels = sorted(levels)
    order = levels if getattr(seen.dtype, "ordered", False) else None
    return CategoryFeature(name, levels, order=order, cost=switch_cost)
