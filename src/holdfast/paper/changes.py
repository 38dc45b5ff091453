"""How many features a recourse changes."""

from __future__ import annotations

import numpy as np

from holdfast.machinery.numbers import Floats, whole_rows

ADDITIVE = 0.01  # in scaled units, as the paper counts
MULTIPLICATIVE = 0.01  # of the value; the paper names no figure


def changed_additive(points: Floats, recourse: Floats) -> Floats:
    """Count the features that move by at least `ADDITIVE`; NaN where there is no recourse.

    Examples
    --------
    >>> changed_additive(np.array([[1.0, 2.0]]), np.array([[1.5, 2.001]]))
    array([1.])
    """
    return _count(recourse, np.abs(recourse - points) >= ADDITIVE)


def changed_multiplicative(points: Floats, recourse: Floats) -> Floats:
    """Count the features that move by at least `MULTIPLICATIVE` of their value.

    Of a value of 0, any move counts.

    Examples
    --------
    >>> changed_multiplicative(np.array([[100.0, 0.0, 3.0]]), np.array([[100.5, 0.001, 3.0]]))
    array([1.])
    """
    change = np.abs(recourse - points)
    return _count(recourse, (change > 0.0) & (change >= MULTIPLICATIVE * np.abs(points)))


def _count(recourse: Floats, changed: np.ndarray) -> Floats:
    there = whole_rows(recourse)
    return np.where(there, changed.sum(axis=1), np.nan)
