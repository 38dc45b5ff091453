"""A `Scorecard` of optbinning: the weights of evidence of its bins, and a linear classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.models.encoding.rules import ColumnRule


class EvidenceColumns:
    """The columns that the classifier of a scorecard reads, one for each selected variable.

    The scorecard says what becomes of special codes and missing values; its binning process alone
    would not know.
    """

    def __init__(self, card: Any) -> None:
        self._card = card
        names = [str(name) for name in card.binning_process_.variable_names]
        self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def transform(self, X: Any) -> Any:
        """Return the weights of evidence of raw rows."""
        card = self._card
        return card.binning_process_.transform(
            X[list(self.feature_names_in_)],
            metric_special=card._metric_special,
            metric_missing=card._metric_missing,
        )

    def holdfast_rules(self) -> list[ColumnRule]:
        """Say what becomes of each column: a number in bins, a category, or nothing."""
        process = self._card.binning_process_
        chosen = set(process.get_support(names=True))
        return [
            _rule(process.get_binned_variable(name))
            if name in chosen
            else ColumnRule(edges=(), width=0, takes_missing=True)
            for name in self.feature_names_in_
        ]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the columns as the variables."""
        return np.array(self._card.binning_process_.get_support(names=True), dtype=object)


def _rule(binning: Any) -> ColumnRule:
    codes = binning.special_codes
    if isinstance(codes, dict):
        codes = [code for some in codes.values() for code in np.atleast_1d(some).tolist()]
    codes = [] if codes is None else list(codes)
    if binning.dtype == "numerical":
        edges = tuple(float(split) for split in binning.splits)
        specials = tuple(float(code) for code in codes)
        return ColumnRule(edges=edges, takes_missing=True, specials=specials)
    levels = [level for group in binning.splits for level in np.asarray(group).tolist()]
    return ColumnRule(levels=tuple(levels), takes_missing=True, takes_unknown=True)


def split_scorecard(card: Any, where: str) -> tuple[EvidenceColumns, Any]:
    """Split a `Scorecard` into its bins and its own classifier."""
    here, name = f"{where}: " if where else "", type(card).__name__
    if not card._is_fitted:
        raise ValueError(f"{here}the model {name} is not fitted: it has no estimator_")
    return EvidenceColumns(card), card.estimator_
