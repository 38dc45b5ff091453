"""Linear models in ONNX files, as a pipeline of the same coefficients.

The graph is read op by op, and whatever is more than linear is refused by name. What was read is
then compared with what the graph itself gives, in single precision, on points of its own.

Each input of one column is a column of the table, by its name. The columns of a graph with a single
input of several columns are called x0, x1, ...; they get the names of the table by an entry
``holdfast_columns`` of the file's metadata, a JSON list: ``onnx.helper.set_model_props(model,
{"holdfast_columns": '["age", "amount"]'})``. A file that does not name its classes has 0 and 1.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.files.linear_models import LevelTerm, NumberTerm, pipeline_of
from holdfast.files.onnx_graph import (
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    WHOLE,
    IsLevel,
    LinearGraph,
    RawColumn,
    Scaled,
    follow_graph,
)
from holdfast.machinery.extras import need
from holdfast.machinery.numbers import Floats
from holdfast.models.classes import UNSAID

_NAMES = "holdfast_columns"
_POINTS = 64
_SINGLE = 2.0**-17  # what single precision may lose in a sum of so many terms, of their size


def model_from_onnx(raw: bytes) -> tuple[Any, Any]:
    """Return the model in the bytes of an ONNX file; it never says which class is favourable."""
    need("onnx", "an ONNX file", "onnx")
    try:
        return _read(raw), UNSAID
    except ValueError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes the parser stumble over
        why = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"this ONNX file cannot be read: {why}") from None


def _read(raw: bytes) -> Any:
    import onnx

    model = onnx.load_model_from_string(raw)
    graph = follow_graph(model, _names(model))
    terms = _terms(graph)
    pipeline = pipeline_of(terms, graph.classes, graph.intercept)
    _compare(model, graph, pipeline)
    return pipeline


def _names(model: Any) -> list[str] | None:
    found = [each.value for each in model.metadata_props if each.key == _NAMES]
    if not found:
        return None
    try:
        names = json.loads(found[0])
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"its metadata {_NAMES} is not a JSON list of names")
    if len(set(names)) < len(names):
        raise ValueError(f"its metadata {_NAMES} has the same name twice")
    return names


def _terms(graph: LinearGraph) -> list[NumberTerm | LevelTerm]:
    """Return what each raw column adds, in the order of the inputs."""
    if not (np.isfinite(graph.coef).all() and np.isfinite(graph.intercept)):
        raise ValueError("its coefficients are not all finite")
    read: dict[int, list[tuple[Any, float]]] = {}
    for column, coefficient in zip(graph.columns, graph.coef.tolist(), strict=True):
        read.setdefault(column.raw, []).append((column, coefficient))
    if not read:
        raise ValueError("its classifier reads no columns")
    return [_term(graph.raw[k], read[k]) for k in sorted(read)]


def _term(raw: RawColumn, read: list[tuple[Any, float]]) -> NumberTerm | LevelTerm:
    first = read[0][0]
    if isinstance(first, Scaled):
        if len(read) > 1:
            raise ValueError(f"the classifier reads the column {raw.name!r} more than once")
        if first.factor == 0.0:
            raise ValueError(f"the column {raw.name!r} is multiplied by 0")
        # what is divided by a negative number is the same with both signs turned
        sign = 1.0 if first.factor > 0.0 else -1.0
        scale = 1.0 / abs(first.factor)
        return NumberTerm(raw.name, sign * read[0][1], -first.offset / first.factor, scale)
    coefficients = dict.fromkeys(first.levels, 0.0)
    same = {id(first.levels)}  # the columns of one encoder share their levels
    for column, coefficient in read:
        if not isinstance(column, IsLevel) or (
            id(column.levels) not in same and column.levels != first.levels
        ):
            raise ValueError(f"the classifier reads the column {raw.name!r} in two ways")
        same.add(id(column.levels))
        coefficients[column.level] += coefficient
    values = tuple(coefficients.values())
    return LevelTerm(raw.name, first.levels, values, takes_unknown=first.takes_unknown)


def _compare(model: Any, graph: LinearGraph, pipeline: Any) -> None:
    """Refuse what was not understood, although every op of it was known."""
    import pandas as pd

    people = _made_up(graph)
    given = _evaluate(model, graph, people)
    table = pd.DataFrame({raw.name: people[k] for k, raw in enumerate(graph.raw)})
    position = list(pipeline.classes_).index(graph.classes[1])
    read = pipeline.predict_proba(table[list(pipeline.feature_names_in_)])[:, position]
    room = _SINGLE * (1.0 + _size(graph, people))
    if not (np.abs(given - read) <= room).all():
        worst = float(np.abs(given - read).max())
        raise ValueError(
            "the model read from it gives different probabilities from the graph itself, by up "
            f"to {worst:.2g}, so it cannot be used"
        )


def _made_up(graph: LinearGraph) -> list[Any]:
    """Return values for each raw column, around where the graph expects them."""
    rng = np.random.default_rng(0)
    people: list[Any] = []
    read = {column.raw: column for column in reversed(graph.columns)}
    for k, raw in enumerate(graph.raw):
        first = read.get(k, Scaled(k))
        if isinstance(first, IsLevel):
            levels = np.array(first.levels, dtype=object)
            people.append(levels[rng.integers(len(levels), size=_POINTS)])
        elif raw.kind == STRING:
            people.append(np.array(["?"] * _POINTS, dtype=object))
        else:
            factor, offset = (first.factor, first.offset) if isinstance(first, Scaled) else (1, 0)
            values = (rng.normal(scale=2.0, size=_POINTS) - offset) / factor
            whole = raw.kind in WHOLE
            people.append(np.round(values) if whole else values.astype(np.float32).astype(float))
    return people


def _size(graph: LinearGraph, people: list[Any]) -> Floats:
    """Return how large the terms of each sum are, on the way to it."""
    total = np.full(_POINTS, abs(graph.intercept))
    for column, coefficient in zip(graph.columns, graph.coef, strict=True):
        if isinstance(column, Scaled):
            values = np.asarray(people[column.raw], dtype=np.float64)
            total += np.abs(coefficient * column.factor * values)
            total += abs(coefficient * column.offset)
        else:
            total += abs(coefficient)
    return total


def _evaluate(model: Any, graph: LinearGraph, people: list[Any]) -> Floats:
    """Return the probabilities of the second class that the graph itself gives."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    last = next(k for k, n in enumerate(cut.graph.node) if graph.chances in n.output)
    del cut.graph.node[last + 1 :]
    del cut.graph.output[:]
    cut.graph.output.append(
        onnx.helper.make_tensor_value_info(graph.chances, onnx.TensorProto.FLOAT, None)
    )
    kinds = {
        FLOAT: np.float32,
        DOUBLE: np.float64,
        INT32: np.int32,
        INT64: np.int64,
        STRING: object,
    }
    sources: dict[str, list[Any]] = {}
    for raw, values in zip(graph.raw, people, strict=True):
        kind: Any = kinds[raw.kind]
        sources.setdefault(raw.source, []).append(np.asarray(values).astype(kind))
    inputs = {name: np.column_stack(columns) for name, columns in sources.items()}
    (chances,) = ReferenceEvaluator(cut).run(None, inputs)
    table = np.asarray(chances, dtype=np.float64).reshape(_POINTS, -1)
    return np.asarray(table[:, -1])
