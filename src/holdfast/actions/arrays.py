"""The arrays of a discrete problem, filled in feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.cells import Cells
from holdfast.actions.joint import Joint
from holdfast.actions.links import Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import Range, encode_range, range_of
from holdfast.actions.reach import Reach, find_reach
from holdfast.actions.switches import all_switch_costs
from holdfast.discrete import Group, Links
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models.encoding import Category, Curve, Encoding, Number
from holdfast.models.encoding.encoding import check_agreement
from holdfast.models.encoding.features import RawFeature
from holdfast.models.encoding.reading import Reading


@dataclass
class Arrays:
    """The arrays of the problem, while they are filled in, feature by feature."""

    encoding: Encoding
    actions: ActionSet
    reading: Reading
    points: Floats  # what the pipeline makes of the people, frozen
    cells: dict[str, Cells]  # of the curves that may change
    codes: dict[str, Floats]  # of the levels of curves that are categories for people
    joints: list[tuple[Joint, Group]]  # of features that are derived, and their parents

    def __post_init__(self) -> None:
        self.groups: list[Group] = []
        self.current: list[NDArray[np.int64]] = []
        self.level_costs: list[Floats] = []
        self.levels: dict[str, tuple[Any, ...] | Reach | Joint] = {}
        self.ranges: dict[str, Range] = {}

    def fill(self) -> None:
        """Fill in every feature, from the encoded points of the people."""
        for name, raw_feature in self.encoding.features.items():
            if name in self.reading.levels:
                self._fill_levels(self.actions[name], raw_feature)
            elif name in self.cells:
                assert isinstance(raw_feature, Curve)
                self._fill_curve(self.actions[name], raw_feature)
        for joint, group in self.joints:
            nowhere = np.zeros(len(self.points), dtype=np.int64)
            self._add(joint.bundle.key, group, nowhere, joint.costs)
            self.levels[joint.bundle.key] = joint
        self.lower, self.upper = self.points.copy(), self.points.copy()
        self._bound_groups()
        self.costs = np.ones((1, self.encoding.n_columns))
        self.fixed_costs = np.zeros((1, self.encoding.n_columns))
        self.step = np.zeros((1, self.encoding.n_columns))
        self.anchor = self.points
        joined = {name for joint, _ in self.joints for name in joint.bundle.names}
        for name, raw_feature in self.encoding.features.items():
            feature = self.actions[name]
            if name in joined:
                continue
            if isinstance(feature, NumberFeature) and isinstance(raw_feature, Number):
                self._fill_number(feature, raw_feature)
            # else what may not change: its bounds are its value already

    def _bound_groups(self) -> None:
        """Let columns of groups go from the least to the largest of their levels."""
        # of groups whose levels all people share, all columns are written at once
        shared = [group for group in self.groups if len(group.by_row) == 1]
        for groups in (shared, *([group] for group in self.groups if len(group.by_row) > 1)):
            if not groups:
                continue
            columns = np.concatenate([group.columns for group in groups])
            self.lower[:, columns] = np.hstack([group.by_row.min(axis=1) for group in groups])
            self.upper[:, columns] = np.hstack([group.by_row.max(axis=1) for group in groups])

    def _fill_number(self, feature: NumberFeature, number: Number) -> None:
        j = number.column
        is_missing = np.isnan(self.reading.numbers[feature.name])
        raw = range_of(feature, self.reading.filled(number), is_missing)
        encoded = encode_range(raw, number, self.points[:, j])
        self.ranges[feature.name] = raw
        self.lower[:, j], self.upper[:, j] = encoded.lower, encoded.upper
        self.step[0, j] = encoded.step
        # as a rule people are on the lattice, and their anchor is their own point
        if encoded.step > 0.0 and not np.array_equal(encoded.anchor, self.points[:, j]):
            if self.anchor is self.points:
                self.anchor = self.points.copy()
            self.anchor[:, j] = encoded.anchor
        self.costs[0, j] = feature.cost / abs(number.scale)
        self.fixed_costs[:, j] = feature.fixed_cost
        if feature.provide_cost is not None and is_missing.any():
            self.fixed_costs = np.broadcast_to(self.fixed_costs, self.points.shape).copy()
            self.fixed_costs[is_missing, j] = feature.provide_cost

    def _fill_levels(self, feature: CategoryFeature, raw_feature: RawFeature) -> None:
        current = self.reading.levels[feature.name]
        if isinstance(raw_feature, Category):
            levels, values, columns = raw_feature.levels, raw_feature.all_codes, raw_feature.columns
        elif isinstance(raw_feature, Number):  # numbers that are a category for people
            levels, columns = feature.levels, np.array([raw_feature.column], dtype=np.int64)
            values = raw_feature.encode(np.array(levels, dtype=np.float64))[:, None]
        else:
            levels, columns, values = feature.levels, raw_feature.columns, self.codes[feature.name]
        # to miss a level, or to have an unknown one, is a level only if somebody does
        rest = np.unique(current[current >= len(levels)])
        kept = np.append(np.arange(len(levels)), rest)
        specials = () if isinstance(raw_feature, Number) else raw_feature.specials
        costs = all_switch_costs(feature, levels, specials)[:, kept]
        values = values[kept]
        lost = ~whole_rows(values)  # the pipeline refuses such a level
        costs[:, lost], values = np.inf, np.where(lost[:, None], 0.0, values)
        place = np.searchsorted(kept, current) if rest.size else current
        self._add(feature.name, Group(columns, values), place, costs[current])
        self.levels[feature.name] = levels

    def _fill_curve(self, feature: NumberFeature, curve: Curve) -> None:
        cells = self.cells[feature.name]
        reach = find_reach(feature, cells, self.reading.numbers[feature.name], curve.fill)
        self._add(feature.name, Group(curve.columns, cells.codes), reach.place, reach.costs)
        self.levels[feature.name] = reach

    def _add(self, name: str, group: Group, current: NDArray[np.int64], costs: Floats) -> None:
        """Add a group; each person must be where the pipeline says, and then is to the last bit."""
        ours, theirs = group.values_of(current), self.points[:, group.columns]
        if not check_agreement(name, ours, theirs):
            if not self.points.flags.writeable:  # nearly all are there already
                self.points = self.points.copy()
            self.points[:, group.columns] = ours
        self.groups.append(group)
        self.current.append(current)
        self.level_costs.append(costs)

    def all_current(self) -> NDArray[np.int64]:
        """Return the level that each person has now, a column for each group."""
        if not self.current:
            return np.empty((len(self.points), 0), dtype=np.int64)
        return np.stack(self.current, axis=1)

    def level_changes(self) -> list[NDArray[np.int64]] | None:
        """Return how many features change with each level, where a group stands for several."""
        if not self.joints:
            return None
        changes = []
        for known, group, current in zip(
            self.levels.values(), self.groups, self.current, strict=True
        ):
            if isinstance(known, Joint):
                changes.append(known.changes.sum(axis=2))
            else:
                changes.append((np.arange(group.count) != current[:, None]).astype(np.int64))
        return changes


def column_names(encoding: Encoding) -> list[str]:
    """Return names of the encoded columns that say what they are."""
    names = [""] * encoding.n_columns
    for name, feature in encoding.features.items():
        if isinstance(feature, Number):
            names[feature.column] = name
            for column in feature.indicators:
                names[column] = f"{name} is missing"
            continue
        for j, column in enumerate(feature.columns):
            label = j + 1
            if isinstance(feature, Category):
                label = feature.levels[int(feature.codes[:, j].argmax())]
            names[column] = f"{name}={label}" if len(feature.columns) > 1 else name
    if len(set(names)) < len(names):
        names = [f"{name} [{j}]" for j, name in enumerate(names)]
    return names


def encode_links(arrays: Arrays) -> Links:
    """Write links in encoded columns; what a person has now is always within."""
    bundles, n = [joint.bundle for joint, _ in arrays.joints], len(arrays.points)
    # those among features that are tried together are kept by all of their levels
    links = [
        link for link in arrays.actions.links if not any(bundle.holds(link) for bundle in bundles)
    ]
    matrix = np.zeros((len(links), arrays.encoding.n_columns))
    lower, upper = np.full((n, len(links)), -np.inf), np.full((n, len(links)), np.inf)
    for r, link in enumerate(links):
        constant = 0.0
        for name, coef in link.terms.items():
            number = arrays.encoding[name]
            assert isinstance(number, Number)
            # coef raw = coef e / scale - coef shift / scale
            matrix[r, number.column] = coef / number.scale
            constant += coef * number.shift / number.scale
        now = arrays.points @ matrix[r]
        most = link.at_most if isinstance(link, Linear) else 0.0
        upper[:, r] = now if isinstance(link, Follows) else np.maximum(now, most + constant)
        if isinstance(link, Follows):
            lower[:, r] = now
    # links hold to a tolerance beside 1: that must mean the same in any unit
    unit = np.ldexp(1.0, -np.frexp(np.abs(matrix).max(axis=1, initial=0.0))[1])
    return Links(matrix * unit[:, None], lower * unit, upper * unit)
