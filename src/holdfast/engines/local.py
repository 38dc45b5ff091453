"""One machine: people a part at a time, on all processors; killed at any moment, it goes on."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.engines.earlier import Finished, Output, claim, finished_before, record_of
from holdfast.engines.parts import PartFiles, alone_in, write_whole
from holdfast.engines.rows import SAMPLE, RowFunction, columns_of, fit_rows
from holdfast.files.jobs import Job, Prepared, check_unchanged, prepare
from holdfast.files.tables import (
    CSV_SUFFIXES,
    TABLE_SUFFIXES,
    Blocks,
    TableFile,
    open_table,
)
from holdfast.machinery.complaints import read_all
from holdfast.machinery.plain_files import checksum, refuse_input_as_output
from holdfast.machinery.processes import begin_work
from holdfast.machinery.stops import StoppedError
from holdfast.machinery.threads import thread_count

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST, _MOST = 256, 32_768  # people in a part
_SECONDS = 5.0  # that a part should take: so much is lost where the run is killed
_FEW = 2000  # people for whom no processes are started

Progress = Callable[[int, int | None], None]


def run_job(
    job: Job,
    *,
    n_jobs: int | None = -1,
    expected: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Finished:
    """Advise all people of a job, and write what they should change.

    Parameters
    ----------
    job : Job
    n_jobs : int, optional
        Processes; -1 uses all processors.
    expected : dict, optional
        Checksums of files that must be as they were.
    progress : callable, optional
        Told now and then how many people are done, and of how many.
    """
    out = Path(job.out)
    _check_place(out, Path(job.people))
    output = Output(str(out), out, out.exists, lambda: checksum(out))
    manifest, work = output.beside(".yaml"), output.beside(".work")
    began = time.perf_counter()
    rows, prepared, people = read_job(job)
    _check_kinds(out, rows.out_schema)
    seen = people.fingerprint()
    checksums = prepared.checksums | {"people": people.checksum()}
    check_unchanged(expected or {}, checksums, "the settings")
    done = finished_before(job, checksums, output)
    if done is not None:
        if work.exists():  # killed just before it was to be deleted
            with alone_in(work):
                PartFiles(work).remove()
        return done
    people.scan()
    try:
        work.mkdir(exist_ok=True)
        with alone_in(work):
            claim(work, job, checksums)
            PartFiles(work).tidy()
            run = _LocalRun(rows, people, PartFiles(work), thread_count(n_jobs), progress)
            run.advise()
            _check_still(people, seen, checksums["people"], work)
            statuses = run.put_together(out)
            seconds = run.seconds | {"all": time.perf_counter() - began}
            checksums |= {"out": checksum(out)}
            record = record_of(job, checksums, people.n_rows or 0, statuses)
            job.write(manifest, record, drafts=work)
            PartFiles(work).remove()
    except BrokenExecutor:
        raise StoppedError(
            "a process of this run was killed, perhaps for lack of memory",
            f"Finished work is kept in {work}; run the same command again, perhaps with fewer "
            "processes (--jobs 1), to continue where it stopped",
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoppedError(
            f"the disk is full: {error.strerror}",
            f"Finished work is kept in {work}; make room and run the same command again to "
            "continue where it stopped",
        ) from None
    return Finished(output.name, manifest, people.n_rows or 0, statuses, False, seconds)


def _check_place(out: Path, people: Path) -> None:
    if out.suffix.lower() not in TABLE_SUFFIXES:
        raise ValueError(f"out = {out} does not end in one of {', '.join(TABLE_SUFFIXES)}")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"out = {out}: there is no directory {out.parent}")
    refuse_input_as_output(out, people)


def _check_kinds(out: Path, schema: pa.Schema) -> None:
    """Refuse columns that a CSV file cannot hold, before any work."""
    import pyarrow as pa

    if out.suffix.lower() not in CSV_SUFFIXES:
        return
    types = pa.types
    wrong = [
        f"{field.name} ({field.type})"
        for field in schema
        if types.is_nested(field.type)
        or types.is_binary(field.type)
        or types.is_large_binary(field.type)
    ]
    if wrong:
        raise ValueError(f"{out}: a CSV file cannot hold {', '.join(wrong)}; write Parquet instead")


def _check_still(people: TableFile, seen: list[Any], digest: str, work: Path) -> None:
    """Refuse an input that was changed while it was read: nobody knows whose answers these are."""
    if people.fingerprint() == seen or people.checksum() == digest:
        return
    PartFiles(work).remove()
    raise ValueError(
        f"{people.path} was changed during the run; nothing was written. Run the same command again"
    )


def read_job(job: Job) -> tuple[RowFunction, Prepared, TableFile]:
    """Read all that a job names; all that is wrong with it is said at once."""
    prepared: Prepared
    people: TableFile
    prepared, people = read_all(lambda: prepare(job, n_jobs=1), lambda: open_table(job.people))
    sample = Blocks(people.batches(SAMPLE)).take(SAMPLE)
    recourse, schema = prepared.recourse, _schema(people, sample)
    columns = columns_of(recourse, are_texts=people.are_texts)
    rows = RowFunction(recourse, columns, schema, tuple(job.keys))
    fit_rows(rows, people.names, sample, job.people)
    return rows, prepared, people


def _schema(people: TableFile, sample: pa.Table) -> pa.Schema:
    import pyarrow as pa

    known = {field.name: field for field in sample.schema}
    return pa.schema([known.get(name, pa.field(name, pa.string())) for name in people.names])


class _LocalRun:
    """One run: which people are left, who works on them, and what has been spent."""

    def __init__(
        self,
        rows: RowFunction,
        people: TableFile,
        parts: PartFiles,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self.rows, self.people, self.parts, self.workers = rows, people, parts, workers
        self.progress = progress or (lambda done, total: None)
        self.size = _LEAST
        self.advised = 0
        self.seconds = {"read": 0.0, "solve": 0.0, "write": 0.0}

    def advise(self) -> None:
        """Advise everybody who has not been advised yet."""
        done = sum(count for _, count in self.parts.done())
        left = (self.people.n_rows or 0) - done
        self.progress(done, self.people.n_rows)
        if left <= _FEW or self.workers == 1:
            for first, table in self._open_parts():
                self._note(table.num_rows, _work(self.rows, self.parts, first, table))
            return
        from multiprocessing import get_context

        with ProcessPoolExecutor(
            self.workers, get_context("spawn"), _start, (self.rows, self.parts)
        ) as pool:
            try:
                self._spread(pool)
            except BaseException:
                working = list((pool._processes or {}).values())
                pool.shutdown(wait=False, cancel_futures=True)
                for process in working:  # what they are at is lost, and done again
                    process.kill()
                raise

    def _spread(self, pool: ProcessPoolExecutor) -> None:
        waiting: dict[Future[dict[str, float]], int] = {}
        for first, table in self._open_parts():
            waiting[pool.submit(_work_here, first, table)] = table.num_rows
            while len(waiting) > self.workers:
                self._collect(waiting)
        while waiting:
            self._collect(waiting)

    def _collect(self, waiting: dict[Future[dict[str, float]], int]) -> None:
        finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in finished:
            self._note(waiting.pop(future), future.result())

    def _note(self, count: int, spent: dict[str, float]) -> None:
        """Count a finished part, and let the next ones take about as long as they should."""
        for name, seconds in spent.items():
            self.seconds[name] += seconds
        self.advised += count
        fitting = count * _SECONDS / max(sum(spent.values()), 1e-9)
        self.size = int(min(max(fitting, _LEAST), 4 * self.size, _MOST))
        self.progress(self.advised, self.people.n_rows)

    def _open_parts(self) -> Iterator[tuple[int, pa.Table]]:
        """Read all people who have not been advised yet, some at a time."""
        blocks = Blocks(self.people.batches(_MOST, self.rows.wanted))
        done = self.parts.done()
        while True:
            while done and done[0][0] <= blocks.taken:
                first, count = done.pop(0)
                skipped = first + count - blocks.taken
                if skipped > 0:
                    blocks.skip(skipped)
                    self.advised += skipped
            size = min(self.size, done[0][0] - blocks.taken) if done else self.size
            began = time.perf_counter()
            first = blocks.taken
            table = blocks.take(size)
            self.seconds["read"] += time.perf_counter() - began
            if not table.num_rows:
                return
            yield first, table

    def put_together(self, out: Path) -> dict[str, int]:
        """Write all parts as one file; return how many people have each status."""
        began = time.perf_counter()
        statuses: Counter[str] = Counter()

        def counted() -> Iterator[pa.Table]:
            import pyarrow.compute as pc

            for table in self.parts.tables():
                first = table.filter(pc.less_equal(table["option"], 1))
                for each in pc.value_counts(first["status"]).to_pylist():
                    statuses[each["values"]] += each["counts"]
                yield table

        write_whole(counted(), self.rows.out_schema, out, self.parts.directory)
        self.seconds["write"] += time.perf_counter() - began
        if statuses.total() != self.people.n_rows:
            raise RuntimeError(
                f"{statuses.total()} people came out of {self.people.n_rows}. This is a bug; "
                "please report it"
            )
        return dict(sorted(statuses.items()))


def _work(rows: RowFunction, parts: PartFiles, first: int, table: pa.Table) -> dict[str, float]:
    """Advise people, and write the part; say how long it took."""
    began = time.perf_counter()
    advice = rows(table, first)
    solved = time.perf_counter()
    parts.write(first, table.num_rows, advice)
    return {"solve": solved - began, "write": time.perf_counter() - solved}


_mine: tuple[RowFunction, PartFiles] | None = None  # what a process works with


def _start(rows: RowFunction, parts: PartFiles) -> None:
    """Begin a process that works."""
    global _mine
    _mine = rows, parts
    begin_work()


def _work_here(first: int, table: pa.Table) -> dict[str, float]:
    assert _mine is not None
    return _work(*_mine, first, table)
