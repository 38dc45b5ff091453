"""Tables of Spark's: paths of any file system that it knows, and names in its catalog."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from holdfast.files.tables import ARROW_SUFFIXES, COMPLAINT, CSV_SUFFIXES, delimiter_of
from holdfast.machinery.plain_files import checksum
from holdfast.machinery.stops import StoppedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".avro": "avro"}
_UNREAD = "the line does not have one cell for each column"


@contextlib.contextmanager
def open_session() -> Iterator[SparkSession]:
    """Give the session that is there, or one as the environment says, for as long as it is used."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        yield session
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        session = SparkSession.builder.appName("holdfast").getOrCreate()
    except (PySparkException, OSError) as error:
        raise ValueError(
            f"Spark did not start: {_first_line(error)} It needs Java 17 or 21: is JAVA_HOME set?"
        ) from None
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def in_plain_words() -> Iterator[None]:
    """Say in a line what went wrong in Spark; its own words go on for pages."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, PySparkException, PythonException

    try:
        yield
    except AnalysisException as error:
        raise ValueError(_first_line(error)) from None
    except PythonException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        ours = [line for line in lines if not line.startswith((" ", "\t", "JVM"))]
        raise StoppedError(f"Spark gave up: {(ours or lines)[-1]}") from None
    except (PySparkException, Py4JError) as error:
        raise StoppedError(
            f"Spark gave up: {_first_line(error)}; run the same command to start again"
        ) from None


def _first_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    lines = str(error if java is None else java.toString()).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@dataclass(frozen=True, eq=False)
class SparkTable:
    """A path or a table that Spark reads or writes; make it with `SparkTable.named`.

    Attributes
    ----------
    name : str
        As it was given.
    path : str or None
        The path, with its file system; None for a table of the catalog.
    local : Path or None
        Where it is on this machine, if it is.
    """

    spark: SparkSession
    name: str
    path: str | None
    local: Path | None

    @classmethod
    def named(cls, spark: SparkSession, name: str) -> SparkTable:
        """Tell a path from a table: a path has a slash, an ending that is known, or is there."""
        suffix = PurePosixPath(name).suffix.lower()
        if suffix in ARROW_SUFFIXES:
            raise ValueError(f"{name}: Spark cannot read or write {suffix} files; use .parquet")
        system, path = _file_system(spark, name)
        known = suffix in CSV_SUFFIXES or suffix in _FORMATS
        if "/" not in name and not known and not system.exists(path):
            return cls(spark, name, None, None)
        uri = system.makeQualified(path).toUri()
        local = Path(uri.getPath()) if uri.getScheme() == "file" else None
        return cls(spark, name, uri.toString(), local)

    @property
    def _suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_csv(self) -> bool:
        """Whether its cells are texts."""
        return self.path is not None and self._suffix in CSV_SUFFIXES

    def exists(self) -> bool:
        """Tell whether it is there."""
        if self.path is None:
            return bool(self.spark.catalog.tableExists(self.name))
        system, path = _file_system(self.spark, self.path)
        return bool(system.exists(path))

    def checksum(self) -> str | None:
        """Return the SHA-256 of what is on this machine, of a directory with the names in it."""
        if self.local is None:
            return None
        if not self.local.is_dir():
            return checksum(self.local)
        digest = hashlib.sha256()
        for path in sorted(self.local.rglob("*")):
            if path.is_file() and path.name[0] not in "._":
                line = f"{checksum(path)}  {path.relative_to(self.local).as_posix()}\n"
                digest.update(line.encode())
        return digest.hexdigest()

    def read(self) -> DataFrame:
        """Read it."""
        if self.path is None:
            return self.spark.table(self.name)
        if self.is_csv:
            return _read_csv(self.spark, self.path)
        return self.spark.read.load(self.path, format=_FORMATS.get(self._suffix))

    def write(self, df: DataFrame, mode: str) -> None:
        """Write it; the mode is Spark's: what happens to what is there."""
        writer = df.write.mode(mode)
        if self.path is None:
            writer.saveAsTable(self.name)
        elif self._suffix in CSV_SUFFIXES:
            separator = "\t" if self._suffix == ".tsv" else ","
            writer.csv(self.path, header=True, sep=separator, quote='"', escape='"')
        else:
            writer.save(self.path, format=_FORMATS.get(self._suffix))


def _file_system(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path as it knows it."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(name)
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path


def _read_csv(spark: SparkSession, path: str) -> DataFrame:
    """Read CSV files as one machine does: all cells are texts, null where they are empty.

    A cell may hold line breaks, so a file is not cut: one task reads it.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    first = spark.read.text(path).first()
    if first is None:
        raise ValueError(f"{path} is empty; its first line must name the columns")
    header = str(first[0]).removeprefix("\ufeff")
    delimiter = delimiter_of(header)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    numbered = [f"c{k}" for k in range(len(names))]
    schema = StructType([StructField(name, StringType()) for name in [*numbered, "unread"]])
    df = (
        spark.read.schema(schema)
        .options(header=True, sep=delimiter, quote='"', escape='"', multiLine=True)
        .options(mode="PERMISSIVE", columnNameOfCorruptRecord="unread", columnPruning=False)
        .csv(path)
    )
    is_read = F.col("unread").isNull()
    cells = [F.when(is_read, F.col(name)) for name in numbered]
    cells.append(F.when(~is_read, F.lit(_UNREAD)))
    return df.select([cell.alias(f"d{k}") for k, cell in enumerate(cells)]).toDF(*names, COMPLAINT)
