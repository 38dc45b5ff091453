"""What each person may make of features that are derived from others: every allowed combination.

A quotient is no linear function of its parents. So the values that the parents may take are tried
together, and what is derived of them is computed as anybody would: each combination is a level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.derived import Bundle
from holdfast.actions.links import FeatureLink, Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import Range, lattice_ends, multiples, range_of
from holdfast.discrete import Group
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models.encoding import Category, Curve, Encoded, Encoding, Number
from holdfast.models.encoding.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

# Combinations of values that are tried for a person.
MOST_COMBINATIONS = 50_000
# Room for rounding in what is derived, and in links: half of what the checker leaves.
_ROUNDING = 5e-10
# By so much of itself what a person has may differ from what would be computed.
_NEAR = 1e-6
_MOST_ASKED = 200_000  # rows that the pipeline is asked about at once


@dataclass(frozen=True, eq=False)
class Joint:
    """The levels of people: combinations of values. The first is what they have now.

    Attributes
    ----------
    bundle : Bundle
    raw : (n, m, k) array
        The values of the features of the bundle, in the order of its names.
    costs : (n, m) array
        What each costs; inf where a person has fewer levels than others.
    """

    bundle: Bundle
    raw: Floats
    costs: Floats

    @property
    def changes(self) -> NDArray[np.bool_]:
        """Whether each parent changes with each level, (n, m, parents)."""
        values = self.raw[:, :, : len(self.bundle.parents)]
        return np.asarray(values != values[:, :1])

    def changed(self, who: NDArray[np.int64], taken: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each parent changes for some people who take levels, (people, parents)."""
        count = len(self.bundle.parents)
        return np.asarray(self.raw[who, taken, :count] != self.raw[who, 0, :count])


# ------------------------------------------------------------------ who can be used


def check_bundle(bundle: Bundle, actions: ActionSet) -> None:
    """Refuse parents whose values cannot be listed."""
    for name in bundle.parents:
        feature = actions[name]
        said = f"{name}: {bundle.key} is derived from it, so its values are tried one by one"
        if feature.stays:
            continue
        if feature.grid == 0.0:
            raise ValueError(f"{said}: give it a step")
        falls = feature.direction == "up" or feature.max_decrease is not None
        rises = feature.direction == "down" or feature.max_increase is not None
        if not (falls or math.isfinite(feature.lowest)):
            raise ValueError(f"{said}: give it a lower bound")
        if not (rises or math.isfinite(feature.highest)):
            raise ValueError(f"{said}: give it an upper bound")


def read_bundle(bundle: Bundle, reading: Reading, frame: pd.DataFrame, actions: ActionSet) -> None:
    """Read the features of a bundle, and refuse people whose values contradict it."""
    for name in bundle.names:
        if name not in frame.columns:
            raise ValueError(
                f"X lacks the column {name!r}, which is needed because {bundle.key} is derived"
            )
        column = frame[name]
        if name not in reading.numbers:
            reading.read_number(name, column, takes_missing=False)
            continue
        for i in np.flatnonzero(np.isnan(reading.numbers[name])).tolist():
            if i not in reading.reasons:
                reading.refuse(i, name, column.iloc[i], "a finite number was expected")
    for each in bundle.derived:
        own, wanted = reading.numbers[each.feature], each.value(reading.numbers)
        with np.errstate(invalid="ignore"):
            near = np.abs(own - wanted) <= _NEAR * np.maximum(np.abs(own), np.abs(wanted))
        near &= np.isfinite(wanted)
        for i in np.flatnonzero(~near & np.isfinite(own)).tolist():
            reading.refuse(i, each.feature, own[i], f"but {each.words} is {wanted[i]:.12g}")
    _refuse_many(bundle, reading, actions)


def _refuse_many(bundle: Bundle, reading: Reading, actions: ActionSet) -> None:
    """Refuse people who have too many combinations."""
    ranges = [range_of(actions[name], reading.numbers[name]) for name in bundle.parents]
    total = np.prod([_counts(each) for each in ranges], axis=0)
    for i in np.flatnonzero(total > MOST_COMBINATIONS).tolist():
        if i not in reading.reasons:
            here = [each.take(np.array([i])) for each in ranges]
            steps = _coarser(here)
            pairs = zip(bundle.parents, here, steps, strict=True)
            told = [f"{name} a step of {step:g}" for name, r, step in pairs if step != r.step]
            reading.note(
                i,
                bundle.parents[0],
                f"{' and '.join(bundle.parents)} have {total[i]:,.0f} combinations, from which "
                f"{bundle.key} is derived, but at most {MOST_COMBINATIONS:,} can be tried; give "
                f"{' and '.join(told)}, at least",
            )


def _counts(ranges: Range) -> Floats:
    """Return about how many values each person may take; no fewer than there are."""
    still = ranges.lower == ranges.upper
    if ranges.step == 0.0:
        return np.ones(len(still))
    with np.errstate(invalid="ignore"):
        return np.where(still, 1.0, np.floor((ranges.upper - ranges.lower) / ranges.step) + 2.0)


def _coarser(ranges: list[Range]) -> list[float]:
    """Return steps with which one person has few enough combinations."""
    steps = [each.step for each in ranges]

    def counts() -> list[float]:
        pairs = zip(ranges, steps, strict=True)
        return [float(_counts(Range(**{**vars(r), "step": step}))[0]) for r, step in pairs]

    while math.prod(counts()) > MOST_COMBINATIONS:
        most = int(np.argmax(counts()))
        power = 10.0 ** math.floor(math.log10(steps[most]) + 1e-9)
        rounds = (power, 2.0 * power, 5.0 * power, 10.0 * power, 20.0 * power)
        steps[most] = min(step for step in rounds if step > steps[most] * (1.0 + 1e-9))
    return [float(f"{step:.12g}") for step in steps]


# ------------------------------------------------------------------ levels


def make_joint(
    bundle: Bundle, encoding: Encoding, actions: ActionSet, encoded: Encoded
) -> tuple[Joint, Group]:
    """List the combinations of everybody, and what the pipeline makes of them."""
    numbers = encoded.reading.numbers
    own = np.stack([numbers[name] for name in bundle.names], axis=1)
    links = [link for link in actions.links if bundle.holds(link)]
    ranges = [range_of(actions[name], numbers[name]) for name in bundle.parents]
    people = [_combinations(bundle, actions, links, row, k, ranges) for k, row in enumerate(own)]
    owner = np.repeat(np.arange(len(people)), [len(each) for each in people])
    flat = np.concatenate([np.empty((0, len(bundle.names))), *people])
    columns, codes = _encode(bundle, encoding, encoded, flat)
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: len(owner)])
    is_code = np.isnan(codes[first])  # who has a code in place of a number has what it is read as
    codes[first] = np.where(is_code, encoded.points[:, columns], codes[first])
    changed = flat[:, : len(ranges)] != own[owner, : len(ranges)]
    costs = _costs(bundle, actions, flat, own[owner])
    kept = np.flatnonzero(whole_rows(codes))
    if not all(isinstance(encoding.features.get(name), Number) for name in bundle.parents):
        kept = kept[_cheapest(owner[kept], codes[kept], changed[kept], costs[kept])]
    owner, n = owner[kept], len(own)
    shown = _spread(owner, costs[kept, None], n)[:, :, 0]
    shown[np.arange(shown.shape[1]) >= np.bincount(owner, minlength=n)[:, None]] = np.inf
    joint = Joint(bundle, _spread(owner, flat[kept], n), shown[:n])
    return joint, Group(columns, _spread(owner, codes[kept], n))


def _combinations(
    bundle: Bundle,
    actions: ActionSet,
    links: list[FeatureLink],
    own: Floats,
    person: int,
    ranges: list[Range],
) -> Floats:
    """List what one person may have: a row for each combination, the present one first."""
    values = [_values(each.take(np.array([person]))) for each in ranges]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*values, indexing="ij")], axis=1)
    moved = grid != own[: len(values)]
    named = dict(zip(bundle.parents, grid.T, strict=True))
    rows, fine = (
        np.column_stack([grid, np.zeros((len(grid), len(bundle.derived)))]),
        moved.any(axis=1),
    )
    for k, each in enumerate(bundle.derived, start=len(values)):
        parents = [bundle.parents.index(name) for name in each.parents]
        # whose parents stay, stays as it is, to the last bit
        rows[:, k] = np.where(moved[:, parents].any(axis=1), each.value(named), own[k])
        fine &= np.isfinite(rows[:, k]) & _is_allowed(actions[each.feature], own[k], rows[:, k])
    for link in links:
        places = [bundle.names.index(name) for name in link.names]
        fine &= _is_kept(link, own[places], rows[:, places])
    return np.vstack([own, rows[fine]])


def _values(ranges: Range) -> Floats:
    """List the values that one person may give a number, the present one among them."""
    own = ranges.value
    if ranges.step == 0.0 or ranges.lower[0] == ranges.upper[0]:
        return own
    least, most = (float(end[0]) for end in lattice_ends(ranges))
    counts = np.arange(least, most + 1.0)
    if ranges.on_grid[0]:  # it is on the grid up to rounding: there it stays as it is
        counts = counts[counts != ranges.count[0]]
    return np.append(own, multiples(counts, ranges.step))


def _is_allowed(feature: NumberFeature, own: float, values: Floats) -> NDArray[np.bool_]:
    """Say which values a derived feature may have; its steps are those of its parents."""
    ranges = range_of(feature, np.array([own]))
    room = _ROUNDING * np.maximum(np.abs(values), abs(own))
    return np.asarray((values >= ranges.lower - room) & (values <= ranges.upper + room))


def _is_kept(link: FeatureLink, own: Floats, values: Floats) -> NDArray[np.bool_]:
    """Say which rows of the linked features keep a link."""
    coef = np.array([*link.terms.values()])
    was, now = coef * own, coef * values
    if isinstance(link, Follows):
        off = np.abs((now - was).sum(axis=1))
        room = _ROUNDING * np.maximum(np.abs(values).max(axis=1), np.abs(own).max())
        return np.asarray(off <= room * max(1.0, abs(link.by)))
    most = max(float(link.at_most) if isinstance(link, Linear) else 0.0, float(was.sum()))
    room = _ROUNDING * np.maximum(np.abs(now).max(axis=1), np.abs(was).max())
    return np.asarray(now.sum(axis=1) <= most + room)


def _costs(bundle: Bundle, actions: ActionSet, rows: Floats, own: Floats) -> Floats:
    """Return what each combination costs: what its parents cost."""
    costs = np.zeros(len(rows))
    for k, name in enumerate(bundle.parents):
        feature, distance = actions[name], np.abs(rows[:, k] - own[:, k])
        costs += feature.cost * distance + np.where(distance > 0.0, feature.fixed_cost, 0.0)
    return costs


def _cheapest(
    owner: NDArray[np.int64], codes: Floats, changed: NDArray[np.bool_], costs: Floats
) -> NDArray[np.int64]:
    """Keep the cheapest of a person's combinations that the model cannot tell apart.

    They are alike only if the same parents change. Where people stay as they are comes first.
    """
    order = np.lexsort((costs, owner))
    keys = np.column_stack([owner, changed, codes])[order]
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.sort(order[first])


def _spread(owner: NDArray[np.int64], rows: Floats, n: int) -> Floats:
    """Give each of n people their rows, (n, most, width); who has fewer gets the first again."""
    count = np.bincount(owner, minlength=n)
    begin = np.concatenate([[0], np.cumsum(count)])[:-1]
    place = np.arange(max(int(count.max(initial=0)), 1))
    which = begin[:, None] + np.where(place < count[:, None], place, 0)
    return np.ascontiguousarray(rows[which]) if n else np.zeros((1, 1, rows.shape[1]))


def _encode(
    bundle: Bundle, encoding: Encoding, encoded: Encoded, rows: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return the columns that come from a bundle, and what each combination becomes in them."""
    columns, codes = list[int](), [np.empty((len(rows), 0))]
    for k, name in enumerate(bundle.names):
        feature = encoding.features.get(name)
        assert not isinstance(feature, Category)
        if isinstance(feature, Number):
            columns.append(feature.column)
            codes.append(feature.encode(rows[:, k])[:, None])
        elif isinstance(feature, Curve):
            columns += feature.columns.tolist()
            codes.append(_ask(encoding, encoded, feature, rows[:, k]))
    return np.array(columns, dtype=np.int64), np.concatenate(codes, axis=1)


def _ask(encoding: Encoding, encoded: Encoded, curve: Curve, values: Floats) -> Floats:
    """Return what the pipeline makes of values of a curve; codes for nothing are no advice."""
    each, where = np.unique(values, return_inverse=True)
    parts = list(_asked(encoding, encoded, curve.name, each))
    codes = np.concatenate([np.empty((0, len(curve.columns))), *parts])
    codes[np.isin(each, curve.specials)] = np.nan
    return np.asarray(codes[where])


def _asked(encoding: Encoding, encoded: Encoded, name: str, values: Floats) -> Iterator[Floats]:
    for begin in range(0, len(values), _MOST_ASKED):
        yield encoding.ask({name: values[begin : begin + _MOST_ASKED]}, encoded)[name]
