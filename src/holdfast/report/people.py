"""A recourse file, a batch at a time: one entry for each person, sorted by what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.evaluate.scores import worst_case_score
from holdfast.files.people import PeopleColumns
from holdfast.files.recourse import RecourseFile, manifest_of
from holdfast.machinery.numbers import Floats
from holdfast.models.base import reaches_cutoff
from holdfast.models.encoding import Encoding
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend import RobustRecourse

BEFORE, AFTER = "person.", "recourse."


def inputs_of(file: RecourseFile) -> list[Path]:
    """List a recourse file, its manifest and what the run read: nothing may be written there."""
    job = file.job
    return [file.path, manifest_of(file.path), *map(Path, (job.model, job.people, job.actions))]


class Lot(NamedTuple):
    """Some people: the row of each that holds their first option, or says that there is none."""

    table: pa.Table
    is_approved: NDArray[np.bool_]
    is_refused: NDArray[np.bool_]  # by today's model
    is_helped: NDArray[np.bool_]  # refused, and advised to something that today's model approves
    is_lost: NDArray[np.bool_]  # refused, and it was found out that nothing gives the guarantee
    status: NDArray[np.object_]

    def take(self, which: NDArray[np.bool_]) -> pa.Table:
        """Return the rows of some of them."""
        return self.table.filter(pa.array(which))


@dataclass(frozen=True, eq=False)
class Basis:
    """What advice rests on, and how people are read for it.

    Attributes
    ----------
    recourse : RobustRecourse
        That gives the advice.
    encoding : Encoding
        Of today's model.
    even : float
        The probability from which on today's model approves; NaN if it gives none.
    columns : PeopleColumns
        What is read of each person.
    """

    recourse: RobustRecourse
    encoding: Encoding
    even: float
    columns: PeopleColumns

    def reading(self, *, are_texts: bool) -> Self:
        """Return it for another table, in which cells may be texts that stand for something."""
        return replace(self, columns=replace(self.columns, are_texts=are_texts))

    def frame(self, table: pa.Table, prefix: str = "") -> pd.DataFrame:
        """Return people as the model reads them, by row number."""
        names = [name for name in self.columns.levels if prefix + name in table.column_names]
        plain = table.select([prefix + name for name in names]).rename_columns(names)
        return self.columns.frame(plain).set_axis(table["row"].to_pylist(), axis=0)

    @property
    def guarantee(self) -> float | None:
        """The probability that was guaranteed, also where points were; None where none was."""
        asked = self.recourse
        if asked.guarantee_points is None or asked.points is None:
            return asked.guarantee
        loss = self.encoding.model.choose_loss(asked.loss)
        return float(loss.probability(asked.points.score(loss, asked.guarantee_points)))

    def are_firm(self, people: pa.Table) -> NDArray[np.bool_]:
        """Say whom every model of the set approves as they are."""
        points = self.encoding.encode(self.frame(people, BEFORE))
        worst = worst_case_score(self.encoding.model, points, self.recourse.robust_to)
        return reaches_cutoff(self.encoding.model, worst)

    def complaints(self, names: list[str]) -> list[str]:
        """List what is wrong with a table of other people, from the names of its columns."""
        return [f"it has no column {name!r}" for name in self.encoding.names if name not in names]


def basis_of(recourse: RobustRecourse) -> Basis:
    """Look at the model of an estimator."""
    encoding = Encoding.of(recourse.model, favorable_class=recourse.favorable_class)
    loss = encoding.model.choose_loss(recourse.loss)
    even = float(loss.probability(encoding.model.cutoff))
    return Basis(recourse, encoding, even, PeopleColumns.of(encoding, recourse.actions))


@dataclass(frozen=True, eq=False)
class Source(Basis):
    """A recourse file, with what it takes to read it.

    Attributes
    ----------
    file : RecourseFile
    """

    file: RecourseFile

    @classmethod
    def of(cls, file: RecourseFile) -> Source:
        """Read the model and the action set of a file."""
        basis = basis_of(file.recourse())
        return cls(basis.recourse, basis.encoding, basis.even, basis.columns, file)

    @property
    def keys(self) -> list[str]:
        """The key columns."""
        return list(self.file.keys)

    def batches(self, *columns: str) -> Iterator[pa.Table]:
        """Give some columns, and those of all features, a batch at a time."""
        told = dict.fromkeys(["row", *self.keys, "option", "status", "approved", *columns])
        features = [prefix + name for prefix in (BEFORE, AFTER) for name in self.file.features]
        for batch in self.file.batches([*told, *features]):
            yield pa.Table.from_batches([batch])


def sort_people(table: pa.Table, even: float) -> Lot:
    """Sort the people of a batch."""
    table = table.filter(pc.less_equal(table["option"], 1))
    is_approved, is_refused = are_approved_as_they_are(table), are_refused(table)
    status = texts(table["status"])
    helped = are_helped(numbers(table["option"]), status, numbers(table["current_validity"]), even)
    lost = is_refused & (status == Status.INFEASIBLE)
    return Lot(table, is_approved, is_refused, is_refused & helped, lost, status)


def are_approved_as_they_are(table: pa.Table) -> NDArray[np.bool_]:
    """Say whom today's model approves as they are."""
    return np.asarray(pc.fill_null(table["approved"], False))


def are_refused(table: pa.Table) -> NDArray[np.bool_]:
    """Say whom today's model refuses as they are; rows that cannot be used are not refused."""
    return np.asarray(pc.invert(pc.fill_null(table["approved"], True)))


def are_helped(
    option: Floats, status: NDArray[np.object_], validity: Floats, even: float
) -> NDArray[np.bool_]:
    """Say which refused people have advice that today's model approves."""
    with np.errstate(invalid="ignore"):  # where there are no probabilities, the status says it
        still = (status == Status.STILL_REFUSED) | (validity < even)
    return np.asarray((option >= 1) & ~still)


def numbers(column: Any) -> Floats:
    """Return a column as floats, NaN where it is null."""
    floats = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(floats, dtype=np.float64)


def texts(column: Any) -> NDArray[np.object_]:
    """Return a column as Python texts."""
    found = np.empty(len(column), dtype=object)
    found[:] = column.to_pylist()
    return found


def features_of(table: pa.Table, prefix: str) -> list[str]:
    """Name the features that a table has columns of."""
    return [name[len(prefix) :] for name in table.column_names if name.startswith(prefix)]


def whole_people(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Give the rows of a file such that all options of a person come together."""
    waiting: pa.Table | None = None
    for table in batches:
        if waiting is not None:
            table = pa.concat_tables([waiting, table])
        if not len(table):
            continue
        rows = table["row"].to_numpy()
        begin = int(np.searchsorted(rows, rows[-1]))  # rows rise
        if begin:
            yield table.slice(0, begin)
        waiting = table.slice(begin)
    if waiting is not None and len(waiting):
        yield waiting


class Sample:
    """Some people at random, the same ones in whatever batches they come."""

    def __init__(self, size: int) -> None:
        self.size, self._parts, self._held = size, list[pa.Table](), 0

    def add(self, table: pa.Table) -> None:
        """Show it some people."""
        if len(table):
            self._parts.append(table)
            self._held += len(table)
        if self._held > 2 * self.size:
            self._shrink()

    def _shrink(self) -> None:
        table = pa.concat_tables(self._parts)
        rank = scattered(table["row"].to_numpy())
        keep = np.sort(np.argsort(rank, kind="stable")[: self.size])
        self._parts, self._held = [table.take(pa.array(keep))], len(keep)

    def table(self) -> pa.Table | None:
        """Return those who were drawn, in the order of the file; None where there is nobody."""
        if not self._parts:
            return None
        self._shrink()
        return self._parts[0]


def scattered(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Give each row number a number that looks random, and is no other row's (splitmix64)."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


class Foremost:
    """The few people with the largest values of something; of equal ones, the first in the file."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._table: pa.Table | None = None
        self._values = np.empty(0)

    def add(self, table: pa.Table, values: Floats) -> None:
        """Show it some people, and their values; NaN is the least."""
        if not len(table):
            return
        if self._table is not None:
            table = pa.concat_tables([self._table, table])
        values = np.concatenate([self._values, np.nan_to_num(values, nan=-np.inf)])
        best = np.argsort(-values, kind="stable")[: self.size]
        self._table, self._values = table.take(pa.array(best)), values[best]

    def table(self) -> pa.Table | None:
        """Return them, the largest first; None where there is nobody."""
        return self._table
