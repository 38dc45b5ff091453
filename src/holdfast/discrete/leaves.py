"""The solvers of leaves as the search calls them: by address, since they are compiled apart.

There is one for each kind of set; each knows the types of its own workspace.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.kinds import SetNumbers, new_work
from holdfast.discrete.answer import appraised
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.layout import Case, make_layout
from holdfast.discrete.leaf import solve_leaf, solve_node
from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.apart import Apart, Packing, packer
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.ball import BallNumbers, NormBall
from holdfast.problem.ellipsoid import Ellipsoid, EllipsoidNumbers
from holdfast.problem.goal import Goal
from holdfast.problem.model_list import HullNumbers, ModelList
from holdfast.problem.model_set import ModelSet
from holdfast.problem.outcome import FOUND
from holdfast.problem.problem import RecourseProblem
from holdfast.result.found import Found


class Solver(NamedTuple):
    """What solves the leaves of one row."""

    address: int
    packed: int
    work: Any


def _problem(robust_to: ModelSet) -> DiscreteProblem:
    """Return a problem of one row and one number."""
    base = RecourseProblem.build(np.zeros((1, 1)), np.ones(1), 0.0, robust_to=robust_to)
    none = np.zeros((1, 1))
    return DiscreteProblem(base, none, none, [], np.empty((1, 0), dtype=np.int64), [])


def _example(robust_to: ModelSet) -> tuple[Any, ...]:
    """Return what the solver of leaves works on, for its types."""
    problem = _problem(robust_to)
    base, layout = problem.base, make_layout(problem)
    robust = robust_to.numbers(1)  # its arrays as a struct has them: to kernels they may be written
    robust = robust._make(np.array(each) if np.ndim(each) else each for each in robust)
    case = Case(np.zeros(1), np.ones(1), 0.0, robust, _goal(problem).numbers())
    return layout, new_buffers(layout, 1), case, new_work(base)


def _goal(problem: DiscreteProblem) -> Goal:
    return Goal.of(problem.base.loss, guarantee=0.5)


def _appraise(robust_to: ModelSet) -> None:
    """Appraise an answer, as every answer is in the end."""
    problem = _problem(robust_to)
    outcome, levels = np.array([FOUND], dtype=np.int8), np.empty((1, 0), dtype=np.int64)
    found = Found(np.ones((1, 1)), outcome, np.zeros(1), levels=levels)
    appraised(problem, _goal(problem), found)


_SETS = (NormBall(p=2.0, radius=1.0), Ellipsoid(np.eye(2), radius=1.0), ModelList([([1.0], 0.0)]))
_BALL, _ELLIPSOID, _HULL = (Packing(partial(_example, models)) for models in _SETS)
pack_leaf = packer(_BALL, _ELLIPSOID, _HULL)
unpack_ball, unpack_ellipsoid, unpack_hull = _BALL.unpack, _ELLIPSOID.unpack, _HULL.unpack


@kernel
def solve_packed(layout, buffers, case, work):
    """Solve the continuous rest of what was chosen; or a node, if the leaf says so."""
    if buffers.leaf.is_node[0] == 1:
        return solve_node(work, case, buffers.leaf)
    return solve_leaf(layout, buffers.data, case, work, buffers.state, buffers.leaf)


@kernel
def solve_ball_leaf(packed):
    layout, buffers, case, work = unpack_ball(packed)
    return solve_packed(layout, buffers, case, work)


@kernel
def solve_ellipsoid_leaf(packed):
    layout, buffers, case, work = unpack_ellipsoid(packed)
    return solve_packed(layout, buffers, case, work)


@kernel
def solve_hull_leaf(packed):
    layout, buffers, case, work = unpack_hull(packed)
    return solve_packed(layout, buffers, case, work)


BALL_LEAVES, ELLIPSOID_LEAVES, HULL_LEAVES = (
    Apart(solve, f"{name}_LEAVES", floats=2, then=partial(_appraise, models))
    for name, solve, models in (
        ("BALL", solve_ball_leaf, _SETS[0]),
        ("ELLIPSOID", solve_ellipsoid_leaf, _SETS[1]),
        ("HULL", solve_hull_leaf, _SETS[2]),
    )
)
call_leaf = BALL_LEAVES.call  # all are called alike


def leaves_for(robust: SetNumbers) -> Apart:
    """Return the solver of leaves for a set of models."""
    kinds: dict[type, Apart] = {
        BallNumbers: BALL_LEAVES,
        EllipsoidNumbers: ELLIPSOID_LEAVES,
        HullNumbers: HULL_LEAVES,
    }
    return kinds[type(robust)]
