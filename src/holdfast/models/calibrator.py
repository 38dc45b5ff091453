"""The calibrator behind a classifier: probabilities as a rising function of the classifier's score.

What `CalibratedClassifierCV` makes of the score of one classifier is asked of the fitted calibrator
itself, so that plateaus and steps are where they are for the model. What has to be turned round
(from which score on is a probability reached?) is found by halving the numbers in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from holdfast.machinery.numbers import Floats, floats_at, ranks_of
from holdfast.models.encoding.unwrap import (
    CALIBRATIONS,
    Threshold,
    calibrated_of,
    is_a,
    is_linear,
    unwrap,
)

# No score is as large; a calibrator can still multiply it, in single precision too.
_FARTHEST = 1e30


@dataclass(frozen=True, eq=False)
class Calibrator:
    """A fitted calibrator of two classes, as a function of our score of the favourable one.

    Attributes
    ----------
    fitted : object
        What turns the classifier's decision function into probabilities.
    method : {"sigmoid", "isotonic", "temperature"}
    favorable_position : int
        Position of the favourable class.
    factor : float
        Our score for a unit of the decision function.
    of_probability : bool
        Whether it was fitted to the classifier's own probabilities: it has no decision function.

    Examples
    --------
    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> from sklearn.linear_model import LogisticRegression
    >>> from holdfast.models import as_model
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
    >>> fitted = CalibratedClassifierCV(LogisticRegression(), cv=3, ensemble=False).fit(X, y)
    >>> model = as_model(fitted, favorable_class=1)
    >>> model.kind, model.origin.calibrator.method
    ('linear', 'sigmoid')
    >>> bool(model.choose_loss(None).probability(model.cutoff) > 0.5)
    True
    """

    fitted: Any
    method: str
    favorable_position: int
    factor: float
    of_probability: bool

    @property
    def log_odds(self) -> tuple[float, float] | None:
        """(slope, shift) where the log-odds are ``slope * score + shift``; None: nowhere."""
        if self.of_probability or self.method == "isotonic":
            return None
        turn = 1.0 if self.favorable_position == 1 else -1.0
        if self.method == "temperature":
            return 2.0 * float(self.fitted.beta_) * turn / self.factor, 0.0
        return -float(self.fitted.a_) * turn / self.factor, -float(self.fitted.b_) * turn

    def both(self, score: Floats) -> Floats:
        """Probability of either class at each score, as the model works them out."""
        value = np.clip(score, -_FARTHEST, _FARTHEST) / self.factor
        if self.of_probability:
            value = special.expit(score if self.favorable_position == 1 else -score)
        if self.method == "temperature":
            two = np.column_stack([1.0 - value, value]) if self.of_probability else value
            return np.asarray(self.fitted.predict(two), dtype=np.float64)
        second = np.minimum(np.asarray(self.fitted.predict(value), dtype=np.float64), 1.0)
        return np.column_stack([1.0 - second, second])

    def probability(self, score: Floats) -> Floats:
        """Probability of the favourable class at each score; NaN for NaN."""
        scores = np.asarray(score, dtype=np.float64)
        result = np.full(scores.shape, np.nan)
        known = ~np.isnan(scores)
        if known.any():
            result[known] = self.both(scores[known])[:, self.favorable_position]
        return result

    def score(self, probability: float) -> float:
        """Return the least score whose probability is at least `probability`, or refuse it."""
        least = self._least(lambda both: both[:, self.favorable_position] >= probability)
        if least is not None and least > -np.inf:
            return least
        lowest, largest = self.probability(np.array([-np.inf, np.inf])).tolist()
        if least is None:
            raise ValueError(
                f"guarantee = {probability!r} is more than any score can reach: the calibrated "
                f"probabilities end at {np.floor(1e6 * largest) / 1e6:.6g}; ask for at most that"
            )
        raise ValueError(
            f"guarantee = {probability!r} is reached by every score: the calibrated probabilities "
            f"begin at {lowest:.6g}; ask for more than that"
        )

    def cutoff(self, threshold: Threshold | None, position: int) -> float:
        """Return the score from which on the calibrated model accepts; -inf: from any.

        An even chance goes to the first class, or the `threshold` decides, which is one for the
        probability of the class at that position.
        """

        def accepted(both: Floats) -> NDArray[np.bool_]:
            if threshold is not None:
                reached = both[:, position] >= threshold.value
                return np.asarray(reached if position == self.favorable_position else ~reached)
            first = both[:, 0] >= both[:, 1]
            return np.asarray(first if self.favorable_position == 0 else ~first)

        least = self._least(accepted)
        if least is None:
            largest = float(self.probability(np.array([np.inf]))[0])
            raise ValueError(
                "the calibrated model accepts nobody, so no change helps: the largest "
                f"probability that it gives to the favourable class is {largest:.6g}. Wrap it in "
                "a threshold that can be reached: FixedThresholdClassifier"
            )
        return least

    def _least(self, holds: Callable[[Floats], NDArray[np.bool_]]) -> float | None:
        """Return the least score from which on something holds of the probabilities.

        -inf where it always does, None where it never does.
        """

        def at(place: int) -> bool:
            return bool(holds(self.both(floats_at(np.array([place]))))[0])

        low, high = ranks_of(np.array([-_FARTHEST, _FARTHEST])).tolist()
        if at(low):
            return -np.inf
        if not at(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) else (middle, high)
        return float(floats_at(np.array([high]))[0])


def read_calibrator(calibrated: Any, favorable_position: int, factor: float) -> Calibrator:
    """Read the calibrator of a calibrated classifier; one that does not rise is refused."""
    fitted, method = calibrated.calibrators[0], calibrated.method
    falls, same = False, False
    if method == "sigmoid":
        falls, same = bool(fitted.a_ > 0.0), bool(fitted.a_ == 0.0)
    elif method == "isotonic":
        falls = not fitted.increasing_
        same = bool(fitted.y_thresholds_[0] == fitted.y_thresholds_[-1])
    if falls:
        raise ValueError(
            f"the {method} calibrator of CalibratedClassifierCV falls where the score rises: the "
            "classifier and the rows it was calibrated on disagree about which class is which. "
            "Holdfast needs probabilities that rise with the score; fit them on data that agree"
        )
    if same:
        raise ValueError(
            f"the {method} calibrator of CalibratedClassifierCV gives everybody the same "
            "probability, so no change helps"
        )
    of_probability = not hasattr(calibrated.estimator, "decision_function")
    return Calibrator(fitted, method, favorable_position, factor, of_probability)


def why_closed(model: Any) -> str:
    """Say why a calibrated linear classifier cannot be read as one; nothing where there is none."""
    last = unwrap(model).last
    parts = getattr(last, "calibrated_classifiers_", None)
    if not is_a(last, "CalibratedClassifierCV") or not parts:
        return ""
    if not all(is_linear(unwrap(part.estimator).last) for part in parts):
        return ""
    if len(parts) > 1:
        return (
            f"CalibratedClassifierCV averages the probabilities of {len(parts)} classifiers, each "
            "with its own calibrator, and that is not a function of one score; fit it with "
            "ensemble=False"
        )
    if calibrated_of(last) is None:
        return (
            f"CalibratedClassifierCV with method={parts[0].method!r} is not supported; supported: "
            + ", ".join(CALIBRATIONS)
        )
    return "one CalibratedClassifierCV is nested in another; calibrate once"
