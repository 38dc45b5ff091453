"""The paper's own numbers: the price of recourse on German Credit, logistic regression, Table 1."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from holdfast import NormBall, Status, solve
from holdfast.paper.folds import german_folds

# (radius, cost weight): (mean, deviation over folds), as the paper prints them
ALGORITHM_1 = {
    (0.1, 0.1): (0.68, 0.07),
    (0.1, 0.01): (0.14, 0.03),
    (0.5, 0.1): (0.85, 0.09),
    (0.5, 0.01): (0.20, 0.05),
}
ALGORITHM_2 = {
    (0.1, 0.1): (0.80, 0.08),
    (0.1, 0.01): (0.16, 0.03),
    (0.5, 0.1): (1.12, 0.05),
    (0.5, 0.01): (0.62, 0.03),
}


@pytest.fixture(scope="module")
def folds():
    """Five folds, prepared as in the paper: (coef, intercept, points denied) of each."""
    prepared = []
    for fold in german_folds():
        model = LogisticRegression().fit(fold.train_points, fold.train_approved)
        denied = fold.test_points[~model.predict(fold.test_points)]
        prepared.append((model.coef_[0], model.intercept_[0], denied))
    return prepared


def test_the_same_people_are_denied(folds):
    assert [len(denied) for _, _, denied in folds] == [16, 12, 11, 15, 14]


@pytest.mark.parametrize(("p", "printed"), [(1, ALGORITHM_1), (math.inf, ALGORITHM_2)])
def test_the_optimal_prices_are_those_printed(folds, p, printed):
    for (radius, cost_weight), (mean, deviation) in printed.items():
        results = [
            solve(denied, coef, intercept, robust_to=NormBall(p, radius), cost_weight=cost_weight)
            for coef, intercept, denied in folds
        ]
        assert all((result.status == Status.OPTIMAL).all() for result in results)
        means = [result.price.mean() for result in results]
        assert np.mean(means) == pytest.approx(mean, abs=0.01)
        assert np.std(means, ddof=1) == pytest.approx(deviation, abs=0.01)
