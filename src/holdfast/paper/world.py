"""What a fold holds: people turned down, the model that did it, and the models that may follow."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.models import Model, as_model
from holdfast.paper.catalogue import paper_lineariser
from holdfast.paper.constraints import Constraints
from holdfast.paper.folds import Fold, german_folds, sba_folds
from holdfast.paper.shift import (
    Future,
    german_future,
    german_future_as_published,
    sba_future,
    sba_future_as_published,
)
from holdfast.result.surrogate import Surrogate

DATASETS = ("german", "sba")
MODELS = ("logistic", "network")
SEED = 0  # of whatever draws random numbers
_YEARS_OF_AGE = 2  # that the paper lets people grow older
_FUTURES = {  # soundly, and as published
    "german": (german_future, german_future_as_published),
    "sba": (sba_future, sba_future_as_published),
}


@dataclass(frozen=True, eq=False)
class World:
    """One fold of one data set under one kind of model.

    Attributes
    ----------
    fold : Fold
    model : Model
        Today's, trained on four fifths.
    denied : (n, d) array
        The people of the last fifth whom it turns down.
    future, future_as_published : Model or None
        Trained on the shifted data; None where that is absent.
    """

    fold: Fold
    model: Model
    denied: Floats
    future: Model | None
    future_as_published: Model | None

    @property
    def constraints(self) -> Constraints:
        """What the paper asks of a recourse afterwards."""
        d = len(self.fold.names)
        down, up = np.full(d, np.inf), np.full(d, np.inf)
        for j, name in enumerate(self.fold.names):
            if name == "age":
                down[j], up[j] = 0.0, _YEARS_OF_AGE * self.fold.scale[j]
        return Constraints(self.fold.groups, down, up)


@lru_cache(maxsize=4)
def load_world(
    dataset: str, model: str, fold: int, shifted: bool, directory: Path | None, device: str | None
) -> World:
    """Prepare a fold and train its models, of the shifted data too where that is at hand.

    The last few worlds are kept in memory.
    """
    today = load_folds(dataset, directory)[fold]
    trained = _train(model, today.train_points, today.train_approved, device)
    denied = today.test_points[trained.score(today.test_points) < 0.0]
    futures: list[Model | None] = [None, None]
    if shifted:
        shifts = [load_futures(dataset, directory, way)[fold] for way in (False, True)]
        futures = [_train(model, shift.points, shift.approved, device) for shift in shifts]
    return World(today, trained, denied, *futures)


@lru_cache(maxsize=4)
def load_folds(dataset: str, directory: Path | None) -> list[Fold]:
    """The five folds of a data set; `DataAbsent` where its file is not to be had."""
    return german_folds() if dataset == "german" else sba_folds(directory)


@lru_cache(maxsize=4)
def load_futures(dataset: str, directory: Path | None, as_published: bool) -> list[Future]:
    """The shifted data, for each fold; `DataAbsent` where its file is not to be had."""
    return _FUTURES[dataset][as_published](directory)


def _train(kind: str, points: Floats, approved: Any, device: str | None) -> Model:
    if kind == "network":
        from holdfast.paper.training import train_network

        return train_network(points, approved, random_state=SEED, device=device)
    from sklearn.linear_model import LogisticRegression

    return as_model(LogisticRegression().fit(points, approved))


@lru_cache(maxsize=8)
def load_surrogate(world: World, linearise: str, count: int) -> Surrogate:
    """Linearise the model of a world around its first people.

    How a person's surrogate comes out may depend on their place among the denied (as published, it
    is the seed), so that it is made for all up to the last one wanted.
    """
    begin = time.perf_counter()
    training = world.fold.train_points
    fitted = paper_lineariser(linearise).fit(world.model, world.denied[:count], training, SEED)
    return replace(fitted, seconds=time.perf_counter() - begin)
