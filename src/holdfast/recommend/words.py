"""Sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.actions import ActionSet, NumberFeature
from holdfast.models.encoding.reading import is_missing
from holdfast.recommend.numerals import above, at_least, below, numeral, numerals, points_down
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend.recommendations import Recommendations
    from holdfast.recommend.ways import Way


def change_words(
    people: pd.DataFrame,
    who: NDArray[np.int64],
    after: pd.DataFrame,
    changed: dict[str, NDArray[np.bool_]],
    actions: ActionSet,
) -> Iterator[tuple[int, str]]:
    """Say what each person changes, in the order of the table: 'duration from 48 to 36 months'.

    `who` are positions among `people`; they have the rows of `after` and `changed`, and a row
    comes before each text.
    """
    for name in people.columns:
        rows = np.flatnonzero(changed[name]) if name in changed else who[:0]
        if not rows.size:
            continue
        feature = actions[name]
        unit = f" {feature.unit}" if isinstance(feature, NumberFeature) and feature.unit else ""
        old, new = _texts(people[name], who[rows]), _texts(after[name], rows)
        for row, was, is_now in zip(rows.tolist(), old, new, strict=True):
            yield row, f"{name} from {was} to {is_now}{unit}"


def _texts(column: pd.Series[Any], rows: NDArray[np.int64]) -> list[str]:
    """Write some values of a column."""
    values = _plain(column, rows)
    if column.dtype == np.float64 and not np.isnan(values).any():
        return numerals(values)
    return ["not given" if is_missing(value) else numeral(value) for value in values]


def _plain(column: pd.Series[Any], rows: NDArray[np.int64]) -> list[Any]:
    """List some values; those in single precision stay what they are, to be shown as such."""
    dtype: Any = column.dtype
    if getattr(dtype, "kind", "O") == "f" and dtype != np.float64:
        return list(column.to_numpy()[rows])
    is_array = isinstance(dtype, np.dtype)
    values: Any = column.to_numpy() if is_array else column.array
    listed: list[Any] = values[rows].tolist()
    return listed


def explanation(result: Recommendations, label: Any) -> str:
    """Say what a person can do, or why nothing helps."""
    why = result.why_refused(label)
    if why is not None:
        return f"This row cannot be used: {why}."
    status, ways = result.status_of(label), result.ways(label)
    today = _today(result, label)
    if status is Status.ALREADY_VALID:
        chance = _chance(result, ways[0].worst_case_score)
        return f"{today} {_every(result)} already {chance}. You need not change anything.".strip()
    if status is Status.INFEASIBLE:
        return f"{today} {_hopeless(result, label)}".strip()
    if status is Status.NOT_FOUND:
        said = "There is a way, but no numbers that can be typed into the table achieve it."
        return f"{today} {said}".strip()
    if not ways and status is Status.GAP_OPEN:
        return f"{today} No way was found, but it could not be proven that there is none.".strip()
    if not ways:
        return f"{today} {status.sentence}".strip()
    parts = [today] if today else []
    for option in range(1, len(ways) + 1):
        parts.append(_way_words(result, label, option))
    return " ".join(parts)


def _today(result: Recommendations, label: Any) -> str:
    gives = result._gives(result._initial_score(label))
    if not gives:  # a margin is no probability
        return ""
    return f"Today's model gives you {'' if result._scale else 'a chance of '}{gives}."


def _every(result: Recommendations) -> str:
    crowd = result._robust_to.crowd
    return crowd[0].upper() + crowd[1:]


def _chance(result: Recommendations, score: float) -> str:
    gives = result._gives(score)
    if not gives:
        return "approves you"
    least = "at least " if result._robust_to.radius > 0.0 else ""
    return f"gives you {least}{gives}"


def _way_words(result: Recommendations, label: Any, option: int) -> str:
    way, changes = result.ways(label)[option - 1], result.changes(label, option)
    after = _afterwards(result, way)
    held = _listed(sorted(way.held))
    if not changes and result._is_guarantee:
        return f"You need not change anything for that. {after}"
    if not changes:
        stay = f"Without changing {held}, staying" if held else "Staying"
        proven = "provably " if way.status.is_proven else ""
        return f"{stay} as you are is {proven}the best balance of cost and chance. {after}"
    verb = "Change"
    if option > 1:
        stays = "as it is" if len(way.held) == 1 else "as they are"
        verb = f"Or leave {held} {stays} and change"
    cost = f"The cost is {way.cost:.3g}."
    return " ".join([f"{verb} {_listed(changes)}: {_proof(result, way)}", after, cost])


def _afterwards(result: Recommendations, way: Way) -> str:
    """Say what the models make of it, and whether today's would still refuse."""
    score, gives = way.score, result._gives(way.score)
    every = f"{_every(result)} then {_chance(result, way.worst_case_score)}."
    parts = []
    if result._is_guarantee:
        parts = [every]
    elif score >= result._cutoff:
        known = result._robust_to.radius > 0.0 and gives
        today = [f"Today's model then gives you {gives}."] if known else []
        parts = [*today, every]
    if score < result._cutoff:
        more = f": it gives you {gives}" if gives else ""
        parts.append(f"Today's model would still refuse you{more}.")
    return " ".join(parts)


def _proof(result: Recommendations, way: Way) -> str:
    best = "cheapest way" if result._is_guarantee else "best balance of cost and chance"
    if way.status.is_proven:
        without = f" without changing {_listed(sorted(way.held))}" if way.held else ""
        return f"provably the {best}{without}."
    better = "cheaper way" if result._is_guarantee else "better balance"
    return f"there may be a {better}, but it is better by at most {above(way.gap)}."


def _hopeless(result: Recommendations, label: Any) -> str:
    reach, radius = result.reachable(label)
    wanted, best = f"{100.0 * (result.guarantee or 0.0):.10g}%", _best(result, reach)
    if result.guarantee_points is not None:
        wanted = f"{result.guarantee_points:.10g} points"
    who = result._robust_to.crowd
    said = f"Nothing that you may change gives you {wanted} with {who}"
    if not result._has_probabilities:
        said = f"Nothing that you may change gets you approved by {who}"
    said += f": the best within reach is {best}. " if best else ". "
    if np.isfinite(radius):
        said += f"It becomes possible at a radius of {below(radius)}. "
    elif (
        np.isfinite(reach) and result._robust_to.radius > 0.0 and result._robust_to.has_size
    ):  # with links neither of the two is known
        said += "It is impossible even with today's model alone. "
    releases = result.releases(label)
    if not releases:
        codes = result._codes_of(label)
        said += "".join(f"{each} is a code, which stays. " for each in codes)
        untried = result._untried
        if untried:
            return (
                f"{said}Lifting other constraints does not help; those of {_listed(untried)} were "
                "not tried."
            )
        if result._has_facts or codes:
            return (
                said
                + "Even if every constraint that can be lifted were lifted, no change would do."
            )
        return said + "Even with every constraint removed, no change is enough."
    first, *others = releases
    that = "that" if len(first.constraints) == 1 else "these"
    said += f"In the way: {first.words}. Without {that}, it would cost {first.cost:.3g}."
    if others:
        words = "; or ".join(other.words for other in others[:2])
        said += f" Instead of that, this could be lifted: {words}."
    return said


def _best(result: Recommendations, reach: float) -> str:
    """Say how much is within reach, in the unit of what was asked for; nothing if not known."""
    if result.guarantee_points is None or result._scale is None:
        return at_least(reach) if np.isfinite(reach) else ""
    points = float(result._scale.of(special.logit(reach)))
    return points_down(points) if np.isfinite(points) else ""


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
