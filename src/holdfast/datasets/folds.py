"""The paper's preparation of its data sets: columns, scaling, one-hot, shuffle, five folds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast._numbers import Floats
from holdfast.datasets.german import load_german

N_FOLDS = 5
# in the order of the authors' codes 1, 2, 3 and 5
_GERMAN_STATUS = ["male div/sep", "female div/dep/mar", "male mar/wid", "male single"]
_SBA_FILE = "SBAcase.11.13.17.csv"
_SBA_DROPPED = [
    "Selected",
    "State",
    "Name",
    "BalanceGross",
    "LowDoc",
    "BankState",
    "LoanNr_ChkDgt",
    "MIS_Status",
    "Default",
    "Bank",
    "City",
]


@dataclass(frozen=True, eq=False)
class Fold:
    """Four fifths to train on, one fifth to find recourse for, all in scaled columns."""

    names: list[str]
    train_points: Floats
    train_approved: NDArray[np.bool_]
    test_points: Floats
    test_approved: NDArray[np.bool_]


def german_folds() -> list[Fold]:
    """German Credit as the paper uses it: 3 numbers and the personal status, 7 columns.

    Examples
    --------
    >>> fold = german_folds()[0]
    >>> fold.train_points.shape, fold.test_points.shape
    ((800, 7), (200, 7))
    """
    german = load_german()
    numbers = german.features[["duration", "credit_amount", "age"]].astype(float)
    status = pd.get_dummies(german.features["personal_status"])[_GERMAN_STATUS]
    table = _table(numbers, status, german.approved)
    return list(_folds(table.sample(frac=1, random_state=0)))


def sba_folds(directory: str | Path | None = None) -> list[Fold]:
    """Return the loans of the SBA case before 2006 as the paper uses them: 25 columns.

    `directory` (by default what the environment variable HOLDFAST_DATA_DIR names) holds the file
    of Li, Mickel and Taylor (2018), SBAcase.11.13.17.csv.
    """
    table = pd.read_csv(_sba_file(directory), low_memory=False)
    table = table.sample(frac=1, random_state=0)  # before the years are chosen
    table = table[table["ApprovalFY"] < 2006]
    approved = table["Default"] == 0
    table = table.drop(columns=_SBA_DROPPED)
    numbers = table.select_dtypes("number").fillna(-1.0)
    many = [name for name in numbers if numbers[name].nunique() > 2]
    categories = pd.get_dummies(table.drop(columns=numbers.columns).fillna("-1"))
    return list(_folds(_table(numbers[many], categories, approved)))


def _sba_file(directory: str | Path | None) -> Path:
    path = Path(directory or os.environ.get("HOLDFAST_DATA_DIR", ".")) / _SBA_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there: it is the supplement of Li, Mickel and Taylor (2018), "
            "https://doi.org/10.1080/10691898.2018.1434342; put it there, or name its directory "
            "by the argument or by HOLDFAST_DATA_DIR"
        )
    return path


def _table(numbers: pd.DataFrame, dummies: pd.DataFrame, approved: pd.Series) -> pd.DataFrame:
    """Scale the numbers on the whole table, as the authors do; the outcome comes last."""
    scaled = (numbers - numbers.mean()) / numbers.std(ddof=0)
    return pd.concat([scaled, dummies.astype(float), approved.rename("approved")], axis=1)


def _folds(table: pd.DataFrame) -> Iterator[Fold]:
    """Cut into contiguous folds."""
    points, good = table.iloc[:, :-1].to_numpy(float), table.iloc[:, -1].to_numpy(bool)
    n, names = len(table), [str(name) for name in table.columns[:-1]]
    for k in range(N_FOLDS):
        inside = np.zeros(n, dtype=bool)
        inside[int(k / N_FOLDS * n) : int((k + 1) / N_FOLDS * n)] = True
        yield Fold(names, points[~inside], good[~inside], points[inside], good[inside])
