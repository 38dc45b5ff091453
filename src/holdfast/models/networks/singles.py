"""Changes of one parameter by all of the radius: the vertices of a ball with p = 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.models.networks.layers import Layers, Reals
from holdfast.models.networks.passes import add, begin_forwards, put_out, rectify

# A column that stands for the bias, whose input is 1
BIAS = -1


@kernel
def lever(layers: Layers, layer: int, units: Reals) -> Any:
    """Find the largest input of a layer, that of the bias among them, and its value."""
    near = layers.unit_at[layer]
    j = largest(units, near, layers.unit_at[layer + 1])
    if layers.bias_at[layer] >= 0 and abs(units[j]) < 1.0:
        return BIAS, units.dtype.type(1.0)
    return j - near, units[j]


@kernel
def largest(vector: Reals, begin: int, end: int) -> Any:
    """Where the entry of largest size is."""
    which = begin
    for i in range(begin + 1, end):
        if abs(vector[i]) > abs(vector[which]):
            which = i
    return which


@kernel
def rank_singles(
    layers: Layers,
    x: Reals,
    units: Reals,
    raw: Reals,
    other: Reals,
    radius: Any,
    places: NDArray[np.int64],
    moves: Floats,
) -> None:
    """Try both ends of what one parameter can do to each unit; rank those that are lowest.

    A unit is moved furthest by the weight of its largest input, or by its bias. The slopes alone
    would miss the changes that wake units or silence them. `units`, `raw` and `other` are written
    over.
    """
    trained_forwards(layers, x, units, raw)
    scores = np.full(moves.size, np.inf)
    moves[:] = 0.0
    for layer in range(layers.sizes.size - 1):
        far = layers.unit_at[layer + 1]
        column, value = lever(layers, layer, units)
        for i in range(layers.sizes[layer + 1]):
            for move in (-radius, radius):
                moved = raw[far + i] + move * value
                score = score_with(layers, layer, i, moved, units, raw, other)
                if score < scores[-1]:
                    k = scores.size - 1
                    while k > 0 and score < scores[k - 1]:
                        scores[k], moves[k] = scores[k - 1], moves[k - 1]
                        places[k] = places[k - 1]
                        k -= 1
                    scores[k], moves[k] = score, move
                    places[k, 0], places[k, 1], places[k, 2] = layer, i, column


@kernel
def trained_forwards(layers: Layers, x: Reals, units: Reals, raw: Reals) -> None:
    """Pass a row through the trained network; `raw` is what its units have before ReLU."""
    begin_forwards(x, units)
    for layer in range(layers.sizes.size - 1):
        begin, end = layers.unit_at[layer + 1], layers.unit_at[layer + 1] + layers.sizes[layer + 1]
        put_out(layers, layer, layers.turned, units.dtype.type(1.0), units)
        raw[begin:end] = units[begin:end]
        rectify(layers, layer, units)


@kernel
def score_with(
    layers: Layers,
    layer: int,
    i: int,
    moved: Any,
    units: Reals,
    raw: Reals,
    other: Reals,
) -> Any:
    """Score when unit i of a layer has `moved` before ReLU, and all else is as trained."""
    last = layers.sizes.size - 2
    if layer == last:
        return moved
    begin, end = layers.unit_at[layer + 2], layers.unit_at[layer + 2] + layers.sizes[layer + 2]
    rise = max(moved, 0.0) - units[layers.unit_at[layer + 1] + i]
    if rise == 0.0:
        return units[-1]
    other[begin:] = 0.0
    other[begin:end] = raw[begin:end]
    column = layers.weight_at[layer + 1] + i * layers.sizes[layer + 2]
    weight = units.dtype.type(rise)
    add(other[begin:end], weight, layers.turned[column : column + layers.sizes[layer + 2]])
    rectify(layers, layer + 1, other)
    for above in range(layer + 2, last + 1):
        put_out(layers, above, layers.turned, units.dtype.type(1.0), other)
        rectify(layers, above, other)
    return other[-1]
