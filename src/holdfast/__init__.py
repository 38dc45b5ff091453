"""Holdfast: robust algorithmic recourse, provably optimal, with a certificate for every answer."""

from typing import TYPE_CHECKING, Any

from holdfast.actions import ActionSet, AtMost, Follows
from holdfast.continuous.frontier import Frontier, FrontierPoint, frontier
from holdfast.continuous.solve import solve, solve_problem
from holdfast.methods import find_recourse, list_methods
from holdfast.problem.ball import NormBall
from holdfast.problem.problem import RecourseProblem
from holdfast.radius import RadiusEstimate, estimate_radius
from holdfast.result.result import Certificate, MethodStatus, Recourse, Status
from holdfast.result.surrogate import Surrogate

if TYPE_CHECKING:
    from holdfast.recommend import RobustRecourse

__version__ = "0.1.0"

__all__ = [
    "ActionSet",
    "AtMost",
    "Certificate",
    "Follows",
    "Frontier",
    "FrontierPoint",
    "MethodStatus",
    "NormBall",
    "RadiusEstimate",
    "Recourse",
    "RecourseProblem",
    "RobustRecourse",
    "Status",
    "Surrogate",
    "estimate_radius",
    "find_recourse",
    "frontier",
    "list_methods",
    "solve",
    "solve_problem",
]


def __getattr__(name: str) -> Any:
    """Load the estimator when it is asked for: it needs scikit-learn, which is slow to import."""
    if name == "RobustRecourse":
        from holdfast.recommend import RobustRecourse

        return RobustRecourse
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
