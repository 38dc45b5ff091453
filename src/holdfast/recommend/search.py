"""The search of one person for cheap changes that a prover says yes to.

What a person may do is known exactly; what it is worth is not known in advance, because the proven
score of a network has no simple form. So a surrogate takes its place around a point: each level of
a category adds what the prover says of it when it is taken alone, and each number its slope. The
cheapest change that has so much of the surrogate is found by branch and bound among all that the
person may do, for several amounts at once, and the prover is asked about what came of it. Then
another surrogate is made around the most promising point seen so far. In the end whatever need not
change is given back.

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

_MOST_SURROGATES = 24  # for one person
_PATIENCE = 5  # surrogates in a row that bring nothing
_MOST_ASKED = 32  # options of a group that the prover is asked about; of larger ones, the slope
# Levels that are asked of a surrogate at first, in units of what the person's own point misses.
_LADDER = np.array([-0.5, -0.25, -0.1, 0.0, 0.1, 0.25, 0.5, 1.0, 2.0])
_RUNGS = 6  # levels that are asked then, between one that is too low and one that is enough
_BACK = 0.5 ** np.arange(1, 12)  # shares of a number's change that are given back
_EVEN = 1e-9  # a difference of costs that is none, relative to them

Options = NDArray[np.int64]


class Bound(Protocol):
    """What is asked of a prover; see `holdfast.models.networks.proof.Prover`."""

    def lower(self, points: Floats) -> Floats:
        """Return the proven scores of encoded points."""

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how proven scores change with the points, and the scores."""


class Move(NamedTuple):
    """What a person may become."""

    point: Floats  # encoded
    options: Options  # which each group takes
    cost: float
    proven: float

    @property
    def key(self) -> bytes:
        """What tells it from others."""
        return self.point.tobytes()


class Surrogate(NamedTuple):
    """``constant + slope @ columns + gains``, in the place of the proven score.

    A group has gains, one for each option, or the slope of its columns: that where it has none.
    """

    constant: float
    slope: Floats  # 0 in the columns of groups with gains
    gains: list[Floats | None]

    def of(self, move: Move) -> float:
        """Return how much of it a change has."""
        taken = zip(self.gains, move.options.tolist(), strict=True)
        gained = sum(float(gains[k]) for gains, k in taken if gains is not None)
        return self.constant + float(self.slope @ move.point) + gained


class Ask(NamedTuple):
    """For the cheapest change that has a level of a surrogate, or more."""

    surrogate: Surrogate
    level: float


# What a solver found: an encoded point and its options; None where nothing has so much.
Answer = tuple[Floats, Options] | None
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
        return self.problem.problem.X[0]

    @property
    def current(self) -> Options:
        """The person's own options."""
        return self.problem.current[0]

    def taking(self, points: Floats, options: Options) -> Floats:
        """Return points that take these options, a row for each, otherwise as given."""
        made = np.array(points)
        for g, group in enumerate(self.problem.groups):
            made[:, group.columns] = group.by_row[0][options[:, g]]
        return made

    def costs(self, points: Floats, options: Options) -> Floats:
        """What it costs to become each of these."""
        return costs_of(self.problem, points, options)

    def are_allowed(self, points: Floats, options: Options) -> NDArray[np.bool_]:
        """Say where links and the number of changes allow what each feature allows."""
        allowed = np.ones(len(points), dtype=bool)
        most = self.problem.max_changes
        if most is not None:
            changes = (points != self.start)[:, self.numbers].sum(axis=1)
            allowed = changes + self.problem.changes_of(options).sum(axis=1) <= most
        for link in self.links:
            allowed &= link.keeps(points)
        return np.asarray(allowed)

    def may_take(self, g: int) -> NDArray[np.int64]:
        """Return the options that a group may take."""
        return np.flatnonzero(np.isfinite(self.problem.option_costs[g][0]))

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

    def __init__(self, person: Person, prover: Bound, target: float) -> None:
        self.person, self.prover, self.target = person, prover, target
        self.best: Move | None = None
        self._seen: dict[bytes, Move] = {}
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
        for _ in range(_MOST_SURROGATES):
            if centre is None or (self.best is not None and idle == _PATIENCE):
                break
            before = self.best
            yield from self._aim(self._around(centre))
            self._give_back()
            idle = idle + 1 if self.best is before else 0
            centre = self._most_promising()

    def _most_promising(self) -> Move | None:
        """Return what the next surrogate is made around; None where nothing is left.

        The best change so far; then what is cheaper and misses little, at the price that the best
        one pays for a score. Without one, the highest score.
        """
        left = [move for key, move in self._seen.items() if key not in self._centres]
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

    def _around(self, centre: Move) -> Surrogate:
        """Return the surrogate around a point: what the prover says of each change by itself."""
        self._centres.add(centre.key)
        person, groups = self.person, self.person.problem.groups
        slopes, values = self.prover.slope(centre.point[None])
        slope, value = np.array(slopes[0]), float(values[0])
        gains: list[Floats | None] = []
        others: list[tuple[int, int]] = []
        for g, group in enumerate(groups):
            free = person.may_take(g)
            gains.append(np.zeros(group.count) if len(free) <= _MOST_ASKED else None)
            if gains[-1] is not None:
                slope[group.columns] = 0.0
                others += [(g, k) for k in free.tolist() if k != centre.options[g]]
        if others:
            options = np.repeat(centre.options[None], len(others), axis=0)
            options[np.arange(len(others)), [g for g, _ in others]] = [k for _, k in others]
            points = person.taking(np.repeat(centre.point[None], len(others), axis=0), options)
            proven = self._ask(points, options, person.are_allowed(points, options))
            for (g, k), each in zip(others, proven.tolist(), strict=True):
                gains[g][k] = each - value  # type: ignore[index]
        return Surrogate(value - float(slope @ centre.point), slope, gains)

    def _aim(self, surrogate: Surrogate) -> Asking:
        """Ask for more and for less of a surrogate, until what comes of it is just enough."""
        levels = self.target + (self.target - self.own.proven) * _LADDER
        low = surrogate.of(self.own)
        for _ in range(2):
            answers = yield [Ask(surrogate, level) for level in levels.tolist()]
            is_low = np.array([yes is False for yes in self._are_enough(answers)])
            low, high = max([low, *levels[is_low]]), min(levels[~is_low], default=-np.inf)
            if not low < high:
                return
            levels = np.linspace(low, high, _RUNGS + 2)[1:-1]

    def _are_enough(self, answers: list[Answer]) -> list[bool | None]:
        """Say which answers are proven to be enough; None where there is none, or none cheaper.

        Whatever has more of a surrogate costs more.
        """
        best, there = self.best, [answer for answer in answers if answer is not None]
        if not there:
            return [None] * len(answers)
        options = np.array([each for _, each in there])
        points = self.person.taking(self.person.typed(np.array([p for p, _ in there])), options)
        costs = self.person.costs(points, options)
        cheaper = np.ones(len(there), dtype=bool) if best is None else costs < best.cost
        moves = iter(self._look(points[cheaper], options[cheaper]))
        is_asked = iter(cheaper.tolist())
        return [
            next(moves).proven >= self.target if answer is not None and next(is_asked) else None
            for answer in answers
        ]

    def _give_back(self) -> None:
        """Undo changes, one at a time, wholly or in part, as long as what is left is enough."""
        while self.best is not None:
            before = self.best
            points, options = self._cheaper(before)
            if len(points):
                self._look(points, options)
            if self.best is before:
                return

    def _cheaper(self, move: Move) -> tuple[Floats, Options]:
        """Return what differs from a change in one feature, is allowed, and costs less."""
        person, points, options = self.person, [move.point], [move.options]
        for g, costs in enumerate(person.problem.option_costs):
            less = np.flatnonzero(costs[0] < costs[0][move.options[g]])
            for k in less[np.argsort(costs[0][less], kind="stable")][:_MOST_ASKED].tolist():
                points.append(move.point)
                options.append(move.options.copy())
                options[-1][g] = k
        for j in person.numbers.tolist():
            for value in person.values_back(j, float(move.point[j])):
                points.append(move.point.copy())
                points[-1][j] = value
                options.append(move.options)
        taken = np.array(options)
        made = person.taking(person.typed(np.array(points)), taken)
        good = person.are_allowed(made, taken)
        good &= person.costs(made, taken) < move.cost * (1.0 - _EVEN)
        return made[good], taken[good]

    def _look(self, points: Floats, options: Options) -> list[Move]:
        """Ask the prover about points that a person may have, and keep what is best."""
        self._ask(points, options, np.ones(len(points), dtype=bool))
        return [self._seen[point.tobytes()] for point in points]

    def _ask(self, points: Floats, options: Options, allowed: NDArray[np.bool_]) -> Floats:
        """Return what the prover says of points; those that are allowed are kept."""
        keys = [point.tobytes() for point in points]
        known = {key: self._seen[key].proven for key in keys if key in self._seen}
        new = {key: k for k, key in enumerate(keys) if key not in known}
        if new:
            places = list(new.values())
            known.update(zip(new, self.prover.lower(points[places]).tolist(), strict=True))
            costs = self.person.costs(points[places], options[places]).tolist()
            for (key, k), cost in zip(new.items(), costs, strict=True):
                if allowed[k]:
                    self._keep(Move(points[k], options[k], cost, known[key]))
        return np.array([known[key] for key in keys])

    def _keep(self, move: Move) -> None:
        self._seen[move.key] = move
        if move.proven >= self.target and (self.best is None or move.cost < self.best.cost):
            self.best = move
