"""The encoders of a fitted step, asked apart and with arrays: tables take much longer.

scikit-learn finds out of every column of a table what kind of table it comes from, which takes as
long as to encode a thousand people. An array it takes as it is. Encoders of its own that have
forgotten the names of their columns take arrays, and give what they would give of a table. What the
step itself makes of the first rows is compared with that; only if it is the same to the last bit,
the encoders alone are asked about all others.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models.encoding.given import Given
from holdfast.models.encoding.steps import selected_columns
from holdfast.models.encoding.unwrap import skipped, thawed

# Of encoders in these rooms of scikit-learn it is known that they read columns by their places.
_ROOMS = ("sklearn.preprocessing", "sklearn.impute")


class ArrayEncoders:
    """The encoders of a fitted step that know nothing of names, and the columns of each.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> table = pd.DataFrame({"age": [20.0, 70.0], "home": ["own", "rent"]})
    >>> step = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["home"]))
    >>> encoders = ArrayEncoders.of(step.fit(table))
    >>> columns = [np.array([45.0]), np.array(["rent"], dtype=object)]
    >>> rows = Given(["age", "home"], True, table.index[:1], columns, [True, True])
    >>> encoders.ask(rows)
    array([[0., 0., 1.]])
    """

    def __init__(self, encoders: list[tuple[Any, list[int]]]) -> None:
        self._encoders = encoders
        self._are_same: bool | None = None  # to the step itself; None: nobody has asked yet

    @classmethod
    def of(cls, step: Any) -> ArrayEncoders | None:
        """Take a fitted step apart; None where it must be asked itself."""
        step = thawed(step)
        if type(step).__name__ != "ColumnTransformer":
            encoders = [(step, list(range(getattr(step, "n_features_in_", 0))))]
        elif _room(step) == "sklearn.compose" and not step.transformer_weights:
            encoders = [
                (inner, selected_columns(step, selected, name))
                for name, inner, selected in step.transformers_
                if not (isinstance(inner, str) and inner == "drop")
            ]
        else:
            return None
        nameless = [(_nameless(inner), places) for inner, places in encoders if places]
        if not nameless or any(inner is None for inner, _ in nameless):
            return None
        return cls(nameless)

    def ask(self, rows: Given) -> Floats | None:
        """Return what the encoders make of rows; None where the step itself must be asked."""
        if self._are_same is False:
            return None
        made = []
        for encoder, places in self._encoders:
            block = rows.block(places)
            if block is None:
                return None
            try:
                values = encoder.transform(block)
            except ValueError:  # the step itself says it better
                return None
            made.append(values)
        return _side_by_side(made)

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


def _side_by_side(blocks: list[Any]) -> Floats:
    """Put what encoders have made, dense or sparse, into one array."""
    wide = np.zeros((blocks[0].shape[0], sum(block.shape[1] for block in blocks)))
    begin = 0
    for block in blocks:
        end = begin + block.shape[1]
        if hasattr(block, "tocoo"):
            entries = block.tocoo()
            wide[entries.row, begin + entries.col] = entries.data
        else:
            wide[:, begin:end] = block
        begin = end
    return wide


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
