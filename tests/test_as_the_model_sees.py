"""What people are, as the very model sees them: markers of the missing, narrow types, its input."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.models import as_model

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
