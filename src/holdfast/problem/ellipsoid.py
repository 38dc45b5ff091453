"""The models that may come: an ellipsoid around today's, whose coefficients move together."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.machinery.compile import kernel, summing_kernel
from holdfast.machinery.numbers import (
    EPS,
    Floats,
    check_flag,
    is_frame,
    read_floats,
    refuse_number,
    shown,
    to_number,
)
from holdfast.problem.model_set import (
    ModelSet,
    as_compiled,
    copy_into,
    model_of,
    norm_of,
    read_batch,
    read_change,
    score_of,
    with_radius,
    worst_score_of,
)

# Numbers on the two sides of the diagonal that differ by less are the same; so many lengths
# below zero are rounding. Both relative to the standard deviations.
_SAME, _ROUNDING = 1e-8, 1e-8


class EllipsoidNumbers(NamedTuple):
    """`Ellipsoid` as the kernels read it.

    The models are ``theta - radius * factor @ u`` for all ``|u| <= 1``: row j of `factor` says how
    coefficient j moves, and the last row how the intercept does.
    """

    radius: float
    factor: Floats
    scale: Floats  # the length of each row
    intercept_scale: float


@kernel
def pull_of(x, ellipsoid, felt):
    """Write ``factor.T @ (x, 1)`` into `felt`; return its length."""
    factor, d = ellipsoid.factor, x.size
    for m in range(felt.size):
        felt[m] = factor[d, m]
    for j in range(d):
        if x[j] != 0.0:
            for m in range(felt.size):
                felt[m] += factor[j, m] * x[j]
    return length(felt)


@kernel
def length(values):
    """Return the Euclidean length, without overflow."""
    largest, total = 0.0, 0.0
    for m in range(values.size):
        largest = max(largest, abs(values[m]))
    if largest == 0.0 or not largest < math.inf:
        return largest
    for m in range(values.size):
        total += (values[m] / largest) ** 2
    return largest * math.sqrt(total)


@summing_kernel
def dot(a, b):
    total = 0.0
    for m in range(a.size):
        total += a[m] * b[m]
    return total


@norm_of.of(EllipsoidNumbers)
@kernel
def ellipsoid_norm(x, ellipsoid):
    factor, d = ellipsoid.factor, x.size
    largest, total = 0.0, 0.0  # the sum of squares is total * largest ** 2
    for m in range(factor.shape[1]):
        felt = factor[d, m]
        for j in range(d):
            felt += factor[j, m] * x[j]
        felt = abs(felt)
        if felt > largest:
            total = 1.0 + total * (largest / felt) ** 2
            largest = felt
        elif felt > 0.0:
            total += (felt / largest) ** 2
    return largest * math.sqrt(total)


@worst_score_of.of(EllipsoidNumbers)
@kernel
def worst_score_in_ellipsoid(x, coef, intercept, ellipsoid):
    """Least score over the ellipsoid: w.x + b - radius * |factor.T @ (x, 1)|."""
    norm = ellipsoid_norm(x, ellipsoid)
    return score_of(x, coef, intercept) - ellipsoid.radius * norm


@model_of.of(EllipsoidNumbers)
@kernel
def model_in_direction(ellipsoid, coef, intercept, direction, v):
    """A direction that is longer than 1 is shortened; where it is none, the model is today's."""
    size = length(direction)
    inside = ellipsoid.radius * (1.0 - 4.0 * (direction.size + 2.0) * EPS) / max(size, 1.0)
    if not size < math.inf:
        copy_into(v, coef)
        return intercept
    for j in range(v.size):
        v[j] = coef[j] - inside * dot(ellipsoid.factor[j], direction)
    return intercept - inside * dot(ellipsoid.factor[v.size], direction)


@with_radius.of(EllipsoidNumbers)
@kernel
def ellipsoid_with_radius(ellipsoid, radius):
    return EllipsoidNumbers(radius, ellipsoid.factor, ellipsoid.scale, ellipsoid.intercept_scale)


@dataclass(frozen=True, eq=False)
class Ellipsoid(ModelSet):
    """All models within a number of standard deviations of today's, in any direction.

    A model ``(w + delta, b + delta_0)`` is in the ellipsoid when
    ``delta' covariance^-1 delta <= radius**2``, the intercept counted as one more coefficient.
    The covariance may be singular: models then do not move at all in some directions. The set
    is defined by `factor`, whose square is the covariance up to rounding: about 1e-15 of the
    variances.

    `holdfast.sets` makes ellipsoids from a fitted model and its data, from several models, and
    from how much the training loss may rise.

    Parameters
    ----------
    covariance : (d + 1, d + 1) array, or (d, d) with ``intercept=False``
        How coefficients move together, in the order of the features, the intercept last.
    radius : float
        Size, in standard deviations; at least 0.
    intercept : bool
        Whether the last row and column belong to the intercept. If not, it never changes.

    Examples
    --------
    >>> import numpy as np
    >>> import holdfast
    >>> together = np.array([[1.0, -0.9, 0.0], [-0.9, 1.0, 0.0], [0.0, 0.0, 0.2]])
    >>> ellipsoid = holdfast.Ellipsoid(together, radius=0.1)
    >>> ellipsoid.worst_score([[2.0, 2.0]], coef=[1.0, 1.0], intercept=0.0).round(4)
    array([3.9])
    """

    covariance: Floats
    radius: float
    intercept: bool = True

    def __post_init__(self) -> None:
        check_flag("intercept", self.intercept)
        if not 0.0 <= (radius := to_number(self.radius)) < math.inf:
            refuse_number("radius", self.radius, "at least 0 and finite")
        covariance = _read_covariance(self.covariance)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "intercept", bool(self.intercept))
        object.__setattr__(self, "_factor", _square_root(covariance))

    def __repr__(self) -> str:
        intercept = "" if self.intercept else ", intercept=False"
        size = " x ".join(map(str, self.covariance.shape))
        return f"Ellipsoid(<{size} covariance>, radius={self.radius:g}{intercept})"

    @property
    def label(self) -> str:
        """What it is, and its size."""
        return f"ellipsoid, radius={self.radius:g}"

    def crowd_of(self, what: str) -> str:
        """All of its models, by that name, as named in a sentence."""
        if self.radius == 0.0:
            return f"today's {what}"
        return f"every {what} within an ellipsoid of radius {self.radius:.4g} around today's"

    def with_radius(self, radius: float) -> Ellipsoid:
        """Return the same ellipsoid in another size."""
        if not 0.0 <= (number := to_number(radius)) < math.inf:
            refuse_number("radius", radius, "at least 0 and finite")
        other = copy(self)  # with all that was worked out of the covariance
        object.__setattr__(other, "radius", number)
        return other

    def factor(self, n_features: int) -> Floats:
        """Return F with ``F @ F.T == covariance``, a row of zeros for a fixed intercept."""
        own = len(self.covariance) - (1 if self.intercept else 0)
        if own != n_features:
            last = " and the intercept" if self.intercept else ""
            expected = n_features + (1 if self.intercept else 0)
            how = "" if self.intercept else " (with the intercept: leave out intercept=False)"
            raise ValueError(
                f"covariance has {len(self.covariance)} rows, but there are {n_features} features; "
                f"expected {expected} rows, one for each feature{last}{how}"
            )
        factor: Floats = getattr(self, "_factor")  # noqa: B009
        if self.intercept:
            return factor
        return np.vstack([factor, np.zeros(factor.shape[1])])

    def feature_scale(self, n_features: int) -> Floats:
        """Return the standard deviation of each coefficient."""
        self.factor(n_features)  # refuses another number of features
        return np.asarray(np.sqrt(np.diag(self.covariance)[:n_features]))

    @property
    def intercept_scale(self) -> float:
        """Standard deviation of the intercept: 0 when it does not change."""
        return float(np.sqrt(self.covariance[-1, -1])) if self.intercept else 0.0

    def numbers(self, n_features: int) -> EllipsoidNumbers:
        """Return the ellipsoid as the kernels read it."""
        factor = as_compiled(self.factor(n_features))
        scale = self.feature_scale(n_features)
        return EllipsoidNumbers(self.radius, factor, scale, self.intercept_scale)

    def worst_model(
        self, X: ArrayLike, coef: ArrayLike, intercept: ArrayLike
    ) -> tuple[Floats, Floats]:
        """Return the model of the ellipsoid that gives each point its worst score.

        Returns
        -------
        coef : (n, d) array
        intercept : (n,) array
        """
        x, w, b = read_batch(X, coef, intercept)
        factor = self.factor(x.shape[1])
        felt = np.column_stack([x, np.ones(len(x))]) @ factor
        largest = np.abs(felt).max(axis=1, keepdims=True, initial=0.0)
        felt = np.divide(felt, largest, out=np.zeros_like(felt), where=largest > 0.0)
        norm = np.linalg.norm(felt, axis=1, keepdims=True)
        direction = np.divide(felt, norm, out=np.zeros_like(felt), where=norm > 0.0)
        change = -self.radius * direction @ factor.T
        return w + change[:, :-1], b + change[:, -1]

    def distance(
        self,
        coef: ArrayLike,
        intercept: ArrayLike,
        other_coef: ArrayLike,
        other_intercept: ArrayLike,
    ) -> Floats:
        """Distance of other models from the given one, in standard deviations.

        A model that moved in a direction in which models do not move is infinitely far away.
        """
        change = read_change(coef, intercept, other_coef, other_intercept)
        d = change.shape[1] - 1
        factor, size = self.factor(d), np.append(self.feature_scale(d), self.intercept_scale)
        unit = np.where(size > 0.0, size, 1.0)  # the same answer in any unit of the features
        direction = np.linalg.lstsq(factor / unit[:, None], (change / unit).T, rcond=None)[0].T
        missed = np.abs(direction @ factor.T - change) / unit
        far = missed.max(axis=1) > 1e-7 * np.maximum(np.abs(change / unit).max(axis=1), 1e-300)
        return np.where(far, np.inf, np.linalg.norm(direction, axis=1))


def _read_covariance(values: Any) -> Floats:
    if is_frame(values):
        raise ValueError(
            "covariance is given by position, in the order of the features, not by name; for a "
            "data frame write covariance=frame.loc[columns, columns].to_numpy()"
        )
    matrix = read_floats("covariance", values)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"covariance has shape {matrix.shape}; it must be square")
    _refuse_at("covariance", matrix, ~np.isfinite(matrix), "is not finite")
    variances = np.diag(matrix)
    if (variances < 0.0).any():
        j = int(np.argmin(variances))
        raise ValueError(
            f"covariance[{j}, {j}] = {variances[j]:g} is negative, but a variance cannot be"
        )
    size = np.sqrt(np.maximum(variances, np.finfo(float).tiny))
    unit = np.where(variances > 0.0, size, 1.0)
    even = matrix / unit / unit[:, None]
    wrong = np.abs(even - even.T) > _SAME
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(
            f"covariance is not symmetric: [{i}, {j}] = {matrix[i, j]:g}, "
            f"but [{j}, {i}] = {matrix[j, i]:g}"
        )
    covariance = 0.5 * (matrix + matrix.T)
    covariance.flags.writeable = False  # what was worked out of it stays right
    return covariance


def _refuse_at(name: str, values: Floats, wrong: NDArray[np.bool_], why: str) -> None:
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise ValueError(f"{name}{list(where)} = {shown(float(values[where]))} {why}")


def _square_root(covariance: Floats) -> Floats:
    """Return F with ``F @ F.T == covariance``, with as few columns as it takes.

    It is worked out between correlations, so that it does not depend on the units of features.
    """
    size = np.sqrt(np.diag(covariance))
    unit = np.where(size > 0.0, size, 1.0)
    correlation = covariance / unit / unit[:, None]
    lengths, axes = np.linalg.eigh(correlation)
    largest = max(float(lengths[-1]), 0.0)
    if lengths[0] < -_ROUNDING * max(largest, 1.0):
        raise ValueError(
            "covariance is not positive semidefinite: as correlations, its least eigenvalue is "
            f"{lengths[0]:.3g}, its largest {largest:.3g}; no set of models has such a covariance"
        )
    kept = lengths > 4.0 * len(size) * EPS * largest
    if not kept.any():
        return np.zeros((len(size), 1))
    root = unit[:, None] * axes[:, kept] * np.sqrt(lengths[kept])
    root[size == 0.0] = 0.0  # what never changes: no trace of rounding may stay
    return np.asarray(root)
