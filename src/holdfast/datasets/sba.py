"""Loans of the U.S. Small Business Administration (Li, Mickel and Taylor 2018): 2,102 of them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pandas as pd

from holdfast.datasets.dataset import Column, Dataset
from holdfast.datasets.sources import SBA, fetch

_OUTCOME = ["MIS_Status", "Default"]
_DAY = "days since 1 January 1960"
_COLUMNS = (
    Column("Selected", "category", "chosen by the authors to train on (1) or not (0)"),
    Column("LoanNr_ChkDgt", "category", "number of the loan"),
    Column("Name", "category", "name of the borrower"),
    Column("City", "category", "city of the borrower"),
    Column("State", "category", "state of the borrower: California"),
    Column("Zip", "category", "post code of the borrower"),
    Column("Bank", "category", "bank that lends", actionable=True),
    Column("BankState", "category", "state of the bank"),
    Column("NAICS", "category", "industry, by its NAICS code: real estate, renting, leasing"),
    Column("ApprovalDate", "whole number", "day the guarantee was committed", _DAY),
    Column("ApprovalFY", "whole number", "fiscal year of the commitment", "years"),
    Column("Term", "whole number", "term of the loan", "months", actionable=True),
    Column("NoEmp", "whole number", "employees of the business", "people", actionable=True),
    Column("NewExist", "category", "existing business (1) or new one (2)"),
    Column("CreateJob", "whole number", "jobs the loan creates", "jobs", actionable=True),
    Column("RetainedJob", "whole number", "jobs the loan retains", "jobs", actionable=True),
    Column("FranchiseCode", "category", "franchise; 0 or 1 is none"),
    Column("UrbanRural", "category", "urban (1), rural (2), undefined (0)"),
    Column("RevLineCr", "category", "revolving line of credit: Y, N, or unclear", actionable=True),
    Column("LowDoc", "category", "LowDoc programme: Y, N, or unclear", actionable=True),
    Column("ChgOffDate", "whole number", "day of default: known only afterwards", _DAY),
    Column("DisbursementDate", "whole number", "day of disbursement", _DAY),
    Column("DisbursementGross", "whole number", "amount disbursed", "USD", actionable=True),
    Column("BalanceGross", "whole number", "amount outstanding: 0 throughout", "USD"),
    Column("ChgOffPrinGr", "whole number", "amount charged off: known only afterwards", "USD"),
    Column("GrAppv", "whole number", "amount approved by the bank", "USD", actionable=True),
    Column("SBA_Appv", "whole number", "amount guaranteed by the SBA", "USD", actionable=True),
    Column("New", "category", "new business (1) or not (0)"),
    Column("RealEstate", "category", "backed by real estate: term of 240 months or more (1)"),
    Column("Portion", "number", "share of the loan that the SBA guarantees", "share"),
    Column("Recession", "category", "active during the recession of 2007 to 2009 (1)"),
    Column("daysterm", "whole number", "term, 30 days a month", "days", actionable=True),
    Column("xx", "whole number", "day of disbursement plus daysterm", _DAY),
)


def load_sba(directory: str | Path | None = None) -> Dataset:
    """Load the SBA case: loans in California, as published, with missing values as they are.

    "Approved" means that the loan did not default. Two columns tell the outcome, since they are
    known only afterwards (ChgOffDate, ChgOffPrinGr); the published experiments use them all the
    same.

    Parameters
    ----------
    directory : path, optional
        Where the file lies; see docs/data.md for where else it is looked for.
    """
    table = pd.read_csv(BytesIO(fetch(SBA, directory)), low_memory=False)
    return Dataset(
        name="SBA loans",
        features=table.drop(columns=_OUTCOME),
        approved=table["Default"] == 0,
        columns=_COLUMNS,
        licence=SBA.licence,
        citation=SBA.citation,
        source=SBA.source,
        sha256=SBA.sha256,
    )
