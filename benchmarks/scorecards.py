"""How fast is advice from a scorecard? Milliseconds a person, beside the solver alone.

    python benchmarks/scorecards.py [--people 4000] [--threads 2] [--repeats 3]

Two real tables, read from the package `empulse` (`pip install empulse optbinning`): Give Me Some
Credit (10 features, a fifth of the incomes missing) and PAKDD 2009 (25 features). Each is binned by
`optbinning`, weights of evidence go into a logistic regression, and those whom it refuses ask what
to change. Kernels are compiled before the clock starts, and the least of several runs counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from holdfast import ActionSet, NormBall, RobustRecourse, sets
from holdfast.actions import pose_problem
from holdfast.discrete import solve_discrete
from holdfast.models.encoding import Encoding
from holdfast.problem.model_set import ModelSet

BAR = 1.0  # milliseconds
REFUSED = 0.2  # the share of people whom a lender refuses


class Card(NamedTuple):
    """A scorecard, those whom it refuses, and what they can do."""

    name: str
    model: Any
    people: pd.DataFrame
    actions: ActionSet
    least: float  # the probability from which on people are accepted
    table: pd.DataFrame


def read(name: str, **how: Any) -> pd.DataFrame:
    with resources.as_file(resources.files("empulse.datasets").joinpath(f"data/{name}")) as path:
        return pd.read_csv(path, **how)


def give_me_some_credit() -> tuple[pd.DataFrame, pd.Series[Any], list[str]]:
    table = read("creditscoring1.csv.gz").drop(columns="id")
    return table, table.pop("SeriousDlqin2yrs"), ["age", "NumberOfDependents"]


def pakdd() -> tuple[pd.DataFrame, pd.Series[Any], list[str]]:
    table = read("creditscoring2.csv.gz", sep="\t", index_col=False).iloc[:, :27]
    target = table.pop(table.columns[-1])
    table, target = table[target.isin(["0", "1"])], target[target.isin(["0", "1"])]
    table["PERSONAL_NET_INCOME"] = pd.to_numeric(table["PERSONAL_NET_INCOME"])
    is_code = [name for name in table if "CODE" in name or name in ("ID_SHOP", "SHOP_RANK")]
    facts = ["SEX", "AGE", "COD_APPLICATION_BOOTH", "FLAG_MOTHERS_NAME", "FLAG_FATHERS_NAME"]
    return table, target.astype(int), facts + is_code


def fit(name: str, load: Callable[[], Any], most: int) -> Card:
    from optbinning import BinningProcess

    table, target, facts = load()
    texts = [column for column in table if table[column].dtype.kind not in "if"]
    binning = BinningProcess(list(table), categorical_variables=texts)
    model = make_pipeline(binning, LogisticRegression(max_iter=1000)).fit(table, target)
    approval = model.predict_proba(table)[:, 0]
    least = float(np.quantile(approval, REFUSED))
    people = table[approval < least]
    people = people.sample(min(most, len(people)), random_state=0)
    actions = ActionSet.from_data(table, immutable=facts)
    for column in ("MonthlyIncome", "MATE_INCOME"):
        if column in actions:
            actions.set(column, provide_cost=0.5)
    return Card(name, model, people, actions, least, table)


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    result, best = work(), np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    console, out = Console(width=120), Table(title="Advice from scorecards")
    for column in ("scorecard", "robust to", "people", "missing", "proven", "ms", "solver, ms"):
        out.add_column(column, justify="left" if column in ("scorecard", "robust to") else "right")
    for name, load in (("Give Me Some Credit", give_me_some_credit), ("PAKDD 2009", pakdd)):
        card = fit(name, load, asked.people)
        choices: list[tuple[str, ModelSet]] = [
            (f"p = {p}", NormBall(p=p, radius=0.05)) for p in (1, 2, np.inf)
        ]
        fisher = sets.fisher(card.model, card.table[:5000], favorable_class=0).with_radius(0.5)
        for label, robust_to in [*choices, ("Fisher ellipsoid", fisher)]:
            out.add_row(*row_of(card, label, robust_to, asked))
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, {asked.threads} threads")
    console.print(out)
    console.print(f"The bar is {BAR:g} ms a person.")


def row_of(card: Card, label: str, robust_to: ModelSet, asked: Any) -> list[str]:
    recourse = RobustRecourse(
        card.model,
        favorable_class=0,
        robust_to=robust_to,
        actions=card.actions,
        guarantee=card.least,
        n_jobs=asked.threads,
    )
    n = len(card.people)
    seconds, table = timed(lambda: recourse.recommend(card.people).to_frame(), asked.repeats)
    encoding = Encoding.of(card.model, favorable_class=0)
    posed = pose_problem(card.people, encoding, card.actions, robust_to=robust_to)
    alone, _ = timed(
        lambda: solve_discrete(posed.problem, guarantee=card.least, n_jobs=asked.threads),
        asked.repeats,
    )
    proven = table["status"].isin(["optimal", "infeasible", "already valid"]).mean()
    missing = int(card.people.isna().any(axis=1).sum())
    shown = [f"{1e3 * each / n:.3f}" for each in (seconds, alone)]
    return [card.name, label, f"{n:,}", f"{missing:,}", f"{100 * proven:.2f}%", *shown]


if __name__ == "__main__":
    main()
