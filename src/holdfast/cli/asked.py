"""What several commands ask of a model, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from holdfast.files.jobs import Job

ActionsPath = Annotated[
    str | None,
    typer.Option(help="What people can change: a file drafted by `holdfast actions`."),
]
RobustTo = Annotated[
    str | None,
    typer.Option(
        help='The future models to allow for: "p=1,radius=0.1", or a file written by `holdfast '
        "calibrate`."
    ),
]
Guarantee = Annotated[
    float | None,
    typer.Option(help="The probability of approval that each of these models must give."),
]
Scale = Annotated[
    str | None, typer.Option(help='The scale of a scorecard: "600,odds=50,double=20".')
]
GuaranteePoints = Annotated[
    float | None, typer.Option(help="Instead of a guarantee: the points that each model must give.")
]
FavorableClass = Annotated[
    str | None,
    typer.Option(help="The class that people want, if the model file does not say."),
]
SettingsPath = Annotated[
    Path | None,
    typer.Option(
        help="A YAML file of these settings, or the manifest of an earlier run; options given here "
        "override it."
    ),
]


def asked_of(settings: Path | None, points: str | None, **given: Any) -> tuple[Job, dict[str, str]]:
    """Put together what is asked, and the checksums that files must have."""
    from holdfast.files.jobs import asked_job

    said = {name: value for name, value in given.items() if value is not None}
    if points is not None:
        said["points"] = read_scale(points)
    return asked_job(settings, said)


def read_scale(text: str) -> dict[str, float]:
    """Read a scale of points.

    Examples
    --------
    >>> read_scale("600,odds=50,double=20")
    {'points': 600.0, 'odds': 50.0, 'double': 20.0}
    """
    first, *others = [part.strip() for part in text.split(",")]
    try:
        said = dict([("points", float(first)), *((k, float(v)) for k, v in map(_pair, others))])
    except ValueError:
        said = {}
    if set(said) != {"points", "odds", "double"}:
        raise ValueError(f"--points {text!r} is not a scale such as 600,odds=50,double=20")
    return said


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value
