"""The one door to every method: adapt the model, linearise, run, and judge what came back."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast._numbers import Floats
from holdfast._threads import thread_count
from holdfast.api import judge, solve_problem
from holdfast.ball import NormBall
from holdfast.linearise import Lineariser, get_lineariser
from holdfast.methods.base import Found, Method, Task
from holdfast.methods.catalogue import METHODS, get_method
from holdfast.models import LinearModel, Model, as_model
from holdfast.problem import RecourseProblem
from holdfast.result import MethodStatus, Recourse, Status
from holdfast.surrogate import Surrogate


@dataclass(frozen=True)
class MethodInfo:
    """What a method is, needs and guarantees, and the settings that it has."""

    name: str
    summary: str
    needs: str
    guarantees: str
    settings: dict[str, Any]


def list_methods() -> list[MethodInfo]:
    """List the methods that `find_recourse` knows.

    Examples
    --------
    >>> import holdfast
    >>> [method.name for method in holdfast.list_methods()][0]
    'exact'
    >>> print(holdfast.list_methods()[0].guarantees)
    optimal for linear scores, any p, proven for each row
    """
    return [
        MethodInfo(name, kind.summary, kind.needs(), kind.guarantees, vars(kind()))
        for name, kind in METHODS.items()
    ]


def find_recourse(
    points: ArrayLike,
    model: Any,
    method: str | Method = "exact",
    *,
    ball: NormBall,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    linearise: str | Lineariser | Surrogate | None = None,
    training: ArrayLike | None = None,
    feature_costs: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str | None = None,
    target_class: Any = None,
    device: str = "cpu",
    seed: int = 0,
    threads: int | None = None,
    **settings: Any,
) -> Recourse:
    """Find recourse by any of the methods, for any model, judged by one and the same code.

    Parameters
    ----------
    points : (n, d) array or data frame
        The people turned down, as the model takes them. For a pipeline recourse is found behind
        its encoders: the result, costs and bounds are in the encoded columns.
    model : object
        Whatever `holdfast.models.as_model` understands.
    method : str or Method
        See `list_methods`.
    ball : NormBall
        The models that the recourse must withstand: around the coefficients of a linear model,
        or around those of the surrogate.
    cost_weight, guarantee : float
        Exactly one of them, as in `solve`; only ``exact`` gives a guarantee.
    linearise : {"lime", "smoothgrad", "gradient"}, Lineariser or Surrogate, optional
        How a model that is not linear is made so around each point; "lime" by default. Hand a
        `Surrogate` (``result.surrogate``) in to use it again.
    training : (m, d) array or data frame, optional
        What the model was trained on, as the model takes it; LIME and RBR need it.
    feature_costs, bounds, loss : optional
        As in `solve`; the loss is by default the one that the model was fitted with.
    target_class : label, optional
        The wanted class of a scikit-learn classifier; the second of its classes by default.
    device : str
        Where networks run: "cpu", "cuda", ...
    seed : int
        Seed of whatever draws random numbers.
    threads : int, optional
        Threads of the compiled methods; all available processors by default.
    **settings
        The settings of the method; unknown ones are errors.

    Returns
    -------
    Recourse

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> model = ([1.0, -0.5], -1.0)
    >>> exact = holdfast.find_recourse([[0.0, 2.0]], model, ball=ball, cost_weight=0.1)
    >>> exact.price.round(3), str(exact.method_status[0])
    (array([0.571]), 'converged')
    """
    adapted = as_model(model, target_class=target_class, device=device)
    chosen = get_method(method, settings)
    encoded = adapted.encode(points)
    x = np.asarray(encoded, dtype=np.float64)
    known = None if training is None else np.asarray(adapted.encode(training), dtype=np.float64)
    surrogate = _surrogate(adapted, x, known, linearise, seed)
    score: Any = surrogate if isinstance(adapted, Model) and surrogate is not None else adapted
    problem = RecourseProblem.build(
        encoded,
        score.coef,
        score.intercept,
        ball=ball,
        feature_costs=feature_costs,
        bounds=bounds,
        loss=loss or adapted.loss,
    )
    workers = thread_count(threads)
    task = Task(problem, cost_weight, guarantee, adapted, known, seed, workers)
    chosen.check(task)
    best = solve_problem(problem, cost_weight=cost_weight, guarantee=guarantee, threads=workers)
    found, seconds = _run(chosen, task, best)
    result = best if chosen.name == "exact" else judge(best, found.recourse, workers)
    result = replace(
        result, method=chosen.name, seconds=seconds, method_status=found.status, steps=found.steps
    )
    return _with_the_model(result, adapted, surrogate)


def _surrogate(
    model: Model,
    points: Floats,
    training: Floats | None,
    linearise: str | Lineariser | Surrogate | None,
    seed: int,
) -> Surrogate | None:
    if isinstance(model, LinearModel):
        if linearise is not None:
            raise ValueError("the model is linear as it is: leave linearise out")
        return None
    if isinstance(linearise, Surrogate):
        if linearise.coef.shape != points.shape:
            raise ValueError(
                f"the surrogate has coefficients of shape {linearise.coef.shape}, but the points "
                f"have {points.shape}; it belongs to other points"
            )
        return linearise
    begin = time.perf_counter()
    fitted = get_lineariser(linearise or "lime").fit(model, points, training, seed)
    return replace(fitted, seconds=time.perf_counter() - begin)


def _run(method: Method, task: Task, best: Recourse) -> tuple[Found, float]:
    """Run a method on the rows that can be used; time it without compilation."""
    unusable = (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS)
    usable = np.array([status not in unusable for status in best.status], dtype=bool)
    part = replace(task, problem=task.problem.take(usable))
    if method.compiled:
        method.run(replace(task, problem=task.problem.take(slice(0, 0))))
    begin = time.perf_counter()
    found = method.run(part)
    seconds = time.perf_counter() - begin
    n, d = task.problem.points.shape
    recourse, steps = np.full((n, d), np.nan), np.zeros(n, dtype=np.int64)
    status = np.empty(n, dtype=object)
    status[:] = MethodStatus.NOT_RUN
    recourse[usable], status[usable], steps[usable] = found
    return Found(recourse, status, steps), seconds


def _with_the_model(result: Recourse, model: Model, surrogate: Surrogate | None) -> Recourse:
    """Say what the model itself thinks of the recourses."""
    there = ~np.isnan(result.recourse_array).any(axis=1)
    score = np.full(len(result), np.nan)
    if there.any():
        score[there] = model.score(result.recourse_array[there])
    status = result.method_status
    assert status is not None
    status[(status == MethodStatus.CONVERGED) & (score < 0.0)] = MethodStatus.NOT_VALID
    if surrogate is None:
        return result
    known = np.isfinite(result.problem.points).all(axis=1)
    before = np.full(len(result), np.nan)
    if known.any():
        before[known] = model.score(result.problem.points[known])
    return replace(
        result,
        surrogate=surrogate,
        model_score=score,
        initial_model_score=before,
        current_validity=result.problem.loss.probability(score),
    )
