"""The bound of a node: the best multiplier for it, by lines above the dual function.

The dual function of a node, ``L(mu) = min over the relaxed node of cost + mu (target - m)`` (for
the price, with the loss's best score in place of the target), is concave. Every relaxed point is a
line above it, every evaluation of `node_bound` a value below. Where the lines of the two ends of a
bracket cross is the next multiplier: finitely many steps where L is piecewise linear.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from holdfast.core.kinds import L1, LP
from holdfast.discrete.bound import node_bound
from holdfast.discrete.domains import Candidates
from holdfast.discrete.duals import budgets_l1, budgets_lp, place_first, relaxed_point
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import EPS, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import GUARANTEE, PRICE, REACH
from holdfast.problem.losses import loss_value, score_at_slope, steepest, tilted_minimum
from holdfast.problem.model_set import copy_into

MOST_STEPS = 60


class Blend(Struct):
    """A relaxed point: each feature at `share` of one candidate and the rest of another."""

    first: Ints
    second: Ints
    share: Floats


class Relaxed(Struct):
    """Buffers of one thread for the bound of a node; see `bound_node` for what it leaves there."""

    candidates: Candidates
    gammas: Floats  # the budgets of the last evaluation, ...
    kept_gammas: Floats  # ... of the best one at its multiplier, ...
    best_gammas: Floats  # ... and of the best of all: with mu and charge they give the bound
    saved: Floats
    kinks: Floats
    firsts: Ints  # where each feature stands before it is pressed
    now: Blend
    low: Blend
    high: Blend


class NodeGoal(NamedTuple):
    """Goal and set of models as a node reads them.

    For a ball of p = inf the norm is part of the scores already; other sets have none here.
    """

    mode: int
    loss: int
    amount: float
    kind: int
    intercept: float
    radius: float
    blunt: float  # p = inf: what the adversary takes off every coefficient; 0 otherwise
    p: float
    q: float
    rho_0: float
    unit: float  # what a gap is measured in, beside the value itself


@kernel
def make_node_goal(goal, kind, intercept, unit, radius, blunt, p, q, rho_0):
    """Ask for a goal, or again for that of another question."""
    mode, loss, amount = goal.mode, goal.loss, goal.amount
    return NodeGoal(mode, loss, amount, kind, intercept, radius, blunt, p, q, rho_0, unit)


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
    place_first(relaxed, mu, charge, active)
    gamma_0 = 0.0
    if asked.kind == L1:
        gamma_0, norm = budgets_l1(relaxed, asked, mu, charge, active)
    elif asked.kind == LP:
        gamma_0, norm = budgets_lp(relaxed, asked, mu, charge, active, norm)
    else:
        for b in range(active.size):
            relaxed.gammas[b] = 0.0
    cost, score = relaxed_point(relaxed.candidates, relaxed.now, asked)
    score += asked.intercept
    least, suited = node_bound(relaxed, asked, mu, gamma_0, active, changes)
    if asked.mode == REACH:
        return least - asked.intercept - 4.0 * EPS * abs(asked.intercept), -score, 0.0, norm, suited
    if asked.mode == GUARANTEE:
        value = least + mu * (asked.amount - asked.intercept)
        value -= 4.0 * EPS * mu * (abs(asked.amount) + abs(asked.intercept))
        return value, cost, asked.amount - score, norm, suited
    slope = min(asked.amount * mu, steepest(asked.loss))
    value = tilted_minimum(asked.loss, slope) + asked.amount * (least - mu * asked.intercept)
    value -= 4.0 * EPS * asked.amount * mu * abs(asked.intercept)
    t = score_at_slope(asked.loss, slope)
    if not math.isfinite(t):
        return value, math.nan, t, norm, suited
    height = loss_value(asked.loss, t) + asked.amount * cost
    return value, height, asked.amount * (t - score), norm, suited


@kernel
def bound_node(relaxed, asked, guess, active, changes, cutoff):
    """Return the `Dual` of the node in `relaxed.candidates`; begin with the multipliers of a guess.

    Stops when the bound reaches the cutoff, when it cannot get better, or when it cannot get there.
    `relaxed.best_gammas` are its budgets, `relaxed.low` and `relaxed.high` the relaxed points at
    the ends of the bracket.
    """
    norm, charge = guess.norm, guess.charge
    bound, best_mu, best_charge, best_norm = -math.inf, 0.0, 0.0, norm
    most_mu = math.inf
    if asked.mode == PRICE:
        most_mu = steepest(asked.loss) / asked.amount
    mu = min(guess.mu, most_mu)
    if asked.mode == REACH:
        mu = 1.0
    low, low_height, low_slope = -1.0, 0.0, 0.0
    high, high_height, high_slope = -1.0, 0.0, 0.0
    limited = changes < active.size
    for _ in range(MOST_STEPS):
        value, height, slope, norm, suited = evaluate(
            relaxed, asked, mu, norm, charge, active, changes
        )
        copy_into(relaxed.kept_gammas, relaxed.gammas)
        if limited:  # the charge that suits these budgets; budgets for this charge; and so on
            charge = suited
            for _ in range(2):
                other, other_height, other_slope, other_norm, charge = evaluate(
                    relaxed, asked, mu, norm, charge, active, changes
                )
                if other > value:
                    value, height, slope = other, other_height, other_slope
                    norm, suited = other_norm, charge
                    copy_into(relaxed.kept_gammas, relaxed.gammas)
        if value > bound:
            bound, best_mu, best_charge, best_norm = value, mu, suited, norm
            copy_into(relaxed.best_gammas, relaxed.kept_gammas)
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
