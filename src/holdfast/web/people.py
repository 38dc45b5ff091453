"""The people of a table: read once, advised in the background, listed, put into a form."""

from __future__ import annotations

import functools
import json
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.engines.local import run_job
from holdfast.engines.rows import RowFunction
from holdfast.files.jobs import Job
from holdfast.files.people import text_of
from holdfast.files.recourse import RecourseFile
from holdfast.files.tables import COMPLAINT, Blocks, TableFile
from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.stops import StoppedError
from holdfast.machinery.threads import thread_count
from holdfast.report.groups import MOST_GROUPS
from holdfast.report.people import basis_of, numbers, sort_people
from holdfast.result.status import Status

MOST_PEOPLE = 2_000_000
SORTS = ("row", "cost", "-cost", "status")
_ROWS = 32_768  # read and kept at a time
_KEPT = 16  # searches whose outcome is kept, for the next page of it
_PATIENCE = 5.0  # seconds that a run gets to stop
_TOLD = ("row", "option", "status", "approved", "cost", "changes")
_GIVEN = ("initial_validity", "initial_points")


class RunState(StrEnum):
    """How far the run over the people is."""

    WAITING = "waiting"  # the table is being read
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True)
class RunProgress:
    """How far the run over the people is.

    Attributes
    ----------
    state : RunState
    done : int
        People who have been advised.
    total : int or None
        None while the table is being read.
    reason : str
        Why it failed, in words; empty if it did not.
    """

    state: RunState
    done: int = 0
    total: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class Listed:
    """A person of the list.

    Attributes
    ----------
    row : int
        From 0.
    keys : dict of str
        Key columns, as they are written.
    status : Status or None
        None before the run is finished.
    approved : bool or None
        Whether today's model approves them as they are; None if it is not known.
    is_helped : bool
        Whether they are refused, and today's model approves what they are advised to do.
    changes : str
        What to change; empty where there is nothing, or no way.
    cost : float
        NaN where there is none.
    initial_validity : float
        The probability that today's model gives; NaN if not known.
    initial_points : float
        The same on the scale of points; NaN without one.
    """

    row: int
    keys: dict[str, str]
    status: Status | None = None
    approved: bool | None = None
    is_helped: bool = False
    changes: str = ""
    cost: float = float("nan")
    initial_validity: float = float("nan")
    initial_points: float = float("nan")


@dataclass(frozen=True)
class ListPage:
    """A page of the list.

    Attributes
    ----------
    people : list of Listed
    number, pages : int
        Which page it is, from 1, and how many there are: at least one.
    found, total : int
        How many people the search found, and how many there are.
    sort, search : str
        As they were asked for.
    """

    people: list[Listed]
    number: int
    pages: int
    found: int
    total: int
    sort: str
    search: str


class _PeopleAdvice(NamedTuple):
    """What the run says of each person, by row; one entry for each."""

    table: pa.Table
    is_helped: NDArray[np.bool_]


class _ClosedError(Exception):
    """The run is not wanted any more."""


class People:
    """The people of a table; a run in the background advises all of them.

    Parameters
    ----------
    job : Job
        What is asked; its `out` is not used.
    rows : RowFunction
        Of the job.
    table : TableFile
        The people of the job.
    expected : dict, optional
        Checksums of files that must be as they were.

    Examples
    --------
    `close` stops the run, and deletes all that it has written:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from holdfast.demo.files import write_demo
    >>> from holdfast.engines.local import read_job
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     job = write_demo(Path(folder))
    ...     rows, _, table = read_job(job)
    ...     people = People(job, rows, table)
    ...     people.start()
    ...     people.wait()
    ...     page = people.page("cost")
    ...     people.close()
    >>> people.progress.state, page.total
    (<RunState.FINISHED: 'finished'>, 400)
    >>> page.people[0].keys, page.people[0].changes
    ({'applicant': '192'}, 'savings_status from <100 to >=1000')
    """

    def __init__(
        self,
        job: Job,
        rows: RowFunction,
        table: TableFile,
        expected: dict[str, str] | None = None,
    ) -> None:
        _refuse_many(table.n_rows or 0)
        self.job, self._rows, self._table, self._expected = job, rows, table, expected
        self.progress = RunProgress(RunState.WAITING)
        self._file: RecourseFile | None = None
        self._listing: _Listing | None = None
        self._closing, self._read = threading.Event(), threading.Event()
        # for its owner alone, and deleted at the end, whatever ends it
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True)
        self._thread = threading.Thread(target=self._work, name="people", daemon=True)

    def start(self) -> None:
        """Begin to read and to advise."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the run has ended, well or not."""
        self._thread.join(seconds)

    def wait_read(self, seconds: float | None = None) -> bool:
        """Wait until the people can be listed; return whether they can."""
        self._read.wait(seconds)
        return self._listing is not None

    def close(self) -> None:
        """Stop the run, and delete what it has written."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)
        self._folder.cleanup()

    @property
    def total(self) -> int | None:
        """How many people there are; None while they are being read."""
        return None if self._listing is None else len(self._listing.people)

    def page(
        self, sort: str = "cost", search: str = "", number: int = 1, size: int = 25
    ) -> ListPage:
        """Return a page of the list.

        Parameters
        ----------
        sort : str
            "row"; "cost": those who are helped first, the cheapest first; "-cost": the dearest
            first; or "status".
        search : str
            A part of a key, of the row number or of what to change, in small or capital letters,
            with or without accents.
        number : int
            Which page, from 1; one that there is not is the nearest that there is.
        size : int
            People on a page.
        """
        return self._listed().page(sort, search, number, size)

    def person(self, row: int) -> dict[str, str]:
        """Return what the model reads of a person, each value as the text that stands for it."""
        return self._listed().values(row)

    def keys(self, row: int) -> dict[str, str]:
        """Return the key columns of a person, as they are written."""
        return self._listed().keys(row)

    def fingerprint(self, row: int) -> str:
        """Name a person by all that is known of them, in a few digits that tell none of it."""
        known = [self.keys(row), self.person(row)]
        return sha256(json.dumps(known).encode()).hexdigest()[:8]

    def complaint(self, row: int) -> str:
        """Return why the row could not be read from its file; empty if it could."""
        return self._listed().complaint(row)

    def finished(self) -> RecourseFile:
        """Return what the run has left; a LookupError says that it has not ended, or why not."""
        if self._file is None:
            raise LookupError(self.progress.reason or "the advice is still being prepared")
        return self._file

    def groupable(self) -> list[str]:
        """Name the columns by which people can be compared: those with few values."""
        return self._listed().groupable()

    def _listed(self) -> _Listing:
        if self._listing is None:
            raise LookupError(self.progress.reason or "the table of people is still being read")
        return self._listing

    def _work(self) -> None:
        try:
            self._advise()
        except _ClosedError:
            pass
        except StoppedError as error:  # a server cannot go on as it says
            self._fail(error.reason)
        except (ValueError, OSError, MemoryError) as error:
            self._fail(str(error) or type(error).__name__)
        except Exception as error:
            self._fail(f"this should not happen ({type(error).__name__}: {error}): this is a bug")
        finally:
            self._read.set()

    def _fail(self, reason: str) -> None:
        self.progress = replace(self.progress, state=RunState.FAILED, reason=reason)

    def _advise(self) -> None:
        folder = Path(self._folder.name)
        people = _copy(self._table, self._rows.wanted, folder / "people.arrow", self._told)
        self._listing = _Listing(people, self._rows)
        self.progress = RunProgress(RunState.RUNNING, 0, len(people))
        self._read.set()
        # of several ways the list shows the first
        job = self.job.with_changes(out=str(folder / "recourse.parquet"), n_options=1)
        self._compile(people)
        # for many people there are processes of their own: this one has requests to answer
        workers = max(2, thread_count(-1))
        finished = run_job(job, n_jobs=workers, expected=self._expected, progress=self._told)
        if finished.people != len(people):
            raise ValueError(f"{self._table.path} was changed while it was being read; start again")
        file = RecourseFile.open(job.out)
        even = basis_of(self._rows.recourse).even
        self._listing = _Listing(people, self._rows, _first_advice(file, even))
        self._file = file
        self.progress = RunProgress(RunState.FINISHED, len(people), len(people))

    def _compile(self, people: pa.Table) -> None:
        """Wait for the solvers, should they still have to be compiled: as Python they are slow."""
        if len(people) and meanwhile.is_on:
            self._rows(people.slice(0, 1))
            meanwhile.wait()

    def _told(self, done: int, total: int | None) -> None:
        if self._closing.is_set():
            raise _ClosedError
        self.progress = replace(self.progress, done=done)


def _refuse_many(count: int) -> None:
    if count > MOST_PEOPLE:
        raise ValueError(
            f"the table holds more than {MOST_PEOPLE:,} people, too many for a page: use a part "
            "of it, or advise everybody with `holdfast recommend`"
        )


def _copy(table: TableFile, names: list[str], path: Path, told: Any) -> pa.Table:
    """Write a table to a file of which any row is found at once; return it, not in memory.

    No other kind of file that people may come in gives any row without all that stands before it.
    """
    with pa.OSFile(str(path), "wb") as file:
        writer, count = None, 0
        for part in _parts(table, names):
            if writer is None:
                writer = pa.ipc.new_file(file, part.schema)
            writer.write_table(part)
            count += part.num_rows
            _refuse_many(count)
            told(0, None)
        if writer is None:
            raise ValueError(f"{table.path} has no rows")
        writer.close()
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _parts(table: TableFile, names: list[str]) -> Iterator[pa.Table]:
    blocks = Blocks(table.batches(_ROWS, names))
    while True:
        part = blocks.take(_ROWS)
        if not part.num_rows:
            return
        arrays = {name: _without_dictionary(part[name]) for name in names}
        complaint = (
            part[COMPLAINT] if COMPLAINT in part.column_names else pa.nulls(len(part), pa.string())
        )
        yield pa.table({**arrays, COMPLAINT: complaint}).combine_chunks()


def _without_dictionary(cells: Any) -> Any:
    """Return plain cells: a file cannot hold several dictionaries of the same column."""
    return cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _first_advice(file: RecourseFile, even: float) -> _PeopleAdvice:
    """Read the first advice for each person."""
    tables, helped = [], []
    given = [name for name in _GIVEN if name in file.table.names]
    for batch in file.batches([*_TOLD, "current_validity", *given]):
        lot = sort_people(pa.Table.from_batches([batch]), even)
        kept = lot.table.select(["status", "approved", "cost", "changes", *given])
        codes = kept["status"].combine_chunks().dictionary_encode()
        tables.append(kept.set_column(0, "status", codes))
        helped.append(lot.is_helped)
    return _PeopleAdvice(pa.concat_tables(tables).unify_dictionaries(), np.concatenate(helped))


class _Listing:
    """All people in any order; what takes long is done once."""

    def __init__(
        self, people: pa.Table, rows: RowFunction, advice: _PeopleAdvice | None = None
    ) -> None:
        self.people, self._rows, self._advice = people, rows, advice
        self._lock = threading.Lock()
        self._orders: dict[str, NDArray[np.int64]] = {}
        self._find = functools.lru_cache(_KEPT)(self._matching)
        self._texts: pa.ChunkedArray | None = None

    def page(self, sort: str, search: str, number: int, size: int) -> ListPage:
        if sort not in SORTS:
            raise ValueError(f"sort = {sort!r} is not known; choose one of {', '.join(SORTS)}")
        wanted = _folded(pa.array([search.strip()], pa.large_string()))[0].as_py()
        with self._lock:
            order = self._order(sort)
            found = order[self._find(wanted)[order]] if wanted else order
        pages = max(1, -(-len(found) // size))
        number = min(max(number, 1), pages)
        chosen = found[(number - 1) * size : number * size].tolist()
        people = [self._listed(row) for row in chosen]
        return ListPage(people, number, pages, len(found), len(order), sort, search)

    def _order(self, sort: str) -> NDArray[np.int64]:
        if sort not in self._orders:
            self._orders[sort] = self._sorted(sort)
        return self._orders[sort]

    def _sorted(self, sort: str) -> NDArray[np.int64]:
        everybody = np.arange(len(self.people))
        if self._advice is None or sort == "row":
            return everybody
        table = self._advice.table
        if sort == "status":
            return np.argsort(_decisions(self._advice), kind="stable")
        cost, helped = numbers(table["cost"]), self._advice.is_helped
        first = everybody[helped]
        cheap = cost[first] if sort == "cost" else -cost[first]
        return np.concatenate([first[np.argsort(cheap, kind="stable")], everybody[~helped]])

    def _matching(self, wanted: str) -> NDArray[np.bool_]:
        if self._texts is None:
            self._texts = self._searched()
        found = pc.match_substring(self._texts, wanted)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)

    def _searched(self) -> pa.ChunkedArray:
        """Return all that is searched of each person, as one text, folded."""
        columns = [self.people[name] for name in self._rows.keys]
        if self._advice is not None:
            columns.append(self._advice.table["changes"])
        chunks = []
        for begin in range(0, len(self.people), _ROWS):
            rows = pa.array(np.arange(begin, min(begin + _ROWS, len(self.people))))
            cells = [column.slice(begin, _ROWS).combine_chunks() for column in columns]
            joined = pc.binary_join_element_wise(
                *map(_texts, (rows, *cells)),
                pa.scalar("\n", pa.large_string()),
                null_handling="replace",
            )
            chunks.append(_folded(joined))
        return pa.chunked_array(chunks, pa.large_string())

    def _listed(self, row: int) -> Listed:
        plain = Listed(row, self.keys(row))
        if self._advice is None:
            return plain
        [told] = self._advice.table.slice(row, 1).to_pylist()
        nothing = float("nan")
        given = {name: told[name] for name in _GIVEN if told.get(name) is not None}
        return replace(
            plain,
            status=Status(told["status"]),
            approved=told["approved"],
            is_helped=bool(self._advice.is_helped[row]),
            changes=told["changes"] or "",
            cost=nothing if told["cost"] is None else told["cost"],
            **given,
        )

    def cells(self, row: int) -> pa.Table:
        if not 0 <= row < len(self.people):
            raise LookupError(f"there is no row {row}; rows run from 0 to {len(self.people) - 1}")
        return self.people.slice(row, 1)

    def values(self, row: int) -> dict[str, str]:
        columns = self._rows.columns
        person = columns.frame(self.cells(row))
        return {
            name: text_of(person[name].iloc[0], levels) for name, levels in columns.levels.items()
        }

    def keys(self, row: int) -> dict[str, str]:
        cells = self.cells(row)
        return {name: _texts(cells[name])[0].as_py() or "" for name in self._rows.keys}

    def complaint(self, row: int) -> str:
        return self.cells(row)[COMPLAINT][0].as_py() or ""

    def groupable(self) -> list[str]:
        keys = [name for name in self._rows.keys if _has_few(self.people[name])]
        levels = self._rows.columns.levels.items()
        features = [name for name, known in levels if known and len(known) <= MOST_GROUPS]
        return list(dict.fromkeys(keys + features))


def _decisions(advice: _PeopleAdvice) -> NDArray[np.int64]:
    """Number what was decided as a list says it, and in its order.

    Refused with a way, without one that is settled, with none at all; approved, but it may not
    last; approved; and those who cannot be used.
    """
    status = advice.table["status"]
    is_settled = _are(pc.equal(status.cast(pa.string()), str(Status.ALREADY_VALID)))
    is_lost = _are(pc.equal(status.cast(pa.string()), str(Status.INFEASIBLE)))
    approved = advice.table["approved"]
    found = np.where(_are(approved), np.where(is_settled, 4, 3), np.where(is_lost, 2, 1))
    found[advice.is_helped] = 0
    found[_are(pc.is_null(approved))] = 5
    return found


def _are(cells: Any) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(cells, False).to_numpy(zero_copy_only=False), dtype=bool)


def _has_few(cells: Any) -> bool:
    """Whether a column has few different values; a text that a file could not give is one, too."""
    try:
        return bool(pc.count_distinct(cells, mode="all").as_py() <= MOST_GROUPS)
    except pa.ArrowNotImplementedError:  # nested ones
        return False


def _folded(texts: Any) -> Any:
    """Return texts in small letters and without accents, as people type what they look for."""
    apart = pc.utf8_normalize(pc.utf8_lower(texts), form="NFKD")
    return pc.replace_substring_regex(apart, pattern=r"\p{Mn}", replacement="")


def _texts(cells: Any) -> Any:
    """Return cells as they are written."""
    try:
        return cells.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = [None if value is None else str(value) for value in cells.to_pylist()]
        return pa.array(values, pa.large_string())
