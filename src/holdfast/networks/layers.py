"""Plain feed-forward networks, passed forwards and backwards by hand.

Most networks that are judged are a `Sequential` of linear layers with ReLU between them. The slope
of such a score in a layer's weights is an outer product, of the slopes in what the layer puts out
and of what it takes in: two short vectors stand for thousands of numbers. And where every row has
its own change of the parameters, the trained ones are still shared: one product of matrices for
all rows. Other modules are differentiated by torch (`holdfast.networks.parameters`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from holdfast.models.network import Network


class Change(Protocol):
    """What a change of the parameters adds to each layer, row by row."""

    def forwards(self, layer: int, inputs: Tensor) -> Tensor:
        """Return what is added to the outputs, for these inputs of a layer."""

    def backwards(self, layer: int, slopes: Tensor) -> Tensor:
        """Return what is added to the slopes in the inputs, for these slopes in the outputs."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What a pass leaves behind.

    Attributes
    ----------
    score : (n,) tensor
    inputs : list of (n, k) tensors
        What each layer took in, with a 1 at the end that its bias is multiplied by.
    slopes : list of (n, k) tensors
        Slope of the score in what each layer put out.
    """

    score: Tensor
    inputs: list[Tensor]
    slopes: list[Tensor]

    def where(self, chosen: Tensor, other: Trace) -> Trace:
        """Take the chosen rows from here, the rest from the other."""
        rows = chosen[:, None]
        return Trace(
            torch.where(chosen, self.score, other.score),
            [torch.where(rows, a, b) for a, b in zip(self.inputs, other.inputs, strict=True)],
            [torch.where(rows, a, b) for a, b in zip(self.slopes, other.slopes, strict=True)],
        )

    def take(self, rows: Tensor) -> Trace:
        """Some of the rows."""
        return Trace(
            self.score[rows], [a[rows] for a in self.inputs], [a[rows] for a in self.slopes]
        )


@dataclass(frozen=True, eq=False)
class Layers:
    """Linear layers with ReLU between them: the matrix of each, its bias the last column."""

    matrices: list[Tensor]
    biased: list[bool]

    @classmethod
    def of(cls, network: Network) -> Layers | None:
        """Read a network, if it is a linear layer or such a `Sequential`, and nothing else."""
        module = network.module
        parts = list(module) if type(module) is nn.Sequential else [module]
        linear, between = parts[::2], parts[1::2]
        plain = (
            network.output == "logit"
            and len(parts) % 2 == 1
            and all(type(part) is nn.Linear for part in linear)
            and all(type(part) is nn.ReLU for part in between)
            and len(set(map(id, linear))) == len(linear)
            and not any(_hooked(part) for part in (module, *parts))
        )
        if not plain:
            return None
        matrices, biased = [], []
        for part in linear:
            columns = [part.weight.detach()]
            if part.bias is not None:
                columns.append(part.bias.detach()[:, None])
            matrices.append(torch.cat(columns, 1))
            biased.append(part.bias is not None)
        return cls(matrices, biased)

    @property
    def widths(self) -> tuple[list[int], list[int]]:
        """How many numbers the layers put out, and how many they take in (1s counted)."""
        return [m.shape[0] for m in self.matrices], [m.shape[1] for m in self.matrices]

    def matrices_of(self, change: Tensor) -> list[Tensor]:
        """Read a (k,) change of all parameters as one of each layer's matrix."""
        matrices, begin = [], 0
        for matrix, biased in zip(self.matrices, self.biased, strict=True):
            out, columns = matrix.shape[0], matrix.shape[1] - biased
            weights = change[begin : begin + out * columns].view(out, columns)
            begin += out * columns
            bias = change[begin : begin + out * biased].view(out, int(biased))
            begin += out * biased
            matrices.append(torch.cat([weights, bias], 1))
        return matrices

    def weights(self, layer: int) -> Tensor:
        """Matrix of a layer without its bias."""
        matrix = self.matrices[layer]
        return matrix[:, :-1] if self.biased[layer] else matrix

    def forwards(self, x: Tensor, change: Change | None) -> tuple[Tensor, list[Tensor]]:
        """Score of each row, and what each layer took in."""
        inputs: list[Tensor] = []
        reached = x
        for layer, matrix in enumerate(self.matrices):
            if layer > 0:
                reached = reached.clamp_min(0.0)
            if self.biased[layer]:
                reached = nn.functional.pad(reached, (0, 1), value=1.0)
            inputs.append(reached)
            added = None if change is None else change.forwards(layer, reached)
            reached = reached @ matrix.T if added is None else torch.addmm(added, reached, matrix.T)
        return reached[:, 0], inputs

    def backwards(self, inputs: list[Tensor], change: Change | None) -> tuple[list[Tensor], Tensor]:
        """Slope of the score in what each layer put out, and in the point."""
        slope = inputs[0].new_ones((len(inputs[0]), 1))
        slopes: list[Tensor] = []
        for layer in reversed(range(len(self.matrices))):
            slopes.append(slope)
            weights = self.weights(layer)
            if change is None:
                below = slope @ weights
            else:
                added = change.backwards(layer, slope)
                below = torch.addmm(added[:, : weights.shape[1]], slope, weights)
            slope = below if layer == 0 else below * (inputs[layer][:, : below.shape[1]] > 0.0)
        return slopes[::-1], slope

    def trace(self, x: Tensor, change: Change | None) -> Trace:
        """Pass forwards and backwards."""
        score, inputs = self.forwards(x, change)
        return Trace(score, inputs, self.backwards(inputs, change)[0])


def _hooked(module: nn.Module) -> bool:
    """Whether something else happens when the module is called."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    return any(hooks) or bool(module._backward_pre_hooks)
