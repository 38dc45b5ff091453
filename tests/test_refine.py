"""Refining under the worst network: never worse than its start, within bounds, row by row."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from holdfast import NormBall, find_recourse
from holdfast.methods import list_methods
from holdfast.methods.refine import Refine
from holdfast.models.network import Network
from holdfast.models.networks import judge_network, worst_network
from holdfast.paper.training import train_network
from holdfast.result import MethodStatus
from holdfast.result.surrogate import Surrogate

WEIGHT = 0.1


@pytest.fixture(scope="module")
def network() -> Network:
    """Return a small network for a score that is bent: approved in two opposite corners."""
    x = np.random.default_rng(0).normal(size=(300, 3))
    trained = train_network(x, x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0.5, hidden=(12, 8), epochs=300)
    return Network(trained.module.double())


@pytest.fixture(scope="module")
def points(network) -> np.ndarray:
    x = np.random.default_rng(1).normal(size=(40, 3))
    return x[network.score(x) < 0][:8]


def tangent(network: Network, points: np.ndarray) -> Surrogate:
    x = network.tensor(points).requires_grad_()
    score = network.logits(x)
    coef = torch.autograd.grad(score.sum(), x)[0].numpy()
    intercept = score.detach().numpy() - np.einsum("ij,ij->i", coef, points)
    return Surrogate("tangent", coef, intercept, np.ones(len(points)), np.zeros(len(points)))


def both(network, points, ball, **settings):
    """Return the start and what refining makes of it."""
    ask = {"robust_to": ball, "cost_weight": WEIGHT, "linearise": tangent(network, points)}
    known = {key: settings.pop(key) for key in ("feature_costs", "bounds") if key in settings}
    start = find_recourse(points, network, "exact", **ask, **known)
    return start, find_recourse(points, network, "refine", **ask, **known, **settings)


@pytest.mark.parametrize(
    "ball",
    [
        NormBall(1, 0.2),
        NormBall(2, 0.1),
        pytest.param(NormBall(3, 0.05), marks=pytest.mark.slow),
        NormBall(math.inf, 0.02),
    ],
)
def test_never_worse_than_its_start(network, points, ball):
    start, refined = both(network, points, ball)
    before, after = (judge_network(result, network).price for result in (start, refined))
    assert (after <= before + 1e-12).all()
    assert after.mean() < before.mean() - 0.01
    # and a stronger search for the worst network agrees
    stronger = partial(worst_network, steps=100, starts=6)
    before, after = (judge_network(r, network, ascent=stronger).price for r in (start, refined))
    assert (after <= before + 1e-3).all()


def test_bounds_and_costs_are_honoured(network, points):
    lower, upper = points - 0.3, points + 0.7
    upper[:, 2] = lower[:, 2] = points[:, 2]
    costs = np.array([0.5, 2.0, 1.0])
    start, refined = both(
        network, points, NormBall(1, 0.2), bounds=(lower, upper), feature_costs=costs
    )
    assert (refined.recourse >= lower).all()
    assert (refined.recourse <= upper).all()
    np.testing.assert_allclose(refined.cost, np.abs(refined.action) @ costs)
    before, after = (judge_network(result, network).price for result in (start, refined))
    assert (after <= before + 1e-12).all()


def test_rows_do_not_touch_each_other(network, points):
    ball = NormBall(1, 0.2)
    _, whole = both(network, points, ball)
    _, pieces = both(network, points, ball, memory=1e-6)
    np.testing.assert_allclose(pieces.recourse, whole.recourse, atol=1e-6)
    for i in (0, 3):
        _, alone = both(network, points[i : i + 1], ball)
        np.testing.assert_allclose(alone.recourse[0], whole.recourse[i], atol=1e-6)
        assert alone.steps[0] == whole.steps[i]


def test_a_single_layer_is_solved_at_once():
    """There the surrogate is the network: nothing is left to gain but between its kinks."""
    layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -0.5]]))
        layer.bias.fill_(-1.0)
    x = np.array([[0.0, 2.0], [0.5, 1.0]])
    start, refined = both(Network(layer), x, NormBall(2, 0.1))
    np.testing.assert_allclose(refined.price, start.price, atol=1e-6)


def test_the_step_limit_is_said(network, points):
    _, refined = both(network, points, NormBall(1, 0.2), max_steps=1)
    assert (refined.steps <= 1).all()
    assert MethodStatus.STEP_LIMIT in set(refined.method_status)
    assert len(both(network, points[:0], NormBall(1, 0.2))[1]) == 0
    _, finished = both(network, points, NormBall(1, 0.2), max_steps=100)
    assert MethodStatus.STEP_LIMIT not in set(finished.method_status)


def test_what_it_cannot_do_is_refused(network, points):
    with pytest.raises(
        ValueError, match="refine with a cost_weight does not support a scale of the ball"
    ):
        find_recourse(
            points,
            network,
            "refine",
            robust_to=NormBall(1, 0.2, scale=[1.0, 1.0, 2.0, 1.0, 1.0, 1.0]),
            cost_weight=WEIGHT,
            linearise="gradient",
        )
    with pytest.raises(ValueError, match="intercept"):
        both(network, points, NormBall(1, 0.2, intercept=False))
    with pytest.raises(ValueError, match="refine needs a network; a linear model is not a network"):
        find_recourse(
            points, ([1.0] * 3, 0.0), "refine", robust_to=NormBall(1, 0.2), cost_weight=WEIGHT
        )
    with pytest.raises(ValueError, match="max_steps = 0"):
        Refine(max_steps=0)
    (info,) = (method for method in list_methods() if method.name == "refine")
    assert "a network" in info.needs
