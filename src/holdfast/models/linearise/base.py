"""One signature for all linearisations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.machinery.numbers import Floats
from holdfast.models import Model
from holdfast.result.surrogate import Surrogate


@dataclass(frozen=True)
class Lineariser:
    """A way to put a linear score in the place of a model around each point.

    A subclass is a frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    needs: ClassVar[str]

    def fit(self, model: Model, X: Floats, X_train: Floats | None, random_state: int) -> Surrogate:
        """Return one linear score for each point."""
        raise NotImplementedError
