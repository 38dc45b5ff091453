"""Linear scores that stand for a model around a point: exactly, or as a surrogate."""

from holdfast.models.linearise.base import Lineariser
from holdfast.models.linearise.catalogue import LINEARISERS, get_lineariser
from holdfast.models.linearise.gradients import Gradient, SmoothGrad
from holdfast.models.linearise.lime import Lime

__all__ = [
    "LINEARISERS",
    "Gradient",
    "Lime",
    "Lineariser",
    "SmoothGrad",
    "get_lineariser",
]
