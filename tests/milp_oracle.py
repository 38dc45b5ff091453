"""An independent answer for p = 1 and p = inf: a mixed-integer linear program, solved by HiGHS."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from holdfast.continuous.solve import solve_problem
from holdfast.discrete import DiscreteProblem
from holdfast.problem import RecourseProblem

Form = tuple[dict[int, float], float]  # an affine form: variable -> factor, and a constant
_FAR = 1e4  # stands for an infinite bound


class Program:
    """A row of a discrete problem; `forms` writes each column as a form in the variables."""

    def __init__(self, problem: DiscreteProblem, i: int) -> None:
        self.problem, self.i, self.base = problem, i, problem.base.row(i)
        self.cost: list[float] = []
        self.bounds: list[tuple[float, float]] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.changes: dict[int, float] = {}
        self.seconds = 0.0
        self.forms: list[Form] = [({}, 0.0)] * self.base.n_features
        grouped = [self.add_group(g) for g in range(len(problem.groups))]
        for j in set(range(self.base.n_features)) - {int(j) for own in grouped for j in own}:
            self.add_number(j)
        if problem.max_changes is not None:
            self.rows.append((self.changes, 0.0, float(problem.max_changes)))
        self.score = self.worst_score()

    def own(self, values: Any) -> Any:
        return values[self.i] if values.shape[0] > 1 else values[0]

    def variable(self, cost: float = 0.0, lower: float = 0.0, upper: float = math.inf, whole=0):
        self.cost.append(cost)
        self.bounds.append((lower, upper))
        self.whole.append(whole)
        return len(self.cost) - 1

    def add_group(self, g: int) -> Any:
        group, fees = self.problem.groups[g], self.own(self.problem.level_costs[g])
        taken = [
            self.variable(fee if fee < np.inf else 0.0, 0.0, float(fee < np.inf), 1) for fee in fees
        ]
        self.rows.append((dict.fromkeys(taken, 1.0), 1.0, 1.0))
        for c, j in enumerate(group.columns):
            self.forms[j] = (dict(zip(taken, group.levels[:, c], strict=True)), 0.0)
        home = self.problem.current[self.i, g]
        self.changes.update({v: 1.0 for k, v in enumerate(taken) if k != home})
        return group.columns

    def add_number(self, j: int) -> None:
        x0, price = self.base.X[0, j], self.base.feature_costs[0, j]
        low = max(self.base.lower[0, j], x0 - _FAR)
        high = min(self.base.upper[0, j], x0 + _FAR)
        up, down = self.variable(price), self.variable(price)
        self.forms[j] = ({up: 1.0, down: -1.0}, x0)
        self.rows.append(({up: 1.0, down: -1.0}, low - x0, high - x0))
        fees = self.problem.fixed_costs
        moved = self.variable(0.0 if fees is None else self.own(fees)[j], upper=1.0, whole=1)
        self.changes[moved] = 1.0
        step, anchor = self.own(self.problem.step)[j], self.own(self.problem.anchor)[j]
        if step > 0.0:  # x = x0 + moved * (anchor - x0) + step * k, with k = 0 unless moved
            near = math.floor((x0 - anchor) / step) + np.arange(-2 * _FAR, 2 * _FAR)
            inside = near[(anchor + step * near >= low) & (anchor + step * near <= high)]
            first, last = (inside.min(), inside.max()) if inside.size else (0.0, 0.0)
            if not inside.size:
                self.bounds[moved] = (0.0, 0.0)
            k = self.variable(lower=min(first, 0.0), upper=max(last, 0.0), whole=1)
            self.rows.append(({up: 1.0, down: -1.0, moved: x0 - anchor, k: -step}, 0.0, 0.0))
            self.rows.append(({k: 1.0, moved: -float(last)}, -np.inf, 0.0))
            self.rows.append(({k: 1.0, moved: -float(first)}, 0.0, np.inf))
        else:
            self.rows.append(({up: 1.0, moved: -(high - x0)}, -np.inf, 0.0))
            self.rows.append(({down: 1.0, moved: -(x0 - low)}, -np.inf, 0.0))

    def worst_score(self) -> Form:
        """Return the worst-case score as a form; its variables of size bear the norm."""
        ball, d = self.base.robust_to, self.base.n_features
        score: dict[int, float] = {}
        constant, scale = float(self.base.intercept[0]), ball.feature_scale(d)
        largest = self.variable(lower=ball.intercept_scale)
        if ball.p == 1.0:
            score[largest] = -ball.radius
        else:
            constant -= ball.radius * ball.intercept_scale
        for j, (form, shift) in enumerate(self.forms):
            for k, value in form.items():
                score[k] = score.get(k, 0.0) + self.base.coef[0, j] * value
            constant += self.base.coef[0, j] * shift
            size = largest
            if ball.p != 1.0:
                size = self.variable()
                score[size] = -ball.radius
            for sign in (1.0, -1.0):  # size >= scale * |x_j|
                row = {k: -sign * scale[j] * value for k, value in form.items()}
                self.rows.append(({**row, size: 1.0}, sign * scale[j] * shift, np.inf))
        return score, constant

    def solve(self, presolve: bool = True) -> Any:
        matrix = np.zeros((len(self.rows), len(self.cost)))
        for k, (row, _, _) in enumerate(self.rows):
            for j, value in row.items():
                matrix[k, j] += value
        lower, upper = np.array([r[1] for r in self.rows]), np.array([r[2] for r in self.rows])
        bounds = Bounds(*np.array(self.bounds).T)
        begin = time.perf_counter()
        result = milp(
            self.cost,
            constraints=LinearConstraint(matrix, lower, upper),
            bounds=bounds,
            integrality=self.whole,
            options={"mip_rel_gap": 1e-9, "presolve": presolve},
        )
        self.seconds += time.perf_counter() - begin
        return result

    def point(self, variables: Any) -> Any:
        return np.array([s + sum(v * variables[k] for k, v in f.items()) for f, s in self.forms])


def least_cost(
    problem: DiscreteProblem, i: int, target: float, presolve: bool = True
) -> tuple[float, Any, float]:
    """Return (least cost of the target score, point, seconds); inf where there is none."""
    program = Program(problem, i)
    score, constant = program.score
    program.rows.append((score, target - constant, np.inf))
    result = program.solve(presolve)
    if result.x is None:
        return math.inf, None, program.seconds
    return float(result.fun), program.point(result.x), program.seconds


def least_price(
    problem: DiscreteProblem, i: int, cost_weight: float, presolve: bool = True
) -> tuple[float, Any, float]:
    """Return (least price, point, seconds): tangents of the loss are added until they meet it."""
    program, loss = Program(problem, i), problem.base.loss
    score, constant = program.score
    program.cost = [cost_weight * cost for cost in program.cost]
    t, eta = program.variable(lower=-1e4, upper=1e4), program.variable(cost=1.0)
    program.rows.append(({**score, t: -1.0}, -constant, np.inf))
    tangents = [-2.0, 0.0, 2.0]
    for _ in range(60):
        for at in tangents:
            slope = float(loss.slope(at))
            program.rows.append(({eta: 1.0, t: slope}, float(loss.value(at)) + slope * at, np.inf))
        result = program.solve(presolve)
        missing = float(loss.value(result.x[t])) - result.x[eta]
        if missing <= 1e-10:
            break
        tangents = [float(result.x[t])]
    return float(result.fun), program.point(result.x), program.seconds


def polished(problem: DiscreteProblem, i: int, x: Any, **goal: float) -> float:
    """Return the true price of the oracle's discrete choices, their continuous rest solved."""
    base, fixed_cost = problem.base.row(i), 0.0
    x0 = base.X[0]
    start, lower, upper = x0.copy(), x0.copy(), x0.copy()
    grouped = {int(j) for group in problem.groups for j in group.columns}
    for g, group in enumerate(problem.groups):
        k = int(np.argmin(np.abs(group.levels - x[group.columns]).sum(axis=1)))
        start[group.columns] = group.levels[k]
        fees = problem.level_costs[g]
        fixed_cost += (fees[i] if fees.shape[0] > 1 else fees[0])[k]
    step, anchor = (v[i] if v.shape[0] > 1 else v[0] for v in (problem.step, problem.anchor))
    touching = problem.fixed_costs
    for j in set(range(x0.size)) - grouped:
        if abs(x[j] - x0[j]) <= 1e-6:
            continue
        if touching is not None:
            fixed_cost += (touching[i] if touching.shape[0] > 1 else touching[0])[j]
        if step[j] > 0.0:
            start[j] = anchor[j] + step[j] * round((x[j] - anchor[j]) / step[j])
            fixed_cost += base.feature_costs[0, j] * abs(start[j] - x0[j])
    lower, upper = start.copy(), start.copy()
    for j in set(range(x0.size)) - grouped:
        anywhere = problem.max_changes is None and touching is None
        if step[j] == 0.0 and (anywhere or abs(x[j] - x0[j]) > 1e-6):
            lower[j], upper[j] = base.lower[0, j], base.upper[0, j]
    rest = RecourseProblem.build(
        start[None],
        base.coef[0],
        base.intercept[0],
        robust_to=base.robust_to,
        feature_costs=base.feature_costs[0],
        bounds=(lower, upper),
        loss=base.loss.name,
    )
    return float(solve_problem(rest, **goal).price[0] + goal.get("cost_weight", 1.0) * fixed_cost)
