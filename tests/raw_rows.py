"""Random pipelines that bend and bin numbers, and every raw row that a person could become."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import warnings
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from holdfast import ActionSet, Ellipsoid, ModelList, NormBall
from holdfast.actions import CategoryFeature, NumberFeature
from holdfast.actions.check import check_changes
from holdfast.models.encoding import Encoding

N = 90  # rows that a pipeline is fitted to
CODE = -9.0  # a number that is none
LEVELS = ["a", "b", "c", "d"]
SETS = ["1", "2", "inf", "1.5", "ellipsoid", "list"]


def bins(encode: str = "onehot-dense", strategy: str = "uniform", n: int = 4) -> Any:
    return KBinsDiscretizer(n, encode=encode, strategy=strategy)


def function(func: Any, **options: Any) -> Any:
    return FunctionTransformer(func, kw_args=options or None)


HAS_OPTBINNING = importlib.util.find_spec("optbinning") is not None  # others do without


@dataclass(frozen=True)
class Recipe:
    """Steps that one number goes through, and what a test must know of them."""

    steps: tuple[Any, ...]
    is_flat: bool = False  # constant between edges: a step and ends are not needed
    is_positive: bool = False
    has_codes: bool = False  # CODE stands for a missing value
    takes_missing: bool = False
    fills_at: int | None = None  # the step that fills in a raw number, if only scaled before


SMOOTH = [
    Recipe((StandardScaler(),)),
    Recipe((RobustScaler(),)),
    Recipe((MaxAbsScaler(), FunctionTransformer(np.negative))),
    Recipe((MinMaxScaler((-1, 2), clip=True),)),
    Recipe((function(np.log1p), StandardScaler()), is_positive=True),
    Recipe((function(np.sqrt),), is_positive=True),
    Recipe((StandardScaler(), function(np.square))),
    Recipe((function(np.clip, a_min=0.7, a_max=2.1), StandardScaler())),
    Recipe((function(functools.partial(np.maximum, 1.0)), StandardScaler())),
    Recipe((StandardScaler(), function(np.abs))),
    Recipe((PowerTransformer(),)),
    Recipe((function(np.expm1, **{}), MinMaxScaler())),
    Recipe((QuantileTransformer(n_quantiles=9),)),
    Recipe((QuantileTransformer(n_quantiles=12, output_distribution="normal"),)),
    Recipe((SplineTransformer(4),)),
    Recipe((StandardScaler(), SplineTransformer(3, degree=2, include_bias=False))),
    Recipe((SplineTransformer(3, degree=1, extrapolation="linear"),)),
    Recipe((StandardScaler(), PolynomialFeatures(2))),
    Recipe((StandardScaler(), PolynomialFeatures((2, 3), include_bias=False))),
    Recipe((MinMaxScaler(), make_union("passthrough", bins()))),
]
FLAT = [
    Recipe((bins(),), is_flat=True),
    Recipe((bins("ordinal"), StandardScaler()), is_flat=True),
    Recipe((bins("onehot", "quantile"),), is_flat=True),
    Recipe((StandardScaler(), bins("onehot-dense", "quantile", 5)), is_flat=True),
    Recipe((bins("ordinal"), OneHotEncoder(drop="first", sparse_output=False)), is_flat=True),
    Recipe((Binarizer(threshold=1.5),), is_flat=True),
    Recipe((RobustScaler(), Binarizer()), is_flat=True),
    Recipe((PowerTransformer(), bins("ordinal")), is_flat=True),
    Recipe((StandardScaler(), function(np.square), bins()), is_flat=True),
    Recipe((SplineTransformer(4, degree=0),), is_flat=True),
    Recipe((function(np.log1p), bins("onehot-dense")), is_flat=True, is_positive=True),
    Recipe((function(np.sqrt), bins("ordinal")), is_flat=True, is_positive=True),
    Recipe((make_union(bins("ordinal", n=2), bins("onehot-dense", "quantile", 3)),), is_flat=True),
]


def evidence(name: str, rng: np.random.Generator) -> Recipe:
    """Weights of evidence, or event rates, of optbinning; CODE is a code."""
    from optbinning import BinningProcess

    metric = str(rng.choice(["empirical", "0.3"]))
    params = {
        "metric": str(rng.choice(["woe", "event_rate"])),
        "metric_missing": metric if metric == "empirical" else 0.3,
        "metric_special": "empirical" if rng.random() < 0.5 else -0.4,
    }
    trend = rng.choice(["auto", "none"])
    process = BinningProcess(
        [name],
        special_codes=[CODE],
        max_n_prebins=6,
        min_prebin_size=0.06,
        binning_fit_params={name: {"monotonic_trend": None if trend == "none" else trend}},
        binning_transform_params={name: params},
    )
    return Recipe((process,), is_flat=True, has_codes=True, takes_missing=True)


def filled(recipe: Recipe, rng: np.random.Generator, own: Any) -> Recipe:
    """Put an imputer into a recipe, in front of it or behind a scaler, or behind a function."""
    how = str(rng.choice(["mean", "median", "constant", "most_frequent"]))
    value = float(rng.choice([0.0, 1.3, np.max(own) + 4.0])) if how == "constant" else None
    imputer = SimpleImputer(strategy=how, fill_value=value, add_indicator=bool(rng.random() < 0.5))
    if rng.random() < 0.2 and not recipe.is_positive:  # a code in place of what is missing
        imputer = SimpleImputer(missing_values=CODE, add_indicator=imputer.add_indicator)
        return Recipe((imputer, *recipe.steps), recipe.is_flat, has_codes=True)
    place = 0
    kinds, chance = (StandardScaler, RobustScaler, FunctionTransformer), rng.random()
    if isinstance(recipe.steps[0], kinds) and chance < 0.4:
        place = 1
    fills = place == 0 or not isinstance(recipe.steps[0], FunctionTransformer)
    steps = (*recipe.steps[:place], imputer, *recipe.steps[place:])
    if not recipe.takes_missing and any(isinstance(s, PolynomialFeatures) for s in steps):
        imputer.set_params(add_indicator=False)  # it would be multiplied
    return Recipe(
        steps,
        recipe.is_flat,
        recipe.is_positive,
        takes_missing=True,
        fills_at=place if fills else None,
    )


@dataclass
class Drawn:
    """A random column: its values, its steps, what people can do about it."""

    name: str
    column: Any
    steps: Any
    feature: Any
    candidates: list[Any] = field(default_factory=list)
    recipe: Recipe | None = None
    codes: tuple[Any, ...] = ()


def written(counts: Any, step: float) -> list[float]:
    """Return multiples of a step as a person would write them."""
    return [float(int(k) * Decimal(repr(step))) for k in counts]


def draw_number(name: str, rng: np.random.Generator, with_evidence: bool) -> Drawn:
    step = float(rng.choice([1, 1, 0.5, 0.1, 2, 0.25]))
    count = int(rng.integers(5, 9))
    if with_evidence and HAS_OPTBINNING:
        recipe = evidence(name, rng)
    else:
        family = FLAT if rng.random() < 0.45 else SMOOTH
        recipe = family[int(rng.integers(len(family)))]
    first = 0 if recipe.is_positive else int(rng.integers(-4, 3))
    grid = np.array(written(range(first, first + count), step))
    values = rng.choice(grid, N)
    off = rng.random(N) < 0.25  # some stand between two steps
    values = np.where(off, values + np.round(rng.uniform(0.05, 0.95, N) * step, 3), values)
    if not recipe.takes_missing and rng.random() < 0.5:
        recipe = filled(recipe, rng, values)
    if recipe.takes_missing:
        values[rng.random(N) < 0.25] = np.nan
    if recipe.has_codes:
        values[rng.random(N) < 0.15] = CODE
    feature = number_feature(name, rng, recipe, step, grid)
    least = first if recipe.is_positive else first - 3
    candidates = written(range(least, first + count + 4), step)
    steps = make_pipeline(*recipe.steps) if len(recipe.steps) > 1 else recipe.steps[0]
    codes = (CODE,) if recipe.has_codes else ()
    return Drawn(name, values, steps, feature, candidates, recipe, codes)


def number_feature(
    name: str, rng: np.random.Generator, recipe: Recipe, step: float, grid: Any
) -> NumberFeature:
    ends = grid[int(rng.integers(0, 3))], grid[-int(rng.integers(1, 3))]
    if rng.random() < 0.3:  # ends off the grid, or beyond what anybody has
        ends = ends[0] - 0.3 * step, ends[1] + 1.7 * step
    is_open = recipe.is_flat and rng.random() < 0.4
    whole = step == 1.0 and rng.random() < 0.7
    stepless = recipe.is_flat and not whole and rng.random() < 0.3
    limits = rng.choice([0.0, 1.0, 1.0], 2)
    far = [
        None if rng.random() < 0.7 else float(step * limit * rng.integers(1, 4) + 0.4 * step)
        for limit in limits
    ]
    return NumberFeature(
        name,
        lower=None if is_open else float(ends[0]),
        upper=None if is_open else float(ends[1]),
        direction=str(rng.choice(["any", "any", "any", "up", "down"])),
        max_increase=far[0],
        max_decrease=far[1],
        step=None if stepless or (whole and rng.random() < 0.5) else step,
        integer=whole,
        cost=float(rng.choice([0.2, 0.37, 1.0]) / step),
        fixed_cost=float(rng.choice([0.0, 0.0, 0.1, 0.25])),
        provide_cost=float(rng.choice([0.0, 0.15, 0.4])) if rng.random() < 0.8 else None,
    )


def draw_category(name: str, rng: np.random.Generator) -> Drawn:
    levels = LEVELS[: int(rng.integers(2, 5))]
    values = np.array(rng.choice(levels, N), dtype=object)
    values[:: int(rng.integers(2, 5))] = levels[0]  # so that others are rare
    has_holes = bool(rng.random() < 0.4)
    if has_holes:
        values[rng.random(N) < 0.2] = np.nan
    coders: list[Any] = [
        OneHotEncoder(sparse_output=False),
        OneHotEncoder(drop="first", handle_unknown="ignore"),
        OneHotEncoder(min_frequency=15, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(max_categories=2, handle_unknown="ignore"),
        OneHotEncoder(drop="if_binary", min_frequency=0.2),
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        ),
        TargetEncoder(cv=3, random_state=0),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ]
    order, how = None, "switch"
    if rng.random() < 0.3:
        order, how = tuple(levels), str(rng.choice(["switch", "step"]))
    moves = None
    if rng.random() < 0.3:
        moves = {a: [b for b in levels if b != a and rng.random() < 0.7] for a in levels}
    cost: Any = float(rng.choice([0.3, 0.8]))
    if how == "switch" and rng.random() < 0.3:
        cost = {(a, b): float(rng.choice([0.2, 0.9])) for a in levels for b in levels if a != b}
    feature = CategoryFeature(
        name,
        levels,
        order=order,
        direction="any" if order is None else str(rng.choice(["any", "up"])),
        cost_by=how,
        moves=moves,
        allowed=levels[:-1] if rng.random() < 0.2 else None,
        immutable=bool(rng.random() < 0.1),
        cost=cost,
        fixed_cost=float(rng.choice([0.0, 0.1])),
        provide_cost=0.25 if rng.random() < 0.8 else None,
    )
    coder = coders[int(rng.integers(len(coders)))]
    return Drawn(name, values, coder, feature, list(levels))


@dataclass
class World:
    """A fitted pipeline, an action set, and what each column was drawn as."""

    drawn: dict[str, Drawn]
    table: pd.DataFrame
    pipeline: Pipeline
    actions: ActionSet

    @property
    def coef(self) -> Any:
        return self.pipeline[-1].coef_[0]

    @property
    def intercept(self) -> float:
        return float(self.pipeline[-1].intercept_[0])

    def encode(self, rows: pd.DataFrame) -> Any:
        """Return what the pipeline makes of rows; NaN where it refuses one."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return np.asarray(self.pipeline[:-1].transform(rows), dtype=np.float64)
            except ValueError:
                if len(rows) == 1:
                    return np.full((1, len(self.coef)), np.nan)
        half = len(rows) // 2
        return np.vstack([self.encode(rows.iloc[:half]), self.encode(rows.iloc[half:])])

    def codes(self, name: str, values: list[Any], person: pd.DataFrame) -> Any:
        """Return what becomes of values of one column, in rows that are otherwise a person's."""
        rows = pd.concat([person] * len(values), ignore_index=True)
        rows[name] = pd.Series(values, dtype=object).astype(person[name].dtype)
        return self.encode(rows)[:, self.pipeline[0].output_indices_[name]]


def draw_world(rng: np.random.Generator, n_numbers: int = 3, with_evidence: bool = False) -> World:
    """Draw a table, a pipeline that can be read and is fitted to it, and an action set.

    Some cannot: a spline, say, of a flag that nobody has.
    """
    while True:
        world = _draw_any_world(rng, n_numbers, with_evidence)
        with contextlib.suppress(ValueError):
            Encoding.of(world.pipeline)
            return world


def _draw_any_world(rng: np.random.Generator, n_numbers: int, with_evidence: bool) -> World:
    drawn = [draw_number(f"n{k}", rng, with_evidence and k == 0) for k in range(n_numbers)]
    drawn.append(draw_category("home", rng))
    table = pd.DataFrame({each.name: each.column for each in drawn})
    known = table[[each.name for each in drawn[:-1]]].replace(CODE, np.nan)
    score = (known.fillna(known.mean()) / known.std().clip(lower=0.1)) @ rng.normal(size=n_numbers)
    wanted = score + 0.8 * (table["home"] == "a") + 0.5 * rng.normal(size=N)
    columns = ColumnTransformer(
        [(each.name, each.steps, [each.name]) for each in drawn], sparse_threshold=0.0
    )
    model = LogisticRegression(C=float(rng.choice([0.3, 3.0])), max_iter=1000)
    pipeline = make_pipeline(columns, model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        pipeline.fit(table, wanted > wanted.median())
    actions = ActionSet(
        [each.feature for each in drawn], max_changes=[None, None, 1, 2][int(rng.integers(4))]
    )
    return World({each.name: each for each in drawn}, table, pipeline, actions)


def draw_set(rng: np.random.Generator, kind: str, world: World) -> Any:
    d = len(world.coef)
    if kind == "ellipsoid":
        root = rng.normal(size=(d + 1, 3))
        return Ellipsoid(root @ root.T, float(rng.choice([0.02, 0.08])))
    if kind == "list":
        moved = world.coef + 0.15 * rng.normal(size=(4, d))
        return ModelList([(coef, world.intercept) for coef in moved])
    return NormBall(float(kind), float(rng.choice([0.01, 0.05, 0.15])))


# ------------------------------------------------------------------ every raw row


def presumed(world: World, name: str) -> float | None:
    """Return what the pipeline takes a missing number for; None: for no number."""
    recipe = world.drawn[name].recipe
    if recipe is None or recipe.fills_at is None:
        return None
    steps = world.pipeline[0].named_transformers_[name]
    steps = [step for _, step in steps.steps] if isinstance(steps, Pipeline) else [steps]
    value = float(steps[recipe.fills_at].statistics_[0])
    for step in steps[: recipe.fills_at]:
        value = float(step.inverse_transform([[value]])[0, 0])
    return value


@dataclass
class Options:
    """What some people may make of one feature: a row for each person, a column for each value."""

    values: Any
    costs: Any  # inf where it is not allowed
    moves: Any
    codes: Any  # encoded


def edges_of(world: World, name: str) -> list[float]:
    """Return floats on both sides of every jump of a flat column, found by bisection."""
    person = world.table.dropna().iloc[[0]]
    own = np.unique(world.table[name].dropna())
    room = 2.0 * (own[-1] - own[0])  # a square has edges on both sides
    values = np.append(np.linspace(own[0] - room, own[-1] + room, 1601) + 1e-5, own)
    values = np.unique(values)
    made = world.codes(name, values.tolist(), person)
    is_there = np.isfinite(made).all(axis=1)
    values, made = values[is_there], made[is_there]
    jumps = np.flatnonzero((made[1:] != made[:-1]).any(axis=1))
    left, right, at_left = values[jumps], values[jumps + 1], made[jumps]
    while len(jumps):
        middle = left + 0.5 * (right - left)
        if ((middle == left) | (middle == right)).all():
            break
        same = (world.codes(name, middle.tolist(), person) == at_left).all(axis=1)
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return [*left.tolist(), *right.tolist()]


def candidates(world: World, name: str) -> list[Any]:
    """Return all values that are tried of a feature, those that people have aside."""
    drawn, feature = world.drawn[name], world.actions[name]
    if isinstance(feature, CategoryFeature):
        return drawn.candidates
    if feature.grid > 0.0:
        if feature.integer:
            return [value for value in drawn.candidates if value == int(value)]
        return drawn.candidates
    ends = [feature.lower, feature.upper, presumed(world, name)]
    return [*edges_of(world, name), *[end for end in ends if end is not None], 0.0]


def options_of(world: World, people: pd.DataFrame, name: str) -> Options:
    """Try every value of one feature for some people; their own comes first."""
    drawn, feature = world.drawn[name], world.actions[name]
    tried = list(dict.fromkeys(v for v in candidates(world, name) if v not in drawn.codes))
    n, m = len(people), 1 + len(tried)
    own = people[name].to_numpy()
    values = np.empty((n, m), dtype=object)
    values[:, 0], values[:, 1:] = own, tried
    before = people.iloc[np.repeat(np.arange(n), m)].reset_index(drop=True)
    after = before.copy()
    after[name] = pd.Series(values.ravel(), dtype=object).astype(before[name].dtype)
    there = world.encode(people)[:, world.pipeline[0].output_indices_[name]]
    codes = np.empty((n, m, there.shape[1]))
    codes[:, 0], codes[:, 1:] = there, world.codes(name, tried, people.iloc[[0]])
    is_wrong = np.zeros(n * m, dtype=bool)
    is_wrong[list(check_changes(world.actions, before, after))] = True
    costs = np.array([_costs(world, name, value, values[i]) for i, value in enumerate(own)])
    costs[is_wrong.reshape(n, m)] = np.inf
    costs[~np.isfinite(codes).all(axis=2)] = np.inf
    costs[np.isin(own.astype(object), list(drawn.codes)), 1:] = np.inf  # no number to start from
    costs[:, 0] = 0.0
    moves = np.array([[not _same(v, values[i, 0]) for v in values[i]] for i in range(n)])
    if isinstance(feature, NumberFeature) and feature.grid == 0.0:
        costs[_is_beyond(feature, own, values.astype(np.float64))] = np.inf
    return Options(values, costs, moves, codes)


def _is_beyond(feature: NumberFeature, own: Any, values: Any) -> Any:
    """Say which values are not allowed to the last bit, where the checker leaves some room."""
    change = values - own[:, None]
    wrong = (change < 0.0) & (feature.direction == "up")
    wrong |= (change > 0.0) & (feature.direction == "down")
    low, high = feature.lower, feature.upper
    wrong |= (values < (-np.inf if low is None else low)) & (change < 0.0)
    return wrong | ((values > (np.inf if high is None else high)) & (change > 0.0))


def _same(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


def _costs(world: World, name: str, own: Any, values: Any) -> Any:
    """Return what the values cost somebody, from raw numbers."""
    feature, is_gone = world.actions[name], own != own
    if isinstance(feature, CategoryFeature):
        if is_gone:
            return [0.0 if v != v else feature.provide_cost or 0.0 for v in values]
        fee, cost = feature.fixed_cost, feature.cost
        if isinstance(cost, dict):
            return [0.0 if v == own else cost[own, v] + fee for v in values]
        away = [1] * len(values)
        if feature.cost_by == "step":
            away = [abs(LEVELS.index(v) - LEVELS.index(own)) for v in values]
        return [0.0 if v == own else cost * k + fee for v, k in zip(values, away, strict=True)]
    values = values.astype(np.float64)
    if not is_gone:
        return np.where(
            values == own, 0.0, feature.cost * np.abs(values - own) + feature.fixed_cost
        )
    taken_for = presumed(world, name)
    away = 0.0 if taken_for is None else np.abs(values - taken_for)
    given = (feature.provide_cost or 0.0) + feature.cost * away
    return np.where(np.isnan(values), 0.0, given)


@dataclass
class Everything:
    """All raw rows that a person could become: encoded, with the cost of each."""

    points: Any
    costs: Any


def everything(world: World, options: dict[str, Options], i: int) -> Everything:
    kept = {name: np.flatnonzero(np.isfinite(o.costs[i])) for name, o in options.items()}
    grids = np.meshgrid(*kept.values(), indexing="ij")
    chosen = {name: grid.ravel() for name, grid in zip(kept, grids, strict=True)}
    costs, moves = 0.0, 0
    points = np.empty((grids[0].size, len(world.coef)))
    for name, which in chosen.items():
        option = options[name]
        costs = costs + option.costs[i, which]
        moves = moves + option.moves[i, which]
        points[:, world.pipeline[0].output_indices_[name]] = option.codes[i, which]
    most = world.actions.max_changes
    fine = np.ones(len(points), dtype=bool) if most is None else moves <= most
    return Everything(points[fine], np.asarray(costs)[fine])


def least_price(world: World, rows: Everything, robust_to: Any, goal: dict[str, float]) -> Any:
    """Return the least and the most that the best raw row can cost, but for rounding."""
    score = robust_to.worst_score(rows.points, world.coef, world.intercept)
    if "cost_weight" in goal:
        best = (np.logaddexp(0.0, -score) + goal["cost_weight"] * rows.costs).min()
        return best, best
    target = math.log(goal["guarantee"] / (1.0 - goal["guarantee"]))
    return tuple(rows.costs[score >= target + room].min(initial=np.inf) for room in (-1e-10, 1e-10))


def raw_cost(world: World, before: Any, after: Any) -> float:
    """Return what a change costs, from raw values."""
    total = 0.0
    for name in world.drawn:
        values = np.array([after[name]], dtype=object)
        if not _same(before[name], after[name]):
            total += float(_costs(world, name, before[name], values)[0])
    return total
