"""How the demonstration looks in a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.demo.people import GUARANTEE, MOST_YEARS_OLDER, Advice, Demo

LABELS = {
    "duration": "duration",
    "credit_amount": "amount",
    "savings_status": "savings",
    "other_parties": "other parties",
}


def show(demo: Demo, console: Console, people: int) -> None:
    """Print the whole demonstration."""
    console.print(_heading(demo))
    console.print(_people(demo, people))
    console.print(_summary(demo))
    console.print(_nobody_can_help(demo))


def _heading(demo: Demo) -> Text:
    text = Text()
    text.append(f"{demo.data.name}", style="bold")
    text.append(
        f": a logistic regression trained on {demo.n_train} loans (right on "
        f"{demo.accuracy:.0%} of the other {demo.n_test}) turns down {len(demo.denied)} of these "
        f"{demo.n_test} applicants.\n"
    )
    text.append("They can change the duration and the amount, build up savings, find a guarantor, ")
    text.append(f"or wait up to {MOST_YEARS_OLDER:g} years. The cheapest change that reaches a ")
    text.append(f"probability of {GUARANTEE:.0%}:\n")
    text.append("  plain  ", style="bold yellow")
    text.append("under today's model;\n")
    text.append("  robust ", style="bold green")
    text.append(f"under {demo.robust.robust_to.crowd}.\n")
    return text


def _people(demo: Demo, people: int) -> Table:
    people = min(people, len(demo.denied))
    title = "The first applicants turned down"
    table = Table(box=box.SIMPLE_HEAD, title=title, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("applicant", justify="right", no_wrap=True)
    table.add_column("today", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("what to change")
    for name in ("cost", "gap", "holds"):
        table.add_column(name, justify="right", no_wrap=True)
    for i in range(people):
        who = (str(demo.denied.index[i]), f"{demo.probability[i]:.0%}")
        table.add_row(*who, "plain", *_cells(demo, demo.plain, i), style="yellow")
        table.add_row(
            "", "", "robust", *_cells(demo, demo.robust, i), style="green", end_section=True
        )
    return table


def _cells(demo: Demo, advice: Advice, i: int) -> tuple[str, str, str, str]:
    if not advice.found[i]:
        return str(advice.status[i]), "-", "-", "-"
    changes = "\n".join(_short(words) for words in advice.result.changes(demo.denied.index[i]))
    gap = f"{advice.gap[i]:.0e}" if advice.gap[i] > 0 else "0"
    return changes, f"{advice.cost[i]:.2f}", gap, f"{advice.held[i]:.0%}"


def _short(words: str) -> str:
    name, _, rest = words.partition(" ")
    return f"{LABELS.get(name, name)} {rest}"


def _summary(demo: Demo) -> RenderableType:
    both = demo.plain.found & demo.robust.found
    table = Table(box=box.SIMPLE_HEAD, title=f"All {len(demo.denied)} applicants turned down")
    for name in ("", "can be helped", "mean cost", "largest gap", "still holds"):
        table.add_column(name, justify="right")
    for name, advice, style in (
        ("plain", demo.plain, "yellow"),
        ("robust", demo.robust, "green"),
    ):
        cells = ["-", "-", "-"]
        counted = both if both.any() else advice.found
        if counted.any():
            cells = [
                f"{advice.cost[counted].mean():.2f}",
                f"{advice.gap[advice.found].max():.0e}",
                f"{advice.held[counted].mean():.1%}",
            ]
        table.add_row(name, f"{advice.found.sum()} of {len(both)}", *cells, style=style)
    note = (
        "cost: standard deviations of the data, plus 0.1 for each number that changes; "
        "1 for a new category. gap: cost minus a proven lower bound; 0, up to rounding, means "
        f"that nothing is cheaper. holds: share of {demo.n_models} models, retrained on resampled "
        f"data, that approve. Mean cost and 'still holds' are averages over the {both.sum()} "
        "applicants whom both kinds can help.\n"
    )
    return Group(table, Text(note, style="dim"))


def _nobody_can_help(demo: Demo) -> Text:
    lost = [i for i in range(len(demo.denied)) if not demo.robust.found[i]]
    if not lost:
        return Text("Everybody can be helped at this radius.")
    label = demo.denied.index[lost[0]]
    text = Text(f"Applicant {label}", style="bold")
    text.append(
        f" has no robust recourse, and is told: {demo.robust.result.explain(label)}",
        style="not bold",
    )
    return text
