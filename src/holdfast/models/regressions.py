"""Fitted regressions of statsmodels as classifiers: coefficients, an intercept, probabilities."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats

# What `add_constant` and formulas call the column of ones.
_CONSTANTS = ("const", "Intercept")
_LINKS = {"Logit": "logistic", "Probit": "probit"}
_INSTEAD = "pass its coefficients: holdfast.models.LinearModel(coef, intercept, loss)"


class StatsmodelsResults:
    """Results of statsmodels' `Logit`, `Probit` or binomial `GLM`, as scikit-learn has it.

    The column of ones is the intercept, and not asked of people; any other column is one that they
    have. The classes are 0 and 1; statsmodels decides nothing itself, and an even chance goes to
    class 0.

    Attributes
    ----------
    coef_, intercept_ : arrays
    classes_ : array
    feature_names_in_ : array of str
        The columns of the design, without that of ones.
    constant : str or None
        That of ones.
    loss : {"logistic", "probit"}
        It was fitted with.
    """

    def __init__(self, results: Any) -> None:
        self.results, model = results, results.model
        self.loss = _read_loss(model)
        _check_plain(model)
        names = _names(model)
        self.constant = _constant(model, names)
        params = np.asarray(results.params, dtype=np.float64).reshape(-1)
        if len(params) != len(names):
            _refuse(model, f"has {len(params)} parameters for {len(names)} columns")
        is_ones = np.array([name == self.constant for name in names])
        self.coef_, self.classes_ = params[~is_ones].reshape(1, -1), np.array([0, 1])
        self.intercept_ = np.array([params[is_ones].sum()])
        self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)[~is_ones]
        self.n_features_in_ = len(self.feature_names_in_)
        self._names = names
        self._formula = getattr(model, "formula", None)
        if self._formula is not None:
            _check_formula(model, self._formula, self.feature_names_in_.tolist())

    def predict_proba(self, X: Any) -> Floats:
        """Ask the results themselves about rows of the columns, the constant left out or not."""
        import pandas as pd

        names = self.feature_names_in_.tolist()
        rows = pd.DataFrame(X) if not hasattr(X, "columns") else X
        if not hasattr(X, "columns"):
            rows.columns = names
        if self._formula is None:
            rows = rows[names]
            if self.constant is not None:
                rows = rows.assign(**{self.constant: 1.0})
            rows = rows[self._names]
        second = np.asarray(self.results.predict(rows), dtype=np.float64).reshape(-1)
        return np.column_stack([1.0 - second, second])


def as_classifier(model: Any) -> Any:
    """Return results of statsmodels as a classifier; anything else as it is."""
    if type(model).__module__.partition(".")[0] != "statsmodels":
        return model
    if not hasattr(model, "params") or not hasattr(model, "model"):
        raise ValueError(
            f"statsmodels' {type(model).__name__} is not fitted: pass what its fit() returns"
        )
    return StatsmodelsResults(model)


def _read_loss(model: Any) -> str:
    kind = type(model).__name__
    if kind in _LINKS:
        return _LINKS[kind]
    if kind != "GLM":
        _refuse(model, "is not supported; supported: Logit, Probit and GLM of the binomial family")
    family = type(model.family).__name__
    if family != "Binomial":
        _refuse(model, f"has the family {family}, which does not have two classes; use Binomial")
    link = type(model.family.link).__name__
    if link.capitalize() not in _LINKS:  # it was written logit once
        _refuse(model, f"has the link {link}; supported: Logit and Probit")
    return _LINKS[link.capitalize()]


def _check_plain(model: Any) -> None:
    """Refuse what adds to a score, or weighs rows, beside the columns."""
    # the names are still known where the data have been removed
    for what in ("offset", "exposure", "freq_weights", "var_weights"):
        given = getattr(model, what, None) is not None
        said = getattr(model, f"_has_{what}", given) or getattr(model, f"_{what}_name", None)
        if said:
            _refuse(model, f"was fitted with {what}, which is not supported; {_INSTEAD}")


def _names(model: Any) -> list[str]:
    """Return the columns of the design."""
    if model.exog_names is None:  # they are looked up in the data, and kept, at their first use
        _refuse(
            model,
            "lost its column names along with its data; read model.exog_names once before "
            "calling remove_data()",
        )
    return [str(name) for name in model.exog_names]


def _constant(model: Any, names: list[str]) -> str | None:
    """Return the name of the column of ones; any other constant is a column like all others."""
    for name in _CONSTANTS:
        if name in names:
            column = None if model.exog is None else model.exog[:, names.index(name)]
            if column is None or (np.asarray(column) == 1.0).all():
                return name
    return None


def _check_formula(model: Any, formula: str, names: list[str]) -> None:
    """Refuse a formula that makes columns; a sum of columns as they are makes none."""
    made = [name for name in names if not name.isidentifier()]
    if made:
        _refuse(
            model,
            f"was fitted with the formula {formula!r}, which makes the column {made[0]!r} from "
            "others: Holdfast cannot read that. Fit the model on raw columns, or let a "
            "scikit-learn pipeline encode them",
        )


def _refuse(model: Any, why: str) -> NoReturn:
    raise ValueError(f"statsmodels' {type(model).__name__} {why}")
