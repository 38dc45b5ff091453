"""The encoders of a fitted step, asked apart and with arrays: tables take much longer.

scikit-learn finds out of every column of a table what kind of table it comes from, which takes time
even for a single person. An array it takes as it is. Encoders of its own that have forgotten the
names of their columns take arrays, and give what they would give of a table. Those that look up
each value by itself are asked about every level once, and not about every person. What the step
itself makes of the first rows is compared with all that; only if it is the same to the last bit,
the encoders alone are asked about all others.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.features import Category, RawFeature
from holdfast.models.encoding.given import Given
from holdfast.models.encoding.steps import selected_columns
from holdfast.models.encoding.unwrap import skipped, thawed

# Of encoders in these rooms of scikit-learn it is known that they read columns by their places.
_ROOMS = ("sklearn.preprocessing", "sklearn.impute")
# Of these it is known that they encode a value alike whatever stands beside, above or below it.
_LOOKING_UP = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")


@dataclass(frozen=True, eq=False)
class _Encoder:
    """A fitted encoder that knows nothing of names.

    Attributes
    ----------
    fitted : object
    places : list of int
        The raw columns that it reads.
    made : slice
        The encoded columns that it makes.
    categories : list of Category or None
        What these raw columns are, if it looks up the levels of each by itself.
    """

    fitted: Any
    places: list[int]
    made: slice
    categories: list[Category] | None

    def fill(self, rows: Given, points: Floats) -> bool:
        """Write what it makes of rows into the encoded points; False where it cannot be asked."""
        levels = [own for j in self.places if (own := rows.levels[j]) is not None]
        if self.codes is not None and len(levels) == len(self.places):
            for category, codes, own in zip(self.categories or (), self.codes, levels, strict=True):
                points[:, category.columns] = codes.take(own, axis=0)
            return True
        block = rows.block(self.places)
        values = None if block is None else self._transform(block)
        if values is None:
            return False
        points[:, self.made] = values
        return True

    @cached_property
    def codes(self) -> list[Floats] | None:
        """What it makes of every level of its columns; None where it must be asked about rows."""
        if self.categories is None:
            return None
        arrays = [category.level_array for category in self.categories]
        if len({array.dtype for array in arrays}) > 1:
            return None
        most = max(len(array) for array in arrays)
        # who has fewer levels has the last one once more
        values = self._transform(
            np.column_stack([array.take(range(most), mode="clip") for array in arrays])
        )
        if values is None:
            return None
        return [
            values[: len(array), category.columns - self.made.start]
            for array, category in zip(arrays, self.categories, strict=True)
        ]

    def _transform(self, block: NDArray[Any]) -> Floats | None:
        try:
            made = self.fitted.transform(block)
        except (ValueError, TypeError):  # the step itself says it better
            return None
        dense = made.toarray() if hasattr(made, "toarray") else made
        values = np.asarray(dense, dtype=np.float64)
        return values if values.shape[1] == self.made.stop - self.made.start else None


class ArrayEncoders:
    """The encoders of a fitted step that know nothing of names, and the columns of each.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> table = pd.DataFrame({"age": [20.0, 70.0], "home": ["own", "rent"]})
    >>> step = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["home"]))
    >>> home = Category("home", np.array([1, 2]), ("own", "rent"), np.eye(2))
    >>> encoders = ArrayEncoders.of(step.fit(table), ["age", "home"], {"home": home}, 3)
    >>> columns = [np.array([45.0]), np.array(["rent"], dtype=object)]
    >>> levels = [None, np.array([1])]
    >>> rows = Given(["age", "home"], True, table.index[:1], columns, [True, True], levels)
    >>> encoders.ask(rows)
    array([[0., 0., 1.]])
    """

    def __init__(self, encoders: list[_Encoder]) -> None:
        self._encoders = encoders
        self._are_same: bool | None = None  # to the step itself; None: nobody has asked yet

    @classmethod
    def of(
        cls, step: Any, names: list[str], features: dict[str, RawFeature], n_columns: int
    ) -> ArrayEncoders | None:
        """Take a fitted step apart; None where it must be asked itself."""
        step = thawed(step)
        if type(step).__name__ != "ColumnTransformer":
            every = list(range(getattr(step, "n_features_in_", 0)))
            parts = [(step, every, slice(0, n_columns))]
        elif _room(step) == "sklearn.compose" and not step.transformer_weights:
            parts = [
                (inner, selected_columns(step, selected, name), step.output_indices_[name])
                for name, inner, selected in step.transformers_
                if not (isinstance(inner, str) and inner == "drop")
            ]
        else:
            return None
        encoders = []
        for inner, places, made in parts:
            if places:
                fitted = _nameless(inner)
                if fitted is None:
                    return None
                categories = _looked_up(fitted, [features.get(names[j]) for j in places], made)
                encoders.append(_Encoder(fitted, places, made, categories))
        return cls(encoders) if encoders else None

    def ask(self, rows: Given) -> Floats | None:
        """Return what the encoders make of rows; None where the step itself must be asked."""
        if self._are_same is False:
            return None
        wide = max(encoder.made.stop for encoder in self._encoders)
        points = np.zeros((len(rows.index), wide))
        is_asked = all(encoder.fill(rows, points) for encoder in self._encoders)
        return points if is_asked else None

    @property
    def are_same(self) -> bool:
        """Whether they have been seen to give the same as the step."""
        return self._are_same is True

    def compare(self, ours: Floats, made: Any) -> None:
        """Note whether what they give of rows is what the step itself has made of them.

        A table, which the classifier may know by name, is not; nor are other floats than doubles.
        """
        theirs = made.toarray() if hasattr(made, "toarray") else made
        is_alike = isinstance(theirs, np.ndarray) and theirs.dtype == np.float64
        self._are_same = is_alike and np.array_equal(ours, theirs, equal_nan=True)


def _looked_up(
    fitted: Any, features: list[RawFeature | None], made: slice
) -> list[Category] | None:
    """Return the categories of an encoder that looks up the levels of each; None: it does not.

    All that it makes must come from these, and all that comes from these must be made by it.
    """
    if type(fitted).__name__ not in _LOOKING_UP:
        return None
    found = [feature for feature in features if isinstance(feature, Category)]
    if len(found) < len(features) or not all(each.has_plain_levels for each in found):
        return None
    columns = np.concatenate([category.columns for category in found])
    is_whole = np.array_equal(np.sort(columns), np.arange(made.start, made.stop))
    return found if is_whole else None


def _nameless(fitted: Any) -> Any:
    """Return a fitted encoder that has forgotten the names of its columns; None: it may need them.

    What was fitted is shared with it.
    """
    fitted, kind = copy.copy(thawed(fitted)), type(thawed(fitted)).__name__
    if kind == "Pipeline" and _room(fitted) == "sklearn.pipeline":
        steps = [(name, step) for name, step in fitted.steps if not skipped(step)]
        fitted.steps = [(name, _nameless(step)) for name, step in steps]
        is_known = bool(steps) and all(step is not None for _, step in fitted.steps)
        return fitted if is_known else None
    if _room(fitted) not in _ROOMS or getattr(fitted, "func", None) is not None:
        return None
    vars(fitted).pop("feature_names_in_", None)
    return fitted


def _room(fitted: Any) -> str:
    """Return the room of its library in which a class stands."""
    return ".".join(type(fitted).__module__.split(".")[:2])
