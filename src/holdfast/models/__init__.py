"""Adapters: whatever was fitted, as a score that a recourse can be found for."""

from holdfast.models.adapt import as_model
from holdfast.models.additive import AdditiveModel
from holdfast.models.base import BlackBox, LinearModel, Model

__all__ = ["AdditiveModel", "BlackBox", "LinearModel", "Model", "as_model"]
