"""The lines under helpful hinges: any choice of their multipliers is sound; this is a good one."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from holdfast.models.networks.ball_network import dual_weights, norm_of_rows
from holdfast.models.networks.falls import Falls, Multipliers
from holdfast.models.networks.folded import RELU

_STEPS = 20  # more hardly pay
# Vertices that are looked at for p = 1, those where the bound is greatest without lines
_VERTICES = 64
_LESS = 0.7  # what is hoped for shrinks to, after a step that did not pay
_CLOSE = 1e-3  # to the true fall, relative to it, is close enough


def choose_lines(falls: Falls, aim: Tensor | None = None, steps: int = _STEPS) -> Multipliers:
    """Choose the multipliers that prove most, nearly: subgradient steps of Polyak's length.

    What is aimed at is a fall; by default the true one where the bound is greatest.
    """
    game = _Game(falls) if falls.sources else None
    if game is None or not game.units.shape[1]:
        return {}
    shares = torch.zeros_like(game.units)
    best, least = shares, torch.full_like(falls.score, math.inf)
    wanted = torch.zeros_like(least) if aim is None else aim
    hoped: Tensor | None = None
    for step in range(steps + 1):
        fall, binding = game.fall_and_binding(shares)
        better = fall < least
        least = torch.where(better, fall, least)
        best = torch.where(better[:, None], shares, best)
        if aim is None:
            wanted = torch.maximum(wanted, game.true_fall(binding))
        going = least > wanted + _CLOSE * wanted.abs()
        if step == steps or not bool(going.any()):
            break
        # where steps stop paying, less is hoped for
        hoped = least - wanted if hoped is None else torch.where(better, hoped, _LESS * hoped)
        level = torch.maximum(wanted, least - hoped)
        shares = game.step(shares, binding, torch.where(going, fall - level, 0.0))
    return game.multipliers(best)


class _Game:
    """The choice of lines, for the ReLUs that they can matter for: helpful hinges in reach.

    Shares of the steepest lines, (rows, ReLUs), against vertices, (rows, all of them): the fall at
    a vertex is ``plain + (shares * units) @ costs``.
    """

    def __init__(self, falls: Falls) -> None:
        self.falls = falls
        self.layers = [j for j, kind in enumerate(falls.network.activations) if kind == RELU]
        matters = []
        self.places: dict[int, Tensor] = {}  # which ReLUs of each layer
        for j in self.layers:
            worth = self._worth(j)
            count = int((worth > 0.0).sum(1).max()) if worth.numel() else 0
            picked = worth.topk(count, 1)
            self.places[j] = picked.indices
            matters.append(picked.values > 0.0)
        self.vertices: dict[int, slice] = {}
        self.count = 0
        for m in falls.sources:
            begin, self.count = self.count, self.count + falls.at[m][0].numel()
            self.vertices[m] = slice(begin, self.count)
        if not self.layers:
            self.units = falls.score.new_zeros((len(falls.score), 0))
            return
        self.units = torch.where(torch.cat(matters, 1), self._gather(self._steepest), 0.0)
        self.caps = torch.ones_like(self.units)
        if falls.sides is not None:
            self.caps = torch.where(self._gather(self._is_held), math.inf, 1.0).to(self.units)
        self.room = self._gather(falls.room)
        self.costs = torch.cat([self._costs(j) for j in self.layers], 1)
        self.plain = torch.cat([falls.at[m].flatten(1) for m in falls.sources], 1)
        self.grown = torch.cat(
            [falls.grown[m][:, None].expand(-1, falls.at[m][0].numel()) for m in falls.sources], 1
        )
        self.kept: Tensor | None = None
        if falls.network.p == 1.0 and self.count > _VERTICES:
            self.kept = (self.plain * self.grown).topk(_VERTICES, 1).indices
            where = self.kept[:, None, :].expand(-1, self.costs.shape[1], -1)
            self.costs = self.costs.gather(2, where)
            self.plain = self.plain.gather(1, self.kept)
            self.grown = self.grown.gather(1, self.kept)

    def _is_held(self, j: int) -> Tensor:
        free = self.falls.is_free(j)
        return torch.zeros_like(self.falls.z[j], dtype=torch.bool) if free is None else ~free

    def _worth(self, j: int) -> Tensor:
        """How much a line may be worth: 0 where the hinge is not helpful or out of reach."""
        falls = self.falls
        beyond = (falls.reach[j][1] - falls.room(j)).clamp_min(0.0)
        free = falls.is_free(j)
        if free is not None:
            beyond = torch.where(free, beyond, 1.0 + beyond)
        return self._steepest(j) * beyond

    def _steepest(self, j: int) -> Tensor:
        """The steepest line under the hinge of each free ReLU; for others a unit to step in."""
        falls = self.falls
        slope = falls.slopes[falls.network.last, j][:, 0].expand_as(falls.z[j])
        free = falls.is_free(j)
        if free is None:
            return slope.clamp_min(0.0)
        usual = slope.abs().mean(1, keepdim=True)
        return torch.where(free, slope.clamp_min(0.0), slope.abs() + usual)

    def _gather(self, of: Callable[[int], Tensor]) -> Tensor:
        return torch.cat([of(j).gather(1, place) for j, place in self.places.items()], 1)

    def _costs(self, j: int) -> Tensor:
        """What each line of layer j adds at the vertices: (rows, chosen ReLUs, vertices)."""
        falls, place = self.falls, self.places[j]
        rows, count = place.shape
        parts = []
        for m in falls.sources:
            kinds, of = falls.at[m].shape[1:]
            if j > m:
                where = place[:, :, None, None].expand(-1, -1, kinds, of)
                parts.append(falls.along[m, j].gather(1, where).flatten(2))
                continue
            part = falls.score.new_zeros((rows, count, kinds, of))
            if j == m:
                own = falls.along[m, j].gather(2, place[:, None, :].expand(-1, kinds, -1))
                where = place[:, :, None, None].expand(-1, -1, kinds, 1)
                part.scatter_(3, where, own.transpose(1, 2)[:, :, :, None])
            parts.append(part.flatten(2))
        return torch.cat(parts, 2)

    def fall_and_binding(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The fall over the ball, and how much of each vertex is in it.

        For p = 1 one vertex binds, at today's levers; for others all do, as Hölder's inequality
        has them.
        """
        lines = shares * self.units
        falls = self.plain + (lines[:, None, :] @ self.costs)[:, 0]
        falls = (falls * self.grown).clamp_min(0.0)
        base, q = (lines * self.room).sum(1), self.falls.network.q
        if math.isinf(q):
            norm, which = falls.max(1, keepdim=True)
            binding = torch.zeros_like(falls).scatter_(1, which, self.grown.gather(1, which))
            return base + norm[:, 0], binding * (norm > 0.0)
        binding = torch.zeros_like(falls)
        pieces = {m: falls[:, at].reshape(len(falls), 2, -1) for m, at in self.vertices.items()}
        single = torch.cat([piece.amax(1) for piece in pieces.values()], 1)
        weight = dual_weights(single, q)
        begin = 0
        for m, piece in pieces.items():
            own = weight[:, None, begin : begin + piece.shape[2]]
            begin += piece.shape[2]
            part = torch.zeros_like(piece).scatter_(1, piece.argmax(1, keepdim=True), own)
            binding[:, self.vertices[m]] = part.flatten(1)
        return base + norm_of_rows(single, q), binding

    def step(self, shares: Tensor, binding: Tensor, wanted: Tensor) -> Tensor:
        """Move the shares so that the fall, were it linear, would be less by what is wanted."""
        slope = self.room + (self.costs @ binding[:, :, None])[:, :, 0]
        slope = slope * self.units
        stuck = ((shares <= 0.0) & (slope > 0.0)) | ((shares >= self.caps) & (slope < 0.0))
        slope = slope.masked_fill(stuck, 0.0)
        size = (slope**2).sum(1)
        length = wanted.clamp_min(0.0) / torch.where(size > 0.0, size, 1.0)
        return (shares - length[:, None] * slope).clamp_min(0.0).minimum(self.caps)

    def true_fall(self, binding: Tensor) -> Tensor:
        """How far the score itself falls when the binding vertices are injected together."""
        falls = self.falls
        if self.kept is not None:
            every = binding.new_zeros((len(binding), self.count))
            binding = every.scatter_(1, self.kept, binding)
        h = falls.h[0]
        for layer, weight in enumerate(falls.network.weights):
            z = h @ weight.T + falls.network.biases[layer]
            if layer in self.vertices:
                part = binding[:, self.vertices[layer]].reshape(len(binding), 2, -1)
                z = z + (part * falls.injected[layer][:, :, None]).sum(1)
            if layer < falls.network.last:
                h, _ = falls.activate(layer, z)
        return falls.score - z[:, 0]

    def multipliers(self, shares: Tensor) -> Multipliers:
        """Return what the shares are, for all ReLUs of each layer."""
        lines = shares * self.units
        found, begin = {}, 0
        for j, place in self.places.items():
            own = lines[:, begin : begin + place.shape[1]]
            found[j] = torch.zeros_like(self.falls.z[j]).scatter_(1, place, own)
            begin += place.shape[1]
        return found
