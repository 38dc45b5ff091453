"""Random problems with discrete parts, everything awkward included; and their answers by force."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast import NormBall
from holdfast.continuous.solve import solve_problem
from holdfast.core import largest_score
from holdfast.discrete import DiscreteProblem, Group
from holdfast.problem import RecourseProblem

EXPONENTS = (1.0, 1.5, 2.0, 4.0, math.inf)
LOSSES = ("logistic", "probit", "hinge", "squared_hinge")


def random_discrete(rng: np.random.Generator, n: int = 2, **fixed: Any) -> DiscreteProblem:
    """Return n small rows of one random shape.

    Keywords fix p, radius, loss, the numbers of each kind (whole, continuous, groups), how many
    options groups have at most, how far lattices reach, and whether touching a number costs.
    """
    n_whole = fixed.get("whole", int(rng.integers(0, 3)))
    n_free = fixed.get("continuous", int(rng.integers(0, 3)))
    n_groups = fixed.get("groups", int(rng.integers(0, 3)))
    if n_whole + n_free + n_groups == 0:
        n_free = 1
    most_levels, reach = fixed.get("levels", 3), fixed.get("reach", 3)
    numbers = n_whole + n_free
    widths = [int(rng.integers(1, most_levels + 1)) for _ in range(n_groups)]
    ordinal = [bool(rng.random() < 0.25) for _ in range(n_groups)]
    d = numbers + sum(1 if o else m for m, o in zip(widths, ordinal, strict=True))
    order = rng.permutation(d)
    points = rng.normal(size=(n, d))
    coef = rng.normal(size=d if rng.random() < 0.6 else (n, d))
    if rng.random() < 0.3:  # ties and zeros
        coef, points = np.round(coef), np.round(points)
    coef[rng.random(coef.shape) < 0.1] = 0.0
    points[rng.random(points.shape) < 0.1] = 0.0

    columns = list(order[numbers:])
    groups, current, level_costs = [], np.zeros((n, n_groups), dtype=np.int64), []
    for g, (m, is_ordinal) in enumerate(zip(widths, ordinal, strict=True)):
        own = np.sort([columns.pop() for _ in range(1 if is_ordinal else m)])
        options = rng.normal(size=(m, 1)).round(1) if is_ordinal else np.eye(m)
        current[:, g] = rng.integers(m, size=n)
        points[:, own] = options[current[:, g]]
        costs = rng.exponential(size=(n, m)) * rng.choice([0.0, 0.3, 1.0], p=[0.1, 0.5, 0.4])
        costs[rng.random((n, m)) < 0.15] = np.inf
        costs[np.arange(n), current[:, g]] = 0.0
        groups.append(Group(own.astype(np.int64), options))
        level_costs.append(costs)

    step, anchor = np.zeros((n, d)), np.zeros((n, d))
    lower, upper = np.full((n, d), -np.inf), np.full((n, d), np.inf)
    for j in order[:n_whole]:
        step[:, j] = rng.choice([0.25, 0.3, 1.0])
        anchor[:, j] = rng.choice([0.0, 0.1])
        if rng.random() < 0.6:  # otherwise the start stays off the lattice
            points[:, j] = anchor[:, j] + step[:, j] * np.round(points[:, j] / step[:, j])
        lower[:, j] = points[:, j] - step[:, j] * rng.integers(0, reach + 1, size=n)
        upper[:, j] = points[:, j] + step[:, j] * rng.integers(0, reach + 1, size=n)
    for j in order[n_whole:numbers]:
        if rng.random() < 0.7:
            lower[:, j] = points[:, j] - rng.exponential(size=n)
        if rng.random() < 0.7:
            upper[:, j] = points[:, j] + rng.exponential(size=n)
        if rng.random() < 0.15:
            lower[:, j] = upper[:, j] = points[:, j]
    p = fixed.get("p", float(rng.choice(EXPONENTS)))
    typical = np.linalg.norm(np.atleast_2d(coef)[0], ord=p)
    radius = fixed.get("radius", float(typical * rng.choice([0.0, 0.05, 0.2, 0.5])))
    scale = rng.choice([0.0, 0.5, 1.0, 2.0], size=d) if rng.random() < 0.4 else None
    base = RecourseProblem.build(
        points,
        coef,
        rng.normal(size=n) - 0.5,
        robust_to=NormBall(p, radius, scale=scale, intercept=bool(rng.random() < 0.7)),
        feature_costs=rng.uniform(0.2, 2.0, size=d),
        bounds=(lower, upper),
        loss=fixed.get("loss", "logistic"),
    )
    most = fixed.get("max_changes", rng.choice(np.array([None, None, 0, 1, 2], dtype=object)))
    fees = None
    if fixed.get("fees"):
        fees = rng.exponential(size=(n, d)) * rng.choice([0.0, 0.3, 1.0], size=(n, d))
    return DiscreteProblem(base, step, anchor, groups, current, level_costs, most, fees)


def lattice(x0: float, lower: float, upper: float, step: float, anchor: float) -> list[float]:
    """Return every allowed value of a bounded whole-number feature."""
    first = math.floor((lower - anchor) / step) - 1
    last = math.ceil((upper - anchor) / step) + 1
    values = {anchor + step * k for k in range(first, last + 1)}
    return sorted({v for v in values if lower <= v <= upper} | {x0})


def choices_of(problem: DiscreteProblem, i: int) -> tuple[list[list[Any]], list[int], list[int]]:
    """Return (choices of each discrete feature, whole-number columns, continuous columns)."""
    base = problem.base.row(i)
    row = [v[i] if v.shape[0] > 1 else v[0] for v in (problem.step, problem.anchor)]
    grouped = {int(j) for group in problem.groups for j in group.columns}
    numbers = [j for j in range(base.n_features) if j not in grouped]
    whole = [j for j in numbers if row[0][j] > 0.0]
    free = [j for j in numbers if row[0][j] == 0.0]
    choices: list[list[Any]] = [
        lattice(base.X[0, j], base.lower[0, j], base.upper[0, j], row[0][j], row[1][j])
        for j in whole
    ]
    for costs in problem.level_costs:
        own = costs[i] if costs.shape[0] > 1 else costs[0]
        choices.append([k for k in range(len(own)) if own[k] < np.inf])
    return choices, whole, free


def own_row(values: np.ndarray, i: int) -> np.ndarray:
    """Return row i of what all rows may share."""
    return values[i] if values.shape[0] > 1 else values[0]


def all_choices(problem: DiscreteProblem, i: int) -> tuple[RecourseProblem, np.ndarray]:
    """Return a continuous problem for each discrete choice of row i, and what the choice costs."""
    base = problem.base.row(i)
    x0, most = base.X[0], problem.max_changes
    fees = np.zeros(x0.size) if problem.fixed_costs is None else own_row(problem.fixed_costs, i)
    choices, whole, free = choices_of(problem, i)
    starts, lowers, uppers, fixed_costs = [], [], [], []
    for choice in itertools.product(*choices):
        x, cost, changed = x0.copy(), 0.0, 0
        for j, value in zip(whole, choice, strict=False):
            x[j] = value
            cost += base.feature_costs[0, j] * abs(value - x0[j])
            cost += fees[j] if value != x0[j] else 0.0
            changed += int(value != x0[j])
        for g, k in enumerate(choice[len(whole) :]):
            x[problem.groups[g].columns] = problem.groups[g].levels[k]
            costs = problem.level_costs[g]
            cost += costs[i, k] if costs.shape[0] > 1 else costs[0, k]
            changed += int(k != problem.current[i, g])
        left = len(free) if most is None else min(most - changed, len(free))
        sizes = range(left + 1) if problem.fixed_costs is not None else [left]
        for movers in itertools.chain(*(itertools.combinations(free, k) for k in sizes if k >= 0)):
            lower, upper = x.copy(), x.copy()
            for j in movers:
                lower[j], upper[j] = base.lower[0, j], base.upper[0, j]
            starts.append(x)
            lowers.append(lower)
            uppers.append(upper)
            fixed_costs.append(cost + sum(fees[j] for j in movers))
    batch = RecourseProblem.build(
        np.array(starts),
        base.coef[0],
        base.intercept[0],
        robust_to=base.robust_to,
        feature_costs=base.feature_costs[0],
        bounds=(np.array(lowers), np.array(uppers)),
        loss=base.loss.name,
    )
    return batch, np.array(fixed_costs)


def by_force(problem: DiscreteProblem, i: int, **goal: Any) -> float:
    """Return the least price of row i (inf: there is none), by trying every discrete choice."""
    batch, fixed_costs = all_choices(problem, i)
    result = solve_problem(batch, **goal)
    return float(np.min(result.price + goal.get("cost_weight", 1.0) * fixed_costs))


def best_score_by_force(problem: DiscreteProblem, i: int) -> float:
    """Return the largest worst-case score of row i, by trying every discrete choice."""
    batch, _ = all_choices(problem, i)
    return max(largest_score(batch.row(k)) for k in range(batch.n_rows))


def take(problem: DiscreteProblem, i: int) -> DiscreteProblem:
    """Return the problem of row i alone."""

    def own(values: np.ndarray) -> np.ndarray:
        return values[i : i + 1] if values.shape[0] > 1 else values

    return replace(
        problem,
        base=problem.base.row(i),
        step=own(problem.step),
        anchor=own(problem.anchor),
        current=problem.current[i : i + 1],
        level_costs=[own(costs) for costs in problem.level_costs],
        fixed_costs=None if problem.fixed_costs is None else own(problem.fixed_costs),
    )


def permuted(rng: np.random.Generator, problem: DiscreteProblem) -> DiscreteProblem:
    """Return the same problem with its columns, groups and options in another order."""
    base, order = problem.base, rng.permutation(problem.base.n_features)
    where = np.argsort(order)  # column j has become column where[j]
    scale = None if base.robust_to.scale is None else np.array(base.robust_to.scale)[order]
    moved = RecourseProblem.build(
        base.X[:, order],
        base.coef[:, order],
        base.intercept,
        robust_to=replace(base.robust_to, scale=scale),
        feature_costs=base.feature_costs[:, order],
        bounds=(base.lower[:, order], base.upper[:, order]),
        loss=base.loss.name,
    )
    groups, current, costs = [], [], []
    for g in rng.permutation(len(problem.groups)):
        turn = rng.permutation(len(problem.groups[g].levels))
        old = problem.groups[g]
        groups.append(Group(where[old.columns], old.levels[turn]))
        current.append(np.argsort(turn)[problem.current[:, g]])
        costs.append(problem.level_costs[g][:, turn])
    now = np.array(current, dtype=np.int64).reshape(len(groups), base.n_rows).T
    return DiscreteProblem(
        moved,
        problem.step[:, order],
        problem.anchor[:, order],
        groups,
        now,
        costs,
        problem.max_changes,
        None if problem.fixed_costs is None else problem.fixed_costs[:, order],
    )
