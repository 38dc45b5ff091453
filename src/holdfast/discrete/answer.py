"""What comes back from the discrete solver, and the check that every answer passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.kinds import SetNumbers
from holdfast.discrete.layout import level_sizes
from holdfast.discrete.problem import DiscreteProblem, Group, in_range, in_rows
from holdfast.machinery.numbers import Floats
from holdfast.problem.goal import Goal
from holdfast.problem.problem import Rows
from holdfast.result.appraisal import Appraisal, appraise_points
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import Status


def chosen_levels(answer: Found | RecourseResult) -> NDArray[np.int64]:
    """Return the levels of an answer to a discrete problem, which always has them."""
    assert answer.levels is not None
    return answer.levels


def level_costs_of(problem: DiscreteProblem, levels: NDArray[np.int64]) -> Floats:
    """Return what each group's level costs each row, (n, groups)."""
    n, rows = len(levels), np.arange(len(levels))
    paid = np.zeros((n, len(problem.groups)))
    for g, costs in enumerate(problem.level_costs):
        taken = in_range(levels[:, g], costs.shape[1])
        paid[:, g] = costs[rows if len(costs) == n else 0, taken]
    return paid


def costs_of(problem: DiscreteProblem, recourse: Floats, levels: NDArray[np.int64]) -> Floats:
    """Cost of moving every row to its recourse, straight from the definition."""
    base, numbers = problem.base, problem.number_columns
    to, start, unit, fixed_costs = (
        _columns(values, numbers)
        for values in (recourse, base.X, base.feature_costs, problem.all_fixed_costs)
    )
    moved = to - start
    np.multiply(unit, np.abs(moved, out=moved), out=moved)
    if fixed_costs.any():
        moved += np.where(to != start, fixed_costs, 0.0)
    # column by column: a row comes to the same in any batch
    total = np.add.accumulate(moved, axis=1, out=moved)[:, -1] if numbers.size else 0.0
    return np.asarray(total + level_costs_of(problem, levels).sum(axis=1))


def _columns(values: Floats, which: NDArray[np.int64]) -> Floats:
    """Return some columns, by rising place: what there is where these are all of them."""
    return values if which.size == values.shape[1] else values.take(which, axis=1)


def cheapest_units(rows: Rows, numbers: NDArray[np.int64], robust: SetNumbers) -> Floats:
    """Return `problem.costs.cheapest_unit` of each row, over the columns of numbers.

    Here in whole columns, and by division: between two that cost the same it may round otherwise.
    """
    start, coef, cost, lower, upper = (
        _columns(values, numbers)
        for values in (rows.start, rows.coef, rows.cost, rows.lower, rows.upper)
    )
    reach, least = robust.radius * robust.scale[numbers], np.full(len(start), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for slope, free in ((reach + coef, upper > start), (reach - coef, lower < start)):
            units = np.where(free & (slope > 0.0), cost / slope, np.inf)
            least = np.minimum(least, units.min(axis=1, initial=np.inf))
    return np.where(np.isfinite(least), least, 0.0)


def cheapest_levels(problem: DiscreteProblem, robust: SetNumbers, unit: Floats) -> Floats:
    """Return the least cost of a unit of score, levels counted beside `unit`, that of numbers.

    As `search.cheapest_level`, in whole columns: the scores of levels are summed in another order.
    """
    least, base = np.where(unit > 0.0, unit, np.inf), problem.base
    rows = np.arange(base.n_rows)
    for g, (group, costs) in enumerate(zip(problem.groups, problem.level_costs, strict=True)):
        scores = in_rows(_level_scores(group, base.coef[:, group.columns]), base.n_rows)
        sizes = in_rows(level_sizes(group, robust), base.n_rows)
        home = in_range(problem.current[:, g], group.count)
        most = np.abs(scores - scores[rows, home][:, None])
        most = most + robust.radius * (sizes + sizes[rows, home][:, None])
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where((costs > 0.0) & (most > 0.0), costs / most, np.inf)
        least = np.minimum(least, units.min(axis=1, initial=np.inf))
    return np.where(np.isfinite(least), least, 0.0)


def _level_scores(group: Group, coef: Floats) -> Floats:
    """Return what each level adds to the score of each row, (1 or n, m)."""
    if np.ndim(group.levels) == 2:
        return np.asarray(coef @ np.asarray(group.levels, dtype=np.float64).T)
    # column by column: a row comes to the same in any batch
    values = group.by_row
    return np.asarray(sum(coef[:, c, None] * values[:, :, c] for c in range(values.shape[2])))


def appraised(problem: DiscreteProblem, goal: Goal, found: Found) -> Appraisal:
    """Work out what is known of each recourse, none of it taken from a solver."""
    base, unit = problem.base, np.full(problem.base.n_rows, np.nan)
    if goal.is_guarantee:
        robust, numbers = base.robust_to.numbers(base.n_features), problem.number_columns
        unit = cheapest_levels(problem, robust, cheapest_units(base.rows(), numbers, robust))
    cost = costs_of(problem, found.recourse, chosen_levels(found))
    return appraise_points(base, found.recourse, cost, unit)


def make_result(
    problem: DiscreteProblem, goal: Goal, found: Found, tolerance: float
) -> RecourseResult:
    """Appraise what a solver found, say what became of each row, and check every constraint."""
    result = RecourseResult.assemble(
        problem.base, goal, found, appraised(problem, goal, found), tolerance
    )
    check_answer(problem, result)
    return result


def best_found(
    problem: DiscreteProblem,
    goal: Goal,
    find: Callable[[DiscreteProblem], Found],
    tolerance: float,
) -> Found:
    """Find answers to the problems that cover one, and return of each row the best."""
    covers = problem.covers()
    founds = [find(part) for part in covers]
    if len(founds) == 1:
        return founds[0]
    pairs = zip(covers, founds, strict=True)
    results = [make_result(part, goal, found, tolerance) for part, found in pairs]
    prices = np.array([result.price for result in results])
    prices[np.isnan(prices)] = np.inf
    # of those that cost the same, the one with the most room: see `ties`
    scores = np.array([result.worst_case_score for result in results])
    best = np.where(prices > prices.min(axis=0), -np.inf, np.nan_to_num(scores)).argmax(axis=0)
    rows, first = np.arange(problem.base.n_rows), founds[0]
    lost = np.all([np.isnan(found.recourse).any(axis=1) for found in founds], axis=0)
    told: dict[str, Any] = {}
    for name in ("recourse", "outcome", "levels"):
        told[name] = np.array([getattr(found, name) for found in founds])[best, rows]
    for name in ("reachable_validity", "reachable_radius"):
        if getattr(first, name) is not None:
            most = np.fmax.reduce([getattr(found, name) for found in founds])
            told[name] = np.where(lost, most, np.nan)
    bound = np.min([found.lower_bound for found in founds], axis=0)
    nodes = np.sum([found.nodes for found in founds if found.nodes is not None], axis=0)
    return first._replace(lower_bound=bound, nodes=nodes, **told)


def check_answer(problem: DiscreteProblem, result: RecourseResult) -> None:
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
    >>> result = solve_discrete(whole, guarantee=0.5)
    >>> wrong = replace(result, recourse_array=np.array([[2.5]]), cost=np.array([2.5]))
    >>> check_answer(whole, wrong)
    Traceback (most recent call last):
    AssertionError: row 0: a number is not on its lattice. This is a bug; please report it
    """
    found = ~np.isnan(result.recourse_array).any(axis=1)  # an infinite one is checked too
    for what, wrong in violations(problem, result).items():
        rows = np.flatnonzero(wrong & found)
        if rows.size:
            raise AssertionError(f"row {rows[0]}: {what}. This is a bug; please report it")


def violations(problem: DiscreteProblem, result: RecourseResult) -> dict[str, NDArray[np.bool_]]:
    """Say for each constraint which rows break it."""
    x, taken_levels = result.recourse_array, chosen_levels(result)
    base, numbers = problem.base, problem.number_columns
    value, start, lower, upper, step, anchor = (
        _columns(values, numbers)
        for values in (x, base.X, base.lower, base.upper, problem.step, problem.anchor)
    )
    moved = value != start
    inside = (lower <= value) & (value <= upper)
    off = np.zeros(1, dtype=bool)
    if (step > 0.0).any():
        with np.errstate(divide="ignore", invalid="ignore"):
            off = (step > 0.0) & (anchor + step * np.round((value - anchor) / step) != value)
    changes = moved.sum(axis=1)
    taken = np.zeros(len(x), dtype=bool)
    for g, group in enumerate(problem.groups):
        levels = taken_levels[:, g]
        taken |= (levels < 0) | (levels >= group.count)
        values = group.values_of(in_range(levels, group.count))
        taken |= (x[:, group.columns] != values).any(axis=1)
    changes = changes + problem.changes_of(taken_levels).sum(axis=1)
    most = np.inf if problem.max_changes is None else problem.max_changes
    cost, paid = costs_of(problem, x, taken_levels), level_costs_of(problem, taken_levels)
    score = base.robust_to.worst_score(x, base.coef, base.intercept)
    target = result.goal.amount if result.goal.is_guarantee else -np.inf
    return {
        "a number is out of bounds": (moved & ~inside).any(axis=1),
        "a number is not on its lattice": (moved & off).any(axis=1),
        "the columns of a group match none of its levels": taken,
        "a level may not be taken": np.isinf(paid).any(axis=1),
        "too many features change": changes > most,
        "the cost differs": ~np.isclose(cost, result.cost, rtol=1e-9, atol=1e-12),
        "the score is below the guarantee": score < target,
        "it is called infeasible": result.status == Status.INFEASIBLE,
    }
