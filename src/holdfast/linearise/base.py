"""One signature for all linearisations, and their register."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast._numbers import Floats
from holdfast._settings import make
from holdfast.models import Model
from holdfast.surrogate import Surrogate


@dataclass(frozen=True)
class Lineariser:
    """A way to put a linear score in the place of a model around each point.

    A subclass is a frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    needs: ClassVar[str]

    def fit(self, model: Model, points: Floats, training: Floats | None, seed: int) -> Surrogate:
        """Return one linear score for each point."""
        raise NotImplementedError


LINEARISERS: dict[str, type[Lineariser]] = {}


def register(kind: type[Lineariser]) -> type[Lineariser]:
    """Put a linearisation into the register."""
    LINEARISERS[kind.name] = kind
    return kind


def get_lineariser(which: str | Lineariser, **settings: Any) -> Lineariser:
    """Look a linearisation up by name and give it its settings."""
    if isinstance(which, Lineariser):
        return which
    return make("linearise", LINEARISERS, which, settings)
