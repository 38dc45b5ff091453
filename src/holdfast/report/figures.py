"""Figures in the sentences of a report."""

from __future__ import annotations

import math

from holdfast.report.intervals import Interval


def share_text(share: float) -> str:
    """Write a share in per cent; a tenth where that matters, never 0 or 100 where it is not so.

    Examples
    --------
    >>> share_text(0.7198), share_text(0.0043), share_text(0.9996), share_text(1.0)
    ('72%', '0.4%', '99.9%', '100%')
    """
    if not math.isfinite(share):
        return "–"
    if 0.0 < share < 0.01 or 0.99 < share < 1.0:
        tenths = min(max(round(share * 1000.0), 1), 999)
        return f"{tenths / 10.0:g}%"
    return f"{share:.0%}"


def share_range(share: Interval) -> str:
    """Write a share with its interval.

    Examples
    --------
    >>> share_range(Interval(0.72, 0.655, 0.777))
    '72% (66% to 78%)'
    """
    if not math.isfinite(share.low):
        return share_text(share.estimate)
    return f"{share_text(share.estimate)} ({share_text(share.low)} to {share_text(share.high)})"


def figure(value: float) -> str:
    """Write a number to three digits.

    Examples
    --------
    >>> figure(1.3017), figure(12.315), figure(1468.42), figure(0.5), figure(float("nan"))
    ('1.3', '12.3', '1,468', '0.5', '–')
    """
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def figure_range(value: Interval) -> str:
    """Write a number with its interval.

    Examples
    --------
    >>> figure_range(Interval(1.6, 1.47, 1.74))
    '1.6 (1.47 to 1.74)'
    """
    if not math.isfinite(value.low):
        return figure(value.estimate)
    return f"{figure(value.estimate)} ({figure(value.low)} to {figure(value.high)})"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> count_text(1, "person", "people"), count_text(12000, "row")
    ('1 person', '12,000 rows')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
