"""The door to the proof: what it reads, what it refuses, and what it leaves alone."""

import copy
import math
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.utils.prune
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import holdfast
from holdfast import Ellipsoid, LastLayer, ModelList, NormBall, prove_network
from holdfast.models.network import Network
from holdfast.models.networks.ball_network import norm_of_rows
from holdfast.models.networks.last_layer import embed, last_layer_of, worst_last_layer
from holdfast.models.networks.prover import Prover
from holdfast.result.bracket import Bracket

BALL = NormBall(p=1, radius=0.1)
X = np.random.default_rng(0).normal(size=(5, 3))


def layered(*between, dtype=torch.float64, seed=0, out=1):
    """Linear layers of 3 inputs, 4 units each, with some parts behind the first and the second."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first, second, last = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, out)
        behind = between or (nn.ReLU(),)
        return nn.Sequential(first, *behind, second, nn.ReLU(), last).to(dtype).eval()


def batch_norm(affine=True, features=4):
    norm = nn.BatchNorm1d(features, affine=affine).double().eval()
    rng = torch.Generator().manual_seed(1)
    draws = torch.rand((4, features), generator=rng, dtype=torch.float64)
    with torch.no_grad():
        norm.running_mean.copy_(draws[0]), norm.running_var.copy_(0.5 + draws[1])
        if affine:
            norm.weight.copy_(draws[2] - 0.5), norm.bias.copy_(draws[3])
    return norm


def prove(network, points=X, robust_to=BALL, **given):
    return prove_network(network, points, robust_to, n_jobs=1, **given)


def mlp(x, y, activation="relu"):
    fitted = MLPClassifier((5, 4), activation=activation, max_iter=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted.fit(x, y)


def people(rows=80):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)) * [1, 10, 100], columns=["a", "b", "c"])
    frame.index = [f"person {k}" for k in range(rows)]
    return frame, np.where(frame["a"] + frame["b"] / 10 > 0, "good", "bad")


# What is refused, by name


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        return self.layer(x)


class Louder(nn.Identity):
    def forward(self, x):
        return 2.0 * x


class AlwaysDropped(nn.Dropout):
    def forward(self, x):
        return nn.functional.dropout(x, self.p, training=True)


def hooked():
    module = layered()
    module[0].register_forward_hook(lambda part, given, out: 2.0 * out)
    return module


def shared():
    module = layered()
    return nn.Sequential(*module[:2], module[2], nn.ReLU(), module[2], nn.ReLU(), module[4])


def tied():
    module = layered()
    both = nn.Sequential(*module[:4], nn.Linear(4, 4).double(), nn.ReLU(), module[4])
    both[4].weight = both[2].weight
    return both


REFUSED = {
    "LayerNorm": (layered(nn.LayerNorm(4), nn.ReLU()), "LayerNorm"),
    "LeakyReLU": (layered(nn.LeakyReLU()), "LeakyReLU"),
    "GELU": (layered(nn.GELU()), "GELU"),
    "custom module": (Network(Custom()), "Custom"),
    "custom part": (layered(Custom(), nn.ReLU()), "Custom"),
    "hooks": (hooked(), "hooks"),
    "a layer twice": (shared(), "used twice"),
    "weights twice": (tied(), "twice|share"),
    "ReLU after ReLU": (layered(nn.ReLU(), nn.ReLU()), "ReLU does not follow"),
    "no statistics": (layered(nn.BatchNorm1d(4, track_running_stats=False)), "running statistics"),
    "two batch norms": (layered(nn.ReLU(), batch_norm(), batch_norm()), "two batch norms"),
    "a kind of Identity": (layered(Louder(), nn.ReLU()), "Louder"),
    "a kind of Dropout": (layered(AlwaysDropped(), nn.ReLU()), "AlwaysDropped"),
    "a ReLU at the end": (Network(nn.Sequential(layered(), nn.ReLU())), "end in a linear layer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_name(name):
    module, words = REFUSED[name]
    with pytest.raises(ValueError, match=f"nothing can be proven.*({words})"):
        prove(module)


def test_refused_outputs():
    with pytest.raises(ValueError, match=r"2 outputs|one score for each"):
        prove(layered(out=2))
    probability = Network(nn.Sequential(nn.Sequential(layered(), nn.Sigmoid())), "probability")
    with pytest.raises(ValueError, match="probabilities"):
        prove(probability)
    bracket = prove(Network(nn.Sequential(*layered(), nn.Sigmoid()), "probability"))
    assert np.array_equal(bracket.proven_score, prove(layered()).proven_score)


def test_refused_sets_and_models():
    module = layered()
    with pytest.raises(TypeError, match="Ellipsoid"):
        prove(module, robust_to=Ellipsoid(np.eye(41), 0.1))
    with pytest.raises(TypeError, match="ModelList"):
        prove(module, robust_to=ModelList([(np.zeros(41), 0.0)]))
    with pytest.raises(ValueError, match="intercept = False"):
        prove(module, robust_to=NormBall(1, 0.1, intercept=False))
    with pytest.raises(ValueError, match=r"scale has 2 numbers.*6 tensors"):
        prove(module, robust_to=NormBall(1, 0.1, scale=[1, 2]))
    with pytest.raises(ValueError, match="3"):
        prove(module, X[:, :2])
    frame, y = people()
    linear = LogisticRegression().fit(frame, y)
    with pytest.raises(TypeError, match="linear"):
        prove(linear, frame, favorable_class="good")


# What it reads


def test_missing_rows_and_none():
    points = X.copy()
    points[1, 2] = np.nan
    bracket, whole = prove(layered(), points), prove(layered(), X)
    for name in ("score", "proven_score", "found_score"):
        got, expected = getattr(bracket, name), getattr(whole, name)
        assert np.isnan(got[1])
        assert np.allclose(np.delete(got, 1), np.delete(expected, 1), rtol=0.0, atol=1e-10)
    assert len(prove(layered(), X[:0])) == 0
    assert np.isnan(prove(layered(), points[1:2]).proven_score).all()


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_the_bracket_holds_the_score(p):
    module, ball = layered(seed=2), NormBall(p, 0.2)
    bracket = prove(module, robust_to=ball)
    assert isinstance(bracket, Bracket)
    assert np.allclose(bracket.score, Network(module).score(X), rtol=1e-12)
    assert (bracket.proven_score <= bracket.found_score).all()
    assert (bracket.found_score <= bracket.score).all()
    assert np.array_equal(bracket.proven_score, Prover.of(Network(module), ball).lower(X))
    assert np.array_equal(bracket.proven_validity, special.expit(bracket.proven_score))
    assert np.array_equal(bracket.width, bracket.found_score - bracket.proven_score)


def test_pipelines_in_raw_frames():
    frame, y = people()
    pipeline = mlp(make_pipeline(StandardScaler()).fit_transform(frame.to_numpy()), y)
    scaler = StandardScaler().fit(frame)
    whole = make_pipeline(scaler, pipeline)
    asked = frame.iloc[[4, 2, 7]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = prove(whole, asked, favorable_class="good")
        bad = prove(whole, asked, favorable_class="bad")
        odds = pipeline.predict_proba(scaler.transform(asked))[:, 1]
    assert list(good.to_frame().index) == list(asked.index)
    assert list(good.take([2]).to_frame().index) == [asked.index[2]]
    # the classes are sorted: the second is "good"
    assert np.allclose(special.expit(good.score), odds, atol=1e-9)
    assert np.allclose(bad.score, -good.score, atol=1e-12)
    assert (good.proven_score <= good.found_score).all()
    # no network of the ball is below, whichever class one wants
    assert (bad.proven_score <= -good.score).all()
    bare = prove(pipeline, scaler.transform(asked), favorable_class="good")
    assert np.allclose(bare.proven_score, good.proven_score, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("relu", nn.ReLU), ("tanh", nn.Tanh), ("logistic", nn.Sigmoid), ("identity", nn.Identity)],
)
def test_sklearn_and_torch_agree(name, kind):
    x = np.random.default_rng(5).normal(size=(60, 3))
    fitted = mlp(x, x[:, 0] > 0.1, name)
    parts = []
    for weight, bias in zip(fitted.coefs_, fitted.intercepts_, strict=True):
        layer = nn.Linear(*weight.shape, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight.T)), layer.bias.copy_(torch.from_numpy(bias))
        parts += [layer, kind()]
    ball = NormBall(2, 0.1)
    theirs = prove(fitted, X, ball, favorable_class=True).proven_score
    assert np.allclose(theirs, prove(nn.Sequential(*parts[:-1]), X, ball).proven_score, rtol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_and_dropout_are_folded_in(affine):
    behind, ahead = (
        (batch_norm(affine), nn.ReLU()),
        (nn.ReLU(), nn.Dropout(0.5), batch_norm(affine)),
    )
    for between in (behind, ahead, (nn.Dropout(), *behind), (batch_norm(affine), nn.Tanh())):
        module = layered(*between)
        bracket = prove(module)
        assert np.allclose(bracket.score, Network(module).score(X), rtol=1e-11, atol=1e-11)
        still = prove(module, robust_to=NormBall(1, 0.0))
        assert np.allclose(still.proven_score, Network(module).score(X), rtol=1e-10, atol=1e-10)
        assert (bracket.proven_score <= bracket.found_score).all()
    # in front of everything
    module = nn.Sequential(batch_norm(affine, 3), *layered())
    assert np.allclose(prove(module).score, Network(module).score(X), rtol=1e-11, atol=1e-11)


def test_single_precision_is_read_as_it_is():
    module = layered(dtype=torch.float32)
    double = layered(dtype=torch.float32).double()
    one, other = prove(module), prove(double)
    assert np.array_equal(one.proven_score, other.proven_score)
    assert np.array_equal(one.score, Network(double).score(X))
    assert np.allclose(one.score, Network(module).score(X), rtol=1e-5, atol=1e-5)


# Last layers


def last_layer_sets(network):
    coef, intercept = last_layer_of(network)
    others = ModelList([(coef + 0.1 * row, intercept) for row in np.eye(4)])
    return NormBall(1.5, 0.3), Ellipsoid(0.1 * np.eye(5), 0.5), others


@pytest.mark.parametrize("which", range(3))
def test_last_layers_are_exact(which):
    network = Network(layered(seed=4))
    models = LastLayer(last_layer_sets(network)[which])
    bracket = prove(network, robust_to=models)
    worst = worst_last_layer(network, X, models)
    assert np.allclose(bracket.found_score, worst.score, rtol=1e-12, atol=1e-12)
    assert (bracket.proven_score <= bracket.found_score).all()
    assert (bracket.width <= 1e-8 * (1.0 + np.abs(bracket.score))).all()
    layer = (embed(network, X) * worst.coef).sum(1) + worst.intercept
    assert (bracket.proven_score <= layer).all()


def test_last_layer_as_a_ball_with_scales():
    network = Network(layered(seed=5))
    for p in (1.0, 1.5, 2.0, 3.0, np.inf):
        exact = prove(network, robust_to=LastLayer(NormBall(p, 0.3))).found_score
        prover = Prover.of(network, NormBall(p, 0.3, scale=[0, 0, 0, 0, 1, 1]))
        assert np.allclose(prover.lower(X), exact, rtol=1e-10, atol=1e-10)


# What it leaves alone


def test_nothing_of_the_caller_is_changed():
    module, points = layered(), X.copy()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    module.train()
    torch.manual_seed(7)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    kind, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    prove(module, points, NormBall(2, 0.1))
    Prover.of(Network(module), BALL).slope(points)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert (torch.get_default_dtype(), torch.is_grad_enabled()) == (kind, grad)
    assert module.training
    assert np.array_equal(points, X)
    assert all(torch.equal(module.state_dict()[name], tensor) for name, tensor in before.items())
    assert all(tensor.grad is None for tensor in module.parameters())


def test_twice_is_the_same():
    ball = NormBall(np.inf, 0.05)
    one, other = (prove(layered(), X, ball, random_state=3) for _ in range(2))
    assert np.array_equal(one.proven_score, other.proven_score)
    assert np.array_equal(one.found_score, other.found_score)


def test_importing_holdfast_stays_light():
    code = (
        "import sys, holdfast; light = 'torch' not in sys.modules; holdfast.prove_network; "
        "assert light and 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "prove_network" in holdfast.__all__


def test_slopes_are_numbers_where_levers_or_norms_are_zero():
    """A search walks along them: not a number would stop it."""
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with torch.no_grad():
        module[0].bias.zero_()
    points = np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-5.0, -5.0, -5.0]])
    for p in (1, 1.5, 2, 3, math.inf):
        for scale in (None, [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]):
            for radius in (0.0, 0.1, 1e200):
                prover = Prover.of(Network(module), NormBall(p, radius, scale=scale))
                slope, proven = prover.slope(points)
                assert np.isfinite(slope).all()
                assert not np.isnan(proven).any()


def test_a_bias_that_batch_norm_makes_changes_with_its_weights():
    parts = nn.Linear(3, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 1, bias=False)
    module = nn.Sequential(*parts).double().eval()
    module[2].requires_grad_(False)
    module[2].running_mean.fill_(-5.0)
    point = np.array([[0.3, -0.2, 0.5]])
    proven = Prover.of(Network(module), NormBall(1, 0.1)).lower(point)[0]
    for unit in range(4):
        for move in (-0.1, 0.1):
            moved = copy.deepcopy(module)
            with torch.no_grad():
                moved[3].weight[0, unit] += move
            folded_change = abs(move) * 5.0 / float(torch.sqrt(module[2].running_var[unit] + 1e-5))
            wide = Prover.of(Network(module), NormBall(1, 0.1 + folded_change)).lower(point)[0]
            assert Network(moved).score(point)[0] >= wide
    assert proven <= Network(module).score(point)[0] - 0.1


def test_what_is_no_number_proves_nothing():
    """Numbers that overflow on the way, and a last bias that may fall by half of the score."""
    layers = [nn.Linear(1, 1, dtype=torch.float64) for _ in range(3)]
    with torch.no_grad():
        for layer, weight, bias in zip(
            layers, (1.0, 1e200, 1e200), (0.0, 1e-200, 0.0), strict=True
        ):
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
    module = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    for p in (1.0, 1.5, 2.0, 3.0, math.inf):
        ball = NormBall(p, 0.5, scale=[1, 0, 0, 0, 0, 1])
        for splits in (0, 4):
            bracket = prove_network(module, [[0.0]], robust_to=ball, splits=splits)
            assert bracket.score == 1.0
            assert not bracket.proven_score > 0.5


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_norms_of_rows(q):
    values = torch.tensor([[0.0, 0.0], [3.0, 4.0], [math.nan, 1.0], [1.0, math.nan]]).double()
    values.requires_grad_()
    norm = norm_of_rows(values, q)
    assert norm[:2].tolist() == pytest.approx([0.0, np.linalg.norm([3.0, 4.0], q)])
    assert norm[2:].isnan().all()
    (slope,) = torch.autograd.grad(norm[:2].sum(), values)
    assert slope[:2].isfinite().all()  # at 0 too


@pytest.mark.parametrize("size", [1e4, 1e7, 1e8, 1e9, 1e10])
def test_rounding_before_a_last_layer_counts(size):
    """Terms that cancel before the last layer, against exact fractions."""
    rng = np.random.default_rng(int(size))
    for _ in range(40):
        weight, x = size * rng.uniform(1.0, 2.0, size=3), rng.uniform(1.0, 2.0, size=3)
        first, last = nn.Linear(3, 1, dtype=torch.float64), nn.Linear(1, 1, dtype=torch.float64)
        with torch.no_grad():
            first.weight.copy_(torch.tensor(weight)[None])
            first.bias.fill_(1.0 - float(weight @ x))
            last.weight.fill_(1.0)
            last.bias.fill_(-0.5)
        models = LastLayer(NormBall(1, 0.1))
        network = nn.Sequential(first, nn.ReLU(), last)
        bracket = prove_network(network, x[None], robust_to=models)
        terms = zip(weight.tolist(), x.tolist(), strict=True)
        hidden = sum(Fraction(w) * Fraction(v) for w, v in terms) + Fraction(first.bias.item())
        hidden = max(hidden, Fraction(0))
        truth = hidden - Fraction(0.5) - Fraction(0.1) * max(hidden, Fraction(1))
        assert Fraction(bracket.proven_score[0]) <= truth


def test_parameters_that_are_no_numbers_are_refused():
    layer = nn.Linear(1, 1)
    with torch.no_grad():
        layer.bias.fill_(math.nan)
    for models in (NormBall(1, 0.1), LastLayer(NormBall(1, 0.1))):
        with pytest.raises(ValueError, match="not finite"):
            prove_network(layer, [[1.0]], robust_to=models)


def test_what_no_network_should_have_is_refused_by_name():
    norm = nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), nn.ReLU(), nn.Linear(2, 1))
    for variance in (math.nan, -1.0):
        norm[1].running_var[0] = variance
        with pytest.raises(ValueError, match="statistics of one BatchNorm1d"):
            prove_network(norm, [[1.0]], robust_to=NormBall(1, 0.1))
    unreal = nn.Linear(1, 1, dtype=torch.complex64)
    pruned = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    torch.nn.utils.prune.l1_unstructured(pruned[0], "weight", 0.5)
    for module, said in ((unreal, "complex"), (pruned, "cannot be copied")):
        with pytest.raises(ValueError, match=said):
            prove_network(module, [[1.0]], robust_to=NormBall(1, 0.1))


def test_today_s_network_is_one_of_them():
    """To the last bit: no score of a set is found above today's."""
    rng = np.random.default_rng(8)
    module = nn.Sequential(nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 1))
    for radius in (0.0, 1e-17):
        models = LastLayer(NormBall(2, radius))
        bracket = prove_network(module, rng.normal(size=(500, 3)), robust_to=models)
        assert (bracket.found_score <= bracket.score).all()


def test_a_network_that_never_changes_keeps_its_score():
    """Whether it is split or not, and searched or not."""
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    points = np.array([[0.5, -1.0, 2.0]])
    fixed = NormBall(1, 0.3, scale=[0, 0, 0, 0])
    bracket = prove_network(module, points, fixed, splits=3)
    np.testing.assert_allclose(bracket.proven_score, bracket.score, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(bracket.found_score, bracket.score, rtol=0.0, atol=0.0)
