"""Robust Bayesian recourse: each part against its definition, the whole against a plain rewrite."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from holdfast import NormBall, find_recourse
from holdfast.methods.base import Task
from holdfast.methods.rbr import RobustBayesian, spread, unit_ball
from holdfast.methods.rbr_boundary import approves, nearest_boundary, nearest_candidates
from holdfast.methods.rbr_kernels import log_odds, project_budget
from holdfast.methods.rbr_likelihoods import Ambiguity, optimistic, pessimistic
from holdfast.models import LinearModel, as_model
from holdfast.paper.rbr_as_published import RobustBayesianAsPublished, ShiftedMeans, shifted
from holdfast.paper.training import train_network
from holdfast.problem.goal import Goal
from holdfast.problem.problem import RecourseProblem
from holdfast.result import MethodStatus
from holdfast.result.surrogate import Surrogate

BALL = NormBall(p=1, radius=0.1)
SMALL = {"samples": 40, "candidates": 50}


def ambiguity(epsilon, p, sigma=1.0):
    return Ambiguity(sigma, epsilon, epsilon, p)


def task_of(points, model, training, random_state=0, n_jobs=1):
    """Return the task that the door would hand to the method."""
    d = points.shape[1]
    problem = RecourseProblem.build(points, np.ones(d), 0.0, robust_to=BALL)
    return Task(
        problem, Goal.of(problem.loss, cost_weight=0.1), model, training, random_state, n_jobs
    )


@pytest.fixture(scope="module")
def people():
    """Training points, a linear model, and those whom it turns down."""
    rng = np.random.default_rng(7)
    training = rng.normal(size=(300, 4))
    model = LinearModel([1.0, -0.7, 0.4, 0.2], -0.3)
    denied = training[model.score(training) < 0.0][:12]
    return training, model, denied


# --- the two likelihoods ---------------------------------------------------------------------


def widths(sigma, c, m, s, f, p):
    """Minus the log-likelihood of a point at distance c + m from the mean."""
    return np.log(sigma + s) + (c + m) ** 2 / (2 * (sigma + s) ** 2) + (p - 1) * np.log(sigma + f)


@pytest.mark.parametrize("p", [1, 2, 3, 7, 25])
def test_the_likelihoods_against_a_grid(p):
    """Never beaten by any point of a fine grid, and hardly better than the best of it."""
    rng = np.random.default_rng(p)
    angle = np.linspace(0.0, np.pi / 2, 401)
    a, b = np.meshgrid(angle, angle)
    for trial in range(40):
        sigma = rng.uniform(0.5, 2.0)
        c = sigma * (rng.uniform(0.0, 1.2) if trial % 2 else rng.uniform(0.0, 6.0))
        epsilon = 3.0 * sigma * rng.random() ** 2
        m, rest = epsilon * np.cos(a), epsilon * np.sin(a)
        if p == 1:
            worst = -widths(sigma, c, m, rest, 0.0, 1).max()
        else:
            s, f = rest * np.cos(b), rest * np.sin(b) / math.sqrt(p - 1)
            worst = -widths(sigma, c, m, s, f, p).max()
        size = epsilon * b / (np.pi / 2)
        best = -widths(sigma, -c, size * np.cos(a), size * np.sin(a), 0.0, p).min()
        low, _ = pessimistic(c, ambiguity(epsilon, p, sigma))
        high, _ = optimistic(c, ambiguity(epsilon, p, sigma))
        assert worst - 1e-3 * (1 + abs(worst)) <= low <= worst + 1e-12
        assert best - 1e-12 <= high <= best + 1e-3 * (1 + abs(best))


def gaussian_oracle(c, epsilon, sigma, p, sign, starts=12):
    """Search over all means and covariances of the definition; sign 1: best, -1: worst.

    The root of Sigma is ``sigma I + T`` with T >= 0; its Bures distance from sigma I is |T|, and
    whatever is outside the ball is pulled back to its surface.
    """
    point = np.zeros(p)
    point[0] = c
    corner = np.tril_indices(p)

    def value(theta):
        factor = np.zeros((p, p))
        factor[corner] = theta[p:]
        shift, root = theta[:p], factor @ factor.T
        size = math.sqrt(shift @ shift + (root * root).sum())
        shrink = min(1.0, epsilon / size) if size > 0.0 else 1.0
        root = sigma * np.eye(p) + shrink * root
        z = np.linalg.solve(root, point - shrink * shift)
        return sign * (np.linalg.slogdet(root)[1] + 0.5 * z @ z)

    rng = np.random.default_rng(0)
    n = p + len(corner[0])
    # also from well inside: beyond the surface nothing changes with the size
    begins = [rng.normal(size=n) * (0.1 if k % 2 else 1.0) for k in range(starts)]
    found = [optimize.minimize(value, x, options={"gtol": 1e-9}).fun for x in begins]
    return -sign * min(found)


@pytest.mark.parametrize(
    ("c", "epsilon", "sigma", "p"),
    [
        (0.3, 0.5, 1.0, 2),
        (0.6, 0.5, 1.0, 2),
        (1.5, 1.0, 1.0, 2),
        (4.0, 1.0, 1.0, 2),
        (0.8, 0.3, 0.7, 3),
        (3.0, 0.8, 0.7, 3),
    ],
)
def test_the_likelihoods_against_their_definition(c, epsilon, sigma, p):
    """The plane problems are what remains of a search over all Gaussians."""
    best = gaussian_oracle(c, epsilon, sigma, p, 1)
    worst = gaussian_oracle(c, epsilon, sigma, p, -1)
    assert optimistic(c, ambiguity(epsilon, p, sigma))[0] == pytest.approx(best, abs=1e-5)
    assert pessimistic(c, ambiguity(epsilon, p, sigma))[0] == pytest.approx(worst, abs=1e-5)


def test_slopes_of_the_likelihoods():
    rng = np.random.default_rng(3)
    for _ in range(200):
        p, sigma = int(rng.integers(1, 12)), rng.uniform(0.5, 2.0)
        c, around = rng.uniform(0.01, 5.0), ambiguity(rng.uniform(0.0, 2.0), p, sigma)
        for likelihood in (optimistic, pessimistic):
            h = 1e-6
            numeric = (likelihood(c + h, around)[0] - likelihood(c - h, around)[0]) / (2 * h)
            assert likelihood(c, around)[1] == pytest.approx(numeric, abs=1e-5)


def test_the_published_pessimism_is_a_shift():
    published = ShiftedMeans(1.0, 0.0, 0.5, 3)
    assert shifted(2.0, published)[0] == pytest.approx(-0.5 * 2.5**2)
    assert pessimistic(2.0, ambiguity(0.5, 3))[0] < shifted(2.0, published)[0]


# --- the odds, their gradient, the projection ------------------------------------------------


def odds(x, samples, wanted, around):
    n, gradient = len(samples), np.empty(len(x))
    value = log_odds(x, samples, wanted, around, np.empty(n), np.empty(n), gradient)
    return value, gradient


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(5)
    samples = rng.normal(size=(30, 4))
    return samples, samples[:, 0] + 0.3 * samples[:, 1] > 0.0, rng.normal(size=4)


def test_without_ambiguity_the_odds_are_those_of_kernel_densities(cloud):
    samples, wanted, x = cloud
    sigma = 0.8
    logs = -((samples - x) ** 2).sum(axis=1) / (2 * sigma**2)
    expected = special.logsumexp(logs[~wanted]) - special.logsumexp(logs[wanted])
    assert odds(x, samples, wanted, ambiguity(0.0, 4, sigma))[0] == pytest.approx(expected)


def test_ambiguity_only_makes_the_odds_worse(cloud):
    samples, wanted, x = cloud
    values = [odds(x, samples, wanted, ambiguity(e, 4))[0] for e in (0.0, 0.25, 0.5, 1.0)]
    assert (np.diff(values) > 0.0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_gradient_of_the_odds(cloud, epsilon):
    samples, wanted, x = cloud
    around = ambiguity(epsilon, 4)
    numeric = optimize.approx_fprime(x, lambda y: odds(y, samples, wanted, around)[0], 1e-7)
    assert odds(x, samples, wanted, around)[1] == pytest.approx(numeric, abs=1e-5)


def test_a_class_without_samples_takes_no_part(cloud):
    samples, _, x = cloud
    around, nobody = ambiguity(0.5, 4), np.zeros(len(samples), dtype=bool)
    refused, _ = odds(x, samples, nobody, around)
    logs = [optimistic(np.linalg.norm(x - s), around)[0] for s in samples]
    assert refused == pytest.approx(special.logsumexp(logs))


def test_projection_onto_the_l1_ball():
    """In the ball, and no vertex of the ball lies on the far side: the variational inequality."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        d, radius = int(rng.integers(1, 9)), rng.choice([0.0, rng.uniform(0.0, 3.0)])
        start = rng.normal(size=d).round(int(rng.integers(1, 4)))  # with ties and zeros
        end = start.copy()
        project_budget(end, radius, np.empty(d))
        assert np.abs(end).sum() <= radius + 1e-12 or (end == start).all()
        vertices = radius * np.vstack([np.eye(d), -np.eye(d)])
        assert ((vertices - end) @ (start - end) <= 1e-12).all()


# --- the boundary ----------------------------------------------------------------------------


def test_the_boundary_point_is_on_the_boundary_and_the_nearest(people):
    training, model, denied = people
    approved = training[model.score(training) >= 0.0]
    candidates = nearest_candidates(denied, approved, 60)
    boundary = nearest_boundary(model, denied, candidates, 99)
    score = model.score(boundary)
    assert (score >= 0.0).all()
    assert score == pytest.approx(0.0, abs=1e-9)
    # where a linear score vanishes on each segment is known
    before, after = model.score(denied)[:, None], model.score(candidates)
    share = before / (before - after)
    length = np.abs(candidates - denied[:, None]).sum(axis=2)
    distance = np.abs(boundary - denied).sum(axis=1)
    assert distance == pytest.approx((share * length).min(axis=1))


def test_candidates_are_the_nearest(people):
    training, _, denied = people
    candidates = nearest_candidates(denied, training, 10)
    distance = np.abs(candidates - denied[:, None]).sum(axis=2)
    every = np.abs(training - denied[:, None]).sum(axis=2)
    assert (distance == np.sort(every, axis=1)[:, :10]).all()


def test_the_first_crossing_counts():
    """A model that says yes, no, and yes again on the way: the nearer yes is found."""

    class Island(LinearModel):
        def score(self, points):
            x = np.asarray(points)[..., 0]
            return np.where((x > 0.2) & (x < 0.3) | (x > 0.9), 1.0, -1.0)

    candidates = np.array([[[1.0, 0.0]]])
    boundary = nearest_boundary(Island([1.0, 0.0]), np.zeros((1, 2)), candidates, 99)
    assert boundary[0, 0] == pytest.approx(0.2, abs=1e-9)


def test_who_is_approved_starts_where_they_stand(people):
    training, model, _ = people
    approved = training[model.score(training) >= 0.0]
    candidates = nearest_candidates(approved[:3], approved, 10)
    assert (nearest_boundary(model, approved[:3], candidates, 99) == approved[:3]).all()


def test_spread_is_the_largest_distance_of_two():
    for seed in range(5):
        points = np.random.default_rng(seed).normal(size=(60, 3))
        every = np.linalg.norm(points[:, None] - points, axis=2).max()
        assert spread(points) == pytest.approx(every, rel=1e-14)
    assert spread(np.ones((1, 3))) == 0.0


def test_the_ball_is_filled_evenly():
    radius = np.linalg.norm(unit_ball(20_000, 4, random_state=0), axis=1)
    assert (radius <= 1.0).all()
    assert (radius**4).mean() == pytest.approx(0.5, abs=0.01)  # the volume within is uniform


# --- the method ------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("delta_plus", [0.0, 0.6])
def test_the_budget_holds_and_the_odds_fall(people, epsilon, delta_plus):
    training, model, denied = people
    method = RobustBayesian(epsilon_op=epsilon, epsilon_pe=epsilon, delta_plus=delta_plus, **SMALL)
    task = task_of(denied, model, training)
    method.check(task)
    found = method.run(task)
    start, samples, wanted = prepare(method, denied, model, training)
    budget = np.abs(start - denied).sum(axis=1) + delta_plus
    assert (np.abs(found.recourse - denied).sum(axis=1) <= budget * (1.0 + 1e-12)).all()
    around = ambiguity(epsilon, 4)
    for i, x in enumerate(found.recourse):
        after, before = (odds(y, samples[i], wanted[i], around)[0] for y in (x, start[i]))
        assert after <= before
    assert set(found.status) <= {MethodStatus.CONVERGED, MethodStatus.STEP_LIMIT}
    assert ((found.steps == method.max_steps) | (found.status == MethodStatus.CONVERGED)).all()


def prepare(method, points, model, training):
    """Boundary points, samples and labels, by plain code."""
    approved = training[model.score(training) >= 0.0]
    candidates = nearest_candidates(points, approved, method.candidates)
    start = nearest_boundary(model, points, candidates, method.scan)
    radius = method.sampling_radius * np.linalg.norm(training[:, None] - training, axis=2).max()
    samples = start[:, None] + radius * unit_ball(method.samples, points.shape[1], 0)
    return start, samples, model.score(samples) >= 0.0


def plain_inner(c, epsilon, p, sign):
    """Solve one inner problem by a general solver; return the log-likelihood and its slope."""

    def loss(v):
        return sign * widths(1.0, -sign * c, v[0], v[1], v[2], p)

    rule = {
        "type": "ineq",
        "fun": lambda v: epsilon**2 - v[0] ** 2 - v[1] ** 2 - (p - 1) * v[2] ** 2,
    }
    side = epsilon / math.sqrt(p + 1)
    starts = [(0.9 * epsilon, 0.0, 0.1 * side), (0.1 * side, side, side), (side, 0.0, side)]
    runs = [
        optimize.minimize(
            loss, v, bounds=[(0, None)] * 3, constraints=rule, method="SLSQP", tol=1e-13
        )
        for v in starts
    ]
    best = min(runs, key=lambda run: run.fun)
    m, s, _ = best.x
    return -sign * best.fun, -(c - sign * m) / (1.0 + s) ** 2


def plain_projection(move, radius):
    """Find the threshold by bisection."""
    if np.abs(move).sum() <= radius:
        return move
    paid = optimize.brentq(
        lambda t: np.maximum(np.abs(move) - t, 0.0).sum() - radius, 0.0, np.abs(move).max()
    )
    return np.sign(move) * np.maximum(np.abs(move) - paid, 0.0)


def plain_descent(point, start, budget, samples, wanted, epsilon, steps, step):
    """Follow the paper row by row, with a general solver inside."""
    x = start.copy()
    for _ in range(steps):
        gradient = np.zeros_like(x)
        for which, sign in ((False, 1), (True, -1)):
            group = samples[wanted == which]
            c = np.linalg.norm(x - group, axis=1)
            inner = [plain_inner(distance, epsilon, len(x), sign) for distance in c]
            value, slope = np.array(inner).T
            weight = special.softmax(value) * slope / c
            gradient += sign * (weight[:, None] * (x - group)).sum(axis=0)
        x = point + plain_projection(x - step * gradient - point, budget)
    return x


def test_a_plain_rewrite_comes_to_the_same_end(people):
    training, model, denied = people
    denied = denied[:2]
    method = RobustBayesian(
        epsilon_op=0.5,
        epsilon_pe=0.5,
        delta_plus=0.3,
        samples=12,
        candidates=20,
        max_steps=8,
        step=0.3,
    )
    found = method.run(task_of(denied, model, training))
    start, samples, wanted = prepare(method, denied, model, training)
    budget = np.abs(start - denied).sum(axis=1) + method.delta_plus
    for i, point in enumerate(denied):
        end = plain_descent(point, start[i], budget[i], samples[i], wanted[i], 0.5, 8, 0.3)
        ours, plain = (
            odds(x, samples[i], wanted[i], ambiguity(0.5, 4))[0] for x in (found.recourse[i], end)
        )
        assert ours == pytest.approx(plain, abs=1e-5)
        assert found.recourse[i] == pytest.approx(end, abs=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_do_not_depend_on_each_other(people, threads):
    training, model, denied = people
    method = RobustBayesian(epsilon_op=0.5, epsilon_pe=1.0, **SMALL)
    together = method.run(task_of(denied, model, training, n_jobs=threads))
    for i in range(len(denied)):
        alone = method.run(task_of(denied[i : i + 1], model, training))
        assert alone.recourse[0] == pytest.approx(together.recourse[i], abs=1e-9)
        assert alone.steps[0] == together.steps[i]


def test_chunks_change_nothing(people, monkeypatch):
    training, model, denied = people
    method, task = RobustBayesian(**SMALL), task_of(denied, model, training)
    whole = method.run(task)
    monkeypatch.setattr("holdfast.methods.rbr._CHUNK", 1000)
    monkeypatch.setattr("holdfast.methods.rbr_boundary._SCORED_AT_ONCE", 100)
    assert method.run(task).recourse == pytest.approx(whole.recourse, abs=1e-9)


def test_the_seed_decides(people):
    training, model, denied = people
    method, task = RobustBayesian(**SMALL), task_of(denied, model, training)
    first = method.run(task).recourse
    assert (method.run(task).recourse == first).all()
    assert (method.run(replace(task, random_state=1)).recourse != first).any()


def test_no_rows(people):
    training, model, denied = people
    found = RobustBayesian(**SMALL).run(task_of(denied[:0], model, training))
    assert found.recourse.shape == (0, 4)


def test_as_published_stops_at_the_budget(people):
    training, model, denied = people
    method = RobustBayesianAsPublished(delta_plus=0.0, **SMALL)
    found = method.run(task_of(denied, model, training))
    assert (found.steps == 1).all()  # the one that stays
    candidates = nearest_candidates(denied, training[approves(model, training)], method.candidates)
    assert (found.recourse == method.boundary(model, denied, candidates)).all()
    sound = RobustBayesian(delta_plus=0.0, **SMALL).run(task_of(denied, model, training))
    assert (sound.steps > 1).all()


def test_as_published_starts_at_the_first_approved_point_of_a_scan(people):
    training, model, denied = people
    candidates = nearest_candidates(denied, training[approves(model, training)], 5)
    method = RobustBayesianAsPublished(scan=7)
    for point, own, start in zip(
        denied, candidates, method.boundary(model, denied, candidates), strict=True
    ):
        steps = np.arange(1, 8)[:, None, None] / 7
        scanned = np.where(steps == 1.0, own, point + steps * (own - point))
        approved = approves(model, scanned.reshape(-1, 4)).reshape(scanned.shape[:2])
        approved[-1] = True
        first = scanned[approved.argmax(axis=0), np.arange(len(own))]
        assert (start == first[np.abs(first - point).sum(axis=1).argmin()]).all()


def test_through_the_door_with_a_linear_model(people):
    training, _, _ = people
    fitted = LogisticRegression().fit(training, training @ [1.0, -0.7, 0.4, 0.2] > 0.3)
    denied = training[fitted.predict(training) == 0][:5]
    result = find_recourse(
        denied, fitted, "rbr", robust_to=BALL, cost_weight=0.1, X_train=training, **SMALL
    )
    assert result.method == "rbr"
    assert (result.current_validity >= 0.5).all()
    assert (result.gap >= -1e-9).all()


def test_through_the_door_with_a_network_and_a_forest(people):
    training, _, _ = people
    approved = training[:, 0] ** 2 + training[:, 1] > 0.5
    network = train_network(training, approved, hidden=(16,), epochs=150, learning_rate=1e-2)
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(training, approved)
    for model in (network, as_model(forest)):
        denied = training[model.score(training) < 0.0][:6]
        stand_in = Surrogate("ones", np.ones((6, 4)), np.zeros(6), *np.full((2, 6), np.nan))
        result = find_recourse(
            denied,
            model,
            "rbr",
            robust_to=BALL,
            cost_weight=0.1,
            X_train=training,
            linearise=stand_in,
            epsilon_pe=0.5,
            **SMALL,
        )
        assert np.isfinite(result.recourse_array).all()
        assert (result.current_validity > result.initial_validity).all()


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon_op": -0.1},
        {"epsilon_pe": math.nan},
        {"delta_plus": "much"},
        {"sigma": 0.0},
        {"sampling_radius": math.inf},
        {"samples": 0},
        {"candidates": 2.5},
        {"max_steps": True},
        {"tolerance": -1.0},
        {"epsilon": 0.5},
    ],
)
def test_wrong_settings_are_errors(people, settings):
    training, model, denied = people
    with pytest.raises(ValueError, match=next(iter(settings))):
        find_recourse(
            denied, model, "rbr", robust_to=BALL, cost_weight=0.1, X_train=training, **settings
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"X_train": None}, "X_train"),
        ({"X_train": np.zeros((5, 3))}, r"expected \(n, 4\)"),
        ({"X_train": np.full((5, 4), np.nan)}, "missing values"),
        ({"X_train": np.array([[-9.0, 9.0, -9.0, -9.0]])}, "the wanted class to no training point"),
        ({"feature_costs": [1.0, 2.0, 1.0, 1.0]}, "feature_costs"),
        ({"bounds": (-np.full(4, 9.0), np.full(4, 9.0))}, "bounds"),
        ({"cost_weight": None, "guarantee": 0.6}, "guarantee"),
    ],
)
def test_what_it_cannot_do_is_an_error(people, arguments, said):
    training, model, denied = people
    given = {"cost_weight": 0.1, "X_train": training, **arguments}
    with pytest.raises(ValueError, match=said):
        find_recourse(denied, model, "rbr", robust_to=BALL, **given)
