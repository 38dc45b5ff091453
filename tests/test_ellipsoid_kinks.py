"""Ellipsoids where the adversary can be starved: walks through points that no model change moves.

There the norm has a kink, y = 0, and the point alone does not tell the worst model. The problems
are drawn so that many features come to their start or to a bound at the kink itself.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from oracle import worst_score_by_cvxpy
from problems import random_problem
from test_ellipsoid import agrees_with_clarabel, with_ellipsoid

from holdfast import Ellipsoid, Status
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.solve import solve_problem
from holdfast.core import largest_score
from holdfast.problem import RecourseProblem

KINDS = ("full", "low", "certain", "whole", "category", "twins", "blocks", "alike", "ones")
SOLVED = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)


def random_root(rng: np.random.Generator, size: int, kind: str) -> np.ndarray:
    """Return a matrix, a row of which says how a coefficient moves, the intercept's last."""
    root = rng.normal(size=(size, size))
    if kind == "low":
        root = root[:, : int(rng.integers(1, size + 1))]
    elif kind == "certain":
        root[rng.random(size) < 0.4] = 0.0
    elif kind == "whole":
        root = np.round(2.0 * root[:, : int(rng.integers(1, size + 1))])
    elif kind == "category":
        root = root - root.mean(axis=0)
    elif kind == "twins":
        for _ in range(1 + size // 3):
            i, j = rng.integers(0, size, size=2)
            root[i] = root[j] * rng.choice([1.0, -1.0, 2.0])
    elif kind == "blocks":
        root = root * (rng.integers(0, 3, size=(size, 1)) == rng.integers(0, 3, size=size))
    elif kind == "alike":
        root = np.hstack([np.ones((size, 1)), np.eye(size)[:, : int(rng.integers(1, size + 1))]])
    elif kind == "ones":
        root = np.ones((size, 1))
    return root


def kinked_problem(rng: np.random.Generator) -> RecourseProblem:
    """Return a row whose start and bounds agree with the kink in many features."""
    d, intercept = int(rng.integers(1, 14)), bool(rng.random() < 0.6)
    root = random_root(rng, d + intercept, str(rng.choice(KINDS)))
    kink = np.zeros(d)
    if intercept:
        kink = rng.integers(-1, 3, size=d).astype(float) if rng.random() < 0.5 else np.ones(d)
        root[-1] = -(kink @ root[:-1])
    start = np.where(rng.random(d) < rng.choice([0.5, 0.9]), kink, np.round(2 * rng.normal(size=d)))
    coef = rng.normal(size=d) * (rng.random(d) > 0.15)
    if rng.random() < 0.6:
        coef = np.round(coef, 1)
    starved = np.linalg.lstsq(root[:d], coef, rcond=None)[0]  # how far the model can be led astray
    share = rng.choice([0.3, 0.6, 0.8, 0.9, 0.97, 1.1, 1.5])
    room = np.where(
        rng.random((2, d)) < 0.5 * rng.integers(0, 3), np.inf, rng.integers(0, 4, (2, d))
    )
    return RecourseProblem.build(
        start[None, :],
        coef,
        float(np.round(rng.normal() - 1.0, 1)),
        robust_to=Ellipsoid(
            root @ root.T,
            float(share * np.clip(np.linalg.norm(starved), 0.05, 100.0)),
            intercept=intercept,
        ),
        feature_costs=np.ones(d) if rng.random() < 0.5 else rng.uniform(0.2, 3.0, size=d),
        bounds=(np.minimum(start, kink) - room[0], np.maximum(start, kink) + room[1]),
    )


def nearly_dependent_problem(rng: np.random.Generator) -> RecourseProblem:
    """Return a row some of whose directions the models hardly know, in units far apart."""
    d, intercept = int(rng.integers(2, 9)), bool(rng.random() < 0.6)
    rank = int(rng.integers(1, d + 1))
    root = rng.normal(size=(d + intercept, rank)) @ rng.normal(size=(rank, rank))
    faint = 10.0 ** rng.uniform(-11, -6) * rng.normal(size=root.shape)
    scale = 10.0 ** rng.choice([0, 0, 3, 6])
    root = np.hstack([root, faint])
    root[:d] /= scale
    start = np.round(2.0 * rng.normal(size=d), 1) * scale
    room = scale * rng.choice([0.0, 1.0, 3.0, np.inf], size=(2, d))
    return RecourseProblem.build(
        start[None, :],
        rng.normal(size=d) / scale,
        float(rng.normal() - 1.0),
        robust_to=Ellipsoid(
            root @ root.T, float(rng.choice([0.1, 0.3, 0.6, 1.0])), intercept=intercept
        ),
        feature_costs=rng.uniform(0.2, 3.0, size=d) / scale,
        bounds=(start - room[0], start + room[1]),
    )


def is_proven(seed: int) -> bool:
    """Whether the certificate, which knows nothing of the walk, bears out all that it says."""
    problem = kinked_problem(np.random.default_rng(seed))
    frontier = Frontier(problem)
    begin, end = frontier.start_score, frontier.max_score
    within = [max(begin, 0.0) + 1.0, max(begin, 0.0) + 100.0]
    price = solve_problem(problem, cost_weight=0.1)
    known = bool(price.gap[0] <= 1e-8 * (1.0 + price.price[0]))  # y = 0 only as far as F goes
    if math.isfinite(end):
        hair = 1e-7 * (1.0 + abs(end))
        known = known and frontier.at_score(end + hair).status[0] is Status.INFEASIBLE
        within = [score for score in (end - 1e4 * hair, (begin + end) / 2.0) if score > begin]
    return known and all(frontier.at_score(score).status[0] in SOLVED for score in within)


def agrees_at_the_end(seed: int) -> bool:
    """Compare the largest worst-case score with Clarabel's; False where that gives up."""
    problem = kinked_problem(np.random.default_rng(seed))
    x = cp.Variable(problem.n_features)
    lower, upper = problem.lower[0], problem.upper[0]
    low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    question = cp.Problem(
        cp.Maximize(worst_score_by_cvxpy(problem, x)),
        [x[low] >= lower[low], x[high] <= upper[high]],
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Solution may be inaccurate")
        try:
            theirs = question.solve(solver=cp.CLARABEL)
        except (cp.SolverError, UserWarning):
            return False
    assert largest_score(problem) == pytest.approx(theirs, rel=1e-5, abs=1e-5), seed
    return True


def test_a_walk_goes_on_beyond_a_kink_at_which_features_return():
    rng = np.random.default_rng(2969)
    problem = random_problem(rng, n=1, d=int(rng.integers(1, 20)), loss="logistic")
    problem = with_ellipsoid(rng, problem)
    assert largest_score(problem) == math.inf
    assert solve_problem(problem, guarantee=0.6).status[0] is Status.OPTIMAL
    assert agrees_with_clarabel(2969)


def test_a_length_that_y_has_is_not_taken_for_rounding():
    """Rows that hardly differ leave few digits of the gain, but enough of the norm."""
    open_rows = 0
    for seed in range(300):
        problem = nearly_dependent_problem(np.random.default_rng([51, seed]))
        status = solve_problem(problem, guarantee=0.6).status[0]
        price = solve_problem(problem, cost_weight=0.1)
        open_rows += status not in (*SOLVED, Status.INFEASIBLE)
        open_rows += price.gap[0] > 1e-8 * (1.0 + price.price[0])
    assert open_rows <= 1  # what is too ill-conditioned is not called solved


def test_a_tiny_ellipsoid_is_nearly_none():
    compared = 0
    for seed in range(60):
        problem = kinked_problem(np.random.default_rng([52, seed]))
        costs = []
        for radius in (0.0, 1e-12, 1e-10, 1e-8, 1e-7):
            robust_to = problem.robust_to.with_radius(radius)
            told = solve_problem(replace(problem, robust_to=robust_to), guarantee=0.6)
            costs.append(told.cost[0])
            if np.isfinite(costs[0]):
                assert told.status[0] in SOLVED, (seed, radius)
        if np.isfinite(costs[0]):
            np.testing.assert_allclose(costs, costs[0], rtol=1e-4, atol=1e-5)
            compared += 1
    assert compared > 30


def test_a_walk_that_begins_at_a_kink_does_not_end_there():
    covariance = np.array([[4.0, 0.0, -4.0], [0.0, 1.0, -1.0], [-4.0, -1.0, 5.0]])
    problem = RecourseProblem.build(
        [[1.0, 1.0]],
        [1.0, 0.2],
        -1.5,
        robust_to=Ellipsoid(covariance, 0.5),
        bounds=([[-2.0, -2.0]], [[4.0, 4.0]]),
    )
    best = largest_score(problem)
    assert Frontier(problem).at_score(best + 1e-6).status[0] is Status.INFEASIBLE


@pytest.mark.parametrize("hundred", range(4))
def test_the_end_of_a_walk_is_proven_to_be_the_end(hundred):
    lost = [seed for seed in range(100 * hundred, 100 * (hundred + 1)) if not is_proven(seed)]
    assert not lost


def test_the_end_of_a_walk_agrees_with_clarabel():
    assert sum(agrees_at_the_end(seed) for seed in range(60)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(1, 11))
def test_the_end_of_a_walk_is_proven_to_be_the_end_thousands_of_times(thousand):
    lost = [seed for seed in range(1000 * thousand, 1000 * (thousand + 1)) if not is_proven(seed)]
    assert not lost


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(1, 4))
def test_the_end_of_a_walk_agrees_with_clarabel_thousands_of_times(thousand):
    seeds = range(1000 * thousand, 1000 * (thousand + 1))
    assert sum(agrees_at_the_end(seed) for seed in seeds) > 650
