"""Small charts: from numbers to SVG text that goes into a page as it stands.

Places along a chart are in per cent and texts in pixels, so that a chart fills whatever width it is
given and stays readable on a phone. Colours are CSS variables: `STYLE` goes once into the page.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from holdfast.report.intervals import Interval
from holdfast.report.sketch import Histogram, round_step

STYLE = """\
:root { color-scheme: light dark; --paper: #ffffff; --ink: #16181d; --muted: #5b6270;
  --rule: #e3e6ea; --soft: #f5f6f8; --accent: #0b62c4; --pale: #c9ddf4; --alarm: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --paper: #14161a; --ink: #e9ebee; --muted: #a0a7b3;
  --rule: #2e333b; --soft: #1c1f25; --accent: #6cb0f7; --pale: #27496d; --alarm: #ff8a80; } }
svg.chart { display: block; width: 100%; overflow: visible;
  font: 13px/1.3 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
svg.chart text { fill: var(--ink); }
svg.chart .quiet { fill: var(--muted); font-size: 12px; }
svg.chart .bar { fill: var(--accent); }
svg.chart .rest { fill: var(--pale); }
svg.chart .track { fill: var(--rule); }
svg.chart .grid { stroke: var(--rule); stroke-width: 1; }
svg.chart .axis { stroke: var(--muted); stroke-width: 1; }
svg.chart .line { stroke: var(--accent); stroke-width: 2; stroke-linecap: round; }
svg.chart .value { paint-order: stroke; stroke: var(--paper); stroke-width: 4px;
  stroke-linejoin: round; }
svg.chart .dot { fill: var(--accent); stroke: var(--paper); stroke-width: 2; }
svg.chart .hollow { fill: var(--paper); stroke: var(--accent); stroke-width: 2; }
svg.chart .marker { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 3 3; }
svg.chart .beyond { fill: var(--soft); }
svg.chart .range { stroke: var(--accent); stroke-width: 8; stroke-linecap: round; opacity: 0.45; }
@media print { :root { --paper: #ffffff; --ink: #000000; --muted: #444444; --rule: #cccccc;
  --soft: #f5f6f8; --accent: #0b4ea2; --pale: #b9cfe8; --alarm: #9a1b14; }
  svg.chart { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


_LINE = 42  # letters beside one another, on a phone
_LABEL = 26.0  # per cent of the width that a word and a figure take, on a phone


class About(NamedTuple):
    """What a chart is called, for those who hear it, and a name of its own within the page."""

    name: str
    title: str
    text: str


class BarRow(NamedTuple):
    """A label, a value, and the value as it is written."""

    label: str
    value: float
    text: str


class IntervalRow(NamedTuple):
    """A label, an estimate with its interval, and both as they are written."""

    label: str
    value: Interval
    text: str


def bar_chart(about: About, bars: Sequence[BarRow], most: float | None = None) -> str:
    """Draw bars below one another, each under its label.

    Examples
    --------
    >>> about = About("features", "Who changes what", "Savings: 72%.")
    >>> svg = bar_chart(about, [BarRow("Savings", 0.72, "72%")], most=1.0)
    >>> svg.startswith('<svg class="chart" role="img"'), "Savings" in svg
    (True, True)
    """
    top = most if most is not None else max((bar.value for bar in bars), default=1.0)
    parts, y = [], 0
    for bar in bars:
        parts += [_label(bar.label, bar.text, y), _rect("track", 0.0, y + 22, 100.0, 8)]
        if bar.value > 0.0:
            parts.append(_rect("bar", 0.0, y + 22, 100.0 * bar.value / (top or 1.0), 8))
        y += 46
    return _chart(about, max(y - 14, 1), parts)


def split_chart(about: About, parts: Sequence[BarRow]) -> str:
    """Draw the parts of a whole beside one another, the first in full colour."""
    total = sum(part.value for part in parts) or 1.0
    drawn, x, classes = [], 0.0, ("bar", "rest", "track")
    for k, part in enumerate(parts):
        width = 100.0 * part.value / total
        if width:
            drawn.append(_rect(classes[min(k, 2)], x, 0, width, 26))
        x += width
    return _chart(about, 26, drawn)


def histogram_chart(about: About, histogram: Histogram, axis: str) -> str:
    """Draw how often values fall between the edges; what lies beyond the last is said."""
    counts, edges = histogram.counts, histogram.edges
    height, left, bottom = 190, 11.0, 150
    most, step = _axis_end(max(counts, default=1), whole=True)
    parts = _grid(most, step, left, bottom, lambda value: f"{value:,.0f}")
    width = (100.0 - left) / max(len(counts), 1)
    for k, count in enumerate(counts):
        tall = (bottom - 22) * count / most
        if count:
            parts.append(_rect("bar", left + k * width + 0.15, bottom - tall, width - 0.3, tall))
    parts.append(_line("axis", left, bottom, 100.0, bottom))
    end = edges[-1] if edges else 0.0
    step = round_step(end / 6.0)
    for k in range(math.floor(end / step + 1e-9) + 1):
        place = left + (100.0 - left) * (k * step / end if end else 0.0)
        anchor = "end" if place > 99.0 else "middle"
        parts.append(_text(place, bottom + 17, f"{k * step:g}", "quiet", anchor))
    parts.append(_text(100.0, height - 2, axis, "quiet", "end"))
    return _chart(about, height, parts)


class LinePoints(NamedTuple):
    """Points to be joined: where each stands, what it is worth, and how both are written."""

    x: list[float]
    y: list[float]
    x_texts: list[str]
    y_texts: list[str]
    ranges: list[tuple[float, float]] | None = None


def line_chart(about: About, line: LinePoints, axis: str, most: float | None = None) -> str:
    """Draw points with a line through them, each with its value above it."""
    height, left, right, bottom = 216, 11.0, 95.0, 172
    ends = [high for _, high in line.ranges] if line.ranges else []
    finite = [value for value in (*line.y, *ends) if math.isfinite(value)]
    end, step = _axis_end(max(finite, default=1.0))
    if most is not None:
        end, step = most, most / 4.0
    percent = most == 1.0
    write = (lambda v: f"{100.0 * v:.0f}%") if percent else (lambda v: f"{v:g}")
    parts = _grid(end, step, left, bottom, write)
    span = (max(line.x) - min(line.x)) or 1.0
    xs = [left + 5.0 + (right - left - 5.0) * (x - min(line.x)) / span for x in line.x]

    def height_of(value: float) -> float:
        return bottom - (bottom - 22) * value / end

    ys = [height_of(y) for y in line.y]
    parts.append(_line("axis", left, bottom, 100.0, bottom))
    known = [k for k in range(len(xs)) if math.isfinite(ys[k])]
    for k in known if line.ranges else ():
        low, high = map(height_of, (line.ranges or [])[k])
        parts.append(_line("range", xs[k], low, xs[k], high))
    for a, b in itertools.pairwise(known):
        parts.append(_line("line", xs[a], ys[a], xs[b], ys[b]))
    for k in known:
        parts.append(f'<circle class="dot" cx="{xs[k]:.2f}%" cy="{ys[k]:.1f}" r="5"/>')
        above = ys[k] if line.ranges is None else height_of(line.ranges[k][1])
        parts.append(_text(xs[k], above - 11, line.y_texts[k], "value", "middle"))
    for k, text in enumerate(line.x_texts):
        parts.append(_text(xs[k], bottom + 17, text, "quiet", "middle"))
    parts.append(_text(100.0, height - 4, axis, "quiet", "end"))
    return _chart(about, height, parts)


class SizeLine(NamedTuple):
    """The cost of every size, as `SizeCurve.curve` has it, and the size in use.

    `mark_cost` is the cost at that size; infinite where it is out of reach.
    """

    sizes: Sequence[float]
    costs: Sequence[float]
    mark: float
    mark_cost: float


class SizeTexts(NamedTuple):
    """What stands at plain recourse, at the size in use, beyond the end, and along both axes."""

    plain: str
    mark: str
    beyond: str
    x_axis: str
    y_axis: str


def size_chart(about: About, line: SizeLine, texts: SizeTexts) -> str:
    """Draw what every size costs, as steps, with plain recourse and the size in use marked.

    Examples
    --------
    >>> about = About("sizes", "What it costs to be surer", "Size 0 costs 1, size 0.3 costs 3.")
    >>> line = SizeLine([0.0, 0.2, 0.2, 0.5], [1.0, 1.0, 3.0, 3.0], mark=0.3, mark_cost=3.0)
    >>> texts = SizeTexts("plain 1", "3", "out of reach", "size of the set", "cost")
    >>> size_chart(about, line, texts).count('class="line"')
    3
    """
    height, left, bottom = 216, 11.0, 178
    last = max([*line.sizes, line.mark]) or 1.0
    most, step = _axis_end(max(line.costs, default=1.0))
    parts = _grid(most, step, left, bottom, lambda value: f"{value:g}")

    def across(size: float) -> float:
        return left + (100.0 - left) * size / last

    def up(cost: float) -> float:
        return bottom - (bottom - 22) * cost / most

    end = max(line.sizes, default=0.0)
    if end < last * (1.0 - 1e-9):
        width = 100.0 - across(end)
        parts.append(_rect("beyond", across(end), 22, width, bottom - 22))
        if width > 25.0:
            parts.append(_text(across(end) + width / 2.0, 100, texts.beyond, "quiet", "middle"))
    parts.append(_line("axis", left, bottom, 100.0, bottom))
    parts += _size_ticks(last, across, bottom)
    parts.append(_line("marker", across(line.mark), 20, across(line.mark), bottom))
    corners = list(zip(map(across, line.sizes), map(up, line.costs), strict=True))
    for (x1, y1), (x2, y2) in itertools.pairwise(corners):
        if (x1, y1) != (x2, y2):
            parts.append(_line("line", x1, y1, x2, y2))
    if corners:
        x, y = corners[0]
        parts.append(f'<circle class="hollow" cx="{x:.2f}%" cy="{y:.1f}" r="5"/>')
        # the curve only rises, so that there is room below it
        beside = y + 21 if y + 24 <= bottom else y - 11
        # and beside the marker, should that go through it
        room = max(x, across(line.mark)) if across(line.mark) < x + _LABEL else x
        parts.append(_text(room + 1.0, beside, texts.plain, "value", "start"))
    if math.isfinite(line.mark_cost):
        centre = f'cx="{across(line.mark):.2f}%" cy="{up(line.mark_cost):.1f}"'
        parts.append(f'<circle class="dot" {centre} r="6"/>')
    parts.append(_text(across(line.mark), 13, texts.mark, "value", _anchor(across(line.mark))))
    parts.append(_text(0.0, 8, texts.y_axis, "quiet", "start"))
    parts.append(_text(100.0, height - 4, texts.x_axis, "quiet", "end"))
    return _chart(about, height, parts)


def _size_ticks(last: float, across: Callable[[float], float], bottom: float) -> list[str]:
    step = round_step(last / 5.0)
    ticks = [k * step for k in range(math.floor(last / step + 1e-9) + 1)]
    return [
        _text(across(size), bottom + 17, f"{size:g}", "quiet", "end" if x > 98.0 else "middle")
        for size in ticks
        for x in (across(size),)
    ]


def _anchor(x: float) -> str:
    """Say on which side of a place there is room for a text."""
    return "start" if x < 30.0 else "end" if x > 75.0 else "middle"


def interval_chart(about: About, spreads: Sequence[IntervalRow], most: float | None = None) -> str:
    """Draw estimates below one another on one scale from 0, each with its interval."""
    ends = [v for each in spreads for v in each.value if math.isfinite(v)]
    end = most if most is not None else _axis_end(max(ends, default=1.0))[0]
    parts, y = [], 0

    def place(value: float) -> float:
        return 100.0 * min(max(value / end, 0.0), 1.0)

    for each in spreads:
        middle = y + 28
        parts += [_label(each.label, each.text, y), _line("grid", 0.0, middle, 100.0, middle)]
        estimate, low, high = each.value
        if math.isfinite(low) and math.isfinite(high):
            parts.append(_line("range", place(low), middle, place(high), middle))
        if math.isfinite(estimate):
            centre = f'cx="{place(estimate):.2f}%" cy="{middle}"'
            parts.append(f'<circle class="dot" {centre} r="6"/>')
        y += 50
    percent = most == 1.0
    for k in range(5):
        value = end * k / 4.0
        anchor = "start" if k == 0 else "end" if k == 4 else "middle"
        written = f"{100.0 * value:.0f}%" if percent else f"{value:g}"
        parts.append(_text(25.0 * k, y + 8, written, "quiet", anchor))
    return _chart(about, y + 14, parts)


def _chart(about: About, height: float, parts: Sequence[str]) -> str:
    """Put parts together, under a title and a text for screen readers."""
    names = f"{about.name}-title {about.name}-text"
    return (
        f'<svg class="chart" role="img" aria-labelledby="{escape(names)}" height="{height:g}" '
        'xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{escape(about.name)}-title">{escape(about.title)}</title>'
        f'<desc id="{escape(about.name)}-text">{escape(about.text)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def _axis_end(largest: float, *, whole: bool = False) -> tuple[float, float]:
    """Return where an axis ends, and the distance of its lines: a round number of them."""
    step = round_step((largest or 1.0) / 4.0)
    if whole:
        step = max(step, 1.0)
    return step * max(math.ceil(largest / step * (1.0 - 1e-12)), 1), step


def _grid(
    most: float, step: float, left: float, bottom: float, write: Callable[[float], str]
) -> list[str]:
    parts = []
    for k in range(round(most / step) + 1):
        y = bottom - (bottom - 22) * k * step / most
        if k:
            parts.append(_line("grid", left, y, 100.0, y))
        parts.append(_text(left - 1.5, y + 4, write(k * step), "quiet", "end"))
    return parts


def _label(left: str, right: str, y: float) -> str:
    """Write a name and its value on one line; of a long name, what fits on a phone."""
    room = max(_LINE - len(right), 8)
    left = left if len(left) <= room else f"{left[: room - 1]}…"
    return _text(0.0, y + 14, left, "", "start") + _text(100.0, y + 14, right, "", "end")


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.2f}%" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.2f}%" y="{y:.1f}" width="{width:.2f}%" '
        f'height="{height:.1f}" rx="1.5"/>'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'
