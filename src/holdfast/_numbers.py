"""Names that every room uses."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EPS = 2.220446049250313e-16


def to_number(value: Any) -> float:
    """Read an argument as a float; NaN, which no range allows, for what is not a number."""
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        return float(value)
    return math.nan


def check_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Refuse what is not a positive, finite number (or, where allowed, 0)."""
    number = to_number(value)
    if not 0.0 <= number < math.inf or (number == 0.0 and not or_zero):
        refuse(name, value, "a finite number, " + (">= 0" if or_zero else "> 0"))


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        refuse(name, value, f"a whole number >= {least}")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        refuse(name, value, "True or False")


def refuse(name: str, value: Any, allowed: str) -> None:
    """Raise the error that names the argument, its value and what is allowed."""
    raise ValueError(f"{name} = {value!r} is not allowed; it must be {allowed}")
