"""Two classes of points in the plane, and the shifts of mean and variance that may befall them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from holdfast.datasets.dataset import Column, Dataset
from holdfast.machinery.numbers import Floats, check_count, check_random_state, refuse, to_number

_MEAN, _VARIANCE = 2.0, 0.5
_COLUMNS = (
    Column("X0", "number", "first coordinate", actionable=True),
    Column("X1", "number", "second coordinate", actionable=True),
)


def make_gaussians(
    n: int = 1000, random_state: int = 0, mean_shift: float = 0.0, variance_shift: float = 0.0
) -> Dataset:
    """Draw the synthetic data of the literature: two Gaussians, one for each outcome.

    The denied have mean (-2, -2), the approved (2, 2), and both the covariance 0.5 I: the data of
    Upadhyay, Joshi and Lakkaraju (2021, ROAR), which Nguyen et al. (2022, RBR) use too. The shifts
    are those of Kayastha, Gkatzelis and Jabbari (learning-augmented robust recourse): both means
    move by `mean_shift` in both coordinates, and the covariances grow by the factor
    1 + `variance_shift`; they take 1.5 and 3. Random numbers are drawn in their order, so that the
    same seed gives their points.

    Parameters
    ----------
    n : int
        Number of points, even: half of them for each outcome.
    mean_shift, variance_shift : float
        How the future differs from today; both 0 is today.

    Examples
    --------
    >>> today = make_gaussians()
    >>> today.features.shape, int(today.approved.sum())
    ((1000, 2), 500)
    >>> later = make_gaussians(mean_shift=1.5, variance_shift=3.0)
    >>> (later.features.mean() - today.features.mean()).round(1).tolist()
    [1.5, 1.5]
    """
    check_count("n", n, least=2)
    if n % 2:
        refuse("n", n, "even: half of the points for each outcome")
    check_random_state(random_state)
    if not math.isfinite(to_number(mean_shift)):
        refuse("mean_shift", mean_shift, "a finite number")
    if not -1.0 < to_number(variance_shift) < math.inf:
        refuse("variance_shift", variance_shift, "a finite number greater than -1")
    rng = np.random.default_rng(random_state)
    today = _two_classes(rng, n // 2, 0.0, 0.0)
    later = _two_classes(rng, n // 2, mean_shift, variance_shift)
    rng.shuffle(today)
    rng.shuffle(later)
    points = later if mean_shift or variance_shift else today
    return Dataset(
        name="Two Gaussians",
        features=pd.DataFrame(points[:, :2], columns=["X0", "X1"]),
        approved=pd.Series(points[:, 2] == 1.0, name="approved"),
        columns=_COLUMNS,
        licence="none needed",
        citation=(
            "Upadhyay, S., Joshi, S. and Lakkaraju, H. (2021). Towards Robust and Reliable "
            "Algorithmic Recourse. NeurIPS."
        ),
        source="drawn at random",
        sha256="",
    )


def _two_classes(rng: np.random.Generator, half: int, move: float, growth: float) -> Floats:
    """Return the denied, then the approved; the outcome is the last column."""
    covariance = (1.0 + growth) * _VARIANCE * np.eye(2)
    classes = [
        rng.multivariate_normal(np.full(2, sign * _MEAN + move), covariance, half)
        for sign in (-1.0, 1.0)
    ]
    return np.column_stack([np.vstack(classes), np.repeat([0.0, 1.0], half)])
