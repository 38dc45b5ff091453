"""The command line: parse, call, show."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except ValueError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    from holdfast import __version__

    parser = argparse.ArgumentParser(
        prog="holdfast",
        description="Robust algorithmic recourse, provably optimal, with a certificate.",
    )
    parser.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="recourse for real loan applicants, plain and robust, and which of it lasts",
        description="Recourse for the applicants of German Credit whom a model turns down.",
    )
    demo.add_argument("--p", type=float, default=1.0, help="norm of the ball, 1 to inf (default 1)")
    demo.add_argument("--radius", type=float, default=0.5, help="radius of the ball (default 0.5)")
    demo.add_argument("--people", type=_count, default=6, help="how many to list (default 6)")
    demo.add_argument(
        "--models", type=_count, default=100, help="how many retrained models (default 100)"
    )
    demo.set_defaults(run=_demo)
    methods = commands.add_parser(
        "methods",
        help="the methods that recourse can be found by, what each needs and guarantees",
    )
    methods.set_defaults(run=_methods)
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def _methods(options: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.padding import Padding

    from holdfast.methods import list_methods

    console = Console(highlight=False)
    for method in list_methods():
        settings = ", ".join(f"{name}={value!r}" for name, value in method.settings.items())
        console.print(f"[bold]{method.name}[/bold]  {method.summary}")
        for label, text in (
            ("needs", method.needs),
            ("guarantees", method.guarantees),
            ("settings", settings or "none"),
        ):
            console.print(Padding(f"{label}: {text}", (0, 0, 0, 4)), markup=False)
    return 0


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from holdfast.demo import run_demo
    from holdfast.demo_view import show

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without arrows still shows the rest
    console = Console()
    progress = "working (the first run also compiles the solvers, a minute more) ..."
    with Console(stderr=True).status(progress):
        demo = run_demo(p=options.p, radius=options.radius, n_models=options.models)
    show(demo, console, options.people)
    return 0
