"""One worst network for a whole population of points, not one for each."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.func import functional_call

from holdfast.machinery.numbers import check_count, check_flag, check_random_state
from holdfast.machinery.threads import thread_count
from holdfast.models.network import Network, as_logits
from holdfast.models.networks.ascent import (
    ParameterBall,
    WorstNetworks,
    read_points,
    worst_network,
)
from holdfast.models.networks.descents import LEAST_SHARE
from holdfast.problem.ball import NormBall

# Changes that are tried out as starts: the worst ones of so many rows, and, for p = 1, of so many
# single parameters in both directions
ROWS_TRIED = 64
PARAMETERS_TRIED = 64


def population_worst_network(
    network: Network,
    X: ArrayLike,
    robust_to: NormBall,
    *,
    steps: int = 30,
    starts: int = 4,
    random_state: int = 0,
    keep_change: bool = False,
    n_jobs: int | None = -1,
) -> WorstNetworks:
    """Find the one network in a ball that maximises the sum of all points' losses.

    The steps are those of `worst_network`, with one change for all points. It is a search, not a
    proof: there may be a worse network.

    Parameters
    ----------
    network : Network
        Its parameters with ``requires_grad=False`` are taken to be fixed: they never change.
    X : (n, d) array
        Recourses, without missing ones.
    robust_to : NormBall
        Around all other parameters of the network together, for any p; its `scale` has one number
        for each tensor of parameters, as in `worst_network`.
    steps : int
        Steps of the ascent from each start.
    starts : int
        The trained parameters, and then the best of these: the worst networks of single points,
        and, for p = 1, changes of one parameter.
    keep_change : bool
        Whether to return the change of the parameters: one row.
    random_state, n_jobs
        As in `worst_network`.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[0.0, 1.0]])), layer.bias.fill_(1.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> points = [[2.0, 0.0], [-2.0, 0.0]]  # no weight hurts both of them
    >>> population_worst_network(Network(layer), points, ball).score
    array([0.5, 0.5])
    """
    ball = ParameterBall.of(network, robust_to).with_something_free()
    check_count("steps", steps, least=0)
    check_count("starts", starts)
    check_random_state(random_state)
    check_flag("keep_change", keep_change)
    thread_count(n_jobs)
    x = _read(network, X)
    crowd = _Crowd(network, ball, x)
    trained = ball.parameters.zeros(1)
    best, change = crowd.descend(trained, steps)
    if starts > 1 and len(x):
        rows = np.unique(np.linspace(0, len(x) - 1, ROWS_TRIED).round().astype(int))
        own = worst_network(
            network,
            x[rows].cpu().numpy(),
            robust_to,
            steps=steps,
            random_state=random_state,
            keep_change=True,
            n_jobs=n_jobs,
        ).change
        assert own is not None
        tried = ball.in_scale(own)
        if ball.p == 1.0:
            tried = torch.cat([tried, crowd.single_changes()])
        sums = torch.stack([crowd.value(candidate[None]) for candidate in tried])
        for k in sums.argsort()[: starts - 1]:
            value, found = crowd.descend(tried[k][None], steps)
            if value < best:
                best, change = value, found
    score = crowd.score(change).double().cpu().numpy()
    kept = ball.changes(change) if keep_change else None
    return WorstNetworks(score, np.logaddexp(0.0, -score), kept)


def _read(network: Network, X: ArrayLike) -> Tensor:
    x = read_points(network, X)
    missing = torch.where(~torch.isfinite(x).all(dim=1))[0]
    if len(missing):
        raise ValueError(
            f"X is not finite in {len(missing)} rows, the first of which is row "
            f"{int(missing[0])}; leave out the rows without a recourse"
        )
    return x


class _Crowd:
    """The points, and minus the sum of their losses as a function of one (1, k) change.

    The change is in units of the parameters' scales (see `ParameterBall`).
    """

    def __init__(self, network: Network, ball: ParameterBall, x: Tensor) -> None:
        self.network, self.ball, self.x = network, ball, x
        self.shapes = {name: tensor.shape for name, tensor in network.module.named_parameters()}

    def score(self, change: Tensor) -> Tensor:
        parameters = self.ball.parameters
        moved = parameters.trained + self.ball.changes(change)
        pieces = torch.split(moved[0], parameters.sizes)
        changed = {
            name: piece.view(shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }
        outputs = functional_call(self.network.module, changed, (self.x,))
        return as_logits(outputs, self.network.output, len(self.x))

    def value(self, change: Tensor) -> Tensor:
        with torch.no_grad():
            return _minus_losses(self.score(change))

    def slope(self, change: Tensor) -> tuple[Tensor, Tensor]:
        """Gradient in the change, and the value."""
        at = change.detach().clone().requires_grad_()
        value = _minus_losses(self.score(at))
        return torch.autograd.grad(value, at)[0], value.detach()

    def single_changes(self) -> Tensor:
        """Change one parameter by all of the radius, both ways, where the slopes are largest."""
        slope, _ = self.slope(self.ball.parameters.zeros(1))
        size = self.ball.parameters.size
        which = slope[0].abs().topk(min(PARAMETERS_TRIED, size)).indices
        up = torch.zeros((len(which), size), dtype=slope.dtype, device=slope.device)
        up[torch.arange(len(which)), which] = self.ball.radius * self.ball.scale[which].sign()
        return torch.cat([up, -up])

    def descend(self, change: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Lower the value, step by step; a step that does not lower it is halved."""
        slope, value = self.slope(change)
        share = 1.0
        for _ in range(steps):
            candidate = self.ball.step(change, slope, change.new_full((1, 1), share))
            there, reached = self.slope(candidate)
            if reached < value:
                change, slope, value = candidate, there, reached
                share = min(2.0 * share, 1.0)
            else:
                share /= 2.0
                if share < LEAST_SHARE:
                    break
        return value, change


def _minus_losses(score: Tensor) -> Tensor:
    # in double precision: steps are compared by sums of many losses
    return -torch.nn.functional.softplus(-score.double(), threshold=50.0).sum()
