"""The best of the parts of a row; where a link is broken, a part is split.

A part without links is solved by the search. If its answer keeps the links that are left, it is the
best of the part. Otherwise one of the linked numbers is split at a value, and what the links then
say of the others narrows them. Where numbers are continuous that need not come to an end: there a
price on breaking the link proves that nothing is better than an answer at its edge. What is left
after so many searches is for HiGHS.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.outcome import EXHAUSTED
from holdfast.discrete.frame import Numbers
from holdfast.discrete.parts import (
    Link,
    Part,
    free_columns,
    keeps_all,
    may_be,
    narrowed,
    snapped,
    tightened,
    true_cost,
    whole,
    within,
)
from holdfast.discrete.prices import folded, most_tilt, tilted, unfolded
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Outcomes
from holdfast.discrete.unions import along, parts_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.problem.goal import Goal

_MOST_PARTS = 480  # that are searched before a row is left to HiGHS
_FEW_PARTS = 12  # from so many on, splitting a lattice takes too long
_MOST_PRICES = 8  # that are tried for a link of a part


class Best(NamedTuple):
    """What has been found for a row, and what is proven; in the unit of its costs."""

    value: float
    bound: float
    point: Floats | None
    options: NDArray[np.int64]
    nodes: int


def solve_parts(
    problem: DiscreteProblem, links: list[Link], goal: Goal, tolerance: float, floor: float
) -> Best:
    """Solve a problem of one row, as far as that is possible without HiGHS.

    `floor` is a bound that is known already.
    """
    return _Split(problem, goal, tolerance).solve(links, floor)


class _Line(NamedTuple):
    """What an answer says of the bound at every price of a link: it is at most that."""

    price: float
    bound: float
    slope: float

    def crossing(self, other: _Line) -> float:
        """Return the price at which two lines meet."""
        ahead = other.bound - self.bound + other.slope * (self.price - other.price)
        return self.price + ahead / (self.slope - other.slope)

    def level(self, other: _Line) -> float:
        """Return the price at which the slope would be 0, if it changed evenly."""
        if self.slope == other.slope:
            return self.price
        return self.price + self.slope * (other.price - self.price) / (self.slope - other.slope)


class _Open(NamedTuple):
    """A part that is not done with."""

    bound: float
    order: int  # where bounds are equal, the older one comes first
    part: Part
    answer: Floats | None  # of the search; it breaks a link. None: not searched yet


class _Split:
    """One row: the parts that are left, the best answer, and what is proven."""

    def __init__(self, problem: DiscreteProblem, goal: Goal, tolerance: float) -> None:
        self.problem, self.goal, self.tolerance = problem, goal, tolerance
        self.whole = whole(problem)
        self.weight = 1.0 if goal.is_guarantee else goal.level
        none = np.empty(0, dtype=np.int64)
        self.best = Best(math.inf, math.inf, None, none, 0)  # its bound: of all that is closed
        self.open: list[_Open] = []
        self.pushed, self.searched = 0, 0

    def solve(self, links: list[Link], floor: float) -> Best:
        self.links = links
        bounds = tightened(self.whole.numbers, links, free_columns(self.whole))
        if bounds is None:
            return self.best
        parts, left = parts_of(within(self.whole, *bounds), links)
        for part in parts:
            self.push(part, floor, None)
        while self.open and self.open[0].bound < self.cutoff() and self.searched < _MOST_PARTS:
            bound, _, part, answer = heapq.heappop(self.open)
            if answer is None:
                is_done = self.look_into([part], bound)
            else:
                is_done = self.refine(part, left, answer, bound)
            if not is_done:
                self.close(bound)
                break
        for entry in self.open:
            self.close(entry.bound)
        return self.best

    def cutoff(self) -> float:
        """Return the bound from which a part need not be looked into."""
        value = self.best.value
        return value - 0.25 * self.tolerance * value if value < math.inf else value

    def close(self, bound: float) -> None:
        self.best = self.best._replace(bound=min(self.best.bound, bound))

    def push(self, part: Part, bound: float, answer: Floats | None) -> None:
        self.pushed += 1
        bound = max(bound, self.weight * part.paid)
        heapq.heappush(self.open, _Open(bound, self.pushed, part, answer))

    def refine(self, part: Part, left: list[Link], x: Floats, bound: float) -> bool:
        """Close a part whose answer breaks a link, or split it; return False if neither can be."""
        broken = [link for link in left if not link.keeps(x[None])[0]]
        for link in broken:
            is_fine = part.numbers.step[link.columns].min() == 0.0
            if _is_pair(part, link) and (is_fine or self.searched >= _FEW_PARTS):
                j = folded(part, link)
                if j is not None:
                    return self.look_into(unfolded(part, left, j), bound)
                side = link if link.value(x) > link.ends[1] else link.turned()
                if not part.is_aimed:
                    self.aim(part, side)
                    part = part._replace(is_aimed=True)
                bound = max(bound, self.press(part, side, x, bound))
                if bound >= self.cutoff():
                    self.close(bound)
                    return True
        for link in broken:
            news = split(part, link, left, x, self.best.point)
            if news is not None:
                return self.look_into(news, bound)
        return False

    def ask(self, parts: list[Part], goal: Goal) -> Outcomes:
        numbers = [part.numbers for part in parts]
        out = parts[0].frame.search(numbers, goal, 0.25 * self.tolerance)
        self.searched += len(parts)
        self.best = self.best._replace(nodes=self.best.nodes + int(out.nodes.sum()))
        return out

    def aim(self, part: Part, link: Link) -> None:
        """Look for a good answer at the upper end of a link."""
        numbers = part.numbers
        for edge in along(part, link):
            if self.weight * edge.paid >= self.best.value:
                continue
            out = self.ask([edge], self.higher_goal())
            if np.isnan(out.recourse[0]).any():
                continue
            x = edge.restore(out.recourse[0])
            columns = link.columns
            if numbers.step[columns].max() == 0.0:
                self.try_answer(x, out.chosen[0])
                continue
            tries = []
            for upwards in (False, True):
                lower, upper = numbers.lower.copy(), numbers.upper.copy()
                for j in columns.tolist():
                    near = snapped(x[j], numbers.step[j], numbers.anchor[j], upwards)
                    near = min(max(near, lower[j]), upper[j])
                    lower[j] = upper[j] = near
                tries.append(within(part, lower, upper))
            out = self.ask(tries, self.goal)
            for k in range(len(tries)):
                if not np.isnan(out.recourse[k]).any():
                    self.try_answer(tries[k].restore(out.recourse[k]), out.chosen[k])

    def try_answer(self, x: Floats, chosen: NDArray[np.int64]) -> None:
        """Take an answer if it may be had."""
        if keeps_all(self.links, x):
            self.keep(x, chosen[: len(self.problem.groups)])

    def press(self, part: Part, link: Link, x: Floats, bound: float) -> float:
        """Return the best bound that a price on breaking the link gives.

        The bound is concave in the price. Where the lines of two answers cross below what is
        needed, no price will do. The price of the best bound is sought where the lines cross, as
        they do at a bend, and in turn where their slopes would pass through 0, if there is none.
        """
        near = _Line(0.0, bound, self.weight * (link.value(x) - link.ends[1]))
        last, far, most = near, None, most_tilt(part, link)
        for turn in range(_MOST_PRICES):
            if self.best.value == math.inf:
                break
            least = near.price + (self.best.value - near.bound) / near.slope
            price = max(least, near.level(last))
            if far is not None:
                crossing = near.crossing(far)
                if near.bound + near.slope * (crossing - near.price) < self.cutoff():
                    break
                price = max(min(price, crossing) if turn % 2 else near.level(far), least)
            price = min(price, most)
            if not price > near.price:
                break
            there = tilted(part, link, price)
            out = self.ask([there], self.goal)
            if out.outcome[0] == EXHAUSTED and out.bound[0] == math.inf:
                return math.inf
            parts = float(out.bound[0]), self.weight * there.paid
            value = sum(parts) - 4.0 * EPS * max(abs(parts[0]), abs(parts[1]))
            if math.isnan(value) or np.isnan(out.recourse[0]).any():
                break
            bound = max(bound, value)
            if bound >= self.cutoff():
                break
            answer = there.restore(out.recourse[0])
            self.try_answer(answer, out.chosen[0])
            line = _Line(price, value, self.weight * (link.value(answer) - link.ends[1]))
            if line.slope <= 0.0:
                far = line
            elif price == most:
                break
            else:
                last, near = near, line
        return bound

    def look_into(self, parts: list[Part], floor: float) -> bool:
        """Search parts that differ in their numbers only; return False where nothing is known."""
        if not parts:
            return True
        out = self.ask(parts, self.goal)
        for k, part in enumerate(parts):
            if out.outcome[k] == EXHAUSTED and out.bound[k] == math.inf:
                continue
            bound = max(floor, float(out.bound[k]) + self.weight * part.paid)
            if np.isnan(out.recourse[k]).any() or math.isnan(bound):
                return False
            x, options = part.restore(out.recourse[k]), out.chosen[k, : len(self.problem.groups)]
            if not keeps_all(self.links, x):
                self.push(part, bound, x)
            elif self.keep(x, options) or (part.merges and self.keep_safely(part)):
                self.close(bound)
            else:
                return False
        return True

    def higher_goal(self) -> Goal:
        """Return a goal that is met though rounding takes something off as numbers come apart."""
        if not self.goal.is_guarantee:
            return self.goal
        level = self.goal.level + 1e-12 * (1.0 + abs(self.goal.level))
        return replace(self.goal, level=level)

    def keep_safely(self, part: Part) -> bool:
        """Take an answer that keeps the guarantee by a hair; return whether there is one."""
        out = self.ask([part], self.higher_goal())
        if np.isnan(out.recourse[0]).any():
            return False
        x = part.restore(out.recourse[0])
        return keeps_all(self.links, x) and self.keep(x, out.chosen[0, : len(self.problem.groups)])

    def keep(self, x: Floats, options: NDArray[np.int64]) -> bool:
        """Take an answer that keeps the links; return whether it may be had."""
        base = self.problem.problem
        if not may_be(self.whole, x, options):
            return False
        value = true_cost(self.problem, x, options)
        score = float(base.robust_to.worst_score(x[None], base.coef, base.intercept)[0])
        if self.goal.is_guarantee:
            if score < self.goal.level:
                return False
        else:
            value = float(base.loss.value(score)) + self.goal.level * value
        if value < self.best.value:
            self.best = self.best._replace(value=value, point=x, options=options)
        return True


def _is_pair(part: Part, link: Link) -> bool:
    """Whether a link is an inequality between two numbers that may move."""
    numbers, columns = part.numbers, link.columns
    if len(columns) != 2 or link.is_equation:
        return False
    may_move = numbers.lower[columns] < numbers.upper[columns]
    return bool((free_columns(part)[columns] & may_move).all())


def split(
    part: Part, link: Link, links: list[Link], x: Floats, best: Floats | None
) -> list[Part] | None:
    """Split a part at a value of a number, such that x is in none of the two; None: nowhere.

    The value is that of the best answer, in whose halves the link is worth most, or else lies in
    the middle between that of x and the one that would keep the link.
    """
    numbers, free = part.numbers, free_columns(part)
    value, ends = link.value(x), link.ends
    missing = (ends[1] if value > ends[1] else ends[0]) - value
    widths = {
        j: abs(coef) * (numbers.upper[j] - numbers.lower[j])
        for j, coef in link.terms
        if free[j] and numbers.upper[j] > numbers.lower[j]
    }
    order = sorted(widths, key=lambda column: -widths[column])
    places = [] if best is None else [(j, float(best[j])) for j in order]
    for j in order:
        goal = min(max(x[j] + missing / link.coef[j], numbers.lower[j]), numbers.upper[j])
        places.append((j, 0.5 * (float(x[j]) + goal)))
    for j, place in places:
        if not numbers.lower[j] < place < numbers.upper[j]:
            continue
        below, above = _neighbours(numbers, j, place)
        sides = (numbers.lower[j], below), (above, numbers.upper[j])
        halves = [narrowed(part, links, j, *side) for side in sides]
        found = [half for half in halves if half is not None]
        if not any(_holds(half, x) for half in found):
            return found
    return None


def _neighbours(numbers: Numbers, j: int, place: float) -> tuple[float, float]:
    """Return the allowed values of a number at or below a place, and above it."""
    step, anchor = numbers.step[j], numbers.anchor[j]
    if step == 0.0:
        return place, place
    below = snapped(place, step, anchor, False)
    above = snapped(below + 1.5 * step, step, anchor, False)
    if below < numbers.start[j] < above:  # who stands between two values may stay there
        below = float(numbers.start[j])
    return below, above


def _holds(part: Part, x: Floats) -> bool:
    """Whether a point is within the bounds of the numbers of a part."""
    numbers, own = part.numbers, free_columns(part)
    return bool(((numbers.lower <= x) & (x <= numbers.upper))[own].all())
