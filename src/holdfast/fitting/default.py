"""The default model: scaled numbers, one-hot categories, a logistic regression tuned to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.fitting.columns import ColumnKinds, read_columns, read_names
from holdfast.fitting.measures import Measures, measure
from holdfast.machinery.numbers import Floats
from holdfast.models.classes import favorable_position, label_of, spelled
from holdfast.models.encoding.reading import as_table, plain

if TYPE_CHECKING:
    import pandas as pd

STRENGTHS = tuple(10.0**k for k in np.arange(-3.0, 3.5, 0.5))  # scikit-learn's C
_FOLDS = 5
_FEWEST = 10  # of each class
# More people than these make neither the choice of the strength nor the measures any better.
_MOST_TRIED = 20_000


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that was fitted, and how good it is.

    Attributes
    ----------
    model : Pipeline
        Fitted on all rows; it may be fitted again as it stands.
    target : str
    favorable_class : label
    n_rows : int
        How many rows it was fitted on.
    n_unlabelled : int
        Rows that were left out because their target is missing.
    columns : ColumnKinds
        What it reads, and what was left out, and why.
    C : float
        The strength: the inverse of how much large coefficients are held against a model.
    measures : Measures
        By cross-validation: for every person, of a model that has not seen them, whose strength
        was chosen without them.
    coefficients : DataFrame
        For each term its `feature`, what it is (`term`: "per standard deviation", a level, or
        "missing"), and its `coefficient`, in log-odds of the favourable class.
    weights : Series
        For each feature, by how much it moves the score: the standard deviation, over people, of
        what it adds; the heaviest first.
    """

    model: Any
    target: str
    favorable_class: Any
    n_rows: int
    n_unlabelled: int
    columns: ColumnKinds
    C: float
    measures: Measures
    coefficients: pd.DataFrame
    weights: pd.Series[float]

    def to_plain(self) -> dict[str, Any]:
        """Return all but the model as plain numbers, texts and lists."""
        return {
            "target": self.target,
            "favorable_class": self.favorable_class,
            "rows": self.n_rows,
            "rows_without_target": self.n_unlabelled,
            "columns": self.columns.used,
            "left_out": self.columns.left_out,
            "C": self.C,
            "measures": self.measures.to_plain(),
            "weights": {str(name): float(value) for name, value in self.weights.items()},
            "coefficients": self.coefficients.to_dict(orient="records"),
        }


def fit_default(
    table: Any,
    target: str,
    favorable_class: Any,
    *,
    drop: Iterable[str] = (),
    categories: Iterable[str] = (),
) -> Fitted:
    """Fit a model that `RobustRecourse` reads, from nothing but a table.

    Numbers are scaled; where some are missing, they are taken for the median, and a column says so.
    Categories are one-hot, with all levels of the table. The strength of the logistic regression is
    the one that predicts best in 5-fold cross-validation, by log-loss. The answer is the same
    every time.

    Parameters
    ----------
    table : DataFrame
        People, with their outcome. Rows without an outcome are left out.
    target : str
        The column of the outcome, with two different values.
    favorable_class : label or str
        The outcome that people want, or how it is typed: "0".
    drop : iterable of str
        Columns not to use.
    categories : iterable of str
        Columns of numbers that are categories all the same.

    Examples
    --------
    >>> from holdfast.datasets import load_german
    >>> german = load_german()
    >>> table = german.features[["duration", "age", "housing"]].assign(good=german.approved)
    >>> fitted = fit_default(table, "good", True)
    >>> fitted.weights.round(2).to_dict()
    {'duration': 0.42, 'housing': 0.23, 'age': 0.2}
    >>> bool(fitted.measures.auc > 0.6)
    True
    """
    from sklearn.pipeline import Pipeline
    from threadpoolctl import threadpool_limits

    frame = as_table(table)
    dropped = read_names(frame, target, drop)
    labelled = frame[target].notna()
    labels, classes = _labels(target, frame[target][labelled])
    wanted = _wanted(classes, favorable_class)
    people = frame.loc[labelled].drop(columns=[target, *dropped])
    columns = read_columns(people, categories)
    people = _as_fitted(people, columns)
    rows = _drawn(labels, classes)
    with threadpool_limits(1):  # for models this small, threads only get in each other's way
        measures = measure(
            _unseen(people.iloc[rows], labels[rows], columns, wanted), labels[rows] == wanted
        )
        strength = _best_strength(_encoder(columns), people.iloc[rows], labels[rows])
        model = Pipeline([("columns", _encoder(columns)), ("classifier", _classifier(strength))])
        model.fit(people, labels)
    terms, weights = _explain(model, people, columns, wanted)
    return Fitted(
        model=model,
        target=target,
        favorable_class=wanted,
        n_rows=len(labels),
        n_unlabelled=int((~labelled).sum()),
        columns=columns,
        C=strength,
        measures=measures,
        coefficients=terms,
        weights=weights,
    )


def _labels(target: str, column: pd.Series[Any]) -> tuple[NDArray[Any], list[Any]]:
    """Return the outcomes, whole numbers as such, and the two values that there are."""
    values = column.infer_objects()
    if getattr(values.dtype, "kind", "O") == "f" and (values == values.round()).all():
        values = values.astype("int64")
    kind = getattr(values.dtype, "kind", "O")
    labels = values.to_numpy(dtype=object if kind not in "biuf" else values.dtype.type)
    classes = sorted({plain(value) for value in labels.tolist()}, key=lambda k: (str(type(k)), k))
    if len(classes) != 2:
        count = f"{len(classes)} different values" if len(classes) != 1 else "one value only"
        raise ValueError(
            f"the target {target!r} has {count} ({spelled(classes)}); it must have exactly two "
            "different values"
        )
    if len({type(label) for label in classes}) > 1:
        raise ValueError(f"the target {target!r} mixes types: {spelled(classes)}")
    for label in classes:
        count_of = int((labels == label).sum())
        if count_of < _FEWEST:
            raise ValueError(
                f"the target {target!r} is {label!r} in only {count_of} rows; at least {_FEWEST} "
                "of each are needed"
            )
    return labels, classes


def _wanted(classes: list[Any], favorable_class: Any) -> Any:
    given = plain(favorable_class)
    if isinstance(given, str):
        return label_of(classes, given)
    known = favorable_position(classes, given)
    if known is None:
        raise ValueError(f"{given!r} is not one of the classes: {spelled(classes)}")
    return classes[known]


def _as_fitted(people: pd.DataFrame, columns: ColumnKinds) -> pd.DataFrame:
    """Return the columns that are used, in their order: floats, and objects missing as NaN."""
    import pandas as pd

    used = {}
    for name in people.columns:
        if name in columns.numbers:
            used[name] = people[name].astype(np.float64)
        elif name in columns.levels and people[name].isna().any():
            used[name] = people[name].astype(object).where(people[name].notna(), np.nan)
        elif name in columns.levels:
            used[name] = people[name]
    return pd.DataFrame(used)


def _encoder(columns: ColumnKinds) -> Any:
    """Return the transformer of the raw columns; fitted again, it has the same columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    whole = [name for name in columns.numbers if name not in columns.incomplete]
    steps: list[Any] = []
    if whole:
        steps.append(("numbers", StandardScaler(), whole))
    if columns.incomplete:
        fill = [("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())]
        steps.append(("filled", Pipeline(fill), columns.incomplete))
        steps.append(("missing", MissingIndicator(features="all"), columns.incomplete))
    if columns.levels:
        levels = [
            np.array(found, dtype=object if _is_mixed(found) else None)
            for found in columns.levels.values()
        ]
        coder = OneHotEncoder(categories=levels, sparse_output=False)
        steps.append(("categories", coder, list(columns.levels)))
    return ColumnTransformer(steps)


def _is_mixed(levels: list[Any]) -> bool:
    return isinstance(levels[0], str) or levels[-1] != levels[-1]


def _classifier(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=2000)


def _drawn(labels: NDArray[Any], classes: list[Any]) -> NDArray[np.int64]:
    """Return the rows that the strength is chosen on, in their order: all, if they are not many."""
    if len(labels) <= _MOST_TRIED:
        return np.arange(len(labels))
    rng = np.random.default_rng(0)
    chosen = set(rng.permutation(len(labels))[:_MOST_TRIED].tolist())
    for label in classes:  # the rarer class must be there often enough
        chosen |= set(np.flatnonzero(labels == label)[:_FEWEST].tolist())
    return np.array(sorted(chosen))


def _folds(labels: NDArray[Any]) -> Any:
    from sklearn.model_selection import StratifiedKFold

    places = np.unique(labels, return_inverse=True)[1]
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    return folds.split(np.zeros(len(places)), places)


def _best_strength(encoder: Any, people: pd.DataFrame, labels: NDArray[Any]) -> float:
    """Return the strength of the least log-loss in cross-validation; of equals, the smallest."""
    from sklearn.metrics import log_loss

    classes = np.unique(labels)
    losses = np.zeros(len(STRENGTHS))
    for seen, unseen in _folds(labels):
        before = encoder.fit_transform(people.iloc[seen])
        after = encoder.transform(people.iloc[unseen])
        for k, strength in enumerate(STRENGTHS):
            fitted = _classifier(strength).fit(before, labels[seen])
            chances = fitted.predict_proba(after)
            losses[k] += log_loss(labels[unseen], chances, labels=classes, normalize=False)
    return float(STRENGTHS[int(np.argmin(losses))])


def _unseen(
    people: pd.DataFrame, labels: NDArray[Any], columns: ColumnKinds, wanted: Any
) -> Floats:
    """Return everybody's probability by a model that was made without them."""
    probability = np.empty(len(labels))
    for seen, unseen in _folds(labels):
        encoder = _encoder(columns)
        strength = _best_strength(encoder, people.iloc[seen], labels[seen])
        fitted = _classifier(strength).fit(encoder.fit_transform(people.iloc[seen]), labels[seen])
        chances = fitted.predict_proba(encoder.transform(people.iloc[unseen]))
        probability[unseen] = chances[:, fitted.classes_.tolist().index(wanted)]
    return probability


def _explain(
    model: Any, people: pd.DataFrame, columns: ColumnKinds, wanted: Any
) -> tuple[pd.DataFrame, pd.Series[float]]:
    """Return the coefficients of all terms, and the weight of each raw feature."""
    import pandas as pd

    whole = [name for name in columns.numbers if name not in columns.incomplete]
    terms = [(name, "per standard deviation") for name in [*whole, *columns.incomplete]]
    terms += [(name, "missing") for name in columns.incomplete]
    for name, levels in columns.levels.items():
        terms += [(name, "missing" if k != k else str(k)) for k in levels]
    classifier = model["classifier"]
    sign = 1.0 if plain(classifier.classes_[1]) == wanted else -1.0
    coef = sign * classifier.coef_[0]
    table = pd.DataFrame(terms, columns=["feature", "term"]).assign(coefficient=coef)
    added = np.asarray(model["columns"].transform(people), dtype=np.float64) * coef
    weights = {
        name: float(added[:, (table["feature"] == name).to_numpy()].sum(axis=1).std())
        for name in columns.used
    }
    ordered = pd.Series(weights, name="weight").sort_values(ascending=False, kind="stable")
    place = {name: k for k, name in enumerate(ordered.index)}
    table = table.sort_values("feature", key=lambda names: names.map(place), kind="stable")
    return table.reset_index(drop=True), ordered
