"""The main job, as a stranger runs it: by its command, on the embedded data."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from holdfast import Status
from holdfast.cli import main
from holdfast.datasets import load_german
from holdfast.demo.people import CATEGORICAL, FREE, MOST_YEARS_OLDER, MOVES, NUMERIC, run_demo


@pytest.fixture(scope="module")
def demo():
    return run_demo(n_models=30)


def test_german_credit_is_whole():
    german = load_german()
    assert german.features.shape == (1000, 20)
    assert german.approved.sum() == 700
    assert german.features["credit_amount"].sum() == 3271258
    assert german.features["duration"].sum() == 20903
    counts = german.features["personal_status"].value_counts().to_dict()
    assert counts == {
        "male single": 548,
        "female div/dep/mar": 310,
        "male mar/wid": 92,
        "male div/sep": 50,
    }
    assert not german.features.isna().any().any()


def test_every_recourse_keeps_to_the_rules(demo):
    for advice in (demo.plain, demo.robust):
        before, after = demo.denied[advice.found], advice.recourse
        fixed = [c for c in before.columns if c not in {*FREE, "age", *MOVES}]
        for column in fixed:
            assert (before[column] == after[column]).all(), column
        years = after["age"] - before["age"]
        assert ((years >= 0) & (years <= MOST_YEARS_OLDER)).all()
        for column in FREE:
            known = load_german().features[column]
            assert after[column].between(known.min(), known.max()).all()
        for column, moves in MOVES.items():
            for old, new in zip(before[column], after[column], strict=True):
                assert new in [old, *moves.get(old, [])]
        assert set(CATEGORICAL) >= set(MOVES)
        for column in NUMERIC:  # whole months, whole Marks
            assert after[column].dtype == before[column].dtype


def test_everything_is_proven(demo):
    for advice in (demo.plain, demo.robust):
        assert set(advice.status) <= {Status.OPTIMAL, Status.INFEASIBLE}
        assert all(isinstance(status, Status) for status in advice.status)
        assert np.all(advice.gap[advice.found] <= 1e-9)


def test_robust_recourse_costs_more_and_lasts_longer(demo):
    both = demo.plain.found & demo.robust.found
    assert both.sum() > 80
    assert np.all(demo.robust.cost[both] >= demo.plain.cost[both] - 1e-9)
    assert demo.robust.held[both].mean() > demo.plain.held[both].mean() + 0.15


def test_the_same_at_every_run(demo):
    again = run_demo(n_models=30)
    np.testing.assert_array_equal(demo.robust.cost, again.robust.cost)
    np.testing.assert_array_equal(demo.plain.held, again.plain.held)


def test_the_command_shows_it():
    environment = {**os.environ, "COLUMNS": "130"}
    command = [sys.executable, "-m", "holdfast", "demo", "--models", "10", "--people", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    for words in ("months", "DM", "savings from <100", "guarantor", "robust recourse", "gap"):
        assert words in done.stdout
    # a person whom nothing can help, with the reason
    assert "No change you can make" in " ".join(done.stdout.split())
    assert "What stands in the way: credit_history may not change." in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--radius", "-1"], "radius = -1.0 is not allowed"),
        (["demo", "--p", "0.5"], "p = 0.5 is not allowed; it must be from 1 to inf"),
    ],
)
def test_wrong_options_are_explained(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_radius_that_nobody_survives_is_shown_as_such(capsys):
    assert main(["demo", "--p", "inf", "--radius", "3", "--models", "2"]) == 0
    assert "0 of" in capsys.readouterr().out
