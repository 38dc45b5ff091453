"""Action sets with comments: read as exactly the same set, and every example in them works."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from test_action_files import strange_sets
from test_actions import action_sets

from holdfast.actions import ActionSet, CategoryFeature, NumberFeature
from holdfast.actions.annotated import annotated
from holdfast.datasets import load_german
from holdfast.recommend.reasons import _WORDS


def loaded(text, folder, name="actions.yaml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return ActionSet.load(path)


@settings(max_examples=75, deadline=None)
@given(actions=st.one_of(action_sets(), strange_sets()))
def test_comments_change_nothing(actions, tmp_path_factory):
    assert loaded(annotated(actions), tmp_path_factory.getbasetemp()) == actions


@pytest.fixture(scope="module")
def german():
    data = load_german()
    table = data.features[["duration", "age", "housing", "checking_status"]]
    return ActionSet.from_data(table, protected=["age"], units={"duration": "months"})


def test_every_setting_has_a_comment(german):
    lines = [line for line in annotated(german).splitlines() if line.strip()]
    types = ("    type: number", "    type: category")
    bare = [line for line in lines if "#" not in line and line not in types]
    names = [
        f"  {yaml.safe_dump([name], default_flow_style=True).strip()[1:-1]}:" for name in german
    ]
    assert bare == ["features:", *names]


@pytest.mark.parametrize("feature", [NumberFeature("x"), CategoryFeature("x", ["a", "b"])])
def test_no_setting_is_forgotten(feature):
    """Whoever adds one names it in the schema, in drafts, in the document, and in explanations."""
    settings = set(feature.settings())
    text = resources.files("holdfast.actions").joinpath("schema.json").read_text("utf-8")
    said = json.loads(text)["$defs"]["number" if feature.kind == "number" else "category"]
    assert said["properties"].keys() == settings | {"type"}
    assert said["properties"]["physical"]["items"]["enum"] == list(feature.LIFTABLE)
    (draft,) = re.findall(r"^  x:\n((?:    .*\n)+)", annotated(ActionSet([feature])), re.MULTILINE)
    assert set(re.findall(r"^    (?:# )?(\w+): .* # ", draft, re.MULTILINE)) == settings
    document = (Path(__file__).parents[1] / "docs" / "actions.md").read_text("utf-8")
    assert {name for name in settings if f"`{name}`" not in document} == set()
    assert set(feature.LIFTABLE) <= settings & _WORDS.keys()


def test_every_example_can_be_used(german, tmp_path):
    lines = annotated(german).splitlines()
    tried = set()
    for k, line in enumerate(lines):
        example = re.match(r" *# (\w+): .* # ", line)
        if example is None or "FEATURE" in line:
            continue
        key = example[1]
        changed = list(lines)
        changed[k] = line.replace("# ", "", 1)
        if key in ("direction", "cost_by") and "needs `order`" in line:
            order = next(j for j in range(k, 0, -1) if "# order: " in lines[j])
            changed[order] = lines[order].replace("# ", "", 1)
        if key == "max_changes":
            assert loaded("\n".join(changed), tmp_path).max_changes == 3
        else:
            assert loaded("\n".join(changed), tmp_path) is not None
        tried.add(key)
    assert tried >= {"immutable", "protected", "direction", "moves", "order", "allowed", "step"}
    assert tried >= {"max_increase", "max_decrease", "physical", "provide_cost", "cost_by"}
