"""Features of a discrete problem by name: which changed, and how to hold some of them still."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from holdfast.actions import Compiled, LinkRows
from holdfast.discrete import DiscreteProblem
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.features import Number


def take_row(problem: DiscreteProblem, i: int) -> DiscreteProblem:
    """Return the problem of one row alone."""

    def pick(values: Floats) -> Floats:
        return values[i : i + 1] if len(values) > 1 else values

    return replace(
        problem,
        problem=problem.problem.row(i),
        step=pick(problem.step),
        anchor=pick(problem.anchor),
        current=problem.current[i : i + 1],
        option_costs=[pick(costs) for costs in problem.option_costs],
        fixed_costs=None if problem.fixed_costs is None else pick(problem.fixed_costs),
    )


def row_links(links: LinkRows, i: int) -> LinkRows:
    """Return the links of one person."""
    return LinkRows(links.matrix, links.lower[i : i + 1], links.upper[i : i + 1])


def number_columns(compiled: Compiled) -> dict[str, int]:
    """Return the encoded column of every number that may change."""
    columns = {}
    for name in compiled.ranges:
        number = compiled.encoding[name]
        assert isinstance(number, Number)
        columns[name] = number.column
    return columns


def changed(compiled: Compiled, i: int, recourse: Floats, options: Floats) -> frozenset[str]:
    """Name the features that a recourse of person i changes."""
    start = compiled.problem.problem.X[i]
    moved = {name for name, j in number_columns(compiled).items() if recourse[j] != start[j]}
    current = compiled.problem.current[i]
    switched = {name for k, name in enumerate(compiled.levels) if options[k] != current[k]}
    return frozenset(moved | switched)


def hold_still(
    problem: DiscreteProblem, compiled: Compiled, names: Iterable[str]
) -> DiscreteProblem:
    """Return a one-row problem in which some features stay as they are."""
    held = set(names)
    base = problem.problem
    lower, upper = base.lower.copy(), base.upper.copy()
    for name, j in number_columns(compiled).items():
        if name in held:
            lower[:, j] = upper[:, j] = base.X[0, j]
    costs = []
    for k, (name, old) in enumerate(zip(compiled.levels, problem.option_costs, strict=True)):
        new = old.copy()
        if name in held:
            new[:] = np.inf
            new[0, problem.current[0, k]] = 0.0
        costs.append(new)
    lower.flags.writeable = upper.flags.writeable = False
    return replace(problem, problem=replace(base, lower=lower, upper=upper), option_costs=costs)
