"""The report: every figure computed once more, in another way; and the page in a browser."""

from __future__ import annotations

import functools
import itertools
import json
import math
import operator
import re

import numpy as np
import pandas as pd
import pytest
from browser import complaints, needs_browser, picture, printed_pages, widths
from recourse_files import (
    german_file,
    german_model,
    german_people,
    later_models,
    make_recourse,
)
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import holdfast
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.files.model_sets import model_set_to_plain
from holdfast.files.models import load_model, save_model
from holdfast.files.recourse import RecourseFile
from holdfast.fitting import fit_default
from holdfast.report import summarise, write_report_page
from holdfast.report.figures import figure, share_text
from holdfast.report.intervals import mean_within, median_ranks, wilson
from holdfast.report.people import Foremost, Sample, scattered, whole_people
from holdfast.report.sketch import Sketch


@pytest.fixture(scope="module")
def frame():
    return german_file().frame()


@pytest.fixture(scope="module")
def summary():
    return summarise(german_file(), "region", [load_model(path) for path in later_models()])


@pytest.fixture(scope="module")
def first(frame):
    """One row for each person."""
    return frame[frame.option <= 1].set_index("row")


@pytest.fixture(scope="module")
def helped(first):
    return first[(first.approved == False) & (first.option == 1)]  # noqa: E712


def test_people_are_counted(summary, first, helped):
    counts = summary.counts
    assert counts.people == len(first) == 1000
    assert counts.unusable == int(first.approved.isna().sum()) == 3
    assert counts.approved == int((first.approved == True).sum())  # noqa: E712
    refused = first[first.approved == False]  # noqa: E712
    assert counts.refused == len(refused)
    assert counts.helped == len(helped)
    assert counts.not_helped == len(refused) - len(helped) > 0
    assert counts.people == counts.unusable + counts.approved + counts.refused
    assert counts.why_not == refused.drop(helped.index).status.value_counts().to_dict()
    firm = (first.approved == True) & (first.status == "already valid")  # noqa: E712
    assert counts.approved_firmly == int(firm.sum()) < counts.approved


def test_costs(summary, helped):
    costs = helped.cost.to_numpy()
    assert summary.costs.mean.estimate == pytest.approx(costs.mean(), rel=1e-12)
    half = stats.t.ppf(0.975, len(costs) - 1) * costs.std(ddof=1) / math.sqrt(len(costs))
    assert summary.costs.mean.low == pytest.approx(costs.mean() - half, rel=1e-12)
    for share, value in summary.costs.quantiles.items():
        exact = np.quantile(costs, float(share), method="inverted_cdf")
        assert value == pytest.approx(exact, rel=1e-3)
    edges, counts, beyond = summary.costs.histogram
    assert sum(counts) + beyond == len(costs)
    assert counts == np.histogram(costs, edges)[0].tolist()
    assert beyond <= 0.01 * len(costs) + 1


def test_features_that_carry_the_recourse(summary, helped):
    changed = {}
    for name in german_file().features:
        before, after = helped[f"person.{name}"], helped[f"recourse.{name}"]
        if (before != after).any():
            changed[name] = int((before != after).sum())
    assert {each.name: each.changed for each in summary.features} == changed
    assert [each.changed for each in summary.features] == sorted(changed.values(), reverse=True)
    shares = {each.name: each for each in summary.features}
    step = helped["recourse.duration"] - helped["person.duration"]
    assert shares["duration"].down == int((step < 0).sum()) == shares["duration"].changed
    assert shares["duration"].mean_down == pytest.approx(-step[step < 0].mean(), rel=1e-12)
    assert shares["duration"].up == 0
    moves = helped[helped["person.savings_status"] != helped["recourse.savings_status"]]
    pairs = moves.groupby(["person.savings_status", "recourse.savings_status"]).size()
    before, after, count = shares["savings_status"].moves[0]
    assert count == pairs.max() == pairs[(before, after)]


def test_robustness_costs_more_and_helps_fewer(summary, helped):
    found = summary.robustness
    assert found.people == summary.counts.refused  # fewer than 300: all of them
    points = {point.multiple: point for point in found.points}
    assert list(points) == [0.0, 0.25, 0.5, 1.0, 1.5]
    assert points[1.0].helped == len(helped)
    helps = [point.helped for point in found.points]
    costs = [point.mean_cost for point in found.points]
    assert helps == sorted(helps, reverse=True)
    assert helps[0] > helps[-1]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]
    assert points[1.5].radius == pytest.approx(0.15)


def test_the_sample_is_at_most_three_hundred_people(tmp_path):
    file = make_recourse(tmp_path, pd.concat([german_people()] * 2), n_options=1)
    found = summarise(file)
    assert found.counts.refused > 300
    assert found.robustness.people == 300


def test_survival_under_later_models(summary, helped):
    names = german_file().features
    after = helped[[f"recourse.{name}" for name in names]].set_axis(names, axis=1)
    for found, path in zip(summary.survival, later_models(), strict=True):
        holds = load_model(path).model.predict(after) == 0
        assert found.people == len(after)
        assert found.first_holds == int(holds.sum())
        assert found.model == str(path)
        assert tuple(found.survival) == tuple(wilson(int(holds.sum()), len(after)))
    assert all(len(point.survival) == 2 for point in summary.robustness.points)


def test_groups(summary, first, helped):
    assert [each.name for each in summary.groups] == ["north", "south", "west"]
    for each in summary.groups:
        usable = first[(first.region == each.name) & first.approved.notna()]
        refused = usable[usable.approved == False]  # noqa: E712
        costs = helped[helped.region == each.name].cost
        assert (each.people, each.refused, each.helped) == (len(usable), len(refused), len(costs))
        exact = stats.binomtest(len(costs), len(refused)).proportion_ci(method="wilson")
        assert each.share_helped.low == pytest.approx(exact.low, rel=1e-12)
        assert each.share_helped.high == pytest.approx(exact.high, rel=1e-12)
        assert each.mean_cost.estimate == pytest.approx(costs.mean())
        assert each.median_cost.estimate == pytest.approx(
            np.quantile(costs, 0.5, method="inverted_cdf"), rel=1e-3
        )
        low, high = median_ranks(len(costs))
        ordered = np.sort(costs)
        assert each.median_cost.low == pytest.approx(ordered[low - 1], rel=1e-3)
        assert each.median_cost.high == pytest.approx(ordered[high - 1], rel=1e-3)


def test_groups_by_a_column_that_the_model_reads():
    found = summarise(german_file(), "housing").groups
    assert [each.name for each in found] == ["castle", "for free", "own", "rent"]
    assert found[0].people == 0  # their row could not be used
    assert sum(each.refused for each in found) == 207


def test_hardest_cases(summary, first, helped):
    lost = first[(first.approved == False)].drop(helped.index)  # noqa: E712
    furthest = lost.sort_values(["initial_validity"], kind="stable").head(10)
    assert [case.row for case in summary.lost] == furthest.index.tolist()
    assert all(case.in_the_way for case in summary.lost)
    protected = ("age", "personal_status")
    said = " ".join(words for case in summary.lost for words in case.in_the_way)
    assert not any(name in said for name in protected)
    dear = helped.sort_values("cost", ascending=False, kind="stable").head(10)
    assert [case.row for case in summary.dearest] == dear.index.tolist()
    assert summary.dearest[0].changes == dear.changes.iloc[0]
    assert summary.dearest[0].keys["customer"] == dear.customer.iloc[0]


def test_batches_do_not_matter(summary, monkeypatch):
    monkeypatch.setattr(
        RecourseFile, "batches", lambda self, columns=None: self.table.batches(7, columns)
    )
    again = summarise(german_file(), "region", [load_model(path) for path in later_models()])
    ours, theirs = (json.dumps(each.to_plain(), default=str) for each in (summary, again))
    rounded = [re.sub(r"(\d\.\d{9})\d+", r"\1", text) for text in (ours, theirs)]
    assert rounded[0] == rounded[1]


def test_the_figures_are_json(summary):
    plain = json.loads(json.dumps(summary.to_plain(), default=str, allow_nan=False))
    assert plain["counts"]["refused"] == 207
    assert plain["survival"][0]["survival"]["estimate"] == summary.survival[0].survival.estimate
    assert plain["settings"]["guarantee"] == 0.5
    assert plain["settings"]["checksums"]["model"] == german_file().model_file().sha256


def test_wilson_against_known_values():
    # Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29
    for (count, total), (low, high) in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        found = wilson(count, total)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert wilson(7, 7).high == 1.0


def test_the_interval_of_a_median_holds_as_often_as_it_says():
    random = np.random.default_rng(0)
    held = []
    for _ in range(2000):
        values = np.sort(random.exponential(size=25))
        low, high = median_ranks(25)
        held.append(values[low - 1] <= math.log(2.0) <= values[high - 1])
    assert np.mean(held) >= 0.94
    assert math.isnan(mean_within(1.0, 0.0, 1).low)


@pytest.mark.parametrize("size", [1, 3, 50, 5000])
def test_a_sketch_knows_quantiles_to_a_thousandth(size):
    values = np.random.default_rng(size).lognormal(sigma=2.0, size=size)
    values[: size // 5] = 0.0
    sketch = Sketch()
    for part in np.array_split(values, 7):
        sketch.add(part)
    for share in (0.01, 0.1, 0.5, 0.9, 1.0):
        exact = np.quantile(values, share, method="inverted_cdf")
        assert sketch.quantile(share) == pytest.approx(exact, rel=1e-3)
    assert sketch.mean.estimate == pytest.approx(values.mean(), rel=1e-12)
    assert sum(sketch.histogram().counts) + sketch.histogram().beyond == size


def test_a_sketch_of_nothing():
    assert math.isnan(Sketch().quantile(0.5))
    assert math.isnan(Sketch().median.estimate)
    assert Sketch().histogram().counts == []


def test_samples_do_not_depend_on_batches():
    import pyarrow as pa

    rows = np.arange(10_000)
    found = []
    for size in (17, 1000, 10_000):
        sample = Sample(100)
        for begin in range(0, len(rows), size):
            sample.add(pa.table({"row": rows[begin : begin + size]}))
        found.append(sample.table()["row"].to_pylist())
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 100
    assert 3500 < np.mean(found[0]) < 6500  # from all over the file
    assert len(np.unique(scattered(rows))) == len(rows)


def test_the_foremost_are_found_in_batches():
    import pyarrow as pa

    values = np.random.default_rng(0).integers(0, 50, size=1000).astype(float)
    values[3] = math.nan
    few = Foremost(10)
    for begin in range(0, 1000, 13):
        some = slice(begin, begin + 13)
        few.add(pa.table({"row": np.arange(1000)[some]}), values[some])
    expected = np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable")[:10]
    assert few.table()["row"].to_pylist() == expected.tolist()


def test_people_come_as_a_whole():
    import pyarrow as pa

    rows = np.repeat(np.arange(50), np.arange(50) % 4 + 1)
    tables = [pa.table({"row": rows[k : k + 3]}) for k in range(0, len(rows), 3)]
    parts = [part["row"].to_pylist() for part in whole_people(tables)]
    assert functools.reduce(operator.iadd, parts, []) == rows.tolist()
    for one, other in itertools.pairwise(parts):
        assert one[-1] != other[0]


def test_figures_in_sentences():
    assert [share_text(share) for share in (0.0, 0.004, 0.5, 0.9999, 1.0)] == [
        "0%",
        "0.4%",
        "50%",
        "99.9%",
        "100%",
    ]
    assert [figure(value) for value in (0.0, 0.12345, 12.3, 1234567.0)] == [
        "0",
        "0.123",
        "12.3",
        "1,234,567",
    ]


def page_of(file, **settings):
    return write_report_page(summarise(file, **settings))


def test_the_page_needs_nothing_else(summary):
    page = write_report_page(summary)
    assert "<script" not in page
    assert " src=" not in page
    assert "@import" not in page
    links = re.findall(r'(?:href|url\()\s*=?\s*"?([^"\s>)]+)', page)
    assert links == ["data:,"]
    assert set(re.findall(r"https?://[^\s\"<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count("<svg") == page.count("<title id=") == page.count("<desc id=") == 8


def test_people_appear_as_hardest_cases_only(summary):
    page = write_report_page(summary)
    shown = {case.keys["customer"] for case in (*summary.lost, *summary.dearest)}
    assert set(re.findall(r"C\d{4}", page)) == shown


def test_what_people_write_stays_text(tmp_path):
    people = german_people()
    people["customer"] = "<script>alert(1)</script>"
    people["region"] = "<b>&\"'"
    page = page_of(make_recourse(tmp_path, people, n_options=1), group="region")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>&" not in page


@pytest.mark.parametrize(
    ("which", "settings", "says"),
    [
        (lambda all_: all_.iloc[:0], {}, "refuses nobody"),
        (lambda all_: all_.iloc[[0, 2, 5]], {}, "refuses nobody"),
        (lambda all_: all_.iloc[[5, 100]], {}, "2 rows could not be used"),
        (lambda all_: all_.iloc[[374]], {}, "1 person"),
        (lambda all_: all_.iloc[:60], {"robust_to": "p=1,radius=0"}, "nothing to compare"),
        (lambda all_: all_.iloc[:60], {"guarantee": None, "cost_weight": 0.1}, "of these can be"),
    ],
)
def test_small_and_strange_files(tmp_path, which, settings, says):
    file = make_recourse(tmp_path, which(german_people()), n_options=1, **settings)
    page = page_of(file)
    assert says in page
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL).lower()


def test_advice_that_today_s_model_still_refuses_is_no_help(tmp_path):
    file = make_recourse(
        tmp_path, german_people().iloc[:200], n_options=1, guarantee=None, cost_weight=0.5
    )
    frame = file.frame()
    refused = frame[frame.approved == False]  # noqa: E712
    assert (refused.status == "still refused").any()
    counts = summarise(file).counts
    assert counts.helped == int((refused.current_validity >= 0.5).sum())
    assert counts.why_not["still refused"] == int((refused.status == "still refused").sum())


@pytest.mark.parametrize("asked", [{"cost_weight": 0.5}, {"guarantee": 0.2}])
def test_nobody_is_called_hopeless_of_whom_no_yes_was_asked_for(tmp_path, capsys, asked):
    people = german_people().iloc[:200]
    file = make_recourse(tmp_path, people, n_options=1, **{"guarantee": None, **asked})
    frame = file.frame()
    refused = frame[frame.approved == False]  # noqa: E712
    found = summarise(file, "region")
    counts = found.counts
    assert counts.not_known == int((refused.status == "still refused").sum()) > 0
    assert counts.not_helped == int((refused.status == "infeasible").sum())
    assert counts.refused == counts.helped + counts.not_helped + counts.not_known
    assert len(found.lost) == min(counts.not_helped, 10)
    page = write_report_page(found)
    assert (
        f"for {counts.not_known} it is not known, because the run did not ask for an approval"
        in page
    )
    assert f"{counts.not_known} unknown, approval not asked for (" in page
    assert f"{counts.not_known} unknown, approval not asked for.</desc>" in page
    assert f"Approval was not asked for ({counts.not_known}): " in page
    for untrue in ("% of them can change", "None of them can change", "does not help"):
        assert untrue not in page
    code, said, _ = run(capsys, "report", file.path, "--out", tmp_path / "report.html")
    assert code == 0
    assert f"cannot; for {counts.not_known} it is not known" in said


@pytest.mark.parametrize("asked", [{"cost_weight": 0.1}, {"guarantee": 0.8}, {"guarantee": 0.3}])
def test_who_is_approved_by_every_model_does_not_depend_on_what_was_asked(tmp_path, asked):
    people = german_people().iloc[:200]
    settings = {"robust_to": "p=1,radius=0.3", "n_options": 1}
    (tmp_path / "even").mkdir()
    even = make_recourse(tmp_path / "even", people, guarantee=0.5, **settings)
    file = make_recourse(tmp_path, people, **{"guarantee": None, **settings, **asked})
    wanted, found = (summarise(each).counts for each in (even, file))
    first = even.frame()
    firm = (first.approved == True) & (first.status == "already valid")  # noqa: E712
    assert found.approved_firmly == wanted.approved_firmly == int(firm.sum()) > 0
    assert found.approved == wanted.approved > found.approved_firmly


def test_a_model_without_probabilities(tmp_path):
    table = load_german().features[german_file().features]
    default = (~load_german().approved).astype(int)
    model = make_pipeline(german_model()[0], LinearSVC(C=0.1)).fit(table, default)
    file = make_recourse(tmp_path, german_people().iloc[:200], model=model, n_options=1)
    frame = file.frame()
    refused = frame[frame.approved == False]  # noqa: E712
    found = summarise(file, models=[file.model_file()])
    assert found.counts.helped == int((refused.option == 1).sum()) > 0
    assert found.survival[0].first_holds == found.counts.helped
    assert math.isnan(found.survival[0].margin_low)
    assert "nan" not in write_report_page(found).split("</style>")[1].lower()


def test_a_list_of_models_has_no_size(tmp_path):
    others = [german_model(seed) for seed in (0, 1)]
    table = load_german().features[german_file().features]
    listed = holdfast.sets.from_models(others, german_model(), table, favorable_class=0)
    asked = {"robust_to": model_set_to_plain(listed), "n_options": 1}
    file = make_recourse(tmp_path, german_people().iloc[:200], **asked)
    found = summarise(file)
    assert found.robustness is None
    assert found.counts.helped > 0
    assert "there is nothing to compare" in write_report_page(found)


def run(capsys, *arguments):
    code = main([str(each) for each in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command(tmp_path, capsys):
    out = tmp_path / "report.html"
    later = later_models()[0]
    path = german_file().path
    code, said, _ = run(capsys, "report", path, "--out", out, "--models", later)
    assert code == 0
    assert said.splitlines()[:2] == [
        "1,000 people, 207 refused.",
        "149 of these can be helped (72%).",
    ]
    assert "later_0.skops" in out.read_text()
    code, said, _ = run(capsys, "report", path, "--out", out, "--group", "region", "--json")
    assert code == 0
    assert [each["name"] for each in json.loads(said)["groups"]] == ["north", "south", "west"]
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--group", "sex"], "neither a key column"),
        (["--group", "sex"], "run `holdfast recommend` again with `--key sex`"),
        (["--group", "customer"], "more than 20 different values"),
        (["--models", "none.skops"], "none.skops cannot be read"),
        (
            ["--audit", "none.parquet"],
            "none.parquet cannot be read as a table written by `holdfast audit`",
        ),
    ],
)
def test_wrong_options_are_said(tmp_path, capsys, options, says):
    out = tmp_path / "report.html"
    code, _, wrong = run(capsys, "report", german_file().path, "--out", out, *options)
    assert code == 2
    assert says in wrong
    assert not out.exists()


def test_no_input_is_overwritten(tmp_path, capsys):
    later = tmp_path / "later.html"
    later.write_bytes(later_models()[0].read_bytes())
    path = german_file().path
    code, _, wrong = run(capsys, "report", path, "--out", later, "--models", later)
    assert (code, "later.html would overwrite an input" in wrong) == (2, True)
    assert later.read_bytes() == later_models()[0].read_bytes()


def test_brackets_in_a_path_stay(tmp_path, capsys):
    out = tmp_path / "r[red].html"
    _, said, _ = run(capsys, "report", german_file().path, "--out", out)
    assert said.splitlines()[-1] == f"The report is in {out}."


def test_wrong_files_are_said(tmp_path, capsys):
    code, _, wrong = run(capsys, "report", german_file().path, "--out", tmp_path / "report.txt")
    assert (code, "does not end in .html" in wrong) == (2, True)
    code, _, wrong = run(capsys, "report", tmp_path / "no.parquet", "--out", tmp_path / "r.html")
    assert (code, "does not exist" in wrong) == (2, True)
    code, _, wrong = run(capsys, "report", german_file().path, "--out", tmp_path / "no" / "r.html")
    assert (code, "cannot be written" in wrong) == (2, True)


@pytest.fixture(scope="module")
def page(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(write_report_page(summary), encoding="utf-8")
    return path


@needs_browser
def test_a_browser_has_nothing_to_complain_of(page):
    assert complaints(page) == []


@needs_browser
def test_a_browser_would_complain(tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<img src="http://127.0.0.1:9/x.png"><script>nothing()</script>')
    found = complaints(path)
    assert any("nothing is not defined" in each for each in found)
    assert "http://127.0.0.1:9/x.png" in found


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 1000])
def test_no_scrolling_sideways(page, width):
    wide, room = widths(page, width)
    assert room == width
    assert wide <= room


@needs_browser
def test_long_names_do_not_make_it_wider(tmp_path):
    people = german_people().iloc[:200].copy()
    people["region"] = np.where(np.arange(200) % 2, "W" * 80, "a region with a long name, " * 3)
    people["customer"] = "x" * 90
    path = tmp_path / "report.html"
    path.write_text(page_of(make_recourse(tmp_path, people, n_options=1), group="region"))
    for width in (390, 1000):
        wide, room = widths(path, width)
        assert wide <= room == width


@needs_browser
def test_a_third_group_fits_the_page(tmp_path):
    path = tmp_path / "report.html"
    file = make_recourse(tmp_path, german_people().iloc[:200], n_options=1, guarantee=0.4)
    path.write_text(page_of(file), encoding="utf-8")
    assert "tiles five" in path.read_text()
    assert complaints(path) == []
    for width in (320, 1000):
        wide, room = widths(path, width)
        assert wide <= room == width


@needs_browser
def test_light_and_dark(page, tmp_path):
    from PIL import Image

    bright = {}
    for dark in (False, True):
        for width in (390, 1000):
            out = tmp_path / f"{width}-{dark}.png"
            picture(page, out, width, 1200, dark=dark)
            shades = np.asarray(Image.open(out).convert("L"))[:, :width]
            assert shades.std() > 15.0  # there is something to see
            bright[dark, width] = float(np.median(shades))
    assert all(bright[False, width] > 240 > 60 > bright[True, width] for width in (390, 1000))


@needs_browser
def test_it_prints(page):
    assert 2 <= printed_pages(page) <= 10


def test_a_group_that_some_do_not_have_and_numbers_that_are_given(tmp_path, monkeypatch):
    """One line that cannot be read, and advice to give a number that was missing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "income": rng.integers(10, 90, 200).astype(float),
            "home": rng.choice(["own", "rent"], 200),
        }
    )
    good = table["income"] / 20 + (table["home"] == "own") > 2.6
    table.loc[rng.random(200) < 0.2, "income"] = np.nan
    fitted = fit_default(table.assign(good=good), "good", True)
    save_model(fitted.model, "model.skops", True)
    actions = holdfast.ActionSet.from_data(table)
    actions.set("income", provide_cost=0.3)
    actions.save("actions.yaml")
    table.to_csv("people.csv", index=False)
    with open("people.csv", "a") as file:
        file.write("broken\n")
    command = ["recommend", "model.skops", "people.csv", "--actions", "actions.yaml", "--jobs", "1"]
    command += ["--guarantee", "0.5", "--robust-to", "p=1,radius=0.01", "--out", "out.parquet"]
    assert main(command) == 0
    assert main(["report", "out.parquet", "--group", "home", "--out", "report.html"]) == 0
    found = summarise(RecourseFile.open("out.parquet"), group="home")
    assert found.to_plain()["counts"]["people"] == 201
