"""Features of a discrete problem: which change, and how to hold some of them still."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled
from holdfast.actions.joint import Joint
from holdfast.discrete import DiscreteProblem, Links
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import frozen


def take_people(problem: DiscreteProblem, who: NDArray[np.int64]) -> DiscreteProblem:
    """Return the problem of some people, by position; the same one may come several times."""
    return problem if _are_all(who, problem.problem.n_rows) else problem.take(who)


def _are_all(who: NDArray[np.int64], n: int) -> bool:
    """Whether these are all of several people, in their order."""
    return n > 1 and np.array_equal(who, np.arange(n))


def take_links(links: Links, who: NDArray[np.int64]) -> Links:
    """Return the links of some people."""
    return Links(links.matrix, links.lower[who], links.upper[who])


def changed_features(
    compiled: Compiled, who: NDArray[np.int64], recourse: Floats, levels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Say which of ``compiled.names`` a recourse of some people changes, (people, features)."""
    everybody = compiled.problem.problem.X
    start = everybody if _are_all(who, len(everybody)) else everybody[who]
    parts = [(recourse != start)[:, compiled.number_columns]]
    for g, known in enumerate(compiled.levels.values()):
        if isinstance(known, Joint):
            parts.append(known.changed(who, levels[:, g]))
        else:
            parts.append((levels[:, g] != compiled.problem.current[who, g])[:, None])
    return np.concatenate(parts, axis=1)


def hold_still(
    problem: DiscreteProblem,
    compiled: Compiled,
    who: NDArray[np.int64],
    held: NDArray[np.bool_],
) -> DiscreteProblem:
    """Return the problem of some people in which some features stay as they are.

    `who` are the people of `problem`; `held` has a row for each of them, and a column for each of
    ``compiled.names``.
    """
    base, columns = problem.problem, compiled.number_columns
    stay = np.zeros(base.X.shape, dtype=bool)
    stay[:, columns] = held[:, : len(columns)]
    lower, upper = np.where(stay, base.X, base.lower), np.where(stay, base.X, base.upper)
    level_costs, at = [], len(columns)
    pairs = zip(compiled.levels.values(), problem.option_costs, strict=True)
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
    return replace(problem, problem=bounded, option_costs=level_costs)
