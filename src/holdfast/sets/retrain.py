"""The whole model fitted again: to resamples, to halves, to windows of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, Ints
from holdfast.models.encoding.unwrap import is_a
from holdfast.models.regressions import StatsmodelsResults
from holdfast.sets.space import NotInSpaceError, Space, UnreadableError

Draw = Callable[[np.random.Generator], Ints]

_ATTEMPTS = 50  # draws for one model, until it has both classes and all levels
_KEEP = (
    "Bins, weights of evidence and values that are filled in become different columns when they "
    "are fitted again: wrap such a step in sklearn.frozen.FrozenEstimator to keep it; an imputer "
    "can also tell missing values apart (add_indicator=True)"
)
_COMPARED = 20  # rows on which a refit is asked itself: it is of the same kind as today's model


def draw_bootstrap(n: int) -> Draw:
    """Return a function that draws n of n rows, with replacement."""
    return lambda rng: np.asarray(rng.integers(n, size=n))


def draw_half(n: int) -> Draw:
    """Return a function that draws half of the rows, none twice.

    Models of random halves of one sample scatter as those of fresh samples of the full size do:
    half as many rows, but each model shares half of them with today's.
    """
    return lambda rng: np.asarray(rng.permutation(n)[: max(2, n // 2)])


def retrain(
    space: Space,
    labels: NDArray[Any],
    draws: list[Draw],
    random_state: int,
    report: Callable[[], None] = lambda: None,
    attempts: int = _ATTEMPTS,
) -> Floats:
    """Fit the whole model once for each draw of rows, and express it in today's columns.

    A draw that lacks a class, or a level that today's encoder knows, is drawn again. A model that
    reads other columns than today's, such as other bins, is an error. One model is fitted after
    another: scikit-learn's handling of warnings does not bear threads.

    Returns
    -------
    (k, d + 1) array
        Coefficients, the intercept last.
    """
    from threadpoolctl import threadpool_limits

    if space.today.origin is None:
        raise ValueError("a pair of coefficients cannot be retrained; pass a fitted classifier")
    unfitted = _unfitted(space.today.origin.whole)
    vectors = []
    with threadpool_limits(1):  # for models this small, threads only get in each other's way
        for k, draw in enumerate(draws):
            rng = np.random.default_rng([random_state, k])
            vectors.append(_fit_one(space, labels, unfitted, partial(draw, rng), attempts))
            report()
    models = np.array(vectors)
    if len(models) > 1 and (models == models[0]).all():
        raise ValueError("all retrained models are the same: does the model ignore its data?")
    return models


def _fit_one(
    space: Space,
    labels: NDArray[Any],
    unfitted: Any,
    draw: Callable[[], Ints],
    attempts: int,
) -> Floats:
    from sklearn.base import clone

    why = "no resample had both classes; there are too few rows of one of them"
    for _ in range(attempts):
        rows = draw()
        if len(np.unique(labels[rows])) < 2:
            continue
        fitted = clone(unfitted).fit(space.rows(rows), labels[rows])
        try:
            return space.translate("a retrained model", fitted, compare=_COMPARED)
        except UnreadableError as error:
            why = (
                f"{error} Resamples often lack a rare category: let the encoder know all of them "
                "(categories=...), ignore unknown ones (handle_unknown='ignore'), or merge rare "
                "ones"
            )
        except NotInSpaceError as error:
            # not drawn again: the models that are left would be those most like today's
            raise ValueError(f"{error} {_KEEP}") from None
    tried = f"{attempts} resamples" if attempts > 1 else "the rows"
    raise ValueError(f"{tried} gave no model to compare with: {why}. {_KEEP}")


def _unfitted(model: Any) -> Any:
    """Return what is to be fitted again.

    A search is not repeated: the model that it found is fitted again. Frozen ones are thawed,
    but for encoders that were frozen on purpose.
    """
    from sklearn.base import clone

    if isinstance(model, StatsmodelsResults):
        raise ValueError(
            "statsmodels results cannot be refitted to other rows; pass the same model as a "
            "LogisticRegression(penalty=None), or past models"
        )
    if is_a(model, "CalibratedClassifierCV"):
        if getattr(model, "cv", None) == "prefit" or is_a(model.estimator, "FrozenEstimator"):
            raise ValueError(
                "CalibratedClassifierCV holds a classifier that was already fitted on other "
                "rows, so the two cannot be refitted to one resample; fit it with ensemble=False "
                "around the classifier itself"
            )
        return clone(model)
    if is_a(model, "FrozenEstimator"):
        return _unfitted(model.estimator)
    if is_a(model, "BaseSearchCV"):
        return _unfitted(model.best_estimator_)
    if is_a(model, "FixedThresholdClassifier") or is_a(model, "TunedThresholdClassifierCV"):
        if getattr(model, "cv", None) == "prefit":
            raise ValueError(
                "a threshold tuned with cv='prefit' cannot be tuned again on a resample; tune it "
                "by cross-validation, or fix it with FixedThresholdClassifier"
            )
        return clone(model).set_params(estimator=_unfitted(model.estimator))
    if is_a(model, "Pipeline"):
        *before, (name, last) = model.steps
        copy = clone(model)
        copy.steps = [*((label, clone(step)) for label, step in before), (name, _unfitted(last))]
        return copy
    if not hasattr(model, "get_params"):
        raise ValueError(
            f"a {type(model).__name__} is given by its coefficients, so it cannot be retrained; "
            "pass a fitted classifier"
        )
    return clone(model)
