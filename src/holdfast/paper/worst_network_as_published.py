"""The paper's own ascent on a network, kept apart: it is for the reproduction of its tables."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from holdfast.machinery.numbers import Floats, check_choice, check_count, check_positive, refuse
from holdfast.machinery.threads import over_rows, thread_count
from holdfast.models.network import Network, as_logits
from holdfast.models.networks.ascent import WorstNetworks, in_pieces
from holdfast.models.networks.ball_scales import tensor_scales
from holdfast.models.networks.layers import (
    LEAST_ROWS,
    Layers,
    Reals,
    layers_of,
    points_for,
    turn_layers,
)
from holdfast.models.networks.parameters import Parameters
from holdfast.models.networks.projections import project_l1
from holdfast.paper.worst_network_steps import climb_rows, new_climber
from holdfast.problem.ball import NormBall

_RATES = {1.0: 0.1, math.inf: 1.0}
_FIRST_BIAS = 0.01


def published_worst_network(
    network: Network,
    X: ArrayLike,
    robust_to: NormBall,
    *,
    start: str = "drawn",
    steps: int = 99,
    learning_rate: float | None = None,
    tolerance: float = 1e-4,
    keep_change: bool = False,
    memory: float = 256.0,
    n_jobs: int | None = -1,
) -> WorstNetworks:
    """Ascend as the paper's authors do: plain gradient steps, from which the last one counts.

    Each tensor of parameters is projected by itself, for p = 1 onto an L1 ball of the radius; for
    p = inf every parameter is clamped. The loss is capped at 100. The loss so found may be
    far from the largest, and depends on where in `X` a row stands: use `worst_network` for
    anything but the paper's tables.

    Parameters
    ----------
    network : Network
    X : (n, d) array
    robust_to : NormBall
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
    keep_change, memory, n_jobs
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
    tensor_scales(network, robust_to)  # refuses what is not a ball around a network
    if robust_to.p not in (1.0, math.inf):
        refuse("p", robust_to.p, "1 or inf, as in the paper")
    if robust_to.scale is not None:
        raise ValueError("scale: the paper's ascent treats all parameters alike; leave it out")
    check_choice("start", start, ("drawn", "trained"))
    check_count("steps", steps, least=0)
    check_positive("tolerance", tolerance, or_zero=True)
    rate = _RATES[robust_to.p] if learning_rate is None else learning_rate
    check_positive("learning_rate", rate)
    layers, draws, workers = layers_of(network), _Draws(network), thread_count(n_jobs)
    parameters = Parameters(network)
    ascent = _FixedSteps(robust_to, steps, float(rate), float(tolerance))

    def search(x: Tensor) -> tuple[Tensor, Tensor]:
        trained = parameters.trained
        begin = trained.expand(len(x), -1)
        if start == "drawn":
            begin = draws.next(len(x)).to(trained)
        # for p = inf steps are so long that rounding decides where they end: there, as the authors
        if layers is not None and robust_to.p == 1.0:
            return ascent.compiled(layers, x, begin - trained, keep_change, workers)
        return ascent.by_torch(network, x, begin, trained)

    found = in_pieces(parameters, network, X, search, keep_change, memory)
    return replace(found, loss=_loss(network, found.score))


def _loss(network: Network, score: Floats) -> Floats:
    """Cross-entropy as BCELoss has it, in the network's own precision.

    In single precision a probability is 0 below a score of -88.7, and the loss then 100 at once.
    """
    there = np.isfinite(score)
    likely = torch.sigmoid(torch.as_tensor(score[there]).to(network.dtype))
    wanted = torch.ones_like(likely)
    loss = np.full(len(score), np.nan)
    loss[there] = nn.functional.binary_cross_entropy(likely, wanted, reduction="none").numpy()
    return loss


def turn_layers_back(layers: Layers, turned: Reals) -> Reals:
    """Undo `turn_layers`."""
    parameters = turned.copy()
    for layer, begin in enumerate(layers.weight_at):
        into, out = layers.sizes[layer], layers.sizes[layer + 1]
        matrix = turned[begin : begin + into * out].reshape(into, out)
        parameters[begin : begin + into * out] = matrix.T.ravel()
    return parameters


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
class _FixedSteps:
    """Gradient steps of one length, each followed by the projection of every tensor."""

    ball: NormBall
    steps: int
    learning_rate: float
    tolerance: float

    def compiled(
        self, layers: Layers, x: Tensor, begin: Tensor, keep_change: bool, threads: int
    ) -> tuple[Tensor, Tensor]:
        """Ascend by compiled passes through a plain feed-forward network, for p = 1."""
        points, score = points_for(layers, x), np.empty(len(x))
        change = begin.cpu().numpy().copy()
        for row in change:
            row[:] = turn_layers(layers, row)
        over_rows(
            climb_rows,
            len(x),
            threads,
            layers,
            points,
            (self.ball.radius, self.steps, self.learning_rate, self.tolerance),
            score,
            change,
            private=lambda: new_climber(layers),
            least_rows=LEAST_ROWS,
        )
        if keep_change:
            for row in change:
                row[:] = turn_layers_back(layers, row)
        return torch.from_numpy(score), torch.from_numpy(change).to(x)

    def by_torch(
        self, network: Network, x: Tensor, begin: Tensor, trained: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Ascend row by row, in the very operations of the authors: any module, either p."""
        module = copy.deepcopy(network.module).requires_grad_(True)  # theirs changes all of it
        score, change = torch.empty_like(x[:, 0]), torch.empty_like(begin)
        for k, row in enumerate(x):
            if not bool(torch.isfinite(row).all()):
                score[k], change[k] = torch.nan, torch.nan
                continue
            # a copy: the module's parameters become views of it, and the steps write into them
            nn.utils.vector_to_parameters(begin[k].clone(), module.parameters())
            self._climb(module, network, row)  # a vector, as theirs: a matrix rounds otherwise
            with torch.no_grad():
                score[k] = as_logits(module(row[None]), network.output, 1)[0]
                change[k] = nn.utils.parameters_to_vector(module.parameters()) - trained
        return score, change

    def _climb(self, module: nn.Module, network: Network, row: Tensor) -> None:
        parameters, middle = list(module.parameters()), list(network.module.parameters())
        before, wanted = 1.0, torch.ones(1, dtype=row.dtype, device=row.device)
        for _ in range(self.steps):
            likely = torch.sigmoid(as_logits(module(row), network.output, 1))
            loss = nn.functional.binary_cross_entropy(likely, wanted)
            slopes = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for tensor, slope, centre in zip(parameters, slopes, middle, strict=True):
                    tensor.add_(self.learning_rate * slope)
                    tensor.copy_(self._project(tensor, centre))
            if abs(loss.item() - before) <= self.tolerance:
                break
            before = loss.item()

    def _project(self, tensor: Tensor, centre: Tensor) -> Tensor:
        radius = self.ball.radius
        if self.ball.p == math.inf:
            return torch.clamp(tensor, centre - radius, centre + radius)
        change = (tensor - centre).reshape(1, -1)
        return centre + project_l1(change, radius).view_as(centre)
