"""An independent answer for p = 1 and p = inf: a mixed-integer linear program, solved by HiGHS."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from holdfast.discrete import DiscreteProblem


class Program:
    """Variables are added one by one, rows as dicts from variable to coefficient."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, cost=0.0, lower=0.0, upper=math.inf, whole=0) -> int:
        self.cost.append(cost)
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def solve(self):
        matrix = np.zeros((len(self.rows), len(self.cost)))
        for k, (row, _, _) in enumerate(self.rows):
            for j, value in row.items():
                matrix[k, j] += value
        constraints = LinearConstraint(
            matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows]
        )
        begin = time.perf_counter()
        result = milp(
            self.cost,
            constraints=constraints,
            bounds=Bounds(self.lower, self.upper),
            integrality=self.whole,
            options={"mip_rel_gap": 1e-9},
        )
        return result, time.perf_counter() - begin


def least_cost(problem: DiscreteProblem, i: int, target: float) -> tuple[float, float]:
    """Return (least cost of the target score for row i, seconds); inf where there is none.

    x is written as an affine form in the variables, column by column: {variable: factor}, constant.
    """
    base, program = problem.problem.row(i), Program()
    x0, ball, d = base.points[0], base.ball, base.n_features
    step = problem.step[i] if problem.step.shape[0] > 1 else problem.step[0]
    anchor = problem.anchor[i] if problem.anchor.shape[0] > 1 else problem.anchor[0]
    forms: list[tuple[dict[int, float], float]] = [({}, 0.0)] * d
    changes: dict[int, float] = {}
    grouped = set()
    for g, group in enumerate(problem.groups):
        fees = problem.option_costs[g]
        fees = fees[i] if fees.shape[0] > 1 else fees[0]
        taken = [
            program.variable(cost=fee if fee < np.inf else 0.0, upper=float(fee < np.inf), whole=1)
            for fee in fees
        ]
        program.rows.append(({k: 1.0 for k in taken}, 1.0, 1.0))
        for c, j in enumerate(group.columns):
            grouped.add(int(j))
            forms[j] = ({k: v for k, v in zip(taken, group.options[:, c], strict=True)}, 0.0)
        for k, variable in enumerate(taken):
            if k != problem.current[i, g]:
                changes[variable] = 1.0
    for j in range(d):
        if j in grouped:
            continue
        low, high = base.lower[0, j], base.upper[0, j]
        big = 1e4
        low, high = max(low, x0[j] - big), min(high, x0[j] + big)
        up = program.variable(cost=base.feature_costs[0, j])
        down = program.variable(cost=base.feature_costs[0, j])
        forms[j] = ({up: 1.0, down: -1.0}, x0[j])
        program.rows.append(({up: 1.0, down: -1.0}, low - x0[j], high - x0[j]))
        moved = None
        if step[j] > 0.0:
            on = (x0[j] - anchor[j]) / step[j]
            first = math.ceil((low - anchor[j]) / step[j] - 1e-9)
            last = math.floor((high - anchor[j]) / step[j] + 1e-9)
            whole = program.variable(lower=min(first, 0), upper=max(last, 0), whole=1)
            # x = x0 + moved * (anchor - x0) + step * k, with k = 0 unless moved
            moved = program.variable(upper=1.0, whole=1)
            program.rows.append(
                (
                    {up: 1.0, down: -1.0, moved: x0[j] - anchor[j], whole: -step[j]},
                    0.0,
                    0.0,
                )
            )
            program.rows.append(({whole: 1.0, moved: -float(max(last, 0))}, -np.inf, 0.0))
            program.rows.append(({whole: 1.0, moved: -float(min(first, 0))}, 0.0, np.inf))
            del on
        elif problem.most_changes is not None:
            moved = program.variable(upper=1.0, whole=1)
            program.rows.append(({up: 1.0, moved: -(high - x0[j])}, -np.inf, 0.0))
            program.rows.append(({down: 1.0, moved: -(x0[j] - low)}, -np.inf, 0.0))
        if moved is not None:
            changes[moved] = 1.0
    if problem.most_changes is not None:
        program.rows.append((changes, 0.0, float(problem.most_changes)))
    score: dict[int, float] = {}
    constant = base.intercept[0]
    scale = ball.feature_scale(d)
    if ball.p == 1.0:
        size = program.variable(lower=ball.intercept_scale)
        score[size] = -ball.radius
    for j in range(d):
        form, shift = forms[j]
        for k, value in form.items():
            score[k] = score.get(k, 0.0) + base.coef[0, j] * value
        constant += base.coef[0, j] * shift
        if ball.p != 1.0:
            size = program.variable()
            score[size] = -ball.radius
        for sign in (1.0, -1.0):  # size >= scale * |x_j|
            row = {k: -sign * scale[j] * value for k, value in form.items()}
            row[size] = row.get(size, 0.0) + 1.0
            program.rows.append((row, sign * scale[j] * shift, np.inf))
    if ball.p != 1.0:
        constant -= ball.radius * ball.intercept_scale
    program.rows.append((score, target - constant, np.inf))
    result, spent = program.solve()
    return (math.inf if result.x is None else float(result.fun)), spent
