"""How fast is the exact discrete solver? Milliseconds a row, beside HiGHS on the same rows.

    python benchmarks/discrete.py [--rows 200] [--threads 2] [--milp-rows 5]

Kernels are compiled before the clock starts. HiGHS (`scipy.optimize.milp`) can state the question
for a guarantee with p = 1 and p = inf only; building the matrices is not in its time.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import NormBall, Status
from holdfast.actions import ActionSet, pose_problem
from holdfast.datasets import load_german
from holdfast.discrete import DiscreteProblem, Group, solve_discrete
from holdfast.models.encoding import Encoding
from holdfast.problem import RecourseProblem

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from milp_oracle import least_cost

GOALS = {"price": {"cost_weight": 0.05}, "guarantee": {"guarantee": 0.6}}
FIXED = ("age", "personal_status", "foreign_worker")


def german_like(n: int, p: float) -> DiscreteProblem:
    """Duration in months, amount in euros, an age that only rises, and a savings account."""
    rng = np.random.default_rng(7)
    months = rng.integers(6, 73, size=n).astype(float)
    euros = rng.integers(500, 15000, size=n).astype(float)
    age = rng.uniform(20, 70, size=n)
    account = rng.integers(0, 4, size=n)
    units = np.array([12.0, 2800.0, 11.0, 1.0, 1.0, 1.0, 1.0])  # spread of each column
    points = np.column_stack([months, euros, age, np.eye(4)[account]])
    coef = np.array([-0.45, -0.35, 0.2, -0.6, -0.2, 0.3, 0.8]) / units
    lower = np.array([4.0, 250.0, 0.0, 0, 0, 0, 0]) + np.zeros((n, 1))
    upper = np.array([72.0, 20000.0, 75.0, 1, 1, 1, 1]) + np.zeros((n, 1))
    lower[:, 2] = age
    base = RecourseProblem.build(
        points,
        coef,
        1.0,
        robust_to=NormBall(p, 0.05, scale=1.0 / units),
        feature_costs=1.0 / units,
        bounds=(lower, upper),
    )
    step = np.array([[1.0, 1.0, 0.0, 0, 0, 0, 0]])
    costs = np.abs(np.arange(4) - np.arange(4)[:, None]) * 0.7
    group = Group(np.arange(3, 7), np.eye(4))
    return DiscreteProblem(
        base, step, np.zeros((1, 7)), [group], account[:, None], [costs[account]]
    )


def large(n: int, p: float, max_changes: int | None = None) -> DiscreteProblem:
    """Ten categories of 3 to 5 levels, ten whole numbers, ten continuous ones."""
    rng = np.random.default_rng(30)
    levels = [3, 4, 5, 3, 4, 5, 3, 4, 5, 4]
    d = 20 + sum(levels)
    points = np.zeros((n, d))
    points[:, :10] = rng.integers(-3, 4, size=(n, 10))
    points[:, 10:20] = rng.normal(size=(n, 10))
    coef = rng.normal(size=d) * 0.5
    groups, costs, current, at = [], [], np.zeros((n, 10), dtype=np.int64), 20
    for g, m in enumerate(levels):
        columns = np.arange(at, at + m)
        at += m
        current[:, g] = rng.integers(m, size=n)
        points[:, columns] = np.eye(m)[current[:, g]]
        groups.append(Group(columns, np.eye(m)))
        between = rng.uniform(0.3, 1.5, size=(m, m))
        np.fill_diagonal(between, 0.0)
        costs.append(between[current[:, g]])
    step = np.zeros((1, d))
    step[0, :10] = 1.0
    lower, upper = points - 2.0, points + 2.0
    lower[:, :10], upper[:, :10] = -6, 6
    base = RecourseProblem.build(
        points,
        coef,
        -4.0,
        robust_to=NormBall(p, {1.0: 0.2, 2.0: 0.15}.get(p, 0.05)),
        feature_costs=rng.uniform(0.3, 1.5, size=d),
        bounds=(lower, upper),
    )
    return DiscreteProblem(base, step, np.zeros((1, d)), groups, current, costs, max_changes)


def german(n: int, p: float) -> DiscreteProblem:
    """The German Credit data: 13 categories and 7 numbers, of people who were denied."""
    data = load_german()
    numbers = data.features.select_dtypes("number").columns
    others = data.features.columns.difference(numbers, sort=False)
    encode = ColumnTransformer(
        [("numbers", StandardScaler(), list(numbers)), ("others", OneHotEncoder(), list(others))]
    )
    pipeline = make_pipeline(encode, LogisticRegression(max_iter=1000))
    pipeline.fit(data.features, data.approved)
    denied = data.features[pipeline.predict(data.features) == 0]
    people = denied.sample(n, replace=True, random_state=0)
    actions = ActionSet.from_data(data.features)
    for name in FIXED:
        actions.set(name, immutable=True)
    encoding = Encoding.of(pipeline, favorable_class=True)
    return pose_problem(people, encoding, actions, robust_to=NormBall(p, 0.1)).problem


CASES = {
    "German, 20 features": (german, 0.2, {**GOALS, "guarantee": {"guarantee": 0.5}}),
    "German-like": (german_like, 1.0, GOALS),
    "30 features": (large, 50.0, GOALS),
    "30, at most 3": (lambda n, p: large(n, p, 3), None, GOALS),
}


def milliseconds(problem: DiscreteProblem, goal: dict[str, float], threads: int):
    solve_discrete(problem, **goal, n_jobs=threads, max_nodes=1)  # compiles
    begin = time.perf_counter()
    answer = solve_discrete(problem, **goal, n_jobs=threads)
    return (time.perf_counter() - begin) / len(answer) * 1e3, answer


def highs(problem: DiscreteProblem, rows: int, guarantee: float) -> float:
    """Milliseconds a row of HiGHS for a guarantee."""
    target, spent = problem.base.loss.score(guarantee), 0.0
    for i in range(rows):
        spent += least_cost(problem, i, target)[2]
    return spent / rows * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--milp-rows", type=int, default=5)
    options = parser.parse_args()
    console = Console(width=120)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    table = Table(title=f"{options.rows} rows, {options.threads} threads, milliseconds a row")
    for name in ("rows", "p", "goal", "holdfast", "bar", "nodes", "most", "found", "open", "HiGHS"):
        table.add_column(name, justify="right")
    for name, (make, bar, goals) in CASES.items():
        for p in (1.0, 2.0, np.inf):
            problem = make(options.rows, p)
            for goal, asked in goals.items():
                ours, answer = milliseconds(problem, asked, options.threads)
                theirs = np.nan
                if goal == "guarantee" and p != 2.0 and options.milp_rows:
                    theirs = highs(problem, options.milp_rows, asked["guarantee"])
                found = np.isin(answer.status, [Status.OPTIMAL, Status.ALREADY_VALID])
                table.add_row(
                    name,
                    f"{p:g}",
                    goal,
                    f"{ours:.3f}",
                    "-" if bar is None else f"{bar:g}",
                    f"{answer.nodes.mean():.1f}",
                    str(answer.nodes.max()),
                    f"{found.mean():.0%}",
                    str((answer.status == Status.GAP_OPEN).sum()),
                    "-" if np.isnan(theirs) else f"{theirs:,.1f}",
                )
    console.print(table)


if __name__ == "__main__":
    main()
