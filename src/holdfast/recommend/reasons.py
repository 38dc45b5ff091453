"""Why there is no recourse: the fewest constraints whose release would make one possible."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.actions import ActionSet, CategoryFeature, Compiled, NumberFeature
from holdfast.recommend.numerals import shown
from holdfast.result.result import RecourseResult

# Sets of constraints that are tried, the small ones first.
_MOST_TRIALS = 400

Solve = Callable[[Any, ActionSet], tuple[Compiled, RecourseResult]]


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
    """Name every setting that holds people back and that somebody could lift.

    What is protected is left out, as are facts: settings that are `physical`, and links.
    """
    for name in actions:
        feature = actions[name]
        if not feature.protected:
            for setting, words in _settings(feature):
                if setting not in feature.physical:
                    yield Constraint(name, setting, words)
    if actions.max_changes is not None:
        count = actions.max_changes
        many = f"at most {count} feature{'s' if count > 1 else ''} may change"
        yield Constraint(None, "max_changes", many)


def settings_of(actions: ActionSet) -> int:
    """Count every setting that holds people back, whether or not anybody could lift it."""
    limits = ("possible_lower", "possible_upper")
    total = int(actions.max_changes is not None)
    for name in actions:
        feature = actions[name]
        total += len(list(_settings(feature))) + feature.protected
        total += sum(getattr(feature, limit, None) is not None for limit in limits)
    return total


def _settings(feature: NumberFeature | CategoryFeature) -> Iterator[tuple[str, str]]:
    name = feature.name
    if feature.immutable:
        yield "immutable", f"{name} may not change"
    if feature.direction != "any":
        yield "direction", f"{name} may only go {feature.direction}"
    if isinstance(feature, CategoryFeature):
        if feature.moves is not None:
            yield "moves", f"{name} may only move as listed"
        if feature.allowed is not None:
            yield "allowed", f"{name} may only become one of some levels"
        return
    unit = f" {feature.unit}" if feature.unit else ""
    for setting, words in _NUMBER_WORDS.items():
        value = getattr(feature, setting)
        if value is not None:
            yield setting, f"{name} {words} {shown(value)}{unit}"


_NUMBER_WORDS = {
    "lower": "may not fall below",
    "upper": "may not rise above",
    "max_increase": "may rise by at most",
    "max_decrease": "may fall by at most",
}


def released(actions: ActionSet, constraints: tuple[Constraint, ...]) -> ActionSet:
    """Return a copy of an action set without some of its constraints."""
    free = copy.deepcopy(actions)
    for constraint in constraints:
        if constraint.feature is None:
            free.max_changes = None
            continue
        feature = free[constraint.feature]
        costs = getattr(feature, "cost", None)
        setattr(feature, constraint.setting, _NEUTRAL[constraint.setting])
        if isinstance(costs, dict) and feature.moves is None:
            # what has no cost was not meant to be done, whatever is lifted
            moves: dict[Any, list[Any]] = {}
            for before, after in costs:
                moves.setdefault(before, []).append(after)
            feature.moves = moves
    return free


_NEUTRAL: dict[str, Any] = {
    "immutable": False,
    "direction": "any",
    "moves": None,
    "allowed": None,
    "lower": None,
    "upper": None,
    "max_increase": None,
    "max_decrease": None,
}
