"""A lower bound of a network's score over all networks around it: proven, not searched for.

Every parameter may change, ``||change / scale||_p <= radius``. A changed layer adds an *injection*
to what its units have before the activation, ``xi = dW h' + db``, whose size is at most the
layer's share of the radius times ``||scale * (h', 1)||_q`` (its *lever*). Beside the trained
network the score then falls linearly in the injections, but for what activations add:

- A ReLU adds a hinge, ``max(0, tau - |z|)``, where tau is the move of its unit toward the kink. A
  hinge that lowers the score is bounded by a convex function of the injections: itself, with the
  largest possible move put in. A hinge that raises the score is at least ``slope * (tau - |z|)``,
  for any slope from 0 to 1: a line (`lines` picks good ones).
- tanh and the logistic function lie between two chords, from the present point to the ends of
  what the unit can reach: a cone, convex too.

So the fall of the score is at most a *convex* function of the injections. Over a ball with p = 1
such a function is greatest at a vertex: all of the radius in one unit. For other p, whose balls
have no vertices, the hinges are bounded by cones as well, so that the function is subadditive, and
Hölder's inequality bounds it by its values at single units. `docs/networks.md` derives it all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import thread_count
from holdfast.models.network import Network
from holdfast.models.networks.ball_network import BallNetwork
from holdfast.models.networks.falls import Falls
from holdfast.models.networks.folded import fold_network
from holdfast.models.networks.lines import choose_lines
from holdfast.models.networks.reached import lowest_reached
from holdfast.models.networks.splitting import next_to_split, no_network_there, split_relus
from holdfast.models.networks.torch_threads import one_torch_thread
from holdfast.problem.ball import NormBall

# The bound is worked out for the next radius of a ladder with so many rungs to a doubling, and
# scaled down, which a convex bound allows: so between two rungs a larger radius never proves more.
# From rung to rung it can, by a hair: lines are chosen anew, and not quite the best ones.
_RUNGS = 16
# MiB to work in, on the processor and elsewhere
_MEMORY, _DEVICE_MEMORY = 128.0, 2048.0
# More threads of Python only wait for each other.
_MOST_THREADS = 4


def next_rung(radius: float) -> float:
    """Return the next radius of the ladder, at least as large.

    Examples
    --------
    >>> next_rung(0.5), next_rung(0.49) == next_rung(0.48)
    (0.5, True)
    """
    if radius == 0.0:
        return 0.0
    exponent = math.ceil(math.log2(radius) * _RUNGS) / _RUNGS
    return max(radius, 2.0**exponent) if exponent < 1024.0 else radius


class Prover:
    """Lower bounds of a network's score over all networks of a ball around its parameters.

    Examples
    --------
    >>> import holdfast, torch
    >>> from holdfast.models.network import Network
    >>> layer = torch.nn.Linear(2, 1, dtype=torch.float64)
    >>> with torch.no_grad():
    ...     _ = layer.weight.copy_(torch.tensor([[1.0, 1.0]])), layer.bias.fill_(0.0)
    >>> prover = Prover.of(Network(layer), holdfast.NormBall(p=1, radius=0.5))
    >>> prover.lower([[2.0, -3.0]]).round(9)  # -1 - 0.5 * 3
    array([-2.5])
    """

    def __init__(self, folded: Network, network: BallNetwork, radius: float) -> None:
        self.folded, self.network, self.radius = folded, network, radius
        self.rung = next_rung(radius)

    @classmethod
    def of(cls, network: Network, robust_to: NormBall) -> Prover:
        """Read a network and a ball; refuse, by name, what cannot be proven."""
        if not isinstance(robust_to, NormBall):
            raise TypeError(
                f"robust_to is of the type {type(robust_to).__name__}; if all parameters of a "
                "network change, proofs need a ball: NormBall(p=..., radius=...). If only its "
                "last layer changes, any set will do: LastLayer(...)"
            )
        folded = fold_network(network)
        return cls(folded, BallNetwork.of(folded, robust_to), robust_to.radius)

    def lower(
        self,
        points: Any,
        *,
        splits: int = 0,
        enough: ArrayLike = math.inf,
        n_jobs: int | None = -1,
    ) -> Floats:
        """Return a score that no network of the ball goes below, for each (encoded) point.

        With `splits` so many ReLUs are split, one after the other, for each point, until its bound
        is `enough`.

        Examples
        --------
        See `Prover`.
        """
        return self.prove(points, splits=splits, enough=enough, n_jobs=n_jobs)[0]

    def prove(
        self,
        points: Any,
        *,
        splits: int = 0,
        enough: ArrayLike = math.inf,
        n_jobs: int | None = -1,
    ) -> tuple[Floats, Floats]:
        """Return what is proven, as `lower` does, and the lowest score of networks on the way.

        Examples
        --------
        >>> import holdfast, torch
        >>> from holdfast.models.network import Network
        >>> prover = Prover.of(Network(torch.nn.Linear(2, 1)), holdfast.NormBall(p=2, radius=0.1))
        >>> proven, reached = prover.prove([[2.0, -3.0]])
        >>> bool(abs(proven[0] - reached[0]) < 1e-12)
        True
        """
        x = self._read(points)

        def prove(piece: Tensor) -> tuple[Floats, Floats]:
            with torch.inference_mode():
                proven, reached = self._prove(piece)
                return proven.cpu().numpy(), reached.cpu().numpy()

        pieces = [(np.empty(0), np.empty(0)), *self._over_pieces(prove, x, 1, n_jobs)]
        proven, reached = (np.concatenate(column) for column in zip(*pieces, strict=True))
        if splits and self.radius > 0.0 and self.network.may_change:
            wanted = np.minimum(enough, reached)
            short = np.flatnonzero(proven < wanted)
            at_once = self._rows_at_once(x, 2)  # each row has two parts
            for begin in range(0, len(short), at_once):
                rows = short[begin : begin + at_once]
                with torch.inference_mode(), one_torch_thread():
                    goal = torch.tensor(wanted[rows]).to(x)
                    better = split_relus(self, x[rows], goal, splits)
                # nothing above what a network of the ball gives is believed
                proven[rows] = np.maximum(proven[rows], np.minimum(better, reached[rows]))
        return proven, reached

    def prove_part(
        self, x: Tensor, sides: Tensor, enough: Tensor, steps: int
    ) -> tuple[Tensor, Tensor]:
        """Bound the score with some ReLUs held open or shut; and say which to split next."""
        by_layer = list(sides.split_with_sizes(self.network.widths[:-1], 1))
        falls = Falls(self.network, x, self.radius, by_layer)
        lines = choose_lines(falls, falls.score - enough, steps)
        most = torch.minimum(falls.most(lines), falls.most({}))
        proven = falls.score - most - falls.rounding(lines)
        proven = torch.where(proven.isnan(), -math.inf, proven)
        empty = no_network_there(falls)
        unit = torch.where(empty, -1, next_to_split(falls, lines))
        return torch.where(empty, math.inf, proven), unit

    def slope(self, points: Any, *, n_jobs: int | None = -1) -> tuple[Floats, Floats]:
        """Return the slope of the proven score in the point, and the proven score.

        Examples
        --------
        >>> import holdfast, torch
        >>> from holdfast.models.network import Network
        >>> prover = Prover.of(Network(torch.nn.Linear(2, 1)), holdfast.NormBall(p=2, radius=0.1))
        >>> slope, proven = prover.slope([[2.0, -3.0]])
        >>> slope.shape, proven.shape
        ((1, 2), (1,))
        """
        x = self._read(points)

        def slope(piece: Tensor) -> tuple[Floats, Floats]:
            with torch.enable_grad():
                point = piece.clone().requires_grad_()
                score, _ = self._prove(point)
                slopes = torch.autograd.grad(score.sum(), point)[0]
            # where it leads nowhere: numbers beyond the largest one
            slopes = torch.where(slopes.isfinite(), slopes, 0.0)
            return slopes.cpu().numpy(), score.detach().cpu().numpy()

        pieces = self._over_pieces(slope, x, 2, n_jobs)  # the way back takes as much again
        slopes = [np.empty((0, x.shape[1])), *(piece[0] for piece in pieces)]
        return np.concatenate(slopes), np.concatenate([np.empty(0), *(each[1] for each in pieces)])

    def _read(self, points: Any) -> Tensor:
        return self.folded.tensor(np.atleast_2d(np.asarray(points, dtype=np.float64)))

    def _over_pieces(
        self, work: Callable[[Tensor], Any], x: Tensor, share: int, n_jobs: int | None
    ) -> list[Any]:
        """Work on as many rows at once as memory allows, one after the other or side by side."""
        workers = min(thread_count(n_jobs), _MOST_THREADS) if x.device.type == "cpu" else 1
        at_once = min(self._rows_at_once(x, share), max(1, math.ceil(len(x) / workers)))
        pieces = [x[begin : begin + at_once] for begin in range(0, len(x), at_once)]
        with one_torch_thread():
            if workers <= 1:
                return [work(piece) for piece in pieces]
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(work, pieces))

    def _rows_at_once(self, x: Tensor, share: int) -> int:
        memory = _MEMORY if x.device.type == "cpu" else _DEVICE_MEMORY
        return max(1, self.network.rows_in(memory) // share)

    def _prove(self, x: Tensor) -> tuple[Tensor, Tensor]:
        falls = Falls(self.network, x, self.rung)
        with torch.no_grad():
            lines = choose_lines(falls)
            reached = lowest_reached(falls, lines, self.radius)
        share = self.radius / self.rung if self.rung > 0.0 else 1.0
        most = torch.minimum(falls.most(lines, share), falls.most({}, share))
        proven = falls.score - most - falls.rounding(lines)
        # beyond the largest number nothing is proven
        return torch.where(proven.isnan(), -math.inf, proven), reached
