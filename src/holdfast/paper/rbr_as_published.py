"""Robust Bayesian recourse as the public code of its authors has it, not as their paper has it.

It differs in ways that show:

- the gradient of its pessimistic problem has a wrong sign in the mean's part, which drives all of
  epsilon_pe into a shift of the mean; deviations never widen;
- the descent stops where it first touches the budget, instead of going on along it, so that with
  ``delta_plus=0`` it returns the boundary point;
- that point is the first of 100 along a segment that is approved, not the boundary.

Its experiments name a grid for epsilon_op as well, but never hand it on: it was always 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from numba.extending import overload

from holdfast.machinery.compile import kernel
from holdfast.machinery.numbers import Floats
from holdfast.methods.rbr import RobustBayesian
from holdfast.methods.rbr_boundary import nearest_of, scan_segments
from holdfast.methods.rbr_kernels import step_inside, take_step
from holdfast.methods.rbr_likelihoods import worst_likelihood
from holdfast.models import Model


@dataclass(frozen=True)
class RobustBayesianAsPublished(RobustBayesian):
    """Robust Bayesian recourse with three faults of the public code; see this module.

    Examples
    --------
    >>> import numpy as np
    >>> import holdfast
    >>> from holdfast.paper import RobustBayesianAsPublished
    >>> training = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = holdfast.find_recourse(
    ...     [[-1.0, 0.0]],
    ...     ([1.0, 1.0], 0.0),
    ...     RobustBayesianAsPublished(epsilon_pe=0.5),
    ...     robust_to=holdfast.NormBall(p=1, radius=0.1),
    ...     cost_weight=0.1,
    ...     X_train=training,
    ... )
    >>> found.cost.round(1)
    array([1.2])
    """

    name = "rbr_as_published"
    summary = "robust Bayesian recourse as its authors' code has it"

    def boundary(self, model: Model, points: Floats, candidates: Floats) -> Floats:
        """Return where each descent starts: at the first approved point of a scan."""
        _, approved = scan_segments(model, points, candidates, self.scan)
        return nearest_of(points, candidates, approved)

    def ambiguity(self, n_features: int) -> ShiftedMeans:
        """Return what the kernels read of the Gaussians."""
        return ShiftedMeans(*super().ambiguity(n_features))

    def rules(self) -> RulesAsPublished:
        """Return what the kernels read of the descent."""
        return RulesAsPublished(*super().rules())


class ShiftedMeans(NamedTuple):
    """An `Ambiguity` in which the pessimistic mean moves, and nothing else."""

    sigma: float
    epsilon_op: float
    epsilon_pe: float
    n_features: int


class RulesAsPublished(NamedTuple):
    """`Rules` of a descent that stays where it touches its budget."""

    step: float
    max_steps: int
    tolerance: float


@kernel
def shifted(c, ambiguity):
    """Return the log-likelihood with the mean moved away, and its derivative in c."""
    sigma = ambiguity.sigma
    q = c / sigma + ambiguity.epsilon_pe / sigma
    return -ambiguity.n_features * math.log(sigma) - 0.5 * q * q, -q / sigma


@kernel
def step_or_stay(x, point, budget, step, work):
    """Step as the sound descent does, but not from where the budget is spent."""
    spent = 0.0
    for j in range(x.size):
        spent += abs(x[j] - point[j])
    if spent >= budget * (1.0 - 1e-9):
        return 0.0
    return step_inside(x, point, budget, step, work)


@overload(worst_likelihood)
def _worst_likelihood(c, ambiguity):
    if ambiguity.instance_class is ShiftedMeans:
        return lambda c, ambiguity: shifted(c, ambiguity)
    return None


@overload(take_step)
def _take_step(x, point, budget, rules, work):
    if rules.instance_class is RulesAsPublished:
        return lambda x, point, budget, rules, work: step_or_stay(
            x, point, budget, rules.step, work
        )
    return None
