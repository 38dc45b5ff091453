"""`holdfast recommend`: the main job, over files."""

from __future__ import annotations

import sys
import time
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
from holdfast.cli.outputs import print_json, table_of

if TYPE_CHECKING:
    from holdfast.engines.earlier import Finished
    from holdfast.engines.local import Progress
    from holdfast.files.jobs import Job


def recommend_command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="The model: a .skops file, a .json of coefficients, or a linear .onnx."
        ),
    ] = None,
    people: Annotated[
        str | None,
        typer.Argument(
            help="The table of people: .csv, .parquet, .arrow or .feather, or a directory of "
            "Parquet parts."
        ),
    ] = None,
    *,
    actions: ActionsPath = None,
    robust_to: RobustTo = None,
    guarantee: Guarantee = None,
    cost_weight: Annotated[
        float | None,
        typer.Option(help="Instead of a guarantee: weigh cost against the worst loss."),
    ] = None,
    points: Scale = None,
    guarantee_points: GuaranteePoints = None,
    options: Annotated[
        int | None, typer.Option(min=1, help="How many ways to find for each person (default: 1).")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="A column to copy to the output; may be repeated."),
    ] = None,
    favorable_class: FavorableClass = None,
    loss: Annotated[
        str | None, typer.Option(help="The loss (default: the one the model was fitted with).")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            help="Where to write: .parquet, .arrow or .feather; also .csv, but report, letter "
            "and audit cannot read that. The manifest is written beside it."
        ),
    ] = None,
    settings: SettingsPath = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Where it runs: local or spark (default: local). With spark, PEOPLE and --out "
            "may be any path or table that Spark knows, and the session is taken from the "
            "environment."
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=-1, help="How many processes to run; -1: one for each processor.")
    ] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> Ending:
    """Recommend what everybody in a table should change, so that it holds for future models too.

    holdfast recommend model.skops denied.parquet --actions actions.yaml --guarantee 0.5
    --robust-to "p=1,radius=0.1" --out recourse.parquet

    The output has everybody in the input, in the same order: what to change, its cost and its
    proof, and their values after the change. A row that cannot be used gets a status and a reason.
    If the run is stopped, the same command continues where it left off.
    """
    job, expected = _job(
        settings,
        points,
        model=model,
        people=people,
        actions=actions,
        out=out,
        robust_to=robust_to,
        guarantee=guarantee,
        cost_weight=cost_weight,
        guarantee_points=guarantee_points,
        n_options=options,
        keys=key,
        favorable_class=favorable_class,
        loss=loss,
        engine=engine,
    )
    if job.engine == "spark":
        from holdfast.engines.spark import run_on_spark

        finished = run_on_spark(job, expected=expected)
    else:
        from holdfast.engines.local import run_job

        with _bar() as progress:
            finished = run_job(job, n_jobs=jobs, expected=expected, progress=progress)
    _show(finished, as_json)
    return Ending.DONE


def _job(settings: Path | None, points: str | None, **given: Any) -> tuple[Job, dict[str, str]]:
    """Put together what is asked; refuse what lacks something."""
    job, expected = asked_of(settings, points, **given)
    missing = job.missing()
    if missing:
        named = ", ".join(_FLAGS[name] for name in missing)
        raise ValueError(f"also give {named} (see holdfast recommend --help)")
    if len(job.goals) != 1:
        raise ValueError("give exactly one of --guarantee, --cost-weight and --guarantee-points")
    return job, expected


_PAUSE = 30.0  # seconds between two lines of a log

_FLAGS = {
    "model": "MODEL",
    "people": "PEOPLE",
    "actions": "--actions",
    "out": "--out",
    "robust_to": "--robust-to",
}


@contextmanager
def _bar() -> Iterator[Progress]:
    """Show people a second and the time left: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _LoggedProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, said="reading")

        def told(done: int, total: int | None) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f", {speed:,.0f} a second, time left"
            bar.update(
                task, completed=done, total=total, said=f"{done:,} of {total:,} people{rate}"
            )

        yield told


class _LoggedProgress:
    """Progress for a log: a line every half a minute."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int, total: int | None) -> None:
        """Say how far it is, if some time has passed."""
        self.first = done if self.first is None else self.first
        now = time.monotonic()
        if now - self.last < _PAUSE or not total:
            return
        self.last, rate = now, (done - self.first) / (now - self.began)
        left = f", about {(total - done) / rate:,.0f} seconds left" if rate else ""
        say(f"{done:,} of {total:,} people, {rate:,.0f} a second{left}")


def _show(finished: Finished, as_json: bool) -> None:
    if as_json:
        seconds = {name: round(value, 3) for name, value in finished.seconds.items()}
        content = {name: getattr(finished, name) for name in ("out", "manifest", "people")}
        content |= {"status": finished.statuses, "was_done": finished.was_done, "seconds": seconds}
        print_json(content)
        return
    from rich.console import Console

    from holdfast.result.status import Status

    console = Console(highlight=False, markup=False)
    if finished.was_done:
        console.print("An earlier run already did this; nothing was changed.")
    table = table_of(("people", "right"), ("status", "left"), ("meaning", "left"))
    for name, count in sorted(finished.statuses.items(), key=lambda each: -each[1]):
        table.add_row(f"{count:,}", name, Status(name).sentence)
    console.print(table)
    console.print(
        f"\n{finished.people:,} people are in {finished.out}; {finished.manifest.name} describes "
        "the run."
    )
    if finished.seconds:
        rate = finished.people / max(finished.seconds["all"], 1e-9)
        console.print(f"{finished.seconds['all']:,.1f} seconds, {rate:,.0f} people a second.")
