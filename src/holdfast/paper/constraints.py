"""What the paper asks of a recourse beside its price: whole categories, and no ageing by decades.

The paper finds a recourse first and brings it into the constraints afterwards (`post_process`).
`constrained` hands them to the solver instead, which then gives the best recourse within them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from holdfast.discrete import DiscreteProblem, Group
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import RecourseProblem


@dataclass(frozen=True, eq=False)
class Constraints:
    """One-hot groups take one level each; other columns stay between `down` and `up` of a point.

    Attributes
    ----------
    groups : list of lists of int
        Columns of each one-hot group.
    down, up : (d,) arrays
        How far each column may fall and rise; inf where it may go anywhere.
    """

    groups: list[list[int]]
    down: Floats
    up: Floats


def post_process(points: Floats, recourse: Floats, constraints: Constraints) -> Floats:
    """Bring recourses into the constraints: clip, and the largest entry of each group becomes 1.

    Of several largest the first one wins, as the authors have it.

    Examples
    --------
    >>> free = np.full(3, np.inf)
    >>> whole = Constraints([[1, 2]], down=free, up=np.array([2.0, np.inf, np.inf]))
    >>> post_process(np.array([[5.0, 1.0, 0.0]]), np.array([[9.0, 0.3, 0.6]]), whole)
    array([[7., 0., 1.]])
    """
    out = np.clip(recourse, points - constraints.down, points + constraints.up)
    for columns in constraints.groups:
        levels = out[:, columns]
        hard = np.zeros_like(levels)
        hard[np.arange(len(levels)), np.argmax(levels, axis=1)] = 1.0
        hard[np.isnan(levels).any(axis=1)] = np.nan
        out[:, columns] = hard
    return out


def constrained(problem: RecourseProblem, constraints: Constraints) -> DiscreteProblem:
    """Put the constraints into the problem.

    A person's columns of a group must be one of its levels; taking another one costs what the
    two columns that change cost.
    """
    points, n, d = problem.X, problem.n_rows, problem.n_features
    groups, current, costs = [], [], []
    feature_costs = np.broadcast_to(problem.feature_costs, (n, d))
    for columns in constraints.groups:
        levels = np.eye(len(columns))
        now = np.argmax(points[:, columns], axis=1)
        if not np.array_equal(points[:, columns], levels[now]):
            raise ValueError(f"columns {columns} of the points are not one-hot")
        moves = np.abs(levels[None] - points[:, None, columns])
        groups.append(Group(np.array(columns), levels))
        current.append(now)
        costs.append(np.einsum("ijk,ik->ij", moves, feature_costs[:, columns]))
    bounded = replace(problem, lower=points - constraints.down, upper=points + constraints.up)
    still = np.zeros((1, d))
    held = np.array(current).T if groups else np.empty((n, 0), dtype=np.int64)
    return DiscreteProblem(bounded, still, still, groups, held, costs)
