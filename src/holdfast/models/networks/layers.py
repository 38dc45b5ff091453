"""Plain feed-forward networks, as the compiled kernels read them.

Most networks that are judged are a `Sequential` of linear layers with ReLU between them. The slope
of such a score in a layer's weights is an outer product, of the slopes in what the layer puts out
and of what it takes in: two short vectors stand for thousands of numbers, and silent units cost
nothing. So these networks are passed forwards and backwards by hand, row by row, on the processor
wherever they are: the same answers on every device. Other modules are left to torch
(`holdfast.models.networks.parameters`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.network import Network

Reals = NDArray[Any]  # float32 or float64, as the network's own
# A thread is worth its while for so many rows of half a millisecond each.
LEAST_ROWS = 8


class Layers(NamedTuple):
    """Linear layers with ReLU between them.

    Attributes
    ----------
    sizes : (L + 1,) array
        Number of features, of the units of each layer, and 1.
    unit_at : (L + 1,) array
        Where each of them begins in a vector of all units.
    weight_at, bias_at : (L,) arrays
        Where weights and biases of a layer begin in the vector of all parameters, whose order is
        that of ``module.named_parameters()``; -1: no biases.
    trained : (k,) array
    turned : (k,) array
        The same, every matrix transposed.
    """

    sizes: NDArray[np.int64]
    unit_at: NDArray[np.int64]
    weight_at: NDArray[np.int64]
    bias_at: NDArray[np.int64]
    trained: Reals
    turned: Reals

    @property
    def units(self) -> int:
        """Length of a vector of all units, features and score included."""
        return int(self.sizes.sum())


def layers_of(network: Network) -> Layers | None:
    """Read a network, if it is a linear layer or such a `Sequential`."""
    module = network.module
    parts: list[Any] = list(module) if type(module) is nn.Sequential else [module]
    linear, between = parts[::2], parts[1::2]
    plain = (
        network.output == "logit"
        and len(parts) % 2 == 1
        and all(type(part) is nn.Linear for part in linear)
        and all(type(part) is nn.ReLU for part in between)
        and len(set(map(id, linear))) == len(linear)  # a layer that is used twice changes twice
        and not any(is_hooked(part) for part in (module, *parts))
        and str(network.dtype) in ("torch.float32", "torch.float64")
    )
    if not plain:
        return None
    sizes = np.array([linear[0].in_features, *(part.out_features for part in linear)])
    weight_at, bias_at, flat = [], [], []
    length = 0
    for part in linear:
        weight_at.append(length)
        flat.append(part.weight.detach().cpu().numpy().ravel())
        length += part.weight.numel()
        bias_at.append(-1 if part.bias is None else length)
        if part.bias is not None:
            flat.append(part.bias.detach().cpu().numpy())
            length += part.bias.numel()
    trained = np.concatenate(flat)
    unit_at = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    layers = Layers(sizes, unit_at, np.array(weight_at), np.array(bias_at), trained, trained)
    return layers._replace(turned=turn_layers(layers, trained))


def points_for(layers: Layers, x: Tensor) -> Reals:
    """Points as the kernels read them."""
    if x.shape[1] != layers.sizes[0]:
        raise ValueError(f"X has {x.shape[1]} columns, the network takes {layers.sizes[0]}")
    return np.ascontiguousarray(x.cpu().numpy())


def turn_layers(layers: Layers, parameters: Reals) -> Reals:
    """Transpose every matrix of a vector of all parameters."""
    turned = parameters.copy()
    for layer, begin in enumerate(layers.weight_at):
        into, out = layers.sizes[layer], layers.sizes[layer + 1]
        matrix = parameters[begin : begin + into * out].reshape(out, into)
        turned[begin : begin + into * out] = matrix.T.ravel()
    return turned


def is_hooked(module: nn.Module) -> bool:
    """Whether something else happens when the module is called."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    return any(hooks) or bool(module._backward_pre_hooks)
