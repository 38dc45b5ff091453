"""What was computed, as JSON knows it."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any


def plain_of(value: Any) -> Any:
    """Turn dataclasses and named tuples into dictionaries, and what is no number into None.

    Numbers of NumPy become those of Python; dates and paths become texts.

    Examples
    --------
    >>> import numpy as np
    >>> plain_of({"share": np.float64(0.5), "bounds": (0.25, float("nan")), 1: Path("a.html")})
    {'share': 0.5, 'bounds': [0.25, None], '1': 'a.html'}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain_of(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain_of(part) for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, dict):
        return {str(name): plain_of(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_of(part) for part in value]
    if isinstance(value, (date, Path)):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
