"""Pass every kind of model to every function that takes one, and write the table of docs/models.md.

    python docs/models.py            write the table
    python docs/models.py --check    only check whether the table is up to date

Each model is fitted on a small table, and the people it refuses ask what to change. "exact" means
that every recommendation was proven, and costs as much as the cheapest of all raw rows, tried one
by one. Anything else is an error, or a refusal, whose first words are shown.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
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
from sklearn.svm import LinearSVC

import holdfast
from holdfast import sets
from holdfast.models.encoding import Curve, Encoding, Number

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- the table begins -->", "<!-- the table ends -->"
NUMBERS = ["age", "amount"]
LEVELS = {"home": ["free", "own", "rent"], "town": list("abcdef")}
BALL = holdfast.NormBall(p=1, radius=0.03)
PEOPLE = 12


class Kind(NamedTuple):
    """A kind of model: what to call it, how to fit one, and on what."""

    group: str
    name: str
    fit: Callable[[pd.DataFrame, Any], Any]
    has_missing: bool = False
    only_numbers: bool = False
    is_named: bool = True


def make_table(has_missing: bool) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(7)
    n = 400
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n).astype(float),
            "amount": rng.integers(1, 11, n).astype(float),
            "home": rng.choice(LEVELS["home"], n),
            "town": rng.choice(LEVELS["town"], n, p=[0.4, 0.3, 0.2, 0.07, 0.02, 0.01]),
        }
    )
    score = 0.4 * (table["age"] - 24.5) - 0.4 * (table["amount"] - 5.5)
    score += (table["home"] == "own") + 0.5 * (table["town"] == "a") - 0.7
    good = (score + rng.logistic(size=n) > 0.0).to_numpy().astype(int)
    if has_missing:
        table.loc[rng.random(n) < 0.2, "amount"] = np.nan
        table.loc[rng.random(n) < 0.1, "home"] = None
    return table, good


def columns(
    numbers: Any = None, home: Any = None, town: Any = None, after: Any = None
) -> Callable[[pd.DataFrame, Any], Any]:
    """Return how to fit a pipeline with these encoders of its columns."""

    def fit(table: pd.DataFrame, good: Any) -> Any:
        encoders = make_column_transformer(
            (numbers or StandardScaler(), NUMBERS),
            (home or OneHotEncoder(), ["home"]),
            (town or OneHotEncoder(), ["town"]),
        )
        return make_pipeline(
            encoders, LogisticRegression(max_iter=1000) if after is None else after
        ).fit(table, good)

    return fit


def _bins(encode: str) -> KBinsDiscretizer:
    return KBinsDiscretizer(4, encode=encode, strategy="uniform")


def _wrapped(wrap: Callable[[Any], Any]) -> Callable[[pd.DataFrame, Any], Any]:
    def fit(table: pd.DataFrame, good: Any) -> Any:
        return wrap(columns()(table, good)).fit(table, good)

    return fit


def _binning(metric: str) -> Callable[[pd.DataFrame, Any], Any]:
    def fit(table: pd.DataFrame, good: Any) -> Any:
        from optbinning import BinningProcess

        process = BinningProcess(
            list(table),
            categorical_variables=list(LEVELS),
            binning_transform_params={name: {"metric": metric} for name in table},
        )
        return make_pipeline(process, LogisticRegression()).fit(table, good)

    return fit


def _scorecard(table: pd.DataFrame, good: Any) -> Any:
    from optbinning import BinningProcess, Scorecard

    process = BinningProcess(list(table), categorical_variables=list(LEVELS))
    return Scorecard(process, LogisticRegression()).fit(table, good)


def _boosted(interactions: int) -> Callable[[pd.DataFrame, Any], Any]:
    def fit(table: pd.DataFrame, good: Any) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        model = ExplainableBoostingClassifier(
            interactions=interactions, max_rounds=200, outer_bags=1, n_jobs=1, random_state=0
        )
        return model.fit(table, good)

    return fit


def _gam(table: pd.DataFrame, good: Any) -> Any:
    from pygam import LogisticGAM, s

    return LogisticGAM(s(0, n_splines=6) + s(1, n_splines=6)).fit(table[NUMBERS].to_numpy(), good)


def _statsmodels(name: str) -> Callable[[pd.DataFrame, Any], Any]:
    def fit(table: pd.DataFrame, good: Any) -> Any:
        import statsmodels.api as sm

        X = sm.add_constant(table[NUMBERS])
        if name == "GLM":
            return sm.GLM(good, X, family=sm.families.Binomial()).fit()
        return getattr(sm, name)(good, X).fit(disp=0)

    return fit


_FILL = SimpleImputer(strategy="most_frequent")
_LOG = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
_OWN = make_pipeline(FunctionTransformer(lambda X: X**2), StandardScaler())
_EACH = make_column_transformer(*((PolynomialFeatures(2), [k]) for k in range(len(NUMBERS))))
_LAST = {"max_categories": 3, "handle_unknown": "infrequent_if_exist"}


def _filled(then: Any, **how: Any) -> Callable[[pd.DataFrame, Any], Any]:
    return columns(make_pipeline(SimpleImputer(**how), then), OneHotEncoder())


def kinds() -> list[Kind]:
    """List every kind of model that is tried."""
    found: list[Kind] = []

    def add(group: str, models: dict[str, Any], **how: Any) -> None:
        found.extend(Kind(group, name, fit, **how) for name, fit in models.items())

    coders = (TargetEncoder(), TargetEncoder())
    scaled = {
        "StandardScaler, OneHotEncoder": columns(),
        "MinMaxScaler, OrdinalEncoder": columns(MinMaxScaler(), OrdinalEncoder()),
        "RobustScaler, TargetEncoder": columns(RobustScaler(), *coders),
        "OneHotEncoder(min_frequency=40)": columns(town=OneHotEncoder(min_frequency=40)),
        "OneHotEncoder(max_categories=3)": columns(town=OneHotEncoder(**_LAST)),
        "Normalizer": columns(Normalizer()),
    }
    cut = make_pipeline(StandardScaler(), _bins("onehot-dense"))
    binned = {
        "KBinsDiscretizer, one-hot": columns(_bins("onehot-dense")),
        "KBinsDiscretizer, ordinal": columns(_bins("ordinal")),
        "StandardScaler, then KBinsDiscretizer": columns(cut),
        "Binarizer": columns(Binarizer(threshold=5.0)),
        "optbinning.BinningProcess, weights of evidence": _binning("woe"),
        "optbinning.BinningProcess, indices": _binning("indices"),
        "optbinning.Scorecard": _scorecard,
    }
    bent = {
        "FunctionTransformer(np.log1p)": columns(_LOG),
        "FunctionTransformer of a function of one's own": columns(_OWN),
        "PowerTransformer": columns(PowerTransformer()),
        "QuantileTransformer": columns(QuantileTransformer(n_quantiles=9)),
        "SplineTransformer": columns(SplineTransformer(n_knots=4)),
        "MinMaxScaler(clip=True)": columns(MinMaxScaler(clip=True)),
        "PolynomialFeatures, each feature by itself": columns(_EACH),
        "PolynomialFeatures, products of features": columns(PolynomialFeatures(2)),
    }
    number, level = make_pipeline(SimpleImputer(), StandardScaler()), (_FILL, OneHotEncoder())
    missing = {
        "SimpleImputer": columns(number, make_pipeline(*level)),
        "SimpleImputer(add_indicator=True)": _filled(StandardScaler(), add_indicator=True),
        "SimpleImputer, then KBinsDiscretizer": _filled(_bins("onehot-dense")),
        "optbinning.BinningProcess, weights of evidence": _binning("woe"),
        "KNNImputer": columns(make_pipeline(KNNImputer(), StandardScaler()), OneHotEncoder()),
    }
    grid, isotonic = {"logisticregression__C": [1.0]}, {"method": "isotonic", "ensemble": False}
    follows = {
        "threshold of 0.6": _wrapped(lambda m: FixedThresholdClassifier(m, threshold=0.6)),
        "calibrated, sigmoid": _wrapped(lambda m: CalibratedClassifierCV(m, ensemble=False)),
        "calibrated, isotonic": _wrapped(lambda m: CalibratedClassifierCV(m, **isotonic)),
        "calibrated, several folds": _wrapped(lambda m: CalibratedClassifierCV(m, cv=3)),
        "GridSearchCV": _wrapped(lambda m: GridSearchCV(m, grid, cv=2)),
    }
    others = {
        "SGDClassifier(loss='log_loss')": columns(
            after=SGDClassifier(loss="log_loss", random_state=0)
        ),
        "LinearSVC": columns(after=LinearSVC()),
        "RandomForestClassifier": columns(after=RandomForestClassifier(20, random_state=0)),
    }
    additive = {
        "interpret.ExplainableBoostingClassifier(interactions=0)": _boosted(0),
        "interpret.ExplainableBoostingClassifier with interactions": _boosted(2),
    }
    add("Scalers and encoders", scaled)
    add("Bins and scorecards", binned)
    add("Transformed numbers", bent)
    add("Missing values", missing, has_missing=True)
    add("What follows the score", follows)
    add("Classifiers", others)
    add("Additive models", additive)
    add("Additive models", {"pygam.LogisticGAM": _gam}, only_numbers=True, is_named=False)
    results = {f"statsmodels.{name}": _statsmodels(name) for name in ("Logit", "Probit", "GLM")}
    add("Additive models", results, only_numbers=True)
    return found


# ------------------------------------------------------------------ trying them


class World(NamedTuple):
    """A fitted model, those whom it refuses, and what they can do."""

    model: Any
    table: pd.DataFrame
    people: pd.DataFrame
    actions: holdfast.ActionSet
    favorable: Any


def make_world(kind: Kind) -> World:
    table, good = make_table(kind.has_missing)
    table = table[NUMBERS] if kind.only_numbers else table
    model = kind.fit(table, good)
    named = table if kind.is_named else table.set_axis([f"x{j}" for j in range(2)], axis=1)
    actions = holdfast.ActionSet.from_data(named, fixed_cost=0.05)
    for name in named:
        if named[name].isna().any():
            actions.set(name, provide_cost=0.3)
    score = 0.4 * (table["age"] - 24.5) - 0.4 * (table["amount"].fillna(5.5) - 5.5)
    return World(model, named, named[score < 0.0][:PEOPLE], actions, 1)


def try_recourse(world: World) -> str:
    """Recommend, and compare with every raw row, tried one by one."""
    recourse = holdfast.RobustRecourse(
        world.model,
        favorable_class=world.favorable,
        robust_to=BALL,
        actions=world.actions,
        guarantee=guarantee_of(world),
    )
    given = world.people if _knows_names(world) else world.people.to_numpy()
    result = recourse.recommend(given)
    told = result.to_frame()
    question = result._question
    encoding, goal = question.encoding, question.goal
    rows = every_row(world.table)
    points = encoding.encode(rows)
    model: Any = encoding.model
    enough = BALL.worst_score(points, model.coef, model.intercept) >= goal.amount
    for k in range(len(world.people)):
        costs = costs_of(world.people.iloc[k], rows, world.actions, encoding)
        best, found = costs[enough].min(initial=np.inf), told["cost"].iloc[k]
        found = np.inf if np.isnan(found) else found
        if not (best == found or abs(best - found) <= 1e-8 * (1.0 + best)):
            raise AssertionError(f"person {k}: {found} found, but {best} is the least")
        if told["status"].iloc[k] == "gap open":
            raise AssertionError(f"person {k}: not proven")
    return f"exact ({len(world.people)} people, {len(rows):,} raw rows each)"


def guarantee_of(world: World) -> float:
    """A margin has two sides, and no probabilities."""
    has_margin = hasattr(world.model, "decision_function")
    return 0.5 if has_margin and not hasattr(world.model, "predict_proba") else 0.6


def _knows_names(world: World) -> bool:
    return not str(world.table.columns[0]).startswith("x")


def every_row(table: pd.DataFrame) -> pd.DataFrame:
    values = [sorted(table[name].dropna().unique()) for name in table]
    values = [v + [None] * bool(table[n].isna().any()) for v, n in zip(values, table, strict=True)]
    rows = pd.DataFrame(list(itertools.product(*values)), columns=table.columns)
    return rows.astype({name: float for name in table if table[name].dtype.kind == "f"})


def costs_of(
    person: pd.Series[Any], rows: pd.DataFrame, actions: holdfast.ActionSet, encoding: Encoding
) -> Any:
    """What it costs a person to become each row; inf where a value would have to get lost."""
    total = np.zeros(len(rows))
    for name in rows:
        feature, now = actions[name], person[name]
        lost, stays = rows[name].isna().to_numpy(), (rows[name] == now).to_numpy()
        if pd.isna(now):
            fee = np.full(len(rows), feature.provide_cost)
            part = encoding.features.get(name)
            if isinstance(part, Number | Curve) and part.fill is not None:
                fee = fee + feature.cost * np.abs(rows[name].to_numpy() - part.fill)
            total += np.where(lost, 0.0, fee)
        elif isinstance(now, str):
            total += np.where(stays, 0.0, np.where(lost, np.inf, feature.cost))
        else:
            away = feature.cost * np.abs(rows[name].to_numpy() - now) + feature.fixed_cost
            total += np.where(stays, 0.0, np.where(lost, np.inf, away))
    return total


def try_set(world: World) -> str:
    """Make a set of models around the fitted one."""
    given = world.table if _knows_names(world) else world.table.to_numpy()
    sets.fisher(world.model, given, favorable_class=world.favorable)
    return "exact"


def try_find(world: World) -> str:
    """Ask for recourse in the columns that the classifier reads, without actions."""
    given = world.people if _knows_names(world) else world.people.to_numpy()
    result = holdfast.find_recourse(
        given,
        world.model,
        robust_to=BALL,
        guarantee=guarantee_of(world),
        favorable_class=world.favorable,
    )
    if result.of_surrogate or not all(status.is_proven for status in result.status):
        raise AssertionError("neither proven nor refused")
    return "exact"


DOORS = {"RobustRecourse": try_recourse, "sets.fisher": try_set, "find_recourse": try_find}


def outcome(door: Callable[[World], str], world: World) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return door(world)
    except (ValueError, TypeError) as error:
        said = " ".join(str(error).split()).partition("; ")[0]
        return f"refused: {said if len(said) <= 120 else said[:117] + '...'}"


def make_rows() -> str:
    lines = ["| model | " + " | ".join(f"`{door}`" for door in DOORS) + " |"]
    lines.append("|---" * (len(DOORS) + 1) + "|")
    group = ""
    for kind in kinds():
        if kind.group != group:
            group = kind.group
            lines.append(f"| **{group}** |" + " |" * len(DOORS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            world = make_world(kind)
        said = [outcome(door, world).replace("|", "\\|") for door in DOORS.values()]
        print(f"{kind.name}: {said}", file=sys.stderr)
        lines.append(f"| {kind.name} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n{make_rows()}\n{END}{rest.split(END)[1]}"
    if asked.check:
        same = page == PAGE.read_text("utf-8")
        print("up to date" if same else "docs/models.md differs from what this command writes")
        return 0 if same else 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
