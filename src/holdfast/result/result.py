"""What comes back: for every row a recourse, what it costs, how safe it is, and the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.labels import position_of
from holdfast.machinery.numbers import Floats, whole_rows
from holdfast.machinery.threads import thread_count
from holdfast.problem.goal import Goal
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.outcome import EXHAUSTED
from holdfast.problem.problem import RecourseProblem
from holdfast.result.appraisal import Appraisal
from holdfast.result.bracket import Bracket
from holdfast.result.columns import PROVEN, VALIDITIES
from holdfast.result.found import Found
from holdfast.result.prover import RowCurve, RowProver
from holdfast.result.status import (
    GAP_TOLERANCE,
    Status,
    allowed_gap,
    believed_bound,
    is_proven,
    reassess,
    statuses_of,
)
from holdfast.result.surrogate import Surrogate
from holdfast.result.words import sentence

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Certificate:
    """Proof of one row's recourse, checkable without the solver.

    Attributes
    ----------
    price : float
        What the recourse costs: the price, or, for a guarantee, the cost alone.
    lower_bound : float
        No recourse whatsoever has a lower one.
    gap : float
        ``price - lower_bound``: 0, up to rounding, means proven optimal.
    multiplier : float
        Slope of the frontier at the recourse: what the last bit of worst-case score cost, for a
        whole unit of it. The next bit costs as much or more.
    worst_model : (coef, intercept)
        A model of the set under which the bound holds; it is a worst one for the optimum.
    weights : array or None
        For a list of models: how much of each is in that model, today's first. Those above 0 bind.

    For an infeasible row the multiplier is inf: under the worst model, no point within the bounds
    has the score that was asked for.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> result = holdfast.solve([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball, guarantee=0.5)
    >>> proof = result.certificate(0)
    >>> proof.worst_model
    (array([ 0.9, -0.5]), -1.0)
    >>> round(proof.lower_bound, 9) == round(proof.price, 9)
    True
    """

    price: float
    lower_bound: float
    gap: float
    multiplier: float
    worst_model: tuple[Floats, float]
    weights: Floats | None = None


@dataclass(frozen=True, eq=False)
class RecourseResult:
    """The answer to a batch of recourse problems, one entry for each row.

    Rows are identified by their labels: the index of the data frame of points, or else their
    positions 0, 1, ... Rows without a recourse hold NaN there, infinite cost and price where no
    recourse exists, and a `status` that says why.

    Attributes
    ----------
    problem : RecourseProblem
    goal : Goal
        What was asked.
    status : array of Status
    cost : array
        ``sum(feature_costs * |action|)``, plus the cost of changing a category, or a number at all,
        where there is such a cost.
    price : array
        What was minimised: worst-case loss + cost weight * cost; for a guarantee, the cost.
    lower_bound, gap : arrays
        What is proven: nothing is better than `lower_bound`; ``gap = price - lower_bound``.
    worst_case_loss, worst_case_score, worst_case_validity : arrays
        Loss, score and probability of approval of the recourse under the worst model in the set.
    current_validity : array
        Probability of approval of the recourse under today's model.
    initial_validity : array
        Probability of approval of the point as it was, under today's model.
    reachable_validity, reachable_radius : arrays
        For infeasible rows: the largest worst-case probability that can be reached, and the
        largest radius at which the guarantee could still be given (NaN: at none).
    multiplier : array
        What the last bit of worst-case score cost, per unit of score (the next bit costs as much or
        more); NaN with categories and whole numbers, where there is no last bit, and where another
        method than the exact one found the recourse.
    levels, nodes : arrays or None
        With categories: the level that each takes (-1 without a recourse), and how many parts of
        the problem were looked at.
    method, seconds : str, float
        Which method found the recourses, and how long it took (not counting compilation).
    method_status, steps : arrays
        What the method reports about its own run (a `MethodStatus`), and its number of steps.
    surrogate : Surrogate or None
        Set where a linear score stood in for the model (a network, for example). Then price, bound,
        gap and worst case **are those of the surrogate**, and prove nothing about the model itself;
        `current_validity`, `initial_validity` and `model_score` are the true model's, and so is the
        status: ACCEPTED or NOT_VALID, never OPTIMAL. Where the set is a `LastLayer`, price and
        worst case too are the network's own, and exact; bound and gap are not known.
    bracket : Bracket or None
        Set where a guarantee was asked for the network itself: what is proven about each recourse,
        and the worst case that was found. Then the worst case is **the proven one**, the status
        PROVEN_VALID where it reaches the guarantee, and bound, gap and multiplier are not known.
    exact : RecourseResult or None
        For another method than the exact one: the optimum, which carries the proof.
    prover : RowProver or None
        What `certificate`, `worst_models` and `frontier` ask, which the solver hands in; None with
        categories and whole numbers.

    Examples
    --------
    >>> import holdfast
    >>> ball = holdfast.NormBall(p=1, radius=0.1)
    >>> result = holdfast.solve([[0.0, 2.0]], [1.0, -0.5], -1.0, robust_to=ball, guarantee=0.5)
    >>> result
    <RecourseResult, rows: 1 (guarantee=0.5, p=1, radius=0.1): 1 optimal>
    >>> result.action.round(3)
    array([[2.222, 0.   ]])
    >>> result.to_frame()["status"].tolist()
    ['optimal']
    """

    problem: RecourseProblem
    goal: Goal
    status: NDArray[np.object_]
    cost: Floats
    price: Floats
    lower_bound: Floats
    gap: Floats
    worst_case_loss: Floats
    worst_case_score: Floats
    worst_case_validity: Floats
    current_validity: Floats
    reachable_validity: Floats
    reachable_radius: Floats
    multiplier: Floats
    recourse_array: Floats
    levels: NDArray[np.int64] | None = None
    nodes: NDArray[np.int64] | None = None
    method: str = "exact"
    seconds: float = math.nan
    method_status: NDArray[np.object_] | None = None
    steps: NDArray[np.int64] | None = None
    surrogate: Surrogate | None = None
    model_score: Floats | None = None
    initial_model_score: Floats | None = None
    bracket: Bracket | None = None
    exact: RecourseResult | None = None
    prover: RowProver | None = None

    @classmethod
    def assemble(
        cls,
        problem: RecourseProblem,
        goal: Goal,
        found: Found,
        known: Appraisal,
        tolerance: float = GAP_TOLERANCE,
    ) -> RecourseResult:
        """Put together what a solver found and what is known about it: price, gap and status.

        Every solver's answers go through here.
        """
        missing = (found.outcome == EXHAUSTED) & np.isnan(found.recourse).any(axis=1)
        cost = np.where(missing, np.inf, known.cost)
        price = np.where(missing, np.inf, goal.price(known.cost, known.loss))
        proven = is_proven(goal, tolerance, price, found.lower_bound, known)
        allowed = allowed_gap(goal, price, tolerance, known.unit)
        bound = believed_bound(price, found.lower_bound, allowed)
        with np.errstate(invalid="ignore"):
            gap = np.where(missing & (bound == np.inf), 0.0, price - bound)
        unknown = np.full(problem.n_rows, np.nan)
        return cls(
            problem=problem,
            goal=goal,
            status=statuses_of(goal, found, proven, known, problem.X),
            cost=cost,
            price=price,
            lower_bound=bound,
            gap=gap,
            worst_case_loss=known.loss,
            worst_case_score=known.worst_score,
            worst_case_validity=problem.loss.probability(known.worst_score),
            current_validity=problem.loss.probability(known.score),
            reachable_validity=_or(found.reachable_validity, unknown),
            reachable_radius=_or(found.reachable_radius, unknown),
            multiplier=_or(found.multiplier, unknown),
            recourse_array=found.recourse,
            levels=found.levels,
            nodes=found.nodes,
            prover=found.prover,
        )

    def bounded_by(self, best: RecourseResult) -> RecourseResult:
        """Return it with no more proven than `best` proves: the same with fewer restrictions."""
        bound = np.minimum(self.lower_bound, best.lower_bound)
        with np.errstate(invalid="ignore"):  # without an answer both may be infinite
            gap = self.price - bound
        status = reassess(self.status, gap, allowed_gap(self.goal, self.price))
        hopeless = self.status == Status.INFEASIBLE
        status[hopeless & (best.status != Status.INFEASIBLE)] = Status.GAP_OPEN
        is_open = status == Status.GAP_OPEN
        return replace(
            self,
            status=status,
            lower_bound=np.where(is_open, bound, self.lower_bound),
            gap=np.where(is_open, gap, self.gap),
            reachable_validity=np.where(is_open, np.nan, self.reachable_validity),
            reachable_radius=np.where(is_open, np.nan, self.reachable_radius),
        )

    def without_bound(self, **changed: Any) -> RecourseResult:
        """Return it with some values changed, and nothing proven about what else could be had."""
        bound, gap, multiplier = (np.full(len(self), np.nan) for _ in range(3))
        return replace(
            self, lower_bound=bound, gap=gap, multiplier=multiplier, exact=None, **changed
        )

    def __len__(self) -> int:
        return self.problem.n_rows

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = [f"{count} {name}" for name, count in zip(names, counts, strict=True)]
        rows = ", ".join(found) or "nothing to solve"
        who = "" if self.method == "exact" else f"{self.method}, "
        of = f", {self.surrogate.name} surrogate" if self.surrogate and self.of_surrogate else ""
        asked = f"{who}{self.goal}, {self.problem.robust_to.label}{of}"
        return f"<RecourseResult, rows: {len(self)} ({asked}): {rows}>"

    @property
    def guarantee(self) -> float | None:
        """The probability that was asked for; None where a price was minimised."""
        return self.goal.guarantee

    @property
    def cost_weight(self) -> float | None:
        """The cost weight that was asked for; None with a guarantee."""
        return self.goal.cost_weight

    @property
    def recourse(self) -> Floats | pd.DataFrame:
        """Where each person should go; a data frame if the points were one."""
        return self._labelled(self.recourse_array)

    @property
    def action(self) -> Floats | pd.DataFrame:
        """What each person should change: recourse minus point."""
        return self._labelled(self.recourse_array - self.problem.X)

    @cached_property
    def has_recourse(self) -> NDArray[np.bool_]:
        """Which rows have a recourse; one that is too large for a number is none."""
        return whole_rows(self.recourse_array)

    @cached_property
    def stays(self) -> NDArray[np.bool_]:
        """Which rows have a recourse that changes nothing."""
        return np.asarray((self.recourse_array == self.problem.X).all(axis=1))

    @cached_property
    def initial_validity(self) -> Floats:
        """Probability of approval of each point as it was, under today's model."""
        if self.initial_model_score is not None:
            return self.problem.loss.probability(self.initial_model_score)
        return self.problem.loss.probability(self.problem.score(self.problem.X))

    @property
    def of_surrogate(self) -> bool:
        """Whether price, bound, gap and worst case are those of a surrogate, not of the model."""
        return self.surrogate is not None and not self._of_network

    @property
    def _of_network(self) -> bool:
        """Whether the worst case is that of a network itself."""
        return self.bracket is not None or isinstance(self.problem.robust_to, LastLayer)

    @property
    def surrogate_score(self) -> Floats:
        """Score of each recourse under the linear score that was solved for."""
        return self.problem.score(self.recourse_array)

    @property
    def surrogate_error(self) -> Floats:
        """Score of the model minus score of its surrogate, at each recourse; 0 without one."""
        if self.model_score is None:
            return np.zeros(len(self))
        return self.model_score - self.surrogate_score

    def explain(self, label: Any) -> str:
        """Explain in a sentence or two what became of a row, by its label."""
        return sentence(self, self._position(label))

    def certificate(self, label: Any) -> Certificate:
        """Return the proof of a row: the multiplier and the model that its bound was made of.

        docs/certificate.md has the few lines of numpy that check it.
        """
        prover = self._prover_of_numbers("a certificate belongs to a linear bound")
        i = self._position(label)
        proof = prover.prove(self.problem.row(i), self.goal, 1)
        return Certificate(
            price=float(self.price[i]),
            lower_bound=float(self.lower_bound[i]),
            gap=float(self.gap[i]),
            multiplier=float(proof.multiplier[0]),
            worst_model=(proof.coef[0], float(proof.intercept[0])),
            # a line without slope is that of today's model, whatever was tried for it
            weights=None
            if self.problem.robust_to.has_size
            else _weights(proof.dual[0] * (proof.multiplier[0] > 0.0)),
        )

    def worst_models(self, n_jobs: int | None = -1) -> tuple[Floats, Floats]:
        """Return the worst model of the set for each recourse: coefficients and intercepts.

        Where several are equally bad, it is the one that proves the recourse optimal.
        """
        if self.bracket is not None:
            raise ValueError(
                "the set holds networks, but this is for linear scores: use worst_network or "
                "worst_last_layer of holdfast.models.networks"
            )
        problem, recourse = self.problem, self.recourse_array
        coef, intercept = problem.robust_to.worst_model(recourse, problem.coef, problem.intercept)
        if self.exact is None and self.prover is not None:
            proof = self.prover.prove(problem, self.goal, thread_count(n_jobs))
            used = (proof.multiplier > 0.0) & self.has_recourse
            coef[used], intercept[used] = proof.coef[used], proof.intercept[used]
        intercept[~self.has_recourse] = np.nan
        return coef, intercept

    def frontier(self, label: Any) -> RowCurve:
        """Return the curve from cost to worst-case score of a row, by its label.

        It is a `holdfast.continuous.frontier.Frontier`.
        """
        prover = self._prover_of_numbers("this curve is for numbers that may take any value")
        return prover.frontier(self.problem.row(self._position(label)), self.goal.cutoff)

    def _prover_of_numbers(self, why: str) -> RowProver:
        if self.prover is None:
            raise ValueError(f"{why}, but here categories or whole numbers were chosen too")
        if self._of_network:
            raise ValueError(
                "a network has neither a certificate nor a frontier: its worst case is proven, "
                "but no bound on the price of other recourses is known"
            )
        return self.prover

    def to_frame(self) -> pd.DataFrame:
        """Return one tidy row for each person, with the features of recourse and action by name."""
        import pandas as pd

        names = self.problem.names
        action = self.recourse_array - self.problem.X
        columns: dict[str, Any] = {
            "status": self.status.astype(str),
            "message": [sentence(self, i) for i in range(len(self))],
        }
        if self.method_status is not None:
            columns["method"] = self.method
            columns["method_status"] = self.method_status.astype(str)
        for name in _COLUMNS:
            of_surrogate = self.of_surrogate and name in _OF_THE_LINEAR_SCORE
            columns[f"surrogate_{name}" if of_surrogate else name] = getattr(self, name)
        if self.bracket is not None:
            probability = self.problem.loss.probability
            columns["proven_validity"] = probability(self.bracket.proven_score)
            columns["found_validity"] = probability(self.bracket.found_score)
        if self.surrogate is not None:
            columns["surrogate_r2"] = self.surrogate.r2
            columns["surrogate_point_error"] = self.surrogate.point_error
            columns["surrogate_error"] = self.surrogate_error
        for j, name in enumerate(names):
            columns[f"recourse.{name}"] = self.recourse_array[:, j]
        for j, name in enumerate(names):
            columns[f"action.{name}"] = action[:, j]
        return pd.DataFrame(columns, index=self.problem.index)

    def _position(self, label: Any) -> int:
        return position_of(label, self.problem.index, len(self))

    def _labelled(self, values: Floats) -> Floats | pd.DataFrame:
        if self.problem.feature_names is None:
            return values
        import pandas as pd

        return pd.DataFrame(values, columns=self.problem.feature_names, index=self.problem.index)


_COLUMNS = (
    *PROVEN,
    "worst_case_loss",
    "worst_case_score",
    *VALIDITIES,
    "reachable_validity",
    "reachable_radius",
)
_OF_THE_LINEAR_SCORE = frozenset(_COLUMNS) - {"cost", "current_validity", "initial_validity"}


def _weights(dual: Floats) -> Floats:
    """Return the weights of a mixture; where nothing was to be proven, today's model alone."""
    kept = np.maximum(dual, 0.0)
    if not kept.sum() > 0.0:
        return np.asarray(np.eye(1, kept.size)[0])
    return np.asarray(kept / kept.sum())


def _or(values: Floats | None, otherwise: Floats) -> Floats:
    return otherwise.copy() if values is None else values
