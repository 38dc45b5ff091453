"""`holdfast demo`: real people turned down for a loan, what each can do, and whether it lasts.

A logistic regression is trained on a part of German Credit. For the applicants of the rest whom it
turns down, recourse is found for today's model alone (plain) and for a whole set of models
(robust), in whole months, whole Marks and categories. Then the model is retrained on resampled
data, again and again, to see which kind holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from holdfast.actions import ActionSet
from holdfast.datasets import Dataset, load_german
from holdfast.problem.ball import NormBall
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.model_set import ModelSet
from holdfast.recommend import Recommendations, RobustRecourse
from holdfast.sets import fisher

NUMERIC = ["duration", "credit_amount", "installment_commitment", "age"]
CATEGORICAL = ["checking_status", "credit_history", "savings_status", "employment", "other_parties"]

# What an applicant can do. Everything else stays as it is.
FREE = ["duration", "credit_amount"]  # anywhere within the range of the data
MOST_YEARS_OLDER = 2
MOVES: dict[str, dict[str, list[str]]] = {
    "savings_status": {  # savings can be built up
        "<100": ["100<=X<500", "500<=X<1000", ">=1000"],
        "100<=X<500": ["500<=X<1000", ">=1000"],
        "500<=X<1000": [">=1000"],
    },
    "other_parties": {"none": ["guarantor"]},  # a guarantor can be found
}
GUARANTEE = 0.5
STANDARD_ERRORS, BALL_RADIUS = 1.25, 0.5  # of the set, where nothing else is said


@dataclass(frozen=True)
class Lender:
    """A lender's model, what applicants can do, the models that may come, and the applicants.

    Attributes
    ----------
    data : Dataset
    model : Pipeline
    actions : ActionSet
    robust_to : ModelSet
    past : DataFrame
        The loans that the model was trained on.
    applicants : DataFrame
        All others.
    """

    data: Dataset
    model: Pipeline
    actions: ActionSet
    robust_to: ModelSet
    past: pd.DataFrame
    applicants: pd.DataFrame


@dataclass(frozen=True)
class Advice:
    """One kind of recourse (plain or robust) for every applicant turned down, in raw units."""

    robust_to: ModelSet
    result: Recommendations
    found: NDArray[np.bool_]
    recourse: pd.DataFrame  # of those who have one
    cost: NDArray[np.float64]
    gap: NDArray[np.float64]
    held: NDArray[np.float64]  # share of the retrained models that approve it

    @property
    def status(self) -> NDArray[np.object_]:
        """What became of each applicant."""
        return self.result.status


@dataclass(frozen=True)
class Demo:
    """All that the demonstration shows."""

    data: Dataset
    accuracy: float
    n_train: int
    n_test: int
    n_models: int
    denied: pd.DataFrame
    probability: NDArray[np.float64]
    plain: Advice
    robust: Advice


def credit_model(features: pd.DataFrame, approved: pd.Series[bool]) -> Pipeline:
    """Return the lender's model: columns encoded, then a logistic regression."""
    columns = make_column_transformer((StandardScaler(), NUMERIC), (OneHotEncoder(), CATEGORICAL))
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(features, approved)


def possible_actions(features: pd.DataFrame, units: dict[str, str]) -> ActionSet:
    """Return what an applicant can do; costs are in standard deviations of the data."""
    actions = ActionSet.from_data(features, units={name: units[name] for name in NUMERIC})
    actions.set(
        "age", direction="up", physical=["direction"], max_increase=MOST_YEARS_OLDER, upper=None
    )
    for name in (*NUMERIC, *CATEGORICAL):
        if name in MOVES:
            actions.set(name, moves=MOVES[name])
        elif name not in FREE and name != "age":
            actions[name].immutable = True
    return actions


def train_lender() -> Lender:
    """Train the lender's model on most loans; the others are applicants.

    The set of models is the ellipsoid of the Fisher information.
    """
    data = load_german()
    table = data.features[NUMERIC + CATEGORICAL]
    order = np.random.default_rng(0).permutation(len(table))
    past, applicants = table.iloc[order[:600]], table.iloc[order[600:]]
    model = credit_model(past, data.approved.iloc[order[:600]])
    return Lender(
        data=data,
        model=model,
        actions=possible_actions(past, data.units),
        robust_to=fisher(model, past, radius=STANDARD_ERRORS),
        past=past,
        applicants=applicants,
    )


def run_demo(
    p: float | None = None,
    radius: float | None = None,
    n_models: int = 100,
) -> Demo:
    """Train, find both kinds of recourse, retrain, and count.

    The set of models is the ellipsoid of the Fisher information, or a ball where p is given.
    """
    if radius is None:
        radius = STANDARD_ERRORS if p is None else BALL_RADIUS
    # wrong arguments are said at once
    robust: ModelSet = Ellipsoid(np.eye(1), radius) if p is None else NormBall(p, radius)
    lender = train_lender()
    if p is None:
        robust = lender.robust_to.with_radius(radius)
    model, actions, test = lender.model, lender.actions, lender.applicants
    probability = model.predict_proba(test)[:, 1]
    accuracy = float(np.mean((probability >= 0.5) == lender.data.approved.loc[test.index]))
    denied = test[probability < 0.5]
    past = lender.past
    futures = retrained(model, past, lender.data.approved.loc[past.index], n_models)
    return Demo(
        data=lender.data,
        accuracy=accuracy,
        n_train=len(past),
        n_test=len(test),
        n_models=n_models,
        denied=denied,
        probability=probability[probability < 0.5],
        plain=advise(model, actions, denied, robust.with_radius(0.0), futures),
        robust=advise(model, actions, denied, robust, futures),
    )


def retrained(
    model: Pipeline, features: pd.DataFrame, approved: pd.Series[bool], n_models: int
) -> list[Any]:
    """Fit the classifier again to resamples, behind the same encoders."""
    encoded, labels = model[:-1].transform(features), approved.to_numpy()
    models = []
    with threadpool_limits(1):  # for models this small, threads only get in each other's way
        for k in range(n_models):
            rows = np.random.default_rng(k).integers(len(labels), size=len(labels))
            models.append(LogisticRegression(max_iter=1000).fit(encoded[rows], labels[rows]))
    return models


def advise(
    model: Pipeline,
    actions: ActionSet,
    people: pd.DataFrame,
    robust_to: ModelSet,
    futures: list[Any],
) -> Advice:
    """Recommend, and count which of the later models approve of those who followed."""
    recourse = RobustRecourse(model, robust_to=robust_to, actions=actions, guarantee=GUARANTEE)
    result = recourse.recommend(people)
    cost, gap, held = (np.full(len(people), value) for value in (np.inf, np.nan, np.nan))
    ways = [result.ways(label) for label in people.index]
    found = np.array([bool(some) for some in ways])
    for i in np.flatnonzero(found).tolist():
        cost[i], gap[i] = ways[i][0].cost, ways[i][0].gap
    after = result.after()
    if found.any():
        encoded = model[:-1].transform(after)
        held[found] = np.mean([future.predict(encoded) for future in futures], axis=0)
    return Advice(robust_to, result, found, after, cost, gap, held)
