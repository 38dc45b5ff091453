"""How fast is recourse that a list of models must approve? Microseconds a row, beside HiGHS.

    python benchmarks/lists.py [--rows 20000] [--models 20] [--features 28] [--highs-rows 40]

Random models around a common one, bounds, one thread; certificates are included. HiGHS solves the
same rows as linear programs, one by one, through scipy. The kernels are compiled before the clock
starts, the least of three runs counts, and both must come to the same costs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import linprog

import holdfast

BAR = 200.0  # microseconds a row


def highs(
    point: np.ndarray, coefs: np.ndarray, intercepts: np.ndarray, room: float, level: float
) -> float:
    """Return the least cost of one row."""
    found = linprog(
        np.ones(2 * point.size),
        A_ub=np.column_stack([-coefs, coefs]),
        b_ub=coefs @ point + intercepts - level,
        bounds=(0.0, room),
    )
    return float(found.fun) if found.status == 0 else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--features", type=int, default=28)
    parser.add_argument("--highs-rows", type=int, default=40)
    options = parser.parse_args()
    rng, room = np.random.default_rng(0), 4.5
    X = rng.normal(size=(options.rows, options.features))
    today = rng.normal(size=options.features)
    table = Table(title=f"{options.models} models, {options.features} features, one thread")
    for name in (
        "models differ by",
        "goal",
        "microseconds a row",
        "bar",
        "proven",
        "HiGHS",
        "ratio",
    ):
        table.add_column(name, justify="right")
    for spread in (0.3, 1.0):
        coefs = today + spread * rng.normal(size=(options.models - 1, options.features))
        models = holdfast.ModelList([(coef, -3.0) for coef in coefs])
        for goal in ({"guarantee": 0.6}, {"cost_weight": 0.02}):
            asked = {"robust_to": models, "bounds": (X - room, X + room), "n_jobs": 1, **goal}
            holdfast.solve(X, today, -3.0, **asked)
            spent = []
            for _ in range(3):
                begun = time.process_time()
                result = holdfast.solve(X, today, -3.0, **asked)
                spent.append(time.process_time() - begun)
            ours = min(spent) / options.rows * 1e6
            proven = np.mean([s is not holdfast.Status.GAP_OPEN for s in result.status])
            cells = [f"{spread:g}", next(iter(goal)), f"{ours:.1f}", f"{BAR:g}", f"{proven:.2%}"]
            if "guarantee" in goal:
                all_coefs, level = np.vstack([today, coefs]), result.goal.amount
                intercepts = np.full(options.models, -3.0)
                begun = time.process_time()
                costs = [
                    highs(point, all_coefs, intercepts, room, level)
                    for point in X[: options.highs_rows]
                ]
                theirs = (time.process_time() - begun) / options.highs_rows * 1e6
                np.testing.assert_allclose(
                    costs, result.cost[: options.highs_rows], rtol=1e-6, atol=1e-9
                )
                cells += [f"{theirs:,.0f}", f"{theirs / ours:.0f} x"]
            table.add_row(*cells)
    Console().print(table)


if __name__ == "__main__":
    main()
