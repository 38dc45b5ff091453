"""Batches of rows, searched by the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.kinds import kind_of, new_work
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.layout import make_layout
from holdfast.discrete.leaves import leaves_for
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Batch, FoundRows, Limits, SearchWork, new_found_rows, search_rows
from holdfast.discrete.stack import new_stack
from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.threads import over_rows
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import NO_ROOM

_LEAST_ROWS = 4  # a row takes so long that even a few are worth a thread
_DEPTH = 256  # nodes that may wait for their turn; where that is too few, it grows
_REACH_NODES = 5_000  # for what is said of an infeasible row, beside that it is infeasible


def make_batch(problem: DiscreteProblem, goal: Goal) -> tuple[Batch, NDArray[np.int64]]:
    """Return what the kernels read, in even costs, and the powers of 2 taken out of them."""
    even, exponent = problem.in_even_costs()
    base = even.base
    robust, amounts = base.robust_to.numbers(base.n_features), goal.amounts(exponent)
    radii = np.array([robust.radius])
    batch = Batch(
        base.rows(), make_layout(even), robust, radii, goal.numbers(), amounts, kind_of(robust)
    )
    return batch, exponent


def run_search(
    problem: DiscreteProblem,
    batch: Batch,
    which: NDArray[np.int64],
    limits: Limits,
    threads: int,
) -> FoundRows:
    """Search some rows; values and bounds are in even costs."""
    d, depth = problem.base.n_features, _DEPTH

    def search(batch: Batch, which: NDArray[np.int64]) -> FoundRows:
        out, stop = new_found_rows(which.size, d, len(problem.groups)), np.zeros(1, dtype=np.int8)
        arguments = (batch, limits._replace(stop=stop), which, out)

        def private(address: int) -> SearchWork:
            work, buffers = new_work(problem.base), new_buffers(batch.layout, d)
            return SearchWork(address, work, buffers, new_stack(batch.layout, depth))

        def compile_search() -> None:  # called on no rows, it calls nothing itself
            search_rows(private(0), *arguments, 0, 0)

        def run(kernel: Any, address: int) -> None:
            over_rows(
                kernel,
                which.size,
                threads,
                *arguments,
                private=lambda: private(address),
                least_rows=_LEAST_ROWS,
                stop=stop,  # a row may take minutes
            )

        leaves = leaves_for(batch.robust)
        address = leaves.address(compile_search)
        # compiled, the search would call what is not there
        if not address and hasattr(search_rows, "py_func"):
            try:
                run(meanwhile.in_python(search_rows), 0)
                return out
            except ArithmeticError:  # compiled, a division by zero is infinite
                address, stop[0] = leaves.wait(compile_search), 0
        run(search_rows, address)
        return out

    out = search(batch, which)
    while (cramped := np.flatnonzero(out.outcome == NO_ROOM)).size:
        depth *= 16
        radii = batch.radii[cramped] if batch.radii.size > 1 else batch.radii
        again = search(batch.replaced(radii=radii), which[cramped])
        for name in FoundRows._fields:
            getattr(out, name)[cramped] = getattr(again, name)
    return out


def few_nodes(limits: Limits) -> Limits:
    """Return the limits of what is said of a row beside that it is infeasible."""
    return Limits(nodes=min(limits.nodes, _REACH_NODES))
