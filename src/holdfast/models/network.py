"""Networks in torch: the score, its gradients, and its parameters, on any device."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from holdfast.machinery.numbers import Floats, check_choice, check_kind, read_floats, refuse, shown
from holdfast.models.base import Model
from holdfast.models.origin import Origin

# Rows that go through a network at once: large enough to keep the processor busy, small enough
# for its caches (measured with the paper's network).
CHUNK = 8_192


@dataclass(frozen=True, eq=False)
class Network(Model):
    """A torch module as a score.

    Parameters
    ----------
    module : torch.nn.Module
        From (n, d) to (n,) or (n, 1). It is copied, and the copy put into evaluation mode: what
        happens to it later makes no difference.
    output : {"logit", "probability"}
        What the module returns. A `Sequential` that ends in a `Sigmoid` is cut before it, so
        that its scores are exact however sure the network is; probabilities of any other one
        are kept within 1e-7 of 0 and 1.
    device : str, optional
        Where it runs: "cpu", "cuda", ...; by default where it is.

    Examples
    --------
    >>> import torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, -0.5]])), layer.bias.fill_(-1.0)
    >>> Network(layer).score([[2.0, 1.0]])
    array([0.5])
    """

    module: nn.Module
    output: str = "logit"
    device: str | None = None
    feature_names: list[Any] | None = None
    origin: Origin | None = None
    cutoff: float = 0.0
    kind = "network"

    def __post_init__(self) -> None:
        module, output = self.module, self.output
        check_choice("output", output, ("logit", "probability"))
        check_kind("module", module, nn.Module, "pass a torch module")
        if not any(True for _ in module.parameters()):
            raise ValueError(f"module = {shown(module)} has no parameters: it is not a network")
        if isinstance(module, nn.Sequential) and isinstance(module[-1], nn.Sigmoid):
            if output == "logit":
                raise ValueError("output = 'logit', but the network ends in a sigmoid")
            module, output = module[:-1], "logit"
        device = (
            usable_device(self.device)
            if self.device is not None
            else next(module.parameters()).device
        )
        if any(parameter.is_complex() for parameter in module.parameters()):
            raise ValueError(
                "parameters of the module are complex numbers, but a score must be real"
            )
        try:
            own = copy.deepcopy(module)
        except RuntimeError as error:
            raise ValueError(
                f"the module cannot be copied ({error}); if it is pruned or normed by hooks, make "
                "that permanent first: torch.nn.utils.prune.remove(...), remove_weight_norm(...)"
            ) from None
        object.__setattr__(self, "module", own.to(device).eval())
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "device", str(device))

    @property
    def dtype(self) -> torch.dtype:
        """Type of the network's numbers."""
        return next(self.module.parameters()).dtype

    def tensor(self, X: ArrayLike) -> Tensor:
        """Points as the network reads them, on its device."""
        if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
            X = read_floats("X", X)
        return torch.tensor(X, dtype=self.dtype, device=self.device)

    def logits(self, X: Tensor) -> Tensor:
        """Score of each row of a tensor, with its gradient."""
        first = next((m for m in self.module.modules() if isinstance(m, nn.Linear)), None)
        if first is not None and X.shape[-1] != first.in_features:
            raise ValueError(f"X has {X.shape[-1]} columns, the network takes {first.in_features}")
        return as_logits(self.module(X), self.output, len(X))

    def score(self, X: ArrayLike) -> Floats:
        """Score of each (encoded) point."""
        array = np.atleast_2d(np.asarray(X, dtype=np.float64))
        scores = np.empty(len(array))
        with torch.inference_mode():
            for begin in range(0, len(array), CHUNK):
                piece = self.logits(self.tensor(array[begin : begin + CHUNK]))
                scores[begin : begin + CHUNK] = piece.double().cpu().numpy()
        return scores

    def slope(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Slope of the score in each (encoded) point, and the score.

        Examples
        --------
        >>> import torch
        >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
        >>> with torch.no_grad():
        ...     _ = layer.weight.copy_(torch.tensor([[1.0, -0.5]])), layer.bias.fill_(-1.0)
        >>> Network(layer).slope([[2.0, 1.0]])
        (array([[ 1. , -0.5]]), array([0.5]))
        """
        array = np.atleast_2d(np.asarray(X, dtype=np.float64))
        slopes, scores = np.empty_like(array), np.empty(len(array))
        for begin in range(0, len(array), CHUNK):
            piece = slice(begin, begin + CHUNK)
            with torch.enable_grad():
                x = self.tensor(array[piece]).requires_grad_()
                logits = self.logits(x)
                (slope,) = torch.autograd.grad(logits.sum(), x)
            slopes[piece] = slope.double().cpu().numpy()
            scores[piece] = logits.detach().double().cpu().numpy()
        return slopes, scores

    def in_double(self) -> Network:
        """Return the same network in double precision."""
        return replace(self, module=copy.deepcopy(self.module).double())


def usable_device(name: str) -> torch.device:
    """Read the name of a device, and refuse one that is not there."""
    if not isinstance(name, str):
        refuse("device", name, "the name of one, such as 'cpu' or 'cuda'")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device = {name!r} cannot be used here: {error}") from None
    return device


def as_logits(outputs: Tensor, output: str, n: int) -> Tensor:
    """Turn what a module returned for n rows into n scores."""
    if outputs.numel() != n:
        raise ValueError(
            f"the network gave shape {tuple(outputs.shape)} for {n} rows; expected ({n},) or "
            f"({n}, 1): one score for each row. If it gives two scores for two classes, return "
            "their difference."
        )
    flat = outputs.reshape(n)
    return torch.logit(flat, eps=1e-7) if output == "probability" else flat
