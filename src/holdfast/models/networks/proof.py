"""A lower bound of a network's score over all networks around it: proven, not searched for.

Every parameter may change, ``||change / scale||_p <= radius``. A changed layer adds an *injection*
to what its units have before the activation, ``xi = dW h' + db``, whose size is at most the
layer's share of the radius times ``||scale * (h', 1)||_q`` (its *lever*). Beside the trained
network the score then falls linearly in the injections, but for what activations add:

- A ReLU adds a hinge, ``max(0, tau - |z|)``, where tau is the move of its unit toward the kink. A
  hinge that lowers the score is bounded by a convex function of the injections: itself, with the
  largest possible move put in. A hinge that raises the score is at least ``slope * (tau - |z|)``,
  for any slope from 0 to 1: a line (`_choose_slopes` picks good ones).
- tanh and the logistic function lie between two chords, from the present point to the ends of
  what the unit can reach: a cone, convex too.

So the fall of the score is at most a *convex* function of the injections. Over a ball with p = 1
such a function is greatest at a vertex: all of the radius in one unit. For other p, whose balls
have no vertices, the hinges are bounded by cones as well, so that the function is subadditive, and
Hoelder's inequality bounds it by its values at single units. `docs/networks.md` derives it all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.machinery.numbers import Floats
from holdfast.models.network import Network
from holdfast.models.networks.ball_scales import tensor_scales
from holdfast.models.networks.folded import (
    LOGISTIC,
    RELU,
    TANH,
    fold_network,
    layers_and_activations,
)
from holdfast.problem.ball import NormBall

# Steps in which the slopes of helpful hinges are chosen; more hardly pay (benchmarks/proof.py).
_STEPS = 20
# Slopes are chosen for the next larger radius of a ladder with so many steps to a doubling: all
# radii between two of its steps share them, so that a larger radius never proves more.
_RUNGS = 8
# In how many parts the radius is shared among the layers where their levers grow
_SHARES = 32
_UNIT = 2.0**-53
# MiB to work in
MEMORY = 64.0


@dataclass(frozen=True, eq=False)
class Plain:
    """A folded network as arrays, and how far its tensors may change.

    Attributes
    ----------
    weights, biases : lists of tensors
        Of each linear layer; no bias is one of zeros that never changes.
    activations : list of str
        Behind each hidden layer.
    weight_scales, bias_scales : lists of float
        How far they may change, relative to the radius.
    p, q : float
        Exponent of the ball, and the one dual to it.
    """

    weights: list[Tensor]
    biases: list[Tensor]
    activations: list[str]
    weight_scales: list[float]
    bias_scales: list[float]
    p: float
    q: float

    @classmethod
    def of(cls, folded: Network, ball: NormBall, scales: tuple[float, ...]) -> Plain:
        """Read a folded network, with a scale for each of its tensors."""
        linear, activations = layers_and_activations(folded)
        given = iter(scales)
        weight_scales, bias_scales = [], []
        for layer in linear:
            weight_scales.append(next(given))
            bias_scales.append(0.0 if layer.bias is None else next(given))
        weights = [layer.weight.detach() for layer in linear]
        biases = [
            weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach()
            for weight, layer in zip(weights, linear, strict=True)
        ]
        return cls(weights, biases, activations, weight_scales, bias_scales, ball.p, ball.dual_p)

    @property
    def last(self) -> int:
        """Number of the last layer, whose one output is the score."""
        return len(self.weights) - 1

    @property
    def widths(self) -> list[int]:
        """Number of units of each layer."""
        return [len(weight) for weight in self.weights]

    def changes(self, layer: int) -> bool:
        """Whether anything in a layer may change."""
        return self.weight_scales[layer] > 0.0 or self.bias_scales[layer] > 0.0

    def lever(self, layer: int, inputs: Tensor) -> Tensor:
        """``||scale * (inputs, 1)||_q``: what a radius of 1 in this layer alone can inject."""
        own = torch.full_like(inputs[:, :1], self.bias_scales[layer])
        return norm_of_rows(torch.cat([self.weight_scales[layer] * inputs.abs(), own], 1), self.q)

    def rows_in(self, mib: float) -> int:
        """How many rows can be relaxed at once in so many MiB."""
        widths = self.widths
        pairs = sum(widths[i] * widths[m] for i in range(len(widths)) for m in range(i))
        return max(1, int(mib * 2**20 / (8 * 24 * (pairs + sum(widths)))))


def norm_of_rows(values: Tensor, q: float) -> Tensor:
    """||values||_q over the last dimension, without overflow; values are not negative."""
    largest = values.amax(-1)
    if math.isinf(q):
        return largest
    safe = torch.where(largest > 0.0, largest, 1.0)
    if q == 1.0:
        return values.sum(-1)
    return safe * ((values / safe[..., None]) ** q).sum(-1) ** (1.0 / q) * (largest > 0.0)


class Relaxed:
    """Some points, and the convex bound of how far their scores can fall, at one radius.

    A *vertex* is a unit with all of the radius injected into it, up or down. `falls[m]` holds the
    bound at the vertices of layer m, without the lines of helpful hinges: (rows, kinds, units). The
    kinds are up and down; for p = 1 twice, with today's lever and with the largest it can get.
    `toward[m, j]` holds how far a vertex may move the units of layer j away from their kinks, which
    is what the lines cost: (rows, units of j, kinds, units of m), and (rows, kinds, units) for
    j = m.
    """

    def __init__(
        self, plain: Plain, x: Tensor, radius: float, sides: list[Tensor] | None = None
    ) -> None:
        self.plain, self.radius, self.sides = plain, radius, sides
        self._refer_to(x)
        self.falls: dict[int, Tensor] = {}
        self.toward: dict[tuple[int, int], Tensor] = {}
        self._hinges: dict[tuple[int, int], tuple[Tensor, Tensor | None]] = {}
        self.factors: dict[int, Tensor] = {}
        self._relax()

    # The network that everything is relative to: today's, with some ReLUs held open or shut

    def _refer_to(self, x: Tensor) -> None:
        plain = self.plain
        self.z: list[Tensor] = []
        self.h = [x]
        self.tilt: list[Tensor] = []  # slope of each activation at the point
        for layer, weight in enumerate(plain.weights):
            z = self.h[-1] @ weight.T + plain.biases[layer]
            self.z.append(z)
            if layer < plain.last:
                h, tilt = self.activate(layer, z)
                self.h.append(h)
                self.tilt.append(tilt)
        self.score = self.z[-1][:, 0]

    def activate(self, layer: int, z: Tensor) -> tuple[Tensor, Tensor]:
        kind = self.plain.activations[layer]
        if kind == RELU:
            open_ = z > 0.0
            if self.sides is not None:
                side = self.sides[layer]
                open_ = torch.where(side == 0, open_, side > 0)
            return torch.where(open_, z, 0.0), open_.to(z)
        if kind == TANH:
            h = torch.tanh(z)
            return h, 1.0 - h * h
        if kind == LOGISTIC:
            h = torch.sigmoid(z)
            return h, h * (1.0 - h)
        return z, torch.ones_like(z)

    def is_free(self, layer: int) -> Tensor | None:
        """Which ReLUs of a layer are not held open or shut; None: all are free."""
        return None if self.sides is None else self.sides[layer] == 0

    # The bound, layer by layer

    def _relax(self) -> None:
        plain = self.plain
        self.slopes_to: dict[tuple[int, int], Tensor] = {}  # of z_i in h_j
        self.sources: list[int] = []
        growth = self.h[0].abs()  # the largest that the inputs of a layer can get
        self.least_levers: dict[int, Tensor] = {}
        for i in range(plain.last + 1):
            self._slopes(i)
            if plain.changes(i):
                self.factors[i] = self._factor(i, growth)
                self.sources.append(i)
            up, down = self._moves(i)
            if i == plain.last:
                self.falls = {m: -down[m][:, 0] for m in self.sources if m < i}
                if plain.changes(i):
                    self.falls[i] = -self.factors[i][:, :, None]
                return
            reach = self._reach(i, up), self._reach(i, {m: -down[m] for m in down})
            self._bend(i, up, down, reach)
            growth = self._growth(i, reach)

    def _slopes(self, i: int) -> None:
        plain = self.plain
        if i == 0:
            return
        weight = plain.weights[i]
        self.slopes_to[i, i - 1] = weight[None]
        through = weight * self.tilt[i - 1][:, None, :]
        for j in range(i - 1):
            self.slopes_to[i, j] = through @ self.slopes_to[i - 1, j]

    def _factor(self, layer: int, growth: Tensor) -> Tensor:
        """What is injected at the vertices of a layer: (rows, kinds)."""
        most = self.radius * self.plain.lever(layer, growth)
        if not self.grows(layer):
            return torch.stack([most, -most], 1)
        least = self.radius * self.plain.lever(layer, self.h[layer])
        most = torch.maximum(least, most)
        return torch.stack([least, -least, most, -most], 1)

    def grows(self, layer: int) -> bool:
        """Whether the lever of a layer is known to be a convex function of earlier injections.

        For p = 1 it is then, and what earlier layers spend of the radius this one cannot.
        """
        earlier = any(self.plain.changes(m) for m in range(layer))
        convex = layer > 0 and self.plain.activations[layer - 1] not in (TANH, LOGISTIC)
        return self.plain.p == 1.0 and earlier and convex

    def _moves(self, i: int) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        """How far the vertices of each earlier layer move the units of layer i, at most and least.

        (rows, units, kinds, units of the other layer)
        """
        up, down = {}, {}
        for m in self.sources:
            if m == i:
                continue
            factor = self.factors[m][:, None, :, None]
            line = (self.slopes_to[i, m] * self.tilt[m][:, None, :])[:, :, None, :] * factor
            more, less = self._hinge_moves(i, m)
            up[m], down[m] = line + more, line - less
        return up, down

    def _hinge_moves(self, i: int, m: int) -> tuple[Tensor, Tensor]:
        """What the hinges of layers m to i - 1 add to the units of layer i at most, up and down."""
        more: Any = 0.0
        less: Any = 0.0
        for j in range(m, i):
            slopes = self.slopes_to[i, j]
            rising, falling = slopes.clamp_min(0.0), (-slopes).clamp_min(0.0)
            raised, lowered = self._hinges[m, j]
            more, less = more + _carry(rising, raised), less + _carry(falling, raised)
            if lowered is not None:
                more, less = more + _carry(falling, lowered), less + _carry(rising, lowered)
        return more, less

    def _reach(self, i: int, moves: dict[int, Tensor]) -> Tensor:
        """How far the units of layer i can move in one direction, over the whole ball."""
        rows, width = self.z[i].shape
        parts = [move[:, :, -2:].amax(2).clamp_min(0.0) for move in moves.values()]
        if i in self.factors:
            parts.append(self.factors[i][:, -2][:, None, None].expand(rows, width, 1))
        if not parts:
            return torch.zeros_like(self.z[i])
        return norm_of_rows(torch.cat(parts, 2), self.plain.q)

    def _bend(
        self,
        i: int,
        up: dict[int, Tensor],
        down: dict[int, Tensor],
        reach: tuple[Tensor, Tensor],
    ) -> None:
        """Bound what the activations of layer i add to their lines, at every vertex."""
        kind, z, tilt = self.plain.activations[i], self.z[i], self.tilt[i]
        if kind == RELU:
            cone = self._relu_cone(i, reach)
        elif kind in (TANH, LOGISTIC):
            cone = chord_cone(kind, z, self.h[i + 1], tilt, reach)
        else:
            cone = None
        for m in self.sources:
            if m == i:  # a vertex moves its own unit alone, by what is injected
                factor = self.factors[m][:, :, None]
                above = below = factor.expand(-1, -1, z.shape[1])
                unit: Any = (slice(None), None)
            else:
                above, below = up[m], down[m]
                unit = (slice(None), slice(None), None, None)
            if cone is None:
                self._hinges[m, i] = torch.zeros_like(above), None
            else:
                self._hinges[m, i] = cone.at(above, below, unit)
            if kind == RELU:
                open_ = tilt[unit] > 0.0
                self.toward[m, i] = torch.where(open_, above, -below)

    def _relu_cone(self, i: int, reach: tuple[Tensor, Tensor]) -> Cone:
        """The hinge of each ReLU: itself for p = 1, the chord up to its reach otherwise."""
        z, open_ = self.z[i], self.tilt[i] > 0.0
        knot, steep = z.abs(), torch.ones_like(z)
        if self.plain.p != 1.0:
            far = torch.where(open_, reach[1], reach[0])
            safe = torch.where(far > 0.0, far, 1.0)
            steep = (far - knot).clamp_min(0.0) / safe
            knot = torch.zeros_like(z)
        free = self.is_free(i)
        if free is not None:
            steep = steep * free
        return Cone(torch.where(open_, 0.0, steep), torch.where(open_, steep, 0.0), knot)

    def _growth(self, i: int, reach: tuple[Tensor, Tensor]) -> Tensor:
        """The largest size of the outputs of layer i over the whole ball."""
        top, bottom = self.z[i] + reach[0], self.z[i] - reach[1]
        kind = self.plain.activations[i]
        if kind == RELU:
            return top.clamp_min(0.0)
        if kind == TANH:
            top, bottom = torch.tanh(top), torch.tanh(bottom)
        elif kind == LOGISTIC:
            top, bottom = torch.sigmoid(top), torch.sigmoid(bottom)
        return torch.maximum(top.abs(), bottom.abs())

    # From the vertices to the ball

    def most(self, lines: Lines) -> Tensor:
        """How far the score can fall, at most, with these lines under the helpful hinges."""
        falls = {m: self.falls[m] + lines.at_vertices(self, m) for m in self.sources}
        base = lines.base(self)
        if not self.sources:
            return base
        if self.plain.p == 1.0:
            return base + self._over_shares(falls)
        single = [falls[m].amax(1).clamp_min(0.0) for m in self.sources]
        return base + norm_of_rows(torch.cat(single, 1), self.plain.q)

    def _over_shares(self, falls: dict[int, Tensor]) -> Tensor:
        """Share the radius among the layers as it hurts most: levers grow by what others spend.

        With a share s_l in layer l, the fall is at most ``sum_l s_l (f_l + g_l sum_(m<l) s_m)``,
        where f_l is that at today's lever and f_l + g_l that at the largest. The largest value of
        such a quadratic function over all shares is at most its largest Bernstein coefficient of
        any degree, which is found by adding layer after layer.
        """
        spent = torch.arange(_SHARES + 1, device=self.score.device)
        before, here = spent[:, None], spent[None, :]
        total, beyond = (before + here).clamp_max(_SHARES), before + here > _SHARES
        best = torch.full((len(self.score), _SHARES + 1), -math.inf).to(self.score)
        best[:, 0] = 0.0
        for m in self.sources:
            fall = falls[m][:, :2].amax((1, 2))[:, None, None]
            grown = (falls[m][:, -2:].amax((1, 2))[:, None, None] - fall).clamp_min(0.0)
            gain = here * fall / _SHARES + before * here * grown / (_SHARES * (_SHARES - 1))
            reached = (best[:, :, None] + gain).masked_fill(beyond, -math.inf).flatten(1)
            places = total.flatten().expand_as(reached)
            best = torch.full_like(best, -math.inf).scatter_reduce(1, places, reached, "amax")
        return best.amax(1)

    def rounding(self) -> Tensor:
        """More than rounding can do to the score and to the bound of its fall.

        All that was added up, with every number replaced by its size, and the roundings on the
        longest way through it; `docs/networks.md` counts them.
        """
        plain = self.plain
        size = self.h[0].abs()
        moved = torch.zeros_like(size)
        for i, weight in enumerate(plain.weights):
            inputs = size if i == 0 else 3.0 * moved + size
            most = self.factors[i].amax(1) if i in self.factors else torch.zeros_like(self.score)
            moved = (inputs if i else moved) @ weight.abs().T + most[:, None]
            size = size @ weight.abs().T + plain.biases[i].abs()
            if i < plain.last and plain.activations[i] in (TANH, LOGISTIC):
                size = size.clamp_min(1.0)
        roundings = 8.0 * (sum(plain.widths) + plain.weights[0].shape[1] + 32 * len(plain.weights))
        return roundings * _UNIT * (size + 2.0 * moved)[:, 0]


@dataclass(frozen=True, eq=False)
class Cone:
    """What an activation adds to its line: ``up * (t - knot)_+ + down * (-t - knot)_+`` at most.

    `less_up` and `less_down`: what it can take away, at most, likewise but without a knot; None:
    nothing.
    """

    up: Tensor
    down: Tensor
    knot: Tensor
    less_up: Tensor | None = None
    less_down: Tensor | None = None

    def at(self, above: Tensor, below: Tensor, unit: Any) -> tuple[Tensor, Tensor | None]:
        """Return both where units move by something between `below` and `above`."""
        raised = self.up[unit] * (above - self.knot[unit]).clamp_min(0.0)
        raised = raised + self.down[unit] * (-below - self.knot[unit]).clamp_min(0.0)
        if self.less_up is None or self.less_down is None:
            return raised, None
        lowered = self.less_up[unit] * above.clamp_min(0.0)
        return raised, lowered + self.less_down[unit] * (-below).clamp_min(0.0)


def chord_cone(kind: str, z: Tensor, h: Tensor, tilt: Tensor, reach: tuple[Tensor, Tensor]) -> Cone:
    """The cone of chords of tanh or the logistic function, from z as far as its unit can move.

    The slope of a chord is a mean of the derivative, which rises up to 0 and falls from there: so
    the least one leads to an end, or is the derivative at z itself, and none exceeds the largest
    derivative on the way.
    """

    def value(at: Tensor) -> Tensor:
        return torch.tanh(at) if kind == TANH else torch.sigmoid(at)

    def derivative(at: Tensor) -> Tensor:
        there = value(at)
        return 1.0 - there * there if kind == TANH else there * (1.0 - there)

    def slopes(end: Tensor) -> tuple[Tensor, Tensor]:
        far = end - z
        safe = torch.where(far == 0.0, 1.0, far)
        chord = torch.where(far == 0.0, tilt, (value(end) - h) / safe)
        nearest = torch.where(z * end <= 0.0, 0.0, torch.where(z.abs() < end.abs(), z, end))
        return torch.minimum(tilt, chord), torch.maximum(tilt, derivative(nearest))

    least_up, most_up = slopes(z + reach[0])
    least_down, most_down = slopes(z - reach[1])
    return Cone(
        most_up - tilt, tilt - least_down, torch.zeros_like(z), tilt - least_up, most_down - tilt
    )


def _carry(slopes: Tensor, hinges: Tensor) -> Tensor:
    """Carry hinges of a layer to the units of another: (rows, units, kinds, units of the source).

    Hinges at the vertices' own layer come without the dimension of its units.
    """
    if hinges.dim() == 3:
        return slopes[:, :, None, :] * hinges[:, None]
    rows, units, kinds, of = hinges.shape
    return (slopes @ hinges.reshape(rows, units, kinds * of)).reshape(rows, -1, kinds, of)


@dataclass(frozen=True, eq=False)
class Lines:
    """Multipliers of the lines under helpful hinges, for each ReLU of each layer: (rows, units).

    A ReLU that is open, ``z + t >= 0``, adds ``multiplier * (z + t)`` to the bound of the fall, and
    one that is shut takes it away. For a free ReLU this is a line under its hinge while the
    multiplier is at most the slope of the score in its output; where it is held open or shut,
    what is added is not negative for any multiplier.
    """

    multipliers: dict[int, Tensor]

    def base(self, relaxed: Relaxed) -> Tensor:
        """What they add where nothing is injected."""
        total = torch.zeros_like(relaxed.score)
        for j, multiplier in self.multipliers.items():
            total = total + (multiplier * _room(relaxed, j)).sum(1)
        return total

    def at_vertices(self, relaxed: Relaxed, m: int) -> Tensor:
        """What they add at the vertices of layer m, beyond that: (rows, kinds, units)."""
        total = torch.zeros_like(relaxed.falls[m])
        for j, multiplier in self.multipliers.items():
            if j == m:
                total = total + multiplier[:, None, :] * relaxed.toward[m, j]
            elif j > m:
                toward = relaxed.toward[m, j]
                flat = multiplier[:, None, :] @ toward.flatten(2)
                total = total + flat.reshape(total.shape)
        return total


def _room(relaxed: Relaxed, layer: int) -> Tensor:
    """How far each ReLU is from its kink, on its side."""
    z = relaxed.z[layer]
    return torch.where(relaxed.tilt[layer] > 0.0, z, -z)


def choose_lines(relaxed: Relaxed) -> Lines:
    """Choose the lines that prove most, nearly: subgradient steps of Polyak's length.

    Any choice is sound. What is aimed at is the true fall where the bound is greatest.
    """
    units = {j: unit for j, unit in _steepest(relaxed).items() if bool((unit > 0.0).any())}
    best = Lines({j: torch.zeros_like(unit) for j, unit in units.items()})
    if not units or not relaxed.sources:
        return best
    shares = {j: torch.zeros_like(unit) for j, unit in units.items()}
    least = torch.full_like(relaxed.score, math.inf)
    aim = torch.zeros_like(least)
    for step in range(_STEPS + 1):
        lines = Lines({j: units[j] * shares[j] for j in units})
        fall, binding = _fall_and_binding(relaxed, lines)
        better = fall < least
        least = torch.where(better, fall, least)
        for j in units:
            best.multipliers[j][better] = lines.multipliers[j][better]
        if step < _STEPS:
            aim = torch.maximum(aim, _true_fall(relaxed, binding))
            _step(relaxed, shares, _slopes_in(relaxed, binding, units), fall - aim)
    return best


def _step(
    relaxed: Relaxed, shares: dict[int, Tensor], slopes: dict[int, Tensor], wanted: Tensor
) -> None:
    """Move the shares so that the fall, were it linear, would be less by what is wanted."""
    size = torch.zeros_like(wanted)
    caps = {}
    for j, slope in slopes.items():
        free = relaxed.is_free(j)
        caps[j] = torch.ones_like(slope)
        if free is not None:
            caps[j][~free] = math.inf
        stuck = ((shares[j] <= 0.0) & (slope > 0.0)) | ((shares[j] >= caps[j]) & (slope < 0.0))
        slopes[j] = slope.masked_fill(stuck, 0.0)
        size = size + (slopes[j] ** 2).sum(1)
    length = wanted.clamp_min(0.0) / torch.where(size > 0.0, size, 1.0)
    for j, slope in slopes.items():
        shares[j] = (shares[j] - length[:, None] * slope).clamp_min(0.0).minimum(caps[j])


def _steepest(relaxed: Relaxed) -> dict[int, Tensor]:
    """The steepest line under the hinge of each free ReLU; for others a unit to step in."""
    steepest = {}
    for j, kind in enumerate(relaxed.plain.activations):
        if kind == RELU:
            slope = relaxed.slopes_to[relaxed.plain.last, j][:, 0].expand_as(relaxed.z[j])
            steepest[j] = slope.clamp_min(0.0)
            free = relaxed.is_free(j)
            if free is not None:
                usual = slope.abs().mean(1, keepdim=True)
                steepest[j] = torch.where(free, steepest[j], slope.abs() + usual)
    return steepest


def _fall_and_binding(relaxed: Relaxed, lines: Lines) -> tuple[Tensor, dict[int, Tensor]]:
    """The fall at today's levers, and how much of each vertex is in it: (rows, up or down, units).

    For p = 1 one vertex binds; for others all do, as Hoelder's inequality has them.
    """
    q = relaxed.plain.q
    falls = {m: (relaxed.falls[m] + lines.at_vertices(relaxed, m))[:, :2] for m in relaxed.sources}
    single = torch.cat([fall.amax(1) for fall in falls.values()], 1).clamp_min(0.0)
    norm = norm_of_rows(single, q)
    if math.isinf(q):
        weight = torch.zeros_like(single).scatter_(1, single.argmax(1, keepdim=True), 1.0)
    else:
        weight = (single / torch.where(norm > 0.0, norm, 1.0)[:, None]) ** (q - 1.0)
    weight = weight * (single > 0.0)
    binding = {}
    begin = 0
    for m, fall in falls.items():
        own = weight[:, None, begin : begin + fall.shape[2]]
        binding[m] = torch.zeros_like(fall).scatter_(1, fall.argmax(1, keepdim=True), own)
        begin += fall.shape[2]
    return lines.base(relaxed) + norm, binding


def _slopes_in(
    relaxed: Relaxed, binding: dict[int, Tensor], units: dict[int, Tensor]
) -> dict[int, Tensor]:
    """Slopes of the fall in the shares that the lines have of their units."""
    slopes = {}
    for j, unit in units.items():
        slope = _room(relaxed, j)
        for m, weight in binding.items():
            if j == m:
                slope = slope + (weight * relaxed.toward[m, j][:, :2]).sum(1)
            elif j > m:
                toward = relaxed.toward[m, j][:, :, :2].flatten(2)
                slope = slope + (toward @ weight.flatten(1)[:, :, None])[:, :, 0]
        slopes[j] = slope * unit
    return slopes


def _true_fall(relaxed: Relaxed, binding: dict[int, Tensor]) -> Tensor:
    """How far the score itself falls when the binding vertices are injected together."""
    plain = relaxed.plain
    h = relaxed.h[0]
    for layer, weight in enumerate(plain.weights):
        z = h @ weight.T + plain.biases[layer]
        if layer in binding:
            injected = binding[layer] * relaxed.factors[layer][:, :2, None]
            z = z + injected.sum(1)
        if layer < plain.last:
            h, _ = relaxed.activate(layer, z)
    return relaxed.score - z[:, 0]


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

    def __init__(self, folded: Network, plain: Plain, radius: float) -> None:
        self.folded, self.plain, self.radius = folded, plain, radius

    @classmethod
    def of(cls, network: Network, robust_to: NormBall) -> Prover:
        """Read a network and a ball; refuse, by name, what cannot be proven."""
        folded = fold_network(network)
        scales = tensor_scales(folded, robust_to)
        return cls(folded, Plain.of(folded, robust_to, scales), robust_to.radius)

    def lower(self, points: Any) -> Floats:
        """Return a score that no network of the ball goes below, for each (encoded) point.

        Examples
        --------
        See `Prover`.
        """
        x = self.folded.tensor(np.atleast_2d(np.asarray(points, dtype=np.float64)))
        scores = np.empty(len(x))
        at_once = self.plain.rows_in(MEMORY)
        with torch.inference_mode():
            for begin in range(0, len(x), at_once):
                piece = slice(begin, begin + at_once)
                scores[piece] = self._lower(x[piece]).cpu().numpy()
        return scores

    def slope(self, points: Any) -> tuple[Floats, Floats]:
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
        x = self.folded.tensor(np.atleast_2d(np.asarray(points, dtype=np.float64)))
        slopes, scores = np.empty(x.shape), np.empty(len(x))
        at_once = max(1, self.plain.rows_in(MEMORY) // 2)
        for begin in range(0, len(x), at_once):
            piece = slice(begin, begin + at_once)
            point = x[piece].clone().requires_grad_()
            score = self._lower(point)
            slopes[piece] = torch.autograd.grad(score.sum(), point)[0].cpu().numpy()
            scores[piece] = score.detach().cpu().numpy()
        return slopes, scores

    def _lower(self, x: Tensor) -> Tensor:
        relaxed = Relaxed(self.plain, x, self.radius)
        with torch.no_grad():
            lines = choose_lines(self._at_next_rung(relaxed, x.detach()))
        none = Lines({})
        most = torch.minimum(relaxed.most(lines), relaxed.most(none))
        return relaxed.score - most - relaxed.rounding()

    def _at_next_rung(self, relaxed: Relaxed, x: Tensor) -> Relaxed:
        """The same points at the radius that lines are chosen for."""
        if self.radius == 0.0:
            return relaxed
        rung = 2.0 ** (math.ceil(math.log2(self.radius) * _RUNGS) / _RUNGS)
        return relaxed if rung == self.radius else Relaxed(self.plain, x, rung)
