"""What the search for advice asks about points: a network, and a prover of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.numbers import Floats, shown
from holdfast.problem.ball import NormBall
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.sets import ModelSet, check_models
from holdfast.recommend.search import Bound

if TYPE_CHECKING:
    from holdfast.models.network import Network
    from holdfast.models.networks.last_layer import Head

# What rounding may take off the worst score of a last layer, relative to the terms of it.
_HAIR = 1e-9


@dataclass(frozen=True, eq=False)
class NetworkOracle:
    """A network, and a prover of its scores, as the search asks them."""

    network: Network
    prover: Bound

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
        import torch

        with torch.enable_grad():
            x = self.network.tensor(points).requires_grad_()
            score = self.network.logits(x)
            (slope,) = torch.autograd.grad(score.sum(), x)
        return slope.double().cpu().numpy(), score.detach().double().cpu().numpy()


def _prover_of(network: Network, robust_to: ModelSet) -> Bound:
    """Return what proves scores of a network under every network of a set, or refuse the set."""
    check_models(robust_to)
    if isinstance(robust_to, NormBall):
        from holdfast.models.networks.proof import Prover

        return Prover.of(network, robust_to)
    if isinstance(robust_to, LastLayer):
        return LastLayerBound.of(network, robust_to)
    raise ValueError(
        f"robust_to = {shown(robust_to)} is a set of linear models, but the classifier is a "
        "network: give a NormBall, around all of its parameters, or "
        f"LastLayer({shown(robust_to)}), around those of its last layer"
    )


@dataclass(frozen=True, eq=False)
class LastLayerBound:
    """Scores that no network goes below in which the last layer alone changes."""

    head: Head
    robust_to: LastLayer

    @classmethod
    def of(cls, network: Network, robust_to: LastLayer) -> LastLayerBound:
        """Read a network, or refuse it by name."""
        from holdfast.models.networks.last_layer import Head
        from holdfast.models.networks.prove import in_double

        head = Head.of(in_double(network))
        head.last_layers(robust_to)  # refuses a set that does not fit
        return cls(head, robust_to)

    def lower(self, points: Floats) -> Floats:
        """Return the worst score of each point, less what rounding can do."""
        return self._worst(points)[1]

    def slope(self, points: Floats) -> tuple[Floats, Floats]:
        """Return how the worst scores change with the points, and the scores."""
        coef, proven = self._worst(points)
        return self.head.point_slope(points, coef), proven

    def _worst(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the weights of the worst last layers of points, and the scores."""
        head, embedded = self.head, self.head.embed(points)
        worst = head.worst(embedded, self.robust_to)
        size = 1.0 + np.abs(worst.intercept) + abs(head.intercept)
        size = size + ((np.abs(worst.coef) + np.abs(head.coef)) * np.abs(embedded)).sum(axis=1)
        return worst.coef, worst.score - _HAIR * size
