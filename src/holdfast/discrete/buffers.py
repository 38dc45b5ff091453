"""What one thread works on."""

from __future__ import annotations

from holdfast.discrete.domains import MOST_CANDIDATES, Candidates, State
from holdfast.discrete.layout import Layout, RowData
from holdfast.discrete.leaf import Leaf
from holdfast.discrete.relax import Blend, Relaxed
from holdfast.machinery.numbers import Floats
from holdfast.machinery.structs import Struct


class Buffers(Struct):
    """The row at hand, the node at hand, its bound, and a leaf of it."""

    data: RowData
    state: State
    relaxed: Relaxed
    leaf: Leaf
    tally: Floats  # what a search keeps count of: see `visit`


def new_buffers(layout: Layout, d: int) -> Buffers:
    f, o, g = layout.columns.size, int(layout.level_start[-1]), layout.level_start.size - 1
    b, k = f + g, MOST_CANDIDATES * f + o
    blends = [Blend.zeros(b, b, b) for _ in range(3)]
    candidates = Candidates.zeros(b + 1, k, k, k, k, k)
    return Buffers.zeros(
        RowData.zeros(*9 * [f], *4 * [o], layout.values.shape[1], g),
        State.zeros(f, f, f, f, o, b, b, f, b, o),
        Relaxed.zeros(candidates, b, b, b, b, k, b, *blends),
        Leaf.zeros(*7 * [d], 1),
        8,
    )
