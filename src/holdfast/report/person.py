"""One person, as a page shows them: the decision, the ways, what is in the way, how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.result.status import Status

if TYPE_CHECKING:
    from holdfast.recommend import Recommendations


@dataclass(frozen=True)
class ChangeFigures:
    """One change of a way.

    Attributes
    ----------
    name : str
        The feature.
    before, after : str
        As they are written, without the unit.
    unit : str
    effort : float
        What this change costs; 0 where it follows from others.
    follows : bool
        Whether it follows from other changes by itself.
    """

    name: str
    before: str
    after: str
    unit: str
    effort: float
    follows: bool


@dataclass(frozen=True)
class WayFigures:
    """One way.

    Attributes
    ----------
    option : int
        From 1.
    status : Status
    changes : list of ChangeFigures
        Dearest first; what follows comes last.
    cost, gap : float
    current_validity, worst_case_validity : float
        After the change, under today's model and under the worst of the set; NaN without
        probabilities.
    current, worst_case : str
        The same as they are told, rounded down, perhaps in points: "62%", "612 points"; empty
        without probabilities.
    proof : str
        The sentence that says what is proven.
    """

    option: int
    status: Status
    changes: list[ChangeFigures]
    cost: float
    gap: float
    current_validity: float
    worst_case_validity: float
    current: str
    worst_case: str
    proof: str


@dataclass(frozen=True)
class Barrier:
    """Constraints that are in the way together, and what it would cost without them."""

    words: str
    features: list[str]
    cost: float


@dataclass(frozen=True)
class PersonFigures:
    """All that is shown of one person.

    Attributes
    ----------
    status : Status
    problem : str
        Why the row cannot be used; empty if it can.
    approved : bool or None
        Whether today's model approves the person as they are; None if the row cannot be used.
    validity : float
        The probability that today's model gives; NaN without probabilities.
    gives : str
        The same as it is told: "38%", "571 points".
    threshold : float
        The probability from which on today's model approves; NaN without probabilities.
    wanted : str
        What is asked for: "50%", "600 points".
    crowd : str
        The models of the set, in the singular: "every model within a radius of 0.1 of today's".
    summary : str
        All of it in words, as `Recommendations.explain` says it.
    ways : list of WayFigures
    barriers : list of Barrier
        Where nothing helps: what is in the way, the cheapest release first.
    reachable : str
        Where nothing helps: the best within reach, "43%"; empty if not known.
    reachable_radius : float
        Where nothing helps: up to which radius it is possible; NaN if at none, or not known.
    note : str
        Where nothing helps, or no way could be told: the rest of it, in words.
    """

    status: Status
    problem: str
    approved: bool | None
    validity: float
    gives: str
    threshold: float
    wanted: str
    crowd: str
    summary: str
    ways: list[WayFigures]
    barriers: list[Barrier]
    reachable: str
    reachable_radius: float
    note: str


def look_at(result: Recommendations, label: Any) -> PersonFigures:
    """Say all that is shown of one person."""
    raise NotImplementedError
