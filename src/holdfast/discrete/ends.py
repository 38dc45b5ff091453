"""The solver of leaves as the search calls it: by its address, since it is compiled apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from holdfast.core.kinds import Work, new_work
from holdfast.discrete.buffers import data_of, leaf_of, new_buffers, state_of
from holdfast.discrete.layout import Case, make_layout, shape_of
from holdfast.discrete.leaf import solve_leaf
from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.apart import Apart
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem


class Ender(NamedTuple):
    """What solves leaves: a compiled function, and its buffers."""

    address: int
    work: Work


@kernel
def end(layout, buffers, case, work):
    """Solve the continuous rest of what was chosen."""
    return solve_leaf(layout, data_of(buffers), case, work, state_of(buffers), leaf_of(buffers))


def _example() -> tuple[Any, ...]:
    """Return arguments of `end`, for their types."""
    ball = NormBall(p=2.0, radius=1.0)
    base = RecourseProblem.build(np.zeros((1, 1)), np.ones(1), 0.0, robust_to=ball)
    none = np.zeros((1, 1))
    problem = DiscreteProblem(base, none, none, [], np.empty((1, 0), dtype=np.int64), [])
    layout, rows = make_layout(problem), base.rows()
    goal = Goal.of(base.loss, cost_weight=None, guarantee=0.5).numbers()
    case = Case(rows.points[0], rows.coef[0], 0.0, ball.numbers(1), goal)
    return shape_of(layout), new_buffers(layout, 1), case, new_work(base)


ENDS = Apart(end, "ENDS", _example, numba.types.UniTuple(numba.float64, 2))
call_end = ENDS.call
