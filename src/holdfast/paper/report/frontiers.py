"""Figures of the trade-off between cost and validity."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from holdfast.paper.report.curves import Drawn, curves, frontier_rows, pareto, radii
from holdfast.paper.report.names import DATASETS, MODELS, method_name
from holdfast.paper.report.picture import Picture
from holdfast.paper.report.results import Results
from holdfast.paper.report.sheet import NotRun
from holdfast.paper.report.style import (
    COST,
    INK,
    VALIDITY,
    add_legend,
    entries_of,
    look,
    new_figure,
    not_run,
    probability_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "current_validity": "current: today's model",
    "worst_case_validity": "worst case: each person's worst model",
    "population_validity": "population: one worst model for all",
    "future_validity": "future: retrained on shifted data",
}
_FUTURE = "future_validity"
_PUBLISHED = "future_validity_as_published"


class _AsPublished(NamedTuple):
    """What the authors do otherwise with the shifted data of a data set."""

    label: str
    caption: str


_AS_PUBLISHED = {
    "german": _AsPublished(
        "future, columns by position",
        "Dotted: the shifted data with its columns taken by position, as published; lines: by "
        "meaning.",
    ),
    "sba": _AsPublished(
        "future, scaled anew",
        "Dotted: the shifted data standardised anew on the loans of all years, as published; "
        "lines: in today's units.",
    ),
}


def frontier_pictures(results: Results) -> Iterator[Picture | NotRun]:
    """Draw a figure for each data set, model and radius."""
    for dataset, model, radius in product(DATASETS, MODELS, radii(results) or [0.1, 0.5]):
        name = f"frontiers-{dataset}-{model}-{radius:g}"
        title = f"Cost against validity: {DATASETS[dataset]}, {MODELS[model]}, radius {radius:g}"
        rows = frontier_rows(results, dataset, model, radius)
        if rows.empty:
            yield NotRun(name, title, results.why_not(dataset, "frontiers", model))
            continue
        dotted = not np.allclose(rows[_FUTURE], rows[_PUBLISHED], equal_nan=True)
        found = {panel: list(curves(rows, panel)) for panel in PANELS}
        published = list(curves(rows, _PUBLISHED)) if dotted else []
        figure = _draw(found, published, _AS_PUBLISHED[dataset].label)
        said = _AS_PUBLISHED[dataset].caption if dotted else ""
        yield Picture(name, title, _caption(rows, found, said), figure)


def _draw(found: dict[str, list[Drawn]], published: list[Drawn], label: str) -> Figure:
    figure = new_figure(10, 8.6)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, (panel, title) in zip(panels.flat, PANELS.items(), strict=True):
        for curve in found[panel]:
            _draw_curve(axes, curve)
        axes.set_title(title)
        if not any(curve.cost.size for curve in found[panel]):
            not_run(axes, "no values")
    for curve in published:
        x, y = pareto(curve.cost, curve.value)
        panels[1, 1].plot(x, y, ":", color=look(curve.method, curve.p).colour, linewidth=1.6)
    probability_axes(panels.flat)
    panels[0, 0].set_xlim(-0.03 * _reach(found), 1.05 * _reach(found))  # shared by all
    figure.supxlabel(COST)
    figure.supylabel(VALIDITY)
    entries = entries_of(panels[0, 0])
    if published:
        dots = panels[1, 1].plot([], [], ":", color=INK, linewidth=1.6)
        entries[label] = dots[0]
    add_legend(figure, entries, columns=3)
    return figure


def _reach(found: dict[str, list[Drawn]]) -> float:
    """Return the largest cost that gains anything: what lies beyond would squeeze the rest."""
    ends = [pareto(curve.cost, curve.value)[0] for curves_ in found.values() for curve in curves_]
    return max((float(cost[-1]) for cost in ends if cost.size), default=1.0)


def _draw_curve(axes: Axes, curve: Drawn) -> None:
    """Draw the points, joined along those that no other beats; those of a grid lie faint below."""
    colour, marker = look(curve.method, curve.p)
    x, y = pareto(curve.cost, curve.value)
    label = method_name(curve.method, curve.p)
    if curve.method == "rbr":
        axes.plot(curve.cost, curve.value, marker, color=colour, alpha=0.35, markersize=5,
                  markeredgewidth=0, zorder=1.8)  # fmt: skip
        axes.plot(x, y, "-", color=colour, marker=marker, markersize=5, label=label, zorder=1.9)
        return
    axes.plot(curve.cost, curve.value, marker, color=colour, markeredgecolor="white")
    axes.plot(x, y, "-", color=colour, marker=marker, markeredgecolor="white", label=label)


def _caption(rows: pd.DataFrame, found: dict[str, list[Drawn]], published: str) -> str:
    people = len(rows[["fold", "instance"]].drop_duplicates())
    said = [
        f"Mean over {people} people; a point for each cost weight (RBR: of its own grid, faint),",
        "joined where no other point of the method has less cost and more validity; nothing was",
        "computed between points. Up and left is better. Worst models are taken from the ball of",
        "p = 1.",
    ]
    if published:
        said.append(published)
    every = [curve for of_panel in found.values() for curve in of_panel]
    beyond = max((float(c.cost.max()) for c in every if c.cost.size), default=0.0)
    if beyond > 1.05 * _reach(found):
        said.append(f"Points that cost more and gain nothing go on, to a cost of {beyond:.3g}.")
    for curve in every:
        name = method_name(curve.method, curve.p)
        if curve.left_out:
            said.append(
                f"{curve.left_out} points of {name} are missing: recourses without a value."
            )
        if curve.people < people:
            said.append(f"{name} was run on {curve.people} of these people only.")
    return " ".join(dict.fromkeys(said))
