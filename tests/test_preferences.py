"""What one person wants: tighter or dearer than the action set, never looser."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_rows import draw_set, draw_world, everything, least_price, options_of
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import CategoryFeature, Follows, NumberFeature, Preference, Ratio, check


@pytest.fixture
def actions():
    return ActionSet(
        [
            NumberFeature("duration", lower=4, upper=72, max_increase=12, fixed_cost=0.1),
            NumberFeature("age", possible_lower=0, provide_cost=0.5),
            CategoryFeature("home", ["own", "rent", "free"], moves={"rent": ["own", "free"]}),
            CategoryFeature("job", ["a", "b"], cost={("a", "b"): 2.0, ("b", "a"): 3.0}),
        ]
    )


# ------------------------------------------------------------------ what becomes of settings


def test_settings_only_get_tighter(actions):
    mine = actions.with_preferences(
        {
            "duration": Preference(change_by=24, lower=1, upper=60),
            "age": {"lower": -3, "upper": 40},
            "home": {"avoid": ["free"]},
            "job": {"locked": True},
        }
    )
    duration = mine["duration"]
    assert (duration.lower, duration.upper) == (4, 60)
    assert (duration.max_increase, duration.max_decrease) == (12, 24)
    assert (mine["age"].lower, mine["age"].upper) == (None, 40)
    assert mine["home"].refusal("rent", "free")
    assert mine["home"].refusal("rent", "own") is None
    assert mine["job"].immutable
    assert not actions["job"].immutable  # the action set itself is as it was
    assert actions["duration"].upper == 72


def test_all_costs_are_multiplied(actions):
    mine = actions.with_preferences({name: {"times": 3} for name in actions})
    assert mine["duration"].cost == 3 * actions["duration"].cost
    assert mine["duration"].fixed_cost == 3 * actions["duration"].fixed_cost
    assert mine["age"].provide_cost == 1.5
    assert mine["home"].switch_cost("rent", "own") == 3.0
    assert mine["job"].cost == {("a", "b"): 6.0, ("b", "a"): 9.0}


def test_nothing_wanted_is_the_same_action_set(actions):
    assert actions.with_preferences({}) == actions
    assert actions.with_preferences({"age": {}, "home": Preference()}) == actions
    assert actions.with_preferences({}) is not actions


def test_a_category_all_of_whose_levels_are_avoided_stays(actions):
    mine = actions.with_preferences({"home": {"avoid": ["own", "rent", "free"]}})
    assert mine["home"].immutable


def test_preferences_add_up(actions):
    once = actions.with_preferences({"home": {"avoid": ["free"], "times": 2}})
    twice = once.with_preferences({"home": {"avoid": ["own"], "times": 2}})
    assert twice["home"].allowed == ("rent",)
    assert twice["home"].cost == 4.0


@pytest.mark.parametrize(
    ("preferences", "said"),
    [
        ({"agee": {"locked": True}}, "'agee' is not known; did you mean 'age'"),
        ({"age": {"lokced": True}}, "preference for 'age': a preference has no 'lokced'; did you"),
        ({"age": {"locked": 1}}, "preference for 'age': locked = 1 is not allowed"),
        ({"age": {"change_by": -1}}, "'age': change_by = -1 is not allowed; it must be a positive"),
        ({"age": {"lower": "3"}}, "'age': lower = '3' is not allowed; it must be a finite number"),
        ({"age": {"lower": 9, "upper": 3}}, "'age': lower = 9 is above upper = 3"),
        ({"duration": {"lower": 80}}, "lower = 80 is above 72, its upper bound; lock it instead"),
        ({"duration": {"upper": 2}}, "upper = 2 is below 4, its lower bound; lock it instead"),
        ({"age": {"avoid": ["own"]}}, "avoid is for levels, but it is a number"),
        (
            {"home": {"avoid": ["castle"]}},
            "avoid names the level 'castle', which is not one of 'own'",
        ),
        ({"home": {"avoid": "own"}}, "avoid = 'own' is not allowed; it must be a list of levels"),
        ({"home": {"change_by": 1}}, "change_by is for numbers, but it is a category"),
        ({"home": {"upper": 1}}, "upper is for numbers, but it is a category"),
        (
            {"home": {"times": 0.5}},
            "times = 0.5 is not allowed; it must be a finite number of at least 1",
        ),
        ({"home": {"times": math.inf}}, "times = inf is not allowed"),
        ({"home": 3}, "preference for 'home': 3 is neither a Preference nor a dict"),
        ([("home", {})], "preferences = .* is not allowed; it must be a dict"),
    ],
)
def test_what_is_wrong_is_said(actions, preferences, said):
    with pytest.raises((ValueError, TypeError), match=said):
        actions.with_preferences(preferences)


def test_what_changes_with_others_cannot_be_locked_by_itself():
    names = ("debt", "limit", "used", "age", "years")
    actions = ActionSet([NumberFeature(name) for name in names])
    actions.derived = [Ratio("used", of="debt", to="limit")]
    actions.links = [Follows("years", of="age")]
    with pytest.raises(ValueError, match="'used': it changes with debt and limit, so it cannot be"):
        actions.with_preferences({"used": {"locked": True}})
    with pytest.raises(ValueError, match="'years': it changes with age, so it cannot be locked"):
        actions.with_preferences({"years": {"locked": True}})
    mine = actions.with_preferences({"age": {"locked": True}, "used": {"upper": 0.5}})
    assert mine["age"].immutable
    assert mine["used"].upper == 0.5


# ------------------------------------------------------------------ what is advised


def draw_preferences(world, rng):
    """Draw what a person wants of each feature, well away from ties."""
    wanted = {}
    for name in world.drawn:
        feature, one = world.actions[name], {}
        if rng.random() < 0.4:
            one["times"] = float(rng.choice([1.5, 2.0, 4.0]))
        if rng.random() < 0.15:
            one["locked"] = True
        if isinstance(feature, CategoryFeature):
            one["avoid"] = [level for level in feature.levels if rng.random() < 0.3]
        elif feature.grid > 0.0:
            grid = feature.grid
            if rng.random() < 0.4:
                one["change_by"] = float(grid * (rng.integers(0, 4) + 0.4))
            middle = np.nanmedian(world.table[name])
            if rng.random() < 0.3:
                one["lower"] = float(
                    min(middle - grid * (rng.integers(-2, 2) + 0.3), highest(feature))
                )
            if rng.random() < 0.3:
                one["upper"] = float(
                    max(middle + grid * (rng.integers(3, 5) + 0.3), lowest(feature))
                )
        if one and rng.random() < 0.8:
            wanted[name] = one
    return wanted


def highest(feature):
    return feature.highest - 1.3 * feature.grid


def lowest(feature):
    return feature.lowest + 1.3 * feature.grid


def breaks(wanted, own, value):
    """Say whether a value is not what somebody wants who has another one now."""
    is_given = own != own
    if value == own or (is_given and value != value):
        return False
    if wanted.get("locked") or value in wanted.get("avoid", ()):
        return True
    if "change_by" in wanted and not is_given and abs(value - own) > wanted["change_by"]:
        return True
    if isinstance(value, str):
        return False
    low, high = wanted.get("lower", -math.inf), wanted.get("upper", math.inf)
    if not is_given:  # whoever is outside may stay there, or come nearer
        low, high = min(low, own), max(high, own)
    return not low <= value <= high


@pytest.mark.parametrize("kind", ["1", "2", "ellipsoid"])
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_the_optimum_is_the_best_of_all_rows_that_are_wanted(kind, seed):
    rng = np.random.default_rng(seed)
    world = draw_world(rng, n_numbers=2)
    robust_to, wanted = draw_set(rng, kind, world), draw_preferences(world, rng)
    chances = world.pipeline.predict_proba(world.table)[:, 1]
    goal = {"guarantee": float(rng.choice([0.55, 0.7]))}
    people = world.table[chances < goal["guarantee"]].iloc[:6]
    asked = {"robust_to": robust_to, "n_jobs": 1, **goal}
    mine = world.actions.with_preferences(wanted)
    result = RobustRecourse(world.pipeline, actions=mine, **asked).recommend(people)
    free = RobustRecourse(world.pipeline, actions=world.actions, **asked).recommend(people)
    options = {name: options_of(world, people, name) for name in world.drawn}
    for name, one in wanted.items():
        option = options[name]
        rows = option.values.tolist()  # noqa: PD011
        barred = [[breaks(one, row[0], value) for value in row] for row in rows]
        option.costs *= one.get("times", 1.0)
        option.costs[np.array(barred)] = np.inf
    after = result.after()
    for i, label in enumerate(people.index):
        least, most = least_price(world, everything(world, options, i), robust_to, goal)
        if not result.ways(label):
            assert result.status_of(label) is Status.INFEASIBLE
            assert most == math.inf
            continue
        way = result.ways(label)[0]
        assert least * (1.0 - 1e-9) - 1e-12 <= way.cost <= most * (1.0 + 1e-9) + 1e-12
        assert way.cost >= free.ways(label)[0].cost * (1.0 - 1e-9)
        row = after.loc[label]
        assert check(world.actions, people.loc[label], row) == []
        for name, one in wanted.items():
            assert not breaks(one, people.loc[label, name], row[name])


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), times=st.sampled_from([1.0, 1.7, 4.0]))
def test_everything_dearer_by_a_factor_costs_that_factor(seed, times):
    rng = np.random.default_rng(seed)
    world = draw_world(rng, n_numbers=2)
    dearer = world.actions.with_preferences({name: {"times": times} for name in world.actions})
    asked = {"robust_to": draw_set(rng, "2", world), "n_jobs": 1, "guarantee": 0.6}
    people = world.table.iloc[:8]
    plain, more = (
        RobustRecourse(world.pipeline, actions=actions, **asked).recommend(people).to_frame()
        for actions in (world.actions, dearer)
    )
    pd.testing.assert_series_equal(more["cost"], times * plain["cost"], rtol=1e-9)
    assert list(more["status"]) == list(plain["status"])


def test_whoever_gives_way_still_has_what_the_lender_says():
    """Of what is in the way, a person's own limit is named; behind it is that of the lender."""
    table = pd.DataFrame({"months": np.arange(1.0, 61.0), "debts": np.tile([0.0, 1.0], 30)})
    good = -0.2 * table["months"] + 4.0 - table["debts"] > 0.0
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, good)
    actions = ActionSet(
        [
            NumberFeature("months", integer=True, lower=1, max_decrease=30, physical=["lower"]),
            NumberFeature("debts", immutable=True, physical=["immutable"]),
        ]
    )
    asked = {"robust_to": NormBall(p=2, radius=0.01), "guarantee": 0.5}
    person = table[-1:]  # 60 months

    def advise(preference):
        mine = actions.with_preferences({"months": preference})
        return RobustRecourse(pipeline, actions=mine, **asked).recommend(person)

    free = RobustRecourse(pipeline, actions=actions, **asked).recommend(person)
    label = person.index[0]
    assert free.status_of(label) is Status.INFEASIBLE  # 30 are too many for the lender
    for preference, words in (
        ({"change_by": 20}, "may fall by at most 20"),
        ({"locked": True}, "may not change"),
        ({"lower": 50}, "may not fall below 50"),
    ):
        result = advise(preference)
        # giving way does not help by itself: the lender's limit must go as well
        for release in result.releases(label):
            assert len(release.constraints) > 1 or words not in release.words
    near = table[30:31]  # 31 months: 30 less are allowed, and 20 less are enough
    for preference, words in (
        ({"change_by": 2}, "may fall by at most 2"),
        ({"locked": True}, "may not change"),
        ({"lower": 30}, "may not fall below 30"),  # though the lender's end is a fact
    ):
        mine = actions.with_preferences({"months": preference})
        result = RobustRecourse(pipeline, actions=mine, **asked).recommend(near)
        [release] = result.releases(near.index[0])[:1]
        assert words in release.words
        open_way = RobustRecourse(pipeline, actions=actions, **asked).recommend(near)
        assert release.cost == pytest.approx(open_way.ways(near.index[0])[0].cost, rel=1e-9)
