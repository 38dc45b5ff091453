"""People in a table file, as a model reads them: numbers in double precision, its own levels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.files.tables import COMPLAINT, MISSING, nullified, parse_numbers, without_decimals
from holdfast.machinery.numbers import objects_of
from holdfast.models.encoding import Category, Encoding
from holdfast.models.encoding.reading import is_missing, plain

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from holdfast.actions import ActionSet

# A file is refused where not one of at least so many values of a column is what it should be.
_ENOUGH = 10
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False)
class PeopleColumns:
    """The columns that are read of each person, with the levels of those that have levels.

    Attributes
    ----------
    levels : dict
        For each column, by name: its levels; None for numbers; () where the model does not feel
        it, whatever it is.
    are_texts : bool
        Whether cells are texts that stand for something else, as in a CSV file: numbers, levels,
        or nothing. A text in a typed table is a text.
    """

    levels: dict[str, tuple[Any, ...] | None]
    are_texts: bool = False

    @classmethod
    def of(
        cls, encoding: Encoding, actions: ActionSet, *, are_texts: bool = False
    ) -> PeopleColumns:
        """Take all that the model reads, and all that something of it is derived from."""
        if not encoding.is_named:
            some = ", ".join(encoding.names[:3])
            raise ValueError(
                "the model does not know its columns by name; fit it on a data frame whose columns "
                f"are those of the table (it calls them {some}, ...)"
            )
        levels: dict[str, tuple[Any, ...] | None] = {}
        derived = [name for each in actions.derived for name in (each.feature, *each.parents)]
        for name in dict.fromkeys([*encoding.names, *derived]):
            part = encoding.features.get(name)
            if isinstance(part, Category):
                levels[name] = part.levels
            elif part is not None:
                levels[name] = None
            else:  # the model does not feel it; something may be derived from it
                levels[name] = getattr(actions[name], "levels", None) if name in derived else ()
        return cls(levels, are_texts)

    def complaints(self, names: list[str], sample: pa.Table) -> list[str]:
        """List all that is wrong with a file as a whole, from its names and its first rows."""
        found = [f"there is no column {name!r}" for name in self.levels if name not in names]
        for name in self.levels:
            if name in sample.column_names:
                found += self._wrong_throughout(name, sample[name])
        return found

    def _wrong_throughout(self, name: str, cells: Any) -> list[str]:
        import pyarrow as pa

        levels, kind = self.levels[name], cells.type
        if levels == () or pa.types.is_null(kind):
            return []
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        plain = pa.types.is_primitive(kind) and not pa.types.is_temporal(kind)
        if not (plain or _is_text(kind) or pa.types.is_decimal(kind)):
            return [f"column {name!r} holds {kind}; numbers or strings were expected"]
        values = [value for value in self.column(name, cells).tolist() if value == value]
        values = [value for value in values if value is not None]
        if len(values) < _ENOUGH:
            return []
        if levels is None:
            good = any(not isinstance(value, str) for value in values)
            expected = "none of them is a number" + _hint(values[0])
        else:
            good = any(value in levels for value in values)
            expected = f"none of them is one of the model's: {', '.join(map(repr, levels[:6]))}"
        return [] if good else [f"column {name!r} holds {values[0]!r} and other values; {expected}"]

    def frame(self, table: pa.Table) -> pd.DataFrame:
        """Return people as the model takes them; what is no number stays the text that it is."""
        import pandas as pd

        return pd.DataFrame({name: self.column(name, table[name]) for name in self.levels})

    def column(self, name: str, cells: Any) -> Any:
        """Return one column, typed as the model knows it."""
        import pyarrow as pa

        levels = self.levels[name]
        if levels == ():
            return self._unfelt(cells)
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if _is_text(cells.type):
            cells = cells.cast(pa.string())
            if self.are_texts:
                return _parsed(cells) if levels is None else _as_levels(cells, levels)
            return objects_of(cells.to_pylist())
        return _numbers(cells) if levels is None else objects_of(cells.to_pylist())

    def _unfelt(self, cells: Any) -> Any:
        """Return what the classifier does not read, though steps before it may see it."""
        import pyarrow as pa

        if pa.types.is_nested(cells.type):
            return np.full(len(cells), np.nan)
        if self.are_texts and _is_text(cells.type):
            numbers = parse_numbers(cells)
            cells = cells if numbers is None else numbers
        return cells.to_pandas().to_numpy()


def _hint(value: Any) -> str:
    """Say what is the matter with a number that is written as in some countries."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[\d.]*,\d+", value.strip()):
        return "; write decimal numbers with a point"
    return ""


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_it(kind) for is_it in kinds)


def _numbers(cells: Any) -> Any:
    """Return numbers in double precision; those in single precision as they are, to be shown so."""
    import pyarrow as pa

    if pa.types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    if pa.types.is_float32(cells.type):
        return np.asarray(cells.to_numpy())
    cells = without_decimals(cells)
    return np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _parsed(cells: Any) -> Any:
    """Return texts as the numbers that they stand for; what is no number stays a text."""
    numbers = parse_numbers(cells)
    if numbers is not None:
        return np.asarray(numbers.to_numpy(), dtype=np.float64)
    return _translated(cells, _number)


def _number(text: str, trimmed: str | None) -> Any:
    import pyarrow as pa

    if trimmed is None:
        return float("nan")
    parsed = parse_numbers(pa.array([trimmed]))
    return trimmed if parsed is None else float(parsed[0].as_py())


def _as_levels(cells: Any, levels: tuple[Any, ...]) -> Any:
    """Return texts as the levels that they stand for; a known level is never a missing value."""
    known = {str(level): level for level in levels}

    def read(text: str, trimmed: str | None) -> Any:
        return known.get(text, known.get(text.strip(), _level(trimmed, levels)))

    return _translated(cells, read)


def _translated(cells: Any, read: Callable[[str, str | None], Any]) -> Any:
    """Translate texts, each of them once, however often it is there; what is null stays so."""
    whole = cells.combine_chunks() if hasattr(cells, "chunks") else cells
    encoded = whole.dictionary_encode()
    texts = encoded.dictionary
    trimmed = nullified(texts).to_pylist()
    values = np.empty(len(texts) + 1, dtype=object)
    for k, pair in enumerate(zip(texts.to_pylist(), trimmed, strict=True)):
        values[k] = read(*pair)
    places = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return values[places.astype(np.int64)]


def _level(text: str | None, levels: tuple[Any, ...]) -> Any:
    """Return the level of the same number: 1.0 in the file may be the level 1."""
    if text is None or any(isinstance(level, str) for level in levels):
        return text
    if all(isinstance(level, bool) for level in levels):
        return _TRUTHS.get(text.lower(), text)
    number = _number(text, text)
    return next((level for level in levels if level == number), number)


def complaints_of(table: pa.Table) -> list[str | None]:
    """Return why rows could not be read from their file, where that is so."""
    if COMPLAINT not in table.column_names:
        return [None] * table.num_rows
    return list(table[COMPLAINT].to_pylist())


def text_of(value: Any, levels: tuple[Any, ...] | None) -> str:
    """Return the shortest text that `PeopleColumns` of texts read back to the very same value.

    Parameters
    ----------
    value : object
        As `PeopleColumns.frame` gives it.
    levels : tuple or None
        Of its column, as in `PeopleColumns.levels`.

    Examples
    --------
    >>> text_of(48.0, None), text_of(0.1, None), text_of(None, None)
    ('48', '0.1', '')
    >>> text_of(1.0, (0, 1)), text_of(True, (False, True)), text_of(None, ("", "own"))
    ('1', 'True', 'N/A')
    """
    value = plain(value)
    if is_missing(value):
        known = {str(level) for level in levels or ()}
        return next((text for text in sorted(MISSING) if text not in known), "")
    if levels:
        return str(next((level for level in levels if level == value), value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value)).removesuffix(".0")
    return str(value)
