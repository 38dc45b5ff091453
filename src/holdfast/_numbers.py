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


def refuse(name: str, value: Any, allowed: str) -> None:
    """Raise the error that names the argument, its value and what is allowed."""
    raise ValueError(f"{name} = {value!r} is not allowed; it must be {allowed}")
