"""`holdfast demo`: the main job on embedded real data."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer


def demo_command(
    p: Annotated[
        float | None,
        typer.Option(
            help="Use a ball of this norm, 1 to inf (default: the ellipsoid of the Fisher "
            "information)."
        ),
    ] = None,
    radius: Annotated[
        float | None,
        typer.Option(
            help="Size of the set: standard errors (1.25 by default), or radius of the ball (0.5)."
        ),
    ] = None,
    people: Annotated[int, typer.Option(min=1, help="How many people to list.")] = 6,
    models: Annotated[int, typer.Option(min=1, help="How many models to retrain.")] = 100,
) -> None:
    """Show plain and robust recourse for real loan applicants, and which of it lasts.

    The applicants are those of the built-in German Credit data whom a model turns down.
    """
    from rich.console import Console

    from holdfast.demo.people import run_demo
    from holdfast.demo.view import show

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without arrows still shows the rest
    console = Console()
    with Console(stderr=True).status("working ..."):
        found = run_demo(p=p, radius=radius, n_models=models)
    show(found, console, people)
