"""Linked numbers made one, so that the search can take them: a row of links falls into parts.

Numbers that are linked and take few values together are one feature, whose options are the values
that keep the links. Two continuous numbers that move together are one number: for p = 2 exactly,
for p = 1 and p = inf in each of a few intervals, in which the norm is that of a number. Every part
is a problem without these links, and the best of all parts is the best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.answer import costs_of
from holdfast.discrete.problem import DiscreteProblem, Group
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import frozen

LINK_TOLERANCE = 1e-9
_MOST_OPTIONS = 4096  # of numbers that are made one
_MOST_TRIED = 1 << 16  # values of linked numbers that are looked at for these options
_MOST_PARTS = 32
_MOST_STEEP = 1e4  # times what moving costs: prices of links
_FAR = 2.0**50  # a lattice further out cannot be told from its neighbours


class Link(NamedTuple):
    """``lower <= coef @ x <= upper``, of one row."""

    coef: Floats
    lower: float
    upper: float

    @property
    def columns(self) -> NDArray[np.int64]:
        """The columns that it links."""
        return np.flatnonzero(self.coef)

    def turned(self) -> Link:
        """Return the same link with its ends exchanged."""
        return Link(-self.coef, -self.upper, -self.lower)

    def keeps(self, x: Floats) -> NDArray[np.bool_]:
        """Say which of the points, one in each row, keep it: to a tolerance, as it is promised."""
        value, terms = x @ self.coef, 1.0 + np.abs(x) @ np.abs(self.coef)
        slack = LINK_TOLERANCE * terms
        return np.asarray((value >= self.lower - slack) & (value <= self.upper + slack))


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


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a row: a problem without links, and what it costs to be in it at all."""

    problem: DiscreteProblem
    paid: float = 0.0
    merges: tuple[Merge, ...] = ()
    is_aimed: bool = False  # whether an answer at the edge of a link has been looked for

    def restore(self, x: Floats) -> Floats:
        """Return the point in the columns of the row."""
        point = x.copy()
        for merge in self.merges:
            merge.restore(point)
        return point


class Numbers(NamedTuple):
    """One row, column by column."""

    start: Floats
    lower: Floats
    upper: Floats
    cost: Floats
    fee: Floats
    step: Floats
    anchor: Floats


def numbers_of(problem: DiscreteProblem) -> Numbers:
    """Return the columns of a problem that has one row; those of groups lie among their options."""
    base = problem.problem
    lower, upper = base.lower[0].copy(), base.upper[0].copy()
    for group, costs in zip(problem.groups, problem.option_costs, strict=True):
        allowed = np.asarray(group.options)[np.isfinite(costs[0])]
        lower[group.columns], upper[group.columns] = allowed.min(axis=0), allowed.max(axis=0)
    return Numbers(
        base.X[0],
        lower,
        upper,
        base.feature_costs[0],
        problem.fees[0],
        problem.step[0],
        problem.anchor[0],
    )


# ------------------------------------------------------------------ intervals


def snapped(value: float, step: float, anchor: float, upwards: bool) -> float:
    """Return the nearest lattice value that is not below (upwards) or above it."""
    if step == 0.0 or math.isinf(value):
        return value
    k = math.floor((value - anchor) / step)
    if abs(k) > _FAR:
        return value
    while anchor + step * k > value:
        k -= 1
    while anchor + step * (k + 1) <= value:
        k += 1
    if upwards and anchor + step * k < value:
        k += 1
    return anchor + step * k


def on_lattice(numbers: Numbers, columns: NDArray[np.int64], values: Floats) -> NDArray[np.bool_]:
    """Say which values, a column each, are on the lattices of their columns, to the last bit."""
    step, anchor = numbers.step[columns], numbers.anchor[columns]
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = anchor + step * np.round((values - anchor) / step)
    return np.asarray((step == 0.0) | (nearest == values))


def tightened(
    numbers: Numbers, links: list[Link], free: NDArray[np.bool_]
) -> tuple[Floats, Floats] | None:
    """Narrow the bounds of the free columns as far as the links say; None: nothing keeps them.

    A start that breaks a link by no more than the tolerance stays within.
    """
    lower, upper = numbers.lower.copy(), numbers.upper.copy()
    for _ in range(4):
        before = lower.copy(), upper.copy()
        for link in links:
            columns = link.columns
            coef = link.coef[columns]
            ends = np.sort(np.stack([coef * lower[columns], coef * upper[columns]]), axis=0)
            terms = np.where(np.isfinite(ends), np.abs(ends), 0.0).max(axis=0)
            for k, j in enumerate(columns):
                if not free[j]:
                    continue
                others = np.delete(ends, k, axis=1).sum(axis=1)
                slack = LINK_TOLERANCE * (1.0 + np.delete(terms, k).sum()) / abs(coef[k])
                room = (link.lower - others[1]) / coef[k], (link.upper - others[0]) / coef[k]
                low, high = min(room), max(room)
                _tighten(numbers, int(j), low, high, slack, lower, upper)
                if lower[j] > upper[j]:
                    return None
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def _tighten(
    numbers: Numbers,
    j: int,
    low: float,
    high: float,
    slack: float,
    lower: Floats,
    upper: Floats,
) -> None:
    """Narrow one column; values of a lattice keep a link as long as the tolerance lets them."""
    start, step, anchor = numbers.start[j], numbers.step[j], numbers.anchor[j]
    extra = slack if step > 0.0 and math.isfinite(slack) else 0.0
    if low > lower[j]:
        new = snapped(low - extra, step, anchor, True)
        lower[j] = max(lower[j], min(new, start) if start >= low - slack else new)
    if high < upper[j]:
        new = snapped(high + extra, step, anchor, False)
        upper[j] = min(upper[j], max(new, start) if start <= high + slack else new)
    if step == 0.0 and upper[j] < lower[j] <= upper[j] + slack:  # one value, but for rounding
        lower[j] = upper[j] = min(max(lower[j], numbers.lower[j]), numbers.upper[j])


def within(part: Part, lower: Floats, upper: Floats) -> Part:
    """Narrow the numbers of a part; who starts outside moves to where the part begins.

    The rest of the way costs what it would have cost: such a number stays on one side of its start.
    """
    numbers, problem = numbers_of(part.problem), part.problem
    inside = np.zeros(len(lower), dtype=bool)
    inside[problem.number_columns] = True
    start = np.where(inside, np.clip(numbers.start, lower, upper), numbers.start)
    moved = start != numbers.start
    fee = np.where(moved, 0.0, numbers.fee)
    paid = (numbers.cost * np.abs(start - numbers.start))[moved].sum() + numbers.fee[moved].sum()
    base = replace(
        problem.problem,
        X=frozen(start[None]),
        lower=frozen(lower[None]),
        upper=frozen(upper[None]),
    )
    narrow = replace(problem, problem=base, fixed_costs=fee[None])
    return replace(part, problem=narrow, paid=part.paid + float(paid))


def free_columns(part: Part) -> NDArray[np.bool_]:
    """Say which columns are numbers of the row still."""
    free = np.zeros(part.problem.problem.n_features, dtype=bool)
    free[part.problem.number_columns] = True
    for merge in part.merges:
        free[merge.columns] = False
    return free


def narrowed(part: Part, links: list[Link], j: int, low: float, high: float) -> Part | None:
    """Keep number j between two values, and others as the links then allow; None: nowhere."""
    numbers = numbers_of(part.problem)
    lower, upper = numbers.lower.copy(), numbers.upper.copy()
    lower[j], upper[j] = max(low, lower[j]), min(high, upper[j])
    if lower[j] > upper[j]:
        return None
    narrow = numbers._replace(lower=lower, upper=upper)
    bounds = tightened(narrow, links, free_columns(part))
    return None if bounds is None else within(part, *bounds)


# ------------------------------------------------------------------ parts


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
    parts, problem, left = [part], part.problem, list[Link]()
    numbers, is_number = numbers_of(problem), np.zeros(problem.problem.n_features, dtype=bool)
    is_number[problem.number_columns] = True
    for columns, own in components(links):
        news: list[Part] | None = None
        if is_number[columns].all() and len(parts) < _MOST_PARTS:
            options = _options(numbers, columns, own)
            if options is not None:
                news = [new for old in parts for new in _joined(old, columns, options)]
            elif _are_merged(problem, numbers, columns, own):
                news = [new for old in parts for new in _merged(old, columns, own[0])]
        if news is None:
            left += own
        else:
            parts = news
    return parts, left


def _values(numbers: Numbers, j: int) -> Floats | None:
    """Return what a number may become, if that can be listed."""
    low, high, start = numbers.lower[j], numbers.upper[j], numbers.start[j]
    own = [start] if low <= start <= high else []
    if low == high:
        return np.array([low])
    step, anchor = numbers.step[j], numbers.anchor[j]
    if step == 0.0 or not (high - low) / step < _MOST_TRIED:
        return None
    first, last = math.floor((low - anchor) / step), math.ceil((high - anchor) / step)
    if max(abs(first), abs(last)) > _FAR:
        return None
    values = anchor + step * np.arange(first - 1, last + 2)
    return np.union1d(values[(low <= values) & (values <= high)], own)


def _options(numbers: Numbers, columns: NDArray[np.int64], links: list[Link]) -> Floats | None:
    """List the values of linked numbers that keep the links; None: they are too many."""
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
            found[:, j] = _nearest(own, j, (link.lower - found @ rest) / link.coef[j])
        else:
            lists = {j: _values(own, j) for j in range(len(columns)) if j not in known}
            sizes = {j: len(values) for j, values in lists.items() if values is not None}
            if not sizes or len(found) * min(sizes.values()) > _MOST_TRIED:
                return None
            j = min(sizes, key=lambda column: (sizes[column], column))
            values = lists[j]
            assert values is not None
            found = np.repeat(found, len(values), axis=0)
            found[:, j] = np.tile(values, len(found) // len(values))
        known.append(j)
        inside = (own.lower[j] <= found[:, j]) & (found[:, j] <= own.upper[j])
        for link in links:
            if j in link.columns and set(link.columns.tolist()) <= set(known):
                inside &= link.keeps(found)
        found = found[inside]
    return found if len(found) <= _MOST_OPTIONS else None


def _told(known: list[int], links: list[Link]) -> tuple[int, Link] | None:
    """Return a column that an equation between it and known columns tells, and the equation."""
    for link in links:
        open_columns = set(link.columns.tolist()) - set(known)
        if link.lower == link.upper and len(open_columns) == 1 and len(link.columns) > 1:
            return open_columns.pop(), link
    return None


def _nearest(numbers: Numbers, j: int, values: Floats) -> Floats:
    """Return the allowed value next to each: on the lattice, or the start if it is meant."""
    step, anchor, start = numbers.step[j], numbers.anchor[j], numbers.start[j]
    if step > 0.0:
        with np.errstate(over="ignore", invalid="ignore"):
            on = anchor + step * np.round((values - anchor) / step)
        return np.asarray(np.where(np.abs(on - values) <= np.abs(start - values), on, start))
    for end in (numbers.lower[j], numbers.upper[j], start):
        values = np.where(np.abs(values - end) <= 1e-12 * (1.0 + abs(end)), end, values)
    return values


def _joined(part: Part, columns: NDArray[np.int64], options: Floats) -> Iterator[Part]:
    """Make linked numbers one feature.

    Its change counts once among the changes, though up to m numbers change: so that m of them may,
    the others may change m - 1 times less often. The parts m = 1, 2, ... cover all that may be.
    """
    problem, numbers = part.problem, numbers_of(part.problem)
    if not len(options):
        return
    start = numbers.start[columns]
    moved = options != start
    costs = np.abs(options - start) @ numbers.cost[columns] + moved @ numbers.fee[columns]
    changes = moved.sum(axis=1)
    home = int(np.argmin(np.where(changes == 0, -1.0, costs)))
    paid = float(costs[home])  # nothing, unless nobody may stay
    points = problem.problem.X.copy()
    points[0, columns] = options[home]
    base = replace(problem.problem, X=frozen(points))
    most = problem.max_changes
    counts = [0] if most is None else range(1, min(max(int(changes.max()), 1), max(most, 1)) + 1)
    for m in counts:
        allowed = costs - paid if most is None else np.where(changes <= m, costs - paid, np.inf)
        yield replace(
            part,
            problem=replace(
                problem,
                problem=base,
                groups=[*problem.groups, Group(columns, options)],
                current=np.append(problem.current, [[home]], axis=1),
                option_costs=[*problem.option_costs, allowed[None]],
                max_changes=None if most is None else most - (m - 1),
            ),
            paid=part.paid + paid,
        )


def _are_merged(
    problem: DiscreteProblem, numbers: Numbers, columns: NDArray[np.int64], links: list[Link]
) -> bool:
    """Whether two continuous numbers move together, from where they are."""
    ball = problem.problem.robust_to
    if len(columns) != 2 or len(links) != 1 or links[0].lower != links[0].upper:
        return False
    if ball.radius > 0.0 and ball.p not in (1.0, 2.0, math.inf):
        return False
    inside = (numbers.lower <= numbers.start) & (numbers.start <= numbers.upper)
    is_free = numbers.step[columns].max() == 0.0 and inside[columns].all()
    return bool(is_free and links[0].keeps(numbers.start[None])[0])


class _Way(NamedTuple):
    """What it costs to move two numbers together."""

    begin: float  # the t from which they move
    cost: float  # for t to change by 1
    fee: float  # for t to change at all


def _merged(part: Part, columns: NDArray[np.int64], link: Link) -> Iterator[Part]:
    """Make two numbers that move together one."""
    numbers = numbers_of(part.problem)
    slope = _slope(columns, link)
    way = _Way(0.0, float(numbers.cost[columns] @ np.abs(slope)), float(numbers.fee[columns].sum()))
    for form, interval in _forms(part, columns, numbers.start[columns], slope):
        most = part.problem.max_changes
        if most is None:
            yield _merged_within(part, columns, form, interval, way)
            continue
        # it counts once, and stands for two: either it stays, or the others change less often
        if interval[0] <= 0.0 <= interval[1]:
            yield _merged_within(part, columns, form, (0.0, 0.0), way)
        if most >= 2:
            fewer = replace(part, problem=replace(part.problem, max_changes=most - 1))
            yield _merged_within(fewer, columns, form, interval, way)


def along(part: Part, link: Link) -> Iterator[Part]:
    """Make two numbers one that keep to the upper end of a link, each on one side of its start.

    Steps and fees are left out: this is to find a good answer, and proves nothing.
    """
    ball, numbers, columns = (
        part.problem.problem.robust_to,
        numbers_of(part.problem),
        link.columns,
    )
    if ball.radius > 0.0 and ball.p not in (1.0, 2.0, math.inf):
        return
    a, b = columns.tolist()
    own, slope = numbers.start[columns], _slope(columns, link)
    start = np.array([(link.upper - link.coef[b] * own[1]) / link.coef[a], own[1]])

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
    step = problem_step(part.problem, columns)
    smooth = replace(part, problem=replace(part.problem, step=step), paid=part.paid + cost(begin))
    for form, interval in forms:
        yield _merged_within(smooth, columns, form, interval, _Way(begin, max(rate, least), 0.0))


def problem_step(problem: DiscreteProblem, columns: NDArray[np.int64]) -> Floats:
    """Return the steps of a problem with none in some columns; as writable as they were."""
    step = problem.step.copy()
    step[:, columns] = 0.0
    step.flags.writeable = problem.step.flags.writeable
    return step


def _slope(columns: NDArray[np.int64], link: Link) -> Floats:
    """Return how fast the first number moves with the second, and 1."""
    a, b = columns.tolist()
    return np.array([-link.coef[b] / link.coef[a], 1.0])


def _forms(
    part: Part, columns: NDArray[np.int64], start: Floats, slope: Floats
) -> Iterator[tuple[_Form, tuple[float, float]]]:
    """Yield the intervals of t in which the norm has one form, as far as the bounds allow."""
    numbers, base = numbers_of(part.problem), part.problem.problem
    lower, upper, ball = numbers.lower[columns], numbers.upper[columns], base.robust_to
    ends = np.sort(np.stack([(lower - start) / slope, (upper - start) / slope]), axis=0)
    low, high = float(ends[0].max()), float(ends[1].min())
    if low > high:
        return
    felt = ball.feature_scale(base.n_features)[columns] if ball.radius > 0.0 else np.zeros(2)
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
    part: Part, columns: NDArray[np.int64], form: _Form, interval: tuple[float, float], way: _Way
) -> Part:
    """Put y in place of the first number, and what else the norm needs in place of the second."""
    problem, base = part.problem, part.problem.problem
    numbers, ball = numbers_of(problem), base.robust_to
    y, rest = columns.tolist()
    ends = sorted(form.at_start + form.scale * t for t in interval)
    coef = base.coef[0, columns] - ball.radius * form.folded
    speed = float(coef @ form.slope) / form.scale
    intercept = base.intercept + float(coef @ form.start) - speed * form.at_start
    scale = ball.feature_scale(base.n_features).copy()
    scale[[y, rest]] = form.felt, 1.0

    def put(values: Floats, first: float, second: float) -> Floats:
        result = values.copy()
        result[0, [y, rest]] = first, second
        return frozen(result)

    new = replace(
        base,
        X=put(base.X, form.at_start + form.scale * way.begin, form.rest),
        coef=put(base.coef, speed, 0.0),
        intercept=frozen(np.asarray(intercept)),
        feature_costs=put(base.feature_costs, way.cost / abs(form.scale), 1.0),
        lower=put(base.lower, -math.inf, form.rest),
        upper=put(base.upper, math.inf, form.rest),
        robust_to=replace(ball, scale=scale),
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
    fees = put(problem.fees, way.fee, 0.0)
    whole = replace(problem, problem=new, fixed_costs=fees)
    merged = replace(part, problem=whole, merges=(*part.merges, merge))
    lower, upper = new.lower[0].copy(), new.upper[0].copy()
    lower[y], upper[y] = ends
    return within(merged, lower, upper)


# ------------------------------------------------------------------ prices of links


def folded(part: Part, link: Link) -> int | None:
    """Return a column of the link whose cost is no straight line yet; None: there is none."""
    numbers = numbers_of(part.problem)
    for j in link.columns.tolist():
        low, start, high = numbers.lower[j], numbers.start[j], numbers.upper[j]
        if low < start < high or (numbers.fee[j] > 0.0 and low <= start <= high and low < high):
            return int(j)
    return None


def unfolded(part: Part, links: list[Link], j: int) -> list[Part]:
    """Return a part with number j as it is, with it going down, and with it going up."""
    numbers, parts = numbers_of(part.problem), list[Part]()
    start = numbers.start[j]
    for low, high in ((start, start), (numbers.lower[j], start), (start, numbers.upper[j])):
        if low == high and parts:
            continue
        new = narrowed(part, links, j, low, high)
        if new is None:
            continue
        if low < high:  # who goes pays for it
            fees = new.problem.fees.copy()
            fee, fees[0, j] = float(fees[0, j]), 0.0
            new = replace(new, problem=replace(new.problem, fixed_costs=fees), paid=new.paid + fee)
        parts.append(new)
    return parts


def most_tilt(part: Part, link: Link) -> float:
    """Return the largest price of a link that `tilted` can set."""
    numbers, columns = numbers_of(part.problem), link.columns
    sides = _sides(numbers, columns)
    rates = sides * link.coef[columns]
    far = np.where(sides > 0.0, numbers.upper[columns], numbers.lower[columns])
    # whoever is paid for moving starts at the far end: moving must not be counted, nor cost a fee,
    # and on a lattice both ends must be on it
    ends = np.stack([numbers.start[columns], far])
    may_turn = np.isfinite(far) & (numbers.fee[columns] == 0.0)
    may_turn &= (on_lattice(numbers, columns, ends) & np.isfinite(ends)).all(axis=0)
    falls = (rates < 0.0) & ~(may_turn & (part.problem.max_changes is None))
    steepness = numbers.cost[columns] / np.abs(link.coef[columns])
    # a price far above the costs would hide them in its rounding
    return min(float(steepness[falls].min(initial=math.inf)), _MOST_STEEP * float(steepness.max()))


def tilted(part: Part, link: Link, price: float) -> Part:
    """Let every unit by which a link is broken cost so much: what keeps it gets no dearer.

    Numbers of the link are on one side of their start. One that is paid for moving starts at its
    far end.
    """
    numbers, columns, base = numbers_of(part.problem), link.columns, part.problem.problem
    costs, points = base.feature_costs.copy(), base.X.copy()
    paid = price * (float(link.coef[columns] @ numbers.start[columns]) - link.upper)
    for j, side in zip(columns.tolist(), _sides(numbers, columns).tolist(), strict=True):
        cost = numbers.cost[j] + price * side * link.coef[j]
        least = 1e-12 * numbers.cost[j]
        costs[0, j] = abs(cost)
        if cost <= -least:  # by more than rounding: only whoever may turn gets there
            points[0, j] = numbers.upper[j] if side > 0.0 else numbers.lower[j]
            paid += cost * abs(points[0, j] - numbers.start[j])
        elif cost < least:  # moving must cost something; what that may be too much comes off
            width = numbers.upper[j] - numbers.lower[j]
            paid -= (least - cost) * width if math.isfinite(width) else math.inf
            costs[0, j] = least
    turned = replace(base, X=frozen(points), feature_costs=frozen(costs))
    return replace(part, problem=replace(part.problem, problem=turned), paid=part.paid + paid)


def _sides(numbers: Numbers, columns: NDArray[np.int64]) -> Floats:
    """Return 1 for a number that may go up, -1 for one that may go down, 0 for one that stays."""
    above = numbers.upper[columns] > numbers.start[columns]
    below = numbers.lower[columns] < numbers.start[columns]
    return above.astype(np.float64) - below.astype(np.float64)


# ------------------------------------------------------------------ answers


def true_cost(problem: DiscreteProblem, x: Floats, options: NDArray[np.int64]) -> float:
    """Return the cost of a point of the only row."""
    return float(costs_of(problem, x[None], options[None])[0])


def may_be(problem: DiscreteProblem, x: Floats, options: NDArray[np.int64]) -> bool:
    """Whether the only row may become x: its bounds, lattices, and how many features change."""
    numbers, columns = numbers_of(problem), problem.number_columns
    value, moved = x[columns], x[columns] != numbers.start[columns]
    inside = (numbers.lower[columns] <= value) & (value <= numbers.upper[columns])
    is_allowed = inside & on_lattice(numbers, columns, value)
    most = math.inf if problem.max_changes is None else problem.max_changes
    changes = int(moved.sum() + (options != problem.current[0]).sum())
    return bool((is_allowed | ~moved).all()) and changes <= most
