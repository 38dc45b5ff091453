"""How long a recourse takes, beside the paper's run times."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from holdfast.paper.report.names import MODELS, SHORT_DATASETS, method_name, paper_row
from holdfast.paper.report.results import SOUND, Results, groups
from holdfast.paper.report.sheet import Cell, NotRun, Sheet, cell

_RECOURSE = ["dataset", "model", "linearise", "fold", "instance", "method", "variant", "p"]
_RECOURSE += ["radius", "cost_weight", "constraints"]
_GROUP = ["dataset", "model", "linearise", "method", "p", "variant", "constraints"]


_CAPTION = (
    "Mean seconds of the method for one recourse, linearisation included. The paper's times were "
    "measured on other machines (laptops), and it does not say for which model; exact is shown "
    "beside the paper's Algorithm 1 (p = 1) and Algorithm 2 (p = ∞), which seek the same optimum."
)


def times_sheet(results: Results) -> Sheet | NotRun:
    """Average the times of each method; a recourse that is judged twice counts once."""
    title = "Running time for one recourse"
    rows = results.frame[results.frame["constraints"].isin(["none", "inside"])]
    rows = rows[rows["seconds"].notna() & (rows["experiment"] != "proof")]  # those again
    # a method without a ball is run once, and judged at every radius
    rows = rows.assign(radius=rows["radius"].where(rows["p"].notna(), 0.0))
    rows = rows.drop_duplicates(_RECOURSE)
    if rows.empty:
        return NotRun("times", title, "the table has no times")
    rows = rows.assign(variant=rows["variant"].where(rows["method"] != "rbr", SOUND))
    data = pd.DataFrame([_record(results, key, g) for key, g in groups(rows, *_GROUP)])
    header = ["data and model", "method", "recourses", "ours", "paper", "paper / ours"]
    shown = [_cells(record) for record in data.to_dict("records")]
    return Sheet("times", title, _CAPTION, header, shown, data, labels=2)


def _record(results: Results, key: tuple[Any, ...], group: pd.DataFrame) -> dict[str, Any]:
    of = dict(zip(_GROUP, key, strict=True))
    timed = of["constraints"] == "none" and of["method"] != "refine"  # by the paper
    row = paper_row(of["method"], of["p"]) if timed else None
    paper = results.paper.seconds.get((of["dataset"], row or ""), math.nan)
    seconds = float(group["seconds"].mean())
    ratio = paper / seconds if seconds > 0 else math.nan
    values = {"seconds": seconds, "paper_seconds": paper, "paper_over_ours": ratio}
    return {**of, "recourses": len(group), **values}


def _cells(record: dict[Any, Any]) -> list[Cell]:
    through = f", {record['linearise'].replace('_', ' ')}" if record["linearise"] else ""
    inside = ", constraints inside" if record["constraints"] == "inside" else ""
    paper = record["paper_seconds"]
    return [
        cell(f"{SHORT_DATASETS[record['dataset']]}, {MODELS[record['model']]}{through}"),
        cell(method_name(record["method"], record["p"], record["variant"]) + inside),
        cell(f"{record['recourses']:,}"),
        cell(_time(record["seconds"])),
        cell("–" if math.isnan(paper) else f"{paper:g} s"),
        cell(_ratio(record["paper_over_ours"])),
    ]


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _ratio(ratio: float) -> str:
    if math.isnan(ratio):
        return "–"
    return f"{float(f'{ratio:.2g}'):,g} ×" if ratio < 1e6 else f"{ratio:.1e} ×"
