"""Discrete problems whose columns are linked: a mixed-integer program with cuts added as needed.

Links couple features, so that the separable bounds of the search do not hold. Instead HiGHS solves
a master program in which the score is at most ``v.x + b'`` for every model (v, b') found so far:
each round adds the worst model of its answer, exact for every p in the limit. In price mode the
loss is bounded below by its tangents. The master's optimum is the lower bound, the true price of
its answer (the continuous rest solved for its discrete choices) the upper one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast._numbers import Floats
from holdfast.api import make_goal
from holdfast.discrete.answer import DiscreteAnswer, check_answer, costs_of
from holdfast.discrete.layout import fixed_costs_of, make_layout
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.program import Program
from holdfast.discrete.rows import check_groups, check_numbers
from holdfast.discrete.solve import check_problem
from holdfast.problem import GUARANTEE, Goal
from holdfast.result import Status
from holdfast.solvers.batch import OUT_OF_BOUNDS
from holdfast.solvers.row import FOUND

LINK_TOLERANCE = 1e-9
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Links:
    """Rows ``lower <= matrix @ x <= upper`` between encoded columns.

    Attributes
    ----------
    matrix : (L, d) array
        Shared by all rows.
    lower, upper : (1, L) or (n, L) arrays

    Examples
    --------
    >>> import numpy as np
    >>> Links(np.array([[1.0, -1.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf)).matrix.shape
    (1, 2)
    """

    matrix: Floats
    lower: Floats
    upper: Floats


class _Best(NamedTuple):
    """What a row's rounds have come to."""

    value: float
    bound: float
    point: Floats | None
    options: list[int]
    rounds: int


def solve_linked(
    problem: DiscreteProblem,
    links: Links,
    *,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    tolerance: float = 1e-7,
) -> DiscreteAnswer:
    """Find the optimal robust recourse of every row under linear links between its columns.

    Parameters
    ----------
    problem : DiscreteProblem
    links : Links
        They hold to 1e-9, relative to their terms. Staying as one is, is allowed only if they
        hold there.
    cost_weight, guarantee : float
        As in `solve_discrete`.
    tolerance : float
        A row is optimal when its gap is at most ``tolerance * (1 + price)``.

    Returns
    -------
    DiscreteAnswer
        `nodes` counts the rounds of the master program; what an infeasible row could reach is not
        worked out (NaN). Numbers without bounds go no further than 10,000 times their own size.

    Examples
    --------
    Two whole numbers of which the first is never to exceed the second:

    >>> import numpy as np
    >>> from holdfast import NormBall, RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, Links, solve_linked
    >>> base = RecourseProblem.build([[0.0, 1.0]], [1.0, 0.1], -3.0, ball=NormBall(2, 0.0))
    >>> problem = DiscreteProblem(
    ...     base, np.ones((1, 2)), np.zeros((1, 2)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> links = Links(np.array([[-1.0, 1.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf))
    >>> answer = solve_linked(problem, links, guarantee=0.5)
    >>> answer.recourse, answer.cost
    (array([[3., 3.]]), array([5.]))
    """
    check_problem(problem)
    _check_links(problem, links)
    base = problem.problem
    goal = make_goal(base, cost_weight, guarantee)
    if guarantee is None and not base.loss.convex:
        raise ValueError(f"loss = {base.loss.name!r} is not convex; give a guarantee instead")
    outcomes = [_usable(problem, i) for i in range(base.n_rows)]
    found = [
        _solve_row(problem, links, goal, i, tolerance) if outcome == FOUND else None
        for i, outcome in enumerate(outcomes)
    ]
    answer = _answer(problem, goal, cost_weight, guarantee, outcomes, found, tolerance)
    check_answer(answer)
    _check_kept(answer, links)
    return answer


def _solve_row(
    problem: DiscreteProblem, links: Links, goal: Goal, i: int, tolerance: float
) -> _Best:
    program = Program(problem, i)
    lower = links.lower[i] if links.lower.shape[0] > 1 else links.lower[0]
    upper = links.upper[i] if links.upper.shape[0] > 1 else links.upper[0]
    for row, low, high in zip(links.matrix, lower.tolist(), upper.tolist(), strict=True):
        program.link(row, low, high)
    master = _Master(program, goal)
    best = _Best(math.inf, -math.inf, None, [], 0)
    for rounds in range(1, _ROUNDS + 1):
        variables, bound = program.solve()
        best = best._replace(bound=max(best.bound, bound), rounds=rounds)
        if variables is None:
            return best
        before = len(program.rows)
        value, point, options = master.polish(variables)
        if value < best.value:
            best = best._replace(value=value, point=point, options=options)
        gap = best.value - best.bound
        closed = gap <= 0.5 * tolerance * (1.0 + abs(best.value)) and best.point is not None
        if closed or len(program.rows) == before:
            return best
    return best


class _Master:
    """The cuts of one row: worst models, and tangents of the loss."""

    def __init__(self, program: Program, goal: Goal) -> None:
        self.program, self.goal, self.base = program, goal, program.base
        self.seen: set[bytes] = set()
        if goal.mode == GUARANTEE:
            program.lower[program.score] = goal.level
        else:
            program.cost = [goal.level * cost for cost in program.cost]
            self.loss = program.variable(cost=1.0)
            program.forms = np.column_stack([program.forms, np.zeros(len(program.forms))])
            for t in (-4.0, -1.0, 0.0, 1.0, 4.0):
                self.add_tangent(t)
        self.add_model(self.base.coef[0], float(self.base.intercept[0]))
        self.add_worst(self.base.points[0])

    def add_model(self, coef: Floats, intercept: float) -> None:
        """The score is at most that under this model."""
        key = np.append(coef, intercept).tobytes()
        if key not in self.seen:
            self.seen.add(key)
            self.program.link(coef, -intercept, math.inf, score=-1.0)

    def add_worst(self, x: Floats) -> None:
        """Add a worst model of x."""
        ball, base = self.base.ball, self.base
        coef, intercept = ball.worst_model(x[None], base.coef, base.intercept)
        self.add_model(coef[0], float(intercept[0]))

    def add_tangent(self, t: float) -> None:
        """The loss is at least its tangent at t."""
        loss, program = self.base.loss, self.program
        slope, height = float(loss.slope(t)), float(loss.value(t))
        key = np.float64(t).tobytes()
        if key not in self.seen:
            self.seen.add(key)
            program.rows.append(
                ({self.loss: 1.0, program.score: slope}, height + slope * t, math.inf)
            )

    def worst_score(self, x: Floats) -> float:
        return float(self.base.ball.worst_score(x[None], self.base.coef, self.base.intercept)[0])

    def polish(self, variables: Floats) -> tuple[float, Floats | None, list[int]]:
        """Solve the continuous rest of an answer's discrete choices, adding cuts on the way."""
        program, goal = self.program, self.goal
        best: tuple[float, Floats | None, list[int]] = (math.inf, None, [])
        margin, level = 0.0, program.lower[program.score]
        for _ in range(_ROUNDS):
            if goal.mode == GUARANTEE:  # aim higher by what was missing
                program.lower[program.score] = level + margin
            rest, bound = program.solve_rest(variables)
            program.lower[program.score] = level
            if rest is None:
                break
            x, options = program.point(rest)
            score, before = self.worst_score(x), len(program.rows)
            cost = float(costs_of(self._one(), x[None], np.array([options], dtype=np.int64))[0])
            self.add_worst(x)
            if goal.mode == GUARANTEE:
                if score >= goal.level:
                    best = min(best, (cost, x, options), key=lambda found: found[0])
                    break
                missing = goal.level - score
                if missing <= 1e-9 * (1.0 + abs(goal.level)) or len(program.rows) == before:
                    margin = 2.0 * (margin + missing)
                continue
            price = float(self.base.loss.value(score)) + goal.level * cost
            self.add_tangent(score)
            best = min(best, (price, x, options), key=lambda found: found[0])
            if price - bound <= 1e-9 * (1.0 + price) or len(program.rows) == before:
                break
        return best

    def _one(self) -> DiscreteProblem:
        """Return the problem of this row alone, for its costs."""
        problem, i = self.program.problem, self.program.row
        fees = [c[i : i + 1] if c.shape[0] > 1 else c for c in problem.option_costs]
        return DiscreteProblem(
            self.base,
            problem.step[:1],
            problem.anchor[:1],
            problem.groups,
            problem.current[i : i + 1],
            fees,
            problem.most_changes,
            self.program.own(fixed_costs_of(problem))[None],
        )


def _usable(problem: DiscreteProblem, i: int) -> int:
    """Return FOUND, or what is wrong with row i."""
    row, layout = problem.problem.row(i), make_layout(problem)

    def own(values: Any) -> Any:
        return values[i] if values.shape[0] > 1 else values[0]

    outcome = check_numbers(
        layout,
        row.points[0],
        row.coef[0],
        row.intercept[0],
        row.feature_costs[0],
        row.lower[0],
        row.upper[0],
        own(layout.step),
        own(layout.anchor),
        own(layout.fixed_costs),
    )
    if outcome in (FOUND, OUT_OF_BOUNDS):
        fees = own(layout.option_costs)
        outcome = max(outcome, check_groups(layout, row.points[0], fees, layout.current[i]))
    return int(outcome)


def _answer(
    problem: DiscreteProblem,
    goal: Goal,
    cost_weight: float | None,
    guarantee: float | None,
    outcomes: list[int],
    found: list[_Best | None],
    tolerance: float,
) -> DiscreteAnswer:
    base, n = problem.problem, problem.problem.n_rows
    recourse = np.full((n, base.n_features), np.nan)
    options = np.full((n, len(problem.groups)), -1, dtype=np.int64)
    bound, nodes = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    status = np.empty(n, dtype=object)
    status[:] = Status.INVALID_INPUT
    lost = np.zeros(n, dtype=bool)
    for i, best in enumerate(found):
        if best is None:
            if outcomes[i] == OUT_OF_BOUNDS:
                status[i] = Status.OUT_OF_BOUNDS
            continue
        bound[i], nodes[i] = best.bound, best.rounds
        status[i] = Status.GAP_OPEN
        if best.point is None:
            lost[i] = True
            if math.isinf(best.bound):
                status[i] = Status.INFEASIBLE
        else:
            recourse[i], options[i] = best.point, best.options
    cost = costs_of(problem, recourse, options)
    score = base.ball.worst_score(recourse, base.coef, base.intercept)
    price = cost.copy()
    if goal.mode != GUARANTEE:
        price = base.loss.value(score) + goal.level * cost
    cost[lost] = price[lost] = np.inf
    bound = np.where(bound > price, price, bound)
    with np.errstate(invalid="ignore"):
        gap = np.where(lost & np.isinf(bound), 0.0, price - bound)
    closed = ~lost & (gap <= tolerance * (1.0 + price))
    status[closed] = Status.OPTIMAL
    approved = score >= (goal.level if goal.mode == GUARANTEE else 0.0)
    status[closed & approved & (cost == 0.0)] = Status.ALREADY_VALID
    unknown = np.full(n, np.nan)
    return DiscreteAnswer(
        problem=problem,
        cost_weight=cost_weight,
        guarantee=guarantee,
        recourse=recourse,
        options=options,
        status=status,
        cost=cost,
        price=price,
        lower_bound=bound,
        gap=gap,
        worst_case_score=score,
        nodes=nodes,
        reachable_validity=unknown,
        reachable_radius=unknown.copy(),
    )


def _check_kept(answer: DiscreteAnswer, links: Links) -> None:
    """Check the links of every recourse."""
    x = np.nan_to_num(answer.recourse)
    value, terms = x @ links.matrix.T, 1.0 + np.abs(x) @ np.abs(links.matrix).T
    slack = LINK_TOLERANCE * terms
    kept = (value >= links.lower - slack) & (value <= links.upper + slack)
    found = ~np.isnan(answer.recourse).any(axis=1)
    broken = np.flatnonzero(found & ~kept.all(axis=1))
    if broken.size:
        raise AssertionError(f"row {broken[0]}: a link is broken; this is a bug, please report it")


def _check_links(problem: DiscreteProblem, links: Links) -> None:
    n, d = problem.problem.n_rows, problem.problem.n_features
    shape = np.shape(links.matrix)
    if len(shape) != 2 or shape[1] != d or not np.isfinite(links.matrix).all():
        raise ValueError(f"the matrix of links has shape {shape}, expected (L, {d}), all finite")
    for name in ("lower", "upper"):
        values = getattr(links, name)
        if np.shape(values) not in ((1, shape[0]), (n, shape[0])) or np.isnan(values).any():
            raise ValueError(
                f"{name} of links has shape {np.shape(values)}, expected (1, {shape[0]}) or "
                f"({n}, {shape[0]}), without NaN"
            )
