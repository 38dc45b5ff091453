"""A graph of ONNX, followed from its inputs to its probabilities, as long as it stays linear.

Each tensor is followed as a list of columns: a raw number times a factor plus an offset, a raw text
or code, or whether a raw value is a certain level. Whatever else a graph may do is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from holdfast.files.linear_models import refuse_many
from holdfast.machinery.numbers import Floats

FLOAT, INT32, INT64, STRING, DOUBLE = 1, 6, 7, 8, 11  # element types of ONNX
_FLOATS, WHOLE = (FLOAT, DOUBLE), (INT32, INT64)
# A few bytes can describe columns without end: what all ops read and make, in all, is counted
# before it is made.
_MOST_MADE = 500_000


class RawColumn(NamedTuple):
    """A column of the people."""

    name: str
    source: str  # the graph's input
    place: int  # its position there
    kind: int  # element type of ONNX


class Scaled(NamedTuple):
    """A raw number, times a factor, plus an offset."""

    raw: int
    factor: float = 1.0
    offset: float = 0.0


class Text(NamedTuple):
    """A raw text, as it came."""

    raw: int


class IsLevel(NamedTuple):
    """1 where a raw value is that level, otherwise 0."""

    raw: int
    level: Any
    levels: tuple[Any, ...]
    takes_unknown: bool


GraphColumn = Scaled | Text | IsLevel


class Scores(NamedTuple):
    """Sums of columns with coefficients: a row of them, and an intercept, for each output."""

    columns: tuple[GraphColumn, ...]
    coef: Floats
    intercept: Floats


@dataclass(eq=False)
class LinearGraph:
    """What was found.

    Attributes
    ----------
    raw : list of RawColumn
    columns : tuple
        What the classifier reads.
    coef, intercept : array, float
        Log-odds of the second class.
    classes : list
    chances : str
        The tensor of probabilities.
    """

    raw: list[RawColumn]
    columns: tuple[GraphColumn, ...] = ()
    coef: Floats = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    classes: list[Any] = field(default_factory=list)
    chances: str = ""


def follow_graph(model: Any, names: Sequence[str] | None) -> LinearGraph:
    """Follow the graph of a parsed model; `names` are those of a single input's columns."""
    walk = _GraphReader(model, names)
    for node in model.graph.node:
        walk.take(node)
    if not walk.found.chances:
        raise ValueError(
            "its graph has no linear-model probabilities: neither a LinearClassifier, nor a "
            "Sigmoid or Softmax of a sum"
        )
    return walk.found


class _GraphReader:
    """The tensors that are known so far."""

    def __init__(self, model: Any, names: Sequence[str] | None) -> None:
        graph = model.graph
        if model.functions or graph.sparse_initializer:
            raise ValueError("its graph has functions or sparse tensors, which are not supported")
        self.constants = {each.name: _array(each) for each in graph.initializer}
        inputs = [each for each in graph.input if each.name not in self.constants]
        raw = _raw_columns(inputs, names)
        self.found = LinearGraph(raw)
        inside: dict[str, list[GraphColumn]] = {}
        for k, column in enumerate(raw):
            start: GraphColumn = Text(k) if column.kind == STRING else Scaled(k)
            inside.setdefault(column.source, []).append(start)
        self.columns = {name: tuple(columns) for name, columns in inside.items()}
        self.count = 0  # of the columns that ops have read or made
        self.scores: dict[str, Scores] = {}
        self.after: set[str] = set()  # what comes out of the classifier

    def take(self, node: Any) -> None:
        """Take one node of the graph."""
        given = [name for name in node.input if name]
        if any(name in self.after for name in given):
            if node.op_type not in _AFTER:
                raise ValueError(f"after the classifier, the op {node.op_type} is not supported")
            self.after |= set(node.output)
            return
        if node.op_type == "Constant":
            self.constants[node.output[0]] = _constant(node)
            return
        reader = _READERS.get(node.op_type)
        if reader is None or node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
            raise ValueError(
                f"the op {node.op_type} is not supported; a linear model is made of "
                f"{', '.join(sorted(_READERS))}"
            )
        if not given or (given[0] not in self.columns and given[0] not in self.scores):
            if given and all(name in self.constants for name in given):
                raise ValueError(f"the op {node.op_type} uses constants only")
            raise ValueError(f"the op {node.op_type} reads {given[:1]}, which is not known")
        self.expect(sum(len(self.columns.get(name, ())) for name in given))
        reader(self, node, _attributes(node))

    def expect(self, count: int) -> None:
        """Count columns before an op reads or makes them, and refuse too many."""
        self.count += count
        if self.count > _MOST_MADE:
            raise ValueError(f"its ops read and make more than {_MOST_MADE:,} columns in total")

    def constant(self, node: Any, k: int) -> Any:
        """Return a constant that a node reads."""
        if len(node.input) <= k or node.input[k] not in self.constants:
            raise ValueError(f"the op {node.op_type} reads two tensors that are not constants")
        return self.constants[node.input[k]]

    def one(self, node: Any) -> tuple[GraphColumn, ...]:
        """Return the columns of the first input of a node."""
        if node.input[0] in self.scores:
            raise ValueError(f"the op {node.op_type} on scores is not supported")
        return self.columns[node.input[0]]

    def numbers(self, node: Any) -> tuple[GraphColumn, ...]:
        """Return the columns of the first input of a node, none of which may be a raw text."""
        columns = self.one(node)
        if any(isinstance(column, Text) for column in columns):
            raise ValueError(f"the op {node.op_type} reads strings")
        return columns

    def conclude(self, name: str, scores: Scores, classes: list[Any]) -> None:
        """Note the probabilities."""
        if self.found.chances:
            raise ValueError("its graph has more than one classifier")
        found = self.found
        found.columns, found.coef = scores.columns, scores.coef[0]
        found.intercept, found.classes, found.chances = float(scores.intercept[0]), classes, name
        self.after.add(name)


def _array(tensor: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(
            f"the tensor {tensor.name!r} is stored in another file, which is not supported"
        )
    return numpy_helper.to_array(tensor)


def _constant(node: Any) -> Any:
    given = _attributes(node)
    if "value" in given:
        return _array(given["value"])
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        if name in given:
            return np.array(given[name])
    raise ValueError("the op Constant holds something other than numbers")


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def _raw_columns(inputs: list[Any], names: Sequence[str] | None) -> list[RawColumn]:
    widths = [_width(each) for each in inputs]
    if not inputs:
        raise ValueError("its graph has no inputs")
    refuse_many(sum(widths))
    if len(inputs) == 1 and widths[0] > 1:
        used = [f"x{j}" for j in range(widths[0])] if names is None else list(names)
        if len(used) != widths[0]:
            raise ValueError(f"{len(used)} names for {widths[0]} columns")
        kind = inputs[0].type.tensor_type.elem_type
        return [RawColumn(name, inputs[0].name, j, kind) for j, name in enumerate(used)]
    if names is not None:
        raise ValueError("column names are only for a graph with a single input of several columns")
    for each, width in zip(inputs, widths, strict=True):
        if width != 1:
            raise ValueError(
                f"the input {each.name!r} has {width} columns; with several inputs, each must "
                "have one"
            )
    return [RawColumn(each.name, each.name, 0, each.type.tensor_type.elem_type) for each in inputs]


def _width(value: Any) -> int:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type not in (*_FLOATS, *WHOLE, STRING):
        raise ValueError(f"the input {value.name!r} holds neither numbers nor strings")
    dims = kind.shape.dim
    if len(dims) != 2 or dims[1].dim_value < 1:
        raise ValueError(f"the input {value.name!r} does not say how many columns it has")
    return int(dims[1].dim_value)


def _pass(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    source = node.input[0]
    if source in walk.scores:
        walk.scores[node.output[0]] = walk.scores[source]
    else:
        walk.columns[node.output[0]] = walk.columns[source]


def _cast(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    whole = {k for k, column in enumerate(walk.found.raw) if column.kind in WHOLE}
    if node.input[0] in walk.scores or given["to"] in _FLOATS:
        if node.input[0] in walk.columns:
            walk.numbers(node)  # refuses texts
        return _pass(walk, node, given)
    untouched = all(
        column.raw in whole and column == Scaled(column.raw) for column in walk.one(node)
    )
    texts = all(isinstance(column, Text) for column in walk.one(node))
    if (given["to"] in WHOLE and untouched) or (given["to"] == STRING and texts):
        return _pass(walk, node, given)
    raise ValueError("the op Cast turns something else into whole numbers or strings")


def _reshape(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    columns = walk.one(node)
    shape = [int(k) for k in np.ravel(walk.constant(node, 1))[:3]]
    if len(shape) != 2 or shape[0] not in (-1, 0) or shape[1] not in (-1, len(columns)):
        raise ValueError(f"the op Reshape to {shape} splits people apart")
    _pass(walk, node, given)


def _flatten(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    if given.get("axis", 1) != 1:
        raise ValueError("the op Flatten splits people apart")
    _pass(walk, node, given)


def _concat(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    if given.get("axis") not in (1, -1):
        raise ValueError("the op Concat puts people together, not columns")
    joined: list[GraphColumn] = []
    for name in node.input:
        if name not in walk.columns:
            raise ValueError(f"the op Concat reads {name!r}, which is not a column of people")
        joined += walk.columns[name]
    walk.columns[node.output[0]] = tuple(joined)


def _gather(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    columns = walk.one(node)
    if node.op_type == "Gather" and given.get("axis", 0) not in (1, -1):
        raise ValueError("the op Gather picks people, not columns")
    picked = np.ravel(walk.constant(node, 1))
    walk.expect(picked.size)
    places = [int(k) for k in picked]
    if any(not -len(columns) <= k < len(columns) for k in places):
        raise ValueError(f"the op {node.op_type} picks a column that does not exist")
    walk.columns[node.output[0]] = tuple(columns[k] for k in places)


def _scaler(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    columns = walk.numbers(node)
    offset = _spread(given.get("offset", [0.0]), len(columns), node)
    scale = _spread(given.get("scale", [1.0]), len(columns), node)
    walk.columns[node.output[0]] = tuple(
        _shifted(column, float(s), -float(s) * float(o), node)
        for column, o, s in zip(columns, offset, scale, strict=True)
    )


def _arithmetic(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    """Add, Sub, Mul or Div with a constant."""
    values = walk.constant(node, 1)
    if node.input[0] in walk.scores:
        scores = walk.scores[node.input[0]]
        if node.op_type not in ("Add", "Sub"):
            raise ValueError(f"the op {node.op_type} on scores is not supported")
        more = _spread(values, len(scores.intercept), node)
        more = more if node.op_type == "Add" else -more
        walk.scores[node.output[0]] = scores._replace(intercept=scores.intercept + more)
        return
    columns = walk.numbers(node)
    numbers = _spread(values, len(columns), node)
    if node.op_type == "Div" and not numbers.all():
        raise ValueError("the op Div divides by 0")
    ways: dict[str, Callable[[float], tuple[float, float]]] = {
        "Add": lambda k: (1.0, k),
        "Sub": lambda k: (1.0, -k),
        "Mul": lambda k: (k, 0.0),
        "Div": lambda k: (1.0 / k, 0.0),
    }
    way = ways[node.op_type]
    walk.columns[node.output[0]] = tuple(
        _shifted(column, *way(float(k)), node) for column, k in zip(columns, numbers, strict=True)
    )


def _shifted(column: GraphColumn, factor: float, offset: float, node: Any) -> GraphColumn:
    if isinstance(column, Scaled):
        return Scaled(column.raw, factor * column.factor, factor * column.offset + offset)
    if factor == 1.0 and offset == 0.0:
        return column
    raise ValueError(f"the op {node.op_type} changes a one-hot column, which is not supported")


def _spread(values: Any, count: int, node: Any) -> Floats:
    if np.ndim(values) > 2 or np.size(values) not in (1, count):
        raise ValueError(f"the op {node.op_type} has {np.size(values)} numbers for {count} columns")
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"the op {node.op_type} has numbers that are not finite")
    return np.broadcast_to(np.ravel(array), (count,)) if array.size == 1 else np.ravel(array)


def _one_hot(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    texts = tuple(each.decode("utf-8") for each in given.get("cats_strings", ()))
    levels: tuple[Any, ...] = texts or tuple(int(k) for k in given.get("cats_int64s", ()))
    made: list[GraphColumn] = []
    walk.expect(len(walk.one(node)) * len(levels))
    for column in walk.one(node):
        raw = column.raw
        wanted = Text(raw) if texts else Scaled(raw)
        if column != wanted:
            raise ValueError("the op OneHotEncoder reads a column that another op changed before")
        takes = bool(given.get("zeros", 1))
        made += [IsLevel(raw, level, levels, takes) for level in levels]
    walk.columns[node.output[0]] = tuple(made)


def _linear_classifier(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    columns = walk.numbers(node)
    texts = [each.decode("utf-8") for each in given.get("classlabels_strings", ())]
    classes: list[Any] = texts or [int(k) for k in given.get("classlabels_ints", ())]
    if len(classes) != 2:
        raise ValueError(f"the op LinearClassifier has {len(classes)} classes; two are needed")
    coef = np.array(given["coefficients"], dtype=np.float64)
    if not coef.size or coef.size % len(columns) or coef.size // len(columns) > 2:
        raise ValueError(f"the op LinearClassifier has {coef.size} coefficients")
    coef = coef.reshape(-1, len(columns))
    intercept = _spread(given.get("intercepts", [0.0] * len(coef)), len(coef), node)
    scores = Scores(columns, coef, intercept)
    after = given.get("post_transform", b"NONE").decode()
    walk.conclude(node.output[1], _log_odds(scores, after, node), classes)
    walk.after |= set(node.output)


def _log_odds(scores: Scores, after: str, node: Any) -> Scores:
    """Return the log-odds of the second class, from one or two scores."""
    if after not in ("LOGISTIC", "SOFTMAX"):
        raise ValueError(
            f"the op {node.op_type} gives scores ({after}), not probabilities; export the model "
            "with its probabilities"
        )
    coef, intercept = scores.coef, scores.intercept
    if after == "SOFTMAX":
        if len(coef) != 2:
            raise ValueError(f"the op {node.op_type} takes the softmax of one score")
        return Scores(scores.columns, coef[1:] - coef[:1], intercept[1:] - intercept[:1])
    if len(coef) == 2 and not ((coef[0] == -coef[1]).all() and intercept[0] == -intercept[1]):
        raise ValueError(f"the op {node.op_type} has two scores that are not opposites")
    return Scores(scores.columns, coef[-1:], intercept[-1:])


def _product(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    """MatMul or Gemm: columns times a constant matrix."""
    columns = walk.numbers(node)
    matrix = walk.constant(node, 1)
    if given.get("transA"):
        raise ValueError("the op Gemm turns people into columns")
    matrix = matrix.T if given.get("transB") else matrix
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.shape[0] != len(columns) or matrix.shape[1] not in (1, 2):
        raise ValueError(
            f"the op {node.op_type} with a matrix of {'x'.join(map(str, matrix.shape))} is not a "
            "linear model of two classes"
        )
    intercept = np.zeros(matrix.shape[1])
    if node.op_type == "Gemm" and len(node.input) > 2:
        intercept = float(given.get("beta", 1.0)) * _spread(
            walk.constant(node, 2), matrix.shape[1], node
        )
    coef = float(given.get("alpha", 1.0)) * matrix.T.astype(np.float64)
    walk.scores[node.output[0]] = Scores(columns, coef, intercept)


def _sigmoid(walk: _GraphReader, node: Any, given: dict[str, Any]) -> None:
    scores = walk.scores.get(node.input[0])
    if scores is None or len(scores.coef) != (1 if node.op_type == "Sigmoid" else 2):
        raise ValueError(f"the op {node.op_type} is not at the end of a linear model")
    if node.op_type == "Softmax" and given.get("axis", -1) not in (1, -1):
        raise ValueError("the op Softmax runs over people, not classes")
    after = "LOGISTIC" if node.op_type == "Sigmoid" else "SOFTMAX"
    walk.conclude(node.output[0], _log_odds(scores, after, node), [0, 1])


_READERS: dict[str, Callable[[_GraphReader, Any, dict[str, Any]], None]] = {
    "Identity": _pass,
    "Cast": _cast,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Concat": _concat,
    "Gather": _gather,
    "ArrayFeatureExtractor": _gather,
    "Scaler": _scaler,
    "Add": _arithmetic,
    "Sub": _arithmetic,
    "Mul": _arithmetic,
    "Div": _arithmetic,
    "OneHotEncoder": _one_hot,
    "LinearClassifier": _linear_classifier,
    "MatMul": _product,
    "Gemm": _product,
    "Sigmoid": _sigmoid,
    "Softmax": _sigmoid,
}
# What only says the same in another way; of the probabilities themselves nothing else is read.
_AFTER = ("Cast", "Identity", "ZipMap", "Normalizer", "ArgMax", "Reshape", "ArrayFeatureExtractor")
