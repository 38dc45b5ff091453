"""The commands fit, actions and calibrate: what they write and say, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast import ActionSet
from holdfast.actions import AtMost, CategoryFeature, NumberFeature, Ratio
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.files.calibrating import Rehearsed, calibrate_files
from holdfast.files.fitness import check_fitness
from holdfast.files.model_sets import read_model_set
from holdfast.files.models import load_model, save_model
from holdfast.fitting import fit_default

COLUMNS = ["duration", "credit_amount", "age", "housing", "checking_status"]


def german():
    data = load_german()
    table = data.features[COLUMNS].copy()
    table.insert(0, "id", np.arange(1000))
    return table.assign(default=(~np.asarray(data.approved)).astype(int))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, its model and its action set, as the commands have left them."""
    path = tmp_path_factory.mktemp("loans")
    german().to_csv(path / "loans.csv", index=False)
    given = [str(path / "loans.csv"), "--target", "default", "--drop", "id"]
    assert main(["fit", *given, "--favorable-class", "0", "--out", str(path / "model.skops")]) == 0
    assert main(["actions", *given, "--out", str(path / "actions.yaml")]) == 0
    coefficients = {
        "holdfast_model": 1,
        "classes": [0, 1],
        "favorable_class": 0,
        "intercept": 0.1,
        "columns": [{"name": "duration", "coefficient": 0.4, "mean": 20.0, "scale": 12.0}],
    }
    (path / "model.json").write_text(json.dumps(coefficients))
    (path / "parts").mkdir()
    german().to_parquet(path / "parts" / "0.parquet", index=False)
    return path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Run a command in that folder; return its exit code, output and what is beside it."""
    monkeypatch.chdir(folder)

    def call(*arguments):
        code = main(list(arguments))
        out, beside = capsys.readouterr()
        return code, out, beside

    return call


FIT = ("fit", "loans.csv", "--target", "default", "--favorable-class", "0")


def test_fit_writes_the_default_model_and_shows_it(run, folder):
    code, out, beside = run(*FIT, "--drop", "id", "--out", "again.skops")
    assert code == 0
    assert (
        "these columns may be protected by law, judging by name: age. If they are, leave them out "
        "of the model: --drop age" in beside
    )
    people = german()[COLUMNS]
    fitted = fit_default(german(), "default", 0, drop=["id"])
    found = load_model(folder / "again.skops")
    expected = fitted.model.predict_proba(people)
    assert found.model.predict_proba(people).tobytes() == expected.tobytes()
    assert found.favorable_class == 0
    for text in (
        "correct decisions",
        "Brier score",
        "calibration",
        "checking_status",
        "again.skops",
    ):
        assert text in out
    assert f"{fitted.measures.auc:.3f}" in out
    assert len(list(folder.glob(".again*"))) == 0


def test_fit_says_the_same_as_json(run):
    code, out, _ = run(*FIT, "--drop", "id", "--out", "again.skops", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["favorable_class"] == 0
    assert said["columns"] == ["duration", "credit_amount", "age", "housing", "checking_status"]
    assert len(said["measures"]["bins"]) == 10
    assert next(iter(said["weights"])) == "checking_status"
    assert said["sha256"] == load_model(said["out"]).sha256


def test_fit_says_beside_its_output_what_it_leaves_out(run, folder):
    table = german().assign(one=1, default=lambda t: t["default"].where(t.index > 4))
    table.to_csv(folder / "gaps.csv", index=False)
    code, out, beside = run(
        "fit", "gaps.csv", "--target", "default", "--favorable-class", "0", "--drop", "id", "--out",
        "gaps.skops",
    )  # fmt: skip
    assert code == 0
    assert "5 rows have no 'default' and are left out" in beside
    assert "the column 'one' is left out: everybody has the same value, 1" in beside
    assert "995 people" in out


def test_actions_drafts_a_set_that_fits(run, folder):
    code, out, beside = run(
        "actions", "loans.csv", "--target", "default", "--drop", "id", "--immutable", "housing",
        "--protected", "age", "--unit", "duration=months", "--out", "drafted.yaml",
    )  # fmt: skip
    table = german()[COLUMNS]
    expected = ActionSet.from_data(
        table, immutable=["housing"], protected=["age"], units={"duration": "months"}
    )
    assert (code, beside) == (0, "")
    assert "5 features, 3 of which can change" in out
    assert ActionSet.load(folder / "drafted.yaml") == expected
    assert "# it may not change" in (folder / "drafted.yaml").read_text()
    assert run("actions", "check", "drafted.yaml", "model.skops")[:2] == (
        0,
        "The action set fits the model.\n",
    )


def test_actions_warns_of_names_that_sound_protected(run):
    beside = run(
        "actions", "loans.csv", "--target", "default", "--drop", "id", "--out", "warned.yaml"
    )[2]
    assert (
        "these columns may be protected by law, judging by name: age. If they are, pass "
        "--protected age, and reconsider" in beside
    )


def test_check_lists_all_that_does_not_fit(run, folder):
    actions = ActionSet.load(folder / "actions.yaml")
    wrong = {name: actions[name] for name in actions if name not in ("age", "housing")}
    wrong["housing"] = NumberFeature("housing")
    wrong["duration"] = CategoryFeature("duration", ["short", "long"])
    wrong["extra"] = NumberFeature("extra")
    links = [AtMost("extra", "credit_amount")]
    ActionSet(wrong.values(), links).save(folder / "wrong.yaml")
    code, out, _ = run("actions", "check", "wrong.yaml", "model.skops")
    out = " ".join(out.split())  # lines are broken at the width of the terminal
    assert code == 1
    assert "no features for the columns ['age']" in out
    assert (
        "housing: the pipeline reads it as a category, but the action set treats it as a number"
        in out
    )
    assert "duration: the pipeline reads it as a number, not as 'short'" in out
    assert "the pipeline does not use 'extra'" in out
    assert "does not fit: 4 problems" in out
    said = json.loads(run("actions", "check", "wrong.yaml", "model.skops", "--json")[1])
    assert not said["fits"]
    assert len(said["problems"]) == 4


def test_check_counts_people(run, folder):
    people = german().head(100).drop(columns="default").astype({"duration": object})
    people.loc[0, "duration"] = 500
    people.loc[1, "duration"] = "soon"
    people.loc[2, "housing"] = "tent"
    people.loc[3, "age"] = np.nan
    people.to_csv(folder / "people.csv", index=False)
    with open(folder / "people.csv", "a") as file:
        file.write("1,2\n")
    code, out, _ = run("actions", "check", "actions.yaml", "model.skops", "people.csv", "--json")
    said = json.loads(out)
    counts = {(each["feature"], each["what"]): each["people"] for each in said["counts"]}
    assert code == 0
    assert (said["people"], said["unusable"]) == (101, 4)
    assert counts["the file", "a row that cannot be read"] == 1
    assert counts["duration", "above its bounds"] == 1
    assert counts["duration", "a finite number was expected"] == 1
    assert counts["age", "is missing"] == 1
    assert any("has never seen it" in what for name, what in counts if name == "housing")
    examples = {each["feature"]: each["example"] for each in said["counts"] if each["example"]}
    assert examples == {"duration": "'soon'", "housing": "'tent'"}
    shown = run("actions", "check", "actions.yaml", "model.skops", "people.csv")[1]
    assert "101 people, 97 of whom can be advised." in shown


def test_check_says_as_much_of_many_people_as_of_few(folder):
    """Whatever people have, wrong values are counted together, also of what is derived."""
    people = german().head(200).drop(columns="default").astype({"age": object, "housing": object})
    people.loc[20:, "age"] = [f"about {k}" for k in people.index[20:]]
    people.loc[20:, "housing"] = [f"house {k}" for k in people.index[20:]]
    people["monthly"] = people["credit_amount"] / people["duration"]
    people.loc[100:, "monthly"] += people.index[100:]
    people.to_csv(folder / "many.csv", index=False)
    columns = [{"name": name, "coefficient": 0.1} for name in ("age", "monthly", "duration")]
    columns.append({"name": "housing", "levels": {"own": 0.5, "rent": 0.1, "for free": 0.2}})
    model = {"holdfast_model": 1, "classes": [0, 1], "favorable_class": 0, "intercept": 0.1}
    (folder / "many.json").write_text(json.dumps({**model, "columns": columns}))
    features = [NumberFeature(name, lower=0, upper=20_000) for name in ("age", "monthly")]
    features.append(NumberFeature("duration", lower=1, upper=100, step=1))
    features.append(NumberFeature("credit_amount", lower=0, upper=20_000, step=1000))
    features.append(CategoryFeature("housing", ["own", "rent", "for free"]))
    derived = [Ratio("monthly", "credit_amount", "duration")]
    ActionSet(features, derived=derived).save(folder / "many.yaml")
    found = check_fitness(folder / "many.yaml", folder / "many.json", folder / "many.csv")
    assert (found.n_people, found.n_unusable) == (200, 180)
    counts = {(name, what.partition(",")[0]): count for (name, what), count in found.counts.items()}
    assert counts["age", "a finite number was expected"] == 180
    assert counts["housing", "the encoder has never seen it"] == 180
    assert counts["monthly", "cannot be used"] == 100
    assert len(found.counts) <= 6
    assert found.examples["age", "a finite number was expected"] == "'about 20'"
    assert "credit_amount" in found.examples["monthly", "cannot be used"]


def test_check_tells_columns_apart_whose_names_begin_alike(folder):
    columns = [{"name": name, "coefficient": 0.1} for name in ("loan", "loan is")]
    model = {"holdfast_model": 1, "classes": [0, 1], "favorable_class": 0, "intercept": 0.1}
    (folder / "loan.json").write_text(json.dumps({**model, "columns": columns}))
    ActionSet([NumberFeature("loan"), NumberFeature("loan is")]).save(folder / "loan.yaml")
    people = pd.DataFrame({"loan": [1.0, np.nan], "loan is": [np.inf, 2.0]})
    people.to_parquet(folder / "loan.parquet")
    found = check_fitness(folder / "loan.yaml", folder / "loan.json", folder / "loan.parquet")
    assert found.counts == {
        ("loan", "is missing"): 1,
        ("loan is", "a finite number was expected"): 1,
    }


def test_check_refuses_people_of_another_table(run, folder):
    german().drop(columns=["age", "housing"]).to_csv(folder / "few.csv", index=False)
    code, out, _ = run("actions", "check", "actions.yaml", "model.skops", "few.csv")
    assert code == 1
    assert "there is no column 'age'" in out
    assert "there is no column 'housing'" in out


CALIBRATE = ("calibrate", "model.skops", "loans.csv", "--target", "default", "--models", "20")


def test_calibrate_writes_the_set_that_it_shows(run, folder):
    code, out, beside = run(
        *CALIBRATE, "--survival", "0.8", "--confidence", "0.8", "--families", "fisher, l1",
        "--out", "robust-to.yaml", "--json",
    )  # fmt: skip
    said = json.loads(out)
    assert code == 0
    assert "holdfast: " not in beside
    assert [each["family"] for each in said["families"]] == ["today's model alone", "fisher", "l1"]
    found = read_model_set(folder / "robust-to.yaml")
    assert found.radius == said["set"]["radius"]
    chosen = next(each for each in said["families"] if each["family"] == said["chosen"])
    assert chosen["reaches"]
    assert chosen["radius"] == found.radius


def test_calibrate_says_warnings_in_words(run):
    code, out, beside = run(
        *CALIBRATE, "--survival", "0.7", "--confidence", "0.95", "--families", "l2"
    )
    assert code == 0
    assert "Use l2 with a radius of" in out
    assert beside.endswith(
        "holdfast: with 10 model changes to learn from, the confidence can be at most 91%, not "
        "95%, and the advice must survive all of them\n"
    )


def test_calibrate_takes_past_models_of_coefficients(run, folder):
    for k, coefficient in enumerate([0.38, 0.41, 0.39]):
        content = json.loads((folder / "model.json").read_text())
        content["columns"][0]["coefficient"] = coefficient
        (folder / f"past{k}.json").write_text(json.dumps(content))
    past = [part for k in range(3) for part in ("--past-models", f"past{k}.json")]
    code, out, _ = run(
        "calibrate", "model.json", "loans.csv", "--target", "default", *past, "--families", "l1",
        "--survival", "0.6", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["set"]["type"] == "ball"


def test_calibrate_ends_with_1_where_nothing_is_enough(run, folder):
    """Who may change nothing that counts cannot be helped, whatever the set."""
    actions = ActionSet.load(folder / "actions.yaml")
    for name in actions:
        actions.set(name, immutable=True)
    actions.save(folder / "nothing.yaml")
    code, out, beside = run(
        *CALIBRATE, "--actions", "nothing.yaml", "--families", "l2", "--out", "none.yaml"
    )
    assert code == 1
    assert "no set is enough; nothing was written" in beside
    assert "no family reaches" in out.lower()
    assert not (folder / "none.yaml").exists()


def test_calibrate_reads_outcomes_as_the_model_knows_them(run, folder):
    table = german().drop(columns="id")
    table["default"] = table["default"].map({0: False, 1: True})
    fitted = fit_default(table, "default", False)
    save_model(fitted.model, folder / "flags.skops", False)
    table.to_csv(folder / "flags.csv", index=False)  # texts, False and True
    code, out, _ = run(
        "calibrate", "flags.skops", "flags.csv", "--target", "default", "--models", "20",
        "--families", "l2", "--survival", "0.6", "--confidence", "0.6", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["chosen"] == "l2"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_calibrate_reads_people_as_recommend_does(suffix, folder):
    """Levels that look like numbers are the texts that the model was trained on."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": rng.normal(50.0, 10.0, 300).round()})
    table["code"] = rng.choice(["1", "2", "NA"], 300)
    table["paid"] = np.where(table.income + 8 * (table.code == "1") > 52.0, "1", "0")
    table["paid"] = table["paid"].where(rng.random(300) < 0.9, table["paid"][::-1].to_numpy())
    columns = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["code"]))
    model = make_pipeline(columns, LogisticRegression())
    save_model(model.fit(table[["income", "code"]], table["paid"]), folder / "codes.skops", "1")
    table.loc[7, "paid"] = None
    table.to_parquet(folder / "codes.parquet", index=False)
    table.to_csv(folder / "codes.csv", index=False)
    asked = Rehearsed(folder / "codes.skops", folder / f"codes.{suffix}", "paid")
    found = calibrate_files(asked, survival=0.6, confidence=0.6, families=["l2"], n_models=20)
    said = table[table["paid"].notna()]
    expected = holdfast.calibrate(
        load_model(folder / "codes.skops").model, said[["income", "code"]], said["paid"],
        survival=0.6, confidence=0.6, families=["l2"], n_models=20, favorable_class="1",
    )  # fmt: skip
    assert found.to_frame().equals(expected.to_frame())


def test_calibrate_takes_dates(run, folder):
    days = pd.date_range("2020-01-01", periods=1000).strftime("%Y-%m-%d")
    german().assign(day=days).to_csv(folder / "dated.csv", index=False)
    code, out, _ = run(
        "calibrate", "model.skops", "dated.csv", "--target", "default", "--time", "day",
        "--families", "l2", "--survival", "0.3", "--confidence", "0.5", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["chosen"] == "l2"


CHECK = ("actions", "check")
DRAFT = ("actions", "loans.csv", "--target", "default")
WRONG = {
    "no table": (("fit", "none.csv", *FIT[2:], "--out", "m.skops"), "none.csv does not exist"),
    "no kind of table": (
        ("fit", "model.json", *FIT[2:], "--out", "m.skops"),
        "a table must end in",
    ),
    "an id": ((*FIT, "--out", "m.skops"), "id: it numbers the rows one after another"),
    "another class": (
        (*FIT[:-1], "good", "--drop", "id", "--out", "m.skops"),
        "'good' is not one of the classes: 0, 1",
    ),
    "another target": (
        ("fit", "loans.csv", "--target", "defalt", *FIT[4:], "--out", "m.skops"),
        "has no column 'defalt'; did you mean 'default'?",
    ),
    "another ending": ((*FIT, "--out", "m.pkl"), "--out m.pkl does not end in one of .skops"),
    "no directory": ((*FIT, "--out", "none/m.skops"), "there is no directory none"),
    "a draft's ending": ((*DRAFT, "--out", "a.json"), "does not end in one of .yaml, .yml"),
    "a draft's id": ((*DRAFT, "--out", "a.yaml"), "leave them out with --drop id"),
    "a draft that was edited": (
        (*DRAFT, "--drop", "id", "--out", "actions.yaml"),
        "--out actions.yaml already exists and may have been edited: delete it",
    ),
    "a draft among the table's parts": (
        ("actions", "parts", *DRAFT[2:], "--out", "parts/a.yaml"),
        "is inside parts, whose files are read",
    ),
    "a model among the table's parts": (
        ("fit", "parts", *FIT[2:], "--out", "parts/m.skops"),
        "is inside parts, whose files are read",
    ),
    "no unit": (
        (*DRAFT, "--drop", "id", "--unit", "duration", "--out", "a.yaml"),
        "--unit 'duration' is not a column with its unit, such as duration=months",
    ),
    "a unit of nothing": (
        (*DRAFT, "--drop", "id", "--unit", "lenght=months", "--out", "a.yaml"),
        "units: column 'lenght' is not known",
    ),
    "immutable what": (
        (*DRAFT, "--drop", "id", "--immutable", "agee", "--out", "a.yaml"),
        "immutable: column 'agee' is not known; did you mean 'age'?",
    ),
    "no actions": ((*CHECK, "none.yaml", "model.skops"), "none.yaml cannot be read"),
    "no model": ((*CHECK, "actions.yaml", "none.skops"), "none.skops cannot be read"),
    "the wrong way round": (
        (*CHECK, "model.skops", "actions.yaml"),
        "actions.yaml: a model file must end",
    ),
    "no set in the file": (
        (*CHECK, "loans.csv", "model.skops"),
        "path = loans.csv does not end in one of .yaml, .yml, .json",
    ),
    "another favourable class": (
        (*CHECK, "actions.yaml", "model.skops", "--favorable-class", "1"),
        "the file says that the favourable class is 0, but you say 1",
    ),
    "coefficients only": (
        ("calibrate", "model.json", "loans.csv", "--target", "default"),
        "model.json holds coefficients only, so it cannot be retrained. Give earlier versions",
    ),
    "no column": (
        ("calibrate", "model.skops", "loans.csv", "--target", "bad"),
        "loans.csv has no column 'bad'",
    ),
    "no time": ((*CALIBRATE, "--time", "when"), "loans.csv has no column 'when'"),
    "no dates": ((*CALIBRATE, "--time", "housing"), "housing does not hold dates"),
    "another outcome": (
        ("calibrate", "model.skops", "loans.csv", "--target", "age"),
        "is not one of the model's classes, 0, 1",
    ),
    "no family": (
        (*CALIBRATE, "--families", "l1,l3"),
        "'l3'",
    ),
    "no survival": ((*CALIBRATE, "--survival", "95"), "survival = 95.0 is not allowed"),
    "few models": ((*CALIBRATE[:-1], "3"), "n_models = 3 is not allowed"),
    "a set's ending": (
        (*CALIBRATE, "--out", "set.txt"),
        "does not end in one of .yaml, .yml, .json",
    ),
    "the action set as output": (
        (*CALIBRATE, "--actions", "actions.yaml", "--out", "./actions.yaml"),
        "out = actions.yaml would overwrite an input: choose another file",
    ),
    "the model as output": (
        ("calibrate", "model.json", *CALIBRATE[2:], "--out", "model.json"),
        "out = model.json would overwrite an input",
    ),
    "an earlier model as output": (
        (*CALIBRATE[:-2], "--past-models", "model.json", "--out", "model.json"),
        "out = model.json would overwrite an input",
    ),
    "both": (
        (*CALIBRATE, "--time", "age", "--past-models", "model.skops"),
        "past_models and time: give only one of them",
    ),
}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_and_nothing_is_written(case, run, folder):
    arguments, message = WRONG[case]
    before = contents(folder)
    code, out, beside = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(beside.split())
    assert "Traceback" not in beside
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("command", "texts"),
    [
        (("fit",), ("holdfast fit loans.csv", "--favorable-class", "--drop")),
        (("actions",), ("holdfast actions loans.csv", "--immutable", "--protected", "--unit")),
        (("actions", "check"), ("holdfast actions check actions.yaml", "Exit code 0", "people")),
        (("calibrate",), ("holdfast calibrate model.skops", "--survival", "--past-models")),
    ],
)
def test_help_teaches(command, texts, run):
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert all(text in out for text in texts)


def test_all_commands_are_listed(run):
    out = run("--help")[1]
    assert all(name in out for name in ("fit", "actions", "actions check", "calibrate"))
