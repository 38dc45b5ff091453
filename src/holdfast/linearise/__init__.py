"""Linear scores that stand for a model around a point: exactly, or as a surrogate."""

from holdfast.linearise.base import Lineariser
from holdfast.linearise.catalogue import LINEARISERS, get_lineariser
from holdfast.linearise.gradients import Gradient, SmoothGrad
from holdfast.linearise.lime import Lime
from holdfast.linearise.lime_as_published import LimeAsPublished

__all__ = [
    "LINEARISERS",
    "Gradient",
    "Lime",
    "LimeAsPublished",
    "Lineariser",
    "SmoothGrad",
    "get_lineariser",
]
