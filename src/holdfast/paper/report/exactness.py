"""Figures of the exact optimum: price and gap for every norm, and the trapped row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from holdfast.paper.report.cells import number, small
from holdfast.paper.report.names import METHODS, SHORT_DATASETS, method_name, p_name
from holdfast.paper.report.picture import Picture
from holdfast.paper.report.results import SOUND, Results, groups
from holdfast.paper.report.sheet import NotRun
from holdfast.paper.report.style import INK, add_legend, entries_of, look, new_figure, not_run
from holdfast.paper.report.subsets import TRAPPED
from holdfast.paper.report.trapped import trapped_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST_GAP = 1e-17  # what is drawn for a gap of 0
_LINES = ["-", "--", "-.", ":"]


def norms_picture(results: Results) -> Picture | NotRun:
    """Draw price against p for each data set, and all gaps."""
    title = "Every norm, exactly: price against p, and the gap that each proof leaves"
    rows = results.rows(experiment="table1", method="exact", variant=SOUND)
    if rows.empty:
        return NotRun("norms", title, results.why_not("table1"))
    figure = new_figure(13, 5.4)
    panels = figure.subplots(1, 3)
    for axes, (dataset, name) in zip(panels[:2], SHORT_DATASETS.items(), strict=True):
        axes.set_title(f"{name}, logistic regression")
        here = rows[rows["dataset"] == dataset]
        if here.empty:
            not_run(axes)
        else:
            _prices(axes, here)
    _gaps(panels[2], rows)
    add_legend(figure, entries_of(panels[0]) | entries_of(panels[1]), columns=2)
    largest = [f"{small(g['gap'].max())} for p = {p_name(p)}" for (p,), g in groups(rows, "p")]
    caption = (
        "Left: the least price there is, mean over all people, for each ball. Right: price minus "
        f"its proven lower bound for each of {len(rows):,} recourses (a gap of 0 is drawn at "
        f"{_SMALLEST_GAP:g}). The largest gaps: {', '.join(largest)}."
    )
    return Picture("norms", title, caption, figure)


def _prices(axes: Axes, rows: pd.DataFrame) -> None:
    exponents = sorted(rows["p"].unique())
    colour, marker = look("exact", 1.0)
    for line, ((radius, cost_weight), group) in zip(
        _LINES, groups(rows, "radius", "cost_weight"), strict=False
    ):
        means = group.groupby("p")["price"].agg(lambda prices: prices.mean(skipna=False))
        label = f"exact, radius {radius:g}, cost weight {cost_weight:g}"
        places = [exponents.index(p) for p in means.index]
        axes.plot(places, means, line, color=colour, label=label)
        axes.plot(places, means, marker, color=colour)
    axes.set_xticks(range(len(exponents)), [p_name(p) for p in exponents])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("p")
    axes.set_ylabel("price (mean)")
    axes.locator_params(axis="y", nbins=6)


def _gaps(axes: Axes, rows: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)  # spreads points sideways only
    for k, ((p,), group) in enumerate(groups(rows, "p")):
        gaps = group["gap"].dropna().clip(lower=_SMALLEST_GAP)
        aside = rng.uniform(-0.3, 0.3, len(gaps))
        axes.plot(k + aside, gaps, ".", color=look("exact", p).colour, alpha=0.35, markersize=5,
                  markeredgewidth=0, rasterized=True)  # fmt: skip
    exponents = sorted(rows["p"].unique())
    axes.set_xticks(range(len(exponents)), [p_name(p) for p in exponents])
    axes.set_yscale("log")
    axes.set_title("gap of every recourse")
    axes.set_xlabel("p")
    axes.set_ylabel("gap (price minus lower bound)")


def trapped_picture(results: Results) -> Picture | NotRun:
    """Draw what each method pays on the trapped row."""
    title = "The trapped row: what a clamped loss costs one person"
    rows = trapped_rows(results)
    if rows.empty:
        return NotRun("trapped", title, results.why_not("sba", "table1"))
    found = list(groups(rows, "p", "cost_weight"))
    n_bars = max(len(group) for _, group in found)
    figure = new_figure(11, 1.9 + 0.62 * n_bars * (len(found) / 2))
    panels = figure.subplots(-(-len(found) // 2), 2, squeeze=False)
    for axes in panels.flat[len(found) :]:
        axes.set_axis_off()
    for axes, ((p, cost_weight), group) in zip(panels.flat, found, strict=False):
        _bars(axes, group)
        axes.set_title(f"p = {p_name(p)}, cost weight {cost_weight:g}")
    figure.supxlabel("price (worst-case loss + cost weight × cost)")
    fold, instance = TRAPPED
    caption = (
        f"Price at radius 0.5 of the recourse that each method gives to instance {instance} of "
        f"fold {fold} of SBA (both counted from 0). Hatched: the clamped loss, as published."
    )
    return Picture("trapped", title, caption, figure)


def _bars(axes: Axes, group: pd.DataFrame) -> None:
    ranks = {method: k for k, method in enumerate(METHODS)}
    group = group.assign(order=group["method"].map(ranks)).sort_values(
        ["order", "variant"], ascending=False
    )
    names = []
    for k, row in enumerate(group.to_dict("records")):
        hatch = "" if row["variant"] == SOUND else "///"
        axes.barh(k, row["price"], color=look(row["method"], row["p"]).colour, hatch=hatch,
                  edgecolor="white")  # fmt: skip
        axes.annotate(number(row["price"]), (row["price"], k), (5, 0), va="center", color=INK,
                      textcoords="offset points", fontsize=12)  # fmt: skip
        names.append(method_name(row["method"], variant=row["variant"]))
    axes.set_yticks(range(len(names)), names)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlim(0, 1.25 * group["price"].max())
    axes.grid(visible=False)
