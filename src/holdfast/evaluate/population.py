"""One worst model for a whole population of recourses, not one for each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from holdfast.machinery.numbers import Floats, check_random_state, whole_rows
from holdfast.problem.ball import NormBall, require_ball
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.model_list import ModelList
from holdfast.problem.model_set import ModelSet, check_models

# Corners of a box in so many dimensions are all tried out: 65,536 of them.
MOST_DIMENSIONS = 16
_CORNERS_AT_ONCE = 2**12
# Ascents, besides those from each point's own worst model.
_STARTS = 32
_MOST_STEPS = 1000
# An ascent ends when a step adds less than this share of the sum.
_LEAST_RISE = 1e-12


@dataclass(frozen=True, eq=False)
class PopulationWorst:
    """The model of a set that is worst for all points together.

    Attributes
    ----------
    coef : (d,) array
    intercept : float
    loss_sum : float
        Sum of the points' losses ``log(1 + exp(-score))`` under that model.
    exact : bool
        Whether no model of the set has a larger sum; otherwise it is the largest one found.
    """

    coef: Floats
    intercept: float
    loss_sum: float
    exact: bool

    def score(self, X: ArrayLike) -> Floats:
        """Score of each point under this model."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.coef + self.intercept)


def population_worst_model(
    X: ArrayLike,
    coef: ArrayLike,
    intercept: float,
    robust_to: ModelSet,
    *,
    random_state: int = 0,
) -> PopulationWorst:
    """Find the one model in a set around today's that maximises the sum of all points' losses.

    The sum is convex in the model, so its maximum is at an extreme point of the set. In a list,
    and for p = 1, these are few, for p = inf and up to 15 features not too many: all are tried.
    Otherwise an ascent goes from one extreme point to the one that the gradient there points at; it
    never goes down, because the sum lies above its tangents, but it may stop at a lesser peak.

    Parameters
    ----------
    X : (n, d) array
        Recourses, without missing ones.
    coef, intercept
        Today's model, the same for all.
    robust_to : NormBall, Ellipsoid or ModelList
    random_state : int
        Seed of the random extreme points from which an ascent begins, besides each point's own
        worst model.

    Examples
    --------
    Two points that each model change hurts in another way: the intercept hurts both.

    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.5)
    >>> worst = population_worst_model([[2.0, 0.0], [-2.0, 0.0]], [0.0, 1.0], 1.0, ball)
    >>> worst.coef, worst.intercept, worst.exact
    (array([0., 1.]), 0.5, True)
    """
    check_models(robust_to)
    check_random_state(random_state)
    x, w, b = _read(X, coef, intercept)
    robust_to.feature_scale(x.shape[1])  # refuses another number of features, and networks
    if isinstance(robust_to, ModelList):
        return _worst_of_list(x, w, b, robust_to)
    score = x @ w + b
    if isinstance(robust_to, Ellipsoid):
        factor = robust_to.radius * robust_to.factor(x.shape[1])
        felt = np.column_stack([x, np.ones(len(x))]) @ factor
        unit = _ascend(score, felt, NormBall(2.0, 1.0), random_state)
        change, loss = factor @ unit, float(_loss_sum(score, felt, unit[None])[0])
        return PopulationWorst(w + change[:-1], b + float(change[-1]), loss, len(x) == 1)
    ball = require_ball(robust_to, "population_worst_model")
    scale = ball.radius * np.append(ball.feature_scale(x.shape[1]), ball.intercept_scale)
    # a change by scale * unit, with a unit vector of the p-norm, adds moved @ unit to the scores
    moved = np.column_stack([x, np.ones(len(x))]) * scale
    free = np.flatnonzero(np.any(moved != 0.0, axis=0))
    unit = np.zeros(len(scale))
    exact = ball.p == 1.0 or len(free) <= (MOST_DIMENSIONS if math.isinf(ball.p) else 1)
    if len(free) > 0:
        felt = moved[:, free]
        if exact:
            unit[free] = _best_of(score, felt, _extreme_points(len(free), ball.p))
        else:
            unit[free] = _ascend(score, felt, ball, random_state)
    change = scale * unit
    loss = float(_loss_sum(score, moved, unit[None])[0])
    return PopulationWorst(w + change[:-1], b + float(change[-1]), loss, exact or len(x) == 1)


def _worst_of_list(x: Floats, w: Floats, b: float, models: ModelList) -> PopulationWorst:
    """Try out all models of a list, and today's."""
    coefs, intercepts = np.vstack([w, models.coefs]), np.append(b, models.intercepts)
    sums = np.logaddexp(0.0, -(coefs @ x.T + intercepts[:, None])).sum(axis=1)
    k = int(np.argmax(sums))
    return PopulationWorst(coefs[k], float(intercepts[k]), float(sums[k]), True)


def _read(X: ArrayLike, coef: ArrayLike, intercept: float) -> tuple[Floats, Floats, float]:
    x, w = np.asarray(X, dtype=np.float64), np.asarray(coef, dtype=np.float64)
    if x.ndim != 2 or w.shape != x.shape[1:] or np.ndim(intercept) != 0:
        raise ValueError(
            f"X {x.shape}, coef {w.shape} and intercept {np.shape(intercept)} do not fit "
            "together; expected (n, d), (d,) and a number: one model for all points"
        )
    missing = np.flatnonzero(~whole_rows(x))
    if missing.size:
        raise ValueError(
            f"X is not finite in {missing.size} rows, the first of which is row {missing[0]}; "
            "leave out the rows without a recourse"
        )
    return x, w, float(intercept)


def _loss_sum(score: Floats, felt: Floats, units: Floats) -> Floats:
    """Sum of the losses for each of some changes."""
    losses = np.logaddexp(0.0, -(score + units @ felt.T))
    return np.asarray(losses.sum(axis=1))


def _extreme_points(size: int, p: float) -> Iterator[Floats]:
    """Yield all extreme points of the unit ball, in pieces; p is 1 or inf, or size 1."""
    if p == 1.0 or size == 1:
        yield np.vstack([np.eye(size), -np.eye(size)])
        return
    for begin in range(0, 2**size, _CORNERS_AT_ONCE):
        number = np.arange(begin, min(begin + _CORNERS_AT_ONCE, 2**size))
        yield np.where(number[:, None] >> np.arange(size) & 1, 1.0, -1.0)


def _best_of(score: Floats, felt: Floats, pieces: Iterator[Floats]) -> Floats:
    best, largest = np.zeros(felt.shape[1]), -np.inf
    for units in pieces:
        sums = _loss_sum(score, felt, units)
        k = int(np.argmax(sums))
        if sums[k] > largest:
            best, largest = units[k], sums[k]
    return best


def _ascend(score: Floats, felt: Floats, robust_to: NormBall, random_state: int) -> Floats:
    """Ascend from several starts, all at once."""
    drawn = np.random.default_rng(random_state).normal(size=(_STARTS, felt.shape[1]))
    units = np.vstack(
        [np.zeros((1, felt.shape[1])), _support(np.vstack([-felt, drawn]), robust_to)]
    )
    sums = _loss_sum(score, felt, units)
    for _ in range(_MOST_STEPS):
        gradient = -special.expit(-(score + units @ felt.T)) @ felt
        there = _support(gradient, robust_to)
        reached = _loss_sum(score, felt, there)
        higher = reached > sums * (1.0 + _LEAST_RISE)
        if not higher.any():
            break
        units[higher], sums[higher] = there[higher], reached[higher]
    return np.asarray(units[np.argmax(sums)])


def _support(directions: Floats, robust_to: NormBall) -> Floats:
    """Return the point of the unit ball that lies furthest in each direction; p > 1."""
    if math.isinf(robust_to.p):
        return np.where(directions < 0.0, -1.0, 1.0)
    q = robust_to.dual_p
    largest = np.abs(directions).max(axis=1, keepdims=True)
    ratio = np.divide(directions, largest, out=np.zeros_like(directions), where=largest > 0.0)
    size = np.linalg.norm(ratio, ord=q, axis=1, keepdims=True)
    share = np.divide(np.abs(ratio), size, out=np.zeros_like(ratio), where=size > 0.0)
    return np.asarray(np.sign(ratio) * share ** (q - 1.0))
