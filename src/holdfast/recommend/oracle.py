"""What the search for advice asks about points: a network, and a prover of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.numbers import Floats, shown
from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet, check_models
from holdfast.recommend.seeker import ScoreProver

if TYPE_CHECKING:
    from holdfast.models.network import Network


@dataclass(frozen=True, eq=False)
class NetworkOracle:
    """A network, and a prover of its scores, as the search asks them."""

    network: Network
    prover: ScoreProver

    @classmethod
    def of(cls, network: Network, robust_to: ModelSet) -> NetworkOracle:
        """Read a network and a set around it, or refuse them by name."""
        return cls(network, _prover_of(network, robust_to))

    def score(self, points: Floats) -> Floats:
        """Return what the network gives points."""
        return self.network.score(points)

    def score_alone(self, points: Floats) -> Floats:
        """Return the same, one point at a time: many at once are rounded otherwise."""
        return np.array([float(self.score(point[None])[0]) for point in points], dtype=np.float64)

    def prove_alone(self, point: Floats) -> float:
        """Return the proven score of a point, asked about alone."""
        return float(self.prover.lower(point[None])[0])

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how that changes with the points, and the scores."""
        return self.network.slope(points)


def _prover_of(network: Network, robust_to: ModelSet) -> ScoreProver:
    """Return what proves scores of a network under every network of a set, or refuse the set."""
    check_models(robust_to)
    if isinstance(robust_to, NormBall):
        from holdfast.models.networks.prover import Prover

        return Prover.of(network, robust_to)
    if isinstance(robust_to, LastLayer):
        from holdfast.models.networks.last_layer import LastLayerBound

        return LastLayerBound.of(network, robust_to)
    raise ValueError(
        f"robust_to = {shown(robust_to)} is a set of linear models, but the classifier is a "
        "network: pass a NormBall, around all of its parameters, or "
        f"LastLayer({shown(robust_to)}), around those of its last layer"
    )
