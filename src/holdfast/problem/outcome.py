"""What a solver says of a row: one enum, and its members as the plain numbers that kernels use."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """What became of a row in a solver; compared by name, never by order."""

    FOUND = 0
    EXHAUSTED = 1  # the goal is out of reach
    UNBOUNDED = 2  # ... of nobody: there is no end
    NOT_FINITE = 3
    OUT_OF_BOUNDS = 4
    BAD_BOUNDS = 5
    BAD_COST = 6
    LIMIT = 7  # the search was stopped: what it has may not be the best
    NO_ROOM = 8  # the search needs a larger stack
    UNSETTLED = 9  # within a solver alone: it goes on


# for kernels, which are compiled once for plain numbers
FOUND = int(Outcome.FOUND)
EXHAUSTED = int(Outcome.EXHAUSTED)
UNBOUNDED = int(Outcome.UNBOUNDED)
NOT_FINITE = int(Outcome.NOT_FINITE)
OUT_OF_BOUNDS = int(Outcome.OUT_OF_BOUNDS)
BAD_BOUNDS = int(Outcome.BAD_BOUNDS)
BAD_COST = int(Outcome.BAD_COST)
LIMIT = int(Outcome.LIMIT)
NO_ROOM = int(Outcome.NO_ROOM)
UNSETTLED = int(Outcome.UNSETTLED)
