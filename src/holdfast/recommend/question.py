"""What is asked on behalf of everybody, frozen, and how it is solved."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet, CategoryFeature, Compiled, NumberFeature
from holdfast.actions.compile import compile_people, own_scores
from holdfast.discrete import DiscreteProblem, Links, answer_discrete, answer_linked
from holdfast.discrete.answer import chosen_options
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Encoded, Encoding, Number
from holdfast.problem.goal import Goal
from holdfast.problem.points import Points
from holdfast.problem.sets import ModelSet
from holdfast.recommend.features import changed_features
from holdfast.recommend.printed import Aim
from holdfast.recommend.ways import Ways
from holdfast.result.result import RecourseResult
from holdfast.result.status import Status, are_proven, proof_room, sort_proven

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
    `scale`, so many may have been asked for.
    """

    encoding: Encoding
    actions: ActionSet
    robust_to: ModelSet
    goal: Goal
    n_jobs: int | None
    scale: Points | None = None
    guarantee_points: float | None = None

    @property
    def names(self) -> list[str]:
        """All features that anybody may change, in the order of the model and the action set."""
        return list(dict.fromkeys([*self.encoding.features, *self.actions]))

    @property
    def target(self) -> float | None:
        """The worst-case score that is asked for; None: the least price is."""
        return self.goal.level if self.goal.is_guarantee else None

    @property
    def aim(self) -> Aim:
        """What must hold of every row that is advised."""
        target = self.target
        if target is not None and target < self.cutoff and self.goal.loss.score(0.5) == target:
            target = self.cutoff  # a tie is no yes
        return Aim(target, self.goal.cost_weight, self.cutoff)

    @property
    def cutoff(self) -> float:
        """The score from which on today's model accepts."""
        return float(self.encoding.model.cutoff)

    def compile(self, people: pd.DataFrame, actions: ActionSet | None = None) -> Compiled:
        """State what people can do as a discrete problem; perhaps with another action set."""
        return self._compiled(people, self.actions if actions is None else actions)[0]

    def compile_compared(self, people: pd.DataFrame) -> Compiled:
        """State it, and compare what the model itself says of people with what was read."""
        compiled, encoded = self._compiled(people, self.actions)
        self.encoding.compare(encoded, compiled.problem.problem.X, self.goal.loss)
        return compiled

    def _scores(self) -> tuple[Any, Any, ModelSet]:
        """Return the linear score that is solved for, and the set around it."""
        return *own_scores(self.encoding), self.robust_to

    def _compiled(self, people: pd.DataFrame, actions: ActionSet) -> tuple[Compiled, Encoded]:
        coef, intercept, models = self._scores()
        given = {name for names in self.given_numbers(people) for name in names}
        encoding = self.encoding.bending(frozenset(given))
        scores = (coef, intercept)
        return compile_people(people, encoding, actions, models, self.goal.loss, scores)

    def given_numbers(self, people: pd.DataFrame) -> list[frozenset[str]]:
        """Return for each person the numbers that are missing, can be given, and are told apart.

        Where an indicator tells what is missing, giving a number moves two columns at once. Where
        it is taken for a number that is not allowed, what lies on the way is not allowed either.
        """
        names = [
            name
            for name, part in self.encoding.features.items()
            if isinstance(part, Number) and _can_be_given(self.actions[name])
            if part.indicators or _is_outside(self.actions[name], part.fill)
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
        if relaxed is None:
            return answer
        best = self.solve(relaxed, links)
        bound = np.minimum(answer.lower_bound, best.lower_bound)
        with np.errstate(invalid="ignore"):  # without an answer both may be infinite
            status, gap = answer.status.copy(), answer.price - bound
        room = proof_room(answer.price, self.goal.is_guarantee)
        is_hopeless = status == Status.INFEASIBLE
        status[are_proven(status) & ~is_hopeless & ~(gap <= room)] = Status.GAP_OPEN
        status[is_hopeless & (best.status != Status.INFEASIBLE)] = Status.GAP_OPEN
        is_open = status == Status.GAP_OPEN
        return replace(
            answer,
            status=status,
            lower_bound=np.where(is_open, bound, answer.lower_bound),
            gap=np.where(is_open, gap, answer.gap),
            reachable_validity=np.where(is_open, np.nan, answer.reachable_validity),
            reachable_radius=np.where(is_open, np.nan, answer.reachable_radius),
        )

    def solve(
        self, problem: DiscreteProblem, links: Links, guarantee: float | None = None
    ) -> RecourseResult:
        """Solve by branch and bound, with links or without.

        Perhaps for another guarantee than that which is asked for.
        """
        goal = self.goal
        if guarantee is not None:
            goal = Goal.of(goal.loss, guarantee=guarantee)
        if len(links.matrix):
            return answer_linked(problem, links, goal, n_jobs=self.n_jobs)
        return answer_discrete(problem, goal, n_jobs=self.n_jobs)

    def read(
        self,
        answer: RecourseResult,
        compiled: Compiled,
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
        recourse, start = answer.recourse_array, compiled.problem.problem.X[who]
        levels = chosen_options(answer)
        score: Floats = compiled.problem.problem.score(recourse)
        status, stays = answer.status.copy(), (recourse == start).all(axis=1)
        sort_proven(status, stays, answer.worst_case_score, score, self.cutoff, self.target)
        there = np.flatnonzero(np.isfinite(recourse).all(axis=1))
        ways = Ways(
            who=who,
            held=held,
            changed=changed_features(compiled, who, recourse, levels),
            recourse=recourse,
            levels=levels,
            status=status,
            cost=answer.cost,
            price=answer.price,
            lower_bound=answer.lower_bound,
            gap=answer.gap,
            worst_case_score=answer.worst_case_score,
            score=score,
        )
        return (ways if len(there) == len(who) else ways.take(there)), there
