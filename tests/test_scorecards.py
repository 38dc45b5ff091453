"""Scorecards with many bins, against mixed-integer programs solved by HiGHS."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, milp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from holdfast import ActionSet, NormBall, RobustRecourse, Status
from holdfast.actions import NumberFeature
from holdfast.models.encoding import ColumnRule

ROOT = Path(__file__).parent.parent


class Evidence(TransformerMixin, BaseEstimator):
    """Weights of evidence: for each column its bins, some rising, some falling, some neither."""

    def __init__(self, names, edges, weights):
        self.names, self.edges, self.weights = names, edges, weights

    def fit(self, table, approved=None):
        self.feature_names_in_ = np.array(self.names, dtype=object)
        return self

    def transform(self, table):
        columns = []
        for name, edges, weights in zip(
            self.feature_names_in_, self.edges, self.weights, strict=True
        ):
            columns.append(weights[np.searchsorted(edges, table[name], side="right")])
        return np.column_stack(columns)

    def holdfast_rules(self):
        return [ColumnRule(edges=edges) for edges in self.edges]


def scorecard(rng, n_features, n_bins, coded):
    """Return a table, a fitted scorecard, and the edges of each of its columns."""
    names = [f"f{k:02d}" for k in range(n_features)]
    table = pd.DataFrame({name: rng.integers(0, 200, 600) for name in names})
    if coded == "one-hot":
        bins = KBinsDiscretizer(n_bins, encode="onehot-dense", strategy="uniform")
        step = ColumnTransformer([("bins", bins, names)])
    else:
        edges = [np.sort(rng.choice(np.arange(5, 195), n_bins - 1, replace=False)) for _ in names]
        weights = [np.round(np.cumsum(rng.normal(0.1, 0.4, n_bins)) - 1.0, 2) for _ in names]
        step = Evidence(names, [e.astype(float) for e in edges], weights)
    made = step.fit(table).transform(table)
    wanted = made @ rng.normal(0.4, 0.5, made.shape[1]) + rng.normal(size=len(table))
    model = make_pipeline(step, LogisticRegression()).fit(table, wanted > np.median(wanted))
    if coded == "one-hot":
        edges = [e[1:-1] for e in model[0].named_transformers_["bins"].bin_edges_]
    return table, model, [np.asarray(e, dtype=np.float64) for e in edges]


def least_cost(table, model, edges, actions, person, ball, target):
    """Return the least cost of a score, by HiGHS: a switch for each bin of each feature."""
    costs, sizes, scores, moves, owners = [], [], [], [], []
    coef, intercept = model[-1].coef_[0], float(model[-1].intercept_[0])
    rows = []
    for f, name in enumerate(table):
        whole = np.arange(200.0)
        place = np.searchsorted(edges[f], whole, side="right")
        for k in np.unique(place):
            inside = whole[place == k]
            feature, own = actions[name], person[name]
            if feature.direction == "up":
                inside = inside[inside >= own]
            if not len(inside):
                continue
            value = inside[np.abs(inside - own).argmin()]
            row = person.copy()
            row[name] = value
            rows.append(row)
            moved = value != own
            costs.append(feature.cost * abs(value - own) + feature.fixed_cost * moved)
            moves.append(float(moved))
            owners.append(f)
    made = model[:-1].transform(pd.DataFrame(rows)[list(table)])
    base = model[:-1].transform(pd.DataFrame([person])[list(table)])[0]
    width = made.shape[1] // table.shape[1]
    for k, f in enumerate(owners):
        own = slice(f * width, (f + 1) * width)
        scores.append(float(made[k, own] @ coef[own]))
        sizes.append(np.abs(made[k, own]))
    m, largest = len(costs), len(costs)
    taken = np.zeros((table.shape[1], m + 1))
    taken[owners, np.arange(m)] = 1.0
    parts = [LinearConstraint(taken, 1.0, 1.0)]
    score = np.append(scores, -ball.radius)
    total = np.zeros((len(base), m + 1))
    for k, f in enumerate(owners):
        total[f * width : (f + 1) * width, k] = sizes[k]
    constant = intercept
    if ball.p == 1.0:  # the largest size counts
        parts.append(LinearConstraint(-total + np.eye(m + 1)[[largest]], 0.0, np.inf))
    else:  # all of them count
        score[:m] -= ball.radius * total[:, :m].sum(axis=0)
        score[largest] = 0.0
        constant -= ball.radius * ball.intercept_scale
    parts.append(LinearConstraint(score, target - constant, np.inf))
    if actions.max_changes is not None:
        parts.append(LinearConstraint(np.append(moves, 0.0), 0.0, actions.max_changes))
    lower = np.zeros(m + 1)
    lower[largest] = ball.intercept_scale
    result = milp(
        np.append(costs, 0.0),
        constraints=parts,
        bounds=(lower, np.append(np.ones(m), np.inf)),
        integrality=np.append(np.ones(m), 0.0),
        options={"mip_rel_gap": 1e-9},
    )
    assert result.status in (0, 2)
    return np.inf if result.x is None else float(result.fun)


@pytest.mark.parametrize("p", [1.0, np.inf])
@pytest.mark.parametrize(
    ("n_features", "n_bins", "coded", "most"),
    [(8, 20, "weights", None), (14, 12, "weights", 3), (20, 10, "weights", None),
     (8, 10, "one-hot", None), (10, 12, "one-hot", 2)],
)  # fmt: skip
def test_costs_are_those_of_a_mixed_integer_program(n_features, n_bins, coded, most, p):
    rng = np.random.default_rng([n_features, n_bins, int(p == 1.0)])
    table, model, edges = scorecard(rng, n_features, n_bins, coded)
    actions = ActionSet(
        [
            NumberFeature(
                name,
                lower=0,
                upper=199,
                integer=True,
                direction=str(rng.choice(["any", "any", "up"])),
                cost=float(rng.uniform(0.5, 2.0)) / 50.0,
                fixed_cost=float(rng.choice([0.0, 0.1])),
            )
            for name in table
        ],
        max_changes=most,
    )
    ball, guarantee = NormBall(p, 0.02), 0.8
    ours = RobustRecourse(model, robust_to=ball, actions=actions, guarantee=guarantee, n_jobs=1)
    people = table[model.predict_proba(table)[:, 1] < 0.4].iloc[:6]
    result = ours.recommend(people)
    target = np.log(guarantee / (1.0 - guarantee))
    equal = 0
    for label, person in people.iterrows():
        # HiGHS may fall short of a row by 1e-6
        low, high = (
            least_cost(table, model, edges, actions, person, ball, target + room)
            for room in (-2e-6, 2e-6)
        )
        if not result.ways(label):
            assert result.status_of(label) is Status.INFEASIBLE
            assert high == np.inf
            continue
        (way,) = result.ways(label)
        assert way.status is Status.OPTIMAL
        assert low - 1e-7 <= way.cost <= high + 1e-7
        equal += abs(low - high) <= 1e-7
    assert equal >= 4


def test_the_example_keeps_what_it_prints(capsys):
    pytest.importorskip("optbinning", reason="needs optbinning")
    found = runpy.run_path(str(ROOT / "examples" / "scorecard.py"), run_name="__main__")
    printed = capsys.readouterr().out
    count = re.search(r"^(\d+) of 1000 have less than 520 points", printed)
    assert count
    assert int(count.group(1)) > 100
    assert printed.count("Applicant ") == 3
    assert printed.count("points") >= 4
    least = re.search(r"everybody at least ([\d.]+) points\.$", printed.strip())
    assert least
    assert float(least.group(1)) >= found["CUTOFF"]
