"""`holdfast fit`: a sensible model for those who have data but none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.ending import Ending, say
from holdfast.cli.outputs import check_out, print_json, table_of

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.fitting import Fitted

_MOST_LEVELS = 4  # shown of a category: those that weigh most


def fit_command(
    table: Annotated[
        Path,
        typer.Argument(
            help="People with their outcomes: .csv, .parquet, .arrow or .feather, or a directory "
            "of Parquet parts."
        ),
    ],
    target: Annotated[
        str, typer.Option(help="The outcome column, which has two different values.")
    ],
    favorable_class: Annotated[
        str, typer.Option(help="The outcome that people want, such as 0 for no default.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write: a .skops file.")],
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column not to use, such as an id; may be repeated."),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers to treat as a category; may be repeated."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON document.")
    ] = False,
) -> Ending:
    """Fit a model to a table and show how good it is.

    holdfast fit loans.csv --target default --favorable-class 0 --drop id --out model.skops

    Numbers are scaled, and missing ones are replaced by the median, with a column that flags them;
    categories are one-hot encoded; the penalty of the logistic regression is chosen by
    cross-validation. Accuracy and calibration are measured on people whom the model has not seen.
    The same table always gives the same coefficients.
    """
    from holdfast.files.models import load_model, save_model
    from holdfast.files.tables import read_frame
    from holdfast.fitting import fit_default, sounds_protected
    from holdfast.machinery.plain_files import refuse_input_as_output

    check_out(out, (".skops",))
    refuse_input_as_output(out, table)
    fitted = fit_default(
        read_frame(table), target, favorable_class, drop=drop or [], categories=category or []
    )
    if fitted.n_unlabelled:
        say(f"{fitted.n_unlabelled:,} rows have no {target!r} and are left out")
    for name, reason in fitted.columns.left_out.items():
        say(f"the column {name!r} is left out: {reason}")
    suspects = [name for name in fitted.columns.used if sounds_protected(name)]
    if suspects:
        drops = " ".join(f"--drop {name}" for name in suspects)
        say(
            f"these columns may be protected by law, judging by name: {', '.join(suspects)}. If "
            f"they are, leave them out of the model: {drops}"
        )
    save_model(fitted.model, out, fitted.favorable_class)
    written = load_model(out)
    if as_json:
        print_json({"out": str(out), "sha256": written.sha256, **fitted.to_plain()})
    else:
        _show(fitted, out)
    return Ending.DONE


def _show(fitted: Fitted, out: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    found = fitted.measures
    console.print(
        f"{out} has a logistic regression fitted to {fitted.n_rows:,} people and "
        f"{len(fitted.columns.used)} features (C = {fitted.C:.3g}, chosen by cross-validation)."
    )
    console.print(f"People want {fitted.target} = {fitted.favorable_class!r}.\n")
    measures = table_of(
        ("on people it has not seen", "left"), ("", "right"), ("without the model", "right")
    )
    measures.add_row("correct decisions", f"{found.accuracy:.1%}", f"{found.base_accuracy:.1%}")
    measures.add_row("area under the ROC curve", f"{found.auc:.3f}", "0.500")
    measures.add_row(
        "Brier score (lower is better)", f"{found.brier:.3f}", f"{found.base_brier:.3f}"
    )
    console.print(measures)
    console.print()
    bins = table_of(("calibration: people", "right"), ("predicted", "right"), ("observed", "right"))
    for row in found.bins.itertuples():
        bins.add_row(f"{row.people:,}", f"{row.predicted:.1%}", f"{row.observed:.1%}")
    console.print(bins)
    console.print()
    _show_features(console, fitted)


def _show_features(console: Console, fitted: Fitted) -> None:
    features = table_of(
        ("feature", "left"), ("weight", "right"), ("log-odds of what people want", "left")
    )
    for name, weight in fitted.weights.items():
        terms = fitted.coefficients[fitted.coefficients["feature"] == name]
        if len(terms) > _MOST_LEVELS:
            order = terms["coefficient"].sort_values(ascending=False).index
            half = _MOST_LEVELS // 2
            terms = terms.loc[[*order[:half], *order[-half:]]]
        shown = [f"{row.coefficient:+.2f} {row.term}" for row in terms.itertuples()]
        features.add_row(str(name), f"{weight:.2f}", "; ".join(shown))
    console.print(features)
    console.print(
        "\nThe weight says how far a feature moves people's scores (the standard deviation of "
        f"what it adds). Of features with more than {_MOST_LEVELS} levels, the best two and the "
        "worst two are shown.",
        style="dim",
    )
