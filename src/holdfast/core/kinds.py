"""Which solver for which p: one workspace and one kernel for all, so that all is compiled once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.core.l1 import plan_l1, solve_l1
from holdfast.core.linf import plan_linf, solve_linf
from holdfast.core.lp import Scratch, solve_lp
from holdfast.core.row import Plan, Row, new_plan
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import BallNumbers
from holdfast.problem.problem import RecourseProblem

LINF, L1, LP = 0, 1, 2  # how the norm is treated


class Work(NamedTuple):
    """Buffers of one thread; those that its kind does not use are empty."""

    kind: int
    row: Row
    y: Floats
    plan: Plan
    kinks: Floats
    scratch: Scratch


def kind_of(ball: BallNumbers) -> int:
    """Pick the solver. Without a ball all p are the same, and the separable one is exact."""
    if ball.q == 1.0 or ball.radius == 0.0 or ball.intercept_scale + ball.scale.sum() == 0.0:
        return LINF
    return L1 if ball.p == 1.0 else LP


def new_work(problem: RecourseProblem) -> Work:
    """Return the buffers that a problem needs."""
    d = problem.n_features
    kind = kind_of(problem.robust_to.numbers(d))
    return Work(
        kind,
        Row(*(np.empty(d) for _ in Row._fields)),
        np.empty(d),
        new_plan({LINF: 2 * d, L1: d, LP: 0}[kind]),
        np.empty(2 * d + 1 if kind == L1 else 0),
        Scratch(*(np.empty(d if kind == LP else 0) for _ in Scratch._fields)),
    )


@kernel
def make_plan(work, ball, goal):
    """Prepare what depends on model, costs and goal, but not on the point."""
    if work.kind == L1:
        plan_l1(work.plan, work.row, goal)
    elif work.kind == LINF:
        plan_linf(work.plan, work.row, ball, goal)


@kernel
def solve_row(work, intercept, ball, goal):
    """Solve the row in the workspace: answer in work.y, returned are (outcome, gain)."""
    if work.kind == L1:
        return solve_l1(work.row, intercept, ball, goal, work.plan, work.y, work.kinks)
    if work.kind == LINF:
        return solve_linf(work.row, intercept, ball, goal, work.plan, work.y)
    return solve_lp(work.row, intercept, ball, goal, work.scratch, work.y)
