"""The data that future models are trained on: the table once corrected, or once years have gone by.

Upadhyay, Joshi and Lakkaraju (2021), and after them the paper, train the future model of fold k on
the same four fifths of the shifted table, shuffled and cut in the same way. Since the shifted table
has another order or other rows, some people of test fold k are among those its future model has
seen: it is the same here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer

from holdfast.datasets.dataset import Dataset
from holdfast.datasets.german import load_german
from holdfast.datasets.sba import load_sba
from holdfast.datasets.south_german import CODES, load_south_german
from holdfast.machinery.numbers import Floats
from holdfast.paper.folds import before_2006, left_out, shuffled
from holdfast.paper.prepare import (
    GERMAN_STATUS,
    german_preparation,
    names_of,
    sba_preparation,
)

# The same people stand under these two names: Groemping corrected the names, not the people.
_SAME_PEOPLE = {
    "male : divorced/separated": "male div/sep",
    "female : non-single or male : single": "female div/dep/mar",
    "male : married/widowed": "male single",
    "female : single": "male mar/wid",
}


@dataclass(frozen=True, eq=False)
class Future:
    """What the future model of a fold is trained on, in the columns of that fold."""

    names: list[str]
    points: Floats
    approved: NDArray[np.bool_]


def german_future(directory: str | Path | None = None) -> list[Future]:
    """Return, fold by fold, the corrected German table: four fifths of South German Credit.

    Numbers are scaled as they are today, on German Credit. A column of personal status stands for
    the same people in both tables: the 548 that the old table calls "male single" are, once
    corrected, "male : married/widowed".

    Parameters
    ----------
    directory : path, optional
        Where the file of `load_south_german` lies.
    """
    return _german(directory, _SAME_PEOPLE)


def german_future_as_published(directory: str | Path | None = None) -> list[Future]:
    """Return `german_future` with its one-hot columns matched by position, as the authors do.

    The third column (92 people) then meets the third code of the corrected table (548 people), and
    the fourth (548) the fourth (92). Recourse is judged by weights that belong to others.
    """
    codes = CODES["personal_status_sex"]
    in_order = (codes[code] for code in sorted(codes))
    return _german(directory, dict(zip(in_order, GERMAN_STATUS, strict=True)))


def _german(directory: str | Path | None, status: dict[str, str]) -> list[Future]:
    south = load_south_german(directory)
    table = pd.DataFrame(
        {
            "duration": south.features["duration"],
            "credit_amount": south.features["amount"],
            "age": south.features["age"],
            "personal_status": south.features["personal_status_sex"].map(status),
        }
    )
    today = german_preparation().fit(load_german().features)
    return _futures(today, table, south.approved)


def sba_future(directory: str | Path | None = None) -> list[Future]:
    """Return, fold by fold, the SBA loans of all years: four fifths of the 2,102.

    The scale is today's (loans before 2006), as in ROAR's own code, so that a point means the same
    loan to both models.

    Parameters
    ----------
    directory : path, optional
        Where SBAcase.11.13.17.csv lies.
    """
    sba = load_sba(directory)
    return _sba(sba, before_2006(sba, shuffled(sba.features)))


def sba_future_as_published(directory: str | Path | None = None) -> list[Future]:
    """Return `sba_future`, standardised anew on the loans of all years, as was published.

    Recourse found in today's scaled units is then read in other units: the same figure means
    another amount.
    """
    sba = load_sba(directory)
    return _sba(sba, shuffled(sba.features))


def _sba(sba: Dataset, scaled_on: NDArray[np.int64]) -> list[Future]:
    fitted = sba_preparation().fit(sba.features.iloc[scaled_on])
    return _futures(fitted, sba.features, sba.approved)


def _futures(
    fitted: ColumnTransformer, table: pd.DataFrame, approved: pd.Series[bool]
) -> list[Future]:
    rows, names = shuffled(table), names_of(fitted)
    points: Floats = fitted.transform(table.iloc[rows])
    good = approved.to_numpy(bool)[rows]
    return [Future(names, points[~test], good[~test]) for test in left_out(len(rows))]
