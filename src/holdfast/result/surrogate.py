"""A linear score that stands for a model around each point, and how well it does so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.machinery.numbers import Floats


@dataclass(frozen=True, eq=False)
class Surrogate:
    """One linear score for each point.

    Attributes
    ----------
    name : str
        How it was made: "lime", "smoothgrad", "gradient", ...
    coef : (n, d) array
    intercept : (n,) array
    r2 : (n,) array
        Weighted R^2: the share of the model's variation around the point that it explains.
    point_error : (n,) array
        Score of the model minus score of the surrogate, at the point itself; NaN: not known.
    seconds : float
        How long it took to make.

    Examples
    --------
    >>> import numpy as np
    >>> surrogate = Surrogate("lime", np.ones((1, 2)), np.zeros(1), np.ones(1), np.zeros(1))
    >>> surrogate.score(np.array([[2.0, 1.0]]))
    array([3.])
    """

    name: str
    coef: Floats
    intercept: Floats
    r2: Floats
    point_error: Floats
    seconds: float = math.nan

    def score(self, points: Floats) -> Floats:
        """Score of point i under the i-th surrogate."""
        return np.asarray(np.einsum("ij,ij->i", points, self.coef) + self.intercept)
