"""How far a network's score can fall when its parameters change: a convex bound.

`prover.py` derives it. `Falls._relax` goes through the network layer by layer, and `Falls.most` is
the bound.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from holdfast.models.networks.ball_network import BallNetwork, dual_weights, norm_of_rows
from holdfast.models.networks.cones import Cone, chord_cone, hinge_cone, value_and_tilt
from holdfast.models.networks.folded import IDENTITY, RELU

# Multipliers of the lines under helpful hinges, for the ReLUs of each layer: (rows, units)
Multipliers = dict[int, Tensor]
# In how many parts the radius is shared among the layers where their levers grow
_SHARES = 32
_ROUNDING = 2.0**-53


class Falls:
    """Some points, and the bound of how far their scores fall at the vertices of a ball.

    A *vertex* is a unit with all of the radius injected into it, up or down. `at[m]` holds the
    bound at the vertices of layer m, without the lines of helpful hinges: (rows, 2, units).
    `along[m, j]` holds how far a vertex can move the units of layer j away from their kinks, which
    is what the lines cost: (rows, units of j, 2, units of m), and (rows, 2, units) for j = m, where
    a vertex moves its own unit alone. Layers without a ReLU have no kinks: there it is up.

    Some ReLUs can be held open or shut (`sides`: 1, -1, and 0 for those that are free). The bound
    is then for those changes of the network under which they are.
    """

    def __init__(
        self, network: BallNetwork, x: Tensor, radius: float, sides: list[Tensor] | None = None
    ) -> None:
        self.network, self.radius, self.sides = network, radius, sides
        self._refer_to(x)
        self.slopes: dict[tuple[int, int], Tensor] = {}  # of z_i in h_j
        self.along: dict[tuple[int, int], Tensor] = {}
        self.hinges: dict[tuple[int, int], tuple[Tensor | None, Tensor | None]] = {}
        self.injected: dict[int, Tensor] = {}
        self.grown: dict[int, Tensor] = {}  # the least lever of a layer, relative to the largest
        self.reach: list[tuple[Tensor, Tensor]] = []  # how far units can move, both ways
        self._relax()

    @property
    def sources(self) -> list[int]:
        """Layers that may change."""
        return list(self.injected)

    # The network that all is relative to: today's, with some ReLUs held open or shut

    def _refer_to(self, x: Tensor) -> None:
        self.z: list[Tensor] = []
        self.h = [x]
        self.tilt: list[Tensor] = []
        for layer, weight in enumerate(self.network.weights):
            self.z.append(self.h[-1] @ weight.T + self.network.biases[layer])
            if layer < self.network.last:
                h, tilt = self.activate(layer, self.z[-1])
                self.h.append(h)
                self.tilt.append(tilt)
        self.score = self.z[-1][:, 0]

    def activate(self, layer: int, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return what comes out of a layer's activations, and their slopes."""
        h, tilt = value_and_tilt(self.network.activations[layer], z)
        if self.sides is None or self.network.activations[layer] != RELU:
            return h, tilt
        side = self.sides[layer]
        tilt = torch.where(side == 0, tilt, (side > 0).to(z))
        return torch.where(side == 0, h, tilt * z), tilt

    def is_free(self, layer: int) -> Tensor | None:
        """Which ReLUs of a layer are not held open or shut; None: all are free."""
        return None if self.sides is None else self.sides[layer] == 0

    def room(self, layer: int) -> Tensor:
        """How far each ReLU is from its kink, on its side."""
        return self._sign(layer) * self.z[layer]

    def _sign(self, layer: int) -> Tensor:
        """The direction away from the kink: 1 for open ReLUs, -1 for others; up without a kink."""
        if self.network.activations[layer] != RELU:
            return torch.ones_like(self.tilt[layer])
        return 2.0 * self.tilt[layer] - 1.0

    # The bound, layer by layer

    def _relax(self) -> None:
        network = self.network
        largest = self.h[0].abs()  # that the inputs of a layer can get
        for i in range(network.last + 1):
            self._carry_slopes(i)
            moves = self._moves(i)
            if network.changes(i):
                self._inject(i, largest)
            if i == network.last:
                self.at = {m: against[:, 0] for m, (_, against) in moves.items()}
                if network.changes(i):
                    self.at[i] = -self.injected[i][:, :, None]
                return
            reach = self._reach(i, moves, 0), self._reach(i, moves, 1)
            self.reach.append(reach)
            self._bend(i, moves, reach)
            largest = self._largest_output(i, reach)

    def _carry_slopes(self, i: int) -> None:
        if i == 0:
            return
        weight = self.network.weights[i]
        self.slopes[i, i - 1] = weight[None]
        if i > 1:
            through = weight * self.tilt[i - 1][:, None, :]
            for j in range(i - 1):
                self.slopes[i, j] = through @ self.slopes[i - 1, j]

    def _inject(self, layer: int, largest: Tensor) -> None:
        """Note what is injected at the vertices of a layer, up and down, with its largest lever."""
        lever = self.network.lever(layer, largest)
        self.grown[layer] = torch.ones_like(lever)
        if self._grows(layer):
            today = self.h[layer]
            if self.network.activations[layer - 1] == RELU:
                today = today.clamp_min(0.0)  # held open, it could be below
            least = self.network.lever(layer, today)
            lever = torch.maximum(least, lever)
            self.grown[layer] = torch.where(
                lever > 0.0, least / torch.where(lever > 0.0, lever, 1.0), 1.0
            )
        self.injected[layer] = self.radius * torch.stack([lever, -lever], 1)

    def _grows(self, layer: int) -> bool:
        """Whether the lever of a layer is known to grow convexly with earlier injections.

        For p = 1 it is then, and what earlier layers spend of the radius this one cannot.
        """
        convex = layer > 0 and self.network.activations[layer - 1] in (RELU, IDENTITY)
        return self.network.p == 1.0 and convex and bool(self.injected)

    def _moves(self, i: int) -> dict[int, tuple[Tensor, Tensor]]:
        """How far vertices of each earlier layer move units of layer i along and against.

        (rows, units, 2, units of the vertices); at the score, which has no direction, along is up.
        """
        turned = {j: self.slopes[i, j] for j in range(i)}
        if i < self.network.last:
            sign = self._sign(i)[:, :, None]
            turned = {j: sign * slope for j, slope in turned.items()}
        rising = {j: slope.clamp_min(0.0) for j, slope in turned.items()}
        falling = {j: rising[j] - slope for j, slope in turned.items()}
        moves = {}
        for m in self.sources:
            slope = turned[m] * self.tilt[m][:, None, :]
            line = slope[:, :, None, :] * self.injected[m][:, None, :, None]
            along, against = line, -line
            for j in range(m, i):
                raised, lowered = self.hinges[m, j]
                if raised is not None:
                    along = along + _carry(rising[j], raised)
                    against = against + _carry(falling[j], raised)
                if lowered is not None:
                    along = along + _carry(falling[j], lowered)
                    against = against + _carry(rising[j], lowered)
            moves[m] = along, against
        return moves

    def _reach(self, i: int, moves: dict[int, tuple[Tensor, Tensor]], way: int) -> Tensor:
        """How far the units of layer i can move one way, over the whole ball."""
        parts = [move[way].amax(2).clamp_min(0.0) for move in moves.values()]
        if i in self.injected:
            own = self.injected[i][:, 0, None, None]
            parts.append(own.expand(-1, self.z[i].shape[1], 1))
        if not parts:
            return torch.zeros_like(self.z[i])
        return norm_of_rows(torch.cat(parts, 2), self.network.q)

    def _bend(
        self, i: int, moves: dict[int, tuple[Tensor, Tensor]], reach: tuple[Tensor, Tensor]
    ) -> None:
        """Bound what the activations of layer i add to their tangents, at every vertex."""
        cone = self._cone(i, reach)
        for m in self.sources:
            if m == i:
                own = self.injected[m][:, :, None] * self._sign(i)[:, None, :]
                along, against, unit = own, -own, (slice(None), None)
            else:
                along, against = moves[m]
                unit = (slice(None), slice(None), None, None)  # type: ignore[assignment]
            self.along[m, i] = along
            if cone is None:
                self.hinges[m, i] = None, None
            else:
                self.hinges[m, i] = cone.at(along, against, unit)

    def _cone(self, i: int, reach: tuple[Tensor, Tensor]) -> Cone | None:
        kind = self.network.activations[i]
        if kind == IDENTITY:
            return None
        if kind != RELU:
            return chord_cone(kind, self.z[i], reach)
        cone = hinge_cone(self.room(i), reach[1], exact=self.network.p == 1.0)
        free = self.is_free(i)
        return cone if free is None else Cone(None, cone.against * free, cone.knot)

    def _largest_output(self, i: int, reach: tuple[Tensor, Tensor]) -> Tensor:
        """The largest size of the outputs of layer i over the whole ball."""
        z, kind = self.z[i], self.network.activations[i]
        if kind == RELU:
            is_open = self.tilt[i] > 0.0
            top = (z + torch.where(is_open, reach[0], reach[1])).clamp_min(0.0)
            free = self.is_free(i)
            return top if free is None else torch.where(free | is_open, top, 0.0)
        top, bottom = (value_and_tilt(kind, end)[0] for end in (z + reach[0], z - reach[1]))
        return torch.maximum(top.abs(), bottom.abs())

    # From the vertices to the ball

    def base(self, multipliers: Multipliers) -> Tensor:
        """What the lines under helpful hinges add where nothing is injected.

        A ReLU adds ``multiplier * (room + move along)`` to the bound. Where it is free, that is a
        line under its hinge, while the multiplier is at most the score's slope in its output. Where
        it is held on its side, what is added is not negative, however large the multiplier, which
        must not be negative itself.
        """
        total = torch.zeros_like(self.score)
        for j, multiplier in multipliers.items():
            total = total + (multiplier * self.room(j)).sum(1)
        return total

    def with_lines(self, multipliers: Multipliers) -> dict[int, Tensor]:
        """The bound at the vertices, lines included, beyond what they add everywhere."""
        falls = {}
        for m in self.sources:
            fall = self.at[m]
            for j, multiplier in multipliers.items():
                if j == m:
                    fall = fall + multiplier[:, None, :] * self.along[m, j]
                elif j > m:
                    added = multiplier[:, None, :] @ self.along[m, j].flatten(2)
                    fall = fall + added.reshape(fall.shape)
            falls[m] = fall
        return falls

    def most(self, multipliers: Multipliers, share: float = 1.0) -> Tensor:
        """How far the score can fall, at most, with a share of the radius."""
        base = self.base(multipliers)
        falls = self.with_lines(multipliers)
        if not falls:
            return base
        if self.network.p == 1.0:
            return base + share * self._over_layers(falls)
        single = torch.cat([fall.amax(1) for fall in falls.values()], 1).clamp_min(0.0)
        return base + share * norm_of_rows(single, self.network.q)

    def binding(self, multipliers: Multipliers) -> dict[int, Tensor]:
        """How much of each vertex is in the bound: (rows, 2, units).

        For p = 1 one vertex binds; for others all do, as Hölder's inequality has them.
        """
        falls = self.with_lines(multipliers)
        widths = [fall.shape[2] for fall in falls.values()]
        single = torch.cat(
            [self.grown[m][:, None] * fall.amax(1) for m, fall in falls.items()], 1
        ).clamp_min(0.0)
        weight = dual_weights(single, self.network.q).split_with_sizes(widths, 1)
        return {
            m: torch.zeros_like(fall).scatter_(1, fall.argmax(1, keepdim=True), own[:, None, :])
            for (m, fall), own in zip(falls.items(), weight, strict=True)
        }

    def _over_layers(self, falls: dict[int, Tensor]) -> Tensor:
        """Share the radius among the layers as it hurts most: levers grow by what others spend.

        With shares s_l the fall is at most ``sum_l s_l (f_l + g_l sum_(m<l) s_m)``, where f_l is
        that at today's lever, and f_l + g_l that at the largest. The largest value of such a
        quadratic function over all shares is at most its largest Bernstein coefficient, of any
        degree, which is found by adding layer after layer.
        """
        spent = torch.arange(_SHARES + 1, device=self.score.device)
        before, here = spent[:, None], spent[None, :]
        total, beyond = (before + here).clamp_max(_SHARES), before + here > _SHARES
        best = torch.full((len(self.score), _SHARES + 1), -math.inf).to(self.score)
        best[:, 0] = 0.0
        for m, fall in falls.items():
            largest = fall.amax((1, 2))[:, None, None].clamp_min(0.0)
            least = self.grown[m][:, None, None] * largest
            growth = (largest - least) / (_SHARES * (_SHARES - 1))
            added = here * least / _SHARES + before * here * growth
            reached = (best[:, :, None] + added).masked_fill(beyond, -math.inf).flatten(1)
            places = total.flatten().expand_as(reached)
            best = torch.full_like(best, -math.inf).scatter_reduce(1, places, reached, "amax")
        return best.amax(1)

    def rounding(self, multipliers: Multipliers) -> Tensor:
        """More than rounding can do to the score and to the bound of its fall.

        All that was added up, with every number replaced by its size, and the roundings on the
        longest way through it; `docs/networks.md` counts them.
        """
        size, moved = self._sizes[-1]
        total = (size + 2.0 * moved)[:, 0]
        if self.sides is not None:  # multipliers that are not bounded by the score's slopes
            for j, multiplier in multipliers.items():
                total = total + (multiplier * sum(self._sizes[j])).sum(1)
        return self._roundings * total

    def unit_rounding(self, layer: int) -> Tensor:
        """More than rounding can do to the units of a layer and to the bounds of their moves."""
        size, moved = self._sizes[layer]
        return self._roundings * (size + 2.0 * moved)

    @property
    def _roundings(self) -> float:
        network = self.network
        longest = sum(network.widths) + network.weights[0].shape[1] + 32 * len(network.weights)
        return 8.0 * longest * _ROUNDING

    @cached_property
    def _sizes(self) -> list[tuple[Tensor, Tensor]]:
        """Units and their moves of each layer, with all that is added up replaced by its size."""
        network, sizes = self.network, []
        size = self.h[0].abs()
        moved = torch.zeros_like(size)
        for i, weight in enumerate(network.weights):
            inputs = 3.0 * moved + size
            moved = inputs @ weight.abs().T if i else torch.zeros_like(self.z[0])
            if i in self.injected:
                moved = moved + self.radius * network.lever(i, inputs)[:, None]
            size = size @ weight.abs().T + network.biases[i].abs()
            sizes.append((size, moved))
            if i < network.last and network.activations[i] not in (RELU, IDENTITY):
                size = size.clamp_min(1.0)
        return sizes


def _carry(slopes: Tensor, hinges: Tensor) -> Tensor:
    """Carry hinges of a layer on to the units of another: (rows, units, 2, units of the source).

    Hinges at the vertices' own layer come without the dimension of its units.
    """
    if hinges.dim() == 3:
        return slopes[:, :, None, :] * hinges[:, None]
    carried: Any = slopes @ hinges.flatten(2)
    return carried.reshape(*carried.shape[:2], *hinges.shape[2:])  # type: ignore[no-any-return]
