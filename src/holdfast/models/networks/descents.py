"""Descent of a plain feed-forward network's score over mixtures of vertices, row by row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.machinery.compile import kernel
from holdfast.models.networks.layers import Layers, Reals
from holdfast.models.networks.mixtures import (
    Mixture,
    aim_by_slopes,
    aim_up,
    backwards,
    begin_at_aim,
    drop_empty,
    empty,
    forwards,
    new_mixture,
    only,
    signs_vertex,
    single_vertex,
    write,
)
from holdfast.models.networks.singles import rank_singles

# A step is halved when it fails. Below this share of the ball there is nothing left to gain.
LEAST_SHARE = 1e-4
# Starts made for each row: for p = 1 the best changes of one parameter, for p = inf two aims
MADE_STARTS = 2


class Descending(NamedTuple):
    """What a thread needs for the row that it works on."""

    kept: Mixture
    tried: Reals  # the shares of the candidate
    units: Reals
    slopes: Reals
    next_units: Reals
    next_slopes: Reals


def new_row(layers: Layers, steps: int, single: bool) -> Descending:
    """Make room for a row."""
    kept = new_mixture(layers, steps + 2, single)
    vectors = [np.zeros(layers.units, layers.trained.dtype) for _ in range(4)]
    return Descending(kept, np.zeros_like(kept.share), *vectors)


@kernel
def descend_rows(
    row: Descending,
    layers: Layers,
    points: Reals,
    start: Reals,
    start_turned: Reals,
    made: bool,
    single: bool,
    radius: Any,
    steps: int,
    score: Reals,
    change: Reals,
    begin: int,
    end: int,
) -> None:
    """Descend from one start for each row; keep what is lower than `score` has.

    The start is a change of all parameters, or none where its size is 0. Or it is `made` for each
    row: for p = 1 (`single`) from the best changes of one parameter, for p = inf by waking all
    units, and by aiming each where its slope wants it. `change` has a row for each point, or no
    column.
    """
    places, moves = np.zeros((MADE_STARTS, 3), np.int64), np.zeros(MADE_STARTS)
    for i in range(begin, end):
        if made and single:
            buffers = row.units, row.slopes, row.next_units
            rank_singles(layers, points[i], *buffers, radius, places, moves)
        for k in range(MADE_STARTS if made else 1):
            empty(row.kept, start.size > 0)
            if made and single:
                only(row.kept, places[k], moves[k])
            elif made:
                if k == 0:
                    aim_up(layers, row.slopes)
                elif not aim_by_slopes(layers, radius, row.slopes):
                    continue  # all up: that was the first one
                begin_at_aim(layers, points[i], radius, row.slopes, row.kept, row.units)
            reached = descend_network(
                row, layers, points[i], start, start_turned, single, radius, steps
            )
            if reached < score[i] or np.isnan(reached):
                score[i] = reached
                if change.shape[1] > 0:
                    write(row.kept, layers, start, single, change[i])


@kernel
def descend_network(
    row: Descending,
    layers: Layers,
    x: Reals,
    start: Reals,
    start_turned: Reals,
    single: bool,
    radius: Any,
    steps: int,
) -> Any:
    """Lower the score of a row, step by step; a step that does not lower it is halved."""
    kept, tried = row.kept, row.tried
    units, slopes, next_units, next_slopes = row.units, row.slopes, row.next_units, row.next_slopes
    forwards(kept, kept.share, layers, x, start_turned, single, units)
    backwards(kept, kept.share, layers, start, single, units, slopes)
    step = 1.0
    for _ in range(steps):
        slot = kept.used[0]
        if single:
            single_vertex(layers, units, slopes, radius, kept, slot)
        else:
            signs_vertex(units, slopes, radius, kept, slot)
        for k in range(slot):
            tried[k] = kept.share[k] * (1.0 - step)
        tried[slot] = step
        tried[-1] = kept.share[-1] * (1.0 - step)
        kept.used[0] = slot + 1
        forwards(kept, tried, layers, x, start_turned, single, next_units)
        if next_units[-1] < units[-1]:
            backwards(kept, tried, layers, start, single, next_units, next_slopes)
            units, next_units = next_units, units
            slopes, next_slopes = next_slopes, slopes
            kept.share[:] = tried
            drop_empty(kept)
            step = min(2.0 * step, 1.0)
        else:
            kept.used[0] = slot
            step /= 2.0
            if step < LEAST_SHARE:
                break
    return units[-1]
