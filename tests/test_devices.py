"""The same answers on every device; without a GPU the tests that need one are skipped."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn

from holdfast import LastLayer, NormBall, find_recourse
from holdfast.models.linearise import Gradient, Lime, SmoothGrad
from holdfast.models.network import Network
from holdfast.models.networks import worst_last_layer, worst_network
from holdfast.paper import published_worst_network
from holdfast.paper.training import train_network

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@functools.cache
def networks() -> tuple[np.ndarray, Network, Network]:
    """Points, and one network in float64, on the processor and on the GPU."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 4))
    approved = points @ [1.0, -1.0, 0.5, 0.0] + np.sin(points[:, 3]) > 0.3
    module = train_network(points, approved, hidden=(8, 8)).module.double()
    return points, Network(copy.deepcopy(module)), Network(copy.deepcopy(module), device="cuda")


@needs_cuda
@pytest.mark.parametrize(
    "lineariser", [Lime(), Lime(sampling="gradient"), SmoothGrad(), Gradient()]
)
def test_surrogates_agree(lineariser):
    points, here, there = networks()
    a, b = (
        lineariser.fit(network, points[:20], points, random_state=0) for network in (here, there)
    )
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-9)
    np.testing.assert_allclose(a.r2, b.r2, atol=1e-9)


@needs_cuda
@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("ascent", [worst_network, published_worst_network])
def test_worst_networks_agree(p, ascent):
    if p == 2 and ascent is published_worst_network:
        pytest.skip("the paper has no p = 2")
    points, here, there = networks()
    ball = NormBall(p, 0.05)
    a, b = (ascent(network, points[:20], ball).score for network in (here, there))
    np.testing.assert_allclose(a, b, atol=1e-6)


@needs_cuda
@pytest.mark.parametrize("method", ["exact", "roar", "wachter", "rbr", "refine"])
def test_methods_agree(method):
    points, here, there = networks()
    denied = points[here.score(points) < 0][:10]
    a, b = (
        find_recourse(
            denied,
            network,
            method,
            robust_to=NormBall(1, 0.05),
            cost_weight=0.1,
            linearise="gradient",
            X_train=points,
        )
        for network in (here, there)
    )
    np.testing.assert_allclose(a.recourse_array, b.recourse_array, atol=1e-5)
    np.testing.assert_allclose(a.current_validity, b.current_validity, atol=1e-5)


@needs_cuda
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_last_layers_agree(p):
    points, here, there = networks()
    denied, last = points[here.score(points) < 0][:10], LastLayer(NormBall(p, 0.05))
    a, b = (worst_last_layer(network, points, last).score for network in (here, there))
    np.testing.assert_allclose(a, b, atol=1e-9)
    ask = {"robust_to": last, "cost_weight": 0.1, "linearise": "gradient"}
    a, b = (find_recourse(denied, network, "refine", **ask) for network in (here, there))
    np.testing.assert_allclose(a.recourse_array, b.recourse_array, atol=1e-5)
    np.testing.assert_allclose(a.worst_case_score, b.worst_case_score, atol=1e-5)


@needs_cuda
def test_a_copy_of_a_module_goes_where_it_is_sent():
    module = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    result = find_recourse(
        [[0.0, 1.0]],
        module,
        robust_to=NormBall(1, 0.01),
        cost_weight=0.1,
        linearise="gradient",
        device="cuda",
    )
    assert not next(module.parameters()).is_cuda  # the copy went there, the module did not
    assert np.isfinite(result.model_score).all()
