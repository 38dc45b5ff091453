"""What the columns of a table are, for a model: numbers, categories, or nothing to learn from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.machinery.settings import suggest
from holdfast.models.encoding.reading import plain

if TYPE_CHECKING:
    import pandas as pd

MOST_LEVELS = 50
_GAPS = 1.2  # the steps of a column that counts rows, on average
_COMMA = re.compile(r"\s*[+-]?[\d.]*,?\d+\s*")
_FEWEST_TO_COUNT = 20  # rows from which on a column of 1, 2, 3, ... is taken for a count of them


@dataclass(frozen=True)
class ColumnKinds:
    """The columns that a model is fitted on, by kind, and those that are left out.

    Attributes
    ----------
    numbers : list of str
    incomplete : list of str
        The numbers of which some are missing.
    levels : dict
        The levels of each category, a missing one last, as NaN.
    left_out : dict
        ColumnKinds that tell nobody from anybody, with the reason.
    """

    numbers: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    levels: dict[str, list[Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """Names of all columns that are used, numbers first."""
        return [*self.numbers, *self.levels]


def read_names(frame: pd.DataFrame, target: str, drop: Iterable[str]) -> list[str]:
    """Check that the target and the columns to leave out are there; return the latter once."""
    names = [str(name) for name in frame.columns]
    if target not in names:
        raise ValueError(f"the table has no column {target!r}; {suggest(target, names)}")
    dropped = list(dict.fromkeys(drop))
    for name in dropped:
        if name not in names:
            raise ValueError(f"--drop: the table has no column {name!r}; {suggest(name, names)}")
    if target in dropped:
        raise ValueError(f"--drop: {target!r} is the target")
    return dropped


def read_columns(table: pd.DataFrame, categories: Iterable[str] = ()) -> ColumnKinds:
    """Sort the columns of a table by what they are; all that is wrong is listed at once.

    `categories` are columns of numbers that are categories all the same.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [30, None, 50], "home": ["own", "rent", "own"], "one": 1})
    >>> read_columns(table)
    ColumnKinds(numbers=['age'], incomplete=['age'], levels={'home': ['own', 'rent']}, \
left_out={'one': 'everybody has the same value, 1'})
    """
    columns, wrong, coded = ColumnKinds(), dict[str, str](), set(categories)
    for name in coded:
        if name not in table.columns:
            there = suggest(name, list(map(str, table.columns)))
            raise ValueError(f"--category: the table has no feature {name!r}; {there}")
    for name in table.columns:
        seen = table[name].dropna().infer_objects()
        kind = getattr(seen.dtype, "kind", "O")
        distinct = [plain(value) for value in seen.unique().tolist()] if _hashable(seen) else []
        if seen.empty:
            columns.left_out[name] = "it has no values"
        elif kind in "mM":
            wrong[name] = "it holds dates or times"
        elif not distinct or not all(isinstance(k, (str, bool, int, float)) for k in distinct):
            wrong[name] = f"it holds values of the type {type(seen.iloc[0]).__name__}"
        elif len(distinct) == 1 and len(seen) == len(table):
            columns.left_out[name] = f"everybody has the same value, {distinct[0]!r}"
        elif kind in "iuf" and name not in coded:
            _read_number(name, table[name], seen, columns, wrong)
        else:
            _read_category(name, distinct, len(seen), len(table), columns, wrong)
    if wrong:
        lines = [f"  {name}: {reason}" for name, reason in wrong.items()]
        drops = " ".join(f"--drop {shlex.quote(name)}" for name in wrong)
        raise ValueError(
            "\n".join(
                [
                    "these columns cannot be used:",
                    *lines,
                    f"leave them out with {drops}",
                ]
            )
        )
    if not columns.used:
        raise ValueError("there are no columns left to learn from")
    return columns


def _hashable(seen: pd.Series[Any]) -> bool:
    if seen.dtype != object:
        return True
    return all(getattr(value, "__hash__", None) is not None for value in seen)


def _read_number(
    name: str,
    column: pd.Series[Any],
    seen: pd.Series[Any],
    columns: ColumnKinds,
    wrong: dict[str, str],
) -> None:
    values = seen.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        wrong[name] = "it holds infinite values"
        return
    if len(values) == len(column) >= _FEWEST_TO_COUNT and _counts_rows(values):
        wrong[name] = "it numbers the rows one after another: an id, which carries no information"
        return
    columns.numbers.append(name)
    if len(seen) < len(column):
        columns.incomplete.append(name)


def _counts_rows(values: Floats) -> bool:
    """Whether whole numbers follow one another, with few gaps: rows may have been left out."""
    steps = np.diff(np.sort(values))
    whole = (values == np.floor(values)).all()
    return bool(whole and (steps > 0.0).all() and steps.sum() <= _GAPS * len(steps))


def _read_category(
    name: str,
    distinct: list[Any],
    n_seen: int,
    n_rows: int,
    columns: ColumnKinds,
    wrong: dict[str, str],
) -> None:
    kinds = {type(value).__name__ for value in distinct}
    if len(kinds) > 1:
        wrong[name] = f"it mixes {' and '.join(sorted(kinds))}"
    elif all(isinstance(value, str) and _COMMA.fullmatch(value) for value in distinct):
        wrong[name] = "it holds numbers with a decimal comma: write them with a point"
    elif len(distinct) == n_seen > 2:
        wrong[name] = "all of its texts are different: an id, or free text"
    elif len(distinct) > MOST_LEVELS:
        wrong[name] = f"it has {len(distinct)} levels, more than {MOST_LEVELS}"
    else:
        missing = [float("nan")] if n_seen < n_rows else []
        columns.levels[name] = [*sorted(distinct), *missing]
