"""Branch and bound: hold a ReLU open, then shut, and prove each of both by itself."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from holdfast.machinery.numbers import Floats
from holdfast.models.networks.falls import Falls, Multipliers
from holdfast.models.networks.folded import RELU

if TYPE_CHECKING:
    from holdfast.models.networks.prover import Prover

# Steps in which lines are chosen here: fewer parts, more thoroughly
_STEPS = 60


@dataclass(order=True)
class _HeldNetworks:
    """Networks with some ReLUs held open or shut: what is proven, and what to split next."""

    proven: float
    number: int
    sides: Tensor = field(compare=False)
    unit: int = field(compare=False)  # of all units, one layer after the other; -1: none left


def split_relus(prover: Prover, x: Tensor, enough: Tensor, splits: int) -> Floats:
    """Return a better bound for each row, after so many splits, or where it is `enough`."""
    parts: list[list[_HeldNetworks]] = [[] for _ in range(len(x))]
    nothing_held = torch.zeros((len(x), sum(prover.network.widths[:-1])), dtype=torch.int8)
    nobody = [-math.inf] * len(x)
    _add(prover, parts, x, nothing_held.to(x.device), enough, list(range(len(x))), nobody)
    best = [parts[row][0].proven for row in range(len(x))]
    for _ in range(splits):
        rows, sides, least = [], [], []
        for row, heap in enumerate(parts):
            if not heap or heap[0].unit < 0 or heap[0].proven >= float(enough[row]):
                continue
            worst = heapq.heappop(heap)
            best[row] = max(best[row], worst.proven)
            for side in (1, -1):
                held = worst.sides.clone()
                held[worst.unit] = side
                rows.append(row)
                sides.append(held)
                least.append(worst.proven)
        if not rows:
            break
        _add(prover, parts, x, torch.stack(sides), enough, rows, least)
    for row, heap in enumerate(parts):
        # what is proven of all parts, and never less than was proven of fewer
        best[row] = max(best[row], min((part.proven for part in heap), default=best[row]))
    return torch.tensor(best, dtype=torch.float64).numpy()


def _add(
    prover: Prover,
    parts: list[list[_HeldNetworks]],
    x: Tensor,
    sides: Tensor,
    enough: Tensor,
    rows: list[int],
    least: list[float],
) -> None:
    """Prove new parts of rows, and put them where they belong; a part of a part is no worse."""
    which = torch.tensor(rows, device=x.device)
    proven, unit = prover.prove_part(x[which], sides, enough[which], _STEPS)
    for k, row in enumerate(rows):
        heap = parts[row]
        known = max(float(proven[k]), least[k])
        heapq.heappush(heap, _HeldNetworks(known, len(heap), sides[k], int(unit[k])))


def no_network_there(falls: Falls) -> Tensor:
    """Which rows hold a ReLU on a side that no network of the ball brings it to."""
    empty = torch.zeros_like(falls.score, dtype=torch.bool)
    for j, kind in enumerate(falls.network.activations):
        free = falls.is_free(j)
        if kind == RELU and free is not None:
            beyond = falls.room(j) + falls.reach[j][0] + falls.unit_rounding(j)
            empty |= ((beyond < 0.0) & ~free).any(1)
    return empty


def next_to_split(falls: Falls, multipliers: Multipliers) -> Tensor:
    """Return the free ReLU that matters most where the bound is greatest; -1: there is none."""
    binding = falls.binding(multipliers)
    scores = []
    for j, width in enumerate(falls.network.widths[:-1]):
        if falls.network.activations[j] != RELU:
            scores.append(falls.score.new_zeros((len(falls.score), width)))
            continue
        slope = falls.slopes[falls.network.last, j][:, 0].abs().expand_as(falls.z[j])
        matter = torch.zeros_like(falls.z[j])
        line = multipliers.get(j, matter) * falls.room(j).clamp_min(0.0)
        for m, weight in binding.items():
            if m > j:
                continue
            raised = falls.hinges[m, j][0]
            assert raised is not None
            if m == j:
                matter = matter + (weight * raised).sum(1)
            else:
                matter = matter + (raised.flatten(2) @ weight.flatten(1)[:, :, None])[:, :, 0]
        in_reach = falls.reach[j][1] > falls.room(j)
        free = falls.is_free(j)
        if free is not None:
            in_reach &= free
        beyond = (falls.reach[j][1] - falls.room(j)).clamp_min(0.0)
        # what binds comes first; where nothing does, what is in reach
        worth = slope * matter + line + 1e-6 * slope * beyond + 1e-30
        scores.append(torch.where(in_reach, worth, 0.0))
    joined = torch.cat(scores, 1) if scores else falls.score.new_zeros((len(falls.score), 1))
    value, where = joined.max(1)
    return torch.where(value > 0.0, where, -1)
