"""What the compiled methods share."""

from __future__ import annotations

from holdfast.machinery.compile import kernel
from holdfast.problem.losses import sigmoid

CONVERGED, STEP_LIMIT = 0, 1
# torch's BCELoss divides by max(p (1 - p), 1e-12)
_CLAMP = 1e-12


@kernel
def sign_of(number):
    """Sign, 0 at 0."""
    if number > 0.0:
        return 1.0
    return -1.0 if number < 0.0 else 0.0


@kernel
def share_left_by_bceloss(score):
    """How much of the slope torch's BCELoss leaves: all, but for scores beyond 27.6."""
    return min(1.0, sigmoid(score) * sigmoid(-score) / _CLAMP)
