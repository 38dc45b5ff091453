"""One worst model for all points: enumeration, random models, closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from holdfast import NormBall
from holdfast.evaluate import population, population_worst_model
from holdfast.models.network import Network
from holdfast.models.networks import population_worst_network, worst_network
from holdfast.models.networks.parameters import Parameters

COEF, INTERCEPT = np.array([0.6, -1.0, 0.3, 0.2]), 0.4
BALLS = [
    NormBall(1, 0.5),
    NormBall(1, 0.5, scale=[1.0, 0.0, 2.0, 0.5], intercept=0.3),
    NormBall(1.5, 0.5),
    NormBall(2, 0.7, intercept=False),
    NormBall(4, 0.5, scale=[1.0, 0.0, 2.0, 0.5]),
    NormBall(math.inf, 0.3),
    NormBall(math.inf, 0.3, scale=[1.0, 0.0, 2.0, 0.5], intercept=False),
]


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(12, 4)) * [1.0, 2.0, 0.5, 1.0]


def losses(points, coef, intercept):
    return np.logaddexp(0.0, -(points @ np.asarray(coef).T + intercept))


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_the_model_lies_in_the_ball_and_no_random_one_is_worse(ball, points):
    worst = population_worst_model(points, COEF, INTERCEPT, ball)
    distance = ball.distance(COEF, INTERCEPT, worst.coef, worst.intercept)[0]
    assert distance <= ball.radius * (1 + 1e-12)
    np.testing.assert_allclose(worst.score(points), points @ worst.coef + worst.intercept)
    assert worst.loss_sum == pytest.approx(losses(points, worst.coef, worst.intercept).sum())
    rng = np.random.default_rng(1)
    unit = rng.normal(size=(5000, 5)) * rng.choice([0.05, 1.0], size=(5000, 5))
    unit /= np.linalg.norm(unit, ord=ball.p, axis=1, keepdims=True)
    change = ball.radius * unit * np.append(ball.feature_scale(4), ball.intercept_scale)
    sums = losses(points, COEF + change[:, :4], INTERCEPT + change[:, 4]).sum(axis=0)
    assert worst.loss_sum >= sums.max() - 1e-12
    assert worst.exact == (ball.p in (1.0, math.inf))


def test_all_vertices_by_hand(points):
    for p, units in {
        1.0: np.vstack([np.eye(5), -np.eye(5)]),
        math.inf: np.array(list(itertools.product([-1.0, 1.0], repeat=5))),
    }.items():
        sums = losses(points, COEF + 0.5 * units[:, :4], INTERCEPT + 0.5 * units[:, 4]).sum(axis=0)
        worst = population_worst_model(points, COEF, INTERCEPT, NormBall(p, 0.5))
        assert worst.loss_sum == pytest.approx(sums.max(), rel=1e-12)
        assert worst.exact


@pytest.mark.parametrize("seed", range(8))
def test_the_ascent_finds_the_best_corner(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    points, coef = rng.normal(size=(15, 7)), rng.normal(size=7)
    ball = NormBall(math.inf, 0.4)
    exact = population_worst_model(points, coef, 0.1, ball)
    monkeypatch.setattr(population, "MOST_DIMENSIONS", 3)
    found = population_worst_model(points, coef, 0.1, ball)
    assert exact.exact
    assert not found.exact
    assert found.loss_sum == pytest.approx(exact.loss_sum, rel=1e-12)


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_a_population_of_one_is_that_point(ball, points):
    for row in points:
        worst = population_worst_model(row[None], COEF, INTERCEPT, ball)
        own = ball.worst_score(row, COEF, INTERCEPT)
        np.testing.assert_allclose(worst.score(row[None]), own, atol=1e-9)
        assert worst.exact


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_nothing_to_change_and_nobody(p, points):
    worst = population_worst_model(points, COEF, INTERCEPT, NormBall(p, 0.0))
    np.testing.assert_array_equal(worst.coef, COEF)
    assert (worst.intercept, worst.exact) == (INTERCEPT, True)
    nobody = population_worst_model(points[:0], COEF, INTERCEPT, NormBall(p, 0.5))
    assert nobody.loss_sum == 0.0


def test_a_population_is_never_worse_off_than_its_members(points):
    """One model for all is at most as bad as each one's own."""
    for ball in BALLS:
        worst = population_worst_model(points, COEF, INTERCEPT, ball)
        own = np.logaddexp(0.0, -ball.worst_score(points, COEF, INTERCEPT)).sum()
        assert worst.loss_sum <= own + 1e-12


def test_wrong_arguments_are_named(points):
    ball = NormBall(1, 0.1)
    points[[2, 5], 1] = np.nan
    with pytest.raises(ValueError, match="2 rows, the first of which is row 2; leave out"):
        population_worst_model(points, COEF, INTERCEPT, ball)
    with pytest.raises(ValueError, match="2 rows, the first of which is row 2; leave out"):
        population_worst_network(Network(nn.Linear(4, 1)), points, ball)
    with pytest.raises(ValueError, match="one model for all"):
        population_worst_model(points, np.ones((12, 4)), INTERCEPT, ball)
    with pytest.raises(ValueError, match="expected \\(n, d\\)"):
        population_worst_network(Network(nn.Linear(4, 1)), points[0], ball)


def layered(*sizes: int) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1]), nn.ReLU()]
    return Network(nn.Sequential(*layers[:-1]).double())


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_one_layer_is_the_linear_model(p, points):
    network = layered(4, 1)
    layer = network.module[0]
    coef, intercept = layer.weight.detach().numpy()[0], layer.bias.item()
    for radius in (0.1, 0.5):
        ball = NormBall(p, radius)
        linear = population_worst_model(points, coef, intercept, ball)
        found = population_worst_network(network, points, ball)
        assert found.loss.sum() == pytest.approx(linear.loss_sum, rel=1e-6)
        assert found.loss.sum() <= linear.loss_sum + 1e-9


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_one_network_for_all(p, points):
    network, ball = layered(4, 8, 6, 1), NormBall(p, 0.2)
    found = population_worst_network(network, points, ball, keep_change=True)
    parameters = Parameters(network)
    assert found.change.shape == (1, parameters.size)
    assert np.linalg.norm(found.change[0].numpy(), ord=p) <= 0.2 + 1e-12
    same = found.change.expand(len(points), -1)
    np.testing.assert_allclose(
        parameters.score(same, network.tensor(points)).numpy(), found.score, atol=1e-12
    )
    trained = np.logaddexp(0.0, -network.score(points)).sum()
    own = worst_network(network, points, ball, keep_change=True)
    assert trained < found.loss.sum() <= own.loss.sum() + 1e-9
    # no single point's worst network is worse for all of them
    for change in own.change:
        score = parameters.score(change.expand(len(points), -1), network.tensor(points)).numpy()
        assert np.logaddexp(0.0, -score).sum() <= found.loss.sum() + 1e-9


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_a_population_of_one_has_its_own_network(p, points):
    network, ball = layered(4, 8, 6, 1), NormBall(p, 0.2)
    for row in points[:4]:
        found = population_worst_network(network, row[None], ball)
        own = worst_network(network, row[None], ball)
        assert found.score[0] <= own.score[0] + 1e-9
        assert found.score[0] == pytest.approx(own.score[0], abs=0.05)


def test_more_starts_and_steps_never_find_less(points):
    network, ball = layered(4, 8, 6, 1), NormBall(1, 0.3)
    sums = [population_worst_network(network, points, ball, starts=k).loss.sum() for k in (1, 2, 5)]
    assert (np.diff(sums) >= -1e-12).all()
    assert population_worst_network(network, points[:0], ball).score.shape == (0,)
