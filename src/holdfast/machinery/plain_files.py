"""Files of plain text: read with limits, checked against a schema, written whole or not at all."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.machinery.numbers import shown
from holdfast.machinery.settings import closest

# A file that is meant to do harm is larger, or deeper, than any that is meant to be read.
MOST_BYTES = 1_000_000
MOST_YAML_BYTES = 5_000_000  # YAML takes hundreds of bytes of memory for each number
MOST_LEVELS = 16
_CHUNK = 1 << 20


class FileKind(NamedTuple):
    """What a file should be, for messages, and the limits on it."""

    name: str  # with its article: "an action set"
    suffixes: tuple[str, ...] = (".yaml", ".yml", ".json")
    most_bytes: int = MOST_BYTES
    most_levels: int = MOST_LEVELS

    def refuse_large(self, path: Path, size: int) -> None:
        """Refuse a file that is too large, to be read or to be read again."""
        is_yaml = path.suffix.lower() in (".yaml", ".yml")
        most = min(self.most_bytes, MOST_YAML_BYTES) if is_yaml else self.most_bytes
        if size > most:
            more = "" if most == self.most_bytes else " in YAML; use a .json file"
            raise ValueError(
                f"{path} is larger than {most:,} bytes, which is too large for {self.name}{more}"
            )

    @property
    def noun(self) -> str:
        """The name without its article."""
        return self.name.split(" ", 1)[1]


def suffix_of(path: Path, kind: FileKind) -> str:
    """Return the ending of a path, or refuse it."""
    suffix = path.suffix.lower()
    if suffix not in kind.suffixes:
        raise ValueError(f"path = {path} does not end in one of {', '.join(kind.suffixes)}")
    return suffix


def load_plain(path: Path, kind: FileKind) -> Any:
    """Read a YAML or JSON file that is none too large, too deep, or ambiguous."""
    suffix = suffix_of(path, kind)
    text = read_text(path, kind)
    with naming(path):
        return parse_json(text, kind) if suffix == ".json" else _parse_yaml(text, kind)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say in which file it is that something is wrong."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_text(path: Path, kind: FileKind) -> str:
    """Return the text of a file that is none too large."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file")
    try:
        with open(path, "rb") as file:
            raw = file.read(kind.most_bytes + 1)
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}") from None
    kind.refuse_large(path, len(raw))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: see byte {error.start}") from None


def parse_json(text: str, kind: FileKind) -> Any:
    """Read JSON; names that are there twice, and endless depth, are refused."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_twice([key for key, _ in pairs])
        return dict(pairs)

    depth = 0
    for token in _JSON_TOKENS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        _refuse_deep(depth, kind)
    try:
        return json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not valid JSON: {error}") from None


# Texts, so that no bracket inside one counts, and brackets; one that never ends goes on to the end.
_JSON_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


def _parse_yaml(text: str, kind: FileKind) -> Any:
    import yaml

    try:
        _refuse_aliases(text, kind)
        loader = _yaml_loader()(text)
        try:
            root = loader.get_single_node()
            _refuse_repeated_keys(root)
            return None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ValueError(f"this is not valid YAML: {error}") from None


@functools.cache
def _yaml_loader() -> Any:
    """Return a safe loader, in C where there is one, that knows no numbers to the base of 60.

    YAML 1.1 takes 1:1:1 for 3661, which nobody means; here it is a text.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers = {  # noqa: RUF012
            first: [(tag, _without_sixties(tag, pattern)) for tag, pattern in resolvers]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    return Loader


def to_yaml(content: Any, **how: Any) -> str:
    """Write plain content as YAML that reads back as the same; `how` as in ``yaml.dump``.

    Examples
    --------
    >>> to_yaml({"Größe": [1, "1"]}, default_flow_style=True)
    "{Größe: [1, '1']}\\n"
    """
    import yaml

    text: str = yaml.dump(content, Dumper=_yaml_dumper(), **_AS_IT_IS | how)
    return text


_AS_IT_IS: dict[str, Any] = {"sort_keys": False, "allow_unicode": True}


@functools.cache
def _yaml_dumper() -> Any:
    """Return what writes YAML; PyYAML's own leaves a "next line" in a text, and reads a blank."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True  # what is read back has none

    def write(dumper: Any, text: str) -> Any:
        style = '"' if "\x85" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, write)
    return Dumper


def _without_sixties(tag: str, pattern: re.Pattern[str]) -> re.Pattern[str]:
    if tag.rpartition(":")[2] not in ("int", "float"):
        return pattern
    return re.compile(rf"(?!.*:)(?:{pattern.pattern})", pattern.flags)


def _refuse_aliases(text: str, kind: FileKind) -> None:
    """Refuse aliases, with which a few lines can stand for billions, and what is too deep.

    Events are read one after another: nothing is built from them, whatever they describe.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=_yaml_loader()):
        if isinstance(event, yaml.AliasEvent):
            place = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise ValueError(
                f"{place}the alias *{event.anchor} is not allowed; write out what it stands for"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        _refuse_deep(depth, kind)


def _refuse_deep(depth: int, kind: FileKind) -> None:
    if depth > kind.most_levels:
        raise ValueError(
            f"this is nested more than {kind.most_levels} levels deep, too deep for {kind.name}"
        )


def _refuse_repeated_keys(root: Any) -> None:
    """Refuse names that are there twice: YAML's reader keeps the last of them in silence.

    So it does with what is merged in by "<<".
    """
    import yaml

    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            if any(key.tag.endswith(":merge") for key, _ in node.value):
                raise ValueError("the merge key << is not allowed; write out what it stands for")
            _refuse_twice([key.value for key, _ in node.value if key.tag.endswith(":str")])
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _refuse_twice(keys: list[str]) -> None:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{key!r} appears twice")
        seen.add(key)


def check_schema(content: Any, schema: dict[str, Any], kind: FileKind) -> None:
    """Refuse what does not fit a JSON schema; all that is wrong is listed."""
    import jsonschema

    if not isinstance(content, dict):
        what = "empty" if content is None else f"a {type(content).__name__}"
        raise ValueError(
            f"this is not a valid {kind.noun}: it is {what}, but it must hold names with their "
            "values"
        )
    for key in content:
        if not isinstance(key, str):
            raise ValueError(f"the name {key!r} is not a string")
    validator = jsonschema.Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(content), key=lambda error: list(map(str, error.path)))
    if errors:
        found = dict.fromkeys(f"  {_place(each.absolute_path)}: {_wrong(each)}" for each in errors)
        places = list(found)[:_MOST_ERRORS]
        rest = len(found) - len(places)
        more = [f"  and {rest} more"] if rest else []
        raise ValueError("\n".join([f"this is not a valid {kind.noun}:", *places, *more]))


_MOST_ERRORS = 10
_MOST_NAMES = 12

_TYPES = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "text",
    "array": "a list",
    "object": "names with their values",
    "null": "null",
}


def _wrong(error: Any) -> str:
    """Say in plain words what an error of a JSON schema says."""
    rule, value, limit = error.validator, error.instance, error.validator_value
    if rule == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        return "; ".join(_unknown(name, known) for name in value if name not in known)
    if rule == "required":
        missing = [repr(name) for name in limit if name not in value]
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if rule == "anyOf":
        return "; or ".join(_wrong(each) for each in error.context)
    allowed = _allowed(rule, limit)
    return f"must {allowed}, not {_in_file(value)}" if allowed else str(error.message)


def _allowed(rule: str, limit: Any) -> str:
    """Say what a rule allows; nothing where there are no words for it."""
    if rule == "type":
        kinds = [limit] if isinstance(limit, str) else limit
        return f"be {' or '.join(_TYPES[kind] for kind in kinds)}"
    if rule == "enum":
        return f"be one of {', '.join(map(repr, limit))}"
    words = {
        "const": "be {}",
        "minimum": "be at least {}",
        "exclusiveMinimum": "be above {}",
        "minItems": "hold at least {}",
        "maxItems": "hold at most {}",
        "minProperties": "hold at least {}",
    }
    return words[rule].format(_in_file(limit)) if rule in words else ""


def _unknown(name: str, known: list[str]) -> str:
    close = closest(name, known)
    rest = ", ..." if len(known) > _MOST_NAMES else ""
    hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known[:_MOST_NAMES])}{rest}"
    return f"unknown name {name!r}; {hint}"


def _in_file(value: Any) -> str:
    """Show a value as it stands in a file."""
    return json.dumps(value) if value is None or isinstance(value, bool) else shown(value)


def _place(steps: Any) -> str:
    place = ""
    for step in steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    return place or "the file"


def refuse_input_as_output(out: Path, *inputs: Path | None) -> None:
    """Refuse to write to a file that is read, or into a directory whose files are read.

    Parameters
    ----------
    out : Path
        What would be written.
    *inputs : Path or None
        What is read; None stands for what was not given.

    Examples
    --------
    >>> refuse_input_as_output(Path("report.html"), Path("recourse.parquet"), None)
    >>> refuse_input_as_output(Path("recourse.parquet"), Path("./recourse.parquet"))
    Traceback (most recent call last):
    ValueError: out = recourse.parquet would overwrite an input: choose another file
    """
    place = out.resolve()
    for path in inputs:
        if path is None:
            continue
        read = path.resolve()
        # a disk may hold a file under names that differ in case alone
        if place == read or (out.exists() and path.exists() and out.samefile(path)):
            raise ValueError(f"out = {out} would overwrite an input: choose another file")
        if path.is_dir() and read in place.parents:
            raise ValueError(
                f"out = {out} is inside {path}, whose files are read: choose another directory"
            )


@contextlib.contextmanager
def replacing(path: Path, drafts: Path | None = None) -> Iterator[Path]:
    """Give a temporary path; what is written there takes the place of the file at the end.

    Whoever reads meanwhile sees the old file or the new one, never a part; so does who starts the
    machine again after a power cut. A draft lies beside the file, or in a directory for drafts,
    where what a killed process leaves can be found.
    """
    draft = (drafts or path.parent) / f".{path.name}.{uuid.uuid4().hex}"
    try:
        yield draft
        _flush(draft)
        os.replace(draft, path)
        _flush(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        why = f"path = {str(path)!r} cannot be written: {error.strerror or error}"
        raise OSError(error.errno, why) from None  # a full disk is told apart by its number
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _flush(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str, drafts: Path | None = None) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path, drafts) as draft:
        draft.write_text(text, encoding="utf-8")


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}") from None
    return digest.hexdigest()
