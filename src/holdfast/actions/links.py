"""Constraints between features."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, MutableSequence
from dataclasses import dataclass
from typing import Any

from holdfast.actions.feature import plain_number
from holdfast.machinery.numbers import refuse, to_number


@dataclass(frozen=True)
class AtMost:
    """One number stays at or below another: ``smaller <= larger``, in raw units.

    Whoever breaks it now may stay, but the excess may not grow.

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
    def names(self) -> tuple[str, str]:
        """The two features."""
        return self.smaller, self.larger


@dataclass(frozen=True)
class Follows:
    """When the number `of` changes by 1, `feature` changes by `by`; never otherwise.

    The rest of what is set for `feature` holds as well: one that follows in fractions should not
    be whole. Its change has its cost, and counts among the changes.

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
            refuse("by", self.by, "a finite number, not 0")
        object.__setattr__(self, "by", plain_number(self.by))

    @property
    def names(self) -> tuple[str, str]:
        """The two features."""
        return self.feature, self.of


def _check_names(**names: Any) -> None:
    """Refuse what is no name, and a feature that is linked with itself."""
    for name, value in names.items():
        if not isinstance(value, str):
            refuse(name, value, "the name of a feature")
    (first, value), (second, other) = names.items()
    if value == other:
        raise ValueError(
            f"{first} = {value!r} and {second} = {other!r}: it links a feature with itself"
        )


FeatureLink = AtMost | Follows


class LinkList(MutableSequence[FeatureLink]):
    """A list of links, each of which is checked when it comes in."""

    def __init__(self, check: Callable[[Any], None], links: Iterable[FeatureLink] = ()) -> None:
        self._check = check
        self._links: list[FeatureLink] = []
        self.extend(links)

    def __getitem__(self, key: Any) -> Any:
        """Return a link, or some."""
        return self._links[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Replace a link."""
        self._check(value)
        self._links[key] = value

    def __delitem__(self, key: Any) -> None:
        """Drop a link."""
        del self._links[key]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._links)

    def __eq__(self, other: object) -> bool:
        """Whether the links are the same, in the same order."""
        return self._links == (other._links if isinstance(other, LinkList) else other)

    def __repr__(self) -> str:
        """Show the list."""
        return repr(self._links)

    def insert(self, index: int, value: FeatureLink) -> None:
        """Insert a link, checked."""
        self._check(value)
        self._links.insert(index, value)
