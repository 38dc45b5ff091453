"""What comes back from the discrete solver, and the check that every answer passes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast._numbers import Floats
from holdfast.discrete.problem import DiscreteProblem
from holdfast.result import Status


@dataclass(frozen=True, eq=False)
class DiscreteAnswer:
    """The answer to a `DiscreteProblem`, one entry for each row.

    Attributes
    ----------
    recourse : (n, d) array
        Numbers exactly on their lattice, groups exactly at an option, what does not change exactly
        as it was; NaN where there is none.
    options : (n, groups) array of int
        The option that each group takes; -1 where there is no recourse.
    status : array of Status
    cost, price, lower_bound, gap : arrays
        As in `holdfast.Recourse`: for a guarantee the price is the cost.
    worst_case_score : array
        Least score of the recourse over the ball.
    nodes : array of int
        Parts of the problem that were looked at.
    reachable_validity, reachable_radius : arrays
        For infeasible rows: the largest worst-case probability that can be reached, and the
        largest radius at which the guarantee could still be given (NaN: at none).

    Examples
    --------
    See `solve_discrete`.
    """

    problem: DiscreteProblem
    cost_weight: float | None
    guarantee: float | None
    recourse: Floats
    options: NDArray[np.int64]
    status: NDArray[np.object_]
    cost: Floats
    price: Floats
    lower_bound: Floats
    gap: Floats
    worst_case_score: Floats
    nodes: NDArray[np.int64]
    reachable_validity: Floats
    reachable_radius: Floats

    def __len__(self) -> int:
        return self.problem.problem.n_rows


def row_of(values: Any, i: int) -> Any:
    """Return row i of an array that has one row where all rows share it."""
    return values[i] if values.shape[0] > 1 else values[0]


def grouped_columns(problem: DiscreteProblem) -> NDArray[np.int64]:
    """Return the columns of all groups."""
    columns = [np.asarray(group.columns, dtype=np.int64) for group in problem.groups]
    return np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)


def cost_of_row(problem: DiscreteProblem, i: int, x: Floats, options: Any) -> float:
    """Cost of moving row i to x, straight from the definition."""
    base = problem.problem
    moved = row_of(base.feature_costs, i) * np.abs(x - base.points[i])
    moved = np.delete(moved, grouped_columns(problem))
    fees = [row_of(c, i)[k] for c, k in zip(problem.option_costs, options, strict=True)]
    return math.fsum([*moved.tolist(), *fees])


def check_answer(answer: DiscreteAnswer) -> None:
    """Check every constraint of every recourse, by plain code that knows nothing of the search.

    A violation is a bug, and raises `AssertionError`: it never goes out as an answer.

    Examples
    --------
    See `solve_discrete`, which calls it.
    """
    for i in np.flatnonzero(~np.isnan(answer.recourse).any(axis=1)):
        wrong = violation(answer, int(i))
        if wrong:
            raise AssertionError(f"row {i} breaks its own constraints: {wrong}; please report it")


def violation(answer: DiscreteAnswer, i: int) -> str | None:
    """Say what is wrong with the recourse of row i; None where nothing is."""
    problem, x = answer.problem, answer.recourse[i]
    base, x0 = problem.problem, problem.problem.points[i]
    changes = 0
    for g, group in enumerate(problem.groups):
        k = answer.options[i, g]
        if not 0 <= k < len(group.options) or not row_of(problem.option_costs[g], i)[k] < math.inf:
            return f"group {g} takes the option {k}"
        if not np.array_equal(x[group.columns], group.options[k]):
            return f"the columns of group {g} are none of its options"
        changes += int(k != problem.current[i, g])
    for j in np.setdiff1d(np.arange(x.size), grouped_columns(problem)):
        if x[j] == x0[j]:
            continue
        changes += 1
        if not row_of(base.lower, i)[j] <= x[j] <= row_of(base.upper, i)[j]:
            return f"column {j} is {x[j]}, out of bounds"
        step, anchor = row_of(problem.step, i)[j], row_of(problem.anchor, i)[j]
        if step > 0.0 and anchor + step * round((x[j] - anchor) / step) != x[j]:
            return f"column {j} is {x[j]}, not on its lattice"
    if problem.most_changes is not None and changes > problem.most_changes:
        return f"{changes} features change"
    if not math.isclose(answer.cost[i], cost_of_row(problem, i, x, answer.options[i]), abs_tol=0.0):
        return "its cost is another"
    score = base.ball.worst_score(x[None], row_of(base.coef, i), row_of(base.intercept, i))[0]
    if answer.guarantee is not None and score < base.loss.score(answer.guarantee):
        return f"its worst-case score is {score}, below the guarantee"
    if answer.status[i] is Status.INFEASIBLE:
        return "it is called infeasible"
    return None
