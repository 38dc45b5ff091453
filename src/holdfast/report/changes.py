"""Which features carry the recourse: how many people change each, and how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.actions import ActionSet, NumberFeature
from holdfast.report.people import AFTER, BEFORE, features_of, numbers


@dataclass
class FeatureShare:
    """How the advised change one feature.

    Attributes
    ----------
    name, unit : str
    is_number : bool
    changed : int
        How many change it.
    up, down, given : int
        How many raise, lower, or give it where it was missing; numbers only.
    mean_up, mean_down : float
        By how much on average, in raw units; 0 where nobody does.
    moves : list of (before, after, count)
        The most frequent moves of a category, at most three.
    """

    name: str
    unit: str
    is_number: bool
    changed: int = 0
    up: int = 0
    down: int = 0
    given: int = 0
    mean_up: float = 0.0
    mean_down: float = 0.0
    moves: list[tuple[str, str, int]] = field(default_factory=list)


class Changes:
    """Counts, a batch of advised people at a time."""

    def __init__(self, actions: ActionSet) -> None:
        self.actions = actions
        self._shares: dict[str, FeatureShare] = {}
        self._moves: dict[str, Counter[tuple[str, str]]] = {}

    def add(self, advised: pa.Table) -> None:
        """Count the first option of some people."""
        for name in features_of(advised, AFTER):
            before, after = _plain(advised[BEFORE + name]), _plain(advised[AFTER + name])
            if name not in self._shares:
                self._shares[name] = self._begin(name, before.type)
                self._moves[name] = Counter()
            share = self._shares[name]
            changed = are_different(before, after)
            share.changed += int(changed.sum())
            which = pa.array(changed)
            if share.is_number:
                _count_steps(share, before.filter(which), after.filter(which))
            else:
                pairs = zip(*(map(_level, c.filter(which).to_pylist()) for c in (before, after)))
                self._moves[name].update(pairs)

    def _begin(self, name: str, kind: pa.DataType) -> FeatureShare:
        feature = self.actions[name] if name in self.actions else None
        is_number = isinstance(feature, NumberFeature)
        if feature is None:
            is_number = bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
        return FeatureShare(name, getattr(feature, "unit", ""), is_number)

    def shares(self) -> list[FeatureShare]:
        """Return every feature that somebody changes, the most frequent first."""
        found = [share for share in self._shares.values() if share.changed]
        for share in found:
            common = self._moves[share.name].most_common(3)
            share.moves = [(before, after, count) for (before, after), count in common]
        return sorted(found, key=lambda share: -share.changed)


def _plain(column: Any) -> Any:
    """Return a column without chunks and dictionaries."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of no chunk at all
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def are_different(before: Any, after: Any) -> NDArray[np.bool_]:
    """Say which values of two columns differ; what is missing in both does not."""
    gone, gone_after = (np.asarray(pc.is_null(c, nan_is_null=True)) for c in (before, after))
    if after.type != before.type:
        after = after.cast(before.type) if _is_wider(before.type, after.type) else after
        before = before.cast(after.type)
    unequal = np.asarray(pc.fill_null(pc.not_equal(before, after), False))
    return np.asarray(np.where(gone | gone_after, gone != gone_after, unequal))


def _is_wider(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(pa.types.is_floating(one) and pa.types.is_integer(other))


def _count_steps(share: FeatureShare, before: Any, after: Any) -> None:
    step = numbers(after) - numbers(before)
    share.given += int(np.isnan(step).sum())
    up, down = step[step > 0.0], step[step < 0.0]
    share.mean_up = _mean(share.up, share.mean_up, up)
    share.mean_down = _mean(share.down, share.mean_down, -down)
    share.up, share.down = share.up + len(up), share.down + len(down)


def _mean(count: int, mean: float, more: NDArray[np.float64]) -> float:
    total = count + len(more)
    return float((count * mean + more.sum()) / total) if total else 0.0


def _level(value: Any) -> str:
    return "not given" if value is None else str(value)
