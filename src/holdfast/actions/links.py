"""Constraints between features.

They become rows of the problem in `arrays.encode_links`; `check._check_link` says them again in raw
units, knowing nothing of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableSequence
from dataclasses import dataclass
from typing import Any

from holdfast.actions.feature import plain_number
from holdfast.machinery.numbers import refuse, refuse_number, to_number


@dataclass(frozen=True)
class AtMost:
    """One number stays at or below another: ``smaller <= larger``, in raw units.

    Somebody who breaks it now may stay, but the excess may not grow.

    Examples
    --------
    >>> AtMost("years_employed", "age")
    AtMost(smaller='years_employed', larger='age')
    """

    smaller: str
    larger: str

    def __post_init__(self) -> None:
        """Refuse a feature compared with itself."""
        _check_names(smaller=self.smaller, larger=self.larger)

    @property
    def names(self) -> tuple[str, ...]:
        """The two features."""
        return self.smaller, self.larger

    @property
    def terms(self) -> dict[str, float]:
        """The coefficients of what is at most 0."""
        return {self.smaller: 1.0, self.larger: -1.0}


@dataclass(frozen=True)
class Follows:
    """When the number `of` changes by 1, `feature` changes by `by`; never otherwise.

    All other settings of `feature` still apply: one that follows in fractions should not be limited
    to whole numbers. Its change has its own cost, and counts as a change.

    Examples
    --------
    >>> Follows("age", of="duration", by=1 / 12).names
    ('age', 'duration')
    """

    feature: str
    of: str
    by: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be followed."""
        _check_names(feature=self.feature, of=self.of)
        number = to_number(self.by)
        if not math.isfinite(number) or number == 0.0:
            refuse_number("by", self.by, "a finite number, not 0")
        object.__setattr__(self, "by", plain_number(self.by))

    @property
    def names(self) -> tuple[str, ...]:
        """The two features."""
        return self.feature, self.of

    @property
    def terms(self) -> dict[str, float]:
        """The coefficients of what never changes."""
        return {self.feature: 1.0, self.of: -self.by}


@dataclass(frozen=True)
class Linear:
    """A weighted sum of numbers stays at or below a value, in raw units.

    Somebody who breaks it now may stay, but the excess may not grow. To keep a sum at or above a
    value, change all signs.

    Examples
    --------
    Rent and half of the loan add up to no more than 2000, and debt to no more than 40% of income:

    >>> Linear({"rent": 1.0, "loan": 0.5}, at_most=2000)
    Linear(coef={'rent': 1.0, 'loan': 0.5}, at_most=2000)
    >>> Linear({"debt": 1, "income": -0.4}, at_most=0).words
    'debt - 0.4 income'
    """

    coef: Mapping[str, float]
    at_most: float

    def __post_init__(self) -> None:
        """Refuse what is no sum of several numbers."""
        if not isinstance(self.coef, Mapping):
            refuse("coef", self.coef, "a dict of feature names and coefficients")
        for name, value in self.coef.items():
            if not isinstance(name, str):
                refuse("coef", name, "keyed by feature names")
            if not math.isfinite(to_number(value)) or to_number(value) == 0.0:
                refuse_number(f"coef[{name!r}]", value, "a finite number, not 0")
        if len(self.coef) < 2:
            raise ValueError(
                f"coef = {dict(self.coef)!r} is not a sum of two or more numbers; to limit a "
                "single number, use its `lower` and `upper`"
            )
        if not math.isfinite(to_number(self.at_most)):
            refuse_number("at_most", self.at_most, "a finite number")
        plain = {name: plain_number(value) for name, value in self.coef.items()}
        object.__setattr__(self, "coef", plain)
        object.__setattr__(self, "at_most", plain_number(self.at_most))

    def __hash__(self) -> int:
        """Two that are equal have the same, in whatever order they name their features."""
        return hash((frozenset(self.coef.items()), self.at_most))

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return tuple(self.coef)

    @property
    def terms(self) -> dict[str, float]:
        """The coefficients of what is at most `at_most`."""
        return {name: float(value) for name, value in self.coef.items()}

    @property
    def words(self) -> str:
        """The sum, as one would write it."""
        said = ""
        for name, value in self.coef.items():
            sign = ("- " if value < 0 else "+ ") if said else ("-" if value < 0 else "")
            size = "" if abs(value) == 1 else f"{abs(value):.12g} "
            said += f"{' ' if said else ''}{sign}{size}{name}"
        return said


def _check_names(**names: Any) -> None:
    """Refuse what is no name, and a feature that is linked with itself."""
    for name, value in names.items():
        if not isinstance(value, str):
            refuse(name, value, "the name of a feature")
    (first, value), (second, other) = names.items()
    if value == other:
        raise ValueError(
            f"{first} = {value!r} and {second} = {other!r}: this links a feature with itself"
        )


FeatureLink = AtMost | Follows | Linear


class CheckedList(MutableSequence[Any]):
    """A list of links, or of derived features: each is checked when it comes in.

    The check is given what comes in, and what else is there.
    """

    def __init__(self, check: Callable[[Any, list[Any]], None], given: Iterable[Any] = ()) -> None:
        self._check = check
        self._given: list[Any] = []
        self.extend(given)

    def __getitem__(self, key: Any) -> Any:
        """Return one, or some."""
        return self._given[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace one."""
        others = list(self._given)
        del others[key]
        self._check(value, others)
        self._given[key] = value

    def __delitem__(self, key: Any) -> None:
        """Drop one."""
        del self._given[key]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._given)

    def __eq__(self, other: object) -> bool:
        """Whether they are the same, in the same order."""
        return self._given == (other._given if isinstance(other, CheckedList) else other)

    def __repr__(self) -> str:
        """Show the list."""
        return repr(self._given)

    def insert(self, index: int, value: Any) -> None:
        """Insert one, checked."""
        self._check(value, self._given)
        self._given.insert(index, value)
