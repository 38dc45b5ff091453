"""Run a piece: find the recourses, judge them, and lay them out in the tidy table."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.discrete import solve_discrete
from holdfast.machinery.numbers import Floats
from holdfast.methods import find_recourse
from holdfast.models import LinearModel
from holdfast.paper.catalogue import paper_method
from holdfast.paper.changes import changed_additive, changed_multiplicative
from holdfast.paper.constraints import Constraints, constrained, post_process
from holdfast.paper.folds import published_sample
from holdfast.paper.judging import (
    AS_PUBLISHED,
    PROOF,
    Worst,
    distance_from_optimum,
    population_validity,
    validity,
    worst_case,
)
from holdfast.paper.piece import Piece, read_settings
from holdfast.paper.tidy import check_table
from holdfast.paper.world import SEED, World, load_surrogate, load_world
from holdfast.problem.ball import NormBall
from holdfast.problem.problem import RecourseProblem
from holdfast.result.surrogate import Surrogate

_NOT_PROVEN = "not proven"
PUBLISHED_DIGITS = 4  # of the points and recourses that the authors keep, for networks


@dataclass(frozen=True, eq=False)
class PieceQuestion:
    """The people of a piece: their places among the denied, and the linear score around each."""

    instances: NDArray[np.int64]
    people: Floats
    surrogate: Surrogate | None

    @property
    def surrogate_seconds(self) -> float:
        """What the linearisation took."""
        return self.surrogate.seconds if self.surrogate else 0.0


@dataclass(frozen=True, eq=False)
class Run:
    """The recourses of one run of a method, and under what settings they were found."""

    settings: str
    radius: float
    cost_weight: float  # NaN where the method takes none
    constraints: str
    recourse: Floats
    seconds: float
    method_status: NDArray[np.object_]
    gap: Floats | None = None  # where the method brings its own proof
    status: NDArray[np.object_] | None = None


def run_piece(
    piece: Piece, directory: Path | None = None, device: str | None = None
) -> pd.DataFrame:
    """Compute the rows of a piece.

    Parameters
    ----------
    piece : Piece
    directory : Path, optional
        Where the files of the data sets are; see `holdfast.datasets`.
    device : str, optional
        Where networks run.

    Returns
    -------
    DataFrame
        Columns as in `holdfast.paper.tidy.FIELDS`.

    Examples
    --------
    >>> piece = Piece(
    ...     "table1", "german", "logistic", 0, "exact", 1.0, (0.1,), (0.1,), shifted=False
    ... )
    >>> table = run_piece(piece)
    >>> len(table), round(float(table["price"].mean()), 3), bool(table["gap"].max() < 1e-9)
    (16, 0.644, True)
    """
    world = load_world(*piece.world, piece.shifted, directory, device)
    asked = _ask(piece, world)
    found = list(_find(piece, world, asked, directory, device))
    return check_table(pd.concat(_rows(piece, world, asked, found), ignore_index=True))


def _ask(piece: Piece, world: World) -> PieceQuestion:
    """Choose the people of a piece, and make their model linear where it is not."""
    drawn = _drawn(piece, world)
    orders = {"all": range(len(world.denied)), "drawn": drawn, "sorted": sorted(drawn)}
    instances = np.array(list(orders[piece.people])[: piece.most_rows])
    people = world.denied[instances]
    if not piece.linearise:
        return PieceQuestion(instances, people, None)
    fitted = load_surrogate(world, piece.linearise, int(instances.max()) + 1)
    surrogate = replace(
        fitted,
        coef=fitted.coef[instances],
        intercept=fitted.intercept[instances],
        r2=fitted.r2[instances],
        point_error=fitted.point_error[instances],
        seconds=fitted.seconds * len(instances) / len(fitted.coef),
    )
    return PieceQuestion(instances, people, surrogate)


def _drawn(piece: Piece, world: World) -> list[int]:
    """Whom the paper's authors took: everybody of German Credit, a few of the SBA loans."""
    n = len(world.denied)
    return published_sample(piece.fold, n, piece.model) if piece.dataset == "sba" else [*range(n)]


def _rows(
    piece: Piece, world: World, asked: PieceQuestion, found: list[Run]
) -> Iterator[pd.DataFrame]:
    """Yield the rows of each run; the worst cases of all runs are found together, in batches."""
    people, drawn = _as_kept(piece, asked.people), _drawn(piece, world)
    for run, worst in zip(found, _worst_cases(piece, world, found), strict=True):
        cost = np.abs(run.recourse - people).sum(axis=1)
        gap, status = _proof(piece, world, asked, run)
        yield pd.DataFrame(
            {
                **_keys(piece, run, asked.instances),
                "drawn": np.isin(asked.instances, drawn),
                "cost": cost,
                "price": worst.loss + run.cost_weight * cost,
                "current_validity": validity(world.model, run.recourse),
                "worst_case_validity": worst.validity,
                "proven_validity": worst.proven,
                "population_validity": _together(piece, world, run),
                "future_validity": validity(world.future, run.recourse),
                "future_validity_as_published": validity(world.future_as_published, run.recourse),
                "changed_additive": changed_additive(people, run.recourse),
                "changed_multiplicative": changed_multiplicative(people, run.recourse),
                "seconds": run.seconds,
                "gap": gap,
                "status": status.astype(str),
                "method_status": run.method_status.astype(str),
            }
        )


def _together(piece: Piece, world: World, run: Run) -> Floats:
    """Judge all by one worst model; with a proof, which is of each by itself, it is not asked."""
    if piece.judging == PROOF:
        return np.full(len(run.recourse), np.nan)
    return population_validity(world.model, run.recourse, NormBall(piece.judged_p, run.radius))


def _find(
    piece: Piece,
    world: World,
    asked: PieceQuestion,
    directory: Path | None,
    device: str | None,
) -> Iterator[Run]:
    """Run the method for every combination of settings, radius and cost weight."""
    alike = _however_judged(piece)
    for settings in piece.settings:
        if piece.p is None:  # no ball and no cost weight: one run, judged at every radius
            once = _run(alike, settings, piece.radii[0], math.nan, directory, device)
            for radius in piece.radii:
                yield from _with_constraints(piece, world, asked, replace(once, radius=radius))
            continue
        for radius in piece.radii:
            for cost_weight in piece.cost_weights or (math.nan,):
                run = _run(alike, settings, radius, cost_weight, directory, device)
                yield from _with_constraints(piece, world, asked, run)


def _however_judged(piece: Piece) -> Piece:
    """Return what a piece shares with others that have the same recourses, judged otherwise."""
    return replace(
        piece,
        experiment="",
        radii=(),
        cost_weights=(),
        settings=(),
        constraints=(),
        judged_p=1.0,
        judging=AS_PUBLISHED if piece.judging == AS_PUBLISHED else "",
    )


@lru_cache(maxsize=256)  # the frontiers of a world: what is proven of them is asked next
def _run(
    piece: Piece,
    settings: str,
    radius: float,
    cost_weight: float,
    directory: Path | None,
    device: str | None,
) -> Run:
    """Run the method of a piece once; the same question is not computed twice in a row."""
    world = load_world(*piece.world, piece.shifted, directory, device)
    asked = _ask(piece, world)
    # what a method without a cost weight is given only prices it, and is not read here
    weight = 1.0 if math.isnan(cost_weight) else cost_weight
    result = find_recourse(
        asked.people,
        world.model,
        paper_method(piece.method, read_settings(settings)),
        # what a method without a ball is given only judges it, and is not read here
        robust_to=NormBall(piece.judged_p if piece.p is None else piece.p, radius),
        cost_weight=weight if piece.guarantee is None else None,
        guarantee=piece.guarantee,
        linearise=asked.surrogate,
        X_train=world.fold.train_points,
        random_state=SEED,
        n_jobs=1,
    )
    seconds = (result.seconds + asked.surrogate_seconds) / len(result)
    status = result.method_status
    assert status is not None
    recourse = _as_kept(piece, result.recourse_array)
    return Run(
        settings,
        radius,
        cost_weight,
        "none",
        recourse,
        seconds,
        status,
        status=None if piece.guarantee is None else result.status,
    )


def _as_kept(piece: Piece, points: Floats) -> Floats:
    """Points as they are judged: the authors keep those of networks with a few digits."""
    return np.round(points, PUBLISHED_DIGITS) if piece.judging == AS_PUBLISHED else points


def _with_constraints(piece: Piece, world: World, asked: PieceQuestion, run: Run) -> Iterator[Run]:
    """Yield the run as it is, brought into the constraints afterwards, or solved within them."""
    for which in piece.constraints:
        if which == "inside":
            yield _inside(piece, world, asked, run)
        elif which == "after":
            recourse = post_process(asked.people, run.recourse, world.constraints)
            yield replace(run, constraints=which, recourse=recourse)
        else:
            yield run


def _inside(piece: Piece, world: World, asked: PieceQuestion, run: Run) -> Run:
    """Solve with the constraints in the optimisation."""
    assert piece.p is not None  # only `exact` is planned with constraints inside
    problem = _problem(world, asked, NormBall(piece.p, run.radius))
    discrete = constrained(problem, world.constraints)
    _compile(piece.p)
    begin = time.perf_counter()
    answer = solve_discrete(discrete, cost_weight=run.cost_weight, n_jobs=1)
    seconds = (time.perf_counter() - begin + asked.surrogate_seconds) / len(answer)
    return replace(
        run,
        constraints="inside",
        recourse=answer.recourse_array,
        seconds=seconds,
        gap=answer.gap,
        status=answer.status,
    )


@lru_cache
def _compile(p: float) -> None:
    """Solve something tiny, so that no run is charged for the compilation."""
    one = RecourseProblem.build(
        [[1.0, 0.0, 0.0]], [0.0, 1.0, 1.0], -1.0, robust_to=NormBall(p, 0.1)
    )
    free = np.full(3, np.inf)
    solve_discrete(constrained(one, Constraints([[0, 1]], free, free)), cost_weight=0.1, n_jobs=1)


def _problem(world: World, asked: PieceQuestion, robust_to: NormBall) -> RecourseProblem:
    linear = asked.surrogate or world.model
    assert isinstance(linear, Surrogate | LinearModel)
    return RecourseProblem.build(asked.people, linear.coef, linear.intercept, robust_to=robust_to)


def _keys(piece: Piece, run: Run, instances: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "experiment": piece.experiment,
        "dataset": piece.dataset,
        "model": piece.model,
        "fold": piece.fold,
        "instance": instances,
        "method": piece.method,
        "settings": run.settings,
        "linearise": piece.linearise,
        "p": math.nan if piece.p is None else piece.p,
        "radius": run.radius,
        "cost_weight": run.cost_weight,
        "guarantee": math.nan if piece.guarantee is None else piece.guarantee,
        "constraints": run.constraints,
        "judged_p": piece.judged_p,
        "judging": piece.judging,
    }


def _worst_cases(piece: Piece, world: World, found: list[Run]) -> Iterator[Worst]:
    """Judge each recourse by its own worst model; all of a radius in one batch.

    As published, what a recourse is worth depends on its place among those judged with it: there,
    each run is judged by itself.
    """
    for radius, batch in groupby(found, lambda run: run.radius):
        runs, ball = list(batch), NormBall(piece.judged_p, radius)
        groups = [[run] for run in runs] if piece.judging == AS_PUBLISHED else [runs]
        for group in groups:
            stacked = np.concatenate([run.recourse for run in group])
            worst = worst_case(world.model, stacked, ball, piece.judging)
            columns = (np.split(column, len(group)) for column in worst)
            yield from (Worst(*each) for each in zip(*columns, strict=True))


def _proof(
    piece: Piece, world: World, asked: PieceQuestion, run: Run
) -> tuple[Floats, NDArray[np.object_]]:
    """Say how far from the optimum a run is, where that is proven: for linear models.

    Of a guarantee for a network the method says itself what is proven of it.
    """
    n = len(run.recourse)
    if piece.guarantee is not None and run.status is not None:
        return np.full(n, np.nan), run.status
    if isinstance(world.model, LinearModel):
        if run.gap is not None and run.status is not None:
            return run.gap, run.status
        if run.constraints == "none" and not math.isnan(run.cost_weight):
            problem = _problem(world, asked, NormBall(piece.judged_p, run.radius))
            return distance_from_optimum(problem, run.recourse, run.cost_weight)
    return np.full(n, np.nan), np.full(n, _NOT_PROVEN, dtype=object)
