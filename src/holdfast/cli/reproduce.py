"""`holdfast reproduce`: the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.ending import Ending


def reproduce_command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET",
            help="table1, table2, table3, tables, figures, proof (what is proven about "
            "networks), linear (everything on logistic regression) or all, the default.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write.")] = Path("reproduction"),
    data: Annotated[
        Path | None,
        typer.Option(help="Directory of the data files (default: HOLDFAST_DATA_DIR)."),
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="Which folds, 0 to 4, such as 0,1,2 (default: all).")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=-1, help="How many processes to run; -1: one for each processor.")
    ] = -1,
    device: Annotated[
        str | None, typer.Option(help="Where networks run: cpu or cuda (default: cpu).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller but genuine run, in two minutes.")
    ] = False,
) -> Ending | int:
    """Reproduce the paper: tables, figures and one page, with our results beside theirs.

    Finished parts are kept, so an interrupted run continues where it left off.
    """
    from holdfast.machinery.extras import need

    chosen = None if folds is None else _read_folds(folds)
    need("reproduce", "holdfast reproduce", "torch", "matplotlib", "pyarrow")
    from holdfast.paper.reproduce import Order, reproduce

    order = Order(
        targets=targets or ["all"],
        out=out,
        data=data,
        folds=chosen,
        jobs=jobs,
        device=device,
        quick=quick,
    )
    return reproduce(order)


def _read_folds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if any(part not in set("01234") for part in parts):
        raise typer.BadParameter(
            f"{text!r} is not a list of folds, such as 0,1,2", param_hint="--folds"
        )
    return sorted({int(part) for part in parts})
