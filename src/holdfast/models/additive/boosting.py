"""An explainable boosting machine of interpret, as bins of single columns and their scores."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.additive.model import AdditiveModel
from holdfast.models.encoding.rules import ColumnRule


class BinColumns:
    """The bins of each column, one-hot: first that of missing values, last that of unknown ones.

    Which bin a value is in, the boosting machine itself is asked.
    """

    def __init__(self, machine: Any) -> None:
        names = [str(name) for name in machine.feature_names_in_]
        self.n_features_in_ = len(names)
        if names != [f"feature_{j:04}" for j in range(len(names))]:  # as it calls nameless ones
            self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        self._names = names
        self._machine = machine
        # in the order of the raw columns, as rules go
        self.terms = sorted(range(len(machine.term_features_)), key=lambda t: self._column_of(t))
        self._sizes = [len(machine.term_scores_[term]) for term in self.terms]
        self._asked = copy.copy(machine)  # its scores are the bins' numbers, which it then gives
        self._asked.term_scores_ = [np.arange(float(len(s))) for s in machine.term_scores_]

    def transform(self, X: Any) -> Floats:
        """Return the bins of raw rows, one-hot."""
        made = np.zeros((len(X), sum(self._sizes)))
        if len(X):
            named = hasattr(self, "feature_names_in_")
            bins = self._asked.eval_terms(X if named else np.asarray(X))[:, self.terms].astype(
                np.int64
            )
            begins = np.cumsum([0, *self._sizes[:-1]])
            np.put_along_axis(made, bins + begins, 1.0, axis=1)
        return made

    def holdfast_rules(self) -> list[ColumnRule]:
        """Say what becomes of each column: a number in bins, or a category."""
        widths = [0] * self.n_features_in_
        for term, size in zip(self.terms, self._sizes, strict=True):
            widths[self._column_of(term)] += size
        return [self._rule(j, width) for j, width in enumerate(widths)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns: ``age_0`` is the first bin of ``age``, where it is missing."""
        names = self._names if input_features is None else list(input_features)
        parts = zip(self.terms, self._sizes, strict=True)
        return np.array(
            [f"{names[self._column_of(t)]}_{k}" for t, size in parts for k in range(size)],
            dtype=object,
        )

    def _column_of(self, term: int) -> int:
        return int(self._machine.term_features_[term][0])

    def _rule(self, column: int, width: int) -> ColumnRule:
        if not width:
            return ColumnRule(edges=(), width=0, takes_missing=True)
        bins = self._machine.bins_[column][0]
        if isinstance(bins, dict):
            levels = tuple(_levels(list(bins)))
            return ColumnRule(levels=levels, width=width, takes_missing=True)
        edges = tuple(float(cut) for cut in bins)
        return ColumnRule(edges=edges, width=width, takes_missing=True)


def _levels(texts: list[str]) -> list[Any]:
    """Return levels as people have them: it keeps all as texts, also numbers."""
    numbers = [_number(text) for text in texts]
    return texts if None in numbers else numbers


def _number(text: str) -> float | None:
    """Return the number that it wrote as this text, if any."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not np.isfinite(value):
        return None
    whole = int(value) if value == int(value) else None
    return whole if str(whole) == text else value if str(value) == text else None


def split_boosting(machine: Any, where: str) -> AdditiveModel:
    """Split an `ExplainableBoostingClassifier` of two classes without interactions."""
    here, name = f"{where}: " if where else "", type(machine).__name__
    if not hasattr(machine, "term_scores_"):
        raise ValueError(f"{here}the model {name} is not fitted: it has no term_scores_")
    classes = list(machine.classes_)
    if len(classes) != 2:
        raise ValueError(
            f"{here}{name} has {len(classes)} classes; recourse needs exactly 2 labels"
        )
    pairs = [
        machine.term_names_[t] for t, term in enumerate(machine.term_features_) if len(term) > 1
    ]
    if pairs:
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        raise ValueError(
            f"{here}{name} has interactions ({', '.join(map(repr, pairs[:3]))}{more}), which are "
            "not functions of single columns: fit it with interactions=0"
        )
    if machine.link_ != "logit":
        raise ValueError(f"{here}{name} has the link {machine.link_!r}; expected 'logit'")
    step = BinColumns(machine)
    scores = [np.asarray(machine.term_scores_[term]) for term in step.terms]
    coef = np.concatenate(scores) if scores else np.zeros(0)
    intercept = float(np.ravel(machine.intercept_)[0])
    return AdditiveModel(step, coef, intercept, classes=machine.classes_, taken_from=name)
