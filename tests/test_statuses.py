"""Each kind of row gets its own status and sentence, and never spoils its neighbours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problems import EXPONENTS, random_problem
from sklearn.linear_model import LogisticRegression

import holdfast
from holdfast import NormBall, Status, solve
from holdfast.continuous.solve import solve_problem
from holdfast.discrete import DiscreteProblem, Group, solve_discrete
from holdfast.models.origin import Origin
from holdfast.problem import RecourseProblem
from holdfast.result import MethodStatus
from holdfast.result.status import believed_bound

COEF = np.array([1.0, -0.5])


@pytest.mark.parametrize("p", EXPONENTS)
def test_bad_rows_do_not_spoil_their_neighbours(p):
    good = np.array([[0.0, 2.0], [0.5, 1.0]])
    mixed = np.array([[0.0, 2.0], [np.nan, 1.0], [9.0, 0.0], [np.inf, 0.0], [0.5, 1.0], [-7.0, 0]])
    lower, upper = [-5.0, -5.0], [10.0, 10.0]
    goal = {"robust_to": NormBall(p, 0.2), "bounds": (lower, upper), "guarantee": 0.5}
    alone, together = solve(good, COEF, -1.0, **goal), solve(mixed, COEF, -1.0, **goal)
    assert list(together.status) == [
        Status.OPTIMAL,
        Status.INVALID_INPUT,
        Status.ALREADY_VALID,
        Status.INVALID_INPUT,
        Status.OPTIMAL,
        Status.OUT_OF_BOUNDS,
    ]
    np.testing.assert_array_equal(together.recourse[[0, 4]], alone.recourse)
    np.testing.assert_array_equal(together.gap[[0, 4]], alone.gap)
    assert np.isnan(together.recourse[[1, 3, 5]]).all()
    assert np.isnan(together.price[[1, 3, 5]]).all()
    assert together.cost[2] == 0.0
    assert "x0 is nan" in together.explain(1)
    assert "outside its own bounds [-5, 10]" in together.explain(5)


@pytest.mark.parametrize("p", EXPONENTS)
def test_infeasible_rows_say_what_could_be_had(p):
    points = np.array([[0.0, 2.0], [0.0, 0.0]])
    bounds = (np.array([-1.0, 1.0]), np.array([1.5, 2.5]))
    goal = {"robust_to": NormBall(p, 0.8), "bounds": (bounds[0] - 1, bounds[1]), "guarantee": 0.9}
    result = solve(points, COEF, 0.1, **goal)
    assert list(result.status) == [Status.INFEASIBLE, Status.INFEASIBLE]
    assert np.isnan(result.recourse).all()
    assert np.isinf(result.cost).all()
    assert np.isinf(result.price).all()
    assert np.isinf(result.lower_bound).all()  # proven: no point of the box reaches it
    assert (result.gap == 0).all()
    reach = result.reachable_validity[0]
    for shift, status in ((-1e-6, Status.OPTIMAL), (1e-6, Status.INFEASIBLE)):
        near = solve(points[:1], COEF, 0.1, **{**goal, "guarantee": reach + shift})
        assert near.status[0] is status
    # even today's model cannot give 0.9 here: its best is sigmoid(1.5 - 0 + 0.1)
    assert np.isnan(result.reachable_radius).all()
    assert "It is impossible even with today's model alone" in result.explain(0)


@pytest.mark.parametrize("p", EXPONENTS)
def test_largest_radius_is_the_largest(p):
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(40):
        problem = random_problem(rng, n=20, p=p)
        result = solve_problem(problem, guarantee=0.6)
        lost = np.flatnonzero((result.status == Status.INFEASIBLE) & (result.reachable_radius > 0))
        for i in lost[:3]:
            row, radius, ball = problem.row(i), result.reachable_radius[i], problem.robust_to
            assert radius <= ball.radius * (1 + 1e-12)
            for factor, feasible in ((1 - 1e-6, True), (1 + 1e-6, False)):
                if radius * factor > ball.radius:
                    continue
                trial = NormBall(p, radius * factor, scale=ball.scale, intercept=ball.intercept)
                again = solve(
                    row.X,
                    row.coef,
                    row.intercept,
                    robust_to=trial,
                    feature_costs=row.feature_costs,
                    bounds=(row.lower, row.upper),
                    guarantee=0.6,
                )
                assert (again.status[0] is not Status.INFEASIBLE) == feasible
            seen += 1
    assert seen > 10


def test_price_mode_statuses():
    ball = NormBall(1, 0.1)
    points = [[0.0, 2.0], [0.0, 2.0], [20.0, 0.0]]
    cheap = solve(points, COEF, -1.0, robust_to=ball, cost_weight=0.1)
    assert list(cheap.status) == [Status.OPTIMAL, Status.OPTIMAL, Status.ALREADY_VALID]
    dear = solve(points, COEF, -1.0, robust_to=ball, cost_weight=5.0)
    assert dear.status[0] is Status.STILL_REFUSED
    assert dear.cost[0] == 0.0
    assert dear.explain(0) == (
        "No change is worth its cost: staying put provably has the lowest price, but today's "
        "model still refuses."
    )


def test_the_best_trade_off_may_still_be_refused():
    """A proven price says nothing of a yes: a point that today's model refuses says so."""
    ball = NormBall(1, 0.1)
    for loss in ("logistic", "hinge", "squared_error"):
        more = {"robust_to": ball, "cost_weight": 0.3, "bounds": ([-9.0, 0.0], [0.5, 9.0])}
        result = solve([[0.0, 1.0]], [2.0, -0.5], -3.0, loss=loss, **more)
        if loss != "squared_error":
            assert result.cost[0] > 0.0
        assert result.problem.score(result.recourse)[0] < 0.0
        assert result.status[0] is Status.STILL_REFUSED
        assert result.status[0].is_proven
        assert "still refuses" in result.explain(0)
    little = solve([[0.0, 1.0]], [2.0, -0.5], -3.0, robust_to=ball, guarantee=0.05)
    assert little.status[0] is Status.STILL_REFUSED  # as from every other door
    assert "still refuses" in little.explain(0)
    less = solve([[0.0, 1.0]], [2.0, -0.5], -3.0, robust_to=ball, guarantee=0.01)
    assert less.status[0] is Status.STILL_REFUSED
    assert less.cost[0] == 0.0
    assert less.explain(0).startswith("The guarantee is met without a change")


def test_per_row_bounds_that_contradict_each_other_are_that_rows_problem():
    lower = np.array([[-1.0, -1.0], [2.0, -1.0]])
    upper = np.array([[1.0, 1.0], [1.0, 1.0]])
    result = solve(
        np.zeros((2, 2)),
        COEF,
        0.0,
        robust_to=NormBall(1, 0.1),
        bounds=(lower, upper),
        guarantee=0.5,
    )
    assert list(result.status) == [Status.OPTIMAL, Status.INVALID_INPUT]
    assert "bounds of x0 are [2, 1]" in result.explain(1)


def test_data_frames_keep_their_names():
    people = pd.DataFrame({"income": [0.0, 1.0], "debt": [2.0, np.nan]}, index=["ann", "bob"])
    coef = pd.Series({"debt": -0.5, "income": 1.0})  # in another order: aligned by name
    result = solve(people, coef, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
    assert list(result.recourse.columns) == ["income", "debt"]
    assert list(result.action.index) == ["ann", "bob"]
    table = result.to_frame()
    assert table.loc["ann", "recourse.income"] == pytest.approx(2.0 / 0.9)
    assert table.loc["ann", "action.debt"] == 0.0
    assert table.loc["bob", "status"] == "invalid input"
    assert "debt is nan" in table.loc["bob", "message"]
    unnamed = solve(people.to_numpy(), [1.0, -0.5], -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
    np.testing.assert_array_equal(unnamed.recourse, result.recourse.to_numpy())
    assert {"recourse.x0", "gap", "worst_case_validity"} <= set(unnamed.to_frame().columns)


def test_an_empty_batch_gives_an_empty_result():
    for goal in ({"guarantee": 0.5}, {"cost_weight": 0.1}):
        result = solve(np.empty((0, 2)), COEF, robust_to=NormBall(2, 0.1), **goal)
        assert len(result) == 0
        assert result.to_frame().empty


def test_input_is_never_changed():
    points = np.zeros((3, 2))
    result = solve(points, COEF, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
    assert points.flags.writeable
    assert not points.any()
    with pytest.raises(ValueError, match="read-only"):
        result.problem.X[0, 0] = 1.0


def test_summary_counts_rows():
    result = solve([[0.0, 2.0]], COEF, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5)
    assert repr(result) == "<RecourseResult, rows: 1 (guarantee=0.5, p=1, radius=0.1): 1 optimal>"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robust_to": {"p": 0.5}}, "p = 0.5 is not allowed; it must be from 1 to inf"),
        ({"robust_to": {"p": "two"}}, "p = 'two' is not allowed; it must be from 1 to inf$"),
        ({"robust_to": {"p": "inf"}}, "from 1 to inf; 'inf' is text, not a number$"),
        ({"robust_to": {"radius": "0.1"}}, "finite; '0.1' is text, not a number$"),
        (
            {"robust_to": {"radius": -1}},
            "radius = -1 is not allowed; it must be at least 0 and finite",
        ),
        ({"robust_to": {"radius": np.inf}}, "radius = inf is not allowed"),
        ({"robust_to": {"scale": [1.0, -2.0]}}, "scale"),
        ({"robust_to": {"scale": [1.0]}}, "scale has 1 numbers, but there are 2 features"),
        ({"robust_to": {"intercept": -1.0}}, "intercept = -1.0 is not allowed"),
        ({"cost_weight": 0.0}, "cost_weight = 0.0 is not allowed; it must be a positive, finite"),
        ({"cost_weight": np.inf}, "cost_weight = inf is not allowed"),
        ({"cost_weight": "much"}, "cost_weight = 'much' is not allowed"),
        ({"cost_weight": None, "guarantee": 1.0}, "guarantee = 1.0 is not allowed"),
        ({"cost_weight": None, "guarantee": 0.0}, "strictly between 0 and 1$"),
        ({"cost_weight": None, "guarantee": "0.6"}, "0 and 1; '0.6' is text, not a number$"),
        ({"cost_weight": None, "guarantee": 60}, r"0 and 1; did you mean 0\.6\?$"),
        ({"cost_weight": None, "guarantee": 100}, "strictly between 0 and 1$"),
        ({"cost_weight": None}, "give exactly one of them"),
        ({"guarantee": 0.5}, "give exactly one of them"),
        ({"loss": "cubic"}, "loss = 'cubic' is not known; available: hinge, logistic"),
        ({"X": [1.0, 2.0]}, r"X has shape \(2,\), expected \(n, d\)"),
        ({"X": [["a", "b"]]}, "X cannot be read as numbers"),
        ({"coef": [1.0, 2.0, 3.0]}, r"coef has shape \(3,\), expected \(2,\) or \(3, 2\)"),
        ({"coef": [1.0, np.nan]}, r"coef\[0, 1\] = nan is not allowed; it must be finite"),
        ({"intercept": [1.0, 2.0]}, r"intercept has shape \(2,\), expected a number or \(3,\)"),
        ({"feature_costs": [1.0, 0.0]}, r"feature_costs\[0, 1\] = 0.0 is not allowed"),
        ({"feature_costs": [1.0]}, "feature_costs has shape"),
        ({"bounds": ([0, 0], [1, -1])}, r"bounds of feature 1 are \[0.0, -1.0\]"),
        ({"bounds": [1.0]}, r"bounds = .* a pair \(lower, upper\)"),
        ({"bounds": (np.zeros(3), np.ones(2))}, r"lower bounds has shape \(3,\)"),
        ({"n_jobs": 0}, "n_jobs = 0 is not allowed"),
        ({"robust_to": {"p": True}}, "p = True is not allowed"),
        ({"robust_to": {"scale": pd.Series([1.0, 2.0])}}, "scale is given by position"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    ball = {"p": 1.0, "radius": 0.1, **change.pop("robust_to", {})}
    arguments = {"X": np.zeros((3, 2)), "coef": COEF, "intercept": 0.0, "cost_weight": 0.1}
    with pytest.raises(ValueError, match=message):
        solve(**{**arguments, **change}, robust_to=NormBall(**ball))


def test_unknown_options_are_errors():
    with pytest.raises(TypeError, match="feature_cost"):
        solve([[0.0]], [1.0], robust_to=NormBall(1, 0.1), cost_weight=1, feature_cost=[1.0])
    with pytest.raises(TypeError, match="not a set of models"):
        solve([[0.0]], [1.0], robust_to=0.1, cost_weight=1)


def test_names_that_do_not_fit_are_errors():
    people = pd.DataFrame({"income": [0.0], "debt": [2.0]})
    with pytest.raises(ValueError, match=r"unknown \['depts'\], missing \['debt'\]"):
        solve(people, {"income": 1.0, "depts": 1.0}, robust_to=NormBall(1, 0.1), guarantee=0.5)
    with pytest.raises(ValueError, match="not a data frame"):
        solve(people.to_numpy(), {"income": 1.0}, robust_to=NormBall(1, 0.1), guarantee=0.5)


def test_a_hinge_has_no_probabilities_but_a_boundary():
    ball = NormBall(2, 0.1)
    result = solve([[0.0, 2.0]], COEF, -1.0, robust_to=ball, guarantee=0.5, loss="hinge")
    assert result.worst_case_score[0] >= 0.0
    assert np.isnan(result.worst_case_validity[0])
    with pytest.raises(ValueError, match="hinge loss has no probabilities"):
        solve([[0.0, 2.0]], COEF, -1.0, robust_to=ball, guarantee=0.7, loss="hinge")


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("loss", ["logistic", "probit"])
def test_the_guarantee_holds_to_the_last_bit(tau, loss):
    rng = np.random.default_rng(2)
    for p in EXPONENTS:
        result = solve(
            rng.normal(size=(300, 4)),
            [1.0, -0.7, 0.3, 2.0],
            -1.0,
            robust_to=NormBall(p, 0.2),
            guarantee=tau,
            loss=loss,
        )
        assert np.all(result.worst_case_validity >= tau)


def test_everything_public_has_an_example():
    for name in holdfast.__all__:
        assert ">>>" in getattr(holdfast, name).__doc__, name


def test_columns_named_by_numbers_work_like_any_other():
    people = pd.DataFrame([[0.0, 2.0]])
    ball = NormBall(1, 0.1)
    by_position = solve(people.to_numpy(), COEF, -1.0, robust_to=ball, guarantee=0.5)
    for coef in (pd.Series({1: -0.5, 0: 1.0}), {1: -0.5, 0: 1.0}, pd.DataFrame([COEF])):
        by_name = solve(people, coef, -1.0, robust_to=ball, guarantee=0.5)
        np.testing.assert_array_equal(by_name.recourse, by_position.recourse)
        assert list(by_name.recourse.columns) == [0, 1]


def test_scalars_broadcast():
    wide = solve(
        [[0.0, 2.0]], COEF, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5, bounds=(-9, 9)
    )
    assert wide.status[0] is Status.OPTIMAL
    tight = solve(
        [[0.0, 2.0]], COEF, -1.0, robust_to=NormBall(1, 0.1), guarantee=0.5, bounds=(0, 2)
    )
    np.testing.assert_array_equal(tight.problem.upper, [[2.0, 2.0]])


def test_a_gap_that_does_not_close_is_said_to_be_open():
    """A radius a hair below the length of the model: the cost is enormous, and rounding shows."""
    result = solve(
        [[0.3, 0.2]], [1.0, 1.0], 0.1, robust_to=NormBall(10, 2**0.1 * (1 - 1e-11)), guarantee=0.6
    )
    assert result.status[0] is Status.GAP_OPEN
    assert result.gap[0] > 1e-9 * (1 + result.cost[0])
    assert "All that is proven is that no recourse has a price below" in result.explain(0)


def test_the_page_lists_every_status_with_its_sentence():
    page = (Path(__file__).parent.parent / "docs" / "actions.md").read_text()
    listed = re.findall(r"^\| `([A-Z_]+)` \| (.*) \|$", page, flags=re.MULTILINE)
    assert listed == [(status.name, status.sentence) for status in Status]


def on_the_boundary(seed):
    """A model, and people to whom it gives a score of 0, up to rounding."""
    rng = np.random.default_rng([32, seed])
    table = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    good = table @ rng.normal(size=6) + rng.logistic(size=300) > 0.0
    model, people = LogisticRegression().fit(table, good), table[:60].copy()
    for _ in range(3):
        people["a"] -= model.decision_function(people) / model.coef_[0, 0]
    return model, people


@pytest.mark.parametrize("goal", [{"cost_weight": 50.0}, {"guarantee": 0.5}])
def test_one_voice_says_whom_the_model_refuses(goal):
    """Scores that are computed apart differ by their last bits, and here these decide."""
    refused = 0
    for seed in range(10):
        model, people = on_the_boundary(seed)
        found = holdfast.find_recourse(people, model, robust_to=NormBall(2, 0.0), n_jobs=1, **goal)
        said = found.status == Status.STILL_REFUSED
        np.testing.assert_array_equal(said, found.method_status == MethodStatus.NOT_VALID)
        refused += said.sum()
    assert refused > 20


@pytest.mark.parametrize("says", [True, False])
def test_where_a_hair_decides_advice_asks_the_model_itself(monkeypatch, says):
    model, people = on_the_boundary(0)
    actions = holdfast.ActionSet.from_data(people, immutable=list(people))
    asked = {"robust_to": NormBall(2, 0.0), "actions": actions, "cost_weight": 50.0, "n_jobs": 1}
    recourse = holdfast.RobustRecourse(model, **asked)
    ask = Origin.ask_whole

    def answer(self, X):
        return ask(self, X)._replace(accepted=np.full(len(X), says))

    monkeypatch.setattr(Origin, "ask_whole", answer)
    advice = recourse.recommend(people)
    for label in people.index:
        assert (advice.status_of(label) is Status.STILL_REFUSED) == (not says)
        assert ("Today's model would still refuse you" in advice.explain(label)) == (not says)
        assert advice.is_approved(label) is says
    assert (advice.to_frame()["approved"] == says).all()


def test_whom_the_model_approves_it_says_itself():
    """Also of those who have no way, and in a table in single precision."""
    for seed in range(4):
        model, people = on_the_boundary(seed)
        actions = holdfast.ActionSet.from_data(people, immutable=list(people))
        asked = {"robust_to": NormBall(2, 0.0), "actions": actions, "n_jobs": 1}
        for table, wanted in ((people, 0.5), (people, 0.9), (people.astype(np.float32), 0.9)):
            table = table.assign(f=table["f"].where(table.index > 3))  # some cannot be used
            recourse = holdfast.RobustRecourse(model, guarantee=wanted, **asked)
            approved = recourse.recommend(table).to_frame()["approved"]
            assert approved[:4].tolist() == [None] * 4
            assert approved[4:].tolist() == model.predict(table[4:]).tolist()


def test_a_change_that_costs_nothing_is_a_change():
    base = RecourseProblem.build([[1.0, 0.0]], [0.0, 5.0], -3.0, robust_to=NormBall(1, 0.0))
    nothing, free = np.zeros((1, 2)), Group(np.array([0, 1]), np.eye(2))
    problem = DiscreteProblem(base, nothing, nothing, [free], np.array([[0]]), [nothing])
    result = solve_discrete(problem, guarantee=0.5)
    assert result.cost[0] == 0.0
    assert result.recourse_array[0].tolist() == [0.0, 1.0]
    assert result.status[0] is Status.OPTIMAL
    assert result.explain(0) == Status.OPTIMAL.sentence


def test_a_bound_that_an_answer_refutes_is_not_believed():
    price = np.array([1.0, 1.0, 1.0, np.inf])
    bound = np.array([0.5, 1.0 + 1e-12, 1.1, np.inf])
    believed = believed_bound(price, bound, np.full(4, 1e-9))
    np.testing.assert_array_equal(believed, [0.5, 1.0, 0.0, np.inf])


def test_a_tolerance_of_0_is_none_for_rows_without_an_answer_either():
    base = RecourseProblem.build([[0.0]], [0.0], -3.0, robust_to=NormBall(1, 0.0))
    nothing = np.zeros((1, 1))
    problem = DiscreteProblem(base, nothing, nothing, [], np.empty((1, 0), dtype=int), [])
    result = solve_discrete(problem, guarantee=0.5, tolerance=0.0)
    assert result.status[0] is Status.INFEASIBLE
