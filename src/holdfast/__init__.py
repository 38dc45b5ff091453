"""Holdfast: robust algorithmic recourse, provably optimal, with a certificate for every answer."""

from holdfast.api import solve, solve_problem
from holdfast.ball import NormBall
from holdfast.curve import Frontier, FrontierPoint, frontier
from holdfast.problem import RecourseProblem
from holdfast.result import Certificate, Recourse, Status

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "Frontier",
    "FrontierPoint",
    "NormBall",
    "Recourse",
    "RecourseProblem",
    "Status",
    "frontier",
    "solve",
    "solve_problem",
]
