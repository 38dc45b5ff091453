"""The network of the ball that likes a point least, found by ascent from several starts.

The loss decreases in the score, so its greatest value is where the score is least; the score is
the better conditioned of the two, and is what descends here. A network is not convex in its
parameters: what is found is a bad network, and the worst one only as far as the ascent can tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from holdfast.machinery.numbers import (
    Floats,
    check_count,
    check_flag,
    check_positive,
    check_random_state,
    read_matrix,
)
from holdfast.machinery.threads import over_rows, thread_count
from holdfast.models.network import Network
from holdfast.models.networks.ball_scales import tensor_scales
from holdfast.models.networks.descents import LEAST_SHARE, descend_rows, new_row
from holdfast.models.networks.layers import LEAST_ROWS, Layers, layers_of, points_for, turn_layers
from holdfast.models.networks.parameters import Parameters
from holdfast.models.networks.projections import project_l2
from holdfast.problem.ball import NormBall

# Single-parameter changes that are tried out for p = 1 where the layers cannot be taken apart
SINGLE_CHANGES = 8


@dataclass(frozen=True, eq=False)
class WorstNetworks:
    """The worst networks that were found: one for each point, or one for all of them.

    Attributes
    ----------
    score : (n,) array
        Score of each point under its network.
    loss : (n,) array
        ``log(1 + exp(-score))``.
    change : (n, k) or (1, k) tensor, or None
        The change of all parameters that gives that score, in the order of
        ``module.named_parameters()``, on the network's device: a row for each point, or the only
        one where all points have the same network. Only when it was asked for.
    """

    score: Floats
    loss: Floats
    change: Tensor | None = None


def worst_network(
    network: Network,
    X: ArrayLike,
    robust_to: NormBall,
    *,
    steps: int = 30,
    starts: int | None = None,
    random_state: int = 0,
    keep_change: bool = False,
    memory: float = 256.0,
    n_jobs: int | None = -1,
) -> WorstNetworks:
    """Find the network in the ball around the trained one that scores each point lowest.

    Every point has its own network. More steps or more starts never find a smaller loss, and the
    result for a point does not depend on the others.

    Parameters
    ----------
    network : Network
        Its parameters with ``requires_grad=False`` are taken to be fixed: they never change.
    X : (n, d) array
    robust_to : NormBall
        Around all other parameters of the network together, for any p. Its `scale` has one number
        for each tensor of parameters, in the order of ``module.named_parameters()`` (of an
        `MLPClassifier`: W1, b1, W2, b2, ...): how far that tensor may change relative to the
        others, 0 for one that never changes. So ``|| change / scale ||_p <= radius``. Its
        `intercept` must stay True.
    steps : int
        Steps of the ascent from each start. For p = 1 and p = inf they go toward the vertex of
        the ball that the gradient points at; in between, by a part of that vertex and back to the
        surface of the ball.
    starts : int, optional
        How many of these: the trained parameters; for p = 1 the best changes of one parameter;
        units loud and the last layer against them (in plain networks without a scale not for p =
        1, and for p = inf each unit where it hurts most); all parameters moved up, which wakes
        units that are silent; random signs. By default 2 for p = 1, 4 up to p = 2, and 8 beyond,
        where starts matter most.
    random_state : int
        Seed of the random signs, the same for all rows.
    keep_change : bool
        Whether to return the changes of the parameters.
    memory : float
        MiB to work in; more rows than fit are taken in pieces.
    n_jobs : int, optional
        How many threads to use for plain feed-forward networks; all processors by default.

    Notes
    -----
    Networks that are nothing but linear layers with ReLU between them, none of them fixed, are
    searched by compiled kernels, on the processor, for p = 1 and p = inf, where all tensors have
    the same scale: many times faster than others. They also start better. For p = 1: from the best
    of both ends of what one parameter can do to each unit, where for other modules the eight
    largest slopes must do. For p = inf: from all units as loud as the ball allows, which is the
    worst network itself where the radius exceeds the absolute values of all weights after the first
    layer; and, where it does not, also from each unit as loud or as silent as its slope wants it.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> found = worst_network(Network(layer), [[2.0, -3.0]], ball, keep_change=True)
    >>> found.score, found.change
    (array([-2.5]), tensor([[0.0000, 0.5000, 0.0000]], dtype=torch.float64))

    Only the bias changes, and by twice as much:

    >>> ball = holdfast.NormBall(p=1, radius=0.5, scale=[0.0, 2.0])
    >>> worst_network(Network(layer), [[2.0, -3.0]], ball).score
    array([-2.])
    """
    ball = ParameterBall.of(network, robust_to).with_something_free()
    if starts is None:
        starts = _default_starts(ball.p)
    check_count("steps", steps, least=0)
    check_count("starts", starts)
    check_random_state(random_state)
    workers = thread_count(n_jobs)

    layers = ball.mixed_layers(network)

    def search(x: Tensor) -> tuple[Tensor, Tensor]:
        if layers is not None:
            settings = (starts, steps, random_state, keep_change, workers)
            return _search_mixtures(ball, layers, x, *settings)
        return _search_changes(ball, x, starts, steps, random_state)

    return in_pieces(ball.parameters, network, X, search, keep_change, memory)


@dataclass(frozen=True, eq=False)
class ParameterBall:
    """The changes of the parameters that are allowed, in units of the parameters' scales.

    All that moves here is ``change / scale``: in these units the ball is the plain one of the
    radius, and slopes are ``slope * scale``. The largest scale is 1, the radius holds its size; 0
    says that a parameter never changes.
    """

    parameters: Parameters
    p: float
    radius: float
    scale: Tensor

    @classmethod
    def of(cls, network: Network, robust_to: NormBall) -> ParameterBall:
        """Read a ball as one around all parameters of a network."""
        scales = tensor_scales(network, robust_to)
        parameters = Parameters(network)
        largest = max(scales) or 1.0
        trained = torch.split(parameters.trained, parameters.sizes)
        scale = torch.cat(
            [torch.full_like(t, s / largest) for t, s in zip(trained, scales, strict=True)]
        )
        return cls(parameters, robust_to.p, robust_to.radius * largest, scale)

    def with_something_free(self) -> ParameterBall:
        """Refuse a network that is fixed as a whole: nothing could be said of how it changes."""
        if not bool(self.scale.any()):
            raise ValueError(
                "the network has no parameter that may change: each of its tensors has "
                "requires_grad=False, or 0 in the ball's scale; call requires_grad_(True) on the "
                "module, or on the layers that are retrained, and give these a scale above 0"
            )
        return self

    def mixed_layers(self, network: Network) -> Layers | None:
        """Return the layers of a network whose vertices are outer products (see `mixtures`)."""
        all_alike = bool((self.scale == 1.0).all())
        return layers_of(network) if all_alike and self.p in (1.0, math.inf) else None

    def changes(self, scaled: Tensor) -> Tensor:
        """Return changes of the parameters themselves."""
        return scaled * self.scale

    def in_scale(self, changes: Tensor) -> Tensor:
        """Return changes of the parameters in units of their scales."""
        return torch.where(self.scale > 0.0, changes / self.scale, 0.0)

    def score(self, scaled: Tensor, x: Tensor) -> Tensor:
        """Score of each row under its own change."""
        return self.parameters.score(self.changes(scaled), x)

    def slope(self, scaled: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient of each row's score in its scaled change, and the score."""
        slope, score = self.parameters.slope(self.changes(scaled), x)
        return slope * self.scale, score

    def vertex(self, slope: Tensor, rank: int = 0) -> Tensor:
        """Return the change in the ball that lowers a linear score with this slope most.

        For p = 1 that is one parameter: the one with the largest slope, or of that `rank`.
        """
        if math.isinf(self.p):
            # 0 where the slope is 0: parameters of silent units go back to what they were, which
            # often wakes them (leaving them where they are finds far less)
            return -self.radius * slope.sign()
        if self.p == 2.0:
            norm = slope.norm(dim=1, keepdim=True)
            return -self.radius * torch.where(norm > 0.0, slope / norm, 0.0)
        if self.p > 1.0:
            return -self.radius * slope.sign() * shares(slope.abs(), self.p)
        rank = min(rank, slope.shape[1] - 1)
        which = slope.abs().topk(rank + 1, dim=1).indices[:, rank:]
        moved = -self.radius * slope.gather(1, which).sign()
        return torch.zeros_like(slope).scatter_(1, which, moved)

    def step(self, change: Tensor, slope: Tensor, share: Tensor) -> Tensor:
        """Move part of the way; share = 1 goes as far as the ball allows, share = 0 nowhere."""
        if self.p == 1.0 or math.isinf(self.p):
            return torch.lerp(change, self.vertex(slope), share)
        # a round ball is followed better along its surface than by chords
        return self._back(change + share * self.vertex(slope))

    def _back(self, moved: Tensor) -> Tensor:
        """Scale what has left the ball back to its surface."""
        if self.p == 2.0:
            return project_l2(moved, self.radius)
        norm = p_norms(moved.abs(), self.p)
        return torch.where(norm <= self.radius, moved, moved * (self.radius / norm))

    def corner(self, signs: Tensor) -> Tensor:
        """Return the change of all free parameters, alike in size, as large as the ball allows.

        The signs are 1 or -1, for all rows alike (k,) or for each (n, k).
        """
        free = self.scale.sign()
        size: float = self.radius / int(free.count_nonzero()) ** (1.0 / self.p)
        return size * (signs * free)


def shares(size: Tensor, p: float) -> Tensor:
    """Return the s >= 0 with ||s||_p = 1 and the largest s . size, row by row, for 1 < p < inf.

    It is size^(q - 1) over its own norm, where q - 1 = 1 / (p - 1); 0 where all of a row is 0.
    """
    largest = size.amax(dim=1, keepdim=True)
    powers = torch.where(largest > 0.0, size / largest, 0.0) ** (1.0 / (p - 1.0))
    return torch.where(largest > 0.0, powers / p_norms(powers, p), 0.0)


def p_norms(size: Tensor, p: float) -> Tensor:
    """Return the norm ||size||_p of each row, as a column, without overflow, for 1 < p < inf."""
    largest = size.amax(dim=1, keepdim=True)
    powers = torch.where(largest > 0.0, size / largest, 0.0) ** p
    return largest * powers.sum(dim=1, keepdim=True) ** (1.0 / p)


def _default_starts(p: float) -> int:
    """More where the ball has more corners, and the search more places to stop at."""
    if p == 1.0:
        return 2
    return 4 if p <= 2.0 else 8


def _search_changes(
    ball: ParameterBall, x: Tensor, starts: int, steps: int, random_state: int
) -> tuple[Tensor, Tensor]:
    """Search with every change written out: any module, any device, any ball."""
    best, change = None, ball.parameters.zeros(len(x))
    for start in _starts(ball, x, starts, random_state):
        score, found = _descend(ball, x, start, steps)
        if best is None:
            best, change = score, found
            continue
        lower = score < best
        best = torch.where(lower, score, best)
        change = torch.where(lower[:, None], found, change)
    assert best is not None
    return best, ball.changes(change)


def _search_mixtures(
    ball: ParameterBall,
    layers: Layers,
    x: Tensor,
    starts: int,
    steps: int,
    random_state: int,
    keep_change: bool,
    threads: int,
) -> tuple[Tensor, Tensor]:
    """Search with the changes kept as mixtures of vertices (see `mixtures`)."""
    points, single = points_for(layers, x), ball.p == 1.0
    score = np.full(len(x), np.inf, points.dtype)
    change = np.zeros((len(x), ball.parameters.size if keep_change else 0), points.dtype)

    def descend(start: Tensor, made: bool = False) -> None:
        matrices = start.cpu().numpy()
        turned = turn_layers(layers, matrices) if len(matrices) else matrices
        settings = (matrices, turned, made, single, ball.radius, steps)
        over_rows(
            descend_rows,
            len(x),
            threads,
            layers,
            points,
            *settings,
            score,
            change,
            private=lambda: new_row(layers, steps, single),
            least_rows=LEAST_ROWS,
        )

    nothing = x.new_zeros(0)
    descend(nothing)
    if starts > 1:
        descend(nothing, made=True)
    for signs in _signs(ball, starts - 2, random_state):
        descend(ball.corner(signs.to(x)))
    return torch.from_numpy(score).to(x), torch.from_numpy(change).to(x)


def _starts(ball: ParameterBall, x: Tensor, count: int, random_state: int) -> Iterator[Tensor]:
    """Yield `count` changes for each row."""
    trained = ball.parameters.zeros(len(x))
    yield trained
    drawn = 1
    if ball.p == 1.0 and drawn < count:
        yield _best_single_change(ball, x)
        drawn += 1
    if drawn < count:
        yield ball.corner(_loud_signs(ball.parameters, x))
        drawn += 1
    for signs in _signs(ball, count - drawn, random_state):
        yield ball.corner(signs.to(trained)).expand_as(trained)


def _signs(ball: ParameterBall, count: int, random_state: int) -> Iterator[Tensor]:
    """Yield signs of all parameters: all up, and then random ones."""
    # drawn on the processor: the same signs on every device
    generator = torch.Generator().manual_seed(int(random_state))
    signs = torch.ones(ball.parameters.size)
    for _ in range(count):
        yield signs
        signs = torch.randint(2, signs.shape, generator=generator).mul(2.0).sub(1.0)


def _loud_signs(parameters: Parameters, x: Tensor) -> Tensor:
    """Signs that make the units loud, and turn the layer that is named last against them.

    Where the features come into the first tensor, each row's have their own signs. From "all up"
    alone the first step silences the units again: they help the score there.
    """
    last = parameters.owners[-1]
    signs = parameters.zeros(len(x)) + 1.0
    parts = torch.split(signs, parameters.sizes, 1)
    shape = parameters.shapes[0]
    if len(shape) == 2 and shape[1] == x.shape[1]:
        parts[0].copy_(torch.where(x < 0.0, -1.0, 1.0).repeat(1, shape[0]))
    for part, owner in zip(parts, parameters.owners, strict=True):
        if owner == last:
            part.neg_()
    return signs


def _best_single_change(ball: ParameterBall, x: Tensor) -> Tensor:
    """Try the most promising changes of one parameter by all of the radius."""
    best = ball.parameters.zeros(len(x))
    slope, least = ball.slope(best, x)
    for rank in range(min(SINGLE_CHANGES, ball.parameters.size)):
        candidate = ball.vertex(slope, rank)
        score = ball.score(candidate, x)
        best = torch.where((score < least)[:, None], candidate, best)
        least = torch.minimum(score, least)
    return best


def _descend(ball: ParameterBall, x: Tensor, change: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Lower each row's score, step by step; a step that does not lower it is halved."""
    slope, score = ball.slope(change, x)
    share = torch.ones_like(score)
    lowest, found = score.clone(), change.clone()
    rows = torch.arange(len(x), device=x.device)
    for _ in range(steps):
        candidate = ball.step(change, slope, share[:, None])
        there, reached = ball.slope(candidate, x)
        lower = reached < score
        change = torch.where(lower[:, None], candidate, change)
        slope = torch.where(lower[:, None], there, slope)
        score = torch.where(lower, reached, score)
        share = torch.where(lower, (2.0 * share).clamp_max(1.0), share / 2.0)
        going = share >= LEAST_SHARE
        if not bool(going.all()):  # whoever is done leaves; the rest is packed together
            lowest[rows], found[rows] = score, change
            rows, x, change, slope = rows[going], x[going], change[going], slope[going]
            score, share = score[going], share[going]
            if not len(rows):
                break
    lowest[rows], found[rows] = score, change
    return lowest, found


def in_pieces(
    parameters: Parameters,
    network: Network,
    X: ArrayLike,
    search: Any,
    keep_change: bool,
    memory: float,
) -> WorstNetworks:
    """Search for as many rows at once as the memory allows, and gather what was found."""
    check_positive("memory", memory)
    check_flag("keep_change", keep_change)
    x = read_points(network, X)
    score = np.empty(len(x))
    changes = []
    at_once = parameters.rows_in(memory)
    for begin in range(0, len(x), at_once):
        piece = slice(begin, begin + at_once)
        least, change = search(x[piece])
        score[piece] = least.cpu().numpy()
        if keep_change:
            changes.append(change)
    with np.errstate(invalid="ignore"):  # a row without a point stays without a loss
        loss = np.logaddexp(0.0, -score)
    kept = torch.cat([parameters.zeros(0), *changes]) if keep_change else None
    return WorstNetworks(score, loss, kept)


def read_points(network: Network, X: ArrayLike) -> Tensor:
    """Read points that the network takes."""
    x = network.tensor(read_matrix("X", X))
    with torch.no_grad():
        network.logits(x[:1])  # refuses columns that are not the network's
    return x
