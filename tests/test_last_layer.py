"""Networks whose last layer alone changes: the worst case is exact, and nobody overlooks the set.

Judged by brute force: thousands of last layers of the set are put into the network itself.
"""

from __future__ import annotations

import copy
import math
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import special
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import holdfast
from holdfast import Ellipsoid, LastLayer, ModelList, NormBall, Status, find_recourse
from holdfast.evaluate import evaluate_recourse, population_worst_model
from holdfast.models import BlackBox, LinearModel, as_model
from holdfast.models.network import Network
from holdfast.models.networks import (
    embed,
    judge_network,
    last_layer_of,
    network_price,
    population_worst_network,
    worst_last_layer,
    worst_network,
)
from holdfast.models.networks.last_layer import Head
from holdfast.paper import Algorithm1, german_folds, train_network
from holdfast.problem.model_set import ModelSet

WEIGHT = 0.1
KINDS = ["p = 1", "p = 1.5", "p = 2", "p = inf", "scaled", "no bias", "ellipsoid", "list"]


def torch_network(
    *sizes: int, between=nn.ReLU, seed: int = 0, dtype=torch.float64, bias=True
) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1], dtype=dtype, bias=bias), between()]
    return Network(nn.Sequential(*layers[:-1]))


def sklearn_network(activation: str = "tanh") -> Network:
    x = np.random.default_rng(0).normal(size=(200, 3))
    fitted = MLPClassifier((6, 5), activation=activation, max_iter=60, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(x, x[:, 0] * x[:, 1] + x[:, 2] > 0.3)
    return as_model(fitted)


NETWORKS = {
    "relu": lambda: torch_network(3, 8, 5, 1),
    "tanh": lambda: torch_network(3, 5, 1, between=nn.Tanh, seed=1),
    "single precision": lambda: torch_network(3, 8, 5, 1, dtype=torch.float32, seed=2),
    "sklearn": sklearn_network,
    "sklearn relu": lambda: sklearn_network("relu"),
}


def set_of(kind: str, network: Network, seed: int = 0) -> ModelSet:
    """Return a set over the last layer."""
    coef, intercept = last_layer_of(network)
    rng = np.random.default_rng(seed)
    if kind == "ellipsoid":
        factor = rng.normal(size=(len(coef) + 1, len(coef) + 1))
        return Ellipsoid(0.05 * factor @ factor.T, 0.7)
    if kind == "list":
        drawn = 0.3 * rng.normal(size=(4, len(coef) + 1))
        return ModelList([(coef + move[:-1], intercept + move[-1]) for move in drawn])
    if kind == "scaled":
        return NormBall(2, 0.3, scale=rng.uniform(0.0, 2.0, len(coef)), intercept=0.5)
    if kind == "no bias":
        return NormBall(1, 0.3, intercept=False)
    return NormBall({"p = 1": 1, "p = 1.5": 1.5, "p = 2": 2, "p = inf": math.inf}[kind], 0.2)


def draw(models: ModelSet, coef: np.ndarray, intercept: float, count: int) -> np.ndarray:
    """Draw last layers of a set, mostly from its surface: weights, and the bias last."""
    rng = np.random.default_rng(1)
    today = np.append(coef, intercept)
    if isinstance(models, ModelList):
        own = np.vstack([today, np.column_stack([models.coefs, models.intercepts])])
        return np.vstack([own, rng.dirichlet(np.ones(len(own)), count) @ own])
    unit = rng.normal(size=(count, len(today)))
    unit[: count // 3] = np.sign(unit[: count // 3])
    one = np.arange(count // 3, 2 * (count // 3))
    kept = rng.integers(len(today), size=len(one))
    unit[one] = np.sign(unit[one, kept])[:, None] * np.eye(len(today))[kept]
    if isinstance(models, Ellipsoid):
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        return today + models.radius * unit @ np.linalg.cholesky(models.covariance).T
    assert isinstance(models, NormBall)
    unit /= np.linalg.norm(unit, ord=models.p, axis=1, keepdims=True)
    return today + models.radius * unit * np.append(
        models.feature_scale(len(coef)), models.intercept_scale
    )


def with_last_layer(network: Network, layer: np.ndarray) -> Network:
    """Return the network with other weights in its last layer: torch does the rest."""
    module = copy.deepcopy(network.module)
    with torch.no_grad():
        module[-1].weight.copy_(torch.as_tensor(layer[None, :-1]))
        module[-1].bias.copy_(torch.as_tensor(layer[-1:]))
    return Network(module)


@pytest.fixture
def points():
    return np.random.default_rng(5).normal(size=(9, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETWORKS)
def test_no_last_layer_of_the_set_is_worse(name, kind, points):
    network = NETWORKS[name]()
    near = 1e-5 if network.dtype == torch.float32 else 1e-12
    models = set_of(kind, network)
    found = worst_last_layer(network, points, LastLayer(models))
    coef, intercept = last_layer_of(network)
    layers = draw(models, coef, intercept, 4000)
    scores = embed(network, points) @ layers[:, :-1].T + layers[:, -1]
    assert (scores >= found.score[:, None] - 1e-12).all()
    for layer in layers[:: len(layers) // 20]:  # what was multiplied out is what the network says
        score = with_last_layer(network, layer).score(points)
        assert (score >= found.score - near).all()
        np.testing.assert_allclose(
            score, embed(network, points) @ layer[:-1] + layer[-1], rtol=0, atol=near
        )
    # the worst one is attained, by a last layer of the set
    for i in range(len(points)):
        worst = np.append(found.coef[i], found.intercept[i])
        there = with_last_layer(network, worst).score(points[i : i + 1])
        np.testing.assert_allclose(there, found.score[i], rtol=0, atol=near)
    np.testing.assert_allclose(found.loss, np.logaddexp(0.0, -found.score))
    if isinstance(models, ModelList):
        np.testing.assert_allclose(found.score, scores[:, :5].min(axis=1), rtol=0, atol=1e-12)
    else:
        distance = models.distance(coef, intercept, found.coef, found.intercept)
        assert (distance <= models.radius * (1 + 1e-9)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_under_the_worst_last_layer(kind, points):
    """The worst score itself, moved by a hair to both sides."""
    network = torch_network(3, 8, 5, 1, between=nn.Tanh)
    robust_to = LastLayer(set_of(kind, network))
    worst = worst_last_layer(network, points, robust_to)
    slope = Head.of(network).point_slope(points, worst.coef)
    for j in range(3):
        step = 1e-6 * np.eye(3)[j]
        up, down = (worst_last_layer(network, points + s, robust_to).score for s in (step, -step))
        np.testing.assert_allclose(slope[:, j], (up - down) / 2e-6, rtol=0, atol=1e-7)


def test_missing_points_touch_nobody():
    network = torch_network(3, 5, 1)
    robust_to = LastLayer(NormBall(1, 0.1))
    x = np.random.default_rng(0).normal(size=(4, 3))
    alone = worst_last_layer(network, x, robust_to).score
    x[2, 1] = np.nan
    score = worst_last_layer(network, x, robust_to).score
    assert np.isnan(score).tolist() == [False, False, True, False]
    np.testing.assert_allclose(score[[0, 1, 3]], alone[[0, 1, 3]], rtol=1e-12)
    assert worst_last_layer(network, np.empty((0, 3)), robust_to).score.shape == (0,)


@pytest.mark.parametrize("kind", ["p = 1", "p = 2", "p = inf", "ellipsoid"])
def test_one_layer_is_the_linear_model(kind):
    network = torch_network(3, 1)
    coef, intercept = last_layer_of(network)
    x = np.random.default_rng(2).normal(size=(20, 3)) - 2.0 * np.sign(coef)
    models = set_of(kind, network)
    np.testing.assert_array_equal(embed(network, x), x)
    solved = holdfast.solve(x, coef, intercept, robust_to=models, cost_weight=WEIGHT)
    judged = judge_network(solved, network, LastLayer(models))
    assert judged.exact
    np.testing.assert_allclose(judged.price, solved.price, rtol=1e-12)
    np.testing.assert_allclose(judged.worst_case_score, solved.worst_case_score, atol=1e-12)
    refined = find_recourse(
        x,
        network,
        "refine",
        robust_to=LastLayer(models),
        cost_weight=WEIGHT,
        linearise="gradient",
        max_steps=200,
        tolerance=0.0,
        last_radius=1e-6,
    )
    assert (refined.price >= solved.price - 1e-9).all()  # nothing is below what is proven
    assert np.median(refined.price - solved.price) < 1e-4


@pytest.fixture(scope="module")
def bent() -> Network:
    """Return a small network for a score that is bent: approved in two opposite corners."""
    x = np.random.default_rng(0).normal(size=(300, 3))
    trained = train_network(x, x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.5, hidden=(12, 8), epochs=300)
    return Network(trained.module.double())


@pytest.fixture(scope="module")
def denied(bent) -> np.ndarray:
    x = np.random.default_rng(1).normal(size=(60, 3))
    return x[bent.score(x) < 0][:12]


def ask(points, network, models, **other):
    settings = {"cost_weight": WEIGHT, "linearise": "gradient", **other}
    return find_recourse(points, network, "refine", robust_to=LastLayer(models), **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_refine_is_never_worse_than_its_start_and_says_what_is_proven(bent, denied, kind):
    models = set_of(kind, bent)
    if isinstance(models, Ellipsoid):
        models = models.with_radius(0.2)
    result = ask(denied, bent, models)
    start = find_recourse(
        denied,
        bent,
        robust_to=NormBall(1, 0.0),
        cost_weight=WEIGHT,
        linearise=result.surrogate,
    )
    before = judge_network(start, bent, LastLayer(models)).price
    assert (result.price <= before + 1e-12).all()
    assert result.price.mean() < before.mean() - 0.01
    # price and worst case are the network's own
    worst = worst_last_layer(bent, result.recourse_array, LastLayer(models))
    np.testing.assert_allclose(result.worst_case_score, worst.score, atol=1e-12)
    np.testing.assert_allclose(result.worst_case_validity, special.expit(worst.score))
    np.testing.assert_allclose(result.price, worst.loss + WEIGHT * result.cost)
    # and nothing is said to be optimal
    assert np.isnan([result.lower_bound, result.gap, result.multiplier]).all()
    assert set(result.status) <= {Status.ACCEPTED, Status.NOT_VALID}
    assert result.exact is None
    assert not result.of_surrogate
    frame = result.to_frame()
    assert {"price", "worst_case_validity"} <= set(frame)
    assert not any(name.startswith(("surrogate_price", "surrogate_worst")) for name in frame)
    for i, said in enumerate(frame["message"]):
        assert "nothing is proven" not in said
        crowd = LastLayer(models).crowd[1:]
        assert f"{crowd} provably gives it a probability of at least" in said
        assert said.endswith("A recourse with a lower price may exist.")
        least = float(said.split("at least ")[1].split(". A ")[0])
        assert result.worst_case_validity[i] - 1e-4 <= least <= result.worst_case_validity[i]
    for proof in (result.certificate, result.frontier):
        with pytest.raises(ValueError, match="neither a certificate nor a frontier"):
            proof(0)
    with pytest.raises(ValueError, match="is a set of networks"):
        result.worst_models()


def test_bounds_costs_and_rows_of_their_own(bent, denied):
    lower, upper = denied - 0.3, denied + 0.7
    upper[:, 2] = lower[:, 2] = denied[:, 2]
    known = {"bounds": (lower, upper), "feature_costs": [0.5, 2.0, 1.0]}
    whole = ask(denied, bent, NormBall(2, 0.2), **known)
    assert (whole.recourse >= lower).all()
    assert (whole.recourse <= upper).all()
    np.testing.assert_allclose(whole.cost, np.abs(whole.action) @ [0.5, 2.0, 1.0])
    pieces = ask(denied, bent, NormBall(2, 0.2), memory=1e-6, **known)
    np.testing.assert_allclose(pieces.recourse, whole.recourse, atol=1e-9)
    spoilt = denied.copy()
    spoilt[3, 0] = np.nan
    result = ask(spoilt, bent, NormBall(2, 0.2), **known)
    assert result.status[3] == Status.INVALID_INPUT
    assert "x0 is nan" in result.explain(3)
    assert np.isnan(result.worst_case_validity[3])
    others = np.arange(len(denied)) != 3
    np.testing.assert_allclose(result.recourse[others], whole.recourse[others], atol=1e-9)


def test_the_smaller_set_has_the_lower_price_on_german_credit():
    fold = german_folds()[0]
    network = train_network(fold.train_points, fold.train_approved)
    people = fold.test_points[network.score(fold.test_points) < 0]
    ball = NormBall(1, 0.5)
    given = {"cost_weight": 0.3, "X_train": fold.train_points}
    whole = find_recourse(people, network, "refine", robust_to=ball, **given)
    last = ask(people, network, ball, linearise=whole.surrogate, cost_weight=0.3)
    price = judge_network(whole, network).price
    assert len(people) > 30
    assert (last.price <= price + 1e-9).mean() > 0.9
    assert last.price.mean() < price.mean() - 0.05
    assert (last.cost <= whole.cost + 1e-9).mean() > 0.6
    assert last.cost.mean() < whole.cost.mean()
    # it is the smaller set: the search in the ball must find what is worse, or as bad
    found = worst_network(network, last.recourse_array, ball).score
    assert (found <= last.worst_case_score + 1e-4).all()


def test_scikit_learn_in_a_pipeline():
    """Encoders before it, and the favourable class is the other one: its weights are turned."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(300, 3)) * [1.0, 10.0, 100.0], columns=list("abc"))
    default = (people["a"] - people["b"] / 10 > 0.2).astype(int)
    model = make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=400, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(people, default)
    denied = people[model.predict(people) == 1][:5]
    robust_to = LastLayer(NormBall(2, 0.1))
    result = find_recourse(
        denied,
        model,
        "refine",
        robust_to=robust_to,
        cost_weight=WEIGHT,
        favorable_class=0,
        linearise="gradient",
    )
    network = as_model(model, favorable_class=0)
    coef, intercept = last_layer_of(network)
    np.testing.assert_allclose(coef, -model[-1].coefs_[-1][:, 0])
    assert intercept == pytest.approx(-model[-1].intercepts_[-1][0])
    phi = np.maximum(result.recourse_array @ model[-1].coefs_[0] + model[-1].intercepts_[0], 0.0)
    lowered = (
        phi @ coef + intercept - 0.1 * np.linalg.norm(np.column_stack([phi, np.ones(5)]), axis=1)
    )
    np.testing.assert_allclose(result.worst_case_validity, special.expit(lowered))
    table = evaluate_recourse(result, model, favorable_class=0)
    np.testing.assert_allclose(table["worst_case_validity"], special.expit(lowered))


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_judges_exactly(bent, denied, kind):
    models = set_of(kind, bent)
    result = find_recourse(
        denied, bent, robust_to=NormBall(1, 0.2), cost_weight=WEIGHT, linearise="gradient"
    )
    points = result.recourse_array.copy()
    points[1] = np.nan
    table = evaluate_recourse(points, bent, denied, robust_to=LastLayer(models), cost_weight=WEIGHT)
    worst = worst_last_layer(bent, points, LastLayer(models))
    np.testing.assert_allclose(table["worst_case_validity"], special.expit(worst.score))
    assert set(table["judging"]) == {"exact"}
    # one last layer for all: none that was drawn has a larger sum of losses
    there = np.arange(len(points)) != 1
    coef, intercept = last_layer_of(bent)
    layers = draw(models, coef, intercept, 4000)
    scores = embed(bent, points[there]) @ layers[:, :-1].T + layers[:, -1]
    sums = np.logaddexp(0.0, -scores).sum(axis=0)
    together = special.logit(table["population_validity"].to_numpy()[there])
    assert np.logaddexp(0.0, -together).sum() >= sums.max() - 1e-9
    assert (together >= worst.score[there] - 1e-9).all()
    one = population_worst_model(embed(bent, points[there]), coef, intercept, models)
    assert set(table["population_judging"]) == {"exact" if one.exact else "search"}
    assert one.exact == (kind in ("p = 1", "p = inf", "no bias", "list"))
    own = evaluate_recourse(ask(denied, bent, models), bent)  # a result's own set
    assert set(own["judging"]) == {"exact"}


def test_judges_say_which(bent, denied):
    robust_to, ball = LastLayer(NormBall(1, 0.2)), NormBall(1, 0.2)
    result = ask(denied, bent, ball)
    own, all_parameters = judge_network(result, bent), judge_network(result, bent, ball)
    assert own.exact
    assert not all_parameters.exact
    np.testing.assert_allclose(own.price, result.price)
    assert (all_parameters.worst_case_score <= own.worst_case_score + 1e-9).all()
    price = network_price(bent, result.recourse, denied, robust_to, WEIGHT)
    np.testing.assert_allclose(price, result.price)
    stronger = partial(worst_network, steps=100)
    for judge in (
        lambda: judge_network(result, bent, robust_to, ascent=stronger),
        lambda: network_price(bent, result.recourse, denied, robust_to, WEIGHT, ascent=stronger),
    ):
        with pytest.raises(ValueError, match="leave out ascent"):
            judge()


def test_words():
    layers = ModelList([([1.0, 2.0], 0.0), ([1.0, 1.0], 0.5)])
    assert LastLayer(NormBall(1, 0.1)).crowd == (
        "every network whose last layer is within a radius of 0.1 of today's"
    )
    assert LastLayer(Ellipsoid(np.eye(3), 2.0)).crowd == (
        "every network whose last layer is within an ellipsoid of radius 2 around today's"
    )
    assert LastLayer(layers).crowd == "each of the 3 networks that differ only in their last layer"
    assert LastLayer(NormBall(1, 0.0)).crowd == "today's network"
    assert LastLayer(NormBall(1, 0.1)).label == "last layer: p=1, radius=0.1"
    assert LastLayer(NormBall(1, 0.1)).with_radius(0.3).models == NormBall(1, 0.3)
    assert LastLayer(NormBall(1, 0.1)).has_size
    assert not LastLayer(layers).has_size
    with pytest.raises(TypeError, match="models = 3 is not a ModelSet"):
        LastLayer(3)
    with pytest.raises(TypeError, match="models is a LastLayer itself"):
        LastLayer(LastLayer(layers))


X = np.array([[0.0, 2.0, 1.0]])
SET = LastLayer(NormBall(1, 0.1))
LINEAR = ([1.0, -0.5, 0.2], -1.0)


@pytest.mark.parametrize("method", ["exact", "roar", "wachter", "rbr", Algorithm1()])
def test_methods_that_do_not_know_layers_refuse_it(bent, method):
    with pytest.raises(ValueError, match="cannot use the layers of a network; use 'refine'"):
        find_recourse(X, bent, method, robust_to=SET, cost_weight=0.1, X_train=X)


@pytest.mark.parametrize("method", ["exact", "refine", "roar"])
def test_other_models_are_refused(method):
    with pytest.raises(ValueError, match=r"the model is linear.*pass the set itself.*NormBall"):
        find_recourse(X, LINEAR, method, robust_to=SET, cost_weight=0.1)
    box = BlackBox(lambda points: np.full(len(points), 0.5))
    with pytest.raises(ValueError, match="a black box model has no layers"):
        find_recourse(X, box, method, robust_to=SET, cost_weight=0.1, X_train=X)


def _advise() -> object:
    from sklearn.linear_model import LogisticRegression

    x = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=list("abc"))
    model = LogisticRegression().fit(x, x["a"] > 0.0)
    actions = holdfast.ActionSet.from_data(x)
    recourse = holdfast.RobustRecourse(model, robust_to=SET, actions=actions, guarantee=0.6)
    return recourse.recommend(x[:3])


@pytest.mark.parametrize(
    "door",
    [
        lambda: holdfast.solve(X, *LINEAR, robust_to=SET, cost_weight=0.1),
        lambda: holdfast.frontier(X[0], *LINEAR, robust_to=SET),
        lambda: population_worst_model(X, LINEAR[0], LINEAR[1], SET),
        lambda: evaluate_recourse(X, LINEAR, robust_to=SET),
        lambda: evaluate_recourse(X, LinearModel(*LINEAR), robust_to=SET),
        lambda: SET.worst_score(X, *LINEAR),
        lambda: SET.worst_model(X, *LINEAR),
        _advise,
    ],
)
def test_doors_for_linear_models_refuse_it(door):
    with pytest.raises(ValueError, match="pass the set itself"):
        door()


def test_a_search_for_networks_refuses_it(bent):
    for search in (worst_network, population_worst_network):
        with pytest.raises(TypeError, match="worst_last_layer"):
            search(bent, X, SET)
    with pytest.raises(TypeError, match="is not a LastLayer"):
        worst_last_layer(bent, X, NormBall(1, 0.1))


@pytest.mark.parametrize(
    ("models", "size"),
    [
        (NormBall(1, 0.1, scale=[1.0, 2.0]), "scale has 2 numbers"),
        (Ellipsoid(np.eye(4), 0.1), "covariance has 4 rows"),
        (ModelList([([1.0, 2.0, 3.0], 0.0)]), "models have 3 coefficients"),
    ],
)
def test_a_set_of_another_size_is_refused(bent, models, size):
    for door in (
        lambda: worst_last_layer(bent, X, LastLayer(models)),
        lambda: ask(X, bent, models),
        lambda: evaluate_recourse(X, bent, robust_to=LastLayer(models)),
    ):
        with pytest.raises(ValueError, match=f"last layer has 8 inputs.*{size}"):
            door()


class Doubled(nn.Module):
    """A module that is none of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        return 2.0 * self.last(x)


def test_networks_that_cannot_be_taken_apart_are_refused():
    def refused(network: Network, why: str) -> None:
        with pytest.raises(ValueError, match=why):
            worst_last_layer(network, X, SET)
        with pytest.raises(ValueError, match=why):
            ask(X, network, SET.models)

    refused(Network(Doubled()), "ends in Doubled")
    refused(Network(nn.Sequential(nn.Linear(3, 1), nn.ReLU())), "ends in ReLU")
    refused(Network(nn.Sequential(nn.Linear(3, 1), nn.Hardsigmoid()), "probability"), "probabilit")
    square, last = nn.Linear(3, 3), nn.Linear(3, 1)
    hooked = nn.Sequential(square, copy.deepcopy(last))
    hooked[-1].register_forward_hook(lambda module, given, out: 2.0 * out)
    refused(Network(hooked), "a hook")
    hooked = nn.Sequential(square, last)
    hooked.register_forward_hook(lambda module, given, out: 2.0 * out)
    refused(Network(hooked), "a hook")
    one = nn.Linear(1, 1)
    refused(Network(nn.Sequential(nn.Linear(3, 1), one, one)), "shares parameters")
    fixed = nn.Sequential(square, last)
    last.requires_grad_(False)
    refused(Network(fixed), "requires_grad=False")


def test_shapes_that_pass_on_the_score_are_looked_through(points):
    """A nested network, with a dropout and a flattening behind its last layer."""
    plain = torch_network(3, 5, 1)
    parts = copy.deepcopy(plain.module)
    nested = nn.Sequential(parts[:2], nn.Sequential(parts[2], nn.Dropout(0.5)), nn.Flatten(0))
    robust_to = LastLayer(NormBall(2, 0.1))
    found = worst_last_layer(Network(nested), points, robust_to).score
    np.testing.assert_array_equal(found, worst_last_layer(plain, points, robust_to).score)
    sigmoid = nn.Sequential(*copy.deepcopy(plain.module), nn.Sigmoid())
    found = worst_last_layer(Network(sigmoid, "probability"), points, robust_to).score
    np.testing.assert_array_equal(found, worst_last_layer(plain, points, robust_to).score)


def test_a_last_layer_without_a_bias(points):
    network = torch_network(3, 5, 1, bias=False)
    with pytest.raises(ValueError, match=r"that layer has none.*intercept=False"):
        worst_last_layer(network, points, LastLayer(NormBall(2, 0.1)))
    found = worst_last_layer(network, points, LastLayer(NormBall(2, 0.1, intercept=False)))
    phi = embed(network, points)
    np.testing.assert_allclose(
        found.score, network.score(points) - 0.1 * np.linalg.norm(phi, axis=1)
    )
    assert not found.intercept.any()
