"""Bent and binned numbers are cut into cells: the advice is the best of all raw rows."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_rows import (
    SETS,
    draw_set,
    draw_world,
    everything,
    least_price,
    options_of,
    raw_cost,
)
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import NumberFeature, check
from holdfast.actions.ranges import range_of
from holdfast.datasets import load_german
from holdfast.models.additive import AdditiveModel
from holdfast.models.encoding import ColumnRule

GOALS = ["guarantee", "cost_weight"]


def compare(rng, kind, mode, *, count, with_evidence=False):
    """Compare the advice of one random pipeline with all raw rows; return people and moves."""
    world = draw_world(rng, with_evidence=with_evidence)
    robust_to = draw_set(rng, kind, world)
    chances = world.pipeline.predict_proba(world.table)[:, 1]
    goal = {"cost_weight": float(rng.choice([0.05, 0.3]))}
    if mode == "guarantee":
        goal = {"guarantee": float(rng.choice([0.55, 0.7, np.quantile(chances, 0.8)]).clip(0.5))}
    people = world.table[chances < goal.get("guarantee", 0.6)].iloc[:count]
    ours = RobustRecourse(
        world.pipeline, robust_to=robust_to, actions=world.actions, n_jobs=1, **goal
    )
    result = ours.recommend(people)
    options = {name: options_of(world, people, name) for name in world.drawn}
    after = result.after()
    moved = 0
    for i, label in enumerate(people.index):
        assert result.why_refused(label) is None
        least, most = least_price(world, everything(world, options, i), robust_to, goal)
        ways = result.ways(label)
        if not ways:
            assert result.status_of(label) is Status.INFEASIBLE
            assert most == math.inf
            continue
        way, person, row = ways[0], people.loc[label], after.loc[label]
        assert way.status.is_proven
        assert way.price <= most * (1.0 + 1e-9) + 1e-12
        assert way.price >= least * (1.0 - 1e-9) - 1e-12
        assert check(world.actions, person, row) == []
        assert way.cost == pytest.approx(raw_cost(world, person, row), rel=1e-9, abs=1e-12)
        moved += way.cost > 0.0
        point = world.encode(after.loc[[label]])
        worst = float(robust_to.worst_score(point, world.coef, world.intercept)[0])
        if mode == "guarantee":
            assert 1.0 / (1.0 + math.exp(-worst)) >= goal["guarantee"] - 1e-12
            assert world.pipeline.predict_proba(after.loc[[label]])[0, 1] >= (
                goal["guarantee"] - 1e-12
            )
        else:
            price = float(np.logaddexp(0.0, -worst)) + goal["cost_weight"] * way.cost
            assert way.price == pytest.approx(price, rel=1e-9)
    return len(people), moved


@pytest.mark.parametrize("mode", GOALS)
@pytest.mark.parametrize("kind", SETS)
def test_no_raw_row_is_better(kind, mode):
    rng = np.random.default_rng([SETS.index(kind), GOALS.index(mode)])
    done = [compare(rng, kind, mode, count=8) for _ in range(2)]
    done.append(compare(rng, kind, mode, count=8, with_evidence=True))
    people, moved = np.sum(done, axis=0)
    assert people >= 15
    assert moved >= 2


@pytest.mark.slow
def test_no_raw_row_is_better_for_more_than_ten_thousand_people():
    people = moved = turn = 0
    while people <= 10_000:
        kind, mode = SETS[turn % 6], GOALS[(turn // 6) % 2]
        rng = np.random.default_rng([77, turn])
        done = compare(rng, kind, mode, count=40, with_evidence=turn % 7 == 0)
        people, moved, turn = people + done[0], moved + done[1], turn + 1
    assert people > 10_000
    assert moved > 3_000


# ------------------------------------------------------------------ one number, at its edges


class Card:
    """Points for each bin of one number; `side` says where an edge belongs."""

    n_features_in_ = 1

    def __init__(self, edges, points, side="right", specials=()):
        self.edges, self.points, self.side = np.array(edges), np.array(points, float), side
        self.specials = dict(specials)

    def transform(self, X):
        values = np.asarray(X, dtype=np.float64)[:, 0]
        made = self.points[np.searchsorted(self.edges, values, side=self.side)]
        for code, points in self.specials.items():
            made = np.where(values == code, points, made)
        return made[:, None]

    def holdfast_rules(self):
        return [ColumnRule(edges=self.edges, specials=self.specials)]


def advise(card, own, **settings):
    """Ask what people must change to have no less than 0 points."""
    feature = NumberFeature("x0", **{"cost": 1.0, **settings})
    ours = RobustRecourse(
        AdditiveModel(card, [1.0]),
        robust_to=NormBall(1, 0.0),
        actions=ActionSet([feature]),
        guarantee=0.5,
        n_jobs=1,
    )
    result = ours.recommend(np.array(own, dtype=np.float64)[:, None])
    people = range(len(own))
    status = [result.status_of(k) for k in people]
    after = result.after()
    return status, [float(after.loc[k, "x0"]) if result.ways(k) else None for k in people], feature


def nearest(card, feature, own, tried):
    """Return how far the nearest value is that is allowed and has no less than 0 points."""
    rows = np.unique([own, *tried])
    rows = rows[card.transform(rows[:, None])[:, 0] >= 0.0]
    rows = rows[~np.isin(rows, [code for code in card.specials if code != own])]
    if feature.step is None:  # the check leaves room for rounding, which an ulp is
        ends = range_of(feature, np.array([own]))
        rows = rows[(ends.lower <= rows) & (rows <= ends.upper)]
    actions = ActionSet([feature])
    far = [abs(v - own) for v in rows.tolist() if not check(actions, {"x0": own}, {"x0": v})]
    return min(far, default=math.inf)


def written(step, low=-8.0, high=8.0):
    exact = Decimal(repr(step))
    first, last = int(Decimal(low) / exact), int(Decimal(high) / exact)
    return [float(k * exact) for k in range(first, last + 1)]


hundredths = st.integers(-300, 300).map(lambda k: k / 100)


@given(
    edges=st.lists(hundredths, min_size=1, max_size=6, unique=True).map(sorted),
    points=st.lists(st.sampled_from([-2.0, -1.0, -1.0, 0.5, 1.0]), min_size=7, max_size=7),
    side=st.sampled_from(["left", "right"]),
    step=st.sampled_from([0.1, 0.3, 0.5, 1.0, 0.07, None]),
    own=st.lists(hundredths, min_size=1, max_size=4),
    ends=st.none() | st.tuples(hundredths, hundredths).map(sorted),
    direction=st.sampled_from(["any", "any", "up", "down"]),
    far=st.sampled_from([None, 0.3, 1.0]),
)
@settings(max_examples=120, deadline=None)
def test_the_nearest_value_of_every_bin(edges, points, side, step, own, ends, direction, far):
    """Edges on the grid and off it, at 0 and below, bins that no step reaches, equal ones."""
    card = Card(edges, points[: len(edges) + 1], side)
    around = [v for e in edges for v in (np.nextafter(e, -9.0), e, np.nextafter(e, 9.0))]
    own = [*own, *around[:3]]
    low, high = ends or (None, None)
    given_ = {"lower": low, "upper": high, "direction": direction, "max_increase": far}
    status, after, feature = advise(card, own, step=step, **given_)
    tried = around if step is None else written(step)
    for was, told, said in zip(own, after, status, strict=True):
        away = nearest(card, feature, was, tried)
        if away == math.inf:
            assert said is Status.INFEASIBLE
            continue
        assert said.is_proven
        assert abs(told - was) == pytest.approx(away, abs=1e-14)
        assert card.transform([[told]])[0, 0] >= 0.0
        assert check(ActionSet([feature]), {"x0": was}, {"x0": told}) == []


def test_an_edge_belongs_where_the_pipeline_puts_it():
    edge = 0.1 * 3  # one bit above 0.3
    for side, told in (("right", [0.4, 0.4, edge]), ("left", [0.4, 0.4, 0.4])):
        own = [0.1, 0.3, edge]
        status, after, _ = advise(Card([edge], [-1, 1], side), own, step=0.1)
        assert after == told
        assert (status[2] is Status.ALREADY_VALID) == (side == "right")
    for side, told in (("right", 0.3), ("left", 0.4)):
        assert advise(Card([0.3], [-1, 1], side), [0.1], step=0.1)[1] == [told]
        assert advise(Card([0.3], [1, -1], side), [0.7], step=0.1)[1] == [
            0.2 if side == "right" else 0.3
        ]
    just_below = np.nextafter(0.0, -1.0)
    assert advise(Card([0.0], [-1, 1]), [just_below, -0.0, 0.0], step=None)[1] == [0.0, 0.0, 0.0]
    # without a step the first float beyond an edge, to a few bits
    for value in (1e6 + 1 / 3, 1 / 3, -7e-5 / 3):
        (told,) = advise(Card([value], [-1, 1], "left"), [value - 1e-3], step=None)[1]
        assert value < told <= value + 8 * np.spacing(abs(value))


def test_a_bin_that_no_step_reaches_and_one_beyond_it():
    card = Card([1.2, 1.8, 4.0], [-1, 1, -1, 1])
    assert advise(card, [0.0, 1.0, 1.5, 9.0], step=1)[1] == [4.0, 4.0, 1.5, 9.0]
    assert advise(card, [0.0, 3.9], step=0.5)[1] == [1.5, 4.0]
    assert advise(card, [0.0], step=1, upper=3.0)[0] == [Status.INFEASIBLE]


def test_who_is_outside_of_the_bounds_may_come_nearer():
    card = Card([2.0, 6.0], [-1, 1, -1])
    status, after, _ = advise(card, [0.25, 9.75, 5.0], step=0.5, lower=3.0, upper=4.0)
    assert after == [2.0, 5.5, 5.0]
    status, after, _ = advise(card, [0.25, 9.75], step=0.5, lower=8.0, upper=9.0)
    assert after == [2.0, None]
    assert status[1] is Status.INFEASIBLE


def test_the_same_points_in_bins_that_are_no_neighbours():
    card = Card([0.0, 1.0, 2.0, 3.0], [1, -1, -1, 1, 1])
    assert advise(card, [0.5, 1.5, 1.75], step=0.25)[1] == [-0.25, 2.0, 2.0]
    costs = [abs(told - own) for told, own in zip([-0.25, 2.0], [0.5, 1.5], strict=True)]
    assert costs == [0.75, 0.5]
    # 3 is an edge between equal bins: nothing ends there
    assert advise(card, [3.0, 4.0], step=0.25)[0] == [Status.ALREADY_VALID] * 2


def test_nobody_is_advised_a_code_and_who_has_one_stays():
    card = Card([5.0], [-1, 1], specials={-9.0: 3.0, 7.0: -2.0})
    status, after, _ = advise(card, [-10.0, -9.0, 0.0, 7.0], step=1)
    assert after == [5.0, -9.0, 5.0, None]
    assert status[1] is Status.ALREADY_VALID
    assert status[3] is Status.INFEASIBLE
    far = Card([50.0], [-1, 1], specials={6.0: 3.0})
    assert advise(far, [0.0], step=1)[1] == [50.0]
    assert advise(far, [0.0], step=1, upper=40.0)[0] == [Status.INFEASIBLE]
    assert advise(far, [0.0], step=None, upper=40.0)[0] == [Status.INFEASIBLE]


@pytest.mark.parametrize("protected", [False, True])
def test_a_code_is_named_unless_it_is_protected(protected):
    card = Card([5.0], [-1, 1], specials={7.0: -2.0})
    actions = ActionSet([NumberFeature("x0", protected=protected)])
    model = AdditiveModel(card, [1.0])
    ours = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5)
    said = ours.recommend(np.array([[7.0]])).explain(0)
    assert ("x0" in said) == (not protected)
    assert said.endswith("Even with every removable constraint removed, no change is enough.")


@pytest.mark.parametrize("scale", [StandardScaler(), MinMaxScaler(), RobustScaler()])
@pytest.mark.parametrize("step", [1.0, 0.5, 0.1])
def test_edges_that_a_scaler_has_moved(scale, step):
    values = np.append(np.tile(np.arange(0.0, 9.0), 12), [0.3, 0.7])
    table = pd.DataFrame({"x": values})
    columns = make_pipeline(clone(scale), KBinsDiscretizer(4, strategy="uniform", encode="ordinal"))
    model = make_pipeline(columns, LogisticRegression(C=100)).fit(table, values > 3.5)
    actions = ActionSet([NumberFeature("x", lower=0, upper=8, step=step, cost=1.0)])
    ours = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5)
    grid = np.array(written(step, 0.0, 8.0))
    people = pd.DataFrame({"x": np.append(grid, grid[:-1] + 0.013)})
    result = ours.recommend(people)
    for label, own in people["x"].items():
        tried = pd.DataFrame({"x": np.append(grid, own)})
        good = model.predict_proba(tried)[:, 1] >= 0.5
        away = np.abs(tried["x"] - own)[good].min()
        assert result.ways(label)[0].cost == pytest.approx(away, abs=1e-12)


# ------------------------------------------------------------------ curves


def curved(function, *, low=0, high=20_000, c=2.0, n=200):
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"amount": rng.integers(low, high, n), "home": rng.choice(["a", "b"], n)})
    columns = ColumnTransformer(
        [
            ("f", make_pipeline(function, StandardScaler()), ["amount"]),
            ("c", OneHotEncoder(sparse_output=False), ["home"]),
        ]
    )
    rank = table["amount"].rank() / n
    approved = (1.0 - rank) + 0.3 * (table["home"] == "a") + 0.2 * rng.normal(size=n) > 0.6
    return table, make_pipeline(columns, LogisticRegression(C=c)).fit(table, approved)


def curve_prices(model, person, values, ball, actions, goal):
    """Return the least price over values of the amount and both homes, by numpy."""
    best = math.inf
    for home in ("a", "b"):
        rows = pd.DataFrame({"amount": values, "home": home})
        score = ball.worst_score(
            model[:-1].transform(rows), model[-1].coef_[0], float(model[-1].intercept_[0])
        )
        away, feature = np.abs(values - person["amount"]), actions["amount"]
        cost = feature.cost * away + feature.fixed_cost * (away > 0)
        cost = cost + actions["home"].cost * (home != person["home"])
        price = np.logaddexp(0.0, -score) + goal.get("cost_weight", 0.0) * cost
        if "guarantee" in goal:
            price = np.where(
                score >= np.log(goal["guarantee"] / (1 - goal["guarantee"])), cost, 9e9
            )
        best = min(best, float(price.min()))
    return best


@pytest.mark.parametrize("goal", [{"guarantee": 0.7}, {"cost_weight": 0.2}])
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_a_curve_with_twenty_thousand_values(p, goal):
    table, model = curved(FunctionTransformer(np.log1p))
    actions = ActionSet.from_data(table, costs="std")
    actions.set("amount", integer=True, lower=0, upper=20_000)
    ball = NormBall(p, 0.05)
    people = table[model.predict_proba(table)[:, 1] < 0.4].iloc[:6]
    ours = RobustRecourse(model, robust_to=ball, actions=actions, n_jobs=1, **goal)
    result = ours.recommend(people)
    for label, person in people.iterrows():
        best = curve_prices(model, person, np.arange(20_001.0), ball, actions, goal)
        (way,) = result.ways(label)
        assert way.status.is_proven
        assert way.price == pytest.approx(best, rel=2e-9)
        # of a coarser grid none is better
        coarse = np.append(np.arange(0.0, 20_001.0, 37.0), person["amount"])
        least = curve_prices(model, person, coarse, ball, actions, goal)
        assert way.price <= least * (1.0 + 1e-9)


def test_flat_tails_are_one_value_each():
    """Winsorised between 100 and 400: of the tails, which are wide, one value is enough."""
    ends = {"a_min": 100, "a_max": 400}
    table, model = curved(FunctionTransformer(np.clip, kw_args=ends), high=600)
    actions = ActionSet.from_data(table)
    actions.set("amount", integer=True, possible_lower=None, lower=-(10**9), upper=10**9, cost=1e-3)
    ball = NormBall(1, 0.02)
    people = pd.DataFrame({"amount": [900_000_000, 401, 400, 399, 250], "home": ["b"] * 5})
    goal = {"guarantee": 0.6}
    result = RobustRecourse(model, robust_to=ball, actions=actions, n_jobs=1, **goal).recommend(
        people
    )
    for label, person in people.iterrows():
        values = np.append(np.arange(90.0, 410.0), person["amount"])
        best = curve_prices(model, person, values, ball, actions, goal)
        (way,) = result.ways(label)
        assert way.price == pytest.approx(best, rel=2e-9)
        after = result.after().loc[[label]]
        assert model.predict_proba(after)[0, 1] >= 0.6
    # the tail above is left at its end, not somewhere in it
    assert result.after()["amount"].between(-(10**9), 400).all()


@pytest.mark.parametrize("goal", [{"guarantee": 0.7}, {"cost_weight": 0.2}])
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_bounds_of_a_curve_without_a_step(p, goal):
    """The bound is below whatever is tried by force, and the advice hardly above the best."""
    table, model = curved(FunctionTransformer(np.log1p), high=400)
    actions = ActionSet.from_data(table)
    actions.set("amount", integer=False, step=None, lower=0, upper=400)
    ball = NormBall(p, 0.05)
    people = table[model.predict_proba(table)[:, 1] < 0.4].iloc[:5]
    ours = RobustRecourse(model, robust_to=ball, actions=actions, n_jobs=1, **goal)
    result = ours.recommend(people)
    for label, person in people.iterrows():
        fine = np.append(np.linspace(0.0, 400.0, 40_001), person["amount"])
        best = curve_prices(model, person, fine, ball, actions, goal)
        (way,) = result.ways(label)
        assert way.lower_bound <= best + 1e-9
        assert way.price >= way.lower_bound - 1e-12
        assert way.price <= best * 1.03 + 1e-3
        assert way.gap == pytest.approx(way.price - way.lower_bound, abs=1e-9)


@pytest.mark.parametrize(
    ("function", "settings", "radius", "said"),
    [
        (np.log1p, {"lower": 0}, 0.01, "amount: .*tried one by one: give it a lower and an upper"),
        (
            np.log1p,
            {"lower": 0, "upper": 90_000},
            0.01,
            "90,000 are too many: give it a coarser step, such as actions.set.'amount', step=100",
        ),
        (
            np.log1p,
            {"lower": 0, "upper": 400, "integer": False, "step": None},
            9.0,
            "some models of the set reward larger numbers and others smaller ones: give it",
        ),
        (
            np.log1p,
            {"lower": -5, "upper": 400, "integer": False, "step": None},
            0.01,
            "-5 has no finite result: give it lower and upper bounds",
        ),
        (
            "spline",
            {"lower": 0, "upper": 400, "integer": False, "step": None},
            0.01,
            "tried one by one: give it a step, such as actions.set.'amount', step=1",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(function, settings, radius, said):
    step = SplineTransformer(4) if function == "spline" else FunctionTransformer(function)
    table, model = curved(step, high=400)
    actions = ActionSet.from_data(table)
    actions.set("amount", **{"upper": None, "possible_lower": None, **settings})
    ours = RobustRecourse(model, robust_to=NormBall(1, radius), actions=actions, guarantee=0.7)
    people = table[model.predict_proba(table)[:, 1] < 0.4].iloc[:3]
    with pytest.raises(ValueError, match=said):
        ours.recommend(people)


def test_a_value_that_one_column_refuses_is_not_lost_to_the_others():
    """Logarithms of negative numbers are refused by the bins; other columns have answers."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"a": rng.integers(0, 12, 150), "b": rng.integers(0, 12, 150)})
    bins = KBinsDiscretizer(4, strategy="uniform", encode="ordinal")
    columns = ColumnTransformer(
        [
            ("a", make_pipeline(FunctionTransformer(np.log1p), bins), ["a"]),
            ("b", FunctionTransformer(np.cbrt), ["b"]),
        ]
    )
    approved = table["a"] - table["b"] + rng.normal(size=150) > 0.0
    model = make_pipeline(columns, LogisticRegression()).fit(table, approved)
    actions = ActionSet.from_data(table)
    actions.set("a", cost=5.0)
    ours = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5)
    people = table[~model.predict(table)].iloc[:10]
    result = ours.recommend(people)
    rows = pd.DataFrame([(a, b) for a in range(12) for b in range(12)], columns=["a", "b"])
    good = rows[model.predict_proba(rows)[:, 1] >= 0.5]
    for label, person in people.iterrows():
        cost = 0.0
        for name in ("a", "b"):
            away, feature = (good[name] - person[name]).abs(), actions[name]
            cost = cost + feature.cost * away + feature.fixed_cost * (away > 0)
        assert result.ways(label)[0].cost == pytest.approx(cost.min(), rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_decrease": 3}, "amount may fall by at most 3"),
        ({"direction": "up"}, "amount may"),
        ({"immutable": True}, "amount may"),
        ({"lower": 350}, "home may not change"),  # its ends must stay: it could not be tried
        ({"lower": None, "upper": None, "max_increase": 5, "max_decrease": 5}, "home may not"),
    ],
)
def test_what_is_in_the_way_of_a_bent_number(settings, said):
    table, model = curved(FunctionTransformer(np.log1p), high=400)
    actions = ActionSet.from_data(table)
    actions.set("amount", **{"possible_lower": None, **settings})
    actions["home"].immutable = True
    people = pd.DataFrame({"amount": [380], "home": ["b"]})
    rows = people.assign(home="a", amount=people["amount"] - 5)
    goal = 0.9 if said.startswith("amount") else float(model.predict_proba(rows)[0, 1]) - 1e-3
    ours = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=goal)
    result = ours.recommend(people)
    assert result.status_of(0) is Status.INFEASIBLE
    assert said in result.explain(0)
    release, *_ = result.releases(0)
    freed = {"home": {"immutable": False}, "amount": {"max_decrease": None, "direction": "any"}}
    freed["amount"]["immutable"] = False
    for constraint in release.constraints:
        actions[constraint.feature].set(
            **{constraint.setting: freed[constraint.feature][constraint.setting]}
        )
    assert ours.recommend(people).ways(0)[0].cost == pytest.approx(release.cost, rel=1e-9)


def test_who_cannot_be_helped_by_a_bent_number_without_a_step_is_told_so_quietly():
    data = load_german()
    table = data.features[["duration", "credit_amount"]]
    steps = FunctionTransformer(np.log1p), StandardScaler(), LogisticRegression()
    model = make_pipeline(*steps).fit(table, data.approved)
    actions = ActionSet.from_data(table, immutable=["duration"])
    actions.set("credit_amount", step=None, integer=False)
    recourse = RobustRecourse(model, robust_to=NormBall(2, 0.1), actions=actions, guarantee=0.7)
    told = recourse.recommend(table[:20]).to_frame()
    assert (told["status"] == Status.INFEASIBLE).sum() > 5
