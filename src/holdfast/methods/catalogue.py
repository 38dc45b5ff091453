"""The methods by name."""

from __future__ import annotations

from typing import Any

from holdfast.machinery.settings import make
from holdfast.methods.base import Method
from holdfast.methods.exact import Exact
from holdfast.methods.rbr import RobustBayesian
from holdfast.methods.refine import Refine
from holdfast.methods.roar import Roar
from holdfast.methods.wachter import Wachter

METHODS: dict[str, type[Method]] = {
    kind.name: kind for kind in (Exact, Roar, RobustBayesian, Wachter, Refine)
}


def get_method(which: str | Method, settings: dict[str, Any]) -> Method:
    """Look a method up by name and give it its settings."""
    if isinstance(which, Method):
        if settings:
            raise ValueError(f"{which.name} already has its settings; leave out {sorted(settings)}")
        return which
    return make("method", METHODS, which, settings)
