"""Recourse with categories, whole numbers and at most k changes: exact, by branch and bound."""

from holdfast.discrete.problem import DiscreteProblem, Group

__all__ = ["DiscreteProblem", "Group"]
