"""The models that may come: an L^p ball around today's coefficients, and the worst model in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats, read_floats, refuse, refuse_number, to_number
from holdfast.problem.model_set import (
    ModelSet,
    norm_of,
    read_batch,
    read_change,
    score_of,
    with_radius,
    worst_score_of,
)


class BallNumbers(NamedTuple):
    """`NormBall` as the kernels read it."""

    p: float
    q: float
    radius: float
    scale: Floats
    intercept_scale: float


@kernel
def dual_norm(x, scale, intercept_scale, q):
    """||scale * (x, 1)||_q, without overflow: how much a ball of radius 1 can lower the score."""
    largest = intercept_scale
    for i in range(x.size):
        largest = max(largest, scale[i] * abs(x[i]))
    if q == math.inf or largest == 0.0 or largest == math.inf:
        return largest
    if q == 1.0:
        total = intercept_scale
        for i in range(x.size):
            total += scale[i] * abs(x[i])
        return total
    total = power(intercept_scale / largest, q)
    for i in range(x.size):
        total += power(scale[i] * abs(x[i]) / largest, q)
    return largest * power(total, 1.0 / q)


@kernel
def power(base, exponent):
    """Raise base >= 0 to a power, with the common exponents spared a call of pow."""
    if exponent == 1.0:
        return base
    if exponent == 2.0:
        return base * base
    if exponent == 0.5:
        return math.sqrt(base)
    return base**exponent


@worst_score_of.of(BallNumbers)
@kernel
def worst_score_in_ball(x, coef, intercept, ball):
    """Least score over the ball: w.x + b - radius * ||scale * (x, 1)||_q."""
    norm = dual_norm(x, ball.scale, ball.intercept_scale, ball.q)
    return score_of(x, coef, intercept) - ball.radius * norm


@norm_of.of(BallNumbers)
@kernel
def ball_norm(x, ball):
    return dual_norm(x, ball.scale, ball.intercept_scale, ball.q)


@with_radius.of(BallNumbers)
@kernel
def ball_with_radius(ball, radius):
    return BallNumbers(ball.p, ball.q, radius, ball.scale, ball.intercept_scale)


@dataclass(frozen=True)
class NormBall(ModelSet):
    """All models whose coefficients lie within an L^p distance of today's.

    A model ``(w + delta, b + delta_0)`` is in the ball when
    ``|| delta / scale ||_p <= radius``, the intercept counted as one more coefficient.

    Parameters
    ----------
    p : float
        Exponent of the norm, from 1 to infinity (`math.inf`).
    radius : float
        Size of the ball (the paper's alpha), at least 0.
    scale : sequence of float, optional
        How far each feature's coefficient may move relative to the others, at least 0; 0 means that
        it never changes. All ones by default. For a network: how far each tensor of parameters may
        move, in the order of ``module.named_parameters()``.
    intercept : bool or float
        Whether the intercept may change too; a number is its scale.

    Examples
    --------
    >>> ball = NormBall(p=1, radius=0.5)
    >>> ball.dual_p
    inf
    >>> ball.worst_score([[2.0, -3.0]], coef=[1.0, 1.0], intercept=0.0)
    array([-2.5])
    >>> coef, intercept = ball.worst_model([[2.0, -3.0]], coef=[1.0, 1.0], intercept=0.0)
    >>> coef, intercept
    (array([[1. , 1.5]]), array([0.]))
    """

    p: float
    radius: float
    scale: Sequence[float] | Floats | None = None
    intercept: bool | float = True

    def __post_init__(self) -> None:
        p, radius = to_number(self.p), to_number(self.radius)
        if not p >= 1.0:
            refuse_number("p", self.p, "from 1 to inf")
        if not 0.0 <= radius < math.inf:
            refuse_number("radius", self.radius, "at least 0 and finite")
        if not isinstance(self.intercept, (bool, np.bool_)):
            if not 0.0 <= to_number(self.intercept) < math.inf:
                refuse_number("intercept", self.intercept, "True, False or a finite scale >= 0")
            object.__setattr__(self, "intercept", float(self.intercept))
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "radius", radius)
        if self.scale is not None:
            object.__setattr__(self, "scale", _scale(self.scale))

    @property
    def dual_p(self) -> float:
        """The exponent q with 1/p + 1/q = 1: the norm in which a point feels the ball."""
        if self.p == 1.0:
            return math.inf
        return 1.0 if math.isinf(self.p) else self.p / (self.p - 1.0)

    @property
    def intercept_scale(self) -> float:
        """Scale of the intercept: 0 when it is not attacked."""
        return float(self.intercept)

    @property
    def label(self) -> str:
        """Its norm and its size."""
        return f"p={self.p:g}, radius={self.radius:g}"

    def crowd_of(self, what: str) -> str:
        """All of its models, by that name, as named in a sentence."""
        if self.radius == 0.0:
            return f"today's {what}"
        scaled = "" if self.scale is None else "scaled "
        return f"every {what} within a {scaled}radius of {self.radius:.4g} of today's"

    def with_radius(self, radius: float) -> NormBall:
        """Return the same ball in another size."""
        return replace(self, radius=radius)

    def feature_scale(self, n_features: int) -> Floats:
        """Scale of each feature's coefficient, as an array."""
        if self.scale is None:
            return np.ones(n_features)
        if len(self.scale) != n_features:
            raise ValueError(
                f"scale has {len(self.scale)} numbers, but there are {n_features} features; "
                "give one for each feature (the intercept's scale is the argument `intercept`)"
            )
        return np.array(self.scale)

    def numbers(self, n_features: int) -> BallNumbers:
        """Return the ball as the kernels read it."""
        scale = self.feature_scale(n_features)
        return BallNumbers(self.p, self.dual_p, self.radius, scale, self.intercept_scale)

    def worst_model(
        self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return a model of the ball that gives each point its worst score.

        For p = 1 all of the radius goes into one coefficient, that with the largest
        ``scale * |x|`` (the intercept counts as a coefficient whose ``x`` is 1). Where several
        tie, it is shared equally among them; which share *proves* a recourse optimal depends on
        its cost as well, and is found in the result's certificate.

        Returns
        -------
        coef : (n, d) array
        intercept : (n,) array
        """
        x, w, b = read_batch(X, coef, intercept)
        n, d = x.shape
        signed = np.column_stack([x, np.ones(n)])
        scale = np.append(self.feature_scale(d), self.intercept_scale)
        felt = scale * np.abs(signed)
        if math.isinf(self.p):
            share = np.ones_like(felt)
        elif self.p == 1.0:
            tied = felt == felt.max(axis=1, keepdims=True)
            share = tied / np.maximum(tied.sum(axis=1, keepdims=True), 1)
        else:
            largest = felt.max(axis=1, keepdims=True)
            ratio = np.divide(felt, largest, out=np.zeros_like(felt), where=largest > 0)
            size = np.sum(ratio**self.dual_p, axis=1, keepdims=True) ** (1.0 / self.dual_p)
            share = np.divide(ratio, size, out=np.zeros_like(felt), where=size > 0)
            share **= self.dual_p - 1.0
        change = -self.radius * scale * np.sign(signed) * share
        return w + change[:, :-1], b + change[:, -1]

    def distance(
        self,
        coef: ArrayLike,
        intercept: ArrayLike,
        other_coef: ArrayLike,
        other_intercept: ArrayLike,
    ) -> Floats:
        """Distance of other models from the given one, in the norm of this ball.

        A coefficient with scale 0 that changed at all is infinitely far away.
        """
        change = read_change(coef, intercept, other_coef, other_intercept)
        scale = np.append(self.feature_scale(change.shape[1] - 1), self.intercept_scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            felt = np.where(change == 0.0, 0.0, np.abs(change) / scale)
        largest = np.maximum(felt.max(axis=1, keepdims=True), np.finfo(float).tiny)
        if not np.isfinite(largest).all():
            largest = np.where(np.isfinite(largest), largest, 1.0)
        return np.asarray(largest[:, 0] * np.linalg.norm(felt / largest, ord=self.p, axis=1))


def require_ball(robust_to: ModelSet, who: str) -> NormBall:
    """Return the set if it is a ball; refuse it in the name of who knows no other."""
    if not isinstance(robust_to, NormBall):
        kind = type(robust_to).__name__
        raise TypeError(f"{who} only supports balls, not {kind}; write NormBall(p=..., radius=...)")
    return robust_to


def _scale(values: Any) -> tuple[float, ...]:
    if hasattr(values, "keys"):  # a mapping or a labelled series: the ball knows no names
        raise ValueError(
            "scale is given by position, in the order of the features, not by name; for a pandas "
            "series write scale=series[columns].to_numpy()"
        )
    scale = read_floats("scale", values)
    if scale.ndim != 1 or not np.all(np.isfinite(scale)) or np.any(scale < 0):
        refuse("scale", values, "a finite number >= 0 for each feature")
    return tuple(scale.tolist())
