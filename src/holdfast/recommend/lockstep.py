"""The searches of many people in lockstep: at each step, solvers are asked for all at once.

What the search of one person does is in `recommend/seeker.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Posed
from holdfast.discrete import DiscreteProblem, Group, Links, answer_linked
from holdfast.discrete.answer import chosen_levels
from holdfast.discrete.linked import row_links
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Number
from holdfast.problem.goal import Goal
from holdfast.problem.problem import frozen
from holdfast.recommend.features import changed_features, take_people
from holdfast.recommend.oracle import NetworkOracle
from holdfast.recommend.rounding import exponent_of, round_to
from holdfast.recommend.seeker import Answer, Ask, Move, Person, Seeker
from holdfast.recommend.ways import Ways
from holdfast.result.status import Status

_MOST_LISTED = 16  # values of a number, up to which each of them is tried
_DIGITS = 3  # of numbers without a step, counted from about a standard deviation


class Searches:
    """The searches of the people of a posed problem."""

    def __init__(self, posed: Posed, oracle: NetworkOracle, goal: Goal, n_jobs: int | None) -> None:
        self.posed, self.oracle, self.goal, self.n_jobs = posed, oracle, goal, n_jobs
        self.problem, self.is_linked = list_values(posed), linked_columns(posed.links)

    def run(self, who: NDArray[np.int64], target: float) -> list[Seeker]:
        """Search for what some people should change; return what each search has seen."""
        seekers = [Seeker(self._person(i), self.oracle, target) for i in who.tolist()]
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
        posed = self.posed
        count, groups = len(moves), len(posed.problem.groups)
        points = np.array([move.point for move in moves], dtype=np.float64)
        points = points.reshape(count, posed.problem.base.n_features)
        levels = np.array([move.levels[:groups] for move in moves], dtype=np.int64)
        levels = levels.reshape(count, groups)
        cost = np.array([move.cost for move in moves], dtype=np.float64)
        status = np.empty(count, dtype=object)
        status[:] = Status.PROVEN_VALID  # until it is said of what is printed
        return Ways(
            who=who,
            held=np.zeros((count, len(posed.names)), dtype=bool),
            changed=changed_features(posed, who, points, levels),
            recourse=points,
            levels=levels,
            status=status,
            cost=cost,
            price=cost,
            lower_bound=cost,
            gap=np.zeros(count),
            worst_case_score=np.array([move.proven for move in moves], dtype=np.float64),
            score=self.oracle.score_alone(points),
        )

    def _person(self, i: int) -> Person:
        problem = self.problem.take(np.array([i]))
        return Person(problem, row_links(self.posed.links, i), self._typed(i))

    def _typed(self, i: int) -> Callable[[Floats], Floats]:
        """Return what moves numbers without a step to where they can be typed.

        Those that are linked stay where they are: others would have to move with them.
        """
        posed, start = self.posed, self.posed.problem.base.X[i]
        free: list[tuple[Number, int, Floats]] = []
        for name, raw in posed.ranges.items():
            number = posed.encoding[name]
            assert isinstance(number, Number)
            if raw.step == 0.0 and not self.is_linked[number.column]:
                ends = np.array([raw.value[i], raw.lower[i], raw.upper[i]])
                free.append((number, exponent_of(posed.actions[name]) - _DIGITS, ends))

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
        """Find for each of some people the cheapest change that has enough of an estimate."""
        links, goal = self.posed.links, self.goal
        stated = state_asks(take_people(self.problem, who), asks, goal.amount)
        links = links.take(who)
        answer = answer_linked(stated, links, goal, reachable=False, n_jobs=self.n_jobs)
        points, levels = answer.recourse_array, chosen_levels(answer)
        found: list[Answer] = [None] * len(asks)
        for k in np.flatnonzero(answer.has_recourse).tolist():
            found[k] = points[k], levels[k]
        return found


def state_asks(problem: DiscreteProblem, asks: list[Ask], target: float) -> DiscreteProblem:
    """State problems with the scores of estimates, a row for each, such that `target` is asked.

    A group with scores of levels has these in its first column, and nothing in the others.
    """
    points, coef = np.array(problem.base.X), np.array([ask.estimate.slope for ask in asks])
    groups, rows = list(problem.groups), np.arange(len(asks))
    for g, group in enumerate(groups):
        scores = [ask.estimate.level_scores[g] for ask in asks]
        with_scores = np.array([own is not None for own in scores], dtype=bool)
        if not with_scores.any():
            continue
        levels = np.array(np.broadcast_to(group.by_row, (len(asks), *group.by_row.shape[1:])))
        levels[with_scores] = 0.0
        levels[with_scores, :, 0] = [own for own in scores if own is not None]
        coef[with_scores, group.columns[0]] = 1.0
        points[:, group.columns] = levels[rows, problem.current[:, g]]
        groups[g] = Group(group.columns, levels)
    intercept = np.array([ask.estimate.constant + (target - ask.amount) for ask in asks])
    base = replace(problem.base, X=frozen(points), coef=frozen(coef), intercept=frozen(intercept))
    return replace(problem, base=base, groups=groups)


def list_values(posed: Posed) -> DiscreteProblem:
    """Return the problem of people in which numbers that take few values are groups.

    So the prover can be asked about each of these values, as about the levels of a category.
    Numbers that are linked stay numbers.
    """
    problem, is_linked = posed.problem, linked_columns(posed.links)
    for name in posed.ranges:
        feature, number = posed.actions[name], posed.encoding[name]
        assert isinstance(number, Number)
        if feature.grid == 0.0 or feature.stays or is_linked[number.column]:
            continue
        if (feature.highest - feature.lowest) / feature.grid < _MOST_LISTED:
            ends = sorted(
                number.shift + number.scale * e for e in (feature.lowest, feature.highest)
            )
            problem = _with_listed(problem, number.column, ends)
    return problem


def _with_listed(problem: DiscreteProblem, j: int, ends: list[float]) -> DiscreteProblem:
    """Return the problem with the values of a number as the levels of a group, to stay first.

    Who is outside of the `ends` has values around the nearer end.
    """
    base, n = problem.base, problem.base.n_rows
    tables = (base.X, base.lower, base.upper, problem.step, problem.anchor, base.feature_costs)
    own, low, high, step, anchor, unit, fixed_cost = (
        np.broadcast_to(values[:, j], n)[:, None] for values in (*tables, problem.all_fixed_costs)
    )
    middle = np.round((np.clip(own, ends[0], ends[1]) - anchor) / step)
    first = np.maximum(np.ceil((low - anchor) / step), middle - _MOST_LISTED)
    values = anchor + step * (first + np.arange(2 * _MOST_LISTED + 1))
    costs = unit * np.abs(values - own) + fixed_cost
    allowed = (values >= low) & (values <= high) & (values != own)
    levels = np.column_stack([own, values])[:, :, None]
    counts = [np.array([[0, *[1] * values.shape[1]]])]
    return replace(
        problem,
        groups=[*problem.groups, Group(np.array([j]), levels)],
        current=np.column_stack([problem.current, np.zeros(n, dtype=np.int64)]),
        level_costs=[
            *problem.level_costs,
            np.column_stack([np.zeros(n), np.where(allowed, costs, np.inf)]),
        ],
        level_changes=None if problem.level_changes is None else problem.level_changes + counts,
    )


def linked_columns(links: Links) -> NDArray[np.bool_]:
    """Say which columns are linked to others."""
    return np.asarray((links.matrix != 0.0).any(axis=0))
