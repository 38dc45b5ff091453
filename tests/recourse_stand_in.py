"""Recourse files made in memory, for tests of what is read out of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german
from holdfast.models.encoding import Encoding
from holdfast.result.status import Status

NUMBERS = ["duration", "credit_amount", "installment_commitment", "age"]
CATEGORIES = ["checking_status", "credit_history", "savings_status", "housing", "personal_status"]


@dataclass
class StandIn:
    """What `holdfast.files.recourse.RecourseFile` offers to a reader."""

    table: pa.Table
    made_by: holdfast.RobustRecourse
    keys: list[str] = field(default_factory=list)
    path: Path = Path("recourse.parquet")
    job: dict[str, Any] = field(default_factory=lambda: {"guarantee": 0.5})
    run: dict[str, Any] = field(default_factory=dict)
    rows: int = 97

    def batches(self, columns: list[str] | None = None):
        table = self.table if columns is None else self.table.select(columns)
        yield from table.to_batches(max_chunksize=self.rows)

    def frame(self, columns: list[str] | None = None) -> pd.DataFrame:
        return (self.table if columns is None else self.table.select(columns)).to_pandas()

    def recourse(self) -> holdfast.RobustRecourse:
        return self.made_by


@dataclass
class ModelStandIn:
    """What `holdfast.files.models.ModelFile` offers to a reader."""

    model: Any
    favorable_class: Any
    path: Path = Path("new.skops")
    sha256: str = "ab" * 32


def german_table() -> pd.DataFrame:
    return load_german().features[NUMBERS + CATEGORIES]


def german_model(seed: int | None = None) -> Any:
    """A logistic regression; with a seed, of resampled people."""
    data = load_german()
    default = (~data.approved).astype(int)
    table = german_table()
    rows = np.arange(len(table))
    if seed is not None:
        rows = np.random.default_rng(seed).integers(len(rows), size=len(rows))
    columns = make_column_transformer(
        (StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), CATEGORIES)
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(
        table.iloc[rows], default.iloc[rows]
    )


def german_actions() -> holdfast.ActionSet:
    actions = holdfast.ActionSet.from_data(
        german_table(),
        immutable=["credit_history", "checking_status", "installment_commitment", "housing"],
        protected=["age", "personal_status"],
        units={"duration": "months", "credit_amount": "DM", "age": "years"},
    )
    actions.set("duration", max_decrease=24, direction="down")
    actions.set("credit_amount", max_decrease=3000, direction="down", step=100)
    actions.set(
        "savings_status",
        moves={"<100": ["100<=X<500", "500<=X<1000"], "no known savings": ["500<=X<1000"]},
    )
    return actions


def german_recourse(**settings: Any) -> holdfast.RobustRecourse:
    settings = {
        "favorable_class": 0,
        "robust_to": holdfast.NormBall(p=1, radius=0.1),
        "actions": german_actions(),
        "guarantee": 0.5,
        "n_options": 3,
        **settings,
    }
    return holdfast.RobustRecourse(settings.pop("model", None) or german_model(), **settings)


def stand_in(
    recourse: holdfast.RobustRecourse,
    people: pd.DataFrame,
    keys: dict[str, list[Any]] | None = None,
    rows: int = 97,
) -> StandIn:
    """Make the table that `holdfast recommend` writes."""
    people = people.reset_index(drop=True)
    result = recourse.recommend(people)
    frame = result.to_frame()
    frame.insert(0, "row", np.asarray(frame.index))
    frame = frame.reset_index(drop=True)
    cutoff = Encoding.of(recourse.model, favorable_class=recourse.favorable_class).model.cutoff
    approved: list[bool | None] = []
    reasons = []
    for row, status in zip(frame["row"], frame["status"], strict=True):
        why = result.why_refused(row)
        approved.append(None if why else bool(result._initial_score(row) >= cutoff))
        reasons.append(why or Status(status).sentence)
    named: dict[str, Any] = {"row": frame["row"]}
    for name, values in (keys or {}).items():
        named[name] = [values[row] for row in frame["row"]]
    named |= {name: frame[name] for name in ("option", "status")}
    named |= {"reason": reasons, "approved": pd.array(approved, dtype="boolean")}
    validities = [f"{when}_validity" for when in ("worst_case", "current", "initial")]
    numbers = ["changes", "cost", "price", "lower_bound", "gap", *validities]
    named |= {name: frame[name] for name in numbers}
    for name in people.columns:
        named[f"person.{name}"] = people[name].to_numpy()[frame["row"]]
    for name in people.columns:
        named[f"recourse.{name}"] = frame[f"recourse.{name}"]
    return StandIn(
        pa.Table.from_pandas(pd.DataFrame(named), preserve_index=False),
        recourse,
        list(keys or {}),
        rows=rows,
    )
