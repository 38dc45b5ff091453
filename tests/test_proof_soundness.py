"""No network of a ball goes below what is proven of it: attacks, an oracle, and broken proofs."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from network_attacks import KINDS, NORMS, Attack, Networks, Shape, draw_networks, draw_shape
from network_oracle import least_score
from torch import nn

import holdfast
from holdfast.models.network import Network
from holdfast.models.networks import falls
from holdfast.models.networks import prover as prover_module
from holdfast.models.networks.ascent import worst_network
from holdfast.models.networks.last_layer import worst_last_layer
from holdfast.models.networks.prover import Prover
from holdfast.models.networks.splitting import split_relus


def prove(networks, **given):
    return np.stack(
        [
            Prover.of(networks.network(k), networks.ball(k)).lower(points, n_jobs=1, **given)
            for k, points in enumerate(networks.points)
        ]
    )


def overtaken(rng, batches, count, alone=None, **drawn):
    """How many points of how many have a network below what is proven of them."""
    below = points = 0
    for _ in range(batches):
        networks = draw_networks(rng, draw_shape(rng, **drawn), count)
        for layer, scale in enumerate(networks.scales):
            scale *= alone is None or layer == alone
        # no tolerance: what rounding can do is in the proof
        lower = ~(prove(networks) <= Attack(networks, rng).found)
        below, points = below + int(lower.sum()), points + lower.size
    return below, points


# 1. Attacks


@pytest.mark.parametrize("p", NORMS)
def test_no_network_below_what_is_proven(p):
    rng = np.random.default_rng([31, NORMS.index(p)])
    assert overtaken(rng, 8, 10, p=p) == (0, 320)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_network_below_what_is_proven_of_a_hundred_thousand(seed):
    assert overtaken(np.random.default_rng([32, seed]), 50, 50) == (0, 10_000)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_no_network_that_the_search_finds_is_below(p):
    rng = np.random.default_rng(33)
    for _ in range(6):
        networks = draw_networks(rng, draw_shape(rng, p, ("relu", "tanh")), 1)
        network, ball = networks.network(0), holdfast.NormBall(p=p, radius=networks.radius[0])
        found = worst_network(network, networks.points[0], ball, steps=15, n_jobs=1).score
        assert (Prover.of(network, ball).lower(networks.points[0]) <= found).all()


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e12, 1e60])
def test_numbers_of_any_size(p, size):
    rng = np.random.default_rng([34, NORMS.index(p)])
    networks = draw_networks(rng, Shape((3, 4, 3, 1), ("relu", "relu"), (True,) * 3, p), 3)
    for layer in (0, 2):
        networks.weights[layer] *= size
    for bias in networks.biases:
        bias *= size
    networks.radius = networks.radius * size
    attack = Attack(networks, rng)
    proven = prove(networks)
    assert (proven <= attack.found).all()
    assert np.isfinite(proven).all()


def sequential(*parts):
    return Network(nn.Sequential(*parts))


def linear(weight, bias=None):
    weight = torch.tensor(weight, dtype=torch.float64)
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(torch.tensor(bias, dtype=torch.float64))
    return layer


def test_too_large_numbers_prove_nothing():
    for size, p in itertools.product((1e200, 1e305), NORMS):
        layers = linear([[size, -size], [1.0, 1.0]], [0.0, 0.0]), linear([[size, -1.0]], [0.0])
        for kind in KINDS.values():
            prover = Prover.of(sequential(layers[0], kind(), layers[1]), holdfast.NormBall(p, 1.0))
            assert not (prover.lower([[size, size]]) > -1e300).any()
    for radius in (1e300, 1.7e308):
        prover = Prover.of(
            sequential(layers[0], nn.ReLU(), layers[1]), holdfast.NormBall(1, radius)
        )
        assert not (prover.lower([[1.0, 2.0]]) > -1e300).any()


def test_rounding_of_what_goes_into_a_layer_counts():
    # in exact arithmetic the hidden unit has 1, in double precision 0; its weight falls to -1
    network = sequential(linear([[1.0, 1.0, -1.0]]), nn.ReLU(), linear([[0.0]]))
    for p in NORMS:
        prover = Prover.of(network, holdfast.NormBall(p=p, radius=1.0, scale=[0, 1]))
        assert prover.lower([[1.0, 1e16, 1e16]]) <= -1.0


def exact_score(weights, biases, x):
    """The score of a ReLU network, in fractions."""
    h = [Fraction(v) for v in x]
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        h = [
            sum((Fraction(w) * v for w, v in zip(row, h, strict=True)), Fraction(b))
            for row, b in zip(weight, bias, strict=True)
        ]
        if layer < len(weights) - 1:
            h = [max(v, Fraction(0)) for v in h]
    return h[0]


def test_in_exact_arithmetic():
    """Badly conditioned networks, whose exact scores double precision misses by far."""
    rng = np.random.default_rng(35)
    missed = 0
    for trial in range(40):
        shape = Shape((3, 4, 3, 1), ("relu", "relu"), (True,) * 3, NORMS[trial % 5])
        networks = draw_networks(rng, shape, 1, 1, radius=10.0 ** rng.uniform(-20, 1))
        x = networks.points[0, 0]
        # two inputs that nearly cancel each other, and a last layer that is all but silent
        x[:2] = 1e9 * (1 + rng.random()), 1e9
        networks.weights[0][0, :, 1] = -networks.weights[0][0, :, 0] * x[0] / x[1]
        networks.weights[2] *= 10.0 ** rng.uniform(-12, 0)
        networks.scales = [np.ones((1, 2))] * 3
        weights, biases = (
            [each[0].copy() for each in many] for many in (networks.weights, networks.biases)
        )
        proven, today = Fraction(prove(networks)[0, 0]), networks.network(0).score([x])[0]
        exact = exact_score(weights, biases, x)
        missed += abs(Fraction(today) - exact) > Fraction(np.spacing(abs(today)))
        assert proven <= exact
        for layer, unit in ((0, 0), (1, 0), (2, 0)):
            change = rng.integers(weights[layer].shape[1])
            for radius in (Fraction(networks.radius[0]), -Fraction(networks.radius[0])):
                changed = [weight.astype(object) for weight in weights]
                changed[layer][unit, change] = Fraction(changed[layer][unit, change]) + radius
                assert proven <= exact_score(changed, biases, x)
    assert missed > 10


# 2. An oracle for tiny networks, p = 1


def tiny(rng, widths, alone=None):
    """One ReLU network at one point, of which one layer may change, or all."""
    layers = len(widths) - 1
    shape = Shape(widths, ("relu",) * (layers - 1), (True,) * layers, 1.0)
    networks = draw_networks(rng, shape, 1, 1, radius=10.0 ** rng.uniform(-1, 0.5))
    networks.scales = [
        np.full((1, 2), float(alone is None or alone == layer)) for layer in range(layers)
    ]
    return networks


ALONE = [
    # how much more than the true fall is proven, at most, of all and of four fifths of them
    ((2, 2, 1), 0, 0.1, 2e-2),
    ((2, 2, 1), 1, 1e-9, 1e-9),
    ((2, 3, 1), 0, 0.1, 2e-2),
    ((2, 3, 1), 1, 1e-9, 1e-9),
    ((2, 2, 2, 1), 0, 20.0, 0.5),
    ((2, 2, 2, 1), 1, 0.3, 5e-2),
    ((2, 2, 2, 1), 2, 1e-9, 1e-9),
]


@pytest.mark.parametrize(("widths", "alone", "most", "mostly"), ALONE)
def test_one_layer_alone_against_the_oracle(widths, alone, most, mostly):
    rng = np.random.default_rng([36, *widths, alone])
    over = []
    for _ in range(10):
        networks = tiny(rng, widths, alone)
        attack, proven = Attack(networks, rng), prove(networks)[0, 0]
        truth, today, found = least_score(networks, 1), attack.today[0, 0], attack.found[0, 0]
        hair = 1e-7 * (1.0 + abs(today) + networks.radius[0])  # what the linear programs allow
        assert truth - hair <= found
        assert proven <= found
        assert found <= truth + hair + 0.02 * (today - truth)  # the attack is a strong one
        over.append((truth - proven - hair) / (today - truth + hair))
    assert max(over) <= most
    assert np.quantile(over, 0.8) <= mostly


@pytest.mark.parametrize(("widths", "parts"), [((2, 2, 1), 6), ((2, 3, 1), 4), ((2, 2, 2, 1), 2)])
def test_all_layers_against_the_oracle(widths, parts):
    rng = np.random.default_rng([37, *widths])
    for _ in range(2):
        networks = tiny(rng, widths)
        found = Attack(networks, rng).found[0, 0]
        assert least_score(networks, parts) <= found + 1e-7 * (1.0 + abs(found))
        assert prove(networks)[0, 0] <= found


@pytest.mark.parametrize(("widths", "alone"), [each[:2] for each in ALONE])
def test_splitting_meets_the_truth(widths, alone):
    rng = np.random.default_rng([38, *widths, alone])
    for _ in range(6):
        networks = tiny(rng, widths, alone)
        truth, proven = least_score(networks, 1), prove(networks, splits=64)[0, 0]
        attack = Attack(networks, rng)
        # nearly: lines are chosen in steps
        assert truth - 0.01 * (1.0 + abs(truth)) <= proven
        assert proven <= attack.found[0, 0]


@pytest.mark.parametrize("p", NORMS)
def test_split_bounds_are_sound_and_never_worse(p):
    rng = np.random.default_rng([39, NORMS.index(p)])
    for _ in range(4):
        networks = draw_networks(rng, draw_shape(rng, p, hidden=int(rng.integers(1, 4))), 3)
        proven = [prove(networks, splits=splits) for splits in (0, 3, 12)]
        assert (np.diff(proven, axis=0) >= 0.0).all()
        assert (proven[-1] <= Attack(networks, rng).found).all()


@pytest.mark.slow
@pytest.mark.parametrize("p", NORMS)
def test_no_network_below_what_is_proven_with_splits(p):
    rng = np.random.default_rng([44, NORMS.index(p)])
    for _ in range(30):
        networks = draw_networks(rng, draw_shape(rng, p, hidden=int(rng.integers(1, 5))), 10)
        assert (prove(networks, splits=30) <= Attack(networks, rng).found).all()


# 3. Identities and invariances


def some_networks(seed, count=8, **drawn):
    rng = np.random.default_rng([40, seed])
    for _ in range(count):
        networks = draw_networks(rng, draw_shape(rng, **drawn), 1, 6)
        yield rng, networks.network(0), networks.ball(0), networks.points[0]


def close(one, other, size=1.0, relative=1e-12):
    return bool((np.abs(one - other) <= relative * (np.abs(one) + np.abs(other) + size)).all())


def lower(network, ball, points):
    return Prover.of(network, ball).lower(points)


def test_without_hidden_layers_it_is_the_closed_form():
    for _, network, ball, points in some_networks(0, 20, hidden=0):
        scale, bias_scale = (*ball.scale, 0.0)[:2]
        felt = np.column_stack([scale * points, np.full(len(points), bias_scale)])
        norm = np.linalg.norm(felt, ball.dual_p, axis=1)
        size = np.abs(points) @ np.abs(network.module[0].weight.detach().numpy()[0])
        expected = network.score(points) - ball.radius * norm
        assert close(lower(network, ball, points), expected, size)


def test_of_the_last_layer_alone_it_is_exact():
    for _, network, ball, points in some_networks(1, 20):
        last = network.module[-1]
        own = 2 if last.bias is not None else 1
        names = len(list(network.module.parameters()))
        fixed = dataclasses.replace(ball, scale=[0.0] * (names - own) + [0.7, 0.4][:own])
        width = last.in_features
        models = holdfast.NormBall(ball.p, ball.radius, [0.7] * width, 0.4 if own == 2 else False)
        exact = worst_last_layer(network, points, holdfast.LastLayer(models)).score
        assert close(lower(network, fixed, points), exact, sizes(network, points), 1e-11)
        assert (lower(network, fixed, points) <= exact).all()


def sizes(network, points):
    """The score with every number replaced by its size: what rounding is relative to."""
    h = np.abs(points)
    for part in network.module:
        if isinstance(part, nn.Linear):
            h = h @ (1.0 + part.weight.detach().abs().numpy().T)
            h = h + (0.0 if part.bias is None else part.bias.detach().abs().numpy()) + 1.0
    return h[:, 0]


def test_without_a_radius_it_is_the_score():
    for _, network, ball, points in some_networks(2, 20):
        still = dataclasses.replace(ball, radius=0.0)
        for each in (still, dataclasses.replace(ball, scale=[0.0] * len(ball.scale))):
            proven, score = lower(network, each, points), network.score(points)
            assert close(proven, score, sizes(network, points), 1e-11)
            assert (proven <= score).all()


def rises(p, radii, networks, seed=3):
    """How often a larger radius proves more."""
    count = 0
    for _, network, ball, points in some_networks(seed, networks, p=p, hidden=2):
        proven = [lower(network, dataclasses.replace(ball, radius=r), points) for r in radii]
        count += int((np.diff(proven, axis=0) > 0.0).sum())
    return count


@pytest.mark.parametrize("p", NORMS)
def test_a_larger_ball_never_proves_more_within_a_rung(p):
    for rung in (-60, -9, 9):
        radii = 2.0 ** (
            (rung + np.array([1e-9, 1e-3, 0.1, 0.4, 0.9, 1.0 - 1e-9])) / prover_module._RUNGS
        )
        assert rises(p, radii, 3) == 0
    assert rises(p, [0.0, 1e-12, 1e-6, 1e-3], 3) == 0


def test_a_larger_ball_hardly_proves_more_across_rungs():
    """Lines are chosen anew at each rung, and not quite the best ones."""
    rungs = 2.0 ** (np.arange(12, 26) / prover_module._RUNGS)
    for _, network, ball, points in some_networks(50, 12):
        score = network.score(points)
        for rung in rungs[::3]:
            here, above = (
                Prover.of(network, ball.with_radius(rung * more)).lower(points)
                for more in (1.0, 1.0 + 1e-12)
            )
            assert (above - here <= 0.01 * (score - here)).all()


def test_order_and_number_of_rows_make_no_difference(monkeypatch):
    for rng, network, ball, points in some_networks(4):
        prover = Prover.of(network, ball)
        proven, size = prover.lower(points), sizes(network, points)
        order = rng.permutation(len(points))
        assert close(prover.lower(points[order]), proven[order], size[order], 1e-10)
        one_by_one = np.concatenate([prover.lower(point[None]) for point in points])
        assert close(one_by_one, proven, size, 1e-10)
        monkeypatch.setattr(prover_module, "_MEMORY", 1e-9)  # a row at a time
        assert close(prover.lower(points), proven, size, 1e-10)
        monkeypatch.undo()
        assert prover.lower(points[:0]).shape == (0,)
        assert close(prover.slope(points)[1], proven, size, 1e-10)


def test_the_same_network_written_otherwise_is_proven_the_same():
    for rng, network, ball, points in some_networks(5, 20):
        proven, size = lower(network, ball, points), sizes(network, points)

        def same(other, ball=ball, points=points, proven=proven, size=size):
            return close(lower(other, ball, points), proven, size, 1e-9)

        parts = list(network.module)
        dressed = [each for part in parts for each in (part, nn.Dropout(0.9), nn.Identity())]
        assert same(sequential(nn.Sequential(*dressed[:3]), *dressed[3:]))
        assert same(
            Network(network.module),
            dataclasses.replace(
                ball, radius=ball.radius / 2.0, scale=[2.0 * scale for scale in ball.scale]
            ),
        )
        if len(parts) > 1:
            assert same(permuted(rng, network))
        flipped = Network(network.module)
        with torch.no_grad():
            flipped.module[0].weight[:, 0] *= -1.0
        mirrored = points * np.where(np.arange(points.shape[1]) == 0, -1.0, 1.0)
        assert same(flipped, points=mirrored)
        # units of the output: the last layer may then change by so much more
        louder = Network(network.module)
        own = 1 if louder.module[-1].bias is None else 2
        with torch.no_grad():
            for tensor in louder.module[-1].parameters():
                tensor *= 8.0
        scale = np.array(ball.scale)
        scale[-own:] *= 8.0
        times = lower(louder, dataclasses.replace(ball, scale=scale), points)
        assert close(times, 8.0 * proven, 8.0 * size, 1e-9)


def permuted(rng, network):
    """The units of the first hidden layer in another order."""
    other = Network(network.module)
    first, second = [part for part in other.module if isinstance(part, nn.Linear)][:2]
    order = torch.from_numpy(rng.permutation(first.out_features))
    with torch.no_grad():
        first.weight.copy_(first.weight[order].clone())
        if first.bias is not None:
            first.bias.copy_(first.bias[order].clone())
        second.weight.copy_(second.weight[:, order].clone())
    return other


def test_parameters_that_are_fixed_are_those_of_scale_zero():
    for rng, network, ball, points in some_networks(6, 15):
        fixed = rng.random(len(ball.scale)) < 0.5
        held = Network(network.module)
        for tensor, still in zip(held.module.parameters(), fixed, strict=True):
            tensor.requires_grad_(not still)
        by_scale = dataclasses.replace(ball, scale=np.where(fixed, 0.0, ball.scale))
        assert np.array_equal(lower(held, ball, points), lower(network, by_scale, points))


def test_a_larger_exponent_never_proves_more():
    """For one radius the ball grows with p; the truth falls, and so does what is proven, nearly."""
    for _, network, ball, points in some_networks(7, 15):
        falls = [
            network.score(points) - lower(network, dataclasses.replace(ball, p=p), points)
            for p in NORMS
        ]
        assert (np.diff(falls, axis=0) >= -1e-9 * sizes(network, points)).all()


def test_rows_with_missing_or_endless_values_prove_nothing():
    for _, network, ball, points in some_networks(8):
        bad = points.copy()
        bad[1, 0], bad[3, -1] = np.nan, np.inf
        proven = lower(network, ball, bad)
        assert not (proven[[1, 3]] > -1e300).any()
        rest = [0, 2, 4, 5]
        assert close(proven[rest], lower(network, ball, points)[rest], sizes(network, points)[rest])


# 4. Proofs with one formula broken: the attack must see it


def _doubled_knots(true):
    def broken(room, against, exact):
        return true(2.0 * room, against, exact)

    return "hinge_cone", broken


def _flat_hinges(true):
    def broken(room, against, exact):
        cone = true(room, against, exact)
        return dataclasses.replace(cone, against=0.9 * cone.against)

    return "hinge_cone", broken


def _flat_chords(true):
    def broken(kind, z, reach):
        cone, tilt = true(kind, z, reach), falls.value_and_tilt(kind, z)[1]
        along, against = (0.9 * (each + tilt) - tilt for each in (cone.along, cone.less_against))
        return dataclasses.replace(cone, along=along, less_against=against)

    return "chord_cone", broken


def _levers_of_today(true):
    return "Falls._largest_output", lambda self, i, reach: self.h[i + 1].abs()


def _no_cross_terms(true):
    def broken(self, at):
        at = {m: self.grown[m][:, None, None] * fall for m, fall in at.items()}
        self.grown = {m: torch.ones_like(grown) for m, grown in self.grown.items()}
        return true(self, at)

    return "Falls._over_layers", broken


def _against_is_turned(true):
    def broken(self, i):
        return {m: (along, -against) for m, (along, against) in true(self, i).items()}

    return "Falls._moves", broken


def _short_radius(true):
    return "Falls.most", lambda self, lines, share=1.0: true(self, lines, 0.95 * share)


def _no_rounding(true):
    return "Falls.rounding", lambda self, lines: torch.zeros_like(self.score)


BROKEN = [
    (_doubled_knots, 1.0, ("relu",)),
    (_doubled_knots, 2.0, ("relu",)),
    (_flat_hinges, 1.0, ("relu",)),
    (_flat_hinges, 2.0, ("relu",)),
    (_flat_chords, 1.0, ("tanh", "logistic")),
    (_levers_of_today, 1.0, ("relu", "identity")),
    (_levers_of_today, math.inf, ("relu", "tanh")),
    (_no_cross_terms, 1.0, ("relu",)),
    (_against_is_turned, 1.0, ("relu",)),
    (_against_is_turned, 3.0, ("relu", "tanh")),
    (_short_radius, 1.5, ("relu",)),
    (_no_rounding, 1.5, ("relu",)),
]


@pytest.mark.parametrize(("broken", "p", "kinds"), BROKEN)
def test_a_broken_proof_is_overtaken(monkeypatch, broken, p, kinds):
    *owner, name = broken(None)[0].split(".")
    owner = getattr(falls, owner[0]) if owner else falls
    monkeypatch.setattr(owner, name, broken(getattr(owner, name))[1])
    rng = np.random.default_rng(41)
    assert any(
        overtaken(rng, 1, 12, alone=alone, p=p, activations=kinds, hidden=2)[0]
        for alone in (None, 0) * 6
    )


def test_a_part_that_is_left_out_is_overtaken(monkeypatch):
    # a ReLU that is shut today opens, and the score falls from 0 to -2
    networks = Networks(
        Shape((1, 1, 1), ("relu",), (True,) * 2, 1.0),
        [np.array([each]) for each in ([[-1.0]], [[-1.0]])],
        [np.array([each]) for each in ([0.0], [0.0])],
        [np.array([each]) for each in ([1.0, 0.0], [0.0, 0.0])],
        radius=np.array([3.0]),
        points=np.array([[[1.0]]]),
    )
    prover = Prover.of(networks.network(0), networks.ball(0))
    x = torch.tensor(networks.points[0])
    found = Attack(networks, np.random.default_rng(43)).found

    def split():
        # below the net: `lower` believes nothing above what a network of the ball gives
        return split_relus(prover, x, torch.tensor([math.inf]), 8)

    assert found == -2.0
    assert close(split(), found)

    def other_sides(relaxed):
        """As if no network brought a ReLU to the other side."""
        turned = [
            (side != 0) & ((side > 0) != (z > 0.0))
            for side, z in zip(relaxed.sides, relaxed.z, strict=False)
        ]
        return torch.cat(turned, 1).any(1)

    monkeypatch.setattr(prover_module, "no_network_there", other_sides)
    assert split() > found + 1.0
    assert close(prove(networks, splits=8), found)


@pytest.mark.parametrize("p", NORMS)
def test_a_line_that_is_too_steep_is_overtaken(monkeypatch, p):
    # a unit goes up by 5: the score falls by 2 * 5, less what the hinge of a helpful unit adds
    networks = Networks(
        Shape((1, 1, 2, 1), ("relu", "relu"), (True,) * 3, p),
        [np.array([each]) for each in ([[1.0]], [[1.0], [1.0]], [[1.0, -2.0]])],
        [np.array([each]) for each in ([0.0], [-11.0, 10.0], [0.0])],
        [np.array([each]) for each in ([0.0, 1.0], [0.0, 0.0], [0.0, 0.0])],
        radius=np.array([5.0]),
        points=np.array([[[10.0]]]),
    )
    found = Attack(networks, np.random.default_rng(42)).found
    assert found == -40.0 - 10.0 + 4.0
    assert close(prove(networks), found)
    choose = prover_module.choose_lines

    def broken(*given):
        return {j: 1.5 * each for j, each in choose(*given).items()}

    monkeypatch.setattr(prover_module, "choose_lines", broken)
    assert prove(networks) > found + 1.0
