"""What lies between the values that are tried of a bent number without a step.

Such a number may take any value, and only some are tried. Between two neighbours a monotone
function is nowhere better than at the better one of both. So a level that has the better end's
code, at the nearer end's cost, stands for all that lies between: no recourse is better than the
best one with such levels, and that is proven about it as about any other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.actions.arrays import Arrays
from holdfast.actions.cells import Cells
from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import range_of
from holdfast.discrete import DiscreteProblem, Group
from holdfast.machinery.numbers import Floats


def relaxed_problem(problem: DiscreteProblem, arrays: Arrays) -> DiscreteProblem | None:
    """Return the problem with everything that lies between the values that are tried.

    None where all values that a number may take are tried.
    """
    groups, costs = list(problem.groups), list(problem.level_costs)
    changes = None if problem.level_changes is None else list(problem.level_changes)
    is_relaxed = False
    for g, name in enumerate(arrays.levels):
        feature = arrays.actions[name]
        if name not in arrays.cells or not arrays.cells[name].has_untried:
            continue
        cells, values = arrays.cells[name], arrays.reading.numbers[name]
        fill = getattr(arrays.encoding[name], "fill", None)
        codes = _better_ends(problem, name, groups[g], cells)
        groups[g] = Group(groups[g].columns, np.vstack([cells.codes, codes]))
        costs[g] = np.hstack([costs[g], _nearer_ends(feature, cells, values, fill)])
        if changes is not None:
            more = np.ones((len(changes[g]), len(codes)), dtype=np.int64)
            changes[g] = np.hstack([changes[g], more])
        is_relaxed = True
    if not is_relaxed:
        return None
    return replace(problem, groups=groups, level_costs=costs, level_changes=changes)


def _better_ends(problem: DiscreteProblem, name: str, group: Group, cells: Cells) -> Floats:
    """Return, for all that lies between two neighbours, codes that are at least as good."""
    base, columns = problem.base, group.columns
    room = base.robust_to.radius * base.robust_to.feature_scale(base.n_features)[columns]
    rises = (base.coef[:, columns] >= room).all(axis=0)
    falls = (base.coef[:, columns] <= -room).all(axis=0)
    count = cells.n_numbers
    below, above = cells.codes[: count - 1], cells.codes[1:count]
    unknown = ~(rises | falls) & (below != above).any(axis=0)
    if unknown.any():
        raise ValueError(
            f"{name}: the model transforms it non-linearly, and it has no step. Values between "
            "those tried cannot be bounded, because some models of the set reward larger numbers "
            "and others smaller ones: give it a step"
        )
    return np.where(rises, np.maximum(below, above), np.minimum(below, above))


def _nearer_ends(
    feature: NumberFeature, cells: Cells, values: Floats, fill: float | None
) -> Floats:
    """Return what it costs each person at least to go somewhere between two neighbours."""
    count = cells.n_numbers
    low, high = cells.high[: count - 1], cells.low[1:count]
    here = np.where(np.isnan(values), 0.0, values)[:, None]
    ranges = range_of(feature, here[:, 0])
    away = np.maximum(np.maximum(low - here, here - high), 0.0)
    costs = feature.cost * away + feature.fixed_cost
    is_out = (low >= ranges.upper[:, None]) | (high <= ranges.lower[:, None])
    costs[is_out | ~cells.is_advice[cells.place(values)][:, None]] = np.inf
    missing = np.isnan(values)
    if missing.any():
        given = np.inf if feature.provide_cost is None else feature.provide_cost
        presumed = 0.0 if fill is None else np.abs(np.clip(fill, low, high) - fill)
        is_out = (low > feature.highest) | (high < feature.lowest)
        costs[missing] = np.where(is_out, np.inf, given + feature.cost * presumed)
    return np.asarray(costs)
