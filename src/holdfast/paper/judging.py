"""How the paper's recourses are judged: by its authors' search for worst networks, or by ours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.continuous.solve import judge, solve_problem
from holdfast.evaluate.judging import Worst, worst_case
from holdfast.machinery.numbers import Floats
from holdfast.models import Model
from holdfast.problem import NormBall, RecourseProblem

AS_PUBLISHED = "as_published"


def judged(model: Model, recourse: Floats, robust_to: NormBall, judging: str) -> Worst:
    """Judge each recourse by its own worst model, found in the way that `judging` names."""
    if judging != AS_PUBLISHED:
        return worst_case(model, recourse, robust_to)
    from holdfast.paper.published import published_worst_network  # needs torch

    return worst_case(model, recourse, robust_to, published_worst_network)


def distance_from_optimum(
    problem: RecourseProblem, recourse: Floats, cost_weight: float
) -> tuple[Floats, NDArray[np.object_]]:
    """Return the distance of recourses from the proven optimum, and their status."""
    best = solve_problem(problem, cost_weight=cost_weight, n_jobs=1)
    found = judge(best, recourse, 1)
    return found.gap, found.status
