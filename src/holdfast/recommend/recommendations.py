"""What is recommended, as a table, in words, and as a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import Compiled
from holdfast.machinery.labels import position_of
from holdfast.machinery.numbers import check_count
from holdfast.recommend.features import row_links
from holdfast.recommend.reasons import Release, constraints_of, find_releases, settings_of
from holdfast.recommend.staircase import Staircase
from holdfast.recommend.ways import Way
from holdfast.recommend.words import change_words, explanation
from holdfast.result.result import RecourseResult
from holdfast.result.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend.estimator import RobustRecourse

_COLUMNS = (
    "option",
    "status",
    "changes",
    "cost",
    "price",
    "lower_bound",
    "gap",
    "worst_case_validity",
    "current_validity",
    "initial_validity",
)


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
    guarantee, cost_weight : float or None
        What was asked for.
    radius : float
        Of the ball.

    Examples
    --------
    See `RobustRecourse`.
    """

    def __init__(
        self,
        estimator: RobustRecourse,
        compiled: Compiled,
        answer: RecourseResult,
        ways: list[list[Way]],
        after: list[pd.DataFrame],
        labels: pd.Index[Any],
    ) -> None:
        self._estimator, self._compiled, self._answer = estimator, compiled, answer
        self._ways, self._after, self.labels = ways, after, labels
        self._rank = [
            {k: position for position, k in enumerate(self._having(option))}
            for option in range(1, len(after) + 1)
        ]
        self._place = {int(row): k for k, row in enumerate(compiled.rows)}
        self._refused = dict(compiled.refused)
        self.guarantee, self.cost_weight = estimator.guarantee, estimator.cost_weight
        self.radius = float(estimator.robust_to.radius)
        self.status = np.empty(len(self), dtype=object)
        self.status[:] = Status.INVALID_INPUT
        for k, row in enumerate(compiled.rows):
            self.status[row] = self._status(k)
        self.status.flags.writeable = False

    def _status(self, k: int) -> Status:
        if self._ways[k]:
            return self._ways[k][0].status
        status: Status = self._answer.status[k]
        # a way that was found, but whose guarantee no row of the table can give
        return Status.NOT_FOUND if np.isfinite(self._answer.recourse_array[k]).all() else status

    def __len__(self) -> int:
        return len(self._compiled.rows) + len(self._compiled.refused)

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = ", ".join(f"{n} {name}" for name, n in zip(names, counts, strict=True))
        return f"<Recommendations for {len(self)} people: {found or 'nobody'}>"

    @property
    def people(self) -> pd.DataFrame:
        """The applicants whose rows could be used, as they are."""
        return self._compiled.people.copy()

    def after(self, option: int = 1) -> pd.DataFrame:
        """Return the people who have that option, as they are after following it."""
        check_count("option", option)
        if option > len(self._after):
            return self._compiled.people.iloc[:0].copy()
        return self._after[option - 1].copy()

    def _having(self, option: int) -> list[int]:
        return [k for k, ways in enumerate(self._ways) if len(ways) >= option]

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each person and option: what to change, its price and its proof.

        Columns ``recourse.<name>`` hold the person's features after the change, in raw units. Who
        has no option has one row, with the option 0.
        """
        import pandas as pd

        rows, parts = [], [self._compiled.people.iloc[:0]]
        for option in range(1, len(self._after) + 1):
            after = self._after[option - 1]
            parts.append(after)
            for position, k in enumerate(self._having(option)):
                values = self._numbers(k, option, after.iloc[position])
                rows.append((int(self._compiled.rows[k]), option, values))
        for i in range(len(self)):
            if i not in self._place or not self._ways[self._place[i]]:
                rows.append((i, 0, self._no_numbers(i)))
        order = sorted(range(len(rows)), key=lambda k: rows[k][:2])
        index = self.labels.take([rows[k][0] for k in order])
        if index.nlevels == 1:
            index = index.rename("person")
        table = pd.DataFrame([rows[k][2] for k in order], columns=list(_COLUMNS), index=index)
        features = pd.concat(parts[1:] or parts, ignore_index=True).reindex(order)
        for name in features.columns:
            table[f"recourse.{name}"] = features[name].to_numpy()
            if not features[name].isna().any():
                table[f"recourse.{name}"] = features[name].set_axis(index)
        return table

    def explain(self, label: Any) -> str:
        """Say in words what a person can do, or why nothing helps."""
        return explanation(self, label)

    def frontier(self, label: Any, points: int = 25) -> Staircase:
        """Return the cost of every guarantee that a person can reach, as steps to be drawn."""
        k = self._usable(label)
        links = row_links(self._compiled.links, k)
        return Staircase.of(
            self._compiled,
            k,
            points,
            lambda problem, guarantee: self._estimator._answer(problem, links, guarantee, None),
            self.guarantee,
        )

    def releases(self, label: Any) -> list[Release]:
        """Return the smallest sets of constraints whose release would help a person, if any."""
        k = self._usable(label)
        if self.status_of(label) is not Status.INFEASIBLE:
            return []
        person = self._compiled.people.iloc[k : k + 1]
        estimator = self._estimator
        return find_releases(
            person,
            estimator.actions,
            lambda table, actions: estimator._solve(table, actions, self._compiled.encoding),
        )

    @property
    def _has_facts(self) -> bool:
        """Whether some constraints are facts, or protect people: nobody can lift these."""
        actions = self._estimator.actions
        return len(actions.links) > 0 or len(list(constraints_of(actions))) < settings_of(actions)

    def changes(self, label: Any, option: int = 1) -> list[str]:
        """Say what a person changes, feature by feature: 'duration from 48 to 36 months'."""
        k = self._usable(label)
        check_count("option", option)
        if option > len(self._ways[k]):
            count = len(self._ways[k])
            raise ValueError(f"option {option} of person {label!r}, who has {count}, from 1 on")
        after = self._after[option - 1].iloc[self._rank[option - 1][k]]
        return self._changes(k, option, after)

    def _changes(self, k: int, option: int, after: Any) -> list[str]:
        features = self._ways[k][option - 1].features
        return change_words(self._compiled.people.iloc[k], after, features, self._estimator.actions)

    def ways(self, label: Any) -> list[Way]:
        """Return the ways of a person in encoded columns, each with its certificate."""
        i = self._position(label)
        return list(self._ways[self._place[i]]) if i in self._place else []

    def status_of(self, label: Any) -> Status:
        """Return what became of a person."""
        status: Status = self.status[self._position(label)]
        return status

    def why_refused(self, label: Any) -> str | None:
        """Say why the row of a person cannot be used; None if it can."""
        return self._refused.get(self._position(label))

    def initial_validity(self, label: Any) -> float:
        """Probability of approval of a person as they are, under today's model."""
        return self._initial(self._usable(label))

    def _initial(self, k: int) -> float:
        row = self._compiled.problem.problem.row(k)
        return float(row.loss.probability(row.score(row.X))[0])

    def reachable(self, label: Any) -> tuple[float, float]:
        """Best worst-case probability within reach of a person, and the largest radius."""
        k = self._usable(label)
        answer = self._answer
        return float(answer.reachable_validity[k]), float(answer.reachable_radius[k])

    def _today_after(self, label: Any, way: Way) -> tuple[float, float]:
        """Score and probability that today's model gives a person who went a way."""
        row = self._compiled.problem.problem.row(self._usable(label))
        score = row.score(way.recourse[None])
        return float(score[0]), float(row.loss.probability(score)[0])

    @property
    def _has_probabilities(self) -> bool:
        return self._compiled.problem.problem.loss.link is not None

    @property
    def _cutoff(self) -> float:
        """The score from which on today's model accepts."""
        return float(self._compiled.encoding.model.cutoff)

    def _validity_of(self, way: Way) -> float:
        """Probability of approval of a way under the worst model of the ball."""
        return float(self._compiled.problem.problem.loss.probability(way.worst_case_score))

    def _numbers(self, k: int, option: int, after: Any) -> dict[str, Any]:
        way, base = self._ways[k][option - 1], self._compiled.problem.problem
        row = base.row(k)
        return {
            "option": option,
            "status": str(way.status),
            "changes": ", ".join(self._changes(k, option, after)),
            "cost": way.cost,
            "price": way.price,
            "lower_bound": way.lower_bound,
            "gap": way.gap,
            "worst_case_validity": self._validity_of(way),
            "current_validity": float(base.loss.probability(row.score(way.recourse[None]))[0]),
            "initial_validity": self._initial(k),
        }

    def _no_numbers(self, i: int) -> dict[str, Any]:
        known: dict[str, Any] = {"option": 0, "status": str(self.status[i]), "changes": ""}
        if i in self._place:
            k = self._place[i]
            if self.status[i] is not Status.NOT_FOUND:  # what was found there is not advised
                for name in ("cost", "price", "lower_bound", "gap"):
                    known[name] = float(getattr(self._answer, name)[k])
            known["initial_validity"] = self._initial(k)
        return known

    def _position(self, label: Any) -> int:
        return position_of(label, self.labels, len(self))

    def _usable(self, label: Any) -> int:
        i = self._position(label)
        if i not in self._place:
            raise ValueError(f"the row of person {label!r} cannot be used: {self._refused[i]}")
        return self._place[i]
