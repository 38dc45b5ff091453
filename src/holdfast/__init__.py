"""Holdfast: robust algorithmic recourse, provably optimal, with a certificate for every answer."""

from holdfast.api import solve, solve_problem
from holdfast.ball import NormBall
from holdfast.curve import Frontier, FrontierPoint, frontier
from holdfast.methods import find_recourse, list_methods
from holdfast.problem import RecourseProblem
from holdfast.radius import RadiusEstimate, estimate_radius
from holdfast.result import Certificate, MethodStatus, Recourse, Status
from holdfast.surrogate import Surrogate

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Frontier",
    "FrontierPoint",
    "MethodStatus",
    "NormBall",
    "RadiusEstimate",
    "Recourse",
    "RecourseProblem",
    "Status",
    "Surrogate",
    "estimate_radius",
    "find_recourse",
    "frontier",
    "list_methods",
    "solve",
    "solve_problem",
]
