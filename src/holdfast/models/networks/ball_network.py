"""A network as arrays, with the ball that its parameters may move in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.models.network import Network
from holdfast.models.networks.ball_scales import tensor_scales
from holdfast.models.networks.folded import layers_and_activations
from holdfast.problem.ball import NormBall


@dataclass(frozen=True, eq=False)
class BallNetwork:
    """A folded network as arrays, and how far its tensors may change.

    Attributes
    ----------
    weights, biases : lists of tensors
        Of each linear layer; no bias is one of zeros that never changes.
    activations : list of str
        Behind each hidden layer.
    weight_scales, bias_scales : lists of float
        How far they may change, relative to the radius.
    p, q : float
        Exponent of the ball, and the one dual to it.
    """

    weights: list[Tensor]
    biases: list[Tensor]
    activations: list[str]
    weight_scales: list[float]
    bias_scales: list[float]
    p: float
    q: float

    @classmethod
    def of(cls, folded: Network, ball: NormBall) -> BallNetwork:
        """Read a folded network."""
        linear, activations = layers_and_activations(folded)
        given = iter(tensor_scales(folded, ball))
        weight_scales, bias_scales = [], []
        for layer in linear:
            weight_scales.append(next(given))
            bias_scales.append(0.0 if layer.bias is None else next(given))
        weights = [layer.weight.detach() for layer in linear]
        biases = [
            weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach()
            for weight, layer in zip(weights, linear, strict=True)
        ]
        return cls(weights, biases, activations, weight_scales, bias_scales, ball.p, ball.dual_p)

    @property
    def last(self) -> int:
        """Number of the last layer, whose one output is the score."""
        return len(self.weights) - 1

    @property
    def widths(self) -> list[int]:
        """Number of units of each layer."""
        return [len(weight) for weight in self.weights]

    def changes(self, layer: int) -> bool:
        """Whether anything in a layer may change."""
        return self.weight_scales[layer] > 0.0 or self.bias_scales[layer] > 0.0

    @property
    def may_change(self) -> bool:
        """Whether anything at all may."""
        return any(self.changes(layer) for layer in range(len(self.weights)))

    def lever(self, layer: int, inputs: Tensor) -> Tensor:
        """``||scale * (inputs, 1)||_q``: what a radius of 1 in this layer alone can inject."""
        own = torch.full_like(inputs[:, :1], self.bias_scales[layer])
        return norm_of_rows(torch.cat([self.weight_scales[layer] * inputs.abs(), own], 1), self.q)

    def rows_in(self, mib: float) -> int:
        """How many rows can be relaxed at once in so many MiB."""
        widths = self.widths
        pairs = sum(widths[i] * widths[m] for i in range(len(widths)) for m in range(i))
        return max(1, int(mib * 2**20 / (8 * 16 * (pairs + sum(widths)))))


def norm_of_rows(values: Tensor, q: float) -> Tensor:
    """||values||_q over the last dimension, without overflow; values are not negative."""
    if q == 1.0:
        return values.sum(-1)
    largest = values.amax(-1)
    if math.isinf(q):
        return largest
    # divided by what is not 0, and no root of 0 is taken: their slopes would not be numbers
    there = largest != 0.0  # what is no number stays none
    safe = torch.where(there, largest, 1.0)
    total = torch.where(there, ((values / safe[..., None]) ** q).sum(-1), 1.0)
    return safe * total ** (1.0 / q) * there


def dual_weights(values: Tensor, q: float) -> Tensor:
    """Return the slopes of ||values||_q: how much each of them is in it. They are not negative."""
    if math.isinf(q):
        weight = torch.zeros_like(values).scatter_(1, values.argmax(1, keepdim=True), 1.0)
    else:
        norm = norm_of_rows(values, q)
        weight = (values / torch.where(norm > 0.0, norm, 1.0)[:, None]) ** (q - 1.0)
    return weight * (values > 0.0)
