"""The command line: parse, call, show."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.methods.door import MethodInfo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (ValueError, ModuleNotFoundError, OSError) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("holdfast: interrupted", file=sys.stderr)
        return 130
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
    demo.add_argument(
        "--p",
        type=float,
        help="a ball of this norm, 1 to inf (default: the ellipsoid of the Fisher information)",
    )
    demo.add_argument(
        "--radius",
        type=float,
        help="size of the set: standard errors (default 1.25), or radius of the ball (default 0.5)",
    )
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
    _add_reproduce(commands)
    return parser


def _add_reproduce(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="the paper's tables and figures, ours beside theirs",
        description="Reproduce the paper: tables, figures and one page, in a directory. What is "
        "finished is kept, so that an interrupted run goes on where it was.",
    )
    command.add_argument(
        "targets",
        nargs="*",
        default=["all"],
        metavar="TARGET",
        help="table1, table2, table3, tables, figures, linear (all of logistic regression), all",
    )
    command.add_argument(
        "--out", type=Path, default=Path("reproduction"), help="where to (default ./reproduction)"
    )
    command.add_argument(
        "--data", type=Path, help="directory of the data files (default: HOLDFAST_DATA_DIR)"
    )
    command.add_argument("--folds", type=_folds, help="which folds, 0 to 4: 0,1,2 (default all)")
    command.add_argument("--jobs", type=_count, help="processes (default: one for each core)")
    command.add_argument("--device", help="where networks run: cpu, cuda (default cpu)")
    command.add_argument(
        "--quick", action="store_true", help="a true but smaller run, in two minutes"
    )
    command.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from holdfast.machinery.extras import need

    need("reproduce", "holdfast reproduce", "torch", "matplotlib", "pyarrow")
    from holdfast.paper.reproduce import Order, reproduce

    order = Order(
        targets=options.targets,
        out=options.out,
        data=options.data,
        folds=options.folds,
        jobs=options.jobs,
        device=options.device,
        quick=options.quick,
    )
    return reproduce(order)


def _folds(text: str) -> list[int]:
    folds = sorted({int(part) for part in text.split(",") if part.strip() in set("01234")})
    if not folds or any(part.strip() not in set("01234") for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of folds, such as 0,1,2")
    return folds


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 1")
    return int(text)


def _methods(options: argparse.Namespace) -> int:
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
    return 0


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


def _demo(options: argparse.Namespace) -> int:
    from rich.console import Console

    from holdfast.demo.people import run_demo
    from holdfast.demo.view import show

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without arrows still shows the rest
    console = Console()
    with Console(stderr=True).status("working ..."):
        demo = run_demo(p=options.p, radius=options.radius, n_models=options.models)
    show(demo, console, options.people)
    return 0
