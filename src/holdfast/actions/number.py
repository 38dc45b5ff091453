"""Features that are numbers: where they may go, in which steps, and at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from holdfast.actions.feature import DIRECTIONS, Feature


@dataclass
class NumberFeature(Feature):
    """A number, in the units of the table.

    Whatever the settings, a person may always stay: whoever is outside `lower` and `upper` now is
    asked no more than not to go further out.

    Attributes
    ----------
    name : str
    unit : str
        For sentences: "years".
    immutable : bool
        It may not change at all.
    direction : str
        "any", "up" (it may only rise) or "down".
    lower, upper : number or None
        Where it may go.
    most_up, most_down : number or None
        By how much it may change, from where the person is.
    step : number or None
        It changes by whole multiples of this.
    whole : bool
        It may become whole numbers only. With a `step` as well, both hold.
    cost : number
        Of a change by one unit.

    Examples
    --------
    >>> age = NumberFeature("age", lower=19, upper=75, whole=True)
    >>> age.direction = "up"
    >>> age.set(most_up=2, cost=0.1)
    >>> age.lower = 80
    Traceback (most recent call last):
        ...
    ValueError: age: lower = 80 is above upper = 75
    >>> age.imutable = True
    Traceback (most recent call last):
        ...
    ValueError: feature 'age' has no setting 'imutable'; did you mean 'immutable'? there are: \
unit, immutable, direction, lower, upper, most_up, most_down, step, whole, cost
    """

    name: str
    unit: str = ""
    immutable: bool = False
    direction: str = "any"
    lower: float | None = None
    upper: float | None = None
    most_up: float | None = None
    most_down: float | None = None
    step: float | None = None
    whole: bool = False
    cost: float = 1.0

    @property
    def kind(self) -> str:
        """What is shown as its type."""
        return "whole number" if self.whole else "number"

    def _clean(self, settings: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(settings["unit"], str):
            self._refuse("unit", settings["unit"], "a text")
        self._flag(settings, "immutable")
        self._flag(settings, "whole")
        self._choice(settings, "direction", DIRECTIONS)
        for key in ("lower", "upper"):
            self._number(settings, key, "a finite number, or None for no bound", -math.inf)
        for key in ("most_up", "most_down"):
            self._number(settings, key, "a positive number or 0, or None for no limit", 0.0)
        self._number(settings, "step", "a positive number, or None for any change", 0.0)
        if settings["cost"] is None:
            self._refuse("cost", None, "a positive number")
        self._number(settings, "cost", "a positive number", 0.0)
        self._agree(settings)
        return settings

    def _agree(self, settings: dict[str, Any]) -> None:
        lower, upper, step = settings["lower"], settings["upper"], settings["step"]
        if lower is not None and upper is not None:
            if lower > upper:
                raise ValueError(f"{self.name}: lower = {lower} is above upper = {upper}")
            if settings["whole"] and math.ceil(lower) > math.floor(upper):
                raise ValueError(
                    f"{self.name}: there is no whole number between lower = {lower} and "
                    f"upper = {upper}"
                )
        if settings["whole"] and step is not None and step != int(step):
            self._refuse("step", step, "a whole number, because whole = True")
