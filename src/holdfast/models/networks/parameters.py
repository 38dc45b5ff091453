"""A network as a function of its parameters: one vector of changes for every row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from holdfast.models.network import Network, as_logits

# What an ascent holds for a row at once, in vectors of its parameters: the change and its slope,
# those of the candidate, the changed parameters, and what their gradient is gathered from.
VECTORS_A_ROW = 10


class Parameters:
    """The score of every row under its own change of all parameters.

    A change is a row of a (n, `size`) tensor: the parameters in the order of
    ``module.named_parameters()``, flattened; `sizes` has the length of each tensor, `shapes` its
    shape, `owners` the name of the layer that it belongs to. Which of them may change is not said
    here: see `tensor_scales`.
    """

    def __init__(self, network: Network) -> None:
        named = dict(network.module.named_parameters())
        self.trained = torch.cat([tensor.detach().reshape(-1) for tensor in named.values()])
        self.sizes = [tensor.numel() for tensor in named.values()]
        self.owners = [name.rpartition(".")[0] for name in named]
        self.shapes = shapes = [tensor.shape for tensor in named.values()]

        def score(change: Tensor, point: Tensor) -> Tensor:
            pieces = torch.split(self.trained + change, self.sizes)
            changed = {
                name: piece.view(shape)
                for name, piece, shape in zip(named, pieces, shapes, strict=True)
            }
            outputs = functional_call(network.module, changed, (point[None],))
            return as_logits(outputs, network.output, 1)[0]

        self._score = vmap(score)
        self._by_change = vmap(grad_and_value(score, argnums=0))
        self._by_point = vmap(grad_and_value(score, argnums=1))

    @property
    def size(self) -> int:
        """Number of parameters."""
        return int(self.trained.numel())

    def rows_in(self, mib: float) -> int:
        """How many rows an ascent can take at once in so many MiB."""
        row = VECTORS_A_ROW * self.size * self.trained.element_size()
        return max(1, int(mib * 2**20 / row))

    def zeros(self, n: int) -> Tensor:
        """No change, for n rows."""
        return self.trained.new_zeros((n, self.size))

    def score(self, changes: Tensor, X: Tensor) -> Tensor:
        """Score of each row."""
        with torch.no_grad():
            return self._score(changes, X)

    def slope(self, changes: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient of each row's score in all of its parameters, and the score."""
        return _detached(self._by_change(changes, X))

    def point_slope(self, changes: Tensor, X: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient of each row's score in its point, and the score."""
        return _detached(self._by_point(changes, X))


def _detached(pair: Any) -> tuple[Tensor, Tensor]:
    gradient, value = pair
    return gradient.detach(), value.detach()
