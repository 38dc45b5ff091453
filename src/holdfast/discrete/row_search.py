"""The search of the parts of a row: what they share is made ready once.

A row with links takes dozens of small searches that differ in their numbers only. What else they
need, the layout and the buffers, is made once and kept.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.kinds import new_work
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.leaves import leaves_for
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Batch, FoundRows, Limits, SearchWork, new_found_rows, search_rows
from holdfast.discrete.run import make_batch, run_search
from holdfast.discrete.solve import search_with_reach
from holdfast.discrete.stack import new_stack
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import BallNumbers
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import LIMIT, NO_ROOM

MOST_NODES = 100_000
# A search that ends soon needs no thread of its own, from which Ctrl-C could call it back.
FEW_NODES = 1_000
_DEPTH = 64
_FEW_ROWS = 4  # as most questions have


class Numbers(NamedTuple):
    """One row, column by column."""

    start: Floats
    lower: Floats
    upper: Floats
    cost: Floats
    fixed_cost: Floats
    step: Floats
    anchor: Floats


def numbers_of(problem: DiscreteProblem) -> Numbers:
    """Return the columns of a problem that has one row; those of groups lie among their levels."""
    base = problem.base
    lower, upper = base.lower[0].copy(), base.upper[0].copy()
    for group, costs in zip(problem.groups, problem.level_costs, strict=True):
        allowed = group.by_row[0, np.isfinite(costs[0])]
        lower[group.columns], upper[group.columns] = allowed.min(axis=0), allowed.max(axis=0)
    return Numbers(
        base.X[0],
        lower,
        upper,
        base.feature_costs[0],
        problem.all_fixed_costs[0],
        problem.step[0],
        problem.anchor[0],
    )


class RowModel(NamedTuple):
    """The linear score of a row, and how far each coefficient may move in a ball of radius 1."""

    coef: Floats
    intercept: float
    scale: Floats


class _Buffers(NamedTuple):
    """What the kernels read for some rows, and where a question is written."""

    batch: Batch
    numbers: Numbers  # a row each
    costs: Floats  # those of the numbers and their fixed costs, in one piece
    coef: Floats
    intercept: Floats
    scale: Floats


class RowSearcher:
    """Searches one row: its groups, its model and the set stay, each question brings numbers."""

    def __init__(self, problem: DiscreteProblem) -> None:
        self.problem, self.columns = problem, problem.number_columns
        self.is_number = np.zeros(problem.base.n_features, dtype=bool)
        self.is_number[self.columns] = True
        self._home = self  # what it shares all but its model with
        self._buffers: dict[Goal, _Buffers] = {}

    @cached_property
    def model(self) -> RowModel:
        """The model that is asked about."""
        base = self.problem.base
        return RowModel(base.coef[0], float(base.intercept[0]), self._ready[0].robust.scale)

    def like(self, model: RowModel) -> RowSearcher:
        """Return the same searcher for another model."""
        new = copy(self)
        new.model = model
        return new

    @cached_property
    def _ready(self) -> tuple[Batch, NDArray[np.int64]]:
        """What the kernels read, in costs around 1, and the power of 2 taken out of them."""
        return make_batch(self.problem, Goal.highest(self.problem.base.loss))

    @cached_property
    def _private(self) -> SearchWork:
        base, batch = self.problem.base, self._ready[0]
        layout, address = batch.layout, leaves_for(batch.robust).address(lambda: None)
        buffers = new_buffers(layout, base.n_features)
        return SearchWork(address, new_work(base), buffers, new_stack(layout, _DEPTH))

    def search(
        self, asked: list[Numbers], goal: Goal, tolerance: float, max_nodes: int = MOST_NODES
    ) -> FoundRows:
        """Search rows that differ in their numbers only; their anchors are those of its problem."""
        _, exponent = self._home._ready
        batch, limits = self._batch(asked, goal), Limits(tolerance, max_nodes)
        return search_with_reach(self._search, batch, len(asked), goal, exponent, limits).out

    def _batch(self, asked: list[Numbers], goal: Goal) -> Batch:
        """Return what the kernels read; it is written over by the next question."""
        n, (_, exponent) = len(asked), self._home._ready
        buffers = self._home._buffers_for(goal, n)
        buffers.coef[0], buffers.intercept[0], buffers.scale[:] = self.model
        start, lower, upper, cost, fixed_cost, step, _ = buffers.numbers
        for k, own in enumerate(asked):
            start[k], lower[k], upper[k] = own.start, own.lower, own.upper
            cost[k], fixed_cost[k], step[k] = own.cost, own.fixed_cost, own.step
        if exponent[0]:
            costs = buffers.costs[:, :n]
            with np.errstate(over="ignore", under="ignore"):
                np.ldexp(costs, -exponent, out=costs)
        return buffers.batch

    def _buffers_for(self, goal: Goal, n: int) -> _Buffers:
        """Return what the kernels read for n rows or more, and where the question goes."""
        buffers = self._buffers.get(goal)
        if buffers is None or len(buffers.numbers.start) < n:
            buffers = self._buffers[goal] = self._new_buffers(goal, max(n, _FEW_ROWS))
        return buffers

    def _new_buffers(self, goal: Goal, n: int) -> _Buffers:
        batch, exponent = self._ready
        d, robust = self.problem.base.n_features, batch.robust
        coef, intercept, scale = np.empty((1, d)), np.empty(1), np.empty(d)
        start, lower, upper, step = np.empty((4, n, d))
        cost, fixed_cost = costs = np.empty((2, n, d))
        asked = batch.replaced(
            rows=batch.rows.replaced(
                start=start, lower=lower, upper=upper, cost=cost, coef=coef, intercept=intercept
            ),
            layout=batch.layout.replaced(
                fixed_costs=fixed_cost,
                step=step,
                current=np.repeat(batch.layout.current, n, axis=0),
            ),
            robust=robust._replace(scale=scale) if isinstance(robust, BallNumbers) else robust,
            goal=goal.numbers(),
            amounts=goal.amounts(exponent),
        )
        numbers = Numbers(start, lower, upper, cost, fixed_cost, step, batch.layout.anchor)
        return _Buffers(asked, numbers, costs, coef, intercept, scale)

    def _search(self, batch: Batch, which: NDArray[np.int64], limits: Limits) -> FoundRows:
        base, home = self.problem.base, self._home
        if not home._private.leaves and hasattr(search_rows, "py_func"):
            leaves = leaves_for(batch.robust).address(lambda: None)
            if not leaves:  # compiled, the search would call what is not there
                return run_search(self.problem, batch, which, limits, 1)
            home._private = home._private.replaced(leaves=leaves)
        out = new_found_rows(which.size, base.n_features, len(self.problem.groups))
        first = Limits(limits.tolerance, min(limits.nodes, FEW_NODES))
        search_rows(home._private, batch, first, which, out, 0, which.size)
        stopped = {NO_ROOM} if limits.nodes <= FEW_NODES else {LIMIT, NO_ROOM}
        if not stopped.isdisjoint(out.outcome.tolist()):
            return run_search(self.problem, batch, which, limits, 1)
        return out
