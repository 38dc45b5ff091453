"""Gradients of a network's score: at the point, or averaged over its neighbourhood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.machinery.numbers import Floats, refuse_number, to_number
from holdfast.models import Model
from holdfast.models.linearise.base import Lineariser
from holdfast.models.linearise.neighbours import (
    Fits,
    check_even,
    check_gradients,
    mirrored_normal,
    over_usable,
    r_squared,
    scores_around,
    slopes_around,
)
from holdfast.result.surrogate import Surrogate

# The neighbourhood on which a bare gradient is judged: its standard deviation, in the units of
# the points, and how many samples of it.
_NEARBY, _NEARBY_SAMPLES = 0.1, 64


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
    >>> from holdfast.models.linearise import SmoothGrad
    >>> from holdfast.models.network import Network
    >>> ramp = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1))
    >>> with torch.no_grad():
    ...     for layer in (ramp[0], ramp[2]):
    ...         _ = layer.weight.fill_(1.0), layer.bias.fill_(0.0)
    >>> smooth = SmoothGrad(samples=64)
    >>> surrogate = smooth.fit(Network(ramp), np.zeros((1, 1)), None, random_state=0)
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
            refuse_number("noise", self.noise, "a positive number (without noise: 'gradient')")

    def fit(self, model: Model, X: Floats, X_train: Floats | None, random_state: int) -> Surrogate:
        """Return one linear score for each point."""
        check_gradients(self.name, model)
        shifts = self.noise * mirrored_normal(self.samples, X.shape[1], random_state)

        def fit_rows(rows: Floats) -> Fits:
            coef, nearby = slopes_around(model, rows, shifts)
            return _touching(model, rows, coef, shifts, nearby)

        return over_usable(self.name, X, fit_rows, len(shifts))


@dataclass(frozen=True)
class Gradient(Lineariser):
    """The network's gradient at each point: the tangent.

    R^2 is taken over 64 normal neighbours at a standard deviation of 0.1 in every column.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from holdfast.models.linearise import Gradient
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, -0.5]])), layer.bias.fill_(-1.0)
    >>> tangent = Gradient().fit(Network(layer), np.ones((1, 2)), None, random_state=0)
    >>> tangent.coef, tangent.intercept, tangent.r2
    (array([[ 1. , -0.5]]), array([-1.]), array([1.]))
    """

    name = "gradient"
    needs = "a network"

    def fit(self, model: Model, X: Floats, X_train: Floats | None, random_state: int) -> Surrogate:
        """Return one linear score for each point."""
        check_gradients(self.name, model)
        d = X.shape[1]
        shifts = _NEARBY * mirrored_normal(_NEARBY_SAMPLES, d, random_state)

        def fit_rows(rows: Floats) -> Fits:
            coef, _ = slopes_around(model, rows, np.zeros((1, d)))
            return _touching(model, rows, coef, shifts, scores_around(model, rows, shifts))

        return over_usable(self.name, X, fit_rows, len(shifts))


def _touching(model: Model, rows: Floats, coef: Floats, shifts: Floats, nearby: Floats) -> Fits:
    """Lay the linear score through the model's at the point; judge it by the scores nearby."""
    here = model.score(rows)
    rises = nearby - here[:, None]
    deviations = rises - rises.mean(axis=1, keepdims=True)
    r2 = r_squared(rises - coef @ shifts.T, deviations, np.ones(len(shifts)))
    return coef, here - np.einsum("ij,ij->i", coef, rows), r2, np.zeros(len(rows))
