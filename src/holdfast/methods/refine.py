"""Recourse for a network as it is: the surrogate's optimum, improved under the worst network."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.continuous.solve import answer
from holdfast.machinery.extras import need_torch
from holdfast.machinery.numbers import Floats, check_count, check_positive
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.problem.ball import require_ball
from holdfast.problem.problem import RecourseProblem, frozen
from holdfast.result import MethodStatus

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.models.networks.parameters import Parameters

# How a trust region changes after a step that lowered the price, and after one that did not.
_WIDER, _NARROWER = 2.0, 0.25
_GAIN = 1e-6


@dataclass(frozen=True)
class Refine(Method):
    """Sequential linearisation within a trust region, on the network's own price.

    The price of a point is its loss under the worst network in the ball around the trained
    parameters + cost_weight * cost. At a point the gradient of that loss is the gradient under
    its worst network, held fixed (Danskin). So from the exact answer on the surrogate onwards,
    that network's score is linearised, the linear problem solved exactly within a box, and the
    answer kept only if the true price fell; otherwise the box shrinks. No row is ever worse than
    its start, as far as the search for worst networks can tell.

    The result's own price is still the surrogate's: `holdfast.models.networks.judge_network` gives
    the network's.

    Settings: `max_steps` of the outer loop; `first_radius` of the trust region, in units of cost
    for each feature; a row is done when its region is smaller than `last_radius`, or when the
    linear problem promises less than `tolerance`. `ascent_steps` and `ascent_starts` are those of
    `holdfast.models.networks.worst_network`; `memory` is in MiB.

    Examples
    --------
    >>> import holdfast, numpy as np
    >>> from holdfast.paper.training import train_network
    >>> from holdfast.models.networks import judge_network
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> network = train_network(x, x[:, 0] * x[:, 1] > 0, hidden=(8,), epochs=200)
    >>> point = np.array([[0.5, -0.5]])
    >>> unknown = np.full(1, np.nan)
    >>> from holdfast.result.surrogate import Surrogate
    >>> flat = Surrogate("flat", np.ones((1, 2)), np.zeros(1), unknown, unknown)
    >>> ball = holdfast.NormBall(p=1, radius=0.05)
    >>> problem = {"robust_to": ball, "cost_weight": 0.1, "linearise": flat}
    >>> start = holdfast.find_recourse(point, network, "exact", **problem)
    >>> better = holdfast.find_recourse(point, network, "refine", **problem)
    >>> judged = [judge_network(result, network).price[0] for result in (start, better)]
    >>> bool(judged[1] <= judged[0])
    True
    """

    name = "refine"
    summary = "the surrogate's optimum, improved step by step under the worst network found"
    guarantees = "never worse than its start under the worst networks found; no proof"
    exponents = (1.0, 2.0, math.inf)
    kinds = ("network",)
    honours_bounds = True
    honours_scale = False
    compiled = True

    max_steps: int = 30
    first_radius: float = 0.5
    last_radius: float = 1e-3
    tolerance: float = 1e-5
    ascent_steps: int = 30
    ascent_starts: int | None = None
    memory: float = 256.0

    def __post_init__(self) -> None:
        for name in ("first_radius", "last_radius", "memory"):
            check_positive(name, getattr(self, name))
        check_positive("tolerance", self.tolerance, or_zero=True)
        check_count("max_steps", self.max_steps)
        check_count("ascent_steps", self.ascent_steps, least=0)
        if self.ascent_starts is not None:
            check_count("ascent_starts", self.ascent_starts)

    def run(self, task: Task) -> Proposal:
        """Start from the surrogate's optimum; improve as many rows at once as memory allows."""
        need_torch(self.name)
        from holdfast.models.networks.parameters import Parameters

        problem, n = task.problem, task.problem.n_rows
        start = answer(problem, task.goal, task.n_jobs)
        recourse = np.where(np.isnan(start.recourse_array), problem.X, start.recourse_array)
        status, steps = all_converged(n), np.zeros(n, dtype=np.int64)
        parameters = Parameters(task.model)  # type: ignore[arg-type]
        at_once = parameters.rows_in(self.memory)
        for begin in range(0, n, at_once):
            piece = slice(begin, begin + at_once)
            walk = _Walk(self, task, parameters, problem.take(piece), recourse[piece])
            recourse[piece], running, steps[piece] = walk.go()
            status[piece][running] = MethodStatus.STEP_LIMIT
        return Proposal(recourse, status, steps)


class _Walk:
    """Some rows on their way.

    For each row `found` is its price under the worst network that the search finds for it: a
    function of the point alone. `price` is that under the worst network known, `change`: a
    network found for one point is tried on the next one too, and the other way round, so that no
    step is taken only because the search missed a network.
    """

    def __init__(
        self,
        method: Refine,
        task: Task,
        parameters: Parameters,
        problem: RecourseProblem,
        points: Floats,
    ) -> None:
        self.method, self.task, self.parameters, self.problem = method, task, parameters, problem
        self.weight = task.goal.level
        self.points = points
        self.found, self.change = self._search(problem, points)
        self.price = self.found.copy()
        self.radius = np.full(len(points), method.first_radius)

    def go(self) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
        """Return where the rows came to, which of them were still on their way, and the steps."""
        running = np.ones(len(self.points), dtype=bool)
        steps = np.zeros(len(self.points), dtype=np.int64)
        for _ in range(self.method.max_steps):
            rows = np.flatnonzero(running)
            if not rows.size:
                break
            candidates, promised = self._candidates(rows)
            worthwhile = promised < self.price[rows] - self.method.tolerance
            running[rows[~worthwhile]] = False
            rows = rows[worthwhile]
            if not rows.size:
                break
            self._try(rows, candidates[worthwhile])
            steps[rows] += 1
            running[rows] = self.radius[rows] >= self.method.last_radius
        return self.points, running, steps

    def _candidates(self, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Solve the linearised problem within the trust region, and say what it promises."""
        x, part = self.points[rows], self.problem.take(rows)
        slope, score = self.parameters.point_slope(self.change[rows], self._tensor(x))
        coef = slope.double().cpu().numpy()
        intercept = score.double().cpu().numpy() - np.einsum("ij,ij->i", coef, x)
        room = self.radius[rows, None] / part.feature_costs
        lower, upper = np.maximum(part.lower, x - room), np.minimum(part.upper, x + room)
        # From outside the box every way leads over its nearest point: beginning there takes a
        # constant off the cost, and nothing else.
        linear = replace(
            part,
            X=frozen(np.clip(part.X, lower, upper)),
            coef=frozen(coef),
            intercept=frozen(intercept),
            lower=frozen(lower),
            upper=frozen(upper),
            robust_to=part.robust_to.with_radius(0.0),
        )
        best = answer(linear, self.task.goal, self.task.n_jobs)
        candidates = np.where(np.isnan(best.recourse_array), x, best.recourse_array)
        return candidates, self._priced(part, candidates, linear.score(candidates))

    def _try(self, rows: NDArray[np.int64], there: Floats) -> None:
        """Move the rows whose price falls; adapt their trust regions."""
        here, part, change = self.points[rows], self.problem.take(rows), self.change[rows]
        found, other = self._search(part, there)
        # each of the two networks on both points
        crossed = self._priced(part, there, self._score(change, there))
        back = self._priced(part, here, self._score(other, here))
        price = np.maximum(self.price[rows], back)
        # by more than the rounding of a network in single precision
        better = (found < self.found[rows] - _GAIN) & (np.maximum(found, crossed) < price)
        self.change[rows] = _choose(better, crossed > found, back > self.price[rows], change, other)
        self.price[rows] = np.where(better, np.maximum(found, crossed), price)
        self.found[rows] = np.where(better, found, self.found[rows])
        self.points[rows] = np.where(better[:, None], there, here)
        self.radius[rows] *= np.where(better, _WIDER, _NARROWER)

    def _search(self, part: RecourseProblem, points: Floats) -> tuple[Floats, Tensor]:
        from holdfast.models.networks import worst_network

        found = worst_network(
            self.task.model,  # type: ignore[arg-type]
            points,
            require_ball(part.robust_to, self.method.name),
            steps=self.method.ascent_steps,
            starts=self.method.ascent_starts,
            random_state=self.task.random_state,
            keep_change=True,
            memory=self.method.memory,
            n_jobs=self.task.n_jobs,
        )
        assert found.change is not None
        return self._priced(part, points, found.score), found.change

    def _priced(self, part: RecourseProblem, points: Floats, score: Floats) -> Floats:
        cost = np.sum(part.feature_costs * np.abs(points - part.X), axis=1)
        return np.asarray(np.logaddexp(0.0, -score) + self.weight * cost)

    def _score(self, change: Tensor, points: Floats) -> Floats:
        return self.parameters.score(change, self._tensor(points)).double().cpu().numpy()

    def _tensor(self, points: Floats) -> Tensor:
        return self.task.model.tensor(points)  # type: ignore[attr-defined,no-any-return]


def _choose(better: Any, crossed: Any, back: Any, change: Tensor, other: Tensor) -> Tensor:
    """Return the worst network known for each row's new place."""
    import torch

    keep = np.where(better, crossed, ~back)
    return torch.where(torch.as_tensor(keep, device=change.device)[:, None], change, other)
