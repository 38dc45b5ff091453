"""How commands show things: plain tables, one JSON document, warnings beside them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.ending import say
from holdfast.machinery.plain import plain_of

if TYPE_CHECKING:
    from rich.table import Table

RecoursePath = Annotated[
    Path, typer.Argument(help="The output of `holdfast recommend`, with its manifest beside it.")
]


def check_out(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse a place that nothing can be written to, before any work is done."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"--out {path} does not end in one of {', '.join(suffixes)}")
    if path.is_dir():
        raise ValueError(f"--out {path} is a directory")
    if not path.parent.is_dir():
        raise ValueError(f"--out {path}: there is no directory {path.parent}")


def table_of(*columns: tuple[str, str]) -> Table:
    """Return an empty table of these columns, each with its side: "left" or "right".

    Where no column has a title, there is no line of titles.
    """
    from rich.table import Table

    titled = any(title for title, _ in columns)
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, show_header=titled)
    for title, side in columns:
        table.add_column(title, justify=side, overflow="fold")  # type: ignore[arg-type]
    return table


def print_json(content: Any) -> None:
    """Print one JSON document; a number that is none is null."""
    print(json.dumps(plain_of(content), allow_nan=False))


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Say warnings as they come up, as plain sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(
        str(each.message) for each in caught if issubclass(each.category, UserWarning)
    ):
        say(text)
