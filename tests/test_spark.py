"""Spark gives the rows and the bits of one machine, on real executors, one of them killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast import ActionSet
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.engines.local import run_job
from holdfast.files.jobs import Job, load_job, prepare
from holdfast.files.models import save_model
from holdfast.files.recourse import RecourseFile, manifest_of
from holdfast.machinery.versions import versions

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java runtime", allow_module_level=True)

from holdfast.engines import spark as on_spark  # noqa: E402

CLUSTER = "local-cluster[2,1,1024]"  # two executors, each a process with one core
SOURCES = str(Path(holdfast.__file__).parents[1])
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executorEnv.PYTHONPATH": SOURCES,
    "spark.executorEnv.HOLDFAST_QUIET": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """How executors find Spark and Python; what they write goes to a temporary directory."""
    home = tmp_path_factory.mktemp("home")
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":  # where executors write
            (home / path.name).symlink_to(path)
    return {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }


@pytest.fixture(scope="module")
def spark(environment, tmp_path_factory):
    from pyspark.sql import SparkSession

    place = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master(CLUSTER)
        for name, value in CONF.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.sql.warehouse.dir", str(place / "warehouse"))
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A directory with a model, what people can do, and people, some of whom cannot be used."""
    place = tmp_path_factory.mktemp("german")
    data = load_german()
    table = data.features
    numbers = [name for name in table if table[name].dtype.kind in "if"]
    categories = [name for name in table if name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), categories))
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(table, data.approved)
    save_model(model, place / "model.skops", True)
    ActionSet.from_data(table, immutable=["age", "personal_status", "foreign_worker"]).save(
        place / "actions.yaml"
    )
    denied = table[~model.predict(table)].reset_index(drop=True)[:120]
    pq.write_table(people_of(denied), place / "people.parquet", row_group_size=50)
    return place


def people_of(denied: pd.DataFrame) -> pa.Table:
    people = denied.copy()
    people["duration"] = people["duration"].astype(float)
    people["credit_amount"] = people["credit_amount"].astype(float)
    people["savings_status"] = people["savings_status"].astype(object)
    people.loc[3, "duration"] = -np.inf
    people.loc[17, "credit_amount"] = np.inf
    people.loc[18, "credit_amount"] = np.nan
    people.loc[40, "savings_status"] = "under the mattress"
    people.loc[41, "savings_status"] = None
    hours = np.arange(len(people)).astype("datetime64[h]").astype("datetime64[us]")
    keys = {
        "id.no": pa.array([f"a{k}" for k in range(len(people))]),
        "since": pa.array(hours, pa.timestamp("us", "UTC")),
    }
    return pa.table(keys | {name: pa.array(people[name], from_pandas=True) for name in people})


def job_of(world: Path, out: Path, **changes) -> Job:
    job = Job(
        str(world / "model.skops"),
        str(world / "people.parquet"),
        str(world / "actions.yaml"),
        str(out),
        "p=1,radius=0.1",
        guarantee=0.5,
        n_options=2,
        keys=["id.no", "since"],
    )
    return job.with_changes(**changes)


@pytest.fixture(scope="module")
def local(world) -> pa.Table:
    """What one machine says."""
    run_job(job_of(world, world / "local.parquet"), n_jobs=1)
    return pq.read_table(world / "local.parquet")


def in_order(advice) -> pa.Table:
    return advice.toArrow().sort_by([("row", "ascending"), ("option", "ascending")])


def check_same(got: pa.Table, expected: pa.Table) -> None:
    """Compare names, types and bits; NaN is not equal to itself, but there is none."""
    assert got.schema.names == expected.schema.names
    assert got.schema.types == expected.schema.types
    for name in expected.schema.names:
        assert got[name].combine_chunks() == expected[name].combine_chunks(), name


def recourse_of(world: Path) -> holdfast.RobustRecourse:
    return prepare(job_of(world, world / "nowhere.parquet")).recourse


def cut(spark, world: Path):
    """Read people in more partitions than there are groups of rows."""
    path = world / "people.parquet"
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(path.stat().st_size // 5))
    return spark.read.parquet(str(path))


def test_the_bits_are_those_of_one_machine(spark, world, local):
    statuses = set(local["status"].to_pylist())
    assert {"invalid input", "optimal"} <= {status.replace("_", " ") for status in statuses}
    assert max(local["option"].to_pylist()) == 2
    df = cut(spark, world)
    counts = [len(rows) for rows in df.select("age").rdd.glom().collect()]
    assert len(counts) > 4
    assert 0 in counts  # a partition without anybody
    assert sum(counts) == 120
    advice = on_spark.recommend(df, recourse_of(world), keys=["id.no", "since"])
    check_same(in_order(advice), local)
    # however the partitions are joined afterwards
    check_same(in_order(advice.coalesce(2)), local)


def test_positions_are_those_of_the_dataframe(spark, world, local):
    df = spark.read.parquet(str(world / "people.parquet")).repartition(3)
    advice = on_spark.recommend(df, recourse_of(world), keys=["id.no", "since"])
    got = in_order(advice)
    assert sorted(set(got["row"].to_pylist())) == list(range(120))
    by_key = [("id.no", "ascending"), ("option", "ascending")]
    check_same(got.sort_by(by_key).drop(["row"]), local.sort_by(by_key).drop(["row"]))


def test_a_table_of_nobody(spark, world, local):
    schema = spark.read.parquet(str(world / "people.parquet")).schema
    for df in (spark.createDataFrame([], schema), spark.createDataFrame([], schema).coalesce(1)):
        advice = on_spark.recommend(df, recourse_of(world), keys=["id.no", "since"])
        check_same(in_order(advice), local[:0])


def test_all_that_is_wrong_with_a_table_is_said_at_once(spark, world):
    df = spark.read.parquet(str(world / "people.parquet"))
    df = df.drop("age").withColumn("purpose", df["since"]).withColumn("housing", df["duration"])
    with pytest.raises(ValueError, match="does not fit") as told:
        on_spark.recommend(df, recourse_of(world), keys=["nobody", "row"])
    text = str(told.value)
    for part in (
        "no column 'age'",
        "'purpose' holds timestamp[us, tz=UTC]",
        "'housing' holds",
        "no column 'nobody'",
        "the key 'row' has the same name as a column",
    ):
        assert part in text
    assert "n_jobs" not in text


def test_a_name_that_is_there_twice_is_refused(spark, world):
    df = spark.read.parquet(str(world / "people.parquet"))
    with pytest.raises(ValueError, match="several columns named 'age'"):
        on_spark.recommend(df.select("*", "age"), recourse_of(world))


def executors() -> list[int]:
    """Return the processes of executors that this process has started, directly or not."""
    parents, found = {}, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            parents[int(place.name)] = int(
                (place / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:  # ended meanwhile
            continue
        if b"CoarseGrainedExecutorBackend" in command and b"java" in command.split(b"\0")[0]:
            found.append(int(place.name))

    def is_ours(process: int) -> bool:
        while process > 1:
            process = parents.get(process, 0)
            if process == os.getpid():
                return True
        return False

    return [process for process in found if is_ours(process)]


def test_a_killed_executor_changes_nothing(spark, world, local):
    df = cut(spark, world)
    for _ in range(2):
        df = df.union(df)
    advice = on_spark.recommend(df, recourse_of(world), keys=["id.no", "since"])
    context, outcome = spark.sparkContext, {}

    def work() -> None:
        context.setJobGroup("killed", "advise")
        outcome["table"] = in_order(advice)

    thread = threading.Thread(target=work)
    thread.start()
    tracker = context.statusTracker()

    def stages() -> list:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("killed")]
        infos = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return [info for info in infos if info is not None]

    while thread.is_alive():
        if any(each.numCompletedTasks >= 2 and each.numActiveTasks >= 2 for each in stages()):
            break
        time.sleep(0.01)
    assert thread.is_alive()
    before = executors()
    assert len(before) == 2
    os.kill(before[0], signal.SIGKILL)
    thread.join()
    assert sum(each.numFailedTasks for each in stages()) >= 1
    expected = pa.concat_tables(
        local.set_column(0, "row", pa.array(local["row"].to_numpy() + 120 * k)) for k in range(4)
    )
    check_same(outcome["table"], expected)


def test_other_releases_on_an_executor_are_refused():
    partition = on_spark._Partition(None, np.zeros(0, np.int64), versions() | {"numba": "0.1"})
    with pytest.raises(ValueError, match=r"numba [0-9.]+ in place of 0\.1"):
        next(partition(iter([])))


def command(world: Path, out: Path | str, *more: str, people: str | None = None) -> list[str]:
    return [
        "recommend",
        str(world / "model.skops"),
        people or str(world / "people.parquet"),
        *("--actions", str(world / "actions.yaml"), "--robust-to", "p=1,radius=0.1"),
        *("--guarantee", "0.5", "--options", "2", "--key", "id.no"),
        *("--engine", "spark", "--out", str(out), *more),
    ]


def examples() -> list[str]:
    """The Python of the page on clusters."""
    page = Path(__file__).parents[1] / "docs" / "cluster.md"
    return re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_example_of_the_page(spark, world, local, tmp_path):
    people = spark.read.parquet(str(world / "people.parquet")).withColumnRenamed("id.no", "id")
    out = tmp_path / "recourse.parquet"  # Java does not follow who changes the directory
    code = examples()[0].replace('"recourse.parquet"', repr(str(out)))
    exec(code, {"people": people, "recourse": recourse_of(world)})
    check_same(pq.read_table(out), local.drop(["since"]).rename_columns({"id.no": "id"}))


@pytest.mark.slow
def test_a_submitted_job(environment, world, local, tmp_path):
    """As the page says: its file, submitted; the cluster's settings come from a file of Spark's."""
    script, conf, out = tmp_path / "run.py", tmp_path / "conf", tmp_path / "out.parquet"
    script.write_text(examples()[1])
    conf.mkdir()
    settings = CONF | {"spark.master": "local-cluster[1,1,1024]"}
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    said = {"PYTHONPATH": SOURCES, "PYSPARK_DRIVER_PYTHON": sys.executable}
    ended = subprocess.run(
        [
            str(Path(environment["SPARK_HOME"]) / "bin" / "spark-submit"),
            *(str(script), *command(world, out, "--json")),
        ],
        capture_output=True,
        text=True,
        env=os.environ | environment | said | {"SPARK_CONF_DIR": str(conf)},
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])  # spark-submit mixes what is said beside in
    assert told["people"] == 120
    assert not told["was_done"]
    check_same(pq.read_table(out), local.drop(["since"]))
    job, run = load_job(manifest_of(out))
    assert job.engine == run["engine"] == "spark"
    assert run["counts"] == {"people": 120, "status": told["status"]}
    assert set(run["checksums"]) == {"model", "actions", "people", "out"}
    assert not out.with_name("out.parquet.work").exists()
    left = RecourseFile.open(out)
    assert left.recourse().n_options == 2
    assert left.frame(["row"])["row"].is_monotonic_increasing


def test_an_output_that_is_there(spark, world, local, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    # a run of other settings that has written nothing is in nobody's way
    (tmp_path / "out.parquet.work").mkdir()
    job_of(world, out, engine="spark").write(
        tmp_path / "out.parquet.work" / "job.yaml", {"checksums": {}}
    )
    assert main(command(world, out)) == 0
    manifest, first = manifest_of(out).read_text(), capsys.readouterr().out
    assert "120 people" in first
    assert main(command(world, out)) == 0
    assert "already did this" in capsys.readouterr().out
    assert main(command(world, out, "--guarantee", "0.6")) == 2
    assert "guarantee was 0.5, and is now 0.6" in capsys.readouterr().err
    assert manifest_of(out).read_text() == manifest
    # a driver that was killed: the claim is there, and half of the output
    work = tmp_path / "out.parquet.work"
    work.mkdir()
    job, run = load_job(manifest_of(out))
    job.write(work / "job.yaml", {"checksums": {**run["checksums"]}})
    manifest_of(out).unlink()
    parts = sorted(out.glob("part-*"))
    parts[0].unlink()
    assert main(command(world, out, "--guarantee", "0.6")) == 2
    assert "belongs to another run" in capsys.readouterr().err
    assert main(command(world, out)) == 0
    check_same(pq.read_table(out), local.drop(["since"]))
    assert not work.exists()
    # of somebody else
    manifest_of(out).unlink()
    assert main(command(world, out)) == 2
    assert "already exists and was not written by holdfast" in capsys.readouterr().err


def test_csv_as_one_machine_reads_it(spark, world, tmp_path, capsys):
    people = pq.read_table(world / "people.parquet").to_pandas()[:30].drop(columns="since")
    people.loc[5, "id.no"] = 'two\nlines, "quoted"'
    people.loc[6, "purpose"] = " "
    text = people.to_csv(index=False, sep=";", na_rep="NA").splitlines(keepends=True)
    text[10] = "short;line\n"
    text[12] = text[12].rstrip("\n") + ";too;long\n"
    (tmp_path / "people.csv").write_text("".join(text) + "\n", encoding="utf-8-sig")
    for engine in ("spark", "local"):  # said last, it counts
        out = tmp_path / f"{engine}.parquet"
        given = command(world, out, "--engine", engine, people=str(tmp_path / "people.csv"))
        assert main(given) == 0, capsys.readouterr().err
    got, expected = (pq.read_table(tmp_path / f"{each}.parquet") for each in ("spark", "local"))
    reasons = [reason for reason in got["reason"].to_pylist() if "one cell for each" in reason]
    assert len(reasons) == 2
    check_same(got.drop(["reason"]), expected.drop(["reason"]))


def test_tables_of_the_catalog(spark, world, local, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    spark.read.parquet(str(world / "people.parquet")).coalesce(1).write.saveAsTable("people")
    try:
        assert main(command(world, "advice", people="default.people")) == 0
        check_same(in_order(spark.table("advice")), local.drop(["since"]))
        job, run = load_job(tmp_path / "advice.yaml")
        assert (job.people, job.out) == ("default.people", "advice")
        assert run["counts"]["people"] == 120
        assert "people" not in run["checksums"]
        capsys.readouterr()
        assert main(command(world, "advice", people="default.people")) == 2
        assert "impossible to tell whether default.people" in capsys.readouterr().err
    finally:
        spark.sql("drop table if exists people")
        spark.sql("drop table if exists advice")


@pytest.mark.parametrize(
    ("people", "said"),
    [
        ("nowhere.parquet", "nowhere.parquet"),
        ("no.such_table", "such_table"),
        ("people.arrow", "use .parquet"),
    ],
)
def test_people_who_are_not_there(spark, world, tmp_path, people, said, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(command(world, "out.parquet", people=people)) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []
