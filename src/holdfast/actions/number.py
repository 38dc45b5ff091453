"""Features that are numbers: where they may go, in which steps, and at what cost.

The rules go into the problem in `ranges`, and in `cells` and `reach` where the model bends or bins
the number; `check._check_number` says them again in raw units, knowing nothing of that.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from holdfast.actions.feature import DIRECTIONS, PROVIDE, Feature, FeatureError


@dataclass
class NumberFeature(Feature):
    """A number, in the units of the table.

    Whatever the settings, a person may always stay: somebody who is outside `lower` and `upper` now
    is only asked not to go further out.

    Attributes
    ----------
    name : str
    unit : str
        Used in sentences: "years".
    immutable : bool
        It may not change at all.
    protected : bool
        It may not change, and no explanation names it as being in the way: a person's sex or age.
    direction : str
        "any", "up" (it may only rise) or "down".
    lower, upper : number or None
        Where it may go.
    possible_lower, possible_upper : number or None
        What is possible at all: an amount is never negative. These hold even if `lower` or `upper`
        is lifted.
    max_increase, max_decrease : number or None
        By how much it may change from its current value.
    physical : sequence of str
        Settings that are facts, which nobody can lift: ``["direction"]``, if it only ever rises.
    step : number or None
        It may change to multiples of this, counted from 0, or stay where it is.
    integer : bool
        It may only change to whole numbers. With a `step` as well, both apply.
    cost : number
        Cost of a change by one unit.
    fixed_cost : number
        Cost of any change, whatever its size.
    provide_cost : number or None
        Cost of filling in the number where it is missing, on top of `cost` for each unit away from
        what the model assumes meanwhile, if that is a number; None: it stays missing.

    Examples
    --------
    >>> age = NumberFeature("age", lower=19, upper=75, integer=True)
    >>> age.direction = "up"
    >>> age.set(max_increase=2, cost=0.1)
    >>> age.lower = 80
    Traceback (most recent call last):
        ...
    holdfast.actions.feature.FeatureError: age: lower = 80 is above upper = 75
    >>> age.imutable = True
    Traceback (most recent call last):
        ...
    ValueError: feature 'age' has no setting 'imutable'; did you mean 'immutable'? available: \
unit, immutable, protected, direction, lower, upper, possible_lower, possible_upper, max_increase, \
max_decrease, physical, step, integer, cost, fixed_cost, provide_cost
    """

    LIFTABLE = ("immutable", "direction", "lower", "upper", "max_increase", "max_decrease")
    name: str
    unit: str = ""
    immutable: bool = False
    protected: bool = False
    direction: str = "any"
    lower: float | None = None
    upper: float | None = None
    possible_lower: float | None = None
    possible_upper: float | None = None
    max_increase: float | None = None
    max_decrease: float | None = None
    physical: Any = ()
    step: float | None = None
    integer: bool = False
    cost: float = 1.0
    fixed_cost: float = 0.0
    provide_cost: float | None = None

    @property
    def kind(self) -> str:
        """What is shown as its type."""
        return "whole number" if self.integer else "number"

    @property
    def grid(self) -> float:
        """It may change to multiples of this; 0: any number."""
        return float(self.step or (1 if self.integer else 0))

    @property
    def lowest(self) -> float:
        """The lowest value that anybody may be advised; -inf without a limit."""
        ends = [end for end in (self.lower, self.possible_lower) if end is not None]
        return max(ends, default=-math.inf)

    @property
    def highest(self) -> float:
        """The highest value that anybody may be advised; inf without a limit."""
        ends = [end for end in (self.upper, self.possible_upper) if end is not None]
        return min(ends, default=math.inf)

    def _clean(self, settings: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(settings["unit"], str):
            self._refuse("unit", settings["unit"], "a string")
        for key in ("immutable", "protected", "integer"):
            self._flag(settings, key)
        self._choice(settings, "direction", DIRECTIONS)
        for key in ("lower", "upper", "possible_lower", "possible_upper"):
            self._number(settings, key, "a finite number, or None for no bound", optional=True)
        for key in ("max_increase", "max_decrease"):
            allowed = "a positive number or 0, or None for no limit"
            self._number(settings, key, allowed, least=0.0, optional=True)
        allowed = "a positive number, or None for any change"
        self._number(settings, "step", allowed, above=0.0, optional=True)
        self._number(settings, "cost", "a positive number", above=0.0)
        self._number(settings, "fixed_cost", "a positive number or 0", least=0.0)
        self._number(settings, "provide_cost", PROVIDE, least=0.0, optional=True)
        self._facts(settings)
        self._agree(settings)
        return settings

    def _agree(self, settings: dict[str, Any]) -> None:
        ends = [key for key in _ENDS if settings[key] is not None]
        for low, high in itertools.pairwise(ends):
            if settings[low] > settings[high]:
                reason = f"{low} = {settings[low]} is above {high} = {settings[high]}"
                raise FeatureError(self.name, reason)
        lower, upper, step = settings["lower"], settings["upper"], settings["step"]
        if not settings["integer"]:
            return
        if step is not None and step != int(step):
            self._refuse("step", step, "a whole number, because integer = True")
        if None not in (lower, upper) and math.ceil(lower) > math.floor(upper):
            reason = f"there is no whole number between lower = {lower} and upper = {upper}"
            raise FeatureError(self.name, reason)


_ENDS = ("possible_lower", "lower", "upper", "possible_upper")
