"""`holdfast audit`: advice given earlier, under another model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Ending
from holdfast.cli.report import load_later

if TYPE_CHECKING:
    from holdfast.report import Audit


def audit_command(
    recourse: Annotated[
        Path, typer.Argument(help="What `holdfast recommend` has written, its manifest beside it.")
    ],
    model: Annotated[Path, typer.Option(help="The other model, which reads the same columns.")],
    favorable: Annotated[
        str | None,
        typer.Option(help="The class of it that people want (default: as in the run)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A table to write, .parquet or .csv: what became of each way."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> Ending:
    """See which advice given earlier still holds under another model, and who must be told.

    holdfast audit recourse.parquet --model new_model.skops --out audit.parquet

    Advice holds if the other model approves whoever follows it. Told must be who was refused and
    advised, would still be refused, and has no way left that holds: the exit code is 1 if there is
    anybody.
    """
    from holdfast.files.recourse import RecourseFile
    from holdfast.report import audit

    file = RecourseFile.open(recourse)
    found = audit(file, load_later(file, model, favorable), out)
    if as_json:
        print(json.dumps(found.to_plain()))
    else:
        _show(found, out)
    return Ending.ATTENTION if found.must_be_told else Ending.DONE


def _show(found: Audit, out: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from holdfast.report.figures import share_range

    console = Console(highlight=False)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for count, meaning in (
        (found.people, "people were refused, and given advice"),
        (found.first_holds, f"of their first ways hold: {share_range(found.survival)}"),
        (found.some_holds, "people have at least one way that holds"),
        (found.approved_now, "people are approved by the other model without any change"),
        (found.below_guarantee, "ways hold, but with less than was guaranteed"),
        (found.not_read, "ways cannot be read by the other model, and do not hold"),
    ):
        table.add_row(f"{count:,}", meaning)
    console.print(table)
    if found.must_be_told:
        rows = ", ".join(map(str, found.tell))
        more = found.must_be_told - len(found.tell)
        rest = f" and {more:,} more" if more else ""
        console.print(f"\n[bold]{found.must_be_told:,} must be told[/bold]: rows {rows}{rest}.")
    else:
        console.print("\nNobody must be told.")
    if out is not None:
        console.print(f"What became of each way is in {out}.", soft_wrap=True)
