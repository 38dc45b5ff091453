"""The worst last layer of a network for each point, exactly.

All layers but the last one make an embedding of a point, and the score is linear in it. So where
the last layer alone changes, the worst score over any set of linear models is a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from holdfast.machinery.numbers import EPS, Floats, check_kind, read_matrix, shown
from holdfast.models.network import CHUNK, Network
from holdfast.models.networks.layers import is_hooked
from holdfast.problem.last_layer import LastLayer

# What comes after the last layer and hands its one number on as it is (networks are in evaluation
# mode, where nothing is dropped)
_PASSES_ON = (nn.Identity, nn.Dropout, nn.Flatten)

# What rounding may take off the worst score of a last layer, relative to the terms of it
_HAIR = 1e-9
# Layers before it through which rounding can be followed, beside linear ones
_HANDS_ON = (*_PASSES_ON, nn.ReLU)
_SQUASHES = (nn.Tanh, nn.Sigmoid)  # into 1, and never further apart than before


@dataclass(frozen=True, eq=False)
class WorstLastLayers:
    """The worst last layer of the set for each point: no network of the set scores it lower.

    Attributes
    ----------
    score : (n,) array
        The lowest score in the set.
    loss : (n,) array
        ``log(1 + exp(-score))``.
    coef : (n, k) array
        Weights of a last layer of the set that gives that score.
    intercept : (n,) array
        Its bias.
    """

    score: Floats
    loss: Floats
    coef: Floats
    intercept: Floats


def worst_last_layer(network: Network, X: ArrayLike, robust_to: LastLayer) -> WorstLastLayers:
    """Return the last layer of a set that scores each point lowest.

    It is exact, for every set, up to the rounding of the numbers that the network computes with:
    nothing is searched for. The other layers are as they are.

    Parameters
    ----------
    network : Network
        A linear layer, or a `Sequential` that ends in one.
    X : (n, d) array
        Missing points have no score.
    robust_to : LastLayer

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> robust_to = holdfast.LastLayer(holdfast.NormBall(p=1, radius=0.5))
    >>> worst = worst_last_layer(Network(layer), [[2.0, -3.0]], robust_to)
    >>> worst.score, worst.coef, worst.intercept
    (array([-2.5]), array([[1. , 1.5]]), array([0.]))
    """
    head = Head.of(network)
    return head.worst(head.embed(read_matrix("X", X)), robust_to)


def embed(network: Network, X: ArrayLike) -> Floats:
    """Return what the layers before the last one make of each point.

    ``embed(network, X) @ coef + intercept`` are the scores, with the last layer's weights and bias
    (`last_layer_of`). A set for `LastLayer` is one over these k numbers.

    Parameters
    ----------
    network : Network
        A linear layer, or a `Sequential` that ends in one.
    X : (n, d) array

    Returns
    -------
    (n, k) array

    Examples
    --------
    >>> import torch
    >>> from holdfast.models.network import Network
    >>> embed(Network(torch.nn.Linear(2, 1)), [[2.0, -3.0]])  # nothing comes before the one layer
    array([[ 2., -3.]])
    """
    return Head.of(network).embed(read_matrix("X", X))


def last_layer_of(network: Network) -> tuple[Floats, float]:
    """Return the weights of a network's last layer, and its bias: 0 where it has none.

    Examples
    --------
    >>> import torch
    >>> from holdfast.models.network import Network
    >>> coef, intercept = last_layer_of(Network(torch.nn.Linear(2, 1, bias=False)))
    >>> coef.shape, intercept
    ((2,), 0.0)
    """
    head = Head.of(network)
    return head.coef.copy(), head.intercept


@dataclass(frozen=True, eq=False)
class Head:
    """A network taken apart: the layers before the last one, and that one."""

    network: Network
    body: nn.Sequential
    layer: nn.Linear
    coef: Floats
    intercept: float

    @classmethod
    def of(cls, network: Network) -> Head:
        """Take a network apart, or say why it cannot be."""
        check_kind("network", network, Network, "make it with holdfast.models.network.Network")
        if network.output != "logit":
            _refuse("it returns probabilities, which are not linear in any layer")
        *before, layer = _parts(network.module)
        if type(layer) is not nn.Linear or layer.out_features != 1:
            _refuse(f"it ends in {shown(layer)}")
        body = nn.Sequential(*before)
        own = {id(parameter) for parameter in layer.parameters()}
        if own & {id(parameter) for parameter in body.parameters()}:
            _refuse("its last layer shares parameters with earlier layers")
        coef = layer.weight.detach().double().cpu().numpy()[0].copy()
        intercept = 0.0 if layer.bias is None else float(layer.bias.detach().double())
        return cls(network, body, layer, coef, intercept)

    def embed(self, points: Floats) -> Floats:
        """Return what the body makes of points."""
        out = np.empty((len(points), len(self.coef)))
        with torch.inference_mode():
            for begin in range(0, len(points), CHUNK):
                x = self._read(points[begin : begin + CHUNK])
                out[begin : begin + CHUNK] = self._embedded(x).double().cpu().numpy()
        return out

    def worst(self, embedded: Floats, robust_to: LastLayer) -> WorstLastLayers:
        """Return the worst last layer of each embedded point."""
        check_kind("robust_to", robust_to, LastLayer, "write LastLayer(NormBall(...))")
        models = self.last_layers(robust_to)
        score = models.worst_score(embedded, self.coef, self.intercept)
        coef, intercept = models.worst_model(embedded, self.coef, self.intercept)
        with np.errstate(invalid="ignore"):  # a row without a point stays without a loss
            loss = np.logaddexp(0.0, -score)
        return WorstLastLayers(score, loss, coef, intercept)

    def last_layers(self, robust_to: LastLayer) -> Any:
        """Return the set of last layers; refuse one that this layer cannot be in."""
        models = robust_to.over(len(self.coef))
        if not all(parameter.requires_grad for parameter in self.layer.parameters()):
            raise ValueError(
                "robust_to is a LastLayer, but the last layer of the network has "
                "requires_grad=False, which says that it never changes; call "
                "requires_grad_(True) on it"
            )
        if self.layer.bias is None and models.numbers(len(self.coef)).intercept_scale > 0.0:
            raise ValueError(
                f"{shown(robust_to)} lets the bias of the last layer change, but that layer has "
                "none: leave it out of the set (intercept=False)"
            )
        return models

    def point_slope(self, points: Floats, coef: Floats) -> Floats:
        """Gradient of each point's score in the point, with weights of its own in the last layer.

        The worst score of a set has the gradient of the score under its worst last layer, held
        fixed (Danskin).
        """
        out = np.empty_like(points)
        for begin in range(0, len(points), CHUNK):
            weights = self.network.tensor(coef[begin : begin + CHUNK])
            with torch.enable_grad():
                x = self._read(points[begin : begin + CHUNK]).requires_grad_()
                total = (self._embedded(x) * weights).sum()
                (slope,) = torch.autograd.grad(total, x)
            out[begin : begin + CHUNK] = slope.double().cpu().numpy()
        return out

    def _read(self, points: Floats) -> Tensor:
        x = self.network.tensor(points)
        with torch.no_grad():
            self.network.logits(x[:1])  # refuses columns that are not the network's
        return x

    def _embedded(self, x: Tensor) -> Tensor:
        embedded: Tensor = self.body(x)
        if embedded.shape != (len(x), len(self.coef)):
            _refuse(f"{len(x)} rows reach its last layer in the shape {tuple(embedded.shape)}")
        return embedded


@dataclass(frozen=True, eq=False)
class LastLayerBound:
    """Scores that no network goes below in which the last layer alone changes.

    They are a closed form, in double precision, less what rounding may be: of the last layer, and
    of those before it, where they are linear ones with batch norms, ReLUs, tanh or logistic units
    between them. What other layers make of a point is taken as double precision has it.
    """

    head: Head
    robust_to: LastLayer

    @classmethod
    def of(cls, network: Network, robust_to: LastLayer) -> LastLayerBound:
        """Read a network and a set, or refuse them by name."""
        head = Head.of(network.in_double())
        module = head.network.module
        if not all(bool(t.isfinite().all()) for t in (*module.parameters(), *module.buffers())):
            raise ValueError(
                "parameters of the network are not finite, so nothing can be proven about it"
            )
        head.last_layers(robust_to)  # refuses a set that does not fit
        return cls(head, robust_to)

    def prove(self, points: Floats) -> tuple[Floats, Floats]:
        """Return what is proven of each point, and the worst score as it was computed."""
        _, proven, reached = self._worst(points)
        return proven, reached

    def lower(self, points: Floats) -> Floats:
        """Return what is proven of each point."""
        return self.prove(points)[0]

    def slope(self, points: Floats, *, n_jobs: int | None = None) -> tuple[Floats, Floats]:
        """Return how that changes with the points, and the scores."""
        coef, proven, _ = self._worst(points)
        return self.head.point_slope(points, coef), proven

    def _worst(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        head, embedded = self.head, self.head.embed(points)
        worst = head.worst(embedded, self.robust_to)
        size = 1.0 + np.abs(worst.intercept) + abs(head.intercept)
        size = size + ((np.abs(worst.coef) + np.abs(head.coef)) * np.abs(embedded)).sum(axis=1)
        before = self._rounding_before(points)
        return worst.coef, worst.score - _HAIR * size - before, worst.score

    def _rounding_before(self, points: Floats) -> Floats:
        """More than the rounding of the layers before can do to a score of the set."""
        head = self.head
        models = head.last_layers(self.robust_to).numbers(len(head.coef))
        # how large the weights of the set may be
        most = np.abs(head.coef) + models.radius * models.scale
        with torch.no_grad():
            size, roundings = self.head.network.tensor(np.abs(points)), 0
            for part in _opened(head.body):
                grown = _size_after(part, size)
                if grown is None:
                    return np.zeros(len(points))
                roundings += size.shape[1] + 32
                size = grown
        return np.asarray(8.0 * roundings * EPS * (size.cpu().numpy() @ most))


def _size_after(part: nn.Module, size: Tensor) -> Tensor | None:
    """Return what a layer computes with every number replaced by its size; None: unknown."""
    kind = type(part)
    if kind in _HANDS_ON:
        return size
    if kind in _SQUASHES:
        return size.clamp_min(1.0)
    if kind is nn.Linear:
        assert isinstance(part, nn.Linear)
        grown = size @ part.weight.abs().T
        return grown if part.bias is None else grown + part.bias.abs()
    if kind is nn.BatchNorm1d:
        assert isinstance(part, nn.BatchNorm1d)
        if part.running_mean is None or part.running_var is None:
            return None
        grown = (size + part.running_mean.abs()) / (part.running_var + part.eps).sqrt()
        if part.weight is not None:
            grown = grown * part.weight.abs()
        return grown if part.bias is None else grown + part.bias.abs()
    return None


def _parts(module: nn.Module) -> list[nn.Module]:
    """List the parts of a network up to its last layer, in order."""
    parts = list(_opened(module))
    while len(parts) > 1 and type(parts[-1]) in _PASSES_ON:
        parts.pop()
    if is_hooked(parts[-1]):
        _refuse("something else happens when its last layer is called (a hook)")
    return parts


def _opened(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts of a `Sequential`, and of those in it."""
    if type(module) is not nn.Sequential:
        yield module
        return
    if is_hooked(module):
        _refuse("something else happens when it is called (a hook)")
    for part in module:
        yield from _opened(part)


def _refuse(why: str) -> NoReturn:
    raise ValueError(
        f"the last layer of the network cannot be told apart: {why}. LastLayer needs a "
        "torch.nn.Sequential that ends in a Linear layer with one output (turn other modules "
        "into one: Sequential(body, last)), or scikit-learn's MLPClassifier"
    )
