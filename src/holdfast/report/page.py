"""The report as one page of HTML that needs nothing else: no network, no script."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from holdfast.report.changes import FeatureShare
from holdfast.report.charts import (
    STYLE,
    About,
    BarRow,
    IntervalRow,
    LinePoints,
    bar_chart,
    histogram_chart,
    interval_chart,
    line_chart,
    split_chart,
)
from holdfast.report.figures import (
    count_text,
    figure,
    figure_range,
    share_range,
    share_text,
)
from holdfast.report.robustness import Robustness
from holdfast.report.summary import Summary
from holdfast.report.templating import render_own
from holdfast.result.status import Status

_MOST_FEATURES = 12
_FORMATS = {
    "share": share_text,
    "share_range": share_range,
    "figure": figure,
    "figure_range": figure_range,
    "counted": count_text,
}


def write_report_page(summary: Summary) -> str:
    """Return the page."""
    return render_own("report.html", style=Markup(STYLE), is_whole=True, **_told(summary))


def write_report_body(summary: Summary) -> str:
    """Return the report as a part of another page: an element of the class "report"."""
    body = render_own("report_body.html", **_told(summary))
    return f'<div class="report">\n{body}</div>\n'


def report_style() -> str:
    """Return the rules for what stands inside of that element; for charts, see `charts.STYLE`."""
    style = render_own("report.css", is_whole=False)
    return f".report {{\n{style}}}\n"


def _told(summary: Summary) -> dict[str, Any]:
    """Return all that the template shows."""
    return {
        "summary": summary,
        "charts": _charts(summary),
        "why_not": _why_not(summary),
        "unknown": _unknown(summary),
        "feature_words": {each.name: _feature_words(each) for each in summary.features},
        "settings": _listed(summary.settings),
        "short": _short,
        **_FORMATS,
    }


def _charts(summary: Summary) -> dict[str, Any]:
    drawn: dict[str, str] = {}
    counts = summary.counts
    if counts.refused:
        drawn["helped"] = _helped(summary)
    if counts.helped:
        drawn["costs"] = _costs(summary)
        drawn["features"] = _features(summary)
    if summary.robustness is not None:
        drawn["robust_share"] = _robust_share(summary.robustness)
        if summary.robustness.compared:
            drawn["robust_cost"] = _robust_cost(summary.robustness)
    if summary.survival:
        drawn["survival"] = _survival(summary)
    if summary.groups:
        drawn["group_shares"], drawn["group_costs"] = _groups(summary)
    return {name: Markup(svg) for name, svg in drawn.items()}


def _helped(summary: Summary) -> str:
    counts = summary.counts
    parts = [(counts.helped, "can be helped"), (counts.not_helped, "cannot")]
    if counts.not_known:
        parts.append((counts.not_known, _unknown(summary)))
    rows = [BarRow(f"{n:,} {what}", n, f"{n:,} {what}") for n, what in parts]
    about = About(
        "helped", "Refused people who can be helped", f"{', '.join(row.text for row in rows)}."
    )
    return split_chart(about, rows)


def _unknown(summary: Summary) -> str:
    """Say in a few words why it is not known of people whether they can be helped."""
    still = summary.counts.why_not.get(Status.STILL_REFUSED, 0)
    return "unknown, approval not asked for" if still == summary.counts.not_known else "not known"


def _costs(summary: Summary) -> str:
    quantiles = summary.costs.quantiles
    text = (
        f"Half of the people pay at most {figure(quantiles['0.5'])}, nine in ten at most "
        f"{figure(quantiles['0.9'])}."
    )
    about = About("costs", "How many people pay each cost", text)
    return histogram_chart(about, summary.costs.histogram, "cost of the first option")


def _features(summary: Summary) -> str:
    helped = summary.counts.helped
    bars = [
        BarRow(each.name, each.changed / helped, share_text(each.changed / helped))
        for each in summary.features[:_MOST_FEATURES]
    ]
    text = "; ".join(f"{bar.label}: {bar.text}" for bar in bars)
    return bar_chart(
        About("features", "Share of advised people who change each feature", text), bars, 1.0
    )


def _size_labels(robustness: Robustness) -> list[str]:
    names = {0.0: "0", 0.25: "¼", 0.5: "½", 1.0: "1", 1.5: "1½"}
    return [names[point.multiple] for point in robustness.points]


def _robust_share(robustness: Robustness) -> str:
    points = robustness.points
    line = LinePoints(
        [point.multiple for point in points],
        [point.share_helped.estimate for point in points],
        _size_labels(robustness),
        [share_text(point.share_helped.estimate) for point in points],
        [(point.share_helped.low, point.share_helped.high) for point in points],
    )
    text = "; ".join(
        f"at {label} times the size: {value}"
        for label, value in zip(line.x_texts, line.y_texts, strict=True)
    )
    about = About("robust-share", "Share of refused people who can be helped, by size", text)
    return line_chart(about, line, "size of the set of models (1: as used)", 1.0)


def _robust_cost(robustness: Robustness) -> str:
    points = robustness.points
    costs = [point.mean_cost for point in points]
    labels = _size_labels(robustness)
    line = LinePoints([point.multiple for point in points], costs, labels, [*map(figure, costs)])
    text = "; ".join(
        f"at {label} times the size: {value}"
        for label, value in zip(line.x_texts, line.y_texts, strict=True)
    )
    about = About("robust-cost", "Mean cost of the advice, by size", text)
    return line_chart(about, line, "size of the set of models (1: as used)")


def _survival(summary: Summary) -> str:
    rows = [
        IntervalRow(_short(each.model), each.survival, share_range(each.survival))
        for each in summary.survival
    ]
    text = "; ".join(f"{row.label}: {row.text}" for row in rows)
    about = About("survival", "Share of the advice that later models approve", text)
    return interval_chart(about, rows, 1.0)


def _short(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _groups(summary: Summary) -> tuple[str, str]:
    shares = [
        IntervalRow(each.name, each.share_helped, share_range(each.share_helped))
        for each in summary.groups
    ]
    costs = [
        IntervalRow(each.name, each.median_cost, figure_range(each.median_cost))
        for each in summary.groups
    ]
    charts = []
    for name, title, rows, most in (
        ("group-shares", "Share of refused people who can be helped, by group", shares, 1.0),
        ("group-costs", "Median cost, by group", costs, None),
    ):
        text = "; ".join(f"{row.label}: {row.text}" for row in rows)
        charts.append(interval_chart(About(name, title, text), rows, most))
    return charts[0], charts[1]


def _feature_words(each: FeatureShare) -> str:
    """Say how people change a feature."""
    if not each.is_number:
        return "; ".join(f"{before} → {after} ({n:,})" for before, after, n in each.moves)
    unit = f" {each.unit}" if each.unit else ""
    parts = []
    if each.down:
        parts.append(f"down by {figure(each.mean_down)}{unit} on average ({each.down:,})")
    if each.up:
        parts.append(f"up by {figure(each.mean_up)}{unit} on average ({each.up:,})")
    if each.given:
        parts.append(f"given where it was missing ({each.given:,})")
    return "; ".join(parts)


def _why_not(summary: Summary) -> list[tuple[str, int, str]]:
    """Say who they are that have no way, how many, and what their status means."""
    who = {
        Status.INFEASIBLE: "Cannot be helped",
        Status.STILL_REFUSED: "Approval was not asked for",
    }
    return [
        (who.get(Status(status), "Not known"), n, Status(status).sentence)
        for status, n in summary.counts.why_not.items()
    ]


def _listed(settings: Any, path: str = "") -> list[tuple[str, str]]:
    """List nested settings, each with the path to it."""
    if isinstance(settings, dict) and settings:
        return [
            pair
            for name, value in settings.items()
            for pair in _listed(value, f"{path}.{name}" if path else str(name))
        ]
    if isinstance(settings, (list, tuple)):
        return [(path, ", ".join(map(str, settings)) or "none")]
    return [(path, "none" if settings in (None, {}) else str(settings))]
