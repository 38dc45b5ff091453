"""Encoders of categories: they are asked for the codes of all their levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.asking import ask, ask_all, cut, push
from holdfast.models.encoding.bends import Reader
from holdfast.models.encoding.columns import Affine, Bent, Coded, EncodedColumn, Outline, bend
from holdfast.models.encoding.reading import is_missing

NOTHING: Any = object()


@dataclass(frozen=True)
class Levels:
    """A raw column that a step codes: its levels, and what else the step is to be asked about.

    Attributes
    ----------
    column : Affine
        The raw column; codes and fills of steps before are read as what they stand for.
    levels, specials : sequences
        Those that the step knows; the specials are no levels that people could take.
    missing_as, unknown_as : object
        What to ask it about as a missing level, and as an unknown one; NOTHING: it refuses them.
    are_objects : bool
        Whether the step knows the levels as those of a column of objects.
    """

    column: Affine
    levels: Sequence[Any]
    missing_as: Any
    unknown_as: Any
    specials: Sequence[Any] = ()
    are_objects: bool = False

    @cached_property
    def read_as(self) -> dict[Any, Any]:
        """For each level, as which level the step reads it."""
        codes = dict(self.column.codes)
        plain = [level for level in (*self.levels, *self.specials) if level not in codes]
        return {**{level: level for level in plain}, **codes}

    @property
    def ends(self) -> list[Any]:
        """As which values the step reads a missing and an unknown level."""
        if self.column.fill is not None:
            return [self.column.fill, self.unknown_as]
        refuses = self.column.refuses_missing
        return [NOTHING if refuses else self.missing_as, self.unknown_as]

    @property
    def questions(self) -> list[Any]:
        """All values that the step is asked about."""
        return [*self.read_as.values(), *(end for end in self.ends if end is not NOTHING)]

    def coded(self, rows: list[Floats | None], step: Any, where: str) -> list[EncodedColumn]:
        """Return the columns of the category, from what the step has answered."""
        answers = iter(rows)
        codes = {level: next(answers) for level in self.read_as}
        missing, unknown = [None if end is NOTHING else next(answers) for end in self.ends]
        known = {level: row for level, row in codes.items() if row is not None}
        lost = [k for k in self.levels if k not in known and self.read_as[k] == k]
        if lost:
            raise ValueError(f"{where}: {type(step).__name__} refuses its level {lost[0]!r}")
        stand_ins = {*dict(self.column.codes), *self.specials}
        missing_as = NOTHING if self.column.fill is not None else self.missing_as
        width = next((len(row) for row in rows if row is not None), 0)
        values = np.array(list(known.values()), dtype=np.float64).reshape(len(known), width)
        return [
            Coded(
                self.column.raw,
                where,
                tuple(known),
                values[:, j],
                None if missing is None else float(missing[j]),
                None if unknown is None else float(unknown[j]),
                tuple(level for level in known if level in stand_ins),
                self.column.missing_as if missing_as is NOTHING else missing_as,
                self.are_objects,
            )
            for j in range(width)
        ]


def none_of(levels: Sequence[Any]) -> Any:
    """Return something of the same type that is none of the levels."""
    numbers = [k for k in levels if isinstance(k, (int, float)) and not isinstance(k, bool)]
    if numbers and len(numbers) == len(levels):
        return float(max(numbers)) + 1.0 + abs(float(max(numbers)))
    return "(a level that nobody has)"


def _coder(width: Callable[[Any, int], int]) -> Reader:
    """Make the reader of an encoder from the number of columns that its k-th becomes."""

    def read(step: Any, columns: list[EncodedColumn], where: str) -> list[EncodedColumn]:
        levels = [np.asarray(kept, dtype=object).tolist() for kept in step.categories_]
        others = [kept[0] for kept in levels]
        raw = {
            k: _levels(step, column, levels[k], where, step.categories_[k].dtype == object)
            for k, column in enumerate(columns)
            if isinstance(column, Affine)
        }
        asked = ask_all(step, {k: some.questions for k, some in raw.items()}, others)
        result: list[EncodedColumn] = []
        for k, column in enumerate(columns):
            place = slice(len(result), len(result) + width(step, k))
            if k in raw:
                result += raw[k].coded(cut(asked[k], place), step, where)
            elif isinstance(column, Bent):
                result += _recoded(step, k, column, place, others, where)
            else:
                result += push(step, columns, k, place, where, others)
        return result

    return read


def _levels(step: Any, column: Affine, levels: list[Any], where: str, are_objects: bool) -> Levels:
    """Read the levels of one column; a missing value is no level that anybody could choose."""
    name = type(step).__name__
    if not column.untouched:
        raise ValueError(f"{where}: {name} reads a column that a step before it changed")
    gone = [level for level in levels if is_missing(level)]
    if len(gone) > 1:
        raise ValueError(
            f"{where}: {name} distinguishes {' from '.join(map(repr, gone))}, which both stand "
            "for a missing value; give it only one of them"
        )
    known = [level for level in levels if not is_missing(level)]
    refuses = getattr(step, "handle_unknown", "") == "error"
    missing_as = gone[0] if gone else NOTHING if refuses else math.nan
    unknown_as = NOTHING if refuses else none_of(known)
    return Levels(column, known, missing_as, unknown_as, are_objects=are_objects)


def _recoded(
    step: Any, k: int, column: Bent, place: slice, others: Sequence[Any], where: str
) -> list[EncodedColumn]:
    """Read bins that are coded once more."""
    if not column.is_flat:
        name = type(step).__name__
        raise ValueError(f"{where}: {name} reads a column that a step before it changed")
    gone = cut(ask(step, [math.nan], k, others), place)[0]
    takes = gone is not None and bool(np.isfinite(gone).all())
    return [bend(column, where, Outline(), takes_missing=takes)] * (place.stop - place.start)


def _one_hot(step: Any, k: int) -> int:
    width = len(step.categories_[k])
    rare = getattr(step, "infrequent_categories_", None)
    if rare is not None and rare[k] is not None:
        width += 1 - len(rare[k])
    dropped = None if step.drop_idx_ is None else step.drop_idx_[k]
    return width - (dropped is not None)


def _target(step: Any, k: int) -> int:
    return len(step.classes_) if step.target_type_ == "multiclass" else 1


READERS: dict[str, Reader] = {
    "OneHotEncoder": _coder(_one_hot),
    "OrdinalEncoder": _coder(lambda step, k: 1),
    "TargetEncoder": _coder(_target),
}
