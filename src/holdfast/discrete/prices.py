"""Prices of links: every unit by which a link is broken costs so much.

What keeps the link gets no dearer, so that the least cost without the link is a lower bound with
it. Where every linked number is on one side of its start, the search can solve that too.
"""

from __future__ import annotations

import math

from holdfast.discrete.frame import Numbers
from holdfast.discrete.parts import Link, Part, narrowed

_MOST_STEEP = 1e4  # times what moving costs: prices of links


def folded(part: Part, link: Link) -> int | None:
    """Return a column of the link whose cost is no straight line yet; None: there is none."""
    numbers = part.numbers
    for j, _ in link.terms:
        low, start, high = numbers.lower[j], numbers.start[j], numbers.upper[j]
        if low < start < high or (numbers.fee[j] > 0.0 and low <= start <= high and low < high):
            return j
    return None


def unfolded(part: Part, links: list[Link], j: int) -> list[Part]:
    """Return a part with number j as it is, with it going down, and with it going up."""
    numbers, parts = part.numbers, list[Part]()
    start = numbers.start[j]
    for low, high in ((start, start), (numbers.lower[j], start), (start, numbers.upper[j])):
        if low == high and parts:
            continue
        new = narrowed(part, links, j, low, high)
        if new is None:
            continue
        if low < high:  # who goes pays for it
            fees = new.numbers.fee.copy()
            fee, fees[j] = float(fees[j]), 0.0
            new = new._replace(numbers=new.numbers._replace(fee=fees), paid=new.paid + fee)
        parts.append(new)
    return parts


def priced(part: Part) -> Part:
    """Let breaking links cost what the prices of the part say, as far as they can be set."""
    there = part._replace(prices=())
    for link, price in part.prices:
        price = min(price, most_tilt(there, link))
        if price > 0.0:
            there = tilted(there, link, price)
    return there


def at_price(part: Part, link: Link, price: float) -> Part:
    """Return a part with another price on a link."""
    others = [entry for entry in part.prices if entry[0] is not link]
    return part._replace(prices=(*others, (link, price)))


def price_of(part: Part, link: Link) -> float:
    """Return the price on a link."""
    return next((price for own, price in part.prices if own is link), 0.0)


def most_tilt(part: Part, link: Link) -> float:
    """Return the largest price of a link that `tilted` can set."""
    numbers, counted = part.numbers, part.problem.max_changes is not None
    most, steepest = math.inf, 0.0
    for j, coef in link.terms:
        steepness = float(numbers.cost[j]) / abs(coef)
        steepest = max(steepest, steepness)
        if _side(numbers, j) * coef < 0.0 and (counted or not _may_turn(numbers, j)):
            most = min(most, steepness)
    # a price far above the costs would hide them in its rounding
    return min(most, _MOST_STEEP * steepest)


def _may_turn(numbers: Numbers, j: int) -> bool:
    """Whether a number that is paid for moving may start at its far end.

    That must not cost a fee, and on a lattice both ends must be on it.
    """
    far = numbers.upper[j] if _side(numbers, j) > 0.0 else numbers.lower[j]
    ends = [float(numbers.start[j]), float(far)]
    if numbers.fee[j] > 0.0 or not math.isfinite(ends[1]):
        return False
    step, anchor = float(numbers.step[j]), float(numbers.anchor[j])
    return step == 0.0 or all(anchor + step * round((v - anchor) / step) == v for v in ends)


def tilted(part: Part, link: Link, price: float) -> Part:
    """Let every unit by which a link is broken cost so much: what keeps it gets no dearer.

    Numbers of the link are on one side of their start. One that is paid for moving starts at its
    far end.
    """
    numbers = part.numbers
    costs, points = numbers.cost.copy(), numbers.start.copy()
    paid = price * (link.value(numbers.start) - link.ends[1])
    for j, coef in link.terms:
        side = _side(numbers, j)
        cost = numbers.cost[j] + price * side * coef
        least = 1e-12 * numbers.cost[j]
        costs[j] = abs(cost)
        if cost <= -least:  # by more than rounding: only whoever may turn gets there
            points[j] = numbers.upper[j] if side > 0.0 else numbers.lower[j]
            paid += cost * abs(points[j] - numbers.start[j])
        elif cost < least:  # moving must cost something; what that may be too much comes off
            width = numbers.upper[j] - numbers.lower[j]
            paid -= (least - cost) * width if math.isfinite(width) else math.inf
            costs[j] = least
    turned = numbers._replace(start=points, cost=costs)
    return part._replace(numbers=turned, paid=part.paid + float(paid))


def _side(numbers: Numbers, j: int) -> float:
    """Return 1 for a number that may go up, -1 for one that may go down, 0 for one that stays."""
    start = numbers.start[j]
    return float(numbers.upper[j] > start) - float(numbers.lower[j] < start)
