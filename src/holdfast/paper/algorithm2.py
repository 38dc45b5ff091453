"""The paper's Algorithm 2 (p = inf, Kayastha, Gkatzelis and Jabbari): greedy, feature by feature.

In each round the feature with the steepest useful slope under the current worst model is moved as
far as it pays, but at most to 0, where the worst model changes its mind about it.

As printed, the algorithm takes ``sign(0) = 0``, so no step of a feature that stands at 0 keeps its
sign: it puts the feature back to 0 and chooses it again, for ever. Settled here: a feature at 0 can
only move along its own coefficient, and is felt by the adversary as soon as it does, with slope
``|w_i| - radius``; where that is not positive it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.machinery.compile import kernel
from holdfast.machinery.threads import over_rows
from holdfast.methods._kernels import sign_of
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.problem.losses import score_at_slope
from holdfast.problem.model_set import pick, worst_score_of


@dataclass(frozen=True)
class Algorithm2(Method):
    """The paper's Algorithm 2, its corner cases settled."""

    name = "algorithm2"
    summary = "the paper's Algorithm 2: greedy over features"
    guarantees = "optimal for linear scores, p = inf"
    exponents = (np.inf,)
    losses = ("logistic", "probit", "hinge", "squared_hinge")
    compiled = True

    def run(self, task: Task) -> Proposal:
        """Find a recourse for every row."""
        n, d = task.problem.X.shape
        recourse, steps = task.problem.X.copy(), np.zeros(n, dtype=np.int64)
        over_rows(
            algorithm2_rows,
            n,
            task.threads,
            task.problem.rows(),
            task.problem.robust_to.numbers(d),
            task.problem.loss.code,
            task.goal.amount,
            recourse,
            steps,
        )
        return Proposal(recourse, all_converged(n), steps)


@kernel
def attacked(x, coef, strength):
    """Coefficient that a move of this feature meets: 0 where no move helps."""
    if x != 0.0:
        return coef - strength * sign_of(x)
    return coef - strength * sign_of(coef) if abs(coef) > strength else 0.0


@kernel
def steepest_feature(x, coef, cost, ball):
    """Return the feature that buys most score for its cost, and its attacked coefficient."""
    chosen, felt, most = -1, 0.0, 0.0
    for j in range(x.size):
        slope = attacked(x[j], coef[j], ball.radius * ball.scale[j])
        if abs(slope) / cost[j] > most:
            chosen, felt, most = j, slope, abs(slope) / cost[j]
    return chosen, felt


@kernel
def algorithm2_rows(_, rows, ball, loss, cost_weight, recourse, steps, begin, end):
    for row in range(begin, end):
        x, cost = recourse[row], pick(rows.cost, row)
        coef, intercept = pick(rows.coef, row), pick(rows.intercept, row)
        for _ in range(2 * x.size + 1):  # each feature stops at 0 once, and crosses it once
            i, slope = steepest_feature(x, coef, cost, ball)
            if i < 0:
                break
            score = worst_score_of(x, coef, intercept, ball)
            bought = abs(slope) / cost[i]  # score for a unit of cost
            wanted = score_at_slope(loss, cost_weight / bought) - score
            if not wanted > 0.0:
                break
            steps[row] += 1
            moved = x[i] + wanted / slope
            if x[i] == 0.0 or moved * x[i] >= 0.0:
                x[i] = moved
                break
            x[i] = 0.0
