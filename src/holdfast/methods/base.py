"""One signature for all methods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.numbers import Floats
from holdfast.methods._kernels import STEP_LIMIT
from holdfast.models import Model
from holdfast.problem.ball import NormBall
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.model_set import ModelSet
from holdfast.problem.problem import RecourseProblem
from holdfast.result import MethodStatus


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given: only rows that can be used.

    Attributes
    ----------
    problem : RecourseProblem
        Points, costs, bounds, the set of models, and a linear score for each row: the model's
        own, or its surrogate around that row. A `LastLayer` is the network's, not the surrogate's:
        `Method.on_the_score` leaves it out.
    goal : Goal
    model : Model
        The model itself.
    X_train : (m, d) array or None
        The (encoded) points that the model was trained on.
    random_state : int
    threads : int
        How many threads.
    """

    problem: RecourseProblem
    goal: Goal
    model: Model
    X_train: Floats | None
    random_state: int
    threads: int


class Proposal(NamedTuple):
    """What a method proposes; its recourses are judged by other code.

    `status` holds a `MethodStatus` for each row, `steps` the number of its steps.
    """

    recourse: Floats
    status: NDArray[np.object_]
    steps: NDArray[np.int64]


@dataclass(frozen=True)
class Method:
    """A way to find recourse. A subclass is a frozen dataclass: its fields are its settings.

    Class attributes say what it can do, and `check` refuses everything else: a constraint is
    never dropped in silence.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    guarantees: ClassVar[str]
    any_set: ClassVar[bool] = False  # whether it knows sets other than balls
    knows_last_layer: ClassVar[bool] = False  # whether it knows networks whose last layer changes
    exponents: ClassVar[tuple[float, ...] | None] = None  # None: every p
    # kinds of models; "surrogate": any, for it asks only for the linear score that stands for it
    kinds: ClassVar[tuple[str, ...]] = ("linear", "surrogate")
    losses: ClassVar[tuple[str, ...]] = ("logistic",)
    honours_bounds: ClassVar[bool] = False
    honours_scale: ClassVar[bool] = True
    gives_guarantee: ClassVar[bool] = False
    needs_training: ClassVar[bool] = False
    compiled: ClassVar[bool] = False  # by numba: run once on no rows, before the clock starts

    def run(self, task: Task) -> Proposal:
        """Find a recourse for every row."""
        raise NotImplementedError

    def check(self, task: Task) -> None:
        """Refuse what the method cannot do."""
        problem, robust_to = task.problem, task.problem.robust_to
        kind = task.model.kind
        if isinstance(robust_to, LastLayer):
            robust_to.require_network(kind)
            if not self.knows_last_layer:
                raise ValueError(f"{self.name} cannot use the layers of a network; use 'refine'")
        if kind not in self.kinds and "surrogate" not in self.kinds:
            why = "has no gradients" if kind == "black box" else "is not a network"
            raise ValueError(f"{self.name} needs {_wanted(self.kinds)}; a {kind} model {why}")
        ball = robust_to if isinstance(robust_to, NormBall) else None
        if ball is None and not isinstance(robust_to, LastLayer) and not self.any_set:
            kind = type(robust_to).__name__
            raise ValueError(f"{self.name} only supports balls (NormBall), not {kind}; use 'exact'")
        if ball is not None and self.exponents is not None and ball.p not in self.exponents:
            allowed = " or ".join(f"{p:g}" for p in self.exponents)
            raise ValueError(f"{self.name} needs p = {allowed}, not {ball.p:g}")
        if task.goal.is_guarantee and not self.gives_guarantee:
            other = "refine" if task.model.kind == "network" else "exact"
            raise ValueError(
                f"{self.name} gives no guarantee; pass a cost_weight, or use {other!r}"
            )
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"{self.name} supports the losses {self.losses}, not {problem.loss.name}"
            )
        bounded = np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any()
        if bounded and not self.honours_bounds:
            raise ValueError(f"{self.name} cannot honour bounds; use 'exact'")
        if ball is not None and ball.scale is not None and not self.honours_scale:
            raise ValueError(
                f"{self.name} does not support a scale of the coefficients; use 'exact'"
            )
        if self.needs_training and task.X_train is None:
            raise ValueError(f"{self.name} needs the training points; pass X_train=...")

    def set_on_the_score(self, robust_to: ModelSet) -> ModelSet:
        """Return the set around the linear score; a surrogate has no last layer, and stays put."""
        return NormBall(p=1, radius=0.0) if isinstance(robust_to, LastLayer) else robust_to

    def on_the_score(self, problem: RecourseProblem) -> RecourseProblem:
        """Return the problem of the linear score alone."""
        return replace(problem, robust_to=self.set_on_the_score(problem.robust_to))

    def proves_networks(self, goal: Goal) -> bool:
        """Whether the recourses are meant to be proven of the network itself, not a surrogate."""
        return False

    @classmethod
    def needs(cls) -> str:
        """Say what the method needs, in words."""
        words = []
        if cls.exponents is not None:
            words.append("p = " + " or ".join(_exponent(p) for p in cls.exponents))
        if not {"surrogate", "black box"} & set(cls.kinds):
            words.append(_wanted(cls.kinds))
        if cls.needs_training:
            words.append("training points")
        if not cls.gives_guarantee:
            words.append("a cost weight")
        if not cls.honours_bounds:
            words.append("no bounds")
        return ", ".join(words) or "nothing more"


def all_converged(n: int) -> NDArray[np.object_]:
    """Return a status "converged" for each of n rows."""
    status = np.empty(n, dtype=object)
    status[:] = MethodStatus.CONVERGED  # np.full would turn it into a plain string
    return status


def statuses(run_end: NDArray[np.int8]) -> NDArray[np.object_]:
    """Return the status of each `RunEnd` of the compiled methods."""
    status = all_converged(len(run_end))
    status[run_end == STEP_LIMIT] = MethodStatus.STEP_LIMIT
    return status


def _exponent(p: float) -> str:
    return "inf" if math.isinf(p) else f"{p:g}"


def _wanted(kinds: tuple[str, ...]) -> str:
    return "a model with gradients" if "linear" in kinds else "a network"
