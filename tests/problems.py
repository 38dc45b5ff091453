"""Random recourse problems with everything that makes them awkward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdfast import NormBall
from holdfast.problem import RecourseProblem

EXPONENTS = (1.0, 1.1, 1.5, 2.0, 3.0, 10.0, math.inf)


def random_problem(rng: np.random.Generator, n: int = 40, **fixed: Any) -> RecourseProblem:
    """Return n rows that share a random shape: ties, zeros, bounds, scales, odd magnitudes."""
    d = fixed.get("d", int(rng.integers(1, 31)))
    coef_shape = (d,) if rng.random() < 0.5 else (n, d)
    coef = rng.normal(size=coef_shape) * rng.choice([0.1, 1.0, 3.0])
    points = rng.normal(size=(n, d)) * rng.choice([0.3, 1.0, 3.0])
    if rng.random() < 0.4:  # ties and exact zeros
        coef, points = np.round(coef, 1), np.round(points)
    coef = np.where(rng.random(coef.shape) < 0.15, 0.0, coef)
    points[rng.random(points.shape) < 0.15] = 0.0
    if rng.random() < 0.15:
        units = 10.0 ** rng.uniform(-5, 5, size=d)  # euros beside fractions
        points, coef = points * units, coef / units
    else:
        units = np.ones(d)
    p = fixed.get("p", float(rng.choice(EXPONENTS)))
    typical = np.linalg.norm(np.atleast_2d(coef)[0] * units, ord=p)
    radius = fixed.get("radius", float(typical * rng.choice([0.0, 0.05, 0.3, 0.9, 1.0, 1.3])))
    scale = None
    if rng.random() < 0.4 or units[0] != 1.0:
        scale = rng.choice([0.0, 0.5, 1.0, 2.0], size=d, p=[0.1, 0.3, 0.4, 0.2]) / units
    ball = NormBall(p, radius, scale=scale, intercept=bool(rng.random() < 0.75))
    costs = rng.uniform(0.2, 3.0, size=d) / units if rng.random() < 0.5 else 1.0 / units
    return RecourseProblem.build(
        points,
        coef,
        rng.normal(size=n) - 1.0 if rng.random() < 0.3 else float(rng.normal() - 1.0),
        robust_to=ball,
        feature_costs=costs,
        bounds=_bounds(rng, points, units),
        loss=fixed.get("loss", "logistic"),
    )


def _bounds(rng: np.random.Generator, points: np.ndarray, units: np.ndarray) -> Any:
    if rng.random() < 0.4:
        return None
    n, d = points.shape
    lower = points - rng.exponential(size=(n, d)) * units
    upper = points + rng.exponential(size=(n, d)) * units
    if rng.random() < 0.5:  # the same bounds for everybody
        lower, upper = lower.min(axis=0, keepdims=True), upper.max(axis=0, keepdims=True)
    lower[:, rng.random(d) < 0.3] = -np.inf
    upper[:, rng.random(d) < 0.3] = np.inf
    fixed = rng.random(d) < 0.2
    if lower.shape[0] == n:
        lower[:, fixed] = upper[:, fixed] = points[:, fixed]
        at_bound = rng.random((n, d)) < 0.1
        upper[at_bound] = points[at_bound]
    return lower, upper
