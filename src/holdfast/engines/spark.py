"""Many machines: the row function on Spark, with the same answers as on one machine, to the bit."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.engines.earlier import PARTS, Finished, Output, claim, finished_before, record_of
from holdfast.engines.parts import alone_in
from holdfast.engines.rows import SAMPLE, RowFunction, columns_of, fit_rows
from holdfast.engines.spark_tables import SparkTable, in_plain_words, open_session
from holdfast.files.jobs import Job, Prepared, check_unchanged, prepare
from holdfast.files.people import PeopleColumns
from holdfast.files.tables import COMPLAINT, Blocks
from holdfast.machinery.complaints import read_all
from holdfast.machinery.extras import need
from holdfast.machinery.versions import versions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from holdfast.recommend import RobustRecourse

_PEOPLE = 16_384  # gathered before they are solved: Spark's batches may be small
_ROWS = 8192  # in a batch that goes back
# Spark's monotonically_increasing_id: the partition, and in these bits the position within it
_POSITION_BITS = 33


def recommend(df: DataFrame, recourse: RobustRecourse, keys: Sequence[str] = ()) -> DataFrame:
    """Recommend to everybody in a Spark DataFrame what to change.

    The answers, and the columns, are those of `holdfast recommend` on one machine. Everybody is
    counted at once, partition by partition, and advised when the DataFrame that comes back is used:
    each time anew, so write it, or persist it.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        People, in raw units, with the columns that the model reads.
    recourse : RobustRecourse
        Its `n_jobs` is not heeded: one task takes one core.
    keys : sequence of str, optional
        Columns that go through as they are.

    Returns
    -------
    pyspark.sql.DataFrame
        For each person and option a row. Column `row` is the position of the person in `df`:
        sorted by `row` and `option`, it is in the order of `df`. A person who cannot be used gets
        a status and a reason.

    Examples
    --------
    >>> import holdfast.engines.spark
    >>> advice = holdfast.engines.spark.recommend(
    ...     spark.read.parquet("denied.parquet"), recourse, keys=["id"]
    ... )  # doctest: +SKIP
    >>> advice.write.parquet("recourse.parquet")  # doctest: +SKIP
    """
    need("spark", "holdfast.engines.spark", "pyspark")
    columns = columns_of(recourse)
    return _advice(df, _row_function(df, recourse, columns, tuple(keys), "the DataFrame"))[0]


def run_on_spark(job: Job, *, expected: dict[str, str] | None = None) -> Finished:
    """Advise all people of a job on Spark, and have Spark write what they should change.

    `people` and `out` are paths or tables of Spark's. Where `out` is no path on this machine, the
    manifest goes to the current directory. A lost executor costs time only; after a lost driver the
    same command starts again.

    Parameters
    ----------
    job : Job
    expected : dict, optional
        Checksums of files that must be as they were.
    """
    need("spark", "--engine spark", "pyspark")
    began = time.perf_counter()
    with open_session() as spark, in_plain_words():
        out = SparkTable.named(spark, job.out)
        output = Output(out.name, out.local, out.exists, out.checksum)
        if out.local is not None and not out.local.parent.is_dir():
            raise FileNotFoundError(f"out = {job.out}: there is no directory {out.local.parent}")
        prepared, people, df = _read(job, spark)
        digest = people.checksum()
        checksums = prepared.checksums | ({} if digest is None else {"people": digest})
        check_unchanged(expected or {}, checksums, "the settings")
        done = finished_before(job, checksums, output)
        if done is not None:
            return done
        columns = columns_of(prepared.recourse, are_texts=people.is_csv)
        rows = _row_function(df, prepared.recourse, columns, tuple(job.keys), job.people)
        left = out.exists()  # by a run that did not end well
        with _claimed(output.beside(".work"), job, checksums, left):
            advice, count = _advice(df, rows)
            out.write(advice, "overwrite" if left else "errorifexists")
            statuses = _statuses(out, count)
            digest = out.checksum()
            checksums |= {} if digest is None else {"out": digest}
            manifest = output.beside(".yaml")
            job.write(manifest, record_of(job, checksums, count, statuses))
    seconds = {"all": time.perf_counter() - began}
    return Finished(job.out, manifest, count, statuses, False, seconds)


def _read(job: Job, spark: Any) -> tuple[Prepared, SparkTable, DataFrame]:
    """Read all that a job names; all that is wrong with it is said at once."""
    people = SparkTable.named(spark, job.people)

    def table() -> DataFrame:
        with in_plain_words():
            return people.read()

    prepared, df = read_all(lambda: prepare(job, n_jobs=1), table)
    return prepared, people, df


@contextlib.contextmanager
def _claimed(work: Path, job: Job, checksums: dict[str, str], left: bool) -> Iterator[None]:
    """Say for as long as a run lasts, or has not ended well, whose the output is.

    Where nothing is left of an earlier run, it does not matter whose it was.
    """
    work.mkdir(exist_ok=True)
    with alone_in(work):
        if not left:
            (work / "job.yaml").unlink(missing_ok=True)
        claim(work, job, checksums)
        yield
        shutil.rmtree(work)


def _statuses(out: SparkTable, people: int) -> dict[str, int]:
    """Count in what was written how many people have each status."""
    from pyspark.sql import functions as F

    written = out.read().where(F.col("option").cast("int") <= 1)
    counts = {row[0]: row[1] for row in written.groupBy("status").count().collect()}
    if sum(counts.values()) != people:
        raise RuntimeError(
            f"{sum(counts.values())} people came out of {people}. This is a bug; please report it"
        )
    return dict(sorted(counts.items()))


def _row_function(
    df: DataFrame,
    recourse: RobustRecourse,
    columns: PeopleColumns,
    keys: tuple[str, ...],
    where: str,
) -> RowFunction:
    """Return what advises the people of a DataFrame; refuse one that does not fit."""
    import pyarrow as pa

    wanted = dict.fromkeys([*keys, *columns.levels, COMPLAINT])
    names = [name for name in df.columns if name in wanted]
    twice = sorted({repr(name) for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{where} has several columns named {', '.join(twice)}")
    nobody = _plainly_named(df, names).limit(0).toArrow()  # no job: Spark knows what comes out
    schema = nobody.rename_columns(names).schema
    judged = [name for name in names if name in columns.levels]
    first = _plainly_named(df, judged).limit(SAMPLE).collect()
    sample = pa.table(
        {
            name: _cells([row[k] for row in first], schema.field(name).type)
            for k, name in enumerate(judged)
        }
    )
    alone = recourse.with_settings(n_jobs=1)
    rows = RowFunction(alone, columns, schema, keys)
    fit_rows(rows, df.columns, sample, where)
    return rows


def _cells(values: list[Any], kind: Any) -> pa.Array:
    """Return values as Arrow has them; of columns that nobody can use, the type is enough."""
    import pyarrow as pa

    usable = pa.types.is_primitive(kind) or pa.types.is_string(kind) or pa.types.is_decimal(kind)
    if not usable or pa.types.is_temporal(kind):
        return pa.nulls(len(values), kind)
    return pa.array(values, kind)


def _plainly_named(df: DataFrame, names: list[str]) -> DataFrame:
    """Choose columns, and number them: Spark takes a dot in a name for a field of a struct."""
    numbered = df.toDF(*(f"c{k}" for k in range(len(df.columns))))
    places = [df.columns.index(name) for name in names]
    return numbered.select([f"c{k}" for k in places]).toDF(*(f"c{k}" for k in range(len(names))))


def _advice(df: DataFrame, rows: RowFunction) -> tuple[DataFrame, int]:
    """Return the advice, not computed yet, and how many people there are."""
    from pyspark.sql import functions as F

    people = _planned_once(_plainly_named(df, list(rows.schema.names)))
    counted = people.groupBy(F.spark_partition_id().alias("k")).count().collect()
    counts = np.zeros(max((row[0] for row in counted), default=-1) + 1, dtype=np.int64)
    for k, count in counted:
        counts[k] = count
    before = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    placed = people.withColumn("place", F.monotonically_increasing_id())
    work = _Partition(rows, before, versions(*PARTS))
    return placed.mapInArrow(work, _out_schema(df, rows)), int(counts.sum())


def _out_schema(df: DataFrame, rows: RowFunction) -> StructType:
    """Return what comes back, as Spark says it; keys are what they were."""
    from pyspark.sql import types

    plain = {
        "int64": types.LongType(),
        "int32": types.IntegerType(),
        "double": types.DoubleType(),
        "bool": types.BooleanType(),
        "string": types.StringType(),
    }
    given = {field.name: field.dataType for field in df.schema}
    same = {key: given[key] for key in rows.keys}
    for name, levels in rows.columns.levels.items():
        if levels == ():  # it goes through
            same |= {f"person.{name}": given[name], f"recourse.{name}": given[name]}
    return types.StructType(
        [
            types.StructField(field.name, same.get(field.name) or plain[str(field.type)])
            for field in rows.out_schema
        ]
    )


def _planned_once(df: DataFrame) -> DataFrame:
    """Settle what the partitions are, before they are counted and while they are advised.

    Spark plans a DataFrame anew each time it is used, and how it cuts files depends on how many
    executors are there at that moment: people would get each other's positions. Nothing is kept
    but the plan, and a lost partition is computed again from it.
    """
    from pyspark.sql import DataFrame

    session, java = df.sparkSession, getattr(df, "_jdf", None)
    if java is None:
        raise ValueError("this is a DataFrame of Spark Connect; Holdfast needs a classic session")
    rows = java.queryExecution().toRdd()
    fixed = session._jsparkSession.internalCreateDataFrame(rows, java.schema(), False)
    return DataFrame(fixed, session)


@dataclass(frozen=True, eq=False)
class _Partition:
    """What an executor does with a partition: Arrow batches in, Arrow batches out."""

    rows: RowFunction
    before: np.ndarray[Any, Any]  # people in the partitions before each
    versions: dict[str, str]  # of the driver

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from threadpoolctl import threadpool_limits

        self._check_versions()
        blocks = Blocks(batches)
        with threadpool_limits(1):  # a task has one core
            while (table := blocks.take(_PEOPLE)).num_rows:
                yield from self._advise(table).to_batches(max_chunksize=_ROWS)

    def _advise(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa

        schema = self.rows.schema
        people = table.select(range(len(schema))).rename_columns(schema.names).cast(schema)
        ids = table["place"].to_numpy()
        places = self.before[ids >> _POSITION_BITS] + (ids & ((1 << _POSITION_BITS) - 1))
        advice = self.rows(people)
        placed = pa.array(places[advice["row"].to_numpy()], pa.int64())
        return advice.set_column(0, advice.schema.field(0), placed)

    def _check_versions(self) -> None:
        """Refuse other releases than the driver's: they might give other bits."""
        mine = versions(*PARTS)
        differ = [
            f"{name} {mine.get(name)} in place of {version}"
            for name, version in self.versions.items()
            if mine.get(name) != version
        ]
        if differ:
            raise ValueError(
                f"an executor has different versions from the driver: {', '.join(differ)}; give "
                "them all the same environment"
            )
