"""What a share, a mean or a median may be off by, with 95 % confidence."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import stats

LEVEL = 0.95
_Z = float(stats.norm.ppf(0.5 + LEVEL / 2.0))


class Interval(NamedTuple):
    """An estimate, and where the true value lies with 95 % confidence; NaN where not known."""

    estimate: float
    low: float
    high: float


def wilson(count: int, total: int) -> Interval:
    """Return a share with Wilson's interval, which also holds for shares near 0 and 1.

    Examples
    --------
    >>> [round(value, 4) for value in wilson(15, 20)]
    [0.75, 0.5313, 0.8881]
    >>> wilson(0, 0).estimate
    nan
    """
    if not total:
        return Interval(math.nan, math.nan, math.nan)
    share, square = count / total, _Z * _Z / total
    centre = (share + square / 2.0) / (1.0 + square)
    half = _Z * math.sqrt(share * (1.0 - share) / total + square / (4.0 * total)) / (1.0 + square)
    low, high = max(centre - half, 0.0), min(centre + half, 1.0)
    return Interval(share, low if count else 0.0, high if count < total else 1.0)


def mean_within(mean: float, variance: float, count: int) -> Interval:
    """Return a mean with the interval of Student's t; of one value there is none.

    Examples
    --------
    >>> [round(value, 3) for value in mean_within(10.0, 4.0, 25)]
    [10.0, 9.174, 10.826]
    """
    if count < 2:
        return Interval(mean, math.nan, math.nan)
    half = float(stats.t.ppf(0.5 + LEVEL / 2.0, count - 1)) * math.sqrt(variance / count)
    return Interval(mean, mean - half, mean + half)


def median_ranks(count: int) -> tuple[int, int] | None:
    """Return the ranks, from 1, of the values between which the median lies; None for too few.

    Whatever the distribution, the median is below the k-th smallest of n values only if fewer
    than k of them are below it, which is a matter of n coins.

    Examples
    --------
    >>> median_ranks(5), median_ranks(6), median_ranks(100)
    (None, (1, 6), (40, 61))
    """
    tail = (1.0 - LEVEL) / 2.0
    rank = int(stats.binom.ppf(tail, count, 0.5)) if count else 0
    while rank > 0 and stats.binom.cdf(rank - 1, count, 0.5) > tail:
        rank -= 1
    return (rank, count - rank + 1) if rank > 0 else None
