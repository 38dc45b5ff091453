"""`holdfast report`: what a run has come to, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Ending, say
from holdfast.cli.outputs import RecoursePath, print_json

if TYPE_CHECKING:
    from holdfast.files.models import ModelFile
    from holdfast.files.recourse import RecourseFile
    from holdfast.report import Summary

_PAGES = (".html", ".htm")


def report_command(
    recourse: RecoursePath,
    *,
    out: Annotated[
        Path, typer.Option(help="Where to write: an .html file that needs nothing else.")
    ],
    group: Annotated[
        str | None,
        typer.Option(help="Compare people by this: a key column, or one that the model reads."),
    ] = None,
    models: Annotated[
        list[Path] | None,
        typer.Option(help="A later model, to check how much of the advice lasts; may be repeated."),
    ] = None,
    favorable_class: Annotated[
        str | None,
        typer.Option(
            help="The class of these models that people want (default: as their files say, or "
            "else as in the run)."
        ),
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(help="A table written by `holdfast audit`, to be included.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> Ending:
    """Report who can be helped, and at what cost, as one page to open in a browser.

    holdfast report recourse.parquet --out report.html --group sex --models retrained.skops

    The page shows how many were refused and can be helped, what it costs them, which features they
    are asked to change, what robustness costs, whether the advice lasts under later models, groups
    compared, the hardest cases, and the settings with checksums.
    """
    from holdfast.files.recourse import RecourseFile
    from holdfast.machinery.plain_files import refuse_input_as_output, write_text
    from holdfast.report import summarise, write_report_page
    from holdfast.report.people import inputs_of

    check_page(out)
    file = RecourseFile.open(recourse)
    refuse_input_as_output(out, *inputs_of(file), *(models or ()), audit)
    later = [load_later(file, path, favorable_class) for path in models or ()]
    summary = summarise(file, group, later, audit)
    write_text(out, write_report_page(summary))
    if as_json:
        print_json(summary.to_plain())
    else:
        _show(summary, out)
    return Ending.DONE


def check_page(out: Path) -> None:
    """Refuse to write a page to a file that is called something else."""
    if out.suffix.lower() not in _PAGES:
        raise ValueError(f"--out {out} does not end in .html")


def load_later(file: RecourseFile, path: Path, favorable_class: str | None) -> ModelFile:
    """Read a later model; say so where the class that people want is taken from the run."""
    found, is_assumed = file.later_model(path, favorable_class)
    if is_assumed:
        say(
            f"{path} does not say which class people want: assuming {found.favorable_class!r}, as "
            "in the run; use --favorable-class to change that"
        )
    return found


def _show(summary: Summary, out: Path) -> None:
    from holdfast.report.figures import count_text, share_text

    counts = summary.counts
    print(f"{count_text(counts.people, 'person', 'people')}, {counts.refused:,} refused.")
    if counts.not_known:
        print(
            f"{counts.helped:,} of these can be helped, {counts.not_helped:,} cannot; for "
            f"{counts.not_known:,} it is not known, and the report says why."
        )
    elif counts.refused:
        share = share_text(summary.share_helped.estimate)
        print(f"{counts.helped:,} of these can be helped ({share}).")
    print(f"The report is in {out}.")
