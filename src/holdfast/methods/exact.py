"""The exact core as a method among the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.continuous.frontier import answer
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.problem.losses import LOSSES


@dataclass(frozen=True)
class Exact(Method):
    """The optimum, proven."""

    name = "exact"
    summary = "Holdfast's own solvers: closed forms and nested root finding"
    guarantees = "optimal for linear scores, any p, proven for each row"
    losses = tuple(LOSSES)
    honours_bounds = True
    any_set = True
    gives_guarantee = True
    compiled = True

    def run(self, task: Task) -> Proposal:
        """Solve every row."""
        result = answer(task.problem, task.goal, task.threads)
        n = task.problem.n_rows
        return Proposal(result.recourse_array, all_converged(n), np.zeros(n, dtype=np.int64))
