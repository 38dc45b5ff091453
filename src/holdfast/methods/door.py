"""The one door to every method: adapt the model, linearise, run, and judge what came back."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.continuous.frontier import answer
from holdfast.continuous.solve import judge
from holdfast.machinery.numbers import Floats, check_random_state, read_matrix, whole_rows
from holdfast.machinery.threads import thread_count
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.methods.catalogue import METHODS, get_method
from holdfast.methods.exact import Exact
from holdfast.methods.refine import Refine
from holdfast.models import LinearModel, Model, as_model
from holdfast.models.base import reaches_cutoff, read_encoded
from holdfast.models.linearise import Lineariser, get_lineariser
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet
from holdfast.problem.problem import RecourseProblem
from holdfast.result.result import RecourseResult
from holdfast.result.status import MethodStatus, Status, network_statuses, tell_proven_apart
from holdfast.result.surrogate import Surrogate

if TYPE_CHECKING:
    from holdfast.models.network import Network


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
    >>> from holdfast.methods import list_methods
    >>> [method.name for method in list_methods()][0]
    'exact'
    >>> print(list_methods()[0].guarantees)
    optimal for linear scores, any p, proven for each row
    """
    return [describe(kind) for kind in METHODS.values()]


def describe(kind: type[Method]) -> MethodInfo:
    """Say what a method is, needs and guarantees."""
    return MethodInfo(kind.name, kind.summary, kind.needs(), kind.guarantees, vars(kind()))


def find_recourse(
    X: ArrayLike,
    model: Any,
    method: str | Method | None = None,
    *,
    robust_to: ModelSet,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    linearise: str | Lineariser | Surrogate | None = None,
    X_train: ArrayLike | None = None,
    feature_costs: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    loss: str | None = None,
    favorable_class: Any = None,
    device: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = -1,
    **settings: Any,
) -> RecourseResult:
    """Find recourse with any of the methods, for any model; all are judged by the same code.

    Parameters
    ----------
    X : (n, d) array or data frame
        The people turned down, as the model takes them. For a pipeline, recourse is found after the
        scalers and encoders that it begins with: the result is a data frame of the encoded columns,
        in which costs and bounds are given too. Columns that are made from others (polynomials,
        bins, splines) are recomputed for each point. A one-hot column is a number like any other
        here; if it comes out as a fraction, the status is FRACTIONAL: such a recourse is for study
        only. `RobustRecourse` gives advice that people can follow.
    model : object
        Anything that `holdfast.models.as_model` accepts.
    method : str or Method, optional
        A name from `list_methods()`, or a method with its settings. By default ``refine`` for a
        network with a guarantee over a ball or a `LastLayer`, and ``exact`` for everything else.
    robust_to : NormBall, Ellipsoid, ModelList or LastLayer
        The models that the recourse must withstand: around the coefficients of a linear model,
        or around those of the surrogate; with ``refine``, around the parameters of a network: all
        of them (a ball, whose `scale` has a number for each tensor of parameters), or those of its
        last layer (`LastLayer`).
    cost_weight, guarantee : float
        Exactly one of them, as in `solve`. Two methods give a guarantee: ``exact`` that of a linear
        model or of the surrogate, ``refine`` that of the network itself, proven, at the least cost
        that a search finds. Behind a calibrator it is the calibrated probability, and there is
        no cost weight.
    linearise : {"lime", "smoothgrad", "gradient"}, Lineariser or Surrogate, optional
        How a model that is not linear is made so around each point; "lime" by default, and
        "gradient" for a guarantee by ``refine``, which only starts there. Pass a `Surrogate`
        (``result.surrogate``) to use it again.
    X_train : (m, d) array or data frame, optional
        What the model was trained on, as the model takes it; LIME and RBR need it.
    feature_costs, bounds, loss : optional
        As in `solve`; the loss is by default the one that the model was fitted with.
    favorable_class : label, optional
        The class of a scikit-learn classifier that people want. Required unless the
        classes are False and True.
    device : str, optional
        Where networks run: "cpu", "cuda", ...; by default where they are.
    random_state : int
        Seed of whatever draws random numbers.
    n_jobs : int, optional
        Threads of the compiled methods; all available processors by default.
    **settings
        The settings of the method; unknown ones are errors.

    Returns
    -------
    RecourseResult

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> model = ([1.0, -0.5], -1.0)
    >>> exact = holdfast.find_recourse([[0.0, 2.0]], model, robust_to=ball, cost_weight=0.1)
    >>> exact.price.round(3), str(exact.method_status[0])
    (array([0.571]), 'converged')

    For a network a guarantee is proven of the network itself:

    >>> import torch
    >>> layers = torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)
    >>> for layer in (layers[0], layers[2]):
    ...     _ = torch.nn.init.ones_(layer.weight), torch.nn.init.constant_(layer.bias, -1.0)
    >>> network = torch.nn.Sequential(*layers)
    >>> proven = holdfast.find_recourse([[0.5, 0.2]], network, robust_to=ball, guarantee=0.5)
    >>> str(proven.status[0]), bool(proven.bracket.proven_validity[0] >= 0.5)
    ('proven valid', True)
    """
    check_random_state(random_state)
    adapted = as_model(model, favorable_class=favorable_class, device=device, people=X)
    judged = adapted.choose_loss(loss)
    goal = adapted.goal(judged, cost_weight=cost_weight, guarantee=guarantee)
    if method is None:
        method = _usual_method(adapted, goal, robust_to)
    chosen = get_method(method, settings)
    encoded = _encode(adapted, X)
    known = None
    if X_train is not None:
        known = _like(encoded, read_encoded("X_train", adapted, X_train))

    def build(coef: Any, intercept: Any) -> RecourseProblem:
        problem = RecourseProblem.build(
            encoded,
            coef,
            intercept,
            robust_to=chosen.set_on_the_score(robust_to),
            feature_costs=feature_costs,
            bounds=bounds,
            loss=judged,
        )
        return replace(problem, robust_to=robust_to)

    workers = thread_count(n_jobs)
    surrogate = None
    if isinstance(adapted, LinearModel):
        if linearise is not None:
            raise ValueError("the model is already linear: leave out linearise")
        problem = build(adapted.coef, adapted.intercept)
    else:
        problem = build(0.0, 0.0)
    task = Task(problem, goal, adapted, known, random_state, workers)
    chosen.check(task)  # before anything is computed
    adapted.compare_people(X, problem.X, judged)
    if not isinstance(adapted, LinearModel):
        if linearise is None:
            linearise = "gradient" if chosen.proves_networks(goal) else "lime"
        surrogate = _surrogate(adapted, problem.X, known, linearise, random_state)
        task = replace(task, problem=build(surrogate.coef, surrogate.intercept))
    result = _with_the_model(_run_and_judge(chosen, task), adapted, surrogate, X)
    if chosen.proves_networks(goal):
        return _with_proofs(result, task)
    if isinstance(robust_to, LastLayer):
        return _with_last_layers(result, adapted, robust_to)
    return result


def _usual_method(model: Model, goal: Goal, robust_to: ModelSet) -> str:
    """Name the method for whoever names none: what is guaranteed of a network is proven of it."""
    proven = goal.is_guarantee and isinstance(robust_to, (NormBall, LastLayer))
    return Refine.name if model.kind == "network" and proven else Exact.name


def _like(encoded: Any, X_train: Any) -> Floats:
    """Put the training data into the columns of the points."""
    if hasattr(encoded, "columns") and hasattr(X_train, "columns"):
        missing = [name for name in encoded.columns if name not in X_train.columns]
        if missing:
            raise ValueError(f"X_train has no columns {missing}, which X has")
        X_train = X_train[list(encoded.columns)]
    return read_matrix("X_train", X_train, np.shape(encoded)[-1] if np.ndim(encoded) else None)


def _surrogate(
    model: Model,
    points: Floats,
    X_train: Floats | None,
    linearise: str | Lineariser | Surrogate,
    random_state: int,
) -> Surrogate:
    if isinstance(linearise, Surrogate):
        _check_points(linearise, model, points)
        return linearise
    begin = time.perf_counter()
    fitted = get_lineariser(linearise).fit(model, points, X_train, random_state)
    return replace(fitted, seconds=time.perf_counter() - begin)


def _check_points(surrogate: Surrogate, model: Model, points: Floats) -> None:
    """Refuse a surrogate that was made around other points."""
    same = surrogate.coef.shape == points.shape
    rows = whole_rows(points) & np.isfinite(surrogate.point_error)
    if same and rows.any():
        score = model.score(points[rows])
        error = score - surrogate.score(np.where(rows[:, None], points, 0.0))[rows]
        near = np.isclose(error, surrogate.point_error[rows], rtol=1e-3, atol=1e-3)
        same = bool(near.all())
    if not same:
        raise ValueError("the surrogate was made for other points or another model")


def _run_and_judge(method: Method, task: Task) -> RecourseResult:
    """Run a method on the rows that can be used, timed without compilation, and judge it."""
    if method.compiled:
        method.run(replace(task, problem=task.problem.take(slice(0, 0))))
    begin = time.perf_counter()
    best = answer(method.on_the_score(task.problem), task.goal, task.threads)
    seconds = time.perf_counter() - begin
    if isinstance(method, Exact):
        n = len(best)
        found = Proposal(best.recourse_array, all_converged(n), np.zeros(n, dtype=np.int64))
        found.status[~_usable(best)] = MethodStatus.NOT_RUN
        result = best
    else:
        found, seconds = _run(method, task, best)
        result = judge(best, found.recourse, task.threads)
    return replace(
        result, method=method.name, seconds=seconds, method_status=found.status, steps=found.steps
    )


def _usable(best: RecourseResult) -> NDArray[np.bool_]:
    unusable = (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS)
    return np.array([status not in unusable for status in best.status], dtype=bool)


def _run(method: Method, task: Task, best: RecourseResult) -> tuple[Proposal, float]:
    """Run a method on the rows that can be used."""
    usable = _usable(best)
    problem = task.problem.take(usable)
    begin = time.perf_counter()
    found = method.run(replace(task, problem=problem))
    seconds = time.perf_counter() - begin
    outside = (found.recourse < problem.lower) | (found.recourse > problem.upper)
    if outside.any():
        raise RuntimeError(
            f"{method.name} left the bounds that it promises to honour. This is a bug; please "
            "report it"
        )
    n, d = task.problem.X.shape
    recourse, steps = np.full((n, d), np.nan), np.zeros(n, dtype=np.int64)
    status = np.empty(n, dtype=object)
    status[:] = MethodStatus.NOT_RUN
    recourse[usable], status[usable], steps[usable] = found
    return Proposal(recourse, status, steps), seconds


def _with_the_model(
    result: RecourseResult, model: Model, surrogate: Surrogate | None, people: Any
) -> RecourseResult:
    """Judge the recourses by the model itself: what was solved for may have been its surrogate."""
    there = result.has_recourse
    points = result.recourse_array[there]
    score, refused = np.full(len(result), np.nan), np.zeros(len(result), dtype=bool)
    if there.any():
        labels = (
            np.flatnonzero(there) if result.problem.index is None else result.problem.index[there]
        )
        accepted = model.compare_points(points, labels, result.problem.loss)
        score[there] = model.score(points)
        # at the cutoff rounding decides, and that is the model's own
        refused[there] = ~(reaches_cutoff(model, score[there]) if accepted is None else accepted)
        _compare_raw(result, model, people, there)
    said = result.method_status
    assert said is not None
    said[refused & (said != MethodStatus.NOT_RUN)] = MethodStatus.NOT_VALID
    if surrogate is not None:
        result = _of_the_surrogate(result, model, surrogate, score)
    status = result.status.copy()
    if surrogate is not None:
        _say_of_the_model(status, result, there, refused)
    else:
        tell_proven_apart(result.goal, status, result.stays, result.worst_case_score, refused)
    if model.origin is not None and there.any():
        between = np.zeros(len(result), dtype=bool)
        between[there] = model.origin.fractional(points, result.problem.X[there])
        status[between & (status != Status.NOT_VALID)] = Status.FRACTIONAL
    return replace(result, status=status)


def _compare_raw(
    result: RecourseResult, model: Model, people: Any, there: NDArray[np.bool_]
) -> None:
    """Put the recourses back into raw columns, and ask the whole model; fractions have none."""
    if model.origin is None or not model.origin.steps:
        return
    points, start = result.recourse_array, result.problem.X
    whole = there.copy()
    whole[there] = ~model.origin.fractional(points[there], start[there])
    if whole.any():
        raw = people.loc[whole] if hasattr(people, "loc") else np.asarray(people)[whole]
        raw = model.origin.decode(model.in_order(raw), points[whole], start[whole])
        model.compare_people(raw, points[whole], result.problem.loss)


def _of_the_surrogate(
    result: RecourseResult, model: Model, surrogate: Surrogate, score: Floats
) -> RecourseResult:
    """Add what the model itself gives the points and the recourses."""
    known = whole_rows(result.problem.X)
    before = np.full(len(result), np.nan)
    if known.any():
        before[known] = model.score(result.problem.X[known])
    return replace(
        result,
        surrogate=surrogate,
        model_score=score,
        initial_model_score=before,
        current_validity=result.problem.loss.probability(score),
    )


def _with_last_layers(result: RecourseResult, model: Model, robust_to: LastLayer) -> RecourseResult:
    """Put the network's own worst case in the place of the surrogate's, which proves nothing."""
    from holdfast.models.networks import judge_network

    judged = judge_network(result, model, robust_to)  # type: ignore[arg-type]
    return result.without_bound(
        problem=replace(result.problem, robust_to=robust_to),
        price=judged.price,
        worst_case_loss=judged.worst_case_loss,
        worst_case_score=judged.worst_case_score,
        worst_case_validity=judged.worst_case_validity,
    )


def _with_proofs(result: RecourseResult, task: Task) -> RecourseResult:
    """Put what is proven of the network itself in the place of what is known of its surrogate."""
    from holdfast.models.networks.prove import bracket_of

    network, robust_to = cast("Network", task.model), task.problem.robust_to
    assert isinstance(robust_to, (NormBall, LastLayer))
    bracket = bracket_of(
        network,
        result.recourse_array,
        robust_to,
        random_state=task.random_state,
        n_jobs=task.threads,
    )
    loss, proven = result.problem.loss, bracket.proven_score
    there = np.asarray(~np.isnan(proven))
    said = network_statuses(proven >= task.goal.amount, result.stays)
    status = np.where(result.status == Status.ACCEPTED, said, result.status)
    worst_loss = np.full(len(result), np.nan)
    worst_loss[there] = loss.value(proven[there])
    return result.without_bound(
        problem=replace(result.problem, robust_to=robust_to),
        status=status,
        worst_case_loss=worst_loss,
        worst_case_score=proven,
        worst_case_validity=loss.probability(proven),
        bracket=replace(bracket, index=result.problem.index),
    )


def _say_of_the_model(
    status: NDArray[np.object_],
    result: RecourseResult,
    there: NDArray[np.bool_],
    refused: NDArray[np.bool_],
) -> None:
    """Whatever was proven of the surrogate, the model itself accepts a recourse or does not."""
    short = refused
    if result.guarantee is not None and result.problem.loss.link is not None:
        short = refused | (there & ~(result.current_validity >= result.guarantee))
    status[there] = Status.ACCEPTED
    status[there & short] = Status.NOT_VALID
    status[status == Status.INFEASIBLE] = Status.NOT_FOUND


def _encode(model: Model, points: Any) -> Any:
    """Bring people to the columns in which recourse is found: numbers, all of them."""
    encoded = read_encoded("X", model, points, usable_only=True)
    rest = model.origin.rest if model.origin is not None else []
    if rest and hasattr(encoded, "dtypes"):
        texts = [name for name in encoded.columns if encoded[name].dtype.kind not in "biuf"]
        if texts:
            where, step = rest[0]
            raise ValueError(
                f"{where}: {type(step).__name__} cannot be read, so recourse must be found in the "
                f"columns before it; but one of these, {texts[0]!r}, does not hold numbers. "
                "Encode it in a separate step before this one; or use holdfast.RobustRecourse "
                "with an action set, which can read bins and non-linear transformations"
            )
    return encoded
