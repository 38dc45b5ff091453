"""What comes back from the discrete solver, and the check that every answer passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.continuous.solve import is_proven, statuses_of
from holdfast.core.row import EXHAUSTED
from holdfast.discrete.problem import DiscreteProblem
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import BallNumbers
from holdfast.problem.problem import GUARANTEE, Goal, Rows
from holdfast.result.appraisal import Appraisal, score_roundings
from holdfast.result.result import Status


class Found(NamedTuple):
    """What a solver brings back, a row each.

    Rows without a recourse have NaN there, and the outcome EXHAUSTED: with a bound of inf it is
    proven that there is none, with another one it is not.
    """

    recourse: Floats
    options: NDArray[np.int64]
    outcome: NDArray[np.int8]
    lower_bound: Floats
    nodes: NDArray[np.int64]
    reachable_validity: Floats
    reachable_radius: Floats


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
        As in `holdfast.RecourseResult`: for a guarantee the price is the cost.
    worst_case_score : array
        Least score of the recourse over the ball.
    nodes : array of int
        Parts of the problem that were looked at.
    reachable_validity, reachable_radius : arrays
        For infeasible rows: the largest worst-case probability that can be reached, and the
        largest radius at which the guarantee could still be given (NaN: at none).

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, solve_discrete
    >>> base = RecourseProblem.build([[0.0]], [1.0], -2.5, robust_to=NormBall(p=2, radius=0.0))
    >>> whole = DiscreteProblem(
    ...     base, np.ones((1, 1)), np.zeros((1, 1)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> answer = solve_discrete(whole, guarantee=0.5)
    >>> answer.recourse, answer.worst_case_score, len(answer)
    (array([[3.]]), array([0.5]), 1)
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


def fees_of(problem: DiscreteProblem, options: NDArray[np.int64]) -> Floats:
    """Return what each group's option costs each row, (n, groups)."""
    n = len(options)
    fees = np.zeros((n, len(problem.groups)))
    for g, costs in enumerate(problem.option_costs):
        taken = np.clip(options[:, g], 0, costs.shape[1] - 1)
        fees[:, g] = np.broadcast_to(costs, (n, costs.shape[1]))[np.arange(n), taken]
    return fees


def costs_of(problem: DiscreteProblem, recourse: Floats, options: NDArray[np.int64]) -> Floats:
    """Cost of moving every row to its recourse, straight from the definition."""
    base, numbers = problem.problem, problem.number_columns
    moved = base.feature_costs * np.abs(recourse - base.X)
    moved += np.where(recourse != base.X, problem.fees, 0.0)
    return np.asarray(moved[:, numbers].sum(axis=1) + fees_of(problem, options).sum(axis=1))


def cheapest_units(rows: Rows, numbers: NDArray[np.int64], ball: BallNumbers) -> Floats:
    """Return `cheapest_unit` of each row, over the columns of numbers."""
    start, coef, cost, lower, upper = (
        values[:, numbers] for values in (rows.points, rows.coef, rows.cost, rows.lower, rows.upper)
    )
    reach, least = ball.radius * ball.scale[numbers], np.full(len(start), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for gain, free in ((reach + coef, upper > start), (reach - coef, lower < start)):
            units = np.where(free & (gain > 0.0), cost / gain, np.inf)
            least = np.minimum(least, units.min(axis=1, initial=np.inf))
    return np.where(np.isfinite(least), least, 0.0)


def cheapest_options(problem: DiscreteProblem, ball: BallNumbers, unit: Floats) -> Floats:
    """Return the least cost of a unit of score, options counted beside `unit`, that of numbers."""
    least, base = np.where(unit > 0.0, unit, np.inf), problem.problem
    rows = np.arange(base.n_rows)
    for g, (group, fees) in enumerate(zip(problem.groups, problem.option_costs, strict=True)):
        values = np.asarray(group.options, dtype=np.float64)
        gains = base.coef[:, group.columns] @ values.T
        gains = np.broadcast_to(gains, (base.n_rows, len(values)))
        sizes = np.linalg.norm(ball.scale[group.columns] * values, ball.q, axis=1)
        home = np.clip(problem.current[:, g], 0, len(values) - 1)
        gain = np.abs(gains - gains[rows, home][:, None])
        gain = gain + ball.radius * (sizes + sizes[home][:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where((fees > 0.0) & (gain > 0.0), fees / gain, np.inf)
        least = np.minimum(least, units.min(axis=1, initial=np.inf))
    return np.where(np.isfinite(least), least, 0.0)


def appraised(
    problem: DiscreteProblem, recourse: Floats, options: NDArray[np.int64], lower_bound: Floats
) -> Appraisal:
    """Work out what is known of each recourse, none of it taken from a solver but the bound."""
    base, numbers = problem.problem, problem.number_columns
    worst = base.robust_to.worst_score(recourse, base.coef, base.intercept)
    rounding, ball = score_roundings(base, recourse), base.robust_to.numbers(base.n_features)
    unit = cheapest_units(base.rows(), numbers, ball)
    unit = cheapest_options(problem, ball, unit)
    return Appraisal(
        cost=costs_of(problem, recourse, options),
        score=base.score(recourse),
        worst_score=worst,
        loss=base.loss.value(worst),
        rounding=rounding,
        loss_above=base.loss.value(worst - rounding),
        unit=unit,
        lower_bound=lower_bound,
    )


def make_answer(
    problem: DiscreteProblem,
    goal: Goal,
    goals: tuple[float | None, float | None],
    tolerance: float,
    found: Found,
) -> DiscreteAnswer:
    """Appraise what a solver found, and say what became of each row."""
    known = appraised(problem, found.recourse, found.options, found.lower_bound)
    cost, price = known.cost, known.cost.copy()
    if goal.mode != GUARANTEE:
        price = known.loss + goal.level * cost
    missing = (found.outcome == EXHAUSTED) & np.isnan(found.recourse).any(axis=1)
    cost[missing] = price[missing] = np.inf
    # a bound a hair above the price that it proves is rounding
    bound = np.where(known.lower_bound > price, price, known.lower_bound)
    proven = is_proven(goal, tolerance, price, known.lower_bound, known)
    with np.errstate(invalid="ignore"):
        gap = np.where(missing & (bound == np.inf), 0.0, price - bound)
    return DiscreteAnswer(
        problem=problem,
        cost_weight=goals[0],
        guarantee=goals[1],
        recourse=found.recourse,
        options=found.options,
        status=statuses_of(
            goal, found.outcome, bound, proven, known, found.recourse, problem.problem.X
        ),
        cost=cost,
        price=price,
        lower_bound=bound,
        gap=gap,
        worst_case_score=known.worst_score,
        nodes=found.nodes,
        reachable_validity=found.reachable_validity,
        reachable_radius=found.reachable_radius,
    )


def check_answer(answer: DiscreteAnswer) -> None:
    """Check every constraint of every recourse, by plain code that knows nothing of the search.

    A violation is a bug, and raises `AssertionError`: it never goes out as an answer.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, check_answer, solve_discrete
    >>> base = RecourseProblem.build([[0.0]], [1.0], -2.5, robust_to=NormBall(p=2, radius=0.0))
    >>> whole = DiscreteProblem(
    ...     base, np.ones((1, 1)), np.zeros((1, 1)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> answer = solve_discrete(whole, guarantee=0.5)
    >>> check_answer(replace(answer, recourse=np.array([[2.5]]), cost=np.array([2.5])))
    Traceback (most recent call last):
    AssertionError: row 0: a number is not on its lattice; this is a bug, please report it
    """
    found = ~np.isnan(answer.recourse).any(axis=1)
    for what, wrong in violations(answer).items():
        rows = np.flatnonzero(wrong & found)
        if rows.size:
            raise AssertionError(f"row {rows[0]}: {what}; this is a bug, please report it")


def violations(answer: DiscreteAnswer) -> dict[str, NDArray[np.bool_]]:
    """Say for each constraint which rows break it."""
    problem, x = answer.problem, answer.recourse
    base, numbers = problem.problem, problem.number_columns
    moved = x[:, numbers] != base.X[:, numbers]
    inside = (base.lower <= x) & (x <= base.upper)
    step, anchor = (np.broadcast_to(v, x.shape)[:, numbers] for v in (problem.step, problem.anchor))
    value = x[:, numbers]
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = anchor + step * np.round((value - anchor) / step)
    changes = moved.sum(axis=1)
    taken = np.zeros(len(x), dtype=bool)
    for g, group in enumerate(problem.groups):
        options = answer.options[:, g]
        taken |= (options < 0) | (options >= len(group.options))
        values = np.asarray(group.options)[np.clip(options, 0, len(group.options) - 1)]
        taken |= (x[:, group.columns] != values).any(axis=1)
        changes = changes + (options != problem.current[:, g])
    most = np.inf if problem.max_changes is None else problem.max_changes
    cost = costs_of(problem, x, answer.options)
    score = base.robust_to.worst_score(x, base.coef, base.intercept)
    target = -np.inf if answer.guarantee is None else base.loss.score(answer.guarantee)
    return {
        "a number is out of bounds": (moved & ~inside[:, numbers]).any(axis=1),
        "a number is not on its lattice": (moved & (step > 0.0) & (nearest != value)).any(axis=1),
        "the columns of a group are none of its options": taken,
        "an option may not be taken": np.isinf(fees_of(problem, answer.options)).any(axis=1),
        "too many features change": changes > most,
        "the cost is another": ~np.isclose(cost, answer.cost, rtol=1e-9, atol=1e-12),
        "the score is below the guarantee": score < target,
        "it is called infeasible": answer.status == Status.INFEASIBLE,
    }
