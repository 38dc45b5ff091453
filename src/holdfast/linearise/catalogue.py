"""The linearisations by name."""

from __future__ import annotations

from holdfast._settings import make
from holdfast.linearise.base import Lineariser
from holdfast.linearise.gradients import Gradient, SmoothGrad
from holdfast.linearise.lime import Lime
from holdfast.linearise.lime_as_published import LimeAsPublished

LINEARISERS: dict[str, type[Lineariser]] = {
    kind.name: kind for kind in (Lime, SmoothGrad, Gradient, LimeAsPublished)
}


def get_lineariser(which: str | Lineariser) -> Lineariser:
    """Look a linearisation up by name; one that carries settings is what it is."""
    return which if isinstance(which, Lineariser) else make("linearise", LINEARISERS, which, {})
