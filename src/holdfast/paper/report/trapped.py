"""The one person of SBA on whom a clamped loss has no gradient."""

from __future__ import annotations

import math

import pandas as pd

from holdfast.paper.report.cells import number
from holdfast.paper.report.names import method_name
from holdfast.paper.report.results import Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell
from holdfast.paper.report.subsets import TRAPPED


def trapped_rows(results: Results) -> pd.DataFrame:
    """Return what every method made of the trapped row."""
    fold, instance = TRAPPED
    rows = results.rows(experiment="table1", dataset="sba", fold=fold, instance=instance,
                        radius=0.5, constraints="none")  # fmt: skip
    return rows[rows["p"].isin([1.0, math.inf])].sort_values(["p", "method", "variant"])


def trapped_sheet(results: Results) -> Sheet | NotRun:
    """Show the one row that made the paper's 1.25 ± 1.76."""
    title = "The trapped row: one person of SBA on whom a clamped loss has no gradient"
    rows = trapped_rows(results)
    if rows.empty:
        return NotRun("trapped", title, results.why_not("sba", "table1"))
    weights = sorted(rows["cost_weight"].unique(), reverse=True)
    shown = []
    for (p, method, variant), group in groups(rows, "p", "method", "variant"):
        found = group.set_index("cost_weight")[["price", "cost"]]
        name = method_name(method, p, variant)
        shown.append([cell(name), *(_cell(found, weight) for weight in weights)])
    fold, instance = TRAPPED
    caption = (
        f"Price and cost at radius 0.5 for instance {instance} of fold {fold} (both counted from "
        "0). A loss clamped at a probability of 1e-12 is flat below a score of -27.6: a gradient "
        "method that starts there hardly moves. The sound loss has no such trap."
    )
    header = ["method", *[f"cost weight {w:g}" for w in weights]]
    columns = ["method", "p", "variant", "radius", "cost_weight", "price", "cost", "gap", "status"]
    return Sheet("trapped", title, caption, header, shown, rows[columns])


def _cell(found: pd.DataFrame, cost_weight: float) -> Cell:
    if cost_weight not in found.index:
        return cell("not run")
    values = dict(found.loc[cost_weight])
    return cell(number(values["price"]), f"cost {number(values['cost'])}")
