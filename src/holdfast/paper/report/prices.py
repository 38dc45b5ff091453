"""Tables 1 to 3: the price of recourse, ours beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from holdfast.paper.report.cells import Agreement, Estimate, estimate, increase, verdict
from holdfast.paper.report.names import (
    DATASETS,
    MODELS,
    PAPER_ROWS,
    column_name,
    method_name,
    paper_row,
)
from holdfast.paper.report.paper import Place
from holdfast.paper.report.results import ALL_FOLDS, PUBLISHED, SOUND, Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell

TABLES = {
    "table1": "Table 1: price of recourse, logistic regression",
    "table2": "Table 2: price of recourse, neural networks made linear by LIME",
    "table3": "Table 3: price of recourse, neural networks made linear by SmoothGrad",
}
AS_PUBLISHED, SOUNDLY, NEITHER = "as published", "sound", "neither"
EVERYBODY, DRAWN = "all people", "the authors' sample"
_LIKE_THE_PAPER = ("exact", "as_published")  # ways of judging under which figures compare
_ORDER = ["algorithm1", "roar", "algorithm2", "exact", "refine"]


class PriceLine(NamedTuple):
    """A row of figures of ours: one method under one way of judging."""

    row: str  # of the paper
    method: str
    p: float
    variant: str
    judging: str
    linearise: str
    people: str  # empty where the authors took everybody, as we do

    @property
    def name(self) -> str:
        """What the line is called."""
        name = method_name(self.method, self.p, self.variant)
        if self.method == "roar" and self.variant == SOUND:
            name += ", sound loss"
        return name

    @property
    def loss(self) -> str:
        """How the method computes its loss."""
        return self.variant or "sound"


class Figure(NamedTuple):
    """A cell of ours with all that is said about it."""

    place: Place
    line: PriceLine
    ours: Estimate
    best: float  # mean of the best line of the column, judged the same way
    verdict: Agreement | None
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
    found = []
    for radius, cost_weight in results.paper.columns(table, dataset):
        here = rows[(rows["radius"] == radius) & (rows["cost_weight"] == cost_weight)]
        column = {line: estimate(group) for line, group in lines_of(here)}
        most = _most_people(column)
        for line, ours in column.items():
            place = Place(table, dataset, line.row, radius, cost_weight)
            whole = ours.people == most[_kind(line)] and results.whole(results.paper.models[table])
            complete = whole and ours.folds == _folds(results, table, line) and not ours.missing
            judged = line.judging in _LIKE_THE_PAPER and complete
            said = verdict(ours.mean, results.paper.prices[place]) if judged else None
            found.append(Figure(place, line, ours, _best(column, line), said, complete))
    return found


def lines_of(rows: pd.DataFrame) -> Iterator[tuple[PriceLine, pd.DataFrame]]:
    """Split rows into lines; what stands in no row of the paper is left out.

    Linear models are judged person by person, so that the authors' sample can be looked at by
    itself. As published, networks are run on the people of the authors alone.
    """
    keys = ("method", "p", "variant", "judging", "linearise")
    for (method, p, variant, judging, linearise), group in groups(rows, *keys):
        row = paper_row(method, p)
        if row is None:
            continue
        line = PriceLine(row, method, p, variant, judging, linearise, "")
        if judging != "exact" or group["drawn"].all():
            yield line, group
            continue
        yield line._replace(people=DRAWN), group[group["drawn"]]
        yield line._replace(people=EVERYBODY), group


def _kind(line: PriceLine) -> tuple[str, ...]:
    """Lines of a kind have the same people; as published, each method has its own."""
    own = (line.method, str(line.p)) if line.judging == "as_published" else ()
    return (line.judging, line.linearise, line.people, *own)


def _most_people(column: dict[PriceLine, Estimate]) -> dict[tuple[str, ...], int]:
    most: dict[tuple[str, ...], int] = {}
    for line, ours in column.items():
        most[_kind(line)] = max(most.get(_kind(line), 0), ours.people)
    return most


def _folds(results: Results, table: str, line: PriceLine) -> int:
    """How many folds a line must have: those of the authors, where it repeats what they ran."""
    repeats = line.judging == "as_published" and line.linearise == "lime_as_published"
    return results.paper.folds[table] if repeats else ALL_FOLDS


def _best(column: dict[PriceLine, Estimate], line: PriceLine) -> float:
    """The least mean of the column among lines that are judged alike, on the same people."""
    alike = (line.judging, line.linearise, line.people)
    means = [
        ours.mean
        for other, ours in column.items()
        if (other.judging, other.linearise, other.people) == alike
    ]
    return min((mean for mean in means if not math.isnan(mean)), default=math.nan)


def protocol(line: PriceLine) -> str:
    """Say whether a line repeats what was published, or is computed soundly on everybody.

    Algorithm 2 has no flaw to repeat. What the published methods do to people whom the authors did
    not take is neither, nor is SmoothGrad judged as they judge.
    """
    if line.judging == "as_published" and line.linearise != "lime_as_published":
        return NEITHER
    if line.variant == SOUND and line.people != DRAWN and line.method != "algorithm2":
        return SOUNDLY
    repeats = line.variant == PUBLISHED or line.method == "algorithm2"
    return AS_PUBLISHED if repeats and line.people != EVERYBODY else NEITHER


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


def order_of(line: PriceLine) -> tuple[bool, bool, bool, int, bool, PriceLine]:
    """Sort lines: as published before sound, the paper's methods before ours."""
    return (
        line.judging == "search",
        line.linearise == "smoothgrad",
        line.people == EVERYBODY,
        _ORDER.index(line.method),
        line.variant != PUBLISHED,
        line,
    )


def _whose(line: PriceLine) -> Cell:
    judged = {"exact": "", "as_published": "judged as published", "search": "judged in one ball"}
    through = line.linearise.replace("_", " ")
    made_linear = f"through {through}" if through else ""
    return cell(f"ours: {line.name}", line.people, made_linear, judged[line.judging])


def _paper_cells(results: Results, table: str, dataset: str, row: str) -> list[Cell]:
    cells = []
    for column in results.paper.columns(table, dataset):
        printed = results.paper.prices[Place(table, dataset, row, *column)]
        means = [results.paper.prices[Place(table, dataset, r, *column)].mean for r in PAPER_ROWS]
        cells.append(cell(str(printed), increase(printed.mean, min(means))))
    return cells


def _our_cells(
    line: PriceLine, columns: list[tuple[float, float]], found: list[Figure]
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
        said.append(
            "It is known which people the paper took (a few of each fold, except for Table 3 at "
            "radius 0.1); figures as published are for them alone."
        )
    if results.paper.folds[table] < ALL_FOLDS:
        said.append(
            f"The paper's figures come out with LIME on the first {results.paper.folds[table]} "
            "folds, not with SmoothGrad; the SmoothGrad results are shown beside them. See "
            "experiments/README.md."
        )
    printed = [results.paper.prices[figure.place] for figure in found]
    if any(one.deviation > one.mean for one in printed):
        said.append("Where the paper's deviation exceeds its mean, agreement says little.")
    if any(figure.line.judging == "search" for figure in found):
        said.append(
            "Judged as published: an ascent from weights drawn at random, every tensor of the "
            "parameters in a ball of its own, losses cut at 100. Judged in one ball: one ball "
            "around all parameters, nothing cut; these are other prices, so the paper's figures "
            "give no verdict on them."
        )
    if any(figure.line.variant == PUBLISHED for figure in found):
        said.append(
            "Clamped loss, and Algorithm 1 as published: the loss is flat below a probability of "
            "1e-12, so that gradients vanish there; sound loss: computed from the score."
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
                "people_of": line.people,
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
