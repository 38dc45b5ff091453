"""LIME against the package of that name, and against what must hold for any of its samples."""

from __future__ import annotations

import numpy as np
import pytest
from lime.lime_tabular import LimeTabularExplainer
from sklearn.ensemble import RandomForestClassifier

import holdfast
from holdfast.models import BlackBox, LinearModel, as_model
from holdfast.models import network as network_module
from holdfast.models.linearise import Lime, neighbours
from holdfast.paper.training import train_network

ODD_UNITS = np.array([1.0, 2e4, 0.01, 1.0])


@pytest.fixture(scope="module")
def awkward():
    """Return a small network in odd units as a black box, and what it learned from."""
    rng = np.random.default_rng(0)
    centre = np.array([0.0, 5e4, 3.0, 7.0])
    standard = rng.normal(size=(300, 4)) * [1.0, 1.0, 1.0, 0.0]  # the last never varies
    approved = np.sin(2 * standard[:, 0]) + standard[:, 1] > 0.3
    inner = train_network(standard, approved, hidden=(16, 16), epochs=400)
    box = BlackBox(lambda x: 1.0 / (1.0 + np.exp(-inner.score((x - centre) / ODD_UNITS))))
    return box, standard * ODD_UNITS + centre


@pytest.fixture(scope="module")
def network():
    """Return a small network of three columns, and what it learned from."""
    training = np.random.default_rng(1).normal(size=(200, 3))
    approved = training[:, 0] * training[:, 1] + training[:, 2] > 0
    return train_network(training, approved, hidden=(20, 20), epochs=200), training


def of_the_package(model, points, training, width, seed):
    """Coefficients, intercepts and R^2 as the package computes them, in the points' units."""
    explainer = LimeTabularExplainer(
        training,
        mode="regression",
        discretize_continuous=False,
        sample_around_instance=True,
        feature_selection="none",
        kernel_width=width,
        random_state=seed,
    )
    found = []
    for x in points:
        explained = explainer.explain_instance(x, model.score, num_samples=5000)
        slopes = np.array([slope for _, slope in sorted(explained.local_exp[1])])
        coef = slopes / explainer.scaler.scale_
        found.append([*coef, explained.intercept[1] - coef @ explainer.scaler.mean_])
        found[-1].append(explained.score)
    return np.array(found)


@pytest.mark.parametrize("width", [None, 0.7])
def test_estimates_what_the_package_estimates(awkward, width):
    """The mean of many runs of the package, within its sampling error, in every number."""
    model, training = awkward
    points, runs = training[:3], 30
    theirs = np.array(
        [of_the_package(model, points, training, width, seed) for seed in range(runs)]
    )
    error = theirs.std(axis=0, ddof=1) / np.sqrt(runs)
    for sampling in ("sobol", "random"):
        found = Lime(2**16, sampling, width).fit(model, points, training, random_state=1)
        ours = np.column_stack([found.coef, found.intercept, found.r2])
        own_error = error if sampling == "random" else 0.2 * error
        assert (np.abs(ours - theirs.mean(axis=0)) < 4 * np.hypot(error, own_error)).all()
        assert np.allclose(found.point_error, model.score(points) - found.score(points))


def test_few_even_samples_are_as_good_as_many_random_ones(network):
    model, training = network
    points = training[:20]
    truth = Lime(2**16).fit(model, points, training, random_state=9).coef

    def error(lime):
        fits = [lime.fit(model, points, training, random_state=seed).coef for seed in range(4)]
        return np.sqrt(np.mean((np.array(fits) - truth) ** 2))

    assert error(Lime(512)) < error(Lime(5000, "random"))


@pytest.mark.parametrize("width", [None, 0.4])
def test_gradients_lead_to_the_same_regression(network, width):
    model, training = network
    points = training[:10]
    ours = Lime(2**14, "gradient", width).fit(model, points, training, random_state=0)
    fitted = Lime(2**16, "sobol", width).fit(model, points, training, random_state=1)
    for name in ("coef", "intercept", "r2", "point_error"):
        assert np.allclose(getattr(ours, name), getattr(fitted, name), atol=0.015), name
    box = BlackBox(lambda x: np.full(len(x), 0.3))
    with pytest.raises(ValueError, match="needs the gradients of a network"):
        Lime(sampling="gradient").fit(box, points, training, random_state=0)


@pytest.mark.parametrize("sampling", ["sobol", "random"])
def test_a_linear_model_comes_back_up_to_the_ridge(sampling):
    """The slope of each column shrinks by less than alpha / smallest eigenvalue of the design."""
    rng = np.random.default_rng(2)
    coef, points = rng.normal(size=5), rng.normal(size=(7, 5))
    found = Lime(512, sampling).fit(LinearModel(coef, -0.5), points, points, random_state=0)
    square = 0.75**2 * 5
    shrink = square / (1 + square)
    bound = 2.0 / (5000 * shrink**2.5 * shrink)  # alpha over the expected design, doubled
    size = np.linalg.norm(coef * points.std(axis=0))
    assert bound < 2e-3
    assert (np.abs(found.coef - coef) * points.std(axis=0) < bound * size).all()
    assert (found.r2 > 1 - 1e-5).all()
    assert (np.abs(found.point_error) < bound * size).all()


def test_rows_and_chunks_do_not_matter(network, monkeypatch):
    model, training = network
    points = training[:9]
    together = Lime(128, "sobol").fit(model, points, training, random_state=3)
    for i in (0, 8):
        alone = Lime(128, "sobol").fit(model, points[i : i + 1], training, random_state=3)
        assert np.allclose(alone.coef[0], together.coef[i], atol=1e-5)
    monkeypatch.setattr(network_module, "CHUNK", 50)
    monkeypatch.setattr(neighbours, "_SCORES", 300)
    in_pieces = Lime(128, "sobol").fit(model, points, training, random_state=3)
    assert np.allclose(in_pieces.coef, together.coef, atol=1e-5)
    assert np.allclose(in_pieces.r2, together.r2, atol=1e-5)
    box = BlackBox(lambda x: 1.0 / (1.0 + np.exp(-model.score(x))))
    monkeypatch.setattr(neighbours, "_NUMBERS", 60)
    assert np.allclose(
        Lime(128, "sobol").fit(box, points, training, random_state=3).coef, together.coef, atol=1e-4
    )


def test_the_seed_decides_everything(network):
    model, training = network
    first, again, other = (
        Lime().fit(model, training[:5], training, random_state=s) for s in (0, 0, 1)
    )
    assert (first.coef == again.coef).all()
    assert (first.coef != other.coef).all()


def test_columns_may_come_in_any_order(network):
    """Within the sampling error, as the noise of a column is that of its place."""
    model, training = network
    order = [2, 0, 1]
    turned = BlackBox(lambda x: 1.0 / (1.0 + np.exp(-model.score(x[:, np.argsort(order)]))))
    here = Lime(4096).fit(model, training[:5], training, random_state=0)
    there = Lime(4096).fit(turned, training[:5][:, order], training[:, order], random_state=0)
    assert np.allclose(there.coef, here.coef[:, order], atol=0.02)


def test_a_row_that_is_no_number_stays_alone(network):
    model, training = network
    points = training[:4].copy()
    points[1, 0], points[2, 1] = np.nan, np.inf
    found = Lime(128).fit(model, points, training, random_state=0)
    clean = Lime(128).fit(model, training[:4], training, random_state=0)
    for values in (found.coef[1:3], found.intercept[1:3], found.r2[1:3], found.point_error[1:3]):
        assert np.isnan(values).all()
    assert np.allclose(found.coef[[0, 3]], clean.coef[[0, 3]], atol=1e-5)
    nobody = Lime(128).fit(model, points[1:2], training, random_state=0)
    assert np.isnan(nobody.coef).all()


def test_a_forest_gets_recourse():
    rng = np.random.default_rng(4)
    training = rng.normal(size=(300, 3))
    forest = RandomForestClassifier(20, max_depth=4, random_state=0)
    forest.fit(training, training[:, 0] + training[:, 1] > 0)
    denied = training[forest.predict_proba(training)[:, 1] < 0.3][:5]
    ball = holdfast.NormBall(p=1, radius=0.1)
    result = holdfast.find_recourse(
        denied, forest, robust_to=ball, cost_weight=0.05, linearise="lime", X_train=training
    )
    assert (result.surrogate.coef[:, :2] > 0).all()
    assert (result.surrogate.r2 > 0.5).all()
    assert (as_model(forest).score(result.recourse_array) > as_model(forest).score(denied)).all()


def test_a_constant_model_is_explained_whole(network):
    _, training = network
    box = BlackBox(lambda x: np.full(len(x), 0.3))
    found = Lime(64).fit(box, training[:2], training, random_state=0)
    assert (found.coef == 0).all()
    assert (found.r2 == 1).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"samples": 0}, "even whole number"),
        ({"samples": 7}, "even whole number"),
        ({"samples": 2.0}, "even whole number"),
        ({"sampling": "grid"}, "'gradient', 'sobol' or 'random'"),
        ({"kernel_width": 0}, "a positive number"),
        ({"kernel_width": np.nan}, "a positive number"),
    ],
)
def test_impossible_settings_are_errors(settings, words):
    with pytest.raises(ValueError, match=words):
        Lime(**settings)


def test_training_is_needed(network):
    model, training = network
    with pytest.raises(ValueError, match="lime needs the data the model was trained on"):
        Lime().fit(model, training[:2], None, random_state=0)
    with pytest.raises(ValueError, match=r"expected \(m, 3\)"):
        Lime().fit(model, training[:2], training[:, :2], random_state=0)
    with pytest.raises(ValueError, match="finite"):
        Lime().fit(model, training[:2], np.full((5, 3), np.nan), random_state=0)
