"""Everything that is shown of a reproduction, from its one table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.machinery.extras import need
from holdfast.paper.report.exactness import norms_picture, trapped_picture
from holdfast.paper.report.feasibility import feasibility_pictures
from holdfast.paper.report.frontiers import frontier_pictures
from holdfast.paper.report.norms import norm_sheets
from holdfast.paper.report.optimality import optimality_sheet
from holdfast.paper.report.page import PagePart, Section, write_page
from holdfast.paper.report.picture import Picture
from holdfast.paper.report.prices import TABLES, price_sheets
from holdfast.paper.report.proof import proof_picture, proof_sheets
from holdfast.paper.report.results import Results, read_results
from holdfast.paper.report.sheet import Sheet, to_csv, to_latex, to_markdown
from holdfast.paper.report.sparsity import sparsity_pictures
from holdfast.paper.report.style import drawing, lay_out, to_png, to_svg
from holdfast.paper.report.subsets import subset_sheet
from holdfast.paper.report.summary import bars, verdict_sheet
from holdfast.paper.report.times import times_sheet
from holdfast.paper.report.trapped import trapped_sheet

_FORMS = {"csv": to_csv, "md": to_markdown, "tex": to_latex}


def write_report(results: Path, out: Path) -> Path:
    """Write tables, figures and a page of a table of results; return the page.

    Parameters
    ----------
    results : Path
        A table as `holdfast.paper.tidy.write_table` writes it. Parts that have no rows are shown as
        not run, with the reason where the table says it.
    out : Path
        A folder, made where it is missing. `tables/`, `figures/` and `index.html` are written
        there, each file whole or not at all; what an earlier report left of a part that was not
        run this time is removed.

    Returns
    -------
    Path
        Of the page, `index.html`.
    """
    need("reproduce", "a report", "matplotlib", "pyarrow")
    asked = read_results(Path(results))
    out = Path(out)
    for folder in ("tables", "figures"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    with drawing():
        sections = [Section(name, title, list(parts)) for name, title, parts in _sections(asked)]
        verdicts = verdict_sheet(asked)
        for part in [verdicts, *(part for section in sections for part in section.parts)]:
            _write_part(part, out)
    page = out / "index.html"
    _write(page, write_page(asked, sections, verdicts, list(bars(asked))).encode())
    return page


def _sections(results: Results) -> Iterator[tuple[str, str, Iterator[PagePart]]]:
    for table, title in TABLES.items():
        yield table, title, _price_parts(results, table)
    yield "norms", "Which norm", iter([*norm_sheets(results), norms_picture(results)])
    trapped = [trapped_sheet(results), trapped_picture(results)]
    yield "trapped", "The trapped row", iter(trapped)
    yield "optimality", "Nothing is below the optimum", iter([optimality_sheet(results)])
    yield "times", "Running times", iter([times_sheet(results)])
    yield "frontiers", "Cost against validity", frontier_pictures(results)
    yield "sparsity", "Sparsity", sparsity_pictures(results)
    yield "feasibility", "Feasibility", feasibility_pictures(results)
    proven = [*proof_sheets(results), proof_picture(results)]
    yield "proof", "What is proven about networks", iter(proven)


def _price_parts(results: Results, table: str) -> Iterator[PagePart]:
    yield from price_sheets(results, table)
    if table == "table1":
        yield subset_sheet(results)


def _write_part(part: PagePart, out: Path) -> None:
    if isinstance(part, Sheet):
        for kind, form in _FORMS.items():
            _write(out / "tables" / f"{part.name}.{kind}", form(part).encode())
    elif isinstance(part, Picture):
        lay_out(part.figure)
        _write(out / "figures" / f"{part.name}.svg", to_svg(part.figure))
        _write(out / "figures" / f"{part.name}.png", to_png(part.figure))
    else:
        for kind in ("tables", "figures"):
            for stale in (out / kind).glob(f"{part.name}.[a-z]*"):
                stale.unlink()


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
