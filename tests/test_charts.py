"""Charts: well-formed SVG that says what it shows, whatever the numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.report.charts import (
    STYLE,
    About,
    BarRow,
    IntervalRow,
    LinePoints,
    SizeLine,
    SizeTexts,
    bar_chart,
    histogram_chart,
    interval_chart,
    line_chart,
    size_chart,
    split_chart,
)
from holdfast.report.intervals import Interval
from holdfast.report.sketch import Histogram, Sketch

SVG = "{http://www.w3.org/2000/svg}"
ABOUT = About("chart", 'A "title" & more', "What is <seen>")
values = st.floats(min_value=0.0, max_value=1e9, allow_nan=False)


def parsed(svg: str) -> ET.Element:
    root = ET.fromstring(svg)
    assert root.attrib["role"] == "img"
    title, text = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert title.text == ABOUT.title
    assert text is not None
    assert text.text == ABOUT.text
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], text.attrib["id"]]
    return root


def percents(root: ET.Element, *names: str) -> list[float]:
    """All places along the chart; each lies inside of it."""
    found = [
        float(part.attrib[name].removesuffix("%"))
        for part in root.iter()
        for name in names
        if part.attrib.get(name, "").endswith("%")
    ]
    assert all(-1e-9 <= place <= 100.01 for place in found)
    return found


def rects(root: ET.Element, kind: str) -> list[ET.Element]:
    return [each for each in root.iter(f"{SVG}rect") if each.attrib["class"] == kind]


def test_bars_are_as_long_as_their_values():
    bars = [BarRow("a <b>", 0.5, "50%"), BarRow("c", 0.25, "25%"), BarRow("none", 0.0, "0%")]
    root = parsed(bar_chart(ABOUT, bars, 1.0))
    assert [float(r.attrib["width"][:-1]) for r in rects(root, "bar")] == [50.0, 25.0]
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts == ["a <b>", "50%", "c", "25%", "none", "0%"]


def test_parts_fill_the_whole():
    parts = [BarRow("x", 3, ""), BarRow("y", 1, "")]
    root = parsed(split_chart(ABOUT, parts))
    assert float(rects(root, "bar")[0].attrib["width"][:-1]) == 75.0
    assert float(rects(root, "rest")[0].attrib["x"][:-1]) == 75.0


def test_bars_of_a_histogram_are_as_tall_as_their_counts():
    root = parsed(histogram_chart(ABOUT, Histogram([0.0, 1.0, 2.0, 3.0], [4, 0, 2], 1), "cost"))
    first, last = rects(root, "bar")
    assert float(first.attrib["height"]) == pytest.approx(2.0 * float(last.attrib["height"]))
    assert {"0", "1", "2", "3", "cost"} <= {each.text for each in root.iter(f"{SVG}text")}


def test_points_lie_at_their_values():
    line = LinePoints([0.0, 1.0], [1.0, 0.5], ["0", "1"], ["100%", "50%"], [(0.9, 1.0), (0.4, 0.6)])
    root = parsed(line_chart(ABOUT, line, "size", 1.0))
    heights = [float(dot.attrib["cy"]) for dot in root.iter(f"{SVG}circle")]
    assert heights == [22.0, 97.0]  # of an axis from 172 up to 22


def test_points_that_are_not_known_are_left_out():
    line = LinePoints([0.0, 1.0, 2.0], [1.0, math.nan, 3.0], ["a", "b", "c"], ["1", "–", "3"])
    root = parsed(line_chart(ABOUT, line, "size"))
    assert len(list(root.iter(f"{SVG}circle"))) == 2
    assert "nan" not in line_chart(ABOUT, line, "size")


SIZES = SizeTexts("plain 1", "3 at 0.3", "out of reach", "size", "cost")


def test_sizes_rise_in_steps_with_two_of_them_marked():
    line = SizeLine([0.0, 0.25, 0.25, 0.5], [1.0, 1.0, 4.0, 4.0], mark=0.25, mark_cost=1.0)
    root = parsed(size_chart(ABOUT, line, SIZES))
    drawn = [each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "line"]
    ends = [[each.attrib[end] for end in ("x1", "x2", "y1", "y2")] for each in drawn]
    assert ends == [  # from 11% on, and from 178 up to 22
        ["11.00%", "55.50%", "139.0", "139.0"],
        ["55.50%", "55.50%", "139.0", "22.0"],
        ["55.50%", "100.00%", "22.0", "22.0"],
    ]
    plain, here = root.iter(f"{SVG}circle")
    assert (plain.attrib["class"], plain.attrib["cx"], plain.attrib["cy"]) == (
        "hollow",
        "11.00%",
        "139.0",
    )
    assert (here.attrib["class"], here.attrib["cx"], here.attrib["cy"]) == (
        "dot",
        "55.50%",
        "139.0",
    )
    (marker,) = [each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "marker"]
    assert marker.attrib["x1"] == marker.attrib["x2"] == "55.50%"
    assert {"plain 1", "3 at 0.3", "size", "cost"} <= {t.text for t in root.iter(f"{SVG}text")}
    assert not rects(root, "beyond")


@pytest.mark.parametrize("mark", [0.0, 0.005, 0.05, 0.12, 0.2, 0.5])
def test_the_marker_does_not_go_through_the_word_for_plain(mark):
    line = SizeLine([0.0, 0.5], [1.0, 1.0], mark=mark, mark_cost=1.0)
    root = parsed(size_chart(ABOUT, line, SIZES))
    (word,) = [each for each in root.iter(f"{SVG}text") if each.text == "plain 1"]
    (marker,) = [each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "marker"]
    begin, x = float(word.attrib["x"][:-1]), float(marker.attrib["x1"][:-1])
    assert x < begin or begin + 25.0 < x  # so wide it may be on a phone


def test_a_size_out_of_reach_is_marked_beyond_the_end():
    line = SizeLine([0.0, 0.2], [1.0, 1.0], mark=0.8, mark_cost=math.inf)
    root = parsed(size_chart(ABOUT, line, SIZES))
    (beyond,) = rects(root, "beyond")
    assert beyond.attrib["x"] == f"{11.0 + 89.0 / 4.0:.2f}%"
    assert len(list(root.iter(f"{SVG}circle"))) == 1
    assert "out of reach" in {each.text for each in root.iter(f"{SVG}text")}


@given(st.lists(st.tuples(values, values), max_size=6), values)
def test_sizes_are_well_formed_whatever_they_are(corners, mark):
    sizes, costs = (sorted(part) for part in zip((0.0, 1.0), *corners, strict=True))
    cost = costs[0] if mark <= sizes[-1] else math.inf
    svg = size_chart(ABOUT, SizeLine(sizes, costs, mark, cost), SIZES)
    percents(parsed(svg), "x", "x1", "x2", "cx")
    assert "nan" not in svg
    assert "inf" not in svg
    assert " style=" not in svg


def test_intervals_lie_on_one_scale():
    rows = [
        IntervalRow("few", Interval(0.5, math.nan, math.nan), "50%"),
        IntervalRow("many", Interval(0.5, 0.4, 0.6), "50% (40% to 60%)"),
    ]
    root = parsed(interval_chart(ABOUT, rows, 1.0))
    ranges = [each for each in root.iter(f"{SVG}line") if each.attrib["class"] == "range"]
    assert [(each.attrib["x1"], each.attrib["x2"]) for each in ranges] == [("40.00%", "60.00%")]
    assert len(list(root.iter(f"{SVG}circle"))) == 2


@given(st.lists(values, max_size=8), st.text(max_size=12))
def test_whatever_the_numbers_a_chart_stays_inside(numbers, label):
    label = "".join(sign for sign in label if sign.isprintable())
    rows = [BarRow(label, value, label) for value in numbers]
    sketch = Sketch()
    sketch.add(numbers)
    intervals = [IntervalRow(label, Interval(v, v / 2.0, v * 1.5), label) for v in numbers]
    charts = [bar_chart(ABOUT, rows), split_chart(ABOUT, rows)]
    charts += [histogram_chart(ABOUT, sketch.histogram(), label), interval_chart(ABOUT, intervals)]
    if numbers:
        places = [float(k) for k in range(len(numbers))]
        line = LinePoints(places, numbers, [label] * len(numbers), [label] * len(numbers))
        charts.append(line_chart(ABOUT, line, label))
    for chart in charts:
        root = parsed(chart)
        percents(root, "x", "x1", "x2", "cx", "width")
        for rect in root.iter(f"{SVG}rect"):
            x, width = (float(rect.attrib[name][:-1]) for name in ("x", "width"))
            assert x + width <= 100.05


def test_every_class_that_is_drawn_has_a_style():
    both = [(0.5, 1.5), (1.5, 2.5)]
    line = LinePoints([0.0, 1.0], [1.0, 2.0], ["a", "b"], ["1", "2"], both)
    drawn = [
        bar_chart(ABOUT, [BarRow("a", 1.0, "1")]),
        split_chart(ABOUT, [BarRow("a", 1.0, "1"), BarRow("b", 1.0, "1")]),
        histogram_chart(ABOUT, Histogram([0.0, 1.0], [2], 0), "x"),
        line_chart(ABOUT, line, "x"),
        interval_chart(ABOUT, [IntervalRow("a", Interval(1.0, 0.5, 2.0), "b")]),
    ]
    parts = [each for svg in drawn for each in ET.fromstring(svg).iter()]
    used = {each.attrib["class"] for each in parts if "class" in each.attrib}
    assert len(used) == 11
    for kind in used - {"chart"}:
        assert f"svg.chart .{kind} " in STYLE
