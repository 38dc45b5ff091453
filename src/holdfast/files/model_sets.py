"""Sets of models as short texts, such as "p=1,radius=0.1", and in YAML or JSON files.

A file holds one of::

    holdfast_model_set: 1
    type: ball          # models whose coefficients lie within a distance of today's
    p: 1                # from 1 to inf
    radius: 0.1
    scale: [1.0, 0.5]   # optional: how far each coefficient may move relative to the others
    intercept: true     # optional: whether it may move too; a number is its scale

    type: ellipsoid     # within so many standard deviations of today's
    radius: 1.25
    covariance: [[1.0, 0.2], [0.2, 0.5]]
    intercept: true     # optional: whether the last row and column are the intercept's

    type: list          # today's model and these
    models: [{coef: [0.3, -0.1], intercept: 0.2}]

Coefficients are those of the encoded columns, in the order in which the classifier reads them, for
the favourable class. Large matrices are for JSON: a YAML file may have 5 MB.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from holdfast.machinery.numbers import refuse, shown
from holdfast.machinery.plain_files import (
    FileKind,
    check_schema,
    load_plain,
    naming,
    suffix_of,
    write_text,
)
from holdfast.problem.ball import NormBall
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.model_list import ModelList
from holdfast.problem.model_set import ModelSet

MODEL_SET = FileKind("a model set", most_bytes=50_000_000)
_HOW = "write p=1,radius=0.1 (p from 1 to inf), or give a .yaml or .json file of a set"
_NUMBERS = {"type": "array", "minItems": 1, "items": {"type": "number"}}
_VERSION = {"const": 1, "description": "Version of this format."}
_RADIUS = {"type": "number", "minimum": 0}
_PARTS: dict[str, dict[str, Any]] = {
    "ball": {
        "required": ["p", "radius"],
        "properties": {
            "p": {"anyOf": [{"type": "number", "minimum": 1}, {"const": "inf"}]},
            "radius": _RADIUS,
            "scale": _NUMBERS,
            "intercept": {"type": ["boolean", "number"]},
        },
    },
    "ellipsoid": {
        "required": ["covariance", "radius"],
        "properties": {
            "radius": _RADIUS,
            "covariance": {"type": "array", "minItems": 1, "items": _NUMBERS},
            "intercept": {"type": "boolean"},
        },
    },
    "list": {
        "required": ["models"],
        "properties": {
            "models": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "required": ["coef", "intercept"],
                    "additionalProperties": False,
                    "properties": {"coef": _NUMBERS, "intercept": {"type": "number"}},
                },
            },
        },
    },
}
_HEAD = {
    "type": "object",
    "required": ["holdfast_model_set", "type"],
    "properties": {"holdfast_model_set": _VERSION, "type": {"enum": sorted(_PARTS)}},
}


def read_model_set(text_or_path: str | Path) -> ModelSet:
    """Read a set of models from a short text, or from a .yaml or .json file.

    Examples
    --------
    >>> read_model_set("p=1,radius=0.1")
    NormBall(p=1.0, radius=0.1, scale=None, intercept=True)
    >>> read_model_set("p=inf,radius=0.2,intercept=false")
    NormBall(p=inf, radius=0.2, scale=None, intercept=False)
    >>> read_model_set("radius=0.1")
    Traceback (most recent call last):
        ...
    ValueError: the set of models 'radius=0.1' lacks p; write p=1,radius=0.1 (p from 1 to \
inf), or give a .yaml or .json file of a set
    """
    text = str(text_or_path)
    path = Path(text)
    if path.suffix.lower() in MODEL_SET.suffixes:
        content = load_plain(path, MODEL_SET)
        with naming(path):
            return model_set_from_plain(content)
    if isinstance(text_or_path, Path) or "=" not in text:
        raise ValueError(f"{text!r} is not a set of models; {_HOW}")
    return _ball_of(text)


def save_model_set(models: ModelSet, path: str | Path) -> None:
    """Write a set of models to a .yaml, .yml or .json file; every number survives to the bit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model_set(NormBall(p=2, radius=0.1), folder + "/set.yaml")
    ...     read_model_set(folder + "/set.yaml")
    NormBall(p=2.0, radius=0.1, scale=None, intercept=True)
    """
    path = Path(path)
    suffix = suffix_of(path, MODEL_SET)
    content = model_set_to_plain(models)
    if suffix == ".json":
        write_text(path, json.dumps(content) + "\n")
        return
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(content, Dumper=dumper, sort_keys=False, default_flow_style=None, width=100)
    MODEL_SET.refuse_large(path, len(text.encode()))
    write_text(path, text)


def model_set_to_plain(models: ModelSet) -> dict[str, Any]:
    """Return a set of models as a dict of plain numbers, texts and lists.

    Examples
    --------
    >>> model_set_to_plain(NormBall(p=1, radius=0.1))
    {'holdfast_model_set': 1, 'type': 'ball', 'p': 1.0, 'radius': 0.1, 'intercept': True}
    """
    head: dict[str, Any] = {"holdfast_model_set": 1}
    if isinstance(models, NormBall):
        ball = {"type": "ball", "p": models.p if math.isfinite(models.p) else "inf"}
        scale = {} if models.scale is None else {"scale": [float(k) for k in models.scale]}
        return {
            **head,
            **ball,
            "radius": models.radius,
            **scale,
            "intercept": _plain_scale(models.intercept),
        }
    if isinstance(models, Ellipsoid):
        return {
            **head,
            "type": "ellipsoid",
            "radius": models.radius,
            "intercept": models.intercept,
            "covariance": models.covariance.tolist(),
        }
    if isinstance(models, ModelList):
        pairs = zip(models.coefs.tolist(), models.intercepts.tolist(), strict=True)
        listed = [{"coef": coef, "intercept": intercept} for coef, intercept in pairs]
        return {**head, "type": "list", "models": listed}
    raise TypeError(
        f"{shown(models)} cannot be written to a file; only a NormBall, an Ellipsoid or a "
        "ModelList can"
    )


def model_set_from_plain(content: Any) -> ModelSet:
    """Return the set of models of such a dict, checked.

    Examples
    --------
    >>> model_set_from_plain({"holdfast_model_set": 1, "type": "ball", "p": "inf", "radius": 0.5})
    NormBall(p=inf, radius=0.5, scale=None, intercept=True)
    """
    check_schema(content, _HEAD, MODEL_SET)
    part = _PARTS[content["type"]]
    known = {"holdfast_model_set": _VERSION, "type": True, **part["properties"]}
    schema = {**part, "properties": known, "type": "object", "additionalProperties": False}
    check_schema(content, schema, MODEL_SET)
    given = {key: content[key] for key in content if key in part["properties"]}
    if content["type"] == "ball":
        return NormBall(**{**given, "p": float(given["p"])})
    if content["type"] == "ellipsoid":
        width = len(given["covariance"])
        if any(len(row) != width for row in given["covariance"]):
            raise ValueError(
                f"covariance: it has {width} rows, so every row must have {width} numbers"
            )
        return Ellipsoid(**given)
    return ModelList([(each["coef"], each["intercept"]) for each in given["models"]])


def _plain_scale(intercept: Any) -> Any:
    return bool(intercept) if isinstance(intercept, bool) else float(intercept)


def _ball_of(text: str) -> NormBall:
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in ("p", "radius", "intercept"):
            raise ValueError(f"the set of models {text!r}: {part.strip()!r} cannot be read; {_HOW}")
        if key in given:
            raise ValueError(f"the set of models {text!r} has {key} twice")
        given[key] = value
    for key in ("p", "radius"):
        if key not in given:
            raise ValueError(f"the set of models {text!r} lacks {key}; {_HOW}")
    return NormBall(
        p=_number("p", given["p"]),
        radius=_number("radius", given["radius"]),
        intercept=_flag_or_number(given.get("intercept", "true")),
    )


def _flag_or_number(text: str) -> bool | float:
    known = {"true": True, "false": False}
    found = known.get(text.lower())
    return _number("intercept", text) if found is None else found


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        allowed = "true, false or a number" if key == "intercept" else "a number"
        refuse(key, text, allowed)
