"""Sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.actions import ActionSet, NumberFeature
from holdfast.machinery.numerals import (
    a_chance,
    above,
    at_least,
    below,
    numeral,
    numerals,
    points_down,
)
from holdfast.models.encoding.reading import is_missing
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend.reasons import Release
    from holdfast.recommend.recommendations import Recommendations
    from holdfast.recommend.ways import Way


class Change(NamedTuple):
    """One change of a person, as it is written."""

    name: str
    before: str
    after: str
    unit: str


class ChangedColumn(NamedTuple):
    """What some people change in one column: who they are among them, and how it is written."""

    name: str
    unit: str
    rows: list[int]
    before: list[str]
    after: list[str]

    def words(self) -> list[str]:
        """Say what each of them changes.

        Examples
        --------
        >>> ChangedColumn("duration", "months", [3], ["48"], ["36"]).words()
        ['duration from 48 to 36 months']
        """
        name, unit = self.name, f" {self.unit}" if self.unit else ""
        pairs = zip(self.before, self.after, strict=True)
        return [f"{name} from {was} to {is_now}{unit}" for was, is_now in pairs]


def changed_columns(
    people: pd.DataFrame,
    who: NDArray[np.int64],
    after: pd.DataFrame,
    changed: dict[str, NDArray[np.bool_]],
    actions: ActionSet,
) -> Iterator[ChangedColumn]:
    """Say what people change, in the order of the table.

    `who` are positions among `people`; they have the rows of `after` and `changed`.
    """
    for name in people.columns:
        rows = np.flatnonzero(changed[name]) if name in changed else who[:0]
        if not rows.size:
            continue
        feature = actions[name]
        unit = feature.unit if isinstance(feature, NumberFeature) else ""
        old, new = _texts(people[name], who[rows]), _texts(after[name], rows)
        yield ChangedColumn(name, unit, rows.tolist(), old, new)


def _texts(column: pd.Series[Any], rows: NDArray[np.int64]) -> list[str]:
    """Write some values of a column."""
    if column.dtype in (np.int64, np.float64):
        numbers = column.to_numpy()[rows]
        if not np.isnan(numbers).any():
            return numerals(numbers)
    values = _plain(column, rows)
    return [value if type(value) is str else _text(value) for value in values]


def _text(value: Any) -> str:
    return "not given" if is_missing(value) else numeral(value)


def _plain(column: pd.Series[Any], rows: NDArray[np.int64]) -> list[Any]:
    """List some values; those in single precision stay what they are, to be shown as such."""
    dtype: Any = column.dtype
    if getattr(dtype, "kind", "O") == "f" and dtype != np.float64:
        return list(column.to_numpy()[rows])
    is_array = isinstance(dtype, np.dtype)
    values: Any = column.to_numpy() if is_array else column.array
    listed: list[Any] = values[rows].tolist()
    return listed


def explanation(
    result: Recommendations,
    label: Any,
    releases: list[Release] | None = None,
) -> str:
    """Say what a person can do, or why nothing helps; `releases` may be given if they are known."""
    why = result.why_refused(label)
    if why is not None:
        return f"This row cannot be used: {why}."
    said = [_today(result, label)]
    if result.status_of(label) is Status.INFEASIBLE:
        releases = result.releases(label) if releases is None else releases
        said += [hopeless_words(result, label), in_the_way(result, label, releases)]
    elif result.ways(label) and result.status_of(label) is not Status.ALREADY_VALID:
        said += [_way_words(result, label, option + 1) for option in range(len(result.ways(label)))]
    else:
        said.append(without_change(result, label))
    return " ".join(part for part in said if part)


def without_change(result: Recommendations, label: Any) -> str:
    """Say why a person is told no change, whose row can be used and whom something may help."""
    status, ways = result.status_of(label), result.ways(label)
    if status is Status.ALREADY_VALID:
        said = f"{_every(result)} already {_chance(result, ways[0].worst_case_score)}."
        if result.is_approved(label):
            return f"{said} You do not need to change anything."
        return f"{said} You do not need to change anything for that, but today's model refuses you."
    if status is Status.NOT_FOUND:
        return "A way exists in theory, but no values that can be entered in the table achieve it."
    if status is Status.GAP_OPEN:
        return "No way was found, but one may still exist."
    return status.sentence


def _today(result: Recommendations, label: Any) -> str:
    gives = result.initially(label)
    if not gives:  # a margin is no probability
        return ""
    return f"Today's model gives you {a_chance(gives)}."


def _every(result: Recommendations) -> str:
    return _sentence(result.crowd)


def _sentence(words: str) -> str:
    """Begin with a capital letter."""
    return words[0].upper() + words[1:]


def _chance(result: Recommendations, score: float) -> str:
    gives = result.gives(score)
    if not gives:
        return "approves you"
    least = "at least " if result.robust_to.radius > 0.0 else ""
    return f"gives you {a_chance(gives, least)}"


def _way_words(result: Recommendations, label: Any, option: int) -> str:
    way, changes = result.ways(label)[option - 1], result.changes(label, option)
    after = afterwards(result, way, is_change=bool(changes))
    if way.status in _SEARCHED:
        return _searched_words(result, way, changes)
    if not changes:
        return f"{proof_words(result, way, is_change=False)} {after}"
    verb = "Change"
    if option > 1:
        stays = "as it is" if len(way.held) == 1 else "as they are"
        verb = f"Or leave {listed(sorted(way.held))} {stays} and change"
    cost = f"The cost is {way.cost:.3g}."
    return " ".join([f"{verb} {listed(changes)}. {_proof(result, way)}", after, cost])


# What became of people whom a network judges: a search found it, and what is proven is proven.
_SEARCHED = (Status.PROVEN_VALID, Status.NOT_VALID)


def _searched_words(result: Recommendations, way: Way, changes: list[str]) -> str:
    """Say what a search found for a person, who may be advised or not."""
    what, cost = f"change {listed(changes)}.", f"The cost is {way.cost:.3g}."
    if way.status is Status.PROVEN_VALID:
        return " ".join([_sentence(what), afterwards(result, way), cost])
    said = proof_words(result, way)
    if not changes:
        return (
            f"{said} As you are, {result.crowd} provably {_chance(result, way.worst_case_score)}."
        )
    return " ".join([said, f"The best one found is to {what}", afterwards(result, way), cost])


def proof_words(result: Recommendations, way: Way, *, is_change: bool = True) -> str:
    """Say in a sentence what is proven of a way, which may be to change nothing."""
    if is_change:
        return _sentence(_proof(result, way))
    if result._is_guarantee:
        wanted = a_chance(result.wanted) if result._has_probabilities else "that"
        return f"You do not need to change anything for {wanted}."
    held = listed(sorted(way.held))
    stay = f"With {held} unchanged, staying" if held else "Staying"
    proven = "provably " if way.status.is_proven else ""
    return f"{stay} as you are is {proven}the best balance of cost and chance."


def afterwards(result: Recommendations, way: Way, *, is_change: bool = True) -> str:
    """Say what the models make of it, and whether today's would still refuse.

    Where nothing changes, it is known what today's model gives, and not said again.
    """
    gives, end = result.gives(way.score), _ENDS.get(way.status, ".")
    refused = way.score < result._cutoff
    if way.status.is_proven:  # it knows what the model itself said, where a hair decides
        refused = way.status is Status.STILL_REFUSED
    then, is_robust = " then" if is_change else "", result.robust_to.radius > 0.0
    every = f"{_every(result)}{then} {_chance(result, way.worst_case_score)}{end}"
    is_new = is_change or is_robust or not gives
    parts = [every] if is_new and (result._is_guarantee or not refused) else []
    if not result._is_guarantee and not refused and is_change and is_robust and gives:
        parts.insert(0, f"Today's model then gives you {a_chance(gives)}.")
    if refused:
        more = f": it gives you {a_chance(gives)}" if gives and is_change else ""
        parts.append(f"Today's model would still refuse you{more}.")
    return " ".join(parts)


_ENDS = {
    Status.PROVEN_VALID: ". This is proven. A cheaper way may exist.",
    Status.NOT_VALID: ". This is proven.",
}


def _proof(result: Recommendations, way: Way) -> str:
    if way.status is Status.PROVEN_VALID:
        return "A cheaper way may exist."
    if way.status is Status.NOT_VALID:
        return (
            f"No change was found that gets you {a_chance(result.wanted)} from {result.crowd}, "
            "but one may still exist."
        )
    best = "cheapest way" if result._is_guarantee else "best balance of cost and chance"
    if way.status.is_proven:
        without = f" without changing {listed(sorted(way.held))}" if way.held else ""
        return f"This is provably the {best}{without}."
    if result._is_guarantee:
        return f"There may be a cheaper way, but it would cost at most {above(way.gap)} less."
    return f"A better balance may exist, but it would be better by at most {above(way.gap)}."


def hopeless_words(result: Recommendations, label: Any) -> str:
    """Say that nothing helps a person, and what can be reached instead."""
    reach, radius = result.reachable(label)
    best, who = best_words(result, reach), result.crowd
    nothing = f"No change you can make gets you {a_chance(result.wanted)} from {who}"
    if best and result.guarantee is not None and reach >= result.guarantee:
        # a yes is asked for, and at exactly so much the model says no
        nothing = f"No change you can make gets you approved by {who}"
        best = f"{best}, at which the answer is still no"
    elif not result._has_probabilities:
        nothing = f"No change you can make gets you approved by {who}"
    every = " with all of them" if result.robust_to.radius > 0.0 else ""
    said = [f"{nothing}. The best you can reach{every} is {best}." if best else f"{nothing}."]
    if radius == 0.0:
        said.append("It is possible only with today's model alone.")
    elif np.isfinite(radius):
        said.append(f"It becomes possible at a radius of {below(radius)} or less.")
    elif (
        np.isfinite(reach) and result.robust_to.radius > 0.0 and result.robust_to.has_size
    ):  # with links neither of the two is known
        said.append("It is impossible even with today's model alone.")
    return " ".join(said)


def in_the_way(result: Recommendations, label: Any, releases: list[Release]) -> str:
    """Say what is in the way of a person whom nothing helps; nothing protected is named."""
    if releases:
        first, *others = releases
        that = "this constraint" if len(first.constraints) == 1 else "these constraints"
        said = (
            f"What stands in the way: {first.words}. Without {that}, the cheapest way would cost "
            f"{first.cost:.3g}."
        )
        if others:
            words = "; or ".join(other.words for other in others[:2])
            said += f" Lifting this instead would also help: {words}."
        return said
    codes = result._codes_of(label)
    stays = [
        f"{text} is a code and stays as it is."
        for name, text in codes.items()
        if name not in result.actions.protected_names
    ]
    if not result._are_releases_settled(label):
        end = (
            "It could not be determined whether lifting constraints would help: there are too "
            "many combinations to try."
        )
    elif untried := result._untried(label):
        names = listed(untried)
        end = f"Lifting other constraints does not help; those on {names} were not tried."
    elif result._has_facts or codes:
        end = "Even with every removable constraint removed, no change is enough."
    else:
        end = "Even with every constraint removed, no change is enough."
    return " ".join([*stays, end])


def best_words(result: Recommendations, reach: float) -> str:
    """Say how much is within reach, in the unit of what was asked for; nothing if not known."""
    if result.guarantee_points is None or result._points_scale is None:
        return at_least(reach) if np.isfinite(reach) else ""
    points = float(result._points_scale.of(special.logit(reach)))
    return points_down(points) if np.isfinite(points) else ""


def listed(parts: list[str]) -> str:
    """Join parts of a sentence.

    Examples
    --------
    >>> listed(["age", "income", "job"])
    'age, income and job'
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
