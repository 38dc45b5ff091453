"""The paper's folds of its data sets: prepared, shuffled, cut into five."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer

from holdfast.datasets.dataset import Dataset
from holdfast.datasets.german import load_german
from holdfast.datasets.sba import load_sba
from holdfast.machinery.numbers import Floats, check_choice, check_count
from holdfast.paper.prepare import (
    german_preparation,
    groups_of,
    names_of,
    sba_preparation,
    scale_of,
)

N_FOLDS = 5
FIRST_YEAR_OF_THE_FUTURE = 2006


@dataclass(frozen=True, eq=False)
class Fold:
    """Four fifths to train on, one fifth to find recourse for, all in scaled columns.

    Attributes
    ----------
    groups : list of list of int
        Positions of the columns of each one-hot group.
    scale : array, (n_columns,)
        What one raw unit is in scaled units (a year of age, a month); 1 for one-hot columns.
    """

    names: list[str]
    train_points: Floats
    train_approved: NDArray[np.bool_]
    test_points: Floats
    groups: list[list[int]]
    scale: Floats


def german_folds() -> list[Fold]:
    """German Credit as the paper uses it: 3 numbers and the personal status, 7 columns.

    Numbers are standardised on the whole table, not on the part trained on, as the authors do.

    Examples
    --------
    >>> fold = german_folds()[0]
    >>> fold.train_points.shape, fold.test_points.shape
    ((800, 7), (200, 7))
    """
    german = load_german()
    return _folds(german_preparation().fit(german.features), german, shuffled(german.features))


def sba_folds(directory: str | Path | None = None) -> list[Fold]:
    """Return the loans of the SBA case before 2006 as the paper uses them: 25 columns.

    They are shuffled before the years are chosen, and standardised on all loans before 2006, as the
    authors do.

    Parameters
    ----------
    directory : path, optional
        Where SBAcase.11.13.17.csv lies; see docs/data.md for where else it is looked for.
    """
    sba = load_sba(directory)
    rows = before_2006(sba, shuffled(sba.features))
    return _folds(sba_preparation().fit(sba.features.iloc[rows]), sba, rows)


def published_sample(fold: int, denied: int, model: str) -> list[int]:
    """Return which of the denied people of an SBA fold the paper's tables speak of.

    The authors draw three at a time with numpy's generator of the fold's number (from 0): for
    networks twice, which makes 6 (16 %); for logistic regression a third time, with the generator
    started anew, which makes 9 (24 %). The order is that of the draws: it matters to
    `holdfast.paper.published_worst_network`.

    Examples
    --------
    >>> published_sample(0, denied=39, model="network")
    [24, 19, 31, 0, 2, 1]
    >>> sorted(published_sample(0, denied=39, model="logistic"))
    [0, 1, 2, 19, 20, 24, 25, 31, 32]
    """
    check_choice("model", model, ("network", "logistic"))
    check_count("fold", fold, least=0)
    check_count("denied", denied, least=9)
    drawn: list[int] = []
    generators = [np.random.default_rng(fold)] * 2
    if model == "logistic":
        generators.append(np.random.default_rng(fold))
    for generator in generators:
        rest = np.setdiff1d(np.arange(denied), drawn)
        drawn += [int(k) for k in generator.choice(rest, size=3, replace=False)]
    return drawn


def shuffled(table: pd.DataFrame) -> NDArray[np.int64]:
    """Return the rows of a table in the order in which the authors shuffle it."""
    rows = pd.Series(np.arange(len(table)))
    return rows.sample(frac=1, random_state=0).to_numpy()


def before_2006(sba: Dataset, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep of `rows` the loans that are today's in the paper."""
    years = sba.features["ApprovalFY"].to_numpy()
    return rows[years[rows] < FIRST_YEAR_OF_THE_FUTURE]


def left_out(n: int) -> Iterator[NDArray[np.bool_]]:
    """Mark, fold by fold, the contiguous part that is not trained on."""
    for k in range(N_FOLDS):
        inside = np.zeros(n, dtype=bool)
        inside[int(k / N_FOLDS * n) : int((k + 1) / N_FOLDS * n)] = True
        yield inside


def _folds(fitted: ColumnTransformer, data: Dataset, rows: NDArray[np.int64]) -> list[Fold]:
    points: Floats = fitted.transform(data.features.iloc[rows])
    good = data.approved.to_numpy(bool)[rows]
    names, groups, scale = names_of(fitted), groups_of(fitted), scale_of(fitted)
    return [
        Fold(names, points[~test], good[~test], points[test], groups, scale)
        for test in left_out(len(rows))
    ]
