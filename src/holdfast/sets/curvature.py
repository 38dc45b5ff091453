"""The training loss of a fitted linear classifier around its minimum: gradients and curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding.unwrap import is_a
from holdfast.sets.space import Space

_INSTEAD = "holdfast.sets.bootstrap takes any linear classifier"


@dataclass(frozen=True, eq=False)
class Curvature:
    """The loss summed over all rows, with its penalty, at today's coefficients.

    Attributes
    ----------
    rows : (n, d + 1) array
        Encoded rows, with a one for the intercept; without, where the model has none.
    slope, bend : (n,) arrays
        First and second derivative of each row's loss by its score.
    ridge : (d + 1,) array
        Second derivative of the penalty by each coefficient.
    coef : (d + 1,) array
        Today's coefficients.
    """

    rows: Floats
    slope: Floats | None
    bend: Floats
    ridge: Floats
    coef: Floats

    @property
    def hessian(self) -> Floats:
        """Second derivative of the loss by the coefficients."""
        return np.asarray((self.rows * self.bend[:, None]).T @ self.rows + np.diag(self.ridge))

    @property
    def scores_product(self) -> Floats:
        """Sum of the outer products of the gradients of each row."""
        assert self.slope is not None
        gradients = self.rows * self.slope[:, None]
        return np.asarray(gradients.T @ gradients)

    @property
    def gradient(self) -> Floats:
        """First derivative of the loss by the coefficients: 0 at its minimum."""
        assert self.slope is not None
        return np.asarray(self.rows.T @ self.slope + self.ridge * self.coef)


@dataclass(frozen=True)
class _Penalty:
    """Of the sum of losses: ``ridge / 2 * |coef|^2``, and perhaps of the intercept as well."""

    ridge: float
    of_intercept: float
    has_intercept: bool


def curvature_of(space: Space, labels: NDArray[Any] | None, *, intercept: bool) -> Curvature:
    """Return the training loss around today's model; without labels, as far as it needs none.

    What cannot be differentiated twice, or was not fitted by minimising such a loss, is refused.
    """
    origin = space.today.origin
    if origin is None:
        raise ValueError(
            "a pair of coefficients does not say how it was fitted; pass a fitted classifier"
        )
    last, name = origin.last, origin.name
    if abs(origin.factor) != 1.0:
        raise ValueError(
            f"{name} was fitted with multi_class='multinomial'; fit it without, or use bootstrap"
        )
    penalty = _penalty(name, last, space.n_rows)
    weight = _weights(name, last, labels)
    score = space.today.score(space.points) + origin.cutoff  # as it was fitted: uncut
    sign = None
    if labels is not None:
        sign = np.where(labels == origin.classes[origin.favorable_position], 1.0, -1.0)
    slope, bend = _derivatives(name, space.today.loss, score, sign)
    rows, ridge = space.points, np.full(len(space.today.coef), penalty.ridge)
    coef = np.array(space.today.coef)
    if intercept and penalty.has_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
        ridge = np.append(ridge, penalty.of_intercept)
        coef = np.append(coef, space.today.intercept + origin.cutoff)
    return Curvature(rows, None if slope is None else weight * slope, weight * bend, ridge, coef)


def inverse(matrix: Floats, space: Space) -> Floats:
    """Invert a Hessian; what the data do not tell must not matter to anybody.

    One-hot columns and an intercept are one too many: the loss is flat along them, but so is
    every score. That direction stays out. Any other flat direction is an error.
    """
    unit = np.sqrt(np.diag(matrix))
    unit[unit == 0.0] = 1.0
    lengths, axes = np.linalg.eigh(matrix / unit / unit[:, None])
    flat = lengths <= 100.0 * len(unit) * EPS * lengths[-1]
    if flat.any():
        directions = (axes[:, flat] / unit[:, None]).T
        directions /= np.abs(directions).max(axis=1, keepdims=True)
        full = directions
        if full.shape[1] == len(space.today.coef):
            full = np.column_stack([full, np.zeros(len(full))])
        if (space.felt(full) > 1e-6 * (1.0 + np.abs(space.points).max())).any():
            raise ValueError(
                "the rows do not determine all coefficients: some column is constant, or "
                "determined by others. Leave it out, or fit with a penalty"
            )
    half = axes[:, ~flat] / np.sqrt(lengths[~flat]) / unit[:, None]
    return np.asarray(half @ half.T)


def _derivatives(
    name: str, loss: str, score: Floats, sign: Floats | None
) -> tuple[Floats | None, Floats]:
    if loss == "logistic":
        p = special.expit(score)
        return None if sign is None else p - (sign > 0.0), p * (1.0 - p)
    if loss == "squared_hinge":
        if sign is None:
            raise ValueError(
                f"{name} has no likelihood, and so no Fisher information; use sandwich or bootstrap"
            )
        short = np.maximum(0.0, 1.0 - sign * score)
        return -2.0 * sign * short, np.where(short > 0.0, 2.0, 0.0)
    raise ValueError(
        f"{name} was fitted with the {loss} loss, which cannot be differentiated twice; {_INSTEAD}"
    )


def _penalty(name: str, last: Any, n: int) -> _Penalty:
    if is_a(last, "LogisticRegression"):  # LogisticRegressionCV is one as well
        strength = _logistic_strength(name, last)
        of_intercept = 0.0
        if getattr(last, "solver", "") == "liblinear":  # it penalises the intercept too
            of_intercept = strength / float(last.intercept_scaling) ** 2
        return _Penalty(strength, of_intercept, bool(last.fit_intercept))
    if is_a(last, "LinearSVC"):
        if last.penalty != "l2":
            _refuse_penalty(name, f"penalty={last.penalty!r}")
        strength = 1.0 / float(last.C)
        of_intercept = strength / float(last.intercept_scaling) ** 2
        return _Penalty(strength, of_intercept, bool(last.fit_intercept))
    if is_a(last, "SGDClassifier"):
        if last.penalty not in ("l2", None):
            _refuse_penalty(name, f"penalty={last.penalty!r}")
        strength = n * float(last.alpha) if last.penalty else 0.0
        return _Penalty(strength, 0.0, bool(last.fit_intercept))
    raise ValueError(f"{name} is not fitted by minimising a loss that Holdfast knows; {_INSTEAD}")


def _logistic_strength(name: str, last: Any) -> float:
    """Return 1 / C; scikit-learn has changed how it is said that there is no penalty."""
    penalty = getattr(last, "penalty", "deprecated")
    if penalty in (None, "none"):
        return 0.0
    C = getattr(last, "C_", None)
    strength = 1.0 / float(last.C if C is None else np.ravel(C)[0])
    ratio = getattr(last, "l1_ratio_", None)
    ratio = getattr(last, "l1_ratio", None) if ratio is None else np.ravel(ratio)[0]
    if penalty == "l1":
        ratio = 1.0
    elif penalty == "l2" or ratio is None:
        ratio = 0.0
    if float(ratio) > 0.0 and strength > 0.0:
        said = f"penalty={penalty!r}" if penalty in ("l1", "elasticnet") else f"l1_ratio={ratio:g}"
        _refuse_penalty(name, said)
    return strength


def _refuse_penalty(name: str, setting: str) -> None:
    raise ValueError(
        f"{name} was fitted with {setting}: this penalty has a kink at 0 and so no curvature "
        f"there; {_INSTEAD}"
    )


def _weights(name: str, last: Any, labels: NDArray[Any] | None) -> Floats | float:
    given = getattr(last, "class_weight", None)
    if given is None:
        return 1.0
    if labels is None:
        raise ValueError(
            f"{name} was fitted with class_weight, so its information depends on the labels; use "
            "sandwich, which takes y, or bootstrap"
        )
    from sklearn.utils.class_weight import compute_sample_weight

    return np.asarray(compute_sample_weight(given, labels), dtype=np.float64)
