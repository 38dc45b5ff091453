"""A row whose links couple too much for the search: a mixed-integer program, cut by cut.

HiGHS solves a master program in which the score is at most ``v.x + b'`` for every model (v, b')
found so far: each round adds the worst model of its answer, exact for every p in the limit. In
price mode the loss is bounded below by its tangents. The master's optimum is the lower bound, the
true price of its answer (the continuous rest solved for its discrete choices) the upper one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.boxes import Best
from holdfast.discrete.parts import Link, true_cost, whole
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.program import SCORE_UNIT, Program
from holdfast.machinery.numbers import Floats
from holdfast.problem.costs import cheapest_unit, scaled
from holdfast.problem.goal import Goal

_BELIEVED = 1e-6  # by so much a bound may exceed an answer: the tolerance of HiGHS
_ROUNDS = 200
_MOST_CAPS = 8  # how often numbers that can be touched or not are let go further
_NOTHING = Best(math.inf, -math.inf, None, np.empty(0, dtype=np.int64), 0)


def solve_cuts(
    problem: DiscreteProblem, links: list[Link], goal: Goal, tolerance: float, known: Best
) -> Best:
    """Solve a problem of one row; what is known of it already is a bound, and maybe an answer."""
    even, exponents = problem.in_even_costs()
    more = _unit_exponent(even, goal, int(exponents[0]))
    exponent = np.array([int(exponents[0]) + more])
    if not goal.is_guarantee:
        found = _solve_row(
            _in_units(even, more),
            links,
            replace(goal, amount=math.ldexp(goal.amount, int(exponent[0]))),
            tolerance,
        )
    else:
        found = _solve_row(_in_units(even, more), links, goal, tolerance)
        value, bound = scaled(np.array([found.value, found.bound]), exponent).tolist()
        found = found._replace(value=value, bound=max(bound, 0.0))
    best = known if known.value <= found.value and known.point is not None else found
    bound = found.bound
    unit = math.ldexp(0.5, int(exponent[0])) if goal.is_guarantee else 1.0
    if best.point is not None and bound > best.value + tolerance * (abs(best.value) + unit):
        bound = -math.inf  # HiGHS knows it less well than it is promised; what was known stays
    # without an answer, that there is none is proven by a bound of inf only
    return best._replace(
        bound=max(known.bound if known.bound < math.inf else -math.inf, bound),
        nodes=known.nodes + found.nodes,
    )


def _unit_exponent(even: DiscreteProblem, goal: Goal, exponent: int) -> int:
    """Return the power of two of the unit in which the gap is measured.

    HiGHS keeps everything to absolute tolerances: in this unit they mean what the promise means.
    """
    if not goal.is_guarantee:  # the cost that weighs as much as a loss of 1
        return -math.frexp(goal.amount)[1] - exponent
    base, numbers = even.base, even.number_columns
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
        base=replace(even.base, feature_costs=scaled(even.base.feature_costs, less)),
        level_costs=[scaled(costs, less) for costs in even.level_costs],
        fixed_costs=scaled(even.all_fixed_costs, less),
    )


def _solve_row(problem: DiscreteProblem, links: list[Link], goal: Goal, tolerance: float) -> Best:
    """Solve a row whose costs are measured in the unit that its gap is measured in.

    Numbers that can be touched or not go no further than some cost. An answer within that cost is
    the best of all: a better one would be cheaper still. Until there is one, the cost is raised.
    """
    base = problem.base
    start_score = float(base.robust_to.worst_score(base.X, base.coef, base.intercept)[0])
    cap, weight = 1e4 * (1.0 + abs(goal.amount) + abs(start_score)), 1.0
    if not goal.is_guarantee:
        weight = goal.amount
        cap = 1e2 * (1.0 + float(base.loss.value(start_score))) / weight
    best = _NOTHING
    for attempt in range(_MOST_CAPS):
        program = _linked_program(problem, links, cap)
        if attempt > 0 and not program.can_be_believed():  # nor, at times, does HiGHS ever end
            return best
        found = _believable(_cut_rounds(program, goal, tolerance))
        best = found._replace(nodes=best.nodes + found.nodes)
        if not program.is_cut or best.value <= weight * cap:
            return best
        best = best._replace(bound=min(best.bound, weight * cap))  # all that is proven so far
        if best.point is not None:
            cap = best.value / weight * (1.0 + 1e-9)
        elif found.bound < math.inf:
            return best
        else:
            if attempt == 0 and _is_out_of_reach(problem, links, goal):
                return best._replace(bound=math.inf)
            cap *= 1e4
    return best


def _linked_program(
    problem: DiscreteProblem, links: list[Link], cap: float, relaxed: bool = False
) -> Program:
    program = Program(problem, cap, relaxed)
    for link in links:
        program.link(link.coef, *link.ends)
    return program


def _is_out_of_reach(problem: DiscreteProblem, links: list[Link], goal: Goal) -> bool:
    """Whether not even numbers that are neither whole nor cut off have an answer."""
    program = _linked_program(problem, links, math.inf, relaxed=True)
    _Master(program, goal)
    variables, bound = program.solve()
    return variables is None and bound == math.inf


def _cut_rounds(program: Program, goal: Goal, tolerance: float) -> Best:
    """Solve a program, a worst model more in each round, until its bound meets its answer."""
    master = _Master(program, goal)
    best = _NOTHING
    for rounds in range(1, _ROUNDS + 1):
        variables, bound = program.solve()
        best = best._replace(bound=max(best.bound, bound), nodes=rounds)
        if variables is None:
            return best
        before = len(program.constraints)
        value, point, levels = master.polish(variables)
        if value < best.value:
            best = best._replace(value=value, point=point, levels=levels)
        gap = best.value - best.bound
        closed = gap <= 0.1 * tolerance * (1.0 + abs(best.value)) and best.point is not None
        if closed or program.gave_up or len(program.constraints) == before:
            return best
    return best


def _believable(found: Best) -> Best:
    """Take back a bound that an answer contradicts: some versions of HiGHS are wrong at times."""
    if found.bound > found.value + _BELIEVED * (1.0 + abs(found.value)):
        return found._replace(bound=-math.inf)
    return found


class _Master:
    """The cuts of one row: worst models, and tangents of the loss."""

    def __init__(self, program: Program, goal: Goal) -> None:
        self.program, self.goal, self.base = program, goal, program.base
        self.whole, self.seen = whole(program.problem), set[bytes]()
        if goal.is_guarantee:
            program.lower[program.score] = goal.amount
        else:
            program.cost = [goal.amount * cost for cost in program.cost]
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
        robust, base = self.base.robust_to, self.base
        coef, intercept = robust.worst_model(x[None], base.coef, base.intercept)
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
            program.constraints.append((row, unit * (height + slope * t), math.inf))

    def worst_score(self, x: Floats) -> float:
        return float(
            self.base.robust_to.worst_score(x[None], self.base.coef, self.base.intercept)[0]
        )

    def polish(self, variables: Floats) -> tuple[float, Floats | None, NDArray[np.int64]]:
        """Solve the continuous rest of an answer's discrete choices, adding cuts on the way."""
        program, goal = self.program, self.goal
        best: tuple[float, Floats | None, NDArray[np.int64]] = (math.inf, None, _NOTHING.levels)
        margin, asked, last = 0.0, program.lower[program.score], math.inf
        for _ in range(_ROUNDS):
            if goal.is_guarantee:  # aim higher by what was missing
                program.lower[program.score] = asked + margin
            rest, bound = program.solve_rest(variables)
            program.lower[program.score] = asked
            if rest is None:
                break
            x, levels = program.point(rest)
            if not program.keeps_links(x):  # HiGHS did, to its own tolerances
                break
            score, before = self.worst_score(x), len(program.constraints)
            cost = true_cost(self.whole, x, levels)
            self.add_worst(x)
            if goal.is_guarantee:
                if score >= goal.amount:
                    best = min(best, (cost, x, levels), key=lambda found: found[0])
                    break
                missing = goal.amount - score
                small = missing / (1.0 + abs(goal.amount))
                is_stuck = small < 1e-8 and missing > 0.5 * last
                if is_stuck or small <= 1e-13 or len(program.constraints) == before:
                    margin = 2.0 * margin + 1.1 * missing
                last = missing
                continue
            price = float(self.base.loss.value(score)) + goal.amount * cost
            self.add_tangent(score)
            best = min(best, (price, x, levels), key=lambda found: found[0])
            missing = price - bound
            small = missing / (1.0 + price)
            is_stuck = small < 1e-9 and missing > 0.9 * last
            if is_stuck or small <= 1e-12 or len(program.constraints) == before:
                break
            last = missing
        return best
