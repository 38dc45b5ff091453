"""Sentences about rows of a result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.numerals import below
from holdfast.problem.costs import Evening
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.problem import RecourseProblem, wrong_bounds
from holdfast.result.appraisal import score_roundings
from holdfast.result.status import GAP_TOLERANCE, Status

if TYPE_CHECKING:
    from holdfast.result.result import RecourseResult


def sentence(result: RecourseResult, i: int) -> str:
    """Say what became of row i."""
    if result.bracket is not None:
        return _of_the_guarantee(result, i)
    if isinstance(result.problem.robust_to, LastLayer):
        return _of_the_network(result, i)
    said, surrogate = _of_the_score(result, i), result.surrogate
    if surrogate is None or result.status[i] in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
        return said
    if not result.has_recourse[i]:
        return f"{said} This applies to the {surrogate.name} surrogate, not to the model itself."
    found = (
        f"It was found for the {surrogate.name} surrogate, a linear score that stands in for the "
        "model"
    )
    if np.isnan(result.current_validity[i]):  # a margin is no probability
        return f"{said} {found}."
    chance = f"{result.current_validity[i]:.4g}"
    return f"{said} {found}; the model itself gives the recourse a probability of {chance}."


def _of_the_network(result: RecourseResult, i: int) -> str:
    """Say it of the network itself, whose worst last layer is known."""
    status: Status = result.status[i]
    if status in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
        return unusable(result.problem.row(i))
    if not result.has_recourse[i]:
        return status.sentence
    said = "The model itself accepts this recourse."
    if status is not Status.ACCEPTED:
        said = status.sentence
    least = below(result.worst_case_validity[i], digits=4)  # no more than is proven
    return (
        f"{said} {_upper(result.problem.robust_to.crowd)} provably gives it a probability of at "
        f"least {least}. A recourse with a lower price may exist."
    )


def _of_the_guarantee(result: RecourseResult, i: int) -> str:
    """Say what is proven of a recourse for a network, and what is not."""
    status: Status = result.status[i]
    if status in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
        return unusable(result.problem.row(i))
    if not result.has_recourse[i]:
        return status.sentence
    every = _networks(result)
    proven = f"a probability of at least {_percent(result.worst_case_validity[i])}"
    if status is Status.ALREADY_VALID:
        return f"{_upper(every)} provably gives this point {proven} as it is; no change is needed."
    if status is Status.NOT_VALID:
        return _not_valid(result, i)
    said = f"{_upper(every)} then provably gives {proven}. A cheaper way may exist."
    return f"{said} {status.sentence}" if status is Status.FRACTIONAL else said


def _not_valid(result: RecourseResult, i: int) -> str:
    """Say of a row without a proven recourse how near it came."""
    every, proven = _networks(result), _percent(result.worst_case_validity[i])
    assert result.guarantee is not None
    if result.worst_case_score[i] >= result.goal.amount:
        return (
            f"{_upper(every)} then provably gives a probability of at least {proven}, but today's "
            "model still refuses that. To get an approval, ask for a higher guarantee."
        )
    wanted = f"{100.0 * result.guarantee:.4g}%"
    return (
        f"No change was found that provably gets a probability of {wanted} from {every}, but one "
        f"may still exist. The best one found provably gets {proven}."
    )


def _networks(result: RecourseResult) -> str:
    """All networks of the set, as named in a sentence."""
    return result.problem.robust_to.crowd_of("network")


def _percent(probability: float) -> str:
    """A percentage, no more than the probability."""
    return f"{math.floor(1e3 * probability) / 10.0:g}%"


def _upper(said: str) -> str:
    return said[:1].upper() + said[1:]


def _of_the_score(result: RecourseResult, i: int) -> str:
    """Say it of the linear score that was solved for."""
    status: Status = result.status[i]
    if status in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
        return unusable(result.problem.row(i))
    of_surrogate = result.surrogate is not None and result.method == "exact"
    if status is Status.INFEASIBLE or (status is Status.NOT_FOUND and of_surrogate):
        return _infeasible(result, i)
    if result.stays[i] and status in (Status.OPTIMAL, Status.STILL_REFUSED):
        said = "No change is worth its cost: staying put provably has the lowest price"
        if result.goal.is_guarantee:
            said = "The guarantee is met without a change"
        refused = ", but today's model still refuses." if status is Status.STILL_REFUSED else "."
        return said + refused
    if status is Status.GAP_OPEN:
        return _unknown_score(result, i) or _open(result, i)
    return status.sentence


def _open(result: RecourseResult, i: int) -> str:
    bound = f"{result.lower_bound[i]:.6g}"
    if not result.has_recourse[i]:
        if np.isnan(result.lower_bound[i]):
            return "No recourse was found. Nothing is proven either: the numbers are too large."
        return f"No recourse was found. All that is proven is that none costs less than {bound}."
    price = f"{result.price[i]:.6g}"
    return (
        f"This recourse has a price of {price}. All that is proven is that no recourse has a "
        f"price below {bound}."
    )


def _unknown_score(result: RecourseResult, i: int) -> str:
    """Say that the score of row i is mostly rounding; nothing where it is not."""
    row = result.problem.row(i)
    x = result.recourse_array[i : i + 1] if result.has_recourse[i] else row.X
    rounding, score = score_roundings(row, x)[0], abs(row.score(x)[0])
    if rounding <= GAP_TOLERANCE * (1.0 + score):
        return ""
    return (
        f"The score of this row is known only to within {rounding:.2g}: its terms are so large "
        "that, after rounding, nothing can be proven."
    )


def _infeasible(result: RecourseResult, i: int) -> str:
    radius, reach = result.reachable_radius[i], result.reachable_validity[i]
    row, robust_to = result.problem.row(i), result.problem.robust_to
    bounded = np.isfinite(row.lower).any() or np.isfinite(row.upper).any()
    which = "No change within the bounds" if bounded else "No change"
    asked = "reaches the required score"
    if result.guarantee is not None:
        asked = f"gives a probability of {result.guarantee:.4g}"
    best = f": at most {reach:.4g} is within reach" if np.isfinite(reach) else ""
    said = f"{which} {asked} under {robust_to.crowd}{best}."
    if radius == 0.0:
        return f"{said} It is possible only with today's model alone."
    if np.isfinite(radius):
        return f"{said} Any radius below {radius:.4g} would work."
    if np.isfinite(reach) and robust_to.radius > 0.0 and robust_to.has_size:
        return f"{said} It is impossible even with today's model alone."
    return said


def unusable(row: RecourseProblem) -> str:
    """Say which value of a one-row problem makes it unusable."""
    names = row.names
    numbers = np.concatenate([row.X[0], row.coef[0], row.intercept])
    labels = [*names, *(f"coefficient of {name}" for name in names), "intercept"]
    for label, number in zip(labels, numbers, strict=True):
        if not np.isfinite(number):
            return f"The row cannot be used: {label} is {number}, but it must be a finite number."
    for name, cost in zip(names, row.feature_costs[0], strict=True):
        if not 0.0 < cost < np.inf:
            return (
                f"The row cannot be used: the cost of {name} is {cost}, but it must be positive "
                "and finite."
            )
    if Evening.of(row.feature_costs).is_uneven[0]:
        low, high = np.argmin(row.feature_costs[0]), np.argmax(row.feature_costs[0])
        return (
            f"The row cannot be used: the costs of {names[low]} and {names[high]} differ too much "
            f"to compute with ({row.feature_costs[0, low]:g} and {row.feature_costs[0, high]:g})."
        )
    lower, upper, point = row.lower[0], row.upper[0], row.X[0]
    wrong = wrong_bounds(lower, upper)
    if wrong.any():
        k = int(np.argmax(wrong))
        return (
            f"The row cannot be used: the bounds of {names[k]} are [{lower[k]:g}, {upper[k]:g}], "
            "which is not a valid range."
        )
    if np.all((lower <= point) & (point <= upper)):
        return (
            "The row cannot be used: the cost weight times the cost is too large or too small to "
            "represent."
        )
    k = int(np.argmax(~((lower <= point) & (point <= upper))))
    return f"{names[k]} is {point[k]:g}, outside its own bounds [{lower[k]:g}, {upper[k]:g}]."
