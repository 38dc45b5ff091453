"""What torch's BCELoss does to a slope: the trap of the authors' code."""

from __future__ import annotations

from holdfast.machinery.compile import kernel
from holdfast.problem.losses import sigmoid

# it cuts the loss here ...
LARGEST_LOSS = 100.0
# ... and divides by max(p (1 - p), 1e-12)
_CLAMP = 1e-12


@kernel
def share_left_by_bceloss(score):
    """How much of the slope torch's BCELoss leaves: all, but for scores beyond 27.6."""
    return min(1.0, sigmoid(score) * sigmoid(-score) / _CLAMP)
