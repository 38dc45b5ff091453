"""Which norm: the exact optimum for every exponent, between 1 and ∞ too."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from holdfast.paper.report.cells import Estimate, estimate, small
from holdfast.paper.report.names import DATASETS, column_name, p_name
from holdfast.paper.report.results import SOUND, Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell

_CAPTION = (
    "Logistic regression; mean ± deviation over folds of the least price there is, and the largest "
    "gap between a price and its proven lower bound. A larger p is a larger ball, so prices rise "
    "from p = 1 to p = ∞."
)


def norm_sheets(results: Results) -> Iterator[Sheet | NotRun]:
    """Make a table for each data set; the paper has methods for p = 1 and p = ∞ alone."""
    for dataset, place in DATASETS.items():
        name, title = f"norms-{dataset}", f"Which norm: the exact optimum for each p, {place}"
        rows = results.rows(experiment="table1", dataset=dataset, method="exact", variant=SOUND)
        if rows.empty:
            yield NotRun(name, title, results.why_not(dataset, "table1"))
            continue
        columns = results.paper.columns("table1", dataset)
        data = pd.DataFrame(_records(rows, columns))
        shown = [[cell(f"p = {p_name(p)}"), *_cells(of_p)] for (p,), of_p in groups(data, "p")]
        header = ["ball", *[column_name(*column) for column in columns]]
        yield Sheet(name, title, _CAPTION, header, shown, data)


def _records(rows: pd.DataFrame, columns: list[tuple[float, float]]) -> Iterator[dict[str, object]]:
    for (p,), of_p in groups(rows, "p"):
        for radius, cost_weight in columns:
            here = of_p[(of_p["radius"] == radius) & (of_p["cost_weight"] == cost_weight)]
            key = {"dataset": rows["dataset"].iloc[0], "p": p, "radius": radius}
            values = {**estimate(here)._asdict(), "largest_gap": here["gap"].max()}
            yield {**key, "cost_weight": cost_weight, **values}


def _cells(of_p: pd.DataFrame) -> Iterator[Cell]:
    names = list(Estimate._fields)
    for (_, values), gap in zip(of_p[names].iterrows(), of_p["largest_gap"], strict=True):
        ours = Estimate(*values)
        yield cell(str(ours), f"gap ≤ {small(gap)}") if ours.people else cell("not run")
