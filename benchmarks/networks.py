"""What does refining gain on networks? True prices of `exact` on a surrogate and of `refine`.

    python benchmarks/networks.py [--data DIR] [--folds 5] [--rows 0] [--linearise lime]

For each fold the paper's network is trained, and everybody whom it turns down is helped. The price
is the network's own: loss under the worst network found in one L1 ball around all parameters +
cost weight * cost. DIR holds the SBA file; without it only German Credit (embedded) is used.

    python benchmarks/networks.py --judges [--data DIR] [--rows 0]

How long do the judges take for a row? Processor time on one thread, of the compiled passes and of
torch's own differentiation (of the same network, wrapped so that its layers cannot be seen), and
how far the compiled scores are above and below torch's, relative to max(1, |score|).
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import time
from functools import partial

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from holdfast import NormBall, find_recourse
from holdfast.models.linearise import LINEARISERS
from holdfast.models.network import Network
from holdfast.models.networks import (
    judge_network,
    population_worst_network,
    worst_network,
)
from holdfast.paper import published_worst_network
from holdfast.paper.folds import Fold, german_folds, sba_folds
from holdfast.paper.training import train_network

CELLS = {  # the paper's radii and cost weights
    "German": [(0.1, 0.7), (0.1, 0.3), (0.5, 0.7), (0.5, 0.3)],
    "SBA": [(0.1, 0.1), (0.1, 0.01), (0.5, 0.1), (0.5, 0.01)],
}
# a search much stronger than the one that refine itself uses
STRONGER = partial(worst_network, steps=100, starts=4)


def denied(fold: Fold, rows: int, device: str) -> tuple[Network, np.ndarray]:
    network = train_network(fold.train_points, fold.train_approved, device=device)
    points = fold.test_points[network.score(fold.test_points) < 0.0]
    return network, points[: rows or None]


def compare(
    network: Network, fold: Fold, points: np.ndarray, radius: float, weight: float, name: str
) -> dict[str, np.ndarray]:
    """Prices of both methods on one fold, by the method's own search and by a stronger one."""
    settings = {
        "robust_to": NormBall(1, radius),
        "cost_weight": weight,
        "X_train": fold.train_points,
    }
    exact = find_recourse(points, network, "exact", linearise=name, **settings)
    begin = time.perf_counter()
    refined = find_recourse(points, network, "refine", linearise=exact.surrogate, **settings)
    seconds = time.perf_counter() - begin
    return {
        "exact": judge_network(exact, network).price,
        "refine": judge_network(refined, network).price,
        "exact, stronger": judge_network(exact, network, ascent=STRONGER).price,
        "refine, stronger": judge_network(refined, network, ascent=STRONGER).price,
        "valid before": exact.current_validity >= 0.5,
        "valid after": refined.current_validity >= 0.5,
        "steps": refined.steps,
        "seconds": np.full(len(points), seconds / max(len(points), 1)),
    }


def spread(folds: list[np.ndarray]) -> str:
    """Return the mean and the deviation over the folds' means."""
    means = [float(np.mean(fold)) for fold in folds]
    deviation = np.std(means, ddof=1) if len(means) > 1 else 0.0
    return f"{np.mean(means):.3f}±{deviation:.3f}"


def table_of(data: str, folds: list[Fold], options: argparse.Namespace, console: Console) -> Table:
    trained = [denied(fold, options.rows, options.device) for fold in folds]
    n = sum(len(points) for _, points in trained)
    title = f"{data}: {len(folds)} folds, {n} rows, {options.linearise} surrogate, p = 1"
    table = Table(title=title)
    names = ("radius", "weight", "exact", "refine", "improved", "worse by", "stronger: exact")
    names += ("refine", "worse rows", "worst", "valid", "steps", "ms a row")
    for name in names:
        table.add_column(name, justify="right")
    for radius, weight in CELLS[data]:
        cells = [
            compare(network, fold, points, radius, weight, options.linearise)
            for fold, (network, points) in zip(folds, trained, strict=True)
        ]
        whole = {name: np.concatenate([cell[name] for cell in cells]) for name in cells[0]}
        worse = whole["refine"] - whole["exact"]
        truly = whole["refine, stronger"] - whole["exact, stronger"]
        table.add_row(
            f"{radius:g}",
            f"{weight:g}",
            spread([cell["exact"] for cell in cells]),
            spread([cell["refine"] for cell in cells]),
            f"{np.mean(worse < -1e-6):.0%}",
            f"{max(worse.max(), 0.0):.1g}",
            spread([cell["exact, stronger"] for cell in cells]),
            spread([cell["refine, stronger"] for cell in cells]),
            f"{np.sum(truly > 1e-4)}",
            f"{max(truly.max(), 0.0):.1g}",
            f"{whole['valid before'].mean():.0%} > {whole['valid after'].mean():.0%}",
            f"{whole['steps'].mean():.1f}",
            f"{1e3 * whole['seconds'].mean():.0f}",
        )
        console.print(f"{data} {radius:g}/{weight:g} done", style="dim")
    return table


class Wrapped(torch.nn.Module):
    """A network whose layers cannot be seen: it is left to torch."""

    def __init__(self, inside: torch.nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inside(x)


def timed(search, network: Network, points: np.ndarray, ball: NormBall) -> tuple[float, np.ndarray]:
    """Milliseconds a row, and the scores."""
    begin = time.process_time()
    score = search(network, points, ball, n_jobs=1).score
    return 1e3 * (time.process_time() - begin) / len(points), score


def judges_of(data: str, folds: list[Fold], options: argparse.Namespace) -> Table:
    """Time all judges on the exact recourses of each fold; torch on a few rows of each."""
    searches = {
        "worst_network": worst_network,
        "published_worst_network": published_worst_network,
        "population_worst_network": population_worst_network,
    }
    trained = [denied(fold, 0, "cpu") for fold in folds]
    title = f"{data}: {len(folds)} folds, {sum(len(points) for _, points in trained)} rows"
    table = Table(title=title)
    names = ("judge", "p", "radius", "ms a row", "by torch", "ratio")
    names += ("most above", "most below", "rows below")
    for name in names:
        table.add_column(name, justify="left" if name == "judge" else "right")
    for name, search in searches.items():
        for p, radius in [(1.0, 0.1), (1.0, 0.5), (math.inf, 0.1), (math.inf, 0.5)]:
            if name == "published_worst_network" and p == math.inf:
                continue  # by torch in any case, as the authors have it
            ball, ours, torchs, apart = NormBall(p, radius), [], [], []
            for fold, (network, points) in zip(folds, trained, strict=True):
                weight = CELLS[data][1][1]
                start = {"robust_to": NormBall(1, radius), "X_train": fold.train_points}
                x = find_recourse(
                    points, network, "exact", cost_weight=weight, linearise="lime", **start
                ).recourse_array
                search(network, x[:1], ball)  # compiles
                milliseconds, score = timed(search, network, x, ball)
                ours.append(milliseconds)
                if name != "population_worst_network":
                    few = x[: options.rows or None]
                    milliseconds, other = timed(search, Network(Wrapped(network.module)), few, ball)
                    torchs.append(milliseconds)
                    apart.append((score[: len(few)] - other) / np.maximum(1.0, np.abs(other)))
            row = [name, f"{p:g}", f"{radius:g}", f"{np.mean(ours):.2f}"]
            if torchs:
                off = np.concatenate(apart)
                row += [f"{np.mean(torchs):.1f}", f"{np.mean(torchs) / np.mean(ours):.0f}"]
                row += [f"{max(off.max(), 0.0):.0e}", f"{max(-off.min(), 0.0):.0e}"]
                row += [f"{np.mean(off < -1e-4):.0%}"]
            table.add_row(*row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="directory of the SBA file")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=0, help="at most so many a fold; 0: all")
    parser.add_argument("--linearise", default="lime", choices=list(LINEARISERS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--judges", action="store_true", help="time the judges instead")
    options = parser.parse_args()
    console = Console(width=160)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.device}")
    folds = {"German": german_folds()[: options.folds]}
    if options.data:
        folds["SBA"] = sba_folds(options.data)[: options.folds]
    for data, some in folds.items():
        if options.judges:
            torch.set_num_threads(1)
            console.print(judges_of(data, some, options))
        else:
            console.print(table_of(data, some, options, console))


if __name__ == "__main__":
    main()
