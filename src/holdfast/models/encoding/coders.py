"""Encoders of categories: they are asked for the codes of all their levels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.asking import ask, push
from holdfast.models.encoding.bends import Reader
from holdfast.models.encoding.columns import Affine, Bent, Coded, Column, Flag, bend

NO_LEVEL = "(a level that nobody has)"


@dataclass(frozen=True)
class Codes:
    """How to ask a step for the codes of the levels in its k-th column, in columns `place`."""

    step: Any
    k: int
    others: Sequence[Any]
    place: slice

    def of(self, level: Any) -> Floats | None:
        """Return the codes of one level; None if the step refuses it."""
        return self.of_all([level])[0]

    def of_all(self, levels: Sequence[Any]) -> list[Floats | None]:
        """Return the codes of each level."""
        rows = ask(self.step, levels, self.k, self.others) if levels else []
        return [None if row is None else row[self.place] for row in rows]


def coded(
    column: Affine,
    levels: Sequence[Any],
    codes: Codes,
    where: str,
    *,
    missing_as: Any = math.nan,
    takes_missing: bool = True,
    takes_unknown: bool = True,
    specials: Sequence[Any] = (),
) -> list[Column]:
    """Return the columns of a category: the codes of its levels, as the step says itself.

    What it makes of a missing or an unknown level it is asked as well, if it may take one.
    """
    read_as = dict(column.codes)  # codes for what is missing; a step before reads them as others
    plain = [level for level in levels if level not in read_as]
    rows = dict(zip(plain, codes.of_all(plain), strict=True))
    rows |= {code: codes.of(level) for code, level in read_as.items()}
    rows |= {code: codes.of(code) for code in specials if code not in read_as}
    known = {level: row for level, row in rows.items() if row is not None}
    lost = [level for level in plain if level not in known]
    if lost:
        raise ValueError(f"{where}: {type(codes.step).__name__} refuses its level {lost[0]!r}")
    missing = unknown = None
    if column.fill is not None:
        missing = codes.of(column.fill)
    elif takes_missing and not column.refuses_missing:
        missing = codes.of(missing_as)
    if takes_unknown:
        unknown = codes.of(_unknown(levels))
    values = np.array(list(known.values()), dtype=np.float64)
    marked = tuple(level for level in known if level in read_as or level in specials)
    return [
        Coded(
            column.raw,
            where,
            tuple(known),
            values[:, j],
            None if missing is None else float(missing[j]),
            None if unknown is None else float(unknown[j]),
            marked,
        )
        for j in range(values.shape[1])
    ]


def is_gone(level: Any) -> bool:
    """Whether a level stands for a missing value: None, NaN or pandas' NA."""
    return level is None or type(level).__name__ in ("NAType", "NaTType") or level != level


def _unknown(levels: Sequence[Any]) -> Any:
    """Return something of the same type that is none of the levels."""
    numbers = [k for k in levels if isinstance(k, (int, float)) and not isinstance(k, bool)]
    if numbers and len(numbers) == len(levels):
        return float(max(numbers)) + 1.0 + abs(float(max(numbers)))
    return NO_LEVEL


def _coder(width: Callable[[Any, int], int]) -> Reader:
    """Make the reader of an encoder from the number of columns that its k-th becomes."""

    def read(step: Any, columns: list[Column], where: str) -> list[Column]:
        levels = [np.asarray(kept, dtype=object).tolist() for kept in step.categories_]
        others = [kept[0] for kept in levels]
        result: list[Column] = []
        for k, column in enumerate(columns):
            place = slice(len(result), len(result) + width(step, k))
            codes = Codes(step, k, others, place)
            if isinstance(column, (Coded, Flag)):
                result += push(step, columns, k, place, where, others)
            elif isinstance(column, Bent) and column.is_flat:  # bins that are coded once more
                gone = codes.of(math.nan)
                takes = gone is not None and bool(np.isfinite(gone).all())
                many = place.stop - place.start
                result += [bend(column, where, takes_missing=takes)] * many
            elif isinstance(column, Affine) and column.untouched:
                result += _coded(step, column, levels[k], codes, where)
            else:
                raise ValueError(
                    f"{where}: {type(step).__name__} reads a column that a step before it changed"
                )
        return result

    return read


def _coded(step: Any, column: Affine, levels: list[Any], codes: Codes, where: str) -> list[Column]:
    """Read the codes of one column; a missing value is no level that anybody could choose."""
    gone = [level for level in levels if is_gone(level)]
    if len(gone) > 1:
        raise ValueError(
            f"{where}: {type(step).__name__} tells {' from '.join(map(repr, gone))}, which both "
            "stand for a missing value; give it one of them only"
        )
    refuses = getattr(step, "handle_unknown", "") == "error"
    return coded(
        column,
        [level for level in levels if not is_gone(level)],
        codes,
        where,
        missing_as=gone[0] if gone else math.nan,
        takes_missing=bool(gone) or not refuses,
        takes_unknown=not refuses,
    )


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
