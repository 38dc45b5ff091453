"""What one thread works on: a few arrays, and the named views of them that the kernels use.

Passing an array to a compiled function costs compile time, and passing fifty costs minutes. So the
outer kernels pass these few on, and each takes the views that it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.domains import MOST_CANDIDATES, Table
from holdfast.discrete.layout import Ints, Layout, RowData
from holdfast.discrete.leaf import Leaf
from holdfast.discrete.relax import Mixture, Relaxed
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats


class State(NamedTuple):
    """The node at hand, and the best choices so far."""

    lo: Floats
    hi: Floats
    cut_lo: Floats  # where numbers were cut off that could go further; NaN where they were not
    cut_hi: Floats
    allowed: NDArray[np.int8]
    active: NDArray[np.int8]
    chosen: Floats  # of each feature: its value, or the position of its option
    free: NDArray[np.int8]
    best: Floats
    order: Floats


class Buffers(NamedTuple):
    """Rows of these arrays are the fields of `State`, `RowData`, `Relaxed` and `Leaf`."""

    numbers: Floats
    options: Floats
    features: Floats
    picks: Ints
    candidates: Floats
    changed: NDArray[np.int8]
    starts: Ints
    columns: Floats
    flags: NDArray[np.int8]  # allowed, active and free, one after another
    current: Ints


def new_buffers(layout: Layout, d: int) -> Buffers:
    f, o, g = layout.columns.size, int(layout.option_start[-1]), layout.option_start.size - 1
    b, k = f + g, MOST_CANDIDATES * f + o
    return Buffers(
        np.zeros((13, f)),
        np.zeros((4, o)),
        np.zeros((9, b)),
        np.zeros((7, b), dtype=np.int64),
        np.zeros((5, k)),
        np.zeros(k, dtype=np.int8),
        np.zeros(b + 1, dtype=np.int64),
        np.zeros((6, d)),
        np.zeros(o + b + f, dtype=np.int8),
        np.zeros(g, dtype=np.int64),
    )


@kernel
def data_of(buffers):
    n, o = buffers.numbers, buffers.options
    return RowData(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], o[0], o[1], o[2], buffers.current
    )


@kernel
def state_of(buffers):
    n, options, features = buffers.numbers, buffers.options.shape[1], buffers.features.shape[1]
    split = options + features
    return State(
        n[9],
        n[10],
        n[11],
        n[12],
        buffers.flags[:options],
        buffers.flags[options:split],
        buffers.features[0],
        buffers.flags[split:],
        buffers.features[1],
        buffers.options[3],
    )


@kernel
def table_of(buffers):
    c = buffers.candidates
    return Table(buffers.starts, c[0], c[1], c[2], c[3], buffers.changed)


@kernel
def relaxed_of(buffers):
    f, p = buffers.features, buffers.picks
    return Relaxed(
        table_of(buffers),
        f[2],
        f[3],
        f[8],
        p[0],
        f[4],
        buffers.candidates[4],
        Mixture(p[1], p[2], f[5]),
        Mixture(p[3], p[4], f[6]),
        Mixture(p[5], p[6], f[7]),
    )


@kernel
def leaf_of(buffers):
    c = buffers.columns
    return Leaf(c[0], c[1], c[2], c[3], c[4])


@kernel
def costs_of(buffers):
    """Return the costs of all columns; those of groups cost nothing by themselves."""
    return buffers.columns[5]
