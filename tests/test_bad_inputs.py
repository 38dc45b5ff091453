"""Wrong arguments, through every public door: the error names the argument that is wrong.

Each case is a call, a keyword with a wrong value, and the name that the message must hold.
"""

from __future__ import annotations

import decimal
import functools
import math
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from torch import nn

import holdfast
from holdfast import ActionSet, NormBall, RobustRecourse
from holdfast.actions import AtMost, CategoryFeature, Follows, Linear, NumberFeature, Product, Ratio
from holdfast.cli import main
from holdfast.datasets import (
    load_sba,
    load_south_german,
    make_gaussians,
)
from holdfast.discrete import (
    DiscreteProblem,
    Group,
    Links,
    largest_reachable_score,
    solve_discrete,
    solve_linked,
)
from holdfast.models import LinearModel, as_model
from holdfast.models.linearise import Lime, SmoothGrad
from holdfast.models.network import Network
from holdfast.models.networks import (
    judge_network,
    network_price,
    population_worst_network,
    worst_network,
)
from holdfast.paper.algorithm1 import Algorithm1
from holdfast.paper.folds import published_sample, sba_folds
from holdfast.paper.shift import german_future
from holdfast.paper.training import train_network
from holdfast.paper.worst_network_as_published import published_worst_network
from holdfast.problem import RecourseProblem
from holdfast.problem.losses import LOSSES, Loss, get_loss

WRONG = (ValueError, TypeError, ImportError, FileNotFoundError, NotADirectoryError)
HUGE = 10**400
NAN = math.nan

POINTS = np.array([[0.0, 2.0], [1.0, 0.0], [-1.0, 1.0]])
FRAME = pd.DataFrame(POINTS, columns=["a", "b"], index=["x", "y", "z"])
BALL = NormBall(p=1, radius=0.1)
PROBLEM = {"X": POINTS, "coef": [1.0, -0.5], "intercept": -1.0, "robust_to": BALL}
X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X @ [1.0, -1.0] > 0.0).astype(int)


@functools.cache
def fitted() -> LogisticRegression:
    return LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b"]), Y == 1)


@functools.cache
def network() -> Network:
    torch.manual_seed(0)
    return Network(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double())


@functools.cache
def problem() -> RecourseProblem:
    return RecourseProblem.build(**PROBLEM)


@functools.cache
def solved() -> holdfast.RecourseResult:
    return holdfast.solve(**PROBLEM, guarantee=0.5)


@functools.cache
def curve() -> holdfast.continuous.frontier.Frontier:
    return holdfast.frontier(POINTS[0], [1.0, -0.5], -1.0, robust_to=BALL)


def discrete(**other: Any) -> DiscreteProblem:
    base = RecourseProblem.build([[0.0, 1.0, 0.0]], [1.0, -1.0, 0.5], -2.5, robust_to=BALL)
    arguments = {
        "base": base,
        "step": np.array([[1.0, 0.0, 0.0]]),
        "anchor": np.zeros((1, 3)),
        "groups": [Group(np.array([1, 2]), np.eye(2))],
        "current": np.array([[0]]),
        "level_costs": [np.array([[0.0, 1.0]])],
    }
    return DiscreteProblem(**{**arguments, **other})


def links(**other: Any) -> Links:
    arguments = {
        "matrix": np.array([[1.0, 0.0, 0.0]]),
        "lower": np.zeros((1, 1)),
        "upper": np.full((1, 1), 9.0),
    }
    return Links(**{**arguments, **other})


def actions() -> ActionSet:
    return ActionSet.from_data(pd.DataFrame(X, columns=["a", "b"]))


def recommend(X: Any = FRAME, model: Any = None, **other: Any) -> Any:
    settings = {"robust_to": BALL, "actions": actions(), "guarantee": 0.5, **other}
    return RobustRecourse(fitted() if model is None else model, **settings).recommend(X)


def recommended() -> Any:
    return _recommended()


@functools.cache
def _recommended() -> Any:
    return recommend()


def find(X: Any = POINTS, model: Any = ([1.0, -0.5], -1.0), **other: Any) -> Any:
    goal = {} if {"cost_weight", "guarantee"} & set(other) else {"cost_weight": 0.1}
    return holdfast.find_recourse(X, model, **{"robust_to": BALL, **goal, **other})


def find_network(**other: Any) -> Any:
    return find(model=network(), **{"linearise": "gradient", **other})


def calibrate(**other: Any) -> Any:
    arguments = {"model": fitted(), "X": pd.DataFrame(X, columns=["a", "b"]), "y": Y == 1}
    wanted = {"survival": 0.5, "confidence": 0.5, "n_models": 20, "families": ["l2"]}
    return holdfast.calibrate(**{**arguments, **wanted, **other})


def made_set(make: Any, **other: Any) -> Any:
    arguments = {"model": fitted(), "X": pd.DataFrame(X, columns=["a", "b"]), "y": Y == 1}
    if make is holdfast.sets.fisher:
        del arguments["y"]
    if make in (holdfast.sets.from_models, holdfast.sets.ellipsoid_from_models):
        del arguments["y"]
        arguments["models"] = [fitted(), fitted()]
    if make is holdfast.sets.rashomon:
        arguments["loss_increase"] = 0.01
    return make(**{**arguments, **other})


def solve(**other: Any) -> Any:
    goal = {} if {"cost_weight", "guarantee"} & set(other) else {"guarantee": 0.5}
    return holdfast.solve(**{**PROBLEM, **goal, **other})


def build(**other: Any) -> Any:
    return RecourseProblem.build(**{**PROBLEM, **other})


def frontier(**other: Any) -> Any:
    arguments = {"x": POINTS[0], "coef": [1.0, -0.5], "intercept": -1.0, "robust_to": BALL}
    return holdfast.frontier(**{**arguments, **other})


def solve_problem(**other: Any) -> Any:
    goal = {} if {"cost_weight", "guarantee"} & set(other) else {"guarantee": 0.5}
    return holdfast.continuous.solve.solve_problem(**{"problem": problem(), **goal, **other})


def solve_parts(**other: Any) -> Any:
    goal = {} if {"cost_weight", "guarantee"} & set(other) else {"guarantee": 0.5}
    return solve_discrete(**{"problem": discrete(), **goal, **other})


def solve_links(**other: Any) -> Any:
    goal = {} if {"cost_weight", "guarantee"} & set(other) else {"guarantee": 0.5}
    return solve_linked(**{"problem": discrete(), "links": links(), **goal, **other})


def judged(**other: Any) -> Any:
    return worst_network(**{"network": network(), "X": POINTS, "robust_to": BALL, **other})


def published(**other: Any) -> Any:
    arguments = {"network": network(), "X": POINTS, "robust_to": BALL}
    return published_worst_network(**{**arguments, **other})


def population(**other: Any) -> Any:
    arguments = {"network": network(), "X": POINTS, "robust_to": BALL}
    return population_worst_network(**{**arguments, **other})


def priced(**other: Any) -> Any:
    arguments = {"network": network(), "recourse": POINTS, "X": POINTS, "robust_to": BALL}
    return network_price(**{**arguments, "cost_weight": 0.1, **other})


def judge(**other: Any) -> Any:
    return judge_network(**{"result": solved(), "network": network(), **other})


def train(**other: Any) -> Any:
    return train_network(**{"X": X, "approved": Y, "epochs": 1, "hidden": (3,), **other})


def number(**settings: Any) -> Any:
    return NumberFeature(**{"name": "age", **settings})


def category(**settings: Any) -> Any:
    return CategoryFeature(**{"name": "home", "levels": ["own", "rent"], **settings})


def ball(**other: Any) -> Any:
    return NormBall(**{"p": 1, "radius": 0.1, **other})


def model_of(**other: Any) -> Any:
    return LinearModel(**{"coef": [1.0, 2.0], **other})


# What is no array of numbers, whoever asks for one
NO_ARRAYS = [
    "text",
    b"bytes",
    [["a", "b"]] * 3,
    [[1.0, 2.0], [3.0]],
    [[1j, 2.0]] * 3,
    sparse.csr_matrix(np.ones((3, 2))),
    sparse.coo_array(np.ones((3, 2))),
    np.zeros((3, 2), dtype="datetime64[D]"),
    np.zeros((3, 2), dtype="timedelta64[s]"),
    [[datetime(2020, 1, 1)] * 2] * 3,
    [[HUGE, 1.0]] * 3,
    np.zeros((2, 2, 2)),
    {1.0, 2.0},
    {"a": 1.0},
    object(),
    lambda: None,
    torch.ones((3, 2), requires_grad=True),
    pd.DataFrame({"a": ["u", "v", "w"], "b": [1.0, 2.0, 3.0]}),
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01"] * 3), "b": [1.0, 2.0, 3.0]}),
]
NO_POINTS = [
    *NO_ARRAYS,
    None,
    3.0,
    [1.0, 2.0],
    np.zeros((3, 0)),
    pd.DataFrame(index=range(3)),
    pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]),
]
NO_COEF = [
    *NO_ARRAYS,
    None,
    [1.0],
    [1.0, 2.0, 3.0],
    [1.0, NAN],
    [1.0, math.inf],
    np.ones((2, 2)),
    np.ones((3, 3)),
    pd.DataFrame(np.ones((3, 2)), columns=["a", "a"]),
]
NO_INTERCEPT = ["text", None, [1.0, 2.0], np.ones((3, 1)), NAN, math.inf, 1j, {}, HUGE, "1"]
NO_COSTS = [
    *NO_ARRAYS,
    [1.0],
    [1.0, 0.0],
    [1.0, -1.0],
    [NAN, 1.0],
    [math.inf, 1.0],
    np.ones((2, 2)),
    -1.0,
    0.0,
]
NO_BOUNDS = [
    "text",
    5.0,
    {},
    {"a": (0, 1)},
    [0.0],
    ([0.0, 0.0], [1.0, 1.0], [2.0, 2.0]),
    ([2.0, 0.0], [1.0, 1.0]),
    ([math.inf, 0.0], [math.inf, 1.0]),
    ([-math.inf, 0.0], [-math.inf, 1.0]),
    ([NAN, 0.0], [1.0, 1.0]),
    ([0.0], [1.0, 1.0]),
    (None, "x"),
    (sparse.eye(2), [1.0, 1.0]),
    (np.zeros((2, 2)), np.ones((2, 2))),
]
NO_BALL = [None, 1, "ball", (1, 0.1), {}, NormBall, NormBall(1, 0.1, scale=[1.0, 1.0, 1.0, 1.0])]
NO_LOSS = ["log", "Logistic", [], {}, 3, b"logistic", np.ones(3), ["logistic"], True]
NO_WEIGHT = [0.0, -1.0, NAN, math.inf, "0.1", 1j, [0.1], np.ones(1), np.ones(2), {}, True, HUGE]
NO_GUARANTEE = [
    0.0,
    1.0,
    1.5,
    -0.5,
    NAN,
    "half",
    0.5j,
    [0.5],
    np.array([0.5]),
    np.ones(2),
    True,
    {},
]
NO_THREADS = [0, 2.5, 2.0, True, "two", [], NAN, np.ones(1), HUGE]
NO_SEED = [-1, 1.5, "x", None, [], True, NAN, HUGE]
NO_COUNT = [0, -3, 2.5, "many", None, [], {}, True, NAN, math.inf]
NO_TOLERANCE = [-1.0, "x", None, NAN, math.inf, [], 1j, True]
NO_POSITIVE = [0.0, -1.0, "x", NAN, math.inf, [], {}, 1j, True, HUGE]
NO_FLAG = ["yes", 1, 0.0, None, []]
NO_NETWORK = [None, 3, "net", nn.Linear(2, 1), ([1.0, 2.0], 0.0)]
NO_NETWORK_POINTS = [
    None,
    "text",
    [1.0, 2.0],
    [[1.0, 2.0], [3.0]],
    np.ones((3, 5)),
    np.ones((2, 2, 2)),
    sparse.csr_matrix(np.ones((3, 2))),
    [["a", "b"]],
    [[1j, 2.0]],
]

SETS = [
    holdfast.sets.fisher,
    holdfast.sets.sandwich,
    holdfast.sets.rashomon,
    holdfast.sets.bootstrap,
    holdfast.sets.from_models,
    holdfast.sets.ellipsoid_from_models,
]

CASES: list[tuple[Any, str, list[Any], str]] = [
    # (call, argument, wrong values, what the message names)
    (ball, "p", [0, 0.5, -1, NAN, "1", None, [], {}, 1j, True, np.ones(1), HUGE], "p ="),
    (ball, "radius", [-0.1, NAN, math.inf, "x", None, [], 1j, True, np.ones(2), HUGE], "radius"),
    (ball, "scale", ["ab", 1.0, [-1.0], [NAN], [math.inf], [[1.0]], {}, {"a": 1}, [1j]], "scale"),
    (ball, "scale", [pd.Series([1.0]), sparse.eye(2), [[1.0], [1.0, 2.0]], [HUGE]], "scale"),
    (ball, "intercept", [-1.0, NAN, math.inf, "x", None, [], 1j, HUGE], "intercept"),
    *(
        (call, name, wrong, name)
        for call in (build, solve, find)
        for name, wrong in (
            ("X", NO_POINTS),
            ("feature_costs", NO_COSTS),
            ("bounds", NO_BOUNDS),
        )
    ),
    *((call, "coef", NO_COEF, "coef") for call in (build, solve)),
    *((call, "intercept", NO_INTERCEPT, "intercept") for call in (build, solve, frontier)),
    *((call, "robust_to", NO_BALL[:-1], "robust_to") for call in (build, solve, find, frontier)),
    *((call, "robust_to", NO_BALL[-1:], "scale") for call in (build, solve, find, frontier)),
    *((call, "loss", NO_LOSS, "loss") for call in (build, solve, find, frontier)),
    *((call, "loss", [None], "loss") for call in (build, solve, frontier)),
    *(
        (call, name, wrong, name)
        for call in (solve, solve_problem, find, solve_parts, solve_links, recommend)
        for name, wrong in (("cost_weight", NO_WEIGHT), ("guarantee", NO_GUARANTEE))
        if (call, name) != (recommend, "cost_weight")
    ),
    (recommend, "cost_weight", [0.1], "give exactly one"),
    (solve, "cost_weight", [None], "give exactly one"),
    (solve_problem, "problem", [None, 3, "x", POINTS, {}], "problem"),
    *(
        (call, "n_jobs", NO_THREADS, "n_jobs")
        for call in (solve, solve_problem, find, solve_parts, recommend, judged, published)
    ),
    (population, "n_jobs", NO_THREADS, "n_jobs"),
    (frontier, "x", ["text", None, [[1.0, 2.0], [3.0, 4.0]], np.zeros((2, 2, 2))], "x"),
    (frontier, "x", [["a", "b"], [NAN, 1.0], sparse.eye(2), [1j, 2.0], []], "x"),
    (frontier, "coef", [[1.0], "ab", None, sparse.eye(2), [NAN, 1.0]], "coef"),
    (lambda score: curve().at_score(score), "score", [NAN, "x", None, [], 1j, HUGE], "score"),
    (lambda score: curve().at_score(score), "score", [math.inf], "score"),
    (
        lambda probability: curve().at_guarantee(probability),
        "probability",
        NO_GUARANTEE,
        "guarantee",
    ),
    (
        lambda cost_weight: curve().at_cost_weight(cost_weight),
        "cost_weight",
        NO_WEIGHT,
        "cost_weight",
    ),
    (lambda loss: curve().at_cost_weight(0.1, loss), "loss", NO_LOSS, "loss"),
    (lambda n: curve().sample(n), "n", NO_COUNT, "n ="),
    (lambda max_score: curve().sample(5, max_score), "max_score", [NAN, "x", [], 1j, {}], "score"),
    (lambda loss: get_loss(loss), "loss", [*NO_LOSS, None], "loss"),
    # the other doors of find_recourse
    (find, "method", ["magic", [], {}, 3, object(), ["exact"], True], "method"),
    (find, "model", [None, 3, "x", [], {}, ([1.0],), ([1.0], 2.0, 3.0), object()], "model"),
    (find, "model", [(["a", "b"], 0.0), ([[1.0, 2.0], [3.0]], 0.0), (None, 0.0)], "coef"),
    (find, "model", [(sparse.eye(2), 0.0), ([NAN, 1.0], 0.0), ([1.0, 2.0], NAN)], "coef"),
    (find, "model", [([1.0, 2.0], "x"), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], 1j)], "intercept"),
    (find, "linearise", ["lime"], "linearise"),
    (find_network, "linearise", ["magic", 3, [], {}, True, object(), ["lime"], 1.5], "linearise"),
    (
        find_network,
        "X_train",
        ["x", [1.0, 2.0], np.ones((3, 5)), sparse.eye(2), [["a", "b"]]],
        "X_train",
    ),
    (find_network, "random_state", NO_SEED, "random_state"),
    (find, "random_state", NO_SEED, "random_state"),
    (find, "device", [[], {}, 3, object(), True], "device"),
    (find_network, "device", [[], {}, 3, "gpu9", object(), True], "device"),
    (find, "steps", [3], "steps"),
    (functools.partial(find, method="roar"), "max_steps", NO_COUNT, "max_steps"),
    (functools.partial(find, method="roar"), "learning_rate", NO_POSITIVE, "learning_rate"),
    (functools.partial(find, method="roar"), "tolerance", NO_TOLERANCE, "tolerance"),
    (Algorithm1, "step", NO_POSITIVE, "step"),
    (functools.partial(find, method="rbr", X_train=X), "samples", NO_COUNT, "samples"),
    (functools.partial(find, method="rbr", X_train=X), "sigma", NO_POSITIVE, "sigma"),
    (functools.partial(find, method="rbr", X_train=X), "epsilon_pe", NO_TOLERANCE, "epsilon_pe"),
    (functools.partial(find_network, method="refine"), "memory", NO_POSITIVE, "memory"),
    (functools.partial(find_network, method="refine"), "first_radius", NO_POSITIVE, "first_radius"),
    (functools.partial(find_network, method="wachter"), "learning_rate", NO_POSITIVE, "learning"),
    (Lime, "samples", [0, -1, 2.5, "many", [], True, NAN], "samples"),
    (Lime, "sampling", ["magic", 3, [], {}, None, True], "sampling"),
    (Lime, "kernel_width", NO_POSITIVE, "kernel_width"),
    (SmoothGrad, "samples", [0, -1, 2.5, "many", [], True, NAN], "samples"),
    # models
    (
        model_of,
        "coef",
        ["x", None, [[1.0, 2.0], [3.0, 4.0]], [NAN], sparse.eye(2), [1j], 3.0],
        "coef",
    ),
    (model_of, "intercept", ["x", None, [1.0, 2.0], NAN, 1j, math.inf], "intercept"),
    (
        lambda module: Network(module),
        "module",
        [None, 3, "x", [], nn.ReLU(), nn.Sequential()],
        "module",
    ),
    (lambda output: Network(nn.Linear(2, 1), output), "output", ["x", 3, [], {}, None], "output"),
    (
        lambda device: Network(nn.Linear(2, 1), device=device),
        "device",
        ["gpu9", 3, [], {}],
        "device",
    ),
    (
        lambda favorable_class: as_model(fitted(), favorable_class=favorable_class),
        "favorable_class",
        [7, "x"],
        "class",
    ),
    (train, "X", ["x", None, [1.0], np.ones((2, 2, 2)), sparse.eye(2), [["a"]]], "X"),
    (train, "approved", ["x", None, [1], [[1]] * 60, np.full(60, 7.0), ["a"] * 60], "approved"),
    (train, "hidden", [3, "x", None, (0,), (2.5,), ("a",), [True]], "hidden"),
    (train, "epochs", [-1, 2.5, "x", None, []], "epochs"),
    (train, "learning_rate", NO_POSITIVE, "learning_rate"),
    (train, "random_state", NO_SEED, "random_state"),
    # calibrate
    (calibrate, "model", [None, 3, "x", LogisticRegression(), []], "model"),
    (calibrate, "X", [None, 3, "x", [], np.ones((60, 5)), sparse.eye(60)], "X"),
    (calibrate, "X", [pd.DataFrame({"a": ["u"] * 60, "b": 1.0}), np.full((60, 2), NAN)], "X"),
    (calibrate, "y", [None, 3, "x", [], Y[:5], np.zeros(60), [[1]] * 60, np.full(60, NAN)], "y"),
    (calibrate, "actions", [3, "x", {}, []], "actions"),
    (calibrate, "guarantee", NO_GUARANTEE, "guarantee"),
    (calibrate, "survival", [0, 1, -1, 2, NAN, "x", None, [], 1j, True, np.ones(1)], "survival"),
    (calibrate, "confidence", [0, 1, -1, NAN, "x", None, [], 1j, True], "confidence"),
    (
        calibrate,
        "families",
        ["l1", 3, [], ["l3"], [3], [("mine", 3)], [(1, NormBall)], ["l1", "l1"], [None]],
        "families",
    ),
    (calibrate, "n_models", [0, 5, -1, 2.5, "x", None, [], True, NAN], "n_models"),
    (calibrate, "how", ["thirds", None, 3, []], "how"),
    (calibrate, "max_people", NO_COUNT, "max_people"),
    (calibrate, "n_jobs", NO_THREADS, "n_jobs"),
    (calibrate, "progress", ["yes", 1, 0.0, []], "progress"),
    (calibrate, "random_state", NO_SEED, "random_state"),
    (calibrate, "past_models", [3, "x", [], [3], [None], {}], "past_models"),
    (
        calibrate,
        "time",
        ["x", 3, [1, 2], np.full(60, NAN), [[1]] * 60, [None] * 60, [{}] * 60],
        "time",
    ),
    (
        functools.partial(calibrate, time=np.arange(60)),
        "n_periods",
        [*NO_COUNT, 1, 2, 100],
        "n_periods",
    ),
    # sets
    *(
        (functools.partial(made_set, make), "model", [None, 3, "x", LogisticRegression()], "model")
        for make in SETS
    ),
    *(
        (functools.partial(made_set, make), "X", [None, 3, np.ones((60, 5)), sparse.eye(60)], "X")
        for make in SETS
    ),
    *(
        (functools.partial(made_set, make), "radius", [-0.1, NAN, math.inf, "x", None], "radius")
        for make in SETS
        if make not in (holdfast.sets.rashomon, holdfast.sets.from_models)
    ),
    *(
        (functools.partial(made_set, make), "y", [None, 3, Y[:5], np.zeros(60)], "y")
        for make in (holdfast.sets.sandwich, holdfast.sets.bootstrap, holdfast.sets.rashomon)
    ),
    *(
        (functools.partial(made_set, make), "models", [None, 3, "x", {}, [], [3]], "models")
        for make in (holdfast.sets.from_models, holdfast.sets.ellipsoid_from_models)
    ),
    *(
        (functools.partial(made_set, make), "intercept", NO_FLAG, "intercept")
        for make in (holdfast.sets.fisher, holdfast.sets.sandwich, holdfast.sets.rashomon)
    ),
    (
        functools.partial(made_set, holdfast.sets.rashomon),
        "loss_increase",
        NO_TOLERANCE,
        "loss_increase",
    ),
    (
        functools.partial(made_set, holdfast.sets.bootstrap),
        "n_models",
        [0, 5, 2.5, "x", None],
        "n_models",
    ),
    # discrete
    *((call, "problem", [None, 3, "x", {}], "problem") for call in (solve_parts, solve_links)),
    (lambda problem: largest_reachable_score(problem), "problem", [None, 3, "x", {}], "problem"),
    *((call, "tolerance", NO_TOLERANCE, "tolerance") for call in (solve_parts, solve_links)),
    (solve_parts, "max_nodes", NO_COUNT, "max_nodes"),
    *(
        (lambda call=call, **other: call(problem=discrete(**other)), name, wrong, name)
        for call in (solve_parts, solve_links)
        for name, wrong in (
            ("base", [None, 3, "x"]),
            ("step", [None, "x", [[1.0]], np.ones((2, 3)), np.ones(3), [["a", "b", "c"]]]),
            ("anchor", [None, "x", [[1.0]], np.ones((2, 3)), np.ones(3), [["a", "b", "c"]]]),
            ("groups", [None, 3, "x", [3], [Group(np.array([1, 9]), np.eye(2))]]),
            ("groups", [[Group(np.array([1, 1]), np.eye(2))], [Group("ab", np.eye(2))]]),
            ("current", [None, "x", [[0, 0]], [0], [[0.5]], [["a"]]]),
            ("level_costs", [None, 3, "x", [], [np.ones((1, 5))], ["ab"], [None]]),
            ("max_changes", [-1, 1.5, "x", [], NAN, True, {}]),
        )
    ),
    *(
        (lambda **other: solve_links(links=links(**other)), name, wrong, name)
        for name, wrong in (
            ("matrix", [None, "x", np.ones(3), np.ones((1, 9)), np.full((1, 3), NAN), [["a"] * 3]]),
            ("lower", [None, "x", np.ones(3), np.ones((1, 9)), np.full((1, 1), NAN), [["a"]]]),
            ("upper", [None, "x", np.ones(3), np.ones((1, 9)), np.full((1, 1), NAN), [["a"]]]),
        )
    ),
    (solve_links, "links", [None, 3, "x", {}], "links"),
    # networks
    *(
        (call, name, wrong, name)
        for call in (judged, published, population)
        for name, wrong in (
            ("network", NO_NETWORK),
            ("X", NO_NETWORK_POINTS),
            ("robust_to", [None, 3, "x", {}]),
            ("steps", [-1, 2.5, "x", None, [], True, NAN]),
        )
    ),
    (published, "robust_to", [NormBall(3, 0.1)], "p ="),
    *(
        (call, "robust_to", [NormBall(1, 0.1, scale=[1.0] * 9)], "scale")
        for call in (judged, published, population)
    ),
    *(
        (call, "starts", [0, -1, 2.5, "x", [], True, NAN], "starts")
        for call in (judged, population)
    ),
    *((call, "random_state", NO_SEED, "random_state") for call in (judged, population)),
    *((call, "memory", NO_POSITIVE, "memory") for call in (judged, published)),
    *((call, "keep_change", NO_FLAG, "keep_change") for call in (judged, published, population)),
    (published, "start", ["x", 3, [], {}, None], "start"),
    (published, "tolerance", NO_TOLERANCE, "tolerance"),
    (published, "learning_rate", NO_POSITIVE, "learning_rate"),
    (priced, "network", NO_NETWORK, "network"),
    (priced, "recourse", NO_NETWORK_POINTS, "recourse"),
    (priced, "X", NO_NETWORK_POINTS, "X"),
    (priced, "robust_to", [None, 3, "x"], "robust_to"),
    (priced, "cost_weight", NO_WEIGHT, "cost_weight"),
    (
        priced,
        "feature_costs",
        ["x", [1.0], [-1.0, 1.0], [NAN, 1.0], sparse.eye(2), 1j],
        "feature_costs",
    ),
    (priced, "ascent", [None, 3, "x"], "ascent"),
    (judge, "result", [None, 3, "x", POINTS], "result"),
    (judge, "network", NO_NETWORK, "network"),
    (judge, "robust_to", [3, "x", {"p": 1}], "robust_to"),
    (judge, "ascent", [None, 3, "x"], "ascent"),
    # advice
    (recommend, "model", [3, "x", [], LogisticRegression()], "model"),
    (recommend, "robust_to", NO_BALL[:-1], "robust_to"),
    (recommend, "actions", [None, 3, "x", {}, []], "actions"),
    (recommend, "n_options", NO_COUNT, "n_options"),
    (recommend, "loss", NO_LOSS, "loss"),
    (
        recommend,
        "X",
        [None, 3, "x", [], np.ones((3, 5)), pd.DataFrame({"a": [1.0]})],
        "X",
    ),
    (
        recommend,
        "X",
        [sparse.eye(2), pd.DataFrame(np.ones((1, 2)), columns=["a", "a"])],
        "X",
    ),
    (number, "name", ["", None, 3, []], "name"),
    (number, "unit", [3, None, []], "unit"),
    (number, "immutable", NO_FLAG, "immutable"),
    (number, "integer", NO_FLAG, "integer"),
    (number, "direction", ["left", 3, [], None, {}], "direction"),
    (number, "lower", ["x", NAN, [], math.inf, 1j, True, np.ones(2), HUGE], "lower"),
    (number, "upper", ["x", NAN, [], math.inf, 1j, True, np.ones(2), HUGE], "upper"),
    (number, "max_increase", ["x", NAN, [], -1.0, 1j, True], "max_increase"),
    (number, "max_decrease", ["x", NAN, [], -1.0, 1j, True], "max_decrease"),
    (number, "step", ["x", NAN, [], 0.0, -1.0, 1j, True], "step"),
    (number, "cost", [*NO_POSITIVE, None], "cost"),
    (functools.partial(number, lower=5.0), "upper", [1.0], "lower"),
    (category, "levels", ["x", [], 3, None, ["a", "a"], [None], [[]], {}, [object()]], "levels"),
    (category, "moves", [3, "x", [], {"x": ["own"]}, {"own": 3}, {"own": ["x"]}], "moves"),
    (category, "order", [3, "x", [], ["x"], ["own", "own"], {}], "order"),
    (category, "allowed", [3, "x", [], ["x"], {}, [[]]], "allowed"),
    (category, "direction", ["up", "left", 3, []], "direction"),
    (category, "cost_by", ["step", "left", 3, [], None], "cost_by"),
    (
        category,
        "cost",
        [0, -1, "x", None, [], {3: 1}, {("own", "x"): 1}, {("own", "rent"): -1}],
        "cost",
    ),
    (ActionSet, "features", [None, 3, "x", [3], [None]], "features"),
    (lambda links: ActionSet([number()], links), "links", [None, 3, "x", [3], [None]], "links"),
    (
        lambda max_changes: ActionSet([number()], (), max_changes),
        "max_changes",
        [0, 1.5, "x", [], True],
        "max_changes",
    ),
    (
        lambda costs: ActionSet.from_data(FRAME, costs=costs),
        "costs",
        ["x", 3, [], {}, None],
        "costs",
    ),
    (
        lambda switch_cost: ActionSet.from_data(
            pd.DataFrame({"h": ["u", "v"]}), switch_cost=switch_cost
        ),
        "switch_cost",
        NO_POSITIVE,
        "switch_cost",
    ),
    (
        lambda categories: ActionSet.from_data(FRAME, categories=categories),
        "categories",
        [3, ["x"], [[]], "ab"],
        "categories",
    ),
    (
        lambda units: ActionSet.from_data(FRAME, units=units),
        "units",
        [3, "x", {"x": "y"}, {"a": 3}, []],
        "unit",
    ),
    (
        lambda encoding: ActionSet.from_data(FRAME, encoding=encoding),
        "encoding",
        [3, "x", []],
        "encoding",
    ),
    (
        lambda table: ActionSet.from_data(table),
        "table",
        [None, 3, "x", [], {}, sparse.eye(2), pd.DataFrame()],
        "table",
    ),
    (
        lambda table: ActionSet.from_data(table),
        "table",
        [pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])],
        "table",
    ),
    (lambda name: actions()[name], "name", ["x", 3, None, [], {}], "feature"),
    (lambda path: ActionSet.load(path), "path", [3, None, [], "x.txt"], "path"),
    (lambda path: actions().save(path), "path", [3, None, [], "x.txt"], "path"),
    (lambda path: ActionSet.load(path), "path", ["nowhere.yaml"], "nowhere"),
    (lambda larger: AtMost("a", larger), "larger", ["a", 3, None, []], "larger"),
    (lambda smaller: AtMost(smaller, "a"), "smaller", [3, None, []], "smaller"),
    (lambda by: Follows("a", "b", by), "by", [0, NAN, "x", None, [], 1j, math.inf], "by"),
    (lambda of: Follows("a", of), "of", ["a", 3, None, []], "of"),
    (lambda of: Ratio("a", of, "b"), "of", [3, None, [], "a", "b"], "of"),
    (lambda to: Ratio("a", "b", to), "to", [3, None, [], "a"], "to"),
    (lambda of: Product("a", of), "of", [3, None, [], "ab", ("a", "b"), ("b",)], "of"),
    (
        lambda coef: Linear(coef, at_most=1),
        "coef",
        [3, None, [], "a", {}, {"a": 1}, {"a": 1, "b": 0}, {"a": 1, 3: 1}, {"a": 1, "b": NAN}],
        "coef",
    ),
    (
        lambda at_most: Linear({"a": 1, "b": 1}, at_most),
        "at_most",
        ["x", None, [], 1j, NAN, math.inf],
        "at_most",
    ),
    # data sets
    (make_gaussians, "n", [0, 3, -2, 2.5, "x", None, [], True], "n "),
    (make_gaussians, "random_state", NO_SEED, "random_state"),
    (make_gaussians, "mean_shift", ["x", NAN, None, [], math.inf, 1j], "mean_shift"),
    (make_gaussians, "variance_shift", ["x", NAN, None, [], -1.0, math.inf, 1j], "variance_shift"),
    (lambda fold: published_sample(fold, 39, "network"), "fold", [-1, 1.5, "x", None, []], "fold"),
    (
        lambda denied: published_sample(0, denied, "network"),
        "denied",
        [3, 1.5, "x", None],
        "denied",
    ),
    (lambda model: published_sample(0, 39, model), "model", ["x", 3, [], None], "model"),
    *(
        (call, "directory", ["/nowhere/at/all", 3, [1], b"/nowhere"], "directory")
        for call in (load_sba, load_south_german, sba_folds, german_future)
    ),
]


def label(value: Any) -> str:
    text = " ".join(f"{value!r}".split()) if not isinstance(value, int) or value < HUGE else "huge"
    return text.partition(" at 0x")[0][:40]  # an address differs from process to process


TABLE = [
    pytest.param(call, name, value, named, id=f"{k}-{name}-{j}-{label(value)}")
    for k, (call, name, values, named) in enumerate(CASES)
    for j, value in enumerate(values)
]


@pytest.mark.parametrize(("call", "name", "value", "named"), TABLE)
def test_the_argument_is_named(call, name, value, named):
    with pytest.raises(WRONG) as caught:
        call(**{name: value})
    assert named in str(caught.value)
    assert len(str(caught.value)) < 700  # the value is not poured out


COMMANDS = [
    (["demo", "--p", "x"], "--p"),
    (["demo", "--p", "0.5"], "p ="),
    (["demo", "--p", "nan"], "p ="),
    (["demo", "--radius", "-1"], "radius"),
    (["demo", "--radius", "x"], "--radius"),
    (["demo", "--radius", "inf"], "radius"),
    (["demo", "--people", "0"], "--people"),
    (["demo", "--people", "2.5"], "--people"),
    (["demo", "--models", "x"], "--models"),
    (["demo", "--models", "-1"], "--models"),
    (["reproduce", "table9"], "table9"),
    (["reproduce", "table1", "--folds", "7"], "--folds"),
    (["reproduce", "table1", "--folds", ""], "--folds"),
    (["reproduce", "table1", "--folds", "0,,1"], "--folds"),
    (["reproduce", "table1", "--folds", "x"], "--folds"),
    (["reproduce", "table1", "--jobs", "0"], "n_jobs = 0"),
    (["reproduce", "table1", "--jobs", "-2"], "--jobs"),
    (["reproduce", "table1", "--jobs", "²"], "--jobs"),
    (["reproduce", "table1", "--jobs", "two"], "--jobs"),
    (["reproduce", "table1", "--data", "/nowhere/at/all"], "/nowhere/at/all"),
    (["reproduce", "table2", "--device", "gpu9"], "device"),
    (["reproduce", "table1", "--out", "/proc/none"], "/proc/none"),
    (["reproduce", "table1", "--out", "/dev/null/below"], "/dev/null/below"),
    (["magic"], "magic"),
    (["demo", "--magic"], "--magic"),
]


@pytest.mark.parametrize(("arguments", "named"), COMMANDS, ids=lambda value: str(value))
def test_the_command_line_names_the_option(arguments, named, capsys):
    try:
        code = main(arguments)
    except SystemExit as exit_:  # argparse's own
        code = exit_.code
    assert code == 2
    assert named in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [
        *(build, solve, find, frontier, solve_problem, solve_parts, solve_links, judged),
        *(published, population, priced, judge, train, calibrate, recommend, find_network),
        *(number, category, ball, model_of, make_gaussians),
        *(functools.partial(made_set, make) for make in SETS),
    ],
)
def test_the_examples_of_the_table_are_right_without_the_wrong_argument(call):
    """A door that refuses everything would pass the table."""
    call()


def test_losses_cannot_be_added():
    """The kernels take a code that they do not know for the last one."""
    other = Loss("mine", 0, "probit", True)
    with pytest.raises(TypeError):
        LOSSES["mine"] = other  # type: ignore[index]
    with pytest.raises(ValueError, match="loss = "):
        solve(loss=other)
    with pytest.raises(ValueError, match="code = 7"):
        Loss("mine", 7, "logit", True)
    same = solve(loss=LOSSES["logistic"])
    np.testing.assert_array_equal(same.recourse, solve().recourse)


def test_costs_that_could_be_a_matrix_over_features_are_asked_about():
    points = POINTS[:2]
    matrix = np.array([[1.0, 0.2], [0.2, 2.0]])
    for square in (matrix, np.ones((2, 2)), [[1.0, 0.3], [0.2, 2.0]]):
        with pytest.raises(ValueError, match=r"feature_costs has shape \(2, 2\).*DataFrame"):
            build(X=points, feature_costs=square)
    said = build(X=points, feature_costs=pd.DataFrame(matrix))
    np.testing.assert_array_equal(said.feature_costs, matrix)
    build(X=points[:1], feature_costs=[[2.0, 1.0]])


def test_numbers_of_other_kinds_are_numbers():
    half = decimal.Decimal("0.5")
    tenth = np.float32(0.1)
    found = solve(
        guarantee=np.float64(0.5), robust_to=NormBall(np.int64(1), tenth), n_jobs=np.int64(1)
    )
    assert found.status[0] == "optimal"
    with pytest.raises(ValueError, match="guarantee"):
        solve(guarantee=half)  # not a float, and not to be guessed at
