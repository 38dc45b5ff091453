"""What was handed in and what is handed out are nobody else's arrays."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import holdfast
from holdfast import NormBall
from holdfast.problem import RecourseProblem

ARRAYS = ("X", "coef", "intercept", "feature_costs", "lower", "upper")


def given() -> dict[str, np.ndarray]:
    """Arguments that could be used as they are: float64, C-ordered, of full shape."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4, 3))
    return {
        "X": points,
        "coef": rng.normal(size=(4, 3)),
        "intercept": np.full(4, -1.0),
        "feature_costs": rng.uniform(1.0, 2.0, size=(4, 3)),
        "lower": points - 5.0,
        "upper": points + 5.0,
    }


def build(arrays: dict[str, np.ndarray], ball: NormBall) -> RecourseProblem:
    return RecourseProblem.build(
        arrays["X"],
        arrays["coef"],
        arrays["intercept"],
        robust_to=ball,
        feature_costs=arrays["feature_costs"],
        bounds=(arrays["lower"], arrays["upper"]),
    )


def test_a_problem_keeps_what_it_was_given():
    arrays, scale = given(), np.ones(3)
    problem = build(arrays, NormBall(1, 0.1, scale=scale))
    before = holdfast.continuous.solve.solve_problem(problem, guarantee=0.5)
    kept = {name: getattr(problem, name).copy() for name in ARRAYS}
    proof, sentence = before.certificate(0), before.explain(0)
    for values in (*arrays.values(), scale):
        values[...] = 77.0
    for name in ARRAYS:
        assert not np.shares_memory(getattr(problem, name), arrays[name])
        np.testing.assert_array_equal(getattr(problem, name), kept[name])
    assert problem.robust_to.scale == (1.0, 1.0, 1.0)
    again = holdfast.continuous.solve.solve_problem(problem, guarantee=0.5)
    np.testing.assert_array_equal(again.recourse, before.recourse)
    assert before.certificate(0).lower_bound == proof.lower_bound
    assert before.explain(0) == sentence


@pytest.mark.parametrize("name", ["X", "coef", "feature_costs"])
def test_data_frames_too(name):
    arrays = given()
    intercept = arrays.pop("intercept")
    frames = {key: pd.DataFrame(value, columns=list("abc")) for key, value in arrays.items()}
    problem = build({**frames, "intercept": intercept}, NormBall(1, 0.1))
    kept = getattr(problem, name).copy()
    frames[name].iloc[:, :] = 77.0
    np.testing.assert_array_equal(getattr(problem, name), kept)


def test_a_problem_cannot_be_written():
    problem = build(given(), NormBall(2, 0.1))
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(problem, name)[...] = 1.0


@pytest.mark.parametrize("goal", [{"guarantee": 0.5}, {"cost_weight": 0.1}])
def test_a_result_is_not_the_problem(goal):
    arrays = given()
    arrays["intercept"][:2] = 50.0  # approved as they are: recourse and point are the same numbers
    for ball in (NormBall(1, 0.1), NormBall(2, 0.0), NormBall(np.inf, 0.1)):
        problem = build(arrays, ball)
        result = holdfast.continuous.solve.solve_problem(problem, **goal)
        out = [getattr(result, field.name) for field in dataclasses.fields(result)]
        out += [result.recourse, result.action, *result.worst_models()]
        for values in out:
            if isinstance(values, np.ndarray):
                for name in ARRAYS:
                    assert not np.shares_memory(values, getattr(problem, name)), name


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda result: dataclasses.replace(result, method="another"),
        lambda result: pickle.loads(pickle.dumps(result)),
    ],
    ids=["copy", "deepcopy", "replace", "pickle"],
)
def test_a_copied_result_still_proves_its_rows(copied):
    result = holdfast.continuous.solve.solve_problem(
        build(given(), NormBall(2, 0.1)), guarantee=0.5
    )
    twin = copied(result)
    for one, other in zip(result.worst_models(), twin.worst_models(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert twin.certificate(0).multiplier == result.certificate(0).multiplier
    assert twin.frontier(0).max_score == result.frontier(0).max_score


def test_a_frontier_is_not_the_problem():
    curve = holdfast.frontier([0.0, 2.0], [1.0, -0.5], -1.0, robust_to=NormBall(1, 0.1))
    for point in (curve.at_score(curve.start_score), curve.at_guarantee(0.5)):
        assert not np.shares_memory(point.recourse, curve.problem.X)
