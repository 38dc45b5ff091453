"""What people are, as the very model sees them: markers of the missing, narrow types, its input."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import CategoryFeature
from holdfast.models import as_model
from holdfast.models.encoding import Encoding

MARKERS = [np.nan, None, pd.NA, pd.NaT, float("nan"), np.float64("nan")]
ENCODERS = {
    "NaN is a level": ([np.nan], OneHotEncoder(handle_unknown="ignore")),
    "None is a level": ([None], OneHotEncoder(handle_unknown="ignore")),
    "unknown is an error": ([np.nan], OneHotEncoder()),
    "filled": ([np.nan], make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())),
    "ordinal": (
        [np.nan],
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-5, encoded_missing_value=-1
        ),
    ),
}


def with_homes(homes, n=150, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"income": rng.normal(size=n).round(2)})
    table["home"] = pd.Series([homes[k % len(homes)] for k in range(n)], dtype=object)
    good = table["income"] + (table["home"] == "own") + rng.normal(size=n) > 0.0
    return table, good


def asked_alone(model, table):
    """The score of each row, and the decision, by the model itself; None where it refuses one."""
    said = []
    for k in range(len(table)):
        row = table.iloc[[k]]
        try:
            said.append((float(model.decision_function(row)[0]), bool(model.predict(row)[0])))
        except (TypeError, ValueError):
            said.append(None)
    return said


@pytest.mark.parametrize("name", ENCODERS)
def test_whatever_stands_for_a_missing_level_is_scored_as_by_the_model(name):
    known, encoder = ENCODERS[name]
    table, good = with_homes(["own", "rent", *known])
    columns = make_column_transformer((StandardScaler(), ["income"]), (encoder, ["home"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, good)
    people = pd.DataFrame({"income": 0.01, "home": pd.Series(["own", *MARKERS], dtype=object)})
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=ActionSet.from_data(table), guarantee=0.6
    )
    frame = recourse.recommend(people).to_frame()
    said, answered = asked_alone(model, people), 0
    for k, own in enumerate(said):
        if own is None:
            continue
        answered += 1
        probability = 1.0 / (1.0 + np.exp(-own[0]))
        assert frame["initial_validity"].iloc[k] == pytest.approx(probability, abs=1e-12)
        assert frame["approved"].iloc[k] == own[1]
    assert answered >= 4


def test_a_marker_that_is_neither_missing_nor_unknown_is_refused():
    """Where the rare levels are one, an unknown level is among them: a level, not a marker."""
    table, good = with_homes(["own", "rent", "own", "rent", "own", "free", np.nan, np.nan], n=160)
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=25)
    columns = make_column_transformer((StandardScaler(), ["income"]), (encoder, ["home"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, good)
    people = pd.DataFrame({"income": 0.01, "home": pd.Series(["own", *MARKERS], dtype=object)})
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=ActionSet.from_data(table), guarantee=0.6
    )
    advice = recourse.recommend(people)
    frame = advice.to_frame()
    for k, own in enumerate(asked_alone(model, people)):
        if advice.status[k] is Status.INVALID_INPUT:
            assert "home" in advice.explain(k)
            continue
        probability = 1.0 / (1.0 + np.exp(-own[0]))
        assert frame["initial_validity"].iloc[k] == pytest.approx(probability, abs=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "bool", "float16", "float32", "int64"])
def test_narrow_types_are_judged_as_the_model_computes_with_them(dtype):
    """The logarithm of small integers is taken in half precision."""
    rng = np.random.default_rng(4)
    n = 3000
    table = pd.DataFrame({"debts": rng.integers(0, 2 if dtype == "bool" else 90, n).astype(dtype)})
    table["income"] = rng.normal(size=n).round(2)
    score = table["income"] - np.log1p(table["debts"].astype(float)) + rng.logistic(size=n)
    log = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    columns = make_column_transformer((log, ["debts"]), (StandardScaler(), ["income"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, score > score.mean())
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.0), actions=ActionSet.from_data(table), guarantee=0.5
    )
    advice = recourse.recommend(table)
    assert (advice.to_frame()["approved"] == model.predict(table)).all()
    assert model.predict(advice.after()).all()


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("as_array", [False, True])
def test_no_step_writes_into_what_people_gave(calibrated, as_array):
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(3.0, 2.0, size=(200, 3)).round(2), columns=list("abc"))
    good = (table.sum(axis=1) + rng.logistic(size=200) > 9.0).to_numpy()
    X = table.to_numpy() if as_array else table

    def model_of(scaler):
        fitted = make_pipeline(scaler, LogisticRegression()).fit(X.copy(), good)
        if not calibrated:
            return fitted
        return CalibratedClassifierCV(FrozenEstimator(fitted), method="sigmoid").fit(X.copy(), good)

    frames = []
    for scaler in (StandardScaler(), StandardScaler(copy=False)):
        given = copy.deepcopy(X)
        recourse = RobustRecourse(
            model_of(scaler),
            robust_to=NormBall(1, 0.05),
            actions=ActionSet.from_data(given),
            guarantee=0.6,
        )
        frames.append(recourse.recommend(given).to_frame())
        np.testing.assert_array_equal(np.asarray(given), np.asarray(X))
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def test_nobody_is_written_to_when_the_favourable_class_must_be_asked_for():
    people = np.random.default_rng(6).normal(3.0, 2.0, size=(80, 2)).round(2)
    given, labels = people.copy(), np.where(people[:, 0] > 3.0, "yes", "no")
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression())
    model.fit(people.copy(), labels)
    with pytest.raises(ValueError, match="say which of them people want"):
        as_model(model, people=given)
    np.testing.assert_array_equal(given, people)


def lender_of(levels, encoder, n=150):
    """A model of an age and of a category in a column of any type, and its table."""
    age = np.random.default_rng(0).normal(40.0, 10.0, n).round(1)
    table = pd.DataFrame({"c": levels, "age": age})
    good = age + 8 * (np.arange(n) % 3 == 2) > 45.0
    columns = make_column_transformer((encoder, ["c"]), (StandardScaler(), ["age"]))
    return make_pipeline(columns, LogisticRegression(C=10.0)).fit(table, good), table


def advice_of(model, table, immutable, guarantee=0.6):
    encoding = Encoding.of(model)
    actions = ActionSet.from_data(table, immutable=[immutable], encoding=encoding)
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=guarantee
    )
    return recourse.recommend(table)


COLUMNS = {
    "booleans and NA": pd.Series([True, False, None] * 50, dtype="boolean"),
    "numbers and None as objects": pd.Series([1, 2, None] * 50, dtype=object),
    "numbers as objects": pd.Series([1, 2, 3] * 50, dtype=object),
    "booleans and None as objects": pd.Series([True, False, None] * 50, dtype=object),
    "texts and None": pd.Series(["a", "b", None] * 50, dtype=object),
    **{
        dtype: pd.Series([0, 1, 1] * 50).astype(dtype)
        for dtype in ("int8", "int32", "uint8", "float32", "bool", "boolean", "Int8")
    },
}


@pytest.mark.parametrize("immutable", ["c", "age"])
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(),
        OrdinalEncoder(encoded_missing_value=-1),
        TargetEncoder(),
    ],
    ids=["ignores", "one-hot", "ordinal", "target"],
)
@pytest.mark.parametrize("name", COLUMNS)
def test_categories_of_any_type_are_read_and_written_as_the_model_does(name, encoder, immutable):
    model, table = lender_of(COLUMNS[name], encoder)
    own = model.predict_proba(table)[:, 1]
    result = advice_of(model, table, immutable)
    frame = result.to_frame()
    np.testing.assert_allclose(frame["initial_validity"], own, atol=1e-12)
    np.testing.assert_array_equal(frame["approved"], model.predict(table))
    helped = frame[frame["status"] == "optimal"]
    printed = helped[["recourse.c", "recourse.age"]].set_axis(["c", "age"], axis=1)
    for after in (printed, result.after().loc[helped.index]):
        if len(after):
            assert (model.predict_proba(after)[:, 1] >= 0.6 - 1e-12).all()


def test_a_marker_is_read_alike_whoever_stands_beside_it():
    levels = pd.Series(["a", "b", None] * 50, dtype=object)
    table = pd.DataFrame({"c": levels, "age": np.arange(150.0), "income": 1.0 + np.arange(150) % 9})
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]),
        (StandardScaler(), ["age"]),
        (make_pipeline(FunctionTransformer(np.log), StandardScaler()), ["income"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, np.arange(150) % 4 == 0)
    person = {"c": np.nan, "age": 35.0, "income": 4.0}
    other = {**person, "income": 0.0}  # of whom there is no logarithm
    encoding = Encoding.of(model)
    alone = encoding.read(pd.DataFrame([person])).levels["c"]
    for people, k in (([person, other], 0), ([other, person], 1)):
        assert encoding.read(pd.DataFrame(people)).levels["c"][k] == alone[0]
    made = model[:-1].transform(pd.DataFrame([person]).astype({"c": object}))
    np.testing.assert_array_equal(encoding.encode(pd.DataFrame([person])), made)


def test_who_writes_into_a_column_that_another_one_reads_is_refused():
    table = pd.DataFrame({"n": np.arange(50) % 9, "c": ["a", "b"] * 25})
    for first, second in (
        ((StandardScaler(copy=False), ["n"]), ("passthrough", ["n"])),
        (("passthrough", ["n"]), (StandardScaler(copy=False), ["n"])),
    ):
        columns = make_column_transformer(first, second, (OneHotEncoder(), ["c"]))
        model = make_pipeline(columns, LogisticRegression()).fit(table, np.arange(50) % 2 == 0)
        with pytest.raises(ValueError, match=r"may write into a column .* fit it with copy=True"):
            Encoding.of(model)
    columns = make_column_transformer((StandardScaler(copy=False), ["n"]), (OneHotEncoder(), ["c"]))
    Encoding.of(make_pipeline(columns, LogisticRegression()).fit(table, np.arange(50) % 2 == 0))


def test_people_in_types_that_a_step_cannot_write_to_are_asked_about_all_the_same():
    table = pd.DataFrame({"n": np.arange(60) % 12, "m": np.arange(60.0)})
    columns = make_column_transformer(
        (KBinsDiscretizer(4, encode="ordinal", quantile_method="linear"), ["n"]),
        (StandardScaler(), ["m"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, table["m"] > 30.0)
    wanted = advice_of(model, table, "n").to_frame()
    for dtype in ("Int64", "Int8", "Float32", "int64[pyarrow]"):
        people = table.astype({"n": dtype})
        found = advice_of(model, people, "n").to_frame()
        assert found["status"].tolist() == wanted["status"].tolist()
        np.testing.assert_array_equal(found["cost"], wanted["cost"])


def test_a_subclass_needs_no_more_than_the_settings():
    class Sure(RobustRecourse):
        def __init__(self, model, actions, *, guarantee=0.9):
            self.model, self.actions, self.guarantee = model, actions, guarantee
            self.robust_to, self.n_options, self.n_jobs = NormBall(1, 0.05), 1, 1
            self.cost_weight = self.points = self.guarantee_points = None
            self.loss = self.favorable_class = None

    model, table = lender_of(pd.Series(["a", "b", "b"] * 50), OneHotEncoder())
    sure = Sure(model, ActionSet.from_data(table))
    assert (sure.recommend(table).to_frame()["worst_case_validity"] >= 0.9).any()


@pytest.mark.parametrize(
    ("step", "low", "high"),
    [
        (make_pipeline(FunctionTransformer(special.logit), StandardScaler()), 0.05, 0.95),
        (SplineTransformer(extrapolation="error"), 20.0, 70.0),
    ],
    ids=["logit", "splines"],
)
def test_a_marker_is_asked_about_beside_numbers_that_the_pipeline_takes(step, low, high):
    """Not every pipeline takes a 1 beside it: that it refuses one says nothing of the marker."""
    rng = np.random.default_rng(0)
    home = rng.choice(["own", "rent", "other"], 200).astype(object)
    home[::7] = np.nan
    table = pd.DataFrame({"home": pd.Series(home, dtype=object), "x": rng.uniform(low, high, 200)})
    good = (table["x"] > (low + high) / 2.0) | table["home"].isna()
    encoder = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["home"]), (step, ["x"]))
    model = make_pipeline(columns, LogisticRegression(C=10.0)).fit(table, good)
    people = table.iloc[2:6].assign(home=pd.Series([None] * 4, table.index[2:6], dtype=object))
    encoding = Encoding.of(model)
    ours = encoding.model.score(encoding.encode(people))
    np.testing.assert_allclose(ours, model.decision_function(people), atol=1e-9)


@pytest.mark.parametrize("dtype", ["int8", "Int8", "UInt8", "Int64", "boolean", "bool[pyarrow]"])
def test_a_level_that_a_column_cannot_hold_widens_it(dtype):
    table = pd.DataFrame({"g": [1, 2, 300] * 20})
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, table["g"] == 300)
    actions = ActionSet([CategoryFeature("g", levels=[1, 2, 300])])
    recourse = RobustRecourse(
        model, robust_to=NormBall(2, 0.01), actions=actions, guarantee=0.6, favorable_class=True
    )
    people = pd.DataFrame({"g": pd.Series([1, 1], dtype=dtype)})
    result = recourse.recommend(people)
    assert [str(status) for status in result.status] == ["optimal", "optimal"]
    assert [int(level) for level in result.after()["g"]] == [300, 300]


def test_only_who_may_overwrite_what_others_have_is_refused():
    table = pd.DataFrame({"n": np.arange(50.0) % 9, "m": np.arange(50) % 7})
    table.loc[::5, "n"] = np.nan
    good = np.arange(50) % 2 == 0
    filled = table.fillna(1.0)
    safe = make_union(MissingIndicator(features="all"), SimpleImputer(copy=False))
    Encoding.of(make_pipeline(safe, LogisticRegression()).fit(table, good))
    hidden = make_pipeline(FunctionTransformer(), StandardScaler(copy=False))
    for part in (hidden, make_union(StandardScaler(copy=False))):
        model = make_pipeline(make_union("passthrough", part), LogisticRegression())
        with pytest.raises(ValueError, match="may write into a column"):
            Encoding.of(model.fit(filled.astype({"m": float}), good))
