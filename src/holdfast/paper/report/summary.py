"""What stands at the top: how many figures agree with the paper, and which bars hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from holdfast.paper.report.cells import AGREES, BETTER, DIFFERS, small
from holdfast.paper.report.names import SHORT_DATASETS
from holdfast.paper.report.optimality import PROVEN, TOLERANCE, excess
from holdfast.paper.report.prices import (
    AS_PUBLISHED,
    SOUNDLY,
    TABLES,
    Figure,
    PriceLine,
    figures,
    protocol,
)
from holdfast.paper.report.results import PUBLISHED, Results
from holdfast.paper.report.sheet import Sheet, cell

_CAPTION = (
    "How many cells agree with the paper (within its deviation), are lower or are higher. As "
    "published: the paper's methods with its own flaws repeated, on the people and folds of its "
    "authors; sound: the same methods without them, and the exact optimum, on everybody."
)
MEAN_BAR, DEVIATION_BAR = 0.01, 0.02


class Bar(NamedTuple):
    """Something that must hold, or that the paper says; `holds` is None where it was not run."""

    what: str
    holds: bool | None
    detail: str
    must: bool = True


def verdict_sheet(results: Results) -> Sheet:
    """Count the verdicts of each table."""
    records, shown = [], []
    for table, title in TABLES.items():
        for dataset, name in SHORT_DATASETS.items():
            found = figures(results, table, dataset)
            for way in (AS_PUBLISHED, SOUNDLY):
                record = _count(found, way)
                label = f"{title.partition(':')[0]}, {name}, {way}"
                records.append({"table": table, "dataset": dataset, "protocol": way, **record})
                counts = [str(n) if found else "not run" for n in record.values()]
                shown.append([cell(label), *[cell(count) for count in counts]])
    header = ["table", "✓ agrees", "▼ better", "▲ differs", "no verdict"]
    title = "Verdicts against the paper"
    return Sheet("verdicts", title, _CAPTION, header, shown, pd.DataFrame(records))


def _count(found: list[Figure], way: str) -> dict[str, int]:
    mine = [figure for figure in found if protocol(figure.line) == way]
    words = Counter(figure.verdict.word if figure.verdict else "none" for figure in mine)
    return {word: words[word] for word in (AGREES, BETTER, DIFFERS, "none")}


def bars(results: Results) -> Iterator[Bar]:
    """Check what must hold, from the table alone."""
    yield _nothing_below(results)
    yield _all_proven(results)
    yield _none_refuted(results)
    yield _first_table(results)
    for table, title in TABLES.items():
        yield _least_is_p1(results, table, title.partition(":")[0])


def _nothing_below(results: Results) -> Bar:
    what = "No recourse of any method is below the exact optimum (linear models)"
    found = excess(results)["excess"].dropna()
    if found.empty:
        return Bar(what, None, "")
    least = float(found.min())
    detail = f"least excess {small(least)} in {len(found):,} recourses"
    return Bar(what, least >= -TOLERANCE, detail)


def _all_proven(results: Results) -> Bar:
    what = "Every exact recourse for a linear model is proven optimal by its certificate"
    rows = results.rows(method="exact", judging="exact", constraints="none")
    rows = rows[rows["p"] == rows["judged_p"]]
    if rows.empty:
        return Bar(what, None, "")
    proven = int(rows["status"].isin(PROVEN).sum())
    detail = f"{proven:,} of {len(rows):,}, largest gap {small(float(rows['gap'].max()))}"
    return Bar(what, proven == len(rows), detail)


def _none_refuted(results: Results) -> Bar:
    what = "No network was found that gives a recourse less than is proven for it"
    rows = results.rows(experiment="proof")
    above = (rows["proven_validity"] - rows["worst_case_validity"]).dropna()
    if above.empty:
        return Bar(what, None, "")
    refuted = int((above > TOLERANCE).sum())
    return Bar(what, refuted == 0, f"{refuted:,} of {len(above):,} recourses refuted")


def _first_table(results: Results) -> Bar:
    what = (
        f"Table 1, German: every mean of the optimum and of ROAR as published within {MEAN_BAR:g} "
        f"of the paper's, every deviation within {DEVIATION_BAR:g}"
    )
    found = [f for f in figures(results, "table1", "german") if f.complete and _seeks(f.line)]
    if not found:
        return Bar(what, None, "", must=False)
    printed = [results.paper.prices[f.place] for f in found]
    means = [abs(f.ours.mean - p.mean) for f, p in zip(found, printed, strict=True)]
    spreads = [abs(f.ours.deviation - p.deviation) for f, p in zip(found, printed, strict=True)]
    detail = f"{len(found)} cells, at most {max(means):.4f} and {max(spreads):.4f}"
    return Bar(what, max(means) <= MEAN_BAR and max(spreads) <= DEVIATION_BAR, detail, must=False)


def _seeks(line: PriceLine) -> bool:
    """Whether a line is what the paper's row seeks: the optimum, or ROAR as its authors run it."""
    return line.method == "exact" or (line.method == "roar" and line.variant == PUBLISHED)


def _least_is_p1(results: Results, table: str, name: str) -> Bar:
    what = f"{name}, what the paper says: every column has its smallest price at p = 1, optimised"
    found = [f for dataset in SHORT_DATASETS for f in figures(results, table, dataset)]
    best = [f for f in found if f.complete and f.ours.mean == f.best]
    if not best:
        return Bar(what, None, "", must=False)
    others = [f for f in best if f.line.row != "algorithm1"]
    detail = f"{len(best) - len(others)} of {len(best)} columns, each way of judging apart"
    if others:
        where = others[0]
        detail += (
            f"; not {SHORT_DATASETS[where.place.dataset]}, radius {where.place.radius:g}, cost "
            f"weight {where.place.cost_weight:g} ({where.line.name})"
        )
    return Bar(what, not others, detail, must=False)
