"""`holdfast demo`: real people turned down for a loan, what each can do, and whether it lasts.

A logistic regression is trained on a part of German Credit. For the applicants of the rest whom it
turns down, recourse is found for today's model alone (plain) and for a whole ball of models
(robust). Then the model is retrained on resampled data, again and again, to see which kind holds.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from holdfast.api import solve
from holdfast.ball import NormBall
from holdfast.datasets import Dataset, load_german
from holdfast.result import GAP_TOLERANCE, Recourse, Status

NUMERIC = ["duration", "credit_amount", "installment_commitment", "age"]
CATEGORICAL = ["checking_status", "credit_history", "savings_status", "employment", "other_parties"]

# What an applicant can do. Everything else stays as it is.
FREE = ["duration", "credit_amount"]  # anywhere within the range of the data
MOST_YEARS_OLDER = 2.0
MOVES: dict[str, dict[str, list[str]]] = {
    "savings_status": {  # savings can be built up
        "<100": ["100<=X<500", "500<=X<1000", ">=1000"],
        "100<=X<500": ["500<=X<1000", ">=1000"],
        "500<=X<1000": [">=1000"],
    },
    "other_parties": {"none": ["guarantor"]},  # a guarantor can be found
}
SWITCH_COST = 1.0  # a new category costs as much as moving a number by one standard deviation
GUARANTEE = 0.5


@dataclass(frozen=True)
class Advice:
    """One kind of recourse (plain or robust) for every applicant turned down, in raw units."""

    ball: NormBall
    recourse: pd.DataFrame
    price: NDArray[np.float64]
    gap: NDArray[np.float64]
    status: NDArray[np.object_]
    held: NDArray[np.float64]  # share of the retrained models that approve it
    reasons: list[str]

    @property
    def found(self) -> NDArray[np.bool_]:
        """Who has a recourse."""
        return np.isfinite(self.price)


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


class CreditModel:
    """The lender's model: columns encoded, then a logistic regression."""

    def __init__(self, features: pd.DataFrame, approved: pd.Series[bool]) -> None:
        columns = [
            ("number", StandardScaler(), NUMERIC),
            ("category", OneHotEncoder(sparse_output=False), CATEGORICAL),
        ]
        self.encoder = ColumnTransformer(columns).fit(features)
        self.encoded, self.approved = self.encode(features), approved.to_numpy()
        self.classifier = LogisticRegression(max_iter=1000).fit(self.encoded, self.approved)
        self.lowest, self.highest = self.encoded.min(axis=0), self.encoded.max(axis=0)

    def encode(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the columns as the classifier reads them."""
        return np.asarray(self.encoder.transform(features), dtype=np.float64)

    def retrain(self, seed: int) -> tuple[NDArray[np.float64], float]:
        """Fit the same classifier to a resample; return its coefficients and intercept."""
        n = len(self.encoded)
        rows = np.random.default_rng(seed).integers(n, size=n)
        model = LogisticRegression(max_iter=1000).fit(self.encoded[rows], self.approved[rows])
        return model.coef_[0], float(model.intercept_[0])

    def decode_numbers(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the numeric columns in raw units."""
        scaler = self.encoder.named_transformers_["number"]
        return np.asarray(scaler.inverse_transform(encoded[:, : len(NUMERIC)]))

    def years(self, years: float) -> float:
        """So many years, in the units of the encoded age."""
        scaler = self.encoder.named_transformers_["number"]
        return float(years / scaler.scale_[NUMERIC.index("age")])


def run_demo(p: float = 1.0, radius: float = 0.5, n_models: int = 100, seed: int = 0) -> Demo:
    """Train, find both kinds of recourse, retrain, and count."""
    plain, robust = NormBall(p, 0.0), NormBall(p, radius)  # wrong arguments are said at once
    data = load_german()
    order = np.random.default_rng(seed).permutation(len(data.features))
    train, test = order[:600], order[600:]
    model = CreditModel(data.features.iloc[train], data.approved.iloc[train])

    test_features = data.features.iloc[test]
    probability = model.classifier.predict_proba(model.encode(test_features))[:, 1]
    accuracy = float(np.mean((probability >= 0.5) == data.approved.iloc[test]))
    denied = test_features[probability < 0.5]
    with threadpool_limits(1):  # for models this small, threads only get in each other's way
        futures = [model.retrain(seed=k) for k in range(n_models)]
    return Demo(
        data=data,
        accuracy=accuracy,
        n_train=len(train),
        n_test=len(test),
        n_models=n_models,
        denied=denied,
        probability=probability[probability < 0.5],
        plain=advise(model, denied, plain, futures),
        robust=advise(model, denied, robust, futures),
    )


def advise(model: CreditModel, people: pd.DataFrame, ball: NormBall, futures: list[Any]) -> Advice:
    """Find the best recourse of each person over all categories that he or she can move to.

    With the categories fixed, what is left is a problem for `holdfast.solve`: one row for each
    person and each choice of categories, and the cheapest of a person's rows is the answer. The
    smallest of their lower bounds is a lower bound for all of them: the gap proves the choice too.
    """
    owner, choices = _choices(people)
    start = model.encode(people)[owner]
    target = model.encode(choices)
    lower, upper = _bounds(model, start, target)
    result = solve(
        target,  # the categories have been switched already; the price of that is added below
        model.classifier.coef_[0],
        model.classifier.intercept_[0],
        ball=ball,
        guarantee=GUARANTEE,
        bounds=(lower, upper),
    )
    switched = (choices[CATEGORICAL] != people[CATEGORICAL].iloc[owner].to_numpy()).sum(axis=1)
    extra = SWITCH_COST * switched.to_numpy()
    return _cheapest(model, people, choices, owner, result, extra, futures)


def _choices(people: pd.DataFrame) -> tuple[NDArray[np.int64], pd.DataFrame]:
    """Spell out every choice of categories open to each person; first comes staying put."""
    owner: list[int] = []
    rows: list[dict[str, Any]] = []
    for i in range(len(people)):
        person = {str(name): value for name, value in people.iloc[i].items()}
        levels = [[person[c], *MOVES[c].get(person[c], [])] for c in MOVES]
        for combination in itertools.product(*levels):
            owner.append(i)
            rows.append({**person, **dict(zip(MOVES, combination, strict=True))})
    return np.array(owner), pd.DataFrame(rows, columns=people.columns)


def _bounds(
    model: CreditModel, start: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    lower, upper = target.copy(), target.copy()
    for name in FREE:
        j = NUMERIC.index(name)
        lower[:, j] = np.minimum(start[:, j], model.lowest[j])
        upper[:, j] = np.maximum(start[:, j], model.highest[j])
    upper[:, NUMERIC.index("age")] += model.years(MOST_YEARS_OLDER)
    return lower, upper


def _cheapest(
    model: CreditModel,
    people: pd.DataFrame,
    choices: pd.DataFrame,
    owner: NDArray[np.int64],
    result: Recourse,
    extra: NDArray[np.float64],
    futures: list[Any],
) -> Advice:
    total, bound = result.price + extra, result.lower_bound + extra
    best = np.array([rows[np.argmin(total[rows])] for rows in _groups(owner)])
    price = total[best]
    lower_bound = np.array([bound[rows].min() for rows in _groups(owner)])
    found = np.isfinite(price)
    gap = np.subtract(price, lower_bound, out=np.zeros(len(price)), where=np.isfinite(lower_bound))
    status = np.empty(len(price), dtype=object)  # np.where would make plain strings of them
    status[~found] = Status.INFEASIBLE
    status[found] = Status.OPTIMAL
    status[found & ~(np.abs(gap) <= GAP_TOLERANCE * (1 + price))] = Status.GAP_OPEN
    # who cannot be helped hears of the choice that would survive the largest radius
    survives = np.nan_to_num(result.reachable_radius, nan=-1.0)
    nearest = [rows[np.argmax(survives[rows])] for rows in _groups(owner)]
    encoded = np.asarray(result.recourse)[best]
    recourse = choices.iloc[best].reset_index(drop=True).astype(dict.fromkeys(NUMERIC, float))
    recourse[NUMERIC] = model.decode_numbers(encoded)
    recourse.index = people.index
    return Advice(
        ball=result.problem.ball,
        recourse=recourse,
        price=price,
        gap=gap,
        status=status,
        held=np.mean([encoded @ coef + intercept >= 0.0 for coef, intercept in futures], axis=0),
        reasons=[result.message(k) for k in nearest],
    )


def _groups(owner: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.split(np.arange(len(owner)), np.flatnonzero(np.diff(owner)) + 1)
