"""People with missing values: their order, their words, and what they are told alone."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from holdfast import ActionSet, Ellipsoid, ModelList, NormBall, RobustRecourse, Status
from holdfast.actions import AtMost, check
from holdfast.recommend.reasons import Constraint

NUMBERS = ["income", "months", "age", "debts"]
N = 260


@functools.cache
def bank():
    """A pipeline that fills in what is missing in four ways, one of them told apart."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {
            "income": rng.integers(1, 12, N).astype(float),
            "months": rng.integers(1, 9, N).astype(float),
            "age": rng.integers(18, 30, N).astype(float),
            "debts": rng.integers(0, 5, N).astype(float),
            "home": np.array(rng.choice(["own", "rent", "free"], N), dtype=object),
        }
    )
    score = 0.4 * (table["income"] - 6) - 0.3 * (table["months"] - 4) - 0.4 * table["debts"]
    score += 0.2 * (table["age"] - 24) + 0.5 * (table["home"] == "own") + rng.normal(size=N)
    for name, share in {"income": 0.35, "months": 0.25, "age": 0.15, "home": 0.15}.items():
        table.loc[rng.random(N) < share, name] = np.nan
    told = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    bins = KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform")
    columns = ColumnTransformer(
        [
            ("income", told, ["income"]),
            ("months", make_pipeline(StandardScaler(), SimpleImputer()), ["months"]),
            ("age", make_pipeline(SimpleImputer(), bins), ["age"]),
            ("debts", StandardScaler(), ["debts"]),  # it must be given
            ("home", OneHotEncoder(), ["home"]),
        ]
    )
    model = make_pipeline(columns, LogisticRegression()).fit(table, score > 0)
    return table, model


def actions_of(**settings):
    table, _ = bank()
    actions = ActionSet.from_data(table, fixed_cost=0.05)
    actions.set("income", provide_cost=0.3)
    actions.set("months", provide_cost=0.2)
    actions.set("age", provide_cost=0.1, direction="up")
    actions.set("home", provide_cost=0.15)
    for name, value in settings.items():
        setattr(actions, name, value)
    return actions


def sets():
    _, model = bank()
    coef, intercept = model[-1].coef_[0], float(model[-1].intercept_[0])
    rng = np.random.default_rng(1)
    root = rng.normal(size=(len(coef) + 1, 3))
    moved = coef + 0.1 * rng.normal(size=(3, len(coef)))
    return {
        "1": NormBall(1, 0.1),
        "2": NormBall(2, 0.1),
        "ellipsoid": Ellipsoid(root @ root.T, 0.03),
        "list": ModelList([(each, intercept) for each in moved]),
    }


def mixed():
    """Refused people of all patterns, in no order, with some among them that cannot be used."""
    table, model = bank()
    people = table[~model.predict(table)].iloc[:34].copy()
    people.index = [f"person {k}" for k in np.random.default_rng(3).permutation(len(people))]
    for k, value in ((2, np.nan), (9, np.nan), (20, np.inf)):
        people.iloc[k, people.columns.get_loc("debts")] = value
    people.iloc[14, people.columns.get_loc("home")] = "tent"
    assert people["income"].isna().sum() >= 5
    assert (people["income"].isna() & people["months"].isna()).sum() >= 2
    return people


UNUSED = [2, 9, 14, 20]
LIMITS = ("lower", "upper", "max_increase", "max_decrease", "moves", "allowed")
FREE = {"immutable": False, "direction": "any", **dict.fromkeys(LIMITS)}


@pytest.mark.parametrize("goal", [{"guarantee": 0.6}, {"cost_weight": 0.1}])
@pytest.mark.parametrize("kind", ["1", "2", "ellipsoid", "list"])
def test_everybody_is_told_the_same_alone_and_among_others(kind, goal):
    people = mixed()
    _, model = bank()
    ours = RobustRecourse(
        model, robust_to=sets()[kind], actions=actions_of(), n_options=2, n_jobs=1, **goal
    )
    together = ours.recommend(people)
    frame = together.to_frame().reset_index()
    assert list(dict.fromkeys(frame["person"])) == list(people.index)
    for k, label in enumerate(people.index):
        theirs = frame[frame["person"] == label].reset_index(drop=True)
        if k in UNUSED:
            assert together.status_of(label) is Status.INVALID_INPUT
            assert ("debts" if k != 14 else "home") in together.why_refused(label)
            continue
        single = ours.recommend(people.loc[[label]])
        alone = single.to_frame().reset_index()
        columns = [name for name in theirs if not name.startswith("recourse.")]
        pd.testing.assert_frame_equal(
            theirs[columns].astype(object), alone[columns].astype(object), check_exact=True
        )
        ways = zip(together.ways(label), single.ways(label), strict=True)
        for option, (way, other) in enumerate(ways, start=1):
            points = [each.encoded(label, option).tobytes() for each in (together, single)]
            assert points[0] == points[1]
            assert way.price == other.price
            assert way.lower_bound == other.lower_bound
        for option in range(1, len(single.ways(label)) + 1):
            now, then = together.after(option).loc[label], single.after(option).loc[label]
            assert [v if v == v else None for v in now] == [v if v == v else None for v in then]
    gone = people[NUMBERS[0]].isna() & ~people.index.isin(people.index[UNUSED])
    assert (
        frame.loc[frame["person"].isin(people.index[gone]), "changes"]
        .str.contains("income from not given to")
        .any()
    )


def test_the_order_of_a_batch_changes_nothing():
    people = mixed()
    _, model = bank()
    ours = RobustRecourse(
        model, robust_to=NormBall(1, 0.1), actions=actions_of(), guarantee=0.6, n_options=2
    )
    order = np.random.default_rng(0).permutation(len(people))
    first, second = (
        ours.recommend(some).to_frame().reset_index() for some in (people, people.iloc[order])
    )
    key = ["person", "option"]
    a, b = (each.sort_values(key).reset_index(drop=True) for each in (first, second))
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    assert list(dict.fromkeys(second["person"])) == list(people.index[order])


def test_advice_to_give_a_number_is_said_and_checked():
    people = mixed().drop(index=mixed().index[UNUSED])
    _, model = bank()
    actions = actions_of()
    ours = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.6)
    result, given = ours.recommend(people), 0
    after = result.after()
    for label, person in people.iterrows():
        for way in result.ways(label):
            assert check(actions, person, after.loc[label]) == []
            assert model.predict_proba(after.loc[[label]])[0, 1] >= 0.6
            provided = [
                name for name in people if person.isna()[name] and not after.isna().loc[label, name]
            ]
            said = "; ".join(result.changes(label))
            for name in provided:
                assert name in way.features
                told = after.loc[label, name]
                text = told if name == "home" else f"{told:g}"
                assert f"{name} from not given to {text}" in said
                assert f"{name} from not given to {text}" in result.explain(label)
                given += 1
            assert said.count("not given") == len(provided)
    assert given >= 8


def test_without_a_cost_of_giving_it_what_is_missing_stays_missing():
    people = mixed().drop(index=mixed().index[UNUSED])
    _, model = bank()
    actions = actions_of()
    for name in ("income", "months", "age", "home"):
        actions.set(name, provide_cost=None)
    ours = RobustRecourse(model, robust_to=NormBall(2, 0.1), actions=actions, guarantee=0.6)
    result = ours.recommend(people)
    after = result.after()
    helped = [label for label in people.index if result.ways(label)]
    pd.testing.assert_frame_equal(after.loc[helped].isna(), people.loc[helped].isna())
    assert not result.to_frame()["changes"].str.contains("not given").any()
    assert len(helped) >= 10


@pytest.mark.parametrize("most", [1, 2])
def test_to_give_a_number_is_a_change(most):
    people = mixed().drop(index=mixed().index[UNUSED])
    _, model = bank()
    ours = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=actions_of(max_changes=most), guarantee=0.55
    )
    result = ours.recommend(people)
    ways = [way for label in people.index for way in result.ways(label)]
    assert ways
    assert all(len(way.features) <= most for way in ways)


def test_releases_and_frontiers_of_people_with_missing_values():
    people = mixed().drop(index=mixed().index[UNUSED])
    people = people[people[["income", "months"]].isna().any(axis=1)]
    _, model = bank()
    actions = actions_of()
    for name in ("months", "debts", "home"):
        actions[name].immutable = True
    actions.set("income", upper=7)
    ball = NormBall(1, 0.1)
    ours = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=0.8)
    result, released, drawn = ours.recommend(people), 0, 0
    for label in people.index:
        if result.ways(label):
            stairs = result.frontier(label)
            assert stairs is not None
            drawn += 1
            continue
        assert result.status_of(label) is Status.INFEASIBLE
        best, _ = result.reachable(label)
        assert best < 0.8
        text = result.explain(label)
        for release in result.releases(label):
            lifted = copy.deepcopy(actions)
            for constraint in release.constraints:
                lifted[constraint.feature].set(**{constraint.setting: FREE[constraint.setting]})
            again = ours.set_params(actions=lifted).recommend(people.loc[[label]])
            assert again.ways(label)[0].cost == pytest.approx(release.cost, rel=1e-9)
            released += 1
        assert ("What stands in the way" in text) == bool(result.releases(label))
        ours.set_params(actions=actions)
    assert released >= 3
    assert drawn >= 1


def question_of_the_missing(seed):
    """Three numbers, of which two may be missing, and given only if they may change."""
    rng = np.random.default_rng([50, seed])
    n = 300
    table = pd.DataFrame(rng.integers([0, 27, 3], [9, 31, 8], (n, 3)) * 1.0, columns=list("abc"))
    table["b"] = table["b"].where(rng.random(n) > 0.3)
    table["c"] = table["c"].where(rng.random(n) > 0.3)
    score = table["a"] + 0.2 * table["b"].fillna(0) + 0.7 * table["c"].fillna(3)
    filled = make_column_transformer(
        (SimpleImputer(strategy="constant", add_indicator=bool(rng.random() < 0.5)), ["b"]),
        (SimpleImputer(add_indicator=bool(rng.random() < 0.5)), ["c"]),
        ("passthrough", ["a"]),
    )
    model = make_pipeline(filled, LogisticRegression(C=10)).fit(
        table, score + rng.normal(size=n) > score.median()
    )
    actions = ActionSet.from_data(table)
    actions.set("a", max_increase=1)
    for name, lower in (("b", 27), ("c", 3)):
        actions.set(name, provide_cost=0.3, lower=lower, cost=0.7, step=1.0)
        actions[name].immutable = bool(rng.random() < 0.7)
    return table, model, actions


def cost_without(constraints, recourse, person):
    """Ask what one person must do where some constraints are lifted; inf: nothing helps."""
    lifted = copy.deepcopy(recourse.actions)
    for each in constraints:
        lifted[each.feature].set(**{each.setting: FREE[each.setting]})
    result = recourse.with_settings(actions=lifted).recommend(person)
    ways = result.ways(person.index[0])
    return ways[0].cost if ways else np.inf


def test_what_a_release_costs_is_what_is_recommended_without_it():
    compared = 0
    for seed in range(10):
        table, model, actions = question_of_the_missing(seed)
        ball = NormBall(2, 0.01)
        ours = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=0.9, n_jobs=1)
        result = ours.recommend(table.iloc[:60])

        lost = [k for k in result.labels if result.status_of(k) is Status.INFEASIBLE]
        for label in lost[:5]:
            releases = result.releases(label)
            for release in releases:
                cost = cost_without(release.constraints, ours, table.loc[[label]])
                assert cost == pytest.approx(release.cost, rel=1e-9)
                compared += 1
            named = [[each.feature for each in release.constraints] for release in releases]
            for name in (name for name in table if actions[name].immutable):
                alone = [Constraint(name, "immutable", "")]
                helps = cost_without(alone, ours, table.loc[[label]]) < np.inf
                assert helps == ([name] in named)
    assert compared >= 30


def test_a_frontier_of_what_is_missing_is_what_is_recommended():
    people = mixed().drop(index=mixed().index[UNUSED])
    people = people[people["income"].isna()].iloc[:3]
    _, model = bank()
    ball = NormBall(1, 0.1)
    for label in people.index:
        ours = RobustRecourse(model, robust_to=ball, actions=actions_of(), guarantee=0.6)
        stairs = ours.recommend(people).frontier(label).to_frame()
        for guarantee, cost in stairs[["guarantee", "cost"]].dropna().iloc[::6].to_numpy():
            again = ours.set_params(guarantee=float(guarantee)).recommend(people.loc[[label]])
            (way,) = again.ways(label)
            assert way.cost == pytest.approx(cost, rel=1e-6, abs=1e-9)


def test_whoever_misses_a_linked_number_is_told_of_the_link():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)}).round(2)
    good = table["a"] + table["b"] + rng.logistic(size=80) > 0.0
    table.loc[5, "a"] = np.nan
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(table, good)
    actions = ActionSet.from_data(table)
    actions.links.append(AtMost("a", "b"))
    asked = {"robust_to": NormBall(2, 0.0), "actions": actions, "guarantee": 0.5}
    advice = RobustRecourse(model, **asked).recommend(table)
    assert "a is missing, but it is linked with b" in advice.explain(5)
