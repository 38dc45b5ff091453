"""Features that are categories: which level may become which, and at what cost.

The rules go into the problem in `switches`; `check._check_category` asks for them again in raw
units, by `CategoryFeature.refusal`, knowing nothing of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.actions.feature import DIRECTIONS, PROVIDE, Feature, FeatureError, plain_number
from holdfast.machinery.numbers import if_text, to_number
from holdfast.models.encoding.reading import is_missing, plain, shorten


@dataclass
class CategoryFeature(Feature):
    """A category, or a boolean: a category with the levels False and True.

    A switch must be allowed by every setting that is given. Staying is always allowed.

    Attributes
    ----------
    name : str
    levels : sequence
        All levels: strings, numbers or booleans.
    immutable : bool
        It may not change at all.
    protected : bool
        It may not change, and no explanation names it as being in the way: a person's sex.
    moves : dict or None
        For each level, those that it may become; a level that is not a key may not change.
    order : sequence or None
        Levels from the lowest to the highest. A level outside the order can be neither left nor
        chosen where the order counts: with a `direction`, or with ``cost_by="step"``.
    direction : str
        "any", or along the order "up" or "down".
    allowed : sequence or None
        The only levels that may be chosen.
    physical : sequence of str
        Settings that are facts, which nobody can lift: ``["direction"]``, if it only ever rises.
    cost : number or dict
        Cost of a switch; or a dict with a cost for each pair ``(from, to)`` of levels.
    cost_by : str
        "switch", or "step": the cost is per step in the order.
    fixed_cost : number
        Cost of any switch, on top of `cost`.
    provide_cost : number or None
        Cost of filling in a level where it is missing: any one of those `allowed`. None: it stays
        missing.

    Examples
    --------
    >>> degree = CategoryFeature("degree", ["none", "Bachelor", "Master"])
    >>> degree.set(order=["none", "Bachelor", "Master"], direction="up", cost_by="step", cost=2)
    >>> degree.switch_cost("none", "Master")
    4.0
    >>> degree.refusal("Master", "Bachelor")
    'may only move up in the order'
    >>> degree.moves = {"Master": ["Doctor"]}
    Traceback (most recent call last):
        ...
    holdfast.actions.feature.FeatureError: degree: moves names the level 'Doctor', which is not \
one of 'none', 'Bachelor', 'Master'
    """

    LIFTABLE = ("immutable", "direction", "moves", "allowed")
    name: str
    levels: Any
    immutable: bool = False
    protected: bool = False
    moves: Any = None
    order: Any = None
    direction: str = "any"
    allowed: Any = None
    physical: Any = ()
    cost: Any = 1.0
    cost_by: str = "switch"
    fixed_cost: float = 0.0
    provide_cost: float | None = None

    @property
    def kind(self) -> str:
        """What is shown as its type."""
        booleans = all(isinstance(level, bool) for level in self.levels)
        return "boolean" if booleans else "category"

    def refusal(self, before: Any, after: Any) -> str | None:
        """Say why a switch between two levels is not allowed; None if it is."""
        if self.stays:
            return "may not change"
        given = is_missing(before)
        if given and self.provide_cost is None:
            return "may not be given where it is missing"
        for level in (after,) if given else (before, after):
            if is_missing(level) or level not in self.levels:
                return f"has no level {level!r}, only {shorten(self.levels)}"
        if given:
            is_allowed = self.allowed is None or after in self.allowed
            return None if is_allowed else f"may only become {shorten(self.allowed)}"
        if self.moves is not None and after not in self.moves.get(before, ()):
            reachable = shorten(self.moves.get(before, ())) or "nothing else"
            return f"may become {reachable} from there"
        if self.allowed is not None and after not in self.allowed:
            return f"may only become {shorten(self.allowed)}"
        if self.direction == "any" and self.cost_by == "switch":
            return None
        if before not in self.order or after not in self.order:
            return f"may only move between levels of its order, {shorten(self.order)}"
        rise = self.order.index(after) - self.order.index(before)
        if (self.direction == "up" and rise < 0) or (self.direction == "down" and rise > 0):
            return f"may only move {self.direction} in the order"
        return None

    def switch_cost(self, before: Any, after: Any) -> float:
        """Return what a switch between two levels costs."""
        if is_missing(before):
            return 0.0 if is_missing(after) else float(self.provide_cost or 0.0)
        if before == after:
            return 0.0
        if isinstance(self.cost, dict):
            if (before, after) not in self.cost:
                raise FeatureError(
                    self.name, f"no cost is given for the change from {before!r} to {after!r}"
                )
            return float(self.cost[before, after]) + self.fixed_cost
        steps = 1
        if self.cost_by == "step":
            steps = abs(self.order.index(after) - self.order.index(before))
        return float(steps * self.cost + self.fixed_cost)

    def _clean(self, settings: dict[str, Any]) -> dict[str, Any]:
        for key in ("immutable", "protected"):
            self._flag(settings, key)
        self._choice(settings, "direction", DIRECTIONS)
        self._choice(settings, "cost_by", ("switch", "step"))
        levels = settings["levels"] = self._sequence("levels", settings["levels"])
        for level in levels:
            if is_missing(level) or not isinstance(level, (str, int, float)):
                self._refuse("levels", list(levels), "texts, numbers or booleans")
        for key in ("order", "allowed"):
            if settings[key] is not None:
                settings[key] = self._sequence(key, settings[key])
                self._known(key, settings[key], levels)
        if settings["moves"] is not None:
            settings["moves"] = self._clean_moves(settings["moves"], levels)
        settings["cost"] = self._clean_cost(settings["cost"], levels)
        self._number(settings, "fixed_cost", "a positive number or 0", least=0.0)
        self._number(settings, "provide_cost", PROVIDE, least=0.0, optional=True)
        self._facts(settings)
        if settings["order"] is None:
            for key, free in (("direction", "any"), ("cost_by", "switch")):
                if settings[key] != free:
                    raise FeatureError(self.name, f"{key} = {settings[key]!r} needs an order")
        if settings["cost_by"] == "step" and isinstance(settings["cost"], dict):
            reason = "cost_by = 'step' needs one cost, not one for each pair"
            raise FeatureError(self.name, reason)
        return settings

    def _sequence(self, key: str, values: Any) -> tuple[Any, ...]:
        if isinstance(values, (str, Mapping)) or not hasattr(values, "__iter__"):
            self._refuse(key, values, "a list of levels")
        result = tuple(plain(value) for value in values)
        if any(getattr(value, "__hash__", None) is None for value in result):
            self._refuse(key, list(result), "texts, numbers or booleans")
        if not result or len(set(result)) < len(result):
            self._refuse(key, list(result), "a list of different levels, at least one")
        return result

    def _known(self, key: str, values: Any, levels: tuple[Any, ...]) -> None:
        for value in values:
            if value not in levels:
                reason = f"{key} names the level {value!r}, which is not one of {shorten(levels)}"
                raise FeatureError(self.name, reason)

    def _clean_moves(self, moves: Any, levels: tuple[Any, ...]) -> dict[Any, tuple[Any, ...]]:
        if not isinstance(moves, Mapping):
            self._refuse("moves", moves, "a dict that maps each level to a list of levels")
        self._known("moves", moves, levels)
        result = {}
        for level, targets in moves.items():
            if isinstance(targets, (str, Mapping)) or not hasattr(targets, "__iter__"):
                self._refuse(f"moves[{level!r}]", targets, "a list of levels")
            result[plain(level)] = tuple(plain(target) for target in targets)
            self._known("moves", result[plain(level)], levels)
        return result

    def _clean_cost(self, cost: Any, levels: tuple[Any, ...]) -> Any:
        if not isinstance(cost, Mapping):
            return self._positive("cost", cost)
        result = {}
        for pair, value in cost.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                self._refuse(
                    "cost", pair, "a number, or a dict that maps pairs (from, to) to numbers"
                )
            self._known("cost", pair, levels)
            result[plain(pair[0]), plain(pair[1])] = self._positive(f"cost[{pair!r}]", value)
        return result

    def _positive(self, key: str, value: Any) -> float:
        if not 0.0 < to_number(value) < math.inf:
            self._refuse(key, value, "a positive number" + if_text(value))
        return plain_number(value)
