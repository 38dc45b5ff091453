"""Small random networks, and an attack on all of them at once that is independent of the proof.

A change of a layer, ``dW h' + db``, can be any vector ``v`` whose p-norm is at most that of the
change times the dual norm of ``scale * (h', 1)``. So instead of all parameters one vector ``v`` for
all units of the network is searched for, in the unit ball of p; what is found is then written out
as a change of the parameters, measured, and the changed network is run.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import holdfast
from holdfast.models.network import Network

KINDS = {"relu": nn.ReLU, "tanh": nn.Tanh, "logistic": nn.Sigmoid, "identity": nn.Identity}
APPLY = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "logistic": torch.sigmoid,
    "identity": lambda z: z,
}
NORMS = (1.0, 1.5, 2.0, 3.0, math.inf)


@dataclass(frozen=True)
class Shape:
    """What all networks of a batch have in common."""

    widths: tuple[int, ...]  # features, hidden units, 1
    activations: tuple[str, ...]
    biases: tuple[bool, ...]
    p: float

    @property
    def q(self):
        if self.p == 1.0:
            return math.inf
        return 1.0 if math.isinf(self.p) else self.p / (self.p - 1.0)


def draw_shape(rng, p=None, activations=tuple(KINDS), hidden=None):
    hidden = int(rng.integers(0, 5)) if hidden is None else hidden
    widths = (*map(int, rng.integers(1, 7, 1 + hidden)), 1)
    # as a rule ReLUs: what they do is the hardest to bound
    kinds = rng.choice(activations, hidden)
    kinds = np.where(rng.random(hidden) < 0.5, activations[0], kinds)
    biases = rng.random(hidden + 1) < 0.8
    p = NORMS[rng.integers(len(NORMS))] if p is None else p
    return Shape(widths, tuple(map(str, kinds)), tuple(map(bool, biases)), p)


@dataclass
class Networks:
    """Networks of one shape, each with its ball and with some points.

    weights: (n, out, in) for each layer; biases: (n, out), zeros where there are none; scales:
    (n, 2) for each layer; radius: (n,); points: (n, points, d).
    """

    shape: Shape
    weights: list[np.ndarray]
    biases: list[np.ndarray]
    scales: list[np.ndarray]
    radius: np.ndarray
    points: np.ndarray

    def module(self, k):
        parts = []
        for layer, weight in enumerate(self.weights):
            out, into = weight.shape[1:]
            bias = self.shape.biases[layer]
            part = nn.utils.skip_init(nn.Linear, into, out, bias=bias, dtype=torch.float64)
            with torch.no_grad():
                part.weight.copy_(torch.from_numpy(weight[k]))
                if bias:
                    part.bias.copy_(torch.from_numpy(self.biases[layer][k]))
            parts.append(part)
            if layer < len(self.weights) - 1:
                parts.append(KINDS[self.shape.activations[layer]]())
        return nn.Sequential(*parts)

    def network(self, k):
        return Network(self.module(k))

    def ball(self, k):
        scale = []
        for layer, bias in enumerate(self.shape.biases):
            scale += self.scales[layer][k, : 1 + bias].tolist()
        return holdfast.NormBall(p=self.shape.p, radius=self.radius[k], scale=scale)


def draw_networks(rng, shape, count, points=4, radius=None):
    """Draw networks; among them some with zeros, whole numbers, equal units, and dead ones."""
    layers = len(shape.widths) - 1
    weights, biases, scales = [], [], []
    for layer in range(layers):
        into, out = shape.widths[layer : layer + 2]
        weight = rng.normal(size=(count, out, into)) * 10.0 ** rng.uniform(-1, 1, (count, 1, 1))
        bias = rng.normal(size=(count, out)) * 10.0 ** rng.uniform(-1, 1, (count, 1))
        whole = rng.random(count) < 0.3  # points on kinks, and ties
        weight[whole], bias[whole] = np.round(weight[whole]), np.round(bias[whole])
        equal = rng.random(count) < 0.1
        weight[equal], bias[equal] = weight[equal, :1], bias[equal, :1]
        if layer < layers - 1:
            bias[rng.random(count) < 0.05] -= 20.0
        weight[rng.random(weight.shape) < 0.1] = 0.0
        bias = bias if shape.biases[layer] else np.zeros_like(bias)
        scale = np.ones((count, 2))
        odd = rng.random(count) < 0.5
        scale[odd] = 10.0 ** rng.uniform(-1, 1, (odd.sum(), 2))
        scale[(rng.random((count, 2)) < 0.2) & odd[:, None]] = 0.0
        if not shape.biases[layer]:
            scale[:, 1] = 0.0
        weights.append(weight), biases.append(bias), scales.append(scale)
    # of all sizes, but the most where some units can just be woken or silenced
    if radius is None:
        radius = 10.0 ** np.where(
            rng.random(count) < 0.7, rng.uniform(-1.5, 0, count), rng.uniform(-6, 1.5, count)
        )
    x = rng.normal(size=(count, points, shape.widths[0]))
    x[:, 1::4] = np.round(2 * x[:, 1::4])
    x[:, 2::4] *= 10.0 ** rng.uniform(-2, 2, (count, 1, 1))
    x[rng.random((count, points)) < 0.03] = 0.0
    radius = np.broadcast_to(radius, count).astype(float)
    return Networks(shape, weights, biases, scales, radius, x)


class Attack:
    """The lowest score that can be found for every point of every network: (n, points)."""

    def __init__(self, networks, rng, starts=8, steps=12):
        self.networks, self.shape, self.rng = networks, networks.shape, rng
        n, points, _ = networks.points.shape
        self.weights = [torch.from_numpy(w).repeat_interleave(points, 0) for w in networks.weights]
        self.biases = [torch.from_numpy(b).repeat_interleave(points, 0) for b in networks.biases]
        self.scales = [torch.from_numpy(s).repeat_interleave(points, 0) for s in networks.scales]
        self.radius = torch.from_numpy(networks.radius.copy()).repeat_interleave(points)
        self.x = torch.from_numpy(networks.points).flatten(0, 1)
        self.units = [w.shape[1] for w in self.weights]
        self.to_kink = torch.zeros(len(self.x), sum(self.units), dtype=torch.float64)
        self.today = self.score(self.to_kink[:, None], note=True)[:, 0]
        worst = self.written_out(self._search(starts, steps))
        found = worst.minimum(self.random_members()).minimum(self.today)
        self.found, self.today = (each.reshape(n, points).numpy() for each in (found, self.today))

    def norm(self, values, exponent):
        if math.isinf(exponent):
            return values.abs().amax(-1)
        largest = values.detach().abs().amax(-1, keepdim=True).clamp_min(1e-300)
        return ((values / largest).abs() ** exponent).sum(-1) ** (1 / exponent) * largest[..., 0]

    def lever(self, layer, h):
        """``radius * ||scale * (h, 1)||_q``: (n, starts)."""
        scale = self.scales[layer]
        one = scale[:, None, 1:].expand(-1, h.shape[1], -1)
        return self.radius[:, None] * self.norm(
            torch.cat([scale[:, :1, None] * h, one], -1), self.shape.q
        )

    def score(self, v, note=False):
        """Scores with v injected, in parts of the levers: (n, starts, units) to (n, starts)."""
        h = self.x[:, None].expand(-1, v.shape[1], -1)
        parts = []
        for layer, own in enumerate(torch.split(v, self.units, -1)):
            z = h @ self.weights[layer].mT + self.biases[layer][:, None]
            lever = self.lever(layer, h)[..., None]
            if note:
                parts.append(-(z / lever.clamp_min(1e-300))[:, 0])
            z = z + lever * own
            h = APPLY[self.shape.activations[layer]](z) if layer < len(self.units) - 1 else z
        if note:
            self.to_kink = torch.cat(parts, 1)
        return h[..., 0]

    def farthest(self, slope):
        """The point of the unit ball of p that goes down most along a slope."""
        if self.shape.p == 1.0:
            one = torch.zeros_like(slope)
            return one.scatter_(-1, slope.abs().argmax(-1, keepdim=True), 1.0) * -slope.sign()
        if math.isinf(self.shape.p):
            return -slope.sign()
        steep = slope.abs() / slope.abs().amax(-1, keepdim=True).clamp_min(1e-300)
        steep = steep ** (self.shape.q - 1.0) * -slope.sign()
        return steep / self.norm(steep, self.shape.p).clamp_min(1e-300)[..., None]

    def starts(self, count):
        n, units, p = len(self.x), sum(self.units), self.shape.p
        draw = torch.from_numpy(self.rng.normal(size=(n, count, units)))
        draw[:, ::2] *= torch.from_numpy(self.rng.random((n, (count + 1) // 2, units)) < 0.3)
        if math.isinf(p):
            draw = draw.sign()
        some = draw / self.norm(draw, p).clamp_min(1e-300)[..., None]
        eye = torch.eye(units, dtype=torch.float64)
        ones = torch.ones(1, units, dtype=torch.float64) / (
            1 if math.isinf(p) else units ** (1 / p)
        )
        known = torch.cat([eye, -eye, ones, -ones, 0 * ones])[None].expand(n, -1, -1)
        pairs = self.pairs(4 * count)
        return torch.cat([known, pairs, some], 1)

    def pairs(self, count):
        """Two units, mostly of two layers, which share the radius: levers grow in between."""
        n, units, p = len(self.x), sum(self.units), self.shape.p
        pair = torch.zeros(n, count, units, dtype=torch.float64)
        ones = torch.from_numpy(self.rng.integers(units, size=(2, n, count, 1)))
        signs = torch.from_numpy(self.rng.choice([-1.0, 1.0], (2, n, count, 1)))
        sizes = torch.from_numpy(self.rng.random((2, n, count, 1)))
        # every other first unit goes just as far as its kink, where it stops to help or to hurt
        to_kink = self.to_kink[:, None].expand(n, count, -1).gather(-1, ones[0]).clamp(-1.0, 1.0)
        sizes[0, :, ::2], signs[0, :, ::2] = to_kink.abs()[:, ::2], to_kink.sign()[:, ::2]
        if not math.isinf(p):
            sizes[1] = (1.0 - sizes[0] ** p).clamp_min(0.0) ** (1 / p)
        for one, size in zip(ones, signs * sizes, strict=True):
            pair.scatter_add_(-1, one, size)
        return pair / self.norm(pair, p).clamp_min(1.0)[..., None]

    def _search(self, starts, steps):
        """Go toward the vertex that the slope points at, part of the way, while it lowers."""
        v = self.starts(starts)
        with torch.no_grad():
            score = self.score(v).nan_to_num(math.inf)
        keep = score.topk(min(starts, score.shape[1]), largest=False).indices
        score = score.gather(1, keep)
        v = v.gather(1, keep[..., None].expand(-1, -1, v.shape[-1]))
        shares = torch.tensor([1.0, 0.5, 0.2, 0.05, 0.01], dtype=torch.float64)
        rows, kept = v.shape[:2]
        for _ in range(steps):
            at = v.detach().clone().requires_grad_()
            (slope,) = torch.autograd.grad(self.score(at).sum(), at)
            goal = self.farthest(slope.nan_to_num(0.0))
            with torch.no_grad():
                moved = v[:, :, None] + shares[:, None] * (goal - v)[:, :, None]
                there = self.score(moved.flatten(1, 2)).reshape(rows, kept, -1)
                least, which = there.nan_to_num(math.inf).min(-1)
                lower = least < score
                taken = moved.gather(2, which[..., None, None].expand(-1, -1, 1, v.shape[-1]))
                v = torch.where(lower[..., None], taken[:, :, 0], v)
                score = torch.where(lower, least, score)
        return v[torch.arange(rows), score.argmin(1)]

    def written_out(self, v):
        """Scores of the changed networks themselves, whose changes are measured first."""
        h, spent = self.x, []
        q, p = self.shape.q, self.shape.p
        for layer, own in enumerate(torch.split(v, self.units, -1)):
            scale = self.scales[layer]
            felt = torch.cat([scale[:, :1] * h, scale[:, 1:]], -1)  # with its sign
            if math.isinf(q):
                part = torch.zeros_like(felt)
                part.scatter_(-1, felt.abs().argmax(-1, keepdim=True), 1.0)
            elif q == 1.0:
                part = torch.ones_like(felt)
            else:
                part = (felt.abs() / felt.abs().amax(-1, keepdim=True).clamp_min(1e-300)) ** (q - 1)
                part = part / self.norm(part, p).clamp_min(1e-300)[:, None]
            part = part * torch.where(felt < 0, -1.0, 1.0)
            spent.append((own[:, :, None] * part[:, None]).flatten(1))
            sizes = torch.cat([scale[:, :1].expand_as(h), scale[:, 1:]], -1)
            change = self.radius[:, None, None] * own[:, :, None] * (part * sizes)[:, None]
            weight = self.weights[layer] + change[:, :, :-1]
            bias = self.biases[layer] + change[:, :, -1]
            z = (weight @ h[:, :, None])[:, :, 0] + bias
            h = APPLY[self.shape.activations[layer]](z) if layer < len(self.units) - 1 else z
        assert float(self.norm(torch.cat(spent, 1), p).max()) <= 1.0 + 1e-14
        return h[:, 0]

    def random_members(self, count=4):
        """The lowest score of some networks on the surface of the ball."""
        n, q = len(self.x), self.shape.p
        lowest = torch.full((n,), math.inf, dtype=torch.float64)
        for _ in range(count):
            draws = [
                torch.from_numpy(self.rng.normal(size=(*w.shape[:2], w.shape[2] + 1)))
                for w in self.weights
            ]
            if math.isinf(q):
                draws = [draw.sign() for draw in draws]
            size = self.norm(torch.cat([draw.flatten(1) for draw in draws], 1), q)
            h = self.x
            for layer, draw in enumerate(draws):
                change = draw * (self.radius / size)[:, None, None]
                weight = self.weights[layer] + change[..., :-1] * self.scales[layer][:, :1, None]
                bias = self.biases[layer] + change[..., -1] * self.scales[layer][:, 1:]
                z = (weight @ h[:, :, None])[:, :, 0] + bias
                h = APPLY[self.shape.activations[layer]](z) if layer < len(self.units) - 1 else z
            lowest = lowest.minimum(h[:, 0])
        return lowest
