"""More than one way: the best recourses that differ in the features that they change.

A way that changes all that a cheaper one changes, and more, is no other way; so each way after the
first must leave alone at least one feature of every way before it. That is a search over sets of
features to be held still, each with its own exact answer: the cheapest of all sets that are open
is the next way, and holding still one of its features at a time opens new sets. Everybody takes a
step at the same time: the sets that are opened are solved together.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd


class Way(NamedTuple):
    """One recourse of one person, with what is proven of it.

    Attributes
    ----------
    features : frozenset of str
        What changes.
    held : frozenset of str
        What had to stay as it is, so that this differs from the ways before it. Nothing else is
        cheaper among all ways that leave these alone.
    status : Status
    cost, price, lower_bound, gap, worst_case_score : float
        As in `holdfast.RecourseResult`, all of the recommended row.
    score : float
        What today's model gives that row.
    """

    features: frozenset[str]
    held: frozenset[str]
    status: Status
    cost: float
    price: float
    lower_bound: float
    gap: float
    worst_case_score: float
    score: float


@dataclass(frozen=True, eq=False)
class Ways:
    """One way of each of some people, an entry for each in every array.

    Attributes
    ----------
    who : (m,) array of int
        Positions of the people.
    held, changed : (m, features) arrays of bool
        As in `Way`, by the features of ``Posed.names``.
    recourse : (m, d) array
    levels : (m, groups) array of int
        The level that each category takes.
    status, cost, price, lower_bound, gap, worst_case_score, score : (m,) arrays
        As in `Way`.
    """

    who: NDArray[np.int64]
    held: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    recourse: Floats
    levels: NDArray[np.int64]
    status: NDArray[np.object_]
    cost: Floats
    price: Floats
    lower_bound: Floats
    gap: Floats
    worst_case_score: Floats
    score: Floats

    def __len__(self) -> int:
        return len(self.who)

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Ways:
        """Return some of the ways: by place in these arrays, or by a mask."""
        return Ways(*(getattr(self, field.name)[which] for field in fields(self)))

    def way(self, place: int, names: list[str]) -> Way:
        """Return one of the ways."""
        return Way(
            features=_named(names, self.changed[place]),
            held=_named(names, self.held[place]),
            status=self.status[place],
            cost=float(self.cost[place]),
            price=float(self.price[place]),
            lower_bound=float(self.lower_bound[place]),
            gap=float(self.gap[place]),
            worst_case_score=float(self.worst_case_score[place]),
            score=float(self.score[place]),
        )


class Printed(NamedTuple):
    """Ways as they are printed, or may be, and the row of the table that each of them becomes."""

    ways: Ways
    after: pd.DataFrame

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> Printed:
        """Return some of them: by place, or by a mask."""
        return Printed(self.ways.take(which), self.after.iloc[which])


def join_ways(batches: list[Ways]) -> Ways:
    """Put ways one after another. The list is emptied, so that nothing is held twice for long."""
    if len(batches) == 1:
        return batches.pop()
    arrays = {field.name: [getattr(some, field.name) for some in batches] for field in fields(Ways)}
    batches.clear()
    return Ways(**{name: np.concatenate(arrays.pop(name)) for name in list(arrays)})


def _named(names: list[str], mask: NDArray[np.bool_]) -> frozenset[str]:
    return frozenset(name for name, is_one in zip(names, mask.tolist(), strict=True) if is_one)


# Solves people (by position, perhaps several times) with features held still. Who has no recourse
# is left out of what comes back; beside it stands the place of each among the questions.
SolveHeld = Callable[[NDArray[np.int64], NDArray[np.bool_]], tuple[Ways, NDArray[np.int64]]]


def other_ways(first: Ways, count: int, solve: SolveHeld) -> list[Ways]:
    """Return the best ways of everybody, `first` among them, option by option, by rising price.

    Of ways with the same price, the one whose set was opened first comes first; sets are opened in
    the order of the features.
    """
    begun = zip(_bits(first), first.price.tolist(), strict=True)
    searches = [_Search(number, bits, price) for number, (bits, price) in enumerate(begun)]
    solved = [first]
    while True:
        asked = [(k, held) for k, search in enumerate(searches) for held in search.step(count)]
        if not asked:
            break
        who = first.who[[k for k, _ in asked]]
        width = first.held.shape[1]
        ways, places = solve(who, np.array([_mask(held, width) for _, held in asked]))
        begin = sum(map(len, solved))
        found = zip(places.tolist(), _bits(ways), ways.price.tolist(), strict=True)
        for number, (place, bits, price) in enumerate(found, start=begin):
            k, held = asked[place]
            searches[k].push(_OpenSet(price, searches[k].pushed, held, bits, number))
        solved.append(ways)
    everything = join_ways(solved)
    options = []
    for option in range(max([1, *(len(search.ways) for search in searches)])):
        those = [search.ways[option].number for search in searches if len(search.ways) > option]
        options.append(everything.take(np.array(those, dtype=np.int64)))
    return options


class _OpenSet(NamedTuple):
    """A set of features held still whose answer is known; sets of features are bits of a number.

    Those of the same price are ordered by `rank`: that which was opened first comes first.
    """

    price: float
    rank: int
    held: int
    changed: int
    number: int  # of its way, among all that were solved


class _Search:
    """The search of one person for ways."""

    def __init__(self, number: int, changed: int, price: float) -> None:
        self.heap = [_OpenSet(price, 0, 0, changed, number)]
        self.pushed = 1
        self.ways: list[_OpenSet] = []
        self.seen = {0}

    def push(self, found: _OpenSet) -> None:
        heapq.heappush(self.heap, found)
        self.pushed += 1

    def step(self, count: int) -> list[int]:
        """Go on until sets must be solved, which are returned, or until there is no more to do."""
        while self.heap and len(self.ways) < count:
            best = heapq.heappop(self.heap)
            covered = [way for way in self.ways if way.changed & best.changed == way.changed]
            if not covered:
                self.ways.append(best)
                if len(self.ways) == count:
                    break
            # what must be left alone, one feature at a time: of this way, or of one it repeats
            leave = covered[0].changed if covered else best.changed
            sets = [best.held | 1 << j for j in range(leave.bit_length()) if leave >> j & 1]
            new = [held for held in sets if held not in self.seen]
            self.seen.update(new)
            if new:
                return new
        return []


def _bits(ways: Ways) -> list[int]:
    """Return the features that each way changes, as bits of a number."""
    packed = np.packbits(ways.changed, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _mask(bits: int, width: int) -> list[bool]:
    return [bool(bits >> j & 1) for j in range(width)]
