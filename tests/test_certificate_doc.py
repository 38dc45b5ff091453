"""The ten lines of docs/certificate.md, run as they stand over ten thousand rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from problems import random_problem

from holdfast import RecourseResult, Status
from holdfast.continuous.solve import solve_problem

DOC = Path(__file__).parents[1] / "docs" / "certificate.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)


def load():
    names: dict = {}
    exec(BLOCKS[0], names)
    return names["check"]


def checked(check, result: RecourseResult, i: int) -> float:
    row = result.problem.row(i)
    values = (row.X, row.coef, row.intercept, row.feature_costs, row.lower, row.upper)
    point, coef, intercept, costs, lower, upper = (v[0] for v in values)
    goal = {"guarantee": result.guarantee, "weight": result.cost_weight}
    proof = result.certificate(i)
    return check(proof, point, coef, intercept, costs, lower, upper, row.robust_to, **goal)


def test_the_example_runs(capsys):
    names: dict = {}
    for block in BLOCKS:
        exec(block, names)
    assert len(re.findall("no recourse costs less", capsys.readouterr().out)) == 2


def test_ten_thousand_certificates():
    check, rng = load(), np.random.default_rng(127)
    rows, infeasible = 0, 0
    while rows < 10_000:
        problem = random_problem(rng, n=40)
        for goal in (
            {"guarantee": float(rng.uniform(0.05, 0.95))},
            {"cost_weight": float(10.0 ** rng.uniform(-3, 0.3))},
        ):
            result = solve_problem(problem, **goal)
            for i in range(len(result)):
                rows += 1
                bound, stated = checked(check, result, i), result.lower_bound[i]
                if np.isinf(stated):
                    infeasible += 1
                    assert result.status[i] is Status.INFEASIBLE
                    assert bound == np.inf
                    continue
                # the terms that cancel in the bound are rounded, here and there
                row, mu = problem.row(i), result.certificate(i).multiplier
                assert mu == result.multiplier[i]
                terms = np.abs(row.coef * row.X).sum() + abs(row.intercept[0]) + 1.0
                weight = goal.get("cost_weight", 1.0)
                slack = 1e-9 * abs(stated) + (1e-12 if "cost_weight" in goal else 0.0)
                if np.isfinite(mu):
                    slack += 1e-12 * weight * mu * terms
                assert abs(bound - stated) <= slack
                if np.isfinite(result.price[i]):
                    assert abs(result.price[i] - bound - result.gap[i]) <= slack
    assert infeasible > 100


def test_it_finds_a_wrong_proof():
    """The check can fail: a model out of the ball, or a multiplier that an endless room forbids."""
    from dataclasses import replace

    import pytest

    check = load()
    problem = random_problem(np.random.default_rng(131), n=1, d=3, p=2.0, radius=0.2)
    problem = replace(problem, lower=np.full((1, 3), -np.inf), upper=np.full((1, 3), np.inf))
    result = solve_problem(problem, guarantee=0.9)
    proof = result.certificate(0)
    values = (problem.X[0], problem.coef[0], problem.intercept[0], problem.feature_costs[0])
    more = (problem.lower[0], problem.upper[0], problem.robust_to)
    assert check(proof, *values, *more, guarantee=0.9) == pytest.approx(result.cost[0])
    coef, intercept = proof.worst_model
    with pytest.raises(AssertionError):
        check(replace(proof, worst_model=(coef + 1.0, intercept)), *values, *more, guarantee=0.9)
    steep = replace(proof, multiplier=1.01 * proof.multiplier)
    assert check(steep, *values, *more, guarantee=0.9) == 0.0
