"""Recourse with discrete parts: against every choice tried by force, and against HiGHS."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from discrete_problems import (
    EXPONENTS,
    LOSSES,
    best_score_by_force,
    by_force,
    permuted,
    random_discrete,
    take,
)
from milp_oracle import least_cost, least_price, polished

from holdfast import Ellipsoid, ModelList, NormBall, Status
from holdfast.continuous.solve import solve_problem
from holdfast.discrete import (
    DiscreteProblem,
    Group,
    Links,
    check_answer,
    largest_reachable_score,
    run,
    solve_discrete,
    solve_linked,
)
from holdfast.problem import ModelSet, RecourseProblem

FOUND = (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)


def goal_of(rng: np.random.Generator, problem: DiscreteProblem) -> dict[str, float]:
    if rng.random() < 0.5:
        return {"cost_weight": float(10.0 ** rng.uniform(-1.5, 0.3))}
    has_link = problem.base.loss.link is not None
    return {"guarantee": float(rng.uniform(0.2, 0.9)) if has_link else 0.5}


def compare(ours, i: int, least: float, slack: float = 1e-7) -> None:
    """Nothing is better than our price, and our proof says nothing false."""
    if np.isinf(least) or ours.status[i] is Status.INFEASIBLE:
        assert np.isinf(least)
        # where the radius is as long as the model, only that whatever helps costs a fortune
        assert ours.status[i] is Status.INFEASIBLE or ours.lower_bound[i] > 1e12
        assert ours.lower_bound[i] > 1e6
        assert np.isnan(ours.recourse[i]).all()
        return
    assert ours.status[i] in FOUND
    assert ours.price[i] <= least + slack * (1 + least)
    assert ours.lower_bound[i] <= least + 1e-9 * (1 + least)
    assert 0.0 <= ours.gap[i] <= 1e-9 * (1 + ours.price[i])


def check_by_force(rng: np.random.Generator, **fixed) -> int:
    """Solve one random batch, compare every row, and return how many there were."""
    problem = random_discrete(rng, loss=str(rng.choice(LOSSES)), **fixed)
    goal = goal_of(rng, problem)
    ours = solve_discrete(problem, **goal, n_jobs=1)
    check_answer(problem, ours)
    for i in range(len(ours)):
        compare(ours, i, by_force(problem, i, **goal))
    return len(ours)


@pytest.mark.parametrize("p", EXPONENTS)
def test_agrees_with_every_choice_tried(p):
    rng = np.random.default_rng([41, int(min(p, 99) * 10)])
    assert sum(check_by_force(rng, p=p) for _ in range(60)) == 120


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_every_choice_tried_on_many(seed):
    """10,000 rows and more, of all kinds."""
    rng = np.random.default_rng([43, seed])
    shapes = [{}, {"whole": 3, "reach": 2}, {"groups": 3, "levels": 4}, {"continuous": 4}]
    rows = sum(check_by_force(rng, **shapes[k % 4]) for k in range(520))
    assert rows == 1040


def ask_highs(problem: DiscreteProblem, goal: dict[str, float], presolve: bool = True):
    if "guarantee" in goal:
        return least_cost(problem, 0, problem.base.loss.score(goal["guarantee"]), presolve)[:2]
    return least_price(problem, 0, goal["cost_weight"], presolve)[:2]


def check_against_highs(rng: np.random.Generator, p: float, mode: str, **fixed) -> None:
    problem = random_discrete(rng, n=1, p=p, **{"whole": 4, "continuous": 3, "groups": 4, **fixed})
    goal = {"guarantee": float(rng.uniform(0.3, 0.8))}
    if mode == "price":
        goal = {"cost_weight": float(10.0 ** rng.uniform(-1.5, 0.0))}
    ours = solve_discrete(problem, **goal)
    value, x = ask_highs(problem, goal)
    if ours.price[0] < value - 1e-5 * (1 + abs(value)):
        value, x = ask_highs(problem, goal, presolve=False)  # its presolve errs now and then
    if np.isinf(value):
        assert ours.status[0] is Status.INFEASIBLE
        return
    least = polished(problem, 0, x, **goal)
    if ours.status[0] is Status.INFEASIBLE:  # HiGHS reaches the target by its tolerances only
        assert np.isinf(least)
        return
    assert ours.status[0] in FOUND
    assert ours.price[0] <= least + 1e-7
    assert ours.price[0] >= value - 1e-5 * (1 + value)  # HiGHS's own tolerances


@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, np.inf])
def test_agrees_with_highs(p, mode):
    rng = np.random.default_rng([47, int(min(p, 9)), len(mode)])
    for _ in range(12):
        check_against_highs(rng, p, mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["guarantee", "price"])
@pytest.mark.parametrize("p", [1.0, np.inf])
def test_agrees_with_highs_on_larger_rows(p, mode):
    rng = np.random.default_rng([53, int(min(p, 9)), len(mode)])
    for _ in range(150):
        check_against_highs(rng, p, mode, whole=6, continuous=6, groups=6, levels=5, reach=12)


@pytest.mark.parametrize("p", EXPONENTS)
def test_best_reachable_score_and_radius(p):
    rng = np.random.default_rng([59, int(min(p, 99) * 10)])
    lost = 0
    for _ in range(25):
        problem = random_discrete(rng, p=p)
        best = largest_reachable_score(problem)
        for i in range(2):
            theirs = best_score_by_force(problem, i)
            assert best[i] == pytest.approx(theirs, rel=1e-7, abs=1e-7)
        ours = solve_discrete(problem, guarantee=0.95)
        for i in np.flatnonzero(ours.status == Status.INFEASIBLE):
            lost += 1
            reach = problem.base.loss.probability(best[i])
            assert ours.reachable_validity[i] == pytest.approx(float(reach), abs=1e-9)
            radius, full = ours.reachable_radius[i], problem.base.robust_to.radius
            if np.isnan(radius):
                assert with_radius(problem, 0.0, i, 0.95) is Status.INFEASIBLE
                continue
            assert radius <= full
            smaller = radius - 1e-6 * full
            if smaller > 0.0:  # at the edge, costs and multipliers may be enormous
                assert with_radius(problem, smaller, i, 0.95) is not Status.INFEASIBLE
            assert with_radius(problem, radius + 1e-6 * full, i, 0.95) is Status.INFEASIBLE
    assert lost > 3


def with_radius(problem: DiscreteProblem, radius: float, i: int, tau: float) -> Status:
    ball = replace(problem.base.robust_to, radius=radius)
    other = replace(problem, base=replace(problem.base, robust_to=ball))
    return solve_discrete(other, guarantee=tau).status[i]


@pytest.mark.parametrize("p", EXPONENTS)
def test_without_discrete_parts_it_is_the_continuous_answer(p):
    rng = np.random.default_rng([61, int(min(p, 99) * 10)])
    for _ in range(15):
        problem = random_discrete(rng, n=6, p=p, whole=0, groups=0, continuous=4, max_changes=None)
        for goal in ({"cost_weight": 0.1}, {"guarantee": 0.7}):
            ours = solve_discrete(problem, **goal)
            theirs = solve_problem(problem.base, **goal)
            np.testing.assert_allclose(ours.price, theirs.price, rtol=1e-9, atol=1e-9)
            # where there is none, one of the two may prove it and the other not (at the very edge)
            found = np.isfinite(theirs.price)
            np.testing.assert_array_equal(ours.status[found], theirs.status[found])
            assert np.isnan(ours.recourse[~found]).all()


@pytest.mark.parametrize("p", EXPONENTS)
def test_identities(p):
    rng = np.random.default_rng([67, int(min(p, 99) * 10)])
    for _ in range(12):
        problem = random_discrete(rng, n=5, p=p, max_changes=None)
        goal = goal_of(rng, problem)
        ours = solve_discrete(problem, **goal)
        limited = replace(problem, max_changes=problem.base.n_features)
        np.testing.assert_allclose(solve_discrete(limited, **goal).price, ours.price, rtol=1e-9)
        other = solve_discrete(permuted(rng, problem), **goal)
        np.testing.assert_allclose(other.price, ours.price, rtol=1e-8, atol=1e-9)
        ball = replace(problem.base.robust_to, radius=1.3 * problem.base.robust_to.radius + 0.01)
        wider = replace(problem, base=replace(problem.base, robust_to=ball))
        assert np.all(solve_discrete(wider, **goal).price >= ours.price * (1 - 1e-9) - 1e-9)


def test_a_row_does_not_depend_on_its_batch():
    rng, lost = np.random.default_rng(71), 0
    for p in (1.0, 2.0, np.inf):
        problem = random_discrete(rng, n=12, p=p, whole=2, continuous=2, groups=2)
        for goal in ({"cost_weight": 0.2}, {"guarantee": 0.6}, {"guarantee": 0.97}):
            together = solve_discrete(problem, **goal, n_jobs=2)
            lost += np.sum(together.reachable_radius > 0.0)
            for i in range(12):
                alone = solve_discrete(take(problem, i), **goal)
                for name in ("recourse", "lower_bound", "reachable_validity", "reachable_radius"):
                    one, many = getattr(alone, name)[0], getattr(together, name)[i]
                    np.testing.assert_array_equal(one, many)
    assert lost > 0


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_a_search_that_needs_more_room_gets_it(p, monkeypatch):
    rng = np.random.default_rng([74, int(min(p, 9))])
    problem = random_discrete(
        rng, n=20, p=p, whole=6, continuous=1, groups=4, reach=9, radius=0.3, max_changes=3
    )
    for goal in ({"cost_weight": 0.05}, {"guarantee": 0.9}):
        monkeypatch.setattr(run, "_DEPTH", 256)
        ours = solve_discrete(problem, **goal)
        monkeypatch.setattr(run, "_DEPTH", 1)
        cramped = solve_discrete(problem, **goal)
        assert ours.nodes.max() > 2  # it has been split
        for name in ("recourse", "lower_bound", "nodes", "status", "reachable_radius"):
            np.testing.assert_array_equal(getattr(cramped, name), getattr(ours, name))


def small(points, **changed) -> DiscreteProblem:
    """A whole number and a category of three levels."""
    base = RecourseProblem.build(
        points, [1.0, 0.0, 0.5, 1.0], -3.0, robust_to=NormBall(2, 0.1), **changed
    )
    n = base.n_rows
    return DiscreteProblem(
        base,
        np.array([[1.0, 0, 0, 0]]),
        np.zeros((1, 4)),
        [Group(np.array([1, 2, 3]), np.eye(3))],
        np.zeros((n, 1), dtype=np.int64),
        [np.array([[0.0, 0.3, np.inf]])],
    )


def test_statuses():
    bounds = ([0.0, 0, 0, 0], [2.0, 1, 1, 1])
    points = [[0.0, 1, 0, 0], [9.0, 1, 0, 0], [np.nan, 1, 0, 0], [0.0, 0, 1, 0]]
    answer = solve_discrete(small(points, bounds=bounds), guarantee=0.5)
    assert list(answer.status) == [
        Status.INFEASIBLE,
        Status.OUT_OF_BOUNDS,
        Status.INVALID_INPUT,
        Status.INVALID_INPUT,  # its columns are not those of its current option
    ]
    assert answer.levels.tolist() == [[-1]] * 4
    done = solve_discrete(small([[9.0, 1, 0, 0]]), guarantee=0.5)
    assert done.status[0] is Status.ALREADY_VALID
    assert done.cost[0] == 0.0
    np.testing.assert_array_equal(done.recourse, [[9.0, 1, 0, 0]])


def test_a_stopped_search_says_so():
    rng = np.random.default_rng(73)
    problem = random_discrete(
        rng, n=40, p=2.0, whole=8, groups=6, continuous=0, reach=9, radius=0.3, max_changes=None
    )
    answer = solve_discrete(problem, guarantee=0.5, max_nodes=1)
    exact = solve_discrete(problem, guarantee=0.5)
    stopped = answer.status == Status.GAP_OPEN
    assert stopped.any()
    assert np.all(answer.lower_bound[stopped] <= exact.price[stopped] + 1e-12)
    assert np.all(exact.status != Status.GAP_OPEN)


def test_what_does_not_fit_is_refused():
    good = small([[0.0, 1, 0, 0]])
    with pytest.raises(ValueError, match="exactly one"):
        solve_discrete(good)
    with pytest.raises(ValueError, match="step has shape"):
        solve_discrete(replace(good, step=np.zeros((1, 3))), guarantee=0.5)
    group = Group(np.array([1, 2, 2]), np.eye(3))
    with pytest.raises(ValueError, match="each of 0 to 3 once"):
        solve_discrete(replace(good, groups=[group]), guarantee=0.5)
    with pytest.raises(ValueError, match="max_changes"):
        solve_discrete(replace(good, max_changes=-1), guarantee=0.5)
    with pytest.raises(ValueError, match="not convex"):
        solve_discrete(small([[0.0, 1, 0, 0]], loss="squared_error"), cost_weight=0.1)
    assert solve_discrete(
        small([[0.0, 1, 0, 0]], loss="squared_error"), guarantee=0.5
    ).price == pytest.approx(solve_discrete(good, guarantee=0.5).price)


def test_the_check_finds_what_is_wrong():
    problem = small([[0.0, 1, 0, 0]])
    answer = solve_discrete(problem, guarantee=0.5)
    check_answer(problem, answer)
    x, cost = answer.recourse, answer.cost
    for recourse, levels, spent in (
        (x + 0.5 * np.eye(4)[0], answer.levels, cost + 0.5),  # off the lattice
        (x - np.eye(4)[0], answer.levels, cost - 1.0),  # below the guarantee
        (np.array([[9.0, 0, 0, 1]]), np.array([[2]]), np.array([np.inf])),  # a forbidden option
        (x, answer.levels + 1, cost),
        (x, answer.levels, cost + 0.1),
    ):
        wrong = replace(answer, recourse_array=recourse, levels=levels, cost=spent)
        with pytest.raises(AssertionError, match="row 0"):
            check_answer(problem, wrong)
    with pytest.raises(AssertionError, match="too many"):
        check_answer(replace(problem, max_changes=0), answer)


# ------------------------------------------------------------------ levels of each row's own


def with_own_options(rng: np.random.Generator, problem: DiscreteProblem) -> DiscreteProblem:
    """Give every row other levels, all but those that it has now."""
    base, groups = problem.base, []
    n, points = base.n_rows, base.X.copy()
    for g, group in enumerate(problem.groups):
        levels = group.levels + 0.5 * rng.normal(size=(n, *group.levels.shape)).round(2)
        points[:, group.columns] = levels[np.arange(n), problem.current[:, g]]
        groups.append(replace(group, levels=levels))
    return replace(problem, base=replace(base, X=points), groups=groups)


def shared_row(problem: DiscreteProblem, i: int) -> DiscreteProblem:
    """Return the problem of row i alone, its levels said once for everybody."""
    groups = [replace(group, levels=group.levels[i]) for group in problem.groups]
    return take(replace(problem, groups=groups), i)


def some_set(rng: np.random.Generator, kind: str, problem: DiscreteProblem) -> ModelSet:
    base, d = problem.base, problem.base.n_features
    if kind == "ellipsoid":
        root = rng.normal(size=(d + 1, d))
        return Ellipsoid(root @ root.T, 0.1)
    if kind == "list":
        moved = base.coef[0] + 0.3 * rng.normal(size=(4, d))
        return ModelList([(coef, float(base.intercept[0])) for coef in moved])
    return base.robust_to


@pytest.mark.parametrize("goal", [{"guarantee": 0.4}, {"cost_weight": 0.1}])
@pytest.mark.parametrize("kind", ["1", "2", "inf", "ellipsoid", "list"])
def test_options_of_each_row_are_as_if_it_were_alone(kind, goal):
    rng = np.random.default_rng([31, sum(map(ord, kind)), len(goal)])
    p = 2.0 if kind in ("ellipsoid", "list") else float(kind)
    found = 0
    for k in range(6):
        problem = random_discrete(rng, n=4, p=p, groups=1 + k % 2, levels=4, continuous=k % 3)
        robust_to = some_set(rng, kind, problem)
        problem = replace(problem, base=replace(problem.base, robust_to=robust_to))
        own = with_own_options(rng, problem)
        together = solve_discrete(own, **goal)
        part = solve_discrete(own.take(np.array([2, 0])), **goal)
        np.testing.assert_array_equal(part.recourse, together.recourse[[2, 0]])
        np.testing.assert_array_equal(part.gap, together.gap[[2, 0]])
        d = own.base.n_features
        link = np.where(np.arange(d) < 2, 1.0, 0.0)[None]
        lax = Links(link, np.full((1, 1), -np.inf), (own.base.X @ link.T) + 0.2)
        linked = solve_linked(own, lax, **goal)
        for i in range(4):
            row = shared_row(own, i)
            alone = solve_discrete(row, **goal)
            np.testing.assert_array_equal(alone.recourse[0], together.recourse[i])
            np.testing.assert_array_equal(alone.levels[0], together.levels[i])
            np.testing.assert_array_equal(alone.lower_bound[0], together.lower_bound[i])
            assert alone.status[0] is together.status[i]
            forced = by_force(row, 0, **goal)
            if np.isinf(forced):
                assert np.isnan(alone.recourse).all()
            else:
                assert alone.price[0] == pytest.approx(forced, rel=1e-8, abs=1e-9)
                found += 1
            own_lax = Links(link, lax.lower, lax.upper[i : i + 1])
            tied = solve_linked(row, own_lax, **goal)
            assert tied.status[0] is linked.status[i]
            np.testing.assert_array_equal(tied.recourse[0], linked.recourse[i])
    assert found >= 5


def test_options_of_a_wrong_number_of_rows_are_refused():
    rng = np.random.default_rng(37)
    problem = with_own_options(rng, random_discrete(rng, n=3, groups=1, p=2.0))
    group = problem.groups[0]
    wrong = replace(problem, groups=[replace(group, levels=group.levels[:2])])
    with pytest.raises(ValueError, match="levels of group 0 have shape"):
        solve_discrete(wrong, guarantee=0.5)


# ------------------------------------------------------------------ groups that count several times


def least_price_of_levels(problem: DiscreteProblem, i: int, goal: dict[str, float]) -> float:
    """Return the least price of a row of groups alone, by trying every choice of levels."""
    base, best = problem.base.row(i), np.inf
    x = base.X[0].copy()
    for choice in itertools.product(*(range(group.count) for group in problem.groups)):
        changes = sum(int(problem.level_changes[g][i, k]) for g, k in enumerate(choice))
        if problem.max_changes is not None and changes > problem.max_changes:
            continue
        for group, k in zip(problem.groups, choice, strict=True):
            x[group.columns] = group.levels[k]
        cost = sum(float(problem.level_costs[g][i, k]) for g, k in enumerate(choice))
        score = base.robust_to.worst_score(x[None], base.coef, base.intercept)[0]
        if "cost_weight" in goal:
            cost = float(base.loss.value(score)) + goal["cost_weight"] * cost
        elif score < base.loss.score(goal["guarantee"]):
            continue
        best = min(best, cost)
    return float(best)


@pytest.mark.parametrize("goal", [{"guarantee": 0.5}, {"cost_weight": 0.05}])
def test_options_that_change_several_features_count_as_many(goal):
    rng = np.random.default_rng([41, len(goal)])
    found = several = tighter = 0
    for k in range(24):
        problem = random_discrete(rng, n=3, whole=0, continuous=0, groups=3, levels=5)
        counts = []
        for g, group in enumerate(problem.groups):
            own = rng.integers(1, 1 + (g < 2) * 2 + 1, size=(3, group.count))
            own[np.arange(3), problem.current[:, g]] = 0
            counts.append(own)
        problem = replace(problem, max_changes=1 + k % 5, level_changes=counts)
        free = solve_discrete(replace(problem, level_changes=None), **goal)
        ours = solve_discrete(problem, **goal)
        anything = np.full((1, 1), np.inf)  # a link that nobody breaks
        loose = Links(np.ones((1, free.recourse_array.shape[1])), -anything, anything)
        linked = solve_linked(problem, loose, **goal)
        most = largest_reachable_score(problem)
        for i in range(3):
            theirs = least_price_of_levels(problem, i, goal)
            tighter += free.price[i] < theirs - 1e-9
            if np.isinf(theirs):
                assert ours.status[i] is Status.INFEASIBLE
                assert most[i] < problem.base.loss.score(goal["guarantee"])
                continue
            found += 1
            assert ours.status[i].is_proven
            assert ours.price[i] == pytest.approx(theirs, rel=1e-9, abs=1e-12)
            assert ours.lower_bound[i] <= theirs + 1e-9
            assert linked.price[i] == pytest.approx(theirs, rel=1e-9, abs=1e-12)
            several += problem.changes_of(ours.levels)[i].max() > 1
    assert found >= 20
    assert several >= 5
    assert tighter >= 5


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_a_guarantee_that_today_s_model_alone_just_gives_has_a_radius_of_0(p):
    def infeasible(intercept):
        base = RecourseProblem.build(
            [[0.0]], [1.0], intercept, robust_to=NormBall(p, 0.2), bounds=([0.0], [1.0])
        )
        whole = DiscreteProblem(
            base, np.ones((1, 1)), np.zeros((1, 1)), [], np.empty((1, 0), dtype=int), []
        )
        found = solve_discrete(whole, guarantee=0.5)
        assert found.status[0] is Status.INFEASIBLE
        return found

    alone = infeasible(-1.0)
    assert alone.reachable_radius[0] == 0.0
    assert "only with today's model alone" in alone.explain(0)
    assert np.isnan(infeasible(-1.5).reachable_radius[0])
    assert 0.0 < infeasible(-0.9).reachable_radius[0] < 0.2
