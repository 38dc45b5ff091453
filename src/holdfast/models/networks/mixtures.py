"""Changes of a plain feed-forward network as mixtures of vertices, for p = 1 and p = inf.

A vertex of the ball that a gradient points at is an outer product in each layer: for p = 1 one
parameter alone, for p = inf the signs of the slopes times the signs of the inputs. The descent
only ever mixes such vertices, and a full step forgets all earlier ones. So a change of 25,000
parameters is kept as a few numbers or a few pairs of short vectors, and never written out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.models.networks.layers import Layers, Reals
from holdfast.models.networks.passes import (
    add,
    begin_backwards,
    begin_forwards,
    inner,
    pull_back,
    put_out,
    rectify,
    rectify_back,
)
from holdfast.models.networks.singles import BIAS, largest, lever


class Mixture(NamedTuple):
    """A change of one row: shares of vertices in slots, and of a start that all rows have.

    Attributes
    ----------
    used : (1,) array
        How many slots are in use.
    share : (s + 1,) array
        Share of the vertex in each slot; the last one is that of the start.
    place : (s, 3) array
        For p = 1: layer, unit put out and unit taken in of the parameter that changes.
    far : (s, 1) array or (s, units) array
        By how much it changes; for p = inf by how much the parameters of each unit do ...
    near : (s, units) array
        ... and the signs of what goes into them.
    """

    used: NDArray[np.int64]
    share: Reals
    place: NDArray[np.int64]
    far: Reals
    near: Reals


def new_mixture(layers: Layers, slots: int, single: bool) -> Mixture:
    """Make room for a mixture."""
    dtype, width = layers.trained.dtype, 1 if single else layers.units
    return Mixture(
        np.zeros(1, dtype=np.int64),
        np.zeros(slots + 1, dtype),
        np.zeros((slots, 3), dtype=np.int64),
        np.zeros((slots, width), dtype),
        np.zeros((slots, width), dtype),
    )


@kernel
def empty(mixture: Mixture, started: bool) -> None:
    """Begin with nothing but the start."""
    mixture.used[0] = 0
    mixture.share[:] = 0.0
    if started:
        mixture.share[-1] = 1.0


@kernel
def only(mixture: Mixture, place: NDArray[np.int64], move: Any) -> None:
    """Begin with the change of one parameter."""
    mixture.used[0], mixture.share[0] = 1, 1.0
    mixture.place[0], mixture.far[0, 0] = place, move


@kernel
def drop_empty(mixture: Mixture) -> None:
    """Keep only the slots that have a share: after a full step, the newest one."""
    used = 0
    for k in range(mixture.used[0]):
        if mixture.share[k] != 0.0:
            if used < k:
                mixture.share[used] = mixture.share[k]
                mixture.place[used] = mixture.place[k]
                mixture.far[used] = mixture.far[k]
                mixture.near[used] = mixture.near[k]
            used += 1
    mixture.used[0] = used


@kernel
def forwards(
    mixture: Mixture,
    share: Reals,
    layers: Layers,
    x: Reals,
    start_turned: Reals,
    single: bool,
    units: Reals,
) -> None:
    """Pass a row through the network that the shares give."""
    begin_forwards(x, units)
    one = share.dtype.type(1.0)
    for layer in range(layers.sizes.size - 1):
        put_out(layers, layer, layers.turned, one, units)
        if share[-1] != 0.0:
            put_out(layers, layer, start_turned, share[-1], units)
        near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
        for k in range(mixture.used[0]):
            if share[k] == 0.0:
                continue
            if single:
                if mixture.place[k, 0] == layer:
                    i, j = mixture.place[k, 1], mixture.place[k, 2]
                    value = units[near + j] if j != BIAS else one
                    units[far + i] += share[k] * mixture.far[k, 0] * value
                continue
            ends = far + layers.sizes[layer + 1]
            felt = inner(mixture.near[k, near:far], units[near:far])
            if layers.bias_at[layer] >= 0:
                felt += one
            add(units[far:ends], share[k] * felt, mixture.far[k, far:ends])
        rectify(layers, layer, units)


@kernel
def backwards(
    mixture: Mixture,
    share: Reals,
    layers: Layers,
    start: Reals,
    single: bool,
    units: Reals,
    slopes: Reals,
) -> None:
    """Slope of the score in all units, under the network that the shares give."""
    begin_backwards(slopes)
    one = share.dtype.type(1.0)
    for layer in range(layers.sizes.size - 2, 0, -1):  # the slopes in the features are not needed
        pull_back(layers, layer, layers.trained, one, slopes)
        if share[-1] != 0.0:
            pull_back(layers, layer, start, share[-1], slopes)
        near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
        for k in range(mixture.used[0]):
            if share[k] == 0.0:
                continue
            if single:
                i, j = mixture.place[k, 1], mixture.place[k, 2]
                if mixture.place[k, 0] == layer and j != BIAS:
                    slopes[near + j] += share[k] * mixture.far[k, 0] * slopes[far + i]
                continue
            ends = far + layers.sizes[layer + 1]
            felt = inner(mixture.far[k, far:ends], slopes[far:ends])
            add(slopes[near:far], share[k] * felt, mixture.near[k, near:far])
        rectify_back(layers, layer, units, slopes)


@kernel
def signs_vertex(units: Reals, slopes: Reals, radius: Any, mixture: Mixture, slot: int) -> None:
    """Write the vertex of the L-infinity ball that lowers a linear score most.

    0 where the slope is 0: parameters of silent units go back to what they were, which often
    wakes them (leaving them where they are finds far less).
    """
    far, near = mixture.far[slot], mixture.near[slot]
    for i in range(units.size):
        far[i] = -radius * np.sign(slopes[i])
        near[i] = np.sign(units[i])


@kernel
def aim_up(layers: Layers, slopes: Reals) -> None:
    """Want all units up and the score down; what is wanted up has a slope below 0.

    A unit that is silent has no slope and is never woken by a step. Once all of them are loud, the
    last layer turns them against the score. Where the radius exceeds the absolute values of all
    weights after the first layer, this is the worst network: no activation can be larger, and all
    are reached together.
    """
    slopes[:] = -1.0
    slopes[-1] = 1.0


@kernel
def aim_by_slopes(layers: Layers, radius: Any, slopes: Reals) -> bool:
    """Want each unit where it lowers the score if all units are loud; say if any is wanted down.

    A weight that the radius cannot turn around makes loud units help the score: (w - radius) * unit
    in the last layer, and so on through the layers, each with its weights at the end of the ball
    that serves what is wanted of the units above.
    """
    begin_backwards(slopes)
    down = False
    for layer in range(layers.sizes.size - 2, 0, -1):
        pull_back(layers, layer, layers.trained, slopes.dtype.type(1.0), slopes)
        near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
        reach = slopes.dtype.type(0.0)
        for i in range(far, far + layers.sizes[layer + 1]):
            reach += abs(slopes[i])
        for j in range(near, far):
            slopes[j] -= radius * reach
            down = down or slopes[j] > 0.0
    return down


@kernel
def begin_at_aim(
    layers: Layers, x: Reals, radius: Any, slopes: Reals, mixture: Mixture, units: Reals
) -> None:
    """Begin with every unit as far as the ball allows to where it is wanted."""
    begin_forwards(x, units)
    for layer in range(layers.sizes.size - 1):
        near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
        ends = far + layers.sizes[layer + 1]
        mixture.near[0, near:far] = np.sign(units[near:far])
        put_out(layers, layer, layers.turned, units.dtype.type(1.0), units)
        felt = np.sum(np.abs(units[near:far]))
        if layers.bias_at[layer] >= 0:
            felt += 1.0
        for i in range(far, ends):
            mixture.far[0, i] = -radius if slopes[i] > 0.0 else radius
            units[i] += mixture.far[0, i] * felt
        rectify(layers, layer, units)
    mixture.used[0], mixture.share[0] = 1, 1.0


@kernel
def single_vertex(
    layers: Layers, units: Reals, slopes: Reals, radius: Any, mixture: Mixture, slot: int
) -> None:
    """Write the change of one parameter that lowers a linear score most.

    The slope in a weight is the product of two numbers: the largest is where both are largest.
    """
    best = -1.0
    for layer in range(layers.sizes.size - 1):
        far = layers.unit_at[layer + 1]
        i = largest(slopes, far, far + layers.sizes[layer + 1])
        column, value = lever(layers, layer, units)
        if abs(slopes[i] * value) > best:
            best = abs(slopes[i] * value)
            mixture.place[slot, 0] = layer
            mixture.place[slot, 1] = i - far
            mixture.place[slot, 2] = column
            mixture.far[slot, 0] = -radius * np.sign(slopes[i]) * np.sign(value)


@kernel
def write(mixture: Mixture, layers: Layers, start: Reals, single: bool, change: Reals) -> None:
    """Write the change of all parameters out."""
    change[:] = 0.0
    if mixture.share[-1] != 0.0:
        add(change, mixture.share[-1], start)
    for k in range(mixture.used[0]):
        if single:
            layer, i, j = mixture.place[k]
            at = layers.bias_at[layer] + i
            if j != BIAS:
                at = layers.weight_at[layer] + i * layers.sizes[layer] + j
            change[at] += mixture.share[k] * mixture.far[k, 0]
            continue
        for layer in range(layers.sizes.size - 1):
            near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
            into = layers.sizes[layer]
            for i in range(layers.sizes[layer + 1]):
                size = mixture.share[k] * mixture.far[k, far + i]
                begin = layers.weight_at[layer] + i * into
                add(change[begin : begin + into], size, mixture.near[k, near:far])
                if layers.bias_at[layer] >= 0:
                    change[layers.bias_at[layer] + i] += size
