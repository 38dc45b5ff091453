"""The lower bound of a node, from weak duality alone; any numbers may be put in.

A node allows each feature j some values u, with ``score_j(u) = w_j.u`` its part of the score,
``size_j(u) = ||rho_j u||_q`` its part of the norm, and ``cost_j(u)``. The worst-case score is

    m(x) = b + sum_j score_j - radius * || (size_j), rho_0 ||_q
         = b + sum_j score_j - max { sum_j beta_j size_j + beta_0 rho_0 : ||beta||_p <= radius }

so for every ``mu >= 0`` and every ``gamma = mu * beta`` with ``||gamma||_p <= mu * radius``, a
point of the node that reaches the score t costs at least

    mu (t - b) + gamma_0 rho_0 + sum_j min_u [ cost_j(u) - mu score_j(u) + gamma_j size_j(u) ]

Discrete values enter exactly. Where at most k features may change, all stay put but for the k that
save most by changing. It is never weaker than the line of `holdfast.certificate`, which fixes a
whole model: here only the budget of each feature is fixed, and the model within it answers to u.
"""

from __future__ import annotations

import math

from holdfast.machinery.compile import viewing_kernel as kernel
from holdfast.machinery.numbers import EPS
from holdfast.problem.ball import power


@kernel
def pull_budgets(gammas, gamma_0, most, p):
    """Shrink the budgets until ``||gamma||_p <= most``; return the intercept's."""
    largest = gamma_0
    for b in range(gammas.size):
        largest = max(largest, gammas[b])
    if largest == 0.0:
        return gamma_0
    if p == 1.0:
        total = gamma_0
        for b in range(gammas.size):
            total += gammas[b]
    elif p == math.inf:
        total = largest
    else:
        total = power(gamma_0 / largest, p)
        for b in range(gammas.size):
            total += power(gammas[b] / largest, p)
        total = largest * power(total, 1.0 / p)
    allowed = most * (1.0 - 2.0 * (gammas.size + 4.0) * EPS)
    if total > allowed:
        factor = allowed / total
        for b in range(gammas.size):
            gammas[b] *= factor
        gamma_0 *= factor
    return gamma_0


@kernel
def separable_minimum(candidates, mu, gammas, active, changes, saved):
    """Sum min [cost - mu score + gamma size] over features; return it, its rounding, and a charge.

    At most `changes` features that are not `active` may change: those that save most by it. A
    charge of `charge` for each change has the same effect. `saved` is scratch: what changing saves.
    """
    start, score, size, cost = candidates.start, candidates.score, candidates.size, candidates.cost
    total, terms, able, charge = 0.0, 0.0, 0, 0.0
    limited = changes < active.size
    for b in range(gammas.size):
        gamma, least, stay, where, home = gammas[b], math.inf, math.inf, start[b], -1
        for k in range(start[b], start[b + 1]):
            value = cost[k] - mu * score[k] + gamma * size[k]
            if value < least:
                least, where = value, k
            if limited and candidates.changed[k] == 0:
                stay, home = value, k
        terms += abs(cost[where]) + mu * abs(score[where]) + gamma * size[where]
        if active[b] == 0 and home >= 0 and where != home:
            total += stay
            terms += mu * abs(score[home]) + gamma * size[home]
            saved[able] = stay - least
            able += 1
        else:
            total += least
    if able > changes:  # the k-th largest saving, then all above it and as many at it as fit
        charge = kth_largest(saved, able, changes)
        taken = 0
        for k in range(able):
            if saved[k] > charge:
                total -= saved[k]
                taken += 1
        total -= charge * (changes - taken) if changes > taken else 0.0
    else:
        for k in range(able):
            total -= saved[k]
    return total, (gammas.size + 8.0) * EPS * terms, charge


@kernel
def kth_largest(values, count, k):
    """Return the k-th largest of the first `count` values (inf for k = 0): plain selection."""
    charge = math.inf
    taken = 0
    while taken < k:
        below, ties = -math.inf, 0
        for i in range(count):
            if values[i] < charge:
                if values[i] > below:
                    below, ties = values[i], 1
                elif values[i] == below:
                    ties += 1
        charge = below
        taken += ties
    return charge


@kernel
def node_bound(relaxed, asked, mu, gamma_0, active, changes):
    """Return ``min over the node of cost - mu * (m(x) - b)``, rounded downwards, and the charge.

    The budgets are `relaxed.gammas`, pulled into the ball.
    """
    gammas = relaxed.gammas
    gamma_0 = pull_budgets(gammas, gamma_0, mu * asked.radius, asked.p)
    total, rounding, charge = separable_minimum(
        relaxed.candidates, mu, gammas, active, changes, relaxed.saved
    )
    paid = gamma_0 * asked.rho_0
    return total + paid - rounding - 4.0 * EPS * paid, charge
