"""Figures of what constraints do: before and after post-processing, and inside the optimisation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from holdfast.paper.report.curves import (
    AFTER,
    INSIDE,
    NONE,
    Drawn,
    curves,
    frontier_rows,
    pareto,
    radii,
)
from holdfast.paper.report.names import MODELS, SHORT_DATASETS, method_name
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
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = {NONE: "-", AFTER: (0, (2.5, 1.5))}
_CAPTION = (
    "Validity under the worst model of each person (ball of p = 1) against cost, mean over all "
    "people. Solid: as the method gives it. Dashed: after post-processing (the largest entry of "
    "each category becomes 1; German: age at most two years up, and never down). Wide band: the "
    "constraints inside the optimisation, so that every recourse is feasible (linear models: and "
    "the best of those)."
)


def feasibility_pictures(results: Results) -> Iterator[Picture | NotRun]:
    """Draw a figure for each radius: panels of data sets and models."""
    for radius in radii(results) or [0.1, 0.5]:
        name, title = f"feasibility-{radius:g}", f"Feasibility, radius {radius:g}"
        rows = results.rows(experiment="frontiers", radius=radius)
        if not rows["constraints"].isin([AFTER, INSIDE]).any():
            yield NotRun(name, title, results.why_not("frontiers"))
            continue
        panels = {key: _panel(results, *key, radius) for key in product(MODELS, SHORT_DATASETS)}
        left_out = sum(c.left_out for of in panels.values() for cs in of.values() for c in cs)
        missing = f" {left_out} points are missing: recourses without a value." if left_out else ""
        yield Picture(name, title, _CAPTION + missing, _draw(panels))


def _draw(found_by_panel: dict[tuple[str, str], dict[str, list[Drawn]]]) -> Figure:
    figure = new_figure(11, 10)
    panels = figure.subplots(2, 2, sharey=True)
    entries: dict[str, Artist] = {}
    for axes, ((model, dataset), found) in zip(panels.flat, found_by_panel.items(), strict=True):
        axes.set_title(f"{SHORT_DATASETS[dataset]}, {MODELS[model]}")
        if not any(found.values()):
            not_run(axes)
        for constraints, of_kind in found.items():
            for curve in of_kind:
                _line(axes, curve, constraints)
        entries |= entries_of(axes)
    probability_axes(panels.flat)
    dashes = panels[0, 0].plot([], [], linestyle=_LINES[AFTER], color=INK, marker="o",
                              markersize=5, markerfacecolor="white")  # fmt: skip
    entries["after post-processing"] = dashes[0]
    figure.supxlabel(COST)
    figure.supylabel("worst-case " + VALIDITY)
    add_legend(figure, entries, columns=3)
    return figure


def _panel(results: Results, model: str, dataset: str, radius: float) -> dict[str, list[Drawn]]:
    found = {}
    for constraints in (NONE, AFTER, INSIDE):
        rows = frontier_rows(results, dataset, model, radius, constraints)
        found[constraints] = list(curves(rows, "worst_case_validity"))
    return found


def _line(axes: Axes, curve: Drawn, constraints: str) -> None:
    colour, marker = look(curve.method, curve.p)
    x, y = pareto(curve.cost, curve.value)
    name = method_name(curve.method, curve.p)
    if constraints == INSIDE:  # a wide band below the lines, so that it hides none
        label = f"{name}, constraints inside"
        axes.plot(x, y, color=colour, linewidth=9, alpha=0.35, label=label, zorder=1.5,
                  solid_capstyle="round")  # fmt: skip
        return
    after = constraints == AFTER
    axes.plot(x, y, color=colour, linestyle=_LINES[constraints], marker=marker, markersize=5,
              markerfacecolor="white" if after else colour, linewidth=1.7,
              label=None if after else name)  # fmt: skip
