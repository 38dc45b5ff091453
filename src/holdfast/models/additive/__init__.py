"""Additive models, each split into an encoder and a linear classifier behind it."""

from holdfast.models.additive.model import AdditiveModel, LinearScore
from holdfast.models.additive.points import points_of
from holdfast.models.additive.split import split_additive

__all__ = ["AdditiveModel", "LinearScore", "points_of", "split_additive"]
