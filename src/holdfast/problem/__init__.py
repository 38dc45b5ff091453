"""The question: points, linear scores, costs and bounds, the set of models, the loss, the goal."""

from holdfast.problem.ball import NormBall
from holdfast.problem.losses import Loss
from holdfast.problem.problem import RecourseProblem

__all__ = ["Loss", "NormBall", "RecourseProblem"]
