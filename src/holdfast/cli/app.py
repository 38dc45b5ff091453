"""The command `holdfast`: its commands, in the order in which people need them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holdfast.cli.actions import actions_check_command, actions_command
from holdfast.cli.audit import audit_command
from holdfast.cli.calibrate import calibrate_command
from holdfast.cli.demo import demo_command
from holdfast.cli.ending import ends_well
from holdfast.cli.fit import fit_command
from holdfast.cli.letter import letter_command
from holdfast.cli.methods import methods_command
from holdfast.cli.recommend import recommend_command
from holdfast.cli.report import report_command
from holdfast.cli.reproduce import reproduce_command
from holdfast.cli.serve import serve_command
from holdfast.machinery.versions import VERSION

_COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": demo_command,
    "fit": fit_command,
    "actions": actions_command,
    "actions check": actions_check_command,
    "calibrate": calibrate_command,
    "recommend": recommend_command,
    "serve": serve_command,
    "report": report_command,
    "letter": letter_command,
    "audit": audit_command,
    "methods": methods_command,
    "reproduce": reproduce_command,
}

_EPILOG = (
    "Exit codes: 0 done; 1 done, and something needs your attention; 2 the command or its input "
    "is wrong, and nothing was written; 3 stopped part-way: run the same command to continue; 70 "
    "a bug in Holdfast; 130 interrupted."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        make_app()(args=given, prog_name="holdfast")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 2
    return 0


class _TwoWords(TyperGroup):
    """Commands of which some have a name of two words, beside one of the first word alone."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take both words for the command where there is one of that name."""
        name = " ".join(args[:2])
        if name in self.commands and len(args) > 1:
            return name, self.commands[name], args[2:]
        return super().resolve_command(ctx, args)


def make_app() -> typer.Typer:
    """Put the commands together."""
    app = typer.Typer(
        cls=_TwoWords,
        rich_markup_mode="markdown",  # paragraphs are filled to the width of the terminal
        no_args_is_help=True,
        epilog=_EPILOG,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_about)
    for name, command in _COMMANDS.items():
        app.command(name)(ends_well(command))
    return app


def _show_version(asked: bool) -> None:
    if asked:
        print(f"holdfast {VERSION}")
        raise typer.Exit


def _about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
        ),
    ] = False,
) -> None:
    """Robust algorithmic recourse, provably optimal, with a certificate."""
