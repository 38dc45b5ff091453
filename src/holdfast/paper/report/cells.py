"""The arithmetic of a table's cells, and how one is compared with the paper's."""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from holdfast.paper.report.paper import PrintedCell

AGREES, BETTER, DIFFERS = "agrees", "better", "differs"
_ROUNDING = 1e-12  # of the subtraction below, not of the figures


class Estimate(NamedTuple):
    """The mean of the folds' means, and the deviation of these means (ddof = 1)."""

    mean: float
    deviation: float
    folds: int
    people: int
    missing: int  # rows without a value: then there is no mean

    def __str__(self) -> str:
        if self.missing:
            return f"no mean: {self.missing} of {self.people} recourses have no value"
        if math.isnan(self.deviation):
            return f"{number(self.mean)} (one fold)"
        return f"{number(self.mean)} ± {number(self.deviation, like=self.mean)}"


def estimate(rows: pd.DataFrame) -> Estimate:
    """Average the price over the people of each fold, then over folds.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"fold": [0, 0, 1], "price": [1.0, 3.0, 4.0]})
    >>> print(estimate(rows))
    3.000 ± 1.414
    """
    missing = int(rows["price"].isna().sum())
    by_fold = rows.groupby("fold")["price"].mean()
    mean = math.nan if missing else float(by_fold.mean())
    deviation = math.nan if missing else float(by_fold.std(ddof=1))
    return Estimate(mean, deviation, len(by_fold), len(rows), missing)


class Agreement(NamedTuple):
    """How a figure of ours stands to the paper's."""

    word: str
    difference: float  # ours minus the paper's

    def __str__(self) -> str:
        symbol = {AGREES: "✓", BETTER: "▼", DIFFERS: "▲"}[self.word]
        if self.word == AGREES:
            return f"{symbol} agrees"
        return f"{symbol} {self.word} by {number(abs(self.difference))}"


def verdict(ours: float, paper: PrintedCell) -> Agreement:
    """Compare: within the paper's deviation (at least its rounding), lower, or higher.

    Examples
    --------
    >>> from holdfast.paper.report.paper import read_cell
    >>> print(verdict(0.0349, read_cell("0.03 ± 0.00")))
    ✓ agrees
    >>> print(verdict(0.20, read_cell("0.32 ± 0.10")))
    ▼ better by 0.120
    """
    difference = ours - paper.mean
    if abs(difference) <= max(paper.deviation, paper.half_unit) + _ROUNDING:
        return Agreement(AGREES, difference)
    return Agreement(BETTER if difference < 0 else DIFFERS, difference)


def increase(mean: float, best: float) -> str:
    """Say how much more than the best this is, in per cent.

    Examples
    --------
    >>> increase(0.83, 0.68), increase(0.68, 0.68)
    ('+22.1 %', 'best')
    """
    if math.isnan(mean) or math.isnan(best):
        return ""
    return "best" if mean <= best else f"+{100 * (mean / best - 1):,.1f} %"


def number(value: float, like: float | None = None) -> str:
    """Write a figure with three digits after the point, large ones with two.

    Examples
    --------
    >>> number(0.68461), number(65.521), number(4.9, like=65.5), number(0.0)
    ('0.685', '65.52', '4.90', '0.000')
    """
    size = abs(value if like is None else like)
    return f"{value:.3f}" if size < 10 else f"{value:.2f}"


def small(value: float) -> str:
    """Write a figure that may be very small.

    Examples
    --------
    >>> small(0.0), small(2.34e-13), small(0.25), small(float("nan"))
    ('0', '2.3e-13', '0.25', '–')
    """
    if math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    return f"{value:.2g}" if 1e-3 <= abs(value) < 1e3 else f"{value:.1e}"
