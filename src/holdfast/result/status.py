"""What became of a row: the one promise that every solver keeps, and the words for it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from holdfast.core.outcome import EXHAUSTED, FOUND, OUT_OF_BOUNDS
from holdfast.machinery.numbers import Floats
from holdfast.problem.goal import Goal
from holdfast.result.appraisal import Appraisal
from holdfast.result.found import Found

# A row is called optimal when the proof leaves at most this, relative to 1 + price; for a
# guarantee, relative to its cost + the least cost of a unit of score (`is_proven`).
GAP_TOLERANCE = 1e-9


class Status(StrEnum):
    """What became of a row.

    Examples
    --------
    >>> Status.INFEASIBLE.sentence
    'No change within the bounds gives the guarantee.'
    >>> Status.OPTIMAL == "optimal"
    True
    """

    OPTIMAL = "optimal"
    ALREADY_VALID = "already valid"
    STILL_REFUSED = "still refused"
    INFEASIBLE = "infeasible"
    NOT_FOUND = "not found"
    PROVEN_VALID = "proven valid"
    ACCEPTED = "accepted"
    NOT_VALID = "not valid"
    FRACTIONAL = "fractional"
    GAP_OPEN = "gap open"
    OUT_OF_BOUNDS = "out of bounds"
    INVALID_INPUT = "invalid input"

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return _SENTENCES[self]

    @property
    def is_proven(self) -> bool:
        """Whether it is proven that nothing better exists."""
        return self in (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)


_SENTENCES = {
    Status.OPTIMAL: "The best recourse there is, proven by its bound.",
    Status.ALREADY_VALID: "Every model of the set approves this point as it is; nothing to do.",
    Status.STILL_REFUSED: "The best that was asked for, proven; but today's model still refuses "
    "this point. Ask for a guarantee, or a higher one, to get a yes.",
    Status.INFEASIBLE: "No change within the bounds gives the guarantee.",
    Status.NOT_FOUND: "The method brought back no finite point.",
    Status.PROVEN_VALID: "Every network of the set gives this recourse at least the guarantee, "
    "proven; that nothing is cheaper is not.",
    Status.ACCEPTED: "The model itself accepts this recourse. It is not linear, so nothing is "
    "proven about cheaper recourses or about other models.",
    Status.NOT_VALID: "The model itself refuses this recourse, gives less than the guarantee, or "
    "is not proven to give it.",
    Status.FRACTIONAL: "The recourse moves a category to none of its levels, which nobody can do: "
    "it is for study. For advice that people can follow use RobustRecourse.",
    Status.GAP_OPEN: "It is not proven that nothing better exists.",
    Status.OUT_OF_BOUNDS: "The point lies outside its own bounds; correct one of them.",
    Status.INVALID_INPUT: "The row cannot be used.",
}


def are_proven(status: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Say of each status whether it `is_proven`."""
    proven = np.zeros(status.shape, dtype=bool)
    for each in Status:
        if each.is_proven:
            proven |= status == each
    return proven


def sort_proven(
    status: NDArray[np.object_],
    stays: NDArray[np.bool_],
    worst_score: Floats,
    score: Floats,
    cutoff: float,
    target: float | None,
) -> None:
    """Sort rows that are proven by what a model, which accepts from `cutoff` on, makes of them.

    `target` is the worst-case score that was asked for; None: the least price was.
    """
    proven = are_proven(status)
    enough = cutoff if target is None else target
    status[proven] = Status.OPTIMAL
    status[proven & (worst_score >= enough) & stays] = Status.ALREADY_VALID
    status[proven & (score < cutoff)] = Status.STILL_REFUSED


class MethodStatus(StrEnum):
    """What a method says of its own run on a row; what its recourse is worth, `Status` says.

    Examples
    --------
    >>> MethodStatus.STEP_LIMIT.sentence
    'The method ran out of steps.'
    """

    CONVERGED = "converged"
    STEP_LIMIT = "step limit"
    NOT_VALID = "not valid"
    NOT_RUN = "not run"

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return _METHOD_SENTENCES[self]


_METHOD_SENTENCES = {
    MethodStatus.CONVERGED: "The method stopped by its own rule.",
    MethodStatus.STEP_LIMIT: "The method ran out of steps.",
    MethodStatus.NOT_VALID: "The method ended at a point that today's model turns down.",
    MethodStatus.NOT_RUN: "The method was not run on this row: it cannot be used.",
}


def is_proven(
    goal: Goal, tolerance: float, price: Floats, lower_bound: Floats, known: Appraisal
) -> NDArray[np.bool_]:
    """Say which recourses are proven to be the best: the one promise that every solver keeps.

    The gap is at most ``tolerance * (price + unit)``. The unit is 1 for a price, which a loss is
    measured in; for a guarantee it is the least cost of a unit of score, so that the promise is the
    same in whatever unit costs are given. What rounding can take off the score counts as part
    of the gap, and a guarantee is not proven where it could undo it.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if goal.is_guarantee:
            above, unit = price, known.unit
            hair = GAP_TOLERANCE * (1.0 + abs(goal.level))
            sure = (known.rounding <= hair) | (known.worst_score - known.rounding >= goal.level)
            sure &= known.worst_score >= goal.level
        else:
            above, unit = known.loss_above + goal.level * known.cost, np.ones(1)
            sure = np.ones(1, dtype=bool)
        most = tolerance * (np.abs(price) + unit)
        closed = (above - lower_bound <= most) & (price - lower_bound >= -most)
        return np.asarray(np.isfinite(price) & sure & closed)


def proof_room(price: Floats, is_guarantee: bool) -> Floats:
    """Return a gap that a proof may leave, whatever a unit of score costs, which counts on top."""
    return GAP_TOLERANCE * (np.abs(price) + (0.0 if is_guarantee else 1.0))


def statuses_of(
    goal: Goal, found: Found, proven: NDArray[np.bool_], known: Appraisal, X: Floats
) -> NDArray[np.object_]:
    """Say what became of each row; what is neither FOUND nor EXHAUSTED cannot be used."""
    outcome = found.outcome
    status = np.empty(len(outcome), dtype=object)
    status[:] = Status.INVALID_INPUT  # np.full would turn it into a plain string
    status[(outcome == FOUND) | (outcome == EXHAUSTED)] = Status.GAP_OPEN
    best = (outcome == FOUND) & proven
    status[best] = Status.OPTIMAL
    if not goal.is_guarantee:
        status[best & (known.score < 0.0)] = Status.STILL_REFUSED
    approved = known.worst_score >= (goal.level if goal.is_guarantee else 0.0)
    status[best & approved & (found.recourse == X).all(axis=1)] = Status.ALREADY_VALID
    status[(outcome == EXHAUSTED) & (found.lower_bound == np.inf)] = Status.INFEASIBLE
    status[outcome == OUT_OF_BOUNDS] = Status.OUT_OF_BOUNDS
    return status
