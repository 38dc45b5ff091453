"""Draw how wide the brackets of networks are, and print the tables of docs/networks.md.

    python docs/networks.py

It uses the first fold of German Credit as the paper prepares it. The networks have ReLU layers and
are trained like the paper's, with other depths and widths too. Everyone whom a network turns down
is bracketed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from holdfast import NormBall, prove_network
from holdfast.paper.folds import Fold, german_folds
from holdfast.paper.report.style import drawing, new_figure, to_png
from holdfast.paper.training import HIDDEN, train_network

PICTURE = Path(__file__).parent / "images" / "networks.png"
RADII = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
DEPTHS = (1, 2, 3, 4, 5)
WIDTHS = (10, 20, 50, 100, 200)
AT = (0.1, 0.5)
LONGER = 500  # epochs: deep networks have learnt little after the paper's 100
PROVEN, FOUND = "#0072B2", "#D55E00"


def falls(
    fold: Fold, hidden: tuple[int, ...], radius: float, epochs: int = 100
) -> tuple[float, float, float]:
    """Median fall proven, median fall found, and median ratio of both."""
    network = train_network(fold.train_points, fold.train_approved, hidden=hidden, epochs=epochs)
    people = fold.test_points[network.score(fold.test_points) < 0.0]
    bracket = prove_network(network, people, NormBall(1, radius))
    proven, found = bracket.score - bracket.proven_score, bracket.score - bracket.found_score
    return float(np.median(proven)), float(np.median(found)), float(np.median(proven / found))


def table_of(title: str, name: str, rows: dict[str, tuple[float, float, float]]) -> Table:
    table = Table(title=title)
    for column in (name, "proven fall", "found fall", "ratio"):
        table.add_column(column, justify="right")
    for label, values in rows.items():
        table.add_row(label, *(f"{value:.3f}" for value in values))
    return table


def main() -> None:
    fold, console = german_folds()[0], Console()
    by_radius = {f"{radius:g}": falls(fold, HIDDEN, radius) for radius in RADII}
    console.print(table_of("the paper's network", "radius", by_radius))
    by_depth = {
        radius: {f"{depth}": falls(fold, (50,) * depth, radius, LONGER) for depth in DEPTHS}
        for radius in AT
    }
    by_width = {
        radius: {f"{width}": falls(fold, (width, width), radius, LONGER) for width in WIDTHS}
        for radius in AT
    }
    for radius in AT:
        console.print(table_of(f"layers of 50, radius {radius:g}", "depth", by_depth[radius]))
        console.print(table_of(f"two layers, radius {radius:g}", "width", by_width[radius]))
    with drawing():
        figure = new_figure(15.0, 4.6)
        left, middle, right = figure.subplots(1, 3)
        proven, found, _ = np.array(list(by_radius.values())).T
        left.fill_between(RADII, found, proven, color=PROVEN, alpha=0.18, lw=0)
        left.plot(RADII, proven, color=PROVEN, marker="o", label="proven: falls no further")
        left.plot(RADII, found, color=FOUND, marker="s", label="found: falls as far")
        left.set(xscale="log", yscale="log", xlabel="radius", ylabel="fall of the score (median)")
        left.set_title("the paper's network, 50-100-200")
        left.legend(loc="upper left")
        for axes, rows, name, title in (
            (middle, by_depth, "hidden layers", "layers of 50 units"),
            (right, by_width, "units in a layer", "two hidden layers"),
        ):
            for radius, marker in zip(AT, "os", strict=True):
                labels = [int(label) for label in rows[radius]]
                ratios = [values[2] for values in rows[radius].values()]
                axes.plot(labels, ratios, marker=marker, label=f"radius {radius:g}")
            axes.axhline(1.0, color="#222222", lw=1.0)
            axes.set(xlabel=name, ylabel="proven fall / found fall", title=title)
            axes.legend()
        right.set_xscale("log")
        right.set_xticks(WIDTHS, [f"{width}" for width in WIDTHS])
        right.minorticks_off()
        middle.set_xticks(DEPTHS)
        PICTURE.write_bytes(to_png(figure))
    console.print(str(PICTURE))


if __name__ == "__main__":
    main()
