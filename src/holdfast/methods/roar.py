"""ROAR (Upadhyay, Joshi and Lakkaraju 2021): Adam on the point against the worst model.

At each step the worst model for the current point is put in (a closed form), and Adam moves the
point down the gradient of the price under that model. It stops when the price changes by no more
than a tolerance, as the authors' code does; that is often far from the optimum.

Each row is a run of its own, compiled and spread over threads: a row that has stopped costs
nothing, and a batch gives the very numbers of a row-at-a-time run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import check_count, check_flag, check_positive
from holdfast.machinery.threads import over_rows
from holdfast.methods._kernels import CONVERGED, STEP_LIMIT, share_left_by_bceloss, sign_of
from holdfast.methods.base import Found, Method, Task, statuses
from holdfast.problem.ball import dual_norm, pick, power, score_of
from holdfast.problem.costs import cost_of
from holdfast.problem.losses import sigmoid

_FIRST_DECAY, _SECOND_DECAY, _FLOOR = 0.9, 0.999, 1e-8  # of Adam, as everybody has them

# where torch's BCELoss cuts the loss
_LARGEST_LOSS = 100.0


@dataclass(frozen=True)
class Roar(Method):
    """ROAR with the settings of the authors' code.

    Parameters
    ----------
    learning_rate : float
        Of Adam.
    tolerance : float
        Stop when the price changes by no more than this.
    max_steps : int
        The authors' code has no limit.
    clamped_loss : bool
        Take the loss as torch's `BCELoss` has it: flat where the probability is below 1e-12, so
        that a point there never leaves its place. For reproducing the paper alone.
    """

    learning_rate: float = 1e-3
    tolerance: float = 1e-4
    max_steps: int = 1_000_000
    clamped_loss: bool = False

    name = "roar"
    summary = "ROAR: Adam on the point, the worst model put in at each step"
    guarantees = "none; stops where the price changes little"
    compiled = True

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_positive("tolerance", self.tolerance, or_zero=True)
        check_count("max_steps", self.max_steps)
        check_flag("clamped_loss", self.clamped_loss)

    def run(self, task: Task) -> Found:
        """Find a recourse for every row."""
        n, d = task.problem.X.shape
        recourse, steps = task.problem.X.copy(), np.zeros(n, dtype=np.int64)
        outcome, stop = np.empty(n, dtype=np.int8), np.zeros(1, dtype=np.int8)
        over_rows(
            roar_rows,
            n,
            task.n_jobs,
            task.problem.rows(),
            task.problem.robust_to.numbers(d),
            task.cost_weight,
            (float(self.learning_rate), float(self.tolerance), int(self.max_steps), stop),
            bool(self.clamped_loss),
            recourse,
            steps,
            outcome,
            private=lambda: (np.empty(d), np.empty(d), np.empty(d)),
            least_rows=1,
            stop=stop,  # a million steps take long
        )
        return Found(recourse, statuses(outcome), steps)


@kernel
def turn(x):
    """Sign as the authors take it: +1 at 0."""
    return -1.0 if x < 0.0 else 1.0


@kernel
def attack(x, coef, ball, out):
    """Write the coefficients of a worst model for x: of several, that of the first feature."""
    norm = dual_norm(x, ball.scale, ball.intercept_scale, ball.q)
    spent = False
    for j in range(x.size):
        felt = ball.scale[j] * abs(x[j])
        if ball.p == math.inf:
            share = 1.0
        elif ball.p == 1.0:
            share = 1.0 if felt == norm and not spent else 0.0
            spent = spent or felt == norm
        else:
            share = power(felt / norm, ball.q - 1.0) if norm > 0.0 else 0.0
        out[j] = coef[j] - ball.radius * ball.scale[j] * turn(x[j]) * share
    return norm


@kernel
def loss_and_slope(score, clamped):
    """Cross-entropy of the score and its steepness."""
    loss = math.log1p(math.exp(-abs(score))) + max(-score, 0.0)
    slope = sigmoid(-score)
    if clamped:
        loss = min(loss, _LARGEST_LOSS)
        slope *= share_left_by_bceloss(score)
    return loss, slope


@kernel
def roar_rows(
    private, rows, ball, cost_weight, settings, clamped, recourse, steps, outcome, begin, end
):
    attacked, first, second = private
    learning_rate, tolerance, max_steps, stop = settings
    for row in range(begin, end):
        x, start, cost = recourse[row], rows.points[row], pick(rows.cost, row)
        coef, intercept = pick(rows.coef, row), pick(rows.intercept, row)
        first[:] = 0.0
        second[:] = 0.0
        first_left, second_left, before = 1.0, 1.0, 1.0
        outcome[row] = STEP_LIMIT
        for step in range(1, max_steps + 1):
            if stop[0] != 0:
                return
            norm = attack(x, coef, ball, attacked)
            score = score_of(x, coef, intercept) - ball.radius * norm
            loss, slope = loss_and_slope(score, clamped)
            price = loss + cost_weight * cost_of(x, start, cost)
            first_left *= _FIRST_DECAY
            second_left *= _SECOND_DECAY
            for j in range(x.size):
                gradient = cost_weight * cost[j] * sign_of(x[j] - start[j]) - slope * attacked[j]
                first[j] += (1.0 - _FIRST_DECAY) * (gradient - first[j])
                second[j] += (1.0 - _SECOND_DECAY) * (gradient * gradient - second[j])
                size = math.sqrt(second[j] / (1.0 - second_left)) + _FLOOR
                x[j] -= learning_rate * first[j] / (1.0 - first_left) / size
            steps[row] = step
            if abs(before - price) <= tolerance:
                outcome[row] = CONVERGED
                break
            before = price
