"""Links of one row, and parts of it: problems without links, each within bounds of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.lattice import on_lattice, snapped
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.row_search import Numbers, RowSearcher, numbers_of
from holdfast.machinery.numbers import Floats

LINK_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Link:
    """``lower <= coef @ x <= upper``, of one row; or of many, each with ends of its own."""

    coef: Floats
    lower: float | Floats
    upper: float | Floats

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """The columns that it links."""
        return np.flatnonzero(self.coef)

    @cached_property
    def terms(self) -> list[tuple[int, float]]:
        """The columns that it links, with their coefficients."""
        return list(zip(self.columns.tolist(), self.coef[self.columns].tolist(), strict=True))

    @cached_property
    def places(self) -> frozenset[int]:
        """The columns that it links, as a set."""
        return frozenset(j for j, _ in self.terms)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Both ends, of one row."""
        return float(self.lower), float(self.upper)

    @property
    def is_equation(self) -> bool:
        """Whether it leaves its columns no room."""
        return self.ends[0] == self.ends[1]

    def turned(self) -> Link:
        """Return the same link with its ends exchanged."""
        return Link(-self.coef, -self.upper, -self.lower)

    def value(self, x: Floats) -> float:
        """Return what a point makes of it."""
        return sum(coef * float(x[j]) for j, coef in self.terms)

    def keeps(self, x: Floats) -> NDArray[np.bool_]:
        """Say whether a point, or which of the points, a row each, keep it.

        To a tolerance, as it is promised; term by term, so that a point is judged alike in any
        batch.
        """
        value, size = np.zeros(()), np.ones(())
        for j, coef in self.terms:
            term = coef * x[..., j]
            value, size = value + term, size + abs(term)
        slack = LINK_TOLERANCE * size
        return np.asarray((value >= self.lower - slack) & (value <= self.upper + slack))

    def is_kept(self, x: list[float], tolerance: float = LINK_TOLERANCE) -> bool:
        """Whether a point keeps it; as `keeps`, in plain numbers, of one row."""
        value, size = 0.0, 1.0
        for j, coef in self.terms:
            term = coef * x[j]
            value, size = value + term, size + abs(term)
        slack = tolerance * size
        return self.ends[0] - slack <= value <= self.ends[1] + slack


def keeps_all(links: Iterable[Link], x: Floats, tolerance: float = LINK_TOLERANCE) -> bool:
    """Whether a point keeps all links of its row."""
    values = x.tolist()
    return all(link.is_kept(values, tolerance) for link in links)


class Merge(NamedTuple):
    """Two numbers that move together: ``start + t * slope``, with ``y = at_start + t * scale``."""

    columns: NDArray[np.int64]  # y is in the first of them, what stays of the norm in the second
    start: Floats
    slope: Floats
    lower: Floats
    upper: Floats
    at_start: float
    scale: float

    def restore(self, x: Floats) -> None:
        """Put the two numbers back in place of y."""
        y = x[self.columns[0]]
        t = 0.0 if y == self.at_start else (y - self.at_start) / self.scale
        x[self.columns] = np.clip(self.start + t * self.slope, self.lower, self.upper)


class Part(NamedTuple):
    """A part of a row: a problem without links, and what it costs to be in it at all.

    The numbers that the problem of its searcher has are not read: they are its own.
    """

    searcher: RowSearcher
    numbers: Numbers
    paid: float = 0.0
    merges: tuple[Merge, ...] = ()
    is_aimed: bool = False  # whether an answer at the edge of a link has been looked for
    tolls: tuple[tuple[Link, float], ...] = ()  # on breaking links at their upper ends

    @property
    def problem(self) -> DiscreteProblem:
        """The problem of its searcher."""
        return self.searcher.problem

    def restore(self, x: Floats) -> Floats:
        """Return the point in the columns of the row."""
        point = x.copy()
        for merge in self.merges:
            merge.restore(point)
        return point


def whole(problem: DiscreteProblem) -> Part:
    """Return a problem of one row as its only part."""
    return Part(RowSearcher(problem), numbers_of(problem))


def free_columns(part: Part) -> NDArray[np.bool_]:
    """Say which columns are numbers of the row still."""
    if not part.merges:
        return part.searcher.is_number
    free = part.searcher.is_number.copy()
    for merge in part.merges:
        free[merge.columns] = False
    return free


# ------------------------------------------------------------------ intervals


def tightened(
    numbers: Numbers, links: list[Link], free: NDArray[np.bool_], changed: set[int]
) -> tuple[Floats, Floats] | None:
    """Narrow the bounds of the free columns as far as the links say; None: nothing keeps them.

    Looked at are links of columns that have changed. A start that breaks a link by no more than the
    tolerance stays within.
    """
    lower, upper = numbers.lower.tolist(), numbers.upper.tolist()
    for _ in range(4):
        again = set[int]()
        for link in links:
            if changed.isdisjoint(link.places):
                continue
            for j, coef in link.terms:
                if not free[j]:
                    continue
                before = lower[j], upper[j]
                _tighten(numbers, j, _room(link, j, coef, lower, upper), lower, upper)
                if lower[j] > upper[j]:
                    return None
                if before != (lower[j], upper[j]):
                    again.add(j)
        if not again:
            break
        changed = again
    return np.array(lower), np.array(upper)


def _room(
    link: Link, j: int, coef: float, lower: list[float], upper: list[float]
) -> tuple[float, float, float]:
    """Return what a link leaves to column j, (low, high), and what its tolerance adds to that."""
    least, most, size = 0.0, 0.0, 1.0
    for k, other in link.terms:
        if k != j:
            low, high = other * lower[k], other * upper[k]
            if other < 0.0:
                low, high = high, low
            least, most = least + low, most + high
            size += max(
                abs(low) if math.isfinite(low) else 0.0, abs(high) if math.isfinite(high) else 0.0
            )
    slack = LINK_TOLERANCE * size / abs(coef)
    room = (link.ends[0] - most) / coef, (link.ends[1] - least) / coef
    return (*room, slack) if coef > 0.0 else (room[1], room[0], slack)


def _tighten(
    numbers: Numbers,
    j: int,
    room: tuple[float, float, float],
    lower: list[float],
    upper: list[float],
) -> None:
    """Narrow one column; values of a lattice keep a link as long as the tolerance lets them."""
    low, high, slack = room
    if low <= lower[j] and high >= upper[j]:
        return
    start, step, anchor = (float(v[j]) for v in (numbers.start, numbers.step, numbers.anchor))
    extra = slack if step > 0.0 and math.isfinite(slack) else 0.0
    if low > lower[j]:
        new = snapped(low - extra, step, anchor, True)
        lower[j] = max(lower[j], min(new, start) if start >= low - slack else new)
    if high < upper[j]:
        new = snapped(high + extra, step, anchor, False)
        upper[j] = min(upper[j], max(new, start) if start <= high + slack else new)
    if step == 0.0 and upper[j] < lower[j] <= upper[j] + slack:  # one value, but for rounding
        value = min(max(lower[j], float(numbers.lower[j])), float(numbers.upper[j]))
        lower[j] = upper[j] = value


def within(part: Part, lower: Floats, upper: Floats) -> Part:
    """Narrow the numbers of a part; who starts outside moves to where the part begins.

    The rest of the way costs what it would have cost: such a number stays on one side of its start.
    """
    old = part.numbers
    numbers = Numbers(old.start, lower, upper, old.cost, old.fixed_cost, old.step, old.anchor)
    outside = ((old.start < lower) | (old.start > upper)) & part.searcher.is_number
    paid = part.paid
    if outside.any():
        moved = np.flatnonzero(outside)
        start, fixed_cost = numbers.start.copy(), numbers.fixed_cost.copy()
        start[moved] = np.clip(start[moved], lower[moved], upper[moved])
        distance = np.abs(start[moved] - numbers.start[moved])
        paid += float((numbers.cost[moved] * distance + fixed_cost[moved]).sum())
        fixed_cost[moved] = 0.0
        numbers = numbers._replace(start=start, fixed_cost=fixed_cost)
    return part._replace(numbers=numbers, paid=paid)


def narrowed(part: Part, links: list[Link], j: int, low: float, high: float) -> Part | None:
    """Keep number j between two values, and others as the links then allow; None: nowhere."""
    numbers = part.numbers
    lower, upper = numbers.lower.copy(), numbers.upper.copy()
    lower[j], upper[j] = max(low, lower[j]), min(high, upper[j])
    if lower[j] > upper[j]:
        return None
    narrow = numbers._replace(lower=lower, upper=upper)
    bounds = tightened(narrow, links, free_columns(part), {j})
    return None if bounds is None else within(part, *bounds)


# ------------------------------------------------------------------ answers


def true_cost(part: Part, x: Floats, levels: NDArray[np.int64]) -> float:
    """Return the cost of a point of the only row.

    As `answer.costs_of`, but for the order of the sum: this is asked of every answer on the way.
    """
    numbers, columns = part.numbers, part.searcher.columns
    distance = np.abs(x[columns] - numbers.start[columns])
    moved = numbers.cost[columns] * distance + np.where(
        distance > 0.0, numbers.fixed_cost[columns], 0.0
    )
    paid = zip(part.problem.level_costs, levels.tolist(), strict=True)
    return float(moved.sum()) + sum(float(costs[0, k]) for costs, k in paid)


def may_be(part: Part, x: Floats, levels: NDArray[np.int64]) -> bool:
    """Whether the only row may become x: its bounds, lattices, and how many features change."""
    numbers, columns = part.numbers, part.searcher.columns
    value, moved = x[columns], x[columns] != numbers.start[columns]
    inside = (numbers.lower[columns] <= value) & (value <= numbers.upper[columns])
    is_allowed = inside & on_lattice(value, numbers.step[columns], numbers.anchor[columns])
    most = math.inf if part.problem.max_changes is None else part.problem.max_changes
    changes = int(moved.sum() + (levels != part.problem.current[0]).sum())
    return bool((is_allowed | ~moved).all()) and changes <= most
