"""The default model: what it is made of, how it is judged, and which tables are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

import holdfast
from holdfast.datasets import load_german
from holdfast.files.models import load_model, save_model
from holdfast.fitting import draft_actions, fit_default, sounds_protected
from holdfast.fitting.measures import measure
from holdfast.models.encoding import Encoding

RNG = np.random.default_rng(0)


def loans(n=300, **columns):
    """Return a table whose outcome depends on its columns."""
    rng = np.random.default_rng(1)
    months, home = rng.integers(3, 60, n), rng.choice(["own", "rent", "free"], n)
    score = 0.08 * (months - 30) + np.where(home == "own", -1.0, 0.5)
    bad = (score + rng.logistic(size=n) > 0).astype(int)
    return pd.DataFrame({"months": months, "home": home, **columns, "bad": bad})


def with_gaps(column, seed):
    values = column.astype(object) if column.dtype != np.int64 else column.astype(float)
    return values.where(np.random.default_rng(seed).random(len(values)) > 0.1, np.nan)


@pytest.fixture(scope="module")
def gappy():
    table = loans()
    return table.assign(
        months=with_gaps(table["months"], 2),
        home=with_gaps(table["home"], 3),
        phone=RNG.random(len(table)) > 0.5,
    )


@pytest.fixture(scope="module")
def of_gaps(gappy):
    return fit_default(gappy, "bad", "0")


def test_recourse_is_exact_for_a_model_of_a_table_with_gaps(gappy, of_gaps):
    people = gappy.drop(columns="bad")
    denied = people[of_gaps.model.predict(people) == 1].head(30)
    actions = holdfast.ActionSet.from_data(people)
    result = holdfast.RobustRecourse(
        of_gaps.model,
        robust_to=holdfast.NormBall(p=1, radius=0.02),
        actions=actions,
        guarantee=0.5,
        favorable_class=0,
    ).recommend(denied)
    assert denied.isna().any(axis=1).sum() > 3
    assert set(result.to_frame()["status"]) <= {"optimal", "infeasible"}
    assert (result.to_frame()["status"] == "optimal").sum() > 15


def test_it_is_saved_and_read_to_the_bit(gappy, of_gaps, tmp_path):
    save_model(of_gaps.model, tmp_path / "model.skops", of_gaps.favorable_class)
    found = load_model(tmp_path / "model.skops")
    people = gappy.drop(columns="bad")
    mine, theirs = (each.predict_proba(people) for each in (of_gaps.model, found.model))
    assert mine.tobytes() == theirs.tobytes()
    assert found.favorable_class == 0


def test_the_same_table_gives_the_same_model(gappy, of_gaps):
    again = fit_default(gappy, "bad", 0)
    assert again.model["classifier"].coef_.tobytes() == of_gaps.model["classifier"].coef_.tobytes()
    assert again.to_plain() == of_gaps.to_plain()


def test_missing_values_have_columns_of_their_own(of_gaps):
    encoding = Encoding.of(of_gaps.model, favorable_class=0)
    assert encoding["months"].fill is not None
    assert len(encoding["months"].indicators) == 1
    assert encoding["home"].takes_missing
    terms = of_gaps.coefficients.groupby("feature")["term"].apply(set).to_dict()
    assert terms["months"] == {"per standard deviation", "missing"}
    assert terms["home"] == {"free", "own", "rent", "missing"}
    assert terms["phone"] == {"False", "True"}


def test_where_no_number_is_missing_a_missing_one_cannot_be_judged():
    encoding = Encoding.of(fit_default(loans(), "bad", 0).model, favorable_class=0)
    assert not encoding["months"].takes_missing


def test_it_can_be_trained_again_on_resamples(gappy, of_gaps):
    sizing = holdfast.calibrate(
        of_gaps.model,
        gappy.drop(columns="bad"),
        gappy["bad"].to_numpy(),
        favorable_class=0,
        families=["l2"],
        n_models=40,
        max_people=10,
    )
    assert sizing.chosen.survival > 0.9


def test_the_strength_fits_the_data():
    table = loans(600)
    noise = pd.DataFrame(RNG.normal(size=(600, 3)), columns=["a", "b", "c"])
    noise["bad"] = RNG.integers(0, 2, 600)
    assert fit_default(noise, "bad", 0).C < fit_default(table, "bad", 0).C


def test_measures_are_those_of_scikit_learn():
    chance = RNG.random(501)
    outcome = RNG.random(501) < chance
    found = measure(chance, outcome)
    assert found.auc == pytest.approx(roc_auc_score(outcome, chance), abs=1e-15)
    assert found.brier == pytest.approx(brier_score_loss(outcome, chance), abs=1e-15)
    assert found.accuracy == ((chance > 0.5) == outcome).mean()
    assert found.bins["people"].sum() == 501
    assert found.bins["people"].between(50, 51).all()
    assert found.bins["predicted"].is_monotonic_increasing
    assert (found.bins["people"] * found.bins["observed"]).sum() == pytest.approx(outcome.sum())


def test_measures_are_of_people_whom_the_model_has_not_seen():
    """An outcome that is pure chance is predicted no better than by chance."""
    table = pd.DataFrame(RNG.normal(size=(300, 40)), columns=[f"x{k}" for k in range(40)])
    table["bad"] = RNG.integers(0, 2, 300)
    found = fit_default(table, "bad", 0)
    seen = found.model.predict_proba(table.drop(columns="bad"))[:, 0]
    assert roc_auc_score(table["bad"] == 0, seen) > 0.6
    assert found.measures.auc < 0.58
    assert found.measures.brier > found.measures.base_brier - 0.01


def test_weights_and_coefficients_are_towards_what_people_want():
    table = loans(1000)
    found = fit_default(table, "bad", 0)
    terms = found.coefficients.set_index(["feature", "term"])["coefficient"]
    assert terms["months", "per standard deviation"] < 0 < terms["home", "own"]
    assert list(found.weights.index) == ["months", "home"]
    turned = fit_default(table, "bad", 1).coefficients["coefficient"]
    assert np.allclose(turned, -found.coefficients["coefficient"], rtol=1e-6, atol=1e-9)
    score = found.model.decision_function(table[["months", "home"]])
    coded = found.model["columns"].transform(table[["months", "home"]])
    added = np.asarray(coded) * found.model["classifier"].coef_[0]
    assert np.allclose(added.sum(axis=1) + found.model["classifier"].intercept_, score)
    assert found.weights["months"] == pytest.approx(added[:, 0].std())
    assert found.weights["home"] == pytest.approx(added[:, 1:].sum(axis=1).std())


def test_it_is_a_plain_logistic_regression():
    found = fit_default(loans(), "bad", 0)
    assert type(found.model["classifier"]) is LogisticRegression
    assert found.model["classifier"].C == found.C


def test_rows_without_outcome_and_columns_without_information_are_left_out():
    table = loans(one=1, none=np.nan)
    table["bad"] = table["bad"].astype(float)
    table.loc[:9, "bad"] = np.nan
    found = fit_default(table, "bad", "0")
    assert (found.n_rows, found.n_unlabelled) == (290, 10)
    assert found.columns.left_out == {
        "one": "everybody has the same value, 1",
        "none": "it has no values",
    }
    assert [type(k) for k in found.model.classes_.tolist()] == [int, int]


def test_more_rows_than_are_tried_change_only_how_many_are_tried(monkeypatch):
    from holdfast.fitting import default

    table = loans(2000)
    monkeypatch.setattr(default, "_MOST_TRIED", 500)
    found = fit_default(table, "bad", 0)
    assert found.n_rows == 2000
    assert 500 <= found.measures.n_rows <= 520


REFUSED = {
    "no target": (loans(), ("worse", 0), "the table has no column 'worse'; available: months"),
    "a typing error": (loans(), ("bda", 0), "did you mean 'bad'?"),
    "one class": (
        loans().assign(bad=1),
        ("bad", 1),
        "has one value only (1); it must have exactly",
    ),
    "three classes": (
        loans().assign(bad=np.arange(300) % 3),
        ("bad", 1),
        "has 3 different values (0, 1, 2); it must have exactly two",
    ),
    "no labels": (loans().assign(bad=np.nan), ("bad", 1), "has 0 different values"),
    "few of a class": (
        loans().assign(bad=np.arange(300) < 3),
        ("bad", True),
        "is True in only 3 rows; at least 10",
    ),
    "another class": (loans(), ("bad", "good"), "'good' is not one of the classes: 0, 1"),
    "another type": (loans(), ("bad", True), "True is not one of the classes: 0, 1"),
    "an id": (
        loans(id=np.arange(300) + 7),
        ("bad", 0),
        "id: it numbers the rows one after another: an id, which carries no information\nleave",
    ),
    "names": (
        loans(who=[f"p{k}" for k in range(300)]),
        ("bad", 0),
        "who: all of its texts are different: an id, or free text\nleave them out with --drop who",
    ),
    "levels": (
        loans(zip=[f"z{k % 60}" for k in range(300)]),
        ("bad", 0),
        "zip: it has 60 levels, more than 50\nleave them out with --drop zip",
    ),
    "dates": (
        loans(day=pd.date_range("2024-01-01", periods=300)),
        ("bad", 0),
        "day: it holds dates or times",
    ),
    "infinities": (
        loans(x=np.where(np.arange(300) % 2, 1.0, np.inf)),
        ("bad", 0),
        "x: it holds infinite values",
    ),
    "mixed": (
        loans(x=pd.Series(["a", 1] * 150, dtype=object)),
        ("bad", 0),
        "x: it mixes int and str",
    ),
    "lists": (
        loans(x=pd.Series([[1]] * 300, dtype=object)),
        ("bad", 0),
        "x: it holds values of the type list",
    ),
    "nothing left": (
        loans()[["bad"]].assign(x=1),
        ("bad", 0),
        "there are no columns left to learn",
    ),
    "several at once": (
        loans(id=np.arange(300), day=pd.date_range("2024-01-01", periods=300)),
        ("bad", 0),
        "leave them out with --drop id --drop day",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_fitted_is_said(case):
    table, (target, favorable_class), message = REFUSED[case]
    with pytest.raises(ValueError) as error:  # noqa: PT011  # the message follows
        fit_default(table, target, favorable_class)
    assert message in str(error.value)


def test_columns_can_be_dropped():
    table = loans(id=np.arange(300))
    assert fit_default(table, "bad", 0, drop=["id"]).columns.used == ["months", "home"]
    with pytest.raises(ValueError, match="--drop: the table has no column 'it'; available: m"):
        fit_default(table, "bad", 0, drop=["it"])
    with pytest.raises(ValueError, match="--drop: 'bad' is the target"):
        fit_default(table, "bad", 0, drop=["bad"])


def test_a_draft_fits_the_model_of_the_same_table(gappy, of_gaps):
    from holdfast.actions.fitness import misfits

    table = gappy.assign(none=np.nan)
    actions = draft_actions(table, "bad", immutable=["home"], units={"months": "months"})
    assert "bad" not in actions
    assert "none" not in actions
    assert not list(misfits(Encoding.of(of_gaps.model, favorable_class=0), actions))
    with pytest.raises(ValueError, match="it numbers the rows"):
        draft_actions(loans(id=np.arange(300)), "bad")


def test_names_that_sound_protected():
    protected = ["age", "Sex", "applicantGender", "race", "marital_status", "foreign_worker"]
    protected += ["personal_status", "Nationality", "DOB", "date of birth", "religion"]
    free = ["mortgage", "sexton", "wage", "storage", "amount", "checking_status", "savings", "home"]
    assert all(map(sounds_protected, protected))
    assert not any(map(sounds_protected, free))
    german = [name for name in load_german().features if sounds_protected(name)]
    assert german == ["personal_status", "age", "foreign_worker"]


def test_numbers_can_be_categories_and_ids_are_found_with_gaps():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"region": rng.integers(1, 6, 300), "income": rng.normal(size=300)})
    table["bad"] = (table["region"] == 3) | (rng.random(300) < 0.2)
    fitted = fit_default(table, "bad", False, categories=["region"])
    assert fitted.columns.levels == {"region": [1, 2, 3, 4, 5]}
    drafted = draft_actions(table, "bad", categories=["region"])
    assert list(drafted["region"].levels) == [1, 2, 3, 4, 5]
    recourse = holdfast.RobustRecourse(
        fitted.model,
        robust_to=holdfast.NormBall(1, 0.01),
        actions=drafted,
        guarantee=0.5,
        favorable_class=False,
    )
    assert len(recourse.recommend(table.drop(columns="bad"))) == 300
    with pytest.raises(ValueError, match="--category: the table has no feature 'regoin'"):
        fit_default(table, "bad", False, categories=["regoin"])
    counted = table.assign(id=np.arange(300))
    counted["bad"] = counted["bad"].astype(object)
    counted.loc[[7, 100], "bad"] = None
    with pytest.raises(ValueError, match="id: it numbers the rows"):
        fit_default(counted, "bad", False)


def test_decimal_commas_are_named():
    rng = np.random.default_rng(0)
    texts = [f"{value:.2f}".replace(".", ",") for value in rng.normal(size=200)]
    table = pd.DataFrame({"rate": texts, "bad": rng.random(200) < 0.5})
    with pytest.raises(ValueError, match="rate: it holds numbers with a decimal comma"):
        fit_default(table, "bad", False)
