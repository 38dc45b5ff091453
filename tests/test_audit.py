"""The audit: what another model makes of advice, computed once more with scikit-learn alone."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from recourse_files import (
    CATEGORIES,
    german_file,
    german_model,
    german_people,
    later_models,
    make_recourse,
)
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.cli import main
from holdfast.cli.report import load_later
from holdfast.datasets import load_german
from holdfast.files.models import ModelFile, load_model, save_model
from holdfast.files.recourse import RecourseFile
from holdfast.machinery.plain_files import refuse_input_as_output
from holdfast.report import audit, read_audit
from holdfast.report.audit import _SCHEMA


def expected(file, model, threshold=0.5):
    """The table of an audit, the slow way."""
    frame = file.frame()
    frame = frame[(frame.approved == False) & (frame.option >= 1)]  # noqa: E712
    names = file.features
    after = frame[[f"recourse.{name}" for name in names]].set_axis(names, axis=1)
    before = frame[[f"person.{name}" for name in names]].set_axis(names, axis=1)
    table = frame[["row", "customer", "region", "option"]].copy()
    table["old_probability"] = frame["current_validity"]
    table["new_probability"] = model.predict_proba(after)[:, 0]
    table["guarantee"] = 0.5
    table["holds"] = model.predict(after) == 0
    table["margin"] = table.new_probability - threshold
    table["approved_now"] = model.predict(before) == 0
    every = table.groupby("row").holds.transform("all")
    table["must_be_told"] = ~table.approved_now & ~every
    return table.reset_index(drop=True)


def same(found: pd.DataFrame, wanted: pd.DataFrame) -> None:
    assert list(found.columns) == [*wanted.columns, "reason"]
    pd.testing.assert_frame_equal(
        found.drop(columns="reason"), wanted, check_dtype=False, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_every_way_is_judged(tmp_path, seed):
    path = later_models()[seed]
    found = audit(german_file(), load_model(path), tmp_path / "audit.parquet")
    wanted = expected(german_file(), load_model(path).model)
    same(pd.read_parquet(tmp_path / "audit.parquet"), wanted)
    people = wanted.groupby("row")
    assert found.people == people.ngroups
    assert found.options == len(wanted)
    assert found.options_hold == int(wanted.holds.sum())
    assert found.first_holds == int(wanted[wanted.option == 1].holds.sum())
    assert found.some_holds == int(people.holds.any().sum())
    assert found.approved_now == int(people.approved_now.first().sum())
    told = people.must_be_told.first()
    assert found.must_be_told == int(told.sum()) > 0
    assert found.tell == told[told].index.tolist()
    assert found.margin_low == pytest.approx(wanted.margin.min())
    assert found.margin_mean == pytest.approx(wanted.margin.mean())
    assert (found.not_read, found.sha256) == (0, load_model(path).sha256)


def test_under_today_s_model_all_of_it_holds():
    found = audit(german_file(), german_file().model_file())
    assert found.first_holds == found.some_holds == found.people == 149
    assert found.options_hold == found.options
    assert (found.must_be_told, found.approved_now) == (0, 0)
    assert found.margin_low >= 0.0
    assert found.below_guarantee == 0


def test_who_is_approved_without_a_change_need_not_be_told():
    model = german_model()
    model[-1].intercept_ = model[-1].intercept_ - 10.0  # nobody defaults any more
    found = audit(german_file(), ModelFile(german_file().path, model, 0, "", True))
    assert found.approved_now == found.people
    assert found.must_be_told == 0
    model[-1].intercept_ = model[-1].intercept_ + 30.0  # everybody does
    found = audit(german_file(), ModelFile(german_file().path, model, 0, "", True))
    assert found.must_be_told == found.people == 149
    assert found.first_holds == 0


def test_a_threshold_of_its_own(tmp_path):
    strict = FixedThresholdClassifier(german_model(), threshold=0.4, pos_label=1)
    table = load_german().features[german_file().features]
    strict.fit(table, (~load_german().approved).astype(int))
    found = audit(
        german_file(),
        ModelFile(tmp_path / "other.skops", strict, 0, "", True),
        tmp_path / "a.parquet",
    )
    wanted = expected(german_file(), strict, threshold=0.6)
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert frame.holds.tolist() == wanted.holds.tolist()
    assert found.below_guarantee == 0
    np.testing.assert_allclose(frame.margin, wanted.margin, atol=1e-9)


def test_less_than_was_guaranteed_is_counted(tmp_path):
    file = make_recourse(tmp_path, german_people().iloc[:300], guarantee=0.6, n_options=1)
    model = load_model(later_models()[0])
    audit(file, model, tmp_path / "audit.parquet")
    frame = pd.read_parquet(tmp_path / "audit.parquet")
    below = frame.holds & (frame.new_probability < 0.6)
    assert audit(file, model).below_guarantee == int(below.sum()) > 0


POINTS = {"points": 600, "odds": 1, "double": 20}


@pytest.mark.parametrize("name", ["audit.parquet", "audit.csv"])
@pytest.mark.parametrize(
    ("asked", "least"),
    [
        ({"guarantee": 0.6}, 0.6),
        ({"guarantee": None, "points": POINTS, "guarantee_points": 620.0}, 2.0 / 3.0),
        ({"guarantee": None, "cost_weight": 0.05}, None),
    ],
)
def test_the_guarantee_is_kept_with_the_table(tmp_path, name, asked, least):
    file = make_recourse(tmp_path, german_people().iloc[:200], n_options=1, **asked)
    written = audit(file, load_model(later_models()[0]), tmp_path / name)
    frame = (pd.read_csv if name.endswith(".csv") else pd.read_parquet)(tmp_path / name)
    below = frame.holds & (frame.new_probability < (0.0 if least is None else least))
    assert written.below_guarantee == int(below.sum())
    assert (written.below_guarantee > 0) == (least is not None)
    assert read_audit(tmp_path / name).below_guarantee == written.below_guarantee
    if least is None:
        assert frame.guarantee.isna().all()
    else:
        assert frame.guarantee.to_numpy() == pytest.approx(least)


def test_nothing_is_guessed_from_the_first_cells_of_a_table(tmp_path):
    path = tmp_path / "audit.csv"
    written = audit(german_file(), load_model(later_models()[0]), path)
    small = pd.read_csv(path, keep_default_na=False)
    large = pd.concat([small] * 60, ignore_index=True)
    large["row"] = np.arange(len(large))
    large["customer"] = ["1"] * (len(large) - 1) + ["C0001"]
    large.loc[len(large) - 1, "reason"] = "the other model cannot read this row"
    large.to_csv(path, index=False)
    assert path.stat().st_size > 1 << 20  # more than is read at a time
    found = read_audit(path)
    assert found.not_read == 1
    assert found.options == 60 * written.options


def test_a_model_that_is_no_linear_one(tmp_path):
    table = load_german().features[german_file().features]
    forest = make_pipeline(
        german_model()[0], RandomForestClassifier(20, max_depth=5, random_state=0)
    ).fit(table, (~load_german().approved).astype(int))
    audit(
        german_file(),
        ModelFile(tmp_path / "other.skops", forest, 0, "", True),
        tmp_path / "audit.parquet",
    )
    same(pd.read_parquet(tmp_path / "audit.parquet"), expected(german_file(), forest))


def test_ways_that_cannot_be_read_do_not_hold(tmp_path):
    people = german_people()
    usable = people[people.savings_status != "500<=X<1000"]
    usable = usable.drop(index=[5, 100, 200], errors="ignore")
    names = german_file().features
    model = german_model()
    labels = (~load_german().approved).astype(int)
    model.fit(usable[names].astype({"duration": float}), labels[usable.index])
    found = audit(
        german_file(),
        ModelFile(tmp_path / "other.skops", model, 0, "", True),
        tmp_path / "a.parquet",
    )
    frame = pd.read_parquet(tmp_path / "a.parquet")
    unread = frame.reason != ""
    assert found.not_read == int(unread.sum()) > 0
    assert not frame.holds[unread].any()
    assert frame.new_probability[unread].isna().all()
    assert frame.new_probability[~unread].notna().all()


def test_batches_do_not_matter(tmp_path, monkeypatch):
    model = load_model(later_models()[1])
    once = audit(german_file(), model, tmp_path / "one.csv")
    monkeypatch.setattr(
        RecourseFile, "batches", lambda self, columns=None: self.table.batches(5, columns)
    )
    again = audit(german_file(), model, tmp_path / "other.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    assert {**vars(once), "margin_mean": 0} == {**vars(again), "margin_mean": 0}
    assert once.margin_mean == pytest.approx(again.margin_mean)


@pytest.mark.parametrize("name", ["audit.parquet", "audit.csv"])
def test_the_table_is_read_back(tmp_path, name):
    model = load_model(later_models()[1])
    written = audit(german_file(), model, tmp_path / name)
    read = read_audit(tmp_path / name)
    forget = {"model": "", "sha256": ""} if name.endswith(".csv") else {}
    assert vars(read) == {**vars(written), **forget}


def test_nobody_was_advised(tmp_path):
    file = make_recourse(tmp_path, german_people().iloc[[0, 2, 5]], n_options=1)
    for name in ("audit.parquet", "audit.csv"):
        found = audit(file, load_model(later_models()[0]), tmp_path / name)
        assert (found.people, found.must_be_told) == (0, 0)
        assert read_audit(tmp_path / name).people == 0


def run(capsys, *arguments):
    code = main([str(each) for each in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command(tmp_path, capsys):
    path, later = german_file().path, later_models()[0]
    code, said, _ = run(capsys, "audit", path, "--model", later, "--out", tmp_path / "audit.csv")
    assert code == 1  # somebody must be told
    assert "149  people were refused, and given advice" in said
    assert "must be told: rows" in said
    code, said, _ = run(capsys, "audit", path, "--model", later, "--json")
    assert code == 1
    assert json.loads(said)["must_be_told"] == read_audit(tmp_path / "audit.csv").must_be_told
    code, said, _ = run(capsys, "audit", path, "--model", path.parent / "model.skops")
    assert (code, "Nobody needs to be told." in said) == (0, True)


@pytest.mark.parametrize("name", ["recourse.parquet", "./x/../recourse.parquet", "people.csv"])
def test_no_input_is_overwritten(tmp_path, capsys, name):
    file = make_recourse(tmp_path, german_people().iloc[:20], n_options=1)
    (tmp_path / "x").mkdir()
    there = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    asked = ("--model", later_models()[0], "--out", tmp_path / name)
    code, _, wrong = run(capsys, "audit", file.path, *asked)
    assert code == 2
    assert "would overwrite an input" in wrong
    assert there == {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}


def test_no_output_lands_among_the_parts_of_an_input(tmp_path):
    with pytest.raises(ValueError, match="whose files are read"):
        refuse_input_as_output(tmp_path / "part.parquet", tmp_path)
    refuse_input_as_output(tmp_path / "part.parquet", tmp_path / "part", None)
    (tmp_path / "link.html").symlink_to(tmp_path / "mine.html")
    with pytest.raises(ValueError, match="would overwrite an input"):
        refuse_input_as_output(tmp_path / "link.html", tmp_path / "mine.html")


def opposite_model():
    """The model of the run with its labels turned round: here 1 is what people want."""
    model = german_model()
    last = model[-1]
    last.coef_, last.intercept_ = -last.coef_, -last.intercept_
    return model


def test_the_file_of_a_later_model_says_its_own_class(tmp_path, capsys):
    later = tmp_path / "later.skops"
    save_model(opposite_model(), later, favorable_class=1)
    code, said, warned = run(capsys, "audit", german_file().path, "--model", later, "--json")
    assert (code, warned) == (0, "")
    assert json.loads(said)["first_holds"] == 149


def test_it_is_said_which_class_is_taken_where_no_file_says_it(tmp_path, capsys):
    later = tmp_path / "later.skops"
    skops.io.dump(german_model(), later)
    code, said, warned = run(capsys, "audit", german_file().path, "--model", later, "--json")
    assert code == 0
    assert json.loads(said)["first_holds"] == 149
    assert f"{later} does not say which class people want: assuming 0, as in the run" in warned
    asked = ("--model", later, "--favorable-class", "0", "--json")
    assert run(capsys, "audit", german_file().path, *asked)[2] == ""


def test_a_later_model_with_other_classes_that_says_none(tmp_path, capsys):
    model, later = german_model(), tmp_path / "later.skops"
    model[-1].classes_ = np.array(["good", "bad"])
    skops.io.dump(model, later)
    code, _, wrong = run(capsys, "audit", german_file().path, "--model", later)
    assert code == 2
    assert "the file does not say which class people want: give --favorable-class" in wrong


def test_where_a_run_wants_false_a_later_model_that_says_nothing_does_too(tmp_path, capsys):
    later = tmp_path / "later.skops"
    skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], [False, True]), later)
    of_run = SimpleNamespace(model_file=lambda: SimpleNamespace(favorable_class=False))
    of_run.later_model = lambda *given: RecourseFile.later_model(of_run, *given)
    assert load_later(of_run, later, None).favorable_class is False
    assert "assuming False, as in the run" in capsys.readouterr().err
    save_model(load_model(later).model, later, favorable_class=True)
    assert load_later(of_run, later, None).favorable_class is True
    assert capsys.readouterr().err == ""


def test_brackets_in_a_path_stay(tmp_path, capsys):
    out = tmp_path / "a[red].csv"
    _, said, _ = run(
        capsys, "audit", german_file().path, "--model", later_models()[0], "--out", out
    )
    assert f"is in {out}." in said


def test_a_model_of_other_columns_is_refused(tmp_path, capsys):
    other = german_model(names=[*CATEGORIES, "job", "purpose"])
    save_model(other, tmp_path / "other.skops", favorable_class=0)
    out = tmp_path / "audit.csv"
    code, _, wrong = run(
        capsys, "audit", german_file().path, "--model", tmp_path / "other.skops", "--out", out
    )
    assert code == 2
    assert "the recourse file does not have: job, purpose" in wrong
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "audit.xlsx"], "does not end in one of .parquet, .csv"),
        (["--favorable-class", "7"], "7"),
        (["--out", "no/such/audit.csv"], "cannot be written"),
    ],
)
def test_wrong_options_are_said(capsys, options, says):
    code, _, wrong = run(
        capsys, "audit", german_file().path, "--model", later_models()[0], *options
    )
    assert code == 2
    assert says in wrong


def test_what_is_no_table_of_an_audit(tmp_path, capsys):
    path = tmp_path / "other.parquet"
    pd.DataFrame({"row": [1], "x": [2]}).to_parquet(path)
    with pytest.raises(
        ValueError, match="cannot be read as a table written by `holdfast audit`: it has no column"
    ):
        read_audit(path)
    path.write_text("nonsense")
    with pytest.raises(ValueError, match="cannot be read as a table written by `holdfast audit`"):
        read_audit(path)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_file_breaks_the_reader(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp()
    head = (",".join(_SCHEMA.names) + "\n").encode()
    for name, raw in (("a.csv", content), ("b.csv", head + content), ("c.parquet", content)):
        (folder / name).write_bytes(raw)
        with contextlib.suppress(ValueError):
            read_audit(folder / name)


def test_the_report_shows_it(tmp_path, capsys):
    table = tmp_path / "audit.parquet"
    run(capsys, "audit", german_file().path, "--model", later_models()[1], "--out", table)
    out = tmp_path / "report.html"
    code, _, _ = run(capsys, "report", german_file().path, "--out", out, "--audit", table)
    assert code == 0
    told = read_audit(table)
    page = out.read_text()
    assert f"{told.must_be_told} people must be told" in page
    assert "Judged by later_1.skops" in page


def test_columns_that_only_the_other_model_reads(tmp_path, monkeypatch):
    """From a CSV file they went through as texts; the other model takes them for what it knows."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    people = pd.DataFrame(
        {
            "income": rng.integers(10, 90, 300),
            "code": rng.integers(1, 4, 300),
            "rent": rng.integers(1, 30, 300),
        }
    )
    good = people["income"] > 45
    first = make_pipeline(
        make_column_transformer((StandardScaler(), ["income"]), ("drop", ["code", "rent"])),
        LogisticRegression(),
    ).fit(people, good)
    other = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["income", "rent"]), (OneHotEncoder(), ["code"])
        ),
        LogisticRegression(),
    ).fit(people, good & (people["rent"] < 25) & (people["code"] != 3))
    save_model(first, "first.skops", True)
    save_model(other, "other.skops", True)
    holdfast.ActionSet.from_data(people, categories=["code"]).save("actions.yaml")
    people.to_csv("people.csv", index=False)
    people.to_parquet("people.parquet")
    for table in ("people.csv", "people.parquet"):
        out = f"{table}.out.parquet"
        command = ["recommend", "first.skops", table, "--actions", "actions.yaml", "--jobs", "1"]
        command += ["--guarantee", "0.5", "--robust-to", "p=1,radius=0.05", "--out", out]
        assert main(command) == 0
        file = RecourseFile.open(out)
        found = audit(file, load_model("other.skops"))
        after = file.frame()
        after = after[(after["approved"] == False) & (after["option"] > 0)]  # noqa: E712
        frame = pd.DataFrame(
            {name: pd.to_numeric(after[f"recourse.{name}"]) for name in people.columns}
        )
        assert found.not_read == 0
        assert found.options_hold == int(other.predict(frame).sum()) > 0
