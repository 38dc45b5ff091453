"""Which kernel for which p. The choice is made by type, so that only what is used gets compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from holdfast.core.l1 import plan_l1, solve_l1
from holdfast.core.linf import plan_linf, solve_linf
from holdfast.core.lp import Scratch, solve_lp
from holdfast.core.row import Plan, Row, new_plan
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import RecourseProblem


class L1Work(NamedTuple):
    """Buffers of one thread for p = 1; its type is what chooses the kernel."""

    row: Row
    y: Floats
    plan: Plan
    kinks: Floats


class LinfWork(NamedTuple):
    """Buffers of one thread for p = inf, or for no ball at all."""

    row: Row
    y: Floats
    plan: Plan


class LpWork(NamedTuple):
    """Buffers of one thread for 1 < p < inf."""

    row: Row
    y: Floats
    scratch: Scratch


Work = L1Work | LinfWork | LpWork


def new_work(problem: RecourseProblem) -> Work:
    """Pick the kernel. Without a ball all p are the same, and the separable kernel is exact."""
    d, ball = problem.n_features, problem.robust_to
    row = Row(*(np.empty(d) for _ in Row._fields))
    felt = ball.intercept_scale + ball.feature_scale(d).sum()
    if ball.dual_p == 1.0 or ball.radius == 0.0 or felt == 0.0:
        return LinfWork(row, np.empty(d), new_plan(2 * d))
    if ball.p == 1.0:
        return L1Work(row, np.empty(d), new_plan(d), np.empty(2 * d + 1))
    return LpWork(row, np.empty(d), Scratch(*(np.empty(d) for _ in Scratch._fields)))


def make_plan(work: Any, ball: Any, goal: Any) -> None:
    """Prepare what depends on model, costs and goal, but not on the point."""
    raise NotImplementedError("runs in compiled code only")


def solve_row(work: Any, intercept: float, ball: Any, goal: Any) -> tuple[int, float]:
    """Solve the row in the workspace: answer in work.y, returned are (outcome, gain)."""
    raise NotImplementedError("runs in compiled code only")


@overload(make_plan)
def _make_plan(work, ball, goal):
    if work.instance_class is L1Work:
        return lambda work, ball, goal: plan_l1(work.plan, work.row, goal)
    if work.instance_class is LinfWork:
        return lambda work, ball, goal: plan_linf(work.plan, work.row, ball, goal)
    return lambda work, ball, goal: None


@overload(solve_row)
def _solve_row(work, intercept, ball, goal):
    if work.instance_class is L1Work:
        return lambda work, intercept, ball, goal: solve_l1(
            work.row, intercept, ball, goal, work.plan, work.y, work.kinks
        )
    if work.instance_class is LinfWork:
        return lambda work, intercept, ball, goal: solve_linf(
            work.row, intercept, ball, goal, work.plan, work.y
        )
    return lambda work, intercept, ball, goal: solve_lp(
        work.row, intercept, ball, goal, work.scratch, work.y
    )
