"""What models make of recourses: today's, the worst of a set, one worst for all, later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy import special

from holdfast.evaluate.population import population_worst_model
from holdfast.machinery.numbers import Floats
from holdfast.models import LinearModel, Model
from holdfast.problem.ball import NormBall

if TYPE_CHECKING:
    from holdfast.models.network import Network


class Worst(NamedTuple):
    """What the worst models of a ball make of recourses."""

    loss: Floats
    validity: Floats


def worst_case(
    model: Model, recourse: Floats, robust_to: NormBall, search: Callable[..., Any] | None = None
) -> Worst:
    """Judge each recourse by its own worst model; NaN where there is no recourse.

    Linear models are judged exactly. For a network it is the worst that `search` finds, by default
    `holdfast.models.networks.worst_network`.
    """
    there = np.isfinite(recourse).all(axis=1)
    loss, score = np.full(len(recourse), np.nan), np.full(len(recourse), np.nan)
    if isinstance(model, LinearModel):
        score[there] = robust_to.worst_score(recourse[there], model.coef, model.intercept)
        loss[there] = np.logaddexp(0.0, -score[there])
    else:
        from holdfast.models.networks import worst_network

        found = (search or worst_network)(
            cast("Network", model), recourse[there], robust_to, n_jobs=1
        )
        score[there], loss[there] = found.score, found.loss
    return Worst(loss, special.expit(score))


def population_validity(model: Model, recourse: Floats, robust_to: NormBall) -> Floats:
    """Judge all recourses by the one model of the ball that is worst for them together."""
    there = np.isfinite(recourse).all(axis=1)
    score = np.full(len(recourse), np.nan)
    if not there.any():
        return score
    if isinstance(model, LinearModel):
        worst = population_worst_model(recourse[there], model.coef, model.intercept, robust_to)
        score[there] = recourse[there] @ worst.coef + worst.intercept
    else:
        from holdfast.models.networks import population_worst_network

        network = cast("Network", model)
        score[there] = population_worst_network(network, recourse[there], robust_to, n_jobs=1).score
    return np.asarray(special.expit(score))


def validity(model: Model | None, recourse: Floats) -> Floats:
    """Probability of approval by one model; NaN without a model or a recourse."""
    there = np.isfinite(recourse).all(axis=1)
    probability = np.full(len(recourse), np.nan)
    if model is not None and there.any():
        probability[there] = special.expit(model.score(recourse[there]))
    return probability
