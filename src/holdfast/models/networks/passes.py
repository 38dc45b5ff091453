"""Kernels that pass one row through plain feed-forward layers, forwards and backwards.

`units` holds what every layer puts out, one after the other, from the features to the score;
`slopes` the slope of the score in each of them. Numbers that are multiplied have the type of the
network's own: a single one in double precision would slow down whole loops.
"""

from __future__ import annotations

from typing import Any

from holdfast.machinery.compile import kernel, summing_kernel
from holdfast.models.networks.layers import Layers, Reals


@kernel
def put_out(layers: Layers, layer: int, turned: Reals, weight: Any, units: Reals) -> None:
    """Add weight * (matrix @ inputs + bias) to what a layer puts out."""
    into, out = layers.sizes[layer], layers.sizes[layer + 1]
    near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
    reached = units[far : far + out]
    begin = layers.bias_at[layer]
    if begin >= 0:
        add(reached, weight, turned[begin : begin + out])
    begin = layers.weight_at[layer]
    matrix = turned[begin : begin + into * out].reshape(into, out)
    for j in range(into):
        value = weight * units[near + j]
        if value != 0.0:  # silent units put in nothing
            for i in range(out):  # as it stands four times faster than add() on slices
                reached[i] += value * matrix[j, i]


@kernel
def pull_back(layers: Layers, layer: int, matrices: Reals, weight: Any, slopes: Reals) -> None:
    """Add weight * (slopes in what a layer puts out @ matrix) to the slopes in its inputs."""
    into, out = layers.sizes[layer], layers.sizes[layer + 1]
    near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
    reached = slopes[near : near + into]
    begin = layers.weight_at[layer]
    matrix = matrices[begin : begin + into * out].reshape(out, into)
    for i in range(out):
        value = weight * slopes[far + i]
        if value != 0.0:
            for j in range(into):
                reached[j] += value * matrix[i, j]


@kernel
def add(total: Reals, weight: Any, vector: Reals) -> None:
    """Add weight * vector, entry by entry: no sum is re-ordered, and the loop is vectorised."""
    for i in range(total.size):
        total[i] += weight * vector[i]


@summing_kernel
def inner(a: Reals, b: Reals) -> Any:
    """Inner product."""
    total = a.dtype.type(0.0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def begin_forwards(x: Reals, units: Reals) -> None:
    """Write the features, and nothing yet in any layer."""
    units[:] = 0.0
    units[: x.size] = x


@kernel
def begin_backwards(slopes: Reals) -> None:
    """Write the score's slope in itself."""
    slopes[:] = 0.0
    slopes[-1] = 1.0


@kernel
def rectify(layers: Layers, layer: int, units: Reals) -> None:
    """Let ReLU act on what a layer puts out; what the last one puts out is the score."""
    if layer + 2 < layers.sizes.size:
        begin = layers.unit_at[layer + 1]
        for i in range(begin, begin + layers.sizes[layer + 1]):
            if units[i] < 0.0:
                units[i] = 0.0


@kernel
def rectify_back(layers: Layers, layer: int, units: Reals, slopes: Reals) -> None:
    """Drop the slopes in what silent units put into a layer."""
    if layer > 0:
        begin = layers.unit_at[layer]
        for i in range(begin, begin + layers.sizes[layer]):
            if units[i] == 0.0:
                slopes[i] = 0.0
