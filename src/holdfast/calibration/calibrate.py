"""Which set of models, and how large? As large as recourses need to survive retraining."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.actions import ActionSet
from holdfast.calibration.advice import ActionAdviser, Adviser
from holdfast.calibration.families import Family, Known, make_families, read_families
from holdfast.calibration.search import Rehearsal, Trial, smallest_radius, three_digits
from holdfast.calibration.sizing import ALONE, Sized, Sizing, TriedRadius
from holdfast.calibration.worlds import Truths, Worlds, most_short
from holdfast.machinery.numbers import (
    Floats,
    check_between,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_random_state,
    read_floats,
)
from holdfast.machinery.threads import thread_count
from holdfast.models.base import reaches_cutoff
from holdfast.models.encoding import Encoding
from holdfast.problem.ball import NormBall
from holdfast.sets.retrain import draw_bootstrap, draw_half, retrain
from holdfast.sets.space import Space, read_labels, read_model_list

_LEAST_MODELS = 20
# In every world so many are advised anew, at most; the table says how many they were.
_PEOPLE_IN_A_WORLD = 100
_RAISE, _MOST_RAISES = 1.1, 20
_SHOWN = (0.15, 0.3, 0.5, 0.75)  # of the radius: the points of a curve


def calibrate(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    actions: ActionSet | None = None,
    guarantee: float | None = None,
    survival: float = 0.95,
    confidence: float = 0.95,
    families: Sequence[Any] | None = None,
    n_models: int = 100,
    how: str = "bootstrap",
    past_models: Sequence[Any] | None = None,
    time: ArrayLike | None = None,
    n_periods: int = 10,
    max_people: int = 500,
    favorable_class: Any = None,
    random_state: int = 0,
    n_jobs: int | None = -1,
    progress: bool | None = None,
) -> Sizing:
    """Find the set of models that recourse must withstand to survive retraining, and its size.

    This is a rehearsal. The whole model is retrained on resamples of the data. Each of the
    retrained models in turn plays today's: the people whom it denies are advised, and the other
    models play the future. The radius of each family of sets is the smallest at which the wanted
    share of recourses survives, in enough of these worlds for the stated confidence. Half of the
    models choose it; the other half check it, and raise it where they disagree. Of the families
    that reach the wanted survival the cheapest is the best.

    Parameters
    ----------
    model : fitted classifier or pipeline
        Any that is linear in its score.
    X, y : table and labels
        What it was trained on, in raw units. The people advised are those of `X` whom it denies.
    actions : ActionSet, optional
        What people can change. Without it, every encoded column may take any value, at a cost of 1
        per unit.
    guarantee : float, optional
        Probability of approval that every model of the set must give; by default what the model
        itself asks for: 0.5, or its own threshold.
    survival : float
        The share of recourses that a retrained model should approve, on average over such models,
        among people who have a recourse.
    confidence : float
        The confidence in that, given the randomness of today's sample. The page on calibration says
        exactly what is promised.
    families : sequence, optional
        Names ("margin", "l1", "l2", "linf", "l1 scaled", "l2 scaled", "linf scaled", "fisher",
        "sandwich", "bootstrap", "rashomon"), or pairs of a name and a function from a radius to
        a set of models. "margin" lets only the intercept change: it asks today's model for more.
    n_models : int
        How many models to retrain, at least 20.
    how : {"bootstrap", "halves"}
        Retrain on resamples with replacement, or on random halves.
    past_models : sequence of fitted models, optional
        Earlier versions, oldest first; nothing is then retrained. Each in turn plays today's, and
        its successor the future; `model` is the last. The earlier ones choose, the later check.
    time : (n,) array, optional
        When each row was seen. The rows are cut into `n_periods` of equal size, and the models of
        these periods are the versions, as with `past_models`.
    n_periods : int
    max_people : int
        If more people are denied, this many are drawn at random. In each world up to 100 of them
        take part: those whom its model denies too.
    favorable_class : label, optional
        The class that people want. Required unless the classes are False and True.
    random_state : int
    n_jobs : int, optional
        As in scikit-learn: -1, the default, uses all processors to find recourses. The answer
        does not depend on it.
    progress : bool, optional
        Whether to show a bar; by default on a terminal only.

    Returns
    -------
    Sizing
        ``sizing.best`` is the set to pass on as `robust_to`; ``print(sizing)`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import holdfast
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X @ [1.0, -1.0] + rng.logistic(size=300) > 0
    >>> model = LogisticRegression().fit(X, y)
    >>> sizing = holdfast.calibrate(model, X, y, families=["l2", "fisher"], n_models=40)
    >>> alone = sizing.to_frame().loc["today's model alone"]
    >>> bool(sizing.chosen.survival > 0.95 > alone["survival"])
    True
    >>> type(sizing.best).__name__ in ("NormBall", "Ellipsoid")
    True
    """
    _check_numbers(survival, confidence, n_models, max_people)
    check_random_state(random_state)
    check_choice("how", how, ("bootstrap", "halves"))
    thread_count(n_jobs)
    if past_models is not None and time is not None:
        raise ValueError("past_models and time: give only one of them")
    wanted = None if families is None else read_families(families)
    space = Space.of(model, X, favorable_class)
    labels = read_labels(y, space.today, space.n_rows)
    denied = _denied(space, max_people, random_state)
    adviser = _adviser(space, model, favorable_class, denied, actions, guarantee, n_jobs)
    truths = None
    with _bar(progress) as steps:
        report = steps(n_models if past_models is None and time is None else None, "retraining")
        if past_models is not None:
            worlds = _past_worlds(space, past_models)
        elif time is not None:
            worlds = _time_worlds(space, labels, time, n_periods, random_state)
        else:
            draw = (draw_bootstrap if how == "bootstrap" else draw_half)(space.n_rows)
            models = retrain(space, labels, [draw] * n_models, random_state, report)
            half = (n_models + 1) // 2
            worlds = [Worlds.of_resamples(part) for part in (models[:half], models[half:])]
            truths = Truths.of_resamples(space.vector, models)
        sure = _attained(confidence, worlds)
        resampled = past_models is None and time is None
        known = Known(space, model, favorable_class, labels, worlds[0].changes, resampled)
        made, left_out = make_families(wanted, known)
        people = _some(len(denied), _PEOPLE_IN_A_WORLD, random_state)
        choosing, checking = (
            Rehearsal(part, adviser, people, float(survival), sure) for part in worlds
        )
        sizes = _Sizer(choosing, checking, truths)
        report = steps(len(made), "families of sets")
        found = [sizes.alone()]
        for family in made:
            found.append(sizes.size(family))
            report()
    counts = (len(worlds[0]), len(worlds[1]))
    return Sizing(float(survival), sure, found, len(denied), len(people), counts, left_out)


class _Sizer:
    """Finds the radius of one family after another."""

    def __init__(self, choosing: Rehearsal, checking: Rehearsal, truths: Truths | None) -> None:
        self.choosing, self.checking, self.truths = choosing, checking, truths
        nothing = Family(ALONE, lambda radius: NormBall(1.0, 0.0))
        # the guess of what is needed depends on the family; what happens at radius 0 does not
        self.nothing = nothing
        self.everybody = np.arange(len(choosing.adviser.points))
        self.at_zero = checking.run(nothing, 0.0)
        self.zero_costs = self._costs(nothing, 0.0)

    def alone(self) -> Sized:
        """Return how recourses for today's model alone do."""
        first = self.choosing.run(self.nothing, 0.0)
        enough = self.choosing.passes(first) and self.checking.passes(self.at_zero)
        return self._sized(self.nothing, self.at_zero, self.zero_costs, enough, [])

    def size(self, family: Family) -> Sized:
        """Let one half of the models choose the radius, and the other check it."""
        zero = self.choosing.run(family, 0.0)
        chosen, tried = smallest_radius(self.choosing, family, zero)
        if chosen is None:
            best = max(
                [zero, *tried], key=lambda trial: np.nan_to_num(trial.low(self.choosing.confidence))
            )
            return self._finish(family, self.checking.run(family, best.radius), enough=False)
        checked = self.checking.run(family, chosen.radius)
        if self.checking.passes(checked):
            return self._withstand(family, checked)
        raised, tried = smallest_radius(self.checking, family, self.at_zero, above=checked)
        if raised is not None:
            return self._withstand(family, raised)
        best = max(
            [checked, *tried], key=lambda trial: np.nan_to_num(trial.low(self.checking.confidence))
        )
        return self._finish(family, best, enough=False)

    def _withstand(self, family: Family, trial: Trial) -> Sized:
        """Raise the radius until today's own advice survives whatever the truth may be."""
        if self.truths is None:
            return self._finish(family, trial, enough=True)
        radius, cutoff = trial.radius, self.choosing.adviser.today.cutoff
        for _ in range(_MOST_RAISES):
            advice = self.choosing.adviser(family.make(radius), self.everybody)
            if not advice.found.any():
                return self._finish(family, trial, enough=False)
            survival = self.truths.survival(advice.recourse[advice.found], cutoff)
            short = int((survival < self.checking.wanted).sum())
            if short <= most_short(len(survival), self.checking.confidence):
                if radius > trial.radius:
                    trial = self.checking.run(family, radius)
                return self._finish(family, trial, enough=self.checking.passes(trial))
            radius = three_digits(radius * _RAISE)
        return self._finish(family, self.checking.run(family, radius), enough=False)

    def _finish(self, family: Family, trial: Trial, *, enough: bool) -> Sized:
        """Advise everybody denied today with that set, and for the picture with smaller ones."""
        points = []
        for share in _SHOWN if trial.radius > 0.0 else ():
            smaller = self.checking.run(family, three_digits(share * trial.radius))
            points.append(_tried(smaller, self._costs(family, smaller.radius)))
        return self._sized(family, trial, self._costs(family, trial.radius), enough, points)

    def _sized(
        self, family: Family, trial: Trial, costs: Floats, enough: bool, points: list[TriedRadius]
    ) -> Sized:
        return Sized(
            name=family.name,
            robust_to=family.make(trial.radius),
            radius=trial.radius,
            costs=costs,
            survival=trial.mean,
            survival_low=trial.low(self.checking.confidence),
            reaches=enough and bool(np.isfinite(costs).any()),
            points=[_tried(self.at_zero, self.zero_costs), *points, _tried(trial, costs)],
        )

    def _costs(self, family: Family, radius: float) -> Floats:
        advice = self.choosing.adviser(family.make(radius), self.everybody)
        return np.where(advice.found, advice.cost, np.inf)


def _tried(trial: Trial, costs: Floats) -> TriedRadius:
    known = costs[np.isfinite(costs)]
    mean = float(known.mean()) if known.size else float("nan")
    return TriedRadius(trial.radius, float(np.isfinite(costs).mean()), mean, trial.mean)


def _check_numbers(survival: Any, confidence: Any, n_models: Any, max_people: Any) -> None:
    check_between("survival", survival, 0.0, 1.0)
    check_between("confidence", confidence, 0.0, 1.0)
    check_count("n_models", n_models, least=_LEAST_MODELS)
    check_count("max_people", max_people)


def _denied(space: Space, max_people: int, random_state: int) -> NDArray[np.int64]:
    denied = np.flatnonzero(~reaches_cutoff(space.today, space.today.score(space.points)))
    if not denied.size:
        raise ValueError(
            f"the model approves all {space.n_rows} rows of X, so nobody needs recourse"
        )
    return denied[_some(len(denied), max_people, random_state)]


def _some(count: int, most: int, random_state: int) -> NDArray[np.int64]:
    """Draw some of so many, in their order."""
    rng = np.random.default_rng([random_state, count])
    return np.sort(rng.permutation(count)[:most])


def _adviser(
    space: Space,
    model: Any,
    favorable_class: Any,
    denied: NDArray[np.int64],
    actions: ActionSet | None,
    guarantee: float | None,
    n_jobs: int | None,
) -> Adviser:
    today, loss = space.today, space.today.choose_loss(None)
    if guarantee is None:
        cut = today.has_threshold and loss.link is not None
        wanted = float(loss.probability(today.cutoff)) if cut else 0.5
    else:
        check_between("guarantee", guarantee, 0.0, 1.0)
        wanted = float(guarantee)
    goal = today.goal(loss, guarantee=wanted)
    if actions is None:
        return Adviser(today, space.points[denied], goal, n_jobs)
    check_kind("actions", actions, ActionSet, "start with ActionSet.from_data")
    encoding = Encoding.of(model, favorable_class=favorable_class)
    return ActionAdviser(encoding, space.rows(denied), actions, goal, n_jobs)


def _past_worlds(space: Space, past_models: Any) -> list[Worlds]:
    versions = [
        space.translate(f"past_models[{k}]", version)
        for k, version in enumerate(read_model_list("past_models", past_models))
    ]
    if len(versions) < 2:
        raise ValueError(
            f"past_models: {len(versions)} is too few to choose a radius and check it; give two "
            "or more past models"
        )
    return _in_order(np.array([*versions, space.vector]))


def _time_worlds(
    space: Space,
    labels: NDArray[Any],
    time: Any,
    n_periods: Any,
    random_state: int,
) -> list[Worlds]:
    when = _read_time(time, space.n_rows)
    check_count("n_periods", n_periods, least=3, most=max(3, space.n_rows // 2))
    periods = np.array_split(np.argsort(when, kind="stable"), n_periods)
    for k, rows in enumerate(periods):
        if len(np.unique(labels[rows])) < 2:
            raise ValueError(
                f"time: period {k + 1} of {n_periods} has only one class; use fewer periods"
            )
    draws = [_always(rows) for rows in periods]
    return _in_order(retrain(space, labels, draws, random_state, attempts=1))


def _always(rows: NDArray[np.int64]) -> Callable[[np.random.Generator], NDArray[np.int64]]:
    return lambda rng: rows


def _in_order(versions: Floats) -> list[Worlds]:
    """Let the earlier changes choose, and the later ones check."""
    worlds = Worlds.of_versions(versions)
    half = (len(worlds) + 1) // 2
    return [worlds.take(slice(0, half)), worlds.take(slice(half, None))]


def _read_time(time: Any, n: int) -> NDArray[Any]:
    """Read when each row was seen: numbers or dates."""
    values = np.asarray(time)
    if values.shape != (n,):
        raise ValueError(f"time has shape {values.shape}, expected ({n},): X has {n} rows")
    if values.dtype.kind in "mM":
        unknown = np.isnat(values)
    elif values.dtype.kind in "US":
        raise ValueError("time holds text; pass numbers or dates: pandas.to_datetime(time)")
    else:
        unknown = np.isnan(read_floats("time", time))
    if unknown.any():
        raise ValueError(f"time is missing in {int(unknown.sum())} rows; leave these out of X")
    if (values == values[:1]).all():
        raise ValueError("time is the same in all rows; it must distinguish periods")
    return values


def _attained(confidence: float, worlds: list[Worlds]) -> float:
    """Return the confidence, or, with a warning, the most that so few worlds can give."""
    fewest = min(map(len, worlds))
    if most_short(fewest, confidence) >= 0:
        return float(confidence)
    possible = fewest / (fewest + 1)
    warnings.warn(
        f"with {fewest} model changes to learn from, the confidence can be at most "
        f"{possible:.0%}, not {confidence:.0%}, and the advice must survive all of them",
        UserWarning,
        stacklevel=3,
    )
    return possible


@contextmanager
def _bar(progress: bool | None) -> Iterator[Callable[[int | None, str], Callable[[], None]]]:
    """Show a bar on a terminal, or wherever it is asked for."""
    if progress is not None:
        check_flag("progress", progress)
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda total, what: lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:

        def steps(total: int | None, what: str) -> Callable[[], None]:
            task = bar.add_task(what, total=total)
            return lambda: bar.advance(task)

        yield steps
