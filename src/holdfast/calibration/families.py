"""Families of sets: a shape, and how to make it in any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats, refuse, shown
from holdfast.problem.ball import NormBall
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.model_set import ModelSet
from holdfast.sets.from_data import covariance_of, fisher, rashomon, sandwich
from holdfast.sets.space import Space

Maker = Callable[[float], ModelSet]

_EXPONENTS = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
NAMES = (
    "margin",
    *_EXPONENTS,
    *(f"{name} scaled" for name in _EXPONENTS),
    "fisher",
    "sandwich",
    "bootstrap",
    "rashomon",
)
# What is compared unless something else is said. The set of `rashomon` has the shape of `fisher`.
DEFAULT = ("margin", "l1", "l2", "linf", "l2 scaled", "fisher", "bootstrap")


@dataclass(frozen=True, eq=False)
class Family:
    """A shape of a set of models: its name, and the set of any radius."""

    name: str
    make: Maker


@dataclass(frozen=True, eq=False)
class Known:
    """What families are made of.

    Attributes
    ----------
    space : Space
    model, favorable_class : as given
    labels : (n,) array
    changes : (m, d + 1) array
        How models were seen to change; only of those that may choose.
    resampled : bool
        Whether these are refits to resamples.
    """

    space: Space
    model: Any
    favorable_class: Any
    labels: NDArray[Any]
    changes: Floats
    resampled: bool


def read_families(families: Any) -> list[Any]:
    """Check what was asked for: names, and pairs of a name and a function of the radius."""
    if isinstance(families, str) or not hasattr(families, "__iter__"):
        refuse("families", families, f"a list of names ({', '.join(NAMES)}) or (name, function)")
    wanted = list(families)
    if not wanted:
        refuse("families", families, "a list of at least one family")
    names = []
    for each in wanted:
        is_pair = isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str)
        if is_pair and callable(each[1]):
            names.append(each[0])
        elif isinstance(each, str) and each in NAMES:
            names.append(each)
        else:
            raise ValueError(
                f"families: {shown(each)} is not known; available: {', '.join(NAMES)}, or give a "
                "pair of a name and a function from a radius to a set of models"
            )
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"families: {sorted(twice)[0]!r} appears twice")
    return wanted


def make_families(families: Any, known: Known) -> tuple[list[Family], dict[str, str]]:
    """Make the families that were asked for, or else those that this model allows.

    Returns
    -------
    families : list of Family
    left_out : dict
        Why one of the default families is not among them.
    """
    if families is not None:
        return [_make(each, known) for each in families], {}
    made, left_out = [], {}
    for name in DEFAULT:
        try:
            made.append(_make(name, known))
        except ValueError as error:
            left_out[name] = str(error)
    return made, left_out


def _make(wanted: Any, known: Known) -> Family:
    if isinstance(wanted, tuple):
        return Family(wanted[0], partial(_own, *wanted))
    size = np.sqrt(np.mean(known.changes**2, axis=0))
    d = len(size) - 1
    shape, _, scaled = wanted.partition(" ")
    if wanted == "margin":
        return Family(wanted, partial(_ball, 1.0, np.zeros(d), 1.0))
    if shape in _EXPONENTS:
        scale, of_intercept = (size[:-1], float(size[-1])) if scaled else (None, True)
        return Family(wanted, partial(_ball, _EXPONENTS[shape], scale, of_intercept))
    return Family(wanted, _ellipsoid(wanted, known).with_radius)


def _own(name: str, function: Callable[[float], Any], radius: float) -> ModelSet:
    made = function(radius)
    if not isinstance(made, ModelSet):
        raise TypeError(
            f"families: the function of {name!r} returned {shown(made)} for the radius "
            f"{radius:g}; it must return a set of models, such as NormBall(2, radius)"
        )
    return made


def _ball(p: float, scale: Any, intercept: bool | float, radius: float) -> NormBall:
    return NormBall(p, radius, scale=scale, intercept=intercept)


def _ellipsoid(name: str, known: Known) -> Ellipsoid:
    X, favorable_class = known.space.X, known.favorable_class
    if name == "fisher":
        return fisher(known.model, X, favorable_class=favorable_class)
    if name == "sandwich":
        return sandwich(known.model, X, known.labels, favorable_class=favorable_class)
    if name == "rashomon":
        return rashomon(
            known.model, X, known.labels, loss_increase=0.01, favorable_class=favorable_class
        )
    if not known.resampled:
        raise ValueError(
            "the family 'bootstrap' needs models trained on resamples: leave out past_models and "
            "time"
        )
    nothing = np.zeros(known.changes.shape[1])
    covariance = known.space.settled(covariance_of(known.changes, around=nothing))
    return Ellipsoid(0.5 * (covariance + covariance.T), 1.0)
