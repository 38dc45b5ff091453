"""Names that every room uses, and how arguments are read."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.int8]
EPS = 2.220446049250313e-16
_SHOWN = 80  # characters of a value in an error
_MOST_SEED = 2**63 - 1  # what torch takes


def as_read(values: Any, dtype: Any = np.float64) -> Any:
    """Return an array as kernels read it: contiguous, aligned, in the machine's order of bytes."""
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        flags = values.flags
        if flags.c_contiguous and flags.aligned:  # as a rule it is, and numpy takes long to see it
            return values
    return np.require(values, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def to_number(value: Any) -> float:
    """Read an argument as a float; NaN, which no range allows, for what is not a number."""
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            return math.nan
    return math.nan


def check_positive(name: str, value: Any, *, or_zero: bool = False) -> None:
    """Refuse what is not a positive, finite number (or, where allowed, 0)."""
    number = to_number(value)
    if not 0.0 <= number < math.inf or (number == 0.0 and not or_zero):
        refuse_number(name, value, "a finite number, " + (">= 0" if or_zero else "> 0"))


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number strictly between two others."""
    if not low < to_number(value) < high:
        refuse_number(name, value, f"a number strictly between {low:g} and {high:g}")


def check_count(name: str, value: Any, least: int = 1, most: int = _MOST_SEED) -> None:
    """Refuse what is not a whole number, at least `least`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or not least <= value <= most:
        allowed = f"a whole number >= {least}"
        refuse_number(name, value, allowed if most == _MOST_SEED else f"{allowed} and <= {most}")


def check_random_state(value: Any) -> None:
    """Refuse what cannot seed random numbers."""
    check_count("random_state", value, least=0)


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        refuse(name, value, "True or False")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of a few words."""
    if not isinstance(value, str) or value not in choices:
        refuse(name, value, "one of " + ", ".join(map(repr, choices)))


def check_kind(name: str, value: Any, kind: type, how: str) -> None:
    """Refuse what is not of a kind, and say how to come by one."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise TypeError(f"{name} = {shown(value)} is not {article} {kind.__name__}; {how}")


def refuse(name: str, value: Any, allowed: str) -> NoReturn:
    """Raise the error that names the argument, its value and what is allowed."""
    raise ValueError(f"{name} = {shown(value)} is not allowed; it must be {allowed}")


def refuse_number(name: str, value: Any, allowed: str) -> NoReturn:
    """Refuse a value where a number is needed, and say so if it is a number written as text."""
    refuse(name, value, allowed + if_text(value))


def if_text(value: Any) -> str:
    """End an error where a number is needed: nothing, unless the value is a number as text.

    Examples
    --------
    >>> if_text("0.6"), if_text("much"), if_text(60)
    ("; '0.6' is text, not a number", '', '')
    """
    try:
        is_number = isinstance(value, str) and not math.isnan(float(value))
    except ValueError:
        is_number = False
    return f"; {shown(value)} is text, not a number" if is_number else ""


def shown(value: Any) -> str:
    """Show a value in an error: on one line, and not too much of it."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever a stranger's repr does, or a number with too many digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_frame(values: Any) -> bool:
    """Whether it is a pandas data frame; pandas is not loaded to find out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.DataFrame)


def is_series(values: Any) -> bool:
    """Whether it is a pandas series."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.Series)


def objects_of(values: list[Any]) -> NDArray[np.object_]:
    """Return values as they are: an array of texts would give all the width of the longest."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def read_floats(name: str, values: Any) -> Floats:
    """Return a C-ordered copy as float64, nobody else's; missing values become NaN."""
    if is_frame(values):
        if not values.columns.is_unique:
            raise ValueError(
                f"{name} has several columns with the same name: {shown(list(values.columns))}"
            )
        for column, kind in zip(values.columns, values.dtypes, strict=True):
            if not sys.modules["pandas"].api.types.is_numeric_dtype(kind):
                raise ValueError(f"{name}: column {column!r} holds {kind}, not numbers")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise ValueError(f"{name} is a sparse matrix; pass a dense one: {name}.toarray()")
    try:
        return _as_floats(values)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(f"{name} cannot be read as numbers: {why}") from None


def seen_floats(name: str, values: Any) -> Floats:
    """Return what `read_floats` does, only to be looked at: no copy where there is nothing to read.

    What is read-only is copied, for kernels are compiled for arrays that are not.
    """
    is_plain = type(values) is np.ndarray and values.dtype == np.float64 and values.flags.carray
    return values if is_plain else read_floats(name, values)


def _as_floats(values: Any) -> Floats:
    if is_frame(values):
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_series(values):
        values = values.to_numpy(na_value=np.nan)
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.asarray(values, dtype=np.float64).filled(np.nan)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        if any(isinstance(v, (str, bytes, complex)) for v in array.flat):
            raise TypeError("it holds text or complex numbers")
    elif array.dtype.kind not in "biuf":
        raise TypeError(f"it holds {array.dtype} values")
    return np.array(array, dtype=np.float64, order="C")


def read_matrix(name: str, values: Any, columns: int | None = None) -> Floats:
    """Read an (n, d) array; of so many columns, where that is known."""
    array = read_floats(name, values)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        width = "d" if columns is None else columns
        raise ValueError(f"{name} has shape {array.shape}, expected (n, {width})")
    return array


def whole_rows(points: Floats) -> NDArray[np.bool_]:
    """Say which rows are finite throughout.

    Examples
    --------
    >>> whole_rows(np.array([[1.0, 2.0], [np.nan, 2.0]]))
    array([ True, False])
    """
    return np.asarray(np.isfinite(points).all(axis=1))


def ranks_of(values: Floats) -> NDArray[np.int64]:
    """Number the floats in their order, from 0 at 0, so that neighbours differ by 1.

    Examples
    --------
    >>> ranks_of(np.array([0.0, 5e-324, -5e-324])), floats_at(ranks_of(np.array([-1.5])))
    (array([ 0,  1, -1]), array([-1.5]))
    """
    bits = (values + 0.0).view(np.int64)  # + 0.0: there is one zero
    return np.where(bits >= 0, bits, np.iinfo(np.int64).min - bits)


def floats_at(ranks: NDArray[np.int64]) -> Floats:
    """Return the floats of these numbers: see `ranks_of`."""
    bits = np.where(ranks >= 0, ranks, np.iinfo(np.int64).min - ranks)
    return np.asarray(bits, dtype=np.int64).view(np.float64)
