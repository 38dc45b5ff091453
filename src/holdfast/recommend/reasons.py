"""Why there is no recourse: the fewest constraints whose release would make one possible."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.actions import ActionSet, CategoryFeature, Compiled
from holdfast.discrete import DiscreteAnswer

# Sets of constraints that are tried, the small ones first.
_MOST_TRIALS = 400

Solve = Callable[[Any, ActionSet], tuple[Compiled, DiscreteAnswer]]


class Constraint(NamedTuple):
    """One setting of an action set that can be released."""

    feature: str | None
    setting: str
    words: str


@dataclass(frozen=True)
class Release:
    """Constraints that block recourse together, and what it would cost without them.

    Attributes
    ----------
    constraints : tuple of Constraint
    cost : float
        Cost of the recourse that their release makes possible.
    """

    constraints: tuple[Constraint, ...]
    cost: float

    @property
    def words(self) -> str:
        """The constraints, in words."""
        return " and ".join(constraint.words for constraint in self.constraints)


def find_releases(person: Any, actions: ActionSet, solve: Solve) -> list[Release]:
    """Return the smallest sets of constraints whose release helps, the cheapest first.

    Releasing more never hurts: so none helps if all of them together do not (the list is empty
    then). Where a smallest set is not found within 400 trials, one is returned of which nothing
    can be left out.
    """

    def cost_without(chosen: tuple[Constraint, ...]) -> float:
        _, answer = solve(person, released(actions, chosen))
        return float(answer.cost[0]) if len(answer) else np.inf

    constraints = tuple(constraints_of(actions))
    if not np.isfinite(cost_without(constraints)):
        return []
    trials = 0
    for size in range(1, len(constraints) + 1):
        trials += math.comb(len(constraints), size)
        if trials > _MOST_TRIALS:
            break
        costs = {c: cost_without(c) for c in itertools.combinations(constraints, size)}
        found = [Release(chosen, cost) for chosen, cost in costs.items() if np.isfinite(cost)]
        if found:
            return sorted(found, key=lambda release: release.cost)
    needed = constraints
    for constraint in constraints:
        fewer = tuple(c for c in needed if c != constraint)
        if np.isfinite(cost_without(fewer)):
            needed = fewer
    return [Release(needed, cost_without(needed))]


def constraints_of(actions: ActionSet) -> Iterator[Constraint]:
    """Name every setting that holds people back."""
    for name in actions:
        feature = actions[name]
        unit = f" {feature.unit}" if getattr(feature, "unit", "") else ""
        if feature.immutable:
            yield Constraint(name, "immutable", f"{name} may not change")
        if feature.direction != "any":
            yield Constraint(name, "direction", f"{name} may only go {feature.direction}")
        if isinstance(feature, CategoryFeature):
            if feature.moves is not None:
                yield Constraint(name, "moves", f"{name} may only move as listed")
            if feature.allowed is not None:
                yield Constraint(name, "allowed", f"{name} may only become one of some levels")
            continue
        for setting, words in _NUMBER_WORDS.items():
            value = getattr(feature, setting)
            if value is not None:
                yield Constraint(name, setting, f"{name} {words} {value:g}{unit}")
    if actions.most_changes is not None:
        many = f"at most {actions.most_changes} features may change"
        yield Constraint(None, "most_changes", many)
    for k, link in enumerate(actions.links):
        yield Constraint(None, f"link {k}", f"{link}")


_NUMBER_WORDS = {
    "lower": "may not fall below",
    "upper": "may not rise above",
    "most_up": "may rise by at most",
    "most_down": "may fall by at most",
}


def released(actions: ActionSet, constraints: tuple[Constraint, ...]) -> ActionSet:
    """Return a copy of an action set without some of its constraints."""
    free = copy.deepcopy(actions)
    links = {constraint.setting for constraint in constraints}
    kept = [link for k, link in enumerate(actions.links) if f"link {k}" not in links]
    free = ActionSet([free[name] for name in free], kept, free.most_changes)
    for constraint in constraints:
        if constraint.feature is not None:
            setattr(free[constraint.feature], constraint.setting, _NEUTRAL[constraint.setting])
        elif constraint.setting == "most_changes":
            free.most_changes = None
    return free


_NEUTRAL: dict[str, Any] = {
    "immutable": False,
    "direction": "any",
    "moves": None,
    "allowed": None,
    "lower": None,
    "upper": None,
    "most_up": None,
    "most_down": None,
}
