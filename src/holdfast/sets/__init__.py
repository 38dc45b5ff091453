"""Sets of models, made from what one has: a fitted model and its data, or other models."""

from holdfast.sets.made import (
    bootstrap,
    ellipsoid_from_models,
    fisher,
    from_models,
    rashomon,
    sandwich,
)

__all__ = ["bootstrap", "ellipsoid_from_models", "fisher", "from_models", "rashomon", "sandwich"]
