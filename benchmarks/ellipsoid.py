"""How fast are guarantees over an ellipsoid? Microseconds a row, beside a convex solver.

    python benchmarks/ellipsoid.py [--rows 1000000] [--threads 2] [--oracle-rows 40]

One model for all rows, and an ellipsoid with a full covariance. The convex solver is helped as far
as it goes: cvxpy builds the problem once, as a program whose only parameter is the person's point,
and two times are taken, that of a call (parameter in, answer out) and that of Clarabel alone, from
the matrices to the answer. Each of our answers includes its certificate. Kernels are compiled, and
programs built, before the clock starts; the least of several runs counts. The optima must agree to
1e-6.

Clarabel works on one core, so ratios are core for core: its time over the CPU time of ours, all
threads together. On a busy machine its CPU time tells more than the time on the clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from typing import NamedTuple

import clarabel
import cvxpy as cp
import numpy as np
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones
from rich.console import Console
from rich.table import Table
from scipy import sparse

import holdfast
from holdfast import Ellipsoid, Status

CASES = [  # (d, goal, bar in microseconds a row)
    (7, "guarantee", 5.0),
    (7, "price", 5.0),
    (28, "guarantee", 30.0),
    (28, "price", 30.0),
]
COST_WEIGHT = 0.05
GOALS = {"guarantee": {"guarantee": 0.5}, "price": {"cost_weight": COST_WEIGHT}}
RATIO_BAR = 200.0
AGREE = 1e-6
DONE = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED, Status.INFEASIBLE)
REPEATS = 3


class People(NamedTuple):
    """Points that are mostly turned down, the model, and the models that may come."""

    points: np.ndarray
    coef: np.ndarray
    intercept: float
    ellipsoid: Ellipsoid

    def solve(self, n: int, goal: str, threads: int) -> holdfast.RecourseResult:
        return holdfast.solve(
            self.points[:n],
            self.coef,
            self.intercept,
            robust_to=self.ellipsoid,
            n_jobs=threads,
            **GOALS[goal],
        )


def people(n: int, d: int) -> People:
    """Draw people, and a covariance as an estimate from so many correlated columns has it."""
    rng = np.random.default_rng(d)
    mixing = rng.normal(size=(d + 1, 2 * d + 2)) / np.sqrt(2 * d + 2)
    return People(
        rng.normal(size=(n, d)), rng.normal(size=d), -2.0, Ellipsoid(mixing @ mixing.T, 0.3)
    )


class Program:
    """The same problem in cvxpy, built once, the point its parameter."""

    def __init__(self, given: People, goal: str) -> None:
        d = given.coef.size
        self.start, x = cp.Parameter(d), cp.Variable(d)
        factor = given.ellipsoid.radius * given.ellipsoid.factor(d)
        fall = cp.norm2(factor[:d].T @ x + factor[d])
        score = given.coef @ x + given.intercept - fall
        cost = cp.norm1(x - self.start)
        if goal == "guarantee":
            self.problem = cp.Problem(cp.Minimize(cost), [score >= 0.0])
        else:
            self.problem = cp.Problem(cp.Minimize(cp.logistic(-score) + COST_WEIGHT * cost))
        assert self.problem.is_dpp()

    def solve(self, point: np.ndarray) -> tuple[float, float, float]:
        """Return the optimum, the seconds of the call, and those of Clarabel alone."""
        self.start.value = point
        call = seconds(lambda: self.problem.solve(solver=cp.CLARABEL))
        value = np.inf if self.problem.value is None else float(self.problem.value)
        return value, call, self.alone()

    def alone(self) -> float:
        """Return the seconds of Clarabel, given the matrices that cvxpy made."""
        data, _, _ = self.problem.get_problem_data(cp.CLARABEL)
        cones = dims_to_solver_cones(data["dims"])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        rows, size = sparse.csc_matrix(data["A"]), data["c"].size
        none = sparse.csc_matrix((size, size))
        return seconds(
            lambda: clarabel.DefaultSolver(
                none, data["c"], rows, data["b"], cones, settings
            ).solve()
        )


def seconds(call: Callable[[], object]) -> float:
    """Return the least of a few runs."""
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def measure(n: int, d: int, goal: str, threads: int, oracle_rows: int) -> dict[str, float]:
    given = people(n, d)
    few = given.solve(max(1000, oracle_rows), goal, threads)  # compiles
    program = Program(given, goal)
    program.solve(given.points[0])  # builds
    theirs = np.array([program.solve(point) for point in given.points[:oracle_rows]])
    ours = few.price[:oracle_rows]
    apart = np.abs(np.where(ours == theirs[:, 0], 0.0, theirs[:, 0] - ours)) / (1.0 + np.abs(ours))
    assert apart.max() <= AGREE, f"optima differ by {apart.max():.1e}"
    wall, busy = np.inf, np.inf
    for _ in range(REPEATS):
        begin, begin_busy = time.perf_counter(), time.process_time()
        result = given.solve(n, goal, threads)
        wall = min(wall, time.perf_counter() - begin)
        busy = min(busy, time.process_time() - begin_busy)
    lost = [status for status in result.status if status not in DONE]
    assert not lost, f"{len(lost)} rows are neither proven nor infeasible"
    return {
        "wall": wall / n * 1e6,
        "busy": busy / n * 1e6,
        "call": float(np.mean(theirs[:, 1])) * 1e6,
        "clarabel": float(np.mean(theirs[:, 2])) * 1e6,
        "apart": float(apart.max()),
    }


def speed_table(n: int, threads: int, oracle_rows: int) -> Table:
    table = Table(
        title=f"{n:,} rows, one shared model, {threads} threads, microseconds a row",
        caption=f"bar of the ratios: {RATIO_BAR:g}; +: kept, -: missed",
    )
    columns = ("d", "goal", "holdfast", "bar", "its CPU time", "cvxpy, built once", "ratio")
    for name in (*columns, "Clarabel alone", "ratio", "optima apart"):
        table.add_column(name, justify="right")
    for d, goal, bar in CASES:
        found = measure(n, d, goal, threads, oracle_rows)
        cells = [f"{found['wall']:.2f}", f"{bar:g} {sign(found['wall'] <= bar)}"]
        cells.append(f"{found['busy']:.2f}")
        for theirs in (found["call"], found["clarabel"]):
            ratio = theirs / found["busy"]
            cells += [f"{theirs:,.0f}", f"{ratio:,.0f} x {sign(ratio >= RATIO_BAR)}"]
        table.add_row(str(d), goal, *cells, f"{found['apart']:.0e}")
    return table


def sign(kept: bool) -> str:
    return "+" if kept else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--oracle-rows", type=int, default=40)
    options = parser.parse_args()
    console = Console(width=130)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    console.print(speed_table(options.rows, options.threads, options.oracle_rows))


if __name__ == "__main__":
    main()
