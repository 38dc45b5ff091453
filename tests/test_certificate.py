"""Every answer proves itself: gaps over thousands of random problems, and bounds that never lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import price_of
from problems import EXPONENTS, random_problem
from scipy import special

from holdfast import NormBall, Status
from holdfast.certificate import price_bound, price_bound_under_lines, support_line
from holdfast.continuous.solve import solve_problem
from holdfast.problem import RecourseProblem
from holdfast.problem.losses import LOGISTIC, SQUARED_ERROR

CONVEX = ("logistic", "probit", "hinge", "squared_hinge")


def check_batch(rng: np.random.Generator) -> int:
    """Solve one random batch both ways, check every row, and return how many rows had a gap."""
    problem = random_problem(rng, loss=str(rng.choice(CONVEX)))
    lower, upper = problem.lower, problem.upper

    priced = solve_problem(problem, cost_weight=10.0 ** rng.uniform(-3, 0.3))
    assert np.all(np.abs(priced.gap) <= 1e-9 * (1 + priced.price))
    assert np.all((lower <= priced.recourse) & (priced.recourse <= upper))

    has_link = problem.loss.link is not None
    tau = float(rng.uniform(0.05, 0.95)) if has_link else 0.5
    sure = solve_problem(problem, guarantee=tau)
    found = np.isfinite(sure.cost)
    assert np.all(sure.worst_case_score[found] >= problem.loss.score(tau))
    assert np.all((lower <= sure.recourse) & (sure.recourse <= upper) | ~found[:, None])
    # near the limit of what can be reached, rounding of the score is multiplied by `multiplier`
    reach = np.abs(problem.coef) + problem.robust_to.radius * problem.robust_to.feature_scale(
        problem.n_features
    )
    size = 1 + (reach * np.abs(np.where(found[:, None], sure.recourse, 0.0))).sum(axis=1)
    slack = 1e-9 * (1 + sure.cost) + 1e-13 * sure.multiplier * size
    assert np.all((np.abs(sure.gap) <= slack)[found])
    # infeasible means proven; next to it, only a cost beyond all measure is
    assert np.all(sure.lower_bound[sure.status == Status.INFEASIBLE] == np.inf)
    assert np.all(sure.lower_bound[~found] >= 1e6)
    return priced.gap.size + int(found.sum())


def test_gaps_close():
    rng = np.random.default_rng(20)
    assert sum(check_batch(rng) for _ in range(150)) > 8_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_gaps_close_on_many_problems(seed):
    rng = np.random.default_rng([31, seed])
    assert sum(check_batch(rng) for _ in range(2000)) > 125_000


@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.sampled_from(EXPONENTS),
    log_mu=st.floats(-4, 4),
    weight=st.floats(0.001, 2.0),
)
@settings(max_examples=150, deadline=None)
def test_bound_never_exceeds_any_price(seed, p, log_mu, weight):
    """Weak duality: whatever point and multiplier the certificate is given, it never lies."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n=1, p=p)
    rows, d = problem.rows(), problem.n_features
    others = problem.X[0] + rng.normal(size=(200, d)) * rng.choice([0.1, 1, 10])
    others = np.clip(others / problem.feature_costs[0], problem.lower[0], problem.upper[0])
    others = np.vstack([others, problem.X, solve_problem(problem, cost_weight=weight).recourse])
    guess = others[rng.integers(len(others))]
    model = np.empty(d)
    mu, offset, intercept = support_line(
        guess,
        10.0**log_mu,
        rows.start[0],
        rows.coef[0],
        rows.intercept[0],
        rows.cost[0],
        rows.lower[0],
        rows.upper[0],
        problem.robust_to.numbers(d),
        np.empty(0),
        model,
    )
    distance = problem.robust_to.distance(rows.coef[0], rows.intercept[0], model, intercept)
    assert distance[0] <= problem.robust_to.radius * (1 + 1e-12)
    prices = price_of(problem, 0, others, weight)
    assert price_bound(LOGISTIC, weight, mu, offset) <= prices.min() + 1e-9 * (1 + prices.min())
    # the line lies below the frontier: below every point's own score and cost
    scores = problem.robust_to.worst_score(others, rows.coef, rows.intercept)
    costs = np.abs(others - rows.start[0]) @ rows.cost[0]
    assert np.all(mu * scores - offset <= costs + 1e-9 * (1 + costs + mu * np.abs(scores)))
    # and so does the bound for a loss that is not convex
    bent = special.expit(-scores) ** 2 + weight * costs
    start_score = problem.robust_to.worst_score(rows.start, rows.coef, rows.intercept)[0]
    bound = price_bound_under_lines(
        SQUARED_ERROR, weight, start_score, np.array([mu]), np.array([offset]), 1
    )
    assert bound <= bent.min() + 1e-9


@pytest.mark.parametrize("p", EXPONENTS)
def test_certificate_can_be_checked_by_hand(p):
    """Recompute the bound with numpy from what the certificate shows: multiplier and model."""
    rng = np.random.default_rng(3)
    problem = RecourseProblem.build(
        rng.normal(size=(30, 5)),
        rng.normal(size=5),
        -1.0,
        robust_to=NormBall(p, 0.3),
        bounds=(np.full(5, -4.0), np.full(5, 4.0)),
    )
    result = solve_problem(problem, guarantee=0.7)
    for i in np.flatnonzero(result.status == Status.OPTIMAL):
        proof, start = result.certificate(i), problem.X[i]
        coef, intercept = proof.worst_model
        change = problem.robust_to.distance(problem.coef, problem.intercept, coef, intercept)
        assert change[0] <= 0.3 * (1 + 1e-12)
        room = np.where(coef > 0, 4.0 - start, start + 4.0)
        over = np.maximum(proof.multiplier * np.abs(coef) - 1.0, 0.0)
        bound = proof.multiplier * (np.log(0.7 / 0.3) - intercept - coef @ start) - over @ room
        assert bound == pytest.approx(result.cost[i], abs=1e-9)
        # and the model is a worst one for the recourse
        score = coef @ result.recourse[i] + intercept
        assert score == pytest.approx(result.worst_case_score[i], abs=1e-9)


def test_a_worse_point_has_an_open_gap():
    """The certificate is a test that can fail: move the recourse and the gap opens."""
    problem = random_problem(np.random.default_rng(11), n=50, d=6, p=2.0, radius=0.3)
    good = solve_problem(problem, cost_weight=0.05)
    worse = good.recourse + 0.1 / problem.feature_costs
    prices = np.array([price_of(problem, i, worse[i : i + 1], 0.05)[0] for i in range(50)])
    assert np.all(prices - good.lower_bound > 1e-4)


def test_squared_error_gap_closes():
    rng = np.random.default_rng(9)
    closed = rows = 0
    for _ in range(60):
        problem = random_problem(rng, loss="squared_error")
        result = solve_problem(problem, cost_weight=10.0 ** rng.uniform(-3, 0))
        assert np.all(result.gap >= -1e-9)
        closed += int(np.sum(result.gap <= 1e-8))
        rows += len(result)
    # open gaps are reported as such; they occur where the radius equals the length of the model
    assert closed >= 0.998 * rows


@pytest.mark.parametrize("p", EXPONENTS)
def test_worst_models_are_worst_and_in_the_ball(p):
    rng = np.random.default_rng(14)
    for _ in range(10):
        problem = random_problem(rng, n=30, p=p)
        points = problem.X.copy()
        points[3, 0] = np.nan
        result = solve_problem(replace(problem, X=points), cost_weight=0.05)
        coef, intercept = result.worst_models()
        used = np.delete(np.arange(30), 3)
        change = [
            problem.row(i).robust_to.distance(
                problem.row(i).coef, problem.row(i).intercept, coef[i], intercept[i]
            )[0]
            for i in used
        ]
        assert np.all(np.array(change) <= problem.robust_to.radius * (1 + 1e-12))
        score = np.einsum("ij,ij->i", coef, result.recourse) + intercept
        np.testing.assert_allclose(score[used], result.worst_case_score[used], rtol=1e-7, atol=1e-7)
        assert np.isnan(coef[3]).any()
