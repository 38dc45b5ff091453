"""`holdfast methods`: what recourse can be found by."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.methods.door import MethodInfo


def methods_command() -> None:
    """Show the methods for finding recourse, and what each needs and guarantees."""
    from rich.console import Console

    from holdfast.methods.door import describe, list_methods
    from holdfast.paper.catalogue import PAPER_METHODS

    console = Console(highlight=False)
    console.print("holdfast.find_recourse(X, model, NAME, ...)\n", style="dim")
    _list(console, list_methods())
    classes = ", ".join(kind.__name__ for kind in PAPER_METHODS.values())
    console.print("From the paper (import them, and pass an instance):", style="dim")
    console.print(f"from holdfast.paper import {classes}\n", style="dim")
    _list(console, [describe(kind) for kind in PAPER_METHODS.values()])


def _list(console: Console, methods: list[MethodInfo]) -> None:
    from rich.padding import Padding

    for method in methods:
        settings = ", ".join(f"{name}={value!r}" for name, value in method.settings.items())
        console.print(f"[bold]{method.name}[/bold]  {method.summary}")
        for label, text in (
            ("needs", method.needs),
            ("guarantees", method.guarantees),
            ("settings", settings or "none"),
        ):
            console.print(Padding(f"{label}: {text}", (0, 0, 0, 4)), markup=False)
    console.print()
