"""Advice for people whom a network judges: found by a search, and proven row by row.

What people may do is kept to exactly, as for linear models. Every row that is advised is given to
the prover as the pipeline encodes it: no network of the set gives it less than what is told. That
nothing cheaper exists is not proven.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from holdfast.actions import Posed
from holdfast.discrete import DiscreteProblem
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.model_set import ModelSet
from holdfast.recommend.advised import Advised, check_printed, find_advice, keep_told
from holdfast.recommend.lockstep import Searches
from holdfast.recommend.oracle import NetworkOracle
from holdfast.recommend.printed import Value, Worth, join_printed, settle
from holdfast.recommend.question import Question
from holdfast.recommend.seeker import Move
from holdfast.recommend.ways import Printed, Ways
from holdfast.result.status import network_statuses

if TYPE_CHECKING:
    import pandas as pd

_AT_ONCE = 64  # people; the prover is asked for each of them alone, solvers for all of them


@dataclass(frozen=True, eq=False)
class NetworkQuestion(Question):
    """What is asked of a network: a guarantee, under every network of a set."""

    oracle: NetworkOracle = field(kw_only=True)

    def _scores(self) -> tuple[Any, Any, ModelSet]:
        """Return none of its own: what is solved for are estimates, each under itself alone."""
        return np.zeros(self.encoding.n_columns), 0.0, NormBall(p=1, radius=0.0)


def find_network_advice(question: NetworkQuestion, people: pd.DataFrame) -> Advised:
    """Find out what everybody should change."""
    return find_advice(question, people, 1, solve=_solve_batch, most=_AT_ONCE)


def _solve_batch(question: Question, people: pd.DataFrame, _: int) -> Advised:
    from holdfast.models.networks.torch_threads import one_torch_thread

    asked = cast("NetworkQuestion", question)
    posed = asked.pose_compared(people)
    with one_torch_thread():
        printed = _told(asked, posed)
        score = asked.oracle.score_alone(posed.problem.base.X)
    check_printed(posed, printed)
    ways = printed.ways
    unknown = np.full(len(ways), np.nan)
    return Advised(
        people=posed.people,
        positions=posed.positions,
        refused=posed.refused,
        names=asked.names,
        status=ways.status,
        cost=unknown,
        price=unknown,
        lower_bound=unknown,
        gap=unknown,
        score=score,
        approved=asked.approves(posed, score),
        reachable_validity=unknown,
        reachable_radius=unknown,
        options=[keep_told(printed, posed.names, asked.names)],
    )


def _told(question: NetworkQuestion, posed: Posed) -> Printed:
    """Settle what each person is told: one row of the table, whatever it is worth."""
    goal, value = question.goal, _value(question.oracle)
    everybody = np.arange(len(posed.people))
    searches = Searches(posed, question.oracle, goal, question.n_jobs)
    seekers = searches.run(everybody, goal.amount)
    valid = [i for i, seeker in enumerate(seekers) if seeker.best is not None]

    def again(ways: Ways, margin: float) -> Ways:
        """Search once more, for more than is asked for: rounding took the rest away."""
        more = searches.run(ways.who, goal.amount + margin * (1.0 + abs(goal.amount)))
        found = [k for k, seeker in enumerate(more) if seeker.best is not None]
        return searches.ways(ways.who[found], [cast("Move", more[k].best) for k in found])

    def stay(ways: Ways, _: float) -> Ways:
        return searches.ways(ways.who, [seekers[i].own for i in ways.who.tolist()])

    first = searches.ways(
        np.array(valid, dtype=np.int64), [cast("Move", seekers[i].best) for i in valid]
    )
    (enough,) = settle(posed, [first], goal, again, value)
    rest = np.setdiff1d(everybody, enough.ways.who)
    # of these no score is asked: the highest is told. Who has a way that nobody can type, stays
    left = [seekers[i] for i in rest.tolist()]
    best = searches.ways(rest, [each.own if each.best else each.highest for each in left])
    (other,) = settle(posed, [best], goal.asking_highest(), stay, value)
    ways, after = join_printed([enough, other])
    return Printed(_with_statuses(ways, goal), after)


def _with_statuses(ways: Ways, goal: Goal) -> Ways:
    """Say what is proven of each row that is told; nothing is, of cheaper ones."""
    holds = ways.worst_case_score >= goal.amount
    status = network_statuses(holds, ~np.any(ways.changed, axis=1))
    unknown = np.full(len(ways), np.nan)
    return replace(ways, status=status, lower_bound=unknown, gap=unknown)


def _value(oracle: NetworkOracle) -> Value:
    """Return what says of points what is proven of them, and what today's network gives."""
    known: dict[bytes, float] = {}

    def proven(point: Floats) -> float:
        key = point.tobytes()
        if key not in known:
            known[key] = oracle.prove_alone(point)
        return known[key]

    def value(_: DiscreteProblem, points: Floats) -> Worth:
        worst = np.array([proven(point) for point in points], dtype=np.float64)
        score = oracle.score_alone(points)
        return Worth(worst, score, np.zeros(len(points)))  # the prover has seen to rounding

    return value
