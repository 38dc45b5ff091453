"""The solver of leaves as the search calls it: by its address, since it is compiled apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.core.kinds import new_work
from holdfast.discrete.buffers import data_of, leaf_of, new_buffers, state_of
from holdfast.discrete.layout import Case, make_layout, shape_of
from holdfast.discrete.leaf import solve_leaf
from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.apart import Apart, Packing
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem


def _example() -> tuple[Any, ...]:
    """Return what the solver of leaves works on, for its types."""
    ball = NormBall(p=2.0, radius=1.0)
    base = RecourseProblem.build(np.zeros((1, 1)), np.ones(1), 0.0, robust_to=ball)
    none = np.zeros((1, 1))
    problem = DiscreteProblem(base, none, none, [], np.empty((1, 0), dtype=np.int64), [])
    layout, rows = make_layout(problem), base.rows()
    goal = Goal.of(base.loss, cost_weight=None, guarantee=0.5).numbers()
    case = Case(rows.points[0], rows.coef[0], 0.0, ball.numbers(1), goal)
    return shape_of(layout), new_buffers(layout, 1), case, new_work(base)


_PACKING = Packing(_example)
pack_leaf, unpack_leaf = _PACKING.pack, _PACKING.unpack


@kernel
def solve_packed_leaf(packed):
    """Solve the continuous rest of what was chosen."""
    layout, buffers, case, work = unpack_leaf(packed)
    return solve_leaf(layout, data_of(buffers), case, work, state_of(buffers), leaf_of(buffers))


LEAVES = Apart(solve_packed_leaf, "LEAVES", floats=2)
call_leaf = LEAVES.call
