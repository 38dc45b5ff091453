"""Which set of models should recourse withstand? Every set at equal survival, by what it costs.

    pip install 'empulse==0.13.*' ellice matplotlib    # data, opponent, figure: none is required
    python benchmarks/sets.py [--quick] [--data german] [--seeds 8] [--no-ellice]
                              [--out DIRECTORY] [--figure sets.png]

A set that promises more costs more, so sets are compared at equal survival: the share of people
whom a retrained model still approves once they have followed the advice. Half of a data set trains
today's model. Two kinds of models judge, and never choose anything: refits to resamples of the rows
that today's model was trained on ("bootstrap"), and fits to resamples of the other half ("fresh").
Each family of sets is swept over its size, in steps that lower the score of a typical recourse by
as many standard errors of that score; what reaches a survival is interpolated between two steps.

Every model is a logistic regression on standardised columns. A cost is the sum of all changes in
standard deviations. Numbers move within the range of the training rows, the outermost hundredths
of them cut off; categories, and what nobody can choose, stay as they are. Give Me Some Credit and
PAKDD 2009 are thinned to as many defaulters as others, so that one half is a sensible cutoff. Mean
costs are over the same people: those whom all families help at that survival. A family that helps
less than half of those whom plain recourse helps is left out of that, and has no mean cost.

ElliCE (NeurIPS 2025) looks for recourse by gradient descent, in the ellipsoid of nearly optimal
models. It gets the same model, rows, fixed columns and ranges, all of which it honours, and the
settings that it comes with, which put no weight on the distance; `requires="robust"`, because all
others promise that too. Its sparse variant gets 100 steps in place of 1,000, which is several
times as fast and no dearer. Its own distance is Euclidean, so lengths are given beside costs.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import multiprocessing
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import special
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import holdfast
from holdfast import Ellipsoid, ModelList, NormBall
from holdfast.datasets import load_german
from holdfast.problem.model_set import ModelSet

LEVELS = (0.90, 0.95, 0.99)
STEPS = np.concatenate([np.arange(0.0, 4.0, 0.25), np.arange(4.0, 12.5, 0.5)])
TWO = int(np.flatnonzero(STEPS == 2.0)[0])
LIST_SIZES = (1, 2, 5, 10, 20, 50, 100, 200)
ELLICE_STEPS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0)
SPARSE_STEPS = (1.0, 2.0, 2.5, 3.0, 4.0)
QUICK_STEPS = (1.0, 2.0, 3.0, 4.0)
OWN_SETTINGS = ("0.01", "10 % of the loss")  # the default, and what its authors advise
BAR = 0.5  # of ElliCE's cost, at 95 %, on German
JUDGES = ("bootstrap", "fresh")
PLAIN, ELLICE, SPARSE = "plain", "ElliCE", "ElliCE, sparse"


class Sizes(NamedTuple):
    """How much is computed."""

    seeds: int = 8
    people: int = 20  # of each seed
    judges: int = 100  # models of each kind


# Data


class Rows(NamedTuple):
    """Encoded columns in raw units, who was good, and which columns can move."""

    columns: pd.DataFrame
    good: np.ndarray
    numbers: list[str]
    movable: list[str]
    is_thinned: bool


ORDERED = {  # worst first
    "checking_status": ["<0", "0<=X<200", ">=200", "no checking"],
    "savings_status": ["<100", "100<=X<500", "500<=X<1000", ">=1000", "no known savings"],
    "employment": ["unemployed", "<1", "1<=X<4", "4<=X<7", ">=7"],
    "property_magnitude": ["no known property", "car", "life insurance", "real estate"],
}


def german() -> Rows:
    """Return German Credit; as in UCI's numeric file, ordered categories count as numbers."""
    data = load_german()
    table = data.features
    numbers = table[[c.name for c in data.columns if c.kind != "category"]].astype(float)
    for name, levels in ORDERED.items():
        numbers[name] = table[name].map({level: k for k, level in enumerate(levels)}).astype(float)
    others = [name for name in table if name not in numbers]
    dummies = pd.get_dummies(table[others], drop_first=True, dtype=float)
    movable = [c.name for c in data.columns if c.actionable and c.name in numbers]
    columns = pd.concat([numbers, dummies], axis=1)
    return Rows(columns, data.approved.to_numpy(), list(numbers), movable, is_thinned=False)


def give_me_some_credit() -> Rows:
    """Return the 2011 competition's borrowers, those with an income and all else known."""
    table = pd.read_csv(empulse_file("creditscoring1.csv.gz")).dropna()
    good = (table.pop("SeriousDlqin2yrs") == 0).to_numpy()
    columns = table.drop(columns="id").astype(float)
    movable = [name for name in columns if name not in ("age", "NumberOfDependents")]
    return Rows(columns, good, list(columns), movable, is_thinned=True)


def pakdd() -> Rows:
    """Return the 2009 competition's applicants with an income between 100 and 10,000."""
    table = pd.read_csv(empulse_file("creditscoring2.csv.gz"), sep="\t", dtype=str)
    income = pd.to_numeric(table["PERSONAL_NET_INCOME"], errors="coerce")
    known = table["TARGET_LABEL_BAD=1"].isin(["0", "1"])
    table = table[known & (income > 100) & (income < 10_000)].reset_index(drop=True)
    movable = [
        "PERSONAL_NET_INCOME",
        "MATE_INCOME",
        "MONTHS_IN_RESIDENCE",
        "MONTHS_IN_THE_JOB",
        "PAYMENT_DAY",
        "QUANT_ADDITIONAL_CARDS_IN_THE_APPLICATION",
    ]
    numbers = ["AGE", *movable]
    flags = ["RESIDENCIAL_PHONE", "FATHERS_NAME", "RESIDENCE_TOWN_eq_WORKING_TOWN"]
    columns = table[numbers].astype(float)
    for name in flags:
        columns[name] = (table[f"FLAG_{name}"] == "Y").astype(float)
    columns["FEMALE"] = (table["SEX"] == "F").astype(float)
    categories = table[["MARITAL_STATUS", "RESIDENCE_TYPE"]]
    columns = pd.concat([columns, pd.get_dummies(categories, drop_first=True, dtype=float)], axis=1)
    good = (table["TARGET_LABEL_BAD=1"] == "0").to_numpy()
    return Rows(columns, good, numbers, movable, is_thinned=True)


def empulse_file(name: str) -> Path:
    """Return a data file inside the package empulse, which need not be importable."""
    found = importlib.util.find_spec("empulse")
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            "Give Me Some Credit and PAKDD 2009 lie inside a package: pip install empulse==0.13.*"
        )
    return Path(found.submodule_search_locations[0]) / "datasets" / "data" / name


DATA: dict[str, Callable[[], Rows]] = {
    "german": german,
    "give-me-some-credit": give_me_some_credit,
    "pakdd": pakdd,
}


# One split of the data: today's model, the people, and the models that judge


@dataclass(frozen=True, eq=False)
class World:
    """All in today's standardised columns.

    Models are rows of coefficients, the intercept last.
    """

    names: list[str]
    train: np.ndarray
    good: np.ndarray
    model: LogisticRegression
    people: np.ndarray
    movable: np.ndarray
    judges: dict[str, np.ndarray]
    others: list[LogisticRegression]  # refits to resamples for the lists, none of them a judge

    @property
    def coef(self) -> np.ndarray:
        return self.model.coef_[0]

    @property
    def intercept(self) -> float:
        return float(self.model.intercept_[0])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        low = np.where(self.movable, self.train.min(axis=0), self.people)
        return low, np.where(self.movable, self.train.max(axis=0), self.people)

    def solve(self, robust_to: ModelSet, guarantee: float = 0.5) -> np.ndarray:
        """Return the cheapest recourse of all people; NaN where there is none."""
        result = holdfast.solve(
            self.people,
            self.coef,
            self.intercept,
            robust_to=robust_to,
            guarantee=guarantee,
            bounds=self.bounds,
        )
        return np.array(result.recourse)


def split(rows: Rows, seed: int, sizes: Sizes) -> World:
    rng = np.random.default_rng(seed)
    which = rng.permutation(len(rows.good))
    if rows.is_thinned:
        kinds = [which[rows.good[which]], which[~rows.good[which]]]
        least = min(map(len, kinds))
        which = rng.permutation(np.concatenate([kind[:least] for kind in kinds]))
    half = len(which) // 2
    columns, good = rows.columns.iloc[which].copy(), rows.good[which]
    first = columns.iloc[:half]
    ends = first[rows.numbers].quantile([0.01, 0.99])
    columns[rows.numbers] = columns[rows.numbers].clip(ends.iloc[0], ends.iloc[1], axis=1)
    first = columns.iloc[:half]
    columns = columns.loc[:, first.std() > 0.0]  # a category that nobody has in this half
    first = columns.iloc[:half]
    points = ((columns - first.mean()) / first.std()).to_numpy()
    model = fit(points[:half], good[:half])

    def refits(points: np.ndarray, good: np.ndarray, n: int) -> list[LogisticRegression]:
        draws = (rng.integers(len(good), size=half) for _ in range(n))
        return [fit(points[draw], good[draw]) for draw in draws]

    judges = {
        "bootstrap": refits(points[:half], good[:half], sizes.judges),
        "fresh": refits(points[half:], good[half:], sizes.judges),
    }
    others = refits(points[:half], good[:half], max(LIST_SIZES))
    denied = points[half:][~model.predict(points[half:])]
    return World(
        names=list(columns),
        train=points[:half],
        good=good[:half],
        model=model,
        people=denied[: sizes.people],
        movable=np.isin(columns.columns, rows.movable),
        judges={
            kind: np.array([np.append(one.coef_[0], one.intercept_) for one in models])
            for kind, models in judges.items()
        },
        others=others,
    )


def fit(points: np.ndarray, good: np.ndarray) -> LogisticRegression:
    return LogisticRegression(solver="newton-cholesky").fit(points, good)


# Families, each in all of its sizes


class Step(NamedTuple):
    """One size of a family: its number, as its users would say it, and the recourse it gives."""

    size: float
    recourse: np.ndarray


def balls(world: World) -> dict[str, ModelSet]:
    """Return all families that have a radius, at radius 1."""
    model, X, y = world.model, world.train, world.good
    fisher = holdfast.sets.fisher(model, X, radius=1.0)
    errors = {"scale": fisher.feature_scale(X.shape[1]), "intercept": fisher.intercept_scale}
    found: dict[str, ModelSet] = {}
    for p in (1.0, 2.0, math.inf):
        found[f"p = {p:g}"] = NormBall(p, 1.0)
        found[f"p = {p:g}, scaled"] = NormBall(p, 1.0, **errors)
    found["ellipsoid, Fisher"] = fisher
    found["ellipsoid, sandwich"] = holdfast.sets.sandwich(model, X, y, radius=1.0)
    found["ellipsoid, bootstrap"] = holdfast.sets.bootstrap(model, X, y, radius=1.0)
    found["ellipsoid, Rashomon"] = holdfast.sets.rashomon(model, X, y, loss_increase=0.5)
    return found


def sweeps(world: World) -> dict[str, list[Step]]:
    """Return the recourse of every family in all of its sizes."""
    plain = world.solve(NormBall(2.0, 0.0))
    reached = plain[np.isfinite(plain[:, 0])]

    def fall(one: ModelSet) -> float:
        """How much the set lowers the score of a typical recourse."""
        score = reached @ world.coef + world.intercept
        return float(np.median(score - one.worst_score(reached, world.coef, world.intercept)))

    families = balls(world)
    error = fall(families["ellipsoid, Fisher"])
    found = {PLAIN: [Step(0.0, plain)], "margin only": []}
    for step in STEPS:
        asked = float(special.expit(step * error))
        found["margin only"].append(Step(asked, world.solve(NormBall(2.0, 0.0), asked)))
    for name, one in families.items():
        unit = error / fall(one)
        found[name] = [Step(t * unit, world.solve(one.with_radius(t * unit))) for t in STEPS]
        if name.endswith("Rashomon"):  # its users speak of the rise of the loss
            found[name] = [Step(step.size**2 / 2.0, step.recourse) for step in found[name]]
    others = holdfast.sets.from_models(world.others, world.model, world.train).models
    found["list of models"] = [Step(m, world.solve(ModelList(others[:m]))) for m in LIST_SIZES]
    return found


# The opponent


def ellice_epsilons(world: World, steps: tuple[float, ...]) -> list[float]:
    """Return the rise of the mean loss that is as large as so many standard errors."""
    return [step**2 / (2.0 * len(world.good)) for step in steps]


def own_epsilons(world: World) -> list[float]:
    """Return its default, and a tenth of the training loss, which its authors advise."""
    score = world.model.decision_function(world.train)
    loss = np.logaddexp(0.0, np.where(world.good, -score, score)).mean()
    return [0.01, 0.1 * float(loss)]


def ellice_recourse(world: World, epsilon: float, sparse: bool) -> np.ndarray:
    """Return what ElliCE finds; NaN where it finds nothing robust."""
    import ellice
    import torch

    torch.set_num_threads(1)
    table = pd.DataFrame(world.train, columns=world.names).assign(target=world.good.astype(int))
    movable = [name for name, moves in zip(world.names, world.movable, strict=True) if moves]
    data = ellice.Data(table, target_column="target")
    explainer = ellice.Explainer(world.model, data, backend="sklearn", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning for each row that it gives up
        found = explainer.generate_counterfactuals(
            pd.DataFrame(world.people, columns=world.names),
            method="continuous",
            features_to_vary=movable,
            robustness_epsilon=epsilon,
            sparsity=sparse,
            optimization_params={"max_iterations": 100} if sparse else {},
            progress_bar=False,
            requires="robust",
        )
    recourse = found.sort_values("original_index")[world.names].to_numpy(dtype=float, copy=True)
    given_up = np.abs(recourse - world.people).max(axis=1) < 1e-5  # it returns the person then
    recourse[given_up] = np.nan
    low, high = world.bounds
    kept = (recourse >= low - 1e-5) & (recourse <= high + 1e-5)  # it works in single precision
    assert (kept | given_up[:, None]).all(), "ElliCE left the bounds"
    return recourse


def ellice_set(world: World, epsilon: float) -> Ellipsoid:
    """Return the very set that ElliCE looks at."""
    p = special.expit(world.model.decision_function(world.train))
    rows = np.column_stack([world.train, np.ones(len(p))])
    hessian = (rows * (p * (1.0 - p))[:, None]).T @ rows / len(p) + 1e-4 * np.eye(rows.shape[1])
    return Ellipsoid(np.linalg.inv(hessian), math.sqrt(2.0 * epsilon))


def solved_exactly(world: World) -> list[Step]:
    """Return the optimum in the very sets that ElliCE looks at, in its own settings."""
    return [Step(e, world.solve(ellice_set(world, e))) for e in own_epsilons(world)]


def ellice_sweeps(worlds: list[World], quick: bool) -> dict[str, list[list[Step]]]:
    """Return ElliCE's steps of each world: over the sizes, and in its own settings."""
    steps = {
        ELLICE: QUICK_STEPS if quick else ELLICE_STEPS,
        SPARSE: QUICK_STEPS if quick else SPARSE_STEPS,
    }
    jobs = []
    for k, world in enumerate(worlds):
        for name, sizes in steps.items():
            jobs += [(k, name, e) for e in ellice_epsilons(world, sizes)]
            own = own_epsilons(world)
            jobs += [(k, f"{name}, epsilon own", e) for e in (own if name == ELLICE else own[:1])]
    # torch and numba do not share a process well after a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        found = list(
            pool.map(
                ellice_recourse,
                [worlds[k] for k, _, _ in jobs],
                [epsilon for _, _, epsilon in jobs],
                [name.startswith(SPARSE) for _, name, _ in jobs],
            )
        )
    result: dict[str, list[list[Step]]] = {}
    for (k, name, epsilon), recourse in zip(jobs, found, strict=True):
        result.setdefault(name, [[] for _ in worlds])[k].append(Step(epsilon, recourse))
    return result


# Judging


@dataclass(frozen=True, eq=False)
class Sweep:
    """A family in all of its sizes, all people of all seeds side by side.

    Attributes
    ----------
    size : (k,) array
        Mean over seeds.
    cost, length : (k, people) arrays
        Sum of the changes, and their Euclidean length; infinite for those not helped.
    survival : dict of (k, people) arrays
        Share of each kind of models that approves.
    seed : (people,) array
        Which split each of the people is from.
    """

    size: np.ndarray
    cost: np.ndarray
    length: np.ndarray
    survival: dict[str, np.ndarray]
    seed: np.ndarray

    @property
    def helped(self) -> np.ndarray:
        return np.isfinite(self.cost)

    def mean_survival(self, judge: str) -> np.ndarray:
        """Return that of those helped, at each size; NaN where nobody is."""
        number = self.helped.sum(axis=1)
        total = np.where(self.helped, self.survival[judge], 0.0).sum(axis=1)
        return np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)

    def at(self, level: float, judge: str) -> Found | None:
        """Interpolate to where the survival first reaches a level; None if it never does."""
        mean = self.mean_survival(judge)
        for k in range(1, len(mean)):
            if mean[k - 1] < level <= mean[k]:
                share = (level - mean[k - 1]) / (mean[k] - mean[k - 1])
                values = (self.size, self.cost, self.length)
                return Found(*(mix(each[k - 1], each[k], share) for each in values))
        return None


class Found(NamedTuple):
    """A family at the size that a survival takes."""

    size: float
    cost: np.ndarray
    length: np.ndarray


def mix(before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
    """Interpolate; who is not helped on one side is not helped."""
    both = np.isfinite(before) & np.isfinite(after)
    with np.errstate(invalid="ignore"):
        return np.where(both, (1.0 - share) * before + share * after, np.inf)


def judged(worlds: list[World], steps: list[list[Step]]) -> Sweep:
    """Measure what a family gave in each world; its numbers are not trusted for anything."""
    columns = []
    for world, own in zip(worlds, steps, strict=True):
        points = np.array([step.recourse for step in own])
        missing = np.isnan(points).any(axis=2)
        change = points - world.people
        survival = {
            judge: np.mean(points @ models[:, :-1].T + models[:, -1] > 0.0, axis=2)
            for judge, models in world.judges.items()
        }
        columns.append(
            (
                np.where(missing, np.inf, np.abs(change).sum(axis=2)),
                np.where(missing, np.inf, np.sqrt((change**2).sum(axis=2))),
                survival,
            )
        )
    return Sweep(
        size=np.mean([[step.size for step in own] for own in steps], axis=0),
        cost=np.hstack([cost for cost, _, _ in columns]),
        length=np.hstack([length for _, length, _ in columns]),
        survival={judge: np.hstack([s[judge] for _, _, s in columns]) for judge in JUDGES},
        seed=np.repeat(np.arange(len(worlds)), [len(world.people) for world in worlds]),
    )


class Equal(NamedTuple):
    """All families at one survival."""

    found: dict[str, Found]
    same: np.ndarray  # the people over whom costs are compared
    compared: list[str]
    seed: np.ndarray  # of each of these people

    def cost(self, name: str) -> float:
        return float(self.found[name].cost[self.same].mean())

    def best(self) -> str:
        """The cheapest of ours."""
        return min((n for n in self.compared if not n.startswith(ELLICE)), key=self.cost)

    def beside_best(self, name: str) -> str:
        """How much dearer it is than the cheapest of ours, with the standard error over splits."""
        cheapest = self.found[self.best()].cost[self.same]
        dearer = (self.found[name].cost[self.same] - cheapest) / cheapest.mean()
        means = [dearer[self.seed == k].mean() for k in np.unique(self.seed)]
        error = np.std(means, ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
        return f"{100.0 * dearer.mean():+.1f} ± {100.0 * error:.1f} %"


def equal(families: dict[str, Sweep], level: float, judge: str) -> Equal:
    found = {name: at for name, sweep in families.items() if (at := sweep.at(level, judge))}
    reachable = families[PLAIN].helped[0].sum()
    compared = [name for name, at in found.items() if np.isfinite(at.cost).sum() >= 0.5 * reachable]
    same = np.all([np.isfinite(found[name].cost) for name in compared], axis=0)
    return Equal(found, same, compared, families[PLAIN].seed[same])


# What is shown


def equal_table(title: str, families: dict[str, Sweep], judge: str) -> Table:
    equals = {level: equal(families, level, judge) for level in LEVELS}
    numbers = ", ".join(f"{int(np.sum(e.same))} at {level:.0%}" for level, e in equals.items())
    plain = families[PLAIN]
    table = Table(
        title=f"{title}: mean cost at equal survival, judged by {judge} models",
        caption=(
            f"cost: over the same people ({numbers}); helped: share of {plain.cost.shape[1]}. "
            f"Plain recourse: cost {plain.cost[0][plain.helped[0]].mean():.2f}, helped "
            f"{plain.helped[0].mean():.0%}, survival {plain.mean_survival(judge)[0]:.0%}. "
            "*: the cheapest of ours; beside it: at 95 %, with the standard error over splits. Not "
            "reached: by no size of the sweep; all above: by every size."
        ),
    )
    table.add_column("family")
    for level in LEVELS:
        table.add_column(f"{level:.0%}: cost", justify="right")
        table.add_column("helped", justify="right")
    table.add_column("95%: size", justify="right")
    table.add_column("beside *", justify="right")
    for name in families:
        if name == PLAIN:
            continue
        cells = []
        for level in LEVELS:
            at, e = equals[level].found.get(name), equals[level]
            if at is None:
                above = families[name].mean_survival(judge)[0] >= level
                cells += ["all above" if above else "not reached", "-"]
                continue
            best = name == e.best()
            cost = f"{e.cost(name):.2f}{' *' if best else ''}" if name in e.compared else "-"
            cells += [cost, f"{np.isfinite(at.cost).mean():.0%}"]
        at, e = equals[0.95].found.get(name), equals[0.95]
        cells.append("-" if at is None else f"{at.size:.3g}")
        table.add_row(name, *cells, e.beside_best(name) if name in e.compared else "-")
    return table


def sweep_table(title: str, families: dict[str, Sweep]) -> Table:
    """Return one size of each family: two standard errors, or ten models."""
    table = Table(
        title=f"{title}: sets of one size",
        caption="lowering a typical score by 2 standard errors, or 10 models; over those helped",
    )
    for name in ("family", "size", "cost", "helped", *(f"survival, {j}" for j in JUDGES)):
        table.add_column(name, justify="left" if name == "family" else "right")
    for name, sweep in families.items():
        k = {PLAIN: 0, "list of models": LIST_SIZES.index(10)}.get(name, TWO)
        if name.startswith(ELLICE):
            k = len(sweep.size) // 2 - 1  # 2 standard errors, in either of its lists of steps
        helped = sweep.helped[k]
        cost = f"{sweep.cost[k][helped].mean():.2f}" if helped.any() else "-"
        survival = (f"{sweep.mean_survival(judge)[k]:.1%}" for judge in JUDGES)
        table.add_row(name, f"{sweep.size[k]:.3g}", cost, f"{helped.mean():.0%}", *survival)
    return table


def ellice_table(
    title: str, families: dict[str, Sweep], own: dict[str, Sweep], exact: Sweep, judge: str
) -> Table:
    """Return ElliCE in its own settings beside the optimum of its set, and ours at 95 %."""
    table = Table(
        title=f"{title}: ElliCE in its own settings, judged by {judge} models",
        caption="all means of a row are over the same people: those whom all of its columns help",
    )
    ours = equal(families, 0.95, judge)
    best = ours.found[ours.best()]
    heads = (
        "epsilon",
        "helped",
        "survival",
        "cost",
        "optimum of its set",
        f"{ours.best()} at 95 %",
    )
    for name in ("", *heads, "ratio", "lengths: ElliCE", "ours"):
        table.add_column(name, justify="left" if not name else "right")
    for name, sweep in own.items():
        for k, setting in enumerate(OWN_SETTINGS[: len(sweep.size)]):
            helped = sweep.helped[k]
            same = helped & exact.helped[k] & np.isfinite(best.cost)
            row = [name, setting, f"{helped.mean():.0%}"]
            if not same.any():
                table.add_row(*row, *["-"] * 7)
                continue
            theirs, mine = sweep.cost[k][same].mean(), best.cost[same].mean()
            table.add_row(
                *row,
                f"{sweep.survival[judge][k][same].mean():.1%}",
                f"{theirs:.2f}",
                f"{exact.cost[k][same].mean():.2f}",
                f"{mine:.2f}",
                f"{mine / theirs:.2f}",
                f"{sweep.length[k][same].mean():.2f}",
                f"{best.length[same].mean():.2f}",
            )
    return table


def bar(families: dict[str, Sweep], own: dict[str, Sweep], judge: str, console: Console) -> None:
    """Print whether our best family at 95 % costs at most half of what ElliCE does."""
    e = equal(families, 0.95, judge)
    mine = e.found[e.best()].cost
    for name, sweep in own.items():
        same = sweep.helped[0] & np.isfinite(mine)
        if not same.any():
            continue
        ratio = mine[same].mean() / sweep.cost[0][same].mean()
        kept = "kept" if ratio <= BAR else "missed"
        console.print(
            f"German, {judge} models: {e.best()} at 95 % costs {ratio:.2f} of {name} with its "
            f"default epsilon, which survives {sweep.survival[judge][0][same].mean():.1%} "
            f"({int(same.sum())} people; bar: {BAR:g}, {kept})"
        )
    for name in (ELLICE, SPARSE):
        if name in e.compared:
            ratio = e.cost(e.best()) / e.cost(name)
            console.print(f"  at equal survival, 95 %: {ratio:.2f} of {name}")


def sweep_frame(data: str, families: dict[str, Sweep]) -> pd.DataFrame:
    """Return a row for each family, size and kind of judge."""
    rows = []
    for name, sweep in families.items():
        for k, size in enumerate(sweep.size):
            helped = sweep.helped[k]
            for judge in JUDGES:
                rows.append(
                    {
                        "data": data,
                        "family": name,
                        "size": size,
                        "judge": judge,
                        "cost": sweep.cost[k][helped].mean() if helped.any() else np.nan,
                        "helped": helped.mean(),
                        "survival": sweep.mean_survival(judge)[k],
                    }
                )
    return pd.DataFrame(rows)


def equal_frame(data: str, families: dict[str, Sweep]) -> pd.DataFrame:
    """Return a row for each family, survival and kind of judge."""
    rows = []
    for judge in JUDGES:
        for level in LEVELS:
            e = equal(families, level, judge)
            for name, at in e.found.items():
                rows.append(
                    {
                        "data": data,
                        "family": name,
                        "judge": judge,
                        "survival": level,
                        "size": at.size,
                        "cost": e.cost(name) if name in e.compared else np.nan,
                        "people": int(e.same.sum()),
                        "helped": np.isfinite(at.cost).mean(),
                    }
                )
    return pd.DataFrame(rows)


# Okabe and Ito's colours, which colour-blind people can tell apart.
DRAWN = {
    "ellipsoid, Fisher": ("ellipsoid", "#0072B2"),
    "p = 2": ("p = 2", "#56B4E9"),
    "p = inf": ("p = ∞", "#009E73"),
    "p = 1": ("p = 1", "#CC79A7"),
    "list of models": ("list", "#E69F00"),
    "margin only": ("margin only", "#777777"),
    ELLICE: ("ElliCE", "#D55E00"),
    SPARSE: ("ElliCE, sparse", "#000000"),
}


LOST = (0.6, 0.004)  # the ends of the vertical axis: the share that does not survive


def draw(results: dict[str, dict[str, Sweep]], judge: str, path: Path) -> None:
    """Draw survival against cost, a panel for each data set, over the same people.

    They are those of the table at 95 %; a line ends where its family cannot help one of them.
    """
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(
        1, len(results), figsize=(5.0 * len(results), 4.2), layout="constrained", squeeze=False
    )
    for axes, (data, families) in zip(panels[0], results.items(), strict=True):
        same = equal(families, 0.95, judge).same
        ends = []
        for name, (label, color) in DRAWN.items():
            if name not in families:
                continue
            sweep = families[name]
            whole = np.cumprod(sweep.helped[:, same].all(axis=1)).astype(bool)
            x = sweep.cost[whole][:, same].mean(axis=1)
            y = 1.0 - sweep.survival[judge][whole][:, same].mean(axis=1)
            x, y = x[y >= LOST[1]], y[y >= LOST[1]]
            if x.size:
                few = name in (ELLICE, SPARSE, "list of models")
                axes.plot(x, y, "o-" if few else "-", color=color, linewidth=1.6, markersize=3)
                ends.append((x[-1], y[-1], label, color))
        axes.set_yscale("log")
        axes.set_ylim(*LOST)
        ticks = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
        axes.set_yticks(ticks, [f"{100.0 * (1.0 - tick):g} %" for tick in ticks])
        axes.minorticks_off()
        axes.grid(axis="y", color="0.92", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(f"{data} ({int(same.sum())} people)", fontsize=10, loc="left")
        axes.set_xlabel("mean cost (standard deviations)")
        name_lines(axes, ends)
    panels[0, 0].set_ylabel(f"survival under {judge} models")
    figure.savefig(path, dpi=160)


def name_lines(axes, ends) -> None:
    """Write the lines' names beside the panel, each led to its line's end, none on another."""
    height = math.log(LOST[0] / LOST[1])
    last = 2.0
    for x, y, label, color in sorted(ends, key=lambda end: end[1]):  # from the top
        last = min(math.log(LOST[0] / y) / height, last - 0.055)
        axes.annotate(
            label,
            xy=(x, y),
            xytext=(1.03, last),
            textcoords="axes fraction",
            color=color,
            fontsize=9,
            va="center",
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "alpha": 0.6},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few seeds, people and models")
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--seeds", type=int, help="splits of each data set")
    parser.add_argument("--no-ellice", action="store_true")
    parser.add_argument("--out", type=Path, help="directory for sweep.csv and equal.csv")
    parser.add_argument("--figure", type=Path, help="where to draw survival against cost")
    options = parser.parse_args()
    sizes = Sizes(seeds=2, people=8, judges=50) if options.quick else Sizes()
    if options.seeds is not None:
        sizes = sizes._replace(seeds=options.seeds)
    if not options.no_ellice and importlib.util.find_spec("ellice") is None:
        raise SystemExit("ElliCE is not installed: pip install ellice, or give --no-ellice")
    console = Console(width=130)
    results: dict[str, dict[str, Sweep]] = {}
    for data in options.data:
        rows = DATA[data]()
        with threadpool_limits(1):  # matrices this small are slower on several processors
            worlds = [split(rows, seed, sizes) for seed in range(sizes.seeds)]
            swept = [sweeps(world) for world in worlds]
        families = {name: judged(worlds, [own[name] for own in swept]) for name in swept[0]}
        own, exact = {}, None
        if not options.no_ellice:
            found = ellice_sweeps(worlds, options.quick)
            families |= {name: judged(worlds, found[name]) for name in (ELLICE, SPARSE)}
            own = {name: judged(worlds, found[f"{name}, epsilon own"]) for name in (ELLICE, SPARSE)}
            exact = judged(worlds, [solved_exactly(world) for world in worlds])
        results[data] = families
        d, n = worlds[0].train.shape[1], len(worlds[0].good)
        title = f"{data}, {d} columns, {int(worlds[0].movable.sum())} move, {n:,} training rows"
        console.print(sweep_table(title, families))
        for judge in JUDGES:
            console.print(equal_table(title, families, judge))
            if exact is not None:
                console.print(ellice_table(title, families, own, exact, judge))
                if data == "german":
                    bar(families, own, judge, console)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, frame in (("sweep", sweep_frame), ("equal", equal_frame)):
            whole = pd.concat([frame(data, families) for data, families in results.items()])
            whole.to_csv(options.out / f"{name}.csv", index=False)
    if options.figure is not None:
        draw(results, "fresh", options.figure)


if __name__ == "__main__":
    main()
