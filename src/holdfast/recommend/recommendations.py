"""What is recommended, as a table, in words, and as a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.actions import Compiled, decode
from holdfast.discrete import DiscreteAnswer
from holdfast.encoding import Encoding
from holdfast.recommend.features import row_links
from holdfast.recommend.reasons import Release, find_releases
from holdfast.recommend.staircase import Staircase
from holdfast.recommend.ways import Way
from holdfast.recommend.words import change_words, explanation
from holdfast.result import Status

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.recommend.estimator import RobustRecourse


class Recommendations:
    """What each applicant should change, in raw units; made by `RobustRecourse.recommend`.

    People go by position, from 0, among the applicants.

    Attributes
    ----------
    status : array of Status
        What became of each applicant.
    people : DataFrame
        The applicants whose rows could be used, as they are.

    Examples
    --------
    See `RobustRecourse`.
    """

    def __init__(
        self,
        estimator: RobustRecourse,
        encoding: Encoding,
        compiled: Compiled,
        answer: DiscreteAnswer,
        ways: list[list[Way]],
        labels: Any,
    ) -> None:
        self._estimator, self._encoding = estimator, encoding
        self._compiled, self._answer, self._ways = compiled, answer, ways
        self._labels = labels
        self._after: dict[int, pd.DataFrame] = {}
        self._place = {int(row): k for k, row in enumerate(compiled.rows)}
        self._refused = dict(compiled.refused)
        self.people = compiled.people
        self.status = np.empty(len(self), dtype=object)
        self.status[:] = Status.INVALID_INPUT
        self.status[compiled.rows] = answer.status

    def __len__(self) -> int:
        return len(self._compiled.rows) + len(self._compiled.refused)

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = ", ".join(f"{n} {name}" for name, n in zip(names, counts, strict=True))
        return f"<Recommendations for {len(self)} people: {found or 'nobody'}>"

    def after(self, option: int = 0) -> pd.DataFrame:
        """Return the people who have that option, as they are after following it."""
        if option not in self._after:
            rows = self._having(option)
            base = self._compiled.problem
            recourse, options = base.problem.points.copy(), base.current.copy()
            for k in rows:
                way = self._ways[k][option]
                recourse[k], options[k] = way.recourse, way.options
            which = np.array(rows, dtype=np.int64)
            self._after[option] = decode(self._compiled, recourse, options, which)
        return self._after[option].copy()

    def _having(self, option: int) -> list[int]:
        return [k for k, ways in enumerate(self._ways) if len(ways) > option]

    def table(self) -> pd.DataFrame:
        """Return one row for each person and option: what to change, its price and its proof.

        The last columns hold the person's features after the change, in raw units.
        """
        import pandas as pd

        names = list(self.people.columns)
        rows = []
        for option in range(max((len(ways) for ways in self._ways), default=0)):
            after = self.after(option)
            for position, k in enumerate(self._having(option)):
                person = after.iloc[position]
                values = self._numbers(k, option, person) | {name: person[name] for name in names}
                rows.append((int(self._compiled.rows[k]), option, values))
        for i in range(len(self)):
            if i not in self._place or not self._ways[self._place[i]]:
                rows.append((i, 0, {"status": str(self.status[i]), "changes": ""}))
        rows.sort(key=lambda row: row[:2])
        index = pd.Index([self._labels[i] for i, _, _ in rows], name="person")
        table = pd.DataFrame([values for _, _, values in rows], index=index)
        table.insert(0, "option", [option + 1 for _, option, _ in rows])
        for name in names:
            if name in table and not table[name].isna().any():
                table[name] = table[name].astype(self.after().dtypes[name])
        return table

    def explain(self, i: int) -> str:
        """Say in words what person i can do, or why nothing helps."""
        return explanation(self, self._position(i))

    def frontier(self, i: int, points: int = 25) -> Staircase:
        """Return the cost of every guarantee that person i can reach, as steps to be drawn."""
        k = self._usable(i)
        links = row_links(self._compiled.links, k)
        return Staircase.of(
            self._compiled,
            k,
            points,
            lambda problem, guarantee: self._estimator._answer(problem, links, guarantee, None),
        )

    def releases(self, i: int) -> list[Release]:
        """Return the smallest sets of constraints whose release would help person i, if any."""
        k = self._usable(i)
        if self.status[i] is not Status.INFEASIBLE:
            return []
        person = self.people.iloc[k : k + 1]
        estimator = self._estimator
        return find_releases(
            person,
            estimator.actions,
            lambda table, actions: estimator._solve(table, actions, self._encoding),
        )

    def changes(self, i: int, option: int = 0) -> list[str]:
        """Say what person i changes, feature by feature."""
        k = self._usable(i)
        return self._changes(k, option, self.after(option).iloc[self._having(option).index(k)])

    def _changes(self, k: int, option: int, after: Any) -> list[str]:
        features = self._ways[k][option].features
        return change_words(self.people.iloc[k], after, features, self._estimator.actions)

    def ways(self, i: int) -> list[Way]:
        """Return the ways of person i in encoded columns, each with its certificate."""
        i = self._position(i)
        return self._ways[self._place[i]] if i in self._place else []

    def why_refused(self, i: int) -> str | None:
        """Say why the row of person i cannot be used; None if it can."""
        return self._refused.get(i)

    def initial_validity(self, i: int) -> float:
        """Probability of approval of person i as they are, under today's model."""
        base = self._compiled.problem.problem
        return float(base.loss.probability(base.score(base.points))[self._usable(i)])

    def reachable(self, i: int) -> tuple[float, float]:
        """Best worst-case probability within reach of person i, and the largest radius."""
        k = self._usable(i)
        answer = self._answer
        return float(answer.reachable_validity[k]), float(answer.reachable_radius[k])

    def _numbers(self, k: int, option: int, after: Any) -> dict[str, Any]:
        way, base = self._ways[k][option], self._compiled.problem.problem
        row = base.row(k)
        probability = base.loss.probability
        i = int(self._compiled.rows[k])
        return {
            "status": str(self.status[i]),
            "changes": ", ".join(self._changes(k, option, after)),
            "cost": way.cost,
            "price": way.price,
            "lower_bound": way.lower_bound,
            "gap": way.gap,
            "worst_case_validity": float(probability(way.worst_case_score)),
            "current_validity": float(probability(row.score(way.recourse[None]))[0]),
            "initial_validity": float(probability(row.score(row.points))[0]),
        }

    def _position(self, i: int) -> int:
        if not isinstance(i, (int, np.integer)) or not 0 <= i < len(self):
            raise IndexError(f"person {i!r} of {len(self)}; people go by position, from 0")
        return int(i)

    def _usable(self, i: int) -> int:
        i = self._position(i)
        if i not in self._place:
            raise ValueError(f"the row of person {i} cannot be used: {self._refused[i]}")
        return self._place[i]
