"""Networks of the ball that the proof itself points at: how low their scores are."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.models.networks.ball_network import BallNetwork, dual_weights
from holdfast.models.networks.cones import value_and_tilt
from holdfast.models.networks.falls import Falls, Multipliers

# Vertices that are tried for p = 1, those where the bound is greatest
_TRIED = 8


def lowest_reached(falls: Falls, lines: Multipliers, radius: float) -> Tensor:
    """Return the lowest score of the networks in which the vertices that bind are injected.

    Each is a network of the ball: for p = 1 one with a single parameter changed by all of the
    radius, for others one whose change is an outer product in each layer.
    """
    lowest = falls.score
    if not falls.sources:
        return lowest
    for pushed in _pushes(falls, lines):
        lowest = torch.minimum(lowest, _score_with(falls, pushed, radius))
    return lowest


def _pushes(falls: Falls, lines: Multipliers) -> list[dict[int, Tensor]]:
    """Directions of the units, for each layer (rows, units): together of size 1 in the p-norm."""
    if falls.network.p != 1.0:
        binding = falls.binding(lines)
        return [{m: part[:, 0] - part[:, 1] for m, part in binding.items()}]
    at = falls.with_lines(lines)
    joined = torch.cat([(falls.grown[m][:, None, None] * at[m]).flatten(1) for m in at], 1)
    which = joined.topk(min(_TRIED, joined.shape[1]), 1).indices
    pushes = []
    for k in range(which.shape[1]):
        alone = torch.zeros_like(joined).scatter_(1, which[:, k : k + 1], 1.0)
        pushed, begin = {}, 0
        for m, fall in at.items():
            end = begin + fall[0].numel()
            part = alone[:, begin:end].reshape(fall.shape)
            pushed[m] = part[:, 0] - part[:, 1]
            begin = end
        pushes.append(pushed)
    return pushes


def _score_with(falls: Falls, pushed: dict[int, Tensor], radius: float) -> Tensor:
    """Score of the network whose layers change by the outer product of a push and their lever."""
    network = falls.network
    h = falls.h[0]
    for layer, weight in enumerate(network.weights):
        z = h @ weight.T + network.biases[layer]
        if layer in pushed:
            by_weight, by_bias = _lever_arm(network, layer, falls.h[layer])
            moved = network.weight_scales[layer] * (by_weight * h).sum(1)
            moved = moved + network.bias_scales[layer] * by_bias
            z = z + radius * moved[:, None] * pushed[layer]
        if layer < network.last:
            h, _ = value_and_tilt(network.activations[layer], z)
    return z[:, 0]


def _lever_arm(network: BallNetwork, layer: int, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The change of a unit's weights and bias, of size 1, that injects most."""
    own = torch.full_like(inputs[:, :1], network.bias_scales[layer])
    felt = torch.cat([network.weight_scales[layer] * inputs, own], 1)
    arm = felt.sign() * dual_weights(felt.abs(), network.q)
    return arm[:, :-1], arm[:, -1]
