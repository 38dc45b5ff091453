from holdfast.ball import NormBall
from holdfast.problem import RecourseProblem
