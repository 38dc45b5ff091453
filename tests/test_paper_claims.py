"""What the paper claims: what holds, and what does not hold as it is stated."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import price_of
from problems import EXPONENTS, random_problem

from holdfast import NormBall, solve


def single_coefficient_attacks(point, radius, intercept):
    """Score lost to each model that moves one coefficient by the radius."""
    lost = np.abs(point) * radius
    return np.append(lost, radius) if intercept else lost


def test_for_p_one_moving_a_single_coefficient_is_enough():
    """Holds: 2d + 1 candidate models suffice for p = 1 (the intercept is the last of them)."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        point, coef = rng.normal(size=4) * rng.choice([0.1, 1, 5]), rng.normal(size=4)
        worst = NormBall(1, 0.4).worst_score(point[None], coef, 0.2)[0]
        lost = single_coefficient_attacks(point, 0.4, intercept=True).max()
        assert worst == pytest.approx(coef @ point + 0.2 - lost)


def test_the_intercept_is_a_candidate_too():
    """The paper lists 2d candidates; near the origin the worst model moves the intercept."""
    ball, point = NormBall(1, 0.5), np.array([[0.1, -0.2]])
    coef, intercept = ball.worst_model(point, [1.0, 1.0], 0.0)
    np.testing.assert_array_equal(coef, [[1.0, 1.0]])
    assert intercept[0] == -0.5


def test_the_worst_model_lowers_the_score():
    """The proof sketch adds radius * sgn(x_i); the adversary must subtract it."""
    ball, point = NormBall(1, 0.5), np.array([[3.0, 1.0]])
    coef, _ = ball.worst_model(point, [1.0, 1.0], 0.0)
    assert coef[0, 0] == 1.0 - 0.5
    assert ball.worst_score(point, [1.0, 1.0], 0.0)[0] == 4.0 - 1.5


def test_for_p_above_one_single_coefficients_are_not_enough():
    """Does not hold as stated: for p = 2, x = (1, 1), radius 1 the true worst case is sqrt(3)."""
    point = np.array([[1.0, 1.0]])
    worst = NormBall(2, 1.0).worst_score(point, [0.0, 0.0], 0.0)[0]
    assert worst == pytest.approx(-np.sqrt(3))
    assert single_coefficient_attacks(point[0], 1.0, intercept=True).max() == 1.0
    for p in EXPONENTS[1:]:
        assert NormBall(p, 1.0).worst_score(point, [0.0, 0.0], 0.0)[0] < -1.0


def test_a_recourse_made_against_single_coefficients_breaks_within_the_l2_ball():
    """The consequence: what is safe against the candidates is not safe against the ball."""
    arguments = {"points": [[0.0, 0.0]], "coef": [1.0, 1.0], "intercept": -1.0, "guarantee": 0.5}
    candidates = solve(**arguments, ball=NormBall(1, 0.3))  # p = 1: exactly those candidates
    recourse = np.asarray(candidates.recourse)
    assert candidates.worst_case_validity[0] >= 0.5
    assert NormBall(2, 0.3).worst_score(recourse, [1.0, 1.0], -1.0)[0] < 0.0
    sound = solve(**arguments, ball=NormBall(2, 0.3))
    assert sound.worst_case_validity[0] >= 0.5
    assert sound.cost[0] > candidates.cost[0]


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_problem_is_convex_for_cross_entropy(p):
    """Does not hold as stated: the paper calls the problem non-convex for every p."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        problem = random_problem(rng, n=1, p=p)
        ends = rng.normal(size=(2, 200, problem.n_features)) * 3 / problem.feature_costs
        share = rng.uniform(size=(200, 1))
        between = share * ends[0] + (1 - share) * ends[1]
        prices = [price_of(problem, 0, points, 0.3) for points in (*ends, between)]
        chord = share[:, 0] * prices[0] + (1 - share[:, 0]) * prices[1]
        assert np.all(prices[2] <= chord + 1e-9 * (1 + chord))


def test_the_example_of_non_convexity_uses_another_loss():
    """Its J(x) = exp(-|x|) + |x - 1| outside [-1, 1] and e + |x - 1| inside: not a GLM's loss."""

    def paper(x):
        return np.where(np.abs(x) >= 1, np.exp(-np.abs(x)), np.e) + np.abs(x - 1)

    assert paper(np.array(0.0)) > 0.5 * (paper(np.array(-1.5)) + paper(np.array(1.5)))
    # with cross-entropy the same numbers (theta = 0, radius 0.5, cost weight 1) give this, convex:
    x = np.linspace(-4, 4, 801)
    score = NormBall(1, 0.5).worst_score(x[:, None], [0.0], 0.0)
    price = np.logaddexp(0, -score) + np.abs(x - 1)
    assert np.all(np.diff(price, 2) >= -1e-12)


def test_a_larger_p_never_lowers_the_price():
    """Holds: for one radius the balls grow with p, so L-inf costs most and L1 least."""
    rng = np.random.default_rng(2)
    points, coef = rng.normal(size=(100, 7)), rng.normal(size=7)
    prices = [
        solve(points, coef, -1.0, ball=NormBall(p, 0.3), cost_weight=0.1).price for p in EXPONENTS
    ]
    assert np.all(np.diff(prices, axis=0) >= -1e-12)
    assert np.mean(prices[-1]) > 1.2 * np.mean(prices[0])
