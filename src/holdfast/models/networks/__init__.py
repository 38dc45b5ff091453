"""The worst network around a trained one: every parameter may change, within an L^p ball."""

from holdfast.models.networks.ascent import WorstNetworks, worst_network
from holdfast.models.networks.population import PopulationNetwork, population_worst_network
from holdfast.models.networks.price import NetworkJudgement, judge_network, network_price
from holdfast.models.networks.projections import project_l1, project_l2, project_linf

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
    "worst_network",
]
