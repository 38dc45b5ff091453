"""How fast `holdfast recommend` is from file to file, and how much memory it takes.

    python benchmarks/files.py numbers --people 10000000
    python benchmarks/files.py german --people 1000000

Two jobs: a linear model of 28 numbers, which may go anywhere; and German Credit, all 20 features
in raw units, within an action set. Both with an L1 ball of models of radius 0.1 and a guarantee of
0.5, from Parquet to Parquet, by the command itself, as a user runs it. Memory is that of all
processes together (proportional set size, so that shared pages count once), looked at ten times a
second. The share that is not solving is of all seconds of all processors: reading, writing,
starting, waiting.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german
from holdfast.files.models import save_model

BLOCK = 250_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["numbers", "german"])
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, help="where the files lie (default: temporary)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as name:
        place = Path(name)
        make = make_numbers if options.what == "numbers" else make_german
        make(place, min(options.people, 20_000))
        run(place, "warm.parquet")  # compiles the solvers, outside of the clock
        make(place, options.people)
        seconds, memory, told = run(place, "recourse.parquet")
        show(options.what, options.people, seconds, memory, told)


def make_numbers(place: Path, people: int) -> None:
    """Write a linear model of 28 numbers, its action set, and people whom it denies."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(28)]
    weights = rng.normal(size=28)
    table = pd.DataFrame(rng.normal(size=(20_000, 28)), columns=names)
    labels = table.to_numpy() @ weights + rng.logistic(size=len(table)) > 0
    model = LogisticRegression().fit(table, labels)
    save_model(model, place / "model.skops", True)
    actions = holdfast.ActionSet.from_data(table)
    for name in names:
        actions.set(name, step=None, fixed_cost=0, lower=None, upper=None, cost=1.0)
    actions.save(place / "actions.yaml")

    def draw(count: int) -> pd.DataFrame:
        some = rng.normal(size=(3 * count, 28))
        denied = some[some @ model.coef_[0] + model.intercept_[0] < 0.0][:count]
        return pd.DataFrame(denied, columns=names)

    write(place / "people.parquet", people, draw)


def make_german(place: Path, people: int) -> None:
    """Write a model of German Credit, its action set, and people drawn feature by feature."""
    german = load_german()
    table, default = german.features, (~german.approved).astype(int)
    numbers = [name for name in table if table[name].dtype.kind in "if"]
    others = [name for name in table if name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), others))
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(table, default)
    save_model(model, place / "model.skops", 0)
    fixed = ["personal_status", "foreign_worker"]
    actions = holdfast.ActionSet.from_data(table, immutable=fixed, protected=["age"])
    actions.save(place / "actions.yaml")
    rng = np.random.default_rng(0)

    def draw(count: int) -> pd.DataFrame:
        drawn = pd.DataFrame(
            {name: rng.choice(table[name].to_numpy(), 8 * count) for name in table}
        )
        denied = drawn[model.predict(drawn) == 1].head(count)
        assert len(denied) == count
        return denied

    write(place / "people.parquet", people, draw)


def write(path: Path, people: int, draw) -> None:
    writer = None
    for begin in range(0, people, BLOCK):
        table = pa.Table.from_pandas(draw(min(BLOCK, people - begin)), preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def run(place: Path, out: str) -> tuple[float, float, dict]:
    """Run the command; return its seconds, its peak memory in bytes, and what it says."""
    command = [sys.executable, "-m", "holdfast", "recommend", "model.skops", "people.parquet"]
    command += ["--actions", "actions.yaml", "--guarantee", "0.5", "--robust-to", "p=1,radius=0.1"]
    command += ["--out", out, "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, sum(map(memory_of, family(process.pid))))
        time.sleep(0.1)
    seconds = time.perf_counter() - began
    if process.returncode:
        raise SystemExit(process.returncode)
    return seconds, peak, json.loads(process.stdout.read())


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    try:
        path = f"/proc/{pid}/task/{pid}/children"
        return [
            pid,
            *(each for child in Path(path).read_text().split() for each in family(int(child))),
        ]
    except OSError:
        return [pid]


def memory_of(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def show(what: str, people: int, seconds: float, memory: float, told: dict) -> None:
    processors = os.cpu_count() or 1
    spent = told["seconds"]
    print(f"{what}: {people:,} people, {processors} processors")
    print(f"  {seconds:,.1f} s, {people / seconds:,.0f} people a second")
    print(f"  {memory / 2**30:.2f} GiB at most, of all processes together")
    print(f"  {1.0 - spent['solve'] / (processors * seconds):.0%} of all seconds are not solving")
    print(f"  {', '.join(f'{name} {value:,.1f} s' for name, value in spent.items())}")
    print(f"  {told['status']}")


if __name__ == "__main__":
    main()
