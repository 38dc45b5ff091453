"""Advice holds as printed: whoever types the numbers that were printed gets what was promised."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

from holdfast import ActionSet, NormBall, RobustRecourse, Status, solve
from holdfast.actions import AtMost, Follows, check, raw_cost
from holdfast.datasets import load_german
from holdfast.machinery.numerals import below, numeral, numerals
from holdfast.models.encoding import Encoding
from holdfast.problem.goal import Goal
from holdfast.recommend.advised import _solve_held
from holdfast.recommend.printed import settle
from holdfast.recommend.words import _proof

SCALERS = {"standard": StandardScaler(), "minmax": MinMaxScaler(), "maxabs": MaxAbsScaler()}


def world(scaler="standard", random_state=0, n=500):
    """A table of numbers with many digits, and with few, of all sizes; and a model of it."""
    rng = np.random.default_rng(random_state)
    table = pd.DataFrame(
        {
            "income": rng.lognormal(10.3, 0.5, size=n),
            "ratio": rng.uniform(0, 1, size=n).round(2),
            "rate": rng.normal(0.03, 0.01, size=n),
            "tiny": rng.normal(size=n) * 3e-7,
            "years": rng.integers(0, 40, size=n).astype(float),
            "offset": 1e6 + rng.normal(size=n),
            "home": rng.choice(["own", "rent", "free"], size=n),
        },
        index=[f"p{k}" for k in range(n)],
    )
    numbers = [name for name in table if name != "home"]
    z = (table[numbers] - table[numbers].mean()) / table[numbers].std()
    score = z @ [1.0, -1.2, -0.7, 0.5, 0.8, 0.6] + (table["home"] == "own") - 1.0
    good = score + rng.logistic(size=n) > 0
    columns = make_column_transformer((SCALERS[scaler], numbers), (OneHotEncoder(), ["home"]))
    return table, make_pipeline(columns, LogisticRegression(C=100.0, max_iter=5000)).fit(
        table, good
    )


def german_world():
    german = load_german()
    table = german.features
    numbers = [name for name in table if table[name].dtype.kind in "if"]
    categories = [name for name in table if name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), categories))
    return table, make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(
        table, german.approved
    )


def read_back(words, people, actions):
    """Put what was said into the row of a person, exactly as it was said."""
    row = people.copy()
    for text in words:
        name, before, after = re.fullmatch(r"(\w+) from (.+) to (.+)", text).groups()
        unit = getattr(actions[name], "unit", "")
        after = after.removesuffix(f" {unit}") if unit else after
        if isinstance(people[name], str):
            assert before == people[name]
            row[name] = after
        else:
            assert float(before.replace(",", "")) == people[name]
            row[name] = float(after.replace(",", ""))
    return row


def assert_holds(result, model, actions, people, ball, *, guarantee=None, weight=None):
    """Follow all advice to the letter; return how many did."""
    rows, labels = [], []
    for label in people.index:
        for option, way in enumerate(result.ways(label), start=1):
            words = result.changes(label, option)
            row = read_back(words, people.loc[label], actions)
            assert dict(row) == dict(result.after(option).loc[label])
            assert check(actions, people.loc[label], row) == []
            assert way.cost == pytest.approx(raw_cost(actions, people.loc[label], row), rel=1e-9)
            assert all(word in result.explain(label) for word in words)
            rows.append(row)
            labels.append((label, way))
    table = pd.DataFrame(rows)[people.columns].astype(people.dtypes.replace("int64", "float64"))
    encoded = model[:-1].transform(table)
    encoded = np.asarray(encoded.todense() if hasattr(encoded, "todense") else encoded)
    coef, intercept = model[-1].coef_[0], model[-1].intercept_[0]
    worst = ball.worst_score(encoded, coef, intercept)
    np.testing.assert_allclose([way.worst_case_score for _, way in labels], worst, atol=1e-9)
    if guarantee is not None:
        assert (worst >= np.log(guarantee / (1 - guarantee))).all()
        assert (model.predict_proba(table)[:, 1] >= guarantee).all()
    else:
        loss = np.logaddexp(0.0, -worst)
        price = loss + weight * np.array([way.cost for _, way in labels])
        np.testing.assert_allclose([way.price for _, way in labels], price, rtol=1e-9)
    return len(rows)


def continuous(actions):
    """Take the drafted steps away: what is left must be rounded."""
    for name in actions:
        if hasattr(actions[name], "step"):
            actions.set(name, step=None, integer=False)
    return actions


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("steps", [True, False])
def test_advice_holds_as_printed(scaler, steps):
    table, model = world(scaler)
    actions = ActionSet.from_data(table)
    actions = actions if steps else continuous(actions)
    people = table[~model.predict(table)]
    assert len(people) > 150
    spread = np.abs(model[:-1].transform(table)[:, :6]).max()
    for radius in (0.0, 0.05 / max(spread, 1.0)):
        ball = NormBall(1, radius)
        for goal in ({"guarantee": 0.6}, {"weight": 0.2}):
            given = {"cost_weight": 0.2} if "weight" in goal else goal
            recourse = RobustRecourse(model, robust_to=ball, actions=actions, **given)
            result = recourse.recommend(people)
            told = assert_holds(result, model, actions, people, ball, **goal)
            assert told == sum(bool(result.ways(label)) for label in people.index)
            proven = np.mean([status.is_proven for status in result.status])
            assert proven > 0.99, result  # rounding leaves the proof alone


def test_german_credit_holds_as_printed():
    table, model = german_world()
    actions = ActionSet.from_data(table, units=load_german().units)
    people = table[~model.predict(table)]
    for radius, goal in ((0.0, 0.5), (0.05, 0.5), (0.3, 0.7)):
        ball = NormBall(1, radius)
        recourse = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=goal)
        result = recourse.recommend(people)
        assert assert_holds(result, model, actions, people, ball, guarantee=goal) > 200
    assert set(result.status) <= {Status.OPTIMAL, Status.INFEASIBLE}


def test_links_and_several_ways_hold_as_printed():
    table, model = world()
    actions = continuous(ActionSet.from_data(table))
    actions.links = [Follows("ratio", of="rate", by=3.0), AtMost("years", "income")]
    people = table[~model.predict(table)][:6]
    ball = NormBall(2, 0.02)
    result = RobustRecourse(
        model, robust_to=ball, actions=actions, guarantee=0.6, n_options=2
    ).recommend(people)
    assert assert_holds(result, model, actions, people, ball, guarantee=0.6) > 6


def test_advice_that_hits_the_boundary_exactly_stays():
    table = pd.DataFrame({"x0": [0, 1, 9]})
    recourse = RobustRecourse(
        ([1.0], -3.0), robust_to=NormBall(1, 0.0), actions=ActionSet.from_data(table), guarantee=0.5
    )
    result = recourse.recommend(table[:1])
    assert result.changes(0) == ["x0 from 0 to 3"]
    assert result.status_of(0) is Status.OPTIMAL


def test_a_way_that_misses_as_it_is_printed_is_found_anew(advised):
    """As if rounding in the pipeline had taken the guarantee away."""
    recourse, people, _ = advised
    question = recourse._question(Encoding.of(recourse.model))
    posed = question.pose(people)
    answer = question.solve(posed.problem, posed.links)
    nothing = np.zeros((len(people), len(posed.names)), dtype=bool)
    found, _ = question.read(answer, posed, np.arange(len(people)), nothing)
    target = np.log(0.6 / 0.4)
    # back to where they came from: refused
    start, current = posed.problem.base.X, posed.problem.current
    missing = replace(found, recourse=start, levels=current)
    goal, asked = Goal.of_score(question.goal.loss, target), []

    def resolve(ways, margin):
        asked.append((ways.who.tolist(), margin))
        return _solve_held(question, posed, ways.who, ways.held, margin)[0]

    ((settled, after),) = settle(posed, [missing], goal, resolve)
    assert asked == [(list(range(len(people))), 1e-12)]
    assert settled.who.tolist() == list(range(len(people)))
    assert list(after.index) == list(people.index)
    assert (settled.worst_case_score >= target).all()
    np.testing.assert_allclose(settled.cost, answer.cost, rtol=1e-9)
    some = np.arange(len(people)) % 2 == 0  # the others are not found again
    ((half, rows),) = settle(posed, [missing], goal, lambda ways, _: found.take(some))
    assert half.who.tolist() == [0, 2, 4, 6]
    assert list(rows.index) == list(people.index[some])
    ((hopeless, none),) = settle(posed, [missing], goal, lambda ways, _: found.take(~some & some))
    assert len(hopeless) == 0
    assert list(none.columns) == list(people.columns)
    assert len(none) == 0


@pytest.mark.parametrize(
    "value", [0.1, 1 / 3, 1e22, 123456.789, -0.0, 5e-324, 2.0**60, np.float32(0.1), 10**20, True]
)
def test_what_is_shown_reads_back_as_the_same(value):
    text = numeral(value)
    kind = type(value) if isinstance(value, np.generic) else float  # as a column of that type reads
    assert value == (text == "True" if value is True else kind(text.replace(",", "")))
    assert len(text) < 30


def test_many_numbers_are_written_as_each_of_them():
    rng = np.random.default_rng(4)
    values = rng.normal(size=400) * 10.0 ** rng.integers(-320, 300, size=400)
    edges = [0.0, 0.5, 9999.5, 9999.999, 1e4, 10000.5, 12345.25, 2.0**53, 1e20, 1e21, 1e22, np.inf]
    listed = [*values.tolist(), *values.round(2).tolist(), *edges, *(-edge for edge in edges)]
    assert numerals(np.array(listed)) == [numeral(value) for value in listed]
    whole = [0, 7, -7, 9999, 10_000, -10_000, 2**62, -(2**63)]
    assert numerals(np.array(whole)) == [numeral(value) for value in whole]


def test_what_has_few_digits_is_not_rounded_down():
    """In binary, 1e4 * 0.0003 is a hair below 3."""
    for k in range(10_001):
        assert below(k / 1e4, digits=4) == f"{k / 1e4:g}"
    assert below(0.99999, digits=4) == "0.9999"


def test_trifles_vanish():
    """Nobody is told to change one thing more by a hundredth of a standard deviation."""
    table, model = world()
    numbers = [name for name in table if name != "home"]
    people = table[~model.predict(table)]
    trifles, changes = {}, {}
    for fixed_cost in (0.0, 0.1):
        actions = ActionSet.from_data(table, fixed_cost=fixed_cost)
        recourse = RobustRecourse(
            model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.6
        )
        after = recourse.recommend(people).after()
        moved = (after[numbers] - people[numbers]).abs() / table[numbers].std()
        several = (after != people).sum(axis=1) > 1
        trifles[fixed_cost] = int((((moved > 0) & (moved < 0.01)).any(axis=1) & several).sum())
        changes[fixed_cost] = int((after != people).sum().sum())
    assert trifles[0.0] > len(people) / 3
    assert trifles[0.1] == 0
    assert changes[0.1] < 0.8 * changes[0.0]
    usual = ActionSet.from_data(table)
    assert {usual[name].fixed_cost for name in numbers} == {0.1}


# ---------------------------------------------------------------- who is who


@pytest.fixture(scope="module")
def advised():
    table, model = world()
    people = table[~model.predict(table)][:8]
    actions = ActionSet.from_data(table)
    recourse = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.6, n_options=2
    )
    return recourse, people, recourse.recommend(people)


def test_people_go_by_label_and_options_from_one(advised):
    recourse, people, result = advised
    shuffled = people[::-1]
    other = recourse.recommend(shuffled)
    last = people.index[-1]
    table = result.to_frame()
    for label in people.index:
        assert result.explain(label) == other.explain(label)
        assert result.initial_validity(label) == other.initial_validity(label)
        assert result.reachable(label) == pytest.approx(other.reachable(label), nan_ok=True)
        assert result.why_refused(label) is None
        assert result.releases(label) == []
        for option in (1, 2):
            row = table[(table.index == label) & (table["option"] == option)].iloc[0]
            assert ", ".join(result.changes(label, option)) == row["changes"]
            assert result.after(option).loc[label, "income"] == row["recourse.income"]
    assert result.frontier(last, n_points=2).cost[0] == 0.0
    assert result.changes(last) == result.changes(last, 1)
    for wrong in (0, 3):
        with pytest.raises(ValueError, match=f"option (= )?{wrong}"):
            result.changes(last, wrong)
    with pytest.raises(ValueError, match="there is no row 0; the rows are: 'p"):
        result.explain(0)


def test_a_label_that_stands_for_several_is_refused(advised):
    recourse, people, _ = advised
    twins = recourse.recommend(people.set_axis(["a", "b", *"ccdefg"]))
    assert twins.explain("a")
    for ask in (twins.explain, twins.ways, twins.frontier, twins.releases, twins.changes):
        with pytest.raises(ValueError, match=r"several rows have the label 'c'; .*reset_index"):
            ask("c")
    assert len(twins.to_frame()) >= 8  # a table can still be had
    plain = people.drop(columns="home").to_numpy()
    names = [f"x{j}" for j in range(plain.shape[1])]
    model = LogisticRegression().fit(plain, np.arange(8) % 2 == 1)
    free = ActionSet.from_data(pd.DataFrame(plain, columns=names))
    ball = NormBall(1, 0.0)
    numbered = RobustRecourse(model, robust_to=ball, actions=free, guarantee=0.5).recommend(plain)
    assert list(numbered.labels) == list(range(8))
    with pytest.raises(
        ValueError, match="there is no row -1; the rows are: 0, 1, 2, 3, 4 and 3 more"
    ):
        numbered.explain(-1)


def test_results_of_the_core_go_by_label_too():
    points = pd.DataFrame({"a": [0.0, 1.0, 9.0]}, index=["x", 0, "z"])
    result = solve(points, [1.0], -3.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
    assert result.explain("z").startswith("Every model")
    assert result.certificate(0).price == result.cost[1]
    assert result.frontier("x").at_score(0.0).cost[0] == pytest.approx(
        solve(points, [1.0], -3.0, robust_to=NormBall(1, 0.1), guarantee=0.5).cost[0]
    )
    for ask in (result.explain, result.certificate, result.frontier):
        with pytest.raises(ValueError, match="there is no row 'y'; the rows are: 'x', 0, 'z'"):
            ask("y")
    twice = solve(
        points.set_axis(["x", "x", "z"]), [1.0], -3.0, robust_to=NormBall(1, 0.1), guarantee=0.5
    )
    with pytest.raises(ValueError, match="several rows have the label 'x'"):
        twice.explain("x")


# ---------------------------------------------------------------- the table


def test_features_of_any_name_have_their_column():
    rng = np.random.default_rng(0)
    names = ["status", "price", "cost", "gap", "option", "changes", "recourse.gap"]
    table = pd.DataFrame(rng.normal(size=(80, len(names))), columns=names)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(table, table.sum(axis=1) + rng.normal(size=80) > 0)
    people = table[~model.predict(table)]
    actions = ActionSet.from_data(table)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.6)
    shown_ = recourse.recommend(people).to_frame()
    assert shown_.columns.is_unique
    assert set(shown_["status"]) == {"optimal"}
    after = recourse.recommend(people).after()
    for name in names:
        assert (shown_[f"recourse.{name}"] == after[name]).all()


def test_all_columns_are_there_when_nobody_can_be_helped(advised):
    recourse, people, result = advised
    columns = list(result.to_frame().columns)
    fixed = ActionSet.from_data(people)
    for name in fixed:
        fixed[name].immutable = True
    hopeless = RobustRecourse(
        recourse.model, robust_to=NormBall(1, 0.05), actions=fixed, guarantee=0.999
    ).recommend(people)
    assert set(hopeless.status) == {Status.INFEASIBLE}
    table = hopeless.to_frame()
    assert list(table.columns) == columns
    assert list(table["option"]) == [0] * 8
    assert np.isinf(table["cost"]).all()
    nobody = recourse.recommend(people[:0]).to_frame()
    assert list(nobody.columns) == columns
    assert len(nobody) == 0


# ---------------------------------------------------------------- what nobody can lift


def test_what_nobody_can_lift_is_never_in_the_way():
    table, model = world()
    actions = ActionSet.from_data(table, protected=["years", "home"])
    for name in table:
        if name != "home":
            actions.set(name, max_increase=0, max_decrease=0)
    actions.set(
        "offset", max_increase=None, direction="down", physical=["direction", "max_decrease"]
    )
    people = table[~model.predict(table)][:30]
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.6)
    result = recourse.recommend(people)
    hopeless = [i for i in people.index if result.status_of(i) is Status.INFEASIBLE]
    assert len(hopeless) == 30
    proposed = set()
    for label in hopeless:
        for release in result.releases(label):
            for constraint in release.constraints:
                proposed.add((constraint.feature, constraint.setting))
        words = result.explain(label)
        assert not re.search(r"\b(years|home|offset)\b", words.partition("in the way")[2])
    assert proposed
    assert {name for name, _ in proposed} <= {"income", "ratio", "rate", "tiny"}


def test_what_is_lifted_falls_back_to_what_is_possible():
    table = pd.DataFrame({"x0": [5.0, 6.0, 9.0]})
    actions = ActionSet.from_data(table)
    model = ([-1.0], -1.0)  # approved only below -1, which cannot be
    result = RobustRecourse(
        model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5
    ).recommend(table)
    assert result.releases(0) == []
    assert "no change is enough" in result.explain(0)
    assert "every removable constraint" in result.explain(0)
    actions.set("x0", possible_lower=None)
    freed = RobustRecourse(
        model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5
    ).recommend(table)
    assert [release.words for release in freed.releases(0)] == ["x0 may not fall below 5"]
    actions.set("x0", max_decrease=1)
    both = RobustRecourse(
        model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5
    ).recommend(table)
    words = "x0 may not fall below 5 and may fall by at most 1"
    assert [release.words for release in both.releases(0)] == [words]


# ---------------------------------------------------------------- what people read


def test_who_is_still_refused_is_told_so():
    table, model = world()
    people = table[~model.predict(table)]
    actions = ActionSet.from_data(table)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, cost_weight=0.5)
    result = recourse.recommend(people)
    after = result.after()
    refused = ~model.predict(after)
    assert refused.any()
    assert not refused.all()
    for label, no in zip(after.index, refused, strict=True):
        assert ("would still refuse you" in result.explain(label)) == no
        assert (result.status_of(label) is Status.STILL_REFUSED) == no
    assert set(result.to_frame()["status"]) == {"optimal", "still refused"}


def test_sentences_are_for_applicants(advised):
    recourse, people, result = advised
    label = people.index[0]
    words = result.explain(label)
    assert re.search(r"chance of \d+%\. Change \w+ from \S+ to \S+", words)
    assert ". This is provably the cheapest way." in words
    every = "Every model within a radius of 0.05 of today's"
    assert f"{every} then gives you a chance of at least 60%." in words
    assert " as it is and change " in words
    for strict in (0.6, 0.99):
        ball = NormBall(1, 0.2 if strict > 0.9 else 0.0)
        other = RobustRecourse(
            recourse.model, robust_to=ball, actions=recourse.actions, guarantee=strict
        )
        for who in people.index:
            said = other.recommend(people.loc[[who]]).explain(who)
            assert not re.search(r"\b(gap|price|ball)\b|→", said)
    approved = people.assign(income=5e5)
    said = recourse.recommend(approved).explain(label)
    assert said.endswith("You do not need to change anything.")


def test_a_low_guarantee_is_told_beside_the_refusal(advised):
    recourse, people, _ = advised
    low = RobustRecourse(
        recourse.model, robust_to=NormBall(1, 0.05), actions=recourse.actions, guarantee=0.3
    ).recommend(people)
    label = next(i for i in people.index if low.changes(i))
    assert re.search(
        r"today's then gives you a chance of at least 3\d%\. Today's model would still refuse you: "
        r"it gives you a chance of 3\d%\.",
        low.explain(label),
    )


def test_staying_can_be_another_way(advised):
    recourse, people, _ = advised
    weighed = RobustRecourse(
        recourse.model,
        robust_to=NormBall(1, 0.05),
        actions=recourse.actions,
        cost_weight=0.8,
        n_options=3,
    ).recommend(people)
    said = weighed.explain(people.index[0])
    assert said.count("Staying as you are") == 0
    assert re.search(r"With \w+ unchanged, staying as you are is provably the best bal", said)


def test_proven_is_said_only_of_what_is(advised):
    _, people, result = advised
    label = people.index[0]
    way = result.ways(label)[0]._replace(status=Status.GAP_OPEN, gap=0.25)
    said = _proof(result, way)
    assert said == "There may be a cheaper way, but it would cost at most 0.25 less."


# ---------------------------------------------------------------- nothing changes afterwards


def test_later_changes_do_not_reach_a_result():
    table, model = world()
    people = table[~model.predict(table)][:4].copy()
    actions = ActionSet.from_data(table, units={"income": "euros"})
    for name in table:
        if name != "income":
            actions[name].immutable = True
    actions.set("income", max_increase=1000)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.6)
    result = recourse.recommend(people)

    def everything():
        return (
            [result.explain(label) for label in people.index],
            [result.releases(label) for label in people.index],
            result.to_frame(),
            result.people,
        )

    before = everything()
    actions.set("income", max_increase=None, unit="dollars")
    actions["ratio"].immutable = False
    recourse.set_params(guarantee=0.9, robust_to=NormBall(1, 5.0), cost_weight=None)
    people.iloc[:, 0] = -1.0
    for copied in (result.people, result.to_frame(), result.after()):
        copied.iloc[:, 0] = -1
    with pytest.raises(ValueError, match="read-only"):
        result.status[0] = Status.OPTIMAL
    after = everything()
    assert before[:2] == after[:2]
    pd.testing.assert_frame_equal(before[2], after[2])
    pd.testing.assert_frame_equal(before[3], after[3])


# ---------------------------------------------------------------- the curve


def test_the_staircase_has_its_corners_where_they_are():
    """Two categories and a whole number: every corner by force."""
    table = pd.DataFrame({"x0": [0, 1, 2, 3], "x1": [0, 1, 0, 1], "x2": [0, 1, 0, 1]})
    actions = ActionSet.from_data(table, categories=["x1", "x2"], fixed_cost=0.0)
    actions.set("x0", cost=0.75)
    actions.set("x2", cost=1.6)
    model, ball = ([0.4, 0.7, 0.9], -2.0), NormBall(1, 0.1)
    recourse = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=0.42)
    curve = recourse.recommend(table[:1]).frontier(0)
    candidates = [(a, b, c) for a in range(4) for b in range(2) for c in range(2)]
    worst = ball.worst_score(np.array(candidates, dtype=float), *model)
    cost = np.array([0.75 * a + b + 1.6 * c for a, b, c in candidates])
    corners, best = [], -np.inf
    for k in np.lexsort((-worst, cost)):
        if worst[k] > best + 1e-12:
            best = worst[k]
            corners.append((cost[k], 1 / (1 + np.exp(-best))))
    np.testing.assert_allclose(
        np.column_stack([curve.cost, curve.worst_case_validity]), corners, atol=1e-12
    )
    assert curve.is_step[1:].all()
    assert curve.asked == 0.42


def test_what_it_costs_to_begin_is_a_corner_too():
    table = pd.DataFrame({"x0": [0.0, 1.25, 2.5]})
    actions = ActionSet.from_data(table, costs="unit", fixed_cost=0.5)
    actions.set("x0", step=None)
    recourse = RobustRecourse(
        ([1.0], -1.0), robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5
    )
    curve = recourse.recommend(table[:1]).frontier(0, n_points=5)
    assert curve.cost[1] == pytest.approx(0.5, abs=1e-6)  # nothing is had yet
    assert curve.worst_case_validity[1] == pytest.approx(curve.worst_case_validity[0], abs=1e-9)
    assert curve.is_step.tolist() == [False, True, *[False] * (len(curve.cost) - 2)]
    had = 1 / (1 + np.exp(1.0 - (curve.cost[1:] - 0.5)))
    np.testing.assert_allclose(curve.worst_case_validity[1:], had, atol=1e-9)


def test_the_dashed_line_is_what_was_asked_for(advised):
    pytest.importorskip("matplotlib").use("Agg")
    recourse, people, result = advised
    label = people.index[0]
    axes = result.frontier(label, n_points=3).plot()
    assert axes.lines[1].get_ydata() == [0.6, 0.6]
    x, y = axes.lines[0].get_data()
    assert (np.diff(x) >= -1e-12).all()
    assert (np.diff(y) >= 0).all()
    weighed = RobustRecourse(
        recourse.model, robust_to=NormBall(1, 0.05), actions=recourse.actions, cost_weight=0.3
    ).recommend(people)
    assert weighed.frontier(label, n_points=3).asked == 0.5


def test_columns_in_single_precision_are_judged_as_the_pipeline_computes():
    """The pipeline rounds such a column to seven digits; the guarantee must survive that."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"a": rng.normal(size=300), "b": 1000.0 + rng.normal(size=300)})
    table["b"] = table["b"].astype(np.float32)
    approved = table["a"] + table["b"] - 1000.0 + rng.logistic(size=300) > 0.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, approved)
    people = table[~model.predict(table)]
    for step in (None, 0.01):
        actions = ActionSet.from_data(table)
        actions["b"].immutable = True
        actions["a"].step = step
        recourse = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.5)
        after = recourse.recommend(people).after()
        assert len(after) > 50
        assert model.predict(after).all()
        assert (model.predict_proba(after)[:, 1] >= 0.5).all()


def test_labels_of_several_levels():
    rng = np.random.default_rng(9)
    index = pd.MultiIndex.from_product([["a", "b"], range(10)])
    table = pd.DataFrame({"x": rng.normal(size=20)}, index=index)
    model = LogisticRegression().fit(table, table["x"] > 0.0)
    actions = ActionSet.from_data(table)
    advice = RobustRecourse(
        model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.6
    ).recommend(table)
    assert advice.to_frame().index.equals(index)
    assert advice.explain(("a", 3))
