"""What another model makes of people: whether it approves them, and with which probability."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.evaluate.scores import model_score
from holdfast.machinery.numbers import Floats
from holdfast.models import Model, as_model
from holdfast.models.base import accepts, read_encoded
from holdfast.problem.losses import Loss

if TYPE_CHECKING:
    import pandas as pd


class Judgement(NamedTuple):
    """What a model makes of some people; where it cannot read one, it approves of nothing."""

    is_approved: NDArray[np.bool_]
    probability: Floats  # NaN where the model gives none
    is_read: NDArray[np.bool_]


class Judge:
    """A model that did not give the advice, and is asked about it.

    Parameters
    ----------
    model : object
        See `holdfast.models.as_model`.
    favorable_class : label
        The class that people want.
    """

    def __init__(self, model: Any, favorable_class: Any) -> None:
        self.fitted = model
        self.model: Model = as_model(model, favorable_class=favorable_class)
        self.loss: Loss = self.model.choose_loss(None)

    @property
    def threshold(self) -> float:
        """The probability from which on it approves; NaN if it gives none."""
        return float(self.loss.probability(self.model.cutoff))

    def check_columns(self, names: list[str]) -> None:
        """Refuse a model that reads columns which people do not have; all are listed."""
        wanted = getattr(self.fitted, "feature_names_in_", None)
        missing = [str(name) for name in (() if wanted is None else wanted) if name not in names]
        if missing:
            raise ValueError(
                f"the model reads columns that the recourse file does not have: "
                f"{', '.join(missing)}; it has {', '.join(names)}"
            )

    def judge(self, people: pd.DataFrame) -> Judgement:
        """Ask it about people, in raw units."""
        score = np.full(len(people), np.nan)
        if len(people):
            # no row that can be read is an answer too: the columns are all there
            with contextlib.suppress(ValueError):
                encoded = read_encoded("the people", self.model, people, usable_only=True)
                score = model_score(self.model, np.asarray(encoded, dtype=np.float64))
        with np.errstate(invalid="ignore"):
            approved = accepts(self.model, score)
        return Judgement(approved, self.loss.probability(score), np.isfinite(score))
