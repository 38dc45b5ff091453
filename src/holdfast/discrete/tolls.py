"""Tolls of links: every unit by which a link is broken costs so much.

What keeps the link gets no dearer, so that the least cost without the link is a lower bound with
it. Where every linked number is on one side of its start, the search can solve that too.
The best toll of a link is looked for by `press` in `boxes.py`.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.discrete.lattice import on_lattice
from holdfast.discrete.parts import Link, Part, narrowed
from holdfast.discrete.row_search import Numbers
from holdfast.machinery.numbers import Floats
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem

_MOST_STEEP = 1e4  # times what moving costs: tolls of links


def is_folded(part: Part, link: Link) -> bool:
    """Whether the cost of a number of the link is no straight line yet."""
    return any(len(_sides(part.numbers, j)) > 1 for j, _ in link.terms)


def unfolded(part: Part, links: list[Link], link: Link) -> list[Part]:
    """Return parts in which the first folded number of a link stays, goes down, or goes up."""
    numbers, parts = part.numbers, list[Part]()
    j = next(j for j, _ in link.terms if len(_sides(numbers, j)) > 1)
    for low, high, fixed_cost in _sides(numbers, j):
        new = narrowed(part, links, j, low, high)
        if new is None:
            continue
        if fixed_cost > 0.0:  # who goes pays for it
            rest = new.numbers.fixed_cost.copy()
            rest[j] = 0.0
            own = new.numbers._replace(fixed_cost=rest)
            new = new._replace(numbers=own, paid=new.paid + fixed_cost)
        parts.append(new)
    return parts


def _sides(numbers: Numbers, j: int) -> list[tuple[float, float, float]]:
    """Return the sides that a number can go to: from where to where, and the fixed cost."""
    low, start, high, fixed_cost = (
        float(v[j]) for v in (numbers.lower, numbers.start, numbers.upper, numbers.fixed_cost)
    )
    sides = [(a, b, fixed_cost) for a, b in ((low, start), (start, high)) if a < b]
    return sides if sides and fixed_cost == 0.0 else [(start, start, 0.0), *sides]


def tolled(part: Part) -> Part:
    """Let breaking links cost what the tolls of the part say, as far as they can be set.

    Its tolls are then those that are set.
    """
    if not part.tolls:
        return part
    there, given = part, list[tuple[Link, float]]()
    for link, toll in part.tolls:
        toll = min(toll, most_tilt(there, link))
        if toll > 0.0:
            there = tilted(there, link, toll)
            given.append((link, toll))
    return there._replace(tolls=tuple(given))


def at_toll(part: Part, link: Link, toll: float) -> Part:
    """Return a part with another toll on a link."""
    others = [entry for entry in part.tolls if entry[0] is not link]
    return part._replace(tolls=(*others, (link, toll)))


def toll_of(part: Part, link: Link) -> float:
    """Return the toll on a link."""
    return next((toll for own, toll in part.tolls if own is link), 0.0)


def most_tilt(part: Part, link: Link) -> float:
    """Return the largest toll of a link that `tilted` can set."""
    numbers, counted = part.numbers, part.problem.max_changes is not None
    most, steepest = math.inf, 0.0
    for j, coef in link.terms:
        steepness = float(numbers.cost[j]) / abs(coef)
        steepest = max(steepest, steepness)
        far = _cheap_end(numbers, j, coef)
        if far != numbers.start[j] and (counted or not _may_turn(numbers, j, far)):
            most = min(most, steepness)
    # a toll far above the costs would hide them in its rounding
    return min(most, _MOST_STEEP * steepest)


def _cheap_end(numbers: Numbers, j: int, coef: float) -> float:
    """Return how far a number may go where its link is kept sooner."""
    return float(numbers.lower[j] if coef > 0.0 else numbers.upper[j])


def _may_turn(numbers: Numbers, j: int, far: float) -> bool:
    """Whether a number that is paid for moving may start at its far end.

    That must have no fixed cost, and on a lattice both ends must be on it.
    """
    if numbers.fixed_cost[j] > 0.0 or not math.isfinite(far):
        return False
    ends = np.array([numbers.start[j], far])
    return bool(on_lattice(ends, numbers.step[j], numbers.anchor[j]).all())


def tilted(part: Part, link: Link, toll: float) -> Part:
    """Let every unit by which a link is broken cost so much: what keeps it gets no dearer.

    Numbers of the link are on one side of their start. One that is paid for moving starts at its
    far end.
    """
    numbers = part.numbers
    costs, points = numbers.cost.copy(), numbers.start.copy()
    paid = toll * (link.value(numbers.start) - link.ends[1])
    for j, coef in link.terms:
        if numbers.lower[j] == numbers.upper[j]:
            continue
        far = _cheap_end(numbers, j, coef)
        if far == numbers.start[j]:
            costs[j] += toll * abs(coef)
            continue
        cost = numbers.cost[j] - toll * abs(coef)
        least = 1e-12 * numbers.cost[j]
        costs[j] = abs(cost)
        if cost <= -least:  # by more than rounding: only whoever may turn gets there
            points[j] = far
            paid += cost * abs(far - numbers.start[j])
        elif cost < least:  # moving must cost something; what that may be too much comes off
            width = numbers.upper[j] - numbers.lower[j]
            paid -= (least - cost) * width if math.isfinite(width) else math.inf
            costs[j] = least
    turned = Numbers(
        points,
        numbers.lower,
        numbers.upper,
        costs,
        numbers.fixed_cost,
        numbers.step,
        numbers.anchor,
    )
    return part._replace(numbers=turned, paid=part.paid + float(paid))


def one_way(part: Part, link: Link, x: Floats) -> Part:
    """Let each number of a link go only where it is at x, or else where the link is kept sooner."""
    numbers = part.numbers
    lower, upper = numbers.lower.copy(), numbers.upper.copy()
    for j, coef in link.terms:
        start = numbers.start[j]
        if lower[j] < start < upper[j]:
            goes_up = (x[j] > start) if x[j] != start else coef < 0.0
            (lower if goes_up else upper)[j] = start
    return part._replace(numbers=numbers._replace(lower=lower, upper=upper))


def fair_toll(numbers: Numbers, x: Floats, worths: Floats, link: Link) -> float:
    """Return the toll of a link at whose upper end a point is, so that it pays to stay there.

    Were all numbers continuous, and the point the best, then no toll gave a better bound. Of each
    number that moves, cost and toll make up for what moving it is worth.
    """
    room = link.ends[1] - link.value(x)
    if room > sum(abs(a) * (float(numbers.step[j]) + 1e-9 * abs(x[j])) for j, a in link.terms):
        return 0.0
    low, high = 0.0, math.inf
    for j, a in link.terms:
        least, most = _pull(numbers, j, float(x[j]), float(worths[j]))
        ends = sorted((least / a, most / a))
        low, high = max(low, ends[0]), min(high, ends[1])
    return 0.5 * (low + high) if high < math.inf else low


def worths_at(base: RecourseProblem, goal: Goal, numbers: Numbers, x: Floats) -> Floats:
    """Return about what it is worth to move each number up from a point, in cost for a unit."""
    models, _ = base.robust_to.worst_model(x[None], base.coef, base.intercept)
    coef = models[0]
    if goal.is_guarantee:  # a unit of score is worth what the dearest number takes for it
        inside = (numbers.lower < x) & (x < numbers.upper) & ((x - numbers.start) * coef > 0.0)
        of_score = (numbers.cost[inside] / np.abs(coef[inside])).max(initial=0.0)
    else:
        score = base.robust_to.worst_score(x[None], base.coef, base.intercept)
        of_score = base.loss.slope(score)[0] / goal.amount
    return np.asarray(of_score * coef)


def _pull(numbers: Numbers, j: int, x: float, worth: float) -> tuple[float, float]:
    """Return between which slopes a number must be held, so that it stays where it is."""
    start, cost = float(numbers.start[j]), float(numbers.cost[j])
    least = worth - cost if x >= start else worth + cost
    most = worth + cost if x <= start else worth - cost
    if x <= numbers.lower[j]:
        least = -math.inf
    if x >= numbers.upper[j]:
        most = math.inf
    return least, most
