"""An independent answer: the problem as a person would type it into cvxpy, solved by Clarabel."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np

from holdfast.problem import RecourseProblem


def oracle(
    problem: RecourseProblem,
    i: int = 0,
    *,
    cost_weight: float | None = None,
    target: float | None = None,
) -> tuple[float, np.ndarray]:
    """Return (price, point) for row i: least price, or least cost of the target score."""
    row, d = problem.row(i), problem.n_features
    ball = problem.robust_to
    # in units in which every feature costs 1: an interior-point solver likes tame numbers
    units = 1.0 / row.feature_costs[0]
    x = cp.Variable(d)
    raw = cp.multiply(units, x)
    felt = cp.hstack([cp.multiply(ball.feature_scale(d), raw), np.array([ball.intercept_scale])])
    norm = cp.norm(felt, "inf") if math.isinf(ball.dual_p) else cp.pnorm(felt, ball.dual_p)
    score = row.coef[0] @ raw + row.intercept[0] - ball.radius * norm
    cost = cp.norm1(x - row.X[0] / units)
    lower, upper = row.lower[0] / units, row.upper[0] / units
    constraints = [x[j] >= lower[j] for j in range(d) if np.isfinite(lower[j])]
    constraints += [x[j] <= upper[j] for j in range(d) if np.isfinite(upper[j])]
    if target is not None:
        question = cp.Problem(cp.Minimize(cost), [*constraints, score >= target])
    else:
        loss = {
            "logistic": cp.logistic(-score),
            "hinge": cp.pos(1 - score),
            "squared_hinge": cp.square(cp.pos(1 - score)),
        }[problem.loss.name]
        question = cp.Problem(cp.Minimize(loss + cost_weight * cost), constraints)
    question.solve(solver=cp.CLARABEL)
    value = math.inf if question.value is None else float(question.value)
    return value, (np.full(d, np.nan) if x.value is None else x.value * units)


def price_of(
    problem: RecourseProblem, i: int, points: np.ndarray, cost_weight: float
) -> np.ndarray:
    """Price of any points for row i, straight from the definition, with numpy alone."""
    row, ball, d = problem.row(i), problem.robust_to, problem.n_features
    scale = np.append(ball.feature_scale(d), ball.intercept_scale)
    felt = np.abs(np.column_stack([points, np.ones(len(points))])) * scale
    score = points @ row.coef[0] + row.intercept[0]
    score = score - ball.radius * np.linalg.norm(felt, ord=ball.dual_p, axis=1)
    cost = np.abs(points - row.X[0]) @ row.feature_costs[0]
    return np.logaddexp(0.0, -score) + cost_weight * cost
