"""Action sets: settings, drafts, problems against the raw-unit rules, and decoding."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from holdfast import NormBall
from holdfast.actions import (
    ActionSet,
    AtMost,
    CategoryFeature,
    Follows,
    Linear,
    NumberFeature,
    check,
    decode,
    pose_problem,
    raw_cost,
)
from holdfast.datasets import load_german
from holdfast.models.encoding import Encoding

BALL = NormBall(1, 0.1)
LEVELS = ["low", "middle", "high", "odd"]


def small_set() -> ActionSet:
    return ActionSet(
        [
            NumberFeature("age", unit="years", lower=18, upper=80, integer=True),
            NumberFeature("months", unit="months"),
            CategoryFeature("savings", LEVELS),
        ]
    )


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("age", {"lower": 90}, "age: lower = 90 is above upper = 80"),
        ("age", {"lower": 18.2, "upper": 18.8}, "there is no whole number between lower = 18.2"),
        ("age", {"lower": math.nan}, "age: lower = nan is not allowed; it must be a finite number"),
        ("age", {"upper": math.inf}, "a finite number, or None for no bound"),
        ("age", {"step": 0}, "age: step = 0 is not allowed; it must be a positive number"),
        ("age", {"step": "100"}, "change; '100' is text, not a number"),
        ("age", {"step": 0.5}, "step = 0.5 is not allowed; it must be a whole number, because"),
        ("age", {"cost": 0.0}, "age: cost = 0.0 is not allowed; it must be a positive number"),
        ("age", {"cost": None}, "age: cost = None is not allowed"),
        ("age", {"cost": True}, "age: cost = True is not allowed"),
        (
            "age",
            {"max_increase": -1},
            "max_increase = -1 is not allowed; it must be a positive number or 0",
        ),
        ("age", {"direction": "sideways"}, "direction = 'sideways' is not allowed; it must be one"),
        ("age", {"immutable": "yes"}, "immutable = 'yes' is not allowed; it must be True or False"),
        ("age", {"unit": 3}, "age: unit = 3 is not allowed; it must be a string"),
        ("age", {"moves": {}}, "feature 'age' has no setting 'moves'; available: unit, immutable"),
        ("age", {"name": "x"}, "feature 'age' has no setting 'name'; the name cannot be changed"),
        ("savings", {"lower": 3}, "feature 'savings' has no setting 'lower'"),
        ("savings", {"direction": "up"}, "savings: direction = 'up' needs an order"),
        ("savings", {"cost_by": "step"}, "savings: cost_by = 'step' needs an order"),
        (
            "savings",
            {"order": ["low", "best"]},
            "order names the level 'best', which is not one of",
        ),
        ("savings", {"order": ["low", "low"]}, "it must be a list of different levels"),
        ("savings", {"order": "low"}, "order = 'low' is not allowed; it must be a list of levels"),
        ("savings", {"allowed": []}, "allowed = [] is not allowed"),
        (
            "savings",
            {"moves": ["low"]},
            "it must be a dict that maps each level to a list of levels",
        ),
        ("savings", {"moves": {"best": []}}, "moves names the level 'best', which is not one of"),
        (
            "savings",
            {"moves": {"low": ["best"]}},
            "moves names the level 'best', which is not one of",
        ),
        ("savings", {"moves": {"low": "high"}}, "moves['low'] = 'high' is not allowed"),
        ("savings", {"cost": -1}, "savings: cost = -1 is not allowed; it must be a positive"),
        (
            "savings",
            {"cost": {"low": 1}},
            "it must be a number, or a dict that maps pairs (from, to)",
        ),
        ("savings", {"cost": {("low", "best"): 1}}, "cost names the level 'best'"),
        ("savings", {"cost": {("low", "high"): 0}}, "cost[('low', 'high')] = 0 is not allowed"),
        ("savings", {"levels": []}, "levels = [] is not allowed"),
        ("savings", {"levels": ["a", None]}, "it must be texts, numbers or booleans"),
        (
            "savings",
            {"order": LEVELS, "cost_by": "step", "cost": {("low", "high"): 1}},
            "cost_by = 'step' needs one cost",
        ),
    ],
)
def test_wrong_settings_are_refused_when_set_and_leave_no_trace(name, wrong, message):
    actions = small_set()
    with pytest.raises(ValueError, match=re.escape(message)):
        actions.set(name, **wrong)
    if len(wrong) == 1:
        with pytest.raises(ValueError, match=re.escape(message)):
            setattr(actions[name], *next(iter(wrong.items())))
    assert actions == small_set()


def test_unknown_names_are_errors():
    actions = small_set()
    with pytest.raises(ValueError, match="'agee' is not known; did you mean 'age'"):
        actions["agee"]
    with pytest.raises(ValueError, match="'saving' is not known; did you mean 'savings'"):
        actions.set("saving", immutable=True)
    with pytest.raises(ValueError, match="no setting 'max_change'; did you mean 'max_changes'"):
        actions.max_change = 3
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match=r"max_changes = .* is not allowed"):
            actions.max_changes = wrong
    with pytest.raises(ValueError, match="two features named 'a'"):
        ActionSet([NumberFeature("a"), NumberFeature("a")])
    with pytest.raises(TypeError, match="neither a NumberFeature nor"):
        ActionSet(["a"])
    with pytest.raises(ValueError, match="is not a string"):
        NumberFeature("")


def test_settings_can_be_set_together():
    actions = small_set()
    actions.set("age", lower=90, upper=100)  # one at a time they would contradict each other
    assert (actions["age"].lower, actions["age"].upper) == (90, 100)
    actions.set("savings", order=LEVELS[:3], direction="up", cost=np.float64(2), cost_by="step")
    assert actions["savings"].order == ("low", "middle", "high")
    assert actions["savings"].switch_cost("low", "high") == 4.0


def test_links_are_checked_when_they_come_in():
    actions = small_set()
    actions.links.append(AtMost("months", "age"))
    actions.links = [Follows("age", of="months", by=1 / 12)]
    for wrong, message in [
        (AtMost("agee", "age"), "did you mean 'age'"),
        (AtMost("age", "savings"), "'savings' is not a number"),
        (Linear({"age": 1, "savings": 2}, at_most=3), "'savings' is not a number"),
        ("age <= months", "is not a link"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            actions.links.append(wrong)
        with pytest.raises((TypeError, ValueError), match=message):
            actions.links[0] = wrong
    with pytest.raises(
        ValueError, match=r"age: it must be able to change, because it is part of F"
    ):
        actions["age"].immutable = True
    assert not actions["age"].immutable
    with pytest.raises(
        ValueError, match=r"age: it must be able to change, because it is part of F"
    ):
        actions["age"].protected = True
    del actions.links[0]
    actions["age"].immutable = True
    with pytest.raises(ValueError, match="'age' may not change, so it cannot follow"):
        actions.links.append(Follows("age", of="months"))
    with pytest.raises(ValueError, match="links a feature with itself"):
        AtMost("a", "a")
    with pytest.raises(ValueError, match="by = 0 is not allowed"):
        Follows("a", of="b", by=0)


def test_copies_are_independent():
    actions = small_set()
    actions.links.append(AtMost("months", "age"))
    for twin in (copy.deepcopy(actions), pickle.loads(pickle.dumps(actions))):
        assert twin == actions
        twin["age"].immutable = True
        assert twin != actions
        with pytest.raises(ValueError, match="is not one of"):
            twin["savings"].allowed = ["best"]


def test_what_was_changed_behind_our_back_is_noticed():
    actions = small_set()
    actions["savings"].moves = {"low": ["high"]}
    actions["savings"].moves["low"] = ["best"]
    with pytest.raises(ValueError, match="'best', which is not one of"):
        actions.validate()


# ---------------------------------------------------------------- the draft


def test_the_draft_is_what_was_seen():
    table = pd.DataFrame(
        {
            "age": [30, 20, 50, 40],
            "amount": [1.5, 2.5, np.nan, 3.5],
            "nullable": pd.array([1, None, 3, 2], dtype="Int64"),
            "home": ["rent", "own", None, "own"],
            "grade": pd.Categorical(["b", "a", "b", "a"], categories=["c", "b", "a"], ordered=True),
            "flag": [True, True, True, True],
            "mixed_none": np.array([3, None, 1, 2], dtype=object),
        }
    )
    actions = ActionSet.from_data(table, switch_cost=2.5, units={"age": "years"})
    assert list(actions.to_frame()["type"]) == [
        *("whole number", "number", "whole number", "category", "category", "boolean"),
        "whole number",
    ]
    assert actions["age"] == NumberFeature(
        "age",
        unit="years",
        lower=20,
        upper=50,
        possible_lower=0,
        integer=True,
        cost=1 / np.std([30, 20, 50, 40]),
        fixed_cost=0.1,
    )
    assert actions["amount"].step == 0.1
    assert (actions["amount"].lower, actions["amount"].upper) == (1.5, 3.5)
    assert actions["home"].levels == ("own", "rent")
    assert actions["grade"].order == ("b", "a")
    assert actions["flag"].levels == (False, True)
    assert actions["home"].cost == 2.5
    assert not any(actions[name].immutable for name in actions)
    assert ActionSet.from_data(table, categories=["age"])["age"].levels == (20, 30, 40, 50)


def test_costs_from_the_data():
    values = np.array([1.0, 2.0, 2.0, 3.0, 10.0])
    table = pd.DataFrame({"x": values, "same": 5.0, "most": [0.0, 0.0, 0.0, 0.0, 5.0]})
    expected = {
        "std": 1 / values.std(),
        "mad": 1.0,
        "percentile": 1 / (np.percentile(values, 90) - np.percentile(values, 10)),
        "unit": 1.0,
    }
    for costs, cost in expected.items():
        actions = ActionSet.from_data(table, costs=costs)
        assert actions["x"].cost == pytest.approx(cost)
        assert actions["same"].cost == 1.0
    # a spread of 0 falls back to the standard deviation
    assert ActionSet.from_data(table, costs="mad")["most"].cost == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ({"a": [1]}, {"costs": "variance"}, "costs = 'variance' is not known; available: std, mad"),
        ({"a": [None]}, {}, "column 'a' has no values"),
        ({"a": []}, {}, "the table has no rows"),
        ({"a": ["x", 1]}, {}, "column 'a' mixes int and str"),
        ({"a": pd.to_datetime(["2020-01-01"])}, {}, "column 'a' holds datetime64"),
        ({"a": [np.inf]}, {}, "column 'a' holds infinite values"),
        ({3: [1]}, {}, "column 3: a column name must be a string"),
        ({"a": [1]}, {"units": {"b": "years"}}, "units: column 'b' is not known"),
        ({"a": [1]}, {"categories": ["b"]}, "categories: column 'b' is not known"),
    ],
)
def test_tables_that_give_no_draft(table, options, message):
    with pytest.raises(ValueError, match=message):
        ActionSet.from_data(pd.DataFrame(table), **options)


@pytest.mark.parametrize(
    ("values", "step", "integer"),
    [
        ([3.0, np.nan, 5.0, 8.0], None, True),  # whole numbers in spite of a missing one
        ([0.25, 0.5, 0.31], 0.01, False),
        ([1200.5, 800.0, 430.5], 0.1, False),
        (np.random.default_rng(0).normal(size=50), 0.001, False),
        (np.random.default_rng(0).normal(size=50) * 3e4, 100.0, False),
        (np.random.default_rng(0).normal(size=50) * 2e-7, 1e-9, False),
        ([0.1, 0.1, 0.1], 0.1, False),
        ([0.1 + 0.2, 0.7], 0.1, False),
    ],
)
def test_the_draft_proposes_steps_that_people_can_type(values, step, integer):
    feature = ActionSet.from_data(pd.DataFrame({"x": values}))["x"]
    assert (feature.step, feature.integer) == (step, integer)
    if integer:
        assert isinstance(feature.lower, int)


def test_the_draft_knows_what_cannot_be_and_who_is_protected():
    table = pd.DataFrame({"age": [30, 40], "debt": [-1.5, 2.5], "sex": ["f", "m"]})
    actions = ActionSet.from_data(table, protected=["age", "sex"], fixed_cost=0.3)
    assert (actions["age"].possible_lower, actions["debt"].possible_lower) == (0, None)
    assert actions["age"].protected
    assert actions["sex"].protected
    assert not actions["debt"].protected
    assert actions["debt"].fixed_cost == 0.3
    with pytest.raises(ValueError, match="protected: column 'agee' is not known; did you mean"):
        ActionSet.from_data(table, protected=["agee"])
    fixed = ActionSet.from_data(table, immutable=["age"], protected=["sex"])
    assert [name for name in fixed if fixed[name].immutable] == ["age"]
    assert [name for name in fixed if fixed[name].stays] == ["age", "sex"]
    with pytest.raises(ValueError, match="immutable: column 'agee' is not known; did you mean 'a"):
        ActionSet.from_data(table, immutable=["agee"])
    with pytest.raises(ValueError, match="immutable = 'age' is not allowed; it must be a list"):
        ActionSet.from_data(table, immutable="age")
    with pytest.raises(ValueError, match="possible_lower = 0 is above lower = -3"):
        actions.set("age", lower=-3)
    for wrong in ("direction", ["dirction"], 3):
        with pytest.raises(ValueError, match=r"debt: physical = .* is not allowed"):
            actions["debt"].physical = wrong
    with pytest.raises(ValueError, match="fixed_cost = -1 is not allowed"):
        actions["debt"].fixed_cost = -1


# ---------------------------------------------------------------- the checker


@pytest.mark.parametrize(
    ("settings_", "before", "after", "said"),
    [
        ({"immutable": True}, 30, 33, "age rises by 3 years, but may not change"),
        ({"direction": "up"}, 30, 29, "age falls by 1 years, but may only rise"),
        ({"direction": "down"}, 30, 31, "age rises by 1 years, but may only fall"),
        ({"max_increase": 2}, 30, 33, "age rises by 3 years; at most 2 are allowed"),
        ({"max_decrease": 2}, 30, 27, "age falls by 3 years; at most 2 are allowed"),
        ({"upper": 75}, 30, 80, "age = 80 years is above 75, its upper bound"),
        ({"lower": 19}, 30, 18, "age = 18 years is below 19, its lower bound"),
        ({"upper": 75}, 78, 79, "age = 79 years is above 75, its upper bound"),
        ({"upper": 75}, 78, 77, None),  # outside already: not further out
        ({"integer": True}, 30.5, 31.5, "age = 31.5 years is not a whole number"),
        ({"integer": True}, 30.5, 31, None),
        ({"integer": True}, 30.5, 30.5, None),
        ({"step": 12}, 7, 19, "age = 19 years is not a multiple of 12"),  # from 0, not from 7
        ({"step": 12}, 7, 24, None),
        ({"step": 12}, 7, 7, None),
        ({"step": 0.01}, 1e6, 1e6 + 0.005, "age = 1000000.005 years is not a multiple of 0.01"),
        ({"step": 0.01}, 1e6, 1e6 + 0.01, None),
        ({"step": 0.1}, 0.1, 0.7, None),
        ({"protected": True}, 30, 33, "age rises by 3 years, but may not change"),
        ({"possible_lower": 0}, 3, -1, "age = -1 years is below 0, the lowest possible value"),
        (
            {"possible_upper": 120},
            3,
            130,
            "age = 130 years is above 120, the highest possible value",
        ),
        ({}, 30, "old", "age = 'old' is not a finite number"),
        ({}, 30, math.nan, "age = nan is not a finite number"),
    ],
)
def test_the_checker_speaks(settings_, before, after, said):
    actions = ActionSet([NumberFeature("age", unit="years", **settings_)])
    found = check(actions, {"age": before}, pd.DataFrame({"age": [after]}))
    assert found == ([] if said is None else [said])


def test_the_checker_on_categories_links_and_whole_sets():
    actions = small_set()
    person = pd.Series({"age": 30, "months": 12.0, "savings": "middle", "id": 7})
    assert check(actions, person, person) == []

    def say(**changes):
        return check(actions, person, {**person, **changes})

    assert say(savings="high", age=31) == []
    assert say(id=8) == ["id changes, but is not a feature of the action set"]
    assert say(extra=1) == ["extra changes, but is not a feature of the action set"]
    assert check(actions, person, person.drop("age")) == ["age is missing from the advice"]
    actions.set("savings", order=LEVELS[:3], direction="up")
    assert say(savings="high") == []
    assert say(savings="low")[0].endswith("to 'low', but may only move up in the order")
    assert "levels of its order" in say(savings="odd")[0]
    assert "has no level 'best'" in say(savings="best")[0]
    actions.set("savings", order=None, direction="any", allowed=["odd"])
    assert say(savings="high")[0].endswith("but may only become 'odd'")
    actions.set("savings", allowed=None, moves={"middle": ["high"]})
    assert say(savings="odd")[0].endswith("but may become 'high' from there")
    actions.max_changes = 1
    assert say(savings="high", age=31) == ["2 features change ('age', 'savings'); at most 1 may"]
    actions.max_changes = None
    actions.links.append(AtMost("months", "age"))
    assert say(months=31.0) == ["months = 31 is above age = 30"]
    actions.links = [Follows("months", of="age", by=12)]
    assert say(months=24.0, age=31) == []
    assert say(months=23.0, age=31) == [
        "months changes by 11, but follows age, which changes by 1: not by 12"
    ]
    actions.links = [Linear({"months": -1, "age": 0.5}, at_most=4)]
    assert say(months=11.0) == []
    assert say(months=10.5) == ["-months + 0.5 age = 4.5 is above 4"]
    actions.links = [Linear({"months": 1, "age": 0.5}, at_most=10)]  # it is 27 now
    assert say(months=11.0, age=32) == []
    assert say(months=12.5) == ["months + 0.5 age = 27.5 is above 10"]
    with pytest.raises(ValueError, match="one person at a time"):
        check(actions, pd.DataFrame({"age": [1, 2]}), person)
    with pytest.raises(TypeError, match="int is not a row"):
        check(actions, 3, person)


# ---------------------------------------------------------------- problems, by brute force

RAW = {"a": np.arange(-2.0, 8.5, 0.5), "b": np.arange(-1.0, 6.5, 0.5), "c": LEVELS, "d": [0, 1, 2]}


@st.composite
def number_settings(draw):
    bounds = sorted(draw(st.lists(st.integers(-2, 14), min_size=2, max_size=2)))
    bound = [None if draw(st.booleans()) else x / 2 for x in bounds]
    whole = draw(st.booleans())
    if whole and None not in bound and math.ceil(bound[0]) > math.floor(bound[1]):
        whole = False
    far = st.sampled_from([None, None, 0, 0.5, 1, 2.5, 4])
    ends = [0.0 if end is None else end for end in (bound[0], bound[1])]
    return {
        "immutable": draw(st.sampled_from([False] * 5 + [True])),
        "protected": draw(st.sampled_from([False] * 5 + [True])),
        "possible_lower": draw(st.sampled_from([None, min(-0.5, *ends)])),
        "possible_upper": draw(st.sampled_from([None, max(5.5, *ends)])),
        "direction": draw(st.sampled_from(["any", "any", "up", "down"])),
        "lower": bound[0],
        "upper": bound[1],
        "max_increase": draw(far),
        "max_decrease": draw(far),
        "step": draw(st.sampled_from([None, None, 1, 2] if whole else [None, 0.5, 1.5, 2])),
        "integer": whole,
        "cost": draw(st.sampled_from([0.25, 1.0, 3.5])),
        "fixed_cost": draw(st.sampled_from([0, 0.5])),
        "provide_cost": draw(st.sampled_from([None, 0, 0.5])),
        "physical": draw(st.lists(st.sampled_from(["direction", "lower"]), max_size=2)),
    }


@st.composite
def category_settings(draw, levels):
    some = st.lists(st.sampled_from(levels), unique=True, min_size=1)
    order = draw(st.none() | some)
    cost: object = draw(st.sampled_from([1.0, 2.5, "pairs"]))
    pairs = list(itertools.permutations(levels, 2))
    by_step = order is not None and cost != "pairs" and draw(st.booleans())
    return {
        "immutable": draw(st.sampled_from([False] * 5 + [True])),
        "protected": draw(st.sampled_from([False] * 5 + [True])),
        "fixed_cost": draw(st.sampled_from([0, 0.5])),
        "provide_cost": draw(st.sampled_from([None, 0, 0.5])),
        "physical": draw(st.lists(st.sampled_from(["moves", "allowed"]), max_size=2)),
        "order": order,
        "direction": "any" if order is None else draw(st.sampled_from(["any", "up", "down"])),
        "moves": draw(st.none() | st.dictionaries(st.sampled_from(levels), some)),
        "allowed": draw(st.none() | some),
        "cost": {pair: 1.0 + k for k, pair in enumerate(pairs)} if cost == "pairs" else cost,
        "cost_by": "step" if by_step else "switch",
    }


@st.composite
def action_sets(draw):
    a, b = draw(number_settings()), draw(number_settings())
    links = draw(
        st.lists(
            st.sampled_from(
                [
                    AtMost("a", "b"),
                    Follows("a", of="b", by=-0.5),
                    AtMost("b", "a"),
                    Linear({"a": 2.0, "b": 1.5}, at_most=7.25),
                    Linear({"b": -1, "a": 0.25}, at_most=-1),
                ]
            ),
            max_size=2,
        )
    )
    if any(isinstance(link, Follows) for link in links):
        a["immutable"] = a["protected"] = False
    features = [
        NumberFeature("a", **a),
        NumberFeature("b", **b),
        CategoryFeature("c", LEVELS, **draw(category_settings(LEVELS))),
        CategoryFeature("d", [0, 1, 2], **draw(category_settings([0, 1, 2]))),
    ]
    return ActionSet(features, links, draw(st.sampled_from([None, None, 1, 2, 3])))


def small_encoding(one_hot, weight):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(values, 60) for name, values in RAW.items()})
    columns = ColumnTransformer(
        [
            ("c", OneHotEncoder() if one_hot else OrdinalEncoder(), ["c"]),
            ("n", StandardScaler(), ["a", "b"]),
            ("d", MinMaxScaler((-1, 1)), ["d"]),
        ],
        transformer_weights={"n": weight},
    )
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, rng.random(60) > 0.5)
    return Encoding.of(pipeline)


ENCODINGS = [small_encoding(True, 1.0), small_encoding(False, -0.3)]


def encoded_answer(posed, candidates):
    """Which candidates the discrete problem allows, and what they cost, by its definition."""
    problem, links = posed.problem, posed.links
    base = problem.base
    points = posed.encoding.encode(candidates)
    start = np.broadcast_to(base.X[0], points.shape)
    fine = np.ones(len(points), dtype=bool)
    cost, changes = np.zeros(len(points)), np.zeros(len(points), dtype=int)
    grouped = np.concatenate([group.columns for group in problem.groups])
    fixed = np.zeros(base.X.shape) if problem.fixed_costs is None else problem.fixed_costs
    for j in np.setdiff1d(np.arange(points.shape[1]), grouped):
        x = points[:, j]
        stays = np.abs(x - start[:, j]) < 1e-9
        inside = (x >= base.lower[0, j] - 1e-9) & (x <= base.upper[0, j] + 1e-9)
        if problem.step[0, j] > 0:
            k = (x - problem.anchor[0, j]) / problem.step[0, j]
            inside &= np.abs(k - np.round(k)) < 1e-6
        fine &= stays | inside
        moved = base.feature_costs[0, j] * np.abs(x - start[:, j]) + fixed[0, j]
        cost += np.where(stays, 0.0, moved)
        changes += ~stays
    for g, group in enumerate(problem.groups):
        near = np.abs(points[:, None, group.columns] - group.levels).max(axis=2) < 1e-9
        assert (near.sum(axis=1) == 1).all()
        option = near.argmax(axis=1)
        cost += problem.level_costs[g][0, option]
        changes += option != problem.current[0, g]
    fine &= np.isfinite(cost)
    if problem.max_changes is not None:
        fine &= changes <= problem.max_changes
    rows = points @ links.matrix.T
    fine &= ((rows >= links.lower[0] - 1e-9) & (rows <= links.upper[0] + 1e-9)).all(axis=1)
    return fine, cost


@given(action_sets(), st.sampled_from(ENCODINGS), st.data())
@settings(max_examples=40, deadline=None)
def test_the_problem_allows_exactly_what_the_checker_allows(actions, encoding, data):
    person = {name: data.draw(st.sampled_from(list(values))) for name, values in RAW.items()}
    before = pd.DataFrame([person])
    posed = pose_problem(before, encoding, actions, robust_to=BALL)
    assert posed.refused == []
    base = posed.problem.base
    assert (base.lower <= base.X).all()
    assert (base.upper >= base.X).all()
    rows = base.X @ posed.links.matrix.T
    assert (posed.links.lower <= rows + 1e-12).all()
    assert (rows <= posed.links.upper + 1e-12).all()

    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    candidates = pd.DataFrame({name: rng.choice(values, 150) for name, values in RAW.items()})
    for name in RAW:  # most random candidates change too much
        keep = rng.random(150) < 0.6
        candidates.loc[keep, name] = person[name]
    candidates.loc[0] = person
    allowed, cost = encoded_answer(posed, candidates)
    assert allowed[0]
    for i in range(len(candidates)):
        after = candidates.iloc[[i]]
        said = check(actions, before, after)
        assert allowed[i] == (not said), (said, after)
        if allowed[i]:
            assert cost[i] == pytest.approx(raw_cost(actions, before, after), abs=1e-9)


@given(action_sets(), st.sampled_from(ENCODINGS), st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_decoded_is_what_was_encoded(actions, encoding, data):
    person = {name: data.draw(st.sampled_from(list(values))) for name, values in RAW.items()}
    before = pd.DataFrame([person])
    posed = pose_problem(before, encoding, actions, robust_to=BALL)
    problem = posed.problem
    stay = decode(posed, problem.base.X, problem.current)
    pd.testing.assert_frame_equal(stay, before, check_exact=True)

    target = {name: data.draw(st.sampled_from(list(values))) for name, values in RAW.items()}
    if check(actions, before, target):
        return
    wanted = pd.DataFrame([target])
    points = encoding.encode(wanted)
    chosen = [[list(posed.levels[n]).index(target[n]) for n in posed.levels]]
    dust = points * (1 + 1e-15)
    np.testing.assert_allclose(
        decode(posed, dust, chosen)[["a", "b"]], wanted[["a", "b"]], rtol=1e-12, atol=1e-12
    )
    after = decode(posed, points, chosen)
    assert check(actions, before, after) == []
    assert list(after["c"]) == list(wanted["c"])
    assert after["d"].dtype == before["d"].dtype
    for name in ("a", "b"):
        feature = actions[name]
        if feature.integer or feature.step is not None:
            assert after[name].iloc[0] == target[name]  # to the last bit


# ---------------------------------------------------------------- decoding


def posed_numbers(table, people=None, **features):
    actions = ActionSet.from_data(table)
    for name, given_ in features.items():
        actions.set(name, **given_)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    scaled.fit(table, np.arange(len(table)) % 2 == 1)
    people = table if people is None else people
    return pose_problem(people, Encoding.of(scaled), actions, robust_to=BALL)


def move(posed, **targets):
    """Encoded points in which the first person takes these raw values."""
    points = posed.problem.base.X.copy()
    for name, value in targets.items():
        number = posed.encoding[name]
        points[0, number.column] = number.encode(value)
    return decode(posed, points, posed.problem.current)


def test_types_are_kept_where_they_can_be():
    table = pd.DataFrame(
        {
            "int": [3, 5, 9],
            "small": np.array([3, 100, 90], dtype=np.int8),
            "nullable": pd.array([3, 5, 9], dtype="Int64"),
            "single": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "text": np.array([1, 2, 3], dtype=object),
        },
        index=["p", "q", "r"],
    )
    free = {"step": None}
    posed = posed_numbers(table, text={"integer": True}, small={"upper": 300}, single=free)
    after = move(posed, int=7 + 1e-10, small=6, nullable=4, single=0.25, text=2)
    assert after.dtypes.to_dict() == table.dtypes.to_dict()
    assert after.loc["p"].tolist() == [7, 6, 4, 0.25, 2]
    pd.testing.assert_frame_equal(after.loc[["q", "r"]], table.loc[["q", "r"]])
    after = move(posed, single=0.15, small=200)
    assert (after["single"].dtype, after["small"].dtype) == (np.float64, np.float64)
    assert after.loc["p", "small"] == 200.0
    assert after["int"].dtype == np.int64


def test_decimal_steps_leave_no_dust():
    table = pd.DataFrame({"rate": [0.1, 0.5, 2.0], "other": [1.0, 2.0, 3.0]})
    posed = posed_numbers(table, rate={"step": 0.1})
    for k in range(1, 20):
        assert move(posed, rate=0.1 + k * 0.1).loc[0, "rate"] == float(f"{0.1 * (k + 1):.1f}")


def test_bounds_hold_to_the_last_bit_in_raw_units():
    table = pd.DataFrame({"x": [0.1, 0.7, 1e6 / 3], "y": [1.0, 2.0, 3.0]})
    posed = posed_numbers(table, x={"step": None})
    points = posed.problem.base.X.copy()
    points[:, 0] = posed.problem.base.upper[:, 0] * (1 + 1e-13)
    after = decode(posed, points, posed.problem.current)
    assert after["x"].tolist() == [1e6 / 3] * 3


def test_only_rows_with_a_recourse_are_decoded():
    posed = posed_numbers(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [1, 2, 3]}))
    points = posed.problem.base.X.copy()
    points[1] = np.nan
    with pytest.raises(ValueError, match="person 1 has no recourse"):
        decode(posed, points, posed.problem.current)
    kept = decode(posed, points, posed.problem.current, rows=[True, False, True])
    assert list(kept.index) == [0, 2]
    with pytest.raises(ValueError, match=r"recourse has shape \(2, 2\)"):
        decode(posed, points[:2], posed.problem.current)


def test_a_pandas_category_learns_new_levels():
    table = pd.DataFrame({"c": pd.Categorical(["x", "y", "z"]), "n": [1.0, 2.0, 3.0]})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["c"])], remainder="passthrough")
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, [False, True, True])
    people = table.iloc[:1].assign(c=pd.Categorical(["x"]))
    posed = pose_problem(people, Encoding.of(pipeline), ActionSet.from_data(table), robust_to=BALL)
    assert list(decode(posed, posed.problem.base.X, [[2]])["c"]) == ["z"]


# ---------------------------------------------------------------- people and pipelines that differ


def test_people_who_cannot_be_used_have_their_reason_and_the_others_go_on():
    table = pd.DataFrame({"n": [1.0, 2.0, 3.0] * 4, "c": ["x", "y", "z"] * 4})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["c"])], remainder=StandardScaler())
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, np.arange(12) % 2 == 1)
    actions = ActionSet.from_data(table[table["c"] != "z"])
    people = pd.DataFrame(
        {"n": [9.0, "much", None, 1.0, 2.0], "c": ["x", "y", "x", "gold", "z"], "id": range(5)},
        index=list("pqrst"),
    )
    encoding = Encoding.of(pipeline)
    posed = pose_problem(people, encoding, actions, robust_to=BALL)
    assert posed.refused == [
        (1, "n = 'much': a finite number was expected"),
        (2, "n is missing"),
        (3, "c = 'gold': the encoder has never seen it, only 'x', 'y', 'z'"),
        (4, "c = 'z': the action set has no such level"),
    ]
    assert posed.positions.tolist() == [0]
    assert list(posed.people.index) == ["p"]
    # older than anybody in the data, and may stay
    problem = posed.problem.base
    j = encoding["n"].column
    assert problem.upper[0, j] == problem.X[0, j] == pytest.approx(encoding["n"].encode(9.0))
    assert problem.feature_names == ["c=x", "c=y", "c=z", "n"]
    assert posed.problem.level_costs[0].tolist() == [[0.0, 1.0, np.inf]]
    actions["c"].immutable = True
    assert pose_problem(people, encoding, actions, robust_to=BALL).positions.tolist() == [0, 4]
    nobody = pose_problem(people.iloc[1:3], encoding, actions, robust_to=BALL)
    assert nobody.problem.base.X.shape == (0, 4)
    assert len(decode(nobody, np.empty((0, 4)), np.empty((0, 1)))) == 0


def test_action_sets_that_do_not_fit_the_pipeline():
    table = pd.DataFrame({"n": [1, 2, 3], "c": ["x", "y", "z"], "unused": [1, 2, 3]})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["c", "n"])])
    pipeline = make_pipeline(columns, LogisticRegression()).fit(table, [False, True, True])
    encoding = Encoding.of(pipeline)
    draft = ActionSet.from_data(table)
    with pytest.raises(ValueError, match="n: the pipeline reads it as a category, but the action"):
        pose_problem(table, encoding, draft, robust_to=BALL)
    fitting = ActionSet.from_data(table.assign(more=1), encoding=encoding)
    assert fitting["n"].levels == (1, 2, 3)
    posed = pose_problem(table, encoding, fitting, robust_to=BALL)
    assert posed.fixed == {
        "unused": "the classifier reads no column made from it",
        "more": "the pipeline was not fitted on it",
    }
    with pytest.raises(ValueError, match=r"has no features for the columns \['c'\]"):
        pose_problem(table, encoding, ActionSet.from_data(table[["n"]]), robust_to=BALL)
    plain = Encoding.of(([1.0, 2.0], 0.0))
    two = ActionSet([NumberFeature("x0"), CategoryFeature("x1", ["a", "b"])])
    with pytest.raises(ValueError, match="x1: the pipeline reads it as a number, not as 'a'"):
        pose_problem(np.zeros((1, 2)), plain, two, robust_to=BALL)
    linked = ActionSet(
        [NumberFeature("x0"), NumberFeature("x1"), NumberFeature("y")], [AtMost("x0", "y")]
    )
    with pytest.raises(ValueError, match="the pipeline does not use 'y'"):
        pose_problem(np.zeros((1, 2)), plain, linked, robust_to=BALL)
    costly = ActionSet([NumberFeature("x0"), CategoryFeature("x1", [0, 1], cost={(0, 1): 2})])
    with pytest.raises(ValueError, match="x1: a switch from 1 to 0 is allowed but has no cost"):
        pose_problem(np.zeros((1, 2)), plain, costly, robust_to=BALL)


def test_scores_of_surrogates_follow_their_rows():
    actions = ActionSet([NumberFeature("x0")])
    people = np.array([[1.0], [np.nan], [3.0]])
    posed = pose_problem(
        people,
        Encoding.of(([1.0], 0.0)),
        actions,
        robust_to=BALL,
        coef=[[1.0], [2.0], [3.0]],
        intercept=[4.0, 5.0, 6.0],
    )
    assert posed.problem.base.coef.tolist() == [[1.0], [3.0]]
    assert posed.problem.base.intercept.tolist() == [4.0, 6.0]


def test_booleans_read_as_numbers_are_groups():
    actions = ActionSet([CategoryFeature("x0", [False, True])])
    posed = pose_problem(
        pd.DataFrame({"x0": [True, False]}), Encoding.of(([1.0], 0.0)), actions, robust_to=BALL
    )
    assert posed.problem.groups[0].levels.tolist() == [[0.0], [1.0]]
    after = decode(posed, [[0.0], [0.0]], [[0], [0]])
    assert after["x0"].dtype == bool
    assert after["x0"].tolist() == [False, False]


# ---------------------------------------------------------------- German Credit


def test_german_credit_from_the_table_to_the_problem_and_back():
    german = load_german()
    numbers = ["duration", "credit_amount", "age", "existing_credits"]
    categories = ["checking_status", "savings_status", "employment", "other_parties"]
    columns = ColumnTransformer(
        [
            ("number", StandardScaler(), numbers),
            ("category", OneHotEncoder(drop="first"), categories),
        ]
    )
    pipeline = make_pipeline(columns, LogisticRegression(max_iter=1000))
    pipeline.fit(german.features, german.approved)
    actions = ActionSet.from_data(german.features, units=german.units)
    actions["age"].immutable = True
    actions.set("duration", direction="down", step=1, lower=6)
    actions.set("credit_amount", direction="down", step=100, integer=False)
    order = ["<100", "100<=X<500", "500<=X<1000", ">=1000"]
    actions.set("savings_status", order=order, direction="up", cost_by="step")
    actions["checking_status"].immutable = True
    actions["other_parties"].moves = {"none": ["guarantor"]}
    actions.max_changes = 3
    denied = german.features[~pipeline.predict(german.features)]
    encoding = Encoding.of(pipeline)
    posed = pose_problem(denied, encoding, actions, robust_to=BALL)
    problem = posed.problem
    assert posed.refused == []
    np.testing.assert_allclose(
        problem.base.score(problem.base.X), pipeline.decision_function(denied)
    )
    assert set(posed.fixed) == set(german.features.columns) - set(numbers) - set(categories)
    age = encoding["age"].column
    assert (problem.base.lower[:, age] == problem.base.upper[:, age]).all()

    # everybody a month shorter, down to hundreds of marks, and with a guarantor if there is none
    points, chosen = problem.base.X.copy(), problem.current.copy()
    duration, amount = encoding["duration"], encoding["credit_amount"]
    hundreds = (denied["credit_amount"] // 100 * 100).to_numpy(dtype=float)
    points[:, duration.column] -= duration.scale
    points[:, amount.column] = amount.encode(hundreds)
    g = list(posed.levels).index("other_parties")
    levels = posed.levels["other_parties"]
    none = chosen[:, g] == levels.index("none")
    chosen[none, g] = levels.index("guarantor")
    after = decode(posed, points, chosen)
    assert (after["duration"] == denied["duration"] - 1).all()
    assert (after["credit_amount"] == hundreds).all()
    assert after.dtypes.equals(denied.dtypes)
    for i in range(40):
        person = denied.iloc[[i]]
        said = check(actions, person, after.iloc[[i]])
        poor = hundreds[i] < 250 or person["duration"].iloc[0] < 7
        assert bool(said) == poor, said
        less = person["credit_amount"].iloc[0] - hundreds[i]
        number_cost = actions["duration"].cost + 0.1 + less * actions["credit_amount"].cost
        cost = raw_cost(actions, person, after.iloc[[i]])
        assert cost == pytest.approx(number_cost + 0.1 * (less > 0) + none[i])
