"""Action sets in files: round trips are exact, and what is wrong in a file has its place named."""

from __future__ import annotations

import json
import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from test_actions import action_sets

from holdfast.actions import (
    ActionSet,
    CategoryFeature,
    Follows,
    Linear,
    NumberFeature,
    Product,
    Ratio,
)
from holdfast.datasets import load_german

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
AWKWARD = st.sampled_from(
    ["yes", "no", "null", "1", "1.0", "1e3", "~", " ", "a: b", "#", "-", "0x1", "a\x85b"]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**12), 10**12)
POSITIVE = st.floats(1e-300, 1e300) | st.integers(1, 10**9)
LEVELS = st.lists(TEXTS | AWKWARD | NUMBERS | st.booleans(), min_size=1, max_size=5, unique=True)


@st.composite
def strange_sets(draw):
    names = draw(st.lists(TEXTS | AWKWARD, min_size=3, max_size=5, unique=True))
    low, high = sorted([draw(NUMBERS), draw(NUMBERS)])
    numbers = [
        NumberFeature(names[0], unit=draw(TEXTS), lower=low, upper=high, cost=draw(POSITIVE)),
        NumberFeature(names[1], max_increase=draw(POSITIVE), step=draw(POSITIVE)),
    ]
    features = [*numbers]
    for name in names[2:]:
        levels = draw(LEVELS)
        some = st.lists(st.sampled_from(levels), min_size=1, unique=True)
        cost = draw(POSITIVE | st.dictionaries(st.tuples(*[st.sampled_from(levels)] * 2), POSITIVE))
        moves = draw(st.none() | st.dictionaries(st.sampled_from(levels), some))
        features.append(CategoryFeature(name, levels, moves=moves, order=draw(some), cost=cost))
    linear = Linear({names[1]: draw(POSITIVE), names[0]: -draw(POSITIVE)}, draw(NUMBERS))
    links = [Follows(names[0], of=names[1], by=draw(POSITIVE)), linear]
    whole = ["whole", "part"]
    features += [NumberFeature(f"{name} of {names[0]}") for name in whole]
    ratio = Ratio(f"part of {names[0]}", of=names[0], to=names[1])
    product = Product(f"whole of {names[0]}", of=(names[1], names[0]))
    derived = draw(st.sampled_from([[], [ratio], [product, ratio]]))
    return ActionSet(features, links, draw(st.none() | st.just(2)), derived)


@pytest.mark.parametrize("suffix", [".yaml", ".yml", ".json"])
@given(actions=st.one_of(action_sets(), strange_sets()))
@settings(max_examples=60, deadline=None)
def test_round_trips_are_exact(tmp_path_factory, suffix, actions):
    path = tmp_path_factory.mktemp("actions") / f"set{suffix}"
    actions.save(path)
    loaded = ActionSet.load(path)
    assert loaded == actions
    for name in actions:  # 1 == 1.0 == True, but a file must not mix them up
        for key, value in actions[name].settings().items():
            assert repr(getattr(loaded[name], key)) == repr(value)


def test_german_credit_is_readable_in_a_file(tmp_path):
    german = load_german()
    actions = ActionSet.from_data(german.features, units=german.units)
    actions["age"].immutable = True
    actions.set("savings_status", moves={"<100": [">=1000"]}, cost={("<100", ">=1000"): 2})
    actions.max_changes = 2
    actions.save(tmp_path / "german.yaml")
    text = (tmp_path / "german.yaml").read_text()
    assert text.startswith("holdfast_actions: 1\nmax_changes: 2\nfeatures:\n")
    assert "  age:\n    type: number\n    unit: years\n    immutable: true\n" in text
    assert ActionSet.load(tmp_path / "german.yaml") == actions


def valid() -> dict:
    return {
        "holdfast_actions": 1,
        "features": {
            "age": {"type": "number", "lower": 18, "upper": 80},
            "home": {"type": "category", "levels": ["own", "rent"]},
        },
    }


def change(**changes):
    """Change what stands at the places: features__age__lower, ..."""
    content = valid()
    for place, value in changes.items():
        *steps, last = place.split("__")
        inner = content
        for step in steps:
            inner = inner[step]
        inner[last] = value
    return content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"features__age__direction": "sideways"},
            r"features\.age\.direction: must be one of 'any', 'up', 'down', not 'sideways'",
        ),
        (
            {"features__age__imutable": True},
            r"features\.age: unknown name 'imutable'; did you mean 'immutable'\?",
        ),
        ({"features__age__cost": 0}, r"features\.age\.cost: must be above 0, not 0"),
        ({"features__age__cost": "much"}, r"features\.age\.cost: must be a number, not 'much'"),
        (
            {"features__age__type": "text"},
            r"features\.age\.type: must be one of 'number', 'category', not 'text'",
        ),
        (
            {"features__age__integer": "yes"},
            r"features\.age\.integer: must be true or false, not 'yes'",
        ),
        ({"features__age": {}}, r"features\.age: 'type' is missing"),
        ({"features__home": {"type": "category"}}, r"features\.home: 'levels' is missing"),
        (
            {"features__home__levels": [["x"]]},
            r"features\.home\.levels\[0\]: must be text or a number or true or",
        ),
        (
            {"features__home__moves": [{"from": "own"}]},
            r"features\.home\.moves\[0\]: 'to' is missing",
        ),
        (
            {"features__home__cost": [{"from": "own"}]},
            r"features\.home\.cost\[0\]: 'to', 'cost' are missing",
        ),
        ({"links": [{"type": "equal"}]}, r"links\[0\]\.type: must be one of"),
        ({"links": [{"type": "at_most", "smaller": "age"}]}, r"links\[0\]: 'larger' is missing"),
        (
            {"links": [{"type": "linear", "coef": {"age": 1}, "at_most": 3}]},
            r"links\[0\]\.coef: must hold at least 2, not",
        ),
        (
            {"derived": [{"type": "sum"}]},
            r"derived\[0\]\.type: must be one of 'ratio', 'product', not 'sum'",
        ),
        ({"derived": [{"type": "ratio", "of": "a"}]}, r"derived\[0\]: 'feature', 'to' are missing"),
        (
            {"derived": [{"type": "product", "feature": "age", "of": ["age", "age"]}]},
            r"of\[0\] = 'age' and feature = 'age': use three different",
        ),
        ({"holdfast_actions": 2}, r"holdfast_actions: must be 1, not 2"),
        ({"max_changes": 0}, r"max_changes: must be at least 1, not 0"),
        ({"more": 1}, r"the file: unknown name 'more'; known: holdfast_actions, max_changes"),
        # what the schema cannot say is said by the features themselves
        ({"features__age__lower": 90}, r"age: lower = 90 is above upper = 80"),
        ({"features__home__allowed": ["boat"]}, r"home: allowed names the level 'boat'"),
        (
            {"features__home__moves": [{"from": "own", "to": []}, {"from": "own", "to": ["rent"]}]},
            r"home: moves has the same level in 'from' twice",
        ),
        (
            {"links": [{"type": "at_most", "smaller": "age", "larger": "agee"}]},
            r"feature 'agee' is not known; did you mean 'age'",
        ),
    ],
)
@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_what_is_wrong_in_a_file_has_its_place(tmp_path, suffix, changes, message):
    path = tmp_path / f"wrong{suffix}"
    content = change(**changes)
    path.write_text(json.dumps(content) if suffix == ".json" else yaml.safe_dump(content))
    with pytest.raises(ValueError, match=message) as error:
        ActionSet.load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "is not valid JSON: Expecting"),
        ("a.json", '{"features": {"a": 1, "a": 2}}', "'a' appears twice"),
        ("a.json", "[]", "not a valid action set: it is a list, but it must hold names"),
        ("a.yaml", "a: [", "is not valid YAML"),
        ("a.yaml", "features:\n  a: 1\n  a: 2\n", "'a' appears twice"),
        ("a.yaml", "x: &x [*x]", r"line 1: the alias \*x is not allowed; write out"),
        ("a.yaml", "", "not a valid action set: it is empty"),
        ("a.yaml", "just a text", "not a valid action set: it is a str"),
        ("a.yaml", "? [a, b]\n: 1", "found unhashable key"),
        ("a.yaml", "? {a: b}\n: 1", "found unhashable key"),
        ("a.yaml", "1: 2", "the name 1 is not a string"),
        ("a.yaml", "a: " + "[" * 40 + "]" * 40, "nested more than 16 levels deep"),
        ("a.yaml", "[" * 100_000, "nested more than 16 levels deep"),
        ("a.yaml", "".join(" " * k + "a:\n" for k in range(500)), "nested more than 16"),
        ("a.yaml", "a: " + "1" * 5000, "integer string conversion"),
        ("a.json", "[" * 100_000, "nested more than 16 levels deep"),
        ("a.json", '{"a":' * 100_000, "nested more than 16 levels deep"),
        (
            "a.json",
            '{"features": "' + "[" * 50 + '"}',
            "not a valid action set",
        ),  # no nesting at all
        ("a.json", '{"a": ' + "1" * 5000 + "}", "integer string conversion"),
        ("a.yaml", "a: " + "x" * 1_000_000, "larger than 1,000,000 bytes"),
        ("a.json", '"' + "x" * 1_000_000 + '"', "larger than 1,000,000 bytes"),
        ("a.yaml", b"a: \xff\xfe", "is not UTF-8 text: see byte 3"),
        ("a.yaml", "features: {1: {type: number}}", "the name 1 is not a string; put it in quotes"),
        ("a.yaml", "!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a.yaml", "holdfast_actions: 1\nfeatures: {a: {type: number, lower: .inf}}", "a: lower"),
        ("a.txt", "", r"does not end in one of \.yaml, \.yml, \.json"),
    ],
)
def test_files_that_are_none(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as error:
        ActionSet.load(path)
    assert str(path) in str(error.value)


def test_a_few_lines_cannot_stand_for_billions(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for k in range(1, 10):
        lines.append(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]")
    path = tmp_path / "laughs.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 2: the alias \*a0 is not allowed"):
        ActionSet.load(path)


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(ValueError, match=r"folder\.yaml is not a file"):
        ActionSet.load(tmp_path / "folder.yaml")
    with pytest.raises(FileNotFoundError, match=r"none\.json cannot be read: No such file"):
        ActionSet.load(tmp_path / "none.json")


def test_what_is_saved_has_no_aliases(tmp_path):
    levels = ["a", "b"]
    same = CategoryFeature(
        "x", levels, order=levels, allowed=levels, moves=dict.fromkeys(levels, levels)
    )
    actions = ActionSet([same, CategoryFeature("y", same.levels, order=same.order)])
    actions.save(tmp_path / "same.yaml")
    assert ActionSet.load(tmp_path / "same.yaml") == actions


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "set.json"
    old, new = ActionSet([NumberFeature("old")]), ActionSet([NumberFeature("new")])
    old.save(path)

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        new.save(path)
    monkeypatch.undo()
    assert ActionSet.load(path) == old
    assert os.listdir(tmp_path) == ["set.json"]
    with pytest.raises(ValueError, match="does not end in one of"):
        new.save(tmp_path / "set.txt")
    new.save(path)
    assert ActionSet.load(path) == new
