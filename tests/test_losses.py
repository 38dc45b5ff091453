"""Losses against scipy, finite differences and direct minimisation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from holdfast.problem.losses import LOSSES, get_loss, tilted_minimum

SCORES = np.concatenate([np.linspace(-60, 60, 241), [-500.0, 500.0, 0.3, -0.69]])


def test_values_agree_with_scipy():
    expected = {
        "logistic": np.logaddexp(0, -SCORES),
        "probit": -stats.norm.logcdf(SCORES),
        "hinge": np.maximum(0, 1 - SCORES),
        "squared_hinge": np.maximum(0, 1 - SCORES) ** 2,
        "squared_error": special.expit(-SCORES) ** 2,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(get_loss(name).value(SCORES), values, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_slope_is_minus_the_derivative(name):
    loss, t = LOSSES[name], np.linspace(-8, 8, 97) + 0.0123
    step = 1e-5
    numeric = (loss.value(t - step) - loss.value(t + step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(t), numeric, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["logistic", "probit", "squared_hinge", "squared_error"])
def test_score_at_slope_inverts_the_slope(name):
    loss = LOSSES[name]
    start = -np.log(2) + 1e-3 if name == "squared_error" else -20.0  # beyond its bend
    t = np.linspace(start, 0.99 if name == "squared_hinge" else 20.0, 200)
    found = loss.score_at_slope(loss.slope(t))
    # where the slope barely changes, the score is known only as well as that
    np.testing.assert_allclose(loss.slope(found), loss.slope(t), rtol=1e-12)
    np.testing.assert_allclose(found[t > start + 0.1], t[t > start + 0.1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "probit", "hinge", "squared_hinge"])
@pytest.mark.parametrize("s", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_tilted_minimum_is_the_minimum(name, s):
    loss = LOSSES[name]
    numeric = optimize.minimize_scalar(
        lambda t: float(loss.value(t)) + s * t,
        bounds=(-60, 60),
        method="bounded",
        options={"xatol": 1e-10},
    ).fun
    assert tilted_minimum(loss.code, s) == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize("tau", [1e-6, 0.1, 0.5, 0.77, 0.999999])
@pytest.mark.parametrize("name", ["logistic", "probit", "squared_error"])
def test_score_of_a_probability_is_enough_and_hardly_more(name, tau):
    loss = LOSSES[name]
    score = loss.score(tau)
    assert loss.probability(score) >= tau
    assert loss.probability(score) == pytest.approx(tau, rel=1e-12)
