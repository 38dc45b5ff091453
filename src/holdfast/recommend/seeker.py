"""The search of one person for cheap changes that a prover says yes to.

What a person may do is known exactly; what it is worth is not known in advance, because the proven
score of a network has no simple form, and takes long to work out. So an estimate takes its place
around a point: each level of a group adds what the network itself gives for it when it is taken
alone, less a slope for what the proof takes off, and each number its slope. The cheapest change
that has so much of the estimate is found by branch and bound among all that the person may do,
for several amounts at once, and the prover is asked about what came of it. Then another estimate
is made around the most promising point so far. Whatever need not change is given back.

Nothing is proven here about cheaper changes: what is kept is what the prover said of each. Effort
is counted, not timed, so that the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete import DiscreteProblem
from holdfast.discrete.answer import costs_of
from holdfast.discrete.parts import Link
from holdfast.machinery.numbers import Floats

_MOST_ESTIMATES = 24  # for one person
_PATIENCE = 8  # estimates in a row that bring nothing
_MOST_ASKED = 512  # levels of a group that the network is asked about; of larger ones, the slope
_MOST_BACK = 12  # changes that the prover is asked about when something is given back
# Amounts that are asked of an estimate at first, in units of what the person's own point misses.
_LADDER = np.array([-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0, 2.0])
_RUNGS = 6  # amounts that are asked for then, between one that is too low and one that is enough
_BACK = 0.5 ** np.arange(1, 12)  # shares of a number's change that are given back
_OUT = np.array([0.125, 0.25, 0.5, 1.0])  # shares of the way to its end that are looked at
_FAR = 4.0  # where there is no end: so much cost away
_ROOM = 0.2  # of what the proof takes off, by which it may take less elsewhere
_EVEN = 1e-9  # a difference of costs that is none, relative to them

Chosen = NDArray[np.int64]


class ScoreProver(Protocol):
    """What is asked of a prover; see `holdfast.models.networks.prover.Prover`."""

    def lower(self, points: Floats) -> Floats:
        """Return the proven scores of encoded points."""

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how proven scores change with the points, and the scores."""


class Oracle(Protocol):
    """What the search asks about encoded points: a network, and a prover of its scores."""

    @property
    def prover(self) -> ScoreProver:
        """What proves scores."""

    def score(self, points: Floats) -> Floats:
        """Return what the network gives, which takes no time to speak of."""

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how that changes with the points, and the scores."""


class Move(NamedTuple):
    """What a person may become."""

    point: Floats  # encoded
    levels: Chosen  # which each group takes
    cost: float
    proven: float

    @property
    def key(self) -> bytes:
        """What tells it from others."""
        return self.point.tobytes()


class SumEstimate(NamedTuple):
    """``constant + slope @ columns + level_scores``, in the place of the proven score.

    A group has scores, one for each level, or the slope of its columns: that where it has none.
    """

    constant: float
    slope: Floats  # 0 in the columns of groups with scores
    level_scores: list[Floats | None]

    def of(self, move: Move) -> float:
        """Return how much of it a change has."""
        taken = zip(self.level_scores, move.levels.tolist(), strict=True)
        added = sum(float(scores[k]) for scores, k in taken if scores is not None)
        return self.constant + float(self.slope @ move.point) + added


class Ask(NamedTuple):
    """For the cheapest change that has so much of an estimate, or more."""

    estimate: SumEstimate
    amount: float


# What a solver found: an encoded point and its levels; None where nothing has so much.
Answer = tuple[Floats, Chosen] | None
Asking = Generator[list[Ask], list[Answer], None]


@dataclass(frozen=True, eq=False)
class Person:
    """What one person may do.

    Attributes
    ----------
    problem : DiscreteProblem
        Of that person alone; its scores are not read.
    links : list of Link
    typed : function
        Moves numbers of encoded points a little further away from the person's own, to where they
        can be typed.
    """

    problem: DiscreteProblem
    links: list[Link]
    typed: Callable[[Floats], Floats]

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The columns outside all groups."""
        return self.problem.number_columns

    @property
    def start(self) -> Floats:
        """The person's own point."""
        return np.asarray(self.problem.base.X[0])

    @property
    def current(self) -> Chosen:
        """The person's own levels."""
        return np.asarray(self.problem.current[0])

    def taking(self, points: Floats, levels: Chosen) -> Floats:
        """Return points that take these levels, a row for each, otherwise as given."""
        made = np.array(points)
        for g, group in enumerate(self.problem.groups):
            made[:, group.columns] = group.by_row[0][levels[:, g]]
        return made

    def costs(self, points: Floats, levels: Chosen) -> Floats:
        """What it costs to become each of these."""
        return costs_of(self.problem, points, levels)

    def are_allowed(self, points: Floats, levels: Chosen) -> NDArray[np.bool_]:
        """Say where links and the number of changes allow what each feature allows."""
        allowed = np.ones(len(points), dtype=bool)
        most = self.problem.max_changes
        if most is not None:
            changes = (points != self.start)[:, self.numbers].sum(axis=1)
            allowed = changes + self.problem.changes_of(levels).sum(axis=1) <= most
        for link in self.links:
            allowed &= link.keeps(points)
        return np.asarray(allowed)

    def may_take(self, g: int) -> NDArray[np.int64]:
        """Return the levels that a group may take."""
        return np.flatnonzero(np.isfinite(self.problem.level_costs[g][0]))

    def values_back(self, j: int, value: float) -> list[float]:
        """Return values of a number on the way back to the person's own, that one first."""
        own, problem = float(self.start[j]), self.problem
        if value == own:
            return []
        step, anchor = (float(each[0, j]) for each in (problem.step, problem.anchor))
        if step == 0.0:
            return [own, *(value + (own - value) * _BACK).tolist()]
        steps, here = (own - value) / step, round((value - anchor) / step)
        counts = np.unique(np.trunc(np.append(steps * _BACK, np.sign(steps))))
        counts = counts[(counts != 0.0) & (np.abs(counts) < abs(steps))]
        return [own, *(anchor + step * (here + counts)).tolist()]

    def values_out(self, j: int, value: float) -> list[float]:
        """Return values of a number on the way to both of its ends, or a few costs of 1 away."""
        problem, base = self.problem, self.problem.base
        far = _FAR / float(base.feature_costs[0, j])
        step, anchor = (float(each[0, j]) for each in (problem.step, problem.anchor))
        values: list[float] = []
        for end, limit in (
            (float(base.lower[0, j]), value - far),
            (float(base.upper[0, j]), value + far),
        ):
            found = value + ((end if np.isfinite(end) else limit) - value) * _OUT
            if step > 0.0:
                found = value + step * np.trunc((found - value) / step)
                found = anchor + step * np.round((found - anchor) / step)
            values += found[
                (found != value) & (found >= base.lower[0, j]) & (found <= base.upper[0, j])
            ].tolist()
        return list(dict.fromkeys(values))


class Seeker:
    """The search of one person, and what it has seen.

    Attributes
    ----------
    own : Move
        To stay.
    best : Move or None
        The cheapest that is proven to be enough.
    highest : Move
        The one with the highest proven score.
    """

    def __init__(self, person: Person, oracle: Oracle, target: float) -> None:
        self.person, self.oracle, self.target = person, oracle, target
        self.best: Move | None = None
        self._seen: dict[bytes, Move] = {}
        self._supposed: dict[bytes, Move] = {}  # with scores that are likely, not proven
        self._centres: set[bytes] = set()
        (self.own,) = self._look(person.start[None], person.current[None])

    @property
    def highest(self) -> Move:
        """The one with the highest proven score; of equal ones, the first that was seen."""
        return max(self._seen.values(), key=lambda move: move.proven)

    def search(self) -> Asking:
        """Look for the cheapest change that is enough, or else for the highest proven score.

        It yields what a solver is to be asked, and is sent the answers.
        """
        idle, centre = 0, self.own if self.best is None else None
        for _ in range(_MOST_ESTIMATES):
            if centre is None or (self.best is not None and idle == _PATIENCE):
                break
            before = self.best
            yield from self._aim(self._around(centre))
            self._give_back()
            idle = idle + 1 if self.best is before else 0
            centre = self._most_promising()

    def _most_promising(self) -> Move | None:
        """Return what the next estimate is made around; None where nothing is left.

        The best change so far; then what is cheaper and misses little, at the price that the best
        one pays for a score. Without one, the highest score.
        """
        known = self._supposed | self._seen
        left = [move for key, move in known.items() if key not in self._centres]
        best = self.best
        if best is None:
            return max(left, key=lambda move: move.proven, default=None)
        if best.key not in self._centres:
            return best
        unit = best.cost / (self.target - self.own.proven)
        return min(
            (move for move in left if move.cost < best.cost),
            key=lambda move: move.cost + unit * (self.target - move.proven),
            default=None,
        )

    def _around(self, centre: Move) -> SumEstimate:
        """Return the estimate around a point: what each change is worth by itself.

        That is what the network gives for it, less what the proof takes off, by its slope. Numbers
        far away are no part of it, but looked at too: the slope of a network may be 0.
        """
        self._centres.add(centre.key)
        here, person = centre.point, self.person
        slopes, values = self.oracle.prover.slope(here[None])
        plain_slopes, plain = self.oracle.slope(here[None])
        slope, value = np.array(slopes[0]), float(values[0])
        self._note(centre._replace(proven=value))
        lost, lost_slope = float(plain[0]) - value, plain_slopes[0] - slopes[0]
        level_scores: list[Floats | None] = []
        others: list[tuple[int, int]] = []
        for g, group in enumerate(person.problem.groups):
            free = person.may_take(g)
            level_scores.append(np.zeros(group.count) if len(free) <= _MOST_ASKED else None)
            if level_scores[-1] is not None:
                slope[group.columns] = 0.0
                others += [(g, k) for k in free.tolist() if k != centre.levels[g]]
        far = [
            (j, value) for j in person.numbers.tolist() for value in person.values_out(j, here[j])
        ]
        if others or far:
            levels = np.repeat(centre.levels[None], len(others) + len(far), axis=0)
            levels[np.arange(len(others)), [g for g, _ in others]] = [k for _, k in others]
            points = np.repeat(here[None], len(levels), axis=0)
            points[np.arange(len(others), len(levels)), [j for j, _ in far]] = [v for _, v in far]
            points = person.taking(person.typed(points), levels)
            likely = self.oracle.score(points) - lost - (points - here) @ lost_slope
            for (g, k), each in zip(others, likely.tolist(), strict=False):
                level_scores[g][k] = each - value  # type: ignore[index]
            good = person.are_allowed(points, levels)
            self._suppose(points[good], levels[good], likely[good])
        return SumEstimate(value - float(slope @ here), slope, level_scores)

    def _aim(self, estimate: SumEstimate) -> Asking:
        """Ask for more and for less of an estimate, until what comes of it is just enough."""
        amounts = self.target + (self.target - self.own.proven) * _LADDER
        low = estimate.of(self.own)
        for _ in range(2):
            answers = yield [Ask(estimate, amount) for amount in amounts.tolist()]
            is_low = np.array([yes is False for yes in self._are_enough(answers)])
            low, high = max([low, *amounts[is_low]]), min(amounts[~is_low], default=-np.inf)
            if not low < high:
                return
            amounts = np.linspace(low, high, _RUNGS + 2)[1:-1]

    def _are_enough(self, answers: list[Answer]) -> list[bool | None]:
        """Say which answers are proven to be enough; None where there is none, or none cheaper.

        Whatever has more of an estimate costs more.
        """
        best, there = self.best, [answer for answer in answers if answer is not None]
        if not there:
            return [None] * len(answers)
        levels = np.array([each for _, each in there])
        points = self.person.taking(self.person.typed(np.array([p for p, _ in there])), levels)
        costs = self.person.costs(points, levels)
        cheaper = np.ones(len(there), dtype=bool) if best is None else costs < best.cost
        moves = iter(self._look(points[cheaper], levels[cheaper]))
        is_asked = iter(cheaper.tolist())
        return [
            next(moves).proven >= self.target if answer is not None and next(is_asked) else None
            for answer in answers
        ]

    def _give_back(self) -> None:
        """Undo changes, one at a time, wholly or in part, as long as what is left is enough."""
        while self.best is not None:
            before = self.best
            points, levels = self._cheaper(before)
            if len(points):
                self._look(points, levels)
            if self.best is before:
                return

    def _cheaper(self, move: Move) -> tuple[Floats, Chosen]:
        """Return what differs from a change in one feature, is allowed, and costs less.

        The cheapest that are likely to be enough: the proof takes as much off as it did there.
        """
        person, points, levels = self.person, [move.point], [move.levels]
        for g, costs in enumerate(person.problem.level_costs):
            for k in np.flatnonzero(costs[0] < costs[0][move.levels[g]]).tolist():
                points.append(move.point)
                levels.append(move.levels.copy())
                levels[-1][g] = k
        for j in person.numbers.tolist():
            for value in person.values_back(j, float(move.point[j])):
                points.append(move.point.copy())
                points[-1][j] = value
                levels.append(move.levels)
        taken = np.array(levels)
        made = person.taking(person.typed(np.array(points)), taken)
        score, costs = self.oracle.score(made), person.costs(made, taken)
        lost = score[0] - move.proven
        good = person.are_allowed(made, taken) & (costs < move.cost * (1.0 - _EVEN))
        good &= (score >= self.target) & (score - lost * (1.0 - _ROOM) >= self.target)
        chosen = np.flatnonzero(good)
        chosen = chosen[np.argsort(costs[chosen], kind="stable")][:_MOST_BACK]
        return made[chosen], taken[chosen]

    def _look(self, points: Floats, levels: Chosen) -> list[Move]:
        """Ask the prover about points that a person may have."""
        keys = [point.tobytes() for point in points]
        new = {key: k for k, key in enumerate(keys) if key not in self._seen}
        if new:
            places = list(new.values())
            proven = self.oracle.prover.lower(points[places]).tolist()
            costs = self.person.costs(points[places], levels[places]).tolist()
            for k, score, cost in zip(places, proven, costs, strict=True):
                self._note(Move(points[k], levels[k], cost, score))
        return [self._seen[key] for key in keys]

    def _note(self, move: Move) -> None:
        """Note what is proven of a point, unless it was noted before."""
        if move.key in self._seen:
            return
        self._seen[move.key] = move
        if move.proven >= self.target and (self.best is None or move.cost < self.best.cost):
            self.best = move

    def _suppose(self, points: Floats, levels: Chosen, likely: Floats) -> None:
        """Note points that may be worth a closer look."""
        costs = self.person.costs(points, levels).tolist()
        for point, taken, cost, score in zip(points, levels, costs, likely.tolist(), strict=True):
            move = Move(point, taken, cost, score)
            self._supposed.setdefault(move.key, move)
