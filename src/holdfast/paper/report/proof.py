"""What is proven of recourses for networks, beside what a search finds; ours with a guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from holdfast.paper.report.cells import number
from holdfast.paper.report.curves import METHODS, Drawn, curves, pareto
from holdfast.paper.report.names import DATASETS, SHORT_DATASETS, method_name, p_name
from holdfast.paper.report.picture import Picture
from holdfast.paper.report.results import Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell
from holdfast.paper.report.style import (
    COST,
    INK,
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

_APPROVED = 0.5  # the probability from which on a network approves
_KEYS = ["judged_p", "radius", "method", "p", "settings", "cost_weight", "guarantee"]
_TITLE = "What is proven about networks"
_RING = "no refusing network found"
_CAPTION = (
    "For how many people the recourse is proven to be approved by every network of the ball (all "
    "parameters change, together by no more than the radius), and for how many the search found "
    "no network of the ball that refuses it. Everybody in the first column is also in the "
    "second; for those in the second alone, it is not known whether their recourse holds. The "
    "last line for each ball is ours with a guarantee: the cheapest recourse that it could "
    "prove; a cheaper one may exist. Cost: mean over everybody (of a guarantee, if it is proven "
    "for all), and over those of the first column."
)
_LARGE = (
    "With p = ∞ every parameter may change by the whole radius at once, and the proof says "
    "little: its bound is far below the worst network that is found. Where that network refuses, "
    "nothing is left to prove about this recourse, but another recourse may still hold. The "
    "guarantee is asked for at the smaller radius only: a larger ball allows no more of them."
)
_MORE = "The CSV has every cost weight of the frontiers, and RBR."


def proof_rows(results: Results, **where: object) -> pd.DataFrame:
    """Return the rows of the proof, with whether each recourse is proven, and found, to hold."""
    rows = results.rows(experiment="proof", **where)
    return rows.assign(
        proven=(rows["proven_validity"] >= _APPROVED).astype(float),
        found=(rows["worst_case_validity"] >= _APPROVED).astype(float),
    )


def proof_sheets(results: Results) -> Iterator[Sheet | NotRun]:
    """Make a table for each data set, at the cost weights of the paper's tables."""
    for dataset, place in DATASETS.items():
        name, title = f"proof-{dataset}", f"{_TITLE}: {place}"
        rows = proof_rows(results, dataset=dataset)
        if rows.empty:
            yield NotRun(name, title, results.why_not(dataset, "proof"))
            continue
        data = pd.DataFrame([_record(key, group) for key, group in groups(rows, *_KEYS)])
        weights = {weight for _, weight in results.paper.columns("table2", dataset)}
        chosen = data[data["cost_weight"].isin(weights) | data["guarantee"].notna()]
        shown = [_cells(record) for record in _in_order(chosen)]
        header = ["networks", "method", "cost weight", "proven", _RING, "cost", "cost if proven"]
        caption = " ".join([_CAPTION, _LARGE, _MORE])
        yield Sheet(name, title, caption, header, shown, data, labels=3)


def _record(key: tuple[Any, ...], group: pd.DataFrame) -> dict[str, Any]:
    return {
        **dict(zip(_KEYS, key, strict=True)),
        "folds": group["fold"].nunique(),
        "people": len(group),
        "proven": int(group["proven"].sum()),
        "found": int(group["found"].sum()),
        "cost": group["cost"].mean(skipna=False),
        "cost_if_proven": group.loc[group["proven"] == 1.0, "cost"].mean(),
        "least_proven_validity": group["proven_validity"].min(),
        "least_found_validity": group["worst_case_validity"].min(),
        "seconds": group["seconds"].mean(),
    }


def _in_order(data: pd.DataFrame) -> list[dict[Any, Any]]:
    """Sort the lines by ball, those with a guarantee last, cost weights falling."""
    order = {method: place for place, method in enumerate(METHODS)}
    return sorted(
        data.to_dict("records"),
        key=lambda of: (
            of["judged_p"],
            of["radius"],
            not math.isnan(of["guarantee"]),
            order[of["method"]],
            of["p"],
            0.0 if math.isnan(of["cost_weight"]) else -of["cost_weight"],
        ),
    )


def _cells(of: dict[Any, Any]) -> list[Cell]:
    kept = math.isnan(of["guarantee"]) or of["proven"] == of["people"]
    weight = "–" if math.isnan(of["cost_weight"]) else f"{of['cost_weight']:g}"
    return [
        cell(f"p = {p_name(of['judged_p'])}, radius {of['radius']:g}"),
        cell(_name(of["method"], of["p"], of["guarantee"])),
        cell(weight),
        cell(_share(of["proven"], of["people"])),
        cell(_share(of["found"], of["people"])),
        cell(_cost(of["cost"] if kept else math.nan)),
        cell(_cost(of["cost_if_proven"])),
    ]


def _name(method: str, p: float, guarantee: float) -> str:
    name = method_name(method, p)
    return name if math.isnan(guarantee) else f"{name}, guarantee {guarantee:g}"


def _share(count: int, people: int) -> str:
    """Write how many of all they are; 100 % is said of everybody alone.

    Examples
    --------
    >>> _share(35, 37), _share(999, 1000), _share(1, 1000)
    ('94.6 % (35 of 37)', '99.9 % (999 of 1,000)', '0.1 % (1 of 1,000)')
    """
    return f"{100 * count / people:.1f} % ({count:,} of {people:,})"


def _cost(cost: float) -> str:
    return "–" if math.isnan(cost) else number(cost)


def proof_picture(results: Results) -> Picture | NotRun:
    """Draw the share of people whose recourse is proven to hold against what recourse costs."""
    title = f"{_TITLE}: cost against the share of people whose recourse holds"
    rows = proof_rows(results, judged_p=1.0)
    if rows.empty:
        return NotRun("proof", title, results.why_not("proof"))
    caption = (
        "Each point is a method at one cost weight (RBR: of its own grid): mean cost, and the "
        "share of people whose recourse is proven to be approved by every network of the ball "
        "(p = 1), joined where no other point of the method costs less and is proven for more. The "
        "ring around a point is the share for which the search finds no network that refuses: "
        "where it sits on its point, all that was not refuted is proven. Up and left is better; "
        "points beyond the right edge cost more, and no more is proven of them. "
        "The star is ours with a guarantee: the cheapest recourses that it could prove."
    )
    return Picture("proof", title, caption, _draw(rows))


def _draw(rows: pd.DataFrame) -> Figure:
    figure = new_figure(10, 8.8)
    radii = sorted(rows["radius"].unique())
    panels = figure.subplots(len(radii), len(DATASETS), sharey=True, squeeze=False)
    entries: dict[str, Artist] = {}
    for axes, (radius, dataset) in zip(panels.flat, product(radii, DATASETS), strict=True):
        axes.set_title(f"{SHORT_DATASETS[dataset]}, radius {radius:g}")
        here = rows[(rows["dataset"] == dataset) & (rows["radius"] == radius)]
        if here.empty:
            not_run(axes)
            continue
        _draw_panel(axes, here)
        entries = entries_of(axes)
    probability_axes(panels.flat)
    figure.supxlabel(COST)
    figure.supylabel("share of people")
    add_legend(figure, entries, columns=3)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
    weighed = rows[rows["guarantee"].isna()]
    pairs = list(zip(curves(weighed, "proven"), curves(weighed, "found"), strict=True))
    ends: list[float] = []
    for proven, found in pairs:
        _draw_pair(axes, proven, found)
        ends.extend(pareto(proven.cost, proven.value)[0][-1:])
    axes.plot([], [], "o", color=INK, markersize=11, markerfacecolor="none", label=_RING)
    for (guarantee,), group in groups(rows[rows["guarantee"].notna()], "guarantee"):
        cost = group.loc[group["proven"] == 1.0, "cost"].mean()
        axes.plot([cost], [group["proven"].mean()], "*", color=look("refine", 1.0).colour,
                  markersize=17, markeredgecolor="white", zorder=4,
                  label=_name("refine", 1.0, guarantee), linestyle="none")  # fmt: skip
        ends.append(cost)
    reach = max((float(cost) for cost in ends if cost > 0.0), default=1.0)
    axes.set_xlim(-0.03 * reach, 1.05 * reach)  # what lies beyond gains nothing


def _draw_pair(axes: Axes, proven: Drawn, found: Drawn) -> None:
    """Draw what is proven, joined along the points that no other beats, and rings of the found."""
    colour, marker = look(proven.method, proven.p)
    x, y = pareto(proven.cost, proven.value)
    axes.plot(x, y, "-", color=colour, marker=marker, markeredgecolor="white",
              label=method_name(proven.method, proven.p))  # fmt: skip
    few = proven.method == "rbr"  # a grid of many points: those that gain nothing are left out
    at, share = pareto(found.cost, found.value) if few else (found.cost, found.value)
    if not few:
        axes.plot(proven.cost, proven.value, marker, color=colour, markeredgecolor="white")
    axes.plot(at, share, "o", color=colour, markersize=11, markerfacecolor="none",
              markeredgewidth=1.0, zorder=1.7)  # fmt: skip
