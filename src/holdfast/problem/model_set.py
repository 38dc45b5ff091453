"""What every set of models has: how its kernels and its people ask for the worst of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from holdfast.machinery.compile import choice, kernel
from holdfast.machinery.numbers import EPS, Floats, read_floats, seen_floats, shown


@kernel
def pick(array, i):
    """Row i of an array that has one row where all rows share it."""
    return array[i] if array.shape[0] > 1 else array[0]


@kernel
def score_of(x, coef, intercept):
    score = intercept
    for i in range(x.size):
        score += coef[i] * x[i]
    return score


@kernel
def copy_into(target, source):
    """Copy an array; numba takes seconds to compile ``target[:] = source``, for what it may say."""
    for j in range(source.size):
        target[j] = source[j]


@choice(3)
def worst_score_of(x, coef, intercept, robust):
    """Return the least score of x over the set around (coef, intercept)."""


@choice(1)
def norm_of(x, robust):
    """Return how much a set of radius 1 lowers the score of x."""


@choice(0)
def with_radius(robust, radius):
    """Return the same set with another radius."""


@choice(0)
def model_of(robust, coef, intercept, dual, v):
    """Write the coefficients of the model that a dual stands for into v; return its intercept.

    A dual is what a solver finds beside the point: a direction, or weights. Whatever it is, the
    model lies in the set, to rounding.
    """


@kernel
def score_rounding(point, coef, intercept, robust):
    """Return what rounding can take off a worst-case score, in whatever order it is summed."""
    size = abs(intercept) + robust.radius * robust.intercept_scale
    for j in range(point.size):
        size += (abs(coef[j]) + robust.radius * robust.scale[j]) * abs(point[j])
    return (point.size + 4.0) * EPS * size


@kernel
def worst_scores(points, coef, intercept, robust, out):
    for i in range(points.shape[0]):
        out[i] = worst_score_of(points[i], pick(coef, i), pick(intercept, i), robust)


class ModelSet(ABC):
    """A set of models around today's: what a recourse must withstand."""

    radius: float
    has_size: ClassVar[bool] = True  # whether it can be made smaller, down to today's model alone

    @property
    @abstractmethod
    def label(self) -> str:
        """A few words that distinguish it from other sets."""

    @property
    def crowd(self) -> str:
        """All of its models, as named in a sentence, in the singular."""
        return self.crowd_of("model")

    @abstractmethod
    def crowd_of(self, what: str) -> str:
        """Return the same words where its models go by another name: "network", say."""

    @abstractmethod
    def feature_scale(self, n_features: int) -> Floats:
        """Return how far each coefficient may move at radius 1, at most."""

    @abstractmethod
    def with_radius(self, radius: float) -> ModelSet:
        """Return the same set in another size."""

    @abstractmethod
    def numbers(self, n_features: int) -> Any:
        """Return the set as the kernels read it."""

    @abstractmethod
    def worst_model(
        self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return a model of the set that gives each point its worst score."""

    def worst_score(self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike) -> Floats:
        """Return the lowest score of each point over all models in the set."""
        x, w, b = read_batch(X, coef, intercept)
        out = np.empty(x.shape[0])
        worst_scores(x, w, b, self.numbers(x.shape[1]), out)
        return out


def check_models(robust_to: Any) -> None:
    """Refuse what is no set of models."""
    if not isinstance(robust_to, ModelSet):
        raise TypeError(
            f"robust_to = {shown(robust_to)} is not a set of models; write "
            "NormBall(p=..., radius=...), or give an Ellipsoid or a ModelList"
        )


def read_change(
    coef: ArrayLike, intercept: ArrayLike, other_coef: ArrayLike, other_intercept: ArrayLike
) -> Floats:
    """Read what other models differ by from a given one: coefficients, the intercept last."""
    w, v = (
        np.atleast_2d(read_floats(name, values))
        for name, values in (("coef", coef), ("other_coef", other_coef))
    )
    b, c = (
        np.atleast_1d(read_floats(name, values))
        for name, values in (("intercept", intercept), ("other_intercept", other_intercept))
    )
    if w.shape[1:] != v.shape[1:] or w.ndim != 2 or w.shape[0] not in (1, v.shape[0]):
        raise ValueError(f"coef {w.shape} and other_coef {v.shape} do not fit together")
    if not {b.shape, c.shape} <= {(1,), v.shape[:1]}:
        raise ValueError(
            f"intercept {b.shape} and other_intercept {c.shape} do not fit coef {v.shape}"
        )
    return np.column_stack([v - w, np.broadcast_to(c - b, v.shape[:1])])


def as_compiled(values: Floats) -> Floats:
    """Return a read-only view, which kernels are compiled for; nobody's own array changes."""
    view = np.ascontiguousarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def read_batch(
    X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Read points with the model of all of them, or of each; not to be written to."""
    x = np.atleast_2d(seen_floats("X", X))
    w = np.atleast_2d(seen_floats("coef", coef))
    b = np.atleast_1d(seen_floats("intercept", intercept))
    if (
        x.ndim != 2
        or w.shape not in ((1, x.shape[1]), x.shape)
        or b.shape not in ((1,), x[:, 0].shape)
    ):
        raise ValueError(
            f"X {x.shape}, coef {w.shape} and intercept {b.shape} do not fit together; "
            "expected (n, d), (d,) or (n, d), and a number or (n,)"
        )
    return x, w, b
