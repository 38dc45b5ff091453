"""Recommendations in raw units: exact, checked, explained."""

from __future__ import annotations

import itertools
import runpy
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from small_banks import small_bank

import holdfast
from holdfast import ActionSet, Ellipsoid, ModelList, NormBall, RobustRecourse, Status
from holdfast.actions import Follows, check, raw_cost
from holdfast.discrete import largest_reachable_score
from holdfast.discrete.run import run_search
from holdfast.problem.outcome import LIMIT

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def bank():
    """A small bank: table, model and what its customers can do."""
    table, _, model = small_bank()
    actions = ActionSet.from_data(table, units={"months": "months"})
    actions.set("months", direction="down", lower=6)
    actions.set("income", max_increase=4.0, max_decrease=0.0)
    actions.set("age", direction="up", max_increase=2)
    actions.set("savings", order=["none", "some", "much"], direction="up", cost=1.5)
    return table, model, actions


def denied(bank, count=25):
    table, model, _ = bank
    return table[~model.predict(table)][:count]


def test_a_search_that_is_given_up_proves_nothing(bank, monkeypatch):
    """What it has found by then is neither the most that can be reached, nor a reason."""
    _, model, actions = bank
    recourse = RobustRecourse(
        model, robust_to=NormBall(p=2, radius=0.2), actions=actions, guarantee=0.9999
    )
    result = recourse.recommend(denied(bank)[:1])
    label = result.labels[0]
    assert result.status_of(label) is Status.INFEASIBLE
    posed = result._posed(label)
    assert np.isfinite(largest_reachable_score(posed.problem)).all()

    def stopped(*given):
        out = run_search(*given)
        out.outcome[:] = LIMIT
        return out

    monkeypatch.setattr("holdfast.discrete.solve.run_search", stopped)
    assert np.isnan(largest_reachable_score(posed.problem)).all()

    def give_up(question, problem, links, guarantee=None):
        n = problem.base.n_rows
        status = np.array([Status.GAP_OPEN] * n, dtype=object)
        return SimpleNamespace(cost=np.full(n, np.inf), status=status)

    monkeypatch.setattr("holdfast.recommend.question.Question.solve", give_up)
    assert result.releases(label) == []
    words = result.explain(label)
    assert "could not be determined" in words
    assert "no change" not in words


def test_every_answer_obeys_every_constraint_and_is_approved(bank):
    _, model, actions = bank
    people = denied(bank, 60)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.6)
    result = recourse.recommend(people)
    found = [label for label in people.index if result.ways(label)]
    after = result.after()
    assert list(after.index) == found
    assert len(found) > 40
    assert after["months"].dtype == people["months"].dtype  # whole months
    for i in found:
        assert check(actions, people.loc[i], after.loc[i]) == []
        cost = raw_cost(actions, people.loc[i], after.loc[i])
        assert result.ways(i)[0].cost == pytest.approx(cost, rel=1e-9)
        assert result.ways(i)[0].gap <= 1e-9 * (1 + cost)
    assert (model.predict_proba(after)[:, 1] >= 0.6).all()  # today's model is one of the ball


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_nothing_allowed_is_cheaper(bank, p):
    """Every raw candidate of a coarse grid that obeys and is safe costs at least as much."""
    _, model, actions = bank
    ball = NormBall(p, 0.05)
    recourse = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=0.5)
    people = denied(bank, 4)
    result = recourse.recommend(people)
    classifier = model[-1]
    for i in people.index:
        person = people.loc[i]
        grid = itertools.product(
            range(6, person["months"] + 1, 2),
            np.linspace(person["income"], person["income"] + 4, 5),
            range(person["age"], person["age"] + 3),
            ["none", "some", "much"],
        )
        candidates = pd.DataFrame(list(grid), columns=people.columns)
        encoded = np.asarray(model[:-1].transform(candidates))
        safe = ball.worst_score(encoded, classifier.coef_[0], classifier.intercept_[0]) >= 0
        allowed = [
            raw_cost(actions, person, candidate)
            for _, candidate in candidates[safe].iterrows()
            if not check(actions, person, candidate)
        ]
        best = result.ways(i)[0].cost if result.ways(i) else np.inf
        assert best <= min(allowed, default=np.inf) + 1e-9


def test_other_ways_differ_and_come_in_order(bank):
    _, model, actions = bank
    people = denied(bank, 15)
    arguments = {"robust_to": NormBall(1, 0.05), "actions": actions, "guarantee": 0.5}
    result = RobustRecourse(model, n_options=4, **arguments).recommend(people)
    first = RobustRecourse(model, **arguments).recommend(people)
    several = 0
    for i in people.index:
        ways = result.ways(i)
        costs = [way.cost for way in ways]
        assert costs == sorted(costs)
        for a, b in itertools.combinations(ways, 2):
            assert not a.features <= b.features
        if ways:
            assert ways[0].cost == first.ways(i)[0].cost
        several += len(ways) > 1
    assert several > 5


def test_the_ways_are_the_best_of_all_sets_of_features(bank):
    """By force: the best recourse for every set of features that may change."""
    table, model, actions = bank
    person = denied(bank, 1)
    ball = NormBall(1, 0.05)
    result = RobustRecourse(
        model, robust_to=ball, actions=actions, guarantee=0.5, n_options=5
    ).recommend(person)
    names = list(table.columns)
    costs = {}
    for size in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, size):
            some = ActionSet.from_data(table)
            for name in names:
                for setting in (
                    "order",
                    "direction",
                    "lower",
                    "upper",
                    "max_increase",
                    "max_decrease",
                ):
                    if hasattr(actions[name], setting):
                        value = getattr(actions[name], setting)
                        if value is not None:
                            setattr(some[name], setting, value)
                some[name].cost = actions[name].cost
                some[name].fixed_cost = actions[name].fixed_cost
                some[name].immutable = name not in chosen
            answer = RobustRecourse(model, robust_to=ball, actions=some, guarantee=0.5).recommend(
                person
            )
            if answer.ways(person.index[0]):
                way = answer.ways(person.index[0])[0]
                costs[way.features] = min(way.cost, costs.get(way.features, np.inf))
    expected = []
    for features, cost in sorted(costs.items(), key=lambda item: item[1]):
        if not any(other <= features for other, _ in expected):
            expected.append((features, cost))
    found = [(way.features, way.cost) for way in result.ways(person.index[0])]
    assert [f for f, _ in found] == [f for f, _ in expected[:5]]
    np.testing.assert_allclose([c for _, c in found], [c for _, c in expected[:5]], rtol=1e-9)


def test_who_cannot_be_helped_is_told_what_is_in_the_way(bank):
    table, model, _ = bank
    strict = ActionSet.from_data(table)
    for name in ("months", "age", "savings"):
        strict[name].immutable = True
    strict.set("income", max_increase=0.5, max_decrease=0.0)
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=strict, guarantee=0.7)
    people = denied(bank, 5)
    result = recourse.recommend(people)
    i = next(i for i in people.index if result.status_of(i) is Status.INFEASIBLE)
    reach, _ = result.reachable(i)
    assert reach < 0.7
    releases = result.releases(i)
    assert releases
    sizes = {len(release.constraints) for release in releases}
    assert len(sizes) == 1
    costs = [release.cost for release in releases]
    assert costs == sorted(costs)
    words = result.explain(i)
    assert f"The best you can reach with all of them is {np.floor(100 * reach):.0f}%" in words
    assert releases[0].words in words
    # releasing it does help, and one constraint fewer does not
    named = {constraint.feature for constraint in releases[0].constraints}
    assert named <= set(strict)


def test_rows_that_cannot_be_used_are_named_and_touch_nobody(bank):
    _, model, actions = bank
    people = denied(bank, 4).copy()
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.5)
    whole = recourse.recommend(people)
    people["savings"] = people["savings"].astype(object)
    people.iloc[1, 3] = "gold"
    broken = recourse.recommend(people)
    assert broken.status[1] is Status.INVALID_INPUT
    assert "gold" in broken.explain(people.index[1])
    for i in people.index[[0, 2, 3]]:
        assert broken.ways(i)[0].cost == whole.ways(i)[0].cost
    assert list(broken.to_frame().index) == list(people.index)


def test_the_table_says_whom_todays_model_approves(bank):
    table, model, actions = bank
    people = table[:40].copy()
    approved = model.predict(people).tolist()
    assert len(set(approved)) == 2
    people["savings"] = people["savings"].astype(object)
    people.iloc[1, 3] = "gold"
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.99)
    shown = recourse.recommend(people).to_frame()
    assert {0, 1} <= set(shown["option"])  # some have no option
    approved[1] = None
    assert shown["approved"].tolist() == approved
    names = shown.columns.tolist()
    assert names.index("approved") + 1 == names.index("changes")


def test_price_mode_and_at_most_one_change(bank):
    table, model, _ = bank
    actions = ActionSet.from_data(table)
    actions.max_changes = 1
    recourse = RobustRecourse(model, robust_to=NormBall(2, 0.1), actions=actions, cost_weight=0.1)
    people = denied(bank, 10)
    result = recourse.recommend(people)
    assert all(status.is_proven for status in result.status)
    assert all(len(result.ways(i)[0].features) <= 1 for i in people.index)


def test_linked_features_move_together(bank):
    table, model, _ = bank
    actions = ActionSet.from_data(table)
    actions.set("income", immutable=True)
    actions.set("savings", immutable=True)
    actions.set("age", integer=False, upper=None)
    actions.links.append(Follows("age", of="months", by=-0.25))
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.5)
    people = denied(bank, 3)
    result = recourse.recommend(people)
    after = result.after()
    found = [i for i in people.index if result.ways(i)]
    assert found
    curve = result.frontier(found[0], n_points=4)  # under the link too: never cheaper than without
    free = ActionSet.from_data(table)
    for name in ("income", "savings"):
        free[name].immutable = True
    free.set("age", integer=False, upper=None)
    loose = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=free, guarantee=0.5)
    without = loose.recommend(people).frontier(found[0], n_points=4)
    for had, cost in zip(curve.worst_case_validity[1:], curve.cost[1:], strict=True):
        # without the link, so much can be had at no more cost
        assert without.cost[without.worst_case_validity <= had].max() <= cost + 1e-6
    for i in found:
        moved = after.loc[i, ["months", "age"]] - people.loc[i, ["months", "age"]]
        assert moved["age"] == pytest.approx(-0.25 * moved["months"], abs=1e-6)


def test_it_is_an_estimator(bank):
    _, model, actions = bank
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.5)
    assert recourse.get_params(deep=False)["guarantee"] == 0.5
    copy = clone(recourse).set_params(guarantee=0.7)
    assert recourse.guarantee == 0.5
    a, b = recourse.recommend(denied(bank, 3)), copy.recommend(denied(bank, 3))
    first = denied(bank, 1).index[0]
    assert a.ways(first)[0].cost < b.ways(first)[0].cost  # the copy has a fitted model too


def test_the_frontier_rises(bank, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    _, model, actions = bank
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.5)
    people = denied(bank, 1)
    curve = recourse.recommend(people).frontier(people.index[0], n_points=9)
    assert (np.diff(curve.cost) >= -1e-9).all()
    assert (curve.worst_case_validity >= curve.guarantee - 1e-12).all()
    axes = curve.plot()
    axes.figure.savefig(tmp_path / "frontier.png")
    assert axes.get_xlabel() == "cost of the change"


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"guarantee": 1.5}, ValueError, "guarantee = 1.5"),
        ({"guarantee": None}, ValueError, "give exactly one"),
        ({"n_options": 0}, ValueError, "n_options = 0"),
        ({"actions": {}}, TypeError, "is not an ActionSet"),
        (
            {"robust_to": NormBall(1, 0.1, scale=[1.0] * 4)},
            ValueError,
            r"has 4 numbers, but .*; the features are the \d+ encoded columns: \w+, ",
        ),
        ({"robust_to": ModelList([([1.0] * 4, 0.0)])}, ValueError, "encoded columns: "),
        ({"robust_to": Ellipsoid(np.eye(4), 0.1)}, ValueError, "encoded columns: "),
    ],
)
def test_wrong_arguments_are_explained(bank, arguments, error, said):
    _, model, actions = bank
    recourse = RobustRecourse(
        model, **{"robust_to": NormBall(1, 0.1), "actions": actions, "guarantee": 0.5, **arguments}
    )
    with pytest.raises(error, match=said):
        recourse.recommend(denied(bank, 1))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("loans.csv", r"= 'loans\.csv' is text, not a table; .* as in pandas\.read_csv"),
        (Path("loans.csv"), r"loans\.csv'\) is text, .* as in pandas\.read_csv"),
        ({"income": 1.0}, r"is a dict, not a table; .* pd\.DataFrame\(\[row\]\)"),
        (pd.Series({"income": 1.0}), r"is a Series, .* two brackets, as in table\.iloc\[\[0\]\]"),
        (3.0, r"has shape \(\); expected a data frame"),
    ],
)
def test_what_is_no_table_is_refused_with_a_way_to_make_one(bank, wrong, said):
    _, model, actions = bank
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.5)
    with pytest.raises(ValueError, match=f"^X .*{said}"):
        recourse.recommend(wrong)
    with pytest.raises(ValueError, match=f"^table .*{said}"):
        ActionSet.from_data(wrong)


def test_decimals_of_a_database_are_the_numbers_that_they_stand_for(bank):
    table, model, actions = bank
    people = denied(bank, 5)
    exact = people.assign(
        income=[Decimal(str(value)) for value in people["income"]],
        months=[Decimal(str(value)) for value in people["months"]],
    )
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.6)
    ours, theirs = recourse.recommend(people), recourse.recommend(exact)
    pd.testing.assert_frame_equal(ours.after(), theirs.after(), check_dtype=False)
    assert model.predict(theirs.after()).all()
    assert ours.explain(people.index[0]) == theirs.explain(people.index[0])
    odd = [Decimal("NaN"), Decimal("sNaN"), None, Decimal("Infinity"), "9"]
    advice = recourse.recommend(exact.assign(income=odd))
    said = [advice.explain(label) for label in people.index]
    assert all("income is missing" in each for each in said[:3])
    assert all("a finite number was expected" in each for each in said[3:])
    drafted = ActionSet.from_data(table.assign(income=table["income"].astype(str).map(Decimal)))
    assert drafted["income"] == ActionSet.from_data(table)["income"]


def test_a_class_is_no_fitted_model(bank):
    people, _, actions = bank
    asked = {"robust_to": NormBall(1, 0.1), "guarantee": 0.5}
    said = (
        r"model = LogisticRegression is a class; pass a fitted model: LogisticRegression\(\)\.fit"
    )
    with pytest.raises(TypeError, match=said):
        RobustRecourse(LogisticRegression, actions=actions, **asked).recommend(people)
    with pytest.raises(TypeError, match=said):
        holdfast.find_recourse(people, LogisticRegression, **asked)


def test_a_margin_is_no_probability(bank):
    table, model, actions = bank
    columns = model[0]
    svm = make_pipeline(columns, LinearSVC()).fit(table, model.predict(table))
    recourse = RobustRecourse(svm, robust_to=NormBall(1, 0.01), actions=actions, guarantee=0.5)
    people = table[~svm.predict(table)][:2]
    result = recourse.recommend(people)
    assert "nan" not in result.explain(people.index[0])
    with pytest.raises(ValueError, match="no probabilities"):
        result.frontier(people.index[0])
    forest = RandomForestClassifier(5).fit(table[["months"]], model.predict(table))
    with pytest.raises(ValueError, match="RobustRecourse needs a linear"):
        recourse.set_params(model=forest).recommend(people[["months"]])


def test_the_example_explains_three_applicants(capsys):
    runpy.run_path(str(ROOT / "examples" / "german_credit.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("Applicant ") == 3
    assert "months" in printed
    assert "What stands in the way:" in printed


def test_what_has_no_cost_is_not_done_whatever_is_lifted():
    """A cost for each allowed switch: lifting the list of switches allows no others."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {"home": rng.choice(["own", "rent", "free"], 90), "x": rng.normal(size=90)}
    )
    approved = (table["home"] == "own") * 3.0 + table["x"] + rng.normal(size=90) > 1.0
    columns = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["x"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, approved)
    actions = ActionSet.from_data(table)
    actions["x"].immutable = True
    actions.set("home", moves={"free": ["rent"]}, cost={("free", "rent"): 1.0})
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.0), actions=actions, guarantee=0.9)
    people = table[table["home"] == "free"]
    advice = recourse.recommend(people)
    lost = [label for label in people.index if advice.status_of(label) is Status.INFEASIBLE]
    assert lost
    for label in lost[:5]:
        assert "own" not in advice.explain(label)
