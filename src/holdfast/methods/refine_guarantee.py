"""Recourse that provably withstands every network of a set, as cheap as a search can make it.

A proof costs far more than a score. So the search is one over today's network, which is cheap,
less a line for its *fall*: how far below today's score the proven one is. That line is exact, with
its slope, where something was proven last. The cheapest point of such a model is proven in its
turn, which gives a better line, and so on; at last the proven score itself is walked along.
Whatever is said of a point comes from its proof; all else only says where to look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.continuous.frontier import answer
from holdfast.machinery.numbers import Floats, Ints
from holdfast.methods.linear_steps import change_costs, linear_in_box
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.problem import RecourseProblem

if TYPE_CHECKING:
    from holdfast.models.network import Network

# How a trust region changes after a step that was kept, and after one that was not
_WIDER, _NARROWER = 2.0, 0.5
# Points that are proven on the way to the cheapest one, and on the last stretch
_PROOFS, _LAST_STEPS = 8, 12
# A walk on today's network is cheap, and may take more steps than one on proofs.
_CHEAP_STEPS = 60
# Changes of a single feature that are tried out on today's network, in each direction
_GRID = 32
# How far they go while no recourse is known, in costs of an average feature
_FAR = 8.0
# What is proven above the target, relative to it, that is worth going back for; in so many steps,
# the first by this share of the way
_SPARE, _SHORTER, _FIRST_SHARE = 1e-3, 6, 0.05
# What is proven of a point must not depend on the batch that it is proven in.
_HAIR = 1e-9

# Slope and value of a score, at a point for each of some rows
See = Callable[[Floats, Ints], tuple[Floats, Floats]]


class _ProvenScore(Protocol):
    """What is proven of the worst network of a set."""

    def slope(self, points: Floats, *, n_jobs: int | None) -> tuple[Floats, Floats]:
        """Return the slope of the proven score in the point, and the proven score."""


class Ground:
    """A network and a set: today's score, the proven one, and whether both give a guarantee."""

    def __init__(self, network: Network, robust_to: NormBall | LastLayer, n_jobs: int) -> None:
        from holdfast.models.networks.last_layer import LastLayerBound
        from holdfast.models.networks.prover import Prover

        self.network, self.n_jobs = network, n_jobs
        self.proofs: _ProvenScore
        if isinstance(robust_to, LastLayer):
            self.proofs = bound = LastLayerBound.of(network, robust_to)
            self.double = bound.head.network
        else:
            self.proofs = prover = Prover.of(network, robust_to)
            self.double = prover.folded

    def today(self, points: Floats) -> tuple[Floats, Floats]:
        """Slope and score of today's network, in double precision."""
        return self.double.slope(points)

    def proven(self, points: Floats) -> tuple[Floats, Floats]:
        """Slope of the proven score, and the score that is safe to rely on (`safe`)."""
        slope, proven = self.proofs.slope(points, n_jobs=self.n_jobs)
        return slope, self.safe(points, proven)

    def safe(self, points: Floats, proven: Floats) -> Floats:
        """The proven score or today's, as the network itself computes it, whichever is lower.

        Less a hair, because a batch of other people may round in another way.
        """
        import torch

        own = self.network.score(points)
        coarse = 64.0 * torch.finfo(self.network.dtype).eps
        return np.asarray(
            np.minimum(proven - _HAIR * (1.0 + np.abs(proven)), own - coarse * (1.0 + np.abs(own)))
        )


@dataclass
class _BestPoints:
    """The cheapest point known to reach the target, for each row, and the highest one."""

    problem: RecourseProblem
    target: float
    points: Floats
    cost: Floats
    highest: Floats
    value: Floats

    @classmethod
    def of(cls, problem: RecourseProblem, target: float) -> _BestPoints:
        n, d = problem.X.shape
        return cls(
            problem,
            target,
            np.full((n, d), np.nan),
            np.full(n, np.inf),
            problem.X.copy(),
            np.full(n, -np.inf),
        )

    def see(self, rows: Ints, points: Floats, value: Floats) -> None:
        """Take note of a point of each of the rows."""
        cost = change_costs(self.problem.take(rows), points)
        cheaper = (value >= self.target) & (cost < self.cost[rows])
        self.points[rows[cheaper]], self.cost[rows[cheaper]] = points[cheaper], cost[cheaper]
        higher = value > self.value[rows]
        self.highest[rows[higher]], self.value[rows[higher]] = points[higher], value[higher]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which rows have a point that reaches the target."""
        return np.isfinite(self.cost)

    @property
    def either(self) -> Floats:
        """The cheapest point that reaches the target, or else the highest one."""
        return np.where(self.found[:, None], self.points, self.highest)


@dataclass(frozen=True)
class TrustRegion:
    """Steps of a walk, and its trust region, in costs of an average feature."""

    max_steps: int
    first_radius: float
    last_radius: float
    tolerance: float


class _TargetWalk:
    """Some rows on their way to the cheapest point at which a score reaches the target.

    Below the target a step is kept if the score rises, from there on if the cost falls and the
    target is still reached. Each step goes to the cheapest point at which the line of the score
    reaches it, within the trust region. `shift` is by how much the last such point fell short:
    the next one aims higher by that.
    """

    def __init__(
        self, problem: RecourseProblem, goal: Goal, region: TrustRegion, n_jobs: int
    ) -> None:
        self.problem, self.goal, self.region, self.n_jobs = problem, goal, region, n_jobs
        self.unit = average_cost(problem)
        self.best = _BestPoints.of(problem, goal.amount)

    def go(self, points: Floats, see: See) -> NDArray[np.bool_]:
        """Walk from these points; say which rows were still on their way."""
        n = len(points)
        every = np.arange(n)
        self.points, self.see = points.copy(), see
        self.slope, self.value = see(points, every)
        self.cost = change_costs(self.problem, points)
        self.best.see(every, points, self.value)
        self.radius, self.shift = np.full(n, self.region.first_radius), np.zeros(n)
        running = np.ones(n, dtype=bool)
        for _ in range(self.region.max_steps):
            rows = np.flatnonzero(running)
            if not rows.size:
                break
            there = self._candidates(rows)
            cost = change_costs(self.problem.take(rows), there)
            worthwhile = self._is_worthwhile(rows, there, cost)
            self._aim_anew(rows[~worthwhile])
            self._try(rows[worthwhile], there[worthwhile], cost[worthwhile])
            running[rows] = self.radius[rows] >= self.region.last_radius
        return running

    def _candidates(self, rows: Ints) -> Floats:
        x, part, slope = self.points[rows], self.problem.take(rows), self.slope[rows]
        room = self.radius[rows, None] * self.unit[rows, None] / part.feature_costs
        linear = linear_in_box(part, x, slope, self.value[rows] - self.shift[rows], room)
        best = answer(linear, self.goal, self.n_jobs).recourse_array
        highest = np.where(slope > 0.0, linear.upper, np.where(slope < 0.0, linear.lower, linear.X))
        return np.where(np.isnan(best), highest, best)

    def _is_worthwhile(self, rows: Ints, there: Floats, cost: Floats) -> NDArray[np.bool_]:
        """Whether the line promises to come nearer, or to save something."""
        below = self.value[rows] < self.goal.amount
        moves = (there != self.points[rows]).any(axis=1)
        saves = cost < self.cost[rows] * (1.0 - self.region.tolerance)
        return np.where(below, moves, saves)

    def _aim_anew(self, rows: Ints) -> None:
        """Where even the line saves nothing: aim less high, if at all, or come to an end."""
        self.radius[rows] = np.where(self.shift[rows] > 0.0, _NARROWER * self.radius[rows], 0.0)
        self.shift[rows] = 0.0

    def _try(self, rows: Ints, there: Floats, cost: Floats) -> None:
        if not rows.size:
            return
        slope, value = self.see(there, rows)
        self.best.see(rows, there, value)
        target, below = self.goal.amount, self.value[rows] < self.goal.amount
        reached = value >= target
        kept = np.where(below, value > self.value[rows], reached & (cost < self.cost[rows]))
        kept = np.asarray(kept, dtype=bool)
        self.shift[rows] = np.where(
            reached, 0.0, np.where(kept, 0.0, self.shift[rows]) + target - value
        )
        self.radius[rows] *= np.where(kept, _WIDER, _NARROWER)
        moved = rows[kept]
        self.points[moved], self.slope[moved] = there[kept], slope[kept]
        self.value[moved], self.cost[moved] = value[kept], cost[kept]


class _StandIn:
    """Today's network less a line for its fall, which is exact where something was proven last."""

    def __init__(self, ground: Ground, base: Floats, slope: Floats, value: Floats) -> None:
        self.ground, self.base = ground, base
        today, score = ground.today(base)
        self.fall, self.tilt = score - value, today - slope

    def fall_at(self, points: Floats, rows: Ints) -> Floats:
        """The line, at a point for each row."""
        away = points - self.base[rows]
        return np.asarray(self.fall[rows] + np.einsum("ij,ij->i", self.tilt[rows], away))

    def see(self, points: Floats, rows: Ints) -> tuple[Floats, Floats]:
        """Slope and value of the model."""
        slope, score = self.ground.today(points)
        return slope - self.tilt[rows], score - self.fall_at(points, rows)

    def value(self, points: Floats, rows: Ints) -> Floats:
        """The value alone."""
        return self.ground.double.score(points) - self.fall_at(points, rows)


class GuaranteeSearch:
    """The search for some rows: `go` returns a point for each, and which were still on their way.

    `steps` counts the points that were proven, for each row.
    """

    def __init__(
        self, ground: Ground, problem: RecourseProblem, goal: Goal, region: TrustRegion, n_jobs: int
    ) -> None:
        self.ground, self.problem, self.goal, self.region = ground, problem, goal, region
        self.n_jobs, self.best = n_jobs, _BestPoints.of(problem, goal.amount)
        self.steps = np.zeros(problem.n_rows, dtype=np.int64)

    def go(self, start: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Search from the people themselves, and from a start for each."""
        from holdfast.models.networks.torch_threads import one_torch_thread

        every = np.arange(self.problem.n_rows)
        running = np.zeros(len(every), dtype=bool)
        with one_torch_thread():
            self._prove(self.problem.X, every)
            moving = np.flatnonzero(self.best.cost > 0.0)
            self._chase(moving, start[moving])
            self._chase(moving, self.problem.X[moving])
            running[moving] = self._polish(moving)
        return self.best.either, running

    def _prove(self, points: Floats, rows: Ints) -> tuple[Floats, Floats]:
        if not rows.size:
            return np.empty_like(points), np.empty(0)
        slope, value = self.ground.proven(points)
        self.best.see(rows, points, value)
        self.steps[rows] += 1
        return slope, value

    def _chase(self, rows: Ints, base: Floats) -> None:
        """Prove the cheapest points of ever better models, until they save nothing more."""
        slope, value = self._prove(base, rows)
        least = np.full(len(rows), np.inf)
        short = np.zeros(len(rows))  # whoever falls short aims higher by that the next time
        for k in range(_PROOFS):
            if not rows.size:
                return
            model = _StandIn(self.ground, base, slope, value - short)
            base = self._cheapest(rows, model, first=k == 0)
            slope, value = self._prove(base, rows)
            missing = np.maximum(self.goal.amount - value, 0.0)
            cost = change_costs(self.problem.take(rows), base)
            saved = (missing == 0.0) & (cost < least * (1.0 - self.region.tolerance))
            least = np.where(saved, cost, least)
            short = np.where(missing > 0.0, short + missing, 0.0)
            going = saved | (missing > 0.0)
            rows, base, slope, value = rows[going], base[going], slope[going], value[going]
            least, short = least[going], short[going]

    def _cheapest(self, rows: Ints, model: _StandIn, *, first: bool) -> Floats:
        """Return the cheapest point of a model that is found, or else its highest one."""
        part, own = self.problem.take(rows), np.arange(len(rows))
        starts = [model.base]
        if first:
            starts.append(self._single_change(rows, model))
        tiled = np.tile(own, len(starts))
        region = replace(self.region, max_steps=_CHEAP_STEPS)
        walk = _TargetWalk(part.take(tiled), self.goal, region, self.n_jobs)
        walk.go(np.concatenate(starts), lambda points, which: model.see(points, tiled[which]))
        best = _BestPoints.of(part, self.goal.amount)
        for piece in np.split(np.arange(len(tiled)), len(starts)):
            best.see(own, walk.best.highest[piece], walk.best.value[piece])
            there = walk.best.found[piece]
            best.see(own[there], walk.best.points[piece][there], np.full(there.sum(), np.inf))
        return best.either

    def _single_change(self, rows: Ints, model: _StandIn) -> Floats:
        """Return the cheapest change of one feature that reaches the target, tried on a grid."""
        part, (m, d) = self.problem.take(rows), model.base.shape
        far = np.where(
            self.best.found[rows], self.best.cost[rows], _FAR * average_cost(self.problem)[rows]
        )
        share = np.linspace(1.0 / _GRID, 1.0, _GRID)
        steps = np.concatenate([share, -share])
        which = np.repeat(np.arange(m), len(steps))
        best = _BestPoints.of(part, self.goal.amount)
        costs, lower, upper = (
            np.broadcast_to(values, (m, d))
            for values in (part.feature_costs, part.lower, part.upper)
        )
        for j in range(d):
            points = part.X[which]
            points[:, j] += (far[:, None] / costs[:, j, None] * steps).ravel()
            points[:, j] = np.clip(points[:, j], lower[which, j], upper[which, j])
            value = model.value(points, which).reshape(m, len(steps))
            for k in range(len(steps)):
                best.see(np.arange(m), points.reshape(m, -1, d)[:, k], value[:, k])
        return best.either

    def _polish(self, rows: Ints) -> NDArray[np.bool_]:
        """Walk along the proven score itself, from the best point known."""
        region = replace(self.region, max_steps=min(self.region.max_steps, _LAST_STEPS))
        walk = _TargetWalk(self.problem.take(rows), self.goal, region, self.n_jobs)

        def see(points: Floats, which: Ints) -> tuple[Floats, Floats]:
            return self._prove(points, rows[which])

        running = walk.go(self.best.either[rows], see)
        spare = walk.value > self.goal.amount + _SPARE * (1.0 + abs(self.goal.amount))
        self._shorten(rows[spare])
        return running

    def _shorten(self, rows: Ints) -> None:
        """Go back toward the person where more is proven than was asked for."""
        start, away = self.problem.X[rows], self.best.points[rows] - self.problem.X[rows]
        share, step = np.ones(len(rows)), np.full(len(rows), _FIRST_SHARE)
        part = self.problem.take(rows)
        for _ in range(_SHORTER if rows.size else 0):
            points = np.clip(start + (share - step)[:, None] * away, part.lower, part.upper)
            held = self._prove(points, rows)[1] >= self.goal.amount
            share = np.where(held, share - step, share)
            step = np.where(held, np.minimum(step, share / 2.0), step / 2.0)


def average_cost(problem: RecourseProblem) -> Floats:
    """Cost of a feature of each row, on (geometric) average: the unit of its trust region."""
    average = np.exp(np.mean(np.log(problem.feature_costs), axis=1))
    return np.broadcast_to(average, problem.n_rows)
