"""From the answer in encoded columns back to raw units: exact where it is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.actions.joint import Joint
from holdfast.actions.posed import Posed
from holdfast.actions.ranges import Range, lattice_anchor, multiples
from holdfast.actions.reach import Reach
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models.encoding import Number

if TYPE_CHECKING:
    import pandas as pd

# An encoded value within this of the person's own is the person's own.
UNCHANGED = 1e-12
_MANY_STEPS = 2.0**40


def decode(
    posed: Posed, recourse: ArrayLike, levels: ArrayLike, rows: ArrayLike | None = None
) -> pd.DataFrame:
    """Return what people become, in raw units and with all their columns.

    What does not change keeps exactly its value. Whole numbers and steps are exact; other numbers
    are within their bounds to the last bit. Columns keep their type wherever it can hold the new
    values exactly, and become float64 otherwise.

    Parameters
    ----------
    posed : Posed
    recourse : (n, d) array
        Encoded points, one for each person of ``posed.people``.
    levels : (n, g) array of int
        The position of the level that each person takes in each group of the problem.
    rows : array, optional
        Positions or a mask of the people to decode: those who have a recourse. All by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from holdfast import NormBall
    >>> from holdfast.actions import ActionSet, pose_problem
    >>> from holdfast.models.encoding import Encoding
    >>> table = pd.DataFrame({"x0": [1, 5, 9], "x1": [0.5, 1.5, 2.5]})
    >>> encoding = Encoding.of(([1.0, 1.0], -4.0))
    >>> actions = ActionSet.from_data(table)
    >>> posed = pose_problem(table, encoding, actions, robust_to=NormBall(1, 0.1))
    >>> decode(posed, [[3.0000000001, 0.5], [5.0, 2.0], [9.0, 2.5]], [[], [], []])
       x0   x1
    0   3  0.5
    1   5  2.0
    2   9  2.5
    """
    n, g = posed.problem.current.shape
    points, chosen = np.asarray(recourse, dtype=np.float64), np.asarray(levels, dtype=np.int64)
    start = posed.problem.base.X
    if points.shape != start.shape or chosen.shape != (n, g):
        raise ValueError(
            f"recourse has shape {points.shape} and levels {chosen.shape}; expected "
            f"{start.shape} and {(n, g)}"
        )
    which = np.arange(n) if rows is None else np.arange(n)[np.asarray(rows)]
    hopeless = which[~whole_rows(points[which])]
    if hopeless.size:
        raise ValueError(f"person {hopeless[0]} has no recourse; decode those rows that have one")
    return decode_people(posed, which, points[which], chosen[which])


def decode_people(
    posed: Posed, who: NDArray[np.int64], points: Floats, levels: NDArray[np.int64]
) -> pd.DataFrame:
    """Decode points of some people, by position: a row for each of them."""
    start, current = posed.problem.base.X, posed.problem.current
    people = posed.people_at(who)
    result = people.copy(deep=False)  # columns that nobody changes are shared, and never written to
    differs = points != start[who]
    for name, raw in posed.ranges.items():
        number = posed.encoding[name]
        assert isinstance(number, Number)
        moved = np.flatnonzero(differs[:, number.column])
        was, is_now = start[who[moved], number.column], points[moved, number.column]
        seen = np.abs(is_now - was) > UNCHANGED * (1.0 + np.abs(was))
        if not seen.all():
            moved, was, is_now = moved[seen], was[seen], is_now[seen]
        if moved.size:
            values = _raw_values(raw, number, who[moved], was, is_now)
            result[name] = _replaced(people[name], moved, values)
    for k, (name, known) in enumerate(posed.levels.items()):
        moved = np.flatnonzero(levels[:, k] != current[who, k])
        if not moved.size:
            continue
        if isinstance(known, Joint):
            taken, own = known.raw[who[moved], levels[moved, k]], known.raw[who[moved], 0]
            for j, each in enumerate(known.bundle.names):
                other = taken[:, j] != own[:, j]
                if other.any():
                    result[each] = _replaced(people[each], moved[other], taken[other, j])
        elif isinstance(known, Reach):
            values = known.values(who[moved], levels[moved, k])
            result[name] = _replaced(people[name], moved, values)
        else:
            result[name] = _relabelled(people[name], moved, known, levels[:, k])
    return result


def _raw_values(
    raw: Range, number: Number, rows: NDArray[np.int64], old: Floats, new: Floats
) -> Floats:
    here = raw.take(rows)
    if raw.step == 0.0:
        # from the person's own value, which is exact, rather than from the shift
        return np.clip(here.value + (new - old) / number.scale, here.lower, here.upper)
    moved = (new - lattice_anchor(here, number, old)) / (raw.step * number.scale)
    counts = here.count + np.round(moved)
    # far from 0 an encoded value no longer tells neighbours apart
    inside = np.clip(counts, np.ceil(here.lower / raw.step), np.floor(here.upper / raw.step))
    counts = np.where(np.abs(counts) > _MANY_STEPS, inside, counts)
    return multiples(counts, raw.step)


def _replaced(column: Any, moved: NDArray[np.int64], values: Floats) -> Any:
    """Put numbers into a column, in its own type if that can hold them."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(np.float64)
    dtype: Any = column.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":
        plain = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        with np.errstate(invalid="ignore", over="ignore"):
            cast = values.astype(plain)
        if not (cast.astype(np.float64) == values).all():
            column, cast = column.astype(np.float64), values
    else:
        cast = np.array([int(v) if v == int(v) else v for v in values.tolist()], dtype=object)
    return _with(column, moved, cast)


def _relabelled(
    column: Any, moved: NDArray[np.int64], known: tuple[Any, ...], levels: NDArray[np.int64]
) -> Any:
    """Put levels into a column; a pandas category learns those that it does not know."""
    import pandas as pd

    is_text = isinstance(column.dtype, pd.StringDtype) and set(map(type, known)) == {str}
    if is_text and levels.max() < len(known):  # all of it is written anew, at once
        return pd.Series(pd.array(known, dtype=column.dtype).take(levels), column.index)
    taken = [known[level] for level in levels[moved].tolist()]
    if isinstance(column.dtype, pd.CategoricalDtype):
        new = [level for level in dict.fromkeys(taken) if level not in column.cat.categories]
        column = column.cat.add_categories(new) if new else column
    if getattr(column.dtype, "kind", "O") == "b" and set(taken) <= {0, 1}:
        taken = [bool(level) for level in taken]  # an encoder may know them as 0 and 1
    if getattr(column.dtype, "kind", "O") in "biuf":
        column = column.astype(_type_for(column.dtype, taken))
    return _with(column, moved, taken)


def _type_for(dtype: Any, values: list[Any]) -> Any:
    """Return a column's own type if it can hold values, or else one that can."""
    import pandas as pd

    own, plain = np.array(values), np.dtype(getattr(dtype, "numpy_dtype", dtype))
    if own.dtype.kind not in "biuf" or (own.dtype.kind == "b") != (dtype.kind == "b"):
        return np.dtype(object)
    with np.errstate(invalid="ignore", over="ignore"):
        fits = np.array_equal(own.astype(plain), own)
    if fits:
        return dtype
    wide = np.result_type(plain, own.dtype)
    if isinstance(dtype, np.dtype):
        return wide
    return pd.array(np.zeros(0, dtype=wide)).dtype  # it may hold NA, too


def _with(column: Any, moved: NDArray[np.int64], values: Any) -> Any:
    """Return a column with other values in some rows, which its type can hold."""
    import pandas as pd

    is_array = isinstance(column.dtype, np.dtype)
    array = column.to_numpy(copy=True) if is_array else column.array.copy()
    array[moved] = values
    return pd.Series(array, column.index, column.dtype, copy=False)
