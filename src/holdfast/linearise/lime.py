"""LIME: a weighted ridge regression on the scores of random neighbours, for all rows at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    training_scale,
)
from holdfast.models import Model
from holdfast.surrogate import Surrogate

# The package `lime` draws 5,000 samples and punishes with alpha = 1. A sum over n samples grows
# with n, so alpha = n / 5,000 keeps the balance, and what is estimated, whatever n is. The same
# goes for the point itself, which the package counts as one of its samples.
_SAMPLES_OF_THE_PACKAGE = 5000


@register
@dataclass(frozen=True)
class Lime(Lineariser):
    """The local linear model of the package `lime`, fitted to the score around each point.

    It estimates what ``LimeTabularExplainer(training, mode="regression",
    discretize_continuous=False, sample_around_instance=True, feature_selection="none")`` does:
    neighbours are normal around the point with the training data's standard deviations, their
    weights are exp(-distance^2 / (2 width^2)), and a ridge regression is fitted to them. What
    differs: the regression is on the score, all rows share one noise (and with it one regression
    operator), and coefficients come back in the units of the points.

    Parameters
    ----------
    samples : int
        Neighbours of each row, an even number; powers of two are best for "sobol".
    sampling : {"sobol", "random"}
        "random" draws and weights as the package does. "sobol" draws evenly and in mirrored
        pairs from the normal density times the kernel, which is normal again: the same
        estimate, from a tenth of the samples.
    kernel_width : float, optional
        In standard deviations; 0.75 sqrt(d) by default.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.linearise import Lime
    >>> from holdfast.models import BlackBox
    >>> box = BlackBox(lambda x: 1 / (1 + np.exp(-np.tanh(x[:, 0]) - 2 * x[:, 1])))
    >>> training = np.random.default_rng(0).normal(size=(100, 2))
    >>> surrogate = Lime().fit(box, np.zeros((1, 2)), training, seed=0)
    >>> surrogate.coef.round(2), surrogate.r2.round(2)
    (array([[0.72, 2.  ]]), array([0.99]))
    """

    name = "lime"
    needs = "any model, and training points"

    samples: int = 512
    sampling: str = "sobol"
    kernel_width: float | None = None

    def __post_init__(self) -> None:
        check_even("samples", self.samples)
        if self.sampling not in ("sobol", "random"):
            refuse("sampling", self.sampling, "'sobol' or 'random'")
        if self.kernel_width is not None and not 0.0 < to_number(self.kernel_width) < math.inf:
            refuse("kernel_width", self.kernel_width, "a positive number or None")

    def fit(self, model: Model, points: Floats, training: Floats | None, seed: int) -> Surrogate:
        """Return one linear score for each point."""
        scale = training_scale(training, points.shape[1], self.name)
        noise, weights = self.draw(points.shape[1], seed)
        regression = _Regression(noise, weights, self.samples / _SAMPLES_OF_THE_PACKAGE)

        def fit_rows(rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            slopes, at_point = np.empty_like(rows), np.empty(len(rows))
            r2, error = np.empty(len(rows)), np.empty(len(rows))
            for block in row_blocks(len(rows), len(noise)):
                scores = scores_around(model, rows[block], noise * scale)
                slopes[block], at_point[block], r2[block] = regression.fit(scores)
                error[block] = scores[:, 0] - at_point[block]
            coef = slopes / scale
            return coef, at_point - np.einsum("ij,ij->i", coef, rows), r2, error

        return over_usable(self.name, points, fit_rows)

    def draw(self, d: int, seed: int) -> tuple[Floats, Floats]:
        """Return the noise that all rows share, in standard deviations, and its weights.

        The first row is zero: the point itself.
        """
        square = self.kernel_width**2 if self.kernel_width is not None else 0.75**2 * d
        if self.sampling == "random":
            noise = np.random.default_rng(seed).standard_normal((self.samples, d))
            weights = np.exp(-np.einsum("ij,ij->i", noise, noise) / (2.0 * square))
        else:
            # N(0, 1) exp(-z^2 / (2 width^2)) is N(0, s^2) times s in each column:
            # drawn so, no sample is wasted where the kernel is small.
            shrink = square / (1.0 + square)
            noise = math.sqrt(shrink) * mirrored_normal(self.samples, d, seed)
            weights = np.full(self.samples, shrink ** (d / 2.0))
        own = self.samples / _SAMPLES_OF_THE_PACKAGE
        return np.vstack([np.zeros(d), noise]), np.concatenate([[own], weights])


class _Regression:
    """Weighted ridge regression on one design for many right-hand sides."""

    def __init__(self, noise: Floats, weights: Floats, alpha: float) -> None:
        self.weights = weights / weights.sum()
        self.centre = self.weights @ noise
        self.design = noise - self.centre
        weighted = self.design * weights[:, None]
        gram = self.design.T @ weighted + alpha * np.eye(noise.shape[1])
        self.operator = np.linalg.solve(gram, weighted.T)  # slopes = operator @ scores

    def fit(self, scores: Floats) -> tuple[Floats, Floats, Floats]:
        """Return slopes, values at the point (where the noise is zero) and weighted R^2."""
        mean = scores @ self.weights
        deviations = scores - mean[:, None]
        slopes = deviations @ self.operator.T
        residuals = deviations - slopes @ self.design.T
        return slopes, mean - slopes @ self.centre, r_squared(residuals, deviations, self.weights)
