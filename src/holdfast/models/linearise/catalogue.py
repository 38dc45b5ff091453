"""The linearisations by name."""

from __future__ import annotations

from holdfast.machinery.settings import make
from holdfast.models.linearise.base import Lineariser
from holdfast.models.linearise.gradients import Gradient, SmoothGrad
from holdfast.models.linearise.lime import Lime

LINEARISERS: dict[str, type[Lineariser]] = {
    kind.name: kind for kind in (Lime, SmoothGrad, Gradient)
}


def get_lineariser(which: str | Lineariser) -> Lineariser:
    """Look a linearisation up by name; one that carries settings is what it is."""
    return which if isinstance(which, Lineariser) else make("linearise", LINEARISERS, which, {})
