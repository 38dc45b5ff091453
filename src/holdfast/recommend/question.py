"""What is asked on behalf of everybody, frozen, and how it is solved."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet, CategoryFeature, NumberFeature, Posed
from holdfast.actions.pose import own_scores, pose_people
from holdfast.discrete import DiscreteProblem, Links, answer_linked
from holdfast.discrete.answer import chosen_levels
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Encoded, Encoding, Number
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import ModelSet
from holdfast.problem.points import Points
from holdfast.recommend.features import changed_features
from holdfast.recommend.ways import Ways
from holdfast.result.result import RecourseResult

if TYPE_CHECKING:
    import pandas as pd


def _is_outside(feature: NumberFeature | CategoryFeature, value: float | None) -> bool:
    if value is None or not isinstance(feature, NumberFeature):
        return False
    return not feature.lowest <= value <= feature.highest


def _can_be_given(feature: NumberFeature | CategoryFeature) -> bool:
    return feature.provide_cost is not None and not feature.stays


@dataclass(frozen=True, eq=False)
class Question:
    """A model, the set around it, what people can do, and what is asked for.

    The action set has been validated, and fits the pipeline. Where people are told points of a
    scale, so many may have been asked for.
    """

    encoding: Encoding
    actions: ActionSet
    robust_to: ModelSet
    goal: Goal
    n_jobs: int | None
    points_scale: Points | None = None
    guarantee_points: float | None = None

    @property
    def names(self) -> list[str]:
        """All features that anybody may change, in the order of the model and the action set."""
        return list(dict.fromkeys([*self.encoding.features, *self.actions]))

    def pose(
        self,
        people: pd.DataFrame,
        actions: ActionSet | None = None,
        given: frozenset[str] | None = None,
    ) -> Posed:
        """State what people can do as a discrete problem; perhaps with another action set.

        Numbers that are `given` are those of `given_numbers`, unless they are named.
        """
        return self._posed(people, self.actions if actions is None else actions, given)[0]

    def pose_compared(self, people: pd.DataFrame) -> Posed:
        """State it, and compare what the model itself says of people with what was read."""
        posed, encoded = self._posed(people, self.actions)
        self.encoding.compare(encoded, posed.problem.base.X, self.goal.loss)
        return posed

    def approves(self, posed: Posed, score: Floats) -> NDArray[np.bool_]:
        """Say whom today's model approves as they are, by their score or its own word."""
        points = posed.problem.base.X
        return self.encoding.accepts(posed.people, points, score, self.goal.cutoff)

    def _scores(self) -> tuple[Any, Any, ModelSet]:
        """Return the linear score that is solved for, and the set around it."""
        return *own_scores(self.encoding), self.robust_to

    def _posed(
        self, people: pd.DataFrame, actions: ActionSet, given: frozenset[str] | None = None
    ) -> tuple[Posed, Encoded]:
        coef, intercept, models = self._scores()
        if given is None:
            given = frozenset[str]().union(*set(self.given_numbers(people)))
        encoding = self.encoding.bending(given)
        scores = (coef, intercept)
        return pose_people(people, encoding, actions, models, self.goal.loss, scores)

    def given_numbers(
        self, people: pd.DataFrame, actions: ActionSet | None = None
    ) -> list[frozenset[str]]:
        """Return for each person the numbers that are missing, can be given, and are told apart.

        Where an indicator tells what is missing, giving a number moves two columns at once. Where
        it is taken for a number that is not allowed, what lies on the way is not allowed either.
        Whoever misses a linked number cannot be used.
        """
        actions = self.actions if actions is None else actions
        linked = {name for link in actions.links for name in link.names}
        names = [
            name
            for name, feature in self.encoding.features.items()
            if isinstance(feature, Number) and _can_be_given(actions[name])
            if name not in linked
            if feature.indicators or _is_outside(actions[name], feature.fill)
        ]
        if not names:
            return [frozenset()] * len(people)
        missing = people.reindex(columns=names).isna().to_numpy()
        return [frozenset(itertools.compress(names, row)) for row in missing.tolist()]

    def solve_relaxed(
        self, problem: DiscreteProblem, relaxed: DiscreteProblem | None, links: Links
    ) -> RecourseResult:
        """Solve by branch and bound; what is not tried in `problem` is bounded in `relaxed`."""
        answer = self.solve(problem, links)
        return answer if relaxed is None else answer.bounded_by(self.solve(relaxed, links))

    def solve(
        self, problem: DiscreteProblem, links: Links, goal: Goal | None = None
    ) -> RecourseResult:
        """Solve by branch and bound, with links or without; perhaps for another goal."""
        goal = self.goal if goal is None else goal
        return answer_linked(problem, links, goal, n_jobs=self.n_jobs)

    def read(
        self,
        answer: RecourseResult,
        posed: Posed,
        who: NDArray[np.int64],
        held: NDArray[np.bool_],
    ) -> tuple[Ways, NDArray[np.int64]]:
        """Read the ways out of an answer about some people, whose features were held so.

        Returns
        -------
        ways : Ways
            Of those who have a recourse.
        places : array of int
            Their places among `who`.
        """
        recourse, levels = answer.recourse_array, chosen_levels(answer)
        score: Floats = posed.problem.base.score(recourse)
        there = np.flatnonzero(answer.has_recourse)
        ways = Ways(
            who=who,
            held=held,
            changed=changed_features(posed, who, recourse, levels),
            recourse=recourse,
            levels=levels,
            status=answer.status,
            cost=answer.cost,
            price=answer.price,
            lower_bound=answer.lower_bound,
            gap=answer.gap,
            worst_case_score=answer.worst_case_score,
            score=score,
        )
        return (ways if len(there) == len(who) else ways.take(there)), there
