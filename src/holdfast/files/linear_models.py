"""A fitted pipeline from nothing but the coefficients of a linear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# Looking columns up by name takes scikit-learn the square of their number; no table has as many.
MOST_COLUMNS = 20_000
_ROWS = 4  # made up


class NumberTerm(NamedTuple):
    """A column of numbers: ``coefficient * (value - mean) / scale`` is added to the score."""

    name: str
    coefficient: float
    mean: float = 0.0
    scale: float = 1.0


class LevelTerm(NamedTuple):
    """A column of categories: the coefficient of the person's level is added to the score.

    A level that is not listed adds nothing where unknown ones are taken, and is an error elsewhere.
    """

    name: str
    levels: tuple[Any, ...]
    coefficients: tuple[float, ...]
    takes_unknown: bool = False


def pipeline_of(
    terms: Sequence[NumberTerm | LevelTerm], classes: Sequence[Any], intercept: float
) -> Any:
    """Return a fitted pipeline of these coefficients, which are those of the second class.

    Its columns are those of the terms, in their order. It is fitted once on made-up rows, so that
    scikit-learn itself fills in whatever it needs, and then given its numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> terms = [
    ...     NumberTerm("months", -0.5, mean=12.0, scale=6.0),
    ...     LevelTerm("home", ("own", "rent"), (0.25, -0.5)),
    ... ]
    >>> model = pipeline_of(terms, ["bad", "good"], intercept=1.0)
    >>> model.decision_function(pd.DataFrame({"months": [24], "home": ["rent"]}))
    array([-0.5])
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    refuse_many(len(terms))
    numbers = [term for term in terms if isinstance(term, NumberTerm)]
    levels = [_sorted(term) for term in terms if isinstance(term, LevelTerm)]
    steps: list[Any] = []
    if numbers:
        steps.append(("numbers", StandardScaler(), [term.name for term in numbers]))
    closed = [term for term in levels if not term.takes_unknown]
    opened = [term for term in levels if term.takes_unknown]
    for name, those, unknown in (("categories", closed, "error"), ("open", opened, "ignore")):
        if those:
            coder = OneHotEncoder(
                categories=[np.array(term.levels, dtype=_dtype(term.levels)) for term in those],
                handle_unknown=unknown,
                sparse_output=False,
            )
            steps.append((name, coder, [term.name for term in those]))
    columns, classifier = ColumnTransformer(steps), LogisticRegression()
    model = Pipeline([("columns", columns), ("classifier", classifier)])
    table = _made_up(terms)
    ordered = sorted(classes)
    model.fit(table, np.array([ordered[k % 2] for k in range(len(table))]))
    if numbers:
        scaler = columns.named_transformers_["numbers"]
        scaler.mean_ = np.array([term.mean for term in numbers])
        scaler.scale_ = np.array([term.scale for term in numbers])
        scaler.var_ = scaler.scale_**2
    coef = [term.coefficient for term in numbers]
    coef += [value for term in [*closed, *opened] for value in term.coefficients]
    sign = 1.0 if list(classes) == ordered else -1.0
    classifier.coef_ = sign * np.array([coef])
    classifier.intercept_ = sign * np.array([float(intercept)])
    return model


def refuse_many(count: int) -> None:
    """Refuse a model of more columns than any table has."""
    if count > MOST_COLUMNS:
        raise ValueError(f"it reads {count:,} columns; at most {MOST_COLUMNS:,} can be read")


def _sorted(term: LevelTerm) -> LevelTerm:
    """Return it with its levels in order, which scikit-learn demands of numbers."""
    pairs = sorted(zip(term.levels, term.coefficients, strict=True))
    levels, coefficients = zip(*pairs, strict=True)
    return term._replace(levels=levels, coefficients=coefficients)


def _dtype(levels: tuple[Any, ...]) -> Any:
    return object if isinstance(levels[0], str) else None


def _made_up(terms: Sequence[NumberTerm | LevelTerm]) -> Any:
    """Return a few rows in which numbers differ; the levels are told to the encoder, not seen.

    As many rows as there are levels would make a table of the square of their number.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for term in terms:
        if isinstance(term, NumberTerm):
            columns[term.name] = np.arange(_ROWS, dtype=np.float64)
        else:
            seen = [term.levels[k % len(term.levels)] for k in range(_ROWS)]
            columns[term.name] = pd.Series(seen).array
    return pd.DataFrame(columns)
