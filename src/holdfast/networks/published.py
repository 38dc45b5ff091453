"""The paper's own ascent on a network, kept apart: it is for the reproduction of its tables."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from holdfast._numbers import refuse
from holdfast._threads import over_rows, thread_count
from holdfast.ball import NormBall
from holdfast.models.network import Network
from holdfast.networks.ascent import EACH, Room, WorstNetworks, in_pieces
from holdfast.networks.layers import LEAST_ROWS, Layers, layers_of, points_for, turn_back
from holdfast.networks.projections import project_l1, project_linf
from holdfast.networks.published_steps import LEAST_VARIANCE, climb_rows, new_climber

# torch's BCELoss, in which the authors ascend, cuts the loss here
LOSS_CAP = 100.0


def published_worst_network(
    network: Network,
    points: ArrayLike,
    ball: NormBall,
    *,
    steps: int = 100,
    learning_rate: float = 0.1,
    keep_change: bool = False,
    memory: float = 256.0,
    threads: int | None = None,
) -> WorstNetworks:
    """Ascend as the paper's authors do: plain gradient steps, from which the last one counts.

    Each tensor of parameters is projected by itself, for p = 1 onto an L1 ball of the radius; for
    p = inf every parameter is clamped. The loss is capped at 100. The loss so found may be
    far from the largest: use `worst_network` for anything but the paper's tables. The other
    arguments are those of `worst_network`.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> published_worst_network(Network(layer), [[2.0, -3.0]], ball).score  # the bias moves too
    array([-3.])
    """
    if ball.p not in (1.0, math.inf):
        refuse("p", ball.p, "1 or inf, as in the paper")
    room = Room.of(network, ball, EACH)
    layers = layers_of(network)

    def search(x: Tensor) -> tuple[Tensor, Tensor]:
        if layers is not None:
            settings = (steps, learning_rate, keep_change, thread_count(threads))
            return _climb(room, layers, x, *settings)
        return _climb_any(room, x, steps, learning_rate)

    return in_pieces(room.parameters, network, points, search, LOSS_CAP, keep_change, memory)


def _climb(
    room: Room,
    layers: Layers,
    x: Tensor,
    steps: int,
    learning_rate: float,
    keep_change: bool,
    threads: int,
) -> tuple[Tensor, Tensor]:
    """Ascend by compiled passes through a plain feed-forward network."""
    points, score = points_for(layers, x), np.empty(len(x))
    change = np.empty((len(x), room.parameters.size if keep_change else 0), points.dtype)
    settings = (room.p, room.radius, steps, learning_rate)
    over_rows(
        climb_rows,
        len(x),
        threads,
        layers,
        points,
        *settings,
        score,
        change,
        private=lambda: new_climber(layers),
        least_rows=LEAST_ROWS,
    )
    if keep_change:
        for row in change:
            row[:] = turn_back(layers, row)
    return torch.from_numpy(score), torch.from_numpy(change).to(x)


def _climb_any(room: Room, x: Tensor, steps: int, learning_rate: float) -> tuple[Tensor, Tensor]:
    """Ascend with every change written out: any module, any device."""
    project = project_l1 if room.p == 1.0 else project_linf
    change = room.parameters.zeros(len(x))
    for _ in range(steps):
        slope, score = room.parameters.slope(change, x)
        moved = change - learning_rate * _steepness(score)[:, None] * slope
        pieces = torch.split(moved, room.sizes, 1)
        change = torch.cat([project(piece, room.radius) for piece in pieces], 1)
    return room.parameters.score(change, x), change


def _steepness(score: Tensor) -> Tensor:
    """Minus the derivative of BCELoss(sigmoid(score), 1), as torch computes it."""
    p, miss = torch.sigmoid(score), torch.sigmoid(-score)
    variance = p * miss
    return miss * variance / variance.clamp_min(LEAST_VARIANCE)
