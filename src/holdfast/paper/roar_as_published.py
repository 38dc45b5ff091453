"""ROAR with the loss of its authors' code, for reproducing the paper and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.methods.roar import Roar, cross_entropy, loss_and_slope
from holdfast.paper.bceloss import LARGEST_LOSS, share_left_by_bceloss


@dataclass(frozen=True)
class RoarAsPublished(Roar):
    """ROAR with torch's `BCELoss`, which is flat where the probability is below 1e-12.

    A point there has no gradient and never leaves its place.

    Examples
    --------
    >>> import holdfast
    >>> from holdfast.paper import RoarAsPublished
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> found = holdfast.find_recourse(
    ...     [[-900.0]], ([0.1], 0.0), RoarAsPublished(), robust_to=ball, cost_weight=0.1
    ... )
    >>> found.recourse
    array([[-900.]])
    """

    name = "roar_as_published"
    summary = "ROAR as its authors' code has it: with torch's BCELoss"
    guarantees = "none: where the model is sure, a point never moves"

    def pace(self, stop: NDArray[np.int8]) -> ClampedPace:
        """Return what the kernel reads of the settings."""
        return ClampedPace(*super().pace(stop))


class ClampedPace(NamedTuple):
    """A `holdfast.methods.roar.Pace` that chooses the clamped loss."""

    learning_rate: float
    tolerance: float
    max_steps: int
    stop: NDArray[np.int8]


@kernel
def clamped_cross_entropy(score):
    """Cross-entropy of the score and its steepness, as torch's BCELoss has them."""
    loss, slope = cross_entropy(score)
    return min(loss, LARGEST_LOSS), slope * share_left_by_bceloss(score)


@overload(loss_and_slope)
def _clamped_loss_and_slope(score, pace):
    if pace.instance_class is ClampedPace:
        return lambda score, pace: clamped_cross_entropy(score)
    return None
