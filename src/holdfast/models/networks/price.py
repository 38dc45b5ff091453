"""What recourses are worth when the network itself may change, not its surrogate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from holdfast.machinery.numbers import Floats, check_kind, read_floats, read_matrix, refuse
from holdfast.models.network import Network
from holdfast.models.networks.ascent import WorstNetworks, read_points, worst_network
from holdfast.models.networks.ball_scales import refuse_feature_scale
from holdfast.models.networks.last_layer import WorstLastLayers, worst_last_layer
from holdfast.problem.ball import NormBall, require_ball
from holdfast.problem.costs import costs_of_moves
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.losses import get_loss
from holdfast.result.result import RecourseResult

Ascent = Callable[[Network, Any, NormBall], WorstNetworks]


def network_price(
    network: Network,
    recourse: ArrayLike,
    X: ArrayLike,
    robust_to: NormBall | LastLayer,
    cost_weight: float,
    *,
    feature_costs: ArrayLike = 1.0,
    ascent: Ascent = worst_network,
) -> Floats:
    """Price of each recourse: loss under the worst network + cost_weight * cost.

    With a ball the worst network is searched for; with a `LastLayer` it is exact.

    Parameters
    ----------
    network, robust_to
        A ball is one around all parameters of the network, of any p; its `scale` has one number
        for each tensor of parameters, as in `worst_network`.
    recourse, X : (n, d) arrays
        Where people go, and where they started.
    cost_weight : float
    feature_costs : (d,) or (n, d), optional
    ascent : function
        How the worst network is searched for: `worst_network`, also with other settings
        (`functools.partial`), or a search of your own. For a `LastLayer` leave it out.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> network_price(Network(layer), [[2.0, 3.0]], [[2.0, 0.0]], ball, 0.1).round(3)
    array([0.33])
    """
    check_kind("network", network, Network, "make it with holdfast.models.network.Network")
    _check_ascent(ascent)
    goal = Goal.of(get_loss("logistic"), cost_weight=cost_weight)
    x = read_matrix("recourse", recourse)
    start, costs = read_matrix("X", X), read_floats("feature_costs", feature_costs)
    if start.shape != x.shape:
        raise ValueError(f"X has shape {start.shape}, but recourse has {x.shape}")
    if costs.shape not in ((), x.shape[1:], x.shape) or not (costs > 0.0).all():
        raise ValueError(
            f"feature_costs has shape {costs.shape}, expected ({x.shape[1]},) or {x.shape}; all of "
            "them must be positive"
        )
    try:
        read_points(network, x)
    except ValueError as error:
        raise ValueError(f"recourse does not fit the network: {error}") from None
    found = _worst(network, x, robust_to, ascent)
    return goal.price(costs_of_moves(start, x, costs), found.loss)


@dataclass(frozen=True, eq=False)
class NetworkJudgement:
    """What a result is worth under the worst networks; NaN in rows without a recourse.

    Attributes
    ----------
    price : (n,) array
        ``worst_case_loss + cost_weight * cost``; the cost where a guarantee was asked for.
    worst_case_loss, worst_case_score, worst_case_validity : (n,) arrays
        Loss, score and probability of approval under the worst network for that row.
    exact : bool
        Whether no network of the set is worse (the last layer alone changes); otherwise they are
        the worst ones found.
    """

    price: Floats
    worst_case_loss: Floats
    worst_case_score: Floats
    worst_case_validity: Floats
    exact: bool = False


def judge_network(
    result: RecourseResult,
    network: Network,
    robust_to: NormBall | LastLayer | None = None,
    *,
    ascent: Ascent = worst_network,
) -> NetworkJudgement:
    """Judge the recourses of a result by the network itself, when its parameters may change.

    What the result says of price and worst case is said of its linear surrogate; this is what
    the network says. With a ball around all parameters the worst network is searched for, not
    proven: the true price may be higher. With a `LastLayer` it is exact, and proven.

    Parameters
    ----------
    result : RecourseResult
    network : Network
        The one that the recourses were found for.
    robust_to : NormBall or LastLayer, optional
        Around the parameters of the network, or its last layer; the result's own by default. The
        `scale` of a ball has one number for each tensor of parameters, as in `worst_network`.
    ascent : function
        As in `network_price`.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, -0.5]])), layer.bias.fill_(-1.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> result = holdfast.solve([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball, cost_weight=0.1)
    >>> judged = judge_network(result, Network(layer))
    >>> bool(abs(judged.price[0] - result.price[0]) < 1e-12)  # one layer: nothing is lost
    True
    """
    check_kind("result", result, RecourseResult, "pass what holdfast.find_recourse returned")
    check_kind("network", network, Network, "make it with holdfast.models.network.Network")
    asked = result.problem.robust_to if robust_to is None else robust_to
    if robust_to is not None and not isinstance(robust_to, LastLayer):
        check_kind("robust_to", robust_to, NormBall, "write NormBall(p=..., radius=...)")
    if not isinstance(asked, LastLayer):
        asked = require_ball(asked, "a network")
    if robust_to is None and result.bracket is None:
        refuse_feature_scale(asked)
    _check_ascent(ascent)
    if result.problem.loss.name != "logistic":
        raise ValueError(f"a network is judged by cross-entropy, not by {result.problem.loss.name}")
    there = result.has_recourse
    score, loss = (np.full(len(result), np.nan) for _ in range(2))
    found = _worst(network, result.recourse_array[there], asked, ascent)
    score[there], loss[there] = found.score, found.loss
    price = np.where(np.isnan(loss), np.nan, result.goal.price(result.cost, loss))
    exact = isinstance(found, WorstLastLayers)
    return NetworkJudgement(price, loss, score, np.asarray(special.expit(score)), exact)


def _worst(
    network: Network, points: Floats, robust_to: NormBall | LastLayer, ascent: Ascent
) -> WorstNetworks | WorstLastLayers:
    """Return the worst networks: exact ones, or the worst that an ascent finds."""
    if not isinstance(robust_to, LastLayer):
        return ascent(network, points, robust_to)
    if ascent is not worst_network:
        raise ValueError("the worst last layer is exact, so nothing is searched: leave out ascent")
    return worst_last_layer(network, points, robust_to)


def _check_ascent(ascent: Any) -> None:
    if not callable(ascent):
        refuse("ascent", ascent, "a function such as worst_network")
