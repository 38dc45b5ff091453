"""What is printed is what is recommended: raw values that people can type, judged as they are.

The solver's answer is a point in encoded columns. Here it becomes rows of the table: numbers with a
step lie on it, all others are rounded, away from the boundary, to the fewest decimals that cost
nothing to speak of. The pipeline itself encodes these rows, and cost, proof and guarantee are
worked out anew from what it gives. So whoever types what was printed gets what was promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled, NumberFeature
from holdfast.actions.check import check_changes
from holdfast.actions.decode import decode_people
from holdfast.actions.ranges import multiples
from holdfast.discrete import DiscreteProblem
from holdfast.discrete.answer import costs_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding import Encoded, Number
from holdfast.models.encoding.unwrap import AGREEMENT
from holdfast.recommend.features import changed_features, take_people
from holdfast.recommend.ways import Ways, join_ways
from holdfast.result.status import Status, are_proven, proof_room

if TYPE_CHECKING:
    import pandas as pd

# Decimals that are tried, counted from about a standard deviation down to the last bit.
_DIGITS = 18
_AT_ONCE = 512  # rows, as many numbers of digits as that makes; one where there are more people
# How much more than the guarantee is asked for where rounding takes away what was solved for.
_MARGINS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5)
_MANY = 2.0**50  # of so many units there is nothing to round

# Finds ways anew, with a margin of score to spare; who has none is left out.
Resolve = Callable[[Ways, float], Ways]


class Aim(NamedTuple):
    """What must hold: a worst-case score, or with a cost weight the least price."""

    target: float | None
    weight: float | None
    cutoff: float  # from which score on today's model accepts


class Worth(NamedTuple):
    """What points are worth: in the worst case, under today's model, and how large the terms are.

    Rounding is relative to these.
    """

    worst: Floats
    score: Floats
    size: Floats


# Says what points, one for each row of a problem, are worth.
Value = Callable[[DiscreteProblem, Floats], Worth]


def linear_worth(problem: DiscreteProblem, points: Floats) -> Worth:
    """Say what points are worth by the linear scores of a problem, exactly."""
    base = problem.problem
    worst, score = base.robust_to.worst_score(points, base.coef, base.intercept), base.score(points)
    size = np.abs(points * base.coef).sum(axis=1) + np.abs(base.intercept)
    return Worth(worst, score, size + np.abs(score - worst))


class Printed(NamedTuple):
    """Ways as they are printed, and the row of the table that each of them becomes."""

    ways: Ways
    after: pd.DataFrame


class _Verdict(NamedTuple):
    encoded: Encoded
    recourse: Floats
    cost: Floats
    price: Floats
    worst_score: Floats
    score: Floats
    holds: NDArray[np.bool_]
    holds_clearly: NDArray[np.bool_]  # in whatever order a model forms its sums


def settle(
    compiled: Compiled,
    options: list[Ways],
    aim: Aim,
    resolve: Resolve,
    value: Value = linear_worth,
) -> Iterator[Printed]:
    """Yield the ways of some people as they are printed, and the rows of the table they become.

    Parameters
    ----------
    compiled : Compiled
    options : list of Ways
        In each of them a person has one way at the most.
    aim : Aim
    resolve : function
        Finds ways anew, with the same features held still and a margin of score.
    value : function
        Says what points are worth; by default what the linear scores say.

    Yields
    ------
    Printed
        One for each of the options: by rising position, without people whose guarantee no printed
        row can give, should there be any.
    """
    judge = _Judge(compiled, aim, value)
    drafts = [_Draft.of(judge, ways) for ways in options]
    trials = [draft.trial() for draft in drafts]
    # to ask the pipeline about a few rows takes as long as to ask about one: all options at once
    encoded = compiled.encoding.encode_tables([trial.after for trial in trials])
    for draft, trial, rows in zip(drafts, trials, encoded, strict=True):
        yield _settled(judge, draft.ways, _print(judge, draft, trial, rows), resolve)


def _settled(judge: _Judge, ways: Ways, done: list[Printed], resolve: Resolve) -> Printed:
    """Find ways anew, with more and more room to spare, where none could be printed as it was."""
    left = _without(ways, done)
    for margin in _MARGINS:
        if not len(left):
            break
        again = resolve(left, margin)
        # what was proven before still is: nothing is cheaper than its bound
        known = dict(zip(left.who.tolist(), left.lower_bound.tolist(), strict=True))
        bound = np.array([known[i] for i in again.who.tolist()], dtype=np.float64)
        draft = _Draft.of(judge, replace(again, lower_bound=bound))
        trial = draft.trial()
        more = _print(judge, draft, trial, judge.encode(trial.after))
        done += more
        left = _without(left.take(np.isin(left.who, again.who)), more)
    return join_printed(done)


def _without(ways: Ways, done: list[Printed]) -> Ways:
    """Return the ways of those who have none that is done."""
    those = [printed.ways.who for printed in done]
    return ways.take(~np.isin(ways.who, np.concatenate(those))) if those else ways


def join_printed(parts: list[Printed]) -> Printed:
    """Put what was printed in batches together, by rising position."""
    ways = join_ways([part.ways for part in parts])
    after = stack([part.after for part in parts])
    if len(parts) > 1:
        order = np.argsort(ways.who, kind="stable")
        ways, after = ways.take(order), after.iloc[order]
    return Printed(ways, after)


def stack(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Put tables of the same columns one below another; a category knows the levels of all."""
    import pandas as pd

    if len(tables) == 1:
        return tables[0]
    tables = [table for table in tables if len(table)] or tables[:1]
    for name in tables[0].columns:
        if not isinstance(tables[0][name].dtype, pd.CategoricalDtype):
            continue
        levels = list(dict.fromkeys(k for table in tables for k in table[name].cat.categories))
        tables = [
            table.assign(**{name: table[name].cat.set_categories(levels)}) for table in tables
        ]
    return pd.concat(tables)


class _Judge:
    """Works out what a printed row is worth."""

    def __init__(self, compiled: Compiled, aim: Aim, value: Value) -> None:
        self.compiled, self.aim, self.value = compiled, aim, value

    def encode(self, after: pd.DataFrame) -> Encoded:
        """Ask the pipeline about rows of the table."""
        return self.compiled.encoding.encode_tables([after])[0]

    def __call__(
        self, who: NDArray[np.int64], encoded: Encoded, levels: NDArray[np.int64]
    ) -> _Verdict:
        """Judge a row of the table for each of some people."""
        problem = take_people(self.compiled.problem, who)
        base = problem.problem
        recourse = base.X.copy()
        for name, raw in self.compiled.ranges.items():
            number = self.compiled.encoding[name]
            assert isinstance(number, Number)
            moved = encoded.reading.filled(number) != raw.value[who]
            recourse[moved, number.column] = encoded.points[moved, number.column]
        for g, group in enumerate(problem.groups):
            recourse[:, group.columns] = group.values_of(levels[:, g])
        cost = costs_of(problem, recourse, levels)
        worst, score, size = self.value(problem, recourse)
        price = cost
        holds = clearly = np.ones(len(cost), dtype=bool)
        if self.aim.weight is not None:
            price = base.loss.value(worst) + self.aim.weight * cost
        if self.aim.target is not None:
            room = 4.0 * EPS * (recourse.shape[1] + 4) * (size + abs(self.aim.target))
            own = self.compiled.encoding.model.score(recourse)  # a second opinion
            holds = (worst >= self.aim.target) & (own >= self.aim.target)
            clearly = worst - room >= self.aim.target
        return _Verdict(encoded, recourse, cost, price, worst, score, holds, clearly)

    def pipeline_agrees(
        self, after: pd.DataFrame, verdict: _Verdict, which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Ask the pipeline itself about rows as they are typed, in the table's own precision.

        Only where a hair could decide: all that is printed is compared with the model as well.
        """
        model = self.compiled.encoding.model
        agrees = np.ones(len(after), dtype=bool)
        if self.aim.target is None or model.origin is None:
            return agrees
        which = which & ~self._is_clear(after, verdict)
        if not which.any():
            return agrees
        loss, names = self.compiled.problem.problem.loss, self.compiled.encoding.names
        rows = after.loc[which, names]
        named = self.compiled.encoding.is_named
        said = model.origin.ask_whole(rows if named else rows.to_numpy())
        if said.probability is not None and loss.link is not None:
            agrees[which] = said.probability >= float(loss.probability(self.aim.target))
        elif said.score is not None:
            agrees[which] = said.score >= self.aim.target
        if said.accepted is not None and self.aim.target >= self.aim.cutoff:
            agrees[which] &= said.accepted
        return agrees

    def _is_clear(self, after: pd.DataFrame, verdict: _Verdict) -> NDArray[np.bool_]:
        """Say where a model that agrees with what was read out of it must also say yes."""
        aim, loss = self.aim, self.compiled.problem.problem.loss
        assert aim.target is not None
        joined = [name for joint in self.compiled.joints for name in joint.bundle.names]
        dtypes = dict(zip(after.columns, after.dtypes, strict=True))
        if not all(_is_exact(dtypes[name]) for name in [*self.compiled.ranges, *joined]):
            return np.zeros(len(after), dtype=bool)  # the model computes with other numbers
        near = AGREEMENT * (1.0 + self.compiled.encoding.model.size(verdict.recourse))
        clear = verdict.score - max(aim.target, aim.cutoff) > near
        if loss.link is not None:
            above = loss.probability(verdict.score) - loss.probability(aim.target)
            clear &= np.asarray(above > near)
        return np.asarray(clear)


def _is_exact(dtype: Any) -> bool:
    """Whether a column is read in double precision, as it stands."""
    return isinstance(dtype, np.dtype) and (dtype.kind in "biu" or dtype == np.float64)


class _Trial(NamedTuple):
    """Rows of the table that are tried, rounded or as they are."""

    ways: Ways
    after: pd.DataFrame
    rounded: bool


def _print(judge: _Judge, draft: _Draft, trial: _Trial, encoded: Encoded) -> list[Printed]:
    """Round to the fewest digits that leave the proof alone and the guarantee room to spare.

    Where there are none, nothing is rounded, and the guarantee must hold as it is. Who is well
    served by none of it is left out. What the draft tries first has been encoded.
    """
    done = list[Printed]()
    while True:
        found = _attempt(judge, trial, encoded)
        done.append(_first_ones(found) if trial.rounded else found)
        left = np.flatnonzero(~np.isin(draft.ways.who, done[-1].ways.who))
        if not trial.rounded or not left.size:
            return done
        draft = draft.tried_so_far(left)
        trial = draft.trial()
        encoded = judge.encode(trial.after)


def _first_ones(printed: Printed) -> Printed:
    """Keep of each person what comes first, that with the fewest digits; by rising position."""
    first = np.unique(printed.ways.who, return_index=True)[1]
    if np.array_equal(first, np.arange(len(printed.ways))):
        return printed
    return Printed(printed.ways.take(first), printed.after.iloc[first])


class _Moves(NamedTuple):
    """Numbers without a step that change, an entry for each of them and each person."""

    row: NDArray[np.int64]
    feature: NDArray[np.int64]  # its place among those of the draft
    start: Floats
    value: Floats
    lower: Floats
    upper: Floats

    def take(self, which: NDArray[Any]) -> _Moves:
        return _Moves(*(values[which] for values in self))


@dataclass(frozen=True, eq=False)
class _Draft:
    """Ways that are being rounded, each to its own number of digits.

    Attributes
    ----------
    ways : Ways
    after : DataFrame
        The row of the table that each of them becomes where nothing is rounded.
    digits : (m,) array of int
        How many are to be tried next; `_DIGITS`: none, it stays as it is.
    is_told : (m,) array of bool
        Whether the cost of the row is that of the way, up to rounding; a change too small to be
        seen is not made, and costs nothing.
    features : list of NumberFeature
        Those without a step that anybody changes.
    moves : _Moves
    aim : Aim
    blur : float
        How far rounding can take a cost that is worked out in raw units.
    """

    ways: Ways
    after: pd.DataFrame
    digits: NDArray[np.int64]
    is_told: NDArray[np.bool_]
    features: list[NumberFeature]
    moves: _Moves
    aim: Aim
    blur: float

    @classmethod
    def of(cls, judge: _Judge, ways: Ways) -> _Draft:
        compiled, who = judge.compiled, ways.who
        after = decode_people(compiled, who, ways.recourse, ways.levels)
        is_told, blur = np.ones(len(ways), dtype=bool), 0.0
        features: list[NumberFeature] = []
        moves = [_NO_MOVES]
        can_round = any(raw.step == 0.0 for raw in compiled.ranges.values())
        for k, (name, raw) in enumerate(compiled.ranges.items() if can_round else ()):
            values, start = _floats(after[name]), raw.value[who]
            moved = ~np.isnan(values) & (values != start)  # NaN where it stays missing
            is_told &= moved == ways.changed[:, k]
            feature, number = compiled.actions[name], compiled.encoding[name]
            assert isinstance(number, Number)
            sizes = [np.abs(some).max(initial=0.0) for some in (values[moved], start)]
            blur += feature.cost * (sum(sizes) + abs(number.shift / number.scale))
            row = np.flatnonzero(moved)
            if raw.step == 0.0 and row.size:
                place, own = np.full(row.size, len(features)), raw.take(who[row])
                moves.append(_Moves(row, place, own.value, values[row], own.lower, own.upper))
                features.append(feature)
        digits = np.full(len(ways), 0 if features else _DIGITS)
        blur *= 64.0 * EPS
        return cls(ways, after, digits, is_told, features, _joined_moves(moves), judge.aim, blur)

    @property
    def _count(self) -> int:
        """How many numbers of digits are tried at once."""
        return max(_AT_ONCE // max(len(self.ways), 1), 1)

    def trial(self) -> _Trial:
        """Return what is tried next: rounded rows; nothing is rounded where no digits are left."""
        self._skip_digits()
        some = self._tried(min(self._count, _DIGITS))
        if not len(some.ways):
            return _Trial(self.ways, self.after, rounded=False)
        return _Trial(some.ways, some._with_rounded(), rounded=True)

    def _tried(self, count: int) -> _Draft:
        """Return what is tried at once: a row for each of some numbers of digits, fewest first.

        Who stays as they are is left out.
        """
        chosen = [np.flatnonzero(self.digits < _DIGITS - more) for more in range(count)]
        digits = [self.digits[some] + more for more, some in enumerate(chosen)]
        return self._of(chosen, np.concatenate(digits))

    def tried_so_far(self, left: NDArray[np.int64]) -> _Draft:
        """Return what is left to be tried where what was tried did not do."""
        return self._of([left], np.minimum(self.digits[left] + self._count, _DIGITS))

    def _of(self, chosen: list[NDArray[np.int64]], digits: NDArray[np.int64]) -> _Draft:
        """Return the draft of some of the ways, and once more of some, with other digits."""
        which = np.concatenate(chosen)
        if len(which) == len(self.ways) and len(chosen) == 1:
            return replace(self, digits=digits)
        moves, begin = [_NO_MOVES], 0
        for some in chosen:
            place = np.full(len(self.ways), -1)
            place[some] = begin + np.arange(len(some))
            row = place[self.moves.row]
            moves.append(self.moves._replace(row=row).take(row >= 0))
            begin += len(some)
        return replace(
            self,
            ways=self.ways.take(which),
            after=self.after.iloc[which],
            digits=digits,
            is_told=self.is_told[which],
            moves=_joined_moves(moves),
        )

    def _skip_digits(self) -> None:
        """Leave out digits that cannot do: they cost too much, or have been tried as they are."""
        ways, aim, n = self.ways, self.aim, len(self.ways)
        fixed = np.bincount(self.moves.row, minlength=n) == 0
        self.digits[fixed & (self.digits > 0)] = _DIGITS
        if aim.weight is not None:
            return  # the price is not that of the change alone
        proven = are_proven(ways.status)
        for digits in range(_DIGITS):
            here = self.digits == digits
            if not here.any():
                continue
            moves = self.moves.take(here[self.moves.row])
            unit = np.array([feature.cost for feature in self.features])[moves.feature]
            further = np.abs(self._rounded(moves) - moves.start) - np.abs(moves.value - moves.start)
            price = ways.cost + np.bincount(moves.row, unit * further, minlength=n)
            room = _room(ways, price, proven, aim) + self.blur + 64.0 * EPS * price
            self.digits[here & self.is_told & (price - ways.lower_bound > room)] += 1

    def _with_rounded(self) -> pd.DataFrame:
        """Return the rows of the table, each rounded to its own digits."""
        after, moves, values = self.after.copy(), self.moves, self._rounded(self.moves)
        for k, feature in enumerate(self.features):
            column, own = _floats(after[feature.name]).copy(), moves.feature == k
            column[moves.row[own]] = values[own]
            after[feature.name] = column
        return after

    def _rounded(self, moves: _Moves) -> Floats:
        """Round what moved, away from where the person is where a guarantee must hold."""
        first = np.array([exponent_of(feature) for feature in self.features], dtype=np.int64)
        exponents = first[moves.feature] - self.digits[moves.row]
        outwards = np.sign(moves.value - moves.start) * (self.aim.target is not None)
        new = np.empty(len(moves.row))
        least = exponents.min(initial=0)
        for exponent in (np.flatnonzero(np.bincount(exponents - least)) + least).tolist():
            own = exponents == exponent
            new[own] = round_to(moves.value[own], exponent, outwards[own])
        return np.clip(new, moves.lower, moves.upper)


_NONE, _NO_FLOATS = np.empty(0, dtype=np.int64), np.empty(0)
_NO_MOVES = _Moves(_NONE, _NONE, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS, _NO_FLOATS)


def _joined_moves(parts: list[_Moves]) -> _Moves:
    return _Moves(*map(np.concatenate, zip(*parts, strict=True)))


def _attempt(judge: _Judge, trial: _Trial, encoded: Encoded) -> Printed:
    """Take those who are well served by the rows of the table that are tried."""
    compiled, aim = judge.compiled, judge.aim
    ways, after, rounded = trial
    verdict = judge(ways.who, encoded, ways.levels)
    bound = np.minimum(ways.lower_bound, verdict.price)  # a hair above the price is rounding
    gap = verdict.price - bound
    proven = are_proven(ways.status)
    room = _room(ways, verdict.price, proven, aim)
    good = verdict.holds_clearly & (gap <= room) if rounded else verdict.holds
    good = good & judge.pipeline_agrees(after, verdict, good)
    if compiled.actions.links:
        wrong = check_changes(compiled.actions, compiled.people_at(ways.who), after)
        good[list(wrong)] = False
    printed = replace(
        ways,
        changed=changed_features(compiled, ways.who, verdict.recourse, ways.levels),
        recourse=verdict.recourse,
        status=_statuses(ways.status, proven, gap <= room, verdict.score, aim),
        cost=verdict.cost,
        price=verdict.price,
        lower_bound=bound,
        gap=gap,
        worst_case_score=verdict.worst_score,
        score=verdict.score,
    )
    if not good.all():
        printed, after = printed.take(good), after[good]
    # all that is printed is compared with the model, as the pipeline has just read it
    loss = compiled.problem.problem.loss
    compiled.encoding.compare(verdict.encoded, printed.recourse, loss, good)
    return Printed(printed, after)


def exponent_of(feature: NumberFeature) -> int:
    """Return the power of ten, about what costs 1, from which digits are counted."""
    return math.floor(math.log10(1.0 / feature.cost))


def round_to(values: Floats, exponent: int, direction: Any = 0.0) -> Floats:
    """Round to multiples of a power of ten, in decimal numbers: to the nearest, up or down.

    Parameters
    ----------
    values : array
    exponent : int
    direction : number or array
        Where it is positive, the least multiple from the value on is taken; where it is
        negative, the largest up to it; where it is 0, the nearest.

    Examples
    --------
    >>> round_to(np.array([0.123456, 0.3]), -2), round_to(np.array([1234.5]), 2, 1.0)
    (array([0.12, 0.3 ]), array([1300.]))
    """
    unit = float(f"1e{exponent}")
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steps = np.round(values / unit)
    fits = np.isfinite(steps) & (np.abs(steps) < _MANY)
    steps = np.where(fits, steps, 0.0)
    nearest = multiples(steps, unit)
    steps += (np.asarray(direction) > 0.0) & (nearest < values)
    steps -= (np.asarray(direction) < 0.0) & (nearest > values)
    return np.where(fits, multiples(steps, unit), values)


def _room(ways: Ways, price: Floats, proven: NDArray[np.bool_], aim: Aim) -> Floats:
    """Return the largest gap that rounding may leave: what was proven must still be.

    A proof may leave `GAP_TOLERANCE`, relative to the price and something on top. Where it does
    not use it up, rounding may, without what is on top.
    """
    gaps = ways.gap + 8.0 * EPS * (1.0 + price)
    more = proof_room(price, aim.weight is None)
    return np.where(proven, np.maximum(gaps, more), gaps + more)


def _statuses(
    before: NDArray[np.object_],
    proven: NDArray[np.bool_],
    close: NDArray[np.bool_],
    score: Floats,
    aim: Aim,
) -> NDArray[np.object_]:
    """What the printed rows are: rounding may leave the optimum, and a price promises no yes."""
    status = before.copy()
    status[proven & (before == Status.STILL_REFUSED)] = Status.OPTIMAL
    status[proven & (score < aim.cutoff)] = Status.STILL_REFUSED
    status[proven & ~close] = Status.GAP_OPEN
    return status


def _floats(column: pd.Series[Any]) -> Floats:
    return np.asarray(column.to_numpy(dtype=np.float64))
