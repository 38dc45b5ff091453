"""A linear model as a JSON file of its coefficients.

A file of this kind is::

    {
      "holdfast_model": 1,
      "classes": ["bad", "good"],
      "favorable_class": "good",
      "intercept": 0.4,
      "columns": [
        {"name": "duration", "coefficient": -0.3, "mean": 20.9, "scale": 12.1},
        {"name": "amount", "coefficient": -0.0001},
        {"name": "housing", "levels": {"own": 0.2, "rent": -0.1}},
        {"name": "rooms", "levels": [{"level": 1, "coefficient": 0.0},
                                     {"level": 2, "coefficient": 0.3}]}
      ]
    }

The score is the sum of the intercept and of what each column adds. A number adds ``coefficient *
(value - mean) / scale``; ``mean`` is 0 and ``scale`` 1 where they are left out. A category adds the
coefficient of the person's level. The score is the log-odds of the second of the `classes`. Levels
that are texts may be the names of an object; numbers and booleans stand in a list, because names
in JSON are always texts. Whoever has a level that is not listed cannot be judged. `favorable_class`
may be left out; then it has to be said with the file.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from holdfast.files.linear_models import LevelTerm, NumberTerm, pipeline_of
from holdfast.machinery.plain_files import FileKind, check_schema, parse_json
from holdfast.models.classes import UNSAID

_KIND = FileKind("a model", (".json",), most_bytes=10_000_000)
_LEVEL = {"type": ["string", "number", "boolean"]}
_LABEL = {"type": ["string", "integer", "boolean"]}
_NUMBER = {
    "required": ["name", "coefficient"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "coefficient": {"type": "number"},
        "mean": {"type": "number"},
        "scale": {"type": "number", "exclusiveMinimum": 0},
    },
}
_LEVELS = {
    "required": ["name", "levels"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "levels": {
            "type": ["object", "array"],
            "minProperties": 1,
            "minItems": 1,
            "additionalProperties": {"type": "number"},
            "items": {
                "type": "object",
                "required": ["level", "coefficient"],
                "additionalProperties": False,
                "properties": {"level": _LEVEL, "coefficient": {"type": "number"}},
            },
        },
    },
}
_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Coefficients of a linear model",
    "type": "object",
    "required": ["holdfast_model", "classes", "intercept", "columns"],
    "additionalProperties": False,
    "properties": {
        "holdfast_model": {"const": 1, "description": "Version of this format."},
        "classes": {"type": "array", "minItems": 2, "maxItems": 2, "items": _LABEL},
        "favorable_class": _LABEL,
        "intercept": {"type": "number"},
        "columns": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "if": {"required": ["levels"]},
                "then": _LEVELS,
                "else": _NUMBER,
            },
        },
    },
}


def model_from_json(raw: bytes) -> tuple[Any, Any]:
    """Return the model in the bytes of a JSON file, and the favourable class, or `UNSAID`.

    Examples
    --------
    >>> text = b'{"holdfast_model": 1, "classes": [0, 1], "favorable_class": 0, ' \
b'"intercept": 0.5, "columns": [{"name": "months", "coefficient": 0.25}]}'
    >>> model, favorable_class = model_from_json(text)
    >>> import pandas as pd
    >>> model.decision_function(pd.DataFrame({"months": [6]})), favorable_class
    (array([2.]), 0)
    """
    if len(raw) > _KIND.most_bytes:
        raise ValueError(
            f"larger than {_KIND.most_bytes:,} bytes, which is too large for {_KIND.name}"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"this is not UTF-8 text: see byte {error.start}") from None
    content = parse_json(text, _KIND)
    check_schema(content, _SCHEMA, _KIND)
    classes = [_whole(label) for label in content["classes"]]
    _check_alike("classes", classes)
    names = Counter(column["name"] for column in content["columns"])
    for name, count in names.items():
        if count > 1:
            raise ValueError(f"columns: {name!r} appears {count} times")
    terms = [_term(k, column) for k, column in enumerate(content["columns"])]
    intercept = _finite("intercept", content["intercept"])
    return pipeline_of(terms, classes, intercept), _whole(content.get("favorable_class", UNSAID))


def _term(k: int, column: dict[str, Any]) -> NumberTerm | LevelTerm:
    place, name = f"columns[{k}] ({column['name']})", column["name"]
    if "levels" not in column:
        numbers = {key: _finite(f"{place}.{key}", column[key]) for key in column if key != "name"}
        return NumberTerm(name, **numbers)
    levels = column["levels"]
    if isinstance(levels, dict):
        pairs = list(levels.items())
    else:
        pairs = [(each["level"], each["coefficient"]) for each in levels]
        _check_alike(f"{place}.levels", [level for level, _ in pairs])
    values = tuple(_finite(f"{place}.levels[{level!r}]", value) for level, value in pairs)
    return LevelTerm(name, tuple(level for level, _ in pairs), values)


def _whole(label: Any) -> Any:
    """Return 1 for 1.0, which is the same number in JSON."""
    return int(label) if isinstance(label, float) else label


def _check_alike(place: str, labels: list[Any]) -> None:
    """Refuse labels that are not all texts, all numbers or all booleans, or not all different."""
    kinds = {str if isinstance(k, str) else bool if isinstance(k, bool) else float for k in labels}
    if len(kinds) > 1:
        raise ValueError(f"{place}: strings, numbers and booleans cannot be mixed")
    for label in labels:
        if kinds == {float}:
            _finite(place, label)
    if len(set(labels)) < len(labels):
        raise ValueError(f"{place}: all values must be different")


def _finite(place: str, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{place} is not a finite number")
    return number
