"""Named things with settings: looked up by name, unknown names and settings are errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from holdfast.machinery.numbers import shown

Registered = TypeVar("Registered")


def suggest(name: Any, known: Iterable[str]) -> str:
    """Name the likely intention, and all that there is.

    Examples
    --------
    >>> suggest("Agee", ["age", "income"])
    "did you mean 'age'? available: age, income"
    """
    names = list(known)
    close = closest(name, names)
    hint = f"did you mean {close!r}? " if close else ""
    return f"{hint}available: {', '.join(names)}"


def closest(name: Any, known: Iterable[str]) -> str | None:
    """Return the name that is most like another one, whatever its capitals; None if none is."""
    by_letters = {each.lower(): each for each in known}
    close = difflib.get_close_matches(str(name).lower(), by_letters, n=1)
    return by_letters[close[0]] if close else None


def make(
    what: str, registry: Mapping[str, type[Registered]], name: Any, settings: dict[str, Any]
) -> Registered:
    """Return `registry[name](**settings)`, or say what was wrong with either."""
    kind = registry.get(name) if isinstance(name, str) else None
    if kind is None:
        hint = suggest(name if isinstance(name, str) else "", registry)
        raise ValueError(f"{what} = {shown(name)} is not known; {hint}")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in settings if key not in known]
    if unknown:
        has = f"it has: {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name} has no setting {unknown[0]!r}; {has}")
    return kind(**settings)
