"""What every data set here comes with: the table, the outcome, and what the columns mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pandas as pd


@dataclass(frozen=True)
class Column:
    """What one column of a table means.

    Attributes
    ----------
    kind : {"number", "whole number", "category"}
        What its values are, whatever type they are stored as: a post code is a category.
    unit : str
        Unit of a number; empty for a category.
    actionable : bool
        Whether the person can bring about another value (their age cannot be chosen).
    """

    name: str
    kind: Literal["number", "whole number", "category"]
    meaning: str
    unit: str = ""
    actionable: bool = False


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of people, what became of them, and where it all comes from.

    Attributes
    ----------
    features : DataFrame
        One row for each person, in raw units.
    approved : Series of bool
        The wanted outcome.
    columns : tuple of Column
        What each column of `features` means, in the same order.
    sha256 : str
        Checksum of the file; empty for what is drawn at random.
    """

    name: str
    features: pd.DataFrame
    approved: pd.Series[bool]
    columns: tuple[Column, ...]
    licence: str
    citation: str
    source: str
    sha256: str

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column that has one.

        Examples
        --------
        >>> from holdfast.datasets import load_german
        >>> load_german().units["credit_amount"]
        'DM'
        """
        return {column.name: column.unit for column in self.columns if column.unit}
