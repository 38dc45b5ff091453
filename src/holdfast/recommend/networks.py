"""Advice for people whom a network judges: found by a search, and proven row by row.

What people may do is kept to exactly, as for linear models. Every row that is advised is given to
the prover as the pipeline encodes it: no network of the set gives it less than what is told. That
nothing cheaper exists is not proven.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled
from holdfast.discrete import DiscreteProblem, Group, answer_discrete, answer_linked
from holdfast.discrete.answer import chosen_options
from holdfast.discrete.linked import row_links
from holdfast.machinery.numbers import Floats, shown
from holdfast.models.encoding import Number
from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.problem import frozen
from holdfast.problem.sets import ModelSet, check_models
from holdfast.recommend.advised import Advised, check_printed, find_advice, keep_told
from holdfast.recommend.features import changed_features, take_links, take_people
from holdfast.recommend.printed import (
    Aim,
    Printed,
    Value,
    Worth,
    exponent_of,
    join_printed,
    round_to,
    settle,
)
from holdfast.recommend.question import Question
from holdfast.recommend.search import Answer, Ask, Bound, Move, Person, Seeker
from holdfast.recommend.ways import Ways
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.models.network import Network
    from holdfast.models.networks.last_layer import Head

_AT_ONCE = 64  # people; the prover is asked for each of them alone, solvers for all of them
_MOST_LISTED = 16  # values of a number, up to which each of them is tried
_DIGITS = 3  # of numbers without a step, counted from about a standard deviation
# What rounding may take off the worst score of a last layer, relative to the scores.
_HAIR = 1e-9


@dataclass(frozen=True, eq=False)
class NetworkQuestion(Question):
    """What is asked of a network: a guarantee, under every network of a set."""

    prover: Bound = field(kw_only=True)

    def _scores(self) -> tuple[Any, Any, ModelSet]:
        """Return none of its own: what is solved for are surrogates, each under itself alone."""
        return np.zeros(self.encoding.n_columns), 0.0, NormBall(p=1, radius=0.0)

    def score(self, points: Floats) -> Floats:
        """Return what today's network gives points: each by itself, the same in any batch."""
        return _one_by_one(self.encoding.model.score, points)


def prover_of(network: Network, robust_to: ModelSet) -> Bound:
    """Return what proves scores of a network under every network of a set, or refuse the set."""
    check_models(robust_to)
    if isinstance(robust_to, NormBall):
        from holdfast.models.networks.proof import Prover

        return Prover.of(network, robust_to)
    if isinstance(robust_to, LastLayer):
        return LastLayerBound.of(network, robust_to)
    raise ValueError(
        f"robust_to = {shown(robust_to)} is a set of linear models, but the classifier is a "
        "network: give a NormBall, around all of its parameters, or "
        f"LastLayer({shown(robust_to)}), around those of its last layer"
    )


@dataclass(frozen=True, eq=False)
class LastLayerBound:
    """Scores that no network goes below in which the last layer alone changes."""

    head: Head
    robust_to: LastLayer

    @classmethod
    def of(cls, network: Network, robust_to: LastLayer) -> LastLayerBound:
        """Read a network, or refuse it by name."""
        from holdfast.models.networks.last_layer import Head
        from holdfast.models.networks.prove import in_double

        head = Head.of(in_double(network))
        head.last_layers(robust_to)  # refuses a set that does not fit
        return cls(head, robust_to)

    def lower(self, points: Floats) -> Floats:
        """Return the worst score of each point, less what rounding can do."""
        return self.slope(points)[1]

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how the worst scores change with the points, and the scores."""
        embedded = self.head.embed(points)
        worst = self.head.worst(embedded, self.robust_to)
        score = embedded @ self.head.coef + self.head.intercept
        hair = _HAIR * (1.0 + np.abs(worst.score) + np.abs(score))
        return self.head.point_slope(points, worst.coef), worst.score - hair


def _one_by_one(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Ask about each point alone: sums of many rows at once are rounded otherwise."""
    return np.array([float(function(point[None])[0]) for point in points], dtype=np.float64)


def find_network_advice(question: NetworkQuestion, people: pd.DataFrame) -> Advised:
    """Find out what everybody should change."""
    return find_advice(question, people, 1, solve=_solve_batch, most=_AT_ONCE)


def _solve_batch(question: Question, people: pd.DataFrame, _: int) -> Advised:
    asked = cast("NetworkQuestion", question)
    compiled = asked.compile_compared(people)
    printed = _told(asked, compiled, _Searches(asked, compiled))
    check_printed(compiled, printed)
    ways, start = printed.ways, compiled.problem.problem.X
    unknown = np.full(len(ways), np.nan)
    return Advised(
        people=compiled.people,
        rows=compiled.rows,
        refused=compiled.refused,
        names=asked.names,
        status=ways.status,
        cost=ways.cost,
        price=ways.price,
        lower_bound=unknown,
        gap=unknown,
        score=asked.score(start),
        reachable_validity=unknown,
        reachable_radius=unknown,
        options=[keep_told(printed, compiled.names, asked.names)],
    )


def _told(question: NetworkQuestion, compiled: Compiled, searches: _Searches) -> Printed:
    """Settle what each person is told: one row of the table, whatever it is worth."""
    aim, value, everybody = question.aim, _value(question), np.arange(len(compiled.people))
    assert aim.target is not None
    seekers = searches.run(everybody, aim.target)
    valid = [i for i, seeker in enumerate(seekers) if seeker.best is not None]

    def again(ways: Ways, margin: float) -> Ways:
        """Search once more, for more than is asked for: rounding took the rest away."""
        assert aim.target is not None
        more = searches.run(ways.who, aim.target + margin * (1.0 + abs(aim.target)))
        found = [k for k, seeker in enumerate(more) if seeker.best is not None]
        return searches.ways(ways.who[found], [cast("Move", more[k].best) for k in found])

    def stay(ways: Ways, _: float) -> Ways:
        return searches.ways(ways.who, [seekers[i].own for i in ways.who.tolist()])

    first = searches.ways(
        np.array(valid, dtype=np.int64), [cast("Move", seekers[i].best) for i in valid]
    )
    (enough,) = settle(compiled, [first], aim, again, value)
    rest = np.setdiff1d(everybody, enough.ways.who)
    # of these no score is asked: the highest is told. Who has a way that nobody can type, stays
    left = [seekers[i] for i in rest.tolist()]
    best = searches.ways(rest, [each.own if each.best else each.highest for each in left])
    (other,) = settle(compiled, [best], Aim(None, None, aim.cutoff), stay, value)
    ways, after = join_printed([enough, other])
    return Printed(_with_statuses(ways, aim.target), after)


def _with_statuses(ways: Ways, target: float) -> Ways:
    """Say what is proven of each row that is told; nothing is, of cheaper ones."""
    status = np.empty(len(ways), dtype=object)
    status[:] = Status.NOT_VALID
    is_enough = ways.worst_case_score >= target
    status[is_enough] = Status.PROVEN_VALID
    status[is_enough & ~ways.changed.any(axis=1)] = Status.ALREADY_VALID
    unknown = np.full(len(ways), np.nan)
    return replace(ways, status=status, lower_bound=unknown, gap=unknown)


def _value(question: NetworkQuestion) -> Value:
    """Return what says of points what is proven of them, and what today's network gives."""
    known: dict[bytes, float] = {}

    def proven(point: Floats) -> float:
        key = point.tobytes()
        if key not in known:
            known[key] = float(question.prover.lower(point[None])[0])
        return known[key]

    def value(_: DiscreteProblem, points: Floats) -> Worth:
        worst = np.array([proven(point) for point in points], dtype=np.float64)
        score = question.score(points)
        return Worth(worst, score, np.zeros(len(points)))  # the prover has seen to rounding

    return value


class _Searches:
    """The searches of some people, who take their steps together."""

    def __init__(self, question: NetworkQuestion, compiled: Compiled) -> None:
        self.question, self.compiled = question, compiled
        self.problem = list_values(compiled)

    def run(self, who: NDArray[np.int64], target: float) -> list[Seeker]:
        """Search for what some people should change; return what each search has seen."""
        seekers = [Seeker(self._person(i), self.question.prover, target) for i in who.tolist()]
        searches = [seeker.search() for seeker in seekers]
        asked = {k: asks for k, one in enumerate(searches) if (asks := next(one, None))}
        while asked:
            places = np.repeat(list(asked), [len(asks) for asks in asked.values()])
            answers = self._solve(who[places], [ask for asks in asked.values() for ask in asks])
            going, begin = dict[int, list[Ask]](), 0
            for k, asks in asked.items():
                end = begin + len(asks)
                with contextlib.suppress(StopIteration):  # that one is done
                    going[k] = searches[k].send(answers[begin:end])
                begin = end
            asked = going
        return seekers

    def ways(self, who: NDArray[np.int64], moves: list[Move]) -> Ways:
        """Return moves of some people as ways; rounding must cost nothing."""
        compiled = self.compiled
        count, groups = len(moves), len(compiled.problem.groups)
        points = np.array([move.point for move in moves], dtype=np.float64)
        points = points.reshape(count, compiled.problem.problem.n_features)
        levels = np.array([move.options[:groups] for move in moves], dtype=np.int64)
        levels = levels.reshape(count, groups)
        cost = np.array([move.cost for move in moves], dtype=np.float64)
        status = np.empty(count, dtype=object)
        status[:] = Status.PROVEN_VALID  # until it is said of what is printed
        return Ways(
            who=who,
            held=np.zeros((count, len(compiled.names)), dtype=bool),
            changed=changed_features(compiled, who, points, levels),
            recourse=points,
            levels=levels,
            status=status,
            cost=cost,
            price=cost,
            lower_bound=cost,
            gap=np.zeros(count),
            worst_case_score=np.array([move.proven for move in moves], dtype=np.float64),
            score=self.question.score(points),
        )

    def _person(self, i: int) -> Person:
        problem = self.problem.take(np.array([i]))
        return Person(problem, row_links(self.compiled.links, i), self._typed(i))

    def _typed(self, i: int) -> Callable[[Floats], Floats]:
        """Return what moves numbers without a step to where they can be typed.

        Those that are linked stay where they are: others would have to move with them.
        """
        compiled, start = self.compiled, self.compiled.problem.problem.X[i]
        linked = compiled.links.matrix.any(axis=0)
        free: list[tuple[Number, int, Floats]] = []
        for name, raw in compiled.ranges.items():
            number = compiled.encoding[name]
            assert isinstance(number, Number)
            if raw.step == 0.0 and not linked[number.column]:
                ends = np.array([raw.value[i], raw.lower[i], raw.upper[i]])
                free.append((number, exponent_of(compiled.actions[name]) - _DIGITS, ends))

        def typed(points: Floats) -> Floats:
            points = np.array(points)
            for number, exponent, (own, low, high) in free:
                j = number.column
                value = own + (points[:, j] - start[j]) / number.scale
                value = np.clip(round_to(value, exponent, value - own), low, high)
                is_own = (points[:, j] == start[j]) | (value == own)
                points[:, j] = np.where(is_own, start[j], number.shift + number.scale * value)
            return points

        return typed

    def _solve(self, who: NDArray[np.int64], asks: list[Ask]) -> list[Answer]:
        """Find for each of some people the cheapest change that has enough of a surrogate."""
        goal, links, jobs = self.question.goal, self.compiled.links, self.question.n_jobs
        stated = state_asks(take_people(self.problem, who), asks, goal.level)
        if len(links.matrix):
            answer = answer_linked(stated, take_links(links, who), goal, n_jobs=jobs)
        else:
            answer = answer_discrete(stated, goal, reachable=False, n_jobs=jobs)
        points, options = answer.recourse_array, chosen_options(answer)
        there = np.isfinite(points).all(axis=1).tolist()
        return [(points[k], options[k]) if there[k] else None for k in range(len(asks))]


def state_asks(problem: DiscreteProblem, asks: list[Ask], target: float) -> DiscreteProblem:
    """State problems with the scores of surrogates, a row for each, such that `target` is asked.

    A group with gains has these in its first column, and nothing in the others.
    """
    points, coef = np.array(problem.problem.X), np.array([ask.surrogate.slope for ask in asks])
    groups, rows = list(problem.groups), np.arange(len(asks))
    for g, group in enumerate(groups):
        gains = [ask.surrogate.gains[g] for ask in asks]
        with_gains = [own is not None for own in gains]
        if not any(with_gains):
            continue
        options = np.array(np.broadcast_to(group.by_row, (len(asks), *group.by_row.shape[1:])))
        options[with_gains] = 0.0
        options[with_gains, :, 0] = [own for own in gains if own is not None]
        coef[with_gains, group.columns[0]] = 1.0
        points[:, group.columns] = options[rows, problem.current[:, g]]
        groups[g] = Group(group.columns, options)
    intercept = np.array([ask.surrogate.constant + (target - ask.level) for ask in asks])
    base = replace(
        problem.problem, X=frozen(points), coef=frozen(coef), intercept=frozen(intercept)
    )
    return replace(problem, problem=base, groups=groups)


def list_values(compiled: Compiled) -> DiscreteProblem:
    """Return the problem of people in which numbers that take few values are groups.

    So the prover can be asked about each of these values, as about the levels of a category.
    Numbers that are linked stay numbers.
    """
    problem, linked = compiled.problem, compiled.links.matrix.any(axis=0)
    for name in compiled.ranges:
        feature, number = compiled.actions[name], compiled.encoding[name]
        assert isinstance(number, Number)
        if feature.grid == 0.0 or feature.stays or linked[number.column]:
            continue
        if (feature.highest - feature.lowest) / feature.grid < _MOST_LISTED:
            ends = sorted(
                number.shift + number.scale * e for e in (feature.lowest, feature.highest)
            )
            problem = _with_listed(problem, number.column, ends)
    return problem


def _with_listed(problem: DiscreteProblem, j: int, ends: list[float]) -> DiscreteProblem:
    """Return the problem with the values of a number as the options of a group, to stay first.

    Who is outside of the `ends` has values around the nearer end.
    """
    base, n = problem.problem, problem.problem.n_rows
    parts = (base.X, base.lower, base.upper, problem.step, problem.anchor, base.feature_costs)
    own, low, high, step, anchor, unit, fee = (
        np.broadcast_to(values[:, j], n)[:, None] for values in (*parts, problem.fees)
    )
    middle = np.round((np.clip(own, *ends) - anchor) / step)
    first = np.maximum(np.ceil((low - anchor) / step), middle - _MOST_LISTED)
    values = anchor + step * (first + np.arange(2 * _MOST_LISTED + 1))
    costs = unit * np.abs(values - own) + fee
    allowed = (values >= low) & (values <= high) & (values != own)
    options = np.column_stack([own, values])[:, :, None]
    counts = [np.array([[0, *[1] * values.shape[1]]])]
    return replace(
        problem,
        groups=[*problem.groups, Group(np.array([j]), options)],
        current=np.column_stack([problem.current, np.zeros(n, dtype=np.int64)]),
        option_costs=[
            *problem.option_costs,
            np.column_stack([np.zeros(n), np.where(allowed, costs, np.inf)]),
        ],
        option_changes=None if problem.option_changes is None else problem.option_changes + counts,
    )
