"""`holdfast actions`: the draft of an action set, and whether one fits a model and people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.asked import FavorableClass
from holdfast.cli.ending import Ending, say
from holdfast.cli.outputs import check_out, print_json, table_of

if TYPE_CHECKING:
    from holdfast.files.fitness import Fitness


def actions_command(
    table: Annotated[
        Path,
        typer.Argument(
            help="People, such as the training data: .csv, .parquet, .arrow or .feather, or a "
            "directory of Parquet parts."
        ),
    ],
    target: Annotated[str, typer.Option(help="The outcome column, which is not a feature.")],
    out: Annotated[Path, typer.Option(help="Where to write: a new .yaml file for you to edit.")],
    drop: Annotated[
        list[str] | None, typer.Option(help="A column that is not a feature; may be repeated.")
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers to treat as a category; may be repeated."),
    ] = None,
    immutable: Annotated[
        list[str] | None,
        typer.Option(help="A column that may not change; may be repeated."),
    ] = None,
    protected: Annotated[
        list[str] | None,
        typer.Option(
            help="A column that may not change and that no explanation names; may be repeated."
        ),
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="The unit of a column, such as duration=months; may be repeated."),
    ] = None,
) -> Ending:
    """Draft what people can change, as a file with a comment on every setting, ready to edit.

    holdfast actions loans.csv --target default --drop id --protected age
    --unit duration=months --out actions.yaml

    Whatever you do not name may change, within the range seen in the table. It is up to you to say
    that nobody gets younger, for example. When you have edited the file, check it with: holdfast
    actions check actions.yaml model.skops
    """
    from holdfast.actions.annotated import annotated
    from holdfast.files.tables import read_frame
    from holdfast.fitting import draft_actions, sounds_protected
    from holdfast.machinery.plain_files import refuse_input_as_output, write_text

    check_out(out, (".yaml", ".yml"))
    refuse_input_as_output(out, table)
    if out.exists():
        raise ValueError(
            f"--out {out} already exists and may have been edited: delete it, or choose another "
            "name"
        )
    units = dict(_unit(text) for text in unit or [])
    actions = draft_actions(
        read_frame(table),
        target,
        drop=drop or [],
        immutable=immutable or [],
        protected=protected or [],
        categories=category or [],
        units=units,
    )
    write_text(out, annotated(actions))
    free = [name for name in actions if not actions[name].stays]
    suspects = [name for name in actions if sounds_protected(name) and not actions[name].protected]
    if suspects:
        named = " ".join(f"--protected {name}" for name in suspects)
        say(
            f"these columns may be protected by law, judging by name: {', '.join(suspects)}. If "
            f"they are, pass {named}, and reconsider using them in the model"
        )
    print(f"{out} has {len(actions)} features, {len(free)} of which can change. Now edit it.")
    return Ending.DONE


def actions_check_command(
    actions: Annotated[Path, typer.Argument(help="The action set: a .yaml or .json file.")],
    model: Annotated[Path, typer.Argument(help="The model: a .skops, .json or .onnx file.")],
    people: Annotated[
        Path | None,
        typer.Argument(help="Optional: a table of people, to count who is outside the action set."),
    ] = None,
    favorable_class: FavorableClass = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one JSON document.")
    ] = False,
) -> Ending:
    """Check that an action set fits a model and people; all problems are listed at once.

    holdfast actions check actions.yaml model.skops denied.csv

    Exit code 0: it fits. 1: it does not. With a table of people, those outside its bounds and
    those who cannot be advised are counted, with the reason.
    """
    from holdfast.files.fitness import check_fitness

    found = check_fitness(actions, model, people, favorable_class)
    if as_json:
        print_json(found.to_plain())
    else:
        _show(found)
    return Ending.ATTENTION if found.complaints else Ending.DONE


def _unit(text: str) -> tuple[str, str]:
    name, equals, unit = (part.strip() for part in text.rpartition("="))
    if not (name and equals and unit):
        raise ValueError(f"--unit {text!r} is not a column with its unit, such as duration=months")
    return name, unit


def _show(found: Fitness) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for complaint in found.complaints:
        console.print(f"- {complaint}")
    several = "" if len(found.complaints) == 1 else "s"
    if found.complaints:
        console.print(f"The action set does not fit: {len(found.complaints)} problem{several}.")
    else:
        console.print("The action set fits the model.")
    for note in found.notes:
        console.print(f"Note: {note}.")
    if found.n_people is None:
        return
    usable = found.n_people - found.n_unusable
    console.print(f"\n{found.n_people:,} people, {usable:,} of whom can be advised.")
    if found.counts:
        table = table_of(
            ("feature", "left"), ("what", "left"), ("people", "right"), ("example", "left")
        )
        for key, count in found.counts.items():
            table.add_row(*key, f"{count:,}", found.examples.get(key, ""))
        console.print(table)
