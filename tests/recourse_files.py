"""Recourse files of German Credit, for tests of what is read out of them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german
from holdfast.engines.local import run_job
from holdfast.files.jobs import Job
from holdfast.files.models import save_model
from holdfast.files.recourse import RecourseFile

NUMBERS = ["duration", "credit_amount", "installment_commitment", "age"]
CATEGORIES = ["checking_status", "credit_history", "savings_status", "housing", "personal_status"]
PROTECTED = ["age", "personal_status"]


def german_people() -> pd.DataFrame:
    """Everybody, with a customer number and a region; of three, a cell cannot be used."""
    people = load_german().features[NUMBERS + CATEGORIES].copy()
    people["customer"] = [f"C{k:04d}" for k in range(len(people))]
    people["region"] = [("north", "south", "west")[k % 3] for k in range(len(people))]
    people = people.astype({"duration": object})
    people.loc[5, "duration"] = None
    people.loc[100, "duration"] = "long"
    people.loc[200, "housing"] = "castle"
    return people


def german_model(seed: int | None = None, names: list[str] | None = None) -> Any:
    """A logistic regression; with a seed, of resampled people."""
    data = load_german()
    default = (~data.approved).astype(int)
    categories = CATEGORIES if names is None else names
    table = data.features[NUMBERS + categories]
    rows = np.arange(len(table))
    if seed is not None:
        rows = np.random.default_rng(seed).integers(len(rows), size=len(rows))
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), categories))
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(
        table.iloc[rows], default.iloc[rows]
    )


def german_actions() -> holdfast.ActionSet:
    """What people can change; the age and the personal status are protected."""
    actions = holdfast.ActionSet.from_data(
        load_german().features[NUMBERS + CATEGORIES],
        immutable=["credit_history", "checking_status", "installment_commitment", "housing"],
        protected=PROTECTED,
        units={"duration": "months", "credit_amount": "DM", "age": "years"},
    )
    actions.set("duration", max_decrease=24, direction="down")
    actions.set("credit_amount", max_decrease=3000, direction="down", step=100)
    actions.set(
        "savings_status",
        moves={"<100": ["100<=X<500", "500<=X<1000"], "no known savings": ["500<=X<1000"]},
    )
    return actions


# Held as long as the tests run, and removed with them.
_FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def german_file() -> RecourseFile:
    """What the main job leaves for everybody: made once, for reading only."""
    return make_recourse(Path(_FOLDER.name))


@functools.cache
def later_models() -> list[Path]:
    """Two models of resampled people, beside that file."""
    folder = german_file().path.parent
    for seed in (0, 1):
        save_model(german_model(seed), folder / f"later_{seed}.skops", favorable_class=0)
    return [folder / f"later_{seed}.skops" for seed in (0, 1)]


def make_recourse(
    folder: Path,
    people: pd.DataFrame | None = None,
    actions: Any = None,
    model: Any = None,
    **settings: Any,
) -> RecourseFile:
    """Run the main job in a folder, and open what it leaves."""
    people = german_people() if people is None else people
    people.to_csv(folder / "people.csv", index=False)
    model = german_model() if model is None else model
    save_model(model, folder / "model.skops", favorable_class=0)
    (german_actions() if actions is None else actions).save(folder / "actions.yaml")
    asked: dict[str, Any] = {
        "robust_to": "p=1,radius=0.1",
        "guarantee": 0.5,
        "n_options": 3,
        "keys": ["customer", "region"],
        **settings,
    }
    job = Job(
        model=str(folder / "model.skops"),
        people=str(folder / "people.csv"),
        actions=str(folder / "actions.yaml"),
        out=str(folder / "recourse.parquet"),
        **asked,
    )
    run_job(job, n_jobs=1)
    return RecourseFile.open(folder / "recourse.parquet")
