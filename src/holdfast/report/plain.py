"""What was computed, as JSON knows it."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any


def plain_of(value: Any) -> Any:
    """Turn dataclasses and named tuples into dictionaries, and what is no number into None.

    Examples
    --------
    >>> from holdfast.report.intervals import Interval
    >>> plain_of({"share": Interval(0.5, 0.25, float("nan"))})
    {'share': {'estimate': 0.5, 'low': 0.25, 'high': None}}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain_of(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain_of(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, dict):
        return {str(name): plain_of(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_of(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
