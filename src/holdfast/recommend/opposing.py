"""Which model of a set would turn an advice down, and what it weighs differently from today's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.machinery.numerals import a_chance, numeral
from holdfast.models.encoding import Encoding, Number
from holdfast.models.encoding.features import RawFeature
from holdfast.models.encoding.reading import is_missing, plain
from holdfast.recommend.words import listed

if TYPE_CHECKING:
    import pandas as pd

_MOST = 3  # differences that are named
_LEAST_SHARE = 0.05  # of all that lowers the score: less is not worth a word


@dataclass(frozen=True)
class Difference:
    """One thing that another model weighs differently.

    Attributes
    ----------
    name : str or None
        The feature; None for the intercept, which is the same for everybody.
    drop : float
        By how much it lowers the score of the advice; below 0 where it raises it. Of a feature it
        is counted from where its encoded columns are 0: of a standardised number, the average.
    words : str
        "counts duration 14% more heavily".
    """

    name: str | None
    drop: float
    words: str


@dataclass(frozen=True, eq=False)
class Opposing:
    """The model of a set that gives an advice the least, where that is not enough.

    Attributes
    ----------
    coef : array
    intercept : float
        Of that model, in encoded columns.
    score, worst_case_validity : float
        What it gives the advice; the probability is NaN without probabilities.
    gives : str
        The same as it is told: "43%", "571 points"; empty without probabilities.
    wanted : str
        What was asked for, in the same way; empty with a cost weight.
    is_refusal : bool
        Whether it would turn the person down; otherwise it gives less than was asked for.
    differences : list of Difference
        All of them, what lowers the score most first: together, the fall of the score.
    protected : frozenset of str
        Features that are never named in words: see `ActionSet.protected_names`.
    """

    coef: Floats
    intercept: float
    score: float
    worst_case_validity: float
    gives: str
    wanted: str
    is_refusal: bool
    differences: list[Difference]
    protected: frozenset[str] = frozenset()

    def explain(self, what: str = "this advice") -> str:
        """Say what that model does and why; nothing protected is named."""
        said = f"One of these models would refuse {what}"
        if self.gives:
            less = f"less than the {self.wanted} asked for"
            outcome = "and would refuse it" if self.is_refusal else less
            said = f"One of these models gives {what} {a_chance(self.gives)}, {outcome}"
        lowers = [each for each in self.differences if each.drop > 0.0]
        least = _LEAST_SHARE * sum(each.drop for each in lowers)
        told = [each for each in lowers if each.drop >= least and each.name not in self.protected]
        if not told:
            return f"{said}."
        return f"{said}: it {listed([each.words for each in told[:_MOST]])}."


def differences(
    encoding: Encoding, point: Floats, row: pd.Series[Any], coef: Floats, intercept: float
) -> list[Difference]:
    """Say what another model weighs differently at a point, which is a row of the table.

    The score of today's model less that of the other one is the sum of all drops.
    """
    model: Any = encoding.model
    own = np.asarray(model.coef, dtype=np.float64)
    found = [Difference(None, float(model.intercept) - intercept, "is stricter with everybody")]
    for name, feature in encoding.features.items():
        columns = feature.columns
        drop = float((own[columns] - coef[columns]) @ point[columns])
        found.append(Difference(name, drop, _words(feature, row[name], own, coef)))
    return sorted(found, key=lambda each: -each.drop)


def _words(feature: RawFeature, value: Any, own: Floats, coef: Floats) -> str:
    """Say how a feature is weighed differently; of a number that is a slope, in any unit."""
    if is_missing(value):
        return f"gives less credit when {feature.name} is not given"
    if not isinstance(feature, Number):
        return f"gives less credit for {feature.name} = {numeral(plain(value))}"
    j = feature.column
    return f"counts {feature.name} {_compared(float(own[j]), float(coef[j]))}"


def _compared(own: float, other: float) -> str:
    """Say how a coefficient compares with today's.

    Examples
    --------
    >>> _compared(-0.5, -0.57), _compared(0.5, 0.498), _compared(0.5, 1.25)
    ('14% more heavily', 'slightly less heavily', '2.5 times as heavily')
    >>> _compared(0.5, -0.1)
    'in the opposite direction'
    """
    if other == own:
        return "as today's model does"
    if own == 0.0:
        return "although today's model ignores it"
    ratio = other / own
    if ratio < 0.0:
        return "in the opposite direction"
    if ratio == 0.0:
        return "not at all"
    if ratio >= 2.0:
        return f"{ratio:.2g} times as heavily"
    more = "more" if ratio > 1.0 else "less"
    per_cent = round(100.0 * abs(ratio - 1.0))
    much = "slightly" if per_cent < 1 else "far" if per_cent > 99 else f"{per_cent}%"
    return f"{much} {more} heavily"
