"""Finished parts of a run, in a directory beside its outcome; each is whole or not there."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.files.tables import ARROW_SUFFIXES, CSV_SUFFIXES
from holdfast.machinery.plain_files import replacing

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"part-(\d{12})-(\d{12})\.arrow")
_ROWS = 32_768  # of what is written at a time, and of a group of rows in a Parquet file


@dataclass(frozen=True)
class PartFiles:
    """The parts of one run; a part holds people from `first` on, so many of them."""

    directory: Path

    def done(self) -> list[tuple[int, int]]:
        """List what is finished: the first person of each part, and how many."""
        names = [_NAME.fullmatch(each.name) for each in self.directory.iterdir()]
        return sorted((int(name[1]), int(name[2])) for name in names if name)

    def path(self, first: int, count: int) -> Path:
        """Return where a part lies."""
        return self.directory / f"part-{first:012d}-{count:012d}.arrow"

    def write(self, first: int, count: int, table: pa.Table) -> None:
        """Write a part."""
        import pyarrow as pa

        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            replacing(self.path(first, count)) as draft,
            pa.OSFile(str(draft), "wb") as file,
            pa.ipc.new_file(file, table.schema, options=options) as writer,
        ):
            writer.write_table(table, max_chunksize=_ROWS)

    def tables(self) -> Iterator[pa.Table]:
        """Read all parts in the order of people, nobody twice.

        Parts may overlap, where a run was killed while another process was still writing.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        position = 0
        for first, count in self.done():
            if first > position:
                raise RuntimeError(
                    f"people {position} to {first} were not advised. This is a bug; please report "
                    "it"
                )
            if first + count <= position:
                continue
            with pa.memory_map(str(self.path(first, count))) as file:
                table = pa.ipc.open_file(file).read_all()
            if first < position:
                table = table.filter(pc.greater_equal(table["row"], position))
            position = first + count
            yield table

    def tidy(self) -> None:
        """Delete what a killed process has left unfinished."""
        for draft in self.directory.glob(".*"):
            draft.unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete all of it."""
        shutil.rmtree(self.directory)


def write_whole(tables: Iterator[Any], schema: pa.Schema, path: Path, drafts: Path) -> None:
    """Write tables, one below another, as one file: of the kind that its ending tells.

    However they are cut, the same rows give the same file.
    """
    with replacing(path, drafts) as draft, _writer(draft, path.suffix.lower(), schema) as write:
        for table in _even(tables):
            write(table)


def _even(tables: Iterator[Any]) -> Iterator[Any]:
    """Cut tables anew, into pieces of the same number of rows."""
    import pyarrow as pa

    held, count = list[Any](), 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        if count < _ROWS:
            continue
        joined = pa.concat_tables(held)
        whole = count - count % _ROWS
        for begin in range(0, whole, _ROWS):
            yield joined.slice(begin, _ROWS).combine_chunks()
        held, count = [joined.slice(whole)], count - whole
    if count:
        yield pa.concat_tables(held).combine_chunks()


@contextlib.contextmanager
def _writer(path: Path, suffix: str, schema: pa.Schema) -> Iterator[Any]:
    import pyarrow as pa

    if suffix in CSV_SUFFIXES:
        from pyarrow import csv

        options = csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        with csv.CSVWriter(str(path), schema, write_options=options) as writer:
            yield writer.write_table
    elif suffix in ARROW_SUFFIXES:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            yield writer.write_table
    else:
        import pyarrow.parquet as pq

        # numbers hardly ever repeat: a dictionary of them would only take time
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        with pq.ParquetWriter(str(path), schema, use_dictionary=texts) as writer:
            yield writer.write_table


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Let one process at a time work in a directory; the lock goes with the process."""
    import fcntl

    handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(f"another run is using {directory}; wait for it, or stop it") from None
    finally:
        os.close(handle)
