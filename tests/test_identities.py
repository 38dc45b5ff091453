"""What must be true of every solver of this problem, whatever it is made of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import EXPONENTS, random_problem

from holdfast import NormBall, Status, solve
from holdfast.continuous.solve import solve_problem
from holdfast.problem import RecourseProblem


def example(p, radius=0.3, n=60, d=6, random_state=0, **more):
    rng = np.random.default_rng(random_state)
    points = rng.normal(size=(n, d))
    return RecourseProblem.build(
        points, rng.normal(size=d), -1.0, robust_to=NormBall(p, radius), **more
    )


def both_goals(problem, **more):
    return solve_problem(problem, cost_weight=0.1, **more), solve_problem(
        problem, guarantee=0.6, **more
    )


@pytest.mark.parametrize("p", EXPONENTS)
def test_radius_zero_is_plain_recourse_for_every_p(p):
    plain, robust = both_goals(example(math.inf, 0.0)), both_goals(example(p, 0.0))
    for one, other in zip(plain, robust, strict=True):
        np.testing.assert_array_equal(one.recourse, other.recourse)
    # and plain recourse is known: the feature with the largest coefficient moves alone
    problem = example(p, 0.0)
    moved = np.abs(robust[0].action) > 0
    steepest = np.argmax(np.abs(problem.coef[0]))
    assert moved.any(axis=1).sum() > 10
    assert not np.delete(moved, steepest, axis=1).any()
    w = abs(problem.coef[0, steepest])
    score = robust[0].worst_case_score[moved.any(axis=1)]
    np.testing.assert_allclose(score, math.log(w / 0.1 - 1))


@pytest.mark.parametrize(("near", "end"), [(1 + 1e-6, 1.0), (1e6, math.inf)])
def test_the_ends_of_the_scale_are_limits(near, end):
    for close, exact in zip(both_goals(example(near)), both_goals(example(end)), strict=True):
        np.testing.assert_allclose(close.price, exact.price, atol=1e-4)


@pytest.mark.parametrize("p", EXPONENTS)
def test_permuting_features_permutes_the_answer(p):
    problem = example(p, random_state=1)
    order = np.random.default_rng(0).permutation(problem.n_features)
    turned = replace(
        problem,
        X=np.ascontiguousarray(problem.X[:, order]),
        coef=np.ascontiguousarray(problem.coef[:, order]),
    )
    for one, other in zip(both_goals(problem), both_goals(turned), strict=True):
        np.testing.assert_allclose(one.recourse[:, order], other.recourse, atol=1e-9)
        np.testing.assert_allclose(one.price, other.price, rtol=1e-12)


@pytest.mark.parametrize("p", EXPONENTS)
def test_turning_a_feature_around_turns_the_answer(p):
    problem = example(p, bounds=(np.full(6, -3.5), np.full(6, 3.0)), n=40, random_state=0)
    sign = np.array([1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
    bounds = np.sort(np.stack([sign * -3.5, sign * 3.0]), axis=0)
    turned = replace(
        problem,
        X=problem.X * sign,
        coef=problem.coef * sign,
        lower=bounds[:1].copy(),
        upper=bounds[1:].copy(),
    )
    for one, other in zip(both_goals(problem), both_goals(turned), strict=True):
        np.testing.assert_array_equal(one.recourse * sign, other.recourse)


@pytest.mark.parametrize("p", EXPONENTS)
def test_units_do_not_matter(p):
    """Months or years: rescale a feature, its coefficient, its cost and its scale alike."""
    problem = example(p, random_state=2)
    units = np.array([1.0, 12.0, 0.001, 1e5, 7.0, 1.0])
    other = solve(
        problem.X * units,
        problem.coef / units,
        problem.intercept,
        robust_to=NormBall(p, 0.3, scale=1 / units),
        feature_costs=1 / units,
        cost_weight=0.1,
    )
    one = solve_problem(problem, cost_weight=0.1)
    np.testing.assert_allclose(one.recourse * units, other.recourse, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(one.price, other.price, rtol=1e-12)


@pytest.mark.parametrize("p", EXPONENTS)
def test_shared_and_per_row_models_agree_bit_for_bit(p):
    problem = example(p, random_state=3)
    n, d = problem.X.shape
    spelled = replace(
        problem,
        coef=np.tile(problem.coef, (n, 1)),
        intercept=np.tile(problem.intercept, n),
        feature_costs=np.ones((n, d)),
        lower=np.tile(problem.lower, (n, 1)),
        upper=np.tile(problem.upper, (n, 1)),
    )
    for one, other in zip(both_goals(problem), both_goals(spelled), strict=True):
        np.testing.assert_array_equal(one.recourse, other.recourse)
        np.testing.assert_array_equal(one.lower_bound, other.lower_bound)


@pytest.mark.parametrize("loss", ["logistic", "squared_error"])
@pytest.mark.parametrize("p", EXPONENTS)
def test_rows_depend_neither_on_the_batch_nor_on_threads(p, loss):
    problem = example(p, n=1500, random_state=4, loss=loss)
    one = solve_problem(problem, cost_weight=0.1, n_jobs=1)
    for threads in (2, 5):
        many = solve_problem(problem, cost_weight=0.1, n_jobs=threads)
        np.testing.assert_array_equal(one.recourse, many.recourse)
        np.testing.assert_array_equal(one.lower_bound, many.lower_bound)
    some = replace(problem, X=problem.X[100:140].copy())
    np.testing.assert_array_equal(
        one.recourse[100:140], solve_problem(some, cost_weight=0.1).recourse
    )


@pytest.mark.parametrize("p", EXPONENTS)
def test_price_is_monotone_in_weight_radius_and_p(p):
    rng = np.random.default_rng(6)
    for _ in range(8):
        problem = random_problem(rng, p=p)
        weights = np.geomspace(1e-3, 1.0, 7)
        prices = [solve_problem(problem, cost_weight=w).price for w in weights]
        assert np.all(np.diff(prices, axis=0) >= -1e-9)
        radii = [0.0, 0.05, 0.1, 0.4, 1.0]
        balls = [replace(problem.robust_to, radius=radius) for radius in radii]
        prices = [
            solve_problem(replace(problem, robust_to=ball), cost_weight=0.1).price for ball in balls
        ]
        assert np.all(np.diff(prices, axis=0) >= -1e-9 * (1 + np.array(prices[1:])))
        larger = [p, *(q for q in EXPONENTS if q > p), np.inf]
        balls = [replace(problem.robust_to, p=q) for q in larger]
        prices = [
            solve_problem(replace(problem, robust_to=ball), cost_weight=0.1).price for ball in balls
        ]
        assert np.all(np.diff(prices, axis=0) >= -1e-9 * (1 + np.array(prices[1:])))


@pytest.mark.parametrize("p", EXPONENTS)
def test_immutable_features_never_move(p):
    rng = np.random.default_rng(8)
    points = rng.normal(size=(200, 5))
    lower, upper = np.full((200, 5), -np.inf), np.full((200, 5), np.inf)
    lower[:, 2] = upper[:, 2] = points[:, 2]
    result = solve(
        points,
        [0.5, -0.4, 3.0, 0.2, 0.1],
        -2.0,
        robust_to=NormBall(p, 0.1),
        bounds=(lower, upper),
        guarantee=0.5,
    )
    assert np.all(result.action[:, 2] == 0.0)
    assert np.sum(result.status == Status.OPTIMAL) > 100
