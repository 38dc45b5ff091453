"""Named things with settings: looked up by name, unknown names and settings are errors."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from holdfast.machinery.numbers import shown

Registered = TypeVar("Registered")


def make(
    what: str, registry: Mapping[str, type[Registered]], name: Any, settings: dict[str, Any]
) -> Registered:
    """Return `registry[name](**settings)`, or say what was wrong with either."""
    kind = registry.get(name) if isinstance(name, str) else None
    if kind is None:
        close = difflib.get_close_matches(name, registry, n=1) if isinstance(name, str) else []
        hint = f"did you mean {close[0]!r}? " if close else ""
        there = ", ".join(registry)
        raise ValueError(f"{what} = {shown(name)} is not known; {hint}available: {there}")
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = [key for key in settings if key not in known]
    if unknown:
        has = f"it has: {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name} has no setting {unknown[0]!r}; {has}")
    return kind(**settings)
