"""Pipelines taken apart: our rule and the pipeline agree, and what is not understood is said."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from holdfast.datasets import load_german
from holdfast.models import as_model
from holdfast.models.encoding import Category, Encoding, Number
from holdfast.problem.losses import get_loss

N = 30
NUMBER_STEPS = [
    "passthrough",
    "drop",
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(feature_range=(-2.0, 3.0)),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    make_pipeline(SimpleImputer(), StandardScaler()),
    make_pipeline(MinMaxScaler(), "passthrough", RobustScaler()),
]
CATEGORY_STEPS = [
    "drop",
    OneHotEncoder(),
    OneHotEncoder(drop="first"),
    OneHotEncoder(drop="if_binary", sparse_output=False),
    OneHotEncoder(handle_unknown="ignore"),
    OrdinalEncoder(),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    make_pipeline(OrdinalEncoder(), StandardScaler()),
    make_pipeline(OneHotEncoder(sparse_output=False), StandardScaler()),
]


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = 10.0 ** rng.uniform(-3, 6)
    return pd.DataFrame(
        {
            "amount": rng.normal(rng.normal() * scale, scale, N),
            "months": rng.integers(-5, 60, N),
            "short": rng.normal(size=N).astype(np.float32),
            "flag": np.arange(N) % 2 == 0,
            "constant": 7,
            "home": np.array(["own", "rent", "free"])[np.arange(N) % rng.integers(2, 4)],
            "rate": rng.permutation(np.arange(N) % rng.integers(2, 5)),
        }
    )


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fit(step, table, *more):
    approved = np.arange(len(table)) % 3 > 0
    return make_pipeline(step, *more, LogisticRegression(max_iter=10)).fit(table, approved)


@given(
    tables(),
    st.lists(st.sampled_from(NUMBER_STEPS), min_size=2, max_size=2),
    st.lists(st.sampled_from(CATEGORY_STEPS), min_size=2, max_size=2),
    st.sampled_from(["drop", "passthrough", StandardScaler()]),
    st.sampled_from([None, "passthrough", StandardScaler(with_mean=False), MaxAbsScaler()]),
    st.sampled_from([None, {"n1": -2.0, "c1": 0.5}]),
)
@settings(max_examples=75, deadline=None)
def test_our_rule_is_the_pipelines(table, numbers, categories, remainder, second, weights):
    columns = ColumnTransformer(
        [
            ("n1", numbers[0], ["amount", "constant"]),
            ("c1", categories[0], ["home"]),
            ("n2", numbers[1], ["months"]),
            ("c2", categories[1], ["rate"]),
        ],
        remainder=remainder,
        transformer_weights=weights,
    )
    if remainder == "drop" and all(isinstance(x, str) and x == "drop" for x in numbers):
        return  # nothing might be left to fit
    pipeline = fit(columns, table, *([] if second is None else [second]))
    encoding = Encoding.of(pipeline)
    people = table.sample(frac=1.0, random_state=0)
    encoded = encoding.encode(people[people.columns[::-1]].assign(other="not seen"))
    theirs = pipeline[:-1].transform(people)
    theirs = theirs.toarray() if hasattr(theirs, "toarray") else theirs
    np.testing.assert_allclose(encoded, np.asarray(theirs, dtype=float), rtol=1e-5, atol=1e-5)
    if people["short"].dtype == np.float64 or "short" in encoding.unused:
        np.testing.assert_array_equal(encoded, theirs)

    assert set(encoding.features) | set(encoding.unused) == set(encoding.names)
    seen = np.zeros(encoding.n_columns)
    for feature in encoding.features.values():
        seen[feature.column if isinstance(feature, Number) else feature.columns] += 1
    assert (seen == 1).all()

    decoded = encoding.decode(encoded)
    for name, feature in encoding.features.items():
        raw = people[name].to_numpy()
        if isinstance(feature, Category):
            assert list(decoded[name]) == list(raw)
        else:
            size = np.abs(feature.shift / feature.scale) + np.abs(raw.astype(float))
            assert (np.abs(decoded[name] - raw) <= 1e-12 * (1 + size)).all()


@pytest.mark.parametrize(
    ("number", "category"),
    [
        (["age", "duration"], ["purpose"]),
        ([12, 1], [3]),
        (slice(12, 13), slice("credit_history", "purpose")),
        (make_column_selector("^age$"), np.arange(20) == 3),
        (lambda table: [-8, "duration"][:1], "purpose"),
    ],
)
def test_columns_may_be_selected_in_every_way(number, category):
    german = load_german()
    category = [category] if isinstance(category, str) else category
    columns = ColumnTransformer([("n", MinMaxScaler(), number), ("c", OneHotEncoder(), category)])
    encoding = Encoding.of(fit(columns, german.features))
    assert isinstance(encoding["age"], Number)
    assert isinstance(encoding["purpose"], Category)
    assert encoding.encode(german.features).shape == (1000, encoding.n_columns)


def test_pipelines_fitted_on_arrays_call_their_columns_x0_x1():
    rng = np.random.default_rng(0)
    array = np.column_stack([rng.normal(size=N), np.arange(N) % 3])
    columns = ColumnTransformer([("c", OneHotEncoder(), [1])], remainder=StandardScaler())
    encoding = Encoding.of(fit(columns, array))
    assert encoding.names == ["x0", "x1"]
    assert encoding["x1"].levels == (0.0, 1.0, 2.0)
    np.testing.assert_array_equal(encoding.encode(array), columns.fit_transform(array))
    frame = pd.DataFrame(array, columns=["x0", "x1"])
    np.testing.assert_array_equal(encoding.encode(frame), encoding.encode(array))
    with pytest.raises(ValueError, match=r"lacks columns .* \['x0', 'x1'\]"):
        encoding.encode(frame.rename(columns={"x0": "a", "x1": "b"}))


def test_the_order_of_encoded_columns_can_be_read():
    table = pd.DataFrame({"a": np.arange(9.0), "b": ["u", "v", "w"] * 3, "c": np.arange(9.0) ** 2})
    steps = [
        ("bins", KBinsDiscretizer(3, encode="onehot-dense"), ["c"]),
        ("codes", OneHotEncoder(), ["b"]),
    ]
    columns = ColumnTransformer(steps, remainder=StandardScaler(), sparse_threshold=0.0)
    model = make_pipeline(columns, LogisticRegression()).fit(table, table["a"] > 4.0)
    names = as_model(model, with_curves=True).encode(table).columns
    encoding = Encoding.of(model)
    assert list(names[encoding["b"].columns]) == ["codes__b_u", "codes__b_v", "codes__b_w"]
    assert [name.partition("_c")[0] for name in names[encoding["c"].columns]] == ["bins_"] * 3
    assert names[encoding["a"].column] == "remainder__a"


def test_missing_columns_that_are_there_under_like_names_are_named():
    table = pd.DataFrame({"income": [1.0, 2.0], "debt": [0.0, 1.0], "income2": [0.0, 1.0]})
    encoding = Encoding.of(LogisticRegression().fit(table, [0, 1]), favorable_class=1)
    for names, said in (
        ({"debt": "DEBT"}, r"\['debt'\]; did you mean 'debt' by 'DEBT'\?$"),
        (
            {"debt": "depts", "income": "incme"},
            r"did you mean 'income' by 'incme' and 'debt' by 'depts'\?$",
        ),
        ({"income": "z"}, r"lacks columns of the model: \['income'\]$"),
    ):
        with pytest.raises(ValueError, match=said):
            encoding.encode(table.rename(columns=names))


def test_a_classifier_alone_reads_numbers_as_they_are():
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [True, False, True]})
    for model in (LogisticRegression(), make_pipeline(LogisticRegression())):
        encoding = Encoding.of(model.fit(table, [0, 1, 1]), favorable_class=0)
        assert encoding.features == {"a": Number("a", 0, 0.0, 1.0), "b": Number("b", 1, 0.0, 1.0)}
        np.testing.assert_array_equal(encoding.encode(table), table.astype(float))
        last = model[-1] if isinstance(model, Pipeline) else model
        np.testing.assert_array_equal(encoding.model.coef, -last.coef_[0])
    assert Encoding.of(([1.0, 2.0], 0.5)).names == ["x0", "x1"]


def test_a_pipeline_in_a_pipeline_is_opened():
    table = pd.DataFrame({"a": np.arange(9.0)})
    inner = make_pipeline(MinMaxScaler(), LogisticRegression())
    pipeline = Pipeline([("first", StandardScaler()), ("rest", inner)])
    pipeline.fit(table, np.arange(9) > 3)
    encoding = Encoding.of(pipeline)
    np.testing.assert_allclose(encoding.encode(table)[:, 0], np.arange(9) / 8)
    assert encoding["a"].scale == pytest.approx(1 / 8)


def test_data_frames_between_the_steps():
    table = pd.DataFrame({"a": np.arange(9.0), "b": list("xyz") * 3})
    first = ColumnTransformer(
        [("n", StandardScaler(), ["a"]), ("c", OneHotEncoder(sparse_output=False), ["b"])]
    ).set_output(transform="pandas")
    second = ColumnTransformer([("s", MinMaxScaler(), ["n__a"])], remainder="passthrough")
    pipeline = fit(first, table, second)
    encoding = Encoding.of(pipeline)
    np.testing.assert_array_equal(encoding.encode(table), pipeline[:-1].transform(table))


TABLE = pd.DataFrame(
    {"num": np.arange(N, dtype=float), "other": np.arange(N) ** 2.0, "cat": list("abc") * (N // 3)}
)


class MyScaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("transformers", "message"),
    [
        (
            [("n", PolynomialFeatures(), ["num", "other"])],
            "transformer 'n': PolynomialFeatures multiplies num by other",
        ),
        ([("n", MyScaler(), ["num"])], "transformer 'n': MyScaler is not supported"),
        ([("n", PCA(1), ["num", "other"])], "step 'columns' / transformer 'n': PCA is not"),
        (
            [("n", FunctionTransformer(np.spacing), ["num"])],
            "'n': FunctionTransformer with the function spacing is not supported",
        ),
        (
            [("n", make_pipeline(StandardScaler(), SimpleImputer(missing_values=-1)), ["num"])],
            "SimpleImputer with missing_values=-1 reads a column that another step changed",
        ),
        (
            [("n", make_pipeline(StandardScaler(), OneHotEncoder()), ["num"])],
            "step 'onehotencoder': OneHotEncoder reads a column that a step before it changed",
        ),
        (
            [("n", KBinsDiscretizer(3), ["num"]), ("c", OneHotEncoder(), ["num", "cat"])],
            "column 'num' is read as a category and by step 'columns' / transformer 'n'",
        ),
    ],
)
def test_what_is_not_understood_is_named(transformers, message):
    pipeline = Pipeline(
        [("columns", ColumnTransformer(transformers)), ("model", LogisticRegression())]
    )
    pipeline.fit(TABLE, np.arange(N) % 3 > 0)
    with pytest.raises(ValueError, match=re.escape(message)):
        Encoding.of(pipeline)


def test_a_column_may_be_read_more_than_once():
    columns = ColumnTransformer(
        [
            ("s", StandardScaler(), ["num"]),
            ("c", OneHotEncoder(), ["num", "cat"]),
            ("o", OrdinalEncoder(categories=[["d", "c", "b", "a"]]), ["cat"]),
        ]
    )
    pipeline = fit(columns, TABLE.assign(num=np.arange(N) % 4))
    encoding = Encoding.of(pipeline)
    assert encoding["num"].levels == (0, 1, 2, 3)
    assert encoding["num"].columns.tolist() == [0, 1, 2, 3, 4]
    assert encoding["cat"].levels == ("a", "b", "c")  # the other encoder refuses "d"
    assert encoding["cat"].codes[:, -1].tolist() == [3.0, 2.0, 1.0]
    people = TABLE.assign(num=np.arange(N) % 4)
    theirs = pipeline[:-1].transform(people)
    np.testing.assert_array_equal(encoding.encode(people), theirs)


def test_other_errors_of_pipelines():
    columns = ColumnTransformer([("n", StandardScaler(), ["num"])])
    with pytest.raises(ValueError, match=r"step 'logisticregression': the model LogisticRegr"):
        Encoding.of(make_pipeline(columns, LogisticRegression()))
    with pytest.raises(TypeError, match=r"step 'minmaxscaler': unsupported model type Min"):
        Encoding.of(make_pipeline(columns, MinMaxScaler()))
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2)
    search.fit(TABLE[["num"]], np.arange(N) % 3 > 0)
    assert Encoding.of(search).names == ["num"]
    forest = make_pipeline(columns, RandomForestClassifier(2)).fit(TABLE, np.arange(N) % 3 > 0)
    assert Encoding.of(forest).model.kind == "black box"  # its encoders are understood all the same


def test_unused_columns_say_so():
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["num"]), ("c", OneHotEncoder(drop="first"), ["cat"])]
    )
    encoding = Encoding.of(fit(columns, TABLE.assign(cat="a")))
    assert list(encoding.unused) == ["other", "cat"]  # a single level leaves no column
    with pytest.raises(
        ValueError, match="column 'cat' is not used: the classifier reads no column"
    ):
        encoding["cat"]
    with pytest.raises(ValueError, match="column 'dog' is not known; available: num, other, cat"):
        encoding["dog"]


def test_each_row_that_cannot_be_encoded_has_its_reason():
    inner = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("n", inner, ["num"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["cat"])]
    )
    encoding = Encoding.of(fit(columns, TABLE))
    people = pd.DataFrame(
        {
            "num": [1.0, None, "12", np.inf, 5],
            "other": 0.0,
            "cat": ["a", "b", "z", "c", None],
        },
        index=list("pqrst"),
    )
    assert encoding.read(people).refused() == [
        (2, "num = '12': a finite number was expected"),
        (3, "num = inf: a finite number was expected"),
    ]
    with pytest.raises(ValueError, match=r"row 'r' cannot be encoded: num = '12': a fin.*\(2 such"):
        encoding.encode(people)
    filled = encoding.encode(people.iloc[[0, 1, 4]].astype({"num": float}))
    assert filled[1].tolist() == [0.0, 0.0, 1.0, 0.0]  # the mean
    assert filled[2, 1:].tolist() == [0.0, 0.0, 0.0]

    columns = ColumnTransformer([("n", StandardScaler(), ["num"]), ("c", OneHotEncoder(), ["cat"])])
    assert Encoding.of(fit(columns, TABLE)).read(people).refused() == [
        (1, "num is missing"),
        (
            2,
            (
                "num = '12': a finite number was expected; "
                "cat = 'z': the encoder has never seen it, only 'a', 'b', 'c'"
            ),
        ),
        (3, "num = inf: a finite number was expected"),
        (4, "cat is missing"),
    ]
    assert encoding.encode(people.iloc[:1]).shape == (1, 4)
    assert encoding.encode(people.iloc[:0]).shape == (0, 4)
    with pytest.raises(ValueError, match="knows its columns by name: pass a data frame"):
        encoding.encode(people.to_numpy())


def test_a_missing_value_is_no_level():
    table = TABLE.assign(cat=["a", None, "b"] * (N // 3))
    encoding = Encoding.of(fit(ColumnTransformer([("c", OneHotEncoder(), ["cat"])]), table))
    assert encoding["cat"].levels == ("a", "b")
    assert encoding["cat"].codes.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert encoding["cat"].missing.tolist() == [0.0, 0.0, 1.0]
    assert encoding.read(table).refused() == []


def test_what_is_misunderstood_is_noticed():
    pipeline = fit(ColumnTransformer([("n", StandardScaler(), ["num"])]), TABLE)
    encoding = Encoding.of(pipeline)
    pipeline[0].named_transformers_["n"].mean_[0] += 1e-6  # as if a step did what we do not know
    with pytest.raises(ValueError, match="column 'num' is misread: the pipeline encodes"):
        encoding.encode(TABLE)


def test_large_numbers_do_not_look_misunderstood():
    table = TABLE.assign(num=1e12 + np.arange(N))
    pipeline = fit(ColumnTransformer([("n", StandardScaler(), ["num"])]), table)
    np.testing.assert_array_equal(
        Encoding.of(pipeline).encode(table), pipeline[:-1].transform(table)
    )


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]])
@pytest.mark.parametrize("as_array", [False, True])
def test_steps_that_write_into_their_input_spoil_nothing(columns, as_array):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(3.0, 2.0, (N, 2)), columns=["a", "b"])[columns]
    given = table.to_numpy() if as_array else table
    steps = [("scale", StandardScaler(copy=False)), ("last", LogisticRegression())]
    model = Pipeline(steps).fit(given.copy(), table["a"] > 3.0)
    before = table.copy()
    encoding = Encoding.of(model)
    (rows,) = encoding.encode_tables([given])
    encoding.compare(rows, rows.points, get_loss("logistic"))
    np.testing.assert_allclose(rows.points, (before - before.mean()) / before.std(ddof=0))
    for j, name in enumerate(columns):
        read = rows.reading.numbers["x" + str(j) if as_array else name]
        np.testing.assert_array_equal(read, before[name])
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OneHotEncoder(drop="first")])
def test_an_encoder_of_an_array_of_texts_and_numbers_is_read(encoder):
    """Such an array holds objects, and the encoder takes its numbers as nothing else."""
    rng = np.random.default_rng(0)
    people = np.array([[rng.choice(["a", "b"]), int(rng.integers(3))] for _ in range(60)], object)
    good = people[:, 1].astype(int) + rng.normal(size=60) > 1.0
    model = make_pipeline(encoder, LogisticRegression()).fit(people, good)
    encoding = Encoding.of(model)
    assert [list(encoding[name].levels) for name in ("x0", "x1")] == [["a", "b"], [0, 1, 2]]
    np.testing.assert_array_equal(encoding.encode(people), model[0].transform(people).toarray())
