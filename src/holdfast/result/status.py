"""What became of a row: the one promise that every solver keeps, and the words for it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, FOUND, OUT_OF_BOUNDS
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
    Status.OPTIMAL: "This is provably the best recourse.",
    Status.ALREADY_VALID: "Every model in the set already gives what was asked for; no change is "
    "needed.",
    Status.STILL_REFUSED: "This is provably the best answer to what was asked, but today's model "
    "still refuses it. To get an approval, ask for a guarantee, or for a higher one.",
    Status.INFEASIBLE: "No change within the bounds gives the guarantee.",
    Status.NOT_FOUND: "No usable recourse was found.",
    Status.PROVEN_VALID: "Every network in the set provably gives this recourse at least the "
    "guarantee. A cheaper recourse may exist.",
    Status.ACCEPTED: "The model itself accepts this recourse. The model is not linear, so "
    "nothing is proven about cheaper recourses or other models.",
    Status.NOT_VALID: "The model itself refuses this recourse, gives it less than the guarantee, "
    "or is not proven to give it that much.",
    Status.FRACTIONAL: "The recourse moves a category to a value that is not one of its levels, "
    "which nobody can do, so it is for study only. For advice that people can follow, use "
    "RobustRecourse.",
    Status.GAP_OPEN: "Optimality is not proven; something better may exist.",
    Status.OUT_OF_BOUNDS: "The point lies outside its own bounds; correct the point or the bounds.",
    Status.INVALID_INPUT: "The row cannot be used.",
}


def are_proven(status: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Say of each status whether it `is_proven`."""
    proven = np.zeros(status.shape, dtype=bool)
    for each in Status:
        if each.is_proven:
            proven |= status == each
    return proven


def tell_proven_apart(
    goal: Goal,
    status: NDArray[np.object_],
    stays: NDArray[np.bool_],
    worst_score: Floats,
    refused: NDArray[np.bool_],
) -> None:
    """Sort rows that are proven by what the set of models makes of them, and whom today's refuses.

    Whoever has the model itself asks it about the latter: scores that are computed apart differ by
    a hair, and so may the decision.
    """
    proven = are_proven(status)
    status[proven] = Status.OPTIMAL
    status[proven & (worst_score >= goal.enough) & stays] = Status.ALREADY_VALID
    status[proven & refused] = Status.STILL_REFUSED


def network_statuses(holds: NDArray[np.bool_], stays: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Say of recourses whether every network of a set is proven to give them the guarantee."""
    status = np.empty(len(holds), dtype=object)
    status[:] = Status.NOT_VALID
    status[holds] = Status.PROVEN_VALID
    status[holds & stays] = Status.ALREADY_VALID
    return status


class MethodStatus(StrEnum):
    """What a method reports about its own run on a row; `Status` says what its recourse is worth.

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
    MethodStatus.CONVERGED: "The method met its own stopping rule.",
    MethodStatus.STEP_LIMIT: "The method ran out of steps.",
    MethodStatus.NOT_VALID: "The method ended at a point that today's model refuses.",
    MethodStatus.NOT_RUN: "The method was not run on this row, because the row cannot be used.",
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
            above = price
            hair = GAP_TOLERANCE * (1.0 + abs(goal.amount))
            sure = (known.rounding <= hair) | (known.worst_score - known.rounding >= goal.amount)
            sure &= known.worst_score >= goal.amount
        else:
            above = known.loss_above + goal.amount * known.cost
            sure = np.ones(1, dtype=bool)
        allowed = allowed_gap(goal, price, tolerance, known.unit)
        closed = (above - lower_bound <= allowed) & (price - lower_bound >= -allowed)
        return np.asarray(np.isfinite(price) & sure & closed)


def allowed_gap(
    goal: Goal, price: Floats, tolerance: float = GAP_TOLERANCE, unit: Floats | float = 0.0
) -> Floats:
    """Return the largest gap of a proof; what differs by less is rounding.

    `unit` is the least cost of a unit of score, which is on top for a guarantee: where it is not
    known, a proof may leave at least this.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # a tolerance of 0, an infinite price
        on_top = unit if goal.is_guarantee else 1.0
        return np.asarray(tolerance * (np.abs(price) + on_top))


def believed_bound(price: Floats, lower_bound: Floats, allowed: Floats) -> Floats:
    """Return what is believed of bounds, beside answers of such a price.

    A bound a hair above the price that it proves is rounding. One further above it is refuted: then
    no more is known than that neither costs nor losses are below 0.
    """
    with np.errstate(invalid="ignore"):
        trusted = np.where(lower_bound - price > allowed, 0.0, price)
        return np.where(lower_bound > price, trusted, lower_bound)


def reassess(status: NDArray[np.object_], gap: Floats, allowed: Floats) -> NDArray[np.object_]:
    """Return statuses with what was proven left open where the gap is larger than allowed.

    `is_proven` decides what a solver has proven. This is for what happens to an answer afterwards:
    a bound is lowered, or a price rises because it is rounded. Rounding of the score is no part
    of it, for `is_proven` has counted that already.
    """
    status = status.copy()
    status[are_proven(status) & ~(gap <= allowed)] = Status.GAP_OPEN
    return status


def statuses_of(
    goal: Goal, found: Found, proven: NDArray[np.bool_], known: Appraisal, X: Floats
) -> NDArray[np.object_]:
    """Say what became of each row; what is neither FOUND nor EXHAUSTED cannot be used."""
    outcome = found.outcome
    status = np.empty(len(outcome), dtype=object)
    status[:] = Status.INVALID_INPUT  # np.full would turn it into a plain string
    status[(outcome == FOUND) | (outcome == EXHAUSTED)] = Status.GAP_OPEN
    status[(outcome == FOUND) & proven] = Status.OPTIMAL
    stays = (found.recourse == X).all(axis=1)
    # today's model is one of the set: it gives no less than the worst of them, but for rounding
    refused = np.fmax(known.score, known.worst_score) < goal.cutoff
    tell_proven_apart(goal, status, stays, known.worst_score, refused)
    status[(outcome == EXHAUSTED) & (found.lower_bound == np.inf)] = Status.INFEASIBLE
    status[outcome == OUT_OF_BOUNDS] = Status.OUT_OF_BOUNDS
    return status
