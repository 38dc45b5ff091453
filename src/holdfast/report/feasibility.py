"""Figures of what constraints do: before and after post-processing, and inside the optimisation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from holdfast.report.curves import AFTER, INSIDE, NONE, Curve, curves, frontier_rows, pareto, radii
from holdfast.report.names import MODELS, SHORT_DATASETS, method_name
from holdfast.report.picture import Picture
from holdfast.report.results import Results
from holdfast.report.sheet import NotRun
from holdfast.report.style import (
    COST,
    INK,
    VALIDITY,
    add_legend,
    entries_of,
    look,
    new_figure,
    probability_axis,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = {NONE: "-", AFTER: (0, (2.5, 1.5))}
_CAPTION = (
    "Validity under the worst model of each person (ball of p = 1) against cost, mean over all "
    "people. Solid: as the method gives it. Dashed: after post-processing (the largest entry of "
    "each category becomes 1; German: age at most two years up). Thick with rings: the constraints "
    "inside the optimisation, so that every recourse is feasible."
)


def feasibility_pictures(results: Results) -> Iterator[Picture | NotRun]:
    """Draw a figure for each radius: panels of data sets and models."""
    for radius in radii(results) or [0.1, 0.5]:
        name, title = f"feasibility-{radius:g}", f"Feasibility, radius {radius:g}"
        rows = results.rows(experiment="frontiers", radius=radius)
        if not rows["constraints"].isin([AFTER, INSIDE]).any():
            why = results.why_not("feasibility", "frontiers")
            yield NotRun(name, title, why)
            continue
        yield Picture(name, title, _CAPTION, _draw(results, radius))


def _draw(results: Results, radius: float) -> Figure:
    figure = new_figure(10, 9.2)
    panels = figure.subplots(2, 2, sharey=True)
    entries: dict[str, Artist] = {}
    for axes, (model, dataset) in zip(panels.flat, product(MODELS, SHORT_DATASETS), strict=True):
        axes.set_title(f"{SHORT_DATASETS[dataset]}, {MODELS[model]}")
        probability_axis(axes)
        found = _panel(results, dataset, model, radius)
        if not any(found.values()):
            not_run(axes)
        for constraints, of_kind in found.items():
            for curve in of_kind:
                _line(axes, curve, constraints)
        entries |= entries_of(axes)
    dashes = panels[0, 0].plot([], [], linestyle=_LINES[AFTER], color=INK)
    entries["after post-processing"] = dashes[0]
    figure.supxlabel(COST)
    figure.supylabel("worst-case " + VALIDITY)
    add_legend(figure, entries, columns=3)
    return figure


def _panel(results: Results, dataset: str, model: str, radius: float) -> dict[str, list[Curve]]:
    found = {}
    for constraints in (NONE, AFTER, INSIDE):
        rows = frontier_rows(results, dataset, model, radius, constraints)
        found[constraints] = list(curves(rows, "worst_case_validity"))
    return found


def _line(axes: Axes, curve: Curve, constraints: str) -> None:
    colour, marker = look(curve.method, curve.p)
    x, y = pareto(curve.cost, curve.value)
    name = method_name(curve.method, curve.p)
    if constraints == INSIDE:
        label = f"{name}, constraints inside"
        axes.plot(x, y, color=colour, linewidth=4, marker=marker, markersize=9, label=label,
                  zorder=5, markerfacecolor="white", markeredgewidth=2.2)  # fmt: skip
        return
    axes.plot(x, y, color=colour, linestyle=_LINES[constraints], marker=marker, markersize=5.5,
              label=name if constraints == NONE else None, linewidth=1.8)  # fmt: skip


def not_run(axes: Axes) -> None:
    """Say in a panel that it has nothing to show."""
    axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", color=INK)
    axes.set_xticks([])
