"""Guarantees for networks in raw units: what is advised is allowed, and what is told is true."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import holdfast
from holdfast import ActionSet, LastLayer, NormBall, RobustRecourse, Status
from holdfast.datasets import load_german
from holdfast.engines.rows import columns_of
from holdfast.models.encoding import Encoding
from holdfast.models.networks import worst_last_layer, worst_network
from holdfast.models.networks.prover import Prover
from holdfast.recommend.sizes import NoSizes
from holdfast.report.person import look_at

SETS = [NormBall(1, 0.1), NormBall(2, 0.1), LastLayer(NormBall(2, 0.3))]
TOLD = ["status", "changes", "cost", "worst_case_validity", "current_validity", "initial_validity"]


def fitted(table, accepted, hidden, seed=0, **steps):
    numbers = [name for name in table if table[name].dtype.kind in "iuf"]
    texts = [name for name in table if name not in numbers]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), texts))
    network = MLPClassifier(hidden, alpha=0.1, max_iter=150, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(columns, network).fit(table, accepted)


# ------------------------------------------------------------------ German Credit


@pytest.fixture(scope="module")
def german():
    data = load_german()
    actions = ActionSet.from_data(data.features, immutable=["age"], units=data.units)
    actions.set("personal_status", protected=True)
    actions.set("foreign_worker", immutable=True)
    actions.set("duration", step=6, direction="down")
    actions.set("credit_amount", max_decrease=4000, step=100)
    actions.set("installment_commitment", direction="down")
    actions.set("job", moves={"unskilled resident": ["skilled"]})
    actions.max_changes = 3
    return data, actions


@pytest.fixture(scope="module", params=[(12,), (10, 6)], ids=str)
def bank(request, german):
    data, actions = german
    model = fitted(data.features, data.approved, request.param)
    denied = data.features[~model.predict(data.features)]
    return model, denied, actions


def german_wrongs(before, after):
    """Say which rules of the German action set a row breaks, in plain code."""
    changed = [name for name in before.index if before[name] != after[name]]
    allowed = {
        "age": False,
        "personal_status": False,
        "foreign_worker": False,
        "duration": after["duration"] % 6 == 0 and 4 <= after["duration"] < before["duration"],
        "credit_amount": after["credit_amount"] % 100 == 0
        and before["credit_amount"] - 4000 <= after["credit_amount"] <= 18424,
        "installment_commitment": after["installment_commitment"] in range(1, 5)
        and after["installment_commitment"] < before["installment_commitment"],
        "job": (before["job"], after["job"]) == ("unskilled resident", "skilled"),
        "residence_since": after["residence_since"] in (1, 2, 3, 4),
        "existing_credits": after["existing_credits"] in (1, 2, 3, 4),
        "num_dependents": after["num_dependents"] in (1, 2),
    }
    wrong = [name for name in changed if not allowed.get(name, True)]
    return wrong + (["too many"] if len(changed) > 3 else [])


def network_of(model):
    return Encoding.of(model).model


def encoded_by_pipeline(model, rows):
    made = model[:-1].transform(rows)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)


def forward(weights, biases, points):
    """Scores of an MLPClassifier with ReLU, in plain numpy."""
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        points = np.maximum(points @ weight + bias, 0.0)
    return (points @ weights[-1] + biases[-1])[:, 0]


def random_networks(classifier, models, count, rng):
    """Draw networks of a set: of its sphere, and for p = 1 also of its corners."""
    ball = models.models if isinstance(models, LastLayer) else models
    tensors = [*classifier.coefs_, *classifier.intercepts_]
    layers = len(classifier.coefs_)
    for draw in range(count):
        free = [
            not isinstance(models, LastLayer) or k % layers == layers - 1
            for k in range(len(tensors))
        ]
        moves = [
            rng.normal(size=t.shape) * is_free for t, is_free in zip(tensors, free, strict=True)
        ]
        if ball.p == 1 and draw % 2:
            flat = np.concatenate([move.ravel() for move in moves])
            flat[np.abs(flat) < np.sort(np.abs(flat))[-1]] = 0.0
            ends = np.cumsum([move.size for move in moves])[:-1]
            parts = np.split(flat, ends)
            moves = [part.reshape(t.shape) for part, t in zip(parts, tensors, strict=True)]
        size = np.linalg.norm(np.concatenate([move.ravel() for move in moves]), ball.p)
        moved = [t + move * (ball.radius / size) for t, move in zip(tensors, moves, strict=True)]
        yield moved[:layers], moved[layers:]


def lowest_found(model, rows, models, rng, count=40):
    """Attack rows with random networks of a set, and with the worst that searches find."""
    points, classifier = encoded_by_pipeline(model, rows), model[-1]
    network = network_of(model)
    if isinstance(models, LastLayer):
        lowest = worst_last_layer(network, points, models).score
    else:
        lowest = worst_network(network, points, models).score
    for weights, biases in random_networks(classifier, models, count, rng):
        lowest = np.minimum(lowest, forward(weights, biases, points))
    return lowest


@pytest.mark.parametrize(
    "models",
    [
        pytest.param(
            models, id=models.label, marks=[pytest.mark.slow] * models.label.startswith("p=2")
        )
        for models in SETS
    ],
)
def test_german_advice_is_allowed_and_holds(bank, models):
    model, denied, actions = bank
    people = denied[:8]
    recourse = RobustRecourse(model, robust_to=models, actions=actions, guarantee=0.5)
    result = recourse.recommend(people)
    after, frame = result.after(), result.to_frame()
    assert set(result.status) <= {Status.PROVEN_VALID, Status.NOT_VALID}
    assert (result.status == Status.PROVEN_VALID).sum() >= 6
    assert list(after.index) == list(people.index)
    for label in people.index:
        assert german_wrongs(people.loc[label], after.loc[label]) == []
    bracket = result.bracket
    is_valid = result.status == Status.PROVEN_VALID
    assert (bracket.proven_validity >= 0.5).tolist() == is_valid.tolist()
    assert (bracket.proven_score <= bracket.found_score).all()
    assert (bracket.proven_score <= bracket.score).all()
    np.testing.assert_allclose(frame["worst_case_validity"], bracket.proven_validity)
    np.testing.assert_allclose(frame["current_validity"], model.predict_proba(after)[:, 1])
    np.testing.assert_allclose(frame["initial_validity"], model.predict_proba(people)[:, 1])
    lowest = lowest_found(model, after, models, np.random.default_rng(0))
    assert (lowest >= bracket.proven_score).all()
    assert (lowest[is_valid] >= 0.0).all()
    assert frame[["lower_bound", "gap"]].isna().all(axis=None)
    for label, cost in zip(people.index, frame["cost"], strict=True):
        assert sum(result.efforts(label).values()) == pytest.approx(cost)


def test_nobody_s_answer_depends_on_the_others(bank):
    model, denied, actions = bank
    people = denied[:5]
    recourse = RobustRecourse(model, robust_to=SETS[0], actions=actions, guarantee=0.6)
    together = recourse.recommend(people).to_frame()
    alone = pd.concat([recourse.recommend(people[k : k + 1]).to_frame() for k in range(5)])
    pd.testing.assert_frame_equal(together, alone)
    turned = recourse.recommend(people[::-1]).to_frame()
    pd.testing.assert_frame_equal(together, turned[::-1])
    one_job = RobustRecourse(model, robust_to=SETS[0], actions=actions, guarantee=0.6, n_jobs=1)
    pd.testing.assert_frame_equal(together, one_job.recommend(people).to_frame())


def test_who_is_proven_valid_stays(bank):
    model, _, actions = bank
    table = load_german().features
    network = network_of(model)
    prover = Prover.of(network, NormBall(1, 0.05))
    proven = prover.lower(encoded_by_pipeline(model, table[:40]))
    people = table[:40][np.abs(proven) < 8.0]
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.5)
    result = recourse.recommend(people[:10])
    own = prover.lower(encoded_by_pipeline(model, people[:10]))
    assert 0 < (own >= 0.0).sum() < 10
    assert (result.status == Status.ALREADY_VALID).tolist() == (own >= 0.0).tolist()
    for label in people.index[:10][own >= 0.0]:
        assert result.changes(label) == []
        said = result.explain(label)
        assert "Every network within a radius of 0.05 of today's already gives you" in said
        assert said.endswith("You do not need to change anything.")


def test_less_than_an_approval_may_be_asked_for(bank):
    model, denied, actions = bank
    chance = model.predict_proba(denied)[:, 1]
    people = denied[(chance > 0.3) & (chance < 0.5)][:3]
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.01), actions=actions, guarantee=0.2)
    result = recourse.recommend(people)
    assert (result.status == Status.ALREADY_VALID).all()
    for label in people.index:
        said = result.explain(label)
        assert said.endswith("anything for that, but today's model refuses you.")


# ------------------------------------------------------------------ against brute force


class World:
    """A random table, network and action set, small enough to list all that a person may do."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        n, self.top = 120, 4
        levels = {f"c{j}": list("abc")[: rng.integers(2, 4)] for j in range(2)}
        table = {f"n{j}": rng.integers(0, self.top + 1, n) for j in range(2)}
        table |= {name: rng.choice(known, n) for name, known in levels.items()}
        self.table, self.levels = pd.DataFrame(table), levels
        hidden = [(4,), (8,), (6, 4)][seed % 3]
        self.model = fitted(self.table, rng.random(n) < 0.5, hidden, seed)
        self.models = NormBall([1, 2][seed % 2], float(rng.choice([0.02, 0.1])))
        self.prover = self._redrawn()
        self.actions = self._actions()

    def _redrawn(self):
        """Draw the network's parameters anew, so that few rows reach the guarantee."""
        rng, classifier = self.rng, self.model[-1]
        for k, weight in enumerate(classifier.coefs_):
            weight[:] = rng.normal(size=weight.shape) * 2.0 / np.sqrt(len(weight))
            classifier.intercepts_[k][:] = 0.5 * rng.normal(size=classifier.intercepts_[k].shape)
        points = encoded_by_pipeline(self.model, self.table)
        proven = Prover.of(network_of(self.model), self.models).lower(points)
        classifier.intercepts_[-1] -= np.quantile(proven, rng.uniform(0.6, 0.97)) + 0.01  # no ties
        return Prover.of(network_of(self.model), self.models)

    def _actions(self):
        rng, actions = self.rng, ActionSet.from_data(self.table, fixed_cost=0.2)
        for name in ("n0", "n1"):
            cost = float(rng.uniform(0.2, 1.5))
            actions.set(name, cost=cost, direction=str(rng.choice(["any", "any", "up", "down"])))
        for name in ("c0", "c1"):
            actions.set(name, cost=float(rng.uniform(0.2, 2.0)))
        actions.max_changes = [None, 2, 3][rng.integers(3)]
        return actions

    def everything(self, person):
        """Return all rows that a person may become, and what each costs, in plain code."""
        actions, values, price = self.actions, [], []
        for name in ("n0", "n1"):
            own, feature = int(person[name]), actions[name]
            low = own if feature.direction == "up" else 0
            high = own if feature.direction == "down" else self.top
            values.append(range(low, high + 1))
            price.append({v: feature.cost * abs(v - own) + 0.2 * (v != own) for v in values[-1]})
        for name in ("c0", "c1"):
            values.append(self.levels[name])
            price.append({v: actions[name].cost * (v != person[name]) for v in values[-1]})
        most = 4 if actions.max_changes is None else actions.max_changes
        rows = [
            row
            for row in itertools.product(*values)
            if sum(v != person[n] for v, n in zip(row, self.table, strict=True)) <= most
        ]
        costs = [sum(p[v] for p, v in zip(price, row, strict=True)) for row in rows]
        return pd.DataFrame(rows, columns=self.table.columns), np.array(costs)

    def cheapest(self, person):
        """Ask the prover about all of it: the least cost of enough."""
        rows, costs = self.everything(person)
        proven = self.prover.lower(encoded_by_pipeline(self.model, rows))
        return costs[proven >= 0.0].min(initial=np.inf)


@pytest.mark.parametrize(
    ("worlds", "least"), [(10, 17), pytest.param(34, 60, marks=pytest.mark.slow)]
)
def test_little_is_lost_against_brute_force(worlds, least):
    ratios, missed, possible = [], 0, 0
    for seed in range(worlds):
        world = World(seed)
        own = world.prover.lower(encoded_by_pipeline(world.model, world.table))
        people = world.table[own < 0.0][:3]
        result = RobustRecourse(
            world.model, robust_to=world.models, actions=world.actions, guarantee=0.5
        ).recommend(people)
        frame, after = result.to_frame(), result.after()
        for k, label in enumerate(people.index):
            rows, costs = world.everything(people.loc[label])
            place = np.flatnonzero((rows == after.loc[label].to_numpy()).all(axis=1))
            assert len(place) == 1, "what is advised is not allowed"
            cost = frame["cost"].iloc[k]
            assert cost == pytest.approx(costs[place[0]])
            best = world.cheapest(people.loc[label])
            if result.status[k] == Status.PROVEN_VALID:
                assert cost >= best - 1e-9
                ratios.append(cost / best)
            else:
                assert result.status[k] == Status.NOT_VALID
                assert frame["worst_case_validity"].iloc[k] < 0.5
                missed += np.isfinite(best)
            possible += np.isfinite(best)
    print(f"\n{possible} possible, {missed} missed, ratio {np.mean(ratios):.4f}, {max(ratios):.3f}")
    assert possible >= least
    assert missed <= 0.05 * possible
    assert np.median(ratios) == pytest.approx(1.0)
    assert np.mean(ratios) <= 1.03


# ------------------------------------------------------------------ all kinds of columns


@pytest.fixture(scope="module")
def firm():
    """Numbers without a step, links, a ratio, a logarithm, bins and an order."""
    rng = np.random.default_rng(5)
    n = 300
    table = pd.DataFrame(
        {
            "income": rng.uniform(1.0, 9.0, n).round(3),
            "debt": rng.integers(1, 40, n),
            "loan": rng.integers(40, 90, n),
            "age": rng.integers(18, 80, n),
            "hours": rng.integers(10, 60, n),
            "rent": rng.uniform(0.0, 2.0, n).round(2),
            "cars": rng.integers(0, 4, n),
            "seats": rng.integers(1, 6, n),
            "grade": rng.choice(["low", "mid", "high"], n),
        }
    )
    table["cars"] += 1
    table["each"] = table["seats"] / table["cars"]
    good = table["income"] - 0.05 * table["debt"] - table["rent"] + table["each"]
    accepted = good + rng.normal(size=n) > 6.0
    columns = make_column_transformer(
        (StandardScaler(), ["income", "debt", "loan", "rent", "cars", "seats", "each"]),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), ["hours"]),
        (KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform"), ["age"]),
        (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["grade"]),
    )
    network = MLPClassifier((8,), activation="tanh", alpha=0.1, max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(columns, network).fit(table, accepted)
    actions = ActionSet.from_data(table, immutable=["age"])
    actions.set("income", step=None, max_increase=2.0)
    actions.set("rent", step=None)
    actions.set("grade", order=["low", "mid", "high"], direction="up")
    actions.links.append(holdfast.actions.AtMost("debt", "loan"))
    actions.links.append(holdfast.actions.Linear({"income": -1.0, "rent": 1.0}, at_most=0.0))
    actions.derived.append(holdfast.actions.Ratio("each", "seats", "cars"))
    return table, model, actions


def firm_wrongs(before, after):
    order = ["low", "mid", "high"]
    rules = {
        "age": after["age"] == before["age"],
        "income": 1.0 <= after["income"] <= before["income"] + 2.0 + 1e-9,
        "rent": 0.0 <= after["rent"] <= 2.0,
        "debt": 1 <= after["debt"] <= 39 and after["debt"] == int(after["debt"]),
        "loan": 40 <= after["loan"] <= 89 and after["loan"] == int(after["loan"]),
        "hours": 10 <= after["hours"] <= 59 and after["hours"] == int(after["hours"]),
        "cars": after["cars"] in (1, 2, 3, 4),
        "seats": after["seats"] in (1, 2, 3, 4, 5),
        "each": abs(after["each"] - after["seats"] / after["cars"]) < 1e-8,
        "grade": order.index(after["grade"]) >= order.index(before["grade"]),
        "debt at most loan": after["debt"] <= max(after["loan"], before["debt"]),
        "rent at most income": after["rent"] - after["income"]
        <= max(0.0, before["rent"] - before["income"]) + 1e-8,
    }
    return [name for name, kept in rules.items() if not kept]


def test_links_ratios_bends_and_numbers_without_a_step(firm):
    table, model, actions = firm
    people = table[~model.predict(table)][:6]
    models = NormBall(2, 0.05)
    recourse = RobustRecourse(model, robust_to=models, actions=actions, guarantee=0.7)
    result = recourse.recommend(people)
    after = result.after()
    assert (result.status == Status.PROVEN_VALID).sum() >= 4
    for label in people.index:
        assert firm_wrongs(people.loc[label], after.loc[label]) == []
    prover = Prover.of(network_of(model), models)
    proven = prover.lower(encoded_by_pipeline(model, after))
    np.testing.assert_allclose(result.bracket.proven_score, proven, rtol=0.0, atol=1e-9)
    valid = result.status == Status.PROVEN_VALID
    assert (1.0 / (1.0 + np.exp(-proven[valid])) >= 0.7 - 1e-12).all()
    # what can be typed has few digits, unless a link ties it
    alone = RobustRecourse(
        model, robust_to=models, actions=_without_links(actions), guarantee=0.7
    ).recommend(people)
    for value, own in zip(alone.after()["income"], people["income"], strict=True):
        assert value == own or value == round(value, 4)


def _without_links(actions):
    features = [actions[name] for name in actions]
    return ActionSet(features, derived=list(actions.derived))


def test_missing_numbers_stay_or_are_given(firm):
    table, _, _ = firm
    rng = np.random.default_rng(1)
    table = table[["income", "debt", "rent"]].copy()
    accepted = table["income"] - table["rent"] > 4.0
    table.loc[rng.random(len(table)) < 0.3, "rent"] = np.nan
    columns = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    network = MLPClassifier((6,), max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(columns, network).fit(table, accepted)
    actions = ActionSet.from_data(table)
    actions.set("rent", step=0.1, provide_cost=0.3)
    denied = table[~model.predict(table)]
    people = pd.concat([denied[denied["rent"].isna()][:3], denied[denied["rent"].notna()][:3]])
    result = RobustRecourse(
        model, robust_to=NormBall(1, 0.05), actions=actions, guarantee=0.5
    ).recommend(people)
    assert (result.status == Status.PROVEN_VALID).all()
    after = result.after()
    proven = Prover.of(network_of(model), NormBall(1, 0.05)).lower(
        encoded_by_pipeline(model, after)
    )
    assert (proven >= 0.0).all()
    assert after.loc[people["rent"].notna(), "rent"].notna().all()


# ------------------------------------------------------------------ words, and what is refused


def test_the_words_say_what_is_proven(bank):
    model, denied, actions = bank
    people = denied[:4]
    recourse = RobustRecourse(model, robust_to=NormBall(2, 0.1), actions=actions, guarantee=0.5)
    result = recourse.recommend(people)
    label = people.index[int(np.flatnonzero(result.status == Status.PROVEN_VALID)[0])]
    said = result.explain(label)
    assert said.startswith("Today's model gives you a chance of ")
    least = np.floor(100 * result.bracket.proven_validity[list(people.index).index(label)])
    assert (
        "Every network within a radius of 0.1 of today's then gives you a chance of at least "
        f"{least:.0f}%. This is proven. A cheaper way may exist." in said
    )
    assert f"Change {result.changes(label)[0]}" in said
    for never in ("provably", "optimal", "cheapest", "nan", "model within"):
        assert never not in said
    figures = look_at(result, label)
    assert figures.summary == said
    assert figures.ways[0].proof == "A cheaper way may exist."


def test_who_is_not_helped_is_told_what_is_not_proven(bank):
    model, denied, actions = bank
    people = denied[:2]
    recourse = RobustRecourse(model, robust_to=NormBall(2, 50.0), actions=actions, guarantee=0.9)
    result = recourse.recommend(people)
    assert (result.status == Status.NOT_VALID).all()
    frame = result.to_frame()
    own = Prover.of(network_of(model), NormBall(2, 50.0)).lower(encoded_by_pipeline(model, people))
    assert (result.bracket.proven_score >= own).all()
    assert (frame["worst_case_validity"] < 0.9).all()
    for label in people.index:
        said = result.explain(label)
        assert (
            "No change was found that gets you a chance of 90% from every network within a radius "
            "of 50 of today's, but one may still exist." in said
        )
        assert "impossible" not in said
        assert "No change you can make" not in said
        assert look_at(result, label).summary == said


def test_points_are_told_of_networks_too(bank):
    model, denied, actions = bank
    recourse = RobustRecourse(
        model,
        robust_to=NormBall(1, 0.05),
        actions=actions,
        points=holdfast.Points(600, odds=1, double=20),
        guarantee_points=605,
    )
    result = recourse.recommend(denied[:2])
    frame = result.to_frame()
    valid = frame["status"] == "proven valid"
    assert valid.any()
    assert (frame.loc[valid, "worst_case_points"] >= 605.0).all()
    assert "points. This is proven. A cheaper way may exist." in result.explain(
        frame.index[valid][0]
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"guarantee": None, "cost_weight": 0.1}, "cost_weight = 0.1: for a network"),
        ({"n_options": 2}, "n_options = 2: for a network"),
        ({"guarantee": None}, "give exactly one of them"),
        ({"robust_to": holdfast.Ellipsoid(np.eye(62), radius=0.1)}, "set of linear models"),
        ({"robust_to": LastLayer(NormBall(2, 0.1, scale=[1.0, 2.0]))}, "does not fit the network"),
        ({"robust_to": 0.1}, "is not a set of models"),
    ],
    ids=str,
)
def test_what_networks_cannot_be_asked_is_refused_by_name(bank, settings, said):
    model, denied, actions = bank
    asked = {"robust_to": NormBall(1, 0.1), "actions": actions, "guarantee": 0.5, **settings}
    with pytest.raises((TypeError, ValueError), match=said):
        RobustRecourse(model, **asked).recommend(denied[:1])


def test_what_rests_on_linear_proofs_is_refused_by_name(bank):
    model, denied, actions = bank
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.5)
    result, label = recourse.recommend(denied[:1]), denied.index[0]
    for name in ("frontier", "opposing", "releases", "reachable"):
        with pytest.raises(ValueError, match=f"^{name} relies on proofs for linear models"):
            getattr(result, name)(label)
    with pytest.raises(NoSizes, match=r"^sizes relies on proofs for linear models"):
        result.sizes(label)
    with pytest.raises(ValueError, match="files, clusters and the page need a linear one"):
        columns_of(recourse)


def test_nobody_and_a_plain_network(bank):
    model, denied, actions = bank
    recourse = RobustRecourse(model, robust_to=NormBall(1, 0.1), actions=actions, guarantee=0.5)
    nobody = recourse.recommend(denied[:0])
    assert len(nobody) == 0
    assert len(nobody.bracket) == 0
    points = encoded_by_pipeline(model, denied[:3])[:, :4]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = MLPClassifier((5,), max_iter=200, random_state=0).fit(X, X.sum(axis=1) > 0)
    free = ActionSet.from_data(X)
    answer = RobustRecourse(
        plain, robust_to=NormBall(1, 0.05), actions=free, guarantee=0.5, favorable_class=True
    ).recommend(points - 2.0)
    assert (answer.status == Status.PROVEN_VALID).all()
    with pytest.raises(ValueError, match="has no columns that can be read"):
        RobustRecourse(
            torch.nn.Sequential(torch.nn.Linear(4, 1)),
            robust_to=NormBall(1, 0.05),
            actions=free,
            guarantee=0.5,
        ).recommend(points)
