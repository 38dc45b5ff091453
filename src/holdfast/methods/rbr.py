"""Robust Bayesian recourse (RBR): Nguyen, Bui, Nguyen, Yue and Nguyen, UAI 2022.

For each person: the nearest boundary point x_b on the way to people whom the model approves of;
samples around it, labelled by the model; then, within an L1 budget of the person, the point where
the odds of the unwanted class are least, when the Gaussian around each unwanted sample is moved
and widened in its favour and that around each wanted one to its harm (`rbr_likelihoods`). Only
the labels that the model gives are used.

This is the method of their paper. Their public code differs in three ways that affect results: see
`holdfast.paper.rbr_as_published`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.machinery.numbers import Floats, check_count, check_positive
from holdfast.machinery.threads import over_rows
from holdfast.methods.base import Method, Proposal, Task
from holdfast.methods.rbr_boundary import approves, nearest_boundary, nearest_candidates
from holdfast.methods.rbr_kernels import (
    Descent,
    Ends,
    Rules,
    descend_points,
    diameter,
    new_workspace,
)
from holdfast.methods.rbr_likelihoods import Ambiguity
from holdfast.models import Model
from holdfast.problem.losses import LOSSES
from holdfast.result import MethodStatus

# Numbers that candidates or samples of a chunk of rows may take: bounds the memory.
_CHUNK = 4_000_000


@dataclass(frozen=True)
class RobustBayesian(Method):
    """Robust Bayesian recourse.

    The defaults are those of its authors' public configuration (radii of 0: no ambiguity); their
    experiments vary `epsilon_pe` over 0, 0.5 and 1, and `delta_plus` over 0, 0.2, ..., 1. The paper
    that this library grew from compares over the same grid, with `epsilon_op` in 0, 0.5 and 1.

    All rows share one set of samples in the unit ball, drawn from the seed, so that a row's
    answer does not depend on the others. Whoever is approved of already starts where they stand.

    Attributes
    ----------
    epsilon_op, epsilon_pe : float
        Wasserstein radii around the samples of the unwanted and of the wanted class.
    delta_plus : float
        What the recourse may cost (L1) above the way to the boundary point.
    sigma : float
        Width of the Gaussian around each sample.
    samples : int
        Number of samples around the boundary point.
    sampling_radius : float
        Radius of the ball that they are drawn from, as a share of the largest Euclidean
        distance between two training points.
    candidates : int
        The boundary is looked for on the way to so many approved training points, the nearest.
    scan : int
        Steps in which each way is scanned, before the boundary is found by halving.
    step : float
        Length of a gradient step; 1 / sqrt(1000).
    max_steps : int
    tolerance : float
        The descent ends when a step moves the point by no more (L1).

    Examples
    --------
    >>> import numpy as np
    >>> import holdfast
    >>> training = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = holdfast.find_recourse(
    ...     [[-1.0, 0.0]],
    ...     ([1.0, 1.0], 0.0),
    ...     "rbr",
    ...     robust_to=holdfast.NormBall(p=1, radius=0.1),
    ...     cost_weight=0.1,
    ...     X_train=training,
    ...     epsilon_pe=0.5,
    ... )
    >>> bool(found.current_validity[0] > 0.5), found.cost.round(1)
    (True, array([1.2]))
    """

    name = "rbr"
    any_set = True  # none of them, in truth: the set only judges it
    summary = "robust Bayesian recourse: lowest odds of refusal among perturbed samples"
    guarantees = "none: heuristic and local; the ball and the cost weight are only used to judge it"
    kinds = ("linear", "network", "black box")
    losses = tuple(LOSSES)
    needs_training = True
    compiled = True

    epsilon_op: float = 0.0
    epsilon_pe: float = 0.0
    delta_plus: float = 0.2
    sigma: float = 1.0
    samples: int = 200
    sampling_radius: float = 0.2
    candidates: int = 1000
    scan: int = 99
    step: float = 1.0 / math.sqrt(1000.0)
    max_steps: int = 500
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("epsilon_op", "epsilon_pe", "delta_plus", "tolerance"):
            check_positive(name, getattr(self, name), or_zero=True)
        for name in ("sigma", "sampling_radius", "step"):
            check_positive(name, getattr(self, name))
        for name in ("samples", "candidates", "scan", "max_steps"):
            check_count(name, getattr(self, name))

    def check(self, task: Task) -> None:
        """Refuse what the method cannot do."""
        super().check(task)
        if (task.problem.feature_costs != 1.0).any():
            raise ValueError(f"{self.name} does not support feature_costs: its budget is plain L1")
        training, d = task.X_train, task.problem.n_features
        if training is not None and (training.ndim != 2 or training.shape[1] != d):
            raise ValueError(f"X_train has shape {training.shape}, expected (m, {d})")
        if training is not None and not np.isfinite(training).all():
            raise ValueError(f"{self.name} needs training points without missing values")

    def run(self, task: Task) -> Proposal:
        """Find the boundary, sample around it, and descend, for a chunk of rows at a time."""
        assert task.X_train is not None  # `check` saw to it
        points, training = task.problem.X, task.X_train
        n, d = points.shape
        approved = training[approves(task.model, training)]
        if not len(approved):
            raise ValueError(f"{self.name}: the model gives the wanted class to no training point")
        noise = unit_ball(self.samples, d, task.random_state) * (
            self.sampling_radius * spread(training)
        )
        ends = Ends(np.empty((n, d)), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool))
        for part in _chunks(n, d * max(self.samples, min(self.candidates, len(approved)))):
            descent = self._prepare(task, points[part], approved, noise)
            piece = Ends(ends.recourse[part], ends.steps[part], ends.converged[part])
            self._descend(descent, piece, task.threads)
        status = np.empty(n, dtype=object)
        status[:] = MethodStatus.STEP_LIMIT
        status[ends.converged] = MethodStatus.CONVERGED
        return Proposal(ends.recourse, status, ends.steps)

    def _prepare(self, task: Task, points: Floats, approved: Floats, noise: Floats) -> Descent:
        candidates = nearest_candidates(points, approved, self.candidates)
        start = self.boundary(task.model, points, candidates)
        samples = start[:, None, :] + noise
        wanted = approves(task.model, samples.reshape(-1, points.shape[1]))
        budget = np.abs(start - points).sum(axis=1) + self.delta_plus
        return Descent(points, start, budget, samples, wanted.reshape(samples.shape[:2]))

    def _descend(self, descent: Descent, ends: Ends, threads: int) -> None:
        n, d = descent.points.shape
        over_rows(
            descend_points,
            n,
            threads,
            descent,
            self.ambiguity(d),
            self.rules(),
            ends,
            private=lambda: new_workspace(self.samples, d),
            least_rows=1,  # a row takes milliseconds
        )

    def boundary(self, model: Model, points: Floats, candidates: Floats) -> Floats:
        """Return where each descent starts: on the way to one of the row's candidates."""
        return nearest_boundary(model, points, candidates, self.scan)

    def ambiguity(self, n_features: int) -> Any:
        """Return what the kernels read of the Gaussians."""
        radii = float(self.epsilon_op), float(self.epsilon_pe)
        return Ambiguity(float(self.sigma), *radii, n_features)

    def rules(self) -> Any:
        """Return what the kernels read of the descent."""
        return Rules(float(self.step), int(self.max_steps), float(self.tolerance))


def unit_ball(n: int, d: int, random_state: int) -> Floats:
    """Draw n points uniformly from the Euclidean unit ball.

    Examples
    --------
    >>> import numpy as np
    >>> points = unit_ball(1000, 3, random_state=0)
    >>> bool((np.linalg.norm(points, axis=1) <= 1.0).all())
    True
    """
    rng = np.random.default_rng(random_state)
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # the volume within radius r grows like r^d
    return np.asarray(directions * rng.random((n, 1)) ** (1.0 / d))


def spread(points: Floats) -> float:
    """Return the largest Euclidean distance between two points.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 4.0]]))
    5.0
    """
    far = np.linalg.norm(points - points.mean(axis=0), axis=1)
    order = np.argsort(-far, kind="stable")
    return float(diameter(np.ascontiguousarray(points), order, far * (1.0 + 1e-12)))


def _chunks(n: int, size: int) -> Iterator[slice]:
    """Cut n rows of that size into chunks; one empty chunk if there are none."""
    rows = max(1, _CHUNK // max(size, 1))
    for begin in range(0, max(n, 1), rows):
        yield slice(begin, min(begin + rows, n))
