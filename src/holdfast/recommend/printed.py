"""What is printed is what is recommended: raw values that people can type, judged as they are.

The solver's answer is a point in encoded columns. Here it becomes rows of the table: numbers with a
step lie on it, all others are rounded to the fewest decimals that cost nothing to speak of. The
pipeline itself encodes these rows, and cost, proof and guarantee are worked out anew from what it
gives. So whoever types what was printed gets what was promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Compiled, NumberFeature, check, decode
from holdfast.discrete.answer import costs_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding import Number
from holdfast.recommend.features import changed
from holdfast.recommend.ways import Way
from holdfast.result.status import GAP_TOLERANCE, Status

if TYPE_CHECKING:
    import pandas as pd

# Decimals that are tried, counted from about a standard deviation down to the last bit.
_DIGITS = 18
# How much more than the guarantee is asked for where rounding takes away what was solved for.
_MARGINS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5)
_EXACT = Context(prec=800)  # more than any float has

Resolve = Callable[[int, frozenset[str], float], "Way | None"]


class Aim(NamedTuple):
    """What must hold: a worst-case score, or with a cost weight the least price."""

    target: float | None
    weight: float | None
    cutoff: float  # from which score on today's model accepts


class _Verdict(NamedTuple):
    recourse: Floats
    cost: Floats
    price: Floats
    score: Floats
    today: Floats
    holds: NDArray[np.bool_]
    holds_clearly: NDArray[np.bool_]  # in whatever order a model forms its sums


def settle(
    compiled: Compiled, ways: dict[int, Way], aim: Aim, resolve: Resolve
) -> tuple[dict[int, Way], pd.DataFrame]:
    """Return the ways of some people as they are printed, and the rows of the table they become.

    Parameters
    ----------
    compiled : Compiled
    ways : dict
        The way of each person, by position among ``compiled.people``.
    aim : Aim
    resolve : function
        Finds the way of a person anew, with some features held still and a margin of score.

    Returns
    -------
    ways : dict
        Without people whose guarantee no printed row can give, should there be any.
    after : DataFrame
        The rows of the people in `ways`, in the order of their positions.
    """
    judge = _Judge(compiled, aim)
    done = _Rounding(judge, ways).best()
    for i in [i for i in ways if i not in done.ways]:
        for margin in _MARGINS:
            again = resolve(i, ways[i].held, margin)
            if again is None:
                break
            # what was proven before still is: nothing is cheaper than its bound
            done.take(_Rounding(judge, {i: again._replace(lower_bound=ways[i].lower_bound)}).best())
            if i in done.ways:
                break
    return done.ways, done.table(compiled)


class _Done(NamedTuple):
    """The ways that are settled, and their rows of the table, in batches."""

    ways: dict[int, Way]
    batches: list[pd.DataFrame]  # with positions for labels

    def take(self, more: _Done) -> None:
        self.ways.update(more.ways)
        self.batches.extend(more.batches)

    def table(self, compiled: Compiled) -> pd.DataFrame:
        import pandas as pd

        if not self.batches:
            return compiled.people.iloc[:0].copy()
        table = pd.concat(self.batches).sort_index()
        table.index = compiled.people.index[table.index]
        return table


class _Judge:
    """Works out what a printed row is worth."""

    def __init__(self, compiled: Compiled, aim: Aim) -> None:
        self.compiled, self.aim = compiled, aim

    def __call__(self, rows: NDArray[np.int64], after: pd.DataFrame, options: Any) -> _Verdict:
        """Judge one row of the table for each of some people; `options` are those of all."""
        problem = self.compiled.problem
        base = problem.problem
        encoded = self.compiled.encoding.encode(after)
        recourse = base.X.copy()
        for name in self.compiled.ranges:
            number = self.compiled.encoding[name]
            assert isinstance(number, Number)
            moved = _floats(after[name]) != self.compiled.ranges[name].value[rows]
            recourse[rows[moved], number.column] = encoded[moved, number.column]
        for g, group in enumerate(problem.groups):
            recourse[np.ix_(rows, group.columns)] = group.options[options[rows, g]]
        cost = costs_of(problem, recourse, options)
        score = base.robust_to.worst_score(recourse, base.coef, base.intercept)
        today = base.score(recourse)
        price = cost
        holds = clearly = np.ones(len(cost), dtype=bool)
        if self.aim.weight is not None:
            price = base.loss.value(score) + self.aim.weight * cost
        if self.aim.target is not None:
            sizes = np.abs(recourse * base.coef).sum(axis=1) + np.abs(base.intercept)
            sizes = sizes + np.abs(today - score) + abs(self.aim.target)
            room = 4.0 * EPS * (recourse.shape[1] + 4) * sizes
            own = self.compiled.encoding.model.score(recourse)  # a second opinion
            holds = (score >= self.aim.target) & (own >= self.aim.target)
            clearly = score - room >= self.aim.target
        return _Verdict(
            recourse[rows],
            cost[rows],
            price[rows],
            score[rows],
            today[rows],
            holds[rows],
            clearly[rows],
        )

    def pipeline_agrees(self, after: pd.DataFrame, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Ask the pipeline itself about rows as they are typed, in the table's own precision."""
        model = self.compiled.encoding.model
        agrees = np.ones(len(after), dtype=bool)
        if self.aim.target is None or model.origin is None or not which.any():
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


class _Rounding:
    """The rows of the table as the solver has them, and with fewer decimals."""

    def __init__(self, judge: _Judge, ways: dict[int, Way]) -> None:
        compiled = judge.compiled
        base = compiled.problem
        points, self.options = base.problem.X.copy(), base.current.copy()
        for i, way in ways.items():
            points[i], self.options[i] = way.recourse, way.options
        self.judge, self.ways = judge, ways
        self.rows = np.array(sorted(ways), dtype=np.int64)
        self.after = decode(compiled, points, self.options, self.rows)
        self.columns = {}
        for name, raw in compiled.ranges.items():
            moved = _floats(self.after[name]) != raw.value[self.rows]
            if raw.step == 0.0 and moved.any():
                self.columns[name] = moved

    def best(self) -> _Done:
        """Round to the fewest digits that leave the proof alone and the guarantee room to spare.

        Where there are none, nothing is rounded, and the guarantee must hold as it is.
        """
        done = _Done({}, [])
        for digits in range(_DIGITS if self.columns else 0):
            done.take(self._attempt(self._left(done), digits))
        done.take(self._attempt(self._left(done), None))
        return done

    def _left(self, done: _Done) -> NDArray[np.int64]:
        return np.array([i for i in self.rows if i not in done.ways], dtype=np.int64)

    def _attempt(self, who: NDArray[np.int64], digits: int | None) -> _Done:
        """Take those who are well served with so many digits."""
        if not who.size:
            return _Done({}, [])
        compiled, aim = self.judge.compiled, self.judge.aim
        after = self._rounded(np.searchsorted(self.rows, who), digits)
        verdict = self.judge(who, after, self.options)
        bound = np.array([self.ways[i].lower_bound for i in who])
        bound = np.minimum(bound, verdict.price)  # a hair above the price is rounding
        gap = verdict.price - bound
        ways = [self.ways[i] for i in who]
        room = _room(ways, verdict, aim)
        good = verdict.holds if digits is None else verdict.holds_clearly & (gap <= room)
        good = good & self.judge.pipeline_agrees(after, good)
        if compiled.actions.links:
            for k in np.flatnonzero(good).tolist():
                good[k] = not check(compiled.actions, compiled.people.iloc[who[k]], after.iloc[[k]])
        found = {}
        for k in np.flatnonzero(good).tolist():
            i, recourse = int(who[k]), verdict.recourse[k].copy()
            options = self.options[i].copy()
            recourse.flags.writeable = options.flags.writeable = False
            found[i] = ways[k]._replace(
                features=changed(compiled, i, recourse, options),
                recourse=recourse,
                options=options,
                status=_status(
                    ways[k].status, bool(gap[k] <= room[k]), float(verdict.today[k]), aim
                ),
                cost=float(verdict.cost[k]),
                price=float(verdict.price[k]),
                lower_bound=float(bound[k]),
                gap=float(gap[k]),
                worst_case_score=float(verdict.score[k]),
            )
        after.index = who
        return _Done(found, [after[good]] if good.any() else [])

    def _rounded(self, places: NDArray[np.int64], digits: int | None) -> pd.DataFrame:
        compiled, outwards = self.judge.compiled, self.judge.aim.target is not None
        after = self.after.iloc[places].copy()
        for name, moved in self.columns.items() if digits is not None else ():
            feature, raw = compiled.actions[name], compiled.ranges[name]
            values = _floats(after[name]).copy()
            for k in np.flatnonzero(moved[places]).tolist():
                i = self.rows[places[k]]
                rises = outwards and values[k] > raw.value[i]
                way = ROUND_CEILING if rises else ROUND_FLOOR if outwards else ROUND_HALF_EVEN
                value = round_to(values[k], _exponent(feature, digits or 0), way)
                values[k] = min(max(value, raw.lower[i]), raw.upper[i])
            after[name] = values
        return after


def _exponent(feature: NumberFeature, digits: int) -> int:
    """Return the power of ten to round to; digits are counted from about what costs 1."""
    return math.floor(math.log10(1.0 / feature.cost)) - digits


def round_to(value: float, exponent: int, way: str = ROUND_HALF_EVEN) -> float:
    """Return the multiple of a power of ten, in decimal numbers.

    Examples
    --------
    >>> round_to(0.123456, -2), round_to(1234.5, 2)
    (0.12, 1200.0)
    """
    exact = Decimal(repr(float(value)))
    return float(exact.quantize(Decimal(1).scaleb(exponent), rounding=way, context=_EXACT))


def _room(ways: list[Way], verdict: _Verdict, aim: Aim) -> Floats:
    """Return the largest gap that rounding may leave: what was proven must still be.

    A proof may leave `GAP_TOLERANCE`, relative to the price and something on top. Where it does
    not use it up, rounding may, without what is on top.
    """
    gaps = np.array([way.gap for way in ways]) + 8.0 * EPS * (1.0 + verdict.price)
    more = GAP_TOLERANCE * (verdict.price + (0.0 if aim.weight is None else 1.0))
    proven = np.array([way.status.is_proven for way in ways])
    return np.where(proven, np.maximum(gaps, more), gaps + more)


def _status(before: Status, close: bool, today: float, aim: Aim) -> Status:
    """What the printed row is: rounding may leave the optimum, and a price promises no yes."""
    if not before.is_proven:
        return before
    if not close:
        return Status.GAP_OPEN
    if today < aim.cutoff:
        return Status.STILL_REFUSED
    return Status.OPTIMAL if before is Status.STILL_REFUSED else before


def _floats(column: pd.Series[Any]) -> Floats:
    return np.asarray(column.to_numpy(dtype=np.float64))
