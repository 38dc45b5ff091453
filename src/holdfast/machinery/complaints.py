"""All that is wrong with what somebody gave, said at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def read_all(*reads: Callable[[], Any]) -> list[Any]:
    """Read several things; where some cannot be read, one error says what is wrong with each.

    Examples
    --------
    >>> read_all(lambda: float("1.5"), lambda: int("2"))
    [1.5, 2]
    >>> read_all(lambda: float("a"), lambda: 1, lambda: float("b"))
    Traceback (most recent call last):
    ValueError: could not convert string to float: 'a'
    could not convert string to float: 'b'
    """
    found, complaints = [], []
    for read in reads:
        try:
            found.append(read())
        except (ValueError, OSError, ModuleNotFoundError) as error:
            complaints.append(str(error))
    if complaints:
        raise ValueError("\n".join(complaints))
    return found
