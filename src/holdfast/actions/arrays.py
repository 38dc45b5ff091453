"""The arrays of a discrete problem, filled in feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.links import Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.ranges import Range, encode_range, range_of
from holdfast.actions.switches import switch_costs
from holdfast.discrete import Group, Links
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Category, Encoding, Number
from holdfast.models.encoding.reading import Reading


@dataclass
class Arrays:
    """The arrays of the problem, while they are filled in, feature by feature."""

    encoding: Encoding
    actions: ActionSet
    reading: Reading
    points: Floats  # what the pipeline makes of the people

    def __post_init__(self) -> None:
        self.groups: list[Group] = []
        self.current: list[NDArray[np.int64]] = []
        self.level_costs: list[Floats] = []
        self.levels: dict[str, tuple[Any, ...]] = {}
        self.ranges: dict[str, Range] = {}

    def fill(self) -> None:
        """Fill in every feature, from the encoded points of the people."""
        for name, part in self.encoding.features.items():
            if name in self.reading.levels:
                self._fill_group(self.actions[name], part)
        self.lower, self.upper = self.points.copy(), self.points.copy()
        for group in self.groups:
            self.lower[:, group.columns] = group.options.min(axis=0)
            self.upper[:, group.columns] = group.options.max(axis=0)
        self.costs = np.ones((1, self.encoding.n_columns))
        self.fixed_costs = np.zeros((1, self.encoding.n_columns))
        self.step = np.zeros((1, self.encoding.n_columns))
        self.anchor = self.points.copy()
        for name, part in self.encoding.features.items():
            feature = self.actions[name]
            if name not in self.reading.levels and isinstance(feature, NumberFeature):
                assert isinstance(part, Number)
                self._fill_number(feature, part)
            # else a number that is an immutable category: its bounds are its value already

    def _fill_number(self, feature: NumberFeature, number: Number) -> None:
        j = number.column
        raw = range_of(feature, self.reading.numbers[feature.name])
        encoded = encode_range(raw, number, self.points[:, j])
        self.ranges[feature.name] = raw
        self.lower[:, j], self.upper[:, j] = encoded.lower, encoded.upper
        self.step[0, j], self.anchor[:, j] = encoded.step, encoded.anchor
        self.costs[0, j] = feature.cost / abs(number.scale)
        self.fixed_costs[0, j] = feature.fixed_cost

    def _fill_group(self, feature: CategoryFeature, part: Number | Category) -> None:
        if isinstance(part, Category):
            levels, values, columns = part.levels, part.options, part.columns
        else:  # numbers that are a category for people
            levels, columns = feature.levels, np.array([part.column], dtype=np.int64)
            values = part.encode(np.array(levels, dtype=np.float64))[:, None]
        current = self.reading.levels[feature.name]
        self.points[:, columns] = values[current]  # to the last bit, as the solver expects
        self.groups.append(Group(columns, values))
        self.current.append(current)
        self.level_costs.append(switch_costs(feature, levels)[current])
        self.levels[feature.name] = levels

    def all_current(self) -> NDArray[np.int64]:
        """Return the level that each person has now, a column for each group."""
        if not self.current:
            return np.empty((len(self.points), 0), dtype=np.int64)
        return np.stack(self.current, axis=1)


def column_names(encoding: Encoding) -> list[str]:
    """Return names of the encoded columns that say what they are."""
    names = [""] * encoding.n_columns
    for name, part in encoding.features.items():
        if isinstance(part, Number):
            names[part.column] = name
        else:
            for j, column in enumerate(part.columns):
                level = part.levels[int(part.options[:, j].argmax())]
                names[column] = f"{name}={level}" if len(part.columns) > 1 else name
    if len(set(names)) < len(names):
        names = [f"{name} [{j}]" for j, name in enumerate(names)]
    return names


def encode_links(arrays: Arrays) -> Links:
    """Write links in encoded columns; what a person has now is always within."""
    links, n = arrays.actions.links, len(arrays.points)
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
