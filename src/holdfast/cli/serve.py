"""`holdfast serve`: a page on which people are advised one by one, and a service for programs."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.asked import (
    ActionsPath,
    FavorableClass,
    Guarantee,
    GuaranteePoints,
    RobustTo,
    Scale,
    SettingsPath,
    asked_of,
)
from holdfast.cli.ending import Ending, say

if TYPE_CHECKING:
    from holdfast.files.jobs import Job

_ROBUST_TO = "p=1,radius=0.1"
_WAYS = 3


def serve_command(
    *,
    demo: Annotated[
        bool, typer.Option("--demo", help="Use the lender of `holdfast demo`; no files are needed.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="The model: a .skops file, a .json of coefficients, or a linear .onnx."),
    ] = None,
    actions: ActionsPath = None,
    people: Annotated[
        str | None,
        typer.Option(
            help="A table of people to pick from: .csv, .parquet, .arrow or .feather, or a "
            "directory of Parquet parts."
        ),
    ] = None,
    robust_to: RobustTo = None,
    guarantee: Guarantee = None,
    points: Scale = None,
    guarantee_points: GuaranteePoints = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column that identifies people; may be repeated."),
    ] = None,
    favorable_class: FavorableClass = None,
    settings: SettingsPath = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="A table of applicants; letters compare people with the approved ones (default: "
            "those of --people)."
        ),
    ] = None,
    lender: Annotated[str, typer.Option(help="Who writes the letters.")] = "",
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; if other machines can reach it, a token is required."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any free one.")
    ] = 8765,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
) -> Ending:
    """Open a page: pick or enter a person, see what to change, and try things out.

    holdfast serve --demo

    holdfast serve --model model.skops --actions actions.yaml --people denied.parquet

    It runs on this machine and needs no network. Without --robust-to, the advice allows for the
    models of "p=1,radius=0.1"; without --guarantee, each of them must approve by the model's own
    threshold. Programs can ask the same at /v1/recourse; /openapi.json says how. Press Ctrl-C to
    stop it.
    """
    from holdfast.machinery.extras import need

    need("serve", "holdfast serve", "fastapi", "uvicorn")
    given: dict[str, Any] = {
        "model": model,
        "actions": actions,
        "people": people,
        "keys": key,
        "favorable_class": favorable_class,
        "robust_to": robust_to,
        "guarantee": guarantee,
        "guarantee_points": guarantee_points,
    }
    with (
        _leaving_the_compiler(),
        tempfile.TemporaryDirectory(prefix="holdfast-") as folder,
        _ending_in_order(),
    ):
        expected: dict[str, str] = {}
        if demo:
            job = _demo(Path(folder), settings, points, **given)
        else:
            job, expected = asked_of(settings, points, **given)
        job = _complete(job)
        _serve(job, expected, reference, lender, host=host, port=port, open_browser=not no_browser)
    return Ending.DONE


def _serve(
    job: Job,
    expected: dict[str, str],
    reference: Path | None,
    lender: str,
    **where: Any,
) -> None:
    """Answer until Ctrl-C."""
    from holdfast.machinery.meanwhile import meanwhile
    from holdfast.web.desk import Desk
    from holdfast.web.server import serve

    meanwhile.begin()  # nobody waits for the compiler
    desk = Desk.of(job, expected=expected, reference=reference, lender=lender)
    try:
        desk.start()
        serve(desk, **where)
    except KeyboardInterrupt:  # how it ends as a rule
        say("stopped")
    finally:
        desk.close()


def _demo(folder: Path, settings: Path | None, points: str | None, **given: Any) -> Job:
    """Write the files of the demonstration; how sure it must be may be said."""
    from holdfast.demo.files import write_demo

    free = ("robust_to", "guarantee", "guarantee_points")
    own = ["settings"] * (settings is not None)
    own += [name for name, value in given.items() if value is not None and name not in free]
    if own:
        named = ", ".join(_FLAGS.get(name, f"--{name}") for name in own)
        raise ValueError(f"--demo brings its own model and people: leave out {named}")
    asked, _ = asked_of(None, points, **{name: given[name] for name in free})
    job = write_demo(folder)
    if asked.goals:
        job = job.with_changes(guarantee=asked.guarantee, guarantee_points=asked.guarantee_points)
    return job.with_changes(points=asked.points, robust_to=asked.robust_to or job.robust_to)


_FLAGS = {"keys": "--key"}


def _complete(job: Job) -> Job:
    """Say what was not said, and refuse what a page cannot ask."""
    missing = [f"--{name}" for name in ("model", "actions") if not getattr(job, name)]
    if missing:
        raise ValueError(
            f"also give {' and '.join(missing)}, or --demo (see holdfast serve --help)"
        )
    if job.engine != "local":
        raise ValueError(f"engine = {job.engine!r}: the page can only read files on this machine")
    if job.keys and not job.people:
        raise ValueError("--key names a column of --people: give that too, or leave out --key")
    if job.cost_weight is not None:
        raise ValueError(
            "cost_weight weighs cost against chances, but the page looks for an approval: remove "
            "it from the settings and give --guarantee"
        )
    if len(job.goals) > 1:
        raise ValueError("give one of --guarantee and --guarantee-points")
    job = job.with_changes(n_options=_WAYS)
    if not job.robust_to:
        job = job.with_changes(robust_to=_ROBUST_TO)
        say(f'the advice allows for the models of "{_ROBUST_TO}"; use --robust-to to change that')
    if not job.goals:
        from holdfast.web.desk import own_threshold

        job = job.with_changes(guarantee=own_threshold(job))
        say(
            f"each must give {job.guarantee:.12g}, the model's own threshold; use --guarantee to "
            "ask for more"
        )
    return job


@contextmanager
def _leaving_the_compiler() -> Iterator[None]:
    """End the process at once if something is being compiled: LLVM crashes when Python ends."""
    from holdfast.machinery.meanwhile import meanwhile

    code = int(Ending.DONE)
    try:
        yield
    except SystemExit as told:
        if not meanwhile.is_compiling or not isinstance(told.code, int):
            raise
        code = told.code
    if meanwhile.is_compiling:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let a program that is told to end, or loses its terminal, delete what it has written."""

    def end(number: int, _: Any) -> None:
        sys.exit(128 + number)

    told = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {each: signal.signal(each, end) for each in told}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
