"""Groups compared: how many of each are refused, how many of these can be helped, at what cost."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.machinery.numerals import numeral
from holdfast.report.intervals import Interval, wilson
from holdfast.report.people import BEFORE, Lot, numbers
from holdfast.report.sketch import Sketch

MOST_GROUPS = 20


@dataclass(frozen=True)
class GroupFigures:
    """One group; intervals are of 95 %.

    Attributes
    ----------
    name : str
    people, refused, helped : int
    share_refused : Interval
        Of the people who could be used.
    share_helped : Interval
        Of the refused.
    mean_cost, median_cost : Interval
        Over those helped.
    """

    name: str
    people: int
    refused: int
    helped: int
    share_refused: Interval
    share_helped: Interval
    mean_cost: Interval
    median_cost: Interval


def group_column(name: str, columns: list[str], keys: list[str]) -> str:
    """Find the column that people are to be grouped by: a key, or one that the model reads."""
    if name in keys and name in columns:
        return name
    if BEFORE + name in columns:
        return BEFORE + name
    read = [each[len(BEFORE) :] for each in columns if each.startswith(BEFORE)]
    raise ValueError(
        f"group = {name!r} is neither a key column of the recourse file "
        f"({', '.join(keys) or 'it has none'}) nor a column that the model reads "
        f"({', '.join(read)}). If it is a column of the table of people, run "
        f"`holdfast recommend` again with `--key {shlex.quote(name)}`"
    )


class PeopleGroups:
    """Counts, a batch at a time."""

    def __init__(self, name: str, column: str) -> None:
        self.name, self._column = name, column
        self._counts: dict[str, list[int]] = {}
        self._costs: dict[str, Sketch] = {}

    def add(self, lot: Lot) -> None:
        """Count some people."""
        encoded = pa.array(lot.table[self._column].to_pylist()).dictionary_encode()
        names = ["not given" if v is None else numeral(v) for v in encoded.dictionary.to_pylist()]
        codes = np.nan_to_num(numbers(encoded.indices), nan=len(names)).astype(int)
        usable, cost = lot.is_approved | lot.is_refused, numbers(lot.table["cost"])
        for code in np.unique(codes).tolist():
            group = names[code] if code < len(names) else "not given"
            those = codes == code
            if group not in self._counts:
                self._begin(group)
            for k, which in enumerate((usable, lot.is_refused, lot.is_helped)):
                self._counts[group][k] += int((those & which).sum())
            self._costs[group].add(cost[those & lot.is_helped])

    def _begin(self, group: str) -> None:
        if len(self._counts) == MOST_GROUPS:
            raise ValueError(
                f"group = {self.name!r} has more than {MOST_GROUPS} different values; choose a "
                "column with fewer, such as a key column of bands"
            )
        self._counts[group], self._costs[group] = [0, 0, 0], Sketch()

    def figures(self) -> list[GroupFigures]:
        """Return all groups, by name."""
        found = []
        for name in sorted(self._counts):
            people, refused, helped = self._counts[name]
            shares = wilson(refused, people), wilson(helped, refused)
            costs = self._costs[name]
            found.append(
                GroupFigures(name, people, refused, helped, *shares, costs.mean, costs.median)
            )
        return found
