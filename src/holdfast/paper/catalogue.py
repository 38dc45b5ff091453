"""The methods and linearisations of the paper's experiments, by name."""

from __future__ import annotations

from typing import Any

from holdfast.machinery.settings import make
from holdfast.methods.base import Method
from holdfast.methods.catalogue import METHODS
from holdfast.models.linearise import LINEARISERS, Lineariser
from holdfast.paper.algorithm1 import Algorithm1
from holdfast.paper.algorithm2 import Algorithm2
from holdfast.paper.lime_as_published import LimeAsPublished

PAPER_METHODS: dict[str, type[Method]] = {
    **METHODS,
    **{kind.name: kind for kind in (Algorithm1, Algorithm2)},
}
PAPER_LINEARISERS: dict[str, type[Lineariser]] = {
    **LINEARISERS,
    LimeAsPublished.name: LimeAsPublished,
}


def paper_method(name: str, settings: dict[str, Any]) -> Method:
    """Return a method of the paper's experiments."""
    return make("method", PAPER_METHODS, name, settings)


def paper_lineariser(name: str) -> Lineariser:
    """Return a linearisation of the paper's experiments."""
    return make("linearise", PAPER_LINEARISERS, name, {})
