"""The question: points, linear scores, costs and bounds, the set of models, the loss, the goal."""

from holdfast.problem.ball import NormBall
from holdfast.problem.ellipsoid import Ellipsoid
from holdfast.problem.last_layer import LastLayer
from holdfast.problem.losses import Loss
from holdfast.problem.model_list import ModelList
from holdfast.problem.model_set import ModelSet
from holdfast.problem.points import Points
from holdfast.problem.problem import RecourseProblem

__all__ = [
    "Ellipsoid",
    "LastLayer",
    "Loss",
    "ModelList",
    "ModelSet",
    "NormBall",
    "Points",
    "RecourseProblem",
]
