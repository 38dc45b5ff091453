"""What a solver hands in with its answers, so that a result can prove them again when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.machinery.numbers import Floats
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.result.result import RecourseResult


class Proofs(NamedTuple):
    """The line below the frontier that bounds each row: its multiplier and its model."""

    multiplier: Floats
    coef: Floats
    intercept: Floats
    dual: Floats  # of a list: the weights of its models, today's first


class RowCurve(Protocol):
    """What is known of the curve of a row, whoever draws it."""

    @property
    def is_piecewise_linear(self) -> bool:
        """Whether it has breakpoints."""

    @property
    def start_score(self) -> float:
        """Worst-case score of the point as it is: the beginning of the curve."""

    @property
    def max_score(self) -> float:
        """The largest worst-case score within the bounds; inf where there is no end."""

    def to_frame(self) -> pd.DataFrame:
        """Return the breakpoints."""

    def at_score(self, score: float) -> RecourseResult:
        """Return the cheapest recourse with at least this worst-case score."""

    def at_guarantee(self, guarantee: float) -> RecourseResult:
        """Return the cheapest recourse that every model approves with this probability."""

    def at_cost_weight(self, cost_weight: float, loss: str | None = None) -> RecourseResult:
        """Return the recourse of least price, for any loss."""

    def sample(self, n: int = 200, max_score: float | None = None) -> pd.DataFrame:
        """Return n points of the curve, as a table for drawing."""


class RowProver(Protocol):
    """Works proofs out again, which need not be kept: a row always gives the same bits.

    It keeps nothing of its own, so that results can be copied and pickled with it.
    """

    def prove(self, problem: RecourseProblem, goal: Goal, threads: int) -> Proofs:
        """Return the multiplier and the model that prove the lower bound of each row."""

    def frontier(self, problem: RecourseProblem, cutoff: float) -> RowCurve:
        """Return the curve from cost to worst-case score of a problem of one row.

        Today's model says yes from the cutoff on.
        """
