"""The ball: worst scores and worst models, against random models and a linear programme."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import EXPONENTS

from holdfast import NormBall


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("intercept", [True, False, 0.5])
def test_worst_model_attains_the_worst_score_and_none_is_worse(p, intercept):
    rng = np.random.default_rng(0)
    coef, bias = rng.normal(size=4), 0.3
    points = np.vstack([rng.normal(size=(20, 4)), np.zeros((1, 4)), np.ones((1, 4)), np.eye(4)])
    ball = NormBall(p, 0.7, scale=[1.0, 0.5, 0.0, 2.0], intercept=intercept)
    worst = ball.worst_score(points, coef, bias)
    models, biases = ball.worst_model(points, coef, bias)
    np.testing.assert_allclose((models * points).sum(axis=1) + biases, worst, atol=1e-12)
    assert np.all(ball.distance(coef, bias, models, biases) <= 0.7 * (1 + 1e-12))
    assert np.all(models[:, 2] == coef[2])  # scale 0: never attacked
    for _ in range(300):
        change = rng.normal(size=5) * np.append([1.0, 0.5, 0.0, 2.0], float(intercept))
        length = ball.distance(coef, bias, coef + change[:4], bias + change[4])[0]
        change *= 0.7 / length
        scores = points @ (coef + change[:4]) + bias + change[4]
        assert np.all(scores >= worst - 1e-12)


def test_dual_exponents():
    assert [NormBall(p, 1).dual_p for p in (1, 1.5, 2, 3, math.inf)] == [math.inf, 3, 2, 1.5, 1]


def test_ties_for_p_one_are_shared_and_stay_in_the_ball():
    ball = NormBall(1, 0.6)
    coef, intercept = ball.worst_model([[1.0, -1.0]], [0.0, 0.0], 0.0)
    # |x_1| = |x_2| = 1, the coordinate of the intercept: three ways, a third each
    np.testing.assert_allclose(coef, [[-0.2, 0.2]])
    np.testing.assert_allclose(intercept, [-0.2])
    assert ball.worst_score([[1.0, -1.0]], [0.0, 0.0], 0.0)[0] == pytest.approx(-0.6)


def test_huge_points_do_not_overflow():
    for p in EXPONENTS:
        score = NormBall(p, 1.0).worst_score([[1e200, -1e200]], [2.0, -2.0], 0.0)
        assert np.isfinite(score).all()


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"X \(1, 2\), coef \(1, 3\)"):
        NormBall(1, 1).worst_score([[1.0, 2.0]], [1.0, 2.0, 3.0], 0.0)


def test_balls_are_values():
    assert NormBall(1, 0.1, scale=[1, 2]) == NormBall(1.0, 0.1, scale=(1.0, 2.0))
    assert hash(NormBall(2, 0.1)) == hash(NormBall(2.0, 0.1))
