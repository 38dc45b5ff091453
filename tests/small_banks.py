"""Small banks, sets of models around them, and the cheapest of listed rows, by force."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import Ellipsoid, ModelList, NormBall
from holdfast.actions.check import check_changes


def small_bank():
    """Return a table of 400 customers, whose loan went well, and a model of it."""
    rng = np.random.default_rng(1)
    n = 400
    table = pd.DataFrame(
        {
            "months": rng.integers(6, 61, size=n),
            "income": rng.normal(30, 8, size=n).round(1),
            "age": rng.integers(19, 75, size=n),
            "savings": rng.choice(["none", "some", "much"], size=n),
        },
        index=[f"c{k}" for k in range(n)],
    )
    worth = {"none": -1.0, "some": 0.0, "much": 1.0}
    score = -0.06 * table["months"] + 0.1 * table["income"] + 0.02 * table["age"] - 1.2
    good = score + table["savings"].map(worth) + rng.logistic(size=n) > 0
    columns = make_column_transformer(
        (StandardScaler(), ["months", "income", "age"]), (OneHotEncoder(), ["savings"])
    )
    return table, good, make_pipeline(columns, LogisticRegression()).fit(table, good)


def set_around(rng: np.random.Generator, kind: str, model, radius: float, spread: float):
    """Return an ellipsoid of that radius, a list of models that far apart, or a ball of 0.1."""
    d = model.coef_.shape[1]
    if kind == "ellipsoid":
        root = rng.normal(size=(d + 1, 3))
        return Ellipsoid(root @ root.T, radius)
    if kind == "list":
        moved = model.coef_[0] + spread * rng.normal(size=(4, d))
        return ModelList([(coef, float(model.intercept_[0])) for coef in moved])
    return NormBall(float(kind), 0.1)


def least_price_of(rows, person, actions, pipeline, robust_to, goal) -> float:
    """Return the least price of those rows that the checker lets through.

    What is derived costs nothing.
    """
    model = pipeline[-1]
    score = robust_to.worst_score(pipeline[:-1].transform(rows), model.coef_, model.intercept_)
    cost = np.zeros(len(rows))
    for name in rows.columns.difference([each.feature for each in actions.derived], sort=False):
        moved, feature = rows[name] != person[name].iloc[0], actions[name]
        way = 1.0 if name == "home" else np.abs(rows[name] - person[name].iloc[0])
        cost += np.where(moved, feature.cost * way + feature.fixed_cost, 0.0)
    price = cost
    if "cost_weight" in goal:
        price = np.logaddexp(0.0, -score) + goal["cost_weight"] * cost
    else:
        price[score < math.log(goal["guarantee"] / (1.0 - goal["guarantee"]))] = math.inf
    now = pd.concat([person] * len(rows), ignore_index=True)
    price[list(check_changes(actions, now, rows))] = math.inf
    return float(price.min())
