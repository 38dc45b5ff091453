"""Everybody at once gives what one after another does."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_by_one import check_person, releases_of_person, round_decimal, ways_of_person
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_actions import RAW, action_sets

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import AtMost, check
from holdfast.actions.check import check_changes
from holdfast.actions.ranges import multiples
from holdfast.discrete import DiscreteProblem
from holdfast.discrete.answer import costs_of
from holdfast.models.encoding import Encoding
from holdfast.problem import RecourseProblem
from holdfast.recommend import advised, printed, rounding
from holdfast.recommend.advised import _solve_held
from holdfast.recommend.rounding import round_to
from holdfast.recommend.ways import other_ways

# ---------------------------------------------------------------- the check

ODD = {"a": ["old", math.nan, None, math.inf, True, 10**6], "b": [None, 1e9, -0.25, False]}
ODD |= {"c": ["none", None, math.nan, 3], "d": [None, 7, 1.0, True, "1"]}


@given(action_sets(), st.integers(0, 10**6))
@settings(max_examples=75, deadline=None)
def test_the_check_says_the_same_of_a_table_as_of_each_person(actions, seed):
    rng = np.random.default_rng(seed)

    def some(odd):
        rows = []
        for _ in range(20):
            row = {name: rng.choice(np.array(values, dtype=object)) for name, values in RAW.items()}
            for name, values in ODD.items():
                if rng.random() < odd:
                    row[name] = values[rng.integers(len(values))]
            rows.append(row)
        return pd.DataFrame(rows, dtype=object)

    before, after = some(0.03), some(0.1)
    keep = rng.random(before.shape) < 0.5
    after = after.where(~keep, before)
    after["extra"], before["extra"] = rng.integers(0, 2, (2, 20))
    if rng.random() < 0.2:
        after = after.drop(columns=rng.choice(list(RAW)))
    if rng.random() < 0.2:
        before = before.drop(columns=["extra"])
    together = check_changes(actions, before, after)
    alone = {}
    for k in range(20):
        rows = [{name: table[name].iloc[k] for name in table} for table in (before, after)]
        said = check_person(actions, *rows)
        assert check(actions, *rows) == said
        if said:
            alone[k] = said
    assert together == alone


@given(action_sets(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_the_check_reads_columns_of_every_type(actions, seed):
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        table = pd.DataFrame({name: rng.choice(values, 30) for name, values in RAW.items()})
        table["a"] = pd.array(np.where(rng.random(30) < 0.1, None, table["a"]), dtype="Float64")
        table["c"] = table["c"].astype(pd.CategoricalDtype([*RAW["c"], "none"]))
        table["d"] = table["d"].astype(rng.choice(["int8", "Int64", "float32"]))
        tables.append(table)
    before, after = tables
    after = pd.DataFrame(
        {name: after[name].where(rng.random(30) < 0.5, before[name]) for name in RAW}
    )
    together = check_changes(actions, before, after)
    for k in range(30):
        rows = [{name: table[name].iloc[k] for name in table} for table in (before, after)]
        assert check_person(actions, *rows) == together.get(k, [])


@pytest.mark.parametrize("dtypes", [("string", "string"), (None, None), ("string", object)])
@given(actions=action_sets(), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_check_compares_texts_of_every_type_and_those_that_are_missing(actions, seed, dtypes):
    rng = np.random.default_rng(seed)
    tables = []
    for dtype in dtypes:
        table = pd.DataFrame({name: rng.choice(values, 30) for name, values in RAW.items()})
        texts = rng.choice(np.array([*RAW["c"], "none", None], dtype=object), 30)
        table["c"] = pd.Series(texts, dtype=dtype)
        tables.append(table)
    before, after = tables
    together = check_changes(actions, before, after)
    for k in range(30):
        rows = [{name: table[name].iloc[k] for name in table} for table in (before, after)]
        assert check_person(actions, *rows) == together.get(k, [])


def test_the_check_of_tables_that_do_not_fit():
    actions = ActionSet.from_data(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(ValueError, match="2 people before, but 1 after"):
        check_changes(actions, pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1]}))


# ---------------------------------------------------------------- a small bank


def bank(seed, *, ties=False, n=150):
    """Numbers and categories; with ties, features that are worth the same and cost the same."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "months": rng.integers(0, 6, size=n),
            "income": rng.integers(0, 6, size=n),
            "years": rng.integers(0, 6, size=n),
            "home": rng.choice(["own", "rent", "free"], size=n),
            "job": rng.choice(["none", "some", "good"], size=n),
        },
        index=[f"p{k}" for k in range(n)],
    )
    numbers, categories = ["months", "income", "years"], ["home", "job"]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), categories))
    approved = table[numbers].sum(axis=1) + (table["home"] == "own") * 2.0 > 9 + rng.normal(size=n)
    model = make_pipeline(columns, LogisticRegression()).fit(table, approved)
    actions = ActionSet.from_data(table, fixed_cost=0.25)
    if ties:
        scaler, last = model[0].transformers_[0][1], model[-1]
        scaler.scale_[:], scaler.var_[:], scaler.mean_[:] = 1.0, 1.0, 0.0
        last.coef_[:] = [[0.5, 0.5, 0.5, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]
        last.intercept_[:] = -6.0
        for name in numbers:
            actions.set(name, cost=1.0)
    return table, model, actions


def asked(model, actions, radius=0.05, guarantee=0.6, **more):
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, radius), actions=actions, guarantee=guarantee, **more
    )
    return recourse, recourse._question(Encoding.of(model))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("count", [2, 3, 6])
def test_other_ways_are_those_of_each_person_alone(ties, count):
    several, equal = 0, 0
    for seed in range(3):
        table, model, actions = bank(seed, ties=ties)
        _, question = asked(model, actions)
        for alone in compare_ways(question, table[~model.predict(table)][:15], count):
            several += len(alone) > 1
            equal += len({way[2] for way in alone}) < len(alone)
    assert several > 10
    assert (equal > 10) == ties


def compare_ways(question, people, count):
    """Find the ways of everybody, and of one after another; return the latter."""
    posed = question.pose(people)
    answer = question.solve(posed.problem, posed.links)
    none = np.zeros((len(people), len(posed.names)), dtype=bool)
    first, _ = question.read(answer, posed, np.arange(len(people)), none)
    options = other_ways(first, count, lambda who, held: _solve_held(question, posed, who, held))
    together = {i: [] for i in first.who.tolist()}
    for ways in options:
        for k, i in enumerate(ways.who.tolist()):
            together[i].append(plain_way(ways, k))

    def solve(i, held):
        mask = np.zeros((1, len(posed.names)), dtype=bool)
        mask[0, list(held)] = True
        ways, _ = _solve_held(question, posed, np.array([i]), mask)
        return plain_way(ways, 0) if len(ways) else None

    alone = {
        i: ways_of_person(plain_way(first, place), count, partial(solve, i))
        for place, i in enumerate(first.who.tolist())
    }
    assert together == alone
    return list(alone.values())


def plain_way(ways, k):
    """(features, held, price) of one way."""
    return (
        frozenset(np.flatnonzero(ways.changed[k]).tolist()),
        frozenset(np.flatnonzero(ways.held[k]).tolist()),
        float(ways.price[k]),
    )


# ---------------------------------------------------------------- releases


def strict(actions, seed):
    """Constraints of all kinds, several on the same feature."""
    rng = np.random.default_rng(seed)
    names = ["months", "income", "years"]
    for name in rng.choice(names, 2, replace=False):
        actions.set(name, max_increase=int(rng.integers(0, 2)), direction="down")
    actions.set(rng.choice(names), immutable=True)
    home = {("rent", "own"): 1.0, ("free", "rent"): 0.5, ("free", "own"): 2.0}
    actions.set("home", cost=home, moves={"rent": ["own"], "free": ["rent", "own"]})
    actions.set("home", immutable=bool(rng.random() < 0.5), allowed=["rent", "free"])
    actions.set("job", order=["none", "some", "good"], direction=rng.choice(["up", "down"]))
    actions.set("job", protected=bool(rng.random() < 0.3), physical=["direction"])
    actions.max_changes = [None, 1, 2][int(rng.integers(3))]
    return actions


@pytest.mark.parametrize("seed", range(6))
def test_releases_are_those_of_every_set_tried(seed):
    table, model, actions = bank(seed)
    recourse, question = asked(model, strict(actions, seed), guarantee=0.7)
    result = recourse.recommend(table)
    lost = [label for label in table.index if result.status_of(label) is Status.INFEASIBLE]
    assert len(lost) > 10
    found = set()
    for label in lost[:8]:
        releases = result.releases(label)
        assert releases == releases_of_person(table.loc[[label]], question)
        found |= {len(release.constraints) for release in releases}
    assert found


def test_releases_where_there_are_too_many_sets_to_try():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 9, size=(80, 8)), columns=list("abcdefgh"))
    coef = np.array([0.5, -0.4, 0.3, -0.6, 0.5, 0.2, -0.3, 0.4])
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(table, table @ coef + rng.normal(size=80) > 3.0)
    actions = ActionSet.from_data(table, immutable=list("abcdefgh"))
    for name in table:
        actions.set(name, max_increase=1, max_decrease=1)
    recourse, question = asked(model, actions, guarantee=0.8)
    result = recourse.recommend(table)
    lost = [label for label in table.index if result.status_of(label) is Status.INFEASIBLE]
    sizes = set()
    for label in lost[:6]:
        releases = result.releases(label)
        assert releases == releases_of_person(table.loc[[label]], question)
        sizes |= {len(release.constraints) for release in releases}
    assert max(sizes) > 2


def test_releases_with_links():
    table, model, actions = bank(1)
    actions.links.append(AtMost("months", "years"))
    for name in ("home", "job", "income"):
        actions[name].immutable = True
    actions.set("years", max_increase=1)
    recourse, question = asked(model, actions, guarantee=0.7)
    result = recourse.recommend(table[:25])
    lost = [label for label in table.index[:25] if result.status_of(label) is Status.INFEASIBLE]
    assert lost
    for label in lost[:2]:
        assert result.releases(label) == releases_of_person(table.loc[[label]], question)


# ---------------------------------------------------------------- batches


def test_people_in_small_batches_are_told_the_same(monkeypatch):
    table, model, actions = bank(5)
    people = table.astype({"home": "category", "job": object})
    people["home"] = people["home"].cat.set_categories(["rent", "free", "own"])
    people = people[(table["home"] != "own") & ~model.predict(table)]
    people["home"] = people["home"].cat.remove_unused_categories()  # "own" must be learned
    people.iloc[[2, 11], 4] = "odd"
    recourse, _ = asked(model, actions, n_options=2)
    whole = recourse.recommend(people)
    monkeypatch.setattr(advised, "BATCH", 5)
    parts = recourse.recommend(people)
    assert len(people) > 20
    pd.testing.assert_frame_equal(parts.to_frame(), whole.to_frame(), check_exact=True)
    pd.testing.assert_frame_equal(parts.people, whole.people)
    for option in (1, 2):
        pd.testing.assert_frame_equal(parts.after(option), whole.after(option))
    assert whole.after()["home"].dtype == "category"
    assert [parts.explain(i) for i in people.index] == [whole.explain(i) for i in people.index]
    assert "odd" in parts.explain(people.index[11])
    nobody = recourse.recommend(people[:0])
    assert list(nobody.to_frame().columns) == list(whole.to_frame().columns)


def plain_world(n=260):
    """People described by numbers alone: of all sizes, one far from 0, some at a bound."""
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.normal(size=(n, 9)), columns=list("abcdefghi"))
    table = table * 10.0 ** np.array([0, 3, -4, 0, 1, -1, 0, 5, 0])
    table["d"] += 1e3
    score = ((table - table.mean()) / table.std()) @ rng.normal(size=9)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(table, score + rng.logistic(size=n) > 0.5)
    actions = ActionSet.from_data(table, fixed_cost=0.05)
    for name in "abcdefgh":
        actions.set(name, step=None)
    actions.set("a", direction="up")
    actions.set("b", max_increase=1.0)
    actions.set("i", max_increase=0.3, max_decrease=0.3)
    return table, model, actions


def everything(recourse, people):
    result = recourse.recommend(people)
    return result.to_frame(), result.after(), [result.changes(label) for label in people.index]


def assert_same(one, other):
    for left, right in zip(one[:2], other[:2], strict=True):
        pd.testing.assert_frame_equal(left, right, check_exact=True)
    assert one[2] == other[2]


def test_people_with_numbers_alone_are_told_the_same_in_small_batches(monkeypatch):
    table, model, actions = plain_world()
    recourse, question = asked(model, actions)
    whole = everything(recourse, table)
    monkeypatch.setattr(advised, "BATCH", 5)
    assert advised.batch_size(question, table, 1) == 40
    assert_same(everything(recourse, table), whole)
    monkeypatch.setattr(advised, "BATCH", 1)
    monkeypatch.setattr(advised, "_WIDE", 1)
    assert_same(everything(recourse, table), whole)


@pytest.mark.parametrize("goal", [{"guarantee": 0.7}, {"cost_weight": 0.1}])
def test_digits_that_are_left_out_would_not_have_done(monkeypatch, goal):
    table, model, actions = plain_world()
    asked_for = {"robust_to": NormBall(p=2, radius=0.05), "actions": actions, **goal}
    recourse = RobustRecourse(model, **asked_for)
    found = everything(recourse, table)
    tried, attempt = [], printed._attempt

    def counted(judge, trial, encoded, **how):
        tried.append(len(trial.ways))
        return attempt(judge, trial, encoded, **how)

    monkeypatch.setattr(printed, "_attempt", counted)
    monkeypatch.setattr(rounding, "_AT_ONCE", 1)  # one after another
    assert_same(everything(recourse, table), found)
    few = sum(tried)
    monkeypatch.setattr(rounding.RoundedWays, "_skip_digits", lambda draft: None)
    tried.clear()
    assert_same(everything(recourse, table), found)
    assert sum(tried) > 2 * few or "cost_weight" in goal  # which nothing is left out for


def test_what_a_row_costs_does_not_depend_on_the_others():
    rng = np.random.default_rng(2)
    start, to = rng.normal(size=(2, 50, 19))
    base = RecourseProblem.build(
        start, rng.normal(size=19), robust_to=NormBall(1, 0.1), feature_costs=rng.random(19)
    )
    shape, none = (1, 19), np.empty((50, 0), dtype=np.int64)
    fees = rng.random(shape) * (rng.random(shape) < 0.5)
    problem = DiscreteProblem(base, np.zeros(shape), start, [], none, [], fixed_costs=fees)
    together = costs_of(problem, to, none)
    for i in range(50):
        alone = problem.take(np.array([i]))
        assert costs_of(alone, to[i : i + 1], none[:1])[0] == together[i]
    exact = np.abs(to - start) @ base.feature_costs[0] + fees.sum()
    np.testing.assert_allclose(together, exact, rtol=1e-12)


# ---------------------------------------------------------------- decimal numbers


def test_rounding_is_that_of_decimal_numbers():
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(size=300) * 10.0 ** rng.integers(-12, 12, size=300), np.arange(-5, 5) / 10.0]
    )
    for exponent in range(-14, 6):
        for direction in (-1, 0, 1):
            found = round_to(values, exponent, float(direction))
            expected = [round_decimal(value, exponent, direction) for value in values]
            few = np.abs(values) < 2.0**49 * 10.0**exponent
            if direction:
                np.testing.assert_array_equal(found[few], np.array(expected)[few])
            else:  # what is in the middle of two may become either
                near = np.abs(found - values) <= 0.75 * 10.0**exponent
                assert (near | (found == expected))[few].all()
            np.testing.assert_allclose(found, values, rtol=1e-9, atol=10.0**exponent)


@pytest.mark.parametrize("step", [0.1, 0.01, 0.25, 1e-5, 2.5e-7, 3e-30, 0.1 + 0.2, 100.0])
def test_steps_are_counted_in_decimal_numbers(step):
    counts = np.array([0.0, 1.0, 3.0, 7.0, -12.0, 123456789.0, 2.0**45])
    expected = [float(int(k) * Decimal(repr(step))) for k in counts]
    assert multiples(counts, step).tolist() == expected
