"""South German Credit (UCI 573): German Credit with its codes put right by Groemping (2019)."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pandas as pd

from holdfast.datasets.dataset import Column, Dataset
from holdfast.datasets.sources import SOUTH_GERMAN, check_file, fetch, named_directory

_UCI_FILE = "SouthGermanCredit.asc"
# The German names of the UCI file, in the order of the columns below and, last, the outcome.
_UCI_NAMES = (
    "laufkont laufzeit moral verw hoehe sparkont beszeit rate famges buerge wohnzeit verm alter "
    "weitkred wohn bishkred beruf pers telef gastarb kredit"
)
_OUTCOME = "credit_risk"
_COLUMNS = (
    Column("status", "category", "checking account", actionable=True),
    Column("duration", "whole number", "duration of the loan", "months", actionable=True),
    Column("credit_history", "category", "how earlier credits went"),
    Column("purpose", "category", "what the loan is for", actionable=True),
    Column("amount", "whole number", "amount of the loan, transformed", "DM", actionable=True),
    Column("savings", "category", "savings", actionable=True),
    Column("employment_duration", "category", "years in the present employment"),
    Column("installment_rate", "category", "instalment, % of income", actionable=True),
    Column("personal_status_sex", "category", "sex and marital status"),
    Column("other_debtors", "category", "co-applicant or guarantor", actionable=True),
    Column("present_residence", "category", "years at the present address"),
    Column("property", "category", "most valuable property", actionable=True),
    Column("age", "whole number", "age", "years"),
    Column("other_installment_plans", "category", "instalments owed elsewhere", actionable=True),
    Column("housing", "category", "rents, owns, or lives for free", actionable=True),
    Column("number_credits", "category", "credits at this bank, with this one"),
    Column("job", "category", "qualification and position"),
    Column("people_liable", "category", "people to provide for"),
    Column("telephone", "category", "telephone in the applicant's name", actionable=True),
    Column("foreign_worker", "category", "foreign worker"),
)
# Code table of Groemping (2019), South German Credit Data: Correcting a Widely Used Data Set.
CODES: dict[str, dict[int, str]] = {
    "status": {
        1: "no checking account",
        2: "... < 0 DM",
        3: "0 <= ... < 200 DM",
        4: "... >= 200 DM / salary for at least 1 year",
    },
    "credit_history": {
        0: "delay in paying off in the past",
        1: "critical account/other credits elsewhere",
        2: "no credits taken/all credits paid back duly",
        3: "existing credits paid back duly till now",
        4: "all credits at this bank paid back duly",
    },
    "purpose": {
        0: "others",
        1: "car (new)",
        2: "car (used)",
        3: "furniture/equipment",
        4: "radio/television",
        5: "domestic appliances",
        6: "repairs",
        7: "education",
        8: "vacation",
        9: "retraining",
        10: "business",
    },
    "savings": {
        1: "unknown/no savings account",
        2: "... < 100 DM",
        3: "100 <= ... < 500 DM",
        4: "500 <= ... < 1000 DM",
        5: "... >= 1000 DM",
    },
    "employment_duration": {
        1: "unemployed",
        2: "< 1 yr",
        3: "1 <= ... < 4 yrs",
        4: "4 <= ... < 7 yrs",
        5: ">= 7 yrs",
    },
    "installment_rate": {1: ">= 35", 2: "25 <= ... < 35", 3: "20 <= ... < 25", 4: "< 20"},
    "personal_status_sex": {
        1: "male : divorced/separated",
        2: "female : non-single or male : single",
        3: "male : married/widowed",
        4: "female : single",
    },
    "other_debtors": {1: "none", 2: "co-applicant", 3: "guarantor"},
    "present_residence": {1: "< 1 yr", 2: "1 <= ... < 4 yrs", 3: "4 <= ... < 7 yrs", 4: ">= 7 yrs"},
    "property": {
        1: "unknown / no property",
        2: "car or other",
        3: "building soc. savings agr./life insurance",
        4: "real estate",
    },
    "other_installment_plans": {1: "bank", 2: "stores", 3: "none"},
    "housing": {1: "for free", 2: "rent", 3: "own"},
    "number_credits": {1: "1", 2: "2-3", 3: "4-5", 4: ">= 6"},
    "job": {
        1: "unemployed/unskilled - non-resident",
        2: "unskilled - resident",
        3: "skilled employee/official",
        4: "manager/self-empl./highly qualif. employee",
    },
    "people_liable": {1: "3 or more", 2: "0 to 2"},
    "telephone": {1: "no", 2: "yes (under customer name)"},
    "foreign_worker": {1: "yes", 2: "no"},
}


def load_south_german(directory: str | Path | None = None) -> Dataset:
    """Load South German Credit, its codes turned into the names of Groemping's code table.

    Parameters
    ----------
    directory : path, optional
        Where the file lies, as corrected_german.csv or as UCI's SouthGermanCredit.asc; see
        docs/data.md for where else it is looked for.
    """
    table = pd.read_csv(BytesIO(_content(directory)))
    features = table.drop(columns=_OUTCOME)
    for name, names in CODES.items():
        features[name] = features[name].map(names)
    return Dataset(
        name="South German Credit",
        features=features,
        approved=table[_OUTCOME] == 1,
        columns=_COLUMNS,
        licence=SOUTH_GERMAN.licence,
        citation=SOUTH_GERMAN.citation,
        source=SOUTH_GERMAN.source,
        sha256=SOUTH_GERMAN.sha256,
    )


def _content(directory: str | Path | None) -> bytes:
    """Return the table as CSV; UCI's own file is turned into it, and must give the same bytes."""
    named = named_directory(directory)
    if named is None or (named / SOUTH_GERMAN.name).is_file():
        return fetch(SOUTH_GERMAN, directory)
    path = named / _UCI_FILE
    if not path.is_file():
        return fetch(SOUTH_GERMAN, directory)
    content = _as_csv(path.read_text(encoding="ascii"), path)
    check_file(content, SOUTH_GERMAN, f"{path}, converted to CSV,")
    return content


def _as_csv(text: str, path: Path) -> bytes:
    names, *rows = text.splitlines()
    if names.split() != _UCI_NAMES.split():
        raise ValueError(f"the first line of {path} must be: {_UCI_NAMES}")
    header = ",".join([*(column.name for column in _COLUMNS), _OUTCOME])
    return "\r\n".join([header, *(",".join(row.split()) for row in rows)]).encode("ascii")
