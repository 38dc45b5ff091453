"""A `Scorecard` of optbinning: its binning process, and the linear classifier behind it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def split_scorecard(card: Any, where: str) -> tuple[Any, Any]:
    """Split a `Scorecard` into what makes weights of evidence, and its own classifier."""
    if not card._is_fitted:
        here = f"{where}: " if where else ""
        raise ValueError(f"{here}the model {type(card).__name__} is not fitted: it has no points")
    return _process_of(card), card.estimator_


def _process_of(card: Any) -> Any:
    """Return its binning process, which is told what the card makes of codes and missing values."""
    process = copy.copy(card.binning_process_)
    names = list(process.variable_names)
    own = process.binning_transform_params or {}
    said = {"metric_special": card._metric_special, "metric_missing": card._metric_missing}
    process.binning_transform_params = {name: {**said, **own.get(name, {})} for name in names}
    process.feature_names_in_ = np.array(names, dtype=object)
    process.n_features_in_ = len(names)
    return process
