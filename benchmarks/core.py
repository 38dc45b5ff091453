"""How fast is the exact core? Microseconds a row, beside a convex solver and a plain copy.

    python benchmarks/core.py [--rows 1000000] [--threads 2] [--oracle-rows 40]

Everything in one table is measured in one run on one machine; what counts are the ratios. Kernels
are compiled before the clock starts; how long that takes is measured apart, in new processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import holdfast
from holdfast import NormBall

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracle import oracle

CASES = [  # (p, d, goal, bar in microseconds a row)
    (1.0, 7, "price", 2.0),
    (1.0, 28, "price", 6.0),
    (np.inf, 7, "price", 2.0),
    (np.inf, 28, "price", 6.0),
    (2.0, 28, "price", 20.0),
    (1.5, 28, "price", None),
    (1.0, 28, "guarantee", 6.0),
    (np.inf, 28, "guarantee", 6.0),
    (2.0, 28, "guarantee", 20.0),
    (1.0, 28, "squared error", None),
    (2.0, 28, "squared error", None),
]
GOALS = {
    "price": {"cost_weight": 0.05},
    "guarantee": {"guarantee": 0.5},
    "squared error": {"cost_weight": 0.05, "loss": "squared_error"},  # not convex
}


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return points, coefficients and intercept of people who are mostly turned down."""
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)), rng.normal(size=d), -2.0


def seconds(call: Callable[[], object], repeat: int = 3) -> float:
    """Return the best of a few runs: the machine's noise only ever adds."""
    best = np.inf
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def run(n: int, d: int, p: float, goal: str, threads: int) -> holdfast.RecourseResult:
    points, coef, intercept = data(n, d)
    ball = NormBall(p, 0.3)
    return holdfast.solve(points, coef, intercept, robust_to=ball, n_jobs=threads, **GOALS[goal])


def speed_table(n: int, threads: int, oracle_rows: int) -> Table:
    table = Table(title=f"{n:,} rows, one shared model, {threads} threads, microseconds a row")
    for name in ("p", "d", "goal", "holdfast", "bar", "copy", "Clarabel", "ratio", "n/10: linear"):
        table.add_column(name, justify="right")
    for p, d, goal, bar in CASES:
        points, coef, intercept = data(n, d)
        ball = NormBall(p, 0.3)

        def solve(
            rows: int, points=points, coef=coef, intercept=intercept, ball=ball, goal=goal
        ):
            return holdfast.solve(
                points[:rows], coef, intercept, robust_to=ball, n_jobs=threads, **GOALS[goal]
            )

        result = solve(1000)  # compiles
        assert (np.abs(result.gap) <= 1e-9 * (1 + result.price)).all()
        ours = seconds(lambda solve=solve: solve(n)) / n * 1e6
        tenth = seconds(lambda solve=solve: solve(n // 10)) / (n // 10) * 1e6
        copy = seconds(lambda points=points: points.copy()) / n * 1e6
        theirs = np.nan  # a convex solver has no answer to the squared error
        if goal != "squared error":
            theirs = clarabel(points[:oracle_rows], coef, intercept, ball, goal)
        table.add_row(
            f"{p:g}",
            str(d),
            goal,
            f"{ours:.2f}",
            "-" if bar is None else f"{bar:g}",
            f"{copy:.3f}",
            "-" if np.isnan(theirs) else f"{theirs:,.0f}",
            "-" if np.isnan(theirs) else f"{theirs / ours:,.0f} x",
            f"{tenth / ours:.2f}",
        )
    return table


def clarabel(points, coef, intercept, ball, goal) -> float:
    """Microseconds a row of cvxpy + Clarabel on the same problems."""
    problem = holdfast.problem.RecourseProblem.build(points, coef, intercept, robust_to=ball)
    target = {"cost_weight": 0.05} if goal == "price" else {"target": 0.0}
    oracle(problem, 0, **target)  # warm up
    begin = time.perf_counter()
    for i in range(len(points)):
        oracle(problem, i, **target)
    return (time.perf_counter() - begin) / len(points) * 1e6


def memory(n: int, d: int) -> str:
    """Peak memory of one call over the size of what goes in and comes out (in a new process)."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import core; core.print_memory({n}, {d})
"""
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def peak_memory() -> int:
    """Most memory that this process has held so far, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def print_memory(n: int, d: int) -> None:
    run(1000, d, 1.0, "price", 2)
    before = peak_memory()
    points, coef, intercept = data(n, d)
    result = holdfast.solve(points, coef, intercept, robust_to=NormBall(1, 0.3), cost_weight=0.05)
    peak = peak_memory() - before
    columns = [result.cost, result.price, result.lower_bound, result.gap, result.worst_case_loss]
    columns += [result.worst_case_score, result.worst_case_validity, result.current_validity]
    columns += [result.reachable_validity, result.reachable_radius, result.multiplier]
    size = points.nbytes + result.recourse_array.nbytes + sum(c.nbytes for c in columns)
    print(f"{peak / 2**20:,.0f} MiB for {size / 2**20:,.0f} MiB in and out: {peak / size:.2f} x")


def start_table() -> Table:
    table = Table(title="Start, in new processes (seconds)")
    for name in ("what", "first time", "after it"):
        table.add_column(name, justify="right")
    calls = {
        "import holdfast": "import holdfast",
        "first answer, p = 1": "core.run(10, 7, 1.0, 'price', 1)",
        "first answer, p = 2": "core.run(10, 7, 2.0, 'price', 1)",
        "first answer, p = inf": "core.run(10, 7, float('inf'), 'price', 1)",
        "first guarantee, p = 1": "core.run(10, 7, 1.0, 'guarantee', 1)",
    }
    for name, call in calls.items():
        with tempfile.TemporaryDirectory() as cache:
            table.add_row(name, *(f"{in_new_process(call, cache):.2f}" for _ in range(2)))
    return table


def in_new_process(call: str, cache: str) -> float:
    """Seconds of one call in a new process, its kernels kept in `cache`."""
    setup = "" if call == "import holdfast" else "import core"
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
{setup}
begin = time.perf_counter()
{call}
print(time.perf_counter() - begin)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--oracle-rows", type=int, default=40)
    options = parser.parse_args()
    console = Console(width=110)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    console.print(speed_table(options.rows, options.threads, options.oracle_rows))
    for d in (7, 28):
        console.print(f"memory, d = {d}: {memory(options.rows, d)}")
    console.print(start_table())


if __name__ == "__main__":
    main()
