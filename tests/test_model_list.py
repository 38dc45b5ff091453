"""Lists of models: yes from all of them, proven by the mixture that binds."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from discrete_problems import best_score_by_force, by_force, random_discrete
from oracle import oracle
from problems import random_problem
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast import Ellipsoid, ModelList, NormBall, Status
from holdfast.continuous.frontier import Frontier
from holdfast.continuous.solve import solve_problem
from holdfast.datasets import load_german
from holdfast.discrete import DiscreteProblem, Group, largest_reachable_score, solve_discrete
from holdfast.problem import RecourseProblem


def with_list(rng: np.random.Generator, problem: RecourseProblem, **fixed) -> RecourseProblem:
    """Put a random list in the place of the ball of a random problem."""
    spread, m = float(rng.choice([0.05, 0.3, 1.0])), fixed.get("m", int(rng.integers(1, 9)))
    coef, cost = problem.coef[0], problem.feature_costs[0]  # costs know the units of features
    size = cost * (np.abs(coef / cost).max() + 1e-3)
    models = [
        (coef + spread * size * rng.normal(size=coef.size), float(rng.normal() * spread - 1.0))
        for _ in range(m)
    ]
    return replace(problem, robust_to=ModelList(models))


def all_models(problem: RecourseProblem, i: int) -> tuple[np.ndarray, np.ndarray]:
    row = problem.row(i)
    coefs = np.vstack([row.coef, problem.robust_to.coefs])
    return coefs, np.append(row.intercept, problem.robust_to.intercepts)


@pytest.mark.parametrize("seed", range(60))
def test_the_cost_of_a_guarantee_agrees_with_highs(seed):
    rng = np.random.default_rng(seed)
    problem = with_list(rng, random_problem(rng, n=10, d=int(rng.integers(1, 12))))
    result, level = solve_problem(problem, guarantee=0.6), problem.loss.score(0.6)
    for i in range(10):
        row, (coefs, intercepts) = problem.row(i), all_models(problem, i)
        units = 1.0 / row.feature_costs[0]  # in which every feature costs 1
        scores = coefs @ row.X[0] + intercepts
        rooms = np.append(row.upper[0] - row.X[0], row.X[0] - row.lower[0])
        found = linprog(
            np.ones(2 * len(units)),
            A_ub=np.column_stack([-coefs * units, coefs * units]),
            b_ub=scores - level,
            bounds=[(0.0, room) for room in rooms / np.append(units, units)],
        )
        if found.status == 0:
            assert result.cost[i] == pytest.approx(found.fun, rel=1e-6, abs=1e-7)
            assert result.status[i].is_proven
        elif found.status == 2:
            assert np.isinf(result.cost[i])


@pytest.mark.parametrize("seed", range(0, 24))
def test_the_price_agrees_with_clarabel(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, n=1, d=int(rng.integers(1, 9)), loss="logistic")
    if problem.feature_costs.max() > 100.0 * problem.feature_costs.min():
        problem = replace(problem, feature_costs=np.ones((1, problem.n_features)))
    problem = with_list(rng, problem)
    ours = solve_problem(problem, cost_weight=0.1)
    theirs, _ = oracle(problem, cost_weight=0.1)
    assert ours.price[0] == pytest.approx(theirs, rel=1e-5, abs=1e-5)
    assert ours.gap[0] <= 1e-9 * (1.0 + ours.price[0])


@pytest.mark.parametrize("loss", ["logistic", "probit", "hinge", "squared_hinge", "squared_error"])
def test_every_loss_is_proven(loss):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        problem = with_list(rng, random_problem(rng, n=10, d=5, loss=loss))
        result = solve_problem(problem, cost_weight=0.05)
        known = (result.status != Status.GAP_OPEN) | (result.multiplier > 1e3)
        assert known.all(), (seed, result.gap)


def test_the_certificate_names_the_models_that_bind():
    others = ModelList([([1.0, 0.2], -1.1), ([0.2, 1.0], -1.0), ([5.0, 5.0], 3.0)])
    result = holdfast.solve([[0.0, 0.0]], [1.0, 1.0], -1.0, robust_to=others, guarantee=0.5)
    proof = result.certificate(0)
    assert proof.weights == pytest.approx([0.0, 0.5, 0.5, 0.0])
    coefs, intercepts = all_models(result.problem, 0)
    coef, intercept = proof.worst_model
    assert coef == pytest.approx(proof.weights @ coefs)
    assert intercept == pytest.approx(proof.weights @ intercepts)
    assert (
        holdfast.solve([[0.0]], [1.0], -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
        .certificate(0)
        .weights
        is None
    )


def test_a_list_of_todays_model_is_todays_model_alone():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, n=40, d=6)
    problem = replace(problem, coef=problem.coef[:1], intercept=problem.intercept[:1])
    same = ModelList([(problem.coef[0], float(problem.intercept[0]))] * 2)
    for goal in ({"guarantee": 0.6}, {"cost_weight": 0.1}):
        one = solve_problem(replace(problem, robust_to=same), **goal)
        two = solve_problem(replace(problem, robust_to=NormBall(2, 0.0)), **goal)
        assert one.price == pytest.approx(two.price, rel=1e-9)


def test_the_order_of_the_models_does_not_matter():
    rng = np.random.default_rng(2)
    problem = with_list(rng, random_problem(rng, n=40, d=6), m=7)
    turned = ModelList(list(problem.robust_to.models)[::-1])
    one = solve_problem(problem, cost_weight=0.1)
    two = solve_problem(replace(problem, robust_to=turned), cost_weight=0.1)
    assert one.price == pytest.approx(two.price, rel=1e-9)


def test_a_row_gives_the_same_bits_in_any_batch_and_on_any_number_of_threads():
    rng = np.random.default_rng(5)
    problem = with_list(rng, random_problem(rng, n=600, d=9))
    whole = solve_problem(problem, guarantee=0.6, n_jobs=2)
    alone = [solve_problem(problem.row(i), guarantee=0.6, n_jobs=1) for i in range(0, 600, 37)]
    assert np.array_equal(
        whole.recourse_array[::37], [one.recourse_array[0] for one in alone], equal_nan=True
    )


@pytest.mark.parametrize("seed", range(10))
def test_the_frontier_has_exact_breakpoints(seed):
    rng = np.random.default_rng(seed)
    frontier = Frontier(with_list(rng, random_problem(rng, n=1, d=5)).row(0))
    table = frontier.to_frame()
    assert np.all(np.diff(table["worst_case_score"]) > 0.0)
    assert np.all(np.diff(table["cost"]) > 0.0)
    for score, cost in zip(table["worst_case_score"], table["cost"], strict=True):
        assert frontier.at_score(score - 1e-9).cost[0] == pytest.approx(cost, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_the_discrete_search_agrees_with_force(seed):
    rng = np.random.default_rng(seed)
    problem = random_discrete(rng, n=2, p=2.0)
    problem = replace(problem, base=with_list(rng, problem.base))
    goal = {"guarantee": 0.5} if seed % 3 else {"cost_weight": 0.1}
    result = solve_discrete(problem, n_jobs=1, **goal)
    for i in range(2):
        best = by_force(problem, i, **goal)
        assert result.price[i] == pytest.approx(best, rel=1e-7, abs=1e-7)
        if np.isfinite(best):
            assert result.lower_bound[i] <= best + 1e-7 * (1.0 + abs(best))
            assert result.status[i].is_proven or np.isinf(problem.base.upper).any()


@pytest.mark.parametrize("seed", range(8))
def test_the_largest_reachable_score_agrees_with_force(seed):
    rng = np.random.default_rng(seed)
    problem = random_discrete(rng, n=2, p=2.0, continuous=0, whole=2)
    base = with_list(rng, problem.base)
    base = replace(base, lower=base.X - 5.0, upper=base.X + 5.0)
    problem = replace(problem, base=base)
    ours = largest_reachable_score(problem, n_jobs=1)
    theirs = [best_score_by_force(problem, i) for i in range(2)]
    assert ours == pytest.approx(theirs, rel=1e-7, abs=1e-7)


def test_lists_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least one pair"):
        ModelList([])
    with pytest.raises(ValueError, match=r"models\[1\] has 1 coefficients, but models\[0\] has 2"):
        ModelList([([1.0, 2.0], 0.0), ([1.0], 0.0)])
    with pytest.raises(ValueError, match=r"models\[0\] has missing"):
        ModelList([([1.0, np.nan], 0.0)])
    with pytest.raises(ValueError, match=r"models\[0\] is dict"):
        ModelList([{"coef": [1.0]}])
    with pytest.raises(ValueError, match=r"intercept of models\[0\] has 2 numbers"):
        ModelList([([1.0], [0.0, 1.0])])
    with pytest.raises(ValueError, match="models have 2 coefficients each, but there are 3"):
        holdfast.solve(
            np.zeros((1, 3)), np.ones(3), robust_to=ModelList([([1.0, 1.0], 0.0)]), guarantee=0.5
        )


def test_it_is_spoken_of_in_plain_words():
    models = ModelList([([0.5], -1.0), ([1.0], -1.0)])
    result = holdfast.solve(
        [[0.0]], [1.0], -1.0, robust_to=models, guarantee=0.5, bounds=([0.0], [1.5])
    )
    assert repr(models) == "ModelList(<2 models, features: 1>)"
    assert "3 models" in repr(result)
    said = result.explain(0)
    assert "each of the 3 models" in said
    assert "radius" not in said
    assert "today's model alone" not in said


@pytest.mark.parametrize("kind", ["list", "ellipsoid"])
def test_a_model_that_hardly_tells_options_apart_does_not_loosen_the_proof(kind):
    """The unit of the promise is what the set can bring, not what today's model does."""
    feasible = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        today = np.repeat(rng.normal(size=3), 4) + 1e-12 * rng.normal(size=12)
        start = np.tile([1.0, 0.0, 0.0, 0.0], 3)
        own = float(today @ start)
        if kind == "list":
            models = ModelList([(today + rng.normal(size=12), -1.0 - own) for _ in range(3)])
            intercept = 5.0 - own
        else:
            root = rng.normal(size=(13, 3))
            models, intercept = Ellipsoid(root @ root.T, 0.5), 1.0 - own
        base = RecourseProblem.build(start[None], today, intercept, robust_to=models)
        problem = DiscreteProblem(
            base,
            np.zeros((1, 12)),
            np.zeros((1, 12)),
            [Group(np.arange(4 * g, 4 * g + 4), np.eye(4)) for g in range(3)],
            np.zeros((1, 3), dtype=np.int64),
            [np.append(0.0, rng.uniform(0.5, 3.0, size=3))[None] for _ in range(3)],
        )
        best = by_force(problem, 0, guarantee=0.5)
        result = solve_discrete(problem, guarantee=0.5, n_jobs=1)
        feasible += np.isfinite(best)
        assert result.cost[0] == pytest.approx(best, rel=1e-9)
    assert feasible > 5


def test_the_weights_of_somebody_who_is_approved_are_todays_model():
    others = ModelList([([1.0], 0.5), ([2.0], 0.5)])
    for goal in ({"guarantee": 0.5}, {"cost_weight": 100.0, "loss": "squared_error"}):
        result = holdfast.solve([[3.0]], [1.0], 0.0, robust_to=others, **goal)
        assert result.certificate(0).weights.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", ["list", "ellipsoid"])
def test_advice_in_raw_units_holds_under_every_model(kind):
    """Whole pipelines, each with scalers of its own; and sets that were copied or pickled."""
    table, approved = load_german().features, load_german().approved
    table = table[["duration", "credit_amount", "savings_status", "housing"]]
    columns = make_column_transformer(
        (StandardScaler(), ["duration", "credit_amount"]),
        (OneHotEncoder(), ["savings_status", "housing"]),
    )

    def fitted(rows):
        model = make_pipeline(clone(columns), LogisticRegression())
        return model.fit(table.iloc[rows], approved.iloc[rows])

    rng = np.random.default_rng(0)
    model = fitted(np.arange(1000))
    past = [fitted(rng.permutation(1000)[:700]) for _ in range(3)]
    models = (
        holdfast.sets.from_models(past, model, table)
        if kind == "list"
        else holdfast.sets.fisher(model, table, radius=1.5)
    )
    actions = holdfast.ActionSet.from_data(table, immutable=["housing"])
    denied = table[~model.predict(table)].iloc[:30]
    frames = []
    for robust_to in (models, pickle.loads(pickle.dumps(models))):
        recourse = holdfast.RobustRecourse(
            model, robust_to=robust_to, actions=actions, guarantee=0.5
        )
        advice = recourse.recommend(denied)
        frames.append(advice.to_frame())
        assert models.crowd.replace("each", "Each").replace("every", "Every") in advice.explain(
            advice.labels[0]
        )
        if kind == "list":
            after = advice.after()
            assert len(after) > 10
            assert min(one.predict_proba(after)[:, 1].min() for one in past) >= 0.5
    assert frames[0].equals(frames[1])


def test_weights_are_those_of_the_worst_model_even_where_nothing_was_to_be_proven():
    models = ModelList([([0.67], -1.0), ([0.98], -1.2)])
    result = holdfast.solve(
        [[100.0]], [0.74], -1.0, robust_to=models, cost_weight=1.0, loss="squared_hinge"
    )
    proof = result.certificate(0)
    assert proof.multiplier == 0.0
    coef = proof.weights @ np.array([[0.74], [0.67], [0.98]])
    np.testing.assert_array_equal(coef, proof.worst_model[0])
