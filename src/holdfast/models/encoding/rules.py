"""How anybody's own transformer can say what it does to its columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.models.encoding.asking import ask, cut, transform
from holdfast.models.encoding.coders import NOTHING, Levels, none_of
from holdfast.models.encoding.columns import Affine, EncodedColumn, Outline, bend
from holdfast.models.encoding.reading import plain


@dataclass(frozen=True)
class ColumnRule:
    """What a transformer does to one of its columns, by itself.

    A fitted transformer with a method ``holdfast_rules()`` that returns one rule for each of its
    columns, in their order, can stand in a pipeline that is taken apart. It says only where a
    function jumps, or which levels there are; values it is asked for, so they cannot be wrong.
    Each column must become `width` columns that depend on no other, side by side, in the order of
    the columns. A transformer that looks its columns up by name needs `feature_names_in_`, as in
    scikit-learn.

    Parameters
    ----------
    edges : iterable of float, optional
        The column is a number, and what is made of it is constant between these.
    levels : iterable, optional
        The column is a category, and these are the levels that are known. With neither edges nor
        levels it is a number, and what is made of it any function of it.
    width : int, default 1
        How many columns it becomes.
    takes_missing : bool, default False
        Whether a missing value becomes a number.
    specials : iterable, default ()
        Raw values that are codes, and no quantities or levels that anybody could take.
    is_kept : bool, default False
        Whether the column is passed on as it is, which says all of it.

    Examples
    --------
    Weights of evidence at home: a number that is cut, and a category.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from holdfast.models.encoding import ColumnRule, Encoding
    >>> class WeightOfEvidence(TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.feature_names_in_ = np.array(X.columns, dtype=object)
    ...         groups = {"age": X["age"] > 40, "home": X["home"]}
    ...         rates = {name: pd.Series(y).groupby(group).mean() for name, group in groups.items()}
    ...         self.evidence_ = {name: np.log(r / (1 - r)) for name, r in rates.items()}
    ...         return self
    ...
    ...     def transform(self, X):
    ...         age = (X["age"] > 40).map(self.evidence_["age"])
    ...         home = X["home"].map(self.evidence_["home"])
    ...         return np.column_stack([age, home])
    ...
    ...     def holdfast_rules(self):
    ...         return [ColumnRule(edges=[40]), ColumnRule(levels=self.evidence_["home"].index)]
    >>> table = pd.DataFrame({"age": [20, 70, 30, 50, 60, 25], "home": ["own", "rent"] * 3})
    >>> pipeline = make_pipeline(WeightOfEvidence(), LogisticRegression())
    >>> encoding = Encoding.of(pipeline.fit(table, np.array([0, 1, 1, 0, 1, 0]) > 0))
    >>> encoding["age"].edges, encoding["home"].levels
    ((40.0,), ('own', 'rent'))
    """

    edges: Iterable[float] | None = None
    levels: Iterable[Any] | None = None
    width: int = 1
    takes_missing: bool = False
    specials: Iterable[Any] = ()
    is_kept: bool = False

    def __post_init__(self) -> None:
        if self.edges is not None and self.levels is not None:
            raise ValueError("a ColumnRule has edges or levels, not both")
        for name in ("edges", "levels", "specials"):  # they are read more than once
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _plain(value))
        said = (self.edges, self.levels, self.width, self.takes_missing, self.specials)
        if self.is_kept and said != (None, None, 1, False, ()):
            raise ValueError("a ColumnRule that keeps its column must not say anything else")


def read_rules(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
    """Read a transformer by the rules that it gives of itself."""
    name = type(step).__name__
    rules = list(step.holdfast_rules())
    if len(rules) != len(columns) or not all(isinstance(rule, ColumnRule) for rule in rules):
        raise ValueError(
            f"{where}: {name}.holdfast_rules() must return a ColumnRule for each of the "
            f"{len(columns)} columns that it receives; it returned {rules!r}"
        )
    others = [_anything(rule) for rule in rules]
    row = transform(step, [[other] for other in others], others)
    total = sum(rule.width for rule in rules)
    if row is not None and row.shape[1] != total:
        raise ValueError(f"{where}: {name} makes {row.shape[1]} columns; its rules say {total}")
    result: list[EncodedColumn] = []
    for k, (rule, column) in enumerate(zip(rules, columns, strict=True)):
        if rule.is_kept:
            result.append(column)
            continue
        if rule.levels is None:
            result += [_bent(rule, column, where)] * rule.width
            continue
        levels = _levels(rule, column, f"{where}: {name}")
        place = slice(len(result), len(result) + rule.width)
        answers = cut(ask(step, levels.questions, k, others), place)
        result += levels.coded(answers, step, where)
    return result


def _bent(rule: ColumnRule, column: EncodedColumn, where: str) -> EncodedColumn:
    return bend(
        column,
        where,
        Outline(rule.edges or (), is_flat=rule.edges is not None),
        takes_missing=rule.takes_missing,
        specials=rule.specials,
    )


def _levels(rule: ColumnRule, column: EncodedColumn, who: str) -> Levels:
    if not (isinstance(column, Affine) and column.untouched):
        raise ValueError(f"{who} reads a column that a step before it changed")
    specials = list(rule.specials)
    levels = [level for level in rule.levels or () if level not in specials]
    missing_as = math.nan if rule.takes_missing else NOTHING
    return Levels(column, levels, missing_as, none_of(levels), specials)


def _anything(rule: ColumnRule) -> Any:
    """Return a value that the transformer takes in a column."""
    return next(iter(rule.levels or rule.edges or ()), 1.0)


def _plain(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(
        value
        for value in map(plain, values)
        if not (isinstance(value, float) and math.isinf(value))
    )
