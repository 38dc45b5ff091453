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

from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.problem.ball import power


@kernel
def charged(candidates, k, mu, charge):
    """Return a = cost - mu score of a candidate, with the charge for changing."""
    value = candidates.cost[k] - mu * candidates.score[k]
    return value + charge if candidates.changed[k] == 1 else value


@kernel
def place_first(relaxed, mu, charge, active):
    """Place every feature at its candidate of least a; of the smallest size among ties."""
    candidates = relaxed.candidates
    for b in range(active.size):
        extra = 0.0 if active[b] == 1 else charge
        best = candidates.start[b]
        least = charged(candidates, best, mu, extra)
        for k in range(candidates.start[b] + 1, candidates.start[b + 1]):
            value = charged(candidates, k, mu, extra)
            if value < least or (value == least and candidates.size[k] < candidates.size[best]):
                least, best = value, k
        relaxed.firsts[b] = best
        mix(relaxed.now, b, best, best, 1.0)


@kernel
def next_vertex(candidates, b, mu, charge, i):
    """Return the next vertex of the hull after i and the slope of the edge to it; -1, inf: none."""
    best, slope = -1, math.inf
    here = charged(candidates, i, mu, charge)
    for k in range(candidates.start[b], candidates.start[b + 1]):
        if candidates.size[k] < candidates.size[i]:
            width = candidates.size[i] - candidates.size[k]
            edge = (charged(candidates, k, mu, charge) - here) / width
            if edge < slope or (edge == slope and candidates.size[k] < candidates.size[best]):
                best, slope = k, edge
    return best, max(slope, 0.0)


@kernel
def mix(mixture, b, i, j, share):
    """Feature b stands at `share` of candidate i and the rest of candidate j."""
    mixture.first[b], mixture.second[b], mixture.share[b] = i, j, share


@kernel
def settle_lp(relaxed, asked, b, mu, charge, r):
    """Place feature b at norm r; return (gamma, size, whether it moves with r)."""
    candidates, most, i = relaxed.candidates, mu * asked.radius, relaxed.firsts[b]
    while True:
        felt = most * power(candidates.size[i] / r, asked.q - 1.0)
        j, slope = next_vertex(candidates, b, mu, charge, i)
        if felt <= slope:
            mix(relaxed.now, b, i, i, 1.0)
            return felt, candidates.size[i], False
        size = r * power(slope / most, asked.p - 1.0)
        if size >= candidates.size[j]:
            width = candidates.size[i] - candidates.size[j]
            mix(relaxed.now, b, i, j, min(1.0, (size - candidates.size[j]) / width))
            return slope, size, True
        i = j


@kernel
def budgets_lp(relaxed, asked, mu, charge, active, guess):
    """Write the budgets for 1 < p < inf; return (gamma_0, norm)."""
    gammas, q, rho_0 = relaxed.gammas, asked.q, asked.rho_0
    r, low, high = guess if guess > 0.0 else 1.0, 0.0, math.inf
    for _ in range(60):
        moving, passive = 0.0, power(rho_0 / r, q)
        for b in range(gammas.size):
            extra = 0.0 if active[b] == 1 else charge
            gammas[b], size, moves = settle_lp(relaxed, asked, b, mu, extra, r)
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
    return mu * asked.radius * power(rho_0 / r, q - 1.0), r


@kernel
def settle_l1(relaxed, b, mu, charge, size):
    """Bring feature b to at most `size`; return (budget that this takes, vertex).

    The vertex is -1 unless the feature stands exactly at `size`: then it may be pressed further.
    """
    candidates, i, gamma = relaxed.candidates, relaxed.firsts[b], 0.0
    mix(relaxed.now, b, i, i, 1.0)
    while candidates.size[i] > size:
        j, slope = next_vertex(candidates, b, mu, charge, i)
        if j < 0:
            return math.inf, -1
        gamma = slope
        if candidates.size[j] <= size:
            share = (size - candidates.size[j]) / (candidates.size[i] - candidates.size[j])
            if share > 0.0:
                mix(relaxed.now, b, i, j, share)
                return gamma, -1
        mix(relaxed.now, b, j, j, 1.0)
        i = j
    return gamma, i if candidates.size[i] == size else -1


@kernel
def budget_needed(relaxed, mu, charge, active, size):
    """Write the budgets that bring every feature to at most `size`; return their sum."""
    gammas, total = relaxed.gammas, 0.0
    for b in range(gammas.size):
        gammas[b], first = 0.0, relaxed.firsts[b]
        if relaxed.candidates.size[first] > size:
            gammas[b], _ = settle_l1(relaxed, b, mu, 0.0 if active[b] == 1 else charge, size)
            total += gammas[b]
        else:
            mix(relaxed.now, b, first, first, 1.0)
    return total


@kernel
def least_size(candidates, rho_0):
    """Return the least size that all features can come down to."""
    least = rho_0
    for b in range(candidates.start.size - 1):
        smallest = math.inf
        for k in range(candidates.start[b], candidates.start[b + 1]):
            smallest = min(smallest, candidates.size[k])
        least = max(least, smallest)
    return least


@kernel
def budgets_l1(relaxed, asked, mu, charge, active):
    """Write the budgets for p = 1; return (gamma_0, size)."""
    candidates, gammas, kinks = relaxed.candidates, relaxed.gammas, relaxed.kinks
    most, size = mu * asked.radius, least_size(candidates, asked.rho_0)
    needed = budget_needed(relaxed, mu, charge, active, size)
    if needed > most:
        low, high, count = size, math.inf, 0
        for k in range(candidates.start[gammas.size]):
            if candidates.size[k] > low:
                kinks[count] = candidates.size[k]
                count += 1
        while count > 0:  # the smallest kink that the budget can pay for
            a, b, c = kinks[0], kinks[count // 2], kinks[count - 1]
            size = max(min(a, b), min(max(a, b), c))
            needed = budget_needed(relaxed, mu, charge, active, size)
            if needed > most:
                low = size
            else:
                high = size
            kept = 0
            for k in range(count):
                if low < kinks[k] < high:
                    kinks[kept] = kinks[k]
                    kept += 1
            count = kept
        if size != high:
            size = high
            needed = budget_needed(relaxed, mu, charge, active, size)
    left = most - needed
    if asked.rho_0 == size:
        return max(left, 0.0), size
    for b in range(gammas.size):  # who stands at the size may be pressed until it moves on
        if candidates.size[relaxed.firsts[b]] < size:
            continue
        extra = 0.0 if active[b] == 1 else charge
        _, at = settle_l1(relaxed, b, mu, extra, size)
        if at >= 0 and left > 0.0:
            _, slope = next_vertex(candidates, b, mu, extra, at)
            more = min(left, slope - gammas[b])
            gammas[b] += more
            left -= more
    return 0.0, size


@kernel
def relaxed_point(candidates, mixture, asked):
    """Return (cost, score less the intercept) of the mixture: a point of the relaxed node."""
    cost, score, largest, features = 0.0, 0.0, asked.rho_0, mixture.share.size
    for b in range(features):
        i, j, share = mixture.first[b], mixture.second[b], mixture.share[b]
        rest = 1.0 - share
        cost += share * candidates.cost[i] + rest * candidates.cost[j]
        score += share * candidates.score[i] + rest * candidates.score[j]
        largest = max(largest, share * candidates.size[i] + rest * candidates.size[j])
    radius, q = asked.radius, asked.q
    if radius == 0.0 or q == math.inf or largest == 0.0:
        return cost, score - radius * largest
    total = power(asked.rho_0 / largest, q)
    for b in range(features):
        i, j, share = mixture.first[b], mixture.second[b], mixture.share[b]
        size = share * candidates.size[i] + (1.0 - share) * candidates.size[j]
        total += power(size / largest, q)
    return cost, score - radius * largest * power(total, 1.0 / q)
