"""The model of a set that opposes an advice: it is in the set, and what is said of it is true."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_rows import draw_set, draw_world
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import ActionSet, ModelList, NormBall, RobustRecourse
from holdfast.actions import Ratio

TODAY = NormBall(p=1, radius=0.0)


@pytest.fixture(scope="module")
def bank():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "months": rng.integers(6, 61, size=400),
            "age": rng.integers(19, 75, size=400),
            "savings": rng.choice(["none", "some", "much"], size=400),
        }
    )
    worth = table["savings"].map({"none": -1.0, "some": 0.0, "much": 1.0})
    good = 0.02 * table["age"] - 0.06 * table["months"] + worth + rng.logistic(size=400) > -1
    columns = make_column_transformer(
        (StandardScaler(), ["months", "age"]), (OneHotEncoder(), ["savings"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, good)
    actions = ActionSet.from_data(table, immutable=["age"])
    people = table[model.predict_proba(table)[:, 1] < 0.3].iloc[:4]
    return model, actions, people


def advice(bank, **other):
    model, actions, people = bank
    asked = {"robust_to": TODAY, "actions": actions, "guarantee": 0.6, "n_jobs": 1}
    return RobustRecourse(model, **(asked | other)).recommend(people), people.index[0]


def changed(bank, changes, intercept=0.0):
    """A list with one more model: today's with some coefficients moved."""
    classifier = bank[0][-1]
    coef = classifier.coef_[0].copy()
    for column, value in changes.items():
        coef[column] = value(coef[column]) if callable(value) else value
    return ModelList([(coef, float(classifier.intercept_[0]) + intercept)])


# ------------------------------------------------------------------ what it is


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["1", "2", "inf", "ellipsoid", "list"]))
def test_it_is_the_worst_model_of_the_set_and_its_differences_add_up(seed, kind):
    rng = np.random.default_rng(seed)
    world = draw_world(rng, n_numbers=2)
    models = draw_set(rng, kind, world)
    people = world.table.iloc[:12]
    result = RobustRecourse(
        world.pipeline, robust_to=TODAY, actions=world.actions, guarantee=0.6, n_jobs=1
    ).recommend(people)
    target = math.log(0.6 / 0.4)
    for label in people.index:
        if not result.ways(label):
            continue
        way, point = result.ways(label)[0], result.encoded(label)
        worst = models.worst_score(point, world.coef, world.intercept)[0]
        opposing = result.opposing(label, models)
        assert (opposing is None) == (worst >= target)
        if opposing is None:
            continue
        own = opposing.coef @ point + opposing.intercept
        assert own == pytest.approx(worst, rel=1e-9, abs=1e-9)
        assert opposing.worst_case_validity == pytest.approx(1.0 / (1.0 + math.exp(-worst)))
        drop = sum(each.drop for each in opposing.differences)
        assert drop == pytest.approx(way.score - worst, rel=1e-9, abs=1e-9)
        if kind not in ("ellipsoid", "list"):
            far = models.distance(world.coef, world.intercept, opposing.coef, opposing.intercept)
            assert far[0] <= models.radius * (1.0 + 1e-9)
        drops = [each.drop for each in opposing.differences]
        assert drops == sorted(drops, reverse=True)


def test_by_default_it_is_asked_of_the_set_of_the_advice(bank):
    result, label = advice(bank, robust_to=NormBall(2, 0.1))
    assert result.opposing(label) is None  # that is what the guarantee says
    assert result.opposing(label, NormBall(2, 0.5)) is not None
    assert result.opposing(label, TODAY) is None


def test_what_is_asked_wrongly_is_said(bank):
    result, label = advice(bank)
    with pytest.raises(ValueError, match="has 1 option; there is no option 2"):
        result.opposing(label, NormBall(2, 0.5), option=2)
    with pytest.raises(TypeError, match=r"robust_to = 0\.5 is not a set of models"):
        result.opposing(label, 0.5)


# ------------------------------------------------------------------ what is said of it


def test_a_slope_is_compared_in_any_unit(bank):
    result, label = advice(bank)
    after = result.after().loc[label]
    for times, words in (
        (1.14, "counts months 14% more heavily"),
        (0.8, "counts months 20% less heavily"),
        (3.0, "counts months 3 times as heavily"),
        (0.0, "counts months not at all"),
        (-0.5, "counts months in the opposite direction"),
    ):
        opposing = result.opposing(label, changed(bank, {0: lambda w, k=times: k * w}, -5.0))
        said = {each.name: each for each in opposing.differences}["months"]
        assert said.words == words
        scaler = bank[0][0].transformers_[0][1]
        mean, size = float(scaler.mean_[0]), float(scaler.scale_[0])
        slope = bank[0][-1].coef_[0][0] / size  # of a raw month
        assert said.drop == pytest.approx((1.0 - times) * slope * (after["months"] - mean))


def test_a_level_counts_for_less(bank):
    result, label = advice(bank)
    level = result.after().loc[label, "savings"]
    column = 2 + sorted(["none", "some", "much"]).index(level)
    opposing = result.opposing(label, changed(bank, {column: lambda w: w - 1.0}))
    assert opposing.differences[0].name == "savings"
    assert opposing.differences[0].drop == pytest.approx(1.0)
    assert opposing.explain("the plain advice") == (
        f"One of these models gives the plain advice a chance of {opposing.gives}, and would "
        f"refuse it: it gives less credit for savings = {level}."
    )


def test_the_intercept_is_the_same_for_everybody(bank):
    result, label = advice(bank)
    opposing = result.opposing(label, changed(bank, {}, intercept=-0.2))
    assert not opposing.is_refusal  # 60% was asked for, and 55% is an approval
    assert opposing.explain() == (
        f"One of these models gives this advice a chance of {opposing.gives}, less than the 60% "
        "asked for: it is stricter with everybody."
    )


def test_at_most_three_features_are_named_and_none_that_is_protected(bank):
    result, label = advice(bank)
    opposing = result.opposing(label, NormBall(math.inf, 0.4))
    words = opposing.explain()
    assert 1 <= len(re.findall(r"counts|is stricter", words)) <= 3
    without = replace(opposing, protected=frozenset({"savings", "months", "age"})).explain()
    assert "savings" not in without
    assert "months" not in without
    assert without.endswith("it is stricter with everybody.")
    for each in opposing.differences:
        assert each.drop > 0.0 or each.words not in words


def test_what_is_computed_from_something_protected_is_not_named(bank):
    table = bank[2].assign(share=lambda people: people["months"] / people["age"])
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(table[["months", "age", "share"]], [True, False] * 2)
    model[-1].coef_, model[-1].intercept_ = np.array([[-1.0, 0.5, -2.0]]), np.array([-3.0])
    table = table[["months", "age", "share"]]
    actions = ActionSet.from_data(table, protected=["age"])
    actions.derived.append(Ratio("share", of="months", to="age"))
    asked = {"robust_to": TODAY, "guarantee": 0.5, "n_jobs": 1}
    result = RobustRecourse(model, actions=actions, **asked).recommend(table)
    label = next(each for each in table.index if result.ways(each))
    opposing = result.opposing(label, NormBall(1, 0.5))
    assert opposing.differences[0].name == "share"
    assert "share" in replace(opposing, protected=frozenset()).explain()
    assert "share" not in opposing.explain()


def test_margins_are_refused_without_a_number(bank):
    result, label = advice(bank, loss="hinge", guarantee=0.5)
    opposing = result.opposing(label, NormBall(math.inf, 0.4))
    assert math.isnan(opposing.worst_case_validity)
    assert opposing.explain().startswith("One of these models would refuse this advice: it ")


def test_a_price_is_opposed_by_who_refuses(bank):
    result, label = advice(bank, guarantee=None, cost_weight=0.02)
    opposing = result.opposing(label, NormBall(math.inf, 2.0))
    assert opposing.is_refusal
    assert opposing.wanted == ""
