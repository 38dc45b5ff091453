"""Tables in files, read a batch at a time: CSV, Parquet, Arrow, directories of Parquet parts."""

from __future__ import annotations

import csv
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.machinery.plain_files import checksum

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

CSV_SUFFIXES = (".csv", ".tsv")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
TABLE_SUFFIXES = (*CSV_SUFFIXES, ".parquet", *ARROW_SUFFIXES)
# The column in which a reader says why a row cannot be used, if that is so.
COMPLAINT = "holdfast.problem"
# What stands for a value that is missing, in a CSV file.
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_DELIMITERS = (",", ";", "\t", "|")
_LINES = 4096  # of a CSV file, read at a time


class TableFile(ABC):
    """A table in a file; `open_table` makes it.

    Attributes
    ----------
    path : Path
    names : list of str
        Its columns.
    n_rows : int or None
        How many rows it has; None where only reading it all would tell.
    are_texts : bool
        Whether its cells are texts that stand for something else.
    """

    path: Path
    names: list[str]
    n_rows: int | None
    are_texts = False

    @abstractmethod
    def batches(self, rows: int, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it from the beginning, at most so many rows at a time.

        The cells of a CSV file are texts, null where they are empty. A row that cannot be read
        is null throughout; the column `COMPLAINT`, which is there if one is, says why.
        """

    def scan(self) -> None:
        """Find out how many rows there are, and whether all of them can be read."""
        if self.n_rows is None:
            self.n_rows = self._count()

    def _count(self) -> int:
        return sum(batch.num_rows for batch in self.batches(1 << 20))

    def checksum(self) -> str:
        """Return the SHA-256 of the file; of a directory, that of all parts with their names."""
        return checksum(self.path)

    def fingerprint(self) -> list[tuple[int, int, int]]:
        """Return what tells at once that a file was touched: its size, its time and its place."""
        looks = [path.stat() for path in self._paths()]
        return [(look.st_size, look.st_mtime_ns, look.st_ino) for look in looks]

    def _paths(self) -> list[Path]:
        return [self.path]


def open_table(path: str | Path) -> TableFile:
    """Open a table; what it is, its ending tells.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,home\\n41,own\\n23,\\n")
    >>> table = open_table(path)
    >>> table.names
    ['age', 'home']
    >>> [batch.to_pydict() for batch in table.batches(100)]
    [{'age': ['41', '23'], 'home': ['own', None]}]
    """
    path = Path(path)
    if path.is_dir():
        return PartsTable(path)
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise ValueError(
            f"{path}: a table must end in one of {', '.join(TABLE_SUFFIXES)}, or be a directory "
            "of Parquet parts"
        )
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if suffix in CSV_SUFFIXES:
        return CsvTable(path)
    return ParquetTable(path) if suffix == ".parquet" else ArrowTable(path)


class CsvTable(TableFile):
    """A CSV file: a line of names, then one line for each row; all cells are texts.

    A column without a name is left out.
    """

    are_texts = True

    def __init__(self, path: Path) -> None:
        self.path, self.n_rows = path, None
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            raise ValueError(f"{path} is empty; its first line must name the columns")
        self._header = [name.strip() for name in first[1]]
        # a column without a name is the index of a data frame, which nobody can refer to
        self.names = [name for name in self._header if name]
        _check_names(path, self.names)

    def batches(self, rows: int, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it; see `TableFile.batches`."""
        chosen = self.names if names is None else names
        places = [self._header.index(name) for name in chosen]
        read: list[list[str]] = []
        complaints: dict[int, str] = {}
        for line, cells in self._rows():
            width = len(self._header)
            if len(cells) != width:
                complaints[len(read)] = (
                    f"line {line} has {_cells(len(cells))}, but there are {width} columns"
                )
                cells = [""] * width
            read.append(cells)
            if len(read) == rows:
                yield _texts(read, chosen, places, complaints)
                read, complaints = [], {}
        if read:
            yield _texts(read, chosen, places, complaints)

    def _count(self) -> int:
        return sum(1 for _ in self._rows())

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        lines = self._lines()
        next(lines)
        for line, cells in lines:
            if cells:  # a line without anything is nobody
                yield line, cells

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        delimiter = self._delimiter()
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            try:
                for cells in reader:
                    yield reader.line_num, cells
            except csv.Error as error:
                why = f"{self.path}, line {reader.line_num}: {error}"
                raise ValueError(f"{why}; is there an unclosed quotation mark?") from None
            except UnicodeDecodeError:
                raise ValueError(
                    f"{self.path} is not UTF-8 text near line {reader.line_num + 1}; save it as "
                    "UTF-8"
                ) from None

    def _delimiter(self) -> str:
        """Return what stands most often between the names of the columns."""
        try:
            with open(self.path, encoding="utf-8-sig", errors="replace", newline="") as file:
                header = file.readline(1_000_000)
        except OSError as error:
            raise type(error)(f"{self.path} cannot be read: {error.strerror}") from None
        return delimiter_of(header)


def delimiter_of(header: str) -> str:
    """Return what stands most often between the names of the columns."""
    return max(_DELIMITERS, key=header.count)


class ParquetTable(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path = path
        try:
            # no more of the file in memory than what is read next
            self._file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} is not a readable Parquet file: {error}") from None
        self.schema, self.n_rows = self._file.schema_arrow, self._file.metadata.num_rows
        self.names = self.schema.names
        _check_names(path, self.names)

    def batches(self, rows: int, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it; see `TableFile.batches`."""
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(rows, columns=names, use_threads=False):
                batch.validate(full=True)  # what a broken file holds may lie outside of memory
                yield batch if names is None else batch.select(names)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} cannot be read to its end: {error}") from None


class ArrowTable(TableFile):
    """An Arrow or Feather file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.path = path
        try:
            self._file = pa.ipc.open_file(pa.memory_map(str(path)))
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path} is not a readable Arrow file: {error}") from None
        self.names, self.n_rows = self._file.schema.names, None
        _check_names(path, self.names)

    def batches(self, rows: int, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it; see `TableFile.batches`."""
        import pyarrow as pa

        try:
            for k in range(self._file.num_record_batches):
                batch = self._file.get_batch(k)
                batch.validate(full=True)
                batch = batch if names is None else batch.select(names)
                for begin in range(0, batch.num_rows, rows):
                    yield batch.slice(begin, rows)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} cannot be read to its end: {error}") from None


class PartsTable(TableFile):
    """A directory of Parquet parts, in the order of their names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        inside = sorted(each for each in path.iterdir() if each.name[0] not in "._")
        others = [each.name for each in inside if each.suffix != ".parquet" or each.is_dir()]
        if others or not inside:
            what = f"holds {others[0]!r}" if others else "is empty"
            raise ValueError(f"{path} {what}; a directory must hold Parquet parts and nothing else")
        self.parts = [ParquetTable(each) for each in inside]
        self.names = self.parts[0].names
        for part in self.parts:
            if part.names != self.names:
                raise ValueError(
                    f"{part.path} does not have the same columns as {self.parts[0].path}"
                )
        self.n_rows = sum(part.n_rows or 0 for part in self.parts)
        self._schema = _common_schema(self.parts)

    def batches(self, rows: int, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read it; see `TableFile.batches`. A column has one type in all parts."""
        import pyarrow as pa

        schema = pa.schema([self._schema.field(name) for name in names or self.names])
        for part in self.parts:
            for batch in part.batches(rows, names):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    def _paths(self) -> list[Path]:
        return [part.path for part in self.parts]

    def checksum(self) -> str:
        """Return the SHA-256 of the names and checksums of all parts."""
        lines = [f"{part.checksum()}  {part.path.name}\n" for part in self.parts]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _common_schema(parts: list[ParquetTable]) -> pa.Schema:
    """Return types that hold the columns of all parts: of whole numbers and others, the others."""
    import pyarrow as pa

    common = parts[0].schema
    for part in parts[1:]:
        try:
            schemas = [common.remove_metadata(), part.schema.remove_metadata()]
            common = pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            why = str(error).partition("\n")[0]
            raise ValueError(
                f"{part.path} does not have the same column types as {parts[0].path}: {why}"
            ) from None
    return common


def read_frame(path: str | Path, names: list[str] | None = None) -> pd.DataFrame:
    """Read a whole table, or some of its columns.

    A column of a CSV file holds numbers where all of its cells are numbers, without leading zeros
    as codes have them, and texts otherwise.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,home,zip\\n41,own,01234\\n23,,99999\\n")
    >>> read_frame(path)
       age home    zip
    0   41  own  01234
    1   23  NaN  99999
    """
    import pandas as pd

    table = open_table(path)
    missing = [name for name in names or () if name not in table.names]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; it has: {', '.join(table.names)}")
    parts = list(table.batches(1 << 16, names))
    wrong = next((part for part in parts if COMPLAINT in part.schema.names), None)
    if wrong is not None:
        why = next(text for text in wrong.column(COMPLAINT).to_pylist() if text)
        raise ValueError(f"{path}: {why}")
    columns: dict[str, Any] = {}
    for name in names or table.names:
        cells = _joined([part.column(name) for part in parts])
        columns[name] = typed(cells) if table.are_texts else _series(cells)
    return pd.DataFrame(columns)


def _joined(arrays: list[Any]) -> Any:
    import pyarrow as pa

    return pa.chunked_array(arrays) if arrays else pa.array([], pa.string())


def _series(cells: Any) -> Any:
    """Return a column of a typed table; decimal numbers and dictionaries as what they stand for."""
    import pyarrow as pa

    cells = without_decimals(cells)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    return cells.to_pandas()


def without_decimals(cells: Any) -> Any:
    """Return exact decimals as the nearest floats, and other cells as they are."""
    import pyarrow as pa

    if pa.types.is_decimal(cells.type):  # Arrow itself would round it twice
        return parse_numbers(cells.cast(pa.string()))
    return cells


def typed(cells: Any) -> Any:
    """Return the cells of a CSV column as numbers where all are, or as texts."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    said = pc.drop_null(nullified(cells))
    numbers = None
    if len(said) and not pc.any(pc.match_substring_regex(said, r"^[+-]?0\d")).as_py():
        numbers = parse_numbers(cells)
    if numbers is None:
        return pd.Series(nullified(cells).to_pandas(), dtype=object).astype(str_dtype())
    whole = numbers.null_count == 0 and pc.all(pc.equal(pc.floor(numbers), numbers)).as_py()
    plain = not pc.any(pc.match_substring_regex(said, r"[.eEnN]")).as_py()
    if whole and plain and pc.max(pc.abs(numbers)).as_py() < 2**53:
        numbers = numbers.cast(pa.int64())
    return numbers.to_pandas()


def str_dtype() -> Any:
    """Return how this release of pandas keeps texts by default."""
    import pandas as pd

    return pd.Series(["text"]).dtype


def nullified(cells: Any) -> Any:
    """Return texts without the spaces around them, null where one stands for nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    is_missing = pc.is_in(trimmed, value_set=pa.array(sorted(MISSING)))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def parse_numbers(cells: Any) -> Any:
    """Return texts as numbers in double precision; None if one of them is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(nullified(cells), pa.float64())
    except pa.ArrowInvalid:
        return None


def _texts(
    rows: list[list[str]], names: list[str], places: list[int], complaints: dict[int, str]
) -> pa.RecordBatch:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True))
    arrays = [pa.array([cell or None for cell in columns[k]], pa.string()) for k in places]
    if complaints:
        arrays.append(pa.array([complaints.get(k) for k in range(len(rows))], pa.string()))
        names = [*names, COMPLAINT]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise ValueError(f"{path} has no columns; its first line must name them")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path} has several columns named {name!r}")
    if COMPLAINT in names:
        raise ValueError(
            f"{path} has a column {COMPLAINT!r}, a name that Holdfast uses itself; rename it"
        )


def _cells(count: int) -> str:
    return f"{count} cell{'' if count == 1 else 's'}"


class Blocks:
    """The rows of a table in blocks of any size, one after another."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._held, self.taken = batches, list[Any](), 0

    def take(self, rows: int) -> pa.Table:
        """Return the next rows, fewer at the end; a table without columns after it."""
        import pyarrow as pa

        found, count = [], 0
        while count < rows:
            if not self._held:
                following = next(self._batches, None)
                if following is None:
                    break
                self._held.append(following)
            batch = self._held.pop()
            part = batch.slice(0, rows - count)
            if part.num_rows < batch.num_rows:
                self._held.append(batch.slice(part.num_rows))
            found.append(part)
            count += part.num_rows
        self.taken += count
        tables = [pa.Table.from_batches([part]) for part in found]
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def skip(self, rows: int) -> None:
        """Leave out the next rows."""
        while rows > 0:
            step = self.take(min(rows, _LINES)).num_rows
            if not step:
                break
            rows -= step
