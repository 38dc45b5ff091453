"""What the compiled methods share."""

from __future__ import annotations

from enum import IntEnum

from holdfast.machinery.compile import kernel


class RunEnd(IntEnum):
    """How a compiled method's run on a row ended; `MethodStatus` says it in words."""

    CONVERGED = 0
    STEP_LIMIT = 1


# for kernels, which are compiled once for plain numbers
CONVERGED = int(RunEnd.CONVERGED)
STEP_LIMIT = int(RunEnd.STEP_LIMIT)


@kernel
def sign_of(number):
    """Sign, 0 at 0."""
    if number > 0.0:
        return 1.0
    return -1.0 if number < 0.0 else 0.0
