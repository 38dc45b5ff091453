"""A table to be shown, and its three written forms; the page makes a fourth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

HOLDS, FAILS = "holds", "fails"


class Cell(NamedTuple):
    """What stands in a cell, line by line; the mark is a verdict (colour on the page)."""

    lines: tuple[str, ...]
    mark: str = ""


def cell(*lines: str, mark: str = "") -> Cell:
    """Make a cell of the lines that are not empty."""
    return Cell(tuple(line for line in lines if line), mark)


@dataclass(frozen=True)
class Sheet:
    """A table: what is shown, and the same in full precision."""

    name: str
    title: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    data: pd.DataFrame = field(repr=False)  # a row for each figure, nothing rounded
    labels: int = 1  # the first columns, which say what a row is


class NotRun(NamedTuple):
    """A part that is not there, and why."""

    name: str
    title: str
    why: str


def to_csv(sheet: Sheet) -> str:
    """Write the figures in full precision, one a line."""
    return sheet.data.to_csv(index=False, lineterminator="\n")


def to_markdown(sheet: Sheet) -> str:
    """Write the table for people who read text."""
    lines = [f"# {sheet.title}", "", sheet.caption, ""]
    lines.append(_markdown_row(sheet.header))
    lines.append("|" + "---|" * len(sheet.header))
    lines += [_markdown_row(["<br>".join(c.lines) for c in row]) for row in sheet.rows]
    return "\n".join(lines) + "\n"


def _markdown_row(texts: list[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def to_latex(sheet: Sheet) -> str:
    """Write the table for LaTeX with booktabs."""
    alignment = "l" * sheet.labels + "r" * (len(sheet.header) - sheet.labels)
    body = [" & ".join(_latex_cell(c) for c in row) + r" \\" for row in sheet.rows]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\footnotesize",
        rf"\caption{{{_latex(sheet.title + '. ' + sheet.caption)}}}",
        rf"\label{{tab:{sheet.name}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(_latex_cell(cell(*text.split(", "))) for text in sheet.header) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_cell(c: Cell) -> str:
    lines = [_latex(line) for line in c.lines]
    if len(lines) < 2:
        return "".join(lines)
    return r"\shortstack{" + r" \\ ".join(lines) + "}"


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "–": "--",
    "µ": r"$\mu$",
}


def _latex(text: str) -> str:
    for sign in ("✓ ", "▼ ", "▲ ", "✗ "):
        text = text.replace(sign, "")
    return "".join(_LATEX.get(sign, sign) for sign in text)
