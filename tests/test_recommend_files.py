"""`holdfast recommend` over files: the answers of Python, in any format; and what can be wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.engines.local import run_job
from holdfast.files.jobs import Job, load_job
from holdfast.files.models import save_model
from holdfast.files.recourse import RecourseFile
from holdfast.files.tables import Blocks, open_table, read_frame

NUMBERS, LEVELS = ["duration", "credit_amount", "age"], ["savings_status", "housing"]
SETTINGS = {
    "--actions": "actions.yaml",
    "--guarantee": "0.5",
    "--robust-to": "p=1,radius=0.1",
    "--out": "out.parquet",
}


def fitted():
    german = load_german()
    table = german.features[NUMBERS + LEVELS]
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), LEVELS))
    model = make_pipeline(columns, LogisticRegression()).fit(table, (~german.approved).astype(int))
    actions = holdfast.ActionSet.from_data(table, protected=["age"])
    actions.set("housing", immutable=True)
    return table, model, actions


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    table, model, actions = fitted()
    save_model(model, place / "model.skops", 0)
    actions.save(place / "actions.yaml")
    people = table.head(120).assign(number=np.arange(120) + 7000)
    people.to_csv(place / "people.csv", index=False)
    people.to_csv(place / "people.tsv", index=False, sep="\t")
    people.to_parquet(place / "people.parquet")
    feather.write_feather(people, str(place / "people.feather"))
    (place / "parts").mkdir()
    for k in range(3):
        people.iloc[40 * k : 40 * k + 40].to_parquet(place / "parts" / f"part-{k}.parquet")
    (place / "parts" / "_SUCCESS").write_text("")
    return place


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recommend(
    *given: str, people: str = "people.csv", model: str = "model.skops", **changed
) -> int:
    """Run the command in the current directory; None leaves out a setting."""
    options = SETTINGS | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    said = [word for name, value in options.items() if value is not None for word in (name, value)]
    return main(["recommend", model, people, *said, "--jobs", "1", *given])


def in_python(people: pd.DataFrame, **settings) -> pd.DataFrame:
    _, model, actions = fitted()
    recourse = holdfast.RobustRecourse(
        model,
        favorable_class=0,
        robust_to=holdfast.NormBall(p=1, radius=0.1),
        actions=actions,
        **{"guarantee": 0.5, **settings},
    )
    return recourse.recommend(people).to_frame()


def check_same(out: str, people: pd.DataFrame, **settings) -> None:
    """What a file says is what Python says, to the bit."""
    said, found = RecourseFile.open(out).frame(), in_python(people, **settings)
    assert said["row"].tolist() == found.index.tolist()
    for name in found.columns:
        ours, theirs = said[name].tolist(), found[name].tolist()
        assert pd.Series(ours).isna().tolist() == pd.Series(theirs).isna().tolist(), name
        both = [(a, b) for a, b in zip(ours, theirs, strict=True) if b == b and b is not None]
        assert all(a == b for a, b in both), name
    for name in people.columns:
        assert said.groupby("row").first()[f"person.{name}"].tolist() == people[name].tolist()


@pytest.mark.parametrize(
    "people", ["people.csv", "people.tsv", "people.parquet", "people.feather", "parts"]
)
def test_every_format_gives_the_answers_of_python(place, people):
    assert recommend(people=people) == 0
    check_same("out.parquet", load_german().features[NUMBERS + LEVELS].head(120))


def test_several_options_and_keys(place):
    assert recommend("--options", "3", "--key", "number", "--key", "age") == 0
    said = RecourseFile.open("out.parquet").frame()
    assert said["option"].max() == 3
    assert (said["number"].astype(int) == said["row"] + 7000).all()
    check_same("out.parquet", load_german().features[NUMBERS + LEVELS].head(120), n_options=3)


def test_a_cost_weight_and_points(place):
    assert recommend(guarantee=None, cost_weight="0.1") == 0
    people = load_german().features[NUMBERS + LEVELS].head(120)
    check_same("out.parquet", people, guarantee=None, cost_weight=0.1)
    scale = ("--points", "600,odds=50,double=20", "--guarantee-points", "500")
    assert recommend(*scale, guarantee=None, out="points.parquet") == 0
    points = holdfast.Points(600, odds=50, double=20)
    check_same("points.parquet", people, guarantee=None, points=points, guarantee_points=500)


@pytest.mark.parametrize("out", ["out.csv", "out.arrow", "out.feather", "out.tsv"])
def test_every_format_can_be_written(place, out):
    assert recommend() == recommend(out=out) == 0
    expected, written = read_frame("out.parquet"), read_frame(out)
    assert written.columns.tolist() == expected.columns.tolist()
    assert len(written) == len(expected)
    for name in ("row", "cost", "gap", "person.duration", "recourse.credit_amount"):
        assert written[name].tolist() == expected[name].tolist()


def test_a_row_that_cannot_be_used_is_told_why_and_harms_nobody(place):
    people = pd.read_csv("people.csv").astype(object)
    wrong = {
        3: ("duration", "soon", "duration = 'soon': a finite number was expected"),
        5: ("age", "", "age is missing"),
        7: ("housing", "castle", "housing = 'castle': the encoder has never seen it"),
        11: ("credit_amount", "inf", "credit_amount = inf: a finite number was expected"),
        13: ("savings_status", "NA", "savings_status is missing"),
    }
    for row, (name, value, _) in wrong.items():
        people.loc[row, name] = value
    people.to_csv("bad.csv", index=False)
    lines = Path("bad.csv").read_text().splitlines()
    lines[18] += ",one more"
    lines[21] = "just this"
    Path("bad.csv").write_text("\n".join(lines))
    assert recommend(people="bad.csv") == recommend(out="good.parquet") == 0
    bad, good = (RecourseFile.open(f).frame() for f in ("out.parquet", "good.parquet"))
    assert bad["row"].tolist() == list(range(120))
    for row, (_, _, reason) in wrong.items():
        assert bad["status"][row] == "invalid input"
        assert reason in bad["reason"][row]
    assert bad["reason"][17] == "line 19 has 7 cells, but there are 6 columns"
    assert bad["reason"][20] == "line 22 has 1 cell, but there are 6 columns"
    assert bad["recourse.duration"][[17, 20]].isna().all()
    assert bad["approved"][[3, 17, 20]].isna().all()
    others = ~bad["row"].isin([*wrong, 17, 20])
    pd.testing.assert_frame_equal(bad[others], good[others], check_exact=True, check_dtype=False)


def test_nobody(place):
    Path("people.csv").write_text("duration,credit_amount,age,savings_status,housing\n")
    assert recommend() == 0
    assert RecourseFile.open("out.parquet").frame().empty


def test_levels_may_be_dictionaries_and_numbers_whole(place):
    people = pd.read_parquet("people.parquet")
    people["housing"] = people["housing"].astype("category")
    people["age"] = people["age"].astype("Int64")
    people.to_parquet("other.parquet")
    assert recommend() == recommend(people="other.parquet", out="other_out.parquet") == 0
    first, second = (RecourseFile.open(f).frame() for f in ("out.parquet", "other_out.parquet"))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_the_manifest_is_a_job_that_can_be_run_again(place, capsys):
    assert recommend("--key", "number", "--options", "2") == 0
    assert main(["recommend", "--settings", "out.parquet.yaml", "--out", "again.parquet"]) == 0
    first, second = Path("out.parquet"), Path("again.parquet")
    assert first.read_bytes() == second.read_bytes()
    (place / "sub").mkdir()  # paths are counted from the file
    job, run = load_job("out.parquet.yaml")
    assert (job.n_options, job.keys, run["counts"]["people"]) == (2, ["number"], 120)
    capsys.readouterr()
    assert main(["recommend", "--settings", "out.parquet.yaml"]) == 0
    assert "already did this" in capsys.readouterr().out


def test_a_job_goes_from_one_directory_to_another(place, monkeypatch):
    job = Job("model.skops", "people.csv", "actions.yaml", "sub/out.parquet", "p=1,radius=0.1", 0.5)
    (place / "sub").mkdir()
    job.write(place / "sub" / "job.yaml")
    content = yaml.safe_load(Path("sub/job.yaml").read_text())
    assert (content["model"], content["out"]) == ("../model.skops", "out.parquet")
    monkeypatch.chdir(place / "sub")
    read, _ = load_job("job.yaml")
    assert run_job(read, n_jobs=1).people == 120


def test_json_says_what_came_of_it(place, capsys):
    assert recommend("--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["people"] == 120 == sum(said["status"].values())
    assert said["manifest"] == "out.parquet.yaml"


# Each bad input, and what is said of it. A case changes files, or what is typed.
HEADER = "duration,credit_amount,age,savings_status,housing\n"
PERSON = "24,1000,40,<100,own\n"


def write(name: str, content: str | bytes):
    data = content.encode() if isinstance(content, str) else content
    return lambda: Path(name).write_bytes(data)


def without(*columns: str):
    return lambda: pd.read_csv("people.csv").drop(columns=list(columns)).to_csv("people.csv")


def column(name: str, values):
    def change() -> None:
        people = pd.read_parquet("people.parquet")
        people[name] = values(len(people))
        people.to_parquet("people.parquet")

    return change


def lists(n: int):
    return [[k] for k in range(n)]


def dates(n: int):
    return pd.date_range("2020-01-01", periods=n)


def parts_differ() -> None:
    pd.read_parquet("people.parquet").drop(columns="age").to_parquet("parts/part-9.parquet")


def actions_without(name: str):
    def change() -> None:
        content = yaml.safe_load(Path("actions.yaml").read_text())
        del content["features"][name]
        Path("actions.yaml").write_text(yaml.safe_dump(content))

    return change


def truncate(name: str):
    return lambda: Path(name).write_bytes(Path(name).read_bytes()[:-100])


def run_before(**changed):
    return lambda: recommend(**changed)


def touched_out() -> None:
    recommend()
    frame = pd.read_parquet("out.parquet")
    frame["cost"] = 0.0
    frame.to_parquet("out.parquet")


def changed_input() -> None:
    recommend()
    Path("people.csv").write_text(HEADER + PERSON)


def lost_manifest() -> None:
    recommend()
    Path("out.parquet.yaml").unlink()


nothing = write("nothing", "")
BAD = {
    "no such table": (nothing, {"people": "nobody.csv"}, "nobody.csv does not exist"),
    "a table of another kind": (
        nothing,
        {"people": "people.xlsx"},
        "a table must end in one of .csv",
    ),
    "an empty table": (write("people.csv", ""), {}, "its first line must name the columns"),
    "a table without names": (write("people.csv", "\n1,2\n"), {}, "has no columns"),
    "a column twice": (write("people.csv", "age,age\n"), {}, "several columns named 'age'"),
    "not UTF-8": (write("people.csv", b"age,\xff\n1,2\n"), {}, "not UTF-8 text"),
    "UTF-16": (write("people.csv", "age,b\n1,2\n".encode("utf-16")), {}, "not UTF-8 text"),
    "an open quotation mark": (
        write("people.csv", HEADER + '24,"1000,40,<100,own\n' + PERSON),
        {},
        "is there an unclosed quotation mark?",
    ),
    "a column is missing": (without("age"), {}, "there is no column 'age'"),
    "two columns are missing": (without("age", "housing"), {}, "'age'\n  there is no column 'hous"),
    "texts for numbers": (
        lambda: pd.read_csv("people.csv").assign(age="old").to_csv("people.csv"),
        {},
        "column 'age' holds 'old' and other values; none of them is a number",
    ),
    "no level is known": (
        lambda: pd.read_csv("people.csv").assign(housing="tent").to_csv("people.csv"),
        {},
        (
            "column 'housing' holds 'tent' and other values; none of them is one of the model's: "
            "'for free', 'own'"
        ),
    ),
    "dates": (column("age", dates), {"people": "people.parquet"}, "column 'age' holds timestamp"),
    "numbers as texts": (
        column("age", lambda n: [str(k) for k in range(n)]),
        {"people": "people.parquet"},
        "column 'age' holds '0' and other values; none of them is a number",
    ),
    "lists": (column("age", lists), {"people": "people.parquet"}, "column 'age' holds list"),
    "not Parquet": (
        write("people.parquet", "hello"),
        {"people": "people.parquet"},
        "is not a readable Parquet file",
    ),
    "a part of a Parquet file": (
        truncate("people.parquet"),
        {"people": "people.parquet"},
        "is not a readable Parquet file",
    ),
    "not Arrow": (
        write("people.arrow", "hello"),
        {"people": "people.arrow"},
        "is not a readable Arrow file",
    ),
    "an empty directory": (
        lambda: Path("empty").mkdir(),
        {"people": "empty"},
        "empty is empty; a directory must hold Parquet parts",
    ),
    "another file among parts": (
        write("parts/readme.txt", "hi"),
        {"people": "parts"},
        "parts holds 'readme.txt'; a directory must hold Parquet parts and nothing else",
    ),
    "parts that differ": (
        parts_differ,
        {"people": "parts"},
        "part-9.parquet does not have the same columns",
    ),
    "an output among the input": (
        nothing,
        {"people": "parts", "out": "parts/out.parquet"},
        "is inside parts, whose files are read: choose another directory",
    ),
    "an output over the input": (
        column("x", np.ones),
        {"people": "people.parquet", "out": "people.parquet"},
        "out = people.parquet would overwrite an input: choose another file",
    ),
    "a key that CSV cannot hold": (
        column("tags", lists),
        {"people": "people.parquet", "key": "tags", "out": "out.csv"},
        "a CSV file cannot hold tags (list",
    ),
    "no such key": (nothing, {"key": "id"}, "there is no column 'id' to be a key"),
    "a key of our own": (
        lambda: pd.read_csv("people.csv").assign(status=1).to_csv("people.csv"),
        {"key": "status"},
        "the key 'status' has the same name as a column of the output",
    ),
    "no such model": (nothing, {"model": "no.skops"}, "no.skops"),
    "a pickle": (write("m.pkl", b"\x80\x04."), {"model": "m.pkl"}, "skops.io.dump(joblib.load("),
    "no such actions": (nothing, {"actions": "no.yaml"}, "no.yaml cannot be read: No such file"),
    "actions of another kind": (nothing, {"actions": "a.txt"}, "does not end in one of .yaml"),
    "no action set": (
        write("actions.yaml", "a: 1"),
        {},
        "actions.yaml: this is not a valid action set",
    ),
    "actions without a feature": (
        actions_without("age"),
        {},
        "the action set has no features for the columns ['age']",
    ),
    "no size": (nothing, {"robust_to": "p=1"}, "radius"),
    "no set of models": (nothing, {"robust_to": "hello"}, "hello"),
    "a norm below 1": (nothing, {"robust_to": "p=0.5,radius=1"}, "p = 0.5"),
    "a negative size": (nothing, {"robust_to": "p=1,radius=-1"}, "radius = -1"),
    "no such set of models": (nothing, {"robust_to": "no.yaml"}, "no.yaml"),
    "no goal": (nothing, {"guarantee": None}, "give exactly one"),
    "two goals": (nothing, {"cost_weight": "1"}, "give exactly one"),
    "a guarantee of more than all": (nothing, {"guarantee": "1.5"}, "guarantee = 1.5"),
    "a guarantee in words": (nothing, {"guarantee": "much"}, "--guarantee"),
    "a negative weight": (nothing, {"guarantee": None, "cost_weight": "-1"}, "cost_weight = -1"),
    "no scale of points": (nothing, {"points": "600"}, "is not a scale such as 600,odds=50"),
    "points without a scale": (
        nothing,
        {"guarantee": None, "guarantee_points": "500"},
        "define the scale",
    ),
    "no options": (nothing, {"options": "0"}, "options"),
    "an unknown loss": (nothing, {"loss": "bad"}, "bad"),
    "the wrong class": (nothing, {"favorable_class": "2"}, "2"),
    "another class than the file's": (nothing, {"favorable_class": "1"}, "1"),
    "an output of another kind": (nothing, {"out": "out.txt"}, "out.txt does not end in one of"),
    "an output nowhere": (nothing, {"out": "no/out.csv"}, "there is no directory no"),
    "no output": (nothing, {"out": None}, "also give --out"),
    "an output that exists": (
        write("out.parquet", "mine"),
        {},
        "out.parquet already exists and was not written by holdfast",
    ),
    "other settings": (
        run_before(),
        {"guarantee": "0.6"},
        "belongs to another run:\n  guarantee was 0.5, and is now 0.6",
    ),
    "another input": (changed_input, {}, "the file of people has changed"),
    "an output that was changed": (touched_out, {}, "was changed after the run that wrote it"),
    "an output without its manifest": (
        lost_manifest,
        {},
        "already exists and was not written by holdfast",
    ),
    "an unknown engine": (nothing, {"engine": "abacus"}, "'abacus' is not known; available: local"),
    "no such settings": (nothing, {"settings": "no.yaml"}, "no.yaml cannot be read"),
    "settings that are none": (
        write("job.yaml", "- 1"),
        {"settings": "job.yaml"},
        "job.yaml: this is not a valid job: it is a list",
    ),
    "an unknown setting": (
        write("job.yaml", "holdfast_job: 1\ncolour: red\n"),
        {"settings": "job.yaml"},
        "unknown name 'colour'",
    ),
    "settings of another version": (
        write("job.yaml", "holdfast_job: 2\n"),
        {"settings": "job.yaml"},
        "must be 1, not 2",
    ),
    "broken settings": (
        write("job.yaml", "a: [1"),
        {"settings": "job.yaml"},
        "this is not valid YAML",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_inputs_are_told_and_nothing_is_written(place, capsys, name):
    change, typed, message = BAD[name]
    change()
    capsys.readouterr()
    before = {path.name for path in place.iterdir()}
    assert recommend(**typed) == 2
    said = capsys.readouterr().err
    assert " ".join(message.split()) in " ".join(said.replace("│", " ").split())
    assert "Traceback" not in said
    assert {path.name for path in place.iterdir()} == before


def test_all_that_is_wrong_is_said_at_once(place, capsys):
    Path("actions.yaml").write_text("a: 1")
    assert recommend(model="no.skops", people="no.csv", robust_to="p=0.5,radius=1") == 2
    said = capsys.readouterr().err
    assert all(word in said for word in ("no.skops", "no.csv", "not a valid action set", "p = 0.5"))


def test_an_input_changed_since_the_manifest_is_refused(place, capsys):
    assert recommend() == 0
    with open("actions.yaml", "a") as file:
        file.write("\n# a remark\n")
    assert main(["recommend", "--settings", "out.parquet.yaml", "--out", "b.parquet"]) == 2
    assert "these files have changed since that run: actions" in capsys.readouterr().err


HARMLESS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_all(path: Path) -> None:
    """Read a table as the commands do; only what is meant for people may be raised."""
    try:
        table = open_table(path)
        table.scan()
        total = Blocks(table.batches(7)).take(10**9).num_rows
        assert total == table.n_rows
        read_frame(path)
    except (ValueError, OSError):
        pass


@HARMLESS
@given(data=st.binary(max_size=300), suffix=st.sampled_from([".csv", ".parquet", ".arrow"]))
def test_random_bytes_are_no_table(tmp_path, data, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(data)
    read_all(path)


@HARMLESS
@given(text=st.text(alphabet='ab1,;"\n\r\t .', max_size=80))
def test_random_texts_are_read_or_refused(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, newline="")
    read_all(path)


@HARMLESS
@given(
    place=st.floats(0, 1), value=st.integers(0, 255), suffix=st.sampled_from([".parquet", ".arrow"])
)
def test_a_byte_that_is_wrong_does_no_harm(tmp_path, place, value, suffix):
    table = pa.table({"age": [1.5, 2.5, None], "home": ["own", None, "rent"]})
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, str(path), compression="uncompressed")
    data = bytearray(path.read_bytes())
    data[min(int(place * len(data)), len(data) - 1)] = value
    path.write_bytes(bytes(data))
    read_all(path)


def test_an_input_that_changes_during_a_run_is_refused(place, capsys, monkeypatch):
    from holdfast.engines import local

    advise = local._LocalRun.advise

    def meanwhile(run) -> None:
        advise(run)
        Path("people.csv").write_text(HEADER + PERSON)

    monkeypatch.setattr(local._LocalRun, "advise", meanwhile)
    assert recommend() == 2
    assert "was changed during the run" in capsys.readouterr().err
    assert not Path("out.parquet").exists()
    assert not Path("out.parquet.work").exists()


def test_a_run_begun_with_other_releases_is_not_gone_on_with(place, capsys, monkeypatch):
    from holdfast.engines import local

    with monkeypatch.context() as first:
        first.setattr(local._LocalRun, "put_together", lambda run, out: 1 / 0)
        assert recommend() == 70
    note = Path("out.parquet.work/job.yaml")
    note.write_text(note.read_text().replace("numba: ", "numba: 9"))
    assert recommend() == 2
    assert "was started with other versions (numba 9" in capsys.readouterr().err


def test_a_directory_that_is_a_link(place, monkeypatch):
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    assert recommend(out="link/out.parquet") == 0
    for there in ("link", "real"):
        assert len(RecourseFile.open(Path(there) / "out.parquet").recourse().actions) == 5
