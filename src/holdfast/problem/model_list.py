"""The models that may come: some that are known, and every mixture of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats, read_floats, refuse
from holdfast.problem.model_set import (
    ModelSet,
    as_compiled,
    copy_into,
    model_of,
    norm_of,
    read_batch,
    score_of,
    with_radius,
    worst_score_of,
)


class HullNumbers(NamedTuple):
    """`ModelList` as the kernels read it."""

    radius: float  # 1: the list has no size
    coefs: Floats
    intercepts: Floats
    scale: Floats  # the largest coefficient of any model
    intercept_scale: float


@worst_score_of.of(HullNumbers)
@kernel
def worst_score_in_hull(x, coef, intercept, hull):
    """Least score under today's model and all of the list."""
    least = score_of(x, coef, intercept)
    for m in range(hull.intercepts.size):
        least = min(least, score_of(x, hull.coefs[m], hull.intercepts[m]))
    return least


@model_of.of(HullNumbers)
@kernel
def model_of_weights(hull, coef, intercept, weights, v):
    """Weights below 0 count as 0, and all are made to add up to 1; without any, it is today's."""
    total = 0.0
    for m in range(weights.size):
        total += max(weights[m], 0.0)
    if not 0.0 < total < math.inf:
        copy_into(v, coef)
        return intercept
    own = max(weights[0], 0.0) / total
    b = own * intercept
    for j in range(v.size):
        v[j] = own * coef[j]
    for m in range(hull.intercepts.size):
        share = max(weights[m + 1], 0.0) / total
        if share > 0.0:
            b += share * hull.intercepts[m]
            for j in range(v.size):
                v[j] += share * hull.coefs[m, j]
    return b


@norm_of.of(HullNumbers)
@kernel
def hull_norm(x, hull):
    return math.nan  # a list has no radius


@with_radius.of(HullNumbers)
@kernel
def hull_with_radius(hull, radius):
    return hull


@dataclass(frozen=True, eq=False)
class ModelList(ModelSet):
    """Today's model and some others: earlier years', other vendors', the members of an ensemble.

    A recourse must be approved by all of them, and is then approved by every mixture of them too.

    Parameters
    ----------
    models : sequence of (coef, intercept)
        Scores are ``coef @ x + intercept``, over the same features as today's model. From fitted
        models, `holdfast.sets.from_models` makes such a list.

    Examples
    --------
    >>> import holdfast
    >>> others = holdfast.ModelList([([1.0, 0.2], -0.1), ([0.8, 1.1], 0.0)])
    >>> others.worst_score([[2.0, -1.0]], coef=[1.0, 1.0], intercept=0.0)
    array([0.5])
    >>> result = holdfast.solve(
    ...     [[0.0, 0.0]], [1.0, 1.0], -1.0, robust_to=holdfast.ModelList([([1.0, 0.2], -0.1)]),
    ...     guarantee=0.5,
    ... )
    >>> result.recourse.round(3)
    array([[1., 0.]])
    """

    models: Sequence[tuple[ArrayLike, float]]
    coefs: Floats = field(init=False, repr=False)
    intercepts: Floats = field(init=False, repr=False)
    radius: float = field(default=1.0, init=False, repr=False)  # there is no other
    has_size = False

    def __post_init__(self) -> None:
        coefs, intercepts = _read_models(self.models)
        object.__setattr__(self, "coefs", coefs)
        object.__setattr__(self, "intercepts", intercepts)
        object.__setattr__(self, "models", tuple(zip(coefs, intercepts.tolist(), strict=True)))

    def __repr__(self) -> str:
        several = "s" if len(self.intercepts) > 1 else ""
        size = f"{len(self.intercepts)} model{several}, features: {self.coefs.shape[1]}"
        return f"ModelList(<{size}>)"

    @property
    def label(self) -> str:
        """How many models there are, today's among them."""
        return f"{len(self.intercepts) + 1} models"

    def crowd_of(self, what: str) -> str:
        """All of its models, by that name, as named in a sentence."""
        return f"each of the {len(self.intercepts) + 1} {what}s"

    def feature_scale(self, n_features: int) -> Floats:
        """Return the largest coefficient of each feature in any model, without its sign."""
        if self.coefs.shape[1] != n_features:
            raise ValueError(
                f"models have {self.coefs.shape[1]} coefficients each, but there are {n_features} "
                "features"
            )
        return np.asarray(np.abs(self.coefs).max(axis=0))

    @property
    def intercept_scale(self) -> float:
        """The largest intercept of any model, without its sign."""
        return float(np.abs(self.intercepts).max())

    def with_radius(self, radius: float) -> ModelList:
        """Refuse: a list has no size."""
        raise ValueError("a list of models has no radius")

    def numbers(self, n_features: int) -> HullNumbers:
        """Return the list as the kernels read it."""
        scale = self.feature_scale(n_features)
        coefs, intercepts = as_compiled(self.coefs), as_compiled(self.intercepts)
        return HullNumbers(1.0, coefs, intercepts, scale, self.intercept_scale)

    def worst_model(
        self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return the model that gives each point its worst score: one of the list, or today's.

        Returns
        -------
        coef : (n, d) array
        intercept : (n,) array
        """
        x, w, b = read_batch(X, coef, intercept)
        self.feature_scale(x.shape[1])
        scores = np.column_stack([(x * w).sum(axis=1) + b, x @ self.coefs.T + self.intercepts])
        worst = scores.argmin(axis=1)
        rows = np.arange(len(x))
        coefs = np.concatenate(
            [
                np.broadcast_to(w, x.shape)[:, None],
                np.broadcast_to(self.coefs, (len(x), *self.coefs.shape)),
            ],
            axis=1,
        )
        intercepts = np.column_stack(
            [
                np.broadcast_to(b, len(x)),
                np.broadcast_to(self.intercepts, (len(x), len(self.intercepts))),
            ]
        )
        return coefs[rows, worst], intercepts[rows, worst]


def _read_models(models: Any) -> tuple[Floats, Floats]:
    if isinstance(models, (str, dict)) or not hasattr(models, "__iter__"):
        refuse("models", models, "a list of pairs (coef, intercept)")
    pairs = list(models)
    coefs: list[Floats] = []
    intercepts: list[float] = []
    if not pairs:
        refuse("models", models, "a list of at least one pair (coef, intercept)")
    for k, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                f"models[{k}] is {type(pair).__name__}, not a pair (coef, intercept); for fitted "
                "models write holdfast.sets.from_models(models, model, X)"
            )
        coef = read_floats(f"coef of models[{k}]", pair[0])
        if coef.ndim == 2 and len(coef) == 1:  # as scikit-learn keeps it
            coef = coef[0]
        if coef.ndim != 1:
            raise ValueError(f"coef of models[{k}] has shape {coef.shape}, expected (d,)")
        intercept = read_floats(f"intercept of models[{k}]", pair[1]).reshape(-1)
        if intercept.size != 1:
            raise ValueError(f"intercept of models[{k}] has {intercept.size} numbers, expected one")
        if coefs and coef.size != coefs[0].size:
            raise ValueError(
                f"models[{k}] has {coef.size} coefficients, but models[0] has {coefs[0].size}; "
                "all models must have the same features"
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()) or not coef.size:
            raise ValueError(f"models[{k}] has missing or infinite numbers, or none at all")
        coefs.append(coef)
        intercepts.append(float(intercept[0]))
    stacked, shifts = np.array(coefs), np.array(intercepts)
    stacked.flags.writeable = shifts.flags.writeable = False
    return stacked, shifts
