"""The exact answer to a problem with discrete parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.kinds import kind_of, new_work
from holdfast.discrete.answer import best_found, costs_of, make_result
from holdfast.discrete.buffers import new_buffers
from holdfast.discrete.layout import make_layout
from holdfast.discrete.leaves import leaves_for
from holdfast.discrete.problem import DiscreteProblem, Group
from holdfast.discrete.rows import Batch, FoundRows, Limits, SearchWork, new_found_rows, search_rows
from holdfast.discrete.stack import new_stack
from holdfast.machinery.meanwhile import meanwhile
from holdfast.machinery.numbers import Floats, check_count, check_kind, check_positive, read_floats
from holdfast.machinery.threads import over_rows, thread_count
from holdfast.problem.costs import scaled
from holdfast.problem.goal import Goal
from holdfast.problem.outcome import EXHAUSTED, FOUND, LIMIT, NO_ROOM
from holdfast.problem.problem import RecourseProblem
from holdfast.result.found import Found
from holdfast.result.result import RecourseResult
from holdfast.result.status import GAP_TOLERANCE

_USUAL = Limits()
_LEAST_ROWS = 4  # a row takes so long that even a few are worth a thread
_DEPTH = 256  # nodes that may wait for their turn; where that is too few, it grows
_ROUNDING = 1e-9  # of a radius
_CLIMBS = 8  # from best point to best point
_SIZE_NODES = 2_000  # for one of the many sizes of a curve
_NOBODY = np.empty(0, dtype=np.int64)
_REACH_NODES = 5_000  # for what is said of an infeasible row, beside that it is infeasible


def solve_discrete(
    problem: DiscreteProblem,
    *,
    cost_weight: float | None = None,
    guarantee: float | None = None,
    tolerance: float = GAP_TOLERANCE,
    max_nodes: int = _USUAL.nodes,
    reachable: bool = True,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Find the optimal robust recourse of every row, categories and whole numbers included.

    Parameters
    ----------
    problem : DiscreteProblem
    cost_weight, guarantee : float
        Exactly one of them, as in `holdfast.solve`. A cost weight needs a convex loss.
    tolerance : float
        A row is optimal when its gap is at most ``tolerance * (1 + price)``; for a guarantee,
        ``tolerance * (cost + the least cost of a unit of score)``.
    max_nodes : int
        Where a row's search is stopped; its status is then GAP_OPEN, with a recourse or without.
    reachable : bool
        Whether to work out what people who cannot be helped could have instead. That takes many
        more searches, which also check once more that they cannot be.
    n_jobs : int, optional
        As in scikit-learn: -1, the default, uses all processors. The answer does not depend on it.

    Returns
    -------
    RecourseResult

    Examples
    --------
    Income in whole thousands, and a job that can be one of two:

    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, Group, solve_discrete
    >>> base = RecourseProblem.build(
    ...     [[20.0, 1.0, 0.0]], [0.1, -1.0, 0.5], -3.0, robust_to=NormBall(p=1, radius=0.01)
    ... )
    >>> job = Group(np.array([1, 2]), np.eye(2))
    >>> problem = DiscreteProblem(
    ...     base,
    ...     step=np.array([[1.0, 0.0, 0.0]]),
    ...     anchor=np.zeros((1, 3)),
    ...     groups=[job],
    ...     current=np.array([[0]]),
    ...     level_costs=[np.array([[0.0, 4.0]])],
    ... )
    >>> answer = solve_discrete(problem, guarantee=0.5)
    >>> answer.recourse, answer.levels, answer.cost
    (array([[28.,  0.,  1.]]), array([[1]]), array([12.]))
    >>> str(answer.status[0]), bool(answer.gap[0] <= 1e-9)
    ('optimal', True)
    """
    check_positive("tolerance", tolerance, or_zero=True)
    check_count("max_nodes", max_nodes)
    check_problem(problem)
    goal = Goal.of(problem.base.loss, cost_weight=cost_weight, guarantee=guarantee)
    limits = Limits(float(tolerance), max_nodes)
    return answer_discrete(problem, goal, limits, reachable=reachable, n_jobs=n_jobs)


def answer_discrete(
    problem: DiscreteProblem,
    goal: Goal,
    limits: Limits = _USUAL,
    *,
    reachable: bool = True,
    n_jobs: int | None = -1,
) -> RecourseResult:
    """Answer a problem that has been checked; as `solve_discrete` for a goal that has been made."""
    workers, tolerance = thread_count(n_jobs), limits.tolerance
    check_goal(problem, goal)
    found = best_found(
        problem, goal, lambda part: _find(part, goal, limits, workers, reachable), tolerance
    )
    return make_result(problem, goal, found, tolerance)


def _find(
    problem: DiscreteProblem, goal: Goal, limits: Limits, workers: int, reachable: bool
) -> Found:
    """Search every row; where that is asked for, say what those without an answer can reach."""
    base = problem.base
    if not reachable:
        return found_of(search_once(problem, goal, limits, workers))
    out, lost, reach, batch = search_everybody(problem, goal, limits, workers)
    validity, radius = np.full(base.n_rows, np.nan), np.full(base.n_rows, np.nan)
    if reach is not None:
        # what is proven, should the search have been stopped: nothing above it can be had
        most = np.minimum(-reach.lower_bound, np.nextafter(goal.amount, -np.inf))
        validity[lost] = base.loss.probability(most)
        if base.robust_to.radius > 0.0 and base.robust_to.has_size:
            radius[lost] = reachable_radii(
                problem, batch, goal.amount, lost, few_nodes(limits), workers
            )
    return found_of(out)._replace(reachable_validity=validity, reachable_radius=radius)


class Searched(NamedTuple):
    """What a search of all rows found, and what those without an answer can reach."""

    out: FoundRows
    lost: NDArray[np.int64]  # the rows for which a guarantee is out of reach
    reach: FoundRows | None  # of these: minus the largest worst-case score; None: there are none
    batch: Batch  # what was searched last


def search_everybody(
    problem: DiscreteProblem, goal: Goal, limits: Limits, threads: int
) -> Searched:
    """Search every row; and those without an answer again, for how much they can reach."""
    batch, exponent = make_batch(problem, goal)

    def search(batch: Batch, which: NDArray[np.int64], limits: Limits) -> FoundRows:
        return run_search(problem, batch, which, limits, threads)

    return search_with_reach(search, batch, problem.base.n_rows, goal, exponent, limits)


def search_once(problem: DiscreteProblem, goal: Goal, limits: Limits, threads: int) -> FoundRows:
    """Search every row."""
    batch, exponent = make_batch(problem, goal)
    rows = np.arange(problem.base.n_rows)
    return in_own_costs(run_search(problem, batch, rows, limits, threads), goal, exponent)


def search_with_reach(
    search: Callable[[Batch, NDArray[np.int64], Limits], FoundRows],
    batch: Batch,
    n: int,
    goal: Goal,
    exponent: NDArray[np.int64],
    limits: Limits,
) -> Searched:
    """Search n rows; where a guarantee is out of reach, search again for how much is within."""
    out = in_own_costs(search(batch, np.arange(n), limits), goal, exponent)
    if not goal.is_guarantee:
        return Searched(out, _NOBODY, None, batch)
    lost = np.flatnonzero((out.outcome == EXHAUSTED) & (out.lower_bound == np.inf))
    if not lost.size:
        return Searched(out, lost, None, batch)
    highest = Goal.highest(goal.loss)
    batch = batch.replaced(goal=highest.numbers(), amounts=highest.amounts(exponent))
    reach = search(batch, lost, few_nodes(limits))
    # should a point reach what was proven to be out of reach, then nothing is proven
    out.lower_bound[lost[-reach.value >= goal.amount]] = 0.0
    return Searched(out, lost, reach, batch)


def in_own_costs(out: FoundRows, goal: Goal, exponent: NDArray[np.int64]) -> FoundRows:
    """Put back the power of 2 that was taken out of costs; prices had it in their weight."""
    if not goal.is_guarantee:
        return out
    value, lower_bound = scaled(out.value, exponent), scaled(out.lower_bound, exponent)
    return out._replace(value=value, lower_bound=lower_bound)


def few_nodes(limits: Limits) -> Limits:
    """Return the limits of what is said of a row beside that it is infeasible."""
    return Limits(nodes=min(limits.nodes, _REACH_NODES))


def found_of(out: FoundRows) -> Found:
    """Return what a search found; one that was stopped has what it has."""
    missing = np.isnan(out.recourse[:, 0])
    stopped = np.where(missing, EXHAUSTED, FOUND)
    outcome = np.where(out.outcome == LIMIT, stopped, out.outcome).astype(np.int8)
    return Found(out.recourse, outcome, out.lower_bound, levels=out.levels, nodes=out.nodes)


def largest_reachable_score(problem: DiscreteProblem, *, n_jobs: int | None = -1) -> Floats:
    """Return the largest worst-case score that each row can reach; inf where it has no end.

    NaN for rows that cannot be used, and for those whose search was given up: what it has found by
    then need not be the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast import NormBall
    >>> from holdfast.problem import RecourseProblem
    >>> from holdfast.discrete import DiscreteProblem, largest_reachable_score
    >>> base = RecourseProblem.build(
    ...     [[0.0]], [1.0], -3.0, robust_to=NormBall(p=2, radius=0.0), bounds=([0.0], [2.6])
    ... )
    >>> whole = DiscreteProblem(
    ...     base, np.ones((1, 1)), np.zeros((1, 1)), [], np.empty((1, 0), dtype=int), []
    ... )
    >>> largest_reachable_score(whole)
    array([-1.])
    """
    check_problem(problem)
    which, goal = np.arange(problem.base.n_rows), Goal.highest(problem.base.loss)
    limits, threads = Limits(nodes=_REACH_NODES), thread_count(n_jobs)
    scores = []
    for part in problem.covers():
        batch, _ = make_batch(part, goal)
        out = run_search(part, batch, which, limits, threads)
        scores.append(np.where(out.outcome == LIMIT, np.nan, -out.value))
    return np.asarray(np.max(scores, axis=0))


def make_batch(problem: DiscreteProblem, goal: Goal) -> tuple[Batch, NDArray[np.int64]]:
    """Return what the kernels read, in even costs, and the powers of 2 taken out of them."""
    even, exponent = problem.in_even_costs()
    base = even.base
    robust, amounts = base.robust_to.numbers(base.n_features), goal.amounts(exponent)
    radii = np.array([robust.radius])
    batch = Batch(
        base.rows(), make_layout(even), robust, radii, goal.numbers(), amounts, kind_of(robust)
    )
    return batch, exponent


def run_search(
    problem: DiscreteProblem,
    batch: Batch,
    which: NDArray[np.int64],
    limits: Limits,
    threads: int,
) -> FoundRows:
    """Search some rows; values and bounds are in even costs."""
    d, depth = problem.base.n_features, _DEPTH

    def search(batch: Batch, which: NDArray[np.int64]) -> FoundRows:
        out, stop = new_found_rows(which.size, d, len(problem.groups)), np.zeros(1, dtype=np.int8)
        arguments = (batch, limits._replace(stop=stop), which, out)

        def private(address: int) -> SearchWork:
            work, buffers = new_work(problem.base), new_buffers(batch.layout, d)
            return SearchWork(address, work, buffers, new_stack(batch.layout, depth))

        def compile_search() -> None:  # called on no rows, it calls nothing itself
            search_rows(private(0), *arguments, 0, 0)

        def run(kernel: Any, address: int) -> None:
            over_rows(
                kernel,
                which.size,
                threads,
                *arguments,
                private=lambda: private(address),
                least_rows=_LEAST_ROWS,
                stop=stop,  # a row may take minutes
            )

        leaves = leaves_for(batch.robust)
        address = leaves.address(compile_search)
        # compiled, the search would call what is not there
        if not address and hasattr(search_rows, "py_func"):
            try:
                run(meanwhile.in_python(search_rows), 0)
                return out
            except ArithmeticError:  # compiled, a division by zero is infinite
                address, stop[0] = leaves.wait(compile_search), 0
        run(search_rows, address)
        return out

    out = search(batch, which)
    while (cramped := np.flatnonzero(out.outcome == NO_ROOM)).size:
        depth *= 16
        radii = batch.radii[cramped] if batch.radii.size > 1 else batch.radii
        again = search(batch.replaced(radii=radii), which[cramped])
        for name in FoundRows._fields:
            getattr(out, name)[cramped] = getattr(again, name)
    return out


def reachable_radii(
    problem: DiscreteProblem,
    batch: Batch,
    target: float,
    which: NDArray[np.int64],
    limits: Limits,
    threads: int,
) -> Floats:
    """Return the largest radius at which the target is within reach of rows; NaN: not even at 0.

    The point that is best at one radius would still reach the target at the radius
    ``(w.x + b - target) / ||(rho x, rho_0)||_q``: from a radius that is small enough, these rise to
    the largest one in a few steps.
    """
    base, n = problem.base, which.size
    low, high, best = np.zeros(n), np.full(n, base.robust_to.radius), np.full(n, np.nan)
    radius = 1e-9 * high  # the kernels for 1 <= p < inf need one
    left = np.arange(n)
    for _ in range(60):
        out = run_search(problem, batch.replaced(radii=radius[left]), which[left], limits, threads)
        within = -out.value >= target
        inside, outside = left[within], left[~within]
        low[inside] = best[inside] = radius[inside]
        high[outside] = radius[outside]
        # where the best point has an end, it says how far to go; elsewhere halve the bracket
        ended = within & np.isfinite(out.value)
        told, points = left[ended], out.recourse[ended]
        further = largest_kept_radius(base, points, which[told], target)
        best[told] = np.clip(further, low[told], high[told])
        following = 0.5 * (low + high)
        following[told] = best[told]
        done = high - low <= 1e-9 * high
        done[told] = (best[told] <= low[told] * (1.0 + 1e-12)) | (best[told] >= high[told])
        done[outside] |= low[outside] == 0.0
        radius, left = following, left[~done[left]]
        if left.size == 0:
            break
    return best


def answer_sizes(
    problem: DiscreteProblem, goal: Goal, radii: Floats, *, n_jobs: int | None = -1
) -> tuple[Floats, Floats]:
    """Return what a guarantee costs one row in sets of many sizes, and how far each answer holds.

    Parameters
    ----------
    problem : DiscreteProblem
        Of one row; the radius of its set of models is not read.
    goal : Goal
        A guarantee.
    radii : array

    Returns
    -------
    cost : array
        Least cost at each radius; inf where it is out of reach, NaN where the search was given up.
    kept : array
        The largest radius at which that answer still reaches the goal; NaN without one.
    """
    parts = problem.covers()
    told = [_answer_sizes(part, goal, radii, thread_count(n_jobs)) for part in parts]
    costs, kept = (np.array(each) for each in zip(*told, strict=True))
    best = costs.argmin(axis=0)  # a NaN is the least: nothing is known of the others then
    rows = np.arange(radii.size)
    return costs[best, rows], kept[best, rows]


def _answer_sizes(
    problem: DiscreteProblem, goal: Goal, radii: Floats, threads: int
) -> tuple[Floats, Floats]:
    base, limits = problem.base, Limits(nodes=_SIZE_NODES)
    cost, kept = np.full(radii.size, np.nan), np.full(radii.size, np.nan)
    for asked in (radii == 0.0, radii > 0.0):  # some kernels are for one of the two only
        if not asked.any():
            continue
        stated = _at_radius(problem, float(radii[asked].max()))
        batch, _ = make_batch(stated, goal)
        which = np.zeros(int(asked.sum()), dtype=np.int64)
        own = batch.replaced(radii=radii[asked])
        out = run_search(stated, own, which, limits, threads)
        there, hopeless = out.outcome == FOUND, out.outcome == EXHAUSTED
        cost[np.flatnonzero(asked)[hopeless & (out.lower_bound == np.inf)]] = np.inf
        found, points = np.flatnonzero(asked)[there], out.recourse[there]
        cost[found] = costs_of(problem, points, out.levels[there])
        kept[found] = largest_kept_radius(base, points, which[there], goal.amount)
    short = kept < radii - _ROUNDING * (radii + radii.max(initial=0.0))
    if short.any():
        raise AssertionError(
            f"an answer does not hold at radius {radii[short][0]}. This is a bug; please report it"
        )
    return cost, np.maximum(kept, radii)


def largest_size(
    problem: DiscreteProblem, goal: Goal, most: float, *, n_jobs: int | None = -1
) -> float:
    """Return the largest radius at which one row can reach a guarantee, which it can at 0.

    At `most` it cannot. As in `reachable_radii`, the best point at one radius says how far to go;
    but that there is nothing beyond is left to a search for the guarantee, which is shorter.
    """
    parts = [_at_radius(part, most) for part in problem.covers()]
    which, threads = np.zeros(1, dtype=np.int64), thread_count(n_jobs)
    limits, target = few_nodes(_USUAL), goal.amount
    batches = [make_batch(part, Goal.highest(goal.loss))[0] for part in parts]
    pairs = list(zip(parts, batches, strict=True))
    radius = np.array([1e-9 * most])
    for _ in range(_CLIMBS):
        kept = 0.0
        for part, batch in pairs:
            out = run_search(part, batch.replaced(radii=radius), which, limits, threads)
            if np.isfinite(out.value[0]):  # elsewhere there is no best point
                told = largest_kept_radius(part.base, out.recourse, which, target)
                kept = max(kept, float(told[0]))
        above = np.array([max(kept, radius[0]) * (1.0 + _ROUNDING)])
        cost, held = answer_sizes(problem, goal, above, n_jobs=n_jobs)
        if cost[0] == np.inf and kept > radius[0]:
            return kept
        if not np.isfinite(cost[0]):
            break
        radius = held
    ends = [reachable_radii(part, batch, target, which, limits, threads) for part, batch in pairs]
    return float(np.fmax.reduce(ends)[0])


def _at_radius(problem: DiscreteProblem, radius: float) -> DiscreteProblem:
    base = problem.base
    return replace(problem, base=replace(base, robust_to=base.robust_to.with_radius(radius)))


def largest_kept_radius(
    base: RecourseProblem, points: Floats, which: NDArray[np.int64], target: float
) -> Floats:
    """Return the largest radius at which each point reaches the target; inf where there is none."""

    def own(values: Floats) -> Floats:
        return values[which] if values.shape[0] > 1 else values

    none = base.robust_to.with_radius(0.0)
    score = none.worst_score(points, own(base.coef), own(base.intercept))
    one = base.robust_to.with_radius(1.0)
    size = -one.worst_score(points, np.zeros((1, base.n_features)), np.zeros(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0.0, (score - target) / size, np.inf)


def check_goal(problem: DiscreteProblem, goal: Goal) -> None:
    """Refuse a price of a loss that is not convex: the bound of a node would not hold."""
    loss = problem.base.loss
    if not (goal.is_guarantee or loss.convex):
        raise ValueError(
            f"loss = {loss.name!r} is not convex: with discrete parts it only works with a "
            "guarantee; a cost_weight needs a convex loss"
        )


def check_problem(problem: DiscreteProblem) -> None:
    """Refuse shapes that do not fit together."""
    check_kind("problem", problem, DiscreteProblem, "make a DiscreteProblem")
    check_kind("base", problem.base, RecourseProblem, "make it with RecourseProblem.build")
    n, d = problem.base.n_rows, problem.base.n_features
    for name in ("groups", "level_costs"):
        check_kind(name, getattr(problem, name), list, "give one entry for each group")
    for group in problem.groups:
        check_kind("groups", group, Group, "give a list of Group")
        for name in ("columns", "levels"):
            values = read_floats(f"{name} of groups", getattr(group, name))
            if values.ndim not in ((1,) if name == "columns" else (2, 3)) or values.size == 0:
                raise ValueError(f"{name} of groups has shape {values.shape}")
        own = read_floats("columns of groups", group.columns)
        if not ((own == np.floor(own)) & (own >= 0) & (own < d)).all():
            raise ValueError(f"columns of groups must be whole numbers from 0 to {d - 1}")
    for name in ("step", "anchor", "fixed_costs"):
        if name == "fixed_costs" and problem.fixed_costs is None:
            continue
        shape = read_floats(name, getattr(problem, name)).shape
        if shape not in ((1, d), (n, d)):
            raise ValueError(f"{name} has shape {shape}, expected (1, {d}) or ({n}, {d})")
    columns = problem.grouped_columns
    if np.unique(columns).size < columns.size or np.any((columns < 0) | (columns >= d)):
        raise ValueError(f"groups have the columns {columns.tolist()}: each of 0 to {d - 1} once")
    if not np.array_equal(current := read_floats("current", problem.current), np.round(current)):
        raise ValueError(
            "current holds numbers that are not whole; it must hold positions of levels"
        )
    if np.shape(problem.current) != (n, len(problem.groups)):
        expected = (n, len(problem.groups))
        raise ValueError(f"current has shape {np.shape(problem.current)}, expected {expected}")
    if len(problem.level_costs) != len(problem.groups):
        raise ValueError(f"{len(problem.level_costs)} level_costs, {len(problem.groups)} groups")
    for g, (group, costs) in enumerate(zip(problem.groups, problem.level_costs, strict=True)):
        m, c = group.count, len(group.columns)
        if np.shape(group.levels) not in ((m, c), (1, m, c), (n, m, c)):
            raise ValueError(
                f"levels of group {g} have shape {np.shape(group.levels)}, expected "
                f"({m}, {c}) or ({n}, {m}, {c})"
            )
        if read_floats(f"level_costs[{g}]", costs).shape not in ((1, m), (n, m)):
            raise ValueError(f"level_costs[{g}] has shape {np.shape(costs)}, expected (1, {m})")
    if problem.max_changes is not None:
        check_count("max_changes", problem.max_changes, least=0)
    for g, counts in enumerate(problem.level_changes or ()):
        shape = np.shape(problem.level_costs[g])
        if np.shape(counts) not in ((1, shape[1]), (n, shape[1])):
            raise ValueError(f"level_changes[{g}] has shape {np.shape(counts)}, expected {shape}")
