"""The walk over a finite set of models, against HiGHS, Clarabel and its own proofs in numpy."""

from __future__ import annotations

import math
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from holdfast import NormBall
from holdfast.core.batch import load_row
from holdfast.core.hull import hull_vertices, new_hull_scratch, solve_hull
from holdfast.core.kinds import make_plan, new_work, read_answer, solve_row
from holdfast.core.row import Row
from holdfast.problem import RecourseProblem
from holdfast.problem.goal import GUARANTEE, PRICE, GoalNumbers
from holdfast.problem.losses import LOSSES, tilted_minimum
from holdfast.problem.outcome import EXHAUSTED, FOUND, UNBOUNDED

CONVEX = [loss for loss in LOSSES.values() if loss.convex]


class Case(NamedTuple):
    """One row and its models."""

    row: Row
    coefs: np.ndarray
    intercepts: np.ndarray

    @property
    def start_score(self) -> float:
        return float((self.coefs @ self.row.start + self.intercepts).min())

    def score(self, x) -> float:
        return float((self.coefs @ x + self.intercepts).min())

    def cost(self, x) -> float:
        return float(np.abs(x - self.row.start) @ self.row.cost)

    def terms(self, x) -> float:
        """The size of what the scores are sums of: they are known to its rounding."""
        reach = np.maximum(np.abs(x), np.abs(self.row.start))
        return float((np.abs(self.coefs) @ reach + np.abs(self.intercepts)).max()) + 1e-300


class Answer(NamedTuple):
    outcome: int
    gain: float
    x: np.ndarray
    weights: np.ndarray


def make(coefs, intercepts, start, lower, upper, cost) -> Case:
    numbers = [np.array(each, dtype=float) for each in (start, lower, upper, cost)]
    return Case(
        Row(np.full(numbers[0].size, np.nan), *numbers),
        np.array(coefs, dtype=float, order="C"),
        np.array(intercepts, dtype=float),
    )


def ask(case: Case, mode: int, level: float, loss: int = 0, scratch=None) -> Answer:
    m, d = case.coefs.shape
    scratch = scratch or new_hull_scratch(m, d)
    x, weights = np.full(d, np.nan), np.full(m, np.nan)
    goal = GoalNumbers(mode, loss, float(level))
    outcome, gain = solve_hull(case.row, case.coefs, case.intercepts, goal, scratch, x, weights)
    if outcome != UNBOUNDED:
        assert np.all((case.row.lower <= x) & (x <= case.row.upper))
        assert np.all(weights >= 0.0)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    return Answer(outcome, gain, x, weights)


# ---- problems ----------------------------------------------------------------------------------


def plain_case(rng, m, d):
    coefs = rng.normal(size=d) + rng.choice([0.1, 0.5, 2.0]) * rng.normal(size=(m, d))
    start, intercepts = rng.normal(size=d), rng.normal(size=m) - 1.0
    lower, upper = start - 3.0 * rng.exponential(size=d), start + 3.0 * rng.exponential(size=d)
    cost = rng.uniform(0.2, 3.0, size=d) if rng.random() < 0.5 else np.ones(d)
    lower[rng.random(d) < 0.25], upper[rng.random(d) < 0.25] = -np.inf, np.inf
    for fixed in (lower, upper, lower, upper):
        at_bound = rng.random(d) < 0.05
        fixed[at_bound] = start[at_bound]
    coefs[:, rng.random(d) < 0.1] = 0.0
    return make(coefs, intercepts, start, lower, upper, cost)


def whole_case(rng, m, d):
    """Small whole numbers: ties everywhere."""
    reach = rng.choice([0.0, 1.0, 2.0, np.inf], p=[0.2, 0.35, 0.35, 0.1], size=(2, d))
    return make(
        rng.integers(-1, 2, size=(m, d)),
        rng.integers(-1, 2, size=m),
        np.zeros(d),
        -reach[0],
        reach[1],
        rng.integers(1, 3, size=d),
    )


def near_case(rng, m, d):
    """Models that hardly differ, or not at all."""
    case = plain_case(rng, m, d)
    spread = 10.0 ** rng.uniform(-15, 0)
    coefs = case.coefs[0] + spread * case.coefs
    return case._replace(coefs=coefs, intercepts=np.full(m, case.intercepts[0]))


def dependent_case(rng, m, d):
    """Models that are mixtures of a few, some of them twice."""
    case, few = plain_case(rng, m, d), int(rng.integers(1, 4))
    shares = rng.dirichlet(np.ones(few), size=m)
    shares = np.round(2.0 * shares) / 2.0 if rng.random() < 0.5 else shares
    models = np.column_stack([rng.normal(size=(few, d)), rng.normal(size=few)])
    coefs, intercepts = np.split(shares @ models, [d], axis=1)
    return case._replace(coefs=np.ascontiguousarray(coefs), intercepts=intercepts[:, 0])


def unit_case(rng, m, d):
    """Euros beside fractions; costs follow the units, or do not."""
    case, units = plain_case(rng, m, d), 10.0 ** rng.uniform(-6, 6, size=d)
    row = case.row
    cost = row.cost / units if rng.random() < 0.7 else row.cost
    row = Row(row.coef, row.start * units, row.lower * units, row.upper * units, cost)
    return case._replace(row=row, coefs=case.coefs / units)


KINDS = [plain_case, whole_case, near_case, dependent_case, unit_case]
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def cases(kind, n, most_models=25, most_features=30):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(n):
        yield rng, kind(rng, int(rng.integers(1, most_models)), int(rng.integers(1, most_features)))


# ---- proofs, from the weights alone ------------------------------------------------------------


def cost_bound(case: Case, weights, mu, t) -> float:
    """No point with the score t costs less."""
    coef, intercept = weights @ case.coefs, weights @ case.intercepts
    row = case.row
    room = np.where(coef > 0.0, row.upper - row.start, row.start - row.lower)
    excess = mu * np.abs(coef) - row.cost
    # a feature without bounds must not pay at all, but for the rounding of the mixture
    noise = 1e-13 * row.cost + 1e-14 * mu * (weights @ np.abs(case.coefs))
    assert np.all(excess[np.isinf(room)] <= noise[np.isinf(room)])
    paid = (excess > 0.0) & np.isfinite(room)
    return mu * (t - intercept - coef @ row.start) - excess[paid] @ room[paid]


def score_bound(case: Case, weights) -> float:
    """No point has a larger score."""
    coef = weights @ case.coefs
    end = np.where(coef > 0.0, case.row.upper, case.row.lower)
    nothing = np.abs(coef) <= 1e-14 * (weights @ np.abs(case.coefs))
    assert np.all(np.isfinite(end) | nothing)
    near = np.where(np.isfinite(end), end, case.row.start)
    return float(weights @ case.intercepts + coef @ near)


def prove_guarantee(case: Case, answer: Answer, t) -> float:
    """Check everything that FOUND says; return the gap."""
    cost, terms = case.cost(answer.x), case.terms(answer.x)
    assert case.score(answer.x) >= t - 1e-12 * terms
    if answer.gain == math.inf:
        assert np.array_equal(answer.x, case.row.start)
        return 0.0
    mu = 1.0 / answer.gain
    gap = cost - cost_bound(case, answer.weights, mu, t)
    assert abs(gap) <= 1e-9 * (1.0 + cost) + 1e-14 * mu * terms
    return gap / (1.0 + cost)


def check_features(case: Case, answer: Answer) -> None:
    """Each feature by itself: at rest, inside its range or at its bound, as its pull says."""
    row, x = case.row, answer.x
    pull = answer.weights @ case.coefs / (answer.gain * row.cost)
    noise = 1e-9 + 1e-13 * (answer.weights @ np.abs(case.coefs)) / (answer.gain * row.cost)
    away = np.sign(x - row.start)
    at_bound = (x == row.lower) | (x == row.upper)
    inside = (away != 0.0) & ~at_bound
    assert np.all(np.abs(pull - away)[inside] <= noise[inside])
    assert np.all((pull * away - 1.0)[(away != 0.0) & at_bound] >= -noise[(away != 0.0) & at_bound])
    rest = away == 0.0
    assert np.all((pull - 1.0)[rest & (x < row.upper)] <= noise[rest & (x < row.upper)])
    assert np.all((-pull - 1.0)[rest & (x > row.lower)] <= noise[rest & (x > row.lower)])


@kinds
def test_a_guarantee_is_proven(kind):
    met = exhausted = 0
    for rng, case in cases(kind, 1200):
        t = case.start_score + rng.choice([0.01, 1.0, 10.0]) * rng.random()
        t = float(np.round(t)) if rng.random() < 0.2 else t
        answer = ask(case, GUARANTEE, t)
        if answer.outcome == FOUND:
            prove_guarantee(case, answer, t)
            if answer.gain < math.inf:
                check_features(case, answer)
                met += 1
        else:
            assert answer.outcome == EXHAUSTED
            assert answer.gain == 0.0
            end = case.score(answer.x)
            assert end < t + 1e-12 * case.terms(answer.x)
            assert score_bound(case, answer.weights) <= end + 1e-12 * case.terms(answer.x)
            exhausted += 1
    assert met > 200
    assert exhausted > 10


@kinds
def test_the_end_of_reach_is_proven_and_can_be_met(kind):
    exhausted = endless = 0
    for rng, case in cases(kind, 600):
        answer = ask(case, GUARANTEE, math.inf)
        if answer.outcome == UNBOUNDED:
            endless += 1
            assert answer.gain == 0.0
            t = case.start_score + 1e3 * rng.random()
            assert abs(prove_guarantee(case, ask(case, GUARANTEE, t), t)) < 1e-9
            continue
        assert answer.outcome == EXHAUSTED
        exhausted += 1
        end, terms = case.score(answer.x), case.terms(answer.x)
        assert abs(score_bound(case, answer.weights) - end) <= 1e-12 * terms
        for share in (rng.random(), 1.0 - 1e-6):
            t = case.start_score + share * (end - case.start_score)
            below = ask(case, GUARANTEE, t)
            assert below.outcome == FOUND
            prove_guarantee(case, below, t)
    assert exhausted > 20
    assert endless > 20


def test_models_that_bind_together_are_followed_for_ever():
    """Their slacks stay 0 along an endless ray: no rounding of their rates may bend it."""
    rng = np.random.default_rng([1088, 3])
    for _ in range(32):
        case = dependent_case(rng, int(rng.integers(1, 40)), int(rng.integers(1, 40)))
        rng.choice([0.01, 1.0, 10.0]), rng.random(), rng.integers(4), rng.uniform(-4, 1)
        answer = ask(case, GUARANTEE, math.inf)
        assert answer.outcome in (EXHAUSTED, UNBOUNDED)
    assert answer.outcome == UNBOUNDED  # this one was walked to 1e26 and lost


@kinds
@pytest.mark.parametrize("loss", CONVEX, ids=lambda loss: loss.name)
def test_a_price_is_proven(kind, loss):
    moved = 0
    for rng, case in cases(kind, 300):
        weight = 10.0 ** rng.uniform(-4, 1)
        answer = ask(case, PRICE, weight, loss.code)
        assert answer.outcome == FOUND
        t, cost, mu = case.score(answer.x), case.cost(answer.x), 1.0 / answer.gain
        price = float(loss.value(t)) + weight * cost
        steepness = weight * mu
        if loss.name in ("logistic", "hinge"):  # no steeper than 1, but for rounding
            assert steepness <= 1.0 + 1e-12
            steepness = min(steepness, 1.0)
        bound = tilted_minimum(loss.code, steepness)
        bound += weight * cost_bound(case, answer.weights, steepness / weight, 0.0)
        noise = 1e-14 * steepness * case.terms(answer.x)
        assert abs(price - bound) <= 1e-9 * (1.0 + price) + noise
        moved += cost > 0.0
    assert moved > 100


# ---- other solvers -----------------------------------------------------------------------------


def scaled_bounds(case: Case):
    """Units in which HiGHS, whose tolerances are absolute, meets coefficients of about 1."""
    sizes = np.abs(case.coefs).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    return (
        sizes,
        sizes * (case.row.lower - case.row.start),
        sizes * (case.row.upper - case.row.start),
    )


def highs(*arguments, **named):
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(*arguments, **named, method="highs", options=tight)


def highs_cost(case: Case, t) -> float:
    sizes, low, high = scaled_bounds(case)
    coefs, cost = case.coefs / sizes, case.row.cost / sizes
    return highs(
        np.concatenate([cost, cost]),
        A_ub=np.hstack([-coefs, coefs]),
        b_ub=case.coefs @ case.row.start + case.intercepts - t,
        bounds=[(0, room) for room in (*high, *-low)],
    )


def highs_end(case: Case):
    sizes, low, high = scaled_bounds(case)
    m, d = case.coefs.shape
    return highs(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-case.coefs / sizes, np.ones((m, 1))]),
        b_ub=case.coefs @ case.row.start + case.intercepts,
        bounds=[*zip(low, high, strict=True), (None, None)],
    )


@pytest.mark.parametrize("kind", [plain_case, whole_case, dependent_case])
def test_highs_finds_the_same_cost(kind):
    compared = 0
    for rng, case in cases(kind, 300):
        t = case.start_score + rng.choice([0.1, 1.0, 5.0]) * rng.random()
        answer, theirs = ask(case, GUARANTEE, t), highs_cost(case, t)
        assert (answer.outcome == FOUND) == (theirs.status == 0)
        if answer.outcome == FOUND:
            assert case.cost(answer.x) == pytest.approx(theirs.fun, rel=1e-7, abs=1e-7)
            compared += 1
    assert compared > 100


@kinds
def test_highs_finds_the_same_end_of_reach(kind):
    compared = 0
    for _, case in cases(kind, 200):
        answer, theirs = ask(case, GUARANTEE, math.inf), highs_end(case)
        if answer.outcome == EXHAUSTED:
            end = case.score(answer.x)
            assert end == pytest.approx(-theirs.fun, rel=1e-7, abs=1e-8 * case.terms(answer.x))
            compared += 1
        else:
            assert theirs.status != 0
    assert compared > 10


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_clarabel_finds_the_same_price(loss):
    for kind in (plain_case, whole_case):
        for rng, case in cases(kind, 15, most_models=8, most_features=8):
            weight = 10.0 ** rng.uniform(-2, 0)
            x = cp.Variable(case.row.start.size)
            score = cp.min(case.coefs @ x + case.intercepts)
            value = cp.logistic(-score) if loss == "logistic" else cp.pos(1 - score)
            cost = case.row.cost @ cp.abs(x - case.row.start)
            below, above = np.isfinite(case.row.lower), np.isfinite(case.row.upper)
            bounds = [x[j] >= case.row.lower[j] for j in np.flatnonzero(below)]
            bounds += [x[j] <= case.row.upper[j] for j in np.flatnonzero(above)]
            question = cp.Problem(cp.Minimize(value + weight * cost), bounds)
            question.solve(solver=cp.CLARABEL)
            answer = ask(case, PRICE, weight, LOSSES[loss].code)
            t = case.score(answer.x)
            price = float(LOSSES[loss].value(t)) + weight * case.cost(answer.x)
            assert price == pytest.approx(float(question.value), rel=1e-6, abs=1e-6)


def test_one_model_is_the_separable_kernel_without_a_ball():
    rng = np.random.default_rng(0)
    for _ in range(300):
        case = plain_case(rng, 1, int(rng.integers(1, 12)))
        row, d = case.row, case.row.start.size
        problem = RecourseProblem.build(
            row.start[None],
            case.coefs[0],
            float(case.intercepts[0]),
            robust_to=NormBall(math.inf, 0.0),
            feature_costs=row.cost,
            bounds=(row.lower, row.upper),
        )
        work, ball = new_work(problem), problem.robust_to.numbers(d)
        load_row(problem.rows(), 0, ball, work)
        t = case.start_score + 3.0 * rng.random()
        goals = [GoalNumbers(GUARANTEE, 0, t)]
        goals += [GoalNumbers(PRICE, loss.code, 10.0 ** rng.uniform(-2, 0)) for loss in CONVEX]
        for goal in goals:
            make_plan(work, ball, goal)
            outcome, gain = solve_row(work, case.intercepts[0], ball, goal)
            point = np.empty(d)
            read_answer(work, case.coefs[0], point)
            answer = ask(case, goal.mode, goal.amount, goal.loss)
            assert answer.outcome == outcome
            assert answer.gain == pytest.approx(gain, rel=1e-12)
            assert case.cost(answer.x) == pytest.approx(case.cost(point), rel=1e-12, abs=1e-12)
            assert answer.weights[0] == 1.0


# ---- made-up numbers ---------------------------------------------------------------------------

few = st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-3, -1e3])
anything = st.one_of(few, st.floats(-5, 5).map(lambda value: round(value, 6)))


@st.composite
def made_up(draw):
    m, d = draw(st.integers(1, 5)), draw(st.integers(1, 5))

    def vector(values, size):
        return np.array(draw(st.lists(values, min_size=size, max_size=size)))

    start, reach = vector(anything, d), st.sampled_from([0.0, 0.5, 1.0, 3.0, math.inf])
    case = make(
        vector(anything, m * d).reshape(m, d),
        vector(anything, m),
        start,
        start - vector(reach, d),
        start + vector(reach, d),
        vector(st.sampled_from([1.0, 1.0, 0.1, 2.0, 10.0]), d),
    )
    return case


@given(case=made_up(), rise=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0, 100.0]))
@settings(max_examples=250, deadline=None)
def test_whatever_is_asked_is_proven(case, rise):
    t = case.start_score + rise
    answer = ask(case, GUARANTEE, t)
    if answer.outcome == FOUND:
        prove_guarantee(case, answer, t)
    else:
        assert answer.outcome == EXHAUSTED
        ends = [answer.x, *(e for e in (case.row.lower, case.row.upper) if np.isfinite(e).all())]
        terms = max(case.terms(x) for x in ends)
        assert abs(score_bound(case, answer.weights) - case.score(answer.x)) <= 1e-12 * terms


# ---- what must not matter ----------------------------------------------------------------------


def same_answer(case: Case, one: Answer, other: Answer) -> None:
    assert one.outcome == other.outcome
    if one.outcome == FOUND:
        cost = case.cost(one.x)
        assert case.cost(other.x) == pytest.approx(cost, rel=1e-9, abs=1e-9)
    elif one.outcome == EXHAUSTED:
        end = case.score(one.x)
        assert case.score(other.x) == pytest.approx(end, abs=1e-12 * case.terms(one.x))


@pytest.mark.parametrize("kind", [plain_case, whole_case, dependent_case])
def test_the_order_of_models_and_features_does_not_matter(kind):
    for rng, case in cases(kind, 150):
        t = case.start_score + 2.0 * rng.random()
        by_model, by_feature = (rng.permutation(size) for size in case.coefs.shape)
        row = case.row
        numbers = (row.coef, row.start, row.lower, row.upper, row.cost)
        turned = Case(
            Row(*(values[by_feature] for values in numbers)),
            np.ascontiguousarray(case.coefs[by_model][:, by_feature]),
            case.intercepts[by_model],
        )
        answer = ask(turned, GUARANTEE, t)
        back = answer.x[np.argsort(by_feature)]
        same_answer(case, ask(case, GUARANTEE, t), answer._replace(x=back))


def test_models_twice_and_models_that_never_bind_do_not_matter():
    for rng, case in cases(plain_case, 200):
        t = case.start_score + 2.0 * rng.random()
        m = case.intercepts.size
        more = case._replace(
            coefs=np.vstack([case.coefs, case.coefs, case.coefs[:1]]),
            intercepts=np.concatenate([case.intercepts] * 2 + [case.intercepts[:1] + 0.25]),
        )
        answer = ask(more, GUARANTEE, t)
        same_answer(case, ask(case, GUARANTEE, t), answer)
        assert answer.weights[2 * m] == 0.0  # better than the first everywhere


def test_units_of_features_do_not_matter():
    for rng, case in cases(plain_case, 200):
        t, row = case.start_score + 2.0 * rng.random(), case.row
        units = 10.0 ** rng.uniform(-6, 6, size=row.start.size)
        turned = Case(
            Row(
                row.coef, row.start * units, row.lower * units, row.upper * units, row.cost / units
            ),
            case.coefs / units,
            case.intercepts,
        )
        answer = ask(turned, GUARANTEE, t)
        same_answer(case, ask(case, GUARANTEE, t), answer._replace(x=answer.x / units))


@kinds
def test_powers_of_two_in_costs_and_units_give_the_same_bits(kind):
    for rng, case in cases(kind, 200):
        t, row = case.start_score + 2.0 * rng.random(), case.row
        units = 2.0 ** rng.integers(-20, 20, size=row.start.size)
        factor = 2.0 ** rng.integers(-20, 20)
        turned = Case(
            Row(
                row.coef,
                row.start * units,
                row.lower * units,
                row.upper * units,
                row.cost / units * factor,
            ),
            case.coefs / units,
            case.intercepts,
        )
        for mode, level, other in ((GUARANTEE, t, t), (PRICE, 0.1, 0.1 / factor)):
            one, two = ask(case, mode, level), ask(turned, mode, other)
            assert one.outcome == two.outcome
            assert one.gain == two.gain * factor
            np.testing.assert_array_equal(one.x * units, two.x)
            np.testing.assert_array_equal(one.weights, two.weights)


@kinds
def test_nothing_is_left_of_the_row_before(kind):
    rng = np.random.default_rng(7)
    scratch = new_hull_scratch(6, 9)
    for _ in range(100):
        case = kind(rng, 6, 9)
        t = case.start_score + 2.0 * rng.random()
        for mode, level in ((GUARANTEE, t), (PRICE, 0.1), (GUARANTEE, math.inf)):
            used, fresh = ask(case, mode, level, scratch=scratch), ask(case, mode, level)
            assert (used.outcome, used.gain) == (fresh.outcome, fresh.gain)
            np.testing.assert_array_equal(used.x, fresh.x)
            np.testing.assert_array_equal(used.weights, fresh.weights)


# ---- corners -----------------------------------------------------------------------------------

INF = math.inf


def test_nothing_may_move():
    case = make([[1.0, 2.0], [3.0, -1.0]], [0.0, -1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1, 1])
    answer = ask(case, GUARANTEE, 2.0)
    assert answer.outcome == EXHAUSTED
    np.testing.assert_array_equal(answer.x, [1.0, 1.0])
    np.testing.assert_array_equal(answer.weights, [0.0, 1.0])
    answer = ask(case, GUARANTEE, 1.0)
    assert (answer.outcome, answer.gain) == (FOUND, INF)
    assert ask(case, PRICE, 0.1).outcome == FOUND


def test_opposite_models_leave_nothing_to_gain():
    case = make([[1.0, -2.0], [-1.0, 2.0]], [0.0, 0.0], [0, 0], [-INF, -INF], [INF, INF], [1, 1])
    answer = ask(case, GUARANTEE, 0.5)
    assert answer.outcome == EXHAUSTED
    np.testing.assert_array_equal(answer.x, [0.0, 0.0])
    np.testing.assert_array_equal(answer.weights, [0.5, 0.5])


def test_opposite_models_meet_in_the_middle():
    case = make([[1.0], [-1.0]], [0.0, 4.0], [0.0], [-INF], [INF], [1.0])
    answer = ask(case, GUARANTEE, 3.0)
    assert answer.outcome == EXHAUSTED
    np.testing.assert_array_equal(answer.x, [2.0])
    answer = ask(case, GUARANTEE, 2.0)
    assert (answer.outcome, answer.gain) == (FOUND, 1.0)
    np.testing.assert_array_equal(answer.x, [2.0])


def test_features_that_no_model_looks_at_stay():
    case = make(
        [[0.0, 1.0], [0.0, 2.0]], [-1.0, -2.0], [5.0, 0.0], [-INF, -INF], [INF, INF], [1, 1]
    )
    answer = ask(case, GUARANTEE, 1.0)
    np.testing.assert_array_equal(answer.x, [5.0, 2.0])
    blind = make([[0.0], [0.0]], [-1.0, -2.0], [5.0], [-INF], [INF], [1.0])
    answer = ask(blind, GUARANTEE, 1.0)
    assert answer.outcome == EXHAUSTED
    np.testing.assert_array_equal(answer.weights, [0.0, 1.0])


def test_a_mixture_is_needed_and_named():
    """Two models that each look at one feature: both must move, at half of the gain of one."""
    case = make([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], [0, 0], [-INF, -INF], [INF, INF], [1, 1])
    answer = ask(case, GUARANTEE, 3.0)
    assert (answer.outcome, answer.gain) == (FOUND, 0.5)
    np.testing.assert_array_equal(answer.x, [3.0, 3.0])
    np.testing.assert_array_equal(answer.weights, [0.5, 0.5])
    assert ask(case, GUARANTEE, INF).outcome == UNBOUNDED


def test_another_feature_takes_over_where_models_disagree():
    """Feature 0 is the cheaper way until the second model binds; then feature 1 serves both."""
    case = make([[2.0, 1.0], [-2.0, 1.0]], [-4.0, 4.0], [0, 0], [-INF, -INF], [INF, INF], [1, 1])
    np.testing.assert_allclose(ask(case, GUARANTEE, -1.0).x, [1.5, 0.0])
    np.testing.assert_allclose(ask(case, GUARANTEE, 5.0).x, [2.0, 5.0])


# ---- the whole frontier ------------------------------------------------------------------------


@kinds
def test_the_vertices_are_those_of_the_frontier(kind):
    pieces = rays = 0
    for rng, case in cases(kind, 60, most_models=12, most_features=12):
        m, d = case.coefs.shape
        curve = hull_vertices(case.row, case.coefs, case.intercepts, new_hull_scratch(m, d))
        np.testing.assert_array_equal(curve.points[0], case.row.start)
        assert np.all((case.row.lower <= curve.points) & (curve.points <= case.row.upper))
        assert len(curve.multipliers) == len(curve.points) - (curve.ray is None)
        # strictly rising, but that the way to an endless ray may have the slope of the ray
        rises = np.diff(curve.multipliers)
        assert np.all(rises[: len(curve.points) - 2] > 0.0)
        assert np.all(rises >= 0.0)
        scores = np.array([case.score(x) for x in curve.points])
        noise = 1e-12 * max(case.terms(x) for x in curve.points)
        np.testing.assert_allclose(curve.scores, scores, rtol=0, atol=noise)
        np.testing.assert_allclose(curve.costs, [case.cost(x) for x in curve.points], rtol=1e-12)
        for k in range(len(curve.points) - 1):
            rise, mu = scores[k + 1] - scores[k], curve.multipliers[k]
            assert rise > 0.0
            paid = curve.costs[k + 1] - curve.costs[k]
            assert abs(paid - mu * rise) <= 1e-9 * (1.0 + curve.costs[k + 1]) + 10 * mu * noise
            if rise > 1e6 * noise:
                share = rng.uniform(0.1, 0.9)
                answer = ask(case, GUARANTEE, scores[k] + share * rise)
                assert answer.gain == pytest.approx(1.0 / mu, rel=1e-8)
                cost = curve.costs[k] + share * paid
                assert case.cost(answer.x) == pytest.approx(cost, rel=1e-8, abs=10 * mu * noise)
            pieces += 1
        end = ask(case, GUARANTEE, math.inf)
        if curve.ray is None:
            assert end.outcome == EXHAUSTED
            assert curve.scores[-1] == pytest.approx(case.score(end.x), abs=noise)
            continue
        rays += 1
        assert end.outcome == UNBOUNDED
        assert np.abs(curve.ray) @ case.row.cost == pytest.approx(1.0)
        far = curve.points[-1] + 10.0 * curve.ray
        assert np.all((case.row.lower <= far) & (far <= case.row.upper))
        gained = case.score(far) - scores[-1]
        assert gained == pytest.approx(10.0 / curve.multipliers[-1], rel=1e-8, abs=10 * noise)
    assert pieces > 50
    assert rays > 2
