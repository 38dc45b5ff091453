"""The data sets: what they hold, what is said of it, and what the shifted tables change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_files import needs_files
from scipy.optimize import linear_sum_assignment
from test_readme import run_examples

from holdfast.datasets import load_german, load_sba, load_south_german, make_gaussians
from holdfast.datasets.sources import SBA, SOUTH_GERMAN
from holdfast.datasets.south_german import CODES
from holdfast.paper.folds import german_folds, sba_folds
from holdfast.paper.prepare import sba_preparation, scale_of
from holdfast.paper.shift import (
    german_future,
    german_future_as_published,
    sba_future,
    sba_future_as_published,
)

LOADERS = [
    pytest.param(load_german, id="german"),
    pytest.param(make_gaussians, id="gaussians"),
    pytest.param(load_south_german, id="south german", marks=needs_files),
    pytest.param(load_sba, id="sba", marks=needs_files),
]


@pytest.mark.parametrize("load", LOADERS)
def test_every_column_is_explained(load):
    data = load()
    assert [column.name for column in data.columns] == list(data.features.columns)
    assert len(data.features) == len(data.approved)
    assert data.approved.dtype == bool
    for column in data.columns:
        values = data.features[column.name]
        assert column.meaning
        if column.kind == "category":
            assert not column.unit
        else:
            assert values.dtype.kind in "if"
        if column.kind == "whole number":
            assert (values.dropna() % 1 == 0).all()
    for text in (data.name, data.licence, data.citation, data.source):
        assert text


def test_units_are_those_of_the_columns():
    assert load_german().units == {
        "duration": "months",
        "credit_amount": "DM",
        "installment_commitment": "% of income",
        "residence_since": "years",
        "age": "years",
        "existing_credits": "credits",
        "num_dependents": "people",
    }


@needs_files
def test_south_german_is_decoded_in_full():
    data = load_south_german()
    assert data.features.shape == (1000, 20)
    assert int(data.approved.sum()) == 700
    assert not data.features.isna().any().any()
    assert data.features["personal_status_sex"].value_counts().to_dict() == {
        "male : married/widowed": 548,
        "female : non-single or male : single": 310,
        "female : single": 92,
        "male : divorced/separated": 50,
    }


@needs_files
def test_sba_is_as_published():
    data = load_sba()
    assert data.features.shape == (2102, 33)
    assert int(data.approved.sum()) == 1416
    assert int(data.features["ChgOffDate"].isna().sum()) == 1405


# Name in German Credit of each code of South German: the order of UCI 144's codes.
OLD_NAMES = {
    "checking_status": ("status", ["<0", "0<=X<200", ">=200", "no checking"]),
    "credit_history": (
        "credit_history",
        [
            "no credits/all paid",
            "all paid",
            "existing paid",
            "delayed previously",
            "critical/other existing credit",
        ],
    ),
    "purpose": (
        "purpose",
        [
            "new car",
            "used car",
            "furniture/equipment",
            "radio/tv",
            "domestic appliance",
            "repairs",
            "education",
            "(vacation: nobody)",
            "retraining",
            "business",
            "other",
        ],
    ),
    "savings_status": (
        "savings",
        ["<100", "100<=X<500", "500<=X<1000", ">=1000", "no known savings"],
    ),
    "employment": ("employment_duration", ["unemployed", "<1", "1<=X<4", "4<=X<7", ">=7"]),
    "installment_commitment": ("installment_rate", [1, 2, 3, 4]),
    "personal_status": (
        "personal_status_sex",
        ["male div/sep", "female div/dep/mar", "male single", "male mar/wid"],
    ),
    "other_parties": ("other_debtors", ["none", "co applicant", "guarantor"]),
    "residence_since": ("present_residence", [1, 2, 3, 4]),
    "property_magnitude": (
        "property",
        ["real estate", "life insurance", "car", "no known property"],
    ),
    "other_payment_plans": ("other_installment_plans", ["bank", "stores", "none"]),
    "housing": ("housing", ["rent", "own", "for free"]),
    "existing_credits": ("number_credits", [1, 2, 3, 4]),
    "job": (
        "job",
        [
            "unemp/unskilled non res",
            "unskilled resident",
            "skilled",
            "high qualif/self emp/mgmt",
        ],
    ),
    "num_dependents": ("people_liable", [2, 1]),
    "own_telephone": ("telephone", ["none", "yes"]),
    "foreign_worker": ("foreign_worker", ["no", "yes"]),
}


def in_old_names(south):
    """South German under the names that German Credit has for the same people."""
    table = pd.DataFrame(
        {
            "duration": south.features["duration"],
            "credit_amount": south.features["amount"],
            "age": south.features["age"],
            "approved": south.approved,
        }
    )
    for old, (new, names) in OLD_NAMES.items():
        back = dict(zip(CODES[new].values(), names, strict=True))
        table[old] = south.features[new].map(back)
    return table


@needs_files
def test_german_and_south_german_are_the_same_people():
    """Pair the rows so that the fewest cells differ, and count what the correction changed."""
    german, south = load_german(), load_south_german()
    old = german.features.assign(approved=german.approved)
    new = in_old_names(south)[old.columns]
    differ = sum(
        old[name].to_numpy()[:, None] != new[name].to_numpy()[None, :] for name in old.columns
    )
    pairs = linear_sum_assignment(differ)
    matched = new.iloc[pairs[1]].reset_index(drop=True)
    changed = {name: int((old[name] != matched[name]).sum()) for name in old.columns}
    assert {name: count for name, count in changed.items() if count} == {
        "credit_amount": 4,
        "age": 6,
        "other_payment_plans": 35,
        "housing": 1,
        "foreign_worker": 10,
    }
    assert int((differ[pairs] > 0).sum()) == 53
    assert int(differ[pairs].max()) == 2


def one_hot_counts(futures):
    """People of each one-hot column; each row is in four of the five training parts."""
    return sum(future.points[:, 3:].sum(axis=0) for future in futures) / 4


@needs_files
def test_the_corrected_table_is_matched_by_people_or_as_published_by_position():
    folds, ours, theirs = german_folds(), german_future(), german_future_as_published()
    today = sum(fold.test_points[:, 3:].sum(axis=0) for fold in folds)
    assert today.tolist() == [50, 310, 92, 548]
    assert one_hot_counts(ours).tolist() == [50, 310, 92, 548]
    assert one_hot_counts(theirs).tolist() == [50, 310, 548, 92]
    for fold, our, their in zip(folds, ours, theirs, strict=True):
        assert our.names == their.names == fold.names
        assert our.points.shape == fold.train_points.shape
        np.testing.assert_array_equal(our.points[:, :5], their.points[:, :5])
        np.testing.assert_array_equal(our.points[:, [5, 6]], their.points[:, [6, 5]])
        np.testing.assert_array_equal(our.approved, their.approved)


@needs_files
def test_the_corrected_table_keeps_the_scale_of_today():
    """Ten cells of the three numbers were corrected, and nothing else may differ."""
    today = np.vstack([fold.test_points for fold in german_folds()])
    raw = load_south_german().features[["duration", "amount", "age"]].to_numpy(float)
    old = load_german().features[["duration", "credit_amount", "age"]].to_numpy(float)
    future = np.vstack([future.points for future in german_future()])[:, :3]
    expected = (raw - old.mean(axis=0)) / old.std(axis=0)
    np.testing.assert_allclose(np.unique(future, axis=0), np.unique(expected, axis=0), atol=1e-12)
    assert np.isin(future.round(9), today[:, :3].round(9)).mean() > 0.99


@needs_files
def test_the_later_loans_are_scaled_as_today_or_as_published_anew():
    folds, ours, theirs = sba_folds(), sba_future(), sba_future_as_published()
    for fold, our, their in zip(folds, ours, theirs, strict=True):
        assert our.names == their.names == fold.names
        assert len(our.points) == len(their.points) in (1681, 1682)
        np.testing.assert_array_equal(our.points[:, 20:], their.points[:, 20:])
    # A loan that both tables hold is the same point, unless the scale is fitted anew.
    everyone = {tuple(row) for future in ours for row in future.points.round(9)}
    assert all(tuple(row) in everyone for fold in folds for row in fold.test_points.round(9))
    numbers = np.vstack([future.points[:, :20] for future in theirs])
    np.testing.assert_allclose(numbers.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(numbers.std(axis=0), 1.0)


@needs_files
def test_a_point_goes_back_to_raw_units_by_the_scale():
    features = load_sba().features
    table = features[features["ApprovalFY"] < 2006]
    fitted = sba_preparation().fit(table)
    longer = table.assign(Term=table["Term"] + 12)
    moved = fitted.transform(longer) - fitted.transform(table)
    place = list(fitted.get_feature_names_out()).index("Term")
    np.testing.assert_allclose(moved[:, place], 12 * scale_of(fitted)[place])
    assert np.delete(moved, place, axis=1).any() == 0


def test_gaussians_are_those_of_the_literature():
    today = make_gaussians(n=40_000, random_state=3)
    later = make_gaussians(n=40_000, random_state=3, mean_shift=1.5, variance_shift=3.0)
    for data, move, variance in [(today, 0.0, 0.5), (later, 1.5, 2.0)]:
        for good, mean in [(False, -2.0), (True, 2.0)]:
            points = data.features[data.approved == good].to_numpy()
            assert len(points) == 20_000
            np.testing.assert_allclose(points.mean(axis=0), mean + move, atol=0.05)
            np.testing.assert_allclose(np.cov(points.T), variance * np.eye(2), atol=0.08)


def test_gaussians_follow_their_seed():
    pd.testing.assert_frame_equal(
        make_gaussians().features, make_gaussians(random_state=0).features
    )
    assert not make_gaussians(random_state=1).features.equals(
        make_gaussians(random_state=0).features
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 7}, "even"),
        ({"n": 0}, "n = 0 is not allowed"),
        ({"variance_shift": -1.0}, "greater than -1"),
    ],
)
def test_impossible_gaussians_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make_gaussians(**settings)


def test_the_page_says_what_is_so():
    page = (Path(__file__).parent.parent / "docs" / "data.md").read_text()
    for file in (SOUTH_GERMAN, SBA):
        assert f"| `{file.name}` | `{file.sha256}` |" in page
    names = run_examples(page)
    assert len(names["today"].features) == len(names["later"].features)
