"""How well a model does on people whom it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats

if TYPE_CHECKING:
    import pandas as pd

N_BINS = 10


@dataclass(frozen=True, eq=False)
class Measures:
    """How well a model does on people whom it has not seen.

    Attributes
    ----------
    n_rows : int
        How many people were asked about.
    accuracy : float
        Share of right decisions, at even odds.
    base_accuracy : float
        The same of somebody who always says what is more common.
    auc : float
        Chance that of a favourable and another person the former has the higher probability.
    brier : float
        Mean squared distance between probability and outcome.
    base_brier : float
        The same of somebody who always says the overall share.
    bins : DataFrame
        People by predicted probability, in ten groups of one size: their number, their mean
        probability (`predicted`), and the share that turned out favourable (`observed`).
    """

    n_rows: int
    accuracy: float
    base_accuracy: float
    auc: float
    brier: float
    base_brier: float
    bins: pd.DataFrame

    def to_plain(self) -> dict[str, Any]:
        """Return all of it as plain numbers and lists."""
        bins = self.bins.to_dict(orient="records")
        return {**{k: v for k, v in vars(self).items() if k != "bins"}, "bins": bins}


def measure(probability: Floats, favorable: NDArray[np.bool_]) -> Measures:
    """Compare probabilities of the favourable class with what came of it.

    Examples
    --------
    >>> measure(np.array([0.2, 0.4, 0.6, 0.9]), np.array([False, True, False, True])).auc
    0.75
    """
    from sklearn.metrics import roc_auc_score

    share = float(favorable.mean())
    return Measures(
        n_rows=len(favorable),
        accuracy=float(((probability > 0.5) == favorable).mean()),
        base_accuracy=max(share, 1.0 - share),
        auc=float(roc_auc_score(favorable, probability)),
        brier=float(((probability - favorable) ** 2).mean()),
        base_brier=share * (1.0 - share),
        bins=_bins(probability, favorable),
    )


def _bins(probability: Floats, favorable: NDArray[np.bool_]) -> pd.DataFrame:
    import pandas as pd

    order = np.argsort(probability, kind="stable")
    groups = [group for group in np.array_split(order, N_BINS) if group.size]
    rows = [
        {
            "predicted": float(probability[group].mean()),
            "observed": float(favorable[group].mean()),
            "people": int(group.size),
        }
        for group in groups
    ]
    return pd.DataFrame(rows)
