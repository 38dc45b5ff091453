"""What each feature does to a person's score, against a reference: the reasons for a refusal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet, Follows
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Category, Encoding

if TYPE_CHECKING:
    import pandas as pd

MOST_REASONS = 4
_LEAST_SHARE = 0.05  # of all that counted against a person: less is no principal reason


@dataclass(frozen=True)
class Reference:
    """The median approved applicant: medians of numbers, most frequent levels of categories.

    Attributes
    ----------
    row : DataFrame
        One row, with the columns that the model reads.
    people : int
        How many approved applicants it was made of.
    """

    row: pd.DataFrame
    people: int


def are_approved(people: pd.DataFrame, encoding: Encoding) -> NDArray[np.bool_]:
    """Say whom today's model approves; rows that it cannot read are not approved."""
    usable = np.ones(len(people), dtype=bool)
    usable[[row for row, _ in encoding.read(people).refused()]] = False
    if usable.any():
        people, model = people[usable], encoding.model
        points = encoding.encode(people)
        usable[usable] = encoding.accepts(people, points, model.score(points), model.cutoff)
    return usable


def make_reference(approved: pd.DataFrame, encoding: Encoding) -> Reference:
    """Make the median approved applicant, each of whose values somebody has."""
    import pandas as pd

    row: dict[str, Any] = {}
    for name in encoding.names:
        column = approved[name]
        given = column.dropna()
        part = encoding.features.get(name)
        if not len(given):
            row[name] = column.iloc[:1].array
        elif part is None or isinstance(part, Category):
            counts = given.value_counts()
            most = counts[counts == counts.iloc[0]].index
            row[name] = given[given.isin([min(most, key=str)])].iloc[:1].array
        else:
            row[name] = given.sort_values().iloc[[(len(given) - 1) // 2]].array
    return Reference(pd.DataFrame(row), len(approved))


def parts_of_score(
    encoding: Encoding, person: pd.DataFrame, reference: pd.DataFrame
) -> dict[str, float]:
    """Return by how much each feature puts a person above the reference; below: less than 0.

    Together they are the difference of the two scores.
    """
    apart: Floats = encoding.encode(person)[0] - encoding.encode(reference)[0]
    coef: Floats = np.asarray(encoding.model.coef)  # type: ignore[attr-defined]
    return {
        name: float(coef[feature.columns] @ apart[feature.columns])
        for name, feature in encoding.features.items()
    }


@dataclass(frozen=True)
class Principal:
    """The reasons that may be told, and protected features that would be among them.

    Attributes
    ----------
    reasons : list of str
        At most four, what cost most first.
    protected : list of str
        Features that nobody may be refused for, and that cost so much.
    """

    reasons: list[str]
    protected: list[str]


def principal_reasons(parts: dict[str, float], actions: ActionSet) -> Principal:
    """Choose the reasons for a refusal: what cost the score most.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> actions = ActionSet([NumberFeature("debt"), NumberFeature("age", protected=True)])
    >>> principal_reasons({"debt": -1.0, "age": -2.0}, actions)
    Principal(reasons=['debt'], protected=['age'])
    """
    against = sorted((value, name) for name, value in parts.items() if value < 0.0)
    least = _LEAST_SHARE * sum(value for value, _ in against)
    large = [name for value, name in against if value <= least]
    protected = actions.protected_names
    reasons = [name for name in large if name not in protected][:MOST_REASONS]
    return Principal(reasons, [name for name in large[:MOST_REASONS] if name in protected])


def features_that_follow(actions: ActionSet) -> set[str]:
    """Name the features that change by themselves when others do.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, Follows, NumberFeature
    >>> actions = ActionSet([NumberFeature("age"), NumberFeature("years_here")])
    >>> actions.links.append(Follows("years_here", "age"))
    >>> features_that_follow(actions)
    {'years_here'}
    """
    links = [link.feature for link in actions.links if isinstance(link, Follows)]
    return {each.feature for each in actions.derived} | set(links)
