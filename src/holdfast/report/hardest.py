"""The hardest cases: who cannot be helped and why, and whom it costs most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


from holdfast.recommend import RobustRecourse
from holdfast.report.people import BEFORE, Foremost, Lot, frame_of, numbers
from holdfast.result.status import Status

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
    in_the_way : list of str
        What would have to be lifted, one of these or another; each may be several things.
    sentence : str
        The whole story, in a few sentences.
    """

    row: int
    keys: dict[str, str]
    probability: float
    cost: float
    changes: str
    in_the_way: list[str]
    sentence: str


class Hardest:
    """Finds them, a batch at a time."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self._lost, self._dear = Foremost(MOST_CASES), Foremost(MOST_CASES)

    def add(self, lot: Lot) -> None:
        """Look at some people."""
        lost, helped = lot.take(lot.is_refused & ~lot.is_helped), lot.take(lot.is_helped)
        self._lost.add(lost, -numbers(lost["initial_validity"]))
        self._dear.add(helped, numbers(helped["cost"]))

    def dearest(self) -> list[HardCase]:
        """Return those whom their advice costs most."""
        table = self._dear.table()
        return [] if table is None else [self._case(row) for row in table.to_pylist()]

    def lost(self, recourse: RobustRecourse) -> list[HardCase]:
        """Return those who are furthest from a yes among all whom nothing helps."""
        table = self._lost.table()
        if table is None:
            return []
        result = recourse.recommend(frame_of(table, BEFORE))
        cases = []
        for row in table.to_pylist():
            status = result.status_of(row["row"])
            releases = result.releases(row["row"]) if status is Status.INFEASIBLE else []
            told = [f"{each.words} (without: a cost of {each.cost:.3g})" for each in releases[:3]]
            cases.append(self._case(row, told, result.explain(row["row"])))
        return cases

    def _case(
        self, row: dict[str, Any], in_the_way: list[str] | None = None, sentence: str = ""
    ) -> HardCase:
        nan = float("nan")
        return HardCase(
            row=row["row"],
            keys={name: str(row[name]) for name in self._keys},
            probability=nan if row["initial_validity"] is None else row["initial_validity"],
            cost=row["cost"] if row["option"] and row["cost"] is not None else nan,
            changes=row["changes"] or "",
            in_the_way=in_the_way or [],
            sentence=sentence or row["reason"] or "",
        )


