"""German Credit (UCI 144), embedded: a thousand loans with their outcome."""

from __future__ import annotations

import hashlib
from importlib import resources
from io import BytesIO

import pandas as pd

from holdfast.datasets.dataset import Column, Dataset

_FILE = "german_credit.csv"
_SHA256 = "38b6dbf6fb4b0311a3ffc005730f42623128591fb36473ab3c22d270c0467632"
_COLUMNS = (
    Column("checking_status", "category", "balance of the checking account", actionable=True),
    Column("duration", "whole number", "duration of the loan", "months", actionable=True),
    Column("credit_history", "category", "how earlier credits went"),
    Column("purpose", "category", "what the loan is for", actionable=True),
    Column("credit_amount", "whole number", "amount of the loan", "DM", actionable=True),
    Column("savings_status", "category", "savings", actionable=True),
    Column("employment", "category", "years in the present employment"),
    Column(
        "installment_commitment",
        "whole number",
        "instalment as a share of income, as the file calls it (codes 1 to 4)",
        "% of income",
        actionable=True,
    ),
    Column("personal_status", "category", "sex and marital status"),
    Column("other_parties", "category", "co-applicant or guarantor", actionable=True),
    Column("residence_since", "whole number", "time at the present address", "years"),
    Column("property_magnitude", "category", "most valuable property", actionable=True),
    Column("age", "whole number", "age", "years"),
    Column("other_payment_plans", "category", "instalments owed elsewhere", actionable=True),
    Column("housing", "category", "rents, owns, or lives for free", actionable=True),
    Column("existing_credits", "whole number", "credits at this bank", "credits"),
    Column("job", "category", "qualification and position"),
    Column("num_dependents", "whole number", "people to provide for", "people"),
    Column("own_telephone", "category", "telephone in the applicant's name", actionable=True),
    Column("foreign_worker", "category", "foreign worker"),
)


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
        columns=_COLUMNS,
        licence="CC BY 4.0",
        citation=(
            "Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. "
            "https://doi.org/10.24432/C5NC77"
        ),
        source="https://archive.ics.uci.edu/dataset/144/statlog+german+credit+data",
        sha256=_SHA256,
    )
