"""Which settings give the paper's tables? Each trial prints our figures beside the printed ones.

    python experiments/trials.py table2 german            # the authors' own settings
    python experiments/trials.py table2 sba --data DIR
    python experiments/trials.py table3 german            # the same LIME, on the first two folds
    python experiments/trials.py table3 sba --data DIR
    python experiments/trials.py judges german            # other ascents, all L-inf cells
    python experiments/trials.py smoothgrad german        # readings of SmoothGrad, two folds
    python experiments/trials.py subsets --data DIR       # SBA networks: all denied, random sixes
    python experiments/trials.py logistic --data DIR      # Table 1, SBA: the sample of nine
    python experiments/trials.py trapped --data DIR       # the row that BCELoss does not let go

DIR (or HOLDFAST_DATA_DIR) holds the SBA file. The mean is taken over a fold's people, then mean ±
standard deviation over folds.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from paper import CELLS, LOGISTIC_SBA, NAMES, ROWS, TABLE2, TABLE3
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from surrogates import MeanGradient

from holdfast import NormBall, find_recourse
from holdfast.datasets.folds import german_folds, published_sample, sba_folds
from holdfast.linearise import Gradient, Lime, LimeAsPublished, SmoothGrad
from holdfast.models.training import train_network
from holdfast.networks import network_price, published_worst_network

# the authors store points and recourses with so many digits
DIGITS = 4
TRAPPED_FOLD, TRAPPED_ROW = 4, 36
READINGS = [
    LimeAsPublished(),
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


class People:
    """A fold's network and those whom it turns down."""

    def __init__(self, number, fold, dataset):
        self.network = train_network(fold.train_points, fold.train_approved, device="cpu")
        self.denied = fold.test_points[self.network.score(fold.test_points) <= 0.0]
        self.training = fold.train_points
        self.everybody = list(range(len(self.denied)))
        self.sample = self.everybody
        if dataset == "sba":
            self.sample = published_sample(number, len(self.denied), "network")

    def asked(self, table, method, p, radius):
        """Whom a cell speaks of, in order.

        In Table 3 the six of an SBA fold are in order of their numbers; at radius 0.1 only
        Algorithm 1, too slow for more, is confined to them.
        """
        if table == 2:
            return self.sample
        confined = radius > 0.1 or (method, p) == ("exact", 1.0)
        return sorted(self.sample) if confined else self.everybody

    def recourse(self, method, ball, cost_weight, linearise):
        settings = {"clamped_loss": True} if method == "roar" else {}
        return find_recourse(
            self.denied,
            self.network,
            method,
            ball=ball,
            cost_weight=cost_weight,
            linearise=linearise,
            training=self.training,
            **settings,
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
    groups: list[People],
    dataset: str,
    table: int,
    row: int,
    linearise="lime_as_published",
    judge=published_worst_network,
) -> list[str]:
    method, p = ROWS[row]
    cells = []
    for radius, weight in CELLS[dataset]:
        ball, folds = NormBall(p, radius), []
        for group in groups:
            found = group.recourse(method, ball, weight, linearise)
            asked = group.asked(table, method, p, radius)
            folds.append(group.prices(found, asked, ball, weight, judge))
        cells.append(over_folds(folds))
    return cells


def show(title: str, dataset: str, rows: list[tuple[str, list[str]]]) -> None:
    table = Table(title=title)
    for name in ["", *(f"{radius:g} / {weight:g}" for radius, weight in CELLS[dataset])]:
        table.add_column(name)
    for name, cells in rows:
        table.add_row(name, *cells)
    Console(width=130).print(table)


def table(options: argparse.Namespace) -> None:
    """Print the authors' settings beside what the paper prints: Table 2, or 3 on two folds."""
    number, printed, folds = (2, TABLE2, 5) if options.trial == "table2" else (3, TABLE3, 2)
    groups, rows = people(options.dataset, options.data, folds), []
    for k, paper in enumerate(printed[options.dataset]):
        cells = row_of_cells(groups, options.dataset, number, k)
        rows += [(NAMES[k], cells), ("  paper", paper)]
    show(f"{options.trial}, {options.dataset}: LIME as published", options.dataset, rows)


def judges(options: argparse.Namespace) -> None:
    """Judge the same recourses for p = inf by other ascents."""
    groups = people(options.dataset, options.data, 5)
    for k in (2, 3):
        rows = [
            (name, row_of_cells(groups, options.dataset, 2, k, judge=judge))
            for name, judge in JUDGES.items()
        ]
        show(NAMES[k], options.dataset, [*rows, ("  paper", TABLE2[options.dataset][k])])


def smoothgrad(options: argparse.Namespace) -> None:
    """Try readings of SmoothGrad for the L1 cells of Table 3, on the first two folds."""
    groups = people(options.dataset, options.data, 2)
    for k in (0, 1):
        rows = [
            (str(reading), row_of_cells(groups, options.dataset, 3, k, reading))
            for reading in READINGS
        ]
        show(NAMES[k], options.dataset, [*rows, ("  paper", TABLE3[options.dataset][k])])


def subsets(options: argparse.Namespace) -> None:
    """Judge all denied of the SBA folds, and say how far random sixes spread."""
    groups, generator = people("sba", options.data, 5), np.random.default_rng(0)
    for name, (method, p), paper in zip(NAMES, ROWS, TABLE2["sba"], strict=True):
        rows: list[tuple[str, list[str]]] = [("all denied", []), ("sixes: 5 %", []), ("  95 %", [])]
        for radius, weight in CELLS["sba"]:
            ball, folds = NormBall(p, radius), []
            for group in groups:
                found = group.recourse(method, ball, weight, "lime_as_published")
                folds.append(group.prices(found, group.everybody, ball, weight))
            means = [
                np.mean([generator.choice(fold, 6, replace=False).mean() for fold in folds])
                for _ in range(1000)
            ]
            rows[0][1].append(over_folds(folds))
            for row, share in zip(rows[1:], (5, 95), strict=True):
                row[1].append(f"{np.percentile(means, share):.3f}")
        show(name, "sba", [*rows, ("  paper", paper)])


def logistic(options: argparse.Namespace) -> None:
    """Print Table 1 for the SBA sample of nine, each method as published and the optimum."""
    kinds: dict[str, Callable] = {
        "Algorithm 1": partial(find_recourse, method="algorithm1", as_published=True),
        "ROAR L1": partial(find_recourse, method="roar", clamped_loss=True),
        "Algorithm 2": partial(find_recourse, method="exact"),
        "ROAR L-inf": partial(find_recourse, method="roar", clamped_loss=True),
    }
    rows = []
    for (name, find), p, paper in zip(
        kinds.items(), (1.0, 1.0, math.inf, math.inf), LOGISTIC_SBA, strict=True
    ):
        ours, best = [], []
        for radius, weight in CELLS["sba"]:
            found = [
                find(
                    points=denied[sample], model=model, ball=NormBall(p, radius), cost_weight=weight
                )
                for model, denied, sample in logistic_people(options.data)
            ]
            ours.append(over_folds([result.price for result in found]))
            best.append(over_folds([result.price - result.gap for result in found]))
        rows += [(name, ours), ("  optimum", best), ("  paper", paper)]
    show("Table 1, SBA: nine of each fold", "sba", rows)


def logistic_people(data: str | None) -> Iterator[tuple[LogisticRegression, np.ndarray, list[int]]]:
    for number, fold in enumerate(sba_folds(data)):
        model = LogisticRegression().fit(fold.train_points, fold.train_approved)
        denied = fold.test_points[~model.predict(fold.test_points)]
        yield model, denied, published_sample(number, len(denied), "logistic")


def trapped(options: argparse.Namespace) -> None:
    """Print the price of the row that makes Table 1's large deviations, at radius 0.5."""
    model, denied, _ = list(logistic_people(options.data))[TRAPPED_FOLD]
    methods = {
        "exact": {},
        "algorithm1": {},
        "algorithm1, as published": {"as_published": True},
        "roar": {},
        "roar, clamped loss": {"clamped_loss": True},
    }
    table = Table("", "cost weight 0.1", "cost weight 0.01", title="The trapped row, radius 0.5")
    for name, settings in methods.items():
        prices = [
            find_recourse(
                denied[TRAPPED_ROW : TRAPPED_ROW + 1],
                model,
                name.split(",")[0],
                ball=NormBall(1, 0.5),
                cost_weight=weight,
                **settings,
            ).price[0]
            for weight in (0.1, 0.01)
        ]
        table.add_row(name, *(f"{price:.3f}" for price in prices))
    Console(width=130).print(table)


TRIALS = {
    "table2": table,
    "table3": table,
    "judges": judges,
    "smoothgrad": smoothgrad,
    "subsets": subsets,
    "logistic": logistic,
    "trapped": trapped,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trial", choices=TRIALS)
    parser.add_argument("dataset", nargs="?", choices=list(CELLS), default="german")
    parser.add_argument("--data", default=os.environ.get("HOLDFAST_DATA_DIR"), metavar="DIR")
    options = parser.parse_args()
    TRIALS[options.trial](options)


if __name__ == "__main__":
    main()
