"""How large a set of models may be for a guarantee, and what it costs in smaller ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.discrete.answer import costs_of
from holdfast.discrete.problem import DiscreteProblem
from holdfast.discrete.rows import Batch, Limits
from holdfast.discrete.run import few_nodes, make_batch, run_search
from holdfast.machinery.numbers import Floats
from holdfast.machinery.threads import thread_count
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, FOUND
from holdfast.problem.problem import RecourseProblem

_ROUNDING = 1e-9  # of a radius
_CLIMBS = 8  # from best point to best point
_NODES = 2_000  # for one of the many sizes of a curve


def reachable_radii(
    problem: DiscreteProblem,
    batch: Batch,
    target: float,
    which: NDArray[np.int64],
    limits: Limits,
    threads: int,
) -> Floats:
    """Return the largest radius at which the target is within reach of rows; NaN: not even at 0.

    The point that is best at one radius would still reach the target at the radius
    ``(w.x + b - target) / ||(rho x, rho_0)||_q``: from a radius that is small enough, these rise to
    the largest one in a few steps.
    """
    base, n = problem.base, which.size
    low, high, best = np.zeros(n), np.full(n, base.robust_to.radius), np.full(n, np.nan)
    radius = 1e-9 * high  # the kernels for 1 <= p < inf need one
    left = np.arange(n)
    for _ in range(60):
        out = run_search(problem, batch.replaced(radii=radius[left]), which[left], limits, threads)
        within = -out.value >= target
        inside, outside = left[within], left[~within]
        low[inside] = best[inside] = radius[inside]
        high[outside] = radius[outside]
        # where the best point has an end, it says how far to go; elsewhere halve the bracket
        ended = within & np.isfinite(out.value)
        told, points = left[ended], out.recourse[ended]
        further = largest_kept_radius(base, points, which[told], target)
        best[told] = np.clip(further, low[told], high[told])
        following = 0.5 * (low + high)
        following[told] = best[told]
        done = high - low <= 1e-9 * high
        done[told] = (best[told] <= low[told] * (1.0 + 1e-12)) | (best[told] >= high[told])
        done[outside] |= low[outside] == 0.0
        radius, left = following, left[~done[left]]
        if left.size == 0:
            break
    lost = np.flatnonzero(np.isnan(best))
    if lost.size:  # today's model alone may be just enough
        alone = _at_radius(problem, 0.0)
        out = run_search(
            alone, make_batch(alone, Goal.highest(base.loss))[0], which[lost], limits, threads
        )
        best[lost[-out.value >= target]] = 0.0
    return best


def answer_sizes(
    problem: DiscreteProblem, goal: Goal, radii: Floats, *, n_jobs: int | None = -1
) -> tuple[Floats, Floats]:
    """Return what a guarantee costs one row in sets of many sizes, and how far each answer holds.

    Parameters
    ----------
    problem : DiscreteProblem
        Of one row; the radius of its set of models is not read.
    goal : Goal
        A guarantee.
    radii : array

    Returns
    -------
    cost : array
        Least cost at each radius; inf where it is out of reach, NaN where the search was given up.
    kept : array
        The largest radius at which that answer still reaches the goal; NaN without one.
    """
    parts = problem.covers()
    told = [_answer_sizes(part, goal, radii, thread_count(n_jobs)) for part in parts]
    costs, kept = (np.array(each) for each in zip(*told, strict=True))
    best = costs.argmin(axis=0)  # a NaN is the least: nothing is known of the others then
    rows = np.arange(radii.size)
    return costs[best, rows], kept[best, rows]


def _answer_sizes(
    problem: DiscreteProblem, goal: Goal, radii: Floats, threads: int
) -> tuple[Floats, Floats]:
    base, limits = problem.base, Limits(nodes=_NODES)
    cost, kept = np.full(radii.size, np.nan), np.full(radii.size, np.nan)
    for asked in (radii == 0.0, radii > 0.0):  # some kernels are for one of the two only
        if not asked.any():
            continue
        stated = _at_radius(problem, float(radii[asked].max()))
        batch, _ = make_batch(stated, goal)
        which = np.zeros(int(asked.sum()), dtype=np.int64)
        own = batch.replaced(radii=radii[asked])
        out = run_search(stated, own, which, limits, threads)
        there, hopeless = out.outcome == FOUND, out.outcome == EXHAUSTED
        cost[np.flatnonzero(asked)[hopeless & (out.lower_bound == np.inf)]] = np.inf
        found, points = np.flatnonzero(asked)[there], out.recourse[there]
        cost[found] = costs_of(problem, points, out.levels[there])
        kept[found] = largest_kept_radius(base, points, which[there], goal.amount)
    short = kept < radii - _ROUNDING * (radii + radii.max(initial=0.0))
    if short.any():
        raise AssertionError(
            f"an answer does not hold at radius {radii[short][0]}. This is a bug; please report it"
        )
    return cost, np.maximum(kept, radii)


def largest_size(
    problem: DiscreteProblem, goal: Goal, most: float, *, n_jobs: int | None = -1
) -> float:
    """Return the largest radius at which one row can reach a guarantee, which it can at 0.

    At `most` it cannot. As in `reachable_radii`, the best point at one radius says how far to go;
    but that there is nothing beyond is left to a search for the guarantee, which is shorter.
    """
    parts = [_at_radius(part, most) for part in problem.covers()]
    which, threads = np.zeros(1, dtype=np.int64), thread_count(n_jobs)
    limits, target = few_nodes(Limits()), goal.amount
    batches = [make_batch(part, Goal.highest(goal.loss))[0] for part in parts]
    pairs = list(zip(parts, batches, strict=True))
    radius = np.array([1e-9 * most])
    for _ in range(_CLIMBS):
        kept = 0.0
        for part, batch in pairs:
            out = run_search(part, batch.replaced(radii=radius), which, limits, threads)
            if np.isfinite(out.value[0]):  # elsewhere there is no best point
                told = largest_kept_radius(part.base, out.recourse, which, target)
                kept = max(kept, float(told[0]))
        above = np.array([max(kept, radius[0]) * (1.0 + _ROUNDING)])
        cost, held = answer_sizes(problem, goal, above, n_jobs=n_jobs)
        if cost[0] == np.inf and kept > radius[0]:
            return kept
        if not np.isfinite(cost[0]):
            break
        radius = held
    ends = [reachable_radii(part, batch, target, which, limits, threads) for part, batch in pairs]
    return float(np.fmax.reduce(ends)[0])


def _at_radius(problem: DiscreteProblem, radius: float) -> DiscreteProblem:
    base = problem.base
    return replace(problem, base=replace(base, robust_to=base.robust_to.with_radius(radius)))


def largest_kept_radius(
    base: RecourseProblem, points: Floats, which: NDArray[np.int64], target: float
) -> Floats:
    """Return the largest radius at which each point reaches the target; inf where there is none."""

    def own(values: Floats) -> Floats:
        return values[which] if values.shape[0] > 1 else values

    none = base.robust_to.with_radius(0.0)
    score = none.worst_score(points, own(base.coef), own(base.intercept))
    one = base.robust_to.with_radius(1.0)
    size = -one.worst_score(points, np.zeros((1, base.n_features)), np.zeros(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0.0, (score - target) / size, np.inf)
