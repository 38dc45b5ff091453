"""Many numbers in little memory: how they are distributed, to a thousandth of each."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.machinery.numbers import Floats
from holdfast.report.intervals import Interval, mean_within, median_ranks

# A bucket ends at 1.001 times its beginning, so that no value in it is further than that from
# the mean of the bucket, which stands for all of them.
_GROWTH = math.log(1.001)
_ZERO = -(1 << 60)  # the bucket of 0, below all others


class Histogram(NamedTuple):
    """Counts between edges, and how many values lie beyond the last."""

    edges: list[float]
    counts: list[int]
    beyond: int


class Sketch:
    """Numbers from 0 on, counted in buckets; in whatever batches they come, the result is one.

    Examples
    --------
    >>> costs = Sketch()
    >>> costs.add([1.0, 2.0])
    >>> costs.add([4.0])
    >>> costs.count, costs.quantile(0.5), round(costs.mean.estimate, 3)
    (3, 2.0, 2.333)
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean = self._squares = 0.0
        self._buckets: dict[int, tuple[int, float]] = {}  # how many, and their sum

    def add(self, values: ArrayLike) -> None:
        """Count some more values."""
        given = np.asarray(values, dtype=np.float64)
        if not given.size:
            return
        self._add_moments(given)
        with np.errstate(divide="ignore"):
            place = np.floor(np.log(given) / _GROWTH)
        place[given == 0.0] = _ZERO
        keys, inverse = np.unique(place, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(keys))
        sums = np.bincount(inverse, weights=given, minlength=len(keys))
        for key, count, total in zip(keys.tolist(), counts.tolist(), sums.tolist(), strict=True):
            before, sum_before = self._buckets.get(int(key), (0, 0.0))
            self._buckets[int(key)] = (before + count, sum_before + total)

    def _add_moments(self, given: Floats) -> None:
        """Add up means and squares as Chan, Golub and LeVeque do, without cancellation."""
        count, mean = given.size, float(given.mean())
        squares = float(((given - mean) ** 2).sum())
        total, apart = self.count + count, mean - self._mean
        self._squares += squares + apart * apart * self.count * count / total
        self._mean += apart * count / total
        self.count = total

    @property
    def mean(self) -> Interval:
        """The mean, with its interval; NaN where there is nothing."""
        if not self.count:
            return Interval(math.nan, math.nan, math.nan)
        return mean_within(self._mean, self._squares / max(self.count - 1, 1), self.count)

    @property
    def median(self) -> Interval:
        """The median, with an interval that holds for any distribution."""
        ranks = median_ranks(self.count)
        low, high = (math.nan, math.nan) if ranks is None else map(self._at_rank, ranks)
        return Interval(self.quantile(0.5), low, high)

    def quantile(self, share: float) -> float:
        """Return the least value that so large a share of all values does not exceed."""
        if not self.count:
            return math.nan
        return self._at_rank(max(math.ceil(share * self.count - 1e-9), 1))

    def _at_rank(self, rank: int) -> float:
        values, counts = self._values()
        return float(values[np.searchsorted(np.cumsum(counts), rank)])

    def _values(self) -> tuple[Floats, NDArray[np.int64]]:
        """Return the mean of each bucket, rising, and how many values it holds."""
        pairs = [self._buckets[key] for key in sorted(self._buckets)]
        counts = np.array([count for count, _ in pairs], dtype=np.int64)
        return np.array([total for _, total in pairs]) / counts, counts

    def histogram(self, most_bins: int = 20) -> Histogram:
        """Count values in bins with round ends; the dearest hundredth may lie beyond the last."""
        if not self.count:
            return Histogram([], [], 0)
        values, counts = self._values()
        width = round_step(max(self.quantile(0.99), values[0]) / most_bins)
        n_bins = math.floor(self.quantile(0.99) / width + 1e-9) + 1
        edges = [float(f"{width * k:.10g}") for k in range(n_bins + 1)]
        inside, _ = np.histogram(values, edges, weights=counts)
        found = [int(count) for count in inside.tolist()]
        return Histogram(edges, found, int(self.count - sum(found)))


def round_step(least: float) -> float:
    """Return the least of ..., 0.1, 0.2, 0.5, 1, 2, 5, ... that is not below a number.

    Examples
    --------
    >>> round_step(0.13), round_step(3.0), round_step(5.0), round_step(0.0)
    (0.2, 5.0, 5.0, 1.0)
    """
    if not least > 0.0:
        return 1.0
    power = math.floor(math.log10(least) + 1e-12)
    for factor in (1.0, 2.0, 5.0, 10.0):
        step = float(f"{factor:g}e{power}")
        if step >= least * (1.0 - 1e-12):
            return step
    raise AssertionError("ten times the power of ten below a number is above it")
