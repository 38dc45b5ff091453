"""Features that are computed from others: they change with these, and in no other way.

They go into the problem in `joint`; `check._check_derived` computes them again in raw units,
knowing nothing of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.actions.links import FeatureLink
from holdfast.machinery.numbers import Floats, refuse


@dataclass(frozen=True)
class Ratio:
    """A number that is always one number divided by another: ``feature = of / to``.

    Examples
    --------
    >>> used = Ratio("utilisation", of="balance", to="limit")
    >>> used.words, used.parents
    ('balance / limit', ('balance', 'limit'))
    """

    feature: str
    of: str
    to: str

    def __post_init__(self) -> None:
        """Refuse what is no quotient of two other features."""
        _check_names(self.feature, {"of": self.of, "to": self.to})

    @property
    def parents(self) -> tuple[str, ...]:
        """The features that it is computed from."""
        return self.of, self.to

    @property
    def words(self) -> str:
        """How it is computed."""
        return f"{self.of} / {self.to}"

    def value(self, values: Mapping[str, Floats]) -> Floats:
        """Compute it from its parents; what cannot be divided is not finite."""
        with np.errstate(all="ignore"):
            return np.asarray(values[self.of] / values[self.to])


@dataclass(frozen=True)
class Product:
    """A number that is always the product of two others.

    Examples
    --------
    >>> Product("payment", of=("rate", "loan")).words
    'rate * loan'
    """

    feature: str
    of: tuple[str, str]

    def __post_init__(self) -> None:
        """Refuse what is no product of two other features."""
        if isinstance(self.of, str) or not hasattr(self.of, "__iter__") or len(list(self.of)) != 2:
            refuse("of", self.of, "the names of two features")
        object.__setattr__(self, "of", tuple(self.of))
        _check_names(self.feature, {"of[0]": self.of[0], "of[1]": self.of[1]})

    @property
    def parents(self) -> tuple[str, ...]:
        """The features that it is computed from."""
        return self.of

    @property
    def words(self) -> str:
        """How it is computed."""
        return " * ".join(self.of)

    def value(self, values: Mapping[str, Floats]) -> Floats:
        """Compute it from its parents."""
        with np.errstate(all="ignore"):
            return np.asarray(values[self.of[0]] * values[self.of[1]])


def _check_names(feature: Any, parents: dict[str, Any]) -> None:
    for name, value in {"feature": feature, **parents}.items():
        if not isinstance(value, str):
            refuse(name, value, "the name of a feature")
    seen: dict[str, str] = {}
    for name, value in {"feature": feature, **parents}.items():
        if value in seen:
            raise ValueError(
                f"{name} = {value!r} and {seen[value]} = {value!r}: use three different features"
            )
        seen[value] = name


Derived = Ratio | Product


class Bundle(NamedTuple):
    """Features that are tried together: some that people change, and all that is derived of them.

    Attributes
    ----------
    parents : tuple of str
    derived : tuple of Ratio and Product
    """

    parents: tuple[str, ...]
    derived: tuple[Derived, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All features: first those that people change."""
        return *self.parents, *(each.feature for each in self.derived)

    @property
    def key(self) -> str:
        """The feature after which the bundle is called."""
        return self.derived[0].feature

    def holds(self, link: FeatureLink) -> bool:
        """Whether a link is among these features."""
        return set(link.names) <= set(self.names)


def bundles_of(derived: Iterable[Derived], read: Iterable[str]) -> list[Bundle]:
    """Put derived features that have a parent in common together; leave out what nobody reads."""
    found: list[Bundle] = []
    for each in derived:
        mine = Bundle(each.parents, (each,))
        for other in [b for b in found if set(b.parents) & set(each.parents)]:
            found.remove(other)
            parents = tuple(dict.fromkeys([*other.parents, *mine.parents]))
            mine = Bundle(parents, (*other.derived, *mine.derived))
        found.append(mine)
    known = set(read)
    return [bundle for bundle in found if known & set(bundle.names)]
