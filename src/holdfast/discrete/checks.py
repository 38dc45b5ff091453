"""What a problem with discrete parts must hold before it is solved."""

from __future__ import annotations

import numpy as np

from holdfast.discrete.problem import DiscreteProblem, Group
from holdfast.machinery.numbers import check_count, check_kind, read_floats
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem


def check_goal(problem: DiscreteProblem, goal: Goal) -> None:
    """Refuse a price of a loss that is not convex: the bound of a node would not hold."""
    loss = problem.base.loss
    if not (goal.is_guarantee or loss.convex):
        raise ValueError(
            f"loss = {loss.name!r} is not convex: with discrete parts it only works with a "
            "guarantee; a cost_weight needs a convex loss"
        )


def check_problem(problem: DiscreteProblem) -> None:
    """Refuse shapes that do not fit together."""
    check_kind("problem", problem, DiscreteProblem, "make a DiscreteProblem")
    check_kind("base", problem.base, RecourseProblem, "make it with RecourseProblem.build")
    n, d = problem.base.n_rows, problem.base.n_features
    for name in ("groups", "level_costs"):
        check_kind(name, getattr(problem, name), list, "give one entry for each group")
    for group in problem.groups:
        check_kind("groups", group, Group, "give a list of Group")
        for name in ("columns", "levels"):
            values = read_floats(f"{name} of groups", getattr(group, name))
            if values.ndim not in ((1,) if name == "columns" else (2, 3)) or values.size == 0:
                raise ValueError(f"{name} of groups has shape {values.shape}")
        own = read_floats("columns of groups", group.columns)
        if not ((own == np.floor(own)) & (own >= 0) & (own < d)).all():
            raise ValueError(f"columns of groups must be whole numbers from 0 to {d - 1}")
    for name in ("step", "anchor", "fixed_costs"):
        if name == "fixed_costs" and problem.fixed_costs is None:
            continue
        shape = read_floats(name, getattr(problem, name)).shape
        if shape not in ((1, d), (n, d)):
            raise ValueError(f"{name} has shape {shape}, expected (1, {d}) or ({n}, {d})")
    columns = problem.grouped_columns
    if np.unique(columns).size < columns.size or np.any((columns < 0) | (columns >= d)):
        raise ValueError(f"groups have the columns {columns.tolist()}: each of 0 to {d - 1} once")
    if not np.array_equal(current := read_floats("current", problem.current), np.round(current)):
        raise ValueError(
            "current holds numbers that are not whole; it must hold positions of levels"
        )
    if np.shape(problem.current) != (n, len(problem.groups)):
        expected = (n, len(problem.groups))
        raise ValueError(f"current has shape {np.shape(problem.current)}, expected {expected}")
    if len(problem.level_costs) != len(problem.groups):
        raise ValueError(f"{len(problem.level_costs)} level_costs, {len(problem.groups)} groups")
    for g, (group, costs) in enumerate(zip(problem.groups, problem.level_costs, strict=True)):
        m, c = group.count, len(group.columns)
        if np.shape(group.levels) not in ((m, c), (1, m, c), (n, m, c)):
            raise ValueError(
                f"levels of group {g} have shape {np.shape(group.levels)}, expected "
                f"({m}, {c}) or ({n}, {m}, {c})"
            )
        if read_floats(f"level_costs[{g}]", costs).shape not in ((1, m), (n, m)):
            raise ValueError(f"level_costs[{g}] has shape {np.shape(costs)}, expected (1, {m})")
    if problem.max_changes is not None:
        check_count("max_changes", problem.max_changes, least=0)
    for g, counts in enumerate(problem.level_changes or ()):
        shape = np.shape(problem.level_costs[g])
        if np.shape(counts) not in ((1, shape[1]), (n, shape[1])):
            raise ValueError(f"level_changes[{g}] has shape {np.shape(counts)}, expected {shape}")
