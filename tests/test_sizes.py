"""The cost of every size of the set of models: exact corners, as many problems solved alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_rows import draw_set, draw_world
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdfast import ActionSet, ModelList, NormBall, RobustRecourse
from holdfast.actions import Follows, NumberFeature
from holdfast.recommend.sizes import NoSizes, SizeCurve
from holdfast.recommend.staircase import Corner, refine_corners, walk_corners


def at_radius(recourse: RobustRecourse, radius: float, person: pd.DataFrame) -> float:
    """Solve anew at one radius; infinite where there is no way."""
    other = recourse.get_params(deep=False) | {"robust_to": recourse.robust_to.with_radius(radius)}
    ways = RobustRecourse(**other).recommend(person).ways(person.index[0])
    return ways[0].cost if ways else math.inf


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)}).round(3)
    table["good"] = table["a"] - 0.5 * table["b"] + 0.5 * rng.normal(size=300) > 0
    return table


def make(table, step, **other):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[["a", "b"]], table.good)
    actions = ActionSet.from_data(table[["a", "b"]], fixed_cost=0.2)
    for name in actions:
        actions.set(name, step=step, lower=-3, upper=3)
    asked = {"robust_to": NormBall(2, 0.2), "guarantee": 0.6, "actions": actions, "n_jobs": 1}
    return RobustRecourse(model, **(asked | other))


def denied(recourse, table):
    people = table[["a", "b"]]
    return people[recourse.model.predict_proba(people)[:, 1] < 0.4].iloc[[0]]


# ------------------------------------------------------------------ against problems solved alone


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_the_curve_is_what_each_radius_costs(table, p):
    recourse = make(table, 0.5, robust_to=NormBall(p, 0.2))
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0], at_least=10.0)
    assert curve.asked == 0.2
    assert curve.is_step[1:].all()
    assert len(curve.cost) >= 4
    rng = np.random.default_rng(0)
    for radius in rng.uniform(0.0, 1.1 * curve.end, 200):
        cost = at_radius(recourse, float(radius), person)
        assert curve.cost_at(radius) == pytest.approx(cost, rel=1e-9)


def test_corners_are_where_the_cost_jumps(table):
    recourse = make(table, 0.5)
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0], at_least=1.0)
    for k, end in enumerate(curve.holds_to):
        assert at_radius(recourse, end * (1.0 - 1e-9), person) == pytest.approx(curve.cost[k])
        dearer = at_radius(recourse, end * (1.0 + 1e-9), person)
        assert dearer > curve.cost[k] * (1.0 + 1e-9)
    assert (np.diff(curve.cost) > 0.0).all()
    assert (curve.holds_to >= curve.radius).all()
    assert curve.radius[1:] == pytest.approx(curve.holds_to[:-1])


def test_without_steps_corners_are_samples_of_a_rising_curve(table):
    recourse = make(table, None)
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0])
    assert not curve.is_step[2:].all()
    for radius, cost in zip(curve.radius, curve.cost, strict=True):
        assert at_radius(recourse, float(radius), person) == pytest.approx(cost, rel=1e-6)
    for radius in np.linspace(0.0, 0.999 * curve.end, 40):  # between two of them it lies between
        k = int(np.searchsorted(curve.radius, radius, side="right")) - 1
        after = curve.cost[min(k + 1, len(curve.cost) - 1)]
        cost = at_radius(recourse, float(radius), person)
        assert curve.cost[k] * (1.0 - 1e-6) <= cost <= after * (1.0 + 1e-6)


@settings(deadline=None, max_examples=3)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["1", "2", "inf", "ellipsoid"]))
def test_any_pipeline_has_the_costs_of_its_curve(seed, kind):
    """Categories, bins, bent numbers, missing values: the curve never strays from the truth."""
    rng = np.random.default_rng(seed)
    world = draw_world(rng, n_numbers=2)
    recourse = RobustRecourse(
        world.pipeline,
        robust_to=draw_set(rng, kind, world),
        actions=world.actions,
        guarantee=0.6,
        n_jobs=1,
    )
    chances = world.pipeline.predict_proba(world.table)[:, 1]
    for label in world.table.index[chances < 0.6][:3]:
        person = world.table.loc[[label]]
        result = recourse.recommend(person)
        try:
            curve = result.sizes(label)
        except NoSizes:  # a number without a step is bent
            continue
        if not len(curve.cost):
            assert at_radius(recourse, 0.0, person) == math.inf
            continue
        for radius in rng.uniform(0.0, 1.2 * curve.end, 8).tolist():
            k = int(np.searchsorted(curve.holds_to, radius))
            cost = at_radius(recourse, radius, person)
            if k == len(curve.cost):
                assert cost == math.inf or curve.end >= 4.0 * curve.asked
            elif k == 0 or curve.is_step[k] or radius >= curve.radius[k]:
                assert cost == pytest.approx(curve.cost[k], rel=1e-9, abs=1e-12)
            else:
                low, high = curve.cost[k - 1], curve.cost[k]
                assert low * (1.0 - 1e-9) <= cost <= high * (1.0 + 1e-9)


def test_links_hold_along_the_curve(table):
    recourse = make(table, 0.5)
    recourse.actions["b"].step = None
    recourse.actions.links.append(Follows("b", of="a", by=-0.5))
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0])
    assert len(curve.cost) > 1
    for radius in np.random.default_rng(0).uniform(0.0, curve.end, 25).tolist():
        assert curve.cost_at(radius) == pytest.approx(at_radius(recourse, radius, person))


# ------------------------------------------------------------------ its ends


def test_it_ends_where_nothing_helps_any_more(table):
    recourse = make(table, 0.5)
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0], at_least=1.0)
    assert at_radius(recourse, curve.end * (1.0 - 1e-9), person) < math.inf
    assert at_radius(recourse, curve.end * (1.0 + 1e-6), person) == math.inf
    assert curve.cost_at(curve.end * 1.001) == math.inf


def test_whom_not_even_todays_model_can_approve_has_no_corner(table):
    recourse = make(table, 0.5)
    for name in recourse.actions:
        recourse.actions[name].immutable = True
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0])
    assert len(curve.cost) == 0
    assert math.isnan(curve.end)
    assert curve.cost_at(0.0) == math.inf
    assert [part.tolist() for part in curve.curve()] == [[], []]


def test_who_is_approved_begins_at_no_cost(table):
    recourse = make(table, 0.5)
    people = table[["a", "b"]]
    person = people[recourse.model.predict_proba(people)[:, 1] > 0.7].iloc[[0]]
    curve = recourse.recommend(person).sizes(person.index[0])
    assert curve.cost[0] == 0.0
    assert curve.holds_to[0] > 0.0


def test_points_are_drawn_as_they_are_asked_for(table):
    recourse = make(table, 0.5)
    person = denied(recourse, table)
    curve = recourse.recommend(person).sizes(person.index[0])
    frame = curve.to_frame()
    assert list(frame.columns) == ["radius", "cost", "holds_to", "is_step"]
    x, y = curve.curve()
    assert (np.diff(x) >= 0.0).all()
    assert (np.diff(y) >= 0.0).all()
    assert x[0] == 0.0
    assert x[-1] == curve.end
    for here, cost in zip(x, y, strict=True):  # on right angles both costs are drawn
        near = [curve.cost_at(max(here + move, 0.0)) for move in (-1e-9, 1e-9)]
        assert cost == pytest.approx(near[0]) or cost == pytest.approx(near[1])


# ------------------------------------------------------------------ what has no curve


def test_what_has_no_size_says_so(table):
    recourse = make(table, 0.5, robust_to=ModelList([([1.0, -0.4], 0.0)]))
    person = denied(recourse, table)
    result = recourse.recommend(person)
    with pytest.raises(ValueError, match=r"a list \(2 models\), and a list of models has no size"):
        result.sizes(person.index[0])
    weighed = make(table, 0.5, guarantee=None, cost_weight=0.1).recommend(person)
    with pytest.raises(ValueError, match="a cost weight asks for no guarantee"):
        weighed.sizes(person.index[0])
    with pytest.raises(ValueError, match="n_points = 1 is not allowed"):
        make(table, 0.5).recommend(person).sizes(person.index[0], n_points=1)


# ------------------------------------------------------------------ the walk itself


def test_the_walk_finds_every_step_that_can_be_seen():
    """Steps of many widths: all that can be seen are corners, to a hair."""
    rng = np.random.default_rng(3)
    ends = np.cumsum(rng.choice([0.5, 0.05, 0.002], 40))
    asked = []

    def ask(wanted: float) -> Corner:
        asked.append(wanted)
        k = int(np.searchsorted(ends, wanted))
        return Corner(wanted, float(k), float(ends[k]), True)

    corners = walk_corners(Corner(0.0, 0.0, float(ends[0]), False), float(ends[-1]), 25, ask)
    assert corners[-1].had == ends[-1]
    wide = np.flatnonzero(np.diff(ends) >= 0.02) + 1
    found = {corner.cost for corner in corners}
    assert found >= set(wide[-5:].astype(float))
    assert len(asked) <= 80


def test_where_many_are_asked_at_once_every_step_that_can_be_seen_is_found():
    """Small steps among them, one or two in a row: all that can be seen are corners, to a hair."""
    rng = np.random.default_rng(5)
    ends = np.cumsum(rng.choice([0.5, 0.05, 0.02], 30))
    rounds = []

    def ask(wanted):
        rounds.append(len(wanted))
        k = np.searchsorted(ends, wanted)
        return np.where(k < len(ends), k, np.inf), ends[np.minimum(k, len(ends) - 1)]

    first = Corner(0.0, 0.0, float(ends[0]), False)
    corners = refine_corners(first, float(ends[-1]), 25, ask)
    assert [corner.cost for corner in corners] == list(range(30))
    assert [corner.had for corner in corners] == ends.tolist()
    assert all(corner.is_step for corner in corners[1:])
    assert len(rounds) <= 8
    assert sum(rounds) <= 100


def test_what_was_given_up_is_left_out_and_a_line_is_a_line():
    def ask(wanted):
        return np.where((wanted > 0.3) & (wanted < 0.5), np.nan, 2.0 * wanted), wanted

    corners = refine_corners(Corner(0.0, 0.0, 0.0, False), 1.0, 25, ask)
    assert corners[-1].had == pytest.approx(1.0)
    assert not any(corner.is_step for corner in corners)
    for before, after in itertools.pairwise(corners):
        assert after.cost == pytest.approx(2.0 * after.wanted)
        if not 0.25 < before.wanted < 0.5:
            assert after.wanted - before.had <= 0.041


def test_a_curve_without_end_says_nothing_of_what_lies_beyond():
    """Asked for today's model alone, it still shows the size that people know."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    good = table["a"] + 0.5 * table["b"] + 0.3 * rng.normal(size=200) > 0.0
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, good)
    actions = ActionSet([NumberFeature("a"), NumberFeature("b")])  # without bounds
    person = table[~pipeline.predict(table)][:1]

    def advise(radius):
        asked = {"robust_to": NormBall(p=2, radius=radius), "actions": actions, "guarantee": 0.5}
        return RobustRecourse(pipeline, **asked).recommend(person)

    label = person.index[0]
    curve = advise(0.0).sizes(label, at_least=0.1)
    assert not curve.has_end
    assert curve.end >= 0.1
    assert curve.cost_at(0.1) == pytest.approx(advise(0.1).ways(label)[0].cost, rel=1e-2)
    assert math.isnan(curve.cost_at(2.0 * curve.end))  # and not out of reach
    whole = advise(0.0).sizes(label, at_least=10.0)
    assert whole.has_end  # a set that is as large as the model approves of nobody
    assert whole.cost_at(2.0 * whole.end) == math.inf


def test_what_was_not_looked_at_is_not_called_impossible():
    pytest.importorskip("fastapi")
    from holdfast.report.person import SureFigures, sure_chart
    from holdfast.web.pages import _cost_at
    from holdfast.web.slider import stops_of

    ends = np.array([0.0, 0.2]), np.array([1.0, 3.0]), np.array([0.2, 0.5])
    for has_end, words, drawn in (
        (True, "not possible", "out of reach"),
        (False, "not known", "not known"),
    ):
        curve = SizeCurve(*ends, np.array([False, True]), 0.25, has_end)
        [usual] = [stop for stop in stops_of(curve, 2.0, 2.0) if stop.is_usual]
        assert _cost_at(usual) == words
        sure = SureFigures(curve, "", 2.0, None, None, None, "")
        assert drawn in sure_chart(sure)
