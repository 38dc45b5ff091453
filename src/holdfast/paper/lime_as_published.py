"""LIME as the paper's authors call it, for reproducing their tables and for nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models import Model
from holdfast.models.linearise.base import Lineariser
from holdfast.models.linearise.neighbours import r_squared, training_scale
from holdfast.result.surrogate import Surrogate

_SAMPLES = 5000
_DIGITS = 4


@dataclass(frozen=True)
class LimeAsPublished(Lineariser):
    """The published tables' surrogate, flaws included; use `Lime` for anything else.

    What is wrong with it: samples lie around the mean of the training data instead of around the
    point; a logistic regression is fitted to yes and no instead of to the score; its coefficients
    are those of standardised columns, rounded to 4 digits as is the intercept, but are applied to
    the points as they are. Instance number i (from 0) is sampled with numpy's seed i, whatever
    `random_state` says. It gives to the last rounded digit what the package gives for
    ``LimeTabularExplainer(training, mode="regression", discretize_continuous=False,
    feature_selection="none")`` with ``model_regressor=LogisticRegression()``.

    A row whose samples are all approved or all denied has no such regression: its numbers are
    NaN. R^2 and the error at the point are those of the score as it is used.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.models import BlackBox
    >>> from holdfast.paper import LimeAsPublished
    >>> box = BlackBox(lambda x: 1 / (1 + np.exp(-x[:, 0])))
    >>> training = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = LimeAsPublished().fit(box, np.zeros((1, 2)), training, random_state=0)
    >>> bool(found.coef[0, 0] > 10 * abs(found.coef[0, 1]))
    True
    """

    name = "lime_as_published"
    needs = "any model, and training points"

    def fit(self, model: Model, X: Floats, X_train: Floats | None, random_state: int) -> Surrogate:
        """Return one linear score for each point."""
        scale = training_scale(X_train, X.shape[1], self.name)
        mean = np.asarray(X_train, dtype=np.float64).mean(axis=0)
        n, d = X.shape
        coef, single = np.full((n, d), np.nan), np.full((3, n), np.nan)
        for i in np.flatnonzero(whole_rows(X)):
            coef[i], *rest = _fit_row(model, X[i], mean, scale, int(i))
            single[:, i] = rest
        return Surrogate(self.name, coef, *single)


def _fit_row(model: Model, x: Floats, mean: Floats, scale: Floats, number: int) -> list[Floats]:
    """Return coefficients, intercept, R^2 and error of one row; NaN where there are none."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import pairwise_distances

    draws = np.random.RandomState(number).normal(0, 1, _SAMPLES * len(x))
    samples = draws.reshape(_SAMPLES, len(x)) * scale + mean
    samples[0] = x
    standard = (samples - mean) / scale
    distances = pairwise_distances(standard, standard[:1]).ravel()
    width = 0.75 * math.sqrt(len(x))
    weights = np.sqrt(np.exp(-(distances**2) / width**2))
    scores = model.score(samples)
    approved = scores > 0.0
    if approved.all() or not approved.any():
        return [np.full(len(x), np.nan), *np.full(3, np.nan)]
    fitted = LogisticRegression().fit(standard, approved, sample_weight=weights)
    coef = np.round(fitted.coef_[0], _DIGITS)
    intercept = np.round(fitted.intercept_[0], _DIGITS)
    as_used = samples @ coef + intercept
    deviations = scores - np.average(scores, weights=weights)
    r2 = r_squared(scores - as_used, deviations, weights)
    return [coef, intercept, r2, scores[0] - as_used[0]]
