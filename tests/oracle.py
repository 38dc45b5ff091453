"""An independent answer: the problem as a person would type it into cvxpy, solved by Clarabel."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np

from holdfast import Ellipsoid, ModelList
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
    # in units in which every feature costs 1: an interior-point solver likes tame numbers
    units = 1.0 / row.feature_costs[0]
    x = cp.Variable(d)
    raw = cp.multiply(units, x)
    score = worst_score_by_cvxpy(row, raw)
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


def worst_score_by_cvxpy(row: RecourseProblem, x: cp.Expression) -> cp.Expression:
    """State the worst score over the set, from its definition."""
    models, d = row.robust_to, row.n_features
    score = row.coef[0] @ x + row.intercept[0]
    if isinstance(models, ModelList):
        others = [coef @ x + intercept for coef, intercept in models.models]
        return cp.minimum(score, *others)
    if isinstance(models, Ellipsoid):  # of its covariance, not of our factor of it
        variances, axes = np.linalg.eigh(models.covariance)
        root = axes * np.sqrt(np.maximum(variances, 0.0))
        root = root if models.intercept else np.vstack([root, np.zeros(root.shape[1])])
        return score - models.radius * cp.norm(root[:-1].T @ x + root[-1])
    scale = models.feature_scale(d)
    felt = cp.hstack([cp.multiply(scale, x), np.array([models.intercept_scale])])
    norm = cp.norm(felt, "inf") if math.isinf(models.dual_p) else cp.pnorm(felt, models.dual_p)
    return score - models.radius * norm


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
