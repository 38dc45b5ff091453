"""How every figure looks: a method has one colour and one marker, whatever is shown."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COST = "cost (sum of changes in standard deviations)"
VALIDITY = "validity (probability of approval)"
INK, FAINT = "#222222", "#dddddd"

# Sizes are such that a figure still reads at half its natural size.
_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "font.size": 13,
    "axes.titlesize": 13.5,
    "axes.labelsize": 13,
    "xtick.labelsize": 12,
    "ytick.labelsize": 12,
    "legend.fontsize": 12.5,
    "axes.grid": True,
    "grid.color": FAINT,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 2.2,
    "lines.markersize": 7,
    "svg.hashsalt": "holdfast",  # the same names of elements in every run
    "svg.fonttype": "path",
    "hatch.linewidth": 1.2,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.labelsize": 13,
}


class Look(NamedTuple):
    """Colour (of Okabe and Ito, told apart by the colour-blind) and marker."""

    colour: str
    marker: str


_LOOKS = {
    "exact": Look("#0072B2", "o"),
    "algorithm1": Look("#56B4E9", "P"),
    "algorithm2": Look("#009E73", "^"),
    "roar 1": Look("#D55E00", "s"),
    "roar ∞": Look("#E69F00", "D"),
    "rbr": Look("#CC79A7", "X"),
    "refine": Look("#000000", "p"),
    "wachter": Look("#777777", "v"),
}


def look(method: str, p: float) -> Look:
    """Return how a method looks; ROAR is two methods, one for each ball.

    Examples
    --------
    >>> look("exact", 1.0) == look("exact", 2.0), look("roar", 1.0) == look("roar", float("inf"))
    (True, False)
    """
    name = f"roar {'∞' if math.isinf(p) else f'{p:g}'}" if method == "roar" else method
    if name not in _LOOKS:
        raise ValueError(f"{name} has no colour yet: give it one in holdfast/paper/report/style.py")
    return _LOOKS[name]


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with this style, and leave matplotlib's own settings as they were."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure (inches) that no window and no global state knows of."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def add_legend(figure: Figure, entries: dict[str, Artist], columns: int) -> None:
    """Put one legend for all panels above them, where no axis label is."""
    figure.legend(list(entries.values()), list(entries), loc="outside upper center",
                  ncols=columns, frameon=False, handlelength=3)  # fmt: skip


def entries_of(axes: Axes) -> dict[str, Artist]:
    """Return what a panel would write into a legend."""
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def lay_out(figure: Figure) -> None:
    """Find room for everything, once: each file would search again."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def to_svg(figure: Figure) -> bytes:
    """Write a figure as SVG, the same bytes each time."""
    return _save(figure, "svg", {"Date": None, "Creator": None})


def to_png(figure: Figure) -> bytes:
    """Write a figure as PNG."""
    return _save(figure, "png", {"Software": None})


def _save(figure: Figure, kind: str, metadata: dict[str, str | None]) -> bytes:
    memory = io.BytesIO()
    figure.savefig(memory, format=kind, dpi=150, metadata=metadata)
    return memory.getvalue()


def probability_axes(panels: Iterable[Axes]) -> None:
    """Show probabilities up to 1 in panels that share their axis, from the least that is drawn."""
    from matplotlib.ticker import MultipleLocator

    panels = list(panels)
    drawn = [np.asarray(line.get_ydata(), float) for axes in panels for line in axes.lines]
    least = min((values.min() for values in drawn if values.size), default=0.0)
    bottom = math.floor(10 * least) / 10
    for axes in panels:
        axes.set_ylim(bottom - 0.03 * (1 - bottom), 1.0 + 0.03 * (1 - bottom))
        axes.yaxis.set_major_locator(MultipleLocator(0.1 if bottom >= 0.5 else 0.2))


def not_run(axes: Axes, said: str = "not run") -> None:
    """Say in a panel that it has nothing to show."""
    axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", va="center", color=INK)
    axes.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
