"""Weighted sums of numbers that stay below a value: against every raw row tried by force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from small_banks import least_price_of, set_around

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import CategoryFeature, Linear, NumberFeature

HOMES = ["own", "rent", "free"]
NUMBERS = ("a", "b", "c")


def fitted(rng: np.random.Generator):
    table = pd.DataFrame({name: rng.integers(0, 6, size=80) * 1.0 for name in NUMBERS})
    table["b"] = 0.5 * table["b"]
    table["home"] = rng.choice(HOMES, size=80)
    score = table[list(NUMBERS)] @ rng.normal(1.0, 0.5, size=3) + (table["home"] == "own")
    columns = ColumnTransformer(
        [("n", StandardScaler(), list(NUMBERS)), ("c", OneHotEncoder(), ["home"])]
    )
    pipeline = make_pipeline(columns, LogisticRegression())
    return table, pipeline.fit(table, score + rng.normal(size=80) > score.median())


def random_actions(rng: np.random.Generator) -> ActionSet:
    signs = rng.choice([1.0, 1.0, -1.0], size=3)
    coef = dict(zip(NUMBERS, np.round(signs * rng.uniform(0.2, 2.0, size=3), 2), strict=True))
    links = [Linear(coef, at_most=float(rng.integers(0, 8)))]
    if rng.random() < 0.5:
        pair = dict(zip(rng.permutation(NUMBERS)[:2].tolist(), (1, 0.5), strict=True))
        links.append(Linear(pair, at_most=int(rng.integers(1, 5))))
    fee = float(rng.choice([0.0, 0.2]))
    numbers = [
        NumberFeature("a", lower=0, upper=5, integer=True, cost=0.6, fixed_cost=fee),
        NumberFeature("b", lower=0, upper=2.5, step=0.5, cost=1.1),
        NumberFeature("c", lower=0, upper=5, integer=True, cost=0.7, fixed_cost=fee),
    ]
    home = CategoryFeature("home", HOMES, cost=1.3)
    return ActionSet([*numbers, home], links, rng.choice([None, None, 2]))


def every_row(person: pd.DataFrame) -> pd.DataFrame:
    """List all that the person could become, had they no links."""
    values = [np.arange(6.0), np.arange(0.0, 3.0, 0.5), np.arange(6.0), HOMES]
    rows = pd.DataFrame(list(itertools.product(*values)), columns=list(person.columns))
    return pd.concat([person, rows], ignore_index=True)


@pytest.mark.parametrize("goal", [{"guarantee": 0.6}, {"cost_weight": 0.15}])
@pytest.mark.parametrize("kind", ["1", "2", "inf", "ellipsoid", "list"])
def test_nothing_that_keeps_the_sums_is_cheaper(kind, goal):
    rng = np.random.default_rng([7, sum(map(ord, kind)), len(goal)])
    changed = found = 0
    for _ in range(6):
        table, pipeline = fitted(rng)
        actions = random_actions(rng)
        robust_to = set_around(rng, kind, pipeline[-1], 0.1, 0.3)
        people = table[pipeline.predict_proba(table)[:, 1] < 0.5].iloc[:3]
        ours = RobustRecourse(pipeline, actions=actions, robust_to=robust_to, **goal).recommend(
            people
        )
        free = ActionSet([actions[name] for name in actions], max_changes=actions.max_changes)
        for label in people.index:
            person = people.loc[[label]]
            rows = every_row(person)
            theirs = least_price_of(rows, person, actions, pipeline, robust_to, goal)
            if math.isinf(theirs):
                assert ours.status_of(label) is Status.INFEASIBLE
                continue
            way, *_ = ours.ways(label)
            assert way.status.is_proven
            assert way.price == pytest.approx(theirs, rel=1e-9, abs=1e-12)
            found += 1
            without = least_price_of(rows, person, free, pipeline, robust_to, goal)
            changed += without < theirs - 1e-9
    assert found >= 8
    assert changed >= 3  # the sums are not idle


def test_a_sum_in_any_unit_is_the_same_sum():
    """Coefficients of a billionth, or of a billion, bind as those around 1 do."""
    rng = np.random.default_rng(11)
    table, pipeline = fitted(rng)
    people = table[pipeline.predict_proba(table)[:, 1] < 0.4].iloc[:8]
    costs = []
    for unit in (1.0, 1e-12, 1e12):
        actions = ActionSet.from_data(table)
        actions.links = [Linear({"a": unit, "b": 2 * unit, "c": unit}, at_most=5 * unit)]
        ours = RobustRecourse(pipeline, actions=actions, guarantee=0.6, robust_to=NormBall(2, 0.1))
        costs.append(ours.recommend(people).to_frame()["cost"].to_numpy())
    assert np.isfinite(costs[0]).sum() >= 4
    np.testing.assert_allclose(costs[1], costs[0], rtol=1e-9)
    np.testing.assert_allclose(costs[2], costs[0], rtol=1e-9)
