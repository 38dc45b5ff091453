"""What is asked on behalf of everybody, frozen, and how it is solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import ActionSet, Compiled
from holdfast.actions.compile import compile_people, own_scores
from holdfast.discrete import DiscreteProblem, Links, answer_discrete, answer_linked
from holdfast.discrete.answer import chosen_options
from holdfast.machinery.numbers import Floats
from holdfast.models.encoding import Encoded, Encoding
from holdfast.problem.goal import Goal
from holdfast.problem.points import Points
from holdfast.problem.sets import ModelSet
from holdfast.recommend.features import changed_features
from holdfast.recommend.ways import Ways
from holdfast.result.result import RecourseResult
from holdfast.result.status import sort_proven

if TYPE_CHECKING:
    import pandas as pd


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
    def target(self) -> float | None:
        """The worst-case score that is asked for; None: the least price is."""
        return self.goal.level if self.goal.is_guarantee else None

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

    def _compiled(self, people: pd.DataFrame, actions: ActionSet) -> tuple[Compiled, Encoded]:
        scores = own_scores(self.encoding)
        return compile_people(
            people, self.encoding, actions, self.robust_to, self.goal.loss, scores
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
