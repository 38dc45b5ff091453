"""Linear models in ONNX files: read op by op, compared with the graph, refused by name."""

from __future__ import annotations

import contextlib
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import holdfast
from holdfast.datasets import load_german
from holdfast.files.models import load_model

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

DATA = load_german()
TABLE = DATA.features[["duration", "age", "housing", "job"]].astype(
    {"housing": object, "job": object}
)
NUMBERS = TABLE[["duration", "age"]].to_numpy(dtype=np.float32)
BAD = (~np.asarray(DATA.approved)).astype(int)
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def constant(name, values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, dtype=kind), name)


def graph_of(nodes, inputs=(("X", FLOAT, 2),), constants=(), output="p"):
    """Return the bytes of a model of these nodes."""
    values = [helper.make_tensor_value_info(name, kind, [None, n]) for name, kind, n in inputs]
    outputs = [helper.make_tensor_value_info(output, FLOAT, None)]
    graph = helper.make_graph(nodes, "graph", values, outputs, list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(op, inputs, output, **attributes):
    ml = ("Scaler", "LinearClassifier", "OneHotEncoder", "ZipMap", "Normalizer", "Imputer")
    return helper.make_node(
        op, inputs, output, domain="ai.onnx.ml" if op in ml else "", **attributes
    )


def loaded(model, folder, favorable_class="0"):
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return load_model(path, favorable_class)


W, B = constant("W", [[0.5], [-0.25]]), constant("B", [0.125])
LINEAR = {
    "Gemm": [node("Gemm", ["X", "W", "B"], ["s"]), node("Sigmoid", ["s"], ["p"])],
    "MatMul": [
        node("MatMul", ["X", "W"], ["t"]),
        node("Add", ["t", "B"], ["s"]),
        node("Sigmoid", ["s"], ["p"]),
    ],
    "a scaler by hand": [
        node("Sub", ["X", "M"], ["a"]),
        node("Div", ["a", "S"], ["b"]),
        node("Gemm", ["b", "W", "B"], ["s"]),
        node("Sigmoid", ["s"], ["p"]),
    ],
    "Softmax": [node("Gemm", ["X", "V"], ["s"], transB=1), node("Softmax", ["s"], ["p"])],
    "turned signs": [
        node("Mul", ["X", "N"], ["a"]),
        node("Gemm", ["a", "W", "B"], ["s"]),
        node("Sigmoid", ["s"], ["p"]),
        node("Identity", ["p"], ["q"]),
    ],
}
CONSTANTS = [W, B, constant("M", [20.0, 35.0]), constant("S", [12.0, 11.0])]
CONSTANTS += [constant("V", [[0.25, -1.0], [0.75, 0.5]]), constant("N", [-1.0])]


@pytest.mark.parametrize("case", LINEAR)
def test_graphs_of_plain_ops_are_read(case, tmp_path):
    model = graph_of(LINEAR[case], constants=CONSTANTS)
    found = loaded(model, tmp_path)
    assert not found.can_retrain
    rows = np.random.default_rng(0).normal(scale=2.0, size=(50, 2)).astype(np.float32)
    evaluator = onnx.reference.ReferenceEvaluator(model)
    expected = evaluator.run(["p"], {"X": rows})[0][:, -1]
    table = pd.DataFrame(rows.astype(float), columns=["x0", "x1"])
    assert np.allclose(found.model.predict_proba(table)[:, 1], expected, rtol=0, atol=1e-5)


def test_columns_of_a_single_input_are_named_by_the_metadata(tmp_path):
    model = graph_of(LINEAR["Gemm"], constants=CONSTANTS)
    helper.set_model_props(model, {"holdfast_columns": '["months", "age"]'})
    found = loaded(model, tmp_path)
    assert list(found.model.feature_names_in_) == ["months", "age"]
    for wrong, message in (
        ('["months"]', "1 names for 2 columns"),
        ('["a", "a"]', "holdfast_columns has the same name twice"),
        ("months", "holdfast_columns is not a JSON list of names"),
    ):
        helper.set_model_props(model, {"holdfast_columns": wrong})
        with pytest.raises(ValueError, match=message):
            loaded(model, tmp_path)


PIPELINES = {
    "nothing": lambda: make_pipeline(LogisticRegression()),
    "StandardScaler": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "MinMaxScaler": lambda: make_pipeline(MinMaxScaler(), LogisticRegression()),
    "RobustScaler": lambda: make_pipeline(RobustScaler(), LogisticRegression()),
    "MaxAbsScaler": lambda: make_pipeline(MaxAbsScaler(), LogisticRegression()),
}


@pytest.mark.parametrize("labels", ["numbers", "texts"])
@pytest.mark.parametrize("case", PIPELINES)
def test_what_skl2onnx_writes_is_read(case, labels, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    outcome = BAD if labels == "numbers" else np.where(BAD, "bad", "good")
    model = PIPELINES[case]().fit(NUMBERS, outcome)
    exported = skl2onnx.to_onnx(model, NUMBERS[:1])
    found = loaded(exported, tmp_path, "0" if labels == "numbers" else "good")
    table = pd.DataFrame(NUMBERS.astype(float), columns=["x0", "x1"])
    assert list(found.model.classes_) == list(model.classes_)
    given_by = model.predict_proba(NUMBERS.astype(float))
    assert np.allclose(found.model.predict_proba(table), given_by, rtol=0, atol=1e-6)


@pytest.mark.parametrize("coder", ["error", "ignore", "drop"])
def test_columns_with_names_and_categories_are_read(coder, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    types = skl2onnx.common.data_types
    settings = {"drop": "first"} if coder == "drop" else {"handle_unknown": coder}
    columns = make_column_transformer(
        (StandardScaler(), ["duration", "age"]), (OneHotEncoder(**settings), ["housing", "job"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(TABLE, BAD)
    kinds = [types.FloatTensorType, types.Int64TensorType, *[types.StringTensorType] * 2]
    inputs = [(name, kind([None, 1])) for name, kind in zip(TABLE, kinds, strict=True)]
    found = loaded(skl2onnx.convert_sklearn(model, initial_types=inputs), tmp_path)
    assert np.allclose(
        found.model.predict_proba(TABLE), model.predict_proba(TABLE), rtol=0, atol=1e-6
    )
    # in the same columns, so that a set of models is the same set
    theirs, ours = model[-1].coef_[0], found.model[-1].coef_[0]
    if coder != "drop":
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    denied = TABLE[found.model.predict(TABLE) == 1].head(5)
    result = holdfast.RobustRecourse(
        found.model,
        robust_to=holdfast.NormBall(p=1, radius=0.02),
        actions=holdfast.ActionSet.from_data(TABLE),
        guarantee=0.5,
        favorable_class=0,
    ).recommend(denied)
    assert set(result.to_frame()["status"]) == {"optimal"}
    stranger = denied.assign(housing="tent")
    if coder == "ignore":
        assert np.isfinite(found.model.predict_proba(stranger)).all()


@pytest.mark.parametrize(
    ("model", "op"),
    [
        (make_pipeline(PolynomialFeatures(), LogisticRegression()), "ReduceProd|Mul"),
        (DecisionTreeClassifier(max_depth=2), "TreeEnsembleClassifier"),
    ],
)
def test_what_is_more_than_linear_is_refused_by_name(model, op, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    exported = skl2onnx.to_onnx(model.fit(NUMBERS, BAD), NUMBERS[:1])
    with pytest.raises(ValueError, match=f"the op ({op}) "):
        loaded(exported, tmp_path)


def classifier(coef, intercepts, post="LOGISTIC", labels=(0, 1), **attributes):
    return node(
        "LinearClassifier", ["X"], ["label", "p"], coefficients=coef, intercepts=intercepts,
        post_transform=post, classlabels_ints=list(labels), **attributes,
    )  # fmt: skip


SIGMOID = node("Sigmoid", ["s"], ["p"])
BAD_GRAPHS = {
    "Relu": ([node("Relu", ["X"], ["a"])], "the op Relu is not supported; a linear model is"),
    "no probabilities": (
        [node("Gemm", ["X", "W"], ["p"])],
        "has no linear-model probabilities",
    ),
    "two layers": (
        [node("Gemm", ["X", "V"], ["a"]), node("Gemm", ["a", "W"], ["s"]), SIGMOID],
        "the op Gemm on scores is not supported",
    ),
    "a product of people": (
        [node("Mul", ["X", "X"], ["a"])],
        "the op Mul reads two tensors that are not constants",
    ),
    "a sigmoid too early": (
        [node("Sigmoid", ["X"], ["p"])],
        "Sigmoid is not at the end of a linear",
    ),
    "something afterwards": (
        [*LINEAR["Gemm"], node("Mul", ["p", "B"], ["q"])],
        "after the classifier, the op Mul is not supported",
    ),
    "no logits": (
        [classifier([1.0, 2.0], [0.0], "NONE")],
        "gives scores (NONE), not probabilities",
    ),
    "three classes": (
        [classifier([1.0] * 6, [0.0] * 3, labels=(0, 1, 2))],
        "the op LinearClassifier has 3 classes; two are needed",
    ),
    "no opposites": (
        [classifier([1.0, 2.0, 3.0, 4.0], [0.0, 0.0])],
        "has two scores that are not opposites",
    ),
    "too many coefficients": (
        [classifier([1.0, 2.0, 3.0], [0.0])],
        "the op LinearClassifier has 3 coefficients",
    ),
    "infinite": ([classifier([float("inf"), 1.0], [0.0])], "its coefficients are not all finite"),
    "a column twice": (
        [node("Concat", ["X", "X"], ["a"], axis=1), node("Gemm", ["a", "U"], ["s"]), SIGMOID],
        "the classifier reads the column 'x0' more than once",
    ),
    "people joined": (
        [node("Concat", ["X", "X"], ["a"], axis=0)],
        "the op Concat puts people together, not columns",
    ),
    "times nothing": (
        [node("Mul", ["X", "Z"], ["a"]), node("Gemm", ["a", "W"], ["s"]), SIGMOID],
        "the column 'x0' is multiplied by 0",
    ),
    "divided by nothing": ([node("Div", ["X", "Z"], ["a"])], "the op Div divides by 0"),
    "a wide matrix": (
        [node("Gemm", ["X", "T"], ["s"])],
        "with a matrix of 2x3 is not a linear model",
    ),
    "a column that there is not": (
        [node("Gather", ["X", "nine"], ["a"], axis=1)],
        "picks a column that does not exist",
    ),
    "an imputer": (
        [node("Imputer", ["X"], ["a"], imputed_value_floats=[1.0])],
        "the op Imputer is not supported",
    ),
    "nothing read": ([node("Identity", ["Y"], ["a"])], "reads ['Y'], which is not known"),
}
MORE = [constant("U", np.ones((4, 1))), constant("Z", [0.0]), constant("T", np.ones((2, 3)))]
MORE += [constant("nine", [9], np.int64)]


@pytest.mark.parametrize("case", BAD_GRAPHS)
def test_what_is_not_understood_is_said(case, tmp_path):
    nodes, message = BAD_GRAPHS[case]
    model = graph_of(nodes, constants=[*CONSTANTS, *MORE])
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        loaded(model, tmp_path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path))


ENDLESS = {
    "a wide input": ([SIGMOID], 2**62, "it reads 4,611,686,018,427,387,904 columns; at most"),
    "doubled columns": (
        [node("Concat", [f"{k}" if k else "X"] * 2, [f"{k + 1}"], axis=1) for k in range(60)],
        2,
        "its ops read and make more than 500,000 columns in total",
    ),
    "many picked": (
        [node("Gather", ["X", "many"], ["a"], axis=1)] * 3,
        2,
        "its ops read and make more than 500,000 columns in total",
    ),
    "many levels of many columns": (
        [node("OneHotEncoder", ["X"], ["a"], cats_int64s=list(range(1000)))],
        1000,
        "its ops read and make more than 500,000 columns in total",
    ),
    "many passes": (
        [node("Cast", ["X"], ["a"], to=FLOAT)] * 30,
        20_000,
        "its ops read and make more than 500,000 columns in total",
    ),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_columns_without_end_are_refused_before_they_are_made(case, tmp_path):
    nodes, width, message = ENDLESS[case]
    many = constant("many", np.zeros(200_000), np.int64)
    with pytest.raises(ValueError, match=message):
        loaded(graph_of(nodes, inputs=[("X", FLOAT, width)], constants=[many]), tmp_path)


def test_a_category_of_many_levels_takes_no_table_of_their_square(tmp_path):
    count = 30_000
    nodes = [
        node("OneHotEncoder", ["X"], ["a"], cats_int64s=list(range(count))),
        node("Flatten", ["a"], ["b"]),
        node("MatMul", ["b", "W"], ["s"]),
        SIGMOID,
    ]
    weights = constant("W", np.linspace(-1.0, 1.0, count)[:, None])
    tracemalloc.start()
    found = loaded(graph_of(nodes, inputs=[("X", INT64, 1)], constants=[weights]), tmp_path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.model.predict_proba(pd.DataFrame({"X": [count - 1]}))[0, 1] > 0.7
    assert most < 500_000_000  # a dense row for each level is 7 GB


def test_constants_in_other_files_are_not_read(tmp_path):
    model = graph_of(LINEAR["Gemm"], constants=CONSTANTS)
    tensor = model.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, "/etc/passwd")
    tensor.data_location = TensorProto.EXTERNAL
    with pytest.raises(ValueError, match="the tensor 'W' is stored in another file"):
        loaded(model, tmp_path)


def test_what_was_read_is_compared_with_the_graph(tmp_path, monkeypatch):
    from holdfast.files import onnx_models

    real = onnx_models.pipeline_of
    monkeypatch.setattr(
        onnx_models, "pipeline_of", lambda terms, classes, intercept: real(terms, classes, 0.2)
    )
    with pytest.raises(ValueError, match="gives different probabilities from the graph itself, by"):
        loaded(graph_of(LINEAR["Gemm"], constants=CONSTANTS), tmp_path)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_words(data, tmp_path_factory):
    scaler = node("Scaler", ["X"], ["a"], offset=[1.0, 2.0], scale=[0.5, 0.25])
    nodes = [scaler, node("Gemm", ["a", "W", "B"], ["s"]), SIGMOID]
    content = bytearray(graph_of(nodes, constants=[W, B]).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.getbasetemp()
    message = str(folder)
    with contextlib.suppress(ValueError):
        try:
            loaded(bytes(content), folder)
        except ValueError as error:
            message = str(error)
            raise
    assert message.startswith(str(folder))
