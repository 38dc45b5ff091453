"""What the paper prints: its tables and run times, from one file of data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_FILE = Path(__file__).with_name("paper.yaml")
_CELL = re.compile(r"(\d+\.(\d+)) ± (\d+\.\d+)")

ROWS = ("algorithm1", "roar_1", "algorithm2", "roar_inf")
DATASETS = ("german", "sba")


class PrintedCell(NamedTuple):
    """A cell of the paper: the mean, its deviation over folds, and half a unit of the last digit.

    Examples
    --------
    >>> read_cell("0.68 ± 0.07")
    PrintedCell(mean=0.68, deviation=0.07, half_unit=0.005)
    """

    mean: float
    deviation: float
    half_unit: float

    def __str__(self) -> str:
        digits = round(-math.log10(2 * self.half_unit))
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


class Place(NamedTuple):
    """Where a cell of the paper stands."""

    table: str
    dataset: str
    row: str
    radius: float
    cost_weight: float


class Paper(NamedTuple):
    """The paper's own numbers.

    Examples
    --------
    >>> paper = read_paper()
    >>> str(paper.prices[Place("table1", "german", "roar_inf", 0.5, 0.1)])
    '1.54 ± 0.46'
    >>> paper.seconds["sba", "algorithm1"]
    667.5
    """

    title: str
    models: Mapping[str, str]
    folds: Mapping[str, int]  # that its figures are averages of
    prices: Mapping[Place, PrintedCell]
    seconds: Mapping[tuple[str, str], float]

    def columns(self, table: str, dataset: str) -> list[tuple[float, float]]:
        """Return the pairs of radius and cost weight of a table, in the paper's order."""
        places = (place for place in self.prices if place[:3] == (table, dataset, ROWS[0]))
        return [(place.radius, place.cost_weight) for place in places]


def read_paper(path: Path = _FILE) -> Paper:
    """Read the file, and refuse one that lacks a cell."""
    import yaml

    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    prices: dict[Place, PrintedCell] = {}
    for table, part in content["tables"].items():
        for row in ROWS:
            for dataset in DATASETS:
                prices |= _read_row(table, dataset, row, part)
    seconds = {(dataset, row): float(content["seconds"][dataset][row])
               for dataset in DATASETS for row in ROWS}  # fmt: skip
    models = {table: part["model"] for table, part in content["tables"].items()}
    folds = {table: int(part["folds"]) for table, part in content["tables"].items()}
    return Paper(content["title"], models, folds, prices, seconds)


def _read_row(table: str, dataset: str, row: str, part: Any) -> dict[Place, PrintedCell]:
    columns, cells = part["columns"][dataset], part["prices"][row][dataset]
    if len(columns) != len(cells):
        raise ValueError(
            f"the paper's {table} has {len(columns)} columns for {dataset}, "
            f"but {len(cells)} cells in its row {row}"
        )
    return {
        Place(table, dataset, row, radius, cost_weight): read_cell(text)
        for (radius, cost_weight), text in zip(columns, cells, strict=True)
    }


def read_cell(text: str) -> PrintedCell:
    """Read a cell as printed: its digits say how exact it is."""
    match = _CELL.fullmatch(text)
    if match is None:
        raise ValueError(f"a cell of the paper is written 0.68 ± 0.07, not {text!r}")
    return PrintedCell(float(match[1]), float(match[3]), 0.5 * 10.0 ** -len(match[2]))
