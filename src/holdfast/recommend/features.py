"""Features of a discrete problem: which change, and how to hold some of them still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Posed
from holdfast.actions.joint import Joint
from holdfast.discrete import DiscreteProblem
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import frozen


def take_people(problem: DiscreteProblem, who: NDArray[np.int64]) -> DiscreteProblem:
    """Return the problem of some people, by position; the same one may come several times."""
    return problem if _are_all(who, problem.base.n_rows) else problem.take(who)


def _are_all(who: NDArray[np.int64], n: int) -> bool:
    """Whether these are all of several people, in their order."""
    return n > 1 and np.array_equal(who, np.arange(n))


def changed_features(
    posed: Posed, who: NDArray[np.int64], recourse: Floats, levels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Say which of ``posed.names`` a recourse of some people changes, (people, features)."""
    everybody = posed.problem.base.X
    start = everybody if _are_all(who, len(everybody)) else everybody[who]
    changed = [(recourse != start)[:, posed.number_columns]]
    for g, known in enumerate(posed.levels.values()):
        if isinstance(known, Joint):
            changed.append(known.changed(who, levels[:, g]))
        else:
            changed.append((levels[:, g] != posed.problem.current[who, g])[:, None])
    return np.concatenate(changed, axis=1)


def hold_still(
    problem: DiscreteProblem,
    posed: Posed,
    who: NDArray[np.int64],
    held: NDArray[np.bool_],
) -> DiscreteProblem:
    """Return the problem of some people in which some features stay as they are.

    `who` are the people of `problem`; `held` has a row for each of them, and a column for each of
    ``posed.names``.
    """
    base, columns = problem.base, posed.number_columns
    stay = np.zeros(base.X.shape, dtype=bool)
    stay[:, columns] = held[:, : len(columns)]
    lower, upper = np.where(stay, base.X, base.lower), np.where(stay, base.X, base.upper)
    level_costs, at = [], len(columns)
    pairs = zip(posed.levels.values(), problem.level_costs, strict=True)
    for g, (known, costs) in enumerate(pairs):
        if isinstance(known, Joint):
            count = len(known.bundle.parents)
            barred = (known.changes[who] & held[:, None, at : at + count]).any(axis=2)
        else:
            count = 1
            barred = held[:, at, None] & (np.arange(costs.shape[1]) != problem.current[:, g, None])
        level_costs.append(np.where(barred, np.inf, costs))
        at += count
    bounded = replace(base, lower=frozen(lower), upper=frozen(upper))
    return replace(problem, base=bounded, level_costs=level_costs)
