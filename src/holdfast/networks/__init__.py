"""The worst network around a trained one: every parameter may change, within an L^p ball."""

from holdfast.networks.ascent import WorstNetworks, worst_network
from holdfast.networks.population import PopulationNetwork, population_worst_network
from holdfast.networks.price import NetworkJudgement, judge_network, network_price
from holdfast.networks.projections import project_l1, project_l2, project_linf
from holdfast.networks.published import published_worst_network

__all__ = [
    "NetworkJudgement",
    "PopulationNetwork",
    "WorstNetworks",
    "judge_network",
    "network_price",
    "population_worst_network",
    "project_l1",
    "project_l2",
    "project_linf",
    "published_worst_network",
    "worst_network",
]
