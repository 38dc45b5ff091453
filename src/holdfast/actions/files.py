"""Action sets in files: YAML or JSON, checked against the schema that ships with the package."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.actions.action_set import ActionSet
from holdfast.actions.plain import from_plain, to_plain
from holdfast.machinery.numbers import refuse
from holdfast.machinery.plain_files import (
    FileKind,
    check_schema,
    load_plain,
    naming,
    suffix_of,
    to_yaml,
    write_text,
)

ACTION_SET = FileKind("an action set")


def save(actions: ActionSet, path: str | Path) -> None:
    """Write an action set; see `ActionSet.save`."""
    path = _path(path)
    suffix = suffix_of(path, ACTION_SET)
    actions.validate()
    content = to_plain(actions)
    text = json.dumps(content, indent=2) + "\n" if suffix == ".json" else to_yaml(content)
    write_text(path, text)


def load(path: str | Path) -> ActionSet:
    """Read an action set; see `ActionSet.load`."""
    path = _path(path)
    content = load_plain(path, ACTION_SET)
    text = resources.files("holdfast.actions").joinpath("schema.json").read_text("utf-8")
    with naming(path):
        _check_names(content)
        check_schema(content, json.loads(text), ACTION_SET)
        return from_plain(content)


def _path(path: Any) -> Path:
    if not isinstance(path, (str, Path)):
        refuse("path", path, "the path of a file")
    return Path(path)


def _check_names(content: Any) -> None:
    features = content.get("features") if isinstance(content, dict) else None
    for key in features if isinstance(features, dict) else ():
        if not isinstance(key, str):
            raise ValueError(f"features: the name {key!r} is not a string; put it in quotes")
