"""The cost of every guarantee: with whole numbers and categories, a staircase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.actions import Posed
from holdfast.discrete import DiscreteProblem, largest_reachable_score
from holdfast.machinery.extras import need
from holdfast.machinery.numbers import Floats, check_count
from holdfast.result.result import RecourseResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SolveAt = Callable[[DiscreteProblem, float], RecourseResult]

# Where there is no end, the curve is drawn up to this probability.
_HIGHEST = 0.99
# Shares of the whole rise: a step below the first cannot be seen, and is none below the second; the
# third is what is asked for above a corner (the very next number may have the same score).
_VISIBLE, _RISE, _ABOVE = 1e-3, 1e-9, 1e-11
_STEPS = 8  # for each point that is asked for, so many are found exactly
_SMALL_STEPS = 3  # that cannot be seen are found exactly, one after another
_BEGINNING = 1e-6  # a cost that is seen with nothing more to show for it
_SAME = 1e-12  # costs that differ by less, relative to them, are one
_ROUNDS = 12  # of questions, where many can be asked at once


@dataclass(frozen=True, eq=False)
class Staircase:
    """Least cost at which a person has each worst-case probability: the corners of the curve.

    Attributes
    ----------
    guarantee : array
        Probabilities that every model of the set must give; from the least that costs as much.
    cost : array
        Least cost of each.
    worst_case_validity : array
        What the recourse of that cost really has: with steps, often more than was asked for.
    is_step : array of bool
        Whether the curve jumps up to this corner from the one before, with nothing in between.
        Elsewhere it is continuous, or its steps are too small to be seen, and corners are samples.
    asked : float
        The guarantee that was asked for; with a cost weight, what it takes to be approved.
    """

    guarantee: Floats
    cost: Floats
    worst_case_validity: Floats
    is_step: NDArray[np.bool_]
    asked: float

    @classmethod
    def of(
        cls, posed: Posed, n_points: int, solve: SolveAt, asked: float | None = None
    ) -> Staircase:
        """Walk from what one person has now to the most that can be had.

        See `walk_corners`.
        """
        check_count("n_points", n_points, least=2)
        alone, base = posed.problem, posed.problem.base
        if base.loss.link is None:
            raise ValueError(f"the {base.loss.name} loss has no probabilities to draw")
        probability = base.loss.probability
        start = base.robust_to.worst_score(base.X, base.coef, base.intercept)[0]
        top = float(largest_reachable_score(alone)[0])
        top = np.inf if np.isnan(top) else top  # nobody knows: the walk finds out
        first, last = (float(probability(score)) for score in (start, max(top, start)))
        last = max(min(last, _HIGHEST), first)
        cutoff = float(probability(posed.encoding.model.cutoff)) if asked is None else asked

        def ask(wanted: float) -> Corner:
            answer = solve(alone, wanted)
            had = float(probability(answer.worst_case_score[0]))
            return Corner(wanted, float(answer.cost[0]), had, True)

        corners = walk_corners(Corner(first, 0.0, first, False), last, n_points, ask)
        wanted, cost, had, steps = (np.array(values) for values in zip(*corners, strict=True))
        return cls(wanted, cost, had, steps, cutoff)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each corner."""
        import pandas as pd

        names = ("guarantee", "cost", "worst_case_validity", "is_step")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def curve(self) -> tuple[Floats, Floats]:
        """Return the curve to be drawn, from cost to probability: straight lines and right angles.

        Examples
        --------
        >>> import numpy as np
        >>> cost, had = np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.4, 0.5])
        >>> Staircase(had, cost, had, np.array([False, True, False]), asked=0.5).curve()
        (array([0., 1., 1., 2.]), array([0.2, 0.2, 0.4, 0.5]))
        """
        cost, had = [self.cost[0]], [self.worst_case_validity[0]]
        for k in range(1, len(self.cost)):
            if self.is_step[k]:
                cost.append(self.cost[k])
                had.append(had[-1])
            cost.append(self.cost[k])
            had.append(self.worst_case_validity[k])
        return np.array(cost), np.array(had)

    def plot(self, axes: Axes | None = None) -> Any:
        """Draw cost against the probability that every model of the set gives."""
        need("plots", "Staircase.plot", "matplotlib")
        from matplotlib import pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        axes.plot(*self.curve(), color="#0072B2", linewidth=1.8)
        axes.axhline(self.asked, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        axes.set_xlim(left=0.0)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel("cost of the change")
        axes.set_ylabel("probability under the worst model")
        return axes


class Corner(NamedTuple):
    """What was asked for, its least cost, and how much more the recourse of that cost has."""

    wanted: float
    cost: float
    had: float
    is_step: bool


def walk_corners(
    first: Corner, last: float, n_points: int, ask: Callable[[float], Corner]
) -> list[Corner]:
    """Go from corner to corner, up to a value or as far as can be reached.

    From each corner the next one is found exactly: ask for a hair more than what is had. Where the
    curve is continuous, or has many steps that cannot be seen, the walk goes on by strides, which
    grow to a ``n_points``-th of the whole, so that what comes next is not missed.
    """
    rise = last - first.had
    widest, stride = rise / (n_points - 1), _VISIBLE * rise
    left, left_small = _STEPS * n_points, _SMALL_STEPS
    corners, reached = [first], first.had
    while reached < last - _RISE * rise:
        found = ask(reached + _ABOVE * rise)
        risen = found.had - reached
        is_seen = risen >= _VISIBLE * rise
        if risen >= _RISE * rise:
            exact = left > 0 and (is_seen or left_small > 0)
        else:  # continuous, but for what it costs to begin at all
            exact = found.cost > corners[-1].cost + _BEGINNING
        if is_seen:
            stride, left_small = _VISIBLE * rise, _SMALL_STEPS
        if exact:
            left, left_small = left - 1, left_small - (not is_seen)
        elif np.isfinite(found.cost):
            found = ask(min(max(reached + stride, found.wanted), last))._replace(is_step=False)
            stride = min(2.0 * stride, widest)
        if not np.isfinite(found.cost):  # links, or rounding, put the end out of reach
            break
        corners.append(found)
        reached = max(found.had, found.wanted)
    return corners


class Corners(NamedTuple):
    """Corners of a curve that never falls, from low to high; each costs more than the last.

    As `Corner`, but arrays.
    """

    wanted: Floats
    cost: Floats
    had: Floats

    def with_answers(self, wanted: Floats, cost: Floats, had: Floats) -> Corners:
        """Add answers, those that are not finite left out; make one of those of the same cost.

        Where one holds as far as another, which was found to cost more, that is within tolerance.
        """
        there = np.isfinite(cost)
        pairs = zip(self, (wanted[there], cost[there], had[there]), strict=True)
        wanted, cost, had = (np.concatenate(pair) for pair in pairs)
        order = np.argsort(wanted, kind="stable")
        wanted, cost, had = wanted[order], cost[order], had[order]
        reached, dearest = (np.maximum.accumulate(values)[:-1] for values in (had, cost))
        is_new = (cost[1:] > dearest * (1.0 + _SAME)) & (wanted[1:] > reached)
        starts = np.flatnonzero(np.concatenate([[True], is_new]))
        return Corners(wanted[starts], cost[starts], np.maximum.reduceat(had, starts))

    def are_steps(self, rise: float) -> NDArray[np.bool_]:
        """Say which were asked for a hair above what the one before has: nothing is in between."""
        near = self.wanted[1:] <= self.had[:-1] + 2.0 * _ABOVE * rise
        return np.concatenate([[False], near])

    def are_smooth(self, rise: float) -> NDArray[np.bool_]:
        """Say which only show that the curve is continuous where the one before ends."""
        rises, jumps = np.diff(self.had), np.diff(self.cost)
        smooth = (rises < _RISE * rise) & (jumps <= _BEGINNING)
        return np.asarray(self.are_steps(rise) & np.concatenate([[False], smooth]))

    def wanted_next(self, rise: float, least_box: float) -> Floats:
        """Return what to ask for next, so that steps and boxes that can be seen are found."""
        steps, seen = self.are_steps(rise), self.had - self.wanted >= _VISIBLE * rise
        widths, heights = self.wanted[1:] - self.had[:-1], np.diff(self.cost)
        boxes = widths * heights > least_box * rise * (self.cost[-1] - self.cost[0])
        places = np.arange(len(steps))
        # how many steps that cannot be seen were found one after another, up to each
        small = places - np.maximum.accumulate(np.where(steps & ~seen, 0, places))
        tired = (small >= _SMALL_STEPS) | self.are_smooth(rise)
        above = ~steps[1:] & ~tired[:-1] & (boxes | seen[:-1] | seen[1:])
        middle = ~steps[1:] & boxes & (widths > _VISIBLE * rise)
        lower = self.had[:-1]
        return np.concatenate([lower[above] + _ABOVE * rise, (lower + 0.5 * widths)[middle]])


def refine_corners(
    first: Corner, last: float, n_points: int, ask: Callable[[Floats], tuple[Floats, Floats]]
) -> list[Corner]:
    """Find the corners up to a value that can be reached, where many can be asked for at once.

    As the cost never falls, the curve lies within the boxes between the corners that are known. In
    each round a hair more is asked for than what some corner has: where nothing is in between, the
    next one is a step, and closes the box. Other boxes are halved, if they can be seen. Values
    whose costs `ask` does not know, which are not finite, are left out.
    """
    rise = last - first.had
    if not rise > 0.0:
        return [first]
    wanted = np.linspace(first.had, last, n_points + 1)
    wanted[0] += _ABOVE * rise
    wanted[-1] -= 0.5 * _RISE * rise  # rounding may put the end itself out of reach
    corners = Corners(*(np.array([value]) for value in first[:3]))
    for _ in range(_ROUNDS):
        corners = corners.with_answers(wanted, *ask(wanted))
        wanted = corners.wanted_next(rise, 1.0 / n_points**2)
        if not wanted.size or len(corners.cost) > _STEPS * n_points:
            break
    kept = ~corners.are_smooth(rise)
    kept[-1] = True
    columns = (values[kept].tolist() for values in (*corners, corners.are_steps(rise)))
    return [Corner(*each) for each in zip(*columns, strict=True)]
