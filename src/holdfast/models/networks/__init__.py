"""The worst network around a trained one: all parameters change, or the last layer alone."""

from holdfast.models.networks.ascent import WorstNetworks, worst_network
from holdfast.models.networks.ball_scales import tensor_scales
from holdfast.models.networks.last_layer import (
    WorstLastLayers,
    embed,
    last_layer_of,
    worst_last_layer,
)
from holdfast.models.networks.population import population_worst_network
from holdfast.models.networks.price import NetworkJudgement, judge_network, network_price
from holdfast.models.networks.projections import project_l1, project_l2, project_linf

__all__ = [
    "NetworkJudgement",
    "WorstLastLayers",
    "WorstNetworks",
    "embed",
    "judge_network",
    "last_layer_of",
    "network_price",
    "population_worst_network",
    "project_l1",
    "project_l2",
    "project_linf",
    "tensor_scales",
    "worst_last_layer",
    "worst_network",
]
