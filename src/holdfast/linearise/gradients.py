"""Gradients of a network's score: at the point, or averaged over its neighbourhood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast._numbers import Floats, refuse, to_number
from holdfast.linearise.base import Lineariser, register
from holdfast.linearise.neighbours import (
    check_even,
    mirrored_normal,
    over_usable,
    r_squared,
    row_blocks,
    scores_around,
)
from holdfast.models import Model
from holdfast.surrogate import Surrogate

if TYPE_CHECKING:
    from holdfast.models.network import Network

# The neighbourhood on which a bare gradient is judged: its standard deviation, in the units of
# the points, and how many samples of it.
_NEARBY, _NEARBY_SAMPLES = 0.1, 64


@register
@dataclass(frozen=True)
class SmoothGrad(Lineariser):
    """The network's gradient, averaged over normal neighbours of each point.

    As Smilkov and others define it, and captum's `NoiseTunnel`: the noise has one standard
    deviation in all columns, in the units of the points, so standardise them. The linear score
    touches the network at the point itself; its R^2 is taken over the same neighbours, and is
    negative where the mean score does better.

    Parameters
    ----------
    noise : float
        Standard deviation of the neighbours.
    samples : int
        Neighbours of each row, an even number: they come evenly, and in mirrored pairs.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from holdfast.linearise import SmoothGrad
    >>> from holdfast.models.network import Network
    >>> ramp = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> with torch.no_grad():
    ...     for layer in (ramp[0], ramp[2]):
    ...         _ = layer.weight.fill_(1.0), layer.bias.fill_(0.0)
    >>> surrogate = SmoothGrad(samples=64).fit(Network(ramp), np.zeros((1, 1)), None, seed=0)
    >>> surrogate.coef, surrogate.point_error
    (array([[0.5]]), array([0.]))
    """

    name = "smoothgrad"
    needs = "a network"

    noise: float = 0.5
    samples: int = 64

    def __post_init__(self) -> None:
        check_even("samples", self.samples)
        if not 0.0 < to_number(self.noise) < math.inf:
            refuse("noise", self.noise, "a positive number (without noise: 'gradient')")

    def fit(self, model: Model, points: Floats, training: Floats | None, seed: int) -> Surrogate:
        """Return one linear score for each point."""
        shifts = self.noise * mirrored_normal(self.samples, points.shape[1], seed)
        return _touching(self.name, model, points, shifts, shifts)


@register
@dataclass(frozen=True)
class Gradient(Lineariser):
    """The network's gradient at each point: the tangent.

    R^2 is taken over 64 normal neighbours at a standard deviation of 0.1 in every column.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from holdfast.linearise import Gradient
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, -0.5]])), layer.bias.fill_(-1.0)
    >>> tangent = Gradient().fit(Network(layer), np.ones((1, 2)), None, seed=0)
    >>> tangent.coef, tangent.intercept, tangent.r2
    (array([[ 1. , -0.5]]), array([-1.]), array([1.]))
    """

    name = "gradient"
    needs = "a network"

    def fit(self, model: Model, points: Floats, training: Floats | None, seed: int) -> Surrogate:
        """Return one linear score for each point."""
        d = points.shape[1]
        nearby = _NEARBY * mirrored_normal(_NEARBY_SAMPLES, d, seed)
        return _touching(self.name, model, points, np.zeros((1, d)), nearby)


def _touching(
    name: str, model: Model, points: Floats, shifts: Floats, neighbours: Floats
) -> Surrogate:
    """Take the mean gradient over `shifts`, through the score at the point."""
    if model.kind != "network":
        raise ValueError(
            f"{name} needs the gradients of a network, and this is a {model.kind} model; "
            "use linearise='lime'"
        )

    def fit_rows(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        coef = _mean_gradients(model, rows, shifts)  # type: ignore[arg-type]
        here, r2 = np.empty(len(rows)), np.empty(len(rows))
        around = np.vstack([np.zeros(rows.shape[1]), neighbours])
        equal = np.ones(len(neighbours))
        for block in row_blocks(len(rows), len(around)):
            scores = scores_around(model, rows[block], around)
            here[block], nearby = scores[:, 0], scores[:, 1:]
            residuals = nearby - here[block, None] - coef[block] @ neighbours.T
            deviations = nearby - nearby.mean(axis=1, keepdims=True)
            r2[block] = r_squared(residuals, deviations, equal)
        intercept = here - np.einsum("ij,ij->i", coef, rows)
        return coef, intercept, r2, np.zeros(len(rows))

    return over_usable(name, points, fit_rows)


def _mean_gradients(network: Network, points: Floats, shifts: Floats) -> Floats:
    """Mean over the shifts of the gradient at each point, a bounded number of samples at once."""
    import torch

    from holdfast.models.network import CHUNK

    # rows do not see each other, so the gradient of their sum is the gradient of each
    gradient = torch.func.grad(lambda samples: network.logits(samples).sum())
    x, moves = network.tensor(points), network.tensor(shifts)
    total = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    rows = max(1, CHUNK // len(shifts))
    with torch.no_grad():  # no graph of the parameters; the gradient is taken all the same
        for i in range(0, len(x), rows):
            for k in range(0, len(moves), CHUNK):
                samples = x[i : i + rows, None] + moves[k : k + CHUNK]
                slopes = gradient(samples.flatten(0, 1)).view(samples.shape)
                total[i : i + rows] += slopes.sum(dim=1, dtype=torch.float64)
    return np.asarray((total / len(shifts)).cpu().numpy())
