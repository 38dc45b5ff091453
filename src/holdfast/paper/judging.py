"""How the paper's recourses are judged: by its authors' search for worst networks, or by ours.

Beside ours there may stand a proof: what every network of the ball gives at least.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.continuous.solve import judge, solve_problem
from holdfast.evaluate.scores import model_score, population_score, worst_case_score
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models import Model
from holdfast.problem import NormBall, RecourseProblem

AS_PUBLISHED, PROOF = "as_published", "proof"


class Worst(NamedTuple):
    """What the worst models of a ball make of recourses; NaN where there is none."""

    loss: Floats
    validity: Floats
    proven: Floats  # that every model gives at least; NaN where no proof was sought


def worst_case(model: Model, recourse: Floats, robust_to: NormBall, judging: str) -> Worst:
    """Judge each recourse by its own worst model, found in the way that `judging` names."""
    if judging == AS_PUBLISHED:
        return _worst_as_published(model, recourse, robust_to)
    if judging == PROOF:
        return _worst_proven(model, recourse, robust_to)
    score = worst_case_score(model, recourse, robust_to, n_jobs=1)
    with np.errstate(invalid="ignore"):  # NaN: there is no recourse
        return _not_proven(np.logaddexp(0.0, -score), score)


def _not_proven(loss: Floats, score: Floats) -> Worst:
    return Worst(loss, special.expit(score), np.full(len(score), np.nan))


def _worst_proven(model: Model, recourse: Floats, robust_to: NormBall) -> Worst:
    from holdfast.models.network import Network  # needs torch, as does what follows
    from holdfast.models.networks.prove import bracket_of

    bracket = bracket_of(cast(Network, model), recourse, robust_to, n_jobs=1)
    loss = np.logaddexp(0.0, -bracket.found_score)
    return Worst(loss, bracket.found_validity, bracket.proven_validity)


def _worst_as_published(model: Model, recourse: Floats, robust_to: NormBall) -> Worst:
    from holdfast.models.network import Network  # needs torch, as does what follows
    from holdfast.paper.worst_network_as_published import published_worst_network

    there = whole_rows(recourse)
    loss, score = np.full(len(recourse), np.nan), np.full(len(recourse), np.nan)
    network = cast(Network, model)
    found = published_worst_network(network, recourse[there], robust_to, n_jobs=1)
    loss[there], score[there] = found.loss, found.score
    return _not_proven(loss, score)


def population_validity(model: Model, recourse: Floats, robust_to: NormBall) -> Floats:
    """Judge all recourses by the one model of the ball that is worst for them together."""
    return np.asarray(special.expit(population_score(model, recourse, robust_to, n_jobs=1).score))


def validity(model: Model | None, recourse: Floats) -> Floats:
    """Probability of approval by one model; NaN without a model or a recourse."""
    if model is None:
        return np.full(len(recourse), np.nan)
    return np.asarray(special.expit(model_score(model, recourse)))


def distance_from_optimum(
    problem: RecourseProblem, recourse: Floats, cost_weight: float
) -> tuple[Floats, NDArray[np.object_]]:
    """Return the distance of recourses from the proven optimum, and their status."""
    best = solve_problem(problem, cost_weight=cost_weight, n_jobs=1)
    found = judge(best, recourse, 1)
    return found.gap, found.status
