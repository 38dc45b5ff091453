"""What models make of recourses: one model, the worst of a set for each, one worst for all.

A recourse that is missing (a row with NaN) has no score, and does not touch the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.evaluate.population import population_worst_model
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.models import LinearModel, Model
from holdfast.problem.ball import require_ball
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet

if TYPE_CHECKING:
    from holdfast.models.network import Network

# How the worst model is found: a closed form, all candidates tried; or the worst that a search
# comes upon, so that the true one may be worse; or not at all.
EXACT, SEARCH, NOT_JUDGED = "exact", "search", "not judged"


class PopulationScore(NamedTuple):
    """Scores by one worst model for all, and how that model was found."""

    score: Floats
    judging: str


def judging_of(model: Model, robust_to: ModelSet) -> str:
    """Say how the worst model of a set around this one is found."""
    if isinstance(robust_to, LastLayer):
        robust_to.require_network(model.kind)
        return EXACT
    return {"linear": EXACT, "network": SEARCH}.get(model.kind, NOT_JUDGED)


def model_score(model: Model, recourse: Floats) -> Floats:
    """Score of each recourse by the model itself."""
    there, score = _there(recourse)
    if there.any():
        score[there] = model.score(recourse[there])
    return score


def worst_case_score(
    model: Model, recourse: Floats, robust_to: ModelSet, *, n_jobs: int | None = -1
) -> Floats:
    """Score of each recourse by its own worst model of the set; NaN for a black box.

    Linear models are judged exactly, and so are networks whose last layer alone changes; others by
    `holdfast.models.networks.worst_network`.
    """
    there, score = _there(recourse)
    judging = judging_of(model, robust_to)
    if isinstance(robust_to, LastLayer):
        from holdfast.models.networks import worst_last_layer

        score[there] = worst_last_layer(cast("Network", model), recourse[there], robust_to).score
    elif isinstance(model, LinearModel):
        score[there] = robust_to.worst_score(recourse[there], model.coef, model.intercept)
    elif judging == SEARCH:
        from holdfast.models.networks import worst_network

        network, ball = cast("Network", model), require_ball(robust_to, "a network")
        score[there] = worst_network(network, recourse[there], ball, n_jobs=n_jobs).score
    return score


def population_score(
    model: Model, recourse: Floats, robust_to: ModelSet, *, n_jobs: int | None = -1
) -> PopulationScore:
    """Score of all recourses by the one model of the set that is worst for them together.

    It is the one with the largest sum of ``log(1 + exp(-score))``; see `population_worst_model`
    and `holdfast.models.networks.population_worst_network`.
    """
    there, score = _there(recourse)
    judging = judging_of(model, robust_to)
    if not there.any() or judging == NOT_JUDGED:
        return PopulationScore(score, NOT_JUDGED)
    if judging == EXACT:
        points, (coef, intercept), models = _as_linear(model, recourse[there], robust_to)
        worst = population_worst_model(points, coef, intercept, models)
        score[there] = worst.score(points)
        return PopulationScore(score, EXACT if worst.exact else SEARCH)
    from holdfast.models.networks import population_worst_network

    network = cast("Network", model)
    score[there] = population_worst_network(
        network, recourse[there], require_ball(robust_to, "a network"), n_jobs=n_jobs
    ).score
    return PopulationScore(score, SEARCH)


def _as_linear(
    model: Model, points: Floats, robust_to: ModelSet
) -> tuple[Floats, tuple[Floats, float], ModelSet]:
    """Return points, model and set of a linear score: of a network, those of its last layer."""
    if isinstance(model, LinearModel):
        return points, (model.coef, model.intercept), robust_to
    from holdfast.models.networks.last_layer import Head

    head = Head.of(cast("Network", model))
    models = head.last_layers(cast(LastLayer, robust_to))
    return head.embed(points), (head.coef, head.intercept), models


def _there(recourse: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Say which recourses there are, and make room for a score of each."""
    return whole_rows(recourse), np.full(len(recourse), np.nan)
