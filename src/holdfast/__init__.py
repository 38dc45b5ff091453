"""Holdfast: robust algorithmic recourse, provably optimal, with a certificate for every answer."""

from holdfast.api import solve, solve_problem
from holdfast.ball import NormBall
from holdfast.curve import Frontier, FrontierPoint, frontier
from holdfast.methods import find_recourse, list_methods
from holdfast.problem import RecourseProblem
from holdfast.result import Certificate, MethodStatus, Recourse, Status
from holdfast.surrogate import Surrogate

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Frontier",
    "FrontierPoint",
    "MethodStatus",
    "NormBall",
    "Recourse",
    "RecourseProblem",
    "Status",
    "Surrogate",
    "find_recourse",
    "frontier",
    "list_methods",
    "solve",
    "solve_problem",
]
