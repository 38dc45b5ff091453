"""Recourse for a network as it is: the surrogate's optimum, improved under the worst network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from holdfast.continuous.frontier import answer
from holdfast.machinery.extras import need_torch
from holdfast.machinery.numbers import Floats, check_count, check_positive
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.methods.linear_steps import change_costs, linear_in_box
from holdfast.methods.refine_guarantee import Ground, GuaranteeSearch, TrustRegion
from holdfast.problem.ball import NormBall, require_ball
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet
from holdfast.problem.problem import RecourseProblem
from holdfast.result import MethodStatus

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.models.network import Network

# How a trust region changes after a step that lowered the price, and after one that did not.
_WIDER, _NARROWER = 2.0, 0.25
_ROWS_AT_ONCE = 256  # that a proof is searched for: many candidates each
# A price has fallen only if by more than the rounding of a network in single precision
_MARGIN = 1e-6
# What is held for a row at once, in vectors as long as the last layer
_LAYERS_A_ROW = 32


@dataclass(frozen=True)
class Refine(Method):
    """Sequential linearisation within a trust region, on the network's own price.

    The price of a point is its loss under the worst network in the ball around the trained
    parameters, or with the worst last layer (`LastLayer`), + cost_weight * cost. At a point the
    gradient of that loss is the gradient under its worst network, held fixed (Danskin). So from the
    exact answer on the surrogate onwards, that network's score is linearised, the linear problem
    solved exactly within a box, and the answer kept only if the true price fell; otherwise the box
    shrinks.

    With a ball no row is ever worse than its start, as far as the search for worst networks can
    tell, and the result's own price is still the surrogate's:
    `holdfast.models.networks.judge_network` gives the network's. With a `LastLayer` the worst
    network is exact: no row is worse than its start, price and worst case of the result are the
    network's own, and its worst-case validity is proven; that nothing is better is not.

    With a guarantee instead of a cost weight, it looks for the cheapest point that every network of
    the set *provably* gives it (`holdfast.prove_network`), with a ball as with a `LastLayer`. Each
    recourse is proven as it is returned, and costs no more than the surrogate's optimum where that
    is proven too; that nothing is cheaper is not proven.

    Settings: `max_steps` of the outer loop; `first_radius` of the trust region, in units of cost
    for each feature (with a guarantee, in costs of an average feature); a row is done when its
    region is smaller than `last_radius`, or when the linear problem promises less than `tolerance`
    (with a guarantee, relative to the cost). The others are for a cost weight: `ascent_steps` and
    `ascent_starts` are those of `holdfast.models.networks.worst_network`, and have no meaning for a
    `LastLayer`; `memory` is in MiB.

    Examples
    --------
    >>> import holdfast, numpy as np
    >>> from sklearn.neural_network import MLPClassifier
    >>> from holdfast.models import as_model
    >>> from holdfast.models.networks import judge_network
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> classifier = MLPClassifier((8,), solver="lbfgs", max_iter=500, random_state=0)
    >>> network = as_model(classifier.fit(x, x[:, 0] * x[:, 1] > 0))
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
    summary = "recourse for the network itself: improved step by step; with a guarantee, proven"
    guarantees = (
        "with a guarantee, every network of the set provably gives it (a cheaper recourse may "
        "exist); with a cost weight, never worse than its start under the worst networks found"
    )
    kinds = ("network",)
    knows_last_layer = True
    honours_bounds = True
    gives_guarantee = True
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

    def check(self, task: Task) -> None:
        """Refuse what the method cannot do, and sets that the network does not fit."""
        super().check(task)
        if task.goal.is_guarantee:
            try:
                self._ground(task)
            except ValueError as error:
                raise ValueError(
                    f"{str(error).removesuffix('.')}. method='exact' gives a guarantee for a "
                    "linear surrogate, which proves nothing about the network."
                ) from None
            return
        robust_to = task.problem.robust_to
        if isinstance(robust_to, NormBall) and robust_to.scale is not None:
            raise ValueError(
                f"{self.name} with a cost_weight does not support a scale of the ball; leave it "
                "out, or ask for a guarantee"
            )
        self._opponent(task)

    def set_on_the_score(self, robust_to: ModelSet) -> ModelSet:
        """Return the set around the surrogate: the scale of a ball is that of the network's."""
        if isinstance(robust_to, NormBall):
            return replace(robust_to, scale=None)
        return super().set_on_the_score(robust_to)

    def proves_networks(self, goal: Goal) -> bool:
        """Whether a guarantee is asked for, which is proven of the network itself."""
        return goal.is_guarantee

    def _ground(self, task: Task) -> Ground:
        need_torch(self.name)
        robust_to = cast("NormBall | LastLayer", task.problem.robust_to)
        return Ground(cast("Network", task.model), robust_to, task.threads)

    def _opponent(self, task: Task) -> _Opponent:
        need_torch(self.name)
        robust_to = task.problem.robust_to
        if isinstance(robust_to, LastLayer):
            return _LastLayers(robust_to, task)
        return _Networks(self, task)

    def run(self, task: Task) -> Proposal:
        """Start from the surrogate's optimum, and improve it."""
        problem = task.problem
        best = answer(self.on_the_score(problem), task.goal, task.threads)
        start = np.where(np.isnan(best.recourse_array), problem.X, best.recourse_array)
        return self._prove(task, start) if task.goal.is_guarantee else self._improve(task, start)

    def _prove(self, task: Task, start: Floats) -> Proposal:
        """Find the cheapest recourse that is proven to give the guarantee."""
        region = TrustRegion(self.max_steps, self.first_radius, self.last_radius, self.tolerance)
        ground = self._ground(task)
        recourse, status = np.empty_like(start), all_converged(len(start))
        steps = np.zeros(len(start), dtype=np.int64)
        for begin in range(0, len(start), _ROWS_AT_ONCE):
            piece = slice(begin, begin + _ROWS_AT_ONCE)
            search = GuaranteeSearch(
                ground, task.problem.take(piece), task.goal, region, task.threads
            )
            recourse[piece], running = search.go(start[piece])
            status[piece][running] = MethodStatus.STEP_LIMIT
            steps[piece] = search.steps
        return Proposal(recourse, status, steps)

    def _improve(self, task: Task, recourse: Floats) -> Proposal:
        """Lower the price of as many rows at once as memory allows."""
        problem, n = task.problem, task.problem.n_rows
        status, steps = all_converged(n), np.zeros(n, dtype=np.int64)
        opponent = self._opponent(task)
        at_once = opponent.rows_in(self.memory)
        for begin in range(0, n, at_once):
            piece = slice(begin, begin + at_once)
            walk = _Walk(self, task, opponent, problem.take(piece), recourse[piece])
            recourse[piece], running, steps[piece] = walk.go()
            status[piece][running] = MethodStatus.STEP_LIMIT
        return Proposal(recourse, status, steps)


class _Opponent(Protocol):
    """Chooses the network by which each point is judged: a row of `changes` for each point."""

    def rows_in(self, mib: float) -> int:
        """How many rows can be taken at once in so many MiB."""

    def search(self, points: Floats) -> tuple[Floats, Tensor]:
        """Return the worst score of each point, and the network that gives it."""

    def score(self, changes: Tensor, points: Floats) -> Floats:
        """Score of each point under a network of its own."""

    def slope(self, changes: Tensor, points: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of that score in the point, and the score."""


class _Networks:
    """All parameters change, within a ball: the worst network that a search finds."""

    def __init__(self, method: Refine, task: Task) -> None:
        from holdfast.models.networks.parameters import Parameters

        self.method, self.task, self.network = method, task, cast("Network", task.model)
        self.ball = require_ball(task.problem.robust_to, method.name)
        self.parameters = Parameters(self.network)

    def rows_in(self, mib: float) -> int:
        return self.parameters.rows_in(mib)

    def search(self, points: Floats) -> tuple[Floats, Tensor]:
        from holdfast.models.networks import worst_network

        found = worst_network(
            self.network,
            points,
            self.ball,
            steps=self.method.ascent_steps,
            starts=self.method.ascent_starts,
            random_state=self.task.random_state,
            keep_change=True,
            memory=self.method.memory,
            n_jobs=self.task.threads,
        )
        assert found.change is not None
        return found.score, found.change

    def score(self, changes: Tensor, points: Floats) -> Floats:
        return self.parameters.score(changes, self.network.tensor(points)).double().cpu().numpy()

    def slope(self, changes: Tensor, points: Floats) -> tuple[Floats, Floats]:
        slope, score = self.parameters.point_slope(changes, self.network.tensor(points))
        return slope.double().cpu().numpy(), score.double().cpu().numpy()


class _LastLayers:
    """The last layer changes, within a set: the worst one, exactly; its weights, the bias last."""

    def __init__(self, robust_to: LastLayer, task: Task) -> None:
        from holdfast.models.networks.last_layer import Head

        self.head, self.robust_to = Head.of(cast("Network", task.model)), robust_to
        self.head.last_layers(robust_to)  # refuses a set that does not fit

    def rows_in(self, mib: float) -> int:
        return max(1, int(mib * 2**20 / (_LAYERS_A_ROW * 8 * len(self.head.coef))))

    def search(self, points: Floats) -> tuple[Floats, Tensor]:
        import torch

        worst = self.head.worst(self.head.embed(points), self.robust_to)
        return worst.score, torch.from_numpy(np.column_stack([worst.coef, worst.intercept]))

    def score(self, changes: Tensor, points: Floats) -> Floats:
        layers, embedded = changes.numpy(), self.head.embed(points)
        return np.asarray(np.einsum("ij,ij->i", layers[:, :-1], embedded) + layers[:, -1])

    def slope(self, changes: Tensor, points: Floats) -> tuple[Floats, Floats]:
        slope = self.head.point_slope(points, changes.numpy()[:, :-1])
        return slope, self.score(changes, points)


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
        opponent: _Opponent,
        problem: RecourseProblem,
        points: Floats,
    ) -> None:
        self.method, self.task, self.opponent, self.problem = method, task, opponent, problem
        self.goal = task.goal
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
        coef, score = self.opponent.slope(self.change[rows], x)
        linear = linear_in_box(part, x, coef, score, self.radius[rows, None] / part.feature_costs)
        best = answer(linear, self.task.goal, self.task.threads)
        candidates = np.where(np.isnan(best.recourse_array), x, best.recourse_array)
        return candidates, self._priced(part, candidates, linear.score(candidates))

    def _try(self, rows: NDArray[np.int64], there: Floats) -> None:
        """Move the rows whose price falls; adapt their trust regions."""
        here, part, change = self.points[rows], self.problem.take(rows), self.change[rows]
        found, other = self._search(part, there)
        # each of the two networks on both points
        crossed = self._priced(part, there, self.opponent.score(change, there))
        back = self._priced(part, here, self.opponent.score(other, here))
        price = np.maximum(self.price[rows], back)
        better = (found < self.found[rows] - _MARGIN) & (np.maximum(found, crossed) < price)
        self.change[rows] = _choose(better, crossed > found, back > self.price[rows], change, other)
        self.price[rows] = np.where(better, np.maximum(found, crossed), price)
        self.found[rows] = np.where(better, found, self.found[rows])
        self.points[rows] = np.where(better[:, None], there, here)
        self.radius[rows] *= np.where(better, _WIDER, _NARROWER)

    def _search(self, part: RecourseProblem, points: Floats) -> tuple[Floats, Tensor]:
        score, change = self.opponent.search(points)
        return self._priced(part, points, score), change

    def _priced(self, part: RecourseProblem, points: Floats, score: Floats) -> Floats:
        return self.goal.price(change_costs(part, points), np.logaddexp(0.0, -score))


def _choose(better: Any, crossed: Any, back: Any, change: Tensor, other: Tensor) -> Tensor:
    """Return the worst network known for each row's new place."""
    import torch

    keep = np.where(better, crossed, ~back)
    return torch.where(torch.as_tensor(keep, device=change.device)[:, None], change, other)
