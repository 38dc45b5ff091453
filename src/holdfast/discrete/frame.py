"""What the parts of a row share, made ready for the search once.

A row with links takes dozens of small searches that differ in their numbers only. What else they
need, the layout and the buffers, is made once and kept.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.kinds import new_work
from holdfast.core.outcome import EXHAUSTED, LIMIT, NO_ROOM
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.leaves import leaves_for
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Batch, Outcomes, Searcher, new_outcomes, search_rows
from holdfast.discrete.solve import few_nodes, make_batch, run_search
from holdfast.discrete.stack import new_stack
from holdfast.machinery.numbers import Floats, as_read
from holdfast.problem.costs import scaled
from holdfast.problem.goal import Goal

MOST_NODES = 100_000
# A search that ends soon needs no thread of its own, from which Ctrl-C could call it back.
_FEW_NODES = 1_000
_DEPTH = 64


class Numbers(NamedTuple):
    """One row, column by column."""

    start: Floats
    lower: Floats
    upper: Floats
    cost: Floats
    fee: Floats
    step: Floats
    anchor: Floats


def numbers_of(problem: DiscreteProblem) -> Numbers:
    """Return the columns of a problem that has one row; those of groups lie among their options."""
    base = problem.problem
    lower, upper = base.lower[0].copy(), base.upper[0].copy()
    for group, costs in zip(problem.groups, problem.option_costs, strict=True):
        allowed = group.by_row[0, np.isfinite(costs[0])]
        lower[group.columns], upper[group.columns] = allowed.min(axis=0), allowed.max(axis=0)
    return Numbers(
        base.X[0],
        lower,
        upper,
        base.feature_costs[0],
        problem.fees[0],
        problem.step[0],
        problem.anchor[0],
    )


class Frame:
    """The groups, the model and its set of a row; its numbers are given with each question."""

    def __init__(self, problem: DiscreteProblem) -> None:
        self.problem, self.columns = problem, problem.number_columns
        self.is_number = np.zeros(problem.problem.n_features, dtype=bool)
        self.is_number[self.columns] = True
        self._rooms: dict[tuple[Goal, int], tuple[Batch, Floats]] = {}
        # where it differs from the one that it is like
        self._rows, self._layout, self._ball = (dict[str, Any]() for _ in range(3))

    def like(self, problem: DiscreteProblem) -> Frame:
        """Return the frame of a problem that has another model, scale or step of its numbers."""
        new, base = copy(self), problem.problem
        new.problem, new._rooms = problem, {}
        rows, step = base.rows(), as_read(problem.step)
        new._rows, new._layout = {"coef": rows.coef, "intercept": rows.intercept}, {"step": step}
        new._ball = {"ball": base.robust_to.numbers(base.n_features)}
        return new

    @cached_property
    def _ready(self) -> tuple[Batch, NDArray[np.int64]]:
        """What the kernels read, in costs around 1, and the power of 2 taken out of them."""
        return make_batch(self.problem, Goal.highest(self.problem.problem.loss))

    @cached_property
    def _private(self) -> Searcher:
        base, batch = self.problem.problem, self._ready[0]
        layout, address = batch.layout, leaves_for(batch.ball).address(lambda: None)
        buffers = new_buffers(layout, base.n_features)
        return Searcher(address, new_work(base), buffers, new_stack(layout, _DEPTH))

    def search(self, asked: list[Numbers], goal: Goal, tolerance: float) -> Outcomes:
        """Search rows that differ in their numbers only; as `solve.search_everybody` does.

        Steps and anchors are those of the frame.
        """
        _, exponent = self._ready
        batch, limits = self._batch(asked, goal), (tolerance, MOST_NODES)
        out = self._search(batch, np.arange(len(asked)), limits)
        if not goal.is_guarantee:
            return out
        out = out._replace(value=scaled(out.value, exponent), bound=scaled(out.bound, exponent))
        lost = np.flatnonzero((out.outcome == EXHAUSTED) & (out.bound == np.inf))
        if lost.size:  # should a point reach what is out of reach, then nothing is proven
            highest = Goal.highest(goal.loss)
            batch = batch.replaced(goal=highest.numbers(), levels=highest.levels(exponent))
            reach = self._search(batch, lost, few_nodes(limits))
            out.bound[lost[-reach.value >= goal.level]] = 0.0
        return out

    def _batch(self, asked: list[Numbers], goal: Goal) -> Batch:
        """Return what the kernels read; its numbers are written over by the next question."""
        _, exponent = self._ready
        batch, written = self._room(goal, len(asked))
        for k, own in enumerate(asked):
            written[0, k], written[1, k], written[2, k] = own.start, own.lower, own.upper
            written[3, k], written[4, k] = own.cost, own.fee
        with np.errstate(over="ignore", under="ignore"):
            np.ldexp(written[3:], -exponent, out=written[3:])
        return batch

    def _room(self, goal: Goal, n: int) -> tuple[Batch, Floats]:
        """Return what the kernels read for n rows, and where their numbers go: one after another.

        These are start, lower, upper, cost and fee.
        """
        if (goal, n) not in self._rooms:
            batch, exponent = self._ready
            written = np.empty((5, n, self.problem.problem.n_features))
            numbers = dict(zip(("points", "lower", "upper", "cost"), written[:4], strict=True))
            current = np.repeat(batch.layout.current, n, axis=0)
            self._rooms[goal, n] = (
                batch.replaced(
                    rows=batch.rows.replaced(**numbers, **self._rows),
                    layout=batch.layout.replaced(
                        fixed_costs=written[4], current=current, **self._layout
                    ),
                    goal=goal.numbers(),
                    levels=goal.levels(exponent),
                    **self._ball,
                ),
                written,
            )
        return self._rooms[goal, n]

    def _search(
        self, batch: Batch, which: NDArray[np.int64], limits: tuple[float, int]
    ) -> Outcomes:
        base = self.problem.problem
        if not self._private.leaves and hasattr(search_rows, "py_func"):
            leaves = leaves_for(batch.ball).address(lambda: None)
            if not leaves:  # compiled, the search would call what is not there
                return run_search(self.problem, batch, which, limits, 1)
            self._private = self._private.replaced(leaves=leaves)
        out = new_outcomes(which.size, base.n_features, len(self.problem.groups))
        first = (limits[0], min(limits[1], _FEW_NODES), np.zeros(1, dtype=np.int8))
        search_rows(self._private, batch, first, which, out, 0, which.size)
        if any(outcome in (LIMIT, NO_ROOM) for outcome in out.outcome.tolist()):
            return run_search(self.problem, batch, which, limits, 1)
        return out
