"""What the paper claims: what holds, and what does not hold as it is stated."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import oracle, price_of
from problems import EXPONENTS, random_problem
from scipy import special, stats

from holdfast import NormBall, solve
from holdfast.problem import RecourseProblem


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
    """Near the origin the worst model moves the intercept, and it moves it downwards.

    The paper counts the constant as a coordinate (its example writes x0 = [1, 1]): of its two
    moves only the downward one is ever worst, which leaves 2d + 1 candidates for d features.
    """
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
    arguments = {"X": [[0.0, 0.0]], "coef": [1.0, 1.0], "intercept": -1.0, "guarantee": 0.5}
    candidates = solve(**arguments, robust_to=NormBall(1, 0.3))  # p = 1: exactly those candidates
    recourse = np.asarray(candidates.recourse)
    assert candidates.worst_case_validity[0] >= 0.5
    assert NormBall(2, 0.3).worst_score(recourse, [1.0, 1.0], -1.0)[0] < 0.0
    sound = solve(**arguments, robust_to=NormBall(2, 0.3))
    assert sound.worst_case_validity[0] >= 0.5
    assert sound.cost[0] > candidates.cost[0]


def test_the_theorem_does_not_hold_for_p_two():
    """The best of the candidates, the optimum for p = 1, is not the optimum for p = 2."""
    coef, intercept, weight = np.array([2.0, 1.9]), -1.0, 0.1
    arguments = {"X": [[0.0, 0.0]], "coef": coef, "intercept": intercept}
    candidates = solve(**arguments, robust_to=NormBall(1, 0.5), cost_weight=weight)
    problem = RecourseProblem.build(**arguments, robust_to=NormBall(2, 0.5))
    of_candidates = price_of(problem, 0, np.asarray(candidates.recourse), weight)[0]
    best = solve(**arguments, robust_to=NormBall(2, 0.5), cost_weight=weight)
    assert of_candidates == pytest.approx(0.3090, abs=5e-5)
    assert best.price[0] == pytest.approx(0.3047, abs=5e-5)
    assert best.gap[0] < 1e-9
    assert oracle(problem, cost_weight=weight)[0] == pytest.approx(best.price[0], abs=1e-7)


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_problem_is_convex_for_cross_entropy(p):
    """Does not hold for cross-entropy and the logit: the paper says non-convex, for every p."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        problem = random_problem(rng, n=1, p=p)
        ends = rng.normal(size=(2, 200, problem.n_features)) * 3 / problem.feature_costs
        share = rng.uniform(size=(200, 1))
        between = share * ends[0] + (1 - share) * ends[1]
        prices = [price_of(problem, 0, points, 0.3) for points in (*ends, between)]
        chord = share[:, 0] * prices[0] + (1 - share[:, 0]) * prices[1]
        assert np.all(prices[2] <= chord + 1e-9 * (1 + chord))


def test_cross_entropy_is_convex_for_log_concave_links_only():
    """Logit and probit are log-concave; the cauchit is not, and its price is not convex."""
    scores = np.linspace(-12.0, 12.0, 2401)
    for link in (stats.logistic, stats.norm):
        assert np.all(np.diff(-link.logcdf(scores), 2) >= -1e-12)

    def price(x):  # one feature, w = 1, no ball, start at -10, cost weight 0.01
        return -stats.cauchy.logcdf(x) + 0.01 * np.abs(x + 10.0)

    assert price(-6.0) > 0.5 * (price(-10.0) + price(-2.0)) + 0.2
    np.testing.assert_allclose(
        -stats.cauchy.logcdf([-6.0, -10.0, -2.0]), [2.946, 3.450, 1.914], 1e-3
    )


def test_the_example_of_non_convexity_rests_on_a_sign():
    """With the worst model lowering the score, as it must, the example's price is convex."""
    x = np.linspace(-4, 4, 801)
    radius, here = 0.5, np.abs(x - 1)  # theta = 0, x0 = 1, cost weight 1, loss exp(-score)^2

    def is_convex(values):
        return bool(np.all(np.diff(values, 2) >= -1e-9))

    printed = np.where(np.abs(x) >= 1, radius * np.abs(x), -radius)  # adds where it must subtract
    assert not is_convex(np.exp(-printed) ** 2 + here)
    worst = NormBall(1, radius).worst_score(x[:, None], [0.0], 0.0)
    np.testing.assert_array_equal(worst, np.where(np.abs(x) >= 1, -radius * np.abs(x), -radius))
    np.testing.assert_allclose(np.exp(-worst) ** 2, np.exp(np.maximum(1, np.abs(x))))
    assert is_convex(np.exp(-worst) ** 2 + here)


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_proposition_holds_for_the_squared_error_of_a_sigmoid(p):
    """The example's numbers with this loss: not convex, for every p."""

    def price(x):
        worst = NormBall(p, 0.5).worst_score(np.array([[x]]), [0.0], 0.0)[0]
        return special.expit(-worst) ** 2 + abs(x - 1.0)

    assert price(5.0) > 0.5 * (price(2.0) + price(8.0)) + 0.01
    # for p = 1 all three lie where one candidate is the worst: a subproblem is not convex either
    assert (
        NormBall(1, 0.5).worst_model([[2.0], [5.0], [8.0]], [0.0], 0.0)[0].tolist() == [[-0.5]] * 3
    )


def test_a_larger_p_never_lowers_the_price():
    """Holds: for one radius the balls grow with p, so L-inf costs most and L1 least."""
    rng = np.random.default_rng(2)
    points, coef = rng.normal(size=(100, 7)), rng.normal(size=7)
    prices = [
        solve(points, coef, -1.0, robust_to=NormBall(p, 0.3), cost_weight=0.1).price
        for p in EXPONENTS
    ]
    assert np.all(np.diff(prices, axis=0) >= -1e-12)
    assert np.mean(prices[-1]) > 1.2 * np.mean(prices[0])
