"""The proof for networks on a graphics card: the same numbers as on the processor."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from holdfast import NormBall
from holdfast.models.network import Network
from holdfast.models.networks.prover import Prover

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no graphics card that torch can use"
)


def random_network(kind, sizes, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = []
        for into, out in itertools.pairwise(sizes):
            layers += [torch.nn.Linear(into, out), kind()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("p", [1, 1.5, 2, math.inf])
@pytest.mark.parametrize("kind", [torch.nn.ReLU, torch.nn.Tanh])
def test_the_card_proves_what_the_processor_does(p, kind):
    module = random_network(kind, (7, 50, 100, 200, 1), seed=3)
    points = np.random.default_rng(4).normal(size=(300, 7))
    ball = NormBall(p, 0.05 if p < 2 else 0.002)
    here = Prover.of(Network(module), ball).lower(points)
    there = Prover.of(Network(module, device="cuda"), ball).lower(points)
    np.testing.assert_allclose(there, here, rtol=0.0, atol=1e-9)


def test_splits_on_the_card():
    module = random_network(torch.nn.ReLU, (3, 6, 6, 1), seed=5)
    points = np.random.default_rng(6).normal(size=(10, 3))
    ball = NormBall(1, 0.5)
    here = Prover.of(Network(module), ball).lower(points, splits=8)
    there = Prover.of(Network(module, device="cuda"), ball).lower(points, splits=8)
    np.testing.assert_allclose(there, here, rtol=0.0, atol=1e-9)
