"""Today's encoded columns, and any other linear model expressed in them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, read_matrix, refuse, shown, whole_rows
from holdfast.models import LinearModel, as_model
from holdfast.models.base import read_encoded
from holdfast.models.calibrator import why_closed
from holdfast.models.encoding import Category, Curve, Encoding, Number
from holdfast.models.encoding.reading import as_table, is_missing, read_numbers
from holdfast.models.encoding.unwrap import unwrap

# Rows on which models are compared: more say nothing new of a linear function.
_MOST_ROWS = 1000
# Relative to the size of the scores: what rounding leaves of an exact translation is far less.
_EXACT = 1e-7
_RANK = 1e-10
_MOST_VALUES = 64  # of a bent number, to tell its columns apart


class NotInSpaceError(ValueError):
    """A model is no linear function of today's encoded columns."""


class UnreadableError(NotInSpaceError):
    """A model refuses rows that today's model reads: it may lack a level of theirs."""


@dataclass(frozen=True, eq=False)
class Space:
    """Today's model, and the columns in which all models are compared.

    Attributes
    ----------
    today : LinearModel
    X : table
        The rows that were given, in the order of columns that the model knows.
    points : (n, d) array
        These rows, encoded.
    probes : table
        Some of the rows, and others that differ from one of them in a single feature: together
        they go wherever people can.
    """

    today: LinearModel
    X: Any
    points: Floats
    probes: Any
    _encoded: Floats
    _solver: Floats
    _center: Floats
    _width: Floats

    @classmethod
    def of(cls, model: Any, X: Any, favorable_class: Any) -> Space:
        """Read today's model and the rows."""
        today = read_linear(model, favorable_class, X)
        points = read_encoded_rows(today, X)
        today.compare_people(X, points, today.choose_loss(None))
        ordered = today.in_order(X)
        probes = _probes(model, favorable_class, ordered)
        encoded = read_encoded_rows(today, probes)
        center = encoded.mean(axis=0)
        width = np.ptp(encoded, axis=0)
        width[width == 0.0] = 1.0
        solver = np.linalg.pinv((encoded - center) / width, rcond=_RANK)
        return cls(today, ordered, points, probes, encoded, solver, center, width)

    @property
    def vector(self) -> Floats:
        """Today's coefficients, the intercept last."""
        return np.append(self.today.coef, self.today.intercept)

    @property
    def n_rows(self) -> int:
        """How many rows were given."""
        return len(self.points)

    def rows(self, which: NDArray[np.int64]) -> Any:
        """Return some of the raw rows."""
        return self.X.iloc[which] if hasattr(self.X, "iloc") else np.asarray(self.X)[which]

    def felt(self, directions: Floats) -> Floats:
        """Return the largest effect of each change of a model on any row that people can reach."""
        rows = np.column_stack([self._encoded, np.ones(len(self._encoded))])
        return np.asarray(np.abs(rows @ directions.T).max(axis=0))

    def settled(self, covariance: Floats) -> Floats:
        """Return a covariance without the directions that nobody feels.

        To raise all columns of a one-hot block and lower the intercept changes no score. Fitted
        models with a penalty never move that way; a formula may think so.
        """
        width, turn = self._width, self._solver @ ((self._encoded - self._center) / self._width)
        d = len(width)
        turned = np.zeros((d + 1, d + 1))
        turned[:d, :d] = turn * width / width[:, None]
        turned[d, :d] = self._center @ (np.eye(d) - turned[:d, :d])
        turned[d, d] = 1.0
        return np.asarray(turned @ covariance @ turned.T)

    def translate(self, name: str, fitted: Any, *, compare: int | None = None) -> Floats:
        """Express a fitted model in today's columns: coefficients, the intercept last.

        Its cutoff, where it has another one, becomes today's: who is approved stays the same.

        Parameters
        ----------
        name : str
            What to call the model in an error.
        fitted : object
            Any linear model of the same raw features, behind whatever scalers and encoders.
        compare : int, optional
            On how many rows to ask the model itself; by default on all.
        """
        other = self._read(name, fitted)
        try:
            encoded = read_encoded_rows(other, self.probes)
        except ValueError as error:
            raise UnreadableError(f"{name}: {error}") from None
        some = slice(compare)
        rows = self.probes.iloc[some] if hasattr(self.probes, "iloc") else self.probes[some]
        other.compare_people(rows, encoded[some], other.choose_loss(None))
        scores = other.score(encoded)
        # the least change of today's coefficients: where columns say the same, there are many
        change = scores - self.today.score(self._encoded)
        level = float(change.mean())
        moved = (self._solver @ (change - level)) / self._width
        coef = self.today.coef + moved
        intercept = self.today.intercept + level - float(self._center @ moved)
        missed = np.abs(self._encoded @ coef + intercept - scores)
        room = _EXACT * (1.0 + np.abs(scores).max())
        if not (missed <= room).all():
            raise NotInSpaceError(
                f"{name} is not a linear function of the columns that today's model reads: it "
                f"differs by up to {missed.max():.3g} in its score. Does it read other features, "
                "other categories, or another transformation of one?"
            )
        if other.has_threshold or self.today.has_threshold:
            if not np.isfinite(other.cutoff - self.today.cutoff):
                raise ValueError(
                    f"{name}, or today's model, approves everybody, whatever their score: its "
                    "calibrated probabilities never fall to its threshold"
                )
            intercept += self.today.cutoff - other.cutoff
        return np.append(coef, intercept)

    def _read(self, name: str, fitted: Any) -> LinearModel:
        origin = self.today.origin
        favorable = None if origin is None else origin.classes[origin.favorable_position]
        if isinstance(fitted, (LinearModel, tuple)):
            favorable = None  # its positive scores are the favourable class
        try:
            other = read_linear(fitted, favorable, None)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from None
        if origin is not None and other.origin is not None:
            ours, theirs = origin.classes, other.origin.classes
            if set(ours) != set(theirs):
                raise ValueError(f"{name} has the classes {theirs}, but today's model has {ours}")
        if other.loss != self.today.loss:
            raise ValueError(
                f"{name} was fitted with the {other.loss} loss, today's model with the "
                f"{self.today.loss} loss: their scores cannot be compared"
            )
        return other


def read_linear(model: Any, favorable_class: Any, people: Any) -> LinearModel:
    """Read a fitted model that is linear in its score, or refuse it."""
    adapted = as_model(model, favorable_class=favorable_class, people=people, with_curves=True)
    if isinstance(adapted, LinearModel):
        if not adapted.loss:
            name = type(unwrap(model).last).__name__
            raise ValueError(
                f"{name} was fitted with a loss that Holdfast does not know; fit a "
                "LogisticRegression"
            )
        return adapted
    closed = why_closed(model)
    if closed:
        raise ValueError(closed)
    rest = adapted.origin.rest if adapted.origin is not None else []
    where = f"{rest[0][0]}: {type(rest[0][1]).__name__}" if rest else type(model).__name__
    raise ValueError(
        f"{where} is not linear in its score; a set of models is a set of coefficients"
    )


def read_encoded_rows(model: LinearModel, table: Any) -> Floats:
    """Return a table as the classifier reads it."""
    points = read_matrix("X", read_encoded("X", model, table), len(model.coef))
    if not len(points):
        raise ValueError("X has no rows")
    unusable = ~whole_rows(points)
    if unusable.any():
        row = int(np.flatnonzero(unusable)[0])
        raise ValueError(
            f"X has missing or infinite values, first in row {row}; leave out such rows"
        )
    return points


def read_labels(y: Any, today: LinearModel, n: int) -> NDArray[Any]:
    """Read the labels of n rows: both classes of today's model, and no others."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},): X has {n} rows")
    try:
        kinds = set(labels.tolist())
    except TypeError:
        kinds = set()
    if len(kinds) == 1:
        raise ValueError(f"y holds only one class, {shown(kinds.pop())}; both are needed")
    if len(kinds) != 2:
        raise ValueError(f"y = {shown(y)} does not hold two classes")
    classes = list(kinds) if today.origin is None else today.origin.classes
    same = [kind for kind in kinds for known in classes if kind == known]
    if len(same) != 2 or {type(kind) is bool for kind in kinds} != {
        type(k) is bool for k in classes
    }:
        raise ValueError(
            f"y = {shown(y)} does not hold the classes that the model was fitted on, {classes}"
        )
    return labels


def read_model_list(name: str, models: Any) -> list[Any]:
    """Read a list of fitted models, not one of them."""
    if isinstance(models, (str, dict, tuple)) or not hasattr(models, "__iter__"):
        refuse(name, models, "a list of fitted models")
    if hasattr(models, "fit"):  # a pipeline can be iterated over
        refuse(name, models, "a list of fitted models")
    return list(models)


def _spread(curve: Curve, values: Floats) -> list[float]:
    """Return values of a bent number on both sides of its edges, and between people's own.

    Of what is bent, only where people are: further out there may be no number for it.
    """
    edges = np.array(curve.edges)
    around = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    if not len(values):
        return [float(value) for value in around]
    if not curve.is_flat:
        around = around[(around > values.min()) & (around < values.max())]
    between = np.quantile(values, np.linspace(0.0, 1.0, _MOST_VALUES))
    return [float(value) for value in np.unique(np.concatenate([around, between]))]


def _probes(model: Any, favorable_class: Any, X: Any) -> Any:
    """Return raw rows that go wherever people can.

    Where two columns of the data depend on each other, no row of the data tells their
    coefficients apart; so each feature is also changed alone.
    """
    import pandas as pd

    encoding = Encoding.of(model, favorable_class=favorable_class)
    # a model of plain arrays knows columns by their place
    frame = as_table(X if encoding.is_named else np.asarray(X), "X")[encoding.names]
    some = frame.iloc[np.linspace(0, len(frame) - 1, min(len(frame), _MOST_ROWS)).astype(int)]
    changes: list[tuple[str, Any]] = []
    for name, feature in encoding.features.items():
        if isinstance(feature, Number):
            values = read_numbers(frame[name])
            values = values[~np.isnan(values)]
            changes.append((name, values[0] + (np.ptp(values) or 1.0 / abs(feature.scale))))
        elif isinstance(feature, Category):
            changes += [(name, level) for level in feature.levels]
        else:
            known = read_numbers(frame[name])
            changes += [(name, value) for value in _spread(feature, known[~np.isnan(known)])]
    columns = {}
    for name in frame.columns:
        rows = pd.concat([some[name], frame[name].iloc[np.zeros(len(changes), dtype=int)]])
        is_number = isinstance(encoding.features.get(name), (Number, Curve))
        values = read_numbers(rows).tolist() if is_number else rows.tolist()
        for row, (changed, value) in enumerate(changes, start=len(some)):
            if changed == name:
                values[row] = value
        columns[name] = pd.Series(values) if is_number else _typed(values, rows.dtype)
    probes = pd.DataFrame(columns)
    return probes if encoding.is_named else probes.to_numpy()


def _typed(values: list[Any], dtype: Any) -> Any:
    """Return a column of such a type, if it can hold all of them: probes may hold what no row does.

    Among booleans pandas' NA is a missing value, and among objects it is a level.
    """
    import pandas as pd

    if getattr(dtype, "kind", "O") == "b":  # an encoder may know them as 0 and 1
        values = [value if is_missing(value) else bool(value) for value in values]
    with contextlib.suppress(TypeError, ValueError):
        column = pd.Series(values, dtype=dtype)
        if int(column.isna().sum()) == sum(is_missing(value) for value in values):
            return column
    return pd.Series(values)
