"""A step of a walk over a score that is not linear: its line, solved exactly within a box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.machinery.numbers import Floats
from holdfast.problem.ball import NormBall
from holdfast.problem.costs import costs_of_moves
from holdfast.problem.problem import RecourseProblem, frozen


def linear_in_box(
    part: RecourseProblem, x: Floats, coef: Floats, score: Floats, room: Floats
) -> RecourseProblem:
    """Return the problem of the line through `score` at x, within `room` of x and the bounds."""
    lower, upper = np.maximum(part.lower, x - room), np.minimum(part.upper, x + room)
    # From outside the box every way leads over its nearest point: beginning there takes a
    # constant off the cost, and nothing else.
    return replace(
        part,
        X=frozen(np.clip(part.X, lower, upper)),
        coef=frozen(coef),
        intercept=frozen(score - np.einsum("ij,ij->i", coef, x)),
        lower=frozen(lower),
        upper=frozen(upper),
        robust_to=NormBall(p=1, radius=0.0),
    )


def change_costs(part: RecourseProblem, points: Floats) -> Floats:
    """What it costs to go from each person to a point."""
    return costs_of_moves(part.X, points, part.feature_costs)
