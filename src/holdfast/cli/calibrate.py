"""`holdfast calibrate`: which models advice must withstand to survive retraining."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.asked import FavorableClass
from holdfast.cli.ending import Ending, say
from holdfast.cli.outputs import check_out, print_json, saying_warnings, table_of

if TYPE_CHECKING:
    from holdfast.calibration.sizing import Sizing


def calibrate_command(
    model: Annotated[Path, typer.Argument(help="Today's model: a .skops, .json or .onnx file.")],
    table: Annotated[
        Path,
        typer.Argument(
            help="The data it was trained on: .csv, .parquet, .arrow or .feather, or a directory "
            "of Parquet parts."
        ),
    ],
    *,
    target: Annotated[str, typer.Option(help="The outcome column.")],
    actions: Annotated[
        Path | None,
        typer.Option(
            help="What people can change; by default every encoded column, at a cost of 1 a unit."
        ),
    ] = None,
    guarantee: Annotated[
        float | None,
        typer.Option(
            help="The probability of approval that each model must give (default: the model's own "
            "threshold, usually 0.5)."
        ),
    ] = None,
    survival: Annotated[
        float, typer.Option(help="The share of advice that a retrained model should still approve.")
    ] = 0.95,
    confidence: Annotated[
        float, typer.Option(help="The confidence in that, given the randomness of today's sample.")
    ] = 0.95,
    families: Annotated[
        str | None,
        typer.Option(
            help="Which sets to compare, such as fisher,l1: margin, l1, l2, linf, l1 scaled, "
            "l2 scaled, linf scaled, fisher, sandwich, bootstrap, rashomon (default: seven of "
            "these)."
        ),
    ] = None,
    models: Annotated[int, typer.Option(help="How many models to retrain, at least 20.")] = 100,
    past_models: Annotated[
        list[Path] | None,
        typer.Option(
            help="An earlier version of the model, oldest first; give two or more. Nothing is "
            "then retrained."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="A column of times; the models of ten periods are then compared."),
    ] = None,
    favorable_class: FavorableClass = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write: a .yaml or .json file, for recommend --robust-to."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one JSON document.")
    ] = False,
) -> Ending:
    """Find the set of models that advice must withstand to survive retraining.

    holdfast calibrate model.skops loans.csv --target default --actions actions.yaml
    --survival 0.9 --out robust-to.yaml

    This is a rehearsal: the model is retrained on resamples of the table, people are advised, and
    the other models decide. Each kind of set gets the smallest radius that is enough; the cheapest
    of these is written to the file. Exit code 1: none is enough, and nothing was written.
    """
    from holdfast.files.calibrating import Rehearsed, calibrate_files
    from holdfast.files.model_sets import MODEL_SET, save_model_set
    from holdfast.machinery.plain_files import refuse_input_as_output

    if out is not None:
        check_out(out, MODEL_SET.suffixes)
        refuse_input_as_output(out, model, table, actions, *(past_models or ()))
    asked = Rehearsed(
        model=model,
        table=table,
        target=target,
        actions=actions,
        past_models=tuple(past_models or ()),
        time=time,
        favorable_class=favorable_class,
    )
    with saying_warnings():
        sizing = calibrate_files(
            asked,
            guarantee=guarantee,
            survival=survival,
            confidence=confidence,
            families=None if families is None else [name.strip() for name in families.split(",")],
            n_models=models,
        )
    enough = any(each.reaches for each in sizing.families[1:])
    if enough and out is not None:
        save_model_set(sizing.best, out)
    if as_json:
        print_json(_plain(sizing, out if enough else None))
    else:
        _show(sizing)
        if enough and out is not None:
            print(f"\nThe set is in {out}. To use it: holdfast recommend --robust-to {out}")
    if not enough:
        say("no set is enough; nothing was written")
    return Ending.DONE if enough else Ending.ATTENTION


def _plain(sizing: Sizing, out: Path | None) -> dict[str, object]:
    from holdfast.files.model_sets import model_set_to_plain

    enough = any(each.reaches for each in sizing.families[1:])
    return {
        "out": None if out is None else str(out),
        "survival": sizing.survival,
        "confidence": sizing.confidence,
        "people": sizing.n_people,
        "families": sizing.to_frame().reset_index().to_dict(orient="records"),
        "left_out": sizing.left_out,
        "chosen": sizing.chosen.name if enough else None,
        "set": model_set_to_plain(sizing.best) if enough else None,
    }


def _show(sizing: Sizing) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    words, _, _ = str(sizing).partition("\n\n")
    console.print(words)
    console.print()
    table = table_of(
        ("models", "left"),
        ("radius", "right"),
        ("helped", "right"),
        ("cost", "right"),
        ("survival", "right"),
        ("at least", "right"),
        ("enough", "left"),
    )
    for name, row in sizing.to_frame().iterrows():
        table.add_row(
            str(name),
            f"{row['radius']:.3g}",
            f"{row['helped']:.0%}",
            f"{row['cost']:.3g}",
            f"{row['survival']:.1%}",
            f"{row['survival_low']:.1%}",
            "yes" if row["reaches"] else "no",
        )
    console.print(table)
