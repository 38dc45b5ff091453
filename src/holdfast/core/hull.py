"""A finite set of models, and all their mixtures: the worst score is the least of finitely many.

The frontier is piecewise linear, and this walks it vertex by vertex, as a parametric dual simplex
method: the score t that every model must give rises, and the point and the mixture of models that
prove each other follow. In units of cost, ``u_j = cost_j (x_j - start_j)``, with a slack for each
model, ``s_i = models_i . u + score_i(start) - t >= 0``, there are d + m quantities. m of them
depend on the other d, which rest: features at their start or a bound, slacks at 0 (such a model
binds). `tableau` says how, with a last column for t:

    dependent = tableau @ (resting, t)      a row for each dependent quantity

A feature that depends is inside its range, and pays +1 or -1 for a step up; a slack pays nothing.
The `pull` of a resting quantity is what a step up would save; it rests while its pull stays between
what the steps down and up cost. The pull of a binding model's slack is minus its multiplier, that
of t is minus mu, the cost of the last unit of score. On one piece of the frontier:

1. raise t until a dependent quantity comes to the end of its range (`find_event`);
2. let it rest there: its own pull grows, and those of others with it, until that of one comes to
   the end of what it may be (`find_entering`). This one depends from now on: a new piece. If there
   is none, the end of what can be reached is found, and the pulls of an endless step prove it.

The tableau is made afresh from the models now and then, and always before an answer is given, and
what is written is then refined against the models themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from holdfast.core.row import Row, Vertices, gain_at, stop_score
from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import EPS, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.problem.goal import GUARANTEE
from holdfast.problem.model_set import score_of
from holdfast.problem.outcome import EXHAUSTED, FOUND, LIMIT, UNBOUNDED

_SNAP = 16.0 * EPS  # a difference that is so much smaller than its terms is rounding
_NOISE = 32.0 * EPS  # of an entry of the tableau, relative to what it is made of
_BLUR = 128.0 * EPS  # of a value or a pull, likewise: more than entries that count as 0 can do
_WEAK = 1e-8  # an entry that is so small, likewise, is not trusted unless the tableau is fresh
_SHORT = 1e-12  # a piece of the frontier that is so short, likewise, is not shown
_FRESH = 12  # steps that a tableau lasts
_STALLED = 12  # steps without progress after which ties are broken by index, which cannot cycle


class HullScratch(Struct):
    """Buffers of one thread, for m models of d features; quantities are features, then slacks."""

    models: Floats  # (m, d), coefficients over costs
    at_start: Floats  # (m,), scores at the start
    terms_at_start: Floats  # (m,), the size of what they are sums of
    terms: Floats  # (m,), ... at the point where the tableau was made
    tableau: Floats  # (m, d + 1)
    in_row: Ints  # (m,), which quantity depends
    in_column: Ints  # (d,), which rests
    speed: Floats  # (m,), the size of what the rises of the scores are sums of, as t rises by 1
    noise: Floats  # (m, 4), what entries, rate, value and shares of t of a row are made of
    tilt: Floats  # (m,), what a step up of the dependent quantities pays, for a mixture
    pull: Floats  # (d + 1,)
    value: Floats  # (d + m,), as all that follow
    low: Floats
    high: Floats
    slope: Floats  # what a step up pays now, where the quantity depends
    unit_cost: Floats  # what a step away from the start costs: 1 for a feature, 0 for a slack
    size: Floats  # of an entry in its column, relative to the noise of the row


def new_hull_scratch(m: int, d: int) -> HullScratch:
    """Return the buffers for m models of d features."""
    both = d + m
    return HullScratch.zeros(
        models=(m, d),
        at_start=m,
        terms_at_start=m,
        terms=m,
        tableau=(m, d + 1),
        in_row=m,
        in_column=d,
        speed=m,
        noise=(m, 4),
        tilt=m,
        pull=d + 1,
        value=both,
        low=both,
        high=both,
        slope=both,
        unit_cost=both,
        size=both,
    )


class HullEvent(NamedTuple):
    """A row that comes to an end of its range."""

    row: int
    side: float  # up or down: 1 or -1
    step: float  # how far t rises until then
    broken: bool  # it is beyond the end already, by rounding


@kernel
def solve_hull(row, coefs, intercepts, goal, scratch, y, weights):
    """Write the point into y and the mixture that proves it into weights; return (outcome, gain).

    The row is not oriented, and its `coef` is not used.
    """
    t = open_hull(row, coefs, intercepts, scratch)
    outcome, gain = LIMIT, math.inf
    age, stalled, end, blur = 0, 0, -1, _BLUR
    for _ in range(most_steps(scratch)):
        if age >= _FRESH:
            refresh_tableau(scratch, t)
            age = 0
        by_index = stalled > _STALLED
        event = find_event(scratch, t, blur, by_index)
        mu = multiplier_of(scratch)
        if mu > 0.0 and not event.broken:
            stop = stop_score(goal, 1.0 / mu)
            if stop <= t + event.step:  # the goal is met on this piece, or there is no end
                if t < stop < math.inf:
                    advance_hull(scratch, stop - t)
                    t = stop
                if age == 0:
                    outcome = FOUND if stop < math.inf else UNBOUNDED
                    gain = 1.0 / write_mixture(scratch, -1, 0.0, False, weights)
                    break
                age = _FRESH
                continue
            advance_hull(scratch, event.step)
            t += event.step
        column, turn = find_entering(scratch, event, by_index)
        met = goal_is_met(goal, scratch, t, event, turn)
        if age > 0 and is_weak(scratch, event, column):
            age = _FRESH
        elif not met and turn < math.inf:
            stalled = stalled + 1 if is_stalled(scratch, t, event, turn) else 0
            change_piece(scratch, event, column)
            age = _FRESH if event.broken else age + 1
        elif age > 0:
            age = _FRESH
        elif event.broken and not met and is_blurred(scratch, event):
            blur *= 16.0
        else:
            outcome, gain = answer_at_vertex(goal, scratch, t, event, turn, met, weights)
            end = come_to_end(scratch, event) if outcome == EXHAUSTED else -1
            break
    write_hull_point(row, coefs, intercepts, t, end, scratch, y)
    if outcome == LIMIT:
        write_mixture(scratch, -1, 0.0, False, weights)
    return outcome, gain if outcome != UNBOUNDED else 0.0


@kernel
def slack_of(d, i):
    """Return which quantity the slack of model i is: the d features come first."""
    return d + i


@kernel
def model_of_slack(d, k):
    """Return the model whose slack is quantity k."""
    return k - d


@kernel
def most_steps(scratch):
    """Return after how many steps a walk is given up; walks to the end take about 2 (d + m)."""
    return 100 * (scratch.value.size + 10)


@kernel
def multiplier_of(scratch):
    """Return mu, the cost of the last unit of score on this piece; 0 before the first."""
    return 0.0 - scratch.pull[scratch.in_column.size]


@kernel
def rise_of(scratch, event):
    """Return by how much mu rises for a turn of 1."""
    return event.side * scratch.tableau[event.row, scratch.in_column.size]


@kernel
def is_stalled(scratch, t, event, turn):
    """Whether neither the score nor mu rises by more than rounding."""
    rise = turn * rise_of(scratch, event)
    return event.step <= _BLUR * abs(t) and rise <= _BLUR * multiplier_of(scratch)


@kernel
def is_blurred(scratch, event):
    """Whether nothing can be done about a broken row, as it hardly depends on anything."""
    return rise_of(scratch, event) <= _WEAK * scratch.noise[event.row, 1]


@kernel
def come_to_end(scratch, event):
    """Put a quantity at the end of its range; return its row."""
    k = scratch.in_row[event.row]
    low, high = own_range(scratch, k)
    scratch.value[k] = high if event.side > 0.0 else low
    return event.row


@kernel
def goal_is_met(goal, scratch, t, event, turn):
    """Whether the next piece, which a turn leads to, does not serve the goal any more."""
    if goal.mode == GUARANTEE and event.broken:
        return False
    mu = math.inf
    if turn < math.inf:
        mu = multiplier_of(scratch) + turn * rise_of(scratch, event)
    return t >= stop_score(goal, 1.0 / mu)


@kernel
def answer_at_vertex(goal, scratch, t, event, turn, met, weights):
    """Write the mixture that proves a vertex, between those of the pieces that meet there."""
    if not met:
        write_mixture(scratch, event.row, event.side, True, weights)
        return EXHAUSTED, 0.0
    mu, rise = multiplier_of(scratch), rise_of(scratch, event)
    wanted = 1.0 / gain_at(goal, t, 1.0 / mu)
    turn = min((wanted - mu) / rise, turn) if wanted > mu and rise > 0.0 else 0.0
    return FOUND, 1.0 / write_mixture(scratch, event.row, event.side * turn, False, weights)


@kernel
def open_hull(row, coefs, intercepts, scratch):
    """Begin at the start; return the least score there."""
    m, d = coefs.shape
    for j in range(d):
        scratch.low[j] = row.cost[j] * (row.lower[j] - row.start[j])
        scratch.high[j] = row.cost[j] * (row.upper[j] - row.start[j])
        scratch.value[j], scratch.slope[j] = 0.0, 0.0
        scratch.unit_cost[j], scratch.size[j] = 1.0, 0.0
    least = math.inf
    for i in range(m):
        score, terms, largest = intercepts[i], abs(intercepts[i]), 0.0
        for j in range(d):
            score += coefs[i, j] * row.start[j]
            terms += abs(coefs[i, j] * row.start[j])
            scratch.models[i, j] = coefs[i, j] / row.cost[j]
            largest = max(largest, abs(scratch.models[i, j]))
        scratch.at_start[i], scratch.terms_at_start[i], scratch.terms[i] = score, terms, terms
        least = min(least, score)
        if largest == 0.0:
            largest = 1.0
        k = slack_of(d, i)
        scratch.low[k], scratch.high[k] = 0.0, math.inf
        scratch.slope[k], scratch.unit_cost[k], scratch.size[k] = 0.0, 0.0, 1.0 / largest
        for j in range(d):
            scratch.size[j] = max(scratch.size[j], abs(scratch.models[i, j]) / largest)
    for i in range(m):
        scratch.value[slack_of(d, i)] = scratch.at_start[i] - least
    lay_tableau(scratch)
    survey_tableau(scratch)
    return least


@kernel
def lay_tableau(scratch):
    """Let all slacks depend, and all features rest."""
    m, d = scratch.models.shape
    for i in range(m):
        for j in range(d):
            scratch.tableau[i, j] = scratch.models[i, j]
        scratch.tableau[i, d] = -1.0
        scratch.in_row[i] = slack_of(d, i)
    for j in range(d):
        scratch.in_column[j] = j


@kernel
def exchange(scratch, r, c):
    """Let the quantity of row r rest, and that of column c depend."""
    tableau = scratch.tableau
    m, n = tableau.shape
    pivot = tableau[r, c]
    for i in range(m):
        ratio = tableau[i, c] / pivot
        if i == r or ratio == 0.0:
            continue
        for q in range(n):
            before = tableau[i, q]
            after = before - ratio * tableau[r, q]
            tableau[i, q] = after if abs(after) > _SNAP * abs(before) else 0.0
        tableau[i, c] = ratio
    for q in range(n):
        tableau[r, q] = -tableau[r, q] / pivot
    tableau[r, c] = 1.0 / pivot
    scratch.in_row[r], scratch.in_column[c] = scratch.in_column[c], scratch.in_row[r]


@kernel
def survey_tableau(scratch):
    """Work out the pulls of what rests, and the noise of every row."""
    m, n = scratch.tableau.shape
    for q in range(n):
        scratch.pull[q] = 0.0
    for i in range(m):
        slope = scratch.slope[scratch.in_row[i]]
        if slope != 0.0:
            for q in range(n):
                scratch.pull[q] -= slope * scratch.tableau[i, q]
        scratch.speed[i] = 1.0
        for kind in range(4):
            scratch.noise[i, kind] = 0.0
    for i in range(m):
        if scratch.in_row[i] < n - 1:
            for r in range(m):
                move = scratch.models[r, scratch.in_row[i]] * scratch.tableau[i, n - 1]
                scratch.speed[r] += abs(move)
    for i in range(m):
        add_noise(scratch, i, scratch.in_row[i], 1.0)
    for q in range(n - 1):
        if scratch.in_column[q] >= n - 1:
            for i in range(m):
                add_noise(scratch, i, scratch.in_column[q], abs(scratch.tableau[i, q]))


@kernel
def add_noise(scratch, i, k, times):
    """Add to the noise of row i what it has of quantity k, if that is the slack of a model."""
    d = scratch.in_column.size
    if k >= d:
        scratch.noise[i, 0] += times / scratch.size[k]
        model = model_of_slack(d, k)
        scratch.noise[i, 1] += times * scratch.speed[model]
        scratch.noise[i, 2] += times * scratch.terms[model]
        scratch.noise[i, 3] += times


@kernel
def own_range(scratch, k):
    """Return where the slope of quantity k stays what it is."""
    slope = scratch.slope[k]
    return 0.0 if slope > 0.0 else scratch.low[k], 0.0 if slope < 0.0 else scratch.high[k]


@kernel
def pulls_at_rest(scratch, k):
    """Return between which pulls quantity k stays where it is: what steps down and up cost."""
    value, unit_cost = scratch.value[k], scratch.unit_cost[k]
    down = unit_cost if value > 0.0 else -unit_cost
    up = unit_cost if value >= 0.0 else -unit_cost
    if value <= scratch.low[k]:
        down = -math.inf
    if value >= scratch.high[k]:
        up = math.inf
    return down, up


@kernel
def find_event(scratch, t, blur, by_index):
    """Find the row that first comes to an end of its range as t rises; row -1: none ever does.

    A row beyond its end comes first, and is mended without raising t: the worst of them. Of
    several that come to an end together, but for rounding, the one that moves fastest.
    """
    last = scratch.in_column.size
    limit, worst, found = math.inf, 1.0, -1
    side = 0.0
    for i in range(scratch.in_row.size):
        k = scratch.in_row[i]
        low, high = own_range(scratch, k)
        allowed = blur * (scratch.noise[i, 2] + abs(t) * scratch.noise[i, 3])
        beyond = max(low - scratch.value[k], scratch.value[k] - high)
        if beyond > worst * allowed:
            worst, found = beyond / allowed, i
            side = -1.0 if scratch.value[k] < low else 1.0
        rate = scratch.tableau[i, last]
        if abs(rate) > _NOISE * scratch.noise[i, 1]:
            room = high - scratch.value[k] if rate > 0.0 else scratch.value[k] - low
            limit = min(limit, (max(room, 0.0) + allowed) / abs(rate))
    if found >= 0:
        return HullEvent(found, side, 0.0, True)
    best, step = -math.inf, math.inf
    for i in range(scratch.in_row.size):
        k = scratch.in_row[i]
        rate = scratch.tableau[i, last]
        if abs(rate) <= _NOISE * scratch.noise[i, 1]:
            continue
        low, high = own_range(scratch, k)
        room = max(high - scratch.value[k] if rate > 0.0 else scratch.value[k] - low, 0.0)
        rank = -float(k) if by_index else abs(rate) / scratch.noise[i, 1]
        if room < math.inf and room / abs(rate) <= limit and rank > best:
            best, found, side = rank, i, math.copysign(1.0, rate)
            step = room / abs(rate)
    return HullEvent(found, side, step, False)


@kernel
def find_entering(scratch, event, by_index):
    """Find what depends instead of a quantity that comes to rest.

    Return (column, how far the pull of the latter turns until then). Column d: it passes its start,
    and its row stays; -1: nothing ever does. Of several, the column with the largest entry.
    """
    i, side = event.row, event.side
    d, k = scratch.in_column.size, scratch.in_row[i]
    blur = 0.0
    for r in range(scratch.in_row.size):
        blur += _BLUR * abs(scratch.slope[scratch.in_row[r]]) * scratch.noise[r, 0]
    limit = math.inf
    for q in range(d):
        entry, room = entry_and_room(scratch, i, side, q)
        if room < math.inf:
            limit = min(limit, (room + blur * scratch.size[scratch.in_column[q]]) / abs(entry))
    slope = scratch.slope[k]
    if side * slope < 0.0 and (scratch.high[k] if side > 0.0 else -scratch.low[k]) > 0.0:
        across = 2.0 * abs(slope)
        if across <= limit:
            return d, across
    best, found, turn = -math.inf, -1, math.inf
    for q in range(d):
        entry, room = entry_and_room(scratch, i, side, q)
        if room < math.inf and room / abs(entry) <= limit:
            other = scratch.in_column[q]
            rank = -float(other) if by_index else abs(entry) / scratch.size[other]
            if rank > best:
                best, found, turn = rank, q, room / abs(entry)
    return found, turn


@kernel
def entry_and_room(scratch, i, side, q):
    """Return the entry of row i, and how far the pull of column q is from its end; inf: no end."""
    entry, k = side * scratch.tableau[i, q], scratch.in_column[q]
    if is_below(scratch, i, k, abs(entry), _NOISE):
        return entry, math.inf
    down, up = pulls_at_rest(scratch, k)
    room = scratch.pull[q] - down if entry > 0.0 else up - scratch.pull[q]
    return entry, max(room, 0.0)


@kernel
def is_below(scratch, i, k, entry, share):
    """Whether an entry of row i, in the column of quantity k, is so small a share of its terms.

    Most are so large that a rough measure tells; the terms themselves decide on a feature.
    """
    d, own = scratch.in_column.size, scratch.in_row[i]
    if entry > share * scratch.noise[i, 0] * scratch.size[k]:
        return False
    if k >= d:
        return True
    terms = abs(scratch.models[model_of_slack(d, own), k]) if own >= d else 0.0
    for q in range(d):
        if scratch.in_column[q] >= d:
            model = model_of_slack(d, scratch.in_column[q])
            terms += abs(scratch.tableau[i, q] * scratch.models[model, k])
    return entry <= share * terms


@kernel
def is_weak(scratch, event, column):
    """Whether an exchange would rest on an entry that may be mostly rounding."""
    if not 0 <= column < scratch.in_column.size:
        return False
    entry = abs(scratch.tableau[event.row, column])
    return is_below(scratch, event.row, scratch.in_column[column], entry, _WEAK)


@kernel
def change_piece(scratch, event, column):
    """Let a quantity rest at the end of its range, and that of the column depend instead."""
    i, side = come_to_end(scratch, event), event.side
    k = scratch.in_row[i]
    if column == scratch.in_column.size:
        scratch.slope[k] = -scratch.slope[k]
    else:
        other = scratch.in_column[column]
        down, up = pulls_at_rest(scratch, other)
        scratch.slope[other] = down if side * scratch.tableau[i, column] > 0.0 else up
        scratch.slope[k] = 0.0
        exchange(scratch, i, column)
    survey_tableau(scratch)


@kernel
def advance_hull(scratch, step):
    """Raise t by a step."""
    last = scratch.in_column.size
    for i in range(scratch.in_row.size):
        scratch.value[scratch.in_row[i]] += scratch.tableau[i, last] * step


@kernel
def refresh_tableau(scratch, t):
    """Make the tableau afresh from the models, for the same quantities, and the values for this t.

    Of the pairs that are still to be exchanged, always the one with the largest entry.
    """
    m, d = scratch.models.shape
    for i in range(m):  # mark what is to be exchanged
        scratch.tilt[i] = 0.0
    for j in range(d):
        scratch.pull[j] = 0.0
    for i in range(m):
        if scratch.in_row[i] < d:
            scratch.pull[scratch.in_row[i]] = 1.0
    for j in range(d):
        if scratch.in_column[j] >= d:
            scratch.tilt[model_of_slack(d, scratch.in_column[j])] = 1.0
    lay_tableau(scratch)
    while True:
        best, r, c = 0.0, -1, -1
        for i in range(m):
            if scratch.tilt[i] == 0.0:
                continue
            for j in range(d):
                if scratch.pull[j] == 1.0:
                    rank = (
                        abs(scratch.tableau[i, j]) / scratch.size[j] * scratch.size[slack_of(d, i)]
                    )
                    if rank > best:
                        best, r, c = rank, i, j
        if r < 0:
            break
        exchange(scratch, r, c)
        scratch.tilt[r] = scratch.pull[c] = 0.0
    for _ in range(2):
        settle_values(scratch, t)
    measure_slacks(scratch, t)
    survey_tableau(scratch)


@kernel
def measure_slacks(scratch, t):
    """Work out every slack from the features; those that rest are 0."""
    m, d = scratch.models.shape
    for i in range(m):
        slack, terms = scratch.at_start[i] - t, scratch.terms_at_start[i]
        for j in range(d):
            slack += scratch.models[i, j] * scratch.value[j]
            terms += abs(scratch.models[i, j] * scratch.value[j])
        scratch.value[slack_of(d, i)], scratch.terms[i] = slack, terms
    for q in range(d):
        if scratch.in_column[q] >= d:
            scratch.value[scratch.in_column[q]] = 0.0


@kernel
def settle_values(scratch, t):
    """Move the features that depend so that the models that bind give the score t."""
    m, d = scratch.models.shape
    for q in range(d):
        if scratch.in_column[q] >= d:
            r = model_of_slack(d, scratch.in_column[q])
            slack = scratch.at_start[r] - t
            for j in range(d):
                slack += scratch.models[r, j] * scratch.value[j]
            scratch.value[slack_of(d, r)] = slack
    for i in range(m):
        k = scratch.in_row[i]
        if k < d:
            for q in range(d):
                if scratch.in_column[q] >= d:
                    scratch.value[k] -= scratch.tableau[i, q] * scratch.value[scratch.in_column[q]]


@kernel
def write_hull_point(row, coefs, intercepts, t, end, scratch, y):
    """Write the point, refined against the models as they were given.

    The models that bind are to give the score t. At the end of a piece (`end` is the row that is
    there, else -1) it is the other way around: that quantity stays, and t is what they can give.
    """
    m, d = coefs.shape
    for j in range(d):
        value = scratch.value[j]
        if value == 0.0:
            y[j] = row.start[j]
        elif value == scratch.high[j]:
            y[j] = row.upper[j]
        elif value == scratch.low[j]:
            y[j] = row.lower[j]
        else:
            y[j] = row.start[j] + value / row.cost[j]
    for i in range(m):
        scratch.tilt[i] = score_of(y, coefs[i], intercepts[i]) - t
    rise = 0.0
    if end >= 0:
        own, rate = scratch.in_row[end], scratch.tableau[end, d]
        missing = scratch.tilt[model_of_slack(d, own)] if own >= d else 0.0
        rise = (error_of(scratch, end) - missing) / rate
    for i in range(m):
        j = scratch.in_row[i]
        if j < d and i != end:
            move = scratch.tableau[i, d] * rise - error_of(scratch, i)
            y[j] = put_in_range(row, j, scratch.slope[j], y[j] + move / row.cost[j])


@kernel
def put_in_range(row, j, slope, x):
    """Return x, but not on the other side of the start, nor out of bounds, by rounding."""
    low = row.start[j] if slope > 0.0 else row.lower[j]
    high = row.start[j] if slope < 0.0 else row.upper[j]
    return min(max(x, low), high)


@kernel
def error_of(scratch, i):
    """Return how far the quantity of row i is off, from how far the models that bind are (tilt)."""
    d, error = scratch.in_column.size, 0.0
    for q in range(d):
        if scratch.in_column[q] >= d:
            model = model_of_slack(d, scratch.in_column[q])
            error += scratch.tableau[i, q] * scratch.tilt[model]
    return error


@kernel
def write_mixture(scratch, i, turn, endless, weights):
    """Write the mixture of models that proves the piece, turned by so much in row i; return mu.

    An endless turn leaves of everything else nothing. Without any cost (mu = 0) it is the model
    that gives the least score.
    """
    m, d = scratch.models.shape
    for r in range(m):
        weights[r] = 0.0
        scratch.tilt[r] = 0.0 if endless else scratch.slope[scratch.in_row[r]]
    if i >= 0:
        scratch.tilt[i] += turn
        if scratch.in_row[i] >= d:  # a model that begins to bind
            weights[model_of_slack(d, scratch.in_row[i])] = -turn
    add_weights(scratch, weights)
    for r in range(m):
        if scratch.in_row[r] < d:
            for k in range(m):
                scratch.tilt[r] -= weights[k] * scratch.models[k, scratch.in_row[r]]
        else:
            scratch.tilt[r] = 0.0
    add_weights(scratch, weights)
    terms = 0.0
    for k in range(m):
        weights[k] = max(weights[k], 0.0)
        terms += weights[k] / scratch.size[slack_of(d, k)]
    mu = 0.0
    for k in range(m):
        if weights[k] / scratch.size[slack_of(d, k)] <= _SNAP * terms:
            weights[k] = 0.0
        mu += weights[k]
    if mu == 0.0:
        weights[max(model_of_slack(d, scratch.in_row[i]), 0)] = 1.0
        return 0.0
    for k in range(m):
        weights[k] /= mu
    return mu


@kernel
def add_weights(scratch, weights):
    """Add the multipliers of the models that bind for which features pay their tilt."""
    m, d = scratch.models.shape
    for q in range(d):
        if scratch.in_column[q] >= d:
            k = model_of_slack(d, scratch.in_column[q])
            for r in range(m):
                weights[k] += scratch.tilt[r] * scratch.tableau[r, q]


def hull_vertices(row: Row, coefs: Floats, intercepts: Floats, scratch: HullScratch) -> Vertices:
    """Return the whole frontier of one row."""
    t = open_hull(row, coefs, intercepts, scratch)
    points, multipliers, ray = [row.start.copy()], [], None
    stalled, blur = 0, _BLUR
    for _ in range(most_steps(scratch)):
        event = find_event(scratch, t, blur, stalled > _STALLED)
        mu = multiplier_of(scratch)
        if event.row < 0:
            multipliers.append(mu)
            ray = _ray(row, scratch)
            break
        if not event.broken:
            advance_hull(scratch, event.step)
            t += event.step
        column, turn = find_entering(scratch, event, stalled > _STALLED)
        if event.step > _SHORT * (abs(t) + scratch.terms.max()):
            point = np.empty_like(row.start)
            end = come_to_end(scratch, event)
            write_hull_point(row, coefs, intercepts, t, end, scratch, point)
            if multipliers and mu <= multipliers[-1] * (1.0 + _SHORT):  # the same piece goes on
                points[-1] = point
            else:
                points.append(point)
                multipliers.append(mu)
        if turn == math.inf:
            if event.broken and is_blurred(scratch, event):
                blur *= 16.0
                continue
            break
        stalled = stalled + 1 if is_stalled(scratch, t, event, turn) else 0
        change_piece(scratch, event, column)
        refresh_tableau(scratch, t)
    else:
        raise RuntimeError("the frontier has more vertices than can be walked")
    stacked = np.array(points)
    scores = (stacked @ coefs.T + intercepts).min(axis=1)
    costs = np.abs(stacked - row.start) @ row.cost
    return Vertices(stacked, scores, costs, np.array(multipliers), ray)


def _ray(row: Row, scratch: HullScratch) -> Floats:
    """Return the endless step from here, at a cost of 1."""
    ray = np.zeros_like(row.start)
    for i, k in enumerate(scratch.in_row):
        if k < ray.size:
            ray[k] = scratch.tableau[i, -1] / row.cost[k]
    return ray / (np.abs(ray) @ row.cost)
