"""The paper took nine SBA people of each fold: what many such parts of them give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.paper.report.cells import Agreement, number, verdict
from holdfast.paper.report.names import PAPER_ROWS, column_name
from holdfast.paper.report.paper import Place
from holdfast.paper.report.prices import DRAWN, TABLES, PriceLine, lines_of, order_of
from holdfast.paper.report.results import ALL_FOLDS, Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell

N_SUBSETS, SEED = 1000, 0
PEOPLE_A_FOLD = 9  # the paper's "24 %"
TRAPPED = (4, 36)  # fold and instance of the row on which a clamped loss has no gradient
ANY, WITH_TRAPPED = "any", "with the trapped row"

Picks = dict[int, NDArray[np.intp]]  # for each fold, positions of people: a row for each subset


class Spread(NamedTuple):
    """What subsets give: mean of their means and deviations, and how their means spread."""

    mean: float
    deviation: float
    spread: float

    def __str__(self) -> str:
        deviation = number(self.deviation, like=self.mean)
        return f"{number(self.mean)} ± {deviation}"


class SubsetPrice(NamedTuple):
    """What the subsets give for a cell of the paper."""

    place: Place
    line: PriceLine
    kind: str
    ours: Spread
    verdict: Agreement


def draw(
    people: dict[int, list[int]], size: dict[int, int], trapped: tuple[int, int] | None
) -> Picks:
    """Draw the subsets: so many people of each fold, with the trapped row where one is named.

    Both kinds use the same random numbers, and every method is given the same people.

    Examples
    --------
    >>> picks = draw({0: [0, 1, 2, 3]}, {0: 2}, trapped=(0, 3))
    >>> picks[0].shape, bool((picks[0] == 3).any(axis=1).all())
    ((1000, 2), True)
    """
    rng = np.random.default_rng(SEED)
    picks = {}
    for fold, instances in sorted(people.items()):
        keys = rng.random((N_SUBSETS, len(instances)))
        if trapped is not None and trapped[0] == fold:
            keys[:, instances.index(trapped[1])] = -1.0  # comes first
        picks[fold] = np.argsort(keys, axis=1)[:, : size[fold]]
    return picks


def spread_of(prices: dict[int, NDArray[np.float64]], picks: Picks) -> Spread:
    """Compute the cell of each subset, and summarise them."""
    means = np.stack([prices[fold][chosen].mean(axis=1) for fold, chosen in picks.items()])
    cells = means.mean(axis=0)
    deviations = means.std(axis=0, ddof=1)
    return Spread(float(cells.mean()), float(deviations.mean()), float(cells.std(ddof=1)))


def subset_sheet(results: Results, table: str = "table1") -> Sheet | NotRun:
    """Make the table of subsets of the SBA people, for logistic regression."""
    title = f"{TABLES[table]}, SBA: parts of the people, as the paper took them"
    name = f"{table}-sba-subsets"
    rows = results.rows(experiment=table, dataset="sba", constraints="none")
    if rows.empty:
        return NotRun(name, title, results.why_not("sba", table, results.paper.models[table]))
    people = {fold: sorted(group["instance"].unique()) for (fold,), group in groups(rows, "fold")}
    if not results.whole(results.paper.models[table]):
        return NotRun(name, title, "the run was given a part of the people only")
    if len(people) < ALL_FOLDS:
        return NotRun(name, title, f"the table has {len(people)} of {ALL_FOLDS} folds")
    size = dict.fromkeys(people, PEOPLE_A_FOLD)
    short = [k for k, v in people.items() if len(v) < size[k]]
    if short:
        few = len(people[short[0]])
        return NotRun(name, title, f"fold {short[0]} has {few} people, fewer than {size[short[0]]}")
    picks = {ANY: draw(people, size, None)}
    if TRAPPED[1] in people[TRAPPED[0]]:
        picks[WITH_TRAPPED] = draw(people, size, TRAPPED)
    found = list(_compute(results, table, rows, people, picks))
    if not found:
        return NotRun(name, title, "no method was run on all people")
    return _sheet(results, name, title, found, size)


def _compute(
    results: Results,
    table: str,
    rows: pd.DataFrame,
    people: dict[int, list[int]],
    picks: dict[str, Picks],
) -> Iterator[SubsetPrice]:
    everybody = sum(map(len, people.values()))
    for radius, cost_weight in results.paper.columns(table, "sba"):
        here = rows[(rows["radius"] == radius) & (rows["cost_weight"] == cost_weight)]
        for line, group in lines_of(here):
            if line.people == DRAWN:
                continue
            if len(group) < everybody or group["price"].isna().any():
                continue  # a part of the people cannot be drawn from a part of the people
            ordered = group.sort_values(["fold", "instance"])
            prices = {fold: g["price"].to_numpy() for (fold,), g in groups(ordered, "fold")}
            place = Place(table, "sba", line.row, radius, cost_weight)
            for kind, chosen in picks.items():
                ours = spread_of(prices, chosen)
                said = verdict(ours.mean, results.paper.prices[place])
                yield SubsetPrice(place, line, kind, ours, said)


def _sheet(
    results: Results, name: str, title: str, found: list[SubsetPrice], size: dict[int, int]
) -> Sheet:
    table = found[0].place.table
    columns = results.paper.columns(table, "sba")
    rows = []
    for row, label in PAPER_ROWS.items():
        printed = [results.paper.prices[Place(table, "sba", row, *column)] for column in columns]
        rows.append([cell(label), cell("paper"), cell(""), *[cell(str(p)) for p in printed]])
        for line in sorted({one.line for one in found if one.line.row == row}, key=order_of):
            for kind in dict.fromkeys(one.kind for one in found):
                mine = [one for one in found if one.line == line and one.kind == kind]
                labels = [cell(label), cell(f"ours: {line.name}"), cell(kind)]
                rows.append([*labels, *_cells(mine, columns)])
    header = ["row of the paper", "whose figure", "subsets", *[column_name(*c) for c in columns]]
    data = pd.DataFrame([_record(results, one) for one in found])
    return Sheet(name, title, _caption(size), header, rows, data, labels=3)


def _cells(mine: list[SubsetPrice], columns: list[tuple[float, float]]) -> Iterator[Cell]:
    by_column = {one.place[3:]: one for one in mine}
    for column in columns:
        if column not in by_column:
            yield cell("not run")
            continue
        one = by_column[column]
        spreads = f"spread {number(one.ours.spread, like=one.ours.mean)}"
        yield cell(str(one.ours), spreads, str(one.verdict), mark=one.verdict.word)


def _caption(size: dict[int, int]) -> str:
    many = max(size.values())
    return (
        f"{N_SUBSETS:,} random subsets of {many} people a fold (seed {SEED}; the same for every "
        "method). A cell is the mean over subsets of what the paper's cell would be (mean ± "
        "deviation over folds), then how the means of the subsets spread (one standard "
        f"deviation), then the verdict. The trapped row is instance {TRAPPED[1]} of fold "
        f"{TRAPPED[0]}, both counted from 0; the authors' own sample includes it and is in the "
        "table above."
    )


def _record(results: Results, one: SubsetPrice) -> dict[str, object]:
    printed = results.paper.prices[one.place]
    return {
        **one.place._asdict(),
        "method": one.line.method,
        "p": one.line.p,
        "loss": one.line.loss,
        "linearise": one.line.linearise,
        "subsets": one.kind,
        **one.ours._asdict(),
        "paper_mean": printed.mean,
        "paper_deviation": printed.deviation,
        "difference": one.verdict.difference,
        "verdict": one.verdict.word,
    }
