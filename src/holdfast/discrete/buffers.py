"""What one thread works on: a few arrays, and the named views of them that the kernels use.

Passing an array to a compiled function costs compile time, and passing fifty costs minutes. So the
outer kernels pass these few on, and each takes the views that it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.domains import MOST_CANDIDATES, State, Table
from holdfast.discrete.layout import Ints, Layout, RowData
from holdfast.discrete.leaf import Leaf
from holdfast.discrete.relax import Blend, Relaxed
from holdfast.machinery.compile import views
from holdfast.machinery.numbers import Floats


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
    tally: Floats  # what a search keeps count of: see `visit`


def new_buffers(layout: Layout, d: int) -> Buffers:
    f, o, g = layout.columns.size, int(layout.option_start[-1]), layout.option_start.size - 1
    b, k = f + g, MOST_CANDIDATES * f + o
    return Buffers(
        np.zeros((13, f)),
        np.zeros((5, o)),
        np.zeros((9, b)),
        np.zeros((7, b), dtype=np.int64),
        np.zeros((5, k)),
        np.zeros(k, dtype=np.int8),
        np.zeros(b + 1, dtype=np.int64),
        np.zeros((7, d)),
        np.zeros(o + b + f, dtype=np.int8),
        np.zeros(g, dtype=np.int64),
        np.zeros(8),
    )


@views
def data_of(buffers):
    n, o, current = buffers.numbers, buffers.options, buffers.current
    return RowData(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], o[0], o[1], o[2], o[3], current
    )


@views
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
        buffers.options[4],
    )


@views
def relaxed_of(buffers):
    f, p, c = buffers.features, buffers.picks, buffers.candidates
    return Relaxed(
        Table(buffers.starts, c[0], c[1], c[2], c[3], buffers.changed),
        f[2],
        f[3],
        f[4],
        f[5],
        c[4],
        p[0],
        Blend(p[1], p[2], f[6]),
        Blend(p[3], p[4], f[7]),
        Blend(p[5], p[6], f[8]),
    )


@views
def leaf_of(buffers):
    c = buffers.columns
    return Leaf(c[0], c[1], c[2], c[3], c[4], c[5], c[6])
