"""The compiled passes through plain feed-forward networks, beside torch's own differentiation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from holdfast import NormBall
from holdfast.models.network import Network
from holdfast.models.networks import project_l1, worst_network
from holdfast.models.networks.layers import layers_of, turn_layers
from holdfast.models.networks.parameters import Parameters
from holdfast.paper import published_worst_network
from holdfast.paper.worst_network_as_published import turn_layers_back
from holdfast.paper.worst_network_steps import into_l1_ball


class Wrapped(nn.Module):
    """The same network, but not one whose layers can be seen."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inside(x)


def module(*sizes: int, biases: bool = True, seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1], bias=biases), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


MODULES = {
    "three layers": module(3, 8, 6, 1),
    "no biases": module(3, 8, 6, 1, biases=False),
    "one layer": module(3, 1),
    "layer alone": module(3, 1)[0],
}


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(9, 3))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("p", [1.0, math.inf])
def test_the_published_steps_are_the_same(name, p, points):
    plain, wrapped = Network(MODULES[name]), Network(Wrapped(MODULES[name]))
    assert layers_of(plain) is not None
    assert layers_of(wrapped) is None
    for radius in (0.0, 0.05, 0.5):
        ball = NormBall(p, radius)
        ours, torchs = (
            published_worst_network(network, points, ball, keep_change=True)
            for network in (plain, wrapped)
        )
        np.testing.assert_allclose(ours.score, torchs.score, atol=1e-9)
        torch.testing.assert_close(ours.change, torchs.change, atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("p", [1.0, math.inf])
@pytest.mark.parametrize("starts", [1, 4])
def test_mixtures_find_nothing_less(name, p, starts, points):
    plain, wrapped = Network(MODULES[name]), Network(Wrapped(MODULES[name]))
    for radius in (0.0, 0.05, 0.3):
        ball = NormBall(p, radius)
        ours = worst_network(plain, points, ball, starts=starts, keep_change=True)
        torchs = worst_network(wrapped, points, ball, starts=starts)
        assert (ours.score <= torchs.score + 1e-9).all()
        own = Parameters(plain).score(ours.change, plain.tensor(points)).numpy()
        np.testing.assert_allclose(own, ours.score, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, math.inf])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_first_steps_are_the_same(p, steps, points):
    ball = NormBall(p, 0.1)
    inside = MODULES["three layers"]
    settings = {"starts": 1, "steps": steps, "keep_change": True}
    ours, torchs = (
        worst_network(Network(one), points, ball, **settings) for one in (inside, Wrapped(inside))
    )
    np.testing.assert_allclose(ours.score, torchs.score, atol=1e-12)
    torch.testing.assert_close(ours.change, torchs.change, atol=1e-12, rtol=0)


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("radius", [0.1, 0.8])
def test_the_best_change_of_one_parameter(biases, radius, points):
    """Both ends of every weight of a unit's largest input, and of every bias, one by one."""
    network = Network(module(3, 5, 4, 1, biases=biases))
    parameters = Parameters(network)
    found = worst_network(network, points, NormBall(1, radius), starts=2, steps=0)
    moves = radius * torch.cat([torch.eye(parameters.size), -torch.eye(parameters.size)]).double()
    for x, score in zip(points, found.score, strict=True):
        row = network.tensor(x[None])
        allowed = torch.zeros(parameters.size)
        inputs, at = row[0], 0
        for layer in network.module:
            if isinstance(layer, nn.Linear):
                matrix = torch.zeros(layer.weight.shape)
                matrix[:, inputs.abs().argmax()] = 1.0
                size = matrix.numel() + (layer.out_features if biases else 0)
                allowed[at : at + matrix.numel()] = matrix.flatten()
                allowed[at + matrix.numel() : at + size] = 1.0
                at += size
            inputs = layer(inputs).detach()
        scores = parameters.score(moves, row.expand(len(moves), -1)).numpy()
        known = allowed.repeat(2).bool().numpy()
        assert score == pytest.approx(min(scores[known].min(), network.score(x)[0]), abs=1e-12)
        assert score >= scores.min() - 1e-12


def test_threads_and_missing_rows(points):
    points = np.vstack([points] * 4)
    points[3, 1] = np.nan
    network = Network(MODULES["three layers"])
    for search in (worst_network, published_worst_network):
        for p in (1.0, math.inf):
            one, two = (
                search(network, points, NormBall(p, 0.2), n_jobs=threads).score
                for threads in (1, 2)
            )
            np.testing.assert_array_equal(one, two)
            assert np.isnan(one[3])
            assert np.isfinite(np.delete(one, 3)).all()


def test_only_plain_networks_are_taken_apart():
    hooked = module(3, 4, 1)
    hooked[0].register_forward_hook(lambda *_: None)
    shared = nn.Linear(3, 3)
    others = [
        Network(hooked),
        Network(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))),
        Network(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1), nn.ReLU())),
        Network(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1), nn.ReLU())),
        Network(nn.Sequential(shared, nn.ReLU(), shared, nn.ReLU(), nn.Linear(3, 1))),
        Network(nn.Sequential(nn.Linear(3, 1)), output="probability"),
        Network(nn.utils.parametrizations.weight_norm(nn.Linear(3, 1))),
    ]
    assert [layers_of(network) for network in others] == [None] * len(others)
    assert layers_of(Network(nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()), "probability"))


def test_turning_and_turning_back():
    layers = layers_of(Network(MODULES["three layers"]))
    numbers = np.arange(len(layers.trained), dtype=float)
    turned = turn_layers(layers, numbers)
    np.testing.assert_array_equal(turned[: 3 * 8].reshape(3, 8), numbers[: 3 * 8].reshape(8, 3).T)
    np.testing.assert_array_equal(turn_layers_back(layers, turned), numbers)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_compiled_projection(dtype):
    """As by sorting, from whichever threshold it begins."""
    rng = np.random.default_rng(2)
    for trial in range(200):
        vector = rng.normal(size=rng.integers(1, 40)) * rng.choice([0.01, 1.0, 100.0])
        if trial % 3 == 0:
            vector = np.round(vector)  # ties and zeros
        vector = vector.astype(dtype)
        atol = 50 * np.finfo(dtype).eps * max(1.0, np.abs(vector).max())
        expected = project_l1(torch.tensor(vector[None]), 0.7)[0].numpy()
        for begin in (0.0, 0.3, 5.0, 1e6):
            mine = vector.copy()
            into_l1_ball(mine, dtype(0.7), np.array([begin], dtype))
            np.testing.assert_allclose(mine, expected, atol=atol, rtol=1e-5)


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="X has 2 columns, the network takes 3"):
        worst_network(Network(MODULES["three layers"]), [[1.0, 2.0]], NormBall(1, 0.1))


@pytest.mark.parametrize("biases", [True, False])
def test_waking_all_units_is_the_worst_where_the_radius_exceeds_the_weights(biases, points):
    """No activation can be larger than with all weights up, and all reach that together."""
    network, radius = Network(module(3, 8, 6, 1, biases=biases)), 0.7
    first, *later = [layer for layer in network.module if isinstance(layer, nn.Linear)]
    assert all(layer.weight.abs().max() < radius for layer in later)
    found = worst_network(network, points, NormBall(math.inf, radius))
    for x, score in zip(points, found.score, strict=True):
        most, reach = torch.tensor(x), torch.tensor(x).abs().sum()
        for layer in (first, *later[:-1]):
            most = (layer(most) + radius * (reach + biases)).clamp_min(0.0)
            reach = most.sum()
        least = later[-1](most) - radius * (reach + biases)
        assert score == pytest.approx(least.item(), rel=1e-12)


def filled(*layers: tuple[list[list[float]], list[float]]) -> Network:
    """Return a network with these weights and biases."""
    parts: list[nn.Module] = []
    for weights, biases in layers:
        layer = nn.Linear(len(weights[0]), len(weights), dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(weights))
            layer.bias.copy_(torch.tensor(biases))
        parts += [layer, nn.ReLU()]
    return Network(nn.Sequential(*parts[:-1]))


def lowest_corner(network: Network, x: np.ndarray, radius: float) -> float:
    """Try every corner of the L-infinity ball."""
    parameters = Parameters(network)
    bits = np.arange(2**parameters.size)[:, None] >> np.arange(parameters.size) & 1
    corners = torch.tensor(radius * (2.0 * bits - 1.0))
    scores = [
        parameters.score(part, network.tensor(x[None]).expand(len(part), -1)).min()
        for part in corners.split(4096)
    ]
    return float(min(scores))


def test_loud_units_are_not_the_worst_where_they_silence_others():
    """The radius is above the weights -5, but cannot turn them around: silence wakes the rest."""
    network = filled(([[0.0], [0.0]], [1.0, 1.0]), ([[-5.0, -5.0]], [10.0]), ([[0.5]], [0.0]))
    point = np.array([[1.0]])
    found = worst_network(network, point, NormBall(math.inf, 1.0), starts=2).score[0]
    assert found == pytest.approx(-6.5, abs=1e-12)
    assert found == pytest.approx(lowest_corner(network, point[0], 1.0), abs=1e-12)


@pytest.mark.parametrize("sizes", [(2, 2, 1), (1, 2, 1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("size", [0.9, 2.0, 5.0])
def test_no_corner_is_lower_in_tiny_networks(sizes, size):
    """Weights that the radius 1 can turn around, and such that it cannot."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        layers = [
            (rng.uniform(-size, size, (far, near)).tolist(), rng.uniform(-size, size, far).tolist())
            for near, far in itertools.pairwise(sizes)
        ]
        network, x = filled(*layers), rng.normal(size=sizes[0])
        found = worst_network(network, x[None], NormBall(math.inf, 1.0)).score[0]
        assert found <= lowest_corner(network, x, 1.0) + 1e-9, seed
