"""`holdfast audit`: advice given earlier, under another model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Ending
from holdfast.cli.outputs import RecoursePath, print_json, table_of
from holdfast.cli.report import load_later

if TYPE_CHECKING:
    from holdfast.report import Audit

_SHOWN = 10  # rows of those who must be told


def audit_command(
    recourse: RecoursePath,
    *,
    model: Annotated[Path, typer.Option(help="The other model, which reads the same columns.")],
    favorable_class: Annotated[
        str | None,
        typer.Option(
            help="The class of that model that people want (default: as its file says, or else as "
            "in the run)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A table to write, .parquet or .csv: what became of each option."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> Ending:
    """See which advice given earlier still holds under another model, and who must be told.

    holdfast audit recourse.parquet --model new_model.skops --out audit.parquet

    Advice holds if the other model approves whoever follows it. People must be told if they would
    still be refused, and were given an option that no longer holds. The exit code is 1 if there are
    any.
    """
    from holdfast.files.recourse import RecourseFile
    from holdfast.report import audit

    file = RecourseFile.open(recourse)
    found = audit(file, load_later(file, model, favorable_class), out)
    if as_json:
        print_json(found.to_plain())
    else:
        _show(found, out)
    return Ending.ATTENTION if found.must_be_told else Ending.DONE


def _show(found: Audit, out: Path | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from holdfast.report.figures import share_range

    console = Console(highlight=False, markup=False)
    table = table_of(("", "right"), ("", "left"))
    for count, meaning in (
        (found.people, "people were refused, and given advice"),
        (found.first_holds, f"of their first options hold: {share_range(found.survival)}"),
        (found.some_holds, "people have at least one option that holds"),
        (found.approved_now, "people are approved by the other model without any change"),
        (found.below_guarantee, "options hold, but with less than was guaranteed"),
        (found.not_read, "options cannot be read by the other model, and so do not hold"),
    ):
        table.add_row(f"{count:,}", meaning)
    console.print(table)
    if found.must_be_told:
        rows = ", ".join(map(str, found.tell[:_SHOWN]))
        more = found.must_be_told - len(found.tell[:_SHOWN])
        rest = f" and {more:,} more" if more else ""
        console.print(Text(f"\n{found.must_be_told:,} must be told", "bold"), end="")
        console.print(f": rows {rows}{rest}.")
    else:
        console.print("\nNobody needs to be told.")
    if out is not None:
        console.print(f"What became of each option is in {out}.", soft_wrap=True)
