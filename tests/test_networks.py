"""The worst network in a ball: projections, closed forms, brute force, and what must not matter."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy import optimize
from torch import nn

import holdfast
from holdfast import NormBall
from holdfast.models.network import Network
from holdfast.models.networks import (
    judge_network,
    network_price,
    population_worst_network,
    project_l1,
    project_l2,
    project_linf,
    worst_network,
)
from holdfast.models.networks.parameters import Parameters
from holdfast.paper import published_worst_network
from holdfast.paper.folds import german_folds
from holdfast.paper.training import train_network

PROJECTIONS = {1.0: project_l1, 2.0: project_l2, math.inf: project_linf}
BALLS = [NormBall(p, radius) for p in (1, 2, math.inf) for radius in (0.05, 0.4)]


def layered(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Network:
    """Return an untrained network of ReLU layers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for k in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[k], sizes[k + 1], dtype=dtype), nn.ReLU()]
    return Network(nn.Sequential(*layers[:-1]))


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(7, 3))


@pytest.mark.parametrize("p", PROJECTIONS)
@pytest.mark.parametrize("radius", [0.0, 0.3, 2.0])
def test_projections_satisfy_the_variational_inequality(p, radius):
    """The point y of the ball is nearest to v if (v - y).(z - y) <= 0 for all z of the ball."""
    rng = np.random.default_rng(1)
    v = rng.normal(size=(60, 5))
    v[:20] = np.round(v[:20])  # ties and zeros
    v[20:30] *= 0.01  # inside
    y = PROJECTIONS[p](torch.tensor(v), radius).numpy()
    norm = np.linalg.norm(y, ord=p, axis=1)
    assert (norm <= radius * (1 + 1e-12)).all()
    inside = np.linalg.norm(v, ord=p, axis=1) <= radius
    np.testing.assert_array_equal(y[inside], v[inside])
    # the best z is where the ball has its support in the direction v - y
    q = NormBall(p, 1.0).dual_p
    support = radius * np.linalg.norm(v - y, ord=q, axis=1)
    assert (support - np.sum((v - y) * y, axis=1) <= 1e-12).all()


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_one_layer_is_the_closed_form(ball, points):
    network = layered(3, 1)
    layer = network.module[0]
    coef = layer.weight.detach().numpy()[0]
    found = worst_network(network, points, ball)
    closed = ball.worst_score(points, coef, layer.bias.item())
    np.testing.assert_allclose(found.score, closed, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.loss, np.logaddexp(0, -closed), rtol=1e-12)


def test_one_hidden_unit_whose_worst_network_is_known():
    """For f = v relu(w x), all positive, the worst of the L-inf ball has v - r < 0 and w + r.

    In the L1 ball of radius r, moving v by a and w by r - a gives (v - a)(w + r - a)x once
    v < a, with its least value at a = (v + w + r) / 2 > r, or a = r: so all of it goes into v.
    """
    module = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1, bias=False))
    module = module.double()
    v, w, x, r = 0.3, 1.0, 2.0, 0.5
    with torch.no_grad():
        module[0].weight.fill_(w)
        module[2].weight.fill_(v)
    score = {1.0: (v - r) * w * x, math.inf: (v - r) * (w + r) * x}
    for p, expected in score.items():
        found = worst_network(Network(module), [[x]], NormBall(p, r))
        assert found.score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_changes_lie_in_the_ball_and_give_the_score(ball, points):
    network = layered(3, 6, 4, 1)
    found = worst_network(network, points, ball, keep_change=True)
    norm = np.linalg.norm(found.change.numpy(), ord=ball.p, axis=1)
    assert (norm <= ball.radius + 1e-12).all()
    score = Parameters(network).score(found.change, network.tensor(points)).numpy()
    np.testing.assert_allclose(score, found.score, atol=1e-12)


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_more_steps_and_starts_never_find_less(ball, points):
    network = layered(3, 8, 8, 1)
    longer = [worst_network(network, points, ball, steps=k).score for k in (0, 1, 2, 5, 20, 80)]
    more = [worst_network(network, points, ball, starts=k).score for k in (1, 2, 3, 5)]
    for scores in (longer, more):
        assert (np.diff(scores, axis=0) <= 1e-12).all()


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_neither_the_batch_nor_the_memory_matters(ball, points):
    network = layered(3, 8, 8, 1)
    whole = worst_network(network, points, ball, keep_change=True)
    pieces = worst_network(network, points, ball, keep_change=True, memory=1e-6)
    np.testing.assert_allclose(pieces.score, whole.score, atol=1e-10)
    torch.testing.assert_close(pieces.change, whole.change, atol=1e-8, rtol=0)
    for i in range(len(points)):
        alone = worst_network(network, points[i : i + 1], ball)
        assert alone.score[0] == pytest.approx(whole.score[i], abs=1e-10)
    assert worst_network(network, points[:0], ball).loss.shape == (0,)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_tiny_balls_agree_with_the_first_order(p, points):
    """To first order the worst score is f(x) - radius * ||grad f||_q, gradient in parameters."""
    network, radius = layered(3, 8, 8, 1), 1e-5
    ball = NormBall(p, radius)
    parameters = Parameters(network)
    slope, score = parameters.slope(parameters.zeros(len(points)), network.tensor(points))
    norm = np.linalg.norm(slope.numpy(), ord=ball.dual_p, axis=1)
    found = worst_network(network, points, ball)
    np.testing.assert_allclose(score.numpy() - found.score, radius * norm, rtol=2e-3)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_not_worse_than_brute_force(p):
    """Thousands of random changes, the best ones improved by scipy, find nothing lower."""
    network, radius = layered(2, 3, 1, seed=3), 0.3
    parameters = Parameters(network)
    rng = np.random.default_rng(0)
    for x in rng.normal(size=(3, 2)):
        found = worst_network(network, x[None], NormBall(p, radius), starts=25, steps=50)
        changes = rng.normal(size=(4000, parameters.size))
        changes *= radius / np.linalg.norm(changes, ord=p, axis=1, keepdims=True)
        if p == 1.0:  # random ones are far from the vertices, where the least values are
            corners = radius * np.vstack([np.eye(parameters.size), -np.eye(parameters.size)])
            changes = np.vstack([changes, corners])
        row = network.tensor(x[None])

        def score(change, row=row):
            scale = max(1.0, np.linalg.norm(change, ord=p) / radius)
            tensor = torch.tensor(np.asarray(change)[None] / scale)
            return float(parameters.score(tensor, row)[0])

        scores = parameters.score(torch.tensor(changes), row.expand(len(changes), -1)).numpy()
        best = scores.min()
        for start in changes[np.argsort(scores)[:2]]:
            polished = optimize.minimize(score, start, method="Powell", options={"maxiter": 15})
            best = min(best, polished.fun)
        assert found.score[0] <= best + 1e-3 * abs(best)


@pytest.mark.parametrize("start", ["drawn", "trained"])
@pytest.mark.parametrize("p", [1.0, math.inf])
def test_the_published_ascent(p, start, points):
    """Its last iterate stays in each tensor's ball, and on one layer comes near to its worst."""
    layer, ball = layered(3, 1), NormBall(p, 0.2)
    theirs = published_worst_network(
        layer, points, ball, start=start, tolerance=0.0, keep_change=True
    )
    # the weights' ball and the bias's, both spent in full
    least = layer.score(points) - 0.2 * (np.linalg.norm(points, ord=ball.dual_p, axis=1) + 1.0)
    assert (theirs.score >= least - 1e-12).all()
    np.testing.assert_allclose(theirs.score, least, atol=1e-3)
    for part in torch.split(theirs.change, [3, 1], dim=1):
        assert (np.linalg.norm(part, ord=p, axis=1) <= 0.2 + 1e-12).all()


@pytest.mark.parametrize("p", [1.0, math.inf])
def test_from_the_trained_network_a_published_row_does_not_depend_on_the_others(p, points):
    network, ball = layered(3, 6, 1), NormBall(p, 0.3)
    found = published_worst_network(network, points, ball, start="trained", keep_change=True)
    for k in range(len(points)):
        alone = published_worst_network(
            network, points[k : k + 1], ball, start="trained", keep_change=True
        )
        np.testing.assert_allclose(found.score[k], alone.score[0], rtol=1e-9)
        np.testing.assert_allclose(found.change[k], alone.change[0], atol=1e-9)
    assert (found.change.abs().sum(dim=1) > 0).all()


def test_the_published_loss_is_capped(points):
    ball = NormBall(math.inf, 5.0)
    sure = published_worst_network(layered(3, 60, 60, 1), points, ball)
    assert sure.loss.max() == 100.0


@pytest.mark.parametrize(("p", "rate"), [(1.0, 0.1), (math.inf, 1.0)])
def test_the_published_steps_are_those_of_plain_torch(p, rate):
    """The same ascent for two rows, with torch's own seed, draws, SGD and BCELoss."""
    sizes = (3, 6, 4, 1)
    network = layered(*sizes, dtype=torch.float32)
    x = network.tensor([[0.5, -1.0, 2.0], [1.0, 1.0, -1.0]])
    found = published_worst_network(network, x, NormBall(p, 0.2))
    trained = [tensor.detach().clone() for tensor in network.module.parameters()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)
        )
        for row, score in zip(x, found.score, strict=True):
            for tensor in module.parameters():
                if tensor.ndim > 1:
                    nn.init.xavier_uniform_(tensor)
                else:
                    nn.init.constant_(tensor, 0.01)
            _ascend_plainly(module, trained, row, p, rate)
            assert score == pytest.approx(module(row).item(), abs=1e-4)


def _ascend_plainly(module, trained, row, p, rate):
    ascent = torch.optim.SGD(module.parameters(), lr=rate, maximize=True)
    before, change = 1.0, 1.0
    for _ in range(99):
        if change <= 1e-4:
            break
        ascent.zero_grad()
        loss = nn.functional.binary_cross_entropy(torch.sigmoid(module(row)), torch.ones(1))
        loss.backward()
        ascent.step()
        with torch.no_grad():
            for tensor, middle in zip(module.parameters(), trained, strict=True):
                moved = PROJECTIONS[p]((tensor - middle).reshape(1, -1), 0.2)
                tensor.copy_(middle + moved.view_as(tensor))
        before, change = loss.item(), abs(before - loss.item())


def test_rows_draw_their_published_starts_in_turn():
    """A row's start is that of its place, however the rows are cut into pieces."""
    network, ball = layered(3, 6, 1), NormBall(math.inf, 0.3)
    x = np.tile([0.5, -1.0, 2.0], (6, 1))
    whole = published_worst_network(network, x, ball, steps=1)
    pieces = published_worst_network(network, x, ball, steps=1, memory=1e-3)
    np.testing.assert_allclose(whole.score, pieces.score, rtol=1e-12)
    assert len(np.unique(whole.score.round(9))) > 1


def test_prices_of_a_trained_network():
    """On German Credit the trained network is worse off in a larger ball, and never better."""
    fold = german_folds()[1]
    network = train_network(fold.train_points, fold.train_approved, epochs=20)
    x = fold.test_points[:6]
    price = [
        network_price(network, x + 0.1, x, NormBall(1, radius), 0.5, feature_costs=[2.0] * 7)
        for radius in (0.0, 0.1, 0.5)
    ]
    plain = np.logaddexp(0.0, -network.score(x + 0.1)) + 0.5 * 2.0 * 0.7
    np.testing.assert_allclose(price[0], plain, rtol=1e-5)
    assert (np.diff(price, axis=0) > 0).all()


def test_judging_keeps_rows_without_recourse_apart():
    module = layered(2, 1).module[0]
    ball = NormBall(1, 0.1)
    coef, intercept = module.weight.detach().numpy()[0], module.bias.item()
    rows = [[0.5, -1.0], [np.nan, 0.0]]
    result = holdfast.solve(rows, coef, intercept, robust_to=ball, cost_weight=0.2)
    judged = judge_network(result, Network(module))
    np.testing.assert_allclose(judged.price, result.price, rtol=1e-9)
    np.testing.assert_allclose(judged.worst_case_validity, result.worst_case_validity, rtol=1e-9)
    assert np.isnan(judged.worst_case_score[1])
    promised = holdfast.solve(rows, coef, intercept, robust_to=ball, guarantee=0.5)
    found = judge_network(promised, Network(module)).price
    assert found[0] == promised.cost[0]  # the price of a guarantee is its cost
    assert np.isnan(found[1])


def test_the_loss_is_sound_and_only_the_paper_caps_it(points):
    network = layered(3, 40, 40, 1)
    ball = NormBall(math.inf, 2.0)
    assert worst_network(network, points, ball).loss.max() > 1000.0
    assert published_worst_network(network, points, ball).loss.max() == 100.0


@pytest.mark.parametrize(
    ("ball", "settings", "message"),
    [
        (
            NormBall(1, 0.1, scale=[1.0, 1.0, 1.0]),
            {},
            "scale has 3 numbers.* 4 tensors .*: 0.weight, 0.bias, 2.weight, 2.bias$",
        ),
        (NormBall(1, 0.1, scale=[0.0] * 4), {}, "no parameter that may change.*scale"),
        (NormBall(1, 0.1, intercept=False), {}, "intercept = False"),
        (NormBall(1, 0.1, intercept=0.5), {}, "intercept = 0.5"),
        (NormBall(1, 0.1), {"steps": -1}, "steps = -1"),
        (NormBall(1, 0.1), {"starts": 0}, "starts = 0"),
        (NormBall(1, 0.1), {"memory": 0}, "memory = 0"),
    ],
)
def test_what_is_not_defined_is_refused(ball, settings, message, points):
    with pytest.raises(ValueError, match=message):
        worst_network(layered(3, 4, 1), points, ball, **settings)


def test_wrong_arguments_are_named(points):
    with pytest.raises(ValueError, match="expected \\(n, d\\)"):
        worst_network(layered(3, 4, 1), points[0], NormBall(1, 0.1))
    with pytest.raises(TypeError, match=r"network = .* is not a Network"):
        worst_network(nn.Linear(3, 1), points, NormBall(1, 0.1))
    with pytest.raises(ValueError, match="as in the paper"):
        published_worst_network(layered(3, 4, 1), points, NormBall(2, 0.1))
    with pytest.raises(ValueError, match="scale: the paper's ascent"):
        published_worst_network(layered(3, 4, 1), points, NormBall(1, 0.1, scale=[1.0] * 4))
    with pytest.raises(ValueError, match="one of 'drawn', 'trained'"):
        published_worst_network(layered(3, 4, 1), points, NormBall(1, 0.1), start="zero")


def test_another_ascent_can_judge(points):
    network = layered(3, 6, 1)
    weak = partial(worst_network, steps=0, starts=1)
    ball = NormBall(2, 0.3)
    price = network_price(network, points, points, ball, 1.0, ascent=weak)
    np.testing.assert_allclose(price, np.logaddexp(0.0, -network.score(points)), rtol=1e-9)


def difference(frozen: bool) -> Network:
    """Two scores for two classes, and the layer that takes their difference."""
    torch.manual_seed(3)
    taken = nn.Linear(2, 1, bias=False, dtype=torch.float64)
    with torch.no_grad():
        taken.weight.copy_(torch.tensor([[-1.0, 1.0]]))
    taken.requires_grad_(not frozen)
    parts = [nn.Linear(3, 6, dtype=torch.float64), nn.ReLU(), nn.Linear(6, 2, dtype=torch.float64)]
    return Network(nn.Sequential(*parts, taken))


@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_fixed_parameters_never_change(ball, points):
    network = difference(frozen=True)
    for search in (worst_network, population_worst_network):
        fixed = search(network, points, ball, keep_change=True)
        free = search(difference(frozen=False), points, ball, keep_change=True)
        assert (fixed.change[..., -2:] == 0.0).all()
        assert (fixed.change[..., :-2] != 0.0).any()
        if search is worst_network:
            assert (free.score <= fixed.score + 1e-9).all()
            assert (free.change[..., -2:] != 0.0).any() or ball.p != math.inf
            norm = torch.linalg.vector_norm(fixed.change, ord=ball.p, dim=1)
            assert (norm <= ball.radius * (1 + 1e-9)).all()


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_what_a_fixed_layer_leaves_is_known_exactly(p):
    """One free layer before a fixed difference: a linear score whose bias moves twice as far."""
    torch.manual_seed(0)
    free = nn.Linear(3, 2, dtype=torch.float64)
    taken = nn.Linear(2, 1, bias=False, dtype=torch.float64).requires_grad_(False)
    with torch.no_grad():
        taken.weight.copy_(torch.tensor([[-1.0, 1.0]]))
    network, ball = Network(nn.Sequential(free, taken)), NormBall(p, 0.3)
    x = np.random.default_rng(0).normal(size=(5, 3))
    felt = np.column_stack([x, np.ones(5), x, np.ones(5)])
    least = network.score(x) - 0.3 * np.linalg.norm(felt, ord=ball.dual_p, axis=1)
    found = worst_network(network, x, ball, steps=200)
    np.testing.assert_allclose(found.score, least, rtol=1e-9)
    judged = network_price(network, x, x, ball, 0.1)
    np.testing.assert_allclose(judged, np.logaddexp(0.0, -least), rtol=1e-6)


def test_plain_layers_that_are_fixed_stay_so(points):
    module = layered(3, 5, 1).module
    module[0].requires_grad_(False)
    network = Network(module)
    for p in (1, 2, math.inf):
        found = worst_network(network, points, NormBall(p, 0.2), keep_change=True)
        assert (found.change[:, : 3 * 5 + 5] == 0.0).all()
        hidden = np.maximum(points @ module[0].weight.numpy().T + module[0].bias.numpy(), 0.0)
        felt = np.column_stack([hidden, np.ones(len(points))])
        norm = np.linalg.norm(felt, ord=NormBall(p, 0.2).dual_p, axis=1)
        np.testing.assert_allclose(found.score, network.score(points) - 0.2 * norm, rtol=1e-9)


def test_a_network_that_is_fixed_as_a_whole_is_refused(points):
    network = Network(layered(3, 4, 1).module.requires_grad_(False))
    for search in (worst_network, population_worst_network):
        with pytest.raises(ValueError, match="network has no parameter that may change"):
            search(network, points, NormBall(1, 0.1))


@pytest.mark.parametrize("p", [1, math.inf])
def test_the_published_ascent_changes_what_is_fixed_as_its_authors_do(p, points):
    free, fixed = layered(3, 5, 1), layered(3, 5, 1)
    fixed = Network(fixed.module.requires_grad_(False))
    ours, theirs = (
        published_worst_network(network, points, NormBall(p, 0.2)).score
        for network in (fixed, free)
    )
    np.testing.assert_array_equal(ours, theirs)
