"""How fast is advice in raw units? Milliseconds a row, beside the solver on the same problem.

    python benchmarks/recommend.py [--rows 2000] [--threads 2] [--repeats 3]

German Credit with all its 20 features, 13 of them categories, and a table of ten numbers; people
are drawn with replacement from those who are denied. Kernels are compiled before the clock starts,
and the least of several runs counts. `ratio` is that of recommend and to_frame together to the
solver alone: by the clock, and of the time of all processors, for the solver keeps more than one
busy. Memory is measured in a process of its own: the most that is resident while `recommend` and
`to_frame` run, beyond what was there before and the tables that come back.
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
MEMORY_ROWS = (2_000, 20_000, 200_000)
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


def least(repeats: int, what: Callable[[], Any]) -> tuple[Spent, Any]:
    """Return the least seconds of several runs, and what came back."""
    spent, result = [], None
    for _ in range(repeats):
        begin, before = time.perf_counter(), time.process_time()
        result = what()
        spent.append((time.perf_counter() - begin, time.process_time() - before))
    return Spent(*np.min(spent, axis=0)), result


def times(world: World, rows: int, threads: int, repeats: int) -> dict[str, float]:
    """Milliseconds a row."""
    people, recourse = drawn(world, rows), world.recourse(threads)
    recourse.recommend(people[:5]).to_frame()  # compiles
    posed = pose_problem(people, Encoding.of(world.model), world.actions, robust_to=BALL)
    solver, _ = least(repeats, lambda: solve_discrete(posed.problem, guarantee=0.5, n_jobs=threads))
    advice, result = least(repeats, lambda: recourse.recommend(people))
    frame, _ = least(repeats, result.to_frame)
    several = world.recourse(threads, n_options=3)
    some = people[: max(rows // 4, 1)]
    options, _ = least(1, lambda: several.recommend(some).to_frame())
    return {
        "solver": solver.clock / rows * 1e3,
        "recommend": advice.clock / rows * 1e3,
        "to_frame": frame.clock / rows * 1e3,
        "ratio": (advice.clock + frame.clock) / solver.clock,
        "processors": (advice.processors + frame.processors) / solver.processors,
        "options": options.clock / len(some) * 1e3,
    }


def explain_time(world: World, threads: int, repeats: int) -> float:
    """Milliseconds to explain to somebody why nothing helps: the mean over 20 people."""
    recourse = world.recourse(threads).set_params(actions=world.few, guarantee=0.9)
    people = drawn(world, 200)
    result = recourse.recommend(people)
    lost = [k for k in people.index if result.status_of(k) is Status.INFEASIBLE][:20]
    spent = []
    for _ in range(repeats):
        result = recourse.recommend(people)  # anew: what was explained is remembered
        spent.append([least(1, partial(result.explain, label))[0].clock for label in lost])
    return float(np.min(spent, axis=0).mean()) * 1e3 if lost else np.nan


def measure_memory(world: World, rows: int, threads: int) -> float:
    """Bytes a row at the most, beyond input and output; only in a process of its own."""
    people, recourse = drawn(world, rows), world.recourse(threads)
    recourse.recommend(people[:50]).to_frame()
    gc.collect()
    before = most_resident()
    result = recourse.recommend(people)
    frame = result.to_frame()
    grown = most_resident() - before
    known = sum(int(t.memory_usage(deep=True).sum()) for t in (frame, result.after()))
    return (grown - known) / rows


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


def memory(name: str, rows: int, threads: int) -> float:
    command = [sys.executable, __file__, "--memory", name, str(rows), "--threads", str(threads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def verdict(value: float, bar: str, digits: int) -> str:
    return f"{value:,.{digits}f}" if value <= BARS[bar] else f"[red]{value:,.{digits}f}[/red]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", nargs=2, metavar=("TABLE", "ROWS"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        name, rows = chosen.memory
        print(measure_memory(WORLDS[name](), int(rows), chosen.threads))
        return
    console = Console(width=140)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    table = Table(title=f"{chosen.rows:,} rows, {chosen.threads} threads, milliseconds a row")
    heads = (
        "solver alone",
        "recommend",
        "to_frame",
        "ratio",
        "ratio, processors",
        "n_options=3",
        "explain, each",
    )
    for head in ("table", *heads, *(f"bytes a row at {rows:,}" for rows in MEMORY_ROWS)):
        table.add_column(head, justify="right")
    for name, make in WORLDS.items():
        world = make()
        found = times(world, chosen.rows, chosen.threads, chosen.repeats)
        table.add_row(
            name,
            *(f"{found[key]:.3f}" for key in ("solver", "recommend", "to_frame")),
            verdict(found["ratio"], "ratio", 2),
            verdict(found["processors"], "ratio", 2),
            verdict(found["options"], "options", 2),
            verdict(explain_time(world, chosen.threads, chosen.repeats), "explain", 1),
            *(verdict(memory(name, rows, chosen.threads), "memory", 0) for rows in MEMORY_ROWS),
        )
    bars = ("ratio", "ratio", "options", "explain", *["memory"] * len(MEMORY_ROWS))
    table.add_row("at most", "", "", "", *(f"{BARS[bar]:g}" for bar in bars))
    console.print(table)


if __name__ == "__main__":
    main()
