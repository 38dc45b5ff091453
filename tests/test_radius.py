"""Which radius: coverage and survival on models that did not choose it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from holdfast import NormBall, estimate_radius

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
Y = (X - [0.0, 5.0, 1.0]) / [1.0, 10.0, 0.1] @ [1.0, -1.0, 0.5] + RNG.logistic(size=500) > 0.5
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)


@pytest.fixture(scope="module")
def found():
    return estimate_radius(MODEL, X, Y, n_models=200)


def test_the_radius_covers_what_it_says(found):
    for row in found.radii:
        ball = found.ball(row.p, row.scaled)
        distance = ball.distance(np.zeros(3), 0.0, found.changes[:, :-1], found.changes[:, -1])
        assert np.mean(distance[found.chosen] <= row.radius * (1 + 1e-12)) >= 0.9
        assert 0.75 <= row.coverage <= 1.0
        assert row.coverage == np.mean(distance[~found.chosen] <= row.radius)


def test_recourse_with_this_radius_survives_models_that_did_not_choose_it(found):
    for row in found.radii:
        assert row.survival > 0.9 > row.plain_survival
        assert row.helped == 1.0


def test_the_changes_are_those_of_the_classifier_behind_the_encoders(found):
    """The spread is that of the theory: two models, each with the inverse information matrix."""
    encoded = np.column_stack([MODEL[0].transform(X), np.ones(len(X))])
    p = MODEL.predict_proba(X)[:, 1]
    information = (encoded * (p * (1 - p))[:, None]).T @ encoded
    expected = np.sqrt(2.0 * np.diag(np.linalg.inv(information)))
    spread = np.append(found.scale, found.intercept_scale)
    np.testing.assert_allclose(spread, expected, rtol=0.35)


def test_past_models_and_a_time_column():
    versions = [MODEL[-1].__class__(C=c).fit(MODEL[0].transform(X), Y) for c in (0.01, 0.1, 1, 10)]
    past = [make_pipeline(MODEL[0], version) for version in versions]
    found = estimate_radius(MODEL, X, Y, p=2, past_models=past)
    assert len(found.changes) == 4
    drift = X.copy()
    drift[250:, 0] += 3.0  # the world changes
    later = estimate_radius(MODEL, drift, Y, p=2, time=np.arange(500), n_periods=2, n_models=40)
    still = estimate_radius(MODEL, X, Y, p=2, n_models=40)
    assert later.radius(2).radius > still.radius(2).radius


def test_the_same_seed_gives_the_same_radius():
    a, b = (estimate_radius(MODEL, X, Y, p=1, n_models=30, random_state=3) for _ in range(2))
    assert a.radius(1).radius == b.radius(1).radius


def test_the_plot_says_what_it_shows(found, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    axes = found.plot()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "p = 1",
        "p = 2",
        "p = ∞",
    ]
    axes.figure.savefig(tmp_path / "radius.png")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"quantile": 1.0}, "quantile = 1.0"),
        ({"n_models": 3}, "n_models = 3 is not allowed"),
        ({"p": 0.5}, "p = 0.5"),
        ({"time": [1, 2]}, r"time has shape \(2,\), expected \(500,\)"),
        ({"time": np.arange(500), "n_periods": 1}, "n_periods = 1"),
        ({"past_models": []}, "past_models: 0 changes are too few"),
        ({"n_models": "many"}, "n_models = 'many'"),
        ({"time": np.arange(500), "n_periods": 2.5}, "n_periods = 2.5"),
        ({"time": np.where(np.arange(500) == 7, np.nan, 1.0)}, "time is missing in 1 rows"),
        ({"time": [None] * 500}, "time is missing in 500 rows"),
    ],
)
def test_wrong_arguments_are_explained(arguments, said):
    with pytest.raises(ValueError, match=said):
        estimate_radius(MODEL, X, Y, **arguments)


def test_odd_numbers_of_periods_choose_and_check_on_the_same_periods():
    """With three periods of which one is odd, every second change would see one step only."""
    shifted = X.copy()
    shifted[334:, 0] = -shifted[334:, 0]
    found = estimate_radius(MODEL, shifted, Y, p=2, time=np.arange(500), n_periods=3, n_models=60)
    assert found.radius(2).coverage > 0.7
    assert found.ball(2).radius == found.radius(2).radius


def test_a_ball_that_covers_less_than_it_says_is_not_handed_out(found):
    row = replace(found.radius(2), coverage=0.1)
    wrong = replace(found, radii=[row])
    with pytest.raises(ValueError, match="covers 10% of those kept back"):
        wrong.ball(2)


def test_fresh_samples_of_the_same_size_are_covered():
    """What the docstring promises: on average over samples, not the resamples alone."""
    rng = np.random.default_rng(3)
    truth = np.array([1.0, -0.8, 0.5, 0.0])

    def draw():
        points = rng.normal(size=(250, 4))
        return points, points @ truth + rng.logistic(size=250) > 0.3

    def vector(model):
        return np.append(model.coef_[0], model.intercept_)

    covered = []
    for _ in range(12):
        today = LogisticRegression().fit(*(data := draw()))
        ball = estimate_radius(today, *data, p=2, n_models=60).ball(2)
        fresh = np.array([vector(LogisticRegression().fit(*draw())) for _ in range(40)])
        covered.append(np.mean(np.linalg.norm(fresh - vector(today), axis=1) <= ball.radius))
    assert np.mean(covered) > 0.83


def test_a_search_over_a_pipeline_is_the_pipeline():
    """A search that holds a pipeline must not send the encoded rows through it again."""
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}
    ).fit(X, Y)
    plain = estimate_radius(search.best_estimator_, X, Y, p=2, n_models=30)
    wrapped = estimate_radius(search, X, Y, p=2, n_models=30)
    assert wrapped.radius(2).radius == plain.radius(2).radius


def test_past_models_behind_other_encoders_are_refused():
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(2.0 * X, Y)
    with pytest.raises(ValueError, match=r"past_models\[1\] encodes people otherwise"):
        estimate_radius(MODEL, X, Y, p=2, past_models=[MODEL, other])


def test_other_models_and_other_exponents_are_refused():
    tree = DecisionTreeClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="not linear in its score"):
        estimate_radius(tree, X, Y)
    with pytest.raises(ValueError, match="was not asked for"):
        estimate_radius(MODEL, X, Y, p=1, n_models=20).radius(math.inf)
    assert isinstance(estimate_radius(MODEL, X, Y, p=1, n_models=20).ball(1), NormBall)
