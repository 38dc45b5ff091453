"""The check that nothing is below the exact optimum, on every linear row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from holdfast.paper.report.cells import small
from holdfast.paper.report.names import method_name
from holdfast.paper.report.results import SOUND, Results, groups
from holdfast.paper.report.sheet import FAILS, HOLDS, Cell, NotRun, Sheet, cell
from holdfast.result.status import Status

PROVEN = [str(status) for status in Status if status.is_proven]
TOLERANCE = 1e-9  # further below the optimum than this is no rounding any more
_PERSON = ["dataset", "fold", "instance", "radius", "cost_weight", "judged_p"]
_GROUP = ["method", "p", "variant", "constraints"]


def excess(results: Results) -> pd.DataFrame:
    """Return the linear rows that have a price, with what they cost above the exact optimum."""
    rows = results.rows(model="logistic", judging="exact")
    rows = rows[rows["price"].notna()]
    best = rows[(rows["method"] == "exact") & (rows["constraints"] == "none")
                & (rows["variant"] == SOUND) & (rows["p"] == rows["judged_p"])]  # fmt: skip
    best = best.groupby(_PERSON)["price"].max().rename("optimum").reset_index()
    rows = rows.merge(best, on=_PERSON, how="left")
    return rows.assign(excess=rows["price"] - rows["optimum"])


_CAPTION = (
    "Every recourse for a linear model, against the exact optimum of the same person, radius and "
    "cost weight, in the ball by which it is judged: the least, mean and largest excess of its "
    f"price, which must not be below -{TOLERANCE:g}; and the largest gap that its own certificate "
    "leaves open."
)


def optimality_sheet(results: Results) -> Sheet | NotRun:
    """Compare the prices of each method with the optimum."""
    title = "Nothing is below the exact optimum"
    rows = excess(results)
    if rows["excess"].notna().sum() == 0:
        return NotRun("optimality", title, "the table has no linear rows to compare")
    data = pd.DataFrame([_record(key, group) for key, group in groups(rows, *_GROUP)])
    header = ["method", "recourses compared", "least excess", "mean excess", "largest excess",
              "largest gap", "proven optimal", "bar"]  # fmt: skip
    shown = [list(_cells(record)) for record in data.to_dict("records")]
    return Sheet("optimality", title, _CAPTION, header, shown, data)


def _record(key: tuple[Any, ...], group: pd.DataFrame) -> dict[str, Any]:
    compared = group["excess"].dropna()
    return {
        **dict(zip(_GROUP, key, strict=True)),
        "recourses": len(group),
        "compared": len(compared),
        "least_excess": compared.min(),
        "mean_excess": compared.mean(),
        "largest_excess": compared.max(),
        "largest_gap": group["gap"].max(),
        "proven_optimal": int(group["status"].isin(PROVEN).sum()),
        "holds": not compared.min() < -TOLERANCE,
    }


def _cells(record: dict[Any, Any]) -> Iterator[Cell]:
    after = "" if record["constraints"] == "none" else f", constraints {record['constraints']}"
    yield cell(method_name(record["method"], record["p"], record["variant"]) + after)
    yield cell(f"{record['compared']:,}")
    for name in ("least_excess", "mean_excess", "largest_excess", "largest_gap"):
        yield cell(small(record[name]))
    yield cell(f"{record['proven_optimal']:,} of {record['recourses']:,}")
    if not record["compared"]:
        yield cell("not compared")
    elif record["holds"]:
        yield cell("✓ holds", mark=HOLDS)
    else:
        yield cell("✗ FAILS", mark=FAILS)
