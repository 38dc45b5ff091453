"""Descent of a feed-forward network's score over mixtures of vertices, for p = 1 and p = inf.

A vertex of the ball that a gradient points at is an outer product in each layer: for p = 1 one
parameter alone, for p = inf the signs of the slopes times the signs of the inputs. The descent
only ever mixes such vertices, and a full step forgets all earlier ones. So a change of 25,000
parameters is kept as a few pairs of short vectors, and never written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.networks.layers import Layers, Trace

# A step is halved when it fails. Below this share of the ball there is nothing left to gain.
LEAST_SHARE = 1e-4

# An outer product in every layer: what is put out (n, k) and what is taken in (n, m), the layers
# beside each other.
Vertex = tuple[Tensor, Tensor]


@dataclass(eq=False)
class Mixture:
    """A change for each row: the sum of share * outer product over its slots, and of a start.

    Attributes
    ----------
    share : (n, s) tensor
        0 for a free slot.
    outputs, inputs : (n, s, k) and (n, s, m) tensors
        The outer products, all layers beside each other.
    start_share : (n,) tensor
    start : list of tensors or None
        One change of each layer's matrix, the same for all rows.
    """

    layers: Layers
    share: Tensor
    outputs: Tensor
    inputs: Tensor
    start_share: Tensor
    start: list[Tensor] | None = None

    @classmethod
    def empty(cls, layers: Layers, n: int, start: list[Tensor] | None = None) -> Mixture:
        """No vertex yet; all of the start, where there is one."""
        outs, ins = layers.widths
        zeros = layers.matrices[0].new_zeros
        share = zeros(n) if start is None else zeros(n).add_(1.0)
        return cls(layers, zeros(n, 1), zeros(n, 1, sum(outs)), zeros(n, 1, sum(ins)), share, start)

    @classmethod
    def only(cls, layers: Layers, vertex: Vertex) -> Mixture:
        """Return the vertex itself."""
        mixture = cls.empty(layers, len(vertex[0]))
        return mixture.toward(vertex, torch.ones_like(mixture.start_share))

    def forwards(self, layer: int, inputs: Tensor) -> Tensor:
        """See `holdfast.networks.layers.Change`."""
        return self._added(self.inputs, self.outputs, layer, inputs, backwards=False)

    def backwards(self, layer: int, slopes: Tensor) -> Tensor:
        """See `holdfast.networks.layers.Change`."""
        return self._added(self.outputs, self.inputs, layer, slopes, backwards=True)

    def _added(
        self, near: Tensor, far: Tensor, layer: int, vector: Tensor, backwards: bool
    ) -> Tensor:
        outs, ins = self.layers.widths
        near_widths, far_widths = (outs, ins) if backwards else (ins, outs)
        felt = torch.bmm(_part(near, near_widths, layer), vector[:, :, None])[:, :, 0] * self.share
        added = torch.bmm(felt[:, None, :], _part(far, far_widths, layer))[:, 0]
        if self.start is None:
            return added
        matrix = self.start[layer] if backwards else self.start[layer].T
        return torch.addmm(added, vector * self.start_share[:, None], matrix)

    def toward(self, vertex: Vertex, step: Tensor) -> Mixture:
        """Go that share of the way to a vertex, which takes each row's first free slot."""
        free = self.share == 0.0
        if not bool(free.any(dim=1).all()):
            self._grow()
            free = self.share == 0.0
        rows = torch.arange(len(free), device=free.device)
        slot = free.to(torch.uint8).argmax(dim=1)
        # a slot without a share changes nothing: self stays what it was
        self.outputs[rows, slot], self.inputs[rows, slot] = vertex
        share = self.share * (1.0 - step)[:, None]
        share[rows, slot] = step
        start_share = self.start_share * (1.0 - step)
        start = self.start if self.start is not None and bool(start_share.any()) else None
        return replace(self, share=share, start_share=start_share, start=start)

    def _grow(self) -> None:
        """Double the slots."""
        self.share = torch.cat([self.share, torch.zeros_like(self.share)], 1)
        self.outputs = torch.cat([self.outputs, torch.zeros_like(self.outputs)], 1)
        self.inputs = torch.cat([self.inputs, torch.zeros_like(self.inputs)], 1)

    def where(self, chosen: Tensor, other: Mixture) -> Mixture:
        """Take the chosen rows from here, the rest from another one with as many slots."""
        rows = chosen[:, None]
        return replace(
            self,
            share=torch.where(rows, self.share, other.share),
            outputs=torch.where(rows[:, :, None], self.outputs, other.outputs),
            inputs=torch.where(rows[:, :, None], self.inputs, other.inputs),
        )

    def accept(self, lower: Tensor, candidate: Mixture) -> Mixture:
        """Take the shares of a candidate made by `toward` where it is lower."""
        return replace(
            self,
            share=torch.where(lower[:, None], candidate.share, self.share),
            start_share=torch.where(lower, candidate.start_share, self.start_share),
        )

    def take(self, rows: Tensor) -> Mixture:
        """Some of the rows, in no more slots than they need."""
        used = max(1, int((self.share[rows] != 0.0).sum(dim=1).max())) if len(rows) else 1
        share, slots = self.share[rows].sort(dim=1, descending=True)
        share, slots = share[:, :used], slots[:, :used]
        return replace(
            self,
            share=share,
            outputs=self.outputs[rows[:, None], slots],
            inputs=self.inputs[rows[:, None], slots],
            start_share=self.start_share[rows],
        )

    def write(self, change: Tensor, rows: Tensor) -> None:
        """Write these rows out into a (n, k) change, in the order of ``named_parameters()``."""
        outs, ins = self.layers.widths
        begin = 0
        for layer, biased in enumerate(self.layers.biased):
            far = _part(self.outputs, outs, layer) * self.share[:, :, None]
            matrix = far.transpose(1, 2) @ _part(self.inputs, ins, layer)
            if self.start is not None:
                matrix = matrix + self.start_share[:, None, None] * self.start[layer]
            weights = matrix[:, :, :-1] if biased else matrix
            tensors = [weights, matrix[:, :, -1]] if biased else [weights]
            for tensor in tensors:
                flat = tensor.reshape(len(rows), -1)
                change[rows, begin : begin + flat.shape[1]] = flat
                begin += flat.shape[1]


def _part(beside: Tensor, widths: list[int], layer: int) -> Tensor:
    begin = sum(widths[:layer])
    return beside[:, :, begin : begin + widths[layer]]


def signs_vertex(trace: Trace, radius: float) -> Vertex:
    """Return the vertex of the L-infinity ball that lowers a linear score most.

    0 where the slope is 0: parameters of silent units go back to what they were, which often
    wakes them (leaving them where they are finds far less).
    """
    return -radius * torch.cat(trace.slopes, 1).sign(), torch.cat(trace.inputs, 1).sign()


def single_vertex(layers: Layers, trace: Trace, radius: float, rank: int = 0) -> Vertex:
    """Return the change of one parameter by all of the radius that lowers a linear score most.

    Of the parameters in the order of their slopes it is that of the `rank`. A slope is a product
    of two numbers: the r largest ones are among the products of the r largest of both.
    """
    outs, ins = layers.widths
    sizes, rows, columns = [], [], []
    for layer, (slope, value) in enumerate(zip(trace.slopes, trace.inputs, strict=True)):
        far, i = slope.abs().topk(min(rank + 1, slope.shape[1]), dim=1)
        near, j = value.abs().topk(min(rank + 1, value.shape[1]), dim=1)
        shape = (len(far), far.shape[1], near.shape[1])
        sizes.append((far[:, :, None] * near[:, None, :]).flatten(1))
        rows.append((i + sum(outs[:layer]))[:, :, None].expand(shape).flatten(1))
        columns.append((j + sum(ins[:layer]))[:, None, :].expand(shape).flatten(1))
    size = torch.cat(sizes, 1)
    which = size.topk(min(rank + 1, size.shape[1]), dim=1).indices[:, -1:]
    row, column = torch.cat(rows, 1).gather(1, which), torch.cat(columns, 1).gather(1, which)
    slopes, inputs = torch.cat(trace.slopes, 1), torch.cat(trace.inputs, 1)
    moved = -radius * (slopes.gather(1, row).sign() * inputs.gather(1, column).sign())
    return (
        torch.zeros_like(slopes).scatter_(1, row, moved),
        torch.zeros_like(inputs).scatter_(1, column, 1.0),
    )


def descend(
    layers: Layers,
    x: Tensor,
    mixture: Mixture,
    vertex: Callable[[Trace], Vertex],
    steps: int,
) -> Iterator[tuple[Tensor, Tensor, Mixture]]:
    """Lower each row's score, step by step; a step that does not lower it is halved.

    Yields the rows that are done, their scores, and their changes, until all are.
    """
    trace = layers.trace(x, mixture)
    rows = torch.arange(len(x), device=x.device)
    step = torch.ones_like(trace.score)
    for _ in range(steps):
        candidate = mixture.toward(vertex(trace), step)
        reached = layers.trace(x, candidate)
        lower = reached.score < trace.score
        mixture, trace = mixture.accept(lower, candidate), reached.where(lower, trace)
        step = torch.where(lower, (2.0 * step).clamp_max(1.0), step / 2.0)
        going = step >= LEAST_SHARE
        if not bool(going.all()):  # whoever is done leaves; the rest is packed together
            done, rest = torch.where(~going)[0], torch.where(going)[0]
            yield rows[done], trace.score[done], mixture.take(done)
            rows, x, step = rows[rest], x[rest], step[rest]
            trace, mixture = trace.take(rest), mixture.take(rest)
            if not len(rows):
                return
    yield rows, trace.score, mixture
