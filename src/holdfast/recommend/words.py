"""Sentences for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import ActionSet, NumberFeature
from holdfast.result import Status

if TYPE_CHECKING:
    from holdfast.recommend.recommendations import Recommendations


def change_words(before: Any, after: Any, features: Iterable[str], actions: ActionSet) -> list[str]:
    """Say what changes, in the order of the table: 'duration 48 → 36 months'."""
    words = []
    for name in before.index:
        if name not in features or before[name] == after[name]:
            continue
        feature = actions[name]
        unit = f" {feature.unit}" if isinstance(feature, NumberFeature) and feature.unit else ""
        words.append(f"{name} {_shown(before[name])} → {_shown(after[name])}{unit}")
    return words


def explanation(result: Recommendations, i: int) -> str:
    """Say what person i can do, or why nothing helps."""
    why = result.why_refused(i)
    if why is not None:
        return f"This row cannot be used: {why}."
    status = result.status[i]
    today = _today(result.initial_validity(i))
    if status is Status.ALREADY_VALID:
        return f"{today} Every model that may come approves this person already; nothing to do."
    if status is Status.INFEASIBLE:
        return f"{today} {_hopeless(result, i)}"
    if status is Status.INVALID_INPUT or not result.ways(i):
        return f"{today} {status.sentence}"
    parts = [today]
    for option, way in enumerate(result.ways(i)):
        parts.append(_way_words(result, i, option, way))
    return " ".join(parts)


def _today(probability: float) -> str:
    if np.isnan(probability):  # a margin is no probability
        return "As today's model sees it:"
    return f"Today's model gives a probability of {probability:.0%}."


def _way_words(result: Recommendations, i: int, option: int, way: Any) -> str:
    estimator = result._estimator
    base = result._compiled.problem.problem
    changes = result.changes(i, option)
    if not changes:
        return "No change is worth its cost: staying put has the lowest price, proven."
    least = float(base.loss.probability(way.worst_case_score))
    opening = "To change" if option == 0 else "Another way"
    ball = f"within {estimator.ball.radius:g} of today's"
    best = "cheaper" if estimator.cost_weight is None else "better"
    proof = f"no {best} one exists" if option == 0 else "the best of its kind"
    proven = proof if way.gap <= 1e-9 * (1.0 + way.price) else f"within {way.gap:.2g} of the best"
    chance = f"at least {least:.0%}" if np.isfinite(least) else "approval"
    return (
        f"{opening}: {'; '.join(changes)}. Then every model {ball} gives {chance}. "
        f"Cost {way.cost:.3g}; {proven} (proven)."
    )


def _hopeless(result: Recommendations, i: int) -> str:
    estimator = result._estimator
    reach, radius = result.reachable(i)
    said = (
        f"Nothing that this person may change gives {estimator.guarantee:.0%} for every model "
        f"within {estimator.ball.radius:g} of today's"
    )
    said += f": at most {reach:.1%} can be had. " if np.isfinite(reach) else ". "
    if np.isfinite(radius):
        said += f"Against models within {radius:.3g} it could be done. "
    elif np.isfinite(reach):  # with links neither of the two is worked out
        said += "Not even today's model alone can be satisfied. "
    releases = result.releases(i)
    if not releases:
        return said + "Not even without all of the constraints could it be done."
    best, *others = releases
    said += f"In the way: {best.words}; without that, it would cost {best.cost:.3g}."
    if others:
        said += f" Or else: {'; or '.join(other.words for other in others[:2])}."
    return said


def _shown(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:d}"
    if isinstance(value, (float, np.floating)):
        return f"{value:,.6g}"
    return str(value)
