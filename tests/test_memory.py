"""A model that was read is read again exactly when something in it has changed."""

import copy
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import holdfast
from holdfast.models.encoding import Encoding
from holdfast.recommend.memory import ModelMemory


def people(seed, n=120):
    rng = np.random.default_rng([48, seed])
    return pd.DataFrame(
        {
            "debt": rng.normal(40.0, 12.0, n).round(1),
            "income": rng.normal(30.0, 8.0, n).round(1),
            "home": rng.choice(["own", "rent", "free"], n),
        }
    )


def outcomes(table, seed):
    rng = np.random.default_rng([49, seed])
    score = table["income"] - table["debt"] + 8.0 * (table["home"] == "own") + 8.0
    return np.where(score + rng.logistic(0.0, 4.0, len(table)) > 0.0, "paid", "default")


def fitted(seed=0):
    numbers = make_pipeline(StandardScaler(), FunctionTransformer())
    columns = make_column_transformer((numbers, ["debt", "income"]), (OneHotEncoder(), ["home"]))
    table = people(seed)
    return make_pipeline(columns, LogisticRegression()).fit(table, outcomes(table, seed))


def asking(model, **settings):
    actions = holdfast.ActionSet.from_data(people(9), immutable=["home"])
    asked = {
        "robust_to": holdfast.NormBall(p=2, radius=0.1),
        "actions": actions,
        "guarantee": 0.6,
        "favorable_class": "paid",
        "n_jobs": 1,
    }
    return holdfast.RobustRecourse(model, **asked | settings)


def told(recourse):
    return recourse.recommend(people(8, 30)).to_frame()


def refit(model):
    table = people(1)
    model.fit(table, outcomes(table, 1))


def refit_last(model):
    table = people(1)
    model[-1].fit(model[:-1].transform(table), outcomes(table, 1))


def set_coef(model):
    model[-1].coef_ = 0.5 * model[-1].coef_


def write_coef(model):
    model[-1].coef_[0, 0] *= 1.5


def write_mean(model):
    model[0].named_transformers_["pipeline"][0].mean_ += 1.0


def turn_classes(model):
    model[-1].classes_ = model[-1].classes_[::-1].copy()


def replace_last(model):
    model.steps[-1] = ("last", fitted(2)[-1])


CHANGES = [refit, refit_last, set_coef, write_coef, write_mean, turn_classes, replace_last]


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_changes_in_place_is_read_again(change):
    model = fitted()
    recourse = asking(model)
    before = told(recourse)
    change(model)
    after = told(recourse)
    pd.testing.assert_frame_equal(after, told(asking(model)))
    assert not after.equals(before)


@pytest.mark.parametrize("change", CHANGES)
def test_a_result_stays_the_same_when_the_model_changes(change):
    model = fitted()
    hopeless = holdfast.ActionSet.from_data(people(9), immutable=["home", "debt"])
    hopeless.set("income", max_increase=1)
    for actions in (hopeless, holdfast.ActionSet.from_data(people(9), immutable=["home"])):
        recourse = asking(model, actions=actions)
        result, other = (recourse.recommend(people(8, 4)) for _ in range(2))
        said = [everything_said(result, label) for label in result.labels]
        change(model)
        assert said == [everything_said(other, label) for label in other.labels]
        model = fitted()


def everything_said(result, label):
    """What is worked out when somebody asks for it."""
    said = [result.explain(label), result.releases(label)]
    if result.ways(label):
        said += [result.changes(label), result.frontier(label, n_points=4).cost.tolist()]
        said += [result.sizes(label, n_points=4).cost.tolist(), result.encoded(label).tolist()]
    return said


def test_a_threshold_that_changes_is_read_again():
    model = FixedThresholdClassifier(fitted(), threshold=0.5, pos_label="paid")
    table = people(0)
    model.fit(table, outcomes(table, 0))
    recourse = asking(model, guarantee=0.9)
    before = told(recourse)
    model.set_params(threshold=0.8)
    after = told(recourse)
    pd.testing.assert_frame_equal(after, told(asking(model, guarantee=0.9)))
    assert (after["approved"] != before["approved"]).any()


def test_a_copy_with_other_settings_reads_for_itself():
    first, second = fitted(0), fitted(2)
    recourse = asking(first)
    for settings in ({"model": second}, {"favorable_class": "default"}, {"guarantee": 0.8}):
        told(recourse)
        own = {"model": first} | settings
        fresh = asking(**own)
        pd.testing.assert_frame_equal(told(recourse.with_settings(**settings)), told(fresh))
    for same in (clone(recourse), copy.deepcopy(recourse)):
        pd.testing.assert_frame_equal(told(same), told(asking(first)))


def test_what_has_not_changed_is_not_read_again(monkeypatch):
    reads = []
    of = Encoding.of
    monkeypatch.setattr(Encoding, "of", lambda *args, **said: reads.append(1) or of(*args, **said))
    recourse = asking(fitted())
    for _ in range(3):
        told(recourse)
        told(recourse.with_settings(guarantee=0.7))
    assert len(reads) == 1


class Sealed(LogisticRegression):
    """It cannot be written down."""

    def __getstate__(self):
        raise TypeError("sealed")


class Forgetful(LogisticRegression):
    """It leaves out what was fitted."""

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "coef_"}


STORE = {}


class Stored(LogisticRegression):
    """It writes down the name of a thing that is kept elsewhere."""

    def __reduce__(self):
        STORE["it"] = self
        return STORE.get, ("it",)


class Shared(LogisticRegression):
    """A copy of it is itself."""

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize("kind", [Sealed, Forgetful, Stored, Shared])
def test_what_chooses_what_is_written_down_is_read_each_time(kind):
    table = people(0)[["debt", "income"]]
    model = kind().fit(table, outcomes(people(0), 0))
    memory = ModelMemory()
    first = memory.read(model, "paid")
    assert memory.read(model, "paid") is not first
    model.coef_ = 2.0 * model.coef_
    np.testing.assert_array_equal(memory.read(model, "paid").model.coef, 2.0 * first.model.coef)


def test_two_threads_may_ask_about_two_models():
    models = [fitted(0), fitted(2)]
    recourse, wanted = asking(models[0]), [told(asking(model)) for model in models]
    wrong = []

    def ask(k):
        for _ in range(4):
            if not told(recourse.with_settings(model=models[k])).equals(wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
