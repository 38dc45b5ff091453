"""Models in files: what is read equals what was saved, to the bit; the rest is refused in words."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german
from holdfast.files import models as model_files
from holdfast.files.models import load_model, save_model

GERMAN = load_german()
TABLE = GERMAN.features[["duration", "credit_amount", "age", "housing", "checking_status"]]
NUMBERS, TEXTS = ["duration", "credit_amount", "age"], ["housing", "checking_status"]
JSON_MODEL = {
    "holdfast_model": 1,
    "classes": [0, 1],
    "favorable_class": 0,
    "intercept": -0.25,
    "columns": [
        {"name": "duration", "coefficient": 0.4, "mean": 20.9, "scale": 12.1},
        {"name": "credit_amount", "coefficient": 0.0001},
        {"name": "housing", "levels": {"own": -0.3, "rent": 0.2, "for free": 0.125}},
    ],
}


def encoder():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_column_transformer((numbers, NUMBERS), (OneHotEncoder(), TEXTS))


def fitted(labels=None):
    outcome = np.asarray(GERMAN.approved) if labels is None else labels
    return make_pipeline(encoder(), LogisticRegression()).fit(TABLE, outcome)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def packed(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.skops"
    save_model(model, path, True)
    return path.read_bytes()


def written(folder, content, name="model.json"):
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


SAVED = {
    "logistic": lambda: make_pipeline(encoder(), LogisticRegression()),
    "calibrated": lambda: CalibratedClassifierCV(
        make_pipeline(encoder(), LogisticRegression()), ensemble=False
    ),
    "isotonic": lambda: CalibratedClassifierCV(
        make_pipeline(encoder(), LogisticRegression()), ensemble=False, method="isotonic"
    ),
    "search": lambda: GridSearchCV(
        make_pipeline(encoder(), LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}
    ),
    "bins": lambda: make_pipeline(
        make_column_transformer((KBinsDiscretizer(5, quantile_method="linear"), NUMBERS))
        if "quantile_method" in KBinsDiscretizer().get_params()
        else make_column_transformer((KBinsDiscretizer(5), NUMBERS)),
        LogisticRegression(),
    ),
}


@pytest.mark.parametrize("kind", SAVED)
def test_a_saved_model_gives_the_same_probabilities_to_the_bit(kind, tmp_path):
    model = SAVED[kind]().fit(TABLE, np.asarray(GERMAN.approved))
    save_model(model, tmp_path / "model.skops", True)
    found = load_model(tmp_path / "model.skops")
    assert found.favorable_class is True
    assert found.can_retrain
    assert found.model.predict_proba(TABLE).tobytes() == model.predict_proba(TABLE).tobytes()


def test_a_file_that_skops_itself_has_written_is_read(model, tmp_path):
    skops.io.dump(model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").favorable_class is True
    save_model(model, tmp_path / "ours.skops", True)
    theirs = skops.io.load(tmp_path / "ours.skops", trusted=["numpy.dtype"])
    assert theirs.predict_proba(TABLE).tobytes() == model.predict_proba(TABLE).tobytes()


def test_the_checksum_is_that_of_the_file(packed, tmp_path):
    from holdfast.machinery.plain_files import checksum

    path = written(tmp_path, packed, "model.skops")
    assert load_model(path).sha256 == checksum(path)


def test_coefficients_in_json_are_the_model(tmp_path):
    found = load_model(written(tmp_path, JSON_MODEL))
    assert found.favorable_class == 0
    assert not found.can_retrain
    people = TABLE[["duration", "credit_amount", "housing"]]
    of_home = people["housing"].map(JSON_MODEL["columns"][2]["levels"])
    score = -0.25 + 0.4 * (people["duration"] - 20.9) / 12.1 + 1e-4 * people["credit_amount"]
    expected = np.asarray(score + of_home, dtype=np.float64)
    assert np.allclose(found.model.decision_function(people), expected, rtol=1e-12, atol=1e-12)
    chance = 1.0 / (1.0 + np.exp(-expected))
    assert np.allclose(found.model.predict_proba(people)[:, 1], chance, rtol=1e-12, atol=1e-12)


def test_recourse_is_found_for_coefficients_in_json(tmp_path):
    columns = [dict(column) for column in JSON_MODEL["columns"]]
    columns[1] |= {"coefficient": 0.3, "mean": 3271.25, "scale": 2822.5}
    found = load_model(written(tmp_path, {**JSON_MODEL, "columns": columns}))
    people = TABLE[["duration", "credit_amount", "housing"]]
    denied = people[found.model.predict(people) == 1].head(10)
    result = holdfast.RobustRecourse(
        found.model,
        robust_to=holdfast.NormBall(p=1, radius=0.05),
        actions=holdfast.ActionSet.from_data(people),
        guarantee=0.5,
        favorable_class=found.favorable_class,
    ).recommend(denied)
    assert set(result.to_frame()["status"]) == {"optimal"}


def test_the_second_class_has_the_coefficients_in_whatever_order(tmp_path):
    columns = [{"name": "x", "coefficient": 2.0}]
    one = {**JSON_MODEL, "classes": ["a", "b"], "favorable_class": "a", "columns": columns}
    other = {**one, "classes": ["b", "a"]}
    table = pd.DataFrame({"x": [0.5, -3.0]})
    first = load_model(written(tmp_path, one, "one.json")).model.predict_proba(table)
    second = load_model(written(tmp_path, other, "other.json")).model.predict_proba(table)
    assert np.allclose(first, second[:, ::-1], rtol=1e-15)
    assert first[0, 1] > 0.5


def test_levels_that_are_numbers_or_booleans_stand_in_a_list(tmp_path):
    columns = [
        {
            "name": "rooms",
            "levels": [{"level": 2, "coefficient": 1.0}, {"level": 1, "coefficient": 0}],
        },
        {"name": "phone", "levels": [{"level": True, "coefficient": 4.0}]},
    ]
    found = load_model(written(tmp_path, {**JSON_MODEL, "columns": columns}))
    table = pd.DataFrame({"rooms": [1, 2], "phone": [True, True]})
    assert found.model.decision_function(table).tolist() == [3.75, 4.75]


LABELS = [
    ([0, 1], "0", 0),
    ([0, 1], "1.0", 1),
    ([1.0, 2], "1", 1),
    (["bad", "good"], "good", "good"),
    (["0", "1"], "1", "1"),
    ([False, True], "False", False),
    ([False, True], "true", True),
    ([False, True], None, True),
]


@pytest.mark.parametrize(("classes", "typed", "wanted"), LABELS)
def test_the_favourable_class_is_read_as_the_model_knows_it(classes, typed, wanted, tmp_path):
    content = {key: value for key, value in JSON_MODEL.items() if key != "favorable_class"}
    found = load_model(written(tmp_path, {**content, "classes": classes}), typed)
    assert found.favorable_class == wanted
    assert type(found.favorable_class) is type(wanted)


def changed(**changes):
    return {key: value for key, value in {**JSON_MODEL, **changes}.items() if value is not ...}


def with_column(**column):
    return {**JSON_MODEL, "columns": [column]}


BAD_JSON = {
    "no JSON": ("{", "not valid JSON"),
    "nothing": ("null", "it is empty"),
    "a list": ("[]", "it is a list"),
    "a name twice": (
        '{"holdfast_model": 1, "holdfast_model": 1}',
        "'holdfast_model' appears twice",
    ),
    "too deep": ("[" * 100 + "]" * 100, "nested more than 16 levels deep"),
    "no UTF-8": (b"\xff\xfe{", "not UTF-8 text: see byte 0"),
    "another version": (changed(holdfast_model=2), "holdfast_model: must be 1, not 2"),
    "too many columns": (
        changed(columns=[{"name": f"x{k}", "coefficient": 1} for k in range(20_001)]),
        "it reads 20,001 columns; at most 20,000 can be read",
    ),
    "no classes": (changed(classes=...), "'classes' is missing"),
    "three classes": (changed(classes=[0, 1, 2]), "classes: must hold at most 2, not [0, 1, 2]"),
    "a class with a fraction": (changed(classes=[0, 0.5]), "classes[1]: must be"),
    "equal classes": (changed(classes=[1, 1.0]), "classes: all values must be different"),
    "mixed classes": (
        changed(classes=[0, "1"]),
        "classes: strings, numbers and booleans cannot be",
    ),
    "another favourable class": (
        changed(favorable_class=2),
        "favourable class is 2, but the classes are",
    ),
    "a text for 0": (
        changed(favorable_class="0"),
        "favourable class is '0', but the classes are 0, 1",
    ),
    "no columns": (changed(columns=[]), "columns: must hold at least 1, not []"),
    "an unknown key": (
        changed(intercepts=1),
        "unknown name 'intercepts'; did you mean 'intercept'?",
    ),
    "no coefficient": (with_column(name="x"), "'coefficient' is missing"),
    "a text": (
        with_column(name="x", coefficient="1"),
        "columns[0].coefficient: must be a number, not '1'",
    ),
    "no number": (
        json.dumps(with_column(name="x", coefficient=float("nan"))),
        "columns[0] (x).coefficient is not a finite number",
    ),
    "too large": (
        json.dumps(with_column(name="x", coefficient=1)).replace('t": 1', 't": 1e999'),
        "columns[0] (x).coefficient is not a finite number",
    ),
    "digits without end": (
        json.dumps(changed(intercept=7)).replace("7", "7" * 400),
        "intercept is not a finite number",
    ),
    "no scale": (
        with_column(name="x", coefficient=1, scale=0),
        "columns[0].scale: must be above 0",
    ),
    "no levels": (with_column(name="x", levels={}), "columns[0].levels: must hold at least 1"),
    "mixed levels": (
        with_column(
            name="x", levels=[{"level": 1, "coefficient": 1}, {"level": "1", "coefficient": 1}]
        ),
        "columns[0] (x).levels: strings, numbers and booleans cannot be mixed",
    ),
    "a level twice": (
        with_column(
            name="x", levels=[{"level": 1, "coefficient": 1}, {"level": 1, "coefficient": 2}]
        ),
        "columns[0] (x).levels: all values must be different",
    ),
    "a column twice": (
        changed(columns=[{"name": "x", "coefficient": 1}] * 2),
        "columns: 'x' appears 2 times",
    ),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_what_is_wrong_in_json_is_said(case, tmp_path):
    content, message = BAD_JSON[case]
    path = written(tmp_path, content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        load_model(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class Stranger:
    """Nobody trusts it."""


def unfitted():
    return skops.io.dumps(make_pipeline(StandardScaler(), LogisticRegression()))


def three_classes():
    return skops.io.dumps(LogisticRegression().fit(np.eye(3), [0, 1, 2]))


BAD_SKOPS = {
    "empty": (lambda good: b"", "the file is empty"),
    "no zip": (lambda good: b"hello, world", "not a skops file, or it is damaged"),
    "truncated": (lambda good: good[: len(good) // 2], "not a skops file, or it is damaged"),
    "another zip": (lambda good: zipped({"a.txt": "a"}), "it has no schema.json"),
    "no schema": (lambda good: zipped({"schema.json": "[]"}), "this skops file cannot be read"),
    "a dict": (lambda good: skops.io.dumps({"a": 1}), "this is a dict, not a model"),
    "a stranger": (
        lambda good: skops.io.dumps(Stranger()),
        "Stranger, which is not trusted: a model is only read if",
    ),
    "a scaler": (
        lambda good: skops.io.dumps(StandardScaler().fit(np.eye(2))),
        "this is a StandardScaler, not a model",
    ),
    "not fitted": (lambda good: unfitted(), "the model (Pipeline) is not fitted"),
    "three classes": (lambda good: three_classes(), "has 3 classes, 0, 1, 2; recourse needs"),
    "a pickle": (lambda good: pickle.dumps({"a": 1}), "skops.io.dump(joblib.load("),
    "a strange note": (
        lambda good: zipped({"schema.json": "{}", "holdfast.json": "[]"}),
        "holdfast.json does not say which class is favourable",
    ),
}


@pytest.mark.parametrize("case", BAD_SKOPS)
def test_what_is_wrong_in_a_skops_file_is_said(case, packed, tmp_path):
    make, message = BAD_SKOPS[case]
    path = written(tmp_path, make(packed), "model.skops")
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        load_model(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize("name", ["model.pkl", "model.pickle", "model.joblib"])
def test_pickles_are_refused_with_the_line_that_converts_them(name, tmp_path):
    path = written(tmp_path, b"anything", name)
    line = f"skops.io.dump(joblib.load({str(path)!r}), {str(tmp_path / 'model.skops')!r})"
    with pytest.raises(ValueError, match="can run arbitrary code") as error:
        load_model(path)
    assert f'python -c "import joblib, skops.io; {line}"' in str(error.value)


def test_no_pickle_is_ever_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    for name in ("model.pkl", "model.skops", "model.json", "model.onnx"):
        with pytest.raises(ValueError, match="pickle"):
            load_model(written(tmp_path, pickle.dumps(Trap()), name))
    assert not (tmp_path / "sprung").exists()


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(packed, tmp_path, monkeypatch):
    path = written(tmp_path, packed, "model.skops")
    monkeypatch.setattr(model_files, "MOST_MODEL_BYTES", len(packed) + 1)
    with pytest.raises(
        ValueError, match=r"unpacks to more than .* bytes, which is too large for a model"
    ):
        load_model(path)
    monkeypatch.setattr(model_files, "MOST_MODEL_BYTES", len(packed) - 1)
    with pytest.raises(
        ValueError, match=r"is larger than .* bytes, which is too large for a model"
    ):
        load_model(path)


def test_what_is_packed_twice_counts_as_well(tmp_path, monkeypatch):
    inner = zipped({"data.npy": b"0" * 1_000_000})
    path = written(tmp_path, zipped({"schema.json": "{}", "1.npz": inner}), "model.skops")
    monkeypatch.setattr(model_files, "MOST_MODEL_BYTES", 100_000)
    assert path.stat().st_size < 10_000
    with pytest.raises(ValueError, match=r"unpacks to more than 100,000 bytes"):
        load_model(path)


def test_a_packing_without_a_limit_is_refused(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_BZIP2) as archive:
        archive.writestr("schema.json", "{}")
    with pytest.raises(ValueError, match=r"packs 'schema.json' in a way that is not supported"):
        load_model(written(tmp_path, buffer.getvalue(), "model.skops"))


PLACES = {
    "missing": ("none.skops", FileNotFoundError, "cannot be read: No such file"),
    "another ending": (
        "model.txt",
        ValueError,
        "must end in one of .skops, .json, .onnx, not '.txt'",
    ),
    "a directory": ("", ValueError, "is a directory, not a model file"),
}


@pytest.mark.parametrize("case", PLACES)
def test_what_is_no_model_file_is_said(case, tmp_path):
    name, kind, message = PLACES[case]
    (tmp_path / "model.txt").write_text("a")
    with pytest.raises(kind) as error:
        load_model(tmp_path / name)
    assert message in str(error.value)


SAID = [
    ("1", "the file says that the favourable class is 0, but you say 1"),
    ("good", "'good' is not one of the classes: 0, 1"),
]


@pytest.mark.parametrize(("typed", "message"), SAID)
def test_file_and_caller_must_mean_the_same_class(typed, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_model(written(tmp_path, JSON_MODEL), typed)
    assert load_model(written(tmp_path, JSON_MODEL), "0").favorable_class == 0


def test_a_favourable_class_that_nobody_says_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match="give --favorable-class; the classes are 0, 1"):
        load_model(written(tmp_path, changed(favorable_class=...)))


NOT_SAVED = {
    "a stranger": (lambda m: (Stranger(), "model.skops", 1), "not a model"),
    "not fitted": (lambda m: (LogisticRegression(), "model.skops", 1), "is not fitted"),
    "another class": (lambda m: (m, "model.skops", 1), "1 is not one of the classes False, True"),
    "another ending": (lambda m: (m, "model.pkl", True), "does not end in .skops"),
    "no directory": (lambda m: (m, "none/model.skops", True), "cannot be written"),
}


@pytest.mark.parametrize("case", NOT_SAVED)
def test_what_cannot_be_saved_is_said(case, model, tmp_path):
    make, message = NOT_SAVED[case]
    given_model, name, favorable_class = make(model)
    with pytest.raises((ValueError, OSError)) as error:
        save_model(given_model, tmp_path / name, favorable_class)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def refused_in_words(path):
    """Read a file; whatever else it raises than an error that names the file fails the test."""
    message = str(path)
    with contextlib.suppress(ValueError, OSError):
        try:
            load_model(path)
        except (ValueError, OSError) as error:
            message = str(error)
            raise
    assert message.startswith(str(path))


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".skops", ".json", ".onnx"]))
def test_any_bytes_are_refused_in_words(content, suffix, tmp_path_factory):
    if suffix == ".onnx":
        pytest.importorskip("onnx")
    folder = tmp_path_factory.getbasetemp()
    refused_in_words(written(folder, content, f"random{suffix}"))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_skops_file_is_read_or_refused_in_words(data, packed, tmp_path_factory):
    content = bytearray(packed)
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.getbasetemp()
    refused_in_words(written(folder, bytes(content), "damaged.skops"))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_forged_schema_is_read_or_refused_in_words(data, packed, tmp_path_factory):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = members["schema.json"].decode()
    words = ["null", '"sklearn"', "1", '"numpy"', "{}", '"LogisticRegression"', '"os.system"']
    place = data.draw(st.integers(0, len(schema) - 1))
    ends = [k for k in (schema.find(",", place), schema.find("\n", place)) if k >= 0]
    start = schema.rfind(":", 0, place) + 1
    forged = schema[:start] + data.draw(st.sampled_from(words)) + schema[min(ends, default=place) :]
    members["schema.json"] = forged.encode()
    refused_in_words(written(tmp_path_factory.getbasetemp(), zipped(members), "forged.skops"))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=75, deadline=None)
@given(data=st.data())
def test_forged_json_is_read_or_refused_in_words(data, tmp_path_factory):
    content = json.loads(json.dumps(JSON_MODEL))
    place = content
    if data.draw(st.booleans()):
        place = content["columns"][data.draw(st.integers(0, 2))]
    key = data.draw(st.sampled_from(sorted(place)) | st.text(max_size=5))
    place[key] = data.draw(JSON_VALUES)
    refused_in_words(written(tmp_path_factory.getbasetemp(), json.dumps(content), "forged.json"))
