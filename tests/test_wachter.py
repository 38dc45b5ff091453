"""Plain gradient recourse: against the optimum, against torch's own Adam, row by row."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from torch import nn

from holdfast import NormBall, find_recourse
from holdfast.methods import list_methods
from holdfast.models import BlackBox
from holdfast.models.network import Network
from holdfast.result import MethodStatus
from holdfast.result.surrogate import Surrogate

NOTHING = NormBall(1, 0.0)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(6, 3)) - 0.5


@pytest.fixture
def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    return Network(module)


def any_surrogate(points):
    """Return a stand-in where the surrogate does not matter."""
    n = len(points)
    return Surrogate("none", np.ones_like(points), np.zeros(n), *np.full((2, n), np.nan))


def test_linear_scores_come_near_the_optimum_from_above(points):
    model = ([1.0, -0.5, 0.2], -1.0)
    costs = [1.0, 0.5, 2.0]
    bounds = ([-np.inf, -1.0, -np.inf], [1.5, np.inf, np.inf])
    points = np.clip(points, *bounds)
    found = find_recourse(
        points,
        model,
        "wachter",
        robust_to=NOTHING,
        cost_weight=0.1,
        feature_costs=costs,
        bounds=bounds,
    )
    assert (found.gap >= -1e-12).all()
    assert (found.gap <= 0.01).all()
    assert (found.recourse >= bounds[0]).all()
    assert (found.recourse <= bounds[1]).all()


def test_it_walks_as_torch_does(points, network):
    """One row after the other with torch.optim.Adam and the same rule to stop."""
    weight, rate, tolerance, limit = 0.05, 0.02, 1e-5, 400
    found = find_recourse(
        points,
        network,
        "wachter",
        robust_to=NOTHING,
        cost_weight=weight,
        linearise=any_surrogate(points),
        learning_rate=rate,
        tolerance=tolerance,
        max_steps=limit,
    )
    for i, row in enumerate(points):
        start = torch.tensor(row)
        x = start.clone().requires_grad_()
        adam = torch.optim.Adam([x], lr=rate)
        before, steps = np.inf, 0
        while steps < limit:
            loss = nn.functional.softplus(-network.module(x[None])[0, 0])
            price = loss + weight * (x - start).abs().sum()
            if abs(price.item() - before) <= tolerance:
                break
            before = price.item()
            adam.zero_grad()
            price.backward()
            adam.step()
            steps += 1
        np.testing.assert_allclose(found.recourse[i], x.detach(), atol=1e-9)
        assert found.steps[i] == steps
        assert (found.method_status[i] == MethodStatus.STEP_LIMIT) == (steps == limit)
    assert len(set(found.steps)) > 1  # they did not all stop together


def test_rows_do_not_touch_each_other(points, network):
    settings = {"robust_to": NOTHING, "cost_weight": 0.05, "max_steps": 300, "tolerance": 1e-5}
    surrogate = any_surrogate(points)
    whole = find_recourse(points, network, "wachter", linearise=surrogate, **settings)
    for i in range(len(points)):
        row = points[i : i + 1]
        alone = find_recourse(row, network, "wachter", linearise=any_surrogate(row), **settings)
        np.testing.assert_allclose(alone.recourse[0], whole.recourse[i], atol=1e-9)
        assert alone.steps[0] == whole.steps[i]


def test_the_step_limit_is_said_and_no_rows_are_fine(points):
    model = ([1.0, -0.5, 0.2], -1.0)
    found = find_recourse(points, model, "wachter", robust_to=NOTHING, cost_weight=0.1, max_steps=3)
    refused = found.current_validity < 0.5  # which matters more than why it stopped
    assert set(found.method_status[refused]) == {MethodStatus.NOT_VALID}
    assert set(found.method_status[~refused]) <= {MethodStatus.STEP_LIMIT}
    assert (found.steps == 3).all()
    empty = find_recourse(points[:0], model, "wachter", robust_to=NOTHING, cost_weight=0.1)
    assert len(empty) == 0


def test_a_black_box_is_refused(points):
    box = BlackBox(lambda rows: np.full(len(rows), 0.4))
    with pytest.raises(ValueError, match="a black box model has no gradients"):
        find_recourse(
            points,
            box,
            "wachter",
            robust_to=NOTHING,
            cost_weight=0.1,
            linearise=any_surrogate(points),
        )
    (info,) = (method for method in list_methods() if method.name == "wachter")
    assert "a model with gradients" in info.needs


@pytest.mark.parametrize("setting", ["learning_rate", "tolerance", "max_steps"])
def test_impossible_settings_are_refused(points, setting):
    with pytest.raises(ValueError, match=f"{setting} = -1"):
        find_recourse(
            points, ([1.0] * 3, 0.0), "wachter", robust_to=NOTHING, cost_weight=0.1, **{setting: -1}
        )


def test_without_torch_the_extra_is_named(points, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"holdfast\[networks\]"):
        find_recourse(points, ([1.0] * 3, 0.0), "wachter", robust_to=NOTHING, cost_weight=0.1)
