"""An independent check of advice, in raw units: every rule of the action set, in words.

It reads the action set and two tables, and knows nothing of encodings, problems and solvers. Whole
columns are compared; only what is wrong is looked at person by person.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.action_set import ActionSet
from holdfast.actions.category import CategoryFeature
from holdfast.actions.derived import Derived
from holdfast.actions.links import AtMost, FeatureLink, Linear
from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import EPS, Floats
from holdfast.models.encoding.reading import is_missing, plain, shorten

if TYPE_CHECKING:
    import pandas as pd

# Room for rounding in bounds, steps and links, relative to the numbers compared.
ROUNDING = 1e-9

_Values = dict[Any, NDArray[Any]]
_Say = Callable[[int], str]  # a sentence about a row
_Report = Callable[[Iterable[Any], str | _Say], None]


def check(actions: ActionSet, before: Any, after: Any) -> list[str]:
    """Say what is wrong with a change of one person; nothing if the list is empty.

    It reads the action set and two rows, and knows nothing of encodings, problems and solvers.

    Parameters
    ----------
    actions : ActionSet
    before, after : Series, dict, or DataFrame with one row
        The person now, and as advised, in raw units.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> actions = ActionSet([NumberFeature("age", unit="years", direction="up", max_increase=2)])
    >>> check(actions, {"age": 30}, {"age": 33})
    ['age rises by 3 years; at most 2 are allowed']
    """
    actions.validate()
    return _check(actions, _single(before), _single(after), 1).get(0, [])


def check_changes(
    actions: ActionSet, before: pd.DataFrame, after: pd.DataFrame
) -> dict[int, list[str]]:
    """Say what is wrong with the changes of many people, of an action set that has been validated.

    Parameters
    ----------
    actions : ActionSet
    before, after : DataFrames
        The people now, and as advised: the same number of rows, in the same order.

    Returns
    -------
    dict
        What `check` says, for the position of each person of whom it says anything.

    Examples
    --------
    >>> import pandas as pd
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> actions = ActionSet([NumberFeature("age", direction="up")])
    >>> check_changes(actions, pd.DataFrame({"age": [30, 40]}), pd.DataFrame({"age": [31, 39]}))
    {1: ['age falls by 1, but may only rise']}
    """
    if len(before) != len(after):
        raise ValueError(f"{len(before)} people before, but {len(after)} after")
    columns = [{name: _values(column) for name, column in t.items()} for t in (before, after)]
    return _check(actions, columns[0], columns[1], len(before))


def raw_cost(actions: ActionSet, before: Any, after: Any) -> float:
    """Cost of a change of one person, in raw units.

    A number that was missing costs the same whatever it is.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> raw_cost(ActionSet([NumberFeature("age", cost=0.5)]), {"age": 30}, {"age": 33})
    1.5
    """
    return math.fsum(costs_by_feature(actions, before, after).values())


def costs_by_feature(
    actions: ActionSet, before: Any, after: Any, presumed: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Cost of each feature that a change of one person changes; see `raw_cost`.

    Where a number is given that was missing, `presumed` says what the model had taken it for; a
    number that it had taken for none costs the same whatever it is.

    What is derived changes with others, at no cost of its own.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> actions = ActionSet([NumberFeature("age", cost=0.5), NumberFeature("debt")])
    >>> costs_by_feature(actions, {"age": 30, "debt": 9}, {"age": 33, "debt": 9})
    {'age': 1.5}
    """
    old, new = _single(before), _single(after)
    derived = {each.feature for each in actions.derived}
    costs: dict[str, float] = {}
    for name in actions:
        if name not in new or (name in old and not _differs(old[name], new[name])[0]):
            continue
        if name in derived:
            costs[name] = 0.0
        elif isinstance(actions[name], NumberFeature):
            costs[name] = _number_cost(actions[name], old[name][0], new[name][0], presumed or {})
        else:
            costs[name] = actions[name].switch_cost(old[name][0], new[name][0])
    return costs


def _number_cost(
    feature: NumberFeature, old: Any, new: Any, presumed: Mapping[str, float]
) -> float:
    fixed_cost = feature.fixed_cost
    if is_missing(old):
        old, fixed_cost = presumed.get(feature.name, new), feature.provide_cost or 0.0
    return feature.cost * abs(float(new) - float(old)) + fixed_cost


def _check(actions: ActionSet, old: _Values, new: _Values, n: int) -> dict[int, list[str]]:
    wrong: dict[int, list[str]] = {}

    def report(rows: Iterable[Any], said: str | _Say) -> None:
        for row in map(int, rows):
            text = said if isinstance(said, str) else said(row)
            wrong.setdefault(row, []).append(text)

    everybody = range(n)
    for name in (name for name in old if name not in new):
        report(everybody, f"{name} is missing from the advice")
    changed: dict[Any, NDArray[np.bool_]] = {}
    derived = {each.feature for each in actions.derived}
    for name, values in new.items():
        if name in old:
            changed[name] = _differs(old[name], values)
        else:
            changed[name] = ~_missing(values)
        rows = np.flatnonzero(changed[name])
        if not rows.size:
            continue
        if name not in old or name not in actions:
            report(rows, f"{name} changes, but is not a feature of the action set")
        elif name in derived:  # its steps are those of what it is computed from
            free = replace(actions[name], step=None, integer=False)
            _check_number(free, rows, old[name], values, report)
        elif isinstance(actions[name], NumberFeature):
            _check_number(actions[name], rows, old[name], values, report)
        else:
            _check_category(actions[name], rows, old[name], values, report)
    with np.errstate(invalid="ignore"):
        for each in actions.derived:
            _check_derived(each, old, new, changed, report)
    if actions.max_changes is not None:
        done = {name: moved for name, moved in changed.items() if name not in derived}
        _check_count(actions.max_changes, done, n, report)
    with np.errstate(invalid="ignore"):  # infinite ones have been reported
        for link in actions.links:
            _check_link(link, old, new, n, report)
    return wrong


def _check_number(
    feature: NumberFeature,
    rows: NDArray[np.int64],
    before: NDArray[Any],
    after: NDArray[Any],
    report: _Report,
) -> None:
    """Check the rows that change a number, by rising position."""
    is_given = _missing(before[rows]) & ~_missing(after[rows])
    if feature.provide_cost is None:
        report(rows[is_given], f"{feature.name} is filled in, but must stay missing")
        rows = rows[~is_given]
        is_given = np.zeros(len(rows), dtype=bool)
    (old, old_fine), (new, new_fine) = _floats(before[rows]), _floats(after[rows])
    old = np.where(is_given, new, old)  # there is nothing that it could rise or fall from
    old_fine = (old_fine & np.isfinite(old)) | is_given
    new_fine = new_fine & np.isfinite(new)
    name, unit = feature.name, f" {feature.unit}" if feature.unit else ""

    def place(row: int) -> int:
        return int(np.searchsorted(rows, row))

    def say_odd(row: int) -> str:
        value = (after if old_fine[place(row)] else before)[row]
        return f"{name} = {plain(value)!r} is not a finite number"

    def moves(row: int) -> str:
        by = change[place(row)]
        return f"{name} {'rises' if by > 0 else 'falls'} by {_show(abs(by))}{unit}"

    def is_now(row: int) -> str:
        return f"{name} = {_show(new[place(row)])}{unit}"

    def say(first: _Say, rest: str) -> _Say:
        return lambda row: first(row) + rest

    fine = old_fine & new_fine
    report(rows[~fine], say_odd)
    old, new = np.where(fine, old, 0.0), np.where(fine, new, 0.0)
    change = new - old
    if feature.stays:
        report(rows[fine & is_given], f"{name} is filled in, but may not change")
        report(rows[fine & ~is_given], say(moves, ", but may not change"))
        return
    room = np.zeros(len(rows))
    if not feature.integer:
        room = ROUNDING * np.maximum(np.abs(old), np.abs(new))
    if feature.direction == "up":
        report(rows[change < -room], say(moves, ", but may only rise"))
    if feature.direction == "down":
        report(rows[change > room], say(moves, ", but may only fall"))
    for limit, by in ((feature.max_increase, change), (feature.max_decrease, -change)):
        if limit is not None:
            far = fine & (by > limit + room)
            report(rows[far], say(moves, f"; at most {_show(limit)} are allowed"))
    # whoever is outside the bounds already may stay there
    for end, what, sign in (
        (feature.upper, "its upper bound", 1.0),
        (feature.lower, "its lower bound", -1.0),
        (feature.possible_upper, "the highest possible value", 1.0),
        (feature.possible_lower, "the lowest possible value", -1.0),
    ):
        if end is not None:
            held = np.where(is_given, -np.inf, sign * old)
            beyond = fine & (sign * new > np.maximum(sign * end, held) + room)
            side = "above" if sign > 0 else "below"
            report(rows[beyond], say(is_now, f" is {side} {_show(end)}, {what}"))
    if feature.integer:
        report(rows[new != np.floor(new)], say(is_now, " is not a whole number"))
    if feature.step is not None:
        step, nearest = feature.step, np.round(new / feature.step) * feature.step
        off = np.abs(new - nearest) > ROUNDING * step + 4.0 * EPS * np.abs(new)
        report(rows[off], say(is_now, f" is not a multiple of {_show(step)}"))


def _check_category(
    feature: CategoryFeature,
    rows: NDArray[np.int64],
    before: NDArray[Any],
    after: NDArray[Any],
    report: _Report,
) -> None:
    """Check the rows that change a category."""
    switches = list(zip(before[rows].tolist(), after[rows].tolist(), strict=True))
    try:
        distinct: Iterable[tuple[Any, Any]] = set(switches)  # many make the same one
    except TypeError:  # what cannot be hashed is no level
        distinct = switches
    if all(feature.refusal(plain(old), plain(new)) is None for old, new in distinct):
        return
    for row, switch in zip(rows.tolist(), switches, strict=True):
        old, new = map(plain, switch)
        reason = feature.refusal(old, new)
        if reason is not None:
            report([row], f"{feature.name} changes from {old!r} to {new!r}, but {reason}")


def _check_count(most: int, changed: dict[Any, NDArray[np.bool_]], n: int, report: _Report) -> None:
    count = np.zeros(n, dtype=np.int64)
    for moved in changed.values():
        count += moved

    def say(row: int) -> str:
        names = [name for name, moved in changed.items() if moved[row]]
        return f"{len(names)} features change ({shorten(names)}); at most {most} may"

    report(np.flatnonzero(count > most), say)


def _check_link(link: FeatureLink, old: _Values, new: _Values, n: int, report: _Report) -> None:
    none = np.full(n, None, dtype=object)
    read = [_floats(table.get(name, none)) for table in (old, new) for name in link.names]
    fine = np.logical_and.reduce([ok & ~np.isnan(values) for values, ok in read])
    names = f"{', '.join(link.names[:-1])} and {link.names[-1]}"
    report(np.flatnonzero(~fine), f"{names} are linked, but one of them is not a number")
    values = [np.where(fine, values, 0.0) for values, _ in read]
    if isinstance(link, Linear):
        _check_sum(link, values, report)
        return
    (a, b), (old_a, old_b, new_a, new_b) = link.names, values
    room = ROUNDING * np.abs([old_a, old_b, new_a, new_b]).max(axis=0)
    if isinstance(link, AtMost):
        report(
            np.flatnonzero(new_a - new_b > np.fmax(0.0, old_a - old_b) + room),
            lambda row: f"{a} = {_show(new_a[row])} is above {b} = {_show(new_b[row])}",
        )
        return
    moved_a, moved_b = new_a - old_a, new_b - old_b
    wanted = link.by * moved_b

    def say(row: int) -> str:
        changes = f"{a} changes by {_show(moved_a[row])}, but follows {b}"
        which = f"which changes by {_show(moved_b[row])}: not by {_show(wanted[row])}"
        return f"{changes}, {which}"

    report(np.flatnonzero(np.abs(moved_a - wanted) > room * max(1.0, abs(link.by))), say)


def _check_derived(
    each: Derived,
    old: _Values,
    new: _Values,
    changed: dict[Any, NDArray[np.bool_]],
    report: _Report,
) -> None:
    """Check that what is derived moves with what it is computed from, and only then."""
    names = (each.feature, *each.parents)
    if not all(name in old and name in new for name in names):
        missing = [name for name in names if name not in old or name not in new]
        report(range(len(next(iter(new.values())))), f"{missing[0]} is needed for {each.feature}")
        return
    moved = np.logical_or.reduce([changed[name] for name in each.parents])
    report(
        np.flatnonzero(changed[each.feature] & ~moved),
        f"{each.feature} changes, but {' and '.join(each.parents)} do not",
    )
    is_now, _ = _floats(new[each.feature])
    wanted = each.value({name: _floats(new[name])[0] for name in each.parents})
    off = ~(np.abs(is_now - wanted) <= ROUNDING * np.maximum(np.abs(is_now), np.abs(wanted)))
    report(
        np.flatnonzero(moved & off),
        lambda row: (
            f"{each.feature} = {_show(is_now[row])}, but {each.words} is {_show(wanted[row])}"
        ),
    )


def _check_sum(link: Linear, values: list[Floats], report: _Report) -> None:
    """Check a weighted sum of numbers: all of them before, and then all of them after."""
    terms = np.array(values) * np.array([*link.coef.values()] * 2, dtype=np.float64)[:, None]
    was, now = terms[: len(link.coef)].sum(axis=0), terms[len(link.coef) :].sum(axis=0)
    most = np.fmax(float(link.at_most), was)  # whoever is above it already may stay
    report(
        np.flatnonzero(now > most + ROUNDING * np.abs(terms).max(axis=0)),
        lambda row: f"{link.words} = {_show(now[row])} is above {_show(link.at_most)}",
    )


def _single(values: Any) -> _Values:
    """Return the columns of a table that has one person."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        if len(values) != 1:
            raise ValueError(f"check reads one person at a time, but the table has {len(values)}")
        return {name: _object(values[name].iloc[0]) for name in values.columns}
    if not isinstance(values, Mapping) and not hasattr(values, "items"):
        raise TypeError(
            f"{type(values).__name__} is not a row: pass a Series, a dict or a data frame"
        )
    return {name: _object(value) for name, value in values.items()}


def _object(value: Any) -> NDArray[np.object_]:
    single = np.empty(1, dtype=object)
    single[0] = plain(value)
    return single


def _values(column: Any) -> Any:
    """Return a column as an array: of numbers or of texts where it holds nothing else."""
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(column.to_numpy())
    if _is_text(column):
        return column.array
    return np.asarray(column.to_numpy(dtype=object))


def _is_text(values: Any) -> bool:
    """Whether it is one of pandas' arrays of texts, which are compared without looking at each."""
    import pandas as pd

    return isinstance(values.dtype, pd.StringDtype)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if _is_text(values):
        return np.asarray(values.isna())  # type: ignore[attr-defined]
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values], dtype=bool)
    return np.asarray(values != values)


def _differs(old: NDArray[Any], new: NDArray[Any]) -> NDArray[np.bool_]:
    """Say where two columns differ; a missing value is like another missing one."""
    if old.dtype.kind != "O" and new.dtype.kind != "O":
        return np.asarray((old != new) & ~(_missing(old) & _missing(new)))
    if old.dtype == new.dtype and _is_text(old):
        equal: Any = old == new
        if not isinstance(equal, np.ndarray):  # missing where one of them is
            equal = equal.to_numpy(dtype=bool, na_value=False)
        return np.asarray(~equal & ~(_missing(old) & _missing(new)))
    before, after = old.tolist(), new.tolist()
    differs = np.zeros(len(before), dtype=bool)
    for k, equal in enumerate(map(operator.eq, before, after)):
        if equal is not True:  # a missing value is not even equal to itself
            differs[k] = not _is_same(before[k], after[k])
    return differs


def _is_same(old: Any, new: Any) -> bool:
    if is_missing(old) or is_missing(new):
        return is_missing(old) and is_missing(new)
    return bool(old == new)


def _floats(values: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Return a column as floats, and which of its values are numbers at all."""
    if values.dtype.kind != "O":
        return values.astype(np.float64), np.ones(len(values), dtype=bool)
    fine = np.array([isinstance(v, (numbers.Real, np.bool_)) for v in values], dtype=bool)
    floats = [float(v) if ok else math.nan for v, ok in zip(values, fine, strict=True)]
    return np.array(floats, dtype=np.float64), fine


def _show(value: float) -> str:
    return f"{float(value):.12g}"
