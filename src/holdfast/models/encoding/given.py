"""Raw rows as a pipeline is given them: columns of plain types, and a table where it wants one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.models.encoding.features import Category, RawFeature
from holdfast.models.encoding.reading import Reading, joined

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Given:
    """Rows that a pipeline is asked about; not to be written to.

    Attributes
    ----------
    names : list of str
        The columns, in the order of the fit.
    is_named : bool
        Whether the pipeline knows them by name.
    index : Index
        The labels of the rows.
    columns : list of arrays and Series
        What nobody reads is as it came.
    plain : list of bool
        Which columns hold only numbers, or only texts that are levels.
    levels : list of (n,) arrays of int, or None
        Where a column holds nothing but known levels, their places.
    """

    names: list[str]
    is_named: bool
    index: pd.Index[Any]
    columns: list[Any]
    plain: list[bool]
    levels: list[NDArray[np.int64] | None]

    @classmethod
    def of(
        cls,
        frames: list[pd.DataFrame],
        readings: list[Reading],
        names: list[str],
        features: dict[str, RawFeature],
        *,
        is_named: bool,
    ) -> Given:
        """Bring columns to plain types: float32 or objects would be encoded less exactly.

        The rows of several tables come one below another.
        """
        import pandas as pd

        index = frames[0].index
        if len(frames) > 1:
            index = index.append([frame.index for frame in frames[1:]])
        columns: list[Any] = []
        plain: list[bool] = []
        levels: list[NDArray[np.int64] | None] = []
        for name in names:
            feature, known = features.get(name), None
            if feature is None:
                unread = [frame[name] for frame in frames]
                values: Any = unread[0] if len(unread) == 1 else pd.concat(unread)
                is_plain = False
            elif isinstance(feature, Category):
                places = [reading.levels[name] for reading in readings]
                pairs = zip(frames, places, strict=True)
                values = joined([feature.given(frame, own) for frame, own in pairs])
                if all(own.max(initial=0) < len(feature.levels) for own in places):
                    known = joined(places)
                are_known = known is not None and feature.has_plain_levels
                is_plain = values.dtype.kind != "O" or are_known
            else:
                values, is_plain = joined([reading.numbers[name] for reading in readings]), True
            columns.append(values)
            plain.append(is_plain)
            levels.append(known)
        return cls(names, is_named, index, columns, plain, levels)

    @cached_property
    def table(self) -> Any:
        """The rows as a data frame, or an array where the pipeline knows no names."""
        import pandas as pd

        labels = pd.Index(self.names, dtype=object)  # encoders look them up so
        if self._are_floats(range(len(self.columns))):
            values = np.array(self.columns)
            # a table of one array is read at once, not column by column
            if not self.is_named:
                return values.T
            return pd.DataFrame(values.T, self.index, labels, copy=False)
        series = {
            # its type is said, or texts would be made another type, and unmade by the encoder
            name: values
            if isinstance(values, pd.Series)
            else pd.Series(values, self.index, values.dtype, copy=False)
            for name, values in zip(self.names, self.columns, strict=True)
        }
        table = pd.DataFrame(series, self.index, copy=False)
        table.columns = labels
        return table if self.is_named else table.to_numpy()

    def in_precision_of(self, frame: pd.DataFrame, features: dict[str, RawFeature]) -> Given:
        """Return the same rows, with numbers as a table holds them, perhaps in less precision."""
        columns = [
            frame[name] if _holds_numbers(frame[name], features.get(name)) else values
            for name, values in zip(self.names, self.columns, strict=True)
        ]
        return replace(self, columns=columns)

    def _are_floats(self, places: Any) -> bool:
        return all(self.plain[j] and self.columns[j].dtype == np.float64 for j in places)

    def block(self, places: list[int]) -> NDArray[Any] | None:
        """Return some columns as an array; None where they are not plain, or of several types."""
        first = self.columns[places[0]]
        if not all(self.plain[j] and self.columns[j].dtype == first.dtype for j in places):
            return None
        block = np.empty((len(first), len(places)), dtype=first.dtype)
        for k, j in enumerate(places):
            block[:, k] = self.columns[j]
        return block

    def take(self, which: NDArray[np.bool_]) -> Given:
        """Return some of the rows."""
        columns = [values[which] for values in self.columns]
        levels = [None if places is None else places[which] for places in self.levels]
        return replace(self, index=self.index[which], columns=columns, levels=levels)


def with_numpy_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with nullable numbers in numpy's types of the same precision, if it has any.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": pd.Series([1, 2], dtype="Int8"), "b": pd.Series([1.0, None])})
    >>> with_numpy_numbers(table).dtypes.astype(str).tolist()
    ['int8', 'float64']
    """
    table = frame
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, np.dtype) or getattr(dtype, "kind", "O") not in "biuf":
            continue
        column, own = frame.iloc[:, place], np.dtype(getattr(dtype, "numpy_dtype", np.float64))
        if column.isna().any():
            values = column.to_numpy(np.result_type(own, np.float32), na_value=np.nan)
        else:
            values = column.to_numpy(own)
        table = frame.copy(deep=False) if table is frame else table
        table.isetitem(place, values)
    return table


def _holds_numbers(column: Any, feature: RawFeature | None) -> bool:
    is_number = feature is not None and not isinstance(feature, Category)
    return is_number and getattr(column.dtype, "kind", "O") in "biuf"
