"""One person, as a page shows them: every figure and every sentence, whatever became of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_rows import draw_set, draw_world
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from small_banks import small_bank

from holdfast import ActionSet, ModelList, NormBall, Points, RobustRecourse, Status
from holdfast.actions import Follows, Ratio
from holdfast.report.person import how_sure, look_at, sure_chart


@pytest.fixture(scope="module")
def bank():
    return small_bank()


def actions_of(bank, **other):
    actions = ActionSet.from_data(bank[0], units={"months": "months"}, **other)
    actions.set("months", direction="down", lower=6)
    actions.set("income", max_increase=4.0, max_decrease=0.0)
    return actions


def ask(bank, **other):
    asked = {"robust_to": NormBall(1, 0.1), "guarantee": 0.6, "n_jobs": 1, "n_options": 3}
    asked["actions"] = actions_of(bank)
    asked |= other
    return RobustRecourse(asked.pop("model", bank[2]), **asked)


def someone(bank, least, most, model=None):
    chance = (model or bank[2]).predict_proba(bank[0])[:, 1]
    return bank[0][(chance > least) & (chance < most)].iloc[[0]]


def look(bank, person, **other):
    return look_at(ask(bank, **other).recommend(person), person.index[0])


# ------------------------------------------------------------------ who can be helped


def test_ways_have_their_changes_with_their_efforts(bank):
    person = someone(bank, 0.1, 0.3)
    label = person.index[0]
    result = ask(bank).recommend(person)
    figures = look_at(result, label)
    assert figures.status is Status.OPTIMAL
    assert figures.approved is False
    assert (figures.threshold, figures.wanted) == (0.5, "60%")
    assert figures.is_robust
    assert figures.initial_validity == result.initial_validity(label)
    assert figures.gives == f"{math.floor(100 * figures.initial_validity)}%"
    assert figures.summary == result.explain(label)
    assert (figures.complaint, figures.note, figures.barriers) == ("", "", [])
    assert len(figures.ways) >= 2
    for option, (shown, way) in enumerate(
        zip(figures.ways, result.ways(label), strict=True), start=1
    ):
        assert shown.option == option
        assert math.fsum(change.effort for change in shown.changes) == pytest.approx(way.cost)
        assert {change.name for change in shown.changes} == way.features
        efforts = [change.effort for change in shown.changes]
        assert efforts == sorted(efforts, reverse=True)
        told = {
            f"{c.name} from {c.before} to {c.after}{c.unit and ' ' + c.unit}" for c in shown.changes
        }
        assert told == set(result.changes(label, option))
        assert shown.worst_case_validity >= 0.6 - 1e-12
        assert shown.worst_case == f"{math.floor(100 * shown.worst_case_validity + 1e-9)}%"
        assert shown.current_validity >= shown.worst_case_validity
        assert shown.proof.startswith("This is provably the cheapest way")
        assert shown.proof in figures.summary
        assert shown.afterwards in figures.summary
        assert all(name in shown.proof for name in shown.held)
    assert figures.ways[0].held == []
    assert all(way.held for way in figures.ways[1:])


def test_who_is_approved_may_still_have_something_to_do(bank):
    person = someone(bank, 0.5, 0.6)
    figures = look(bank, person)
    assert figures.approved is True
    assert figures.ways[0].changes


def test_who_need_not_change_anything_is_told_so(bank):
    figures = look(bank, someone(bank, 0.9, 0.99))
    assert figures.status is Status.ALREADY_VALID
    assert figures.approved is True
    assert [way.changes for way in figures.ways] == [[]]
    assert figures.ways[0].proof == "You do not need to change anything for a chance of 60%."
    assert figures.note.endswith("You do not need to change anything.")
    assert figures.note in figures.summary


def test_points_are_told_in_place_of_chances(bank):
    scale = Points(600, odds=50, double=20)
    asked = {"points": scale, "guarantee_points": 490, "guarantee": None}
    figures = look(bank, someone(bank, 0.1, 0.3), **asked)
    assert figures.wanted == "490 points"
    assert figures.gives.endswith(" points")
    assert 490 <= int(figures.ways[0].worst_case.removesuffix(" points")) < 520


def test_margins_have_no_chances(bank):
    table, good, _ = bank
    columns = make_column_transformer(
        (StandardScaler(), ["months", "income", "age"]), (OneHotEncoder(), ["savings"])
    )
    model = make_pipeline(columns, LinearSVC()).fit(table, good)
    person = table[~model.predict(table)].iloc[[0]]
    figures = look(bank, person, model=model, guarantee=0.5)
    assert figures.approved is False
    assert math.isnan(figures.initial_validity)
    assert math.isnan(figures.threshold)
    assert (figures.gives, figures.wanted) == ("", "")
    way = figures.ways[0]
    assert (way.current, way.worst_case) == ("", "")
    assert way.afterwards == "Every model within a radius of 0.1 of today's then approves you."


def test_a_price_may_leave_people_refused(bank):
    asked = {"guarantee": None, "cost_weight": 5.0}
    figures = look(bank, someone(bank, 0.05, 0.2), **asked)
    assert figures.status is Status.STILL_REFUSED
    assert figures.wanted == ""
    way = figures.ways[0]
    assert way.changes == []
    assert way.proof == "Staying as you are is provably the best balance of cost and chance."
    assert "Today's model would still refuse you" in way.afterwards
    assert figures.note == ""


# ------------------------------------------------------------------ who cannot


def test_what_is_in_the_way_is_told_with_the_cost_of_its_release(bank):
    actions = actions_of(bank, immutable=["months", "age", "savings"])
    actions.set("income", max_increase=1.0, upper=200)
    person = someone(bank, 0.1, 0.2)
    result = ask(bank, actions=actions).recommend(person)
    figures, label = look_at(result, person.index[0]), person.index[0]
    assert figures.status is Status.INFEASIBLE
    assert figures.ways == []
    releases = result.releases(label)
    assert 1 <= len(figures.barriers) <= 3
    for barrier, release in zip(figures.barriers, releases, strict=False):
        assert (barrier.words, barrier.cost) == (release.words, release.cost)
        assert barrier.features == [each.feature for each in release.constraints]
    assert figures.reachable.endswith("%")
    assert f"The best you can reach with all of them is {figures.reachable}" in figures.note
    assert math.isnan(figures.reachable_radius)
    assert "impossible even with today's model alone" in figures.note
    assert figures.summary == result.explain(label)
    assert "in the way" not in figures.note  # the barriers say that


def test_a_radius_within_reach_is_told(bank):
    person = someone(bank, 0.3, 0.4)
    figures = look(bank, person, robust_to=NormBall(1, 5.0))
    assert figures.status is Status.INFEASIBLE
    assert 0.0 < figures.reachable_radius < 5.0
    assert "It becomes possible at a radius of" in figures.note


def test_where_lifting_does_not_help_that_is_told(bank):
    figures = look(bank, someone(bank, 0.1, 0.3), robust_to=NormBall(1, 50.0))
    assert figures.barriers == []
    assert figures.note.endswith("no change is enough.")


def test_what_is_protected_is_never_named(bank):
    """Neither what is protected nor what is computed from it, in barriers, note or summary."""
    table, good, _ = bank
    table = table.assign(per_year=table["income"] / table["age"])
    columns = make_column_transformer(
        (StandardScaler(), ["months", "age", "per_year"]), (OneHotEncoder(), ["savings"])
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, good)
    actions = ActionSet.from_data(table, protected=["age"], immutable=["savings"])
    actions.set("income", step=0.1, lower=0, upper=60, max_increase=1)
    actions.set("per_year", upper=0.5)
    actions.set("months", lower=50)
    actions.derived = [Ratio("per_year", of="income", to="age")]
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.9, n_jobs=1
    )
    people = table[model.predict_proba(table)[:, 1] < 0.2].iloc[:12]
    result = recourse.recommend(people)
    hopeless = [label for label in people.index if result.status_of(label) is Status.INFEASIBLE]
    assert hopeless
    for label in hopeless:
        figures = look_at(result, label)
        said = " ".join([figures.note, figures.summary, *(b.words for b in figures.barriers)])
        assert "per_year" not in said
        assert " age " not in f" {said} "
        assert not {"age", "per_year"} & {n for b in figures.barriers for n in b.features}


def test_a_row_that_cannot_be_used_has_a_reason(bank):
    person = someone(bank, 0.1, 0.3).astype({"months": object})
    person["months"] = "twelve"
    figures = look(bank, person)
    assert figures.status is Status.INVALID_INPUT
    assert figures.approved is None
    assert "twelve" in figures.complaint
    assert figures.complaint in figures.summary
    assert math.isnan(figures.initial_validity)
    assert (figures.ways, figures.barriers, figures.note) == ([], [], "")


@pytest.mark.parametrize("status", [Status.NOT_FOUND, Status.GAP_OPEN])
def test_where_no_way_can_be_told_that_is_said(bank, status):
    """Solvers seldom end there: the answer of another person is made into such a one."""
    person = someone(bank, 0.1, 0.3)
    result = ask(bank).recommend(person)
    result.status = np.array([status], dtype=object)
    result._advised.options.clear()
    figures = look_at(result, person.index[0])
    assert figures.status is status
    assert figures.ways == []
    expected = {
        Status.NOT_FOUND: "A way exists in theory, but no values that can be entered in the table",
        Status.GAP_OPEN: "No way was found, but one may still exist.",
    }
    assert figures.note.startswith(expected[status])
    assert figures.note in figures.summary


# ------------------------------------------------------------------ efforts


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["1", "2", "ellipsoid"]))
def test_efforts_add_up_to_the_cost(seed, kind):
    """Of categories, fixed costs, bent numbers, and numbers that are given where they miss."""
    rng = np.random.default_rng(seed)
    world = draw_world(rng)
    result = RobustRecourse(
        world.pipeline,
        robust_to=draw_set(rng, kind, world),
        actions=world.actions,
        guarantee=0.6,
        n_options=2,
        n_jobs=1,
    ).recommend(world.table.iloc[:25])
    for label in world.table.index[:25]:
        for option, way in enumerate(result.ways(label), start=1):
            efforts = result.efforts(label, option)
            assert math.fsum(efforts.values()) == pytest.approx(way.cost, rel=1e-9, abs=1e-12)
            assert set(efforts) == way.features


def test_what_is_derived_costs_nothing_and_what_follows_comes_last(bank):
    table, good, _ = bank
    table = table.assign(ratio=table["income"] / table["months"])
    names = ["months", "income", "age", "ratio"]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[names], good)
    actions = ActionSet.from_data(table[names])
    actions.set("income", step=1, lower=0, upper=60)
    actions.set("months", step=6, lower=6, upper=60)
    actions.set("ratio", upper=None)
    actions.derived = [Ratio("ratio", of="income", to="months")]
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.02), actions=actions, guarantee=0.6, n_jobs=1
    )
    person = table.loc[model.predict_proba(table[names])[:, 1] < 0.3, names].iloc[[0]]
    result, label = recourse.recommend(person), person.index[0]
    efforts = result.efforts(label)
    assert efforts["ratio"] == 0.0
    assert math.fsum(efforts.values()) == pytest.approx(result.ways(label)[0].cost, rel=1e-9)
    changes = look_at(result, label).ways[0].changes
    assert changes[-1].name == "ratio"  # which `explain` leaves out
    after = result.after().loc[label]
    assert float(changes[-1].after) == after["ratio"] == after["income"] / after["months"]
    assert [change.follows for change in changes] == [False] * (len(changes) - 1) + [True]


def test_what_is_computed_from_something_protected_is_not_shown(bank):
    table, good, _ = bank
    table = table.assign(ratio=table["income"] / table["age"])
    names = ["months", "income", "age", "ratio"]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[names], good)
    actions = ActionSet.from_data(table[names], protected=["age"], immutable=["months"])
    actions.set("income", step=1, lower=0, upper=90)
    actions.set("ratio", upper=None)
    actions.derived = [Ratio("ratio", of="income", to="age")]
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.02), actions=actions, guarantee=0.5, n_jobs=1
    )
    person = table.loc[model.predict_proba(table[names])[:, 1] < 0.4, names].iloc[[0]]
    result, label = recourse.recommend(person), person.index[0]
    assert set(result.efforts(label)) == {"income", "ratio"}
    assert [change.name for change in look_at(result, label).ways[0].changes] == ["income"]


def test_linked_features_share_the_cost(bank):
    actions = actions_of(bank)
    actions.set("age", integer=False, step=None, lower=0, upper=200)
    actions.links.append(Follows("age", of="months", by=-1 / 12))
    person = someone(bank, 0.1, 0.3)
    result, label = ask(bank, actions=actions).recommend(person), person.index[0]
    efforts = result.efforts(label)
    assert math.fsum(efforts.values()) == pytest.approx(result.ways(label)[0].cost, rel=1e-9)
    follows = {c.name: c.follows for c in look_at(result, label).ways[0].changes}
    assert follows.get("age", True)


def test_giving_what_is_missing_has_its_price(bank):
    table, good, _ = bank
    table = table[["months", "income"]].astype(float)
    table.iloc[::7, 1] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(table, good)
    actions = ActionSet.from_data(table)
    actions.set("income", provide_cost=0.3)
    actions.set("months", immutable=True)
    chance = model.predict_proba(table)[:, 1]
    person = table[table["income"].isna() & (chance < 0.4)].iloc[[0]]
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.02), actions=actions, guarantee=0.5, n_jobs=1
    )
    result, label = recourse.recommend(person), person.index[0]
    assert list(result.efforts(label)) == ["income"]
    assert result.efforts(label)["income"] == pytest.approx(result.ways(label)[0].cost, rel=1e-9)
    assert look_at(result, label).ways[0].changes[0].before == "not given"
    with pytest.raises(ValueError, match="there is no option 2"):
        result.efforts(label, 2)


# ------------------------------------------------------------------ how sure


def test_how_sure_compares_with_plain_recourse(bank):
    person = someone(bank, 0.1, 0.3)
    recourse = ask(bank, robust_to=NormBall(1, 0.4))
    sure = how_sure(recourse, person)
    plain = ask(bank, robust_to=NormBall(1, 0.0)).recommend(person).ways(person.index[0])[0]
    assert sure.radius == 0.4
    assert sure.plain.cost == plain.cost
    assert sure.curve.cost[0] == pytest.approx(plain.cost, rel=1e-6)
    assert sure.way.cost == recourse.recommend(person).ways(person.index[0])[0].cost
    assert sure.curve.cost_at(0.4) == pytest.approx(sure.way.cost, rel=1e-6)
    assert sure.note == ""
    assert sure.words == sure.opposing.explain("the plain advice")
    assert "less than the 60% asked for" in sure.words or "would refuse it" in sure.words
    chart = sure_chart(sure)
    assert f"at 0.4, the size in use, it is {sure.way.cost:.3g}." in chart
    assert f"plain {sure.plain.cost:.3g}" in chart


def test_a_size_out_of_reach_is_drawn_as_such(bank):
    sure = how_sure(ask(bank, robust_to=NormBall(1, 9.0)), someone(bank, 0.1, 0.3))
    assert sure.way is None
    assert sure.curve.end < 9.0
    assert "9 is out of reach" in sure_chart(sure)


def test_plain_advice_that_holds_is_said_to(bank):
    person = someone(bank, 0.1, 0.3)
    actions = actions_of(bank)
    actions.set("months", step=50)  # whatever is enough is much more than enough
    for name in ("income", "age", "savings"):
        actions[name].immutable = True
    sure = how_sure(ask(bank, actions=actions, robust_to=NormBall(1, 1e-6), guarantee=0.2), person)
    assert sure.opposing is None
    assert sure.words.endswith(
        "happens to hold for every model within a radius of 1e-06 of today's."
    )


def test_with_no_set_the_advice_is_plain(bank):
    sure = how_sure(ask(bank, robust_to=NormBall(1, 0.0)), someone(bank, 0.1, 0.3))
    assert sure.words == "This is the plain advice: it is made for today's model alone."
    assert sure.plain.cost == sure.way.cost


def test_a_list_of_models_has_no_curve_but_may_oppose(bank):
    classifier = bank[2][-1]
    others = ModelList([(classifier.coef_[0], float(classifier.intercept_[0]) - 0.5)])
    sure = how_sure(ask(bank, robust_to=others), someone(bank, 0.1, 0.3))
    assert sure.curve is None
    assert sure_chart(sure) == ""
    assert "a list of models has no size" in sure.note
    assert math.isnan(sure.radius)
    assert sure.words.endswith("it is stricter with everybody.")


def test_whom_not_even_today_helps_is_told_that(bank):
    actions = actions_of(bank, immutable=["months", "income", "age", "savings"])
    person = someone(bank, 0.1, 0.3)
    sure = how_sure(ask(bank, actions=actions), person)
    assert sure.plain is None
    assert sure.way is None
    assert sure.opposing is None
    assert sure.words.startswith(
        "No change you can make gets you a chance of 60% from today's model"
    )
    with pytest.raises(ValueError, match="how_sure takes one person, but the table has 2"):
        how_sure(ask(bank), bank[0].iloc[:2])
