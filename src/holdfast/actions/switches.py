"""Which level may become which, as a table of costs between the levels of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.actions.category import CategoryFeature
from holdfast.machinery.numbers import Floats


def switch_costs(feature: CategoryFeature, levels: tuple[Any, ...]) -> Floats:
    """Cost of each switch between levels, (m, m): inf where it is not allowed, 0 for staying."""
    m = len(levels)
    known = np.array([level in feature.levels for level in levels])
    allowed = known[:, None] & known[None, :]
    if feature.stays:
        allowed[:] = False
    if feature.moves is not None:
        table = {(a, b) for a, targets in feature.moves.items() for b in targets}
        allowed &= np.array([[(a, b) in table for b in levels] for a in levels])
    if feature.allowed is not None:
        allowed &= np.isin(np.arange(m), [k for k in range(m) if levels[k] in feature.allowed])
    rise = _rises(feature, levels)
    if feature.direction == "up":
        allowed &= rise > 0
    elif feature.direction == "down":
        allowed &= rise < 0
    elif feature.cost_by == "step":
        allowed &= ~np.isnan(rise)
    np.fill_diagonal(allowed, False)
    costs = np.full((m, m), np.inf)
    if isinstance(feature.cost, dict):
        for a, b in np.argwhere(allowed):
            costs[a, b] = _pair_cost(feature, levels[a], levels[b]) + feature.fixed_cost
    else:
        steps = np.abs(rise) if feature.cost_by == "step" else np.ones((m, m))
        costs[allowed] = feature.cost * steps[allowed] + feature.fixed_cost
    np.fill_diagonal(costs, 0.0)
    return costs


def all_switch_costs(
    feature: CategoryFeature,
    levels: tuple[Any, ...],
    codes: tuple[Any, ...] = (),
) -> Floats:
    """Cost of each level by the level one has, (m + 2, m + 2): last a missing, an unknown one.

    Whose level is missing may give one, if that has a cost; whose level is unknown keeps it. Nobody
    takes either of the two, nor one of the `codes`, which are no levels that people could have.
    """
    m = len(levels)
    costs = np.full((m + 2, m + 2), np.inf)
    costs[:m, :m] = switch_costs(feature, levels)
    if feature.provide_cost is not None and not feature.stays:
        may_take = feature.levels if feature.allowed is None else feature.allowed
        costs[m, [k for k in range(m) if levels[k] in may_take]] = feature.provide_cost
    costs[:, [k for k in range(m) if levels[k] in codes]] = np.inf
    np.fill_diagonal(costs, 0.0)
    return costs


def _rises(feature: CategoryFeature, levels: tuple[Any, ...]) -> Floats:
    """How far up each switch goes in the order; NaN for levels that are not in it."""
    rank = {level: float(k) for k, level in enumerate(feature.order or ())}
    place = np.array([rank.get(level, np.nan) for level in levels])
    return np.asarray(place[None, :] - place[:, None])


def _pair_cost(feature: CategoryFeature, before: Any, after: Any) -> float:
    if (before, after) not in feature.cost:
        raise ValueError(
            f"{feature.name}: a switch from {before!r} to {after!r} is allowed but has no cost; "
            "give it a cost, or do not allow it"
        )
    return float(feature.cost[before, after])
