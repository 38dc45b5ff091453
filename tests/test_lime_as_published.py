"""The authors' call of LIME, against that very call."""

from __future__ import annotations

import numpy as np
from lime.lime_tabular import LimeTabularExplainer
from sklearn.linear_model import LogisticRegression

import holdfast
from holdfast import Status
from holdfast.models import BlackBox
from holdfast.paper import LimeAsPublished
from holdfast.paper.folds import german_folds
from holdfast.paper.training import train_network


def test_equals_the_package_digit_for_digit():
    fold = german_folds()[0]
    network = train_network(fold.train_points, fold.train_approved, epochs=60)
    denied = fold.test_points[network.score(fold.test_points) < 0][:6]
    ours = LimeAsPublished().fit(network, denied, fold.train_points, random_state=5)
    explainer = LimeTabularExplainer(
        fold.train_points,
        mode="regression",
        discretize_continuous=False,
        feature_selection="none",
    )
    for i, x in enumerate(denied):
        np.random.seed(i)  # noqa: NPY002
        explained = explainer.explain_instance(
            x,
            lambda points: (network.score(points) > 0).astype(float),
            num_features=len(x),
            model_regressor=LogisticRegression(),
        )
        # the only pair that there is holds all coefficients, as the regression's are (1, d)
        assert (ours.coef[i] == np.round(explained.local_exp[1][0][1], 4)).all()
        assert ours.intercept[i] == np.round(explained.intercept[1][0], 4)
    error = network.score(denied) - ours.score(denied)
    assert np.allclose(ours.point_error, error)


def test_a_row_of_one_class_is_no_crash():
    training = np.random.default_rng(0).normal(size=(50, 2))
    never = BlackBox(lambda x: np.full(len(x), 0.1))
    found = LimeAsPublished().fit(never, training[:2], training, random_state=0)
    assert np.isnan(found.coef).all()
    result = holdfast.find_recourse(
        training[:2],
        never,
        robust_to=holdfast.NormBall(1, 0.1),
        cost_weight=0.1,
        linearise=LimeAsPublished(),
        X_train=training,
    )
    assert list(result.status) == [Status.INVALID_INPUT] * 2


def test_a_row_that_is_no_number_keeps_the_others_numbers():
    training = np.random.default_rng(0).normal(size=(50, 2))
    model = BlackBox(lambda x: 1.0 / (1.0 + np.exp(-x[:, 0])))
    points = training[:3].copy()
    clean = LimeAsPublished().fit(model, points, training, random_state=0)
    points[0, 0] = np.nan
    found = LimeAsPublished().fit(model, points, training, random_state=0)
    assert np.isnan(found.coef[0]).all()
    assert (found.coef[1:] == clean.coef[1:]).all()
