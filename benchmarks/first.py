"""How long does a newcomer wait? First calls in new processes with nothing compiled yet.

    python benchmarks/first.py [--only demo]

Each call is made in a new process, first with an empty directory for machine code, then once more
with what the first has left there. Seconds of the whole process, imports included, by the clock
and of all processors.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = str(Path(__file__).parent)
NORMS = {"1": "1.0", "2": "2.0", "inf": "float('inf')"}


def solve(p: float, **goal: float) -> None:
    """Answer ten people who have seven numbers each."""
    import numpy as np

    import holdfast

    points = np.random.default_rng(7).normal(size=(10, 7))
    ball = holdfast.NormBall(p=p, radius=0.1)
    holdfast.solve(points, np.linspace(-1.0, 1.0, 7), -1.0, robust_to=ball, **goal)


def recommend(kind: str, p: float = 1.0) -> None:
    """Answer ten of the people whom a model of German Credit turns down."""
    from holdfast import NormBall
    from holdfast.datasets import load_german
    from holdfast.demo.people import CATEGORICAL, NUMERIC, credit_model, possible_actions
    from holdfast.recommend import RobustRecourse
    from holdfast.sets import fisher, from_models

    data = load_german()
    table = data.features[NUMERIC + CATEGORICAL]
    model, actions = credit_model(table, data.approved), possible_actions(table, data.units)
    if kind == "ball":
        models = NormBall(p=p, radius=0.5)
    elif kind == "ellipsoid":
        models = fisher(model, table, radius=1.0)
    else:
        models = from_models([credit_model(table[500:], data.approved[500:])], model, table)
    denied = table[model.predict_proba(table)[:, 1] < 0.5].iloc[:10]
    RobustRecourse(model, robust_to=models, actions=actions, guarantee=0.5).recommend(denied)


def find() -> None:
    """Answer ten people through a fitted model of plain numbers."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import holdfast

    points = np.random.default_rng(7).normal(size=(200, 7))
    model = LogisticRegression().fit(points, points.sum(axis=1) > 0.0)
    denied = points[model.predict(points) == 0][:10]
    ball = holdfast.NormBall(p=2, radius=0.1)
    holdfast.find_recourse(denied, model, robust_to=ball, guarantee=0.5)


def calls() -> dict[str, list[str]]:
    """What is called, as the arguments of an interpreter."""

    def here(call: str) -> list[str]:
        return ["-c", f"import sys; sys.path.insert(0, {HERE!r}); import first; first.{call}"]

    listed = {"demo": ["-m", "holdfast", "demo"]}
    for name, p in NORMS.items():
        listed[f"recommend, p = {name}"] = here(f"recommend('ball', {p})")
    for kind in ("ellipsoid", "list"):
        listed[f"recommend, {kind}"] = here(f"recommend({kind!r})")
    for goal in ("guarantee=0.6", "cost_weight=0.05"):
        for name, p in NORMS.items():
            listed[f"solve, p = {name}, {goal}"] = here(f"solve({p}, {goal})")
    listed["find_recourse"] = here("find()")
    return listed


def seconds(arguments: list[str], cache: str) -> tuple[float, float]:
    """Return what a new process takes: by the clock, and of all processors."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "HOLDFAST_QUIET": "1"}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL
    )
    spent, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="calls whose names contain this")
    options = parser.parse_args()
    table = Table(title="New processes (seconds)")
    table.add_column("what")
    for name in ("first: clock", "first: processors", "second: clock", "second: processors"):
        table.add_column(name, justify="right")
    for name, arguments in calls().items():
        if options.only in name:
            with tempfile.TemporaryDirectory() as cache:
                both = [*seconds(arguments, cache), *seconds(arguments, cache)]
            table.add_row(name, *(f"{value:.1f}" for value in both))
    console = Console(width=110)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    console.print(table)


if __name__ == "__main__":
    main()
