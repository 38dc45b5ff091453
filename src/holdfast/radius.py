"""Which radius? As large as models are seen to change: retrained, or as they did in the past."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.continuous.solve import solve
from holdfast.machinery.numbers import (
    Floats,
    check_between,
    check_count,
    check_seed,
    read_floats,
    read_matrix,
    refuse,
    shown,
)
from holdfast.models import LinearModel, as_model
from holdfast.models.base import accepts, read_encoded
from holdfast.models.encoding.unwrap import unwrap
from holdfast.problem.ball import NormBall

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_LEAST_MODELS = 20


@dataclass(frozen=True, eq=False)
class RadiusEstimate:
    """How far models move, and the balls that cover a share of these moves.

    About half of the changes choose the radius and the scale; the others check.

    Attributes
    ----------
    quantile : float
        The share of the changes that a ball covers.
    scale, intercept_scale : (d,) array, float
        How far each coefficient moves: the root of its mean square change.
    changes : (k, d + 1) array
        All changes of coefficients and intercept.
    chosen : (k,) array of bool
        The changes that chose; the others were kept back.
    radii : list of `Radius`
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
    chosen: NDArray[np.bool_]
    radii: list[Radius]

    def radius(self, p: float, scaled: bool = False) -> Radius:
        """Return what was found for one p."""
        for row in self.radii:
            if row.p == p and row.scaled == scaled:
                return row
        raise ValueError(f"p = {p!r} was not asked for; there are {sorted(self._exponents())}")

    def ball(self, p: float, scaled: bool = False) -> NormBall:
        """Return the ball that covers the share `quantile` of the changes.

        It is an error where the changes kept back say that it does not: see `Radius.coverage`.
        """
        found = self.radius(p, scaled)
        kept = int(np.sum(~self.chosen))
        least = self.quantile - 4.0 * math.sqrt(self.quantile * (1.0 - self.quantile) / kept)
        if found.coverage < least or found.coverage == 0.0:
            raise ValueError(
                f"the radius {found.radius:.4g} was to cover {self.quantile:.0%} of the changes, "
                f"but covers {found.coverage:.0%} of those kept back: they are not alike. Look at "
                "plot(), give more models or fewer periods, or set a radius of your own with "
                "NormBall"
            )
        if not scaled:
            return NormBall(p, found.radius)
        return NormBall(p, found.radius, scale=self.scale, intercept=self.intercept_scale)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each p, without and with the scale: radius, coverage and survival."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.radii])

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
        return [row.p for row in self.radii if not row.scaled]


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
        Of recourses made for the denied rows with this ball, at the model's own cutoff: share
        that a model changed as one of those kept back approves, on average; NaN if nobody is
        denied.
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
    favorable_class: Any = None,
    random_state: int = 0,
) -> RadiusEstimate:
    """Estimate how large a ball of models must be to hold a model that is trained again.

    By default the classifier is retrained on bootstrap resamples of the data, and the difference
    between two such models counts as a change. That is how far a model moves when it is trained
    on a fresh sample of the same size from the same population, on average over samples. Where
    the population itself drifts, models move further; past models, or a time column, show how far.

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
        How many models to retrain, at least 20.
    past_models : sequence of fitted models, optional
        Earlier versions, oldest first, behind the same encoders: each change from one to the next
        counts, and the last one to `model`. Nothing is retrained.
    time : (n,) array, optional
        When each row was seen: the rows are cut into `n_periods` of equal size, models are
        trained on bootstrap resamples of each, and changes from one period to the next count. A
        period has fewer rows than the table, so that chance alone moves its models further.
    n_periods : int
    favorable_class : label, optional
        The class that people want. It must be said, unless the classes are False and True.
    random_state : int

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
    check_count("n_models", n_models, least=_LEAST_MODELS)
    check_seed(random_state)
    today = _linear(model, favorable_class, X)
    points = _read_table(today, X)
    today.compare_people(X, points, today.choose_loss(None))
    labels = _read_labels(y, today, len(points))
    if past_models is not None:
        changes, chosen = _past(today, past_models, X, points, favorable_class)
        return _estimate(today, points, changes, chosen, exponents, float(quantile))
    retrain = _Retrainer(today, points, labels, np.random.default_rng(random_state))
    if time is not None:
        changes, chosen = retrain.over_time(_read_time(time, len(points)), n_periods, n_models)
    else:
        changes, chosen = retrain.on_fresh_samples(n_models)
    return _estimate(today, points, changes, chosen, exponents, float(quantile))


def _read_exponents(p: Any) -> list[float]:
    values = list(p) if isinstance(p, (list, tuple, set, np.ndarray)) else [p]
    if not values:
        refuse("p", p, "a number from 1 to inf, or several")
    return [NormBall(value, 0.0).p for value in values]


def _read_table(today: LinearModel, table: Any) -> Floats:
    """Return the table as the classifier reads it."""
    points = read_matrix("X", read_encoded("X", today, table), len(today.coef))
    if not np.isfinite(points).all():
        raise ValueError("X holds values that are missing or infinite; leave these rows out")
    return points


def _read_labels(y: Any, today: LinearModel, n: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, expected ({n},): X has {n} rows")
    try:
        kinds = set(labels.tolist())
    except TypeError:
        kinds = set()
    if len(kinds) != 2:
        raise ValueError(f"y = {shown(y)} does not hold two classes")
    classes = list(kinds) if today.origin is None else today.origin.classes
    same = [kind for kind in kinds for known in classes if kind == known]
    if len(same) != 2 or {type(kind) is bool for kind in kinds} != {
        type(k) is bool for k in classes
    }:
        raise ValueError(
            f"y = {shown(y)} does not hold the classes that the model was fitted on, {classes}"
        )
    return labels


def _read_time(time: Any, n: int) -> NDArray[Any]:
    """Read when each row was seen: numbers or dates."""
    values = np.asarray(time)
    if values.shape != (n,):
        raise ValueError(f"time has shape {values.shape}, expected ({n},): X has {n} rows")
    if values.dtype.kind in "mM":
        unknown = np.isnat(values)
    elif values.dtype.kind in "US":
        raise ValueError("time holds text; give numbers or dates: pandas.to_datetime(time)")
    else:
        unknown = np.isnan(read_floats("time", time))
    if unknown.any():
        raise ValueError(f"time is missing in {int(unknown.sum())} rows; leave these out of X")
    if (values == values[:1]).all():
        raise ValueError("time is the same in all rows; it must tell periods apart")
    return values


def _estimate(
    today: LinearModel,
    points: Floats,
    changes: Floats,
    chosen: NDArray[np.bool_],
    exponents: list[float],
    quantile: float,
) -> RadiusEstimate:
    choosing, kept = changes[chosen], changes[~chosen]
    spread = np.sqrt(np.mean(choosing**2, axis=0))
    denied = points[~accepts(today, today.score(points))]
    models = _vector(today) + kept
    plain, _ = _survival(today, denied, NormBall(1.0, 0.0), models)
    table = []
    for p in exponents:
        for scaled in (False, True):
            scale = {"scale": spread[:-1], "intercept": float(spread[-1])} if scaled else {}
            # 'higher': at least that share of the changes is covered
            distance = _distances(choosing, NormBall(p, 1.0, **scale))
            radius = float(np.quantile(distance, quantile, method="higher"))
            ball = NormBall(p, radius, **scale)
            coverage = float(np.mean(_distances(kept, ball) <= radius))
            survival, helped = _survival(today, denied, ball, models)
            table.append(Radius(p, scaled, radius, coverage, survival, plain, helped))
    return RadiusEstimate(quantile, spread[:-1], float(spread[-1]), changes, chosen, table)


def _past(
    today: LinearModel, past_models: Any, X: Any, points: Floats, favorable_class: Any
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the changes from version to version; every second one chooses."""
    if isinstance(past_models, (str, dict)) or not hasattr(past_models, "__iter__"):
        refuse("past_models", past_models, "a list of fitted models, oldest first")
    versions = []
    for k, past in enumerate(past_models):
        try:
            version = _linear(past, favorable_class, X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"past_models[{k}]: {error}") from None
        encoded = read_matrix(f"X, for past_models[{k}],", read_encoded("X", version, X))
        if encoded.shape != points.shape or not np.allclose(encoded, points, rtol=1e-9, atol=1e-9):
            raise ValueError(
                f"past_models[{k}] encodes people otherwise than `model` does, so that their "
                "coefficients cannot be compared; fit its classifier behind the same encoders"
            )
        version.compare_people(X, encoded, version.choose_loss(None))
        if (version.loss, version.cutoff) != (today.loss, today.cutoff):
            raise ValueError(
                f"past_models[{k}] has another loss or another threshold than `model`, so that "
                "their coefficients cannot be compared"
            )
        versions.append(_vector(version))
    changes = np.diff([*versions, _vector(today)], axis=0)
    if len(changes) < 2:
        raise ValueError(
            f"past_models: {len(changes)} changes are too few to choose a radius and to check it; "
            "give two or more past models"
        )
    return changes, np.arange(len(changes)) % 2 == 0


def _survival(
    today: LinearModel, denied: Floats, robust_to: NormBall, models: Floats
) -> tuple[float, float]:
    """Share of (recourse, model) that are approved, and share of the people who have one."""
    if not len(denied):
        return math.nan, math.nan
    loss = today.choose_loss(None)
    guarantee = float(loss.probability(today.cutoff)) if loss.link else 0.5
    result = solve(
        denied,
        today.coef,
        today.intercept,
        robust_to=robust_to,
        guarantee=guarantee,
        loss=loss.name,
    )
    recourse = result.recourse_array[np.isfinite(result.cost)]
    scores = recourse @ models[:, :-1].T + models[:, -1]
    if not len(recourse):
        return math.nan, 0.0
    return float(accepts(today, scores).mean()), len(recourse) / len(denied)


class _Retrainer:
    """Fits the classifier again, on resampled rows, behind the same encoders."""

    def __init__(
        self, today: LinearModel, points: Floats, labels: NDArray[Any], rng: np.random.Generator
    ) -> None:
        if today.origin is None:
            raise ValueError("a pair of coefficients cannot be retrained; give a fitted classifier")
        self.origin, self.points, self.labels, self.rng = today.origin, points, labels, rng

    def __call__(self, among: NDArray[np.int64]) -> Floats:
        """Return coefficients and intercept of a model of resampled rows."""
        from sklearn.base import clone

        for _ in range(100):
            rows = self.rng.choice(among, size=len(among))
            if len(np.unique(self.labels[rows])) == 2:
                fitted = clone(self.origin.last).fit(self.points[rows], self.labels[rows])
                favorable = self.origin.classes[self.origin.favorable]
                model = _linear(fitted, favorable, None)
                return np.append(model.coef, model.intercept - self.origin.cutoff)
        raise ValueError("no resample has both classes; there are too few rows of one of them")

    def on_fresh_samples(self, n_models: int) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the changes between models that know nothing of each other.

        A model of one half is compared with the next one of its half, so that no model both
        chooses and checks.
        """
        everybody = np.arange(len(self.points))
        models = np.array([self(everybody) for _ in range(n_models)])
        halves = np.array_split(models, 2)
        changes = [np.roll(half, -1, axis=0) - half for half in halves]
        return np.concatenate(changes), np.arange(n_models) < len(halves[0])

    def over_time(
        self, time: NDArray[Any], n_periods: int, n_models: int
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return changes from a model of each period to one of the next.

        Every second walk through all periods chooses: both halves see every period.
        """
        check_count("n_periods", n_periods, least=2, most=len(time) // 2)
        periods = np.array_split(np.argsort(time, kind="stable"), n_periods)
        rounds = max(2, math.ceil(n_models / (n_periods - 1)))
        walks = [np.diff([self(rows) for rows in periods], axis=0) for _ in range(rounds)]
        return np.concatenate(walks), np.repeat(np.arange(rounds) % 2 == 0, n_periods - 1)


def _linear(model: Any, favorable_class: Any, people: Any) -> LinearModel:
    adapted = as_model(model, favorable_class=favorable_class, people=people)
    if isinstance(adapted, LinearModel):
        if not adapted.loss:
            name = type(unwrap(model).last).__name__
            raise ValueError(
                f"{name} was fitted with a loss that Holdfast does not know; fit a "
                "LogisticRegression or a LinearSVC"
            )
        return adapted
    rest = adapted.origin.rest if adapted.origin is not None else []
    where = f"{rest[0][0]}: {type(rest[0][1]).__name__}" if rest else type(model).__name__
    raise ValueError(f"{where} is not linear in its score; a radius is one of coefficients")


def _vector(model: LinearModel) -> Floats:
    return np.append(model.coef, model.intercept)


def _distances(changes: Floats, robust_to: NormBall) -> Floats:
    nothing = np.zeros(changes.shape[1] - 1)
    return robust_to.distance(nothing, 0.0, changes[:, :-1], changes[:, -1])
