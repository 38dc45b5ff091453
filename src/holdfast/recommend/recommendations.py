"""What is recommended, as a table, in words, and as a curve."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.actions.check import costs_by_feature
from holdfast.machinery.labels import position_of
from holdfast.machinery.numbers import Floats, check_count, objects_of
from holdfast.machinery.numerals import at_least, numeral, points_down
from holdfast.models.encoding import Number
from holdfast.models.encoding.reading import plain
from holdfast.problem.model_set import ModelSet, check_models
from holdfast.recommend.advised import Advised
from holdfast.recommend.opposing import Opposing, differences
from holdfast.recommend.question import Question
from holdfast.recommend.reasons import (
    Release,
    Releases,
    find_releases,
    given_if_lifted,
    liftable,
    settings_of,
    untried,
)
from holdfast.recommend.sizes import NoSizes, SizeCurve
from holdfast.recommend.staircase import Staircase
from holdfast.recommend.ways import Way
from holdfast.recommend.words import Change, ChangedColumn, changed_columns, explanation
from holdfast.result.bracket import Bracket
from holdfast.result.columns import POINTS, PROVEN, VALIDITIES
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.actions import ActionSet, Posed
    from holdfast.discrete import DiscreteProblem
    from holdfast.problem.points import Points
    from holdfast.result.result import RecourseResult


_NOT_ALL_TRIED = (
    "the curve needs values that can all be tried: give a step to every number that the model "
    "transforms non-linearly"
)


class Recommendations:
    """What each applicant should change, in raw units; made by `RobustRecourse.recommend`.

    People are identified by the label of their row: the index of the table of applicants, or 0, 1,
    ... for an array. Options are counted from 1. Later changes to the table, the action set or the
    estimator do not affect it.

    Attributes
    ----------
    labels : Index
        The labels of all applicants.
    status : array of Status
        What became of each applicant, in the order of `labels`; read-only.
    guarantee, cost_weight, guarantee_points : float or None
        What was asked for.
    radius : float
        Of the set of models; NaN for a list, which has none.

    Examples
    --------
    See `RobustRecourse`.
    """

    def __init__(self, question: Question, advised: Advised, labels: pd.Index[Any]) -> None:
        self._question, self._advised, self.labels = question, advised, labels
        self._refused = dict(advised.refused)
        self._known_releases: dict[int, Releases] = {}
        self.guarantee, self.cost_weight = question.goal.guarantee, question.goal.cost_weight
        self.guarantee_points = question.guarantee_points
        models = question.robust_to
        self.radius = float(models.radius) if models.has_size else float("nan")
        self.status = np.empty(len(self), dtype=object)
        self.status[:] = Status.INVALID_INPUT
        self.status[advised.positions] = advised.status
        self.status.flags.writeable = False

    def __len__(self) -> int:
        return len(self._advised.positions) + len(self._advised.refused)

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = ", ".join(f"{n} {name}" for name, n in zip(names, counts, strict=True))
        return f"<Recommendations for {len(self)} people: {found or 'nobody'}>"

    @property
    def people(self) -> pd.DataFrame:
        """The applicants whose rows could be used, as they are."""
        return self._advised.people.copy()

    def after(self, option: int = 1) -> pd.DataFrame:
        """Return the people who have that option, as they are after following it."""
        check_count("option", option)
        if option > len(self._advised.options):
            return self._advised.people.iloc[:0].copy()
        return self._advised.options[option - 1].after.copy()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each person and option: what to change, its price and its proof.

        Columns ``recourse.<name>`` hold the person's features after the change, in raw units. A
        person without an option has one row, with option 0. The column ``approved`` says whether
        today's model approves the person as they are; None where the row cannot be used. Where a
        scale of points was given, columns ``worst_case_points``, ``current_points`` and
        ``initial_points`` stand beside the validities.
        """
        import pandas as pd

        advised, options = self._advised, []
        for option, (ways, *_) in enumerate(advised.options, start=1):
            options.append(
                {
                    "row": advised.positions[ways.who],
                    "option": np.full(len(ways), option),
                    "status": ways.status,
                    "approved": advised.approved[ways.who].astype(object),
                    "changes": objects_of(self._all_words(option)),
                    **{name: getattr(ways, name) for name in PROVEN},
                    **self._validities(ways.worst_case_score, ways.score, advised.score[ways.who]),
                }
            )
        options.append(self._without_option())
        joined = {  # what has been joined is not held twice
            name: np.concatenate([each.pop(name) for each in options]) for name in list(options[0])
        }
        joined["status"] = objects_of([str(each) for each in joined["status"]])
        row = joined.pop("row")
        order = np.lexsort((joined["option"], row))
        index = self.labels.take(row[order])
        if index.nlevels == 1:
            index = index.rename("person")
        columns: dict[str, Any] = {name: joined.pop(name)[order] for name in list(joined)}
        for name, values in self._afterwards(order, index).items():
            if values.dtype == object:  # said, or pandas would make NaN of None among texts
                values = pd.Series(values.array, index, object, copy=False)
            columns[f"recourse.{name}"] = values
        return pd.DataFrame(columns, index=index, copy=False)

    def _afterwards(self, order: NDArray[np.int64], index: pd.Index[Any]) -> pd.DataFrame:
        """Return rows of all options, one option below another, in another order and copied.

        Where there is no such row, all is missing.
        """
        import pandas as pd

        tables = [told.after for told in self._advised.options]
        after = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
        if len(order) == len(after) and (order == np.arange(len(after))).all():
            return after.set_axis(index).copy()
        return after.reset_index(drop=True).reindex(order).set_axis(index)

    def _without_option(self) -> dict[str, Any]:
        """Return what `to_frame` says of those who have no option."""
        advised = self._advised
        is_lost = np.ones(len(advised.positions), dtype=bool)
        is_lost[advised.options[0].ways.who] = False
        lost = np.flatnonzero(is_lost)
        refused = np.array([row for row, _ in advised.refused], dtype=np.int64)
        count = len(lost) + len(refused)
        nan = np.full(count, np.nan)

        def known(values: Floats) -> Floats:
            return np.concatenate([values[lost], nan[: len(refused)]])

        rows = np.concatenate([advised.positions[lost], refused])
        return {
            "row": rows,
            "option": np.zeros(count, dtype=np.int64),
            "status": self.status[rows],
            "approved": np.append(advised.approved[lost].astype(object), [None] * len(refused)),
            "changes": np.full(count, "", dtype=object),
            **{name: known(getattr(advised, name)) for name in PROVEN},
            **self._validities(nan, nan, known(advised.score)),
        }

    def _validities(self, worst: Floats, current: Floats, initial: Floats) -> dict[str, Floats]:
        """Return what scores are worth, as `to_frame` has it: probabilities, and perhaps points."""
        scores = (worst, current, initial)
        columns = dict(zip(VALIDITIES, map(self._probability, scores), strict=True))
        if self._points_scale is not None:
            columns.update(zip(POINTS, map(self._points, scores), strict=True))
        return columns

    @property
    def actions(self) -> ActionSet:
        """What people can change, as it was when they were advised."""
        return copy.deepcopy(self._question.actions)

    @property
    def robust_to(self) -> ModelSet:
        """The set of models."""
        return self._question.robust_to

    @property
    def crowd(self) -> str:
        """All models of the set, as named in a sentence, in the singular."""
        return self.robust_to.crowd

    @property
    def bracket(self) -> Bracket | None:
        """What is proven and what was found for each row of `after`; for networks only.

        It is None for a linear model, whose worst case is exact.
        """
        return None

    @property
    def threshold(self) -> float:
        """The lowest probability that today's model approves; NaN without probabilities."""
        return self.probability_of(self._cutoff)

    @property
    def wanted(self) -> str:
        """What was asked for, as people are told: '50%', '600 points'; empty with a cost weight."""
        if self.guarantee_points is not None:
            return f"{self.guarantee_points:.10g} points"
        return "" if self.guarantee is None else f"{100.0 * self.guarantee:.10g}%"

    def explain(self, label: Any) -> str:
        """Say in words what a person can do, or why nothing helps."""
        return explanation(self, label)

    def frontier(self, label: Any, n_points: int = 25) -> Staircase:
        """Return the cost of every guarantee that a person can reach, as a curve of steps."""
        posed, goal, asked = self._posed(label), self._question.goal, self.guarantee
        if posed.relaxed is not None:
            raise ValueError(_NOT_ALL_TRIED)
        if asked is None and goal.target is not None:  # points were asked for
            asked = float(self._probability(goal.target))

        def solve(problem: DiscreteProblem, wanted: float) -> RecourseResult:
            return self._question.solve(problem, posed.links, goal.asking(wanted))

        return Staircase.of(posed, n_points, solve, asked)

    def opposing(
        self, label: Any, robust_to: ModelSet | None = None, option: int = 1
    ) -> Opposing | None:
        """Return the model of a set that gives a way the least; None if even that one gives enough.

        Enough is what was asked for; with a cost weight, an approval.

        Parameters
        ----------
        label : label of a row
        robust_to : NormBall, Ellipsoid or ModelList, optional
            By default the set that the way was found for.
        option : int
        """
        models = self.robust_to if robust_to is None else robust_to
        check_models(models)
        encoding, place = self._question.encoding, self._place(label, option)
        actions = self._question.actions
        point, own = self.encoded(label, option), cast(Any, encoding.model)
        coefs, intercepts = models.worst_model(point, own.coef, own.intercept)
        coef, intercept = coefs[0], float(intercepts[0])
        score = float(models.worst_score(point, own.coef, own.intercept)[0])
        after = self._advised.options[option - 1].after.iloc[place]
        if score >= self._question.goal.enough:
            return None
        return Opposing(
            coef=coef,
            intercept=intercept,
            score=score,
            worst_case_validity=self.probability_of(score),
            gives=self.gives(score),
            wanted=self.wanted,
            is_refusal=score < self._cutoff,
            differences=differences(encoding, point, after, coef, intercept),
            protected=actions.protected_names,
        )

    def sizes(self, label: Any, n_points: int = 25, at_least: float = 0.0) -> SizeCurve:
        """Return what the guarantee costs a person, for every size of the set of models.

        The curve ends where no recourse is possible any more, or at four times the size that was
        asked for, or at the size `at_least`.

        The cost is that of the solver's answer. Advice is given in numbers that can be typed, which
        may cost slightly more where a number has no step. `NoSizes`, a `ValueError`, is raised
        where there is no such curve: for a list of models, for a cost weight, and where the model
        transforms a number that has no step non-linearly.
        """
        check_count("n_points", n_points, least=2)
        if not self.robust_to.has_size:
            raise NoSizes(
                f"robust_to is a list ({self.robust_to.label}), and a list of models has no size: "
                "only a NormBall or an Ellipsoid has a cost for every size"
            )
        if self._question.goal.target is None:
            raise NoSizes("a cost weight asks for no guarantee, so there is no cost to show for it")
        posed = self._posed(label)
        if posed.relaxed is not None:
            raise NoSizes(_NOT_ALL_TRIED)
        return SizeCurve.of(self._question, posed, n_points, at_least)

    def releases(self, label: Any) -> list[Release]:
        """Return the smallest sets of constraints whose release would help a person, if any."""
        return list(self._releases(label).found)

    def _are_releases_settled(self, label: Any) -> bool:
        """Whether nothing helps for sure, where no release was found that does."""
        return self._releases(label).is_settled

    def _releases(self, label: Any) -> Releases:
        """Find them, once for each person."""
        k = self._usable(label)
        if self._advised.status[k] is not Status.INFEASIBLE:
            return Releases([], True)
        if k not in self._known_releases:
            person = self._advised.people.iloc[k : k + 1]
            self._known_releases[k] = find_releases(person, self._question)
        return self._known_releases[k]

    def changes(self, label: Any, option: int = 1) -> list[str]:
        """Say what a person changes, feature by feature: 'duration from 48 to 36 months'."""
        place = self._place(label, option)
        columns = self._columns(option, slice(place, place + 1))
        return [words for column in columns for words in column.words()]

    def told_changes(self, label: Any, option: int = 1) -> dict[Change, float]:
        """Return everything that changes in a person's row, as it is shown, with the cost of each.

        Derived features are included, at no cost of their own.
        """
        k, place = self._usable(label), self._place(label, option)
        efforts = self.efforts(label, option)
        columns = changed_columns(
            self._advised.people,
            np.array([k]),
            self._advised.options[option - 1].after.iloc[place : place + 1],
            dict.fromkeys(efforts, np.ones(1, dtype=bool)),
            self._question.actions,
        )
        return {
            Change(each.name, each.before[0], each.after[0], each.unit): efforts[each.name]
            for each in columns
        }

    def efforts(self, label: Any, option: int = 1) -> dict[str, float]:
        """Return the cost of each feature that a person changes; together they make the way's cost.

        Derived features change with others, at no cost of their own.
        """
        k, place = self._usable(label), self._place(label, option)
        after = self._advised.options[option - 1].after
        features = self._question.encoding.features.items()
        fills = {name: getattr(feature, "fill", None) for name, feature in features}
        return costs_by_feature(
            self._question.actions,
            self._advised.people.iloc[k : k + 1],
            after.iloc[place : place + 1],
            {name: fill for name, fill in fills.items() if fill is not None},
        )

    def _place(self, label: Any, option: int) -> int:
        """Return the place of a person among those who have an option."""
        places = self._places(self._usable(label))
        check_count("option", option)
        if option > len(places):
            many = f"{len(places)} option{'s' if len(places) != 1 else ''}"
            raise ValueError(f"person {plain(label)!r} has {many}; there is no option {option}")
        return places[option - 1]

    def ways(self, label: Any) -> list[Way]:
        """Return the ways of a person, each with what is proven about it."""
        if self._position(label) in self._refused:
            return []
        places, options = self._places(self._usable(label)), self._advised.options
        return [
            options[option].ways.way(place, self._advised.names)
            for option, place in enumerate(places)
        ]

    def encoded(self, label: Any, option: int = 1) -> Floats:
        """Return the encoded point that a way leads to, as the pipeline encodes the row."""
        place = self._place(label, option)
        kept = self._advised.options[option - 1].points
        return np.asarray(kept.take(slice(place, place + 1)).points()[0])

    def status_of(self, label: Any) -> Status:
        """Return what became of a person."""
        status: Status = self.status[self._position(label)]
        return status

    def why_refused(self, label: Any) -> str | None:
        """Say why the row of a person cannot be used; None if it can."""
        return self._refused.get(self._position(label))

    def initial_validity(self, label: Any) -> float:
        """Probability of approval of a person as they are, under today's model."""
        return self.probability_of(self._initial_score(label))

    def probability_of(self, score: float) -> float:
        """Probability of approval at a score of the model; NaN where it is a margin."""
        return float(self._probability(score))

    def initially(self, label: Any) -> str:
        """Say what today's model gives a person as they are: '38%', '571 points'."""
        return self.gives(self._initial_score(label))

    def is_approved(self, label: Any) -> bool | None:
        """Whether today's model approves a person as they are; None if the row cannot be used."""
        if self._position(label) in self._refused:
            return None
        return bool(self._advised.approved[self._usable(label)])

    def _initial_score(self, label: Any) -> float:
        return float(self._advised.score[self._usable(label)])

    def reachable(self, label: Any) -> tuple[float, float]:
        """Best worst-case probability within reach of a person, and the largest radius."""
        k = self._usable(label)
        advised = self._advised
        return float(advised.reachable_validity[k]), float(advised.reachable_radius[k])

    @property
    def _has_facts(self) -> bool:
        """Whether some constraints are facts, or protect people: nobody can lift these."""
        actions = self._question.actions
        return len(actions.links) > 0 or len(liftable(self._question)) < settings_of(actions)

    def _codes_of(self, label: Any) -> dict[str, str]:
        """Say where a person has a code in the place of a number, which they cannot leave."""
        person = self._advised.people.iloc[self._usable(label)]
        features = self._question.encoding.features
        return {
            name: f"{name} = {numeral(plain(person[name]))}"
            for name, feature in features.items()
            if not isinstance(feature, Number) and plain(person[name]) in feature.specials
        }

    def _untried(self, label: Any) -> list[str]:
        """The features whose constraints were not tried to be lifted for a person."""
        k = self._usable(label)
        person = self._advised.people.iloc[k : k + 1]
        return untried(self._question, given_if_lifted(person, self._question))

    @property
    def _has_probabilities(self) -> bool:
        return self._question.goal.loss.link is not None

    @property
    def _cutoff(self) -> float:
        """The score from which on today's model accepts."""
        return self._question.goal.cutoff

    def _probability(self, score: Any) -> Any:
        return self._question.goal.loss.probability(score)

    @property
    def _points_scale(self) -> Points | None:
        return self._question.points_scale

    def gives(self, score: float) -> str:
        """Say what a score of the model is worth, rounded down; nothing where it is a margin."""
        if self._points_scale is not None:
            return points_down(float(self._points(score)))
        return at_least(float(self._probability(score))) if self._has_probabilities else ""

    def _points(self, score: Any) -> Any:
        assert self._points_scale is not None
        return self._points_scale.at(self._question.goal.loss, score)

    @property
    def _is_guarantee(self) -> bool:
        return self._question.goal.is_guarantee

    def _all_words(self, option: int) -> list[str]:
        """Say in one text what each of those who have an option changes."""
        texts = [""] * len(self._advised.options[option - 1].ways)
        for column in self._columns(option, slice(None)):
            for row, words in zip(column.rows, column.words(), strict=True):
                texts[row] = f"{texts[row]}, {words}" if texts[row] else words
        return texts

    def _columns(self, option: int, which: slice) -> Iterator[ChangedColumn]:
        """Say what some of those who have an option change."""
        ways, after, _ = self._advised.options[option - 1]
        people, who = self._advised.people, ways.who[which]
        changed = dict(zip(self._advised.names, ways.changed[which].T, strict=True))
        return changed_columns(people, who, after.iloc[which], changed, self._question.actions)

    def _places(self, k: int) -> list[int]:
        """Return the place of person k among those who have each option."""
        places = []
        for ways, *_ in self._advised.options:
            place = int(np.searchsorted(ways.who, k))
            if place == len(ways) or ways.who[place] != k:
                break
            places.append(place)
        return places

    def _position(self, label: Any) -> int:
        return position_of(label, self.labels, len(self))

    def _usable(self, label: Any) -> int:
        i = self._position(label)
        if i in self._refused:
            raise ValueError(f"person {plain(label)!r}: the row cannot be used: {self._refused[i]}")
        return int(np.searchsorted(self._advised.positions, i))

    def _posed(self, label: Any) -> Posed:
        """State the problem of one person again; it is not kept for everybody."""
        k = self._usable(label)
        return self._question.pose(self._advised.people.iloc[k : k + 1])
