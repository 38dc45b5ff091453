"""What an action set becomes for some people: a discrete problem, and how to read its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.cells import Cells
from holdfast.actions.joint import Joint
from holdfast.actions.ranges import Range
from holdfast.actions.reach import Reach
from holdfast.discrete import DiscreteProblem, Links
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Encoding, Number
from holdfast.models.encoding.reading import read_numbers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Posed:
    """Made by `pose_problem`, read by `decode`.

    Attributes
    ----------
    problem : DiscreteProblem
        In encoded columns, for the people who can be used.
    relaxed : DiscreteProblem or None
        The same with all that lies between the values that are tried of bent numbers without a
        step; None where every value is tried.
    links : Links
        Links in encoded columns; each person's own point satisfies them, up to rounding.
    people : DataFrame
        These people, in raw units, with all their columns.
    positions : (n,) array of int
        Where they stand among the applicants, from 0.
    refused : list of (int, str)
        The positions of all others, and why they cannot be used.
    fixed : dict
        Features of the action set that stay whatever it says, because the pipeline does not use
        them, and why.
    levels : dict
        For each group of the problem, in its order: the name of the feature and its levels, or of
        a bent or binned number the `Reach` of people; of one that is derived the `Joint` of it
        and its parents.
    ranges : dict
        For each number that is no group: where it may go in raw units.
    cells : dict
        For each bent or binned number that may change: its cells.
    """

    problem: DiscreteProblem
    relaxed: DiscreteProblem | None
    links: Links
    people: pd.DataFrame
    positions: NDArray[np.int64]
    refused: list[tuple[int, str]]
    fixed: dict[str, str]
    levels: dict[str, tuple[Any, ...] | Reach | Joint]
    ranges: dict[str, Range]
    cells: dict[str, Cells]
    encoding: Encoding
    actions: ActionSet

    def people_at(self, who: NDArray[np.int64]) -> pd.DataFrame:
        """Return some of the people, by position; not to be written to."""
        n = len(self.people)
        everybody = len(who) == n and bool((who == np.arange(n)).all())
        return self.people if everybody else self.people.iloc[who]

    def raw_numbers(self, name: str) -> Floats:
        """Return the numbers of a column as people have them; NaN where they are missing."""
        return read_numbers(self.people[name])

    @property
    def names(self) -> list[str]:
        """The features that people may change: numbers, then categories, group by group."""
        names = list(self.ranges)
        for name, known in self.levels.items():
            names += known.bundle.parents if isinstance(known, Joint) else [name]
        return names

    @property
    def joints(self) -> list[Joint]:
        """The combinations of features that are tried together."""
        return [known for known in self.levels.values() if isinstance(known, Joint)]

    @property
    def number_columns(self) -> NDArray[np.int64]:
        """The encoded column of each number."""
        numbers = [self.encoding[name] for name in self.ranges]
        return np.array([n.column for n in numbers if isinstance(n, Number)], dtype=np.int64)
