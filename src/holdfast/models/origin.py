"""The fitted object that a model was read out of: it encodes, and it is asked itself."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.models.calibrator import Calibrator
from holdfast.models.encoding.features import Category, Number, RawFeature
from holdfast.models.encoding.unwrap import AGREEMENT, FittedStep, name_of, skipped

_AGREEMENT_OF_SINGLES = 1e-5  # of numbers in single precision


class Said(NamedTuple):
    """What a fitted object itself says of some rows; None where it has no such method."""

    score: Floats | None
    probability: Floats | None
    accepted: NDArray[np.bool_] | None


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a model comes from.

    Attributes
    ----------
    whole : object
        What was given, with all its wrappings.
    steps : list of (where, step)
        The encoders that lead to the columns in which recourse is found.
    rest : list of (where, step)
        What stands between those columns and the classifier, and is computed anew for each point.
    where, last : str, object
        The classifier, and where it stands.
    classes : list
        Its two classes.
    favorable_position : int
        Position of the favourable one.
    factor : float
        Our score for a unit of its decision function: -1 where the first class is favourable.
    cutoff : float
        The decision function's own cutoff, which is 0 in our score (for a margin).
    calibrator : Calibrator or None
        What makes probabilities of the classifier's score, in place of the classifier itself.
    decides : bool
        Whether the decision is the classifier's own, not that of a calibrator or a threshold
        around it.
    names : list of str
        The raw columns; x0, x1, ... if these have no names.
    features : list of Number, Curve and Category
        What the columns in which recourse is found come from.
    n_columns : int
        How many of these there are.
    """

    whole: Any
    where: str
    last: Any
    classes: list[Any]
    favorable_position: int
    steps: list[FittedStep] = field(default_factory=list)
    rest: list[FittedStep] = field(default_factory=list)
    factor: float = 1.0
    cutoff: float = 0.0
    calibrator: Calibrator | None = None
    decides: bool = True
    names: list[str] = field(default_factory=list)
    features: list[RawFeature] = field(default_factory=list)
    n_columns: int = 0

    @property
    def name(self) -> str:
        """The classifier's class."""
        return name_of(self.last)

    def encode(self, X: Any) -> Any:
        """Bring raw rows to the columns in which recourse is found: a data frame."""
        import pandas as pd

        encoded = _through(self.steps, X)
        if isinstance(encoded, pd.DataFrame):
            return encoded
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(np.asarray(encoded), columns=self._names(), index=index)

    def _names(self) -> list[str] | None:
        """Names of the encoded columns; None where a step names nothing: they go by number."""
        names: Any = None
        try:
            for _, step in self.steps:
                names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            return None
        return [str(name) for name in names]

    def ask_whole(self, X: Any) -> Said:
        """Ask the whole of it about raw rows, which stay as they are."""
        return self._ask(self.whole, X)

    @property
    def hands_on(self) -> bool:
        """Whether the whole does nothing but hand what its encoders make to its classifier.

        A pipeline of scikit-learn's own does.
        """
        return _is_plain_pipeline(self.whole) and self.whole[-1] is self.last

    def ask_made(self, made: Any) -> Said:
        """Ask about what the encoders have made of rows; only where that is handed on."""
        return self._ask(self.last, made)

    def ask_last(self, encoded: Any) -> Said:
        """Ask the classifier about encoded rows."""
        names = list(
            getattr((self.rest[0][1] if self.rest else self.last), "feature_names_in_", [])
        )
        if names:
            import pandas as pd

            encoded = pd.DataFrame(np.asarray(encoded), columns=names)
        return self._ask(self.last, _through(self.rest, encoded))

    def _ask(self, fitted: Any, X: Any) -> Said:
        is_whole, score, probability, accepted = fitted is self.whole, None, None, None
        if _is_plain_pipeline(fitted):  # whichever question is asked, its steps come first: once
            X = copy.deepcopy(X)  # a step may write into what it is given
            for _, step in fitted.steps[:-1]:  # one by one: not every step can say it is fitted
                X = X if skipped(step) else step.transform(X)
            fitted = fitted[-1]

        def asked(question: str) -> Any:
            own = X if fitted is self.last else copy.deepcopy(X)  # steps may be inside of it
            return getattr(fitted, question)(own)

        if hasattr(fitted, "decision_function"):
            score = self.factor * np.asarray(asked("decision_function"), dtype=np.float64)
            score = score.reshape(-1) - self.cutoff
        if not is_whole and self.calibrator is not None:
            # the classifier's own probabilities are nobody's
            probability = None if score is None else self.calibrator.probability(score)
        elif hasattr(fitted, "predict_proba"):
            both = np.asarray(asked("predict_proba"), dtype=np.float64)
            if both.ndim == 1:  # pygam gives that of the second class
                both = np.column_stack([1.0 - both, both])
            probability = both[:, self.favorable_position]
        if (is_whole or self.decides) and hasattr(fitted, "predict"):
            accepted = np.asarray(asked("predict")) == self.classes[self.favorable_position]
        return Said(score, probability, accepted)

    def fractional(self, encoded: Floats, start: Floats) -> NDArray[np.bool_]:
        """Say which rows move a category to none of its levels."""
        wrong = np.zeros(len(encoded), dtype=bool)
        for part in self.features:
            if isinstance(part, Category):
                block = encoded[:, part.columns]
                distance = np.abs(block[:, None, :] - part.codes).max(axis=2)
                moved = (block != start[:, part.columns]).any(axis=1)
                wrong |= moved & (distance.min(axis=1) > AGREEMENT)
        return wrong

    def decode(self, X: Any, encoded: Floats, start: Floats) -> Any:
        """Return raw rows X with the changes from one encoded point of each to another."""
        import pandas as pd

        frame = X.copy() if hasattr(X, "iloc") else pd.DataFrame(np.asarray(X), columns=self.names)
        for part in self.features:
            if isinstance(part, Category):
                moved = (encoded[:, part.columns] != start[:, part.columns]).any(axis=1)
                new: Any = part.decode(encoded[moved][:, part.columns]) if moved.any() else []
            elif isinstance(part, Number):
                moved = encoded[:, part.column] != start[:, part.column]
                new = part.decode(encoded[moved, part.column])
            else:
                raise ValueError(
                    f"column {part.name!r} is transformed non-linearly by {part.where}, which "
                    "cannot be undone here"
                )
            if moved.any():
                column = frame[part.name].astype(object)
                column.iloc[np.flatnonzero(moved)] = list(new)
                frame[part.name] = column.infer_objects()
        return frame if hasattr(X, "iloc") else frame.to_numpy()


def _through(steps: list[FittedStep], X: Any) -> Any:
    X = copy.deepcopy(X) if steps else X  # a step may write into what it is given
    for _, step in steps:
        X = step.transform(X)
    return X.toarray() if hasattr(X, "toarray") else X


def agreement(*tables: Any) -> float:
    """How closely two ways of computing with these numbers must agree."""
    kinds = [np.dtype(kind) for table in tables for kind in _dtypes(table)]
    single = any(kind.kind == "f" and kind.itemsize < 8 for kind in kinds)
    return _AGREEMENT_OF_SINGLES if single else AGREEMENT


def _dtypes(table: Any) -> list[Any]:
    if hasattr(table, "dtypes"):
        return [kind for kind in table.dtypes if isinstance(kind, np.dtype)]
    return [np.asarray(table).dtype]


def _is_plain_pipeline(fitted: Any) -> bool:
    """Whether it is a pipeline of scikit-learn's own, with steps before its last; no subclass."""
    own = type(fitted).__module__, type(fitted).__qualname__
    return own == ("sklearn.pipeline", "Pipeline") and len(fitted.steps) > 1
