"""Action sets in files: YAML or JSON, checked against the schema that ships with the package."""

from __future__ import annotations

import json
import os
import uuid
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast._numbers import refuse
from holdfast.actions.action_set import ActionSet
from holdfast.actions.plain import from_plain, to_plain

SUFFIXES = (".yaml", ".yml", ".json")


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
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def load(path: str | Path) -> ActionSet:
    """Read an action set; see `ActionSet.load`."""
    path = _path(path)
    suffix = _suffix(path)
    text = path.read_text(encoding="utf-8")
    content = _parse_json(path, text) if suffix == ".json" else _parse_yaml(path, text)
    _check_schema(path, content)
    try:
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


def _parse_json(path: Path, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_twice(path, [key for key, _ in pairs])
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON: {error}") from None


def _parse_yaml(path: Path, text: str) -> Any:
    import yaml

    try:
        _refuse_repeated_keys(path, yaml.compose(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is no YAML that is understood: {error}") from None


def _refuse_repeated_keys(path: Path, root: Any) -> None:
    """YAML's reader keeps the last of two equal keys in silence."""
    import yaml

    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias may point back to what holds it
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _refuse_twice(path, [key.value for key, _ in node.value if key.tag.endswith(":str")])
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _refuse_twice(path: Path, keys: list[str]) -> None:
    twice = [key for key in keys if keys.count(key) > 1]
    if twice:
        raise ValueError(f"{path}: {twice[0]!r} is there twice")


def _check_schema(path: Path, content: Any) -> None:
    import jsonschema

    features = content.get("features") if isinstance(content, dict) else None
    for key in features if isinstance(features, dict) else ():
        if not isinstance(key, str):
            raise ValueError(f"{path}: features: the name {key!r} is no text; put it into quotes")
    text = resources.files("holdfast.actions").joinpath("schema.json").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(text))
    errors = sorted(validator.iter_errors(content), key=lambda error: list(map(str, error.path)))
    if errors:
        places = [f"  {_place(error.absolute_path)}: {error.message}" for error in errors[:10]]
        more = [f"  and {len(errors) - 10} more"] if len(errors) > 10 else []
        raise ValueError("\n".join([f"{path} is no action set:", *places, *more]))


def _place(steps: Any) -> str:
    place = ""
    for step in steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    return place or "the file"
