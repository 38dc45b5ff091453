"""Action sets in files: YAML or JSON, checked against the schema that ships with the package."""

from __future__ import annotations

import json
import os
import re
import uuid
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.actions.action_set import ActionSet
from holdfast.actions.plain import from_plain, to_plain
from holdfast.machinery.numbers import refuse

SUFFIXES = (".yaml", ".yml", ".json")
# Thousands of features fit into these; a file that is meant to do harm does not.
MOST_BYTES = 1_000_000
MOST_LEVELS = 16


def save(actions: ActionSet, path: str | Path) -> None:
    """Write an action set; see `ActionSet.save`."""
    path = _path(path)
    suffix = _suffix(path)
    actions.validate()
    content = to_plain(actions)
    if suffix == ".json":
        text = json.dumps(content, indent=2) + "\n"
    else:
        import yaml

        text = yaml.safe_dump(content, sort_keys=False)
    # whoever reads meanwhile sees the old file or the new one, never a part
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        why = error.strerror or error
        raise type(error)(f"path = {str(path)!r} cannot be written: {why}") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def load(path: str | Path) -> ActionSet:
    """Read an action set; see `ActionSet.load`."""
    path = _path(path)
    suffix = _suffix(path)
    text = _read(path)
    try:
        content = _parse_json(text) if suffix == ".json" else _parse_yaml(text)
        _check_schema(content)
        return from_plain(content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _path(path: Any) -> Path:
    if not isinstance(path, (str, Path)):
        refuse("path", path, "the path of a file")
    return Path(path)


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"path = {path} does not end in one of {', '.join(SUFFIXES)}")
    return suffix


def _read(path: Path) -> str:
    """Return the text of a file that is none too large."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES:,} bytes: too large for an action set")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text in UTF-8: see byte {error.start}") from None


def _parse_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_twice([key for key, _ in pairs])
        return dict(pairs)

    depth = 0
    for token in _JSON_TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        _refuse_deep(depth)
    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not valid JSON: {error}") from None


# Texts, so that no bracket inside one counts, and brackets; one that never ends goes on to the end.
_JSON_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def _parse_yaml(text: str) -> Any:
    import yaml

    try:
        _refuse_aliases(text)
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"this is not YAML that can be read: {error}") from None


def _refuse_aliases(text: str) -> None:
    """Refuse aliases, with which a few lines can stand for billions, and what is too deep.

    Events are read one after another: nothing is built from them, whatever they describe.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            place = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise ValueError(
                f"{place}the alias *{event.anchor} is not allowed; write out what it stands for"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        _refuse_deep(depth)


def _refuse_deep(depth: int) -> None:
    if depth > MOST_LEVELS:
        raise ValueError(
            f"this is nested more than {MOST_LEVELS} levels deep, too deep for an action set"
        )


def _refuse_repeated_keys(root: Any) -> None:
    """YAML's reader keeps the last of two equal keys in silence."""
    import yaml

    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            _refuse_twice([key.value for key, _ in node.value if key.tag.endswith(":str")])
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _refuse_twice(keys: list[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{key!r} is there twice")
        seen.add(key)


def _check_schema(content: Any) -> None:
    import jsonschema

    if not isinstance(content, dict):
        kind = "nothing" if content is None else f"a {type(content).__name__}"
        raise ValueError(f"no action set, but {kind}; it must hold names with their values")
    for key in content:
        if not isinstance(key, str):
            raise ValueError(f"the name {key!r} is not a text")
    features = content.get("features")
    for key in features if isinstance(features, dict) else ():
        if not isinstance(key, str):
            raise ValueError(f"features: the name {key!r} is not a text; put it into quotes")
    text = resources.files("holdfast.actions").joinpath("schema.json").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(text))
    errors = sorted(validator.iter_errors(content), key=lambda error: list(map(str, error.path)))
    if errors:
        places = [f"  {_place(error.absolute_path)}: {error.message}" for error in errors[:10]]
        more = [f"  and {len(errors) - 10} more"] if len(errors) > 10 else []
        raise ValueError("\n".join(["no action set:", *places, *more]))


def _place(steps: Any) -> str:
    place = ""
    for step in steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    return place or "the file"
