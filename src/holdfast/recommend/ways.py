"""More than one way: the best recourses that differ in the features that they change.

A way that changes all that a cheaper one changes, and more, is no other way; so each way after the
first must leave alone at least one feature of every way before it. That is a search over sets of
features to be held still, each with its own exact answer: the cheapest of all sets that are open
is the next way, and holding still one of its features at a time opens new sets.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled
from holdfast.discrete import DiscreteProblem
from holdfast.discrete.answer import chosen_options
from holdfast.machinery.numbers import Floats
from holdfast.recommend.features import changed, hold_still, take_row
from holdfast.result.result import RecourseResult
from holdfast.result.status import Status

Solve = Callable[[DiscreteProblem], RecourseResult]


class Way(NamedTuple):
    """One recourse of one person, with its certificate.

    Attributes
    ----------
    features : frozenset of str
        What changes.
    held : frozenset of str
        What had to stay as it is, so that this differs from the ways before it. Nothing else is
        cheaper among all ways that leave these alone.
    recourse, options : arrays
        The encoded point, as the pipeline makes it of the recommended row; levels of categories.
    status : Status
    cost, price, lower_bound, gap, worst_case_score : float
        As in `holdfast.RecourseResult`, all of that point.
    """

    features: frozenset[str]
    held: frozenset[str]
    recourse: Floats
    options: NDArray[np.int64]
    status: Status
    cost: float
    price: float
    lower_bound: float
    gap: float
    worst_case_score: float


def way_of(
    answer: RecourseResult, k: int, compiled: Compiled, i: int, held: frozenset[str] = frozenset()
) -> Way:
    """Read row k of an answer, which is that of person i with some features held still."""
    return Way(
        changed(compiled, i, answer.recourse_array[k], chosen_options(answer)[k]),
        held,
        answer.recourse_array[k],
        chosen_options(answer)[k],
        answer.status[k],
        float(answer.cost[k]),
        float(answer.price[k]),
        float(answer.lower_bound[k]),
        float(answer.gap[k]),
        float(answer.worst_case_score[k]),
    )


def other_ways(compiled: Compiled, i: int, first: Way, count: int, solve: Solve) -> list[Way]:
    """Return the best ways of person i, `first` among them, at most `count`, by rising price."""
    alone = take_row(compiled.problem, i)
    ways: list[Way] = []
    seen: set[frozenset[str]] = {frozenset()}
    tie = itertools.count()  # ways do not compare
    open_sets = [(first.price, next(tie), frozenset[str](), first)]
    while open_sets and len(ways) < count:
        _, _, held, way = heapq.heappop(open_sets)
        taken = [other.features for other in ways if other.features <= way.features]
        if not taken:
            ways.append(way)
        # what must be left alone, one feature at a time: of this way, or of one that it repeats
        for feature in taken[0] if taken else way.features:
            following = held | {feature}
            if following in seen:
                continue
            seen.add(following)
            answer = solve(hold_still(alone, compiled, following))
            if np.isfinite(answer.recourse_array[0]).all():
                found = way_of(answer, 0, compiled, i, following)
                heapq.heappush(open_sets, (found.price, next(tie), following, found))
    return ways
