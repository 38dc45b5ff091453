"""Ellipsoids: the walk against Clarabel, its certificate, its limits, and what it is refused."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from discrete_problems import best_score_by_force, by_force, random_discrete
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import oracle
from problems import random_problem

import holdfast
from holdfast import Ellipsoid, NormBall, Status
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.proof import solve_and_prove
from holdfast.continuous.solve import solve_problem
from holdfast.core import largest_score
from holdfast.discrete import largest_reachable_score, solve_discrete
from holdfast.problem import RecourseProblem

KINDS = ("full", "singular", "diagonal", "nearly singular", "one-hot")


def random_covariance(rng: np.random.Generator, size: int, kind: str) -> np.ndarray:
    """Return a covariance of one of the kinds that encoders and estimators make."""
    root = rng.normal(size=(size, size))
    if kind == "singular":
        root = root[:, : max(1, size // 2)]
    elif kind == "diagonal":
        root = np.diag(rng.uniform(0.1, 2.0, size=size))
    elif kind == "nearly singular":
        root = root * 10.0 ** rng.uniform(-6, 0, size=size)
    elif kind == "one-hot":  # the columns of a category and the intercept say the same twice
        root = root - root.mean(axis=0)
    return np.asarray(root @ root.T)


def with_ellipsoid(rng: np.random.Generator, problem: RecourseProblem, **fixed) -> RecourseProblem:
    """Put a random ellipsoid in the place of the ball of a random problem."""
    intercept = fixed.get("intercept", bool(rng.random() < 0.7))
    kind = fixed.get("kind", str(rng.choice(KINDS)))
    size = problem.n_features + (1 if intercept else 0)
    units = problem.feature_costs[0] if problem.feature_costs[0].max() > 1e3 else np.ones(1)
    units = np.append(np.broadcast_to(units, problem.n_features), 1.0)[:size]
    covariance = random_covariance(rng, size, kind) * units * units[:, None]
    radius = fixed.get("radius", float(rng.choice([0.0, 0.05, 0.3, 1.0])))
    return replace(problem, robust_to=Ellipsoid(covariance, radius, intercept=intercept))


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_model_is_in_the_ellipsoid_and_none_is_worse(kind):
    rng = np.random.default_rng(1)
    models = Ellipsoid(random_covariance(rng, 5, kind), 0.7)
    X, coef = rng.normal(size=(20, 4)), rng.normal(size=4)
    worst = models.worst_score(X, coef, 0.3)
    w, b = models.worst_model(X, coef, 0.3)
    assert np.einsum("ij,ij->i", X, w) + b == pytest.approx(worst, abs=1e-12)
    assert models.distance(coef, 0.3, w, b) == pytest.approx(0.7, rel=1e-6)
    u = rng.normal(size=(2000, models.factor(4).shape[1]))
    moved = 0.7 * (u / np.linalg.norm(u, axis=1, keepdims=True)) @ models.factor(4).T
    scores = X @ (coef + moved[:, :-1]).T + (0.3 + moved[:, -1])
    assert np.all(scores >= worst[:, None] - 1e-9)


@pytest.mark.parametrize("mode", ["guarantee", "cost_weight"])
def test_every_random_row_is_proven(mode):
    """The certificate knows nothing of the walk: what it proves is so."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        problem = with_ellipsoid(rng, random_problem(rng, n=20, d=int(rng.integers(1, 16))))
        goal = {"guarantee": 0.6} if mode == "guarantee" else {"cost_weight": 0.1}
        result = solve_problem(problem, **goal)
        open_rows = np.flatnonzero(result.status == Status.GAP_OPEN)
        known = result.multiplier[open_rows] > 1e3  # where a unit of score has no sane price
        assert known.all(), (seed, open_rows, result.gap[open_rows])
        found = np.isfinite(result.cost)
        assert np.all(result.gap[found] >= -1e-9 * (1.0 + result.price[found]))


def test_the_walk_agrees_with_clarabel():
    assert sum(agrees_with_clarabel(seed) for seed in range(60)) > 45


def test_where_nothing_is_found_nor_ruled_out_nothing_is_said_of_what_can_be_had(monkeypatch):
    def without_proof(*args, **fixed):
        found, proofs = solve_and_prove(*args, **fixed)
        return found._replace(lower_bound=np.zeros(1)), proofs

    problem = RecourseProblem.build(
        [[0.0]], [1.0], -1.0, robust_to=Ellipsoid(np.eye(2), 0.5), bounds=([[0.0]], [[1.0]])
    )
    ruled_out = solve_problem(problem, guarantee=0.6)
    assert ruled_out.status[0] is Status.INFEASIBLE
    assert ruled_out.reachable_validity[0] < 0.6
    monkeypatch.setattr("holdfast.continuous.frontier.solve_and_prove", without_proof)
    result = solve_problem(problem, guarantee=0.6)
    assert result.status[0] is Status.GAP_OPEN
    assert np.isnan(result.reachable_validity[0])
    assert np.isnan(result.reachable_radius[0])


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(1, 5))
def test_the_walk_agrees_with_clarabel_thousands_of_times(thousand):
    seeds = range(1000 * thousand, 1000 * (thousand + 1))
    assert sum(agrees_with_clarabel(seed) for seed in seeds) > 750


def agrees_with_clarabel(seed: int) -> bool:
    """Compare one random row; False where Clarabel gives up, or cannot bear the units."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n=1, d=int(rng.integers(1, 20)), loss="logistic")
    if problem.feature_costs.max() > 100.0 * problem.feature_costs.min():
        return False
    problem = with_ellipsoid(rng, problem)
    goal = {"guarantee": 0.6} if seed % 2 else {"cost_weight": 0.05}
    ours = solve_problem(problem, **goal)
    asked = {"target": problem.loss.score(0.6)} if seed % 2 else goal
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Solution may be inaccurate")
        try:
            theirs, _ = oracle(problem, **asked)
        except (cp.SolverError, UserWarning):
            return False
    if np.isinf(theirs):
        assert np.isinf(ours.price[0]), seed
    else:
        assert ours.price[0] == pytest.approx(theirs, rel=1e-5, abs=1e-5), seed
    return True


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loss", ["logistic", "probit", "hinge", "squared_hinge", "squared_error"])
def test_a_diagonal_one_is_a_scaled_ball(seed, loss):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n=10, d=6, loss=loss, p=2.0, radius=0.4)
    scale = rng.choice([0.0, 0.5, 1.0, 2.0], size=6)
    ball = NormBall(2, 0.4, scale=scale, intercept=0.7)
    ellipsoid = Ellipsoid(np.diag(np.append(scale, 0.7) ** 2), 0.4)
    goal = {"guarantee": 0.5} if seed % 2 else {"cost_weight": 0.1}
    one = solve_problem(replace(problem, robust_to=ball), **goal)
    two = solve_problem(replace(problem, robust_to=ellipsoid), **goal)
    assert one.price == pytest.approx(two.price, rel=1e-7, abs=1e-9)
    assert [*one.status] == [*two.status]
    assert one.reachable_radius == pytest.approx(two.reachable_radius, rel=1e-6, nan_ok=True)
    assert one.reachable_validity == pytest.approx(two.reachable_validity, rel=1e-6, nan_ok=True)


def test_radius_0_is_todays_model_alone():
    rng = np.random.default_rng(3)
    problem = random_problem(rng, n=50, d=7)
    covariance = random_covariance(rng, 8, "full")
    alone = replace(problem, robust_to=NormBall(1, 0.0))
    for goal in ({"guarantee": 0.7}, {"cost_weight": 0.2}):
        one = solve_problem(replace(problem, robust_to=Ellipsoid(covariance, 0.0)), **goal)
        two = solve_problem(alone, **goal)
        assert one.price == pytest.approx(two.price, rel=1e-9)


def test_the_frontier_of_todays_model_alone_has_breakpoints():
    models = Ellipsoid(np.eye(3), 0.0)
    frontier = holdfast.frontier(
        [0.0, 0.0], [1.0, 0.5], -1.0, robust_to=models, bounds=([-1.0, -1.0], [1.0, 1.0])
    )
    assert frontier.to_frame()["cost"].tolist() == [0.0, 1.0, 2.0]


def test_what_was_worked_out_of_a_covariance_cannot_go_stale():
    models = Ellipsoid(np.eye(2), 1.0)
    with pytest.raises(ValueError, match="read-only"):
        models.covariance[0, 0] = 4.0


def test_a_covariance_without_the_intercept_leaves_it_alone():
    rng = np.random.default_rng(4)
    covariance = random_covariance(rng, 5, "full")
    wider = np.zeros((6, 6))
    wider[:5, :5] = covariance
    problem = random_problem(rng, n=30, d=5)
    fixed = Ellipsoid(covariance, 0.3, intercept=False)
    one = solve_problem(replace(problem, robust_to=fixed), cost_weight=0.1)
    two = solve_problem(replace(problem, robust_to=Ellipsoid(wider, 0.3)), cost_weight=0.1)
    assert one.price == pytest.approx(two.price, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_order_and_units_of_features_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    problem = with_ellipsoid(rng, random_problem(rng, n=10, d=6), kind="full", intercept=True)
    result = solve_problem(problem, cost_weight=0.1)
    order, units = rng.permutation(6), 2.0 ** rng.integers(-20, 20, size=6)
    matrix = problem.robust_to.covariance / np.append(units, 1.0) / np.append(units, 1.0)[:, None]
    place = np.append(order, 6)
    other = RecourseProblem.build(
        (problem.X * units)[:, order],
        (problem.coef / units)[:, order]
        if len(problem.coef) > 1
        else (problem.coef[0] / units)[order],
        problem.intercept if len(problem.intercept) > 1 else float(problem.intercept[0]),
        robust_to=Ellipsoid(matrix[np.ix_(place, place)], problem.robust_to.radius),
        feature_costs=(problem.feature_costs[0] / units)[order],
        bounds=((problem.lower * units)[:, order], (problem.upper * units)[:, order]),
    )
    assert solve_problem(other, cost_weight=0.1).price == pytest.approx(result.price, rel=1e-9)


def test_a_row_gives_the_same_bits_in_any_batch_and_on_any_number_of_threads():
    rng = np.random.default_rng(5)
    problem = with_ellipsoid(rng, random_problem(rng, n=600, d=9), radius=0.3)
    whole = solve_problem(problem, guarantee=0.6, n_jobs=2)
    alone = [solve_problem(problem.row(i), guarantee=0.6, n_jobs=1) for i in range(0, 600, 37)]
    assert np.array_equal(
        whole.recourse_array[::37], [one.recourse_array[0] for one in alone], equal_nan=True
    )


def test_costs_in_another_currency_change_nothing():
    rng = np.random.default_rng(6)
    problem = with_ellipsoid(rng, random_problem(rng, n=40, d=5))
    dear = replace(problem, feature_costs=problem.feature_costs * 2.0**40)
    one, two = solve_problem(problem, guarantee=0.6), solve_problem(dear, guarantee=0.6)
    assert np.array_equal(one.recourse_array, two.recourse_array, equal_nan=True)


@pytest.mark.parametrize("seed", range(25))
def test_the_frontier_agrees_with_the_price(seed):
    rng = np.random.default_rng(seed)
    problem = with_ellipsoid(rng, random_problem(rng, n=1, d=5), radius=0.3).row(0)
    best = solve_problem(problem, cost_weight=0.05)
    frontier = Frontier(problem)
    read = frontier.at_score(float(best.worst_case_score[0]))
    again = np.logaddexp(0.0, -read.worst_case_score[0]) + 0.05 * read.cost[0]
    assert again == pytest.approx(best.price[0], abs=1e-8 + 0.05 * max(read.gap[0], 0.0))
    end = frontier.max_score
    assert end >= best.worst_case_score[0] - 1e-9
    if np.isfinite(end) and abs(end) < 1e6:
        beyond = frontier.at_score(end + 1e-6 * (1.0 + abs(end)))
        assert np.isinf(beyond.cost[0])


def test_the_largest_radius_is_the_largest():
    rng = np.random.default_rng(8)
    checked = 0
    for _ in range(40):
        problem = with_ellipsoid(rng, random_problem(rng, n=5, d=4), radius=1.0, kind="full")
        result = solve_problem(problem, guarantee=0.6)
        for i in np.flatnonzero(result.status == Status.INFEASIBLE):
            most = result.reachable_radius[i]
            if np.isnan(most):
                continue
            row, models = problem.row(int(i)), problem.robust_to
            target = problem.loss.score(0.6)
            slack = 1e-6 * (1.0 + abs(target))
            less = largest_score(replace(row, robust_to=models.with_radius(most * (1 - 1e-7))))
            more = largest_score(replace(row, robust_to=models.with_radius(most * (1 + 1e-6))))
            assert less >= target - slack
            assert more <= target + slack
            checked += 1
    assert checked > 10


@given(
    seed=st.integers(0, 10**6),
    tie=st.booleans(),
    kind=st.sampled_from(KINDS),
    intercept=st.booleans(),
)
@settings(max_examples=75, deadline=None, derandomize=True)
def test_ties_and_zeros_are_proven_too(seed, tie, kind, intercept):
    """Points at the kink of the norm, equal coefficients, equal costs."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    X = np.round(rng.normal(size=(5, d)) * (0.7 if tie else 0.0))
    covariance = random_covariance(rng, d + intercept, kind)
    if tie:
        covariance = np.ones_like(covariance) + np.eye(len(covariance))
    result = holdfast.solve(
        X,
        np.round(rng.normal(size=d)),
        -1.0,
        robust_to=Ellipsoid(covariance, 0.25, intercept=intercept),
        guarantee=0.5,
        bounds=(X - 3.0, X + 3.0),
    )
    assert Status.GAP_OPEN not in result.status, result.gap


@pytest.mark.parametrize("seed", range(60))
def test_the_discrete_search_agrees_with_force(seed):
    rng = np.random.default_rng(seed)
    problem = random_discrete(rng, n=2, p=2.0)
    problem = replace(problem, base=with_ellipsoid(rng, problem.base))
    goal = {"guarantee": 0.5} if seed % 3 else {"cost_weight": 0.1}
    result = solve_discrete(problem, n_jobs=1, **goal)
    for i in range(2):
        best = by_force(problem, i, **goal)
        assert result.price[i] == pytest.approx(best, rel=1e-7, abs=1e-7)
        if np.isfinite(best):
            assert result.lower_bound[i] <= best + 1e-7 * (1.0 + abs(best))
            assert result.status[i].is_proven or np.isinf(problem.base.upper).any()


@pytest.mark.parametrize("seed", range(10))
def test_the_largest_reachable_score_agrees_with_force(seed):
    rng = np.random.default_rng(seed)
    problem = random_discrete(rng, n=2, p=2.0, continuous=0, whole=2)
    problem = replace(problem, base=with_ellipsoid(rng, problem.base, kind="full"))
    if np.isinf(problem.base.upper).any() or np.isinf(problem.base.lower).any():
        bounds = (problem.base.X - 5.0, problem.base.X + 5.0)
        problem = replace(problem, base=replace(problem.base, lower=bounds[0], upper=bounds[1]))
    ours = largest_reachable_score(problem, n_jobs=1)
    theirs = [best_score_by_force(problem, i) for i in range(2)]
    assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-7)


def test_covariances_that_are_none_are_refused():
    with pytest.raises(ValueError, match="must be square"):
        Ellipsoid(np.ones((2, 3)), 1.0)
    with pytest.raises(ValueError, match=r"not symmetric: \[0, 1\] = 0.5, but \[1, 0\] = 0.2"):
        Ellipsoid(np.array([[1.0, 0.5], [0.2, 1.0]]), 1.0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        Ellipsoid(np.array([[1.0, 2.0], [2.0, 1.0]]), 1.0)
    with pytest.raises(ValueError, match=r"covariance\[1, 1\] = -1 is negative"):
        Ellipsoid(np.diag([1.0, -1.0]), 1.0)
    with pytest.raises(ValueError, match=r"covariance\[0, 1\] = nan is not finite"):
        Ellipsoid(np.array([[1.0, np.nan], [np.nan, 1.0]]), 1.0)
    with pytest.raises(ValueError, match="radius = -1"):
        Ellipsoid(np.eye(2), -1.0)
    with pytest.raises(ValueError, match="covariance has 3 rows, but there are 3 features"):
        holdfast.solve(
            np.zeros((1, 3)), np.ones(3), robust_to=Ellipsoid(np.eye(3), 1.0), guarantee=0.5
        )
    with pytest.raises(ValueError, match="by position"):
        Ellipsoid(pd.DataFrame(np.eye(2)), 1.0)


def test_it_is_spoken_of_in_plain_words():
    models = Ellipsoid(np.eye(2), 2.0)
    result = holdfast.solve(
        [[0.0]], [1.0], -1.0, robust_to=models, guarantee=0.5, bounds=([0.0], [0.5])
    )
    assert repr(models) == "Ellipsoid(<2 x 2 covariance>, radius=2)"
    assert "ellipsoid, radius=2" in repr(result)
    assert "every model within an ellipsoid of radius 2 around today's" in result.explain(0)


def test_coefficients_that_never_change_leave_no_trace_of_rounding():
    """Rows of zeros in a covariance whose other rows are full."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem, certain = random_problem(rng, n=6, d=8, radius=0.0), rng.permutation(8)[:4]
        covariance = random_covariance(rng, 9, "full")
        covariance[certain], covariance[:, certain] = 0.0, 0.0
        models = Ellipsoid(covariance, 0.2)
        assert not models.factor(8)[certain].any()
        result = solve_problem(replace(problem, robust_to=models), cost_weight=0.1)
        known = (result.status != Status.GAP_OPEN) | (result.multiplier > 1e3)
        assert known.all(), (seed, result.gap)
