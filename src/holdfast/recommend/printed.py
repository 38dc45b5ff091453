"""What is printed is what is recommended: raw values that people can type, judged as they are.

The solver's answer is a point in encoded columns. Here it becomes rows of the table: numbers with a
step lie on it, all others are rounded, away from the boundary, to the fewest decimals that cost
nothing to speak of. The pipeline itself encodes these rows, and cost, proof and guarantee are
worked out anew from what it gives. So whoever types what was printed gets what was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Posed
from holdfast.actions.check import check_changes
from holdfast.discrete import DiscreteProblem
from holdfast.discrete.answer import costs_of
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding import Encoded, Number
from holdfast.models.encoding.unwrap import AGREEMENT
from holdfast.problem.goal import Goal
from holdfast.recommend.features import changed_features, take_people
from holdfast.recommend.rounding import RoundedWays, gap_once_rounded
from holdfast.recommend.ways import Printed, Ways, join_ways
from holdfast.result.status import are_proven, believed_bound, reassess, tell_proven_apart

if TYPE_CHECKING:
    import pandas as pd

# How much more than the guarantee is asked for where rounding takes away what was solved for.
_MARGINS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5)

# Finds ways anew, with a margin of score to spare; who has none is left out.
Resolve = Callable[[Ways, float], Ways]


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
    base = problem.base
    worst, score = base.robust_to.worst_score(points, base.coef, base.intercept), base.score(points)
    terms = points * base.coef
    size = np.abs(terms, out=terms).sum(axis=1) + np.abs(base.intercept)
    return Worth(worst, score, size + np.abs(score - worst))


def settle(
    posed: Posed,
    options: list[Ways],
    goal: Goal,
    resolve: Resolve,
    value: Value = linear_worth,
) -> Iterator[Printed]:
    """Yield the ways of some people as they are printed, and the rows of the table they become.

    Parameters
    ----------
    posed : Posed
    options : list of Ways
        In each of them a person has one way at the most.
    goal : Goal
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
    judge = _Judge(posed, goal, value)
    rounded = [RoundedWays.of(posed, goal, ways) for ways in options]
    trials = [rounding.trial() for rounding in rounded]
    # to ask the pipeline about a few rows takes as long as to ask about one: all options at once
    encoded = posed.encoding.encode_tables([trial.after for trial in trials])
    for rounding, trial, rows in zip(rounded, trials, encoded, strict=True):
        yield _settled(judge, rounding.ways, _print(judge, rounding, trial, rows), resolve)


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
        rounding = RoundedWays.of(judge.posed, judge.goal, replace(again, lower_bound=bound))
        trial = rounding.trial()
        more = _print(judge, rounding, trial, judge.encode(trial.after))
        done += more
        left = _without(left.take(np.isin(left.who, again.who)), more)
    return join_printed(done)


def _without(ways: Ways, done: list[Printed]) -> Ways:
    """Return the ways of those who have none that is done."""
    those = [printed.ways.who for printed in done]
    return ways.take(~np.isin(ways.who, np.concatenate(those))) if those else ways


def join_printed(batches: list[Printed]) -> Printed:
    """Put what was printed in batches together, by rising position."""
    joined = Printed(
        join_ways([some.ways for some in batches]), stack([some.after for some in batches])
    )
    if len(batches) == 1:
        return joined
    return joined.take(np.argsort(joined.ways.who, kind="stable"))


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

    def __init__(self, posed: Posed, goal: Goal, value: Value) -> None:
        self.posed, self.goal, self.value = posed, goal, value

    def encode(self, after: pd.DataFrame) -> Encoded:
        """Ask the pipeline about rows of the table."""
        return self.posed.encoding.encode_tables([after])[0]

    def __call__(
        self, ways: Ways, encoded: Encoded, *, clearly: bool
    ) -> tuple[Ways, NDArray[np.bool_]]:
        """Judge the row of the table that each of the ways becomes, as it is encoded.

        Returns
        -------
        ways : Ways
            With recourse, cost, price and scores of these rows; the rest is as it was.
        holds : array of bool
            Which of them reach the target; clearly: in whatever order a model forms its sums.
        """
        problem = take_people(self.posed.problem, ways.who)
        base = problem.base
        recourse = base.X.copy()
        for name, raw in self.posed.ranges.items():
            number = self.posed.encoding[name]
            assert isinstance(number, Number)
            moved = encoded.reading.filled(number) != raw.value[ways.who]
            recourse[moved, number.column] = encoded.points[moved, number.column]
        for g, group in enumerate(problem.groups):
            recourse[:, group.columns] = group.values_of(ways.levels[:, g])
        cost = costs_of(problem, recourse, ways.levels)
        worst, score, size = self.value(problem, recourse)
        price, target = self.goal.price(cost, base.loss.value(worst)), self.goal.target
        holds = np.ones(len(cost), dtype=bool)
        if target is not None and clearly:
            room = 4.0 * EPS * (recourse.shape[1] + 4) * (size + abs(target))
            holds = worst - room >= target
        elif target is not None:
            own = self.posed.encoding.model.score(recourse)  # a second opinion
            holds = (worst >= target) & (own >= target)
        judged = replace(
            ways, recourse=recourse, cost=cost, price=price, worst_case_score=worst, score=score
        )
        return judged, holds

    def pipeline_agrees(
        self, after: pd.DataFrame, ways: Ways, which: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Ask the pipeline itself about rows as they are typed, in the table's own precision.

        Only where a hair could decide: all that is printed is compared with the model as well.
        """
        model, target = self.posed.encoding.model, self.goal.target
        agrees = np.ones(len(after), dtype=bool)
        if target is None or model.origin is None:
            return agrees
        which = which & ~self._is_clear(after, ways, target)
        if not which.any():
            return agrees
        loss, said = self.posed.problem.base.loss, self.posed.encoding.ask_model(after[which])
        if said.probability is not None and loss.link is not None:
            agrees[which] = said.probability >= float(loss.probability(target))
        elif said.score is not None:
            agrees[which] = said.score >= target
        if said.accepted is not None and target >= self.goal.cutoff:
            agrees[which] &= said.accepted
        return agrees

    def refuses(self, after: pd.DataFrame, ways: Ways) -> NDArray[np.bool_]:
        """Say which rows today's model refuses; it is asked itself where a hair could decide.

        Whatever reaches a target that is no lower than the cutoff has been asked about already.
        """
        cutoff, target = self.goal.cutoff, self.goal.target
        if target is not None and target >= cutoff:
            return np.zeros(len(ways), dtype=bool)
        return ~self.posed.encoding.accepts(after, ways.recourse, ways.score, cutoff)

    def _is_clear(self, after: pd.DataFrame, ways: Ways, target: float) -> NDArray[np.bool_]:
        """Say where a model that agrees with what was read out of it must also say yes."""
        loss = self.posed.problem.base.loss
        if not self.posed.encoding.are_exact(after):
            return np.zeros(len(after), dtype=bool)  # the model computes with other numbers
        near = AGREEMENT * (1.0 + self.posed.encoding.model.size(ways.recourse))
        clear = ways.score - max(target, self.goal.cutoff) > near
        if loss.link is not None:
            above = loss.probability(ways.score) - loss.probability(target)
            clear &= np.asarray(above > near)
        return np.asarray(clear)


def _print(judge: _Judge, rounding: RoundedWays, trial: Printed, encoded: Encoded) -> list[Printed]:
    """Round to the fewest digits that leave the proof alone and the guarantee room to spare.

    Where there are none, nothing is rounded, and the guarantee must hold as it is. Who is well
    served by none of it is left out. What the rounding tries first has been encoded.
    """
    done = list[Printed]()
    while True:
        found = _attempt(judge, trial, encoded, rounded=rounding.is_rounding)
        done.append(_first_ones(found) if rounding.is_rounding else found)
        left = np.flatnonzero(~np.isin(rounding.ways.who, done[-1].ways.who))
        if not rounding.is_rounding or not left.size:
            return done
        rounding = rounding.still_to_try(left)
        trial = rounding.trial()
        encoded = judge.encode(trial.after)


def _first_ones(printed: Printed) -> Printed:
    """Keep of each person what comes first, that with the fewest digits; by rising position."""
    first = np.unique(printed.ways.who, return_index=True)[1]
    if np.array_equal(first, np.arange(len(printed.ways))):
        return printed
    return printed.take(first)


def _attempt(judge: _Judge, trial: Printed, encoded: Encoded, *, rounded: bool) -> Printed:
    """Take those who are well served by the rows of the table that are tried."""
    posed, goal, after = judge.posed, judge.goal, trial.after
    ways, good = judge(trial.ways, encoded, clearly=rounded)
    allowed = gap_once_rounded(ways, ways.price, are_proven(ways.status), goal)
    bound = believed_bound(ways.price, ways.lower_bound, allowed)
    gap = ways.price - bound
    if rounded:
        good &= gap <= allowed
    good &= judge.pipeline_agrees(after, ways, good)
    if posed.actions.links:
        wrong = check_changes(posed.actions, posed.people_at(ways.who), after)
        good[list(wrong)] = False
    changed = changed_features(posed, ways.who, ways.recourse, ways.levels)
    status = reassess(ways.status, gap, allowed)  # rounding may leave the optimum
    refused = judge.refuses(after, ways)
    tell_proven_apart(goal, status, ~np.any(changed, axis=1), ways.worst_case_score, refused)
    ways = replace(ways, changed=changed, status=status, lower_bound=bound, gap=gap)
    printed = Printed(ways, after) if good.all() else Printed(ways, after).take(good)
    # all that is printed is compared with the model, as the pipeline has just read it
    loss = posed.problem.base.loss
    posed.encoding.compare(encoded, printed.ways.recourse, loss, good)
    return printed
