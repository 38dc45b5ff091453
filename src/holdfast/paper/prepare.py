"""The paper's preparation of each table, as one scikit-learn transformer: columns to points."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast.machinery.numbers import Floats

GERMAN_NUMBERS = ["duration", "credit_amount", "age"]
# in the order of the authors' codes 1, 2, 3 and 5
GERMAN_STATUS = ["male div/sep", "female div/dep/mar", "male mar/wid", "male single"]
# All columns that remain and have more than two values. Some are codes (Zip, NAICS, ...), and two
# tell the outcome (ChgOffDate, ChgOffPrinGr): the authors take them as numbers all the same.
SBA_NUMBERS = [
    "Zip",
    "NAICS",
    "ApprovalDate",
    "ApprovalFY",
    "Term",
    "NoEmp",
    "NewExist",
    "CreateJob",
    "RetainedJob",
    "FranchiseCode",
    "UrbanRural",
    "ChgOffDate",
    "DisbursementDate",
    "DisbursementGross",
    "ChgOffPrinGr",
    "GrAppv",
    "SBA_Appv",
    "Portion",
    "daysterm",
    "xx",
]
SBA_CREDIT_LINE = ["-1", "0", "N", "T", "Y"]  # "-1": missing


def german_preparation() -> ColumnTransformer:
    """Return what turns German Credit into the paper's 7 columns, not yet fitted.

    Duration, amount and age are standardised, personal status becomes four one-hot columns.

    Examples
    --------
    >>> from holdfast.datasets import load_german
    >>> german_preparation().fit_transform(load_german().features).shape
    (1000, 7)
    """
    return _preparation(
        make_pipeline(StandardScaler()),
        GERMAN_NUMBERS,
        make_pipeline(_one_hot(GERMAN_STATUS, _level_alone)),
        "personal_status",
    )


def sba_preparation() -> ColumnTransformer:
    """Return what turns the SBA loans into the paper's 25 columns, not yet fitted.

    Missing values become -1, 20 numbers are standardised, RevLineCr becomes five one-hot columns.
    """
    return _preparation(
        make_pipeline(SimpleImputer(strategy="constant", fill_value=-1.0), StandardScaler()),
        SBA_NUMBERS,
        make_pipeline(
            SimpleImputer(strategy="constant", fill_value="-1"),
            _one_hot(SBA_CREDIT_LINE, _level_after_name),
        ),
        "RevLineCr",
    )


def names_of(fitted: ColumnTransformer) -> list[str]:
    """Return the names of the columns that come out."""
    return [str(name) for name in fitted.get_feature_names_out()]


def groups_of(fitted: ColumnTransformer) -> list[list[int]]:
    """Return the positions of the columns of each one-hot group.

    Examples
    --------
    >>> from holdfast.datasets import load_german
    >>> groups_of(german_preparation().fit(load_german().features))
    [[3, 4, 5, 6]]
    """
    place = fitted.output_indices_["categories"]
    return [list(range(place.start, place.stop))]


def scale_of(fitted: ColumnTransformer) -> Floats:
    """Return what one raw unit of each column is in scaled units; 1 for one-hot columns.

    Examples
    --------
    >>> from holdfast.datasets import load_german
    >>> scale = scale_of(german_preparation().fit(load_german().features))
    >>> [round(float(unit), 4) for unit in 2 * scale]  # of two years of age, in third place
    [0.1659, 0.0007, 0.1759, 2.0, 2.0, 2.0, 2.0]
    """
    scale = np.ones(len(names_of(fitted)))
    scale[fitted.output_indices_["numbers"]] /= fitted.named_transformers_["numbers"][-1].scale_
    return scale


def _preparation(
    numbers: Pipeline, number_names: list[str], categories: Pipeline, category_name: str
) -> ColumnTransformer:
    return ColumnTransformer(
        [("numbers", numbers, number_names), ("categories", categories, [category_name])],
        verbose_feature_names_out=False,
    )


def _one_hot(levels: list[str], combine: Any) -> OneHotEncoder:
    return OneHotEncoder(categories=[levels], sparse_output=False, feature_name_combiner=combine)


def _level_alone(_: str, level: Any) -> str:
    return str(level)


def _level_after_name(name: str, level: Any) -> str:
    return f"{name}_{level}"
