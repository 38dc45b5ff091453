"""An independent check of advice, in raw units: every rule of the action set, in words."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.actions.action_set import ActionSet
from holdfast.actions.links import AtMost, Link
from holdfast.actions.number import NumberFeature
from holdfast.machinery.numbers import EPS
from holdfast.models.encoding.reading import is_missing, plain, shorten

# Room for rounding in bounds, steps and links, relative to the numbers compared.
ROUNDING = 1e-9


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
    return check_change(actions, before, after)


def check_change(actions: ActionSet, before: Any, after: Any) -> list[str]:
    """Return what `check` does, of an action set that has been validated."""
    old, new = _row(before), _row(after)
    wrong: list[str] = []
    for name in (name for name in old if name not in new):
        wrong.append(f"{name} is missing from what is advised")
    changed = [name for name in new if not _same(old.get(name), new[name])]
    for name in changed:
        if name not in old or name not in actions:
            wrong.append(f"{name} changes, but is no feature of the action set")
        elif isinstance(actions[name], NumberFeature):
            wrong += _check_number(actions[name], old[name], new[name])
        else:
            reason = actions[name].refusal(old[name], new[name])
            if reason is not None:
                wrong.append(f"{name} changes from {old[name]!r} to {new[name]!r}, but {reason}")
    if actions.max_changes is not None and len(changed) > actions.max_changes:
        wrong.append(
            f"{len(changed)} features change ({shorten(changed)}); "
            f"at most {actions.max_changes} may"
        )
    for link in actions.links:
        wrong += _check_link(link, old, new)
    return wrong


def raw_cost(actions: ActionSet, before: Any, after: Any) -> float:
    """Cost of a change of one person, in raw units.

    Examples
    --------
    >>> from holdfast.actions import ActionSet, NumberFeature
    >>> raw_cost(ActionSet([NumberFeature("age", cost=0.5)]), {"age": 30}, {"age": 33})
    1.5
    """
    old, new = _row(before), _row(after)
    total = 0.0
    for name in actions:
        if name not in new or _same(old.get(name), new[name]):
            continue
        feature = actions[name]
        if isinstance(feature, NumberFeature):
            total += feature.cost * abs(float(new[name]) - float(old[name])) + feature.fixed_cost
        else:
            total += feature.switch_cost(old[name], new[name])
    return total


def _row(values: Any) -> dict[Any, Any]:
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        if len(values) != 1:
            raise ValueError(f"check reads one person at a time, but the table has {len(values)}")
        return {name: plain(values[name].iloc[0]) for name in values.columns}
    if not isinstance(values, Mapping) and not hasattr(values, "items"):
        raise TypeError(f"{type(values).__name__} is no row: give a Series, a dict or a data frame")
    return {name: plain(value) for name, value in values.items()}


def _same(old: Any, new: Any) -> bool:
    if is_missing(old) or is_missing(new):
        return is_missing(old) and is_missing(new)
    return bool(old == new)


def _check_number(feature: NumberFeature, old: Any, new: Any) -> list[str]:
    name, unit = feature.name, f" {feature.unit}" if feature.unit else ""
    for value in (old, new):
        if not isinstance(value, (numbers.Real, np.bool_)) or not math.isfinite(value):
            return [f"{name} = {value!r} is not a finite number"]
    change = new - old
    room = 0.0 if feature.integer else ROUNDING * max(abs(old), abs(new))
    what = f"{name} {'rises' if change > 0 else 'falls'} by {_show(abs(change))}{unit}"
    wrong = []
    if feature.stays:
        return [f"{what}, but may not change"]
    if feature.direction == "up" and change < -room:
        wrong.append(f"{what}, but may only rise")
    if feature.direction == "down" and change > room:
        wrong.append(f"{what}, but may only fall")
    if feature.max_increase is not None and change > feature.max_increase + room:
        wrong.append(f"{what}; at most {_show(feature.max_increase)} are allowed")
    if feature.max_decrease is not None and -change > feature.max_decrease + room:
        wrong.append(f"{what}; at most {_show(feature.max_decrease)} are allowed")
    # whoever is outside the bounds already may stay there
    if feature.upper is not None and new > max(feature.upper, old) + room:
        wrong.append(f"{name} = {_show(new)}{unit} is above {_show(feature.upper)}, its upper end")
    if feature.lower is not None and new < min(feature.lower, old) - room:
        wrong.append(f"{name} = {_show(new)}{unit} is below {_show(feature.lower)}, its lower end")
    if feature.possible_upper is not None and new > max(feature.possible_upper, old) + room:
        most = _show(feature.possible_upper)
        wrong.append(f"{name} = {_show(new)}{unit} is above {most}, the most that is possible")
    if feature.possible_lower is not None and new < min(feature.possible_lower, old) - room:
        least = _show(feature.possible_lower)
        wrong.append(f"{name} = {_show(new)}{unit} is below {least}, the least that is possible")
    if feature.integer and new != math.floor(new):
        wrong.append(f"{name} = {_show(new)}{unit} is not a whole number")
    if feature.step is not None:
        nearest = round(new / feature.step) * feature.step
        if abs(new - nearest) > ROUNDING * feature.step + 4.0 * EPS * abs(new):
            wrong.append(f"{name} = {_show(new)}{unit} is no multiple of {_show(feature.step)}")
    return wrong


def _check_link(link: Link, old: dict[Any, Any], new: dict[Any, Any]) -> list[str]:
    a, b = link.names
    values = [row.get(name) for row in (old, new) for name in (a, b)]
    if any(not isinstance(value, (numbers.Real, np.bool_)) for value in values):
        return [f"{a} and {b} are linked, but one of them is not a number"]
    old_a, old_b, new_a, new_b = (float(value) for value in values)  # type: ignore[arg-type]
    room = ROUNDING * max(abs(old_a), abs(old_b), abs(new_a), abs(new_b))
    if isinstance(link, AtMost):
        if new_a - new_b > max(0.0, old_a - old_b) + room:
            return [f"{a} = {_show(new_a)} is above {b} = {_show(new_b)}"]
        return []
    wanted = link.by * (new_b - old_b)
    if abs(new_a - old_a - wanted) > room * max(1.0, abs(link.by)):
        changes = f"{a} changes by {_show(new_a - old_a)}, but follows {b}"
        return [f"{changes}, which changes by {_show(new_b - old_b)}: not by {_show(wanted)}"]
    return []


def _show(value: float) -> str:
    return f"{float(value):.12g}"
