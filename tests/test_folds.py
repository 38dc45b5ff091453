"""The paper's preparation of its data: the same people must be denied."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from holdfast.datasets.folds import german_folds, sba_folds


def denied(folds):
    counts = []
    for fold in folds:
        model = LogisticRegression().fit(fold.train_points, fold.train_approved)
        counts.append(int((~model.predict(fold.test_points)).sum()))
    return counts


def test_german_folds_are_those_of_the_paper():
    folds = german_folds()
    assert denied(folds) == [16, 12, 11, 15, 14]
    everybody = np.vstack([fold.test_points for fold in folds])
    assert everybody.shape == (1000, 7)
    np.testing.assert_allclose(everybody[:, :3].std(axis=0), 1.0)
    assert (everybody[:, 3:].sum(axis=1) == 1).all()


@pytest.mark.skipif("HOLDFAST_DATA_DIR" not in os.environ, reason="the SBA file is not here")
def test_sba_folds_are_those_of_the_paper():
    folds = sba_folds()
    assert sum(len(fold.test_points) for fold in folds) == 1159
    assert folds[0].train_points.shape[1] == 25
    assert denied(folds) == [39, 36, 40, 36, 38]


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"SBAcase.11.13.17.csv is not there: .*Mickel"):
        sba_folds(tmp_path)
