"""Linear links between columns: against every discrete choice tried by force with cvxpy."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from discrete_problems import all_choices, random_discrete

from holdfast import Status
from holdfast.discrete import DiscreteProblem, Links, solve_discrete, solve_linked

FOUND = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)
# where numbers without bounds can be touched or not, that there is no answer may stay unproven
LOST = (Status.INFEASIBLE, Status.GAP_OPEN)


def random_links(rng: np.random.Generator, problem: DiscreteProblem) -> Links:
    """Return one or two links; most rows keep them as they are."""
    d = problem.problem.n_features
    matrix = np.round(rng.normal(size=(int(rng.integers(1, 3)), d)), 1)
    value = problem.problem.X @ matrix.T
    room = rng.exponential(size=value.shape)
    lower = np.where(rng.random(value.shape) < 0.5, -np.inf, value - 0.3 * room)
    upper = value + room - (0.3 if rng.random() < 0.2 else 0.0)
    return Links(matrix, lower, np.maximum(upper, lower))


def by_force(problem: DiscreteProblem, links: Links, goal: dict[str, float]) -> float:
    """Return the least price of the only row."""
    batch, fixed_costs = all_choices(problem, 0)
    ball, d, best = batch.robust_to, batch.n_features, math.inf
    for k in range(batch.n_rows):
        row = batch.row(k)
        x = cp.Variable(d)
        felt = cp.hstack([cp.multiply(ball.feature_scale(d), x), np.array([ball.intercept_scale])])
        norm = cp.norm(felt, "inf") if math.isinf(ball.dual_p) else cp.pnorm(felt, ball.dual_p)
        score = row.coef[0] @ x + row.intercept[0] - ball.radius * norm
        cost = row.feature_costs[0] @ cp.abs(x - row.X[0])
        limits = [
            (x[j] >= row.lower[0, j]) if side < 0 else (x[j] <= row.upper[0, j])
            for j in range(d)
            for side in (-1, 1)
            if np.isfinite(row.lower[0, j] if side < 0 else row.upper[0, j])
        ]
        value = links.matrix @ x
        limits += [value[r] >= v for r, v in enumerate(links.lower[0]) if np.isfinite(v)]
        limits += [value <= links.upper[0]]
        if "guarantee" in goal:
            limits.append(score >= batch.loss.score(goal["guarantee"]))
            question = cp.Problem(cp.Minimize(cost), limits)
            weight = 1.0
        else:
            weight = goal["cost_weight"]
            question = cp.Problem(cp.Minimize(cp.logistic(-score) + weight * cost), limits)
        try:
            question.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return math.nan
        if question.status == "optimal":
            best = min(best, float(question.value) + weight * float(fixed_costs[k]))
    return best


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_agrees_with_every_choice_tried(p, mode):
    rng = np.random.default_rng([79, int(min(p, 9)), len(mode)])
    solved = 0
    for _ in range(16):
        problem = random_discrete(rng, n=1, p=p, whole=1, continuous=2, groups=1, reach=1)
        links = random_links(rng, problem)
        goal = {"guarantee": 0.35} if mode == "guarantee" else {"cost_weight": 0.2}
        ours, theirs = solve_linked(problem, links, **goal), by_force(problem, links, goal)
        if math.isnan(theirs):
            continue
        if math.isinf(theirs):
            assert ours.status[0] in LOST
            assert np.isnan(ours.recourse).all()
            continue
        solved += 1
        assert ours.status[0] in FOUND
        assert ours.price[0] == pytest.approx(theirs, rel=1e-6, abs=1e-6)
        assert ours.lower_bound[0] <= theirs + 1e-6
        if mode == "guarantee":
            assert ours.worst_case_score[0] >= problem.problem.loss.score(0.35)
    assert solved >= 3


@pytest.mark.parametrize("goal", [{"guarantee": 0.6}, {"cost_weight": 0.1}])
def test_without_links_it_is_the_search(goal):
    rng = np.random.default_rng(83)
    for p in (1.0, 2.0, math.inf):
        for _ in range(4):
            problem = random_discrete(rng, n=2, p=p, whole=2, groups=2, continuous=2)
            d = problem.problem.n_features
            none = Links(np.empty((0, d)), np.empty((1, 0)), np.empty((1, 0)))
            ours, theirs = solve_linked(problem, none, **goal), solve_discrete(problem, **goal)
            for i in range(2):
                if theirs.status[i] is Status.INFEASIBLE:
                    assert ours.status[i] in LOST
                    assert np.isnan(ours.recourse[i]).all()
                else:
                    assert ours.price[i] == pytest.approx(theirs.price[i], rel=1e-6, abs=1e-6)
                    assert ours.price[i] >= theirs.lower_bound[i] - 1e-9


def test_unusable_rows_and_wrong_shapes():
    rng = np.random.default_rng(89)
    problem = random_discrete(rng, n=2, p=2.0, whole=1, groups=0, continuous=1, max_changes=None)
    points = problem.problem.X.copy()
    points[1, 0] = np.nan
    broken = replace(problem, problem=replace(problem.problem, X=points))
    links = Links(np.ones((1, 2)), np.full((1, 1), -np.inf), np.full((1, 1), np.inf))
    assert solve_linked(broken, links, cost_weight=0.1).status[1] is Status.INVALID_INPUT
    with pytest.raises(ValueError, match="matrix of links"):
        solve_linked(problem, replace(links, matrix=np.ones((1, 3))), cost_weight=0.1)
    with pytest.raises(ValueError, match="lower of links"):
        solve_linked(problem, replace(links, lower=np.ones((3, 1))), cost_weight=0.1)
