"""What was found: a row for each family of sets, the choice among them, and its picture."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from holdfast.machinery.extras import need
from holdfast.machinery.numbers import Floats
from holdfast.problem.model_set import ModelSet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Of those helped at radius 0: where fewer still are, the others bear the cost of a set.
_HALF = 0.5
# A family may help a little fewer people than another, and still be the better choice.
_NEARLY_AS_MANY = 0.95
ALONE = "today's model alone"

_WIDTH = 120  # of what is written out


@dataclass(frozen=True, eq=False)
class TriedRadius:
    """One radius of a family: what its recourses cost today, and how many survive."""

    radius: float
    helped: float
    cost: float
    survival: float


@dataclass(frozen=True, eq=False)
class Sized:
    """A family at the radius that was chosen for it, or, if none will do, at the best one tried.

    Attributes
    ----------
    name : str
    robust_to : ModelSet
    radius : float
    costs : (n,) array
        What each person denied today pays; infinite where nothing can be done.
    survival : float
        Mean survival over the worlds kept back.
    survival_low : float
        What the survival is at least, at the confidence, by the worlds kept back.
    reaches : bool
        Whether all worlds, those that chose and those kept back, agree that it is enough.
    points : list of TriedRadius
        Other radii as well, for the picture.
    """

    name: str
    robust_to: ModelSet
    radius: float
    costs: Floats
    survival: float
    survival_low: float
    reaches: bool
    points: list[TriedRadius]

    @property
    def helped(self) -> float:
        """Share of the people denied today who have a recourse."""
        return float(np.isfinite(self.costs).mean())

    @property
    def cost(self) -> float:
        """Mean cost of those who have one."""
        known = self.costs[np.isfinite(self.costs)]
        return float(known.mean()) if known.size else math.nan


@dataclass(frozen=True, eq=False)
class Sizing:
    """How large each family of sets must be, and which of them is enough at the lowest cost.

    Made by `holdfast.calibrate`.

    Attributes
    ----------
    survival, confidence : float
        What was asked for; the confidence is lower than asked for where there are too few past
        models or periods to support it.
    families : list of Sized
        The first is today's model alone, for comparison.
    n_people, n_rehearsed : int
        How many people denied today were advised, for costs and who is helped; and how many of
        them took part in the worlds, for survival.
    n_worlds : (int, int)
        How many worlds chose, and how many checked.
    left_out : dict
        Families that are usually compared, and why they could not be here.
    """

    survival: float
    confidence: float
    families: list[Sized]
    n_people: int
    n_rehearsed: int
    n_worlds: tuple[int, int]
    left_out: dict[str, str] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each family.

        Columns
        -------
        radius : what was chosen
        helped : share of the people denied today who have a recourse at that radius
        cost : mean cost of these
        survival : mean share of recourses that survive, on models kept back
        survival_low : what that share is at least, at the confidence
        reaches : whether that is enough
        few_helped : whether fewer than half of those helped at radius 0 still are
        """
        import pandas as pd

        rows = {
            each.name: {
                "radius": each.radius,
                "helped": each.helped,
                "cost": each.cost,
                "survival": each.survival,
                "survival_low": each.survival_low,
                "reaches": each.reaches,
                "few_helped": self._few(each),
            }
            for each in self.families
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("family")

    @property
    def chosen(self) -> Sized:
        """The family of `best`, with its numbers.

        Of all that reach the wanted survival and help nearly as many people as any of them: the
        cheapest, compared on the people whom all of these can help.
        """
        enough = [each for each in self.families[1:] if each.reaches]
        if not enough:
            best = max(
                self.families[1:], key=lambda each: (np.nan_to_num(each.survival_low), -each.radius)
            )
            raise ValueError(
                f"no family reaches a survival of {self.survival:.0%}. The best is {best.name} "
                f"with a radius of {best.radius:.3g}: at least {best.survival_low:.1%}, with "
                f"{best.helped:.0%} of the people helped. Ask for less survival, or let people "
                "change more"
            )
        most = max(each.helped for each in enough)
        enough = [each for each in enough if each.helped >= _NEARLY_AS_MANY * most]
        everywhere = np.all([np.isfinite(each.costs) for each in enough], axis=0)
        return min(enough, key=lambda each: (self._few(each), each.costs[everywhere].sum()))

    @property
    def best(self) -> ModelSet:
        """The set to pass on as `robust_to`; an error where no family reaches what was wanted."""
        return self.chosen.robust_to

    def __str__(self) -> str:
        """Say in words what was chosen and why."""
        sure = f"{self.confidence:.0%} confidence"
        lines = []
        alone = self.families[0]
        try:
            found = self.chosen
        except ValueError as error:
            lines.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
        else:
            lines.append(
                f"Use {found.name} with a radius of {found.radius:.3g}: {_named(found.robust_to)}."
            )
            lines.append(
                f"Of those who follow the advice, a retrained model approves "
                f"{found.survival:.1%} on average and, with {sure}, at least "
                f"{found.survival_low:.1%} ({self.survival:.0%} was asked for). If the advice is "
                f"for today's model alone, it approves {alone.survival:.1%}. Rehearsed with "
                f"{self.n_rehearsed} people in {sum(self.n_worlds)} worlds."
            )
            lines.append(
                f"{found.helped:.0%} of the {self.n_people} people denied can be helped "
                f"({alone.helped:.0%} for today's model alone), at a mean cost of "
                f"{found.cost:.3g}{_compared(found.cost, alone.cost)}."
            )
            if self._few(found):
                lines.append(
                    "Careful: fewer than half of the people who can be helped today could still "
                    "be helped. Ask for less survival, or let people change more."
                )
            others = [e.name for e in self.families[1:] if e.reaches and e is not found]
            short = [e.name for e in self.families[1:] if not e.reaches]
            if others:
                also = ", ".join(others)
                lines.append(f"These reach it too, at a higher cost or for fewer people: {also}.")
            if short:
                lines.append(f"These do not reach it at any radius tried: {', '.join(short)}.")
        lines += [f"Not compared: {name} ({why})." for name, why in self.left_out.items()]
        return "\n".join([*lines, "", self.to_frame().round(3).to_string()])

    def __repr__(self) -> str:
        reach = sum(each.reaches for each in self.families[1:])
        try:
            found = f"best {self.chosen.name}, radius {self.chosen.radius:.3g}"
        except ValueError:
            found = "none of them is enough"
        return (
            f"<Sizing for {self.survival:.0%} survival: {reach} of {len(self.families) - 1} "
            f"families reach it; {found}>"
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw survival against cost, a curve for each family, and mark the choice."""
        need("plots", "Sizing.plot", "matplotlib")
        from matplotlib import pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        for color, each in zip(_COLORS * 3, self.families[1:], strict=False):
            points = sorted(each.points, key=lambda point: point.radius)
            cost = [point.cost for point in points]
            axes.plot(cost, [point.survival for point in points], color=color, label=each.name)
            if each.reaches:
                axes.plot(each.cost, each.survival, "o", color=color, markersize=4)
        axes.axhline(self.survival, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        if any(each.reaches for each in self.families[1:]):
            found = self.chosen
            place = (found.cost, found.survival)
            axes.plot(*place, "o", color="black", markersize=10, fillstyle="none")
            axes.annotate(
                f"{found.name}, radius {found.radius:.3g}",
                place,
                xytext=(0, -22),
                textcoords="offset points",
                ha="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
            )
        axes.set_xlabel("mean cost for those who can be helped")
        axes.set_ylabel("share approved after retraining")
        axes.legend(frameon=False, loc="lower right")
        return axes

    def _few(self, each: Sized) -> bool:
        return each.helped < _HALF * self.families[0].helped


# Okabe and Ito's colours, which colour-blind people can tell apart.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def _compared(cost: float, alone: float) -> str:
    """Compare a mean cost with that of advice for today's model alone, which may be 0.

    Examples
    --------
    >>> _compared(1.48, 1.0), _compared(0.9, 1.0), _compared(1.0, 1.0), _compared(1.0, 0.0)
    (" (48% more than for today's model alone)", " (10% less than for today's model alone)", '', '')
    """
    more = round(100.0 * (cost / alone - 1.0)) if alone > 0.0 else 0
    if not more:
        return ""
    return f" ({abs(more)}% {'more' if more > 0 else 'less'} than for today's model alone)"


def _named(models: ModelSet) -> str:
    """Return how a set is written, or, where that would be long, what it is."""
    written = repr(models)
    return written if len(written) <= _WIDTH else models.label
