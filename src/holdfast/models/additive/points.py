"""Points of a scorecard as a straight line of the log-odds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats, refuse
from holdfast.models.encoding.reading import plain
from holdfast.problem.points import Points


def points_of(scorecard: Any, favorable_class: Any = None) -> Points:
    """Find the scale of the points of an `optbinning.Scorecard`.

    It holds for every row but those with a category that the scorecard has never seen: their
    points are those of a missing value, whatever their log-odds.

    Parameters
    ----------
    scorecard : Scorecard
        Fitted, without rounding.
    favorable_class : label, optional
        Whose log-odds are meant; by default the class that more points speak for.

    Returns
    -------
    Points
        ``scorecard.score(X)`` is ``offset + factor * log-odds``.
    """
    if not getattr(scorecard, "_is_fitted", False):
        raise ValueError(f"the model {type(scorecard).__name__} is not fitted: it has no points")
    if scorecard.rounding:
        raise ValueError(
            "the scorecard rounds its points (rounding=True), so they are not a function of the "
            "log-odds: fit it with rounding=False"
        )
    classes = [plain(label) for label in scorecard.estimator_.classes_]
    offset, factor = _line(scorecard)
    if favorable_class is None:
        favorable_class = classes[1 if factor > 0.0 else 0]
    if favorable_class not in classes:
        refuse("favorable_class", favorable_class, f"one of {classes}")
    if favorable_class == classes[0]:
        factor = -factor
    if not factor > 0.0:
        raise ValueError(
            f"more points on this scorecard count against the class {favorable_class!r}: either "
            "the other class is the favourable one, or fit the scorecard with "
            f"reverse_scorecard={not scorecard.reverse_scorecard}"
        )
    return Points(offset, odds=1.0, double=factor * math.log(2.0))


def _line(scorecard: Any) -> tuple[float, float]:
    """Return the line of the log-odds of the second class, from the bins of the table."""
    table = scorecard.table(style="detailed")
    evidence, points, owner = [], [], []
    process = scorecard.binning_process_
    variables = list(process.get_support(names=True))
    for k, variable in enumerate(variables):
        rows = table[table["Variable"] == variable]
        codes = process.get_binned_variable(variable).special_codes
        n_ordinary = len(rows) - 1 - (len(codes) if isinstance(codes, dict) else 1)
        worth = rows["WoE"].to_numpy()[:n_ordinary].astype(np.float64)
        evidence.append(worth * rows["Coefficient"].to_numpy()[:n_ordinary].astype(np.float64))
        points.append(rows["Points"].to_numpy()[:n_ordinary].astype(np.float64))
        owner.append(np.full(n_ordinary, k))
    factor = _slope(evidence, points)
    bases = [float(np.mean(y - factor * x)) for x, y in zip(evidence, points, strict=True)]
    far = max(
        float(np.abs(y - factor * x - base).max() / (1.0 + np.abs(y).max()))
        for x, y, base in zip(evidence, points, bases, strict=True)
    )
    if far > 1e-9:
        raise ValueError("the points of the scorecard are not a linear function of the log-odds")
    base = sum(bases) + float(np.ravel(scorecard.intercept_)[0])
    intercept = float(np.ravel(scorecard.estimator_.intercept_)[0])
    return base - factor * intercept, factor


def _slope(evidence: list[Floats], points: list[Floats]) -> float:
    """Return the points of a unit of log-odds, from the variable that matters most."""
    spans = [float(np.ptp(x)) for x in evidence]
    most = int(np.argmax(spans)) if spans else 0
    if not spans or spans[most] == 0.0:
        raise ValueError("the scorecard gives everybody the same points")
    x, y = evidence[most], points[most]
    low, high = int(np.argmin(x)), int(np.argmax(x))
    return float((y[high] - y[low]) / (x[high] - x[low]))
