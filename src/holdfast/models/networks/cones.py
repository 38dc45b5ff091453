"""What activations can add to their tangents: hinges of ReLUs, cones of chords of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.models.networks.folded import LOGISTIC, RELU, TANH


def value_and_tilt(kind: str, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return an activation's value, and its slope."""
    if kind == RELU:
        is_open = z > 0.0
        return torch.where(is_open, z, 0.0), is_open.to(z)
    if kind == TANH:
        h = torch.tanh(z)
        return h, 1.0 - h * h
    if kind == LOGISTIC:
        h = torch.sigmoid(z)
        return h, h * (1.0 - h)
    return z, torch.ones_like(z)


@dataclass(frozen=True, eq=False)
class Cone:
    """What activations can add to their tangents, and take from them, when their units move.

    A unit moves by t: at most by `along`, at most by `against` the other way, both of them bounds
    for one vertex. Then the activation adds at most
    ``along * (t - knot)_+ + against * (-t - knot)_+``, and takes away at most the same with
    `less_along` and `less_against` and without the knot; None: nothing.
    """

    along: Tensor | None
    against: Tensor
    knot: Tensor | None = None
    less_along: Tensor | None = None
    less_against: Tensor | None = None

    def at(self, along: Tensor, against: Tensor, unit: Any) -> tuple[Tensor, Tensor | None]:
        """Return both at the vertices; `unit` brings what is known of units to their shape."""
        beyond = against if self.knot is None else against - self.knot[unit]
        raised = self.against[unit] * beyond.clamp_min(0.0)
        if self.along is None:
            return raised, None
        raised = raised + self.along[unit] * along.clamp_min(0.0)
        assert self.less_along is not None
        assert self.less_against is not None
        lowered = self.less_along[unit] * along.clamp_min(0.0)
        return raised, lowered + self.less_against[unit] * against.clamp_min(0.0)


def hinge_cone(room: Tensor, against: Tensor, exact: bool) -> Cone:
    """The hinges of ReLUs that are `room` away from their kinks, and can move `against` it.

    The hinge itself, or the cone of its chords, which is subadditive.
    """
    if exact:
        return Cone(None, torch.ones_like(room), room)
    safe = torch.where(against > 0.0, against, 1.0)
    return Cone(None, (against - room).clamp_min(0.0) / safe)


def chord_cone(kind: str, z: Tensor, reach: tuple[Tensor, Tensor]) -> Cone:
    """The chords of tanh or the logistic function, from z as far as its unit can move.

    The slope of a chord is a mean of the derivative, which rises up to 0 and falls from there: so
    the least one leads to an end, or is the derivative at z itself, and none exceeds the largest
    derivative on the way.
    """
    h, tilt = value_and_tilt(kind, z)

    def slopes(end: Tensor) -> tuple[Tensor, Tensor]:
        far = end - z
        chord = (value_and_tilt(kind, end)[0] - h) / torch.where(far == 0.0, 1.0, far)
        chord = torch.where(far == 0.0, tilt, chord)
        nearest = torch.where(z * end <= 0.0, 0.0, torch.where(z.abs() < end.abs(), z, end))
        steepest = value_and_tilt(kind, nearest)[1]
        return torch.minimum(tilt, chord), torch.maximum(tilt, steepest)

    least_up, most_up = slopes(z + reach[0])
    least_down, most_down = slopes(z - reach[1])
    return Cone(most_up - tilt, tilt - least_down, None, tilt - least_up, most_down - tilt)
