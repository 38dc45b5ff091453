"""A first proposal for an action set, from nothing but a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.actions.category import CategoryFeature
from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import EPS, Floats, check_kind, check_positive, shown
from holdfast.machinery.numerals import power_of_ten
from holdfast.machinery.settings import suggest
from holdfast.models.encoding.reading import as_table, floats_for_decimals, plain

if TYPE_CHECKING:
    import pandas as pd

COSTS = ("std", "mad", "percentile", "unit")
# A step is at least a standard deviation divided by the first, and where the values have too many
# digits to tell their resolution, at most divided by the second.
_FINEST, _COARSEST = 1e5, 1e2


class DraftCosts(NamedTuple):
    """How changes are charged for; see `ActionSet.from_data`."""

    kind: str  # one of COSTS
    switch_cost: float
    fixed_cost: float


class Kinds(NamedTuple):
    """Names of columns that are special; see `ActionSet.from_data`."""

    categories: set[str]
    immutable: set[str]
    protected: set[str]


def draft(
    table: Any, costs: DraftCosts, kinds: Kinds, units: dict[str, str]
) -> list[NumberFeature | CategoryFeature]:
    """Propose a feature for each column; see `ActionSet.from_data`."""
    if not isinstance(costs.kind, str) or costs.kind not in COSTS:
        raise ValueError(f"costs = {shown(costs.kind)} is not known; available: {', '.join(COSTS)}")
    check_positive("switch_cost", costs.switch_cost)
    check_kind("units", units, dict, "write units={'age': 'years'}")
    frame = as_table(table)
    if not len(frame):
        raise ValueError("the table has no rows, so nothing can be learnt from it")
    names = [str(name) for name in frame.columns]
    for what, given in {**kinds._asdict(), "units": units}.items():
        for name in given:
            if name not in names:
                raise ValueError(f"{what}: column {name!r} is not known; {suggest(name, names)}")
    result: list[NumberFeature | CategoryFeature] = []
    for name in frame.columns:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: a column name must be a string")
        column = frame[name] if name in kinds.categories else floats_for_decimals(frame[name])
        seen = column.dropna().infer_objects()
        if seen.empty:
            raise ValueError(f"column {name!r} has no values; leave it out")
        if name in kinds.categories or not _is_number(name, seen):
            result.append(_category(name, seen, costs))
        else:
            result.append(_number(name, seen, costs, units.get(name, "")))
        result[-1].set(immutable=name in kinds.immutable, protected=name in kinds.protected)
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
            f"column {name!r} holds {seen.dtype}, which is not supported: convert it to numbers "
            "or text, or leave it out"
        )
    return False


def grid_step(values: Floats) -> float | None:
    """Return a step that people can type, from the values of all people; None: whole numbers.

    The resolution of the values, unless that is absurdly fine for their spread.
    """
    spread = float(values.std()) or 1.0
    finest = math.floor(math.log10(spread / _FINEST))
    for exponent in range(0, finest - 1, -1):
        steps = values / 10.0**exponent
        if (np.abs(steps - np.round(steps)) <= 1e-9 + 4.0 * EPS * np.abs(steps)).all():
            return None if exponent == 0 else power_of_ten(exponent)
    return power_of_ten(math.floor(math.log10(spread / _COARSEST)))


def _number(name: str, seen: pd.Series[Any], costs: DraftCosts, unit: str) -> NumberFeature:
    values = seen.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"column {name!r} holds infinite values")
    whole = bool((values == np.floor(values)).all())
    lower, upper = plain(seen.min()), plain(seen.max())
    return NumberFeature(
        name,
        unit=unit,
        lower=int(lower) if whole else lower,
        upper=int(upper) if whole else upper,
        possible_lower=0 if (values >= 0.0).all() else None,
        step=None if whole else grid_step(values),
        integer=whole,
        cost=unit_cost(values, costs.kind),
        fixed_cost=costs.fixed_cost,
    )


def _category(name: str, seen: pd.Series[Any], costs: DraftCosts) -> CategoryFeature:
    levels = [plain(level) for level in seen.unique().tolist()]
    kinds = {type(level).__name__ for level in levels}
    if len(kinds) > 1:
        raise ValueError(
            f"column {name!r} mixes {' and '.join(sorted(kinds))}; convert it to one type"
        )
    declared = getattr(seen.dtype, "categories", None)
    if kinds == {"bool"}:
        levels = [False, True]
    elif declared is not None:  # a pandas category has an order of its own
        levels = [plain(level) for level in declared.tolist() if plain(level) in set(levels)]
    else:
        levels = sorted(levels)
    order = levels if getattr(seen.dtype, "ordered", False) else None
    return CategoryFeature(name, levels, order=order, cost=costs.switch_cost)
