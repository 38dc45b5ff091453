"""Corners in which a solver, a certificate or a reader of arguments once went wrong."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import special

import holdfast
from holdfast import NormBall, Status, solve
from holdfast.problem.losses import LOSSES


def one(start, coef, intercept, ball, **more):
    """Solve one row, check its certificate, and return (status, recourse, price)."""
    result = solve([start], coef, intercept, robust_to=ball, **more)
    return result.status[0], np.asarray(result.recourse)[0], float(result.price[0])


def test_probit_with_a_dear_change_stays_put():
    goal = {"cost_weight": 1e6, "feature_costs": [2.0], "bounds": ([1.0], [5.0]), "loss": "probit"}
    status, x, _ = one([2.0], [-0.01], -1.0, NormBall(math.inf, 0.0), **goal)
    assert (status, x[0]) == (Status.STILL_REFUSED, 2.0)
    slopes = np.geomspace(1e-6, 1e15, 200)
    found = LOSSES["probit"].score_at_slope(slopes)
    assert np.all(np.diff(found) < 0)
    np.testing.assert_allclose(LOSSES["probit"].slope(found), slopes, rtol=1e-12)


@pytest.mark.parametrize("p", [1.0001, 2.0, 50.0, 1000.0, 1e6, math.inf])
def test_large_p_with_a_bound_at_zero(p):
    ball = NormBall(p, 0.5, intercept=False)
    status, x, price = one([1.0], [-2.0], 1.0, ball, bounds=([0.0], [math.inf]), guarantee=0.5)
    assert status is Status.OPTIMAL
    assert x[0] == pytest.approx(0.4)  # 1 - 2 x - 0.5 x = 0
    ball = NormBall(p, 1.0, intercept=False)
    status, x, price = one([-1.0], [3.0], -0.5, ball, bounds=([-5.0], [0.0]), cost_weight=0.1)
    assert (status, x[0]) == (Status.STILL_REFUSED, 0.0)
    assert price == pytest.approx(np.logaddexp(0, 0.5) + 0.1)


def test_frontier_with_a_feature_that_is_never_attacked():
    ball = NormBall(1, 0.1, scale=(2, 0), intercept=False)
    bounds = ([0.0, -5.0], [0.0, 5.0])
    curve = holdfast.frontier([0.0, 1.0], [1.0, 1.0], -2.0, robust_to=ball, bounds=bounds)
    assert curve.max_score == pytest.approx(3.0)
    assert curve.at_guarantee(0.9).cost[0] == pytest.approx(math.log(9) + 1)


@pytest.mark.parametrize(
    ("start", "coef", "intercept", "ball", "more"),
    [
        ([1.2663834562906349], [0.0], 0.0, NormBall(math.inf, 0.1, intercept=False), {}),
        (
            [0.7095104257457493],
            [-0.7304832667224745],
            0.0,
            NormBall(2, 0),
            {"bounds": (0, math.inf)},
        ),
        ([-1.0], [0.0], 1.0, NormBall(3, 1.0), {"loss": "hinge"}),
        ([0.0], [0.5], -0.5, NormBall(2, 0), {"bounds": (0, 1), "feature_costs": 0.4405185846610}),
    ],
)
def test_a_target_at_the_very_limit_is_reached(start, coef, intercept, ball, more):
    status, _, _ = one(start, coef, intercept, ball, guarantee=0.5, **more)
    assert status is Status.OPTIMAL


def test_hinge_that_lands_on_its_kink_is_proven():
    ball, costs = NormBall(2, 0.0), [6.992957859247872]
    more = {"feature_costs": costs, "cost_weight": 0.1, "loss": "hinge"}
    status, x, price = one([0.5], [-1.0], 1.0, ball, **more)
    assert (status, x[0]) == (Status.OPTIMAL, 0.0)
    assert price == pytest.approx(0.1 * costs[0] * 0.5)


def test_a_feature_that_underflows_onto_its_bound_is_proven():
    more = {"bounds": ([0.0], [4.0]), "loss": "hinge", "cost_weight": 0.01}
    assert one([2.0], [0.0], 1.0, NormBall(1000, 0.1), **more)[0] is Status.OPTIMAL


def test_squared_error_with_a_dear_change_is_proven():
    ball = NormBall(3, 0.5, scale=(0.1215597056729345,), intercept=5.0)
    more = {"bounds": ([0.0], [math.inf]), "loss": "squared_error", "cost_weight": 1e6}
    assert one([0.0], [0.5], 2.0, ball, **more)[0] is Status.OPTIMAL


@pytest.mark.parametrize("radius", [1e-300, 1e-20, 1e-16, 1e-12])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, math.inf])
def test_a_tiny_radius_is_hardly_a_radius(p, radius):
    rng = np.random.default_rng(0)
    points, coef = rng.normal(size=(300, 8)), rng.normal(size=8)
    for goal in ({"guarantee": 0.5}, {"cost_weight": 0.05}):
        plain = solve(points, coef, -1.0, robust_to=NormBall(p, 0.0), **goal)
        tiny = solve(points, coef, -1.0, robust_to=NormBall(p, radius), **goal)
        np.testing.assert_allclose(tiny.price, plain.price, rtol=1e-9, atol=1e-9)
        assert not np.any(tiny.status == Status.GAP_OPEN)


def test_lower_bounds_do_not_exceed_exact_prices():
    """Cases in which a bound lay above a feasible price, by rounding of the worst model."""
    result = solve(
        [[292677.1122343562]],
        [2.0],
        0.5,
        robust_to=NormBall(3, 1.0, scale=(2.0,), intercept=5.0),
        loss="squared_error",
        cost_weight=0.01,
    )
    assert result.gap[0] >= -1e-9
    ball = NormBall(2.084472642069097, 0.5, scale=(2.0,))
    result = solve([[-3.0]], [-1.0], 8.809566262828948e-07, robust_to=ball, guarantee=0.5)
    assert result.gap[0] >= -1e-9 * result.cost[0]


def test_scores_of_probabilities_near_one_are_enough_and_hardly_more():
    for probability in 1 - np.geomspace(1e-12, 1e-3, 50):
        score = LOSSES["logistic"].score(probability)
        assert LOSSES["logistic"].probability(score) >= probability
        # one more ulp of the probability is worth this much score here
        ulp = np.spacing(probability) / (1 - probability)
        assert score <= special.logit(probability) + 4 * ulp


def test_distance_does_not_overflow():
    for change in (3.0, 0.2):
        distance = NormBall(1000, 1).distance([0.0], 0.0, [change], 0.0)
        assert distance[0] == pytest.approx(change)
    assert NormBall(2, 1, scale=[0.0]).distance([0.0], 0.0, [1.0], 0.0)[0] == math.inf


def test_a_recourse_too_large_for_a_number_is_none():
    """The score of the second is minus infinity: no number of steps makes up for that."""
    goal = {"robust_to": NormBall(1, 0.0), "guarantee": 0.9}
    with np.errstate(over="ignore"):
        result = solve([[1.0], [1e200]], [[3.0], [-1e200]], 0.0, **goal)
    assert result.has_recourse.tolist() == [True, False]
    assert result.stays.tolist() == [True, False]
    assert result.explain(1).startswith("No recourse was found.")


def test_rows_are_aligned_by_their_labels():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(6, 2)), index=list("abcdef"), columns=["u", "v"])
    lower, upper = people - 1.0, people + 2.0
    coef = pd.DataFrame(rng.normal(size=(6, 2)), index=people.index, columns=["u", "v"])
    intercept = pd.Series(rng.normal(size=6), index=people.index)
    goal = {"robust_to": NormBall(1, 0.1), "cost_weight": 0.1}
    straight = solve(people, coef, intercept, bounds=(lower, upper), **goal)
    order = list("fbdace")
    turned = solve(
        people,
        coef.loc[order, ["v", "u"]],
        intercept[order],
        bounds=(lower.loc[order], upper.loc[order]),
        **goal,
    )
    np.testing.assert_array_equal(straight.recourse, turned.recourse)
    with pytest.raises(ValueError, match="row labels of coef differ from those of X"):
        solve(people, coef.set_axis(list("uvwxyz")), intercept, **goal)


def test_missing_values_of_every_kind_are_that_rows_problem():
    goal = {"robust_to": NormBall(1, 0.1), "guarantee": 0.5}
    frame = pd.DataFrame({"u": pd.array([1, None], dtype="Int64"), "v": [0.5, 0.5]})
    masked = np.ma.masked_array([[1.0, 0.5], [99.0, 0.5]], mask=[[0, 0], [1, 0]])
    for points in (frame, masked, [[1.0, 0.5], [None, 0.5]]):
        result = solve(points, [1.0, 1.0], -3.0, **goal)
        assert list(result.status) == [Status.OPTIMAL, Status.INVALID_INPUT]
        assert isinstance(result.status[1], Status)
    costs = pd.DataFrame([[1.0, 1.0], [1.0, -1.0]])  # a frame says that it has a row for each
    result = solve([[1.0, 0.5]] * 2, [1.0, 1.0], -3.0, feature_costs=costs, **goal)
    assert list(result.status) == [Status.OPTIMAL, Status.INVALID_INPUT]
    assert "cost of x1 is -1" in result.explain(1)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (pd.DataFrame({"age": [30], "job": ["none"]}), "column 'job' holds .*, not numbers"),
        ([["1", "2"]], "X cannot be read as numbers"),
        ([[1j, 2.0]], "X cannot be read as numbers"),
        (None, "^X "),
    ],
)
def test_what_is_no_number_is_refused(points, message):
    with pytest.raises(ValueError, match=message):
        solve(points, [1.0, 1.0], robust_to=NormBall(1, 0.1), guarantee=0.5)


def test_rows_out_of_range_are_named():
    result = solve([[0.0]], [1.0], robust_to=NormBall(1, 0.1), guarantee=0.6)
    for wrong in (7, "ann"):
        with pytest.raises(ValueError, match=r"there is no row .*; the rows are: 0"):
            result.explain(wrong)


def test_zero_starts_are_proven_for_huge_p():
    ball = NormBall(1000, 0.06, scale=(2, 1, 2))
    more = {"cost_weight": 0.066, "feature_costs": [3.0, 3.0, 1.0]}
    assert one([0.0, 0.0, 0.0], [-1.5, 1.0, 0.5], 0.0, ball, **more)[0] is Status.OPTIMAL


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 10.0, math.inf])
def test_the_cheapest_of_several_ends_is_chosen(p):
    ball = NormBall(p, 1.0, scale=(0, 2), intercept=False)
    bounds = ([-3.0, -8.0], [9.0, 7.0])
    status, _, price = one([3.0, -2.0], [-1.0, -2.0], -3.0, ball, bounds=bounds, guarantee=0.5)
    assert status is Status.OPTIMAL
    assert price == pytest.approx(6.0)


def test_p_beyond_all_measure_is_infinity():
    arguments = {"cost_weight": 0.1}
    status, x, price = one([0.0, 1.0], [1.0, 0.5], -2.0, NormBall(1e300, 0.1), **arguments)
    other = one([0.0, 1.0], [1.0, 0.5], -2.0, NormBall(math.inf, 0.1), **arguments)
    assert status is Status.OPTIMAL
    np.testing.assert_array_equal(x, other[1])
    assert price == other[2]


@pytest.mark.parametrize("p", [1.0, math.inf])
def test_points_read_off_a_frontier_keep_the_guarantee(p):
    rng = np.random.default_rng(1)
    for _ in range(60):
        point, coef = rng.normal(size=6) * 100, rng.normal(size=6)
        curve = holdfast.frontier(point, coef, -1.0, robust_to=NormBall(p, 0.1))
        for tau in (0.3, 0.5, 0.77):
            read = curve.at_guarantee(tau)
            score = NormBall(p, 0.1).worst_score(read.recourse, coef, -1.0)[0]
            assert score == read.worst_case_score[0]
            assert score >= LOSSES["logistic"].score(tau)
