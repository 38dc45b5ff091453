"""The best of the parts of a row; where a link is broken, a part is split.

A part without links is solved by the search. If its answer keeps the links that are left, it is the
best of the part. Otherwise the linked numbers go one way each, at a toll on breaking the link that
is fair at the best answer so far; a better toll may prove that nothing is better than an answer at
its edge, or little. Numbers in steps are then made one where a better answer may be. What is still
left is split at a value, and what the links then say of the other numbers narrows them. Parts of a
part begin with its tolls. What is left after so many searches is for HiGHS.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.lattice import snapped
from holdfast.discrete.parts import (
    Link,
    Part,
    free_columns,
    keeps_all,
    may_be,
    narrowed,
    tightened,
    true_cost,
    whole,
    within,
)
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.row_search import FEW_NODES, MOST_NODES, Numbers
from holdfast.discrete.rows import FoundRows
from holdfast.discrete.tolls import (
    at_toll,
    fair_toll,
    is_folded,
    most_tilt,
    one_way,
    toll_of,
    tolled,
    unfolded,
    worths_at,
)
from holdfast.discrete.unions import along, levels_of, made_one, parts_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, LIMIT

_MOST_PARTS = 2000  # that are searched before a row is left to HiGHS
_MOST_TOLLS = 8  # that are tried for a link of a part
_NEAR = 16.0  # steps, around an answer
_MOST_AIMED = 4  # numbers of a link, to aim at its end
_MOST_TURNS = 4  # of pressing one link after another
_ROUNDING = 1e-13  # of a value


class Best(NamedTuple):
    """What has been found for a row, and what is proven; in the unit of its costs."""

    value: float
    bound: float
    point: Floats | None
    levels: NDArray[np.int64]
    nodes: int


def solve_parts(
    problem: DiscreteProblem, links: list[Link], goal: Goal, tolerance: float, floor: float
) -> Best:
    """Solve a problem of one row, as far as that is possible without HiGHS.

    `floor` is a bound that is known already.
    """
    return _Split(problem, goal, tolerance).solve(links, floor)


class _Line(NamedTuple):
    """What an answer says of the bound at every toll of a link: it is at most that."""

    toll: float
    bound: float
    slope: float

    def crossing(self, other: _Line) -> float:
        """Return the toll at which two lines meet."""
        ahead = other.bound - self.bound + other.slope * (self.toll - other.toll)
        return self.toll + ahead / (self.slope - other.slope)

    def even_with(self, other: _Line) -> float:
        """Return the toll at which the slope would be 0, if it changed evenly."""
        if self.slope == other.slope:
            return self.toll
        return self.toll + self.slope * (other.toll - self.toll) / (self.slope - other.slope)

    def reaches(self, bound: float) -> float:
        """Return the toll at which the line comes to a bound."""
        return self.toll + (bound - self.bound) / self.slope


class _Told(NamedTuple):
    """What a search of a part has told, at the part's tolls."""

    answer: Floats
    bound: float


class _Open(NamedTuple):
    """A part that is not done with."""

    bound: float
    order: int  # where bounds are equal, the older one comes first
    part: Part
    told: _Told | None  # None: not searched yet


class _Split:
    """One row: the parts that are left, the best answer, and what is proven."""

    def __init__(self, problem: DiscreteProblem, goal: Goal, tolerance: float) -> None:
        self.problem, self.goal, self.tolerance = problem, goal, tolerance
        self.whole = whole(problem)
        self.weight = 1.0 if goal.is_guarantee else goal.amount
        none = np.empty(0, dtype=np.int64)
        self.best = Best(math.inf, math.inf, None, none, 0)  # its bound: of all that is closed
        self.worths: Floats | None = None  # of moving its numbers up: see `worths_at`
        self.open: list[_Open] = []
        self.pushed, self.searched, self.nodes = 0, 0, 0

    @cached_property
    def higher_goal(self) -> Goal:
        """A goal that is met though rounding takes something off as numbers come apart."""
        if not self.goal.is_guarantee:
            return self.goal
        amount = self.goal.amount + 1e-12 * (1.0 + abs(self.goal.amount))
        return replace(self.goal, amount=amount)

    def solve(self, links: list[Link], floor: float) -> Best:
        self.links = links
        self.left: list[Link] = []  # what the parts do not keep by themselves
        self.sides: list[tuple[Link, Link]] = []  # these, and turned
        every = set(range(self.problem.base.n_features))
        bounds = tightened(self.whole.numbers, links, free_columns(self.whole), every)
        if bounds is None:
            return self.best
        parts, self.left = parts_of(within(self.whole, *bounds), links)
        self.sides = [(link, link.turned()) for link in self.left]
        self.linked = set[int]().union(*(link.places for link in self.left))
        for part in parts:
            self.push(part, floor, None)
        while self.open and self.open[0].bound < self.cutoff() and self.searched < _MOST_PARTS:
            bound, _, part, told = heapq.heappop(self.open)
            if told is None:
                is_done = self.look_into([part], bound)
            else:
                is_done = self.refine(part, told, bound)
            if not is_done:
                self.close(bound)
                break
        for entry in self.open:
            self.close(entry.bound)
        best = self.best._replace(nodes=self.nodes)
        if best.point is not None and not keeps_all(links, best.point, _ROUNDING):
            # it breaks a link, by less than is promised, and may be cheaper than all that keep the
            # links exactly, which bounds are about: then no more is said than that
            best = best._replace(bound=min(best.bound, best.value))
        return best

    def cutoff(self) -> float:
        """Return the bound from which a part need not be looked into."""
        value = self.best.value
        return value - 0.25 * self.tolerance * value if value < math.inf else value

    def close(self, bound: float) -> None:
        self.best = self.best._replace(bound=min(self.best.bound, bound))

    def push(self, part: Part, bound: float, told: _Told | None) -> None:
        self.pushed += 1
        bound = max(bound, self.weight * part.paid)
        heapq.heappush(self.open, _Open(bound, self.pushed, part, told))

    def refine(self, part: Part, told: _Told, bound: float) -> bool:
        """Close or split a part whose answer breaks a link, or pays for one.

        Return False if neither can be done.
        """
        pressed = [link for link in self.broken_by(told.answer) if _may_press(part, link)]
        fair = self.fair_tolls(part, told.answer, bound) if pressed else part.tolls
        if fair != part.tolls:
            return self.look_into([part._replace(tolls=fair)], bound)
        if pressed and self.best.value == math.inf:
            self.mend(part, told.answer)
        for link in pressed:
            if is_folded(part, link):
                return self.look_into(
                    self.at_fair_toll(unfolded(part, self.left, link), link), bound
                )
        links = self.to_press(part, told.answer)
        if links and not part.is_aimed:
            self.aim(part, links[0], told.answer)
            part = part._replace(is_aimed=True)
        part, outside, bound = self.press_all(part, told, bound)
        if bound >= self.cutoff():
            self.close(bound)
            return True
        for x in outside:
            for link in self.broken_by(x):
                if self.join(part, link, x, bound):
                    return True
                news = split(part, link, self.left, x, self.best.point)
                if news is not None:
                    return self.look_into(news, bound)
        if self.broken_by(told.answer):
            return False
        return self.look_into([part._replace(tolls=())], bound)

    def fair_tolls(self, part: Part, x: Floats, bound: float) -> tuple[tuple[Link, float], ...]:
        """Return the tolls of a part, but for those on kept links without which it may close.

        The bound rises by no more than what a point pays for a link that it keeps.
        """
        missing = self.cutoff() - bound
        return tuple(
            (link, toll)
            for link, toll in part.tolls
            if self.weight * toll * (link.ends[1] - link.value(x)) < missing
        )

    def join(self, part: Part, link: Link, x: Floats, bound: float) -> bool:
        """Make the numbers of a link one where a better answer may be; return False if not.

        That is near the best answer, and near x. The rest of the part is left as it is.
        """
        if self.best.point is None or not self.may_join(part, link):
            return False
        rest, inner = list[Part](), part
        for j in link.columns.tolist():
            numbers = inner.numbers
            places = [
                float(x[j]),
                float(min(max(self.best.point[j], numbers.lower[j]), numbers.upper[j])),
            ]
            room = _NEAR * float(numbers.step[j])
            if max(places) - min(places) > 2.0 * room:
                return False
            low, high = float(numbers.lower[j]), float(numbers.upper[j])
            sides = []
            if min(places) - room > low:
                below, new_low = neighbours_of(numbers, j, min(places) - room)
                sides.append((low, below))
                low = new_low
            if max(places) + room < high:
                new_high, above = neighbours_of(numbers, j, max(places) + room)
                sides.append((above, high))
                high = new_high
            for side in sides:
                new = narrowed(inner, self.left, j, *side)
                if new is not None:
                    rest.append(new)
            near = narrowed(inner, self.left, j, low, high)
            if near is None:
                return self.look_into(rest, bound)
            inner = near
        levels = levels_of(inner.numbers, link.columns, [link])
        if levels is None:
            return False
        tolls = tuple(entry for entry in inner.tolls if entry[0] is not link)
        for new in made_one(inner._replace(tolls=tolls), link.columns, levels):
            self.push(new, bound, None)
        return self.look_into(rest, bound)

    def may_join(self, part: Part, link: Link) -> bool:
        """Whether the numbers of a link go in steps, and no other link has them."""
        numbers, free = part.numbers, free_columns(part)
        if not all(free[j] and numbers.step[j] > 0.0 for j in link.places):
            return False
        return sum(not link.places.isdisjoint(other.places) for other in self.left) == 1

    def at_fair_toll(self, parts: list[Part], link: Link) -> list[Part]:
        """Set the toll of a link at which the best answer is at its end, as far as is known."""
        x = self.best.point
        if x is None:
            return parts
        if self.worths is None:
            self.worths = worths_at(self.problem.base, self.goal, self.whole.numbers, x)
        toll = fair_toll(self.whole.numbers, x, self.worths, link)
        if not toll > 0.0:
            return parts
        return [
            at_toll(part, link, toll)
            if _may_press(part, link) and not is_folded(part, link)
            else part
            for part in parts
        ]

    def broken_by(self, x: Floats) -> list[Link]:
        """Return the links that a point breaks, turned so that it is above their upper ends."""
        values = x.tolist()
        pairs = [pair for pair in self.sides if not pair[0].is_kept(values)]
        return [link if link.value(x) > link.ends[1] else turned for link, turned in pairs]

    def press_all(self, part: Part, told: _Told, bound: float) -> tuple[Part, list[Floats], float]:
        """Press one link after another, as long as that brings something.

        Returned are the part with its tolls, answers that break a link, those of the best tolls
        first, and the best bound.
        """
        outside = list[Floats]()
        for _ in range(_MOST_TURNS):
            if self.broken_by(told.answer):
                outside.insert(0, told.answer)
            before = bound
            for link in self.to_press(part, told.answer):
                part, told, broken = self.press(part, link, told)
                outside = broken + outside
                bound = max(bound, told.bound)
                if bound >= self.cutoff():
                    return part, outside, bound
            if bound - before <= 0.1 * (self.cutoff() - before) or not self.broken_by(told.answer):
                break
        if self.broken_by(told.answer):
            outside.insert(0, told.answer)
        return part, outside, bound

    def to_press(self, part: Part, x: Floats) -> list[Link]:
        """Return the links that a point breaks, and those that it pays for."""
        broken = [
            link
            for link in self.broken_by(x)
            if _may_press(part, link) and not is_folded(part, link)
        ]
        return broken + [link for link, _ in part.tolls if link not in broken]

    def ask(self, parts: list[Part], goal: Goal) -> FoundRows:
        numbers = [part.numbers for part in parts]
        # a toll that is far too high makes a part harder than without it
        most = FEW_NODES if any(part.tolls for part in parts) else MOST_NODES
        out = parts[0].searcher.search(numbers, goal, 0.25 * self.tolerance, most)
        self.searched += len(parts)
        self.nodes += int(out.nodes.sum())
        return out

    def aim(self, part: Part, link: Link, x: Floats) -> None:
        """Look for a good answer at the upper end of a link, two of its numbers at a time."""
        for pair in combinations(link.terms, 2) if len(link.terms) <= _MOST_AIMED else ():
            coef, rest = np.zeros_like(link.coef), 0.0
            lower, upper = part.numbers.lower.copy(), part.numbers.upper.copy()
            for j, own in link.terms:
                if (j, own) in pair:
                    coef[j] = own
                else:
                    rest += own * float(x[j])
                    lower[j] = upper[j] = x[j]
            edge = Link(coef, -math.inf, link.ends[1] - rest)
            self.aim_at_pair(within(part, lower, upper), edge, x)

    def aim_at_pair(self, part: Part, link: Link, x: Floats) -> None:
        """Look for a good answer at the upper end of a link, and of others that this one breaks."""
        edge, tied = part, list[Link]()
        todo = [link]
        while todo:
            if len(todo[0].terms) != 2:
                return
            tied.append(todo[0])
            found = self.best_along(one_way(edge, todo[0], x), todo[0])
            if found is None:
                return
            edge, x, levels = found
            held = {j for own in tied for j, _ in own.terms}
            todo = [
                other
                for other in self.broken_by(x)
                if held.isdisjoint(other.places) and _may_press(part, other)
            ]
        if part.numbers.step[sorted(held)].max() == 0.0:
            if keeps_all(self.links, x, _ROUNDING):
                self.keep(x, levels[: len(self.problem.groups)])
            return
        self.try_parts([self.rounded(part, tied, x, upwards) for upwards in _ways(len(tied))])

    def try_parts(self, parts: list[Part]) -> list[tuple[float, Part, Floats]]:
        """Search parts for an answer alone; return what each comes to, the part, and where."""
        out, found = self.ask(parts, self.goal), list[tuple[float, Part, Floats]]()
        for k, part in enumerate(parts):
            if not out.is_missing(k):
                x, untolled = part.restore(out.recourse[k]), part._replace(tolls=())
                self.try_answer(untolled, x, out.levels[k], out.value[k])
                found.append((float(out.value[k]) + self.weight * part.paid, part, x))
        return found

    def mend(self, part: Part, x: Floats) -> None:
        """Look for a first answer: mend the links that are broken, the cheapest way, in turn."""
        for _ in self.left:
            found = self.try_parts(self.mended(part, x))
            if not found:
                return
            _, part, x = min(found, key=lambda each: each[0])
            if not any(_may_press(part, link) for link in self.broken_by(x)):
                return

    def mended(self, part: Part, x: Floats) -> list[Part]:
        """Fix numbers that break their links where they keep them.

        All but one stay, and that one follows.
        """
        numbers, parts = part.numbers, list[Part]()
        broken = [link for link in self.broken_by(x) if _may_press(part, link)]
        for k in range(max(len(link.terms) for link in broken)):
            lower, upper = numbers.lower.copy(), numbers.upper.copy()
            for link in broken:
                j, coef = link.terms[k % len(link.terms)]
                lower[link.columns] = upper[link.columns] = x[link.columns]
                edge = float(x[j]) + (link.ends[1] - link.value(x)) / coef
                fix(numbers, lower, upper, j, edge, coef < 0.0)
            parts.append(within(part, lower, upper))
        return parts

    def best_along(self, part: Part, link: Link) -> tuple[Part, Floats, NDArray[np.int64]] | None:
        """Return the best part at the upper end of a link, and its answer; None: there is none."""
        best, least = None, self.best.value
        for edge in along(part, link):
            if self.weight * edge.paid >= least:
                continue
            out = self.ask([edge], self.higher_goal)
            value = float(out.value[0]) + self.weight * edge.paid
            if value < least and not out.is_missing(0):
                best, least = (edge, edge.restore(out.recourse[0]), out.levels[0]), value
        return best

    def rounded(self, part: Part, links: list[Link], x: Floats, upwards: tuple[bool, ...]) -> Part:
        """Fix the numbers of links at values of their lattices near x that keep the links.

        Of two linked numbers, the first goes to the value next to it, and the other one follows.
        """
        numbers = part.numbers
        lower, upper = numbers.lower.copy(), numbers.upper.copy()
        for link, up in zip(links, upwards, strict=True):
            (i, own), (j, coef) = link.terms
            near = fix(numbers, lower, upper, i, float(x[i]), up)
            fix(numbers, lower, upper, j, (link.ends[1] - own * near) / coef, coef < 0.0)
        return within(part, lower, upper)

    def try_answer(self, part: Part, x: Floats, levels: NDArray[np.int64], value: float) -> None:
        """Take the answer of a search if it may be had, and is better by more than rounding.

        Its value is what the search says and what is paid, but for what it pays for links, and for
        numbers to go that stay.
        """
        whole, own = self.whole.numbers, part.numbers
        fines = sum(toll * (link.value(x) - link.ends[1]) for link, toll in part.tolls)
        stay = [j for j in self.linked if x[j] == whole.start[j]]
        fines += sum(float(whole.fixed_cost[j] - own.fixed_cost[j]) for j in stay)
        value = float(value) + self.weight * (part.paid - fines)
        # bounds at tolls are those of the links themselves: what breaks one, however little, may be
        # cheaper than what is proven
        is_better = value < self.best.value * (1.0 - _ROUNDING)
        if is_better and keeps_all(self.links, x, _ROUNDING):
            self.keep(x, levels[: len(self.problem.groups)])

    def press(self, part: Part, link: Link, told: _Told) -> tuple[Part, _Told, list[Floats]]:
        """Look for the toll on breaking a link that gives the best bound.

        Returned are the part at that toll, what its search has told, and the last answer that
        breaks the link, if one was found.
        """
        line = self.line_of(part, link, told)
        near, far, last = (line, None, line) if line.slope > 0.0 else (None, line, line)
        most, outside = most_tilt(tolled(at_toll(part, link, 0.0)), link), list[Floats]()
        for turn in range(_MOST_TOLLS):
            toll = min(self.next_toll(near, far, last, turn), most)
            if math.isnan(toll) or (near is not None and toll <= near.toll):
                break
            there = at_toll(part, link, toll)
            asked = tolled(there)
            out = self.ask([asked], self.goal)
            if out.outcome[0] == EXHAUSTED and out.lower_bound[0] == math.inf:
                return part, told._replace(bound=math.inf), outside
            value = self.bound_of(asked, float(out.lower_bound[0]))
            if out.outcome[0] == LIMIT or math.isnan(value) or out.is_missing(0):
                break
            new = _Told(there.restore(out.recourse[0]), value)
            self.try_answer(asked, new.answer, out.levels[0], out.value[0])
            line = self.line_of(there, link, new)
            if value > told.bound:
                part, told = there, new
            if value >= self.cutoff() or (line.slope > 0.0 and toll == most):
                break
            if line.slope > 0.0:
                last, near, outside = near or line, line, [new.answer]
            else:
                last, far = last if near else far or line, line
        return part, told, outside

    def line_of(self, part: Part, link: Link, told: _Told) -> _Line:
        """Return what the answer of a part says of all tolls of a link."""
        slope = self.weight * (link.value(told.answer) - link.ends[1])
        return _Line(toll_of(part, link), told.bound, slope)

    def next_toll(self, near: _Line | None, far: _Line | None, last: _Line, turn: int) -> float:
        """Return the toll of a link to try next; NaN: none will do, as far as is known.

        The bound is concave in the toll: it rises at the toll of `near`, and no more at that of
        `far`. Where their lines cross below what is needed, no toll will do. The toll of the best
        bound is sought where the lines cross, as they do at a bend, and in turn where their slopes
        would pass through 0, if there is none. While there is one line, it says how far to go at
        least, and `last`, the one before it, how far its slope would need.
        """
        value = self.best.value
        if value == math.inf:
            return math.nan
        if near is None:
            assert far is not None
            toll = far.reaches(value) if far.slope < 0.0 else -1.0
            return max(min(toll, far.even_with(last)), 0.0) if toll >= 0.0 else math.nan
        least = near.reaches(value)
        if far is None:
            return max(least, near.even_with(last))
        crossing = near.crossing(far)
        if near.bound + near.slope * (crossing - near.toll) < self.cutoff():
            return math.nan
        even = near.even_with(far)
        return max(min(max(least, near.even_with(last)), crossing) if turn % 2 else even, least)

    def bound_of(self, part: Part, bound: float) -> float:
        """Return the bound of a part that a search gives, with what is paid for being in it."""
        paid = self.weight * part.paid
        return bound + paid - 4.0 * EPS * max(abs(bound), abs(paid))

    def look_into(self, parts: list[Part], floor: float) -> bool:
        """Search parts that differ in their numbers only; return False where nothing is known."""
        if not parts:
            return True
        asked, hard = [tolled(part) for part in parts], list[Part]()
        out = self.ask(asked, self.goal)
        for k, part in enumerate(parts):
            if out.outcome[k] == EXHAUSTED and out.lower_bound[k] == math.inf:
                continue
            own = self.bound_of(asked[k], float(out.lower_bound[k]))
            bound = max(floor, own)
            if bound >= self.cutoff():
                self.close(bound)
                continue
            if out.outcome[k] == LIMIT and any(each.tolls for each in asked):
                hard.append(part._replace(tolls=()))
                continue
            if out.is_missing(k) or math.isnan(bound):
                return False
            x, levels = part.restore(out.recourse[k]), out.levels[k, : len(self.problem.groups)]
            if not keeps_all(self.links, x):
                self.push(part, bound, _Told(x, own))
            elif part.tolls:
                self.try_answer(asked[k], x, levels, out.value[k])
                self.push(part, bound, _Told(x, own))
            elif self.keep(x, levels) or (part.merges and self.keep_safely(part)):
                self.close(bound)
            else:
                return False
        return self.look_into(hard, floor)

    def keep_safely(self, part: Part) -> bool:
        """Take an answer that keeps the guarantee by a hair; return whether there is one."""
        out = self.ask([part], self.higher_goal)
        if out.is_missing(0):
            return False
        x = part.restore(out.recourse[0])
        return keeps_all(self.links, x) and self.keep(x, out.levels[0, : len(self.problem.groups)])

    def keep(self, x: Floats, levels: NDArray[np.int64]) -> bool:
        """Take an answer that keeps the links; return whether it may be had."""
        base = self.problem.base
        if not may_be(self.whole, x, levels):
            return False
        value = true_cost(self.whole, x, levels)
        score = float(base.robust_to.worst_score(x[None], base.coef, base.intercept)[0])
        if self.goal.is_guarantee:
            if score < self.goal.amount:
                return False
        else:
            value = float(base.loss.value(score)) + self.goal.amount * value
        if value < self.best.value:
            self.best = self.best._replace(value=value, point=x, levels=levels)
            self.worths = None
        return True


def _ways(count: int) -> list[tuple[bool, ...]]:
    """List the ways to round so many links, each downwards or upwards."""
    return list(product((False, True), repeat=count))


def fix(
    numbers: Numbers, lower: Floats, upper: Floats, j: int, value: float, upwards: bool
) -> float:
    """Fix number j at the value of its lattice next to one; return that value."""
    near = snapped(value, float(numbers.step[j]), float(numbers.anchor[j]), upwards)
    lower[j] = upper[j] = min(max(near, numbers.lower[j]), numbers.upper[j])
    return float(lower[j])


def _may_press(part: Part, link: Link) -> bool:
    """Whether a link is an inequality between numbers of which several may move."""
    lower, upper, free = part.numbers.lower, part.numbers.upper, free_columns(part)
    if link.is_equation or not all(free[j] for j in link.places):
        return False
    return len([j for j in link.places if lower[j] < upper[j]]) > 1


def split(
    part: Part, link: Link, links: list[Link], x: Floats, best: Floats | None
) -> list[Part] | None:
    """Split a part at a value of a number, if it can be such that x is in none; None: nowhere.

    The value is that of the best answer, in whose halves the link is worth most, or else lies in
    the middle between that of x and the one that would keep the link. Numbers of a link of many may
    make up for each other: there x may stay in one of the two.
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
    first: list[Part] | None = None
    for j, place in places:
        if not numbers.lower[j] < place < numbers.upper[j]:
            continue
        below, above = neighbours_of(numbers, j, place)
        sides = (numbers.lower[j], below), (above, numbers.upper[j])
        halves = [narrowed(part, links, j, *side) for side in sides]
        found = [half for half in halves if half is not None]
        if not any(_holds(half, x) for half in found):
            return found
        first = found if first is None else first
    return first if len(link.terms) > 2 and _may_press(part, link) else None


def neighbours_of(numbers: Numbers, j: int, place: float) -> tuple[float, float]:
    """Return the allowed values of a number at or below a place, and above it."""
    step, anchor = numbers.step[j], numbers.anchor[j]
    if step == 0.0:
        return place, place
    below = snapped(place, step, anchor, False)
    above = snapped(below + 1.5 * step, step, anchor, False)
    start = float(numbers.start[j])
    if below < start < above:  # who stands between two values may stay there
        return (below, start) if place < start else (start, above)
    return below, above


def _holds(part: Part, x: Floats) -> bool:
    """Whether a point is within the bounds of the numbers of a part."""
    numbers, own = part.numbers, free_columns(part)
    return bool(((numbers.lower <= x) & (x <= numbers.upper))[own].all())
