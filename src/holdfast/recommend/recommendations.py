"""What is recommended, as a table, in words, and as a curve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.labels import position_of
from holdfast.machinery.numbers import Floats, check_count
from holdfast.models.encoding import Number
from holdfast.models.encoding.reading import plain
from holdfast.recommend.advised import Advised
from holdfast.recommend.numerals import at_least, numeral, points_down
from holdfast.recommend.question import Question
from holdfast.recommend.reasons import (
    Release,
    find_releases,
    liftable,
    settings_of,
    untried,
)
from holdfast.recommend.staircase import Staircase
from holdfast.recommend.ways import Way
from holdfast.recommend.words import change_words, explanation
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.actions import Compiled
    from holdfast.problem.points import Points


class Recommendations:
    """What each applicant should change, in raw units; made by `RobustRecourse.recommend`.

    People go by the label of their row: the index of the table of applicants, or 0, 1, ... for an
    array. Options are counted from 1. Nothing here changes when the table, the action set or the
    estimator do later.

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

    def __init__(self, question: Question, outcome: Advised, labels: pd.Index[Any]) -> None:
        self._question, self._outcome, self.labels = question, outcome, labels
        self._refused = dict(outcome.refused)
        self.guarantee, self.cost_weight = question.goal.guarantee, question.goal.cost_weight
        self.guarantee_points = question.guarantee_points
        models = question.robust_to
        self.radius = float(models.radius) if models.has_size else float("nan")
        self._robust_to = question.robust_to
        self.status = np.empty(len(self), dtype=object)
        self.status[:] = Status.INVALID_INPUT
        self.status[outcome.rows] = outcome.status
        self.status.flags.writeable = False
        for printed in outcome.options:
            printed.ways.recourse.flags.writeable = False

    def __len__(self) -> int:
        return len(self._outcome.rows) + len(self._outcome.refused)

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = ", ".join(f"{n} {name}" for name, n in zip(names, counts, strict=True))
        return f"<Recommendations for {len(self)} people: {found or 'nobody'}>"

    @property
    def people(self) -> pd.DataFrame:
        """The applicants whose rows could be used, as they are."""
        return self._outcome.people.copy()

    def after(self, option: int = 1) -> pd.DataFrame:
        """Return the people who have that option, as they are after following it."""
        check_count("option", option)
        if option > len(self._outcome.options):
            return self._outcome.people.iloc[:0].copy()
        return self._outcome.options[option - 1].after.copy()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each person and option: what to change, its price and its proof.

        Columns ``recourse.<name>`` hold the person's features after the change, in raw units. Who
        has no option has one row, with the option 0. The column ``approved`` says whether today's
        model approves the person as they are; None where the row cannot be used. Where a
        scale of points was given, columns ``worst_case_points``, ``current_points`` and
        ``initial_points`` stand beside validities.
        """
        import pandas as pd

        outcome, parts = self._outcome, []
        for option, (ways, _) in enumerate(outcome.options, start=1):
            parts.append(
                {
                    "row": outcome.rows[ways.who],
                    "option": np.full(len(ways), option),
                    "status": ways.status,
                    "approved": self._approved(outcome.score[ways.who]),
                    "changes": _objects(self._all_words(option)),
                    "cost": ways.cost,
                    "price": ways.price,
                    "lower_bound": ways.lower_bound,
                    "gap": ways.gap,
                    **self._validities(ways.worst_case_score, ways.score, outcome.score[ways.who]),
                }
            )
        parts.append(self._without_option())
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        joined["status"] = _objects([str(each) for each in joined["status"]])
        row = joined.pop("row")
        order = np.lexsort((joined["option"], row))
        index = self.labels.take(row[order])
        if index.nlevels == 1:
            index = index.rename("person")
        columns: dict[str, Any] = {name: joined.pop(name)[order] for name in list(joined)}
        for name, values in self._afterwards(order, index).items():
            missing = _can_miss(values.dtype) and bool(values.isna().any())
            columns[f"recourse.{name}"] = values.to_numpy() if missing else values
        return pd.DataFrame(columns, index=index, copy=False)

    def _afterwards(self, order: NDArray[np.int64], index: pd.Index[Any]) -> pd.DataFrame:
        """Return rows of all options, one option below another, in another order and copied.

        Where there is no such row, all is missing.
        """
        import pandas as pd

        tables = [table for _, table in self._outcome.options]
        after = tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
        if len(order) == len(after) and (order == np.arange(len(after))).all():
            return after.set_axis(index).copy()
        return after.reset_index(drop=True).reindex(order).set_axis(index)

    def _without_option(self) -> dict[str, Any]:
        """Return what `to_frame` says of those who have no option."""
        outcome = self._outcome
        is_lost = np.ones(len(outcome.rows), dtype=bool)
        is_lost[outcome.options[0].ways.who] = False
        lost = np.flatnonzero(is_lost)
        refused = np.array([row for row, _ in outcome.refused], dtype=np.int64)
        count = len(lost) + len(refused)
        nan = np.full(count, np.nan)

        def known(values: Floats) -> Floats:
            return np.concatenate([values[lost], nan[: len(refused)]])

        rows = np.concatenate([outcome.rows[lost], refused])
        numbers = ("cost", "price", "lower_bound", "gap")
        return {
            "row": rows,
            "option": np.zeros(count, dtype=np.int64),
            "status": self.status[rows],
            "approved": self._approved(known(outcome.score)),
            "changes": np.full(count, "", dtype=object),
            **{name: known(getattr(outcome, name)) for name in numbers},
            **self._validities(nan, nan, known(outcome.score)),
        }

    def _approved(self, score: Floats) -> NDArray[np.object_]:
        """Say whether today's model approves at some scores; None where there is no score."""
        approved = (score >= self._cutoff).astype(object)
        approved[np.isnan(score)] = None
        return approved

    def _validities(self, worst: Floats, current: Floats, initial: Floats) -> dict[str, Floats]:
        """Return what scores are worth, as `to_frame` has it: probabilities, and perhaps points."""
        named = {"worst_case": worst, "current": current, "initial": initial}
        columns = {f"{when}_validity": self._probability(score) for when, score in named.items()}
        for when, score in named.items() if self._scale is not None else ():
            columns[f"{when}_points"] = self._points(score)
        return columns

    def explain(self, label: Any) -> str:
        """Say in words what a person can do, or why nothing helps."""
        return explanation(self, label)

    def frontier(self, label: Any, points: int = 25) -> Staircase:
        """Return the cost of every guarantee that a person can reach, as steps to be drawn."""
        compiled, target, asked = self._compiled(label), self._question.target, self.guarantee
        if asked is None and target is not None:  # points were asked for
            asked = float(self._probability(target))
        if compiled.relaxed is not None:
            raise ValueError(
                "the curve is drawn of values that are all tried: give a step to every number that "
                "the model bends"
            )
        return Staircase.of(
            compiled,
            points,
            lambda problem, wanted: self._question.solve(problem, compiled.links, wanted),
            asked,
        )

    def releases(self, label: Any) -> list[Release]:
        """Return the smallest sets of constraints whose release would help a person, if any."""
        k = self._usable(label)
        if self._outcome.status[k] is not Status.INFEASIBLE:
            return []
        return find_releases(self._outcome.people.iloc[k : k + 1], self._question)

    def changes(self, label: Any, option: int = 1) -> list[str]:
        """Say what a person changes, feature by feature: 'duration from 48 to 36 months'."""
        k = self._usable(label)
        check_count("option", option)
        places = self._places(k)
        if option > len(places):
            many = f"{len(places)} option{'s' if len(places) != 1 else ''}"
            raise ValueError(f"person {plain(label)!r} has {many}; there is no option {option}")
        place = places[option - 1]
        return [words for _, words in self._words(option, slice(place, place + 1))]

    def ways(self, label: Any) -> list[Way]:
        """Return the ways of a person in encoded columns, each with its certificate."""
        if self._position(label) in self._refused:
            return []
        places, options = self._places(self._usable(label)), self._outcome.options
        return [
            options[option].ways.way(place, self._outcome.names)
            for option, place in enumerate(places)
        ]

    def status_of(self, label: Any) -> Status:
        """Return what became of a person."""
        status: Status = self.status[self._position(label)]
        return status

    def why_refused(self, label: Any) -> str | None:
        """Say why the row of a person cannot be used; None if it can."""
        return self._refused.get(self._position(label))

    def initial_validity(self, label: Any) -> float:
        """Probability of approval of a person as they are, under today's model."""
        return float(self._probability(self._initial_score(label)))

    def _initial_score(self, label: Any) -> float:
        return float(self._outcome.score[self._usable(label)])

    def reachable(self, label: Any) -> tuple[float, float]:
        """Best worst-case probability within reach of a person, and the largest radius."""
        k = self._usable(label)
        outcome = self._outcome
        return float(outcome.reachable_validity[k]), float(outcome.reachable_radius[k])

    @property
    def _has_facts(self) -> bool:
        """Whether some constraints are facts, or protect people: nobody can lift these."""
        actions = self._question.actions
        return len(actions.links) > 0 or len(liftable(self._question)) < settings_of(actions)

    def _codes_of(self, label: Any) -> list[str]:
        """Say where a person has a code in the place of a number, which they cannot leave."""
        person = self._outcome.people.iloc[self._usable(label)]
        parts = self._question.encoding.features
        return [
            f"{name} = {numeral(plain(person[name]))}"
            for name, part in parts.items()
            if not isinstance(part, Number) and plain(person[name]) in part.specials
        ]

    @property
    def _untried(self) -> list[str]:
        """The features whose constraints were not tried to be lifted."""
        return untried(self._question)

    @property
    def _has_probabilities(self) -> bool:
        return self._question.goal.loss.link is not None

    @property
    def _cutoff(self) -> float:
        """The score from which on today's model accepts."""
        return self._question.cutoff

    def _probability(self, score: Any) -> Any:
        return self._question.goal.loss.probability(score)

    @property
    def _scale(self) -> Points | None:
        return self._question.scale

    def _gives(self, score: float) -> str:
        """Say what a score is worth, rounded down; nothing where it is a margin."""
        if self._scale is not None:
            return points_down(float(self._points(score)))
        return at_least(float(self._probability(score))) if self._has_probabilities else ""

    def _points(self, score: Any) -> Any:
        assert self._scale is not None
        return self._scale.at(self._question.goal.loss, score)

    @property
    def _is_guarantee(self) -> bool:
        return self._question.goal.is_guarantee

    def _all_words(self, option: int) -> list[str]:
        """Say in one text what each of those who have an option changes."""
        texts = [""] * len(self._outcome.options[option - 1].ways)
        for row, words in self._words(option, slice(None)):
            texts[row] = f"{texts[row]}, {words}" if texts[row] else words
        return texts

    def _words(self, option: int, which: slice) -> Iterator[tuple[int, str]]:
        """Say what some of those who have an option change, with the place of each among them."""
        ways, after = self._outcome.options[option - 1]
        people, who = self._outcome.people, ways.who[which]
        changed = dict(zip(self._outcome.names, ways.changed[which].T, strict=True))
        return change_words(people, who, after.iloc[which], changed, self._question.actions)

    def _places(self, k: int) -> list[int]:
        """Return the place of person k among those who have each option."""
        places = []
        for ways, _ in self._outcome.options:
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
            raise ValueError(
                f"the row of person {plain(label)!r} cannot be used: {self._refused[i]}"
            )
        return int(np.searchsorted(self._outcome.rows, i))

    def _compiled(self, label: Any) -> Compiled:
        """State the problem of one person again; it is not kept for everybody."""
        k = self._usable(label)
        return self._question.compile(self._outcome.people.iloc[k : k + 1])


def _can_miss(dtype: Any) -> bool:
    return not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


def _objects(texts: list[str]) -> NDArray[np.object_]:
    """Return texts as they are: an array of texts would give all the width of the longest."""
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
