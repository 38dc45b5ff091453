"""How many people a core advises in a second, and what a billion people cost on a cluster.

    python benchmarks/cluster.py [--people 200000] [--repeats 2] [--price 0.05]

The two jobs of `files.py`: a linear model of 28 numbers, and German Credit within an action set,
with an L1 ball of models of radius 0.1 and a guarantee of 0.5, from Parquet to Parquet. Each is run
by the local engine in one process, and by Spark on one core (`local[1]`), after the solvers have
been compiled. Processor seconds count, those of all processes that take part, Java's too, so that
it hardly matters who else uses the machine; the least of several runs. From there on it is
multiplication. The price is that of one core for an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from files import make_german, make_numbers
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from holdfast.engines.local import run_job
from holdfast.engines.spark import run_on_spark
from holdfast.files.jobs import Job

BILLION = 1_000_000_000
NODES, CORES = 100, 16
WORLDS = {"28 numbers": make_numbers, "German Credit": make_german}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--price", type=float, default=0.05)
    options = parser.parse_args()
    console = Console(width=120)
    console.print(f"Python {platform.python_version()}, {processor()}")
    title = f"{options.people:,} people; a billion on {NODES} machines of {CORES} cores"
    table = Table(title=title)
    heads = ["local, people per core and second", "Spark, people per core and second"]
    heads += ["MB per Python worker", "core hours for a billion", "minutes on all", "price"]
    for head in ("table", *heads):
        table.add_column(head, justify="right")
    start_spark()
    for name, make in WORLDS.items():
        with tempfile.TemporaryDirectory() as place:
            table.add_row(name, *figures(Path(place), make, options))
    console.print(table)


def start_spark() -> None:
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "2g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")


def figures(place: Path, make: Callable[[Path, int], None], options: Any) -> list[str]:
    """Return the cells of one job, in words."""
    make(place, 20_000)  # compiles, Java too
    seconds_of(place, "local", 0)
    seconds_of(place, "spark", 0)
    make(place, options.people)
    runs = range(1, options.repeats + 1)
    alone, spark = (
        options.people / min(seconds_of(place, engine, k) for k in runs)
        for engine in ("local", "spark")
    )
    hours = BILLION / spark / 3600
    return [
        f"{alone:,.0f}",
        f"{spark:,.0f}",
        f"{largest_worker() / 1e6:,.0f}",
        f"{hours:,.0f}",
        f"{60 * hours / (NODES * CORES):.1f}",
        f"{hours * options.price:,.2f}",
    ]


def seconds_of(place: Path, engine: str, number: int) -> float:
    """Advise everybody, from file to file; return the processor seconds of all processes."""
    out = f"{engine}-{number}.parquet"
    job = Job(
        *(str(place / name) for name in ("model.skops", "people.parquet", "actions.yaml", out)),
        "p=1,radius=0.1",
        guarantee=0.5,
        engine=engine,
    )
    with threadpool_limits(1), Clock() as clock:
        run_job(job, n_jobs=1) if engine == "local" else run_on_spark(job)
    return clock.seconds


class Clock:
    """Counts the processor seconds of this process and of all that it has started.

    It looks ten times a second: of a process that ends, its parent need not know what it has spent.
    """

    def __enter__(self) -> Clock:
        self.before = ticks_of(family(os.getpid()))
        self.after = dict(self.before)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.ended.wait(0.1):
            self.after |= ticks_of(family(os.getpid()))

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.after |= ticks_of(family(os.getpid()))
        ticks = sum(self.after.values()) - sum(self.before.values())
        self.seconds = ticks / os.sysconf("SC_CLK_TCK")


def ticks_of(processes: list[int]) -> dict[int, int]:
    """Return what each of some processes has spent so far, in it and for it."""
    found = {}
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = sum(map(int, after_name[11:13]))
    return found


def largest_worker() -> float:
    """Return the most bytes that a Python worker of Spark's ever held."""
    most = 0.0
    for pid in family(os.getpid())[1:]:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"pyspark.daemon" in command:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            peak = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
            most = max(most, *(1024.0 * each for each in peak))
    return most


def family(pid: int) -> list[int]:
    """Return a process and all that its threads have started."""
    children = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended
            children += [int(child) for child in path.read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


def processor() -> str:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
