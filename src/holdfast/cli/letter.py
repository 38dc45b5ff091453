"""`holdfast letter`: a page for one applicant."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.ending import Ending, say
from holdfast.cli.outputs import RecoursePath
from holdfast.cli.report import check_page


def letter_command(
    recourse: RecoursePath,
    *,
    out: Annotated[Path, typer.Option(help="Where to write: an .html file, which prints on A4.")],
    row: Annotated[
        int | None, typer.Option(min=0, help="Whose letter: the row in the table, from 0.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="Or by a key column: customer_id=123; may be repeated."),
    ] = None,
    language: Annotated[str, typer.Option(help="The language: en or de.")] = "en",
    words: Annotated[
        Path | None,
        typer.Option(help="A YAML file with labels for features, and other wordings."),
    ] = None,
    template: Annotated[
        Path | None, typer.Option(help="A page of your own, a Jinja template that reads `letter`.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="A table of applicants; the approved ones are compared with this person "
            "(default: those in the recourse file)."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="The date until which the advice applies: 2027-03-31.")
    ] = None,
    lender: Annotated[str, typer.Option(help="Who writes the letter.")] = "",
) -> Ending:
    """Write to one applicant: what was decided, why, and what would change it, in plain words.

    holdfast letter recourse.parquet --row 17 --out letter.html --lender "Hanse Bank"

    The reasons are the features that cost the most score compared with a typical approved
    applicant, at most four. A protected feature is never named; if one is among the reasons you
    are warned, with exit code 1, because it should not be in the model. To give the columns
    better names, pass --words with a file such as

    labels: {duration: Duration of the loan}
    """
    from holdfast.files.recourse import RecourseFile
    from holdfast.machinery.plain_files import refuse_input_as_output, write_text
    from holdfast.report import LetterSettings, find_person, make_letter, render_letter
    from holdfast.report.people import inputs_of

    check_page(out)
    ends = None if until is None else _date(until)
    settings = LetterSettings(language, words, lender, ends)
    file = RecourseFile.open(recourse)
    refuse_input_as_output(out, *inputs_of(file), words, template, reference)
    person = find_person(file, row, dict(_pair(text) for text in key or ()))
    letter = make_letter(file, person, settings, reference)
    write_text(out, render_letter(letter, template))
    print(f"The letter for row {person['row'][0].as_py()} is in {out}.")
    if not letter.protected:
        return Ending.DONE
    say(
        f"ATTENTION: {', '.join(letter.protected)}: protected, but among what counted most "
        "against this person. The letter does not mention it. Nobody may be refused because of "
        "it: remove it from the model."
    )
    return Ending.ATTENTION


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"--until {text!r} is not a date such as 2027-03-31") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"--key {text!r} is not a column with its value, such as customer_id=123")
    return name, value
