"""One person, as a page shows them: the decision, the ways, what is in the way, how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.problem.ball import NormBall
from holdfast.recommend import RobustRecourse
from holdfast.recommend.opposing import Opposing
from holdfast.recommend.reasons import Release
from holdfast.recommend.sizes import NoSizes, SizeCurve
from holdfast.recommend.words import (
    afterwards,
    best_words,
    explanation,
    hopeless_words,
    in_the_way,
    proof_words,
    without_change,
)
from holdfast.report.charts import About, SizeLine, SizeTexts, size_chart
from holdfast.report.parts import features_that_follow
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend import Recommendations

_POINTS = 16  # of a curve that is drawn again after every click
MOST_BARRIERS = 3


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
        What this change costs; 0 for what is derived.
    follows : bool
        Whether it follows from other changes by itself: derived, or linked by `Follows`.
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
        Dearest first; what follows comes last. Empty where the person need not change anything.
    held : list of str
        What this way leaves as it is, so that it differs from those before it.
    cost, gap : float
    current_validity, worst_case_validity : float
        After the change, under today's model and under the worst of the set; NaN without
        probabilities.
    current, worst_case : str
        The same as they are told, rounded down, perhaps in points: "62%", "612 points"; empty
        without probabilities.
    proof : str
        The sentence that says what is proven: "This is provably the cheapest way."
    afterwards : str
        What the models make of it, in words, and whether today's would still refuse.
    """

    option: int
    status: Status
    changes: list[ChangeFigures]
    held: list[str]
    cost: float
    gap: float
    current_validity: float
    worst_case_validity: float
    current: str
    worst_case: str
    proof: str
    afterwards: str


@dataclass(frozen=True)
class Barrier:
    """Constraints that are in the way together, and what it would cost without them.

    Attributes
    ----------
    words : str
        "age may rise by at most 2 years".
    features : list of str
        Those whose constraints they are; how many features may change is nobody's.
    cost : float
    """

    words: str
    features: list[str]
    cost: float


@dataclass(frozen=True)
class PersonFigures:
    """All that is shown of one person.

    Attributes
    ----------
    status : Status
    complaint : str
        Why the row cannot be used; empty if it can.
    approved : bool or None
        Whether today's model approves the person as they are; None if the row cannot be used.
    initial_validity : float
        The probability that today's model gives; NaN without probabilities.
    gives : str
        The same as it is told: "38%", "571 points".
    threshold : float
        The probability from which on today's model approves; NaN without probabilities.
    wanted : str
        What is asked for: "50%", "600 points"; empty with a cost weight, which asks for neither.
    is_robust : bool
        Whether the advice allows for other models than today's.
    summary : str
        All of it in words, as `Recommendations.explain` says it; but what is protected, or computed
        from something that is, is never said to be in the way.
    ways : list of WayFigures
        Of a person who need not change anything: one, with no changes.
    barriers : list of Barrier
        Where nothing helps: what is in the way, the cheapest release first, at most three.
    reachable : str
        Where nothing helps: the best within reach, "43%"; empty if not known.
    reachable_radius : float
        Where nothing helps: up to which radius it is possible; NaN if at none, or not known.
    note : str
        Where nothing helps, nothing need be done, or no way could be told: that, in words; what
        `barriers` say is not repeated.
    """

    status: Status
    approved: bool | None
    threshold: float
    wanted: str
    is_robust: bool
    summary: str
    complaint: str = ""
    initial_validity: float = math.nan
    gives: str = ""
    ways: list[WayFigures] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)
    reachable: str = ""
    reachable_radius: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class SureFigures:
    """How sure an advice is, and what it costs to be surer.

    Attributes
    ----------
    curve : SizeCurve or None
        The cost of every size of the set; None where there is none to be told.
    note : str
        Why there is none; otherwise empty.
    radius : float
        The size in use; NaN for a list of models, which has none.
    plain, way : WayFigures or None
        The cheapest way under today's model alone, and under the whole set; None without one.
    opposing : Opposing or None
        The model of the set that gives the plain way the least; None if all of them give enough.
    words : str
        What the set makes of the plain way, in words.
    """

    curve: SizeCurve | None
    note: str
    radius: float
    plain: WayFigures | None
    way: WayFigures | None
    opposing: Opposing | None
    words: str


def look_at(result: Recommendations, label: Any) -> PersonFigures:
    """Say all that is shown of one person."""
    status, complaint = result.status_of(label), result.why_refused(label)
    about = PersonFigures(
        status=status,
        approved=result.is_approved(label),
        threshold=result.threshold,
        wanted=result.wanted if math.isfinite(result.threshold) else "",
        is_robust=result.robust_to.radius > 0.0,
        summary="",
        complaint=complaint or "",
    )
    if complaint is not None:
        return replace(about, summary=explanation(result, label))
    about = replace(
        about, initial_validity=result.initial_validity(label), gives=result.initially(label)
    )
    if status is Status.INFEASIBLE:
        return _look_at_hopeless(result, label, about)
    ways = _ways(result, label)
    changes_nothing = status is Status.ALREADY_VALID or not ways
    return replace(
        about,
        summary=explanation(result, label),
        ways=ways,
        note=without_change(result, label) if changes_nothing else "",
    )


def how_sure(recourse: RobustRecourse, person: pd.DataFrame, usual: float = 0.0) -> SureFigures:
    """Compare what one person is advised with plain recourse, for today's model alone.

    Parameters
    ----------
    recourse : RobustRecourse
    person : DataFrame
        One row, which the model can use.
    usual : float
        A size that the curve should show in any case.
    """
    if len(person) != 1:
        raise ValueError(f"how_sure takes one person, but the table has {len(person)}")
    one, label = recourse.with_settings(n_options=1), person.index[0]
    result = one.recommend(person)
    plain = one.with_settings(robust_to=NormBall(p=1, radius=0.0)).recommend(person)
    ways, plain_ways = _ways(result, label), _ways(plain, label)
    curve, note = None, ""
    try:
        curve = result.sizes(label, _POINTS, at_least=usual)
    except NoSizes as why:
        note = str(why)
    opposing = plain.opposing(label, result.robust_to) if plain_ways else None
    return SureFigures(
        curve=curve,
        note=note,
        radius=result.radius,
        plain=plain_ways[0] if plain_ways else None,
        way=ways[0] if ways else None,
        opposing=opposing,
        words=_sure_words(plain, label, result, opposing),
    )


def sure_chart(sure: SureFigures) -> str:
    """Draw what every size costs, as SVG; nothing where there is no curve."""
    curve, cost = sure.curve, math.inf if sure.way is None else sure.way.cost
    if curve is None or not len(curve.cost):
        return ""
    sizes, costs = (part.tolist() for part in curve.curve())
    here, text = f"{sure.radius:.4g}", f"{cost:.3g}"
    told = f"at {here}, the size in use, it is {text}"
    beyond = "out of reach" if curve.has_end else "not known"
    if not math.isfinite(cost):
        text = told = f"{here} is {beyond}"
    about = About(
        "sizes",
        "What it costs to be surer",
        f"The lowest cost rises from {costs[0]:.3g} for today's model alone to {costs[-1]:.3g} for "
        f"a set of size {curve.end:.3g}; {told}.",
    )
    texts = SizeTexts(f"plain {costs[0]:.3g}", text, beyond, "size of the set", "cost")
    return size_chart(about, SizeLine(sizes, costs, sure.radius, cost), texts)


def _sure_words(
    plain: Recommendations, label: Any, result: Recommendations, opposing: Opposing | None
) -> str:
    if not plain.ways(label):
        return look_at(plain, label).note
    stays = not plain.told_changes(label)
    what = "the plain advice, to change nothing," if stays else "the plain advice"
    if opposing is not None:
        return opposing.explain(what)
    if result.robust_to.has_size and result.radius == 0.0:
        return "This is the plain advice: it is made for today's model alone."
    return f"{what[0].upper()}{what[1:]} happens to hold for {result.robust_to.crowd}."


def _look_at_hopeless(result: Recommendations, label: Any, about: PersonFigures) -> PersonFigures:
    """Say what is in the way; no constraint of anything protected is among the releases."""
    releases, (reach, radius) = result.releases(label), result.reachable(label)
    told = [hopeless_words(result, label)]
    if not releases:
        told.append(in_the_way(result, label, releases))
    return replace(
        about,
        summary=explanation(result, label, releases),
        barriers=[_barrier(release) for release in releases[:MOST_BARRIERS]],
        reachable=best_words(result, reach),
        reachable_radius=radius,
        note=" ".join(told),
    )


def _barrier(release: Release) -> Barrier:
    names = [each.feature for each in release.constraints if each.feature is not None]
    return Barrier(release.words, list(dict.fromkeys(names)), release.cost)


def _ways(result: Recommendations, label: Any) -> list[WayFigures]:
    return [_way(result, label, option + 1) for option in range(len(result.ways(label)))]


def _way(result: Recommendations, label: Any, option: int) -> WayFigures:
    way = result.ways(label)[option - 1]
    changes = _changes(result, label, option)
    return WayFigures(
        option=option,
        status=way.status,
        changes=changes,
        held=sorted(way.held),
        cost=way.cost,
        gap=way.gap,
        current_validity=result.probability_of(way.score),
        worst_case_validity=result.probability_of(way.worst_case_score),
        current=result.gives(way.score),
        worst_case=result.gives(way.worst_case_score),
        proof=proof_words(result, way, is_change=bool(changes)),
        afterwards=afterwards(result, way, is_change=bool(changes)),
    )


def _changes(result: Recommendations, label: Any, option: int) -> list[ChangeFigures]:
    """List the changes of a way: dearest first, and then what follows from them.

    What is computed from something protected follows by itself, and need not be named.
    """
    actions = result.actions
    follow, protected = features_that_follow(actions), actions.protected_names
    changes = [
        ChangeFigures(*each, effort=effort, follows=each.name in follow)
        for each, effort in result.told_changes(label, option).items()
        if each.name not in protected
    ]
    return sorted(changes, key=lambda change: (change.follows, -change.effort))
