"""Tables 1 to 3: the price of recourse, ours beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from holdfast.report.cells import Estimate, Verdict, estimate, increase, verdict
from holdfast.report.names import DATASETS, MODELS, PAPER_ROWS, column_name, method_name, paper_row
from holdfast.report.paper import Place
from holdfast.report.results import ALL_FOLDS, CLAMPED, SOUND, Results, groups
from holdfast.report.sheet import Cell, NotRun, Sheet, cell

TABLES = {
    "table1": "Table 1: price of recourse, logistic regression",
    "table2": "Table 2: price of recourse, neural networks made linear by LIME",
    "table3": "Table 3: price of recourse, neural networks made linear by SmoothGrad",
}
AS_PUBLISHED, SOUNDLY = "as published", "sound"
_LIKE_THE_PAPER = ("exact", "as_published")  # ways of judging under which figures compare
_ORDER = ["algorithm1", "roar", "algorithm2", "exact", "refine"]


class Line(NamedTuple):
    """A row of figures of ours: one method under one way of judging."""

    row: str  # of the paper
    method: str
    p: float
    variant: str
    judging: str
    linearise: str

    @property
    def name(self) -> str:
        """What the line is called."""
        name = method_name(self.method, self.p, self.variant)
        if self.method in ("roar", "algorithm1") and self.variant == SOUND:
            name += ", sound loss"
        return name

    @property
    def loss(self) -> str:
        """How the method computes its loss."""
        return self.variant or "sound"


class Figure(NamedTuple):
    """A cell of ours with all that is said about it."""

    place: Place
    line: Line
    ours: Estimate
    best: float  # mean of the best line of the column, judged the same way
    verdict: Verdict | None
    complete: bool


def price_sheets(results: Results, table: str) -> Iterator[Sheet | NotRun]:
    """Make a table of prices for each data set."""
    for dataset, name in DATASETS.items():
        title = f"{TABLES[table]}, {name}"
        found = figures(results, table, dataset)
        if found:
            yield _sheet(results, table, dataset, title, found)
        else:
            yield NotRun(
                f"{table}-{dataset}",
                title,
                results.why_not(dataset, table, results.paper.models[table]),
            )


def figures(results: Results, table: str, dataset: str) -> list[Figure]:
    """Compute every cell of ours for a data set of a table."""
    rows = results.rows(experiment=table, dataset=dataset, constraints="none")
    everybody = len(rows[["fold", "instance"]].drop_duplicates())
    n_folds = rows["fold"].nunique()
    found = []
    for radius, cost_weight in results.paper.columns(table, dataset):
        here = rows[(rows["radius"] == radius) & (rows["cost_weight"] == cost_weight)]
        column = {line: estimate(group) for line, group in lines_of(here)}
        for line, ours in column.items():
            place = Place(table, dataset, line.row, radius, cost_weight)
            complete = ours.people == everybody and n_folds == ALL_FOLDS and not ours.missing
            complete = complete and results.whole(results.paper.models[table])
            judged = line.judging in _LIKE_THE_PAPER and complete
            said = verdict(ours.mean, results.paper.prices[place]) if judged else None
            found.append(Figure(place, line, ours, _best(column, line), said, complete))
    return found


def lines_of(rows: pd.DataFrame) -> Iterator[tuple[Line, pd.DataFrame]]:
    """Split rows into lines; what stands in no row of the paper is left out."""
    keys = ("method", "p", "variant", "judging", "linearise")
    for (method, p, variant, judging, linearise), group in groups(rows, *keys):
        row = paper_row(method, p)
        if row is not None:
            yield Line(row, method, p, variant, judging, linearise), group


def _best(column: dict[Line, Estimate], line: Line) -> float:
    means = [ours.mean for other, ours in column.items() if other.judging == line.judging]
    return min((mean for mean in means if not math.isnan(mean)), default=math.nan)


def protocol(figure: Figure, others: list[Figure]) -> str:
    """Say whether a figure repeats what was published, or is computed soundly.

    The published code clamps the loss. Algorithm 2 has no loss to clamp, and where Algorithm 1 was
    run with the sound loss alone, it stands for both.
    """
    method, variant = figure.line.method, figure.line.variant
    if variant == CLAMPED or method == "algorithm2":
        return AS_PUBLISHED
    if method == "algorithm1":
        both = any(o.line.method == method and o.line.variant == CLAMPED for o in others)
        return SOUNDLY if both else AS_PUBLISHED
    return SOUNDLY


def _sheet(results: Results, table: str, dataset: str, title: str, found: list[Figure]) -> Sheet:
    columns = results.paper.columns(table, dataset)
    rows: list[list[Cell]] = []
    for row, name in PAPER_ROWS.items():
        rows.append([cell(name), cell("paper"), *_paper_cells(results, table, dataset, row)])
        lines = sorted({figure.line for figure in found if figure.line.row == row}, key=order_of)
        rows += [[cell(name), _whose(line), *_our_cells(line, columns, found)] for line in lines]
        if not lines:
            rows.append([cell(name), cell("ours"), *[cell("not run")] * len(columns)])
    header = ["row of the paper", "whose figure", *[column_name(*column) for column in columns]]
    caption = _caption(results, table, dataset, found)
    name = f"{table}-{dataset}"
    return Sheet(name, title, caption, header, rows, _data(results, found), labels=2)


def order_of(line: Line) -> tuple[bool, int, bool, Line]:
    """Sort lines: as published before sound, the paper's methods before ours."""
    place = _ORDER.index(line.method)
    return line.judging == "search", place, line.variant != CLAMPED, line


def _whose(line: Line) -> Cell:
    judged = {"exact": "", "as_published": "judged as published", "search": "judged in one ball"}
    through = line.linearise.replace("_", " ")
    return cell(f"ours: {line.name}", f"through {through}" if through else "", judged[line.judging])


def _paper_cells(results: Results, table: str, dataset: str, row: str) -> list[Cell]:
    cells = []
    for column in results.paper.columns(table, dataset):
        printed = results.paper.prices[Place(table, dataset, row, *column)]
        means = [results.paper.prices[Place(table, dataset, r, *column)].mean for r in PAPER_ROWS]
        cells.append(cell(str(printed), increase(printed.mean, min(means))))
    return cells


def _our_cells(
    line: Line, columns: list[tuple[float, float]], found: list[Figure]
) -> Iterator[Cell]:
    mine = {figure.place[3:]: figure for figure in found if figure.line == line}
    for column in columns:
        if column not in mine:
            yield cell("not run")
            continue
        figure = mine[column]
        few = "" if figure.complete else f"{figure.ours.people} people"
        said = figure.verdict
        yield cell(
            str(figure.ours),
            increase(figure.ours.mean, figure.best),
            str(said) if said else few,
            mark=said.word if said else "",
        )


def _caption(results: Results, table: str, dataset: str, found: list[Figure]) -> str:
    people = max(figure.ours.people for figure in found)
    n_folds = max(figure.ours.folds for figure in found)
    said = [
        f"{MODELS[results.paper.models[table]].capitalize()}; {people} people turned down in",
        f"{n_folds} of {ALL_FOLDS} folds. A cell is the mean ± deviation over folds of the mean",
        "price, then the increase over the best of the column, then the verdict: agrees (within",
        "the paper's deviation), better (lower) or differs (higher). Increases of the paper are",
        "computed from the means that it prints.",
    ]
    if n_folds < ALL_FOLDS or not results.whole(results.paper.models[table]):
        said.append("Not all that the paper has was run: no verdicts.")
    if dataset == "sba":
        said.append("Ours: all people turned down; the paper's: a part of them, unknown which.")
    printed = [results.paper.prices[figure.place] for figure in found]
    if any(one.deviation > one.mean for one in printed):
        said.append("Where the paper's deviation exceeds its mean, to agree says little.")
    if any(figure.line.judging == "search" for figure in found):
        said.append(
            "Judged as published: every tensor of the network's parameters has a ball of its own, "
            "and losses stop at 100. Judged in one ball: one ball around all parameters, no stop; "
            "these are other prices, so the paper's figures give no verdict on them."
        )
    if any(figure.line.variant == CLAMPED for figure in found):
        said.append(
            "Clamped loss: as published, flat below a probability of 1e-12, so that gradients "
            "vanish there; sound loss: computed from the score."
        )
    return " ".join(said)


def _data(results: Results, found: list[Figure]) -> pd.DataFrame:
    records = []
    for figure in found:
        printed, line, ours = results.paper.prices[figure.place], figure.line, figure.ours
        records.append(
            {
                **figure.place._asdict(),
                "method": line.method,
                "p": line.p,
                "loss": line.loss,
                "linearise": line.linearise,
                "judging": line.judging,
                "mean": ours.mean,
                "deviation": ours.deviation,
                "folds": ours.folds,
                "people": ours.people,
                "without_price": ours.missing,
                "increase_percent": 100 * (ours.mean / figure.best - 1),
                "paper_mean": printed.mean,
                "paper_deviation": printed.deviation,
                "difference": ours.mean - printed.mean,
                "verdict": figure.verdict.word if figure.verdict else "",
            }
        )
    return pd.DataFrame(records)
