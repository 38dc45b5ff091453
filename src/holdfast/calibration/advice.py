"""Recommendations for the same people under many models and many sets of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet
from holdfast.actions.pose import pose_problem
from holdfast.continuous.frontier import answer
from holdfast.discrete import answer_linked
from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import thread_count
from holdfast.models import LinearModel
from holdfast.models.encoding import Encoding
from holdfast.models.encoding.reading import plain
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import ModelSet
from holdfast.problem.problem import RecourseProblem
from holdfast.result.result import RecourseResult


class Told(NamedTuple):
    """What was found for some rows: who has a recourse, where it leads, and what it costs."""

    found: NDArray[np.bool_]
    recourse: Floats
    cost: Floats


class Adviser:
    """Finds recourses of denied people, in encoded columns, within what they can do.

    Parameters
    ----------
    today : LinearModel
    points : (n, d) array
        The people, encoded.
    goal : Goal
        A guarantee.
    n_jobs : int, optional
    """

    def __init__(self, today: LinearModel, points: Floats, goal: Goal, n_jobs: int | None) -> None:
        self.today, self.points = today, points
        self.goal, self.n_jobs = goal, n_jobs

    def __call__(
        self, robust_to: ModelSet, who: NDArray[np.int64], models: Floats | None = None
    ) -> Told:
        """Advise some of the people, each under a model of their own, or all under today's."""
        if not len(who):
            nobody = np.empty(0)
            return Told(np.empty(0, dtype=bool), self.points[:0], nobody)
        result = self._solve(robust_to, who, models)
        found = np.isfinite(result.cost) & result.has_recourse
        return Told(found, result.recourse_array, result.cost)

    def _solve(
        self, robust_to: ModelSet, who: NDArray[np.int64], models: Floats | None
    ) -> RecourseResult:
        coef, intercept = self._scores(models)
        problem = RecourseProblem.build(
            self.points[who],
            coef,
            intercept,
            robust_to=robust_to,
            loss=self.goal.loss,
        )
        return answer(problem, self.goal, thread_count(self.n_jobs))

    def _scores(self, models: Floats | None) -> tuple[Floats, Floats]:
        if models is None:
            return self.today.coef, np.array([self.today.intercept])
        return models[:, :-1], models[:, -1]


class ActionAdviser(Adviser):
    """The same within an action set: categories, whole numbers, links, costs in raw units."""

    def __init__(
        self,
        encoding: Encoding,
        people: Any,
        actions: ActionSet,
        goal: Goal,
        n_jobs: int | None,
    ) -> None:
        today = encoding.model
        assert isinstance(today, LinearModel)
        nothing = NormBall(1.0, 0.0)
        posed = pose_problem(
            people, encoding, actions, robust_to=nothing, loss=today.choose_loss(None)
        )
        if posed.refused:
            row, why = posed.refused[0]
            label = people.index[row] if hasattr(people, "index") else row
            raise ValueError(f"X: row {plain(label)!r} does not fit the action set: {why}")
        super().__init__(today, posed.problem.base.X, goal, n_jobs)
        self.problem, self.links = posed.problem, posed.links

    def _solve(
        self, robust_to: ModelSet, who: NDArray[np.int64], models: Floats | None
    ) -> RecourseResult:
        problem = self.problem.take(who)
        base = problem.base
        changed: dict[str, Any] = {"robust_to": robust_to}
        if models is not None:
            coef, intercept = (np.ascontiguousarray(each) for each in self._scores(models))
            coef.flags.writeable = intercept.flags.writeable = False
            changed |= {"coef": coef, "intercept": intercept}
        problem = replace(problem, base=replace(base, **changed))
        links = self.links.take(who)
        return answer_linked(problem, links, self.goal, reachable=False, n_jobs=self.n_jobs)
