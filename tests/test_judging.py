"""Whom a model approves is its own word, also right at its cutoff, where rounding decides."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdfast import NormBall
from holdfast.evaluate import evaluate_recourse
from holdfast.models.encoding import Encoding
from holdfast.report.judging import Judge
from holdfast.report.parts import are_approved


def at_the_cutoff(seed: int, rows: int = 500):
    """A model, and people whose score is 0 up to rounding, in raw units."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(50.0, 9.0, size=(400, 6)), columns=list("abcdef"))
    good = table @ rng.normal(size=6) + rng.logistic(size=400) > 0.0
    if good.nunique() < 2:
        good = table["a"] > 50.0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(table, good)
    people = pd.DataFrame(rng.normal(50.0, 9.0, size=(rows, 6)), columns=list("abcdef"))
    scaler, last = model[0], model[-1]
    slope = last.coef_[0] / scaler.scale_
    people["f"] -= model.decision_function(people) / slope[-1]
    people["f"] -= model.decision_function(people) / slope[-1]
    return model, people


def test_the_model_itself_decides():
    told_otherwise = 0
    for seed in range(5):
        model, people = at_the_cutoff(seed)
        own = model.predict(people)
        encoding = Encoding.of(model)
        np.testing.assert_array_equal(Judge(model, True).judge(people).is_approved, own)
        np.testing.assert_array_equal(are_approved(people, encoding), own)
        told = evaluate_recourse(people, model, robust_to=NormBall(p=1, radius=0.1))
        np.testing.assert_array_equal(told["status"] == "accepted", own)
        told_otherwise += int(((encoding.model.score(encoding.encode(people)) >= 0.0) != own).sum())
    assert told_otherwise > 10  # the score alone says otherwise: this is about something
