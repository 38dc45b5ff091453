"""What is kept of the points that people are told: all of it, whatever becomes of the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer
from small_banks import small_bank

from holdfast import ActionSet, NormBall, RobustRecourse
from holdfast.recommend.packed import PackedPoints


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_points_come_back_as_they_were(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(0, 12))
    parts = []
    for _ in range(rng.integers(1, 4)):
        points = rng.integers(0, 2, size=(rng.integers(0, 6), d)).astype(float)
        other = rng.random(d) < 0.4  # in this part
        points[:, other] = rng.normal(size=(len(points), other.sum()))
        parts.append(points)
    together = np.concatenate(parts)
    kept = PackedPoints.joined([PackedPoints.of(points) for points in parts])
    assert np.array_equal(kept.points(), together)
    order = rng.permutation(len(together))
    assert np.array_equal(kept.take(order).points(), together[order])


def test_a_model_that_is_fitted_again_changes_nothing_that_was_told():
    table, good, model = small_bank()
    people = table[~model.predict(table)].iloc[:6]
    asked = {"robust_to": NormBall(1, 0.1), "actions": ActionSet.from_data(table), "guarantee": 0.6}
    result = RobustRecourse(model, n_options=2, **asked).recommend(people)

    def told():
        return [
            (result.encoded(label, option).tolist(), result.opposing(label, larger, option))
            for label in people.index
            for option in range(1, len(result.ways(label)) + 1)
        ]

    larger = NormBall(1, 0.8)
    encoded = model[:-1].transform(result.after(1))
    before = told()
    assert len(before) >= 6
    firsts = [result.encoded(label) for label in result.after(1).index]
    np.testing.assert_allclose(firsts, encoded, rtol=1e-12)
    model.fit(table.assign(income=table["income"] ** 2), ~good)
    assert [point for point, _ in told()] == [point for point, _ in before]
    for (_, now), (_, then) in zip(told(), before, strict=True):
        assert (now is None) == (then is None)
        assert now is None or now.score == then.score


def test_a_network_that_is_fitted_again_changes_no_bracket():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(120, 3)).round(1), columns=list("abc"))
    good = table.sum(axis=1) + rng.normal(size=120) > 0.0
    network = MLPClassifier((5,), solver="lbfgs", alpha=1.0, random_state=0)
    model = make_pipeline(PowerTransformer(), network).fit(table, good)
    people = table[~model.predict(table)].iloc[:3]
    actions = ActionSet.from_data(table, immutable=["c"])
    actions.set("a", step=0.1)
    actions.set("b", step=0.1)
    asked = RobustRecourse(
        model,
        robust_to=NormBall(1, 0.05),
        actions=actions,
        guarantee=0.5,
    )
    result, again = asked.recommend(people), asked.recommend(people)
    bracket = again.bracket
    model.fit(table**3, ~good)
    for name in ("score", "proven_score", "found_score"):
        np.testing.assert_array_equal(getattr(result.bracket, name), getattr(bracket, name))
    with pytest.raises(ValueError, match="read-only"):
        result.bracket.proven_score[0] = 99.0


def test_nothing_larger_is_kept_by_a_view():
    table, _, model = small_bank()
    asked = {"robust_to": NormBall(1, 0.1), "actions": ActionSet.from_data(table), "guarantee": 0.6}
    result = RobustRecourse(model, **asked).recommend(table[~model.predict(table)])
    (told,) = result._advised.options
    assert told.ways.recourse.base is None
    assert told.ways.levels.base is None
