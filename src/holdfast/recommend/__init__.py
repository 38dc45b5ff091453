"""Recourse that a person can follow: raw units, constraints inside, more than one way, reasons."""

from holdfast.recommend.estimator import RobustRecourse
from holdfast.recommend.recommendations import Recommendations

__all__ = ["Recommendations", "RobustRecourse"]
