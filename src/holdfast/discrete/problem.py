"""The question with its discrete parts: what each feature of a person may become."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.problem.costs import Evening
from holdfast.problem.problem import RecourseProblem


def in_rows(values: Floats, n: int) -> Floats:
    """Return n rows, of what has one row where all share it; not to be written to.

    As `numpy.broadcast_to`, which takes longer than to solve an easy row where it has nothing to
    do.
    """
    return values if len(values) == n else np.broadcast_to(values, (n, *values.shape[1:]))


def in_range(levels: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return positions of levels, those that are none moved to the nearest one.

    As `numpy.clip`, which takes ten times as long for a few whole numbers.
    """
    return np.minimum(np.maximum(levels, 0), count - 1)


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that change together: a category, one-hot or ordinal encoded.

    Attributes
    ----------
    columns : (c,) array of int
        The encoded columns of the category.
    levels : (m, c) or (n, m, c) array
        What they may become, a row for each level: the same for everybody, or each person's own.

    Examples
    --------
    >>> home = Group(np.array([2, 3]), np.eye(2))
    >>> home.values_of(np.array([1, 0, 1]))
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """

    columns: NDArray[np.int64]
    levels: Floats

    @property
    def count(self) -> int:
        """How many levels there are."""
        return int(np.shape(self.levels)[-2])

    @property
    def by_row(self) -> Floats:
        """The levels as a (1, m, c) or (n, m, c) array: one row where all rows share them."""
        values = np.asarray(self.levels, dtype=np.float64)
        return values if values.ndim == 3 else values[None]

    def take(self, which: NDArray[np.int64]) -> Group:
        """Return the group of some rows, by position; of none it keeps those of one."""
        if len(self.by_row) == 1:
            return self
        return Group(self.columns, self.levels[which] if len(which) else self.levels[:1])

    def values_of(self, taken: NDArray[np.int64]) -> Floats:
        """Return the columns of rows that take these levels, (n, c)."""
        values = self.by_row
        if len(values) > 1:
            return np.asarray(values[np.arange(len(taken)), taken])
        return np.take(values[0], taken, axis=0)


@dataclass(frozen=True, eq=False)
class DiscreteProblem:
    """A batch of recourse problems some of whose features take only certain values.

    A *feature* is what a person changes as one thing: an encoded column outside all groups (a
    number), or a group of columns (a category). Staying as one is, is always allowed.

    Attributes
    ----------
    base : RecourseProblem
        Points, linear scores, set of models and loss; bounds and costs of the numbers. Columns of
        groups have their bounds and costs here too, but these are not read.
    step, anchor : (1, d) or (n, d) arrays
        Where ``step > 0``, the column may become ``anchor + step * k`` for whole k, within its
        bounds, or stay; where ``step == 0`` it may go anywhere within its bounds.
    groups : list of Group
    current : (n, len(groups)) array of int
        The level that each person has now; its row of `levels` equals the person's columns.
    level_costs : list of (1, m) or (n, m) arrays
        For each group, what it costs to take each level; inf where it may not be taken. The
        current one costs 0.
    max_changes : int or None
        At most so many features may change.
    fixed_costs : (1, d) or (n, d) array or None
        What it costs to touch a number at all, on top of ``feature_costs * |x - x0|``; None:
        nothing. Columns of groups are not read: their fixed cost is part of `level_costs`.
    level_changes : list of (1, m) or (n, m) arrays of int, or None
        For each group, how many features change with each level, where a group stands for
        several that people change; the current one changes none. None: every other one is one.
    """

    base: RecourseProblem
    step: Floats
    anchor: Floats
    groups: list[Group]
    current: NDArray[np.int64]
    level_costs: list[Floats]
    max_changes: int | None = None
    fixed_costs: Floats | None = None
    level_changes: list[NDArray[np.int64]] | None = None

    @property
    def all_fixed_costs(self) -> Floats:
        """What touching each column costs; zeros where nothing is said."""
        if self.fixed_costs is None:
            return np.zeros((1, self.base.n_features))
        return np.asarray(self.fixed_costs, dtype=np.float64)

    @property
    def grouped_columns(self) -> NDArray[np.int64]:
        """The columns of all groups."""
        columns = [np.asarray(group.columns, dtype=np.int64) for group in self.groups]
        return np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)

    @property
    def number_columns(self) -> NDArray[np.int64]:
        """The columns outside all groups."""
        is_number = np.ones(self.base.n_features, dtype=bool)
        is_number[self.grouped_columns] = False
        return np.flatnonzero(is_number)

    def take(self, which: NDArray[np.int64]) -> DiscreteProblem:
        """Return the problem of some rows, by position; the same one may come several times."""

        def pick(values: Floats) -> Floats:
            return values[which] if len(values) > 1 else values

        return replace(
            self,
            base=self.base.take(which),
            step=pick(self.step),
            anchor=pick(self.anchor),
            groups=[group.take(which) for group in self.groups],
            current=self.current[which],
            level_costs=[pick(costs) for costs in self.level_costs],
            fixed_costs=None if self.fixed_costs is None else pick(self.fixed_costs),
            level_changes=None
            if self.level_changes is None
            else [counts[which] if len(counts) > 1 else counts for counts in self.level_changes],
        )

    def changes_of(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many features change in each group with the levels taken, (n, groups)."""
        if self.level_changes is None:
            return np.asarray(taken != self.current).astype(np.int64)
        counts = np.zeros(taken.shape, dtype=np.int64)
        for g, own in enumerate(self.level_changes):
            places = in_range(taken[:, g], own.shape[1])
            counts[:, g] = own[np.arange(len(taken)) if len(own) != 1 else 0, places]
        return counts

    def covers(self) -> list[DiscreteProblem]:
        """Return problems in which every group counts once, and whose best answer is the best.

        In each, no more than some number m of features change with a group, and the others may
        change m - 1 times less often: together they cover all that may be, and nothing else.
        """
        if self.level_changes is None:
            return [self]
        most, counts = self.max_changes, self.level_changes
        alone = replace(self, level_changes=None)
        if most is None:
            return [alone]
        ranges = [range(1, min(max(int(c.max(initial=1)), 1), max(most, 1)) + 1) for c in counts]
        problems = []
        for chosen in itertools.product(*ranges):
            less = sum(chosen) - len(chosen)
            if less and less > most - sum(m > 1 for m in chosen):
                continue  # one that counts more than once must be able to change at all
            costs = [
                np.where(own > m, np.inf, c)
                for c, own, m in zip(self.level_costs, counts, chosen, strict=True)
            ]
            problems.append(replace(alone, level_costs=costs, max_changes=most - less))
        return problems

    def in_even_costs(self) -> tuple[DiscreteProblem, NDArray[np.int64]]:
        """Return the problem with all costs of a row around 1, and the power of 2 taken out.

        As `RecourseProblem.in_even_costs`, with fixed costs and the costs of levels among them.
        """
        base, numbers = self.base, self.number_columns
        fixed_costs = self.all_fixed_costs
        evening = Evening.of(
            base.feature_costs[:, numbers], fixed_costs[:, numbers], *self.level_costs
        )
        return (
            replace(
                self,
                base=replace(base, feature_costs=evening.applied(base.feature_costs)),
                level_costs=[evening.applied(costs) for costs in self.level_costs],
                fixed_costs=evening.applied(fixed_costs),
            ),
            evening.exponent,
        )
