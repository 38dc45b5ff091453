"""The draft of an action set for a table with its target and columns that nobody needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from holdfast.actions import ActionSet
from holdfast.fitting.columns import read_columns, read_names
from holdfast.models.encoding.reading import as_table

# Words in names of columns that speak of what the law protects in most places.
_PROTECTED = {
    *("age", "birth", "birthday", "birthdate", "dob"),
    *("sex", "gender", "pregnant", "pregnancy", "marital", "married"),
    *("race", "ethnic", "ethnicity", "nationality", "national", "citizenship"),
    *("alter", "geburt", "geburtsdatum", "geschlecht", "familienstand", "staatsangehörigkeit"),
    *("foreign", "foreigner", "immigrant", "religion", "religious", "disability", "disabled"),
}
_PHRASES = ("personal_status", "family_status", "civil_status", "skin_colour", "skin_color")


def draft_actions(
    table: Any,
    target: str,
    *,
    drop: Iterable[str] = (),
    immutable: Iterable[str] = (),
    protected: Iterable[str] = (),
    categories: Iterable[str] = (),
    units: dict[str, str] | None = None,
) -> ActionSet:
    """Draft an action set for the features of a table: all of its columns but the target.

    Columns that `holdfast.fitting.fit_default` would refuse are refused here too, in the same
    words.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [30, 40, 65], "home": ["own", "rent", "own"], "bad": 0})
    >>> list(draft_actions(table, "bad", immutable=["age"]))
    ['age', 'home']
    """
    frame = as_table(table)
    dropped = read_names(frame, target, drop)
    features = frame.drop(columns=[target, *dropped])
    coded = list(categories)
    read_columns(features, coded)
    empty = [name for name in features.columns if features[name].isna().all()]
    return ActionSet.from_data(
        features.drop(columns=empty),
        immutable=immutable,
        protected=protected,
        categories=coded,
        units=units,
    )


def sounds_protected(name: str) -> bool:
    """Whether the name of a column sounds like something that the law protects.

    Examples
    --------
    >>> [sounds_protected(name) for name in ("age", "AgeInYears", "foreign_worker", "mortgage")]
    [True, True, True, False]
    """
    parts = re.findall(r"[A-ZÄÖÜ]?[a-zäöüß]+|[A-ZÄÖÜ]+(?![a-zäöüß])", name)
    words = "_".join(part.lower() for part in parts)
    return any(phrase in words for phrase in _PHRASES) or not _PROTECTED.isdisjoint(
        words.split("_")
    )
