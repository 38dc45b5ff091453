"""A `LogisticGAM` of pygam, as its own model matrix and its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.additive.model import AdditiveModel
from holdfast.models.encoding.rules import ColumnRule


class TermColumns:
    """The columns of the model matrix but for the intercept, in the order of the raw columns."""

    def __init__(self, gam: Any, where: str) -> None:
        self.n_features_in_ = int(gam.statistics_["m_features"])
        self._gam, self._where = gam, where
        terms = [(t, term) for t, term in enumerate(gam.terms) if not term.isintercept]
        self._terms: list[list[Any]] = [[] for _ in range(self.n_features_in_)]
        self._places: list[list[int]] = [[] for _ in range(self.n_features_in_)]
        for t, term in terms:
            self._check(term)
            self._terms[term.feature].append(term)
            self._places[term.feature] += gam.terms.get_coef_indices(t)
        self.places = np.array([place for some in self._places for place in some], dtype=np.int64)

    def transform(self, X: Any) -> Floats:
        """Return the columns of raw rows."""
        if not len(X):
            return np.empty((0, len(self.places)))
        matrix = self._gam._modelmat(np.asarray(X, dtype=np.float64))
        return np.asarray(matrix.toarray()[:, self.places], dtype=np.float64)

    def holdfast_rules(self) -> list[ColumnRule]:
        """Say what becomes of each column: itself, a smooth curve, steps, or a category."""
        return [
            self._rule(j, terms, len(places))
            for j, (terms, places) in enumerate(zip(self._terms, self._places, strict=True))
        ]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns: ``x1_0`` is the first one that is made of ``x1``."""
        names = input_features
        if names is None:
            names = [f"x{j}" for j in range(self.n_features_in_)]
        made = [f"{names[j]}_{k}" for j, some in enumerate(self._places) for k in range(len(some))]
        return np.array(made, dtype=object)

    def _check(self, term: Any) -> None:
        if term.istensor:
            columns = " and ".join(str(part.feature) for part in term)
            self._refuse(f"a tensor term of columns {columns}", "give each a term of its own")
        if getattr(term, "by", None) is not None:
            self._refuse(
                f"a term of column {term.feature} by column {term.by}", "fit it without by"
            )
        if _kind(term) == "spline" and term.dtype == "categorical":
            self._refuse(
                f"a spline of column {term.feature} with dtype='categorical'", "fit a factor, f(i)"
            )
        if _kind(term) == "steps" and term.basis == "cp":
            self._refuse(
                f"a periodic spline of column {term.feature} with spline_order=0, which jumps "
                "endlessly",
                "fit one of a higher order",
            )

    def _refuse(self, what: str, remedy: str) -> None:
        here = f"{self._where}: " if self._where else ""
        raise ValueError(
            f"{here}{type(self._gam).__name__} has {what}, which is not supported: {remedy}"
        )

    def _rule(self, column: int, terms: list[Any], width: int) -> ColumnRule:
        kinds = {_kind(term) for term in terms}
        if kinds == {"linear"} and width == 1:
            return ColumnRule(is_kept=True)
        if kinds <= {"linear", "spline"}:
            return ColumnRule(width=width)
        if kinds == {"steps"}:
            edges = sorted({edge for term in terms for edge in _edges(term)})
            return ColumnRule(edges=tuple(edges), width=width)
        if kinds == {"factor"}:
            return ColumnRule(levels=self._levels(column, terms[0]), width=width)
        self._refuse(
            f"terms of different kinds ({', '.join(sorted(kinds))}) of column {column}",
            "keep one of them",
        )
        raise AssertionError

    def _levels(self, column: int, term: Any) -> tuple[int, ...]:
        """Return the codes of a factor; its bins are even, and fit them only without gaps."""
        low, high = (
            float(knot) for knot in (term.edge_knots_[0] + 0.5, term.edge_knots_[-1] - 0.5)
        )
        codes = tuple(range(int(low), int(low) + int(term.n_splines)))
        if codes[0] != low or codes[-1] != high:
            self._refuse(
                f"a factor of column {column} with {term.n_splines} codes from {low:g} to "
                f"{high:g}, so some are missing in between and others share a bin",
                "code it as 0, 1, 2, ...",
            )
        return codes


def _kind(term: Any) -> str:
    if term._name == "factor_term":
        return "factor"
    if term._name == "linear_term":
        return "linear"
    return "spline" if term.spline_order else "steps"


def _edges(term: Any) -> list[float]:
    """Where a spline of order 0 jumps; pygam makes its last knot inclusive by a hair."""
    low, high = float(term.edge_knots_[0]), float(term.edge_knots_[-1])
    knots = np.linspace(0.0, 1.0, 1 + int(term.n_splines))
    knots[-1] += 1e-9
    return [float(low + (high - low or 1.0) * knot) for knot in knots]


def split_gam(gam: Any, where: str) -> AdditiveModel:
    """Split a `LogisticGAM` of splines, linear terms and factors."""
    name = type(gam).__name__
    if not gam._is_fitted:
        here = f"{where}: " if where else ""
        raise ValueError(f"{here}the model {name} is not fitted: it has no coef_")
    step = TermColumns(gam, where)
    step.holdfast_rules()  # what is not understood is refused here, by name
    intercepts = [
        place
        for t, term in enumerate(gam.terms)
        if term.isintercept
        for place in gam.terms.get_coef_indices(t)
    ]
    coef = np.asarray(gam.coef_, dtype=np.float64)
    intercept = float(coef[intercepts].sum())
    return AdditiveModel(step, coef[step.places], intercept, classes=(0, 1), taken_from=name)
