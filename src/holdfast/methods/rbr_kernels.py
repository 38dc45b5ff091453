"""The descent of robust Bayesian recourse: odds of the samples, L1 projection, projected gradient.

The log-odds of the unwanted class at a point x, at its worst, are

    log sum over unwanted samples of exp(optimistic) - log sum over wanted ones of exp(pessimistic)

(the shares of the classes cancel the weights of the two mixtures). A class without samples takes
no part.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.methods.rbr_likelihoods import optimistic, worst_likelihood


class Rules(NamedTuple):
    """How the descent steps and when it ends; the type of it is what chooses the step."""

    step: float
    max_steps: int
    tolerance: float


class Descent(NamedTuple):
    """A chunk of rows: where each stands, starts, may go, and the samples around its start."""

    points: Floats
    start: Floats
    budget: Floats
    samples: Floats
    wanted: NDArray[np.bool_]


class Ends(NamedTuple):
    """What the descent writes, a row each."""

    recourse: Floats
    steps: NDArray[np.int64]
    converged: NDArray[np.bool_]


class Workspace(NamedTuple):
    """Buffers of one thread."""

    x: Floats
    move: Floats
    gradient: Floats
    sizes: Floats
    loglik: Floats
    pull: Floats


def new_workspace(n_samples: int, n_features: int) -> Workspace:
    """Return the buffers of one thread."""
    x, move, gradient, sizes = (np.empty(n_features) for _ in range(4))
    return Workspace(x, move, gradient, sizes, np.empty(n_samples), np.empty(n_samples))


@kernel
def log_odds(x, samples, wanted, ambiguity, loglik, pull, gradient):
    """Return the worst-case log-odds of the unwanted class at x; write their gradient.

    `loglik` and `pull` are scratch, a number for each sample.
    """
    likelihoods(x, samples, wanted, ambiguity, loglik, pull)
    odds = share(loglik, wanted, False, pull, 1.0) - share(loglik, wanted, True, pull, -1.0)
    for j in range(x.size):
        gradient[j] = 0.0
    for i in range(wanted.size):
        for j in range(x.size):
            gradient[j] += pull[i] * (x[j] - samples[i, j])
    return odds


@kernel
def likelihoods(x, samples, wanted, ambiguity, loglik, pull):
    """Write the robust log-likelihood of each sample, and its derivative in c, over c."""
    for i in range(wanted.size):
        square = 0.0
        for j in range(x.size):
            square += (x[j] - samples[i, j]) ** 2
        c = math.sqrt(square)
        if wanted[i]:
            value, slope = worst_likelihood(c, ambiguity)
        else:
            value, slope = optimistic(c, ambiguity)
        loglik[i] = value
        # at the sample itself the pessimistic one has a peak: 0 is one of its slopes
        pull[i] = slope / c if c > 0.0 else 0.0


@kernel
def share(loglik, wanted, which, pull, sign):
    """Return the log of a class's likelihood, and weigh its pulls by their shares in it."""
    peak = -math.inf
    for i in range(wanted.size):
        if wanted[i] == which:
            peak = max(peak, loglik[i])
    if peak == -math.inf:
        return 0.0
    total = 0.0
    for i in range(wanted.size):
        if wanted[i] == which:
            total += math.exp(loglik[i] - peak)
    for i in range(wanted.size):
        if wanted[i] == which:
            pull[i] *= sign * math.exp(loglik[i] - peak) / total
    return peak + math.log(total)


@kernel
def project_budget(move, radius, sizes):
    """Project `move` onto the L1 ball of that radius, in place; `sizes` is scratch.

    The projection takes one threshold off all sizes and stops at 0. With the sizes in falling
    order, the threshold that k of them can pay is ``(sum of the first k - radius) / k``; the last
    k whose smallest size exceeds its threshold is the right one.
    """
    total = 0.0
    for j in range(move.size):
        sizes[j] = abs(move[j])
        total += sizes[j]
    if total <= radius:
        return
    sizes.sort()
    threshold, total = 0.0, 0.0
    for k in range(1, move.size + 1):
        size = sizes[move.size - k]
        total += size
        if size * k <= total - radius:
            break
        threshold = (total - radius) / k
    for j in range(move.size):
        move[j] = math.copysign(max(abs(move[j]) - threshold, 0.0), move[j])


@kernel
def descend_points(work, descent, ambiguity, rules, ends, begin, end):
    """Run the projected gradient on rows begin to end; each ends at the best point it saw."""
    for i in range(begin, end):
        steps, converged = descend_row(
            work,
            descent.points[i],
            descent.start[i],
            descent.budget[i],
            descent.samples[i],
            descent.wanted[i],
            ambiguity,
            rules,
            ends.recourse[i],
        )
        ends.steps[i] = steps
        ends.converged[i] = converged


@kernel
def descend_row(work, point, start, budget, samples, wanted, ambiguity, rules, best):
    """Write the best point of one descent into `best`; return (steps, converged)."""
    x = work.x
    x[:] = start
    best[:] = start
    least = math.inf
    for step in range(rules.max_steps + 1):
        odds = log_odds(x, samples, wanted, ambiguity, work.loglik, work.pull, work.gradient)
        if odds < least:
            least = odds
            best[:] = x
        if step == rules.max_steps:
            break
        moved = take_step(x, point, budget, rules, work)
        if moved <= rules.tolerance:
            return step + 1, True
    return rules.max_steps, False


def take_step(x: Floats, point: Floats, budget: float, rules: Any, work: Workspace) -> float:
    """Step by rules of this type; return how far x moved."""
    raise NotImplementedError("runs in compiled code only")


@overload(take_step)
def _take_step(x, point, budget, rules, work):
    if rules.instance_class is Rules:
        return lambda x, point, budget, rules, work: step_inside(x, point, budget, rules.step, work)
    return None


@kernel
def step_inside(x, point, budget, step, work):
    """Step down the gradient and back into the budget; return how far x moved."""
    for j in range(x.size):
        work.move[j] = x[j] - step * work.gradient[j] - point[j]
    project_budget(work.move, budget, work.sizes)
    moved = 0.0
    for j in range(x.size):
        following = point[j] + work.move[j]
        moved += abs(following - x[j])
        x[j] = following
    return moved


@kernel
def diameter(points, order, far):
    """Return the largest Euclidean distance between two points.

    `order` sorts them by falling distance `far` from their centre: by the triangle inequality a
    pair whose sum of these is too small can be left out, and so can all that follow.
    """
    best = 0.0
    for a in range(1, order.size):
        i = order[a]
        if far[order[0]] + far[i] <= best:
            break
        for b in range(a):
            k = order[b]
            if far[k] + far[i] <= best:
                break
            square = 0.0
            for j in range(points.shape[1]):
                square += (points[i, j] - points[k, j]) ** 2
            best = max(best, math.sqrt(square))
    return best
