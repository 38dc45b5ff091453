"""What another model makes of people: whether it approves them, and with which probability."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.evaluate.scores import model_score
from holdfast.files.people import PeopleColumns
from holdfast.machinery.numbers import Floats
from holdfast.models import LinearModel, Model, as_model
from holdfast.models.base import reaches_cutoff, read_encoded
from holdfast.models.encoding import Category, Encoding
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
    are_texts : bool
        Whether texts may stand for numbers or levels: people came from a CSV file.
    """

    def __init__(self, model: Any, favorable_class: Any, *, are_texts: bool = False) -> None:
        self._are_texts = are_texts
        self._names: Any = getattr(model, "feature_names_in_", None)
        if self._names is None:
            raise ValueError(
                "the other model does not know its columns by name; fit it on a data frame"
            )
        self._encoding: Encoding | None = None
        # what cannot be taken apart is asked as it is
        with contextlib.suppress(ValueError, TypeError):
            self._encoding = Encoding.of(model, favorable_class=favorable_class)
        self._model: Model = (
            as_model(model, favorable_class=favorable_class)
            if self._encoding is None
            else self._encoding.model
        )
        self._loss: Loss = self._model.choose_loss(None)

    @property
    def threshold(self) -> float:
        """The probability from which on it approves; NaN if it gives none."""
        return float(self._loss.probability(self._model.cutoff))

    def check_columns(self, names: list[str]) -> None:
        """Refuse a model that reads columns which people do not have; all are listed."""
        missing = [str(name) for name in self._names if name not in names]
        if missing:
            raise ValueError(
                f"the other model reads columns that the recourse file does not have: "
                f"{', '.join(missing)}; the file has {', '.join(names)}"
            )

    def judge(self, people: pd.DataFrame) -> Judgement:
        """Ask it about people, in raw units."""
        score, approved = np.full(len(people), np.nan), np.zeros(len(people), dtype=bool)
        people = self._typed(people)
        if len(people) and self._encoding is not None:
            _judge_encoded(self._encoding, people, self._loss, score, approved)
        elif len(people):
            # that no row can be read is an answer too: the columns are all there
            with contextlib.suppress(ValueError):
                encoded = read_encoded("the people", self._model, people, usable_only=True)
                score = model_score(self._model, np.asarray(encoded, dtype=np.float64))
                approved = reaches_cutoff(self._model, score)
        return Judgement(approved, self._loss.probability(score), np.isfinite(score))

    def _typed(self, people: pd.DataFrame) -> pd.DataFrame:
        """Read texts as what this model takes them for: the one that advised may not feel them."""
        import pyarrow as pa

        if not self._are_texts or self._encoding is None:
            return people
        typed = dict[str, Any]()
        for name, part in self._encoding.features.items():
            column = people[name]
            if all(value is None or value != value or isinstance(value, str) for value in column):
                levels = part.levels if isinstance(part, Category) else None
                cells = pa.array(column, pa.string(), from_pandas=True)
                typed[name] = PeopleColumns({name: levels}, are_texts=True).column(name, cells)
        return people.assign(**typed) if typed else people


def _judge_encoded(
    encoding: Encoding,
    people: pd.DataFrame,
    loss: Loss,
    score: Floats,
    approved: NDArray[np.bool_],
) -> None:
    """Write the score of everybody who can be read, and whether the model approves.

    The model itself is asked to confirm both.
    """
    reading = encoding.read(people)
    usable = np.ones(len(people), dtype=bool)
    usable[list(reading.reasons)] = False
    reading = reading.take(usable)
    refused = list(encoding.refusals(people[usable], reading)) if usable.any() else []
    if refused:
        taken = np.ones(int(usable.sum()), dtype=bool)
        taken[refused] = False
        usable[np.flatnonzero(usable)[refused]] = False
        reading = reading.take(taken)
    if usable.any():
        people, model = people[usable], encoding.model
        encoded = encoding.encode_reading(people, reading)
        encoding.compare(encoded, encoded.points, loss)
        score[usable] = found = _scores(model, encoded.points)
        approved[usable] = encoding.accepts(people, encoded.points, found, model.cutoff)


def _scores(model: Model, points: Floats) -> Floats:
    """Return scores that do not depend on who else is asked about, to the last bit."""
    if not isinstance(model, LinearModel):
        return model.score(points)
    # a product of matrices would be summed in an order that depends on how many rows there are
    return np.asarray((points * model.coef).sum(axis=1) + model.intercept)
