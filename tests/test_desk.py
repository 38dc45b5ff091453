"""What the server holds: people in the background, listed and put into forms; letters; figures."""

from __future__ import annotations

import html
import itertools
import re
import stat
import threading
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast.web.people as room
from holdfast.demo.files import write_demo
from holdfast.engines.local import run_job
from holdfast.files.people import PeopleColumns, text_of
from holdfast.files.recourse import RecourseFile
from holdfast.machinery.threads import limited
from holdfast.report import (
    LetterSettings,
    find_person,
    make_letter,
    render_letter,
    report_style,
    summarise,
    write_report_body,
    write_report_page,
)
from holdfast.report.people import Source, sort_people
from holdfast.web.desk import Desk
from holdfast.web.made_once import MadeOnce
from holdfast.web.people import RunState

TODAY = LetterSettings(lender="Hanse Bank", today=date(2026, 11, 16))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def job(folder):
    return write_demo(folder)


@pytest.fixture(scope="module")
def file(job, folder):
    """What `holdfast recommend` leaves for the same people."""
    run_job(job.with_changes(out=str(folder / "out.parquet")), n_jobs=1)
    return RecourseFile.open(folder / "out.parquet")


@pytest.fixture(scope="module")
def desk(job):
    desk = Desk.of(job)
    desk.start()
    desk.people.wait()
    yield desk
    desk.close()


# -- the run --------------------------------------------------------------------------------------


def test_the_run_advises_as_the_command_does(desk, file):
    assert desk.people.progress.state == RunState.FINISHED
    assert (desk.people.progress.done, desk.people.progress.total) == (400, 400)
    told = file.frame()
    first = told[told["option"] <= 1].reset_index(drop=True)
    assert desk.people.finished().frame().equals(first)


def test_what_is_written_is_private_and_deleted_at_the_end(job):
    desk = Desk.of(job)
    folder = Path(desk.people._folder.name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    desk.start()
    desk.people.wait()
    assert any(folder.iterdir())
    desk.close()
    assert not folder.exists()


def test_a_run_can_be_stopped_on_the_way(job, monkeypatch):
    reached, closing = threading.Event(), threading.Event()

    def run(job, *, n_jobs, expected, progress):
        progress(0, 400)
        reached.set()
        closing.wait(10)
        progress(100, 400)
        raise AssertionError("it went on")

    monkeypatch.setattr(room, "run_job", run)
    desk = Desk.of(job)
    folder = Path(desk.people._folder.name)
    desk.start()
    assert reached.wait(10)
    desk.people._closing.set()
    closing.set()
    desk.close()
    assert not folder.exists()
    assert desk.people.progress.state == RunState.RUNNING
    assert not desk.people.progress.reason


def test_why_a_run_failed_is_said(job, monkeypatch):
    def run(job, *, n_jobs, expected, progress):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "run_job", run)
    desk = Desk.of(job)
    desk.start()
    desk.people.wait()
    assert desk.people.progress.state == RunState.FAILED
    assert "No space left" in desk.people.progress.reason
    assert desk.people.page("cost").total == 400  # they are still there
    with pytest.raises(LookupError, match="No space left"):
        desk.overview()
    desk.close()


def test_too_many_people_are_refused(job, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "MOST_PEOPLE", 399)
    with pytest.raises(ValueError, match="more than 399 people"):
        Desk.of(job)
    table = tmp_path / "people.csv"  # how many it holds only reading it tells
    pd.read_parquet(job.people).to_csv(table, index=False)
    desk = Desk.of(job.with_changes(people=str(table)))
    desk.start()
    desk.people.wait()
    assert "more than 399 people" in desk.people.progress.reason
    desk.close()


# -- the list -------------------------------------------------------------------------------------


def rows_of(desk, **asked) -> list[int]:
    """All rows that a search finds, page by page."""
    found, number = [], 1
    while True:
        page = desk.people.page(number=number, size=37, **asked)
        found += [each.row for each in page.people]
        if number == page.pages:
            assert len(found) == page.found
            return found
        number += 1


def first_options(file) -> pd.DataFrame:
    frame = file.frame()
    return frame[frame["option"] <= 1].set_index("row")


def test_people_are_sorted_by_cost(desk, file):
    source = Source.of(file)
    lot = sort_people(pa.concat_tables(source.batches("current_validity", "cost")), source.even)
    cost = lot.table["cost"].to_numpy()
    helped = np.flatnonzero(lot.is_helped)
    others = np.flatnonzero(~lot.is_helped).tolist()
    cheapest = sorted(helped.tolist(), key=lambda row: cost[row])
    dearest = sorted(helped.tolist(), key=lambda row: -cost[row])
    assert 20 < len(helped) < 100
    assert rows_of(desk, sort="cost") == cheapest + others
    assert rows_of(desk, sort="-cost") == dearest + others


def test_people_are_sorted_by_row_and_status(desk, file):
    assert rows_of(desk, sort="row") == list(range(400))
    first = first_options(file)
    decided = list(zip(first["status"], first["approved"], strict=True))
    sorted_rows = rows_of(desk, sort="status")
    assert sorted(sorted_rows) == list(range(400))
    seen = [decided[row] for row in sorted_rows]
    assert len(set(seen)) > 2
    assert sum(a != b for a, b in itertools.pairwise(seen)) == len(set(seen)) - 1
    with pytest.raises(ValueError, match="choose one of row, cost"):
        desk.people.page("name")


@pytest.mark.parametrize(
    "search", ["GUARANTOR", "286", "from <100", "savings_status from <100", " "]
)
def test_searching_finds_keys_rows_and_changes(desk, file, search):
    first = first_options(file)
    wanted = search.strip().lower()
    expected = [
        row
        for row, each in first.iterrows()
        if any(wanted in str(text).lower() for text in (row, each["applicant"], each["changes"]))
    ]
    assert expected
    assert rows_of(desk, sort="row", search=search) == expected


def test_a_search_without_outcome_is_an_empty_page(desk):
    page = desk.people.page("cost", "nobody at all.*", 7)
    assert (page.people, page.number, page.pages, page.found, page.total) == ([], 1, 1, 0, 400)


def test_what_is_listed_is_what_the_run_says(desk, file):
    first = first_options(file)
    for each in desk.people.page("-cost").people + desk.people.page("status", number=99).people:
        told = first.loc[each.row]
        assert each.keys == {"applicant": str(told["applicant"])}
        assert (each.status, each.approved) == (told["status"], told["approved"])
        assert each.changes == told["changes"]
        np.testing.assert_equal(each.cost, told["cost"])
        assert each.initial_validity == told["initial_validity"]


def test_before_the_run_people_are_listed_without_advice(job, monkeypatch):
    going = threading.Event()
    monkeypatch.setattr(room, "run_job", lambda *given, **named: going.wait(10))
    desk = Desk.of(job)
    with pytest.raises(LookupError, match="still being read"):
        desk.people.page()
    desk.start()
    assert desk.people.wait_read(30)
    page = desk.people.page("cost", "286")
    assert [each.keys["applicant"] for each in page.people if each.status] == []
    assert "286" in [each.keys["applicant"] for each in page.people]
    assert desk.people.progress.state == RunState.RUNNING
    with pytest.raises(LookupError, match="still being prepared"):
        desk.overview()
    going.set()
    desk.close()


# -- the form -------------------------------------------------------------------------------------


def read_back(text: str, levels) -> object:
    columns = PeopleColumns({"x": levels}, are_texts=True)
    return columns.frame(pa.table({"x": pa.array([text], pa.string())}))["x"].iloc[0]


def is_same(a: object, b: object) -> bool:
    if a is None or a != a:
        return b is None or b != b
    return bool(a == b) and np.signbit(a) == np.signbit(b) if isinstance(a, float) else a == b


@given(st.floats(allow_infinity=False))
def test_a_number_in_a_form_is_the_very_same(value):
    assert is_same(value, read_back(text_of(value, None), None))


@given(st.floats(width=32, allow_infinity=False))
def test_a_number_in_single_precision_is_the_very_same(value):
    assert is_same(float(value), read_back(text_of(np.float32(value), None), None))


def test_a_number_is_written_as_short_as_can_be():
    values = [48.0, 0.1, 1e22, -0.0, 12345678.0, 5e-324]
    assert [text_of(value, None) for value in values] == [
        "48",
        "0.1",
        "1e+22",
        "-0",
        "12345678",
        "5e-324",
    ]


@pytest.mark.parametrize(
    "levels",
    [
        ("own", "rent"),
        (" own", "own ", "own", ""),
        ("", "NA", "nan"),
        ("None", "1", "01", "1.0", "true", "a,b", 'say "x"', "<100", "é\u00a0", "\u2028"),
        (True, False),
        (0, 1, 10**17),
        (0.1, 2.0, 1e300),
        (1, 2.5),
    ],
    ids=str,
)
def test_a_level_in_a_form_is_the_very_same(levels):
    for level in levels:
        assert read_back(text_of(level, levels), levels) == level
        assert type(read_back(text_of(level, levels), levels)) is type(level)
    missing = read_back(text_of(None, levels), levels)
    assert missing is None or missing != missing
    assert read_back(text_of("castle", levels), levels) == "castle"


def test_a_person_in_the_form_is_the_one_of_the_table(desk, job):
    rows = desk.people._rows
    people = pd.read_parquet(job.people)
    for row in (0, 57, 399):
        texts = desk.people.person(row)
        table = pa.table({name: pa.array([text]) for name, text in texts.items()})
        typed = desk.columns.frame(table).iloc[0]
        read = rows.columns.frame(pa.Table.from_pandas(people.iloc[[row]])).iloc[0]
        assert all(is_same(read[name], typed[name]) for name in read.index)
    with pytest.raises(LookupError, match="rows run from 0 to 399"):
        desk.people.person(400)


# -- letters --------------------------------------------------------------------------------------


def test_a_letter_is_that_of_the_command(desk, file):
    first = first_options(file)
    refused = first[~first["approved"].astype(bool)]
    chosen = [
        *refused.index[refused["option"] == 1][:4],
        *refused.index[refused["option"] == 0][:1],
    ]
    assert len(chosen) == 5
    for row in chosen:
        expected = render_letter(make_letter(file, find_person(file, row), TODAY))
        assert desk.letter(desk.people.person(row), TODAY, row=row) == expected


def test_a_letter_follows_what_was_tried(desk, file):
    first = first_options(file)
    row = next(r for r, each in first.iterrows() if "guarantor" in each["changes"])
    texts = desk.people.person(row)
    plain = visible(desk.letter(texts, TODAY, radius=0.0))
    robust = visible(desk.letter(texts, TODAY))
    assert plain != robust
    assert "Hanse Bank" in plain


def test_a_letter_about_changed_values_bears_no_reference(desk, file):
    first = first_options(file)
    row = int(first.index[(~first["approved"].astype(bool)) & (first["option"] == 1)][0])
    texts = desk.people.person(row)
    told = visible(desk.letter(texts, TODAY, row=row)).lower()
    assert " ".join(told.split()) != " ".join(visible(desk.letter(texts, TODAY)).lower().split())
    written_otherwise = texts | {"duration": f" {float(texts['duration']):.3f}"}
    assert visible(desk.letter(written_otherwise, TODAY, row=row)).lower() == told
    changed = texts | {"duration": str(float(texts["duration"]) + 1.0)}
    assert desk.letter(changed, TODAY, row=row) == desk.letter(changed, TODAY)
    assert desk.is_row(row, texts)
    assert not desk.is_row(row, changed)
    assert not desk.is_row(row, texts | {"employment": ""})
    with pytest.raises(LookupError, match="rows run from 0 to 399"):
        desk.letter(texts, TODAY, row=400)
    assert str(first.loc[row, "applicant"]) in told


def visible(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def test_there_is_no_letter_to_whom_the_model_approves(desk, file):
    first = first_options(file)
    row = int(first.index[first["approved"].astype(bool)][0])
    with pytest.raises(ValueError, match="this person is approved by today's model"):
        desk.letter(desk.people.person(row), TODAY)
    with pytest.raises(ValueError, match="this person could not be used"):
        desk.letter({"duration": "long"}, TODAY)


def test_a_letter_needs_somebody_to_compare_with(desk, job, file):
    refused = first_options(file).query("approved == False").index[0]
    texts = desk.people.person(int(refused))
    alone = Desk.of(job.with_changes(people="", keys=[]))
    assert alone.people is None
    with pytest.raises(ValueError, match="with --people, or with --reference"):
        alone.letter(texts, TODAY)
    with_table = Desk.of(job.with_changes(people="", keys=[]), reference=Path(job.people))
    body = visible(with_table.letter(texts, TODAY))
    assert body.split() == visible(desk.letter(texts, TODAY)).split()


# -- the overview ---------------------------------------------------------------------------------


def test_the_overview_has_the_figures_of_the_report(desk, file):
    for group in (None, "employment"):
        expected, found = summarise(file, group).to_plain(), desk.overview(group).to_plain()
        for name in ("counts", "share_helped", "costs", "features", "groups", "dearest", "lost"):
            assert found[name] == expected[name]
    assert desk.overview() is desk.overview()
    assert desk.overview().source == "people.parquet"


def test_the_overview_shows_what_the_report_shows(desk):
    style, body = report_style(), write_report_body(desk.overview("employment"))
    page = write_report_page(desk.overview("employment"))
    opening, closing = '<div class="report">\n', "</div>\n"
    assert body.startswith(opening)
    assert body.removeprefix(opening).removesuffix(closing) in page
    rules = style.removeprefix(".report {\n").removesuffix("}\n").splitlines()
    assert set(rules[:-1]) < set(page.splitlines())  # the last one is for printing
    assert not re.search(r"(^|\s)(body|main|html|:root) ", style)


def test_people_can_be_compared_by_columns_with_few_values(desk):
    assert "applicant" not in desk.groupable()
    assert "other_parties" in desk.groupable()
    assert "duration" not in desk.groupable()
    with pytest.raises(ValueError, match="cannot be compared by 'applicant'"):
        desk.overview("applicant")


def test_without_people_there_is_nothing_to_look_over(job):
    alone = Desk.of(job.with_changes(people="", keys=[]))
    assert alone.groupable() == []
    with pytest.raises(LookupError, match="with --people"):
        alone.overview()


def test_what_takes_long_is_made_when_the_run_is_finished(job, monkeypatch):
    made = threading.Event()
    real = Desk._summarise

    def summarise(self, file, group):
        made.set()
        return real(self, file, group)

    monkeypatch.setattr(Desk, "_summarise", summarise)
    desk = Desk.of(job)
    desk.start()
    assert made.wait(120)  # and nobody has asked
    desk.close()


def test_nobody_waits_for_another_thing(job, desk, monkeypatch):
    going = threading.Event()

    def summarise(self, file, group):
        going.wait(60)
        return group

    monkeypatch.setattr(Desk, "_summarise", summarise)
    other = replace(desk, _made=MadeOnce())
    assert other.groupable() == desk.groupable()
    late = "the overview by employment is still being prepared"
    with limited(0.0), pytest.raises(LookupError, match=late):
        other.overview("employment")
    assert other.typical().people == desk.typical().people
    going.set()
    assert other.overview("employment") == "employment"


def test_what_could_not_be_made_is_tried_again():
    made = MadeOnce()
    with pytest.raises(ValueError, match="not yet"):
        made.get("it", lambda: (_ for _ in ()).throw(ValueError("not yet")))
    assert made.get("it", lambda: 1) == 1
    assert made.get("it", lambda: 2) == 1
