"""Feed-forward networks of torch, brought to one plain form: linear layers and activations.

In evaluation mode dropout does nothing and batch norm is an affine map: it is folded into the
linear layer beside it. What cannot be read this way is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from holdfast.models.network import Network
from holdfast.models.networks.layers import is_hooked

IDENTITY, RELU, TANH, LOGISTIC = "identity", "relu", "tanh", "logistic"
_ACTIVATIONS = {nn.ReLU: RELU, nn.Tanh: TANH, nn.Sigmoid: LOGISTIC}
_MODULES = {IDENTITY: nn.Identity, RELU: nn.ReLU, TANH: nn.Tanh, LOGISTIC: nn.Sigmoid}
_DOES_NOTHING = (nn.Identity, nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout)
_KNOWN = "Linear, ReLU, Tanh, Sigmoid, Dropout and BatchNorm1d in a Sequential"


@dataclass(eq=False)
class _Layer:
    """A linear layer on its way, and what comes after it."""

    weight: Tensor
    bias: Tensor | None
    weight_is_free: bool
    bias_is_free: bool
    activation: str = IDENTITY


def fold_network(network: Network) -> Network:
    """Return a network as linear layers with activations between them, in double precision.

    It computes the same scores. Parameters that were fixed (``requires_grad=False``) stay so; a
    weight that is made of several parameters is fixed where all of them are.

    Examples
    --------
    >>> import torch
    >>> from holdfast.models.network import Network
    >>> parts = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(), torch.nn.Dropout()
    >>> network = Network(torch.nn.Sequential(*parts, torch.nn.Linear(3, 1)).eval())
    >>> fold_network(network).module
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
      (2): Linear(in_features=3, out_features=1, bias=True)
    )
    """
    if network.output != "logit":
        _refuse("it returns probabilities, so its last layer cannot be seen; return the logit")
    layers: list[_Layer] = []
    ahead: tuple[Tensor, Tensor, bool] | None = None  # a batch norm that waits for its layer
    for part in _parts(network.module):
        kind = type(part)
        if type(part) is nn.Linear:
            layers.append(_read_linear(part, ahead))
            ahead = None
        elif type(part) is nn.BatchNorm1d:
            affine = _affine_of(part)
            if layers and layers[-1].activation == IDENTITY and ahead is None:
                _fold_behind(layers[-1], affine)
            elif ahead is None:
                ahead = affine
            else:
                _refuse("two batch norms follow each other; leave one out")
        elif kind in _ACTIVATIONS:
            if not layers or layers[-1].activation != IDENTITY or ahead is not None:
                _refuse(f"a {kind.__name__} does not follow a linear layer")
            layers[-1].activation = _ACTIVATIONS[kind]
        else:
            _refuse(f"it contains a {kind.__name__}")
    if not layers or ahead is not None or layers[-1].activation != IDENTITY:
        _refuse("it does not end in a linear layer")
    if layers[-1].weight.shape[0] != 1:
        _refuse(
            f"its last layer has {layers[-1].weight.shape[0]} outputs, but there must be one, the "
            "score"
        )
    return _rebuilt(layers, network)


def layers_and_activations(folded: Network) -> tuple[list[nn.Linear], list[str]]:
    """Return the linear layers of a folded network, and the activation behind each hidden one."""
    linear: list[nn.Linear] = []
    activations: list[str] = []
    for part in folded.module.children():
        if isinstance(part, nn.Linear):
            linear.append(part)
        else:
            activations.append(next(a for a, kind in _MODULES.items() if type(part) is kind))
    return linear, activations


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield what a row passes through, one after the other."""
    seen: set[int] = set()

    def walk(part: nn.Module) -> Iterator[nn.Module]:
        kind = type(part).__name__
        if is_hooked(part) or "forward" in vars(part):
            _refuse(f"one {kind} has hooks, and what they do cannot be seen")
        if type(part) is nn.Sequential:
            for each in part:
                yield from walk(each)
        elif type(part) not in _DOES_NOTHING:
            own = {id(parameter) for parameter in part.parameters()}
            if not all(bool(parameter.isfinite().all()) for parameter in part.parameters()):
                _refuse(f"parameters of one {kind} are not finite")
            if own & seen:
                _refuse(f"parameters of one {kind} are used twice, so they would change twice")
            seen.update(own)
            yield part

    yield from walk(module)


def _read_linear(part: nn.Linear, ahead: tuple[Tensor, Tensor, bool] | None) -> _Layer:
    weight = part.weight.detach().double()
    bias = None if part.bias is None else part.bias.detach().double()
    bias_is_free = part.bias is not None and part.bias.requires_grad
    weight_is_free = part.weight.requires_grad
    if ahead is not None:
        factor, shift, free = ahead
        bias = weight @ shift + (0.0 if bias is None else bias)
        weight = weight * factor
        # the shift goes through the weights, so that the new bias changes with them
        weight_is_free = weight_is_free or free
        bias_is_free = bias_is_free or weight_is_free
    return _Layer(weight, bias, weight_is_free, bias_is_free)


def _affine_of(part: nn.BatchNorm1d) -> tuple[Tensor, Tensor, bool]:
    """Return factor and shift of a batch norm in evaluation mode, and whether it may change."""
    if part.running_mean is None or part.running_var is None:
        _refuse("one BatchNorm1d has no running statistics, so people affect each other")
    factor = torch.rsqrt(part.running_var.detach().double() + part.eps)
    free = False
    if part.weight is not None:
        factor, free = factor * part.weight.detach().double(), part.weight.requires_grad
    shift = -part.running_mean.detach().double() * factor
    if part.bias is not None:
        shift, free = shift + part.bias.detach().double(), free or part.bias.requires_grad
    if not bool((factor.isfinite() & shift.isfinite()).all()):
        _refuse("running statistics of one BatchNorm1d are not finite, or have variances below 0")
    return factor, shift, free


def _fold_behind(layer: _Layer, affine: tuple[Tensor, Tensor, bool]) -> None:
    factor, shift, free = affine
    layer.weight = factor[:, None] * layer.weight
    layer.bias = shift + (0.0 if layer.bias is None else factor * layer.bias)
    layer.weight_is_free, layer.bias_is_free = (
        layer.weight_is_free or free,
        layer.bias_is_free or free,
    )


def _rebuilt(layers: list[_Layer], network: Network) -> Network:
    parts: list[nn.Module] = []
    for layer in layers:
        out, into = layer.weight.shape
        # drawing first weights, as the constructor does, would change the caller's random numbers
        linear: Any = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, into, out, bias=layer.bias is not None, dtype=torch.float64
        )
        with torch.no_grad():
            linear.weight.copy_(layer.weight)
            if layer.bias is not None:
                linear.bias.copy_(layer.bias)
        linear.weight.requires_grad_(layer.weight_is_free)
        if layer.bias is not None:
            linear.bias.requires_grad_(layer.bias_is_free)
        parts += [linear, _MODULES[layer.activation]()]
    return Network(nn.Sequential(*parts[:-1]), "logit", network.device)


def _refuse(why: str) -> NoReturn:
    raise ValueError(f"nothing can be proven about this network: {why}. Supported: {_KNOWN}.")
