"""The methods and linearisations of the paper's experiments, by name."""

from __future__ import annotations

from typing import Any

from holdfast.machinery.settings import make
from holdfast.methods.base import Method
from holdfast.methods.catalogue import METHODS
from holdfast.models.linearise import LINEARISERS, Lineariser
from holdfast.paper.algorithm1 import Algorithm1, Algorithm1AsPublished
from holdfast.paper.algorithm2 import Algorithm2
from holdfast.paper.lime_as_published import LimeAsPublished
from holdfast.paper.rbr_as_published import RobustBayesianAsPublished
from holdfast.paper.roar_as_published import RoarAsPublished

# Those of the paper alone: the product does not know them
PAPER_METHODS: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        Algorithm1,
        Algorithm2,
        Algorithm1AsPublished,
        RoarAsPublished,
        RobustBayesianAsPublished,
    )
}
PAPER_LINEARISERS: dict[str, type[Lineariser]] = {LimeAsPublished.name: LimeAsPublished}


def paper_method(name: str, settings: dict[str, Any]) -> Method:
    """Return a method of the paper's experiments: the paper's own, or one of the product's.

    Examples
    --------
    >>> paper_method("algorithm1", {"max_steps": 10})
    Algorithm1(step=2.5, max_steps=10, tolerance=1e-07)
    """
    return make("method", {**METHODS, **PAPER_METHODS}, name, settings)


def paper_lineariser(name: str) -> Lineariser:
    """Return a linearisation of the paper's experiments."""
    return make("linearise", {**LINEARISERS, **PAPER_LINEARISERS}, name, {})
