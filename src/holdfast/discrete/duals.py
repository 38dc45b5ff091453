"""Good budgets for a given multiplier: the adversary's answer to a relaxed node.

For a multiplier mu the relaxed node minimises ``sum_j a_j + mu radius ||(size_j), rho_0||_q`` where
each feature mixes its candidates, ``a = cost - mu score``. Along the lower hull of a feature's
points (size, a) from its least a towards smaller sizes, edges have rising slopes: a budget gamma_j
moves the feature past every edge that is flatter than gamma_j.

- 1 < p < inf: ``gamma_j = mu radius (size_j / r)^(q-1)`` with r the norm itself: one root r. While
  no feature changes its vertex or edge, ``r^q (1 - active) = passive`` gives it at once.
- p = 1: no size exceeds M, and the budgets that this takes add up to ``mu * radius``: one root M,
  among the sizes of the candidates.
"""

from __future__ import annotations

import math

from holdfast.machinery.compile import kernel
from holdfast.problem.ball import power


@kernel
def charged(table, k, mu, charge):
    """Return a = cost - mu score of a candidate, with the charge for changing."""
    value = table.cost[k] - mu * table.gain[k]
    return value + charge if table.changed[k] == 1 else value


@kernel
def first_vertex(table, b, mu, charge):
    """Return the candidate of least a; of the smallest size among ties."""
    best = table.start[b]
    least = charged(table, best, mu, charge)
    for k in range(table.start[b] + 1, table.start[b + 1]):
        value = charged(table, k, mu, charge)
        if value < least or (value == least and table.size[k] < table.size[best]):
            least, best = value, k
    return best


@kernel
def next_vertex(table, b, mu, charge, i):
    """Return the next vertex of the hull after i and the slope of the edge to it; -1, inf: none."""
    best, slope = -1, math.inf
    here = charged(table, i, mu, charge)
    for k in range(table.start[b], table.start[b + 1]):
        if table.size[k] < table.size[i]:
            edge = (charged(table, k, mu, charge) - here) / (table.size[i] - table.size[k])
            if edge < slope or (edge == slope and table.size[k] < table.size[best]):
                best, slope = k, edge
    return best, max(slope, 0.0)


@kernel
def mix(mixture, b, i, j, share):
    """Feature b stands at `share` of candidate i and the rest of candidate j."""
    mixture.first[b], mixture.second[b], mixture.share[b] = i, j, share


@kernel
def settle_lp(table, b, mu, charge, most, r, p, q, mixture):
    """Place feature b at norm r; return (gamma, size, whether it moves with r)."""
    i = first_vertex(table, b, mu, charge)
    while True:
        felt = most * power(table.size[i] / r, q - 1.0)
        j, slope = next_vertex(table, b, mu, charge, i)
        if felt <= slope:
            mix(mixture, b, i, i, 1.0)
            return felt, table.size[i], False
        size = r * power(slope / most, p - 1.0)
        if size >= table.size[j]:
            width = table.size[i] - table.size[j]
            mix(mixture, b, i, j, min(1.0, (size - table.size[j]) / width))
            return slope, size, True
        i = j


@kernel
def budgets_lp(table, mu, charge, active, radius, p, q, rho_0, guess, gammas, mixture):
    """Write the budgets for 1 < p < inf; return (gamma_0, norm)."""
    most = mu * radius
    r, low, high = guess if guess > 0.0 else 1.0, 0.0, math.inf
    for _ in range(60):
        moving, passive = 0.0, power(rho_0 / r, q)
        for b in range(gammas.size):
            extra = 0.0 if active[b] == 1 else charge
            gammas[b], size, moves = settle_lp(table, b, mu, extra, most, r, p, q, mixture)
            part = power(size / r, q)
            if moves:
                moving += part
            else:
                passive += part
        if moving + passive > 1.0:
            low = r
        else:
            high = r
        if abs(moving + passive - 1.0) <= 1e-13:
            break
        if passive == 0.0 and moving < 1.0:  # everything rests at 0
            return 0.0, 0.0
        following = -1.0
        if moving < 1.0:
            following = r * power(passive / (1.0 - moving), 1.0 / q)
        if not low < following < high:
            following = 4.0 * r if high == math.inf else math.sqrt(max(low, 1e-9 * high) * high)
        if abs(following - r) <= 1e-14 * r:
            break
        r = following
    return most * power(rho_0 / r, q - 1.0), r


@kernel
def settle_l1(table, b, mu, charge, size, mixture):
    """Bring feature b to at most `size`; return (budget that this takes, vertex).

    The vertex is -1 unless the feature stands exactly at `size`: then it may be pressed further.
    """
    i = first_vertex(table, b, mu, charge)
    gamma = 0.0
    mix(mixture, b, i, i, 1.0)
    while table.size[i] > size:
        j, slope = next_vertex(table, b, mu, charge, i)
        if j < 0:
            return math.inf, -1
        gamma = slope
        if table.size[j] <= size:
            share = (size - table.size[j]) / (table.size[i] - table.size[j])
            if share > 0.0:
                mix(mixture, b, i, j, share)
                return gamma, -1
        mix(mixture, b, j, j, 1.0)
        i = j
    return gamma, i if table.size[i] == size else -1


@kernel
def budget_needed(table, mu, charge, active, size, gammas, mixture):
    total = 0.0
    for b in range(gammas.size):
        extra = 0.0 if active[b] == 1 else charge
        gammas[b], _ = settle_l1(table, b, mu, extra, size, mixture)
        total += gammas[b]
    return total


@kernel
def budgets_l1(table, mu, charge, active, radius, rho_0, kinks, gammas, mixture):
    """Write the budgets for p = 1; return (gamma_0, size)."""
    most = mu * radius
    least = rho_0
    for b in range(gammas.size):
        smallest = math.inf
        for k in range(table.start[b], table.start[b + 1]):
            smallest = min(smallest, table.size[k])
        least = max(least, smallest)
    size = least
    if budget_needed(table, mu, charge, active, least, gammas, mixture) > most:
        count = 0
        for k in range(table.start[gammas.size]):
            if table.size[k] > least:
                kinks[count] = table.size[k]
                count += 1
        low, high = least, math.inf
        while count > 0:  # the smallest kink that the budget can pay for
            a, b, c = kinks[0], kinks[count // 2], kinks[count - 1]
            middle = max(min(a, b), min(max(a, b), c))
            if budget_needed(table, mu, charge, active, middle, gammas, mixture) > most:
                low = middle
            else:
                high = middle
            kept = 0
            for k in range(count):
                if low < kinks[k] < high:
                    kinks[kept] = kinks[k]
                    kept += 1
            count = kept
        size = high
    left = most - budget_needed(table, mu, charge, active, size, gammas, mixture)
    if rho_0 == size:
        return max(left, 0.0), size
    for b in range(gammas.size):  # who stands at the size may be pressed until it moves on
        extra = 0.0 if active[b] == 1 else charge
        _, at = settle_l1(table, b, mu, extra, size, mixture)
        if at >= 0 and left > 0.0:
            _, slope = next_vertex(table, b, mu, extra, at)
            more = min(left, slope - gammas[b])
            gammas[b] += more
            left -= more
    return 0.0, size


@kernel
def relaxed_point(table, mixture, rho_0, radius, q, features):
    """Return (cost, score less the intercept) of the mixture: a point of the relaxed node."""
    cost, gain, largest = 0.0, 0.0, rho_0
    for b in range(features):
        i, j, share = mixture.first[b], mixture.second[b], mixture.share[b]
        rest = 1.0 - share
        cost += share * table.cost[i] + rest * table.cost[j]
        gain += share * table.gain[i] + rest * table.gain[j]
        largest = max(largest, share * table.size[i] + rest * table.size[j])
    if radius == 0.0 or q == math.inf or largest == 0.0:
        return cost, gain - radius * largest
    total = power(rho_0 / largest, q)
    for b in range(features):
        i, j, share = mixture.first[b], mixture.second[b], mixture.share[b]
        total += power((share * table.size[i] + (1.0 - share) * table.size[j]) / largest, q)
    return cost, gain - radius * largest * power(total, 1.0 / q)
