"""How fast is advice in raw units? Milliseconds a row, beside the solver on the same problem.

    python benchmarks/recommend.py [--rows 2000] [--threads 1 2] [--repeats 15]

German Credit with all its 20 features, 13 of them categories, and a table of ten numbers; people
are drawn with replacement from those who are denied. Kernels are compiled before the clock starts.
The solver, `recommend` and `to_frame` are timed in turns, and medians count, for the speed of a
machine varies. `ratio` is that of recommend and to_frame together to the solver alone: by the
clock, and of the time of all processors, for the solver keeps more than one busy. Memory is
measured in processes of their own: the most that is resident while `recommend` and `to_frame` run,
beyond what was there before and the tables that come back, for two numbers of rows. What it grows
by from one to the other is `bytes a row`; the rest is there however many rows there are.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import pose_problem
from holdfast.datasets import load_german
from holdfast.discrete import solve_discrete
from holdfast.models.encoding import Encoding

BALL = NormBall(p=1, radius=0.1)
MEMORY_ROWS = (20_000, 200_000)
BARS = {"ratio": 1.5, "options": 3.0, "explain": 100.0, "memory": 1000.0}


class World(NamedTuple):
    """People who are denied, the model that denies them, and what they can do."""

    model: Any
    people: pd.DataFrame
    actions: ActionSet
    few: ActionSet  # what they can do where hardly anything helps

    def recourse(self, threads: int, n_options: int = 1) -> RobustRecourse:
        return RobustRecourse(
            self.model,
            robust_to=BALL,
            actions=self.actions,
            guarantee=0.5,
            n_options=n_options,
            n_jobs=threads,
        )


def german() -> World:
    data = load_german()
    table = data.features
    numbers = [name for name in table if table[name].dtype.kind in "if"]
    categories = [name for name in table if name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), categories))
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(table, data.approved)
    fixed = ["age", "personal_status", "foreign_worker"]
    most = [name for name in table if name not in ("duration", "credit_amount", "purpose")]
    return World(
        model,
        table[~model.predict(table)],
        ActionSet.from_data(table, immutable=fixed),
        ActionSet.from_data(table, immutable=most),
    )


def ten_numbers() -> World:
    rng = np.random.default_rng(10)
    table = pd.DataFrame(rng.normal(size=(1000, 10)).round(2), columns=list("abcdefghij"))
    approved = table @ rng.normal(size=10) + rng.logistic(size=1000) > 0.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, approved)
    few = ActionSet.from_data(table, immutable=list("cdefghij"))
    return World(model, table[~model.predict(table)], ActionSet.from_data(table), few)


WORLDS = {"German Credit": german, "ten numbers": ten_numbers}


def drawn(world: World, rows: int) -> pd.DataFrame:
    return world.people.sample(rows, replace=True, random_state=0).reset_index(drop=True)


class Spent(NamedTuple):
    """Seconds: by the clock, and of all processors."""

    clock: float
    processors: float


def spent(what: Callable[[], Any]) -> tuple[Spent, Any]:
    """Return how long something takes, and what comes back."""
    begin, before = time.perf_counter(), time.process_time()
    result = what()
    return Spent(time.perf_counter() - begin, time.process_time() - before), result


def times(world: World, rows: int, threads: int, repeats: int) -> dict[str, float]:
    """Milliseconds a row, and ratios to the solver: medians of what is measured in turns."""
    people, recourse = drawn(world, rows), world.recourse(threads)
    recourse.recommend(people[:5]).to_frame()  # compiles
    posed = pose_problem(people, Encoding.of(world.model), world.actions, robust_to=BALL)
    turns = []
    for _ in range(repeats):
        solver, _ = spent(lambda: solve_discrete(posed.problem, guarantee=0.5, n_jobs=threads))
        advice, result = spent(lambda: recourse.recommend(people))
        frame, _ = spent(result.to_frame)
        turns.append([solver, advice, frame])
    seconds = np.array(turns)  # (turns, what, by which watch)
    ratios = seconds[:, 1:].sum(axis=1) / seconds[:, 0]
    names, medians = ("solver", "recommend", "to_frame"), np.median(seconds[:, :, 0], axis=0)
    ratio, processors = np.median(ratios, axis=0)
    per_row = dict(zip(names, medians / rows * 1e3, strict=True))
    return {**per_row, "ratio": ratio, "processors": processors}


def options_time(world: World, rows: int, repeats: int) -> float:
    """Milliseconds a row for three ways and their table."""
    several, some = world.recourse(-1, n_options=3), drawn(world, max(rows // 4, 1))
    several.recommend(some[:5]).to_frame()
    seconds = [spent(lambda: several.recommend(some).to_frame())[0].clock for _ in range(repeats)]
    return float(np.median(seconds)) / len(some) * 1e3


def explain_time(world: World, repeats: int) -> float:
    """Milliseconds to explain to somebody why nothing helps: the mean over 20 people."""
    recourse = world.recourse(-1).set_params(actions=world.few, guarantee=0.9)
    people = drawn(world, 200)
    result = recourse.recommend(people)
    lost = [k for k in people.index if result.status_of(k) is Status.INFEASIBLE][:20]
    turns = []
    for _ in range(repeats):
        result = recourse.recommend(people)  # anew: what was explained is remembered
        turns.append([spent(partial(result.explain, label))[0].clock for label in lost])
    return float(np.median(turns, axis=0).mean()) * 1e3 if lost else np.nan


def measure_memory(world: World, rows: int) -> int:
    """Bytes at the most, beyond input and output; only in a process of its own."""
    people, recourse = drawn(world, rows), world.recourse(-1)
    recourse.recommend(people[:50]).to_frame()
    gc.collect()
    before = most_resident()
    result = recourse.recommend(people)
    frame = result.to_frame()
    grown = most_resident() - before
    known = sum(int(t.memory_usage(deep=True).sum()) for t in (frame, result.after()))
    return grown - known


def most_resident() -> int:
    """Return the most bytes that this process ever held."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Memory(NamedTuple):
    """What people take: bytes for each of them, and what is there for any number of them."""

    row: float
    fixed: float


def memory(name: str) -> Memory:
    grown = []
    for rows in MEMORY_ROWS:
        command = [sys.executable, __file__, "--memory", name, str(rows)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        grown.append(int(printed))
    row = (grown[1] - grown[0]) / (MEMORY_ROWS[1] - MEMORY_ROWS[0])
    return Memory(row, grown[0] - row * MEMORY_ROWS[0])


def verdict(value: float, bar: str, digits: int) -> str:
    return f"{value:,.{digits}f}" if value <= BARS[bar] else f"[red]{value:,.{digits}f}[/red]"


def headed(title: str, *heads: str) -> Table:
    table = Table(title=title)
    for head in ("table", *heads):
        table.add_column(head, justify="right")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--memory", nargs=2, metavar=("TABLE", "ROWS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        name, rows = chosen.memory
        print(measure_memory(WORLDS[name](), int(rows)))
        return
    console = Console(width=100)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    heads = ("threads", "solver alone", "recommend", "to_frame", "ratio", "ratio, processors")
    timed = headed(f"{chosen.rows:,} rows, milliseconds a row", *heads)
    others = headed(
        "All processors",
        "n_options=3, ms a row",
        "explain, ms each",
        "bytes a row",
        "fixed, megabytes",
    )
    for name, make in WORLDS.items():
        world = make()
        for threads in chosen.threads:
            found = times(world, chosen.rows, threads, chosen.repeats)
            timed.add_row(
                name,
                str(threads),
                *(f"{found[key]:.3f}" for key in ("solver", "recommend", "to_frame")),
                *(verdict(found[key], "ratio", 2) for key in ("ratio", "processors")),
            )
        taken = memory(name)
        others.add_row(
            name,
            verdict(options_time(world, chosen.rows, chosen.repeats), "options", 2),
            verdict(explain_time(world, chosen.repeats), "explain", 1),
            verdict(taken.row, "memory", 0),
            f"{taken.fixed / 1e6:.1f}",
        )
    timed.add_row("at most", *[""] * 4, *[f"{BARS['ratio']:g}"] * 2)
    others.add_row("at most", *(f"{BARS[bar]:g}" for bar in ("options", "explain", "memory")), "")
    console.print(timed)
    console.print(others)


if __name__ == "__main__":
    main()
