"""What each raw column becomes: a number, or a category; gathered from the encoded columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.columns import Affine, Coded, Column


@dataclass(frozen=True)
class Number:
    """A raw column that the classifier reads as ``shift + scale * raw``, in one encoded column.

    Examples
    --------
    >>> age = Number("age", column=0, shift=-3.5, scale=0.1)
    >>> age.encode(40.0), age.decode(0.5)
    (0.5, 40.0)
    """

    name: str
    column: int
    shift: float
    scale: float

    def encode(self, raw: Any) -> Any:
        """Return the encoded value of a raw one (or of an array of them)."""
        return self.shift + self.scale * raw

    def decode(self, encoded: Any) -> Any:
        """Return the raw value of an encoded one (or of an array of them)."""
        return (encoded - self.shift) / self.scale


@dataclass(frozen=True, eq=False)
class Category:
    """A raw column with levels, each of which has its values in some encoded columns.

    Attributes
    ----------
    columns : (c,) array of int
        The encoded columns.
    levels : tuple
        The levels that the encoder knows, but for a missing value.
    options : (m, c) array
        The encoded values of each level.

    Examples
    --------
    >>> import numpy as np
    >>> home = Category("home", np.array([3]), ("own", "rent"), np.array([[0.0], [1.0]]))
    >>> home.decode(np.array([[1.0], [0.0]]))
    ['rent', 'own']
    """

    name: str
    columns: NDArray[np.int64]
    levels: tuple[Any, ...]
    options: Floats

    @cached_property
    def level_array(self) -> NDArray[Any]:
        """The levels as an array: of numbers or booleans where all are, else of objects."""
        if len({isinstance(level, bool) for level in self.levels}) == 1:
            array = np.array(self.levels)
            if array.dtype.kind in "biuf":
                return array
        return np.array(self.levels, dtype=object)

    def decode(self, encoded: Floats) -> list[Any]:
        """Return the level of each row of encoded values."""
        distance = np.abs(encoded[:, None, :] - self.options).max(axis=2)
        nearest = distance.argmin(axis=1)
        far = np.flatnonzero(distance[np.arange(len(encoded)), nearest] > 1e-6)
        if far.size:
            raise ValueError(
                f"column {self.name!r}: {encoded[far[0]]} in row {far[0]} is not an encoded level; "
                f"the levels {list(self.levels)} are encoded as {self.options.tolist()}"
            )
        return [self.levels[k] for k in nearest]


def gather(columns: list[Column], names: list[str]) -> list[Number | Category]:
    """Sort the encoded columns by the raw column that they come from."""
    owners: dict[int, list[int]] = {}
    for j, column in enumerate(columns):
        owners.setdefault(column.raw, []).append(j)
    return [_feature(names[raw], owners[raw], columns) for raw in sorted(owners)]


def _feature(name: str, places: list[int], columns: list[Column]) -> Number | Category:
    parts = [columns[j] for j in places]
    first = parts[0]
    if isinstance(first, Affine) and len(parts) == 1:
        return Number(name, places[0], first.shift, first.scale)
    coded = [part for part in parts if isinstance(part, Coded)]
    origins = list(dict.fromkeys(part.where for part in parts))
    if len(coded) < len(parts) or len(origins) > 1:
        raise ValueError(
            f"column {name!r} is read more than once, by {' and by '.join(origins)}; "
            "a change of it would move several columns at once, which is not understood"
        )
    options = np.stack([part.values for part in coded], axis=1)
    if len({tuple(option) for option in options.tolist()}) < len(options):
        raise ValueError(f"column {name!r}: {origins[0]} encodes two of its levels as the same")
    return Category(name, np.array(places, dtype=np.int64), coded[0].levels, options)
