"""The row function: people in, as Arrow; what each of them should change out, as Arrow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.files.people import PeopleColumns, complaints_of
from holdfast.files.tables import COMPLAINT
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import read_numbers
from holdfast.result.columns import POINTS, PROVEN, VALIDITIES
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from holdfast.recommend import Recommendations, RobustRecourse

SAMPLE = 1000  # of the first rows, by which a table as a whole is judged
# What is said of each person and option, beside keys and features.
TOLD = ("row", "option", "status", "reason", "approved", "changes", *PROVEN, *VALIDITIES, *POINTS)
_PEOPLE = 16_384  # at a time


@dataclass(frozen=True, eq=False)
class RowFunction:
    """Advises people whatever engine brings them; the same rows give the same answers, to the bit.

    Parameters
    ----------
    recourse : RobustRecourse
    columns : PeopleColumns
        What is read of each person.
    schema : pyarrow.Schema
        Of the tables that it is given.
    keys : tuple of str
        Columns that go through as they are.
    """

    recourse: RobustRecourse
    columns: PeopleColumns
    schema: pa.Schema
    keys: tuple[str, ...] = ()

    @property
    def wanted(self) -> list[str]:
        """The columns that must be given."""
        return list(dict.fromkeys([*self.keys, *self.columns.levels]))

    @property
    def out_schema(self) -> pa.Schema:
        """Of the tables that come back."""
        import pyarrow as pa

        kinds = {name: self._kind(name) for name in self.columns.levels}
        scored = VALIDITIES + (POINTS if self.recourse.points is not None else ())
        return pa.schema(
            [
                ("row", pa.int64()),
                *((key, self.schema.field(key).type) for key in self.keys),
                ("option", pa.int32()),
                ("status", pa.string()),
                ("reason", pa.string()),
                ("approved", pa.bool_()),
                ("changes", pa.string()),
                *((name, pa.float64()) for name in (*PROVEN, *scored)),
                *((f"person.{name}", kind) for name, kind in kinds.items()),
                *((f"recourse.{name}", kind) for name, kind in kinds.items()),
            ]
        )

    def _kind(self, name: str) -> Any:
        import pyarrow as pa

        levels = self.columns.levels[name]
        if levels is None:
            return pa.float64()
        if levels:
            kinds = {type(level) for level in levels}
            plain = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
            return plain.get(kinds.pop(), pa.string()) if len(kinds) == 1 else pa.string()
        return self.schema.field(name).type  # the model does not feel it: it goes through

    def __call__(self, table: pa.Table, first: int = 0) -> pa.Table:
        """Advise people; `first` is the position of the first of them among all."""
        import pyarrow as pa

        parts = [
            self._advise(table.slice(begin, _PEOPLE), first + begin)
            for begin in range(0, table.num_rows, _PEOPLE)
        ]
        return pa.concat_tables(parts) if parts else self.out_schema.empty_table()

    def _advise(self, table: pa.Table, first: int) -> pa.Table:
        """Advise not too many people at a time."""
        import pyarrow as pa

        people, why = self.columns.frame(table), complaints_of(table)
        usable = np.array([each is None for each in why], dtype=bool)
        result = self.recourse.recommend(people if usable.all() else people[usable])
        found = self._with_unread(_told(result), usable, why)
        places = found.index.to_numpy()
        out: dict[str, Any] = {"row": pa.array(places + first, pa.int64())}
        order = pa.array(places)
        for key in self.keys:
            out[key] = table[key].take(order)
        for field in self.out_schema:
            if field.name not in out:
                out[field.name] = self._column(field, table, people, found)
        return pa.table(out, schema=self.out_schema)

    def _column(self, field: pa.Field, table: pa.Table, people: Any, found: pd.DataFrame) -> Any:
        """Return one column of what is told; what the model does not feel is as it was given."""
        import pyarrow as pa

        when, _, name = field.name.partition(".")
        order = found.index.to_numpy()
        if when not in ("person", "recourse"):
            return _array(found[field.name], field.type)
        if self.columns.levels[name] == ():
            nobody = (found["option"] == 0).to_numpy(dtype=bool) & (when == "recourse")
            return table[name].take(pa.array(order, mask=nobody))
        if when == "person":
            return _array(people[name], field.type).take(pa.array(order))
        return _array(found[field.name], field.type)

    def _with_unread(
        self, found: pd.DataFrame, usable: np.ndarray[Any, Any], why: list[str | None]
    ) -> pd.DataFrame:
        """Add those whose rows could not even be read from their file, in their places."""
        import pandas as pd

        lost = np.flatnonzero(~usable)
        if not lost.size:
            return found
        status = str(Status.INVALID_INPUT)
        rows = {"option": 0, "status": status, "reason": [why[k] for k in lost], "changes": ""}
        unread = pd.DataFrame(rows, index=lost).reindex(columns=found.columns)
        unread["approved"] = None
        joined = pd.concat([found.astype(object), unread.astype(object)])
        return joined.sort_index(kind="stable")


def _told(result: Recommendations) -> pd.DataFrame:
    """Return what became of each person, by position, with the reason in words."""
    frame = result.to_frame()
    sentences = {str(status): status.sentence for status in Status}
    reasons = frame["status"].map(sentences).to_numpy(dtype=object)
    for k in np.flatnonzero(frame["status"] == str(Status.INVALID_INPUT)):
        reasons[k] = result.why_refused(frame.index[int(k)])
    frame["reason"] = reasons
    return frame


def _array(column: pd.Series[Any], kind: Any) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return pa.array(read_numbers(column), kind, from_pandas=True)
    values = column.to_numpy()
    if not pa.types.is_integer(kind):  # Arrow would cut off the rest of a whole number
        with contextlib.suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(values, kind, from_pandas=True)  # nearly always, all are right
    make = str if pa.types.is_string(kind) else bool if pa.types.is_boolean(kind) else int
    return pa.array([_if_it_is(value, make) for value in values.tolist()], kind)


def _if_it_is(value: Any, make: Callable[[Any], Any]) -> Any:
    """Return a text, a whole number or a truth; None for what is none."""
    if value is None or value != value:
        return None
    if make is str:
        return str(value)
    whole = None if isinstance(value, str) else make(value)
    return whole if whole == value else None


def columns_of(recourse: RobustRecourse, *, are_texts: bool = False) -> PeopleColumns:
    """Return what is read of each person; refuse a network, for which only Python gives advice."""
    encoding = Encoding.of(recourse.model, favorable_class=recourse.favorable_class)
    if encoding.model.kind == "network":
        raise ValueError(
            "the classifier is a network, but files, clusters and the page need a linear one; "
            "for a network, call RobustRecourse(...).recommend(people) in Python"
        )
    return PeopleColumns.of(encoding, recourse.actions, are_texts=are_texts)


def fit_rows(rows: RowFunction, names: list[str], sample: pa.Table, where: str) -> None:
    """Refuse a table that does not fit, judged by its names and first rows; all that is wrong."""
    wrong = rows.columns.complaints(names, sample) + check_keys(rows.keys, names)
    if wrong:
        listed = "\n".join(f"  {each}" for each in wrong)
        raise ValueError(f"{where} does not fit the model or the keys:\n{listed}")
    empty = rows.columns.frame(rows.schema.empty_table())
    rows.recourse.recommend(empty)  # refuses what cannot be asked


def check_keys(keys: tuple[str, ...], names: list[str]) -> list[str]:
    """List what is wrong with the names of key columns."""
    found = [f"there is no column {key!r} to be a key" for key in keys if key not in names]
    for key in keys:
        if key in TOLD or key == COMPLAINT or key.startswith(("person.", "recourse.")):
            found.append(f"the key {key!r} has the same name as a column of the output; rename it")
        if keys.count(key) > 1:
            found.append(f"the key {key!r} is given twice")
    return list(dict.fromkeys(found))
