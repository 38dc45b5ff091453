"""The loss of a recourse as a function of its score: value, slope, and what a certificate needs.

No loss here rises with the score ``t``. With ``s(t) = -phi'(t)``, its steepness, the solvers need
``s`` and its inverse (the score at which a given steepness is reached); certificates need
``inf_t phi(t) + s * t``, which is the conjugate with its sign turned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import check_count, shown

LOGISTIC, PROBIT, HINGE, SQUARED_HINGE, SQUARED_ERROR = range(5)

_SQRT2 = math.sqrt(2.0)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

# (1 - sigmoid(t))**2 bends at sigmoid(t) = 1/3: concave before this score, convex after it.
SQUARED_ERROR_BEND = -math.log(2.0)
# ... and there its steepness 2 * (1 - sigmoid)**2 * sigmoid is largest.
_SQUARED_ERROR_STEEPEST = 8.0 / 27.0


@kernel
def sigmoid(t):
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@kernel
def mills(t):
    """Normal tail over density at t >= 0, `(1 - Phi(t)) / pdf(t)`, without underflow."""
    if t < 5.0:
        tail = 0.5 * math.erfc(t / _SQRT2)
        return tail * math.exp(0.5 * t * t + _LOG_SQRT_2PI)
    fraction = t
    for k in range(60, 0, -1):  # continued fraction 1/(t + 1/(t + 2/(t + ...)))
        fraction = t + k / fraction
    return 1.0 / fraction


@kernel
def probit_value(t):
    if t > 0.0:
        return -math.log1p(-0.5 * math.erfc(t / _SQRT2))
    return 0.5 * t * t + _LOG_SQRT_2PI - math.log(mills(-t))


@kernel
def probit_slope(t):
    if t > 0.0:
        return math.exp(-0.5 * t * t - _LOG_SQRT_2PI) / (1.0 - 0.5 * math.erfc(t / _SQRT2))
    return 1.0 / mills(-t)


@kernel
def probit_score_at_slope(s):
    """Newton on log s(t): it is concave and decreasing, so every step from the right is safe.

    For a steep slope ``s = x + 1/x - 2/x^3 + ...`` with ``x = -t`` is turned around instead.
    """
    if s > 1e3:
        return -(s - 1.0 / s + 1.0 / s**3)
    far = math.sqrt(max(0.0, -2.0 * math.log(s * math.sqrt(2.0 * math.pi)))) + 0.5
    t = -s if s > 1.0 else far
    for _ in range(100):
        current = probit_slope(t)
        if current == 0.0:
            t -= 1.0
            continue
        # d log s / dt = -(t + s)
        step = (math.log(current) - math.log(s)) / (t + current)
        t += step
        if abs(step) <= 1e-15 * (1.0 + abs(t)):
            break
    return t


@kernel
def squared_error_slope(t):
    miss = sigmoid(-t)
    return 2.0 * miss * miss * sigmoid(t)


@kernel
def squared_error_score_at_slope(s):
    """Return the score in the convex part (beyond the bend) with steepness s.

    With u = 1 - sigmoid(t) in (0, 2/3] the equation is 2 u^2 (1 - u) = s: a cubic whose middle
    root, in trigonometric form, is the one we want; one Newton step polishes it.
    """
    if s >= _SQUARED_ERROR_STEEPEST:
        return SQUARED_ERROR_BEND
    angle = math.acos(1.0 - 27.0 * s / 4.0)
    u = (1.0 + 2.0 * math.cos((angle + 4.0 * math.pi) / 3.0)) / 3.0
    if u < 1e-4:
        u = math.sqrt(0.5 * s)
    for _ in range(3):
        slope = 4.0 * u - 6.0 * u * u
        if slope <= 0.0:
            break
        u -= (2.0 * u * u * (1.0 - u) - s) / slope
    return math.log1p(-u) - math.log(u)


@kernel
def loss_value(loss, t):
    """phi(t)."""
    if loss == LOGISTIC:
        return math.log1p(math.exp(-abs(t))) + max(-t, 0.0)
    if loss == PROBIT:
        return probit_value(t)
    if loss == HINGE:
        return max(0.0, 1.0 - t)
    if loss == SQUARED_HINGE:
        return max(0.0, 1.0 - t) ** 2
    return sigmoid(-t) ** 2


@kernel
def loss_slope(loss, t):
    """s(t) = -phi'(t); at the kink of the hinge the right-hand value."""
    if loss == LOGISTIC:
        return sigmoid(-t)
    if loss == PROBIT:
        return probit_slope(t)
    if loss == HINGE:
        return 1.0 if t < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return 2.0 * max(0.0, 1.0 - t)
    return squared_error_slope(t)


@kernel
def score_at_slope(loss, s):
    """The score t with s(t) = s: beyond it, buying score at the rate s no longer pays.

    For a convex loss it is -inf where the loss is never that steep, and inf where it is always
    steeper; at the kink of the hinge it is the kink. The squared error has two such scores: it is
    the one beyond the bend, or the bend itself where the loss is never that steep.
    """
    if loss == LOGISTIC:
        if s >= 1.0:
            return -math.inf
        if s <= 0.0:
            return math.inf
        return math.log1p(-s) - math.log(s)
    if loss == PROBIT:
        if s <= 0.0:
            return math.inf
        if s == math.inf:
            return -math.inf
        return probit_score_at_slope(s)
    if loss == HINGE:
        return 1.0 if s <= 1.0 else -math.inf
    if loss == SQUARED_HINGE:
        return 1.0 - 0.5 * s
    if s <= 0.0:
        return math.inf
    return squared_error_score_at_slope(s)


@kernel
def tilted_minimum(loss, s):
    """Return inf over t of phi(t) + s * t, for the convex losses; -inf where it falls for ever."""
    if s < 0.0:
        return -math.inf
    if loss == LOGISTIC:
        if s > 1.0:
            return -math.inf
        if s == 0.0 or s == 1.0:
            return 0.0
        return -s * math.log(s) - (1.0 - s) * math.log1p(-s)
    if loss == PROBIT:
        if s == 0.0:
            return 0.0
        t = probit_score_at_slope(s)
        return probit_value(t) + s * t
    if loss == HINGE:
        return s if s <= 1.0 else -math.inf
    return s - 0.25 * s * s


@kernel
def steepest(loss):
    """Return the least upper bound of the steepness of a convex loss."""
    return 1.0 if loss in (LOGISTIC, HINGE) else math.inf


class Calibration(Protocol):
    """A rising map from scores to probabilities that was fitted after the model was.

    Attributes
    ----------
    log_odds : (slope, shift) or None
        Where the log-odds of its probabilities are ``slope * score + shift``; None: nowhere.
    """

    @property
    def log_odds(self) -> tuple[float, float] | None: ...

    def probability(self, score: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability at each score; NaN for NaN."""

    def score(self, probability: float) -> float:
        """Return the least score whose probability is at least `probability`, or refuse it."""


@dataclass(frozen=True)
class Loss:
    """A loss of the score, with the link that turns a score into a probability of approval.

    Attributes
    ----------
    name : str
        The name by which `holdfast.solve` knows it.
    code : int
        How the compiled kernels know it.
    link : {"logit", "probit", "calibrated", None}
        None for the hinge losses: a margin is not a probability.
    convex : bool
        Whether the loss is convex in the score.
    calibration : Calibration or None
        Makes probabilities of scores in place of a link. Then the loss is the logarithm of the
        probability, its sign turned; no price of it can be minimised.

    Examples
    --------
    >>> from holdfast.problem.losses import get_loss
    >>> logistic = get_loss("logistic")
    >>> float(logistic.value(0.0))
    0.6931471805599453
    >>> float(logistic.probability(0.0))
    0.5
    """

    name: str
    code: int
    link: str | None
    convex: bool
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        check_count("code", self.code, least=LOGISTIC, most=SQUARED_ERROR)

    def calibrated(self, calibration: Calibration) -> Loss:
        """Return the loss of a model whose probabilities are those of a calibration."""
        return replace(self, link="calibrated", calibration=calibration)

    @property
    def log_odds(self) -> tuple[float, float] | None:
        """(slope, shift) where the log-odds are ``slope * score + shift``; None: nowhere."""
        if self.calibration is not None:
            return self.calibration.log_odds
        return (1.0, 0.0) if self.link == "logit" else None

    def value(self, score: ArrayLike) -> NDArray[np.float64]:
        """Loss at each score."""
        if self.calibration is not None:
            with np.errstate(divide="ignore"):
                return np.asarray(-np.log(self.probability(score)))
        return _over(_values, self.code, score)

    def slope(self, score: ArrayLike) -> NDArray[np.float64]:
        """Steepness (minus the derivative) at each score."""
        return _over(_slopes, self.code, score)

    def score_at_slope(self, slope: ArrayLike) -> NDArray[np.float64]:
        """Score beyond which the loss is nowhere steeper than that (for the hinge: its kink)."""
        return _over(_scores_at_slope, self.code, slope)

    def probability(self, score: ArrayLike) -> NDArray[np.float64]:
        """Probability of approval at each score; NaN for a loss that has no link."""
        t = np.asarray(score, dtype=np.float64)
        if self.calibration is not None:
            return self.calibration.probability(t)
        if self.link == "logit":
            return np.asarray(special.expit(t))
        if self.link == "probit":
            return np.asarray(special.ndtr(t))
        return np.full_like(t, np.nan)

    def score(self, probability: float) -> float:
        """Return the least score whose probability is at least `probability`."""
        if self.calibration is not None:
            return self.calibration.score(probability)
        if self.link is None:
            if probability != 0.5:
                raise ValueError(
                    f"guarantee = {probability!r}: the {self.name} loss has no probabilities, "
                    "only a side of the boundary; the only guarantee it can give is 0.5 (score 0)"
                )
            return 0.0
        inverse = special.logit if self.link == "logit" else special.ndtri
        score = float(inverse(probability))
        step = float(np.spacing(abs(score)))
        while float(self.probability(score)) < probability:  # short by rounding
            score, step = score + step, 2.0 * step
        return score


# Not to be added to: the kernels know these codes and no others.
LOSSES: Mapping[str, Loss] = MappingProxyType(
    {
        loss.name: loss
        for loss in (
            Loss("logistic", LOGISTIC, "logit", True),
            Loss("probit", PROBIT, "probit", True),
            Loss("hinge", HINGE, None, True),
            Loss("squared_hinge", SQUARED_HINGE, None, True),
            Loss("squared_error", SQUARED_ERROR, "logit", False),
        )
    }
)


def get_loss(loss: str | Loss) -> Loss:
    """Look a loss up by name; one of the losses here is returned as it is."""
    known = LOSSES.get(loss) if isinstance(loss, str) else None
    if isinstance(loss, Loss) and (loss.calibration or LOSSES.get(loss.name) == loss):
        known = loss
    if known is None:
        allowed = ", ".join(sorted(LOSSES))
        raise ValueError(f"loss = {shown(loss)} is not known; available: {allowed}")
    return known


@kernel
def _values(loss, scores, out):
    for i in range(scores.size):
        out[i] = loss_value(loss, scores[i])


@kernel
def _slopes(loss, scores, out):
    for i in range(scores.size):
        out[i] = loss_slope(loss, scores[i])


@kernel
def _scores_at_slope(loss, slopes, out):
    for i in range(slopes.size):
        out[i] = score_at_slope(loss, slopes[i])


def _over(function: Callable[..., Any], code: int, values: ArrayLike) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    out = np.empty(array.size)
    function(code, array.reshape(-1), out)
    return out.reshape(np.shape(values))
