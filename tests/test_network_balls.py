"""Balls around networks: every p, and a scale for each tensor of parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize
from sklearn.neural_network import MLPClassifier
from torch import nn

import holdfast
from holdfast import NormBall
from holdfast.evaluate import evaluate_recourse
from holdfast.models import as_model
from holdfast.models.network import Network
from holdfast.models.networks import (
    judge_network,
    network_price,
    population_worst_network,
    tensor_scales,
    worst_network,
)
from holdfast.models.networks.parameters import Parameters

EXPONENTS = (1, 1.5, 2, 3, math.inf)
SOME_EXPONENTS = [pytest.param(p, marks=[pytest.mark.slow] * (p in (1.5, 3.0))) for p in EXPONENTS]
ROUND = (1.01, 1.5, 3, 40.0)  # exponents between 1 and inf, 2 apart
# of the tensors of a network with three layers
SCALES = {
    "none": None,
    "mixed": (1.0, 0.25, 3.0, 0.0, 0.5, 2.0),
    "chosen": (0.0, 0.0, 1.0, 1.0, 0.0, 0.0),
}


def network_of(*sizes: int, act: type[nn.Module] = nn.ReLU, seed: int = 0) -> Network:
    """Return an untrained network in double precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1], dtype=torch.float64), act()]
    return Network(nn.Sequential(*layers[:-1]))


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(7, 3))


def norms_in_ball(network: Network, change: torch.Tensor, ball: NormBall):
    """||change / scale||_p of each row; a tensor of scale 0 must not have changed."""
    parameters, parts = Parameters(network), []
    tensors = torch.split(change, parameters.sizes, dim=-1)
    for tensor, scale in zip(tensors, tensor_scales(network, ball), strict=True):
        if scale == 0.0:
            assert (tensor == 0.0).all()
        parts.append((tensor / scale if scale > 0.0 else tensor).numpy())
    return np.linalg.norm(np.concatenate(parts, axis=-1), ord=ball.p, axis=-1)


@pytest.mark.parametrize("act", [nn.ReLU, pytest.param(nn.Tanh, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("p", EXPONENTS)
def test_changes_lie_in_the_ball_and_give_the_score(p, scale, act, points):
    network = network_of(3, 6, 4, 1, act=act)
    ball = NormBall(p, 0.4, scale=SCALES[scale])
    found = worst_network(network, points, ball, keep_change=True)
    norms = norms_in_ball(network, found.change, ball)
    assert (norms <= 0.4 * (1 + 1e-12)).all()
    assert (norms > 0.2).all()
    score = Parameters(network).score(found.change, network.tensor(points)).numpy()
    np.testing.assert_allclose(score, found.score, rtol=0, atol=1e-12)
    assert (found.score < network.score(points)).all()


@pytest.mark.parametrize("scale", ["none", "mixed"])
@pytest.mark.parametrize("p", SOME_EXPONENTS)
def test_more_steps_and_starts_never_find_less(p, scale, points):
    network, ball = network_of(3, 8, 8, 1), NormBall(p, 0.4, scale=SCALES[scale])
    longer = [worst_network(network, points, ball, steps=k).score for k in (0, 1, 5, 20, 80)]
    more = [worst_network(network, points, ball, starts=k).score for k in (1, 2, 3, 5)]
    for scores in (longer, more):
        assert (np.diff(scores, axis=0) <= 1e-12).all()


@pytest.mark.parametrize("weights", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("biases", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("p", [*EXPONENTS, *ROUND])
def test_one_layer_is_the_closed_form(p, weights, biases, points):
    """Score - radius * ||scale * (x, 1)||_q, as for a linear model with these scales."""
    if weights == biases == 0.0:
        return
    network, ball = network_of(3, 1), NormBall(p, 0.4, scale=[weights, biases])
    layer = network.module[0]
    linear = NormBall(p, 0.4, scale=[weights] * 3, intercept=biases)
    coef = layer.weight.detach().numpy()[0]
    closed = linear.worst_score(points, coef, layer.bias.item())
    found = worst_network(network, points, ball)
    np.testing.assert_allclose(found.score, closed, rtol=0, atol=1e-11)
    reach = np.column_stack([weights * points, np.full(len(points), biases)])
    felt = network.score(points) - 0.4 * np.linalg.norm(reach, ord=ball.dual_p, axis=1)
    np.testing.assert_allclose(found.score, felt, rtol=0, atol=1e-11)


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("p", SOME_EXPONENTS)
def test_the_same_set_has_the_same_worst_networks(p, act, points):
    network = network_of(3, 6, 4, 1, act=act)
    mixed = np.array(SCALES["mixed"])
    for ball, same in (
        (NormBall(p, 0.4), NormBall(p, 0.4, scale=[1.0] * 6)),
        (NormBall(p, 0.4), NormBall(p, 0.1, scale=[4.0] * 6)),
        (NormBall(p, 0.4, scale=mixed), NormBall(p, 0.2, scale=2.0 * mixed)),
        (NormBall(p, 0.4, scale=mixed), NormBall(p, 1.2, scale=mixed / 3.0)),
    ):
        one, other = (worst_network(network, points, b) for b in (ball, same))
        np.testing.assert_allclose(one.score, other.score, rtol=0, atol=1e-9)


@pytest.mark.parametrize("p", EXPONENTS)
def test_a_scale_of_0_and_a_fixed_tensor_are_both_left_alone(p, points):
    """The last layer alone, said in two ways, is the closed form of a linear model."""
    module = network_of(3, 5, 1).module
    hidden = torch.relu(module[0](torch.tensor(points))).detach().numpy()
    felt = np.column_stack([hidden, np.ones(len(points))])
    ball = NormBall(p, 0.2, scale=[0.0, 0.0, 1.0, 1.0])
    least = Network(module).score(points) - 0.2 * np.linalg.norm(felt, ord=ball.dual_p, axis=1)
    by_scale = worst_network(Network(module), points, ball, keep_change=True)
    module[0].requires_grad_(False)
    by_fixing = worst_network(Network(module), points, NormBall(p, 0.2), keep_change=True)
    for found in (by_scale, by_fixing):
        assert (found.change[:, : 3 * 5 + 5] == 0.0).all()
        np.testing.assert_allclose(found.score, least, rtol=0, atol=1e-9)
    # fixed, whatever the scale says
    both = worst_network(Network(module), points, NormBall(p, 0.1, scale=[7.0, 7.0, 2.0, 2.0]))
    np.testing.assert_allclose(both.score, least, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", ["none", "mixed"])
@pytest.mark.parametrize("p", SOME_EXPONENTS)
def test_tiny_balls_agree_with_the_first_order(p, scale, points):
    """To first order the worst score is f(x) - radius * ||scale * grad f||_q."""
    network, radius = network_of(3, 8, 8, 1), 1e-5
    ball = NormBall(p, radius, scale=SCALES[scale])
    parameters = Parameters(network)
    slope, score = parameters.slope(parameters.zeros(len(points)), network.tensor(points))
    scales = np.repeat(tensor_scales(network, ball), parameters.sizes)
    norm = np.linalg.norm(scales * slope.numpy(), ord=ball.dual_p, axis=1)
    found = worst_network(network, points, ball)
    np.testing.assert_allclose(score.numpy() - found.score, radius * norm, rtol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [None, (1.0, 0.2, 2.0, 0.0)])
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_not_worse_than_brute_force(p, scale):
    """Thousands of random changes, the best ones improved by scipy, find nothing lower."""
    network, radius = network_of(2, 3, 1, seed=3), 0.3
    parameters, rng = Parameters(network), np.random.default_rng(0)
    ball = NormBall(p, radius, scale=scale)
    scales = np.repeat(tensor_scales(network, ball), parameters.sizes)
    for x in rng.normal(size=(3, 2)):
        found = worst_network(network, x[None], ball, starts=25, steps=50)
        changes = rng.normal(size=(4000, parameters.size))
        changes *= radius / np.linalg.norm(changes, ord=p, axis=1, keepdims=True)
        row = network.tensor(x[None])

        def score(change, row=row):
            inside = change / max(1.0, np.linalg.norm(change, ord=p) / radius)
            return float(parameters.score(torch.tensor((scales * inside)[None]), row)[0])

        rows = row.expand(len(changes), -1)
        scores = parameters.score(torch.tensor(scales * changes), rows).numpy()
        best = scores.min()
        for start in changes[np.argsort(scores)[:2]]:
            polished = optimize.minimize(score, start, method="Powell", options={"maxiter": 15})
            best = min(best, polished.fun)
        assert found.score[0] <= best + 1e-3 * abs(best)


@pytest.mark.parametrize("size", [1e-160, 1.0, 1e160])
@pytest.mark.parametrize("p", [1.0 + 1e-12, 1.001, 1.5, 3, 1e6, 1e300])
def test_no_exponent_overflows(p, size):
    """The slope of a linear score is x: as large or small as numbers get."""
    network, ball = Network(nn.Linear(3, 1, bias=False, dtype=torch.float64)), NormBall(p, 0.5)
    x = size * np.array([[1.0, -2.0, 0.0], [1.0, 1.0, 1.0]])
    found = worst_network(network, x, ball, keep_change=True)
    change = np.abs(found.change.numpy())
    largest = change.max(axis=1, keepdims=True)
    length = largest[:, 0] * np.linalg.norm(change / largest, ord=p, axis=1)
    np.testing.assert_allclose(length, 0.5, rtol=1e-9)
    ratio = np.abs(x) / np.abs(x).max(axis=1, keepdims=True)
    norm = np.abs(x).max(axis=1) * np.linalg.norm(ratio, ord=ball.dual_p, axis=1)
    np.testing.assert_allclose(found.score, network.score(x) - 0.5 * norm, rtol=1e-9)


def test_a_loud_last_layer_is_found_with_a_scale():
    """For p = inf and a radius above all weights the worst network is known: all units loud.

    With one scale for each tensor it is the same argument: no activation can be larger than with
    every weight at the end of its range, and the last layer turns against them.
    """
    network, r = network_of(3, 6, 4, 1, seed=1), 2.0
    scale = (1.0, 0.5, 1.5, 0.25, 1.0, 0.0)
    x = np.random.default_rng(3).normal(size=(5, 3))
    tensors = [t.detach().numpy() for t in network.module.parameters()]
    w1, b1, w2, b2, w3, b3 = tensors
    reach = r * np.array(scale)
    assert np.abs(w2).max() < reach[2]
    assert np.abs(w3).max() < reach[4]
    first = x @ w1.T + b1 + (reach[0] * np.abs(x).sum(axis=1) + reach[1])[:, None]
    first = np.maximum(first, 0.0)
    second = first @ w2.T + b2 + (reach[2] * first.sum(axis=1) + reach[3])[:, None]
    second = np.maximum(second, 0.0)
    least = second @ w3[0] + b3[0] - reach[4] * second.sum(axis=1)
    found = worst_network(network, x, NormBall(math.inf, r, scale=scale)).score
    np.testing.assert_allclose(found, least, rtol=1e-9)


@pytest.mark.parametrize("scale", ["none", "mixed"])
@pytest.mark.parametrize("p", SOME_EXPONENTS)
def test_one_network_for_all_lies_in_the_ball_too(p, scale, points):
    network, ball = network_of(3, 6, 4, 1), NormBall(p, 0.4, scale=SCALES[scale])
    found = population_worst_network(network, points, ball, keep_change=True)
    assert (norms_in_ball(network, found.change, ball) <= 0.4 * (1 + 1e-12)).all()
    rows = found.change.expand(len(points), -1)
    score = Parameters(network).score(rows, network.tensor(points)).numpy()
    np.testing.assert_allclose(score, found.score, rtol=0, atol=1e-12)
    own = worst_network(network, points[:1], ball)
    alone = population_worst_network(network, points[:1], ball)
    assert alone.score[0] <= own.score[0] + 1e-9
    assert found.loss.sum() > np.logaddexp(0.0, -network.score(points)).sum()


def test_the_tensors_of_a_scikit_learn_network_are_in_order():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    fitted = MLPClassifier((4,), max_iter=2000, random_state=0).fit(x, x[:, 0] > 0)
    network = as_model(fitted)
    sizes = [tensor.numel() for tensor in network.module.parameters()]
    w1, w2 = fitted.coefs_
    b1, b2 = fitted.intercepts_
    assert sizes == [w1.size, b1.size, w2.size, b2.size]
    score = network.score(x[:5])
    found = worst_network(network, x[:5], NormBall(3, 0.2, scale=[0, 0, 0, 1.0])).score
    np.testing.assert_allclose(found, score - 0.2, atol=1e-12)
    hidden = np.maximum(x[:5] @ w1 + b1, 0.0)
    found = worst_network(network, x[:5], NormBall(3, 0.2, scale=[0, 0, 2.0, 0])).score
    norm = np.linalg.norm(hidden, ord=1.5, axis=1)
    np.testing.assert_allclose(found, score - 0.4 * norm, atol=1e-9)


def test_scales_are_read_in_order():
    network = network_of(3, 2, 1)
    assert tensor_scales(network, NormBall(1, 0.1)) == (1.0,) * 4
    assert tensor_scales(network, NormBall(1, 0.1, intercept=np.True_)) == (1.0,) * 4
    network.module[0].weight.requires_grad_(False)
    assert tensor_scales(network, NormBall(1, 0.1, scale=[3, 2, 0, 1])) == (0.0, 2.0, 0.0, 1.0)
    deep = network_of(*[2] * 12, 1)
    with pytest.raises(ValueError, match=r"has 24 tensors .* \.\.\. \(module.named_parameters"):
        tensor_scales(deep, NormBall(1, 0.1, scale=[1.0]))


@pytest.mark.parametrize("p", [1, 3])
def test_judges_take_any_ball(p, points):
    """A network of one layer is a linear model: every judge agrees with the exact one."""
    network = network_of(3, 1)
    layer = network.module[0]
    coef, intercept = layer.weight.detach().numpy()[0], layer.bias.item()
    linear = NormBall(p, 0.2, scale=[0.5] * 3, intercept=2.0)
    ball = NormBall(p, 0.2, scale=[0.5, 2.0])
    result = holdfast.solve(points, coef, intercept, robust_to=linear, cost_weight=0.1)
    judged = judge_network(result, network, ball)
    np.testing.assert_allclose(judged.worst_case_score, result.worst_case_score, atol=1e-9)
    price = network_price(network, result.recourse_array, points, ball, 0.1)
    np.testing.assert_allclose(price, result.price, atol=1e-9)
    table = evaluate_recourse(result, network, robust_to=ball)
    np.testing.assert_allclose(table["worst_case_validity"], result.worst_case_validity, atol=1e-9)
    assert set(table["judging"]) == {"search"}


def test_scales_of_features_are_not_taken_for_those_of_tensors(points):
    """With two features and two tensors the lengths agree, and the meanings do not."""
    network = network_of(2, 1)
    ball = NormBall(1, 0.1, scale=[1.0, 0.5])
    result = holdfast.solve(points[:, :2], [1.0, -1.0], 0.0, robust_to=ball, cost_weight=0.1)
    for judge in (judge_network, evaluate_recourse):
        with pytest.raises(ValueError, match="scale of the result's own ball"):
            judge(result, network)
