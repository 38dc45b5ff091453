"""Letters: plain words, the right reasons, nothing that is protected, one page of paper."""

from __future__ import annotations

import contextlib
import functools
import html
import re
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from browser import complaints, needs_browser, picture, printed_pages, widths
from hypothesis import given
from hypothesis import strategies as st
from recourse_files import PROTECTED, german_actions, german_file, german_people, make_recourse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import holdfast
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.engines.local import run_job
from holdfast.files.jobs import Job
from holdfast.files.models import save_model
from holdfast.files.recourse import RecourseFile
from holdfast.report import LetterSettings, find_person, make_letter, render_letter
from holdfast.report.letter import find_reference
from holdfast.report.parts import parts_of_score, principal_reasons
from holdfast.report.people import BEFORE, Source
from holdfast.report.words import LANGUAGES, Words

TODAY = date(2026, 11, 16)
JARGON = [
    "gap",
    "price",
    "ball",
    "radius",
    "multiplier",
    "model",
    "set",
    "guarantee",
    "robust",
    "recourse",
    "coefficient",
    "score",
    "infeasible",
    "optimal",
    "certificate",
    "feature",
    "probability",
    "worst",
    "case",
    "bound",
    "classifier",
    "algorithm",
    "Modell",
    "Menge",
    "Radius",
    "Merkmal",
    "Wahrscheinlichkeit",
]


def settings(language="en", **more):
    return LetterSettings(language, today=TODAY, **more)


def letter_to(row, file=None, reference=None, **more):
    file = german_file() if file is None else file
    return make_letter(file, find_person(file, row), settings(**more), reference)


@functools.cache
def letter_to_row_3():
    return letter_to(3)


def words_of(page: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", body))


@pytest.fixture(scope="module")
def frame():
    return german_file().frame()


@pytest.fixture(scope="module")
def refused(frame):
    return frame[(frame.approved == False) & (frame.option <= 1)]  # noqa: E712


@pytest.fixture(scope="module")
def lost(refused):
    return refused[refused.option == 0].row.tolist()


@pytest.fixture(scope="module")
def source():
    return Source.of(german_file())


@pytest.fixture(scope="module")
def reference(source):
    return find_reference(source)


def test_the_reference_is_the_median_approved_applicant(reference, frame):
    approved = frame[(frame.approved == True) & (frame.option <= 1)]  # noqa: E712
    assert reference.people == len(approved)
    for name in german_file().features:
        column, value = approved[f"person.{name}"], reference.row[name].iloc[0]
        if column.dtype.kind == "f":
            assert value == np.quantile(column, 0.5, method="inverted_cdf")
        else:
            assert value == column.value_counts().index[0]


def test_a_reference_of_ones_own(source, tmp_path):
    people = load_german().features
    people.to_csv(tmp_path / "training.csv", index=False)
    found = find_reference(source, tmp_path / "training.csv")
    approved = people[source.recourse.model.predict(people[german_file().features]) == 0]
    assert found.people == len(approved)
    assert found.row["duration"].iloc[0] == np.quantile(
        approved.duration, 0.5, method="inverted_cdf"
    )


def test_the_parts_are_the_difference_of_the_scores(source, reference, refused):
    model = source.recourse.model
    for row in refused.row.tolist()[::7]:
        person = source.frame(find_person(german_file(), row).slice(0, 1), BEFORE)
        parts = parts_of_score(source.encoding, person, reference.row)
        ours, theirs = (-model.decision_function(each)[0] for each in (person, reference.row))
        assert sum(parts.values()) == pytest.approx(ours - theirs, abs=1e-9)
        for name in parts:  # each alone is what changing that one feature does
            other = reference.row.copy()
            other[name] = person[name].array
            alone = -model.decision_function(other)[0] - theirs
            assert parts[name] == pytest.approx(alone, abs=1e-9)


def test_reasons_are_what_cost_most(source, reference, refused):
    words = Words.of("en")
    for row in refused.row.tolist()[::20]:
        person = source.frame(find_person(german_file(), row).slice(0, 1), BEFORE)
        parts = parts_of_score(source.encoding, person, reference.row)
        open_ = {name: part for name, part in parts.items() if name not in PROTECTED}
        worst = sorted(open_, key=lambda name: open_[name])
        labels = [reason.label for reason in letter_to(row).reasons]
        assert labels == [words.label(name) for name in worst[: len(labels)]]
        assert 1 <= len(labels) <= 4


parts_drawn = st.dictionaries(
    st.sampled_from([*german_actions()]), st.floats(-10, 10), min_size=1, max_size=9
)


@given(parts_drawn)
def test_principal_reasons(parts):
    found = principal_reasons(parts, german_actions())
    assert len(found.reasons) <= 4
    assert not set(found.reasons) & set(PROTECTED)
    assert set(found.protected) <= set(PROTECTED)
    assert all(parts[name] < 0.0 for name in (*found.reasons, *found.protected))
    costs = [parts[name] for name in found.reasons]
    assert costs == sorted(costs)
    four = sorted((part, name) for name, part in parts.items() if part < 0.0)[:4]
    against = sum(part for part in parts.values() if part < 0.0)
    large = {name for part, name in four if part <= 0.05 * against}
    assert set(found.protected) == large & set(PROTECTED)
    assert large - set(PROTECTED) <= set(found.reasons)
    open_ = [part for name, part in parts.items() if name not in PROTECTED]
    if open_ and min(open_) <= 0.05 * against < 0.0:
        assert found.reasons


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_letter_is_plain_and_names_nothing_protected(language, refused):
    for row in refused.row.tolist()[::9]:
        letter = letter_to(row, language=language)
        page = render_letter(letter)
        seen = words_of(page)
        for jargon in JARGON:
            assert not re.search(rf"\b{jargon}s?\b", seen, re.IGNORECASE), (row, jargon)
        for name in PROTECTED:
            label = Words.of(language).label(name)
            assert not re.search(rf"\b({name}|{label})\b", page, re.IGNORECASE), (row, name)
        assert len(letter.reasons) <= 4
        assert len(letter.ways) <= 3
        assert bool(letter.ways) == bool(letter.sure)
        assert bool(letter.ways) != bool(letter.barriers)
        assert "None" not in seen
        assert "nan" not in seen
        assert not re.search(r"\d\.0\b", seen)


def test_ways_say_what_the_file_says(frame):
    person = frame[frame.row == 3]
    letter = letter_to(3)
    assert len(letter.ways) == len(person) == 3
    for (name, lines), (_, option) in zip(letter.ways, person.iterrows(), strict=True):
        assert name == f"Option {option.option}"
        changed = [
            each
            for each in german_file().features
            if option[f"person.{each}"] != option[f"recourse.{each}"]
        ]
        assert len(lines) == len(changed)
        for line, each in zip(lines, changed, strict=True):
            assert line.startswith(Words.of("en").label(each) + ": from ")
    assert letter.ways[0][1] == [
        "Duration: from 42 to 36 months",
        "Credit amount: from 7,882 to 7,000 DM",
        "Savings status: from <100 to 500<=X<1000",
    ]


def test_in_german():
    letter = letter_to(3, language="de", until=date(2027, 3, 31), lender="Hansebank")
    assert letter.ways[0][1][1] == "Credit amount: von 7.882 auf 7.000 DM"
    assert letter.date == "16. November 2026"
    assert (
        letter.sure[1]
        == "Diese Empfehlung gilt für Anträge, die uns bis zum 31. März 2027 erreichen."
    )
    assert letter.reasons[1].yours == "42 Monate"
    page = render_letter(letter)
    assert '<html lang="de">' in page
    assert "Grüßen" in page


def test_both_languages_say_the_same_things():
    english, german = (Words.of(language)._content for language in LANGUAGES)
    assert english.keys() == german.keys()
    for name, text in english.items():
        if isinstance(text, str):
            places = [sorted(re.findall(r"\{(\w+)\}", each)) for each in (text, german[name])]
            assert places[0] == places[1], name


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15))
def test_numbers_lose_nothing(value):
    for language, thousands, point in (("en", ",", "."), ("de", ".", ",")):
        words = Words.of(language)
        for written in (words.number(value), words.measured(value, "DM").removesuffix(" DM")):
            back = float(written.replace(thousands, "").replace(point, "."))
            assert back == float(value)


def test_units():
    english, german = (Words.of(language) for language in LANGUAGES)
    assert english.measured(1, "months") == "1 month"
    assert english.measured(12.0, "months") == "12 months"
    assert english.measured(1500.5, "EUR") == "1,500.5 EUR"
    assert english.measured(4.0, "% of income") == "4% of income"
    assert german.measured(4.5, "% of income") == "4,5 % of income"
    assert english.value("x", True) == "yes"
    assert german.value("x", None) == "nicht angegeben"
    assert english.value("year", 2024) == "2024"


def test_how_sure_it_is(tmp_path):
    first, second = letter_to(3).sure
    assert first.endswith("already allows for such updates, as long as they are not too large.")
    assert second.startswith("We cannot promise how long this advice will apply.")
    file = make_recourse(tmp_path, german_people().iloc[:60], robust_to="p=1,radius=0", n_options=1)
    letter = letter_to(3, file, until=date(2027, 1, 31))
    assert letter.sure[0].startswith("This advice reflects how we decide today.")
    assert letter.sure[1] == "This advice applies to applications that reach us by 31 January 2027."


def test_advice_that_not_all_models_approve_is_not_called_safe(tmp_path):
    asked = {"guarantee": None, "cost_weight": 0.1, "robust_to": "p=1,radius=0.3"}
    file = make_recourse(tmp_path, german_people().iloc[:300], n_options=1, **asked)
    frame = file.frame()
    there = frame[(frame.approved == False) & (frame.current_validity >= 0.5)]  # noqa: E712
    weak, firm = there[there.worst_case_validity < 0.5], there[there.worst_case_validity >= 0.5]
    assert "already allows" not in letter_to(int(weak.row.iloc[0]), file).sure[0]
    assert "already allows" in letter_to(int(firm.row.iloc[0]), file).sure[0]


def unasked_file(folder, people=slice(300), **asked):
    """Advice of which nobody asked that today's model approves it."""
    settings = {"guarantee": None, "robust_to": "p=1,radius=0.1", "n_options": 3, **asked}
    return make_recourse(folder, german_people().iloc[people], **settings)


def test_each_way_is_one_that_the_model_approves(tmp_path):
    file = unasked_file(tmp_path, cost_weight=0.15)
    frame, model = file.frame(), file.model_file().model
    refused = frame[(frame.approved == False) & (frame.option >= 1)]  # noqa: E712
    after = refused[[f"recourse.{name}" for name in file.features]]
    approves = pd.Series(model.predict(after.set_axis(file.features, axis=1)) == 0, refused.index)
    mixed = [
        row
        for row, some in approves.groupby(refused.row)
        if some.nunique() == 2  # today's model approves some of the options, not all
    ]
    assert len(mixed) >= 3
    for row in mixed:
        letter = letter_to(row, file)
        right = refused[(refused.row == row) & approves]
        assert len(letter.ways) == len(right)
        assert [name for name, _ in letter.ways] == [f"Option {k + 1}" for k in range(len(right))]
        for (_, lines), (_, option) in zip(letter.ways, right.iterrows(), strict=True):
            changed = [
                name
                for name in file.features
                if option[f"person.{name}"] != option[f"recourse.{name}"]
            ]
            assert len(lines) == len(changed) > 0


@pytest.mark.parametrize("asked", [{"cost_weight": 0.5}, {"guarantee": 0.2}])
def test_no_letter_says_that_there_is_no_way_where_none_was_asked_for(tmp_path, capsys, asked):
    file = unasked_file(tmp_path, slice(100), **asked)
    frame = file.frame()
    still = frame[(frame.approved == False) & (frame.status == "still refused")]  # noqa: E712
    row, out = int(still.row.iloc[0]), tmp_path / "letter.html"
    assert not (frame[frame.row == row].current_validity >= 0.5).any()
    code, _, wrong = run(capsys, "letter", file.path, "--row", row, "--out", out)
    assert code == 2
    assert f"row {row}: the run did not ask for an approval" in wrong
    assert "a guarantee of at least 0.5" in wrong
    assert not out.exists()


def test_no_letter_says_that_there_is_no_way_where_it_is_not_known():
    person = find_person(german_file(), 374)
    place = person.schema.get_field_index("status")
    person = person.set_column(place, "status", [["gap open"]])
    with pytest.raises(ValueError, match="row 374: it is not known whether there is a way"):
        make_letter(german_file(), person, settings())


def test_whom_nothing_helps(lost):
    letter = letter_to(374, language="de")
    assert 374 in lost
    assert letter.ways == []
    assert letter.barriers == [
        "Checking status: Das können Sie nicht ändern.",
        "Credit history: Das können Sie nicht ändern.",
    ]
    assert "keine gefunden" in words_of(render_letter(letter))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"max_decrease": 3, "direction": "any"}, "Duration cannot fall by more than 3 months."),
        ({"lower": 30, "direction": "any"}, "Duration cannot be less than 30 months."),
        ({"direction": "up"}, "Duration can only go up."),
        ({"immutable": True}, "Duration is not something you can change."),
    ],
)
def test_what_is_in_the_way(tmp_path, changes, says):
    actions = german_actions()
    for name in actions:
        if name not in ("duration", *PROTECTED):
            actions[name].immutable = True
    actions.set("duration", **{"max_decrease": None, "lower": None, **changes})
    file = make_recourse(tmp_path, german_people().iloc[:60], actions, n_options=1)
    frame = file.frame()
    lost = frame[(frame.approved == False) & (frame.option == 0)].row.tolist()  # noqa: E712
    said = [letter_to(row, file).barriers for row in lost]
    assert [says] in said


def test_nothing_helps_at_all(tmp_path):
    actions = german_actions()
    for name in actions:
        actions[name].set(immutable=False, protected=True)
    file = make_recourse(tmp_path, german_people().iloc[:30], actions, n_options=1)
    letter = letter_to(3, file)
    assert letter.barriers == []
    assert letter.reasons == []
    assert len(letter.protected) >= 1
    seen = words_of(render_letter(letter))
    assert "not even a large one" in seen
    assert "No single point stood out" in seen


def test_what_is_missing_and_what_follows(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"income": random.integers(10, 60, 300) * 100.0})
    table["debt"] = random.integers(1, 40, 300) * 100.0
    table["burden"] = table.debt / table.income
    bad = (table.burden + random.normal(0, 0.2, 300) > 0.7).astype(int)
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(table, bad)
    actions = holdfast.ActionSet.from_data(table, units={"income": "EUR", "debt": "EUR"})
    actions.set("income", immutable=True)
    actions.set("debt", step=100, provide_cost=0.1, lower=0)
    actions.set("burden", step=None, lower=None, upper=None)
    actions.derived.append(holdfast.actions.Ratio("burden", "debt", "income"))
    people = table.copy()
    people.to_csv(tmp_path / "people.csv", index=False)
    save_model(model, tmp_path / "model.skops", favorable_class=0)
    actions.save(tmp_path / "actions.yaml")
    paths = {name: str(tmp_path / f"{name}.yaml") for name in ("actions",)}
    job = Job(
        model=str(tmp_path / "model.skops"),
        people=str(tmp_path / "people.csv"),
        out=str(tmp_path / "recourse.parquet"),
        robust_to="p=1,radius=0.01",
        guarantee=0.5,
        **paths,
    )
    run_job(job, n_jobs=1)
    file = RecourseFile.open(tmp_path / "recourse.parquet")
    frame = file.frame()
    row = int(frame[(frame.approved == False) & (frame.option == 1)].row.iloc[0])  # noqa: E712
    (_, lines), *_ = letter_to(row, file).ways
    assert re.fullmatch(r"Debt: from [\d,]+ to [\d,]+ EUR", lines[0])
    assert re.fullmatch(r"Burden then changes from [\d.]+ to [\d.]+ automatically", lines[1])


def test_what_is_computed_from_something_protected_is_protected(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"debt": random.integers(1, 40, 300) * 100.0})
    table["age"] = random.integers(20, 70, 300).astype(float)
    table["burden"] = table.debt / table.age
    bad = (table.burden + random.normal(0, 5, 300) > 45).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, bad)
    actions = holdfast.ActionSet.from_data(table, protected=["age"])
    actions.set("debt", step=100, lower=0)
    actions.set("burden", step=None, lower=None, upper=None)
    actions.derived.append(holdfast.actions.Ratio("burden", "debt", "age"))
    file = make_recourse(tmp_path, table, actions, model, n_options=1, keys=[])
    frame = file.frame()
    rows = frame[(frame.approved == False) & (frame.option == 1)].row  # noqa: E712
    letters = [letter_to(int(row), file) for row in rows.iloc[:5]]
    assert any("burden" in letter.protected for letter in letters)
    for letter in letters:
        assert letter.ways[0][1][0].startswith("Debt: from ")
        assert "burden" not in words_of(render_letter(letter)).lower()


def test_a_number_that_is_given(tmp_path):
    random = np.random.default_rng(1)
    table = pd.DataFrame({"income": random.integers(10, 60, 300) * 100.0})
    bad = (table.income + random.normal(0, 300, 300) < 3000).astype(int)
    table.loc[random.random(300) < 0.2, "income"] = np.nan
    imputer = SimpleImputer(strategy="constant", fill_value=0.0)
    model = make_pipeline(imputer, StandardScaler(), LogisticRegression()).fit(table, bad)
    actions = holdfast.ActionSet.from_data(table, units={"income": "EUR"})
    actions.set("income", step=100, provide_cost=0.1, upper=8000, lower=0)
    table.to_csv(tmp_path / "people.csv", index=False)
    save_model(model, tmp_path / "model.skops", favorable_class=0)
    actions.save(tmp_path / "actions.yaml")
    job = Job(
        model=str(tmp_path / "model.skops"),
        people=str(tmp_path / "people.csv"),
        actions=str(tmp_path / "actions.yaml"),
        out=str(tmp_path / "recourse.parquet"),
        robust_to="p=1,radius=0.01",
        guarantee=0.5,
    )
    run_job(job, n_jobs=1)
    file = RecourseFile.open(tmp_path / "recourse.parquet")
    frame = file.frame()
    missing = frame[(frame.approved == False) & frame["person.income"].isna()]  # noqa: E712
    letter = letter_to(int(missing.row.iloc[0]), file)
    assert letter.reasons[0].yours == "not given"
    assert re.fullmatch(
        r"Income: not given so far; [\d,]+ EUR would be enough", letter.ways[0][1][0]
    )


def run(capsys, *arguments):
    code = main([str(each) for each in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command(tmp_path, capsys):
    out = tmp_path / "letter.html"
    path = german_file().path
    code, said, warned = run(capsys, "letter", path, "--row", 3, "--out", out)
    assert (code, warned) == (0, "")
    assert said == f"The letter for row 3 is in {out}.\n"
    assert "About your application" in out.read_text()
    by_key = ("--key", "customer=C0003", "--language", "de", "--lender", "A & B Bank")
    code, _, _ = run(capsys, "letter", path, *by_key, "--out", out, "--until", "2099-12-31")
    page = out.read_text()
    assert code == 0
    assert "A &amp; B Bank" in page
    assert "C0003" in page
    assert "31. Dezember 2099" in page
    assert list(tmp_path.iterdir()) == [out]


def test_no_input_is_overwritten(tmp_path, capsys):
    template = tmp_path / "mine.html"
    template.write_text("{{ letter.title }}")
    asked = ("--row", 3, "--template", template, "--out", tmp_path / "." / "mine.html")
    code, _, wrong = run(capsys, "letter", german_file().path, *asked)
    assert code == 2
    assert "mine.html would overwrite an input" in wrong
    assert template.read_text() == "{{ letter.title }}"


def test_the_lender_is_warned_of_what_is_protected(tmp_path, capsys):
    out = tmp_path / "letter.html"
    code, _, warned = run(capsys, "letter", german_file().path, "--row", 11, "--out", out)
    assert code == 1
    assert warned.startswith("holdfast: ATTENTION: personal_status: protected, but among what")
    page = out.read_text()
    assert "personal" not in page.lower()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--row", "0"], "row 0 is approved by today's model"),
        (["--row", "5"], "row 5 could not be used, so there is no letter: duration is missing"),
        (["--row", "200"], "'castle'"),
        (["--row", "1000"], "has no row 1000; rows run from 0 to 999"),
        ([], "either a row number or a key"),
        (["--row", "3", "--key", "customer=C0003"], "either a row number or a key"),
        (["--key", "customer=nobody"], "has customer = nobody"),
        (["--key", "region=west"], "people with region = west"),
        (["--key", "job=1"], "'job' is not a key column of"),
        (["--key", "customer"], "is not a column with its value"),
        (["--row", "3", "--until", "soon"], "is not a date such as 2027-03-31"),
        (["--row", "3", "--until", "2001-01-01"], "is in the past"),
        (
            ["--row", "3", "--language", "fr"],
            "language = 'fr' is not available; choose one of en and de",
        ),
        (["--row", "3", "--words", "none.yaml"], "none.yaml cannot be read"),
        (["--row", "3", "--template", "none.html"], "none.html cannot be read"),
        (["--row", "3", "--reference", "none.csv"], "none.csv does not exist"),
    ],
)
def test_wrong_options_are_said(tmp_path, capsys, options, says):
    out = tmp_path / "letter.html"
    code, _, wrong = run(capsys, "letter", german_file().path, "--out", out, *options)
    assert code == 2
    assert says in wrong
    assert not out.exists()


def test_nobody_to_compare_with(tmp_path, capsys):
    file = make_recourse(tmp_path, german_people().iloc[[3, 7]], n_options=1)
    out = tmp_path / "letter.html"
    code, _, wrong = run(capsys, "letter", file.path, "--row", 0, "--out", out)
    assert code == 2
    assert "so there is nobody to compare with" in wrong
    assert "give --reference" in wrong
    code, _, wrong = run(
        capsys, "letter", file.path, "--row", 0, "--out", out, "--reference", file.job.people
    )
    assert (code, "approves nobody in" in wrong) == (2, True)
    german_people().to_csv(tmp_path / "all.csv", index=False)
    code, _, _ = run(
        capsys, "letter", file.path, "--row", 0, "--out", out, "--reference", tmp_path / "all.csv"
    )
    assert code == 0
    german_people()[["duration", "age"]].to_csv(tmp_path / "few.csv", index=False)
    code, _, wrong = run(
        capsys, "letter", file.path, "--row", 0, "--out", out, "--reference", tmp_path / "few.csv"
    )
    assert (code, "it has no column 'credit_amount'; it has no" in wrong) == (2, True)


def words_file(folder: Path, text: str) -> Path:
    path = folder / "words.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_other_words(tmp_path):
    path = words_file(
        tmp_path,
        """
greeting: Hello,
change: "{label} should become {after}"
labels: {duration: Duration of the loan, savings_status: Savings}
values:
  savings_status: {"<100": less than 100 DM, "500<=X<1000": 500 to 1000 DM}
units: {months: {one: mo., many: mos.}, DM: Mark}
""",
    )
    letter = letter_to(3, words=path)
    assert letter.greeting == "Hello,"
    assert letter.ways[0][1] == [
        "Duration of the loan should become 36 mos.",
        "Credit amount should become 7,000 Mark",
        "Savings should become 500 to 1000 DM",
    ]
    assert letter.decision == letter_to(3).decision


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("greting: Hello", "unknown name 'greting'; did you mean 'greeting'"),
        ("greeting: 7", "must be text, not 7"),
        ('greeting: ""', "greeting"),
        ("labels: {durration: Time}", "did you mean 'duration'?"),
        ("labels: [duration]", "labels"),
        ("values: {savings_status: {1: one}}", "the name 1 is not a string; put it in quotes"),
        (
            'change: "{name} changes"',
            "change: {name} cannot be filled in; available placeholders: {label} and",
        ),
        ('change: "{label.__class__}"', "cannot be filled in"),
        ('change: "{label!r}"', "cannot be filled in"),
        ('change: "{0}"', "cannot be filled in"),
        (
            'greeting: "Hello {lender}"',
            "greeting: {lender} cannot be filled in; available placeholders: none",
        ),
        ('greeting: "Hello {"', "to write a brace, double it"),
        ("months: [January]", "months"),
        ("units: {months: {one: month}}", "units.months"),
        ("- greeting", "it must hold names with their values"),
        ("greeting: [", "not valid YAML"),
    ],
)
def test_wrong_words_are_said(tmp_path, capsys, text, says):
    path = words_file(tmp_path, text)
    out = tmp_path / "letter.html"
    code, _, wrong = run(
        capsys, "letter", german_file().path, "--row", 3, "--out", out, "--words", path
    )
    assert code == 2
    assert says in wrong
    assert "words.yaml" in wrong
    assert not out.exists()


entries = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
names = st.sampled_from(["greeting", "labels", "values", "units", "months", "change", "date"])


@given(st.dictionaries(names | st.text(max_size=5), entries, max_size=4) | st.text(max_size=60))
def test_no_file_of_words_breaks_the_reader(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "words.yaml"
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(ValueError):
        words = Words.of("en", path, german_file().features)
        words.date(TODAY)
        words.value("duration", 12.0, "months")
        words.say("change", label="a", before="b", after="c")


pieces = st.sampled_from(
    ["{{", "}}", "{%", "%}", " letter", ".ways", "[0]", " for x in", " if", " endfor", "|join", "1"]
)


@given(st.lists(pieces | st.text(max_size=4), max_size=12).map("".join))
def test_no_template_breaks_the_renderer(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "template.html"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(ValueError):
        render_letter(letter_to_row_3(), path)


def test_a_template_of_ones_own(tmp_path):
    path = tmp_path / "mine.html"
    path.write_text("<p>{{ letter.lender }}: {{ letter.ways[0][1] | join('; ') }}</p>\n")
    page = render_letter(letter_to(3, lender="<A>"), path)
    assert page.startswith("<p>&lt;A&gt;: Duration: from 42 to 36 months; Credit amount")
    assert "&lt;100" in page


def test_no_template_gets_what_is_protected(tmp_path):
    path, letter = tmp_path / "mine.html", letter_to(11)
    assert letter.protected == ["personal_status"]
    path.write_text("{{ letter }}")
    page = render_letter(letter, path)
    assert "About your application" in page
    assert "protected" not in page
    assert "personal" not in page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ letter.protected }}", "protected"),
        ("{{ letter.leander }}", "leander"),
        ("{% for x in %}", "line 1"),
        ("{{ letter.__class__.__init__.__globals__ }}", "unsafe"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{% for k in range(10**9) %}x{% endfor %}", "OverflowError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% include '/etc/passwd' %}", "passwd"),
        ("{{ open('/etc/passwd') }}", "open"),
    ],
)
def test_wrong_templates_are_said(tmp_path, text, says):
    path = tmp_path / "mine.html"
    path.write_text(text)
    with pytest.raises(ValueError, match="the template cannot be used") as wrong:
        render_letter(letter_to(3), path)
    assert says in str(wrong.value)


@pytest.fixture(scope="module", params=["three ways", "nothing helps", "German"])
def page(request, tmp_path_factory):
    row, language = {"three ways": (3, "en"), "nothing helps": (374, "en"), "German": (3, "de")}[
        request.param
    ]
    more = {"lender": "Hanse Kreditbank", "until": date(2027, 3, 31)}
    path = tmp_path_factory.mktemp("letter") / "letter.html"
    path.write_text(render_letter(letter_to(row, language=language, **more)), encoding="utf-8")
    return path


@needs_browser
def test_it_prints_on_one_page(page):
    assert printed_pages(page) == 1


@needs_browser
def test_a_browser_has_nothing_to_complain_of(page):
    assert complaints(page) == []
    wide, room = widths(page, 390)
    assert wide <= room == 390


@needs_browser
def test_light_and_dark(page, tmp_path):
    from PIL import Image

    middle = []
    for dark in (False, True):
        picture(page, tmp_path / "letter.png", 800, 1100, dark=dark)
        shades = np.asarray(Image.open(tmp_path / "letter.png").convert("L"))
        assert shades.std() > 10.0
        middle.append(float(np.median(shades)))
    assert middle[0] > 240 > 60 > middle[1]
