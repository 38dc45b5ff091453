"""What docs/mathematics.md says, checked with numpy, scipy and cvxpy against what the code does."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from discrete_problems import by_force, random_discrete
from problems import EXPONENTS, random_problem
from scipy import optimize, special

from holdfast import NormBall, frontier, solve
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.solve import solve_problem
from holdfast.core import largest_score
from holdfast.core.l1 import slope_in_size, smallest_size
from holdfast.core.row import Row
from holdfast.discrete import solve_discrete
from holdfast.problem.losses import LOSSES, SQUARED_ERROR_BEND

SHARP, CURVED = (1.0, np.inf), (1.1, 1.5, 2.0, 3.0)
PAGE = Path(__file__).parent.parent / "docs" / "mathematics.md"


def test_every_file_that_the_page_names_is_there():
    page = PAGE.read_text()
    for name in re.findall(r"`((?:core|discrete)/\w+\.py|certificate\.py)`", page):
        assert (PAGE.parent.parent / "src" / "holdfast" / name).is_file(), name
    assert "](certificate.md)" in page


# ---- one frontier ------------------------------------------------------------------------------


@pytest.mark.parametrize("p", SHARP)
def test_the_multiplier_is_the_cost_of_the_last_unit(p):
    """Just before a breakpoint the slope on its left; `to_frame` shows the larger one beyond it."""
    rng = np.random.default_rng(0)
    kinks = 0
    for _ in range(30):
        problem = random_problem(rng, n=1, p=p, d=5)
        curve = Frontier(problem)
        table = curve.to_frame()
        scores, costs = table["worst_case_score"].to_numpy(), table["cost"].to_numpy()
        slopes = np.diff(costs) / np.diff(scores)
        for k in range(1, len(scores) - 1):
            before = scores[k] - 1e-6 * (scores[k] - scores[k - 1])
            multiplier = curve.at_score(before).multiplier[0]
            assert multiplier == pytest.approx(slopes[k - 1], rel=1e-6)
            assert table["multiplier"][k] == pytest.approx(slopes[k], rel=1e-6)
            kinks += slopes[k] > 1.01 * multiplier
    assert kinks > 20


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("loss", ["logistic", "probit", "squared_hinge"])
def test_the_multiplier_of_a_price_is_where_buying_no_longer_pays(p, loss):
    rng = np.random.default_rng(1)
    moved = 0
    for _ in range(5):
        problem = random_problem(rng, n=20, p=p, loss=loss, radius=0.1)
        result = solve_problem(problem, cost_weight=0.2)
        steepness = problem.loss.slope(result.worst_case_score)
        np.testing.assert_allclose(0.2 * result.multiplier, steepness, rtol=1e-5, atol=1e-9)
        moved += int(np.sum(result.cost > 0))
    assert moved > 20


def test_no_finite_multiplier_is_right_at_the_end_of_reach():
    """With p = 2, one feature, w < radius: every line stays below the cost of the end."""
    w, radius = 0.6, 1.0
    end = w / np.sqrt(radius**2 - w**2)  # where w x - radius sqrt(x^2 + 1) is largest

    def score(x):
        return w * x - radius * np.sqrt(x**2 + 1.0)

    curve = frontier([0.0], [w], 0.0, robust_to=NormBall(2, radius))
    assert curve.max_score == pytest.approx(score(end))
    below = []
    for mu in 10.0 ** np.arange(1, 7):
        push = (w - 1.0 / mu) / radius  # x(mu), from the optimality condition
        x = push / np.sqrt(1.0 - push**2)
        below.append(end - (x + mu * (score(end) - score(x))))
    assert np.all(np.array(below) > 0.0)  # never tight ...
    assert np.all(np.diff(np.log(below)) < -1.0)  # ... but as near as one likes
    steep = [curve.at_score(score(end) - missing).multiplier[0] for missing in (1e-3, 1e-5, 1e-7)]
    assert np.all(np.diff(np.log(steep)) > 2.0)  # grows like 1 / sqrt(missing)


def test_the_end_of_reach_may_be_finite_and_attained_nowhere():
    curve = frontier([0.0], [1.0], 0.0, robust_to=NormBall(2, 1.0))  # x - sqrt(x^2 + 1) rises to 0
    assert curve.max_score == pytest.approx(0.0, abs=1e-5)
    points = np.array([[1.0], [1e2], [1e4], [1e6]])
    assert np.all(NormBall(2, 1.0).worst_score(points, [1.0], 0.0) < 0.0)


@pytest.mark.parametrize("p", EXPONENTS)
def test_below_the_end_of_reach_the_line_is_tight(p):
    rng = np.random.default_rng(2)
    checked = 0
    for _ in range(6):
        problem = random_problem(rng, n=1, p=p, d=4, radius=0.3)
        end = min(largest_score(problem), 4.0)
        curve = Frontier(problem)
        target = curve.start_score + 0.9 * (end - curve.start_score)
        if end > curve.start_score + 1e-6:
            result = solve_problem(problem, guarantee=float(special.expit(target)))
            refused = problem.score(result.recourse_array)[0] < 0.0
            assert result.status[0] == ("still refused" if refused else "optimal")
            assert np.isfinite(result.multiplier[0])
            checked += 1
    assert checked > 2


# ---- the solvers' formulas ---------------------------------------------------------------------


@pytest.mark.parametrize("p", CURVED)
def test_the_optimality_conditions_of_the_curved_balls(p):
    """With rho > 0: rho x = clip(clip(rho x0, r push, r pull), rho lower, rho upper)."""
    rng = np.random.default_rng(3)
    n, d, radius = 40, 5, 0.4
    points, coef = rng.normal(size=(n, d)), np.abs(rng.normal(size=d))
    rho, cost = rng.uniform(0.3, 2.0, size=d), rng.uniform(0.5, 2.0, size=d)
    lower, upper = points - rng.exponential(size=(n, d)), points + rng.exponential(size=(n, d))
    ball = NormBall(p, radius, scale=rho)
    result = solve(
        points,
        coef,
        -0.5,
        robust_to=ball,
        feature_costs=cost,
        bounds=(lower, upper),
        cost_weight=0.1,
    )
    x = result.recourse
    felt = np.column_stack([rho * x, np.ones(n)])
    r = np.linalg.norm(felt, ord=ball.dual_p, axis=1)[:, None]

    def psi(a):
        return np.sign(a) * np.abs(a) ** (p - 1)

    gain = 1.0 / result.multiplier[:, None]
    push, pull = (psi((coef + sign * gain * cost) / (radius * rho)) for sign in (-1, 1))
    expected = np.clip(np.clip(rho * points, r * push, r * pull), rho * lower, rho * upper)
    np.testing.assert_allclose(rho * x, expected, atol=1e-6)
    assert np.sum(result.cost > 0) > 10


def test_the_derivative_in_the_size_of_the_l1_ball():
    """`slope_in_size` is g H'(M): H by linear programming, its derivative by differences."""
    rng = np.random.default_rng(4)
    checked = 0
    for _ in range(60):
        d, radius, target = 4, 0.3, 0.5
        row = Row(
            coef=np.abs(rng.normal(size=d)),
            start=rng.normal(size=d),
            lower=np.full(d, -np.inf),
            upper=rng.choice([2.5, np.inf], size=d),
            cost=rng.uniform(0.5, 2.0, size=d),
        )
        rho = rng.uniform(0.5, 2.0, size=d)
        ball = NormBall(1, radius, scale=rho, intercept=0.3).numbers(d)
        size = smallest_size(row, ball) + rng.uniform(0.2, 2.0)
        sizes = (size - 1e-5, size, size + 1e-5)
        below, here, above = (least_cost(row, rho, radius, target, each) for each in sizes)
        left, right = (here[0] - below[0]) / 1e-5, (above[0] - here[0]) / 1e-5
        if not np.isfinite(left + right) or abs(left - right) > 1e-4 or here[1] == 0.0:
            continue  # out of reach, at a kink, or nothing bought
        gain = 1.0 / here[1]
        assert slope_in_size(row, ball, size, True, gain) == pytest.approx(gain * left, abs=1e-4)
        checked += 1
    assert checked > 20


def least_cost(row, rho, radius, target, size):
    """Return (H(M), its multiplier): minimise cost over the box, score at least the target."""
    d = row.coef.size  # variables: x, and a bound on |x - x0|
    away = np.block([[np.eye(d), -np.eye(d)], [-np.eye(d), -np.eye(d)]])
    score = np.append(-row.coef, np.zeros(d))
    edge = size / rho
    answer = optimize.linprog(
        np.append(np.zeros(d), row.cost),
        A_ub=np.vstack([score, away]),
        b_ub=np.concatenate([[-(target + radius * size)], row.start, -row.start]),
        bounds=[*zip(-edge, np.minimum(edge, row.upper), strict=True), *[(0, None)] * d],
        method="highs",
    )
    if answer.x is None:
        return np.inf, 0.0
    return answer.fun, -answer.ineqlin.marginals[0]


def test_the_squared_error_is_nowhere_steeper_than_its_bend():
    """Its score at a steepness that it never has is the bend, not -inf as for a convex loss."""
    loss = LOSSES["squared_error"]
    assert loss.slope(SQUARED_ERROR_BEND) == pytest.approx(8 / 27)
    assert np.all(loss.slope(np.linspace(-20, 20, 4001)) <= 8 / 27)
    np.testing.assert_array_equal(loss.score_at_slope([8 / 27, 0.5, 2.0]), SQUARED_ERROR_BEND)
    assert LOSSES["logistic"].score_at_slope(1.5) == -np.inf
    # two scores are as steep as 0.2: the one beyond the bend comes back
    t = float(loss.score_at_slope(0.2))
    other = optimize.brentq(lambda z: float(loss.slope(z)) - 0.2, -20.0, SQUARED_ERROR_BEND)
    assert other < SQUARED_ERROR_BEND < t


# ---- how the answers change --------------------------------------------------------------------


@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_the_price_is_concave_in_the_cost_weight(p, loss):
    """And its slope is the cost of the answer: the cost does not rise, the loss does not fall."""
    rng = np.random.default_rng(5)
    weights = np.linspace(0.02, 0.6, 13)
    bent = 0
    for _ in range(4):
        problem = random_problem(rng, n=25, p=p, d=5, radius=0.2, loss=loss)
        results = [solve_problem(problem, cost_weight=float(weight)) for weight in weights]
        price = np.array([result.price for result in results])
        cost = np.array([result.cost for result in results])
        slack = 1e-8 * (1 + price.max(axis=0))
        assert np.all(np.diff(price, axis=0) >= -slack)
        assert np.all(np.diff(price, 2, axis=0) <= slack)
        bent += int(np.sum(np.diff(price, 2, axis=0) < -1e-4))
        assert np.all(np.diff(cost, axis=0) <= 1e-6 * (1 + cost.max(axis=0)))
        loss_paid = np.array([result.worst_case_loss for result in results])
        assert np.all(np.diff(loss_paid, axis=0) >= -1e-6)
        step = np.diff(weights)[:, None]
        assert np.all(np.diff(price, axis=0) <= step * cost[:-1] + slack)
        assert np.all(np.diff(price, axis=0) >= step * cost[1:] - slack)
    assert bent > 10


@pytest.mark.parametrize("p", EXPONENTS)
def test_a_guarantee_never_gets_cheaper_as_radius_p_or_target_grow(p):
    rng = np.random.default_rng(6)
    for _ in range(4):
        problem = random_problem(rng, n=25, p=p, d=5, radius=0.2)

        def costs(tau=0.6, problem=problem, **ball):
            changed = replace(problem, robust_to=replace(problem.robust_to, **ball))
            return solve_problem(changed, guarantee=tau).cost

        larger = [q for q in EXPONENTS if q >= p]
        for rising in (
            [costs(radius=radius) for radius in (0.0, 0.1, 0.2, 0.5)],
            [costs(p=q) for q in larger],
            [costs(tau=tau) for tau in (0.2, 0.5, 0.6, 0.9)],
        ):
            for one, next_one in itertools.pairwise(rising):
                assert np.all(next_one >= one * (1 - 1e-8) - 1e-8)  # inf: out of reach


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_end_of_reach_is_convex_in_the_radius(p):
    rng = np.random.default_rng(7)
    for _ in range(6):
        problem = random_problem(rng, n=1, p=p, d=4)
        bounds = problem.X - 2.0 / problem.feature_costs, problem.X + 2.0
        boxed = replace(problem, lower=bounds[0], upper=np.maximum(bounds[1], problem.X))
        radii = np.linspace(0.0, 1.0, 9)
        ends = [
            largest_score(replace(boxed, robust_to=replace(problem.robust_to, radius=a)))
            for a in radii
        ]
        slack = 1e-9 * (1 + np.abs(ends).max())
        assert np.all(np.diff(ends) <= slack)
        assert np.all(np.diff(ends, 2) >= -slack)


# ---- the search --------------------------------------------------------------------------------


def test_a_search_proves_its_answer_to_half_the_tolerance():
    rng = np.random.default_rng(8)
    tolerance, rows, short = 0.2, 0, 0
    for _ in range(40):
        problem = random_discrete(rng, n=2, p=2.0, whole=2, groups=2, reach=3)
        answer = solve_discrete(problem, cost_weight=0.1, tolerance=tolerance)
        for i in range(2):
            best = by_force(problem, i, cost_weight=0.1)
            price, bound = answer.price[i], answer.lower_bound[i]
            assert bound - 1e-9 <= best <= price + 1e-9
            assert price - bound <= 0.5 * tolerance * (1 + price) + 1e-9
            rows += 1
            short += price > best + 1e-6
    assert rows == 80
    assert short > 0  # the tolerance is used: some answer is not the very best
