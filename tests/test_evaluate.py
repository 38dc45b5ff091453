"""One table for any recourse: every figure of it is worked out again, in another way."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, special
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

import holdfast
from holdfast import NormBall, Status
from holdfast.datasets import load_german
from holdfast.evaluate import evaluate_recourse, population_worst_model
from holdfast.models import BlackBox, as_model
from holdfast.models.network import Network
from holdfast.models.networks import judge_network, population_worst_network

COEF, INTERCEPT = np.array([1.0, -0.5, 0.3]), -1.0
MODEL = (COEF, INTERCEPT)
LATER = {"first": ([0.8, -0.5, 0.3], -1.0), "second": ([1.0, -0.2, 0.1], -0.5)}


def people(n=5):
    return np.random.default_rng(1).normal(size=(n, 3)) - [1.0, 0.0, 0.0]


def lowest_score(x, ball):
    """The least score in a ball, by an optimiser that knows nothing of dual norms."""
    if ball.p == math.inf:
        corners = itertools.product((-1.0, 1.0), repeat=len(x) + 1)
        changes = [ball.radius * np.array(corner) for corner in corners]
    elif ball.p == 1.0:
        changes = [s * ball.radius * unit for unit in np.eye(len(x) + 1) for s in (-1.0, 1.0)]
    else:
        found = optimize.minimize(
            lambda change: change @ np.append(x, 1.0),
            np.zeros(len(x) + 1),
            constraints={
                "type": "ineq",
                "fun": lambda change: ball.radius - np.linalg.norm(change, ord=ball.p),
            },
        )
        changes = [found.x]
    return min(x @ (COEF + c[:-1]) + INTERCEPT + c[-1] for c in changes)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_every_figure_of_a_linear_model(p):
    ball, start = NormBall(p, 0.2), people()
    result = holdfast.solve(start, COEF, INTERCEPT, robust_to=ball, cost_weight=0.1)
    table = evaluate_recourse(result, MODEL, later_models=LATER)
    assert len(table) == 2 * len(start)
    for (name, (coef, intercept)), rows in zip(LATER.items(), (table[:5], table[5:]), strict=True):
        assert rows["person"].tolist() == [0, 1, 2, 3, 4]
        assert set(rows["later_model"]) == {name}
        x = result.recourse_array
        worst = np.array([lowest_score(row, ball) for row in x])
        cost = np.abs(x - start).sum(axis=1)
        np.testing.assert_allclose(rows["current_validity"], special.expit(x @ COEF + INTERCEPT))
        np.testing.assert_allclose(rows["worst_case_validity"], special.expit(worst), rtol=1e-6)
        np.testing.assert_allclose(rows["future_validity"], special.expit(x @ coef + intercept))
        np.testing.assert_allclose(rows["cost"], cost)
        np.testing.assert_allclose(rows["price"], np.log1p(np.exp(-worst)) + 0.1 * cost, rtol=1e-6)
        np.testing.assert_allclose(rows["price"], result.price)
        assert rows["status"].tolist() == [str(status) for status in result.status]
        assert set(rows["judging"]) == {"exact"}
    one = population_worst_model(x, COEF, INTERCEPT, ball)
    np.testing.assert_allclose(rows["population_validity"], special.expit(one.score(x)))
    assert set(table["population_judging"]) == {"search" if p == 2.0 else "exact"}


def test_without_later_models_there_is_a_row_for_each_recourse():
    result = holdfast.solve(people(), *MODEL, robust_to=NormBall(1, 0.1), guarantee=0.6)
    table = evaluate_recourse(result, MODEL)
    assert len(table) == 5
    assert table["later_model"].isna().all()
    assert table["future_validity"].isna().all()
    assert (table["price"] == table["cost"]).all()  # a guarantee was asked for
    assert (evaluate_recourse(result, MODEL, cost_weight=0.1)["price"] > 0.1 * table["cost"]).all()


def test_a_model_a_list_and_a_dict_of_later_models():
    result = holdfast.solve(people(2), *MODEL, robust_to=NormBall(1, 0.1), guarantee=0.6)
    one = evaluate_recourse(result, MODEL, later_models=LATER["first"])
    assert one["later_model"].tolist() == [0, 0]
    several = evaluate_recourse(result, MODEL, later_models=list(LATER.values()))
    assert several["later_model"].tolist() == [0, 0, 1, 1]
    pd.testing.assert_series_equal(one["future_validity"], several["future_validity"][:2])


def test_plain_points_are_judged_as_a_result_is():
    start, ball, costs = people(), NormBall(math.inf, 0.1), [1.0, 2.0, 0.5]
    result = holdfast.solve(start, *MODEL, robust_to=ball, cost_weight=0.2, feature_costs=costs)
    own = evaluate_recourse(result, MODEL, later_models=LATER)
    plain = evaluate_recourse(
        result.recourse_array,
        MODEL,
        start,
        robust_to=ball,
        later_models=LATER,
        cost_weight=0.2,
        feature_costs=costs,
    )
    accepted = result.recourse_array @ COEF + INTERCEPT >= 0.0
    wanted = np.where(accepted, "accepted", "not valid")
    assert plain["status"].tolist() == [*wanted, *wanted]
    pd.testing.assert_frame_equal(own.drop(columns="status"), plain.drop(columns="status"))


def test_a_wider_ball_than_the_results_own():
    result = holdfast.solve(people(), *MODEL, robust_to=NormBall(1, 0.1), cost_weight=0.1)
    near, far = (evaluate_recourse(result, MODEL, robust_to=NormBall(1, r)) for r in (0.1, 0.5))
    np.testing.assert_allclose(near["worst_case_validity"], result.worst_case_validity)
    assert (far["worst_case_validity"] < near["worst_case_validity"]).all()
    assert (far["price"] > near["price"]).all()


def test_rows_without_a_recourse_are_missing_and_do_not_touch_others():
    points = people()
    points[2] = np.nan
    table = evaluate_recourse(points, MODEL, people(), robust_to=NormBall(1, 0.1), cost_weight=1.0)
    figures = ["cost", "price", "current_validity", "worst_case_validity", "population_validity"]
    assert table.loc[2, figures].isna().all()
    assert table.loc[2, "status"] == "not found"
    others = evaluate_recourse(
        np.delete(points, 2, axis=0),
        MODEL,
        np.delete(people(), 2, axis=0),
        robust_to=NormBall(1, 0.1),
        cost_weight=1.0,
    )
    pd.testing.assert_frame_equal(table.drop(2)[figures].reset_index(drop=True), others[figures])


def test_margins_have_prices_but_no_probabilities():
    fitted = RidgeClassifier().fit(people(40), people(40)[:, 0] > -1.0)
    start, ball = people(4), NormBall(1, 0.05)
    result = holdfast.find_recourse(start, fitted, robust_to=ball, cost_weight=0.1, loss="hinge")
    table = evaluate_recourse(result, fitted)
    np.testing.assert_allclose(table["price"], result.price)
    assert table["worst_case_validity"].isna().all()


def test_networks_are_searched_and_black_boxes_are_not():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1)).double()
    network, ball, start = Network(module), NormBall(1, 0.1), people()
    result = holdfast.find_recourse(
        start, network, robust_to=ball, cost_weight=0.05, linearise="gradient"
    )
    table = evaluate_recourse(result, network, later_models=MODEL)
    assert set(table["judging"]) == set(table["population_judging"]) == {"search"}
    judged = judge_network(result, network)
    np.testing.assert_allclose(table["worst_case_validity"], judged.worst_case_validity)
    np.testing.assert_allclose(table["price"], judged.price)
    together = population_worst_network(network, result.recourse_array, ball).score
    np.testing.assert_allclose(table["population_validity"], special.expit(together))
    score = module(torch.as_tensor(result.recourse_array)).detach().numpy()[:, 0]
    np.testing.assert_allclose(table["current_validity"], special.expit(score))

    box = BlackBox(lambda x: special.expit(x @ COEF + INTERCEPT))
    table = evaluate_recourse(start, box, robust_to=ball, later_models=network)
    assert set(table["judging"]) == set(table["population_judging"]) == {"not judged"}
    assert table[["worst_case_validity", "population_validity", "cost"]].isna().all(axis=None)
    np.testing.assert_allclose(table["current_validity"], special.expit(start @ COEF + INTERCEPT))
    np.testing.assert_allclose(table["future_validity"], special.expit(network.score(start)))


COLUMNS = ["duration", "credit_amount", "age", "personal_status"]


def german_pipeline(rows):
    """A pipeline with its own scale: an encoded point of one is another person for the next."""
    german = load_german()
    table, good = german.features[COLUMNS].iloc[rows], german.approved.iloc[rows]
    encode = make_column_transformer(
        (StandardScaler(), COLUMNS[:3]), (OneHotEncoder(), COLUMNS[3:])
    )
    return make_pipeline(encode, LogisticRegression()).fit(table, good)


def test_later_pipelines_read_raw_columns():
    today, later = german_pipeline(slice(0, 500)), german_pipeline(slice(400, 1000))
    table = load_german().features[COLUMNS]
    denied = table[~today.predict(table)][:8]
    encoded = as_model(today).encode(denied)
    bounds = encoded.to_numpy().copy(), encoded.to_numpy().copy()
    bounds[0][:, :3], bounds[1][:, :3] = -np.inf, np.inf  # the category stays
    result = holdfast.find_recourse(
        denied, today, robust_to=NormBall(1, 0.1), guarantee=0.6, bounds=bounds
    )
    with pytest.raises(ValueError, match="pass X, the people as the model takes them"):
        evaluate_recourse(result, today, later_models=later)
    judged = evaluate_recourse(result, today, denied, later_models=later)
    raw = denied.copy()
    scaler = today[0].named_transformers_["standardscaler"]
    raw[COLUMNS[:3]] = scaler.inverse_transform(result.recourse_array[:, :3])
    np.testing.assert_allclose(judged["future_validity"], later.predict_proba(raw)[:, 1])
    np.testing.assert_allclose(judged["current_validity"], today.predict_proba(raw)[:, 1])
    assert judged["person"].tolist() == denied.index.tolist()
    plain = evaluate_recourse(raw, today, denied, robust_to=NormBall(1, 0.1), later_models=later)
    for name in ("cost", "current_validity", "worst_case_validity", "future_validity"):
        np.testing.assert_allclose(plain[name], judged[name], rtol=1e-9)
    with pytest.raises(ValueError, match="different people"):
        evaluate_recourse(result, today, denied[::-1], later_models=later)


def test_fractions_of_a_category_have_no_future():
    today, later = german_pipeline(slice(0, 500)), german_pipeline(slice(400, 1000))
    table = load_german().features[COLUMNS]
    denied = table[~today.predict(table)][:8]
    result = holdfast.find_recourse(denied, today, robust_to=NormBall(1, 0.5), guarantee=0.8)
    judged = evaluate_recourse(result, today, denied, later_models=later)
    fractions = result.status == Status.FRACTIONAL
    assert fractions.sum() > 0
    assert (judged["future_validity"].isna() == fractions).all()
    assert judged["current_validity"].notna().all()


def test_advice_is_judged_as_it_says_of_itself():
    today, later = german_pipeline(slice(0, 500)), german_pipeline(slice(400, 1000))
    table, ball = load_german().features[COLUMNS], NormBall(1, 0.1)
    denied = table[~today.predict(table)][:6]
    actions = holdfast.ActionSet.from_data(table)
    estimator = holdfast.RobustRecourse(today, actions=actions, robust_to=ball, guarantee=0.6)
    advice = estimator.recommend(denied)
    after, said = advice.after(), advice.to_frame()
    judged = evaluate_recourse(
        after, today, advice.people.loc[after.index], robust_to=ball, later_models=later
    )
    assert judged["person"].tolist() == after.index.tolist()
    for name in ("current_validity", "worst_case_validity"):
        np.testing.assert_allclose(judged[name], said.loc[after.index, name], rtol=1e-9)
    np.testing.assert_allclose(judged["future_validity"], later.predict_proba(after)[:, 1])


def test_classes_are_said_once_for_all_classifiers():
    x = people(60)
    bad = (x[:, 0] < -1.0).astype(int)
    today = LogisticRegression().fit(x, bad)
    later = RandomForestClassifier(10, random_state=0).fit(x, bad)
    table = evaluate_recourse(
        x[:6], today, robust_to=NormBall(1, 0.1), later_models=[later, MODEL], favorable_class=0
    )
    np.testing.assert_allclose(table["current_validity"][:6], today.predict_proba(x[:6])[:, 0])
    forest = later.predict_proba(x[:6])[:, 0]
    np.testing.assert_allclose(table["future_validity"][:6], forest, atol=1e-11)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"recourse": np.zeros((2, 3))}, "robust_to is missing"),
        ({"recourse": np.zeros((2, 4)), "robust_to": NormBall(1, 0.1)}, "the model has 3"),
        ({"recourse": np.zeros(3), "robust_to": NormBall(1, 0.1)}, "recourse has shape"),
        ({"X": np.zeros((3, 3))}, "X has 3 rows, but recourse has 2"),
        ({"X": np.zeros((2, 2))}, r"X has shape \(2, 2\)"),
        ({"cost_weight": -1.0}, "cost_weight = -1.0 is not allowed"),
        ({"feature_costs": [1.0, 0.0, 1.0]}, "feature_costs"),
        ({"feature_costs": [1.0, 1.0]}, "feature_costs has shape"),
        ({"later_models": ([1.0, 1.0], 0.0)}, "the model has 2"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_it(arguments, said):
    given = {"recourse": np.zeros((2, 3)), "model": MODEL}
    given |= {} if "recourse" in arguments else {"robust_to": NormBall(1, 0.1)}
    with pytest.raises(ValueError, match=said):
        evaluate_recourse(**{**given, **arguments})
    with pytest.raises(TypeError, match=r"robust_to = 0\.1 is not a set of models"):
        evaluate_recourse(np.zeros((2, 3)), MODEL, robust_to=0.1)


def test_a_calibrated_model_has_prices_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.logistic(size=300) > 0.0
    model = CalibratedClassifierCV(LogisticRegression(), ensemble=False).fit(X, y)
    denied = X[~model.predict(X)][:3]
    found = holdfast.find_recourse(denied, model, robust_to=NormBall(1, 0.05), guarantee=0.6)
    table = evaluate_recourse(found, model, cost_weight=0.1)
    assert (table["price"] > 0.1 * table["cost"]).all()
