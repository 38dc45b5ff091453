"""People in a table file, as a model reads them: numbers in double precision, its own levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.files.tables import PROBLEM, nullified, parse_numbers
from holdfast.models.encoding import Category, Encoding

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from holdfast.actions import ActionSet

# A file is refused where not one of at least so many values of a column is what it should be.
_ENOUGH = 10
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns that are read of each person, with the levels of those that have levels.

    Attributes
    ----------
    levels : dict
        For each column, by name: its levels, or None for numbers.
    """

    levels: dict[str, tuple[Any, ...] | None]

    @classmethod
    def of(cls, encoding: Encoding, actions: ActionSet) -> Columns:
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
        return cls(levels)

    def problems(self, names: list[str], sample: pa.Table) -> list[str]:
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
            return [f"column {name!r} holds {kind}; numbers or texts were expected"]
        values = [value for value in self.column(name, cells).tolist() if value == value]
        values = [value for value in values if value is not None]
        if len(values) < _ENOUGH:
            return []
        if levels is None:
            good = any(not isinstance(value, str) for value in values)
            expected = "none is a number"
        else:
            good = any(value in levels for value in values)
            expected = f"none is one of the model's: {', '.join(map(repr, levels[:6]))}"
        return [] if good else [f"column {name!r} holds {values[0]!r} and others; {expected}"]

    def frame(self, table: pa.Table) -> pd.DataFrame:
        """Return people as the model takes them; what is no number stays the text that it is."""
        import pandas as pd

        return pd.DataFrame({name: self.column(name, table[name]) for name in self.levels})

    def column(self, name: str, cells: Any) -> Any:
        """Return one column, typed as the model knows it."""
        import pyarrow as pa

        levels = self.levels[name]
        if pa.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        if pa.types.is_null(cells.type):
            return np.full(len(cells), np.nan) if levels is None else _objects(cells.to_pylist())
        if levels is None or (levels == () and not _is_text(cells.type)):
            return _numbers(cells)
        if levels == ():  # the model does not feel it, whatever it is
            numbers = parse_numbers(cells)
            return _objects(cells.to_pylist()) if numbers is None else _floats(numbers)
        if _is_text(cells.type):
            return _objects(_as_levels(cells, levels))
        return _objects(cells.to_pylist())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return any(is_it(kind) for is_it in (pa.types.is_string, pa.types.is_large_string))


def _numbers(cells: Any) -> Any:
    import pyarrow as pa

    if not _is_text(cells.type):
        return _floats(cells.cast(pa.float64(), safe=False))
    numbers = parse_numbers(cells)
    if numbers is not None:
        return _floats(numbers)
    return _objects([_number(text) for text in nullified(cells).to_pylist()])


def _number(text: str | None) -> float | str:
    import pyarrow as pa

    if text is None:
        return float("nan")
    parsed = parse_numbers(pa.array([text]))
    return text if parsed is None else float(parsed[0].as_py())


def _as_levels(cells: Any, levels: tuple[Any, ...]) -> list[Any]:
    """Return texts as the levels that they stand for; a known level is never a missing value."""
    known: dict[str, Any] = {}
    for level in levels:
        known[str(level)] = level
        if isinstance(level, bool):
            known |= {text: level for text, truth in _TRUTHS.items() if truth is level}
    whole = cells.combine_chunks() if hasattr(cells, "chunks") else cells
    encoded = whole.dictionary_encode()
    missing = nullified(encoded.dictionary).to_pylist()
    read = []
    for text, trimmed in zip(encoded.dictionary.to_pylist(), missing, strict=True):
        read.append(known.get(text, known.get((text or "").strip(), _level(trimmed, levels))))
    values = np.empty(len(read) + 1, dtype=object)
    values[:-1], values[-1] = read, None
    places = encoded.indices.to_numpy(zero_copy_only=False)
    if places.dtype.kind == "f":  # of what is null
        places = np.where(np.isnan(places), len(read), places).astype(np.int64)
    listed: list[Any] = values[places].tolist()
    return listed


def _level(text: str | None, levels: tuple[Any, ...]) -> Any:
    """Return the level of the same number: 1.0 in the file may be the level 1."""
    if text is None or any(isinstance(level, (str, bool)) for level in levels):
        return text
    number = _number(text)
    return next((level for level in levels if level == number), number)


def _floats(cells: Any) -> Any:
    return np.asarray(cells.to_numpy(), dtype=np.float64)


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def problems_of(table: pa.Table) -> list[str | None]:
    """Return why rows could not be read from their file, where that is so."""
    if PROBLEM not in table.column_names:
        return [None] * table.num_rows
    return list(table[PROBLEM].to_pylist())
