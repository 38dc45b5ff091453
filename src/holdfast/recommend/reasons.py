"""Why there is no recourse: the fewest constraints whose release would make one possible."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet, CategoryFeature, NumberFeature, Posed
from holdfast.actions.cells import MOST_VALUES
from holdfast.actions.joint import Joint
from holdfast.actions.ranges import encode_range, range_of
from holdfast.actions.reach import find_reach
from holdfast.actions.switches import all_switch_costs
from holdfast.discrete import DiscreteProblem, largest_reachable_score
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.machinery.numerals import numeral
from holdfast.models.encoding import Curve, Number
from holdfast.models.encoding.reading import is_missing
from holdfast.problem.problem import frozen
from holdfast.recommend.features import take_people
from holdfast.recommend.question import Question
from holdfast.recommend.words import listed
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

# Sets of constraints that are tried, the small ones first.
_MOST_TRIALS = 400
# Where the largest score within reach is this near to the target, relative to it, it is solved.
_NEAR = 1e-6


class Constraint(NamedTuple):
    """One setting of an action set that can be released."""

    feature: str | None
    setting: str
    words: str


ConstraintSet = tuple[Constraint, ...]


@dataclass(frozen=True)
class Release:
    """Constraints that block recourse together, and what it would cost without them.

    Attributes
    ----------
    constraints : tuple of Constraint
    cost : float
        Cost of the recourse that their release makes possible.
    """

    constraints: tuple[Constraint, ...]
    cost: float

    @property
    def words(self) -> str:
        """The constraints, in words; each feature is named once."""
        said: dict[str | None, list[str]] = {}
        for feature, _, words in self.constraints:
            own = said.setdefault(feature, [])
            own.append(words.removeprefix(f"{feature} ") if own else words)
        groups = [listed(words) for words in said.values()]
        is_long = len(groups) < len(self.constraints)
        return ", and ".join(groups) if is_long else listed(groups)


class Releases(NamedTuple):
    """What helps, and whether it is settled that nothing does where nothing was found."""

    found: list[Release]
    is_settled: bool


def find_releases(person: pd.DataFrame, question: Question) -> Releases:
    """Find the smallest sets of constraints whose release helps one person, the cheapest first.

    Releasing more never hurts: so none helps if all of them together do not (there is none
    then). Where a smallest set is not found within 400 trials, one is returned of which nothing
    can be left out.
    """
    given = given_if_lifted(person, question)
    constraints = tuple(liftable(question, given))
    trials = _Trials(person, question, constraints, given)
    if not trials.is_usable:
        return Releases([], True)
    if not np.isfinite(trials.costs([constraints])[0]):
        return Releases([], not trials.gave_up)
    count = 0
    for size in range(1, len(constraints) + 1):
        count += math.comb(len(constraints), size)
        if count > _MOST_TRIALS:
            break
        sets = list(itertools.combinations(constraints, size))
        pairs = zip(sets, trials.costs(sets).tolist(), strict=True)
        found = [Release(chosen, cost) for chosen, cost in pairs if math.isfinite(cost)]
        if found:
            return Releases(sorted(found, key=lambda release: release.cost), True)
    needed = _shortened(constraints, trials)
    return Releases([Release(needed, float(trials.costs([needed])[0]))], True)


def given_if_lifted(person: pd.DataFrame, question: Question) -> frozenset[str]:
    """Return the numbers that a person misses and may give, if they may change at all.

    They are told apart by the bounds as they are: to lift these is not tried for such numbers.
    """
    free = copy.deepcopy(question.actions)
    for name, setting, _ in constraints_of(question.actions):
        if name is not None and setting == "immutable":
            _release(free[name], [setting])
    (given,) = question.given_numbers(person, free)
    return given


def liftable(question: Question, given: frozenset[str] = frozenset()) -> list[Constraint]:
    """Name the constraints that can be lifted; the ends of what is tried value by value cannot.

    `given` are numbers that a person misses and may give, all of whose values are tried too.
    """
    found: list[Constraint] = []
    for constraint in constraints_of(question.actions):
        name = constraint.feature
        raw_feature = None if name is None else question.encoding.features.get(name)
        is_tried = (isinstance(raw_feature, Curve) and not raw_feature.is_flat) or name in given
        if name is not None and is_tried:
            feature = copy.deepcopy(question.actions[name])
            if not _can_be_tried(feature, constraint.setting):
                continue
        found.append(constraint)
    return found


def untried(question: Question, given: frozenset[str] = frozenset()) -> list[str]:
    """Name features with constraints that nobody tried to lift: their values are tried together.

    `given` are numbers that a person misses and may give. Nothing protected is named.
    """
    lifted = {constraint[:2] for constraint in liftable(question, given)}
    derived = {n for each in question.actions.derived for n in (each.feature, *each.parents)}
    return [
        name
        for name in question.actions
        if name not in question.actions.protected_names
        and any(
            (name, setting) not in lifted and setting not in question.actions[name].physical
            for setting, _ in _settings(question.actions[name])
        )
        and (name in derived | given or isinstance(question.encoding.features.get(name), Curve))
    ]


def _can_be_tried(feature: NumberFeature | CategoryFeature, setting: str) -> bool:
    """Whether the values of a number can still be tried, with a setting lifted and some others."""
    if isinstance(feature, CategoryFeature):
        return True
    _release(feature, [setting, "immutable", "direction", "max_increase", "max_decrease"])
    width = feature.highest - feature.lowest
    return bool(math.isfinite(width) and width <= MOST_VALUES * feature.grid)


def _shortened(constraints: ConstraintSet, trials: _Trials) -> ConstraintSet:
    """Leave out one constraint after another, where what is left still helps.

    Solved together: how many of the next ones can all go before one is needed.
    """
    needed, rest = constraints[:0], constraints
    while rest:
        at_once = 1 if trials.are_linked else len(rest)
        helps = trials.help([needed + rest[k:] for k in range(1, at_once + 1)])
        gone = at_once if helps.all() else int(np.argmin(helps))
        if gone < at_once:
            needed += rest[gone : gone + 1]
            gone += 1
        rest = rest[gone:]
    return needed


class _Trials:
    """One person without some of the constraints: sets of them, solved together.

    Releasing constraints of a feature moves its bounds, or lets it take more levels; what each of
    its sets of settings comes to is worked out once. Whether the solver ever `gave_up` is known in
    the end: without a set of constraints there may then be a recourse that it did not find.
    """

    gave_up = False

    def __init__(
        self,
        person: pd.DataFrame,
        question: Question,
        constraints: ConstraintSet,
        given: frozenset[str],
    ) -> None:
        self.question = question
        self.features: dict[tuple[str, frozenset[str]], Any] = {}
        free = copy.deepcopy(question.actions)
        for name in free:
            _release(free[name], [c.setting for c in constraints if c.feature == name])
        free.max_changes = None
        # without any constraint everything is in the problem that could ever be
        self.posed = question.pose(person, free, given)
        self.is_usable = len(self.posed.positions) == 1

    @property
    def are_linked(self) -> bool:
        """Whether links couple features: the general solver takes one set after another."""
        return len(self.posed.links.matrix) > 0

    def help(self, sets: list[ConstraintSet]) -> NDArray[np.bool_]:
        """Say whether there is a recourse without each of some sets of constraints."""
        reach, target = self._reach(sets), self.question.goal.target or 0.0
        helps, near = reach > target, np.abs(reach - target) <= _NEAR * (1.0 + abs(target))
        unsure = np.flatnonzero(near | np.isnan(reach))
        helps[unsure] = np.isfinite(self._solved([sets[k] for k in unsure.tolist()]))
        return helps

    def costs(self, sets: list[ConstraintSet]) -> Floats:
        """Return the least cost without each of some sets of constraints; inf: there is none."""
        costs, helps = np.full(len(sets), np.inf), np.flatnonzero(self.help(sets))
        costs[helps] = self._solved([sets[k] for k in helps.tolist()])
        return costs

    def _reach(self, sets: list[ConstraintSet]) -> Floats:
        """Return the largest worst-case score without each set; NaN: the solver must be asked.

        It must where a number may go without end: the search for the largest score would be given
        up, and what it has by then says nothing.
        """
        reach = np.full(len(sets), np.nan)
        if self.question.goal.target is None or self.are_linked:
            return reach
        for places, problem in self._problems(sets):
            bounds = np.hstack([problem.base.lower, problem.base.upper])
            ends = np.flatnonzero(whole_rows(bounds))
            if ends.size:
                bounded = take_people(problem, ends)
                jobs = self.question.n_jobs
                reach[places[ends]] = largest_reachable_score(bounded, n_jobs=jobs)
        return reach

    def _solved(self, sets: list[ConstraintSet]) -> Floats:
        costs = np.full(len(sets), np.inf)
        for places, problem in self._problems(sets):
            links = self.posed.links.take(np.zeros(len(places), dtype=np.int64))
            answer = self.question.solve(problem, links)
            costs[places] = answer.cost
            is_open = answer.status == Status.GAP_OPEN
            self.gave_up |= bool((is_open & ~np.isfinite(answer.cost)).any())
        return costs

    def _problems(
        self, sets: list[ConstraintSet]
    ) -> Iterator[tuple[NDArray[np.int64], DiscreteProblem]]:
        """State the person's problem without each of some sets: a row for each.

        How many features may change is not said row by row: sets that release it go apart.
        """
        most = self.question.actions.max_changes
        lifts = np.array([any(c.feature is None for c in chosen) for chosen in sets], dtype=bool)
        for places, limit in ((np.flatnonzero(~lifts), most), (np.flatnonzero(lifts), None)):
            if places.size:
                some = [sets[k] for k in places.tolist()]
                yield places, replace(self._stated(some), max_changes=limit)

    def _stated(self, sets: list[ConstraintSet]) -> DiscreteProblem:
        posed = self.posed
        problem = take_people(posed.problem, np.zeros(len(sets), dtype=np.int64))
        base = problem.base
        shape = (len(sets), base.n_features)
        lower, upper = (np.broadcast_to(v, shape).copy() for v in (base.lower, base.upper))
        released: list[dict[str, set[str]]] = []
        for chosen in sets:
            settings: dict[str, set[str]] = {}
            for constraint in chosen:
                if constraint.feature is not None:
                    settings.setdefault(constraint.feature, set()).add(constraint.setting)
            released.append(settings)
        for name, j in zip(posed.ranges, posed.number_columns.tolist(), strict=True):
            bounds = [self._feature(name, settings.get(name, ())) for settings in released]
            lower[:, j], upper[:, j] = np.array(bounds).T
        level_costs = [
            np.array([self._feature(name, settings.get(name, ())) for settings in released])
            for name in posed.levels
        ]
        bounded = replace(base, lower=frozen(lower), upper=frozen(upper))
        return replace(problem, base=bounded, level_costs=level_costs)

    def _feature(self, name: str, settings: Iterable[str]) -> Any:
        """Return bounds, or costs of levels, of a feature without some of its settings."""
        key = (name, frozenset(settings))
        if key not in self.features:
            feature = copy.deepcopy(self.question.actions[name])
            _release(feature, settings)
            self.features[key] = feature_of_person(self.posed, feature)
        return self.features[key]


def feature_of_person(posed: Posed, feature: NumberFeature | CategoryFeature) -> Any:
    """Return the encoded bounds of a number of one person, or what each level costs them."""
    name = feature.name
    if isinstance(posed.levels.get(name), Joint):  # nothing of it can be lifted
        return posed.problem.level_costs[list(posed.levels).index(name)][0]
    if isinstance(feature, NumberFeature) and name in posed.cells:
        raw_feature, value = posed.encoding[name], posed.raw_numbers(name)
        fill = raw_feature.fill if isinstance(raw_feature, Curve) else None
        return find_reach(feature, posed.cells[name], value, fill).costs[0]
    if isinstance(feature, NumberFeature):
        number = posed.encoding[name]
        assert isinstance(number, Number)
        missing = None if number.fill is None else np.isnan(posed.raw_numbers(name))
        raw = range_of(feature, posed.ranges[name].value, missing)
        encoded = encode_range(raw, number, posed.problem.base.X[:, number.column])
        return float(encoded.lower[0]), float(encoded.upper[0])
    group = list(posed.levels).index(name)
    count, levels = posed.problem.groups[group].count, posed.levels[name]
    assert isinstance(levels, tuple)
    current = posed.problem.current[:1, group]
    is_unknown = False  # one who misses a level, or has an unknown one, has it as their last level
    if count > len(levels) and current[0] == len(levels):
        is_unknown = not is_missing(posed.people[name].iloc[0])
    codes = getattr(posed.encoding[name], "specials", ())
    costs = all_switch_costs(feature, levels, codes)[current + is_unknown][0]
    return np.append(costs[: len(levels)], [0.0] * (count - len(levels)))


def constraints_of(actions: ActionSet) -> Iterator[Constraint]:
    """Name every setting that holds people back and that somebody could lift.

    What is protected is left out, as are facts: settings that are `physical`, links, and all that
    says which combinations are tried where something is derived.
    """
    joined = {name for each in actions.derived for name in (each.feature, *each.parents)}
    for name in actions:
        feature = actions[name]
        if not feature.protected and name not in joined:
            for setting, words in _settings(feature):
                if setting not in feature.physical:
                    yield Constraint(name, setting, words)
    if actions.max_changes is not None:
        count = actions.max_changes
        many = f"at most {count} feature{'s' if count > 1 else ''} may change"
        yield Constraint(None, "max_changes", many)


def settings_of(actions: ActionSet) -> int:
    """Count every setting that holds people back, whether or not anybody could lift it."""
    limits = ("possible_lower", "possible_upper")
    total = int(actions.max_changes is not None)
    for name in actions:
        feature = actions[name]
        total += len(list(_settings(feature))) + feature.protected
        total += sum(getattr(feature, limit, None) is not None for limit in limits)
    return total


def _settings(feature: NumberFeature | CategoryFeature) -> Iterator[tuple[str, str]]:
    usual, unit = feature.defaults(), getattr(feature, "unit", "")
    for setting in feature.LIFTABLE:
        value = getattr(feature, setting)
        if value != usual[setting]:
            said = {"value": numeral(value), "unit": f" {unit}" if unit else ""}
            yield setting, f"{feature.name} {_WORDS[setting].format(**said)}"


_WORDS = {
    "immutable": "may not change",
    "direction": "may only go {value}",
    "moves": "may only change in the ways allowed",
    "allowed": "may only become one of the allowed levels",
    "lower": "may not fall below {value}{unit}",
    "upper": "may not rise above {value}{unit}",
    "max_increase": "may rise by at most {value}{unit}",
    "max_decrease": "may fall by at most {value}{unit}",
}


def _release(feature: Any, settings: Iterable[str]) -> None:
    """Take some constraints of a feature away."""
    for setting in settings:
        feature.lift(setting)
        if isinstance(feature.cost, dict) and feature.moves is None:
            # what has no cost was not meant to be done, whatever is lifted
            moves: dict[Any, list[Any]] = {}
            for before, after in feature.cost:
                moves.setdefault(before, []).append(after)
            feature.moves = moves
