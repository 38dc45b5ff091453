"""Best and worst likelihood of a point under a Gaussian near the one that stands around a sample.

Around a sample at distance c from the point stands N(sample, sigma^2 I) in p dimensions. Nature
may take any N(mu, Sigma) with ``Sigma >= sigma^2 I`` within the Wasserstein distance epsilon:

    |mu - sample|^2 + sum over i of (s_i - sigma)^2 <= epsilon^2,    s_i^2 eigenvalues of Sigma.

Minus the log-likelihood of the point is, up to ``p/2 log(2 pi)``, half of
``log det Sigma + z' Sigma^-1 z`` with z from mu to the point. In both problems below, z points
along the line through sample and point, and is an eigenvector. Lengths are in units of sigma:
``u = c / sigma``, ``e = epsilon / sigma``; m is how far the mean moves, d = 1 + s the deviation
along z, 1 + f that in the other p - 1 directions, and ``q = |z| / d``.

**Optimistic** (minimise): the mean moves towards the point, deviations across stay 1,

    minimise log d + (u - m)^2 / (2 d^2)    over m, s >= 0, m^2 + s^2 <= e^2.

**Pessimistic** (maximise): the mean moves away, z keeps the smallest deviation, and what is left
is spread evenly over the other directions,

    maximise log d + (u + m)^2 / (2 d^2) + (p - 1) log(1 + f),    m^2 + s^2 + (p - 1) f^2 = e^2.

In both, the stationary points with s > 0 lie on a curve that q describes in closed form, so that
what remains is one equation in one unknown. By Danskin's theorem the derivative of either
log-likelihood with respect to c is ``-q / d`` (in units of sigma) at the solution.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba.extending import overload

from holdfast.machinery.compile import kernel

# Where the point sits on the sample the pessimistic mean may leave in any direction: all the same.
_LEAST_DISTANCE = 1e-12
_ROOT_STEPS = 100
_ROOT_TOLERANCE = 1e-14


class Ambiguity(NamedTuple):
    """What the kernels read: kernel width, the two radii, and the number p of features.

    Its type is what chooses the worst likelihood.
    """

    sigma: float
    epsilon_op: float
    epsilon_pe: float
    n_features: int


@kernel
def optimistic(c, ambiguity):
    """Return the largest log-likelihood at distance c, and its derivative in c."""
    sigma = ambiguity.sigma
    u, e = c / sigma, ambiguity.epsilon_op / sigma
    base = -ambiguity.n_features * math.log(sigma)
    if u <= e:  # the mean reaches the point
        return base, 0.0
    if u <= 1.0 + e or e == 0.0:  # a wider Gaussian would not help
        q = u - e
        return base - 0.5 * q * q, -q / sigma
    q = optimistic_root(u, e)
    d = ((q * q - 1.0) * u + q) / (q * q * q)
    return base - math.log(d) - 0.5 * q * q, -q / (d * sigma)


@kernel
def optimistic_root(u, e):
    """Return q in [1, u] where the curve leaves the disc of radius e, for u > 1 + e.

    On the curve ``m = (u - q) / q^2`` and ``s = (q^2 - 1)(u - q) / q^3``, and

        reach = sqrt(m^2 + s^2) = (u - q) sqrt(q^4 - q^2 + 1) / q^3

    falls from u - 1 to 0 on [1, u]: one root. Newton's method, kept inside the bracket.
    """
    low, high = 1.0, u
    q = low
    for _ in range(_ROOT_STEPS):
        square = q * q
        bent = square * square - square + 1.0
        reach = (u - q) * math.sqrt(bent) / (square * q)
        if reach > e:
            low = q
        else:
            high = q
        fall = reach * (1.0 / (u - q) + (square * square - 2.0 * square + 3.0) / (bent * q))
        following = q + (reach - e) / fall
        if not low < following < high:
            following = 0.5 * (low + high)
        done = abs(following - q) <= _ROOT_TOLERANCE * q
        q = following
        if done or low >= high:
            break
    return q


@kernel
def pessimistic(c, ambiguity):
    """Return the smallest log-likelihood at distance c, and its derivative in c."""
    sigma = ambiguity.sigma
    u, e = c / sigma, ambiguity.epsilon_pe / sigma
    others = ambiguity.n_features - 1
    base = -ambiguity.n_features * math.log(sigma)
    if e == 0.0:
        q = u + e
        return base - 0.5 * q * q, -q / sigma
    u = max(u, _LEAST_DISTANCE)
    worst, slope = narrow_to(u, e, others)
    if u < 1.0:
        # two hills: which one is higher is not known before
        other, other_slope = widened(u, e, others)
        if other > worst:
            worst, slope = other, other_slope
    return base - worst, -slope / sigma


def worst_likelihood(c: float, ambiguity: Any) -> tuple[float, float]:
    """Return the smallest log-likelihood in an ambiguity of this type, and its derivative in c."""
    raise NotImplementedError("runs in compiled code only")


@overload(worst_likelihood)
def _worst_likelihood(c, ambiguity):
    if ambiguity.instance_class is Ambiguity:
        return lambda c, ambiguity: pessimistic(c, ambiguity)
    return None


@kernel
def narrow_to(u, e, others):
    """Return the largest loss with s = 0, and its derivative in u.

    With ``m = e cos(a)``, ``f = e sin(a) / sqrt(p - 1)`` it rises, then falls, where

        (u + m) f (1 + f) = m

    which has one root in (0, pi/2): the left side over m grows with a. Newton in a bracket.
    """
    if others == 0:
        return 0.5 * (u + e) ** 2, u + e
    width = e / math.sqrt(others)
    low, high = 0.0, 0.5 * math.pi
    wanted = e / (u + e)
    f = 2.0 * wanted / (1.0 + math.sqrt(1.0 + 4.0 * wanted))
    a = math.asin(min(f / width, 1.0)) if f < width else 0.25 * math.pi
    for _ in range(_ROOT_STEPS):
        cosine, sine = math.cos(a), math.sin(a)
        m, f = e * cosine, width * sine
        excess = (u + m) * f * (1.0 + f) - m
        if excess < 0.0:
            low = a
        else:
            high = a
        rise = (u + m) * (1.0 + 2.0 * f) * width * cosine + e * sine * (1.0 - f * (1.0 + f))
        following = a - excess / rise if rise > 0.0 else high
        if not low < following < high:
            following = 0.5 * (low + high)
        done = abs(following - a) <= _ROOT_TOLERANCE * a
        a = following
        if done or low >= high:
            break
    m, f = e * math.cos(a), width * math.sin(a)
    return 0.5 * (u + m) ** 2 + others * math.log1p(f), u + m


@kernel
def curve(u, w):
    """Return (q, m, s, f) where all multipliers agree, for ``q = u + w < 1``.

    ``q / d = k m``, ``(1 - q^2) / d = k s`` and ``1 / (1 + f) = k f`` with one multiplier k.
    """
    q = u + w
    m = w / (q * q)
    s = (1.0 - q * q) * w / (q * q * q)
    t = (1.0 + s) * m / q  # 1 / k
    f = 2.0 * t / (1.0 + math.sqrt(1.0 + 4.0 * t))
    return q, m, s, f


@kernel
def reach_of_mean(u, w, others):
    """Return the distance from the nominal Gaussian of the point w of the curve."""
    _, m, s, f = curve(u, w)
    return math.sqrt(m * m + s * s + others * f * f)


@kernel
def widened(u, e, others):
    """Return the largest loss on the hill with s > 0, for u < 1, and its derivative in u.

    Along the curve the reach rises from 0 and then falls; the hill is where it rises, a saddle
    where it falls. It has no point there (-inf) if the reach never gets to e.
    """
    high = within_reach(u, e, others)
    if high == 0.0:
        return -math.inf, 0.0
    w = first_crossing(u, e, others, high)
    q, _, s, f = curve(u, w)
    d = 1.0 + s
    return math.log(d) + 0.5 * q * q + others * math.log1p(f), q / d


@kernel
def within_reach(u, e, others):
    """Return some w before which the reach crosses e exactly once; 0 if it never does.

    The reach falls beyond w = u (m, s and f all do), and so its top is not further.
    """
    low, high = 0.0, min(u, 1.0 - u)
    if reach_of_mean(u, high, others) >= e:
        return high
    for _ in range(_ROOT_STEPS):  # to the top, unless a point that is high enough comes first
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        reach_left, reach_right = reach_of_mean(u, left, others), reach_of_mean(u, right, others)
        if reach_left >= e:
            return left
        if reach_right >= e:
            return right
        if reach_left < reach_right:
            low = left
        else:
            high = right
        if high - low <= 1e-8 * high:  # the top is flat: nearer it is not higher
            break
    return 0.0


@kernel
def first_crossing(u, e, others, high):
    """Return the root of ``reach = e`` in (0, high]: false position (Illinois)."""
    low, below, above = 0.0, -e, reach_of_mean(u, high, others) - e
    w, side = high, 0
    for _ in range(_ROOT_STEPS):
        if high - low <= _ROOT_TOLERANCE * high:
            break
        w = low - below * (high - low) / (above - below)
        if not low < w < high:
            w = 0.5 * (low + high)
        excess = reach_of_mean(u, w, others) - e
        if abs(excess) <= 4.0 * _ROOT_TOLERANCE * e:
            break
        if excess < 0.0:
            low, below = w, excess
            if side < 0:
                above *= 0.5
            side = -1
        else:
            high, above = w, excess
            if side > 0:
                below *= 0.5
            side = 1
    return w
