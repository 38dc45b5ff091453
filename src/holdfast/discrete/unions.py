"""Linked numbers made one, so that the search can take them: a row of links falls into parts.

Numbers that are linked and take few values together are one feature, whose levels are the values
that keep the links. Two continuous numbers that move together are one number: for p = 2 exactly,
for p = 1 and p = inf in each of a few intervals, in which the norm is that of a number. Every part
is a problem without these links, and the best of all parts is the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.lattice import MOST_STEPS_OUT, lattice_between, nearest_on_lattice
from holdfast.discrete.parts import Link, Merge, Part, within
from holdfast.discrete.problem import Group
from holdfast.discrete.row_search import Numbers, RowModel, RowSearcher
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import NormBall, require_ball
from holdfast.problem.model_set import ModelSet

_MOST_LEVELS = 4096  # of numbers that are made one
_MOST_TRIED = 1 << 14  # values of linked numbers that are looked at for these levels
_MOST_PARTS = 32


def components(links: list[Link]) -> list[tuple[NDArray[np.int64], list[Link]]]:
    """Return the sets of columns that are linked with each other, and their links."""
    found: list[tuple[set[int], list[Link]]] = []
    for link in links:
        columns, own = set(link.columns.tolist()), [link]
        for other in [c for c in found if c[0] & columns]:
            found.remove(other)
            columns, own = columns | other[0], other[1] + own
        found.append((columns, own))
    return [(np.array(sorted(columns), dtype=np.int64), own) for columns, own in found]


def parts_of(part: Part, links: list[Link]) -> tuple[list[Part], list[Link]]:
    """Take a row apart: return its parts, and the links that they do not keep by themselves."""
    parts, left = [part], list[Link]()
    for columns, own in components(links):
        news: list[Part] | None = None
        if part.searcher.is_number[columns].all() and len(parts) < _MOST_PARTS:
            levels = levels_of(part.numbers, columns, own)
            if levels is not None:
                news = [new for old in parts for new in made_one(old, columns, levels)]
            elif _are_merged(part, columns, own):
                news = [new for old in parts for new in _merged(old, columns, own[0])]
        if news is None:
            left += own
        else:
            parts = news
    return parts, left


def _count(numbers: Numbers, j: int) -> float:
    """Return about how many values a number may take; inf where they cannot be listed."""
    low, high, step = (float(v[j]) for v in (numbers.lower, numbers.upper, numbers.step))
    if low == high:
        return 1.0
    furthest = max(abs(low), abs(high), abs(numbers.anchor[j]))
    if step == 0.0 or furthest > 0.5 * MOST_STEPS_OUT * step:
        return math.inf
    return math.floor((high - low) / step) + 1.0


def _values(numbers: Numbers, j: int) -> Floats:
    """Return what a number may become: its lattice, and where it is."""
    low, high, start = numbers.lower[j], numbers.upper[j], numbers.start[j]
    own = [start] if low <= start <= high else []
    if low == high:
        return np.array([low])
    return np.union1d(lattice_between(low, high, numbers.step[j], numbers.anchor[j]), own)


def levels_of(numbers: Numbers, columns: NDArray[np.int64], links: list[Link]) -> Floats | None:
    """List the values of linked numbers that keep the links; None: they are too many."""
    if not any(link.is_equation for link in links):  # then two at least are listed in full
        counts = sorted(_count(numbers, j) for j in columns.tolist())
        if math.prod(counts[:2]) > _MOST_TRIED:
            return None
    own = Numbers(*(values[columns] for values in numbers))
    links = [Link(link.coef[columns], link.lower, link.upper) for link in links]
    known: list[int] = []
    found = np.zeros((1, len(columns)))
    while len(known) < len(columns):
        told = _told(known, links)
        if told is not None:
            j, link = told
            rest = link.coef.copy()
            rest[j] = 0.0
            found[:, j] = _nearest(own, j, (link.ends[0] - found @ rest) / link.coef[j])
        else:
            sizes = {j: _count(own, j) for j in range(len(columns)) if j not in known}
            j = min(sizes, key=lambda column: (sizes[column], column))
            if len(found) * sizes[j] > _MOST_TRIED:
                return None
            values = _values(own, j)
            found = np.repeat(found, len(values), axis=0)
            found[:, j] = np.tile(values, len(found) // len(values))
        known.append(j)
        inside = (own.lower[j] <= found[:, j]) & (found[:, j] <= own.upper[j])
        for link in links:
            if j in link.columns and set(link.columns.tolist()) <= set(known):
                inside &= link.keeps(found)
        found = found[inside]
    return found if len(found) <= _MOST_LEVELS else None


def _told(known: list[int], links: list[Link]) -> tuple[int, Link] | None:
    """Return a column that an equation between it and known columns tells, and the equation."""
    for link in links:
        open_columns = set(link.columns.tolist()) - set(known)
        if link.is_equation and len(open_columns) == 1 and len(link.columns) > 1:
            return open_columns.pop(), link
    return None


def _nearest(numbers: Numbers, j: int, values: Floats) -> Floats:
    """Return the allowed value next to each: on the lattice, or the start if it is meant."""
    step, anchor, start = numbers.step[j], numbers.anchor[j], numbers.start[j]
    if step > 0.0:
        on = nearest_on_lattice(values, step, anchor)
        return np.asarray(np.where(np.abs(on - values) <= np.abs(start - values), on, start))
    for end in (numbers.lower[j], numbers.upper[j], start):
        values = np.where(np.abs(values - end) <= 1e-12 * (1.0 + abs(end)), end, values)
    return values


def made_one(part: Part, columns: NDArray[np.int64], levels: Floats) -> Iterator[Part]:
    """Make linked numbers one feature.

    Its change counts once among the changes, though up to m numbers change: so that m of them may,
    the others may change m - 1 times less often. The parts m = 1, 2, ... cover all that may be.
    """
    problem, numbers = part.problem, part.numbers
    if not len(levels):
        return
    start = numbers.start[columns]
    moved = levels != start
    costs = np.abs(levels - start) @ numbers.cost[columns] + moved @ numbers.fixed_cost[columns]
    changes = moved.sum(axis=1)
    home = int(np.argmin(np.where(changes == 0, -1.0, costs)))
    paid = float(costs[home])  # nothing, unless nobody may stay
    joined = numbers._replace(
        start=_put(numbers.start, columns, levels[home]),
        lower=_put(numbers.lower, columns, levels.min(axis=0)),
        upper=_put(numbers.upper, columns, levels.max(axis=0)),
    )
    most = problem.max_changes
    counts = [0] if most is None else range(1, min(max(int(changes.max()), 1), max(most, 1)) + 1)
    for m in counts:
        allowed = costs - paid if most is None else np.where(changes <= m, costs - paid, np.inf)
        new = replace(
            problem,
            groups=[*problem.groups, Group(columns, levels)],
            current=np.append(problem.current, [[home]], axis=1),
            level_costs=[*problem.level_costs, allowed[None]],
            max_changes=None if most is None else most - (m - 1),
        )
        yield part._replace(searcher=RowSearcher(new), numbers=joined, paid=part.paid + paid)


def _put(values: Floats, columns: NDArray[np.int64], new: Floats | tuple[float, float]) -> Floats:
    """Return some values with new ones in some columns."""
    result = values.copy()
    result[columns] = new
    return result


def _are_merged(part: Part, columns: NDArray[np.int64], links: list[Link]) -> bool:
    """Whether two continuous numbers move together, from where they are."""
    numbers = part.numbers
    if len(columns) != 2 or len(links) != 1 or not links[0].is_equation:
        return False
    if not _has_forms(part.problem.base.robust_to):
        return False
    inside = (numbers.lower <= numbers.start) & (numbers.start <= numbers.upper)
    is_free = numbers.step[columns].max() == 0.0 and inside[columns].all()
    return bool(is_free and links[0].keeps(numbers.start))


def _has_forms(robust_to: ModelSet) -> bool:
    """Whether two numbers that move together add to the norm as one would."""
    if not isinstance(robust_to, NormBall):
        return False
    return robust_to.radius == 0.0 or robust_to.p in (1.0, 2.0, math.inf)


class _Slide(NamedTuple):
    """What it costs to move two numbers together."""

    begin: float  # the t from which they move
    cost: float  # for t to change by 1
    fixed_cost: float  # for t to change at all


def _merged(part: Part, columns: NDArray[np.int64], link: Link) -> Iterator[Part]:
    """Make two numbers that move together one."""
    numbers, slope = part.numbers, _slope(columns, link)
    way = _Slide(
        0.0, float(numbers.cost[columns] @ np.abs(slope)), float(numbers.fixed_cost[columns].sum())
    )
    for form, interval in _forms(part, columns, numbers.start[columns], slope):
        most = part.problem.max_changes
        if most is None:
            yield _merged_within(part, columns, form, interval, way)
            continue
        # it counts once, and stands for two: either it stays, or the others change less often
        if interval[0] <= 0.0 <= interval[1]:
            yield _merged_within(part, columns, form, (0.0, 0.0), way)
        if most >= 2:
            fewer = RowSearcher(replace(part.problem, max_changes=most - 1))
            yield _merged_within(part._replace(searcher=fewer), columns, form, interval, way)


def along(part: Part, link: Link) -> Iterator[Part]:
    """Merge two numbers that move along the upper end of a link, each on one side of its start.

    Steps and fixed costs are left out: this is to find a good answer, and proves nothing.
    """
    numbers, columns = part.numbers, link.columns
    if not _has_forms(part.problem.base.robust_to):
        return
    a, b = columns.tolist()
    own, slope = numbers.start[columns], _slope(columns, link)
    start = np.array([(link.ends[1] - link.coef[b] * own[1]) / link.coef[a], own[1]])

    def cost(t: float) -> float:
        return float(numbers.cost[columns] @ np.abs(start + t * slope - own))

    forms = list(_forms(part, columns, start, slope))
    if not forms:
        return
    low, high = forms[0][1][0], forms[-1][1][1]
    begin = min((t for t in (low, high) if math.isfinite(t)), key=cost, default=math.nan)
    if math.isnan(begin):
        return
    other = _inner(low, high)
    least = 1e-9 * float(numbers.cost[columns] @ np.abs(slope))
    rate = (cost(other) - cost(begin)) / abs(other - begin) if other != begin else least
    smooth = part._replace(
        numbers=numbers._replace(step=_put(numbers.step, columns, (0.0, 0.0))),
        paid=part.paid + cost(begin),
    )
    for form, interval in forms:
        yield _merged_within(smooth, columns, form, interval, _Slide(begin, max(rate, least), 0.0))


def _slope(columns: NDArray[np.int64], link: Link) -> Floats:
    """Return how fast the first number moves with the second, and 1."""
    a, b = columns.tolist()
    return np.array([-link.coef[b] / link.coef[a], 1.0])


def _forms(
    part: Part, columns: NDArray[np.int64], start: Floats, slope: Floats
) -> Iterator[tuple[_Form, tuple[float, float]]]:
    """Yield the intervals of t in which the norm has one form, as far as the bounds allow."""
    lower, upper = part.numbers.lower[columns], part.numbers.upper[columns]
    ball = require_ball(part.problem.base.robust_to, "a union of numbers")
    ends = np.sort(np.stack([(lower - start) / slope, (upper - start) / slope]), axis=0)
    low, high = float(ends[0].max()), float(ends[1].min())
    if low > high:
        return
    felt = part.searcher.model.scale[columns] if ball.radius > 0.0 else np.zeros(2)
    cuts = [t for t in _cuts(start, slope, felt, ball.p) if low < t < high]
    for interval in pairwise([low, *cuts, high]):
        yield _form(start, slope, felt, ball.p, _inner(*interval)), interval


class _Form(NamedTuple):
    """The two numbers in an interval: y, and what they add to the norm or to the score."""

    start: Floats
    slope: Floats
    at_start: float  # y where they start, ...
    scale: float  # ... and how fast it goes
    felt: float  # the scale of y in the norm
    rest: float  # what is in the norm beside y
    folded: Floats  # what the norm takes off the coefficients


def _cuts(start: Floats, slope: Floats, felt: Floats, p: float) -> list[float]:
    """Return where the norm changes its form along the way."""
    if p == 2.0 or not felt.any():
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        if p == math.inf:
            cuts = -start / slope
        else:
            signs = np.array([1.0, -1.0])
            above = signs * felt[1] * start[1] - felt[0] * start[0]
            cuts = above / (felt[0] * slope[0] - signs * felt[1] * slope[1])
    return sorted({float(t) for t in cuts if math.isfinite(t)})


def _inner(low: float, high: float) -> float:
    """Return a place within an interval."""
    if math.isfinite(low) and math.isfinite(high):
        return 0.5 * (low + high)
    if math.isfinite(low):
        return low + 1.0 + abs(low)
    return high - 1.0 - abs(high) if math.isfinite(high) else 0.0


def _form(start: Floats, slope: Floats, felt: Floats, p: float, t: float) -> _Form:
    """Return the form of the norm around t."""
    folded = np.zeros(2)
    if not felt.any():
        return _Form(start, slope, 0.0, 1.0, 0.0, 0.0, folded)
    where = start + t * slope
    if p == math.inf:
        return _Form(start, slope, 0.0, 1.0, 0.0, 0.0, felt * np.sign(where))
    if p == 1.0:
        k = int(np.argmax(felt * np.abs(where)))
        return _Form(start, slope, float(start[k]), float(slope[k]), float(felt[k]), 0.0, folded)
    moving = float(np.hypot(*(felt * slope)))
    direction = felt * slope / moving
    along = float(direction @ (felt * start)) / moving
    across = float(direction[0] * felt[1] * start[1] - direction[1] * felt[0] * start[0])
    return _Form(start, slope, along, 1.0, moving, abs(across), folded)


def _merged_within(
    part: Part, columns: NDArray[np.int64], form: _Form, interval: tuple[float, float], way: _Slide
) -> Part:
    """Put y in place of the first number, and what else the norm needs in place of the second."""
    numbers, old = part.numbers, part.searcher.model
    ends = sorted(form.at_start + form.scale * t for t in interval)
    coef = old.coef[columns] - part.problem.base.robust_to.radius * form.folded
    speed = float(coef @ form.slope) / form.scale
    model = RowModel(
        _put(old.coef, columns, (speed, 0.0)),
        old.intercept + float(coef @ form.start) - speed * form.at_start,
        _put(old.scale, columns, (form.felt, 1.0)),
    )
    merged = numbers._replace(
        start=_put(numbers.start, columns, (form.at_start + form.scale * way.begin, form.rest)),
        cost=_put(numbers.cost, columns, (way.cost / abs(form.scale), 1.0)),
        fixed_cost=_put(numbers.fixed_cost, columns, (way.fixed_cost, 0.0)),
    )
    merge = Merge(
        columns,
        form.start,
        form.slope,
        numbers.lower[columns],
        numbers.upper[columns],
        form.at_start,
        form.scale,
    )
    lower = _put(numbers.lower, columns, (ends[0], form.rest))
    upper = _put(numbers.upper, columns, (ends[1], form.rest))
    whole = Part(part.searcher.like(model), merged, part.paid, (*part.merges, merge))
    return within(whole, lower, upper)
