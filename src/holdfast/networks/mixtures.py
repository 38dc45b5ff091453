"""Descent of a feed-forward network's score over mixtures of vertices, for p = 1 and p = inf.

A vertex of the ball that a gradient points at is an outer product in each layer: for p = 1 one
parameter alone, for p = inf the signs of the slopes times the signs of the inputs. The descent
only ever mixes such vertices, and a full step forgets all earlier ones. So a change of 25,000
parameters is kept as a few numbers or a few pairs of short vectors, and never written out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast._compile import kernel
from holdfast._numbers import Floats
from holdfast.networks.layers import Layers, Numbers
from holdfast.networks.passes import (
    add,
    begin_backwards,
    begin_forwards,
    inner,
    pull_back,
    put_out,
    rectify,
    rectify_back,
)

# A step is halved when it fails. Below this share of the ball there is nothing left to gain.
LEAST_SHARE = 1e-4
# Changes of one parameter from which a descent begins, for p = 1
SINGLE_STARTS = 2
# A column that stands for the bias, whose input is 1
_BIAS = -1


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
    share: Numbers
    place: NDArray[np.int64]
    far: Numbers
    near: Numbers


class Row(NamedTuple):
    """What a thread needs for the row that it works on."""

    kept: Mixture
    tried: Numbers  # the shares of the candidate
    units: Numbers
    slopes: Numbers
    next_units: Numbers
    next_slopes: Numbers


def new_row(layers: Layers, steps: int, single: bool) -> Row:
    """Make room for a row."""
    dtype, slots = layers.trained.dtype, steps + 2
    width = 1 if single else layers.units
    kept = Mixture(
        np.zeros(1, dtype=np.int64),
        np.zeros(slots + 1, dtype),
        np.zeros((slots, 3), dtype=np.int64),
        np.zeros((slots, width), dtype),
        np.zeros((slots, width), dtype),
    )
    vectors = [np.zeros(layers.units, dtype) for _ in range(4)]
    return Row(kept, np.zeros(slots + 1, dtype), *vectors)


@kernel
def descend_rows(
    row: Row,
    layers: Layers,
    points: Numbers,
    start: Numbers,
    start_turned: Numbers,
    singles: bool,
    single: bool,
    radius: Any,
    steps: int,
    score: Numbers,
    change: Numbers,
    begin: int,
    end: int,
) -> None:
    """Descend from one start for each row; keep what is lower than `score` has.

    The start is a change of all parameters, or none where its size is 0; with `singles` it is each
    of the best changes of one parameter. `change` has a row for each point, or no column.
    """
    places, moves = np.zeros((SINGLE_STARTS, 3), np.int64), np.zeros(SINGLE_STARTS)
    for i in range(begin, end):
        if singles:
            rank_singles(row, layers, points[i], radius, places, moves)
        for k in range(SINGLE_STARTS if singles else 1):
            empty(row.kept, start.size > 0)
            if singles:
                only(row.kept, places[k], moves[k])
            reached = descend(row, layers, points[i], start, start_turned, single, radius, steps)
            if reached < score[i] or np.isnan(reached):
                score[i] = reached
                if change.shape[1] > 0:
                    write(row.kept, layers, start, single, change[i])


@kernel
def descend(
    row: Row,
    layers: Layers,
    x: Numbers,
    start: Numbers,
    start_turned: Numbers,
    single: bool,
    radius: Any,
    steps: int,
) -> Any:
    """Lower the score of a row, step by step; a step that does not lower it is halved."""
    kept, tried = row.kept, row.tried
    units, slopes, next_units, next_slopes = row.units, row.slopes, row.next_units, row.next_slopes
    forwards(kept, kept.share, layers, x, start_turned, single, units)
    backwards(kept, kept.share, layers, start, single, units, slopes)
    step = 1.0
    for _ in range(steps):
        slot = kept.used[0]
        if single:
            single_vertex(layers, units, slopes, radius, kept, slot)
        else:
            signs_vertex(units, slopes, radius, kept, slot)
        for k in range(slot):
            tried[k] = kept.share[k] * (1.0 - step)
        tried[slot] = step
        tried[-1] = kept.share[-1] * (1.0 - step)
        kept.used[0] = slot + 1
        forwards(kept, tried, layers, x, start_turned, single, next_units)
        if next_units[-1] < units[-1]:
            backwards(kept, tried, layers, start, single, next_units, next_slopes)
            units, next_units = next_units, units
            slopes, next_slopes = next_slopes, slopes
            kept.share[:] = tried
            drop_empty(kept)
            step = min(2.0 * step, 1.0)
        else:
            kept.used[0] = slot
            step /= 2.0
            if step < LEAST_SHARE:
                break
    return units[-1]


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
    share: Numbers,
    layers: Layers,
    x: Numbers,
    start_turned: Numbers,
    single: bool,
    units: Numbers,
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
                    value = units[near + j] if j != _BIAS else one
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
    share: Numbers,
    layers: Layers,
    start: Numbers,
    single: bool,
    units: Numbers,
    slopes: Numbers,
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
                if mixture.place[k, 0] == layer and j != _BIAS:
                    slopes[near + j] += share[k] * mixture.far[k, 0] * slopes[far + i]
                continue
            ends = far + layers.sizes[layer + 1]
            felt = inner(mixture.far[k, far:ends], slopes[far:ends])
            add(slopes[near:far], share[k] * felt, mixture.near[k, near:far])
        rectify_back(layers, layer, units, slopes)


@kernel
def signs_vertex(units: Numbers, slopes: Numbers, radius: Any, mixture: Mixture, slot: int) -> None:
    """Write the vertex of the L-infinity ball that lowers a linear score most.

    0 where the slope is 0: parameters of silent units go back to what they were, which often
    wakes them (leaving them where they are finds far less).
    """
    far, near = mixture.far[slot], mixture.near[slot]
    for i in range(units.size):
        far[i] = -radius * np.sign(slopes[i])
        near[i] = np.sign(units[i])


@kernel
def single_vertex(
    layers: Layers, units: Numbers, slopes: Numbers, radius: Any, mixture: Mixture, slot: int
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
def lever(layers: Layers, layer: int, units: Numbers) -> Any:
    """Find the largest input of a layer, that of the bias among them, and its value."""
    near = layers.unit_at[layer]
    j = largest(units, near, layers.unit_at[layer + 1])
    if layers.bias_at[layer] >= 0 and abs(units[j]) < 1.0:
        return _BIAS, units.dtype.type(1.0)
    return j - near, units[j]


@kernel
def largest(vector: Numbers, begin: int, end: int) -> Any:
    """Where the entry of largest size is."""
    which = begin
    for i in range(begin + 1, end):
        if abs(vector[i]) > abs(vector[which]):
            which = i
    return which


@kernel
def rank_singles(
    row: Row,
    layers: Layers,
    x: Numbers,
    radius: Any,
    places: NDArray[np.int64],
    moves: Floats,
) -> None:
    """Try both ends of what one parameter can do to each unit; rank those that are lowest.

    A unit is moved furthest by the weight of its largest input, or by its bias. The slopes alone
    would miss the changes that wake units or silence them.
    """
    units, raw = row.units, row.slopes
    trained_forwards(layers, x, units, raw)
    scores = np.full(moves.size, np.inf)
    moves[:] = 0.0
    for layer in range(layers.sizes.size - 1):
        far = layers.unit_at[layer + 1]
        column, value = lever(layers, layer, units)
        for i in range(layers.sizes[layer + 1]):
            for move in (-radius, radius):
                moved = raw[far + i] + move * value
                score = score_with(layers, layer, i, moved, units, raw, row.next_units)
                if score < scores[-1]:
                    k = scores.size - 1
                    while k > 0 and score < scores[k - 1]:
                        scores[k], moves[k] = scores[k - 1], moves[k - 1]
                        places[k] = places[k - 1]
                        k -= 1
                    scores[k], moves[k] = score, move
                    places[k, 0], places[k, 1], places[k, 2] = layer, i, column


@kernel
def trained_forwards(layers: Layers, x: Numbers, units: Numbers, raw: Numbers) -> None:
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
    units: Numbers,
    raw: Numbers,
    other: Numbers,
) -> Any:
    """Score when unit i of a layer has `moved` before ReLU, and all else is as trained."""
    last = layers.sizes.size - 2
    if layer == last:
        return moved
    begin, end = layers.unit_at[layer + 2], layers.unit_at[layer + 2] + layers.sizes[layer + 2]
    gain = max(moved, 0.0) - units[layers.unit_at[layer + 1] + i]
    if gain == 0.0:
        return units[-1]
    other[begin:] = 0.0
    other[begin:end] = raw[begin:end]
    column = layers.weight_at[layer + 1] + i * layers.sizes[layer + 2]
    weight = units.dtype.type(gain)
    add(other[begin:end], weight, layers.turned[column : column + layers.sizes[layer + 2]])
    rectify(layers, layer + 1, other)
    for above in range(layer + 2, last + 1):
        put_out(layers, above, layers.turned, units.dtype.type(1.0), other)
        rectify(layers, above, other)
    return other[-1]


@kernel
def write(mixture: Mixture, layers: Layers, start: Numbers, single: bool, change: Numbers) -> None:
    """Write the change of all parameters out."""
    change[:] = 0.0
    if mixture.share[-1] != 0.0:
        add(change, mixture.share[-1], start)
    for k in range(mixture.used[0]):
        if single:
            layer, i, j = mixture.place[k]
            at = layers.bias_at[layer] + i
            if j != _BIAS:
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
