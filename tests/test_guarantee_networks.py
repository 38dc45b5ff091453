"""A guarantee of the network itself: what is called proven holds, and the search is a good one."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import special
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from holdfast import Ellipsoid, LastLayer, NormBall, Status, find_recourse
from holdfast.evaluate import evaluate_recourse
from holdfast.methods import list_methods
from holdfast.models import as_model
from holdfast.models.network import Network
from holdfast.models.networks import judge_network, tensor_scales, worst_last_layer, worst_network
from holdfast.models.networks.parameters import Parameters
from holdfast.models.networks.prove import bracket_of
from holdfast.models.networks.prover import Prover
from holdfast.paper.training import train_network

GUARANTEE = 0.6
LEVEL = special.logit(GUARANTEE)
X = np.random.default_rng(0).normal(size=(300, 3))
Y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0.5


def sklearn_network(activation: str) -> Network:
    fitted = MLPClassifier(
        (10, 6), activation=activation, learning_rate_init=0.02, max_iter=300, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return as_model(fitted.fit(X, Y))


NETWORKS = {
    "paper, one layer": lambda: train_network(X, Y, hidden=(8,), epochs=300),
    "paper, two layers": lambda: train_network(X, Y, hidden=(16, 8), epochs=300),
    "relu": lambda: sklearn_network("relu"),
    "tanh": lambda: sklearn_network("tanh"),
}
SETS = {
    "p = 1": NormBall(1, 0.2),
    "p = 1.5": NormBall(1.5, 0.05),
    "p = 2": NormBall(2, 0.05),
    "p = inf": NormBall(math.inf, 0.005),
    "last layer": LastLayer(NormBall(2, 0.2)),
}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request) -> Network:
    return NETWORKS[request.param]()


@pytest.fixture(scope="module")
def small() -> Network:
    return NETWORKS["paper, two layers"]()


def people(network: Network, count: int = 6) -> np.ndarray:
    points = np.random.default_rng(1).normal(size=(80, 3))
    return points[network.score(points) < 0.0][:count]


def lowest_drawn(network: Network, points: np.ndarray, ball: NormBall, count: int) -> np.ndarray:
    """Lowest score of each point among random networks of the ball's surface."""
    parameters, rng = Parameters(network), np.random.default_rng(2)
    scale = np.repeat(tensor_scales(network, ball), parameters.sizes)
    lowest = np.full(len(points), np.inf)
    for k in range(count):
        unit = rng.normal(size=(len(points), parameters.size))
        if k % 3 == 1:
            unit = np.sign(unit)
        elif k % 3 == 2:  # one parameter alone
            unit *= np.abs(unit) == np.abs(unit).max(axis=1, keepdims=True)
        unit /= np.linalg.norm(unit, ord=ball.p, axis=1, keepdims=True)
        change = network.tensor(ball.radius * unit * scale)
        score = parameters.score(change, network.tensor(points)).double().numpy()
        lowest = np.minimum(lowest, score)
    return lowest


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "p = 1.5")) for name in SETS]
)
def test_what_is_called_proven_withstands_every_attack(network, name):
    robust_to, points = SETS[name], people(network)
    result = find_recourse(points, network, robust_to=robust_to, guarantee=GUARANTEE)
    assert result.method == "refine"
    assert (result.status == Status.PROVEN_VALID).all()
    near = 1e-5 if network.dtype == torch.float32 else 1e-12
    there = result.recourse_array
    if isinstance(robust_to, LastLayer):
        assert (worst_last_layer(network, there, robust_to).score >= LEVEL - near).all()
    else:
        found = worst_network(network, there, robust_to, starts=12, steps=100).score
        assert (found >= LEVEL - near).all()
        assert (lowest_drawn(network, there, robust_to, 60) >= LEVEL - near).all()
    # today's network in its own precision gives it, and nothing is given away
    assert (network.score(there) >= LEVEL).all()
    assert (result.current_validity >= GUARANTEE).all()
    assert (result.worst_case_score >= LEVEL).all()
    assert (result.worst_case_score <= LEVEL + 0.05).all()
    # what is said is the proof of the point as it is returned
    again = bracket_of(network, there, robust_to)
    np.testing.assert_allclose(result.bracket.proven_score, again.proven_score, atol=1e-9)
    np.testing.assert_array_equal(result.worst_case_score, result.bracket.proven_score)
    np.testing.assert_allclose(result.worst_case_validity, special.expit(again.proven_score))
    np.testing.assert_allclose(result.worst_case_loss, np.logaddexp(0, -again.proven_score))
    assert (result.bracket.found_score >= result.bracket.proven_score).all()
    assert np.isnan([result.lower_bound, result.gap, result.multiplier]).all()
    np.testing.assert_allclose(result.price, np.abs(there - points).sum(axis=1))
    assert result.exact is None
    assert not result.of_surrogate


@pytest.mark.parametrize("name", ["p = 1", "p = 2"])
def test_never_worse_than_a_start_that_is_proven(network, name):
    ball, points = SETS[name], people(network, 20)
    start = find_recourse(
        points, network, "exact", robust_to=ball, guarantee=GUARANTEE, linearise="gradient"
    )
    assert set(start.status) <= {Status.ACCEPTED, Status.NOT_VALID, Status.NOT_FOUND}
    assert start.bracket is None
    result = find_recourse(
        points, network, robust_to=ball, guarantee=GUARANTEE, linearise=start.surrogate
    )
    proven = np.zeros(len(points), dtype=bool)
    there = np.isfinite(start.cost)
    proven[there] = Prover.of(network, ball).lower(start.recourse_array[there]) >= LEVEL + 1e-6
    assert proven.any()
    assert (result.cost[proven] <= start.cost[proven] * (1 + 1e-12)).all()
    assert result.cost[proven].mean() < start.cost[proven].mean()
    assert (result.status == Status.PROVEN_VALID).all()


def test_bounds_are_kept(small):
    points = people(small, 10)
    lower, upper = points - 0.4, points + 1.5
    lower[:, 2] = upper[:, 2] = points[:, 2]
    costs = np.array([0.5, 2.0, 1.0])
    result = find_recourse(
        points,
        small,
        robust_to=NormBall(1, 0.1),
        guarantee=GUARANTEE,
        bounds=(lower, upper),
        feature_costs=costs,
    )
    assert (result.recourse >= lower).all()
    assert (result.recourse <= upper).all()
    np.testing.assert_allclose(result.cost, np.abs(result.action) @ costs)
    assert set(result.status) <= {Status.PROVEN_VALID, Status.NOT_VALID}
    assert (result.status == Status.PROVEN_VALID).any()
    free = find_recourse(
        points, small, robust_to=NormBall(1, 0.1), guarantee=GUARANTEE, feature_costs=costs
    )
    held = result.status == Status.PROVEN_VALID
    assert free.cost[held].mean() <= result.cost[held].mean()


def test_the_unit_of_costs_does_not_matter(small):
    points, costs = people(small), np.array([0.5, 2.0, 1.0])
    given = {"robust_to": NormBall(1, 0.1), "guarantee": GUARANTEE}
    once = find_recourse(points, small, feature_costs=costs, **given)
    twice = find_recourse(points, small, feature_costs=2.0 * costs, **given)
    np.testing.assert_allclose(twice.recourse, once.recourse, atol=1e-6)
    np.testing.assert_allclose(twice.cost, 2.0 * once.cost, rtol=1e-6)


@pytest.mark.parametrize("name", ["p = 1", "p = 2", "last layer"])
def test_rows_do_not_touch_each_other(small, name):
    points = people(small, 8)
    given = {"robust_to": SETS[name], "guarantee": GUARANTEE}
    whole = find_recourse(points, small, **given)
    order = np.random.default_rng(3).permutation(len(points))
    mixed = find_recourse(points[order], small, n_jobs=1, **given)
    np.testing.assert_allclose(mixed.recourse, whole.recourse[order], atol=1e-6)
    alone = find_recourse(points[2:3], small, **given)
    np.testing.assert_allclose(alone.recourse[0], whole.recourse[2], atol=1e-6)
    spoilt = points.copy()
    spoilt[1, 0] = np.nan
    result = find_recourse(spoilt, small, **given)
    assert result.status[1] == Status.INVALID_INPUT
    assert "x0 is nan" in result.explain(1)
    assert np.isnan(result.bracket.proven_score).tolist() == [i == 1 for i in range(8)]
    others = np.arange(8) != 1
    np.testing.assert_allclose(result.recourse[others], whole.recourse[others], atol=1e-6)
    assert len(find_recourse(points[:0], small, **given)) == 0


@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize("name", ["p = 1", "p = 2", "last layer"])
def test_one_feature_against_a_grid(seed, name):
    """All points of a line are proven: none that holds is much cheaper."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 1))
    network = train_network(x, np.sin(3.0 * x[:, 0] + seed) > 0.2, hidden=(8,), epochs=400)
    robust_to = SETS[name].with_radius(SETS[name].radius / 4.0)
    points = x[network.score(x) < 0.0][:8]
    result = find_recourse(points, network, robust_to=robust_to, guarantee=0.55)
    level = special.logit(0.55)
    grid = np.linspace(-6.0, 6.0, 4001)[:, None]
    held = grid[bracket_of(network, grid, robust_to).proven_score >= level, 0]
    least = np.abs(points - held).min(axis=1)
    near = least < 3.0  # beyond its end the grid says nothing
    assert near.any()
    assert (result.status[near] == Status.PROVEN_VALID).all()
    assert (result.cost[near] <= 1.01 * least[near] + 0.004).all()
    assert (result.cost[near] >= least[near] - 0.004).all()


def test_who_is_proven_already_stays(small):
    ball = NormBall(1, 0.1)
    proven = Prover.of(small, ball).lower(X)
    points = X[proven > LEVEL + 0.1][:4]
    result = find_recourse(points, small, robust_to=ball, guarantee=GUARANTEE)
    assert (result.status == Status.ALREADY_VALID).all()
    assert (result.cost == 0.0).all()
    np.testing.assert_array_equal(result.recourse, points)
    said = result.explain(0)
    assert said.startswith(
        "Every network within a radius of 0.1 of today's provably gives this point a probability "
        "of at least "
    )
    # today's network accepts them, but not every network of a larger ball gives the guarantee
    wide = find_recourse(points, small, robust_to=NormBall(1, 1.0), guarantee=GUARANTEE)
    assert not (wide.status == Status.ALREADY_VALID).all()


def test_what_is_out_of_reach_is_not_called_valid(small):
    points = people(small)
    bounds = (points - 0.05, points + 0.05)
    ball = NormBall(1, 0.5)
    result = find_recourse(points, small, robust_to=ball, guarantee=0.9, bounds=bounds)
    assert (result.status == Status.NOT_VALID).all()
    prover = Prover.of(small, ball)
    np.testing.assert_allclose(result.bracket.proven_score, prover.lower(result.recourse))
    # the best that was seen, and near the best there is
    assert (result.bracket.proven_score > prover.lower(points)).all()
    corners = np.stack(np.meshgrid(*[[-0.05, 0.0, 0.05]] * 3), -1).reshape(-1, 3)
    for i, point in enumerate(points):
        best = prover.lower(point + corners).max()
        assert result.bracket.proven_score[i] >= best - 0.02
    said = result.explain(0)
    assert said.startswith(
        "No change was found that provably gets a probability of 90% from every network within a "
        "radius of 0.5 of today's, but one may still exist."
    )


def test_words_frames_and_refusals(small):
    points = pd.DataFrame(people(small), columns=list("abc"), index=list("uvwxyz"))
    given = {"robust_to": NormBall(1, 0.1), "guarantee": 0.53}
    result = find_recourse(points.to_numpy(), small, **given)
    assert result.explain(0) == (
        "Every network within a radius of 0.1 of today's then provably gives a probability of at "
        "least 53%. A cheaper way may exist."
    )
    frame = result.to_frame()
    np.testing.assert_array_equal(frame["proven_validity"], result.bracket.proven_validity)
    np.testing.assert_array_equal(frame["found_validity"], result.bracket.found_validity)
    assert (frame["status"] == "proven valid").all()
    assert not any(name.startswith("surrogate_worst") for name in frame)
    for proof in (result.certificate, result.frontier):
        with pytest.raises(ValueError, match="neither a certificate nor a frontier"):
            proof(0)
    with pytest.raises(ValueError, match="worst_network"):
        result.worst_models()
    labelled = find_recourse(points, small, **given)
    assert list(labelled.bracket.to_frame().index) == list(points.index)
    plain = find_recourse(points.to_numpy(), small, "exact", linearise="gradient", **given)
    assert "proven_validity" not in plain.to_frame()
    last = find_recourse(points, small, robust_to=LastLayer(NormBall(2, 0.1)), guarantee=0.53)
    assert last.explain("u").startswith(
        "Every network whose last layer is within a radius of 0.1 of today's then provably "
        "gives a probability of at least "
    )


def test_judges_agree(small):
    points = people(small)
    scale = [0.0, 0.0, 1.0, 1.0, 0.5, 0.5]
    ball = NormBall(2, 0.2, scale=scale)
    result = find_recourse(points, small, robust_to=ball, guarantee=GUARANTEE)
    assert (result.status == Status.PROVEN_VALID).all()
    assert result.problem.robust_to == ball
    judged = judge_network(result, small)
    assert (judged.worst_case_score >= LEVEL - 1e-5).all()
    table = evaluate_recourse(result, small)
    assert (table["worst_case_validity"] >= GUARANTEE - 1e-5).all()
    assert (table["status"] == "proven valid").all()
    np.testing.assert_allclose(table["cost"], result.cost)
    # the first layer never changes: less is to be withstood than in the whole ball
    whole = find_recourse(points, small, robust_to=NormBall(2, 0.2), guarantee=GUARANTEE)
    assert result.cost.mean() < whole.cost.mean()
    assert (lowest_drawn(small, result.recourse, ball, 60) >= LEVEL - 1e-5).all()


def test_a_pipeline_with_a_category():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": 10.0 * rng.normal(size=300)})
    approved = frame["a"] + frame["b"] / 10 > 0.3
    model = make_pipeline(StandardScaler(), MLPClassifier((6,), max_iter=400, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, approved)
    denied = frame[~model.predict(frame)][:5]
    result = find_recourse(denied, model, robust_to=NormBall(2, 0.05), guarantee=GUARANTEE)
    assert (result.status == Status.PROVEN_VALID).all()
    raw = model[0].inverse_transform(result.recourse_array)
    assert (model.predict_proba(pd.DataFrame(raw, columns=["a", "b"]))[:, 1] >= GUARANTEE).all()
    # a category between its levels stays for study, however well it is proven
    letters = pd.DataFrame({"kind": rng.choice(list("xyz"), size=300)})
    wanted = (letters["kind"] == "x") | (rng.uniform(size=300) < 0.2)
    model = make_pipeline(OneHotEncoder(sparse_output=False), MLPClassifier((6,), random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(letters, wanted)
    denied = letters[~model.predict(letters)][:3]
    result = find_recourse(denied, model, robust_to=NormBall(2, 0.01), guarantee=GUARANTEE)
    assert (result.status == Status.FRACTIONAL).all()
    assert (result.bracket.proven_validity >= GUARANTEE).all()
    assert "provably gives a probability of at least 60%" in result.explain(denied.index[0])
    assert "for study" in result.explain(denied.index[0])


def test_a_low_guarantee_does_not_call_a_refusal_valid(small):
    points = people(small)
    result = find_recourse(points, small, robust_to=NormBall(1, 0.1), guarantee=0.2)
    refused = small.score(result.recourse) < 0.0
    assert refused.any()
    assert (result.status[refused] == Status.NOT_VALID).all()
    assert "but today's model still refuses that" in result.explain(int(refused.argmax()))


def test_which_method_is_the_usual_one(small):
    points = people(small, 2)
    given = {"robust_to": NormBall(1, 0.1), "linearise": "gradient"}
    assert find_recourse(points, small, cost_weight=0.1, **given).method == "exact"
    assert find_recourse(points, small, guarantee=0.6, **given).method == "refine"
    assert find_recourse(points, small, "exact", guarantee=0.6, **given).method == "exact"
    oval = Ellipsoid(np.eye(4), 0.1)
    other = find_recourse(points, small, robust_to=oval, guarantee=0.6, linearise="gradient")
    assert other.method == "exact"
    linear = find_recourse(points, ([1.0, 1.0, 1.0], 0.0), robust_to=oval, guarantee=0.6)
    assert linear.method == "exact"


def test_what_it_cannot_do_is_refused(small):
    points = people(small, 2)

    def refused(why: str, network=small, robust_to=SETS["p = 1"], method="refine", **other):
        with pytest.raises(ValueError, match=why):
            find_recourse(points, network, method, robust_to=robust_to, guarantee=0.6, **other)

    refused("scale has 2 numbers, but the network has 6", robust_to=NormBall(1, 0.1, [1.0, 2.0]))
    refused("intercept = False", robust_to=NormBall(1, 0.1, intercept=False))
    refused("only supports balls", robust_to=Ellipsoid(np.eye(4), 0.1))
    refused("a linear model is not a network", network=([1.0] * 3, 0.0))
    refused("supports the losses", loss="probit")
    refused("gives no guarantee", method="roar")
    curved = Network(nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 1)))
    refused("GELU", network=curved)
    refused("GELU", network=curved, method=None)
    # whose last layer can still be told apart
    last = LastLayer(NormBall(2, 0.01))
    assert find_recourse(points, curved, robust_to=last, guarantee=0.4).bracket is not None
    (info,) = (method for method in list_methods() if method.name == "refine")
    assert "provably" in info.guarantees
    assert info.needs == "a network"
