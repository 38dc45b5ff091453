"""The table that a report is made of, ready to be asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from holdfast.paper.report.paper import Paper, read_paper
from holdfast.paper.tidy import FIELDS, read_table

ALL_FOLDS = 5  # of the paper's protocol
SOUND, PUBLISHED = "", "as published"
_SUFFIX = "_as_published"  # of a method's name


class Results(NamedTuple):
    """The rows, what is said about them, and the paper's numbers.

    Text columns are plain strings here. A method as published (with the flaws of the authors' code)
    goes by the name of the sound one, and a column `variant` tells them apart: as published, sound
    (nothing), else the method's settings.
    """

    frame: pd.DataFrame
    about: dict[str, Any]
    paper: Paper

    def rows(self, **where: object) -> pd.DataFrame:
        """Return the rows that have these values; NaN equals NaN."""
        chosen = pd.Series(True, index=self.frame.index)
        for name, value in where.items():
            column = self.frame[name]
            missing = isinstance(value, float) and math.isnan(value)
            chosen &= column.isna() if missing else column == value
        return self.frame[chosen]

    @property
    def quick(self) -> bool:
        """Whether the run was a quick one."""
        return bool(self.about.get("settings", {}).get("quick", False))

    def whole(self, model: str) -> bool:
        """Whether nobody was left out by the settings of the run."""
        limits = ["most_rows"] + ["most_network_rows"] * (model == "network")
        settings = self.about.get("settings", {})
        return not self.quick and all(settings.get(name) is None for name in limits)

    def why_not(self, *names: str) -> str:
        """Say why a part was not run, where the table says it."""
        absent, failed = self.about.get("absent", []), self.about.get("failed", [])
        reasons = [f"data absent: {item['why']}" for item in absent if item["what"] in names]
        for item in failed:
            if all(name in item["piece"] for name in names):
                reasons.append(f"{item['piece']} failed: {item['why']}")
        return "; ".join(reasons) or "the table has no rows of it"


def groups(frame: pd.DataFrame, *keys: str) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Split a table by these columns, in order; NaN is a value like any other."""
    for key, group in frame.groupby(list(keys), dropna=False):
        yield (key if isinstance(key, tuple) else (key,)), group


def read_results(path: Path) -> Results:
    """Read a table of results for a report."""
    frame, about = read_table(path)
    return prepare_results(frame, about)


def prepare_results(frame: pd.DataFrame, about: dict[str, Any]) -> Results:
    """Make a table ready to be asked."""
    texts = [name for name, field in FIELDS.items() if field.dtype == "category"]
    frame = frame.astype(dict.fromkeys(texts, object))
    published = frame["method"].str.endswith(_SUFFIX)
    variant = frame["settings"].where(~published, PUBLISHED)
    method = frame["method"].str.removesuffix(_SUFFIX)
    return Results(frame.assign(method=method, variant=variant), about, read_paper())
