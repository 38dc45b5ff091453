"""Recourse with discrete parts: against every choice tried by force, and against HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from discrete_problems import EXPONENTS, LOSSES, by_force, random_discrete

from holdfast import Status
from holdfast.discrete import check_answer, solve_discrete


def goal_of(rng: np.random.Generator, problem) -> dict[str, float]:
    if rng.random() < 0.5:
        return {"cost_weight": float(10.0 ** rng.uniform(-1.5, 0.3))}
    has_link = problem.problem.loss.link is not None
    return {"guarantee": float(rng.uniform(0.2, 0.9)) if has_link else 0.5}


def check_by_force(rng: np.random.Generator, **fixed) -> int:
    """Solve one random batch, compare every row, and return how many there were."""
    problem = random_discrete(rng, loss=str(rng.choice(LOSSES)), **fixed)
    goal = goal_of(rng, problem)
    ours = solve_discrete(problem, **goal, threads=1)
    check_answer(ours)
    for i in range(len(ours)):
        theirs = by_force(problem, i, **goal)
        if np.isinf(theirs) or ours.status[i] is Status.INFEASIBLE:
            assert np.isinf(theirs)
            assert ours.status[i] is Status.INFEASIBLE
            continue
        assert ours.price[i] == pytest.approx(theirs, rel=1e-7, abs=1e-7), (goal, i)
        assert ours.status[i] in (Status.OPTIMAL, Status.ALREADY_VALID)
        assert ours.lower_bound[i] <= theirs + 1e-9 * (1 + theirs)
    return len(ours)


@pytest.mark.parametrize("p", EXPONENTS)
def test_agrees_with_every_choice_tried(p):
    rng = np.random.default_rng([41, int(min(p, 99) * 10)])
    assert sum(check_by_force(rng, p=p) for _ in range(100)) == 200
