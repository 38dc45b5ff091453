"""Other ways to read SmoothGrad: whose gradient, around what, and through which point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import expit

from holdfast.models.linearise import Lineariser
from holdfast.result.surrogate import Surrogate

SAMPLES = 200


@dataclass(frozen=True)
class MeanGradient(Lineariser):
    """The mean gradient over normal neighbours, laid through the point in one of several ways.

    Parameters
    ----------
    of : {"score", "probability"}
        What is differentiated.
    through : {"score", "probability", "nothing"}
        The intercept is f(x) - w.x with that f, or 0.
    noise : float
        Standard deviation of the neighbours.
    around : {"point", "mean"}
        Their centre: the point, or, as in the authors' call of LIME, the mean of the training data
        (the noise is then in standard deviations of the columns).
    """

    name = "mean gradient"
    needs = "a network"

    of: str = "score"
    through: str = "score"
    noise: float = 0.1
    around: str = "point"

    def fit(self, model, X, X_train, random_state):
        """Return one linear score for each point."""
        gradients = np.array([self._gradient(model, x, X_train, i) for i, x in enumerate(X)])
        coef, score = np.round(gradients, 4), model.score(X)
        value = {"score": score, "probability": expit(score), "nothing": (coef * X).sum(1)}
        intercept = np.round(value[self.through] - (coef * X).sum(1), 4)
        unknown = np.full(len(X), np.nan)
        return Surrogate(self.name, coef, intercept, unknown, unknown)

    def _gradient(self, model, x, training, seed):
        noise = self.noise * np.random.default_rng(seed).normal(size=(SAMPLES, len(x)))
        if self.around == "mean":
            noise, x = noise * training.std(axis=0), training.mean(axis=0)
        near = model.tensor(x + noise).requires_grad_(True)
        score = model.module(near)[:, 0]
        value = torch.sigmoid(score) if self.of == "probability" else score
        return torch.autograd.grad(value.sum(), near)[0].cpu().numpy().mean(axis=0)
