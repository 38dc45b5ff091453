"""The price and the four validities of recourses, for linear models and for networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast._numbers import Floats
from holdfast.api import judge, solve_problem
from holdfast.ball import NormBall
from holdfast.evaluate.population import population_worst_model
from holdfast.models import LinearModel, Model
from holdfast.problem import RecourseProblem

if TYPE_CHECKING:
    from holdfast.models.network import Network

AS_PUBLISHED = "as_published"


class Worst(NamedTuple):
    """What the worst models of a ball make of recourses."""

    loss: Floats
    validity: Floats


def worst_case(model: Model, recourse: Floats, ball: NormBall, judging: str) -> Worst:
    """Judge each recourse by its own worst model; NaN where there is no recourse."""
    there = np.isfinite(recourse).all(axis=1)
    loss, score = np.full(len(recourse), np.nan), np.full(len(recourse), np.nan)
    if isinstance(model, LinearModel):
        score[there] = ball.worst_score(recourse[there], model.coef, model.intercept)
        loss[there] = np.logaddexp(0.0, -score[there])
    else:
        from holdfast.networks import published_worst_network, worst_network

        ascent = published_worst_network if judging == AS_PUBLISHED else worst_network
        found = ascent(cast("Network", model), recourse[there], ball, threads=1)
        score[there], loss[there] = found.score, found.loss
    return Worst(loss, special.expit(score))


def population_validity(model: Model, recourse: Floats, ball: NormBall) -> Floats:
    """Judge all recourses by the one model of the ball that is worst for them together."""
    there = np.isfinite(recourse).all(axis=1)
    score = np.full(len(recourse), np.nan)
    if not there.any():
        return score
    if isinstance(model, LinearModel):
        worst = population_worst_model(recourse[there], model.coef, model.intercept, ball)
        score[there] = recourse[there] @ worst.coef + worst.intercept
    else:
        from holdfast.networks import population_worst_network

        network = cast("Network", model)
        score[there] = population_worst_network(network, recourse[there], ball, threads=1).score
    return np.asarray(special.expit(score))


def validity(model: Model | None, recourse: Floats) -> Floats:
    """Probability of approval by one model; NaN without a model or a recourse."""
    there = np.isfinite(recourse).all(axis=1)
    probability = np.full(len(recourse), np.nan)
    if model is not None and there.any():
        probability[there] = special.expit(model.score(recourse[there]))
    return probability


def prove(
    problem: RecourseProblem, recourse: Floats, cost_weight: float
) -> tuple[Floats, NDArray[np.object_]]:
    """Return the distance of recourses from the proven optimum, and their status."""
    best = solve_problem(problem, cost_weight=cost_weight, threads=1)
    judged = judge(best, recourse, 1)
    return judged.gap, judged.status
