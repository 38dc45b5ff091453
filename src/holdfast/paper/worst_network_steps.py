"""The paper's ascent for p = 1 on plain feed-forward networks, compiled, row by row."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from holdfast.machinery.compile import kernel, summing_kernel
from holdfast.machinery.numbers import Floats
from holdfast.models.networks.layers import Layers, Reals
from holdfast.models.networks.passes import (
    begin_backwards,
    begin_forwards,
    inner,
    pull_back,
    put_out,
    rectify,
    rectify_back,
)

# torch's BCELoss, in which the authors ascend, cuts the loss here ...
LOSS_CAP = 100.0
# ... and divides by at least this much in its gradient, which therefore vanishes where the
# network is very sure of itself.
LEAST_VARIANCE = 1e-12


class Climber(NamedTuple):
    """What a thread needs for the row that it works on.

    Attributes
    ----------
    change : (k,) array
        The change of all parameters, every matrix transposed: what a silent unit puts in, and
        therefore leaves as it is, then lies together.
    threshold : (tensors,) array
        The last projection's, from which the next one begins.
    """

    units: Reals
    slopes: Reals
    change: Reals
    threshold: Reals


def new_climber(layers: Layers) -> Climber:
    """Make room for a row."""
    dtype = layers.trained.dtype
    units, slopes = np.zeros(layers.units, dtype), np.zeros(layers.units, dtype)
    threshold = np.zeros(2 * (len(layers.sizes) - 1), dtype)
    return Climber(units, slopes, np.zeros_like(layers.trained), threshold)


@kernel
def climb_rows(
    climber: Climber,
    layers: Layers,
    points: Reals,
    settings: tuple[float, int, float, float],
    score: Floats,
    change: Reals,
    begin: int,
    end: int,
) -> None:
    """Ascend for each row from its `change`; write its last score and its last change.

    Changes have their matrices transposed.
    """
    radius, steps, learning_rate, tolerance = settings
    units, slopes, moved = climber.units, climber.slopes, climber.change
    for k in range(begin, end):
        moved[:] = change[k]
        climber.threshold[:] = 0.0
        before = 1.0
        for _ in range(steps):
            forwards_steps(layers, points[k], moved, units)
            backwards_steps(layers, moved, units, slopes)
            loss = capped_loss(units[-1])
            rate = units.dtype.type(-learning_rate * steepness(units[-1]))
            for layer in range(layers.sizes.size - 1):
                step(layers, layer, rate, units, slopes, moved)
                project_network(climber, layers, layer, units.dtype.type(radius))
            if abs(loss - before) <= tolerance:
                break
            before = loss
        forwards_steps(layers, points[k], moved, units)
        score[k] = units[-1]
        change[k] = moved


@kernel
def capped_loss(score: Any) -> float:
    """Cross-entropy of the score, as BCELoss has it."""
    loss: float = math.log1p(math.exp(-abs(score))) + max(-score, 0.0)
    return min(loss, LOSS_CAP)


@kernel
def steepness(score: Any) -> float:
    """Minus the derivative of BCELoss(sigmoid(score), 1), as torch computes it."""
    odds = math.exp(-abs(score))
    likely, unlikely = 1.0 / (1.0 + odds), odds / (1.0 + odds)
    variance = likely * unlikely
    miss = unlikely if score > 0.0 else likely
    return miss * variance / max(variance, LEAST_VARIANCE)


@kernel
def forwards_steps(layers: Layers, x: Reals, change: Reals, units: Reals) -> None:
    """Pass a row through the changed network."""
    begin_forwards(x, units)
    one = units.dtype.type(1.0)
    for layer in range(layers.sizes.size - 1):
        put_out(layers, layer, layers.turned, one, units)
        put_out(layers, layer, change, one, units)
        rectify(layers, layer, units)


@kernel
def backwards_steps(layers: Layers, change: Reals, units: Reals, slopes: Reals) -> None:
    """Slope of the score in all units of the changed network."""
    begin_backwards(slopes)
    for layer in range(layers.sizes.size - 2, 0, -1):
        pull_back(layers, layer, layers.trained, units.dtype.type(1.0), slopes)
        into, out = layers.sizes[layer], layers.sizes[layer + 1]
        near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
        begin = layers.weight_at[layer]
        for j in range(into):
            if units[near + j] != 0.0:
                column = change[begin + j * out : begin + (j + 1) * out]
                slopes[near + j] += inner(column, slopes[far : far + out])
        rectify_back(layers, layer, units, slopes)


@kernel
def step(layers: Layers, layer: int, rate: Any, units: Reals, slopes: Reals, change: Reals) -> None:
    """Add rate * slope to the parameters of a layer."""
    into, out = layers.sizes[layer], layers.sizes[layer + 1]
    near, far = layers.unit_at[layer], layers.unit_at[layer + 1]
    above = slopes[far : far + out]
    begin = layers.weight_at[layer]
    matrix = change[begin : begin + into * out].reshape(into, out)
    for j in range(into):
        value = rate * units[near + j]
        if value != 0.0:
            for i in range(out):
                matrix[j, i] += value * above[i]
    begin = layers.bias_at[layer]
    if begin >= 0:
        for i in range(out):
            change[begin + i] += rate * above[i]


@kernel
def project_network(climber: Climber, layers: Layers, layer: int, radius: Any) -> None:
    """Bring both tensors of a layer back into their balls."""
    out = layers.sizes[layer + 1]
    for tensor in range(2):
        begin = layers.weight_at[layer] if tensor == 0 else layers.bias_at[layer]
        if begin < 0:
            continue
        end = begin + (layers.sizes[layer] * out if tensor == 0 else out)
        at = 2 * layer + tensor
        into_l1_ball(climber.change[begin:end], radius, climber.threshold[at : at + 1])


@kernel
def into_l1_ball(vector: Reals, radius: Any, threshold: Reals) -> None:
    """Project onto the L1 ball, as `project_l1` does, by Newton's method for the threshold.

    The norm of what is left above a threshold is convex and piecewise linear in it. From wherever
    a step begins it ends at the threshold or below; from there the steps only go up, and it is
    found when as many entries stay as before.
    """
    zero = vector.dtype.type(0.0)
    if radius == zero:
        vector[:] = zero
        return
    if left_above(vector, zero) <= radius:
        return
    cut, before = threshold[0], -1.0
    for _ in range(2 * vector.size + 4):  # more than enough, whatever the rounding
        count = count_above(vector, cut)
        if count == 0.0:
            if cut == zero:  # NaN: nothing can be said of such a row
                return
            cut = zero  # the last threshold was beyond all entries: begin anew
            continue
        if count == before:
            break
        cut = max(cut + (left_above(vector, cut) - radius) / count, zero)
        before = count
    threshold[0] = cut
    for i in range(vector.size):
        vector[i] -= min(max(vector[i], -cut), cut)


@summing_kernel
def left_above(vector: Reals, cut: Any) -> Any:
    """Norm of what is left of the entries beyond a threshold."""
    zero = vector.dtype.type(0.0)
    left = zero
    for i in range(vector.size):
        over = abs(vector[i]) - cut
        left += over if over > zero else zero
    return left


@summing_kernel
def count_above(vector: Reals, cut: Any) -> Any:
    """How many entries are beyond a threshold (apart from `left_above`: both are vectorised)."""
    zero, one = vector.dtype.type(0.0), vector.dtype.type(1.0)
    count = zero
    for i in range(vector.size):
        count += one if abs(vector[i]) > cut else zero
    return count
