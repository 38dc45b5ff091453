"""Which solver for which set: a workspace and a kernel for each.

All balls have one workspace, whatever their p, so that all is compiled once.
"""

from __future__ import annotations

import numpy as np

from holdfast.core.ellipsoid import EllipsoidScratch, new_scratch, solve_ellipsoid
from holdfast.core.hull import HullScratch, new_hull_scratch, solve_hull
from holdfast.core.l1 import plan_l1, solve_l1
from holdfast.core.linf import plan_linf, solve_linf
from holdfast.core.lp import Scratch, solve_lp
from holdfast.core.row import Plan, Row, empty_row, new_plan, orient
from holdfast.machinery.compile import choice, kernel
from holdfast.machinery.numbers import Floats
from holdfast.machinery.structs import Struct
from holdfast.problem.ball import BallNumbers
from holdfast.problem.ellipsoid import EllipsoidNumbers
from holdfast.problem.model_list import HullNumbers
from holdfast.problem.model_set import copy_into
from holdfast.problem.problem import RecourseProblem

LINF, L1, LP, ANY = 0, 1, 2, 3  # how the norm is treated
SetNumbers = BallNumbers | EllipsoidNumbers | HullNumbers  # what kernels read of a set of models


class Work(Struct):
    """Buffers of one thread for balls; those that its kind does not use are empty."""

    kind: int
    row: Row
    y: Floats
    dual: Floats  # empty: the certificate finds the worst model by itself
    plan: Plan
    kinks: Floats
    scratch: Scratch


class EllipsoidWork(Struct):
    """Buffers of one thread for ellipsoids; the row is as it is, not turned."""

    row: Row
    y: Floats
    dual: Floats  # the direction of the worst model
    scratch: EllipsoidScratch
    aims: Floats  # two directions that a search with discrete parts keeps, ...
    model: Floats  # ... and the model of one of them, the intercept last


class HullWork(Struct):
    """Buffers of one thread for lists of models; the row is as it is, not turned."""

    row: Row
    y: Floats
    dual: Floats  # the weights of the models that bind, today's first
    scratch: HullScratch
    coefs: Floats  # of all models, today's first
    intercepts: Floats
    aims: Floats
    model: Floats


def kind_of(robust: SetNumbers) -> int:
    """Pick the solver. In a ball of no size all p are the same, and the separable one is exact."""
    if not isinstance(robust, BallNumbers):
        return ANY
    if robust.q == 1.0 or robust.radius == 0.0:
        return LINF
    if robust.intercept_scale + robust.scale.sum() == 0.0:
        return LINF
    return L1 if robust.p == 1.0 else LP


def dual_size(problem: RecourseProblem) -> int:
    """Return how many numbers tell the worst model of a row, beside its point."""
    numbers = problem.robust_to.numbers(problem.n_features)
    if isinstance(numbers, EllipsoidNumbers):
        return int(numbers.factor.shape[1])
    return numbers.intercepts.size + 1 if isinstance(numbers, HullNumbers) else 0


_NO_SCRATCH = Scratch.zeros(*6 * [0])
_NO_PLAN, _NO_NUMBERS = new_plan(0), np.empty(0)


def new_work(problem: RecourseProblem) -> Work | EllipsoidWork | HullWork:
    """Return the buffers that a problem needs."""
    d = problem.n_features
    numbers, row = problem.robust_to.numbers(d), empty_row(d)
    if isinstance(numbers, EllipsoidNumbers):
        k = numbers.factor.shape[1]
        return EllipsoidWork.zeros(row, d, k, new_scratch(d, k), (2, k), d + 1)
    if isinstance(numbers, HullNumbers):
        m = numbers.intercepts.size + 1
        return HullWork.zeros(row, d, m, new_hull_scratch(m, d), (m, d), m, (2, m), d + 1)
    kind = kind_of(numbers)
    return Work(
        kind,
        row,
        np.empty(d),
        _NO_NUMBERS,
        _NO_PLAN if kind == LP else new_plan(d if kind == L1 else 2 * d),
        np.empty(2 * d + 1) if kind == L1 else _NO_NUMBERS,
        Scratch.zeros(*6 * [d]) if kind == LP else _NO_SCRATCH,
    )


@choice(0)
def write_row(work, robust, point, coef, intercept, lower, upper, cost):
    """Write a row into the workspace."""


@write_row.of(HullWork)
@kernel
def write_for_hull(work, hull, point, coef, intercept, lower, upper, cost):
    copy_row(work, point, coef, lower, upper, cost)
    copy_into(work.coefs[0], coef)
    work.intercepts[0] = intercept
    for m in range(hull.intercepts.size):
        copy_into(work.coefs[m + 1], hull.coefs[m])
        work.intercepts[m + 1] = hull.intercepts[m]


@write_row.of(Work)
@kernel
def write_for_ball(work, ball, point, coef, intercept, lower, upper, cost):
    orient(work.row, point, coef, lower, upper, cost)


@write_row.of(EllipsoidWork)
@kernel
def write_for_ellipsoid(work, ellipsoid, point, coef, intercept, lower, upper, cost):
    copy_row(work, point, coef, lower, upper, cost)


@kernel
def copy_row(work, point, coef, lower, upper, cost):
    """Write a row as it is; until it is solved, its worst model is today's."""
    row = work.row
    for m in range(work.dual.size):
        work.dual[m] = 0.0
    copy_into(row.coef, coef)
    copy_into(row.start, point)
    copy_into(row.lower, lower)
    copy_into(row.upper, upper)
    copy_into(row.cost, cost)


@choice(0)
def read_answer(work, coef, point):
    """Write the answer in the workspace into `point`."""


@read_answer.of(Work)
@kernel
def read_from_ball(work, coef, point):
    """Undo `orient`; what rounding put an ulp outside its bounds is put on them."""
    for j in range(point.size):
        inside = min(max(work.y[j], work.row.lower[j]), work.row.upper[j])
        point[j] = inside if coef[j] >= 0.0 else -inside


@read_answer.of(HullWork)
@read_answer.of(EllipsoidWork)
@kernel
def read_as_it_is(work, coef, point):
    copy_into(point, work.y)


@choice(0)
def make_plan(work, robust, goal):
    """Prepare what depends on model, costs and goal, but not on the point."""


@make_plan.of(HullWork)
@make_plan.of(EllipsoidWork)
@kernel
def plan_nothing(work, robust, goal):
    """There is nothing to prepare."""


@make_plan.of(Work)
@kernel
def plan_ball(work, ball, goal):
    if work.kind == L1:
        plan_l1(work.plan, work.row, goal)
    elif work.kind == LINF:
        plan_linf(work.plan, work.row, ball, goal)


@choice(0)
def solve_row(work, intercept, robust, goal):
    """Solve the row in the workspace: answer in work.y, returned are (outcome, gain)."""


@solve_row.of(EllipsoidWork)
@kernel
def solve_in_ellipsoid(work, intercept, ellipsoid, goal):
    return solve_ellipsoid(work.row, intercept, ellipsoid, goal, work.scratch, work.y, work.dual)


@solve_row.of(HullWork)
@kernel
def solve_in_hull(work, intercept, hull, goal):
    shift = intercept - work.intercepts[0]  # whoever aims higher pretends that all are lower
    work.intercepts[0] = intercept
    for m in range(hull.intercepts.size):
        work.intercepts[m + 1] += shift
    return solve_hull(work.row, work.coefs, work.intercepts, goal, work.scratch, work.y, work.dual)


@solve_row.of(Work)
@kernel
def solve_in_ball(work, intercept, ball, goal):
    if work.kind == L1:
        return solve_l1(work.row, intercept, ball, goal, work.plan, work.y, work.kinks)
    if work.kind == LINF:
        return solve_linf(work.row, intercept, ball, goal, work.plan, work.y)
    return solve_lp(work.row, intercept, ball, goal, work.scratch, work.y)
