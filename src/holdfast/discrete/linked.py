"""Discrete problems whose columns are linked: a mixed-integer program with cuts added as needed.

Links couple features, so that the separable bounds of the search do not hold. Instead HiGHS solves
a master program in which the score is at most ``v.x + b'`` for every model (v, b') found so far:
each round adds the worst model of its answer, exact for every p in the limit. In price mode the
loss is bounded below by its tangents. The master's optimum is the lower bound, the true price of
its answer (the continuous rest solved for its discrete choices) the upper one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.row import EXHAUSTED, FOUND
from holdfast.discrete.answer import costs_of, make_result
from holdfast.discrete.layout import make_layout
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.program import LINK_TOLERANCE, SCORE_UNIT, Program
from holdfast.discrete.rows import check_discrete_row
from holdfast.discrete.solve import check_problem
from holdfast.machinery.numbers import Floats, check_kind, check_positive, read_floats
from holdfast.problem.costs import cheapest_unit, scaled
from holdfast.problem.goal import Goal
from holdfast.result.appraisal import score_roundings
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import GAP_TOLERANCE

_ROUNDS = 200
_MOST_CAPS = 8  # how often numbers that can be touched or not are let go further


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
    tolerance: float = GAP_TOLERANCE,
) -> RecourseResult:
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
        As in `solve_discrete`. HiGHS cannot always prove so much; such rows are GAP_OPEN.

    Returns
    -------
    RecourseResult
        `nodes` counts the rounds of the master program; what an infeasible row could reach is not
        worked out (NaN).

    Examples
    --------
    Two whole numbers of which the first is never to exceed the second:

    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, Links, solve_linked
    >>> base = RecourseProblem.build([[0.0, 1.0]], [1.0, 0.1], -3.0, robust_to=NormBall(2, 0.0))
    >>> problem = DiscreteProblem(
    ...     base, np.ones((1, 2)), np.zeros((1, 2)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> links = Links(np.array([[-1.0, 1.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf))
    >>> answer = solve_linked(problem, links, guarantee=0.5)
    >>> answer.recourse, answer.cost
    (array([[3., 3.]]), array([5.]))
    """
    check_positive("tolerance", tolerance, or_zero=True)
    check_problem(problem)
    check_kind("links", links, Links, "make them with holdfast.discrete.Links")
    _check_links(problem, links)
    base = problem.problem
    goal = Goal.of(base.loss, cost_weight=cost_weight, guarantee=guarantee)
    if guarantee is None and not base.loss.convex:
        raise ValueError(f"loss = {base.loss.name!r} is not convex; give a guarantee instead")
    even, exponent = problem.in_even_costs()
    exponent = np.broadcast_to(exponent, base.n_rows).copy()
    outcomes = [_usable(even, i) for i in range(base.n_rows)]
    found: list[_Best | None] = []
    for i, outcome in enumerate(outcomes):
        if outcome != FOUND:
            found.append(None)
            continue
        more = _unit_exponent(even, goal, int(exponent[i]), i)
        exponent[i] += more
        own = goal
        if not goal.is_guarantee:
            own = replace(goal, level=math.ldexp(goal.level, int(exponent[i])))
        found.append(_solve_row(_in_units(even, more), links, own, i, tolerance))
    result = _result(problem, goal, outcomes, found, exponent, float(tolerance))
    _check_kept(result, links)
    return result


def _unit_exponent(even: DiscreteProblem, goal: Goal, exponent: int, i: int) -> int:
    """Return the power of two of the unit in which the gap of row i is measured.

    HiGHS keeps everything to absolute tolerances: in this unit they mean what the promise means.
    """
    if not goal.is_guarantee:  # the cost that weighs as much as a loss of 1
        return -math.frexp(goal.level)[1] - exponent
    base, numbers = even.problem.row(i), even.number_columns
    values = (base.X, base.coef, base.feature_costs, base.lower, base.upper)
    start, coef, cost, lower, upper = (v[0, numbers] for v in values)
    scale = base.robust_to.feature_scale(base.n_features)[numbers]
    unit = cheapest_unit(start, coef, scale, cost, lower, upper, base.robust_to.radius)
    return math.frexp(unit)[1] if unit > 0.0 else 0


def _in_units(even: DiscreteProblem, exponent: int) -> DiscreteProblem:
    """Return the problem with its costs divided by a power of two."""
    less = np.array([-exponent])
    return replace(
        even,
        problem=replace(even.problem, feature_costs=scaled(even.problem.feature_costs, less)),
        option_costs=[scaled(costs, less) for costs in even.option_costs],
        fixed_costs=scaled(even.fees, less),
    )


def _solve_row(
    problem: DiscreteProblem, links: Links, goal: Goal, i: int, tolerance: float
) -> _Best:
    """Solve row i; its costs are measured in the unit that its gap is measured in.

    Numbers that can be touched or not go no further than some cost. An answer within that cost is
    the best of all: a better one would be cheaper still. Until there is one, the cost is raised.
    """
    base = problem.problem.row(i)
    start_score = float(base.robust_to.worst_score(base.X, base.coef, base.intercept)[0])
    cap, weight = 1e4 * (1.0 + abs(goal.level) + abs(start_score)), 1.0
    if not goal.is_guarantee:
        weight = goal.level
        cap = 1e2 * (1.0 + float(base.loss.value(start_score))) / weight
    best = _Best(math.inf, -math.inf, None, [], 0)
    for attempt in range(_MOST_CAPS):
        program = _linked_program(problem, links, i, cap)
        found = _cut_rounds(program, goal, tolerance)
        best = found._replace(rounds=best.rounds + found.rounds)
        if not program.is_cut or best.value <= weight * cap:
            return best
        best = best._replace(bound=min(best.bound, weight * cap))  # all that is proven so far
        if best.point is not None:
            cap = best.value / weight * (1.0 + 1e-9)
        elif found.bound < math.inf:
            return best
        else:
            if attempt == 0 and _is_out_of_reach(problem, links, goal, i):
                return best._replace(bound=math.inf)
            cap *= 1e4
    return best


def _linked_program(
    problem: DiscreteProblem, links: Links, i: int, cap: float, relaxed: bool = False
) -> Program:
    program = Program(problem, i, cap, relaxed)
    lower = links.lower[i] if links.lower.shape[0] > 1 else links.lower[0]
    upper = links.upper[i] if links.upper.shape[0] > 1 else links.upper[0]
    for row, low, high in zip(links.matrix, lower.tolist(), upper.tolist(), strict=True):
        program.link(row, low, high)
    return program


def _is_out_of_reach(problem: DiscreteProblem, links: Links, goal: Goal, i: int) -> bool:
    """Whether not even numbers that are neither whole nor cut off have an answer."""
    program = _linked_program(problem, links, i, math.inf, relaxed=True)
    _Master(program, goal)
    variables, bound = program.solve()
    return variables is None and bound == math.inf


def _cut_rounds(program: Program, goal: Goal, tolerance: float) -> _Best:
    """Solve a program, a worst model more in each round, until its bound meets its answer."""
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
        closed = gap <= 0.1 * tolerance * (1.0 + abs(best.value)) and best.point is not None
        if closed or len(program.rows) == before:
            return best
    return best


class _Master:
    """The cuts of one row: worst models, and tangents of the loss."""

    def __init__(self, program: Program, goal: Goal) -> None:
        self.program, self.goal, self.base = program, goal, program.base
        self.seen: set[bytes] = set()
        if goal.is_guarantee:
            program.lower[program.score] = goal.level
        else:
            program.cost = [goal.level * cost for cost in program.cost]
            self.loss = program.variable(cost=1.0)
            program.forms = np.column_stack([program.forms, np.zeros(len(program.forms))])
            for t in (-4.0, -1.0, 0.0, 1.0, 4.0):
                self.add_tangent(t)
        self.add_model(self.base.coef[0], float(self.base.intercept[0]))
        self.add_worst(self.base.X[0])

    def add_model(self, coef: Floats, intercept: float) -> None:
        """The score is at most that under this model."""
        key = np.append(coef, intercept).tobytes()
        if key not in self.seen:
            self.seen.add(key)
            self.program.link(coef, -intercept, math.inf, score=-1.0)

    def add_worst(self, x: Floats) -> None:
        """Add a worst model of x."""
        ball, base = self.base.robust_to, self.base
        coef, intercept = ball.worst_model(x[None], base.coef, base.intercept)
        self.add_model(coef[0], float(intercept[0]))

    def add_tangent(self, t: float) -> None:
        """The loss is at least its tangent at t."""
        loss, program = self.base.loss, self.program
        slope, height = float(loss.slope(t)), float(loss.value(t))
        key = np.float64(t).tobytes()
        if key not in self.seen:
            self.seen.add(key)
            unit = SCORE_UNIT
            row = {self.loss: unit, program.score: unit * slope}
            program.rows.append((row, unit * (height + slope * t), math.inf))

    def worst_score(self, x: Floats) -> float:
        return float(
            self.base.robust_to.worst_score(x[None], self.base.coef, self.base.intercept)[0]
        )

    def polish(self, variables: Floats) -> tuple[float, Floats | None, list[int]]:
        """Solve the continuous rest of an answer's discrete choices, adding cuts on the way."""
        program, goal = self.program, self.goal
        best: tuple[float, Floats | None, list[int]] = (math.inf, None, [])
        margin, level, last = 0.0, program.lower[program.score], math.inf
        for _ in range(_ROUNDS):
            if goal.is_guarantee:  # aim higher by what was missing
                program.lower[program.score] = level + margin
            rest, bound = program.solve_rest(variables)
            program.lower[program.score] = level
            if rest is None:
                break
            x, options = program.point(rest)
            if not program.keeps_links(x):  # HiGHS did, to its own tolerances
                break
            score, before = self.worst_score(x), len(program.rows)
            cost = float(costs_of(self._one(), x[None], np.array([options], dtype=np.int64))[0])
            self.add_worst(x)
            if goal.is_guarantee:
                if score >= goal.level:
                    best = min(best, (cost, x, options), key=lambda found: found[0])
                    break
                missing = goal.level - score
                small = missing / (1.0 + abs(goal.level))
                is_stuck = small < 1e-8 and missing > 0.5 * last
                if is_stuck or small <= 1e-13 or len(program.rows) == before:
                    margin = 2.0 * margin + 1.1 * missing
                last = missing
                continue
            price = float(self.base.loss.value(score)) + goal.level * cost
            self.add_tangent(score)
            best = min(best, (price, x, options), key=lambda found: found[0])
            missing = price - bound
            small = missing / (1.0 + price)
            is_stuck = small < 1e-9 and missing > 0.9 * last
            if is_stuck or small <= 1e-12 or len(program.rows) == before:
                break
            last = missing
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
            problem.max_changes,
            self.program.own(problem.fees)[None],
        )


def _usable(problem: DiscreteProblem, i: int) -> int:
    """Return FOUND, or what is wrong with row i."""
    return int(check_discrete_row(problem.problem.rows(), make_layout(problem), i))


def _result(
    problem: DiscreteProblem,
    goal: Goal,
    outcomes: list[int],
    found: list[_Best | None],
    exponent: NDArray[np.int64],
    tolerance: float,
) -> RecourseResult:
    base, n = problem.problem, problem.problem.n_rows
    recourse = np.full((n, base.n_features), np.nan)
    options = np.full((n, len(problem.groups)), -1, dtype=np.int64)
    bound, nodes = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    outcome = np.array(outcomes, dtype=np.int8)
    for i, best in enumerate(found):
        if best is None:
            continue
        bound[i], nodes[i] = best.bound, best.rounds
        if best.point is None:
            outcome[i] = EXHAUSTED
        else:
            recourse[i], options[i] = best.point, best.options
    least = -np.inf
    if goal.is_guarantee:
        bound, least = np.maximum(scaled(bound, exponent), 0.0), 0.0
    # HiGHS knows rows to a tolerance: where the score itself is not known so well, nothing is
    rough = score_roundings(base, np.where(np.isnan(recourse), base.X, recourse))
    bound[rough > GAP_TOLERANCE * (1.0 + abs(goal.level))] = least
    kept = Found(recourse, outcome, bound, options=options, nodes=nodes)
    return make_result(problem, goal, kept, tolerance)


def _check_kept(result: RecourseResult, links: Links) -> None:
    """Check the links of every recourse."""
    x = np.nan_to_num(result.recourse_array)
    value, terms = x @ links.matrix.T, 1.0 + np.abs(x) @ np.abs(links.matrix).T
    slack = LINK_TOLERANCE * terms
    kept = (value >= links.lower - slack) & (value <= links.upper + slack)
    found = ~np.isnan(result.recourse_array).any(axis=1)
    broken = np.flatnonzero(found & ~kept.all(axis=1))
    if broken.size:
        raise AssertionError(f"row {broken[0]}: a link is broken; this is a bug, please report it")


def _check_links(problem: DiscreteProblem, links: Links) -> None:
    n, d = problem.problem.n_rows, problem.problem.n_features
    matrix = read_floats("matrix of links", links.matrix)
    shape = matrix.shape
    if len(shape) != 2 or shape[1] != d or not np.isfinite(matrix).all():
        raise ValueError(f"the matrix of links has shape {shape}, expected (L, {d}), all finite")
    for name in ("lower", "upper"):
        values = read_floats(f"{name} of links", getattr(links, name))
        if np.shape(values) not in ((1, shape[0]), (n, shape[0])) or np.isnan(values).any():
            raise ValueError(
                f"{name} of links has shape {np.shape(values)}, expected (1, {shape[0]}) or "
                f"({n}, {shape[0]}), without NaN"
            )
