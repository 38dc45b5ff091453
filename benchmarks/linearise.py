"""How fast is LIME, and how few samples does it need? Beside the network and the package `lime`.

    python benchmarks/linearise.py [--rows 1000] [--package-rows 10] [--data DIRECTORY]

The network is the paper's, trained on four fifths of German Credit. With --data, the directory of
SBAcase.11.13.17.csv, errors are measured on those 25 columns too. Everything in one table is
measured in one run on one machine; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy import special
from scipy.stats import qmc

from holdfast.models.linearise import Lime
from holdfast.models.network import CHUNK, Network
from holdfast.paper.folds import Fold, german_folds, sba_folds
from holdfast.paper.training import train_network

SEEDS = 6
ROWS = 12
REFERENCE = 2**16


@dataclass(frozen=True)
class Variant(Lime):
    """Other ways to draw the noise, weighted by the kernel as the package does."""

    even: bool = False
    mirrored: bool = False

    def draw(self, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        n = self.samples // 2 if self.mirrored else self.samples
        if self.even:
            noise = special.ndtri(qmc.Sobol(d, seed=rng).random(n))
        else:
            noise = rng.standard_normal((n, d))
        noise = np.vstack([np.zeros(d), noise, -noise] if self.mirrored else [np.zeros(d), noise])
        weights = np.exp(-(noise**2).sum(axis=1) / (2 * 0.75**2 * d))
        weights[0] = self.samples / 5000
        return noise, weights


WAYS = {  # name: the lineariser, and the samples to try
    "random, as the package": (lambda n: Lime(n, "random"), (512, 1024, 5000)),
    "random, mirrored": (lambda n: Variant(n, "sobol", mirrored=True), (512, 1024)),
    "Sobol": (lambda n: Variant(n, "sobol", even=True), (512, 1024)),
    "Sobol, mirrored": (lambda n: Variant(n, "sobol", even=True, mirrored=True), (512, 1024)),
    "sobol (holdfast)": (lambda n: Lime(n, "sobol"), (256, 512, 1024, 2048)),
    "gradient (holdfast)": (lambda n: Lime(n, "gradient"), (64, 128, 256, 512)),
}


def seconds(*calls: Callable[[], object], repeat: int = 4) -> list[float]:
    """Return the best of a few runs of each, in turns: the machine's noise only ever adds."""
    best = [np.inf] * len(calls)
    for _ in range(repeat):
        for k, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best


def forward(network: Network, samples: torch.Tensor, times: int) -> None:
    """Pass ready-made samples through the network, `times` over, and keep nothing."""
    with torch.inference_mode():
        for _ in range(times):
            for begin in range(0, len(samples), CHUNK):
                network.module(samples[begin : begin + CHUNK])


def of_the_package(network: Network, points: np.ndarray, training: np.ndarray) -> None:
    from lime.lime_tabular import LimeTabularExplainer

    explainer = LimeTabularExplainer(
        training,
        mode="regression",
        discretize_continuous=False,
        sample_around_instance=True,
        feature_selection="none",
    )
    for x in points:
        explainer.explain_instance(x, network.score, num_samples=5000, num_features=len(x))


def speed_table(fold: Fold, network: Network, rows: int, package_rows: int) -> Table:
    points = np.vstack([fold.train_points, fold.test_points])[:rows]
    training = fold.train_points
    ready = torch.randn(16 * CHUNK, points.shape[1])
    passes = -(-rows * 5000 // len(ready))

    def fit(lime: Lime) -> object:
        return lime.fit(network, points, training, random_state=0)

    plain, ours, sobol, gradient = seconds(
        lambda: forward(network, ready, passes),
        lambda: fit(Lime(sampling="random")),
        lambda: fit(Lime(sampling="sobol")),
        lambda: fit(Lime()),
    )
    plain *= rows * 5000 / (passes * len(ready))
    few, package = points[:package_rows], np.nan
    if package_rows:
        [package] = seconds(lambda: of_the_package(network, few, training), repeat=3)
    table = Table(title=f"{rows:,} rows of German Credit, d-50-100-200-1 network")
    for name in ("what", "samples", "ms a row", "to forward passes", "to package"):
        table.add_column(name, justify="right")
    for name, samples, time_a_row in (
        ("forward passes alone", 5000, plain / rows),
        ("Lime, random", 5000, ours / rows),
        ("Lime, sobol", 1024, sobol / rows),
        ("Lime, gradient (default)", 512, gradient / rows),
        (f"package lime ({package_rows} rows)", 5000, package / max(package_rows, 1)),
    ):
        table.add_row(
            name,
            str(samples),
            f"{1e3 * time_a_row:.2f}",
            f"{time_a_row * rows / plain:.2f} x",
            f"{package / max(package_rows, 1) / time_a_row:.1f} x faster",
        )
    return table


def error_table(title: str, fold: Fold, network: Network) -> Table:
    """Root mean square over rows and seeds of |error of the slopes| / |slopes|, standardised."""
    training = fold.train_points
    points = fold.test_points[network.score(fold.test_points) < 0][:ROWS]
    scale = training.std(axis=0)

    def slopes(lime: Lime, seed: int) -> np.ndarray:
        return lime.fit(network, points, training, seed).coef * scale

    truth = slopes(Lime(REFERENCE, "sobol"), 10_000)
    size = (truth**2).sum(axis=1)
    counts = sorted({n for _, counts in WAYS.values() for n in counts})
    table = Table(title=f"{title}: relative error of the coefficients, by samples")
    for name in ("sampling", *map(str, counts)):
        table.add_column(name, justify="right")
    for name, (make, tried) in WAYS.items():
        cells = []
        for n in counts:
            squares = [
                ((slopes(make(n), seed) - truth) ** 2).sum(axis=1) / size
                for seed in range(SEEDS if n in tried else 0)
            ]
            cells.append(f"{100 * np.sqrt(np.mean(squares)):.1f}%" if squares else "")
        table.add_row(name, *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--package-rows", type=int, default=10)
    parser.add_argument("--data", help="directory of SBAcase.11.13.17.csv")
    options = parser.parse_args()
    console = Console(width=110)
    console.print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    folds = {"German Credit, d = 7": german_folds()[0]}
    if options.data:
        folds["SBA, d = 25"] = sba_folds(options.data)[0]
    networks = {k: train_network(f.train_points, f.train_approved) for k, f in folds.items()}
    for name, fold in folds.items():
        console.print(error_table(name, fold, networks[name]))
    german = next(iter(folds))
    console.print(speed_table(folds[german], networks[german], options.rows, options.package_rows))


if __name__ == "__main__":
    main()
