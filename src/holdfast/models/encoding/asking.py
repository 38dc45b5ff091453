"""What a fitted step makes of values of one of its columns: it is asked, not imitated."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.columns import Coded, EncodedColumn, Flag

ANY_NUMBER = 1.0  # what stands in the other columns: every function that is known takes it


def ask(step: Any, values: Sequence[Any], k: int, others: Sequence[Any]) -> list[Floats | None]:
    """Return the row that a step makes of each value in its k-th column; None if it refuses it.

    In its columns stand the `others`, one for each; none of them may change what comes of the
    k-th.
    """
    if not values:
        return []
    columns = [[other] * len(values) for other in others]
    columns[k] = list(values)
    made = transform(step, columns, others)
    if made is not None:
        return list(made)
    if len(values) == 1:
        return [None]
    return [ask(step, [value], k, others)[0] for value in values]


def ask_all(
    step: Any, questions: dict[int, list[Any]], others: Sequence[Any]
) -> dict[int, list[Floats | None]]:
    """Ask about values of several columns, all at once if none is refused; see `ask`."""
    most = max((len(values) for values in questions.values()), default=0)
    columns = [[*questions.get(k, []), *[other] * most][:most] for k, other in enumerate(others)]
    made = transform(step, columns, others) if most else None
    if made is None:
        return {k: ask(step, values, k, others) for k, values in questions.items()}
    return {k: list(made[: len(values)]) for k, values in questions.items()}


def cut(rows: list[Floats | None], place: slice) -> list[Floats | None]:
    """Return some of the columns of answers."""
    return [None if row is None else row[place] for row in rows]


def transform(step: Any, columns: Sequence[Sequence[Any]], others: Sequence[Any]) -> Floats | None:
    """Return what a step makes of columns, as numbers; None if it refuses them.

    Each is given the type of its values and of its other one; where that is refused, all are given
    as objects, as those of an array are that holds texts and numbers.
    """
    typed = [_typed(values, others[j]) for j, values in enumerate(columns)]
    made = _transform(step, typed)
    if made is None and any(each.dtype != object for each in typed):
        made = _transform(step, [_objects(values) for values in columns])
    return made


def _transform(step: Any, columns: list[Any]) -> Floats | None:
    import pandas as pd

    # columns that are called by numbers have no names for scikit-learn
    table = pd.DataFrame(dict(enumerate(columns)), copy=True)
    names = names_in(step)
    if names is not None:
        table.columns = pd.Index(names, dtype=object)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made = step.transform(table)
            made = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
            return np.asarray(made, dtype=np.float64)
        except Exception:  # anybody's step refuses a value in its own way
            return None


def names_in(step: Any) -> list[Any] | None:
    """Return the names by which a fitted step knows its columns, if it does."""
    names = getattr(step, "feature_names_in_", None)
    if names is None and type(step).__module__.partition(".")[0] == "optbinning":
        names = getattr(step, "variable_names", None)
    return None if names is None else list(names)


def at_missing(step: Any, n: int) -> Floats | None:
    """Return what a step makes of a row in which all n numbers are missing; None: it refuses it."""
    row = transform(step, [[np.nan]] * n, [ANY_NUMBER] * n)
    return None if row is None else row[0]


def push(
    step: Any,
    columns: list[EncodedColumn],
    k: int,
    place: slice,
    where: str,
    others: Sequence[Any] | None = None,
) -> list[EncodedColumn]:
    """Return what a step makes of a column all of whose values are known: it is asked for each.

    `place` are the columns of its output that come from the k-th column; for `others` see `ask`.
    """
    column, others = columns[k], others or [ANY_NUMBER] * len(columns)

    def at(value: float | None) -> Sequence[float | None]:
        row = None if value is None else ask(step, [value], k, others)[0]
        return [None] * (place.stop - place.start) if row is None else row[place].tolist()

    if isinstance(column, Flag):
        present, missing = at(column.present), at(column.missing)
        if None in present:
            raise ValueError(f"{where}: {type(step).__name__} refuses {column.present}")
        return [
            replace(column, present=float(there), missing=gone)  # type: ignore[arg-type]
            for there, gone in zip(present, missing, strict=True)
        ]
    if not isinstance(column, Coded):
        raise TypeError(f"the values of a {type(column).__name__} column are not known")
    rows = ask(step, list(column.values), k, others)
    for level, row in zip(column.levels, rows, strict=True):
        if row is None:
            raise ValueError(f"{where}: {type(step).__name__} refuses the level {level!r}")
    made = np.array(rows, dtype=np.float64)[:, place]
    ends = zip(at(column.missing), at(column.unknown), strict=True)
    return [
        replace(column, values=made[:, j], missing=missing, unknown=unknown)
        for j, (missing, unknown) in enumerate(ends)
    ]


def _typed(values: Sequence[Any], other: Any) -> Any:
    """Return a column of numbers or booleans where all are, else of objects."""
    seen = [*values, other]
    flags = [isinstance(value, (bool, np.bool_)) for value in seen]
    numbers = [isinstance(value, (int, float, np.number)) for value in seen]
    if all(flags) or (all(numbers) and not any(flags)):
        return np.array(values)
    return _objects(values)


def _objects(values: Sequence[Any]) -> Any:
    import pandas as pd

    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.Series(column, dtype=object)  # said, or texts would be made another type
