"""What all features have in common: settings that are checked together whenever one is set."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from holdfast.machinery.numbers import if_text, to_number
from holdfast.machinery.settings import suggest

DIRECTIONS = ("any", "up", "down")
PROVIDE = "a positive number or 0, or None where it stays missing"


class FeatureError(ValueError):
    """A setting of a feature is refused.

    Attributes
    ----------
    feature : str
        Its name.
    reason : str
        What is wrong.

    Examples
    --------
    >>> str(FeatureError("age", "there is none"))
    'age: there is none'
    """

    def __init__(self, feature: str, reason: str) -> None:
        super().__init__(feature, reason)
        self.feature, self.reason = feature, reason

    def __str__(self) -> str:
        """Say which feature, and what is wrong with it."""
        return f"{self.feature}: {self.reason}"


class Feature:
    """A column of the table, and what a person can change about it.

    Settings are attributes. Setting one checks it, also against the others; unknown ones are
    errors. To change several that would contradict each other one at a time, use `set`.
    """

    LIFTABLE: tuple[str, ...]  # settings that hold people back; those named `physical` are facts
    name: str
    immutable: bool
    protected: bool
    physical: Any
    _ready = False
    _watch: Callable[[str, dict[str, Any]], None] | None = None
    _lifted: Mapping[str, Any] = MappingProxyType({})  # what settings become that are lifted

    def __post_init__(self) -> None:
        """Check the settings given at the start."""
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"the feature name {self.name!r} is not a string")
        self._store(self._clean(self.settings()))
        object.__setattr__(self, "_ready", True)

    def __setattr__(self, key: str, value: Any) -> None:
        """Set one setting, checked."""
        if self._ready and not key.startswith("_"):
            self.set(**{key: value})
        else:
            object.__setattr__(self, key, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the settings, and not the action set that watches over them."""
        settings = {name: copy.deepcopy(value, memo) for name, value in self.settings().items()}
        other: Feature = type(self)(self.name, **settings)  # type: ignore[call-arg]
        other._lifted = self._lifted
        return other

    def tighten(self, settings: dict[str, Any]) -> None:
        """Set settings over which somebody may change their mind.

        Should one of them be lifted, it becomes what it was before, which may be a fact.
        """
        before = {name: getattr(self, name) for name in settings}
        new = {name: value for name, value in settings.items() if value != before[name]}
        facts = [name for name in self.physical if name not in new]
        self.set(**new, physical=facts)
        self._lifted = {**self._lifted, **{name: before[name] for name in new}}

    def set(self, **settings: Any) -> None:
        """Set several settings at once; if any is wrong, none is set."""
        known = list(self.settings())
        for key in settings:
            if key not in known:
                what = "the name cannot be changed" if key == "name" else suggest(key, known)
                raise ValueError(f"feature {self.name!r} has no setting {key!r}; {what}")
        cleaned = self._clean({**self.settings(), **settings})
        if self._watch is not None:
            self._watch(self.name, cleaned)
        self._store(cleaned)

    def settings(self) -> dict[str, Any]:
        """Return all settings by name."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names if name != "name"}

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return what settings are where nobody says so, for those that need not be given."""
        known = {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]
        return {name: default for name, default in known.items() if default is not MISSING}

    def lift(self, setting: str) -> None:
        """Take a setting back to what it was before it was tightened, or to what is usual."""
        setattr(self, setting, self._lifted.get(setting, self.defaults()[setting]))

    @property
    def stays(self) -> bool:
        """Whether it may not change at all."""
        return self.immutable or self.protected

    def _store(self, settings: dict[str, Any]) -> None:
        for key, value in settings.items():
            object.__setattr__(self, key, value)

    def _clean(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings in their plain form, or say what is wrong with them."""
        raise NotImplementedError

    def _refuse(self, setting: str, value: Any, allowed: str) -> NoReturn:
        reason = f"{setting} = {value!r} is not allowed; it must be {allowed}"
        raise FeatureError(self.name, reason)

    def _flag(self, settings: dict[str, Any], key: str) -> None:
        if not isinstance(settings[key], (bool, np.bool_)):
            self._refuse(key, settings[key], "True or False")
        settings[key] = bool(settings[key])

    def _choice(self, settings: dict[str, Any], key: str, choices: tuple[str, ...]) -> None:
        if not isinstance(settings[key], str) or settings[key] not in choices:
            self._refuse(key, settings[key], f"one of {', '.join(choices)}")

    def _facts(self, settings: dict[str, Any]) -> None:
        """Check `physical`, the names of settings that nobody can lift."""
        given, choices = settings["physical"], self.LIFTABLE
        if isinstance(given, (str, Mapping)) or not hasattr(given, "__iter__"):
            self._refuse("physical", given, f"a list of settings, from {', '.join(choices)}")
        for name in given:
            if name not in choices:
                self._refuse("physical", name, f"one of {', '.join(choices)}")
        settings["physical"] = tuple(dict.fromkeys(given))

    def _number(
        self,
        settings: dict[str, Any],
        key: str,
        allowed: str,
        *,
        least: float = -math.inf,
        above: float = -math.inf,
        optional: bool = False,
    ) -> None:
        """Check a setting: finite, from `least` on, above `above`; where optional, or None."""
        value = settings[key]
        if value is None and optional:
            return
        number = to_number(value)
        if not (math.isfinite(number) and number >= least and number > above):
            self._refuse(key, value, allowed + if_text(value))
        settings[key] = plain_number(value)


def plain_number(value: Any) -> int | float:
    """Return a Python int or float; whole numbers stay whole."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)
