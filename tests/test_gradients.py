"""Gradients against finite differences and captum, and what they say of their fidelity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import NoiseTunnel, Saliency
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from torch import nn

import holdfast
from holdfast.models import as_model
from holdfast.models import network as network_module
from holdfast.models.linearise import Gradient, SmoothGrad
from holdfast.models.network import Network


@pytest.fixture(scope="module")
def curved():
    """Return a smooth network in double precision, and points."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1)).double()
    return Network(module), np.random.default_rng(0).normal(size=(6, 4))


def test_gradient_is_what_differences_say(curved):
    network, points = curved
    tangent = Gradient().fit(network, points, None, random_state=0)
    step = 1e-6
    for j in range(4):
        move = step * np.eye(4)[j]
        slope = (network.score(points + move) - network.score(points - move)) / (2 * step)
        assert np.allclose(tangent.coef[:, j], slope, atol=1e-9)
    assert np.allclose(tangent.score(points), network.score(points), atol=1e-12)
    assert (tangent.point_error == 0).all()
    assert (tangent.r2 > 0.95).all()


def test_smoothgrad_is_what_captum_averages(curved):
    network, points = curved
    ours = SmoothGrad(noise=0.8, samples=2**13).fit(network, points, None, random_state=0)
    tunnel = NoiseTunnel(Saliency(lambda x: network.module(x)[:, 0]))
    torch.manual_seed(0)
    n = 20_000
    theirs = tunnel.attribute(
        torch.as_tensor(points),
        nt_type="smoothgrad",
        nt_samples=n,
        nt_samples_batch_size=2000,
        stdevs=0.8,
        abs=False,
    )
    sampling_error = 0.5 / np.sqrt(n)  # no slope of this network spreads by more than 0.5
    assert np.allclose(ours.coef, theirs.numpy(), atol=4 * sampling_error)
    assert np.allclose(ours.score(points), network.score(points), atol=1e-12)


def test_little_noise_is_none(curved):
    network, points = curved
    smooth = SmoothGrad(noise=1e-5, samples=16).fit(network, points, None, random_state=0)
    assert np.allclose(
        smooth.coef, Gradient().fit(network, points, None, random_state=0).coef, atol=1e-8
    )
    assert np.allclose(smooth.r2, 1.0, atol=1e-6)


def test_fidelity_falls_with_the_neighbourhood(curved):
    network, points = curved
    near, far = (
        SmoothGrad(noise).fit(network, points, None, random_state=0) for noise in (0.1, 2.0)
    )
    assert (near.r2 > far.r2).all()
    assert (near.r2 <= 1).all()


def test_rows_chunks_and_seeds(curved, monkeypatch):
    network, points = curved
    together = SmoothGrad(samples=32).fit(network, points, None, random_state=1)
    alone = SmoothGrad(samples=32).fit(network, points[2:3], None, random_state=1)
    assert np.allclose(alone.coef[0], together.coef[2], atol=1e-12)
    monkeypatch.setattr(network_module, "CHUNK", 12)
    in_pieces = SmoothGrad(samples=32).fit(network, points, None, random_state=1)
    assert np.allclose(in_pieces.coef, together.coef, atol=1e-12)
    other = SmoothGrad(samples=32).fit(network, points, None, random_state=2)
    assert (other.coef != together.coef).all()


def test_a_row_that_is_no_number_stays_alone(curved):
    network, points = curved
    broken = points.copy()
    broken[1, 0] = np.nan
    for kind in (Gradient(), SmoothGrad()):
        found, clean = (kind.fit(network, x, None, random_state=0) for x in (broken, points))
        assert np.isnan(found.coef[1]).all()
        assert np.isnan(found.intercept[1])
        assert np.allclose(np.delete(found.coef, 1, 0), np.delete(clean.coef, 1, 0), atol=1e-12)


def test_an_mlp_of_scikit_learn_has_gradients():
    rng = np.random.default_rng(5)
    training = rng.normal(size=(200, 3))
    approved = training[:, 0] > 0
    fitted = MLPClassifier((8,), activation="tanh", solver="lbfgs", max_iter=50, random_state=0)
    fitted.fit(training, approved)
    denied = training[~approved][:4]
    odds = [fitted.predict_log_proba(denied + move) for move in 1e-6 * np.eye(3)]
    odds_here = fitted.predict_log_proba(denied)
    slopes = [((p - odds_here) @ [-1.0, 1.0]) / 1e-6 for p in odds]
    for name in ("gradient", "smoothgrad"):
        result = holdfast.find_recourse(
            denied, fitted, robust_to=holdfast.NormBall(1, 0.1), cost_weight=0.05, linearise=name
        )
        assert result.surrogate.name == name
        assert np.allclose(result.surrogate.point_error, 0.0)
        if name == "gradient":
            assert np.allclose(result.surrogate.coef, np.transpose(slopes), atol=1e-3)


def test_a_black_box_has_none():
    forest = RandomForestClassifier(3).fit([[0.0], [1.0]], [False, True])
    for kind in (Gradient(), SmoothGrad()):
        with pytest.raises(ValueError, match="black box model; use linearise='lime'"):
            kind.fit(as_model(forest), np.zeros((1, 1)), None, random_state=0)


@pytest.mark.parametrize("settings", [{"noise": 0}, {"noise": -1.0}, {"samples": 3}])
def test_impossible_settings_are_errors(settings):
    with pytest.raises(ValueError, match="is not allowed"):
        SmoothGrad(**settings)
