"""What every method sees of a model: a score whose positive side is the wanted class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from holdfast._numbers import Floats, read_floats


class Model:
    """A classifier of two classes, as a score: the log-odds of the wanted class.

    Attributes
    ----------
    kind : str
        ``"linear"``, ``"network"`` or ``"black box"``: what methods may ask of it.
    loss : str
        The loss of the score that the model was fitted with, by its name in `holdfast.losses`.
    encoder : object or None
        What stands before the classifier in a pipeline; recourse is found behind it.
    feature_names : list or None
        The columns that the classifier was fitted on, where it knows them.
    """

    kind: str
    loss: str = "logistic"
    encoder: Any = None
    feature_names: list[Any] | None = None

    def score(self, points: Floats) -> Floats:
        """Score of each (encoded) point."""
        raise NotImplementedError

    def encode(self, points: Any) -> Any:
        """Bring raw points to the space in which the classifier works.

        Columns of a data frame are put into the order that the classifier knows. What comes out
        of a pipeline is a data frame with the names that its encoders give.
        """
        if self.encoder is None:
            return self._in_order(points)
        import pandas as pd

        encoded = self.encoder.transform(points)
        if hasattr(encoded, "toarray"):
            encoded = encoded.toarray()
        if isinstance(encoded, pd.DataFrame):
            return encoded
        index = points.index if isinstance(points, pd.DataFrame) else None
        return pd.DataFrame(np.asarray(encoded), columns=self._encoded_names(), index=index)

    def _in_order(self, points: Any) -> Any:
        if self.feature_names is None or not hasattr(points, "columns"):
            return points
        missing = [name for name in self.feature_names if name not in points.columns]
        extra = [name for name in points.columns if name not in self.feature_names]
        if missing or extra:
            raise ValueError(
                f"the columns are not those of the model: missing {missing}, unknown {extra}"
            )
        return points[self.feature_names]

    def _encoded_names(self) -> list[str] | None:
        try:
            return [str(name) for name in self.encoder.get_feature_names_out()]
        except (AttributeError, ValueError):  # a step that names nothing: columns go by number
            return None


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """A linear score: coefficients and an intercept.

    Examples
    --------
    >>> from holdfast.models import LinearModel
    >>> LinearModel([1.0, -0.5], -1.0).score([[2.0, 1.0]])
    array([0.5])
    """

    coef: Any
    intercept: Any = 0.0
    loss: str = "logistic"
    encoder: Any = None
    feature_names: list[Any] | None = None
    kind = "linear"

    def __post_init__(self) -> None:
        if self.feature_names is None and hasattr(self.coef, "index") and hasattr(self.coef, "loc"):
            object.__setattr__(self, "feature_names", list(self.coef.index))  # a pandas series
        coef, intercept = (read_floats(v, getattr(self, v)) for v in ("coef", "intercept"))
        if coef.ndim == 2 and len(coef) == 1:  # as scikit-learn has it
            coef = coef[0]
        if coef.ndim != 1 or intercept.size != 1:
            raise ValueError(
                f"coef has shape {coef.shape} and intercept {intercept.shape}; expected (d,) and "
                "one number"
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ValueError("coef and intercept must be finite numbers")
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", float(intercept.reshape(-1)[0]))

    def score(self, points: ArrayLike) -> Floats:
        """Score of each (encoded) point."""
        return np.asarray(np.asarray(points, dtype=np.float64) @ self.coef + self.intercept)


# A probability of exactly 0 or 1 has no log-odds; a forest gives many.
_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class BlackBox(Model):
    """Any function from points to the probability of the wanted class.

    Probabilities are kept within 1e-12 of 0 and 1, so that their log-odds are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.models import BlackBox
    >>> box = BlackBox(lambda points: np.full(len(points), 0.5))
    >>> box.score(np.zeros((2, 3)))
    array([0., 0.])
    """

    probability: Callable[[Any], ArrayLike]
    encoder: Any = None
    feature_names: list[Any] | None = None
    kind = "black box"

    def score(self, points: ArrayLike) -> Floats:
        """Score of each (encoded) point."""
        array = np.asarray(points, dtype=np.float64)
        given: Any = array
        if self.feature_names is not None:  # it was fitted on a data frame, and asks for one
            import pandas as pd

            given = pd.DataFrame(array, columns=self.feature_names)
        p = np.asarray(self.probability(given), dtype=np.float64)
        if p.shape != array.shape[:1]:
            raise ValueError(f"the model gave probabilities of shape {p.shape} for {array.shape}")
        if not ((p >= 0.0) & (p <= 1.0)).all():
            raise ValueError("the model gave probabilities outside [0, 1]")
        return np.asarray(special.logit(np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)))
