"""Encoded points, packed: a bit where a column holds none but 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats


@dataclass(frozen=True, eq=False)
class PackedPoints:
    """Points, a row each, in as little memory as their categories need.

    Attributes
    ----------
    is_bit : (d,) array of bool
        Which columns hold none but 0 and 1.
    bits : (n, bytes) array
        These columns, eight to a byte.
    floats : (n, e) array
        All others.

    Examples
    --------
    >>> packed = PackedPoints.of(np.array([[1.5, 0.0, 1.0], [2.5, 1.0, 0.0]]))
    >>> packed.bits.shape, packed.take(np.array([1])).points()
    ((2, 1), array([[2.5, 1. , 0. ]]))
    """

    is_bit: NDArray[np.bool_]
    bits: NDArray[np.uint8]
    floats: Floats

    @classmethod
    def of(cls, points: Floats) -> PackedPoints:
        """Pack points."""
        return cls._split(points, ((points == 0.0) | (points == 1.0)).all(axis=0))

    @classmethod
    def _split(cls, points: Floats, is_bit: NDArray[np.bool_]) -> PackedPoints:
        bits = np.packbits(points[:, is_bit] == 1.0, axis=1)
        return cls(is_bit, bits, points[:, ~is_bit])

    @classmethod
    def joined(cls, batches: list[PackedPoints]) -> PackedPoints:
        """Put points one below another."""
        is_bit = np.logical_and.reduce([some.is_bit for some in batches])
        # few columns hold only 0 and 1 in one batch and other numbers in another
        alike = [
            some if (some.is_bit == is_bit).all() else cls._split(some.points(), is_bit)
            for some in batches
        ]
        bits = np.concatenate([some.bits for some in alike])
        return cls(is_bit, bits, np.concatenate([some.floats for some in alike]))

    def take(self, which: NDArray[np.int64] | slice) -> PackedPoints:
        """Return some of the points."""
        return PackedPoints(self.is_bit, self.bits[which], self.floats[which])

    def points(self) -> Floats:
        """Return them as they were."""
        points = np.empty((len(self.floats), len(self.is_bit)))
        points[:, ~self.is_bit] = self.floats
        count = int(self.is_bit.sum())
        points[:, self.is_bit] = np.unpackbits(self.bits, axis=1, count=count)
        return points
