"""One tidy table of what models make of recourses, whoever found them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.evaluate.scores import judging_of, model_score, population_score, worst_case_score
from holdfast.machinery.numbers import Floats, is_frame, read_floats, read_matrix, whole_rows
from holdfast.machinery.threads import thread_count
from holdfast.models import LinearModel, Model, as_model
from holdfast.models.base import reaches_cutoff, read_encoded
from holdfast.problem import ModelSet
from holdfast.problem.costs import costs_of_moves
from holdfast.problem.goal import Goal
from holdfast.problem.losses import Loss
from holdfast.problem.model_set import check_models
from holdfast.result import RecourseResult, Status

if TYPE_CHECKING:
    import pandas as pd


def evaluate_recourse(
    recourse: RecourseResult | ArrayLike,
    model: Any,
    X: ArrayLike | None = None,
    *,
    robust_to: ModelSet | None = None,
    later_models: Any = None,
    cost_weight: float | None = None,
    feature_costs: ArrayLike | None = None,
    favorable_class: Any = None,
    n_jobs: int | None = -1,
) -> pd.DataFrame:
    """Judge recourses by today's model, by the worst models of a set, and by later models.

    Nothing is taken from whoever found the recourses but the recourses themselves, what was asked
    for (set of models, costs, cost weight) and the status: scores, costs and prices are computed
    again.

    Parameters
    ----------
    recourse : RecourseResult, or (n, d) array or data frame
        What `solve` or `find_recourse` returned; or where people go, as the model takes them, a row
        of missing values where there is no recourse. For the advice of `RobustRecourse` it is
        ``advice.after()``, with ``X=advice.people.loc[advice.after().index]``.
    model : object
        Today's: anything that `holdfast.models.as_model` accepts.
    X : (n, d) array or data frame, optional
        The people as they are, as the model takes them. A result knows them; it is needed beside
        one only where the model is a pipeline and there are later models, which read raw columns.
        Without it plain recourses have no cost and no price.
    robust_to : NormBall, Ellipsoid, ModelList or LastLayer, optional
        The set that the worst models are of; a result's own by default. For a network it is a ball
        around all parameters, of any p, whose `scale` has one number for each tensor of them (see
        `holdfast.models.networks.worst_network`), or a `LastLayer`, which is judged exactly.
    later_models : model, list of models or dict from names to models, optional
        Models that came after today's: retrained ones, say. Each takes what `model` takes. Models
        of a list are named 0, 1, ...
    cost_weight : float, optional
        Of the price; a result's own by default.
    feature_costs : (d,) or (n, d) array, optional
        Of the (encoded) columns; a result's own by default, else 1.
    favorable_class : label, optional
        The class of scikit-learn classifiers that people want, as in `find_recourse`.
    n_jobs : int, optional
        Threads of the searches for networks; all available processors by default.

    Returns
    -------
    DataFrame
        One row for each recourse and each later model; without later models, one row for each
        recourse. What does not depend on the later model is repeated. The columns:

        - ``person``: label of the row;
        - ``later_model``: its name; missing without later models;
        - ``status``: the result's; of plain recourses, whether today's model gives them the
          favourable class (accepted, not valid), or that there is none (not found);
        - ``cost``: ``sum(feature_costs * |recourse - X|)``, in encoded columns; the result's own
          where it has categories;
        - ``price``: loss under the worst model + cost weight * cost; the cost alone where a
          guarantee was asked for; missing where nothing was;
        - ``current_validity``: probability of approval by today's model;
        - ``worst_case_validity``: ... by the worst model of the set for this recourse alone;
        - ``population_validity``: ... by one model of the set, that with the largest sum of
          ``log(1 + exp(-score))`` over all recourses;
        - ``future_validity``: ... by the later model;
        - ``judging``, ``population_judging``: how the worst models were found. "exact": no model
          of the set is worse. "search": the worst that was come upon, so that validities may be
          lower and prices higher. "not judged": a black box has no parameters to change.

        Rows without a recourse hold missing values; so does the future validity of a recourse that
        moves a category to none of its levels, which no raw row can express. Losses of margins
        (hinge) have no probabilities.

    Examples
    --------
    >>> import holdfast
    >>> from holdfast.evaluate import evaluate_recourse
    >>> model, later = ([1.0, -0.5], -1.0), ([1.2, -0.5], -1.0)
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> found = holdfast.solve([[0.0, 2.0]], *model, robust_to=ball, guarantee=0.6)
    >>> table = evaluate_recourse(found, model, later_models={"2027": later})
    >>> table[["cost", "current_validity", "worst_case_validity"]].round(3).values.tolist()
    [[2.673, 0.662, 0.6]]
    >>> table[["later_model", "future_validity", "judging"]].round(2).values.tolist()
    [['2027', 0.77, 'exact']]

    Plain points, judged in the same way:

    >>> points = evaluate_recourse([[3.0, 2.0]], model, [[0.0, 2.0]], robust_to=ball)
    >>> points[["status", "cost", "worst_case_validity"]].round(3).values.tolist()
    [['accepted', 3.0, 0.668]]
    """
    import pandas as pd

    today = as_model(model, favorable_class=favorable_class)
    asked = (
        _asked_of_result(recourse, today, X)
        if isinstance(recourse, RecourseResult)
        else _asked_of_points(recourse, today, X)
    )
    models = asked.robust_to if robust_to is None else robust_to
    if models is None:
        raise ValueError("robust_to is missing; plain recourses have no set of models of their own")
    check_models(models)
    proven = isinstance(recourse, RecourseResult) and recourse.bracket is not None
    if robust_to is None and today.kind == "network" and not proven:
        from holdfast.models.networks.ball_scales import refuse_feature_scale

        refuse_feature_scale(models)
    costs = asked.feature_costs if feature_costs is None else _read_costs(feature_costs, asked)
    goal = asked.goal
    if cost_weight is not None:
        # of a calibrated model too: there it is the price of the classifier's own loss
        goal = Goal.of_cost_weight(asked.loss, cost_weight)
    workers = thread_count(n_jobs)
    worst = worst_case_score(today, asked.points, models, n_jobs=workers)
    together = population_score(today, asked.points, models, n_jobs=workers)
    cost = costs_of_moves(asked.start, asked.points, costs)
    if asked.cost is not None and feature_costs is None:
        cost = np.where(whole_rows(asked.points), asked.cost, np.nan)
    table = pd.DataFrame(
        {
            "person": asked.labels,
            "later_model": None,
            "status": asked.status.astype(str),
            "cost": cost,
            "price": np.nan if goal is None else goal.price(cost, _losses(asked.loss, worst)),
            "current_validity": asked.loss.probability(model_score(today, asked.points)),
            "worst_case_validity": asked.loss.probability(worst),
            "population_validity": asked.loss.probability(together.score),
            "future_validity": np.nan,
            "judging": judging_of(today, models),
            "population_judging": together.judging,
        }
    )
    later = _named(later_models)
    parts = [
        table.assign(later_model=name, future_validity=_future(each, asked, favorable_class))
        for name, each in later.items()
    ]
    return pd.concat(parts, ignore_index=True) if parts else table


@dataclass(frozen=True, eq=False)
class _Recourses:
    """Recourses, and all that is known of them without asking a model.

    `points` and `start` are in the columns in which recourse is found; `raw` holds those rows
    `written` that can be written in the columns that models take, None where these are not known.
    """

    points: Floats
    start: Floats
    labels: Any
    status: NDArray[np.object_]
    loss: Loss
    written: NDArray[np.bool_]
    raw: Any
    robust_to: ModelSet | None = None
    feature_costs: Any = 1.0
    goal: Goal | None = None
    cost: Floats | None = None  # where it is more than that of the columns: with categories


def _asked_of_result(result: RecourseResult, model: Model, X: Any) -> _Recourses:
    problem, points = result.problem, result.recourse_array
    _check_width(model, points)
    labels = np.arange(len(points)) if problem.index is None else problem.index
    there = result.has_recourse
    encoders = model.origin is not None and bool(model.origin.steps)
    raw: Any = None
    if encoders and X is not None:
        there, raw = _written(model, points, problem.X, X)
    elif not encoders:
        raw = _framed(points[there], problem.feature_names, labels[there])
    return _Recourses(
        points,
        problem.X,
        labels,
        result.status,
        problem.loss,
        there,
        raw,
        problem.robust_to,
        problem.feature_costs,
        result.goal,
        None if result.levels is None else result.cost,
    )


def _written(model: Model, points: Floats, start: Floats, X: Any) -> tuple[Any, Any]:
    """Put recourses back into the raw columns of the people; fractions of a category have none."""
    assert model.origin is not None
    encoded = read_matrix("X", read_encoded("X", model, X, usable_only=True))
    if encoded.shape != start.shape or not np.array_equal(encoded, start, equal_nan=True):
        raise ValueError("X holds different people from those that the recourses were found for")
    whole = whole_rows(points)
    whole[whole] = ~model.origin.fractional(points[whole], start[whole])
    raw = X.loc[whole] if hasattr(X, "loc") else np.asarray(X)[whole]
    return whole, model.origin.decode(model.in_order(raw), points[whole], start[whole])


def _asked_of_points(recourse: Any, model: Model, X: Any) -> _Recourses:
    points = read_matrix("recourse", read_encoded("recourse", model, recourse, usable_only=True))
    _check_width(model, points)
    start = np.full_like(points, np.nan)
    if X is not None:
        start = read_matrix("X", read_encoded("X", model, X, usable_only=True), points.shape[1])
        if len(start) != len(points):
            raise ValueError(f"X has {len(start)} rows, but recourse has {len(points)}")
        if is_frame(X) and is_frame(recourse) and not X.index.equals(recourse.index):
            raise ValueError("X and recourse do not have the same labels in the same order")
    there = whole_rows(points)
    labels = recourse.index if is_frame(recourse) else np.arange(len(points))
    raw = recourse.loc[there] if is_frame(recourse) else np.asarray(recourse)[there]
    status, loss = np.full(len(points), Status.NOT_FOUND, dtype=object), model.choose_loss(None)
    accepted = model.compare_people(raw, points[there], loss)
    if accepted is None:
        accepted = reaches_cutoff(model, model_score(model, points[there]))
    status[there] = np.where(accepted, Status.ACCEPTED, Status.NOT_VALID)
    return _Recourses(points, start, labels, status, loss, there, raw)


def _future(model: Any, asked: _Recourses, favorable_class: Any) -> Floats:
    """Probability of approval of each recourse by a later model."""
    plain = isinstance(model, (Model, tuple)) or not hasattr(model, "predict")
    later = as_model(model) if plain else as_model(model, favorable_class=favorable_class)
    if asked.raw is None:
        raise ValueError(
            "later models read raw columns, but the result only has the encoded ones; pass X, "
            "the people as the model takes them"
        )
    validity = np.full(len(asked.points), np.nan)
    if asked.written.any():
        loss = later.choose_loss(None)
        encoded = read_encoded("recourse", later, asked.raw)
        points = read_matrix("recourse", encoded)
        _check_width(later, points)
        if later.origin is not None and later.origin.steps:
            later.compare_people(asked.raw, encoded, loss)
        else:
            later.compare_points(points, asked.labels[asked.written], loss)
        validity[asked.written] = loss.probability(later.score(points))
    return validity


def _losses(loss: Loss, score: Floats) -> Floats:
    known = np.isfinite(score)
    values = np.full(len(score), np.nan)
    values[known] = loss.value(score[known])
    return values


def _named(later: Any) -> dict[Any, Any]:
    if later is None:
        return {}
    if isinstance(later, dict):
        return later
    return dict(enumerate(later)) if isinstance(later, list) else {0: later}


def _check_width(model: Model, points: Floats) -> None:
    if isinstance(model, LinearModel) and points.shape[1] != len(model.coef):
        raise ValueError(
            f"recourse has {points.shape[1]} (encoded) columns, but the model has "
            f"{len(model.coef)} coefficients"
        )


def _framed(points: Floats, names: list[Any] | None, labels: Any) -> Any:
    if names is None:
        return points
    import pandas as pd

    return pd.DataFrame(points, columns=names, index=labels)


def _read_costs(feature_costs: Any, asked: _Recourses) -> Floats:
    costs, shape = read_floats("feature_costs", feature_costs), asked.points.shape
    if costs.shape not in ((), shape[1:], shape) or not (costs > 0.0).all():
        raise ValueError(
            f"feature_costs has shape {costs.shape}, expected ({shape[1]},) or {shape}; all of "
            "them must be positive"
        )
    return costs
