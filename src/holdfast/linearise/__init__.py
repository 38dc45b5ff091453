"""Linear scores that stand for a model around a point: exactly, or as a surrogate."""

from holdfast.linearise.base import LINEARISERS, Lineariser, get_lineariser

__all__ = ["LINEARISERS", "Lineariser", "get_lineariser"]
