"""Sets of models and what each of them assumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.machinery.numbers import (
    Floats,
    check_count,
    check_flag,
    check_positive,
    check_random_state,
)
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.model_list import ModelList
from holdfast.sets.curvature import Curvature, curvature_of, inverse
from holdfast.sets.retrain import draw_bootstrap, retrain
from holdfast.sets.space import Space, read_labels, read_model_list


def fisher(
    model: Any,
    X: Any,
    *,
    radius: float = 2.0,
    favorable_class: Any = None,
    intercept: bool = True,
) -> Ellipsoid:
    """Return the models that the data can hardly tell from today's: its Fisher information.

    The covariance is the inverse of the information of the regularised training loss, in the
    columns that the classifier reads, the intercept last. It assumes that the model is right
    about the world, and that a retrained model will see as many rows; `sandwich` does without
    the first, `bootstrap` without the formula.

    Parameters
    ----------
    model : fitted classifier or pipeline
        A `LogisticRegression` (L2 penalty or none) or an `SGDClassifier` with the log loss.
    X : table
        The rows it was trained on, in raw units.
    radius : float
        Size, in standard errors. Two models trained on separate rows differ from each other by
        the square root of 2 times as much as either of them differs from the truth.
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.
    intercept : bool
        Whether the intercept changes too; if not, the others move as if it were known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> model = LogisticRegression().fit(X, y)
    >>> holdfast.sets.fisher(model, X, radius=2.0)
    Ellipsoid(<3 x 3 covariance>, radius=2)
    """
    check_flag("intercept", intercept)
    space = Space.of(model, X, favorable_class)
    loss = curvature_of(space, None, intercept=intercept)
    return _ellipsoid(inverse(loss.hessian, space), radius, space)


def sandwich(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    radius: float = 2.0,
    favorable_class: Any = None,
    intercept: bool = True,
) -> Ellipsoid:
    """Return the models within a number of robust standard errors of today's.

    The covariance is ``H^-1 J H^-1``: H the Hessian of the regularised training loss, J the sum
    of the outer products of the rows' gradients. Unlike `fisher` it does not assume that the
    model is right about the world, and it takes class weights and the squared hinge.

    Parameters
    ----------
    model, X, radius, favorable_class, intercept
        As in `fisher`; the model may also be a `LinearSVC` with the squared hinge.
    y : (n,) array
        The labels it was trained on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import LinearSVC
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> holdfast.sets.sandwich(LinearSVC().fit(X, y), X, y)
    Ellipsoid(<3 x 3 covariance>, radius=2)
    """
    check_flag("intercept", intercept)
    space = Space.of(model, X, favorable_class)
    labels = read_labels(y, space.today, space.n_rows)
    loss = curvature_of(space, labels, intercept=intercept)
    bread = inverse(loss.hessian, space)
    _check_minimum(loss, bread, space.n_rows)
    return _ellipsoid(bread @ loss.scores_product @ bread, radius, space)


def rashomon(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    loss_increase: float,
    favorable_class: Any = None,
    intercept: bool = True,
) -> Ellipsoid:
    """Return the models that fit the training data almost as well as today's.

    All models whose mean training loss, penalty included, is at most `loss_increase` above that of
    today's: to second order. The loss is replaced by its quadratic approximation around today's
    model, so the set is an ellipsoid; far from today's model the true set differs.

    Parameters
    ----------
    model, favorable_class, intercept
        As in `sandwich`. The model must be at the minimum of its loss.
    X, y : table and labels
        What it was trained on.
    loss_increase : float
        How much the mean loss of a row may rise.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> model = LogisticRegression().fit(X, y)
    >>> holdfast.sets.rashomon(model, X, y, loss_increase=0.02)
    Ellipsoid(<3 x 3 covariance>, radius=0.2)
    """
    check_positive("loss_increase", loss_increase, or_zero=True)
    check_flag("intercept", intercept)
    space = Space.of(model, X, favorable_class)
    labels = read_labels(y, space.today, space.n_rows)
    loss = curvature_of(space, labels, intercept=intercept)
    covariance = inverse(loss.hessian, space)
    _check_minimum(loss, covariance, space.n_rows)
    return _ellipsoid(space.n_rows * covariance, float(np.sqrt(2.0 * loss_increase)), space)


def bootstrap(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    n_models: int = 100,
    radius: float = 2.0,
    favorable_class: Any = None,
    random_state: int = 0,
) -> Ellipsoid:
    """Return the models within a number of standard deviations of today's, as refits vary.

    The whole model, its scalers and encoders included, is fitted again to resamples of the rows,
    and each refit is expressed in today's columns. Their covariance is shrunk towards independent
    coefficients (Ledoit and Wolf), because a few models cannot determine many correlations.

    Parameters
    ----------
    model : fitted classifier or pipeline
        Any that is linear in its score. A search is not repeated: its winner is refitted.
    X, y : table and labels
        What it was trained on.
    n_models : int
        How many refits, at least 10.
    radius : float
        Size, in standard deviations.
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> holdfast.sets.bootstrap(model, X, y, n_models=20)
    Ellipsoid(<3 x 3 covariance>, radius=2)
    """
    check_count("n_models", n_models, least=10)
    check_random_state(random_state)
    space = Space.of(model, X, favorable_class)
    labels = read_labels(y, space.today, space.n_rows)
    draws = [draw_bootstrap(space.n_rows)] * n_models
    models = retrain(space, labels, draws, random_state)
    return _ellipsoid(covariance_of(models), radius, space)


def from_models(
    models: Sequence[Any], model: Any, X: Any, *, favorable_class: Any = None
) -> ModelList:
    """Return a set of known models: earlier years', other vendors', the members of an ensemble.

    Each is expressed in the columns that today's model reads, exactly, whatever scalers and
    encoders it was fitted behind. It assumes nothing, and promises nothing about models other than
    these and their mixtures. A model whose cutoff differs from today's is shifted so that it
    approves the same people at today's cutoff.

    Parameters
    ----------
    models : sequence of fitted classifiers or pipelines
        Linear, with the same loss and classes as today's model, of the same raw features.
    model : fitted classifier or pipeline
        Today's.
    X : table
        Rows in raw units, as both take them, to compare them on.
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler, StandardScaler
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    >>> last_year = make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X[:200], y[:200])
    >>> holdfast.sets.from_models([last_year], model, X)
    ModelList(<1 model, features: 2>)
    """
    _, vectors = _translated(models, model, X, favorable_class)
    return ModelList([(vector[:-1], float(vector[-1])) for vector in vectors])


def ellipsoid_from_models(
    models: Sequence[Any],
    model: Any,
    X: Any,
    *,
    radius: float = 2.0,
    favorable_class: Any = None,
) -> Ellipsoid:
    """Return an ellipsoid around today's model, shaped as some other models lie around it.

    Unlike `from_models` it assumes that the next model differs from today's as these do. The
    covariance is that of their differences from today's model, shrunk as in `bootstrap`.

    Parameters
    ----------
    models, model, X, favorable_class
        As in `from_models`; two models or more.
    radius : float
        Size, in standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> years = [LogisticRegression().fit(X[k : k + 100], y[k : k + 100]) for k in (0, 100, 200)]
    >>> holdfast.sets.ellipsoid_from_models(years, LogisticRegression().fit(X, y), X)
    Ellipsoid(<3 x 3 covariance>, radius=2)
    """
    space, vectors = _translated(models, model, X, favorable_class)
    if len(vectors) < 2:
        raise ValueError(
            "models: a single model has no spread; pass two or more, or use from_models"
        )
    return _ellipsoid(covariance_of(vectors, around=space.vector), radius, space)


def covariance_of(models: Floats, around: Floats | None = None) -> Floats:
    """Return the shrunk covariance of some models, around their mean or around one of them."""
    from sklearn.covariance import LedoitWolf

    count = len(models)
    changes = models - (models.mean(axis=0) if around is None else around)
    if around is None:  # the mean is nearer to them than the truth is
        changes = changes * np.sqrt(count / (count - 1))
    size = np.sqrt(np.mean(changes**2, axis=0))
    moves = size > 1e-12 * (1.0 + np.abs(models).max(axis=0))
    covariance = np.zeros((models.shape[1], models.shape[1]))
    if moves.any():
        even = changes[:, moves] / size[moves]
        shrunk = LedoitWolf(assume_centered=True).fit(even).covariance_
        covariance[np.ix_(moves, moves)] = shrunk * size[moves] * size[moves][:, None]
    return covariance


def _translated(models: Any, model: Any, X: Any, favorable_class: Any) -> tuple[Space, Floats]:
    those = read_model_list("models", models)
    if not those:
        raise ValueError("models is empty; pass at least one fitted model")
    space = Space.of(model, X, favorable_class)
    return space, np.array(
        [space.translate(f"models[{k}]", other) for k, other in enumerate(those)]
    )


def _ellipsoid(covariance: Floats, radius: float, space: Space) -> Ellipsoid:
    has_intercept = len(covariance) > len(space.today.coef)
    if has_intercept:
        covariance = space.settled(covariance)
    return Ellipsoid(0.5 * (covariance + covariance.T), radius, intercept=has_intercept)


def _check_minimum(loss: Curvature, covariance: Floats, n: int) -> None:
    """Refuse a model that is not where its loss is least: it is no centre of such a set."""
    gradient = loss.gradient
    excess = 0.5 * float(gradient @ covariance @ gradient) / n
    if excess > 1e-3:
        raise ValueError(
            f"the model is not at the minimum of its training loss (a better one is lower by "
            f"{excess:.2g}): are X and y what it was trained on, without sample weights, and did "
            "its training converge?"
        )
