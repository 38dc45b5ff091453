"""Which radius? As large as models are seen to change: retrained, or as they did in the past."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast._numbers import (
    Floats,
    check_between,
    check_count,
    check_seed,
    read_floats,
    read_matrix,
    refuse,
    shown,
)
from holdfast.api import solve
from holdfast.ball import NormBall
from holdfast.models import LinearModel, as_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_MODELS = 20


@dataclass(frozen=True, eq=False)
class RadiusEstimate:
    """How far models move, and the balls that cover a share of these moves.

    Half of the changes (every second one) choose the radius and the scale; the other half check.

    Attributes
    ----------
    quantile : float
        The share of the changes that a ball covers.
    scale, intercept_scale : (d,) array, float
        How far each coefficient moves: the root of its mean square change.
    changes : (k, d + 1) array
        All changes of coefficients and intercept.
    table : list of `Radius`
        For each p, without and with the scale: radius, coverage and survival.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.normal(size=300) > 0
    >>> model = LogisticRegression().fit(X, y)
    >>> found = holdfast.estimate_radius(model, X, y, p=(1, 2), n_models=100)
    >>> bool(0.8 <= found.radius(2).coverage <= 1.0)
    True
    >>> found.ball(2).p
    2.0
    """

    quantile: float
    scale: Floats
    intercept_scale: float
    changes: Floats
    table: list[Radius]

    def radius(self, p: float, scaled: bool = False) -> Radius:
        """Return what was found for one p."""
        for row in self.table:
            if row.p == p and row.scaled == scaled:
                return row
        raise ValueError(f"p = {p!r} was not asked for; there are {sorted(self._exponents())}")

    def ball(self, p: float, scaled: bool = False) -> NormBall:
        """Return the ball that covers the share `quantile` of the changes."""
        radius = self.radius(p, scaled).radius
        if not scaled:
            return NormBall(p, radius)
        return NormBall(p, radius, scale=self.scale, intercept=self.intercept_scale)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw, for each p, the share of changes within a distance, and the radius chosen."""
        from matplotlib import pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        for color, p in zip(_COLORS, self._exponents(), strict=False):
            distance = np.sort(_distances(self.changes, NormBall(p, 1.0)))
            share = np.arange(1, len(distance) + 1) / len(distance)
            label = f"p = {p:g}" if math.isfinite(p) else "p = ∞"
            axes.step(distance, share, where="post", color=color, label=label)
            axes.plot(self.radius(p).radius, self.quantile, "o", color=color)
        axes.axhline(self.quantile, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel("distance between models")
        axes.set_ylabel("share of changes within it")
        axes.legend(frameon=False, loc="lower right")
        return axes

    def _exponents(self) -> list[float]:
        return [row.p for row in self.table if not row.scaled]


# Okabe and Ito's colours, which colour-blind people can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


@dataclass(frozen=True)
class Radius:
    """A radius for one p, and how it does on the changes that did not choose it.

    Attributes
    ----------
    radius : float
    coverage : float
        Share of the changes kept back that lie in the ball.
    survival : float
        Of recourses made for the denied rows with this ball, at the guarantee 0.5: share that a
        model kept back approves, on average over these models; NaN if nobody is denied.
    plain_survival : float
        The same of recourses for today's model alone.
    helped : float
        Share of the denied rows for which there is such a recourse.
    """

    p: float
    scaled: bool
    radius: float
    coverage: float
    survival: float
    plain_survival: float
    helped: float


def estimate_radius(
    model: Any,
    X: Any,
    y: ArrayLike,
    p: float | Iterable[float] = (1.0, 2.0, math.inf),
    *,
    quantile: float = 0.9,
    n_models: int = 200,
    past_models: Sequence[Any] | None = None,
    time: ArrayLike | None = None,
    n_periods: int = 10,
    target_class: Any = None,
    seed: int = 0,
) -> RadiusEstimate:
    """Estimate how large a ball of models must be to hold the models that come.

    By default the classifier is retrained on bootstrap resamples of the data: that is how much a
    model moves by chance alone. Where the data drift, models move further; past models, or a
    time column, show how far.

    Parameters
    ----------
    model : fitted scikit-learn classifier or pipeline
        It must be linear in its last step. The encoders before it stay as they are: all models
        live in the same encoded space.
    X, y : table and labels
        What it was trained on.
    p : float or several
        Norms for which a radius is wanted.
    quantile : float
        Share of the changes to be covered.
    n_models : int
        How many models to retrain.
    past_models : sequence of fitted models, optional
        Earlier versions, oldest first: each change from one to the next counts, and the last one
        to `model`. Nothing is retrained.
    time : (n,) array, optional
        When each row was seen: the rows are cut into `n_periods` of equal size, a model is
        trained on bootstrap resamples of each, and changes from one period to the next count.
    n_periods : int
    target_class : label, optional
        The wanted class; the second of the classes by default.
    seed : int

    Returns
    -------
    RadiusEstimate

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.normal(size=300) > 0
    >>> model = LogisticRegression().fit(X, y)
    >>> found = holdfast.estimate_radius(model, X, y, p=1, n_models=100).radius(1)
    >>> bool(found.survival > found.plain_survival)
    True
    """
    exponents = _read_exponents(p)
    check_between("quantile", quantile, 0.0, 1.0)
    check_count("n_models", n_models)
    check_seed(seed)
    today = _linear(model, target_class)
    points = _read_table(today, X)
    labels = _read_labels(y, len(points))
    rng = np.random.default_rng(seed)
    retrain = _Retrainer(model, points, labels, target_class, rng)
    if past_models is not None:
        versions = _read_past(past_models, today, target_class)
        changes = np.diff([_vector(version) for version in versions], axis=0)
    elif time is not None:
        changes = retrain.over_time(_read_time(time, len(points)), n_periods, n_models)
    else:
        changes = np.array([retrain() for _ in range(n_models)]) - _vector(today)
    if past_models is None and len(changes) < _LEAST_MODELS:
        refuse("n_models", n_models, f"at least {_LEAST_MODELS}")
    if len(changes) < 2:
        raise ValueError("one change is too few to choose a radius and to check it; give more")
    return _estimate(today, points, changes, exponents, float(quantile))


def _read_exponents(p: Any) -> list[float]:
    values = list(p) if isinstance(p, (list, tuple, set, np.ndarray)) else [p]
    if not values:
        refuse("p", p, "a number from 1 to inf, or several")
    return [NormBall(value, 0.0).p for value in values]


def _read_table(today: LinearModel, table: Any) -> Floats:
    """Return the table as the classifier reads it."""
    if not hasattr(table, "columns"):
        table = read_matrix("X", table) if today.encoder is None else table
    try:
        points = read_matrix("X", today.encode(table), len(today.coef))
    except (TypeError, ValueError, AttributeError) as error:
        why = str(error).partition("\n")[0]
        raise ValueError(why if why.startswith("X ") else f"X cannot be encoded: {why}") from None
    if not np.isfinite(points).all():
        raise ValueError("X holds values that are missing or infinite; leave these rows out")
    return points


def _read_labels(y: Any, n: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},): X has {n} rows")
    try:
        kinds = len(np.unique(labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels))
    except TypeError:
        kinds = 0
    if kinds != 2:
        raise ValueError(f"y = {shown(y)} does not hold two classes")
    return labels


def _read_past(models: Any, today: LinearModel, target_class: Any) -> list[LinearModel]:
    """Return the past models, and today's."""
    if isinstance(models, (str, dict)) or not hasattr(models, "__iter__"):
        refuse("past_models", models, "a list of fitted models, oldest first")
    try:
        found = [_linear(model, target_class) for model in models]
    except (TypeError, ValueError) as error:
        raise ValueError(f"past_models: {error}") from None
    if not found or any(model.coef.shape != today.coef.shape for model in found):
        refuse(
            "past_models", models, "fitted models with the coefficients of today's, at least one"
        )
    return [*found, today]


def _read_time(time: Any, n: int) -> NDArray[Any]:
    """Read when each row was seen: numbers or dates."""
    values = np.asarray(time)
    if values.shape != (n,):
        raise ValueError(f"time has shape {values.shape}, expected ({n},): X has {n} rows")
    if values.dtype.kind in "mM":
        unknown = np.isnat(values)
    elif values.dtype.kind in "US":
        unknown = values == ""
    else:
        unknown = np.isnan(read_floats("time", time))
    if unknown.any():
        raise ValueError(f"time is missing in {int(unknown.sum())} rows; leave these out of X")
    return values


def _estimate(
    today: LinearModel, points: Floats, changes: Floats, exponents: list[float], quantile: float
) -> RadiusEstimate:
    chosen, kept = changes[::2], changes[1::2]
    spread = np.sqrt(np.mean(chosen**2, axis=0))
    denied = points[today.score(points) < 0.0]
    models = _vector(today) + kept
    plain, _ = _survival(today, denied, NormBall(1.0, 0.0), models)
    table = []
    for p in exponents:
        for scaled in (False, True):
            scale = {"scale": spread[:-1], "intercept": float(spread[-1])} if scaled else {}
            # 'higher': at least that share of the changes is covered
            distance = _distances(chosen, NormBall(p, 1.0, **scale))
            radius = float(np.quantile(distance, quantile, method="higher"))
            ball = NormBall(p, radius, **scale)
            coverage = float(np.mean(_distances(kept, ball) <= radius))
            survival, helped = _survival(today, denied, ball, models)
            table.append(Radius(p, scaled, radius, coverage, survival, plain, helped))
    return RadiusEstimate(quantile, spread[:-1], float(spread[-1]), changes, table)


def _survival(
    today: LinearModel, denied: Floats, ball: NormBall, models: Floats
) -> tuple[float, float]:
    """Share of (recourse, model) that are approved, and share of the people who have one."""
    if not len(denied):
        return math.nan, math.nan
    result = solve(denied, today.coef, today.intercept, ball=ball, guarantee=0.5, loss=today.loss)
    recourse = result.recourse_array[np.isfinite(result.cost)]
    scores = recourse @ models[:, :-1].T + models[:, -1]
    return float((scores >= 0.0).mean()) if len(recourse) else math.nan, len(recourse) / len(denied)


class _Retrainer:
    """Fits the classifier again, on resampled rows, behind the same encoders."""

    def __init__(
        self,
        model: Any,
        points: Floats,
        labels: NDArray[Any],
        target_class: Any,
        rng: np.random.Generator,
    ) -> None:
        last = model.steps[-1][1] if hasattr(model, "steps") else model
        self.last, self.points, self.labels = last, points, labels
        self.target_class, self.rng = target_class, rng

    def __call__(self, among: NDArray[np.int64] | None = None) -> Floats:
        """Return coefficients and intercept of a model of resampled rows."""
        from sklearn.base import clone

        among = np.arange(len(self.points)) if among is None else among
        for _ in range(100):
            rows = self.rng.choice(among, size=len(among))
            if len(np.unique(self.labels[rows])) == 2:
                fitted = clone(self.last).fit(self.points[rows], self.labels[rows])
                return _vector(_linear(fitted, self.target_class))
        raise ValueError("no resample has both classes; there are too few rows of one of them")

    def over_time(self, time: NDArray[Any], n_periods: int, n_models: int) -> Floats:
        """Return changes from a model of each period to one of the next."""
        check_count("n_periods", n_periods, least=2, most=len(time) // 2)
        periods = np.array_split(np.argsort(time, kind="stable"), n_periods)
        rounds = math.ceil(n_models / (n_periods - 1))
        walks = [np.diff([self(rows) for rows in periods], axis=0) for _ in range(rounds)]
        return np.concatenate(walks)[:n_models]


def _linear(model: Any, target_class: Any) -> LinearModel:
    adapted = as_model(model, target_class=target_class)
    if not isinstance(adapted, LinearModel):
        raise ValueError(
            f"{type(model).__name__} is not linear in its score; a radius is one of coefficients"
        )
    return adapted


def _vector(model: LinearModel) -> Floats:
    return np.append(model.coef, model.intercept)


def _distances(changes: Floats, ball: NormBall) -> Floats:
    nothing = np.zeros(changes.shape[1] - 1)
    return ball.distance(nothing, 0.0, changes[:, :-1], changes[:, -1])
