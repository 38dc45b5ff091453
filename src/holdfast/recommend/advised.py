"""From people to what they should change, a batch at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import NumberFeature, Posed
from holdfast.actions.cells import people_ends
from holdfast.actions.check import check_changes
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Curve, Number
from holdfast.models.encoding.features import RawFeature
from holdfast.models.encoding.reading import read_numbers
from holdfast.recommend.features import hold_still, take_people
from holdfast.recommend.packed import PackedPoints
from holdfast.recommend.printed import settle, stack
from holdfast.recommend.question import Question
from holdfast.recommend.ways import Printed, Ways, join_ways, other_ways
from holdfast.result.columns import PROVEN
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

# People at a time: what is needed to solve them takes more memory than what is told them.
BATCH = 2048
_WIDE = 8  # times as many where nobody has levels, nor is told more than one way
_MOST_NUMBERS = 500_000  # encoded at a time, where that makes more people than a batch
_MOST_COSTS = 4e6  # of values of bent numbers, kept at a time
_FEW = 32  # where each person has thousands of combinations to be kept


class KeptWays(NamedTuple):
    """Ways as they are kept: with the row of the table, and the encoded point, of each.

    The ways by themselves have no points and levels any more.
    """

    ways: Ways
    after: pd.DataFrame
    points: PackedPoints


@dataclass(frozen=True, eq=False)
class Advised:
    """What became of some people.

    Attributes
    ----------
    people : DataFrame
        Those who can be used, as they are.
    positions : (n,) array of int
        Where they stand among the applicants, from 0.
    refused : list of (int, str)
        The positions of all others, and why they cannot be used.
    names : list of str
        The features that may change, as `Ways` count them.
    status : (n,) array of Status
    cost, price, lower_bound, gap : (n,) arrays
        What is known of those who have no way: infinite where none exists, NaN where one was found
        that cannot be told. All others have these in their ways; nobody reads them here.
    score : (n,) array
        What today's model gives them as they are.
    approved : (n,) array of bool
        Whether it approves them so.
    reachable_validity, reachable_radius : (n,) arrays
        As in `holdfast.RecourseResult`.
    options : list of KeptWays
        Their first ways, their second ones, and so on; positions are those among `people`.
    """

    people: pd.DataFrame
    positions: NDArray[np.int64]
    refused: list[tuple[int, str]]
    names: list[str]
    status: NDArray[np.object_]
    cost: Floats
    price: Floats
    lower_bound: Floats
    gap: Floats
    score: Floats
    approved: NDArray[np.bool_]
    reachable_validity: Floats
    reachable_radius: Floats
    options: list[KeptWays]


# Finds out what a batch of people, who miss the same numbers, should change, in so many ways.
SolveBatch = Callable[[Question, "pd.DataFrame", int], Advised]


def find_advice(
    question: Question,
    people: pd.DataFrame,
    n_options: int,
    solve: SolveBatch | None = None,
    most: int = _WIDE * BATCH,
) -> Advised:
    """Find out what everybody should change, at most so many people at a time.

    They are solved exactly, unless it is said by what else.
    """
    batches = _Batches(question, n_options, solve or _solve_batch, most)
    patterns = question.given_numbers(people)
    kinds = list(dict.fromkeys(patterns))
    if len(kinds) < 2:
        return batches.find(people)
    # what some people can be asked to give has columns that move alone for all others
    found, usable = [], 0
    places = [np.flatnonzero([pattern == kind for pattern in patterns]) for kind in kinds]
    for where in places:
        advised = batches.find(people.iloc[where])
        found.append(_moved(advised, where, usable))
        usable += len(advised.positions)
    return _sorted(_joined(found))


class _Batches(NamedTuple):
    """How people are taken, a batch at a time."""

    question: Question
    n_options: int
    solve: SolveBatch
    most: int

    def find(self, people: pd.DataFrame) -> Advised:
        """Find out what people should change who miss the same numbers."""
        batches: list[Advised] = []
        usable, size = 0, min(batch_size(self.question, people, self.n_options), self.most)
        for begin in range(0, max(len(people), 1), size):
            some = people if size >= len(people) else people.iloc[begin : begin + size]
            batch = self.solve(self.question, some, self.n_options)
            batches.append(_moved(batch, np.arange(begin, begin + len(some)), usable))
            usable += len(batch.positions)
        return batches[0] if len(batches) == 1 else _joined(batches)


def batch_size(question: Question, people: pd.DataFrame, n_options: int) -> int:
    """Return how many people at a time: every value of a bent number has a cost for each.

    Where a number may take any value, the values that are tried are the person's own matter.
    Where everything is a plain number, there are no costs of levels to be kept, and most of the
    time of small batches goes into tables.
    """
    size = float(_FEW if question.actions.derived else BATCH)
    features = question.encoding.features.items()
    if n_options == 1 and all(_is_plain(each, question.actions[name]) for name, each in features):
        many = min(_WIDE * BATCH, _MOST_NUMBERS // question.encoding.n_columns)
        return max(BATCH, many)
    for name, raw_feature in features:
        feature = question.actions[name]
        if not isinstance(feature, NumberFeature) or feature.stays:
            continue
        can_be_given = feature.provide_cost is not None
        if can_be_given and isinstance(raw_feature, Number) and raw_feature.indicators:
            raw_feature = raw_feature.as_curve()
        if not isinstance(raw_feature, Curve) or raw_feature.is_flat or name not in people:
            continue
        if feature.grid == 0.0:
            return 1
        low, high = people_ends(feature, raw_feature, read_numbers(people[name]))
        some = (low <= high) & np.isfinite(high - low)
        if some.any():
            own = (high - low)[some].max() / feature.grid + 1.0
            union = (high[some].max() - low[some].min()) / feature.grid + 1.0
            size = min(size, max(_MOST_COSTS / union, np.sqrt(_MOST_COSTS / own)))
    return int(max(size, 1.0))


def _is_plain(raw_feature: RawFeature, feature: Any) -> bool:
    """Whether a feature is a number for everybody: for the model, and for people."""
    is_number = isinstance(raw_feature, Number) and not raw_feature.indicators
    return is_number and isinstance(feature, NumberFeature)


def _solve_batch(question: Question, people: pd.DataFrame, n_options: int) -> Advised:
    posed = question.pose_compared(people)
    base = posed.problem.base
    answer = question.solve_relaxed(posed.problem, posed.relaxed, posed.links)
    everybody = np.arange(base.n_rows)
    nothing = np.zeros((base.n_rows, len(posed.names)), dtype=bool)
    first, _ = question.read(answer, posed, everybody, nothing)
    options = [first]
    if n_options > 1:
        options = other_ways(first, n_options, partial(_solve_held, question, posed))
    printed = _printed(question, posed, options)
    status = answer.status.copy()
    status[first.who] = Status.NOT_FOUND  # found, but no row of the table has it, unless
    status[printed[0].ways.who] = printed[0].ways.status
    told = {name: getattr(answer, name).copy() for name in PROVEN}
    lost = status == Status.NOT_FOUND
    for values in told.values():
        values[lost] = np.nan
    score = base.score(base.X)
    return Advised(
        people=posed.people,
        positions=posed.positions,
        refused=posed.refused,
        names=question.names,
        status=status,
        **told,
        score=score,
        approved=question.approves(posed, score),
        reachable_validity=answer.reachable_validity,
        reachable_radius=answer.reachable_radius,
        options=[keep_told(option, posed.names, question.names) for option in printed],
    )


def keep_told(printed: Printed, names: list[str], all_names: list[str]) -> KeptWays:
    """Keep what is told people, by the features of everybody."""
    ways, after = printed
    place = {name: k for k, name in enumerate(names)}

    def spread(values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        wide = np.zeros((len(values), len(all_names)), dtype=bool)
        for k, name in enumerate(all_names):
            if name in place:
                wide[:, k] = values[:, place[name]]
        return wide

    kept = replace(
        ways,
        held=spread(ways.held),
        changed=spread(ways.changed),
        recourse=np.empty((len(ways), 0)),  # no views, which would keep what they are of
        levels=np.empty((len(ways), 0), dtype=np.int64),
    )
    return KeptWays(kept, after, PackedPoints.of(ways.recourse))


def _solve_held(
    question: Question,
    posed: Posed,
    who: NDArray[np.int64],
    held: NDArray[np.bool_],
    margin: float = 0.0,
) -> tuple[Ways, NDArray[np.int64]]:
    """Solve people with features held still, and perhaps with a margin of score to spare."""
    problem, relaxed = (
        None if each is None else hold_still(take_people(each, who), posed, who, held)
        for each in (posed.problem, posed.relaxed)
    )
    assert problem is not None
    if margin:
        relaxed = None  # what has been proven without it still is
        intercept = problem.base.intercept
        intercept = intercept - margin * (1.0 + np.abs(intercept))
        intercept.flags.writeable = False
        problem = replace(problem, base=replace(problem.base, intercept=intercept))
    answer = question.solve_relaxed(problem, relaxed, posed.links.take(who))
    return question.read(answer, posed, who, held)


def _printed(question: Question, posed: Posed, options: list[Ways]) -> list[Printed]:
    """Settle the ways, option by option, as they are printed, and check them.

    Who cannot be told one has no further ones either.
    """

    def resolve(ways: Ways, margin: float) -> Ways:
        return _solve_held(question, posed, ways.who, ways.held, margin)[0]

    printed: list[Printed] = []
    at_once = max(BATCH // max(len(options[0]), 1), 1)  # no more rows than of a batch
    for begin in range(0, len(options), at_once):
        some = options[begin : begin + at_once]
        if printed:
            some = [ways.take(np.isin(ways.who, printed[-1].ways.who)) for ways in some]
        for found in settle(posed, some, question.goal, resolve):
            if printed and not (told := np.isin(found.ways.who, printed[-1].ways.who)).all():
                found = found.take(told)
            printed.append(found)
            check_printed(posed, found)
    return printed


def check_printed(posed: Posed, printed: Printed) -> None:
    """Check every recommendation once more, in raw units: a violation is a bug, and raises."""
    ways, after = printed
    wrong = check_changes(posed.actions, posed.people_at(ways.who), after)
    for k, said in wrong.items():
        label = posed.people.index[ways.who[k]]
        raise RuntimeError(f"row {label}: {'; '.join(said)}. This is a bug; please report it")


def _moved(batch: Advised, places: NDArray[np.int64], people: int) -> Advised:
    """Count the positions of a batch among all applicants, and among all people."""
    return replace(
        batch,
        positions=places[batch.positions],
        refused=[(int(places[row]), why) for row, why in batch.refused],
        options=[
            told._replace(ways=replace(told.ways, who=told.ways.who + people))
            for told in batch.options
        ],
    )


def _sorted(advised: Advised) -> Advised:
    """Put people into the order in which they were given."""
    order = np.argsort(advised.positions, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    options = []
    for ways, after, points in advised.options:
        ways = replace(ways, who=back[ways.who])
        again = np.argsort(ways.who, kind="stable")
        options.append(KeptWays(ways.take(again), after.iloc[again], points.take(again)))
    arrays = {
        field.name: getattr(advised, field.name)[order]
        for field in fields(Advised)
        if isinstance(getattr(advised, field.name), np.ndarray)
    }
    people = advised.people.iloc[order]
    return replace(
        advised, people=people, refused=sorted(advised.refused), options=options, **arrays
    )


def _joined(batches: list[Advised]) -> Advised:
    """Put batches together. The list is emptied, so that nothing is held twice for long."""
    held: dict[str, list[Any]] = {
        field.name: [getattr(batch, field.name) for batch in batches] for field in fields(Advised)
    }
    batches.clear()
    options = []
    while any(held["options"]):
        some = [option.pop(0) for option in held["options"] if option]
        ways, after, points = (list(each) for each in zip(*some, strict=True))
        some.clear()
        options.append(KeptWays(join_ways(ways), stack(after), PackedPoints.joined(points)))
    arrays = [name for name, values in held.items() if isinstance(values[0], np.ndarray)]
    return Advised(
        people=stack(held.pop("people")),
        refused=[one for refused in held.pop("refused") for one in refused],
        names=held.pop("names")[0],
        options=options,
        **{name: np.concatenate(held.pop(name)) for name in arrays},
    )
