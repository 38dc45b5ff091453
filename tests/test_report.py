"""The report: its arithmetic, its verdicts, and that nothing missing looks like success."""

from __future__ import annotations

import html.parser
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_results import ABOUT, fake_table

from holdfast.paper.report import write_report
from holdfast.paper.report.cells import AGREES, BETTER, DIFFERS, estimate, verdict
from holdfast.paper.report.curves import pareto
from holdfast.paper.report.feasibility import feasibility_pictures
from holdfast.paper.report.frontiers import frontier_pictures
from holdfast.paper.report.names import MODELS
from holdfast.paper.report.optimality import excess, optimality_sheet
from holdfast.paper.report.paper import DATASETS, ROWS, Place, read_cell, read_paper
from holdfast.paper.report.prices import (
    AS_PUBLISHED,
    DRAWN,
    EVERYBODY,
    NEITHER,
    SOUNDLY,
    figures,
    price_sheets,
    protocol,
)
from holdfast.paper.report.proof import proof_picture, proof_sheets
from holdfast.paper.report.results import PUBLISHED, prepare_results
from holdfast.paper.report.sheet import FAILS, NotRun, Sheet, cell, to_csv, to_latex, to_markdown
from holdfast.paper.report.sparsity import sparsity_pictures
from holdfast.paper.report.style import _LOOKS, drawing, look, to_svg
from holdfast.paper.report.subsets import ANY, TRAPPED, WITH_TRAPPED, draw, spread_of, subset_sheet
from holdfast.paper.report.summary import bars, verdict_sheet
from holdfast.paper.report.trapped import trapped_sheet
from holdfast.paper.tidy import write_table

VOID = {"meta", "br", "img"}


class Structure(html.parser.HTMLParser):
    """Checks that tags are closed in order, and gathers what is linked and named."""

    def __init__(self):
        super().__init__()
        self.open, self.links, self.names, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[key] for key in ("href", "src") if key in found]
        self.names += [found["id"]] if "id" in found else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read_page(path):
    structure = Structure()
    structure.feed(path.read_text(encoding="utf-8"))
    assert structure.open == []
    assert len(set(structure.names)) == len(structure.names)
    return structure


def report_of(table, folder, **about):
    write_table(table, folder / "results.parquet", {**ABOUT, **about})
    return write_report(folder / "results.parquet", folder / "report")


@pytest.fixture(scope="module")
def everything():
    return prepare_results(fake_table(), ABOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    table = fake_table()
    table = table[(table["experiment"] != "frontiers") | (table["radius"] == 0.5)]  # fewer figures
    return report_of(table, tmp_path_factory.mktemp("whole"))


# --- the paper's numbers -------------------------------------------------------------------------


def test_the_paper_has_every_cell():
    paper = read_paper()
    assert len(paper.prices) == 3 * 2 * 4 * 4
    assert paper.columns("table2", "german") == [(0.1, 0.7), (0.1, 0.3), (0.5, 0.7), (0.5, 0.3)]
    assert set(paper.seconds) == {(dataset, row) for dataset in DATASETS for row in ROWS}
    assert set(paper.models.values()) == set(MODELS)
    for table in paper.models:  # the paper's own claim: Algorithm 1 is the best of every column
        for dataset in DATASETS:
            for column in paper.columns(table, dataset):
                means = {r: paper.prices[Place(table, dataset, r, *column)].mean for r in ROWS}
                assert means["algorithm1"] == min(means.values())


def test_a_cell_of_the_paper_is_read_as_printed():
    assert str(read_cell("100.88 ± 0.10")) == "100.88 ± 0.10"
    with pytest.raises(ValueError, match=r"written 0.68 ± 0.07, not '0.68'"):
        read_cell("0.68")


def test_a_row_of_the_paper_without_a_cell_is_refused(tmp_path):
    from holdfast.paper.report import paper

    text = paper._FILE.read_text(encoding="utf-8")
    (tmp_path / "paper.yaml").write_text(text.replace("0.68 ± 0.07, ", ""), encoding="utf-8")
    with pytest.raises(ValueError, match="4 columns for german, but 3 cells in its row algorithm1"):
        read_paper(tmp_path / "paper.yaml")


# --- arithmetic and verdicts ---------------------------------------------------------------------


def test_a_cell_is_the_mean_of_the_folds_means():
    rows = pd.DataFrame({"fold": [0, 0, 1, 2], "price": [1.0, 2.0, 2.5, 5.0]})
    found = estimate(rows)  # means of the folds 1.5, 2.5, 5.0: mean 3, deviations -1.5, -.5, 2
    assert found.mean == pytest.approx(3.0)
    assert found.deviation == pytest.approx(math.sqrt((2.25 + 0.25 + 4.0) / 2))
    assert (found.folds, found.people, found.missing) == (3, 4, 0)


def test_a_missing_price_leaves_no_mean():
    rows = pd.DataFrame({"fold": [0, 0], "price": [1.0, math.nan]})
    found = estimate(rows)
    assert math.isnan(found.mean)
    assert "1 of 2 recourses have no value" in str(found)


@pytest.mark.parametrize(
    ("ours", "paper", "word"),
    [
        (0.75, "0.68 ± 0.07", AGREES),
        (0.7501, "0.68 ± 0.07", DIFFERS),
        (0.6099, "0.68 ± 0.07", BETTER),
        (0.035, "0.03 ± 0.00", AGREES),  # half a unit of the last digit
        (0.0251, "0.03 ± 0.00", AGREES),
        (0.0351, "0.03 ± 0.00", DIFFERS),
    ],
)
def test_verdicts(ours, paper, word):
    found = verdict(ours, read_cell(paper))
    assert found.word == word
    assert found.difference == pytest.approx(ours - read_cell(paper).mean)
    assert word in str(found)


def test_figures_of_the_tables_agree_with_the_rows(everything):
    table = everything.frame
    found = figures(everything, "table1", "german")
    one = next(f for f in found if f.line.method == "roar" and f.line.variant == PUBLISHED)
    radius, cost_weight = one.place[3:]
    rows = table[(table["experiment"] == "table1") & (table["dataset"] == "german")
                 & (table["method"] == "roar") & (table["p"] == one.line.p)
                 & (table["variant"] == PUBLISHED) & (table["radius"] == radius)
                 & (table["cost_weight"] == cost_weight)]  # fmt: skip
    by_fold = [group["price"].mean() for _, group in rows.groupby("fold")]
    assert one.ours.mean == pytest.approx(np.mean(by_fold))
    assert one.ours.deviation == pytest.approx(np.std(by_fold, ddof=1))
    exact = [f for f in found if f.line.method == "exact" and f.line.p == 1.0]
    assert all(f.ours.mean == f.best for f in exact)


def test_networks_judged_otherwise_get_no_verdict(everything):
    found = figures(everything, "table2", "german")
    assert {f.verdict is None for f in found if f.line.judging == "search"} == {True}
    assert {f.verdict is None for f in found if f.line.judging == "as_published"} == {False}


def test_with_fewer_folds_there_are_no_verdicts():
    table = fake_table(["table1"], ["german"])
    results = prepare_results(table[table["fold"] < 2], ABOUT)
    sheet, missing = price_sheets(results, "table1")
    assert "no verdicts" in sheet.caption
    assert set(sheet.data["verdict"]) == {""}
    assert isinstance(missing, NotRun)
    assert isinstance(subset_sheet(results, "table1"), NotRun)


def test_a_method_that_has_not_all_people_gets_no_verdict():
    table = fake_table(["table1"], ["german"])
    slow = table["method"].str.startswith("algorithm1") & (table["instance"] > 0)
    found = figures(prepare_results(table[~slow], ABOUT), "table1", "german")
    assert {f.verdict is None for f in found if f.line.method == "algorithm1"} == {True}
    assert {f.verdict is None for f in found if f.line.method == "exact"} == {False}


# --- subsets -------------------------------------------------------------------------------------


def test_subsets_have_their_size_and_the_trapped_row():
    people = {3: list(range(5)), 4: list(range(40))}
    picks = draw(people, {3: 2, 4: 9}, TRAPPED)
    assert picks[4].shape == (1000, 9)
    assert (picks[4] == TRAPPED[1]).any(axis=1).all()
    assert all(len(set(row)) == 9 for row in picks[4].tolist())
    free = draw(people, {3: 2, 4: 9}, None)
    np.testing.assert_array_equal(free[3], picks[3])
    assert not (free[4] == TRAPPED[1]).any(axis=1).all()


def test_the_spread_of_subsets_by_hand():
    prices = {0: np.array([1.0, 3.0]), 1: np.array([2.0, 6.0])}
    picks = {0: np.array([[0], [1]]), 1: np.array([[0], [1]])}
    found = spread_of(prices, picks)  # cells (1, 2) and (3, 6): means 1.5 and 4.5
    assert found.mean == pytest.approx(3.0)
    assert found.deviation == pytest.approx((math.sqrt(0.5) + math.sqrt(4.5)) / 2)
    assert found.spread == pytest.approx(3.0 / math.sqrt(2))


def test_tables_of_subsets(everything):
    linear = subset_sheet(everything, "table1")
    assert set(linear.data["subsets"]) == {ANY, WITH_TRAPPED}
    assert set(linear.data["method"]) == {"exact", "algorithm1", "algorithm2", "roar"}
    assert all("sample" not in row[1].lines[0] for row in linear.rows)


def test_the_authors_sample_stands_beside_everybody(everything):
    found = figures(everything, "table1", "sba")
    lines = {f.line for f in found if f.line.method == "roar" and f.line.p == 1.0}
    assert {(line.people, line.variant) for line in lines} == {
        (people, variant) for people in (EVERYBODY, DRAWN) for variant in ("", PUBLISHED)
    }
    frame = everything.frame
    rows = frame[(frame["experiment"] == "table1") & (frame["dataset"] == "sba")
                 & (frame["method"] == "exact") & (frame["p"] == 1.0) & frame["drawn"]
                 & (frame["radius"] == 0.1) & (frame["cost_weight"] == 0.1)]  # fmt: skip
    one = next(f for f in found if f.line.method == "exact" and f.line.people == DRAWN)
    assert one.ours.mean == pytest.approx(rows.groupby("fold")["price"].mean().mean())
    ways = {protocol(line) for line in lines if line.people == DRAWN}
    assert ways == {AS_PUBLISHED, NEITHER}
    assert {protocol(line) for line in lines if line.people == EVERYBODY} == {SOUNDLY, NEITHER}


def test_the_third_table_is_compared_on_the_folds_of_the_paper(everything):
    found = figures(everything, "table3", "sba")
    for way, folds in (("lime_as_published", 2), ("smoothgrad", 5)):
        mine = [f for f in found if (f.line.linearise, f.line.judging) == (way, "as_published")]
        assert len(mine) == 16
        assert all(f.verdict is not None and f.ours.folds == folds for f in mine)
    assert "first 2 folds" in next(iter(price_sheets(everything, "table3"))).caption


# --- the other tables ----------------------------------------------------------------------------


def test_a_price_below_the_optimum_is_a_loud_failure(tmp_path):
    table = fake_table(["table1"], ["german"])
    chosen = (
        table["method"].str.startswith("roar") & (table["instance"] == 0) & (table["fold"] == 0)
    )
    table.loc[chosen, "price"] = 0.0
    results = prepare_results(table, ABOUT)
    assert excess(results)["excess"].min() < 0
    marks = [row[-1].mark for row in optimality_sheet(results).rows]
    assert marks.count(FAILS) == 4  # two balls, two losses
    assert next(bars(results)).holds is False
    text = report_of(table, tmp_path).read_text(encoding="utf-8")
    assert "✗ Does not hold." in text
    assert "✗ FAILS" in text


def test_bars_hold_on_sound_rows(everything):
    found = {bar.what.partition(":")[0]: bar.holds for bar in bars(everything)}
    assert list(found.values())[:2] == [True, True]
    assert found["Table 1, what the paper says"]
    assert found["Table 1, German"] is False  # the numbers are invented


def test_what_is_proven_is_counted_beside_what_is_found(everything):
    sheet = next(proof_sheets(everything))
    frame = everything.frame
    rows = frame[(frame["experiment"] == "proof") & (frame["dataset"] == "german")
                 & (frame["method"] == "roar") & (frame["p"] == 1.0)
                 & (frame["radius"] == 0.5) & (frame["cost_weight"] == 0.3)]  # fmt: skip
    data = sheet.data
    one = data[(data["method"] == "roar") & (data["p"] == 1.0) & (data["radius"] == 0.5)
               & (data["cost_weight"] == 0.3)].iloc[0]  # fmt: skip
    assert one["people"] == len(rows) == 10
    assert one["proven"] == (rows["proven_validity"] >= 0.5).sum()
    assert one["found"] == (rows["worst_case_validity"] >= 0.5).sum()
    assert one["cost"] == pytest.approx(rows["cost"].mean())
    assert (data["proven"] <= data["found"]).all()
    assert data["proven"].sum() < data["found"].sum()
    # the paper's cost weights are shown, the guarantee last; the frontiers' are in the CSV alone
    shown = [[c.lines[0] for c in row[:4]] for row in sheet.rows]
    assert {weight for _, _, weight, _ in shown} == {"0.7", "0.3", "–"}
    assert set(data["cost_weight"].dropna()) > {0.7, 0.3}
    last = [row for row in shown if row[0] == "p = 1, radius 0.1"][-1]
    assert last[1:] == ["refined (p = 1), guarantee 0.5", "–", "100.0 % (10 of 10)"]


def test_a_recourse_that_is_missing_is_not_proven(everything):
    rows = everything.frame.copy()
    first = rows.index[(rows["experiment"] == "proof") & rows["guarantee"].notna()][0]
    rows.loc[first, ["cost", "proven_validity", "worst_case_validity"]] = math.nan
    sheet = next(proof_sheets(everything._replace(frame=rows)))
    one = sheet.data[sheet.data["guarantee"].notna()].iloc[0]
    assert (one["people"], one["proven"], one["found"]) == (10, 9, 9)
    assert math.isnan(one["cost"])
    assert not math.isnan(one["cost_if_proven"])


def test_a_proof_that_a_network_refutes_is_a_loud_failure(everything):
    def refuted(results):
        return next(bar.holds for bar in bars(results) if "than is proven" in bar.what)

    assert refuted(everything)
    rows = everything.frame.copy()
    first = rows.index[rows["experiment"] == "proof"][0]
    rows.loc[first, "proven_validity"] = rows.loc[first, "worst_case_validity"] + 1e-6
    assert refuted(everything._replace(frame=rows)) is False
    assert refuted(prepare_results(fake_table(["table1"]), ABOUT)) is None


def test_where_nothing_was_proven_it_is_said():
    results = prepare_results(fake_table(["table1", "frontiers"]), ABOUT)
    assert all(
        isinstance(part, NotRun) for part in [*proof_sheets(results), proof_picture(results)]
    )


def test_the_proof_leaves_all_other_parts_as_they_are(tmp_path):
    table = fake_table(["table1", "table2", "proof"], ["german"])
    for name, rows in (("with", table), ("without", table[table["experiment"] != "proof"])):
        (tmp_path / name).mkdir()
        report_of(rows, tmp_path / name)
    before, after = (tmp_path / name / "report" for name in ("without", "with"))
    kept = {path.relative_to(before) for path in before.rglob("*.*")} - {Path("index.html")}
    new = {path.relative_to(after) for path in after.rglob("*.*")} - kept
    assert {path.stem for path in new} == {"index", "proof", "proof-german"}
    for name in kept:
        assert (before / name).read_bytes() == (after / name).read_bytes(), name


def test_the_trapped_row_is_that_person(everything):
    sheet = trapped_sheet(everything)
    assert set(sheet.data["p"]) == {1.0, math.inf}
    assert len(sheet.rows) == 9
    assert isinstance(
        trapped_sheet(prepare_results(fake_table(["table1"], ["german"]), ABOUT)), NotRun
    )


def test_verdicts_are_counted_once(everything):
    data = verdict_sheet(everything).data
    counted = data[["agrees", "better", "differs", "none"]].to_numpy().sum()
    every = [f for t in ("table1", "table2", "table3") for d in DATASETS
             for f in figures(everything, t, d)]  # fmt: skip
    assert counted == sum(protocol(figure.line) != NEITHER for figure in every)


def test_written_forms_of_a_sheet():
    data = pd.DataFrame({"x": [0.1 + 0.2]})
    rows = [[cell("a|b_1"), cell("1.0 ± 0.1", "✓ agrees", mark=AGREES)]]
    sheet = Sheet("one", "A & B", "50 % of ∞", ["name", "value"], rows, data)
    assert to_csv(sheet) == "x\n0.30000000000000004\n"
    assert "| a\\|b_1 | 1.0 ± 0.1<br>✓ agrees |" in to_markdown(sheet)
    latex = to_latex(sheet)
    assert r"a|b\_1 & \shortstack{1.0 $\pm$ 0.1 \\ agrees} \\" in latex
    assert r"A \& B. 50 \% of $\infty$" in latex
    assert r"\toprule" in latex


# --- figures -------------------------------------------------------------------------------------


def test_a_method_has_its_own_colour_and_marker():
    assert len({look.colour for look in _LOOKS.values()}) == len(_LOOKS)
    assert len({look.marker for look in _LOOKS.values()}) == len(_LOOKS)
    with pytest.raises(ValueError, match="guess has no colour"):
        look("guess", 1.0)


_FIGURES = (frontier_pictures, feasibility_pictures, sparsity_pictures)


def test_the_same_colour_in_every_figure(everything):
    seen = {}
    with drawing():
        pictures = [next(draw(everything)) for draw in _FIGURES]
        for picture in [*pictures, proof_picture(everything)]:
            figure = picture.figure
            for axes in figure.axes:
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                    colour = handle.get_color() if hasattr(handle, "get_color") else None
                    colour = colour or _hex(handle.patches[0].get_facecolor())
                    seen.setdefault(label.removesuffix(", constraints inside"), set()).add(colour)
    assert len(seen) == 5 + 2  # what is found, and the guarantee
    assert all(len(colours) == 1 for colours in seen.values())


def _hex(colour):
    from matplotlib.colors import to_hex

    return to_hex(colour).upper()


def test_pareto_points():
    cost, value = pareto(np.array([2.0, 1.0, 1.0, 3.0]), np.array([0.4, 0.5, 0.3, 0.6]))
    np.testing.assert_array_equal(cost, [1.0, 3.0])
    np.testing.assert_array_equal(value, [0.5, 0.6])


# --- the whole report ----------------------------------------------------------------------------


def test_everything_is_there_and_linked(whole):
    page = read_page(whole)
    assert "Not run" not in "".join(page.text)
    linked = {link for link in page.links if not link.startswith("#")}
    kept = {str(path.relative_to(whole.parent)) for path in whole.parent.rglob("*.*")}
    assert linked | {"index.html"} == kept
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.names)
    assert len([name for name in kept if name.endswith(".svg")]) == 4 + 1 + 2 + 2 + 1
    for path in (whole.parent / "figures").glob("*.svg"):
        ET.parse(path)
    for path in (whole.parent / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_latex_is_plain(whole):
    for path in (whole.parent / "tables").glob("*.tex"):
        assert path.read_text(encoding="utf-8").isascii(), path.name


def test_the_page_needs_nothing_from_elsewhere(whole):
    text = whole.read_text(encoding="utf-8")
    assert "http" not in text
    assert "<script" not in text
    assert 'name="viewport"' in text


def test_what_is_absent_or_failed_or_quick_is_said_at_the_top(tmp_path):
    why = "the file <sba.csv> was not found"
    page = report_of(
        fake_table(["table1"], ["german"]),
        tmp_path,
        absent=[{"what": "sba", "why": why}],
        failed=[{"piece": "table2/german/fold 3", "why": "no <memory>"}],
        settings={**ABOUT["settings"], "quick": True},
    )
    text = "".join(read_page(page).text)
    top = text[: text.index("Summary")]
    assert why in top
    assert "table2/german/fold 3: no <memory>" in top
    assert "A quick run" in top
    assert "<sba.csv>" not in page.read_text(encoding="utf-8")
    assert text.count("Not run") > 10
    assert text.count(why) > 5
    assert (page.parent / "tables" / "table1-german.md").exists()
    assert not (page.parent / "tables" / "table1-sba.md").exists()


def test_what_is_not_run_any_more_leaves_no_files(tmp_path):
    for folder, name in (("tables", "table1-sba.csv"), ("figures", "trapped.svg")):
        (tmp_path / "report" / folder).mkdir(parents=True)
        (tmp_path / "report" / folder / name).touch()
    page = report_of(fake_table(["table1"], ["german"]), tmp_path)
    left = {path.name for path in page.parent.rglob("*.*")}
    assert not [name for name in left if "sba" in name or "trapped" in name]
    assert "norms.svg" in left


def test_the_same_table_gives_the_same_bytes(tmp_path):
    table = fake_table(["table1"], ["german"])
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        report_of(table, folder)
    names = sorted(path.relative_to(first) for path in (first / "report").rglob("*.*"))
    assert len(names) > 10
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_the_same_frontier_gives_the_same_bytes(everything):
    with drawing():
        figures_ = [next(frontier_pictures(everything)).figure for _ in range(2)]
        assert to_svg(figures_[0]) == to_svg(figures_[1])


def test_an_empty_table_is_all_not_run(tmp_path):
    page = report_of(fake_table(["table1"], ["german"]).iloc[:0], tmp_path)
    assert not list((page.parent / "figures").iterdir())
    assert "Not run" in page.read_text(encoding="utf-8")


def test_a_run_on_a_part_of_the_people_gets_no_verdicts():
    limited = {**ABOUT["settings"], "most_network_rows": 3}
    results = prepare_results(fake_table(["table1", "table2"]), {**ABOUT, "settings": limited})
    assert not any(figure.verdict for figure in figures(results, "table2", "sba"))
    assert all(figure.verdict for figure in figures(results, "table1", "sba"))
    assert isinstance(subset_sheet(results, "table2"), NotRun)
