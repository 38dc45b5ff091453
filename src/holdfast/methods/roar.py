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
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import check_count, check_positive
from holdfast.machinery.threads import over_rows
from holdfast.methods._kernels import CONVERGED, STEP_LIMIT, sign_of
from holdfast.methods.base import Method, Proposal, Task, statuses
from holdfast.problem.ball import dual_norm, power
from holdfast.problem.costs import cost_of
from holdfast.problem.losses import sigmoid
from holdfast.problem.model_set import pick, score_of

_FIRST_DECAY, _SECOND_DECAY, _FLOOR = 0.9, 0.999, 1e-8  # of Adam, as everybody has them


class Pace(NamedTuple):
    """How Adam steps and when it ends; the type of it is what chooses the loss."""

    learning_rate: float
    tolerance: float
    max_steps: int
    stop: NDArray[np.int8]  # set to 1 by whoever interrupts the run


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
    """

    learning_rate: float = 1e-3
    tolerance: float = 1e-4
    max_steps: int = 1_000_000

    name = "roar"
    summary = "ROAR: Adam on the point, against the worst model at each step"
    guarantees = "none: stops where the price changes little"
    compiled = True

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_positive("tolerance", self.tolerance, or_zero=True)
        check_count("max_steps", self.max_steps)

    def run(self, task: Task) -> Proposal:
        """Find a recourse for every row."""
        n, d = task.problem.X.shape
        recourse, steps = task.problem.X.copy(), np.zeros(n, dtype=np.int64)
        run_end, stop = np.empty(n, dtype=np.int8), np.zeros(1, dtype=np.int8)
        over_rows(
            roar_rows,
            n,
            task.threads,
            task.problem.rows(),
            task.problem.robust_to.numbers(d),
            task.goal.amount,
            self.pace(stop),
            recourse,
            steps,
            run_end,
            private=lambda: (np.empty(d), np.empty(d), np.empty(d)),
            least_rows=1,
            stop=stop,  # a million steps take long
        )
        return Proposal(recourse, statuses(run_end), steps)

    def pace(self, stop: NDArray[np.int8]) -> Any:
        """Return what the kernel reads of the settings."""
        return Pace(float(self.learning_rate), float(self.tolerance), int(self.max_steps), stop)


@kernel
def side_of(x):
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
        out[j] = coef[j] - ball.radius * ball.scale[j] * side_of(x[j]) * share
    return norm


@kernel
def cross_entropy(score):
    """Cross-entropy of the score and its steepness."""
    return math.log1p(math.exp(-abs(score))) + max(-score, 0.0), sigmoid(-score)


def loss_and_slope(score: float, pace: Any) -> tuple[float, float]:
    """Loss of the score and its steepness, for a pace of this type."""
    raise NotImplementedError("runs in compiled code only")


@overload(loss_and_slope)
def _loss_and_slope(score, pace):
    if pace.instance_class is Pace:
        return lambda score, pace: cross_entropy(score)
    return None


@kernel
def roar_rows(private, rows, ball, cost_weight, pace, recourse, steps, run_end, begin, end):
    attacked, first, second = private
    for row in range(begin, end):
        x, start, cost = recourse[row], rows.start[row], pick(rows.cost, row)
        coef, intercept = pick(rows.coef, row), pick(rows.intercept, row)
        first[:] = 0.0
        second[:] = 0.0
        first_left, second_left, before = 1.0, 1.0, 1.0
        run_end[row] = STEP_LIMIT
        for step in range(1, pace.max_steps + 1):
            if pace.stop[0] != 0:
                return
            norm = attack(x, coef, ball, attacked)
            score = score_of(x, coef, intercept) - ball.radius * norm
            loss, slope = loss_and_slope(score, pace)
            price = loss + cost_weight * cost_of(x, start, cost)
            first_left *= _FIRST_DECAY
            second_left *= _SECOND_DECAY
            for j in range(x.size):
                gradient = cost_weight * cost[j] * sign_of(x[j] - start[j]) - slope * attacked[j]
                first[j] += (1.0 - _FIRST_DECAY) * (gradient - first[j])
                second[j] += (1.0 - _SECOND_DECAY) * (gradient * gradient - second[j])
                size = math.sqrt(second[j] / (1.0 - second_left)) + _FLOOR
                x[j] -= pace.learning_rate * first[j] / (1.0 - first_left) / size
            steps[row] = step
            if abs(before - price) <= pace.tolerance:
                run_end[row] = CONVERGED
                break
            before = price
