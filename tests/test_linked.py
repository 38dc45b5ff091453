"""Linear links between columns: against every discrete choice tried by force, and against HiGHS."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from discrete_problems import all_choices, random_discrete, take
from oracle import worst_score_by_cvxpy

from holdfast import Ellipsoid, ModelList, NormBall, Status
from holdfast.discrete import (
    DiscreteProblem,
    Group,
    Links,
    boxes,
    linked,
    solve_discrete,
    solve_linked,
)
from holdfast.discrete import cuts as cuts_module
from holdfast.discrete import row_search as row_search_module
from holdfast.discrete import run as run_module
from holdfast.discrete.boxes import Best, neighbours_of
from holdfast.discrete.cuts import solve_cuts
from holdfast.discrete.linked import row_links, take_row
from holdfast.discrete.row_search import Numbers, RowSearcher, numbers_of
from holdfast.problem import ModelSet, RecourseProblem
from holdfast.problem.goal import Goal

FOUND = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)
# where numbers without bounds can be touched or not, that there is no answer may stay unproven
LOST = (Status.INFEASIBLE, Status.GAP_OPEN)


def random_links(rng: np.random.Generator, problem: DiscreteProblem) -> Links:
    """Return one or two links; most rows keep them as they are."""
    d = problem.base.n_features
    matrix = np.round(rng.normal(size=(int(rng.integers(1, 3)), d)), 1)
    value = problem.base.X @ matrix.T
    room = rng.exponential(size=value.shape)
    lower = np.where(rng.random(value.shape) < 0.5, -np.inf, value - 0.3 * room)
    upper = value + room - (0.3 if rng.random() < 0.2 else 0.0)
    return Links(matrix, lower, np.maximum(upper, lower))


def by_force(problem: DiscreteProblem, links: Links, goal: dict[str, float]) -> float:
    """Return the least price of the only row."""
    batch, fixed_costs = all_choices(problem, 0)
    d, best = batch.n_features, math.inf
    for k in range(batch.n_rows):
        row = batch.row(k)
        x = cp.Variable(d)
        score = worst_score_by_cvxpy(row, x)
        cost = row.feature_costs[0] @ cp.abs(x - row.X[0])
        limits = [
            (x[j] >= row.lower[0, j]) if side < 0 else (x[j] <= row.upper[0, j])
            for j in range(d)
            for side in (-1, 1)
            if np.isfinite(row.lower[0, j] if side < 0 else row.upper[0, j])
        ]
        value = links.matrix @ x
        limits += [value[r] >= v for r, v in enumerate(links.lower[0]) if np.isfinite(v)]
        limits += [value <= links.upper[0]]
        if "guarantee" in goal:
            limits.append(score >= batch.loss.score(goal["guarantee"]))
            question = cp.Problem(cp.Minimize(cost), limits)
            weight = 1.0
        else:
            weight = goal["cost_weight"]
            question = cp.Problem(cp.Minimize(cp.logistic(-score) + weight * cost), limits)
        try:
            question.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return math.nan
        if question.status == "optimal":
            best = min(best, float(question.value) + weight * float(fixed_costs[k]))
    return best


def random_set(rng: np.random.Generator, kind: str, problem: DiscreteProblem) -> ModelSet:
    """Return an ellipsoid or a list around the model of a random problem."""
    base, d = problem.base, problem.base.n_features
    if kind == "ellipsoid":
        root = rng.normal(size=(d + 1, max(1, d - 1)))
        return Ellipsoid(root @ root.T, float(rng.choice([0.05, 0.2])))
    moved = base.coef[0] + 0.3 * rng.normal(size=(4, d))
    return ModelList([(coef, float(base.intercept[0] + 0.2 * rng.normal())) for coef in moved])


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf, "ellipsoid", "list"])
def test_agrees_with_every_choice_tried(p, mode):
    other = isinstance(p, str)
    rng = np.random.default_rng([79, len(p) if other else int(min(p, 9)), len(mode)])
    solved = 0
    for _ in range(16):
        norm = 2.0 if other else p
        problem = random_discrete(rng, n=1, p=norm, whole=1, continuous=2, groups=1, reach=1)
        if other:
            models = random_set(rng, p, problem)
            problem = replace(problem, base=replace(problem.base, robust_to=models))
        links = random_links(rng, problem)
        goal = {"guarantee": 0.35} if mode == "guarantee" else {"cost_weight": 0.2}
        ours, theirs = solve_linked(problem, links, **goal), by_force(problem, links, goal)
        if math.isnan(theirs):
            continue
        if math.isinf(theirs):
            assert ours.status[0] in LOST
            assert np.isnan(ours.recourse).all()
            continue
        solved += 1
        assert ours.status[0] in FOUND
        assert ours.price[0] == pytest.approx(theirs, rel=1e-6, abs=1e-6)
        assert ours.lower_bound[0] <= theirs + 1e-6
        if mode == "guarantee":
            assert ours.worst_case_score[0] >= problem.base.loss.score(0.35)
    assert solved >= 3


@pytest.mark.parametrize("goal", [{"guarantee": 0.6}, {"cost_weight": 0.1}])
def test_without_links_it_is_the_search(goal):
    rng = np.random.default_rng(83)
    for p in (1.0, 2.0, math.inf):
        for _ in range(4):
            problem = random_discrete(rng, n=2, p=p, whole=2, groups=2, continuous=2)
            d = problem.base.n_features
            none = Links(np.empty((0, d)), np.empty((1, 0)), np.empty((1, 0)))
            ours, theirs = solve_linked(problem, none, **goal), solve_discrete(problem, **goal)
            for i in range(2):
                if theirs.status[i] is Status.INFEASIBLE:
                    assert ours.status[i] in LOST
                    assert np.isnan(ours.recourse[i]).all()
                else:
                    assert ours.price[i] == pytest.approx(theirs.price[i], rel=1e-6, abs=1e-6)
                    assert ours.price[i] >= theirs.lower_bound[i] - 1e-9


def test_unusable_rows_and_wrong_shapes():
    rng = np.random.default_rng(89)
    problem = random_discrete(rng, n=2, p=2.0, whole=1, groups=0, continuous=1, max_changes=None)
    points = problem.base.X.copy()
    points[1, 0] = np.nan
    broken = replace(problem, base=replace(problem.base, X=points))
    links = Links(np.ones((1, 2)), np.full((1, 1), -np.inf), np.full((1, 1), np.inf))
    assert solve_linked(broken, links, cost_weight=0.1).status[1] is Status.INVALID_INPUT
    with pytest.raises(ValueError, match="matrix of links"):
        solve_linked(problem, replace(links, matrix=np.ones((1, 3))), cost_weight=0.1)
    with pytest.raises(ValueError, match="lower of links"):
        solve_linked(problem, replace(links, lower=np.ones((3, 1))), cost_weight=0.1)


# ------------------------------------------------------------------ every road to the answer


def pair_links(rng: np.random.Generator, problem: DiscreteProblem) -> Links:
    """Return up to three links between two numbers each, as action sets have them; some broken."""
    points, numbers = problem.base.X, problem.number_columns
    matrix, lower, upper = [], [], []
    for _ in range(int(rng.integers(1, 4))):
        row = np.zeros(points.shape[1])
        first, second = rng.choice(numbers, 2, replace=False)
        row[first], row[second] = 1.0, -rng.choice([1.0, 0.5, -1.0, 0.3, 2.0])
        now = points @ row
        matrix.append(row)
        if rng.random() < 0.5:  # they move together
            lower.append(now)
            upper.append(now)
        else:
            lower.append(np.full(len(now), -np.inf))
            upper.append(np.maximum(now, 0.0) if rng.random() < 0.7 else now - 0.2 * rng.random())
    return Links(np.array(matrix), np.array(lower).T, np.array(upper).T)


def by_highs(problem: DiscreteProblem, links: Links, goal: dict[str, float]) -> Best:
    """Return what HiGHS alone makes of the only row."""
    asked = Goal.of(problem.base.loss, **goal)
    nothing = Best(math.inf, -math.inf, None, np.empty(0, dtype=np.int64), 0)
    return solve_cuts(take_row(problem, 0), row_links(links, 0), asked, 1e-9, nothing)


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, math.inf])
def test_every_road_leads_where_highs_alone_leads(p, mode, monkeypatch):
    rng = np.random.default_rng([97, int(min(p, 9) * 10), len(mode)])
    asked: list[Best] = []
    monkeypatch.setattr(
        linked, "solve_cuts", lambda *given: asked.append(solve_cuts(*given)) or asked[-1]
    )
    proven = broken = 0
    for k in range(40):
        goal = {"cost_weight": float(rng.choice([0.05, 0.2]))}
        if mode == "guarantee":
            goal = {"guarantee": float(rng.choice([0.35, 0.5, 0.6]))}
        shape = {"whole": k % 3, "continuous": 2 + k % 2, "groups": k % 2, "reach": 1 + k % 4}
        problem = random_discrete(rng, n=1, p=p, fees=k % 3 == 0, **shape)
        links = pair_links(rng, problem)
        ours, theirs = solve_linked(problem, links, **goal), by_highs(problem, links, goal)
        status, price, bound = ours.status[0], ours.price[0], ours.lower_bound[0]
        near = 1e-6 * (1.0 + abs(theirs.value))
        broken += not all(link.keeps(problem.base.X)[0] for link in row_links(links, 0))
        if status is Status.INFEASIBLE:
            assert theirs.point is None
        elif status.is_proven:
            proven += 1
            assert price <= theirs.value + near
            assert bound <= theirs.value + near
            assert theirs.bound <= price + near
        elif theirs.bound <= theirs.value < math.inf:  # else HiGHS contradicts itself
            assert theirs.value - theirs.bound > 1e-9 * (1.0 + abs(theirs.value))
        if k % 5 == 0:
            forced = by_force(problem, links, goal)
            if status.is_proven and not math.isnan(forced):
                assert price == pytest.approx(forced, rel=2e-6, abs=2e-6)
            if status is Status.INFEASIBLE and not math.isnan(forced):
                assert math.isinf(forced)
    assert proven >= 12
    assert broken >= 3
    assert len(asked) < 20  # most of it was not for HiGHS


def person(p: float, step: list[float], **more: object) -> DiscreteProblem:
    """Return somebody whose first two numbers are worth moving, and a category that is dear."""
    base = RecourseProblem.build(
        [[1.0, 2.0, 0.5, 1.0, 0.0]],
        [1.0, 0.4, 0.1, -0.5, 1.5],
        -5.03,
        robust_to=NormBall(p, 0.1),
        feature_costs=[1.0, 0.8, 1.0, 1.0, 1.0],
        bounds=([-5.0, -5.0, 0.0, 0.0, 0.0], [12.0, 12.0, 1.0, 1.0, 1.0]),
    )
    job = Group(np.array([3, 4]), np.eye(2))
    return DiscreteProblem(
        base,
        np.array([[*step, 0.0, 0.0, 0.0]]),
        np.zeros((1, 5)),
        [job],
        np.zeros((1, 1), dtype=np.int64),
        [np.array([[0.0, 2.5]])],
        **more,
    )


def one_link(first: float, second: float, lower: float, upper: float) -> Links:
    matrix = np.array([[first, second, 0.0, 0.0, 0.0]])
    return Links(matrix, np.array([[lower]]), np.array([[upper]]))


ROADS = {
    "follows, whole": ([1.0, 1.0], one_link(1.0, -1.0, -1.0, -1.0)),
    "follows, one of them whole": ([0.0, 1.0], one_link(1.0, -0.25, 0.5, 0.5)),
    "follows, continuous": ([0.0, 0.0], one_link(1.0, 2.0, 5.0, 5.0)),
    "follows, backwards": ([0.0, 0.0], one_link(1.0, -0.7, -0.4, -0.4)),
    "at most, whole": ([1.0, 1.0], one_link(1.0, -1.0, -math.inf, 0.0)),
    "at most, fine steps": ([0.001, 0.001], one_link(1.0, -1.0, -math.inf, 0.0)),
    "at most, broken": ([1.0, 1.0], one_link(-1.0, 1.0, -math.inf, -6.0)),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_usual_links_need_no_highs(road, p, monkeypatch):
    step, links = ROADS[road]
    changed = 0
    for goal in ({"guarantee": 0.5}, {"guarantee": 0.9}, {"cost_weight": 0.1}):
        for most in (None, 1, 2):
            problem = person(p, step, max_changes=most)
            theirs = by_highs(problem, links, goal)
            with monkeypatch.context() as patch:
                # fine steps under a smooth loss, and changes that are counted, may be too much
                if most is None and "guarantee" in goal:
                    patch.setattr(linked, "solve_cuts", None)
                ours = solve_linked(problem, links, **goal)
            if theirs.point is None:
                assert ours.status[0] is Status.INFEASIBLE
                continue
            assert ours.status[0].is_proven
            assert ours.price[0] == pytest.approx(theirs.value, rel=1e-7)
            free = solve_discrete(problem, **goal)
            changed += ours.price[0] > free.price[0] + 1e-6
    assert changed > 0  # the links are not idle


def test_a_start_between_two_steps_is_a_value_of_its_own():
    """A part is split next to it, on either side."""
    values = ([0.55], [0.0], [1.0], [1.0], [0.0], [0.1], [0.0])
    numbers = Numbers(*(np.array(each) for each in values))
    assert neighbours_of(numbers, 0, 0.52) == pytest.approx((0.5, 0.55))
    assert neighbours_of(numbers, 0, 0.57) == pytest.approx((0.55, 0.6))
    assert neighbours_of(numbers, 0, 0.72) == pytest.approx((0.7, 0.8))


def test_a_row_is_the_same_in_any_batch():
    rng = np.random.default_rng(101)
    found = 0
    for p in (1.0, 2.0, math.inf):
        problem = random_discrete(rng, n=6, p=p, whole=2, continuous=2, groups=1, reach=4)
        links = pair_links(rng, problem)
        together = solve_linked(problem, links, guarantee=0.4)
        for i in range(6):
            own = replace(links, lower=links.lower[i : i + 1], upper=links.upper[i : i + 1])
            alone = solve_linked(take(problem, i), own, guarantee=0.4)
            np.testing.assert_array_equal(alone.recourse[0], together.recourse[i])
            assert alone.lower_bound[0] == together.lower_bound[i]
            assert alone.status[0] is together.status[i]
            found += np.isfinite(alone.recourse).all()
    assert found >= 5


@pytest.mark.parametrize("step", [0.0, 1.0])
def test_bounds_of_columns_of_a_category_are_not_read(step):
    """A number that may rise only with another level: whatever bounds they have."""
    for bound in (([-np.inf] * 3, [np.inf] * 3), ([-np.inf, 1.0, 0.0], [np.inf, 1.0, 0.0])):
        base = RecourseProblem.build(
            [[0.0, 1.0, 0.0]], [1.0, 0.0, 0.0], -3.0, robust_to=NormBall(2, 0.0), bounds=bound
        )
        problem = DiscreteProblem(
            base,
            np.array([[step, 0.0, 0.0]]),
            np.zeros((1, 3)),
            [Group(np.array([1, 2]), np.eye(2))],
            np.array([[0]]),
            [np.array([[0.0, 1.0]])],
        )
        links = Links(np.array([[-1.0, 0.0, 10.0]]), np.zeros((1, 1)), np.full((1, 1), np.inf))
        answer = solve_linked(problem, links, guarantee=0.5)
        assert answer.status[0] is Status.OPTIMAL
        assert answer.cost[0] == pytest.approx(4.0)


# ------------------------------------------------------------------ every value, by force


def many_steps(rng):
    """Return a problem of one row whose three linked numbers take some fifty values each."""
    step = rng.choice([1.0, 0.5, 0.3], size=3)
    lower = -step * rng.integers(5, 30, size=3)
    upper = lower + step * rng.integers(45, 60, size=3)
    start = rng.uniform(lower, upper)
    start = np.where(rng.random(3) < 0.5, step * np.round(start / step), start)
    start = np.clip(start, lower, upper)
    coef = rng.normal(size=3)
    base = RecourseProblem.build(
        start[None],
        coef,
        -float(coef @ start) - rng.uniform(0.2, 4.0),
        robust_to=NormBall(float(rng.choice([1.0, 2.0, np.inf])), 0.1),
        feature_costs=rng.uniform(0.2, 2.0, size=3),
        bounds=(lower[None], upper[None]),
    )
    fees = np.where(rng.random(3) < 0.4, rng.random(3), 0.0)
    problem = DiscreteProblem(
        base,
        step[None],
        np.zeros((1, 3)),
        [],
        np.empty((1, 0), dtype=int),
        [],
        max_changes=rng.choice([None, None, 2]),
        fixed_costs=fees[None],
    )
    matrix = np.zeros((int(rng.integers(1, 3)), 3))
    for row in matrix:
        own = rng.choice(3, size=rng.integers(2, 4), replace=False)
        row[own] = rng.choice([1.0, -1.0, 0.5, 2.0, -0.7], size=own.size)
    upper = matrix @ start + rng.choice([0.0, 0.2, 1.0], size=len(matrix))
    return problem, Links(matrix, np.full((1, len(matrix)), -np.inf), upper[None])


def least_of_all_values(problem, links, **goal):
    """Return the least price of all values of all numbers."""
    base, step, start = problem.base, problem.step[0], problem.base.X[0]
    values = []
    for j in range(3):
        low, high = base.lower[0, j], base.upper[0, j]
        lattice = step[j] * np.arange(np.floor(low / step[j]), np.ceil(high / step[j]) + 1)
        values.append(np.append(lattice[(lattice >= low) & (lattice <= high)], start[j]))
    points = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, 3)
    moved = points != start
    fixed = moved * problem.all_fixed_costs[0]
    cost = (np.abs(points - start) * base.feature_costs[0] + fixed).sum(axis=1)
    score = base.robust_to.worst_score(points, base.coef, base.intercept)
    allowed = moved.sum(axis=1) <= (problem.max_changes or 3)
    for coef, upper in zip(links.matrix, links.upper[0], strict=True):
        terms = points * coef
        allowed &= terms.sum(axis=1) <= upper + 1e-9 * (1.0 + np.abs(terms).sum(axis=1))
    if "guarantee" in goal:
        target = math.log(goal["guarantee"] / (1.0 - goal["guarantee"]))
        price = np.where(score >= target, cost, np.inf)
    else:
        price = np.logaddexp(0.0, -score) + goal["cost_weight"] * cost
    return price[allowed].min()


def test_numbers_of_many_steps_against_every_value(monkeypatch):
    rng, joined = np.random.default_rng(19), []
    join = boxes._Split.join

    def counted(self, *given):
        joined.append(join(self, *given))
        return joined[-1]

    monkeypatch.setattr(boxes._Split, "join", counted)
    for _ in range(150):
        problem, links = many_steps(rng)
        goal = {"cost_weight": float(rng.choice([0.02, 0.1, 0.3]))}
        if rng.random() < 0.4:
            goal = {"guarantee": float(rng.choice([0.5, 0.7]))}
        result = solve_linked(problem, links, n_jobs=1, **goal)
        best = least_of_all_values(problem, links, **goal)
        if np.isinf(best):
            assert result.status[0] is Status.INFEASIBLE
            continue
        assert result.status[0].is_proven
        assert result.price[0] == pytest.approx(best, rel=1e-7, abs=1e-7)
        assert result.lower_bound[0] <= best + 1e-7 * (1.0 + best)
    assert sum(joined) >= 5  # numbers were made one near an answer


def unaligned(values: np.ndarray) -> np.ndarray:
    """Return a copy at an odd address."""
    room = np.zeros(values.nbytes + 1, dtype=np.int8)
    copied = np.ndarray(values.shape, values.dtype, room, 1)
    copied[...] = values
    return copied


def test_arrays_at_odd_addresses_are_read_too():
    rng = np.random.default_rng(413)
    for _ in range(20):
        problem, links = many_steps(rng)
        odd = {name: unaligned(getattr(problem, name)) for name in ("step", "anchor", "current")}
        other = replace(problem, **odd)
        wanted, told = (solve_linked(each, links, guarantee=0.6) for each in (problem, other))
        assert np.array_equal(wanted.recourse_array, told.recourse_array, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, ">f8"])
def test_steps_of_other_types_are_read_too(dtype):
    rng = np.random.default_rng(407)
    for _ in range(40):
        problem, links = many_steps(rng)
        if not np.array_equal(problem.step, problem.step.astype(dtype)):
            problem = replace(problem, step=np.ceil(problem.step))
        other = replace(problem, step=problem.step.astype(dtype))
        wanted, told = (solve_linked(each, links, guarantee=0.6) for each in (problem, other))
        assert np.array_equal(wanted.recourse_array, told.recourse_array, equal_nan=True)
        assert np.array_equal(wanted.lower_bound, told.lower_bound, equal_nan=True)


def asked_of(searcher: RowSearcher, numbers: list[Numbers], goal: Goal) -> bytes:
    return b"".join(each.tobytes() for each in searcher.search(numbers, goal, 1e-9))


def questions(rng: np.random.Generator, problem: DiscreteProblem) -> list[tuple[list, Goal]]:
    """Return questions of several goals and numbers of rows, in no order."""
    own, loss = numbers_of(problem), problem.base.loss
    goals = [
        Goal.of(loss, guarantee=0.6),
        Goal.of(loss, guarantee=0.8),
        Goal.of(loss, cost_weight=0.1),
    ]
    asked = []
    for _ in range(12):
        costs = own.cost * rng.uniform(0.5, 2.0, size=(int(rng.integers(1, 4)), own.cost.size))
        rows = [own._replace(cost=cost) for cost in costs]
        asked.append((rows, goals[int(rng.integers(3))]))
    return asked


def test_a_searcher_answers_many_questions_as_new_ones_do():
    rng = np.random.default_rng(409)
    for _ in range(10):
        problem, _ = many_steps(rng)
        searcher = RowSearcher(problem)
        for numbers, goal in questions(rng, problem):
            assert asked_of(searcher, numbers, goal) == asked_of(
                RowSearcher(problem), numbers, goal
            )


def test_a_searcher_made_before_the_solver_of_leaves_finds_it_later(monkeypatch):
    rng = np.random.default_rng(411)
    problem, _ = many_steps(rng)
    wanted, early = RowSearcher(problem), RowSearcher(problem)
    (numbers, goal), *_ = questions(rng, problem)
    told = asked_of(wanted, numbers, goal)  # compiles the search
    early._private = early._private.replaced(leaves=0)
    with monkeypatch.context() as without:  # the search is compiled, what it calls is not
        for module in (row_search_module, run_module):
            without.setattr(module, "leaves_for", lambda ball: NoLeaves())
        assert asked_of(early, numbers, goal) == told
        assert early._private.leaves == 0
    assert asked_of(early, numbers, goal) == told
    assert early._private.leaves == wanted._private.leaves


class NoLeaves:
    """A solver of leaves that is still being compiled."""

    def address(self, others):
        return 0


def test_a_row_of_which_older_releases_of_highs_prove_too_much():
    today = [-1.2529495983813466, 0.6241603168049203, -2.504606191635626]
    others = [
        ([-1.5463568204695766, 0.6526270772186951, -2.3298430309026243], 30.67509502942274),
        ([-0.9528596248485308, 0.4162713571342037, -2.0946634232547696], 30.805509650108423),
        ([-0.6490749659562371, 0.5229974736805498, -3.188873397132953], 30.73603008813494),
        ([-1.4489879517739812, 0.5742656329581923, -2.139599317735818], 30.408951789212637),
        ([-1.4146478680990873, 0.3375162248654114, -2.710076248446084], 30.597006660543578),
    ]
    base = RecourseProblem.build(
        [[-2.1748586923688977, 0.5, 14.0]],
        today,
        30.661657745534082,
        robust_to=ModelList(others),
        feature_costs=[1.722578376691364, 1.4262096751748057, 0.7376562534567837],
        bounds=([-3.9, -2.5, -21.0], [12.3, 25.5, 32.0]),
    )
    problem = DiscreteProblem(
        base,
        np.array([[0.3, 0.5, 1.0]]),
        np.zeros((1, 3)),
        [],
        np.empty((1, 0), dtype=int),
        [],
        max_changes=2,
        fixed_costs=np.array([[0.822196277831632, 0.5474470825345534, 0.0]]),
    )
    matrix = np.array([[-0.7, 0.0, -1.0], [-0.7, -0.7, 0.0]])
    upper = np.array([[-11.477598915341773, 2.1724010846582282]])
    answer = solve_linked(problem, Links(matrix, np.full((1, 2), -np.inf), upper), guarantee=0.6)
    assert answer.recourse_array[0] == pytest.approx([5.1, 0.5, 8.0])
    assert answer.lower_bound[0] <= answer.cost[0] == pytest.approx(17.779648075532208)


def tangled(rng):
    """Draw two rows of numbers, in steps or not, among many links, for p = 3."""
    n, d = 2, int(rng.integers(3, 8))
    coef, start = rng.normal(size=d), 3.0 * rng.normal(size=(n, d))
    in_steps = rng.random(d) < rng.choice([0.0, 0.5, 1.0])
    step = np.where(in_steps, rng.choice([0.25, 0.5, 1.0]), 0.0)
    start[:, in_steps] = np.round(start[:, in_steps] / step[in_steps]) * step[in_steps]
    room = np.where(in_steps, 20.0 * step, 8.0)
    base = RecourseProblem.build(
        start,
        coef,
        -(start @ coef).max() - 3.0 * rng.exponential(),
        robust_to=NormBall(3.0, 0.1 * np.abs(coef).mean()),
        feature_costs=rng.uniform(0.3, 2.0, size=d),
        bounds=(start - room, start + room),
    )
    nothing = np.empty((n, 0), dtype=np.int64)
    steps = np.repeat(step[None], n, axis=0)
    problem = DiscreteProblem(base, steps, np.zeros((n, d)), [], nothing, [])
    matrix = np.zeros((int(rng.integers(1, 5)), d))
    for row in matrix:
        own = rng.choice(d, size=min(d, int(rng.choice([2, 2, 3, 4]))), replace=False)
        row[own] = rng.choice([1.0, -1.0, 0.5, 2.0], size=len(own)) * np.sign(coef[own])
    value = start @ matrix.T
    upper = value + rng.exponential(size=value.shape) * float(rng.choice([0.3, 1.0, 2.0]))
    return problem, Links(matrix, np.full(value.shape, -np.inf), upper)


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_not_left_open_because_it_is_cheaper_than_its_bound(seed):
    """Links are kept to a tolerance, and what breaks one by less may cost less than is proven."""
    rng = np.random.default_rng(seed)
    for k in range(12):
        goal = {"guarantee": 0.5} if k % 2 else {"cost_weight": 0.05}
        answer = solve_linked(*tangled(rng), **goal)
        is_open = answer.status == Status.GAP_OPEN
        assert not (is_open & (answer.gap == 0.0)).any()


def moved_far(problem, links, offset, factor):
    """The same, far from 0 and without a ball, in another unit of costs."""
    base, by = problem.base, links.matrix.sum(axis=1) * offset
    there = RecourseProblem.build(
        base.X + offset,
        base.coef[0],
        base.intercept - base.coef[0].sum() * offset,
        robust_to=NormBall(1, 0.0),
        feature_costs=base.feature_costs * factor,
        bounds=(base.lower + offset, base.upper + offset),
    )
    return replace(problem, base=there), Links(links.matrix, links.lower, links.upper + by)


def test_far_from_0_the_unit_of_costs_does_not_decide_what_is_proven():
    """There links are kept by less than 1e-5 of a unit, and an answer may save as much by that."""
    proven = 0
    for seed in range(40):
        asked = tangled(np.random.default_rng([2, seed]))
        near = solve_linked(*moved_far(*asked, 0.0, 1.0), guarantee=0.6)
        one, other = (
            solve_linked(*moved_far(*asked, 2.0**15, factor), guarantee=0.6)
            for factor in (1.0, 2.0**-30)
        )
        np.testing.assert_array_equal(one.status, other.status)
        np.testing.assert_array_equal(one.price, other.price * 2.0**30)
        assert not ((one.status == Status.GAP_OPEN) & (one.gap == 0.0)).any()
        both = np.isfinite(one.price) & np.isfinite(near.price)
        np.testing.assert_allclose(one.price[both], near.price[both], rtol=1e-3)
        proven += (one.status == Status.OPTIMAL).sum()
    assert proven > 40


@pytest.mark.parametrize("factor", [1.0, 2.0**-9, 2.0**9])
def test_far_from_0_the_unit_of_costs_does_not_decide_whether_a_score_is_known(factor):
    """A cost weight is measured in the unit of costs, and a score is not."""
    start = np.full((1, 3), 2.0**17)
    coef = np.array([5.5, 3.5, -1.5])
    base = RecourseProblem.build(
        start,
        coef,
        float(-coef @ start[0] - 1.0),
        robust_to=NormBall(2, 0.0),
        feature_costs=np.full(3, factor),
        bounds=(start[0] - 8.0, start[0] + 8.0),
    )
    nothing = np.empty((1, 0), dtype=int)
    problem = DiscreteProblem(base, np.ones((1, 3)), start, [], nothing, [])
    links = Links(np.array([[1.0, -1.0, 0.0]]), np.full((1, 1), -np.inf), np.zeros((1, 1)))
    result = solve_linked(problem, links, cost_weight=0.1 / factor)
    assert result.status[0] is Status.GAP_OPEN  # in every unit: the score is mostly rounding
    assert result.lower_bound[0] == 0.0
    assert result.gap[0] == result.price[0]


def test_what_was_known_outlives_a_bound_of_highs_that_is_a_hair_too_high(monkeypatch):
    problem, links = tangled(np.random.default_rng(0))
    row, own = take_row(problem, 0), row_links(links, 0)
    goal, point = Goal.of(row.base.loss, cost_weight=0.05), row.base.X[0]
    none = np.empty(0, dtype=np.int64)
    high = Best(0.4, 0.4 + 1e-7, point, none, 1)
    monkeypatch.setattr(cuts_module, "_solve_row", lambda *_: high)
    best = solve_cuts(row, own, goal, 1e-9, Best(0.4, 0.3, point, none, 2))
    assert (best.value, best.bound, best.nodes) == (0.4, 0.3, 3)
    close = high._replace(bound=0.4 + 1e-10)
    monkeypatch.setattr(cuts_module, "_solve_row", lambda *_: close)
    assert solve_cuts(row, own, goal, 1e-9, Best(0.4, 0.3, point, none, 2)).bound == close.bound
