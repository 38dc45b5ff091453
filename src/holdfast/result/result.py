"""What comes back: for every row a recourse, what it costs, how safe it is, and the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.machinery.labels import position_of
from holdfast.machinery.numbers import Floats
from holdfast.problem.problem import RecourseProblem, is_uneven, make_goal, wrong_bounds
from holdfast.result.appraisal import prove, score_roundings
from holdfast.result.surrogate import Surrogate

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.continuous.frontier import Frontier

# A row is called optimal when the certificate leaves less than this, relative to 1 + price; for a
# guarantee, relative to its cost + the least cost of a unit of score (`api.is_proven`).
GAP_TOLERANCE = 1e-9


class Status(StrEnum):
    """What became of a row.

    Examples
    --------
    >>> Status.INFEASIBLE.sentence
    'No change within the bounds gives the guarantee.'
    >>> Status.OPTIMAL == "optimal"
    True
    """

    OPTIMAL = "optimal"
    ALREADY_VALID = "already valid"
    STILL_REFUSED = "still refused"
    INFEASIBLE = "infeasible"
    NOT_FOUND = "not found"
    ACCEPTED = "accepted"
    NOT_VALID = "not valid"
    FRACTIONAL = "fractional"
    GAP_OPEN = "gap open"
    OUT_OF_BOUNDS = "out of bounds"
    INVALID_INPUT = "invalid input"

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return _SENTENCES[self]

    @property
    def is_proven(self) -> bool:
        """Whether a certificate proves that nothing better exists."""
        return self in (Status.OPTIMAL, Status.ALREADY_VALID, Status.STILL_REFUSED)


_SENTENCES = {
    Status.OPTIMAL: "The best recourse there is, proven by its certificate.",
    Status.ALREADY_VALID: "Every model of the ball approves this point as it is; nothing to do.",
    Status.STILL_REFUSED: "The best that was asked for, proven; but today's model still refuses "
    "this point. Ask for a guarantee, or a higher one, to get a yes.",
    Status.INFEASIBLE: "No change within the bounds gives the guarantee.",
    Status.NOT_FOUND: "The method brought back no finite point.",
    Status.ACCEPTED: "The model itself accepts this recourse. It is not linear, so nothing is "
    "proven about cheaper recourses or about other models.",
    Status.NOT_VALID: "The model itself refuses this recourse, or gives less than the guarantee.",
    Status.FRACTIONAL: "The recourse moves a category to none of its levels, which nobody can do: "
    "it is for study. For advice that people can follow use RobustRecourse.",
    Status.GAP_OPEN: "A recourse was found, but the certificate does not prove it the best.",
    Status.OUT_OF_BOUNDS: "The point lies outside its own bounds; correct one of them.",
    Status.INVALID_INPUT: "The row cannot be used.",
}


def sort_proven(
    status: NDArray[np.object_],
    stays: NDArray[np.bool_],
    worst_score: Floats,
    score: Floats,
    cutoff: float,
    target: float | None,
) -> None:
    """Sort rows that are proven by what a model, which accepts from `cutoff` on, makes of them.

    `target` is the worst-case score that was asked for; None: the least price was.
    """
    proven = np.array([each.is_proven for each in status], dtype=bool)
    enough = cutoff if target is None else target
    status[proven] = Status.OPTIMAL
    status[proven & (worst_score >= enough) & stays] = Status.ALREADY_VALID
    status[proven & (score < cutoff)] = Status.STILL_REFUSED


class MethodStatus(StrEnum):
    """What a method says of its own run on a row; what its recourse is worth, `Status` says.

    Examples
    --------
    >>> MethodStatus.STEP_LIMIT.sentence
    'The method ran out of steps.'
    """

    CONVERGED = "converged"
    STEP_LIMIT = "step limit"
    NOT_VALID = "not valid"
    NOT_RUN = "not run"

    @property
    def sentence(self) -> str:
        """What the status means, in a sentence."""
        return _METHOD_SENTENCES[self]


_METHOD_SENTENCES = {
    MethodStatus.CONVERGED: "The method stopped by its own rule.",
    MethodStatus.STEP_LIMIT: "The method ran out of steps.",
    MethodStatus.NOT_VALID: "The method ended at a point that today's model turns down.",
    MethodStatus.NOT_RUN: "The method was not run on this row: it cannot be used.",
}


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
        A model of the ball under which the bound holds; it is a worst one for the optimum.

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


@dataclass(frozen=True, eq=False)
class RecourseResult:
    """The answer to a batch of recourse problems, one entry for each row.

    Rows go by their labels: the index of the data frame that the points came in, or else their
    positions 0, 1, ... Rows without a recourse hold NaN there, infinite cost and price where there
    is none to be had, and a `status` that says why.

    Attributes
    ----------
    status : array of Status
    cost : array
        ``sum(feature_costs * |action|)``.
    price : array
        What was minimised: worst-case loss + cost weight * cost; for a guarantee, the cost.
    lower_bound, gap : arrays
        The certificate: nothing is better than `lower_bound`; ``gap = price - lower_bound``.
    worst_case_loss, worst_case_score, worst_case_validity : arrays
        Loss, score and probability of approval of the recourse under the worst model in the ball.
    current_validity : array
        Probability of approval of the recourse under today's model.
    initial_validity : array
        Probability of approval of the point as it was, under today's model.
    reachable_validity, reachable_radius : arrays
        For infeasible rows: the largest worst-case probability that can be reached, and the
        largest radius at which the guarantee could still be given (NaN: at none).
    multiplier : array
        What the last bit of worst-case score cost, for a whole unit of it (the next bit costs as
        much or more); NaN where another method than the exact one found the recourse.
    method, seconds : str, float
        Who found the recourses, and how long it took (compilation not counted).
    method_status, steps : arrays
        What the method says of its own run (a `MethodStatus`), and its number of steps.
    surrogate : Surrogate or None
        Set where a linear score stood for the model (a network, say). Then price, bound, gap and
        worst case **are those of the surrogate**, and prove nothing of the model itself;
        `current_validity`, `initial_validity` and `model_score` are the true model's, and so is
        the status: ACCEPTED or NOT_VALID, never OPTIMAL.
    exact : Recourse or None
        For another method than the exact one: the optimum, which carries the proof.

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
    cost_weight: float | None
    guarantee: float | None
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
    method: str = "exact"
    seconds: float = math.nan
    method_status: NDArray[np.object_] | None = None
    steps: NDArray[np.int64] | None = None
    surrogate: Surrogate | None = None
    model_score: Floats | None = None
    initial_model_score: Floats | None = None
    exact: RecourseResult | None = None

    def __len__(self) -> int:
        return self.problem.n_rows

    def __repr__(self) -> str:
        names, counts = np.unique(self.status.astype(str), return_counts=True)
        found = [f"{count} {name}" for name, count in zip(names, counts, strict=True)]
        rows = ", ".join(found) or "nothing to solve"
        goal = (
            f"guarantee={self.guarantee}"
            if self.guarantee is not None
            else f"cost_weight={self.cost_weight}"
        )
        ball = f"p={self.problem.robust_to.p:g}, radius={self.problem.robust_to.radius:g}"
        who = "" if self.method == "exact" else f"{self.method}, "
        of = "" if self.surrogate is None else f", {self.surrogate.name} surrogate"
        return f"<RecourseResult, rows: {len(self)} ({who}{goal}, {ball}{of}): {rows}>"

    @property
    def recourse(self) -> Floats | pd.DataFrame:
        """Where each person should go; a data frame if the points were one."""
        return self._labelled(self.recourse_array)

    @property
    def action(self) -> Floats | pd.DataFrame:
        """What each person should change: recourse minus point."""
        return self._labelled(self.recourse_array - self.problem.X)

    @cached_property
    def initial_validity(self) -> Floats:
        """Probability of approval of each point as it was, under today's model."""
        if self.initial_model_score is not None:
            return self.problem.loss.probability(self.initial_model_score)
        return self.problem.loss.probability(self.problem.score(self.problem.X))

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
        """Say in a sentence what became of the row of that label."""
        return self._full_message(self._position(label))

    def _full_message(self, i: int) -> str:
        said = self._message(i)
        if self.surrogate is None or self.status[i] in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
            return said
        if np.isnan(self.recourse_array[i, 0]):
            return f"{said} This is said of the {self.surrogate.name} surrogate, not of the model."
        found = f"It was found for the {self.surrogate.name} surrogate, a linear score in the "
        if np.isnan(self.current_validity[i]):  # a margin is no probability
            return f"{said} {found}model's place."
        return (
            f"{said} {found}model's place; the model itself gives the recourse a probability of "
            f"{self.current_validity[i]:.4g}."
        )

    def _message(self, i: int) -> str:
        status: Status = self.status[i]
        if status in (Status.INVALID_INPUT, Status.OUT_OF_BOUNDS):
            return unusable_message(self.problem.row(i))
        if status is Status.INFEASIBLE or (
            status is Status.NOT_FOUND and self.surrogate is not None and self.method == "exact"
        ):
            return _infeasible_message(self, i)
        if status in (Status.OPTIMAL, Status.STILL_REFUSED) and self.cost[i] == 0.0:
            said = "No change is worth its cost: staying put has the lowest price, proven"
            refused = "; today's model still refuses." if status is Status.STILL_REFUSED else "."
            return said + refused
        if status is Status.GAP_OPEN:
            unknown = self._unknown_score(i)
            if unknown:
                return unknown
            if np.isnan(self.recourse_array[i, 0]):
                return (
                    "No recourse was found; proven is only that none costs less than "
                    f"{self.lower_bound[i]:.6g}."
                )
            return (
                f"A recourse was found at {self.price[i]:.6g}; proven is only that none is below "
                f"{self.lower_bound[i]:.6g}."
            )
        return status.sentence

    def _unknown_score(self, i: int) -> str:
        """Say that the score of row i is mostly rounding; nothing where it is not."""
        found = not np.isnan(self.recourse_array[i, 0])
        row = self.problem.row(i)
        x = self.recourse_array[i : i + 1] if found else row.X
        rounding, score = score_roundings(row, x)[0], abs(row.score(x)[0])
        if rounding <= GAP_TOLERANCE * (1.0 + score):
            return ""
        return (
            f"The score of this row is only known to +-{rounding:.2g}: its terms are so large that "
            "rounding them leaves nothing to be proven."
        )

    def certificate(self, label: Any) -> Certificate:
        """Return the proof of a row: the multiplier and the model that its bound was made of.

        docs/certificate.md has the few lines of numpy that check it.
        """
        i = self._position(label)
        row = self.problem.row(i)
        proof = prove(row, make_goal(row, self.cost_weight, self.guarantee))
        return Certificate(
            price=float(self.price[i]),
            lower_bound=float(self.lower_bound[i]),
            gap=float(self.gap[i]),
            multiplier=float(proof.multiplier[0]),
            worst_model=(proof.coef[0], float(proof.intercept[0])),
        )

    def worst_models(self) -> tuple[Floats, Floats]:
        """Return the worst model of the ball for each recourse: coefficients and intercepts.

        Where several are equally bad, it is the one that proves the recourse optimal.
        """
        problem, recourse = self.problem, self.recourse_array
        coef, intercept = problem.robust_to.worst_model(recourse, problem.coef, problem.intercept)
        if self.exact is None:
            proof = prove(problem, make_goal(problem, self.cost_weight, self.guarantee))
            used = (proof.multiplier > 0.0) & ~np.isnan(recourse).any(axis=1)
            coef[used], intercept[used] = proof.coef[used], proof.intercept[used]
        intercept[np.isnan(recourse).any(axis=1)] = np.nan
        return coef, intercept

    def frontier(self, label: Any) -> Frontier:
        """Return the curve from cost to worst-case score of the row of that label."""
        from holdfast.continuous.frontier import (
            Frontier,  # late: curves are drawn with the door itself
        )

        return Frontier(self.problem.row(self._position(label)))

    def to_frame(self) -> pd.DataFrame:
        """Return one tidy row for each person, with the features of recourse and action by name."""
        import pandas as pd

        names = self.problem.names
        action = self.recourse_array - self.problem.X
        columns: dict[str, Any] = {
            "status": self.status.astype(str),
            "message": [self._full_message(i) for i in range(len(self))],
        }
        if self.method_status is not None:
            columns["method"] = self.method
            columns["method_status"] = self.method_status.astype(str)
        for name in _COLUMNS:
            of_surrogate = self.surrogate is not None and name in _OF_THE_LINEAR_SCORE
            columns[f"surrogate_{name}" if of_surrogate else name] = getattr(self, name)
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
    "cost",
    "price",
    "lower_bound",
    "gap",
    "worst_case_loss",
    "worst_case_score",
    "worst_case_validity",
    "current_validity",
    "initial_validity",
    "reachable_validity",
    "reachable_radius",
)
_OF_THE_LINEAR_SCORE = frozenset(_COLUMNS) - {"cost", "current_validity", "initial_validity"}


def _infeasible_message(result: RecourseResult, i: int) -> str:
    radius, reach = result.reachable_radius[i], result.reachable_validity[i]
    best = f": at most {reach:.4g} can be had" if np.isfinite(reach) else ""
    row = result.problem.row(i)
    bounded = np.isfinite(row.lower).any() or np.isfinite(row.upper).any()
    which = "No change within the bounds" if bounded else "No change"
    said = (
        f"{which} keeps the probability at {result.guarantee:.4g} for every model within "
        f"{result.problem.robust_to.radius:.4g}{best}. "
    )
    if np.isnan(radius):
        return said + "Not even today's model alone can be satisfied."
    return said + f"Any radius below {radius:.4g} would work."


def unusable_message(row: RecourseProblem) -> str:
    """Say which value of a one-row problem makes it unusable."""
    names = row.names
    numbers = np.concatenate([row.X[0], row.coef[0], row.intercept])
    labels = [*names, *(f"coefficient of {name}" for name in names), "intercept"]
    for label, number in zip(labels, numbers, strict=True):
        if not np.isfinite(number):
            return f"The row cannot be used: {label} is {number}, expected a finite number."
    for name, cost in zip(names, row.feature_costs[0], strict=True):
        if not 0.0 < cost < np.inf:
            return f"The row cannot be used: the cost of {name} is {cost}, expected a positive one."
    if is_uneven(row.feature_costs)[0]:
        low, high = np.argmin(row.feature_costs[0]), np.argmax(row.feature_costs[0])
        return (
            f"The row cannot be used: the costs of {names[low]} and {names[high]} are too far "
            f"apart to be computed with ({row.feature_costs[0, low]:g} and "
            f"{row.feature_costs[0, high]:g})."
        )
    lower, upper, point = row.lower[0], row.upper[0], row.X[0]
    wrong = wrong_bounds(lower, upper)
    if wrong.any():
        k = int(np.argmax(wrong))
        return f"The row cannot be used: the bounds of {names[k]} are [{lower[k]:g}, {upper[k]:g}]."
    if np.all((lower <= point) & (point <= upper)):
        return "The row cannot be used: cost weight times cost is out of the range of numbers."
    k = int(np.argmax(~((lower <= point) & (point <= upper))))
    return f"{names[k]} is {point[k]:g}, outside its own bounds [{lower[k]:g}, {upper[k]:g}]."
