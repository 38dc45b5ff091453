"""The paper's Algorithm 1 (p = 1): a convex subproblem for each model that may be the worst.

An L1 ball puts all of its radius into one coefficient, that of the largest ``|x_i|`` (the intercept
counts as a feature that is always 1). So there are 2d + 1 candidates for the worst model, and each
is the worst one on a convex region: ``sign * x_i >= max(1, |x_j|)``, or ``|x_j| <= 1`` for the
intercept. On its region the problem is convex and the model fixed: projected subgradient finds the
best point of each region, and the best of these is the recourse.

Kept for study: `exact` solves the same problem to the last digit, some thousand times faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import check_count, check_positive
from holdfast.machinery.threads import over_rows
from holdfast.methods._kernels import CONVERGED, STEP_LIMIT, sign_of
from holdfast.methods.base import Method, Proposal, Task, statuses
from holdfast.paper.bceloss import share_left_by_bceloss
from holdfast.problem.ball import require_ball
from holdfast.problem.costs import cost_of
from holdfast.problem.losses import loss_slope, loss_value
from holdfast.problem.model_set import pick, score_of


@dataclass(frozen=True)
class Algorithm1(Method):
    """The paper's Algorithm 1, with the settings of its authors.

    Parameters
    ----------
    step : float
        The step at time t is ``step / sqrt(t)``.
    max_steps : int
        Steps for each of the 2d + 1 subproblems.
    tolerance : float
        A subproblem stops when no feature moves by more than this.

    Examples
    --------
    >>> import holdfast
    >>> from holdfast.paper import Algorithm1
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> found = holdfast.find_recourse(
    ...     [[0.0, 2.0]], ([1.0, -0.5], -1.0), Algorithm1(), robust_to=ball, cost_weight=0.1
    ... )
    >>> bool(0.0 <= found.gap[0] < 0.01)
    True
    """

    step: float = 2.5
    max_steps: int = 2000
    tolerance: float = 1e-7

    name = "algorithm1"
    summary = "the paper's Algorithm 1: projected subgradient for each of 2d + 1 candidate models"
    guarantees = "approaches the optimum from above as steps grow (linear scores, p = 1)"
    exponents = (1.0,)
    losses: ClassVar[tuple[str, ...]] = ("logistic", "probit", "hinge", "squared_hinge")
    honours_scale = False
    compiled = True
    repeats_the_code: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_positive("tolerance", self.tolerance, or_zero=True)
        check_count("max_steps", self.max_steps)

    def run(self, task: Task) -> Proposal:
        """Find a recourse for every row."""
        loss = task.problem.loss
        n, d = task.problem.X.shape
        recourse, steps = task.problem.X.copy(), np.zeros(n, dtype=np.int64)
        run_end = np.empty(n, dtype=np.int8)
        ball = require_ball(task.problem.robust_to, self.name)
        over_rows(
            algorithm1_rows,
            n,
            task.threads,
            task.problem.rows(),
            (ball.radius, ball.intercept_scale),
            (loss.code, task.goal.amount),
            (float(self.step), int(self.max_steps), float(self.tolerance), self.repeats_the_code),
            recourse,
            steps,
            run_end,
            private=lambda: tuple(np.empty(d) for _ in range(4)),
            least_rows=1,
        )
        return Proposal(recourse, statuses(run_end), steps)


@dataclass(frozen=True)
class Algorithm1AsPublished(Algorithm1):
    """Algorithm 1 with two habits of the authors' code, for reproducing the paper alone.

    The slope is that of torch's `BCELoss`, nothing where the probability is below 1e-12, and a
    region that does not hold the point is searched from 0. A point deep in its own region then
    never leaves its place there, and the answer is the best of the other regions.
    """

    name = "algorithm1_as_published"
    summary = "Algorithm 1 as its authors' code has it"
    guarantees = "none: where the model is sure, a point never leaves its own region"
    losses = ("logistic",)
    repeats_the_code = True


@kernel
def project_region(point: Any, i: Any, sign: Any, floor: Any) -> Any:
    """Project onto ``sign * x_i >= max(floor, |x_j|)``, in place.

    For x_i = M the others are clipped to [-M, M], and M balances what they lose:
    ``M - y_i = sum_j (|y_j| - M)_+`` with y_i turned by the sign. Newton's method from the left
    never passes the root of this concave function, and ends after at most d steps.
    """
    start = sign * point[i]
    size = start
    for _ in range(point.size + 1):
        total, count = start, 1
        for j in range(point.size):
            if j != i and abs(point[j]) > size:
                total += abs(point[j])
                count += 1
        newer = total / count
        if newer <= size:
            break
        size = newer
    size = max(size, floor)
    for j in range(point.size):
        point[j] = min(max(point[j], -size), size)
    point[i] = sign * size


@kernel
def holds(point, i, sign, floor):
    """Whether a region holds the point."""
    size = 0.0
    for j in range(point.size):
        size = max(size, abs(point[j]))
    return size <= floor if i < 0 else sign * point[i] >= max(size, floor)


@kernel
def price_under(x, start, cost, coef, intercept, goal):
    loss, cost_weight = goal
    return loss_value(loss, score_of(x, coef, intercept)) + cost_weight * cost_of(x, start, cost)


@kernel
def descend_region(start, cost, coef, intercept, region, goal, settings, x, last, best):
    """Projected subgradient on one region; the best iterate is kept. Return price, steps, end."""
    i, sign, floor = region
    loss, cost_weight = goal
    first_step, max_steps, tolerance, repeats_the_code = settings
    least = math.inf
    for t in range(1, max_steps + 1):
        if i < 0:
            for j in range(x.size):
                x[j] = min(max(x[j], -floor), floor)
        else:
            project_region(x, i, sign, floor)
        price = price_under(x, start, cost, coef, intercept, goal)
        if price < least:
            least = price
            best[:] = x
        moved = 0.0
        for j in range(x.size):
            moved = max(moved, abs(x[j] - last[j]))
        if t > 1 and moved <= tolerance:
            return least, t, CONVERGED
        last[:] = x
        score = score_of(x, coef, intercept)
        slope = loss_slope(loss, score)
        if repeats_the_code:
            slope *= share_left_by_bceloss(score)
        step = first_step / math.sqrt(t)
        for j in range(x.size):
            pull = cost_weight * cost[j] * sign_of(x[j] - start[j])
            x[j] -= step * (pull - slope * coef[j])
    return least, max_steps, STEP_LIMIT


@kernel
def algorithm1_rows(private, rows, ball, goal, settings, recourse, steps, run_end, begin, end):
    x, last, best, coef = private
    radius, floor = ball
    d = rows.start.shape[1]
    for row in range(begin, end):
        start, cost = rows.start[row], pick(rows.cost, row)
        own, own_intercept = pick(rows.coef, row), pick(rows.intercept, row)
        least = math.inf
        run_end[row] = CONVERGED
        for candidate in range(2 * d + 1):
            i = candidate // 2 if candidate < 2 * d else -1
            sign = 1.0 if candidate % 2 == 0 else -1.0
            if i < 0 and floor == 0.0:
                continue  # the intercept is not attacked: it is never the worst
            coef[:] = own
            intercept = own_intercept
            if i < 0:
                intercept -= radius * floor
            else:
                coef[i] -= radius * sign
            x[:] = start
            region = (i, sign, floor)
            if settings[3] and not holds(start, i, sign, floor):
                x[:] = 0.0
            price, count, how = descend_region(
                start, cost, coef, intercept, region, goal, settings, x, last, best
            )
            steps[row] += count
            if how == STEP_LIMIT:
                run_end[row] = STEP_LIMIT
            if price < least:
                least = price
                recourse[row] = best
