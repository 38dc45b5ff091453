"""People go by the labels of their rows: one look-up for all results."""

from __future__ import annotations

import numbers
from typing import Any

_SHOWN = 5


def position_of(label: Any, index: Any, count: int) -> int:
    """Return the position of the one row of that label.

    Parameters
    ----------
    label : hashable
    index : pandas Index or None
        None: the rows came without labels, and are called 0, 1, ...
    count : int
        How many rows there are.

    Examples
    --------
    >>> import pandas as pd
    >>> position_of("b", pd.Index(["a", "b"]), 2)
    1
    >>> position_of(2, None, 2)
    Traceback (most recent call last):
        ...
    ValueError: there is no row 2; the rows are: 0, 1
    """
    if index is None:
        whole = isinstance(label, numbers.Integral) and not isinstance(label, bool)
        if whole and 0 <= int(label) < count:
            return int(label)
        raise ValueError(f"there is no row {_plain(label)!r}; {_known(range(count))}")
    from pandas.errors import InvalidIndexError

    try:
        place = index.get_loc(label)
    except (KeyError, TypeError, ValueError, InvalidIndexError):  # the last three: it is no label
        raise ValueError(f"there is no row {_plain(label)!r}; {_known(index)}") from None
    if not isinstance(place, numbers.Integral):
        raise ValueError(
            f"several rows have the label {_plain(label)!r}; give every row its own, for example "
            "with table.reset_index(drop=True)"
        )
    return int(place)


def _known(labels: Any) -> str:
    if not len(labels):
        return "there are no rows at all"
    shown = [repr(_plain(labels[k])) for k in range(min(_SHOWN, len(labels)))]
    rest = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return f"the rows are: {', '.join(shown)}{rest}"


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
