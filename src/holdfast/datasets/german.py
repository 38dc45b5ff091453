"""German Credit (UCI 144), embedded: a thousand loans with their outcome."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from io import BytesIO

import pandas as pd

_FILE = "german_credit.csv"
_SHA256 = "38b6dbf6fb4b0311a3ffc005730f42623128591fb36473ab3c22d270c0467632"


@dataclass(frozen=True)
class Dataset:
    """A table of people, what became of them, and where it all comes from.

    Attributes
    ----------
    features : DataFrame
        One row for each person, in raw units.
    approved : Series of bool
        The wanted outcome.
    units : dict
        Unit of each numeric column.
    """

    name: str
    features: pd.DataFrame
    approved: pd.Series[bool]
    units: dict[str, str]
    licence: str
    citation: str
    sha256: str


def load_german() -> Dataset:
    """Load German Credit.

    The amounts are in Deutsche Mark; the label "good" means that the loan was paid back.

    Examples
    --------
    >>> german = load_german()
    >>> german.features.shape, int(german.approved.sum())
    ((1000, 20), 700)
    >>> int(german.features.loc[0, "duration"]), german.features.loc[0, "savings_status"]
    (6, 'no known savings')
    """
    content = resources.files("holdfast.datasets").joinpath(_FILE).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != _SHA256:
        raise ValueError(
            f"{_FILE} in the installed package is damaged (SHA-256 {digest}, expected {_SHA256}); "
            "install holdfast again"
        )
    table = pd.read_csv(BytesIO(content), keep_default_na=False)
    return Dataset(
        name="German Credit",
        features=table.drop(columns="class"),
        approved=table["class"] == "good",
        units={
            "duration": "months",
            "credit_amount": "DM",
            "installment_commitment": "% of income",
            "residence_since": "years",
            "age": "years",
            "existing_credits": "credits",
            "num_dependents": "people",
        },
        licence="CC BY 4.0",
        citation=(
            "Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5NC77"
        ),
        sha256=_SHA256,
    )
