"""How much of a network's worst case is proven, and how long that takes.

    python benchmarks/proof.py [--data DIR] [--folds 5] [--rows 0] [--device cpu]

For each fold the paper's network is trained, and the score of everybody whom it turns down is
bracketed: proven from below for all networks of the ball, found from above by the search of
`worst_network`. *ratio*: proven fall of the score / found fall, median and worst person; *cones*:
the median without the lines under helpful hinges; *intervals*: that of products of intervals of
chord slopes, layer by layer, which is what one would try first. Times are wall-clock, warmed up, of
a whole fold at once, on all processors: of the proof alone, and of the search alone. DIR holds the
SBA file; without it only German Credit (embedded) is used.
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

from holdfast import NormBall
from holdfast.models.networks import worst_network
from holdfast.models.networks.falls import Falls
from holdfast.models.networks.prover import Prover
from holdfast.paper.folds import Fold, german_folds, sba_folds
from holdfast.paper.training import train_network

BALLS = [(1, 0.02), (1, 0.1), (1, 0.2), (1, 0.5), (2, 0.02), (2, 0.05), (2, 0.1)]
BALLS += [(math.inf, 0.0005), (math.inf, 0.002)]


def timed(work) -> tuple[float, np.ndarray]:
    """Seconds, and what came out."""
    begin = time.perf_counter()
    out = work()
    return time.perf_counter() - begin, out


def cone_falls(prover: Prover, points: np.ndarray) -> np.ndarray:
    """Proven falls without lines."""
    with torch.inference_mode():
        x = prover.folded.tensor(points)
        pieces = [Falls(prover.network, x[k : k + 8], prover.radius) for k in range(0, len(x), 8)]
        return torch.cat([piece.most({}) + piece.rounding({}) for piece in pieces]).cpu().numpy()


def interval_fall(weights, biases, x: np.ndarray, radius: float, q: float) -> float:
    """Proven fall by products of intervals of chord slopes (centre and radius)."""
    levers: list[float] = []
    h, largest = x, np.abs(x)
    carried: list[tuple[np.ndarray, np.ndarray]] = []  # slopes of z in each injection
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = weight @ h + bias
        levers.append(float(np.linalg.norm(np.append(largest, 1.0), q)))
        carried = [(weight @ mid, np.abs(weight) @ wide) for mid, wide in carried]
        carried.append((np.eye(len(z)), np.zeros((len(z), len(z)))))
        sizes = [np.abs(mid) + wide for mid, wide in carried]
        most = np.concatenate([k * size for k, size in zip(levers, sizes, strict=True)], 1)
        reach = radius * np.linalg.norm(most, ord=q, axis=1)
        if layer == len(weights) - 1:
            return float(reach[0])
        safe = np.maximum(reach, 1e-300)
        low = np.where(z >= 0.0, np.clip(z / safe, 0.0, 1.0), 0.0)
        high = np.where(z >= 0.0, 1.0, np.clip(1.0 - np.abs(z) / safe, 0.0, 1.0))
        low = np.where(z >= reach, 1.0, low)
        mid, wide = ((high + low) / 2)[:, None], ((high - low) / 2)[:, None]
        carried = [
            (mid * centre, mid * spread + wide * (np.abs(centre) + spread))
            for centre, spread in carried
        ]
        h, largest = np.maximum(z, 0.0), np.maximum(z + reach, 0.0)
    raise AssertionError


def measure(fold: Fold, ball: NormBall, options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Falls and seconds of one fold."""
    network = train_network(fold.train_points, fold.train_approved, device=options.device)
    points = fold.test_points[network.score(fold.test_points) < 0.0][: options.rows or None]
    prover = Prover.of(network, ball)
    for warm in (prover.prove, partial(worst_network, prover.folded, robust_to=ball)):
        warm(points[:2])
    seconds, (proven, reached) = timed(lambda: prover.prove(points))
    search, found = timed(lambda: worst_network(prover.folded, points, ball).score)
    score, found = prover.folded.score(points), np.minimum(found, reached)
    weights = [each.cpu().numpy() for each in prover.network.weights]
    biases = [each.cpu().numpy() for each in prover.network.biases]
    first = [interval_fall(weights, biases, x, ball.radius, ball.dual_p) for x in points]
    fall = score - found
    return {
        "found": fall,
        "ratio": (score - proven) / fall,
        "cones": cone_falls(prover, points) / fall,
        "intervals": np.array(first) / fall,
        "proof": np.full(len(points), 1e3 * seconds / len(points)),
        "search": np.full(len(points), 1e3 * search / len(points)),
    }


def table_of(data: str, folds: list[Fold], options: argparse.Namespace, console: Console) -> Table:
    table = Table(title=f"{data}, {len(folds)} folds")
    names = ("p", "radius", "people", "found fall", "ratio", "worst", "cones", "intervals")
    for name in (*names, "proof, ms", "search, ms"):
        table.add_column(name, justify="right")
    for p, radius in BALLS:
        cells = [measure(fold, NormBall(p, radius), options) for fold in folds]
        whole = {name: np.concatenate([cell[name] for cell in cells]) for name in cells[0]}
        assert (whole["ratio"] >= 1.0 - 1e-9).all(), "a network below what is proven"
        median = {name: float(np.median(values)) for name, values in whole.items()}
        table.add_row(
            f"{p:g}",
            f"{radius:g}",
            f"{len(whole['found'])}",
            f"{median['found']:.3f}",
            f"{median['ratio']:.3f}",
            f"{whole['ratio'].max():.3f}",
            f"{median['cones']:.3f}",
            f"{median['intervals']:.2f}",
            f"{whole['proof'].mean():.2f}",
            f"{whole['search'].mean():.2f}",
        )
        console.print(f"{data} p = {p:g}, radius {radius:g} done", style="dim")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the SBA file")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=0, help="people of each fold; 0: all")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    console = Console(width=130)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.device}")
    console.print(table_of("German", german_folds()[: options.folds], options, console))
    if options.data:
        console.print(table_of("SBA", sba_folds(options.data)[: options.folds], options, console))


if __name__ == "__main__":
    main()
