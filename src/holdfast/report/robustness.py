"""The cost of robustness: the same people, advised against smaller and larger sets of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.report.intervals import Interval, wilson
from holdfast.report.judging import Judge
from holdfast.report.people import Source, are_helped

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend import Recommendations

MULTIPLES = (0.0, 0.25, 0.5, 1.0, 1.5)  # of the size that the advice was given for


@dataclass(frozen=True)
class SizePoint:
    """What becomes of the sample at one size of the set of models.

    Attributes
    ----------
    multiple, radius : float
    helped : int
    share_helped : Interval
    mean_cost : float
        Over those whom every size helps; NaN where there is nobody.
    survival : list of float
        By each of the later models: the share of the advice for these people that it approves.
    """

    multiple: float
    radius: float
    helped: int
    share_helped: Interval
    mean_cost: float
    survival: list[float]


@dataclass(frozen=True)
class Robustness:
    """The sample, and what becomes of it at each size.

    Attributes
    ----------
    people : int
        How many refused people were drawn.
    compared : int
        How many of them every size helps.
    points : list of SizePoint
    """

    people: int
    compared: int
    points: list[SizePoint]


def compare_sizes(
    source: Source, people: pd.DataFrame, judges: Sequence[Judge] = ()
) -> Robustness | None:
    """Advise refused people anew at several sizes; None where the set of models has no size."""
    models = source.recourse.robust_to
    if not models.has_size or not models.radius > 0.0 or not len(people):
        return None
    radii = [multiple * float(models.radius) for multiple in MULTIPLES]
    answers = [_advise(source, people, radius) for radius in radii]
    common = np.logical_and.reduce([answer.is_helped for answer in answers])
    points = [
        SizePoint(
            multiple=multiple,
            radius=radius,
            helped=int(answer.is_helped.sum()),
            share_helped=wilson(int(answer.is_helped.sum()), len(people)),
            mean_cost=float(answer.cost[common].mean()) if common.any() else float("nan"),
            survival=[_survival(judge, answer.result, common) for judge in judges],
        )
        for multiple, radius, answer in zip(MULTIPLES, radii, answers, strict=True)
    ]
    return Robustness(len(people), int(common.sum()), points)


@dataclass(frozen=True, eq=False)
class _AtRadius:
    result: Recommendations
    is_helped: NDArray[np.bool_]
    cost: Floats


def _advise(source: Source, people: pd.DataFrame, radius: float) -> _AtRadius:
    recourse = source.recourse
    robust_to = recourse.robust_to.with_radius(radius)
    result = recourse.with_settings(robust_to=robust_to, n_options=1).recommend(people)
    frame = result.to_frame()
    option, validity = (frame[name].to_numpy(float) for name in ("option", "current_validity"))
    helped = are_helped(option, result.status, validity, source.even)
    return _AtRadius(result, helped, frame["cost"].to_numpy(float))


def _survival(judge: Judge, result: Recommendations, common: NDArray[np.bool_]) -> float:
    if not common.any():
        return float("nan")
    after = result.after().loc[result.labels[common]]
    return float(judge.judge(after).is_approved.mean())
