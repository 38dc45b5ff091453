"""Lattices: a number in steps may become ``anchor + step * k`` for whole k, or stay where it is.

Whatever is said of a lattice value is said of that sum as it is rounded. Kernels ask about one
number of a node; the rest is for plain numbers and arrays. `answer.violations` does without all of
this on purpose: it checks it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import Floats

# A lattice further out than so many steps cannot be told from its neighbours.
MOST_STEPS_OUT = 2.0**50


@kernel
def lattice_index(v, step, anchor):
    """Return the largest whole k with ``anchor + step * k <= v``, as the sum is rounded."""
    k = math.floor((v - anchor) / step)
    for _ in range(2):
        if anchor + step * (k + 1.0) <= v:
            k += 1.0
        elif anchor + step * k > v:
            k -= 1.0
    return k


@kernel
def lattice_floor(v, step, anchor):
    """Return the largest ``anchor + step * k`` that is not above v."""
    return anchor + step * lattice_index(v, step, anchor)


@kernel
def lattice_ceil(v, step, anchor):
    """Return the smallest ``anchor + step * k`` that is not below v."""
    k = lattice_index(v, step, anchor)
    value = anchor + step * k
    return value if value >= v else anchor + step * (k + 1.0)


@kernel
def next_above(v, step, anchor, x0, hi):
    """Return the smallest allowed value above v, for v < hi."""
    value = anchor + step * (lattice_index(v, step, anchor) + 1.0)
    if v < x0 < value:
        value = x0
    return min(value, hi)


@kernel
def next_below(v, step, anchor, x0, lo):
    """Return the largest allowed value below v, for v > lo."""
    k = lattice_index(v, step, anchor)
    value = anchor + step * k
    if value >= v:
        value = anchor + step * (k - 1.0)
    if value < x0 < v:
        value = x0
    return max(value, lo)


@kernel
def allowed_below(v, step, anchor, x0, lo):
    """Return the largest allowed value not above v, for v >= lo."""
    if step == 0.0:
        return v
    value = lattice_floor(v, step, anchor)
    if value < x0 <= v:
        value = x0
    return max(value, lo)


@kernel
def allowed_above(v, step, anchor, x0, hi):
    """Return the smallest allowed value not below v, for v <= hi."""
    if step == 0.0:
        return v
    value = lattice_ceil(v, step, anchor)
    if v <= x0 < value:
        value = x0
    return min(value, hi)


# ------------------------------------------------------------------ plain numbers and arrays


def last_multiple(value: float, step: float, anchor: float) -> int:
    """Return the largest whole k with ``anchor + step * k <= value``, of any size."""
    k = math.floor((value - anchor) / step) + 1
    while anchor + step * k > value:
        k -= 1
    return k


def nearest_multiple(value: float, step: float, anchor: float) -> int:
    """Return the whole k whose ``anchor + step * k`` is nearest."""
    return round(float((value - anchor) / step))


def snapped(value: float, step: float, anchor: float, upwards: bool) -> float:
    """Return the nearest lattice value that is not below (upwards) or above it."""
    if step == 0.0 or math.isinf(value):
        return value
    if abs(math.floor((value - anchor) / step)) > MOST_STEPS_OUT:
        return value
    k = last_multiple(value, step, anchor)
    if upwards and anchor + step * k < value:
        k += 1
    return anchor + step * k


def nearest_on_lattice(values: Floats, step: Floats, anchor: Floats) -> Floats:
    """Return the lattice value next to each; NaN where there is no lattice."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.asarray(anchor + step * np.round((values - anchor) / step))


def on_lattice(values: Floats, step: Floats, anchor: Floats) -> NDArray[np.bool_]:
    """Say which values may be taken as far as lattices go, to the last bit."""
    return np.asarray((step == 0.0) | (nearest_on_lattice(values, step, anchor) == values))


def lattice_between(low: float, high: float, step: float, anchor: float) -> Floats:
    """List the lattice values from low to high."""
    first, last = math.floor((low - anchor) / step), math.ceil((high - anchor) / step)
    values = np.asarray(anchor + step * np.arange(first - 1, last + 2))
    return values[(low <= values) & (values <= high)]
