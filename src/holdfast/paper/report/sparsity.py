"""Figures of sparsity: how many features a recourse changes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from holdfast.paper.report.curves import METHODS, frontier_rows, radii
from holdfast.paper.report.names import MODELS, SHORT_DATASETS, method_name
from holdfast.paper.report.picture import Picture
from holdfast.paper.report.results import Results, groups
from holdfast.paper.report.sheet import NotRun
from holdfast.paper.report.style import add_legend, entries_of, look, new_figure, not_run

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {
    "additive": "by at least 0.01 in scaled units",
    "multiplicative": "by at least 1 % of their value",
}
_MOST_WEIGHTS = 5


def sparsity_pictures(results: Results) -> Iterator[Picture | NotRun]:
    """Draw a figure for each radius and each way of counting."""
    for kind, meaning in KINDS.items():
        for radius in radii(results) or [0.1, 0.5]:
            name = f"sparsity-{kind}-{radius:g}"
            title = f"Sparsity: features changed {meaning}, radius {radius:g}"
            if results.rows(experiment="frontiers", radius=radius, constraints="none").empty:
                yield NotRun(name, title, results.why_not("frontiers"))
                continue
            caption = (
                f"Mean number of features that a recourse changes {meaning}, at some of the cost "
                "weights, falling from left to right. RBR has no cost weight, so it is not "
                "shown. A 0 means that the mean is below 0.05."
            )
            yield Picture(name, title, caption, _draw(results, f"changed_{kind}", radius))


def _draw(results: Results, column: str, radius: float) -> Figure:
    figure = new_figure(10, 8.4)
    panels = figure.subplots(2, 2)
    entries: dict[str, Artist] = {}
    for axes, (model, dataset) in zip(panels.flat, product(MODELS, SHORT_DATASETS), strict=True):
        axes.set_title(_title(results, dataset, model))
        rows = frontier_rows(results, dataset, model, radius)
        rows = rows[rows["cost_weight"].notna()]
        if rows.empty:
            not_run(axes)
            continue
        _bars(axes, rows, column)
        entries |= entries_of(axes)
    figure.supxlabel("cost weight")
    figure.supylabel("features changed (mean)")
    add_legend(figure, entries, columns=4)
    return figure


def _title(results: Results, dataset: str, model: str) -> str:
    features = results.about.get("settings", {}).get("features", {}).get(dataset)
    of = f", {features} features" if features else ""
    return f"{SHORT_DATASETS[dataset]}, {MODELS[model]}{of}"


def pick_weights(weights: list[float]) -> list[float]:
    """Pick a few cost weights evenly, from the largest to the smallest.

    Examples
    --------
    >>> pick_weights([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    [0.9, 0.7, 0.5, 0.3, 0.1]
    """
    falling = sorted(weights, reverse=True)
    places = np.linspace(0, len(falling) - 1, min(_MOST_WEIGHTS, len(falling))).round()
    return [falling[int(place)] for place in places]


def _bars(axes: Axes, rows: pd.DataFrame, column: str) -> None:
    weights = pick_weights(list(rows["cost_weight"].unique()))
    found = [(method, p, group) for method in METHODS
             for (p,), group in groups(rows[rows["method"] == method], "p")]  # fmt: skip
    width = 0.8 / len(found)
    for k, (method, p, group) in enumerate(found):
        means = [group.loc[group["cost_weight"] == w, column].mean(skipna=False) for w in weights]
        places = np.arange(len(weights)) + (k - (len(found) - 1) / 2) * width
        axes.bar(places, means, width * 0.92, color=look(method, p).colour,
                 label=method_name(method, p))  # fmt: skip
        for place, mean in zip(places, means, strict=True):
            if mean < 0.05:  # a bar without height would look like no figure
                axes.text(place, 0.0, "0", ha="center", va="bottom", fontsize=10)
    axes.set_xticks(range(len(weights)), [f"{weight:.2g}" for weight in weights])
    axes.grid(visible=False, axis="x")
