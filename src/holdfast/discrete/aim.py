"""The question as a node asks it, and its bound: against a ball, or against one model at a time.

For a ball the adversary's budget is spread over the features (`duals`). In other sets the features
do not share a norm that could be split: there a node is bounded against one model of the set, which
is valid whichever it is. A good one is the worst model of the relaxed node: with each category at
the level that the last model made best, the core solves the numbers as if they were continuous,
and says which model that is; and so on, as long as it helps.
"""

from __future__ import annotations

import math

from holdfast.core.kinds import LINF
from holdfast.core.row import ROUNDING
from holdfast.discrete.branch import heaviest
from holdfast.discrete.domains import write_candidates
from holdfast.discrete.layout import feature_of, load_coefficients
from holdfast.discrete.leaf import fix_level
from holdfast.discrete.leaves import call_leaf
from holdfast.discrete.relax import bound_node, make_node_goal
from holdfast.machinery.compile import choice
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.ball import BallNumbers, power
from holdfast.problem.ellipsoid import EllipsoidNumbers, pull_of
from holdfast.problem.goal import REACH
from holdfast.problem.model_list import HullNumbers
from holdfast.problem.model_set import copy_into, model_of, score_of

MOST_AIMS = 4  # models that a node is bounded against


@choice(0)
def question_of(robust, layout, buffers, case, kind, unit, work):
    """Return what a node asks."""


@question_of.of(BallNumbers)
@kernel
def question_of_ball(ball, layout, buffers, case, kind, unit, work):
    """For p = inf the norm is folded into the scores, the intercept's part into the intercept."""
    goal, base = case.goal, case.intercept
    radius, blunt, rho_0 = ball.radius, 0.0, ball.intercept_scale
    if kind == LINF:
        base -= ball.radius * ball.intercept_scale
        radius, blunt, rho_0 = 0.0, ball.radius, 0.0
    return make_node_goal(goal, kind, base, unit, radius, blunt, ball.p, ball.q, rho_0)


@choice(0)
def first_aim(robust, case, work):
    """Write the dual of the worst model of the start into ``work.aims[0]``."""


@first_aim.of(EllipsoidNumbers)
@kernel
def first_aim_in_ellipsoid(ellipsoid, case, work):
    size = pull_of(case.point, ellipsoid, work.aims[0])
    for m in range(work.dual.size):
        work.aims[0, m] = work.aims[0, m] / size if size > 0.0 else 0.0


@first_aim.of(HullNumbers)
@kernel
def first_aim_in_hull(hull, case, work):
    least, worst = score_of(case.point, case.coef, case.intercept), 0
    for m in range(hull.intercepts.size):
        score = score_of(case.point, hull.coefs[m], hull.intercepts[m])
        if score < least:
            least, worst = score, m + 1
    for m in range(work.dual.size):
        work.aims[0, m] = 1.0 if m == worst else 0.0


@question_of.of(EllipsoidNumbers)
@question_of.of(HullNumbers)
@kernel
def question_of_others(robust, layout, buffers, case, kind, unit, work):
    """Against the worst model of the start, to begin with."""
    first_aim(robust, case, work)
    aim_at(robust, layout, buffers, case, work)
    return make_node_goal(case.goal, kind, case.intercept, unit, 0.0, 0.0, 1.0, 1.0, 0.0)


@choice(0)
def bound_against(robust, layout, buffers, case, asked, solver, dual, changes, cutoff):
    """Return the `Dual` of the node at hand, whose candidates are listed."""


@bound_against.of(BallNumbers)
@kernel
def bound_against_ball(ball, layout, buffers, case, asked, solver, dual, changes, cutoff):
    state, relaxed = buffers.state, buffers.relaxed
    return bound_node(relaxed, asked, dual, state.active, changes, cutoff)


@bound_against.of(EllipsoidNumbers)
@bound_against.of(HullNumbers)
@kernel
def bound_against_others(robust, layout, buffers, case, asked, solver, dual, changes, cutoff):
    state, relaxed, work = buffers.state, buffers.relaxed, solver.work
    aims = work.aims
    asked = against(asked, work)
    best = bound_node(relaxed, asked, dual, state.active, changes, cutoff)
    copy_into(aims[1], aims[0])
    is_best = True
    for k in range(MOST_AIMS):
        if best.bound >= cutoff:
            break
        worst_of_node(layout, buffers, solver, best)
        for m in range(work.dual.size):  # the mean of all: the set is convex
            aims[0, m] = (aims[0, m] * k + work.dual[m]) / (k + 1.0)
        aim_at(robust, layout, buffers, case, work)
        rewrite_candidates(layout, buffers, asked)
        asked = against(asked, work)
        found = bound_node(relaxed, asked, best, state.active, changes, cutoff)
        gained = found.bound - best.bound
        is_best = gained > 0.0
        if is_best:
            best = found
            copy_into(aims[1], aims[0])
        if not gained > 0.01 * (cutoff - best.bound) and k > 0:
            break
    if not is_best:
        copy_into(aims[0], aims[1])
        aim_at(robust, layout, buffers, case, work)
        rewrite_candidates(layout, buffers, asked)
        asked = against(asked, work)
        best = bound_node(relaxed, asked, best, state.active, changes, cutoff)
    return best


@kernel
def against(asked, work):
    """Return the question against the model at hand."""
    intercept, radius, blunt = work.model[work.model.size - 1], asked.radius, asked.blunt
    p, q, rho_0 = asked.p, asked.q, asked.rho_0
    return make_node_goal(asked, asked.kind, intercept, asked.unit, radius, blunt, p, q, rho_0)


@kernel
def rewrite_candidates(layout, buffers, asked):
    """List the candidates again: the scores are another model's."""
    state, data, candidates = buffers.state, buffers.data, buffers.relaxed.candidates
    write_candidates(data, layout.level_start, asked, asked.mode != REACH, state, candidates)


@kernel
def aim_at(robust, layout, buffers, case, work):
    """Take the model of the dual in ``work.aims[0]`` as the one to be bounded against."""
    d = case.coef.size
    work.model[d] = model_of(robust, case.coef, case.intercept, work.aims[0], work.model[:d])
    load_coefficients(layout, work.model, buffers.data)


@kernel
def worst_of_node(layout, buffers, solver, dual):
    """Write the dual of the worst model of the relaxed node into `work.dual`.

    Categories stand at the heaviest level of the relaxed point, numbers anywhere in their range.
    """
    state, data, relaxed = buffers.state, buffers.data, buffers.relaxed
    leaf, numbers = buffers.leaf, layout.columns.size
    for f in range(numbers):
        j = layout.columns[f]
        leaf.lower[j], leaf.upper[j] = state.lo[f], state.hi[f]
        leaf.start[j] = min(max(data.start[f], state.lo[f]), state.hi[f])
    for g in range(layout.level_start.size - 1):
        best, _ = heaviest(relaxed, dual.share, feature_of(numbers, g))
        k = layout.level_start[g] + int(relaxed.candidates.value[best])
        fix_level(layout, data, leaf, g, k)
    leaf.is_node[0] = 1
    call_leaf(solver.address, solver.packed)
    leaf.is_node[0] = 0


@choice(0)
def is_endless(robust, data, changes):
    """Whether score can be had without end by moving at most so many numbers."""


@is_endless.of(EllipsoidNumbers)
@is_endless.of(HullNumbers)
@kernel
def is_endless_in_others(robust, data, changes):
    return False  # it is found out on the way


@is_endless.of(BallNumbers)
@kernel
def is_endless_in_ball(ball, data, changes):
    """Whether score can be had without end by moving at most so many numbers.

    Along a ray of numbers without a bound the score grows when their coefficients are out of the
    adversary's reach: when ``||w / rho||_p > radius``. The largest ratios decide.
    """
    total, last, taken = 0.0, math.inf, 0
    while taken < changes:
        largest, ties = 0.0, 0
        for f in range(data.coef.size):
            w = data.coef[f]
            room = data.upper[f] if w > 0.0 else -data.lower[f]
            if w == 0.0 or room < math.inf:
                continue
            if abs(w) > ball.radius * data.rho[f] * (1.0 + ROUNDING):
                return True  # alone
            ratio = abs(w) / (ball.radius * data.rho[f])
            if ratio < last and ratio > largest:
                largest, ties = ratio, 1
            elif ratio == largest:
                ties += 1
        if ball.p == math.inf:
            return False
        if ties == 0:
            break
        total += power(largest, ball.p) * min(ties, changes - taken)
        taken, last = taken + ties, largest
    return total > 1.0 + ROUNDING * ball.p
