"""What else was tried for the cells of the paper's tables: other ascents, surrogates and people.

    python experiments/trials.py judges german            # other ascents, all L-inf cells
    python experiments/trials.py judges sba --data DIR
    python experiments/trials.py smoothgrad german        # readings of SmoothGrad, two folds
    python experiments/trials.py smoothgrad sba --data DIR
    python experiments/trials.py subsets --data DIR       # SBA networks: all denied, random sixes

DIR (or HOLDFAST_DATA_DIR) holds the SBA file. The mean is taken over a fold's people, then mean ±
standard deviation over folds. `holdfast reproduce` prints the tables themselves.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from surrogates import MeanGradient

from holdfast import NormBall, find_recourse
from holdfast.methods import Method
from holdfast.models.linearise import Gradient, Lime, SmoothGrad
from holdfast.models.networks import network_price
from holdfast.paper import (
    LimeAsPublished,
    RoarAsPublished,
    german_folds,
    published_worst_network,
    sba_folds,
    train_network,
)
from holdfast.paper.folds import published_sample
from holdfast.paper.report.paper import Place, read_paper

# the authors store points and recourses with so many digits
DIGITS = 4
# the rows of a table: name, method, p, and where the paper prints it
ROAR = RoarAsPublished()
ROWS = [
    ("Algorithm 1", "exact", 1.0, "algorithm1"),
    ("ROAR L1", ROAR, 1.0, "roar_1"),
    ("Algorithm 2", "exact", math.inf, "algorithm2"),
    ("ROAR L-inf", ROAR, math.inf, "roar_inf"),
]
LIME = LimeAsPublished()
READINGS = [
    LIME,
    SmoothGrad(),
    SmoothGrad(noise=0.1),
    SmoothGrad(noise=1.0),
    Gradient(),
    Lime(),
    MeanGradient("score", "probability"),
    MeanGradient("score", "nothing"),
    MeanGradient("probability", "probability"),
    MeanGradient("probability", "score"),
    MeanGradient("probability", "nothing"),
    MeanGradient("score", "score", 1.0, "mean"),
    MeanGradient("score", "probability", 1.0, "mean"),
]
JUDGES = {
    "drawn, SGD 1, 99 steps (the authors')": published_worst_network,
    **{
        f"trained, SGD {rate}, {steps} steps": partial(
            published_worst_network, start="trained", learning_rate=rate, steps=steps, tolerance=0
        )
        for rate, steps in [(0.1, 100), (0.2, 100), (0.3, 100), (0.5, 100), (1.0, 100), (0.3, 50)]
    },
}
PAPER = read_paper()


class People:
    """A fold's network and those whom it turns down."""

    def __init__(self, number, fold, dataset):
        self.network = train_network(fold.train_points, fold.train_approved, device="cpu")
        self.denied = fold.test_points[self.network.score(fold.test_points) < 0.0]
        self.training = fold.train_points
        self.asked = list(range(len(self.denied)))
        if dataset == "sba":
            self.asked = published_sample(number, len(self.denied), "network")

    def recourse(self, method, ball, cost_weight, linearise):
        return find_recourse(
            self.denied,
            self.network,
            method,
            robust_to=ball,
            cost_weight=cost_weight,
            linearise=linearise,
            X_train=self.training,
        ).recourse_array

    def prices(self, recourse, rows, ball, cost_weight, judge=published_worst_network):
        x, start = (np.round(values[rows], DIGITS) for values in (recourse, self.denied))
        return network_price(self.network, x, start, ball, cost_weight, ascent=judge)


def people(dataset: str, data: str | None, folds: int) -> list[People]:
    every = german_folds() if dataset == "german" else sba_folds(data)
    return [People(number, fold, dataset) for number, fold in enumerate(every[:folds])]


def over_folds(folds: list[np.ndarray]) -> str:
    means = [fold.mean() for fold in folds]
    return f"{np.mean(means):.3f} ± {np.std(means, ddof=1):.3f}"


def row_of_cells(
    groups: list[People], dataset: str, method: str | Method, p: float, linearise, judge
) -> Iterator[str]:
    for radius, weight in PAPER.columns("table2", dataset):
        ball = NormBall(p, radius)
        found = [group.recourse(method, ball, weight, linearise) for group in groups]
        yield over_folds(
            [
                group.prices(recourse, group.asked, ball, weight, judge)
                for group, recourse in zip(groups, found, strict=True)
            ]
        )


def show(title: str, table: str, dataset: str, row: str, rows: list[tuple[str, list[str]]]) -> None:
    columns = PAPER.columns(table, dataset)
    printed = [str(PAPER.prices[Place(table, dataset, row, *column)]) for column in columns]
    shown = Table("", *(f"{radius:g} / {weight:g}" for radius, weight in columns), title=title)
    for name, cells in [*rows, ("  paper", printed)]:
        shown.add_row(name, *cells)
    Console(width=130).print(shown)


def judges(options: argparse.Namespace) -> None:
    """Judge the same recourses for p = inf by other ascents."""
    groups = people(options.dataset, options.data, 5)
    for name, method, p, row in ROWS[2:]:
        rows = [
            (label, list(row_of_cells(groups, options.dataset, method, p, LIME, by)))
            for label, by in JUDGES.items()
        ]
        show(name, "table2", options.dataset, row, rows)


def smoothgrad(options: argparse.Namespace) -> None:
    """Try readings of SmoothGrad for the L1 cells of Table 3, on the first two folds."""
    groups = people(options.dataset, options.data, 2)
    for name, method, p, row in ROWS[:2]:
        rows = [
            (
                str(reading),
                list(
                    row_of_cells(
                        groups, options.dataset, method, p, reading, published_worst_network
                    )
                ),
            )
            for reading in READINGS
        ]
        show(name, "table3", options.dataset, row, rows)


def subsets(options: argparse.Namespace) -> None:
    """Judge all denied of the SBA folds for p = 1, and say how far random sixes spread."""
    groups, generator = people("sba", options.data, 5), np.random.default_rng(0)
    for name, method, p, row in ROWS[:2]:
        rows: list[tuple[str, list[str]]] = [("all denied", []), ("sixes: 5 %", []), ("  95 %", [])]
        for radius, weight in PAPER.columns("table2", "sba"):
            ball, folds = NormBall(p, radius), []
            for group in groups:
                found = group.recourse(method, ball, weight, LIME)
                everybody = list(range(len(group.denied)))
                folds.append(group.prices(found, everybody, ball, weight))
            means = [
                np.mean([generator.choice(fold, 6, replace=False).mean() for fold in folds])
                for _ in range(1000)
            ]
            rows[0][1].append(over_folds(folds))
            for line, share in zip(rows[1:], (5, 95), strict=True):
                line[1].append(f"{np.percentile(means, share):.3f}")
        show(name, "table2", "sba", row, rows)


TRIALS = {"judges": judges, "smoothgrad": smoothgrad, "subsets": subsets}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trial", choices=TRIALS)
    parser.add_argument("dataset", nargs="?", choices=["german", "sba"], default="german")
    parser.add_argument("--data", default=os.environ.get("HOLDFAST_DATA_DIR"), metavar="DIR")
    options = parser.parse_args()
    torch.set_num_threads(1)  # more would round differently
    TRIALS[options.trial](options)


if __name__ == "__main__":
    main()
