"""From recourses to curves: what a method costs and gives, on average over all people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from holdfast.machinery.numbers import Floats
from holdfast.paper.report.results import Results, groups

METHODS = ("exact", "refine", "algorithm2", "roar", "rbr")  # in the order in which they are drawn
NONE, AFTER, INSIDE = "none", "after", "inside"


class Drawn(NamedTuple):
    """The points of a method, one for each setting of its trade-off."""

    method: str
    p: float
    cost: Floats
    value: Floats
    people: int  # of the point that has the fewest
    left_out: int  # points without a mean: some recourse has no value there


def frontier_rows(
    results: Results, dataset: str, model: str, radius: float, constraints: str = NONE
) -> pd.DataFrame:
    """Return the rows of one trade-off."""
    return results.rows(experiment="frontiers", dataset=dataset, model=model, radius=radius,
                        constraints=constraints)  # fmt: skip


def radii(results: Results) -> list[float]:
    """Return the radii of the frontiers."""
    return sorted(results.rows(experiment="frontiers")["radius"].unique())


def curves(rows: pd.DataFrame, value: str) -> Iterator[Drawn]:
    """Average cost and value over all people, for each method and each point of its trade-off."""
    for method in METHODS:
        for (p,), group in groups(rows[rows["method"] == method], "p"):
            setting = "settings" if method == "rbr" else "cost_weight"
            wanted = group[["cost", value]]
            means = wanted.groupby(group[setting]).mean()
            # To average over those recourses alone that have a value would flatter.
            whole = means[~wanted.isna().any(axis=1).groupby(group[setting]).any()]
            x, y = whole["cost"].to_numpy(), whole[value].to_numpy()
            people = int(group.groupby(setting).size().min())
            yield Drawn(method, p, x, y, people, len(means) - len(whole))


def pareto(cost: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Return the points that no other beats in both cost and value, by cost.

    Examples
    --------
    >>> import numpy as np
    >>> pareto(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.4, 0.9]))
    (array([1., 3.]), array([0.5, 0.9]))
    """
    order = np.lexsort((-value, cost))
    cost, value = cost[order], value[order]
    before = np.maximum.accumulate(np.concatenate(([-np.inf], value[:-1])))
    best = value > before
    return cost[best], value[best]
