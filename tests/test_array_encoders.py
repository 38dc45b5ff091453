"""Encoders asked apart, with arrays, say to the last bit what the pipeline says; or it is asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from holdfast import ActionSet, NormBall, RobustRecourse
from holdfast.models.encoding import Encoding

NUMBERS, TEXTS = ["debt", "income", "age"], ["home", "job"]


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "home": rng.choice(["own", "rent", "free"], n),
            "debt": rng.lognormal(8.0, 1.0, n).round(2),
            "income": rng.integers(10, 99, n),
            "job": rng.choice(["a", "b"], n),
            "age": rng.integers(20, 70, n).astype(float),
        }
    )


def fitted(step, table):
    rng = np.random.default_rng(1)
    outcome = rng.random(len(table)) < 0.5
    return make_pipeline(step, LogisticRegression()).fit(table, outcome)


def count_calls(monkeypatch):
    """Count how often a ColumnTransformer itself is asked."""
    calls, transform = [], ColumnTransformer.transform

    def counted(self, X, **parameters):
        calls.append(len(X))
        return transform(self, X, **parameters)

    monkeypatch.setattr(ColumnTransformer, "transform", counted)
    return calls


APART = {
    "usual": ((StandardScaler(), NUMBERS), (OneHotEncoder(), TEXTS)),
    "other order": ((OneHotEncoder(), TEXTS), (RobustScaler(), NUMBERS)),
    "dense": ((MinMaxScaler(), NUMBERS), (OneHotEncoder(sparse_output=False, drop="first"), TEXTS)),
    "ordinal": ((OrdinalEncoder(), TEXTS), (StandardScaler(), ["income"]), ("drop", ["debt"])),
    "one by one": ((StandardScaler(), ["debt"]), (OneHotEncoder(), ["job"]), (MinMaxScaler(), [4])),
    "pipelines": (
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), TEXTS),
    ),
    "as they are": ((FunctionTransformer(), ["age"]), (OneHotEncoder(), TEXTS)),
    "bins": ((KBinsDiscretizer(4), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), TEXTS)),
    "power": ((PowerTransformer(), NUMBERS), (TargetEncoder(random_state=0), TEXTS)),
    "writes into its input": ((StandardScaler(copy=False), NUMBERS), (OneHotEncoder(), TEXTS)),
}
AT_ONCE = {
    "functions by name": ((FunctionTransformer(np.log1p), NUMBERS), (OneHotEncoder(), TEXTS)),
    "types mixed": (
        (OneHotEncoder(handle_unknown="ignore"), ["home", "income"]),
        (StandardScaler(), ["debt"]),
    ),
}


@pytest.mark.parametrize("name", [*APART, *AT_ONCE])
def test_they_say_what_the_pipeline_says(name, monkeypatch):
    step = make_column_transformer(*(APART | AT_ONCE)[name])
    model = fitted(step, people())
    encoding, calls = Encoding.of(model), count_calls(monkeypatch)
    for seed in range(1, 6):
        table = people(20, seed)
        del calls[:]
        ours = encoding.encode(table)
        assert bool(calls) == (seed == 1 or name in AT_ONCE)  # of the first rows both are asked
        theirs = model[0].transform(table)
        theirs = theirs.toarray() if hasattr(theirs, "toarray") else theirs
        np.testing.assert_array_equal(ours, theirs)
        assert ours.flags.c_contiguous


def test_rows_that_are_not_plain_are_left_to_the_pipeline(monkeypatch):
    step = make_column_transformer(
        (StandardScaler(), NUMBERS),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), TEXTS),
    )
    model = fitted(step, people())
    encoding, calls = Encoding.of(model), count_calls(monkeypatch)
    encoding.encode(people(5))
    del calls[:]
    table = people(5)
    encoding.encode(table)
    assert not calls
    table.loc[2, "home"] = "tent"
    points = encoding.encode(table)
    assert calls == [5]
    np.testing.assert_array_equal(points, step.transform(table))


@pytest.mark.parametrize(
    "step",
    [
        make_column_transformer(*APART["dense"]).set_output(transform="pandas"),
        make_column_transformer((OneHotEncoder(dtype=np.float32), TEXTS)),
        ColumnTransformer(
            [("n", StandardScaler(), NUMBERS), ("t", OneHotEncoder(), TEXTS)],
            transformer_weights={"n": 0.5},
        ),
    ],
    ids=["tables", "single precision", "weights"],
)
def test_what_they_would_not_give_is_asked_of_the_step(step, monkeypatch):
    table = people()
    model = fitted(step, table)
    encoding, calls = Encoding.of(model), count_calls(monkeypatch)
    for _ in range(3):
        encoding.encode(table)
    assert len(calls) == 3


def test_encoders_that_say_something_else_are_not_believed(monkeypatch):
    model = fitted(make_column_transformer(*APART["usual"]), people())
    encoding = Encoding.of(model)
    transform = StandardScaler.transform

    def by_name(self, X, copy=None):
        made = transform(self, X, copy=copy)
        return made if hasattr(self, "feature_names_in_") else np.nextafter(made, np.inf)

    monkeypatch.setattr(StandardScaler, "transform", by_name)
    calls = count_calls(monkeypatch)
    for _ in range(3):
        np.testing.assert_array_equal(encoding.encode(people(7)), model[0].transform(people(7)))
    assert len(calls) == 6


def test_advice_is_the_same_the_first_time_and_later():
    """The first time all rows are asked of the pipeline, and then of its encoders."""
    table = people(200)
    model = fitted(make_column_transformer(*APART["usual"]), table)
    actions = ActionSet.from_data(table, immutable=["age"])
    asked = {"robust_to": NormBall(1, 0.05), "actions": actions, "guarantee": 0.5}
    recourse = RobustRecourse(model, **asked)
    first = recourse.recommend(table)
    for again in (recourse.recommend(table), recourse.recommend(table)):
        pd.testing.assert_frame_equal(again.to_frame(), first.to_frame(), check_exact=True)
    assert model[0].transformers_[0][1].feature_names_in_.tolist() == NUMBERS
