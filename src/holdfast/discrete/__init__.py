"""Recourse with categories, whole numbers and at most k changes: exact, by branch and bound."""

from holdfast.discrete.answer import check_answer
from holdfast.discrete.linked import Links, answer_linked, solve_linked
from holdfast.discrete.problem import DiscreteProblem, Group
from holdfast.discrete.solve import answer_discrete, largest_reachable_score, solve_discrete

__all__ = [
    "DiscreteProblem",
    "Group",
    "Links",
    "answer_discrete",
    "answer_linked",
    "check_answer",
    "largest_reachable_score",
    "solve_discrete",
    "solve_linked",
]
