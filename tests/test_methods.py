"""The methods behind the door: each against the optimum, or against its own literature."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest
from literature import roar_by_torch
from problems import random_problem
from sklearn.linear_model import LogisticRegression

from holdfast import NormBall, Status, find_recourse
from holdfast.cli import main
from holdfast.continuous.solve import judge, solve_problem
from holdfast.methods import list_methods
from holdfast.methods.base import Method, Proposal, Task, all_converged
from holdfast.methods.catalogue import METHODS
from holdfast.methods.roar import Roar
from holdfast.models import LinearModel
from holdfast.paper import Algorithm1, Algorithm1AsPublished, Algorithm2, RoarAsPublished
from holdfast.paper.algorithm1 import project_region
from holdfast.paper.catalogue import PAPER_METHODS
from holdfast.paper.folds import german_folds
from holdfast.problem import RecourseProblem
from holdfast.problem.goal import Goal
from holdfast.result import MethodStatus

BALL = NormBall(1, 0.1)


def unbounded(problem: RecourseProblem) -> RecourseProblem:
    free = np.full((1, problem.n_features), np.inf)
    return replace(problem, lower=-free, upper=free)


def run(method: Method, problem: RecourseProblem, cost_weight: float):
    """Run a method on a problem, and judge it against the optimum."""
    model = LinearModel(np.zeros(problem.n_features))
    goal = Goal.of(problem.loss, cost_weight=cost_weight)
    task = Task(problem, goal, model, None, random_state=0, threads=1)
    method.check(task)
    found = method.run(task)
    return judge(solve_problem(problem, cost_weight=cost_weight), found.recourse), found


# --- Algorithm 2


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("loss", ["logistic", "probit", "squared_hinge", "hinge"])
def test_algorithm_2_is_the_optimum(seed, loss):
    rng = np.random.default_rng(seed)
    problem = unbounded(random_problem(rng, p=math.inf, loss=loss))
    result, _ = run(Algorithm2(), problem, float(rng.choice([0.001, 0.03, 0.5])))
    assert (np.abs(result.gap) <= 1e-8 * (1 + result.price)).all()


def algorithm_2_as_printed(x0, coef, intercept, radius, cost_weight, most_rounds=1000):
    """The paper's pseudocode, word for word (intercept attacked); None if it does not end."""
    x = x0.copy()
    attacked = coef - radius * np.sign(x)
    active = list(range(len(x)))
    for _ in range(most_rounds):
        if not active:
            return x
        i = max(active, key=lambda j: abs(attacked[j]))
        score = x @ attacked + intercept - radius
        gain = abs(attacked[i])
        wanted = math.log(gain / cost_weight - 1) - score if gain > cost_weight else 0.0
        step = max(wanted, 0.0) / attacked[i] if gain else 0.0
        if step == 0.0:
            return x
        if np.sign(x[i] + step) == np.sign(x[i]):
            x[i] += step
            return x
        x[i] = 0.0
        if abs(coef[i]) > radius:
            attacked[i] = coef[i] + radius * np.sign(x0[i])
        else:
            active.remove(i)
    return None


def test_algorithm_2_as_printed_is_optimal_away_from_zero():
    rng = np.random.default_rng(0)
    coef = rng.normal(size=4) * 2
    points = np.sign(coef) * rng.uniform(0.5, 1, size=(20, 4))  # all on the useful side of 0
    ball = NormBall(math.inf, 0.2)
    best = find_recourse(points, (coef, -4.0), robust_to=ball, cost_weight=0.1)
    for i, point in enumerate(points):
        printed = algorithm_2_as_printed(point, coef, -4.0, 0.2, 0.1)
        assert judge(best, np.tile(printed, (20, 1))).price[i] == pytest.approx(best.price[i])


def test_algorithm_2_as_printed_fails_at_zero():
    """A feature at 0 has sign 0: the printed algorithm puts it back there for ever."""
    assert algorithm_2_as_printed(np.array([0.0]), np.array([2.0]), -3.0, 0.5, 0.1) is None
    # ... and so it does with a feature that has to cross 0
    assert algorithm_2_as_printed(np.array([-1.0]), np.array([2.0]), -3.0, 0.5, 0.1) is None
    ball = NormBall(math.inf, 0.5)
    for start in (0.0, -1.0):
        settled = find_recourse(
            [[start]], ([2.0], -3.0), Algorithm2(), robust_to=ball, cost_weight=0.1
        )
        assert settled.status[0] is Status.OPTIMAL
        assert settled.recourse_array[0, 0] > 0


# --- Algorithm 1


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_of_algorithm_1_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    point = np.round(rng.normal(size=d) * 2, int(rng.integers(0, 3)))
    i, sign, floor = int(rng.integers(d)), float(rng.choice([-1, 1])), float(rng.choice([0.0, 1.0]))
    x = cp.Variable(d)
    inside = [sign * x[i] >= floor, *(sign * x[i] >= cp.abs(x[j]) for j in range(d) if j != i)]
    cp.Problem(cp.Minimize(cp.sum_squares(x - point)), inside).solve(solver=cp.CLARABEL)
    ours = point.copy()
    project_region(ours, i, sign, floor)
    np.testing.assert_allclose(ours, x.value, atol=1e-5)


@pytest.mark.parametrize("seed", range(10))
def test_algorithm_1_approaches_the_optimum_from_above(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    problem = RecourseProblem.build(
        rng.normal(size=(5, d)),
        rng.normal(size=d),
        float(rng.normal() - 1),
        robust_to=NormBall(1, float(rng.uniform(0, 1)), intercept=bool(rng.random() < 0.7)),
        feature_costs=rng.uniform(0.5, 2.0, size=d),
    )
    gaps = []
    for steps in (20, 200, 20_000):
        result, _ = run(Algorithm1(max_steps=steps, tolerance=0.0), problem, 0.1)
        gaps.append(result.gap)
        assert (result.gap >= -1e-9).all()
    assert (np.diff(gaps, axis=0) <= 1e-12).all()  # the best point so far is kept
    assert gaps[-1].max() < 5e-3


def test_the_candidates_of_algorithm_1_need_the_intercept():
    """The constant is a coordinate too: its region holds the points of small features."""
    problem = RecourseProblem.build([[0.1]], [0.2], -0.5, robust_to=NormBall(1, 0.3))
    result, _ = run(Algorithm1(max_steps=20_000), problem, 1.0)
    assert np.abs(result.recourse_array).max() < 1  # none of the 2d regions holds it
    assert result.gap[0] < 1e-6


# --- ROAR


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_roar_is_what_its_authors_wrote(p):
    rng = np.random.default_rng(3)
    coef, ball = rng.normal(size=3), NormBall(p, 0.2)
    points = rng.normal(size=(4, 3))
    points[0, 0] = 0.0
    result = find_recourse(points, (coef, -2.0), "roar", robust_to=ball, cost_weight=0.2)
    for i, point in enumerate(points):
        expected, steps = roar_by_torch(point, coef, -2.0, ball, 0.2)
        assert result.steps[i] == steps
        np.testing.assert_allclose(result.recourse_array[i], expected, atol=1e-9)


def test_roar_in_a_batch_is_roar_row_by_row():
    rng = np.random.default_rng(4)
    points, coef = rng.normal(size=(30, 5)), rng.normal(size=5)
    arguments = {"robust_to": NormBall(math.inf, 0.1), "cost_weight": 0.05}
    batch = find_recourse(points, (coef, -1.0), "roar", n_jobs=2, **arguments)
    for i in range(len(points)):
        alone = find_recourse(points[i : i + 1], (coef, -1.0), "roar", **arguments)
        np.testing.assert_array_equal(alone.recourse_array[0], batch.recourse_array[i])
        assert alone.steps[0] == batch.steps[i]


def test_roar_says_when_it_runs_out_of_steps():
    few = {"max_steps": 5, "tolerance": 0.0}
    for intercept, status in ((3.0, MethodStatus.STEP_LIMIT), (-3.0, MethodStatus.NOT_VALID)):
        model = ([1.0], intercept)
        result = find_recourse([[0.0]], model, "roar", robust_to=BALL, cost_weight=0.01, **few)
        assert result.method_status[0] is status  # that the model refuses it matters more
        assert result.steps[0] == 5


def test_a_clamped_loss_traps_roar_where_the_model_is_sure():
    """In torch, BCELoss is flat below a probability of 1e-12; a sound loss is not."""
    arguments = {"robust_to": NormBall(1, 0.0), "cost_weight": 0.1}
    point, model = [[0.0]], ([1.0], -31.0)
    sound = find_recourse(point, model, "roar", **arguments)
    trapped = find_recourse(point, model, RoarAsPublished(), **arguments)
    assert sound.gap[0] < 0.2
    assert abs(trapped.recourse_array[0, 0]) < 0.1
    assert trapped.gap[0] > 20


def test_algorithm1_as_published_is_trapped_in_the_region_of_its_point():
    """The best place is in the point's own region, where BCELoss is flat: the others remain."""
    arguments = {"robust_to": NormBall(1, 0.1), "cost_weight": 0.1}
    point, model = [[40.0, 0.0]], ([-1.0, 5.0], 0.0)
    sound = find_recourse(point, model, Algorithm1(), **arguments)
    published = find_recourse(point, model, Algorithm1AsPublished(), **arguments)
    assert sound.gap[0] < 0.05
    assert published.gap[0] > 1.0
    # where nothing is flat, both habits change nothing but the path
    near = [[1.5, 0.2]]
    gap = find_recourse(near, model, Algorithm1AsPublished(), **arguments).gap[0]
    assert gap < 0.05


# (radius, cost weight): price on German Credit as the paper prints it, L1 and L-inf
ROAR_TABLE = {
    (0.1, 0.1): ((0.83, 0.10), (0.99, 0.11)),
    (0.1, 0.01): ((0.28, 0.04), (0.33, 0.05)),
    (0.5, 0.1): ((1.03, 0.11), (1.54, 0.46)),
    (0.5, 0.01): ((0.40, 0.06), (0.65, 0.01)),
}


@pytest.mark.parametrize(("radius", "cost_weight"), ROAR_TABLE)
def test_roar_has_the_prices_of_the_paper(radius, cost_weight):
    for p, (mean, deviation) in zip((1, math.inf), ROAR_TABLE[radius, cost_weight], strict=True):
        means = []
        for fold in german_folds():
            model = LogisticRegression().fit(fold.train_points, fold.train_approved)
            denied = fold.test_points[~model.predict(fold.test_points)]
            result = find_recourse(
                denied, model, "roar", robust_to=NormBall(p, radius), cost_weight=cost_weight
            )
            means.append(result.price.mean())
        assert np.mean(means) == pytest.approx(mean, abs=0.01)
        assert np.std(means, ddof=1) == pytest.approx(deviation, abs=0.02)


# --- the door


@pytest.mark.parametrize(
    "kind", [Algorithm1, Algorithm1AsPublished, Algorithm2, Roar, RoarAsPublished]
)
@pytest.mark.parametrize("seed", range(5))
def test_no_method_beats_the_optimum(kind, seed):
    rng = np.random.default_rng(seed)
    p = float(rng.choice(kind.exponents or [1.0, 1.5, 2.0, math.inf]))
    d = int(rng.integers(1, 6))
    result = find_recourse(
        rng.normal(size=(6, d)),
        (rng.normal(size=d), -1.0),
        kind(),
        robust_to=NormBall(p, 0.3),
        cost_weight=0.1,
        feature_costs=rng.uniform(0.5, 2, size=d),
    )
    assert (result.gap >= -1e-9).all()
    proof = result.certificate(0)
    assert proof.lower_bound <= proof.price + 1e-9
    coef, intercept = proof.worst_model
    assert result.problem.robust_to.distance(
        result.problem.coef, result.problem.intercept, [coef], [intercept]
    ) <= 0.3 * (1 + 1e-12)


@dataclass(frozen=True)
class Boaster(Method):
    """Stays where it is, and claims success."""

    name = "boaster"
    summary = guarantees = "everything"

    def run(self, task):
        n = task.problem.n_rows
        return Proposal(task.problem.X.copy(), all_converged(n), np.zeros(n, dtype=np.int64))


def test_no_method_marks_its_own_work():
    result = find_recourse([[0.0]], ([1.0], -3.0), Boaster(), robust_to=BALL, cost_weight=0.1)
    assert result.method_status[0] is MethodStatus.NOT_VALID
    assert result.status[0] is Status.GAP_OPEN
    assert result.price[0] == pytest.approx(math.log1p(math.exp(3.1)))
    assert result.gap[0] > 1
    assert "All that is proven is that no recourse" in result.explain(0)


def test_exact_through_the_door_is_the_core():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, d=4, p=2.0, radius=0.1)
    coef = problem.coef[0]
    through = find_recourse(problem.X, (coef, -1.0), robust_to=problem.robust_to, guarantee=0.6)
    direct = solve_problem(
        RecourseProblem.build(problem.X, coef, -1.0, robust_to=problem.robust_to),
        guarantee=0.6,
    )
    np.testing.assert_array_equal(through.recourse_array, direct.recourse_array)
    assert through.method == "exact"
    assert through.seconds > 0


def test_rows_that_cannot_be_used_lose_nothing_of_the_others():
    points = np.array([[0.0, 1.0], [math.nan, 1.0], [2.0, -1.0]])
    model = ([1.0, -0.5], -3.0)
    result = find_recourse(points, model, "roar", robust_to=BALL, cost_weight=0.1)
    assert result.status[1] is Status.INVALID_INPUT
    assert result.method_status[1] is MethodStatus.NOT_RUN
    alone = find_recourse(points[[0, 2]], model, "roar", robust_to=BALL, cost_weight=0.1)
    np.testing.assert_array_equal(result.recourse_array[[0, 2]], alone.recourse_array)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"method": "raor"}, "'raor' is not known; did you mean 'roar'"),
        ({"method": "roar", "lr": 0.1}, "roar has no setting 'lr'; it has: learning_rate"),
        ({"method": "roar", "bounds": ([0, 0], [1, 1])}, "cannot honour bounds"),
        ({"method": "roar", "cost_weight": None, "guarantee": 0.5}, "gives no guarantee"),
        ({"method": Algorithm1(), "robust_to": NormBall(2, 0.1)}, "needs p = 1, not 2"),
        ({"method": Algorithm2()}, "needs p = inf, not 1"),
        (
            {"method": Algorithm1(), "robust_to": NormBall(1, 0.1, scale=[1, 2])},
            "does not support a scale",
        ),
        ({"method": "roar", "loss": "hinge"}, "supports the losses"),
        ({"linearise": "lime"}, "already linear"),
        ({"cost_weight": None}, "give exactly one"),
        ({"method": "roar", "learning_rate": float("nan")}, "learning_rate = nan is not allowed"),
        ({"method": "roar", "learning_rate": -1}, "learning_rate = -1 is not allowed"),
        ({"method": "roar", "max_steps": 2.7}, "max_steps = 2.7 is not allowed"),
        ({"method": "roar", "clamped_loss": True}, "roar has no setting 'clamped_loss'"),
        ({"method": "algorithm1"}, "'algorithm1' is not known; available: exact, roar"),
        ({"method": Algorithm1AsPublished(), "loss": "hinge"}, "supports the losses"),
        ({"X_train": [["a", "b"]]}, "X_train cannot be read as numbers"),
    ],
)
def test_what_a_method_cannot_do_is_refused(arguments, said):
    arguments = {"robust_to": BALL, "cost_weight": 0.1, **arguments}
    with pytest.raises(ValueError, match=said):
        find_recourse([[0.0, 1.0]], ([1.0, -0.5], -1.0), **arguments)


def test_the_list_says_what_each_method_needs_and_guarantees():
    listed = {method.name: method for method in list_methods()}
    assert "optimal" in listed["exact"].guarantees
    assert listed["roar"].settings["learning_rate"] == 1e-3
    assert set(listed) == set(METHODS)


def test_the_command_line_lists_the_methods_in_full(capsys):
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    ours, papers = printed.split("From the paper")
    assert all(f"\n{name}  " in ours for name in METHODS)
    assert all(f"\n{name}  " in papers for name in PAPER_METHODS)
    assert not set(METHODS) & set(PAPER_METHODS)
    assert "learning_rate=0.001" in printed
    assert "…" not in printed


@dataclass(frozen=True)
class Lost(Boaster):
    """Comes back with nothing, or from nowhere."""

    name = "lost"

    def run(self, task):
        found = super().run(task)
        found.recourse[0], found.recourse[1] = np.nan, np.inf
        return found


def test_a_method_that_brings_nothing_back_is_not_called_optimal():
    result = find_recourse(
        [[0.0], [1.0], [2.0]], ([1.0], -3.0), Lost(), robust_to=BALL, cost_weight=0.1
    )
    assert list(result.status[:2]) == [Status.NOT_FOUND] * 2
    assert np.isinf(result.price[:2]).all()
    assert np.isinf(result.gap[:2]).all()
    assert np.isfinite(result.price[2])
    assert result.explain(0) == "No usable recourse was found."


@dataclass(frozen=True)
class Trespasser(Boaster):
    """Promises to honour bounds, and leaves them."""

    honours_bounds = True

    def run(self, task):
        found = super().run(task)
        return found._replace(recourse=found.recourse + 9.0)


def test_a_method_that_breaks_its_bounds_raises():
    with pytest.raises(RuntimeError, match="left the bounds"):
        find_recourse(
            [[0.0]],
            ([1.0], -3.0),
            Trespasser(),
            robust_to=BALL,
            cost_weight=0.1,
            bounds=([-1.0], [1.0]),
        )


def test_algorithm_2_ends_even_where_numbers_overflow():
    ball = NormBall(math.inf, 0.0)
    found = find_recourse(
        [[0.0, 1.0]],
        ([1e200, 0.0], 0.0),
        Algorithm2(),
        robust_to=ball,
        cost_weight=0.1,
        feature_costs=[1e-200, 1.0],
    )
    assert found.steps[0] <= 5


@pytest.mark.parametrize("method", [Roar(max_steps=1), Algorithm1(max_steps=1)])
def test_out_of_steps_does_not_hide_that_the_model_refuses(method):
    """One step is too few for both: to converge, and to be approved."""
    points = np.array([[0.0, 2.0], [-1.0, 0.5]])
    result = find_recourse(
        points,
        ([1.0, -0.5], -3.0),
        method,
        robust_to=NormBall(1, 0.1),
        cost_weight=0.1,
    )
    assert (result.current_validity < 0.5).all()
    assert (result.method_status == MethodStatus.NOT_VALID).all()
    assert (result.steps >= 1).all()
    long = find_recourse(
        points,
        ([1.0, -0.5], 50.0),
        method,
        robust_to=NormBall(1, 0.1),
        cost_weight=0.1,
    )
    assert (long.method_status == MethodStatus.STEP_LIMIT).all()  # approved: why it stopped
