"""The question, stated once: points, scores, costs, bounds, a set of models; checked, frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.machinery.numbers import (
    Floats,
    as_read,
    is_frame,
    is_series,
    read_floats,
    refuse,
)
from holdfast.machinery.structs import Struct
from holdfast.problem.costs import Evening
from holdfast.problem.losses import Loss, get_loss
from holdfast.problem.model_set import ModelSet, check_models


class Rows(Struct):
    """`RecourseProblem` as the kernels read it; what all rows share has one row."""

    start: Floats
    coef: Floats
    intercept: Floats
    cost: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class RecourseProblem:
    """A batch of recourse problems for linear scores.

    Build it with `RecourseProblem.build`, which checks and broadcasts. Whatever may be shared by
    all rows (model, costs, bounds) has one row here when it is, and n rows when it is not.

    Attributes
    ----------
    X : (n, d) array
        Where each person stands.
    coef : (1, d) or (n, d) array
    intercept : (1,) or (n,) array
    feature_costs : (1, d) or (n, d) array
        Cost of moving each feature by one unit.
    lower, upper : (1, d) or (n, d) arrays
        Where each feature may go; equal bounds mean that it may not move.
    loss : Loss
    robust_to : ModelSet
        A `NormBall`, an `Ellipsoid` or a `ModelList`.
    feature_names : the columns of the data frame that the points came in, or None
    index : row labels of that data frame, or None

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> problem = RecourseProblem.build([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball)
    >>> problem.n_rows, problem.upper
    (1, array([[inf, inf]]))
    >>> holdfast.continuous.solve.solve_problem(problem, guarantee=0.5).cost.round(3)
    array([2.222])
    """

    X: Floats
    coef: Floats
    intercept: Floats
    feature_costs: Floats
    lower: Floats
    upper: Floats
    loss: Loss
    robust_to: ModelSet
    feature_names: list[Any] | None = None
    index: Any = None

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def names(self) -> list[str]:
        """Names of the features, to be shown; x0, x1, ... where they have none."""
        labels = self.feature_names or [f"x{j}" for j in range(self.n_features)]
        return [str(label) for label in labels]

    @classmethod
    def build(
        cls,
        X: ArrayLike,
        coef: ArrayLike,
        intercept: ArrayLike = 0.0,
        *,
        robust_to: ModelSet,
        feature_costs: ArrayLike | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        loss: str | Loss = "logistic",
    ) -> RecourseProblem:
        """Check the arguments, bring them to one shape, and freeze them.

        Rows that are themselves unusable (a NaN, a point outside its bounds) are let through:
        each gets its own status in the result.
        """
        check_models(robust_to)
        names, index = _labels(X)
        x = read_floats("X", X)
        if x.ndim == 1:
            raise ValueError(
                f"X has shape {x.shape}, expected (n, d); for one row write X[None, :]"
            )
        if x.ndim != 2 or x.shape[1] == 0:
            raise ValueError(f"X has shape {x.shape}, expected (n, d) with d >= 1")
        n, d = x.shape
        w = _rows("coef", coef, n, d, names, index)
        b = _intercept(intercept, n, index)
        if feature_costs is None:
            costs = np.ones((1, d))
        else:
            _ask_about_matrix(feature_costs, n, d)
            costs = _rows("feature_costs", feature_costs, n, d, names, index)
            if costs.shape[0] == 1:
                wrong = ~(np.isfinite(costs) & (costs > 0))
                _refuse("feature_costs", costs, wrong, "positive, finite")
        lower, upper = _bounds(bounds, n, d, names, index)
        robust_to.feature_scale(d)  # refuses a scale of the wrong length
        # one model for all must be finite; one for each row spoils that row only
        for argument, values, own in (
            ("coef", w, np.ndim(coef) == 2 and n == 1),
            ("intercept", b, np.ndim(intercept) == 1 and n == 1),
        ):
            if values.shape[0] == 1 and not own:
                _refuse(argument, values, ~np.isfinite(values), "finite")
        problem = cls(
            X=x,
            coef=w,
            intercept=b,
            feature_costs=costs,
            lower=lower,
            upper=upper,
            loss=get_loss(loss),
            robust_to=robust_to,
            feature_names=names,
            index=index,
        )
        for values in (x, w, b, costs, lower, upper):
            frozen(values)
        return problem

    def rows(self) -> Rows:
        """Return the problem as the kernels read it."""
        return self._rows

    @cached_property
    def _rows(self) -> Rows:
        parts = (self.X, self.coef, self.intercept, self.feature_costs, self.lower, self.upper)
        return Rows(*(as_read(values) for values in parts))

    def in_even_costs(self) -> tuple[RecourseProblem, NDArray[np.int64]]:
        """Return the problem with the costs of each row around 1, and the power of 2 taken out.

        The factor is a power of two, so that nothing is rounded: the answer in these costs is the
        answer, and all of its costs are to be multiplied by ``2**exponent``. Costs that are too far
        apart to be computed with become NaN.
        """
        evening = Evening.of(self.feature_costs)
        costs = evening.applied(self.feature_costs)
        even = replace(self, feature_costs=costs)
        even.__dict__["_rows"] = self.rows().replaced(cost=costs)  # all others are the same
        return even, evening.exponent

    def score(self, X: Floats) -> Floats:
        """Score of point i under the model of row i."""
        coef = np.broadcast_to(self.coef, X.shape)
        return np.asarray(np.einsum("ij,ij->i", X, coef) + self.intercept)

    def row(self, i: int) -> RecourseProblem:
        """Return the problem of one row alone."""
        if not -self.n_rows <= i < self.n_rows:
            raise IndexError(f"row {i} of a problem with {self.n_rows} rows")
        i = i % self.n_rows
        return self.take(slice(i, i + 1))

    def take(self, which: slice | NDArray[Any]) -> RecourseProblem:
        """Return the problem of some rows: a slice, positions, or a mask."""

        def pick(values: Floats) -> Floats:
            return frozen(values[which]) if values.shape[0] > 1 else values

        return RecourseProblem(
            X=frozen(self.X[which]),
            coef=pick(self.coef),
            intercept=pick(self.intercept),
            feature_costs=pick(self.feature_costs),
            lower=pick(self.lower),
            upper=pick(self.upper),
            loss=self.loss,
            robust_to=self.robust_to,
            feature_names=self.feature_names,
            index=None if self.index is None else self.index[which],
        )


def frozen(values: Floats) -> Floats:
    """Make an array read-only: a problem stays as it was checked."""
    values.flags.writeable = False
    return values


def wrong_bounds(lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Say which bounds leave no room at all."""
    return np.asarray(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))


def _labels(X: Any) -> tuple[list[Any] | None, Any]:
    """Column names and row labels, when the points are a pandas data frame."""
    if is_frame(X):
        return list(X.columns), X.index
    return None, None


def _in_row_order(name: str, values: Any, index: Any) -> Any:
    """Put what has row labels (one row for each point) into the order of the points' rows."""
    labelled = is_frame(values) or is_series(values)
    if index is None or not labelled or len(values) != len(index):
        return values
    if values.index.equals(index) or len(values) <= 1:
        return values
    if index.is_unique and values.index.is_unique and set(values.index) == set(index):
        return values.loc[index]
    raise ValueError(f"the row labels of {name} differ from those of X; give it the same index")


def _in_column_order(name: str, values: Any, names: list[Any] | None) -> Any:
    """Put what has feature names into the order of the points' columns."""
    if isinstance(values, dict):
        labels = list(values)
    elif names is not None and is_frame(values):
        labels = list(values.columns)
    elif names is not None and is_series(values):
        labels = list(values.index)
    else:
        return values
    if names is None:
        raise ValueError(f"{name} is given by name, but X is not a data frame with names")
    if set(labels) != set(names):
        unknown = [label for label in labels if label not in names]
        missing = [label for label in names if label not in labels]
        raise ValueError(f"{name} does not fit the columns: unknown {unknown}, missing {missing}")
    return values[names] if is_frame(values) else [values[column] for column in names]


def _rows(name: str, values: Any, n: int, d: int, names: list[Any] | None, index: Any) -> Floats:
    """Return (1, d) or (n, d)."""
    if is_frame(values):
        values = _in_row_order(name, values, index)
    array = read_floats(name, _in_column_order(name, values, names))
    shape = array.shape
    if array.ndim == 0:
        array = np.full((1, d), float(array))
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != 2 or array.shape[1] != d or array.shape[0] not in (1, n):
        raise ValueError(f"{name} has shape {shape}, expected ({d},) or ({n}, {d})")
    return array


def _intercept(values: Any, n: int, index: Any) -> Floats:
    array = read_floats("intercept", _in_row_order("intercept", values, index))
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1 or array.size not in (1, n):
        raise ValueError(f"intercept has shape {array.shape}, expected a number or ({n},)")
    return array


def _ask_about_matrix(costs: Any, n: int, d: int) -> None:
    """Refuse costs that could be a matrix over features, and would be taken for one row each."""
    if n == d > 1 and not is_frame(costs) and np.shape(costs) == (d, d):
        raise ValueError(
            f"feature_costs has shape ({d}, {d}), and X has {n} rows of {d} features: is it a row "
            "of costs for each point, or a matrix over features? A matrix cannot be used: a cost "
            "is one number per unit of each feature, so pass its diagonal. For a row per point, "
            "pass a data frame: feature_costs=pandas.DataFrame(feature_costs)"
        )


def _bounds(
    bounds: Any, n: int, d: int, names: list[Any] | None, index: Any
) -> tuple[Floats, Floats]:
    if bounds is None:
        return np.full((1, d), -np.inf), np.full((1, d), np.inf)
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        refuse("bounds", bounds, "a pair (lower, upper)")
    lower = _rows("lower bounds", bounds[0], n, d, names, index)
    upper = _rows("upper bounds", bounds[1], n, d, names, index)
    if lower.shape[0] == upper.shape[0] == 1:
        wrong = wrong_bounds(lower, upper)
        if wrong.any():
            column = int(np.flatnonzero(wrong[0])[0])
            label = column if names is None else names[column]
            raise ValueError(
                f"bounds of feature {label!r} are [{lower[0, column]}, {upper[0, column]}]; both "
                "must be numbers, and the lower one must not be above the upper one"
            )
    return lower, upper


def _refuse(name: str, values: Floats, wrong: NDArray[np.bool_], allowed: str) -> None:
    if wrong.any():
        where = tuple(int(k) for k in np.argwhere(wrong)[0])
        value = float(values[where])
        raise ValueError(f"{name}{list(where)} = {value} is not allowed; it must be {allowed}")
