"""The bound of a node: the best multiplier for it, by lines above the dual function.

The dual function of a node, ``L(mu) = min over the relaxed node of cost + mu (target - m)`` (for
the price, with the loss's best score in place of the target), is concave. Every relaxed point is a
line above it, every evaluation of `node_bound` a value below. Where the lines of the two ends of a
bracket cross is the next multiplier: finitely many steps where L is piecewise linear.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.discrete.bound import node_bound
from holdfast.discrete.domains import Table
from holdfast.discrete.duals import (
    budgets_l1,
    budgets_lp,
    first_vertex,
    mix,
    relaxed_point,
)
from holdfast.discrete.layout import L1, LINF, Ints
from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import EPS, Floats
from holdfast.problem.goal import GUARANTEE, PRICE
from holdfast.problem.losses import loss_value, score_at_slope, steepest, tilted_minimum

REACH = 2  # a third goal: the largest worst-case score, whatever it costs
MOST_STEPS = 60


class Mixture(NamedTuple):
    """A relaxed point: each feature at `share` of one candidate and the rest of another."""

    first: Ints
    second: Ints
    share: Floats


class Relaxed(NamedTuple):
    """Buffers of one thread for the bound of a node; see `bound_node` for what it leaves there."""

    table: Table
    gammas: Floats  # the budgets of the last evaluation, ...
    kept_gammas: Floats  # ... of the best one at its multiplier, ...
    best_gammas: Floats  # ... and of the best of all: with mu and charge they give the bound
    picks: Ints
    saved: Floats
    kinks: Floats
    now: Mixture
    low: Mixture
    high: Mixture


class Question(NamedTuple):
    """Goal and ball as a node reads them; for p = inf the norm is part of the gains already."""

    mode: int
    loss: int
    level: float
    kind: int
    base: float  # the intercept
    radius: float
    p: float
    q: float
    rho_0: float
    unit: float  # what a gap is measured in, beside the value itself


class Dual(NamedTuple):
    """What `bound_node` found: a proven bound, and the multipliers that prove it."""

    bound: float
    mu: float
    norm: float
    charge: float
    share: float  # of the relaxed point at the upper end of the bracket in the best mixture


@kernel
def copy_mixture(source, target):
    for b in range(source.share.size):
        target.first[b], target.second[b] = source.first[b], source.second[b]
        target.share[b] = source.share[b]


@kernel
def evaluate(relaxed, asked, mu, norm, charge, active, changes):
    """Evaluate the dual function at mu: (value, height and slope of a line above it, norm, charge).

    The line is ``height + slope * mu``; `relaxed.now` is its point.
    """
    table, gammas, now = relaxed.table, relaxed.gammas, relaxed.now
    gamma_0 = 0.0
    if asked.kind == LINF:
        for b in range(gammas.size):
            gammas[b] = 0.0
            k = first_vertex(table, b, mu, 0.0 if active[b] == 1 else charge)
            mix(now, b, k, k, 1.0)
    elif asked.kind == L1:
        gamma_0, norm = budgets_l1(
            table, mu, charge, active, asked.radius, asked.rho_0, relaxed.kinks, gammas, now
        )
    else:
        gamma_0, norm = budgets_lp(
            table,
            mu,
            charge,
            active,
            asked.radius,
            asked.p,
            asked.q,
            asked.rho_0,
            norm,
            gammas,
            now,
        )
    cost, score = relaxed_point(table, now, asked.rho_0, asked.radius, asked.q, gammas.size)
    score += asked.base
    least, level = node_bound(
        table,
        mu,
        gammas,
        gamma_0,
        asked.radius,
        asked.p,
        asked.rho_0,
        active,
        changes,
        relaxed.picks,
        relaxed.saved,
    )
    if asked.mode == REACH:
        return least - asked.base - 4.0 * EPS * abs(asked.base), -score, 0.0, norm, level
    if asked.mode == GUARANTEE:
        value = least + mu * (asked.level - asked.base)
        value -= 4.0 * EPS * mu * (abs(asked.level) + abs(asked.base))
        return value, cost, asked.level - score, norm, level
    slope = min(asked.level * mu, steepest(asked.loss))
    value = tilted_minimum(asked.loss, slope) + asked.level * (least - mu * asked.base)
    value -= 4.0 * EPS * asked.level * mu * abs(asked.base)
    t = score_at_slope(asked.loss, slope)
    if not math.isfinite(t):
        return value, math.nan, t, norm, level
    height = loss_value(asked.loss, t) + asked.level * cost
    return value, height, asked.level * (t - score), norm, level


@kernel
def bound_node(relaxed, asked, guess, norm, charge, active, changes, cutoff):
    """Return the `Dual` of the node in `relaxed.table`.

    Stops when the bound reaches the cutoff, when it cannot get better, or when it cannot get there.
    `relaxed.best_gammas` are its budgets, `relaxed.low` and `relaxed.high` the relaxed points at
    the ends of the bracket.
    """
    bound, best_mu, best_charge, best_norm = -math.inf, 0.0, 0.0, norm
    most_mu = math.inf
    if asked.mode == PRICE:
        most_mu = steepest(asked.loss) / asked.level
    mu = min(guess, most_mu)
    if asked.mode == REACH:
        mu = 1.0
    low, low_height, low_slope = -1.0, 0.0, 0.0
    high, high_height, high_slope = -1.0, 0.0, 0.0
    limited = changes < active.size
    for _ in range(MOST_STEPS):
        value, height, slope, norm, level = evaluate(
            relaxed, asked, mu, norm, charge, active, changes
        )
        relaxed.kept_gammas[:] = relaxed.gammas
        if limited:  # the charge that suits these budgets; budgets for this charge; and so on
            charge = level
            for _ in range(2):
                again = evaluate(relaxed, asked, mu, norm, charge, active, changes)
                if again[0] > value:
                    value, height, slope, norm, level = again
                    relaxed.kept_gammas[:] = relaxed.gammas
                charge = again[4]
        if value > bound:
            bound, best_mu, best_charge, best_norm = value, mu, level, norm
            relaxed.best_gammas[:] = relaxed.kept_gammas
        if asked.mode == REACH:
            copy_mixture(relaxed.now, relaxed.low)
            copy_mixture(relaxed.now, relaxed.high)
            return Dual(bound, 1.0, norm, best_charge, 1.0)
        if slope > 0.0:
            low, low_height, low_slope = mu, height, slope
            copy_mixture(relaxed.now, relaxed.low)
        else:
            high, high_height, high_slope = mu, height, slope
            copy_mixture(relaxed.now, relaxed.high)
        if bound >= cutoff:
            break
        if high < 0.0:
            if mu >= most_mu:  # the end of what a multiplier can be
                break
            if most_mu < math.inf:
                mu = 0.5 * (mu + most_mu) if mu < 0.999 * most_mu else most_mu
            else:
                mu = 4.0 * mu if mu > 0.0 else 1.0
            if mu > 1e250:
                break
            continue
        if low < 0.0:
            if mu == 0.0:
                break
            mu = 0.0
            continue
        if math.isnan(high_height) or math.isnan(low_height):  # no line at the ends of the slopes
            mu = 0.5 * (low + high) if low > 0.0 else 0.25 * high
            if not low < mu < high or mu < 1e-250:
                break
            continue
        mu = (high_height - low_height) / (low_slope - high_slope)
        above = low_height + low_slope * mu
        if above - bound <= 1e-13 * (asked.unit + abs(above)) or not low < mu < high:
            break
        if above < cutoff and above - bound <= 0.1 * (cutoff - above):
            break
    share = 1.0
    if high < 0.0:
        share = 0.0
        copy_mixture(relaxed.low, relaxed.high)
    elif low < 0.0:
        copy_mixture(relaxed.high, relaxed.low)
    elif not math.isfinite(high_slope):
        share = 0.0
    elif math.isfinite(low_slope) and low_slope - high_slope > 0.0:
        share = low_slope / (low_slope - high_slope)
    return Dual(bound, best_mu, best_norm, best_charge, share)
