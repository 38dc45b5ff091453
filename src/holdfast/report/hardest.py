"""The hardest cases: who cannot be helped and why, and whom it costs most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.report.people import BEFORE, Foremost, Lot, Source, numbers

MOST_CASES = 10


@dataclass(frozen=True)
class HardCase:
    """One person.

    Attributes
    ----------
    row : int
    keys : dict
        The key columns that were named.
    probability : float
        What today's model gives them; NaN where it gives none.
    cost : float
        Of their advice; NaN where there is none.
    changes : str
        Their advice; empty where there is none.
    within_reach : float
        The best worst-case probability that they can get; NaN where it is not known.
    in_the_way : list of str
        What would have to be lifted, one of these or another; each may be several things.
    reason : str
        What the status of their row means.
    """

    row: int
    keys: dict[str, str]
    probability: float
    cost: float
    changes: str
    within_reach: float
    in_the_way: list[str]
    reason: str


class Hardest:
    """Finds them, a batch at a time."""

    columns = ("reason", "changes", "cost", "current_validity", "initial_validity")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lost, self._dear = Foremost(MOST_CASES), Foremost(MOST_CASES)

    def add(self, lot: Lot) -> None:
        """Look at some people."""
        lost, helped = lot.take(lot.is_lost), lot.take(lot.is_helped)
        self._lost.add(lost, -numbers(lost["initial_validity"]))
        self._dear.add(helped, numbers(helped["cost"]))

    def dearest(self) -> list[HardCase]:
        """Return those whom their advice costs most."""
        table = self._dear.table()
        return [] if table is None else [self._case(row) for row in table.to_pylist()]

    def lost(self) -> list[HardCase]:
        """Return those who are furthest from a yes among all whom nothing helps."""
        table = self._lost.table()
        if table is None:
            return []
        result = self._source.recourse.recommend(self._source.frame(table, BEFORE))
        cases = []
        for row in table.to_pylist():
            told = [
                f"{each.words} (without {'this' if len(each.constraints) == 1 else 'these'}, a "
                f"way would cost {each.cost:.3g})"
                for each in result.releases(row["row"])[:3]
            ]
            cases.append(self._case(row, result.reachable(row["row"])[0], told))
        return cases

    def _case(
        self, row: dict[str, Any], within_reach: float = math.nan, in_the_way: Sequence[str] = ()
    ) -> HardCase:
        return HardCase(
            row=row["row"],
            keys={name: str(row[name]) for name in self._source.keys},
            probability=math.nan if row["initial_validity"] is None else row["initial_validity"],
            cost=row["cost"] if row["option"] and row["cost"] is not None else math.nan,
            changes=row["changes"] or "",
            within_reach=within_reach,
            in_the_way=list(in_the_way),
            reason=row["reason"] or "",
        )
