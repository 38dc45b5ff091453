"""What is done for everybody at once, done for one person after another: slow, and easy to see."""

from __future__ import annotations

import copy
import heapq
import itertools
import math
import numbers
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from holdfast.actions import AtMost, Linear, NumberFeature, pose_problem
from holdfast.actions.check import ROUNDING
from holdfast.models.encoding.reading import is_missing, plain, shorten
from holdfast.recommend.reasons import _MOST_TRIALS, Release, constraints_of

EPS = 2.220446049250313e-16


# ---------------------------------------------------------------- the check


def check_person(actions, before, after):
    """Say what is wrong with the change of one person, from two dicts."""
    old = {name: plain(value) for name, value in before.items()}
    new = {name: plain(value) for name, value in after.items()}
    wrong = [f"{name} is missing from the advice" for name in old if name not in new]
    changed = [name for name in new if not _same(old.get(name), new[name])]
    for name in changed:
        if name not in old or name not in actions:
            wrong.append(f"{name} changes, but is not a feature of the action set")
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


def _same(old, new):
    if is_missing(old) or is_missing(new):
        return is_missing(old) and is_missing(new)
    return bool(old == new)


def _check_number(feature, old, new):
    name, unit = feature.name, f" {feature.unit}" if feature.unit else ""
    is_given = is_missing(old) and not is_missing(new)
    if is_given and feature.provide_cost is None:
        return [f"{name} is filled in, but must stay missing"]
    for value in (new,) if is_given else (old, new):
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            return [f"{name} = {value!r} is not a finite number"]
    if is_given and feature.stays:
        return [f"{name} is filled in, but may not change"]
    if is_given:  # there is nothing that it could rise or fall from, or be outside of already
        return _check_ends(feature, new, -math.inf, math.inf) + _check_grid(feature, new)
    change = new - old
    room = 0.0 if feature.integer else ROUNDING * max(abs(old), abs(new))
    what = f"{name} {'rises' if change > 0 else 'falls'} by {_show(abs(change))}{unit}"
    if feature.stays:
        return [f"{what}, but may not change"]
    wrong = []
    if feature.direction == "up" and change < -room:
        wrong.append(f"{what}, but may only rise")
    if feature.direction == "down" and change > room:
        wrong.append(f"{what}, but may only fall")
    if feature.max_increase is not None and change > feature.max_increase + room:
        wrong.append(f"{what}; at most {_show(feature.max_increase)} are allowed")
    if feature.max_decrease is not None and -change > feature.max_decrease + room:
        wrong.append(f"{what}; at most {_show(feature.max_decrease)} are allowed")
    return wrong + _check_ends(feature, new, old, old) + _check_grid(feature, new)


def _check_ends(feature, new, most, least):
    """Check the ends; who is at `most` or `least` already may stay there."""
    here, wrong = _here(feature, new), []
    known = [abs(value) for value in (most, new) if math.isfinite(value)]
    room = 0.0 if feature.integer else ROUNDING * max(known)
    if feature.upper is not None and new > max(feature.upper, most) + room:
        wrong.append(f"{here} is above {_show(feature.upper)}, its upper bound")
    if feature.lower is not None and new < min(feature.lower, least) - room:
        wrong.append(f"{here} is below {_show(feature.lower)}, its lower bound")
    if feature.possible_upper is not None and new > max(feature.possible_upper, most) + room:
        wrong.append(f"{here} is above {_show(feature.possible_upper)}, the highest possible value")
    if feature.possible_lower is not None and new < min(feature.possible_lower, least) - room:
        wrong.append(f"{here} is below {_show(feature.possible_lower)}, the lowest possible value")
    return wrong


def _here(feature, new):
    return f"{feature.name} = {_show(new)}{f' {feature.unit}' if feature.unit else ''}"


def _check_grid(feature, new):
    here, wrong = _here(feature, new), []
    if feature.integer and new != math.floor(new):
        wrong.append(f"{here} is not a whole number")
    if feature.step is not None:
        nearest = round(new / feature.step) * feature.step
        if abs(new - nearest) > ROUNDING * feature.step + 4.0 * EPS * abs(new):
            wrong.append(f"{here} is not a multiple of {_show(feature.step)}")
    return wrong


def _check_link(link, old, new):
    values = [row.get(name) for row in (old, new) for name in link.names]
    if any(not isinstance(value, numbers.Real) or value != value for value in values):
        names = f"{', '.join(link.names[:-1])} and {link.names[-1]}"
        return [f"{names} are linked, but one of them is not a number"]
    if isinstance(link, Linear):
        return _check_sum(link, old, new)
    a, b = link.names
    old_a, old_b, new_a, new_b = (float(value) for value in values)
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


def _check_sum(link, old, new):
    was, now = (math.fsum(c * row[name] for name, c in link.coef.items()) for row in (old, new))
    largest = max(abs(c * row[name]) for row in (old, new) for name, c in link.coef.items())
    if now > max(link.at_most, was) + ROUNDING * largest:
        return [f"{link.words} = {_show(now)} is above {_show(link.at_most)}"]
    return []


def _show(value):
    return f"{float(value):.12g}"


# ---------------------------------------------------------------- other ways


def ways_of_person(first, count, solve):
    """Return the best ways of one person: (features, held, price), positions of features in sets.

    `first` is the first of them; `solve` finds the best one that leaves a set of features alone.
    """
    ways, seen, tie = [], {frozenset()}, itertools.count()
    heap = [(first[2], next(tie), frozenset(), first)]
    while heap and len(ways) < count:
        _, _, held, way = heapq.heappop(heap)
        covered = [other[0] for other in ways if other[0] <= way[0]]
        if not covered:
            ways.append(way)
        for feature in sorted(covered[0] if covered else way[0]):
            following = held | {feature}
            if following in seen:
                continue
            seen.add(following)
            found = solve(following)
            if found is not None:
                heapq.heappush(heap, (found[2], next(tie), following, found))
    return ways


# ---------------------------------------------------------------- releases


def releases_of_person(person, question):
    """Return the smallest sets of constraints whose release helps, every set posed anew."""

    def cost_without(chosen):
        posed = pose_problem(
            person,
            question.encoding,
            _released(question.actions, chosen),
            robust_to=question.robust_to,
            loss=question.goal.loss,
        )
        answer = question.solve(posed.problem, posed.links)
        return float(answer.cost[0]) if len(answer) else np.inf

    constraints = tuple(constraints_of(question.actions))
    if not np.isfinite(cost_without(constraints)):
        return []
    trials = 0
    for size in range(1, len(constraints) + 1):
        trials += math.comb(len(constraints), size)
        if trials > _MOST_TRIALS:
            break
        costs = {c: cost_without(c) for c in itertools.combinations(constraints, size)}
        found = [Release(chosen, cost) for chosen, cost in costs.items() if np.isfinite(cost)]
        if found:
            return sorted(found, key=lambda release: release.cost)
    needed = constraints
    for constraint in constraints:
        fewer = tuple(c for c in needed if c != constraint)
        if np.isfinite(cost_without(fewer)):
            needed = fewer
    return [Release(needed, cost_without(needed))]


def _released(actions, constraints):
    free = copy.deepcopy(actions)
    for constraint in constraints:
        if constraint.feature is None:
            free.max_changes = None
            continue
        feature = free[constraint.feature]
        costs = feature.cost
        setattr(feature, constraint.setting, feature.defaults()[constraint.setting])
        if isinstance(costs, dict) and feature.moves is None:
            moves = {}
            for before, after in costs:
                moves.setdefault(before, []).append(after)
            feature.moves = moves
    return free


# ---------------------------------------------------------------- decimal numbers


def round_decimal(value, exponent, direction):
    """Round to a multiple of a power of ten: up, down, or to the nearest."""
    way = {1: ROUND_CEILING, -1: ROUND_FLOOR, 0: ROUND_HALF_EVEN}[direction]
    unit = Decimal(1).scaleb(exponent)
    exact = Decimal(repr(float(value)))
    return float(exact.quantize(unit, rounding=way, context=Context(prec=800)))
