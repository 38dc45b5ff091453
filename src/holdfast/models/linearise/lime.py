"""LIME: a weighted ridge regression on the scores of random neighbours, for all rows at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from holdfast.machinery.numbers import Floats, refuse, refuse_number, to_number
from holdfast.models import Model
from holdfast.models.linearise.base import Lineariser
from holdfast.models.linearise.neighbours import (
    Fits,
    check_even,
    check_gradients,
    mirrored_normal,
    over_usable,
    scores_around,
    slopes_around,
    training_scale,
)
from holdfast.result.surrogate import Surrogate

# The package `lime` draws 5,000 samples and punishes with alpha = 1. A sum over n samples grows
# with n, so alpha = n / 5,000 keeps the balance, and what is estimated, whatever n is. The same
# goes for the point itself, which the package counts as one of its samples.
_SAMPLES_OF_THE_PACKAGE = 5000
# How many each way of sampling takes, from the errors in benchmarks/README.md.
_SAMPLES = {"gradient": 512, "sobol": 1024, "random": _SAMPLES_OF_THE_PACKAGE}


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
    samples : int, optional
        Neighbours of each row, an even number; powers of two are best. By default 512 for
        "gradient", 1024 for "sobol", and 5000, the package's number, for "random".
    sampling : {"auto", "gradient", "sobol", "random"}
        "random" draws and weights as the package does. "sobol" draws evenly and in mirrored
        pairs from the normal density times the kernel, which is normal again. "gradient" draws
        likewise and averages the gradients of a network there: to that the regression tends.
        All three estimate the same; ``benchmarks/README.md`` has their errors. "auto" is
        "gradient" for networks and "sobol" for every other model.
    kernel_width : float, optional
        In standard deviations; 0.75 sqrt(d) by default.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.models.linearise import Lime
    >>> from holdfast.models import BlackBox
    >>> box = BlackBox(lambda x: 1 / (1 + np.exp(-np.tanh(x[:, 0]) - 2 * x[:, 1])))
    >>> training = np.random.default_rng(0).normal(size=(100, 2))
    >>> surrogate = Lime().fit(box, np.zeros((1, 2)), training, random_state=0)
    >>> surrogate.coef.round(2), surrogate.r2.round(2)
    (array([[0.72, 2.  ]]), array([1.]))
    """

    name = "lime"
    needs = "any model, and training points"

    samples: int | None = None
    sampling: str = "auto"
    kernel_width: float | None = None

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_even("samples", self.samples)
        if self.sampling not in ("auto", *_SAMPLES):
            refuse("sampling", self.sampling, "'auto', 'gradient', 'sobol' or 'random'")
        if self.kernel_width is not None and not 0.0 < to_number(self.kernel_width) < math.inf:
            refuse_number("kernel_width", self.kernel_width, "a positive number or None")

    def fit(self, model: Model, X: Floats, X_train: Floats | None, random_state: int) -> Surrogate:
        """Return one linear score for each point."""
        if self.sampling == "auto":
            sampling = "gradient" if model.kind == "network" else "sobol"
            return replace(self, sampling=sampling).fit(model, X, X_train, random_state)
        if self.sampling == "gradient":
            check_gradients("sampling = 'gradient'", model)
        d = X.shape[1]
        scale = training_scale(X_train, d, self.name)
        noise, weights = self.draw(d, random_state)
        alpha = len(noise[1:]) / _SAMPLES_OF_THE_PACKAGE
        regression = _Regression(noise, weights, alpha)
        # Under a normal density the slope of the regression is the mean gradient (Stein):
        # E[z f(z)] = s^2 E[f'(z)], and the ridge takes off the same share as ever.
        mass = self._variance(d) * weights[1:].sum()
        kept = mass / (mass + alpha)

        def fit_rows(rows: Floats) -> Fits:
            if self.sampling == "gradient":
                gradients, scores = slopes_around(model, rows, noise[1:] * scale)
                here = model.score(rows)
                rises = np.column_stack([np.zeros(len(rows)), scores - here[:, None]])
                slopes = kept * gradients * scale
            else:
                scores = scores_around(model, rows, noise * scale)
                here, rises = scores[:, 0], scores - scores[:, :1]
                slopes = regression.slopes(rises)
            above, r2 = regression.judge(rises, slopes)
            coef = slopes / scale
            return coef, here + above - np.einsum("ij,ij->i", coef, rows), r2, -above

        return over_usable(self.name, X, fit_rows, len(noise))

    def _variance(self, d: int) -> float:
        """Variance of each column of N(0, 1) exp(-z^2 / (2 width^2)), which is normal again."""
        square = 0.75**2 * d if self.kernel_width is None else self.kernel_width**2
        return square / (1.0 + square)

    def draw(self, d: int, random_state: int) -> tuple[Floats, Floats]:
        """Return the noise that all rows share, in standard deviations, and its weights.

        The first row is zero: the point itself.
        """
        variance, samples = self._variance(d), self.samples or _SAMPLES[self.sampling]
        if self.sampling == "random":
            noise = np.random.default_rng(random_state).standard_normal((samples, d))
            # exp(-z^2 / (2 width^2)), where 1 / width^2 = 1 / variance - 1
            weights = np.exp(-0.5 * (1.0 / variance - 1.0) * np.einsum("ij,ij->i", noise, noise))
        else:
            # drawn from density times kernel, no sample is wasted where the kernel is small
            noise = math.sqrt(variance) * mirrored_normal(samples, d, random_state)
            weights = np.full(samples, variance ** (d / 2.0))  # the kernel's mean
        own = samples / _SAMPLES_OF_THE_PACKAGE
        return np.vstack([np.zeros(d), noise]), np.concatenate([[own], weights])


class _Regression:
    """Weighted ridge regression on one design for many right-hand sides.

    Sums over samples go through `np.einsum`: matrix products would wake BLAS's own threads,
    which then spin on the processors that the network's next samples need.
    """

    def __init__(self, noise: Floats, weights: Floats, alpha: float) -> None:
        self.weights = weights / weights.sum()
        self.centre = self.weights @ noise
        design = noise - self.centre
        self.weighted = np.ascontiguousarray((design * self.weights[:, None]).T)
        self.gram = self.weighted @ design
        self.ridge = alpha / weights.sum() * np.eye(noise.shape[1])

    def slopes(self, rises: Floats) -> Floats:
        """Return the slopes, (n, d), that fit each row of scores."""
        return np.linalg.solve(self.gram + self.ridge, self._products(rises).T).T

    def judge(self, rises: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Return the values where the noise is zero, and the weighted R^2.

        With the design centred, |y - X s|^2 = |y|^2 - 2 s'X'y + s'X'X s.
        """
        mean = np.einsum("ij,j->i", rises, self.weights)
        total = np.einsum("ij,ij,j->i", rises, rises, self.weights) - mean**2
        explained = np.einsum("ij,ij->i", slopes, 2.0 * self._products(rises) - slopes @ self.gram)
        # what rounding leaves of a constant is no variation
        varies = total > 1e-12 * mean**2
        r2 = np.where(varies, explained, 1.0) / np.where(varies, total, 1.0)
        return mean - slopes @ self.centre, r2

    def _products(self, rises: Floats) -> Floats:
        """X'y, weighted, for each row of scores."""
        return np.asarray(np.einsum("ij,kj->ik", rises, self.weighted))
