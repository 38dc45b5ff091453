"""What one person wants of an action set: it becomes tighter or dearer for them, never looser."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from holdfast.actions.category import CategoryFeature
from holdfast.actions.feature import FeatureError, plain_number
from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import refuse, refuse_number, to_number
from holdfast.machinery.settings import suggest
from holdfast.models.encoding.reading import plain, shorten


class PreferenceError(FeatureError):
    """What a person wants of a feature cannot be had, for the `reason`."""

    def __str__(self) -> str:
        """Say what is wrong, and with the preference for which feature."""
        return f"preference for {self.feature!r}: {self.reason}"


@dataclass(frozen=True)
class Preference:
    """What one person wants for one feature.

    Attributes
    ----------
    locked : bool
        They cannot or will not change it.
    change_by : number or None
        A number may change by at most this much, up or down.
    lower, upper : number or None
        A number may not go below, or above. Somebody who is already there is only asked not to go
        further out.
    avoid : sequence
        Levels of a category that they will not accept.
    times : number
        How many times as costly it is for them as for others, at least 1: all costs of the feature
        are multiplied by this.

    Examples
    --------
    >>> Preference(change_by=3, times=2)
    Preference(locked=False, change_by=3, lower=None, upper=None, avoid=(), times=2)
    >>> Preference(times=0.5)
    Traceback (most recent call last):
        ...
    ValueError: times = 0.5 is not allowed; it must be a finite number of at least 1
    """

    locked: bool = False
    change_by: float | None = None
    lower: float | None = None
    upper: float | None = None
    avoid: tuple[Any, ...] = ()
    times: float = 1.0

    def __post_init__(self) -> None:
        """Check everything that can be checked without the feature."""
        if not isinstance(self.locked, bool):
            refuse("locked", self.locked, "True or False")
        for name in ("change_by", "lower", "upper"):
            value, least = getattr(self, name), 0.0 if name == "change_by" else -math.inf
            if value is None:
                continue
            if not (math.isfinite(number := to_number(value)) and number >= least):
                allowed = "a positive number or 0" if name == "change_by" else "a finite number"
                refuse_number(name, value, f"{allowed}, or None for no limit")
            object.__setattr__(self, name, plain_number(value))
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower} is above upper = {self.upper}")
        if isinstance(self.avoid, (str, Mapping)) or not hasattr(self.avoid, "__iter__"):
            refuse("avoid", self.avoid, "a list of levels")
        object.__setattr__(self, "avoid", tuple(plain(level) for level in self.avoid))
        if not 1.0 <= to_number(self.times) < math.inf:
            refuse_number("times", self.times, "a finite number of at least 1")
        object.__setattr__(self, "times", plain_number(self.times))

    @classmethod
    def read(cls, given: Any) -> Preference:
        """Return a preference, or the one that a dict of its fields describes."""
        if isinstance(given, Preference):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"{given!r} is neither a Preference nor a dict of its fields")
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(f"a preference has no {name!r}; {suggest(name, known)}")
        return cls(**given)

    def settings(self, feature: NumberFeature | CategoryFeature) -> dict[str, Any]:
        """Return the settings of a feature that this changes, each only tighter or dearer.

        Examples
        --------
        >>> duration = NumberFeature("duration", lower=4, upper=72, max_increase=12)
        >>> Preference(change_by=24, lower=1, upper=48).settings(duration)
        {'upper': 48, 'max_decrease': 24}
        """
        settings: dict[str, Any] = {"immutable": True} if self.locked else {}
        if isinstance(feature, NumberFeature):
            settings |= self._of_number(feature)
        else:
            settings |= self._of_category(feature)
        if self.times != 1:
            settings |= self._costs(feature)
        return settings

    def _of_number(self, feature: NumberFeature) -> dict[str, Any]:
        if self.avoid:
            raise ValueError("avoid is for levels, but it is a number; use lower or upper")
        settings: dict[str, Any] = {}
        for name, value, end, what in (
            ("lower", self.lower, feature.highest, "its upper bound"),
            ("upper", self.upper, feature.lowest, "its lower bound"),
        ):
            sign = 1.0 if name == "lower" else -1.0
            if value is None:
                continue
            if sign * value > sign * end:
                side = "above" if name == "lower" else "below"
                raise ValueError(f"{name} = {value} is {side} {end:.12g}, {what}; lock it instead")
            own = feature.lowest if name == "lower" else feature.highest
            if sign * value > sign * own:
                settings[name] = value
        for name in ("max_increase", "max_decrease") if self.change_by is not None else ():
            limit = getattr(feature, name)
            if limit is None or self.change_by < limit:
                settings[name] = self.change_by
        return settings

    def _of_category(self, feature: CategoryFeature) -> dict[str, Any]:
        for name in ("change_by", "lower", "upper"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} is for numbers, but it is a {feature.kind}; use avoid to rule out "
                    "levels"
                )
        for level in self.avoid:
            if level not in feature.levels:
                raise ValueError(
                    f"avoid names the level {level!r}, which is not one of "
                    f"{shorten(feature.levels)}"
                )
        if not self.avoid:
            return {}
        there = feature.levels if feature.allowed is None else feature.allowed
        left = tuple(level for level in there if level not in self.avoid)
        return {"allowed": left} if left else {"immutable": True}

    def _costs(self, feature: NumberFeature | CategoryFeature) -> dict[str, Any]:
        settings: dict[str, Any] = {"fixed_cost": self.times * feature.fixed_cost}
        cost: Any = feature.cost
        if isinstance(cost, dict):
            settings["cost"] = {pair: self.times * value for pair, value in cost.items()}
        else:
            settings["cost"] = self.times * cost
        if feature.provide_cost is not None:
            settings["provide_cost"] = self.times * feature.provide_cost
        return settings
