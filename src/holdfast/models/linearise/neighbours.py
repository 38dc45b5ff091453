"""What the sampling linearisations share: noise, scales, scores around points, rows left out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from holdfast.machinery.numbers import EPS, Floats, refuse_number, whole_rows
from holdfast.models import Model
from holdfast.result.surrogate import Surrogate

# Numbers that go to a model at once, where it does not say itself: 32 MB of samples.
_NUMBERS = 1 << 22
# Scores that are held at once: 2 MB.
_SCORES = 1 << 18


def check_even(name: str, value: Any) -> None:
    """Refuse a count that cannot be made of pairs."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < 2 or value % 2:
        refuse_number(name, value, "an even whole number, at least 2")


def check_gradients(name: str, model: Model) -> None:
    """Refuse a model that has no gradients."""
    if model.kind != "network":
        raise ValueError(
            f"{name} needs the gradients of a network, but this is a {model.kind} model; use "
            "linearise='lime' with its default settings"
        )


def mirrored_normal(samples: int, d: int, random_state: int) -> Floats:
    """Return standard normal points that fill space evenly: scrambled Sobol, each with its mirror.

    With z comes -z: whatever is even in z around the point cancels from a slope.

    Examples
    --------
    >>> noise = mirrored_normal(512, 3, random_state=0)
    >>> noise.shape, bool(np.abs(noise.mean(axis=0)).max() < 1e-15)
    ((512, 3), True)
    >>> noise.std(axis=0).round(2)
    array([1., 1., 1.])
    """
    from scipy.stats import qmc  # takes a while to import

    pairs = samples // 2
    # whole powers of two are drawn, and cut: the first n points are the same either way
    sobol = qmc.Sobol(d, seed=np.random.default_rng(random_state))
    uniform = sobol.random_base2(math.ceil(math.log2(pairs)))[:pairs]
    half = special.ndtri(np.clip(uniform, EPS, 1.0 - EPS))
    return np.concatenate([half, -half])


def training_scale(X_train: Floats | None, d: int, name: str) -> Floats:
    """Return the standard deviation of each column, 1 where it does not vary (as scikit-learn)."""
    if X_train is None:
        raise ValueError(
            f"{name} needs the data the model was trained on; pass X_train=..., or, for a "
            "network, linearise='gradient'"
        )
    table = np.asarray(X_train, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != d or len(table) == 0:
        raise ValueError(f"X_train has shape {table.shape}; expected (m, {d})")
    if not np.isfinite(table).all():
        raise ValueError("X_train has values that are missing or not finite")
    spread = table.std(axis=0)
    varies = spread > len(table) * EPS * np.abs(table.mean(axis=0))
    return np.where(varies, spread, 1.0)


def scores_around(model: Model, points: Floats, shifts: Floats) -> Floats:
    """Score of every point moved by every shift, (n, m).

    A network sees samples that are made in its own type on its own device.

    Examples
    --------
    >>> from holdfast.models import LinearModel
    >>> model = LinearModel([1.0, -0.5], -1.0)
    >>> scores_around(model, np.zeros((2, 2)), np.eye(2))
    array([[ 0. , -1.5],
           [ 0. , -1.5]])
    """
    if model.kind != "network":
        at_once = max(1, _NUMBERS // points.shape[1])
        return _in_chunks(model.score, points, np.ascontiguousarray(shifts.T), at_once)
    import torch

    from holdfast.models.network import CHUNK, Network

    assert isinstance(model, Network)
    with torch.inference_mode():
        return _in_chunks(
            lambda samples: model.logits(samples).cpu().numpy(),
            model.tensor(points),
            model.tensor(shifts).T.contiguous(),
            CHUNK,
        )


def _in_chunks(evaluate: Callable[[Any], Floats], points: Any, shifts: Any, at_once: int) -> Floats:
    """Evaluate at most `at_once` samples together; arrays and tensors are written alike.

    `shifts` comes as (d, m): samples are made column by column, in long loops, and handed on
    transposed, which costs nothing.
    """
    (n, d), m = points.shape, shifts.shape[1]
    scores = np.empty((n, m))
    rows = max(1, at_once // m)
    for i in range(0, n, rows):
        for k in range(0, m, at_once):
            samples = points[i : i + rows].T[:, :, None] + shifts[:, None, k : k + at_once]
            found = evaluate(samples.reshape(d, -1).T)
            scores[i : i + rows, k : k + at_once] = found.reshape(samples.shape[1:])
    return scores


def slopes_around(model: Model, points: Floats, shifts: Floats) -> tuple[Floats, Floats]:
    """Mean gradient of a network's score over the shifts, (n, d), and the scores, (n, m)."""
    import torch

    from holdfast.models.network import CHUNK, Network

    assert isinstance(model, Network)
    network = model

    def total(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = network.logits(samples)
        return scores.sum(), scores  # rows do not see each other: the gradient is that of each

    gradient = torch.func.grad(total, has_aux=True)
    x, moves = network.tensor(points), network.tensor(shifts)
    slopes, scores = np.zeros(points.shape), np.empty((len(points), len(shifts)))
    rows = max(1, CHUNK // len(shifts))
    with torch.no_grad():  # no graph of the parameters; the gradient is taken all the same
        for i in range(0, len(x), rows):
            for k in range(0, len(moves), CHUNK):
                samples = x[i : i + rows, None] + moves[k : k + CHUNK]
                each, found = gradient(samples.flatten(0, 1))
                part = each.view(samples.shape).sum(dim=1, dtype=torch.float64)
                slopes[i : i + rows] += part.cpu().numpy()
                scores[i : i + rows, k : k + CHUNK] = found.view(samples.shape[:2]).cpu().numpy()
    return slopes / len(shifts), scores


Fits = tuple[Floats, Floats, Floats, Floats]  # coefficients, intercepts, R^2, errors at the points


def over_usable(
    name: str, points: Floats, fit: Callable[[Floats], Fits], samples: int
) -> Surrogate:
    """Fit the rows that are numbers, in blocks; the others get NaN and touch nobody."""
    n, d = points.shape
    usable = np.flatnonzero(whole_rows(points))
    coef, single = np.full((n, d), np.nan), np.full((3, n), np.nan)
    at_once = max(1, _SCORES // samples)
    for begin in range(0, len(usable), at_once):
        block = usable[begin : begin + at_once]
        coef[block], *rest = fit(points[block])
        single[:, block] = rest
    return Surrogate(name, coef, *single)


def r_squared(residuals: Floats, deviations: Floats, weights: Floats) -> Floats:
    """Weighted share of the variation that is explained, row by row; 1 where nothing varies."""
    left, all_of_it = residuals**2 @ weights, deviations**2 @ weights
    varies = all_of_it > 0.0
    return np.asarray(1.0 - np.where(varies, left, 0.0) / np.where(varies, all_of_it, 1.0))
