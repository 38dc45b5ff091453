"""A sum of functions of single columns: an encoder, and a weight for each of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.machinery.numbers import Floats, read_floats


class LinearScore:
    """A linear classifier given by its numbers, as scikit-learn has them.

    Parameters
    ----------
    coef : (d,) array
    intercept : float
    classes : pair of labels
        A positive score is the second one.
    taken_from : str
        The class of the model whose numbers these are, for messages.
    """

    def __init__(self, coef: Any, intercept: float, classes: Any, taken_from: str) -> None:
        self.coef_ = read_floats("coef", coef)
        if self.coef_.ndim != 1 or not np.isfinite(self.coef_).all():
            raise ValueError(f"coef has shape {self.coef_.shape}; expected (d,) finite numbers")
        self.intercept_ = float(intercept)
        if not np.isfinite(self.intercept_):
            raise ValueError(f"intercept = {intercept!r} is not a finite number")
        self.classes_: NDArray[Any] = np.asarray(classes)
        self.taken_from = taken_from

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class, from encoded columns."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.coef_ + self.intercept_)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class."""
        score = self.decision_function(X)
        return np.column_stack([special.expit(-score), special.expit(score)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row; an even chance goes to the first one."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0.0).astype(np.int64)])


class AdditiveModel:
    """A sum of functions of single columns, as log-odds: any additive model in two parts.

    The functions are the columns that a transformer makes, each from one raw column, and the
    score of a row is ``intercept + transform(row) @ coef``. `holdfast.RobustRecourse` takes it as
    it takes a pipeline, and a set of models is one of `coef`: what changes are the weights of the
    columns, while the columns stay what they are.

    Parameters
    ----------
    step : transformer
        Fitted: it has `transform`. It is one that Holdfast understands (of scikit-learn, say, or
        a pipeline of such), or says itself what becomes of each column, by a method
        `holdfast_rules`, see `holdfast.models.encoding.rules.ColumnRule`.
    coef : (d,) array
        The weight of each column that it makes.
    intercept : float
    classes : pair of labels
        A positive score is the second one.
    taken_from : str, optional
        What to call it in messages.

    See Also
    --------
    split_additive : how models of other packages are read, and what a set of models is for each.

    Examples
    --------
    Points for age in three bins, and for years at a job, of which each counts less than the last:

    >>> import numpy as np
    >>> import holdfast
    >>> from holdfast.models import AdditiveModel
    >>> from holdfast.models.encoding.rules import ColumnRule
    >>> class Points:
    ...     n_features_in_ = 2
    ...
    ...     def transform(self, X):
    ...         age, years = np.asarray(X, dtype=float).T
    ...         return np.column_stack([age < 30, (age >= 30) & (age < 50), age >= 50, years**0.5])
    ...
    ...     def holdfast_rules(self):
    ...         return [ColumnRule(edges=(30.0, 50.0), width=3), ColumnRule()]
    >>> model = AdditiveModel(Points(), [0.0, 1.0, 2.0, 0.5], -2.0)
    >>> people = np.array([[25, 1], [55, 1], [41, 2]])
    >>> model.decision_function(people)
    array([-1.5       ,  0.5       , -0.29289322])
    >>> actions = holdfast.ActionSet.from_data(people, immutable=["x0"])
    >>> actions.set("x1", upper=40)
    >>> recourse = holdfast.RobustRecourse(
    ...     model, robust_to=holdfast.NormBall(p=2, radius=0.05), actions=actions, guarantee=0.5
    ... )
    >>> recourse.recommend(people[2:]).changes(0)
    ['x1 from 2 to 6']
    """

    def __init__(
        self,
        step: Any,
        coef: Any,
        intercept: float = 0.0,
        *,
        classes: Any = (False, True),
        taken_from: str = "AdditiveModel",
    ) -> None:
        if not hasattr(step, "transform"):
            raise TypeError(f"step is a {type(step).__name__} without a method transform")
        self.step = step
        self.classifier = LinearScore(coef, intercept, classes, taken_from)
        self.coef_ = self.classifier.coef_
        self.intercept_ = self.classifier.intercept_
        self.classes_ = self.classifier.classes_

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second class, from raw rows."""
        return self.classifier.decision_function(self._columns(X))

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class."""
        return self.classifier.predict_proba(self._columns(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row; an even chance goes to the first one."""
        return self.classifier.predict(self._columns(X))

    def _columns(self, X: Any) -> Any:
        made = self.step.transform(X)
        return made.toarray() if hasattr(made, "toarray") else made
