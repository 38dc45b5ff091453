"""The worst score of tiny ReLU networks in a ball with p = 1, by exhaustion: from below.

All activation patterns, all inputs that can be the largest one of a layer (they make its lever),
and all shares of the radius among the layers, cell by cell: a linear program for each, in which
every layer may spend the most that it can in the cell. Exact where one layer alone may change;
otherwise it comes up to the truth as the cells get smaller.
"""

import itertools
import math

import numpy as np
from scipy import optimize


def least_score(networks, parts):
    """A score that no network goes below, for the first point of the first network."""
    layers = [
        (weight[0], bias[0], *scale[0])
        for weight, bias, scale in zip(
            networks.weights, networks.biases, networks.scales, strict=True
        )
    ]
    free = [layer for layer, (_, _, *scale) in enumerate(layers) if any(scale)]
    nothing = np.zeros((len(networks.points[0, 0]), 0))
    return min(
        _least(layers, networks.radius[0] * spent, nothing, networks.points[0, 0], [], [])
        for spent in cells(free, len(layers), parts)
    )


def cells(free, layers, parts):
    """Yield the most that each layer can spend in each cell of the shares."""
    if len(free) == 1:
        parts = 1
    for low in itertools.product(range(parts), repeat=len(free) - 1):
        if sum(low) < parts:
            spent = np.zeros(layers)
            spent[free] = [*((np.array(low) + 1) / parts), 1.0 - sum(low) / parts]
            yield spent


def _least(layers, spent, slope, inputs, rows, limits):
    """Least score, where a layer's inputs are ``slope @ v + inputs`` and ``rows @ v <= limits``.

    The v are what was injected so far, up and down of each unit, at least 0.
    """
    (weight, bias, weight_scale, bias_scale), rest = layers[0], layers[1:]
    units, before = len(weight), slope.shape[1]
    wide = [np.pad(row, (0, 2 * units)) for row in rows]
    slope = np.pad(slope, ((0, 0), (0, 2 * units)))
    moved = weight @ slope
    moved[:, before:] = np.hstack([np.eye(units), -np.eye(units)])
    offset = weight @ inputs + bias
    total = np.concatenate([np.zeros(before), np.ones(2 * units)])
    levers = [(weight_scale * slope[k], weight_scale * abs(inputs[k])) for k in range(len(inputs))]
    levers = [*levers, (0 * total, bias_scale)] if spent[0] > 0.0 else [(0 * total, 0.0)]
    lowest = math.inf
    for grows, lever in levers:
        own = [*wide, total - spent[0] * grows], [*limits, spent[0] * lever]
        if not rest:
            lowest = min(lowest, _solve(moved[0], *own) + offset[0])
            continue
        for open_ in itertools.product((0.0, 1.0), repeat=units):
            sign = 1.0 - 2.0 * np.array(open_)
            there = [*own[0], *(sign[:, None] * moved)], [*own[1], *(-sign * offset)]
            if _solve(0 * moved[0], *there) < math.inf:
                gate = np.array(open_)
                lowest = min(
                    lowest, _least(rest, spent[1:], gate[:, None] * moved, gate * offset, *there)
                )
    return lowest


def _solve(cost, rows, limits):
    solved = optimize.linprog(cost, np.array(rows), np.array(limits))
    return solved.fun if solved.status == 0 else math.inf
