"""How fast is recourse with linked features? Milliseconds a row, beside HiGHS alone.

    python benchmarks/links.py [--rows 100] [--highs-rows 10] [--p 1 2 inf] [--cost-weight 0.05]

German Credit with all 20 features, and a table of eight numbers and two categories whose linked
features are those worth moving; radius 0.1, guarantee 0.5, or a price with the cost weight that is
given. Times are those of the processor, so that others on the machine count less; kernels are
compiled before the clock starts. `ours` is the mean over all rows, `median` that of rows solved one
by one, and `HiGHS` the mean of HiGHS alone over the first of these rows. `broken` counts the rows
whose best recourse without links breaks one, `left to it` those that still went to HiGHS.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import ActionSet, NormBall, Status
from holdfast.actions import AtMost, Follows, Linear, pose_problem
from holdfast.datasets import load_german
from holdfast.discrete import DiscreteProblem, Links, linked, solve_linked
from holdfast.discrete.boxes import Best
from holdfast.discrete.cuts import solve_cuts
from holdfast.discrete.linked import row_links, take_row
from holdfast.models.encoding import Encoding
from holdfast.problem.goal import Goal

GUARANTEE = 0.5
NAMES = ("rows", "p", "ours", "median", "HiGHS", "ratio", "proven", "open", "broken", "left to it")
Linked = tuple[DiscreteProblem, Links]


def fitted(table: pd.DataFrame, wanted: np.ndarray) -> Pipeline:
    numbers = [name for name in table if pd.api.types.is_numeric_dtype(table[name])]
    categories = [name for name in table if name not in numbers]
    columns = ColumnTransformer(
        [("number", StandardScaler(), numbers), ("category", OneHotEncoder(), categories)]
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(table, wanted)


def asked(table: pd.DataFrame, wanted: np.ndarray, links: list, n: int, p: float) -> Linked:
    pipeline = fitted(table, wanted)
    actions = ActionSet.from_data(table)
    actions.links = links
    denied = table[~pipeline.predict(table)].iloc[:n]
    posed = pose_problem(denied, Encoding.of(pipeline), actions, robust_to=NormBall(p, 0.1))
    rows = posed.links
    return posed.problem, Links(rows.matrix, rows.lower, rows.upper)


def german(links: list, n: int, p: float) -> Linked:
    data = load_german()
    return asked(data.features, data.approved, links, n, p)


def steps(links: list, n: int, p: float) -> Linked:
    """Return a table whose features change in fine steps, x0 being worth most."""
    rng = np.random.default_rng(0)
    size = max(600, 3 * n)
    table = pd.DataFrame({f"x{j}": rng.normal(size=size) * 10.0 ** (j % 3) for j in range(8)})
    weights = np.array([2.0, 1.5, 1.0, -1.0, 0.5, -0.5, 0.3, 0.2])
    score = (table / table.std()).to_numpy() @ weights + rng.normal(size=size)
    table["c0"], table["c1"] = rng.choice(list("abc"), size), rng.choice(list("abcd"), size)
    score = score + (table["c0"] == "a") - 0.7 * (table["c1"] == "b")
    return asked(table, np.asarray(score > np.median(score)), links, n, p)


def continuous(links: list, n: int, p: float) -> Linked:
    """Return the same without steps."""
    problem, rows = steps(links, n, p)
    return replace(problem, step=np.zeros_like(problem.step)), rows


FOLLOWS = [Follows("x2", "x0", by=0.5)]
AT_MOST = [AtMost("x0", "x3")]
THREE = [Follows("x2", "x0", by=0.5), AtMost("x1", "x4"), AtMost("x6", "x3")]
THREE_AT_MOST = [AtMost("x0", "x3"), AtMost("x1", "x4"), AtMost("x6", "x5")]
SUM = [Linear({"x0": 1.0, "x1": 0.1, "x2": 0.01}, at_most=0.5)]
CASES = {
    "German, age follows residence": (german, [Follows("age", "residence_since", by=1)]),
    "German, credits at most dependents": (german, [AtMost("existing_credits", "num_dependents")]),
    "German, age follows duration": (german, [Follows("age", "duration", by=1)]),
    "German, three": (
        german,
        [
            Follows("age", "duration", by=1),
            AtMost("residence_since", "existing_credits"),
            AtMost("num_dependents", "installment_commitment"),
        ],
    ),
    "steps, follows": (steps, FOLLOWS),
    "steps, at most": (steps, AT_MOST),
    "steps, three": (steps, THREE),
    "steps, three at most": (steps, THREE_AT_MOST),
    "continuous, follows": (continuous, FOLLOWS),
    "continuous, at most": (continuous, AT_MOST),
    "continuous, three": (continuous, THREE),
    "continuous, three at most": (continuous, THREE_AT_MOST),
    "steps, sum of three": (steps, SUM),
    "continuous, sum of three": (continuous, SUM),
}


def one_by_one(problem: DiscreteProblem, links: Links, wanted: dict[str, float]) -> np.ndarray:
    """Milliseconds of each row, solved alone."""
    spent = []
    for i in range(problem.base.n_rows):
        own = replace(links, lower=links.lower[i : i + 1], upper=links.upper[i : i + 1])
        alone = take_row(problem, i)
        begin = time.process_time()
        solve_linked(alone, own, **wanted, n_jobs=1)
        spent.append(time.process_time() - begin)
    return np.array(spent) * 1e3


def highs(problem: DiscreteProblem, links: Links, rows: int, wanted: dict[str, float]) -> float:
    """Milliseconds a row of HiGHS alone."""
    goal = Goal.of(problem.base.loss, **wanted)
    nothing = Best(np.inf, -np.inf, None, np.empty(0, dtype=np.int64), 0)
    begin = time.process_time()
    for i in range(rows):
        solve_cuts(take_row(problem, i), row_links(links, i), goal, 1e-9, nothing)
    return (time.process_time() - begin) / rows * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--highs-rows", type=int, default=10)
    parser.add_argument("--p", type=float, nargs="+", default=[1.0, 2.0, np.inf])
    parser.add_argument("--cost-weight", type=float, help="ask for a price; else for a guarantee")
    options = parser.parse_args()
    weight = options.cost_weight
    wanted = {"guarantee": GUARANTEE} if weight is None else {"cost_weight": weight}
    console = Console(width=120)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    title = "" if weight is None else f", cost weight {weight:g}"
    table = Table(title=f"{options.rows} rows, milliseconds a row{title}")
    for name in NAMES:
        table.add_column(name, justify="right")
    asked_for = {"solve_parts": 0, "solve_cuts": 0}

    def count(name: str, solve: Callable[..., Best]) -> None:
        def counted(*given: object) -> Best:
            asked_for[name] += 1
            return solve(*given)

        setattr(linked, name, counted)

    count("solve_parts", linked.solve_parts)
    count("solve_cuts", linked.solve_cuts)
    for name, (make, links) in CASES.items():
        for p in options.p:
            problem, rows = make(links, options.rows, p)
            solve_linked(problem, rows, **wanted)  # compiles
            asked_for.update(solve_parts=0, solve_cuts=0)
            begin = time.process_time()
            answer = solve_linked(problem, rows, **wanted)
            ours = (time.process_time() - begin) / len(answer) * 1e3
            counts = [str(number) for number in asked_for.values()]
            theirs = highs(problem, rows, min(options.highs_rows, len(answer)), wanted)
            is_open = np.sum(answer.status == Status.GAP_OPEN)
            proven = np.mean([status.is_proven for status in answer.status])
            table.add_row(
                name,
                f"{p:g}",
                f"{ours:.2f}",
                f"{np.median(one_by_one(problem, rows, wanted)):.2f}",
                f"{theirs:.1f}",
                f"{theirs / ours:.0f}",
                f"{proven:.0%}",
                str(is_open),
                *counts,
            )
    console.print(table)


if __name__ == "__main__":
    main()
