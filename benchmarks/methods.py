"""What the methods cost, and how far from the optimum they end, on the paper's data.

    python benchmarks/methods.py [--data DIRECTORY] [--loop-rows 8]

Prices are those of the paper's Table 1 (logistic regression, five folds). With `--data`, the
directory that holds SBAcase.11.13.17.csv, the SBA loans are measured too. Kernels are compiled
before the clock starts.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression

from holdfast import NormBall, find_recourse
from holdfast.methods import Method
from holdfast.methods.exact import Exact
from holdfast.methods.roar import Roar
from holdfast.paper import Algorithm1, Algorithm2
from holdfast.paper.folds import Fold, german_folds, sba_folds

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from literature import roar_by_torch

CELLS = [(0.1, 0.1), (0.1, 0.01), (0.5, 0.1), (0.5, 0.01)]
CONTENDERS: list[tuple[Method, float]] = [
    (Exact(), 1.0),
    (Algorithm1(), 1.0),
    (Algorithm1(max_steps=20_000), 1.0),
    (Algorithm1(max_steps=200_000), 1.0),
    (Roar(), 1.0),
    (Exact(), math.inf),
    (Algorithm2(), math.inf),
    (Roar(), math.inf),
]


def fitted(folds: list[Fold]) -> list[tuple[LogisticRegression, np.ndarray]]:
    """Return each fold's model and the points that it denies."""
    pairs = []
    for fold in folds:
        model = LogisticRegression().fit(fold.train_points, fold.train_approved)
        pairs.append((model, fold.test_points[~model.predict(fold.test_points)]))
    return pairs


def prices(name: str, pairs: list[Any], console: Console) -> None:
    """Print price, distance from the optimum and time of every method in every cell."""
    rows = sum(len(denied) for _, denied in pairs)
    table = Table(title=f"{name}, {rows} rows: mean price (largest distance from the optimum)")
    for column in ("method", "p", *(f"{r} / {w}" for r, w in CELLS), "ms a row"):
        table.add_column(column, justify="right")
    for method, p in CONTENDERS:
        steps = method.max_steps if isinstance(method, Algorithm1) else 0
        if steps > 20_000 and rows > 100:
            continue  # seconds a row, and nothing new
        cells, spent = [], 0.0
        for radius, cost_weight in CELLS:
            results = [
                find_recourse(
                    denied,
                    model,
                    method,
                    robust_to=NormBall(p, radius),
                    cost_weight=cost_weight,
                    n_jobs=1,
                )
                for model, denied in pairs
            ]
            price = np.mean([result.price.mean() for result in results])
            gap = max(float(result.gap.max()) for result in results)
            spent += sum(result.seconds for result in results)
            cells.append(f"{price:.4f} ({gap:.0e})")
        label = f"{method.name}, {steps:,} steps" if steps > 2000 else method.name
        table.add_row(label, f"{p:g}", *cells, f"{1e3 * spent / rows / len(CELLS):.3f}")
    console.print(table)


def _timed(call: Callable[[NormBall], None], ball: NormBall) -> float:
    begin = time.perf_counter()
    call(ball)
    return time.perf_counter() - begin


def roar_loop(name: str, pairs: list[Any], loop_rows: int, console: Console) -> None:
    """Print ROAR in a batch beside the row-at-a-time loop of its authors (torch, autograd)."""
    model, denied = pairs[0]
    coef, intercept = model.coef_[0], float(model.intercept_[0])
    table = Table(title=f"{name}: ROAR, cost weight 0.1, radius 0.1, milliseconds a row")
    for column in ("p", "in a batch", "row at a time (torch)", "ratio"):
        table.add_column(column, justify="right")
    few = denied[:loop_rows]

    def in_a_batch(ball: NormBall) -> None:
        find_recourse(few, model, "roar", robust_to=ball, cost_weight=0.1)

    def row_at_a_time(ball: NormBall) -> None:
        for x in few:
            roar_by_torch(x, coef, intercept, ball, 0.1)

    for p in (1.0, 2.0, math.inf):
        ball = NormBall(p, 0.1)
        in_a_batch(ball)
        batch = min(_timed(in_a_batch, ball) for _ in range(3)) / len(few)
        loop = _timed(row_at_a_time, ball) / len(few)
        table.add_row(f"{p:g}", f"{1e3 * batch:.3f}", f"{1e3 * loop:.1f}", f"{loop / batch:.0f}")
    console.print(table)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="directory with SBAcase.11.13.17.csv")
    parser.add_argument("--loop-rows", type=int, default=8, help="rows for the slow loop")
    options = parser.parse_args()
    console = Console(width=130)
    sets = [("German", german_folds())]
    if options.data is not None:
        sets.append(("SBA", sba_folds(options.data)))
    for name, folds in sets:
        pairs = fitted(folds)
        prices(name, pairs, console)
        roar_loop(name, pairs, options.loop_rows, console)


if __name__ == "__main__":
    main()
