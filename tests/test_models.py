"""Adapters: what is fitted and what we see of it must agree."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from torch import nn

from holdfast import NormBall, Status, find_recourse
from holdfast.datasets import load_german
from holdfast.models import BlackBox, LinearModel, as_model
from holdfast.models.network import Network
from holdfast.paper.folds import german_folds
from holdfast.paper.training import train_network

X, Y = make_classification(200, 4, random_state=0)
APPROVED = Y == 1
BALL = NormBall(1, 0.05)


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (LogisticRegression(), "logistic"),
        (LinearSVC(), "squared_hinge"),
        (LinearSVC(loss="hinge"), "hinge"),
        (SGDClassifier(loss="log_loss", random_state=0), "logistic"),
        (SGDClassifier(random_state=0), "hinge"),
    ],
)
@pytest.mark.parametrize("target", [0, 1])
def test_linear_classifiers_give_their_decision_function(estimator, loss, target):
    fitted = estimator.fit(X, Y)
    model = as_model(fitted, favorable_class=target)
    sign = 1 if target == 1 else -1
    np.testing.assert_allclose(model.score(X), sign * fitted.decision_function(X))
    assert (model.kind, model.loss) == ("linear", loss)
    denied = X[fitted.predict(X) != target][:10]
    result = find_recourse(denied, fitted, favorable_class=target, robust_to=BALL, guarantee=0.5)
    assert (result.status == Status.OPTIMAL).all()
    moved = result.recourse_array + 1e-9 * result.action
    assert (fitted.predict(moved) == target).all()


def test_recourse_of_a_pipeline_is_found_behind_its_encoders():
    german = load_german()
    table = german.features[["duration", "age", "savings_status"]]
    encoder = ColumnTransformer(
        [
            ("number", StandardScaler(), ["duration", "age"]),
            ("category", OneHotEncoder(), ["savings_status"]),
        ]
    )
    pipeline = make_pipeline(encoder, LogisticRegression()).fit(table, german.approved)
    model = as_model(pipeline)
    encoded = model.encode(table)
    assert list(encoded.columns[:2]) == ["number__duration", "number__age"]
    np.testing.assert_allclose(model.score(encoded), pipeline.decision_function(table))
    denied = table[~pipeline.predict(table)]
    result = find_recourse(denied, pipeline, robust_to=BALL, cost_weight=0.05)
    assert (result.recourse.index == denied.index).all()
    assert list(result.recourse.columns) == list(encoded.columns)
    np.testing.assert_allclose(
        result.initial_validity, pipeline.predict_proba(denied)[:, 1], rtol=1e-12
    )


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("target", [0, 1])
def test_an_mlp_becomes_the_same_network(activation, target):
    mlp = MLPClassifier((5, 3), activation=activation, max_iter=30, random_state=0)
    with pytest.warns(match="Maximum iterations"):
        mlp.fit(X, Y)
    model = as_model(mlp, favorable_class=target)
    assert model.kind == "network"
    probability = 1 / (1 + np.exp(-model.score(X)))
    np.testing.assert_allclose(probability, mlp.predict_proba(X)[:, target], rtol=1e-9)


def test_any_predict_proba_is_a_black_box():
    forest = RandomForestClassifier(10, random_state=0).fit(X, APPROVED)
    model = as_model(forest)
    assert isinstance(model, BlackBox)
    score = model.score(X)
    assert np.isfinite(score).all()  # although a forest is often quite sure
    inside = np.abs(score) < 20
    np.testing.assert_allclose(
        1 / (1 + np.exp(-score[inside])), forest.predict_proba(X)[inside, 1], rtol=1e-9
    )


def test_a_sigmoid_at_the_end_is_cut_off():
    body = [nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)]
    probability = nn.Sequential(*body, nn.Sigmoid())
    with torch.no_grad():
        body[-1].bias.fill_(-60.0)  # a float32 probability of exactly 0
    model = as_model(probability)
    np.testing.assert_array_equal(model.score(X), as_model(nn.Sequential(*body)).score(X))
    assert (model.score(X) < -50).all()
    assert np.isfinite(model.score(X)).all()


class Odd(nn.Module):
    """A module that does not say what it returns."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (Odd(), ValueError, "does not say what it returns; wrap it"),
        (LogisticRegression(), ValueError, "not fitted"),
        (LinearRegression().fit(X, Y), TypeError, "unsupported model type LinearRegression"),
        (Ridge().fit(X, Y), TypeError, "unsupported model type Ridge"),
        (StandardScaler().fit(X), TypeError, "unsupported model type StandardScaler"),
        (LogisticRegression().fit(X, np.arange(200) % 3), ValueError, "recourse needs exactly 2"),
        (([1.0, 2.0],), ValueError, r"a pair \(coef, intercept\)"),
        (([1.0, np.nan], 0.0), ValueError, "must be finite"),
        (([1.0, 2.0], [1.0, 2.0]), ValueError, "expected .d,. and one number"),
        ("logistic", TypeError, "unsupported model type str"),
    ],
)
def test_what_is_not_understood_is_named(model, error, said):
    with pytest.raises(error, match=said):
        as_model(model)


def test_a_wrong_favorable_class_is_an_error():
    with pytest.raises(ValueError, match="'yes' is not one of the classes"):
        as_model(LogisticRegression().fit(X, Y), favorable_class="yes")


def test_a_module_with_two_outputs_is_an_error():
    model = Network(nn.Linear(4, 2))
    with pytest.raises(ValueError, match="one score for each"):
        model.score(X)


def test_the_paper_network_is_the_same_every_time_and_denies_the_same_people():
    denied, scores = [], []
    for fold in german_folds():
        network = train_network(fold.train_points, fold.train_approved)
        scores.append(network.score(fold.test_points))
        denied.append(int((scores[-1] < 0).sum()))
    assert denied == [37, 20, 34, 25, 29]  # as the authors' own code has it
    sizes = [layer.out_features for layer in network.module if isinstance(layer, nn.Linear)]
    assert sizes == [50, 100, 200, 1]
    again = train_network(fold.train_points, fold.train_approved)
    np.testing.assert_array_equal(again.score(fold.test_points), scores[-1])
    other = train_network(fold.train_points, fold.train_approved, random_state=1)
    assert not np.array_equal(other.score(fold.test_points), scores[-1])


def test_training_leaves_the_random_numbers_of_others_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    train_network(X, Y, epochs=1)
    assert torch.rand(1) == expected


def test_plain_coefficients_with_names():
    points = pd.DataFrame({"income": [0.0], "debt": [2.0]}, index=["Ann"])
    result = find_recourse(points, LinearModel([1.0, -0.5], -1.0), robust_to=BALL, guarantee=0.5)
    assert result.recourse.loc["Ann", "income"] > 0


def test_models_need_no_torch_until_a_network_comes():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import holdfast\n"
        "ball = holdfast.NormBall(1, 0.1)\n"
        "asked = {'robust_to': ball, 'cost_weight': 0.1}\n"
        "r = holdfast.find_recourse([[0.0]], ([1.0], -1.0), 'roar', **asked)\n"
        "print(r.method_status[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "converged"


def frame(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(X[:, :3], columns=["income", "debt", "age"])[columns]


@pytest.mark.parametrize("kind", [LogisticRegression, RandomForestClassifier])
def test_columns_go_by_name_whatever_their_order(kind):
    known, other = ["income", "debt", "age"], ["age", "income", "debt"]
    fitted = kind(random_state=0).fit(frame(known), APPROVED)
    arguments = {"robust_to": BALL, "cost_weight": 0.1}
    if kind is RandomForestClassifier:
        arguments["linearise"] = "lime"
    a = find_recourse(frame(known)[:5], fitted, X_train=frame(known), **arguments)
    b = find_recourse(frame(other)[:5], fitted, X_train=frame(other), **arguments)
    pd.testing.assert_frame_equal(a.recourse, b.recourse)
    with pytest.raises(ValueError, match=r"missing \['age'\], unknown \['wage'\]"):
        find_recourse(frame(known).rename(columns={"age": "wage"}), fitted, **arguments)


def test_coefficients_with_names_go_by_name():
    coef = pd.Series({"debt": -0.4, "age": 0.1, "income": 0.2})
    result = find_recourse(
        frame(["income", "debt", "age"])[:5], (coef, -1.0), robust_to=BALL, guarantee=0.5
    )
    direct = find_recourse(X[:5, :3], ([0.2, -0.4, 0.1], -1.0), robust_to=BALL, guarantee=0.5)
    np.testing.assert_allclose(result.cost, direct.cost)


def test_a_loss_that_is_not_known_must_be_said():
    fitted = Perceptron().fit(X, APPROVED)
    with pytest.raises(ValueError, match="Perceptron was fitted with a loss that"):
        find_recourse(X[:2], fitted, robust_to=BALL, cost_weight=0.1)
    result = find_recourse(X[:2], fitted, robust_to=BALL, cost_weight=0.1, loss="hinge")
    assert np.isnan(result.current_validity).all()  # a margin is no probability


def test_what_scikit_learn_wraps_is_unwrapped():
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}).fit(X, APPROVED)
    assert as_model(search).kind == "linear"
    sparse = make_pipeline(OneHotEncoder(), SVC(kernel="linear")).fit(np.round(X), APPROVED)
    np.testing.assert_allclose(
        as_model(sparse).score(as_model(sparse).encode(np.round(X[:3]))),
        sparse.decision_function(np.round(X[:3])),
    )


class OnlyProbabilities:
    def predict_proba(self, points):
        p = 1 / (1 + np.exp(-points[:, 0]))
        return np.column_stack([1 - p, p])


def test_predict_proba_alone_is_enough():
    np.testing.assert_allclose(
        as_model(OnlyProbabilities(), favorable_class=1).score(X), X[:, 0], atol=1e-9
    )


def test_the_module_of_the_user_is_left_alone():
    module = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5), nn.ReLU(), nn.Linear(3, 1)).train()
    network = as_model(module)
    assert module.training
    before = network.score(X)
    with torch.no_grad():
        module[0].weight.zero_()
    np.testing.assert_array_equal(network.score(X), before)
    with pytest.raises(ValueError, match="device = 'banana' cannot be used"):
        as_model(module, device="banana")
    with pytest.raises(ValueError, match="X has 3 columns, the network takes 4"):
        network.score(X[:, :3])


@pytest.mark.parametrize("rows", [1, 2])
def test_a_row_without_numbers_is_said_to_be_so_also_for_networks(rows):
    network = train_network(X, Y, hidden=(4,), epochs=5)
    points = np.full((rows, 4), np.nan)
    result = find_recourse(points, network, robust_to=BALL, cost_weight=0.1, X_train=X)
    assert (result.status == Status.INVALID_INPUT).all()


def test_what_is_proven_of_a_surrogate_is_said_of_it():
    network = train_network(X, Y, hidden=(4,), epochs=20)
    points = X[network.score(X) < 0][:2]
    result = find_recourse(
        points,
        network,
        "exact",
        robust_to=BALL,
        guarantee=0.999,
        linearise="gradient",
        bounds=(points - 0.1, points + 0.1),
    )
    assert (result.status == Status.NOT_FOUND).all()
    assert result.explain(0).endswith(
        "This applies to the gradient surrogate, not to the model itself."
    )
    found = find_recourse(points, network, robust_to=BALL, cost_weight=0.1, linearise="gradient")
    assert "the model itself gives the recourse a probability of" in found.explain(0)
    assert {"surrogate_price", "surrogate_gap", "current_validity"} <= set(found.to_frame())
    np.testing.assert_allclose(found.surrogate_error, found.model_score - found.surrogate_score)
    with pytest.raises(ValueError, match="made for other points"):
        find_recourse(X[5:7], network, robust_to=BALL, cost_weight=0.1, linearise=found.surrogate)


def test_refine_works_with_batch_normalisation():
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
    result = find_recourse(
        X[:3], module, "refine", robust_to=BALL, cost_weight=0.1, linearise="gradient"
    )
    assert np.isfinite(result.recourse_array).all()
