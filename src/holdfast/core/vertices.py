"""The whole frontier of one row where it is piecewise linear (p = 1, p = inf, lists of models).

At a gain where nothing happens, the cheapest point is a vertex of the frontier. So collect every
gain at which something can happen, look at the vertex between any two of them, and drop repeats.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from holdfast.core.batch import load_row
from holdfast.core.hull import hull_vertices
from holdfast.core.kinds import L1, LP, EllipsoidWork, HullWork, Work, new_work
from holdfast.core.l1 import collect_kinks, edge_sums, slope_in_size, smallest_size
from holdfast.core.linf import plan_linf, segment_end
from holdfast.core.row import Row, Vertices
from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import BallNumbers, NormBall
from holdfast.problem.goal import ENDLESS
from holdfast.problem.model_set import worst_score_of
from holdfast.problem.problem import RecourseProblem


def frontier_vertices(problem: RecourseProblem) -> Vertices | None:
    """Return the vertices of a problem of one row; None where the frontier is curved."""
    if problem.robust_to.radius == 0.0:  # today's model alone, whatever the shape
        problem = replace(problem, robust_to=NormBall(1.0, 0.0))
    work = new_work(problem)
    if isinstance(work, EllipsoidWork) or (isinstance(work, Work) and work.kind == LP):
        return None
    rows, ball = problem.rows(), problem.robust_to.numbers(problem.n_features)
    load_row(rows, 0, ball, work)
    if isinstance(work, HullWork):
        return hull_vertices(work.row, work.coefs, work.intercepts, work.scratch)
    steps = _l1_steps(work.row, ball) if work.kind == L1 else _linf_steps(work, ball)
    sign = np.where(rows.coef[0] >= 0.0, 1.0, -1.0)
    points, multipliers, ray = [problem.X[0]], [], None
    for gain, y, endless in steps:
        if endless:
            ray = sign * y / (rows.cost[0] @ y)
            multipliers.append(1.0 / gain)
            break
        point = np.clip(sign * y, rows.lower[0], rows.upper[0])
        if np.array_equal(point, points[-1]):
            continue
        if multipliers and 1.0 / gain == multipliers[-1]:  # the same piece goes on
            points[-1] = point
            continue
        points.append(point)
        multipliers.append(1.0 / gain)
    stacked = np.array(points)
    scores = [worst_score_of(x, rows.coef[0], rows.intercept[0], ball) for x in stacked]
    costs = np.abs(stacked - problem.X[0]) @ rows.cost[0]
    return Vertices(stacked, np.array(scores), costs, np.array(multipliers), ray)


Step = tuple[float, Floats, bool]  # (gain, the vertex that this gain leads to, is it a ray)


def _linf_steps(work: Work, ball: BallNumbers) -> list[Step]:
    plan_linf(work.plan, work.row, ball, ENDLESS)
    y, steps = work.row.start.copy(), []
    for segment in work.plan.order:
        gain = work.plan.gain[segment]
        if gain <= 0.0:
            break
        i, second = divmod(int(segment), 2)
        end = segment_end(work.row, ball, i, second, y[i])
        if math.isinf(end):
            steps.append((gain, np.eye(y.size)[i] * math.copysign(1.0, end), True))
            break
        y = y.copy()
        y[i] = end
        steps.append((gain, y, False))
    return steps


def _l1_steps(row: Row, ball: BallNumbers) -> list[Step]:
    least = smallest_size(row, ball)
    buffer = np.empty(2 * row.coef.size + 1)
    kinks = np.unique(np.append(buffer[: collect_kinks(row, ball, least, buffer)], least))
    gains = _critical_gains(row, ball, kinks)
    steps: list[Step] = []
    for k, gain in enumerate(gains):
        following = gains[k + 1] if k + 1 < len(gains) else 0.0
        middle = 0.5 * (gain + following)
        free = np.flatnonzero(
            (ball.scale == 0.0) & (row.upper == math.inf) & (row.coef / row.cost > middle)
        )
        if free.size:
            return [*steps, (gain, np.eye(row.coef.size)[free[0]], True)]
        if slope_in_size(row, ball, kinks[-1], True, middle) < 0.0:
            y = _vertex(row, ball, kinks[-1], middle)
            growing = (row.coef > middle * row.cost) & (row.upper == math.inf)
            ray = np.divide(1.0, ball.scale, out=np.zeros_like(y), where=growing)
            return [*steps, (gain, y, False), (gain, ray, True)]
        size = next(m for m in kinks if slope_in_size(row, ball, m, True, middle) >= 0.0)
        steps.append((gain, _vertex(row, ball, size, middle), False))
    return steps


def _critical_gains(row: Row, ball: BallNumbers, kinks: Floats) -> list[float]:
    """Return every gain at which a feature starts to pay, or the size M starts to move."""
    ratios = np.unique(row.coef / row.cost)[::-1]
    ratios = ratios[ratios > 0.0]
    edges = [math.inf, *ratios, 0.0]
    gains = set(ratios.tolist())
    for low in kinks:
        for upper, lower in itertools.pairwise(edges):
            inside = 2.0 * lower + 1.0 if math.isinf(upper) else 0.5 * (lower + upper)
            _, a1, a2 = edge_sums(row, 0.0, ball, low, inside)
            if a2 != 0.0 and lower < a1 / a2 < upper:
                gains.add(a1 / a2)
    return sorted(gains, reverse=True)


def _vertex(row: Row, ball: BallNumbers, size: float, gain: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        edge = np.where(ball.scale > 0.0, size / ball.scale, math.inf)
        at_edge = (ball.scale > 0.0) & (ball.scale * np.abs(row.start) == size)
    edge = np.where(at_edge, np.abs(row.start), edge)
    pushed = row.coef > gain * row.cost
    return np.where(pushed, np.minimum(row.upper, edge), np.clip(row.start, -edge, edge))
