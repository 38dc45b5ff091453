"""What the compiled methods share."""

from __future__ import annotations

from holdfast.machinery.compile import kernel

CONVERGED, STEP_LIMIT = 0, 1


@kernel
def sign_of(number):
    """Sign, 0 at 0."""
    if number > 0.0:
        return 1.0
    return -1.0 if number < 0.0 else 0.0
