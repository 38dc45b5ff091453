"""The action set: what a person can change, in raw units, by the name of each feature."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.actions.category import CategoryFeature
from holdfast.actions.derived import Derived, Product, Ratio
from holdfast.actions.feature import Feature, FeatureError
from holdfast.actions.links import AtMost, CheckedList, FeatureLink, Follows, Linear
from holdfast.actions.number import NumberFeature
from holdfast.actions.preferences import Preference, PreferenceError
from holdfast.machinery.numbers import refuse, refuse_number
from holdfast.machinery.settings import suggest

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.models.encoding import Encoding


class ActionSet:
    """What a person can change: a `NumberFeature` or `CategoryFeature` for each column.

    Start from the draft that `ActionSet.from_data` makes from a table, and correct it.

    Parameters
    ----------
    features : iterable of features
    links : iterable of AtMost, Follows and Linear
        Constraints between numbers, in the attribute `links`.
    max_changes : int, optional
        How many features may change at most; derived ones do not count.
    derived : iterable of Ratio and Product
        Numbers that are computed from others, in the attribute `derived`. They change with
        these, and cost nothing themselves.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [30, 40, 65], "home": ["own", "rent", "own"]})
    >>> actions = ActionSet.from_data(table, immutable=["age"])
    >>> actions.set("home", moves={"rent": ["own"]}, cost=3.0)
    >>> actions.max_changes = 1
    >>> actions["agee"]
    Traceback (most recent call last):
        ...
    ValueError: feature 'agee' is not known; did you mean 'age'? available: age, home
    """

    links: CheckedList
    derived: CheckedList
    max_changes: int | None
    _features: dict[str, Feature]

    def __init__(
        self,
        features: Iterable[Feature],
        links: Iterable[FeatureLink] = (),
        max_changes: int | None = None,
        derived: Iterable[Derived] = (),
    ) -> None:
        found: dict[str, Feature] = {}
        for feature in iterate("features", features):
            if not isinstance(feature, (NumberFeature, CategoryFeature)):
                raise TypeError(
                    f"features: {feature!r} is neither a NumberFeature nor a CategoryFeature"
                )
            if feature.name in found:
                raise ValueError(f"there are two features named {feature.name!r}")
            feature._watch = self._check_setting
            found[feature.name] = feature
        self._features = found
        self.links = links  # type: ignore[assignment]  # __setattr__ reads and checks them
        self.derived = derived  # type: ignore[assignment]
        self.max_changes = max_changes

    @classmethod
    def from_data(
        cls,
        table: Any,
        *,
        costs: str = "std",
        switch_cost: float = 1.0,
        fixed_cost: float = 0.1,
        immutable: Iterable[str] = (),
        protected: Iterable[str] = (),
        categories: Iterable[str] = (),
        units: dict[str, str] | None = None,
        encoding: Encoding | None = None,
    ) -> ActionSet:
        """Draft an action set from a table of people, such as the training data.

        It is a draft: everything may change, within the range and the levels seen in the table, in
        steps that people can type. Say yourself what is `immutable` or `protected`, and that age
        only rises: the names of columns are not read. Columns of numbers without fractions are
        whole numbers, and a column without negative numbers stays non-negative (`possible_lower`);
        text and pandas categories are categories, and an ordered one keeps its order. Missing
        values are ignored.

        The `step` of other numbers is the resolution of the table: 0.01 where all values have two
        decimals. Where they have so many that it would be less than a hundred-thousandth of the
        standard deviation, it is the largest of ..., 10, 1, 0.1, ... that is at most a hundredth
        of it.

        Parameters
        ----------
        table : DataFrame or (n, d) array
            The columns of an array are called x0, x1, ...
        costs : str
            Cost of one unit of a number: "std", 1 / standard deviation; "mad", 1 / median absolute
            deviation from the median; "percentile", 1 / distance between the 10th and the 90th
            percentile; "unit", 1. Where that distance is 0 (most people have the same value), the
            standard deviation is used instead; a column with a single value costs 1 per unit.
        switch_cost : float
            Cost of changing a category: 1 is as much as moving a number by one standard
            deviation, under "std".
        fixed_cost : float
            Cost of changing a number at all, so that advice does not suggest tiny changes. 0.1 is
            as much as moving it by a tenth of a standard deviation, under "std". Changing a
            category has its switch cost.
        immutable : iterable of str
            Columns that may not change; if that is in the way, explanations say so.
        protected : iterable of str
            Columns that may not change, and that explanations never name as being in the way.
        categories : iterable of str
            Columns of numbers to treat as categories.
        units : dict, optional
            Units of columns, for sentences: ``{"age": "years"}``.
        encoding : Encoding, optional
            Columns that its pipeline reads as categories are categories here.

        Examples
        --------
        >>> from holdfast.datasets import load_german
        >>> german = load_german()
        >>> actions = ActionSet.from_data(german.features, immutable=["age"], units=german.units)
        >>> actions["age"]
        NumberFeature(name='age', unit='years', immutable=True, protected=False, \
direction='any', lower=19, upper=75, possible_lower=0, possible_upper=None, max_increase=None, \
max_decrease=None, physical=(), step=None, integer=True, cost=0.08795..., fixed_cost=0.1, \
provide_cost=None)
        """
        from holdfast.actions.draft import DraftCosts, Kinds, draft

        listed = iterate("categories", categories)
        if not all(isinstance(name, str) for name in listed):
            refuse("categories", categories, "a list of column names")
        named = set(listed)
        if encoding is not None:
            if not hasattr(encoding, "features"):
                refuse("encoding", encoding, "an Encoding, or None")
            named |= {
                name for name, feature in encoding.features.items() if hasattr(feature, "levels")
            }
        drafted = DraftCosts(costs, switch_cost, fixed_cost)
        kinds = Kinds(
            categories=named,
            immutable=set(iterate("immutable", immutable)),
            protected=set(iterate("protected", protected)),
        )
        return cls(draft(table, drafted, kinds, {} if units is None else units))

    @classmethod
    def load(cls, path: str | Path) -> ActionSet:
        """Read an action set from a .yaml, .yml or .json file, checked against the schema.

        Examples
        --------
        >>> import tempfile
        >>> actions = ActionSet([NumberFeature("age", immutable=True)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     actions.save(folder + "/actions.yaml")
        ...     ActionSet.load(folder + "/actions.yaml") == actions
        True
        """
        from holdfast.actions.files import load

        return load(path)

    def save(self, path: str | Path) -> None:
        """Write the action set to a .yaml, .yml or .json file, which is replaced as a whole."""
        from holdfast.actions.files import save

        save(self, path)

    def __deepcopy__(self, memo: dict[int, Any]) -> ActionSet:
        """Return an action set of its own with the same settings."""
        features = [copy.deepcopy(feature, memo) for feature in self._features.values()]
        links, derived = copy.deepcopy([list(self.links), list(self.derived)], memo)
        return ActionSet(features, links, self.max_changes, derived)

    def set(self, name: str, /, **settings: Any) -> None:
        """Change settings of a feature by name; if any value is wrong, none is changed."""
        self[name].set(**settings)

    def with_preferences(
        self, preferences: Mapping[str, Preference | Mapping[str, Any]]
    ) -> ActionSet:
        """Return the action set as one person wants it: never looser, and never cheaper.

        Parameters
        ----------
        preferences : mapping
            A `Preference`, or a dict of its fields, by the name of the feature.

        Examples
        --------
        >>> actions = ActionSet([NumberFeature("duration", max_decrease=12), NumberFeature("age")])
        >>> mine = actions.with_preferences({"age": {"locked": True}, "duration": {"change_by": 6}})
        >>> mine["age"].immutable, mine["duration"].max_decrease, actions["age"].immutable
        (True, 6, False)
        """
        if not isinstance(preferences, Mapping):
            refuse("preferences", preferences, "a dict of feature names and preferences")
        own = copy.deepcopy(self)
        for name, given in preferences.items():
            feature = own[name]
            try:
                wanted = Preference.read(given)
                if wanted.locked:
                    own._refuse_lock(name)
                feature.tighten(wanted.settings(feature))
            except FeatureError as error:
                raise PreferenceError(name, error.reason) from None
            except ValueError as error:
                raise PreferenceError(name, str(error)) from None
            except TypeError as error:
                raise TypeError(f"preference for {name!r}: {error}") from None
        return own

    @property
    def protected_names(self) -> frozenset[str]:
        """The protected features, and those computed from one: never named as a reason.

        Examples
        --------
        >>> from holdfast.actions import ActionSet, NumberFeature, Ratio
        >>> names = ("debt", "age", "debt_per_year")
        >>> actions = ActionSet([NumberFeature(name, protected=name == "age") for name in names])
        >>> actions.derived.append(Ratio("debt_per_year", of="debt", to="age"))
        >>> sorted(actions.protected_names)
        ['age', 'debt_per_year']
        """
        protected = frozenset(name for name in self if self[name].protected)
        follows = [each.feature for each in self.derived if protected & set(each.parents)]
        return protected.union(follows)

    def _refuse_lock(self, name: str) -> None:
        """Refuse to lock what changes with others: these must be locked."""
        follows = {link.feature: [link.of] for link in self.links if isinstance(link, Follows)}
        follows |= {each.feature: list(each.parents) for each in self.derived}
        if name in follows:
            raise ValueError(
                f"it changes with {' and '.join(follows[name])}, so it cannot be locked on its "
                "own: lock what it changes with"
            )

    def __getitem__(self, name: str) -> Any:
        """Return the feature of that name."""
        if not isinstance(name, str) or name not in self._features:
            raise ValueError(f"feature {name!r} is not known; {suggest(name, self._features)}")
        return self._features[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is a feature of that name."""
        return name in self._features

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the features."""
        return iter(self._features)

    def __len__(self) -> int:
        """How many features there are."""
        return len(self._features)

    def __setattr__(self, key: str, value: Any) -> None:
        """Set `links`, `derived` or `max_changes`, checked; there is nothing else to set."""
        if key == "links":
            value = CheckedList(self._check_link, iterate("links", value))
        elif key == "derived":
            value = CheckedList(self._check_derived, iterate("derived", value))
        elif key == "max_changes":
            whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (whole and value >= 1):
                refuse_number(
                    "max_changes", value, "a whole number of at least 1, or None for no limit"
                )
        elif not key.startswith("_"):
            known = suggest(key, ["links", "derived", "max_changes"])
            raise ValueError(f"an action set has no setting {key!r}; {known}")
        object.__setattr__(self, key, value)

    def __eq__(self, other: object) -> bool:
        """Whether all settings are the same."""
        if not isinstance(other, ActionSet):
            return NotImplemented
        same = list(self._features.values()) == list(other._features.values())
        same = same and self.links == other.links and self.derived == other.derived
        return same and self.max_changes == other.max_changes

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Count what there is."""
        free = sum(not self[name].stays for name in self)
        return f"<ActionSet of {len(self)} features, {free} of which can change>"

    def to_frame(self) -> pd.DataFrame:
        """Show all settings: a row for each feature.

        Examples
        --------
        >>> actions = ActionSet([NumberFeature("age"), CategoryFeature("home", ["own", "rent"])])
        >>> list(actions.to_frame()["type"])
        ['number', 'category']
        """
        import pandas as pd

        rows = [{"type": self[name].kind, **self[name].settings()} for name in self]
        return pd.DataFrame(rows, index=pd.Index(list(self), name="feature")).astype(object)

    def validate(self) -> None:
        """Check everything again: lists and dicts inside may have been changed by hand."""
        for name in self:
            self[name].set()
        for link in self.links:
            self._check_link(link, [])
        for k, each in enumerate(self.derived):
            self._check_derived(each, self.derived[:k])

    def _check_link(self, link: Any, _: list[Any]) -> None:
        if not isinstance(link, (AtMost, Follows, Linear)):
            raise TypeError(f"links: {link!r} is not a link; use AtMost, Follows or Linear")
        for name in link.names:
            if not isinstance(self[name], NumberFeature):
                raise ValueError(f"{link}: {name!r} is not a number, so it cannot be linked")
        if isinstance(link, Follows) and self[link.feature].stays:
            raise ValueError(f"{link}: {link.feature!r} may not change, so it cannot follow")

    def _check_derived(self, each: Any, others: list[Any]) -> None:
        if not isinstance(each, (Ratio, Product)):
            raise TypeError(f"derived: {each!r} is not a derived feature; use Ratio or Product")
        for name in (each.feature, *each.parents):
            if not isinstance(self[name], NumberFeature):
                raise ValueError(
                    f"{each}: {name!r} is not a number, so nothing can be computed from it"
                )
        if self[each.feature].stays:
            raise ValueError(
                f"{each}: {each.feature!r} may not change, but it changes with {each.words}; make "
                "those immutable instead"
            )
        for other in others:
            if other.feature == each.feature:
                raise ValueError(f"{each}: {each.feature!r} is already derived by {other}")
            if other.feature in each.parents or each.feature in other.parents:
                raise ValueError(
                    f"{each}: a derived feature cannot be used to derive another; see {other}"
                )

    def _check_setting(self, name: str, settings: dict[str, Any]) -> None:
        stays = settings["immutable"] or settings["protected"]
        if not stays or not hasattr(self, "derived"):
            return
        follows = [link for link in self.links if isinstance(link, Follows)]
        for each in [*follows, *self.derived]:
            if each.feature == name:
                reason = f"it must be able to change, because it is part of {each}"
                raise FeatureError(name, reason)


def iterate(name: str, values: Any) -> list[Any]:
    """List what is given; refuse what cannot be gone through, and a text, which is one thing."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        refuse(name, values, "a list")
    return list(values)
