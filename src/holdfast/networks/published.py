"""The paper's own ascent on a network, kept apart: it is for the reproduction of its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from holdfast._numbers import check_count, check_positive, refuse
from holdfast._threads import over_rows, thread_count
from holdfast.ball import NormBall
from holdfast.models.network import Network
from holdfast.networks.ascent import EACH, Room, WorstNetworks, in_pieces
from holdfast.networks.layers import LEAST_ROWS, Layers, layers_of, points_for, turn, turn_back
from holdfast.networks.projections import project_l1, project_linf
from holdfast.networks.published_steps import LEAST_VARIANCE, LOSS_CAP, climb_rows, new_climber

_RATES = {1.0: 0.1, math.inf: 1.0}
_FIRST_BIAS = 0.01


def published_worst_network(
    network: Network,
    points: ArrayLike,
    ball: NormBall,
    *,
    start: str = "drawn",
    steps: int = 99,
    learning_rate: float | None = None,
    tolerance: float = 1e-4,
    keep_change: bool = False,
    memory: float = 256.0,
    threads: int | None = None,
) -> WorstNetworks:
    """Ascend as the paper's authors do: plain gradient steps, from which the last one counts.

    Each tensor of parameters is projected by itself, for p = 1 onto an L1 ball of the radius; for
    p = inf every parameter is clamped. The loss is capped at 100. The loss so found may be
    far from the largest, and depends on where in `points` a row stands: use `worst_network` for
    anything but the paper's tables.

    Parameters
    ----------
    network : Network
    points : (n, d) array
    ball : NormBall
        For p = 1 or inf; around each tensor by itself.
    start : {"drawn", "trained"}
        The authors do not start at the trained network, but throw its parameters away: weights
        are drawn anew (Xavier), biases are 0.01, and the first projection brings what is far
        outside back into the ball. Row after row is drawn from torch's seed 0, after as many
        numbers as a fresh network of that shape takes.
    steps : int
        At most so many steps.
    learning_rate : float, optional
        By default the authors': 0.1 for p = 1 and 1 for p = inf.
    tolerance : float
        A row stops when its loss has changed by no more than this.
    keep_change, memory, threads
        As in `worst_network`.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> found = published_worst_network(Network(layer), [[2.0, -3.0]], ball)
    >>> found.score.round(4)  # the bias moves too
    array([-3.])
    """
    if ball.p not in (1.0, math.inf):
        refuse("p", ball.p, "1 or inf, as in the paper")
    if start not in ("drawn", "trained"):
        refuse("start", start, "'drawn' or 'trained'")
    check_count("steps", steps, least=0)
    check_positive("tolerance", tolerance, or_zero=True)
    rate = _RATES[ball.p] if learning_rate is None else learning_rate
    room, layers, draws = Room.of(network, ball, EACH), layers_of(network), _Draws(network)
    ascent = _Ascent(room, steps, float(rate), float(tolerance))

    def search(x: Tensor) -> tuple[Tensor, Tensor]:
        begin = room.parameters.zeros(len(x))
        if start == "drawn":
            begin = draws.next(len(x)).to(begin) - room.parameters.trained
        if layers is not None:
            return ascent.compiled(layers, x, begin, keep_change, thread_count(threads))
        return ascent.any_module(x, begin)

    return in_pieces(room.parameters, network, points, search, LOSS_CAP, keep_change, memory)


class _Draws:
    """The authors' starts, one network after the other from one stream of random numbers."""

    def __init__(self, network: Network) -> None:
        self.shapes = [tensor.shape for tensor in network.module.parameters()]
        self.stream = torch.Generator().manual_seed(0)
        for shape in self.shapes:  # theirs builds the network anew after seeding
            torch.empty(shape).uniform_(generator=self.stream)

    def next(self, count: int) -> Tensor:
        """Draw the parameters of so many networks."""
        return torch.stack([torch.cat(self._one()) for _ in range(count)])

    def _one(self) -> list[Tensor]:
        drawn = [torch.full(shape, _FIRST_BIAS) for shape in self.shapes]
        for tensor in drawn:
            if tensor.ndim > 1:
                nn.init.xavier_uniform_(tensor, generator=self.stream)
        return [tensor.reshape(-1) for tensor in drawn]


@dataclass(frozen=True, eq=False)
class _Ascent:
    """Gradient steps of one length, each followed by the projection of every tensor."""

    room: Room
    steps: int
    learning_rate: float
    tolerance: float

    def compiled(
        self, layers: Layers, x: Tensor, begin: Tensor, keep_change: bool, threads: int
    ) -> tuple[Tensor, Tensor]:
        """Ascend by compiled passes through a plain feed-forward network."""
        points, score = points_for(layers, x), np.empty(len(x))
        change = begin.cpu().numpy().copy()
        for row in change:
            row[:] = turn(layers, row)
        over_rows(
            climb_rows,
            len(x),
            threads,
            layers,
            points,
            (self.room.p, self.room.radius, self.steps, self.learning_rate, self.tolerance),
            score,
            change,
            private=lambda: new_climber(layers),
            least_rows=LEAST_ROWS,
        )
        if keep_change:
            for row in change:
                row[:] = turn_back(layers, row)
        return torch.from_numpy(score), torch.from_numpy(change).to(x)

    def any_module(self, x: Tensor, begin: Tensor) -> tuple[Tensor, Tensor]:
        """Ascend with every change written out: any module, any device."""
        room, project = self.room, project_l1 if self.room.p == 1.0 else project_linf
        found, change = begin.clone(), begin
        rows = torch.arange(len(x), device=x.device)
        before = torch.ones_like(x[:, 0])
        for _ in range(self.steps):
            slope, score = room.parameters.slope(change, x[rows])
            moved = change - self.learning_rate * _steepness(score)[:, None] * slope
            pieces = torch.split(moved, room.sizes, 1)
            change = torch.cat([project(piece, room.radius) for piece in pieces], 1)
            found[rows] = change
            loss = nn.functional.softplus(-score).clamp_max(LOSS_CAP)
            going = (loss - before).abs() > self.tolerance
            rows, change, before = rows[going], change[going], loss[going]
            if not len(rows):
                break
        return room.parameters.score(found, x), found


def _steepness(score: Tensor) -> Tensor:
    """Minus the derivative of BCELoss(sigmoid(score), 1), as torch computes it."""
    p, miss = torch.sigmoid(score), torch.sigmoid(-score)
    variance = p * miss
    return miss * variance / variance.clamp_min(LEAST_VARIANCE)
